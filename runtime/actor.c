/* Walks a schedule: the tasks of a rank, each an actor for a micro-batch, in the order that the compiler has proved
 * free of deadlock. */
#include "comm.h"

int64_t rt_offset(const RtProgram *p, int value, int64_t piece)
{
	if (value < p->nkept)
		return p->kept[value].t.offset;
	const RtValue *v = &p->value[value - p->nkept];
	return v->copies < 2 ? v->offset
		: v->offset + piece % v->copies * (int64_t)rt_round_up((size_t)v->bytes, RT_PLACE);
}

void *rt_value(const Ctx *c, int value)
{
	const RtProgram *p = c->program;
	bool window = value < p->nkept ? p->kept[value].t.window : p->value[value - p->nkept].window;
	return (window ? c->window : c->slab) + rt_offset(p, value, c->piece);
}

void rt_bind(const Ctx *c, const int *values, size_t n, void **t)
{
	for (size_t i = 0; i < n; i++)
		t[i] = rt_value(c, values[i]);
}

bool rt_enter(Ctx *c, const RtAction *a, const int *values)
{
	c->at = a;
	c->values = values;
	if (c->watch)
		c->watch->before(c);
	return !c->pace || a->kind != RT_COMPUTE;
}

int rt_leave(Ctx *c, int code)
{
	if (!code && c->after)
		code = c->after(c, c->turn);
	if (!code && c->watch)
		code = c->watch->after(c);
	if (!code && (c->lane || c->queues))
		code = rt_lane_poll(c);
	c->id += !code;
	return code;
}

float *rt_packed(Ctx *c, const float *b, int64_t k, int64_t n, int64_t row, int64_t col, bool *fresh)
{
	const RtIo *p = &c->program->io[c->kind];
	for (int i = 0; i < p->npacked; i++) {
		const RtPacked *w = &p->packed[i];
		if (rt_value(c, w->value) != (const void *)b || w->k != k || w->n != n || w->row != row ||
		    w->col != col)
			continue;
		*fresh = c->packed[i] == c->changed;
		c->packed[i] = c->changed;
		return (float *)(void *)(c->slab + w->offset);
	}
	return NULL;
}

static int walk_task(Ctx *c, const RtSchedule *s, const RtTask *t)
{
	const RtActor *a = &s->actor[t->actor];
	int64_t micros = rt_micros(c, c->kind);
	c->micro = t->micro >= 0 ? t->micro : c->micro;
	c->piece = c->runs[c->kind] * micros + c->micro;
	c->id = a->id;
	c->changed += a->updates;
	double since = c->watch && c->watch->ran ? rt_seconds() : 0;
	if (c->comm && c->comm->task)
		c->comm->task(c, t->actor);
	int code = c->queues ? rt_queues_before(c, a) : 0;
	if (!code && a->updates && c->kind == RT_TRAIN && !c->vote.reports)
		code = rt_verdict(c);
	double begun = c->pace ? rt_seconds() : 0;
	c->turn = micros > 1 ? t->micro : -1;
	code = code ? code : a->run(c);
	if (!code && c->pace)
		rt_pace(c, a, begun);
	if (!code && c->queues)
		rt_queues_after(c, a);
	if (!code && c->watch && c->watch->ran)
		c->watch->ran(c, a, t->micro, since);
	return code;
}

static int walk(Ctx *c, const RtSchedule *s)
{
	int code = 0;
	c->micro = 0;
	if (c->kind == RT_TRAIN)
		rt_verdict_begin(c, s);
	for (int i = 0; !code && i < s->ntask; i++)
		code = walk_task(c, s, &s->task[i]);
	if (!code && c->kind == RT_TRAIN)
		code = rt_verdict(c);
	if (!code)
		c->at = NULL;
	return code;
}

int rt_do(Ctx *c, RtProgramKind kind)
{
	const RtSchedule *s = c->program->role[c->role]->schedule[kind];
	if (!s)
		return rt_error(c, RT_PLAN, "this trainer does not have this program");
	/* A step changes kept values.  The values of each program may overwrite the packed weights of the others. */
	c->changed += kind == RT_TRAIN || kind != c->kind;
	c->kind = kind;
	c->begun = true;
	int code = rt_queues_begin(c, kind);
	if (!code)
		code = walk(c, s);
	if (code == RT_NUMERIC)
		rt_lane_drain(c);       /* all ranks stop here, and will synchronize again */
	c->runs[kind]++;
	c->changed += kind == RT_TRAIN;
	return code;
}
