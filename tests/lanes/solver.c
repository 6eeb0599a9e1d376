/* The schedule solver (compiler/lanes/search.c) and its lower bounds against an enumeration of all words of all ranks,
 * with times and periods computed by other means: a plain play from each clock, and Karp's algorithm for the largest
 * mean of a cycle; of more micro-batches, rank after rank.  Then larger pipelines: never worse than a named schedule;
 * equal to the bound where all blocks take as long; the bound of PE; the same result for the same input.  --long takes
 * more and larger ones. */
#include "lanes/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;

static double uniform(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(state >> 11) * 0x1p-53;
}

static int below(int n) { return (int)(uniform() * n); }

static int bad;

static void fail(const char *what, int i, double a, double b)
{
	if (bad++ < 20)
		printf("not ok %s: case %d, %.12g and %.12g\n", what, i, a, b);
}

/* ---- pipelines ---- */

static Pipeline chain(Arena *a, int nrank, int nstage, int micros)
{
	Pipeline p = { .nrank = nrank, .nstage = nstage, .micros = micros, .nhop = nstage - 1 };
	p.stage = arena_array(a, PipeStage, nstage);
	p.hop = arena_array(a, PipeHop, nstage + 1);
	p.limit = arena_array(a, int64_t, nrank);
	for (int i = 0; i < nstage; i++) {
		p.stage[i] = (PipeStage){ .rank = i % nrank, .f = 1, .b = 1, .w = 1, .kept = 2, .kept_w = 1 };
		p.hop[i] = (PipeHop){ .from = i, .to = i + 1 };
	}
	for (int r = 0; r < nrank; r++)
		p.limit[r] = INT64_MAX / 4;
	return p;
}

/* Times as in the figures of planning papers: blocks of 6 to 14, hops of 0 to 3. */
static void uneven(Pipeline *p, bool busy)
{
	bool whole = below(2);
	double latency = below(4);
	for (int i = 0; i < p->nstage; i++) {
		PipeStage *s = &p->stage[i];
		s->f = 8 + 4 * uniform();
		s->b = 8 + 6 * uniform();
		s->w = below(8) ? 6 + 6 * uniform() : 0;
		s->update = below(3) ? 0 : 5 * uniform();
		if (whole)
			s->f = floor(s->f), s->b = floor(s->b), s->w = floor(s->w), s->update = floor(s->update);
		p->hop[i].latency = latency;
		p->hop[i].busy = busy ? 5 * uniform() : 0;
	}
}

/* Times of any proportion. */
static void wild(Pipeline *p)
{
	for (int i = 0; i < p->nstage; i++) {
		PipeStage *s = &p->stage[i];
		s->f = 1 + below(20);
		s->b = 1 + below(20);
		s->w = below(20);
		s->update = below(6);
		p->hop[i].latency = below(3) ? below(4) : below(20);
		p->hop[i].busy = below(3) ? 0 : below(12);
	}
}

/* more: W may need more than F keeps */
static void memory(Pipeline *p, int least, int most, bool more)
{
	for (int i = 0; i < p->nstage; i++) {
		p->stage[i].kept = 2 + below(3);
		p->stage[i].kept_w = 1 + below(more ? 4 : (int)p->stage[i].kept);
		p->stage[i].fixed = below(10);
	}
	for (int r = 0; r < p->nrank; r++) {
		p->limit[r] = 0;
		for (int i = 0; i < p->nstage; i++)
			if (p->stage[i].rank == r)
				p->limit[r] += p->stage[i].fixed + 4 * (least + below(most - least + 1));
	}
}

/* ---- times, again ---- */

static double first[16];                /* starts of the first tasks in the last play */

