/* Losses and metrics by name: @train(loss: cross_entropy(scores, label)), @metric(accuracy(scores, label)).
 *
 * Each becomes one node of the graph before any pass runs, a definition of ops/loss.ir or ops/metric.ir, so that all
 * later passes (shapes, ranks, micro-batches, precision) see ordinary nodes.  A loss is one more output, and its target
 * one more input where the graph has no value of that name; @train then names that output.  A metric is a sum and a
 * count, two more outputs called metric.NAME.sum and metric.NAME.count.  A metric of a value with a single element has
 * the sum only: compiler/train/programs.c finds its divisor where it splits losses.  The perplexity of the loss has
 * neither.
 *
 * A dump has its nodes already.  A type that is not declared is inferred on a copy of the model. */
#include "ir.h"

#include <string.h>

/* Which operands the function takes, and how the target relates to the first. */
typedef enum { CLASSES, SAME, ONE } TargetKind;

static const struct Known { const char *name, *op; TargetKind target; MetricHow how; } losses[] = {
	{ "cross_entropy", "CrossEntropyLoss", CLASSES, 0 },
	{ "nll", "NLLLoss", CLASSES, 0 },
	{ "bce_with_logits", "BCEWithLogitsLoss", SAME, 0 },
	{ "bce", "BCELoss", SAME, 0 },
	{ "mse", "MSELoss", SAME, 0 },
	{ "l1", "L1Loss", SAME, 0 },
	{ "smooth_l1", "SmoothL1Loss", SAME, 0 },
	{ "huber", "HuberLoss", SAME, 0 },
	{ 0 },
}, metrics[] = {
	{ "accuracy", "TopMetric", CLASSES, METRIC_MEAN },
	{ "top", "TopMetric", CLASSES, METRIC_MEAN },
	{ "binary_accuracy", "BinaryMetric", SAME, METRIC_MEAN },
	{ "mae", "AbsoluteErrorMetric", SAME, METRIC_MEAN },
	{ "mse", "SquaredErrorMetric", SAME, METRIC_MEAN },
	{ "rmse", "SquaredErrorMetric", SAME, METRIC_ROOT },
	{ "mean", "MeanMetric", ONE, METRIC_MEAN },
	{ "perplexity", "MeanMetric", ONE, METRIC_EXP },
	{ 0 },
};

static const struct Known *known(const struct Known *list, const char *name)
{
	while (list->name && strcmp(list->name, name))
		list++;
	if (!list->name)
		die("objective: %s is in the table of annotations only", name);
	return list;
}

/* ---- values and their types ---- */

/* The first operand of a call: scores, y or value. */
static const Arg *first_operand(const Arg *call)
{
	static const char *const keys[] = { "scores", "y", "value" };
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		const Arg *a = arg_find(call->arg, call->narg, keys[i]);
		if (a)
			return a;
	}
	return NULL;
}

static const char *listed(Value *const *list, int n)
{
	enum { SHOWN = 12 };
	const char *text = "";
	for (int i = 0; i < n && i < SHOWN; i++)
		text = name_fmt("%s%s%s", text, i ? ", " : "", list[i]->name);
	return n > SHOWN ? name_fmt("%s, and %d more", text, n - SHOWN) : n ? text : "none";
}

