/* Copies with strides, of elements of any width. */
#include "dialect.h"

KERNEL g_copy(void *y, const void *x, i64 offset, KLoops l, i64 width, i64 n)
{
	i64 i = element();
	if (i < n)
		put(y, i, x, offset + offset_of(l, i), width);
}

KERNEL g_move(void *y, i64 yoffset, const void *x, i64 xoffset, KLoops to, KLoops from, i64 width, i64 n)
{
	i64 i = element();
	if (i < n)
		put(y, yoffset + offset_of(to, i), x, xoffset + offset_of(from, i), width);
}

KERNEL g_keep(unsigned char *y, const unsigned char *x, i64 n, int mine)
{
	i64 i = element();
	if (i < n)
		y[i] = mine ? x[i] : 0;
}

KERNEL g_zero(unsigned char *y, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = 0;
}
