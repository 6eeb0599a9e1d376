/* Folding: what depends on constants only becomes a constant, what does nothing disappears, what is computed twice is
 * computed once.
 *
 * Inference has already evaluated small nodes on constants (ir/infer.c) and knows the contents of shape vectors with
 * their symbols, so that the Shape, Gather, Unsqueeze, Concat chains of exporters end here: a Reshape whose target is
 * known but for one symbol gets a constant target with -1 in its place.  Three rules then run over the nodes in order:
 *
 *   constant    all results known: they become initialisers
 *   copy        Identity, Cast to the same type, Reshape or Expand to the same shape, Transpose that moves nothing,
 *               Slice of everything, a Reshape of a Reshape, a Transpose of a Transpose
 *   same        an equal node with equal operands and attributes stands before it
 *
 * Each node is visited once; forwarding is a table from value to value, so the pass is linear. */
#include "compiler.h"

#include <string.h>

typedef struct Fold { Graph *g; Value **by; int nby; Map seen; } Fold;      /* by[id]: the value to use instead */

static Value *now(Fold *f, Value *v)
{
	while (v && v->graph == f->g && v->id < f->nby && f->by[v->id])
		v = f->by[v->id];
	return v;
}

static void forward(Fold *f, Value *old, Value *to)
{
	if (old->id < f->nby)
		f->by[old->id] = to;
}

static void become_constant(Graph *g, Value *v)
{
	v->def = NULL;
	if (v->init)
		return;
	v->init = true;
	arena_push(g->arena, g->init, g->ninit, v);
}

/* A shape whose every entry became known is data. */
static void settle_contents(Value *v)
{
	if (v->data || v->param || v->nelem < 0 || !v->type || v->type->elem != DT_INT64 || v->type->rank < 0 || v->type->rank > 1)
		return;
	for (int i = 0; i < v->nelem; i++)
		if (!dim_known(v->elem[i]))
			return;
	int64_t n = v->nelem;
	v->data = tensor_new(v->graph->arena, DT_INT64, v->type->rank, &n);
	for (int i = 0; i < v->nelem; i++)
		tensor_set_int(v->data, i, v->elem[i]);
}

static bool all_constant(const Node *n)
{
	bool any = false;

	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			settle_contents(n->out[i]);
			if (!n->out[i]->data || n->out[i]->param)
				return false;
			any = true;
		}
	return any;
}

static bool same_type(const Value *a, const Value *b)
{
	if (!a->type || !b->type || a->type->kind != TY_TENSOR || a->type->elem != b->type->elem || a->type->rank != b->type->rank || a->type->rank < 0)
		return false;
	for (int i = 0; i < a->type->rank; i++)
		if (!dim_same(a->type->dim[i], b->type->dim[i]))
			return false;
	return true;
}

static bool is(const Node *n, const char *op)
{
	return n && !*n->domain && !strcmp(n->op, op);
}

static bool still_perm(const Node *n)
{
	int count;
	const int64_t *perm = attr_ints(n, "perm", &count);

	for (int i = 0; i < count; i++)
		if (perm[i] != i)
			return false;
	return count > 0;
}

/* A slice with positive steps that keeps every length takes everything. */
static bool forward_slice(const Node *n)
{
	const Tensor *step = in_const(n, 4);

	for (int64_t i = 0; step && i < tensor_elements(step); i++)
		if (tensor_int(step, i) < 0)
			return false;
	return n->nin < 5 || !n->in[4] || step;
}

/* The operand that the node's only result equals, or NULL. */
static Value *copy_of(const Node *n)
{
	if (n->nin < 1 || n->nout < 1 || !n->in[0] || !n->out[0] || n->row->random)
		return NULL;
	for (int i = 1; i < n->nout; i++)
		if (n->out[i])
			return NULL;
	if (is(n, "Identity"))
		return n->in[0];
	if (!same_type(n->in[0], n->out[0]))
		return NULL;
	if (is(n, "Cast") || is(n, "CastLike") || is(n, "Reshape") || is(n, "Expand") || is(n, "Squeeze") || is(n, "Unsqueeze") || is(n, "Flatten") ||
	    (is(n, "Transpose") && still_perm(n)) || (is(n, "Slice") && forward_slice(n)) ||
	    (is(n, "Concat") && n->nin == 1))
		return n->in[0];
	return NULL;
}

