/* The training mode of nodes where an exporter, or a text, does not give it.
 *
 * Exporters write batch norm for inference even from a model in training mode, and dropout inside of attention as well.
 * Both are put back into training mode, with a warning, unless @frozen or @batchnorm("name", frozen: true) keeps a
 * norm, or the file records that the module was in evaluation mode.  A norm of a text that omits the mode is trained,
 * too.  Such files contain detach() as a copy; here it stops gradients again.  So does the padding of an embedding,
 * where the file records it.  @batchnorm gives norms its other arguments. */
#include "train/train.h"

#include <stdlib.h>
#include <string.h>

/* Whether @batchnorm names a norm: by its own name, that of a result, or those of its parameters and statistics, which
 * begin with the name of the module. */
static bool names(const Annot *a, const Node *n)
{
	bool is = annot_names(a, n->name);
	for (int i = 0; i < n->nout; i++)
		is |= n->out[i] && annot_names(a, n->out[i]->name);
	for (int i = 1; i < n->nin; i++)
		is |= n->in[i] && n->in[i]->init && annot_names(a, n->in[i]->name);
	return is;
}

/* This argument of the first @batchnorm that names n and has it; NULL. */
static const Arg *given(const Node *n, const char *what)
{
	for (const Annot *a = n->graph->model->annot; a; a = a->next) {
		const Arg *arg = strcmp(a->name, "batchnorm") ? NULL : arg_find(a->arg, a->narg, what);
		if (arg && names(a, n))
			return arg;
	}
	return NULL;
}

/* Whether a norm keeps its stored statistics; @batchnorm("name") without other arguments asks for that. */
static bool kept_frozen(const Node *n)
{
	const Arg *arg = given(n, "frozen");
	if (arg)
		return strcmp(arg->s, "false") != 0;
	for (const Annot *a = n->graph->model->annot; a; a = a->next)
		if (!strcmp(a->name, "batchnorm") && !arg_find(a->arg, a->narg, "local") &&
		    !arg_find(a->arg, a->narg, "unbiased") && names(a, n))
			return true;
	return annot_find(n->annot, "frozen") || strstr(n->name, "_legit_no_training") != NULL;
}

static bool trains(const Node *n)
{
	if (!node_is(n, "BatchNormalization"))
		return false;
	return attr_int(n, "training_mode") || (n->row->since < 14 && n->nout > 1);
}

/* Whether the file records the mode of each norm.  The TorchScript exporter writes it for a model in training mode, so
 * where one norm trains, the others are frozen on purpose; README's export sets training mode always.  PyTorch's newer
 * exporter always writes 0, and the mode into the name. */
static bool modes_recorded(const Graph *g)
{
	bool any = params_script(g);
	for (int i = 0; i < g->nnode; i++)
		any |= trains(g->node[i]);
	return any && (g->model->from_onnx || params_torch(g));
}

/* Whether a norm uses stored statistics, but not on purpose: exporters write it so, and a text may omit the mode. */
static bool idle_norm(const Node *n, bool recorded)
{
	if (!node_is(n, "BatchNormalization") || trains(n) || recorded || kept_frozen(n))
		return false;
	bool stored = n->in[3] && n->in[3]->init && n->in[4] && n->in[4]->init;
	return n->graph->model->from_onnx || params_torch(n->graph) || (stored && !node_attr(n, "training_mode"));
}

static int train_norm(Graph *g, Node *n)
{
	static const char *const output[] = { "", "mean", "var" };
	Attr *a = node_attr(n, "training_mode");

	if (n->row->since >= 14)                /* in older versions, outputs for statistics select training mode */
		(a ? a : node_attr_add(n, name_of("training_mode"), AT_INT))->u.i = 1;
	while (n->nout < 3) {
		const Value *old = n->in[n->nout + 2];

		node_out(n, graph_fresh(g, name_fmt("%s.next", old ? old->name : output[n->nout])));
	}
	uint64_t maker = identity_enter(n, "mode");
	identity_node(n);
	identity_leave(g, maker);
	return infer_node(n);
}

/* Dropout with a ratio but no mode: exporters omit it inside attention. */
static int train_dropout(Graph *g, Node *n)
{
	Tensor *yes = tensor_new(g->arena, DT_BOOL, 0, NULL);

	tensor_set_int(yes, 0, 1);
	while (n->nin < 3)
		node_in(n, NULL);
	n->in[2] = graph_const(g, yes, "training");
	identity_node(n);
	return infer_node(n);
}

static bool drops(const Node *n)
{
	const Tensor *ratio = node_is(n, "Dropout") ? operand_const(n, 1) : NULL;

	return ratio && (n->nin < 3 || !n->in[2]) && tensor_get(ratio, 0) > 0;
}

/* The row of an embedding that is never trained, where the exporter records it (only PyTorch's newer one does); -1:
 * none. */
