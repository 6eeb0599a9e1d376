/* Plays an order of a pipeline with seconds.
 *
 * Ranks run their lists in order, so nothing has to be decided and no queue of events is needed: a task starts when
 * the task before it on its rank has ended and what it reads has arrived.  Start times are the longest paths of that
 * graph, found in the order in which tasks become possible: a rank runs until its next task lacks something, and
 * goes on when the last thing that it lacks arrives.  That costs a few dozen nanoseconds for each task, whatever the
 * order.
 *
 *   what            lacks                                           is there when
 *   F of stage s    F of each stage with a hop to s                 the message has arrived
 *   B, BW           F of s; B or BW of each stage that s hops to    the same, on the way back
 *   W               B of s
 *
 * A hop carries messages in the order in which they are made, one after `busy` seconds, each for `busy + latency`.
 * The bytes of a rank depend on its order alone: F takes what it keeps, B turns `kept` into `kept_w`, W frees it.
 *
 * A step needs nothing of the step before but free ranks and hops.  So steps are played one by one, until all of
 * these move by one number from a step to the next: that is the period.  Zero-bubble schedules (arXiv 2401.10241,
 * section 4) count by the span: without a barrier between steps, ranks that start late also end late. */
#include "lanes/lanes.h"

#include <math.h>
#include <string.h>

enum { LACKS_F, LACKS_B, LACKS_W, NLACKS };

/* One end of a hop as a stage sees it. */
typedef struct Way { int stage, rank, link; double latency, busy; } Way;
typedef struct PipeState {
	double *at;                     /* by key: when the last of what a task lacks arrived */
	uint16_t *missing, *missing0;   /* by key: how much it lacks; at the beginning of a step */
	int nkey;
	int *waits, *pos;               /* by rank: the key for which it waits, or -1; the next task */
	int *ready, nready;             /* ranks that can go on */
	double *clock, *before;         /* ranks, links (hops forward, hops back): free from then on; a step before */
	int nclock;
	Way *way; int **ways;           /* ways[d][s] .. ways[d][s + 1]: what stage s sends, forward and back */
} PipeState;

static int key_of(const Pipeline *p, int lacks, int stage, int micro)
{
	return (lacks * p->nstage + stage) * p->micros + micro;
}

/* What each stage sends, forward (d = 0) and back (1). */
static void list_ways(const Pipeline *p, PipeState *s)
{
	int n = 0;
	for (int d = 0; d < 2; d++) {
		for (int i = 0; i < p->nstage; i++) {
			s->ways[d][i] = n;
			for (int h = 0; h < p->nhop; h++) {
				const PipeHop *hop = &p->hop[h];
				if ((d ? hop->to : hop->from) != i)
					continue;
				int to = d ? hop->from : hop->to;
				bool near = p->stage[to].rank == p->stage[i].rank;
				s->way[n++] = (Way){ .stage = to, .rank = p->stage[to].rank,
					.link = p->nrank + d * p->nhop + h, .latency = near ? 0 : hop->latency,
					.busy = near ? 0 : hop->busy };
			}
		}
		s->ways[d][p->nstage] = n;
	}
}

static void count_missing(const Pipeline *p, PipeState *s)
{
	memset(s->missing0, 0, sizeof *s->missing0 * (size_t)s->nkey);
	for (int i = 0; i < p->nstage; i++)
		for (int m = 0; m < p->micros; m++) {
			s->missing0[key_of(p, LACKS_B, i, m)]++;
			s->missing0[key_of(p, LACKS_W, i, m)]++;
		}
	for (int h = 0; h < p->nhop; h++)
		for (int m = 0; m < p->micros; m++) {
			s->missing0[key_of(p, LACKS_F, p->hop[h].to, m)]++;
			s->missing0[key_of(p, LACKS_B, p->hop[h].from, m)]++;
		}
}

static int most_tasks(const Pipeline *p, int r)
{
	int n = 0;
	for (int i = 0; i < p->nstage; i++)
		n += p->stage[i].rank == r ? NLACKS * p->micros : 0;
	return n;
}

