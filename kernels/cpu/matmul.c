/* Matrix products.  The sum over k runs in order for every element, whatever m and n are, so a split of m or n changes no
 * bit of the result. */
#include "kernels.h"

int k_matmul_f32(Ctx *c, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k,
                 int64_t astride, int64_t bstride)
{
	(void)c;
	for (int64_t t = 0; t < batch; t++) {
		const float *at = a + t * astride, *bt = b + t * bstride;
		float *yt = y + t * m * n;
		for (int64_t i = 0; i < m; i++) {
			float *row = yt + i * n;
			for (int64_t j = 0; j < n; j++)
				row[j] = 0;
			for (int64_t p = 0; p < k; p++) {
				float f = at[i * k + p];
				const float *col = bt + p * n;
				for (int64_t j = 0; j < n; j++)
					row[j] += f * col[j];
			}
		}
	}
	return 0;
}
