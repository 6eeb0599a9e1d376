/* RNN, GRU and LSTM: composites, unrolled over time into core operators.
 *
 * The product of all steps' operands with W is one MatMul; it is then split by step, so that a step holds
 * only the product with R, the gates and the masking.  States keep a leading axis of 1 ([1, batch,
 * hidden]): steps join by Concat without reshaping.  A sequence that is shorter keeps its last state and
 * gives zeros beyond its end; walking in reverse it keeps the initial state until its end is
 * reached.  limits.unroll caps the nodes.
 */
#include <ctype.h>
#include <string.h>

#include "ops.h"

enum { X, W, R, B, LENS, H0, C0, PEEP };
enum { ACTS_MAX = 6, STEP_NODES = 24 };

typedef struct Act {
	const char *name;
	double alpha, beta;
} Act;

typedef struct Cell {
	Node *n;
	int gates; /* 1 RNN, 3 GRU, 4 LSTM */
	int dirs;
	bool batch_first, reverse_only;
	int64_t steps, hidden;
	Act act[ACTS_MAX]; /* nact per direction */
	int nact;
} Cell;

static const struct {
	const char *name;
	bool alpha, beta;
	double a, b;
} known_acts[] = {
	{ "Relu", false, false, 0, 0 },
	{ "Tanh", false, false, 0, 0 },
	{ "Sigmoid", false, false, 0, 0 },
	{ "Affine", true, true, 1, 0 },
	{ "LeakyRelu", true, false, 0.01, 0 },
	{ "ThresholdedRelu", true, false, 1, 0 },
	{ "ScaledTanh", true, true, 1, 1 },
	{ "HardSigmoid", true, true, 0.2, 0.5 },
	{ "Elu", true, false, 1, 0 },
	{ "Softsign", false, false, 0, 0 },
	{ "Softplus", false, false, 0, 0 },
};

static int gates_of(const Node *n)
{
	return !strcmp(n->op, "RNN") ? 1 : !strcmp(n->op, "GRU") ? 3 : 4;
}

static bool same_word(const char *a, const char *b)
{
	while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b))
		a++, b++;
	return !*a && !*b;
}

/* The activations of all directions; alpha and beta are consumed by those that take them, in order. */
static int read_acts(Cell *c)
{
	static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
	Node *n = c->n;
	const Attr *names = node_attr(n, "activations"), *alpha = node_attr(n, "activation_alpha"),
		   *beta = node_attr(n, "activation_beta");
	int used_a = 0, used_b = 0;
	c->nact = c->gates == 1 ? 1 : c->gates == 3 ? 2 : 3;
	if (names && names->type == AT_STRINGS && names->n != 0 && names->n != c->nact * c->dirs) {
		err_at(n->loc, "%s: %d activations are given, %d are wanted", n->op, names->n,
			c->nact * c->dirs);
		return -1;
	}
	for (int i = 0; i < c->nact * c->dirs; i++) {
		const char *name = names && names->n ? names->u.ss[i]
		                   : c->gates == 1   ? "Tanh"
		                                     : defaults[i % c->nact];
		size_t k = 0, all = sizeof known_acts / sizeof *known_acts;
		while (k < all && !same_word(known_acts[k].name, name))
			k++;
		if (k == all) {
			err_at(n->loc, "%s: activation \"%s\" is not known", n->op, name);
			return -1;
		}
		c->act[i] = (Act){ known_acts[k].name, known_acts[k].a, known_acts[k].b };
		if (known_acts[k].alpha && alpha && used_a < alpha->n)
			c->act[i].alpha = (double)alpha->u.fs[used_a++];
		if (known_acts[k].beta && beta && used_b < beta->n)
			c->act[i].beta = (double)beta->u.fs[used_b++];
	}
	return 0;
}

static int read_cell(Node *n, Cell *c)
{
	Name dir = attr_str(n, "direction");
	Type *r = in_type(n, R);
	*c = (Cell){ .n = n, .gates = gates_of(n), .batch_first = attr_int(n, "layout") != 0 };
	c->dirs = !strcmp(dir, "bidirectional") ? 2 : 1;
	c->reverse_only = !strcmp(dir, "reverse");
	if (strcmp(dir, "forward") && c->dirs == 1 && !c->reverse_only) {
		err_at(n->loc, "%s: direction \"%s\" is none of forward, reverse, bidirectional", n->op, dir);
		return -1;
	}
	c->hidden = attr_has(n, "hidden_size")                  ? attr_int(n, "hidden_size")
	            : r && r->rank == 3 && dim_known(r->dim[2]) ? r->dim[2]
	                                                        : -1;
	return read_acts(c);
}

