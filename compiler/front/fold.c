/* Folding: values that depend on constants only become constants, nodes that do nothing are removed, equal nodes are
 * computed once.
 *
 * Inference has already evaluated small nodes on constants (ir/apply/infer.c) and knows the contents of shape vectors
 * with their symbols, so that the Shape, Gather, Unsqueeze, Concat chains of exporters end here: a Reshape whose target
 * can be written with numbers, 0 (as before) and one -1 gets that as a constant.  Then, over the nodes in order:
 *
 *   constant    all results are known: they become initialisers
 *   plain       one notation where there are several: axes from 0 on in ascending order, a bias of zeros left out, a
 *               reduced axis kept instead of put back, GatherND of rows as Gather
 *   empty       tensors without elements are constants; Concat and Split lose empty operands and results
 *   shorten     a Reshape of a Reshape, a Transpose of a Transpose, a Cast there and back
 *   copy        Identity, Cast to the same type, Reshape or Expand to the same shape, Transpose that moves nothing,
 *               Slice of everything, Dropout that drops nothing, times 1, plus 0
 *   same        an equal node with equal operands and attributes stands before it, or a vector with the same contents,
 *               symbols included
 *
 * An annotated value is kept as it is.  With --deterministic=any-ranks a pin does not keep a value that a gradient
 * passes through: the terms of that gradient would be added in a different order, and no pin may change the bits.  The
 * remaining value takes over the annotation.
 *
 * Each node is visited once; forwarding is a table from value to value, so the pass is linear. */
#include "front/front.h"

#include <math.h>
#include <string.h>

typedef struct Fold {
	Graph *g;
	Value **by; int nby;            /* by[id]: the value to use instead */
	Map seen;                       /* nodes by hash */
	Map small;                      /* small constants by hash */
	Map contents;                   /* vectors of lengths by hash of their contents, symbols included */
	bool bad;                       /* an error was reported */
	int *uses;                      /* by id, before any node was removed */
	bool *trained;                  /* by id: a gradient may pass; NULL unless any-ranks before the backward pass */
	int *last, *until;              /* by id (graph_lives) */
	Value **param, **grad; int ngrad;       /* parameters, and the values that are their gradients */
} Fold;

/* The value to read instead of v. */
static Value *now(Fold *f, Value *v)
{
	while (v && v->graph == f->g && v->id < f->nby && f->by[v->id])
		v = f->by[v->id];
	return v;
}

