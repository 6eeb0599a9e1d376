/* Repeats in a list of rows: the layers of a model, found in what is printed for its actions.
 *
 * For every period p one walk finds the runs of indices i with row[i] == row[i + p].  A run of length L >= p is 1 + L /
 * p copies and saves L / p * p rows.  The repeat that saves most is taken, then the lists to its left and right are
 * treated alike.  Periods are tried while the product of period and length stays below WORK, so the work is bounded for
 * any model. */
#include "emit/emit.h"

enum { WORTH = 4 };                     /* a repeat that saves fewer rows is not worth a table of its own */
enum { WORK = 1 << 26 };

typedef struct Run { int from, to, period; } Run;      /* row[i] == row[i + period] for from <= i < to */
typedef struct Finder {
	Arena *a;
	RepeatKnown *known; const void *of;
	Run *run; int nrun;
	Repeat *out; int nout;
} Finder;

static void find_runs(Finder *f, const int *row, int n)
{
	for (int p = 1; p <= n / 2 && (int64_t)p * n <= WORK; p++) {
		int from = 0;
		for (int i = 0; i + p <= n; i++) {
			if (i + p < n && row[i] == row[i + p])
				continue;
			if (i - from >= p) {
				Run r = { from, i, p };
				arena_push(f->a, f->run, f->nrun, r);
			}
			from = i + 1;
		}
	}
}

static void add(Finder *f, int from, int period, int count)
{
	Repeat r = { from, period, count };
	if (period)
		arena_push(f->a, f->out, f->nout, r);
}

/* The rows of a repeat may begin with any row of its period: where they begin as a known one does, which costs at most
 * one repetition. */
static Repeat turned(const Finder *f, Repeat r, int rows)
{
	for (int k = 0; k < r.period; k++) {
		Repeat x = { r.from + k, r.period, (rows - k) / r.period };
		if (x.count > 1 && f->known(f->of, &x))
			return x;
	}
	return r;
}

static void cut(Finder *f, int lo, int hi, int depth)
{
	Repeat best = { 0 };
	int saved = 0, rows = 0;
	for (int i = 0; i < f->nrun; i++) {
		const Run *r = &f->run[i];
		int from = r->from > lo ? r->from : lo, to = r->to + r->period < hi ? r->to : hi - r->period,
			k = (to - from) / r->period;
		if (to - from >= r->period && k * r->period > saved) {
			best = (Repeat){ from, r->period, k + 1 };
			saved = k * r->period;
			rows = to - from + r->period;
		}
	}
	if (saved < WORTH || depth == 0) {
		add(f, lo, hi - lo, 1);
		return;
	}
	best = turned(f, best, rows);
	cut(f, lo, best.from, depth - 1);
	add(f, best.from, best.period, best.count);
	cut(f, best.from + best.period * best.count, hi, depth - 1);
}

Repeat *repeats_find(Arena *a, const int *row, int n, RepeatKnown *known, const void *of, int *count)
{
	Finder f = { .a = a, .known = known, .of = of };
	find_runs(&f, row, n);
	cut(&f, 0, n, 24);
	*count = f.nout;
	return f.out;
}