/* Every rank runs until it waits, in turns, from begin[] of ranks and lines; lines are hops, forward and back. */
static bool play(const Pipeline *p, const PipeOrder *o, const double *begin, double *end)
{
	static double f[64][64], b[64][64];     /* ends, by stage and micro-batch; arrivals */
	static double af[64][64], ab[64][64];
	int at[16] = { 0 }, m = p->micros;
	for (int i = 0; i < p->nhop; i++)
		for (int k = 0; k < m; k++)
			af[i][k] = ab[i][k] = NAN;
	for (int s = 0; s < p->nstage; s++)
		for (int k = 0; k < m; k++)
			f[s][k] = b[s][k] = NAN;
	memcpy(end, begin, sizeof *end * (size_t)(p->nrank + 2 * p->nhop));
	for (bool moved = true; moved;) {
		moved = false;
		for (int r = 0; r < p->nrank; r++)
			for (; at[r] < o->ntask[r]; at[r]++) {
				const PipeTask *t = &o->task[r][at[r]];
				bool forward = t->kind == BLOCK_F, back = t->kind == BLOCK_B || t->kind == BLOCK_BW;
				double start = end[r];
				if (back && isnan(f[t->stage][t->micro]))
					break;
				if (t->kind == BLOCK_W && isnan(b[t->stage][t->micro]))
					break;
				for (int i = 0; i < p->nhop; i++) {
					double there = -INFINITY;
					if (forward && p->hop[i].to == t->stage)
						there = af[i][t->micro];
					if (back && p->hop[i].from == t->stage)
						there = ab[i][t->micro];
					start = isnan(there) || isnan(start) ? NAN : fmax(start, there);
				}
				if (isnan(start))
					break;
				first[r] = at[r] ? first[r] : start;
				end[r] = start + pipe_seconds(p, t);
				if (forward)
					f[t->stage][t->micro] = end[r];
				else
					b[t->stage][t->micro] = end[r];
				for (int i = 0; i < p->nhop; i++) {
					const PipeHop *h = &p->hop[i];
					bool sends = (forward && h->from == t->stage) || (back && h->to == t->stage);
					bool near = p->stage[h->from].rank == p->stage[h->to].rank;
					double *line = &end[p->nrank + 2 * i + back];
					if (!sends)
						continue;
					double leave = near || h->busy == 0 ? end[r] : fmax(end[r], *line);
					*line = leave + (near ? 0 : h->busy);
					(forward ? af : ab)[i][t->micro] = *line + (near ? 0 : h->latency);
				}
				moved = true;
			}
	}
	for (int r = 0; r < p->nrank; r++)
		if (at[r] < o->ntask[r])
			return false;
	for (int s = 0; s < p->nstage; s++)
		end[p->stage[s].rank] += p->stage[s].update;
	return true;
}

/* The largest mean of a cycle of a[to][from] (Karp 1978). */
static double karp(int n, double a[40][40])
{
	static double d[41][40];
	double most = -INFINITY;
	for (int v = 0; v < n; v++)
		d[0][v] = 0;
	for (int k = 1; k <= n; k++)
		for (int v = 0; v < n; v++) {
			d[k][v] = -INFINITY;
			for (int u = 0; u < n; u++)
				d[k][v] = fmax(d[k][v], d[k - 1][u] + a[v][u]);
		}
	for (int v = 0; v < n; v++) {
		double least = INFINITY;
		for (int k = 0; k < n && d[n][v] > -INFINITY; k++)
			least = fmin(least, (d[n][v] - d[k][v]) / (n - k));
		if (least < INFINITY)
			most = fmax(most, least);
	}
	return most;
}

static bool busy(const Pipeline *p, int clock)
{
	if (clock < p->nrank)
		return true;
	const PipeHop *h = &p->hop[(clock - p->nrank) / 2];
	return h->busy > 0 && p->stage[h->from].rank != p->stage[h->to].rank;
}

static double period(const Pipeline *p, const PipeOrder *o)
{
	static double a[40][40];
	double begin[80], end[80];
	int n = p->nrank + 2 * p->nhop, clock[80], used = 0;
	for (int c = 0; c < n; c++)
		if (busy(p, c))
			clock[used++] = c;
	for (int j = 0; j < used; j++) {
		for (int c = 0; c < n; c++)
			begin[c] = c == clock[j] ? 0 : -INFINITY;
		if (!play(p, o, begin, end))
			return INFINITY;
		for (int i = 0; i < used; i++)
			a[i][j] = end[clock[i]];
	}
	return karp(used, a);
}

