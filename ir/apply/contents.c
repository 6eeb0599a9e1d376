/* Contents of small integer vectors, with symbols in them, so that the shape arithmetic of exporters can be resolved.
 * An element is a number, which may be negative, or a dimension. */
#include "apply.h"

#include <string.h>

enum { CONTENTS_MAX = 64 };
typedef struct El { bool isnum; int64_t num; Dim dim; } El;
typedef struct Vec { int n; El el[CONTENTS_MAX]; } Vec;

static El el_num(int64_t v)
{
	return (El){ true, v, v >= 0 ? v : DIM_UNKNOWN };
}

static El el_dim(Dim d)
{
	return dim_known(d) ? el_num(d) : (El){ false, 0, d == DIM_OVERFLOW ? DIM_UNKNOWN : d };
}

static bool vec_tensor(const Tensor *t, Vec *v)
{
	if (!t || t->ndim > 1 || !t->data || (!dtype_is_int(t->dtype) && t->dtype != DT_BOOL) ||
		tensor_elements(t) > CONTENTS_MAX)
		return false;
	v->n = (int)tensor_elements(t);
	for (int i = 0; i < v->n; i++)
		v->el[i] = el_num(tensor_int(t, i));
	return true;
}

/* Operand i as a vector: constants, or the known contents. */
static bool vec_in(const Node *n, int i, Vec *v)
{
	if (i >= n->nin || !n->in[i])
		return false;
	if (vec_tensor(operand_const(n, i), v))
		return true;
	const Value *x = n->in[i];
	if (x->nelem < 0 || x->nelem > CONTENTS_MAX || (x->nelem && !x->elem))
		return false;
	v->n = x->nelem;
	for (int k = 0; k < v->n; k++)
		v->el[k] = el_dim(x->elem[k]);
	return true;
}

static El el_arith(Name op, El a, El b)
{
	int64_t r;
	if (a.isnum && b.isnum) {
		if (!strcmp(op, "Add") && !__builtin_add_overflow(a.num, b.num, &r))
			return el_num(r);
		if (!strcmp(op, "Sub") && !__builtin_sub_overflow(a.num, b.num, &r))
			return el_num(r);
		if (!strcmp(op, "Mul") && !__builtin_mul_overflow(a.num, b.num, &r))
			return el_num(r);
		if (!strcmp(op, "Div") && b.num > 0)
			return el_num(a.num / b.num);
		if (!strcmp(op, "Mod") && b.num > 0 && a.num >= 0)
			return el_num(a.num % b.num);
		if (!strcmp(op, "Min"))
			return el_num(a.num < b.num ? a.num : b.num);
		if (!strcmp(op, "Max"))
			return el_num(a.num > b.num ? a.num : b.num);
		if (!strcmp(op, "Equal"))
			return el_num(a.num == b.num);
		return el_dim(DIM_UNKNOWN);
	}
	if (!strcmp(op, "Add"))
		return el_dim(b.isnum && b.num < 0 && b.num > INT64_MIN   ? dim_sub(a.dim, -b.num)
			      : a.isnum && a.num < 0 && a.num > INT64_MIN ? dim_sub(b.dim, -a.num)
									  : dim_add(a.dim, b.dim));
	if (!strcmp(op, "Sub"))
		return el_dim(b.isnum && b.num < 0 && b.num > INT64_MIN ? dim_add(a.dim, -b.num)
									: dim_sub(a.dim, b.dim));
	if (!strcmp(op, "Equal"))       /* a dimension is never negative */
		return (a.isnum && a.num < 0 && dim_symbolic(b.dim)) ||
		                       (b.isnum && b.num < 0 && dim_symbolic(a.dim))
		               ? el_num(0)
		       : dim_same(a.dim, b.dim) ? el_num(1)
		                                : el_dim(DIM_UNKNOWN);
	if ((a.isnum && a.num < 0) || (b.isnum && b.num < 0))
		return el_dim(DIM_UNKNOWN);
	if (!strcmp(op, "Mul"))
		return el_dim(dim_mul(a.dim, b.dim));
	if (!strcmp(op, "Div"))
		return b.isnum && b.num == 0 ? el_dim(DIM_UNKNOWN) : el_dim(dim_floordiv(a.dim, b.dim));
	return dim_same(a.dim, b.dim) && strcmp(op, "Mod") ? a : el_dim(DIM_UNKNOWN);
}

