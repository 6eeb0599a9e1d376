/* Which initialisers are trained, and what an exporter left unsaid about training.
 *
 * A file in our language says it: a value with @init is a parameter.  An .onnx file may say it too: PyTorch's newer
 * exporter marks every initialiser as PARAMETER or BUFFER.  Where nothing is marked, a parameter is a floating
 * initialiser with at least one axis that no graph input overrides, unless what reads it treats it as state: running
 * statistics of batch norm, class weights of a loss, tables that go into Cos and Sin only.  @param, @state and @freeze with a
 * name or pattern have the last word.  What was decided is noted as @param, so that a dump says it.
 *
 * Exporters write batch norm for inference even from a model in training mode, and dropout inside of attention as well:
 * both are put back, with a note, unless @frozen or @batchnorm("name", frozen: true) keeps a norm, or its name tells that the
 * module was in evaluation mode.  A file whose weights were folded into copies is not what was trained: a warning. */
#include "compiler.h"

#include <string.h>

/* Is it named by an annotation of the model of this kind? */
static const Annot *named(const Model *m, const char *kind, Name name)
{
	for (const Annot *a = m->annot; a; a = a->next)
		if (!strcmp(a->name, kind) && annot_names(a, name))
			return a;
	return NULL;
}

/* "PARAMETER", "BUFFER", or NULL when the exporter says nothing. */
static const char *mark_of(const Value *v)
{
	for (int i = 0; i < v->nmeta; i++)
		if (!strcmp(v->meta[i].key, "pkg.torch.export.graph_signature.InputSpec.kind"))
			return v->meta[i].value;
	return NULL;
}

/* Operand k of n is state by its place. */
static bool state_operand(const Node *n, int k)
{
	if (node_is(n, "BatchNormalization"))
		return k >= 3;
	return k == 2 && (node_is(n, "SoftmaxCrossEntropyLoss") || node_is(n, "NegativeLogLikelihoodLoss"));
}

/* By value id: running statistics.  They start alike, but each norm will have its own. */
bool *params_state(const Graph *g)
{
	bool *state = arena_array(g->scratch, bool, g->nvalue + 1);

	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin && node_is(g->node[i], "BatchNormalization"); k++)
			if (g->node[i]->in[k] && g->node[i]->in[k]->graph == g && state_operand(g->node[i], k))
				state[g->node[i]->in[k]->id] = true;
	return state;
}

static bool moves(const Node *n)
{
	static const char *const list[] = { "Cos", "Sin", "Identity", "Cast", "Slice", "Gather", "GatherND",
		"Unsqueeze", "Squeeze", "Reshape", "Expand", "Concat", "Transpose", NULL };

	for (int i = 0; list[i]; i++)
		if (node_is(n, list[i]))
			return true;
	return false;
}

enum { ANGLE = 1, OTHER = 2, STATE = 4 };

/* By value id: how it is used.  Last node first, so that what a table becomes is known before the table. */
static uint8_t *uses_of(Graph *g)
{
	uint8_t *use = arena_array(g->scratch, uint8_t, g->nvalue + 1);

	for (int i = 0; i < g->nout; i++)
		use[g->out[i]->id] |= OTHER;
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		bool trig = node_is(n, "Cos") || node_is(n, "Sin"),
		     only = n->nout == 1 && n->out[0] && use[n->out[0]->id] == ANGLE;

		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && n->in[k]->graph == g)
				use[n->in[k]->id] |= state_operand(n, k)          ? STATE
				                     : trig || (only && moves(n)) ? ANGLE
				                                                  : OTHER;
	}
	return use;
}

static bool floating(const Value *v)
{
	return v->data ? dtype_is_float(v->data->dtype) : v->type && dtype_is_float(v->type->elem);
}

static bool numbered(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return !strncmp(name, prefix, len) && name[len] && name[len + strspn(name + len, "0123456789")] == 0;
}

