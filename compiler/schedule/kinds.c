/* The stage of every node, and the kind of block that runs it.
 *
 *   begin   once, before the micro-batches            update   once, after them
 *   body    without stages, all between the two; in a pipeline:
 *   load    inputs, and values that all ranks compute from them
 *   F       of a stage: nodes that depend on no gradient
 *   B       nodes that lead to a gradient that leaves the stage; if none leaves it, to gradients of activations
 *   W       the rest, gradients of weights; schedules that do not take B and W apart have one block BW
 *   reduce  of a stage, once: its gradients are reduced over its ranks (reduce.c)
 *
 * Kinds are found by the flow of data, after boxing: a node is late if it belongs to the backward pass, or reads a
 * result of a late node.  A loss that one kernel computes together with its gradient is late, too. */
#include "schedule/schedule.h"

#include <string.h>

bool kinds_in_body(const Node *n)
{
	return !pipe_once(n->block);
}

bool kinds_moves(const Node *n)
{
	const char *how = kernel_transfer(n) ? attr_str(n, "how") : NULL;
	return how && strcmp(how, "slice") && strcmp(how, "zero") && strcmp(how, "zero_fill");
}

/* The coordinate of a placement along the axis of the pipeline; -1: several. */
int kinds_rank(const Plan *p, const Placement *at)
{
	const Mesh *m = p->main;
	int inner = 1;
	if (at->mesh->nrank == m->nrank && m->dim[p->stages->axis] > 1)
		return -1;
	for (int k = p->stages->axis + 1; k < m->ndim; k++)
		inner *= m->dim[k];
	return mesh_index(m, mesh_rank(at->mesh, 0)) / inner % m->dim[p->stages->axis];
}

/* The stage of a node that has none of its own: that of its rank, or of its operands if the rank has several. */
static int stage_of(const Plan *p, const Node *n, bool late)
{
	const Pipeline *pipe = &p->stages->pipe;
	int rank = kinds_rank(p, n->place), only = -1, found = -1, count = 0;
	for (int s = 0; s < pipe->nstage; s++)
		if (pipe->stage[s].rank == rank) {
			only = s;
			count++;
		}
	if (count == 1)
		return only;
	for (int k = 0; k < n->nin; k++) {
		const Node *d = n->in[k] ? n->in[k]->def : NULL;
		if (!d || d->stage < 0 || !kinds_in_body(d) || pipe->stage[d->stage].rank != rank)
			continue;
		if (found < 0 || (late ? d->stage < found : d->stage > found))
			found = d->stage;
	}
	for (int s = 0; s < pipe->nstage && found < 0; s++)
		if (pipe->stage[s].rank == rank)
			found = s;
	return found;
}

bool kinds_backward(const Node *n)
{
	return annot_find(n->annot, "backward") || annot_find(n->annot, "again");
}

/* By value: a later stage reads it, or what is computed from it in the forward pass. */
static bool *find_passed_on(Graph *g)
{
	bool *on = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		bool any = kernel_transfer(n) && n->in[0]->place->mesh != n->out[0]->place->mesh;
		for (int k = 0; k < n->nout; k++)
			any |= n->out[k] && on[n->out[k]->id];
		for (int k = 0; k < n->nin && !kinds_backward(n) && !microbatch_updates(n); k++) {
			const Value *v = n->in[k];
			if (v && v->graph == g && v->def)
				on[v->id] |= any || (v->def->stage >= 0 && n->stage > v->def->stage);
		}
	}
	return on;
}

/* A loss and its gradient by one kernel; not if a later stage reads the loss, which would wait for its own gradient. */
static void mark_pairs(Graph *g, bool *late)
{
	const bool *on = find_passed_on(g);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin && kinds_backward(n); k++) {
			const Node *d = n->in[k] ? n->in[k]->def : NULL;
			bool pair = d && kernel_pair(d, n);
			for (int j = 0; pair && j < d->nout; j++)
				pair = !d->out[j] || !on[d->out[j]->id];
			for (int j = 0; pair && j < d->nout; j++)
				if (d->out[j])
					late[d->out[j]->id] = true;
		}
	}
}

