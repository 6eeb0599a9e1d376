/* The schedule solver: the order of F, B and W on every rank with the smallest period (period.c) that fits the memory.
 * Ties go to the smaller makespan, then to the smaller peak of memory, then to fewer changes.  In turn:
 *
 *   1. every named schedule that fits, with its BW blocks split, and list schedules under several rules (list.c);
 *   2. simulated annealing from the best of these.  Only a change of the critical cycle can lower the period: blocks
 *      are its tasks that run back to back on one rank, and a move takes a task to another position of its block;
 *   3. an exact search (exact.c); 2 and 3 again with twice the work, until the best is proven or the work is used up;
 *   4. moves on the longest path that lower the makespan, then swaps back towards the order that it began with.
 *
 * The result is never worse than a named schedule that fits.  The period is proven where it meets the lower bound
 * (bound.c), or where the exact search came to its end.
 *
 * Work is counted in tasks visited, never in seconds, so the same input gives the same order on every machine.  The
 * seconds of the caller are translated by a fixed rate. */
#include "lanes/words.h"

#include <math.h>
#include <string.h>

static const double rate = 6e7;         /* tasks that one core of a common machine visits in a second */

static const ListRule rules[] = {
	{ CAP_NONE, 0, false, -1 },
	{ CAP_DEPTH, 0, false, -1 },
	{ CAP_WAY, 0, false, -1 },
	{ CAP_TWICE, 0, false, -1 },
	{ CAP_NONE, 0.5, false, -1 },
	{ CAP_WAY, 0.5, false, -1 },
	{ CAP_DEPTH, 0.5, false, -1 },
	{ CAP_NONE, 1, false, -1 },
	{ CAP_WAY, 1, true, -1 },
	{ CAP_NONE, 0.5, true, -1 },
	{ CAP_TWICE, 0.5, true, -1 },
	{ CAP_MIDDLE, 0, false, -1 },
	{ CAP_MIDDLE, 0.5, true, -1 },
	{ CAP_NONE, 0, false, 0 },
	{ CAP_WAY, 0, false, 0 },
	{ CAP_WAY, 0, false, 1 },
	{ CAP_NONE, 0, false, 2 },
};

enum { PATH = 4096 };                   /* blocks of a path that are remembered */
typedef struct Run { int rank, lo, hi; } Run;                   /* positions of a word, one after the other */
typedef struct Path { Run *run; int n; } Path;

typedef struct Search {
	Words *w;
	Arena *a;
	PipeBound bound;
	double budget;
	/* on some stage W needs more memory than F keeps: there BW may fit where B and W do not.  Else B and W are at
	 * least as good.  The exact search knows B and W only */
	bool fused;
	Word *best, *now, *try, *start;         /* start: the order that `from` names */
	WordCost cost;                  /* of best */
	const char *from;
	uint64_t random;
	Run *run; int nrun;             /* blocks of the critical cycle */
	Path *path;                     /* by clock: the longest path to its end */
	double *x;                      /* beginnings of `now` */
} Search;

static double draw(Search *s)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (double)(s->random >> 11) * 0x1p-53;
}

static int below(Search *s, int n) { return (int)(draw(s) * n); }

/* ---- what to start from ---- */

static void consider(Search *s, const Word *o, const char *from)
{
	WordCost c;
	period_cost(s->w, o, &c);
	if (!c.fits || c.period == INFINITY || (s->from && period_compare(&c, &s->cost) >= 0))
		return;
	s->cost = c;
	s->from = from;
	words_copy(s->w, s->best, o);
}

/* Whether the stages are on the ranks that the schedule requires. */
static bool placed(const PipeSchedule *t, const Pipeline *p, Arena *a)
{
	if (p->nstage % p->nrank || (t->chunks && t->chunks * p->nrank != p->nstage))
		return false;
	Pipeline q = *p;
	q.stage = arena_array(a, PipeStage, p->nstage);
	memcpy(q.stage, p->stage, sizeof *p->stage * (size_t)p->nstage);
	schedules_place(t, &q);
	for (int i = 0; i < p->nstage; i++)
		if (q.stage[i].rank != p->stage[i].rank)
			return false;
	return true;
}

