/* Matrix products whose k is summed in chunks (gemm_tree.h). */
#include "gemm.h"

int k_matmul_tree_f32(Ctx *c, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k,
	KMat as, KMat bs, KCut cut, const KEpilogue *e, int64_t chunks)
{
	/* one matrix on the right: treat the batch as more rows */
	if (batch > 1 && !bs.batch && as.batch == m * as.row) {
		m *= batch;
		batch = 1;
	}
	gemm_run(c, &(Gemm){
		.batch = batch, .m = m, .n = n, .k = k, .cut = cut, .e = e, .chunks = chunks,
		.a = { .x = a, .batch = as.batch, .at = as.row, .k = as.col },
		.b = { .x = b, .batch = bs.batch, .at = bs.col, .k = bs.row },
		.y = y, .yrow = n, .ybatch = m * n,
	});
	return 0;
}
