/* Overlap: a transfer becomes two actions, its start and its finish, with computing between them.
 *
 *   before   g1  [g1]  g2  [g2]  u1  u2            g: a gradient, u: its update, [g]: its transfer
 *   after    g1  [g1   g2  [g2   u1?               [g: start, g]: finish
 *            g1  [g1   g2   g1]  [g2  u1  g2]  u2
 *
 * A finish goes down, and where that is not enough the start goes up (so weights are gathered ahead of their layer), past actions that
 * have nothing to do with the memory of the transfer, until the computing between the two takes as long as the transfer, twice, and as
 * ranks may be apart: whoever is ahead must not wait.  No farther, for operand and result need memory from start to finish; nor past
 * more bytes of other transfers than a few buckets hold, nor past the finish of more than two that make more of their value than there was.
 * What computing is too short to hide stays one action.
 *
 * At run time the transfers of a rank are done in the order of their starts (runtime/lane.c).  Decisions are made by slots, not by parts of
 * a rank, so all roles come to the same list; prove.c looks at it. */
#include "schedule/schedule.h"

#include <math.h>
#include <string.h>

#define APART 0.02                      /* of a section's seconds: how far ranks are from each other */
#define WORTH 1e-4                      /* seconds of computing: for less, handing a transfer to another thread takes longer than it saves */
enum { FLIGHT = 32 << 20, AHEAD = 2 };  /* bytes of other transfers, and how many that grow, between a start and its finish */

/* Of a rank; transfers take no time of it. */
static double seconds_of(const Plan *p, const Action *a)
{
	if (a->kind != ACT_COMPUTE)
		return 0;
	return device.start + fmax(schedule_flops(p, a) / device.flops, (double)(slot_bytes(a->take, a->ntake) + slot_bytes(a->make, a->nmake)) / device.bytes);
}

static double moving(const Plan *p, const Action *t)
{
	double sum = 0;
	for (int i = 0; i < t->nmake; i++)
		sum += transfer_seconds(slot_form(p, t->take[i]), slot_form(p, t->make[i]), dtype_bits(t->take[i]->v->type->elem) / 8);
	return sum;
}

static bool grows(const Action *t)
{
	return slot_bytes(t->make, t->nmake) > slot_bytes(t->take, t->ntake);
}

typedef struct Way { double seconds, want, bytes; int ahead; } Way;

/* Whether a transfer still goes past an action, which it has nothing to do with. */
static bool passes(const Plan *p, const Action *t, const Action *a, Way *w)
{
	if (w->seconds >= w->want || a->kind == ACT_LOAD || bucket_tied(t, a))
		return false;
	double more = a->kind == ACT_START || a->kind == ACT_COLLECTIVE ? (double)slot_bytes(a->make, a->nmake) : 0;
	bool other = a->kind == ACT_FINISH && grows(a) && grows(t);
	if (w->bytes + more > FLIGHT || w->ahead + other > AHEAD)
		return false;
	w->bytes += more;
	w->ahead += other;
	w->seconds += seconds_of(p, a);
	return true;
}

/* Puts an action before the one at a place. */
static void insert(Graph *g, Role *r, int at, Action a)
{
	arena_push(g->arena, r->step, r->nstep, a);
	memmove(r->step + at + 1, r->step + at, (size_t)(r->nstep - 1 - at) * sizeof *r->step);
	r->step[at] = a;
}

/* The transfer at a place of lo .. *hi - 1. */
static void divide(Graph *g, Role *r, int lo, int *hi, int at, double apart)
{
	const Plan *p = g->model->plan;
	Action t = r->step[at];
	Way w = { .want = 2 * moving(p, &t) + apart };
	int from = at, to = at + 1;
	while (to < *hi && passes(p, &t, &r->step[to], &w))
		to++;
	while (from > lo && passes(p, &t, &r->step[from - 1], &w))
		from--;
	if (w.seconds < WORTH)
		return;
	memmove(r->step + from + 1, r->step + from, (size_t)(at - from) * sizeof *r->step);
	t.kind = ACT_START;
	r->step[from] = t;
	t.kind = ACT_FINISH;
	insert(g, r, to, t);
	++*hi;
}

static int section(Graph *g, Role *r, int lo, int hi)
{
	double all = 0;
	for (int i = lo; i < hi; i++)
		all += seconds_of(g->model->plan, &r->step[i]);
	for (int i = lo; i < hi; i++)
		if (r->step[i].kind == ACT_COLLECTIVE)
			divide(g, r, lo, &hi, i, APART * all);
	return hi;
}

/* Each half is told where the other is. */
static void number(Role *r)
{
	for (int i = 0; i < r->nstep; i++)
		r->step[i].id = i;
	for (int i = 0; i < r->nstep; i++)
		for (int k = i + 1; r->step[i].kind == ACT_START && k < r->nstep; k++)
			if (r->step[k].kind == ACT_FINISH && r->step[k].make[0] == r->step[i].make[0]) {
				r->step[i].other = k;
				r->step[k].other = i;
				break;
			}
}

void overlap_role(Graph *g, Role *r)
{
	int after = r->after, end = r->nstep;
	int body = section(g, r, 0, r->body);
	after = section(g, r, body, after + r->nstep - end);
	section(g, r, after, r->nstep);
	r->body = body;
	r->after = after;
	number(r);
}
