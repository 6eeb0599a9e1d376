/* Copies: how many micro-batches of a value are in memory at the same time.
 *
 * A value that one block of a rank makes and reads needs one.  A value that several blocks touch is in as many copies
 * as there are micro-batches for which some of these blocks have run and others have not, in the order of the rank's
 * tasks, and is live throughout the body.  The ends of queues have one more, so that a transfer overlaps the blocks;
 * they are live always, because a neighbour may be in another step. */
#include "schedule/schedule.h"

#include <limits.h>

const Slot *copies_memory(const Slot *s)
{
	while (s->store != s)
		s = s->store;
	return s;
}

static void touch(Arena *a, Touch *t, int block, bool makes)
{
	t->made = makes && t->made < 0 ? block : t->made;
	if (!t->n || t->block[t->n - 1] != block)
		arena_push(a, t->block, t->n, block);
}

bool copies_touches(const Touch *t, int block)
{
	for (int i = 0; i < t->n; i++)
		if (t->block[i] == block)
			return true;
	return false;
}

bool *copies_runs(const Plan *p, const Role *r, Arena *a)
{
	bool *runs = arena_array(a, bool, p->nblock + 1);
	for (int i = 0; i < r->ntask; i++)
		runs[r->task[i].block] = true;
	return runs;
}

Touch *copies_touched(const Plan *p, const Role *r, Arena *a)
{
	Touch *of = arena_array(a, Touch, p->nslot + 1);
	const bool *runs = r ? copies_runs(p, r, a) : NULL;
	for (int i = 0; i < p->nslot; i++)
		of[i].made = -1;
	for (int i = 0; i < p->role[0].nstep; i++) {
		const Action *x = &p->role[0].step[i];
		if (runs && !runs[x->block])
			continue;
		for (int k = 0; k < x->ntake; k++)
			if (x->take[k])
				touch(a, &of[copies_memory(x->take[k])->v->id], x->block, false);
		for (int k = 0; k < x->nmake; k++)
			if (x->make[k])
				touch(a, &of[copies_memory(x->make[k])->v->id], x->block, true);
	}
	return of;
}

static bool on(const Slot *s, const Role *r)
{
	return mesh_index(s->v->place->mesh, r->rank[0]) >= 0;
}

/* The copies that a value needs on a rank: the span of the micro-batches for which some of the blocks that touch it
 * have run and others have not.  *others: blocks run meanwhile that are not between these in the list.  left: by
 * micro-batch, zero before and after. */
static int in_flight(const Role *r, const Touch *t, int *left, bool *others)
{
	int most = 1, low = 0, high = 0;
	for (int i = 0; i < r->ntask; i++) {
		const Task *x = &r->task[i];
		bool touches = x->micro >= 0 && copies_touches(t, x->block);
		if (touches && !left[x->micro]) {
			left[x->micro] = t->n + 1;
			low = high == low || x->micro < low ? x->micro : low;
			high = x->micro + 1 > high ? x->micro + 1 : high;
		}
		*others |= high > low && (x->block < t->block[0] || x->block > t->block[t->n - 1]);
		most = high - low > most ? high - low : most;
		if (touches && --left[x->micro] == 1)
			left[x->micro] = 0;
		while (low < high && !left[low])
			low++;
		while (high > low && !left[high - 1])
			high--;
	}
	return most;
}

static void need(Slot *s, int copies, SlotLife life)
{
	Slot *at = (Slot *)copies_memory(s);
	at->copies = copies > at->copies ? copies : at->copies;
	at->life = life > at->life ? life : at->life;
}

static bool of_body(const Plan *p, int b)
{
	return b >= 0 && !pipe_once(p->block[b].kind);
}

static void slot_copies(const Plan *p, const Role *r, Slot *s, const Touch *t, int *left)
{
	bool others = false;
	for (int i = 0; i < t->n && t->n > 1; i++)
		if (p->block[t->block[i]].kind == BLOCK_REDUCE) {
			need(s, 1, LIFE_BODY);  /* other stages of the rank run before and behind it */
			return;
		}
	if (t->n < 2 || !of_body(p, t->block[0]))
		return;
	if (!of_body(p, t->block[t->n - 1])) {
		need(s, 1, LIFE_BODY);          /* the last micro-batch leaves it to the update */
		return;
	}
	int n = in_flight(r, t, left, &others);
	need(s, n, n > 1 || others ? LIFE_BODY : LIFE_HERE);
}