static void once(const Pipeline *p, const PipeOrder *o, double *makespan, double *span)
{
	double begin[80] = { 0 }, end[80];
	*makespan = *span = 0;
	play(p, o, begin, end);
	for (int r = 0; r < p->nrank; r++) {
		*makespan = fmax(*makespan, end[r]);
		*span = fmax(*span, end[r] - first[r]);
	}
}

/* ---- enumeration ---- */

typedef struct All { PipeTask **word; int n, length; } All;            /* words of a rank */

typedef struct Brute {
	const Pipeline *p;
	All words[8];
	PipeOrder o;
	double period, makespan, span;
	PipeTask now[64];
	int count[16][3];
	int most;
} Brute;

/* All words of rank r that keep its memory.  false: they are too many. */
static bool extend(Brute *b, Arena *a, int r, int at, int64_t use)
{
	const Pipeline *p = b->p;
	static const BlockKind kind[] = { BLOCK_F, BLOCK_B, BLOCK_W };
	All *w = &b->words[r];
	if (at == w->length) {
		PipeTask *word = arena_array(a, PipeTask, at);
		memcpy(word, b->now, sizeof *word * (size_t)at);
		arena_push(a, w->word, w->n, word);
		return w->n <= b->most;
	}
	for (int s = 0; s < p->nstage; s++) {
		const PipeStage *g = &p->stage[s];
		int64_t more[3] = { g->kept, g->kept_w - g->kept, -g->kept_w };
		for (int k = 0; k < 3; k++) {
			int *count = b->count[s];
			int limit = k ? count[k - 1] : p->micros;
			if (g->rank != r || count[k] >= limit || use + more[k] > p->limit[r])
				continue;
			b->now[at] = (PipeTask){ kind[k], s, count[k]++ };
			bool few = extend(b, a, r, at + 1, use + more[k]);
			count[k]--;
			if (!few)
				return false;
		}
	}
	return true;
}

static void combine(Brute *b, int r)
{
	if (r == b->p->nrank) {
		double makespan, span, t = period(b->p, &b->o);
		if (t == INFINITY)
			return;
		once(b->p, &b->o, &makespan, &span);
		b->period = fmin(b->period, t);
		b->makespan = fmin(b->makespan, makespan);
		b->span = fmin(b->span, span);
		return;
	}
	for (int i = 0; i < b->words[r].n; i++) {
		b->o.task[r] = b->words[r].word[i];
		combine(b, r + 1);
	}
}

/* false: too many orders */
static bool enumerate(Brute *b, Arena *a, double most)
{
	const Pipeline *p = b->p;
	double all = 1;
	b->o.task = arena_array(a, PipeTask *, p->nrank);
	b->o.ntask = arena_array(a, int, p->nrank);
	b->period = b->makespan = b->span = INFINITY;
	b->most = 20000;
	for (int r = 0; r < p->nrank; r++) {
		int64_t fixed = 0;
		b->words[r].length = 0;
		for (int s = 0; s < p->nstage; s++)
			if (p->stage[s].rank == r) {
				fixed += p->stage[s].fixed;
				b->words[r].length += 3 * p->micros;
			}
		b->o.ntask[r] = b->words[r].length;
		if (b->words[r].length > 64 || !extend(b, a, r, 0, fixed))
			return false;
		all *= b->words[r].n;
	}
	if (all > most)
		return false;
	combine(b, 0);
	return true;
}

/* ---- enumeration of more, rank after rank ---- */

/* As play(), but only ranks that are `on` run in order; the others run everything as soon as they can, and their lines
 * carry any number of messages.  So times are not later than with any words of the others. */
