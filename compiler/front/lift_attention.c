/* Lifting of scaled dot-product attention and rotary embedding: see lift.c.
 *
 * Attention: the scale is the product of the factors found on q, on k and on their product.  Keys are found by
 * transposing the matrix that q is multiplied with, so it does not matter how that was computed.  Heads that were
 * repeated are read before they are repeated.  A mask that hides exactly the keys after each query becomes the
 * attribute is_causal: it is recognised by its contents, or with unknown lengths by its nodes.  Another mask becomes an
 * operand, as bool only where that means the same: a row that hides all keys gives zeros with -inf, but equal weights
 * with a finite number.  Attention has no Dropout of the weights, so a model trained with it keeps its two products,
 * softmax and Dropout.
 *
 * Rotary embedding: whether the heads stand before or after the positions follows from the axis that the tables
 * broadcast over. */
#include "front/front.h"

#include <math.h>
#include <string.h>

enum { EVAL_DEPTH = 24 };

/* ---- attention ---- */

static Value *vector(Graph *g, int64_t v)
{
	return graph_const(g, tensor_ints(g->arena, &v, 1), "part");
}

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
	Dim width = h->q->type->dim[h->q->type->ndim - 1];

	if (h->causal)
		lift_int(n, "is_causal", 1);
	if (h->heads) {
		lift_int(n, "q_num_heads", h->heads);
		lift_int(n, "kv_num_heads", h->heads);
	}
	if (!dim_known(width) || fabs(h->scale * sqrt((double)width) - 1) > 1e-6)
		lift_float(n, "scale", h->scale);
	if (h->cap > 0)
		lift_float(n, "softcap", h->cap);
}

typedef struct Perm {
	int n;
	int64_t axis[NDIM_MAX];
} Perm;

static void perm_attr(Node *n, const void *arg)
{
	const Perm *p = arg;
	Attr *a = node_attr_add(n, name_of("perm"), AT_INTS);

	for (int i = 0; i < p->n; i++)
		arena_push(n->graph->arena, a->u.is, a->n, p->axis[i]);
}

static Value *permuted(Lift *l, const Match *m, Value *x, const Perm *p)
{
	bool still = true;

	for (int i = 0; i < p->n; i++)
		still &= p->axis[i] == i;
	return still ? x : lift_put(l, m, "Transpose", NULL, 1, &x, perm_attr, p);
}

/* k, if kt is k transposed by way of a Reshape to three axes and back; else NULL. */
static Value *turned_flat(const Value *kt)
{
	const Node *back = kt->def, *turn = node_is(back, "Reshape") ? back->in[0]->def : NULL;
	const Node *flat = node_is(turn, "Transpose") ? turn->in[0]->def : NULL;
	int n;
	const int64_t *perm = flat ? attr_ints(turn, "perm", &n) : NULL;

	if (!node_is(flat, "Reshape") || !perm || n != 3 || perm[0] != 0 || perm[1] != 2 || perm[2] != 1)
		return NULL;
	Value *k = flat->in[0];
	const Type *t = lift_ndim(k) == 4 ? k->type : NULL, *f = flat->out[0]->type, *r = kt->type;
	if (!t || r->ndim != 4 || f->ndim != 3)
		return NULL;
	bool good = dim_same(f->dim[1], t->dim[2]) && dim_same(f->dim[2], t->dim[3]) &&
	            dim_same(r->dim[0], t->dim[0]) && dim_same(r->dim[1], t->dim[1]) &&
	            dim_same(r->dim[2], t->dim[3]) && dim_same(r->dim[3], t->dim[2]);
	return good ? k : NULL;
}

/* k such that kt is k with its last two axes exchanged.  A number that k was multiplied by becomes part of the
 * scale. */
