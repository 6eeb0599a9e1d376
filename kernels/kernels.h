/* The kernels that generated programs call: the same prototypes on the CPU and for CUDA.
 *
 * kernels/cpu holds the definition of each, in plain C; kernels/cuda the device code and its typed launchers, which have
 * these same names.  A kernel takes the context, then results, then operands, then sizes; it returns 0 or an exit code
 * after rt_error.  Pointwise operators are not here: their loops are written into the program from the operator table.
 *
 * Scratch is c->shared and c->work, never malloc.  How much a kernel needs for given sizes is stated in kernels/cpu/work.h, from
 * which sbpcc plans it: whoever changes what a kernel takes of it changes that function in the same commit. */
#ifndef KERNELS_H
#define KERNELS_H

#include "rt.h"

/* Up to RT_AXES nested loops: how many times each runs, and how far it moves in an operand (in elements). */
typedef struct KLoops {
	int n;
	int64_t len[RT_AXES], stride[RT_AXES];
} KLoops;

/* How often the innermost loop runs. */
static inline int64_t k_count(const KLoops *l)
{
	int64_t n = 1;
	for (int a = 0; a < l->n; a++)
		n *= l->len[a];
	return n;
}

/* How far the operand has moved at its i-th turn. */
static inline int64_t k_place(const KLoops *l, int64_t i)
{
	int64_t at = 0;
	for (int a = l->n - 1; a >= 0; a--) {
		at += i % l->len[a] * l->stride[a];
		i /= l->len[a];
	}
	return at;
}

/* Windows over a plane: size, step, spacing of their places, padding before, and how large the planes are. */
typedef struct KWindow { int64_t k[2], stride[2], dil[2], lo[2], in[2], out[2]; } KWindow;

typedef enum { K_SUM, K_MEAN, K_MAX, K_MIN, K_PROD } KReduce;
typedef enum { K_LOSS_NONE, K_LOSS_SUM, K_LOSS_MEAN } KLoss;

/* A matrix: how far its rows, its columns and the matrices of a batch lie apart, in elements.  Transposed operands are read
 * where they lie; 0 for the batch uses one matrix for all. */
typedef struct KMat { int64_t row, col, batch; } KMat;

/* What is done to a tile of a finished result y, whose rows are dense and counted over the whole batch: bias, activation and
 * the like, once for each element.  Those that are written for a model have a KTile as arg: the values of the action.  With
 * CUDA one call starts the kernel for all of y. */
typedef struct KEpilogue {
	void (*run)(const void *arg, float *y, int64_t row, int64_t nrow, int64_t col, int64_t ncol);
	const void *arg;
} KEpilogue;
typedef struct KTile { Ctx *c; void *const *t; } KTile;
typedef KEpilogue KTileRun(const KTile *);      /* the epilogue for this processor */

/* matmul: y[b,m,n] = a[b,m,k] b[b,k,n], summed over k in order; y is dense. */
int k_matmul_f32(Ctx *, float *y, const float *a, const float *b, int64_t batch, int64_t m, int64_t n, int64_t k, KMat as, KMat bs,
                 const KEpilogue *);

/* copy: y, dense over the loops, from x at an offset and with strides: transposes, broadcasts, slices, plain copies. */
int k_copy_8(Ctx *, void *y, const void *x, int64_t offset, KLoops);
int k_copy_32(Ctx *, void *y, const void *x, int64_t offset, KLoops);
int k_copy_64(Ctx *, void *y, const void *x, int64_t offset, KLoops);

/* keep: y is x where mine, else zero: one rank holds a value that is to be a sum over ranks. */
int k_keep_32(Ctx *, void *y, const void *x, int64_t n, bool mine);

/* zero: all of y.  move: loops of equal lengths, one through y and one through x, from these offsets. */
int k_zero_32(Ctx *, void *y, int64_t n);
int k_move_32(Ctx *, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from);
int k_move_64(Ctx *, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from);