static void begin(const Pipeline *p, Arena *a, PipePlay *play)
{
	PipeState *s = play->state;
	if (!s) {
		s = play->state = arena_new(a, PipeState);
		play->first = arena_array(a, double, p->nrank);
		play->last = arena_array(a, double, p->nrank);
		play->busy = arena_array(a, double, p->nrank);
		play->peak = arena_array(a, int64_t, p->nrank);
		play->start = arena_array(a, double *, p->nrank);
		play->ran = arena_array(a, int, p->nrank);
		for (int r = 0; r < p->nrank; r++)
			play->start[r] = arena_array(a, double, most_tasks(p, r) + 1);
		s->nkey = NLACKS * p->nstage * p->micros;
		s->at = arena_array(a, double, s->nkey);
		s->missing = arena_array(a, uint16_t, s->nkey);
		s->missing0 = arena_array(a, uint16_t, s->nkey);
		s->waits = arena_array(a, int, p->nrank);
		s->pos = arena_array(a, int, p->nrank);
		s->ready = arena_array(a, int, p->nrank);
		s->nclock = p->nrank + 2 * p->nhop;
		s->clock = arena_array(a, double, s->nclock);
		s->before = arena_array(a, double, s->nclock);
		s->way = arena_array(a, Way, 2 * p->nhop + 1);
		s->ways = arena_array(a, int *, 2);
		s->ways[0] = arena_array(a, int, p->nstage + 1);
		s->ways[1] = arena_array(a, int, p->nstage + 1);
	}
	list_ways(p, s);
	count_missing(p, s);
	memset(s->clock, 0, sizeof *s->clock * (size_t)s->nclock);
}

static void arrive(PipeState *s, int key, int rank, double at)
{
	if (at > s->at[key])
		s->at[key] = at;
	if (!--s->missing[key] && s->waits[rank] == key) {
		s->waits[rank] = -1;
		s->ready[s->nready++] = rank;
	}
}

static void send(const Pipeline *p, PipeState *s, int lacks, int stage, int micro, double now)
{
	int d = lacks == LACKS_B;
	for (int i = s->ways[d][stage]; i < s->ways[d][stage + 1]; i++) {
		const Way *w = &s->way[i];
		double *free = &s->clock[w->link], leave = *free > now ? *free : now;
		*free = leave + w->busy;
		arrive(s, key_of(p, lacks, w->stage, micro), w->rank, leave + w->busy + w->latency);
	}
}

static const int lacks_of[] = {
	[BLOCK_F] = LACKS_F, [BLOCK_B] = LACKS_B, [BLOCK_BW] = LACKS_B, [BLOCK_W] = LACKS_W,
};

double pipe_seconds(const Pipeline *p, const PipeTask *t)
{
	const PipeStage *s = &p->stage[t->stage];
	switch (t->kind) {
	case BLOCK_F: return s->f;
	case BLOCK_B: return s->b;
	case BLOCK_W: return s->w;
	case BLOCK_BW: return s->b + s->w;
	default: return 0;
	}
}

bool pipe_once(BlockKind k)
{
	return k == BLOCK_BEGIN || k == BLOCK_REDUCE || k == BLOCK_UPDATE;
}

/* Runs a rank until its next task lacks an operand. */
static void advance(const Pipeline *p, const PipeOrder *o, PipePlay *play, int r, bool first)
{
	PipeState *s = play->state;
	double now = s->clock[r];
	for (int n = o->ntask[r]; s->pos[r] < n; s->pos[r]++) {
		const PipeTask *t = &o->task[r][s->pos[r]];
		int key = key_of(p, lacks_of[t->kind], t->stage, t->micro);
		if (s->missing[key]) {
			s->waits[r] = key;
			break;
		}
		if (s->at[key] > now)
			now = s->at[key];
		double seconds = pipe_seconds(p, t);
		if (first) {
			play->start[r][s->pos[r]] = now;
			play->busy[r] += seconds;
		}
		now += seconds;
		if (t->kind == BLOCK_F) {
			arrive(s, key_of(p, LACKS_B, t->stage, t->micro), r, now);
			send(p, s, LACKS_F, t->stage, t->micro, now);
		} else if (t->kind != BLOCK_W) {
			if (t->kind == BLOCK_B)
				arrive(s, key_of(p, LACKS_W, t->stage, t->micro), r, now);
			send(p, s, LACKS_B, t->stage, t->micro, now);
		}
	}
	s->clock[r] = now;
}