static void relaxed(const Pipeline *p, const PipeOrder *o, const bool *on, const double *begin, double *end)
{
	static double f[16][16], b[16][16], af[16][16], ab[16][16];
	int at[16] = { 0 }, m = p->micros;
	for (int s = 0; s < p->nstage; s++)
		for (int k = 0; k < m; k++)
			f[s][k] = b[s][k] = af[s][k] = ab[s][k] = NAN;
	memcpy(end, begin, sizeof *end * (size_t)(p->nrank + 2 * p->nhop));
	for (bool moved = true; moved;) {
		moved = false;
		for (int s = 0; s < p->nstage; s++)
			for (int k = 0; k < 2 * m; k++) {
				int r = p->stage[s].rank, i = k % m;
				bool forward = k < m;
				PipeTask t = { forward ? BLOCK_F : BLOCK_B, s, i };
				if (on[r]) {
					if (at[r] == o->ntask[r])
						continue;
					t = o->task[r][at[r]];
					if (t.stage != s || t.micro != i || (t.kind == BLOCK_F) != forward)
						continue;
				}
				double (*in)[16] = forward ? af : ab, (*out)[16] = forward ? f : b;
				double start = on[r] ? end[r] : -INFINITY;
				if (t.kind == BLOCK_W) {
					end[r] += p->stage[s].w;
					at[r]++;
					moved = true;
					continue;
				}
				if (!isnan(out[s][i]) || (!forward && isnan(f[s][i])))
					continue;
				start = forward ? start : fmax(start, f[s][i]);
				for (int h = 0; h < p->nhop; h++)
					if ((forward ? p->hop[h].to : p->hop[h].from) == s)
						start = isnan(start) || isnan(in[h][i]) ? NAN : fmax(start, in[h][i]);
				if (isnan(start))
					continue;
				out[s][i] = start + (forward ? p->stage[s].f : p->stage[s].b);
				if (on[r]) {
					end[r] = out[s][i];
					at[r]++;
				}
				for (int h = 0; h < p->nhop; h++) {
					const PipeHop *x = &p->hop[h];
					if ((forward ? x->from : x->to) != s)
						continue;
					bool near = p->stage[x->from].rank == p->stage[x->to].rank;
					double *line = &end[p->nrank + 2 * h + !forward], leave = out[s][i];
					if (on[r] && !near && x->busy > 0) {
						leave = fmax(leave, *line);
						*line = leave + x->busy;
					}
					in[h][i] = leave + (near ? 0 : x->busy + x->latency);
				}
				moved = true;
			}
	}
	for (int s = 0; s < p->nstage; s++)
		end[p->stage[s].rank] += p->stage[s].update;
	for (int r = 0; r < p->nrank; r++)
		if (on[r] && at[r] < o->ntask[r])
			end[r] = INFINITY;
}

/* A lower bound of the period with these words; the period itself if all ranks are on. */
static double relaxed_period(const Pipeline *p, const PipeOrder *o, const bool *on)
{
	static double a[40][40];
	double begin[80], end[80];
	int n = p->nrank + 2 * p->nhop, clock[80], used = 0;
	for (int c = 0; c < n; c++) {
		const PipeHop *h = &p->hop[c < p->nrank ? 0 : (c - p->nrank) / 2];
		int from = c < p->nrank ? c : p->stage[(c - p->nrank) % 2 ? h->to : h->from].rank;
		if (busy(p, c) && on[from])
			clock[used++] = c;
	}
	for (int j = 0; j < used; j++) {
		for (int c = 0; c < n; c++)
			begin[c] = c == clock[j] ? 0 : -INFINITY;
		relaxed(p, o, on, begin, end);
		for (int i = 0; i < used; i++) {
			if (end[clock[i]] == INFINITY)
				return INFINITY;
			a[i][j] = end[clock[i]];
		}
	}
	return karp(used, a);
}

typedef struct Deep { Brute b; int turn[8]; bool on[8]; long left; } Deep;

