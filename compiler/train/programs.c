/* Programs: step, eval and infer, over one set of parameters.
 *
 * The model that was read becomes the program step.  Two others are added, each a model of its own with a graph of its
 * own:
 *   eval   the loss of a batch as a sum and a count, so that batches of different weight can be added up
 *   infer  the other outputs, from the inputs that they need
 * Both are copies made before the backward pass is built, with batch statistics and dropout switched off.  Without a
 * training section, or with --infer, the model itself is the inference program and stands alone.
 *
 * Passes run on the main model first and then on the others.  The main model decides the SBPs and placements of
 * parameters, and the others take them over.  Values of two programs are the same if their names are equal.  Constants
 * must also be equal, because folding makes new names. */
#include "train/train.h"

#include <string.h>

static bool unused(const int *uses, const Node *n, int from)
{
	for (int k = from; k < n->nout; k++)
		if (n->out[k] && uses[n->out[k]->id])
			return false;
	return true;
}

/* Switches to stored statistics, and switches dropout off. */
static int outside_training(Graph *g)
{
	int *uses = graph_uses(g, g->scratch);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		if (n->row->infer && unused(uses, n, 1) && n->row->infer(n))
			return -1;
	}
	graph_sweep(g);
	return infer_graph(g);
}

/* By value id: whether an output depends on it. */
static bool *needed(const Graph *g)
{
	bool *on = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = 0; i < g->nout; i++)
		on[g->out[i]->id] = true;
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		bool any = false;
		for (int k = 0; k < n->nout; k++)
			any |= n->out[k] && on[n->out[k]->id];
		for (int k = 0; k < n->nin && any; k++)
			if (n->in[k] && n->in[k]->graph == g)
				on[n->in[k]->id] = true;
	}
	return on;
}

/* Keeps only these outputs, and the inputs that they need. */
static void narrow(Graph *g, Value **out, int nout)
{
	for (int i = 0; i < g->nout; i++)
		g->out[i]->output = false;
	g->out = NULL;
	g->nout = 0;
	for (int i = 0; i < nout; i++) {
		out[i]->output = true;
		arena_push(g->arena, g->out, g->nout, out[i]);
	}
	graph_sweep(g);
	const bool *on = needed(g);
	int keep = 0;
	for (int i = 0; i < g->nin; i++) {
		g->in[i]->input = on[g->in[i]->id];
		if (g->in[i]->input)
			g->in[keep++] = g->in[i];
	}
	g->nin = keep;
	for (int i = 0; i < g->nvalue; i++)     /* values without a producer are not declared any more */
		g->value[i]->declared &= g->value[i]->def || g->value[i]->input || g->value[i]->init;
}

/* A copy of the model's graph, with the meshes and pins of the model. */
static Model *copy(Model *m, const char *name)
{
	Model *c = model_copy(m);
	c->main = m;
	c->program = name_of(name);
	for (const Annot *a = m->annot; a; a = a->next)
		if (!strcmp(a->name, "mesh") || !strcmp(a->name, "done")) {
			Annot one = *a;
			one.next = NULL;
			annot_add(&c->annot, annot_copy(&c->arena, &one));
		}
	c->plan = arena_new(&c->arena, Plan);
	c->plan->train = m->plan->train;
	arena_push(&m->arena, m->others, m->nothers, c);
	return c;
}

static bool is_ratio(const Node *n)
{
	return n && !strcmp(n->op, "Div") && n->nin == 2 && type_elements(n->in[0]->type) == 1 &&
		type_elements(n->in[1]->type) == 1;
}

/* The runtime reads metrics as float. */
static Value *as_float(Graph *g, Loc loc, Value *v)
{
	return !v || v->type->elem == DT_FLOAT ? v : build(g, loc, "Cast", "to=1", 1, NULL, 1, v);
}

/* Whether it depends on a division by a number that depends on the samples, such as the number of labels that are not
 * ignored. */
static bool divides(const Graph *g, const Value *v)
{
	bool *on = arena_array(g->scratch, bool, g->nvalue + 1);
	on[v->id] = true;
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		bool any = false;
		for (int k = 0; k < n->nout; k++)
			any |= n->out[k] && on[n->out[k]->id];
		if (any && is_ratio(n) && !n->in[1]->data)
			return true;
		for (int k = 0; k < n->nin && any; k++)
			if (n->in[k] && n->in[k]->graph == g)
				on[n->in[k]->id] = true;
	}
	return false;
}

