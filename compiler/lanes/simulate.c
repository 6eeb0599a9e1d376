/* --simulate: what a schedule of a pipeline costs.  Prints a row for each rank, a picture, and the numbers that
 * papers compare: span, makespan, period, bubble rate (arXiv 2401.10241, section 5.3: idle time of the span).  Where
 * no schedule is named, all that the pipeline can run are compared, and the best one that fits the memory is shown.
 * */
#include "lanes/spec.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { PICTURE = 108 /* columns of time */, STEPS = 64 /* played until the period is known */ };

/* A schedule, played. */
typedef struct Trial {
	const char *name, *paper;       /* name NULL: nothing yet */
	PipeOrder order;
	PipePlay play;
	LaneNet net;                    /* of the one that is shown, and how it was played */
	LanePlay lanes;
	double bubble;
	int over;                       /* a rank that needs more memory than it has; -1: none */
} Trial;

static const char *bytes_text(int64_t n)
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB" };
	double v = (double)n;
	int u = 0;
	for (; v >= 1000 && u < 4; u++)
		v /= 1000;
	return u ? name_fmt("%.1f %s", v, unit[u]) : name_fmt("%d B", (int)n);
}

static void sum_up(const Pipeline *p, Trial *t)
{
	double busy = 0;
	for (int r = p->nrank - 1; r >= 0; r--) {
		busy += t->play.busy[r];
		if (p->limit && t->play.peak[r] > p->limit[r])
			t->over = r;
	}
	t->bubble = t->play.span > 0 ? 1 - busy / p->nrank / t->play.span : 0;
}

/* NULL, or the reason why the pipeline cannot be run so. */
static const char *try(const Pipeline *p, const PipeSchedule *s, Arena *a, Trial *t)
{
	*t = (Trial){ .name = s->name, .paper = s->paper, .over = -1 };
	const char *why = s->order(p, a, &t->order);
	if (why)
		return why;
	if (!pipe_play(p, &t->order, STEPS, a, &t->play))
		die("schedule %s waits for itself", s->name);
	sum_up(p, t);
	return NULL;
}

/* Rows with sends of their own are run as written: their times are those of the net. */
static void times_of_net(const Pipeline *p, Trial *t)
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
static int prove(const Pipeline *p, const PipeSpec *spec, Arena *a, Trial *t)
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
		sum_up(p, t);
	}
	return 0;
}

/* ---- rows ---- */

/* The most micro-batches of a stage between F and its last backward block. */
static int copies_of(const Pipeline *p, const PipeOrder *o, int stage)
{
	int r = p->stage[stage].rank, most = 0, now = 0;
	for (int i = 0; i < o->ntask[r]; i++) {
		const PipeTask *t = &o->task[r][i];
		if (t->stage != stage)
			continue;
		now += t->kind == BLOCK_F ? 1 : t->kind == BLOCK_B ? 0 : -1;
		most = now > most ? now : most;
	}
	return most;
}

static void print_rank(const Pipeline *p, const Trial *t, int r)
{
	const char *stages = "", *copies = "";
	double f = 0, b = 0, w = 0;
	for (int i = 0; i < p->nstage; i++) {
		const PipeStage *s = &p->stage[i];
		if (s->rank != r)
			continue;
		stages = name_fmt("%s%s%d", stages, *stages ? "," : "", i);
		copies = name_fmt("%s%s%d", copies, *copies ? "+" : "", copies_of(p, &t->order, i));
		f += s->f * p->micros;
		b += s->b * p->micros;
		w += s->w * p->micros;
	}
	double idle = t->play.period > 0 ? 1 - t->play.busy[r] / t->play.period : 0;
	printf("%4d  %-9s %10.3f %10.3f %10.3f  %-7s %9s %8.2f %%\n", r, stages, f * 1e3, b * 1e3, w * 1e3, copies,
		bytes_text(t->play.peak[r]), fabs(idle) * 100);
}

/* ---- the picture ---- */

static const char letter[] = { [BLOCK_F] = 'F', [BLOCK_B] = 'B', [BLOCK_W] = 'W', [BLOCK_BW] = 'B' };