static void deepen(Deep *d, int depth)
{
	const Pipeline *p = d->b.p;
	int r = d->turn[depth];
	d->on[r] = true;
	for (int i = 0; i < d->b.words[r].n && d->left > 0; i++, d->left--) {
		d->b.o.task[r] = d->b.words[r].word[i];
		double t = relaxed_period(p, &d->b.o, d->on);
		if (t >= d->b.period * (1 - 1e-9))
			continue;
		if (depth + 1 < p->nrank)
			deepen(d, depth + 1);
		else
			d->b.period = t;
	}
	d->on[r] = false;
}

/* Pipelines of 3 or 4 ranks and 4 to 8 micro-batches: all words of one rank, then of a second where the first alone
 * has a smaller period than the best, and so on.  Cases that take more than `most` plays are left out. */
static void larger(int cases, long most)
{
	double sum = 0, worst = 0;
	int done = 0, tried = 0, by_micros[9] = { 0 };
	for (; done < cases && tried < 20 * cases; tried++) {
		Arena a = { 0 };
		int m = 4 + below(5);
		int nrank = 3 + below(2);
		Pipeline p = chain(&a, nrank, nrank, m);
		uneven(&p, !below(4));
		memory(&p, 1, m < 6 ? 5 : 2, false);
		Deep d = { .b = { .p = &p, .most = 30000 }, .left = most };
		d.b.o.task = arena_array(&a, PipeTask *, p.nrank);
		d.b.o.ntask = arena_array(&a, int, p.nrank);
		bool few = true;
		for (int r = 0; r < p.nrank; r++) {
			d.turn[r] = r;
			d.b.o.ntask[r] = d.b.words[r].length = 3 * m;
			few = few && extend(&d.b, &a, r, 0, p.stage[r].fixed);
		}
		for (int i = 0; i < p.nrank; i++)
			for (int k = i + 1; k < p.nrank; k++)
				if (d.b.words[d.turn[k]].n < d.b.words[d.turn[i]].n) {
					int old = d.turn[i];
					d.turn[i] = d.turn[k];
					d.turn[k] = old;
				}
		SearchResult r;
		if (few && !search_run(&p, 0.1, &a, &r)) {
			d.b.period = 1.01 * r.period;           /* so it finds the order of the solver, at least */
			deepen(&d, 0);
			if (d.left > 0) {
				if (d.b.period > r.period * (1 + 1e-9))
					fail("the enumeration rank after rank", tried, d.b.period, r.period);
				sum += r.period / d.b.period - 1;
				worst = fmax(worst, r.period / d.b.period - 1);
				if (r.proven && d.b.period < r.period * (1 - 1e-9))
					fail("a proof, rank after rank", tried, r.period, d.b.period);
				by_micros[m]++;
				done++;
			}
		}
		arena_free(&a);
	}
	if (done < cases || sum / done > 0.005)
		fail("the mean distance from the optimum of larger pipelines", done, sum / done, 0.005);
	if (!bad)
		printf("ok %d larger pipelines (of %d; 4 to 8 micro-batches: %d %d %d %d %d): %.4f %% above the "
			"optimum, at most %.4f %%\n", done, tried, by_micros[4], by_micros[5], by_micros[6],
			by_micros[7], by_micros[8], 100 * sum / done, 100 * worst);
}

/* The exact search alone, from an order that is far from the best. */
typedef struct Alone { Words *w; double period; } Alone;

static double seen(void *data, const Word *o)
{
	Alone *s = data;
	WordCost c;
	period_cost(s->w, o, &c);
	if (c.period >= s->period)
		fail("the exact search finds a smaller period", 0, c.period, s->period);
	return s->period = c.period;
}

static void alone(const Pipeline *p, double least, Arena *a, int i)
{
	Words w;
	words_begin(p, a, &w);
	Alone s = { &w, 1.5 * least };
	if (exact_search(&w, s.period, w.x, 2e7, seen, &s) && fabs(s.period - least) > 1e-9 * least)
		fail("the exact search alone", i, s.period, least);
}