/* reduce: y, dense over the kept loops, combines x over the other loops, in order. */
int k_reduce_f32(Ctx *, float *y, const float *x, KLoops keep, KLoops over, KReduce);

/* Numbers in [0, 1) by Philox 4x32-10: element i of y is that of index from + place(l, i) of the logical tensor, so that no split
 * changes a bit.  The innermost axis moves by 1, or the tensor has one element. */
int k_random_uniform_f32(Ctx *, float *y, uint64_t seed, uint64_t step, uint64_t key, int64_t from, KLoops l);

/* softmax over the middle of outer x n x inner. */
int k_softmax_f32(Ctx *, float *y, const float *x, int64_t outer, int64_t n, int64_t inner);
int k_logsoftmax_f32(Ctx *, float *y, const float *x, int64_t outer, int64_t n, int64_t inner);

int k_softmax_grad_f32(Ctx *, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner);
int k_logsoftmax_grad_f32(Ctx *, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner);

/* loss: the negative logarithm of the softmax (or, given logarithms already, of nothing) at the label, times the weight of its
 * class where there are weights.  Labels equal to ignore count nothing; y is outer x inner for K_LOSS_NONE, else one number.
 * logp, when wanted, is as x; lse, the logarithm of the sum of exponentials, as label: the gradient reads it. */
int k_xent_f32(Ctx *, float *y, float *logp, float *lse, const float *x, const int64_t *label, const float *weight, int64_t outer, int64_t n,
               int64_t inner, int64_t ignore, KLoss);
int k_xent_grad_f32(Ctx *, float *dx, const float *x, const int64_t *label, const float *weight, const float *lse, const float *dy, int64_t outer,
                    int64_t n, int64_t inner, int64_t ignore, KLoss);
int k_nll_f32(Ctx *, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss);

/* norm: over rows of n; over groups of `each` channels; over the batch.  mean and inv, of each row, group or channel, are made
 * where they are wanted; without centre (and without mean) nothing is subtracted.  b, db may be missing. */
int k_layernorm_f32(Ctx *, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b, int64_t rows, int64_t n,
                    bool centre, float eps);
int k_layernorm_grad_f32(Ctx *, float *dx, const float *dy, const float *x, const float *scale, const float *mean, const float *inv, int64_t rows,
                         int64_t n);
int k_layernorm_grad_w_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean, const float *inv, int64_t rows,
                           int64_t n);
int k_groupnorm_f32(Ctx *, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b, int64_t batch, int64_t groups,
                    int64_t each, int64_t inner, float eps);
int k_groupnorm_grad_f32(Ctx *, float *dx, const float *dy, const float *x, const float *scale, const float *mean, const float *inv, int64_t batch,
                         int64_t groups, int64_t each, int64_t inner);
int k_groupnorm_grad_w_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean, const float *inv, int64_t batch,
                           int64_t groups, int64_t each, int64_t inner);
int k_batchnorm_f32(Ctx *, float *y, float *newmean, float *newvar, float *mean, float *inv, const float *x, const float *scale, const float *b,
                    const float *oldmean, const float *oldvar, int64_t batch, int64_t channels, int64_t inner, float eps, float momentum);
int k_batchnorm_grad_f32(Ctx *, float *dx, const float *dy, const float *x, const float *scale, const float *mean, const float *inv, int64_t batch,
                         int64_t channels, int64_t inner);
int k_batchnorm_grad_w_f32(Ctx *, float *dscale, float *db, const float *dy, const float *x, const float *mean, const float *inv, int64_t batch,
                           int64_t channels, int64_t inner);

/* attention: y of query i is the average of the values of keys i - left to i + right, by the softmax of their scores: scale q k,
 * capped at softcap (0: not), plus a mask or where a mask allows.  lse, [batch, heads, sq] dense, when wanted, is the logarithm of
 * the sum of exponentials, +inf where nothing is allowed; the gradient reads it.  Strides are in elements; those of dq, dk, dv are
 * those of q, k, v, and of dy those of y; the elements of one head at one place are neighbours. */
