/* What a plan gains over plainer ones, so that who asks for more than pays is told: the same model on fewer ranks, and
 * without @recompute.
 *
 * Each of these is a trial of its own (budget.c), a child process that is started where the ways part and runs beside the
 * compiler; what it found is read when the program has been written.  On fewer ranks only the plan is solved: on one rank
 * always, for there every node has one way; on half of them where the model is small and the mesh a line. */
#include "compiler.h"

#include <inttypes.h>
#include <unistd.h>

enum { HALVED = 400 };                   /* nodes: more are not solved again for half of the ranks */

static BudgetTry plain, one, half;
static Loc again;                       /* of the first @recompute */
static int halved;

static bool wanted(const Graph *g)
{
	return opt.out && !opt.dump_after && !opt.stop_after && budget.report < 0 && !g->model->main;
}

bool compare_plain(const Graph *g, Loc loc)
{
	again = loc;
	return wanted(g) && budget_start(&plain, 0);
}

/* In the child: the plan of the same model on a mesh of so many ranks. */
static void fewer(Graph *g, Plan *p, int n, BudgetTry *t)
{
	Mesh *m = p->main;
	if (!budget_start(t, 0))
		return;
	for (int k = 0; k < m->ndim; k++)
		m->dim[k] = k ? 1 : n;
	m->nrank = n;
	m->first = 0;
	m->rank = NULL;
	if (figures_read(opt.machine, m) || sbp_solve(g, p, m) || (figures.memory && budget.held > figures.memory))
		_exit(1);
	budget_tell(1, budget.seconds);
	_exit(0);
}

void compare_ranks(Graph *g, Plan *p)
{
	const Mesh *m = p->main;
	if (!wanted(g) || p->nplace != 1 || m->nrank == 1)
		return;
	fewer(g, p, 1, &one);
	halved = m->nrank / 2;
	if (m->ndim == 1 && halved > 1 && g->nnode <= HALVED)
		fewer(g, p, halved, &half);
}

void compare_tell(const Plan *p, int64_t bytes)
{
	int64_t held, any;
	double seconds = 0, by_half = 0, best;
	if (budget_finish(&plain, &held, &seconds) && held <= bytes)
		warn_at(again, "@recompute does not pay: a rank takes %" PRId64 " bytes with it and %" PRId64 " without",
		        bytes, held);
	bool alone = budget_finish(&one, &any, &seconds), halves = budget_finish(&half, &any, &by_half);
	int n = halves && (!alone || by_half < seconds) ? halved : 1;
	best = n == 1 ? seconds : by_half;
	if ((alone || halves) && best <= budget.seconds * (1 + 1e-9))
		warn_at(p->main->loc, "%d ranks are predicted to take %.4g s a step, %d rank%s %.4g s: more do not pay "
		        "by the figures of machine %s (--machine)", p->main->nrank, budget.seconds, n, n == 1 ? "" : "s", best,
		        opt.machine ? opt.machine : p->main->cuda ? "a100x8" : "cpu");
}
