/* Operators whose indices are data: each index is checked. */
#include "kernels.h"

#include <string.h>

int k_onehot_f32(Ctx *c, float *y, const int64_t *x, int64_t outer, int64_t depth, int64_t inner, float off, float on)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t k = x[o * inner + i];
			if (k < 0)
				k += depth;
			for (int64_t j = 0; j < depth; j++)
				y[(o * depth + j) * inner + i] = j == k ? on : off;
		}
	return 0;
}

int k_gather_32(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t count)
{
	size_t run = (size_t)inner * 4;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < count; i++) {
			int64_t k = index[i] < 0 ? index[i] + n : index[i];
			if (k < 0 || k >= n)
				return rt_error(c, RT_DATA, "index %lld of an axis of length %lld", (long long)index[i], (long long)n);
			memcpy((char *)y + (size_t)(o * count + i) * run, (const char *)x + (size_t)(o * n + k) * run, run);
		}
	return 0;
}
