/* Operators of no family, most of them definitions in C because they depend on the number of axes or on the contents
 * of operands. */
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#define op2(n, op, a, b) expand_op(n, op, NULL, a, b)

static Value *one_int(Node *n, int64_t v)
{
	return expand_ints(n, &v, 1);
}

/* ---- Split as it was until opset 12 ---- */

static int expand_split(Node *n)
{
	int count;
	const int64_t *split = attr_ints(n, "split", &count);
	int axis = (int)attr_int(n, "axis");
	Value **outs = arena_array(n->graph->arena, Value *, n->nout);

	memcpy(outs, n->out, sizeof *outs * (size_t)n->nout);
	if (split && count != n->nout) {
		err_at(n->loc, "Split has %d sizes and %d results", count, n->nout);
		return -1;
	}
	if (split)
		return build(n->graph, n->loc, "Split", expand_attr(n, "axis=%d", axis), n->nout, outs, 2,
			       n->in[0], expand_ints(n, split, count))
		               ? 0
		               : -1;
	return build(n->graph, n->loc, "Split", expand_attr(n, "axis=%d, num_outputs=%d", axis, n->nout),
		       n->nout, outs, 1, n->in[0])
	               ? 0
	               : -1;
}

/* ---- Col2Im: every element of every window is added at its position in the image ---- */

typedef struct Image {
	int r; /* spatial axes */
	int64_t size[NDIM_MAX], block[NDIM_MAX], dil[NDIM_MAX], stride[NDIM_MAX], lo[NDIM_MAX],
		steps[NDIM_MAX];
	int64_t points, cells, windows; /* products of size, block and steps */
} Image;

static int read_image(Node *n, Image *m)
{
	const Tensor *size = expand_const(n, 1, "an image shape"),
		     *block = size ? expand_const(n, 2, "a block shape") : NULL;
	int nd, np, ns;
	const int64_t *dil = attr_ints(n, "dilations", &nd), *pad = attr_ints(n, "pads", &np),
		      *stride = attr_ints(n, "strides", &ns);

	if (!block)
		return -1;
	m->r = (int)tensor_elements(size);
	m->points = m->cells = m->windows = 1;
	if (m->r < 1 || m->r > 16 || tensor_elements(block) != m->r || (dil && nd != m->r) ||
		(stride && ns != m->r) || (pad && np != 2 * m->r)) {
		err_at(n->loc, "Col2Im: image, block, dilations, pads and strides do not have the same "
		               "number of axes");
		return -1;
	}
	for (int i = 0; i < m->r; i++) {
		m->size[i] = tensor_int(size, i);
		m->block[i] = tensor_int(block, i);
		m->dil[i] = dil ? dil[i] : 1;
		m->stride[i] = stride ? stride[i] : 1;
		m->lo[i] = pad ? pad[i] : 0;
		int64_t hi = pad ? pad[m->r + i] : 0, most = INT32_MAX;

		if (m->size[i] < 1 || m->size[i] > most || m->block[i] < 1 || m->block[i] > most ||
			m->dil[i] < 1 || m->dil[i] > most || m->stride[i] < 1 || m->lo[i] < 0 ||
			m->lo[i] > most || hi < 0 || hi > most) {
			err_at(n->loc,
				"Col2Im: sizes, dilations and strides must be at least 1, pads at least 0");
			return -1;
		}
		m->steps[i] =
			(m->size[i] + m->lo[i] + hi - m->dil[i] * (m->block[i] - 1) - 1) / m->stride[i] + 1;
		if (m->steps[i] < 1 || __builtin_mul_overflow(m->points, m->size[i], &m->points) ||
			__builtin_mul_overflow(m->cells, m->block[i], &m->cells) ||
			__builtin_mul_overflow(m->windows, m->steps[i], &m->windows)) {
			err_at(n->loc, "Col2Im: axis %d holds no window, or the image is too large", i);
			return -1;
		}
	}
	return 0;
}

/* The position of cell c of window w in the image; m->points: in the padding. */
static int64_t image_index(const Image *m, int64_t c, int64_t w)
{
	int64_t at = 0, scale = 1;

	for (int i = m->r - 1; i >= 0; i--) {
		int64_t p = w % m->steps[i] * m->stride[i] + c % m->block[i] * m->dil[i] - m->lo[i];

		if (p < 0 || p >= m->size[i])
			return m->points;
		at += p * scale;
		scale *= m->size[i];
		w /= m->steps[i];
		c /= m->block[i];
	}
	return at;
}

