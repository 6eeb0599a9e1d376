/* Lifting: arithmetic that is the meaning of a composite operator becomes that operator, which has a kernel, a stable
 * gradient and a factor rule of its own.  Recognised: layer and RMS normalisation, GELU (erf and tanh), scaled
 * dot-product attention with its masks, rotary embedding, SwiGLU.
 *
 * What exporters write is a grammar, in our own language (below): a function is a pattern, several of one name are
 * alternatives, a call of another pattern is a part.  The operands of a pattern are holes that match any value, the same
 * value wherever the name stands; an operand that the caller leaves out matches anything.  Operands of commutative
 * operators match in either order; a number matches a constant with that value in every element, to 1e-6.  Attributes that
 * the pattern does not mention have their default.  The matcher backtracks over alternatives and orders; its depth and work are bounded by
 * the pattern, never by the model, so the pass is linear in the nodes.
 *
 * A complete match is handed to the rule's function, which checks what a pattern cannot say (axes, shapes, types, the
 * contents of masks and tables) and builds the composite; when it refuses, the matcher tries on.  Nothing is replaced that
 * others need and that would be costly to compute twice; what is cheap and needed elsewhere stays.  Nodes are visited last
 * first, so that the largest pattern wins; a replacement stands where the last node of its pattern stood. */
#include "compiler.h"

#include <math.h>
#include <string.h>

static const char grammar[] =
	/* the same arithmetic, written in several ways */
	"Square (x) => (y) { y = Mul(x, x) }\n"
	"Square (x) => (y) { y = Pow(x, 2) }\n"
	"Cube (x) => (y) { y = Mul(Square(x), x) }\n"
	"Cube (x) => (y) { y = Pow(x, 3) }\n"
	"Product (a, b, c) => (y) { y = Mul(Mul(a, b), c) }\n"
	"Product (a, b, c) => (y) { y = Mul(Mul(a, c), b) }\n"
	"Product (a, b, c) => (y) { y = Mul(a, Mul(b, c)) }\n"
	"Over (a, v) => (y) { y = Div(a, Sqrt(v)) }\n"
	"Over (a, v) => (y) { y = Mul(a, Reciprocal(Sqrt(v))) }\n"
	"Over (a, v) => (y) { y = Mul(a, Div(1, Sqrt(v))) }\n"
	"Over (a, v) => (y) { y = Mul(a, Pow(v, -0.5)) }\n"
	"Over (a, v) => (y) { y = Div(a, Pow(v, 0.5)) }\n"
	"Mean (x, axes) => (y) { y = ReduceMean<keepdims=1>(x, axes) }\n"

	/* x / sqrt(mean(x^2) + eps), in its own type or in float between casts */
	"Unit (x, axes, eps) => (y) { y = Over(x, Add(Mean(Square(x), axes), eps)) }\n"
	"Wide (x, axes, eps) => (y) { f = Cast<to=1>(x)  y = Cast(Unit(f, axes, eps)) }\n"
	"RmsNorm (x, axes, eps, scale) => (y) { y = Mul(Unit(x, axes, eps), scale) }\n"
	"RmsNorm (x, axes, eps, scale) => (y) { y = Mul(Wide(x, axes, eps), scale) }\n"
	"RmsNorm (x, axes, eps) => (y) { y = Unit(x, axes, eps) }\n"
	"RmsNorm (x, axes, eps) => (y) { y = Wide(x, axes, eps) }\n"

	"Centred (x, axes) => (y) { y = Sub(x, Mean(x, axes)) }\n"
	"Standard (x, axes, eps) => (y) { y = Unit(Centred(x, axes), axes, eps) }\n"
	"Standard (x, axes, eps) => (y) { y = Cast(Unit(Centred(Cast<to=1>(x), axes), axes, eps)) }\n"
	"LayerNorm (x, axes, eps, scale, bias) => (y) { y = Add(Mul(Standard(x, axes, eps), scale), bias) }\n"
	"LayerNorm (x, axes, eps, scale) => (y) { y = Mul(Standard(x, axes, eps), scale) }\n"
	"LayerNorm (x, axes, eps) => (y) { y = Standard(x, axes, eps) }\n"

	/* GroupNorm as InstanceNormalization of groups */
	"GroupNorm (x, one, zero, in, out, scale, bias, axes) => (y) {\n"
	"	y = Add(Mul(Reshape(InstanceNormalization<epsilon=nan>(Reshape(x, in), one, zero), out), Unsqueeze(scale, axes)), Unsqueeze(bias, axes)) }\n"

	"Bell (x) => (y) { y = Erf(Div(x, 1.4142135623730951)) }\n"
	"Bell (x) => (y) { y = Erf(Mul(x, 0.7071067811865476)) }\n"
	"GeluErf (x) => (y) { y = Product(x, 0.5, Add(Bell(x), 1)) }\n"
	"GeluErf (x) => (y) { y = Mul(Div(x, 2), Add(Bell(x), 1)) }\n"
	"Curve (x) => (y) { y = Mul(Add(x, Mul(Cube(x), 0.044715)), 0.7978845608028654) }\n"
	"Curve (x) => (y) { y = Mul(Add(x, Product(Square(x), x, 0.044715)), 0.7978845608028654) }\n"
	"Curve (x) => (y) { y = Product(x, 0.7978845608028654, Add(Product(x, x, 0.044715), 1)) }\n"
	"Curve (x) => (y) { y = Product(x, 0.7978845608028654, Add(Mul(Square(x), 0.044715), 1)) }\n"
	"GeluTanh (x) => (y) { y = Product(x, 0.5, Add(Tanh(Curve(x)), 1)) }\n"

	"Gated (a, b) => (y) { y = Product(a, Sigmoid(a), b) }\n"
	"Gated (a, b, alpha) => (y) { y = Product(a, Sigmoid(Mul(a, alpha)), b) }\n"

	/* softmax(cap(scale * q kt) + mask) v */
	"Dot (q, kt, qtimes, ktimes) => (s) { s = MatMul(Mul(q, qtimes), Mul(kt, ktimes)) }\n"
	"Dot (q, kt, qtimes, ktimes) => (s) { s = MatMul(Mul(q, qtimes), kt) }\n"
	"Dot (q, kt, qtimes, ktimes) => (s) { s = MatMul(Div(q, qtimes), kt) }\n"
	"Dot (q, kt) => (s) { s = MatMul(q, kt) }\n"
	"Scaled (q, kt, qtimes, ktimes, times, over) => (s) { s = Mul(Dot(q, kt, qtimes, ktimes), times) }\n"
	"Scaled (q, kt, qtimes, ktimes, times, over) => (s) { s = Div(Dot(q, kt, qtimes, ktimes), over) }\n"
	"Scaled (q, kt, qtimes, ktimes) => (s) { s = Dot(q, kt, qtimes, ktimes) }\n"
	"Capped (s, cap, under) => (y) { y = Mul(Tanh(Div(s, under)), cap) }\n"
	"Capped (s) => (s) { }\n"
	"Masked (s, mask, mask2, hide, show, low) => (y) { y = Add(Add(s, mask), mask2) }\n"
	"Masked (s, mask) => (y) { y = Add(s, mask) }\n"
	"Masked (s, mask, mask2, hide, show, low) => (y) { y = Where(hide, low, s) }\n"
	"Masked (s, mask, mask2, hide, show, low) => (y) { y = Where(show, s, low) }\n"
	"Masked (s) => (s) { }\n"
	"Softened (s) => (p) { p = Softmax<axis=-1>(s) }\n"
	"Softened (s) => (p) { p = Exp(Sub(s, LogSum(s))) }\n"
	"LogSum (s, axes) => (y) { top = ReduceMax<keepdims=1>(Detach(s), axes)  m = Where(IsInf(top), ZerosLike(top), top)\n"
	"	y = Add(Log(ReduceSum<keepdims=1>(Exp(Sub(s, m)), axes)), m) }\n"
	"Weights (s) => (p) { p = Softened(s) }\n"
	"Weights (s) => (p) { r = Softened(s)  p = Where(IsNaN(r), 0, r) }\n"
	"Attend (q, kt, v, qtimes, ktimes, times, over, cap, under, mask, mask2, hide, show, low) => (y) {\n"
	"	y = MatMul(Weights(Masked(Capped(Scaled(q, kt, qtimes, ktimes, times, over), cap, under), mask, mask2, hide, show, low)), v) }\n"

	/* pairs (a, b) turned by an angle: halves of the last axis, or neighbours on it */
	"Turned (a, b, cos, sin) => (y) { y = Sub(Mul(a, cos), Mul(b, sin)) }\n"
	"Crossed (a, b, cos, sin) => (y) { y = Add(Mul(a, sin), Mul(b, cos)) }\n"
	"Rotary (x, a, b, cos, sin, rest) => (y) { y = Concat<axis=-1>(Add(Mul(x, cos), Mul(Concat<axis=-1>(Neg(b), a), sin)), rest) }\n"
	"Rotary (x, a, b, cos, sin) => (y) { y = Add(Mul(x, cos), Mul(Concat<axis=-1>(Neg(b), a), sin)) }\n"
	"Rotary (a, b, cos, sin) => (y) { y = Concat<axis=-1>(Turned(a, b, cos, sin), Crossed(a, b, cos, sin)) }\n"
	"Rotary (a, b, cos, sin, end, shape) => (y) {\n"
	"	y = Reshape(Concat<axis=-1>(Unsqueeze(Turned(a, b, cos, sin), end), Unsqueeze(Crossed(a, b, cos, sin), end)), shape) }\n"
	"Rotary (x, a, b, cos, sin, end, shape) => (y) {\n"
	"	y = Add(Mul(x, cos), Mul(Reshape(Concat<axis=-1>(Unsqueeze(Neg(b), end), Unsqueeze(a, end)), shape), sin)) }\n";