static Value *find(const Model *m, const Arg *call, const Arg *a)
{
	const Graph *g = m->graph;
	Value *v = graph_find(g, a->s);
	if (v)
		return v;
	const char **names = arena_array(g->scratch, const char *, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		names[i] = g->value[i]->name;
	diag_unknown(a->loc, name_fmt("%s: the graph has no value", call->s), a->s, names);
	note_at((Loc){ 0 }, "its outputs are %s; its inputs are %s; sbpcc --print-io shows their types",
		listed(g->out, g->nout), listed(g->in, g->nin));
	return NULL;
}

static bool complete(const Type *t)
{
	bool ok = t && t->kind == TY_TENSOR && t->ndim >= 0;
	for (int i = 0; ok && i < t->ndim; i++)
		ok = t->dim[i] != DIM_UNKNOWN;
	return ok;
}

/* The declared type, or else the inferred one; NULL after err_at. */
static const Type *type_of(Model *m, const Arg *at, const Value *v)
{
	if (complete(v->type))
		return v->type;
	Model *c = model_copy(m);
	c->function = m->function;
	c->nfunction = m->nfunction;
	int bad = inline_run(c->graph);
	const Value *same = bad ? NULL : graph_find(c->graph, v->name);
	bool typed = same && same->type && same->type->kind == TY_TENSOR && same->type->ndim >= 0;
	const Type *t = typed ? same->type : NULL;
	if (t)
		t = type_tensor(&m->arena, t->elem, t->ndim, t->dim);
	else if (!bad)
		err_at(at->loc, "the shape of %s is not known", v->name);
	c->function = NULL;
	c->nfunction = 0;
	model_free(c);
	return t;
}

/* ---- classes ---- */

/* How well a target fits scores whose classes are along this axis: -1 not at all, 0 perhaps, 1 well. */
static int fits(const Type *x, const Type *t, int axis)
{
	int all = 1;
	if (t->ndim != x->ndim - 1)
		return -1;
	for (int i = 0; i < t->ndim; i++) {
		Dim want = dim_bound(x->dim[i + (i >= axis)]), has = dim_bound(t->dim[i]);
		if (dim_differ(want, has))
			return -1;
		all &= dim_same(want, has);
	}
	return all;
}

/* The axis of the classes: as the call gives it; the second of two axes; else the one that fits the target; else the
 * last of three (batch, time, classes) and the second of more (images).  -1 after err_at. */
static int class_axis(const Arg *call, const Arg *at, const Value *v, const Type *x, const Value *target, const Type *t)
{
	const Arg *given = arg_find(call->arg, call->narg, "axis");
	if (x->ndim < 2) {
		err_at(at->loc, "%s needs an axis of classes, but %s is %s", call->s, v->name, type_text(x));
		return -1;
	}
	int last = x->ndim - 1, axis = x->ndim == 3 ? last : 1;
	if (given) {
		axis = (int)(given->i < 0 ? given->i + x->ndim : given->i);
		if (axis != 1 && axis != last) {
			err_at(given->loc, "%s: classes are along axis 1 or the last one of %s, %s", call->s, v->name,
				type_text(x));
			return -1;
		}
	} else if (t && fits(x, t, 1) != fits(x, t, last)) {
		axis = fits(x, t, 1) > fits(x, t, last) ? 1 : last;
	}
	if (!t)
		return axis;
	if (!dtype_is_int(t->elem)) {
		err_at(at->loc, "%s: the target %s holds the numbers of classes, int64 or int32, but is %s", call->s,
			target->name, type_text(t));
		return -1;
	}
	if (fits(x, t, axis) < 0) {
		err_at(at->loc, "%s: %s is %s and %s is %s: one label for each position of the scores is needed",
			call->s, v->name, type_text(x), target->name, type_text(t));
		return -1;
	}
	return axis;
}

static Type *labels_of(Arena *a, const Type *x, int axis)
{
	Dim dim[NDIM_MAX];
	for (int i = 0; i < x->ndim - 1; i++)
		dim[i] = x->dim[i + (i >= axis)];
	return type_tensor(a, DT_INT64, x->ndim - 1, dim);
}

/* Differences are element by element: no silent broadcast. */
static int check_same(const Arg *call, const Value *v, const Type *x, const Value *target, const Type *t)
{
	bool clash = x->ndim != t->ndim;
	for (int i = 0; !clash && i < x->ndim; i++)
		clash = dim_differ(dim_bound(x->dim[i]), dim_bound(t->dim[i]));
	if (clash)
		err_at(call->loc, "%s: %s is %s, but %s is %s: both must have one shape", call->s, v->name,
			type_text(x), target->name, type_text(t));
	return clash ? -1 : 0;
}

/* ---- nodes ---- */

static Value *result(Graph *g, Name name, Loc loc)
{
	Value *v = graph_value_here(g, name, loc);
	v->output = true;
	arena_push(g->arena, g->out, g->nout, v);
	return v;
}

static void attr_number(Node *n, const char *name, const Arg *a, bool whole)
{
	Attr *at = node_attr_add(n, name_of(name), whole ? AT_INT : AT_FLOAT);
	at->loc = a->loc;
	if (whole)
		at->u.i = a->i;
	else
		at->u.f = (float)(a->kind == ARG_INT ? (double)a->i : a->f);
}

static void attrs_of(Node *n, const Arg *call)
{
	static const struct { const char *name; bool whole; } each[] = {
		{ "ignore_index", true }, { "k", true }, { "label_smoothing", false }, { "beta", false },
		{ "delta", false }, { "threshold", false },
	};
	for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
		const Arg *a = arg_find(call->arg, call->narg, each[i].name);
		if (a)
			attr_number(n, each[i].name, a, each[i].whole);
	}
}

static Node *node_of(Graph *g, const Arg *call, const char *op, Value *x, Value *target)
{
	Node *n = graph_node(g, name_of("sbpcc"), name_of(op), call->loc);
	node_in(n, x);
	if (target)
		node_in(n, target);
	attrs_of(n, call);
	return n;
}

static void axis_of(Node *n, int axis)
{
	node_attr_add(n, name_of("axis"), AT_INT)->u.i = axis;
}

/* ---- the loss ---- */

