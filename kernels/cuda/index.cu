/* Operators whose indices are data; an index out of range reads nothing. */
#include "dialect.h"

KERNEL g_onehot_f32(float *y, const i64 *x, i64 depth, i64 inner, float off, float on, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 k = x[i / (depth * inner) * inner + i % inner];
	if (k < 0)
		k += depth;
	y[i] = i / inner % depth == k ? on : off;
}

KERNEL g_gather_32(u32 *y, const u32 *x, const i64 *index, i64 n, i64 inner, i64 count, i64 total)
{
	i64 i = element();
	if (i >= total)
		return;
	i64 o = i / (count * inner), k = index[i / inner % count];
	if (k < 0)
		k += n;
	y[i] = k < 0 || k >= n ? 0x7FC00000u : x[(o * n + k) * inner + i % inner];
}
