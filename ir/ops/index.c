/* Operators that read or write elements by index.  Indices are data, so every one is checked against the axis when it
 * is evaluated: a wrong one is an error of the model's data, never a stray access. */
#include "ops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int no_shape(Node *n, int i, DType t)
{
	operand_set_result(n, i, t, -1, NULL);
	return 0;
}

/* An index into an axis of that length; negative ones count from the end.  -1 after err_at. */
static int64_t checked(Node *n, int operand, int64_t i, int64_t len)
{
	if (i >= -len && i < len)
		return i < 0 ? i + len : i;
	err_at(operand_loc(n, operand), "%s: index %lld is outside [%lld, %lld]", n->op, (long long)i,
		(long long)-len, (long long)(len - 1));
	return -1;
}

static int64_t product(const int64_t *dim, int from, int to)
{
	int64_t p = 1;
	for (int a = from; a < to; a++)
		p *= dim[a];
	return p;
}

/* Gather: slices along one axis. */
static int shape_gather(Node *n)
{
	const Type *x = operand_type(n, 0), *idx = operand_type(n, 1);
	Dim dim[2 * NDIM_MAX];
	int axis, ndim = 0;
	if (!x || x->ndim < 0 || !idx || idx->ndim < 0)
		return no_shape(n, 0, operand_dtype(n, 0));
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0 ||
		shape_ndim_check(n, x->ndim - 1 + idx->ndim) != 0)
		return -1;
	for (int a = 0; a < axis; a++)
		dim[ndim++] = x->dim[a];
	for (int a = 0; a < idx->ndim; a++)
		dim[ndim++] = idx->dim[a];
	for (int a = axis + 1; a < x->ndim; a++)
		dim[ndim++] = x->dim[a];
	operand_set_result(n, 0, x->elem, ndim, dim);
	return 0;
}

static int64_t *checked_indices(Node *n, int operand, const Tensor *t, int64_t len)
{
	int64_t *v = eval_ints(t);
	for (int64_t i = 0; i < tensor_elements(t); i++)
		if ((v[i] = checked(n, operand, v[i], len)) < 0)
			return NULL;
	return v;
}

/* Indices relative to a shard of the axis: -1 outside of it. */
static int64_t *shard_indices(Node *n, int operand, const Tensor *t, int64_t len)
{
	int64_t among, from = attr_origin(n, len, &among), *v = checked_indices(n, operand, t, among);
	for (int64_t i = 0; v && i < tensor_elements(t); i++)
		v[i] = v[i] < from || v[i] >= from + len ? -1 : v[i] - from;
	return v;
}

static int eval_gather(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0];
	int axis;
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	int64_t outer = product(x->dim, 0, axis), len = x->dim[axis],
		inner = product(x->dim, axis + 1, x->ndim);
	int64_t many = tensor_elements(in[1]), *idx = shard_indices(n, 1, in[1], len);
	if (!idx)
		return -1;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t k = 0; k < many; k++)
			if (idx[k] >= 0)
				eval_copy(x, (o * len + idx[k]) * inner, out[0], (o * many + k) * inner, inner);
	return 0;
}

/* Axes of the indices and the other axes of the data are kept.  Where the gathered axis is split, a rank gives zero for
 * indices outside of its shard. */
static int factor_gather(Node *n, FactorRule *r)
{
	int axis, ri = operand_ndim(n, 1), rx = operand_ndim(n, 0);
	if (ri < 0 || rx < 0 || op_axis(n, attr_int(n, "axis"), rx, &axis) != 0 || !r->out[0])
		return -1;
	for (int a = 0; a < rx; a++)
		if (a != axis)
			r->in[0][a] = r->out[0][a < axis ? a : a - 1 + ri] =
				factor_add(r, operand_type(n, 0)->dim[a]);
	for (int a = 0; a < ri; a++)
		r->in[1][a] = r->out[0][axis + a] = factor_add(r, operand_type(n, 1)->dim[a]);
	r->in[0][axis] = factor_run(r, operand_type(n, 0)->dim[axis]);
	return 0;
}

/* GatherGrad(dy, like, indices): adds the slices of dy where Gather took them from. */
static int shape_like_operand1(Node *n)
{
	const Type *t = operand_type(n, 1);
	operand_set_result(n, 0, operand_dtype(n, 0), t ? t->ndim : -1, t ? t->dim : NULL);
	return 0;
}

static int shape_gather_grad(Node *n)
{
	const Type *dy = operand_type(n, 0), *x = operand_type(n, 1), *idx = operand_type(n, 2);
	int axis;
	if (dy && x && idx && dy->ndim >= 0 && x->ndim >= 0 && idx->ndim >= 0) {
		if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
			return -1;
		bool bad = dy->ndim != x->ndim - 1 + idx->ndim;
		for (int a = 0; !bad && a < dy->ndim; a++)
			bad = dim_differ(dy->dim[a], a < axis               ? x->dim[a]
						     : a < axis + idx->ndim ? idx->dim[a - axis]
									    : x->dim[a - idx->ndim + 1]);
		if (bad) {
			err_at(n->loc, "GatherGrad: %s is not gathered from %s by %s", type_text(dy),
				type_text(x), type_text(idx));
			return -1;
		}
	}
	return shape_like_operand1(n);
}

