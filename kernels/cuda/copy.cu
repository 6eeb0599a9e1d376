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

KERNEL g_zero_32(u32 *y, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = 0;
}

KERNEL g_move_32(u32 *y, i64 yoffset, const u32 *x, i64 xoffset, Loops to, Loops from, i64 n)
{
	i64 i = element();
	if (i < n)
		y[yoffset + place(to, i)] = x[xoffset + place(from, i)];
}

KERNEL g_move_64(u64 *y, i64 yoffset, const u64 *x, i64 xoffset, Loops to, Loops from, i64 n)
{
	i64 i = element();
	if (i < n)
		y[yoffset + place(to, i)] = x[xoffset + place(from, i)];
}
