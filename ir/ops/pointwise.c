/* Operators that work element by element: each row carries its scalar expression, from which the evaluator, the C loop
 * and the CUDA kernel are written.  Gradients are written so that they stay finite wherever the derivative is: at 0, at
 * +-100 and at +-10,000.  Where a maximum is reached more than once its gradient is shared equally. */
#include "ops.h"
#include <math.h>
#include <string.h>

static int shape_where(Node *n)
{
	return shape_broadcast_as(n, operand_dtype(n, 1));
}

static int shape_to_bool(Node *n)
{
	const Type *t = operand_type(n, 0);
	operand_set_result(n, 0, DT_BOOL, t ? t->ndim : -1, t ? t->dim : NULL);
	return 0;
}

static int integers(Node *n)
{
	DType t = operand_dtype(n, 0);
	if (t == DT_UNDEFINED || dtype_is_int(t))
		return 0;
	err_at(operand_loc(n, 0), "%s works on integers, not on %s", n->op, dtype_name(t));
	return -1;
}

static int shape_bits(Node *n)
{
	return integers(n) != 0 ? -1 : shape_broadcast(n);
}

static int shape_bits_one(Node *n)
{
	return integers(n) != 0 ? -1 : shape_like_first(n);
}

static int shape_shift(Node *n)
{
	Name d = attr_str(n, "direction");
	if (!d || (strcmp(d, "LEFT") && strcmp(d, "RIGHT"))) {
		err_at(n->loc, "BitShift: direction must be LEFT or RIGHT, not %s", d ? d : "\"\"");
		return -1;
	}
	return shape_bits(n);
}

static int shape_clip(Node *n)
{
	for (int i = 1; i < 3; i++) {
		const Type *t = operand_type(n, i);
		if (t && t->ndim >= 0 && type_elements(t) >= 0 && type_elements(t) != 1) {
			err_at(operand_loc(n, i), "Clip: the %s bound must be a scalar, not %s",
				i == 1 ? "lower" : "upper", type_text(t));
			return -1;
		}
	}
	return shape_like_first(n);
}

/* Cast.  Integers to integers wrap; floats to integers drop the fraction; 8-bit floats saturate by attribute. */
static int cast_to(Node *n, int64_t to)
{
	const Type *t = operand_type(n, 0);
	if (to <= DT_UNDEFINED || to >= DT_COUNT) {
		err_at(n->loc, "%s: %lld is no element type", n->op, (long long)to);
		return -1;
	}
	DType from = t ? t->elem : DT_UNDEFINED, ends[2] = { from, (DType)to };
	for (int i = 0; i < 2; i++)
		if (ends[i] == DT_STRING || ends[i] == DT_COMPLEX64 || ends[i] == DT_COMPLEX128) {
			err_at(n->loc, "%s: %s is not supported: tensors hold numbers and bools", n->op,
				dtype_name(ends[i]));
			return -1;
		}
	operand_set_result(n, 0, (DType)to, t ? t->ndim : -1, t ? t->dim : NULL);
	return 0;
}

static int shape_cast(Node *n)
{
	return cast_to(n, attr_int(n, "to"));
}

static int shape_cast_like(Node *n)
{
	DType to = operand_dtype(n, 1);
	return to == DT_UNDEFINED ? 0 : cast_to(n, to);
}

/* A power of two, rounded as Cast to float8e8m0 requires; storing rounds to the nearest. */
static double to_power(double v, Name mode)
{
	int e;
	if (!(v > 0) || isinf(v) || !mode || !strcmp(mode, "nearest"))
		return v;
	double f = frexp(v, &e);
	return ldexp(1, !strcmp(mode, "up") && f > 0.5 ? e : e - 1);
}

static void cast_float(Node *n, const Tensor *in, Tensor *out)
{
	int64_t len = tensor_elements(in);
	bool small = dtype_is_float(out->dtype) && dtype_bits(out->dtype) == 8,
	     sat = attr_int(n, "saturate") != 0;
	Name mode = out->dtype == DT_FLOAT8E8M0 ? attr_str(n, "round_mode") : NULL;
	for (int64_t i = 0; i < len; i++) {
		double v = tensor_get(in, i);
		if (small)
			((uint8_t *)out->data)[i] = (uint8_t)dtype_encode(out->dtype, to_power(v, mode), sat);
		else
			tensor_set(out, i, v);
	}
}

