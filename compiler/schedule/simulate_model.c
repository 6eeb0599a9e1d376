/* --simulate of a model: plays the programs of lanes of its step, as they are proved and emitted, and prints what each
 * rank does when, what it waits for, and how much memory is in use. */
#include "lanes/shown.h"
#include "schedule/schedule.h"

enum { STEPS = 4 };                     /* played until the period is known; stage_rows.c plays as many */

/* The order of the blocks on a rank, from the tasks of its role, and when they start. */
static void find_order(const Plan *p, Arena *a, const Role *role, const LaneEvent *e, Shown *t, int rank)
{
	PipeTask **list = &t->order.task[rank];
	int *n = &t->order.ntask[rank];
	t->play.start[rank] = arena_array(a, double, role->ntask + 1);
	for (int i = 0; i < role->ntask; i++) {
		const Block *b = &p->block[role->task[i].block];
		t->play.last[rank] = e[i].end;
		if (b->stage < 0 || pipe_once(b->kind))
			continue;
		t->play.start[rank][*n] = e[i].start;
		arena_push(a, *list, *n, ((PipeTask){ b->kind, b->stage, role->task[i].micro }));
	}
	t->play.first[rank] = e[0].start;
}

static void fill(const Plan *p, Arena *a, Shown *t)
{
	const Pipeline *pipe = &p->stages->pipe;
	PipePlay *y = &t->play;
	int n = pipe->nrank + 1;
	t->order = (PipeOrder){ arena_array(a, PipeTask *, n), arena_array(a, int, n) };
	t->role = arena_array(a, int, n);
	*y = (PipePlay){ .span = t->lanes.span, .makespan = t->lanes.makespan, .period = t->lanes.period };
	y->first = arena_array(a, double, n);
	y->last = arena_array(a, double, n);
	y->busy = arena_array(a, double, n);
	y->peak = arena_array(a, int64_t, n);
	y->start = arena_array(a, double *, n);
	for (int i = p->nrole; i-- > 0;)        /* of the roles of a rank, the first one stands for it */
		t->role[times_rank(p, &p->role[i])] = i;
	for (int i = 0, lane = 0; i < p->nrole; lane += t->net.role[i++].nlane) {
		int r = times_rank(p, &p->role[i]);
		if (t->role[r] != i)
			continue;
		find_order(p, a, &p->role[i], t->lanes.event[lane], t, r);
		y->busy[r] = t->lanes.busy[i];
		y->peak[r] = t->lanes.peak[i];
	}
}

/* Memory that is always in use: all that the memory plan has beside registers. */
static void add_fixed(const Plan *p, LaneNet *net)
{
	for (int i = 0; i < net->nrole; i++) {
		LaneRole *r = &net->role[i];
		Layout l = memplan_of_role(p, &p->role[i]);
		r->fixed = l.slab + l.window;
		for (int k = 0; k < r->nreg; k++)
			r->fixed -= r->reg[k].copies * r->reg[k].bytes;
		r->fixed = r->fixed > 0 ? r->fixed : 0;
	}
}

int simulate_model(Graph *g, const SimulateOptions *o)
{
	const Plan *p = g->model->plan;
	Arena a = { 0 };
	Shown t = { .over = -1 };
	if (!p->stages || !p->training) {
		err_at((Loc){ 0 }, p->stages ? "--simulate plays a training step, and this model is not trained" :
			"--simulate: the model is no pipeline; --stages=N cuts it into one");
		return -1;
	}
	const Pipeline *pipe = &p->stages->pipe;
	t.name = p->stages->schedule ? p->stages->schedule->name : p->stages->csv ? "csv" : "solver";
	t.paper = p->stages->schedule ? p->stages->schedule->paper : p->stages->csv ? "from a file" : "no name";
	lane_net_of(g, &a, &t.net);
	add_fixed(p, &t.net);
	if (!play_net(&t.net, STEPS, true, &a, &t.lanes))
		die("a proved pipeline stands still");
	fill(p, &a, &t);
	shown_sum(pipe, &t);
	t.bound = p->stages->bound;
	shown_print(pipe, &t);
	int bad = shown_write(o, &t);
	arena_free(&a);
	return bad;
}
