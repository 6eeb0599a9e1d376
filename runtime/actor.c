/* Walks a schedule: one list of actions per rank, in the order that the compiler has proved free of deadlock. */
#include "comm.h"

void *rt_value(const Ctx *c, int value)
{
	const RtProgram *p = c->program;
	bool kept = value < p->nkept;
	bool window = kept ? p->kept[value].t.window : p->value[value - p->nkept].window;
	return (window ? c->window : c->slab) + (kept ? p->kept[value].t.offset : p->value[value - p->nkept].offset);
}

static int walk_segment(Ctx *c, const RtSegment *s, int micro)
{
	void *t[c->program->most + 1];
	c->values = s->value;
	for (int k = 0; k < s->repeat; k++)
		for (int i = 0; i < s->count; i++) {
			c->at = &s->action[i];
			int n = c->at->nmake + c->at->ntake;
			for (int j = 0; j < n; j++)
				t[j] = rt_value(c, c->values[j]);
			if (c->watch)
				c->watch->before(c);
			int code = c->at->run(c, t);
			if (!code && c->after)
				code = c->after(c, micro);
			if (!code && c->watch)
				code = c->watch->after(c);
			if (!code && c->lane)
				code = rt_lane_poll(c);
			if (code)
				return code;
			c->values += n;
			c->id++;
		}
	return 0;
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

static int walk(Ctx *c, const RtSchedule *s)
{
	int code = 0, first = 0;
	c->micro = 0;
	c->id = 0;
	for (int i = 0; !code && i < s->nsegment; i++) {
		if (i == s->from)
			first = c->id;
		if (i == s->to)
			c->changed++;           /* parameters are updated from here on */
		bool body = s->microbatches > 1 && i >= s->from && i < s->to;
		code = walk_segment(c, &s->segment[i], body ? (int)c->micro : -1);
		if (!code && i == s->to - 1 && c->micro + 1 < s->microbatches) {
			c->micro++;
			c->id = first;
			i = s->from - 1;
		}
	}
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
	int code = walk(c, s);
	if (code == RT_NUMERIC)
		rt_lane_drain(c);       /* all ranks stop here, and will synchronize again */
	c->changed += kind == RT_TRAIN;
	return code;
}
