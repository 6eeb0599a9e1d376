/* The shard of every value on each rank, and which ranks share a role.
 *
 * A value has a form (runtime/form.h); values with the same layout share one.  Ranks whose shards have the same lengths
 * in all forms run the same code, a role.  All roles share one memory layout, sized by the largest shard, so a value
 * has the same offset on every rank. */
#include "schedule/schedule.h"

#include <string.h>

/* The index of a form in p->forms, which is added if it is new; -1: a shard has more elements than an int64_t can
 * count. */
static int find_form(Graph *g, Plan *p, const Form *f)
{
	Forms *all = p->forms;
	for (int i = 0; i < all->n; i++)
		if (slot_same_form(&all->form[i], f, false))
			return i;
	int64_t most = 0;
	for (int i = 0, n = form_nrank(f); i < n; i++) {
		int64_t len[FORM_AXES], count = 1;
		form_lengths(f, i, len);
		for (int a = 0; a < f->naxis; a++)
			if (__builtin_mul_overflow(count, len[a], &count))
				return -1;
		most = count > most ? count : most;
	}
	Arena *arena = g->model->main ? g->model->main->graph->arena : g->arena;
	arena_push(arena, all->form, all->n, *f);
	arena_push(arena, all->most, all->nmost, most);
	return all->n - 1;
}

/* The memory class of a value.  The suffixes of names that train/ gives are read here and nowhere else, for dumps have
 * nothing but names. */
static Keep keep_of(const Graph *g, const Value *v)
{
	const Value *w = params_owner(g, v);
	if (v->frozen)
		return KEEP_PARAM;
	if (v->init && v->param)
		return !graph_find(g, name_fmt("%s.grad", v->name)) &&
			(w || graph_find(g, name_fmt("%s.next", v->name))) ? KEEP_STATE : KEEP_PARAM;
	if (v->init || v->data)
		return KEEP_CONST;
	if (v->input)
		return KEEP_INPUT;
	bool sum = node_is(v->def, "sbpcc.Zeros");      /* over micro-batches */
	bool term = text_ends(v->name, ".micro") && strstr(v->name, ".grad");
	return sum || term || (w && text_ends(v->name, ".grad")) ? KEEP_GRAD : KEEP_ACT;
}

/* By id of a value: graph_lives; whether it is sent to another stage of a pipeline. */
typedef struct Lives { int *last, *until; bool *sent; } Lives;

/* Whether every rank that holds y holds the same elements of x: all ranks of a pipeline have x, those of a stage y. */
static bool same_there(const Plan *p, const Slot *x, const Slot *y)
{
	const Form *a = slot_form(p, x), *b = slot_form(p, y);
	bool same = x->v->place->mesh == p->main && form_terms(a) == 1 && form_terms(b) == 1;
	for (int i = 0; i < form_nrank(b) && same; i++) {
		int at = form_index(a, form_rank(b, i));
		FormShard there, here;
		if (at < 0 || form_shard(a, at, &there) || form_shard(b, i, &here))
			return false;
		for (int k = 0; k < a->naxis && same; k++) {
			same = there.axis[k].n == here.axis[k].n;
			for (int m = 0; m < here.axis[k].n && same; m++)
				same = there.axis[k].run[m].at == here.axis[k].run[m].at &&
					there.axis[k].run[m].len == here.axis[k].run[m].len;
		}
		form_shard_free(&there);
		form_shard_free(&here);
	}
	return same;
}

/* Whether the result of a node is a view of its operand: a reshape, or a transfer between forms that give every rank
 * the same elements.  The bytes of the shard stay where they are. */