/* Signs of a file that was optimised: initialisers without a mark where others have one; copies under a number. */
static void warn_folded(Graph *g, bool marked)
{
	int copies = 0;
	Value *first = NULL;

	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];

		if (!v->data || !floating(v) || v->data->rank < 1)
			continue;
		bool unmarked = marked && !mark_of(v),
		     copy = v->data->rank > 1 &&
		            (numbered(v->name, "val_") || numbered(v->name, "onnx::MatMul_"));
		if (unmarked || copy) {
			copies++;
			first = first ? first : v;
		}
	}
	if (!copies)
		return;
	warn_at(first->loc,
		"this file was optimised for inference: %d initialiser%s (such as %s) %s not parameters of "
	        "the model but computed from them; training them is not training that model",
		copies, copies == 1 ? "" : "s", first->name, copies == 1 ? "is" : "are");
	note_at((Loc){ 0 }, "export with torch.onnx.export(model, args, file, dynamo=True, optimize=False)");
}

/* The decision as an annotation of the model, for dumps. */
static void note_params(Graph *g)
{
	Annot *a = arena_new(g->arena, Annot);

	a->name = name_of("param");
	for (int i = 0; i < g->ninit; i++)
		if (g->init[i]->param && !g->init[i]->frozen && !named(g->model, "param", g->init[i]->name))
			arena_push(g->arena, a->arg, a->narg,
				((Arg){ .kind = ARG_STRING,
					.s = g->init[i]->name,
					.param = name_of("names") }));
	if (a->narg)
		annot_add(&g->model->annot, a);
}

/* What is frozen is a parameter that no gradient reaches: it is loaded and saved, and programs share it.  Stored statistics of batch norm
 * are such until a node in training mode updates them.  A dump says it at the value. */
static void keep_frozen(Graph *g, Value *v, bool statistic)
{
	v->frozen |= (statistic && !v->param) || annot_find(v->annot, "frozen");
	v->param |= v->frozen;
	if (v->frozen && !annot_find(v->annot, "frozen")) {
		Annot *a = arena_new(g->arena, Annot);
		a->name = name_of("frozen");
		annot_add(&v->annot, a);
	}
}

/* Constants and state are never trained: to freeze them says nothing. */
static void warn_freeze(const Graph *g)
{
	for (const Annot *a = g->model->annot; a; a = a->next) {
		bool any = strcmp(a->name, "freeze") != 0;

		for (int i = 0; i < g->ninit && !any; i++)
			any = g->init[i]->frozen && annot_names(a, g->init[i]->name);
		if (!any)
			warn_at(a->loc, "nothing that @freeze names here is a parameter: it changes nothing");
	}
}

/* Before inlining: marks parameters, so that inference does not take them for constants. */
/* There is nothing to train in a parameter without elements: it is a constant. */
static void leave_empty(Graph *g)
{
	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];

		if (!v->param || !v->type || type_elements(v->type) != 0)
			continue;
		warn_at(v->loc, "%s has no elements (%s): it is not trained", v->name, type_text(v->type));
		v->param = false;
		v->annot = NULL;
		v->data = v->data ? v->data : tensor_new(g->arena, v->type->elem, v->type->rank, v->type->dim);
	}
}

int params_run(Graph *g)
{
	Model *m = g->model;
	uint8_t *use = uses_of(g);
	bool marked = false, *statistic = params_state(g);

	for (int i = 0; i < g->ninit; i++)
		marked |= mark_of(g->init[i]) != NULL;
	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];
		const char *mark = mark_of(v);
		bool param = v->param;

		if (m->from_onnx && v->data)
			param = mark ? !strcmp(mark, "PARAMETER") && floating(v)
			             : floating(v) && v->data->rank > 0 && !v->input &&
			                        !(use[v->id] & STATE) && use[v->id] != ANGLE;
		if (named(m, "state", v->name))
			param = false;
		v->frozen = param && named(m, "freeze", v->name);
		if (named(m, "param", v->name)) {
			param = floating(v);
			v->frozen = false;
		}
		v->param = param;
	}
	for (int i = 0; i < g->nvalue; i++)     /* a dump: statistics are state */
		if (g->value[i]->into && g->value[i]->into->init)
			g->value[i]->into->param = true;
	if (!m->main && !annot_find(m->annot, "done"))
		warn_freeze(g);
	for (int i = 0; i < g->ninit; i++)
		keep_frozen(g, g->init[i], !m->main && statistic[g->init[i]->id]);
	for (int i = 0; m->main && i < g->ninit; i++) {
		const Value *v = graph_find(m->main->graph, g->init[i]->name);
		g->init[i]->param |= v && v->init && v->param;
		g->init[i]->frozen |= v && v->init && v->frozen;
	}
	leave_empty(g);
	if (m->from_onnx) {
		warn_folded(g, marked);
		note_params(g);
	}
	return 0;
}

