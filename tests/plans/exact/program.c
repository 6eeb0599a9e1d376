/* Lists of actions on all ranks, as they will run: in memory, by offsets.
 *
 * What a node computes is known (run_physical), so an action is judged by what it reads: every operand must be in
 * memory, whole, on every rank that has a part of it; then its results are put there.  Transfers are really done, from
 * the memory of some ranks to that of others. Between its start and its finish a transfer may happen at any time, so a
 * list is run twice:
 *
 *   early   as soon as all ranks have started it: what is written over its results afterwards is seen
 *   late    when all ranks are at its finish: who wrote over its operands, or read its results before, is seen
 *
 * A result is nonsense from the start on, until it is there.  Memory has a cell for every byte, so values that overlap
 * by a part differ too. */
#include "exact.h"

#include <string.h>

typedef struct Flight { int ends, started, arrived; bool done; const Action *a; } Flight;

typedef struct Program {
	const Plan *p;
	Hold **at;                      /* by value id: what is right */
	Action **list; int *n;          /* by role */
	int nrank, *now;                /* by rank: the next action */
	uint64_t **area[2];             /* by rank: the slab, the window */
	Flight *flight;                 /* by value id of the first result */
	bool **began;                   /* by rank and that id */
	bool *waits;                    /* by rank: at a finish */
	bool late;
	Arena *a;
	Outcome outcome;
} Program;

static void wrong(Program *r, int rank, const Action *a, const char *fmt, const char *name)
{
	if (r->outcome.what == RUN_DIFFERS)
		return;
	r->outcome.what = RUN_DIFFERS;
	r->outcome.why = name_fmt("%s program, rank %d action %d (%s): %s %s", r->late ? "late" : "early", rank, a->id,
		a->n ? a->n->op : a->kind == ACT_LOAD ? "load" : "save", name, fmt);
}

/* ---- memory ---- */

static const Slot *base(const Slot *s)
{
	s = slot_value((Slot *)s);
	while (s->store != s)
		s = s->store;
	return s;
}

static uint64_t *place_of(const Program *r, int rank, const Slot *s)
{
	return r->area[base(s)->window][rank] + base(s)->offset;
}

static int64_t width(const Program *r, const Slot *s)
{
	int64_t most = r->p->forms->most[s->form];
	return most ? s->bytes / most : 1;
}

/* What a rank should hold of a value; NULL: nothing. */
static Exact *right_part(const Program *r, int rank, const Slot *s)
{
	const Hold *h = r->at[s->v->id];
	int place = h ? form_index(&h->form, rank) : -1;
	return place < 0 ? NULL : h->part[place];
}

static void put(Program *r, int rank, const Slot *s, const Exact *x)
{
	uint64_t *to = place_of(r, rank, s);
	int64_t w = width(r, s);
	for (int64_t i = 0; x && i < x->n * w; i++)
		to[i] = x->v[i / w];
}

static bool holds(const Program *r, int rank, const Slot *s, const Exact *x)
{
	const uint64_t *from = place_of(r, rank, s);
	int64_t w = width(r, s);
	for (int64_t i = 0; x && i < x->n * w; i++)
		if (from[i] != x->v[i / w])
			return false;
	return true;
}

