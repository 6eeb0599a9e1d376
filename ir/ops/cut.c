/* Operators that join, cut and pad: the result consists of runs of its operands, and of a border.  Concat and Split are
 * each other's gradient; Slice and Pad have gradients of their own, which put elements back where they came from. */
#include "ops.h"
#include <string.h>

/* Concat and Split: pieces of equal length make the axis a product, their number x the length of one. */
static int factor_but_axis(Node *n, FactorRule *r)
{
	bool whole[NDIM_MAX] = { false }, equal = true, cut = !strcmp(n->op, "Split");
	int axis, count = cut ? n->nout : n->nin;
	if (operand_ndim(n, 0) < 0 || op_axis(n, attr_int(n, "axis"), operand_ndim(n, 0), &axis) != 0)
		return -1;
	whole[axis] = true;
	if (factor_keep(n, r, whole) != 0)
		return -1;
	const Type *first = NULL;
	for (int i = 0; i < count; i++) {
		const Value *v = cut ? n->out[i] : n->in[i];
		const Type *t = v ? v->type : NULL;
		first = first ? first : t;
		equal &= t && t->ndim > axis && dim_same(t->dim[axis], first->dim[axis]);
	}
	if (!equal || !first || first->dim[axis] == 0)
		return 0;
	int f = factor_add(r, first->dim[axis]);
	for (int i = 0; i < count; i++)
		(cut ? r->out : r->in)[i][axis] = f;
	factor_product(r, !cut, 0, axis, 2, (SubFactor[]){ { -1, count }, { f, 0 } });
	return 0;
}

static void fit_split(Node *shard, const Node *logical)
{
	int64_t len[256];
	int axis;
	if (shard->nin < 2 || !shard->in[1] || shard->nout > 256 ||
		op_axis(shard, attr_int(shard, "axis"), operand_ndim(shard, 0), &axis) != 0)
		return;
	for (int i = 0; i < shard->nout; i++)
		len[i] = shard->out[i] ? shard->out[i]->type->dim[axis] : tensor_int(logical->in[1]->data, i);
	shard->in[1]->data = tensor_ints(shard->graph->scratch, len, shard->nout);
}

static int shape_concat(Node *n)
{
	int ndim = -1, axis = 0;
	Dim dim[NDIM_MAX];
	for (int i = 0; i < n->nin; i++)
		if (operand_ndim(n, i) < 0) {
			operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
			return 0;
		}
	for (int i = 0; i < n->nin; i++) {
		const Type *t = operand_type(n, i);
		if (ndim < 0) {
			ndim = t->ndim;
			if (op_axis(n, attr_int(n, "axis"), ndim, &axis) != 0)
				return -1;
			memcpy(dim, t->dim, (size_t)ndim * sizeof *dim);
			continue;
		}
		bool bad = t->ndim != ndim;
		for (int a = 0; !bad && a < ndim; a++) {
			if (a == axis)
				dim[a] = dim_add(dim[a], t->dim[a]);
			else if (dim_differ(dim[a], t->dim[a]))
				bad = true;
			else if (!dim_known(dim[a]) && t->dim[a] != DIM_UNKNOWN)
				dim[a] = t->dim[a];
		}
		if (bad) {
			err_at(operand_loc(n, i), "Concat along axis %d: %s is %s, %s is %s", axis, n->in[0]->name,
				type_text(operand_type(n, 0)), n->in[i]->name, type_text(t));
			return -1;
		}
	}
	operand_set_result(n, 0, operand_dtype(n, 0), ndim, dim);
	return 0;
}

static int eval_concat(Node *n, Tensor **in, Tensor **out)
{
	int axis;
	int64_t outer = 1, inner = 1, at = 0;
	if (op_axis(n, attr_int(n, "axis"), out[0]->ndim, &axis) != 0)
		return -1;
	for (int a = 0; a < axis; a++)
		outer *= out[0]->dim[a];
	for (int a = axis + 1; a < out[0]->ndim; a++)
		inner *= out[0]->dim[a];
	for (int64_t o = 0; o < outer; o++)
		for (int i = 0; i < n->nin; i++) {
			int64_t run = in[i]->dim[axis] * inner;
			eval_copy(in[i], o * run, out[0], at, run);
			at += run;
		}
	return 0;
}

