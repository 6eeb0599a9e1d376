/* What a simulated schedule looks like: a row for each rank, a picture of its tasks and one of its memory, what ranks
 * waited for, and the numbers that papers compare: span, makespan, period, bubble rate (arXiv 2401.10241, section 5.3:
 * idle time of the span).  For the text of a pipeline, and for a model. */
#include "lanes/shown.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { PICTURE = 108, MEMORY = 72 /* columns of time */, CAUSES = 4 /* listed for each rank */ };

const char *shown_bytes(int64_t n)
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB" };
	double v = (double)n;
	int u = 0;
	for (; v >= 1000 && u < 4; u++)
		v /= 1000;
	return u ? name_fmt("%.1f %s", v, unit[u]) : name_fmt("%d B", (int)n);
}

void shown_sum(const Pipeline *p, Shown *t)
{
	double busy = 0;
	for (int r = p->nrank - 1; r >= 0; r--) {
		busy += t->play.busy[r];
		if (p->limit && t->play.peak[r] > p->limit[r])
			t->over = r;
	}
	t->bubble = t->play.span > 0 ? 1 - busy / p->nrank / t->play.span : 0;
}

/* The bound of all orders that fit the memory, or of all, if this one does not fit. */
void shown_bound(const Pipeline *p, Arena *a, Shown *t)
{
	Pipeline any = *p;
	PipeBound b;
	any.limit = t->over >= 0 ? NULL : p->limit;
	bound_find(&any, a, &b);
	t->bound = b.period;
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

static void print_rank(const Pipeline *p, const Shown *t, int r)
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
		shown_bytes(t->play.peak[r]), fabs(idle) * 100);
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

static void draw_rank(const Pipeline *p, const Shown *t, int r, double cell, char *line, Show *show)
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

static void draw(const Pipeline *p, const Shown *t)
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

/* The bytes in use of each rank, as tenths of the most that a rank needs: 9 is more than nine tenths. */
static void draw_bytes(const Pipeline *p, const Shown *t)
{
	double whole = t->play.makespan;
	int64_t most = 0;
	for (int r = 0; r < p->nrank; r++)
		most = t->lanes.peak[t->role[r]] > most ? t->lanes.peak[t->role[r]] : most;
	if (!most || !(whole > 0))
		return;
	printf("\nrank  tenths of %s in use, a column is %.3f ms\n", shown_bytes(most), whole / MEMORY * 1e3);
	for (int r = 0; r < p->nrank; r++) {
		const LaneUse *use = t->lanes.use[t->role[r]];
		int n = t->lanes.nuse[t->role[r]], i = 0;
		char line[MEMORY + 1] = "";
		for (int c = 0; c < MEMORY && n; c++) {
			int64_t now = use[i].bytes;
			for (; i + 1 < n && use[i + 1].at <= (c + 1) * whole / MEMORY; i++)
				now = use[i + 1].bytes > now ? use[i + 1].bytes : now;
			double tenths = 10 * (double)now / (double)most;
			line[c] = (char)('0' + (tenths < 9 ? (int)tenths : 9));
		}
		printf("%4d  %s\n", r, line);
	}
}

/* ---- waits ---- */

typedef struct Cause { LaneWait wait; int what; double seconds; int tasks; } Cause;

const char *shown_cause(const LaneNet *n, const LaneRole *role, LaneWait wait, int what)
{
	switch (wait) {
	case WAIT_PIECE: return name_fmt("a piece of %s", role->reg[what].name);
	case WAIT_ROOM: return name_fmt("room in %s", role->reg[what].name);
	case WAIT_PEER: return name_fmt("the other end of %s", n->channel[what].name);
	case WAIT_MEET: return name_fmt("the meeting %s", n->meet[what].name);
	default: return "nothing";
	}
}

static int first_lane(const LaneNet *n, int role)
{
	int k = 0;
	for (int r = 0; r < role; r++)
		k += n->role[r].nlane;
	return k;
}

