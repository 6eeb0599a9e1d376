/* Attention, rotary position embedding and the gate of SwiGLU: composites, built into core operators here
 * (SwiGLU in nn.ir).
 *
 * Attention has two kinds of mask: numbers that are added, and positions that are not allowed (bool masks, the causal
 * triangle, windows, padding of the keys).  The latter select -inf after everything else, and a row in which nothing is
 * allowed gives zeros: 0 * inf never occurs, forward or backward.  For the gradient each row keeps the logarithm of the
 * sum of exponentials (+inf where nothing is allowed), from which AttentionGrad computes the probabilities again.
 */
#include <math.h>
#include <string.h>

#include "ops.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, NONPAD };
enum { G_Y = 4, G_LSE, G_DY }; /* of AttentionGrad, whose first four operands are those of Attention */
enum { LSE = 4 };              /* result */

static bool is_grad(const Node *n)
{
	return !strcmp(n->op, "AttentionGrad");
}

/* Operands that AttentionGrad does not have. */
static Value *past(const Node *n, int i)
{
	return is_grad(n) ? NULL : operand_value(n, i);
}

static int64_t window(const Node *n, const char *which)
{
	return is_grad(n) || n->row->since >= 25 ? attr_int(n, which) : -1;
}

static const char *intern(Node *n, const char *fmt, long long v)
{
	return arena_printf(n->graph->arena, fmt, v);
}

static Value *cast_to(Node *n, Value *v, DType t)
{
	return v && v->type->elem != t ? make(n, NULL, "Cast", intern(n, "to=%lld", t), v, NULL, NULL) : v;
}

/* The size of an axis as an int64 scalar: a constant where it is known. */
static Value *size_of(Node *n, Value *v, int axis)
{
	Dim d = v->type->dim[axis];
	if (dim_known(d))
		return make_int(n, d);
	return make(n, NULL, "Gather", "axis=0", make1(n, "Shape", v), make_int(n, axis), NULL);
}

/* ---- shape ---- */

typedef struct Heads {
	int64_t q, kv;
	Dim dq, dk, dv, sq, sk, batch, past;
	bool flat;
} Heads;

static int bad_heads(Node *n, int i, const char *what, int64_t heads)
{
	err_at(operand_loc(n, i), "Attention: the last axis of %s does not divide into %s=%lld heads",
		type_text(operand_type(n, i)), what, (long long)heads);
	return -1;
}

/* Sizes from the operands; heads are -1 when a 4-axis operand does not give them. */
static int read_heads(Node *n, Heads *h)
{
	Type *q = operand_type(n, Q), *k = operand_type(n, K), *v = operand_type(n, V),
	     *old = past(n, PAST_K) ? operand_type(n, PAST_K) : NULL;
	int axes = q->ndim;
	if ((axes != 3 && axes != 4) || k->ndim != axes || v->ndim != axes) {
		err_at(n->loc, "Attention needs three operands of 3 or of 4 axes, they are %s, %s and %s",
			type_text(q), type_text(k), type_text(v));
		return -1;
	}
	*h = (Heads){ .flat = axes == 3, .batch = q->dim[0], .sq = q->dim[axes - 2], .sk = k->dim[axes - 2] };
	h->q = h->flat ? attr_int(n, "q_num_heads") : dim_known(q->dim[1]) ? q->dim[1] : -1;
	h->kv = h->flat ? attr_int(n, "kv_num_heads") : dim_known(k->dim[1]) ? k->dim[1] : -1;
	if (h->flat && (h->q < 1 || h->kv < 1)) {
		err_at(n->loc, "Attention of operands with 3 axes needs the attributes q_num_heads and "
		               "kv_num_heads");
		return -1;
	}
	if (h->q > 0 && h->kv > 0 && h->q % h->kv) {
		err_at(n->loc, "Attention: %lld query heads cannot share %lld key heads evenly",
			(long long)h->q, (long long)h->kv);
		return -1;
	}
	h->dq = h->flat ? dim_div(q->dim[2], h->q) : q->dim[3];
	h->dk = h->flat ? dim_div(k->dim[2], h->kv) : k->dim[3];
	h->dv = h->flat ? dim_div(v->dim[2], h->kv) : v->dim[3];
	if (h->flat && dim_known(q->dim[2]) && q->dim[2] % h->q)
		return bad_heads(n, Q, "q_num_heads", h->q);
	if (h->flat && dim_known(k->dim[2]) && k->dim[2] % h->kv)
		return bad_heads(n, K, "kv_num_heads", h->kv);
	if (h->flat && dim_known(v->dim[2]) && v->dim[2] % h->kv)
		return bad_heads(n, V, "kv_num_heads", h->kv);
	if (dim_differ(h->dq, h->dk) || dim_differ(h->sk, v->dim[axes - 2]) ||
		dim_differ(h->batch, k->dim[0])) {
		err_at(operand_loc(n, K), "Attention: queries %s, keys %s and values %s do not fit together",
			type_text(q), type_text(k), type_text(v));
		return -1;
	}
	h->past = old && old->ndim == 4 ? old->dim[2] : past(n, PAST_K) ? DIM_UNKNOWN : 0;
	return 0;
}