static int want_shape(Node *n, int i, int rank, const Dim *dim, const char *what)
{
	Type *t = in_type(n, i);
	bool clash = t && t->rank >= 0 && t->rank != rank;
	for (int k = 0; !clash && t && k < t->rank; k++)
		clash = dim_differ(t->dim[k], dim[k]);
	if (!clash)
		return 0;
	err_at(in_loc(n, i), "%s: %s is %s, %s is wanted", n->op, what, type_text(t),
		type_text(type_tensor(n->graph->arena, t->elem, rank, dim)));
	return -1;
}

static int shape_recurrent(Node *n)
{
	Type *x = in_type(n, X);
	Cell c;
	if (read_cell(n, &c))
		return -1;
	if (x && x->rank >= 0 && x->rank != 3) {
		err_at(in_loc(n, X), "%s wants an operand of 3 axes, it is %s", n->op, type_text(x));
		return -1;
	}
	bool known = x && x->rank == 3;
	Dim seq = known ? x->dim[c.batch_first] : DIM_UNKNOWN,
	    batch = known ? x->dim[!c.batch_first] : DIM_UNKNOWN;
	Dim hidden = c.hidden < 0 ? DIM_UNKNOWN : c.hidden, all = dim_mul(hidden, c.gates), dirs = c.dirs;
	Dim in = known ? x->dim[2] : DIM_UNKNOWN;
	Dim state[3] = { c.batch_first ? batch : dirs, c.batch_first ? dirs : batch, hidden };
	if (want_shape(n, W, 3, (Dim[]){ dirs, all, in }, "W") ||
		want_shape(n, R, 3, (Dim[]){ dirs, all, hidden }, "R") ||
		want_shape(n, B, 2, (Dim[]){ dirs, dim_mul(all, 2) }, "B") ||
		want_shape(n, LENS, 1, &batch, "sequence_lens") || want_shape(n, H0, 3, state, "initial_h"))
		return -1;
	if (c.gates == 4 && (want_shape(n, C0, 3, state, "initial_c") ||
				    want_shape(n, PEEP, 2, (Dim[]){ dirs, dim_mul(hidden, 3) }, "P")))
		return -1;
	if (c.batch_first)
		out_set(n, 0, in_dtype(n, X), 4, (Dim[]){ batch, seq, dirs, hidden });
	else
		out_set(n, 0, in_dtype(n, X), 4, (Dim[]){ seq, dirs, batch, hidden });
	for (int i = 1; i < n->nout; i++)
		out_set(n, i, in_dtype(n, X), 3, state);
	return 0;
}

/* ---- one step ---- */

static Value *num(Cell *c, Value *like, double v)
{
	return make_num(c->n, like, v);
}

static Value *apply(Cell *c, const Act *a, Value *v)
{
	Node *n = c->n;
	if (!v)
		return NULL;
	const char *both = arena_printf(n->graph->arena, "alpha=%.9e, beta=%.9e", a->alpha, a->beta);
	const char *one = arena_printf(n->graph->arena, "alpha=%.9e", a->alpha);
	if (!strcmp(a->name, "Affine"))
		return make2(n, "Add", make2(n, "Mul", v, num(c, v, a->alpha)), num(c, v, a->beta));
	if (!strcmp(a->name, "ScaledTanh"))
		return make2(n, "Mul", make1(n, "Tanh", make2(n, "Mul", v, num(c, v, a->beta))),
			num(c, v, a->alpha));
	if (!strcmp(a->name, "HardSigmoid"))
		return make(n, NULL, a->name, both, v, NULL, NULL);
	if (!strcmp(a->name, "LeakyRelu") || !strcmp(a->name, "ThresholdedRelu") || !strcmp(a->name, "Elu"))
		return make(n, NULL, a->name, one, v, NULL, NULL);
	return make1(n, a->name, v);
}

/* The same for a gate: clipped first.  The cell state of an LSTM is not, as in ONNX Runtime. */
static Value *activate(Cell *c, const Act *a, Value *v)
{
	double clip = attr_float(c->n, "clip");
	if (v && clip > 0)
		v = make(c->n, NULL, "Clip", NULL, v, num(c, v, -clip), num(c, v, clip));
	return apply(c, a, v);
}

