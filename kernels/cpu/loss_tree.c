/* Losses that are sums over rows, in chunks of rows (tree.h).  The gradient is always computed by the kernel that also
 * computes the loss, so that the bits are the same when a plan runs loss and gradient on different ranks. */
#include "kernels.h"
#include "tree.h"

enum { LEVELS = 64 };

int k_xent_tree_f32(Ctx *c, float *y, float *logp, float *lse, const float *x, const int64_t *label,
	const float *weight, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind, int64_t chunks)
{
	float room[LEVELS];
	int64_t some = outer / chunks, rows = some * inner;
	int code = 0;
	for (int64_t k = 0; k < chunks && !code; k++) {
		float *to = tree_place(y, room, 1, k, chunks);
		code = k_xent_f32(c, to, logp ? logp + k * rows * n : NULL, lse ? lse + k * rows : NULL,
			x + k * rows * n, label + k * rows, weight, some, n, inner, ignore, kind);
		tree_join(to, room, 1, k);
	}
	return code;
}

int k_xent_both_tree_f32(Ctx *c, float *y, float *lse, float *dx, const float *x, const int64_t *label,
	const float *weight, const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind,
	int64_t chunks)
{
	float room[LEVELS];
	int64_t some = outer / chunks, rows = some * inner;
	int code = 0;
	for (int64_t k = 0; k < chunks && !code; k++) {
		float *to = tree_place(y, room, 1, k, chunks);
		code = k_xent_both_f32(c, to, lse + k * rows, dx + k * rows * n, x + k * rows * n, label + k * rows,
			weight, dy, some, n, inner, ignore, kind);
		tree_join(to, room, 1, k);
	}
	return code;
}

/* The loss and lse that k_xent_both_f32 writes here are not used.  They follow the losses of rows in the scratch. */
int k_xent_grad_tree_f32(Ctx *c, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *lse, const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	float *room = (float *)(void *)c->shared + outer * inner;
	(void)lse;
	return k_xent_both_f32(c, room, room + outer * inner, dx, x, label, weight, dy, outer, n, inner, ignore, kind);
}