static int eval_cast(Node *n, Tensor **in, Tensor **out)
{
	DType from = in[0]->dtype, to = out[0]->dtype;
	if (from == to && in[0]->bytes)
		memcpy((void *)out[0]->data, in[0]->data, in[0]->bytes);
	else if (from == to)
		return 0;
	else if (!dtype_is_float(from) && !dtype_is_float(to))
		eval_store_ints(out[0], eval_ints(in[0]));
	else if ((from == DT_FLOAT || from == DT_DOUBLE || !dtype_is_float(from)) &&
		 (to == DT_FLOAT || to == DT_DOUBLE))
		eval_store(out[0], eval_doubles(in[0]));
	else
		cast_float(n, in[0], out[0]);
	return 0;
}

/* The axes of the first operand are those of the result; the other operands are not split. */
static int factor_first(Node *n, FactorRule *r)
{
	for (int a = 0; r->in[0] && r->out[0] && a < operand_ndim(n, 0); a++)
		r->in[0][a] = r->out[0][a] = factor_add(r, operand_type(n, 0)->dim[a]);
	return 0;
}

/* Gradients of the variadic rows. */
static Value *undo(Node *n, Value *g, Value *x)
{
	return build(n->graph, n->loc, "ReduceTo", NULL, 1, NULL, 2, g, x);
}

static int grad_sum(Node *n, Value **dout, Value **din)
{
	Graph *g = n->graph;
	Value *d = dout[0];
	if (!strcmp(n->op, "Mean")) {
		Value *k = graph_const(g,
			tensor_scalar(g->arena, n->in[0]->type ? n->in[0]->type->elem : DT_FLOAT, n->nin),
			"count");
		d = build(g, n->loc, "Div", NULL, 1, NULL, 2, d, k);
	}
	for (int i = 0; i < n->nin; i++)
		din[i] = undo(n, d, n->in[i]);
	return 0;
}

static int grad_extreme(Node *n, Value **dout, Value **din)
{
	Graph *g = n->graph;
	Value *count = NULL, *y = n->out[0], *d = dout[0];
	Value **hit = arena_array(g->arena, Value *, n->nin);
	for (int i = 0; i < n->nin; i++) {
		hit[i] = build(g, n->loc, "CastLike", NULL, 1, NULL, 2,
			build(g, n->loc, "Equal", NULL, 1, NULL, 2, n->in[i], y), d);
		count = count ? build(g, n->loc, "Add", NULL, 1, NULL, 2, count, hit[i]) : hit[i];
	}
	Value *share = build(g, n->loc, "Div", NULL, 1, NULL, 2, d, count);
	for (int i = 0; i < n->nin; i++)
		din[i] = undo(n, build(g, n->loc, "Mul", NULL, 1, NULL, 2, share, hit[i]), n->in[i]);
	return 0;
}

/* clang-format off */
#define UNARY(NAME, SINCE, T, EXPR, FLOPS, PRECISION, TEST, GRAD) \
	{ .name = NAME, .since = SINCE, .precision = PRECISION, .sig = "x:" T " -> y:" T, \
	  .shape = shape_like_first, .expr = EXPR, .factors = "... -> ...", .grad = GRAD, \
	  .cost = cost_pointwise, .flops = FLOPS, .test = TEST }
/* Steps and tests of single elements: the derivative is zero where it exists. */
#define STEP(NAME, SINCE, T, EXPR) \
	{ .name = NAME, .since = SINCE, .sig = "x:" T " -> y:" T, \
	  .shape = shape_like_first, .expr = EXPR, .factors = "... -> ...", .nograd = true, \
	  .cost = cost_pointwise, .flops = 1, .test = "x:[2,3,4]" }