static double shortest(const Pipeline *p, const PipeOrder *o)
{
	double least = INFINITY;
	for (int r = 0; r < p->nrank; r++)
		for (int i = 0; i < o->ntask[r]; i++) {
			double s = pipe_seconds(p, &o->task[r][i]);
			least = s > 0 && s < least ? s : least;
		}
	return least;
}

/* Draws the tasks of a rank, in columns of `cell` seconds, by calling show(line, from, to, kind, micro) for each. */
typedef void Show(char *line, int from, int to, char kind, int micro);

static void draw_rank(const Pipeline *p, const Trial *t, int r, double cell, char *line, Show *show)
{
	const PipePlay *play = &t->play;
	double end = 0;
	for (int i = 0; i < t->order.ntask[r]; i++) {
		const PipeTask *k = &t->order.task[r][i];
		double start = play->start[r][i];
		end = start + pipe_seconds(p, k);
		show(line, (int)(start / cell + 0.5), (int)(end / cell + 0.5), letter[k->kind], k->micro);
	}
	show(line, (int)(end / cell + 0.5), (int)(play->last[r] / cell + 0.5), 'U', -1);
}

/* "F0 F1 . B0 -- U": cells have `width` characters. */
static int width;
static void show_name(char *line, int from, int to, char kind, int micro)
{
	char name[16];
	int n = micro < 0 ? snprintf(name, sizeof name, "%c", kind) : snprintf(name, sizeof name, "%c%d", kind, micro);
	for (int c = from; c < to; c++)
		memset(line + c * width, c > from ? '-' : ' ', (size_t)width - 1);
	if (from < to)
		memcpy(line + from * width, name, (size_t)n);
}

/* "FFffFF..BB": letters change case from a micro-batch to the next. */
static void show_letter(char *line, int from, int to, char kind, int micro)
{
	for (int c = from; c < to; c++)
		line[c] = (char)(micro > 0 && micro % 2 ? kind + 'a' - 'A' : kind);
}

static void draw(const Pipeline *p, const Trial *t)
{
	double cell = shortest(p, &t->order), whole = t->play.makespan;
	if (!(whole > 0))
		return;
	width = 2 + snprintf(NULL, 0, "%d", p->micros - 1);
	bool names = whole / cell * width <= PICTURE;
	if (!names) {
		cell = whole / PICTURE;
		width = 1;
	}
	printf("\nrank  a column is %.3f ms%s\n", cell * 1e3,
		names ? "" : "; micro-batches 1, 3, 5 and so on are in small letters");
	for (int r = 0; r < p->nrank; r++) {
		char line[2 * PICTURE];
		int n = (int)(whole / cell + 0.5) * width;
		memset(line, ' ', sizeof line);
		for (int c = 0; c < n; c += width)
			line[c] = '.';
		draw_rank(p, t, r, cell, line, names ? show_name : show_letter);
		while (n && line[n - 1] == ' ')
			n--;
		printf("%4d  %.*s\n", r, n, line);
	}
}

/* ---- reports ---- */

static void print_proof(const LaneNet *net)
{
	int lanes = 0, copies = 0;
	long tasks = 0;
	for (int r = 0; r < net->nrole; r++)
		for (int l = 0; l < net->role[r].nlane; l++, lanes++)
			tasks += net->role[r].lane[l].ntask;
	for (int c = 0; c < net->nchannel; c++) {
		int n = net->role[net->channel[c].from].reg[net->channel[c].from_reg].copies;
		copies = n > copies ? n : copies;
	}
	printf("proved: %ld tasks of %d lanes come to their end in any order, with %d cop%s of a message\n", tasks,
		lanes, copies, copies == 1 ? "y" : "ies");
}

