/* The verdict of a training step: whether the data of all ranks are good, whether the loss is finite, and whether the
 * run ends after this step because of a signal.  No rank updates anything before it knows the verdict.
 *
 *   rank 0   load  F  .......  B   votes good, stop      knows | update
 *   rank 1   load  votes good  F  B  ....................knows | update
 *
 * A rank votes once per step, as soon as it can, and continues; it waits for the votes of the others where it reports
 * the loss, or before its first update.  After bad data it computes with zeros, so that other ranks get the values that
 * they wait for.  There is no other barrier in or between steps.
 *
 * An evaluation or inference is a run of many batches, so ranks vote after each round of batches and hear the verdict
 * on the round before (actor.c).  It ends with a verdict that all ranks wait for. */
#include "comm.h"

void rt_verdict_begin(Ctx *c, const RtSchedule *s)
{
	RtVote *v = &c->vote;
	*v = (RtVote){ 0 };
	for (int i = 0; i < s->ntask; i++) {
		v->loads += s->actor[s->task[i].actor].loads;
		v->reports |= s->actor[s->task[i].actor].saves;
	}
}

static void say(Ctx *c)
{
	RtVote *v = &c->vote;
	if (v->sent)
		return;
	v->sent = true;
	v->stop = c->nrank > 1 && c->rank == 0 && rt_stop_asked(c);
	v->all = (RtVerdict){ v->code, v->not_finite, v->stop };
	if (c->nrank > 1)
		c->comm->say(c, &v->all);
}

bool rt_verdict_loaded(Ctx *c, int code)
{
	RtVote *v = &c->vote;
	v->code = (uint32_t)code > v->code ? (uint32_t)code : v->code;
	if (!--v->loads && !v->reports)
		say(c);
	return !v->code;
}

/* Waits for the verdict; without another thread, queues advance meanwhile. */
static int hear(Ctx *c)
{
	RtVote *v = &c->vote;
	int code = 0;
	for (int turn = 0; c->nrank > 1 && !v->known && !code; turn++) {
		bool wait = !c->queues || rt_lane_threaded(c);
		code = c->comm->hear(c, &v->all, wait);
		v->known = !code;
		if (code != RT_LATER)
			continue;
		code = rt_lane_turn(c, turn);
		turn = code ? turn : -1;
		code = code > 0 ? code : 0;
	}
	return code;
}

int rt_verdict(Ctx *c)
{
	RtVote *v = &c->vote;
	say(c);
	int code = hear(c);
	if (code)
		return code;
	return v->all.code ? (int)v->all.code : v->all.not_finite ? RT_NUMERIC : 0;
}

int rt_verdict_round(Ctx *c, bool last)
{
	RtVote *v = &c->vote;
	int code = v->sent ? hear(c) : 0;
	if (code || (!last && (v->all.code || v->all.stop)))
		return code;
	v->sent = v->known = false;
	say(c);
	if (c->nrank == 1)
		v->all.stop = c->comm && rt_stop_asked(c);
	else if (last)
		return hear(c);
	else
		v->all = (RtVerdict){ 0 };
	return 0;
}

int rt_verdict_bad(Ctx *c, int code)
{
	RtVote *v = &c->vote;
	v->code = (uint32_t)code > v->code ? (uint32_t)code : v->code;
	return c->nrank == 1 ? code : 0;
}
