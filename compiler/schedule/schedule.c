/* The schedule: a list of actions, one for all roles; a rank runs those that it takes part in.
 *
 * A rank has one thread of execution.  One action loads all inputs, groups of nodes run in the order that fuse.c found,
 * and the last action reports the loss.  A transfer stands before the first reader of its value, or is split into a
 * start and a finish (overlap.c).  Parameters, state and constants are filled before the first step, from a table
 * (emit/tables.c). */
#include "schedule/schedule.h"

#include <string.h>

typedef struct List { Arena *a; Action **at; int *n; int block; } List;      /* block: of what is added */

static Action *add(List *l, ActKind kind, Node *node)
{
	Action act = { .kind = kind, .id = *l->n, .n = node, .channel = -1, .block = l->block };
	arena_push(l->a, *l->at, *l->n, act);
	return &(*l->at)[*l->n - 1];
}

static void make(List *l, Action *a, Slot *s)
{
	arena_push(l->a, a->make, a->nmake, s);
}

static void take(List *l, Action *a, Slot *s)
{
	arena_push(l->a, a->take, a->ntake, s);
}

static bool listed(Slot *const *list, int n, const Slot *s)
{
	for (int i = 0; i < n; i++)
		if (list[i] == s)
			return true;
	return false;
}

/* Operands and results of a loop over several nodes: each slot once.  The operands of the host come first, at their own
 * indices. */
static void schedule_loop(const Plan *p, List *l, Action *a)
{
	int first = a->host ? a->host->nin : 0;
	for (int k = 0; k < first; k++)
		take(l, a, a->host->in[k] && kernel_reads(a->host, k) ? slot_of(p, a->host->in[k]) : NULL);
	for (int i = 0; i < a->nnode; i++) {
		const Node *n = a->node[i];
		for (int k = 0; k < n->nin && n != a->host; k++) {
			Slot *s = n->in[k] && kernel_reads(n, k) ? slot_of(p, n->in[k]) : NULL;
			if (s && !listed(a->make, a->nmake, s) &&
				(a->ntake == first || !listed(a->take + first, a->ntake - first, s)))
				take(l, a, s);
		}
		if (slot_of(p, n->out[0]))
			make(l, a, slot_of(p, n->out[0]));
	}
}

bool schedule_all_reduce(const Action *a)
{
	return a->how && !strcmp(a->how, "all_reduce");
}

int schedule_section(const Role *r, int from)
{
	int to = from + 1;
	while (to < r->nstep && r->step[to].block == r->step[from].block &&
		(to < r->nstep - 1 || r->step[to].kind != ACT_SAVE))
		to++;
	return to;
}

/* An estimate: the work of the node divided by the largest number of shards that any of its values has. */
double schedule_flops(const Plan *p, const Action *a)
{
	double f = 0, shards = 1;
	for (int i = 0; i < a->nnode && a->kind == ACT_COMPUTE; i++)
		f += cost_flops(a->node[i]);
	for (int i = 0; i < a->nmake + a->ntake; i++) {
		const Slot *x = i < a->nmake ? a->make[i] : a->take[i - a->nmake];
		double whole = 1;
		for (int k = 0; x && k < x->ndim; k++)
			whole *= (double)x->dim[k];
		if (x && x->bytes && whole / (double)p->forms->most[x->form] > shards)
			shards = whole / (double)p->forms->most[x->form];
	}
	return f / shards;
}

/* The operands of the first node, then those of the second that are neither among them nor results of the first;
 * results of both. */
static void schedule_pair(const Plan *p, List *l, Action *a)
{
	const Node *first = a->mate, *second = a->n;
	for (int k = 0; k < first->nin; k++)
		take(l, a, first->in[k] && kernel_reads(first, k) ? slot_of(p, first->in[k]) : NULL);
	for (int k = 0; k < first->nout; k++)
		make(l, a, slot_of(p, first->out[k]));
	for (int k = 0; k < second->nin; k++) {
		Slot *s = second->in[k] && kernel_reads(second, k) ? slot_of(p, second->in[k]) : NULL;
		if (s && !listed(a->take, first->nin, s) && !listed(a->make, a->nmake, s))
			take(l, a, s);
	}
	for (int k = 0; k < second->nout; k++)
		make(l, a, slot_of(p, second->out[k]));
	a->under = a->take[0];
}

