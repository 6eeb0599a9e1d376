/* The memory plan: an offset for every slot.
 *
 * Values that are kept from step to step (parameters, optimizer state, constants) lie at the bottom of the slab, in the
 * order of their ids; memory above them is reused within a step.  There are two areas: the private slab, and the window
 * that peers read.
 *
 * 1. Lifetimes.  Memory is live from the action that first makes a value in it to the last action that reads one.
 * 2. In place.  A result of an elementwise action, or of an all-reduce, takes the memory of an operand of equal shape
 * whose lifetime ends there; so does the result of a pair whose kernel has finished reading a row when it writes it.
 * 3. Offsets.  Slots whose lifetimes intersect on some rank may not overlap.  Several orders are tried (by size, by
 * size times lifetime, by lifetime, by start); each slot goes to the tightest gap that is free for its whole lifetime,
 * and the smallest area wins.  The bytes that are live at the busiest action are a lower bound, which shows how far the
 * plan can be from the best. */
#include "schedule/schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

int64_t memplan_aligned(int64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- lives ---- */

static Slot *root(Slot *s)
{
	while (s->store != s)
		s = s->store;
	return s;
}

static void touch(Slot *s, int made, int read)
{
	s->made = made < s->made ? made : s->made;
	s->read = read > s->read ? read : s->read;
}

static void widen(Slot *s, int first, int last)
{
	s->first = first < s->first ? first : s->first;
	s->last = last > s->last ? last : s->last;
}

/* Lifetimes.  All roles have the same list of actions. */
static void lives(const Plan *p)
{
	const Role *r = &p->role[0];
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i]) {
			p->slot[i]->first = slot_kept(p->slot[i]) ? -1 : r->nstep;
			p->slot[i]->last = slot_kept(p->slot[i]) ? r->nstep : -1;
			p->slot[i]->made = p->slot[i]->first;
			p->slot[i]->read = p->slot[i]->last;
		}
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		for (int k = 0; k < a->ntake + a->nmake; k++) {
			Slot *s = k < a->ntake ? a->take[k] : a->make[k - a->ntake];
			if (s) {
				widen(s, i, i);
				touch(s, i, i);
			}
		}
	}
	for (int i = 0; i < p->nslot; i++)      /* memory is live as long as any value in it */
		if (p->slot[i] && p->slot[i]->store != p->slot[i]) {
			widen(root(p->slot[i]), p->slot[i]->first, p->slot[i]->last);
			touch(root(p->slot[i]), p->slot[i]->made, p->slot[i]->read);
		}
	for (int i = 0; i < p->nslot; i++) {    /* a value made before the micro-batches is read by each */
		Slot *s = p->slot[i];
		if (s && s->first < r->body && s->last >= r->body && s->last < r->after)
			s->last = r->after;     /* so that no result of their last action takes its memory */
		if (s && s->life == LIFE_BODY)
			widen(s, r->body, r->after - 1);
		if (s && s->life == LIFE_ALWAYS)
			widen(s, -1, r->nstep);
	}
}

/* ---- in place ---- */

static bool same_shape(const Plan *p, const Slot *a, const Slot *b)
{
	return a->bytes == b->bytes && a->v->type->elem == b->v->type->elem && slot_alike(p, a, b);
}

/* Whether an action between the start and the finish of a transfer reads this memory. */
static bool read_between(const Role *r, const Action *start, const Slot *memory)
{
	for (int i = start->id + 1; i < start->other; i++)
		for (int k = 0; k < r->step[i].ntake; k++)
			if (r->step[i].take[k] && root(r->step[i].take[k]) == memory)
				return true;
	return false;
}

/* Whether the memory `from` is free behind action `end`, for result y of action a.  A block that runs once per step
 * ends the use of what it is the last to read, though its lifetime is the body for the sake of other values. */
static bool ends_at(const Plan *p, const Action *a, int end, const Slot *from, const Slot *y)
{
	if (from->read != end)
		return false;
	if (pipe_once(p->block[a->block].kind))
		return from->life < LIFE_ALWAYS && y->life < LIFE_ALWAYS && from->copies < 2 && y->copies < 2;
	return from->last == end && !from->life && !y->life;
}

