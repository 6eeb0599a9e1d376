/* halves MODEL...: of the training graph of each model, every node of the backward pass is marked as one that computes
 * gradients of inputs (B) or of weights (W); no B waits for a W, so that all W may run later; and every trained
 * parameter's gradient belongs to one of them. */
#include "compiler.h"

#include <stdlib.h>
#include <string.h>

static char half(const Node *n)
{
	const Annot *a = n ? annot_find(n->annot, "backward") : NULL;
	return a && a->narg ? a->arg[0].s[0] : ' ';
}

static const char *trouble(Graph *g, Arena *a)
{
	int nb = 0, nw = 0, ngrad = 0;
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		nb += half(n) == 'B';
		nw += half(n) == 'W';
		for (int k = 0; k < n->nin && half(n) == 'B'; k++)
			if (n->in[k] && half(n->in[k]->def) == 'W')
				return arena_printf(a, "%s, which makes %s of inputs, reads %s of weights", n->op,
					n->out[0]->name, n->in[k]->name);
	}
	for (int i = 0; i < g->ninit; i++) {
		const Value *v = g->init[i]->param ? graph_find(g, name_fmt("%s.grad", g->init[i]->name)) : NULL;
		ngrad += v != NULL;
		if (v && v->def && half(v->def) == ' ')
			return arena_printf(a, "%s is marked neither B nor W", v->name);
	}
	if (!ngrad)
		return "no parameter has a gradient";
	return nw < 1 || nb < 1 ? arena_printf(a, "%d nodes are B and %d are W", nb, nw) : NULL;
}

int main(int argc, char **argv)
{
	language_init();
	opt.stop_after = "train";
	for (int i = 1; i < argc; i++) {
		const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
		Arena a = { 0 };
		Model *m = read_model(argv[i]);
		if (!m || resolve_run(m))
			return 1;
		train_bind_batch(m);
		const char *why = passes_run(m) ? "it does not compile" : trouble(m->graph, &a);
		printf(why ? "not ok %s: %s\n" : "ok %s\n", name, why);
		model_free(m);
		arena_free(&a);
	}
	return 0;
}