static int eval_gather_grad(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = out[0];
	int axis;
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	int64_t outer = product(x->dim, 0, axis), len = x->dim[axis],
		inner = product(x->dim, axis + 1, x->ndim);
	int64_t many = tensor_elements(in[2]), *idx = shard_indices(n, 2, in[2], len);
	if (!idx)
		return -1;
	double *dy = eval_doubles(in[0]), *dx = eval_scratch((size_t)tensor_elements(x) * sizeof *dx);
	for (int64_t o = 0; o < outer; o++)
		for (int64_t k = 0; k < many; k++)
			for (int64_t i = 0; i < inner && idx[k] >= 0; i++)
				dx[(o * len + idx[k]) * inner + i] += dy[(o * many + k) * inner + i];
	eval_store(out[0], dx);
	return 0;
}

/* If the indices are split, each rank has one term of the sum: the result lacks those factors. */
static int factor_gather_grad(Node *n, FactorRule *r)
{
	int axis, ri = operand_ndim(n, 2), rx = operand_ndim(n, 1);
	if (ri < 0 || rx < 0 || op_axis(n, attr_int(n, "axis"), rx, &axis) != 0 || !r->out[0] ||
		operand_ndim(n, 0) != rx - 1 + ri)
		return -1;
	for (int a = 0; a < rx; a++)
		if (a != axis)
			r->in[1][a] = r->out[0][a] = r->in[0][a < axis ? a : a - 1 + ri] =
				factor_add(r, operand_type(n, 1)->dim[a]);
	for (int a = 0; a < ri; a++)
		r->in[2][a] = r->in[0][axis + a] = factor_add(r, operand_type(n, 2)->dim[a]);
	r->in[1][axis] = r->out[0][axis] = factor_run(r, operand_type(n, 1)->dim[axis]);
	return 0;
}