/* The operands that the group does not make, each once; results that are read outside. */
static void schedule_sums(const Plan *p, List *l, const Group *grp)
{
	Action *a = add(l, ACT_COMPUTE, grp->node[grp->nnode - 1]);
	a->node = grp->node;
	a->nnode = grp->nnode;
	a->sums = grp;
	for (int i = 0; i < grp->nnode; i++)
		if (slot_of(p, grp->node[i]->out[0]))
			make(l, a, slot_of(p, grp->node[i]->out[0]));
	for (int i = 0; i < grp->nnode; i++)
		for (int k = 0; k < grp->node[i]->nin; k++) {
			Slot *s = slot_of(p, grp->node[i]->in[k]);
			if (s && !listed(a->make, a->nmake, s) && !listed(a->take, a->ntake, s))
				take(l, a, s);
		}
}

static void schedule_group(Graph *g, List *l, const Group *grp)
{
	const Plan *p = g->model->plan;
	Node *n = grp->node[grp->nnode - 1];
	if (grp->sums) {
		schedule_sums(p, l, grp);
		return;
	}
	const char *how = kernel_transfer(n) ? attr_str(n, "how") : NULL;
	if (n->nout && slot_of(p, n->out[0]) && slot_of(p, n->out[0])->view)
		return;                         /* a view: the bytes stay where they are */
	bool moves = kinds_moves(n);
	if (moves && kinds_between(n)) {
		tasks_queue(g, n, slot_of(p, n->in[0]), slot_of(p, n->out[0]));
		return;
	}
	Action *a = add(l, moves ? ACT_COLLECTIVE : ACT_COMPUTE, n);
	a->node = grp->node;
	a->nnode = grp->nnode;
	a->how = how;
	if (grp->nnode == 2 && kernel_pair(grp->node[0], n)) {
		a->mate = grp->node[0];
		schedule_pair(p, l, a);
		return;
	}
	for (int i = 0; i < grp->nnode && grp->nnode > 1; i++)
		if (!grp->node[i]->row->expr)
			a->host = grp->node[i];
	a->elementwise = n->row->expr && !a->host;
	if (a->elementwise || a->host) {
		schedule_loop(p, l, a);
		return;
	}
	for (int k = 0; k < n->nin; k++)
		take(l, a, n->in[k] && kernel_reads(n, k) ? slot_of(p, n->in[k]) : NULL);
	for (int k = 0; k < n->nout; k++)
		make(l, a, slot_of(p, n->out[k]));
	if (moves)
		a->channel = channel_of(g, a->take[0], a->make[0]);
	for (int k = 0; moves && k < a->ntake; k++)
		a->take[k]->window = true;
	for (int k = 0; schedule_all_reduce(a) && k < a->nmake; k++)
		a->make[k]->window = true;
}

static void load_inputs(Graph *g, Plan *p, List *step)
{
	Action *load = add(step, ACT_LOAD, NULL);
	for (int i = 0; i < g->nin; i++)
		if (slot_of(p, g->in[i]) && slot_of(p, g->in[i])->keep == KEEP_INPUT)
			make(step, load, slot_of(p, g->in[i]));
}

/* s, if an action makes it (a value inside a group has no memory) and it has the type that the runtime reads; else
 * NULL. */
static Slot *made(const Role *r, Slot *s, DType type)
{
	for (int i = 0; s && i < r->nstep; i++)
		for (int k = 0; k < r->step[i].nmake; k++)
			if (r->step[i].make[k] == s)
				return s->v->type->elem == type ? s : NULL;
	return NULL;
}

/* The loss is checked as soon as it is computed, so that nothing has been updated when it is not a number. */
static void look_early(Graph *g, const Plan *p, Role *r)
{
	const Slot *loss = slot_of(p, g->out[0]);
	int at = r->nstep - 1;
	for (; at >= 0; at--)
		for (int k = 0; k < r->step[at].nmake; k++)
			if (r->step[at].make[k] && slot_value(r->step[at].make[k]) == slot_value((Slot *)loss))
				goto found;
	return;
found:;
	/* the loss is complete after the last micro-batch */
	int block = r->step[at++].block, update = p->nblock - 1;
	if (block != update && (p->stages || p->train.microbatches > 1))
		for (block = update; at < r->nstep && r->step[at].block != update;)
			at++;
	List l = { g->arena, &r->step, &r->nstep, block };
	Action *a = add(&l, ACT_SAVE, NULL);
	take(&l, a, (Slot *)loss);
	Action look = r->step[r->nstep - 1];
	memmove(r->step + at + 1, r->step + at, (size_t)(r->nstep - 1 - at) * sizeof *r->step);
	r->step[at] = look;
	for (int i = 0; i < r->nstep; i++)
		r->step[i].id = i;
}