#define COMPARE(NAME, SINCE, T, EXPR) \
	{ .name = NAME, .since = SINCE, .sig = "a:" T " b:" T " -> c:bool", \
	  .shape = shape_compare, .expr = EXPR, .factors = "..., ... -> ...", .nograd = true, \
	  .cost = cost_pointwise, .flops = 1, .test = "a:[2,3,4] b:[3,1]" }
#define LOGIC(NAME, SINCE, EXPR) \
	{ .name = NAME, .since = SINCE, .sig = "a:bool b:bool -> c:bool", \
	  .shape = shape_compare, .expr = EXPR, .factors = "..., ... -> ...", .nograd = true, \
	  .cost = cost_pointwise, .flops = 1, .test = "a:{0,1} b:{1,1}" }
#define BITS(NAME, SINCE, EXPR) \
	{ .name = NAME, .since = SINCE, .sig = "a:N b:N -> c:N", \
	  .shape = shape_bits, .expr = EXPR, .factors = "..., ... -> ...", .nograd = true, \
	  .cost = cost_pointwise, .flops = 1, .test = "a:{3,5} b:{1,6}" }

const Op ops_pointwise[] = {
	{ .name = "Add", .since = 7, .sig = "a:N b:N -> c:N", .shape = shape_broadcast, .expr = "a + b",
	  .factors = "..., ... -> ...", .linear = "a+b", .grad = "da = ReduceTo(dc, a); db = ReduceTo(dc, b)",
	  .cost = cost_pointwise, .flops = 1, .test = "a:[2,3,4] b:[3,1] | a:[4] b:[2,3,4] | a:[2,3] b:[2,3]" },
	{ .name = "Sub", .since = 7, .sig = "a:N b:N -> c:N", .shape = shape_broadcast, .expr = "a - b",
	  .factors = "..., ... -> ...", .linear = "a+b", .grad = "da = ReduceTo(dc, a); db = ReduceTo(Neg(dc), b)",
	  .cost = cost_pointwise, .flops = 1, .test = "a:[2,3,4] b:[3,1] | a:[4] b:[2,3,4]" },
	{ .name = "Mul", .since = 7, .sig = "a:N b:N -> c:N", .shape = shape_broadcast, .expr = "a * b",
	  .factors = "..., ... -> ...", .linear = "a b",
	  .grad = "da = ReduceTo(Mul(dc, b), a); db = ReduceTo(Mul(dc, a), b)", .cost = cost_pointwise, .flops = 1,
	  .test = "a:[2,3,4] b:[3,1] | a:[4] b:[2,3,4]" },
	{ .name = "Div", .since = 7, .sig = "a:N b:N -> c:N", .shape = shape_broadcast, .expr = "a / b",
	  .factors = "..., ... -> ...", .linear = "a",
	  .grad = "t = Div(dc, b); da = ReduceTo(t, a); db = ReduceTo(Neg(Mul(t, c)), b)",
	  .cost = cost_pointwise, .flops = 4, .test = "a:[2,3,4] b:(0.5,2)[3,1] | a:[4] b:(0.5,2)[2,3,4]" },
	{ .name = "Mod", .since = 10, .sig = "a:N b:N -> c:N", .attrs = "fmod:int=0",
	  .shape = shape_broadcast, .expr = "@fmod ? fmod(a, b) : mod(a, b)", .factors = "..., ... -> ...",
	  .grad = "da = ReduceTo(dc, a); db = ReduceTo(Neg(Mul(dc, Round(Div(Sub(a, c), b)))), b)",
	  .cost = cost_pointwise, .flops = 8, .test = "a:(2.1,2.9)[2,3] b:(0.95,1)[3] =fmod:1" },
	/* Where y = 0 the exponent stays 0, so that the derivative in x is 0 even at x = 0.  log x is computed only
	 * where x > 0: elsewhere the power is not differentiable in y, and the gradient is 0. */
	{ .name = "Pow", .since = 7, .precision = PRECISION_FLOAT, .sig = "x:N y:N1 -> z:N",
	  .shape = shape_broadcast, .expr = "pow(x, y)", .factors = "..., ... -> ...",
	  .grad = "e = CastLike(y, x); "
	          "none = Equal(e, 0);"
	          "p = Mul(e, Pow(x, Sub(e, CastLike(Not(none), x))));"
	          "dx = ReduceTo(Mul(dz, p), x); "
	          "pos = Greater(x, 0);"
	          "dy = ReduceTo(CastLike(Mul(dz, Mul(z, Log(Where(pos, x, OnesLike(x))))), y), y)",
	  .cost = cost_pointwise, .flops = 16, .test = "x:(0.5,2)[2,3] y:[3] | x:(0.5,2)[3] y:[2,1]" },
	UNARY("Abs", 6, "N", "abs(x)", 1, PRECISION_WIDEST, "x:[2,3,4]",
	      "dx = Mul(dy, Sign(x))"),
	{ .name = "Neg", .since = 6, .sig = "x:N -> y:N", .shape = shape_like_first, .expr = "-x",
	  .factors = "... -> ...", .linear = "x", .grad = "dx = Neg(dy)", .cost = cost_pointwise, .flops = 1,
	  .test = "x:[2,3,4]" },
	UNARY("Reciprocal", 6, "F", "1 / x", 4, PRECISION_FLOAT, "x:(0.5,2)[2,3]",
	      "dx = Neg(Mul(dy, Mul(y, y)))"),
	UNARY("Sqrt", 6, "F", "sqrt(x)", 4, PRECISION_WIDEST, "x:(0.5,2)[2,3]",
	      "dx = Div(Mul(dy, 0.5), y)"),
	UNARY("Exp", 6, "F", "exp(x)", 8, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Mul(dy, y)"),
	UNARY("Log", 6, "F", "log(x)", 8, PRECISION_FLOAT, "x:(0.5,2)[2,3]",
	      "dx = Div(dy, x)"),
	UNARY("Sin", 7, "F", "sin(x)", 10, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Mul(dy, Cos(x))"),
	UNARY("Cos", 7, "F", "cos(x)", 10, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Neg(Mul(dy, Sin(x)))"),
	UNARY("Tan", 7, "F", "tan(x)", 12, PRECISION_FLOAT, "x:(-1,1)[2,3]",
	      "dx = Mul(dy, Add(Mul(y, y), 1))"),
	UNARY("Asin", 7, "F", "asin(x)", 12, PRECISION_FLOAT, "x:(-0.8,0.8)[2,3]",
	      "dx = Div(dy, Sqrt(Mul(Sub(1, x), Add(x, 1))))"),
	UNARY("Acos", 7, "F", "acos(x)", 12, PRECISION_FLOAT, "x:(-0.8,0.8)[2,3]",
	      "dx = Neg(Div(dy, Sqrt(Mul(Sub(1, x), Add(x, 1)))))"),
	UNARY("Atan", 7, "F", "atan(x)", 12, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Div(dy, Add(Mul(x, x), 1))"),
	UNARY("Sinh", 9, "F", "sinh(x)", 10, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Mul(dy, Cosh(x))"),
	UNARY("Cosh", 9, "F", "cosh(x)", 10, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Mul(dy, Sinh(x))"),
	UNARY("Tanh", 6, "F", "tanh(x)", 10, PRECISION_WIDEST, "x:[2,3]",
	      "dx = Mul(dy, Mul(Sub(1, y), Add(y, 1)))"),
	UNARY("Asinh", 9, "F", "asinh(x)", 12, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Div(dy, Sqrt(Add(Mul(x, x), 1)))"),
	UNARY("Acosh", 9, "F", "acosh(x)", 12, PRECISION_FLOAT, "x:(1.2,3)[2,3]",
	      "dx = Div(dy, Sqrt(Mul(Sub(x, 1), Add(x, 1))))"),
	UNARY("Atanh", 9, "F", "atanh(x)", 12, PRECISION_FLOAT, "x:(-0.8,0.8)[2,3]",
	      "dx = Div(dy, Mul(Sub(1, x), Add(x, 1)))"),
	UNARY("Erf", 9, "F", "erf(x)", 10, PRECISION_WIDEST, "x:[2,3]",
	      "dx = Mul(dy, Mul(Exp(Neg(Mul(x, x))), 1.1283791670955126))"),
	UNARY("Sigmoid", 6, "F", "1 / (1 + exp(-x))", 10, PRECISION_WIDEST, "x:[2,3]",
	      "dx = Mul(dy, Mul(y, Sub(1, y)))"),
	UNARY("Softplus", 1, "F", "max(x, 0) + log1p(exp(-abs(x)))", 16, PRECISION_FLOAT, "x:[2,3]",
	      "dx = Mul(dy, Sigmoid(x))"),
	UNARY("Relu", 6, "N", "x > 0 || isnan(x) ? x : 0", 1, PRECISION_WIDEST, "x:[2,3,4]",
	      "dx = Where(Greater(x, 0), dy, ZerosLike(dy))"),
	STEP("Sign", 9, "N", "sign(x)"),
	STEP("Floor", 6, "F", "floor(x)"),
	STEP("Ceil", 6, "F", "ceil(x)"),
	STEP("Round", 11, "F", "rint(x)"),
	{ .name = "Min", .since = 1, .sig = "x:N+ -> y:N", .shape = shape_broadcast, .expr = "min(x...)",
	  .factors = "..., ... -> ...", .grad_fn = grad_extreme, .cost = cost_pointwise, .flops = 1,
	  .test = "x:[2,3] x:[3] | x:[2,3] | x:[2,1] x:[3] x:[2,3]" },
	{ .name = "Max", .since = 1, .sig = "x:N+ -> y:N", .shape = shape_broadcast, .expr = "max(x...)",
	  .factors = "..., ... -> ...", .grad_fn = grad_extreme, .cost = cost_pointwise, .flops = 1,
	  .test = "x:[2,3] x:[3] | x:[2,3] | x:[2,1] x:[3] x:[2,3]" },
	{ .name = "Sum", .since = 1, .sig = "x:F+ -> y:F", .shape = shape_broadcast, .expr = "sum(x...)",
	  .factors = "..., ... -> ...", .linear = "x", .grad_fn = grad_sum, .cost = cost_pointwise, .flops = 1,
	  .test = "x:[2,3] x:[3] | x:[2,3] | x:[2,1] x:[3] x:[2,3]" },
	{ .name = "Mean", .since = 1, .sig = "x:F+ -> y:F", .shape = shape_broadcast, .expr = "sum(x...) / count(x)",
	  .factors = "..., ... -> ...", .linear = "x", .grad_fn = grad_sum, .cost = cost_pointwise, .flops = 1,
	  .test = "x:[2,3] x:[3] | x:[2,1] x:[3] x:[2,3]" },
	LOGIC("And", 7, "a && b"),
	LOGIC("Or", 7, "a || b"),
	LOGIC("Xor", 7, "a != b"),
	{ .name = "Not", .since = 1, .sig = "x:bool -> y:bool", .shape = shape_like_first, .expr = "!x",
	  .factors = "... -> ...", .nograd = true, .cost = cost_pointwise, .flops = 1, .test = "x:{0,1}" },
	COMPARE("Equal", 7, "T", "a == b"),
	COMPARE("Less", 7, "N", "a < b"),
	COMPARE("Greater", 7, "N", "a > b"),
	COMPARE("LessOrEqual", 12, "N", "a <= b"),
	COMPARE("GreaterOrEqual", 12, "N", "a >= b"),
	BITS("BitwiseAnd", 18, "a & b"),
	BITS("BitwiseOr", 18, "a | b"),
	BITS("BitwiseXor", 18, "a ^ b"),
	{ .name = "BitwiseNot", .since = 18, .sig = "x:N -> y:N", .shape = shape_bits_one, .expr = "~x",
	  .factors = "... -> ...", .nograd = true, .cost = cost_pointwise, .flops = 1, .test = "x:{3,5}" },
	{ .name = "BitShift", .since = 11, .sig = "a:N b:N -> c:N", .attrs = "direction:string!",
	  .shape = shape_shift, .expr = "is(direction, LEFT) ? a << b : a >> b", .factors = "..., ... -> ...",
	  .nograd = true, .cost = cost_pointwise, .flops = 1,
	  .test = "a:{3,5} b:{1,2} =direction:\"LEFT\" | a:{3,5} b:{1,2} =direction:\"RIGHT\"" },
	{ .name = "Where", .since = 9, .sig = "c:bool x:T y:T -> z:T", .shape = shape_where, .expr = "c ? x : y",
	  .factors = "..., ..., ... -> ...", .linear = "x+y",
	  .grad = "zero = ZerosLike(dz); dx = ReduceTo(Where(c, dz, zero), x); dy = ReduceTo(Where(c, zero, dz), y)",
	  .cost = cost_pointwise, .flops = 1, .test = "c:{0,1,1} x:[2,3] y:[3] | c:{0,1,1} x:[3] y:[2,1]" },
	/* As PyTorch has it, the gradient passes on the bounds too. */
	{ .name = "Clip", .since = 11, .sig = "x:N lo:N? hi:N? -> y:N", .shape = shape_clip,
	  .expr = "has(lo) ? has(hi) ? min(max(x, lo), hi) : max(x, lo) : has(hi) ? min(x, hi) : x",
	  .factors = "..., , -> ...",
	  .grad = "zero = ZerosLike(dy);"
	          "a = Where(GreaterOrEqual(x, lo), dy, zero) @when(\"has(lo)\"); "
	          "a = Identity(dy) @when(\"!has(lo)\");"
	          "dx = Where(LessOrEqual(x, hi), a, zero) @when(\"has(hi)\"); "
	          "dx = Identity(a) @when(\"!has(hi)\");"
	          "dlo = Reshape(ReduceSum<keepdims=0>(Where(Less(x, lo), dy, zero)), Shape(lo)) @when(\"has(lo)\");"
	          "dhi = Reshape(ReduceSum<keepdims=0>(Where(Greater(x, hi), dy, zero)), "
	          "Shape(hi)) @when(\"has(hi)\")",
	  .cost = cost_pointwise, .flops = 2,
	  .test = "x:[2,3,4] | x:[2,3,4] lo:(-0.5,-0.4)[] | x:[2,3,4] lo:(-0.5,-0.4)[] hi:(0.4,0.5)[]" },
	{ .name = "IsNaN", .since = 9, .sig = "x:F -> y:bool", .shape = shape_to_bool, .expr = "isnan(x)",
	  .factors = "... -> ...", .nograd = true, .cost = cost_pointwise, .flops = 1, .test = "x:[2,3]" },
	{ .name = "IsInf", .since = 10, .sig = "x:F -> y:bool",
	  .attrs = "detect_negative:int=1 detect_positive:int=1",
	  .shape = shape_to_bool, .expr = "(x == inf && @detect_positive) || (x == -inf && @detect_negative)",
	  .factors = "... -> ...", .nograd = true, .cost = cost_pointwise, .flops = 1, .test = "x:[2,3]" },
	{ .name = "Cast", .since = 6, .carries = true, .sig = "x:T -> y:T1",
	  .attrs = "to:int! saturate:int=1 round_mode:string=\"up\"",
	  .shape = shape_cast, .expr = "x", .eval = eval_cast, .factors = "... -> ...", .linear = "x",
	  .grad = "dx = CastLike(dy, x)", .cost = cost_pointwise, .flops = 1, .test = "x:[2,3] =to:11" },
	{ .name = "CastLike", .since = 15, .sig = "x:T like:T1 -> y:T1",
	  .attrs = "saturate:int=1 round_mode:string=\"up\"",
	  .shape = shape_cast_like, .expr = "x", .eval = eval_cast, .factor_fn = factor_first, .linear = "x",
	  .grad = "dx = CastLike(dy, x)", .cost = cost_pointwise, .flops = 1, .test = "x:[2,3] like:[1]" },
	{ .name = "Identity", .since = 1, .carries = true, .sig = "x:T -> y:T",
	  .shape = shape_like_first, .expr = "x", .factors = "... -> ...", .linear = "x", .grad = "dx = Identity(dy)",
	  .cost = cost_bytes, .test = "x:[2,3]" },
	{ 0 },
};