/* GatherElements and ScatterElements: every axis but the indexed one, if all operands have the same length there. */
static int factor_elements(Node *n, FactorRule *r)
{
	const Type *x = operand_type(n, 0), *i = operand_type(n, 1);
	int axis;
	if (!x || !i || x->ndim < 1 || i->ndim != x->ndim ||
		op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	for (int a = 0; a < x->ndim; a++) {
		if (a == axis || !dim_same(x->dim[a], i->dim[a]))
			continue;
		int f = factor_add(r, x->dim[a]);
		for (int k = 0; k < n->nin; k++)
			if (r->in[k])
				r->in[k][a] = f;
		if (r->out[0])
			r->out[0][a] = f;
	}
	return 0;
}

/* GatherElements and ScatterElements: one index per element. */
static int check_elements(Node *n, int at_idx, int at_upd, int *axis)
{
	const Type *x = operand_type(n, 0), *idx = operand_type(n, at_idx),
		   *upd = at_upd < 0 ? NULL : operand_type(n, at_upd);
	if (!x || x->ndim < 0)
		return 0;
	if (op_axis(n, attr_int(n, "axis"), x->ndim, axis) != 0)
		return -1;
	bool bad = idx && idx->ndim >= 0 && idx->ndim != x->ndim;
	for (int a = 0; !bad && idx && a < idx->ndim; a++)
		bad = a != *axis && dim_known(idx->dim[a]) && dim_known(x->dim[a]) && idx->dim[a] > x->dim[a];
	if (bad) {
		err_at(operand_loc(n, at_idx), "%s: indices %s do not fit %s", n->op, type_text(idx),
			type_text(x));
		return -1;
	}
	bad = idx && upd && idx->ndim >= 0 && upd->ndim >= 0 && idx->ndim != upd->ndim;
	for (int a = 0; !bad && idx && upd && upd->ndim >= 0 && a < idx->ndim; a++)
		bad = dim_differ(idx->dim[a], upd->dim[a]);
	if (bad) {
		err_at(operand_loc(n, at_upd), "%s: updates %s do not fit indices %s", n->op, type_text(upd),
			type_text(idx));
		return -1;
	}
	return 0;
}

static int shape_gather_elements(Node *n)
{
	const Type *idx = operand_type(n, 1);
	int axis;
	if (check_elements(n, 1, -1, &axis) != 0)
		return -1;
	operand_set_result(n, 0, operand_dtype(n, 0), idx ? idx->ndim : -1, idx ? idx->dim : NULL);
	return 0;
}

/* For each element of the indices, the element of x that it selects. */
static int64_t *element_map(Node *n, const Tensor *x, const Tensor *index, int operand)
{
	int axis;
	int64_t stride[NDIM_MAX], idx[NDIM_MAX] = { 0 }, total = tensor_elements(index), at = 0;
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return NULL;
	int64_t *map = checked_indices(n, operand, index, x->dim[axis]);
	eval_strides(x, stride);
	int64_t along = stride[axis];
	stride[axis] = 0;
	for (int64_t i = 0; map && i < total; i++) {
		map[i] = at + map[i] * along;
		at = tensor_next(x->ndim, index->dim, stride, idx, at);
	}
	return map;
}

static int eval_gather_elements(Node *n, Tensor **in, Tensor **out)
{
	int64_t *map = element_map(n, in[0], in[1], 1);
	for (int64_t i = 0; map && i < tensor_elements(in[1]); i++)
		eval_copy(in[0], map[i], out[0], i, 1);
	return map ? 0 : -1;
}

/* How a scatter combines an update with the element at its position. */
typedef enum { S_NONE, S_ADD, S_MUL, S_MIN, S_MAX, S_WRONG } Reduction;

static Reduction reduction(Node *n)
{
	static const char *const names[] = { "none", "add", "mul", "min", "max" };
	Name s = attr_str(n, "reduction");
	for (int i = 0; i < 5; i++)
		if (!strcmp(s, names[i]))
			return (Reduction)i;
	err_at(n->loc, "%s: reduction must be none, add, mul, min or max, not %s", n->op, s);
	return S_WRONG;
}

static double join(Reduction r, double a, double b)
{
	switch (r) {
	case S_ADD: return a + b;
	case S_MUL: return a * b;
	case S_MIN: return isnan(a) || a < b ? a : b;
	default: return isnan(a) || a > b ? a : b;
	}
}

static int64_t join_int(Reduction r, int64_t a, int64_t b, bool isuint64)
{
	bool less = isuint64 ? (uint64_t)a < (uint64_t)b : a < b;
	switch (r) {
	case S_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
	case S_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
	case S_MIN: return less ? a : b;
	default: return less ? b : a;
	}
}

/* out = x; then out[map[i] ...] takes runs of `run` elements of the updates. */
static void scatter(Reduction r, const Tensor *x, const Tensor *upd, const int64_t *map, int64_t many,
	int64_t run, Tensor *out)
{
	if (r == S_NONE) {
		eval_copy(x, 0, out, 0, tensor_elements(x));
		for (int64_t i = 0; i < many; i++)
			eval_copy(upd, i * run, out, map[i], run);
	} else if (dtype_is_float(x->dtype)) {
		double *v = eval_doubles(x), *u = eval_doubles(upd);
		for (int64_t i = 0; i < many * run; i++)
			v[map[i / run] + i % run] = join(r, v[map[i / run] + i % run], u[i]);
		eval_store(out, v);
	} else {
		int64_t *v = eval_ints(x), *u = eval_ints(upd);
		for (int64_t i = 0; i < many * run; i++)
			v[map[i / run] + i % run] =
				join_int(r, v[map[i / run] + i % run], u[i], x->dtype == DT_UINT64);
		eval_store_ints(out, v);
	}
}

static int shape_scatter_elements(Node *n)
{
	int axis;
	return reduction(n) == S_WRONG || check_elements(n, 1, 2, &axis) != 0 ? -1 : shape_like_first(n);
}

static int eval_scatter_elements(Node *n, Tensor **in, Tensor **out)
{
	Reduction r = reduction(n);
	int64_t *map = r == S_WRONG ? NULL : element_map(n, in[0], in[1], 1);
	if (!map)
		return -1;
	scatter(r, in[0], in[2], map, tensor_elements(in[1]), 1, out[0]);
	return 0;
}

/* GatherND and ScatterND: the last axis of the indices is a tuple that selects a position. */
typedef struct Nd { int batch, depth, ndim_index, ndim_x; } Nd;

/* 0 known, 1 not known yet, -1 wrong. */
static int read_nd(Node *n, int at_x, int at_idx, bool batched, Nd *d)
{
	const Type *x = operand_type(n, at_x), *idx = operand_type(n, at_idx);
	if (!x || !idx || x->ndim < 0 || idx->ndim < 0 ||
		(idx->ndim > 0 && !dim_known(idx->dim[idx->ndim - 1])))
		return 1;
	int64_t b = batched ? attr_int(n, "batch_dims") : 0;
	bool bad = x->ndim < 1 || idx->ndim < 1 || b < 0 || b >= idx->ndim || b >= x->ndim ||
	           idx->dim[idx->ndim - 1] < 1 || idx->dim[idx->ndim - 1] > x->ndim - b;
	for (int a = 0; !bad && a < b; a++)
		bad = dim_differ(x->dim[a], idx->dim[a]);
	if (bad) {
		err_at(operand_loc(n, at_idx), "%s: indices %s do not fit %s%s", n->op, type_text(idx),
			type_text(x), b ? " with these batch_dims" : "");
		return -1;
	}
	*d = (Nd){ (int)b, (int)idx->dim[idx->ndim - 1], idx->ndim, x->ndim };
	return 0;
}

/* The shape of what is taken: the axes of the indices but the last, then the axes that they do not name. */
static int nd_dims(Node *n, int at_x, int at_idx, const Nd *d, Dim *dim)
{
	int ndim = 0;
	for (int a = 0; a < d->ndim_index - 1; a++)
		dim[ndim++] = operand_type(n, at_idx)->dim[a];
	for (int a = d->batch + d->depth; a < d->ndim_x; a++)
		dim[ndim++] = operand_type(n, at_x)->dim[a];
	return ndim;
}

static int shape_gather_nd(Node *n)
{
	Nd d;
	Dim dim[2 * NDIM_MAX];
	int bad = read_nd(n, 0, 1, true, &d);
	if (bad)
		return bad < 0 ? -1 : no_shape(n, 0, operand_dtype(n, 0));
	int ndim = nd_dims(n, 0, 1, &d, dim);
	if (shape_ndim_check(n, ndim) != 0)
		return -1;
	operand_set_result(n, 0, operand_dtype(n, 0), ndim, dim);
	return 0;
}

/* The position in x that each tuple of the indices selects; *run is the number of elements there. */
static int64_t *nd_map(
	Node *n, const Tensor *x, const Tensor *index, int operand, int batch, int64_t *many, int64_t *run)
{
	int depth = (int)index->dim[index->ndim - 1];
	int64_t stride[NDIM_MAX], *v = eval_ints(index);
	*many = product(index->dim, 0, index->ndim - 1);
	*run = product(x->dim, batch + depth, x->ndim);
	int64_t perbatch = product(index->dim, batch, index->ndim - 1),
		slab = product(x->dim, batch, x->ndim);
	int64_t *map = eval_scratch((size_t)*many * sizeof *map);
	eval_strides(x, stride);
	for (int64_t i = 0; i < *many; i++) {
		map[i] = perbatch ? i / perbatch * slab : 0;
		for (int k = 0; k < depth; k++) {
			int64_t at = checked(n, operand, v[i * depth + k], x->dim[batch + k]);
			if (at < 0)
				return NULL;
			map[i] += at * stride[batch + k];
		}
	}
	return map;
}

static int eval_gather_nd(Node *n, Tensor **in, Tensor **out)
{
	int64_t many, run, *map = nd_map(n, in[0], in[1], 1, (int)attr_int(n, "batch_dims"), &many, &run);
	for (int64_t i = 0; map && i < many; i++)
		eval_copy(in[0], map[i], out[0], i * run, run);
	return map ? 0 : -1;
}

static int shape_gather_nd_grad(Node *n)
{
	Nd d;
	Dim dim[2 * NDIM_MAX];
	const Type *dy = operand_type(n, 0);
	int bad = read_nd(n, 1, 2, true, &d);
	if (bad < 0)
		return -1;
	if (!bad && dy && dy->ndim >= 0) {
		bad = nd_dims(n, 1, 2, &d, dim) != dy->ndim;
		for (int a = 0; !bad && a < dy->ndim; a++)
			bad = dim_differ(dim[a], dy->dim[a]);
		if (bad) {
			err_at(n->loc, "GatherNDGrad: %s is not gathered from %s by %s", type_text(dy),
				type_text(operand_type(n, 1)), type_text(operand_type(n, 2)));
			return -1;
		}
	}
	return shape_like_operand1(n);
}

static int eval_gather_nd_grad(Node *n, Tensor **in, Tensor **out)
{
	int64_t many, run, *map = nd_map(n, out[0], in[2], 2, (int)attr_int(n, "batch_dims"), &many, &run);
	if (!map)
		return -1;
	double *dy = eval_doubles(in[0]), *dx = eval_scratch((size_t)tensor_elements(out[0]) * sizeof *dx);
	for (int64_t i = 0; i < many * run; i++)
		dx[map[i / run] + i % run] += dy[i];
	eval_store(out[0], dx);
	return 0;
}

static int shape_scatter_nd(Node *n)
{
	Nd d;
	Dim dim[2 * NDIM_MAX];
	const Type *upd = operand_type(n, 2);
	if (reduction(n) == S_WRONG)
		return -1;
	int bad = read_nd(n, 0, 1, false, &d);
	if (bad < 0)
		return -1;
	if (!bad && upd && upd->ndim >= 0) {
		int ndim = nd_dims(n, 0, 1, &d, dim);
		bad = ndim != upd->ndim;
		for (int a = 0; !bad && a < ndim; a++)
			bad = dim_differ(dim[a], upd->dim[a]);
		if (bad) {
			err_at(operand_loc(n, 2), "ScatterND: updates %s do not fit %s by indices %s",
				type_text(upd), type_text(operand_type(n, 0)), type_text(operand_type(n, 1)));
			return -1;
		}
	}
	return shape_like_first(n);
}

static int eval_scatter_nd(Node *n, Tensor **in, Tensor **out)
{
	Reduction r = reduction(n);
	int64_t many, run, *map = r == S_WRONG ? NULL : nd_map(n, in[0], in[1], 1, 0, &many, &run);
	if (!map)
		return -1;
	scatter(r, in[0], in[2], map, many, run, out[0]);
	return 0;
}

/* The axes of tuples are shared with the result, as are the axes that tuples do not index.  Batch axes are shared by
 * all operands. */
static int factor_nd(Node *n, FactorRule *r, int at_x, int at_idx, int *taken)
{
	Nd d;
	if (read_nd(n, at_x, at_idx, true, &d) != 0 || !taken || !r->out[0])
		return -1;
	for (int a = 0; a < d.ndim_index - 1; a++) {
		taken[a] = r->in[at_idx][a] = factor_add(r, operand_type(n, at_idx)->dim[a]);
		if (a < d.batch)
			r->in[at_x][a] = taken[a];
	}
	for (int a = d.batch + d.depth, k = d.ndim_index - 1; a < d.ndim_x; a++, k++)
		taken[k] = r->in[at_x][a] = factor_add(r, operand_type(n, at_x)->dim[a]);
	return 0;
}

static int factor_gather_nd(Node *n, FactorRule *r)
{
	return factor_nd(n, r, 0, 1, r->out[0]);
}

/* The result lacks the axes of tuples that are not batch axes: it is a sum over them. */
static int factor_gather_nd_grad(Node *n, FactorRule *r)
{
	if (factor_nd(n, r, 1, 2, r->in[0]) != 0)
		return -1;
	for (int a = 0; a < operand_ndim(n, 1); a++)
		r->out[0][a] = r->in[1][a];
	return 0;
}

/* OneHot. */
static int shape_one_hot(Node *n)
{
	const Type *idx = operand_type(n, 0), *val = operand_type(n, 2);
	const Tensor *depth = operand_const(n, 1);
	Dim dim[NDIM_MAX], d = DIM_UNKNOWN;
	int axis;
	if (val && val->ndim >= 0 && (val->ndim != 1 || dim_differ(val->dim[0], 2))) {
		err_at(operand_loc(n, 2), "OneHot: values must be [off, on], not %s", type_text(val));
		return -1;
	}
	if (depth && (tensor_elements(depth) != 1 || tensor_int(depth, 0) < 0)) {
		err_at(operand_loc(n, 1), "OneHot: depth must be a scalar of at least 0");
		return -1;
	}
	if (depth)
		d = tensor_int(depth, 0);
	else if (operand_dims(n, 1, &d, 1) != 1)
		d = DIM_UNKNOWN;
	if (!idx || idx->ndim < 0)
		return no_shape(n, 0, operand_dtype(n, 2));
	if (shape_ndim_check(n, idx->ndim + 1) != 0 ||
		op_axis(n, attr_int(n, "axis"), idx->ndim + 1, &axis) != 0)
		return -1;
	for (int a = 0, k = 0; a <= idx->ndim; a++)
		dim[a] = a == axis ? d : idx->dim[k++];
	operand_set_result(n, 0, operand_dtype(n, 2), idx->ndim + 1, dim);
	return 0;
}

/* Only the axes that tuples do not index. */
static int factor_scatter_nd(Node *n, FactorRule *r)
{
	Nd d;
	if (read_nd(n, 0, 1, false, &d) != 0 || !r->in[2] || !r->out[0] ||
		operand_ndim(n, 2) != d.ndim_index - 1 + d.ndim_x - d.depth)
		return -1;
	for (int a = d.depth, k = d.ndim_index - 1; a < d.ndim_x; a++, k++)
		r->in[0][a] = r->in[2][k] = r->out[0][a] = factor_add(r, operand_type(n, 0)->dim[a]);
	return 0;
}

static int factor_one_hot(Node *n, FactorRule *r)
{
	int axis, ndim = operand_ndim(n, 0);
	if (ndim < 0 || !r->out[0] || op_axis(n, attr_int(n, "axis"), ndim + 1, &axis) != 0)
		return -1;
	for (int a = 0; a < ndim; a++)
		r->in[0][a] = r->out[0][a < axis ? a : a + 1] = factor_add(r, operand_type(n, 0)->dim[a]);
	r->out[0][axis] = factor_run(r, n->out[0]->type->dim[axis]);
	return 0;
}

static int eval_one_hot(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *y = out[0];
	int axis;
	if (op_axis(n, attr_int(n, "axis"), y->ndim, &axis) != 0)
		return -1;
	int64_t depth = y->dim[axis], inner = product(y->dim, axis + 1, y->ndim), total = tensor_elements(y),
		*idx = eval_ints(in[0]), among, from = attr_origin(n, depth, &among);
	for (int64_t i = 0; i < total; i++) {
		int64_t k = from + i / inner % depth, at = idx[i / inner / depth * inner + i % inner];
		eval_copy(in[2], k == (at < 0 ? at + among : at), out[0], i, 1);
	}
	return 0;
}

static void fit_one_hot(Node *shard, const Node *logical)
{
	int axis;
	(void)logical;
	if (op_axis(shard, attr_int(shard, "axis"), shard->out[0]->type->ndim, &axis) == 0 && shard->in[1]->data)
		shard->in[1]->data = tensor_ints(shard->graph->scratch, &shard->out[0]->type->dim[axis], 1);
}

/* TopK, ArgMax, ArgMin. */
static int shape_topk(Node *n)
{
	const Type *x = operand_type(n, 0);
	const Tensor *k = operand_const(n, 1);
	Dim dim[NDIM_MAX], many = DIM_UNKNOWN;
	int axis;
	if (k && (tensor_elements(k) != 1 || tensor_int(k, 0) < 0)) {
		err_at(operand_loc(n, 1), "TopK: k must be one number of at least 0");
		return -1;
	}
	if (!x || x->ndim < 0) {
		no_shape(n, 1, DT_INT64);
		return no_shape(n, 0, operand_dtype(n, 0));
	}
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	if (k)
		many = tensor_int(k, 0);
	else if (operand_dims(n, 1, &many, 1) != 1)
		many = DIM_UNKNOWN;
	if (dim_known(many) && dim_known(x->dim[axis]) && many > x->dim[axis]) {
		err_at(operand_loc(n, 1), "TopK: axis %d of %s has fewer than %lld elements", axis, type_text(x),
			(long long)many);
		return -1;
	}
	memcpy(dim, x->dim, (size_t)x->ndim * sizeof *dim);
	dim[axis] = many;
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	operand_set_result(n, 1, DT_INT64, x->ndim, dim);
	return 0;
}

typedef struct Ranked { double v; int64_t i, at; } Ranked;       /* i: exact value of an integer */

static int by_value(const Ranked *a, const Ranked *b)
{
	if (a->v != b->v && !isnan(a->v) && !isnan(b->v))
		return a->v < b->v ? -1 : 1;
	if (isnan(a->v) != isnan(b->v))
		return isnan(a->v) ? 1 : -1;    /* NaN is the largest */
	return a->i < b->i ? -1 : a->i > b->i;
}

static int ascending(const void *pa, const void *pb)
{
	const Ranked *a = pa, *b = pb;
	int c = by_value(a, b);
	return c ? c : a->at < b->at ? -1 : 1;
}

static int descending(const void *pa, const void *pb)
{
	const Ranked *a = pa, *b = pb;
	int c = by_value(b, a);
	return c ? c : a->at < b->at ? -1 : 1;
}

static int eval_topk(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0], *y = out[0] ? out[0] : out[1];
	int axis;
	if (!y)
		return 0;
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	int64_t len = x->dim[axis], inner = product(x->dim, axis + 1, x->ndim),
		outer = product(x->dim, 0, axis), k = y->dim[axis];
	Ranked *r = eval_scratch((size_t)len * sizeof *r);
	bool real = dtype_is_float(x->dtype);
	for (int64_t o = 0; o < outer * inner; o++) {
		int64_t base = o / inner * len * inner + o % inner, to = o / inner * k * inner + o % inner;
		for (int64_t i = 0; i < len; i++)
			r[i] = (Ranked){ tensor_get(x, base + i * inner),
				real ? 0 : tensor_int(x, base + i * inner), i };
		qsort(r, (size_t)len, sizeof *r, attr_int(n, "largest") ? descending : ascending);
		for (int64_t i = 0; i < k; i++) {
			if (out[0])
				eval_copy(x, base + r[i].at * inner, out[0], to + i * inner, 1);
			if (n->nout > 1 && out[1])
				tensor_set_int(out[1], to + i * inner, r[i].at);
		}
	}
	return 0;
}

