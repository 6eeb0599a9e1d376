/* Lifting: arithmetic that a composite operator is defined by becomes that operator, which has a kernel, a stable
 * gradient and a factor rule of its own.  The pass recognises layer, RMS and group normalisation, GELU (erf and tanh),
 * SwiGLU, the logarithm of a sigmoid (it becomes an expression that does not underflow), and in lift_attention.c scaled
 * dot-product attention with its masks and rotary embedding.  NegativeLogLikelihoodLoss of a LogSoftmax becomes
 * cross-entropy, which does not keep the logarithms.
 *
 * The patterns that exporters write are a grammar in our own language: patterns.ir, read by match.c.  A complete match
 * is handed to the function of its rule, which checks what a pattern cannot express (axes, shapes, types, the contents
 * of masks and tables) and builds the composite.  If it refuses, the matcher looks for another match.
 *
 * A match is not replaced if other nodes need a value of it that is costly to compute twice; cheap nodes that are
 * needed elsewhere stay.  Nodes are visited last first, so that the largest pattern wins; a replacement stands where
 * the last node of its pattern stood.  Each node is tried against a bounded number of patterns: the pass is linear. */
#include "front/front.h"

#include <math.h>
#include <string.h>

typedef struct Rule {
	const char *name;
	bool (*put)(void *, Match *);
} Rule;

struct Lift {
	Graph *g;
	Node **old; int nold;
	struct Put { Node **node; int n; } *before;     /* new nodes that stand before old[i] */
	int *uses, nuses;
	Map table;                      /* by value: what lift_once built from it */
	Map value;                      /* contents of values that depend on constants only */
	Arena values;
	int lifted;
};

const Tensor *lift_constant(const Value *v)
{
	return v && v->data && !v->param && extdata_load(v->data) >= 0 ? v->data : NULL;
}

/* ---- may a match be replaced? ---- */

static int *use(Lift *l, const Value *v)
{
	if (v->id >= l->nuses) {
		int cap = 2 * v->id + 64, *more = arena_array(l->g->scratch, int, cap);

		if (l->nuses)
			memcpy(more, l->uses, sizeof *more * (size_t)l->nuses);
		l->uses = more;
		l->nuses = cap;
	}
	return &l->uses[v->id];
}

/* Whether computing a node twice is worse than leaving the pattern as it is.  That holds for the weights of attention
 * and for a norm, not for scores: attention recomputes them instead of keeping them. */
static bool costly(const Node *n)
{
	return node_is(n, "Softmax") || node_is(n, "Exp") || node_is(n, "InstanceNormalization");
}

/* How often removed nodes of the match read v. */
static int inner_uses(const Match *m, const bool *stays, const Value *v)
{
	int count = 0;

	for (int i = 0; i < m->n; i++) {
		bool seen = false;

		for (int k = 0; k < i; k++)
			seen |= m->node[k] == m->node[i];
		for (int k = 0; !seen && !stays[i] && k < m->node[i]->nin; k++)
			count += m->node[i]->in[k] == v;
	}
	return count;
}

/* Whether every covered node can be removed, or is cheap enough to stay for other readers, and no inner value is
 * annotated.  With any-ranks a placement of an inner value must not decide what is computed: it is reported to have no
 * effect (remove_node). */
bool lift_replaceable(Lift *l, const Match *m)
{
	bool stays[MATCHED_MAX] = { false };

	for (bool changed = true; changed;) {
		changed = false;
		for (int i = 0; i < m->n; i++) {
			Node *n = m->node[i];

			if (n == m->root || stays[i])
				continue;
			if (n->stage != m->root->stage && !options_any_ranks(l->g->model))
				return false;
			for (int k = 0; k < n->nout; k++)
				if (n->out[k] && *use(l, n->out[k]) > inner_uses(m, stays, n->out[k]))
					stays[i] = changed = true;
			if (stays[i] && costly(n))
				return false;
			if (!stays[i] && n->out[0] && n->out[0]->annot && !options_any_ranks(l->g->model))
				return false;
		}
	}
	return true;
}

