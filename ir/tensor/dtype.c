/* Element types, numbered as ONNX numbers them, and the bits of small floating types. */
#include "tensor.h"

#include <math.h>
#include <string.h>

static const struct { const char *name; int bits; bool isfloat, isint, sign; } dtypes[DT_COUNT] = {
	[DT_UNDEFINED] = { "undefined", 0, 0, 0, 0 },
	[DT_FLOAT] = { "float", 32, 1, 0, 1 },
	[DT_UINT8] = { "uint8", 8, 0, 1, 0 },
	[DT_INT8] = { "int8", 8, 0, 1, 1 },
	[DT_UINT16] = { "uint16", 16, 0, 1, 0 },
	[DT_INT16] = { "int16", 16, 0, 1, 1 },
	[DT_INT32] = { "int32", 32, 0, 1, 1 },
	[DT_INT64] = { "int64", 64, 0, 1, 1 },
	[DT_STRING] = { "string", 0, 0, 0, 0 },
	[DT_BOOL] = { "bool", 8, 0, 0, 0 },
	[DT_FLOAT16] = { "float16", 16, 1, 0, 1 },
	[DT_DOUBLE] = { "double", 64, 1, 0, 1 },
	[DT_UINT32] = { "uint32", 32, 0, 1, 0 },
	[DT_UINT64] = { "uint64", 64, 0, 1, 0 },
	[DT_COMPLEX64] = { "complex64", 64, 0, 0, 1 },
	[DT_COMPLEX128] = { "complex128", 128, 0, 0, 1 },
	[DT_BFLOAT16] = { "bfloat16", 16, 1, 0, 1 },
	[DT_FLOAT8E4M3FN] = { "float8e4m3fn", 8, 1, 0, 1 },
	[DT_FLOAT8E4M3FNUZ] = { "float8e4m3fnuz", 8, 1, 0, 1 },
	[DT_FLOAT8E5M2] = { "float8e5m2", 8, 1, 0, 1 },
	[DT_FLOAT8E5M2FNUZ] = { "float8e5m2fnuz", 8, 1, 0, 1 },
	[DT_UINT4] = { "uint4", 4, 0, 1, 0 },
	[DT_INT4] = { "int4", 4, 0, 1, 1 },
	[DT_FLOAT4E2M1] = { "float4e2m1", 4, 1, 0, 1 },
	[DT_FLOAT8E8M0] = { "float8e8m0", 8, 1, 0, 0 },
	[DT_UINT2] = { "uint2", 2, 0, 1, 0 },
	[DT_INT2] = { "int2", 2, 0, 1, 1 },
	[DT_FLOAT6E2M3] = { "float6e2m3", 6, 1, 0, 1 },
	[DT_FLOAT6E3M2] = { "float6e3m2", 6, 1, 0, 1 },
};

const char *dtype_name(DType t)
{
	return (unsigned)t < DT_COUNT ? dtypes[t].name : "undefined";
}

DType dtype_of(const char *name, size_t len)
{
	for (int t = 1; t < DT_COUNT; t++)
		if (strlen(dtypes[t].name) == len && !memcmp(dtypes[t].name, name, len))
			return (DType)t;
	return DT_UNDEFINED;
}

/* Literals and int32_data entries of 2-bit and 4-bit types are packed bytes; 6-bit types, four in three bytes, have one per element. */
bool dtype_literal_is_byte(DType t) { return dtype_bits(t) == 2 || dtype_bits(t) == 4; }

int dtype_bits(DType t) { return (unsigned)t < DT_COUNT ? dtypes[t].bits : 0; }
bool dtype_is_float(DType t) { return (unsigned)t < DT_COUNT && dtypes[t].isfloat; }
bool dtype_is_int(DType t) { return (unsigned)t < DT_COUNT && dtypes[t].isint; }
bool dtype_is_signed(DType t) { return (unsigned)t < DT_COUNT && dtypes[t].sign; }

/* Small floating formats, one row each: exponent and mantissa bits, bias, what the top codes mean. */
typedef struct Small { int exp, man, bias; bool inf, fn, uz; } Small;

