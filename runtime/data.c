/* Samples.  Sample i of the data set is a function of (seed, i); step s takes samples s*batch .. s*batch + batch - 1,
 * and a rank loads the rows that its part of the batch axis begins with.
 *
 * The set made here is for trying a model out: class k has a centre, a fixed random point; a sample is its class's centre
 * plus noise.  A model that learns anything learns it. */
#include "rt.h"

#include <math.h>

enum { KEY_LABEL = 1, KEY_CENTRE = 2, KEY_NOISE = 3, KEY_DATA = 0x64617461 };

static uint64_t key(const Ctx *c, uint64_t what)
{
	return rt_hash(rt_hash(c->program->seed, KEY_DATA), what);
}

static uint64_t first(const Ctx *c, const RtBox *b)
{
	return (uint64_t)(c->step * c->program->batch + (b->split[0] < 0 ? 0 : c->me->origin[b->split[0]]));
}

static int64_t class_of(const Ctx *c, uint64_t sample, int64_t classes)
{
	return (int64_t)(rt_hash(key(c, KEY_LABEL), sample) % (uint64_t)classes);
}

int rt_data_points(Ctx *c, float *x, const RtBox *b, int64_t classes, float noise)
{
	int64_t rows = b->len[0], width = 1;
	for (int a = 1; a < b->rank; a++)
		width *= b->len[a];
	size_t bytes = (size_t)(rows * width) * sizeof *x;
	float *p = rt_host(c, x, bytes);
	uint64_t centre = key(c, KEY_CENTRE), jitter = key(c, KEY_NOISE), at = first(c, b);
	for (int64_t i = 0; i < rows; i++) {
		uint64_t sample = at + (uint64_t)i, k = (uint64_t)class_of(c, sample, classes);
		for (int64_t j = 0; j < width; j++)
			p[i * width + j] = (float)(rt_gauss(centre, k * (uint64_t)width + (uint64_t)j) +
				(double)noise * rt_gauss(jitter, sample * (uint64_t)width + (uint64_t)j));
	}
	return rt_put(c, x, bytes);
}

int rt_data_labels(Ctx *c, int64_t *y, const RtBox *b, int64_t classes)
{
	int64_t rows = b->len[0], width = 1;
	for (int a = 1; a < b->rank; a++)
		width *= b->len[a];
	size_t bytes = (size_t)(rows * width) * sizeof *y;
	int64_t *p = rt_host(c, y, bytes);
	uint64_t at = first(c, b);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < width; j++)
			p[i * width + j] = class_of(c, at + (uint64_t)i, classes);
	return rt_put(c, y, bytes);
}

int rt_data_present(Ctx *c, uint8_t *mask, const RtBox *b)
{
	size_t n = 1;
	for (int a = 0; a < b->rank; a++)
		n *= (size_t)b->len[a];
	uint8_t *p = rt_host(c, mask, n);
	for (size_t i = 0; i < n; i++)
		p[i] = 1;
	return rt_put(c, mask, n);
}

int rt_step(Ctx *c, int64_t *value)
{
	int64_t *p = rt_host(c, value, sizeof *p);
	*p = c->step;
	return rt_put(c, value, sizeof *p);
}

int rt_save_loss(Ctx *c, const float *value)
{
	float v = 0;
	int code = rt_get(c, &v, value, sizeof v);
	if (code)
		return code;
	c->loss = (double)v;
	if (!isfinite(v))
		return rt_error(c, RT_NUMERIC, "the loss is %g", (double)v);
	return 0;
}
