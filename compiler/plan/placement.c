/* Placements: the mesh that runs each node and holds each value.
 *
 * With one mesh there is nothing to decide.  With several meshes or submeshes @on places some nodes and values, and the
 * others follow:
 *
 *   - Before the backward pass (placement_spread) a node without @on is placed with its parameter that has @on, else
 *     with the operand computed last, else on the first mesh.  A parameter or an input is placed with its first
 *     reader.  All placements are written as @on, which the nodes of the backward pass, of recomputation and of the
 *     other programs inherit.
 *   - When the plan is made (placement_find) a node that the training pass added is placed with the storage that it
 *     updates, else with its large operands; the state of an optimizer is placed with its parameter.  A sum over
 *     micro-batches is placed with the values that are added to it.  Scalars that belong to no mesh, such as the
 *     learning rate and the norm of all gradients, and values that a program reports are on the mesh of all ranks.
 *
 * A value is held where it is computed.  Between meshes it is moved by boxing; constants are copied when the plan is
 * made. */
#include "plan/plan.h"

#include <string.h>

static const Arg *on_of(const Annot *list)
{
	const Annot *a = annot_find(list, "on");
	return a ? a->arg : NULL;
}

/* Adds @on to annotations that have none. */
static void write_on(Graph *g, Annot **list, const Arg *on)
{
	if (!on || annot_find(*list, "on"))
		return;
	Annot *a = arena_new(g->arena, Annot), *copy;
	a->name = name_of("on");
	arena_push(g->arena, a->arg, a->narg, *on);
	copy = annot_copy(g->arena, a);
	annot_add(list, copy);
}

static bool leaf(const Graph *g, const Value *v)
{
	return v && !v->def && v->graph == g;
}

/* ---- before the backward pass ---- */

static bool several(const Model *m)
{
	int meshes = 0;
	for (const Annot *a = m->annot; a; a = a->next)
		meshes += !strcmp(a->name, "mesh");
	for (int i = 0; i < m->graph->nnode && meshes == 1; i++) {
		const Arg *on = on_of(m->graph->node[i]->annot);
		meshes += on && on->kind == ARG_INDEX;
	}
	for (int i = 0; i < m->graph->nvalue && meshes == 1; i++) {
		const Arg *on = on_of(m->graph->value[i]->annot);
		meshes += on && on->kind == ARG_INDEX;
	}
	return meshes > 1;
}

static const Arg *first_mesh(Graph *g)
{
	Arg *on = arena_new(g->arena, Arg);
	const Annot *a = annot_find(g->model->annot, "mesh");
	*on = (Arg){ .kind = ARG_WORD, .s = arg_find(a->arg, a->narg, "name")->s, .loc = a->loc };
	return on;
}

/* The placement of a parameter that has @on, else that of the operand computed last. */
static const Arg *follow(const Graph *g, const Node *n, const bool *given, const Arg *const *of)
{
	const Arg *on = NULL;
	int last = -1;
	for (int i = 0; i < n->nin; i++)
		if (leaf(g, n->in[i]) && given[n->in[i]->id])
			return of[n->in[i]->id];
	for (int i = 0; i < n->nin; i++) {
		const Value *v = n->in[i];
		if (!v || v->graph != g || !of[v->id] || (v->def ? v->def->mark : -1) < last)
			continue;
		last = v->def ? v->def->mark : -1;
		on = of[v->id];
	}
	return on;
}

/* The @on of a node or of one of its results. */
static const Arg *given_on(const Node *n)
{
	const Arg *on = on_of(n->annot);
	for (int i = 0; i < n->nout && !on; i++)
		on = n->out[i] ? on_of(n->out[i]->annot) : NULL;
	return on;
}