static bool arith_contents(const Node *n, Vec *r)
{
	static const char *const ops[] = { "Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Equal", NULL };
	Vec b;
	int k = 0;
	while (ops[k] && strcmp(ops[k], n->op))
		k++;
	if (!ops[k] || n->nin != 2 || !vec_in(n, 0, r) || !vec_in(n, 1, &b))
		return false;
	int len = r->n == 1 ? b.n : r->n;
	if (b.n != 1 && b.n != len)
		return false;
	for (int i = len; i-- > 0;)
		r->el[i] = el_arith(n->op, r->el[r->n == 1 ? 0 : i], b.el[b.n == 1 ? 0 : i]);
	r->n = len;
	return true;
}

static bool where_contents(const Node *n, Vec *r)
{
	Vec c, a, b;
	if (!vec_in(n, 0, &c) || !vec_in(n, 1, &a) || !vec_in(n, 2, &b))
		return false;
	int len = c.n > a.n ? c.n : a.n;
	len = b.n > len ? b.n : len;
	if ((c.n != 1 && c.n != len) || (a.n != 1 && a.n != len) || (b.n != 1 && b.n != len))
		return false;
	for (int i = 0; i < len; i++) {
		El e = c.el[c.n == 1 ? 0 : i], x = a.el[a.n == 1 ? 0 : i], y = b.el[b.n == 1 ? 0 : i];
		r->el[i] = e.isnum ? (e.num ? x : y) : el_dim(DIM_UNKNOWN);
	}
	r->n = len;
	return true;
}

static bool gather_contents(const Node *n, Vec *r)
{
	Vec x;
	const Tensor *idx = operand_const(n, 1);
	if (!idx || idx->ndim > 1 || !vec_in(n, 0, &x) || operand_ndim(n, 0) != 1 || !vec_tensor(idx, r))
		return false;
	for (int i = 0; i < r->n; i++) {
		int64_t k = r->el[i].num;
		k = k < 0 ? k + x.n : k;
		if (k < 0 || k >= x.n)
			return false;
		r->el[i] = x.el[k];
	}
	return true;
}

static bool concat_contents(const Node *n, Vec *r)
{
	Vec x;
	r->n = 0;
	for (int i = 0; i < n->nin; i++) {
		if (!vec_in(n, i, &x)) {
			const Type *t = operand_type(n, i);  /* the elements are unknown, but their number is known */
			if (!t || t->ndim != 1 || !dim_known(t->dim[0]) || t->dim[0] > CONTENTS_MAX)
				return false;
			x.n = (int)t->dim[0];
			for (int k = 0; k < x.n; k++)
				x.el[k] = el_dim(DIM_UNKNOWN);
		}
		if (r->n + x.n > CONTENTS_MAX)
			return false;
		memcpy(r->el + r->n, x.el, (size_t)x.n * sizeof *x.el);
		r->n += x.n;
	}
	return true;
}

static bool slice_contents(const Node *n, Vec *r)
{
	Vec x;
	const Tensor *s = operand_const(n, 1), *e = operand_const(n, 2), *d = operand_const(n, 4);
	if (!s || !e || tensor_elements(s) != 1 || tensor_elements(e) != 1 ||
		(n->nin > 4 && n->in[4] && !d) || operand_ndim(n, 0) != 1 || !vec_in(n, 0, &x))
		return false;
	int64_t from = tensor_int(s, 0), to = tensor_int(e, 0), step = d ? tensor_int(d, 0) : 1;
	contents_clamp(&from, &to, step, x.n);
	r->n = 0;
	for (int64_t i = from; step > 0 ? i < to : step < 0 && i > to; i += step)
		r->el[r->n++] = x.el[i];
	return true;
}

static bool shape_op_contents(const Node *n, Vec *r)
{
	const Type *t = operand_type(n, 0);
	int from, to;
	if (!t || t->ndim < 0)
		return false;
	if (!strcmp(n->op, "Size")) {
		Dim d = 1;
		for (int i = 0; i < t->ndim; i++)
			d = dim_mul(d, t->dim[i]);
		r->n = 1;
		r->el[0] = el_dim(d);
		return true;
	}
	contents_range(n, t->ndim, &from, &to);
	r->n = to - from;
	for (int i = from; i < to; i++)
		r->el[i - from] = el_dim(t->dim[i]);
	return true;
}

static bool fill_contents(const Node *n, Vec *r)
{
	const Attr *a = node_attr(n, "value");
	const Type *t = n->out[0]->type;
	if (!a || a->type != AT_TENSOR || t->ndim > 1 || type_elements(t) < 0 ||
		type_elements(t) > CONTENTS_MAX || !vec_tensor(a->u.t, r))
		return false;
	r->n = (int)type_elements(t);
	for (int i = r->n; i-- > 0;)
		r->el[i] = r->el[0];
	return true;
}

