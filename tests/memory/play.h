/* Plays the actions of a role over a map of its memory, in which every unit of 16 bytes knows the value that was last
 * written there: reads check that all units of an operand still hold it.  This looks neither at lives nor at the
 * planner's own notion of them.
 *
 * The list is run twice, as two steps, and of each step what runs in every micro-batch twice.  In a first run every
 * rule is strict; in a repeated one a value whose memory another one takes (@into) is what that has left there. */
#ifndef SBPCC_PLAY_H
#define SBPCC_PLAY_H

#include "compiler.h"

#include <stdlib.h>

enum { UNIT = 16 };

typedef struct Memory { const Slot **unit[2]; int64_t n[2]; } Memory;

static inline int64_t units(int64_t bytes)
{
	return (bytes + UNIT - 1) / UNIT;
}

/* The value whose bytes a slot shows. */
static inline const Slot *shown(const Slot *s)
{
	while (s->view)
		s = s->view;
	return s;
}

static inline int put(Memory *m, const Slot *s)
{
	if (s->offset < 0 || s->offset % UNIT || s->offset / UNIT + units(s->bytes) > m->n[s->window])
		return -1;
	for (int64_t i = 0; i < units(s->bytes); i++)
		m->unit[s->window][s->offset / UNIT + i] = shown(s);
	return 0;
}

static inline const Slot *stranger(const Memory *m, const Slot *s)
{
	for (int64_t i = 0; i < units(s->bytes); i++) {
		const Slot *in = m->unit[s->window][s->offset / UNIT + i];
		if (in != shown(s))
			return in ? in : s;
	}
	return NULL;
}

/* v, or one whose memory it took, is old. */
static inline bool follows(const Value *v, const Value *old)
{
	while (v && v != old)
		v = v->into;
	return v != NULL;
}

/* The slot, if a rank holds it. */
static inline const Slot *held(const Slot *s, int rank)
{
	return s && mesh_index(s->v->place->mesh, rank) >= 0 ? s : NULL;
}

/* One action; again: it ran before. */
static inline int play_action(Memory *m, const Action *a, int rank, bool again, char *why, size_t room)
{
	for (int k = 0; k < a->ntake; k++) {
		const Slot *s = held(a->take[k], rank), *in = s ? stranger(m, s) : NULL;
		/* its own result, made in place since the start */
		bool over = a->kind == ACT_FINISH && in && a->make[k] && in == shown(a->make[k]);
		if (in && !over && !(again && follows(in->v, shown(s)->v)))
			return snprintf(why, room, "action %d reads %s where %s lies", a->id, s->v->name,
				in == s ? "nothing" : in->v->name);
	}
	for (int k = 0; k < a->nmake && a->kind == ACT_FINISH; k++)
		if (held(a->make[k], rank) && stranger(m, a->make[k]))
			return snprintf(why, room, "something is laid over %s before action %d has finished it",
				a->make[k]->v->name, a->id);
	for (int k = 0; k < a->nmake; k++)
		if (held(a->make[k], rank) && put(m, a->make[k]))
			return snprintf(why, room, "action %d makes %s outside", a->id, a->make[k]->v->name);
	return 0;
}

/* 0, or more after saying why. */
static inline int play(const Plan *p, const Role *r, char *why, size_t room)
{
	Memory m = { .n = { units(p->layout.slab), units(p->layout.window) } };
	int bad = 0;
	for (int k = 0; k < 2; k++)
		if (!(m.unit[k] = calloc((size_t)m.n[k] + 1, sizeof *m.unit[k])))
			abort();
	for (int i = 0; i < p->nslot && !bad; i++) {
		const Slot *s = p->slot[i];
		if (s && s->bytes > s->store->bytes)
			bad = snprintf(why, room, "%s is larger than where it lies, %s", s->v->name, s->store->v->name);
		else if (held(s, r->rank[0]) && !s->view && s->v->init && put(&m, s))
			bad = snprintf(why, room, "%s lies outside", s->v->name);
	}
	for (int turn = 0; turn < 2 && !bad; turn++) {          /* the second step finds what the first has left */
		for (int i = 0; i < r->body && !bad; i++)
			bad = play_action(&m, &r->step[i], r->rank[0], turn > 0, why, room);
		for (int time = 0; time < 2; time++)
			for (int i = r->body; i < r->after && !bad; i++)
				bad = play_action(&m, &r->step[i], r->rank[0], turn + time > 0, why, room);
		for (int i = r->after; i < r->nstep && !bad; i++)
			bad = play_action(&m, &r->step[i], r->rank[0], turn > 0, why, room);
	}
	for (int k = 0; k < 2; k++)
		free(m.unit[k]);
	return bad;
}

#endif
