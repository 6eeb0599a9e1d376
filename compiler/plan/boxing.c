/* Boxing: inserts a transfer wherever producer and consumer of a value need different SBPs or placements.
 *
 * Each node runs by the cheapest signature for the SBP of its results.  An operand with another SBP or placement passes
 * through sbpcc.Boxing nodes first: by the quickest route (boxing_route.c), from the value itself or from an existing
 * copy of it.  A node whose result is pinned to an SBP that no signature gives computes it in another one, which is
 * then boxed.  Running the pass again inserts nothing, so a dump made after it is stable.
 *
 *   - Consumers that need the same SBP share one transfer.  But a parameter that is gathered for the forward pass is
 *     gathered again for the backward pass, because a split parameter is meant to free its memory in between.
 *   - A cast to a wider type is done after a transfer of values that are not partial: fewer bytes are moved, the
 *     numbers are the same.
 *   - The location of a transfer is that of the consumer (for a result: of its storage); the location of the producer
 *     is found through its operands (boxing_made). */
#include "plan/plan.h"

#include <string.h>

static bool is_box(const Node *n)
{
	return n && n->row && kernel_transfer(n);
}

static Form form_of(const Value *v)
{
	return sbp_form(v, v->sbp, v->place->mesh);
}

const char *boxing_how(const Node *n)
{
	Form from = form_of(n->in[0]), to = form_of(n->out[0]);
	const char *how = transfer_of(&from, &to)->how;
	return strcmp(how, "none") ? how : "slice";             /* a copy */
}

const char *boxing_made(const Node *n)
{
	const Value *v = n->in[0];
	while (is_box(v->def))
		v = v->def->in[0];
	if (!v->def)
		return loc_text(v->loc);
	return v->def->from ? v->def->from : loc_text(v->def->loc);
}

static bool lies_as(const Value *v, const Sbp *to, const Placement *place)
{
	return v->place->mesh == place->mesh && sbp_equal(v->sbp, to, place->mesh->ndim);
}

/* Along a mesh axis of one rank every value is B.  Values share SBP arrays, so a changed one is copied. */
static void simplify(Graph *g, Value *v)
{
	for (int k = 0; v->sbp && k < v->place->mesh->ndim; k++) {
		if (v->place->mesh->dim[k] > 1 || v->sbp[k].kind == SBP_B)
			continue;
		Sbp *own = arena_array(g->arena, Sbp, v->place->mesh->ndim);
		memcpy(own, v->sbp, sizeof *own * (size_t)v->place->mesh->ndim);
		own[k] = (Sbp){ .kind = SBP_B };
		v->sbp = own;
	}
}

/* A cut of a form as an SBP entry: the factor of an axis by its number. */
static Sbp written(const Value *v, const FormCut *c)
{
	static const SbpKind kind[] = { [FORM_S] = SBP_S, [FORM_B] = SBP_B, [FORM_P] = SBP_P };
	Sbp s = { .kind = kind[c->kind], .red = (Reduce)c->reduce };
	if (s.kind != SBP_S)
		return s;
	s.axis = c->axis;
	s.reach = c->reach;
	if (c->inner == 1 && c->len == v->type->dim[c->axis])
		return s;
	const struct FactorAxis *x = &v->factors->axis[c->axis];
	int64_t inner = 1;
	for (int i = x->n - 1; i >= 0; inner *= v->graph->factor[x->factor[i--]])
		if (inner == c->inner && v->graph->factor[x->factor[i]] == c->len)
			s.leaf = 1 + i;
	return s;
}

/* ---- one transfer ---- */

typedef struct Cause { Loc loc; Name from; const Node *by; } Cause;     /* by: the consumer; loc, from: of it */

/* The suffix of the name of a copy. */
static const char *suffix(const Sbp *s, int ndim)
{
	const char *name = "whole";
	for (int k = 0; k < ndim; k++)
		if (s[k].kind == SBP_P)
			return "term";
		else if (s[k].kind == SBP_S)
			name = "shard";
	return name;
}

/* A new value with the type of v, in another SBP or placement. */
static Value *new_copy(Graph *g, const Value *v, const Sbp *s, Placement *place, Loc loc, const char *name)
{
	Value *out = graph_fresh(g, name_fmt("%s.%s", v->name, name));
	int ndim = place->mesh->ndim;
	out->loc = loc;
	out->type = v->type;
	out->factors = v->factors;
	out->place = place;
	out->sbp = arena_array(g->arena, Sbp, ndim);
	memcpy(out->sbp, s, (size_t)ndim * sizeof *s);
	return out;
}

/* In a pipeline, whether a transfer between stages moves the same in every micro-batch: it is done once per step. */
static bool every_step(const Graph *g, const Value *in, const Value *out)
{
	const Node *d = in->def;
	while (d && kernel_transfer(d) && !microbatch_begins(d) && !microbatch_updates(d) && d->in[0]->def)
		d = d->in[0]->def;
	return g->model->plan->stages && in->place->mesh != out->place->mesh &&
		(d ? microbatch_begins(d) || (kernel_transfer(d) && d->in[0]->param) : in->param);
}