static Value *add_target(Graph *g, const Arg *call, const Arg *name, const Value *v, const Type *x, Type *t, int axis)
{
	Value *in = graph_value_here(g, name->s, name->loc);
	in->input = in->declared = true;
	in->type = t;
	arena_push(g->arena, g->in, g->nin, in);
	if (axis >= 0)
		note_at(name->loc, "%s of %s, %s with its classes along axis %d: the graph has one more input, %s %s",
			call->s, v->name, type_text(x), axis, type_text(t), in->name);
	else
		note_at(name->loc, "%s of %s, %s: the graph has one more input, %s %s", call->s, v->name,
			type_text(x), type_text(t), in->name);
	return in;
}

static int add_loss(Model *m, Arg *call)
{
	Graph *g = m->graph;
	const struct Known *k = known(losses, call->s);
	const Arg *first = first_operand(call), *second = arg_find(call->arg, call->narg, "target");
	Value *v = find(m, call, first), *target = v ? graph_find(g, second->s) : NULL;
	const Type *x = v ? type_of(m, first, v) : NULL, *t = x && target ? type_of(m, second, target) : NULL;
	if (!x || (target && !t))
		return -1;
	if (!dtype_is_float(x->elem)) {
		err_at(first->loc, "%s: %s is %s: a loss is computed from floating numbers", call->s, v->name,
			type_text(x));
		return -1;
	}
	int axis = k->target == CLASSES ? class_axis(call, first, v, x, target, t) : -1;
	if ((k->target == CLASSES && axis < 0) || (k->target == SAME && t && check_same(call, v, x, target, t)))
		return -1;
	if (!target)
		target = add_target(g, call, second, v, x,
			axis >= 0 ? labels_of(g->arena, x, axis) : type_tensor(g->arena, x->elem, x->ndim, x->dim),
			axis);
	Node *n = node_of(g, call, k->op, v, target);
	if (axis >= 0)
		axis_of(n, axis);
	Name name = name_of("loss");
	if (graph_find(g, name))
		name = graph_fresh(g, "loss")->name;
	Value *loss = result(g, name, call->loc);
	node_out(n, loss);
	*call = (Arg){ .kind = lex_is_id(loss->name) ? ARG_WORD : ARG_STRING, .s = loss->name,
		.key = call->key, .param = call->param, .loc = call->loc };
	return 0;
}

/* ---- metrics ---- */

static Name metric_name(const Arg *call, bool keyed)
{
	const Arg *k = arg_find(call->arg, call->narg, "k"), *value = arg_find(call->arg, call->narg, "value");
	if (keyed && call->key && strcmp(call->key, "metric"))
		return call->key;
	if (k)
		return name_fmt("%s%lld", call->s, (long long)k->i);
	return value && !strcmp(call->s, "mean") ? value->s : call->s;
}

Metric *objective_metrics(const Model *m, int *n)
{
	const Model *main = m->main ? m->main : m;
	Metric *list = NULL;
	*n = 0;
	for (const Annot *a = main->annot; a; a = a->next) {
		const Arg *in = !strcmp(a->name, "train") ? arg_find(a->arg, a->narg, "metrics") : NULL;
		const Arg *arg = !strcmp(a->name, "metric") ? a->arg : in && in->kind == ARG_LIST ? in->arg : in;
		int narg = !strcmp(a->name, "metric") ? a->narg : in && in->kind == ARG_LIST ? in->narg : in ? 1 : 0;
		for (int i = 0; i < narg; i++) {
			const struct Known *k = known(metrics, arg[i].s);
			Metric one = { .name = metric_name(&arg[i], &arg[i] != in), .how = k->how, .call = &arg[i] };
			one.sum = graph_find(m->graph, name_fmt("metric.%s.sum", one.name));
			one.count = graph_find(m->graph, name_fmt("metric.%s.count", one.name));
			one.own = k->target != ONE || first_operand(&arg[i]);
			arena_push(m->graph->scratch, list, *n, one);
		}
	}
	return list;
}

/* Whether the node only moves or converts its first operand. */
static bool moves(const Node *n)
{
	static const char *const list[] = { "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast", "Identity",
		"Transpose", "Slice", NULL };
	for (int i = 0; list[i]; i++)
		if (!strcmp(n->op, list[i]))
			return true;
	return false;
}

/* The label that a loss of the same labels ignores; NULL: there is none. */
static const Attr *ignored(const Graph *g, const Value *target)
{
	bool *is = arena_array(g->scratch, bool, g->nvalue + 1);
	if (target->graph != g)
		return NULL;
	is[target->id] = true;
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		if (moves(n) && n->nin && n->in[0] && n->in[0]->graph == g && n->nout && n->out[0])
			is[n->out[0]->id] |= is[n->in[0]->id];
		const Attr *a = n->nin > 1 && n->in[1] && n->in[1]->graph == g && is[n->in[1]->id]
		                        ? node_attr(n, "ignore_index")
		                        : NULL;
		if (a && a->type == AT_INT)
			return a;
	}
	return NULL;
}

