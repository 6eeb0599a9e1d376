/* The kernels that generated programs call, with the same prototypes on the CPU and for CUDA.
 *
 * kernels/cpu holds the definition of each, in plain C; kernels/cuda the device code and its typed launchers, which
 * have the same names.  A kernel takes the context, then results, then operands, then sizes; it returns 0 or an exit
 * status after rt_error.  Pointwise operators are not here: sbpcc writes their loops into the program from the operator
 * table.
 *
 * Kernels on float are below; those on elements of any type are in kernels_any.h, sums in chunks in kernels_tree.h.
 *
 * A kernel takes its scratch memory from c->shared and c->work and never calls malloc.  kernels/cpu/work.h states how
 * much a kernel needs for given sizes, and sbpcc plans memory by it: change both in one commit. */
#ifndef KERNELS_H
#define KERNELS_H

#include "rt.h"
#include "types.h"

_Static_assert((int)K_AXES == (int)RT_AXES, "kernels take tensors of as many axes as the runtime");

/* The number of iterations of the innermost loop. */
static inline int64_t k_count(const KLoops *l)
{
	int64_t n = 1;
	for (int a = 0; a < l->n; a++)
		n *= l->len[a];
	return n;
}

/* The offset of the operand at iteration i. */
static inline int64_t k_offset(const KLoops *l, int64_t i)
{
	int64_t at = 0;
	for (int a = l->n - 1; a >= 0; a--) {
		at += i % l->len[a] * l->stride[a];
		i /= l->len[a];
	}
	return at;
}

/* An epilogue, such as bias and activation: applied to a tile of a finished result y, once for each element.  Rows of y
 * are dense and counted over the whole batch.  Epilogues that are generated for a model have a KTile as arg, which
 * points to the values of the action.  With CUDA one call launches the kernel for all of y. */
typedef struct KEpilogue {
	void (*run)(const void *arg, float *y, int64_t row, int64_t nrow, int64_t col, int64_t ncol);
	const void *arg;
} KEpilogue;
typedef struct KTile { Ctx *c; void *const *t; } KTile;
typedef int KLoopRun(Ctx *, void *const *t);     /* a loop: t has its results, then its operands */
typedef KEpilogue KTileRun(const KTile *);      /* the epilogue for this processor */

/* The blocking of a product, by its shape: `cols` columns of b are packed once and reused for `pass` rows of a, of
 * which `rows` are packed at a time.  The result does not depend on it. */
typedef struct KCut { int64_t rows, pass, cols; } KCut;

/* matmul: y[b,m,n] = a[b,m,k] b[b,k,n], summed over k in order; y is dense. */
int k_matmul_f32(Ctx *, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k,
	KMat as, KMat bs, KCut, const KEpilogue *);

/* copy: y, dense over the loops, from x at an offset and with strides: transposes, broadcasts, slices, plain copies. An
 * element has width bytes: 1, 4 or 8. */
int k_copy(Ctx *, void *y, const void *x, int64_t offset, KLoops, int64_t width);

/* keep: y is x if mine, else zero: a term of a value that only one rank contributes to. */
int k_keep(Ctx *, void *y, const void *x, int64_t bytes, bool mine);

/* zero: all of y.  move: loops of equal lengths, one through y and one through x, from these offsets. */
int k_zero(Ctx *, void *y, int64_t bytes);
int k_move(Ctx *, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from, int64_t width);

/* reduce: y, dense over the kept loops, combines x over the other loops, in order. */
int k_reduce_f32(Ctx *, float *y, const float *x, KLoops keep, KLoops over, KReduce);
/* The mean of `all` elements, of which the loops cover only some: a term of a mean that is split over ranks. */
int k_mean_shard_f32(Ctx *, float *y, const float *x, KLoops keep, KLoops over, int64_t all);

/* sum_squares: y[s] is the sum of the next terms[s] terms, added in order.  A term is the sum of the squares of n
 * numbers at x; if n is K_PLAIN, it is the number at x itself, which may be an earlier y.  The numbers of a term are
 * cut into equal parts, whose sums are combined as a balanced tree (cpu/tree.h); parts NULL: one each. */
enum { K_PLAIN = -1 };
typedef struct KSums {
	int64_t count;
	float *const *y;
	const int64_t *terms;
	const float *const *x;
	const int64_t *n, *parts;
} KSums;
int k_sum_squares_f32(Ctx *, const KSums *);

/* Numbers in [0, 1) by Philox 4x32-10: element i of y is number from + k_offset(l, i) of the logical tensor, so that
 * the result does not depend on how the tensor is split.  The innermost stride is 1, or the tensor has one element. */
int k_random_uniform_f32(Ctx *, float *y, uint64_t seed, uint64_t step, uint64_t key, int64_t from, KLoops l);

/* softmax over the middle of outer x n x inner. */
int k_softmax_f32(Ctx *, float *y, const float *x, int64_t outer, int64_t n, int64_t inner);
int k_logsoftmax_f32(Ctx *, float *y, const float *x, int64_t outer, int64_t n, int64_t inner);

int k_softmax_grad_f32(Ctx *, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner);
int k_logsoftmax_grad_f32(Ctx *, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner);

/* loss: the negative log-softmax at the label (nll: x already holds logarithms), times the weight of its class if there
 * are weights.  Labels equal to ignore do not count.  y is outer x inner for K_LOSS_NONE, else one number.  logp may be
 * NULL; it has the shape of x.  lse, which the gradient reads, is the logarithm of the sum of exponentials and has the
 * shape of label.  In k_xent_both_f32, dx may be x. */