static Small small(DType t)
{
	switch (t) {
	case DT_FLOAT16:         return (Small){ 5, 10, 15, true, false, false };
	case DT_BFLOAT16:        return (Small){ 8, 7, 127, true, false, false };
	case DT_FLOAT8E4M3FN:    return (Small){ 4, 3, 7, false, true, false };
	case DT_FLOAT8E4M3FNUZ:  return (Small){ 4, 3, 8, false, false, true };
	case DT_FLOAT8E5M2:      return (Small){ 5, 2, 15, true, false, false };
	case DT_FLOAT8E5M2FNUZ:  return (Small){ 5, 2, 16, false, false, true };
	case DT_FLOAT4E2M1:      return (Small){ 2, 1, 1, false, false, false };
	case DT_FLOAT6E2M3:      return (Small){ 2, 3, 1, false, false, false };
	case DT_FLOAT6E3M2:      return (Small){ 3, 2, 3, false, false, false };
	default:                 die("%s is no small float", dtype_name(t));
	}
}

double dtype_decode(DType t, uint32_t bits)
{
	if (t == DT_FLOAT8E8M0)
		return bits == 0xff ? NAN : ldexp(1, (int)bits - 127);
	Small s = small(t);
	int e = (int)(bits >> s.man) & ((1 << s.exp) - 1), m = (int)bits & ((1 << s.man) - 1);
	bool neg = bits >> (s.exp + s.man) & 1;
	int top = (1 << s.exp) - 1;

	if (s.uz && neg && !e && !m)
		return NAN;
	if (s.inf && e == top)
		return m ? NAN : neg ? -INFINITY : INFINITY;
	if (s.fn && e == top && m == (1 << s.man) - 1)
		return NAN;
	double v = e ? ldexp((double)((1 << s.man) + m), e - s.bias - s.man) : ldexp((double)m, 1 - s.bias - s.man);
	return neg ? -v : v;
}

/* Round to nearest even; beyond the largest finite number: that number when saturating, else infinity, or NaN where
 * the format has no infinity. */
uint32_t dtype_encode(DType t, double v, bool saturate)
{
	if (t == DT_FLOAT8E8M0) {
		int e;

		if (isnan(v))
			return 0xff;
		if (v <= 0 || isinf(v))
			return v > 0 ? saturate ? 0xfe : 0xff : 0;
		double f = frexp(v, &e);        /* v = f * 2^e, f in [0.5, 1) */
		e += f > 0.75 ? 0 : -1;         /* nearest power of two */
		e += 127;
		return e < 0 ? 0 : e > 254 ? saturate ? 254 : 255 : (uint32_t)e;
	}
	Small s = small(t);
	uint32_t sign = signbit(v) ? 1u << (s.exp + s.man) : 0;
	uint32_t nan = s.uz ? 1u << (s.exp + s.man) : s.fn ? sign | ((1u << (s.exp + s.man)) - 1) : sign | (uint32_t)((1 << s.exp) - 1) << s.man | 1u << (s.man - 1);
	uint32_t inf = s.inf ? sign | (uint32_t)((1 << s.exp) - 1) << s.man : nan;
	uint32_t max = s.inf ? (((uint32_t)((1 << s.exp) - 1) << s.man) - 1) : s.fn ? (1u << (s.exp + s.man)) - 2 : (1u << (s.exp + s.man)) - 1;
	bool has_inf_or_nan = s.inf || s.fn || s.uz;
	int e;

	if (isnan(v))
		return has_inf_or_nan ? nan : 1u << (s.exp + s.man);    /* no NaN: the code of -0, as ONNX's cases have it */
	double a = fabs(v);
	if (isinf(v))
		return saturate && t != DT_FLOAT16 && t != DT_BFLOAT16 ? sign | max : has_inf_or_nan ? inf : sign | max;
	if (a == 0)
		return s.uz ? 0 : sign;
	frexp(a, &e);
	e = e - 1 + s.bias;                             /* biased exponent of a */
	if (e < 1)
		e = 1;                                  /* subnormal: fixed scale */
	double q = rint(ldexp(a, s.man - (e - s.bias)));/* rint: the default mode is to nearest even */
	uint64_t code = (uint64_t)q + ((uint64_t)(e - 1) << s.man);
	if (code > max)
		return !has_inf_or_nan || (saturate && t != DT_FLOAT16 && t != DT_BFLOAT16) ? sign | max : inf;
	return code || !s.uz ? sign | (uint32_t)code : 0;
}

/* Elements narrower than a byte, without gaps: one of 6 bits may begin in one byte and end in the next. */
