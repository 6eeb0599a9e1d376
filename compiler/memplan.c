/* Offsets.  A slot lives from the action that makes it to the last that reads it; parameters, state and constants live
 * always.  Slots whose lives meet may not overlap.  The largest are placed first, each at the lowest offset that is free
 * for its whole life.  There are two areas: the private slab, and the window that peers read. */
#include "compiler.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ALIGN = 64 };

static bool always(const Slot *s)
{
	return s->keep == KEEP_PARAM || s->keep == KEEP_STATE || s->keep == KEEP_CONST;
}

/* Lives, over all roles: they have the same list of actions. */
static void lives(const Plan *p)
{
	const Role *r = &p->role[0];
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i]) {
			p->slot[i]->first = always(p->slot[i]) ? -1 : r->nstep;
			p->slot[i]->last = always(p->slot[i]) ? r->nstep : -1;
		}
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		for (int k = 0; k < a->ntake + a->nmake; k++) {
			Slot *s = k < a->ntake ? a->take[k] : a->make[k - a->ntake];
			if (!s)
				continue;
			s->first = i < s->first ? i : s->first;
			s->last = i > s->last ? i : s->last;
		}
	}
	for (int i = 0; i < p->nslot; i++) {    /* a memory lives as long as any value in it */
		Slot *s = p->slot[i];
		if (!s || s->store == s)
			continue;
		s->store->first = s->first < s->store->first ? s->first : s->store->first;
		s->store->last = s->last > s->store->last ? s->last : s->store->last;
	}
}

static int larger(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->id - y->id;
}

static bool meet(const Slot *a, const Slot *b)
{
	return a->window == b->window && a->first <= b->last && b->first <= a->last;
}

/* The lowest free offset among those placed already: try 0 and the end of each that it meets. */
static int64_t fit(Slot **list, int n, const Slot *s)
{
	int64_t at = 0;
	for (bool moved = true; moved;) {
		moved = false;
		for (int i = 0; i < n; i++) {
			const Slot *o = list[i];
			if (meet(s, o) && at < o->offset + o->bytes && o->offset < at + s->bytes) {
				at = (o->offset + o->bytes + ALIGN - 1) / ALIGN * ALIGN;
				moved = true;
			}
		}
	}
	return at;
}

int memplan_run(Graph *g)
{
	Plan *p = g->model->plan;
	Slot **list = arena_array(g->scratch, Slot *, p->nslot + 1);
	int n = 0;
	lives(p);
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i] && p->slot[i]->store == p->slot[i] && p->slot[i]->bytes)
			list[n++] = p->slot[i];
	qsort(list, (size_t)n, sizeof *list, larger);
	p->layout = (Layout){ 0 };
	for (int i = 0; i < n; i++) {
		Slot *s = list[i];
		s->offset = fit(list, i, s);
		int64_t end = (s->offset + s->bytes + ALIGN - 1) / ALIGN * ALIGN, *area = s->window ? &p->layout.window : &p->layout.slab;
		if (end > *area)
			*area = end;
		p->layout.by[s->keep] += s->bytes;
	}
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i])
			p->slot[i]->offset = p->slot[i]->store->offset;
	return 0;
}
