/* Random numbers for initial values and synthetic data: functions of (key, index), in float, by additions and
 * multiplications only, so that loops over them vectorize and give the same bits as single calls, on every processor
 * and with every compiler.
 *
 * A hash gives 64 bits for each pair of indices.  The upper half becomes a number u in (0, 1], the lower an angle; a
 * pair of normal numbers is sqrt(-2 log u) times cosine and sine of the angle (G. Box and M. Muller, 1958).  Logarithm
 * and sine are polynomials through Chebyshev's points, both within 5e-8; the farthest number is 6.6 deviations from the
 * mean. */
#include "bits.h"
#include "run.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")              /* vector code: clang makes it at -O2, too */
#endif
#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))
#endif

enum { BLOCK = 64 };                    /* hashes per vector loop */

/* Mixes two words; the finaliser is that of splitmix64. */
INLINE uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t x = a + 0x9E3779B97F4A7C15u * (b + 1);
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

/* The upper half as a number from 0.5 to 2^31. */
INLINE float upper(uint32_t hi)
{
	return (float)(int32_t)(hi >> 1) + 0.5f;
}

/* sqrt(-2 log(f / 2^31)), f in (0, 2^31]: f is m 2^e, m from sqrt(1/2) to sqrt(2); then Newton's method for 1 /
 * sqrt. */
INLINE float radius(float f)
{
	int32_t bits = (int32_t)rt_bits(f), e = (bits - 0x3F3504F3) >> 23;
	float t = rt_from_bits((uint32_t)(bits - e * (1 << 23))) - 1.0f, p = 0.0904878452f;
	p = p * t;
	p = (p - 0.140308917f) * t;
	p = (p + 0.147038996f) * t;
	p = (p - 0.166027188f) * t;
	p = (p + 0.199842229f) * t;
	p = (p - 0.250007033f) * t;
	p = p + 0.333334148f;
	float tt = t * t, cube = tt * t, half = tt * 0.5f;
	float rest = cube * p;
	rest = rest - half;
	rest = rest + t;                                /* log m */
	float v = (float)(31 - e) * 1.38629436f, twice = rest * 2.0f;
	v = v - twice;
	/* above 0, so that 1 / sqrt is finite */
	v = rt_from_bits(rt_bits(v) & ~(uint32_t)((int32_t)rt_bits(v) >> 31)) + 1e-20f;
	float y = rt_from_bits(0x5F375A86u - (rt_bits(v) >> 1)), h = v * 0.5f;
	for (int i = 0; i < 3; i++) {
		float yy = y * y, s = h * yy;
		s = 1.5f - s;
		y = y * s;
	}
	return v * y;
}

/* The cosine of an angle of which 2^32 is a whole turn. */
INLINE float cosine(uint32_t angle)
{
	float t = (float)(int32_t)angle * 0x1p-32f, a = rt_from_bits(rt_bits(t) & 0x7FFFFFFFu),
		s = 0.25f - a, z = s * s;
	float p = 39.7598267f * z;
	p = (p - 76.5811691f) * z;
	p = (p + 81.602478f) * z;
	p = (p - 41.3416824f) * z;
	p = p + 6.28318548f;
	return p * s;
}

uint64_t rt_hash(uint64_t a, uint64_t b)
{
	return mix(a, b);
}

float rt_unit(uint64_t key, uint64_t index)
{
	return upper((uint32_t)(mix(key, index) >> 32)) * 0x1p-31f;
}

float rt_gauss(uint64_t key, uint64_t index)
{
	uint64_t h = mix(key, index >> 1);
	return radius(upper((uint32_t)(h >> 32))) * cosine((uint32_t)h - ((uint32_t)(index & 1) << 30));
}

/* ---- many ---- */

/* Lengths are constants, so that all compilers vectorize these loops. */
INLINE void gauss_block(float *to, uint64_t key, uint64_t pair, float a, float b)
{
	uint32_t hi[BLOCK], lo[BLOCK];
	float r[BLOCK];
	for (int i = 0; i < BLOCK; i++) {
		uint64_t h = mix(key, pair + (uint64_t)i);
		hi[i] = (uint32_t)(h >> 32);
		lo[i] = (uint32_t)h;
	}
	for (int i = 0; i < BLOCK; i++)
		r[i] = radius(upper(hi[i]));
	for (int i = 0; i < BLOCK; i++) {
		float x = r[i] * cosine(lo[i]), y = r[i] * cosine(lo[i] - (1u << 30));
		x = b * x;
		y = b * y;
		to[2 * i] = a + x;
		to[2 * i + 1] = a + y;
	}
}

INLINE void unit_block(float *to, uint64_t key, uint64_t index, float a, float b)
{
	uint32_t hi[BLOCK];
	for (int i = 0; i < BLOCK; i++)
		hi[i] = (uint32_t)(mix(key, index + (uint64_t)i) >> 32);
	for (int i = 0; i < BLOCK; i++) {
		float x = upper(hi[i]) * 0x1p-31f;
		x = b * x;
		to[i] = a + x;
	}
}

static void gauss_plain(float *to, uint64_t key, uint64_t pair, float a, float b) { gauss_block(to, key, pair, a, b); }
static void unit_plain(float *to, uint64_t key, uint64_t index, float a, float b) { unit_block(to, key, index, a, b); }
#if defined(__x86_64__)
AVX2 static void gauss_avx2(float *to, uint64_t key, uint64_t pair, float a, float b)
{
	gauss_block(to, key, pair, a, b);
}

AVX2 static void unit_avx2(float *to, uint64_t key, uint64_t index, float a, float b)
{
	unit_block(to, key, index, a, b);
}
#else
#define gauss_avx2 gauss_plain
#define unit_avx2 unit_plain
#endif

static float one(float a, float b, float g)
{
	float x = b * g;
	return a + x;
}

void rt_gauss_many(RtIsa isa, float *to, uint64_t key, uint64_t index, int64_t n, float a, float b)
{
	void (*block)(float *, uint64_t, uint64_t, float, float) = isa >= RT_AVX2 ? gauss_avx2 : gauss_plain;
	int64_t i = 0;
	for (; i < n && (index + (uint64_t)i) & 1; i++)
		to[i] = one(a, b, rt_gauss(key, index + (uint64_t)i));
	for (; n - i >= 2 * BLOCK; i += 2 * BLOCK)
		block(to + i, key, (index + (uint64_t)i) >> 1, a, b);
	for (; i < n; i++)
		to[i] = one(a, b, rt_gauss(key, index + (uint64_t)i));
}

void rt_unit_many(RtIsa isa, float *to, uint64_t key, uint64_t index, int64_t n, float a, float b)
{
	void (*block)(float *, uint64_t, uint64_t, float, float) = isa >= RT_AVX2 ? unit_avx2 : unit_plain;
	int64_t i = 0;
	for (; n - i >= BLOCK; i += BLOCK)
		block(to + i, key, index + (uint64_t)i, a, b);
	for (; i < n; i++)
		to[i] = one(a, b, rt_unit(key, index + (uint64_t)i));
}
