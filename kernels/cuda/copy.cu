/* Copies with strides. */
#include "dialect.h"

KERNEL g_copy_8(unsigned char *y, const unsigned char *x, i64 offset, Loops l, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = x[offset + place(l, i)];
}

KERNEL g_copy_32(u32 *y, const u32 *x, i64 offset, Loops l, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = x[offset + place(l, i)];
}

KERNEL g_copy_64(u64 *y, const u64 *x, i64 offset, Loops l, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = x[offset + place(l, i)];
}

KERNEL g_keep_32(u32 *y, const u32 *x, i64 n, int mine)
{
	i64 i = element();
	if (i < n)
		y[i] = mine ? x[i] : 0;
}
