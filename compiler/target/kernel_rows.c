/* The facts about every kernel: which nodes it can do, which operands it reads at run time, and its properties on both
 * targets.
 *
 * A row has a column for each target.  CUDA kernels have fewer facts: they do not sum in chunks, and the bits of a
 * shard may differ from those of the whole value (--deterministic=any-ranks).  Of several rows with one name the first
 * that can do the node is used.  The emitter (emit/) prints the calls. */
#include "target/target.h"

#include "ops/ops.h"

#include "cpu/lay.h"
#include "cpu/work.h"

#include <string.h>

/* ---- matrix products ---- */

static bool can_matmul(const Node *n)
{
	return kernel_ctype(n->in[0]->type->elem) && n->in[0]->type->ndim >= 1 && n->in[1]->type->ndim >= 1;
}

static bool can_float(const Node *n)
{
	return kernel_float(n->in[0]) && can_matmul(n);
}

/* ---- softmax, losses, norms ---- */

static bool can_loss(const Node *n)
{
	return kernel_float(n->in[0]) && kernel_int64(n->in[1]);
}

static const Value *operand(const Node *n, int i)
{
	return i < n->nin ? n->in[i] : NULL;
}

static bool same_ignored(const Node *a, const Node *b)
{
	bool has = attr_has(a, "ignore_index");
	return has == attr_has(b, "ignore_index") &&
		(!has || attr_int(a, "ignore_index") == attr_int(b, "ignore_index"));
}

/* A loss and its gradient in one kernel: the incoming gradient does not depend on the loss, so it is known before. */
static bool can_xent_both(const Node *loss, const Node *grad)
{
	for (int i = 0; i < 3; i++)
		if (operand(loss, i) != operand(grad, i))
			return false;
	if (!can_loss(loss) || !kernel_float(grad->in[4]))
		return false;
	if (loss->nout < 3 || !loss->out[0] || loss->out[1] || !loss->out[2])
		return false;
	if (grad->in[3] != loss->out[2] || grad->in[4] == loss->out[0])
		return false;
	return !strcmp(attr_str(loss, "reduction"), attr_str(grad, "reduction")) && same_ignored(loss, grad);
}

static bool can_ahead(const Node *n)
{
	return kernel_float(n->in[0]) && kernel_float(n->in[1]) && kernel_int64(n->in[2]) && kernel_float(n->out[0]);
}

/* Whether a scale or bias has all elements of the normalised axes, so that nothing is broadcast. */
static bool fills_axes(const Value *v, const Type *x, int axis)
{
	int64_t n = 1;
	for (int i = axis; i < x->ndim; i++)
		n *= x->dim[i];
	return !v || type_elements(v->type) == n;
}

static bool can_layernorm(const Node *n)
{
	const Type *x = n->in[0]->type;
	int axis = kernel_axis(n, x->ndim);
	return kernel_all_float(n) && fills_axes(n->in[1], x, axis) && (n->nin < 3 || fills_axes(n->in[2], x, axis));
}

static bool can_layernorm_grad(const Node *n)
{
	const Type *x = n->in[1]->type;
	return kernel_all_float(n) && fills_axes(n->in[2], x, kernel_axis(n, x->ndim));
}

static bool can_groupnorm(const Node *n)
{
	return kernel_all_float(n) && n->in[1]->type->dim[0] == n->in[0]->type->dim[1];
}

/* With statistics of the whole batch; with stored ones the node is pointwise. */
static bool can_batchnorm(const Node *n)
{
	return kernel_all_float(n) && n->row->since >= 14 && attr_int(n, "training_mode") &&
		!annot_find(n->annot, "local_stats");
}

/* ---- attention ---- */

/* A mask covers all keys, or is broadcast over them. */
static bool can_mask(const Type *m, const Type *k)
{
	if ((m->elem != DT_FLOAT && m->elem != DT_BOOL) || m->ndim < 1 || m->ndim > 4)
		return false;
	return m->dim[m->ndim - 1] == 1 || m->dim[m->ndim - 1] == k->dim[k->ndim - 2];
}