static Value *keys_of(Lift *l, const Match *m, Value *kt, double *scale)
{
	int ndim = kt->type->ndim, n;
	Perm perm = { .n = ndim };
	Value *k = turned_flat(kt), *inner = kt;
	double by;

	if (k)
		return k;
	for (int i = 0; i < ndim; i++)
		perm.axis[i] = i;
	if (node_is(kt->def, "Transpose")) {
		const int64_t *p = attr_ints(kt->def, "perm", &n);

		inner = kt->def->in[0];
		for (int i = 0; i < ndim; i++)
			perm.axis[i] = n == ndim ? p[i] : ndim - 1 - i;
		for (int i = 0; node_is(inner->def, "Mul") && i < 2; i++)
			if (lift_scalar(inner->def->in[i], &by) && lift_same_type(inner->def->in[1 - i], inner)) {
				*scale *= by;
				inner = inner->def->in[1 - i];
			}
	}
	int64_t last = perm.axis[ndim - 1];
	perm.axis[ndim - 1] = perm.axis[ndim - 2];
	perm.axis[ndim - 2] = last;
	return permuted(l, m, inner, &perm);
}

/* The heads that x repeats; NULL: it does not repeat any. */
static Value *unrepeated(const Value *x)
{
	const Node *back = x->def, *wide = node_is(back, "Reshape") ? back->in[0]->def : NULL;
	const Node *apart = node_is(wide, "Expand") ? wide->in[0]->def : NULL;
	const Type *w = apart && wide->out[0] ? wide->out[0]->type : NULL, *t;

	if (!w || w->ndim != 5 || lift_ndim(x) != 4)
		return NULL;
	if ((!node_is(apart, "Unsqueeze") && !node_is(apart, "Reshape")) || lift_ndim(apart->in[0]) != 4)
		return NULL;
	t = apart->in[0]->type;
	const Type *a = apart->out[0]->type;
	bool good = a->ndim == 5 && dim_same(a->dim[2], 1) && dim_known(t->dim[1]) && dim_known(w->dim[2]) &&
	            dim_same(x->type->dim[1], t->dim[1] * w->dim[2]);
	for (int i = 0; i < 4; i++) {
		int at = i < 2 ? i : i + 1;

		good &= dim_same(a->dim[at], t->dim[i]) && dim_same(w->dim[at], t->dim[i]) &&
		        (i == 1 || dim_same(x->type->dim[i], t->dim[i]));
	}
	return good ? apart->in[0] : NULL;
}

/* A matrix of queries by keys with two values: one up to the query, the other for keys after it. */
typedef struct Triangle {
	double upto, after;
} Triangle;

static bool uniform(const Value *v, double *x)
{
	const Tensor *t = lift_constant(v);
	const Node *n = v->def;

	if (t) {
		*x = tensor_elements(t) ? tensor_get(t, 0) : 0;
		return tensor_elements(t) > 0 && lift_filled(t, *x);
	}
	if (node_is(n, "ConstantOfShape")) {
		const Attr *a = node_attr(n, "value");

		*x = a && a->type == AT_TENSOR ? tensor_get(a->u.t, 0) : 0;
		return true;
	}
	return node_is(n, "Expand") && uniform(n->in[0], x);
}

static bool triangle_data(const Tensor *t, Triangle *y)
{
	int r = t->ndim;
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
	const Node *n = v->def, *r = node_is(n, "Unsqueeze") || node_is(n, "Reshape") ? n->in[0]->def : n;
	int ndim = lift_ndim(v);
	double first, step;

	if (!node_is(r, "Range") || ndim < 1 || (way && (ndim < 2 || !dim_same(v->type->dim[ndim - 1], 1))))
		return false;
	for (int i = 0; i < ndim; i++)
		if (i != ndim - 1 - way && !dim_same(v->type->dim[i], 1))
			return false;
	return uniform(r->in[0], &first) && uniform(r->in[2], &step) && first == 0 && step == 1;
}

static bool from_the_corner(const Node *n)
{
	const Tensor *start = operand_const(n, 1), *step = operand_const(n, 4);

	return start && lift_filled(start, 0) && (n->nin < 5 || !n->in[4] || (step && lift_filled(step, 1)));
}