/* The node that replaces the match; it takes the source location, name, stage and annotations of the root. */
Value *lift_put(Lift *l, const Match *m, const char *op, Value *to, int nin, Value **in,
	void (*attrs)(Node *, const void *), const void *arg)
{
	Graph *g = l->g;
	const Node *r = m->root;
	Node *n = node_new(g, name_of(""), name_of(op), r->loc);

	n->name = r->name;
	n->stage = r->stage;
	n->annot = r->annot;
	n->from = r->from;
	if (attrs)
		attrs(n, arg);
	for (int i = 0; i < nin; i++)
		node_in(n, in[i]);
	if (!to) {
		to = graph_fresh(g, name_fmt("%s.%s", r->out[0]->name, op));
		to->loc = r->out[0]->loc;
	}
	node_out(n, to);
	if (inline_append(g, n) < 0)
		die("lift: %s cannot replace %s", op, r->out[0]->name);
	return to;
}

void lift_int(Node *n, const char *name, int64_t v)
{
	node_attr_add(n, name_of(name), AT_INT)->u.i = v;
}

void lift_float(Node *n, const char *name, double v)
{
	node_attr_add(n, name_of(name), AT_FLOAT)->u.f = (float)v;
}

/* ---- questions ---- */

bool lift_same_type(const Value *a, const Value *b)
{
	if (!a->type || !b->type || a->type->kind != TY_TENSOR || a->type->elem != b->type->elem)
		return false;
	if (a->type->ndim != b->type->ndim || a->type->ndim < 0)
		return false;
	for (int i = 0; i < a->type->ndim; i++)
		if (!dim_same(a->type->dim[i], b->type->dim[i]))
			return false;
	return true;
}

int lift_ndim(const Value *v)
{
	return v && v->type && v->type->kind == TY_TENSOR ? v->type->ndim : -1;
}

Dim lift_aligned(const Value *v, int ndim, int i)
{
	int at = i - ndim + v->type->ndim;

	return at < 0 ? 1 : v->type->dim[at];
}

bool lift_scalar(const Value *v, double *x)
{
	const Tensor *t = lift_constant(v);

	if (!t || tensor_elements(t) != 1 || !dtype_is_float(t->dtype))
		return false;
	*x = tensor_get(t, 0);
	return true;
}

bool lift_filled(const Tensor *t, double v)
{
	for (int64_t i = 0; i < tensor_elements(t); i++)
		if (tensor_get(t, i) != v)
			return false;
	return true;
}

enum { EVAL_DEPTH = 24 };

/* The contents of a value that depends on constants only, however large: folding keeps small ones only. */
const Tensor *lift_value(Lift *l, Value *v, int depth)
{
	const Tensor *t = lift_constant(v);
	Node *n = v->def;
	Tensor *in[8] = { 0 }, *out[1] = { 0 };

	if (t || v->param || v->init)
		return t;
	if ((t = map_get(&l->value, v)) != NULL)
		return t == (const Tensor *)l ? NULL : t;
	map_put(&l->value, v, l);
	if (!n || depth == EVAL_DEPTH || n->nout != 1 || n->nin > 8 || !n->row || n->row->random || n->row->moves)
		return NULL;
	if (!v->type || type_elements(v->type) < 0 || type_elements(v->type) > 1 << 24)
		return NULL;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !(in[i] = (Tensor *)lift_value(l, n->in[i], depth + 1)))
			return NULL;
	if (eval_node(n, in, out, &l->values, false) < 0)
		return NULL;
	map_put(&l->value, v, out[0]);
	return out[0];
}

/* Moves the new nodes before old[index]. */
static void take(Lift *l, int index)
{
	Graph *g = l->g;
	struct Put *put = &l->before[index];

	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];

		n->mark = index;
		arena_push(g->scratch, put->node, put->n, n);
		for (int k = 0; k < n->nin; k++)
			if (n->in[k])
				++*use(l, n->in[k]);
	}
	g->nnode = 0;
}

/* A node that a rule derives from a value, made once for all uses, right after the value.  kind distinguishes several
 * such nodes. */
