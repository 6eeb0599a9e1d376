/* Integers modulo 2^61 - 1. */
#include "exact.h"

#include <math.h>

uint64_t field_add(uint64_t a, uint64_t b)
{
	uint64_t s = a + b;
	return s >= FIELD_P ? s - FIELD_P : s;
}

uint64_t field_sub(uint64_t a, uint64_t b)
{
	return a >= b ? a - b : a + FIELD_P - b;
}

/* 2^61 is 1: the upper half of a product is added to the lower one. */
uint64_t field_mul(uint64_t a, uint64_t b)
{
	unsigned __int128 t = (unsigned __int128)a * b;
	return field_add((uint64_t)(t & FIELD_P), (uint64_t)(t >> 61));
}

uint64_t field_power(uint64_t a, uint64_t e)
{
	uint64_t r = 1;
	for (; e; e >>= 1, a = field_mul(a, a))
		if (e & 1)
			r = field_mul(r, a);
	return r;
}

uint64_t field_inverse(uint64_t a)
{
	return field_power(a, FIELD_P - 2);
}

uint64_t field_int(int64_t v)
{
	uint64_t m = (v < 0 ? 0 - (uint64_t)v : (uint64_t)v) % FIELD_P;
	return v < 0 ? field_sub(0, m) : m;
}

/* m 2^e, and 2^e is 2^(e mod 61).  What is not a number is a number of its own. */
uint64_t field_double(double d)
{
	int e;
	if (!isfinite(d))
		return field_hash(field_text("infinite"), isnan(d) ? 0 : d > 0 ? 1 : 2);
	int64_t m = (int64_t)ldexp(frexp(d, &e), 53);
	e = ((e - 53) % 61 + 61) % 61;
	return field_mul(field_int(m), UINT64_C(1) << e);
}

int64_t field_signed(uint64_t a)
{
	return a > FIELD_P / 2 ? (int64_t)a - (int64_t)FIELD_P : (int64_t)a;
}

/* Finalizer of splitmix64, over both. */
uint64_t field_hash(uint64_t a, uint64_t b)
{
	uint64_t z = a + b * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % FIELD_P;
}

uint64_t field_text(const char *s)
{
	uint64_t h = 1;
	while (*s)
		h = field_hash(h, (uint8_t)*s++);
	return h;
}

uint64_t field_combine(Reduce red, uint64_t a, uint64_t b)
{
	switch (red) {
	case RED_SUM: return field_add(a, b);
	case RED_PROD: return field_mul(a, b);
	case RED_MAX: return field_signed(a) > field_signed(b) ? a : b;
	default: return field_signed(a) < field_signed(b) ? a : b;
	}
}

uint64_t field_neutral(Reduce red)
{
	switch (red) {
	case RED_SUM: return 0;
	case RED_PROD: return 1;
	case RED_MAX: return FIELD_P / 2 + 1;
	default: return FIELD_P / 2;
	}
}