/* All axes but the one that is searched. */
static int factor_search(Node *n, FactorRule *r)
{
	int axis, ndim = operand_ndim(n, 0);
	if (ndim < 0 || op_axis(n, attr_int(n, "axis"), ndim, &axis) != 0)
		return -1;
	for (int a = 0; a < ndim; a++) {
		if (a == axis)
			continue;
		r->in[0][a] = factor_add(r, operand_type(n, 0)->dim[a]);
		for (int i = 0; i < n->nout; i++) {
			bool dropped = r->out[i] && n->out[i]->type->ndim < ndim;
			if (r->out[i])
				r->out[i][a - (dropped && a > axis)] = r->in[0][a];
		}
	}
	return 0;
}

static int shape_arg(Node *n)
{
	const Type *x = operand_type(n, 0);
	Dim dim[NDIM_MAX];
	int axis, ndim = 0;
	if (!x || x->ndim < 0)
		return no_shape(n, 0, DT_INT64);
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	if (x->dim[axis] == 0) {
		err_at(operand_loc(n, 0), "%s: axis %d of %s is empty", n->op, axis, type_text(x));
		return -1;
	}
	for (int a = 0; a < x->ndim; a++)
		if (a != axis || attr_int(n, "keepdims"))
			dim[ndim++] = a == axis ? 1 : x->dim[a];
	operand_set_result(n, 0, DT_INT64, ndim, dim);
	return 0;
}

