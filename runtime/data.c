/* Samples.  Sample i of the data set is a function of (seed, i); step s takes samples s*batch .. s*batch + batch - 1, micro-batch
 * after micro-batch, and a rank loads the rows that its part of the batch axis begins with.
 *
 * The set made here is for trying a model out: class k has a centre, a fixed random point; a sample is its class's centre
 * plus noise.  A model that learns anything learns it. */
#include "rt.h"

#include <math.h>
#include <string.h>

enum { KEY_LABEL = 1, KEY_CENTRE = 2, KEY_NOISE = 3, KEY_DATA = 0x64617461 };

static uint64_t key(const Ctx *c, uint64_t what)
{
	return rt_hash(rt_hash(c->program->seed, KEY_DATA), what);
}

static uint64_t first(const Ctx *c, const RtBox *b)
{
	int64_t part = c->program->batch / c->program->times;
	return (uint64_t)(c->step * c->program->batch + c->micro * part + (b->split[0] < 0 ? 0 : c->me->origin[b->split[0]]));
}

static int64_t class_of(const Ctx *c, uint64_t sample, int64_t classes)
{
	return (int64_t)(rt_hash(key(c, KEY_LABEL), sample) % (uint64_t)classes);
}

static int64_t row_width(const RtBox *b)
{
	int64_t width = 1;
	for (int a = 1; a < b->rank; a++)
		width *= b->len[a];
	return width;
}

static void points(const Ctx *c, float *p, const RtBox *b, int64_t classes, float noise)
{
	int64_t width = row_width(b);
	uint64_t centre = key(c, KEY_CENTRE), jitter = key(c, KEY_NOISE), at = first(c, b);
	for (int64_t i = 0; i < b->len[0]; i++) {
		uint64_t sample = at + (uint64_t)i, k = (uint64_t)class_of(c, sample, classes);
		for (int64_t j = 0; j < width; j++)
			p[i * width + j] = (float)(rt_gauss(centre, k * (uint64_t)width + (uint64_t)j) +
				(double)noise * rt_gauss(jitter, sample * (uint64_t)width + (uint64_t)j));
	}
}

static void labels(const Ctx *c, int64_t *p, const RtBox *b, int64_t classes)
{
	int64_t width = row_width(b);
	for (int64_t i = 0; i < b->len[0]; i++)
		for (int64_t j = 0; j < width; j++)
			p[i * width + j] = class_of(c, first(c, b) + (uint64_t)i, classes);
}

int rt_load_one(Ctx *c, const RtInput *in)
{
	const RtData *d = &c->program->data;
	if (in->feed == RT_CALLER)
		return 0;
	RtBox b = rt_box(c, &in->t);
	size_t bytes = (size_t)rt_elements(&b) * rt_width(in->t.type);
	void *to = rt_place(c, &in->t), *p = rt_host(c, to, bytes);
	if (in->feed == RT_STEP)
		*(int64_t *)p = c->step;
	else if (in->t.type == RT_F32)
		points(c, p, &b, d->classes, d->noise);
	else if (in->t.type == RT_I64)
		labels(c, p, &b, d->classes);
	else
		memset(p, 1, bytes);    /* a mask: all are there */
	return rt_put(c, to, bytes);
}

int rt_load(Ctx *c)
{
	int code = 0;
	const RtPart *part = &c->program->part[c->part];
	for (int i = 0; i < part->ninput && !code; i++)
		code = rt_load_one(c, &part->input[i]);
	return code;
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

int rt_save_eval(Ctx *c, const float *sum, const float *count)
{
	float s = 0, n = 0;
	int code = rt_get(c, &s, sum, sizeof s);
	if (!code)
		code = rt_get(c, &n, count, sizeof n);
	c->sum = (double)s;
	c->count = (double)n;
	return code;
}