/* Two movements in a row are one: a Reshape does not care for the shape before it, permutations compose. */
static void shorten(Node *n)
{
	Node *p = n->nin && n->in[0] ? n->in[0]->def : NULL;

	if (!p || n->in[0]->graph != p->graph || p->nin < 1 || !p->in[0])
		return;
	bool moves = is(p, "Reshape") || is(p, "Squeeze") || is(p, "Unsqueeze") || is(p, "Flatten");
	if (is(n, "Reshape") && moves && in_const(n, 1)) {
		const Tensor *t = in_const(n, 1);

		for (int64_t i = 0; i < tensor_elements(t); i++)
			if (tensor_int(t, i) == 0)
				return;         /* 0 copies a length of what stood before it */
		n->in[0] = p->in[0];
	} else if (is(n, "Transpose") && is(p, "Transpose")) {
		int a, b;
		const int64_t *outer = attr_ints(n, "perm", &a), *inner = attr_ints(p, "perm", &b);
		Attr *at = node_attr(n, "perm");

		if (!a || a != b || !at)
			return;
		int64_t *perm = arena_array(n->graph->arena, int64_t, a);
		for (int i = 0; i < a; i++)
			perm[i] = inner[outer[i]];
		at->u.is = perm;
		n->in[0] = p->in[0];
	}
}

/* A Reshape whose target is known up to one symbol: constant, with -1 for the symbol. */
static void fix_target(Node *n)
{
	Dim want[RANK_MAX];
	int unknown = 0, count;

	if (!is(n, "Reshape") || n->nin < 2 || !n->in[1] || n->in[1]->data || !n->out[0] || !n->out[0]->type)
		return;
	const Type *t = n->out[0]->type;
	count = t->rank;
	if (count < 0 || count > RANK_MAX || attr_int(n, "allowzero"))
		return;
	for (int i = 0; i < count; i++) {
		want[i] = t->dim[i];
		if (!dim_known(want[i])) {
			want[i] = -1;
			unknown++;
		} else if (want[i] == 0) {
			return;
		}
	}
	if (unknown > 1)
		return;
	n->in[1] = graph_const(n->graph, tensor_ints(n->graph->arena, want, count), "shape");
	n->in[1]->nelem = -1;
}