/* Plays one step, from the current clocks.  false: some rank did not run to its end. */
static bool play_step(const Pipeline *p, const PipeOrder *o, PipePlay *play, bool first)
{
	PipeState *s = play->state;
	memcpy(s->missing, s->missing0, sizeof *s->missing * (size_t)s->nkey);
	memset(s->at, 0, sizeof *s->at * (size_t)s->nkey);
	for (int r = 0; r < p->nrank; r++) {
		s->pos[r] = 0;
		s->waits[r] = -1;
		s->ready[s->nready++] = p->nrank - 1 - r;
	}
	while (s->nready)
		advance(p, o, play, s->ready[--s->nready], first);
	bool whole = true;
	for (int r = 0; r < p->nrank; r++) {
		play->ran[r] = s->pos[r];
		whole = whole && s->pos[r] == o->ntask[r];
	}
	for (int i = 0; i < p->nstage; i++)
		s->clock[p->stage[i].rank] += p->stage[i].update;
	return whole;
}

/* Bytes of a rank, in the order of its tasks. */
static int64_t peak_of(const Pipeline *p, const PipeOrder *o, int r)
{
	int64_t use = 0, peak;
	for (int i = 0; i < p->nstage; i++)
		use += p->stage[i].rank == r ? p->stage[i].fixed : 0;
	peak = use;
	for (int i = 0; i < o->ntask[r]; i++) {
		const PipeTask *t = &o->task[r][i];
		const PipeStage *g = &p->stage[t->stage];
		int64_t more = g->kept_w - g->kept;
		switch (t->kind) {
		case BLOCK_F: use += g->kept; break;
		case BLOCK_B: use += more > 0 ? more : 0; break;
		case BLOCK_W: use -= g->kept_w; break;
		default: use -= g->kept; break;
		}
		if (use > peak)
			peak = use;
		if (t->kind == BLOCK_B)
			use += more < 0 ? more : 0;
	}
	return peak;
}

/* Plays more steps until every clock advances by the same number; if that does not happen, takes the mean of the last
 * half. */
static double period_of(const Pipeline *p, const PipeOrder *o, int steps, PipePlay *play)
{
	PipeState *s = play->state;
	double middle = play->makespan, last = 0;
	int from = 0;
	for (int k = 1; k < steps; k++) {
		memcpy(s->before, s->clock, sizeof *s->clock * (size_t)s->nclock);
		play_step(p, o, play, false);
		double least = INFINITY, most = 0;
		last = 0;
		for (int i = 0; i < s->nclock; i++) {
			bool used = i < p->nrank || s->clock[i] > 0;
			double d = s->clock[i] - s->before[i];
			least = used && d < least ? d : least;
			most = used && d > most ? d : most;
			last = i < p->nrank && s->clock[i] > last ? s->clock[i] : last;
		}
		if (most - least <= 1e-12 * last)
			return most;
		if (k == (steps - 1) / 2) {
			middle = last;
			from = k;
		}
	}
	return (last - middle) / (steps - 1 - from);
}

bool pipe_play(const Pipeline *p, const PipeOrder *o, int steps, Arena *a, PipePlay *play)
{
	begin(p, a, play);
	memset(play->busy, 0, sizeof *play->busy * (size_t)p->nrank);
	bool whole = play_step(p, o, play, true);
	play->span = play->makespan = play->period = 0;
	for (int r = 0; r < p->nrank; r++) {
		double last = play->state->clock[r], first = o->ntask[r] ? play->start[r][0] : last;
		play->first[r] = first;
		play->last[r] = last;
		play->span = last - first > play->span ? last - first : play->span;
		play->makespan = last > play->makespan ? last : play->makespan;
		play->peak[r] = peak_of(p, o, r);
	}
	for (int i = 0; i < p->nstage; i++)
		play->busy[p->stage[i].rank] += p->stage[i].update;
	if (whole && steps > 1)
		play->period = p->barrier ? play->makespan : period_of(p, o, steps, play);
	return whole;
}