static int64_t padding_of(const Node *n)
{
	static const char call[] = "aten.embedding.default](args = (";

	for (int i = 0; i < n->nmeta && node_is(n, "Gather"); i++) {
		if (strcmp(n->meta[i].key, "pkg.torch.onnx.fx_node"))
			continue;
		const char *s = strstr(n->meta[i].value, call);

		for (int k = 0; k < 2 && s; k++)        /* after the table and the indices */
			if ((s = strpbrk(s + (k ? 1 : sizeof call - 1), ",)")) != NULL && *s == ')')
				s = NULL;
		if (s)
			return strtoll(s + 1, NULL, 10);
	}
	return -1;
}

/* No gradient passes to the rows that were looked up at the padding index. */
static int pad(Graph *g, Node *n, int64_t row)
{
	Value *y = n->out[0], *raw = graph_fresh(g, name_fmt("%s.seen", y->name)), *ids = n->in[1];
	Tensor *at = tensor_new(g->arena, ids->type->elem, 0, NULL);
	Tensor *last = tensor_ints(g->arena, (int64_t[]){ -1 }, 1);

	tensor_set_int(at, 0, row);
	identity_from(raw, y, "mode: before padding");
	n->out[0] = raw;
	raw->def = n;
	y->def = NULL;
	if (infer_node(n) < 0)
		return -1;
	Value *here = build(g, n->loc, "Equal", NULL, 1, NULL, 2, ids, graph_const(g, at, "padding"));
	here = here ? build(g, n->loc, "Unsqueeze", NULL, 1, NULL, 2, here, graph_const(g, last, "axis")) : NULL;
	Value *still = build(g, n->loc, "Detach", NULL, 1, NULL, 1, raw);
	return here && still && build(g, n->loc, "Where", NULL, 1, &y, 3, here, still, raw) ? 0 : -1;
}

/* Does that for all nodes with a recorded padding. */
static int pad_all(Graph *g)
{
	int nnode = g->nnode, padded = 0;

	for (int i = 0; i < nnode; i++) {
		int64_t row = padding_of(g->node[i]);

		if (row < 0 || !g->node[i]->in[1]->type || attr_int(g->node[i], "axis"))
			continue;
		uint64_t maker = identity_enter(g->node[i], "mode");
		if (pad(g, g->node[i], row) < 0)
			return -1;
		identity_leave(g, maker);
		padded++;
	}
	return padded ? graph_sort(g) : 0;
}

static int give(Graph *g, Node *n, const char *what, const Arg *arg, const Arg *count)
{
	Annot *made = arena_new(g->arena, Annot);
	*made = (Annot){ .name = name_of(what), .loc = arg->loc };
	if (count)
		arena_push(g->arena, made->arg, made->narg, *count);
	annot_add(&n->annot, made);
	return annot_check(made, ON_NODE);
}

/* @batchnorm("name", local: 4) becomes @local_stats(4) of the norms that it names, and unbiased @unbiased. */
static int give_norms(Graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool norm = node_is(n, "BatchNormalization");
		const Arg *local = norm ? given(n, "local") : NULL, *unbiased = norm ? given(n, "unbiased") : NULL;
		if (local && !annot_find(n->annot, "local_stats")) {
			Arg count = { .kind = ARG_INT, .i = local->i, .f = (double)local->i, .loc = local->loc };
			if (give(g, n, "local_stats", local, &count) || infer_node(n))
				return -1;
		}
		if (unbiased && strcmp(unbiased->s, "false") && !annot_find(n->annot, "unbiased") &&
		    give(g, n, "unbiased", unbiased, NULL))
			return -1;
	}
	return 0;
}

/* PyTorch's newer exporter writes detach() as a copy; only its name distinguishes it from others. */
static void detach(Graph *g)
{
	for (int i = 0; params_torch(g) && i < g->nnode; i++) {
		Node *n = g->node[i];
		if (!node_is(n, "Identity") || strncmp(n->name, "node_detach", 11))
			continue;
		n->domain = name_of("sbpcc");
		n->op = name_of("Detach");
		n->row = op_find(n->domain, n->op, 0);
		n->version = 0;
	}
}

int mode_training(Graph *g)
{
	int norms = 0, dropouts = 0;
	bool recorded = modes_recorded(g);
	Node *norm = NULL, *dropout = NULL;

	detach(g);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];

		if (idle_norm(n, recorded)) {
			norm = norms++ ? norm : n;
			if (train_norm(g, n) < 0)
				return -1;
		}
		if (g->model->from_onnx && drops(n)) {
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
	return pad_all(g) ? -1 : give_norms(g);
}

/* Only a training step uses batch statistics. */
int mode_run(Graph *g)
{
	return annot_find(g->model->annot, "train") && !opt.infer ? mode_training(g) : 0;
}
