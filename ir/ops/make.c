/* One node at a time, for gradients and definitions in C. */
#include "ops.h"

Value *make_list(Node *n, Value *to, const char *op, const char *attrs, Value *const in[3])
{
	Value *out[1] = { to };
	return in[0] ? build_list(n->graph, n->loc, op, attrs, 1, out, in[2] ? 3 : in[1] ? 2 : 1, in) : NULL;
}

Value *make_int(Node *n, int64_t v)
{
	Tensor *t = tensor_new(n->graph->arena, DT_INT64, 0, NULL);
	tensor_set_int(t, 0, v);
	return graph_const(n->graph, t, "int");
}

Value *make_axes(Node *n, int first, int end)
{
	int64_t axes[NDIM_MAX];
	for (int i = first; i < end; i++)
		axes[i - first] = i;
	return expand_ints(n, axes, end > first ? end - first : 0);
}

Value *make_num(Node *n, const Value *like, double v)
{
	return graph_const(n->graph, tensor_scalar(n->graph->arena, like->type->elem, v), "num");
}
