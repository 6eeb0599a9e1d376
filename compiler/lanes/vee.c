/* Schedules of a V: rank r has stage r and, on the way back, stage 2p - 1 - r (Qi, Wan, Amar, Lin, "Pipeline
 * Parallelism with Controllable Memory", arXiv 2405.15362, sections 3 and 4; zero bubble: arXiv 2401.10241, section
 * 6).
 *
 * A building block is the way of one micro-batch, in units of one F, B or W.  It goes up the ranks in `up` units
 * each, back down in `down` units each, and the same way for its gradients; at the turns it waits one unit or more.
 *
 *     rank 0   F             F B             B        up = 1, down = 1: V-Min, p = 4
 *     rank 1     F         F     B         B
 *     rank 2       F     F         B     B
 *     rank 3         F F             B B
 *
 * Blocks of successive micro-batches follow each 6 units: each rank has 2 F, 2 B and 2 W of each.  The turns are the
 * shortest with which no two of the same rank fall on one unit.  A micro-batch lives for about 2 p (up + down) units
 * on every rank, so the memory of a rank is p (up + down) / 6 of those of 1F1B:
 *
 *   schedule   up + down   most activations, in those of a rank
 *   v-min      2           (p + 4) / 3, rounded down
 *   v-half     3           (p + 2) / 2, rounded down
 *   zb-v       6           p
 *
 * That orders F and B.  They start as early as they can, and W fills the time in which a rank waits, or comes when
 * memory would exceed the limit: the order is found by playing it with the seconds of the pipeline.  zb-v also fills
 * the time before the first B with F, as memory allows; then no rank ever waits if F, B and W take the same time. */
#include "lanes/vee.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 6 /* of a micro-batch on a rank */ };

typedef struct Turns { int top, end, back; } Turns;

/* Units at which a micro-batch is on rank d: F, F on the way back, B, B. */
static void units_of(int p, int d, int up, int down, Turns t, int at[4])
{
	int far = p - 1 - d;
	at[0] = up * d;
	at[1] = up * (p - 1) + t.top + down * far;
	at[2] = up * (p - 1) + t.top + down * (p - 1) + t.end + up * d;
	at[3] = at[2] + up * far + t.back + down * far;
}

static bool apart(int p, int up, int down, Turns t)
{
	for (int d = 0; d < p; d++) {
		int at[4];
		units_of(p, d, up, down, t, at);
		for (int i = 0; i < 4; i++)
			for (int k = 0; k < i; k++)
				if (at[i] % UNITS == at[k] % UNITS)
					return false;
	}
	return true;
}

static Turns shortest_turns(int p, int up, int down)
{
	for (int sum = 3; sum <= 3 * UNITS; sum++)
		for (int top = 1; top <= UNITS; top++)
			for (int end = 1; end <= UNITS; end++) {
				Turns t = { top, end, sum - top - end };
				if (t.back >= 1 && t.back <= UNITS && apart(p, up, down, t))
					return t;
			}
	die("no turns of a V of %d ranks, up %d, down %d", p, up, down);
}

/* ---- the order of F and B ---- */

typedef struct Timed { PipeTask task; int at; } Timed;

static int by_time(const void *x, const void *y)
{
	const Timed *a = x, *b = y;
	return a->at != b->at ? (a->at < b->at ? -1 : 1) : a->task.micro - b->task.micro;
}

static Timed *sorted(const Pipeline *p, int d, int up, int down, Turns t, Arena *a)
{
	int at[4], n = 0, last = 2 * p->nrank - 1 - d;
	const PipeTask one[4] = { { BLOCK_F, d, 0 }, { BLOCK_F, last, 0 }, { BLOCK_B, last, 0 }, { BLOCK_B, d, 0 } };
	units_of(p->nrank, d, up, down, t, at);
	Timed *list = arena_array(a, Timed, 4 * p->micros);
	for (int m = 0; m < p->micros; m++)
		for (int i = 0; i < 4; i++) {
			list[n] = (Timed){ one[i], at[i] + UNITS * m };
			list[n++].task.micro = m;
		}
	qsort(list, (size_t)n, sizeof *list, by_time);
	return list;
}

/* ---- W in the gaps ---- */

typedef struct Rank {
	Timed *list; int n, pos;        /* F and B */
	PipeTask *out, *wait;           /* the order; B whose W is to come */
	int nout, nwait, first;
	double clock;                   /* INFINITY: it waits for a message */
	int held;                       /* halves of activations */
} Rank;
typedef struct Filler {
	const Pipeline *p;
	Rank *rank;
	double *there;                  /* [F or B][stage][micro-batch]: arrived at; negative: not yet */
	int limit;                      /* of held */
	bool ahead;                     /* F may fill the time before the first B */
} Filler;

static double *arrival(const Filler *f, const PipeTask *t)
{
	return &f->there[((t->kind == BLOCK_B) * f->p->nstage + t->stage) * f->p->micros + t->micro];
}

