/* Kernels that only move elements, of any width: one thread per element of the result.  An index out of range copies
 * nothing. */
#include "dialect.h"

KERNEL g_fill(void *y, i64 offset, KLoops l, u64 bits, i64 width, i64 n)
{
	i64 i = element();
	if (i < n)
		put(y, offset + offset_of(l, i), &bits, 0, width);
}

KERNEL g_pad(void *y, const void *x, const void *value, KPad p, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 at = behind(p, i);
	put(y, i, at < 0 ? value : x, at < 0 ? 0 : at, width);
}

KERNEL g_trilu(void *y, const void *x, i64 rows, i64 cols, i64 k, int upper, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 d = i % cols - i / cols % rows;
	put(y, i, (upper ? d >= k : d <= k) ? x : 0, i, width);
}

KERNEL g_reverse_sequence(void *y, const void *x, const i64 *len, i64 time, i64 bstride, i64 tstride, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 b = i / time, t = i % time;
	put(y, b * bstride + t * tstride, x,
		b * bstride + (t < len[b] && len[b] <= time ? len[b] - 1 - t : t) * tstride, width);
}

KERNEL g_gather_nd(void *y, const void *x, const i64 *index, KNd d, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 at = tuple(index, i / d.run, d);
	put(y, i, at < 0 ? 0 : x, at + i % d.run, width);
}

KERNEL g_one_hot(void *y, const i64 *index, const void *values, i64 depth, i64 inner, i64 width, i64 first,
	i64 all, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 at = index[i / inner / depth * inner + i % inner];
	put(y, i, values, first + i / inner % depth == (at < 0 ? at + all : at), width);
}

KERNEL g_compress(void *y, const void *x, const unsigned char *keep, i64 nkeep, i64 outer, i64 n, i64 inner, i64 width)
{
	if (element() != 0)
		return;
	i64 to = 0;
	for (i64 o = 0; o < outer; o++)
		for (i64 i = 0; i < n && i < nkeep; i++)
			for (i64 j = 0; j < inner && keep[i]; j++)
				put(y, to++, x, (o * n + i) * inner + j, width);
}