/* ---- matching ---- */

typedef struct Lift Lift;
typedef struct Match Match;
/* One use of a pattern: what its names stand for.  Operands that the caller gives are looked up in the caller's frame. */
typedef struct Frame { const Function *f; const Node *call; struct Frame *outer; Value **is; } Frame;
typedef struct Goal { const Value *p; Frame *f; Value *v; const struct Goal *next; } Goal;
typedef struct Rule { const char *name; bool (*put)(Lift *, Match *); } Rule;

enum { MATCHED_MAX = 64 };
struct Match {
	Node *root;
	const Rule *rule;
	Frame *top;
	Node *node[MATCHED_MAX]; int n; /* the nodes that the pattern covers, from the root on */
};

struct Lift {
	Graph *g;
	Arena *a;                       /* of one attempt */
	Node **old; int nold;
	struct Put { Node **node; int n; } *before;     /* new nodes that stand before old[i] */
	int *uses, nuses;
	Map table;                      /* cos and sin as a cache, by value */
	Map value;                      /* contents of values that depend on constants only */
	Arena values;
	int lifted;
};

static Model *patterns;

static bool is(const Node *n, const char *op)
{
	return n && !*n->domain && !strcmp(n->op, op);
}

static int input_index(const Function *f, const Value *p)
{
	for (int i = 0; i < f->body->nin; i++)
		if (f->body->in[i] == p)
			return i;
	return -1;
}

/* What a name of a pattern means: an operand is what the caller gave for it. */
static void resolve(const Value **p, Frame **f)
{
	int i;

	while ((*f)->call && (i = input_index((*f)->f, *p)) >= 0 && i < (*f)->call->nin && (*f)->call->in[i]) {
		*p = (*f)->call->in[i];
		*f = (*f)->outer;
	}
}

static const Node *literal(const Value *p)
{
	const Node *n = p->def;

	if (n && is(n, "CastLike") && n->in[0]->def && is(n->in[0]->def, "Constant"))
		n = n->in[0]->def;
	return n && is(n, "Constant") ? n : NULL;
}

static bool near(double a, double b)
{
	return a == b || fabs(a - b) <= 1e-6 * fabs(b);
}

static const Tensor *constant(const Value *v)
{
	return v && v->data && !v->param && tensor_load(v->data) >= 0 ? v->data : NULL;
}

static bool literal_equals(const Node *n, const Value *v)
{
	const Tensor *t = constant(v);
	const Attr *a = &n->attr[0];
	double want = a->type == AT_INT ? (double)a->u.i : a->type == AT_FLOAT ? (double)a->u.f : tensor_get(a->u.t, 0);
	int64_t count = t ? tensor_elements(t) : 0;

	for (int64_t i = 0; i < count; i++)
		if (!near(tensor_get(t, i), want))
			return false;
	return count > 0;
}

static bool attr_equal(const Node *d, const Attr *want)
{
	int n;

	if (want->type == AT_INT && !strcmp(want->name, "axis")) {
		int rank = d->out[0] && d->out[0]->type ? d->out[0]->type->rank : -1;
		int64_t have = attr_int(d, "axis");

		return have == want->u.i || (rank > 0 && (have + rank) % rank == (want->u.i + rank) % rank);
	}
	if (want->type == AT_INT)
		return attr_int(d, want->name) == want->u.i;
	if (want->type == AT_FLOAT)
		return isnan(want->u.f) || near(attr_float(d, want->name), want->u.f);
	const int64_t *have = attr_ints(d, want->name, &n);
	return n == want->n && (!n || !memcmp(have, want->u.is, sizeof *have * (size_t)n));
}

/* An attribute that the pattern does not mention must have its default. */
static bool attr_default(const Node *d, const Attr *a)
{
	const Schema *s = d->row->schema;

	if (!strcmp(a->name, "allowzero") || !strcmp(a->name, "to"))
		return true;            /* decided by the types */
	for (int i = 0; i < s->nattr; i++)
		if (s->attr[i].name == a->name)
			return s->hasdefault && s->hasdefault[i] && s->attr[i].type == a->type &&
			       (a->type == AT_INT ? s->attr[i].u.i == a->u.i : a->type == AT_FLOAT ? s->attr[i].u.f == a->u.f :
				a->type == AT_STRING && s->attr[i].u.s == a->u.s);
	return false;
}

