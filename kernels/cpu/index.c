/* Operators whose indices are data: all indices are checked first. */
#include "indices.h"

#include <string.h>

int k_gather(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count, int64_t width)
{
	size_t run = (size_t)(inner * width);
	int code = check_indices(c, index, count, n);
	if (code)
		return code;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < count; i++) {
			int64_t k = index_of(index[i], n);
			memcpy((char *)y + (size_t)(o * count + i) * run,
				(const char *)x + (size_t)(o * n + k) * run, run);
		}
	return 0;
}

int k_gather_shard(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count, int64_t width, int64_t first, int64_t all)
{
	size_t run = (size_t)(inner * width);
	int code = check_indices(c, index, count, all);
	for (int64_t i = 0; !code && i < outer * count; i++) {
		int64_t k = shard_index(index[i % count], all, first, n);
		if (k < 0)
			memset((char *)y + (size_t)i * run, 0, run);
		else
			memcpy((char *)y + (size_t)i * run, (const char *)x + (size_t)(i / count * n + k) * run, run);
	}
	return code;
}

int k_gather_elements(Ctx *c, void *y, const void *x, const int64_t *index, KLoops l, int64_t n, int64_t stride,
	int64_t width)
{
	int code = check_indices(c, index, k_count(&l), n);
	for (int64_t i = 0; !code && i < k_count(&l); i++) {
		int64_t k = index_of(index[i], n);
		memcpy((char *)y + i * width, (const char *)x + (k_offset(&l, i) + k * stride) * width, (size_t)width);
	}
	return code;
}

int k_gather_grad_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t many)
{
	int code = check_indices(c, index, many, n);
	if (code)
		return code;
	for (int64_t i = 0; i < outer * n * inner; i++)
		y[i] = 0;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < many; i++) {
			int64_t k = index_of(index[i], n);
			for (int64_t j = 0; j < inner; j++)
				y[(o * n + k) * inner + j] += dy[(o * many + i) * inner + j];
		}
	return 0;
}

int k_gather_grad_shard_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t many, int64_t first, int64_t all)
{
	int code = check_indices(c, index, many, all);
	for (int64_t i = 0; i < outer * n * inner; i++)
		y[i] = 0;
	for (int64_t i = 0; !code && i < outer * many; i++) {
		int64_t k = shard_index(index[i % many], all, first, n);
		for (int64_t j = 0; k >= 0 && j < inner; j++)
			y[(i / many * n + k) * inner + j] += dy[i * inner + j];
	}
	return code;
}
