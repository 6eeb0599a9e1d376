/* --simulate=FILE: what a schedule of the pipeline of a text costs.  Where no schedule is named, all that the pipeline
 * can run are compared, the solver's with them, and the best one that fits the memory is shown. */
#include "lanes/shown.h"
#include "lanes/spec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { STEPS = 64 };                    /* played until the period is known */

/* NULL, or the reason why the pipeline cannot be run so. */
static const char *try(const Pipeline *p, const PipeSchedule *s, Arena *a, Shown *t)
{
	*t = (Shown){ .name = s->name, .paper = s->paper, .over = -1 };
	const char *why = s->order(p, a, &t->order);
	if (why)
		return why;
	if (!pipe_play(p, &t->order, STEPS, a, &t->play))
		die("schedule %s waits for itself", s->name);
	shown_sum(p, t);
	return NULL;
}

/* Rows with sends of their own are run as written: their times are those of the net. */
static void times_of_net(const Pipeline *p, Shown *t)
{
	PipePlay *y = &t->play;
	y->span = t->lanes.span;
	y->makespan = t->lanes.makespan;
	y->period = t->lanes.period;
	for (int r = 0; r < p->nrank; r++) {
		const Lane *l = &t->net.role[r].lane[0];
		int n = 0;
		for (int i = 0; i < l->ntask; i++) {
			if (l->task[i].act == DO_BLOCK && l->task[i].micro >= 0)
				y->start[r][n++] = t->lanes.event[r][i].start;
			y->last[r] = l->task[i].act == DO_BLOCK ? t->lanes.event[r][i].end : y->last[r];
		}
		y->first[r] = y->start[r][0];
	}
}

/* The programs of the schedule that is shown: made, proved and played.  -1 after explaining. */
static int prove(const Pipeline *p, const PipeSpec *spec, Arena *a, Shown *t)
{
	bool own = spec->csv && spec->csv->sends;
	const char *why = check_order(p, &t->order, a);
	if (!why) {
		net_of(p, &t->order, 1, a, &t->net);
		if (own)
			csv_net(spec->csv, a, &t->net);
		why = check_net(&t->net, a);
	}
	if (why) {
		check_explain(spec->where, why);
		return -1;
	}
	if (!play_net(&t->net, own ? STEPS : 1, false, a, &t->lanes))
		die("a proved net stands still");
	if (own) {
		times_of_net(p, t);
		shown_sum(p, t);
	}
	return 0;
}

/* ---- which schedule ---- */

static bool better(const Shown *a, const Shown *b)
{
	if (!b->name || (a->over < 0) != (b->over < 0))
		return !b->name || a->over < 0;
	return a->play.period < b->play.period * (1 - 1e-12);
}

static void print_row(const Pipeline *p, const Shown *t)
{
	int64_t most = 0;
	for (int r = 0; r < p->nrank; r++)
		most = t->play.peak[r] > most ? t->play.peak[r] : most;
	printf("%-12s %12.3f %12.3f %12.3f  %.4f %14s%s\n", t->name, t->play.span * 1e3, t->play.makespan * 1e3,
		t->play.period * 1e3, t->bubble, shown_bytes(most), t->over >= 0 ? "  too large" : "");
}

/* The order of the solver, with stages in turn or, where there are two for each rank, as a V: the better one.  *row: a
 * schedule that places them so.  false: none fits. */
static bool solve(Pipeline *p, double seconds, Arena *a, Shown *to, const PipeSchedule **row)
{
	static const char *const places[] = { "interleaved", "zb-v" };
	to->name = NULL;
	for (int i = 0; i < 1 + (p->nstage == 2 * p->nrank); i++) {
		const PipeSchedule *s = schedules_find(places[i]);
		SearchResult best;
		schedules_place(s, p);
		if (search_run(p, seconds, a, &best))
			continue;
		Shown t = { .name = "solver", .over = -1, .order = best.order,
			.paper = name_fmt("from %s", best.from) };
		if (!pipe_play(p, &t.order, STEPS, a, &t.play))
			die("the schedule of the solver waits for itself");
		shown_sum(p, &t);
		if (better(&t, to)) {
			*to = t;
			*row = s;
		}
	}
	if (to->name)
		schedules_place(*row, p);
	return to->name;
}

/* A row for each schedule that the pipeline can run; the best that fits. */
static Shown compare(Pipeline *p, double seconds, Arena *a)
{
	Shown best = { 0 };
	const PipeSchedule *row = NULL;
	printf("schedule          span ms  makespan ms    period ms  bubble   largest rank\n");
	for (const PipeSchedule *s = schedules; s->name; s++) {
		Shown t;
		schedules_place(s, p);
		if (try(p, s, a, &t))
			continue;
		print_row(p, &t);
		if (better(&t, &best)) {
			best = t;
			row = s;
		}
	}
	const PipeSchedule *place = NULL;
	Shown t;
	if (solve(p, seconds, a, &t, &place)) {
		print_row(p, &t);
		if (better(&t, &best)) {
			best = t;
			row = place;
		}
	}
	if (row)
		schedules_place(row, p);
	putchar('\n');
	return best;
}

/* The schedule that the text asks for.  -1 after explaining. */
static int choose(PipeSpec *spec, double seconds, Arena *a, Shown *t)
{
	const PipeSchedule *place = NULL;
	Pipeline *p = &spec->pipe;
	if (spec->csv) {
		*t = (Shown){ .name = "csv", .paper = "from a file", .order = spec->csv->order, .over = -1 };
		pipe_play(p, &t->order, STEPS, a, &t->play);
		shown_sum(p, t);
		return 0;
	}
	if (spec->solver && solve(p, seconds, a, t, &place))
		return 0;
	if (spec->solver) {
		err_at(spec->where, "no order of micro-batches fits the memory");
		return -1;
	}
	if (!spec->schedule) {
		*t = compare(p, seconds, a);
		return 0;
	}
	const char *why = try(p, spec->schedule, a, t);
	if (why)
		err_at(spec->where, "the schedule %s cannot run this pipeline: %s", spec->schedule->name, why);
	return why ? -1 : 0;
}

static int write_order(const SimulateOptions *o, const PipeSpec *spec, const Shown *t, Arena *a)
{
	FILE *f = o->csv ? fopen(o->csv, "w") : NULL;
	PipeCsv csv;
	if (f) {
		csv_of(&spec->pipe, &t->order, a, &csv);
		csv_write(f, spec->csv ? spec->csv : &csv);
	}
	if (!o->csv || (f && !fclose(f)))
		return 0;
	fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write %s: %s", o->csv, strerror(errno));
	return -1;
}

int simulate_file(const SimulateOptions *o)
{
	Arena a = { 0 };
	PipeSpec spec;
	Shown t;
	int bad = spec_read(o->path, &a, &spec) || choose(&spec, o->seconds, &a, &t) ||
		prove(&spec.pipe, &spec, &a, &t);
	if (!bad) {
		t.role = arena_array(&a, int, spec.pipe.nrank + 1);
		for (int r = 0; r < spec.pipe.nrank; r++)
			t.role[r] = r;
		shown_bound(&spec.pipe, &a, &t);
		shown_print(&spec.pipe, &t);
		if (spec.csv && !csv_ascends(spec.csv))
			printf("micro-batches do not ascend: gradients are added in another order than on one rank\n");
		bad = shown_write(o, &t) || write_order(o, &spec, &t, &a);
	}
	arena_free(&a);
	return bad ? -1 : 0;
}