typedef struct KHeads { int64_t batch, head, row; } KHeads;
typedef enum { K_MASK_NONE, K_MASK_ADD, K_MASK_BOOL } KMask;
typedef struct KAttention {
	int64_t batch, heads, kvheads, sq, sk, d, dv;
	KHeads q, k, v, y, m;
	int64_t mcol, left, right;
	float scale, softcap;
	KMask mask;
} KAttention;
int k_attention_f32(Ctx *, float *y, float *lse, const float *q, const float *k, const float *v, const void *mask, const KAttention *);
int k_attention_grad_f32(Ctx *, float *dq, float *dk, float *dv, const float *q, const float *k, const float *v, const void *mask, const float *y,
                         const float *lse, const float *dy, const KAttention *);

/* rotary: turns the first rot elements of each head, in pairs, by the angle of its place: given, or the place itself (of caches that
 * hold one row per sample and place). */
typedef struct KRotary {
	int64_t batch, heads, seq, width, rot, places;
	KHeads x;
	int interleaved;
} KRotary;
int k_rotary_f32(Ctx *, float *y, const float *x, const float *cosine, const float *sine, const int64_t *place, const KRotary *);

/* index: gather, y is outer x count x inner of x, which is outer x n x inner. */
int k_gather_32(Ctx *, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t count);

/* gather_grad: y, outer x n x inner, is zero but where index points: there the rows of dy, outer x count x inner, are summed. */
int k_gather_grad_f32(Ctx *, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t count);

/* conv: planes of batch x groups x channels; cin and cout are channels of one group; b may be missing. */
int k_conv_f32(Ctx *, float *y, const float *x, const float *w, const float *b, int64_t batch, int64_t groups, int64_t cin, int64_t cout, KWindow);
int k_conv_grad_x_f32(Ctx *, float *x, const float *g, const float *w, int64_t batch, int64_t groups, int64_t cin, int64_t cout, KWindow);
int k_conv_grad_w_f32(Ctx *, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin, int64_t cout, KWindow);

/* pool: the largest of each window, the first where several are equal; its gradient finds it again. */
int k_maxpool_f32(Ctx *, float *y, const float *x, int64_t planes, KWindow);
int k_maxpool_grad_f32(Ctx *, float *dx, const float *g, const float *x, int64_t planes, KWindow);

/* window: the same over any number of axes; hi is the padding behind.  A maximum's index counts through all of x; a sum is divided by
 * the places of its window that are not padding, or that are within the padded input, or by nothing. */
enum { K_SPATIAL = 6 };
typedef struct KWindows { int n; int64_t k[K_SPATIAL], stride[K_SPATIAL], dil[K_SPATIAL], lo[K_SPATIAL], hi[K_SPATIAL], in[K_SPATIAL], out[K_SPATIAL]; } KWindows;
typedef enum { K_POOL_SUM, K_POOL_MEAN, K_POOL_PADDED } KPool;
int k_conv_nd_f32(Ctx *, float *y, const float *x, const float *w, const float *b, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *);
int k_conv_nd_grad_x_f32(Ctx *, float *x, const float *g, const float *w, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *);
int k_conv_nd_grad_w_f32(Ctx *, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *);
int k_maxpool_nd_f32(Ctx *, float *y, int64_t *index, const float *x, int64_t planes, const KWindows *);
int k_maxpool_nd_grad_f32(Ctx *, float *dx, const float *g, const float *x, int64_t planes, const KWindows *);
int k_sumpool_f32(Ctx *, float *y, const float *x, int64_t planes, const KWindows *, KPool);
int k_sumpool_grad_f32(Ctx *, float *dx, const float *g, int64_t planes, const KWindows *, KPool);

