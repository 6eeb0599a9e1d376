/* A synthetic data set for trying a model out.  Sample i is a function of (seed, i): each class has a centre, a fixed
 * random point; a sample is the centre of its class plus noise. */
#include "data.h"

#include <string.h>

enum { KEY_LABEL = 1, KEY_CENTRE = 2, KEY_NOISE = 3, KEY_DATA = 0x64617461 };

static uint64_t key(const Ctx *c, uint64_t what)
{
	return rt_hash(rt_hash(c->program->seed, KEY_DATA), what);
}

static int64_t class_of(const Ctx *c, int64_t sample)
{
	return (int64_t)(rt_hash(key(c, KEY_LABEL), (uint64_t)sample) % (uint64_t)c->program->data.classes);
}

void points_fetch(const Ctx *c, const RtInput *in, int64_t width, int64_t sample, int64_t from, int64_t n, void *to)
{
	uint64_t k = (uint64_t)class_of(c, sample), centre = key(c, KEY_CENTRE), jitter = key(c, KEY_NOISE);
	if (in->t.type == RT_F32)
		for (int64_t i = 0; i < n; i++)
			((float *)to)[i] = rt_gauss(centre, k * (uint64_t)width + (uint64_t)(from + i)) +
				c->program->data.noise * rt_gauss(jitter, (uint64_t)(sample * width + from + i));
	else if (in->t.type == RT_I64)
		for (int64_t i = 0; i < n; i++)
			((int64_t *)to)[i] = (int64_t)k;
	else
		memset(to, 1, (size_t)n * rt_width(in->t.type));        /* a mask: all ones */
}
