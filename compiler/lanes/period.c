/* The period of an order: the seconds per step when steps follow each other without a barrier.
 *
 * A rank runs its word, then its updates, then its word for the next step.  A task starts when its rank is free and
 * what it reads has arrived.  Transfers are buffered, and a line carries one message at a time.  An update also waits
 * for the verdict, which follows the last F of the last stage.  That never delays it: a rank updates after the last B
 * of its stages, and the gradient for this B left the last stage after the same F and took at least as long.
 *
 * With x_r(t) the beginning of step t on rank r, and A[r][q] the longest path from the beginning of a step on q to its
 * end on r, x_r(t + 1) = max over q of A[r][q] + x_q(t): a linear system over (max, +).  It grows by the largest mean
 * weight of a cycle of A, which is the period (Baccelli, Cohen, Olsder, Quadrat: Synchronization and Linearity, 3.2).
 * Lines are clocks like ranks, as a message also waits for the last message of the step before.  If a barrier stands
 * between steps (a norm of all gradients), the period is the makespan.
 *
 *     largest seconds of work of a rank  <=  period  <=  span  <=  makespan
 *
 * The second holds because starts that are `span` apart from step to step are feasible.  It is strict where a rank can
 * begin its step later than as soon as possible without harm.
 *
 * period_find raises a guess from below.  Given a guess, it looks for beginnings x with end_r - guess <= x_r by passes
 * over all tasks.  If they exist, the period is at most the guess.  If not, beginnings raise each other in a cycle,
 * and its mean is the next guess.  Each guess is the mean of a cycle, so the last one is the period. */
#include "lanes/words.h"

#include <math.h>
#include <string.h>

static void give(Words *w, int l, int k, int position, double end, int origin, int *nstack)
{
	Pass *s = &w->pass;
	for (const int *line = w->send[l]; *line >= 0; line++) {
		const Line *n = &w->line[*line];
		int clock = w->nrank + *line;
		LineMessage *m = &s->message[(size_t)*line * (size_t)w->micros + (size_t)k];
		*m = (LineMessage){ end, end + n->latency + n->busy, position, origin };
		if (n->busy > 0) {
			double free = s->end[clock];
			if (free > end)
				*m = (LineMessage){ free, free + n->latency + n->busy, position, s->origin[clock] };
			s->end[clock] = m->sent + n->busy;
			s->origin[clock] = m->origin;
		}
		s->sent[*line]++;
		if (s->wait[*line]) {
			s->wait[*line] = false;
			s->stack[(*nstack)++] = n->to;
		}
	}
}

/* Runs rank r until a task has to wait for a message that is not sent yet. */
static void advance(Words *w, const Word *o, int r, int *nstack)
{
	Pass *s = &w->pass;
	int i = s->at[r], n = o[r].n, origin = s->origin[r];
	double now = s->end[r];
	for (; i < n; i++) {
		int l = o[r].at[i], *count = &s->count[w->counter[l]], k = *count, from = origin;
		double t = now;
		for (const int *line = w->need[l]; *line >= 0; line++) {
			if (s->sent[*line] <= k) {
				s->wait[*line] = true;
				goto stop;
			}
			const LineMessage *m = &s->message[(size_t)*line * (size_t)w->micros + (size_t)k];
			if (m->there > t)
				t = m->there, from = m->origin;
		}
		s->start[r][i] = t;
		s->micro[r][i] = k;
		*count = k + 1;
		now = t + w->seconds[l];
		origin = from;
		give(w, l, k, i, now, origin, nstack);
	}
stop:
	w->work += i - s->at[r];
	s->at[r] = i;
	s->end[r] = now;
	s->origin[r] = origin;
}

bool period_pass(Words *w, const Word *o)
{
	Pass *s = &w->pass;
	int nstack = 0;
	memset(s->count, 0, sizeof *s->count * (size_t)w->nletter);
	memset(s->at, 0, sizeof *s->at * (size_t)w->nrank);
	memset(s->sent, 0, sizeof *s->sent * (size_t)w->nline);
	memset(s->wait, 0, sizeof *s->wait * (size_t)w->nline);
	for (int c = 0; c < w->nclock; c++) {
		s->end[c] = s->begin[c];
		s->origin[c] = c;
	}
	for (int r = w->nrank; r-- > 0;)
		s->stack[nstack++] = r;
	while (nstack)
		advance(w, o, s->stack[--nstack], &nstack);
	for (int r = 0; r < w->nrank; r++) {
		if (s->at[r] < o[r].n)
			return false;
		s->first[r] = o[r].n ? s->start[r][0] : s->begin[r];
		s->end[r] += w->update[r];
	}
	return true;
}