static int shape_attention(Node *n)
{
	Heads h;
	for (int i = Q; i <= V; i++)
		if (operand_ndim(n, i) < 0) {
			for (int o = 0; o < n->nout; o++)
				operand_set_result(n, o, operand_dtype(n, o == 2 ? V : Q), -1, NULL);
			return 0;
		}
	if (read_heads(n, &h))
		return -1;
	if (!operand_value(n, PAST_K) != !operand_value(n, PAST_V) ||
		(operand_value(n, NONPAD) && operand_value(n, PAST_K))) {
		err_at(n->loc,
			"Attention: past_key and past_value come together, and never with nonpad_kv_seqlen");
		return -1;
	}
	Type *q = operand_type(n, Q), *k = operand_type(n, K);
	Dim hq = h.flat ? h.q : q->dim[1], hk = h.flat ? h.kv : k->dim[1], total = dim_add(h.past, h.sk);
	if (h.flat)
		operand_set_result(n, 0, q->elem, 3, (Dim[]){ h.batch, h.sq, dim_mul(h.q, h.dv) });
	else
		operand_set_result(n, 0, q->elem, 4, (Dim[]){ h.batch, hq, h.sq, h.dv });
	operand_set_result(n, 1, k->elem, 4, (Dim[]){ h.batch, hk, total, h.dk });
	operand_set_result(n, 2, operand_dtype(n, V), 4, (Dim[]){ h.batch, hk, total, h.dv });
	operand_set_result(n, 3, q->elem, 4, (Dim[]){ h.batch, hq, h.sq, total });
	operand_set_result(n, LSE, q->elem, 3, (Dim[]){ h.batch, hq, h.sq });
	return 0;
}

static int shape_attention_grad(Node *n)
{
	Heads h;
	for (int i = Q; i <= V; i++) {
		Type *t = operand_type(n, i);
		operand_set_result(n, i, operand_dtype(n, i), t ? t->ndim : -1, t ? t->dim : NULL);
		if (operand_ndim(n, i) < 0)
			return 0;
	}
	if (read_heads(n, &h))
		return -1;
	Type *y = operand_type(n, G_Y), *dy = operand_type(n, G_DY), *lse = operand_type(n, G_LSE);
	bool clash = (y && y->ndim != operand_ndim(n, Q)) || (dy && dy->ndim != operand_ndim(n, Q)) ||
	             (lse && lse->ndim != 3);
	for (int a = 0; !clash && y && dy && a < y->ndim; a++)
		clash = dim_differ(y->dim[a], dy->dim[a]);
	if (clash || (y && dim_differ(y->dim[y->ndim - 2], h.sq)) || (lse && dim_differ(lse->dim[2], h.sq))) {
		err_at(operand_loc(n, G_DY), "AttentionGrad: the operands do not fit queries of %s",
			type_text(operand_type(n, Q)));
		return -1;
	}
	return 0;
}

/* ---- meaning ---- */

/* [B, S, H * D] -> [B, H, S, D] */
static Value *split_heads(Node *n, Value *x, int64_t heads, Dim width)
{
	int64_t shape[4] = { 0, 0, heads, dim_known(width) ? width : -1 };
	return make(n, NULL, "Transpose", "perm=[0, 2, 1, 3]",
		make2(n, "Reshape", x, expand_ints(n, shape, 4)), NULL, NULL);
}

/* Every key head belongs to `times` query heads in a row. */
static Value *repeat_heads(Node *n, Value *x, int64_t times)
{
	if (!x || times == 1)
		return x;
	const Dim *d = x->type->dim;
	int64_t heads = d[1] * times, shape[4] = { 0, heads, dim_known(d[2]) ? d[2] : -1, d[3] };
	if (!dim_known(d[3])) {
		err_at(n->loc, "Attention with shared key heads needs a known head size");
		return NULL;
	}
	Value *wide = make2(n, "Expand", make2(n, "Unsqueeze", x, expand_ints(n, (int64_t[]){ 2 }, 1)),
		expand_ints(n, (int64_t[]){ 1, 1, times, 1, 1 }, 5));
	return make2(n, "Reshape", wide, expand_ints(n, shape, 4));
}

static Value *both(Node *n, Value *a, Value *b)
{
	return !a ? b : !b ? a : make2(n, "And", a, b);
}

/* [0, 1, ... size - 1], as a column if column is set. */
static Value *count(Node *n, Value *size, bool column)
{
	Value *r = make(n, NULL, "Range", NULL, make_int(n, 0), size, make_int(n, 1));
	return column ? make2(n, "Unsqueeze", r, expand_ints(n, (int64_t[]){ 1 }, 1)) : r;
}

/* The positions that the causal triangle, the window and the padding of the keys allow: [Sq, Sk], or [B, 1, Sq, Sk];
 * *all is set if all are allowed. */
static Value *allowed(Node *n, Value *q, Value *k, bool *all)
{
	bool causal = attr_int(n, "is_causal") != 0;
	int64_t left = window(n, "left_window_size"), right = window(n, "right_window_size");
	Value *pad = past(n, NONPAD), *ok = NULL, *sq = size_of(n, q, 2), *j = NULL;
	*all = !causal && left < 0 && right < 0 && !pad;
	if (*all)
		return NULL;
	j = count(n, size_of(n, k, 2), false);
	if (pad)
		pad = make2(n, "Reshape", pad, expand_ints(n, (int64_t[]){ -1, 1, 1, 1 }, 4));
	if (causal || left >= 0 || right >= 0) {
		int64_t among, from = attr_origin(n, 0, &among);
		Value *at = count(n, sq, true); /* the position of query i among the keys */
		if (from)
			at = make2(n, "Add", at, make_int(n, from));
		if (pad)
			at = make2(n, "Add", at, make2(n, "Sub", pad, among ? make_int(n, among) : sq));
		else if (past(n, PAST_K))
			at = make2(n, "Add", at, size_of(n, n->in[PAST_K], 2));
		if (causal)
			ok = make2(n, "LessOrEqual", j, at);
		if (left >= 0)
			ok = both(n, ok, make2(n, "LessOrEqual", make2(n, "Sub", at, j), make_int(n, left)));
		if (right >= 0)
			ok = both(n, ok, make2(n, "LessOrEqual", make2(n, "Sub", j, at), make_int(n, right)));
	}
	return pad ? both(n, ok, make2(n, "Less", j, pad)) : ok;
}

