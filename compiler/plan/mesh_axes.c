/* Bundles: axes of a mesh with equal SBP entries.
 *
 * The number of combined signatures of an operator is exponential in the number of mesh axes.  Up to four axes are
 * combined freely: that gives a few thousand combinations, and the solver sees all of them.  Of more axes some form a
 * bundle, and along all axes of a bundle every value has the same entry.
 *
 *     mesh          2    2    2    2    2    2
 *     pins         S(0)  B    B    B    B    B         "tokens"
 *     bundles       a    b    b    c    c    c         S(1) along b: 4 shards
 *
 * So a mesh may have many axes, but the plan is optimal only among those with equal entries along a bundle.  Only axes
 * with equal pins join one bundle; those with equal links first, small before large, so that bundles have about one
 * size. */
#include "plan/plan.h"

#include <math.h>

enum { BUNDLES = 3 };                   /* fewer than AXES_FREE: each combination takes longer on many axes */

static bool same_wires(int j, int k)
{
	return device.axis[j].latency == device.axis[k].latency && device.axis[j].bytes == device.axis[k].bytes;
}

static int ranks_of(const Mesh *m, const int *with, int first)
{
	int n = 1;
	for (int k = first; k < m->ndim; k++)
		n *= with[k] == first ? m->dim[k] : 1;
	return n;
}

/* The two bundles to join next, by their first axes; false: no two can be joined. */
static bool find_pair(const Mesh *m, MeshAxesAlike *alike, const void *arg, const int *with, int *a, int *b)
{
	double least = INFINITY;
	for (int k = 1; k < m->ndim; k++)
		for (int j = 0; j < k && with[k] == k && m->dim[k] > 1; j++) {
			if (with[j] != j || m->dim[j] == 1 || (opt.chunks && m->dim[j] != m->dim[k]))
				continue;
			if (!alike(arg, j, k))
				continue;
			double size = (double)ranks_of(m, with, j) * ranks_of(m, with, k);
			size += same_wires(j, k) ? 0 : RANKS_MAX;
			if (size <= least) {
				least = size;
				*a = j;
				*b = k;
			}
		}
	return least < INFINITY;
}

bool mesh_axes_many(const int *dim, int ndim)
{
	int n = 0;
	for (int k = 0; k < ndim; k++)
		n += dim[k] > 1;
	return n > AXES_FREE;
}

int mesh_axes_bundle(const Mesh *m, MeshAxesAlike *alike, const void *arg, int *with)
{
	int n = 0, a, b;
	for (int k = 0; k < m->ndim; k++) {
		with[k] = k;
		n += m->dim[k] > 1;
	}
	for (int most = mesh_axes_many(m->dim, m->ndim) ? BUNDLES : AXES_FREE;
		n > most && find_pair(m, alike, arg, with, &a, &b); n--)
		for (int k = b; k < m->ndim; k++)
			with[k] = with[k] == b ? a : with[k];
	return n;
}

bool mesh_axes_next(int ndim, const int *with, const int *len, int *at)
{
	int k = ndim - 1;
	while (k >= 0 && (with[k] != k || ++at[k] == len[k]))
		at[k--] = 0;
	for (int i = 0; i < ndim; i++)
		at[i] = at[with[i]];
	return k >= 0;
}
