/* Classification losses.  Their meaning is text (nn.ir): through LogSoftmax, so that nothing is divided by a
 * probability and the gradient is softmax minus one-hot.  Here are shapes and factors. */
#include <string.h>

#include "ops.h"

/* x [N, C, d1 ...], target [N, d1 ...], weight [C]. */
static int shape_loss(Node *n)
{
	Type *x = operand_type(n, 0), *t = operand_type(n, 1), *w = operand_type(n, 2);
	Name r = attr_str(n, "reduction");
	bool none = !strcmp(r, "none");
	if (!none && strcmp(r, "mean") && strcmp(r, "sum")) {
		err_at(n->loc, "%s: reduction \"%s\" is none of none, sum, mean", n->op, r);
		return -1;
	}
	if (x && x->ndim >= 0 && x->ndim < 2) {
		err_at(operand_loc(n, 0), "%s needs scores of [batch, classes, ...], the operand is %s", n->op,
			type_text(x));
		return -1;
	}
	bool clash = x && t && x->ndim >= 0 && t->ndim >= 0 && t->ndim != x->ndim - 1;
	for (int i = 0; !clash && x && t && x->ndim >= 0 && i < t->ndim; i++)
		clash = dim_differ(t->dim[i], x->dim[i ? i + 1 : 0]);
	if (clash) {
		err_at(operand_loc(n, 1), "%s: the targets are %s, one class per position of %s is needed", n->op,
			type_text(t), type_text(x));
		return -1;
	}
	if (w && w->ndim >= 0 &&
		(w->ndim != 1 || (x && x->ndim > 1 && !n->shard && dim_differ(w->dim[0], x->dim[1])))) {
		err_at(operand_loc(n, 2), "%s: the weights are %s, one per class of %s is needed", n->op,
			type_text(w), x ? type_text(x) : "the scores");
		return -1;
	}
	if (none)
		operand_set_result(n, 0, operand_dtype(n, 0), t ? t->ndim : -1, t ? t->dim : NULL);
	else
		operand_set_result(n, 0, operand_dtype(n, 0), 0, NULL);
	operand_set_result(n, 1, operand_dtype(n, 0), x ? x->ndim : -1, x ? x->dim : NULL);
	operand_set_result(n, 2, operand_dtype(n, 0), t ? t->ndim : -1, t ? t->dim : NULL);
	return 0;
}

/* Every axis but the classes; with "sum" they are summed over (P), a mean divides by the count of all ranks. */
static int factor_loss(Node *n, FactorRule *r)
{
	Type *x = operand_type(n, 0);
	if (!x || x->ndim < 2 || !r->in[1] || operand_ndim(n, 1) != x->ndim - 1)
		return -1;
	bool none = !strcmp(attr_str(n, "reduction"), "none");
	for (int a = 0; a < x->ndim && strcmp(attr_str(n, "reduction"), "mean") != 0; a++) {
		if (a == 1)
			continue;
		int f = factor_add(r, x->dim[a]);
		r->in[0][a] = r->in[1][a ? a - 1 : 0] = f;
		if (none && r->out[0])
			r->out[0][a ? a - 1 : 0] = f;
		if (n->nout > 1 && r->out[1])
			r->out[1][a] = f;
		if (n->nout > 2 && r->out[2])
			r->out[2][a ? a - 1 : 0] = f;
	}
	return 0;
}

/* The sum over classes becomes a sum over ranks. */
static int factor_xent(Node *n, FactorRule *r)
{
	if (factor_loss(n, r))
		return -1;
	r->in[0][1] = factor_defined(r, operand_type(n, 0)->dim[1]);
	if (n->nout > 1 && r->out[1])
		r->out[1][1] = r->in[0][1];
	return 0;
}

/* In a shard of the classes, labels of other classes select nothing. */
static int factor_nll(Node *n, FactorRule *r)
{
	if (factor_loss(n, r))
		return -1;
	r->in[0][1] = factor_run(r, operand_type(n, 0)->dim[1]);
	return 0;
}

