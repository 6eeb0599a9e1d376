/* Matrix products.  The sum over k runs in order for every element and does not depend on m and n, so a split of m or
 * n changes no bit of the result. */
#include "kernels.h"

int k_matmul_f32(Ctx *c, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k,
	KMat as, KMat bs, KCut cut, const KEpilogue *e)
{
	(void)cut;
	(void)c;
	for (int64_t t = 0; t < batch; t++)
		for (int64_t i = 0; i < m; i++) {
			const float *at = a + t * as.batch + i * as.row, *bt = b + t * bs.batch;
			float *row = y + (t * m + i) * n;
			for (int64_t j = 0; j < n; j++)
				row[j] = 0;
			for (int64_t p = 0; p < k; p++)
				for (int64_t j = 0; j < n; j++)
					row[j] += at[p * as.col] * bt[p * bs.row + j * bs.col];
		}
	if (e)
		e->run(e->arg, y, 0, batch * m, 0, n);
	return 0;
}
