/* Shapes: rules that many rows share, and the operators that read a shape or make a constant. */
#include "ops.h"
#include <math.h>
#include <string.h>

/* Shared rules. */
static bool unknown_shape(Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && operand_ndim(n, i) < 0)
			return true;
	return false;
}

int shape_like_first(Node *n)
{
	const Type *t = operand_type(n, 0);
	if (t)
		operand_set_result(n, 0, t->elem, t->ndim, t->dim);
	return 0;
}

static Dim broadcast_dim(Dim a, Dim b)
{
	if (a == 1 || dim_same(a, b))
		return b;
	if (b == 1)
		return a;
	if (dim_known(a) && !dim_known(b))      /* the other must be 1 or the same */
		return a;
	if (dim_known(b) && !dim_known(a))
		return b;
	return dim_known(a) ? DIM_OVERFLOW : DIM_UNKNOWN;
}

int shape_broadcast_dims(Node *n, int ndim, Dim *dim, int bndim, const Dim *bdim)
{
	int r = ndim > bndim ? ndim : bndim;
	Dim was[NDIM_MAX];
	memcpy(was, dim, (size_t)ndim * sizeof *dim);
	for (int i = r; i-- > 0;) {
		int ia = i - (r - ndim), ib = i - (r - bndim);
		Dim a = ia >= 0 ? was[ia] : 1, b = ib >= 0 ? bdim[ib] : 1;
		dim[i] = broadcast_dim(a, b);
		if (dim[i] == DIM_OVERFLOW) {
			err_at(n->loc, "%s cannot broadcast %lld with %lld: the shapes are %s and %s", n->op,
				(long long)a, (long long)b,
				type_text(&(Type){ .elem = operand_dtype(n, 0), .ndim = ndim, .dim = was }),
				type_text(&(Type){
					.elem = operand_dtype(n, 0), .ndim = bndim, .dim = (Dim *)bdim }));
			return -1;
		}
	}
	return r;
}

int shape_broadcast_as(Node *n, DType elem)
{
	Dim dim[NDIM_MAX];
	int ndim = 0;
	if (unknown_shape(n)) {
		operand_set_result(n, 0, elem, -1, NULL);
		return 0;
	}
	for (int i = 0; i < n->nin; i++) {
		const Type *t = operand_type(n, i);
		if (t && (ndim = shape_broadcast_dims(n, ndim, dim, t->ndim, t->dim)) < 0)
			return -1;
	}
	operand_set_result(n, 0, elem, ndim, dim);
	return 0;
}

int shape_broadcast(Node *n)
{
	return shape_broadcast_as(n, operand_dtype(n, 0));
}

int shape_compare(Node *n)
{
	return shape_broadcast_as(n, DT_BOOL);
}

int shape_ndim_check(Node *n, int64_t ndim)
{
	if (ndim <= NDIM_MAX)
		return 0;
	err_at(n->loc, "%s: %lld axes are more than %d", n->op, (long long)ndim, NDIM_MAX);
	return -1;
}

/* A result of known number of axes and unknown lengths. */
int shape_any(Node *n, int i, DType elem, int ndim)
{
	Dim dim[NDIM_MAX];
	for (int a = 0; a < ndim; a++)
		dim[a] = DIM_UNKNOWN;
	operand_set_result(n, i, elem, ndim, dim);
	return 0;
}

void shape_fit(Node *shard, const Node *logical)
{
	const Type *y = shard->out[0] ? shard->out[0]->type : NULL;
	int i = 0;
	while (i < shard->row->schema->nin && strcmp(shard->row->schema->in[i].name, "shape"))
		i++;
	if (i >= shard->nin || !shard->in[i] || !y)
		return;
	Tensor *t = tensor_ints(shard->graph->scratch, y->dim, y->ndim);
	shard->in[i]->data = t;
	shard->in[i]->elem = NULL;
	shard->in[i]->nelem = 0;
	(void)logical;
}