/* Lengths along the axis as a value: constants where they are known. */
static Value *lengths_along(Node *n, int axis)
{
	Graph *g = n->graph;
	int64_t *len = arena_array(g->arena, int64_t, n->nin);
	bool known = true;
	for (int i = 0; i < n->nin && known; i++) {
		const Type *t = operand_type(n, i);
		known = t && t->ndim > axis && dim_known(t->dim[axis]);
		len[i] = known ? t->dim[axis] : 0;
	}
	if (known)
		return graph_const(g, tensor_ints(g->arena, len, n->nin), "lengths");
	char text[48];
	snprintf(text, sizeof text, "start=%d,end=%d", axis, axis + 1);
	Value *all = NULL;
	for (int i = 0; i < n->nin; i++) {
		Value *one = build(g, n->loc, "Shape", text, 1, NULL, 1, n->in[i]);
		all = all ? build(g, n->loc, "Concat", "axis=0", 1, NULL, 2, all, one) : one;
	}
	return all;
}

static int grad_concat(Node *n, Value **dout, Value **din)
{
	int axis;
	if (operand_ndim(n, 0) < 0)
		die("Concat of an unknown number of axes has no gradient");
	if (op_axis(n, attr_int(n, "axis"), operand_ndim(n, 0), &axis) != 0)
		return -1;
	char text[24];
	snprintf(text, sizeof text, "axis=%d", axis);
	Value **piece = arena_array(n->graph->arena, Value *, n->nin);
	if (!build(n->graph, n->loc, "Split", text, n->nin, piece, 2, dout[0], lengths_along(n, axis)))
		return -1;
	for (int i = 0; i < n->nin; i++)
		din[i] = piece[i];
	return 0;
}

static int split_sizes(Node *n, Dim whole, Dim *size)
{
	const Tensor *t = n->nin > 1 && n->in[1] ? operand_const(n, 1) : NULL;
	int k = n->nout;
	if (n->nin > 1 && n->in[1]) {
		Dim sum = 0;
		int got = operand_dims(n, 1, size, k);
		int64_t len = t ? tensor_elements(t) : operand_length(n, 1);
		if (len >= 0 && len != k) {
			err_at(operand_loc(n, 1), "Split: %d results, but %lld lengths", k, (long long)len);
			return -1;
		}
		for (int i = 0; i < k && got < 0; i++)
			size[i] = DIM_UNKNOWN;
		for (int i = 0; i < k; i++) {
			if (t && size[i] < 0) {
				err_at(operand_loc(n, 1), "Split: a length is negative, %lld",
					(long long)tensor_int(t, i));
				return -1;
			}
			sum = dim_add(sum, size[i]);
		}
		if (dim_differ(sum, whole)) {
			err_at(operand_loc(n, 1), "Split: the lengths add up to %s, but the axis has %s",
				dim_text(sum), dim_text(whole));
			return -1;
		}
		return 0;
	}
	if (attr_has(n, "num_outputs") && attr_int(n, "num_outputs") != k) {
		err_at(n->loc, "Split: num_outputs is %lld, but there are %d results",
			(long long)attr_int(n, "num_outputs"), k);
		return -1;
	}
	if (!attr_has(n, "num_outputs") && dim_known(whole) && whole % k != 0) {
		err_at(n->loc, "Split: an axis of %lld cannot be cut into %d equal parts", (long long)whole,
			k);
		return -1;
	}
	Dim chunk = dim_known(whole) ? (whole + k - 1) / k : dim_div(whole, k), left = whole;
	for (int i = 0; i < k; i++) {
		size[i] = dim_known(left) && dim_known(chunk) && left < chunk ? left : chunk;
		left = dim_known(left) ? left - size[i] : left;
	}
	return 0;
}