/* What the compute lane of a role waited for, the longest first; returns how many causes. */
static int find_causes(const Shown *t, int role, Cause **to, Arena *a)
{
	const LaneEvent *e = t->lanes.event[first_lane(&t->net, role)];
	int n = 0;
	*to = NULL;
	for (int i = 0; i < t->net.role[role].lane[0].ntask; i++) {
		int k = 0;
		if (!(e[i].start > e[i].ready))
			continue;
		while (k < n && ((*to)[k].wait != e[i].wait || (*to)[k].what != e[i].what))
			k++;
		if (k == n)
			arena_push(a, *to, n, ((Cause){ .wait = e[i].wait, .what = e[i].what }));
		(*to)[k].seconds += e[i].start - e[i].ready;
		(*to)[k].tasks++;
		for (; k && (*to)[k].seconds > (*to)[k - 1].seconds; k--) {
			Cause c = (*to)[k];
			(*to)[k] = (*to)[k - 1];
			(*to)[k - 1] = c;
		}
	}
	return n;
}

static void print_waits(const Pipeline *p, const Shown *t)
{
	Arena a = { 0 };
	printf("\nrank    waits ms  for\n");
	for (int r = 0; r < p->nrank; r++) {
		const LaneRole *role = &t->net.role[t->role[r]];
		Cause *c;
		int n = find_causes(t, t->role[r], &c, &a);
		double sum = 0;
		for (int i = 0; i < n; i++)
			sum += c[i].seconds;
		printf("%4d  %10.3f ", r, sum * 1e3);
		for (int i = 0; i < n && i < CAUSES; i++) {
			const char *what = shown_cause(&t->net, role, c[i].wait, c[i].what);
			printf("%s %s %.3f (%d task%s)", i ? "," : "", diag_escape(&a, what, strlen(what)),
				c[i].seconds * 1e3, c[i].tasks, c[i].tasks == 1 ? "" : "s");
		}
		puts(n > CAUSES ? ", ..." : "");
	}
	arena_free(&a);
}

/* ---- all of it ---- */

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

void shown_print(const Pipeline *p, const Shown *t)
{
	printf("%s (%s): %d rank%s, %d stage%s, %d micro-batch%s\n\n", t->name, t->paper, p->nrank,
		p->nrank > 1 ? "s" : "", p->nstage, p->nstage > 1 ? "s" : "", p->micros, p->micros > 1 ? "es" : "");
	printf("rank  stages          F ms       B ms       W ms  copies      bytes       idle\n");
	for (int r = 0; r < p->nrank; r++)
		print_rank(p, t, r);
	draw(p, t);
	draw_bytes(p, t);
	print_waits(p, t);
	printf("\nspan %.3f ms, makespan %.3f ms, period %.3f ms, bubble rate %.4f\n", t->play.span * 1e3,
		t->play.makespan * 1e3, t->play.period * 1e3, t->bubble);
	printf("bound: no schedule takes less than %.3f ms for a step; gap %.2f %%\n", t->bound * 1e3,
		t->bound > 0 ? 100 * fmax(0, t->play.period / t->bound - 1) : 0);
	if (t->over >= 0)
		printf("rank %d needs %s, and has %s\n", t->over, shown_bytes(t->play.peak[t->over]),
			shown_bytes(p->limit[t->over]));
	print_proof(&t->net);
}

int shown_write(const SimulateOptions *o, const Shown *t)
{
	const char *names[] = { o->trace, o->html };
	for (int i = 0; i < 2; i++) {
		FILE *f = names[i] ? fopen(names[i], "w") : NULL;
		if (f && i == 0)
			trace_write(f, &t->net, &t->lanes);
		if (f && i == 1)
			timeline_page(f, o->path, &t->net, &t->lanes);
		if (names[i] && (!f || fclose(f))) {
			fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write %s: %s", names[i], strerror(errno));
			return -1;
		}
	}
	return 0;
}
