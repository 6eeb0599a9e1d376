/* The order of a pipeline as a picture, for people who read a schedule: a row for each rank, a column for each unit of
 * time, if F, B and W take one unit each and messages none.
 *
 *   rank 0   F0 F1 .. .. B0 b0 F2 B1 b1        b: the second unit of a B that includes W
 *   rank 1   .. F0 B0 b0 F1 B1 b1 .. ..        4F0: of stage 4, where a rank has several */
#include "emit/emit.h"

#include <string.h>

enum { ROWS = 16, ROOM = 98 };                  /* rows, and columns for cells */

typedef struct Picture { Pipeline pipe; PipeOrder order; PipePlay play; bool chunks; } Picture;

static bool has(const Plan *p, const Role *r, int stage, BlockKind kind)
{
	for (int k = 0; k < r->ntask; k++)
		if (p->block[r->task[k].block].stage == stage && p->block[r->task[k].block].kind == kind)
			return true;
	return false;
}

/* Adds a task, and before it those without time that it needs in pipe.c and the stage does not have: F, where a loss
 * runs with its gradient, and B, where no gradient leaves the stage. */
static void add_task(const Plan *p, const Role *r, Arena *a, Picture *x, PipeTask t, PipeTask **list, int *n)
{
	PipeStage *s = &x->pipe.stage[t.stage];
	if (t.kind == BLOCK_W && !has(p, r, t.stage, BLOCK_B)) {
		s->b = 0;
		add_task(p, r, a, x, (PipeTask){ BLOCK_B, t.stage, t.micro }, list, n);
	} else if (t.kind != BLOCK_F && t.kind != BLOCK_W && !has(p, r, t.stage, BLOCK_F)) {
		s->f = 0;
		add_task(p, r, a, x, (PipeTask){ BLOCK_F, t.stage, t.micro }, list, n);
	}
	arena_push(a, *list, *n, t);
}

/* The order of each rank along the pipeline: that of the first role on it. */
static void find_order(const Plan *p, Arena *a, Picture *x)
{
	x->pipe = p->stages->pipe;
	x->pipe.stage = arena_array(a, PipeStage, x->pipe.nstage + 1);
	x->pipe.hop = arena_array(a, PipeHop, x->pipe.nhop + 1);
	x->pipe.limit = NULL;
	x->chunks = x->pipe.nstage > x->pipe.nrank;
	for (int s = 0; s < x->pipe.nstage; s++)
		x->pipe.stage[s] = (PipeStage){ .rank = p->stages->pipe.stage[s].rank, .f = 1, .b = 1, .w = 1 };
	for (int h = 0; h < x->pipe.nhop; h++)
		x->pipe.hop[h] = (PipeHop){ .from = p->stages->pipe.hop[h].from, .to = p->stages->pipe.hop[h].to };
	x->order = (PipeOrder){ arena_array(a, PipeTask *, x->pipe.nrank), arena_array(a, int, x->pipe.nrank) };
	for (int i = 0; i < p->nrole; i++) {
		int rank = -1, n = 0;
		PipeTask *list = NULL;
		for (int k = 0; k < p->role[i].ntask; k++) {
			const Block *b = &p->block[p->role[i].task[k].block];
			if (b->stage < 0 || pipe_once(b->kind))
				continue;
			rank = x->pipe.stage[b->stage].rank;
			add_task(p, &p->role[i], a, x, (PipeTask){ b->kind, b->stage, p->role[i].task[k].micro }, &list,
				&n);
		}
		if (rank < 0 || x->order.ntask[rank])
			continue;
		x->order.task[rank] = list;
		x->order.ntask[rank] = n;
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
		int from = (int)(x->play.start[rank][i] + 0.5), n = (int)(pipe_seconds(&x->pipe, task) + 0.5);
		for (int k = 0; k < n && from + k < columns; k++)
			at[from + k] = cell(x, a, task, k);
	}
	text_add(t, " *   rank %-3d", rank);
	for (int k = 0; k < columns; k++)
		text_add(t, " %-*s", width, at[k] ? at[k] : "..");
	while (t->s[t->n - 1] == ' ')
		t->s[--t->n] = 0;
	text_add(t, x->play.makespan > columns ? " ...\n" : "\n");
}

void picture_add(const Emit *e, Text *t)
{
	Arena *a = e->tree.arena;
	const Plan *p = e->program[0].model->plan;
	Picture x = { 0 };
	if (!p->stages || !p->training)
		return;
	find_order(p, a, &x);
	if (!pipe_play(&x.pipe, &x.order, 1, a, &x.play))
		die("a proved pipeline stands still");
	int width = 2, columns = (int)(x.play.makespan + 0.5);
	for (int r = 0; r < x.pipe.nrank; r++)
		for (int i = 0; i < x.order.ntask[r]; i++) {
			int n = (int)strlen(cell(&x, a, &x.order.task[r][i], 0));
			width = n > width ? n : width;
		}
	columns = columns < ROOM / (width + 1) ? columns : ROOM / (width + 1);
	text_add(t, "/* The order of micro-batches, if F, B and W take one unit of time each; a b goes on with B.\n"
		" *\n");
	for (int r = 0; r < x.pipe.nrank && r < ROWS; r++)
		print_row(&x, a, t, r, width, columns);
	text_add(t, x.pipe.nrank > ROWS ? " *   ... (%d more)\n */\n" : " */\n", x.pipe.nrank - ROWS);
}
