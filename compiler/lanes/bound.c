/* Lower bounds of the period, the span and the makespan of every order that fits the memory.
 *
 * A rank begins a step with F only: its first B waits for the way of a micro-batch to the end of the pipeline and
 * back, and memory limits how many F run before it.  It ends a step in the same way: after its last F, the way to the
 * last B is as long, and memory limits the B and W that are left to fill it.  What these cannot fill is idle:
 *
 *     begin   | F F F F ........ B                 idle = way - most seconds of F that fit in the memory
 *     end     | F B W B W ........ B W             idle = way - most seconds of B and W that fit in the memory
 *
 * Both add up if the first B comes before the last F, which memory decides.  In between, memory limits the rate: on a
 * rank with one stage and room for K micro-batches, F of micro-batch k + K waits for B of k, so ways follow each
 * other.  On every rank the bytes of all micro-batches, each for the seconds of its way, need as much room.  A rank
 * then needs its idle seconds, its work and its update.
 *
 * Longer paths lead from the beginning of one rank through the work of a second to the end of a third.  They give a
 * lower bound of A[r][q] (see period.c), and cycles of one or two ranks a bound of the period.  Seconds that fit in
 * the memory are the optimum of a linear program with one constraint: the densest part first. */
#include "lanes/words.h"

#include <math.h>
#include <string.h>

typedef struct Item { double seconds, bytes; int most; } Item;          /* of a knapsack: at most so many times */

static double knapsack(Item *item, int n, double room)
{
	double sum = 0;
	for (int left = n; left; left--) {
		int best = 0;
		for (int i = 1; i < left; i++)
			if (item[i].seconds * item[best].bytes > item[best].seconds * item[i].bytes)
				best = i;
		Item t = item[best];
		item[best] = item[left - 1];
		double times = t.most;
		if (t.bytes > 0 && times * t.bytes > room)
			times = room > 0 ? room / t.bytes : 0;
		sum += times * t.seconds;
		room -= times * t.bytes;
	}
	return sum;
}

typedef struct Bound {
	const Pipeline *p;
	const Words *w;
	double *forth, *back;           /* [a][c]: start of F of a to end of F of c; the same from B of c to B of a */
	double *turn;                   /* by stage: end of F to start of B */
	bool *top, *bottom;             /* by stage: no later, no earlier stage of its rank hangs on it */
	double *idle, *idle_b;          /* by rank: seconds of a step; before its last B, beside F and B */
	double *fb;                     /* by rank: seconds of F and B */
	double *up, *down;              /* [t][q]: begin of q to begin of t; [t][r]: last B of t to last W of r */
} Bound;

static void paths(Bound *b)
{
	const Pipeline *p = b->p;
	int n = p->nstage;
	for (int i = 0; i < n * n; i++)
		b->forth[i] = b->back[i] = -INFINITY;
	for (int a = 0; a < n; a++) {
		b->forth[a * n + a] = p->stage[a].f;
		b->back[a * n + a] = p->stage[a].b;
	}
	/* hops go to later stages; by `to` ascending, what leads to `from` is complete */
	for (int to = 0; to < n; to++)
		for (int h = 0; h < p->nhop; h++) {
			const PipeHop *hop = &p->hop[h];
			if (hop->to != to)
				continue;
			double way = b->w->line[2 * h].latency + b->w->line[2 * h].busy;
			for (int a = 0; a <= hop->from; a++) {
				double f = b->forth[a * n + hop->from] + way + p->stage[to].f;
				double g = b->back[a * n + hop->from] + way + p->stage[to].b;
				b->forth[a * n + to] = fmax(b->forth[a * n + to], f);
				b->back[a * n + to] = fmax(b->back[a * n + to], g);
			}
		}
	for (int s = n; s-- > 0;) {
		b->top[s] = b->bottom[s] = true;
		for (int c = 0; c < n; c++)
			if (c != s && p->stage[c].rank == p->stage[s].rank) {
				b->top[s] = b->top[s] && isinf(b->forth[s * n + c]);
				b->bottom[s] = b->bottom[s] && isinf(b->forth[c * n + s]);
			}
		for (int h = 0; h < p->nhop; h++)
			if (p->hop[h].from == s) {
				const PipeStage *to = &p->stage[p->hop[h].to];
				double way = b->w->line[2 * h].latency + b->w->line[2 * h].busy;
				b->turn[s] = fmax(b->turn[s], 2 * way + to->f + b->turn[p->hop[h].to] + to->b);
			}
	}
}