/* v cut into equal parts along an axis; part gets the values. */
static int cut(Cell *c, Value *v, int axis, int count, int64_t size, Value **part)
{
	Node *n = c->n;
	Graph *g = n->graph;
	int64_t *sizes = arena_array(g->scratch, int64_t, count);
	for (int i = 0; i < count; i++) {
		sizes[i] = size;
		part[i] = NULL;
	}
	if (!v)
		return -1;
	if (count == 1) {
		part[0] = v;
		return 0;
	}
	return build(g, n->loc, "Split", arena_printf(g->scratch, "axis=%d", axis), count, part, 2, v,
		       expand_ints(n, sizes, count))
	               ? 0
	               : -1;
}

/* The weights of one direction, ready for the right side of a product. */
typedef struct Side {
	Value *rt;       /* [hidden, gates * hidden] */
	Value *rzr, *rh; /* GRU: the parts of rt before the reset and after */
	Value *rbh;      /* GRU with linear_before_reset: the bias inside the reset */
	Value *peep[3];  /* LSTM: i, o, f */
	const Act *act;
} Side;

static Value *add(Cell *c, Value *a, Value *b)
{
	return b ? make2(c->n, "Add", a, b) : a;
}

static Value *mul(Cell *c, Value *a, Value *b)
{
	return b ? make2(c->n, "Mul", a, b) : NULL;
}

static Value *from_one(Cell *c, Value *v)
{
	return v ? make2(c->n, "Sub", num(c, v, 1), v) : NULL;
}

static Value *step_rnn(Cell *c, const Side *s, Value *x, Value *h)
{
	Value *hr = make2(c->n, "MatMul", h, s->rt);
	return hr ? activate(c, &s->act[0], add(c, x, hr)) : NULL;
}

static Value *step_gru(Cell *c, const Side *s, Value *x, Value *h)
{
	Node *n = c->n;
	Value *xg[3], *hg[3], *z, *r, *cand;
	if (cut(c, x, 2, 3, c->hidden, xg))
		return NULL;
	if (attr_int(n, "linear_before_reset")) {
		if (cut(c, make2(n, "MatMul", h, s->rt), 2, 3, c->hidden, hg))
			return NULL;
		z = activate(c, &s->act[0], add(c, xg[0], hg[0]));
		r = activate(c, &s->act[0], add(c, xg[1], hg[1]));
		cand = mul(c, add(c, hg[2], s->rbh), r);
	} else {
		if (cut(c, make2(n, "MatMul", h, s->rzr), 2, 2, c->hidden, hg))
			return NULL;
		z = activate(c, &s->act[0], add(c, xg[0], hg[0]));
		r = activate(c, &s->act[0], add(c, xg[1], hg[1]));
		Value *kept = mul(c, h, r);
		cand = kept ? make2(n, "MatMul", kept, s->rh) : NULL;
	}
	if (!z || !cand)
		return NULL;
	cand = activate(c, &s->act[1], add(c, xg[2], cand));
	Value *fresh = mul(c, from_one(c, z), cand), *old = mul(c, z, h);
	return fresh && old ? add(c, fresh, old) : NULL;
}

static Value *step_lstm(Cell *c, const Side *s, Value *x, Value *h, Value *state, Value **next)
{
	Node *n = c->n;
	Value *hr = make2(n, "MatMul", h, s->rt), *g[4]; /* i o f c */
	if (!hr || cut(c, add(c, x, hr), 2, 4, c->hidden, g))
		return NULL;
	bool peep = s->peep[0] != NULL, coupled = attr_int(n, "input_forget") != 0;
	Value *i = activate(c, &s->act[0], peep ? add(c, g[0], mul(c, state, s->peep[0])) : g[0]);
	Value *f = coupled ? from_one(c, i)
	                   : activate(c, &s->act[0], peep ? add(c, g[2], mul(c, state, s->peep[2])) : g[2]);
	Value *cand = activate(c, &s->act[1], g[3]);
	Value *kept = mul(c, f, state), *fresh = i ? mul(c, i, cand) : NULL;
	*next = kept && fresh ? add(c, kept, fresh) : NULL;
	if (!*next)
		return NULL;
	Value *o = activate(c, &s->act[0], peep ? add(c, g[1], mul(c, *next, s->peep[1])) : g[1]);
	Value *out = apply(c, &s->act[2], *next);
	return o && out ? mul(c, o, out) : NULL;
}

/* ---- a direction ---- */