static int shape_split(Node *n)
{
	const Type *x = operand_type(n, 0);
	int axis;
	Dim dim[NDIM_MAX];
	if (!x || x->ndim < 0) {
		for (int i = 0; i < n->nout; i++)
			operand_set_result(n, i, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	Dim *size = arena_array(n->graph->arena, Dim, n->nout + 1);
	if (split_sizes(n, x->dim[axis], size) != 0)
		return -1;
	memcpy(dim, x->dim, (size_t)x->ndim * sizeof *dim);
	for (int i = 0; i < n->nout; i++) {
		dim[axis] = size[i];
		operand_set_result(n, i, x->elem, x->ndim, dim);
	}
	return 0;
}

static int eval_split(Node *n, Tensor **in, Tensor **out)
{
	int axis;
	int64_t outer = 1, inner = 1, at = 0;
	if (op_axis(n, attr_int(n, "axis"), in[0]->ndim, &axis) != 0)
		return -1;
	for (int a = 0; a < axis; a++)
		outer *= in[0]->dim[a];
	for (int a = axis + 1; a < in[0]->ndim; a++)
		inner *= in[0]->dim[a];
	Dim *size = eval_scratch((size_t)n->nout * sizeof *size);
	if (split_sizes(n, in[0]->dim[axis], size) != 0)
		return -1;
	for (int64_t o = 0; o < outer; o++)
		for (int i = 0; i < n->nout; i++) {
			int64_t run = size[i] * inner;
			if (out[i])
				eval_copy(in[0], at, out[i], o * run, run);
			at += run;
		}
	return 0;
}

/* One node joins all terms: if its pieces are equal, it can be split inside each piece; nested Concats cannot. */
static int grad_split(Node *n, Value **dout, Value **din)
{
	Graph *g = n->graph;
	char text[24];
	snprintf(text, sizeof text, "axis=%lld", (long long)attr_int(n, "axis"));
	Value **piece = arena_array(g->arena, Value *, n->nout);
	for (int i = 0; i < n->nout; i++) {
		piece[i] = dout[i];
		if (!piece[i] && n->out[i])
			piece[i] = build(g, n->loc, "ZerosLike", NULL, 1, NULL, 1, n->out[i]);
		if (!piece[i])
			die("Split: a result that is not there has no gradient");
	}
	din[0] = n->nout == 1 ? build(g, n->loc, "Identity", NULL, 1, NULL, 1, piece[0])
	                      : expand_node(n, "Concat", text, n->nout, piece);
	return din[0] ? 0 : -1;
}

static int64_t slice_length(int64_t start, int64_t end, int64_t step)
{
	if (step > 0)
		return end > start ? (end - start - 1) / step + 1 : 0;
	uint64_t by = 0 - (uint64_t)step;
	return start > end ? (int64_t)(((uint64_t)(start - end) - 1) / by) + 1 : 0;
}

/* The axis of the k-th entry of starts. */
static int slice_axis(Node *n, const Tensor *axes, int k, int ndim, int *axis)
{
	if (!axes) {
		*axis = k;
		return 0;
	}
	return op_axis(n, tensor_int(axes, k), ndim, axis);
}

typedef struct Slices { int64_t start[NDIM_MAX], step[NDIM_MAX]; } Slices;

static int slice_symbolic(Node *n, const Type *x, Dim *dim, int at)
{
	const Tensor *s = operand_const(n, at), *e = operand_const(n, at + 1), *ax = operand_const(n, at + 2),
		     *st = operand_const(n, at + 3);
	Dim end[NDIM_MAX];
	int64_t len = s ? tensor_elements(s) : operand_length(n, at);
	bool axes = n->nin > at + 2 && n->in[at + 2], steps = n->nin > at + 3 && n->in[at + 3];
	if ((axes && !ax) || len < 0) {
		for (int a = 0; a < x->ndim; a++)
			dim[a] = DIM_UNKNOWN;
		return 0;
	}
	if (!axes && len > x->ndim) {
		err_at(operand_loc(n, at), "%s: %lld starts for %s", n->op, (long long)len, type_text(x));
		return -1;
	}
	if ((axes && tensor_elements(ax) != len) || (s && e && tensor_elements(e) != len) ||
		(st && tensor_elements(st) != len)) {
		err_at(n->loc, "%s: starts, ends, axes and steps must have the same length", n->op);
		return -1;
	}
	int got = operand_dims(n, at + 1, end, NDIM_MAX);
	for (int k = 0; k < len; k++) {
		int axis;
		if (slice_axis(n, axes ? ax : NULL, k, x->ndim, &axis) != 0)
			return -1;
		int64_t step = st ? tensor_int(st, k) : 1;
		if (step == 0) {
			err_at(operand_loc(n, at + 3), "%s: a step is zero", n->op);
			return -1;
		}
		Dim d = x->dim[axis], *r = &dim[axis];
		*r = DIM_UNKNOWN;
		if (!s || (steps && !st) || (!e && got != len))
			continue;
		int64_t from = tensor_int(s, k), to = e ? tensor_int(e, k) : INT64_MAX;
		if (e && dim_known(d)) {
			contents_clamp(&from, &to, step, d);
			*r = slice_length(from, to, step);
		} else if (step == 1 && e && to >= INT32_MAX && from >= 0 && d != DIM_UNKNOWN) {
			*r = from ? dim_sub(d, from) : d;
		} else if (step == 1 && e && to < 0 && to > -INT32_MAX && from >= 0 && d != DIM_UNKNOWN) {
			*r = dim_sub(d, from - to);
		} else if (step == 1 && from == -1 && (to >= INT32_MAX)) {
			*r = 1;         /* the last one */
		} else if (step == 1 && !e && from >= 0 && end[k] != DIM_UNKNOWN) {
			*r = dim_sub(end[k], from);     /* a symbolic end is within the axis */
		}
	}
	return 0;
}

static int shape_slice(Node *n)
{
	const Type *x = operand_type(n, 0);
	Dim dim[NDIM_MAX];
	if (!x || x->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	memcpy(dim, x->dim, (size_t)x->ndim * sizeof *dim);
	if (slice_symbolic(n, x, dim, 1) != 0)
		return -1;
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

/* The slices of a tensor of the given shape, operands at in[at] to in[at + 3]. */
static int read_slices(Node *n, Tensor **in, int at, const Tensor *x, Slices *s)
{
	const Tensor *axes = n->nin > at + 2 ? in[at + 2] : NULL,
		     *steps = n->nin > at + 3 ? in[at + 3] : NULL;
	for (int a = 0; a < x->ndim; a++) {
		s->start[a] = 0;
		s->step[a] = 1;
	}
	for (int k = 0; k < tensor_elements(in[at]); k++) {
		int a;
		if (slice_axis(n, axes, k, x->ndim, &a) != 0)
			return -1;
		int64_t end = tensor_int(in[at + 1], k);
		s->start[a] = tensor_int(in[at], k);
		s->step[a] = steps ? tensor_int(steps, k) : 1;
		contents_clamp(&s->start[a], &end, s->step[a], x->dim[a]);
	}
	return 0;
}

static int eval_slice(Node *n, Tensor **in, Tensor **out)
{
	Slices s;
	int64_t stride[NDIM_MAX], base = 0;
	if (tensor_elements(out[0]) == 0)
		return 0;
	if (read_slices(n, in, 1, in[0], &s) != 0)
		return -1;
	eval_strides(in[0], stride);
	for (int a = 0; a < in[0]->ndim; a++) {
		base += s.start[a] * stride[a];
		stride[a] = out[0]->dim[a] > 1 ? stride[a] * s.step[a] : 0;
	}
	eval_strided(in[0], base, stride, out[0]);
	return 0;
}

/* SliceGrad: a tensor of zeros with dy where Slice took its elements from. */
static int eval_slice_grad(Node *n, Tensor **in, Tensor **out)
{
	Slices s;
	int64_t stride[NDIM_MAX], idx[NDIM_MAX] = { 0 }, at = 0, total = tensor_elements(in[0]);
	const Tensor *dy = in[0];
	if (total == 0)
		return 0;
	if (read_slices(n, in, 2, out[0], &s) != 0)
		return -1;
	eval_strides(out[0], stride);
	for (int a = 0; a < dy->ndim; a++) {
		at += s.start[a] * stride[a];
		stride[a] = dy->dim[a] > 1 ? stride[a] * s.step[a] : 0;
	}
	for (int64_t i = 0; i < total; i++) {
		eval_copy(dy, i, out[0], at, 1);
		at = tensor_next(dy->ndim, dy->dim, stride, idx, at);
	}
	return 0;
}

/* The operands of a slice must fit the shapes of dy and like. */
static int shape_slice_grad(Node *n)
{
	const Type *dy = operand_type(n, 0), *like = operand_type(n, 1);
	Dim dim[NDIM_MAX];
	if (dy && like && dy->ndim >= 0 && like->ndim >= 0) {
		memcpy(dim, like->dim, (size_t)like->ndim * sizeof *dim);
		if (slice_symbolic(n, like, dim, 2) != 0)
			return -1;
		bool bad = dy->ndim != like->ndim;
		for (int a = 0; !bad && a < dy->ndim; a++)
			bad = dim_differ(dy->dim[a], dim[a]);
		if (bad) {
			err_at(n->loc, "SliceGrad: the slice of %s is not %s", type_text(like),
				type_text(dy));
			return -1;
		}
	}
	return movement_like_second(n);
}

/* Pad. */
typedef enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP, PAD_WRONG } PadMode;

static PadMode pad_mode(Node *n)
{
	static const char *const names[] = { "constant", "reflect", "edge", "wrap" };
	Name s = attr_str(n, "mode");
	for (int i = 0; i < 4; i++)
		if (!strcmp(s, names[i]))
			return (PadMode)i;
	err_at(n->loc, "%s: mode must be constant, reflect, edge or wrap, not %s", n->op, s);
	return PAD_WRONG;
}

/* Pads before and after each axis, from operands at and axes_at; 1 when they are not known. */
int cut_pads(Node *n, int at, int axes_at, int ndim, int64_t *before, int64_t *after)
{
	const Tensor *p = operand_const(n, at), *axes = operand_const(n, axes_at);
	bool has_axes = n->nin > axes_at && n->in[axes_at];
	if (!p || (has_axes && !axes))
		return 1;
	int64_t k = has_axes ? tensor_elements(axes) : ndim;
	if (tensor_elements(p) != 2 * k) {
		err_at(operand_loc(n, at), "%s: %lld pads for %lld axes", n->op, (long long)tensor_elements(p),
			(long long)k);
		return -1;
	}
	for (int a = 0; a < ndim; a++)
		before[a] = after[a] = 0;
	for (int i = 0; i < k; i++) {
		int a = i;
		if (has_axes && op_axis(n, tensor_int(axes, i), ndim, &a) != 0)
			return -1;
		before[a] = tensor_int(p, i);
		after[a] = tensor_int(p, i + k);
		if (before[a] < -limits.elements || before[a] > limits.elements ||
			after[a] < -limits.elements || after[a] > limits.elements) {
			err_at(operand_loc(n, at), "%s: the pads %lld and %lld of axis %d are out of range", n->op,
				(long long)before[a], (long long)after[a], a);
			return -1;
		}
	}
	return 0;
}

static Dim padded(Dim d, int64_t by)
{
	return by >= 0 ? dim_add(d, by) : dim_sub(d, -by);
}

static int shape_pad(Node *n)
{
	const Type *x = operand_type(n, 0);
	Dim dim[NDIM_MAX];
	int64_t before[NDIM_MAX], after[NDIM_MAX];
	PadMode mode = pad_mode(n);
	if (mode == PAD_WRONG)
		return -1;
	if (!x || x->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	int bad = cut_pads(n, 1, 3, x->ndim, before, after);
	if (bad)
		return bad < 0 ? -1 : shape_any(n, 0, x->elem, x->ndim);
	for (int a = 0; a < x->ndim; a++) {
		dim[a] = padded(x->dim[a], before[a] + after[a]);
		if (dim_known(x->dim[a]) && x->dim[a] + before[a] + after[a] < 0) {
			err_at(operand_loc(n, 1), "Pad: axis %d of %s cannot lose %lld elements", a, type_text(x),
				(long long)-(before[a] + after[a]));
			return -1;
		}
		if (mode != PAD_CONSTANT && x->dim[a] == 0 && dim[a] != 0) {
			err_at(operand_loc(n, 1), "Pad: axis %d of %s is empty, so mode %s has nothing to repeat",
				a, type_text(x), attr_str(n, "mode"));
			return -1;
		}
	}
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

/* The element of an axis of n elements at position i of the padded axis; -1: none. */
static int64_t pad_source(PadMode mode, int64_t i, int64_t n)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case PAD_EDGE: return i < 0 ? 0 : n - 1;
	case PAD_WRAP: return (i % n + n) % n;
	case PAD_REFLECT: {
		int64_t period = n > 1 ? 2 * (n - 1) : 1, k = (i % period + period) % period;
		return k < n ? k : period - k;
	}
	default: return -1;
	}
}

/* For every element of the padded tensor, the element of the plain one, or -1. */
static int64_t *pad_map(Node *n, PadMode mode, int at, int axes_at, const Tensor *plain, const Tensor *big)
{
	int64_t before[NDIM_MAX], after[NDIM_MAX], stride[NDIM_MAX], total = tensor_elements(big);
	if (cut_pads(n, at, axes_at, plain->ndim, before, after) != 0)
		return NULL;
	int64_t *map = eval_scratch((size_t)total * sizeof *map), inner = 1;
	eval_strides(plain, stride);
	for (int a = big->ndim; a-- > 0; inner *= big->dim[a])
		for (int64_t i = 0; i < total; i++) {
			if (map[i] < 0)
				continue;
			int64_t s = pad_source(mode, i / inner % big->dim[a] - before[a], plain->dim[a]);
			map[i] = s < 0 ? -1 : map[i] + s * stride[a];
		}
	return map;
}

static int eval_pad(Node *n, Tensor **in, Tensor **out)
{
	PadMode mode = pad_mode(n);
	const Tensor *fill = n->nin > 2 ? in[2] : NULL;
	if (mode == PAD_WRONG)
		return -1;
	if (fill && tensor_elements(fill) != 1) {
		err_at(operand_loc(n, 2), "Pad: the value must be a scalar");
		return -1;
	}
	int64_t *map = pad_map(n, mode, 1, 3, in[0], out[0]);
	for (int64_t i = 0; map && i < tensor_elements(out[0]); i++)
		if (map[i] >= 0)
			eval_copy(in[0], map[i], out[0], i, 1);
		else if (fill)
			eval_copy(fill, 0, out[0], i, 1);
	return map ? 0 : -1;
}

static int shape_pad_grad(Node *n)
{
	return pad_mode(n) == PAD_WRONG ? -1 : movement_like_second(n);
}

static int eval_pad_grad(Node *n, Tensor **in, Tensor **out)
{
	PadMode mode = pad_mode(n);
	if (mode == PAD_WRONG)
		return -1;
	int64_t *map = pad_map(n, mode, 2, 3, out[0], in[0]);
	if (!map)
		return -1;
	double *dy = eval_doubles(in[0]), *dx = eval_scratch((size_t)tensor_elements(out[0]) * sizeof *dx);
	for (int64_t i = 0; i < tensor_elements(in[0]); i++)
		if (map[i] >= 0)
			dx[map[i]] += dy[i];
	eval_store(out[0], dx);
	return 0;
}

/* clang-format off */
const Op ops_cut[] = {
	{ .name = "Concat", .since = 4, .sig = "x:T+ -> y:T", .attrs = "axis:int!",
	  .shape = shape_concat, .kernel = "concat", .eval = eval_concat, .factor_fn = factor_but_axis, .linear = "x",
	  .grad_fn = grad_concat, .cost = cost_bytes, .test = "x:[2,3] x:[2,1] x:[2,2] =axis:1 | x:[2,3] =axis:-1" },
	{ .name = "Split", .since = 13, .sig = "x:T split:int64? -> y:T+", .attrs = "axis:int=0 num_outputs:int",
	  .shape = shape_split, .kernel = "split", .eval = eval_split,
	  .factor_fn = factor_but_axis, .fit = fit_split, .linear = "x", .grad_fn = grad_split, .cost = cost_bytes,
	  .test = "x:[4,3] split:{4} | x:[4,3] =axis:1 =num_outputs:1" },
	{ .name = "Slice", .since = 10, .sig = "x:T starts:I ends:I axes:I? steps:I? -> y:T",
	  .shape = shape_slice, .kernel = "slice", .eval = eval_slice, .factor_fn = factor_keep_equal, .linear = "x",
	  .grad = "dx = SliceGrad(dy, x, starts, ends, axes, steps)", .cost = cost_bytes,
	  .test = "x:[4,5] starts:{1,0} ends:{3,4} | x:[4,5] starts:{-1} ends:{-10} axes:{1} steps:{-2} | "
	          "x:[4,5] starts:{3} ends:{100} axes:{0}" },
	{ .name = "SliceGrad", .domain = "sbpcc", .since = 1,
	  .sig = "dy:T like:T starts:I ends:I axes:I? steps:I? -> dx:T",
	  .shape = shape_slice_grad, .kernel = "slice_grad", .eval = eval_slice_grad,
	  .factor_fn = factor_keep_equal, .linear = "dy", .grad = "ddy = Slice(ddx, starts, ends, axes, steps)",
	  .cost = cost_bytes,
	  .test = "dy:[2,4] like:[4,5] starts:{1,0} ends:{3,4} | "
	          "dy:[4,3] like:[4,5] starts:{-1} ends:{-10} axes:{1} steps:{-2}" },
	{ .name = "Pad", .since = 11, .sig = "x:T pads:int64 value:T? axes:I? -> y:T",
	  .attrs = "mode:string=\"constant\"", .shape = shape_pad, .kernel = "pad", .eval = eval_pad,
	  .factor_fn = factor_keep_equal, .linear = "x+value",
	  .grad = "dx = PadGrad<mode=@mode>(dy, x, pads, axes);"
	          "dvalue = Reshape(Sub(ReduceSum<keepdims=0>(dy), "
	          "ReduceSum<keepdims=0>(PadGrad<mode=@mode>(dy, x, pads, axes))), Shape(value)) "
	          "@when(\"has(value)\")",
	  .cost = cost_bytes,
	  .test = "x:[3,4] pads:{1,0,2,-1} | x:[3,4] pads:{1,2,2,1} value:[] | "
	          "x:[3,4] pads:{1,2,2,1} =mode:\"reflect\" | x:[3,4] pads:{1,2} axes:{1} =mode:\"edge\" | "
	          "x:[3,4] pads:{4,0,1,2} =mode:\"wrap\"" },
	{ .name = "PadGrad", .domain = "sbpcc", .since = 1, .sig = "dy:F like:F pads:int64 axes:I? -> dx:F",
	  .attrs = "mode:string=\"constant\"", .shape = shape_pad_grad, .kernel = "pad_grad", .eval = eval_pad_grad,
	  .factor_fn = factor_keep_equal, .linear = "dy", .grad = "ddy = Pad<mode=@mode>(ddx, pads, , axes)",
	  .cost = cost_bytes,
	  .test = "dy:[6,7] like:[3,4] pads:{1,2,2,1} =mode:\"reflect\" | dy:[6,7] like:[3,4] pads:{1,2,2,1}" },
	{ 0 },
};