static bool is_view(const Plan *p, const Node *n, const Lives *l)
{
	const Slot *x = n->nin ? slot_of(p, n->in[0]) : NULL, *y = slot_of(p, n->out[0]);
	if (x && l->last[n->out[0]->id] > l->until[slot_value((Slot *)x)->v->id])
		return false;                   /* the view is read after the memory of its operand was reused */
	if (l->sent[n->out[0]->id])
		return false;                   /* its memory may be that of a received value, which no block makes */
	if (kernel_transfer(n))
		return x && y && !n->out[0]->into && (form_same(slot_form(p, x), slot_form(p, y)) ||
			(p->stages && same_there(p, x, y)));
	return n->row->kernel && !strcmp(n->row->kernel, "copy") && x && !n->out[0]->into && x->bytes == y->bytes;
}

/* Makes the slot of v unless it has one; -1 after explaining. */
static int hold(Graph *g, Plan *p, Value *v, int *next)
{
	if (!v || p->slot[v->id])
		return 0;
	Slot *s = arena_new(g->arena, Slot);
	const Type *t = v->type;
	const Value *same = programs_same(g->model, v);
	const Slot *old = same ? slot_of(g->model->main->plan, same) : NULL;
	s->v = v;
	s->id = old ? old->id : (*next)++;
	s->ndim = t->ndim;
	s->keep = keep_of(g, v);
	s->average = s->keep == KEEP_STATE && text_ends(v->name, ".ema");
	s->store = s;
	s->copies = 1;
	for (int a = 0; a < t->ndim; a++)
		s->dim[a] = t->dim[a];
	Form f = sbp_form(v, v->sbp, v->place->mesh);
	s->form = find_form(g, p, &f);
	if (s->form < 0) {
		fail_at(EXIT_LIMIT, v->loc, "%s is too large: %s", v->name, type_text(t));
		return -1;
	}
	size_t bytes = tensor_bytes(kernel_stored(t->elem), p->forms->most[s->form]);
	if (bytes > (size_t)INT64_MAX / 4) {
		fail_at(EXIT_LIMIT, v->loc, "%s is too large: %s", v->name, type_text(t));
		return -1;
	}
	s->bytes = (int64_t)bytes;
	p->slot[v->id] = s;
	return 0;
}

/* Drops results that nothing reads, except the first result, and those of a variadic list, whose order matters. */
static void drop_unused(Graph *g)
{
	int *uses = graph_uses(g, g->scratch);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 1; k < g->node[i]->nout && k < g->node[i]->row->schema->nout; k++)
			if (g->node[i]->out[k] && !g->node[i]->row->schema->out[k].variadic &&
				!uses[g->node[i]->out[k]->id] && !g->node[i]->out[k]->into)
				g->node[i]->out[k] = NULL;
}

/* Whether two ranks do the same work: their shards have equal lengths, and the same halo when windows reach over their
 * edges. */
static bool same_work(const Plan *p, int a, int b)
{
	const Form *last = NULL;
	for (int i = 0, x = -1, y = -1; i < p->forms->n; i++) {
		const Form *f = &p->forms->form[i];
		if (!last || f->rank != last->rank || f->first != last->first || form_nrank(f) != form_nrank(last)) {
			x = form_index(f, a);
			y = form_index(f, b);
		}
		last = f;
		int64_t la[FORM_AXES], lb[FORM_AXES];
		if ((x < 0) != (y < 0))
			return false;
		if (x < 0)
			continue;
		form_lengths(f, x, la);
		form_lengths(f, y, lb);
		if (memcmp(la, lb, (size_t)f->naxis * sizeof *la))
			return false;
		for (int k = 0; k < f->ndim; k++) {
			FormEdge ea = form_edge(f, x, k), eb = form_edge(f, y, k);
			if (memcmp(&ea, &eb, sizeof ea))
				return false;
		}
	}
	return true;
}

void project_roles(Graph *g)
{
	Plan *p = g->model->plan;
	p->nrole = 0;
	p->role_of = arena_array(g->arena, int, p->world->nrank);
	for (int r = 0; r < p->world->nrank; r++) {
		int k = 0;
		while (k < p->nrole && !same_work(p, p->role[k].rank[0], r))
			k++;
		if (k == p->nrole) {
			Role role = { .id = k };
			arena_push(g->arena, p->role, p->nrole, role);
		}
		p->role_of[r] = k;
		arena_push(g->arena, p->role[k].rank, p->role[k].nrank, r);
	}
}