/* By value: a late node makes it. */
static void mark_late(Graph *g, bool *late)
{
	const Plan *p = g->model->plan;
	mark_pairs(g, late);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool is = kinds_backward(n), staged = false, after = false, all = kinds_rank(p, n->place) < 0;
		for (int k = 0; k < n->nout; k++)
			is |= n->out[k] && late[n->out[k]->id];
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k];
			after |= v && v->def && v->graph == g && v->def->block == BLOCK_UPDATE;
			if (!v || !v->def || v->graph != g || !kinds_in_body(v->def))
				continue;
			is |= late[v->id];
			staged |= v->def->block != BLOCK_LOAD;
		}
		if (microbatch_begins(n))
			n->block = BLOCK_BEGIN;
		else if (microbatch_updates(n) || after || (all && staged))
			n->block = BLOCK_UPDATE;
		else
			n->block = all ? BLOCK_LOAD : is ? BLOCK_BW : BLOCK_F;
		if (all || !kinds_in_body(n))
			n->stage = -1;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				late[n->out[k]->id] = is && kinds_in_body(n);
	}
}

bool kinds_between(const Node *n)
{
	const Plan *p = n->graph->model->plan;
	return p->stages && kernel_transfer(n) && kinds_in_body(n) && n->in[0]->place->mesh != n->out[0]->place->mesh &&
		kinds_rank(p, n->in[0]->place) >= 0 && kinds_rank(p, n->out[0]->place) >= 0;
}

/* Late nodes become B or W. */
static void split_late(Graph *g)
{
	const Pipeline *pipe = &g->model->plan->stages->pipe;
	bool *leads = arena_array(g->scratch, bool, g->nvalue + 1), *leaves = arena_array(g->scratch, bool,
		pipe->nstage + 1);
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->block == BLOCK_BW && kinds_between(g->node[i]) && g->node[i]->in[0]->def)
			leaves[g->node[i]->in[0]->def->stage] = true;
	for (int i = g->nnode; i-- > 0;) {
		Node *n = g->node[i];
		if (n->block != BLOCK_BW)
			continue;
		const Annot *a = annot_find(n->annot, "backward");
		bool on = kinds_between(n) || (!leaves[n->stage] && a && !strcmp(a->arg->s, "B"));
		for (int k = 0; k < n->nout; k++)
			on |= n->out[k] && leads[n->out[k]->id];
		n->block = on ? BLOCK_B : BLOCK_W;
		for (int k = 0; k < n->nin && on; k++)
			if (n->in[k] && n->in[k]->graph == g)
				leads[n->in[k]->id] = true;
	}
}

/* By value: a sum over micro-batches before this one is added, or what is computed from such sums alone, as the part of
 * it to which a rank adds. */
static bool *find_sums(Graph *g)
{
	bool *sum = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nout && kinds_in_body(n); k++)
			for (const Value *v = n->out[k] ? n->out[k]->into : NULL; v; v = v->into)
				sum[v->id] |= v->def && v->def->block == BLOCK_BEGIN;
	}
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		bool any = false, other = !kinds_in_body(n);
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k];
			any |= v && v->graph == g && sum[v->id];
			other |= v && v->graph == g && !sum[v->id] && v->def && kinds_in_body(v->def);
		}
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && any && !other)
				sum[n->out[k]->id] = true;
	}
	return sum;
}

/* Such nodes run in the block of their reader, which adds to the sum. */
static void follow_readers(Graph *g)
{
	const bool *sum = find_sums(g);
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin && kinds_in_body(n); k++) {
			Node *d = n->in[k] && n->in[k]->graph == g && sum[n->in[k]->id] ? n->in[k]->def : NULL;
			if (!d || !kinds_in_body(d))
				continue;
			d->block = n->block;
			d->stage = n->stage;
		}
	}
}

bool kinds_split(const Stages *s)
{
	if (s->schedule)
		return s->schedule->split;
	for (int r = 0; s->csv && r < s->csv->nrank; r++)
		for (int i = 0; i < s->csv->order.ntask[r]; i++)
			if (s->csv->order.task[r][i].kind == BLOCK_W)
				return true;
	return !s->csv;
}

void kinds_mark(Graph *g)
{
	const Plan *p = g->model->plan;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		n->block = microbatch_begins(n) ? BLOCK_BEGIN : microbatch_updates(n) ? BLOCK_UPDATE : BLOCK_BODY;
	}
	if (!p->stages)
		return;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		int rank = kinds_rank(p, n->place);
		if (rank < 0 || !kinds_in_body(n))
			n->stage = -1;
		else if (n->stage < 0 || p->stages->pipe.stage[n->stage].rank != rank)
			n->stage = stage_of(p, n, kinds_backward(n));
	}
	mark_late(g, arena_array(g->scratch, bool, g->nvalue + 1));
	reduce_mark(g);
	if (kinds_split(p->stages))
		split_late(g);
	follow_readers(g);
}

bool kinds_together(const Node *a, const Node *b)
{
	bool staged = a->block == BLOCK_REDUCE || (kinds_in_body(a) && a->block != BLOCK_BODY);
	return a->block == b->block && (!staged || a->stage == b->stage);
}
