/* Nodes that are replaced by their definitions.
 *
 * A softmax whose axis is split is no longer one kernel: each rank computes the maximum of its shard, an all-reduce
 * gives all ranks the maximum of these, and the sum is computed alike.  The definition of the operator gives exactly
 * that when its reductions are split; the same holds for the exact statistics of a batch norm whose batch is split.
 * Such a node is replaced by its definition once the SBP of its operands and results is chosen.  The nodes inside take
 * the cheapest signatures, and their transfers are inserted like all others.
 *
 * The cost is known before the choice: the definition is expanded once for identical nodes and priced for each
 * candidate that uses it, with successive pointwise nodes as one pass over memory. */
#include "plan/plan.h"

#include <string.h>

static bool marked(const Node *n, void *arg)
{
	(void)arg;
	return n->mark == 1;
}

/* ---- results of new nodes ---- */

static void add_leaf(Graph *g, struct FactorAxis *x, int id)
{
	arena_push(g->arena, x->factor, x->n, id);
}

static void add_new(Graph *g, struct FactorAxis *x, int64_t len)
{
	int id = g->nfactor;
	arena_push(g->arena, g->factor, g->nfactor, len);
	add_leaf(g, x, id);
}

/* Adds the factors of an operand that are factor f of the rule; false: no operand has it. */
static bool add_like(Graph *g, const Node *n, const FactorRule *r, int f, struct FactorAxis *x)
{
	for (int i = 0; f >= 0 && i < n->nin; i++) {
		int axis, from, count;
		const Value *v = n->in[i];
		if (!v || !v->factors || !signatures_leaves(r, i, v, f, &axis, &from, &count) ||
			!v->factors->axis[axis].n)
			continue;
		for (int k = 0; k < count; k++)
			add_leaf(g, x, v->factors->axis[axis].factor[from + k]);
		return true;
	}
	return false;
}

static void find_axis(Graph *g, Node *n, const FactorRule *r, int i, int a, struct FactorAxis *x)
{
	int64_t len = n->out[i]->type->dim[a];
	if (len == 1 || (r && add_like(g, n, r, r->out[i][a], x)))
		return;
	for (int k = 0; r && k < r->nproduct; k++) {
		const FactorProduct *p = &r->product[k];
		for (int j = 0; p->out && p->at == i && p->axis == a && j < p->nsub; j++)
			if (p->sub[j].len != 1 && !add_like(g, n, r, p->sub[j].factor, x))
				add_new(g, x, p->sub[j].len);
	}
	if (!x->n)
		add_new(g, x, len);
}

static void find_factors(Graph *g, Node *n, int i)
{
	const FactorRule *r = factor_rule(n, g->scratch);
	Value *v = n->out[i];
	Factors *x = arena_new(g->arena, Factors);
	x->ndim = v->type->ndim;
	x->axis = arena_array(g->arena, struct FactorAxis, x->ndim + 1);
	for (int a = 0; a < x->ndim; a++)
		find_axis(g, n, r, i, a, &x->axis[a]);
	v->factors = x;
}

/* The cheapest signature of a node whose operands have an SBP; it decides the SBP of results that have none.  Partial
 * results are statistics that all following nodes read: they are reduced at once, not by each reader separately. */
static const NdSig *settle_node(Graph *g, Node *n, const Mesh *m, Arena *a)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !n->out[k]->factors)
			find_factors(g, n, k);
	const NdSig *s = cheapest_find(n, m, true, g->scratch);
	n->mark = 0;
	for (int k = 0; k < m->ndim; k++)
		n->mark |= m->dim[k] > 1 && s->sig[k]->define;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !n->out[k]->sbp) {
			n->out[k]->sbp = arena_array(a, Sbp, m->ndim);
			for (int i = 0; i < m->ndim; i++)
				if (s->out[k][i].kind != SBP_P)
					n->out[k]->sbp[i] = s->out[k][i];
		}
	return s;
}

/* ---- cost ---- */

struct Expansion { Model *model; Graph *g; Value **in, **out; int nin, nout; bool *stored; };

static Value *copy_value(Graph *g, const Value *v, Name name)
{
	Value *w = graph_value_here(g, name, v->loc);
	w->type = v->type;
	w->factors = v->factors;
	return w;
}

static void copy_operands(Expansion *d, Node *to, const Node *n)
{
	Graph *g = d->g;
	for (int i = 0; i < n->nin; i++) {
		Value *v = n->in[i] ? copy_value(g, n->in[i], name_fmt("in%d", i)) : NULL;
		if (v && n->in[i]->data && !n->in[i]->param) {
			v->data = n->in[i]->data;
			v->init = true;
			arena_push(g->arena, g->init, g->ninit, v);
		} else if (v) {
			v->input = true;
			arena_push(g->arena, g->in, g->nin, v);
		}
		d->in[i] = v;
		node_in(to, v);
	}
	for (int i = 0; i < n->nout; i++) {
		d->out[i] = n->out[i] ? copy_value(g, n->out[i], name_fmt("out%d", i)) : NULL;
		node_out(to, d->out[i]);
	}
}

static bool pointwise(const Node *n)
{
	return n && n->row->expr;
}

