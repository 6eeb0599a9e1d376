/* The stages of a pipeline as rows, for the user: what each has, how long its blocks take, how many micro-batches it
 * keeps, how much memory its rank needs, and for which share of a step that rank is idle, as the simulator plays it. */
#include "emit/emit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The nodes of a stage, and the parameters that they are the first to read. */
typedef struct StageRow { const char *first, *last; int64_t params; int layers, copies; } StageRow;

/* The operator or call at the top level of the model that a node belongs to: "gpt.ir:37:12". */
static Name layer_of(const Node *n)
{
	const char *at = n->from ? n->from : loc_text(n->loc), *in;
	while ((in = strstr(at, " in ")))
		at = in + 4;
	return name_of(at);
}

/* Of the model's forward pass; a loss may run in the backward block of its stage, together with its gradient. */
static bool forward(const Node *n)
{
	const Annot *a = n->annot;
	return annot_find(a, "stage") && !annot_find(a, "backward") && !annot_find(a, "again") && n->stage >= 0 &&
		!kernel_transfer(n);
}

static StageRow *find_rows(const Emit *e, Arena *a)
{
	const Graph *g = e->program[0].model->graph;
	const Plan *p = e->program[0].model->plan;
	StageRow *row = arena_array(a, StageRow, p->stages->pipe.nstage + 1);
	bool *counted = arena_array(a, bool, g->nvalue + 1);
	Map seen;
	map_init(&seen, a);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		if (!forward(n) || !n->out[0])
			continue;
		StageRow *r = &row[n->stage];
		r->first = r->first ? r->first : n->out[0]->name;
		r->last = n->out[0]->name;
		Name layer = name_fmt("%d %s", n->stage, layer_of(n));
		r->layers += !map_get(&seen, layer);
		map_put(&seen, layer, r);
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

/* The ranks of a stage, which are equally far apart: "0..3", "0,2..6". */
static void ranks_text(const Role *r, char *to, size_t size)
{
	int n = r->nrank, last = r->rank[n - 1];
	if (n == 1)
		snprintf(to, size, "%d", last);
	else if (r->rank[1] == r->rank[0] + 1)
		snprintf(to, size, "%d..%d", r->rank[0], last);
	else
		snprintf(to, size, n > 2 ? "%d,%d..%d" : "%d,%d", r->rank[0], r->rank[1], last);
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
	printf("pipeline %s: %d stages on %d ranks, %d micro-batch%s\n", p->stages->schedule
		? p->stages->schedule->name :
		p->stages->csv ? "from a file" : "by the solver", pipe->nstage, pipe->nrank, pipe->micros,
		pipe->micros == 1 ? "" : "es");
	printf("stage %-12s %6s %12s %10s %10s %10s %7s %12s %7s  %s\n", "ranks", "layers", "parameters", "F ms",
		"B ms", "W ms", "copies", "bytes", "idle", "values");
	for (int s = 0; s < pipe->nstage; s++) {
		int k = role_of_stage(p, s);
		const Role *r = &p->role[k];
		Layout l = memplan_of_role(p, r);
		char ranks[32];
		ranks_text(r, ranks, sizeof ranks);
		printf("%5d %-12s %6d %12" PRId64 " %10.3f %10.3f %10.3f %7d %12" PRId64 " %6.1f%%  %s .. %s\n", s,
			ranks, row[s].layers, row[s].params,
			1e3 * pipe->stage[s].f, 1e3 * pipe->stage[s].b, 1e3 * pipe->stage[s].w,
			row[s].copies ? row[s].copies : 1, l.slab + l.window, 100 * (1 - play.busy[k] / play.period),
			row[s].first ? emit_comment(e->tree.arena, row[s].first) : "",
			row[s].last ? emit_comment(e->tree.arena, row[s].last) : "");
	}
	printf("predicted: %.3f ms for a step in the long run, %.3f ms for the first\n", 1e3 * play.period,
		1e3 * play.makespan);
	printf("bound: with these blocks no schedule takes less than %.3f ms for a step, %s; gap %.2f %%\n",
		1e3 * p->stages->bound, p->stages->proven ? "by search" : "by work, ways and memory",
		p->stages->bound > 0 ? 100 * fmax(0, play.period / p->stages->bound - 1) : 0);
	arena_free(&a);
}