static int eval_arg(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0];
	int axis;
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	int64_t len = x->dim[axis], inner = product(x->dim, axis + 1, x->ndim),
		outer = product(x->dim, 0, axis);
	bool max = !strcmp(n->op, "ArgMax"), last = attr_int(n, "select_last_index") != 0,
	     real = dtype_is_float(x->dtype);
	for (int64_t o = 0; o < outer * inner; o++) {
		int64_t base = o / inner * len * inner + o % inner;
		Ranked best = { 0 };
		for (int64_t i = 0; i < len; i++) {
			Ranked r = { tensor_get(x, base + i * inner),
				real ? 0 : tensor_int(x, base + i * inner), i };
			int c = i ? by_value(&r, &best) : 1;
			if (i == 0 || (max ? c > 0 : c < 0) || (last && c == 0))
				best = r;
		}
		tensor_set_int(out[0], o, best.at);
	}
	return 0;
}

/* NonZero and Compress: their result has a data-dependent size, so the operand must be constant. */
static bool nonzero(const Tensor *t, int64_t i)
{
	return dtype_is_float(t->dtype) ? tensor_get(t, i) != 0 : tensor_int(t, i) != 0;
}

static int shape_nonzero(Node *n)
{
	const Tensor *x = operand_const(n, 0);
	Dim dim[2] = { operand_ndim(n, 0) < 0 ? DIM_UNKNOWN : operand_ndim(n, 0), DIM_UNKNOWN };
	if (x) {
		dim[1] = 0;
		for (int64_t i = 0; i < tensor_elements(x); i++)
			dim[1] += nonzero(x, i);
	}
	operand_set_result(n, 0, DT_INT64, 2, dim);
	return 0;
}

