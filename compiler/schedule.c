/* The schedule: for each role a list of actions, in the order in which a rank runs them.
 *
 * One thread of execution.  One action loads all inputs of the step, nodes run in the order of the graph, transfers stand
 * where their value is first wanted, and the loss is handed out.  Parameters, state and constants are filled before the
 * first step, from a table (emit_tables.c).  Every output has one slot: its actor has one credit, which the last reader gives back. */
#include "compiler.h"

#include <string.h>

typedef struct List { Arena *a; Action **at; int *n; } List;

static Action *add(List *l, ActKind kind, Node *node)
{
	Action act = { .kind = kind, .id = *l->n, .n = node };
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

static void schedule_role(Graph *g, Plan *p, Role *r)
{
	List step = { g->arena, &r->step, &r->nstep };
	Action *load = add(&step, ACT_LOAD, NULL);
	for (int i = 0; i < g->nin; i++)
		if (plan_slot(p, g->in[i]) && plan_slot(p, g->in[i])->keep == KEEP_INPUT)
			make(&step, load, plan_slot(p, g->in[i]));
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		const char *how = !strcmp(n->op, "Boxing") ? attr_str(n, "how") : NULL;
		if (n->nout && plan_slot(p, n->out[0]) && plan_slot(p, n->out[0])->view)
			continue;               /* no work: the same bytes */
		bool moves = how && (!strcmp(how, "all_reduce") || !strcmp(how, "all_gather"));
		Action *a = add(&step, moves ? ACT_COLLECTIVE : ACT_COMPUTE, n);
		a->how = how;
		a->elementwise = n->row->expr != NULL;
		for (int k = 0; k < n->nin; k++)
			take(&step, a, n->in[k] && emit_reads(n, k) ? plan_slot(p, n->in[k]) : NULL);
		for (int k = 0; k < n->nout; k++)
			make(&step, a, plan_slot(p, n->out[k]));
		for (int k = 0; moves && k < a->ntake; k++)
			a->take[k]->window = true;
		for (int k = 0; moves && k < a->nmake; k++)
			a->make[k]->window = true;
	}
	Action *save = add(&step, ACT_SAVE, NULL);      /* outputs live to the end */
	for (int i = 0; i < g->nout; i++)
		take(&step, save, plan_slot(p, g->out[i]));
}

int schedule_run(Graph *g)
{
	Plan *p = g->model->plan;
	project_roles(g);
	for (int i = 0; i < p->nrole; i++)
		schedule_role(g, p, &p->role[i]);
	for (int i = 0; i < p->nslot; i++)      /* one memory, one area */
		if (p->slot[i] && p->slot[i]->window)
			p->slot[i]->store->window = true;
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i])
			p->slot[i]->window = p->slot[i]->store->window;
	return 0;
}