/* The mask, filled up with "not allowed" where it is shorter than the keys. */
static Value *padded_mask(Node *n, Value *mask, const Value *k)
{
	Type *m = mask->type;
	Dim want = k->type->dim[2], have = m->ndim > 0 ? m->dim[m->ndim - 1] : 1;
	if (m->ndim < 1 || !dim_known(want) || !dim_known(have) || have >= want)
		return mask;
	int64_t pads[2 * NDIM_MAX] = { 0 };
	pads[2 * m->ndim - 1] = want - have;
	if (m->elem == DT_BOOL) { /* Pad takes bool only in recent opsets */
		Value *w = make(n, NULL, "Pad", NULL, make(n, NULL, "Cast", "to=6", mask, NULL, NULL),
			expand_ints(n, pads, 2 * m->ndim), NULL);
		return make(n, NULL, "Cast", "to=9", w, NULL, NULL);
	}
	return make(
		n, NULL, "Pad", NULL, mask, expand_ints(n, pads, 2 * m->ndim), make_num(n, mask, -INFINITY));
}

static Value *soften(Node *n, Value *s, double cap)
{
	Value *t = s && cap > 0 ? make1(n, "Tanh", make2(n, "Div", s, make_num(n, s, cap))) : s;
	return t && cap > 0 ? make2(n, "Mul", t, make_num(n, s, cap)) : s;
}

typedef struct Scores {
	Value *raw, *capped, *biased, *prob;
} Scores;

/* Applies softcap and masks.  Before opset 25 releases of ONNX disagree on the order.  First, the mask was added and
 * then the cap applied, and mode 2 meant the capped scores, mode 1 the biased ones; now mode 1 is capped and mode 2
 * biased.  Where they disagree, the older reading is taken where only that one makes sense: mode 2 with a cap, mode 1
 * without. */
static int bias(Node *n, Value *q, Value *k, Scores *s, bool *may_be_empty)
{
	double cap = attr_float(n, "softcap");
	bool all, late = !is_grad(n) && n->row->since < 25 && cap > 0 && attr_int(n, "qk_matmul_output_mode") == 2;
	Value *mask = operand_value(n, MASK) ? padded_mask(n, n->in[MASK], k) : NULL, *ok = allowed(n, q, k, &all);
	if ((operand_value(n, MASK) && !mask) || (!all && !ok))
		return -1;
	*may_be_empty = mask || past(n, NONPAD) || window(n, "left_window_size") >= 0 ||
	                window(n, "right_window_size") >= 0;
	if (mask && mask->type->elem == DT_BOOL) {
		ok = both(n, ok, mask);
		mask = NULL;
	}
	Value *v = s->raw;
	v = late ? v : soften(n, v, cap);
	s->capped = v;
	if (mask)
		v = make2(n, "Add", v, cast_to(n, mask, v->type->elem));
	if (late)
		s->capped = v = soften(n, v, cap);
	if (ok && v)
		v = make(n, NULL, "Where", NULL, ok, v, make_num(n, v, -INFINITY));
	s->biased = v;
	return v ? 0 : -1;
}

/* The logarithm of the sum of exponentials of each row, without its last axis; +inf where the row is empty. */
static int log_sum(Node *n, Value *v, Value *empty)
{
	Value *last = expand_ints(n, (int64_t[]){ -1 }, 1),
	      *top = make(n, NULL, "ReduceMax", "keepdims=1", v, last, NULL);
	Value *e = top ? make1(n, "Exp", make2(n, "Sub", v, top)) : NULL;
	Value *sum = make(n, NULL, "ReduceSum", "keepdims=1", e, last, NULL);
	Value *r = sum ? make2(n, "Add", top, make1(n, "Log", sum)) : NULL;
	if (empty && r)
		r = make(n, NULL, "Where", NULL, empty, make_num(n, r, INFINITY), r);
	return make(n, n->out[LSE], "Squeeze", NULL, r, last, NULL) ? 0 : -1;
}

static int scores(Node *n, Value *q, Value *k, Scores *s)
{
	bool may_be_empty;
	if (bias(n, q, k, s, &may_be_empty))
		return -1;
	Value *v = s->biased, *empty = NULL;
	DType precise = v->type->elem;
	if (attr_has(n, "softmax_precision") && expand_float(n, "softmax_precision", &precise))
		return -1;
	if (may_be_empty) {
		Value *top = make(
			n, NULL, "ReduceMax", "keepdims=1", v, expand_ints(n, (int64_t[]){ -1 }, 1), NULL);
		empty = make(n, NULL, "IsInf", "detect_negative=1, detect_positive=0", top, NULL, NULL);
		if (!empty)
			return -1;
		v = make(n, NULL, "Where", NULL, empty, make_num(n, v, 0), v);
	}
	if (operand_result(n, LSE) && log_sum(n, v, empty))
		return -1;
	Value *p = cast_to(n, make(n, NULL, "Softmax", "axis=-1", cast_to(n, v, precise), NULL, NULL),
		s->raw->type->elem);
	if (empty && p)
		p = make(n, NULL, "Where", NULL, empty, make_num(n, p, 0), p);
	s->prob = p;
	return p ? 0 : -1;
}

static Value *chosen(const Node *n, const Scores *s)
{
	bool old = n->row->since < 25;
	double cap = attr_float(n, "softcap");
	switch (attr_int(n, "qk_matmul_output_mode")) {
	case 1: return old && !(cap > 0) ? s->biased : s->capped;
	case 2: return s->biased;
	case 3: return s->prob;
	default: return s->raw;
	}
}