/* The order runs, keeps the memory, and has the numbers that the solver says. */
static void check(const Pipeline *p, const SearchResult *r, Arena *a, int i)
{
	PipePlay q = { 0 };
	double near = 1e-9 * r->makespan;
	if (!pipe_play(p, &r->order, 1, a, &q))
		fail("the order runs", i, 0, 0);
	for (int k = 0; k < p->nrank; k++)
		if (q.peak[k] > p->limit[k])
			fail("the order fits the memory", i, (double)q.peak[k], (double)p->limit[k]);
	if (fabs(q.makespan - r->makespan) > near || fabs(q.span - r->span) > near)
		fail("makespan and span", i, r->makespan, r->span);
	if (p->nrank <= 12 && fabs(period(p, &r->order) - r->period) > near)
		fail("period", i, r->period, period(p, &r->order));
	if (r->period > r->span + near || r->span > r->makespan + near)
		fail("period <= span <= makespan", i, r->period, r->span);
	if (r->bound.period > r->period + near || r->bound.makespan > r->makespan + near)
		fail("bounds", i, r->bound.period, r->period);
}

/* Random pipelines of up to 4 ranks and 8 micro-batches that have at most so many orders. */
static void brute(int cases, double most)
{
	double sum = 0, worst = 0, low = 0;
	int done = 0, proven = 0, none = 0;
	for (int i = 0; done < cases; i++) {
		Arena a = { 0 };
		int nrank = 2 + below(3), extra = below(6) ? 0 : 1, m = 1 + below(8);
		Pipeline p = chain(&a, nrank, nrank + extra, m);
		if (i % 2)
			uneven(&p, !below(4));
		else
			wild(&p);
		memory(&p, 1, 3, false);
		if (!below(6) && p.nstage > 2)
			p.hop[p.nhop++] = (PipeHop){ .from = 0, .to = 2, .latency = 3 * uniform() };
		Brute b = { .p = &p };
		if (enumerate(&b, &a, most)) {
			SearchResult r;
			PipeBound bound;
			double near = 1e-9 * b.makespan;
			bound_find(&p, &a, &bound);
			bool found = !search_run(&p, 0.1, &a, &r);
			if (found != (b.period < INFINITY))
				fail("an order is found where there is one", i, b.period, found);
			if (found && b.period < INFINITY) {
				check(&p, &r, &a, i);
				alone(&p, b.period, &a, i);
				if (bound.period > b.period + near)
					fail("the bound of the period", i, bound.period, b.period);
				if (bound.makespan > b.makespan + near)
					fail("the bound of the makespan", i, bound.makespan, b.makespan);
				if (bound.span > b.span + near)
					fail("the bound of the span", i, bound.span, b.span);
				if (r.proven && r.period > b.period + near)
					fail("a proof", i, r.period, b.period);
				if (r.period < b.period - near)
					fail("the enumeration", i, r.period, b.period);
				sum += r.period / b.period - 1;
				worst = fmax(worst, r.period / b.period - 1);
				low += 1 - bound.period / b.period;
				proven += r.proven;
			} else {
				none++;
			}
			done++;
		}
		arena_free(&a);
	}
	if (sum / done > 0.005)
		fail("the mean distance from the optimum", done, sum / done, 0.005);
	if (!bad)
		printf("ok %d enumerated pipelines: %.4f %% above the optimum, at most %.4f %%; %d proven, %d "
			"impossible; bounds %.2f %% below\n",
			done, 100 * sum / done, 100 * worst, proven, none, 100 * low / done);
}

/* ---- larger ---- */

