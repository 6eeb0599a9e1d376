/* The learning rate, as nodes.
 *
 * The number of the step is an input of the training graph that the program loads like any other (train.step, int64, 0
 * first); a schedule is a few scalar nodes over it.  They are computed in double and rounded once, at the end: 1 -
 * 0.999^t in float would be wrong in the fifth digit.  A warm-up comes before any schedule: the rate rises linearly
 * over the first steps and decays after them; total and milestones count from step 0. */
#include "train/train.h"

#include <math.h>
#include <string.h>

static Value *add(Scalars *m, Value *a, double b) { return b == 0 ? a : scalar_op2(m, "Add", a, scalar_num(m, b)); }

/* 1 - v */
static Value *rest(Scalars *m, Value *v) { return scalar_op2(m, "Sub", scalar_num(m, 1), v); }

static Value *clamp01(Scalars *m, Value *v)
{
	return scalar_op2(m, "Min", scalar_op2(m, "Max", v, scalar_num(m, 0)), scalar_num(m, 1));
}

/* ---- the step ---- */

Value *lr_step_input(Graph *g, Loc loc)
{
	Name name = name_of("train.step");
	Value *v = graph_find(g, name);
	if (v)
		return v;
	v = graph_value_here(g, name, loc);
	v->type = type_tensor(g->arena, DT_INT64, 0, NULL);
	v->input = v->declared = true;
	arena_push(g->arena, g->in, g->nin, v);
	return v;
}

Value *lr_step(Scalars *m)
{
	Value *taken = graph_find(m->g, name_of("train.taken"));         /* steps may be skipped (loss_scale.c) */
	return scalar_cast(m, taken ? taken : lr_step_input(m->g, m->loc), m->dt);
}

/* ---- schedules ---- */

typedef struct Curve {
	Scalars *m;
	const Arg *s;
	Value *t;                       /* the step */
	double warm;
	double low;                     /* the lowest rate, as a fraction of lr */
} Curve;

static double given(const Curve *c, const char *key, double otherwise)
{
	return scalar_given(c->s, key, otherwise);
}

/* Progress from the end of the warm-up to `total`: 0 to 1. */
static Value *done(Curve *c)
{
	double steps = fmax(given(c, "total", 1) - c->warm, 1);
	return clamp01(c->m, scalar_scaled(c->m, add(c->m, c->t, -c->warm), 1 / steps));
}

static Value *after_warmup(Curve *c)
{
	return c->warm > 0 ? scalar_op2(c->m, "Max", add(c->m, c->t, -c->warm), scalar_num(c->m, 0)) : c->t;
}

/* From 1 down to the lowest rate as x goes from 1 to 0. */
static Value *above_low(Curve *c, Value *x)
{
	return add(c->m, scalar_scaled(c->m, x, 1 - c->low), c->low);
}

/* (1 + cos(pi x)) / 2 */
static Value *half_cosine(Curve *c, Value *x)
{
	Value *cos = scalar_op1(c->m, "Cos", scalar_scaled(c->m, x, acos(-1)));
	return above_low(c, scalar_scaled(c->m, add(c->m, cos, 1), 0.5));
}

static Value *linear(Curve *c) { return above_low(c, rest(c->m, done(c))); }
static Value *cosine(Curve *c) { return half_cosine(c, done(c)); }

static Value *polynomial(Curve *c)
{
	return above_low(c, scalar_op2(c->m, "Pow", rest(c->m, done(c)), scalar_num(c->m, given(c, "power", 1))));
}

/* gamma^n */
static Value *decay(Curve *c, double gamma, Value *n)
{
	return scalar_op2(c->m, "Pow", scalar_num(c->m, gamma), n);
}

static Value *step(Curve *c)
{
	Value *every = scalar_num(c->m, given(c, "every", 1));
	return decay(c, given(c, "gamma", 0.1), scalar_op1(c->m, "Floor", scalar_op2(c->m, "Div", after_warmup(c),
		every)));
}