static int expand_attention(Node *n)
{
	Heads h;
	for (int i = Q; i <= V; i++)
		if (operand_ndim(n, i) < 0) {
			err_at(operand_loc(n, i), "Attention needs operands with a known number of axes");
			return -1;
		}
	if (read_heads(n, &h))
		return -1;
	Value *q = n->in[Q], *k = n->in[K], *v = n->in[V], *y = operand_result(n, 0);
	if (h.q < 1 || h.kv < 1 || (!attr_has(n, "scale") && !dim_known(h.dq))) {
		err_at(n->loc, "Attention needs a known number of heads and a known head size");
		return -1;
	}
	if (h.flat) {
		q = split_heads(n, q, h.q, h.dq);
		k = split_heads(n, k, h.kv, h.dk);
		v = split_heads(n, v, h.kv, h.dv);
	}
	for (int i = 0; i < 2; i++) {
		Value **it = i ? &v : &k, *past = operand_value(n, PAST_K + i), *present = operand_result(n, 1 + i);
		if (past)
			*it = make(n, present, "Concat", "axis=2", past, *it, NULL);
		else if (present && !make(n, present, "Identity", NULL, *it, NULL, NULL))
			return -1;
	}
	if (!q || !k || !v)
		return -1;
	double scale = attr_has(n, "scale") ? attr_float(n, "scale") : 1 / sqrt((double)h.dq);
	Scores s = { 0 };
	Value *kt = k;
	if (dtype_bits(q->type->elem) < 32) { /* half of the scale on each side: products stay in range */
		scale = sqrt(scale);
		kt = make2(n, "Mul", k, make_num(n, k, scale));
	}
	kt = make(n, NULL, "Transpose", "perm=[0, 1, 3, 2]", repeat_heads(n, kt, h.q / h.kv), NULL, NULL);
	Value *vv = repeat_heads(n, v, h.q / h.kv);
	if (!kt || !vv)
		return -1;
	s.raw = make2(n, "MatMul", make2(n, "Mul", q, make_num(n, q, scale)), kt);
	if (!s.raw || scores(n, q, k, &s))
		return -1;
	if (operand_result(n, 3) && !make(n, n->out[3], "Identity", NULL, chosen(n, &s), NULL, NULL))
		return -1;
	bool narrow = vv->type->elem != q->type->elem;
	Value *r = make(
		n, h.flat || narrow ? NULL : y, "MatMul", NULL, cast_to(n, s.prob, vv->type->elem), vv, NULL);
	if (narrow)
		r = make(n, h.flat ? NULL : y, "Cast", intern(n, "to=%lld", q->type->elem), r, NULL, NULL);
	if (h.flat) {
		int64_t shape[3] = { 0, 0, dim_known(h.dv) ? h.q * h.dv : -1 };
		r = make(n, NULL, "Transpose", "perm=[0, 2, 1, 3]", r, NULL, NULL);
		r = make(n, y, "Reshape", NULL, r, expand_ints(n, shape, 3), NULL);
	}
	return r ? 0 : -1;
}

/* ---- gradient ---- */

/* [B, H * times, S, D] -> [B, H, S, D]: the sum over the query heads of each key head. */
static Value *sum_heads(Node *n, Value *x, int64_t heads, int64_t times)
{
	if (!x || times == 1)
		return x;
	const Dim *d = x->type->dim;
	Value *apart = make2(n, "Reshape", x,
		expand_ints(n, (int64_t[]){ 0, heads, times, dim_known(d[2]) ? d[2] : -1, d[3] }, 5));
	return make(n, NULL, "ReduceSum", "keepdims=0", apart, expand_ints(n, (int64_t[]){ 2 }, 1), NULL);
}

static int give(Node *n, int i, Value *v, bool flat)
{
	if (!operand_result(n, i))
		return 0;
	if (flat) {
		v = make(n, NULL, "Transpose", "perm=[0, 2, 1, 3]", v, NULL, NULL);
		return make(n, n->out[i], "Reshape", NULL, v, make1(n, "Shape", n->in[i]), NULL) ? 0 : -1;
	}
	return make(n, n->out[i], "Identity", NULL, v, NULL, NULL) ? 0 : -1;
}

/* With probabilities p = exp(scores - lse) and D = sum(dy y) of each row: dv = p^T dy, ds = p (dy v^T - D), times the
 * slope of the cap, dq = scale ds k, dk = scale ds^T q. */
