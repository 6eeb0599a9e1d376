/* Reductions: the gradients of a stage are reduced over its ranks right behind its last gradient of weights, while
 * other stages still compute.
 *
 *   rank 0   F0 F1 .  .  B0 B1 reduce0 | update        without it, all reductions were part of the update,
 *   rank 1   .  F0 B0 F1 B1 reduce1    | update        which waits for the verdict on the step
 *
 * A node of the update belongs to the reduction of a stage if all that it reads comes from the backward pass of this
 * stage, or from parameters and constants; it leads to a transfer among the ranks of the stage; and before that
 * transfer there are only elementwise nodes and views (casts, scaling).  What reads a reduced gradient is part of the
 * update, and so are gradients of a weight that several stages read, which are added there first.  A reduction changes
 * nothing that is kept, so it need not wait for the verdict. */
#include "schedule/schedule.h"

static bool has_moved(const Node *n)
{
	return n->block == BLOCK_REDUCE && kernel_transfer(n);
}

/* The stage of which an operand is a gradient; -1: of none, but it is there; -2: it is not there yet. */
static int stage_of(const Graph *g, const Node *n, const Value *v)
{
	const Node *d = v->graph == g ? v->def : NULL;
	if (!d)
		return v->input ? -2 : -1;
	if (d->block == BLOCK_BEGIN)
		return -1;
	if ((d->block != BLOCK_BW && d->block != BLOCK_REDUCE) || d->stage < 0 ||
		(has_moved(d) && !kernel_transfer(n)))
		return -2;
	return d->stage;
}

/* The stage whose gradients a node of the update could reduce, or prepare for that; -1: none. */
static int reduces_for(const Graph *g, const Node *n)
{
	int stage = -1;
	bool transfer = kernel_transfer(n);
	if (n->block != BLOCK_UPDATE || kinds_rank(g->model->plan, n->place) < 0 ||
		(transfer && n->in[0]->place->mesh != n->out[0]->place->mesh) ||
		(!transfer && !n->row->expr && !n->row->carries))
		return -1;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && n->out[k]->into)
			return -1;
	for (int k = 0; k < n->nin; k++) {
		int s = n->in[k] ? stage_of(g, n, n->in[k]) : -1;
		if (s == -2 || (s >= 0 && stage >= 0 && s != stage))
			return -1;
		stage = s >= 0 ? s : stage;
	}
	return stage;
}

void reduce_mark(Graph *g)
{
	bool *leads = arena_array(g->scratch, bool, g->nvalue + 1);     /* by value: to a transfer */
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		int stage = reduces_for(g, n);
		if (stage < 0)
			continue;
		n->block = BLOCK_REDUCE;
		n->stage = stage;
	}
	for (int i = g->nnode; i-- > 0;) {
		Node *n = g->node[i];
		bool on = kinds_moves(n);
		for (int k = 0; k < n->nout; k++)
			on |= n->out[k] && leads[n->out[k]->id];
		if (n->block != BLOCK_REDUCE)
			continue;
		for (int k = 0; k < n->nin && on; k++)
			if (n->in[k] && n->in[k]->graph == g)
				leads[n->in[k]->id] = true;
		n->block = on ? BLOCK_REDUCE : BLOCK_UPDATE;
		n->stage = on ? n->stage : -1;
	}
}

/* ---- when ---- */

/* Before which task of its rank a stage reduces: where a file of PyTorch's says so, else behind its last task. */
static int turn_of(const Stages *s, const PipeOrder *o, int stage)
{
	int r = s->pipe.stage[stage].rank, at = s->csv ? csv_reduces(s->csv, stage) : -1;
	for (int i = at < 0 ? o->ntask[r] : 0; i-- > 0 && at < 0;)
		at = o->task[r][i].stage == stage ? i + 1 : -1;
	return at;
}

void reduce_insert(Graph *g, PipeOrder *o)
{
	const Plan *p = g->model->plan;
	const Pipeline *pipe = &p->stages->pipe;
	PipeOrder all = { arena_array(g->arena, PipeTask *, pipe->nrank), arena_array(g->arena, int, pipe->nrank) };
	int *turn = arena_array(g->scratch, int, pipe->nstage);
	for (int s = 0; s < pipe->nstage; s++)
		turn[s] = -1;
	for (int b = 0; b < p->nblock; b++)
		if (p->block[b].kind == BLOCK_REDUCE && p->block[b].from < p->block[b].to)
			turn[p->block[b].stage] = turn_of(p->stages, o, p->block[b].stage);
	for (int r = 0; r < pipe->nrank; r++)
		for (int i = 0; i <= o->ntask[r]; i++) {
			for (int s = 0; s < pipe->nstage; s++)
				if (pipe->stage[s].rank == r && turn[s] == i)
					arena_push(g->arena, all.task[r], all.ntask[r],
						((PipeTask){ BLOCK_REDUCE, s, -1 }));
			if (i < o->ntask[r])
				arena_push(g->arena, all.task[r], all.ntask[r], o->task[r][i]);
		}
	*o = all;
}