static Value *exponential(Curve *c)
{
	return decay(c, given(c, "gamma", 1), scalar_scaled(c->m, after_warmup(c), 1 / given(c, "every", 1)));
}

static Value *multistep(Curve *c)
{
	const Arg *at = arg_find(c->s->arg, c->s->narg, "milestones");
	Value *count = scalar_num(c->m, 0);
	for (int i = 0; at && i < at->narg; i++)
		count = scalar_op2(c->m, "Add", count, clamp01(c->m, add(c->m, c->t, 1 - (double)at->arg[i].i)));
	return decay(c, given(c, "gamma", 0.1), count);
}

static Value *wsd(Curve *c)
{
	double last = given(c, "decay", 1);
	return above_low(c,
		rest(c->m, clamp01(c->m, scalar_scaled(c->m, add(c->m, c->t, last - given(c, "total", 1)), 1 / last))));
}

/* Cycle n lasts period * growth^n steps and begins at period * (growth^n - 1) / (growth - 1).  The logarithm that finds
 * n is exact to far less than one step: the small term keeps the first step of a cycle from falling into the one
 * before. */
static Value *restarts(Curve *c)
{
	Scalars *m = c->m;
	double period = given(c, "period", 1), k = given(c, "growth", 1), ln = log(k);
	Value *t = after_warmup(c), *x = scalar_scaled(m, t, 1 / period);
	if (k <= 1) {
		Value *cycle = scalar_op1(m, "Floor", add(m, x, 1e-9));
		return half_cosine(c, scalar_op2(m, "Max", scalar_op2(m, "Sub", x, cycle), scalar_num(m, 0)));
	}
	Value *power = scalar_op1(m, "Log", add(m, scalar_scaled(m, x, k - 1), 1));
	Value *length = decay(c, k, scalar_op1(m, "Floor", add(m, scalar_scaled(m, power, 1 / ln), 1e-9)));
	Value *begin = scalar_scaled(m, add(m, length, -1), 1 / (k - 1));
	return half_cosine(c, scalar_op2(m, "Div", scalar_op2(m, "Sub", x, begin), length));
}

/* Warm-up is a factor of its own. */
static Value *inverse_sqrt(Curve *c)
{
	return scalar_op1(c->m, "Sqrt", scalar_op2(c->m, "Min", scalar_op2(c->m, "Div", scalar_num(c->m, c->warm),
		add(c->m, c->t, 1)), scalar_num(c->m, 1)));
}

static Value *constant(Curve *c)
{
	(void)c;
	return NULL;
}

static const struct { const char *name; Value *(*curve)(Curve *); } schedules[] = {
	{ "constant", constant }, { "linear", linear }, { "cosine", cosine }, { "cosine_restarts", restarts },
	{ "step", step }, { "multistep", multistep }, { "polynomial", polynomial }, { "exponential", exponential },
	{ "inverse_sqrt", inverse_sqrt }, { "wsd", wsd },
};

Value *lr_schedule(Scalars *m, const Arg *s, double lr)
{
	if (!s)
		return NULL;
	Scalars d = { m->g, m->loc, DT_DOUBLE, false };
	Curve c = { .m = &d, .s = s, .t = lr_step(&d), .warm = scalar_given(s, "warmup", 0),
		.low = lr > 0 ? scalar_given(s, "min", 0) / lr : 0 };
	Value *f = NULL;
	for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++)
		if (!strcmp(schedules[i].name, s->s))
			f = schedules[i].curve(&c);
	if (c.warm > 0) {
		Value *rise = scalar_op2(&d, "Min", scalar_scaled(&d, add(&d, c.t, 1), 1 / c.warm), scalar_num(&d, 1));
		f = f ? scalar_op2(&d, "Mul", f, rise) : rise;
	}
	m->bad |= d.bad;
	return f;
}
