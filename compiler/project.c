/* What each rank holds of every value, and which ranks can share a program.
 *
 * An axis that is split is described once per (length, mesh axis); a rank finds where its part begins in a table by that
 * index.  Ranks whose parts all have the same lengths run the same program, a role.  All roles share one layout, sized by
 * the largest part, so a value has the same offset on every rank. */
#include "compiler.h"

#include <string.h>

Slot *plan_slot(const Plan *p, const Value *v)
{
	return v && v->id < p->nslot ? p->slot[v->id] : NULL;
}

int64_t slot_len(const Plan *p, const Slot *s, int axis, int rank)
{
	return s->split[axis] < 0 ? s->dim[axis] : p->split[s->split[axis]].len[rank];
}

int64_t slot_elements(const Plan *p, const Slot *s, int rank)
{
	int64_t n = 1;
	for (int a = 0; a < s->rank; a++)
		n *= slot_len(p, s, a, rank);
	return n;
}

static int find_split(Graph *g, Plan *p, int64_t n, int meshdim)
{
	for (int i = 0; i < p->nsplit; i++)
		if (p->split[i].n == n && p->split[i].meshdim == meshdim)
			return i;
	Split s = { .n = n, .meshdim = meshdim };
	s.origin = arena_array(g->arena, int64_t, p->main->nrank);
	s.len = arena_array(g->arena, int64_t, p->main->nrank);
	for (int r = 0; r < p->main->nrank; r++) {
		int coord[MESH_DIMS];
		mesh_coord(p->main, r, coord);
		form_share(n, p->main->dim[meshdim], coord[meshdim], &s.origin[r], &s.len[r]);
	}
	arena_push(g->arena, p->split, p->nsplit, s);
	return p->nsplit - 1;
}

static bool ends(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n > k && !strcmp(s + n - k, end);
}

/* The parameter whose name this is but for its last part: w of w.grad, w.m; NULL. */
static const Value *owner(const Graph *g, const Value *v)
{
	const char *dot = strrchr(v->name, '.');
	const Value *w = dot ? graph_find(g, name_n(v->name, (size_t)(dot - v->name))) : NULL;
	return w && w->init && w->param ? w : NULL;
}

static Keep keep_of(const Graph *g, const Value *v)
{
	const Value *w = owner(g, v);
	if (v->init && v->param)
		return !graph_find(g, name_fmt("%s.grad", v->name)) && (w || graph_find(g, name_fmt("%s.next", v->name))) ? KEEP_STATE : KEEP_PARAM;
	if (v->init || v->data)
		return KEEP_CONST;
	if (v->input)
		return KEEP_INPUT;
	bool sum = v->def && !strcmp(v->def->op, "Zeros");      /* over micro-batches */
	return sum || ends(v->name, ".grad.micro") || (w && ends(v->name, ".grad")) ? KEEP_GRAD : KEEP_ACT;
}

Slot *slot_value(Slot *s)
{
	while (s->view)
		s = s->view;
	return s;
}

/* A node that only sees its operand as another shape: the bytes of a part stay where they are, in their order. */
static bool only_sees(const Plan *p, const Node *n)
{
	return n->row->kernel && !strcmp(n->row->kernel, "copy") && plan_slot(p, n->in[0]) && !n->out[0]->into &&
	       plan_slot(p, n->in[0])->bytes == plan_slot(p, n->out[0])->bytes;
}

/* A slot for v, once. */
static int hold(Graph *g, Plan *p, Value *v, int *next)
{
	if (!v || p->slot[v->id])
		return 0;
	Slot *s = arena_new(g->arena, Slot);
	const Type *t = v->type;
	if (t->rank > 8) {
		err_at(v->loc, "%s has %d axes; this back end takes up to 8", v->name, t->rank);
		return -1;
	}
	const Value *same = programs_same(g->model, v);
	const Slot *old = same ? plan_slot(g->model->main->plan, same) : NULL;
	s->v = v;
	s->id = old ? old->id : (*next)++;
	s->rank = t->rank;
	s->keep = keep_of(g, v);
	s->store = s;
	int64_t n = 1;
	for (int a = 0; a < t->rank; a++) {
		s->dim[a] = t->dim[a];
		s->split[a] = -1;
		for (int k = 0; k < p->main->ndim; k++)
			if (p->main->dim[k] > 1 && v->sbp[k].kind == SBP_S && v->sbp[k].axis == a)
				s->split[a] = find_split(g, p, t->dim[a], k);
		if (__builtin_mul_overflow(n, slot_len(p, s, a, 0), &n)) {
			fail_at(EXIT_LIMIT, v->loc, "%s is too large: %s", v->name, type_text(t));
			return -1;
		}
	}
	size_t bytes = tensor_bytes(emit_stored(t->elem), n);
	if (bytes > (size_t)INT64_MAX / 4) {
		fail_at(EXIT_LIMIT, v->loc, "%s is too large: %s", v->name, type_text(t));
		return -1;
	}
	s->bytes = (int64_t)bytes;
	p->slot[v->id] = s;
	return 0;
}

