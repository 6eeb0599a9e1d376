/* Which initialisers are trained, and what an exporter left unsaid about training.
 *
 * A file in our language says it: a value with @init is a parameter.  An .onnx file does not, so: a parameter is a
 * floating initialiser of more than one element that no graph input overrides, unless the operator that reads it
 * treats it as state (running mean and variance of batch norm) or the user says otherwise (@param, @state, @freeze
 * with a name or pattern).  The training pass keeps those through which a gradient flows.
 *
 * Exporters write batch norm for inference even from a model in training mode: it is put back into training mode, with
 * a note, unless @batchnorm("name", frozen) or @frozen keeps it.  A file whose weights were folded into copies
 * (float initialisers val_N beside X.bias without X.weight) is not what was trained: that is a warning. */
#include "compiler.h"

#include <string.h>

static const Annot *named(const Model *m, const char *kind, Name name, const Annot *after)
{
	for (const Annot *a = after ? after->next : m->annot; a; a = a->next)
		if (!strcmp(a->name, kind) && a->narg && a->arg[0].s && name_match(a->arg[0].s, name))
			return a;
	return NULL;
}

/* By value id: read as running statistics somewhere. */
static bool *states(Graph *g)
{
	bool *state = arena_array(g->scratch, bool, g->nvalue + 1);

	for (int i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i]->op, "BatchNormalization"))
			for (int k = 3; k < g->node[i]->nin && k < 5; k++)
				if (g->node[i]->in[k] && g->node[i]->in[k]->graph == g)
					state[g->node[i]->in[k]->id] = true;
	return state;
}

static void warn_folded(Graph *g)
{
	int copies = 0, orphans = 0;
	Value *first = NULL;

	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];
		size_t len = strlen(v->name);

		if (v->data && dtype_is_float(v->data->dtype) && v->data->rank >= 2 && !strncmp(v->name, "val_", 4) && strspn(v->name + 4, "0123456789") == len - 4) {
			copies++;
			first = first ? first : v;
		}
		if (len > 5 && !strcmp(v->name + len - 5, ".bias") && !graph_find(g, name_fmt("%.*s.weight", (int)len - 5, v->name)))
			orphans++;
	}
	if (copies && orphans) {
		warn_at(first->loc, "this file looks optimised for inference: %d weight%s (such as %s) stand as folded copies, %d bias%s without a weight; training would not update the model that was exported",
		        copies, copies == 1 ? "" : "s", first->name, orphans, orphans == 1 ? "" : "es");
		note_at((Loc){ 0 }, "export with torch.onnx.export(model, args, file, dynamo=True, optimize=False)");
	}
}

/* Before inlining: marks candidates, so that folding leaves them alone. */
int params_run(Graph *g)
{
	Model *m = g->model;
	bool *state = states(g);

	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];
		bool isfloat = v->data ? dtype_is_float(v->data->dtype) : true;
		bool candidate = v->data ? isfloat && tensor_elements(v->data) > 1 && !v->input && v->data->rank > 0 && m->from_onnx : v->param;

		if (state[v->id] || named(m, "state", v->name, NULL) || named(m, "freeze", v->name, NULL))
			candidate = false;
		if (named(m, "param", v->name, NULL))
			candidate = isfloat;
		v->param = candidate;
	}
	if (m->from_onnx)
		warn_folded(g);
	return 0;
}

/* Batch norm as the training step means it.  Returns how many were changed. */
int params_training_norms(Graph *g)
{
	int changed = 0;
	Node *first = NULL;

	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool keep = annot_find(n->annot, "frozen") != NULL;

		if (*n->domain || strcmp(n->op, "BatchNormalization") || attr_int(n, "training_mode"))
			continue;
		for (const Annot *a = NULL; (a = named(g->model, "batchnorm", n->name, a)) != NULL;)
			keep |= arg_find(a->arg, a->narg, "frozen") != NULL || (a->narg > 1 && a->arg[1].s && !strcmp(a->arg[1].s, "frozen"));
		if (keep)
			continue;
		Attr *a = node_attr(n, "training_mode");
		(a ? a : node_attr_add(n, name_of("training_mode"), AT_INT))->u.i = 1;
		while (n->nout < 3)
			node_out(n, graph_fresh(g, name_fmt("%s.%s", n->in[3 + n->nout - 1]->name, "next")));
		changed++;
		first = first ? first : n;
		if (infer_node(n) < 0)
			return -1;
	}
	if (changed)
		warn_at(first->loc, "%d batch norm%s put back into training mode; @batchnorm(\"name\", frozen) keeps the running statistics instead", changed, changed == 1 ? " was" : "s were");
	return changed;
}
