/* Where: which mesh runs each node and holds each value.
 *
 * With one mesh there is nothing to decide.  With several, or with parts of one, @on says it of some nodes and values, and the others follow:
 *
 *   - before the backward pass (places_spread) a node without @on goes where its parameter is said to be, else where the operand is that was
 *     made last, else to the first mesh; a parameter or an input goes where it is first read.  All of it is written down as @on, which the
 *     nodes of the backward pass, of recomputation and of the other programs inherit.
 *   - when the plan is made (places_find) what the training pass added without a line of its own goes where the storage is that it updates, else
 *     where its large operands are; the state of an optimizer is where its parameter is.  Numbers that belong to no mesh, the rate of learning and the norm of all gradients, and what a
 *     program tells are on the mesh of all ranks.
 *
 * A value is held where it is made.  Between meshes it is moved as boxing moves everything. */
#include "plan/plan.h"

#include <string.h>

static const Arg *on_of(const Annot *list)
{
	const Annot *a = annot_find(list, "on");
	return a ? a->arg : NULL;
}

static void say(Graph *g, Annot **list, const Arg *on)
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

/* Of the operands: what the model says of a parameter, else that of the one made last. */
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

static const Arg *said(const Node *n)
{
	const Arg *on = on_of(n->annot);
	for (int i = 0; i < n->nout && !on; i++)
		on = n->out[i] ? on_of(n->out[i]->annot) : NULL;
	return on;
}

int places_spread(Graph *g)
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
		const Arg *on = said(n);
		n->mark = i;
		on = on ? on : follow(g, n, given, of);
		on = on ? on : first;
		say(g, &n->annot, on);
		for (int k = 0; k < n->nin; k++)
			if (leaf(g, n->in[k]) && !of[n->in[k]->id] && (n->in[k]->param || n->in[k]->input || !n->in[k]->data)) {
				of[n->in[k]->id] = on;
				say(g, &n->in[k]->annot, on);
			}
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && !of[n->out[k]->id])
				of[n->out[k]->id] = on;
	}
	return 0;
}

/* ---- places ---- */

/* The ranks of a part of a mesh: all axes stay, those with an index have one rank. */
static const Mesh *part_of(Graph *g, const Mesh *m, const Arg *on)
{
	Mesh *part = arena_new(g->arena, Mesh);
	int from[MESH_DIMS] = { 0 }, at[MESH_DIMS] = { 0 }, k;
	*part = *m;
	part->name = name_fmt("%s[", m->name);
	part->nrank = 1;
	for (k = 0; k < m->ndim; k++) {
		const Arg *a = k < on->narg ? &on->arg[k] : NULL;
		if (a && a->kind != ARG_STAR) {
			from[k] = (int)a->i;
			part->dim[k] = a->kind == ARG_RANGE ? (int)(a->j - a->i + 1) : 1;
		}
		part->name = name_fmt(a && a->kind == ARG_RANGE ? "%s%s%d:%d" : a && a->kind != ARG_STAR ? "%s%s%d" : "%s%s*", part->name, k ? ", " : "", from[k], from[k] + part->dim[k] - 1);
		part->nrank *= part->dim[k];
	}
	part->name = name_fmt("%s]", part->name);
	int *rank = arena_array(g->arena, int, part->nrank);
	for (int i = 0; i < part->nrank; i++) {
		int place = 0;
		for (k = 0; k < m->ndim; k++)
			place = place * m->dim[k] + from[k] + at[k];
		rank[i] = mesh_rank(m, place);
		for (k = m->ndim; k-- > 0 && ++at[k] == part->dim[k];)
			at[k] = 0;
	}
	mesh_ranks(g->model, part, rank);
	return part;
}

static Plan *shared(const Graph *g)
{
	return g->model->main ? g->model->main->plan : g->model->plan;
}

static Place *place_at(Graph *g, Plan *p, const Arg *on)
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
	Place *at = arena_new(a, Place);
	at->mesh = on->kind == ARG_INDEX ? part_of(g, m, on) : m;
	at->on = on;
	arena_push(a, p->place, p->nplace, at);
	return at;
}

static Place *place_of_mesh(Graph *g, Plan *p, const Mesh *m)
{
	Arena *a = g->model->main ? g->model->main->graph->arena : g->arena;
	Arg *on = arena_new(a, Arg);
	*on = (Arg){ .kind = ARG_WORD, .s = m->name, .loc = m->loc };
	return place_at(g, p, on);
}

