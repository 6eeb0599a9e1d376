/* Matrix products by gemm.c.  Weights that do not change between products are packed once (rt_packed). */
#include "gemm.h"

int k_matmul_f32(Ctx *c, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k,
	KMat as, KMat bs, KCut cut, const KEpilogue *e)
{
	/* one matrix on the right: treat the batch as more rows */
	if (batch > 1 && !bs.batch && as.batch == m * as.row) {
		m *= batch;
		batch = 1;
	}
	Gemm g = {
		.batch = batch, .m = m, .n = n, .k = k, .cut = cut, .e = e,
		.a = { .x = a, .batch = as.batch, .at = as.row, .k = as.col },
		.b = { .x = b, .batch = bs.batch, .at = bs.col, .k = bs.row },
		.y = y, .yrow = n, .ybatch = m * n,
	};
	bool fresh = false;
	float *packed = batch == 1 ? rt_packed(c, b, k, n, bs.row, bs.col, &fresh) : NULL;
	if (packed && !fresh)
		gemm_pack(c, &g, packed);
	g.packed = packed;
	gemm_run(c, &g);
	return 0;
}