/* The value itself, of a single element, as float. */
static void scalar_metric(Graph *g, const Metric *one, Value *v)
{
	Node *n = graph_node(g, name_of(""), name_of("Cast"), one->call->loc);
	node_in(n, v);
	node_attr_add(n, name_of("to"), AT_INT)->u.i = DT_FLOAT;
	node_out(n, result(g, name_fmt("metric.%s.sum", one->name), one->call->loc));
}

static int add_metric(Model *m, const Metric *one)
{
	Graph *g = m->graph;
	const Arg *call = one->call, *first = first_operand(call),
		  *second = arg_find(call->arg, call->narg, "target"),
		  *by = arg_find(call->arg, call->narg, "weight");
	const struct Known *k = known(metrics, call->s);
	Value *v = find(m, call, first), *target = v && second ? find(m, call, second) : NULL,
	      *weight = by ? find(m, call, by) : NULL;
	const Type *x = v ? type_of(m, first, v) : NULL, *t = x && target ? type_of(m, second, target) : NULL,
		   *w = weight ? type_of(m, by, weight) : NULL;
	if (!x || (second && !t) || (by && !w))
		return -1;
	if ((t && k->target == SAME && check_same(call, v, x, target, t)) || (w && check_same(call, v, x, weight, w)))
		return -1;
	int axis = k->target == CLASSES ? class_axis(call, first, v, x, target, t) : 0;
	if (axis < 0)
		return -1;
	if (k->target == ONE && !w && type_elements(x) == 1) {
		scalar_metric(g, one, v);
		return 0;
	}
	Node *n = node_of(g, call, k->op, v, target);
	if (weight) {
		while (n->nin < (k->target == ONE ? 1 : 2))
			node_in(n, NULL);
		node_in(n, weight);
	}
	if (k->target == CLASSES)
		axis_of(n, axis);
	const Attr *skip = k->target == CLASSES && !node_attr(n, "ignore_index") ? ignored(g, target) : NULL;
	if (skip)
		node_attr_add(n, name_of("ignore_index"), AT_INT)->u.i = skip->u.i;
	node_out(n, result(g, name_fmt("metric.%s.sum", one->name), call->loc));
	node_out(n, result(g, name_fmt("metric.%s.count", one->name), call->loc));
	return 0;
}

/* Reports use these names for other numbers: a metric must not have one of them. */
static bool taken(Name name)
{
	static const char *const list[] = { "event", "step", "epoch", "samples", "loss", "rate", "norm", "scale",
		"skipped", "samples_per_s", "tokens_per_s", "seconds", NULL };
	for (int i = 0; list[i]; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

static int add_metrics(Model *m)
{
	int n, bad = 0;
	Metric *list = objective_metrics(m, &n);
	for (int i = 0; i < n; i++) {
		const Metric *one = &list[i];
		int before = 0;
		while (before < i && list[before].name != one->name)
			before++;
		if (before < i) {
			err_at(one->call->loc, "a second metric is called %s: write NAME: %s(...)", one->name,
				one->call->s);
			note_at(list[before].call->loc, "the first is here");
			bad = -1;
		} else if (taken(one->name)) {
			err_at(one->call->loc,
				"%s is the name of another number that is reported: write NAME: %s(...)", one->name,
				one->call->s);
			bad = -1;
		} else if (one->sum || one->count) {
			err_at(one->call->loc,
				"a value of the graph is called metric.%s.sum or metric.%s.count: write NAME: %s(...)",
				one->name, one->name, one->call->s);
			bad = -1;
		} else if (i == METRICS_MAX) {
			err_at(one->call->loc, "there are more than %d metrics", METRICS_MAX);
			bad = -1;
		} else if (one->own && add_metric(m, one)) {
			bad = -1;
		}
	}
	return bad;
}

int objective_add(Model *m)
{
	Annot *train = m->graph ? annot_find(m->annot, "train") : NULL;
	const Annot *metric = annot_find(m->annot, "metric");
	if (m->graph && !train && metric && !m->asked)
		warn_at(metric->loc, "metrics are those of training, and there is no @train: nothing is reported");
	bool done = m->asked || annot_find(m->annot, "done");
	m->asked = true;
	if (!train || done)
		return 0;
	Arg *loss = arg_find(train->arg, train->narg, "loss");
	if (loss && loss->kind == ARG_CALL && add_loss(m, loss))
		return -1;
	return add_metrics(m);
}