/* Whether result y of action i may take the memory of its operand x. */
static bool takes_over(const Plan *p, const Action *a, int i, const Slot *y, const Slot *x)
{
	const Slot *from = root((Slot *)x);
	bool starts = a->kind == ACT_START;
	if (!same_shape(p, x, y) || slot_kept(from) || from->window != y->window || from->made == i ||
		!ends_at(p, a, starts ? a->other : i, from, y))
		return false;
	if (starts && read_between(&p->role[0], a, from))
		return false;
	for (int k = 0; k < a->nmake; k++)      /* another result, which nothing reads later, lies there */
		if (a->make[k] && a->make[k] != y && root(a->make[k]) == from)
			return false;
	for (int k = 0; k < a->ntake; k++)      /* also read in another way: broadcast, or as another shape */
		if (a->take[k] && root(a->take[k]) == from && !same_shape(p, a->take[k], y))
			return false;
	return true;
}

static void in_place(const Plan *p)
{
	const Role *r = &p->role[0];
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		for (int m = 0; (a->elementwise || schedule_all_reduce(a) || a->under) && m < a->nmake; m++) {
			Slot *y = a->make[m];
			if (!y || y->store != y || slot_kept(y) || y->made != i)
				continue;
			for (int k = 0; k < a->ntake; k++) {
				Slot *x = a->take[k];
				/* each of several transfers in its own operand */
				if (!x || (a->under && x != a->under) || (a->how && k != m) ||
					!takes_over(p, a, i, y, x))
					continue;
				y->store = root(x);
				widen(y->store, y->first, y->last);
				touch(y->store, y->made, y->read);
				break;
			}
		}
	}
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i]) {
			p->slot[i]->store = root(p->slot[i]);
			p->slot[i]->copies = p->slot[i]->store->copies;
		}
}

/* ---- offsets ---- */

static int by_id(const void *a, const void *b)
{
	return (*(Slot *const *)a)->id - (*(Slot *const *)b)->id;
}

static int compare(int64_t x, int64_t y, const void *a, const void *b)
{
	return x != y ? (x < y ? 1 : -1) : by_id(a, b);
}

static int by_size(const void *a, const void *b)
{
	return compare((*(Slot *const *)a)->bytes, (*(Slot *const *)b)->bytes, a, b);
}

static int by_extent(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	double ex = (double)x->bytes * (x->last - x->first + 1), ey = (double)y->bytes * (y->last - y->first + 1);
	return ex != ey ? (ex < ey ? 1 : -1) : by_id(a, b);
}

static int by_start(const void *a, const void *b)
{
	return compare((*(Slot *const *)b)->first, (*(Slot *const *)a)->first, a, b);
}

static int by_length(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	return x->last - x->first != y->last - y->first ? compare(x->last - x->first, y->last - y->first, a,
		b) : by_size(a, b);
}

static bool meet(const Slot *a, const Slot *b)
{
	return a->window == b->window && a->first <= b->last && b->first <= a->last &&
		!placement_apart(a->v->place, b->v->place);
}

/* The offset of the tightest gap between the slots that have an offset already; these are sorted by offset. */
static int64_t fit(Slot **placed, int n, const Slot *s, int64_t base)
{
	int64_t at = base, best = -1, slack = INT64_MAX, need = memplan_aligned(slot_room(s));
	for (int i = 0; i < n; i++) {
		const Slot *o = placed[i];
		if (!meet(s, o))
			continue;
		if (o->offset - at >= need && o->offset - at < slack) {
			best = at;
			slack = o->offset - at;
		}
		int64_t end = o->offset + memplan_aligned(slot_room(o));
		at = end > at ? end : at;
	}
	return best >= 0 ? best : at;
}

typedef struct Base { int64_t area[2]; } Base;  /* slab, window */