static int expand_col2im(Node *n)
{
	Type *x = operand_type(n, 0);
	DType type = operand_dtype(n, 0);
	Image m;

	if (read_image(n, &m))
		return -1;
	if (!expand_room(n, m.cells, m.windows))
		return -1;
	if (!x || x->ndim != 3 || dim_differ(x->dim[2], m.windows) ||
		(dim_known(x->dim[1]) && x->dim[1] % m.cells)) {
		err_at(operand_loc(n, 0), "Col2Im needs an operand [N, C * %lld, %lld], not %s",
			(long long)m.cells, (long long)m.windows, type_text(x));
		return -1;
	}
	int64_t total = m.cells * m.windows, column[2] = { total, 1 }, cells[1] = { m.cells },
		all[1] = { total }, slots[1] = { m.points + 1 };
	double *idx = arena_array(n->graph->scratch, double, total);
	for (int64_t c = 0; c < m.cells; c++)
		for (int64_t w = 0; w < m.windows; w++)
			idx[c * m.windows + w] = (double)image_index(&m, c, w);
	Value *batch = expand_op(n, "Shape", "start=0, end=1", n->in[0]);
	Value *chan =
		op2(n, "Div", expand_op(n, "Shape", "start=1, end=2", n->in[0]), expand_ints(n, cells, 1));
	/* [N, C, cells * windows] -> [cells * windows, N, C], added into [points + 1, N, C]: the last is for the
	 * padding */
	Value *v = expand_op(n, "Reshape", "allowzero=1", n->in[0],
		expand_op(n, "Concat", "axis=0", batch, chan, expand_ints(n, all, 1)));
	v = expand_op(n, "Transpose", "perm=[2, 0, 1]", v);
	Value *zeros = op2(n, "Expand", expand_num(n, type, 0),
		expand_op(n, "Concat", "axis=0", expand_ints(n, slots, 1), batch, chan));
	v = expand_op(
		n, "ScatterND", "reduction=\"add\"", zeros, expand_table(n, DT_INT64, idx, 2, column), v);
	v = expand_op(n, "Slice", NULL, v, one_int(n, 0), one_int(n, m.points), one_int(n, 0));
	v = expand_op(n, "Transpose", "perm=[1, 2, 0]", v);
	return expand_result(n, 0,
		expand_op(n, "Reshape", "allowzero=1", v,
			expand_op(n, "Concat", "axis=0", batch, chan, expand_ints(n, m.size, m.r))));
}

/* ---- CumProd: products over spans of 1, 2, 4, ... elements, so that zeros have their gradient too ---- */

/* v moved by s along axis, ones moving in. */
static Value *shift(Node *n, Value *v, DType type, int64_t axis, int64_t len, int64_t s, bool up)
{
	int64_t pads[2] = { up ? s : 0, up ? 0 : s }, from = up ? 0 : s, to = up ? len - s : len;
	Value *cut = expand_op(n, "Slice", NULL, v, one_int(n, from), one_int(n, to), one_int(n, axis));

	return expand_op(
		n, "Pad", NULL, cut, expand_ints(n, pads, 2), expand_num(n, type, 1), one_int(n, axis));
}

static int expand_cumprod(Node *n)
{
	Type *x = operand_type(n, 0);
	const Tensor *t = expand_const(n, 1, "an axis");
	bool up = attr_int(n, "reverse") == 0;
	Value *v = n->in[0];
	int axis;

	if (!t || tensor_elements(t) != 1)
		return -1;
	if (!x || x->ndim < 0) {
		err_at(operand_loc(n, 0), "CumProd needs an operand with a known number of axes");
		return -1;
	}
	if (op_axis(n, tensor_int(t, 0), x->ndim, &axis))
		return -1;
	int64_t len = x->dim[axis];
	if (!dim_known(len)) {
		err_at(operand_loc(n, 0), "CumProd needs a known size along axis %d of %s", axis, type_text(x));
		return -1;
	}
	if (attr_int(n, "exclusive") && len)
		v = shift(n, v, x->elem, axis, len, 1, up);
	for (int64_t s = 1; s < len; s *= 2)
		v = op2(n, "Mul", v, shift(n, v, x->elem, axis, len, s, up));
	return expand_result(n, 0, v);
}

/* ---- BitCast ---- */

static int shape_bitcast(Node *n)
{
	Type *x = operand_type(n, 0);
	int64_t to = attr_int(n, "to");

	if (to <= 0 || to >= DT_COUNT || to == DT_STRING ||
		(x && dtype_bits(x->elem) != dtype_bits((DType)to))) {
		err_at(n->loc, "BitCast cannot see %s as %s: the widths differ", type_text(x),
			to > 0 && to < DT_COUNT ? dtype_name((DType)to) : "an unknown type");
		return -1;
	}
	operand_set_result(n, 0, (DType)to, x ? x->ndim : -1, x ? x->dim : NULL);
	return 0;
}

/* The tensor in its declared type: the evaluator may hold floats as doubles. */
static const Tensor *declared(const Tensor *t, DType type, Arena *a)
{
	if (t->dtype == type)
		return t;
	Tensor *r = tensor_new(a, type, t->ndim, t->dim);
	for (int64_t i = 0; i < tensor_elements(t); i++)
		tensor_set(r, i, tensor_get(t, i));
	return r;
}

