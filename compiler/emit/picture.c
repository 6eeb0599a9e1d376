/* The order of a pipeline as a picture, for people who read a schedule: a row for each rank, a column for each unit of
 * time, if F, B and W take one unit each and messages none.
 *
 *   rank 0   F0 F1 .. .. B0 b0 F2 B1 b1        b: the second unit of a B that includes W
 *   rank 1   .. F0 B0 b0 F1 B1 b1 .. ..        4F0: of stage 4, where a rank has several */
#include "emit/emit.h"

#include <string.h>

enum { ROWS = 16, ROOM = 98 };                  /* rows, and columns for cells */

typedef struct Picture {
	const Pipeline *pipe;
	PipeOrder order;
	int **start, units;             /* by rank, by task; of all */
	int *place;                     /* by key: 1 + its place in the order of its rank; 0: it is in none */
	bool chunks;
} Picture;

/* The order of each rank along the pipeline: that of the first role on it. */
static void find_order(const Plan *p, Arena *a, Picture *x)
{
	x->pipe = &p->stages->pipe;
	x->chunks = x->pipe->nstage > x->pipe->nrank;
	x->order = (PipeOrder){ arena_array(a, PipeTask *, x->pipe->nrank), arena_array(a, int, x->pipe->nrank) };
	for (int i = 0; i < p->nrole; i++) {
		int rank = -1, n = 0;
		PipeTask *list = NULL;
		for (int k = 0; k < p->role[i].ntask; k++) {
			const Block *b = &p->block[p->role[i].task[k].block];
			if (b->stage < 0 || pipe_once(b->kind))
				continue;
			rank = x->pipe->stage[b->stage].rank;
			arena_push(a, list, n, ((PipeTask){ b->kind, b->stage, p->role[i].task[k].micro }));
		}
		if (rank < 0 || x->order.ntask[rank])
			continue;
		x->order.task[rank] = list;
		x->order.ntask[rank] = n;
	}
}

static int units(const PipeTask *t)
{
	return t->kind == BLOCK_BW ? 2 : 1;
}

static int key_of(const Picture *x, BlockKind kind, int stage, int micro)
{
	int what = kind == BLOCK_F ? 0 : kind == BLOCK_W ? 1 : 2;       /* BW is a B, too */
	return (what * x->pipe->nstage + stage) * x->pipe->micros + micro;
}

/* When a task has ended; 0: no rank has it; -1: it has not started. */
static int end_of(const Picture *x, BlockKind kind, int stage, int micro)
{
	int rank = x->pipe->stage[stage].rank, i = x->place[key_of(x, kind, stage, micro)] - 1;
	if (i < 0)
		return 0;
	return x->start[rank][i] < 0 ? -1 : x->start[rank][i] + units(&x->order.task[rank][i]);
}

/* When what a task reads is there; -1: not yet. */
static int ready(const Picture *x, const PipeTask *t)
{
	int at = t->kind == BLOCK_F ? 0 : end_of(x, t->kind == BLOCK_W ? BLOCK_B : BLOCK_F, t->stage, t->micro);
	for (int h = 0; h < x->pipe->nhop && at >= 0 && t->kind != BLOCK_W; h++) {
		const PipeHop *hop = &x->pipe->hop[h];
		bool forward = t->kind == BLOCK_F;
		if ((forward ? hop->to : hop->from) != t->stage)
			continue;
		int end = end_of(x, forward ? BLOCK_F : BLOCK_B, forward ? hop->from : hop->to, t->micro);
		at = end < 0 || end > at ? end : at;
	}
	return at;
}

/* Ranks run their lists as far as they can, in turn, until none can go on. */
static void play(Picture *x, Arena *a)
{
	int nrank = x->pipe->nrank, *next = arena_array(a, int, nrank), *clock = arena_array(a, int, nrank);
	x->start = arena_array(a, int *, nrank);
	x->place = arena_array(a, int, 3 * x->pipe->nstage * x->pipe->micros + 1);
	for (int r = 0; r < nrank; r++) {
		x->start[r] = arena_array(a, int, x->order.ntask[r] + 1);
		for (int i = 0; i < x->order.ntask[r]; i++) {
			const PipeTask *t = &x->order.task[r][i];
			x->start[r][i] = -1;
			x->place[key_of(x, t->kind, t->stage, t->micro)] = i + 1;
		}
	}
	for (bool any = true; any;) {
		any = false;
		for (int r = 0; r < nrank; r++)
			for (int at; next[r] < x->order.ntask[r]; next[r]++) {
				const PipeTask *t = &x->order.task[r][next[r]];
				if ((at = ready(x, t)) < 0)
					break;
				x->start[r][next[r]] = at > clock[r] ? at : clock[r];
				clock[r] = x->start[r][next[r]] + units(t);
				x->units = clock[r] > x->units ? clock[r] : x->units;
				any = true;
			}
	}
}

static const char *cell(const Picture *x, Arena *a, const PipeTask *t, int unit)
{
	char kind = t->kind == BLOCK_F ? 'F' : t->kind == BLOCK_W ? 'W' : t->kind == BLOCK_R ? 'R' : unit ? 'b' : 'B';
	return x->chunks ? arena_printf(a, "%d%c%d", t->stage, kind, t->micro)
		: arena_printf(a, "%c%d", kind, t->micro);
}

static void print_row(const Picture *x, Arena *a, Text *t, int rank, int width, int columns)
{
	const char **at = arena_array(a, const char *, columns + 1);
	for (int i = 0; i < x->order.ntask[rank]; i++) {
		const PipeTask *task = &x->order.task[rank][i];
		for (int k = 0, from = x->start[rank][i]; from >= 0 && k < units(task) && from + k < columns; k++)
			at[from + k] = cell(x, a, task, k);
	}
	text_add(t, " *   rank %-3d", rank);
	for (int k = 0; k < columns; k++)
		text_add(t, " %-*s", width, at[k] ? at[k] : "..");
	while (t->s[t->n - 1] == ' ')
		t->s[--t->n] = 0;
	text_add(t, x->units > columns ? " ...\n" : "\n");
}

const char *picture_of(const Emit *e)
{
	Arena *a = e->tree.arena;
	const Plan *p = e->program[0].model->plan;
	Picture x = { 0 };
	Text text = { 0 }, *t = &text;
	if (!p->stages || !p->training)
		return "";
	find_order(p, a, &x);
	play(&x, a);
	int width = 2, columns = x.units;
	for (int r = 0; r < x.pipe->nrank; r++)
		for (int i = 0; i < x.order.ntask[r]; i++) {
			int n = (int)strlen(cell(&x, a, &x.order.task[r][i], 0));
			width = n > width ? n : width;
		}
	columns = columns < ROOM / (width + 1) ? columns : ROOM / (width + 1);
	text_add(t, "/* The order of micro-batches, if F, B and W take one unit of time each; a b goes on with B.\n"
		" *\n");
	for (int r = 0; r < x.pipe->nrank && r < ROWS; r++)
		print_row(&x, a, t, r, width, columns);
	text_add(t, x.pipe->nrank > ROWS ? " *   ... (%d more)\n */\n" : " */\n", x.pipe->nrank - ROWS);
	return text.s;
}