static bool can_attention_grad(const Node *n)
{
	const Type *q = n->in[0]->type, *k = n->in[1]->type;
	for (int i = 0; i < 3; i++)
		if (n->in[i]->type->elem != DT_FLOAT)
			return false;
	if (n->nin > 3 && n->in[3] && !can_mask(n->in[3]->type, k))
		return false;
	return !attr_has(n, "softmax_precision") && q->ndim == k->ndim;
}

/* No cache, no lengths, no other result. */
static bool can_attention(const Node *n)
{
	for (int i = 4; i < n->nin; i++)
		if (n->in[i])
			return false;
	for (int i = 1; i < n->nout && i < 4; i++)
		if (n->out[i])
			return false;
	return can_attention_grad(n);
}

static bool can_rotary(const Node *n)
{
	for (int i = 0; i < 3; i++)
		if (!kernel_float(n->in[i]))
			return false;
	return n->in[1]->type->ndim == 2 || n->in[1]->type->dim[0] == n->in[0]->type->dim[0];
}

/* ---- convolutions, pooling, regions ---- */

static bool can_plane(const Node *n)
{
	const Type *t = n->in[0]->type;
	return kernel_float(n->in[0]) && (t->ndim == 3 || t->ndim == 4);
}

static bool can_nd(const Node *n)
{
	const Type *t = n->in[0]->type;
	return kernel_floating(n->in[0]) && t->ndim > 2 && t->ndim <= 2 + 6;
}

/* A convolution computed as one product for any number of output channels: neither by Winograd's method nor plane by
 * plane (lay.h). */
static bool can_product(const Node *n)
{
	const Type *w = n->in[1]->type;
	if (!can_plane(n) || attr_int(n, "group") != 1)
		return false;
	return w->ndim == 3 || w->dim[2] != 3 || w->dim[3] != 3 || w->dim[1] < WINOGRAD_FEW;
}

static bool can_maxpool(const Node *n)
{
	return can_plane(n) && (n->nout < 2 || !n->out[1]);
}

static bool can_maxpool_nd(const Node *n)
{
	const Type *t = n->in[0]->type;
	return kernel_ctype(t->elem) && t->ndim > 2 && t->ndim <= 2 + 6;
}

/* Regions are of the type of the image. */
static bool can_roi(const Node *n)
{
	bool grad = strstr(n->row->kernel, "_grad") != NULL;
	if (!kernel_floating(n->in[0]))
		return false;
	if (kernel_stored(n->in[1 + grad]->type->elem) != kernel_stored(n->in[0]->type->elem))
		return false;
	return n->nin < 3 + grad || kernel_int64(n->in[2 + grad]);
}

/* ---- copies ---- */

static bool can_copy(const Node *n)
{
	return kernel_ctype(n->in[0]->type->elem) != NULL;
}

static bool can_tile(const Node *n)
{
	if (!kernel_any(n) || !kernel_consts(n, 1))
		return false;
	Shape x = { .ndim = n->in[0]->type->ndim };
	memcpy(x.d, n->in[0]->type->dim, (size_t)x.ndim * sizeof x.d[0]);
	return loops_tile(n, &x).n <= 8;
}

static bool can_slice(const Node *n)
{
	return kernel_any(n) && kernel_consts(n, 1);
}

static bool can_slice_grad(const Node *n)
{
	return kernel_any(n) && kernel_consts(n, 2);
}

static bool can_pad(const Node *n)
{
	return kernel_any(n) && operand_const(n, 1) && (n->nin < 4 || !n->in[3] || operand_const(n, 3));
}

static bool can_pad_grad(const Node *n)
{
	return kernel_any(n) && kernel_consts(n, 2);
}

static bool can_trilu(const Node *n)
{
	return kernel_any(n) && kernel_consts(n, 1);
}

