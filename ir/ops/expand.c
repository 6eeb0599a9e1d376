/* For definitions in C: constants, attribute texts, and checks that all of them need.  A definition is in C where the
 * nodes depend on numbers of axes, on sizes or on the contents of operands. */
#include "ops.h"

#include <string.h>

Value *expand_ints(Node *n, const int64_t *v, int count)
{
	return graph_const(n->graph, tensor_ints(n->graph->arena, v, count), "ints");
}

Value *expand_num(Node *n, DType type, double v)
{
	return graph_const(n->graph, tensor_scalar(n->graph->arena, type, v), "num");
}

Value *expand_table(Node *n, DType type, const double *v, int ndim, const int64_t *dim)
{
	Tensor *t = tensor_new(n->graph->arena, type, ndim, dim);
	int64_t count = tensor_elements(t);

	for (int64_t i = 0; i < count; i++)
		tensor_set(t, i, v[i]);
	return graph_const(n->graph, t, "table");
}

char *expand_attr(Node *n, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= sizeof text)
		die("%s: attribute text is too long", n->op);
	return arena_printf(n->graph->arena, "%s", text);
}

char *expand_list(Node *n, const char *name, const int64_t *v, int count)
{
	char *s = arena_printf(n->graph->arena, "%s=[", name);

	for (int i = 0; i < count; i++)
		s = arena_printf(n->graph->arena, "%s%s%lld", s, i ? ", " : "", (long long)v[i]);
	return arena_printf(n->graph->arena, "%s]", s);
}

Value *expand_node(Node *n, const char *op, const char *attrs, int nin, Value *const *in)
{
	for (int i = 0; i < nin; i++)
		if (!in[i])
			return NULL;
	return build_list(n->graph, n->loc, op, attrs, 1, NULL, nin, in);
}

Value *expand_cast(Node *n, Value *v, DType type)
{
	return expand_op(n, "Cast", expand_attr(n, "to=%d", type), v);
}

int expand_result(Node *n, int i, Value *v)
{
	if (!v)
		return -1;
	if (i >= n->nout || !n->out[i])
		return 0;
	return build(n->graph, n->loc, "Identity", NULL, 1, &n->out[i], 1, v) ? 0 : -1;
}

int expand_shape(Node *n, int i, int64_t *dim)
{
	Type *t = operand_type(n, i);

	if (!t || t->ndim < 0) {
		err_at(operand_loc(n, i), "%s needs an operand of known shape", n->op);
		return -1;
	}
	for (int k = 0; k < t->ndim; k++) {
		if (!dim_known(t->dim[k])) {
			err_at(operand_loc(n, i), "%s needs an operand of known sizes, and this is %s", n->op,
				type_text(t));
			return -1;
		}
		dim[k] = t->dim[k];
	}
	return t->ndim;
}

const Tensor *expand_const(Node *n, int i, const char *what)
{
	const Tensor *t = operand_const(n, i);

	if (!t)
		err_at(operand_loc(n, i), "%s needs %s that can be computed before the program runs", n->op, what);
	return t;
}

int expand_float(Node *n, const char *attr, DType *type)
{
	int64_t t = attr_int(n, attr);

	if (t <= 0 || t >= DT_COUNT || !dtype_is_float((DType)t)) {
		err_at(n->loc, "%s: %s %lld is no floating type", n->op, attr, (long long)t);
		return -1;
	}
	*type = (DType)t;
	return 0;
}

bool expand_room(Node *n, int64_t a, int64_t b)
{
	int64_t cells;

	if (a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, &cells) && cells <= limits.table)
		return true;
	fail_at(EXIT_LIMIT, n->loc, "%s needs a table of %lld by %lld numbers, more than --max-table=%lld",
		n->op, (long long)a, (long long)b, (long long)limits.table);
	return false;
}

bool expand_oneof(Node *n, const char *attr, const char *const *list)
{
	Name s = attr_str(n, attr);

	for (int i = 0; list[i]; i++)
		if (!strcmp(s, list[i]))
			return true;
	err_at(n->loc, "%s does not know %s \"%s\"", n->op, attr, s);
	return false;
}