static int expand_attention_grad(Node *n)
{
	Heads h;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && operand_ndim(n, i) < 0) {
			err_at(operand_loc(n, i), "AttentionGrad needs operands with a known number of axes");
			return -1;
		}
	if (read_heads(n, &h))
		return -1;
	if (h.q < 1 || h.kv < 1 || !dim_known(h.dq) || !dim_known(h.dv)) {
		err_at(n->loc, "AttentionGrad needs a known number of heads and a known head size");
		return -1;
	}
	Value *q = n->in[Q], *k = n->in[K], *v = n->in[V], *y = n->in[G_Y], *dy = n->in[G_DY];
	if (h.flat) {
		q = split_heads(n, q, h.q, h.dq);
		k = split_heads(n, k, h.kv, h.dk);
		v = split_heads(n, v, h.kv, h.dv);
		y = split_heads(n, y, h.q, h.dv);
		dy = split_heads(n, dy, h.q, h.dv);
	}
	int64_t times = h.q / h.kv;
	Value *kk = repeat_heads(n, k, times), *vv = repeat_heads(n, v, times),
	      *last = expand_ints(n, (int64_t[]){ -1 }, 1);
	double scale = attr_has(n, "scale") ? attr_float(n, "scale") : 1 / sqrt((double)h.dq),
	       cap = attr_float(n, "softcap");
	Scores s = { 0 };
	bool may_be_empty;
	if (!q || !kk || !vv || !y || !dy)
		return -1;
	Value *qs = make2(n, "Mul", q, make_num(n, q, scale));
	s.raw = make(n, NULL, "MatMulT", "transB=1", qs, kk, NULL);
	if (!s.raw || bias(n, q, k, &s, &may_be_empty))
		return -1;
	Value *p = make1(n, "Exp", make2(n, "Sub", s.biased, make2(n, "Unsqueeze", n->in[G_LSE], last)));
	Value *rows = make(n, NULL, "ReduceSum", "keepdims=1", make2(n, "Mul", dy, y), last, NULL);
	Value *dp = make(n, NULL, "MatMulT", "transB=1", dy, vv, NULL);
	Value *ds = p && rows && dp ? make2(n, "Mul", p, make2(n, "Sub", dp, rows)) : NULL;
	if (cap > 0 && ds) {
		Value *part = make2(n, "Div", s.capped, make_num(n, s.capped, cap));
		Value *slope = part ? make2(n, "Sub", make_num(n, part, 1), make2(n, "Mul", part, part)) : NULL;
		ds = make2(n, "Mul", ds, slope);
	}
	if (!ds)
		return -1;
	Value *dq = make2(n, "MatMul", make2(n, "Mul", ds, make_num(n, ds, scale)), kk);
	Value *dk = sum_heads(n, make(n, NULL, "MatMulT", "transA=1", ds, qs, NULL), h.kv, times);
	Value *dv = sum_heads(n, make(n, NULL, "MatMulT", "transA=1", p, dy, NULL), h.kv, times);
	return dq && dk && dv && !give(n, Q, dq, h.flat) && !give(n, K, dk, h.flat) && !give(n, V, dv, h.flat) ? 0 : -1;
}

/* Whether the kernel and its own gradient apply: plain attention in one type, without cache, lengths, other results or
 * a gradient of the mask. */
static bool own_attention(const Node *n, const bool *wants)
{
	for (int i = 1; i < n->nout; i++)
		if (n->out[i])
			return false;
	for (int i = PAST_K; i < n->nin; i++)
		if (n->in[i])
			return false;
	Heads h;
	DType t = operand_dtype(n, Q);
	for (int i = Q; i <= V; i++)
		if (operand_ndim(n, i) < 0)
			return false;
	return !wants[MASK] && dtype_bits(t) >= 32 && operand_dtype(n, V) == t && !attr_has(n, "softmax_precision") &&
	       !read_heads((Node *)n, &h) && h.q > 0 && h.kv > 0 && dim_known(h.dq) && dim_known(h.dv);
}

/* ---- rotary embedding ---- */

/* Whether its own gradient applies, a rotation by the negative angle: not if the angles are trained. */
static bool own_rotary(const Node *n, const bool *wants)
{
	(void)n;
	return !wants[1] && !wants[2];
}

static int shape_rotary(Node *n)
{
	Type *x = operand_type(n, 0), *c = operand_type(n, 1), *s = operand_type(n, 2);
	bool ids = operand_value(n, 3) != NULL;
	if (x && x->ndim >= 0 && x->ndim != 3 && x->ndim != 4) {
		err_at(operand_loc(n, 0), "RotaryEmbedding needs an operand of 3 or 4 axes, it is %s",
			type_text(x));
		return -1;
	}
	if (x && x->ndim == 3 && attr_int(n, "num_heads") < 1) {
		err_at(n->loc, "RotaryEmbedding of an operand with 3 axes needs the attribute num_heads");
		return -1;
	}
	for (int i = 1; i < 3; i++)
		if (operand_ndim(n, i) >= 0 && operand_ndim(n, i) != (ids ? 2 : 3)) {
			err_at(operand_loc(n, i),
				"RotaryEmbedding: the cache %s must have %d axes %s position_ids",
				type_text(operand_type(n, i)), ids ? 2 : 3, ids ? "with" : "without");
			return -1;
		}
	if (c && s && c->ndim > 0 && s->ndim > 0 && dim_differ(c->dim[c->ndim - 1], s->dim[s->ndim - 1])) {
		err_at(operand_loc(n, 2), "RotaryEmbedding: the caches %s and %s differ", type_text(c),
			type_text(s));
		return -1;
	}
	return shape_like_first(n);
}

/* Elements first, first + step, ... before end of the last axis. */
static Value *slice(Node *n, Value *x, int64_t first, int64_t end, int64_t step)
{
	if (!x)
		return NULL;
	return build(n->graph, n->loc, "Slice", NULL, 1, NULL, 5, x, expand_ints(n, &first, 1),
		expand_ints(n, &end, 1), expand_ints(n, (int64_t[]){ -1 }, 1), expand_ints(n, &step, 1));
}

