/* Values at the start: constants and random numbers.
 *
 * A random number is a function of (seed, key of the tensor, index of the element in the logical tensor), so a shard
 * holds exactly what the whole tensor would hold there: no plan and no number of ranks changes a bit. */
#include "rt.h"

#include <math.h>
#include <string.h>

/* Mixes two words; the finaliser is that of splitmix64. */
uint64_t rt_hash(uint64_t a, uint64_t b)
{
	uint64_t x = a + 0x9E3779B97F4A7C15u * (b + 1);
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

double rt_unit(uint64_t key, uint64_t index)
{
	return ((double)(rt_hash(key, index) >> 11) + 0.5) * 0x1p-53;
}

double rt_gauss(uint64_t key, uint64_t index)
{
	double r = sqrt(-2.0 * log(rt_unit(key, 2 * index)));
	return r * cos(6.283185307179586 * rt_unit(key, 2 * index + 1));
}

static int64_t elements(const RtBox *b)
{
	int64_t n = 1;
	for (int a = 0; a < b->rank; a++)
		n *= b->len[a];
	return n;
}

/* The index in the logical tensor of the i-th element held here. */
static uint64_t logical(const Ctx *c, const RtBox *b, int64_t i)
{
	int64_t at = 0, stride = 1;
	for (int a = b->rank - 1; a >= 0; a--) {
		int64_t k = i % b->len[a] + (b->split[a] < 0 ? 0 : c->me->origin[b->split[a]]);
		i /= b->len[a];
		at += k * stride;
		stride *= b->dim[a];
	}
	return (uint64_t)at;
}

int rt_fill(Ctx *c, float *value, const RtBox *b, float v)
{
	int64_t n = elements(b);
	float *p = rt_host(c, value, (size_t)n * sizeof *p);
	for (int64_t i = 0; i < n; i++)
		p[i] = v;
	return rt_put(c, value, (size_t)n * sizeof *p);
}

int rt_normal(Ctx *c, float *value, const RtBox *b, uint64_t key, float mean, float dev)
{
	int64_t n = elements(b);
	float *p = rt_host(c, value, (size_t)n * sizeof *p);
	uint64_t k = rt_hash(c->seed, key);
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)((double)mean + (double)dev * rt_gauss(k, logical(c, b, i)));
	return rt_put(c, value, (size_t)n * sizeof *p);
}

int rt_uniform(Ctx *c, float *value, const RtBox *b, uint64_t key, float low, float high)
{
	int64_t n = elements(b);
	float *p = rt_host(c, value, (size_t)n * sizeof *p);
	uint64_t k = rt_hash(c->seed, key);
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)((double)low + ((double)high - (double)low) * rt_unit(k, logical(c, b, i)));
	return rt_put(c, value, (size_t)n * sizeof *p);
}

int rt_copy(Ctx *c, void *value, const RtBox *b, const void *from, size_t elem)
{
	int64_t n = elements(b);
	unsigned char *p = rt_host(c, value, (size_t)n * elem);
	for (int64_t i = 0; i < n; i++)
		memcpy(p + (size_t)i * elem, (const unsigned char *)from + logical(c, b, i) * elem, elem);
	return rt_put(c, value, (size_t)n * elem);
}