static bool can_zeros(const Node *n)
{
	return kernel_ctype(n->out[0]->type->elem) != NULL;
}

static bool can_random(const Node *n)
{
	return n->out[0]->type->elem == DT_FLOAT;
}

/* ---- indices ---- */

/* Gradients of Gather and GatherND: their operands are dy, x for its shape, and the index. */
static bool can_gather_grad(const Node *n)
{
	return kernel_any(n) && kernel_int64(n->in[2]) && n->in[1]->type->ndim <= 8;
}

static bool can_gather_grad_float(const Node *n)
{
	return kernel_float(n->in[0]) && can_gather_grad(n);
}

static bool can_one_hot(const Node *n)
{
	return kernel_int64(n->in[0]) && kernel_ctype(n->in[2]->type->elem) && type_elements(n->out[0]->type) > 0;
}

/* ---- reductions ---- */

static bool const_axes(const Node *n)
{
	return n->nin < 2 || !n->in[1] || operand_const(n, 1);
}

static bool can_reduce(const Node *n)
{
	return kernel_float(n->in[0]) && const_axes(n);
}

static bool can_reduce_other(const Node *n)
{
	return kernel_any(n) && const_axes(n);
}

static bool can_cumsum(const Node *n)
{
	return kernel_any(n) && operand_const(n, 1);
}

static bool can_topk(const Node *n)
{
	return kernel_ctype(n->in[0]->type->elem) && operand_const(n, 1);
}

/* ---- recurrent cells, determinants ---- */

/* Their gradient composites exist only for nodes that the forward kernel can do. */
static bool can_cells_grad(const Node *n)
{
	return kernel_floating(n->in[0]);
}

static bool can_det(const Node *n)
{
	const Type *x = n->in[0]->type;
	return kernel_floating(n->in[0]) && x->dim[x->ndim - 1] <= K_DET;
}

