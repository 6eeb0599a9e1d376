/* The plan: on which mesh the model runs, and the SBP of every value.  All of it is written into the graph as annotations,
 * so the dump after this pass, read again, is pinned everywhere and gives the same program. */
#include "compiler.h"

static int check_shape(const Value *v)
{
	if (v->type && v->type->kind == TY_TENSOR && type_elements(v->type) >= 0)
		return 0;
	err_at(v->loc, "the shape of %s is not known: %s", v->name, v->type ? type_text(v->type) : "no type");
	for (int k = 0; v->type && k < v->type->rank; k++)
		if (dim_symbolic(v->type->dim[k])) {
			note_at(v->loc, "bind it with --set %s=NUMBER", dim_text(v->type->dim[k]));
			break;
		}
	return -1;
}

/* Inputs first: what is unknown there makes the rest unknown. */
static int check_static(Graph *g)
{
	int bad = 0;
	for (int i = 0; i < g->nin; i++)
		bad |= check_shape(g->in[i]);
	for (int i = 0; i < g->nvalue && !bad; i++)
		if (g->value[i]->def || g->value[i]->init)
			bad = check_shape(g->value[i]);
	return bad;
}

int plan_run(Graph *g)
{
	Plan *p = g->model->plan;
	programs_pin(g->model);
	Place *place = arena_new(g->arena, Place);
	if (check_static(g) || machine_read(g->model, p) || figures_read(opt.machine, p->main))
		return -1;
	place->mesh = p->main;
	for (int i = 0; i < g->nvalue; i++)
		g->value[i]->place = place;
	p->batch = (g->nin && g->in[0]->type->rank > 0 ? g->in[0]->type->dim[0] : 1) * (p->training && p->train.times ? p->train.times : 1);
	return sbp_solve(g, p) || define_nodes(g, p->main) ? -1 : 0;
}