/* The gradient by the scores: operands as above, then lse as the labels are, and dy. */
static int shape_xent_grad(Node *n)
{
	Type *x = operand_type(n, 0), *t = operand_type(n, 1), *lse = operand_type(n, 3), *dy = operand_type(n, 4);
	bool none = !strcmp(attr_str(n, "reduction"), "none"),
	     clash = t && lse && t->ndim >= 0 && lse->ndim >= 0 && t->ndim != lse->ndim;
	for (int i = 0; !clash && t && lse && lse->ndim >= 0 && i < t->ndim; i++)
		clash = dim_differ(t->dim[i], lse->dim[i]);
	if (clash || (dy && dy->ndim >= 0 && (none ? t && t->ndim >= 0 && dy->ndim != t->ndim : dy->ndim != 0)) ||
		(x && x->ndim >= 0 && x->ndim < 2)) {
		err_at(operand_loc(n, 3), "%s: the operands do not fit scores of %s", n->op, type_text(x));
		return -1;
	}
	return shape_like_first(n);
}

static int factor_xent_grad(Node *n, FactorRule *r)
{
	if (factor_loss(n, r))
		return -1;
	for (int a = 0; a < operand_ndim(n, 1); a++) {
		int f = r->in[1][a];
		r->in[3][a] = f;
		if (operand_ndim(n, 4) == operand_ndim(n, 1))
			r->in[4][a] = f;
		r->out[0][a ? a + 1 : 0] = f;
	}
	r->in[0][1] = r->out[0][1] = factor_run(r, operand_type(n, 0)->dim[1]);
	return 0;
}

/* The cost of an exponential of each score and the operations around it. */
static Cost cost_xent(const Node *n)
{
	Cost c = cost_bytes(n);
	int64_t scores = operand_type(n, 0) ? type_elements(operand_type(n, 0)) : 0;
	c.flops = scores > 0 ? 10.0 * (double)scores : 0;
	return c;
}

/* The axis of classes of x has length 1 in top and in the result. */
static int shape_sum_exp(Node *n)
{
	Type *x = operand_type(n, 0);
	Dim dim[NDIM_MAX];
	int axis = 0;
	if (x && x->ndim >= 0 && op_axis(n, attr_int(n, "axis"), x->ndim, &axis))
		return -1;
	for (int a = 0; x && a < x->ndim; a++)
		dim[a] = a == axis ? 1 : x->dim[a];
	operand_set_result(n, 0, operand_dtype(n, 0), x ? x->ndim : -1, dim);
	return 0;
}

static int factor_sum_exp(Node *n, FactorRule *r)
{
	Type *x = operand_type(n, 0);
	int axis;
	if (!x || x->ndim < 1 || operand_ndim(n, 1) != x->ndim || op_axis(n, attr_int(n, "axis"), x->ndim, &axis))
		return -1;
	for (int a = 0; a < x->ndim; a++) {
		int f = r->in[0][a] = factor_add(r, x->dim[a]);
		if (a != axis)
			r->in[1][a] = r->out[0][a] = f;
	}
	return 0;
}

/* own and label have the shape of the scores without their classes; the result is a count for each. */
static int shape_ahead(Node *n)
{
	Type *x = operand_type(n, 0), *own = operand_type(n, 1), *t = operand_type(n, 2);
	bool clash = x && t && x->ndim >= 0 && t->ndim >= 0 && t->ndim != x->ndim - 1;
	clash |= own && t && own->ndim >= 0 && t->ndim >= 0 && own->ndim != t->ndim;
	for (int i = 0; !clash && x && t && x->ndim >= 0 && i < t->ndim; i++)
		clash = dim_differ(t->dim[i], x->dim[i ? i + 1 : 0]) ||
		        (own && own->ndim >= 0 && dim_differ(t->dim[i], own->dim[i]));
	if (clash || (x && x->ndim >= 0 && x->ndim < 2)) {
		err_at(operand_loc(n, 2),
			"%s: the labels are %s, one for each position of scores of [batch, classes, ...] is needed; "
			"these are %s",
			n->op, t ? type_text(t) : "of unknown type", x ? type_text(x) : "unknown");
		return -1;
	}
	operand_set_result(n, 0, operand_dtype(n, 0), t ? t->ndim : -1, t ? t->dim : NULL);
	return 0;
}

/* The classes of one rank give one term of the count. */
static int factor_ahead(Node *n, FactorRule *r)
{
	Type *x = operand_type(n, 0);
	if (!x || x->ndim < 2 || operand_ndim(n, 1) != x->ndim - 1 || operand_ndim(n, 2) != x->ndim - 1)
		return -1;
	for (int a = 0; a < x->ndim; a++) {
		int k = a ? a - 1 : 0, f = r->in[0][a] = a == 1 ? factor_run(r, x->dim[a]) : factor_add(r, x->dim[a]);
		if (a != 1)
			r->in[1][k] = r->in[2][k] = r->out[0][k] = f;
	}
	return 0;
}

