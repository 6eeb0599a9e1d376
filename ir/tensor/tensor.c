/* Constants: element access for every element type, in ONNX's raw layout (little-endian, sub-byte types packed with
 * the first element in the low bits). */
#include "tensor.h"

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

	for (int i = 0; i < t->ndim; i++) {
		zero |= t->dim[i] == 0;
		over |= __builtin_mul_overflow(n, t->dim[i], &n);
	}
	return zero ? 0 : over ? -1 : n;
}

Tensor *tensor_new(Arena *a, DType dtype, int ndim, const int64_t *dim)
{
	Tensor *t = arena_new(a, Tensor);
	int64_t n = 1;
	bool zero = false;

	t->dtype = dtype;
	t->ndim = ndim;
	t->dim = arena_array(a, int64_t, ndim + 1);
	for (int i = 0; i < ndim; i++) {
		t->dim[i] = dim[i];
		zero |= dim[i] == 0;
	}
	for (int i = 0; i < ndim && !zero; i++)
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

		return isnan(v)                     ? 0
		       : v >= 9223372036854775808.0 ? INT64_MAX
		       : v < -9223372036854775808.0 ? INT64_MIN
		                                    : (int64_t)v;
	}
	}
}

double tensor_get(const Tensor *t, int64_t i)
{
	switch (t->dtype) {
	case DT_FLOAT:  return LOAD(float, t, i);
	case DT_DOUBLE: return LOAD(double, t, i);
	case DT_UINT64: return (double)LOAD(uint64_t, t, i);
	case DT_FLOAT16: case DT_BFLOAT16: return dtype_decode(t->dtype, LOAD(uint16_t, t, i));
	case DT_FLOAT8E4M3FN: case DT_FLOAT8E4M3FNUZ: case DT_FLOAT8E5M2: case DT_FLOAT8E5M2FNUZ: case DT_FLOAT8E8M0:
		return dtype_decode(t->dtype, LOAD(uint8_t, t, i));
	case DT_FLOAT4E2M1: case DT_FLOAT6E2M3: case DT_FLOAT6E3M2: return dtype_decode(t->dtype, tensor_packed(t, i));
	case DT_STRING: case DT_COMPLEX64: case DT_COMPLEX128: case DT_UNDEFINED: case DT_COUNT:
		die("tensor_get of %s", dtype_name(t->dtype));
	default: return (double)tensor_int(t, i);
	}
}

#define STORE(T, t, i, v) \
	do { \
		T x_ = (T)(v); \
		memcpy((char *)(t)->data + (size_t)(i) * sizeof x_, &x_, sizeof x_); \
	} while (0)

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
	case DT_FLOAT16: case DT_BFLOAT16: STORE(uint16_t, t, i, dtype_encode(t->dtype, v, true)); break;
	case DT_FLOAT8E4M3FN: case DT_FLOAT8E4M3FNUZ: case DT_FLOAT8E5M2: case DT_FLOAT8E5M2FNUZ: case DT_FLOAT8E8M0:
		STORE(uint8_t, t, i, dtype_encode(t->dtype, v, true));
		break;
	case DT_FLOAT4E2M1:
	case DT_FLOAT6E2M3:
	case DT_FLOAT6E3M2: tensor_pack(t, i, dtype_encode(t->dtype, v, true)); break;
	case DT_UINT64:
		STORE(uint64_t, t, i,
			v >= 9223372036854775808.0 && v < 18446744073709551616.0
				? (uint64_t)v
				: (uint64_t)(v > -9e18 && v < 9e18 ? (int64_t)v : 0));
		break;
	case DT_BOOL: STORE(uint8_t, t, i, v != 0); break;
	case DT_STRING: case DT_COMPLEX64: case DT_COMPLEX128: case DT_UNDEFINED: case DT_COUNT:
		die("tensor_set of %s", dtype_name(t->dtype));
	default:
		tensor_set_int(t, i,
			isnan(v)                     ? 0
			: v >= 9223372036854775808.0 ? INT64_MAX
			: v < -9223372036854775808.0 ? INT64_MIN
						     : (int64_t)v);
	}
}

bool tensor_equal(const Tensor *a, const Tensor *b)
{
	if (a->dtype != b->dtype || a->ndim != b->ndim || a->bytes != b->bytes)
		return false;
	for (int i = 0; i < a->ndim; i++)
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