static bool optimal(const Search *s)
{
	return s->from && s->cost.period <= s->bound.period * (1 + 1e-9);
}

static void begin(Search *s)
{
	for (const PipeSchedule *t = schedules; t->name; t++) {
		PipeOrder o;
		if (!placed(t, s->w->p, s->a) || t->order(s->w->p, s->a, &o))
			continue;
		if (words_read(s->w, &o, true, s->try))
			consider(s, s->try, t->name);
		if (s->fused && words_read(s->w, &o, false, s->try))
			consider(s, s->try, t->name);
	}
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		if (optimal(s) && s->cost.makespan <= s->bound.makespan * (1 + 1e-9))
			break;
		if (i && s->w->work > s->budget)
			break;
		if (list_order(s->w, &rules[i], s->a, s->try))
			consider(s, s->try, "list");
	}
}

/* ---- the critical cycle ---- */

/* The longest path to the end of a clock, as runs of tasks that follow each other on one rank, last first. */
static void trace(void *data, int clock)
{
	Search *s = data;
	const Words *w = s->w;
	const Pass *p = &w->pass;
	const Word *o = s->now;
	int line = clock - w->nrank, k = w->micros - 1, r = clock, i, hi;
	Path *to = &s->path[clock];
	to->n = 0;
	if (line >= 0)
		goto message;
	i = hi = o[r].n - 1;
	while (i >= 0 && to->n < PATH) {
		double start = p->start[r][i];
		line = -1;
		k = p->micro[r][i];
		for (const int *need = w->need[o[r].at[i]]; *need >= 0; need++)
			if (p->message[(size_t)*need * (size_t)w->micros + (size_t)k].there == start)
				line = *need;
		if (line < 0 && --i >= 0)
			continue;
		to->run[to->n++] = (Run){ r, i + (line < 0), hi };
		if (line < 0)
			return;
message:        /* it waits for its sender, or for the message before it on its line */
		r = w->line[line].from;
		for (;; k--) {
			if (k < 0)
				return;
			const LineMessage *m = &p->message[(size_t)line * (size_t)w->micros + (size_t)k];
			i = hi = m->position;
			if (p->start[r][i] + w->seconds[o[r].at[i]] == m->sent)
				break;
		}
	}
}

static void collect(Search *s, int clock)
{
	const Path *p = &s->path[clock];
	for (int i = 0; i < p->n; i++)
		if (p->run[i].hi > p->run[i].lo && s->nrun < PATH)
			s->run[s->nrun++] = p->run[i];
}

/* The rank that ends last, if all begin at the same time, with the longest path to its end. */
static int last_rank(Search *s)
{
	Words *w = s->w;
	int last = 0;
	memset(w->pass.begin, 0, sizeof *w->pass.begin * (size_t)w->nclock);
	period_pass(w, s->now);
	for (int r = 1; r < w->nrank; r++)
		last = w->pass.end[r] > w->pass.end[last] ? r : last;
	trace(s, last);
	return last;
}

/* Collects the blocks of the critical cycle of `now`, whose period is given, or of its longest path if a barrier stands
 * between steps.  false: there is none that could change. */
static bool critical(Search *s, double period)
{
	Words *w = s->w;
	if (w->p->barrier) {
		s->nrun = 0;
		collect(s, last_rank(s));
		return s->nrun > 0;
	}
	memcpy(w->x, s->x, sizeof *s->x * (size_t)w->nclock);
	int c = period_cycle(w, s->now, period * (1 - 1e-9), trace, s), d = c;
	s->nrun = 0;
	if (c < 0)
		return false;
	do {
		collect(s, d);
		d = w->parent[d];
	} while (d != c);
	return s->nrun > 0;
}

/* ---- moves ---- */

static void shift(Word *o, int from, int to)
{
	int l = o->at[from];
	if (from < to)
		memmove(o->at + from, o->at + from + 1, sizeof *o->at * (size_t)(to - from));
	else
		memmove(o->at + to + 1, o->at + to, sizeof *o->at * (size_t)(from - to));
	o->at[to] = l;
}