Value *lift_once(Lift *l, Value *from, int kind, Value *(*make)(Graph *, Value *, const void *), const void *arg)
{
	Graph *g = l->g;
	const void *key = (const char *)from + kind;
	Value *r = map_get(&l->table, key);
	Node *d = from->def;

	if (r)
		return r;
	if (g->nnode)
		die("lift: %s is made in the middle of something else", from->name);
	uint64_t maker = identity_enter_value(from, "lift", kind);
	if (!(r = make(g, from, arg)))
		die("lift: the node made from %s", from->name);
	identity_leave(g, maker);
	if (r != from && lift_constant(r)) {
		const Value *made = r;

		r = graph_const(g, made->data, name_fmt("%s.cache", from->name));
		identity_from(r, made, "lift: constant");
		for (int i = 0; i < g->nnode; i++)
			for (int k = 0; k < g->node[i]->nout; k++)
				g->node[i]->out[k]->def = NULL;
		g->nnode = 0;
	}
	map_put(&l->table, key, r);
	bool old = d && d->mark < l->nold && l->old[d->mark] == d;
	take(l, d ? d->mark + old : 0);
	return r;
}

/* ---- normalisations ---- */

/* k, if the axes are the last k of x; else 0. */
static int last_axes(const Value *x, const Value *axes)
{
	const Tensor *t = lift_constant(axes);
	int ndim = lift_ndim(x), k = t ? (int)tensor_elements(t) : 0;
	uint64_t seen = 0;

	if (ndim < 1 || k < 1 || k > ndim)
		return 0;
	for (int i = 0; i < k; i++) {
		int64_t a = tensor_int(t, i) + (tensor_int(t, i) < 0 ? ndim : 0);

		if (a < ndim - k || a >= ndim)
			return 0;
		seen |= (uint64_t)1 << (a - (ndim - k));
	}
	return seen == ((uint64_t)1 << k) - 1 ? k : 0;
}

/* Whether v can be a scale or bias over the last k axes of x. */
static bool fits(const Value *v, const Value *x, int k)
{
	int ndim = x->type->ndim;

	if (lift_ndim(v) < 0 || v->type->ndim > ndim || v->type->elem != x->type->elem)
		return false;
	for (int i = 0; i < ndim; i++) {
		Dim d = lift_aligned(v, ndim, i);

		if (!dim_same(d, 1) && (i < ndim - k || !dim_same(d, x->type->dim[i])))
			return false;
	}
	return true;
}

static Value *ones(Lift *l, const Value *x, int k)
{
	int64_t dim[NDIM_MAX];
	int ndim = x->type->ndim, n = 0;

	for (int i = ndim - k; i < ndim; i++)
		if (dim_known(x->type->dim[i]))
			dim[n++] = x->type->dim[i];
	if (n < k) {
		dim[0] = 1;
		n = 1;
	}
	Tensor *t = tensor_new(l->g->arena, x->type->elem, n, dim);
	for (int64_t i = 0; i < tensor_elements(t); i++)
		tensor_set(t, i, 1);
	return graph_const(l->g, t, "ones");
}

typedef struct Norm {
	int k;
	double eps;
} Norm;

static void norm_attrs(Node *n, const void *arg)
{
	const Norm *a = arg;

	lift_int(n, "axis", -a->k);
	lift_float(n, "epsilon", a->eps);
}

static bool put_norm(void *lift, Match *m)
{
	Lift *l = lift;
	Value *x = match_hole(m, "x"), *y = m->root->out[0];
	Value *scale = match_hole(m, "scale"), *bias = match_hole(m, "bias");
	Norm a = { last_axes(x, match_hole(m, "axes")), 0 };

	if (!a.k || !lift_scalar(match_hole(m, "eps"), &a.eps) || !(a.eps >= 0) || !lift_same_type(x, y))
		return false;
	if ((scale && !fits(scale, x, a.k)) || (bias && !fits(bias, x, a.k)) || !lift_replaceable(l, m))
		return false;
	if (!scale)
		scale = ones(l, x, a.k);
	const char *op = !strcmp(m->name, "RmsNorm") ? "RMSNormalization" : "LayerNormalization";
	lift_put(l, m, op, y, bias ? 3 : 2, (Value *[]){ x, scale, bias }, norm_attrs, &a);
	return true;
}

static void group_attrs(Node *n, const void *arg)
{
	const Norm *a = arg;

	lift_int(n, "num_groups", a->k);
	lift_float(n, "epsilon", a->eps);
}