/* Whether readers of old may read the other value instead: its memory must not be overwritten before. */
static bool outlives(Fold *f, const Value *to, const Value *old)
{
	if (old->id >= f->nby || to->id >= f->nby || to->graph != f->g)
		return true;
	if (f->last[old->id] > f->until[to->id] || f->until[old->id] < f->g->nnode)
		return false;
	f->last[to->id] = f->last[old->id] > f->last[to->id] ? f->last[old->id] : f->last[to->id];
	return true;
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

static bool all_constant(const Node *n)
{
	bool any = false;

	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			if (!n->out[i]->data || n->out[i]->param)
				return false;
			any = true;
		}
	return any;
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

/* Whether a slice has positive steps only: then, if it keeps every length, it takes everything. */
static bool forward_slice(const Node *n)
{
	const Tensor *step = operand_const(n, 4);

	for (int64_t i = 0; step && i < tensor_elements(step); i++)
		if (tensor_int(step, i) < 0)
			return false;
	return n->nin < 5 || !n->in[4] || step;
}

/* Whether an operand is a constant all of whose elements are v. */
static bool filled_with(const Node *n, int i, double v)
{
	const Tensor *t = operand_const(n, i);
	int64_t count = t && !whole_batch_differs(n->graph, n->in[i]) ? tensor_elements(t) : 0;

	for (int64_t k = 0; k < count; k++)
		if (tensor_get(t, k) != v)
			return false;
	return count > 0;
}

static bool drops_nothing(const Node *n)
{
	if (!node_is(n, "Dropout") || n->row->since < 12)
		return false;
	const Tensor *mode = operand_const(n, 2);
	return n->nin < 3 || !n->in[2] || (mode && !tensor_int(mode, 0)) || filled_with(n, 1, 0);
}

/* The operand that arithmetic with a neutral element leaves unchanged; NULL. */
static Value *unchanged(const Node *n)
{
	bool mul = node_is(n, "Mul"), add = node_is(n, "Add"), div = node_is(n, "Div"), sub = node_is(n, "Sub");

	if (n->nin != 2 || !n->in[1] || !(mul || add || div || sub))
		return NULL;
	double neutral = mul || div ? 1 : 0;
	if (filled_with(n, 1, neutral) && lift_same_type(n->in[0], n->out[0]))
		return n->in[0];
	if ((mul || add) && filled_with(n, 0, neutral) && lift_same_type(n->in[1], n->out[0]))
		return n->in[1];
	return NULL;
}

/* Whether an operand has no elements. */
static bool empty(const Node *n, int i)
{
	const Type *t = operand_type(n, i);

	return t && t->kind == TY_TENSOR && type_elements(t) == 0;
}

/* Whether a node whose operand and result have the same type copies it. */
static bool copies(const Node *n)
{
	static const char *const list[] = {
		"Cast", "CastLike", "Reshape", "Expand", "Squeeze", "Unsqueeze", "Flatten", "Split", NULL,
	};

	for (int i = 0; list[i]; i++)
		if (node_is(n, list[i]))
			return true;
	if (node_is(n, "Transpose"))
		return still_perm(n);
	if (node_is(n, "Slice"))
		return forward_slice(n);
	if (node_is(n, "Concat"))
		return n->nin == 1;
	return (node_is(n, "ScatterND") || node_is(n, "ScatterElements")) && empty(n, 1);
}

/* The operand that the node's only result equals, or NULL. */
static Value *copy_of(const Node *n)
{
	if (n->nin < 1 || n->nout < 1 || !n->in[0] || !n->out[0])
		return NULL;
	for (int i = 1; i < n->nout; i++)
		if (n->out[i])
			return NULL;
	if (node_is(n, "Identity") || drops_nothing(n))
		return n->in[0];
	if (n->row->random || n->row->moves)
		return NULL;
	Value *same = unchanged(n);
	if (same)
		return same;
	if (!lift_same_type(n->in[0], n->out[0]) || whole_batch_differ(n->graph, n->in[0], n->out[0]))
		return NULL;
	return copies(n) ? n->in[0] : NULL;
}

/* ---- one notation ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static const void *tensor_key(const Tensor *t)
{
	uint64_t h = mix(1, (uint64_t)t->dtype * 64 + (uint64_t)t->ndim);

	for (size_t k = 0; k < t->bytes; k += 8) {
		uint64_t word = 0;

		memcpy(&word, (const uint8_t *)t->data + k, t->bytes - k < 8 ? t->bytes - k : 8);
		h = mix(h, word);
	}
	return (const void *)(uintptr_t)(h | 1);
}

/* A constant vector: an existing one, or a new one. */
static Value *ints(Fold *f, const int64_t *v, int count, const char *hint)
{
	Tensor *t = tensor_ints(f->g->arena, v, count);
	Value *old = map_get(&f->small, tensor_key(t));

	if (old && tensor_equal(old->data, t))
		return old;
	Value *fresh = graph_const(f->g, t, hint);
	if (!old)
		map_put(&f->small, tensor_key(t), fresh);
	return fresh;
}

/* The target that turns a value of type from into one of type to: numbers, 0 for a length that stays, -1 once. */
static bool target_of(const Type *from, const Type *to, int64_t *want)
{
	int unknown = 0;

	if (!from || !to || from->ndim < 0 || to->ndim < 0 || to->ndim > NDIM_MAX)
		return false;
	for (int i = 0; i < to->ndim; i++) {
		Dim d = to->dim[i];

		if (dim_known(d)) {
			if (d == 0)
				return false;
			want[i] = d;
		} else if (i < from->ndim && dim_same(d, from->dim[i])) {
			want[i] = 0;
		} else {
			want[i] = -1;
			unknown++;
		}
	}
	return unknown <= 1;
}

/* Makes a Reshape one of `from` with a constant target; false: the target cannot be written as a constant. */
static bool retarget(Fold *f, Node *n, Value *from)
{
	const Tensor *old = operand_const(n, 1);
	int64_t want[NDIM_MAX];
	const Type *to = n->out[0] ? n->out[0]->type : NULL;
	Attr *allow = node_attr(n, "allowzero");

	if (!from->type || !target_of(from->type, to, want))
		return false;
	n->in[0] = from;
	bool equal = old && old->dtype == DT_INT64 && tensor_elements(old) == to->ndim;
	for (int i = 0; equal && i < to->ndim; i++)
		equal = tensor_int(old, i) == want[i];
	if (allow)
		allow->u.i = 0;
	if (!equal)
		n->in[1] = ints(f, want, to->ndim, "shape");
	return true;
}

static bool reshapes(const Node *n)
{
	return node_is(n, "Reshape") || node_is(n, "Squeeze") || node_is(n, "Unsqueeze") || node_is(n, "Flatten");
}

static bool reduces(const Node *n)
{
	static const char *const list[] = { "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", NULL };

	for (int i = 0; n && list[i]; i++)
		if (node_is(n, list[i]))
			return true;
	return false;
}

/* Writes axes from 0 on, in ascending order. */
static void plain_axes(Fold *f, Node *n)
{
	const Tensor *t = operand_const(n, 1);
	int ndim = operand_ndim(n, 0), count = t ? (int)tensor_elements(t) : 0;
	int64_t axis[NDIM_MAX];
	bool changed = false;

	if (ndim < 1 || count < 1 || count > NDIM_MAX)
		return;
	for (int i = 0; i < count; i++) {
		int64_t a = tensor_int(t, i);
		int k = i;

		changed |= a < 0;
		for (a += a < 0 ? ndim : 0; k && axis[k - 1] > a; k--) {
			axis[k] = axis[k - 1];
			changed = true;
		}
		axis[k] = a;
	}
	if (changed)
		n->in[1] = ints(f, axis, count, "axes");
}

/* A reduction whose axes a later node puts back with length 1 keeps them instead. */
static bool keep_axes(Node *n)
{
	Node *p = n->in[0]->def;
	const Type *x, *y = n->out[0] ? n->out[0]->type : NULL;
	const Tensor *t = reduces(p) ? operand_const(p, 1) : NULL;

	if (!t || attr_int(p, "keepdims") || !reshapes(n))
		return false;
	x = operand_type(p, 0);
	if (!x || x->ndim < 0 || !y || y->ndim != x->ndim)
		return false;
	for (int i = 0; i < x->ndim; i++) {
		bool reduced = false;

		for (int64_t k = 0; k < tensor_elements(t); k++)
			reduced |= (tensor_int(t, k) + x->ndim) % x->ndim == i;
		if (!dim_same(y->dim[i], reduced ? 1 : x->dim[i]))
			return false;
	}
	n->op = p->op;
	n->row = p->row;
	n->version = p->version;
	n->in = NULL;
	n->nin = 0;
	n->inloc = NULL;
	n->attr = NULL;
	n->nattr = 0;
	for (int i = 0; i < p->nattr; i++)
		arena_push(n->graph->arena, n->attr, n->nattr, p->attr[i]);
	Attr *keep = node_attr(n, "keepdims");
	(keep ? keep : node_attr_add(n, name_of("keepdims"), AT_INT))->u.i = 1;
	node_in(n, p->in[0]);
	node_in(n, p->in[1]);
	return true;
}

/* GatherND by row numbers with an axis of their own becomes Gather, which takes them without. */
static void plain_gather(Node *n)
{
	Node *p = n->nin > 1 && n->in[1] ? n->in[1]->def : NULL;
	const Tensor *t = p && node_is(p, "Unsqueeze") ? operand_const(p, 1) : NULL;
	int ndim = operand_ndim(n, 1);

	if (!node_is(n, "GatherND") || attr_int(n, "batch_dims") || !t || tensor_elements(t) != 1 || ndim < 1)
		return;
	if (tensor_int(t, 0) != -1 && tensor_int(t, 0) != ndim - 1)
		return;
	n->op = name_of("Gather");
	n->row = op_find(n->domain, n->op, 0);
	n->version = 0;
	n->attr = NULL;
	n->nattr = 0;
	n->in[1] = p->in[0];
}

/* Removes a bias of zeros. */
static void drop_bias(Node *n)
{
	static const char *const list[] = { "Conv", "ConvTranspose", "Gemm", "LayerNormalization", NULL };
	bool has = false;

	for (int i = 0; list[i]; i++)
		has |= node_is(n, list[i]);
	if (has && n->nin == 3 && n->in[2] && filled_with(n, 2, 0))
		n->nin = 2;
}

/* ---- tensors without elements ---- */

static bool empty_along(const Value *v, int axis)
{
	return v && v->type && axis < v->type->ndim && v->type->dim[axis] == 0;
}

/* Removes empty operands of a Concat; at least one operand remains. */
static void join_fewer(Node *n)
{
	int ndim = operand_ndim(n, 0), keep = 0, first = n->nin - 1;
	int64_t axis = attr_int(n, "axis");

	axis += axis < 0 ? ndim : 0;
	if (ndim < 1 || axis < 0 || axis >= ndim)
		return;
	while (first > 0 && empty_along(n->in[first], (int)axis))
		first--;
	for (int i = 0; i < n->nin; i++) {
		if (i != first && empty_along(n->in[i], (int)axis))
			continue;
		n->in[keep] = n->in[i];
		if (n->inloc)
			n->inloc[keep] = n->inloc[i];
		keep++;
	}
	n->nin = keep;
}

/* Removes empty results of a Split; they are constants. */
static void cut_fewer(Fold *f, Node *n)
{
	int ndim = operand_ndim(n, 0), keep = 0, empty = 0;
	int64_t axis = attr_int(n, "axis"), *size = arena_array(n->graph->scratch, int64_t, n->nout + 1);

	axis += axis < 0 ? ndim : 0;
	for (int i = 0; i < n->nout; i++) {
		const Type *t = n->out[i] ? n->out[i]->type : NULL;

		if (!t || t->ndim != ndim || ndim < 1 || axis < 0 || axis >= ndim || !dim_known(t->dim[axis]))
			return;
		empty += t->dim[axis] == 0;
	}
	if (!empty || empty == n->nout)
		return;
	for (int i = 0; i < n->nout; i++) {
		Value *v = n->out[i];

		if (v->type->dim[axis] == 0 && v->data) {
			become_constant(f->g, v);
			continue;
		}
		size[keep] = v->type->dim[axis];
		v->defidx = keep;
		n->out[keep++] = v;
	}
	n->nout = keep;
	for (int i = 0; i < n->nattr; i++)
		if (!strcmp(n->attr[i].name, "num_outputs"))
			n->attr[i--] = n->attr[--n->nattr];
	while (n->nin < 2)
		node_in(n, NULL);
	n->in[1] = ints(f, size, keep, "sizes");
}

/* The value of all elements of a result that is computed from no elements, such as an empty sum; false: there is no
 * such value. */
static bool neutral(const Node *n, double *v)
{
	static const struct { const char *op; double v; } list[] = {
		{ "MatMul", 0 }, { "sbpcc.MatMulOver", 0 }, { "sbpcc.ReduceTo", 0 },
		{ "ReduceSum", 0 }, { "ReduceProd", 1 }, { "ReduceMean", NAN },
		{ "ReduceMax", -INFINITY }, { "ReduceMin", INFINITY },
	};

	if (!empty(n, 0))
		return false;
	if (node_is(n, "Pad") && !strcmp(attr_str(n, "mode"), "constant")) {
		const Tensor *t = n->nin > 2 && n->in[2] ? operand_const(n, 2) : NULL;

		*v = t ? tensor_get(t, 0) : 0;
		return t || n->nin < 3 || !n->in[2];
	}
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
		if (node_is(n, list[i].op)) {
			*v = list[i].v;
			return dtype_is_float(n->out[0]->type->elem) || isfinite(list[i].v);
		}
	return false;
}

/* A result computed from empty operands only becomes an Expand of a number; inference has evaluated small ones. */
static void fill(Fold *f, Node *n)
{
	const Type *y = n->nout == 1 && n->out[0] ? n->out[0]->type : NULL;
	double v;

	if (!y || type_elements(y) <= 0 || !neutral(n, &v))
		return;
	n->op = name_of("Expand");
	n->domain = name_of("");
	n->row = op_find(n->domain, n->op, 0);
	n->version = 0;
	n->nattr = 0;
	n->nin = 0;
	n->in = NULL;
	n->inloc = NULL;
	node_in(n, graph_const(f->g, tensor_scalar(f->g->arena, y->elem, v), "num"));
	identity_node(n);
	node_in(n, ints(f, y->dim, y->ndim, "shape"));
}

static bool widens(DType from, DType to)
{
	if (from == DT_BOOL)
		return to != DT_BOOL;
	if (from == DT_FLOAT16 || from == DT_BFLOAT16)
		return to == DT_FLOAT || to == DT_DOUBLE;
	return (from == DT_FLOAT && to == DT_DOUBLE) || (from == DT_INT32 && to == DT_INT64);
}

static bool casts(const Node *n)
{
	return node_is(n, "Cast") || node_is(n, "CastLike");
}

/* Makes one of two nodes in a row: a Reshape does not depend on the shape before it, permutations compose, a Cast to a
 * wider type loses nothing. */
static void shorten(Fold *f, Node *n)
{
	Node *p = n->nin && n->in[0] ? n->in[0]->def : NULL;

	if (!p || n->in[0]->graph != p->graph || p->nin < 1 || !p->in[0])
		return;
	if (node_is(n, "Reshape") && reshapes(p)) {
		retarget(f, n, p->in[0]);
	} else if (node_is(n, "Transpose") && node_is(p, "Transpose")) {
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
	} else if (casts(n) && casts(p)) {
		const Type *from = p->in[0]->type, *to = n->in[0]->type;

		if (from && to && widens(from->elem, to->elem))
			n->in[0] = p->in[0];
	}
}

static void plain(Fold *f, Node *n)
{
	if (node_is(n, "Dropout") && n->nout > 1 && n->out[1] && n->out[1]->id < f->nby && !f->uses[n->out[1]->id]) {
		n->out[1]->def = NULL;
		n->nout = 1;            /* its mask is not used */
	}
	if (node_is(n, "Concat"))
		join_fewer(n);
	if (node_is(n, "Split"))
		cut_fewer(f, n);
	fill(f, n);
	if (reduces(n))
		plain_axes(f, n);
	drop_bias(n);
	plain_gather(n);
	if (n->nin && n->in[0] && reshapes(n) && keep_axes(n))
		return;
	shorten(f, n);
	if (node_is(n, "Reshape") && n->nin > 1 && n->in[1] && !n->in[1]->data)
		retarget(f, n, n->in[0]);
}

/* ---- equal nodes ---- */

static bool placing(const Annot *a)
{
	static const char *const list[] = { "on", "sbp", "stage", "recompute", NULL };

	for (int i = 0; list[i]; i++)
		if (!strcmp(a->name, list[i]))
			return true;
	return false;
}

static bool only_places(const Annot *a)
{
	while (a && placing(a))
		a = a->next;
	return !a;
}

static bool trained(const Fold *f, const Value *v)
{
	return f->trained && v && v->graph == f->g && v->id < f->nby && f->trained[v->id];
}

static bool trained_node(const Fold *f, const Node *n)
{
	bool any = false;

	for (int i = 0; i < n->nattr && f->trained; i++)        /* a nested graph may read any value */
		any |= n->attr[i].type == AT_GRAPH || n->attr[i].type == AT_GRAPHS;
	for (int i = 0; i < n->nin; i++)
		any |= trained(f, n->in[i]);
	return any;
}

static void find_trained(Fold *f)
{
	Graph *g = f->g;

	if (!options_any_ranks(g->model) || g->facts & TRAIN)
		return;
	f->trained = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = 0; i < g->ninit; i++)
		f->trained[g->init[i]->id] = g->init[i]->param;
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nout; k++)
			if (g->node[i]->out[k])
				f->trained[g->node[i]->out[k]->id] = trained_node(f, g->node[i]);
}