int placement_spread(Graph *g)
{
	if (!several(g->model))
		return 0;
	const Arg **of = arena_array(g->scratch, const Arg *, g->nvalue + 1), *first = first_mesh(g);
	bool *given = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		of[i] = on_of(g->value[i]->annot);
		given[i] = of[i] && g->value[i]->param;
	}
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		const Arg *on = given_on(n);
		n->mark = i;
		on = on ? on : follow(g, n, given, of);
		on = on ? on : first;
		write_on(g, &n->annot, on);
		for (int k = 0; k < n->nin; k++) {
			Value *v = n->in[k];
			if (leaf(g, v) && !of[v->id] && (v->param || v->input || !v->data)) {
				of[v->id] = on;
				write_on(g, &v->annot, on);
			}
		}
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && !of[n->out[k]->id])
				of[n->out[k]->id] = on;
	}
	return 0;
}

/* ---- meshes and submeshes ---- */

/* A submesh: it has all axes of its mesh; those with an index have one rank. */
static const Mesh *submesh_of(Graph *g, const Mesh *m, const Arg *on)
{
	Mesh *sub = arena_new(g->arena, Mesh);
	int from[MESH_DIMS] = { 0 }, at[MESH_DIMS] = { 0 }, k;
	*sub = *m;
	sub->name = name_fmt("%s[", m->name);
	sub->nrank = 1;
	for (k = 0; k < m->ndim; k++) {
		const Arg *a = k < on->narg ? &on->arg[k] : NULL;
		const char *comma = k ? ", " : "";
		if (!a || a->kind == ARG_STAR) {
			sub->name = name_fmt("%s%s*", sub->name, comma);
		} else if (a->kind == ARG_RANGE) {
			from[k] = (int)a->i;
			sub->dim[k] = (int)(a->j - a->i + 1);
			sub->name = name_fmt("%s%s%d:%d", sub->name, comma, from[k], from[k] + sub->dim[k] - 1);
		} else {
			from[k] = (int)a->i;
			sub->dim[k] = 1;
			sub->name = name_fmt("%s%s%d", sub->name, comma, from[k]);
		}
		sub->nrank *= sub->dim[k];
	}
	sub->name = name_fmt("%s]", sub->name);
	int *rank = arena_array(g->arena, int, sub->nrank);
	for (int i = 0; i < sub->nrank; i++) {
		int index = 0;
		for (k = 0; k < m->ndim; k++)
			index = index * m->dim[k] + from[k] + at[k];
		rank[i] = mesh_rank(m, index);
		for (k = m->ndim; k-- > 0 && ++at[k] == sub->dim[k];)
			at[k] = 0;
	}
	mesh_ranks(g->model, sub, rank);
	return sub;
}

static Plan *shared(const Graph *g)
{
	return g->model->main ? g->model->main->plan : g->model->plan;
}

static Placement *place_at(Graph *g, Plan *p, const Arg *on)
{
	Arena *a = g->model->main ? g->model->main->graph->arena : g->arena;
	const Mesh *m = NULL;
	for (int i = 0; i < p->nplace; i++)
		if (arg_same(p->place[i]->on, on))
			return p->place[i];
	for (int i = 0; i < p->nmesh; i++)
		if (p->mesh[i]->name == on->s)
			m = p->mesh[i];
	if (!m)
		die("no mesh is called %s", on->s);
	Placement *at = arena_new(a, Placement);
	at->mesh = on->kind == ARG_INDEX ? submesh_of(g, m, on) : m;
	at->on = on;
	arena_push(a, p->place, p->nplace, at);
	return at;
}

static Placement *place_of_mesh(Graph *g, Plan *p, const Mesh *m)
{
	Arena *a = g->model->main ? g->model->main->graph->arena : g->arena;
	Arg *on = arena_new(a, Arg);
	*on = (Arg){ .kind = ARG_WORD, .s = m->name, .loc = m->loc };
	return place_at(g, p, on);
}

bool placement_here(const Value *v, const Mesh *m)
{
	return !v->place || (v->place->mesh == m && (!v->def || !v->def->place || v->def->place->mesh == m));
}

bool placement_apart(const Placement *a, const Placement *b)
{
	if (a->mesh == b->mesh)
		return false;
	for (int i = 0; i < a->mesh->nrank; i++)
		if (mesh_index(b->mesh, mesh_rank(a->mesh, i)) >= 0)
			return false;
	return true;
}

/* ---- when the plan is made ---- */

