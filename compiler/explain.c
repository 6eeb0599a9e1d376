/* --explain: how each value lies on the ranks, where it is stored, and which transfers there are and why. */
#include "compiler.h"

#include <inttypes.h>
#include <string.h>

static void value(const Plan *p, const Value *v)
{
	const Slot *s = plan_slot(p, v);
	printf("%-20s %-24s %-6s", escape_text(&process, v->name, strlen(v->name)), v->type ? type_text(v->type) : "?", v->sbp ? sbp_text(v->sbp, p->main->ndim) : "-");
	if (s)
		printf(" t%-4d %10" PRId64 " bytes at %s+%" PRId64, s->id, s->bytes, s->window ? "window" : "slab", s->offset);
	putchar('\n');
}

/* What it moves is what all ranks receive together. */
static void transfer(const Node *n)
{
	const Value *x = n->in[0], *y = n->out[0];
	Form from = sbp_form(x, x->sbp, x->place->mesh), to = sbp_form(y, y->sbp, y->place->mesh);
	int64_t elem = dtype_bits(x->type->elem) < 8 ? 1 : dtype_bits(x->type->elem) / 8;
	printf("%-20s %s -> %s by %s, %" PRId64 " bytes, %.1f us; ", escape_text(&process, x->name, strlen(x->name)), sbp_text(x->sbp, x->place->mesh->ndim),
	       sbp_text(y->sbp, y->place->mesh->ndim), attr_str(n, "how"), transfer_of(&from, &to)->total * elem, 1e6 * transfer_seconds(&from, &to, elem));
	printf("made at %s, wanted at %s\n", boxing_made(n), n->from ? n->from : loc_text(n->loc));
}

void explain(const Model *m, const char *what)
{
	const Plan *p = m->plan;
	const Graph *g = m->graph;
	if (!p || !p->main) {
		printf("nothing is planned yet\n");
		return;
	}
	bool any = false;
	for (int i = 0; i < g->nvalue; i++)
		if ((g->value[i]->def || g->value[i]->init || g->value[i]->input) && (!what || !strcmp(what, g->value[i]->name))) {
			value(p, g->value[i]);
			any = true;
		}
	if (what && !any)
		printf("there is no value %s after these passes\n", escape_text(&process, what, strlen(what)));
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		if (emit_boxing(n) && (!what || !strcmp(n->in[0]->name, what) || !strcmp(n->out[0]->name, what)))
			transfer(n);
	}
}