/* Moves the placement annotations of a removed node to the one that remains. */
static void inherit(Fold *f, Annot **to, const Annot *from, const char *stays, const char *goes)
{
	for (const Annot *a = from; a; a = a->next) {
		const Annot *old = annot_find(*to, a->name);
		Annot one = *a;
		bool same = old && old->narg == a->narg;

		if (!placing(a))
			continue;
		one.next = NULL;
		if (!old)
			annot_add(to, annot_copy(f->g->arena, &one));
		for (int i = 0; same && i < a->narg; i++)
			same = arg_same(&a->arg[i], &old->arg[i]);
		if (!old || same)
			continue;
		err_at(a->loc,
			"%s and %s are equal and, with --deterministic=any-ranks, one value, but @%s differs "
			"between them", stays, goes, a->name);
		note_at(old->loc, "the other one; say it of one of them, or the same of both");
		f->bad = true;
	}
}

static bool comparable(const Fold *f, const Node *n)
{
	for (int i = 0; i < n->nattr; i++) {
		AttrType t = n->attr[i].type;

		if (t != AT_INT && t != AT_FLOAT && t != AT_STRING && t != AT_INTS)
			return false;
	}
	for (const Annot *a = n->annot; a; a = a->next)
		if (strcmp(a->name, "backward") && strcmp(a->name, "update") && !(placing(a) && trained_node(f, n)))
			return false;
	return !n->row->random && !n->row->moves && n->nout > 0;
}