/* A forward pass of a pipeline reports at the end of a stage: an evaluation all at the end of the last one that
 * computes an output, an inference each output where it is computed.  What all ranks have, the first one reports. */
static int report_stage(const Graph *g, const Value *v)
{
	const Pipeline *pipe = &g->model->plan->stages->pipe;
	int last = -1, first = 0;
	for (int i = 0; i < g->nout && stages_one_report(g); i++)
		if (g->out[i]->def && g->out[i]->def->stage > last)
			last = g->out[i]->def->stage;
	while (pipe->stage[first].rank)
		first++;
	if (last < 0 && v->def)
		last = v->def->stage;
	return last < 0 ? first : last;
}

/* Adds a report of the outputs of a stage, if it has some; -1: of all. */
static Action *report(Graph *g, List *l, int stage)
{
	Action *save = stage < 0 ? add(l, ACT_SAVE, NULL) : NULL;
	for (int i = 0; i < g->nout; i++) {
		if (stage >= 0 && report_stage(g, g->out[i]) != stage)
			continue;
		save = save ? save : add(l, ACT_SAVE, NULL);
		take(l, save, slot_of(g->model->plan, g->out[i]));
	}
	return save;
}

/* Groups in the order of their blocks.  The body begins by loading a micro-batch. */
static void schedule_role(Graph *g, Plan *p, Role *r)
{
	List step = { g->arena, &r->step, &r->nstep, 0 };
	tasks_blocks(g);
	int *of = arena_array(g->scratch, int, p->ngroup + 1);
	for (int i = 0; i < p->ngroup; i++)
		of[i] = tasks_block(g, p->group[i].node[p->group[i].nnode - 1]);
	for (int b = 0; b < p->nblock; b++) {
		step.block = b;
		if (p->block[b].kind == BLOCK_BODY || p->block[b].kind == BLOCK_LOAD)
			load_inputs(g, p, &step);
		for (int i = 0; i < p->ngroup; i++)
			if (of[i] == b)
				schedule_group(g, &step, &p->group[i]);
		if (tasks_repeat(p) && p->block[b].kind == BLOCK_F)
			report(g, &step, p->block[b].stage);
	}
	if (!p->stages && (p->train.microbatches < 2 || g->model->main))
		step.block--;                   /* one block: the body ends the step */
	Action *save = tasks_repeat(p) ? NULL : report(g, &step, -1);           /* outputs live to the end */
	const struct { const char *name; DType type; } reported[] = { { optimizer_rate, DT_DOUBLE },
		{ optimizer_norm, DT_FLOAT } };
	for (int i = 0; i < 2 && !g->model->main && p->training; i++)
		take(&step, save, made(r, slot_of(p, graph_find(g, name_of(reported[i].name))), reported[i].type));
	if (!g->model->main && p->training)
		look_early(g, p, r);
	bucket_role(g, r);
	overlap_role(g, r);
	while (r->body < r->nstep && p->block[r->step[r->body].block].kind == BLOCK_BEGIN)
		r->body++;
	for (r->after = r->body; r->after < r->nstep;)
		if (p->block[r->step[r->after].block].kind == BLOCK_UPDATE)
			break;
		else
			r->after++;
}

int schedule_run(Graph *g)
{
	Plan *p = g->model->plan;
	project_roles(g);
	p->channels = g->model->main ? g->model->main->plan->channels : arena_new(g->arena, Channels);
	p->queue = NULL;
	p->nqueue = 0;
	schedule_role(g, p, &p->role[0]);
	for (int i = 1; i < p->nrole; i++) {    /* one list for all */
		Role *r = &p->role[i];
		r->step = p->role[0].step;
		r->nstep = p->role[0].nstep;
		r->body = p->role[0].body;
		r->after = p->role[0].after;
	}
	for (int i = 0; i < p->nslot; i++)      /* values that share memory lie in the same area */
		if (p->slot[i] && p->slot[i]->window)
			p->slot[i]->store->window = true;
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i])
			p->slot[i]->window = p->slot[i]->store->window;
	return tasks_find(g);
}
