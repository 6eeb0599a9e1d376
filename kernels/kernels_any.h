/* Kernels on elements of any type (KType) or of any width in bytes; kernels.h includes this. */
#ifndef KERNELS_ANY_H
#define KERNELS_ANY_H

#include "rt.h"
#include "types.h"

/* recurrent: the steps of an LSTM, GRU or RNN.  xw [steps, batch, gates * hidden] is the product with W plus biases;
 * r is [gates * hidden, hidden]; the order of gates is i o f c, or z r h.  Missing initial states are zeros.  A
 * sequence ends after lens steps: its state then stays, and y is zero.  Values that the gradient reads are written if
 * their pointers are not NULL: the state before each step, the gates, the cell states, and the factor of the reset gate
 * of a GRU.  side is the gradient of the products with R. */
int k_lstm(Ctx *, void *y, void *yh, void *before, void *gates, void *yc, void *cells, const void *xw, const void *r,
	const void *h0, const int32_t *lens, const void *c0, const KCells *, KType);
int k_lstm_grad(Ctx *, void *dxw, void *dh0, void *dc0, const void *dy, const void *dyh, const void *gates,
	const void *r, const void *dyc, const void *cells, const void *c0, const int32_t *lens, const KCells *, KType);
int k_gru(Ctx *, void *y, void *yh, void *before, void *gates, void *inner, const void *xw, const void *r,
	const void *h0, const int32_t *lens, const void *rb, const KCells *, KType);
int k_gru_grad(Ctx *, void *dxw, void *dh0, void *side, const void *dy, const void *dyh, const void *gates,
	const void *r, const void *before, const void *inner, const int32_t *lens, const KCells *, KType);
int k_rnn(Ctx *, void *y, void *yh, void *before, const void *xw, const void *r, const void *h0, const int32_t *lens,
	const KCells *, KType);
int k_rnn_grad(Ctx *, void *dxw, void *dh0, const void *dy, const void *dyh, const void *y, const void *r,
	const int32_t *lens, const KCells *, KType);

/* window: as conv and pool (kernels.h), over any number of axes; hi is the padding behind.  The index of a maximum
 * counts through all of x (with `columns`, through each plane in column-major order).  A sum is divided by the number
 * of elements of its window that are not padding, or that are inside the padded input, or not at all. */
int k_conv_nd(Ctx *, void *y, const void *x, const void *w, const void *b, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *, KType);
int k_conv_nd_grad_x(Ctx *, void *x, const void *g, const void *w, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *, KType);
int k_conv_nd_grad_w(Ctx *, void *w, const void *x, const void *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, const KWindows *, KType);
int k_maxpool_nd(Ctx *, void *y, int64_t *index, const void *x, int64_t planes, const KWindows *, bool columns, KType);
int k_maxpool_nd_grad(Ctx *, void *dx, const void *g, const void *x, int64_t planes, const KWindows *, KType);
int k_sumpool(Ctx *, void *y, const void *x, int64_t planes, const KWindows *, KPool, KType);
int k_sumpool_grad(Ctx *, void *dx, const void *g, int64_t planes, const KWindows *, KPool, KType);
int k_maxpool_nd_grad_shard(Ctx *, void *dx, const void *g, const void *x, int64_t planes, const KWindows *,
	KStretch, KType);
int k_sumpool_grad_shard(Ctx *, void *dx, const void *g, int64_t planes, const KWindows *, KStretch, KPool, KType);

/* any: elements of any width, in bytes.  Negative indices count from the end; one out of range ends the job. */
int k_fill(Ctx *, void *y, int64_t offset, KLoops, const void *value, int64_t width);
int k_pad(Ctx *, void *y, const void *x, const void *value, const KPad *, int64_t width);
int k_trilu(Ctx *, void *y, const void *x, int64_t batch, int64_t rows, int64_t cols, int64_t k, bool upper,
	int64_t width);
int k_reverse_sequence(Ctx *, void *y, const void *x, const int64_t *len, int64_t batch, int64_t time, int64_t bstride,
	int64_t tstride, int64_t width);
int k_gather_nd(Ctx *, void *y, const void *x, const int64_t *index, const KNd *, int64_t width);
int k_one_hot(Ctx *, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth, int64_t inner,
	int64_t width);
int k_one_hot_shard(Ctx *, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth,
	int64_t inner, int64_t width, int64_t first, int64_t all);
int k_compress(Ctx *, void *y, const void *x, const uint8_t *keep, int64_t nkeep, int64_t outer, int64_t n,
	int64_t inner, int64_t width);

/* typed: arithmetic on elements of any type.  Integers wrap around; a sum of bool is true if any element is.  scatter
 * writes updates into a copy of x (of zeros, if x is missing), gather_grad adds rows of dy at their indices. */
int k_reduce(Ctx *, void *y, const void *x, KLoops keep, KLoops over, KReduce, KType);
int k_matmul(Ctx *, void *y, const void *a, const void *b, int64_t batch, int64_t m, int64_t n, int64_t k, KMat as,
	KMat bs, KType);
int k_scatter_elements(Ctx *, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, KLoops,
	int64_t n, int64_t stride, KScatter, KType);
int k_scatter_nd(Ctx *, void *y, const void *x, const int64_t *index, const void *updates, int64_t total, const KNd *,
	KScatter, KType);
int k_gather_grad(Ctx *, void *y, const void *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t many, KType);
int k_pad_grad(Ctx *, void *dx, const void *dy, const KPad *, KType);
int k_cumsum(Ctx *, void *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool exclusive,
	bool reverse, KType);
int k_topk(Ctx *, void *y, int64_t *index, const void *x, int64_t outer, int64_t n, int64_t inner, int64_t k,
	bool largest, KType);
int k_argmax(Ctx *, int64_t *y, const void *x, int64_t outer, int64_t n, int64_t inner, bool largest, bool last, KType);

/* det: of matrices of at most K_DET rows; cofactor: their signed minors, the derivative of the determinant. */
int k_det(Ctx *, void *y, const void *x, int64_t count, int64_t m, KType);
int k_cofactor(Ctx *, void *y, const void *x, int64_t count, int64_t m, KType);

/* roi: each of ph x pw bins of each region is the mean or the maximum of weighted pixels.  With align, these are the
 * four neighbours of equally spaced points (`samples` per axis; 0: as many as the bin has pixels), shifted by half a
 * pixel or not; without align, the pixels that the bin touches.  A region is x1 y1 x2 y2; if image is NULL, a region
 * has five numbers, of which the first is its image. */
int k_roi(Ctx *, void *y, const void *x, const void *region, const int64_t *image, const KRoi *, KType);
int k_roi_grad(Ctx *, void *dx, const void *dy, const void *x, const void *region, const int64_t *image,
	const KRoi *, KType);

/* elements: one index per element of `index`, which has the axes of x except the indexed one.  y has the shape of
 * `index` (scatter_elements: of x).  The loops run over `index`, with strides in x; the stride is 0 along the indexed
 * axis, whose length n and stride in x are passed separately. */
int k_gather_elements(Ctx *, void *y, const void *x, const int64_t *index, KLoops, int64_t n, int64_t stride,
	int64_t width);

#endif