int k_xent_f32(Ctx *, float *y, float *logp, float *lse, const float *x, const int64_t *label, const float *weight,
	int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss);
int k_xent_grad_f32(Ctx *, float *dx, const float *x, const int64_t *label, const float *weight, const float *lse,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss);
int k_xent_both_f32(Ctx *, float *y, float *lse, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss);
int k_nll_f32(Ctx *, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer, int64_t n,
	int64_t inner, int64_t ignore, KLoss);
/* The _shard variants: x holds classes first .. first + n - 1 of all; labels of other classes select nothing; weight
 * covers all classes. */
int k_xent_grad_shard_f32(Ctx *, float *dx, const float *x, const int64_t *label, const float *weight, const float *lse,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss, int64_t first, int64_t all);
int k_nll_shard_f32(Ctx *, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer,
	int64_t n, int64_t inner, int64_t ignore, KLoss, int64_t first, int64_t all);
/* The sum of exp(x - top), where each row has its own top. */
int k_sum_exp_f32(Ctx *, float *y, const float *x, const float *top, int64_t outer, int64_t n, int64_t inner);
/* The number of classes first .. first + n - 1 that rank before the label: with a higher score, or the same score and a
 * lower number. */
int k_ahead_f32(Ctx *, float *y, const float *x, const float *own, const int64_t *label, int64_t outer, int64_t n,
	int64_t inner, int64_t first);

/* norm: over rows of n; over groups of `each` channels; over the batch.  mean and inv, one per row, group or channel,
 * are written if not NULL.  Without `centre` (and without mean) the mean is not subtracted.  b and db may be NULL. */
int k_layernorm_f32(Ctx *, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t rows, int64_t n, bool centre, float eps);
int k_layernorm_grad_f32(Ctx *, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t rows, int64_t n);
int k_layernorm_grad_w_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t rows, int64_t n);
int k_groupnorm_f32(Ctx *, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t batch, int64_t groups, int64_t each, int64_t inner, float eps);
int k_groupnorm_grad_f32(Ctx *, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner);
int k_groupnorm_grad_w_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner);
int k_batchnorm_f32(Ctx *, float *y, float *newmean, float *newvar, float *mean, float *inv, const float *x,
	const float *scale, const float *b, const float *oldmean, const float *oldvar, int64_t batch, int64_t channels,
	int64_t inner, float eps, float momentum);
int k_batchnorm_grad_f32(Ctx *, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner);
int k_batchnorm_grad_w_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner);

/* attention: y of query i is the average of the values of keys i - left to i + right, weighted by the softmax of their
 * scores.  A score is scale q k, capped at softcap (0: no cap), plus an additive mask; a boolean mask excludes keys
 * where it is false.  lse, [batch, heads, sq] dense, may be NULL: the logarithm of the sum of exponentials, +inf where
 * all keys are masked; the gradient reads it.  Strides are in elements.  dq, dk, dv have the strides of q, k, v, and dy
 * those of y.  The elements of one head at one position are consecutive. */
int k_attention_f32(Ctx *, float *y, float *lse, const float *q, const float *k, const float *v, const void *mask,
	const KAttention *);
int k_attention_grad_f32(Ctx *, float *dq, float *dk, float *dv, const float *q, const float *k, const float *v,
	const void *mask, const float *y, const float *lse, const float *dy, const KAttention *);

/* rotary: rotates the first rot elements of each head, in pairs, by the angle of its position.  `position` holds the
 * positions; if it is NULL, the caches of cosines and sines have one row per sample and position. */
int k_rotary_f32(Ctx *, float *y, const float *x, const float *cosine, const float *sine, const int64_t *position,
	const KRotary *);

/* index: gather, y is outer x count x inner of x, which is outer x n x inner. */
int k_gather(Ctx *, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count, int64_t width);

/* gather_grad: y, outer x n x inner, is the sum of the rows of dy, outer x count x inner, at their indices, and zero
 * elsewhere. */
int k_gather_grad_f32(Ctx *, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count);

/* The _shard variants: x holds n rows of a table of `all` rows, from row `first` on.  Other rows give zeros, and their
 * gradients are skipped. */
int k_gather_shard(Ctx *, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count, int64_t width, int64_t first, int64_t all);
int k_gather_grad_shard_f32(Ctx *, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t count, int64_t first, int64_t all);

/* conv: planes of batch x groups x channels; cin and cout are the channels of one group; b may be NULL. */
int k_conv_f32(Ctx *, float *y, const float *x, const float *w, const float *b, int64_t batch, int64_t groups,
	int64_t cin, int64_t cout, KWindow);
int k_conv_grad_x_f32(Ctx *, float *x, const float *g, const float *w, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow);
int k_conv_grad_w_f32(Ctx *, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow);

/* pool: the largest element of each window, the first where several are equal; the gradient finds it again. */
int k_maxpool_f32(Ctx *, float *y, const float *x, int64_t planes, KWindow);
int k_maxpool_grad_f32(Ctx *, float *dx, const float *g, const float *x, int64_t planes, KWindow);
/* The same for a rank that holds only a range of the input of its windows: dx is size elements from `from` on along
 * each axis, and may extend beyond all windows. */
int k_maxpool_grad_shard_f32(Ctx *, float *dx, const float *g, const float *x, int64_t planes, KWindow, KStretch);

/* round: rounds y to the nearest bfloat16 or float16 number. */
int k_round_bf16(Ctx *, float *y, int64_t n);
int k_round_f16(Ctx *, float *y, int64_t n);

#include "kernels_any.h"
#include "kernels_tree.h"

#endif
