/* Operators whose indices are data: each index is checked. */
#include "kernels.h"

#include <string.h>

/* The index, counted from the end when negative; -1 after an error. */
static int64_t within(Ctx *c, int64_t k, int64_t n)
{
	if (k >= -n && k < n)
		return k < 0 ? k + n : k;
	rt_error(c, RT_DATA, "index %lld of an axis of length %lld", (long long)k, (long long)n);
	return -1;
}

int k_gather(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t count, int64_t width)
{
	size_t run = (size_t)(inner * width);
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < count; i++) {
			int64_t k = within(c, index[i], n);
			if (k < 0)
				return RT_DATA;
			memcpy((char *)y + (size_t)(o * count + i) * run, (const char *)x + (size_t)(o * n + k) * run, run);
		}
	return 0;
}

int k_gather_elements(Ctx *c, void *y, const void *x, const int64_t *index, KLoops l, int64_t n, int64_t stride, int64_t width)
{
	for (int64_t i = 0; i < k_count(&l); i++) {
		int64_t k = within(c, index[i], n);
		if (k < 0)
			return RT_DATA;
		memcpy((char *)y + i * width, (const char *)x + (k_place(&l, i) + k * stride) * width, (size_t)width);
	}
	return 0;
}

int k_scatter_add_f32(Ctx *c, float *y, const float *x, const int64_t *index, const float *updates, int64_t total, KLoops l, int64_t n, int64_t stride)
{
	int64_t m = k_count(&l);
	if (y != x)
		memcpy(y, x, (size_t)total * sizeof *y);
	for (int64_t i = 0; i < m; i++) {
		int64_t k = within(c, index[i], n);
		if (k < 0)
			return RT_DATA;
		y[k_place(&l, i) + k * stride] += updates[i];
	}
	return 0;
}

int k_gather_grad_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t many)
{
	for (int64_t i = 0; i < outer * n * inner; i++)
		y[i] = 0;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < many; i++) {
			int64_t k = within(c, index[i], n);
			if (k < 0)
				return RT_DATA;
			for (int64_t j = 0; j < inner; j++)
				y[(o * n + k) * inner + j] += dy[(o * many + i) * inner + j];
		}
	return 0;
}