static int eval_nonzero(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0];
	int64_t many = out[0]->dim[1], k = 0, stride[NDIM_MAX];
	(void)n;
	eval_strides(x, stride);
	for (int64_t i = 0; i < tensor_elements(x); i++) {
		if (!nonzero(x, i))
			continue;
		for (int a = 0; a < x->ndim; a++)
			tensor_set_int(out[0], a * many + k, i / stride[a] % x->dim[a]);
		k++;
	}
	return 0;
}

static int shape_compress(Node *n)
{
	const Type *x = operand_type(n, 0), *ct = operand_type(n, 1);
	const Tensor *c = operand_const(n, 1);
	Dim dim[NDIM_MAX], many = DIM_UNKNOWN;
	int axis = 0;
	bool flat = !attr_has(n, "axis");
	if (ct && ct->ndim >= 0 && ct->ndim != 1) {
		err_at(operand_loc(n, 1), "Compress: the condition must be a vector, not %s", type_text(ct));
		return -1;
	}
	if ((!x || x->ndim < 0) && !flat)
		return no_shape(n, 0, operand_dtype(n, 0));
	if (!flat && op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	if (c) {
		Dim len = DIM_UNKNOWN;
		if (x && x->ndim >= 0)
			len = flat ? type_elements(x) : x->dim[axis];
		many = 0;
		for (int64_t i = 0; i < tensor_elements(c); i++)
			many += tensor_int(c, i) != 0 && (!dim_known(len) || i < len);
	}
	if (flat) {
		operand_set_result(n, 0, operand_dtype(n, 0), 1, &many);
		return 0;
	}
	memcpy(dim, x->dim, (size_t)x->ndim * sizeof *dim);
	dim[axis] = many;
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

static int eval_compress(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0], *c = in[1];
	int axis = 0;
	bool flat = !attr_has(n, "axis");
	if (!flat && op_axis(n, attr_int(n, "axis"), x->ndim, &axis) != 0)
		return -1;
	int64_t len = flat ? tensor_elements(x) : x->dim[axis],
		inner = flat ? 1 : product(x->dim, axis + 1, x->ndim);
	int64_t outer = flat ? 1 : product(x->dim, 0, axis), to = 0, most = tensor_elements(c);
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < len && i < most; i++)
			if (tensor_int(c, i)) {
				eval_copy(x, (o * len + i) * inner, out[0], to, inner);
				to += inner;
			}
	return 0;
}

