/* Buckets: transfers of one kind that are ready at about the same time become one action, so that ranks synchronise
 * once for all of them.
 *
 *   before   g1  g2  g3  [g1] u1  [g2] u2  [g3] u3       g: a gradient, u: its update, [g]: its transfer
 *   hoisted  g1  [g1]  g2  [g2]  g3  [g3]  u1  u2  u3
 *   joined   g1  g2  [g1 g2]  g3  [g3]  u1  u2  u3       the bucket is full after two
 *
 * A transfer whose result is not larger than its operand runs as early as possible, while the backward pass still runs:
 * the memory of whole gradients is freed early (ZeRO-2), and a transport that works in the background has time.  Then
 * it waits for others of its kind until its bucket is full or an action reads its result.  A transfer moves only past
 * actions that do not use its memory. Decisions depend on slots, not on the shards of a rank, so all roles get the same
 * list. */
#include "schedule/schedule.h"

#include <string.h>

enum { BUCKET = 8 << 20 };              /* bytes */

static const Slot *memory(const Slot *s)
{
	s = slot_value((Slot *)s);
	return s->store;
}

static bool among(Slot *const *list, int n, const Slot *s)
{
	for (int i = 0; i < n; i++)
		if (list[i] && memory(list[i]) == memory(s))
			return true;
	return false;
}

/* Whether a transfer and another action must stay in their order. */
bool bucket_tied(const Action *t, const Action *a)
{
	for (int i = 0; i < t->ntake; i++)
		if (among(a->make, a->nmake, t->take[i]))
			return true;
	for (int i = 0; i < t->nmake; i++)
		if (among(a->make, a->nmake, t->make[i]) || among(a->take, a->ntake, t->make[i]))
			return true;
	return false;
}

/* A single transfer, which may be joined with others. */
static bool joins(const Action *a)
{
	return a->kind == ACT_COLLECTIVE && a->nnode == 1 && a->ntake == 1 && a->nmake == 1;
}

/* Moves the transfer at `at` up, within lo .. at - 1, past all actions that it is not tied to. */
static void hoist(Action *list, int lo, int at)
{
	Action t = list[at];
	int to = at;
	while (to > lo && !bucket_tied(&t, &list[to - 1]))
		to--;
	memmove(list + to + 1, list + to, (size_t)(at - to) * sizeof *list);
	list[to] = t;
}

/* Both transfers are on one channel and of the same kind. */
static bool one_kind(const Plan *p, const Action *a, const Action *b)
{
	const Form *af = slot_form(p, a->take[0]), *bf = slot_form(p, b->take[0]), *at = slot_form(p, a->make[0]),
		*bt = slot_form(p, b->make[0]);
	const Transfer *x = transfer_of(af, at), *y = transfer_of(bf, bt);
	return a->how == b->how && a->channel == b->channel && x->one_mesh == y->one_mesh && x->axes == y->axes;
}

static void join(Graph *g, Action *a, const Action *b)
{
	Node **list = NULL;
	int n = 0;
	for (int i = 0; i < a->nnode; i++)
		arena_push(g->arena, list, n, a->node[i]);
	for (int i = 0; i < b->nnode; i++)
		arena_push(g->arena, list, n, b->node[i]);
	a->node = list;
	a->nnode = n;
	a->n = b->n;
	arena_push(g->arena, a->take, a->ntake, b->take[0]);
	arena_push(g->arena, a->make, a->nmake, b->make[0]);
}

typedef struct Joined { Action *list; int n; Action *open; int nopen; } Joined;

static void close_at(Graph *g, Joined *j, int i)
{
	arena_push(g->arena, j->list, j->n, j->open[i]);
	memmove(j->open + i, j->open + i + 1, (size_t)(j->nopen - i - 1) * sizeof *j->open);
	j->nopen--;
}

/* Closes the open buckets that are tied to an action, so that they come before it. */
static void pass(Graph *g, Joined *j, const Action *a)
{
	for (int i = 0; i < j->nopen;)
		if (bucket_tied(&j->open[i], a) || (a->kind == ACT_COLLECTIVE && bucket_tied(a, &j->open[i])))
			close_at(g, j, i);
		else
			i++;
}

static void wait_for_others(Graph *g, const Plan *p, Joined *j, const Action *a)
{
	for (int i = 0; i < j->nopen; i++)
		if (one_kind(p, &j->open[i], a)) {
			join(g, &j->open[i], a);
			if (slot_bytes(j->open[i].take, j->open[i].ntake) >= BUCKET)
				close_at(g, j, i);
			return;
		}
	arena_push(g->arena, j->open, j->nopen, *a);
	if (slot_bytes(a->take, 1) >= BUCKET)
		close_at(g, j, j->nopen - 1);
}

/* Actions lo .. hi - 1, which are one block. */
static void section(Graph *g, const Plan *p, Action *list, int lo, int hi, Joined *j)
{
	int first = lo + (lo < hi && list[lo].kind == ACT_LOAD);        /* which stays where it is */
	for (int i = first; i < hi; i++)
		if (joins(&list[i]) && list[i].make[0]->bytes <= list[i].take[0]->bytes)
			hoist(list, first, i);
	for (int i = lo; i < hi; i++) {
		pass(g, j, &list[i]);
		if (joins(&list[i]))
			wait_for_others(g, p, j, &list[i]);
		else
			arena_push(g->arena, j->list, j->n, list[i]);
	}
	while (j->nopen)
		close_at(g, j, 0);
}

void bucket_role(Graph *g, Role *r)
{
	const Plan *p = g->model->plan;
	Joined j = { 0 };
	for (int from = 0, to; from < r->nstep; from = to) {
		to = schedule_section(r, from);
		section(g, p, r->step, from, to, &j);
	}
	r->step = j.list;
	r->nstep = j.n;
	for (int i = 0; i < r->nstep; i++)
		r->step[i].id = i;
}