static bool constant_contents(const Node *n, Vec *r)
{
	const Attr *a = node_attr(n, "value"), *v = node_attr(n, "value_int"),
		   *l = node_attr(n, "value_ints");
	if (a && a->type == AT_TENSOR)
		return vec_tensor(a->u.t, r);
	if (v && v->type == AT_INT) {
		r->n = 1;
		r->el[0] = el_num(v->u.i);
		return true;
	}
	if (!l || l->type != AT_INTS || l->n > CONTENTS_MAX)
		return false;
	r->n = l->n;
	for (int i = 0; i < l->n; i++)
		r->el[i] = el_num(l->u.is[i]);
	return true;
}

static bool product_contents(const Node *n, Vec *r)
{
	if (!vec_in(n, 0, r) || operand_ndim(n, 0) != 1 || n->out[0]->type->ndim < 0 ||
		type_elements(n->out[0]->type) != 1)
		return false;
	El p = el_num(!strcmp(n->op, "ReduceProd"));
	for (int i = 0; i < r->n; i++)
		p = el_arith(strcmp(n->op, "ReduceProd") ? "Add" : "Mul", p, r->el[i]);
	r->n = 1;
	r->el[0] = p;
	return true;
}

static bool same_contents(const Node *n, Vec *r)
{
	return vec_in(n, 0, r);
}

static bool same_length_contents(const Node *n, Vec *r)         /* Reshape, Expand of one element, ... */
{
	return vec_in(n, 0, r) && type_elements(n->out[0]->type) == r->n;
}

static bool expand_contents(const Node *n, Vec *r)
{
	int64_t len = type_elements(n->out[0]->type);
	if (!vec_in(n, 0, r) || len < 0 || len > CONTENTS_MAX || (r->n != 1 && r->n != len))
		return false;
	for (int i = (int)len; r->n == 1 && i-- > 0;)
		r->el[i] = r->el[0];
	r->n = (int)len;
	return true;
}

static const struct { const char *op; bool (*f)(const Node *, Vec *);
} content_rules[] = {
	{ "Shape", shape_op_contents },
	{ "Size", shape_op_contents },
	{ "Gather", gather_contents },
	{ "Concat", concat_contents },
	{ "Slice", slice_contents },
	{ "Unsqueeze", same_contents },
	{ "Squeeze", same_contents },
	{ "Cast", same_contents },
	{ "CastLike", same_contents },
	{ "Identity", same_contents },
	{ "Reshape", same_length_contents },
	{ "ConstantOfShape", fill_contents },
	{ "Constant", constant_contents },
	{ "Where", where_contents },
	{ "ReduceProd", product_contents },
	{ "ReduceSum", product_contents },
	{ "Expand", expand_contents },
	{ "Flatten", same_length_contents },
};

/* Sets elem of the first result of n when it is a small integer vector whose contents are known, at least in part. */
int contents_set(Node *n)
{
	Vec r;
	Value *y = n->nout > 0 ? n->out[0] : NULL;
	if (!y || y->data || !y->type || y->type->kind != TY_TENSOR || y->type->ndim < 0 ||
		y->type->ndim > 1 || *n->domain)
		return 0;
	if (y->type->elem != DT_INT64 && y->type->elem != DT_INT32 && y->type->elem != DT_BOOL)
		return 0;
	if (n->nin && operand_type(n, 0) && dtype_is_float(operand_dtype(n, 0)) && strcmp(n->op, "Shape") &&
		strcmp(n->op, "Size"))
		return 0;
	bool known = arith_contents(n, &r);
	for (size_t i = 0; !known && i < sizeof content_rules / sizeof *content_rules; i++)
		if (!strcmp(content_rules[i].op, n->op))
			known = content_rules[i].f(n, &r);
	if (!known || (y->type->ndim == 0 && r.n != 1))
		return 0;
	y->nelem = r.n;
	y->elem = arena_array(n->graph->arena, Dim, r.n + 1);
	for (int i = 0; i < r.n; i++)
		y->elem[i] = r.el[i].dim;
	return 0;
}

/* Slice. */
void contents_clamp(int64_t *start, int64_t *end, int64_t step, int64_t size)
{
	int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? size : size - 1;
	*start += *start < 0 ? size : 0;
	*end += *end < 0 ? size : 0;
	*start = *start < 0 ? 0 : *start;
	*start = *start > hi ? hi : *start;
	*end = *end < lo ? lo : *end > hi ? hi : *end;
}

void contents_range(const Node *n, int ndim, int *from, int *to)
{
	int64_t s = attr_int(n, "start"), e = attr_has(n, "end") ? attr_int(n, "end") : ndim;
	s = s < 0 ? s + ndim : s;
	e = e < 0 ? e + ndim : e;
	s = s < 0 ? 0 : s > ndim ? ndim : s;
	e = e < 0 ? 0 : e > ndim ? ndim : e;
	*from = (int)s;
	*to = e < s ? (int)s : (int)e;
}