static bool same_attrs(const Node *p, const Node *d)
{
	for (int i = 0; i < p->nattr; i++)
		if (!attr_equal(d, &p->attr[i]))
			return false;
	for (int i = 0; i < d->nattr; i++)
		if (!node_attr(p, d->attr[i].name) && !attr_default(d, &d->attr[i]))
			return false;
	return true;
}

static int operands(const Node *n)
{
	int count = n->nin;

	while (count && !n->in[count - 1])
		count--;
	return count;
}

static bool commutes(const Node *n)
{
	return is(n, "Add") || is(n, "Mul");
}

static bool is_pattern(const Node *n)
{
	for (int i = 0; i < patterns->nfunction; i++)
		if (patterns->function[i]->name == n->op)
			return true;
	return false;
}

static bool solve(Lift *, Match *, const Goal *);

static Frame *frame_new(Lift *l, const Function *f, const Node *call, Frame *outer)
{
	Frame *frame = arena_new(l->a, Frame);

	*frame = (Frame){ f, call, outer, arena_array(l->a, Value *, f->body->nvalue + 1) };
	return frame;
}

/* Is v made by one of the patterns that n calls? */
static bool solve_call(Lift *l, Match *m, const Node *n, Frame *outer, const Goal *g)
{
	for (int i = 0; i < patterns->nfunction; i++) {
		const Function *f = patterns->function[i];

		if (f->name != n->op || f->body->nin < 1)
			continue;
		if (solve(l, m, &(Goal){ f->body->out[0], frame_new(l, f, n, outer), g->v, g->next }))
			return true;
	}
	return false;
}

static bool solve_node(Lift *l, Match *m, const Node *n, Frame *f, const Goal *g)
{
	Node *d = g->v->def;
	int count = operands(n);
	Goal part[8];

	if (!d || d->graph != l->g || d->op != n->op || (*d->domain && strcmp(d->domain, "sbpcc")) || g->v->defidx != 0 || operands(d) != count || count > 8 ||
	    m->n == MATCHED_MAX || !same_attrs(n, d))
		return false;
	m->node[m->n++] = d;
	for (int order = 0; order < (commutes(n) && count == 2 ? 2 : 1); order++) {
		for (int i = 0; i < count; i++)
			part[i] = (Goal){ n->in[i], f, d->in[order ? count - 1 - i : i], i + 1 < count ? &part[i + 1] : g->next };
		bool given = true;
		for (int i = 0; i < count; i++)
			given &= part[i].v != NULL;
		if (given && solve(l, m, count ? part : g->next))
			return true;
	}
	m->n--;
	return false;
}

/* All goals hold, and the rule's function accepts what they give. */
static bool solve(Lift *l, Match *m, const Goal *g)
{
	if (!g)
		return m->rule->put(l, m);
	const Value *p = g->p;
	Frame *f = g->f;
	int covered = m->n;
	bool good;

	resolve(&p, &f);
	if (f->is[p->id])
		return f->is[p->id] == g->v && solve(l, m, g->next);
	const Node *number = literal(p);
	if (number)
		return literal_equals(number, g->v) && solve(l, m, g->next);
	f->is[p->id] = g->v;
	if (!p->def)
		good = solve(l, m, g->next);
	else if (is_pattern(p->def))
		good = solve_call(l, m, p->def, f, g);
	else
		good = solve_node(l, m, p->def, f, g);
	if (!good) {
		f->is[p->id] = NULL;
		m->n = covered;
	}
	return good;
}

/* ---- what a match may replace ---- */

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

/* Costly enough that computing it twice is worse than leaving the pattern alone: the weights of attention, a norm.  Scores
 * are not, for attention computes them anew rather than keep them. */
static bool costly(const Node *n)
{
	return is(n, "Softmax") || is(n, "Exp") || is(n, "InstanceNormalization");
}

/* How often covered nodes that go read v. */
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

/* Every covered node can go, or is cheap enough to stay for others; nobody has said anything about inner values. */
static bool replaceable(Lift *l, const Match *m)
{
	bool stays[MATCHED_MAX] = { false };

	for (bool changed = true; changed;) {
		changed = false;
		for (int i = 0; i < m->n; i++) {
			Node *n = m->node[i];

			if (n == m->root || stays[i])
				continue;
			if (n->stage != m->root->stage)
				return false;
			for (int k = 0; k < n->nout; k++)
				if (n->out[k] && *use(l, n->out[k]) > inner_uses(m, stays, n->out[k]))
					stays[i] = changed = true;
			if (stays[i] && costly(n))
				return false;
			if (!stays[i] && n->out[0] && n->out[0]->annot)
				return false;
		}
	}
	return true;
}

static Value *hole(const Match *m, const char *name)
{
	const Graph *b = m->top->f->body;

	for (int i = 0; i < b->nin; i++)
		if (!strcmp(b->in[i]->name, name))
			return m->top->is[b->in[i]->id];
	return NULL;
}

/* A node in place of the match: its place in the source, name, stage and annotations are those of the root. */
static Value *put_node(Lift *l, const Match *m, const char *op, Value *to, int nin, Value **in, void (*attrs)(Node *, const void *), const void *arg)
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
		die("lift: %s does not fit in the place of %s", op, r->out[0]->name);
	return to;
}

static void add_int(Node *n, const char *name, int64_t v)
{
	node_attr_add(n, name_of(name), AT_INT)->u.i = v;
}

static void add_float(Node *n, const char *name, double v)
{
	node_attr_add(n, name_of(name), AT_FLOAT)->u.f = (float)v;
}

/* ---- questions ---- */

static bool same_type(const Value *a, const Value *b)
{
	if (!a->type || !b->type || a->type->kind != TY_TENSOR || a->type->elem != b->type->elem || a->type->rank != b->type->rank || a->type->rank < 0)
		return false;
	for (int i = 0; i < a->type->rank; i++)
		if (!dim_same(a->type->dim[i], b->type->dim[i]))
			return false;
	return true;
}

static int rank_of(const Value *v)
{
	return v && v->type && v->type->kind == TY_TENSOR ? v->type->rank : -1;
}

/* Axis i of v when its axes are aligned at the right with those of a value of that rank. */
static Dim aligned(const Value *v, int rank, int i)
{
	int at = i - rank + v->type->rank;

	return at < 0 ? 1 : v->type->dim[at];
}

/* A constant of one element, or the same number everywhere. */
static bool scalar(const Value *v, double *x)
{
	const Tensor *t = constant(v);

	if (!t || tensor_elements(t) != 1 || !dtype_is_float(t->dtype))
		return false;
	*x = tensor_get(t, 0);
	return true;
}

static bool filled(const Tensor *t, double v)
{
	for (int64_t i = 0; i < tensor_elements(t); i++)
		if (tensor_get(t, i) != v)
			return false;
	return true;
}

enum { EVAL_DEPTH = 24 };