/* Whether its own gradient applies: not if log_prob is used or the weights need a gradient. */
static bool own_xent(const Node *n, const bool *wants)
{
	return (n->nout < 2 || !n->out[1]) && !wants[2];
}

/* clang-format off */
const Op ops_loss[] = {
	{ .name = "NegativeLogLikelihoodLoss", .since = 12, .precision = PRECISION_FLOAT, .index = "target 1",
	  .sig = "x:F target:I weight:F? -> loss:F", .attrs = "reduction:string=\"mean\" ignore_index:int",
	  .shape = shape_loss, .kernel = "nll_loss", .composite = true, .factor_fn = factor_nll, .origin = "x 1",
	  .cost = cost_pointwise, .flops = 4,
	  .test = "x:[3,5] target:{0,4,2} | x:[3,5] target:{0,4,2} weight:(0.1,1)[5] =reduction:\"sum\" | "
	          "x:[3,5] target:{0,4,2} weight:(0.1,1)[5] =ignore_index:4" },
	{ .name = "SoftmaxCrossEntropyLoss", .since = 12, .precision = PRECISION_FLOAT, .index = "labels 1",
	  .sig = "scores:F labels:I weights:F? -> output:F log_prob:F? lse:F?",
	  .attrs = "reduction:string=\"mean\" ignore_index:int",
	  .shape = shape_loss, .kernel = "softmax_xent", .composite = true, .factor_fn = factor_xent, .own = own_xent,
	  .stash = "lse",
	  .grad = "dscores = SoftmaxCrossEntropyGrad<reduction=@reduction, ignore_index=@ignore_index>(scores, "
	          "labels, weights, lse, doutput)",
	  .cost = cost_xent,
	  .test = "scores:[3,5] labels:{0,4,2} | "
	          "scores:[3,5] labels:{0,4,2} weights:(0.1,1)[5] =reduction:\"none\" | "
	          "scores:[3,5] labels:{-1,4,2} =ignore_index:-1 | "
	          "scores:[3,5] labels:{-1,4,2} weights:(0.1,1)[5] =ignore_index:-1 | "
	          "scores:[2,5,3] labels:(0,5)[2,3] =reduction:\"sum\"" },
	/* The sum of exp(x - top) along an axis: a shard of the axis gives one term of it. */
	{ .name = "SumExp", .domain = "sbpcc", .since = 1, .sig = "x:F top:F -> y:F", .attrs = "axis:int=1",
	  .shape = shape_sum_exp, .kernel = "sum_exp", .composite = true, .factor_fn = factor_sum_exp,
	  .cost = cost_reduce, .test = "x:[3,5] top:[3,1] | x:[2,3,4] top:[2,3,1] =axis:2" },
	/* The number of classes that rank before the label: those with a higher score, or the same score and a lower
	 * number. */
	{ .name = "Ahead", .domain = "sbpcc", .since = 1, .sig = "x:F own:F labels:I -> y:F",
	  .shape = shape_ahead, .kernel = "ahead", .composite = true, .factor_fn = factor_ahead, .origin = "x 1",
	  .nograd = true, .cost = cost_reduce,
	  .test = "x:[3,5] own:[3] labels:{0,4,2} | x:[2,5,3] own:[2,3] labels:(0,5)[2,3]" },
	{ .name = "SoftmaxCrossEntropyGrad", .domain = "sbpcc", .since = 1,
	  .sig = "scores:F labels:I weights:F? lse:F dy:F -> dscores:F",
	  .attrs = "reduction:string=\"mean\" ignore_index:int",
	  .shape = shape_xent_grad, .kernel = "softmax_xent_grad", .composite = true,
	  .factor_fn = factor_xent_grad, .origin = "scores 1", .linear = "dy", .cost = cost_pointwise, .flops = 6,
	  .test = "scores:[3,5] labels:{0,4,2} lse:(2,3)[3] dy:[] | "
	          "scores:[3,5] labels:{0,4,2} weights:(0.1,1)[5] lse:(2,3)[3] dy:[3] =reduction:\"none\" | "
	          "scores:[2,5,3] labels:(0,5)[2,3] lse:(2,3)[2,3] dy:[] =reduction:\"sum\" | "
	          "scores:[3,5] labels:{-1,4,2} weights:(0.1,1)[5] lse:(2,3)[3] dy:[] =ignore_index:-1" },
	{ 0 },
};
/* clang-format on */