static int eval_bitcast(Node *n, Tensor **in, Tensor **out)
{
	Arena a = { 0 };
	const Tensor *from = declared(in[0], operand_dtype(n, 0), &a);
	Tensor *to = out[0]->dtype == (DType)attr_int(n, "to")
	                     ? out[0]
	                     : tensor_new(&a, (DType)attr_int(n, "to"), out[0]->ndim, out[0]->dim);

	memcpy((void *)to->data, from->data, from->bytes);
	for (int64_t i = 0; to != out[0] && i < tensor_elements(to); i++)
		tensor_set(out[0], i, tensor_get(to, i));
	arena_free(&a);
	return 0;
}

/* ---- Unique: its results' sizes depend on the contents, so the operand must be known ---- */

typedef struct Items {
	int64_t n, len, outer,
		/* items, elements of each; element e of item i is at (e / inner) * n * inner + i * inner + e % inner */
		inner;
	const double *f;
	const int64_t *i; /* integers are compared as such */
} Items;

static int64_t element(const Items *s, int64_t item, int64_t e)
{
	return (e / s->inner * s->n + item) * s->inner + e % s->inner;
}

static int compare(const void *a, const void *b, void *arg)
{
	const Items *s = arg;
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	for (int64_t e = 0; e < s->len; e++) {
		int64_t p = element(s, x, e), q = element(s, y, e);
		int c = s->f ? (s->f[p] > s->f[q]) - (s->f[p] < s->f[q])
		             : (s->i[p] > s->i[q]) - (s->i[p] < s->i[q]);

		if (c)
			return c;
	}
	return 0;
}

static int by_position(const void *a, const void *b, void *arg)
{
	const Items *s = arg;
	int c = compare(a, b, arg);
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	(void)s;
	return c ? c : (x > y) - (x < y);
}

static int by_first(const void *a, const void *b)
{
	int64_t x = ((const int64_t *)a)[0], y = ((const int64_t *)b)[0];

	return (x > y) - (x < y);
}

/* Finds the groups of equal items: group[g] = { first item, count, index when sorted }; of[item] is the index of the
 * group of an item. */
static int64_t unique(const Items *s, Arena *a, int64_t (**groups)[3], int64_t **of)
{
	int64_t *order = arena_array(a, int64_t, s->n + 1),
		(*g)[3] = arena_alloc(a, sizeof *g * (size_t)(s->n + 1)), n = 0;

	*of = arena_array(a, int64_t, s->n + 1);
	for (int64_t i = 0; i < s->n; i++)
		order[i] = i;
	qsort_r(order, (size_t)s->n, sizeof *order, by_position, (void *)s);
	for (int64_t i = 0; i < s->n; i++) {
		if (i == 0 || compare(&order[i - 1], &order[i], (void *)s)) {
			g[n][0] = order[i];
			g[n][1] = 0;
			g[n][2] = n;
			n++;
		}
		g[n - 1][1]++;
		(*of)[order[i]] = n - 1;
	}
	*groups = g;
	return n;
}

static int items_of(Node *n, const Tensor *t, Arena *a, Items *s)
{
	int64_t count = tensor_elements(t);
	double *f = NULL;
	int64_t *v = NULL;
	int axis;

	*s = (Items){ .n = count, .len = 1, .outer = 1, .inner = 1 };
	if (attr_has(n, "axis")) {
		if (op_axis(n, attr_int(n, "axis"), t->ndim, &axis))
			return -1;
		s->n = t->dim[axis];
		s->len = s->n ? count / s->n : 0;
		for (int i = axis + 1; i < t->ndim; i++)
			s->inner *= t->dim[i];
		s->inner = s->inner ? s->inner : 1;
	}
	if (dtype_is_float(t->dtype))
		f = arena_array(a, double, count + 1);
	else
		v = arena_array(a, int64_t, count + 1);
	for (int64_t i = 0; i < count; i++)
		if (f)
			f[i] = tensor_get(t, i);
		else
			v[i] = tensor_int(t, i);
	s->f = f;
	s->i = v;
	return 0;
}

