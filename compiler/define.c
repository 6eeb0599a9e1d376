/* Nodes that run by their definitions.
 *
 * A softmax whose axis is cut is no longer one kernel: each rank finds the largest of its part, the largest of these is known to all
 * after a transfer, and so the sum.  That is what the definition of the operator says when its reductions are cut.  So such a node is
 * replaced by its definition once it is known how its operands and results lie; the nodes inside take the cheapest signatures
 * between these, and the transfers are found like all others. */
#include "compiler.h"

#include <string.h>

static bool marked(const Node *n, void *arg)
{
	(void)arg;
	return n->mark == 1;
}

/* Whether operands and results lie as a signature says that takes the definition. */
static bool by_definition(Node *n, const Mesh *m, int k, Arena *a)
{
	int count;
	const Sig *list = sbp_signatures(n, m->dim[k], a, &count);
	for (int i = 0; i < count; i++) {
		bool fits = list[i].define && sbp_equal(&n->in[0]->sbp[k], &list[i].in[0], 1);
		for (int j = 0; j < n->nout && fits; j++)
			fits = !n->out[j] || n->out[j]->place->mesh != m || sbp_equal(&n->out[j]->sbp[k], &list[i].out[j], 1);
		if (fits)
			return true;
	}
	return false;
}

static bool mark(Graph *g)
{
	bool any = false;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		const Mesh *m = n->place->mesh;
		n->mark = 0;
		for (int k = 0; n->row->composite && n->nin && n->in[0] && n->in[0]->place->mesh == m && k < m->ndim; k++)
			n->mark |= m->dim[k] > 1 && n->in[0]->sbp[k].kind == SBP_S && by_definition(n, m, k, g->scratch);
		any |= n->mark;
	}
	return any;
}

/* The factors of an axis of a new value: as those of an operand that travel with it. */
static struct FactorAxis axis_like(const Node *n, const FactorRule *r, int f)
{
	for (int i = 0; r && f >= 0 && i < n->nin; i++)
		for (int a = 0; r->in[i] && n->in[i]->factors && a < n->in[i]->type->rank; a++)
			if (r->in[i][a] == f)
				return n->in[i]->factors->axis[a];
	return (struct FactorAxis){ 0 };
}

static void find_factors(Graph *g, Node *n, int i)
{
	const FactorRule *r = factor_rule(n, g->scratch);
	Value *v = n->out[i];
	Factors *x = arena_new(g->arena, Factors);
	x->rank = v->type->rank;
	x->axis = arena_array(g->arena, struct FactorAxis, x->rank + 1);
	for (int a = 0; a < x->rank; a++) {
		x->axis[a] = axis_like(n, r, r ? r->out[i][a] : -1);
		if (x->axis[a].n || v->type->dim[a] == 1)
			continue;
		int id = g->nfactor;
		arena_push(g->arena, g->factor, g->nfactor, v->type->dim[a]);
		x->axis[a].factor = arena_new(g->arena, int);
		*x->axis[a].factor = id;
		x->axis[a].n = 1;
	}
	v->factors = x;
}

/* What is new lies as the cheapest signatures say; constants are whole. */
static void settle_new(Graph *g)
{
	places_new(g);
	for (int i = 0; i < g->nvalue; i++)
		if (!g->value[i]->sbp && !g->value[i]->def)
			g->value[i]->sbp = arena_array(g->arena, Sbp, g->value[i]->place->mesh->ndim);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		const Mesh *m = n->place->mesh;
		bool fresh = false;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && !n->out[k]->sbp) {
				find_factors(g, n, k);
				fresh = true;
			}
		const NdSig *s = fresh ? sbp_choose(n, m, g->scratch) : NULL;
		for (int k = 0; s && k < n->nout; k++)
			if (n->out[k] && !n->out[k]->sbp) {
				n->out[k]->sbp = arena_array(g->arena, Sbp, m->ndim);
				memcpy(n->out[k]->sbp, s->out[k], (size_t)m->ndim * sizeof(Sbp));
			}
	}
}

int define_nodes(Graph *g)
{
	for (int round = 0; round < 8 && mark(g); round++) {      /* definitions hold nodes that have definitions, a few deep */
		if (inline_lower(g, marked, NULL) || lower_run(g) || graph_sort(g))
			return -1;
		settle_new(g);
		for (int i = 0; i < g->nvalue; i++)
			if (g->value[i]->def || g->value[i]->init)
				sbp_note(g, g->value[i], g->value[i]->place->mesh);
	}
	return 0;
}
