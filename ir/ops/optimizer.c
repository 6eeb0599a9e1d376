/* Updates of parameters.  An update is an ordinary operator: its result is a new value that train.c declares to live in
 * the storage of the old one. */
#include "ops.h"

/* All operands but the last (the rate, one number) have the shape of the parameter. */
static int shape_update(Node *n)
{
	const Type *w = operand_type(n, 0);

	for (int i = 1; w && i < n->nin; i++) {
		const Type *t = operand_type(n, i);
		bool rate = i == n->nin - 1;
		bool fits = !t || t->ndim < 0 || w->ndim < 0 ||
		            (rate ? type_elements(t) < 0 || type_elements(t) == 1 : t->ndim == w->ndim);

		for (int k = 0; fits && !rate && t && t->ndim > 0 && w->ndim > 0 && k < t->ndim; k++)
			fits = !dim_differ(t->dim[k], w->dim[k]);
		if (!fits) {
			err_at(operand_loc(n, i), "%s: %s is %s, but the parameter %s is %s", n->op, n->in[i]->name,
				type_text(t), n->in[0]->name, type_text(w));
			return -1;
		}
	}
	return shape_like_first(n);
}

/* Where a sum over micro-batches begins. */
static int shape_zeros(Node *n)
{
	int ndim;
	const int64_t *shape = attr_ints(n, "shape", &ndim);
	Dim dim[NDIM_MAX];
	int64_t type = attr_int(n, "dtype");

	if (type <= DT_UNDEFINED || type >= DT_COUNT || type == DT_STRING || ndim > NDIM_MAX) {
		err_at(n->loc, "%s: no such type or shape", n->op);
		return -1;
	}
	for (int a = 0; a < ndim; a++) {
		if (shape[a] < 0) {
			err_at(n->loc, "%s: the length %lld is negative", n->op, (long long)shape[a]);
			return -1;
		}
		dim[a] = shape[a];
	}
	operand_set_result(n, 0, (DType)type, ndim, dim);
	return 0;
}

static int eval_zeros(Node *n, Tensor **in, Tensor **out)
{
	(void)n, (void)in, (void)out;   /* results are zero to begin with */
	return 0;
}

const Op ops_optimizer[] = {
	/* An accumulator: its storage changes, so it is never a constant. */
	{ .name = "Zeros", .domain = "sbpcc", .since = 1, .moves = true, .sig = "-> y:T",
	  .attrs = "shape:ints! dtype:int=1", .shape = shape_zeros, .kernel = "zeros", .eval = eval_zeros,
	  .nograd = true, .cost = cost_bytes, .test = "=shape:[2,3]" },
	/* w - lr * g */
	{ .name = "SGD", .domain = "sbpcc", .since = 1, .sig = "w:F g:F lr:F -> y:F",
	  .shape = shape_update, .expr = "w - lr * g", .factors = "..., ..., -> ...", .nograd = true, .flops = 2,
	  .test = "w:[3,4] g:[3,4] lr:[]" },
	{ 0 },
};