/* A node that both halves of the backward pass (@backward) need belongs to B, which runs first. */
static void join_halves(Node *first, const Node *again)
{
	Annot *a = annot_find(first->annot, "backward");
	const Annot *b = annot_find(again->annot, "backward");

	if (a && b && strcmp(a->arg[0].s, b->arg[0].s))
		a->arg[0].s = name_of("B");
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

static bool node_equal(const Fold *f, const Node *a, const Node *b)
{
	if (a->op != b->op || a->domain != b->domain || a->nin != b->nin || a->nattr != b->nattr || a->nout > b->nout)
		return false;
	if ((a->stage != b->stage && !trained_node(f, a)) || microbatch_updates(a) != microbatch_updates(b))
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
		if (node_equal(f, n, s->n))
			return s->n;
	Seen *s = arena_new(f->g->scratch, Seen);
	*s = (Seen){ n, list };
	map_put(&f->seen, key, s);
	return NULL;
}

/* An earlier value that equals a vector of lengths, not all of them numbers; NULL: there is none. */
static Value *same_contents(Fold *f, Value *v)
{
	uint64_t h = 2;

	if (v->nelem < 0 || v->data || !v->type || v->type->ndim < 0 || v->type->ndim > 1 || v->nelem > 64)
		return NULL;
	for (int i = 0; i < v->nelem; i++) {
		if (v->elem[i] == DIM_UNKNOWN || v->elem[i] == DIM_OVERFLOW)
			return NULL;
		h = mix(h, (uint64_t)v->elem[i]);
	}
	const void *key = (const void *)(uintptr_t)(mix(h, (uint64_t)v->type->elem * 2 + (uint64_t)v->type->ndim) | 1);
	Value *first = map_get(&f->contents, key);
	if (!first)
		map_put(&f->contents, key, v);
	if (!first || first->nelem != v->nelem || !lift_same_type(first, v) ||
		memcmp(first->elem, v->elem, sizeof *v->elem * (size_t)v->nelem))
		return NULL;
	return first;
}

/* Merges small equal constants, so that nodes that read them are seen as equal.  Constants that differ in the whole
 * batch (whole_batch.c) are not merged. */
static void join_constants(Fold *f)
{
	bool *state = params_state(f->g);

	for (int i = 0; i < f->g->ninit; i++) {
		Value *v = f->g->init[i];

		if (!v->data || v->param || state[v->id] || v->input || v->output || v->annot)
			continue;
		if (v->data->bytes > (size_t)limits.const_bytes || v->data->dtype == DT_STRING ||
			extdata_load(v->data) < 0 || whole_batch_differs(f->g, v))
			continue;
		const void *key = tensor_key(v->data);
		Value *first = map_get(&f->small, key);
		if (!first)
			map_put(&f->small, key, v);
		else if (v->id < f->nby && tensor_equal(first->data, v->data))
			forward(f, v, first);
	}
}

/* Replaces an output that is a copy by its operand, which takes the name of the output unless it must keep its own. */
static bool rename_to(Fold *f, Value *out, Value *from)
{
	Node *p = from->def;
	bool free = !out->annot && !from->annot;

	if (trained(f, from) && only_places(out->annot) && only_places(from->annot))
		free = true;
	if (!out->output || out->into || !free || !p || p->graph != f->g)
		return false;
	if (from->output || from->into || from->input || from->init || from->id >= f->nby)
		return false;
	inherit(f, &out->annot, from->annot, out->name, from->name);
	p->out[from->defidx] = out;
	out->def = p;
	out->defidx = from->defidx;
	from->def = NULL;
	forward(f, from, out);
	return true;
}

static bool removable(const Fold *f, const Node *n)
{
	for (int i = 0; i < n->nout; i++) {
		const Value *v = n->out[i];

		if (v && (v->output || v->into))
			return false;
		if (v && v->annot && !(only_places(v->annot) && trained(f, v)))
			return false;
	}
	return true;
}

/* The results of a removed node have no producer any more. */
static void drop(Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && n->out[i]->def == n)
			n->out[i]->def = NULL;
}