static void report(const Pipeline *p, const Trial *t)
{
	printf("%s (%s): %d rank%s, %d stage%s, %d micro-batch%s\n\n", t->name, t->paper, p->nrank,
		p->nrank > 1 ? "s" : "", p->nstage, p->nstage > 1 ? "s" : "", p->micros, p->micros > 1 ? "es" : "");
	printf("rank  stages          F ms       B ms       W ms  copies      bytes       idle\n");
	for (int r = 0; r < p->nrank; r++)
		print_rank(p, t, r);
	draw(p, t);
	printf("\nspan %.3f ms, makespan %.3f ms, period %.3f ms, bubble rate %.4f\n", t->play.span * 1e3,
		t->play.makespan * 1e3, t->play.period * 1e3, t->bubble);
	if (t->over >= 0)
		printf("rank %d needs %s, and has %s\n", t->over, bytes_text(t->play.peak[t->over]),
			bytes_text(p->limit[t->over]));
	print_proof(&t->net);
}

static bool better(const Trial *a, const Trial *b)
{
	if (!b->name || (a->over < 0) != (b->over < 0))
		return !b->name || a->over < 0;
	return a->play.period < b->play.period * (1 - 1e-12);
}

/* A row for each schedule that the pipeline can run; the best that fits. */
static Trial compare(Pipeline *p, Arena *a)
{
	Trial best = { 0 };
	const PipeSchedule *row = NULL;
	printf("schedule          span ms  makespan ms    period ms  bubble   largest rank\n");
	for (const PipeSchedule *s = schedules; s->name; s++) {
		Trial t;
		schedules_place(s, p);
		if (try(p, s, a, &t))
			continue;
		int64_t most = 0;
		for (int r = 0; r < p->nrank; r++)
			most = t.play.peak[r] > most ? t.play.peak[r] : most;
		printf("%-12s %12.3f %12.3f %12.3f  %.4f %14s%s\n", s->name, t.play.span * 1e3, t.play.makespan * 1e3,
			t.play.period * 1e3, t.bubble, bytes_text(most), t.over >= 0 ? "  too large" : "");
		if (better(&t, &best)) {
			best = t;
			row = s;
		}
	}
	if (row)
		schedules_place(row, p);
	putchar('\n');
	return best;
}

/* The schedule that the text asks for.  -1 after explaining. */
static int choose(PipeSpec *spec, Arena *a, Trial *t)
{
	Pipeline *p = &spec->pipe;
	if (spec->csv) {
		*t = (Trial){ .name = "csv", .paper = "from a file", .order = spec->csv->order, .over = -1 };
		pipe_play(p, &t->order, STEPS, a, &t->play);
		sum_up(p, t);
		return 0;
	}
	if (!spec->schedule) {
		*t = compare(p, a);
		return 0;
	}
	const char *why = try(p, spec->schedule, a, t);
	if (why)
		err_at(spec->where, "the schedule %s cannot run this pipeline: %s", spec->schedule->name, why);
	return why ? -1 : 0;
}

static int write_files(const SimulateOptions *o, const PipeSpec *spec, const Trial *t, Arena *a)
{
	const char *names[] = { o->trace, o->csv, o->html };
	for (int i = 0; i < 3; i++) {
		FILE *f = names[i] ? fopen(names[i], "w") : NULL;
		PipeCsv csv;
		if (f && i == 0)
			trace_write(f, &t->net, &t->lanes);
		if (f && i == 1) {
			csv_of(&spec->pipe, &t->order, a, &csv);
			csv_write(f, spec->csv ? spec->csv : &csv);
		}
		if (f && i == 2)
			timeline_page(f, o->path, &t->net, &t->lanes);
		if (names[i] && (!f || fclose(f))) {
			fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write %s: %s", names[i], strerror(errno));
			return -1;
		}
	}
	return 0;
}

int simulate_file(const SimulateOptions *o)
{
	Arena a = { 0 };
	PipeSpec spec;
	Trial t;
	int bad = spec_read(o->path, &a, &spec) || choose(&spec, &a, &t) || prove(&spec.pipe, &spec, &a, &t);
	if (!bad) {
		report(&spec.pipe, &t);
		if (spec.csv && !csv_ascends(spec.csv))
			printf("micro-batches do not ascend: gradients are added in another order than on one rank\n");
		bad = write_files(o, &spec, &t, &a);
	}
	arena_free(&a);
	return bad ? -1 : 0;
}