/* Memory limits the rate: seconds of a step on rank r up to its last B, and up to its last W. */
static void rate(const Bound *b, int r, double *last_b, double *last_w)
{
	const Pipeline *p = b->p;
	double area = 0, room = (double)b->w->room[r];
	const PipeStage *one = NULL;
	int n = 0, m = p->micros, s = 0;
	*last_b = *last_w = 0;
	for (int i = 0; i < p->nstage; i++) {
		const PipeStage *g = &p->stage[i];
		if (g->rank != r)
			continue;
		double kept = (double)g->kept, kept_w = (double)g->kept_w;
		area += m * (kept * (g->f + b->turn[i] + g->b) + fmin(kept, kept_w) * g->w);
		one = g;
		s = i;
		n++;
	}
	if (area > 0 && room > 0)
		*last_w = area / room;
	if (n == 1 && one->kept > 0 && b->w->room[r] >= one->kept) {
		int k = (int)fmin(m, (double)(b->w->room[r] / one->kept)), ways = (m + k - 1) / k;
		*last_b = ways * (one->f + b->turn[s] + one->b) + (m - 1) % k * fmax(one->f, one->b);
		*last_w = fmax(*last_w, *last_b + one->w);
	}
}

/* The begin and the end of a step on rank r. */
static void idle(Bound *b, int r, Item *item)
{
	const Pipeline *p = b->p;
	int n = p->nstage, m = p->micros, nf = 0, tops = 0;
	double first = INFINITY, last = INFINITY, chain = INFINITY, own = 0, held = 0;
	double room = (double)b->w->room[r], least = INFINITY;
	for (int s = 0; s < n; s++) {
		const PipeStage *g = &p->stage[s];
		if (g->rank != r)
			continue;
		item[nf++] = (Item){ g->f, (double)g->kept, m };
		own += g->b + g->w;
		held += (double)g->kept;
		b->fb[r] += m * (g->f + g->b);
		if (!b->top[s])
			continue;
		double before = 0, after = 0;
		for (int a = 0; a < n; a++)
			if (p->stage[a].rank == r) {
				before = fmax(before, b->forth[a * n + s]);
				after = fmax(after, b->back[a * n + s] + p->stage[a].w);
			}
		tops++;
		first = fmin(first, before + b->turn[s]);
		last = fmin(last, b->turn[s]);
		chain = fmin(chain, b->turn[s] + after);
		least = fmin(least, (double)g->kept);
	}
	if (!nf)
		return;
	double begin = fmax(0, first - knapsack(item, nf, room));

	/* what is left beside the last micro-batch, of which each stage of the rank has one if there is one top */
	int left = tops == 1 ? m - 1 : m, nb = 0, nw = 0;
	bool apart = m * held > room;
	room -= tops == 1 ? held : least;
	Item *only = item + 2 * n;
	for (int s = 0; s < n; s++) {
		const PipeStage *g = &p->stage[s];
		if (g->rank != r)
			continue;
		double kb = (double)g->kept, kw = (double)g->kept_w;
		only[nb++] = (Item){ g->b, kb, left };
		if (kw < kb && g->w * kb >= (g->b + g->w) * kw) {
			item[nw++] = (Item){ g->w, kw, left };
			item[nw++] = (Item){ g->b, kb - kw, left };
		} else {
			item[nw++] = (Item){ g->b + g->w, kb, left };
		}
	}
	double fill = knapsack(item, nw, room), fill_b = knapsack(only, nb, room);
	double end = fmax(0, fmax(last - fill, chain - fill - (tops == 1 ? own : 0))), end_b = fmax(0, last - fill_b);
	b->idle[r] = apart ? begin + end : fmax(begin, end);
	b->idle_b[r] = apart ? begin + end_b : fmax(begin, end_b);
	double last_b, last_w;
	rate(b, r, &last_b, &last_w);
	b->idle_b[r] = fmax(b->idle_b[r], last_b - b->fb[r]);
	b->idle[r] = fmax(b->idle[r], last_w - (b->w->load[r] - b->w->update[r]));
}

