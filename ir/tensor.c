/* Constants: element access for every element type, in ONNX's raw layout (little-endian, sub-byte types packed with
 * the first element in the low bits). */
#include "ir.h"

#include <math.h>
#include <string.h>

size_t tensor_bytes(DType t, int64_t n)
{
	size_t bits;

	if (n < 0 || __builtin_mul_overflow((size_t)n, (size_t)dtype_bits(t), &bits) || bits > SIZE_MAX - 7)
		return SIZE_MAX;
	return (bits + 7) / 8;
}

int64_t tensor_elements(const Tensor *t)
{
	int64_t n = 1;
	bool zero = false, over = false;

	for (int i = 0; i < t->rank; i++) {
		zero |= t->dim[i] == 0;
		over |= __builtin_mul_overflow(n, t->dim[i], &n);
	}
	return zero ? 0 : over ? -1 : n;
}

Tensor *tensor_new(Arena *a, DType dtype, int rank, const int64_t *dim)
{
	Tensor *t = arena_new(a, Tensor);
	int64_t n = 1;
	bool zero = false;

	t->dtype = dtype;
	t->rank = rank;
	t->dim = arena_array(a, int64_t, rank + 1);
	for (int i = 0; i < rank; i++) {
		t->dim[i] = dim[i];
		zero |= dim[i] == 0;
	}
	for (int i = 0; i < rank && !zero; i++)
		if (__builtin_mul_overflow(n, dim[i], &n))
			die("tensor_new: shape overflows");
	t->bytes = tensor_bytes(dtype, zero ? 0 : n);
	if (dtype == DT_STRING)
		t->str = arena_array(a, Name, (zero ? 0 : n) + 1);
	t->data = arena_alloc(a, t->bytes + 8);     /* never NULL, and room for a whole word */
	return t;
}

Tensor *tensor_ints(Arena *a, const int64_t *v, int n)
{
	int64_t dim = n;
	Tensor *t = tensor_new(a, DT_INT64, 1, &dim);

	if (n)
		memcpy((void *)t->data, v, sizeof *v * (size_t)n);
	return t;
}

Tensor *tensor_scalar(Arena *a, DType dtype, double v)
{
	Tensor *t = tensor_new(a, dtype, 0, NULL);

	tensor_set(t, 0, v);
	return t;
}

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

double float_decode(DType t, uint32_t bits)
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
uint32_t float_encode(DType t, double v, bool saturate)
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
uint32_t tensor_packed(const Tensor *t, int64_t i)
{
	int bits = dtype_bits(t->dtype), from = (int)(i % 8 * bits);
	const uint8_t *p = (const uint8_t *)t->data + i / 8 * bits + from / 8;
	uint32_t v = (uint32_t)*p >> from % 8;

	if (from % 8 + bits > 8)
		v |= (uint32_t)p[1] << (8 - from % 8);
	return v & ((1u << bits) - 1);
}

void tensor_pack(Tensor *t, int64_t i, uint32_t v)
{
	int bits = dtype_bits(t->dtype), from = (int)(i % 8 * bits);
	uint8_t *p = (uint8_t *)t->data + i / 8 * bits + from / 8;
	uint32_t mask = ((1u << bits) - 1) << from % 8;

	v = v << from % 8 & mask;
	*p = (uint8_t)((*p & ~mask) | v);
	if (mask >> 8)
		p[1] = (uint8_t)((p[1] & ~(mask >> 8)) | v >> 8);
}

#define LOAD(T, t, i) ({ T x_; memcpy(&x_, (const char *)(t)->data + (size_t)(i) * sizeof x_, sizeof x_); x_; })

int64_t tensor_int(const Tensor *t, int64_t i)
{
	switch (t->dtype) {
	case DT_BOOL: return LOAD(uint8_t, t, i) != 0;  /* raw_data may hold any byte */
	case DT_UINT8: return LOAD(uint8_t, t, i);
	case DT_INT8:   return LOAD(int8_t, t, i);
	case DT_UINT16: return LOAD(uint16_t, t, i);
	case DT_INT16:  return LOAD(int16_t, t, i);
	case DT_INT32:  return LOAD(int32_t, t, i);
	case DT_UINT32: return LOAD(uint32_t, t, i);
	case DT_INT64: case DT_UINT64: return LOAD(int64_t, t, i);
	case DT_UINT4: case DT_UINT2: return tensor_packed(t, i);
	case DT_INT4:   return (int64_t)(tensor_packed(t, i) ^ 8) - 8;
	case DT_INT2:   return (int64_t)(tensor_packed(t, i) ^ 2) - 2;
	default: {
		double v = tensor_get(t, i);

		return isnan(v) ? 0 : v >= 9223372036854775808.0 ? INT64_MAX : v < -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
	}
	}
}