static bool cut_along(const Value *v, int axis)
{
	for (int i = 0; v->sbp && v->place && i < v->place->mesh->ndim; i++)
		if (v->place->mesh->dim[i] > 1 && v->sbp[i].kind == SBP_S && v->sbp[i].axis == axis)
			return true;
	return false;
}

/* Whether an operand or result is split along an axis whose whole length the kernel of n relies on. */
static bool miscounts(Node *n)
{
	if (kernel_counts(n) || n->row->random)
		return false;
	Arena tmp = { 0 };
	const FactorRule *r = factor_rule(n, &tmp);
	uint64_t counted = r ? r->runs | r->counted : 0;
	bool bad = false;
	for (int i = 0; counted && i < n->nin + n->nout; i++) {
		const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		const int *row = i < n->nin ? r->in[i] : r->out[i - n->nin];
		for (int a = 0; row && v && a < v->type->ndim; a++)
			bad |= row[a] >= 0 && row[a] < 64 && (counted >> row[a] & 1) && cut_along(v, a);
	}
	arena_free(&tmp);
	return bad;
}

static bool can_run(Node *n, Target t)
{
	if (!miscounts(n))
		return kernel_can(n, t);
	err_at(n->loc, "this back end has no kernel for %s of a shard of the axis that it counts along", n->op);
	return false;
}

/* Whether there is a kernel for every node.  An operator of one source line is reported once, together with its
 * gradient. */
static bool all_can(Graph *g)
{
	Map reported;
	bool ok = true;
	map_init(&reported, g->scratch);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		Name key = name_fmt("%s@%u:%llu", n->op, n->loc.file, (unsigned long long)n->loc.off);
		if (map_get(&reported, key) || can_run(n, g->model->plan->main->cuda ? TARGET_CUDA : TARGET_C))
			continue;
		map_put(&reported, key, n);
		ok = false;
	}
	return ok;
}

int project_run(Graph *g)
{
	Plan *p = g->model->plan;
	Plan *first = g->model->main ? g->model->main->plan : p;
	int bad = 0, *next = &first->next;
	Lives lives = { arena_array(g->scratch, int, g->nvalue + 1), arena_array(g->scratch, int, g->nvalue + 1),
		arena_array(g->scratch, bool, g->nvalue + 1) };
	drop_unused(g);
	graph_lives(g, lives.last, lives.until);
	for (int i = 0; i < g->nnode && p->stages; i++)
		if (kernel_transfer(g->node[i]) && g->node[i]->in[0]->place->mesh != g->node[i]->out[0]->place->mesh)
			lives.sent[g->node[i]->in[0]->id] = true;
	if (!all_can(g))
		return -1;
	if (p == first)
		p->forms = arena_new(g->arena, Forms);
	p->forms = first->forms;
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
			if (n->in[k] && kernel_reads(n, k))
				bad |= hold(g, p, n->in[k], next);
		for (int k = 0; k < n->nout; k++)
			bad |= hold(g, p, n->out[k], next);
	}
	for (int i = 0; i < g->nout; i++)
		bad |= hold(g, p, g->out[i], next);
	for (int i = 0; i < g->nnode && !bad; i++)
		if (is_view(p, g->node[i], &lives)) {
			Slot *s = slot_of(p, g->node[i]->out[0]);
			s->view = slot_of(p, g->node[i]->in[0]);
			s->store = s->view->store;
			s->keep = s->view->keep;
		}
	for (int i = 0; i < g->nvalue && !bad; i++) {
		Slot *s = p->slot[i];
		for (Value *v = s ? s->v->into : NULL; v; v = v->into)
			if (slot_of(p, v))
				s->store = slot_of(p, v)->store;
	}
	return bad ? -1 : 0;
}
