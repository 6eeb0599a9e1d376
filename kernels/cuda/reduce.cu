/* Reductions over any set of axes: one thread per result, in row-major order of the reduced axes. */
#include "dialect.h"

KERNEL g_reduce_f32(float *y, const float *x, KLoops keep, KLoops over, int op, i64 rows, i64 n, i64 all)
{
	i64 i = element();
	if (i >= rows)
		return;
	const float *from = x + offset_of(keep, i);
	float v = op == K_MAX ? NEG_INF : op == K_MIN ? -NEG_INF : op == K_PROD ? 1.0f : 0.0f;
	for (i64 j = 0; j < n; j++) {
		float e = from[offset_of(over, j)];
		if (op == K_MAX)
			v = e > v || e != e ? e : v;
		else if (op == K_MIN)
			v = e < v || e != e ? e : v;
		else if (op == K_PROD)
			v *= e;
		else
			v += e;
	}
	y[i] = op == K_MEAN ? v / (float)all : v;
}
