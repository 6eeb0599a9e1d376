/* Reductions over axes.  Sums and products accumulate in double (integers in 64 bits, wrapping).  Where a maximum or
 * minimum is reached more than once its gradient is shared equally among these elements: a subgradient, and the same on
 * every plan. */
#include "ops.h"
#include <math.h>
#include <string.h>

/* Which axes are reduced; 1 when that is not known yet. */
static int reduced(Node *n, int ndim, bool *gone)
{
	bool given = n->nin > 1 && n->in[1], noop = attr_int(n, "noop_with_empty_axes") != 0;
	const Tensor *t = given ? operand_const(n, 1) : NULL;
	if (given && !t)
		return 1;
	int64_t k = t ? tensor_elements(t) : 0;
	for (int a = 0; a < ndim; a++)
		gone[a] = k == 0 && !noop;
	for (int64_t i = 0; i < k; i++) {
		int a;
		if (op_axis(n, tensor_int(t, i), ndim, &a) != 0)
			return -1;
		gone[a] = true;
	}
	return 0;
}

static int shape_reduce(Node *n)
{
	const Type *x = operand_type(n, 0);
	bool gone[NDIM_MAX], keep = attr_int(n, "keepdims") != 0;
	Dim dim[NDIM_MAX];
	int ndim = 0;
	if (!x || x->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	int bad = reduced(n, x->ndim, gone);
	if (bad < 0)
		return -1;
	for (int a = 0; a < x->ndim; a++)
		if (bad)
			dim[ndim++] = DIM_UNKNOWN;
		else if (!gone[a] || keep)
			dim[ndim++] = gone[a] ? 1 : x->dim[a];
	operand_set_result(n, 0, x->elem, bad && !keep ? -1 : ndim, dim);
	return 0;
}

typedef enum { R_SUM, R_MEAN, R_PROD, R_MAX, R_MIN } Kind;

static Kind kind_of(const Node *n)
{
	static const char *const names[] = { "ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax",
		"ReduceMin" };
	for (int i = 0; i < 5; i++)
		if (!strcmp(n->op, names[i]))
			return (Kind)i;
	die("%s is no reduction", n->op);
}

static int64_t first_int(Kind k, DType t)
{
	int bits = dtype_bits(t);
	if (k != R_MAX && k != R_MIN)
		return k == R_PROD;
	if (t == DT_BOOL)
		return k == R_MIN;
	if (!dtype_is_signed(t))
		return k == R_MAX ? 0 : bits == 64 ? -1 : ((int64_t)1 << bits) - 1;
	return k == R_MAX ? (int64_t)(UINT64_MAX << (bits - 1)) : (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
}

static double join(Kind k, double a, double x)
{
	switch (k) {
	case R_PROD: return a * x;
	case R_MAX: return isnan(a) || a > x ? a : x;
	case R_MIN: return isnan(a) || a < x ? a : x;
	default: return a + x;
	}
}

static int64_t join_int(Kind k, int64_t a, int64_t x, bool isuint64)
{
	bool less = isuint64 ? (uint64_t)a < (uint64_t)x : a < x;
	switch (k) {
	case R_PROD: return (int64_t)((uint64_t)a * (uint64_t)x);
	case R_MAX: return less ? x : a;
	case R_MIN: return less ? a : x;
	default: return (int64_t)((uint64_t)a + (uint64_t)x);
	}
}

/* Strides of the odometer that finds the result element of each operand element. */
static void result_strides(const Tensor *x, const bool *gone, int64_t *stride)
{
	int64_t s = 1;
	for (int a = x->ndim; a-- > 0;) {
		stride[a] = gone[a] ? 0 : s;
		s *= gone[a] ? 1 : x->dim[a];
	}
}

static int eval_reduce(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0];
	Kind kind = kind_of(n);
	bool gone[NDIM_MAX], real = dtype_is_float(x->dtype), u64 = x->dtype == DT_UINT64;
	int64_t stride[NDIM_MAX], idx[NDIM_MAX] = { 0 }, total = tensor_elements(x),
				  many = tensor_elements(out[0]), at = 0;
	if (reduced(n, x->ndim, gone) != 0)
		return -1;
	result_strides(x, gone, stride);
	static const double first[] = {
		[R_SUM] = 0, [R_MEAN] = 0, [R_PROD] = 1, [R_MAX] = -INFINITY, [R_MIN] = INFINITY,
	};
	double *v = real ? eval_doubles(x) : NULL, *r = eval_scratch((size_t)many * 8);
	int64_t *vi = real ? NULL : eval_ints(x), *ri = (int64_t *)r;
	for (int64_t i = 0; i < many; i++)
		if (real)
			r[i] = first[kind];
		else
			ri[i] = first_int(kind, x->dtype);
	for (int64_t i = 0; i < total; i++) {
		if (real)
			r[at] = join(kind, r[at], v[i]);
		else
			ri[at] = join_int(kind, ri[at], vi[i], u64);
		at = tensor_next(x->ndim, x->dim, stride, idx, at);
	}
	int64_t among;
	attr_origin(n, many ? total / many : 0, &among);
	for (int64_t i = 0; kind == R_MEAN && i < many; i++)
		if (real)
			r[i] = r[i] / (double)among;
		else
			ri[i] = total ? ri[i] / among : 0;
	if (real)
		eval_store(out[0], r);
	else
		eval_store_ints(out[0], ri);
	return 0;
}

/* Reduced axes are factors that the result lacks.  A mean divides by the length of the logical axis, which is an
 * attribute of a shard node. */
static int factor_reduce(Node *n, FactorRule *r)
{
	const Type *x = operand_type(n, 0), *y = n->out[0] ? n->out[0]->type : NULL;
	bool gone[NDIM_MAX];
	Kind kind = kind_of(n);
	if (!x || !y || x->ndim < 0 || y->ndim < 0 || reduced(n, x->ndim, gone) != 0)
		return -1;
	static const Reduce partial[] = {
		[R_SUM] = RED_SUM, [R_MEAN] = RED_SUM, [R_PROD] = RED_PROD, [R_MAX] = RED_MAX, [R_MIN] = RED_MIN,
	};
	r->red = partial[kind];
	bool keep = x->ndim == y->ndim;
	for (int a = 0, k = 0; a < x->ndim; a++) {
		if (!gone[a])
			r->in[0][a] = r->out[0][k] = factor_add(r, x->dim[a]);
		else
			r->in[0][a] = kind == R_MEAN ? factor_counted(r, x->dim[a]) : factor_add(r, x->dim[a]);
		k += keep || !gone[a];
	}
	return 0;
}

/* ---- the sum of the squares of all elements ---- */

static int shape_sum_square(Node *n)
{
	operand_set_result(n, 0, operand_dtype(n, 0), 0, NULL);
	return 0;
}

static int factor_sum_square(Node *n, FactorRule *r)
{
	const Type *x = operand_type(n, 0);
	if (!x || x->ndim < 0)
		return -1;
	for (int a = 0; a < x->ndim; a++)
		r->in[0][a] = factor_add(r, x->dim[a]);
	return 0;
}

static Cost cost_sum_square(const Node *n)
{
	Cost c = cost_reduce(n);
	c.flops *= 2;
	return c;
}

/* The number of elements that are reduced to one. */
static int64_t reduced_count(const Node *n)
{
	int64_t x = type_elements(n->in[0]->type), y = n->out[0] ? type_elements(n->out[0]->type) : 0;
	return y > 0 ? x / y : 0;
}

/* A shard of a mean divides by the count of the logical mean. */
static void fit_mean(Node *shard, const Node *logical)
{
	int64_t among = reduced_count(logical);
	if (reduced_count(shard) == among)
		return;
	shard->shard = true;
	shard->attr[shard->nattr++] = (Attr){ .name = name_of("among"), .type = AT_INT, .u.i = among };
}

/* clang-format off */
/* "w" is dy, and "v" is y, seen in the shape of x. */
#define BACK(NAME, OF) \
	NAME " = LikeShape(" OF ", x) @when(\"keepdims != 0 || !has(axes)\"); " \
	NAME " = LikeShape(Unsqueeze(" OF ", axes), x) @when(\"keepdims == 0 && has(axes)\"); "
#define KEEP "<keepdims=1, noop_with_empty_axes=@noop_with_empty_axes>"
#define EXTREME \
	BACK("w", "dy") BACK("v", "y") \
	"m = CastLike(Equal(x, v), x); dx = Mul(m, Div(w, ReduceSum" KEEP "(m, axes)))"
/* The product of the other elements: the product of all elements that are not zero, if no other element is zero; so
 * nothing is divided by zero. */
#define PRODUCT \
	BACK("w", "dy") \
	"z = Equal(x, 0); zf = CastLike(z, x); k = ReduceSum" KEEP "(zf, axes); s = Where(z, OnesLike(x), x);" \
	"p = ReduceProd" KEEP "(s, axes); o = Div(p, s); dx = Mul(w, Where(Equal(k, zf), o, ZerosLike(x)))"
#define TESTS \
	"x:[2,3,4] axes:{1} | x:[2,3,4] axes:{0,-1} =keepdims:0 | x:[2,3] =keepdims:0 | " \
	"x:[2,3] axes:{} =noop_with_empty_axes:1"
#define REDUCE(NAME, KERNEL, SINCE, T, PRECISION, GRAD) \
	{ .name = NAME, .since = SINCE, .precision = PRECISION, .sig = "x:" T " axes:int64? -> y:" T, \
	  .attrs = "keepdims:int=1 noop_with_empty_axes:int=0", \
	  .shape = shape_reduce, .kernel = KERNEL, .eval = eval_reduce, .factor_fn = factor_reduce, \
	  .grad = GRAD, .cost = cost_reduce, .test = TESTS }
#define REDUCE_LINEAR(NAME, KERNEL, SINCE, T, FIT, GRAD) \
	{ .name = NAME, .since = SINCE, .precision = PRECISION_FLOAT, .sig = "x:" T " axes:int64? -> y:" T, \
	  .attrs = "keepdims:int=1 noop_with_empty_axes:int=0", \
	  .shape = shape_reduce, .kernel = KERNEL, .eval = eval_reduce, \
	  .factor_fn = factor_reduce, .fit = FIT, .linear = "x", .grad = GRAD, .cost = cost_reduce, .test = TESTS }

const Op ops_reduce[] = {
	REDUCE_LINEAR("ReduceSum", "reduce_sum", 13, "N", NULL, BACK("dx", "dy")),
	REDUCE_LINEAR("ReduceMean", "reduce_mean", 18, "N", fit_mean,
	              BACK("w", "dy") "dx = Div(w, CastLike(Div(Size(x), Size(y)), dy))"),
	REDUCE("ReduceProd", "reduce_prod", 18, "N", PRECISION_FLOAT, PRODUCT),
	REDUCE("ReduceMax", "reduce_max", 18, "T", PRECISION_WIDEST, EXTREME),
	REDUCE("ReduceMin", "reduce_min", 18, "T", PRECISION_WIDEST, EXTREME),
	{ .name = "SumSquare", .domain = "sbpcc", .since = 1, .precision = PRECISION_FLOAT, .sig = "x:F -> y:F",
	  .shape = shape_sum_square, .kernel = "sum_square", .composite = true, .factor_fn = factor_sum_square,
	  .cost = cost_sum_square, .test = "x:[2,3,4] | x:[7]" },
	{ 0 },
};
