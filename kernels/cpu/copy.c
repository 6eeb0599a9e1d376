/* Copies with strides: transposes, broadcasts and slices are all this loop. */
#include "kernels.h"

/* Moves idx to the next element in row-major order; the new position in x, by strides. */
static int64_t next(const KLoops *l, int64_t *idx, int64_t at)
{
	for (int a = l->n - 1; a >= 0; a--) {
		at += l->stride[a];
		if (++idx[a] < l->len[a])
			return at;
		at -= l->len[a] * l->stride[a];
		idx[a] = 0;
	}
	return at;
}

int k_copy_8(Ctx *c, void *y, const void *x, int64_t offset, KLoops l)
{
	(void)c;
	uint8_t *to = y;
	const uint8_t *from = x;
	int64_t idx[RT_AXES] = { 0 }, at = offset, n = k_count(&l);
	for (int64_t i = 0; i < n; i++, at = next(&l, idx, at))
		to[i] = from[at];
	return 0;
}

int k_copy_32(Ctx *c, void *y, const void *x, int64_t offset, KLoops l)
{
	(void)c;
	uint32_t *to = y;
	const uint32_t *from = x;
	int64_t idx[RT_AXES] = { 0 }, at = offset, n = k_count(&l);
	for (int64_t i = 0; i < n; i++, at = next(&l, idx, at))
		to[i] = from[at];
	return 0;
}

int k_copy_64(Ctx *c, void *y, const void *x, int64_t offset, KLoops l)
{
	(void)c;
	uint64_t *to = y;
	const uint64_t *from = x;
	int64_t idx[RT_AXES] = { 0 }, at = offset, n = k_count(&l);
	for (int64_t i = 0; i < n; i++, at = next(&l, idx, at))
		to[i] = from[at];
	return 0;
}

int k_keep_32(Ctx *c, void *y, const void *x, int64_t n, bool mine)
{
	(void)c;
	uint32_t *to = y;
	const uint32_t *from = x;
	for (int64_t i = 0; i < n; i++)
		to[i] = mine ? from[i] : 0;
	return 0;
}

int k_zero_32(Ctx *c, void *y, int64_t n)
{
	(void)c;
	uint32_t *to = y;
	for (int64_t i = 0; i < n; i++)
		to[i] = 0;
	return 0;
}

int k_move_32(Ctx *c, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from)
{
	(void)c;
	uint32_t *a = y;
	const uint32_t *b = x;
	int64_t i[RT_AXES] = { 0 }, j[RT_AXES] = { 0 }, n = k_count(&to);
	for (int64_t k = 0; k < n; k++) {
		a[yoffset] = b[xoffset];
		yoffset = next(&to, i, yoffset);
		xoffset = next(&from, j, xoffset);
	}
	return 0;
}

int k_move_64(Ctx *c, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from)
{
	(void)c;
	uint64_t *a = y;
	const uint64_t *b = x;
	int64_t i[RT_AXES] = { 0 }, j[RT_AXES] = { 0 }, n = k_count(&to);
	for (int64_t k = 0; k < n; k++) {
		a[yoffset] = b[xoffset];
		yoffset = next(&to, i, yoffset);
		xoffset = next(&from, j, xoffset);
	}
	return 0;
}