static void between(Bound *b)
{
	const Pipeline *p = b->p;
	int n = p->nstage, nrank = p->nrank;
	double *up = b->up;
	for (int i = 0; i < nrank * nrank; i++)
		up[i] = b->down[i] = INFINITY;
	for (int c = 0; c < n; c++) {
		if (!b->bottom[c])
			continue;
		int t = p->stage[c].rank;
		for (int q = 0; q < nrank; q++) {
			double from = -INFINITY, to = -INFINITY;
			for (int a = 0; a < n; a++)
				if (p->stage[a].rank == q) {
					from = fmax(from, b->forth[a * n + c] - p->stage[c].f);
					to = fmax(to, b->back[a * n + c] - p->stage[c].b + p->stage[a].w);
				}
			up[t * nrank + q] = fmin(up[t * nrank + q], from);
			b->down[t * nrank + q] = fmin(b->down[t * nrank + q], to);
		}
	}
	for (int i = 0; i < nrank * nrank; i++) {
		up[i] = up[i] < INFINITY ? up[i] : -INFINITY;
		b->down[i] = b->down[i] < INFINITY ? b->down[i] : -INFINITY;
	}
}

/* The longest path through rank t to the end of rank r that begins `at` after its own beginning or before. */
static double through(const Bound *b, int t, int r)
{
	double way = b->idle_b[t] + b->fb[t] + b->down[t * b->p->nrank + r] + b->w->update[r];
	return t == r ? fmax(way, b->idle[t] + b->w->load[t]) : way;
}

static double largest_mean(const Bound *b, Arena *a)
{
	int n = b->p->nrank;
	double *path = arena_array(a, double, (size_t)n * (size_t)n), most = 0;
	for (int i = 0; i < n * n; i++)
		path[i] = -INFINITY;
	for (int t = 0; t < n; t++)
		for (int r = 0; r < n; r++) {
			double rest = through(b, t, r);
			for (int q = 0; q < n && rest > 0; q++)
				path[r * n + q] = fmax(path[r * n + q], b->up[t * n + q] + rest);
		}
	for (int r = 0; r < n; r++)
		for (int q = 0; q <= r; q++)
			most = fmax(most, 0.5 * (path[r * n + q] + path[q * n + r]));
	for (int c = 0; c < b->w->nclock; c++)
		most = fmax(most, b->w->load[c]);
	return most;
}

void bound_find(const Pipeline *p, Arena *a, PipeBound *to)
{
	Words w;
	words_begin(p, a, &w);
	size_t n = (size_t)p->nstage, nrank = (size_t)p->nrank;
	Bound b = {
		.p = p, .w = &w,
		.forth = arena_array(a, double, n * n), .back = arena_array(a, double, n * n),
		.turn = arena_array(a, double, n), .top = arena_array(a, bool, n), .bottom = arena_array(a, bool, n),
		.idle = arena_array(a, double, nrank), .idle_b = arena_array(a, double, nrank),
		.fb = arena_array(a, double, nrank),
		.up = arena_array(a, double, nrank * nrank), .down = arena_array(a, double, nrank * nrank),
	};
	Item *item = arena_array(a, Item, 3 * n + 1);
	*to = (PipeBound){ 0 };
	paths(&b);
	for (int r = 0; r < p->nrank; r++)
		idle(&b, r, item);
	between(&b);
	to->period = largest_mean(&b, a);
	for (int t = 0; t < p->nrank; t++) {
		double head = 0;
		for (int q = 0; q < p->nrank; q++)
			head = fmax(head, b.up[t * p->nrank + q]);
		for (int r = 0; r < p->nrank; r++)
			to->makespan = fmax(to->makespan, head + through(&b, t, r));
		to->span = fmax(to->span, b.idle[t] + w.load[t]);
	}
	if (p->barrier)
		to->period = to->makespan;
}
