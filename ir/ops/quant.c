/* QuantizeLinear and DequantizeLinear, over Div, Round, Clip and Cast.  Scale and zero point are given for the tensor,
 * for each index of an axis, or for each block of indices of an axis; they are first spread to broadcast. */
#include "ops.h"

#include <math.h>
#include <string.h>

/* Operand i (a scale or zero point) in a shape that broadcasts to x; NULL after err_at, or when it is left out. */
static Value *spread(Node *n, int i)
{
	Type *x = operand_type(n, 0), *t = operand_type(n, i);
	int64_t block = attr_int(n, "block_size"), dim[NDIM_MAX];
	int axis;

	if (!x || x->ndim < 0 || !t || t->ndim < 0) {
		err_at(n->loc, "%s needs operands with a known number of axes", n->op);
		return NULL;
	}
	if (t->ndim == 0)
		return n->in[i];
	if (type_elements(t) == 1)
		return expand_op(n, "Reshape", NULL, n->in[i], expand_ints(n, NULL, 0));
	if (op_axis(n, attr_int(n, "axis"), x->ndim, &axis))
		return NULL;
	if (block <= 0 && t->ndim == 1 && !dim_differ(t->dim[0], x->dim[axis])) {
		for (int k = 0; k < x->ndim; k++)
			dim[k] = k == axis ? -1 : 1;
		return expand_op(n, "Reshape", NULL, n->in[i], expand_ints(n, dim, x->ndim));
	}
	Dim len = x->dim[axis];
	if (block <= 0 || t->ndim != x->ndim || !dim_known(len) ||
		!dim_same(t->dim[axis], len / block + (len % block != 0))) {
		err_at(operand_loc(n, i), "%s along axis %d of %s cannot use %s in blocks of %lld", n->op, axis,
			type_text(x), type_text(operand_type(n, i)), (long long)block);
		return NULL;
	}
	if (!expand_room(n, len, 1))
		return NULL;
	int64_t *idx = arena_array(n->graph->scratch, int64_t, len);
	for (int64_t k = 0; k < len; k++)
		idx[k] = k / block;
	return expand_op(
		n, "Gather", expand_attr(n, "axis=%d", axis), n->in[i], expand_ints(n, idx, (int)len));
}

static Value *as(Node *n, Value *v, DType from, DType to)
{
	return from == to || !v ? v : expand_cast(n, v, to);
}

static bool has_zero_point(const Node *n)
{
	return n->nin > 2 && n->in[2];
}

/* The type of the division: by the attribute, or that of the scale where it has enough digits. */
static DType precision(Node *n)
{
	DType p = (DType)attr_int(n, "precision"), s = operand_dtype(n, 1);

	if (p)
		return p;
	return s == DT_DOUBLE || s == DT_FLOAT16 || s == DT_BFLOAT16 ? s : DT_FLOAT;
}

static Value *to_integer(Node *n, Value *v, DType work, DType type)
{
	bool sign = dtype_is_signed(type);
	double hi = ldexp(1, dtype_bits(type) - sign) - 1, lo = sign ? -hi - 1 : 0;
	DType sum = work == DT_DOUBLE ? work : DT_FLOAT; /* a zero point needs up to 16 bits */

	v = as(n, expand_op(n, "Round", NULL, v), work, sum);
	if (has_zero_point(n))
		v = expand_op(n, "Add", NULL, v, as(n, spread(n, 2), type, sum));
	return expand_cast(
		n, expand_op(n, "Clip", NULL, v, expand_num(n, sum, lo), expand_num(n, sum, hi)), type);
}

static int expand_quantize(Node *n)
{
	DType type = has_zero_point(n)             ? operand_dtype(n, 2)
	             : attr_int(n, "output_dtype") ? (DType)attr_int(n, "output_dtype")
	                                           : DT_UINT8;
	DType work = precision(n);
	Value *v = expand_op(n, "Div", NULL, as(n, n->in[0], operand_dtype(n, 0), work),
		as(n, spread(n, 1), operand_dtype(n, 1), work));

	if (dtype_is_int(type) && dtype_bits(type) <= 16)
		return expand_result(n, 0, to_integer(n, v, work, type));
	if (!dtype_is_float(type) || dtype_bits(type) > 8) {
		err_at(n->loc, "QuantizeLinear does not give %s",
			type < DT_COUNT ? dtype_name(type) : "this type");
		return -1;
	}
	if (has_zero_point(n))
		v = expand_op(n, "Add", NULL, v, as(n, spread(n, 2), type, work));
	return expand_result(n, 0,
		expand_op(n, "Cast", expand_attr(n, "to=%d, saturate=%d", type, (int)attr_int(n, "saturate")),
			v));
}

static int expand_dequantize(Node *n)
{
	DType x = operand_dtype(n, 0), s = operand_dtype(n, 1), work = s == DT_DOUBLE ? s : DT_FLOAT;
	DType type = attr_int(n, "output_dtype") ? (DType)attr_int(n, "output_dtype") : s;
	Value *v = as(n, n->in[0], x, work);

	if (has_zero_point(n))
		v = expand_op(n, "Sub", NULL, v, as(n, spread(n, 2), operand_dtype(n, 2), work));
	v = expand_op(n, "Mul", NULL, v, as(n, spread(n, 1), s, work));
	return expand_result(n, 0, as(n, v, work, type));
}

/* clang-format off */
const Op ops_quant[] = {
	{ .name = "QuantizeLinear", .since = 10, .sig = "x:N y_scale:F y_zero_point:N1? -> y:N1",
	  .attrs = "axis:int=1 saturate:int=1 block_size:int=0 output_dtype:int=0 precision:int=0",
	  .expand = expand_quantize,
	  .test = "x:[2,3] y_scale:(0.1,0.2)[] y_zero_point:uint8[] | "
	          "x:[2,3] y_scale:(0.1,0.2)[3] y_zero_point:int8[3] | "
	          "x:[4,6] y_scale:(0.1,0.2)[4,2] =block_size:3" },
	{ .name = "DequantizeLinear", .since = 10, .sig = "x:N x_scale:F x_zero_point:N? -> y:F",
	  .attrs = "axis:int=1 block_size:int=0 output_dtype:int=0", .expand = expand_dequantize,
	  .test = "x:int8[2,3] x_scale:(0.1,1)[3] x_zero_point:int8[3] | "
	          "x:uint8[4,6] x_scale:(0.1,1)[2,6] =axis:0 =block_size:2" },
	{ 0 },
};
/* clang-format on */