static bool reported(const Value *v)
{
	return v->output || optimizer_reports(v);
}

/* The placement of the storage that a result of the node updates. */
static Placement *updates(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		for (const Value *v = n->out[i] ? n->out[i]->into : NULL; v; v = v->into)
			if (v->place)
				return v->place;
	return NULL;
}

/* The placement of the large operand computed last; else that of all scalars that belong to a mesh, when it is one;
 * else the mesh of all ranks. */
static Placement *beside(const Node *n, Placement *all)
{
	Placement *large = NULL, *small = NULL;
	int last = -2;
	for (int i = 0; i < n->nin; i++) {
		const Value *v = n->in[i];
		Placement *at = v ? v->place : NULL;
		int made = v && v->def ? v->def->mark : -1;
		/* a constant does not count: other nodes may share it */
		if (!at || at == all || (!v->def && v->data && !v->param))
			continue;
		small = small && small != at ? all : at;
		if (type_elements(v->type) > 1 && made > last) {
			large = at;
			last = made;
		}
	}
	if (large)
		return large;
	return small ? small : all;
}

static void hold(Value *v, Placement *at)
{
	if (v && !v->place)
		v->place = at;
}

/* A sum over micro-batches begins as zeros, which are placed with the first value that is added. */
static bool begins_sum(const Node *n)
{
	return node_is(n, "sbpcc.Zeros") && !given_on(n);
}

static void place_sum(const Node *n)
{
	for (int i = 0; i < n->nout; i++) {
		Value *v = n->out[i] ? n->out[i]->into : NULL;
		if (v && v->def && begins_sum(v->def) && !v->place)
			v->def->place = v->place = n->place;
	}
}

/* By value: the step updates it. */
static bool *find_state(Graph *g)
{
	bool *state = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->into)
			state[g->value[i]->into->id] = true;
	return state;
}

static bool covers(const Placement *a, const Placement *b)
{
	for (int i = 0; i < b->mesh->nrank; i++)
		if (mesh_index(a->mesh, mesh_rank(b->mesh, i)) < 0)
			return false;
	return true;
}

/* A constant is not sent: ranks that read it and do not hold it have a copy of their own.  State, which the step
 * updates, is no constant. */
static Value *constant_at(Graph *g, const bool *state, Value *v, Placement *at)
{
	if (!leaf(g, v) || !v->data || v->param || v->input || state[v->id] || !v->place || covers(v->place, at))
		return v;
	for (int i = 0; i < g->ninit; i++)
		if (g->init[i]->data == v->data && g->init[i]->place == at && !g->init[i]->param)
			return g->init[i];
	Value *copy = graph_const(g, v->data, v->name);
	copy->loc = v->loc;
	copy->factors = v->factors;
	copy->place = at;
	return copy;
}

/* Evaluation and inference of a pipeline, whose ranks do not meet after a batch. */
static bool passes_on(const Graph *g, const Plan *p)
{
	return p->stages && !g->model->plan->training;
}

/* The operand of a node that the latest stage makes; NULL: none is of a stage. */
static const Node *latest(const Node *n)
{
	const Node *last = NULL;
	for (int i = 0; i < n->nin; i++) {
		const Node *d = n->in[i] ? n->in[i]->def : NULL;
		if (d && d->graph == n->graph && d->stage >= 0 && (!last || d->stage > last->stage))
			last = d;
	}
	return last;
}

/* A node that follows several stages is in the last of them. */
static void follow_stage(Node *n, Placement *all)
{
	const Node *last = n->stage < 0 ? latest(n) : NULL;
	if (!last || (n->place != all && n->place != last->place))
		return;
	n->place = last->place;
	n->stage = last->stage;
}

/* Results of evaluation and inference stay in their stage; those of an evaluation meet in the last one that makes
 * one. */
static void place_results(Graph *g, Placement *all)
{
	const Node *last = NULL;
	for (int i = 0; i < g->nout; i++) {
		const Node *d = g->out[i]->def;
		if (d && d->stage >= 0 && (!last || d->stage > last->stage))
			last = d;
	}
	for (int i = 0; i < g->nout; i++) {
		Value *v = g->out[i];
		bool here = v->def && v->def->place != all;
		hold(v, !here || !last ? all : stages_one_report(g) ? last->place : v->def->place);
	}
}