/* Shape and Size. */
static int shape_shape(Node *n)
{
	int ndim = operand_ndim(n, 0), from, to;
	Dim d = DIM_UNKNOWN;
	if (ndim >= 0) {
		contents_range(n, ndim, &from, &to);
		d = to - from;
	}
	operand_set_result(n, 0, DT_INT64, 1, &d);
	return 0;
}

static int eval_shape(Node *n, Tensor **in, Tensor **out)
{
	int from, to;
	contents_range(n, in[0]->ndim, &from, &to);
	for (int i = from; i < to; i++)
		tensor_set_int(out[0], i - from, in[0]->dim[i]);
	return 0;
}

static int shape_size(Node *n)
{
	operand_set_result(n, 0, DT_INT64, 0, NULL);
	return 0;
}

static int eval_size(Node *n, Tensor **in, Tensor **out)
{
	(void)n;
	tensor_set_int(out[0], 0, tensor_elements(in[0]));
	return 0;
}

/* Constant: exactly one of the attributes gives the value. */
static const Attr *constant_attr(Node *n)
{
	static const char *const names[] = { "value", "sparse_value", "value_float", "value_floats",
		"value_int", "value_ints", "value_string", "value_strings" };
	const Attr *found = NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const Attr *a = node_attr(n, names[i]);
		if (a && found) {
			err_at(n->loc, "Constant has both %s and %s", found->name, a->name);
			return NULL;
		}
		found = a ? a : found;
	}
	if (!found)
		err_at(n->loc, "Constant has no value");
	else if (found->type == AT_STRING || found->type == AT_STRINGS) {
		err_at(n->loc, "Constant %s: strings are not supported: tensors hold numbers and bools", found->name);
		return NULL;
	}
	return found;
}

static int shape_constant(Node *n)
{
	const Attr *a = constant_attr(n);
	if (!a)
		return -1;
	Dim len = a->n;
	switch (a->type) {
	case AT_TENSOR: case AT_SPARSE:
		if (!a->u.t)
			break;
		operand_set_result(n, 0, a->u.t->dtype, a->u.t->ndim, a->u.t->dim);
		return 0;
	case AT_FLOAT: operand_set_result(n, 0, DT_FLOAT, 0, NULL); return 0;
	case AT_FLOATS: operand_set_result(n, 0, DT_FLOAT, 1, &len); return 0;
	case AT_INT: operand_set_result(n, 0, DT_INT64, 0, NULL); return 0;
	case AT_INTS: operand_set_result(n, 0, DT_INT64, 1, &len); return 0;
	default: break;
	}
	err_at(n->loc, "Constant: attribute %s has the wrong type", a->name);
	return -1;
}

static int eval_constant(Node *n, Tensor **in, Tensor **out)
{
	const Attr *a = constant_attr(n);
	Tensor *t = out[0];
	int64_t len = tensor_elements(t);
	(void)in;
	if (!a)
		return -1;
	if (a->type == AT_TENSOR || a->type == AT_SPARSE) {
		if (extdata_load(a->u.t) != 0)
			return -1;
		if (t->dtype == a->u.t->dtype)
			memcpy((void *)t->data, a->u.t->data, t->bytes);
		else
			eval_store(t, eval_doubles(a->u.t));
		return 0;
	}
	for (int64_t i = 0; i < len; i++)
		switch (a->type) {
		case AT_FLOAT: tensor_set(t, i, a->u.f); break;
		case AT_FLOATS: tensor_set(t, i, a->u.fs[i]); break;
		case AT_INT: tensor_set_int(t, i, a->u.i); break;
		default: tensor_set_int(t, i, a->u.is[i]);
		}
	return 0;
}

/* ConstantOfShape. */
static const Tensor *fill_value(Node *n)
{
	const Attr *a = node_attr(n, "value");
	return a && a->type == AT_TENSOR ? a->u.t : NULL;
}

