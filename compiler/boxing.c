/* Boxing: a transfer wherever producer and consumer disagree on the SBP of a value.
 *
 * Each node runs by the cheapest signature that gives its results the SBP that they have; an operand that is held
 * otherwise passes through sbpcc.Boxing nodes first.  Two consumers that want the same form share one transfer.  A node
 * whose result is pinned to a form that no signature gives computes it in its own form, which is then boxed.  Running the
 * pass again inserts nothing, so a dump made after it is stable. */
#include "compiler.h"

#include <string.h>

/* What one hop is called; NULL when it takes two, through B. */
const char *boxing_kind(const Sbp *from, const Sbp *to)
{
	if (from->kind == SBP_P && to->kind == SBP_B)
		return "all_reduce";
	if (from->kind == SBP_S && to->kind == SBP_B)
		return "all_gather";
	if (from->kind == SBP_B && to->kind == SBP_S)
		return "slice";
	if (from->kind == SBP_B && to->kind == SBP_P)
		return "zero";
	return NULL;
}

/* One transfer, on behalf of a node. */
static Value *hop(Graph *g, Value *v, const Sbp *to, const Node *by, Value *result)
{
	Node *n = node_new(g, name_of("sbpcc"), name_of("Boxing"), by->loc);
	Value *out = result ? result : graph_fresh(g, name_fmt("%s.%s", v->name, to->kind == SBP_B ? "whole" : to->kind == SBP_S ? "shard" : "term"));
	node_attr_add(n, name_of("how"), AT_STRING)->u.s = name_of(boxing_kind(v->sbp, to));
	node_in(n, v);
	node_out(n, out);
	n->from = by->from;
	micro_inherit(n, by);
	out->loc = by->loc;
	out->place = v->place;
	out->type = v->type;
	out->sbp = arena_new(g->arena, Sbp);
	*out->sbp = *to;
	if (inline_append(g, n))
		die("boxing %s", v->name);
	return out;
}

/* v in the form `to`; made once for each form. */
typedef struct Made { Value *v, *boxed; struct Made *next; } Made;

static Value *boxed(Graph *g, Made **made, Value *v, const Sbp *to, const Node *by)
{
	if (sbp_equal(v->sbp, to, 1))
		return v;
	for (Made *m = *made; m; m = m->next)
		if (m->v == v && sbp_equal(m->boxed->sbp, to, 1))
			return m->boxed;
	Sbp whole = { .kind = SBP_B };
	Value *from = boxing_kind(v->sbp, to) ? v : boxed(g, made, v, &whole, by);
	Made *m = arena_new(g->scratch, Made);
	*m = (Made){ v, hop(g, from, to, by, NULL), *made };
	*made = m;
	return m->boxed;
}

/* A result that its node gives in another form than it has. */
static void box_result(Graph *g, Node *n, int i, const Sbp *from)
{
	Value *v = n->out[i], *raw = graph_fresh(g, name_fmt("%s.raw", v->name));
	Sbp whole = { .kind = SBP_B };
	raw->type = v->type;
	raw->loc = v->loc;
	raw->place = v->place;
	raw->sbp = arena_new(g->arena, Sbp);
	*raw->sbp = *from;
	raw->def = n;
	raw->defidx = i;
	n->out[i] = raw;
	v->def = NULL;
	if (!boxing_kind(from, v->sbp))
		raw = hop(g, raw, &whole, n, NULL);
	hop(g, raw, v->sbp, n, v);
}

static int check_reducible(const Node *n)
{
	const Value *v = n->in[0];
	if (strcmp(attr_str(n, "how"), "all_reduce") || emit_stored(v->type->elem) == DT_FLOAT)
		return 0;
	err_at(n->loc, "this back end sums float over ranks only; %s is %s", v->name, type_text(v->type));
	return -1;
}

/* Transfers are for one axis of a mesh, whole axes of tensors, and sums. */
static int check_served(const Graph *g, const Mesh *m)
{
	if (m->ndim != 1) {
		err_at(m->loc, "this back end moves values on meshes of one dimension; %s has %d", m->name, m->ndim);
		return -1;
	}
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		if (v->sbp && (v->sbp->leaf || (v->sbp->kind == SBP_P && v->sbp->red != RED_SUM))) {
			err_at(v->loc, "this back end does not move %s as %s", v->name, sbp_text(v->sbp, 1));
			return -1;
		}
	}
	return 0;
}

int boxing_run(Graph *g)
{
	Plan *p = g->model->plan;
	int nold = g->nnode, bad = 0;
	Node **old = g->node;
	Made *made = NULL;
	if (check_served(g, p->main))
		return -1;
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i < nold; i++) {
		Node *n = old[i];
		bool box = n->domain == name_of("sbpcc") && !strcmp(n->op, "Boxing");
		NdSig *s = box ? NULL : sbp_choose(n, p->main, g->scratch);
		for (int k = 0; s && k < n->nin; k++)
			if (n->in[k] && emit_reads(n, k))
				n->in[k] = boxed(g, &made, n->in[k], s->in[k], n);
		arena_push(g->arena, g->node, g->nnode, n);
		for (int k = 0; s && k < n->nout; k++)
			if (n->out[k] && !sbp_equal(n->out[k]->sbp, s->out[k], 1))
				box_result(g, n, k, s->out[k]);
	}
	for (int i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i]->op, "Boxing"))
			bad |= check_reducible(g->node[i]);
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->def && g->value[i]->sbp)
			sbp_note(g, g->value[i], p->main);
	return bad;
}