/* Results that nobody reads are not wanted, except the first, and except those of a variadic list, whose places matter. */
static void drop_unused(Graph *g)
{
	int *uses = graph_uses(g, g->scratch);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 1; k < g->node[i]->nout && k < g->node[i]->row->schema->nout; k++)
			if (g->node[i]->out[k] && !g->node[i]->row->schema->out[k].variadic && !uses[g->node[i]->out[k]->id] && !g->node[i]->out[k]->into)
				g->node[i]->out[k] = NULL;
}

static bool same_shapes(const Plan *p, int a, int b)
{
	for (int i = 0; i < p->nsplit; i++)
		if (p->split[i].len[a] != p->split[i].len[b])
			return false;
	return true;
}

void project_roles(Graph *g)
{
	Plan *p = g->model->plan, *first = g->model->main ? g->model->main->plan : p;
	p->split = first->split;
	p->nsplit = first->nsplit;
	p->nrole = 0;
	p->role_of = arena_array(g->arena, int, p->main->nrank);
	for (int r = 0; r < p->main->nrank; r++) {
		int k = 0;
		while (k < p->nrole && !same_shapes(p, p->role[k].rank[0], r))
			k++;
		if (k == p->nrole) {
			Role role = { .id = k };
			arena_push(g->arena, p->role, p->nrole, role);
		}
		p->role_of[r] = k;
		arena_push(g->arena, p->role[k].rank, p->role[k].nrank, r);
	}
}

/* Whether there is a kernel for everything; an operator of one line is named once, whatever its gradient needs. */
static bool all_can(Graph *g)
{
	Map told;
	bool ok = true;
	map_init(&told, g->scratch);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		Name key = name_fmt("%s@%u:%llu", n->op, n->loc.file, (unsigned long long)n->loc.off);
		if (map_get(&told, key) || emit_can(n))
			continue;
		map_put(&told, key, n);
		ok = false;
	}
	return ok;
}

int project_run(Graph *g)
{
	Plan *p = g->model->plan;
	Plan *first = g->model->main ? g->model->main->plan : p;
	int bad = 0, *next = &first->next;
	drop_unused(g);
	if (!all_can(g))
		return -1;
	for (int i = 0; p != first && i < first->nsplit; i++)      /* one table of splits for all programs */
		arena_push(g->arena, p->split, p->nsplit, first->split[i]);
	p->nslot = g->nvalue;
	p->slot = arena_array(g->arena, Slot *, g->nvalue + 1);
	for (int i = 0; i < g->nin; i++)
		bad |= hold(g, p, g->in[i], next);
	for (int i = 0; i < g->ninit; i++)
		if (g->init[i]->param)
			bad |= hold(g, p, g->init[i], next);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && emit_reads(n, k))
				bad |= hold(g, p, n->in[k], next);
		for (int k = 0; k < n->nout; k++)
			bad |= hold(g, p, n->out[k], next);
	}
	for (int i = 0; i < g->nout; i++)
		bad |= hold(g, p, g->out[i], next);
	for (int i = 0; i < g->nnode && !bad; i++)
		if (only_sees(p, g->node[i])) {
			Slot *s = plan_slot(p, g->node[i]->out[0]);
			s->view = plan_slot(p, g->node[i]->in[0]);
			s->store = s->view->store;
			s->keep = s->view->keep;
		}
	for (int i = 0; i < g->nvalue && !bad; i++) {
		Slot *s = p->slot[i];
		for (Value *v = s ? s->v->into : NULL; v; v = v->into)
			if (plan_slot(p, v))
				s->store = plan_slot(p, v)->store;
	}
	if (bad)
		return -1;
	if (p != first) {
		first->split = p->split;
		first->nsplit = p->nsplit;
	}
	return 0;
}