static int expand_rotary(Node *n)
{
	Type *t = operand_type(n, 0);
	if (!t || t->ndim < 3) {
		err_at(n->loc, "RotaryEmbedding needs an operand with a known number of axes");
		return -1;
	}
	bool flat = t->ndim == 3;
	int64_t heads = attr_int(n, "num_heads"), rot = attr_int(n, "rotary_embedding_dim");
	Dim width = flat ? dim_div(t->dim[2], heads) : t->dim[3];
	if (!dim_known(width) || rot < 0 || rot > width || (rot ? rot : width) % 2) {
		err_at(n->loc, "RotaryEmbedding cannot rotate %lld of %s elements of each head",
			(long long)rot, dim_text(width));
		return -1;
	}
	rot = rot ? rot : width;
	Type *ct = operand_type(n, 1);
	if (ct && ct->ndim > 0 && dim_differ(ct->dim[ct->ndim - 1], rot / 2)) {
		err_at(operand_loc(n, 1), "RotaryEmbedding: the cache %s does not hold angles for %lld pairs",
			type_text(ct), (long long)(rot / 2));
		return -1;
	}
	bool inter = attr_int(n, "interleaved") != 0, rest = rot < width;
	Value *x = n->in[0], *y = operand_result(n, 0), *angle[2];
	if (flat)
		x = make2(n, "Reshape", x, expand_ints(n, (int64_t[]){ 0, 0, heads, width }, 4));
	for (int i = 0; i < 2; i++) {
		Value *c = n->in[1 + i];
		if (operand_value(n, 3))
			c = make(n, NULL, "Gather", "axis=0", c, n->in[3], NULL);
		angle[i] = make2(n, "Unsqueeze", c, expand_ints(n, (int64_t[]){ flat ? 2 : 1 }, 1));
		if (!angle[i])
			return -1;
	}
	Value *a = inter ? slice(n, x, 0, rot, 2) : slice(n, x, 0, rot / 2, 1),
	      *b = inter ? slice(n, x, 1, rot, 2) : slice(n, x, rot / 2, rot, 1);
	if (!a || !b)
		return -1;
	Value *re = make2(n, "Sub", make2(n, "Mul", angle[0], a), make2(n, "Mul", angle[1], b));
	Value *im = make2(n, "Add", make2(n, "Mul", angle[1], a), make2(n, "Mul", angle[0], b));
	bool last = !flat && !inter && !rest; /* the next node gives the result */
	Value *r;
	if (inter) {
		Value *end = expand_ints(n, (int64_t[]){ 4 }, 1);
		r = make(n, NULL, "Concat", "axis=4", make2(n, "Unsqueeze", re, end),
			make2(n, "Unsqueeze", im, end), NULL);
		r = make(n, flat || rest ? NULL : y, "Reshape", NULL, r,
			expand_ints(n, (int64_t[]){ 0, 0, 0, rot }, 4), NULL);
	} else {
		r = make(n, last ? y : NULL, "Concat", "axis=3", re, im, NULL);
	}
	if (rest)
		r = make(n, flat ? NULL : y, "Concat", "axis=3", r, slice(n, x, rot, width, 1), NULL);
	if (flat)
		r = make(n, y, "Reshape", NULL, r, expand_ints(n, (int64_t[]){ 0, 0, heads * width }, 3),
			NULL);
	return r ? 0 : -1;
}

/* No broadcasting. */
static int shape_swiglu(Node *n)
{
	Type *a = operand_type(n, 0), *b = operand_type(n, 1);
	bool clash = a && b && a->ndim >= 0 && b->ndim >= 0 && a->ndim != b->ndim;
	for (int i = 0; !clash && a && b && b->ndim >= 0 && i < a->ndim; i++)
		clash = dim_differ(a->dim[i], b->dim[i]);
	if (clash) {
		err_at(operand_loc(n, 1), "SwiGLU needs operands of one shape, they are %s and %s", type_text(a),
			type_text(b));
		return -1;
	}
	return shape_like_first(n);
}

/* ---- factors and cost ---- */

/* The factors of an axis of heads: key heads, the query heads that share each, and with three axes the width, which is
 * never split. */
static void head_axis(FactorRule *r, bool out, int i, int axis, int head, int sharer, Dim sharers, Dim width)
{
	SubFactor sub[3] = { { head, 0 } };
	int n = 1;
	if (sharers > 1)
		sub[n++] = (SubFactor){ sharer, sharers };
	if (width != 1)
		sub[n++] = (SubFactor){ -1, width };
	if (n > 1)
		factor_product(r, out, i, axis, n, sub);
	else
		(out ? r->out : r->in)[i][axis] = head;
}

/* Whether heads of an operand or result are those of queries. */
static bool of_queries(const Node *n, bool out, int i)
{
	if (is_grad(n))
		return i == Q || (!out && (i == G_Y || i == G_DY || i == G_LSE));
	return out ? i == 0 || i == 3 || i == LSE : i == Q;
}

/* Heads of one operand or result, of queries or of keys: next to each other, or in an axis of their own. */
static void heads_at(const Node *n, FactorRule *r, bool out, int i, int head, int sharer, Dim sharers)
{
	const Value *v = out ? operand_result(n, i) : operand_value(n, i);
	const Type *t = v ? v->type : NULL;
	if (!t || t->ndim < 3)
		return;
	bool lse = is_grad(n) ? !out && i == G_LSE : out && i == LSE;
	bool flat = t->ndim == 3 && !lse;
	if (!of_queries(n, out, i))
		sharers = 1;
	Dim width = flat ? dim_div(t->dim[2], r->len[head] * sharers) : 1;
	if (dim_known(width))
		head_axis(r, out, i, flat ? 2 : 1, head, sharer, sharers, width);
}