static int shape_constant_of_shape(Node *n)
{
	Dim dim[NDIM_MAX];
	const Tensor *fill = fill_value(n), *t = operand_const(n, 0);
	DType elem = fill ? fill->dtype : DT_FLOAT;
	if (fill && tensor_elements(fill) != 1) {
		err_at(n->loc, "ConstantOfShape: value must have one element, not %lld",
			(long long)tensor_elements(fill));
		return -1;
	}
	if (elem == DT_STRING) {
		err_at(n->loc, "ConstantOfShape: strings are not supported: tensors hold numbers and bools");
		return -1;
	}
	const Type *s = operand_type(n, 0);
	if (s && s->ndim == 1 && dim_known(s->dim[0]) && s->dim[0] > NDIM_MAX) {
		err_at(operand_loc(n, 0), "ConstantOfShape: %lld axes are more than %d", (long long)s->dim[0],
			NDIM_MAX);
		return -1;
	}
	for (int64_t i = 0; t && i < tensor_elements(t); i++)
		if (tensor_int(t, i) < 0) {
			err_at(operand_loc(n, 0), "ConstantOfShape: the shape has a negative size, %lld",
				(long long)tensor_int(t, i));
			return -1;
		}
	int ndim = operand_dims(n, 0, dim, NDIM_MAX);
	if (ndim < 0 && s && s->ndim == 1 && dim_known(s->dim[0])) {
		ndim = (int)s->dim[0];
		for (int i = 0; i < ndim; i++)
			dim[i] = DIM_UNKNOWN;
	}
	operand_set_result(n, 0, elem, ndim, dim);
	return 0;
}

static int eval_constant_of_shape(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *fill = fill_value(n);
	int64_t len = tensor_elements(out[0]);
	(void)in;
	if (!fill)
		return 0;
	if (extdata_load((Tensor *)fill) != 0)
		return -1;
	if (dtype_is_float(fill->dtype)) {
		double v = tensor_get(fill, 0);
		for (int64_t i = 0; v != 0 && i < len; i++)
			tensor_set(out[0], i, v);
	} else {
		int64_t v = tensor_int(fill, 0);
		for (int64_t i = 0; v != 0 && i < len; i++)
			tensor_set_int(out[0], i, v);
	}
	return 0;
}

/* Range. */
static int range_length(Node *n, const Tensor *s, const Tensor *e, const Tensor *d, int64_t *len)
{
	if (tensor_elements(s) != 1 || tensor_elements(e) != 1 || tensor_elements(d) != 1) {
		err_at(n->loc, "Range: start, limit and delta must be scalars");
		return -1;
	}
	if (tensor_get(d, 0) == 0) {
		err_at(operand_loc(n, 2), "Range: delta is zero");
		return -1;
	}
	if (dtype_is_float(d->dtype)) {
		double k = ceil((tensor_get(e, 0) - tensor_get(s, 0)) / tensor_get(d, 0));
		if (!(k <= (double)limits.elements)) {
			fail_at(EXIT_LIMIT, n->loc, "Range: more than %lld elements (--max-elements)",
				(long long)limits.elements);
			return -1;
		}
		*len = k > 0 ? (int64_t)k : 0;
		return 0;
	}
	int64_t from = tensor_int(s, 0), to = tensor_int(e, 0), step = tensor_int(d, 0);
	if ((step > 0) != (to > from)) {
		*len = 0;
		return 0;
	}
	uint64_t span = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
	uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step, k = span / by + (span % by != 0);
	if (k > (uint64_t)limits.elements) {
		fail_at(EXIT_LIMIT, n->loc, "Range: more than %lld elements (--max-elements)",
			(long long)limits.elements);
		return -1;
	}
	*len = (int64_t)k;
	return 0;
}

