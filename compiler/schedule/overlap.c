/* Overlap: a transfer becomes two actions, its start and its finish, with computation between them.
 *
 *   before   g1  [g1]  g2  [g2]  u1  u2            g: a gradient, u: its update, [g]: its transfer
 *   after    g1  [g1   g2   g1]  [g2  u1  g2]  u2  [g: start, g]: finish
 *
 * The finish moves down, and where that is not enough the start moves up (so weights are gathered ahead of their
 * layer), past actions that do not use the memory of the transfer.  They stop when the computation between them takes
 * twice as long as the transfer plus the expected skew between ranks, so that the faster rank does not wait.  They go
 * no farther, because operand and result occupy memory from start to finish; nor past more bytes of other transfers
 * than FLIGHT, nor past the finish of more than AHEAD transfers whose results are larger than their operands.  A
 * transfer that too little computation could hide stays one action.
 *
 * At run time a rank performs its transfers in the order of their starts (runtime/lane.c).  Decisions depend on slots,
 * not on the shards of a rank, so all roles get the same list; prove.c checks it. */
#include "schedule/schedule.h"

#include <math.h>
#include <string.h>

#define APART 0.02                      /* of a section's seconds: the skew between ranks */
/* seconds of computation: below this, handing a transfer to another thread costs more than it saves */
#define WORTH 1e-4
/* between a start and its finish: bytes of other transfers, and how many whose results are larger than their
 * operands */
enum { FLIGHT = 32 << 20, AHEAD = 2 };

/* Transfers need no computation. */
double overlap_seconds(const Plan *p, const Action *a)
{
	if (a->kind != ACT_COMPUTE)
		return 0;
	return device.start + fmax(schedule_flops(p, a) / device.flops,
		(double)(slot_bytes(a->take, a->ntake) + slot_bytes(a->make, a->nmake)) / device.bytes);
}

double overlap_moving(const Plan *p, const Action *t)
{
	double sum = 0;
	for (int i = 0; i < t->nmake; i++)
		sum += transfer_seconds(slot_form(p, t->take[i]), slot_form(p, t->make[i]),
			dtype_bits(t->take[i]->v->type->elem) / 8);
	return sum;
}

static bool grows(const Action *t)
{
	return slot_bytes(t->make, t->nmake) > slot_bytes(t->take, t->ntake);
}

typedef struct Way { double seconds, want, bytes; int ahead; } Way;

/* Whether a transfer may move past an action; counts it in w. */
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
	w->seconds += overlap_seconds(p, a);
	return true;
}

/* Inserts an action before the one at `at`. */
static void insert(Graph *g, Role *r, int at, Action a)
{
	arena_push(g->arena, r->step, r->nstep, a);
	memmove(r->step + at + 1, r->step + at, (size_t)(r->nstep - 1 - at) * sizeof *r->step);
	r->step[at] = a;
}

/* Divides the transfer at `at`, among lo .. *hi - 1, into start and finish where that pays. */
static void divide(Graph *g, Role *r, int lo, int *hi, int at, double apart)
{
	const Plan *p = g->model->plan;
	Action t = r->step[at];
	Way w = { .want = 2 * overlap_moving(p, &t) + apart };
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
		all += overlap_seconds(g->model->plan, &r->step[i]);
	for (int i = lo; i < hi; i++)
		if (r->step[i].kind == ACT_COLLECTIVE)
			divide(g, r, lo, &hi, i, APART * all);
	return hi;
}

/* Numbers the actions, and gives each start and finish the number of the other. */
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
	for (int from = 0, to; from < r->nstep; from = to) {
		to = schedule_section(r, from);
		to = section(g, r, from, to);
	}
	number(r);
}