/* The gradients of all scatters.  PICK reads elements of a tensor like data at the positions of the updates; PUT and
 * ADD write the updates.  With mul, several updates, and zeros, may hit a position: the product of the others is the
 * product of the factors that are not zero, if no other is zero.  With min and max the gradient is shared among equals.
 * */
#define SCATTER_GRAD(PICK, PUT, ADD, MUL) \
	"g = " PICK "(dy, indices);" \
	"dx = " PUT "(dy, indices, ZerosLike(updates)) @when(\"reduction == \\\"none\\\"\");" \
	"dupdates = Identity(g) @when(\"reduction == \\\"none\\\" || reduction == \\\"add\\\"\");" \
	"dx = Identity(dy) @when(\"reduction == \\\"add\\\"\");" \
	"dx = " MUL "(dy, indices, updates) @when(\"reduction == \\\"mul\\\"\");" \
	"z = Equal(updates, 0) @when(\"reduction == \\\"mul\\\"\");" \
	"zf = CastLike(z, updates) @when(\"reduction == \\\"mul\\\"\");" \
	"s = Where(z, OnesLike(updates), updates) @when(\"reduction == \\\"mul\\\"\");" \
	"k = " ADD "(ZerosLike(x), indices, zf) @when(\"reduction == \\\"mul\\\"\");" \
	"p = " MUL "(x, indices, s) @when(\"reduction == \\\"mul\\\"\");" \
	"o = Div(" PICK "(p, indices), s) @when(\"reduction == \\\"mul\\\"\");" \
	"dupdates = Mul(g, Where(Equal(" PICK "(k, indices), zf), o, ZerosLike(o))) " \
	"@when(\"reduction == \\\"mul\\\"\");" \
	"mx = CastLike(Equal(x, y), x) @when(\"reduction == \\\"min\\\" || reduction == \\\"max\\\"\");" \
	"mu = CastLike(Equal(updates, " PICK "(y, indices)), updates) " \
	"@when(\"reduction == \\\"min\\\" || reduction == \\\"max\\\"\");" \
	"c = " ADD "(mx, indices, mu) @when(\"reduction == \\\"min\\\" || reduction == \\\"max\\\"\");" \
	"share = Div(dy, c) @when(\"reduction == \\\"min\\\" || reduction == \\\"max\\\"\");" \
	"dx = Mul(share, mx) @when(\"reduction == \\\"min\\\" || reduction == \\\"max\\\"\");" \
	"dupdates = Mul(" PICK "(share, indices), mu) @when(\"reduction == \\\"min\\\" || reduction == \\\"max\\\"\")"