/* Gives the slots of a list their offsets, in this order; returns where each area ends. */
static Base place(Slot **list, int n, Slot **placed, Base base)
{
	Base end = base;
	for (int i = 0; i < n; i++) {
		Slot *s = list[i];
		s->offset = fit(placed, i, s, base.area[s->window]);
		if (s->offset + memplan_aligned(slot_room(s)) > end.area[s->window])
			end.area[s->window] = s->offset + memplan_aligned(slot_room(s));
		int k = i;
		for (; k > 0 && placed[k - 1]->offset > s->offset; k--)
			placed[k] = placed[k - 1];
		placed[k] = s;
	}
	return end;
}

/* Tries all orders and keeps the best. */
static Base place_best(Graph *g, Slot **list, int n, Base base)
{
	static int (*const orders[])(const void *, const void *) = { by_size, by_extent, by_length, by_start };
	enum { NORDER = sizeof orders / sizeof orders[0] };
	Slot **placed = arena_array(g->scratch, Slot *, n + 1);
	Base end[NORDER];
	int best = 0;
	for (int k = 0; k < NORDER; k++) {
		qsort(list, (size_t)n, sizeof *list, orders[k]);
		end[k] = place(list, n, placed, base);
		if (end[k].area[0] + end[k].area[1] < end[best].area[0] + end[best].area[1])
			best = k;
	}
	qsort(list, (size_t)n, sizeof *list, orders[best]);
	return place(list, n, placed, base);
}

/* ---- the busiest action ---- */

/* Bytes by class at the busiest action of a rank. */
static void busiest_on(Graph *g, const Plan *p, Slot **list, int n, int rank, Layout *l)
{
	int steps = p->role[0].nstep + 2;
	int64_t *change = arena_array(g->scratch, int64_t, steps + 1), now = 0;
	l->bound = -1;
	for (int i = 0; i < n; i++) {           /* action -1 is entry 0 */
		if (mesh_index(list[i]->v->place->mesh, rank) < 0)
			continue;
		change[list[i]->first + 1] += memplan_aligned(slot_room(list[i]));
		change[list[i]->last + 2] -= memplan_aligned(slot_room(list[i]));
	}
	for (int i = 0; i < steps; i++) {
		now += change[i];
		if (now > l->bound) {
			l->bound = now;
			l->peak = i - 1;
		}
	}
	for (int i = 0; i < n; i++)
		if (list[i]->first <= l->peak && l->peak <= list[i]->last &&
			mesh_index(list[i]->v->place->mesh, rank) >= 0)
			l->by[list[i]->keep] += memplan_aligned(slot_room(list[i]));
}

/* The same for the role that needs most, by which the plan is judged. */
static void busiest(Graph *g, const Plan *p, Slot **list, int n, Layout *l)
{
	Layout most = *l;
	busiest_on(g, p, list, n, p->role[0].rank[0], &most);
	for (int i = 1; i < p->nrole && p->nplace > 1; i++) {
		Layout other = *l;
		busiest_on(g, p, list, n, p->role[i].rank[0], &other);
		most = other.bound > most.bound ? other : most;
	}
	*l = most;
}

/* The slots of a program with memory of their own; kept ones come first, by id. */
static int gather(Graph *g, const Plan *p, Slot ***to, int *kept)
{
	Slot **list = arena_array(g->scratch, Slot *, p->nslot + 1);
	int n = 0;
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i] && p->slot[i]->store == p->slot[i] && p->slot[i]->bytes)
			list[n++] = p->slot[i];
	qsort(list, (size_t)n, sizeof *list, by_id);
	*kept = 0;
	for (int i = 0; i < n; i++)
		if (slot_kept(list[i])) {
			Slot *s = list[i];
			memmove(list + *kept + 1, list + *kept, (size_t)(i - *kept) * sizeof *list);
			list[(*kept)++] = s;
		}
	*to = list;
	return n;
}

