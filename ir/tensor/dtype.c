/* Element types, numbered as ONNX numbers them, and the bits of small floating types. */
#include "tensor.h"

#include <math.h>
#include <string.h>

static const struct { const char *name; int bits; bool isfloat, isint, sign; } dtypes[DT_COUNT] = {
	[DT_UNDEFINED] = { .name = "undefined" },
	[DT_FLOAT] = { .name = "float", .bits = 32, .isfloat = true, .sign = true },
	[DT_UINT8] = { .name = "uint8", .bits = 8, .isint = true },
	[DT_INT8] = { .name = "int8", .bits = 8, .isint = true, .sign = true },
	[DT_UINT16] = { .name = "uint16", .bits = 16, .isint = true },
	[DT_INT16] = { .name = "int16", .bits = 16, .isint = true, .sign = true },
	[DT_INT32] = { .name = "int32", .bits = 32, .isint = true, .sign = true },
	[DT_INT64] = { .name = "int64", .bits = 64, .isint = true, .sign = true },
	[DT_STRING] = { .name = "string" },
	[DT_BOOL] = { .name = "bool", .bits = 8 },
	[DT_FLOAT16] = { .name = "float16", .bits = 16, .isfloat = true, .sign = true },
	[DT_DOUBLE] = { .name = "double", .bits = 64, .isfloat = true, .sign = true },
	[DT_UINT32] = { .name = "uint32", .bits = 32, .isint = true },
	[DT_UINT64] = { .name = "uint64", .bits = 64, .isint = true },
	[DT_COMPLEX64] = { .name = "complex64", .bits = 64, .sign = true },
	[DT_COMPLEX128] = { .name = "complex128", .bits = 128, .sign = true },
	[DT_BFLOAT16] = { .name = "bfloat16", .bits = 16, .isfloat = true, .sign = true },
	[DT_FLOAT8E4M3FN] = { .name = "float8e4m3fn", .bits = 8, .isfloat = true, .sign = true },
	[DT_FLOAT8E4M3FNUZ] = { .name = "float8e4m3fnuz", .bits = 8, .isfloat = true, .sign = true },
	[DT_FLOAT8E5M2] = { .name = "float8e5m2", .bits = 8, .isfloat = true, .sign = true },
	[DT_FLOAT8E5M2FNUZ] = { .name = "float8e5m2fnuz", .bits = 8, .isfloat = true, .sign = true },
	[DT_UINT4] = { .name = "uint4", .bits = 4, .isint = true },
	[DT_INT4] = { .name = "int4", .bits = 4, .isint = true, .sign = true },
	[DT_FLOAT4E2M1] = { .name = "float4e2m1", .bits = 4, .isfloat = true, .sign = true },
	[DT_FLOAT8E8M0] = { .name = "float8e8m0", .bits = 8, .isfloat = true },
	[DT_UINT2] = { .name = "uint2", .bits = 2, .isint = true },
	[DT_INT2] = { .name = "int2", .bits = 2, .isint = true, .sign = true },
	[DT_FLOAT6E2M3] = { .name = "float6e2m3", .bits = 6, .isfloat = true, .sign = true },
	[DT_FLOAT6E3M2] = { .name = "float6e3m2", .bits = 6, .isfloat = true, .sign = true },
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

/* Literals and int32_data entries of 2-bit and 4-bit types are packed bytes; 6-bit types, four in three bytes, have one
 * per element. */
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
	case DT_FLOAT16:         return (Small){ .exp = 5, .man = 10, .bias = 15, .inf = true };
	case DT_BFLOAT16:        return (Small){ .exp = 8, .man = 7, .bias = 127, .inf = true };
	case DT_FLOAT8E4M3FN:    return (Small){ .exp = 4, .man = 3, .bias = 7, .fn = true };
	case DT_FLOAT8E4M3FNUZ:  return (Small){ .exp = 4, .man = 3, .bias = 8, .uz = true };
	case DT_FLOAT8E5M2:      return (Small){ .exp = 5, .man = 2, .bias = 15, .inf = true };
	case DT_FLOAT8E5M2FNUZ:  return (Small){ .exp = 5, .man = 2, .bias = 16, .uz = true };
	case DT_FLOAT4E2M1:      return (Small){ .exp = 2, .man = 1, .bias = 1 };
	case DT_FLOAT6E2M3:      return (Small){ .exp = 2, .man = 3, .bias = 1 };
	case DT_FLOAT6E3M2:      return (Small){ .exp = 3, .man = 2, .bias = 3 };
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

/* Rounds to nearest even.  Beyond the largest finite number: that number when saturating, else infinity, or NaN where
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
	uint32_t nan = s.uz   ? 1u << (s.exp + s.man)
	               : s.fn ? sign | ((1u << (s.exp + s.man)) - 1)
	                      : sign | (uint32_t)((1 << s.exp) - 1) << s.man | 1u << (s.man - 1);
	uint32_t inf = s.inf ? sign | (uint32_t)((1 << s.exp) - 1) << s.man : nan;
	uint32_t max = s.inf  ? (((uint32_t)((1 << s.exp) - 1) << s.man) - 1)
	               : s.fn ? (1u << (s.exp + s.man)) - 2
	                      : (1u << (s.exp + s.man)) - 1;
	bool has_inf_or_nan = s.inf || s.fn || s.uz;
	int e;

	if (isnan(v))
		/* no NaN: the code of -0, as in ONNX's test cases */
		return has_inf_or_nan ? nan : 1u << (s.exp + s.man);
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
