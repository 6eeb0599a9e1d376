/* Half-precision numbers are held as float, rounded to the nearest bfloat16 or float16 number, ties to even. */
#ifndef HALVES_H
#define HALVES_H

#ifndef EXPR_FN
#define EXPR_FN static inline
#endif

typedef union HalfBits { float f; unsigned u; } HalfBits;

/* bfloat16 is the upper half of a float.  A carry of the rounding correctly increments the exponent, up to infinity. */
EXPR_FN float e_bf16(float x)
{
	HalfBits b, nan;
	b.f = x;
	nan.u = (b.u | 0x400000u) & 0xFFFF0000u;
	b.u = (b.u + 0x7FFFu + (b.u >> 16 & 1u)) & 0xFFFF0000u;
	return x != x ? nan.f : b.f;
}

/* float16 has 11 significant bits where it is normal.  Below 2^-14 it has multiples of 2^-24, which is the spacing of
 * floats from 0.5 on.  From 65520 on it is infinite. */
EXPR_FN float e_f16(float x)
{
	HalfBits sign, a, r, inf;
	sign.f = x;
	a.u = sign.u & 0x7FFFFFFFu;
	sign.u &= 0x80000000u;
	inf.u = 0x7F800000u;
	r.u = (a.u + 0xFFFu + (a.u >> 13 & 1u)) & 0xFFFFE000u;
	r.f = a.f < 0x1p-14f ? a.f + 0.5f - 0.5f : r.f;
	r.f = a.f >= 65520.0f ? inf.f : r.f;
	r.f = x != x ? x : r.f;
	r.u |= sign.u;
	return r.f;
}

#endif