/* Part d of an operand whose first axis counts directions, that axis gone. */
static Value *direction(Cell *c, Value *v, int d)
{
	Node *n = c->n;
	if (!v)
		return NULL;
	if (c->dirs == 1)
		return make2(n, "Squeeze", v, expand_ints(n, (int64_t[]){ 0 }, 1));
	return make(n, NULL, "Gather", "axis=0", v, make_int(n, d), NULL);
}

static Value *turned(Cell *c, Value *v)
{
	return make(c->n, NULL, "Transpose", "perm=[1, 0]", v, NULL, NULL);
}

/* [1, batch, hidden] of zeros. */
static Value *zero_state(Cell *c, Value *x)
{
	Node *n = c->n;
	Dim batch = x->type->dim[1];
	Value *shape;
	if (dim_known(batch)) {
		shape = expand_ints(n, (int64_t[]){ 1, batch, c->hidden }, 3);
	} else {
		Value *size = make(n, NULL, "Gather", "axis=0", make1(n, "Shape", x),
			expand_ints(n, (int64_t[]){ 1 }, 1), NULL);
		shape = make(n, NULL, "Concat", "axis=0", expand_ints(n, (int64_t[]){ 1 }, 1), size,
			expand_ints(n, &c->hidden, 1));
	}
	return shape ? make2(n, "Expand", num(c, x, 0), shape) : NULL;
}

/* initial_h or initial_c of direction d as [1, batch, hidden]. */
static Value *first_state(Cell *c, int operand, int d, Value *x)
{
	Node *n = c->n;
	Value *v = in_value(n, operand);
	if (!v)
		return zero_state(c, x);
	if (c->batch_first)
		v = make(n, NULL, "Transpose", "perm=[1, 0, 2]", v, NULL, NULL);
	if (c->dirs == 1)
		return v;
	return make(n, NULL, "Gather", "axis=0", v, expand_ints(n, (int64_t[]){ d }, 1), NULL);
}

/* Biases: all that can be added before the steps goes into *early. */
static int read_bias(Cell *c, int d, Side *s, Value **early)
{
	Node *n = c->n;
	Value *b = direction(c, in_value(n, B), d), *half[2], *wg[2], *rg[2];
	int64_t all = c->gates * c->hidden, h = c->hidden;
	*early = NULL;
	if (!in_value(n, B))
		return 0;
	if (!b || cut(c, b, 0, 2, all, half))
		return -1;
	if (c->gates != 3 || !attr_int(n, "linear_before_reset")) {
		*early = add(c, half[0], half[1]);
		return *early ? 0 : -1;
	}
	Value *sizes = expand_ints(n, (int64_t[]){ 2 * h, h }, 2);
	wg[0] = wg[1] = rg[0] = rg[1] = NULL;
	if (!build(n->graph, n->loc, "Split", "axis=0", 2, wg, 2, half[0], sizes) ||
		!build(n->graph, n->loc, "Split", "axis=0", 2, rg, 2, half[1], sizes))
		return -1;
	s->rbh = rg[1];
	*early = make(n, NULL, "Concat", "axis=0", add(c, wg[0], rg[0]), wg[1], NULL);
	return *early ? 0 : -1;
}

static int read_side(Cell *c, int d, Side *s, Value **early)
{
	Node *n = c->n;
	int64_t h = c->hidden;
	Value *r = direction(c, n->in[R], d), *part[2] = { NULL, NULL };
	*s = (Side){ .act = c->act + d * c->nact };
	s->rt = turned(c, r);
	if (!s->rt || read_bias(c, d, s, early))
		return -1;
	if (c->gates == 3 && !attr_int(n, "linear_before_reset")) {
		if (!build(n->graph, n->loc, "Split", "axis=1", 2, part, 2, s->rt,
			    expand_ints(n, (int64_t[]){ 2 * h, h }, 2)))
			return -1;
		s->rzr = part[0], s->rh = part[1];
	}
	if (c->gates == 4 && in_value(n, PEEP) && cut(c, direction(c, n->in[PEEP], d), 0, 3, h, s->peep))
		return -1;
	return 0;
}

/* Which sequences reach step t: bool [batch, 1]; NULL when all do. */
static Value *alive(Cell *c, int64_t t)
{
	Node *n = c->n;
	Value *lens = in_value(n, LENS);
	if (!lens)
		return NULL;
	Value *yes = make2(n, "Greater", lens, make_num(n, lens, (double)t));
	return make2(n, "Unsqueeze", yes, expand_ints(n, (int64_t[]){ 1 }, 1));
}

static Value *choose(Cell *c, Value *cond, Value *yes, Value *no)
{
	return !cond ? yes : yes && no ? make(c->n, NULL, "Where", NULL, cond, yes, no) : NULL;
}

