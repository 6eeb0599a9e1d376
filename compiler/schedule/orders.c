/* The order in which the ranks of a pipeline run their blocks: by a named schedule, by a file of PyTorch's, by the
 * solver, from the times of the blocks (times.c), or by @lane of a dump. */
#include "schedule/schedule.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 64 };                    /* played until the period is known */

/* ---- lanes as text ---- */

static const struct { char letter; BlockKind kind; } letters[] = {
	{ 'F', BLOCK_F }, { 'I', BLOCK_B }, { 'W', BLOCK_W }, { 'B', BLOCK_BW },
};
enum { LETTERS = sizeof letters / sizeof *letters };
static const char reduce[] = "REDUCE_GRAD";

static const char *task_text(Arena *a, const PipeTask *t)
{
	int k = 0;
	if (t->kind == BLOCK_REDUCE)
		return arena_printf(a, "%d%s", t->stage, reduce);
	while (letters[k].kind != t->kind)
		k++;
	return arena_printf(a, "%d%c%d", t->stage, letters[k].letter, t->micro);
}

/* Writes the order as @lane, so that a dump contains it. */
static void write_lanes(Model *m, const PipeOrder *o, int nrank)
{
	for (int r = 0; r < nrank; r++) {
		Annot *a = arena_new(&m->arena, Annot);
		const char *text = "";
		for (int i = 0; i < o->ntask[r]; i++)
			text = arena_printf(&m->scratch, "%s%s%s", text, i ? " " : "",
				task_text(&m->scratch, &o->task[r][i]));
		a->name = name_of("lane");
		arena_push(&m->arena, a->arg, a->narg, ((Arg){ .kind = ARG_INT, .key = name_of("rank"), .i = r,
			.f = r }));
		arena_push(&m->arena, a->arg, a->narg, ((Arg){ .kind = ARG_STRING, .s = name_of(text) }));
		if (annot_check(a, ON_MODEL))
			die("@lane is refused");
		annot_add(&m->annot, a);
	}
}

/* One task, as "3F1" or "3REDUCE_GRAD"; false: it is none. */
static bool read_task(const char **at, PipeTask *t)
{
	char *end;
	long stage = strtol(*at, &end, 10);
	int k = 0;
	if (end == *at || stage < 0 || stage > INT_MAX)
		return false;
	size_t word = sizeof reduce - 1;
	if (!strncmp(end, reduce, word) && (!end[word] || end[word] == ' ')) {
		*t = (PipeTask){ BLOCK_REDUCE, (int)stage, -1 };
		*at = end + word + strspn(end + word, " ");
		return true;
	}
	while (k < LETTERS && letters[k].letter != *end)
		k++;
	*at = end + 1;
	long micro = k < LETTERS ? strtol(*at, &end, 10) : -1;
	if (k == LETTERS || end == *at || micro < 0 || micro > INT_MAX || (*end && *end != ' '))
		return false;
	*t = (PipeTask){ letters[k].kind, (int)stage, (int)micro };
	*at = end + strspn(end, " ");
	return true;
}

/* The order that @lane gives; 1: there is none, -1 after explaining. */
static int read_lanes(Graph *g, PipeOrder *o)
{
	const Pipeline *pipe = &g->model->plan->stages->pipe;
	int lanes = 0;
	o->task = arena_array(g->arena, PipeTask *, pipe->nrank + 1);
	o->ntask = arena_array(g->arena, int, pipe->nrank + 1);
	for (const Annot *a = g->model->annot; a; a = a->next) {
		if (strcmp(a->name, "lane"))
			continue;
		int64_t r = arg_find(a->arg, a->narg, "rank")->i;
		const Arg *tasks = arg_find(a->arg, a->narg, "tasks");
		if (r >= pipe->nrank || o->ntask[r]) {
			err_at(a->loc, r < pipe->nrank ? "rank %lld has two lanes" : "the pipeline has no rank %lld",
				(long long)r);
			return -1;
		}
		for (const char *at = tasks->s; *at;) {
			PipeTask t;
			const char *from = at;
			if (!read_task(&at, &t)) {
				err_at(tasks->loc,
					"%.20s is no task: write stage, kind (F, I, W or B) and micro-batch, as 0F3, "
					"or 0REDUCE_GRAD",
					from);
				return -1;
			}
			arena_push(g->arena, o->task[r], o->ntask[r], t);
		}
		lanes++;
	}
	return lanes ? 0 : 1;
}

/* The order of the solver.  If none fits the memory, which is an estimate, the order with the least excess that is
 * found by doubling what there is for kept values: the memory plan reports it. */
static int search(Graph *g, Loc loc, PipeOrder *o)
{
	Stages *s = g->model->plan->stages;
	double seconds = opt.schedule_seconds < 0 ? SEARCH_USUAL : (double)opt.schedule_seconds;
	Pipeline p = s->pipe;
	SearchResult best;
	int bad = search_run(&p, seconds, g->arena, &best);
	int64_t *limit = arena_array(g->scratch, int64_t, p.nrank + 1);
	for (int64_t more = 1 << 20; bad && p.limit && more < INT64_MAX / 4; more *= 2) {
		for (int r = 0; r < p.nrank; r++)
			limit[r] = s->pipe.limit[r] + more;
		p.limit = limit;
		bad = search_run(&p, seconds, g->arena, &best);
	}
	if (bad) {
		err_at(loc, "no order of micro-batches was found");
		return -1;
	}
	*o = best.order;
	s->bound = best.bound.period;
	s->proven = best.proven;
	return 0;
}

