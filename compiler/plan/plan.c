/* The plan: the placement of each node and the SBP of every value.  Both are written into the graph as annotations, so
 * a dump made after this pass is pinned everywhere and gives the same program when it is read again.
 *
 * Meshes are solved one after the other, each with the nodes that run on it.  A value from another mesh may arrive in
 * any SBP, because it is transferred in any case. */
#include "search.h"

/* A Form has at most FORM_AXES axes. */
static int check_axes(const Value *v)
{
	if (v->type->ndim <= FORM_AXES)
		return 0;
	err_at(v->loc, "%s has %d axes, %s; a program takes tensors of up to %d: join neighbouring axes with Reshape",
		v->name, v->type->ndim, type_text(v->type), FORM_AXES);
	return -1;
}

static bool known(const Value *v)
{
	return v->type && v->type->kind == TY_TENSOR && type_elements(v->type) >= 0;
}

/* The first value upstream whose shape is not known. */
static const Value *first_unknown(const Value *v)
{
	for (int i = 0; v->def && i < v->def->nin; i++)
		if (v->def->in[i] && !known(v->def->in[i])) {
			v = v->def->in[i];
			i = -1;
		}
	return v;
}

/* A result whose shape depends on data, which only a run has. */
static bool depends_on_data(const Value *v)
{
	static const char *const list[] = { "NonZero", "Compress", "Unique", "NonMaxSuppression", NULL };
	for (int i = 0; v->def && list[i]; i++)
		if (node_is(v->def, list[i]))
			return true;
	return false;
}

static int check_shape(const Value *v)
{
	if (known(v))
		return check_axes(v);
	v = first_unknown(v);
	if (depends_on_data(v)) {
		err_at(v->def->loc,
			"the shape of %s depends on data: how many elements %s gives is known only when the program "
			"runs", v->name, v->def->op);
		note_at((Loc){ 0 },
			"shapes must be known before: multiply with a mask, or choose with Where, instead of selecting "
			"elements by a condition");
		return -1;
	}
	err_at(v->loc, "the shape of %s is not known: %s", v->name, v->type ? type_text(v->type) : "no type");
	for (int k = 0; v->type && k < v->type->ndim; k++)
		if (dim_symbolic(v->type->dim[k])) {
			note_at(v->loc, "bind it with --set %s=NUMBER", dim_text(v->type->dim[k]));
			break;
		}
	return -1;
}

/* Inputs first: an unknown shape there makes others unknown. */
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

/* The nodes of one mesh, as a graph over the same values; its scratch is used again for the next one. */
static int solve_on(Graph *g, Plan *p, const Mesh *m)
{
	Graph on = *g;
	Arena scratch = { 0 };
	on.scratch = &scratch;
	on.node = arena_array(g->scratch, Node *, g->nnode + 1);
	on.nnode = 0;
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->place->mesh == m)
			on.node[on.nnode++] = g->node[i];
	int bad = search_solve(&on, p, m);
	arena_free(&scratch);
	return bad;
}

/* A result that is held on another mesh than it is computed on has its pinned SBP there, else B. */
static int held_elsewhere(Graph *g, const Pins *pins, const Mesh *m)
{
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		if (v->sbp || v->place->mesh != m)
			continue;
		v->sbp = arena_array(g->arena, Sbp, m->ndim);
		for (int k = 0; pins->value[i] && k < m->ndim; k++)
			if (pins->value[i][k].kind != SBP_ANY)
				v->sbp[k] = pins->value[i][k];
		if (v->def || v->init || v->input)
			sbp_note(g, v, m);
	}
	return 0;
}

static int solve_each(Graph *g, Plan *p)
{
	int bad = 0;
	for (int i = 0; i < g->nvalue; i++)
		g->value[i]->sbp = NULL;
	for (int i = 0; i < p->nplace && !bad; i++)
		bad = solve_on(g, p, p->place[i]->mesh);
	for (int i = 0; i < p->nplace && !bad; i++) {
		Graph on = *g;
		Arena scratch = { 0 };
		on.scratch = &scratch;
		const Pins *pins = pins_read(&on, p->place[i]->mesh);
		bad = !pins || held_elsewhere(g, pins, p->place[i]->mesh);
		arena_free(&scratch);
	}
	return bad;
}

/* @stage needs ranks to run on. */
static int check_stages(const Graph *g)
{
	const Annot *a = NULL;
	for (int i = 0; i < g->nnode && !a; i++)
		a = annot_find(g->node[i]->annot, "stage");
	if (!a || g->model->plan->stages || g->model->main)
		return 0;
	if (g->model->plan->world->nrank == 1) {
		if (!opt.dump_after)
			warn_at(a->loc, "@stage has no effect: there is one rank");
		return 0;
	}
	err_at(a->loc,
		"@stage needs a pipeline: write @pipeline(axis: 0), and the first axis of the mesh enumerates its "
		"ranks");
	return -1;
}

int plan_prepare(Graph *g)
{
	Plan *p = g->model->plan;
	if (p->main)
		return 0;
	programs_pin(g->model);
	if (check_static(g) || any_ranks_read(g->model) || mesh_read(g->model, p) || stages_read(g->model, p) ||
		check_stages(g) || device_read(opt.machine, p->main))
		return -1;
	stages_updates(g);
	if (placement_find(g, p))
		return -1;
	if (opt.chunks && p->main->cuda && !kernel_any_has(TARGET_CUDA, KERNEL_CHUNKS)) {
		err_at(p->main->loc, "--deterministic=any-ranks: the kernels of CUDA do not sum in chunks");
		return -1;
	}
	return 0;
}

/* In a trial: the main mesh with fewer ranks, along its first axis. */
static int fewer_ranks(Mesh *m, int n)
{
	for (int k = 0; k < m->ndim; k++)
		m->dim[k] = k ? 1 : n;
	m->nrank = n;
	m->first = 0;
	m->rank = NULL;
	return device_read(opt.machine, m);
}

int plan_run(Graph *g)
{
	Plan *p = g->model->plan;
	if (plan_prepare(g) || (opt.change.ranks && fewer_ranks(p->main, opt.change.ranks)))
		return -1;
	p->batch = g->nin && g->in[0]->type->ndim > 0 ? g->in[0]->type->dim[0] : 1;
	if (p->training && p->train.microbatches)
		p->batch *= p->train.microbatches;
	if (p->nplace > 1 ? solve_each(g, p) : search_solve(g, p, p->main))
		return -1;
	return expansion_nodes(g) ? -1 : 0;
}