/* Whether a letter may move there: each B stays behind its F, each W behind its B, and the memory suffices. */
static bool legal(Search *s, int r)
{
	const Words *w = s->w;
	const Word *o = &s->now[r];
	int *count = w->pass.count;
	int64_t use = 0;
	memset(count, 0, sizeof *count * (size_t)w->nletter);
	for (int i = 0; i < o->n; i++) {
		use += w->bytes[o->at[i]];
		if (use > w->room[r] || !words_step(w, count, o->at[i]))
			return false;
	}
	return true;
}

static bool propose(Search *s, int *r, int *from, int *to)
{
	const Run *run = &s->run[below(s, s->nrun)];
	int n = run->hi - run->lo + 1, i = run->lo + below(s, n), j;
	switch (below(s, 4)) {
	case 0: j = run->lo + below(s, n); break;
	case 1: j = run->lo; break;
	case 2: j = run->hi; break;
	default: j = i + 1 <= run->hi ? i + 1 : i - 1; break;
	}
	const int *at = s->now[run->rank].at;
	if (i == j || at[i] == at[j])
		return false;
	*r = run->rank;
	*from = i;
	*to = j;
	return true;
}

static void anneal(Search *s, double work, double hot)
{
	Words *w = s->w;
	double begin = w->work, period = s->cost.period;
	words_copy(w, s->now, s->best);
	memset(w->x, 0, sizeof *w->x * (size_t)w->nclock);
	period_find(w, s->now, INFINITY);
	memcpy(s->x, w->x, sizeof *s->x * (size_t)w->nclock);
	bool open = critical(s, period);
	while (open && w->work - begin < work && w->work < s->budget && !optimal(s)) {
		double share = (w->work - begin) / work, heat = hot * pow(1e-2, share) * period;
		int r, from, to;
		w->work += 1;
		if (!propose(s, &r, &from, &to))
			continue;
		shift(&s->now[r], from, to);
		w->work += 0.25 * s->now[r].n;
		double most = period - heat * log(draw(s) + 1e-300), next = INFINITY;
		memcpy(w->x, s->x, sizeof *s->x * (size_t)w->nclock);
		if (legal(s, r))
			next = period_find(w, s->now, most);
		if (next == INFINITY) {
			shift(&s->now[r], to, from);
			continue;
		}
		period = next;
		memcpy(s->x, w->x, sizeof *s->x * (size_t)w->nclock);
		if (period <= s->cost.period * (1 + 1e-9))
			consider(s, s->now, s->from);
		open = critical(s, period);
	}
}

/* ---- ties ---- */

/* Moves task `from` of rank r to another position if that makes the best order better, or, with ties, not worse. */
static bool change(Search *s, int r, int from, int to, bool ties)
{
	Words *w = s->w;
	WordCost c;
	w->work += s->now[r].n;
	shift(&s->now[r], from, to);
	if (legal(s, r)) {
		period_cost(w, s->now, &c);
		if (period_compare(&c, &s->cost) < (ties ? 1 : 0)) {
			s->cost = c;
			words_copy(w, s->best, s->now);
			return true;
		}
	}
	shift(&s->now[r], to, from);
	return false;
}

/* One move that shortens the longest path to the end of the step. */
static bool shorten(Search *s)
{
	const Words *w = s->w;
	int last = last_rank(s);
	for (int i = 0; i < s->path[last].n; i++) {
		Run run = s->path[last].run[i];
		for (int k = run.lo; k <= run.hi; k++) {
			int to[3] = { k + 1, run.lo, run.hi };
			for (int j = 0; j < 3; j++) {
				if (w->work > s->budget)
					return false;
				if (to[j] != k && to[j] <= run.hi && change(s, run.rank, k, to[j], false))
					return true;
			}
		}
	}
	return false;
}