static bool meet(const Slot *x, const Slot *y)
{
	x = base(x);
	y = base(y);
	return x->window == y->window && x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static void spoil_results(Program *r, int rank, const Action *a)
{
	for (int i = 0; i < a->nmake; i++) {
		const Exact *x = right_part(r, rank, a->make[i]);
		bool lies = false;
		for (int k = 0; k < a->ntake; k++)
			lies |= meet(a->make[i], a->take[k]);
		uint64_t *to = place_of(r, rank, a->make[i]);
		for (int64_t k = 0; x && !lies && k < x->n * width(r, a->make[i]); k++)
			to[k] = field_hash(to[k], 77);
	}
}

/* ---- actions ---- */

static void check(Program *r, int rank, const Action *a)
{
	for (int k = 0; k < a->ntake; k++)
		if (a->take[k] && !holds(r, rank, a->take[k], right_part(r, rank, a->take[k])))
			wrong(r, rank, a, "is not there when it is read", a->take[k]->v->name);
}

static void compute(Program *r, int rank, const Action *a)
{
	check(r, rank, a);
	for (int k = 0; k < a->nmake; k++)
		if (a->make[k])
			put(r, rank, a->make[k], right_part(r, rank, a->make[k]));
}

/* All values of a bucket, on all ranks: what is in memory is moved, then what was moved is put there. */
static void move(Program *r, Flight *f)
{
	const Action *a = f->a;
	Arena tmp = { 0 };
	Hold **moved = arena_array(&tmp, Hold *, a->nmake + 1);
	for (int i = 0; i < a->nmake; i++) {
		const Hold *from = r->at[a->take[i]->v->id], *to = r->at[a->make[i]->v->id];
		Hold *h = hold_new(&tmp, &from->form, from->part[0]->dtype);
		for (int rank = 0; rank < r->nrank; rank++) {
			Exact *x = right_part(r, rank, a->take[i]);
			if (x && !holds(r, rank, a->take[i], x))
				wrong(r, rank, a, "is not there when it is sent", a->take[i]->v->name);
			for (int64_t k = 0; x && k < x->n; k++)
				h->part[form_index(&from->form, rank)]->v[k] = place_of(r, rank,
					a->take[i])[k * width(r, a->take[i])];
		}
		moved[i] = hold_move(&tmp, h, &to->form, FAULT_NONE);
	}
	for (int i = 0; i < a->nmake; i++)
		for (int rank = 0; rank < r->nrank; rank++) {
			int place = form_index(&moved[i]->form, rank);
			if (place >= 0)
				put(r, rank, a->make[i], moved[i]->part[place]);
		}
	f->done = true;
	arena_free(&tmp);
}

static bool takes_part(const Program *r, int rank, const Action *a)
{
	return right_part(r, rank, a->take[0]) || right_part(r, rank, a->make[0]);
}

static void start(Program *r, int rank, const Action *a, Flight *f)
{
	r->began[rank][a->make[0]->v->id] = true;
	f->a = a;
	f->started++;
	spoil_results(r, rank, a);
	if (!r->late && f->started == f->ends)
		move(r, f);
}

/* Whether a rank is past a finish. */
static bool finish(Program *r, int rank, const Action *a, Flight *f)
{
	if (!r->began[rank][a->make[0]->v->id])
		wrong(r, rank, a, "is finished before it is started", a->make[0]->v->name);
	f->arrived += !r->waits[rank];
	r->waits[rank] = true;
	if (!f->done && f->started == f->ends && f->arrived == f->ends)
		move(r, f);
	r->waits[rank] = !f->done;
	return f->done;
}

/* Whether a rank has done one more action. */
static bool act(Program *r, int rank)
{
	int role = r->p->role_of[rank];
	if (r->now[rank] == r->n[role])
		return false;
	const Action *a = &r->list[role][r->now[rank]];
	bool moves = a->kind == ACT_COLLECTIVE || a->kind == ACT_START || a->kind == ACT_FINISH;
	Flight *f = moves ? &r->flight[a->make[0]->v->id] : NULL;
	bool mine = moves && takes_part(r, rank, a);
	if (!moves)
		compute(r, rank, a);
	if (mine && (a->kind == ACT_START || (a->kind == ACT_COLLECTIVE && !r->waits[rank])))
		start(r, rank, a, f);
	if (mine && a->kind != ACT_START && !finish(r, rank, a, f))
		return false;
	r->now[rank]++;
	return true;
}

/* Those who wait at a finish wait for ranks that are elsewhere: the first that all have started happens now. */
static bool happens(Program *r)
{
	for (int i = 0; i < r->p->nslot; i++) {
		Flight *f = &r->flight[i];
		if (!f->done && f->arrived && f->started == f->ends) {
			move(r, f);
			return true;
		}
	}
	return false;
}

static void play(Program *r)
{
	for (bool any = true; any && r->outcome.what == RUN_SAME;) {
		any = false;
		/* ranks run side by side, so that no rank is ahead of an early start */
		for (int rank = 0; rank < r->nrank && r->outcome.what == RUN_SAME; rank++)
			any |= act(r, rank);
		any = any || happens(r);
	}
	for (int rank = 0; rank < r->nrank && r->outcome.what == RUN_SAME; rank++) {
		const Action *a = &r->list[r->p->role_of[rank]][r->now[rank]];
		if (r->now[rank] < r->n[r->p->role_of[rank]])
			wrong(r, rank, a, "never comes", a->make[0]->v->name);
	}
}

/* What is kept is what was last written there. */
static void check_kept(Program *r)
{
	const Action *list = r->list[0];
	for (int i = 0; i < r->n[0]; i++)
		for (int k = 0; k < list[i].nmake; k++) {
			const Slot *s = list[i].make[k];
			bool last = s && (base(s)->keep == KEEP_PARAM || base(s)->keep == KEEP_STATE);
			for (int j = i + 1; j < r->n[0]; j++)
				for (int m = 0; last && m < list[j].nmake; m++)
					last = !list[j].make[m] || base(list[j].make[m]) != base(s);
			for (int rank = 0; last && rank < r->nrank; rank++)
				if (!holds(r, rank, s, right_part(r, rank, s)))
					wrong(r, rank, &list[i], "is not kept", s->v->name);
		}
}

static void begin(Program *r)
{
	const Plan *p = r->p;
	int64_t slack = 0;
	for (int i = 0; i < p->nslot; i++)
		slack = p->slot[i] && p->slot[i]->bytes > slack ? p->slot[i]->bytes : slack;
	for (int w = 0; w < 2; w++)
		r->area[w] = arena_array(r->a, uint64_t *, r->nrank);
	r->began = arena_array(r->a, bool *, r->nrank);
	for (int rank = 0; rank < r->nrank; rank++) {
		for (int w = 0; w < 2; w++) {
			int64_t bytes = (w ? p->layout.window : p->layout.slab) + slack;
			r->area[w][rank] = arena_array(r->a, uint64_t, bytes + 1);
			memset(r->area[w][rank], 0x5a, (size_t)bytes * sizeof(uint64_t));
		}
		r->began[rank] = arena_array(r->a, bool, p->nslot + 1);
		for (int i = 0; i < p->nslot; i++) {
			const Slot *s = p->slot[i];
			if (s && !s->v->def && !s->view && (s->keep == KEEP_PARAM || s->keep == KEEP_STATE ||
				s->keep == KEEP_CONST))
				put(r, rank, s, right_part(r, rank, s));
		}
	}
	r->now = arena_array(r->a, int, r->nrank);
	r->waits = arena_array(r->a, bool, r->nrank);
	r->flight = arena_array(r->a, Flight, p->nslot + 1);
	for (int rank = 0; rank < r->nrank; rank++)
		for (int i = 0, role = p->role_of[rank]; i < r->n[role]; i++) {
			const Action *a = &r->list[role][i];
			if ((a->kind == ACT_COLLECTIVE || a->kind == ACT_START) && takes_part(r, rank, a))
				r->flight[a->make[0]->v->id].ends++;
		}
}

/* ---- faults ---- */

/* Moves the action at a place to another; what lies between moves up or down. */
static void shift(Action *list, int from, int to)
{
	Action a = list[from];
	if (from < to)
		memmove(list + from, list + from + 1, (size_t)(to - from) * sizeof *list);
	else
		memmove(list + to + 1, list + to, (size_t)(from - to) * sizeof *list);
	list[to] = a;
}

/* The first that computes with a result: transfers wait for each other. */
static int reader(const Action *list, int n, int after, const Action *made)
{
	for (int i = after + 1; i < n; i++)
		for (int k = 0; k < list[i].ntake; k++)
			for (int m = 0; m < made->nmake; m++)
				if (list[i].kind == ACT_COMPUTE && list[i].take[k] &&
					slot_value(list[i].take[k]) == made->make[m] && made->make[m]->bytes)
					return i;
	return n;
}

/* Some rank has numbers of both, and not the same. */
static bool differ(const Program *r, const Slot *x, const Slot *y)
{
	for (int rank = 0; rank < r->nrank; rank++) {
		const Exact *a = right_part(r, rank, x), *b = right_part(r, rank, y);
		if (a && b && a->n && b->n && a->v[0] != b->v[0])
			return true;
	}
	return false;
}

static bool anybody(const Program *r, const Slot *s)
{
	for (int rank = 0; rank < r->nrank; rank++) {
		const Exact *x = right_part(r, rank, s);
		if (x && x->n && x->real)
			return true;
	}
	return false;
}

/* A value that is made while a transfer is on its way, in memory of its own. */
static Slot *made_between(const Program *r, const Action *list, int from, int to, const Slot *x)
{
	for (int i = from + 1; i < to; i++)
		for (int k = 0; k < list[i].nmake; k++) {
			Slot *s = list[i].make[k];
			if (list[i].kind == ACT_COMPUTE && s && s->store == s && s->keep != KEEP_PARAM &&
				s->keep != KEEP_STATE && base(x) != s && differ(r, s, x))
				return s;
		}
	return NULL;
}

/* Whether a start can be spoiled in this way; overlaid: the slot that is to lie on an operand or on a result of it. */
static bool can_spoil(const Program *r, Spoil what, int i, Slot **overlaid)
{
	const Action *list = r->list[0], *a = &list[i];
	*overlaid = NULL;
	if (a->kind != ACT_START || reader(list, r->n[0], a->other, a) == r->n[0] || !anybody(r, a->make[0]))
		return false;
	if (what == SPOIL_OPERAND || what == SPOIL_RESULT)
		*overlaid = made_between(r, list, i, a->other, what == SPOIL_RESULT ? a->make[0] : a->take[0]);
	return *overlaid || (what != SPOIL_OPERAND && what != SPOIL_RESULT);
}

/* One of the transfers, in the lists of all roles, which are alike; false: there is none. */
static bool spoil(Program *r, Spoil what, int turn, Slot **overlaid)
{
	int able = 0, i = 0;
	for (int k = 0; k < r->n[0]; k++)
		able += can_spoil(r, what, k, overlaid);
	if (!able)
		return false;
	for (turn %= able; !can_spoil(r, what, i, overlaid) || turn-- > 0;)
		i++;
	const Action *a = &r->list[0][i];
	const Slot *x = base(what == SPOIL_RESULT ? a->make[0] : a->take[0]);
	int to = a->other, first = reader(r->list[0], r->n[0], to, a);
	for (int k = 0; k < r->p->nrole && !*overlaid; k++)
		shift(r->list[k], to, what == SPOIL_LATE ? first : what == SPOIL_BEFORE ? i : --r->n[k]);
	if (*overlaid) {
		(*overlaid)->offset = x->offset;
		(*overlaid)->window = x->window;
	}
	return true;
}

Outcome run_program(Graph *g, Hold **at, bool late, Spoil what, int turn)
{
	const Plan *p = g->model->plan;
	Arena own = { 0 };
	Program r = { .p = p, .at = at, .nrank = p->world->nrank, .late = late, .a = &own };
	Slot *overlaid = NULL, *before = arena_array(&own, Slot, p->nslot + 1);
	r.list = arena_array(&own, Action *, p->nrole);
	r.n = arena_array(&own, int, p->nrole);
	for (int k = 0; k < p->nrole; k++) {
		r.n[k] = p->role[k].nstep;
		r.list[k] = arena_array(&own, Action, r.n[k] + 1);
		memcpy(r.list[k], p->role[k].step, (size_t)r.n[k] * sizeof(Action));
	}
	for (int i = 0; i < p->nslot && what; i++)
		if (p->slot[i])
			before[i] = *p->slot[i];
	r.outcome.planted = what && spoil(&r, what, turn, &overlaid);
	if (!what || r.outcome.planted) {
		begin(&r);
		play(&r);
		if (r.outcome.what == RUN_SAME)
			check_kept(&r);
	}
	if (overlaid)
		*overlaid = before[overlaid->v->id];
	arena_free(&own);
	return r.outcome;
}