/* An order without reductions, which count as part of the updates. */
static PipeOrder without_reductions(const PipeOrder *o, int nrank, Arena *a)
{
	PipeOrder to = { arena_array(a, PipeTask *, nrank + 1), arena_array(a, int, nrank + 1) };
	for (int r = 0; r < nrank; r++)
		for (int i = 0; i < o->ntask[r]; i++)
			if (o->task[r][i].kind != BLOCK_REDUCE)
				arena_push(a, to.task[r], to.ntask[r], o->task[r][i]);
	return to;
}

/* The seconds of a step, and their bound if the solver has not found it.  For an order that needs more memory than
 * there is, the memory has no limit. */
static void predict(Graph *g, const PipeOrder *o)
{
	Stages *s = g->model->plan->stages;
	Pipeline p = s->pipe;
	PipePlay play = { 0 };
	PipeBound bound;
	PipeOrder tasks = without_reductions(o, p.nrank, g->scratch);
	if (!pipe_play(&p, &tasks, STEPS, g->scratch, &play))
		return;
	g->model->plan->predicted.seconds = play.period;
	if (s->bound > 0)
		return;
	for (int r = 0; r < s->pipe.nrank; r++)
		if (p.limit && play.peak[r] > p.limit[r])
			p.limit = NULL;
	bound_find(&p, g->scratch, &bound);
	s->bound = bound.period;
}

static int make_order(Graph *g, PipeOrder *o)
{
	Stages *s = g->model->plan->stages;
	Loc loc = annot_find(g->model->annot, "pipeline")->loc;
	if (s->csv) {
		*o = s->csv->order;
		return 0;
	}
	if (!s->schedule)
		return search(g, loc, o);
	const char *why = s->schedule->order(&s->pipe, g->arena, o);
	if (why)
		err_at(loc, "schedule %s cannot run this pipeline: %s", s->schedule->name, why);
	return why ? -1 : 0;
}

static int write_csv(Graph *g, const PipeOrder *o)
{
	const Stages *s = g->model->plan->stages;
	PipeCsv csv;
	FILE *f = fopen(opt.write_schedule, "w");
	if (s->csv)
		csv = *s->csv;
	else
		csv_of(&s->pipe, o, g->scratch, &csv);
	if (f)
		csv_write(f, &csv);
	if (f && !fclose(f))
		return 0;
	err_at((Loc){ 0 }, "cannot write %s: %s", opt.write_schedule, strerror(errno));
	return -1;
}

int orders_find(Graph *g, PipeOrder *o)
{
	const Stages *s = g->model->plan->stages;
	int code = read_lanes(g, o);
	if (code == 1) {
		code = make_order(g, o);
		if (!code)
			reduce_insert(g, o);
		if (!code)
			write_lanes(g->model, o, s->pipe.nrank);
	}
	const char *why = code ? NULL : check_order(&s->pipe, o, g->scratch);
	if (!code && !why && opt.write_schedule && !opt.change.made && write_csv(g, o))
		return -1;
	if (why)
		check_explain(annot_find(g->model->annot, "pipeline")->loc, why);
	else if (!code)
		predict(g, o);
	return code || why ? -1 : 0;
}

/* Evaluation and inference: forward only, one batch after the other.  A rank repeats one list, in which each of its
 * stages is at another batch: `micro` is the lag, in turns of the list.  In units of the longest stage, stage s of a
 * batch m runs at start[s] + m * period, and the stages of a rank fill the period:
 *
 *   rank 0   F0 0  .     F0 1  F2 0  F0 2  F2 1  ..      stages 0 and 2, period 2: start 0, 3; lag 0, 1
 *   rank 1   .     F1 0  F3 -  F1 1  F3 0  F1 2  ..      stages 1 and 3: start 1, 4; lag 0, 2
 */
static int *forward_starts(const Pipeline *pipe, Arena *a, int *period)
{
	int *of = arena_array(a, int, pipe->nrank), *start = arena_array(a, int, pipe->nstage);
	*period = 1;
	for (int i = 0; i < pipe->nstage; i++)
		if (++of[pipe->stage[i].rank] > *period)
			*period = of[pipe->stage[i].rank];
	bool *taken = arena_array(a, bool, pipe->nrank * *period);
	for (int i = 0; i < pipe->nstage; i++) {
		bool *mine = taken + pipe->stage[i].rank * *period;
		start[i] = i ? start[i - 1] + 1 : 0;
		while (mine[start[i] % *period])
			start[i]++;
		mine[start[i] % *period] = true;
	}
	return start;
}

void orders_forward(const Stages *s, Arena *a, PipeOrder *o)
{
	const Pipeline *pipe = &s->pipe;
	int period, *start = forward_starts(pipe, a, &period);
	o->task = arena_array(a, PipeTask *, pipe->nrank);
	o->ntask = arena_array(a, int, pipe->nrank);
	for (int r = 0; r < pipe->nrank; r++) {
		int first = -1;                 /* the turn of its first stage */
		for (int i = 0; i < pipe->nstage && first < 0; i++)
			first = pipe->stage[i].rank == r ? start[i] / period : -1;
		for (int at = 0; at < period; at++)
			for (int i = 0; i < pipe->nstage; i++)
				if (pipe->stage[i].rank == r && start[i] % period == at)
					arena_push(a, o->task[r], o->ntask[r],
						((PipeTask){ BLOCK_F, i, start[i] / period - first }));
	}
}

int orders_apart(const Stages *s, int from, int to, Arena *a)
{
	int period, *start = forward_starts(&s->pipe, a, &period);
	return (start[to] - start[from] + period - 1) / period;
}
