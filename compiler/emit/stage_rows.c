/* The stages of a pipeline as rows, for the user: what each has, how long its blocks take, how many micro-batches it
 * keeps, how much memory its rank needs, and for which share of a step that rank is idle, as the simulator plays it. */
#include "emit/emit.h"

#include <inttypes.h>

/* The nodes of a stage, and the parameters that they are the first to read. */
typedef struct StageRow { const char *first, *last; int64_t params; int copies; } StageRow;

static StageRow *find_rows(const Emit *e, Arena *a)
{
	const Graph *g = e->program[0].model->graph;
	const Plan *p = e->program[0].model->plan;
	StageRow *row = arena_array(a, StageRow, p->stages->pipe.nstage + 1);
	bool *counted = arena_array(a, bool, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		if (n->block != BLOCK_F || n->stage < 0 || kernel_transfer(n) || !n->out[0])
			continue;
		StageRow *r = &row[n->stage];
		r->first = r->first ? r->first : n->out[0]->name;
		r->last = n->out[0]->name;
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k];
			if (!v || v->graph != g || !v->param || counted[v->id])
				continue;
			counted[v->id] = true;
			r->params += type_elements(v->type);
		}
	}
	for (int i = 0; i < p->nslot; i++) {
		const Slot *s = p->slot[i];
		const Node *n = s && s->store == s ? s->v->def : NULL;
		if (n && n->block == BLOCK_F && n->stage >= 0 && s->copies > row[n->stage].copies)
			row[n->stage].copies = s->copies;
	}
	return row;
}

static int role_of_stage(const Plan *p, int stage)
{
	for (int i = 0; i < p->nrole; i++)
		for (int k = 0; k < p->role[i].ntask; k++)
			if (p->block[p->role[i].task[k].block].stage == stage)
				return i;
	return 0;
}

void stage_rows_print(const Emit *e)
{
	const Plan *p = e->program[0].model->plan;
	if (!p->stages || !p->training)
		return;
	const Pipeline *pipe = &p->stages->pipe;
	Arena a = { 0 };
	LaneNet net;
	LanePlay play;
	lane_net_of(e->program[0].model->graph, &a, &net);
	if (!play_net(&net, 4, true, &a, &play))
		die("a proved pipeline stands still");
	StageRow *row = find_rows(e, &a);
	printf("pipeline %s: %d stages on %d ranks, %d micro-batches\n", p->stages->schedule
		? p->stages->schedule->name :
		p->stages->csv ? "from a file" : "by the solver", pipe->nstage, pipe->nrank, pipe->micros);
	printf("stage %-12s %12s %10s %10s %10s %7s %12s %7s  %s\n", "ranks", "parameters", "F ms", "B ms", "W ms",
		"copies", "bytes", "idle", "values");
	for (int s = 0; s < pipe->nstage; s++) {
		int k = role_of_stage(p, s);
		const Role *r = &p->role[k];
		Layout l = memplan_of_role(p, r);
		char ranks[32];
		snprintf(ranks, sizeof ranks, r->nrank > 1 ? "%d..%d" : "%d", r->rank[0], r->rank[r->nrank - 1]);
		printf("%5d %-12s %12" PRId64 " %10.3f %10.3f %10.3f %7d %12" PRId64 " %6.1f%%  %s .. %s\n", s, ranks,
			row[s].params,
			1e3 * pipe->stage[s].f, 1e3 * pipe->stage[s].b, 1e3 * pipe->stage[s].w,
			row[s].copies ? row[s].copies : 1, l.slab + l.window, 100 * (1 - play.busy[k] / play.period),
			row[s].first ? emit_comment(e->tree.arena, row[s].first) : "",
			row[s].last ? emit_comment(e->tree.arena, row[s].last) : "");
	}
	printf("predicted: %.3f ms for a step in the long run, %.3f ms for the first\n", 1e3 * play.period,
		1e3 * play.makespan);
	arena_free(&a);
}