static bool all_outlive(Fold *f, const Node *twin, const Node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !outlives(f, twin->out[k], n->out[k]))
			return false;
	return true;
}

static void replace(Fold *f, Node *n, Node *twin)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			inherit(f, &twin->out[k]->annot, n->out[k]->annot, twin->out[k]->name, n->out[k]->name);
			forward(f, n->out[k], twin->out[k]);
		}
	inherit(f, &twin->annot, n->annot, twin->out[0] ? twin->out[0]->name : twin->op,
		n->out[0] ? n->out[0]->name : n->op);
	twin->stage = twin->stage < 0 ? n->stage : twin->stage;
	join_halves(twin, n);
}

/* Finds the gradients of parameters by name, before merging can remove the names. */
static void find_gradients(Fold *f)
{
	for (int i = 0; i < f->g->ninit; i++) {
		Value *v = f->g->init[i], *grad = v->param ? params_gradient(f->g, v) : NULL;
		int n = f->ngrad;

		if (!grad)
			continue;
		arena_push(f->g->scratch, f->param, n, v);
		arena_push(f->g->scratch, f->grad, f->ngrad, grad);
	}
}

static void note_gradients(Fold *f)
{
	for (int i = 0; i < f->ngrad; i++)
		if (now(f, f->grad[i]) != f->grad[i])
			params_share(f->g, f->param[i], now(f, f->grad[i]));
}