/* A kept value lies in the window if peers read it in any program. */
static void share_windows(const Model *m)
{
	for (int i = 0; i < m->nothers; i++)
		for (int k = 0; k < m->others[i]->plan->nslot; k++) {
			Slot *s = m->others[i]->plan->slot[k];
			const Value *same = s ? programs_same(m->others[i], s->v) : NULL;
			Slot *first = same ? slot_of(m->plan, same) : NULL;
			if (first)
				first->window = first->store->window |= s->window;
		}
	for (int i = 0; i < m->nothers; i++)
		for (int k = 0; k < m->others[i]->plan->nslot; k++) {
			Slot *s = m->others[i]->plan->slot[k];
			const Value *same = s ? programs_same(m->others[i], s->v) : NULL;
			if (same && slot_of(m->plan, same))
				s->window = s->store->window = slot_of(m->plan, same)->window;
		}
	for (int i = -1; i < m->nothers; i++) {         /* updates and views lie in the same area as their memory */
		const Plan *p = i < 0 ? m->plan : m->others[i]->plan;
		for (int k = 0; k < p->nslot; k++)
			if (p->slot[k])
				p->slot[k]->window = p->slot[k]->store->window;
	}
}

/* The first offset after all values that are kept on the same ranks. */
static int64_t above(const Plan *first, const Slot *s)
{
	int64_t at = 0;
	for (int i = 0; i < first->nkept; i++) {
		const Slot *o = first->kept[i];
		if (o->window == s->window && !placement_apart(o->v->place, s->v->place) &&
			o->offset + memplan_aligned(slot_room(o)) > at)
			at = o->offset + memplan_aligned(slot_room(o));
	}
	return at;
}

/* Gives offsets to the values that a program keeps from step to step, below everything else; values of the main
 * program keep theirs. */
static Base place_kept(Graph *g, Slot **list, int n, Base base)
{
	Plan *first = g->model->main ? g->model->main->plan : g->model->plan;
	for (int i = 0; i < n; i++) {
		Slot *s = list[i];
		const Value *same = programs_same(g->model, s->v);
		const Slot *there = same ? slot_of(first, same) : NULL;
		if (there) {
			s->offset = there->store->offset;
			continue;
		}
		s->offset = first->nplace > 1 ? above(first, s) : base.area[s->window];
		if (s->offset + memplan_aligned(slot_room(s)) > base.area[s->window])
			base.area[s->window] = s->offset + memplan_aligned(slot_room(s));
		arena_push((g->model->main ? g->model->main : g->model)->graph->arena, first->kept, first->nkept, s);
	}
	return base;
}

enum { PROGRAMS = 3 };
typedef struct Program { Graph *g; Plan *p; Slot **list; int n, kept; } Program;

int memplan_run(Graph *g)
{
	Model *m = g->model;
	Program prog[PROGRAMS] = { { .g = g, .p = m->plan } };
	int nprog = 1;
	Base base = { { 0 } };
	if (m->main)
		return 0;               /* together with the main program */
	for (int i = 0; i < m->nothers && nprog < PROGRAMS; i++)
		prog[nprog++] = (Program){ .g = m->others[i]->graph, .p = m->others[i]->plan };
	share_windows(m);
	m->plan->nkept = 0;
	for (int i = 0; i < nprog; i++) {
		lives(prog[i].p);
		in_place(prog[i].p);
		prog[i].n = gather(g, prog[i].p, &prog[i].list, &prog[i].kept);
		base = place_kept(prog[i].g, prog[i].list, prog[i].kept, base);
	}
	for (int i = 0; i < nprog; i++) {
		Plan *p = prog[i].p;
		Base end = place_best(g, prog[i].list + prog[i].kept, prog[i].n - prog[i].kept, base);
		p->layout = (Layout){ .slab = end.area[0], .window = end.area[1], .kept = base.area[0] };
		busiest(g, p, prog[i].list, prog[i].n, &p->layout);
		for (int k = 0; k < p->nslot; k++)
			if (p->slot[k])
				p->slot[k]->offset = p->slot[k]->store->offset;
	}
	return 0;
}

Layout memplan_of_role(const Plan *p, const Role *r)
{
	Layout l = { 0 };
	for (int i = 0; i < p->nslot; i++) {
		const Slot *s = p->slot[i];
		if (!s || s->store != s || mesh_index(s->v->place->mesh, r->rank[0]) < 0)
			continue;
		int64_t *area = s->window ? &l.window : &l.slab, end = s->offset + memplan_aligned(slot_room(s));
		*area = end > *area ? end : *area;
	}
	return l;
}