/* clang-format off */
const Op ops_index[] = {
	{ .name = "Gather", .since = 1, .index = "indices axis", .sig = "x:T indices:I -> y:T", .attrs = "axis:int=0",
	  .shape = shape_gather, .kernel = "gather", .eval = eval_gather,
	  .factor_fn = factor_gather, .origin = "x axis", .linear = "x",
	  .grad = "dx = GatherGrad<axis=@axis>(dy, x, indices)", .cost = cost_bytes,
	  .test = "x:[4,3] indices:{0,-1,0} | x:[2,3,4] indices:[2,2] =axis:1" },
	{ .name = "GatherGrad", .domain = "sbpcc", .since = 1, .sig = "dy:F like:F indices:I -> dx:F",
	  .attrs = "axis:int=0", .shape = shape_gather_grad, .kernel = "gather_grad", .eval = eval_gather_grad,
	  .factor_fn = factor_gather_grad, .origin = "dx axis", .linear = "dy",
	  .grad = "ddy = Gather<axis=@axis>(ddx, indices)", .cost = cost_bytes,
	  .test = "dy:[3,3] like:[4,3] indices:{0,-1,0} | dy:[2,2,2,4] like:[2,3,4] indices:[2,2] =axis:1" },
	{ .name = "GatherElements", .since = 11, .index = "indices axis", .sig = "x:T indices:I -> y:T",
	  .attrs = "axis:int=0",
	  .shape = shape_gather_elements, .kernel = "gather_elements", .eval = eval_gather_elements,
	  .factor_fn = factor_elements, .linear = "x",
	  .grad = "dx = ScatterElements<axis=@axis, reduction=\"add\">(ZerosLike(x), indices, dy)",
	  .cost = cost_bytes, .test = "x:[3,3] indices:[2,3] | x:[3,3] indices:[3,2] =axis:1" },
	{ .name = "GatherND", .since = 11, .sig = "x:T indices:int64 -> y:T", .attrs = "batch_dims:int=0",
	  .shape = shape_gather_nd, .kernel = "gather_nd", .eval = eval_gather_nd,
	  .factor_fn = factor_gather_nd, .linear = "x",
	  .grad = "dx = GatherNDGrad<batch_dims=@batch_dims>(dy, x, indices)", .cost = cost_bytes,
	  .test = "x:[2,3,4] indices:[5,2] | x:[2,3,4] indices:[2,2,1] =batch_dims:1" },
	{ .name = "GatherNDGrad", .domain = "sbpcc", .since = 1, .sig = "dy:F like:F indices:int64 -> dx:F",
	  .attrs = "batch_dims:int=0",
	  .shape = shape_gather_nd_grad, .kernel = "gather_nd_grad", .eval = eval_gather_nd_grad,
	  .factor_fn = factor_gather_nd_grad, .linear = "dy",
	  .grad = "ddy = GatherND<batch_dims=@batch_dims>(ddx, indices)", .cost = cost_bytes,
	  .test = "dy:[5,4] like:[2,3,4] indices:[5,2]" },
	{ .name = "ScatterElements", .since = 11, .sig = "x:T indices:I updates:T -> y:T",
	  .attrs = "axis:int=0 reduction:string=\"none\"",
	  .shape = shape_scatter_elements, .kernel = "scatter_elements", .eval = eval_scatter_elements,
	  .factor_fn = factor_elements,
	  .grad = SCATTER_GRAD("GatherElements<axis=@axis>", "ScatterElements<axis=@axis>",
	                       "ScatterElements<axis=@axis, reduction=\"add\">",
	                       "ScatterElements<axis=@axis, reduction=\"mul\">"),
	  .cost = cost_bytes,
	  .test = "x:[3,3] indices:[1,3] updates:[1,3] =axis:0 | x:[5] indices:{0,2,4} updates:[3] | "
	          "x:[5] indices:{0,2,0} updates:[3] =reduction:\"add\" | "
	          "x:[5] indices:{0,2,0} updates:[3] =reduction:\"mul\" | "
	          "x:[5] indices:{0,2,0} updates:[3] =reduction:\"max\" | "
	          "x:[5] indices:{0,2,0} updates:[3] =reduction:\"min\"" },
	{ .name = "ScatterND", .since = 11, .sig = "x:T indices:int64 updates:T -> y:T",
	  .attrs = "reduction:string=\"none\"",
	  .shape = shape_scatter_nd, .kernel = "scatter_nd", .eval = eval_scatter_nd, .factor_fn = factor_scatter_nd,
	  .grad = SCATTER_GRAD("GatherND", "ScatterND", "ScatterND<reduction=\"add\">", "ScatterND<reduction=\"mul\">"),
	  .cost = cost_bytes,
	  .test = "x:[4,3] indices:[1,1] updates:[1,3] | x:[4,3] indices:[3,1] updates:[3,3] =reduction:\"add\" | "
	          "x:[4,3] indices:[3,1] updates:[3,3] =reduction:\"mul\" | "
	          "x:[4,3] indices:[3,1] updates:[3,3] =reduction:\"max\"" },
	{ .name = "OneHot", .since = 9, .as_int64 = "indices", .sig = "indices:N depth:N1 values:T -> y:T",
	  .attrs = "axis:int=-1", .shape = shape_one_hot, .kernel = "one_hot", .eval = eval_one_hot,
	  .factor_fn = factor_one_hot, .fit = fit_one_hot, .origin = "y axis", .linear = "values",
	  .grad = "m = OneHot<axis=@axis>(indices, depth, CastLike([0, 1], values)); "
	          "s = ReduceSum<keepdims=0>(Mul(dy, m));"
	          "dvalues = Concat<axis=0>(Reshape(Sub(ReduceSum<keepdims=0>(dy), s), [1]), Reshape(s, [1]))",
	  .cost = cost_bytes,
	  .test = "indices:{0,2,1,-1} depth:{3} values:[2] | indices:{0,2,1} depth:{3} values:[2] =axis:0" },
	{ .name = "TopK", .since = 10, .sig = "x:N k:int64 -> values:N indices:int64",
	  .attrs = "axis:int=-1 largest:int=1 sorted:int=1", .shape = shape_topk, .kernel = "topk", .eval = eval_topk,
	  .factor_fn = factor_search,
	  .grad = "dx = ScatterElements<axis=@axis, reduction=\"add\">(ZerosLike(x), indices, dvalues)",
	  .cost = cost_reduce, .test = "x:[3,5] k:{2} | x:[5,3] k:{3} =axis:0 =largest:0" },
	{ .name = "ArgMax", .since = 1, .sig = "x:N -> y:int64",
	  .attrs = "axis:int=0 keepdims:int=1 select_last_index:int=0",
	  .shape = shape_arg, .kernel = "argmax", .eval = eval_arg, .factor_fn = factor_search, .nograd = true,
	  .cost = cost_reduce, .test = "x:[3,5] | x:[3,5] =axis:-1 =keepdims:0" },
	{ .name = "ArgMin", .since = 1, .sig = "x:N -> y:int64",
	  .attrs = "axis:int=0 keepdims:int=1 select_last_index:int=0",
	  .shape = shape_arg, .kernel = "argmin", .eval = eval_arg, .factor_fn = factor_search, .nograd = true,
	  .cost = cost_reduce, .test = "x:[3,5] | x:[3,5] =axis:-1 =keepdims:0" },
	{ .name = "NonZero", .since = 9, .sig = "x:T -> y:int64",
	  .shape = shape_nonzero, .kernel = "nonzero", .eval = eval_nonzero, .unsplit = "as many as are found",
	  .nograd = true, .cost = cost_bytes, .test = "x:{1,0,3}" },
	{ .name = "Compress", .since = 9, .sig = "x:T condition:bool -> y:T", .attrs = "axis:int",
	  .shape = shape_compress, .kernel = "compress", .eval = eval_compress,
	  .unsplit = "as many as are found", .linear = "x",
	  .grad = "at = Squeeze(NonZero(condition), [0]);"
	          "dx = GatherGrad<axis=@axis>(dy, x, at) @when(\"has(axis)\");"
	          "dx = Reshape<allowzero=1>(GatherGrad<axis=0>(dy, Reshape(x, [-1]), at), Shape(x)) "
	          "@when(\"!has(axis)\")",
	  .cost = cost_bytes, .test = "x:[3,4] condition:bool{1,0,1} =axis:0 | x:[2,3] condition:bool{0,1,1,0,0,1}" },
	{ 0 },
};
