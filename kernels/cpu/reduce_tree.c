/* Sums whose outermost loop is cut into chunks (tree.h). */
#include "kernels.h"
#include "tree.h"

int k_reduce_tree_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, int64_t chunks)
{
	float *room = (float *)(void *)c->shared;
	int64_t n = k_count(&keep);
	int code = 0;
	over.len[0] /= chunks;
	for (int64_t k = 0; k < chunks && !code; k++) {
		float *to = tree_place(y, room, n, k, chunks);
		code = k_reduce_f32(c, to, x + k * over.len[0] * over.stride[0], keep, over, K_SUM);
		tree_join(to, room, n, k);
	}
	return code;
}