double tensor_get(const Tensor *t, int64_t i)
{
	switch (t->dtype) {
	case DT_FLOAT:  return LOAD(float, t, i);
	case DT_DOUBLE: return LOAD(double, t, i);
	case DT_UINT64: return (double)LOAD(uint64_t, t, i);
	case DT_FLOAT16: case DT_BFLOAT16: return float_decode(t->dtype, LOAD(uint16_t, t, i));
	case DT_FLOAT8E4M3FN: case DT_FLOAT8E4M3FNUZ: case DT_FLOAT8E5M2: case DT_FLOAT8E5M2FNUZ: case DT_FLOAT8E8M0:
		return float_decode(t->dtype, LOAD(uint8_t, t, i));
	case DT_FLOAT4E2M1: case DT_FLOAT6E2M3: case DT_FLOAT6E3M2: return float_decode(t->dtype, tensor_packed(t, i));
	case DT_STRING: case DT_COMPLEX64: case DT_COMPLEX128: case DT_UNDEFINED: case DT_COUNT:
		die("tensor_get of %s", dtype_name(t->dtype));
	default: return (double)tensor_int(t, i);
	}
}

#define STORE(T, t, i, v) do { T x_ = (T)(v); memcpy((char *)(t)->data + (size_t)(i) * sizeof x_, &x_, sizeof x_); } while (0)

void tensor_set_int(Tensor *t, int64_t i, int64_t v)
{
	switch (t->dtype) {
	case DT_BOOL: STORE(uint8_t, t, i, v != 0); break;
	case DT_INT8: case DT_UINT8: STORE(uint8_t, t, i, v); break;
	case DT_INT16: case DT_UINT16: STORE(uint16_t, t, i, v); break;
	case DT_INT32: case DT_UINT32: STORE(uint32_t, t, i, v); break;
	case DT_INT64: case DT_UINT64: STORE(int64_t, t, i, v); break;
	case DT_INT4: case DT_UINT4: case DT_INT2: case DT_UINT2: tensor_pack(t, i, (uint32_t)v); break;
	default: tensor_set(t, i, (double)v);
	}
}

void tensor_set(Tensor *t, int64_t i, double v)
{
	switch (t->dtype) {
	case DT_FLOAT:  STORE(float, t, i, v); break;
	case DT_DOUBLE: STORE(double, t, i, v); break;
	case DT_FLOAT16: case DT_BFLOAT16: STORE(uint16_t, t, i, float_encode(t->dtype, v, true)); break;
	case DT_FLOAT8E4M3FN: case DT_FLOAT8E4M3FNUZ: case DT_FLOAT8E5M2: case DT_FLOAT8E5M2FNUZ: case DT_FLOAT8E8M0:
		STORE(uint8_t, t, i, float_encode(t->dtype, v, true));
		break;
	case DT_FLOAT4E2M1: case DT_FLOAT6E2M3: case DT_FLOAT6E3M2: tensor_pack(t, i, float_encode(t->dtype, v, true)); break;
	case DT_UINT64: STORE(uint64_t, t, i, v >= 9223372036854775808.0 && v < 18446744073709551616.0 ? (uint64_t)v : (uint64_t)(v > -9e18 && v < 9e18 ? (int64_t)v : 0)); break;
	case DT_BOOL: STORE(uint8_t, t, i, v != 0); break;
	case DT_STRING: case DT_COMPLEX64: case DT_COMPLEX128: case DT_UNDEFINED: case DT_COUNT:
		die("tensor_set of %s", dtype_name(t->dtype));
	default: tensor_set_int(t, i, isnan(v) ? 0 : v >= 9223372036854775808.0 ? INT64_MAX : v < -9223372036854775808.0 ? INT64_MIN : (int64_t)v);
	}
}

bool tensor_equal(const Tensor *a, const Tensor *b)
{
	if (a->dtype != b->dtype || a->rank != b->rank || a->bytes != b->bytes)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	if (a->dtype == DT_STRING) {
		for (int64_t i = 0; i < tensor_elements(a); i++)
			if (a->str[i] != b->str[i])
				return false;
		return true;
	}
	return a->bytes == 0 || !memcmp(a->data, b->data, a->bytes);
}