bool places_here(const Value *v, const Mesh *m)
{
	return !v->place || (v->place->mesh == m && (!v->def || !v->def->place || v->def->place->mesh == m));
}

bool places_apart(const Place *a, const Place *b)
{
	if (a->mesh == b->mesh)
		return false;
	for (int i = 0; i < a->mesh->nrank; i++)
		if (mesh_index(b->mesh, mesh_rank(a->mesh, i)) >= 0)
			return false;
	return true;
}

/* ---- when the plan is made ---- */

static bool told(const Value *v)
{
	return v->output || optimizer_reports(v);
}

/* Where the storage is that a result of the node updates. */
static Place *updates(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		for (const Value *v = n->out[i] ? n->out[i]->into : NULL; v; v = v->into)
			if (v->place)
				return v->place;
	return NULL;
}

/* Where its operands are: the large one that was made last; else where all numbers are that belong to a mesh; else everywhere. */
static Place *beside(const Node *n, Place *all)
{
	Place *large = NULL, *small = NULL;
	int last = -2;
	for (int i = 0; i < n->nin; i++) {
		const Value *v = n->in[i];
		Place *at = v ? v->place : NULL;
		int made = v && v->def ? v->def->mark : -1;
		if (!at || at == all || (!v->def && v->data && !v->param))      /* a constant says nothing: others may share it */
			continue;
		small = small && small != at ? all : at;
		if (type_elements(v->type) > 1 && made > last) {
			large = at;
			last = made;
		}
	}
	return large ? large : small ? small : all;
}

/* The parameter whose name this is but for its last part, w of w.m: an optimizer keeps its state beside it. */
static const Value *owner(const Graph *g, const Value *v)
{
	const char *dot = v->init ? strrchr(v->name, '.') : NULL;
	const Value *w = dot ? graph_find(g, name_n(v->name, (size_t)(dot - v->name))) : NULL;
	return w && w->init && w->param ? w : NULL;
}

static void hold(Value *v, Place *at)
{
	if (v && !v->place)
		v->place = at;
}

static void place_node(Graph *g, Plan *p, Node *n, Place *all)
{
	const Arg *on = said(n);
	Place *at = on ? place_at(g, p, on) : updates(n);
	n->place = at ? at : beside(n, all);
	for (int i = 0; i < n->nin; i++)
		if (leaf(g, n->in[i]))
			hold(n->in[i], n->place);
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			hold(n->out[i], n->out[i]->into && n->out[i]->into->place ? n->out[i]->into->place : told(n->out[i]) ? all : n->place);
}

/* So that a dump says it. */
static void write_down(Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		say(g, &g->node[i]->annot, g->node[i]->place->on);
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		if (v->def ? v->place != v->def->place : v->init || v->input)
			say(g, &v->annot, v->place->on);
	}
}

static void one_place(Graph *g, Plan *p)
{
	Place *at = p->nplace ? p->place[0] : arena_new(g->arena, Place);
	at->mesh = p->main;
	if (!p->nplace)
		arena_push(g->arena, p->place, p->nplace, at);
	for (int i = 0; i < g->nvalue; i++)
		g->value[i]->place = at;
	for (int i = 0; i < g->nnode; i++)
		g->node[i]->place = at;
}

int places_find(Graph *g, Plan *own)
{
	Plan *p = shared(g);
	if (g->model->main ? !p->place[0]->on : !several(g->model)) {
		one_place(g, p);
	} else {
		Place *all = place_of_mesh(g, p, p->world), *first = place_of_mesh(g, p, p->main);
		for (int i = 0; i < g->nvalue; i++)
			g->value[i]->place = on_of(g->value[i]->annot) ? place_at(g, p, on_of(g->value[i]->annot)) : NULL;
		for (int i = 0; i < g->nvalue; i++) {
			const Value *w = owner(g, g->value[i]);
			hold(g->value[i], leaf(g, g->value[i]) && told(g->value[i]) ? all : w ? w->place : NULL);
		}
		for (int i = 0; i < g->nnode; i++) {
			g->node[i]->mark = i;
			place_node(g, p, g->node[i], all);
		}
		for (int i = 0; i < g->nvalue; i++)
			hold(g->value[i], first);
		write_down(g);
	}
	own->place = p->place;
	own->nplace = p->nplace;
	return 0;
}

void places_note(Graph *g, Node *n)
{
	say(g, &n->annot, n->place->on);
}

void places_new(Graph *g)
{
	Plan *p = shared(g);
	Place *only = p->place[0]->on ? NULL : p->place[0];
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