static bool put_group_norm(void *lift, Match *m)
{
	Lift *l = lift;
	Value *x = match_hole(m, "x"), *y = m->root->out[0];
	Value *scale = match_hole(m, "scale"), *bias = match_hole(m, "bias");
	const Tensor *one = lift_constant(match_hole(m, "one")), *zero = lift_constant(match_hole(m, "zero"));
	const Tensor *axes = lift_constant(match_hole(m, "axes"));
	int ndim = lift_ndim(x);
	const Node *inner = NULL;

	for (int i = 0; i < m->n; i++)
		if (node_is(m->node[i], "InstanceNormalization"))
			inner = m->node[i];
	const Type *t = inner ? operand_type(inner, 0) : NULL;
	if (ndim < 3 || !one || !zero || !axes || !lift_filled(one, 1) || !lift_filled(zero, 0))
		return false;
	if (!t || t->ndim != 3 || !dim_same(t->dim[0], x->type->dim[0]) || !lift_same_type(x, y))
		return false;
	if (tensor_elements(axes) != ndim - 2)
		return false;
	for (int i = 0; i < ndim - 2; i++)
		if (tensor_int(axes, i) != i + 1)
			return false;
	if (lift_ndim(scale) != 1 || !dim_same(scale->type->dim[0], x->type->dim[1]))
		return false;
	if (lift_ndim(bias) != 1 || !dim_same(bias->type->dim[0], x->type->dim[1]) || !lift_replaceable(l, m))
		return false;
	lift_put(l, m, "GroupNormalization", y, 3, (Value *[]){ x, scale, bias }, group_attrs,
		&(Norm){ (int)tensor_elements(one), attr_float(inner, "epsilon") });
	return true;
}

/* ---- activations ---- */

static void gelu_attrs(Node *n, const void *arg)
{
	node_attr_add(n, name_of("approximate"), AT_STRING)->u.s = name_of(arg);
}

static bool put_gelu(void *lift, Match *m)
{
	Lift *l = lift;
	Value *x = match_hole(m, "x"), *y = m->root->out[0];

	if (!lift_same_type(x, y) || !dtype_is_float(x->type->elem) || !lift_replaceable(l, m))
		return false;
	lift_put(l, m, "Gelu", y, 1, &x, gelu_attrs, !strcmp(m->name, "GeluTanh") ? "tanh" : "none");
	return true;
}

static void alpha_attr(Node *n, const void *arg)
{
	const double *alpha = arg;

	if (*alpha != 1)
		lift_float(n, "alpha", *alpha);
}

static bool put_gated(void *lift, Match *m)
{
	Lift *l = lift;
	Value *a = match_hole(m, "a"), *b = match_hole(m, "b"), *y = m->root->out[0];
	Value *alpha = match_hole(m, "alpha");
	double by = 1;

	if (lift_constant(b) || !lift_same_type(a, b) || !lift_same_type(a, y))
		return false;
	if ((alpha && !lift_scalar(alpha, &by)) || !lift_replaceable(l, m))
		return false;
	lift_put(l, m, "SwiGLU", y, 2, (Value *[]){ a, b }, alpha_attr, &by);
	return true;
}

/* Binary cross entropy as exporters write it. */
static bool put_log_sigmoid(void *lift, Match *m)
{
	Lift *l = lift;
	Value *z = match_hole(m, "z"), *y = m->root->out[0];

	if (!lift_same_type(z, y) || !lift_replaceable(l, m))
		return false;
	if (!strcmp(m->name, "LogSigmoid"))
		z = lift_put(l, m, "Neg", NULL, 1, &z, NULL, NULL);
	Value *s = lift_put(l, m, "Softplus", NULL, 1, &z, NULL, NULL);
	lift_put(l, m, "Neg", y, 1, &s, NULL, NULL);
	return true;
}

/* ---- the pass ---- */

static const Rule rules[] = {
	{ "LayerNorm", put_norm },
	{ "RmsNorm", put_norm },
	{ "GroupNorm", put_group_norm },
	{ "GeluErf", put_gelu },
	{ "GeluTanh", put_gelu },
	{ "Gated", put_gated },
	{ "LogSigmoid", put_log_sigmoid },
	{ "LogRest", put_log_sigmoid },
	{ "Attend", lift_attention },
	{ "Rotary", lift_attention_rotary },
};
enum { NRULE = sizeof rules / sizeof rules[0] };

