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

/* micro: the micro-batch, or the batch of an evaluation or inference; -1: neither. */
static int walk_task(Ctx *c, const RtSchedule *s, const RtActor *a, int64_t micro)
{
	int64_t micros = rt_micros(c, c->kind);
	c->micro = micro >= 0 ? micro : c->micro;
	c->piece = c->runs[c->kind] * micros + c->micro;
	c->id = a->id;
	c->changed += a->updates;
	double since = c->watch && c->watch->ran ? rt_seconds() : 0;
	if (c->comm && c->comm->task)
		c->comm->task(c, (int)(a - s->actor));
	int code = c->queues ? rt_queues_before(c, a) : 0;
	if (!code && a->updates && c->kind == RT_TRAIN && !c->vote.reports)
		code = rt_verdict(c);
	double begun = c->pace ? rt_seconds() : 0;
	c->turn = micros > 1 ? (int)micro : -1;
	code = code ? code : a->run(c);
	if (!code && c->pace)
		rt_pace(c, a, begun);
	if (!code && c->queues)
		rt_queues_after(c, a);
	if (!code && c->watch && c->watch->ran)
		c->watch->ran(c, a, (int)micro, since);
	return code;
}

static int walk_step(Ctx *c, const RtSchedule *s)
{
	int code = 0;
	c->micro = 0;
	rt_verdict_begin(c, s);
	for (int i = 0; !code && i < s->ntask; i++)
		code = walk_task(c, s, &s->actor[s->task[i].actor], s->task[i].micro);
	return code ? code : rt_verdict(c);
}

/* ---- batches ---- */

/* The tasks of turn t that have a batch among n. */
static int walk_turn(Ctx *c, const RtSchedule *s, int64_t t, int64_t n)
{
	int code = 0;
	for (int i = 0; i < s->ntask && !code; i++) {
		const RtTask *x = &s->task[i];
		int64_t batch = x->micro < 0 ? -1 : t - x->micro;
		if (x->micro < 0 ? !t : batch >= 0 && batch < n)
			code = walk_task(c, s, &s->actor[x->actor], batch);
	}
	return code;
}

/* A rank is ahead of others by as many batches as queues between them have copies.  It votes after each round of
 * batches; a round is longer than the pipeline, so that the verdict on it is there at the end of the next one, where
 * all ranks stop if it says so: they then finish the batches that they have begun, and agree. */
static int walk_batches(Ctx *c, const RtSchedule *s, int64_t *n, bool votes)
{
	int64_t round = c->nrank > 1 ? 2 * c->program->nrole + 2 : 1, lag = 0;
	int code = 0;
	for (int i = 0; i < s->ntask; i++)
		lag = s->task[i].micro > lag ? s->task[i].micro : lag;
	for (int64_t t = 0, end = *n; t < *n + lag && !code; t++) {
		code = walk_turn(c, s, t, *n);
		if (code || !votes || *n < end || t + 1 >= *n || (t + 1) % round)
			continue;
		code = rt_verdict_round(c, false);
		if (c->vote.all.code || c->vote.all.stop)
			*n = t + 1;
	}
	if (!code && votes)
		code = rt_verdict_round(c, true);
	if (code || !votes)
		return code;
	return c->vote.all.code ? (int)c->vote.all.code : c->vote.all.stop ? RT_STOPPED : 0;
}

/* n: steps (one) or batches. */
static int run(Ctx *c, RtProgramKind kind, int64_t n, bool votes)
{
	const RtSchedule *s = c->program->role[c->role]->schedule[kind];
	if (!s)
		return rt_error(c, RT_PLAN, "this trainer does not have this program");
	/* A step changes kept values.  The values of each program may overwrite the packed weights of the others. */
	c->changed += kind == RT_TRAIN || kind != c->kind;
	c->kind = kind;
	c->begun = true;
	int code = rt_queues_begin(c, kind, n);
	if (!code)
		code = kind == RT_TRAIN ? walk_step(c, s) : walk_batches(c, s, &n, votes);
	if (!code)
		c->at = NULL;
	if (code == RT_NUMERIC)
		rt_lane_drain(c);       /* all ranks stop here, and will synchronize again */
	c->runs[kind] += n;
	c->changed += kind == RT_TRAIN;
	return code;
}

int rt_do(Ctx *c, RtProgramKind kind)
{
	return run(c, kind, 1, false);
}

int rt_do_batches(Ctx *c, RtProgramKind kind, int64_t n, const RtBatches *what)
{
	c->vote = (RtVote){ 0 };
	c->batches = what;
	int code = run(c, kind, n, true);
	c->batches = NULL;
	return code;
}