/* The values that are written to memory: those read by nodes that are not pointwise. */
static void find_stored(Expansion *d)
{
	Graph *g = d->g;
	d->stored = arena_array(g->arena, bool, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		d->stored[i] = !pointwise(g->value[i]->def) || g->value[i]->output;
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k] && !pointwise(g->node[i]))
				d->stored[g->node[i]->in[k]->id] = true;
}

Expansion *expansion_open(const Node *n)
{
	Model *model = model_new();
	Graph *g = model->graph = graph_new(model, NULL, name_of("definition"));
	Expansion *d = arena_new(&model->arena, Expansion);
	*d = (Expansion){ .model = model, .g = g, .nin = n->nin, .nout = n->nout };
	d->in = arena_array(&model->arena, Value *, n->nin + 1);
	d->out = arena_array(&model->arena, Value *, n->nout + 1);
	for (int i = 0; i < n->graph->nfactor; i++)
		arena_push(g->arena, g->factor, g->nfactor, n->graph->factor[i]);
	Node *to = node_new(g, n->domain, n->op, n->loc);
	to->version = n->version;
	to->row = n->row;
	copy_operands(d, to, n);
	for (int i = 0; i < n->nattr; i++)
		arena_push(g->arena, to->attr, to->nattr, n->attr[i]);
	if (inline_append(g, to))
		die("%s cannot be written out", n->op);
	for (int i = 0; i < d->nout; i++)
		if (d->out[i]) {
			d->out[i]->output = true;
			arena_push(g->arena, g->out, g->nout, d->out[i]);
		}
	to->mark = 1;
	if (inline_lower(g, marked, NULL) || lower_run(g) || graph_sort(g))
		die("%s cannot be written out", n->op);
	find_stored(d);
	return d;
}

void expansion_close(Expansion *d)
{
	model_free(d->model);
}

static double run_cost(const Expansion *d, const Node *n, const NdSig *s, const Mesh *m)
{
	if (!pointwise(n))
		return cost_run(n, s->in, s->out, m, 0);
	double t = 0, start = 0;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && d->stored[n->in[i]->id])
			t += device_through(cost_shard(n->in[i], s->in[i], m));
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && d->stored[n->out[i]->id]) {
			t += device_through(cost_shard(n->out[i], s->out[i], m));
			start = device.start;
		}
	return start + t;
}

/* One transfer serves all readers that need the same SBP. */
typedef struct Moved { const Value *v; const Sbp *to; struct Moved *next; } Moved;

static double move_cost(const Value *v, const Sbp *to, const Mesh *m, Moved **done, Arena *a)
{
	if (sbp_equal(v->sbp, to, m->ndim))
		return 0;
	for (const Moved *d = *done; d; d = d->next)
		if (d->v == v && sbp_equal(d->to, to, m->ndim))
			return 0;
	Moved *d = arena_new(a, Moved);
	*d = (Moved){ v, to, *done };
	*done = d;
	return cost_move(v, v->sbp, to, m);
}

double expansion_cost(Expansion *d, const NdSig *s, const Mesh *m)
{
	Graph *g = d->g;
	Arena a = { 0 };
	Moved *done = NULL;
	double t = 0;
	Sbp *all_b = arena_array(&a, Sbp, m->ndim);
	for (int i = 0; i < g->nvalue; i++)
		g->value[i]->sbp = g->value[i]->def ? NULL : all_b;
	for (int i = 0; i < d->nin; i++)
		if (d->in[i])
			d->in[i]->sbp = s->in[i];
	for (int i = 0; i < d->nout; i++)
		if (d->out[i])
			d->out[i]->sbp = s->out[i];
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		const NdSig *by = settle_node(g, n, m, &a);
		t += run_cost(d, n, by, m);
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && kernel_reads(n, k))
				t += move_cost(n->in[k], by->in[k], m, &done, &a);
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && !sbp_equal(by->out[k], n->out[k]->sbp, m->ndim))
				t += cost_move(n->out[k], by->out[k], n->out[k]->sbp, m);
	}
	arena_free(&a);
	arena_free(&d->model->scratch);
	d->model->scratch = (Arena){ 0 };
	return t;
}

/* ---- replacement ---- */

static bool any_marked(const Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->mark == 1)
			return true;
	return false;
}

/* New values take the SBP of the cheapest signatures; new constants are B. */
static void settle_new(Graph *g)
{
	placement_new(g);
	for (int i = 0; i < g->nvalue; i++)
		if (!g->value[i]->sbp && !g->value[i]->def)
			g->value[i]->sbp = arena_array(g->arena, Sbp, g->value[i]->place->mesh->ndim);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool fresh = false;
		for (int k = 0; k < n->nout; k++)
			fresh |= n->out[k] && (!n->out[k]->sbp || !n->out[k]->factors);
		n->mark = 0;
		if (fresh)
			settle_node(g, n, n->place->mesh, g->arena);
	}
}

int expansion_nodes(Graph *g)
{
	/* definitions contain nodes that have definitions themselves, a few levels deep */
	for (int round = 0; round < 8 && any_marked(g); round++) {
		if (inline_lower(g, marked, NULL) || lower_run(g) || graph_sort(g))
			return -1;
		settle_new(g);
		for (int i = 0; i < g->nvalue; i++)
			if (g->value[i]->def || g->value[i]->init)
				sbp_note(g, g->value[i], g->value[i]->place->mesh);
	}
	return 0;
}