static Value *joined(Cell *c, int axis, int count, Value **v)
{
	Graph *g = c->n->graph;
	if (count == 1)
		return v[0];
	Node *m = node_new(g, name_of(""), name_of("Concat"), c->n->loc);
	node_attr_add(m, name_of("axis"), AT_INT)->u.i = axis;
	for (int i = 0; i < count; i++)
		node_in(m, v[i]);
	Value *out = graph_fresh(g, name_fmt("Concat.%d", g->nvalue));
	node_out(m, out);
	return inline_append(g, m) < 0 ? NULL : out;
}

/* Runs direction d over x [steps, batch, input]: *y is [steps, batch, hidden], *h and *state the last of
 * each. */
static int run(Cell *c, int d, Value *x, Value **y, Value **h, Value **state)
{
	Node *n = c->n;
	Arena *a = n->graph->scratch;
	Side s;
	Value *early, **at = arena_array(a, Value *, c->steps), **out = arena_array(a, Value *, c->steps);
	if (read_side(c, d, &s, &early))
		return -1;
	Value *xw = make2(n, "MatMul", x, turned(c, direction(c, n->in[W], d)));
	if (!xw || cut(c, add(c, xw, early), 0, (int)c->steps, 1, at))
		return -1;
	*h = first_state(c, H0, d, x);
	*state = c->gates == 4 ? first_state(c, C0, d, x) : NULL;
	bool back = c->reverse_only || d == 1;
	for (int64_t i = 0; i < c->steps && *h; i++) {
		int64_t t = back ? c->steps - 1 - i : i;
		Value *live = alive(c, t), *next = NULL, *fresh = NULL;
		if (in_value(n, LENS) && !live)
			return -1;
		if (c->gates == 1)
			fresh = step_rnn(c, &s, at[t], *h);
		else if (c->gates == 3)
			fresh = step_gru(c, &s, at[t], *h);
		else
			fresh = step_lstm(c, &s, at[t], *h, *state, &next);
		if (!fresh)
			return -1;
		out[t] = choose(c, live, fresh, num(c, fresh, 0));
		*h = choose(c, live, fresh, *h);
		if (c->gates == 4)
			*state = choose(c, live, next, *state);
		if (!out[t] || !*h || (c->gates == 4 && !*state))
			return -1;
	}
	*y = *h ? joined(c, 0, (int)c->steps, out) : NULL;
	return *y ? 0 : -1;
}

/* States of all directions as the result is laid out. */
static int give_state(Cell *c, int result, Value **v)
{
	Node *n = c->n;
	Value *to = out_value(n, result);
	if (!to)
		return 0;
	Value *all = joined(c, 0, c->dirs, v);
	return all && make(n, to, c->batch_first ? "Transpose" : "Identity",
			      c->batch_first ? "perm=[1, 0, 2]" : NULL, all, NULL, NULL)
	               ? 0
	               : -1;
}

static int expand_recurrent(Node *n)
{
	Cell c;
	Type *xt = in_type(n, X);
	if (read_cell(n, &c))
		return -1;
	Dim steps = xt && xt->rank == 3 ? xt->dim[c.batch_first] : DIM_UNKNOWN;
	if (!dim_known(steps) || c.hidden < 1 || steps < 1) {
		err_at(n->loc,
			"%s is unrolled: it needs a known number of steps and a known hidden size, the "
		        "operand is %s",
			n->op, xt ? type_text(xt) : "of unknown shape");
		return -1;
	}
	if (steps > limits.unroll / (STEP_NODES * c.dirs)) {
		fail_at(EXIT_LIMIT, n->loc, "%s over %lld steps becomes more than --max-unroll=%lld nodes",
			n->op, (long long)steps, (long long)limits.unroll);
		return -1;
	}
	c.steps = steps;
	Value *x = n->in[X], *y[2], *h[2], *state[2], *to = out_value(n, 0);
	if (c.batch_first)
		x = make(n, NULL, "Transpose", "perm=[1, 0, 2]", x, NULL, NULL);
	if (!x)
		return -1;
	for (int d = 0; d < c.dirs; d++)
		if (run(&c, d, x, &y[d], &h[d], &state[d]))
			return -1;
	if (give_state(&c, 1, h) || (c.gates == 4 && give_state(&c, 2, state)))
		return -1;
	if (!to)
		return 0;
	Value *axis = expand_ints(n, (int64_t[]){ 1 }, 1); /* [steps, dirs, batch, hidden] */
	bool last = c.dirs == 1 && !c.batch_first;
	for (int d = 0; d < c.dirs; d++)
		y[d] = make(n, last ? to : NULL, "Unsqueeze", NULL, y[d], axis, NULL);
	Value *all =
		c.dirs == 2 ? make(n, c.batch_first ? NULL : to, "Concat", "axis=1", y[0], y[1], NULL) : y[0];
	if (c.batch_first)
		all = make(n, to, "Transpose", "perm=[2, 0, 1, 3]", all, NULL, NULL);
	return all ? 0 : -1;
}