/* Factors: batch; key heads, and the query heads that share one; the positions of queries. */
static int factor_attention(Node *n, FactorRule *r)
{
	Heads h;
	for (int i = Q; i <= V; i++)
		if (operand_ndim(n, i) < 0)
			return -1;
	if (read_heads(n, &h))
		return -1;
	int batch = factor_add(r, h.batch), head = -1, sharer = -1, position = -1;
	bool grad = is_grad(n);
	/* all keys and values: splitting the queries does not split them */
	bool present = !grad && (operand_result(n, 1) || operand_result(n, 2));
	if (h.q > 0 && h.kv > 0)
		head = factor_add(r, h.kv);
	if (h.q > h.kv && h.kv > 0 && !present)
		sharer = factor_add(r, h.q / h.kv);
	bool counts = attr_int(n, "is_causal") || window(n, "left_window_size") >= 0 ||
	              window(n, "right_window_size") >= 0;
	if (!present)
		position = counts ? factor_run(r, h.sq) : factor_add(r, h.sq);
	for (int i = 0; i < n->nin; i++)
		if (r->in[i] && i != MASK) {
			r->in[i][0] = batch;
			if (head >= 0)
				heads_at(n, r, false, i, head, sharer, h.q / h.kv);
		}
	for (int i = 0; i < n->nout; i++)
		if (r->out[i]) {
			r->out[i][0] = batch;
			if (head >= 0)
				heads_at(n, r, true, i, head, sharer, h.q / h.kv);
		}
	r->in[Q][h.flat ? 1 : 2] = position;
	if (r->out[0])
		r->out[0][h.flat ? 1 : 2] = position;
	if (!grad && n->nout > 3 && r->out[3])
		r->out[3][2] = position;
	if (grad)
		r->in[G_Y][h.flat ? 1 : 2] = r->in[G_DY][h.flat ? 1 : 2] = position;
	int *lse = NULL;
	if (grad)
		lse = r->in[G_LSE];
	else if (n->nout > LSE)
		lse = r->out[LSE];
	if (lse)
		lse[2] = position;
	Type *m = operand_type(n, MASK);
	for (int a = 0; m && a < m->ndim; a++) {
		int at = a + 4 - m->ndim; /* right-aligned with [batch, heads, queries, keys] */
		if (dim_same(m->dim[a], 1))
			continue;
		if (at == 1 && head >= 0)
			head_axis(r, false, MASK, a, head, sharer, h.q / h.kv, 1);
		else if (at == 0)
			r->in[MASK][a] = batch;
		else
			r->in[MASK][a] = at == 2 ? position : -1;
	}
	return 0;
}

/* Heads and width in one axis: as many heads as the shard of the axis holds. */
static void fit_heads(Node *shard, const Node *logical, const char *attr, int operand)
{
	Attr *a = node_attr(shard, attr);
	const Type *t = shard->in[operand]->type, *w = logical->in[operand]->type;
	if (a && a->u.i > 0 && t->ndim == 3 && w->dim[2] > 0)
		a->u.i = t->dim[2] / (w->dim[2] / a->u.i);
}

static void fit_attention(Node *shard, const Node *logical)
{
	fit_heads(shard, logical, "q_num_heads", Q);
	fit_heads(shard, logical, "kv_num_heads", K);
}

static void fit_rotary(Node *shard, const Node *logical)
{
	fit_heads(shard, logical, "num_heads", 0);
}

static int factor_rotary(Node *n, FactorRule *r)
{
	Type *x = operand_type(n, 0);
	if (!x || x->ndim < 3 || !r->out[0])
		return -1;
	int seq = x->ndim == 3 ? 1 : 2, batch = factor_add(r, x->dim[0]), position = factor_add(r, x->dim[seq]);
	r->in[0][0] = r->out[0][0] = batch;
	r->in[0][seq] = r->out[0][seq] = position;
	if (x->ndim == 4)
		r->in[0][1] = r->out[0][1] = factor_add(r, x->dim[1]);
	int64_t heads = attr_int(n, "num_heads");
	if (x->ndim == 3 && heads > 0 && dim_known(dim_div(x->dim[2], heads))) {
		int head = factor_add(r, heads);
		head_axis(r, false, 0, 2, head, -1, 1, dim_div(x->dim[2], heads));
		head_axis(r, true, 0, 2, head, -1, 1, dim_div(x->dim[2], heads));
	}
	for (int i = 1; i < n->nin; i++)
		if (r->in[i] &&
			(i == 3 || operand_ndim(n, i) == 3)) { /* caches by position, or the positions themselves */
			r->in[i][0] = batch;
			r->in[i][1] = position;
		}
	return 0;
}

/* Two products of [Sq, D] by [D, Sk] per head; half of them under a causal mask.  Each score costs the maximum, exp of
 * the difference, its sum and the division. */
static Cost cost_attention(const Node *n)
{
	enum { SOFTMAX = 16 };
	Cost c = cost_bytes(n);
	Type *q = operand_type(n, Q), *k = operand_type(n, K);
	int64_t e = q ? type_elements(q) : -1;
	if (e > 0 && k && k->ndim > 2 && dim_known(k->dim[k->ndim - 2])) {
		double heads = q->ndim == 3 && attr_int(n, "q_num_heads") > 0 ? (double)attr_int(n, "q_num_heads") : 1;
		double each = (double)e * (double)k->dim[k->ndim - 2] * (attr_int(n, "is_causal") ? 0.5 : 1.0);
		c.flops = 4.0 * each;
		c.others = SOFTMAX * each * heads / (double)q->dim[q->ndim - 1];
	}
	return c;
}

static Cost cost_attention_grad(const Node *n)
{
	Cost c = cost_attention(n);
	c.flops *= 2.5;
	c.others *= 1.5;
	return c;
}

#define ATTENTION_ATTRS                                                                             \
	"is_causal:int=0 kv_num_heads:int q_num_heads:int qk_matmul_output_mode:int=0 scale:float " \
	"softcap:float=0.0 "                                                                        \
	"softmax_precision:int"
#define ATTENTION_OUT " -> y:F present_key:F? present_value:F1? qk_matmul_output:F? lse:F2?"
#define ATTENTION_GRAD(windows)                                                                           \
	"dq, dk, dv = AttentionGrad<is_causal=@is_causal, kv_num_heads=@kv_num_heads, q_num_heads=@q_num_heads, " \
	"scale=@scale, softcap=@softcap" windows ">(q, k, v, attn_mask, y, lse, dy)"
#define ATTENTION_ROW \
	.shape = shape_attention, .kernel = "attention", .composite = true, .expand = expand_attention, \
	.factor_fn = factor_attention, .fit = fit_attention, .origin = "q -2", \
	.own = own_attention, .stash = "lse", .cost = cost_attention