static bool kept_frozen(const Node *n)
{
	for (const Annot *a = n->graph->model->annot; a; a = a->next)
		if (!strcmp(a->name, "batchnorm") && annot_names(a, n->name) && !arg_find(a->arg, a->narg, "local"))
			return true;
	return annot_find(n->annot, "frozen") || strstr(n->name, "_legit_no_training") != NULL;
}

static int train_norm(Graph *g, Node *n)
{
	static const char *const part[] = { "", "mean", "var" };
	Attr *a = node_attr(n, "training_mode");

	if (n->row->since < 14) /* there, wanting the statistics asked for training */
		a = NULL;
	else
		(a ? a : node_attr_add(n, name_of("training_mode"), AT_INT))->u.i = 1;
	while (n->nout < 3)
		node_out(n, graph_fresh(g, name_fmt("%s.next", n->in[n->nout + 2] ? n->in[n->nout + 2]->name
										  : part[n->nout])));
	return infer_node(n);
}

/* Dropout that is given a ratio but no mode: inside of attention exporters forget it. */
static int train_dropout(Graph *g, Node *n)
{
	Tensor *yes = tensor_new(g->arena, DT_BOOL, 0, NULL);

	tensor_set_int(yes, 0, 1);
	while (n->nin < 3)
		node_in(n, NULL);
	n->in[2] = graph_const(g, yes, "training");
	return infer_node(n);
}

static bool drops(const Node *n)
{
	const Tensor *ratio = node_is(n, "Dropout") ? in_const(n, 1) : NULL;

	return ratio && (n->nin < 3 || !n->in[2]) && tensor_get(ratio, 0) > 0;
}

/* @batchnorm("name", local: 4) is @local_stats(4) of these. */
static int local_norms(Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		for (const Annot *a = g->model->annot; a && node_is(g->node[i], "BatchNormalization"); a = a->next) {
			Arg *parts = !strcmp(a->name, "batchnorm") && annot_names(a, g->node[i]->name) ? arg_find(a->arg, a->narg, "local") : NULL;
			if (!parts || annot_find(g->node[i]->annot, "local_stats"))
				continue;
			Annot *made = arena_new(g->arena, Annot);
			Arg count = { .kind = ARG_INT, .i = parts->i, .f = (double)parts->i, .loc = parts->loc };
			*made = (Annot){ .name = name_of("local_stats"), .loc = a->loc };
			arena_push(g->arena, made->arg, made->narg, count);
			annot_add(&g->node[i]->annot, made);
			if (annot_check(made, ON_NODE) || infer_node(g->node[i]))
				return -1;
		}
	return 0;
}

/* After inlining: what the training step means. */
int params_training(Graph *g)
{
	int norms = 0, dropouts = 0;
	Node *norm = NULL, *dropout = NULL;

	for (int i = 0; g->model->from_onnx && i < g->nnode; i++) {
		Node *n = g->node[i];
		bool idle = node_is(n, "BatchNormalization") && !attr_int(n, "training_mode") &&
		            !(n->row->since < 14 && n->nout > 1);

		if (idle && !kept_frozen(n)) {
			norm = norms++ ? norm : n;
			if (train_norm(g, n) < 0)
				return -1;
		}
		if (drops(n)) {
			dropout = dropouts++ ? dropout : n;
			if (train_dropout(g, n) < 0)
				return -1;
		}
	}
	if (norms)
		warn_at(norm->loc,
			"%d batch norm%s put back into training mode; @batchnorm(\"name\", frozen) keeps the "
		        "stored statistics instead",
			norms, norms == 1 ? " is" : "s are");
	if (dropouts)
		warn_at(dropout->loc,
			"%d dropout%s put back into training mode: the exporter left %s switched off",
			dropouts, dropouts == 1 ? " is" : "s are", dropouts == 1 ? "it" : "them");
	return local_norms(g);
}