static int shape_range_op(Node *n)
{
	const Tensor *s = operand_const(n, 0), *e = operand_const(n, 1), *d = operand_const(n, 2);
	Dim from, to, step, len = DIM_UNKNOWN;
	int64_t k;
	if (s && e && d) {
		if (range_length(n, s, e, d, &k) != 0)
			return -1;
		len = k;
	} else if (!dtype_is_float(operand_dtype(n, 0)) && operand_dims(n, 0, &from, 1) == 1 &&
		   operand_dims(n, 1, &to, 1) == 1 && operand_dims(n, 2, &step, 1) == 1 && from != DIM_UNKNOWN &&
		   to != DIM_UNKNOWN && dim_known(step) && step > 0) {
		len = dim_ceildiv(dim_sub(to, from), step);
	}
	operand_set_result(n, 0, operand_dtype(n, 0), 1, &len);
	return 0;
}

static int eval_range(Node *n, Tensor **in, Tensor **out)
{
	int64_t len = out[0]->dim[0];
	(void)n;
	for (int64_t i = 0; i < len; i++)
		if (dtype_is_float(in[0]->dtype))
			tensor_set(out[0], i, tensor_get(in[0], 0) + (double)i * tensor_get(in[2], 0));
		else
			tensor_set_int(out[0], i,
				(int64_t)((uint64_t)tensor_int(in[0], 0) +
					  (uint64_t)i * (uint64_t)tensor_int(in[2], 0)));
	return 0;
}

/* clang-format off */
const Op ops_shape[] = {
	{ .name = "Shape", .since = 1, .sig = "x:T -> y:int64", .attrs = "start:int=0 end:int",
	  .shape = shape_shape, .kernel = "shape", .eval = eval_shape, .unsplit = "it is about the full value",
	  .nograd = true, .cost = cost_bytes, .test = "x:[2,3,4] | x:[2,3,4] =start:-2 | x:[2,3,4] =start:1 =end:2" },
	{ .name = "Size", .since = 1, .sig = "x:T -> y:int64",
	  .shape = shape_size, .kernel = "size", .eval = eval_size, .unsplit = "it is about the full value",
	  .nograd = true, .cost = cost_bytes, .test = "x:[2,3]" },
	{ .name = "Constant", .since = 1, .sig = "-> y:T",
	  .attrs = "value:tensor sparse_value:sparse_tensor value_float:float value_floats:floats value_int:int "
	           "value_ints:ints value_string:string value_strings:strings",
	  .shape = shape_constant, .kernel = "constant", .eval = eval_constant,
	  .unsplit = "it is written into the program", .nograd = true, .cost = cost_bytes,
	  .test = "=value_float:1.5" },
	{ .name = "ConstantOfShape", .since = 9, .sig = "shape:int64 -> y:T", .attrs = "value:tensor",
	  .shape = shape_constant_of_shape, .kernel = "fill", .eval = eval_constant_of_shape,
	  .factors = "* -> ...", .fit = shape_fit, .nograd = true, .cost = cost_bytes, .test = "shape:{2,3}" },
	{ .name = "Range", .since = 11, .sig = "start:N limit:N delta:N -> y:N",
	  .shape = shape_range_op, .kernel = "range", .eval = eval_range,
	  .unsplit = "its elements count from the first", .nograd = true, .cost = cost_bytes,
	  .test = "start:{1} limit:{9} delta:{3}" },
	{ .name = "ZerosLike", .domain = "sbpcc", .since = 1, .sig = "x:T -> y:T",
	  .shape = shape_like_first, .expr = "0", .factors = "... -> ...", .linear = "x", .nograd = true,
	  .cost = cost_bytes, .test = "x:[2,3]" },
	{ .name = "OnesLike", .domain = "sbpcc", .since = 1, .sig = "x:T -> y:T",
	  .shape = shape_like_first, .expr = "1", .factors = "... -> ...", .nograd = true, .cost = cost_bytes,
	  .test = "x:[2,3]" },
	{ 0 },
};
