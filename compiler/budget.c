/* The memory of a rank as a budget.
 *
 * The solver limits what values take by its own count (search_memory.c).  What a rank really takes is known when the program is written:
 * copies that transfers make, the window that peers read, gaps between values, scratch of kernels, buffers of data.  So both alternate.  A
 * trial goes on with one plan through all passes, in a child process from which only numbers come back; the graph here stays as it is.
 *
 * Between the quickest plan and the one that holds least there is a ladder of limits for the solver, and it is climbed as far
 * as programs fit; the quickest of them is taken.  Neither the ladder nor the order in which its low rungs are tried depends on the budget: the smallest budget that is named when
 * nothing fits is that of a plan that was tried, and would be tried again. */
#include "compiler.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNGS = 8, NAMED = 5, NAME_BYTES = 96 };
/* The solver's count is believed below a quarter of the budget, and always where no program is asked for. */
static const double SMALL = 64 << 20;

Budget budget = { .report = -1 };

typedef struct Peak { char name[NAME_BYTES]; Loc loc; int64_t bytes; } Peak;
typedef struct Trial {
	int64_t bytes;                  /* of a rank; 0: there is no such program */
	double seconds;                 /* of a step, by the solver's count */
	int npeak;
	Peak peak[NAMED];               /* the largest of what is in memory at the busiest action */
} Trial;

/* ---- in the child ---- */

static int larger(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : (x->id > y->id) - (x->id < y->id);
}

static Loc place_of(const Value *v)
{
	while (v->def && kernel_transfer(v->def))
		v = v->def->in[0];
	return v->loc.file ? v->loc : v->def ? v->def->loc : v->loc;
}

static void tell(const Trial *t)
{
	if (write(budget.report, t, sizeof *t) != (ssize_t)sizeof *t)   /* less than a pipe holds: all or nothing */
		_exit(1);
}

void budget_tell(int64_t bytes, double seconds)
{
	tell(&(Trial){ .bytes = bytes, .seconds = seconds });
}

void budget_report(const Plan *p, int64_t bytes)
{
	Trial t = { .bytes = bytes, .seconds = budget.seconds };
	Slot **list = calloc((size_t)p->nslot + 1, sizeof *list);
	int n = 0, peak = p->layout.peak;
	if (!list)
		die("no memory");
	for (int i = 0; i < p->nslot; i++) {
		Slot *s = p->slot[i];
		if (s && s->store == s && !s->view && s->first <= peak && s->last >= peak)
			list[n++] = s;
	}
	qsort(list, (size_t)n, sizeof *list, larger);
	for (; t.npeak < n && t.npeak < NAMED; t.npeak++) {
		Peak *k = &t.peak[t.npeak];
		snprintf(k->name, sizeof k->name, "%s", list[t.npeak]->v->name);
		k->loc = place_of(list[t.npeak]->v);
		k->bytes = list[t.npeak]->bytes;
	}
	free(list);
	tell(&t);
}

/* ---- in the parent ---- */

bool budget_start(BudgetTry *t, double limit)
{
	int pipes[2];
	fflush(NULL);
	if (pipe(pipes))
		die("no pipe for a trial: %s", strerror(errno));
	pid_t child = fork();
	if (child < 0)
		die("no process for a trial: %s", strerror(errno));
	if (child) {
		close(pipes[1]);
		*t = (BudgetTry){ pipes[0], child };
		return false;
	}
	close(pipes[0]);
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(1);
	opt.stop_after = opt.dump_after = opt.explain = NULL;
	budget.limit = limit;
	budget.report = pipes[1];
	return true;
}

static Trial finish(BudgetTry *from)
{
	Trial t = { 0 }, next;
	for (size_t got = 0;;) {                /* the last that came whole */
		ssize_t n = read(from->from, (char *)&next + got, sizeof next - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
		if (got == sizeof next) {
			t = next;
			got = 0;
		}
	}
	close(from->from);
	while (waitpid((pid_t)from->child, NULL, 0) < 0 && errno == EINTR)
		;
	from->child = 0;
	return t;
}

bool budget_finish(BudgetTry *from, int64_t *bytes, double *seconds)
{
	if (!from->child)
		return false;
	Trial t = finish(from);
	*bytes = t.bytes;
	*seconds = t.seconds;
	return t.bytes > 0;
}

static double rung(double least, double most, int k)
{
	if (k == RUNGS)
		return 0;
	return k ? least * pow(most / least, (double)k / RUNGS) : 1;    /* a byte: as little as there is */
}

static int refuse(const Mesh *m, const Trial *t)
{
	fail_at(EXIT_NOPLAN, m->loc, "no plan was found that fits into %.0f bytes a rank: the smallest needs %" PRId64, figures.memory, t->bytes);
	for (int i = 0; i < t->npeak; i++)
		note_at(t->peak[i].loc, "then %s takes %" PRId64 " of them", escape_text(&process, t->peak[i].name, strlen(t->peak[i].name)), t->peak[i].bytes);
	return -1;
}

bool budget_small(double most)
{
	return opt.out ? 4 * most + SMALL <= figures.memory : most <= figures.memory;
}

int budget_find(const Mesh *m, double least, double most)
{
	static const int low[] = { RUNGS, 0, 1, 2, 4 };
	Trial best = { .bytes = INT64_MAX };
	int at = -1, taken;
	BudgetTry from;
	for (size_t i = 0; i < sizeof low / sizeof *low && at < 0; i++) {
		if (budget_start(&from, rung(least, most, low[i])))
			return 0;
		Trial t = finish(&from);
		if (!t.bytes && !i)
			return 0;               /* there is no program to be had, whatever the plan: its own message says why */
		if (t.bytes && t.bytes < best.bytes)
			best = t;
		if (t.bytes && (double)t.bytes <= figures.memory)
			at = low[i];
	}
	if (at < 0)
		return refuse(m, &best);
	taken = at;
	for (int high = RUNGS; high - at > 1;) {        /* at fits, high does not */
		int half = (at + high) / 2;
		if (budget_start(&from, rung(least, most, half)))
			return 0;
		Trial t = finish(&from);
		if (t.bytes && (double)t.bytes <= figures.memory) {
			at = half;
			if (t.seconds < best.seconds) {
				best = t;
				taken = at;
			}
		} else {
			high = half;
		}
	}
	budget.limit = rung(least, most, taken);
	budget.bytes = best.bytes;
	return 0;
}
