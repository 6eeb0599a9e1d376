/* Sums in chunks (--deterministic=any-ranks; CPU only).  They compute what the kernels of the same names without "tree"
 * do, but the summed axis is cut into equal chunks along the outermost axis.  The order of sums in a chunk depends on
 * the chunk alone, and chunks are combined as a balanced tree.  chunks is a power of two and divides that axis.  Losses
 * are K_LOSS_SUM, or have one chunk. */
#ifndef KERNELS_TREE_H
#define KERNELS_TREE_H

#include "kernels.h"

int k_matmul_tree_f32(Ctx *, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k,
	KMat as, KMat bs, KCut, const KEpilogue *, int64_t chunks);
int k_reduce_tree_f32(Ctx *, float *y, const float *x, KLoops keep, KLoops over, int64_t chunks);
int k_xent_tree_f32(Ctx *, float *y, float *logp, float *lse, const float *x, const int64_t *label,
	const float *weight, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss, int64_t chunks);
int k_xent_both_tree_f32(Ctx *, float *y, float *lse, float *dx, const float *x, const int64_t *label,
	const float *weight, const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss,
	int64_t chunks);
int k_xent_grad_tree_f32(Ctx *, float *dx, const float *x, const int64_t *label, const float *weight, const float *lse,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss);
int k_layernorm_grad_w_tree_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t rows, int64_t n, int64_t chunks);
int k_groupnorm_grad_w_tree_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner, int64_t chunks);
int k_batchnorm_grad_w_tree_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner, int64_t chunks);
int k_conv_grad_w_tree_f32(Ctx *, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow, int64_t chunks);
int k_gather_grad_tree_f32(Ctx *, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t count, int64_t first, int64_t all, int64_t chunks);

#endif
