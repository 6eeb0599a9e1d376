/* Recompute: values of marked nodes are not kept for the backward pass but computed again, just before it reads them.
 *
 * The nodes that one annotation marks are a segment: a group of nodes, the body of a call, the nodes that a pattern
 * names, those with one number (@recompute(3), as plan/checkpoints.c writes).  A value of a segment that the forward
 * pass reads outside of it is kept.  So a chain of segments is cut where they meet, and each is computed again from its
 * own operands (Chen et al., arXiv 1604.06174).  A copy of a node stands right before the first node of the backward
 * pass that needs it, is marked @again, and is never merged with the original.  Random numbers are keyed by the name of
 * the node, which the copy keeps, so its dropout drops the same elements. */
#include "train/train.h"

#include <stdlib.h>
#include <string.h>

typedef struct Again {
	Graph *g;
	int nvalue;                     /* before any copy */
	bool *forward;                  /* by index of the node: the loss depends on it */
	bool *kept;                     /* by id of a value: used by the forward pass outside of its segment */
	Value **copy;                   /* by id of a value: its copy */
	Node **node; int nnode;         /* the new list */
	Node **wanted; int nwanted;     /* of the copies to be made now */
} Again;

static const Annot *segment(const Node *n)
{
	return annot_find(n->annot, "recompute");
}

static bool together(const Node *a, const Node *b)
{
	const Annot *x = segment(a), *y = segment(b);
	if (!x || !y || x->narg != y->narg)
		return false;
	return x->narg ? x->arg->i == y->arg->i : x->loc.file == y->loc.file && x->loc.off == y->loc.off;
}

static bool local(const Again *a, const Value *v)
{
	return v && v->graph == a->g && v->def && v->id < a->nvalue;
}

static void find_forward(Again *a, const Value *loss)
{
	Graph *g = a->g;
	bool *on = arena_array(g->scratch, bool, g->nvalue + 1);
	on[loss->id] = true;
	for (int i = g->nnode; i-- > 0;) {
		Node *n = g->node[i];
		n->mark = i;
		for (int k = 0; k < n->nout; k++)
			a->forward[i] |= n->out[k] && on[n->out[k]->id];
		for (int k = 0; k < n->nin && a->forward[i]; k++)
			if (local(a, n->in[k]))
				on[n->in[k]->id] = true;
	}
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin && a->forward[i]; k++)
			if (local(a, g->node[i]->in[k]) && !together(g->node[i], g->node[i]->in[k]->def))
				a->kept[g->node[i]->in[k]->id] = true;
}

/* Whether v is recomputed for the backward pass. */
static bool again(const Again *a, const Value *v)
{
	return local(a, v) && segment(v->def) && a->forward[v->def->mark] && !a->kept[v->id] && !v->output;
}

static void want(Again *a, Value *v)
{
	if (!again(a, v) || a->copy[v->id])
		return;
	for (int k = 0; k < v->def->nout; k++)
		if (v->def->out[k])
			a->copy[v->def->out[k]->id] = graph_fresh(a->g, name_fmt("%s.again", v->def->out[k]->name));
	arena_push(a->g->scratch, a->wanted, a->nwanted, v->def);
}

static int in_order(const void *x, const void *y)
{
	return (*(Node *const *)x)->mark - (*(Node *const *)y)->mark;
}

static Node *twin(Again *a, const Node *n)
{
	Graph *g = a->g;
	Node *c = arena_new(g->arena, Node);
	*c = *n;
	c->in = c->out = NULL;
	c->nin = c->nout = 0;
	c->annot = NULL;
	for (int k = 0; k < n->nin; k++) {
		Value *v = n->in[k];
		node_in(c, v && again(a, v) && together(n, v->def) ? a->copy[v->id] : v);
	}
	for (int k = 0; k < n->nout; k++) {
		Value *v = n->out[k] ? a->copy[n->out[k]->id] : NULL;
		node_out(c, v);
		if (v) {
			v->type = n->out[k]->type;
			v->loc = n->out[k]->loc;
		}
	}
	for (const Annot *old = n->annot; old; old = old->next)
		if (strcmp(old->name, "recompute")) {
			Annot *one = arena_new(g->arena, Annot);
			*one = *old;
			one->next = NULL;
			annot_add(&c->annot, one);
		}
	Annot *mark = arena_new(g->arena, Annot);
	mark->name = name_of("again");
	annot_add(&c->annot, mark);
	return c;
}

/* Copies all nodes that n needs and that have no copy yet, in the order of the forward pass. */
static void prepare(Again *a, Node *n)
{
	a->nwanted = 0;
	for (int k = 0; k < n->nin; k++)
		want(a, n->in[k]);
	for (int i = 0; i < a->nwanted; i++)    /* grows */
		for (int k = 0; k < a->wanted[i]->nin; k++)
			if (local(a, a->wanted[i]->in[k]) && together(a->wanted[i], a->wanted[i]->in[k]->def))
				want(a, a->wanted[i]->in[k]);
	if (a->nwanted)
		qsort(a->wanted, (size_t)a->nwanted, sizeof *a->wanted, in_order);
	for (int i = 0; i < a->nwanted; i++)
		arena_push(a->g->arena, a->node, a->nnode, twin(a, a->wanted[i]));
	for (int k = 0; k < n->nin; k++)
		if (again(a, n->in[k]))
			n->in[k] = a->copy[n->in[k]->id];
}

const Annot *recompute_first(const Graph *g)
{
	const Annot *any = NULL;
	for (int i = 0; i < g->nnode && !any; i++)
		any = segment(g->node[i]);
	return g->model->plan->training && g->model->plan->train.loss ? any : NULL;
}

int recompute_run(Graph *g)
{
	const Value *loss = g->model->plan->train.loss;
	if (!recompute_first(g) || opt.change.keep)
		return 0;
	int nnode = g->nnode, nvalue = g->nvalue;
	Again a = { .g = g, .nvalue = nvalue };
	a.forward = arena_array(g->scratch, bool, nnode + 1);
	a.kept = arena_array(g->scratch, bool, nvalue + 1);
	find_forward(&a, loss);
	a.copy = arena_array(g->scratch, Value *, nvalue + 1);
	for (int i = 0; i < nnode; i++) {
		if (!a.forward[i])
			prepare(&a, g->node[i]);
		arena_push(g->arena, a.node, a.nnode, g->node[i]);
	}
	g->node = a.node;
	g->nnode = a.nnode;
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nout; k++)
			if (g->node[i]->out[k]) {
				g->node[i]->out[k]->def = g->node[i];
				g->node[i]->out[k]->defidx = k;
			}
	return infer_graph(g);
}