/* ---- equal nodes ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static bool comparable(const Node *n)
{
	for (int i = 0; i < n->nattr; i++)
		if (n->attr[i].type != AT_INT && n->attr[i].type != AT_FLOAT && n->attr[i].type != AT_STRING && n->attr[i].type != AT_INTS)
			return false;
	return !n->row->random && !n->annot && n->nout > 0;
}

static uint64_t node_hash(const Node *n)
{
	uint64_t h = mix((uint64_t)(uintptr_t)n->op, (uint64_t)(uintptr_t)n->domain);

	for (int i = 0; i < n->nin; i++)
		h = mix(h, (uint64_t)(uintptr_t)n->in[i]);
	for (int i = 0; i < n->nattr; i++) {
		h = mix(h, (uint64_t)(uintptr_t)n->attr[i].name);
		if (n->attr[i].type == AT_INT)
			h = mix(h, (uint64_t)n->attr[i].u.i);
		for (int k = 0; n->attr[i].type == AT_INTS && k < n->attr[i].n; k++)
			h = mix(h, (uint64_t)n->attr[i].u.is[k]);
	}
	return h | 1;
}

static bool attr_equal(const Attr *a, const Attr *b)
{
	if (a->name != b->name || a->type != b->type)
		return false;
	switch (a->type) {
	case AT_INT: return a->u.i == b->u.i;
	case AT_FLOAT: return a->u.f == b->u.f;
	case AT_STRING: return a->u.s == b->u.s;
	default: return a->n == b->n && (!a->n || !memcmp(a->u.is, b->u.is, sizeof *a->u.is * (size_t)a->n));
	}
}

static bool node_equal(const Node *a, const Node *b)
{
	if (a->op != b->op || a->domain != b->domain || a->nin != b->nin || a->nattr != b->nattr || a->nout > b->nout || a->stage != b->stage)
		return false;
	for (int i = 0; i < a->nin; i++)
		if (a->in[i] != b->in[i])
			return false;
	for (int i = 0; i < a->nattr; i++)
		if (!attr_equal(&a->attr[i], &b->attr[i]))
			return false;
	for (int i = 0; i < a->nout; i++)
		if (a->out[i] && !b->out[i])
			return false;
	return true;
}

typedef struct Seen { Node *n; struct Seen *next; } Seen;

static Node *stood_before(Fold *f, Node *n)
{
	const void *key = (const void *)(uintptr_t)node_hash(n);
	Seen *list = map_get(&f->seen, key);

	for (Seen *s = list; s; s = s->next)
		if (node_equal(n, s->n))
			return s->n;
	Seen *s = arena_new(f->g->scratch, Seen);
	*s = (Seen){ n, list };
	map_put(&f->seen, key, s);
	return NULL;
}

/* Small equal constants are one, so that equal nodes that use them are seen as equal. */
static void join_constants(Fold *f)
{
	Map seen;

	map_init(&seen, f->g->scratch);
	for (int i = 0; i < f->g->ninit; i++) {
		Value *v = f->g->init[i];
		uint64_t h = 1;

		if (!v->data || v->param || v->input || v->output || v->annot || v->data->bytes > 64 || v->data->dtype == DT_STRING || tensor_load(v->data) < 0)
			continue;
		h = mix(h, (uint64_t)v->data->dtype * 64 + (uint64_t)v->data->rank);
		for (size_t k = 0; k < v->data->bytes; k++)
			h = mix(h, ((const uint8_t *)v->data->data)[k]);
		const void *key = (const void *)(uintptr_t)(h | 1);
		Value *first = map_get(&seen, key);
		if (!first)
			map_put(&seen, key, v);
		else if (first->id < f->nby && v->id < f->nby && tensor_equal(first->data, v->data))
			forward(f, v, first);
	}
}

static bool removable(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && (n->out[i]->output || n->out[i]->into || n->out[i]->annot))
			return false;
	return true;
}

/* The node goes: what it made has no maker any more. */
static void drop(Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && n->out[i]->def == n)
			n->out[i]->def = NULL;
}

int fold_run(Graph *g)
{
	Fold f = { .g = g, .nby = g->nvalue };
	int keep = 0, nnode = g->nnode;

	f.by = arena_array(g->scratch, Value *, g->nvalue + 1);
	map_init(&f.seen, g->scratch);
	for (int i = 0; i < nnode; i++)
		if (all_constant(g->node[i]))
			for (int k = 0; k < g->node[i]->nout; k++)
				if (g->node[i]->out[k])
					become_constant(g, g->node[i]->out[k]);
	join_constants(&f);
	for (int i = 0; i < nnode; i++) {
		Node *n = g->node[i], *twin;
		Value *from;

		if (all_constant(n)) {
			drop(n);
			continue;
		}
		for (int k = 0; k < n->nin; k++)
			n->in[k] = now(&f, n->in[k]);
		shorten(n);
		fix_target(n);
		if (removable(n) && (from = copy_of(n)) != NULL) {
			forward(&f, n->out[0], from);
			drop(n);
			continue;
		}
		if (removable(n) && comparable(n) && (twin = stood_before(&f, n)) != NULL) {
			for (int k = 0; k < n->nout; k++)
				if (n->out[k])
					forward(&f, n->out[k], twin->out[k]);
			drop(n);
			continue;
		}
		g->node[keep++] = n;
	}
	g->nnode = keep;
	for (int i = 0; i < g->nout; i++)
		g->out[i] = now(&f, g->out[i]);
	graph_sweep(g);
	return 0;
}