/* Swaps neighbours of rank r back towards the order of the start.  position: [letter][micro-batch], in that order. */
static void restore(Search *s, int r, int *position)
{
	const Words *w = s->w;
	int *micro = arena_array(s->a, int, s->now[r].n + 1), *at = s->now[r].at;
	memset(w->pass.count, 0, sizeof *w->pass.count * (size_t)w->nletter);
	for (int i = 0; i < s->start[r].n; i++) {
		int l = s->start[r].at[i];
		position[l * w->micros + w->pass.count[l]++] = i;
	}
	memset(w->pass.count, 0, sizeof *w->pass.count * (size_t)w->nletter);
	for (int i = 0; i < s->now[r].n; i++)
		micro[i] = w->pass.count[at[i]]++;
	for (bool more = true; more && w->work < s->budget;) {
		more = false;
		for (int i = 0; i + 1 < s->now[r].n && w->work < s->budget; i++) {
			int a = position[at[i] * w->micros + micro[i]];
			int b = position[at[i + 1] * w->micros + micro[i + 1]];
			if (a < b || !change(s, r, i, i + 1, true))
				continue;
			int t = micro[i];
			micro[i] = micro[i + 1];
			micro[i + 1] = t;
			more = true;
		}
	}
}

static void polish(Search *s)
{
	Words *w = s->w;
	s->budget = w->work + fmax(0.25 * s->budget, 20.0 * w->ntask);
	words_copy(w, s->now, s->best);
	while (s->cost.makespan > s->bound.makespan * (1 + 1e-9) && shorten(s)) {
	}
	int *position = arena_array(s->a, int, (size_t)w->nletter * (size_t)w->micros);
	for (int r = 0; r < w->nrank; r++)
		restore(s, r, position);
}

/* ---- all of it ---- */

static double better(void *data, const Word *o)
{
	Search *s = data;
	consider(s, o, s->from);
	return s->cost.period;
}

/* Searches all orders, if the work suffices.  true: the best is proven. */
static bool prove(Search *s, double work)
{
	Words *w = s->w;
	if (w->p->barrier)              /* exact.c knows periods only */
		return false;
	memset(w->x, 0, sizeof *w->x * (size_t)w->nclock);
	period_find(w, s->best, INFINITY);
	memcpy(s->x, w->x, sizeof *s->x * (size_t)w->nclock);
	return exact_search(w, s->cost.period, s->x, work, better, s) && !s->fused;
}

/* Allocates the state of the search, with a budget of work for these seconds. */
static void prepare(Search *s, const Pipeline *p, Arena *a, Words *w, double seconds)
{
	words_begin(p, a, w);
	*s = (Search){
		.w = w, .a = a, .budget = seconds * rate, .random = 1,
		.best = words_new(w, a), .now = words_new(w, a), .try = words_new(w, a), .start = words_new(w, a),
		.run = arena_array(a, Run, PATH), .path = arena_array(a, Path, w->nclock),
		.x = arena_array(a, double, w->nclock),
	};
	for (int c = 0; c < w->nclock; c++)
		s->path[c].run = arena_array(a, Run, w->ntask < PATH ? w->ntask + 1 : PATH);
	for (int i = 0; i < p->nstage; i++)
		s->fused = s->fused || p->stage[i].kept_w > p->stage[i].kept;
	bound_find(p, a, &s->bound);
}

int search_run(const Pipeline *p, double seconds, Arena *a, SearchResult *to)
{
	Arena own = { 0 };
	Words w;
	Search s;
	prepare(&s, p, &own, &w, seconds);
	begin(&s);
	if (!s.from) {
		arena_free(&own);
		return 1;
	}
	words_copy(&w, s.start, s.best);
	bool proven = optimal(&s);
	/* annealing and proofs in turn, each with twice the work of the time before */
	for (double work = 1000.0 * w.ntask; w.work < s.budget && !proven; work *= 2) {
		anneal(&s, work, 0.02);
		proven = optimal(&s) || (w.work < s.budget && prove(&s, fmin(work, s.budget - w.work)));
	}
	polish(&s);
	*to = (SearchResult){
		.from = s.from, .period = s.cost.period, .span = s.cost.span, .makespan = s.cost.makespan,
		.peak = s.cost.peak, .bound = s.bound, .work = w.work, .proven = proven,
	};
	if (proven)
		to->bound.period = s.cost.period;
	to->gap = to->bound.period > 0 ? to->period / to->bound.period - 1 : 0;
	words_write(&w, s.best, a, &to->order);
	arena_free(&own);
	return 0;
}