static void inherit_stage(Graph *g, Node *n, const Node *by)
{
	const Annot *a = annot_find(by->annot, "stage");
	n->stage = by->stage;
	if (!a)
		return;
	Annot one = *a;
	one.next = NULL;
	annot_add(&n->annot, annot_copy(g->arena, &one));
}

static void put(Graph *g, Node *n, Value *in, Value *out, const Cause *c)
{
	node_in(n, in);
	node_out(n, out);
	n->place = out->place;
	placement_note(g, n);
	n->from = c->from;
	if (every_step(g, in, out) && !microbatch_updates(c->by))
		microbatch_begin(n);
	else
		microbatch_inherit(n, c->by);
	if (n->place->mesh == c->by->place->mesh)
		inherit_stage(g, n, c->by);
	if (inline_append(g, n))
		die("boxing %s", in->name);
}

/* One transfer as a node; result: the value it gives; NULL: a new one. */
static Value *hop(Graph *g, Value *v, const Sbp *to, Placement *place, const Cause *c, Value *result)
{
	Node *n = node_new(g, name_of("sbpcc"), name_of("Boxing"), c->loc);
	Value *out = result ? result : new_copy(g, v, to, place, c->loc, suffix(to, place->mesh->ndim));
	Form f = form_of(v), t = sbp_form(v, to, place->mesh);
	const char *how = transfer_of(&f, &t)->how;
	node_attr_add(n, name_of("how"), AT_STRING)->u.s = name_of(strcmp(how, "none") ? how : "slice");
	put(g, n, v, out, c);
	return out;
}

static int64_t elem_bytes(const Value *v)
{
	int bits = dtype_bits(v->type->elem);
	return bits < 8 ? 1 : bits / 8;
}

static const BoxingRoute *way(const Value *v, const Sbp *to, const Placement *place)
{
	Form f = form_of(v), t = sbp_form(v, to, place->mesh);
	return boxing_route_find(&f, &t, elem_bytes(v));
}

/* The placement of an intermediate form: that of one of the two ends. */
static Placement *placement_of(const Form *f, Placement *from, Placement *to)
{
	const Mesh *m = from->mesh;
	bool same = f->ndim == m->ndim && f->first == m->first && f->rank == m->rank;
	for (int k = 0; k < f->ndim && same; k++)
		same = f->mesh[k] == m->dim[k];
	return same ? from : to;
}

/* ---- copies of a value ---- */

typedef struct Copy { Value *v; bool back; int stage; struct Copy *next; } Copy;     /* stage: of its first reader */
typedef struct Boxing { Graph *g; Map copies; } Boxing;  /* value -> Copy */

static bool backward(const Node *n)
{
	return annot_find(n->annot, "backward") != NULL;
}

/* A parameter, also cast to another type. */
static bool parameter(const Value *v)
{
	while (v->def && v->def->row->carries && !v->def->row->moves && v->def->nin == 1)
		v = v->def->in[0];
	return v->init && v->param;
}

/* In a pipeline, what a rank receives for one of its stages is not read by the others: their order differs. */
static bool may_share(const Value *v, const Copy *c, const Node *by)
{
	if (v->graph->model->plan->stages && c->v->place->mesh != v->place->mesh && c->stage != by->stage &&
		!(c->v->def && microbatch_begins(c->v->def)) && !microbatch_updates(by))
		return false;
	return !parameter(v) || c->back == backward(by) || (c->v->def && microbatch_begins(c->v->def));
}

static Value *copy_as(Boxing *b, const Value *v, const Sbp *to, const Placement *place, const Node *by)
{
	for (const Copy *c = map_get(&b->copies, v); c; c = c->next)
		if (may_share(v, c, by) && lies_as(c->v, to, place))
			return c->v;
	return NULL;
}

static Value *remember(Boxing *b, const Value *v, Value *copy, const Node *by)
{
	Copy *c = arena_new(b->g->scratch, Copy);
	*c = (Copy){ copy, backward(by), by->stage, map_get(&b->copies, v) };
	map_put(&b->copies, v, c);
	return copy;
}

/* The value that v is cast from, when it is narrower, has the same SBP and is not partial. */
static Value *narrow(const Value *v)
{
	const Node *n = v->def;
	Value *x = n && n->row->carries && !n->row->moves && n->nin == 1 ? n->in[0] : NULL;
	if (!x || !dtype_is_float(x->type->elem) || !dtype_is_float(v->type->elem))
		return NULL;
	if (dtype_bits(x->type->elem) >= dtype_bits(v->type->elem) || !lies_as(x, v->sbp, v->place))
		return NULL;
	Form f = form_of(v);
	return form_terms(&f) == 1 ? x : NULL;
}

static bool moves_something(const Value *v, const BoxingRoute *r)
{
	Form at = form_of(v);
	for (int i = 0; i < r->n; at = r->form[i++])
		if (!transfer_of(&at, &r->form[i])->local)
			return true;
	return false;
}

/* Whether its shards overlap: such a copy is only read, never the source of a transfer. */
static bool overlaps(const Value *v)
{
	for (int k = 0; k < v->place->mesh->ndim; k++)
		if (v->sbp[k].reach)
			return true;
	return false;
}