/* A clock of the cycle of parents with the largest mean; -1: there is none. */
static int cycle(Words *w, double *mean)
{
	int best = -1;
	*mean = 0;
	for (int c = 0; c < w->nclock; c++)
		w->mark[c] = -1;
	for (int c = 0; c < w->nclock; c++) {
		int d = c;
		while (d >= 0 && w->mark[d] < 0) {
			w->mark[d] = c;
			d = w->parent[d];
		}
		if (d < 0 || w->mark[d] != c)
			continue;
		double sum = 0;
		int n = 0, e = d;
		do {
			sum += w->length[e];
			n++;
			e = w->parent[e];
		} while (e != d);
		if (sum / n > *mean)
			*mean = sum / n, best = d;
	}
	return best;
}

/* One pass over all tasks, which raises beginnings.  1: some were raised; 0: none; -1: a deadlock. */
static int raise_begins(Words *w, const Word *o, double guess, void (*seen)(void *, int), void *data)
{
	Pass *s = &w->pass;
	bool raised = false;
	memcpy(s->begin, w->x, sizeof *w->x * (size_t)w->nclock);
	if (!period_pass(w, o))
		return -1;
	for (int c = 0; c < w->nclock; c++) {
		w->x[c] = s->end[c] - guess;
		if (w->x[c] <= s->begin[c] + 1e-12 * fabs(s->end[c])) {
			w->x[c] = s->begin[c];
			continue;
		}
		w->parent[c] = s->origin[c];
		w->length[c] = s->end[c] - s->begin[s->origin[c]];
		raised = true;
		if (seen)
			seen(data, c);
	}
	return raised;
}

static void orphans(Words *w)
{
	for (int c = 0; c < w->nclock; c++)
		w->parent[c] = -1;
}

/* With a barrier, all ranks begin a step at the same time. */
static double whole(Words *w, const Word *o)
{
	double most = 0;
	memset(w->pass.begin, 0, sizeof *w->pass.begin * (size_t)w->nclock);
	if (!period_pass(w, o))
		return INFINITY;
	for (int r = 0; r < w->nrank; r++)
		most = fmax(most, w->pass.end[r]);
	return most;
}

double period_find(Words *w, const Word *o, double stop)
{
	double guess = 0, mean;
	if (w->p->barrier) {
		guess = whole(w, o);
		return guess < stop ? guess : INFINITY;
	}
	for (int c = 0; c < w->nclock; c++)
		guess = fmax(guess, w->load[c]);
	orphans(w);
	while (guess < stop) {
		int raised = raise_begins(w, o, guess, NULL, NULL);
		if (raised <= 0)
			return raised ? INFINITY : guess;
		if (cycle(w, &mean) >= 0 && mean > guess) {
			guess = mean;
			orphans(w);
		}
	}
	return INFINITY;
}

int period_cycle(Words *w, const Word *o, double guess, void (*seen)(void *, int clock), void *data)
{
	double mean;
	orphans(w);
	while (raise_begins(w, o, guess, seen, data) > 0) {
		int c = cycle(w, &mean);
		if (c >= 0)
			return c;
	}
	return -1;
}

int period_compare(const WordCost *a, const WordCost *b)
{
	double near = 1 + 1e-9;
	if (a->period > b->period * near || b->period > a->period * near)
		return a->period < b->period ? -1 : 1;
	if (a->makespan > b->makespan * near || b->makespan > a->makespan * near)
		return a->makespan < b->makespan ? -1 : 1;
	return (a->peak > b->peak) - (a->peak < b->peak);
}

void period_cost(Words *w, const Word *o, WordCost *c)
{
	*c = (WordCost){ .period = INFINITY, .makespan = INFINITY, .span = INFINITY, .fits = true };
	for (int r = 0; r < w->nrank; r++) {
		int64_t peak = words_peak(w, o, r);
		c->fits = c->fits && peak <= w->room[r];
		c->peak = peak > c->peak ? peak : c->peak;
	}
	memset(w->pass.begin, 0, sizeof *w->pass.begin * (size_t)w->nclock);
	if (!period_pass(w, o))
		return;
	c->makespan = c->span = 0;
	memset(w->x, 0, sizeof *w->x * (size_t)w->nclock);
	for (int r = 0; r < w->nrank; r++) {
		w->x[r] = w->pass.first[r];
		c->makespan = fmax(c->makespan, w->pass.end[r]);
		c->span = fmax(c->span, w->pass.end[r] - w->pass.first[r]);
	}
	c->period = period_find(w, o, INFINITY);
}