/* clang-format off */
const Op ops_attention[] = {
	/* In float: products have rounded the operands and will round the result; everything inside is float. */
	{ .name = "Attention", .since = 25, .precision = PRECISION_FLOAT,
	  .sig = "q:F k:F v:F1 attn_mask:T? past_key:F? past_value:F1? nonpad_kv_seqlen:int64?" ATTENTION_OUT,
	  .attrs = ATTENTION_ATTRS " left_window_size:int=-1 right_window_size:int=-1", ATTENTION_ROW,
	  .grad = ATTENTION_GRAD(", left_window_size=@left_window_size, right_window_size=@right_window_size"),
	  .test = "q:[2,3,4] k:[2,5,4] v:[2,5,6] =q_num_heads:2 =kv_num_heads:2 | "
	          "q:[1,4,3,2] k:[1,2,3,2] v:[1,2,3,2] =is_causal:1 =softcap:2.0 | "
	          "q:[1,2,4,2] k:[1,2,4,2] v:[1,2,4,2] attn_mask:[4,4] =left_window_size:1 | "
	          "q:[2,5,10] k:[2,5,10] v:[2,5,10] =q_num_heads:5 =kv_num_heads:5 =is_causal:1 | "
	          "q:[1,5,12] k:[1,5,6] v:[1,5,6] =q_num_heads:6 =kv_num_heads:3 =is_causal:1" },
	{ .name = "Attention", .since = 24, .until = 24, .precision = PRECISION_FLOAT,
	  .sig = "q:F k:F v:F1 attn_mask:T? past_key:F? past_value:F1? nonpad_kv_seqlen:int64?" ATTENTION_OUT,
	  .attrs = ATTENTION_ATTRS, ATTENTION_ROW, .grad = ATTENTION_GRAD(""),
	  .test = "q:[1,2,3,2] k:[1,2,5,2] v:[1,2,5,2] nonpad_kv_seqlen:{3}" },
	{ .name = "Attention", .since = 23, .until = 23, .precision = PRECISION_FLOAT,
	  .sig = "q:F k:F v:F1 attn_mask:T? past_key:F? past_value:F1?" ATTENTION_OUT, .attrs = ATTENTION_ATTRS,
	  ATTENTION_ROW, .grad = ATTENTION_GRAD(""), .test = "q:[1,2,3,2] k:[1,2,5,2] v:[1,2,5,2]" },
	{ .name = "AttentionGrad", .domain = "sbpcc", .since = 1,
	  .sig = "q:F k:F v:F1 attn_mask:T? y:F lse:F2 dy:F -> dq:F dk:F dv:F1",
	  .attrs = "is_causal:int=0 kv_num_heads:int q_num_heads:int scale:float softcap:float=0.0 "
	           "left_window_size:int=-1 right_window_size:int=-1",
	  .shape = shape_attention_grad, .kernel = "attention_grad", .composite = true,
	  .expand = expand_attention_grad,
	  .factor_fn = factor_attention, .fit = fit_attention, .origin = "q -2", .linear = "dy",
	  .cost = cost_attention_grad,
	  .test = "q:[2,3,4] k:[2,5,4] v:[2,5,6] y:[2,3,6] lse:(2,3)[2,2,3] dy:[2,3,6] "
	          "=q_num_heads:2 =kv_num_heads:2 | "
	          "q:[1,4,3,2] k:[1,2,3,2] v:[1,2,3,2] y:[1,4,3,2] lse:(2,3)[1,4,3] dy:[1,4,3,2] "
	          "=is_causal:1 =softcap:2.0 | "
	          "q:[1,2,4,2] k:[1,2,4,2] v:[1,2,4,2] attn_mask:[4,4] y:[1,2,4,2] lse:(2,3)[1,2,4] dy:[1,2,4,2] "
	          "=left_window_size:1 | "
	          "q:[2,5,10] k:[2,5,10] v:[2,5,10] y:[2,5,10] lse:(2,3)[2,5,5] dy:[2,5,10] "
	          "=q_num_heads:5 =kv_num_heads:5 =is_causal:1 | "
	          "q:[1,5,12] k:[1,5,6] v:[1,5,6] y:[1,5,12] lse:(2,3)[1,6,5] dy:[1,5,12] "
	          "=q_num_heads:6 =kv_num_heads:3 =is_causal:1" },
	{ .name = "RotaryEmbedding", .since = 23, .precision = PRECISION_FLOAT,
	  .sig = "x:F cos_cache:F sin_cache:F position_ids:int64? -> y:F",
	  .attrs = "interleaved:int=0 num_heads:int rotary_embedding_dim:int=0",
	  .shape = shape_rotary, .kernel = "rotary", .composite = true, .expand = expand_rotary,
	  .factor_fn = factor_rotary, .fit = fit_rotary, .linear = "x", .own = own_rotary,
	  .grad = "dx = RotaryEmbedding<interleaved=@interleaved, num_heads=@num_heads, "
	          "rotary_embedding_dim=@rotary_embedding_dim>(dy, cos_cache, Neg(sin_cache), position_ids)",
	  .cost = cost_pointwise, .flops = 3,
	  .test = "x:[2,2,3,6] cos_cache:[2,3,2] sin_cache:[2,3,2] =rotary_embedding_dim:4 | "
	          "x:[1,3,8] cos_cache:[1,3,2] sin_cache:[1,3,2] =num_heads:2 =interleaved:1" },
	{ .name = "SwiGLU", .since = 28, .sig = "a:F b:F -> y:F", .attrs = "alpha:float=1.0",
	  .shape = shape_swiglu, .kernel = "swiglu", .composite = true, .factors = "..., ... -> ...", .linear = "b",
	  .cost = cost_pointwise, .flops = 8, .test = "a:[3,4] b:[3,4] | a:[3,4] b:[3,4] =alpha:1.5" },
	{ 0 },
};
/* clang-format on */