static void place_node(Graph *g, Plan *p, const bool *state, Node *n, Placement *all)
{
	const Arg *on = given_on(n);
	Placement *at = on ? place_at(g, p, on) : updates(n);
	if (begins_sum(n) && p->stages)
		return;
	n->place = at ? at : beside(n, all);
	if (!on && passes_on(g, p))
		follow_stage(n, all);
	place_sum(n);
	for (int i = 0; i < n->nin; i++) {
		n->in[i] = n->in[i] ? constant_at(g, state, n->in[i], n->place) : NULL;
		if (leaf(g, n->in[i]))
			hold(n->in[i], n->place);
	}
	for (int i = 0; i < n->nout; i++) {
		Value *v = n->out[i];
		if (v && v->into && v->into->place)
			hold(v, v->into->place);
		else if (v && v->output && passes_on(g, p))
			continue;               /* place_results */
		else
			hold(v, v && reported(v) ? all : n->place);
	}
}

/* Writes all placements as @on, so that a dump contains them. */
static void write_down(Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		write_on(g, &g->node[i]->annot, g->node[i]->place->on);
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		if (v->def ? v->place != v->def->place : v->init || v->input)
			write_on(g, &v->annot, v->place->on);
	}
}

static void one_place(Graph *g, Plan *p)
{
	Placement *at = p->nplace ? p->place[0] : arena_new(g->arena, Placement);
	at->mesh = p->main;
	if (!p->nplace)
		arena_push(g->arena, p->place, p->nplace, at);
	for (int i = 0; i < g->nvalue; i++)
		g->value[i]->place = at;
	for (int i = 0; i < g->nnode; i++)
		g->node[i]->place = at;
}

int placement_find(Graph *g, Plan *own)
{
	Plan *p = shared(g);
	if (g->model->main ? !p->place[0]->on : !several(g->model)) {
		one_place(g, p);
	} else {
		Placement *all = place_of_mesh(g, p, p->world), *first = place_of_mesh(g, p, p->main);
		for (int i = 0; i < g->nvalue; i++) {
			const Arg *on = on_of(g->value[i]->annot);
			g->value[i]->place = on ? place_at(g, p, on) : NULL;
		}
		for (int i = 0; i < g->nvalue; i++) {
			const Value *w = g->value[i]->init ? params_owner(g, g->value[i]) : NULL;
			if (leaf(g, g->value[i]) && reported(g->value[i]))
				hold(g->value[i], all);
			else if (w)
				hold(g->value[i], w->place);
		}
		for (int i = 0; i < g->nnode; i++) {
			g->node[i]->mark = i;
			g->node[i]->place = NULL;
		}
		const bool *state = find_state(g);
		for (int i = 0; i < g->nnode; i++)
			place_node(g, p, state, g->node[i], all);
		for (int i = 0; i < g->nnode; i++)
			if (!g->node[i]->place)
				g->node[i]->place = all;
		if (passes_on(g, p))
			place_results(g, all);
		for (int i = 0; i < g->nvalue; i++)
			hold(g->value[i], first);
		write_down(g);
	}
	own->place = p->place;
	own->nplace = p->nplace;
	return 0;
}

void placement_note(Graph *g, Node *n)
{
	write_on(g, &n->annot, n->place->on);
}

void placement_new(Graph *g)
{
	Plan *p = shared(g);
	Placement *only = p->place[0]->on ? NULL : p->place[0];
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		if (!n->place)
			n->place = only ? only : place_at(g, p, on_of(n->annot));
		for (int k = 0; k < n->nout; k++)
			hold(n->out[k], n->place);
		for (int k = 0; k < n->nin; k++)
			if (leaf(g, n->in[k]))
				hold(n->in[k], n->place);
	}
	for (int i = 0; i < g->nvalue; i++)
		hold(g->value[i], p->place[0]);
}