extern const char *const patterns_text[];       /* patterns.ir, embedded */

static const Map *read_patterns(void)
{
	static Map roots;
	static bool done;
	const char *names[NRULE + 1] = { 0 };

	for (int i = 0; i < NRULE; i++)
		names[i] = rules[i].name;
	if (!done)
		match_read(patterns_text[0], names, &roots);
	done = true;
	return &roots;
}

static bool dead(Lift *l, const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && (*use(l, n->out[i]) > 0 || n->out[i]->into))
			return false;
	return true;
}

static void remove_node(Lift *l, int i)
{
	Node *n = l->old[i];

	for (int k = 0; k < n->nin; k++)
		if (n->in[k])
			--*use(l, n->in[k]);
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && n->out[k]->def == n) {
			if (n->out[k]->annot)
				warn_at(n->out[k]->annot->loc,
					"with --deterministic=any-ranks %s belongs to a larger operator: @%s has no "
					"effect on it", n->out[k]->name, n->out[k]->annot->name);
			n->out[k]->def = NULL;
		}
	l->old[i] = NULL;
}

static void visit(Lift *l, const Map *roots, int i)
{
	Node *n = l->old[i];
	uintptr_t may = !*n->domain && n->nout == 1 && n->out[0] ? (uintptr_t)map_get(roots, n->op) : 0;

	if (dead(l, n)) {
		remove_node(l, i);
		return;
	}
	uint64_t maker = identity_enter(n, "lift");
	bool lifted = false;
	for (int r = 0; may && r < NRULE && !lifted; r++)
		lifted = may >> r & 1 && match_try(n, rules[r].name, rules[r].put, l);
	identity_leave(l->g, maker);
	if (!lifted)
		return;
	take(l, i);
	remove_node(l, i);
	l->lifted++;
}

/* NegativeLogLikelihoodLoss(LogSoftmax(x)) over the classes: both have the same attributes as cross-entropy of x. */
static bool put_cross_entropy(Lift *l, Node *n)
{
	const Value *logp = n->nin ? n->in[0] : NULL;
	const Node *s = logp && logp->graph == l->g ? logp->def : NULL;
	if (*n->domain || strcmp(n->op, "NegativeLogLikelihoodLoss"))
		return false;
	if (!s || *s->domain || strcmp(s->op, "LogSoftmax") || s->row->since < 13)
		return false;
	if (logp->output || l->uses[logp->id] != 1 || lift_ndim(logp) < 2)
		return false;
	if (logp->annot && !options_any_ranks(l->g->model))
		return false;
	int64_t axis = attr_int(s, "axis");
	if ((axis < 0 ? axis + logp->type->ndim : axis) != 1)
		return false;
	n->op = name_of("SoftmaxCrossEntropyLoss");
	n->row = op_find(n->domain, n->op, n->version);
	n->in[0] = s->in[0];
	return true;
}

int lift_run(Graph *g)
{
	const Map *roots = read_patterns();
	Lift l = { .g = g, .old = g->node, .nold = g->nnode };

	l.uses = graph_uses(g, g->scratch);
	l.nuses = g->nvalue;
	l.before = arena_array(g->scratch, struct Put, g->nnode + 2);
	map_init(&l.table, g->scratch);
	map_init(&l.value, g->scratch);
	for (int i = 0; i < l.nold; i++)
		l.old[i]->mark = i;
	g->node = NULL;
	g->nnode = 0;
	for (int i = l.nold; i-- > 0;)
		if (put_cross_entropy(&l, l.old[i]))
			l.lifted = true;
	for (int i = l.nold; i-- > 0;)
		visit(&l, roots, i);
	g->node = NULL;
	g->nnode = 0;
	for (int i = 0; i <= l.nold; i++) {
		for (int k = 0; k < l.before[i].n; k++)
			arena_push(g->arena, g->node, g->nnode, l.before[i].node[k]);
		if (i < l.nold && l.old[i])
			arena_push(g->arena, g->node, g->nnode, l.old[i]);
	}
	arena_free(&l.values);
	return l.lifted ? fold_run(g) : 0;      /* writes the new nodes in the one notation of fold.c */
}