/* The contents of a value that depends on constants only, however large: folding keeps small ones only. */
static const Tensor *value_of(Lift *l, Value *v, int depth)
{
	const Tensor *t = constant(v);
	Node *n = v->def;
	Tensor *in[8] = { 0 }, *out[1] = { 0 };

	if (t || v->param || v->init)
		return t;
	if ((t = map_get(&l->value, v)) != NULL)
		return t == (const Tensor *)l ? NULL : t;
	map_put(&l->value, v, l);
	if (!n || depth == EVAL_DEPTH || n->nout != 1 || n->nin > 8 || !n->row || n->row->random || !v->type || type_elements(v->type) < 0 ||
	    type_elements(v->type) > 1 << 24)
		return NULL;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !(in[i] = (Tensor *)value_of(l, n->in[i], depth + 1)))
			return NULL;
	if (eval_node(n, in, out, &l->values, false) < 0)
		return NULL;
	map_put(&l->value, v, out[0]);
	return out[0];
}

/* ---- normalisations ---- */

/* Axes that are the last k of x: k, or 0. */
static int last_axes(const Value *x, const Value *axes)
{
	const Tensor *t = constant(axes);
	int rank = rank_of(x), k = t ? (int)tensor_elements(t) : 0;
	uint64_t seen = 0;

	if (rank < 1 || k < 1 || k > rank)
		return 0;
	for (int i = 0; i < k; i++) {
		int64_t a = tensor_int(t, i) + (tensor_int(t, i) < 0 ? rank : 0);

		if (a < rank - k || a >= rank)
			return 0;
		seen |= 1u << (a - (rank - k));
	}
	return seen == (1u << k) - 1 ? k : 0;
}

/* A scale or bias over the last k axes of x. */
static bool fits(const Value *v, const Value *x, int k)
{
	int rank = x->type->rank;

	if (rank_of(v) < 0 || v->type->rank > rank || v->type->elem != x->type->elem)
		return false;
	for (int i = 0; i < rank; i++) {
		Dim d = aligned(v, rank, i);

		if (!dim_same(d, 1) && (i < rank - k || !dim_same(d, x->type->dim[i])))
			return false;
	}
	return true;
}