static int shape_unique(Node *n)
{
	const Tensor *t = operand_const(n, 0);
	Type *x = operand_type(n, 0);
	Dim dim[NDIM_MAX] = { DIM_UNKNOWN }, one = DIM_UNKNOWN, all = DIM_UNKNOWN;
	bool whole = !attr_has(n, "axis");
	int ndim = whole ? 1 : x ? x->ndim : -1, axis = 0;

	if (t) {
		Arena a = { 0 };
		Items s;
		int64_t(*g)[3], *of;

		if (items_of(n, t, &a, &s) < 0) {
			arena_free(&a);
			return -1;
		}
		one = unique(&s, &a, &g, &of);
		all = s.n;
		arena_free(&a);
	} else if (x && x->ndim >= 0 && whole && type_elements(x) >= 0) {
		all = type_elements(x);
	}
	if (!whole && ndim >= 0) {
		if (op_axis(n, attr_int(n, "axis"), ndim, &axis))
			return -1;
		memcpy(dim, x->dim, sizeof *dim * (size_t)ndim);
		all = dim[axis];
	}
	dim[axis] = one;
	operand_set_result(n, 0, operand_dtype(n, 0), ndim, dim);
	operand_set_result(n, 1, DT_INT64, 1, &one);
	operand_set_result(n, 2, DT_INT64, 1, &all);
	operand_set_result(n, 3, DT_INT64, 1, &one);
	return 0;
}

static int eval_unique(Node *n, Tensor **in, Tensor **out)
{
	Arena a = { 0 };
	Items s;
	int64_t(*g)[3], *of, count;

	if (items_of(n, in[0], &a, &s) < 0) {
		arena_free(&a);
		return -1;
	}
	count = unique(&s, &a, &g, &of);
	int64_t *nth = arena_array(&a, int64_t, count + 1);
	if (!attr_int(n, "sorted"))
		qsort(g, (size_t)count, sizeof *g, by_first);
	for (int64_t i = 0; i < count; i++)
		nth[g[i][2]] = i;
	for (int64_t i = 0; i < count; i++) {
		for (int64_t e = 0; n->out[0] && e < s.len; e++) {
			int64_t to = (e / s.inner * count + i) * s.inner + e % s.inner,
				from = element(&s, g[i][0], e);

			if (s.f)
				tensor_set(out[0], to, s.f[from]);
			else
				tensor_set_int(out[0], to, s.i[from]);
		}
		if (n->nout > 1 && n->out[1])
			tensor_set_int(out[1], i, g[i][0]);
		if (n->nout > 3 && n->out[3])
			tensor_set_int(out[3], i, g[i][1]);
	}
	for (int64_t i = 0; n->nout > 2 && n->out[2] && i < s.n; i++)
		tensor_set_int(out[2], i, nth[of[i]]);
	arena_free(&a);
	return 0;
}

/* clang-format off */
const Op ops_misc[] = {
	/* x itself, through which no gradient flows */
	{ .name = "Detach", .domain = "sbpcc", .since = 1, .sig = "x:T -> y:T",
	  .shape = shape_like_first, .expr = "x", .factors = "... -> ...", .linear = "x", .nograd = true,
	  .cost = cost_pointwise, .flops = 0, .test = "x:[2,3]" },
	/* e^x - 1 without cancellation near 0 */
	{ .name = "Expm1", .domain = "sbpcc", .since = 1, .sig = "x:F -> y:F",
	  .shape = shape_like_first, .expr = "expm1(x)", .factors = "... -> ...", .grad = "dx = Mul(dy, Add(y, 1))",
	  .cost = cost_pointwise, .flops = 8, .test = "x:[2,3]" },
	{ .name = "Split", .since = 2, .until = 12, .sig = "x:T -> y:T+", .attrs = "axis:int=0 split:ints",
	  .expand = expand_split, .test = "x:[4,3] =split:[4]" },
	{ .name = "Col2Im", .since = 18, .sig = "x:N image_shape:int64 block_shape:int64 -> y:N",
	  .attrs = "dilations:ints pads:ints strides:ints", .expand = expand_col2im,
	  .test = "x:[1,4,4] image_shape:{3,3} block_shape:{2,2} | "
	          "x:[2,6,4] image_shape:{4,4} block_shape:{1,3} =strides:[2,2] =pads:[0,0,0,1]" },
	{ .name = "CumProd", .since = 26, .sig = "x:N axis:I -> y:N", .attrs = "exclusive:int=0 reverse:int=0",
	  .expand = expand_cumprod, .test = "x:[2,4] axis:{1} | x:[3,2] axis:{0} =reverse:1 =exclusive:1" },
	{ .name = "BitCast", .since = 26, .sig = "x:T -> y:T1", .attrs = "to:int!",
	  .shape = shape_bitcast, .kernel = "copy", .eval = eval_bitcast, .factors = "... -> ...", .nograd = true,
	  .cost = cost_bytes, .test = "x:[2,3] =to:7" },
	{ .name = "Unique", .since = 11, .sig = "x:T -> y:T indices:int64? inverse_indices:int64? counts:int64?",
	  .attrs = "axis:int sorted:int=1", .shape = shape_unique, .kernel = "unique", .eval = eval_unique,
	  .unsplit = "as many as are found", .nograd = true, .cost = cost_bytes, .test = "x:[6]" },
	{ 0 },
};
/* clang-format on */
