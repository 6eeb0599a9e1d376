/* Copies with strides, of elements of any width: transposes, broadcasts and slices are all this loop. */
#include "kernels.h"

#include <string.h>

int k_move(Ctx *c, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from, int64_t width)
{
	(void)c;
	for (int64_t i = 0, n = k_count(&to); i < n; i++)
		memcpy((char *)y + (yoffset + k_offset(&to, i)) * width,
			(const char *)x + (xoffset + k_offset(&from, i)) * width, (size_t)width);
	return 0;
}

int k_copy(Ctx *c, void *y, const void *x, int64_t offset, KLoops l, int64_t width)
{
	(void)c;
	for (int64_t i = 0, n = k_count(&l); i < n; i++)
		memcpy((char *)y + i * width, (const char *)x + (offset + k_offset(&l, i)) * width, (size_t)width);
	return 0;
}

int k_zero(Ctx *c, void *y, int64_t bytes)
{
	(void)c;
	memset(y, 0, (size_t)bytes);
	return 0;
}

int k_keep(Ctx *c, void *y, const void *x, int64_t bytes, bool mine)
{
	(void)c;
	for (int64_t i = 0; i < bytes; i++)
		((char *)y)[i] = mine ? ((const char *)x)[i] : 0;
	return 0;
}
