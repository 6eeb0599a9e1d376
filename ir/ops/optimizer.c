/* Updates of parameters.  An update is an ordinary operator: its result is a new value that train.c declares to live in the
 * storage of the old one. */
#include "ops.h"

/* All operands but the last (the rate, one number) have the shape of the parameter. */
static int shape_update(Node *n)
{
	const Type *w = in_type(n, 0);

	for (int i = 1; w && i < n->nin; i++) {
		const Type *t = in_type(n, i);
		bool rate = i == n->nin - 1;
		bool fits = !t || t->rank < 0 || w->rank < 0 || (rate ? type_elements(t) < 0 || type_elements(t) == 1 : t->rank == w->rank);

		for (int k = 0; fits && !rate && t && t->rank > 0 && w->rank > 0 && k < t->rank; k++)
			fits = !dim_differ(t->dim[k], w->dim[k]);
		if (!fits) {
			err_at(in_loc(n, i), "%s: %s is %s, but the parameter %s is %s", n->op, n->in[i]->name, type_text(t), n->in[0]->name, type_text(w));
			return -1;
		}
	}
	return shape_like_first(n);
}

const Op ops_optimizer[] = {
	/* w - lr * g */
	{ .name = "SGD", .domain = "sbpcc", .since = 1, .sig = "w:F g:F lr:F -> y:F", .shape = shape_update, .expr = "w - lr * g",
	  .factors = "..., ..., -> ...", .nograd = true, .flops = 2, .test = "w:[3,4] g:[3,4] lr:[]" },
	{ 0 },
};