/* clang-format off */
static const Kernel rows[] = {
	/* matrix products */
	{ .name = "matmul", .file = "matmul", .reads = 3, .can = can_float,
	  .c = KERNEL_HERE | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "matmul", .file = "typed", .reads = 3, .can = can_matmul,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "matmul_over", .file = "matmul", .reads = 3, .can = can_float,
	  .c = KERNEL_HERE | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "matmul_over", .file = "typed", .reads = 3, .can = can_matmul,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	/* softmax, losses, norms */
	{ .name = "softmax", .file = "softmax", .reads = 1, .can = kernel_first_float,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "logsoftmax", .file = "softmax", .reads = 1, .can = kernel_first_float,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "softmax_grad", .file = "softmax", .reads = 3, .can = kernel_first_float,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "logsoftmax_grad", .file = "softmax", .reads = 3, .can = kernel_first_float,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "softmax_xent", .file = "loss", .reads = 7, .can = can_loss,
	  .c = KERNEL_HERE | KERNEL_LEADING | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "softmax_xent_grad", .file = "loss", .reads = 31, .can = can_loss,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_LEADING, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "nll_loss", .file = "loss", .reads = 7, .can = can_loss,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_LEADING, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "sum_exp", .file = "loss", .reads = 3, .can = kernel_all_float,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "ahead", .file = "loss", .reads = 7, .can = can_ahead,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_LEADING, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "layernorm", .file = "norm", .reads = 7, .can = can_layernorm,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "rmsnorm", .file = "norm", .reads = 3, .can = can_layernorm,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "layernorm_grad", .file = "norm", .reads = 31, .can = can_layernorm_grad,
	  .c = KERNEL_HERE | KERNEL_LEADING, .cuda = KERNEL_HERE },
	{ .name = "layernorm_grad_w", .file = "norm", .reads = 27, .can = can_layernorm_grad,
	  .c = KERNEL_HERE | KERNEL_LEADING | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "groupnorm", .file = "norm", .reads = 7, .can = can_groupnorm,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "instancenorm", .file = "norm", .reads = 7, .can = can_groupnorm,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "groupnorm_grad", .file = "norm", .reads = 31, .can = kernel_all_float,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "groupnorm_grad_w", .file = "norm", .reads = 27, .can = kernel_all_float,
	  .c = KERNEL_HERE | KERNEL_FIRST | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "batchnorm", .file = "norm", .reads = 31, .can = can_batchnorm,
	  .c = KERNEL_HERE | KERNEL_EACH | KERNEL_STATE, .cuda = KERNEL_HERE | KERNEL_STATE },
	{ .name = "batchnorm_grad", .file = "norm", .reads = 31, .can = kernel_all_float,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "batchnorm_grad_w", .file = "norm", .reads = 27, .can = kernel_all_float,
	  .c = KERNEL_HERE | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	/* attention */
	{ .name = "attention", .file = "attention", .reads = 15, .can = can_attention,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "attention_grad", .file = "attention", .reads = 127, .can = can_attention_grad,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "rotary", .file = "attention", .reads = 15, .can = can_rotary,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	/* convolutions, pooling, regions */
	{ .name = "avgpool", .file = "window", .reads = 1, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "avgpool_grad", .file = "window", .reads = 1, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "sumpool", .file = "window", .reads = 1, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "sumpool_grad", .file = "window", .reads = 1, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "conv", .file = "conv", .reads = 7, .can = can_product,
	  .c = KERNEL_HERE | KERNEL_FIRST | KERNEL_ROWS, .cuda = KERNEL_HERE },
	{ .name = "conv", .file = "conv", .reads = 7, .can = can_plane,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "conv", .file = "window", .reads = 7, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST | KERNEL_ROWS, .cuda = KERNEL_HERE },
	{ .name = "conv_grad_x", .file = "conv", .reads = 3, .can = can_plane,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "conv_grad_x", .file = "window", .reads = 3, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "conv_grad_w", .file = "conv", .reads = 3, .can = can_plane,
	  .c = KERNEL_HERE | KERNEL_FIRST | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "conv_grad_w", .file = "window", .reads = 3, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "maxpool", .file = "pool", .reads = 1, .can = can_maxpool,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "maxpool", .file = "window", .reads = 1, .can = can_maxpool_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "maxpool_grad", .file = "pool", .reads = 3, .can = can_maxpool,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "maxpool_grad", .file = "window", .reads = 3, .can = can_nd,
	  .c = KERNEL_HERE | KERNEL_FIRST, .cuda = KERNEL_HERE },
	{ .name = "roi_align", .file = "roi", .reads = 7, .can = can_roi,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ .name = "roi_align_grad", .file = "roi", .reads = 15, .can = can_roi,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ .name = "max_roi_pool", .file = "roi", .reads = 3, .can = can_roi,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ .name = "max_roi_pool_grad", .file = "roi", .reads = 7, .can = can_roi,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	/* copies */
	{ .name = "copy", .file = "copy", .reads = 1, .can = can_copy,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "transpose", .file = "copy", .reads = 1, .can = can_copy,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "swap", .file = "copy", .reads = 1, .can = can_copy,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "expand", .file = "copy", .reads = 1, .can = can_copy,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "tile", .file = "copy", .reads = 1, .can = can_tile,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "concat", .file = "copy", .reads = ~0u, .can = kernel_any,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "split", .file = "copy", .reads = 1, .can = kernel_any,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "slice", .file = "copy", .reads = 1, .can = can_slice,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "slice_grad", .file = "copy", .reads = 1, .can = can_slice_grad,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "pad", .file = "any", .reads = 5, .can = can_pad,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "pad_grad", .file = "typed", .reads = 1, .can = can_pad_grad,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "trilu", .file = "any", .reads = 1, .can = can_trilu,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "reverse_sequence", .file = "any", .reads = 3, .can = kernel_indexed,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "zeros", .file = "copy", .reads = 0, .can = can_zeros,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "eye", .file = "any", .reads = 0, .can = can_zeros,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "random_uniform", .file = "random", .reads = 0, .can = can_random,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	/* indices */
	{ .name = "gather", .file = "index", .reads = 3, .can = kernel_indexed,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "gather_grad", .file = "index", .reads = 5, .can = can_gather_grad_float,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH | KERNEL_CHUNKS | KERNEL_RUNS,
	  .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "gather_grad", .file = "typed", .reads = 5, .can = can_gather_grad,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "gather_elements", .file = "index", .reads = 3, .can = kernel_indexed,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "scatter_elements", .file = "typed", .reads = 7, .can = kernel_indexed,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ .name = "gather_nd", .file = "any", .reads = 3, .can = kernel_indexed,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "gather_nd_grad", .file = "typed", .reads = 5, .can = can_gather_grad,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ .name = "scatter_nd", .file = "typed", .reads = 7, .can = kernel_indexed,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ .name = "one_hot", .file = "any", .reads = 5, .can = can_one_hot,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "compress", .file = "any", .reads = 3, .can = kernel_any,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	/* reductions */
	{ .name = "reduce_to", .file = "reduce", .reads = 1, .can = kernel_first_float,
	  .c = KERNEL_HERE | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "reduce_to", .file = "typed", .reads = 1, .can = kernel_any,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "reduce_sum", .file = "reduce", .reads = 1, .can = can_reduce,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "reduce_sum", .file = "typed", .reads = 1, .can = can_reduce_other,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "reduce_mean", .file = "reduce", .reads = 1, .can = can_reduce,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "reduce_mean", .file = "typed", .reads = 1, .can = can_reduce_other,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "reduce_prod", .file = "reduce", .reads = 1, .can = can_reduce,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "reduce_prod", .file = "typed", .reads = 1, .can = can_reduce_other,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "reduce_max", .file = "reduce", .reads = 1, .can = can_reduce,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "reduce_max", .file = "typed", .reads = 1, .can = can_reduce_other,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "reduce_min", .file = "reduce", .reads = 1, .can = can_reduce,
	  .c = KERNEL_HERE | KERNEL_COUNTS | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE | KERNEL_COUNTS },
	{ .name = "reduce_min", .file = "typed", .reads = 1, .can = can_reduce_other,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "sum_square", .file = "squares", .reads = 1, .can = kernel_first_float,
	  .c = KERNEL_HERE | KERNEL_EACH | KERNEL_CHUNKS, .cuda = KERNEL_HERE },
	{ .name = "cumsum", .file = "typed", .reads = 1, .can = can_cumsum,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "topk", .file = "typed", .reads = 1, .can = can_topk,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "argmax", .file = "typed", .reads = 1, .can = kernel_any,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "argmin", .file = "typed", .reads = 1, .can = kernel_any,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	/* recurrent cells, determinants */
	{ .name = "lstm", .file = "recurrent", .reads = 31, .can = steps_plain,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "lstm_grad", .file = "recurrent", .reads = 255, .can = can_cells_grad,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "gru", .file = "recurrent", .reads = 31, .can = steps_plain,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "gru_grad", .file = "recurrent", .reads = 127, .can = can_cells_grad,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "rnn", .file = "recurrent", .reads = 15, .can = steps_plain,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "rnn_grad", .file = "recurrent", .reads = 31, .can = can_cells_grad,
	  .c = KERNEL_HERE | KERNEL_EACH, .cuda = KERNEL_HERE },
	{ .name = "det", .file = "det", .reads = 1, .can = can_det,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ .name = "cofactor", .file = "det", .reads = 1, .can = can_det,
	  .c = KERNEL_HERE, .cuda = KERNEL_HERE },
	{ 0 },
};
/* clang-format on */

static const KernelPair pairs[] = {
	{ "softmax_xent", "softmax_xent_grad", "loss", can_xent_both },
	{ 0 },
};

const Kernel *kernel_rows(void)
{
	return rows;
}

const KernelPair *kernel_rows_of_two(void)
{
	return pairs;
}