/* any: elements of any width, in bytes.  Indices may count from the end; one that is none ends the job. */
typedef enum { K_PAD_CONSTANT, K_PAD_REFLECT, K_PAD_EDGE, K_PAD_WRAP } KPadMode;
typedef struct KPad { int n; KPadMode mode; int64_t in[RT_AXES], out[RT_AXES], lo[RT_AXES]; } KPad;
typedef enum { K_PUT, K_ADD, K_MUL, K_LARGEST, K_SMALLEST } KScatter;  /* all but K_PUT: of float */
/* Tuples of indices, many for each of the batch: each names a place along axes of x, where run elements are. */
typedef struct KNd { int64_t batch, many, xbatch, run; KLoops axes; } KNd;
int k_fill(Ctx *, void *y, int64_t offset, KLoops, const void *value, int64_t width);
int k_move(Ctx *, void *y, int64_t yoffset, const void *x, int64_t xoffset, KLoops to, KLoops from, int64_t width);
int k_pad(Ctx *, void *y, const void *x, const void *value, const KPad *, int64_t width);
int k_pad_grad_f32(Ctx *, float *dx, const float *dy, const KPad *);
int k_trilu(Ctx *, void *y, const void *x, int64_t batch, int64_t rows, int64_t cols, int64_t k, bool upper, int64_t width);
int k_reverse_sequence(Ctx *, void *y, const void *x, const int64_t *len, int64_t batch, int64_t time, int64_t bstride, int64_t tstride, int64_t width);
int k_gather(Ctx *, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner, int64_t many, int64_t width);
int k_gather_elements(Ctx *, void *y, const void *x, const int64_t *index, KLoops, int64_t n, int64_t stride, int64_t width);
int k_scatter_elements(Ctx *, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, KLoops, int64_t n, int64_t stride, KScatter,
                       int64_t width);
int k_gather_nd(Ctx *, void *y, const void *x, const int64_t *index, const KNd *, int64_t width);
int k_gather_nd_grad_f32(Ctx *, float *dx, const float *dy, const int64_t *index, int64_t total, const KNd *);
int k_scatter_nd(Ctx *, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, const KNd *, KScatter, int64_t width);
int k_one_hot(Ctx *, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth, int64_t inner, int64_t width);
int k_compress(Ctx *, void *y, const void *x, const uint8_t *keep, int64_t nkeep, int64_t outer, int64_t n, int64_t inner, int64_t width);
int k_cumsum_f32(Ctx *, float *y, const float *x, int64_t outer, int64_t n, int64_t inner, bool exclusive, bool reverse);
int k_cumsum_i64(Ctx *, int64_t *y, const int64_t *x, int64_t outer, int64_t n, int64_t inner, bool exclusive, bool reverse);
int k_topk_f32(Ctx *, float *y, int64_t *index, const float *x, int64_t outer, int64_t n, int64_t inner, int64_t k, bool largest);
int k_argmax_f32(Ctx *, int64_t *y, const float *x, int64_t outer, int64_t n, int64_t inner, bool largest, bool last);
int k_reduce_f64(Ctx *, double *y, const double *x, KLoops keep, KLoops over, KReduce);
int k_reduce_i64(Ctx *, int64_t *y, const int64_t *x, KLoops keep, KLoops over, KReduce);

/* elements: one index per element of index, whose axes are those of x but for the indexed one.  y is as index; or as x, with
 * updates added at the indices.  The loops run over index and move in x, by 0 along the indexed axis, which has length n
 * and this stride in x. */
int k_gather_elements_32(Ctx *, void *y, const void *x, const int64_t *index, KLoops, int64_t n, int64_t stride);
int k_scatter_add_f32(Ctx *, float *y, const float *x, const int64_t *index, const float *updates, int64_t total, KLoops, int64_t n, int64_t stride);

/* round: y to the nearest number that bfloat16 or float16 has. */
int k_round_bf16(Ctx *, float *y, int64_t n);
int k_round_f16(Ctx *, float *y, int64_t n);

#endif