int fold_run(Graph *g)
{
	Fold f = { .g = g, .nby = g->nvalue };
	int keep = 0, nnode = g->nnode;

	f.by = arena_array(g->scratch, Value *, g->nvalue + 1);
	f.uses = graph_uses(g, g->scratch);
	f.last = arena_array(g->scratch, int, g->nvalue + 1);
	f.until = arena_array(g->scratch, int, g->nvalue + 1);
	graph_lives(g, f.last, f.until);
	find_trained(&f);
	map_init(&f.seen, g->scratch);
	map_init(&f.small, g->scratch);
	map_init(&f.contents, g->scratch);
	find_gradients(&f);
	for (int i = 0; i < nnode; i++) {
		graph_ahead(g->node, i, nnode);
		if (all_constant(g->node[i]))
			for (int k = 0; k < g->node[i]->nout; k++)
				if (g->node[i]->out[k])
					become_constant(g, g->node[i]->out[k]);
	}
	join_constants(&f);
	for (int i = 0; i < nnode; i++) {
		Node *n = g->node[i], *twin;
		Value *from;

		graph_ahead(g->node, i, nnode);
		if (all_constant(n)) {
			drop(n);
			continue;
		}
		for (int k = 0; k < n->nin; k++)
			n->in[k] = now(&f, n->in[k]);
		plain(&f, n);
		from = copy_of(n);
		if (from && outlives(&f, from, n->out[0]) && (removable(&f, n) || rename_to(&f, n->out[0], from))) {
			if (!n->out[0]->output) {
				inherit(&f, &from->annot, n->out[0]->annot, from->name, n->out[0]->name);
				forward(&f, n->out[0], from);
			}
			drop(n);
			continue;
		}
		if (n->nout == 1 && n->out[0] && removable(&f, n) && (from = same_contents(&f, n->out[0])) != NULL &&
			outlives(&f, from, n->out[0])) {
			forward(&f, n->out[0], from);
			drop(n);
			continue;
		}
		if (removable(&f, n) && comparable(&f, n) && (twin = stood_before(&f, n)) != NULL &&
			all_outlive(&f, twin, n)) {
			replace(&f, n, twin);
			drop(n);
			continue;
		}
		g->node[keep++] = n;
	}
	g->nnode = keep;
	for (int i = 0; i < keep; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			g->node[i]->in[k] = now(&f, g->node[i]->in[k]);
	note_gradients(&f);
	graph_sweep(g);
	return f.bad ? -1 : 0;
}
