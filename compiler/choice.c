/* The choice of a signature for each node, in the order of the graph.
 *
 * Inputs are split along the batch, parameters and constants are whole, pins are what they are, and each node takes the
 * signature whose transfers and work cost least given its operands.  Prices add up over the axes of the mesh, so each axis is
 * chosen for itself; only where the cheapest of all do not go together are their mixtures compared. */
#include "compiler.h"

#include <math.h>
#include <string.h>

static int64_t bytes_of(const Value *v)
{
	int64_t n = type_elements(v->type);
	return n < 0 ? 0 : n * dtype_bits(v->type->elem) / 8;
}

static double moved(const Sbp *from, const Sbp *to, const Value *v, int parts)
{
	return from->kind == SBP_ANY ? 0 : cost_box(from, to, bytes_of(v), parts);
}

/* What it costs to run n by s along axis k, given its operands and the results that are settled already. */
static double price(Node *n, const Sig *s, const Mesh *m, int k)
{
	bool split = false;
	double t = 0;
	int parts = m->dim[k];
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		split |= s->in[i].kind == SBP_S;
		double move = n->in[i]->sbp ? moved(&n->in[i]->sbp[k], &s->in[i], n->in[i], parts) : 0;
		t += emit_reads(n, i) ? move : 1e-3 * move;     /* only its shape matters: any form will do, its own is neater */
	}
	for (int i = 0; i < n->nout; i++)
		split |= n->out[i] && s->out[i].kind == SBP_S;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && n->out[i]->sbp && n->out[i]->sbp[k].kind != SBP_ANY)
			t += moved(&s->out[i], &n->out[i]->sbp[k], n->out[i], parts);
	return t + cost_node(n, split ? 1.0 / parts : 1.0);
}

/* What the passes behind this one can hold and run. */
static bool served_one(const Value *v, const Sbp *s)
{
	return !s->leaf && !s->before && !s->after && (s->kind != SBP_P || (s->red == RED_SUM && dtype_is_float(v->type->elem)));
}

static bool served(const Node *n, const Sig *s, int parts)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && (!served_one(n->in[i], &s->in[i]) || (s->in[i].kind == SBP_S && n->in[i]->type->dim[s->in[i].axis] < parts)))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !served_one(n->out[i], &s->out[i]))
			return false;
	return true;
}

NdSig *sbp_choose(Node *n, const Mesh *m, Arena *a)
{
	Sig *list[MESH_DIMS];
	double *cost[MESH_DIMS], least = INFINITY;
	const Sig *pick[MESH_DIMS];
	int len[MESH_DIMS], at[MESH_DIMS] = { 0 }, bad = 0, k;
	const NodePin *pin = pins_node(n, m, a, &bad);
	for (k = 0; k < m->ndim; k++) {
		double best = INFINITY;
		list[k] = sbp_signatures(n, m->dim[k], a, &len[k]);
		cost[k] = arena_array(a, double, len[k]);
		for (int i = 0; i < len[k]; i++) {
			bool may = m->dim[k] == 1 || (pins_allow(n, pin, &list[k][i], k) && (pin || served(n, &list[k][i], m->dim[k])));
			cost[k][i] = may ? price(n, &list[k][i], m, k) : INFINITY;
			if (cost[k][i] < best) {
				best = cost[k][i];
				pick[k] = &list[k][i];
			}
		}
	}
	NdSig *s = sbp_together(n, pick, m->ndim, a);
	for (bool more = !s; more;) {           /* mixtures */
		double t = 0;
		for (k = 0; k < m->ndim; k++) {
			pick[k] = &list[k][at[k]];
			t += cost[k][at[k]];
		}
		NdSig *nd = t < least ? sbp_together(n, pick, m->ndim, a) : NULL;
		if (nd) {
			s = nd;
			least = t;
		}
		for (k = m->ndim; k-- > 0 && ++at[k] == len[k];)
			at[k] = 0;
		more = k >= 0;
	}
	return s;
}

static Sbp *settle(Graph *g, Value *v, const Sbp *s, int ndim)
{
	if (!v->sbp) {
		v->sbp = arena_array(g->arena, Sbp, ndim);
		memcpy(v->sbp, s, (size_t)ndim * sizeof *s);
	}
	for (int k = 0; k < ndim; k++)
		if (v->sbp[k].kind == SBP_ANY)
			v->sbp[k] = s[k];
	return v->sbp;
}

static bool settled(const Value *v, int ndim)
{
	for (int k = 0; v->sbp && k < ndim; k++)
		if (v->sbp[k].kind == SBP_ANY)
			return false;
	return v->sbp != NULL;
}

/* Inputs are split along the batch, which is the first axis of the first input, over the first axis of the mesh that has several
 * ranks; all else starts whole. */
static void source(Graph *g, Value *v, const Mesh *m)
{
	const Type *b = g->nin ? g->in[0]->type : NULL, *t = v->type;
	Sbp s[MESH_DIMS] = { { 0 } };
	int k = 0;
	while (k < m->ndim - 1 && m->dim[k] == 1)
		k++;
	if (v->input && !v->init && t && b && t->rank > 0 && b->rank > 0 && t->dim[0] == b->dim[0] && t->dim[0] >= m->dim[k] && m->dim[k] > 1)
		s[k].kind = SBP_S;
	settle(g, v, s, m->ndim);
}

/* State of an optimizer that is as large as its parameter (w.m of w) lies as that does. */
static void follow(Graph *g, Value *v, const Mesh *m)
{
	const char *dot = v->init ? strrchr(v->name, '.') : NULL;
	const Value *w = dot ? graph_find(g, name_n(v->name, (size_t)(dot - v->name))) : NULL;
	if (w && w->param && w->sbp && type_equal(w->type, v->type))
		settle(g, v, w->sbp, m->ndim);
}

/* What is known before any node is looked at. */
static void start(Graph *g, const Pins *pins, const Mesh *m)
{
	static const Sbp whole[MESH_DIMS];
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		v->sbp = NULL;
		if (pins->value[i])
			settle(g, v, pins->value[i], m->ndim);
	}
	for (int i = 0; i < g->nvalue; i++)
		follow(g, g->value[i], m);
	for (int i = 0; i < g->nvalue; i++)
		if (!g->value[i]->def)
			source(g, g->value[i], m);
	for (int i = 0; i < g->nvalue; i++)     /* an update lives where the old value lives */
		if (g->value[i]->into && g->value[i]->into->sbp)
			settle(g, g->value[i], g->value[i]->into->sbp, m->ndim);
	for (int i = 0; i < g->nout; i++)       /* what is reported is whole */
		settle(g, g->out[i], whole, m->ndim);
}

int sbp_solve(Graph *g, Plan *p)
{
	const Mesh *m = p->main;
	const Pins *pins = pins_read(g, m);
	if (!pins)
		return -1;
	start(g, pins, m);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		Value *sum = n->nout && n->out[0] && n->out[0]->into && n->nin ? n->in[0] : NULL;
		if (!strcmp(n->op, "Zeros"))
			continue;               /* as what is added to it */
		if (sum && !settled(sum, m->ndim))
			settle(g, sum, settled(n->out[0], m->ndim) ? n->out[0]->sbp : n->in[1]->sbp, m->ndim);
		NdSig *s = sbp_choose(n, m, g->scratch);
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				settle(g, n->out[k], s->out[k], m->ndim);
	}
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->def || g->value[i]->init || g->value[i]->input)
			sbp_note(g, g->value[i], m);
	return 0;
}