/* The batch is all that may be split. */
static int factor_recurrent(Node *n, FactorRule *r)
{
	static const int axis[] = { X, LENS, H0, C0 };
	Type *x = in_type(n, X);
	int layout = attr_int(n, "layout") != 0;
	if (!x || x->rank != 3)
		return -1;
	int f = factor_add(r, x->dim[!layout]);
	for (int k = 0; k < 4; k++)
		if (axis[k] < n->nin && r->in[axis[k]])
			r->in[axis[k]][axis[k] == LENS ? 0 : !layout] = f;
	for (int i = 0; i < n->nout; i++)
		if (r->out[i])
			r->out[i][layout ? 0 : i == 0 ? 2 : 1] = f;
	return 0;
}

/* The products with W and R at every step. */
static Cost cost_recurrent(const Node *n)
{
	Cost c = cost_bytes(n);
	Type *x = in_type(n, X), *w = in_type(n, W), *r = in_type(n, R);
	int64_t nw = w ? type_elements(w) : -1, nr = r ? type_elements(r) : -1;
	if (x && x->rank == 3 && dim_known(x->dim[0]) && dim_known(x->dim[1]) && nw > 0 && nr > 0)
		c.flops = 2.0 * (double)x->dim[0] * (double)x->dim[1] * ((double)nw + (double)nr);
	return c;
}

#define CELL_ATTRS                                                                       \
	"activation_alpha:floats activation_beta:floats activations:strings clip:float " \
	"direction:string=\"forward\" "                                                  \
	"hidden_size:int layout:int=0"
#define CELL_ROW                                                                 \
	.shape = shape_recurrent, .composite = true, .expand = expand_recurrent, \
	.factor_fn = factor_recurrent, .cost = cost_recurrent

/* clang-format off */
const Op ops_recurrent[] = {
	{ .name = "RNN", .since = 1,
	  .sig = "x:F w:F r:F b:F? sequence_lens:int32? initial_h:F? -> y:F? y_h:F?", .attrs = CELL_ATTRS,
	  .kernel = "rnn", CELL_ROW,
	  .test = "x:[3,2,4] w:[1,3,4] r:[1,3,3] b:[1,6] | x:[2,3,2] w:[2,3,2] r:[2,3,3] initial_h:[2,2,3] "
		  "=direction:\"bidirectional\" =layout:1" },
	{ .name = "GRU", .since = 1,
	  .sig = "x:F w:F r:F b:F? sequence_lens:int32? initial_h:F? -> y:F? y_h:F?",
	  .attrs = CELL_ATTRS " linear_before_reset:int=0", .kernel = "gru", CELL_ROW,
	  .test = "x:[3,2,4] w:[1,9,4] r:[1,9,3] b:[1,18] | x:[3,2,2] w:[2,9,2] r:[2,9,3] b:[2,18] "
		  "initial_h:[2,2,3] =direction:\"bidirectional\" =linear_before_reset:1 | x:[3,2,2] "
		  "w:[1,6,2] r:[1,6,2] =direction:\"reverse\"" },
	{ .name = "LSTM", .since = 1,
	  .sig = "x:F w:F r:F b:F? sequence_lens:int32? initial_h:F? initial_c:F? p:F? -> y:F? y_h:F? y_c:F?",
	  .attrs = CELL_ATTRS " input_forget:int=0", .kernel = "lstm", CELL_ROW,
	  .test = "x:[3,2,4] w:[1,12,4] r:[1,12,3] b:[1,24] | x:[3,2,2] w:[2,12,2] r:[2,12,3] b:[2,24] "
		  "initial_h:[2,2,3] initial_c:[2,2,3] p:[2,9] =direction:\"bidirectional\" | x:[2,3,2] "
		  "w:[1,8,2] r:[1,8,2] =direction:\"reverse\" =input_forget:1 =layout:1" },
	{ 0 },
};
/* clang-format on */