/* Whether a role runs two blocks for its micro-batches in the same order. */
static bool same_order(const Role *r, int x, int y)
{
	for (int i = 0, k = 0; i < r->ntask; i++) {
		if (r->task[i].block != x)
			continue;
		while (k < r->ntask && r->task[k].block != y)
			k++;
		if (k == r->ntask || r->task[k++].micro != r->task[i].micro)
			return false;
	}
	return true;
}

/* The values of a queue are given back together.  If they are given back in another order than they arrive (a schedule
 * that goes backwards through its micro-batches), every micro-batch has a copy of its own.  Then no block waits for
 * room in a step, and a rank receives nothing for a step that it has not begun, so they may be given back by the first
 * reader. */
static void queue_copies(Graph *g, const Role *r, Queue *q, int *left)
{
	const Plan *p = g->model->plan;
	int micros = tasks_micros(p), more = micros > 1;
	bool others = false;
	Touch t = { .block = (int[]){ q->to, q->last }, .n = 1 + (q->last != q->to) };
	if (!on(q->make[0], r)) {
		for (int k = 0; k < q->n && on(q->take[0], r); k++)
			need(q->take[k], 1 + more, LIFE_ALWAYS);
		return;
	}
	bool ordered = same_order(r, q->to, q->last);
	int copies = ordered ? in_flight(r, &t, left, &others) + more : micros;
	int apart = tasks_repeat(p) ? orders_apart(p->stages, p->block[q->from].stage, p->block[q->last].stage,
		g->scratch) : 0;
	copies = copies > apart + more ? copies : apart + more;
	q->last = ordered ? q->last : q->to;
	for (int k = 0; k < q->n; k++)
		need(q->make[k], copies, LIFE_ALWAYS);
}

/* Writes copies as @copies, so that a dump contains them; @copies of a dump takes precedence. */
static void note_copies(Graph *g)
{
	const Plan *p = g->model->plan;
	for (int i = 0; i < p->nslot; i++) {
		Slot *s = p->slot[i];
		if (!s || s->store != s)
			continue;
		const Annot *a = annot_find(s->v->annot, "copies");
		if (a) {
			s->copies = (int)a->arg->i;
		} else if (s->copies > 1) {
			Annot *new = arena_new(g->arena, Annot);
			new->name = name_of("copies");
			arena_push(g->arena, new->arg, new->narg, ((Arg){ .kind = ARG_INT, .i = s->copies,
				.f = s->copies }));
			if (annot_check(new, ON_VALUE))
				die("@copies is refused");
			annot_add(&s->v->annot, new);
		}
	}
	for (int i = 0; i < p->nslot; i++)      /* of values that share memory */
		if (p->slot[i])
			p->slot[i]->copies = copies_memory(p->slot[i])->copies;
}

void copies_find(Graph *g)
{
	Plan *p = g->model->plan;
	int *left = arena_array(g->scratch, int, tasks_micros(p) + 1);
	for (int k = 0; k < p->nrole; k++) {
		const Role played = tasks_played(p, &p->role[k], g->scratch), *r = &played;
		const Touch *of = copies_touched(p, r, g->scratch);
		for (int i = 0; i < p->nslot; i++) {
			Slot *s = p->slot[i];
			if (s && s->store == s && !slot_kept(s) && on(s, r))
				slot_copies(p, r, s, &of[i], left);
		}
		for (int i = 0; i < p->nqueue; i++)
			queue_copies(g, r, &p->queue[i], left);
	}
	note_copies(g);
	for (int i = 0; i < p->nqueue; i++) {
		Queue *q = &p->queue[i];
		q->out = q->in = INT_MAX;
		for (int k = 0; k < q->n; k++) {
			q->out = copies_memory(q->take[k])->copies < q->out ? copies_memory(q->take[k])->copies
				: q->out;
			q->in = copies_memory(q->make[k])->copies < q->in ? copies_memory(q->make[k])->copies : q->in;
		}
	}
}