/* As a word, an order has the same times; written again, it is as good. */
static void words(const Pipeline *p, const PipeOrder *o, double t, double makespan, Arena *a, int i)
{
	Words w;
	WordCost c;
	PipeOrder back;
	words_begin(p, a, &w);
	Word *word = words_new(&w, a);
	if (!words_read(&w, o, false, word)) {
		fail("an order is read", i, 0, 0);
		return;
	}
	period_cost(&w, word, &c);
	words_write(&w, word, a, &back);
	if (fabs(c.period - t) > 1e-9 * t || fabs(c.makespan - makespan) > 1e-9 * makespan)
		fail("times of a word", i, c.period, t);
	if (fabs(period(p, &back) - t) > 1e-9 * t)
		fail("a word is written", i, period(p, &back), t);
	if (words_read(&w, o, true, word))
		period_cost(&w, word, &c);
	if (c.period > t * (1 + 1e-9))
		fail("B and W apart are not slower than BW", i, c.period, t);
}

static void named(int cases)
{
	int seen = 0, better = 0;
	for (int i = 0; i < cases; i++) {
		Arena a = { 0 };
		int nrank = 1 + below(8), chunks = below(3) ? 1 : 2;
		Pipeline p = chain(&a, nrank, nrank * chunks, 1 + below(24));
		uneven(&p, !below(3));
		for (int k = 0; k < nrank && chunks == 2 && i % 2; k++)
			p.stage[nrank + k].rank = nrank - 1 - k;
		memory(&p, 1, below(2) ? 2 : 3 * nrank, below(2));
		SearchResult r;
		if (search_run(&p, 2e-4, &a, &r)) {
			fail("a pipeline that fits", i, 0, 0);
			continue;
		}
		check(&p, &r, &a, i);
		bool less = true;
		for (const PipeSchedule *s = schedules; s->name; s++) {
			PipeOrder o;
			PipePlay q = { 0 };
			bool fits = true;
			if ((s->chunks && s->chunks != chunks) || (chunks == 2 && s->vee != i % 2))
				continue;
			if (s->order(&p, &a, &o))
				continue;
			fits = pipe_play(&p, &o, 1, &a, &q);
			words(&p, &o, period(&p, &o), q.makespan, &a, i);
			for (int k = 0; k < nrank; k++)
				fits = fits && q.peak[k] <= p.limit[k];
			if (!fits)
				continue;
			double t = period(&p, &o);
			seen++;
			less = less && r.period < t * (1 - 1e-9);
			if (r.period > t * (1 + 1e-9))
				fail(s->name, i, r.period, t);
		}
		better += less;
		arena_free(&a);
	}
	if (!bad)
		printf("ok %d pipelines: never worse than %d schedules that fit, better than all on %d\n", cases, seen,
			better);
}

static void even(void)
{
	static const int size[][2] = {
		{ 1, 1 }, { 2, 1 }, { 3, 7 }, { 4, 8 }, { 8, 4 }, { 8, 24 }, { 8, 32 }, { 16, 64 }, { 32, 32 },
		{ 48, 200 }, { 64, 64 }, { 64, 256 },
	};
	double last = 0;
	for (size_t i = 0; i < sizeof size / sizeof *size; i++)
		for (int twice = 1; twice <= 2; twice++) {
			Arena a = { 0 };
			Pipeline p = chain(&a, size[i][0], size[i][0], size[i][1]);
			for (int r = 0; r < p.nrank; r++)
				p.limit[r] = 2 * twice * p.nrank;
			SearchResult r;
			clock_t from = clock();
			if (search_run(&p, 1, &a, &r))
				fail("an even pipeline", (int)i, 0, 0);
			last = (double)(clock() - from) / CLOCKS_PER_SEC;
			PipeBound bound;
			bound_find(&p, &a, &bound);
			if (r.period != bound.period || !r.proven)
				fail("equal to the bound where all blocks take 1", (int)i, r.period, bound.period);
			if (p.micros >= 2 * p.nrank - 1 && r.period != 3 * p.micros + (twice > 1 ? 0 : p.nrank - 1))
				fail("3 m + p - 1, with twice the memory 3 m", (int)i, r.period, p.micros);
			arena_free(&a);
		}
	if (!bad)
		printf("ok equal to the bound where all blocks take as long (64 x 256: %.3f s)\n", last);
}

/* T <= (m + 4 p - 4) C + largest update, with C the largest seconds of a micro-batch on a rank or a line
 * (arXiv 2204.10562). */