/* The result of a comparison; NAN: op is none. */
static double compare(const char *op, double a, double b)
{
	if (!strcmp(op, "Equal"))
		return a == b;
	if (!strcmp(op, "Less"))
		return a < b;
	if (!strcmp(op, "LessOrEqual"))
		return a <= b;
	if (!strcmp(op, "Greater"))
		return a > b;
	return !strcmp(op, "GreaterOrEqual") ? a >= b : NAN;
}

/* A view that keeps rows and columns: only axes of length 1 in front of them come or go. */
static bool keeps_matrix(const Value *v, const Node *n)
{
	static const char *const list[] = { "Cast", "Unsqueeze", "Reshape", "Expand", "Identity", NULL };
	int r = lift_ndim(v), s = lift_ndim(n->in[0]);
	bool view = false;

	if (node_is(n, "Slice"))
		return from_the_corner(n);
	for (int i = 0; list[i]; i++)
		view |= node_is(n, list[i]);
	for (int i = 1; i <= 2 && view; i++)
		view = r >= 2 && s >= 2 && dim_same(v->type->dim[r - i], n->in[0]->type->dim[s - i]);
	return view;
}

static bool triangle_of(Lift *l, Value *v, int depth, Triangle *y)
{
	const Tensor *t = lift_constant(v);
	const Node *n = v->def;
	double a, b;

	if (t)
		return triangle_data(t, y);
	if (!n || depth == EVAL_DEPTH || n->nin < 1 || !n->in[0])
		return false;
	if (node_is(n, "Trilu")) {
		const Tensor *k = operand_const(n, 1);
		bool upper = attr_int(n, "upper") != 0, given = n->nin > 1 && n->in[1];

		if (!uniform(n->in[0], &a) || (given && !k) ||
			(given ? tensor_int(k, 0) : 0) != (upper ? 1 : 0))
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
		/* on the diagonal both indices are equal: it must have the value of the keys before */
		bool indices = counts(n->in[0], 1) || counts(n->in[0], 0);
		return !indices || compare(n->op, 0, 0) == y->upto;
	}
	if (node_is(n, "Where") && uniform(n->in[1], &a) && uniform(n->in[2], &b) &&
		triangle_of(l, n->in[0], depth + 1, y)) {
		*y = (Triangle){ y->upto != 0 ? a : b, y->after != 0 ? a : b };
		return true;
	}
	if ((node_is(n, "Mul") || node_is(n, "Sub")) && n->nin == 2) {
		int at = uniform(n->in[1], &b) ? 0 : 1;

		if ((at && !uniform(n->in[0], &b)) || !triangle_of(l, n->in[at], depth + 1, y))
			return false;
		if (node_is(n, "Mul"))
			*y = (Triangle){ y->upto * b, y->after * b };
		else if (at)
			*y = (Triangle){ b - y->upto, b - y->after };
		else
			*y = (Triangle){ y->upto - b, y->after - b };
		return !isnan(y->upto) && !isnan(y->after);
	}
	if (node_is(n, "Not")) {
		if (!triangle_of(l, n->in[0], depth + 1, y))
			return false;
		*y = (Triangle){ y->upto == 0, y->after == 0 };
		return true;
	}
	return keeps_matrix(v, n) && triangle_of(l, n->in[0], depth + 1, y);
}

/* Whether v is such a matrix, the same for every batch and head. */
static bool causal(Lift *l, Value *v, Dim queries, Dim keys, Triangle *y)
{
	int r = lift_ndim(v);

	if (r < 2 || !dim_same(v->type->dim[r - 2], queries) || !dim_same(v->type->dim[r - 1], keys))
		return false;
	for (int i = 0; i < r - 2; i++)
		if (!dim_same(v->type->dim[i], 1))
			return false;
	if (triangle_of(l, v, 0, y))
		return true;
	const Tensor *t = lift_value(l, v, 0);
	return t && triangle_data(t, y);
}

static bool is_low(double v)
{
	return v <= -1e9;
}