static double hop_seconds(const Pipeline *p, int a, int b)
{
	if (p->stage[a].rank == p->stage[b].rank)
		return 0;
	for (int h = 0; h < p->nhop; h++)
		if ((p->hop[h].from == a && p->hop[h].to == b) || (p->hop[h].from == b && p->hop[h].to == a))
			return p->hop[h].latency + p->hop[h].busy;
	return 0;
}

/* A task ends: its successor may run, and a rank that waits for it goes on. */
static void arrive(Filler *f, const PipeTask *t, double now)
{
	int last = f->p->nstage - 1, next = t->kind == BLOCK_F ? t->stage + 1 : t->stage - 1;
	PipeTask to = { t->kind, next, t->micro };
	if (t->kind == BLOCK_F && t->stage == last)
		to = (PipeTask){ BLOCK_B, last, t->micro };
	if (to.stage < 0)
		return;
	double at = now + hop_seconds(f->p, t->stage, to.stage);
	*arrival(f, &to) = at;
	Rank *r = &f->rank[f->p->stage[to.stage].rank];
	const PipeTask *head = r->pos < r->n ? &r->list[r->pos].task : NULL;
	if (r->clock == INFINITY && head && head->kind == to.kind && head->stage == to.stage &&
		head->micro == to.micro)
		r->clock = at;
}

static void run(Filler *f, Rank *r, PipeTask t)
{
	static const int halves[] = { [BLOCK_F] = 2, [BLOCK_B] = -1, [BLOCK_W] = -1 };
	r->out[r->nout++] = t;
	r->clock += pipe_seconds(f->p, &t);
	r->held += halves[t.kind];
	if (t.kind == BLOCK_B)
		r->wait[r->nwait++] = (PipeTask){ BLOCK_W, t.stage, t.micro };
	if (t.kind != BLOCK_W)
		arrive(f, &t, r->clock);
}

/* A rank that waits for its first B runs F of its first stage ahead, as long as one more F fits behind it. */
static bool run_ahead(Filler *f, Rank *r)
{
	if (!f->ahead || r->nwait || r->held + 4 > f->limit)
		return false;
	for (int i = r->pos; i < r->n; i++) {
		Timed t = r->list[i];
		double at = *arrival(f, &t.task);
		if (t.task.kind != BLOCK_F || t.task.stage != r->list[0].task.stage)
			continue;
		if (at < 0 || at > r->clock)
			return false;
		memmove(r->list + r->pos + 1, r->list + r->pos, sizeof t * (size_t)(i - r->pos));
		r->list[r->pos++] = t;
		run(f, r, t.task);
		return true;
	}
	return false;
}

/* One decision of a rank at its clock. */
static void decide(Filler *f, Rank *r)
{
	bool weights = r->first < r->nwait;
	if (r->pos == r->n) {
		run(f, r, r->wait[r->first++]);
		return;
	}
	const PipeTask *t = &r->list[r->pos].task;
	double at = *arrival(f, t);
	bool ready = at >= 0 && at <= r->clock, full = t->kind == BLOCK_F && r->held + 2 > f->limit;
	if (weights && (!ready || full))
		run(f, r, r->wait[r->first++]);
	else if (ready)
		run(f, r, r->list[r->pos++].task);
	else if (!run_ahead(f, r))
		r->clock = at >= 0 ? at : INFINITY;
}

const char *vee_order(const Pipeline *p, VeeShape shape, Arena *a, PipeOrder *o)
{
	if (p->nstage != 2 * p->nrank)
		return "it needs two stages for each rank";
	Filler f = { .p = p, .rank = arena_array(a, Rank, p->nrank), .limit = 4 * shape.most,
		.ahead = shape.ahead };
	size_t cells = 2 * (size_t)p->nstage * (size_t)p->micros;
	Turns t = shortest_turns(p->nrank, shape.up, shape.down);
	f.there = arena_array(a, double, cells);
	for (size_t i = 0; i < cells; i++)
		f.there[i] = i < (size_t)p->micros ? 0 : -1;     /* the first stage has its input */
	for (int r = 0; r < p->nrank; r++)
		f.rank[r] = (Rank){ .list = sorted(p, r, shape.up, shape.down, t, a), .n = 4 * p->micros,
			.out = arena_array(a, PipeTask, 6 * p->micros),
			.wait = arena_array(a, PipeTask, 2 * p->micros) };
	for (;;) {
		Rank *next = NULL;
		for (int r = 0; r < p->nrank; r++) {
			Rank *k = &f.rank[r];
			if ((k->pos < k->n || k->first < k->nwait) && (!next || k->clock < next->clock))
				next = k;
		}
		if (!next)
			break;
		decide(&f, next);
	}
	o->task = arena_array(a, PipeTask *, p->nrank);
	o->ntask = arena_array(a, int, p->nrank);
	for (int r = 0; r < p->nrank; r++) {
		o->task[r] = f.rank[r].out;
		o->ntask[r] = f.rank[r].nout;
	}
	return NULL;
}