/* A value of one element as a sum and a count: those that it is the quotient of, else itself and 1. */
static void ratio_of(Graph *g, Value *v, const char *count, Value **out)
{
	const Node *n = v->def;
	while (n && n->nin && (!strcmp(n->op, "Cast") || !strcmp(n->op, "Identity")))
		n = n->in[0]->def;
	bool ratio = is_ratio(n);
	const Arg *data = g->model->plan->train.data;
	bool held_out = data && data->s && strcmp(data->s, "points");           /* there may be held-out data */
	if (!ratio && held_out && divides(g, v))
		warn_at(v->loc,
			"%s is not one sum divided by one count: on held-out data it is the mean over batches",
			v->name);
	out[0] = ratio ? n->in[0] : v;
	out[1] = ratio ? n->in[1] : graph_const(g, tensor_scalar(g->arena, v->type->elem, 1), count);
}

/* Adds the sum and the count of each metric that has its own, as float.  ratios: a metric without a count may be a
 * quotient. */
static int metric_values(Graph *g, const Metric *list, int n, bool ratios, Value ***out, int *nout)
{
	for (int i = 0; i < n; i++) {
		const Metric *one = &list[i];
		Value *pair[2] = { one->sum, one->count };
		if (!one->own)
			continue;
		if (!one->sum)
			die("the metric %s is lost", one->name);
		if (!one->count && ratios)
			ratio_of(g, one->sum, name_fmt("metric.%s.count", one->name), pair);
		else if (!one->count)
			pair[1] = graph_const(g, tensor_scalar(g->arena, DT_FLOAT, 1),
				name_fmt("metric.%s.count", one->name));
		for (int k = 0; k < 2; k++) {
			if (!(pair[k] = as_float(g, one->call->loc, pair[k])))
				return -1;
			arena_push(g->scratch, *out, *nout, pair[k]);
		}
	}
	return 0;
}

/* The outputs of eval: the loss as sum and count, then the metrics. */
static int make_eval(Model *m)
{
	Model *e = copy(m, "eval");
	Graph *g = e->graph;
	Value *loss = graph_find(g, m->plan->train.loss->name), **out = NULL;
	int n, nout = 0;
	Metric *metric = objective_metrics(e, &n);
	arena_push(g->scratch, out, nout, loss);
	for (int i = 0; i < 2 * n; i++) {
		Value *v = i % 2 ? metric[i / 2].count : metric[i / 2].sum;
		if (v)
			arena_push(g->scratch, out, nout, v);
	}
	e->plan->train.loss = loss;
	narrow(g, out, nout);
	if (outside_training(g) || train_split_means(g, 1) || microbatch_means(g, 1))
		return -1;
	ratio_of(g, loss, "loss.count", out);
	nout = 2;
	if (metric_values(g, metric, n, true, &out, &nout))
		return -1;
	e->plan->train.loss = out[0];
	e->plan->count = out[1];
	narrow(g, out, nout);
	return graph_sort(g) || infer_graph(g) ? -1 : 0;
}

/* The outputs of a step after the loss: sums and counts of its batch.  Constant counts are those of the whole batch. */
int programs_report(Graph *g)
{
	int n, nout = 0;
	Metric *metric = objective_metrics(g->model, &n);
	Value **out = NULL;
	if (metric_values(g, metric, n, false, &out, &nout))
		return -1;
	for (int i = 0; i < nout; i++) {
		Value *v = out[i];
		const Tensor *all = v->data && !v->def ? whole_batch_data(g, v) : NULL;
		if (all && all != v->data)
			v->data = (Tensor *)all;
		v->output = true;
		arena_push(g->arena, g->out, g->nout, v);
	}
	return 0;
}

/* Whether it is a metric, which only step and eval report. */
static bool reported(const Model *m, const Value *v)
{
	int n;
	const Metric *metric = objective_metrics(m, &n);
	for (int i = 0; i < n; i++)
		if (metric[i].own && (metric[i].sum == v || metric[i].count == v))
			return true;
	return false;
}

