/* exp, log, tanh and erf of float without branches, so that compilers vectorise the loops around them.  They are
 * minimax polynomials for the relative error.  Results are within 2 units in the last place (erf, tanh: 3); infinities
 * and NaN are as in C.  Every multiply-add is one fmaf, so that all instruction sets give the same bits; without the
 * instruction it is a library call.  tests/kernels/math.c checks many millions of arguments. */
#ifndef FASTMATH_H
#define FASTMATH_H

#include "bits.h"

#include <math.h>
#include <stdint.h>

#define FASTMATH static inline __attribute__((always_inline))

/* exp(x) - 1 - x over x * x, for x between +- log(2) / 2. */
FASTMATH float fast_exp_rest(float r)
{
	float p = 0.00019919380429200828f;
	p = fmaf(p, r, 0.0013947224942967296f);
	p = fmaf(p, r, 0.008333262987434864f);
	p = fmaf(p, r, 0.04166625440120697f);
	p = fmaf(p, r, 0.1666666716337204f);
	return fmaf(p, r, 0.5f);
}

FASTMATH float fast_expf(float x)
{
	const float big = 12582912.0f;                  /* 3 * 2^22: adding it rounds to a whole number */
	x = x > 89.0f ? 89.0f : x;
	x = x < -104.0f ? -104.0f : x;
	float t = fmaf(x, 1.44269504f, big), n = t - big;
	float r = fmaf(n, -0.693359375f, x);            /* log(2) in two parts: the first product is exact */
	r = fmaf(n, 2.12194440e-4f, r);
	float e = fmaf(r * r, fast_exp_rest(r), r) + 1.0f;
	/* Times 2^n, in two steps, since n may lie beyond the exponents. */
	int32_t i = (int32_t)(rt_bits(t) - rt_bits(big)), half = i >> 1;
	return e * rt_from_bits((uint32_t)(half + 127) << 23) * rt_from_bits((uint32_t)(i - half + 127) << 23);
}

/* exp(x) where it is a normal number: x between -87 and 88. */
FASTMATH float fast_exp_near(float x)
{
	const float big = 12582912.0f;
	float t = fmaf(x, 1.44269504f, big), n = t - big;
	float r = fmaf(n, 2.12194440e-4f, fmaf(n, -0.693359375f, x));
	float e = fmaf(r * r, fast_exp_rest(r), r) + 1.0f;
	return e * rt_from_bits((rt_bits(t) - rt_bits(big) + 127) << 23);
}

/* exp(x) for x <= 0, as in a softmax.  Results below the smallest normal number become 0: the clamp to -88.1 gives the
 * exponent bits of 0. */
FASTMATH float fast_exp_belowf(float x)
{
	return fast_exp_near(x < -88.1f ? -88.1f : x);
}

FASTMATH float fast_tanhf(float x)
{
	float a = fabsf(x), z = x * x;
	float p = -0.005155108403414488f;
	p = fmaf(p, z, 0.020111652091145515f);
	p = fmaf(p, z, -0.053566984832286835f);
	p = fmaf(p, z, 0.13329243659973145f);
	p = fmaf(p, z, -0.33333197236061096f);
	float small = fmaf(p * z, x, x);
	/* 1 from 10 on */
	float e = fast_exp_near(a > 20.0f ? 40.0f : 2.0f * a), large = copysignf(1.0f - 2.0f / (e + 1.0f), x);
	return a < 0.7f ? small : large;
}

FASTMATH float fast_erff(float x)
{
	float a = fabsf(x), z = x * x;
	float p = 7.889119297033176e-05f;
	p = fmaf(p, z, -0.0008020841050893068f);
	p = fmaf(p, z, 0.005189535208046436f);
	p = fmaf(p, z, -0.026854444295167923f);
	p = fmaf(p, z, 0.11283600330352783f);
	p = fmaf(p, z, -0.3761262595653534f);
	p = fmaf(p, z, 0.1283791065216064f);                /* the rest of 2 / sqrt(pi): 1.128... */
	float small = fmaf(p, x, x);
	float c = a > 4.0f ? 4.0f : a;                  /* erf(4) rounds to 1 */
	float q = 2.1686813852284104e-05f;
	q = fmaf(q, c, -0.00044133589835837483f);
	q = fmaf(q, c, 0.00420455913990736f);
	q = fmaf(q, c, -0.02520824782550335f);
	q = fmaf(q, c, 0.10841856151819229f);
	q = fmaf(q, c, 0.6332198977470398f);
	q = fmaf(q, c, 1.1295784711837769f);
	q = fmaf(q, c, -0.0001880381751107052f);
	float large = copysignf(1.0f - fast_exp_near(-q), x);
	return a < 1.0f ? small : large;
}

FASTMATH float fast_logf(float x)
{
	/* x = m 2^e with m between sqrt(1/2) and sqrt(2); numbers below the normal ones are first made larger. */
	float tiny = x < 1.17549435e-38f ? 1.0f : 0.0f, y = tiny != 0.0f ? x * 8388608.0f : x;
	uint32_t i = rt_bits(y);
	int32_t e = (int32_t)(i - 0x3F3504F3u) >> 23;
	float f = rt_from_bits(i - ((uint32_t)e << 23)) - 1.0f, n = (float)e - tiny * 23.0f;
	float p = 0.06746601313352585f;
	p = fmaf(p, f, -0.11675640940666199f);
	p = fmaf(p, f, 0.11888174712657928f);
	p = fmaf(p, f, -0.12405591458082199f);
	p = fmaf(p, f, 0.14219550788402557f);
	p = fmaf(p, f, -0.1666799634695053f);
	p = fmaf(p, f, 0.2000211924314499f);
	p = fmaf(p, f, -0.25000008940696716f);
	p = fmaf(p, f, 0.3333331346511841f);
	float z = f * f, r = p * f * z + n * -2.12194440e-4f - 0.5f * z;
	r = r + f + n * 0.693359375f;
	r = x == INFINITY ? x : r;
	r = x < 0.0f || x != x ? NAN : r;
	return x == 0.0f ? -INFINITY : r;
}

#endif