/* A mask that is added to the scores; *rest: the one that remains as an operand. */
static bool added_mask(Lift *l, Heads *h, Value *mask, Value **rest)
{
	const Tensor *t = lift_value(l, mask, 0);
	Triangle y;

	if (!mask->type || !dtype_is_float(mask->type->elem))
		return false;
	if (t && lift_filled(t, 0))
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

/* Whether a bool mask has a row that hides every key. */
static bool some_row_empty(const Tensor *t, bool shown_is)
{
	int64_t n = tensor_elements(t), keys = t->ndim ? t->dim[t->ndim - 1] : 1;

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
	const Tensor *t = lift_value(l, cond, 0), *lt = lift_value(l, lowv, 0);
	Triangle y;

	if (!lt || tensor_elements(lt) != 1)
		return false;
	double low = tensor_get(lt, 0);
	if (!is_low(low))
		return false;
	if (t && lift_filled(t, shown_is))
		return true;
	if (causal(l, cond, h->queries, h->keys, &y) && (y.upto != 0) == shown_is && (y.after != 0) != shown_is) {
		h->causal = true;
		return true;
	}
	/* A row that hides all keys has equal weights with a finite number, zeros with -inf and with a bool mask. */
	if (low != -INFINITY && !(t && !some_row_empty(t, shown_is)))
		return false;
	*build_from = cond;
	return true;
}

static bool broadcasts(const Value *mask, const Value *p)
{
	int ndim = p->type->ndim;

	if (lift_ndim(mask) < 0 || mask->type->ndim > ndim)
		return false;
	for (int i = 0; i < ndim; i++)
		if (!dim_same(lift_aligned(mask, ndim, i), 1) &&
			!dim_same(lift_aligned(mask, ndim, i), p->type->dim[i]))
			return false;
	return true;
}

/* The product of the factors of the scale on q, on k and on their product. */
static bool scale_of(const Match *m, double *scale)
{
	static const char *const names[] = { "qtimes", "ktimes", "times", "over" };
	double v;

	*scale = 1;
	for (int i = 0; i < 4; i++) {
		Value *x = match_hole(m, names[i]);

		if (!x)
			continue;
		if (!lift_scalar(x, &v) || v == 0)
			return false;
		bool divides = i == 3;
		if (i == 0) /* is q divided by it? */
			for (int k = 0; k < m->n; k++)
				divides |= node_is(m->node[k], "Div") && m->node[k]->in[1] == x &&
				           m->node[k]->in[0] == match_hole(m, "q");
		*scale = divides ? *scale / v : *scale * v;
	}
	return true;
}

static bool cap_of(const Match *m, double *cap)
{
	double under;
	Value *c = match_hole(m, "cap"), *u = match_hole(m, "under");

	*cap = 0;
	return !c || (lift_scalar(c, cap) && lift_scalar(u, &under) && match_near(*cap, under) && *cap > 0);
}

/* Whether types and shapes are those of attention: q, transposed k, v, and p of queries by keys. */
static bool attends(const Value *q, const Value *kt, const Value *v, const Value *p)
{
	int ndim = lift_ndim(q);

	if ((ndim != 3 && ndim != 4) || lift_ndim(kt) != ndim || lift_ndim(v) != ndim || lift_ndim(p) != ndim)
		return false;
	if (!dtype_is_float(q->type->elem) || kt->type->elem != q->type->elem || v->type->elem != q->type->elem)
		return false;
	const Dim *dq = q->type->dim, *dk = kt->type->dim, *dv = v->type->dim, *dp = p->type->dim;
	if (!dim_known(dk[ndim - 2]) || (ndim == 4 && !dim_known(dq[1])))
		return false;
	for (int i = 0; i < ndim - 2; i++)
		if (!dim_same(dq[i], dk[i]) || !dim_same(dq[i], dv[i]) || !dim_same(dq[i], dp[i]))
			return false;
	return dim_same(dp[ndim - 2], dq[ndim - 2]) && dim_same(dp[ndim - 1], dk[ndim - 1]);
}

bool lift_attention(void *lift, Match *m)
{
	Lift *l = lift;
	Heads h = { .q = match_hole(m, "q"), .v = match_hole(m, "v") };
	Value *kt = match_hole(m, "kt"), *y = m->root->out[0], *p = m->root->in[0], *add = NULL, *cond = NULL;
	Value *mask = match_hole(m, "mask"), *mask2 = match_hole(m, "mask2");
	Value *hide = match_hole(m, "hide"), *show = match_hole(m, "show"), *low = match_hole(m, "low");
	int ndim = lift_ndim(h.q);

	if (!attends(h.q, kt, h.v, p) || lift_ndim(y) != ndim || !scale_of(m, &h.scale) || !cap_of(m, &h.cap))
		return false;
	h.queries = h.q->type->dim[ndim - 2];
	h.keys = kt->type->dim[ndim - 1];
	if (mask && (!broadcasts(mask, p) || !added_mask(l, &h, mask, &add)))
		return false;
	if (mask2 && (!broadcasts(mask2, p) || !added_mask(l, &h, mask2, &add)))
		return false;
	if (hide && (!broadcasts(hide, p) || !chosen_mask(l, &h, hide, low, false, &cond)))
		return false;
	if (show && (!broadcasts(show, p) || !chosen_mask(l, &h, show, low, true, &cond)))
		return false;
	if (!lift_replaceable(l, m))
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
	/* a mask that only hides by -inf is a bool mask */
	if (node_is(w, "Where") && lift_scalar(w->in[1], &shown) && lift_scalar(w->in[2], &hidden) && shown == 0 &&
		hidden == -INFINITY && lift_same_type(w->in[0], w->in[0]) && w->in[0]->type->ndim == add->type->ndim)
		h.mask = w->in[0];
	if (cond && show)
		h.mask = cond;
	if (cond && hide && node_is(cond->def, "Not"))
		h.mask = cond->def->in[0];
	else if (cond && hide)
		h.mask = lift_put(l, m, "Not", NULL, 1, &cond, NULL, NULL);
	h.heads = ndim == 3;
	if (ndim == 3 && h.mask && h.mask->type->ndim == 3) {
		Value *axes = vector(y->graph, 1);

		h.mask = lift_put(l, m, "Unsqueeze", NULL, 2, (Value *[]){ h.mask, axes }, NULL, NULL);
	}
	lift_put(l, m, "Attention", y, h.mask ? 4 : 3, (Value *[]){ h.q, h.k, h.v, h.mask }, attention_attrs, &h);
	return true;
}

/* ---- rotary embedding ---- */

typedef struct Cut {
	Value *of;
	int64_t first, step;
	Dim len;
} Cut;

/* v as a strided slice of the last axis of another value. */
static bool cut_of(const Value *v, Cut *p)
{
	const Node *n = v->def;
	int ndim = lift_ndim(v), axis;

	if (!n || ndim < 1 || n->nin < 1 || !n->in[0])
		return false;
	*p = (Cut){ n->in[0], 0, 1, v->type->dim[ndim - 1] };
	if (node_is(n, "Split") && op_axis((Node *)n, attr_int(n, "axis"), ndim, &axis) == 0 && axis == ndim - 1) {
		for (int i = 0; i < v->defidx; i++) {
			if (!n->out[i] || !dim_known(n->out[i]->type->dim[axis]))
				return false;
			p->first += n->out[i]->type->dim[axis];
		}
		return true;
	}
	const Tensor *start = operand_const(n, 1), *axes = operand_const(n, 3), *step = operand_const(n, 4);
	if (!node_is(n, "Slice") || !start || tensor_elements(start) != 1 || !axes || tensor_elements(axes) != 1)
		return false;
	if (n->nin > 4 && n->in[4] && !step)
		return false;
	int64_t a = tensor_int(axes, 0), first = tensor_int(start, 0);
	Dim len = p->of->type->dim[ndim - 1];
	if ((a != -1 && a != ndim - 1) || !dim_known(len))
		return false;
	p->step = step ? tensor_int(step, 0) : 1;
	p->first = first < 0 ? first + len : first;
	return p->step > 0 && p->first >= 0;
}

/* Whether the last axis of a table is two equal halves, or pairs of equal numbers. */
static bool repeats(Lift *l, Value *v, bool pairs, int depth)
{
	const Tensor *t = lift_value(l, v, 0);
	int ndim = lift_ndim(v);
	Node *n = v->def;

	if (ndim < 1 || depth == EVAL_DEPTH)
		return false;
	if (t) {
		int64_t width = t->dim[ndim - 1], half = width / 2;

		for (int64_t i = 0; i < tensor_elements(t); i++) {
			int64_t j = i % width, other = pairs ? (j ^ 1) : (j + half) % width;

			if (width % 2 || tensor_get(t, i) != tensor_get(t, i - j + other))
				return false;
		}
		return true;
	}
	if (!n || n->nin < 1 || !n->in[0])
		return false;
	double by;
	if (node_is(n, "Cos") || node_is(n, "Sin") || node_is(n, "Cast"))
		return repeats(l, n->in[0], pairs, depth + 1);
	if (node_is(n, "Mul") && (lift_scalar(n->in[1], &by) || lift_scalar(n->in[0], &by)))
		return repeats(l, n->in[lift_scalar(n->in[1], &by) ? 0 : 1], pairs, depth + 1);
	if (node_is(n, "Concat") && n->nin == 2 && !pairs)
		return n->in[0] == n->in[1] && (attr_int(n, "axis") == -1 || attr_int(n, "axis") == ndim - 1);
	if (node_is(n, "Gather"))
		return attr_int(n, "axis") == 0 && lift_ndim(n->in[0]) > 1 && repeats(l, n->in[0], pairs, depth + 1);
	Cut p;
	/* a strided slice that takes as many of one half as of the other */
	if (node_is(n, "Slice") && !pairs && cut_of(v, &p) && p.step > 1) {
		Dim len = p.of->type->dim[ndim - 1];

		return len % (2 * p.step) == 0 && p.first < p.step && dim_same(p.len, len / p.step) &&
			repeats(l, p.of, pairs, depth + 1);
	}
	static const char *const views[] = { "Unsqueeze", "Squeeze", "Reshape", "Expand", "Slice", NULL };
	bool view = false;
	for (int i = 0; views[i]; i++)
		view |= node_is(n, views[i]);
	int from = lift_ndim(n->in[0]);
	Dim width = v->type->dim[ndim - 1];
	if (!view || from < 1 || !dim_same(n->in[0]->type->dim[from - 1], width))
		return false;
	return dim_known(width) && width > 1 && repeats(l, n->in[0], pairs, depth + 1);
}

/* Whether the table broadcasts over the heads of x, with this width.  x is [batch, heads, positions, width] or, when
 * the heads come last, [batch, positions, heads, width]. */
static bool table_fits(const Value *c, const Value *x, Dim width, bool heads_last)
{
	int heads = heads_last ? 2 : 1, positions = 3 - heads;

	if (lift_ndim(c) < 4 - positions || c->type->ndim > 4 || c->type->elem != x->type->elem)
		return false;
	Dim batch = lift_aligned(c, 4, 0);
	if (!dim_same(batch, 1) && !dim_same(batch, x->type->dim[0]))
		return false;
	return dim_same(lift_aligned(c, 4, heads), 1) &&
		dim_same(lift_aligned(c, 4, positions), x->type->dim[positions]) &&
		dim_same(lift_aligned(c, 4, 3), width);
}

typedef struct Table {
	Dim width, pairs;
	bool neighbours, heads_last;
} Table;

/* The table as [batch or 1, positions, pairs]. */
static Value *cache_of(Graph *g, Value *c, const void *arg)
{
	const Table *t = arg;
	int ndim = c->type->ndim;
	Loc loc = c->def ? c->def->loc : c->loc;

	if (!dim_same(t->width, t->pairs))
		c = build(g, loc, "Slice", NULL, 1, NULL, 5, c, vector(g, 0),
			vector(g, t->neighbours ? t->width : t->pairs), vector(g, ndim - 1),
			vector(g, t->neighbours ? 2 : 1));
	if (c && ndim == 3 && t->heads_last)    /* [positions, 1, pairs] */
		return build(g, loc, "Transpose", "perm=[1, 0, 2]", 1, NULL, 1, c);
	if (c && ndim == 4)
		return build(g, loc, "Squeeze", NULL, 1, NULL, 2, c, vector(g, t->heads_last ? 2 : 1));
	if (c && ndim != 3)
		return build(g, loc, "Unsqueeze", NULL, 1, NULL, 2, c, vector(g, 0));
	return c;
}

typedef struct Turn {
	bool neighbours;
	Dim front;
} Turn;

static void rotary_attrs(Node *n, const void *arg)
{
	const Turn *t = arg;

	if (t->neighbours)
		lift_int(n, "interleaved", 1);
	if (t->front)
		lift_int(n, "rotary_embedding_dim", t->front);
}

/* The value of whose heads x is the front and rest is the remainder; NULL: they are not. */
static Value *full_heads(const Value *x, const Value *rest)
{
	Cut p, q;

	if (!cut_of(x, &p) || !cut_of(rest, &q) || p.of != q.of || p.first != 0 || p.step != 1 || q.step != 1)
		return NULL;
	if (!dim_same(p.len, q.first) || !dim_same(p.of->type->dim[3], dim_add(p.len, q.len)))
		return NULL;
	return p.of;
}

/* Whether a and b are the two halves of heads of this width, or their even and odd elements. */
static bool halves(const Cut *a, const Cut *b, Dim width, bool neighbours)
{
	if (!dim_known(width) || width % 2 || !dim_same(a->len, width / 2) || !dim_same(b->len, width / 2))
		return false;
	if (a->first != 0)
		return false;
	if (neighbours)
		return a->step == 2 && b->step == 2 && b->first == 1;
	return a->step == 1 && b->step == 1 && b->first == width / 2;
}

bool lift_attention_rotary(void *lift, Match *m)
{
	Lift *l = lift;
	Value *x = match_hole(m, "x"), *a = match_hole(m, "a"), *b = match_hole(m, "b"), *y = m->root->out[0];
	Value *cos = match_hole(m, "cos"), *sin = match_hole(m, "sin"), *rest = match_hole(m, "rest");
	bool neighbours = match_hole(m, "shape") != NULL, full = x != NULL;
	Cut ca, cb;

	if (!cut_of(a, &ca) || !cut_of(b, &cb) || ca.of != cb.of || (x && x != ca.of) || lift_ndim(ca.of) != 4)
		return false;
	x = ca.of;
	Dim width = x->type->dim[3];
	if (!halves(&ca, &cb, width, neighbours))
		return false;
	const Tensor *end = neighbours ? lift_constant(match_hole(m, "end")) : NULL;
	if (neighbours && (!end || tensor_elements(end) != 1))
		return false;
	if (neighbours && tensor_int(end, 0) != -1 && tensor_int(end, 0) != 4)
		return false;
	Dim have = full ? width : width / 2;
	Value *heads = rest ? full_heads(x, rest) : x;
	if (!heads || !lift_same_type(heads, y))
		return false;
	bool last = !table_fits(cos, x, have, false);
	if (!table_fits(cos, x, have, last) || !table_fits(sin, x, have, last))
		return false;
	if (full && (!repeats(l, cos, neighbours, 0) || !repeats(l, sin, neighbours, 0)))
		return false;
	if (!lift_replaceable(l, m))
		return false;
	Table t = { have, width / 2, neighbours, last };
	Value *c = lift_once(l, cos, neighbours + 2 * last, cache_of, &t);
	Value *s = lift_once(l, sin, neighbours + 2 * last, cache_of, &t);
	/* With four axes the operator has the heads second.  The transpose after it meets the one before attention. */
	static const Perm turn = { 4, { 0, 2, 1, 3 } };
	Turn how = { neighbours, heads == x ? 0 : width };
	if (last)
		heads = permuted(l, m, heads, &turn);
	Value *in[] = { heads, c, s };
	Value *r = lift_put(l, m, "RotaryEmbedding", last ? NULL : y, 3, in, rotary_attrs, &how);
	if (last)
		lift_put(l, m, "Transpose", y, 1, &r, perm_attr, &turn);
	return true;
}