/* In a pipeline, whether a copy is on a third stage: values are not passed on from stage to stage. */
static bool elsewhere(const Boxing *b, const Value *v, const Value *copy, const Placement *to)
{
	return b->g->model->plan->stages && copy->place->mesh != v->place->mesh && copy->place->mesh != to->mesh;
}

/* The value in this SBP and placement: itself, an existing copy, or the end of a new route. */
static Value *boxed(Boxing *b, Value *v, const Sbp *to, Placement *place, const Cause *c)
{
	Value *from = lies_as(v, to, place) ? v : copy_as(b, v, to, place, c->by), *x;
	if (from)
		return from;
	from = v;
	const BoxingRoute *r = way(from, to, place);
	for (const Copy *k = map_get(&b->copies, v); k; k = k->next) {
		if (!may_share(v, k, c->by) || overlaps(k->v) || elsewhere(b, v, k->v, place))
			continue;
		const BoxingRoute *other = way(k->v, to, place);
		if (other->seconds < r->seconds) {
			from = k->v;
			r = other;
		}
	}
	if (from == v && (x = narrow(v)) && moves_something(v, r)) {
		Value *moved = boxed(b, x, to, place, c);
		Value *out = new_copy(b->g, v, to, place, c->loc, suffix(to, place->mesh->ndim));
		Node *cast = node_new(b->g, v->def->domain, v->def->op, c->loc);
		for (int i = 0; i < v->def->nattr; i++)
			arena_push(b->g->arena, cast->attr, cast->nattr, v->def->attr[i]);
		put(b->g, cast, moved, out, c);
		v->def->mark = 1;
		return remember(b, v, out, c->by);
	}
	Placement *start = from->place;
	for (int i = 0; i < r->n; i++) {
		Placement *at = placement_of(&r->form[i], start, place);
		Sbp s[MESH_DIMS];
		for (int k = 0; k < at->mesh->ndim; k++)
			s[k] = i + 1 < r->n ? written(v, &r->form[i].cut[k]) : to[k];
		Value *have = copy_as(b, v, s, at, c->by);
		from = have ? have : remember(b, v, hop(b->g, from, s, at, c, NULL), c->by);
	}
	return from;
}

/* Boxes a result that its node computes in another SBP than the value has. */
static void box_result(Boxing *b, Node *n, int i, const Sbp *from)
{
	Value *v = n->out[i], *raw = new_copy(b->g, v, from, n->place, v->loc, "raw");
	Cause c = { n->loc, n->from, n };        /* of the node, because a dump keeps no location of values */
	raw->def = n;
	raw->defidx = i;
	n->out[i] = raw;
	v->def = NULL;
	const BoxingRoute *r = way(raw, v->sbp, v->place);
	for (int k = 0; k + 1 < r->n; k++) {
		Placement *at = placement_of(&r->form[k], n->place, v->place);
		Sbp s[MESH_DIMS];
		for (int m = 0; m < at->mesh->ndim; m++)
			s[m] = written(v, &r->form[k].cut[m]);
		raw = hop(b->g, raw, s, at, &c, NULL);
	}
	hop(b->g, raw, v->sbp, v->place, &c, v);
}

/* Removes casts that are now done after a transfer and have no other reader. */
static void drop_casts(Graph *g)
{
	const int *uses = graph_uses(g, g->scratch);
	int n = 0;
	for (int i = 0; i < g->nnode; i++) {
		Node *x = g->node[i];
		if (x->mark && !uses[x->out[0]->id] && !x->out[0]->into)
			x->out[0]->def = NULL;
		else
			g->node[n++] = x;
	}
	g->nnode = n;
}

static void box_node(Boxing *b, Node *n)
{
	Graph *g = b->g;
	Placement *place = n->place;
	const NdSig *s = is_box(n) ? NULL : cheapest_find(n, place->mesh, false, g->scratch);
	Cause c = { n->loc, n->from, n };
	n->mark = 0;
	for (int k = 0; s && k < n->nin; k++)
		if (n->in[k] && kernel_reads(n, k))
			n->in[k] = boxed(b, n->in[k], s->in[k], place, &c);
	arena_push(g->arena, g->node, g->nnode, n);
	if (is_box(n))                                  /* read from a dump: its copy serves other consumers, too */
		remember(b, n->in[0], n->out[0], n);
	for (int k = 0; s && k < n->nout; k++)
		if (n->out[k] && !lies_as(n->out[k], s->out[k], place))
			box_result(b, n, k, s->out[k]);
}

int boxing_run(Graph *g)
{
	Boxing b = { .g = g };
	int nold = g->nnode;
	Node **old = g->node;
	map_init(&b.copies, g->scratch);
	for (int i = 0; i < g->nvalue; i++)
		simplify(g, g->value[i]);
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i < nold; i++)
		box_node(&b, old[i]);
	drop_casts(g);
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->def && g->value[i]->sbp)
			sbp_note(g, g->value[i], g->value[i]->place->mesh);
	return 0;
}