static void pe(int cases)
{
	for (int i = 0; i < cases; i++) {
		Arena a = { 0 };
		int n = 1 + below(6);
		Pipeline p = chain(&a, n, n, 1 + below(16));
		double c = 0, update = 0;
		for (int s = 0; s < n; s++) {
			PipeStage *g = &p.stage[s];
			*g = (PipeStage){ .rank = s, .f = uniform(), .b = uniform(), .w = uniform() };
			g->update = 9 * uniform();
			c = fmax(c, g->f + g->b + g->w);
			update = fmax(update, g->update);
			p.hop[s].busy = below(2) ? 3 * uniform() : 0;
			p.hop[s].latency = below(2) ? uniform() : 0;
			if (s < n - 1)
				c = fmax(c, p.hop[s].busy + p.hop[s].latency);
		}
		PipeOrder o;
		PipePlay q = { 0 };
		double most = (p.micros + 4 * n - 4) * c + update;
		if (schedules_find("pe")->order(&p, &a, &o) || !pipe_play(&p, &o, 1, &a, &q))
			fail("PE runs", i, 0, 0);
		if (q.makespan > most * (1 + 1e-12))
			fail("the bound of PE", i, q.makespan, most);
		arena_free(&a);
	}
	if (!bad)
		printf("ok %d pipelines keep the bound of PE\n", cases);
}

/* The exact search is as deep as there are tasks: 8 x 32 with the memory of 2p micro-batches (Table 6 of arXiv
 * 2401.10241, 1.5B), and as many tasks as it takes at all. */
static void deep(void)
{
	static const int size[][2] = { { 8, 32 }, { 8, 85 }, { 16, 256 } };
	for (int i = 0; i < 3; i++) {
		Arena a = { 0 };
		Pipeline p = chain(&a, size[i][0], size[i][0], size[i][1]);
		for (int s = 0; s < p.nstage; s++) {
			p.stage[s] = (PipeStage){ .rank = s, .f = 18.513, .b = 18.086, .w = 9.331, .kept = 1000,
				.kept_w = 366 };
			p.hop[s].latency = 0.626;
			p.limit[s] = 2000 * p.nrank;
		}
		SearchResult r;
		if (search_run(&p, 0.1, &a, &r))
			fail("a deep search", i, 0, 0);
		if (r.bound.period > r.period * (1 + 1e-9) || r.gap > 0.05)
			fail("a deep search, and its gap", i, r.period, r.bound.period);
		arena_free(&a);
	}
	if (!bad)
		printf("ok the exact search of thousands of tasks\n");
}

static void again(void)
{
	double before = INFINITY;
	for (int i = 0; i < 4; i++) {
		Arena a = { 0 };
		state = 5;
		Pipeline p = chain(&a, 6, 6, 12);
		uneven(&p, false);
		memory(&p, 4, 7, false);
		SearchResult r, s;
		double seconds = 1e-3 * (1 << 2 * i);
		if (search_run(&p, seconds, &a, &r) || search_run(&p, seconds, &a, &s))
			fail("found again", i, 0, 0);
		for (int k = 0; k < p.nrank; k++)
			if (memcmp(r.order.task[k], s.order.task[k], sizeof(PipeTask) * (size_t)r.order.ntask[k]))
				fail("the same order for the same input", i, r.period, s.period);
		if (r.period > before)
			fail("more work, not worse", i, r.period, before);
		before = r.period;
		arena_free(&a);
	}
	if (!bad)
		printf("ok the same input gives the same order\n");
}

int main(void)
{
	const char *set = getenv("LONG");
	bool more = set && *set;
	state = 1;
	brute(more ? 2000 : 300, more ? 2e6 : 2e4);
	larger(more ? 200 : 6, more ? 1000000 : 40000);
	named(more ? 3000 : 200);
	pe(more ? 10000 : 500);
	even();
	deep();
	again();
	return bad > 0;
}