static Value *ones(Lift *l, const Value *x, int k)
{
	int64_t dim[RANK_MAX];
	int rank = x->type->rank, n = 0;

	for (int i = rank - k; i < rank; i++)
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

typedef struct Norm { int k; double eps; } Norm;

static void norm_attrs(Node *n, const void *arg)
{
	const Norm *a = arg;

	add_int(n, "axis", -a->k);
	add_float(n, "epsilon", a->eps);
}

static bool put_norm(Lift *l, Match *m)
{
	Value *x = hole(m, "x"), *scale = hole(m, "scale"), *bias = hole(m, "bias"), *y = m->root->out[0];
	Norm a = { last_axes(x, hole(m, "axes")), 0 };

	if (!a.k || !scalar(hole(m, "eps"), &a.eps) || !(a.eps >= 0) || !same_type(x, y) || (scale && !fits(scale, x, a.k)) || (bias && !fits(bias, x, a.k)) ||
	    !replaceable(l, m))
		return false;
	if (!scale)
		scale = ones(l, x, a.k);
	put_node(l, m, !strcmp(m->rule->name, "RmsNorm") ? "RMSNormalization" : "LayerNormalization", y, bias ? 3 : 2, (Value *[]){ x, scale, bias },
	         norm_attrs, &a);
	return true;
}

static void group_attrs(Node *n, const void *arg)
{
	const Norm *a = arg;

	add_int(n, "num_groups", a->k);
	add_float(n, "epsilon", a->eps);
}

static bool put_group_norm(Lift *l, Match *m)
{
	Value *x = hole(m, "x"), *scale = hole(m, "scale"), *bias = hole(m, "bias"), *y = m->root->out[0];
	const Tensor *one = constant(hole(m, "one")), *zero = constant(hole(m, "zero")), *axes = constant(hole(m, "axes"));
	int rank = rank_of(x);
	const Node *inner = NULL;

	for (int i = 0; i < m->n; i++)
		if (is(m->node[i], "InstanceNormalization"))
			inner = m->node[i];
	const Type *t = inner ? in_type(inner, 0) : NULL;
	if (rank < 3 || !one || !zero || !axes || !filled(one, 1) || !filled(zero, 0) || !t || t->rank != 3 || !dim_same(t->dim[0], x->type->dim[0]) ||
	    tensor_elements(axes) != rank - 2 || !same_type(x, y))
		return false;
	for (int i = 0; i < rank - 2; i++)
		if (tensor_int(axes, i) != i + 1)
			return false;
	if (rank_of(scale) != 1 || rank_of(bias) != 1 || !dim_same(scale->type->dim[0], x->type->dim[1]) || !dim_same(bias->type->dim[0], x->type->dim[1]) ||
	    !replaceable(l, m))
		return false;
	put_node(l, m, "GroupNormalization", y, 3, (Value *[]){ x, scale, bias }, group_attrs, &(Norm){ (int)tensor_elements(one), attr_float(inner, "epsilon") });
	return true;
}

/* ---- activations ---- */

static void gelu_attrs(Node *n, const void *arg)
{
	node_attr_add(n, name_of("approximate"), AT_STRING)->u.s = name_of(arg);
}

static bool put_gelu(Lift *l, Match *m)
{
	Value *x = hole(m, "x"), *y = m->root->out[0];

	if (!same_type(x, y) || !dtype_is_float(x->type->elem) || !replaceable(l, m))
		return false;
	put_node(l, m, "Gelu", y, 1, &x, gelu_attrs, !strcmp(m->rule->name, "GeluTanh") ? "tanh" : "none");
	return true;
}

static void alpha_attr(Node *n, const void *arg)
{
	const double *alpha = arg;

	if (*alpha != 1)
		add_float(n, "alpha", *alpha);
}

static bool put_gated(Lift *l, Match *m)
{
	Value *a = hole(m, "a"), *b = hole(m, "b"), *alpha = hole(m, "alpha"), *y = m->root->out[0];
	double by = 1;

	if (constant(b) || !same_type(a, b) || !same_type(a, y) || (alpha && !scalar(alpha, &by)) || !replaceable(l, m))
		return false;
	put_node(l, m, "SwiGLU", y, 2, (Value *[]){ a, b }, alpha_attr, &by);
	return true;
}

/* ---- attention ---- */

typedef struct Heads {
	Value *q, *k, *v, *mask;
	double scale, cap;
	bool causal;
	int heads;                      /* 1 for operands with 3 axes, each a head of its own; 0 for 4 */
	Dim queries, keys;
} Heads;

static void attention_attrs(Node *n, const void *arg)
{
	const Heads *h = arg;
	Dim width = h->q->type->dim[h->q->type->rank - 1];

	if (h->causal)
		add_int(n, "is_causal", 1);
	if (h->heads) {
		add_int(n, "q_num_heads", h->heads);
		add_int(n, "kv_num_heads", h->heads);
	}
	if (!dim_known(width) || fabs(h->scale * sqrt((double)width) - 1) > 1e-6)
		add_float(n, "scale", h->scale);
	if (h->cap > 0)
		add_float(n, "softcap", h->cap);
}

static Value *permuted(Lift *l, const Match *m, Value *x, const int64_t *perm)
{
	int rank = x->type->rank;
	bool still = true;

	for (int i = 0; i < rank; i++)
		still &= perm[i] == i;
	if (still)
		return x;
	Attr *a;
	Node *n = node_new(l->g, name_of(""), name_of("Transpose"), m->root->loc);
	n->name = m->root->name;
	n->stage = m->root->stage;
	n->annot = m->root->annot;
	n->from = m->root->from;
	a = node_attr_add(n, name_of("perm"), AT_INTS);
	for (int i = 0; i < rank; i++)
		arena_push(l->g->arena, a->u.is, a->n, perm[i]);
	node_in(n, x);
	Value *y = graph_fresh(l->g, name_fmt("%s.keys", m->root->out[0]->name));
	node_out(n, y);
	if (inline_append(l->g, n) < 0)
		die("lift: a Transpose in the place of %s", m->root->out[0]->name);
	return y;
}

/* The matrices of k, turned by way of a Reshape to three axes and back. */
static Value *turned_flat(const Value *kt)
{
	const Node *back = kt->def, *turn = is(back, "Reshape") ? back->in[0]->def : NULL, *flat = is(turn, "Transpose") ? turn->in[0]->def : NULL;
	int n;
	const int64_t *perm = flat ? attr_ints(turn, "perm", &n) : NULL;

	if (!is(flat, "Reshape") || !perm || n != 3 || perm[0] != 0 || perm[1] != 2 || perm[2] != 1)
		return NULL;
	Value *k = flat->in[0];
	const Type *t = rank_of(k) == 4 ? k->type : NULL, *f = flat->out[0]->type, *r = kt->type;
	if (!t || r->rank != 4 || f->rank != 3)
		return NULL;
	bool good = dim_same(f->dim[1], t->dim[2]) && dim_same(f->dim[2], t->dim[3]) && dim_same(r->dim[0], t->dim[0]) && dim_same(r->dim[1], t->dim[1]) &&
		    dim_same(r->dim[2], t->dim[3]) && dim_same(r->dim[3], t->dim[2]);
	return good ? k : NULL;
}

/* k such that kt is k with its last two axes exchanged; a number that k was multiplied by goes into the scale. */
static Value *keys_of(Lift *l, const Match *m, Value *kt, double *scale)
{
	int rank = kt->type->rank, n;
	int64_t perm[RANK_MAX];
	Value *k = turned_flat(kt), *inner = kt;
	double by;

	for (int i = 0; i < rank; i++)
		perm[i] = i;
	if (!k && is(kt->def, "Transpose")) {
		const int64_t *p = attr_ints(kt->def, "perm", &n);

		inner = kt->def->in[0];
		for (int i = 0; i < rank; i++)
			perm[i] = n == rank ? p[i] : rank - 1 - i;
	}
	if (!k) {
		if (is(inner->def, "Mul") && inner != kt)
			for (int i = 0; i < 2; i++)
				if (scalar(inner->def->in[i], &by) && same_type(inner->def->in[1 - i], inner)) {
					*scale *= by;
					inner = inner->def->in[1 - i];
					break;
				}
		int64_t last = perm[rank - 1];
		perm[rank - 1] = perm[rank - 2];
		perm[rank - 2] = last;
		k = permuted(l, m, inner, perm);
	}
	return k;
}

/* The heads from which x was made by repeating each of them; NULL when it was not. */
static Value *unrepeated(const Value *x)
{
	const Node *back = x->def, *wide = is(back, "Reshape") ? back->in[0]->def : NULL, *apart = is(wide, "Expand") ? wide->in[0]->def : NULL;
	const Type *w = apart && wide->out[0] ? wide->out[0]->type : NULL, *t;

	if (!w || w->rank != 5 || rank_of(x) != 4 || (!is(apart, "Unsqueeze") && !is(apart, "Reshape")) || rank_of(apart->in[0]) != 4)
		return NULL;
	t = apart->in[0]->type;
	const Type *a = apart->out[0]->type;
	bool good = a->rank == 5 && dim_same(a->dim[2], 1) && dim_known(t->dim[1]) && dim_known(w->dim[2]) && dim_same(x->type->dim[1], t->dim[1] * w->dim[2]);
	for (int i = 0; i < 4; i++) {
		int at = i < 2 ? i : i + 1;

		good &= dim_same(a->dim[at], t->dim[i]) && dim_same(w->dim[at], t->dim[i]) && (i == 1 || dim_same(x->type->dim[i], t->dim[i]));
	}
	return good ? apart->in[0] : NULL;
}

/* A matrix of queries by keys whose element depends on one thing: whether the key comes after the query. */
typedef struct Triangle { double upto, after; } Triangle;

static bool uniform(const Value *v, double *x)
{
	const Tensor *t = constant(v);
	const Node *n = v->def;

	if (t) {
		*x = tensor_elements(t) ? tensor_get(t, 0) : 0;
		return tensor_elements(t) > 0 && filled(t, *x);
	}
	if (is(n, "ConstantOfShape")) {
		const Attr *a = node_attr(n, "value");

		*x = a && a->type == AT_TENSOR ? tensor_get(a->u.t, 0) : 0;
		return true;
	}
	return is(n, "Expand") && uniform(n->in[0], x);
}

static bool triangle_data(const Tensor *t, Triangle *y)
{
	int r = t->rank;
	int64_t rows = r < 2 ? 0 : t->dim[r - 2], cols = r < 2 ? 0 : t->dim[r - 1];

	if (rows < 1 || cols < 2 || tensor_elements(t) != rows * cols)
		return false;
	*y = (Triangle){ tensor_get(t, 0), tensor_get(t, 1) };
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			if (tensor_get(t, i * cols + j) != (j > i ? y->after : y->upto))
				return false;
	return true;
}

/* 0, 1, 2 ... along the last axis but one (way 1) or the last (way 0). */
static bool counts(const Value *v, int way)
{
	const Node *n = v->def, *r = is(n, "Unsqueeze") || is(n, "Reshape") ? n->in[0]->def : n;
	int rank = rank_of(v);
	double first, step;

	if (!is(r, "Range") || rank < 1 || (way && (rank < 2 || !dim_same(v->type->dim[rank - 1], 1))))
		return false;
	for (int i = 0; i < rank; i++)
		if (i != rank - 1 - way && !dim_same(v->type->dim[i], 1))
			return false;
	return uniform(r->in[0], &first) && uniform(r->in[2], &step) && first == 0 && step == 1;
}

static bool from_the_corner(const Node *n)
{
	const Tensor *start = in_const(n, 1), *step = in_const(n, 4);

	return start && filled(start, 0) && (n->nin < 5 || !n->in[4] || (step && filled(step, 1)));
}

static double compare(const char *op, double a, double b)
{
	return !strcmp(op, "Equal") ? a == b : !strcmp(op, "Less") ? a < b : !strcmp(op, "LessOrEqual") ? a <= b : !strcmp(op, "Greater") ? a > b :
	       !strcmp(op, "GreaterOrEqual") ? a >= b : NAN;
}

static bool triangle_of(Lift *l, Value *v, int depth, Triangle *y)
{
	const Tensor *t = constant(v);
	const Node *n = v->def;
	double a, b;

	if (t)
		return triangle_data(t, y);
	if (!n || depth == EVAL_DEPTH || n->nin < 1 || !n->in[0])
		return false;
	if (is(n, "Trilu")) {
		const Tensor *k = in_const(n, 1);
		bool upper = attr_int(n, "upper") != 0, given = n->nin > 1 && n->in[1];

		if (!uniform(n->in[0], &a) || (given && !k) || (given ? tensor_int(k, 0) : 0) != (upper ? 1 : 0))
			return false;
		*y = upper ? (Triangle){ 0, a } : (Triangle){ a, 0 };
		return true;
	}
	if (n->nin == 2 && n->in[1] && !isnan(compare(n->op, 0, 0))) {
		if (counts(n->in[0], 1) && counts(n->in[1], 0))
			*y = (Triangle){ compare(n->op, 1, 0), compare(n->op, 0, 1) };
		else if (counts(n->in[0], 0) && counts(n->in[1], 1))
			*y = (Triangle){ compare(n->op, 0, 1), compare(n->op, 1, 0) };
		else if (uniform(n->in[1], &b) && triangle_of(l, n->in[0], depth + 1, y))
			*y = (Triangle){ compare(n->op, y->upto, b), compare(n->op, y->after, b) };
		else
			return false;
		/* on the diagonal both are equal: that must be on the side of what came before */
		return !counts(n->in[0], 1) && !counts(n->in[0], 0) ? true : compare(n->op, 0, 0) == y->upto;
	}
	if (is(n, "Where") && uniform(n->in[1], &a) && uniform(n->in[2], &b) && triangle_of(l, n->in[0], depth + 1, y)) {
		*y = (Triangle){ y->upto != 0 ? a : b, y->after != 0 ? a : b };
		return true;
	}
	if ((is(n, "Mul") || is(n, "Sub")) && n->nin == 2) {
		int at = uniform(n->in[1], &b) ? 0 : 1;

		if ((at && !uniform(n->in[0], &b)) || !triangle_of(l, n->in[at], depth + 1, y))
			return false;
		*y = is(n, "Mul") ? (Triangle){ y->upto * b, y->after * b } : at ? (Triangle){ b - y->upto, b - y->after } : (Triangle){ y->upto - b, y->after - b };
		return !isnan(y->upto) && !isnan(y->after);
	}
	if (is(n, "Not")) {
		if (!triangle_of(l, n->in[0], depth + 1, y))
			return false;
		*y = (Triangle){ y->upto == 0, y->after == 0 };
		return true;
	}
	/* Views that keep rows and columns: only axes of length 1 in front of them come or go. */
	if (is(n, "Slice") ? from_the_corner(n) : is(n, "Cast") || is(n, "Unsqueeze") || is(n, "Reshape") || is(n, "Expand") || is(n, "Identity")) {
		int r = rank_of(v), s = rank_of(n->in[0]);

		for (int i = 1; i <= 2 && !is(n, "Slice"); i++)
			if (r < 2 || s < 2 || !dim_same(v->type->dim[r - i], n->in[0]->type->dim[s - i]))
				return false;
		return triangle_of(l, n->in[0], depth + 1, y);
	}
	return false;
}

/* Is it such a matrix, and no larger than one per batch and head? */
static bool causal(Lift *l, Value *v, Dim queries, Dim keys, Triangle *y)
{
	int r = rank_of(v);

	if (r < 2 || !dim_same(v->type->dim[r - 2], queries) || !dim_same(v->type->dim[r - 1], keys))
		return false;
	for (int i = 0; i < r - 2; i++)
		if (!dim_same(v->type->dim[i], 1))
			return false;
	if (triangle_of(l, v, 0, y))
		return true;
	const Tensor *t = value_of(l, v, 0);
	return t && triangle_data(t, y);
}

static bool is_low(double v)
{
	return v <= -1e9;
}

/* A mask that is added.  One that only hides by -inf is a bool mask. */
static bool added_mask(Lift *l, Heads *h, Value *mask, Value **rest)
{
	const Tensor *t = value_of(l, mask, 0);
	Triangle y;

	if (!mask->type || !dtype_is_float(mask->type->elem))
		return false;
	if (t && filled(t, 0))
		return true;
	if (causal(l, mask, h->queries, h->keys, &y) && y.upto == 0 && is_low(y.after)) {
		h->causal = true;
		return true;
	}
	if (*rest)
		return false;
	*rest = mask;
	return true;
}

/* A row of a bool mask in which nothing is shown. */
static bool some_row_empty(const Tensor *t, bool shown_is)
{
	int64_t n = tensor_elements(t), keys = t->rank ? t->dim[t->rank - 1] : 1;

	for (int64_t i = 0; i < n; i += keys) {
		bool any = false;

		for (int64_t j = 0; j < keys && i + j < n; j++)
			any |= (tensor_get(t, i + j) != 0) == shown_is;
		if (!any)
			return true;
	}
	return false;
}

/* Where(hide, low, s) or Where(show, s, low). */
static bool chosen_mask(Lift *l, Heads *h, Value *cond, Value *lowv, bool shown_is, Value **build_from)
{
	const Tensor *t = value_of(l, cond, 0), *lt = value_of(l, lowv, 0);
	Triangle y;

	if (!lt || tensor_elements(lt) != 1)
		return false;
	double low = tensor_get(lt, 0);
	if (!is_low(low))
		return false;
	if (t && filled(t, shown_is))
		return true;
	if (causal(l, cond, h->queries, h->keys, &y) && (y.upto != 0) == shown_is && (y.after != 0) != shown_is) {
		h->causal = true;
		return true;
	}
	/* A row with nothing shown is even with a finite number, empty with -inf: only then a bool mask says the same. */
	if (low != -INFINITY && !(t && !some_row_empty(t, shown_is)))
		return false;
	*build_from = cond;
	return true;
}

static bool broadcasts(const Value *mask, const Value *p)
{
	int rank = p->type->rank;

	if (rank_of(mask) < 0 || mask->type->rank > rank)
		return false;
	for (int i = 0; i < rank; i++)
		if (!dim_same(aligned(mask, rank, i), 1) && !dim_same(aligned(mask, rank, i), p->type->dim[i]))
			return false;
	return true;
}

/* The factors of the scale, wherever they stand. */
static bool scale_of(const Match *m, double *scale)
{
	static const char *const names[] = { "qtimes", "ktimes", "times", "over" };
	double v;

	*scale = 1;
	for (int i = 0; i < 4; i++) {
		Value *x = hole(m, names[i]);

		if (!x)
			continue;
		if (!scalar(x, &v) || v == 0)
			return false;
		bool divides = i == 3;
		if (i == 0)             /* is q divided by it? */
			for (int k = 0; k < m->n; k++)
				divides |= is(m->node[k], "Div") && m->node[k]->in[1] == x && m->node[k]->in[0] == hole(m, "q");
		*scale = divides ? *scale / v : *scale * v;
	}
	return true;
}

static bool cap_of(const Match *m, double *cap)
{
	double under;
	Value *c = hole(m, "cap"), *u = hole(m, "under");

	*cap = 0;
	return !c || (scalar(c, cap) && scalar(u, &under) && near(*cap, under) && *cap > 0);
}

static bool put_attention(Lift *l, Match *m)
{
	Heads h = { .q = hole(m, "q"), .v = hole(m, "v") };
	Value *kt = hole(m, "kt"), *y = m->root->out[0], *p = m->root->in[0], *add = NULL, *cond = NULL;
	Value *mask = hole(m, "mask"), *mask2 = hole(m, "mask2"), *hide = hole(m, "hide"), *show = hole(m, "show"), *low = hole(m, "low");
	int rank = rank_of(h.q);

	if ((rank != 3 && rank != 4) || rank_of(kt) != rank || rank_of(h.v) != rank || rank_of(p) != rank || rank_of(y) != rank ||
	    !dtype_is_float(h.q->type->elem) || kt->type->elem != h.q->type->elem || h.v->type->elem != h.q->type->elem || !dim_known(kt->type->dim[rank - 2]))
		return false;
	for (int i = 0; i < rank - 2; i++)
		if (!dim_same(h.q->type->dim[i], kt->type->dim[i]) || !dim_same(h.q->type->dim[i], h.v->type->dim[i]) || !dim_same(h.q->type->dim[i], p->type->dim[i]))
			return false;
	h.queries = h.q->type->dim[rank - 2];
	h.keys = kt->type->dim[rank - 1];
	if (!dim_same(p->type->dim[rank - 2], h.queries) || !dim_same(p->type->dim[rank - 1], h.keys) || (rank == 4 && !dim_known(h.q->type->dim[1])) ||
	    !scale_of(m, &h.scale) || !cap_of(m, &h.cap))
		return false;
	if ((mask && (!broadcasts(mask, p) || !added_mask(l, &h, mask, &add))) || (mask2 && (!broadcasts(mask2, p) || !added_mask(l, &h, mask2, &add))) ||
	    (hide && (!broadcasts(hide, p) || !chosen_mask(l, &h, hide, low, false, &cond))) ||
	    (show && (!broadcasts(show, p) || !chosen_mask(l, &h, show, low, true, &cond))))
		return false;
	if (!replaceable(l, m))
		return false;
	/* Nothing can fail from here on. */
	h.k = keys_of(l, m, kt, &h.scale);
	Value *k0 = unrepeated(h.k), *v0 = unrepeated(h.v);
	if (k0 && v0 && dim_same(k0->type->dim[1], v0->type->dim[1])) {
		h.k = k0;
		h.v = v0;
	}
	h.mask = add;
	const Node *w = add ? add->def : NULL;
	double shown, hidden;
	if (is(w, "Where") && scalar(w->in[1], &shown) && scalar(w->in[2], &hidden) && shown == 0 && hidden == -INFINITY && same_type(w->in[0], w->in[0]) &&
	    w->in[0]->type->rank == add->type->rank)
		h.mask = w->in[0];
	if (cond && show)
		h.mask = cond;
	if (cond && hide)
		h.mask = is(cond->def, "Not") ? cond->def->in[0] : put_node(l, m, "Not", NULL, 1, &cond, NULL, NULL);
	h.heads = rank == 3;
	if (rank == 3 && h.mask && h.mask->type->rank == 3) {
		Value *axes = graph_const(l->g, tensor_ints(l->g->arena, (int64_t[]){ 1 }, 1), "axes");

		h.mask = put_node(l, m, "Unsqueeze", NULL, 2, (Value *[]){ h.mask, axes }, NULL, NULL);
	}
	put_node(l, m, "Attention", y, h.mask ? 4 : 3, (Value *[]){ h.q, h.k, h.v, h.mask }, attention_attrs, &h);
	return true;
}

/* ---- rotary embedding ---- */

typedef struct Part { Value *of; int64_t first, step; Dim len; } Part;

/* v as a regular part of the last axis of another value. */
static bool part_of(const Value *v, Part *p)
{
	const Node *n = v->def;
	int rank = rank_of(v), axis;

	if (!n || rank < 1)
		return false;
	*p = (Part){ n->in[0], 0, 1, v->type->dim[rank - 1] };
	if (is(n, "Split") && op_axis((Node *)n, attr_int(n, "axis"), rank, &axis) == 0 && axis == rank - 1) {
		for (int i = 0; i < v->defidx; i++) {
			if (!n->out[i] || !dim_known(n->out[i]->type->dim[axis]))
				return false;
			p->first += n->out[i]->type->dim[axis];
		}
		return true;
	}
	const Tensor *start = in_const(n, 1), *axes = in_const(n, 3), *step = in_const(n, 4);
	if (!is(n, "Slice") || !start || tensor_elements(start) != 1 || !axes || tensor_elements(axes) != 1 || (n->nin > 4 && n->in[4] && !step))
		return false;
	int64_t a = tensor_int(axes, 0), first = tensor_int(start, 0);
	Dim whole = p->of->type->dim[rank - 1];
	if ((a != -1 && a != rank - 1) || !dim_known(whole))
		return false;
	p->step = step ? tensor_int(step, 0) : 1;
	p->first = first < 0 ? first + whole : first;
	return p->step > 0 && p->first >= 0;
}

/* Is the last axis of a table two equal halves, or pairs of equal numbers? */
static bool repeats(Lift *l, Value *v, bool pairs, int depth)
{
	const Tensor *t = value_of(l, v, 0);
	int rank = rank_of(v);
	Node *n = v->def;

	if (rank < 1 || depth == EVAL_DEPTH)
		return false;
	if (t) {
		int64_t width = t->dim[rank - 1], half = width / 2;

		for (int64_t i = 0; i < tensor_elements(t); i++) {
			int64_t j = i % width, other = pairs ? (j ^ 1) : (j + half) % width;

			if (width % 2 || tensor_get(t, i) != tensor_get(t, i - j + other))
				return false;
		}
		return true;
	}
	if (!n || !n->in[0])
		return false;
	double by;
	if (is(n, "Cos") || is(n, "Sin") || is(n, "Cast"))
		return repeats(l, n->in[0], pairs, depth + 1);
	if (is(n, "Mul") && (scalar(n->in[1], &by) || scalar(n->in[0], &by)))
		return repeats(l, n->in[scalar(n->in[1], &by) ? 0 : 1], pairs, depth + 1);
	if (is(n, "Concat") && n->nin == 2 && !pairs)
		return n->in[0] == n->in[1] && (attr_int(n, "axis") == -1 || attr_int(n, "axis") == rank - 1);
	if (is(n, "Gather"))
		return attr_int(n, "axis") == 0 && rank_of(n->in[0]) > 1 && repeats(l, n->in[0], pairs, depth + 1);
	if (is(n, "Unsqueeze") || is(n, "Squeeze") || is(n, "Reshape") || is(n, "Expand") || is(n, "Slice"))
		return rank_of(n->in[0]) > 0 && dim_same(n->in[0]->type->dim[n->in[0]->type->rank - 1], v->type->dim[rank - 1]) && dim_known(v->type->dim[rank - 1]) &&
		       v->type->dim[rank - 1] > 1 && repeats(l, n->in[0], pairs, depth + 1);
	return false;
}

/* Does the table broadcast over the heads of x, [batch, heads, places, width], with this width? */
static bool table_fits(const Value *c, const Value *x, Dim width)
{
	if (rank_of(c) < 2 || c->type->rank > 4 || c->type->elem != x->type->elem)
		return false;
	return (dim_same(aligned(c, 4, 0), 1) || dim_same(aligned(c, 4, 0), x->type->dim[0])) && dim_same(aligned(c, 4, 1), 1) &&
	       dim_same(aligned(c, 4, 2), x->type->dim[2]) && dim_same(aligned(c, 4, 3), width);
}

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

/* The table as [batch or 1, places, pairs], made once, right after the table itself. */
static Value *cache_of(Lift *l, Value *c, Dim width, Dim pairs, bool neighbours)
{
	Graph *g = l->g;
	Value *r = map_get(&l->table, c);
	Node *d = c->def;
	int rank = c->type->rank;

	if (r)
		return r;
	r = c;
	if (!dim_same(width, pairs)) {
		int64_t none = 0, end = neighbours ? width : pairs, axis = rank - 1, step = neighbours ? 2 : 1;
		Value *ops[4];
		int64_t *v[4] = { &none, &end, &axis, &step };

		for (int i = 0; i < 4; i++)
			ops[i] = graph_const(g, tensor_ints(g->arena, v[i], 1), "part");
		r = build(g, d ? d->loc : c->loc, "Slice", NULL, 1, NULL, 5, r, ops[0], ops[1], ops[2], ops[3]);
	}
	if (rank != 3) {
		int64_t axis = rank == 4 ? 1 : 0;

		r = build(g, d ? d->loc : c->loc, rank == 4 ? "Squeeze" : "Unsqueeze", NULL, 1, NULL, 2, r, graph_const(g, tensor_ints(g->arena, &axis, 1), "axes"));
	}
	if (!r)
		die("lift: the table %s", c->name);
	if (r != c && constant(r)) {
		r = graph_const(g, r->data, name_fmt("%s.cache", c->name));
		g->nnode = 0;
	}
	map_put(&l->table, c, r);
	take(l, !d ? 0 : d->mark < l->nold && l->old[d->mark] == d ? d->mark + 1 : d->mark);
	return r;
}

typedef struct Turn { bool neighbours; Dim front; } Turn;

static void rotary_attrs(Node *n, const void *arg)
{
	const Turn *t = arg;

	if (t->neighbours)
		add_int(n, "interleaved", 1);
	if (t->front)
		add_int(n, "rotary_embedding_dim", t->front);
}

/* The value of whose heads x is the front and rest is the remainder; NULL when they are not. */
static Value *whole_heads(const Value *x, const Value *rest)
{
	Part p, q;

	if (!part_of(x, &p) || !part_of(rest, &q) || p.of != q.of || p.first != 0 || p.step != 1 || q.step != 1 || !dim_same(p.len, q.first) ||
	    !dim_same(p.of->type->dim[3], dim_add(p.len, q.len)))
		return NULL;
	return p.of;
}

static bool put_rotary(Lift *l, Match *m)
{
	Value *x = hole(m, "x"), *a = hole(m, "a"), *b = hole(m, "b"), *cos = hole(m, "cos"), *sin = hole(m, "sin"), *y = m->root->out[0];
	bool neighbours = hole(m, "shape") != NULL, full = x != NULL;
	Part pa, pb;

	if (!part_of(a, &pa) || !part_of(b, &pb) || pa.of != pb.of || (x && x != pa.of) || rank_of(pa.of) != 4)
		return false;
	x = pa.of;
	Dim width = x->type->dim[3];
	if (!dim_known(width) || width % 2 || !dim_same(pa.len, width / 2) || !dim_same(pb.len, width / 2) || pa.first != 0)
		return false;
	if (neighbours ? pa.step != 2 || pb.step != 2 || pb.first != 1 : pa.step != 1 || pb.step != 1 || pb.first != width / 2)
		return false;
	const Tensor *end = neighbours ? constant(hole(m, "end")) : NULL;
	if (neighbours && (!end || tensor_elements(end) != 1 || (tensor_int(end, 0) != -1 && tensor_int(end, 0) != 4)))
		return false;
	Dim have = full ? width : width / 2;
	Value *whole = x;
	if (hole(m, "rest") && !(whole = whole_heads(x, hole(m, "rest"))))
		return false;
	if (!same_type(whole, y) || !table_fits(cos, x, have) || !table_fits(sin, x, have) || (full && (!repeats(l, cos, neighbours, 0) || !repeats(l, sin, neighbours, 0))) ||
	    !replaceable(l, m))
		return false;
	Value *c = cache_of(l, cos, have, width / 2, neighbours), *s = cache_of(l, sin, have, width / 2, neighbours);
	put_node(l, m, "RotaryEmbedding", y, 3, (Value *[]){ whole, c, s }, rotary_attrs, &(Turn){ neighbours, whole == x ? 0 : width });
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
	{ "Attend", put_attention },
	{ "Rotary", put_rotary },
};
enum { NRULE = sizeof rules / sizeof rules[0] };

/* Which rules may begin at an operator: through calls of other patterns down to the operators. */
static void note_roots(Map *roots, const Function *f, int rule, int depth)
{
	const Node *n = f->body->out[0]->def;

	if (!n || depth > 8)
		return;
	if (!is_pattern(n)) {
		map_put(roots, n->op, (void *)((uintptr_t)map_get(roots, n->op) | (uintptr_t)1 << rule));
		return;
	}
	for (int i = 0; i < patterns->nfunction; i++)
		if (patterns->function[i]->name == n->op)
			note_roots(roots, patterns->function[i], rule, depth + 1);
}

static const Map *read_patterns(void)
{
	static Map roots;

	if (patterns)
		return &roots;
	patterns = model_new();
	map_init(&roots, &process);
	if (parse_library(file_memory("patterns", grammar, sizeof grammar - 1), patterns))
		die("lift: the patterns do not parse");
	for (int r = 0; r < NRULE; r++)
		for (int i = 0; i < patterns->nfunction; i++)
			if (!strcmp(patterns->function[i]->name, rules[r].name))
				note_roots(&roots, patterns->function[i], r, 0);
	return &roots;
}

static bool try_rule(Lift *l, Node *n, const Rule *rule)
{
	bool done = false;
	Arena tmp = { 0 };

	l->a = &tmp;
	for (int i = 0; i < patterns->nfunction && !done; i++) {
		const Function *f = patterns->function[i];

		if (strcmp(f->name, rule->name))
			continue;
		Match m = { .root = n, .rule = rule, .top = frame_new(l, f, NULL, NULL) };
		done = solve(l, &m, &(Goal){ f->body->out[0], m.top, n->out[0], NULL });
	}
	arena_free(&tmp);
	return done;
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
		if (n->out[k] && n->out[k]->def == n)
			n->out[k]->def = NULL;
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
	for (int r = 0; may && r < NRULE; r++)
		if (may >> r & 1 && try_rule(l, n, &rules[r])) {
			take(l, i);
			remove_node(l, i);
			l->lifted++;
			return;
		}
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
	return l.lifted ? fold_run(g) : 0;      /* what was built is written in one way too */
}