static int make_infer(Model *m)
{
	const Value *loss = m->plan->train.loss;
	int wanted = 0;
	for (int i = 0; i < m->graph->nout; i++)
		wanted += m->graph->out[i] != loss && !reported(m, m->graph->out[i]);
	if (!wanted)
		return 0;
	Model *f = copy(m, "infer");
	Graph *g = f->graph;
	Value **out = NULL;
	int n = 0;
	for (int i = 0; i < g->nout; i++)
		if (strcmp(g->out[i]->name, loss->name) && !reported(f, g->out[i]))
			arena_push(g->scratch, out, n, g->out[i]);
	f->plan->train.loss = NULL;
	narrow(g, out, n);
	diag_hush(true);                /* eval has reported the same warnings */
	int bad = outside_training(g);
	diag_hush(false);
	return bad || graph_sort(g) ? -1 : 0;
}

int programs_make(Model *m)
{
	return make_eval(m) || make_infer(m) ? -1 : 0;
}

/* Parameters w of eval and infer become w.ema: a value with the same name has the same memory. */
void programs_average(Model *m)
{
	for (int i = 0; i < m->nothers; i++) {
		Graph *g = m->others[i]->graph;
		for (int k = 0; k < g->nvalue; k++) {
			const Value *v = g->value[k];
			Name name = name_fmt("%s.ema", v->name);
			if (v->init && v->param && graph_find(m->graph, name))
				graph_rename(g, g->value[k], name);
		}
	}
}

/* The model itself becomes the inference program: all outputs but the loss, unless that is all there is. */
int programs_alone(Model *m)
{
	Graph *g = m->graph;
	const Value *loss = m->plan->train.loss;
	Value **out = NULL;
	int n = 0;
	for (int i = 0; i < g->nout; i++)
		if (g->out[i] != loss || g->nout == 1)
			arena_push(g->scratch, out, n, g->out[i]);
	m->plan->train.loss = NULL;
	narrow(g, out, n);
	return outside_training(g) || graph_sort(g) ? -1 : 0;
}

/* Programs that were read from a dump. */
int programs_resolve(Model *m)
{
	for (int i = 0; i < m->nothers; i++) {
		Model *o = m->others[i];
		bool eval = !strcmp(o->program, "eval");
		if (resolve_run(o))
			return -1;
		if (o->graph->nout < 1 + eval) {
			err_at(o->graph->loc, "the program %s has %d outputs", o->program, o->graph->nout);
			return -1;
		}
		if (!o->plan)
			o->plan = arena_new(&o->arena, Plan);
		o->plan->train = m->plan->train;
		o->plan->train.loss = eval ? o->graph->out[0] : NULL;
		o->plan->count = eval ? o->graph->out[1] : NULL;
	}
	return 0;
}

/* ---- taken over from the main program ---- */

static bool updated(const Graph *g, const Value *v)
{
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->into == v)
			return true;
	return false;
}

Value *programs_same(const Model *m, const Value *v)
{
	if (!m->main || !v->init)
		return NULL;
	Value *w = graph_find(m->main->graph, v->name);
	if (!w || !w->init || !type_equal(w->type, v->type))
		return NULL;
	bool equal = v->data && w->data && tensor_equal(v->data, w->data);
	return w->param || equal || updated(m->main->graph, w) ? w : NULL;
}

static void take_over(Graph *g, Value *v, const Value *from, const char *name)
{
	const Annot *a = from ? annot_find(from->annot, name) : NULL;
	if (!a)
		return;
	Annot one = *a, *mine = annot_find(v->annot, name);
	one.next = NULL;
	Annot *copy = annot_copy(g->arena, &one);
	if (mine) {
		copy->next = mine->next;
		*mine = *copy;
	} else {
		annot_add(&v->annot, copy);
	}
}

/* Shared values have the placement and SBP of the main program, because there is one copy of them; averages of pinned
 * parameters too. */
void programs_pin(Model *m)
{
	Graph *g = m->graph;
	for (int i = 0; i < g->nvalue && m->main; i++) {
		Value *v = g->value[i], *w = v->input ? graph_find(m->main->graph, v->name) : programs_same(m, v);
		take_over(g, v, w, "on");
		take_over(g, v, w, "sbp");
	}
}
