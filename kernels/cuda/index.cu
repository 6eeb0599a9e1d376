/* Operators whose indices are data; an index out of range reads zeros. */
#include "dialect.h"

/* x holds rows first .. first + n - 1 of `all`: other rows read as zeros. */
KERNEL g_gather(void *y, const void *x, const i64 *index, i64 n, i64 inner, i64 many, i64 width, i64 first,
	i64 all, i64 total)
{
	i64 i = element();
	if (i >= total)
		return;
	i64 at = wrapped(index[i / inner % many], all) - first;
	put(y, i, at < 0 || at >= n ? 0 : x, (i / inner / many * n + at) * inner + i % inner, width);
}

KERNEL g_gather_elements(void *y, const void *x, const i64 *index, KLoops l, i64 n, i64 stride, i64 width, i64 total)
{
	i64 i = element();
	if (i >= total)
		return;
	i64 at = wrapped(index[i], n);
	put(y, i, at < 0 ? 0 : x, offset_of(l, i) + at * stride, width);
}

/* One thread per column of the result: indices may repeat, and the order of the sum is fixed. */
KERNEL g_gather_grad_f32(float *y, const float *dy, const i64 *index, i64 n, i64 inner, i64 many, i64 first,
	i64 all, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 o = e / inner, j = e % inner;
	for (i64 k = 0; k < n; k++)
		y[(o * n + k) * inner + j] = 0;
	for (i64 i = 0; i < many; i++) {
		i64 k = wrapped(index[i], all) - first;
		if (k >= 0 && k < n)
			y[(o * n + k) * inner + j] += dy[(o * many + i) * inner + j];
	}
}
