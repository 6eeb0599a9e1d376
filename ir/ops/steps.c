/* The steps of RNN, GRU and LSTM.  Their operand xw ([steps, batch, gates * hidden]) is the product of the operands of
 * all steps with W, plus biases.  Time runs forward; recurrent.c reverses sequences.
 *
 * They are composites.  The definition unrolls them into core operators, at most limits.unroll of them; states keep a
 * leading axis of 1 ([1, batch, hidden]), so that steps are joined by Concat without reshaping.  Their own gradients
 * are for cells with default attributes: they walk back through the saved gates, and their gradient of xw gives that of
 * R (and W) in one product.  A shorter sequence keeps its last state and gives zeros beyond its end. */
#include <math.h>
#include <string.h>

#include "ops.h"

enum { XW, R, H, LENS, C, P, RB = C };
enum { Y, Y_H, BEFORE, GATES, Y_C, CELLS, INNER = Y_C };
enum { ACTS = 3, STEP_NODES = 24, STATE_MOST = 8192 };  /* STATE_MOST: bytes of a state in kernels */

typedef struct Cell {
	Node *n;
	int gates; /* 1 RNN, 3 GRU, 4 LSTM */
	int64_t steps, hidden;
	Act act[ACTS];
	Value *rt;       /* [hidden, gates * hidden] */
	Value *rzr, *rh; /* GRU: the parts of rt before the reset and after */
	Value *peep[3];  /* LSTM: i, o, f */
} Cell;

static int gates_of(const Node *n)
{
	if (!strncmp(n->op, "RNN", 3))
		return 1;
	return !strncmp(n->op, "GRU", 3) ? 3 : 4;
}

/* Cells with default attributes, of a type and size that kernels compute with. */
bool steps_plain(const Node *n)
{
	Type *x = operand_type(n, XW), *r = operand_type(n, R);
	DType t = x ? x->elem : DT_UNDEFINED;
	int g = gates_of(n);
	return (t == DT_FLOAT || t == DT_DOUBLE) && r && r->ndim == 2 && dim_known(r->dim[1]) &&
	       r->dim[1] * dtype_bits(t) / 8 <= STATE_MOST && !attr_has(n, "activations") &&
	       !(attr_float(n, "clip") > 0) && (g != 4 || (!attr_int(n, "input_forget") && !operand_value(n, P)));
}

static bool own_steps(const Node *n, const bool *wants)
{
	(void)wants;
	return steps_plain(n);
}

/* Checks the shape of operand i, if it is given; -1 after err_at. */
int steps_operand(Node *n, int i, int ndim, const Dim *dim)
{
	Type *t = operand_type(n, i);
	bool clash = t && t->ndim >= 0 && t->ndim != ndim;
	for (int k = 0; !clash && t && k < t->ndim; k++)
		clash = dim_differ(t->dim[k], dim[k]);
	if (!clash)
		return 0;
	err_at(operand_loc(n, i), "%s: %s is %s, %s is needed", n->op, n->row->schema->in[i].name, type_text(t),
		type_text(type_tensor(n->graph->arena, t->elem, ndim, dim)));
	return -1;
}

static int shape_steps(Node *n)
{
	Type *x = operand_type(n, XW), *r = operand_type(n, R);
	int g = gates_of(n);
	if ((x && x->ndim >= 0 && x->ndim != 3) || (r && r->ndim >= 0 && r->ndim != 2)) {
		err_at(n->loc, "%s needs xw of 3 axes and r of 2, they are %s and %s", n->op, type_text(x),
			type_text(r));
		return -1;
	}
	Dim seq = x && x->ndim == 3 ? x->dim[0] : DIM_UNKNOWN, batch = x && x->ndim == 3 ? x->dim[1] : DIM_UNKNOWN;
	Dim hidden = r && r->ndim == 2 ? r->dim[1] : DIM_UNKNOWN, all = dim_mul(hidden, g);
	Dim state[3] = { 1, batch, hidden }, every[3] = { seq, batch, hidden }, gates[3] = { seq, batch, all };
	if (steps_operand(n, XW, 3, gates) || steps_operand(n, R, 2, (Dim[]){ all, hidden }) ||
		steps_operand(n, H, 3, state) || steps_operand(n, LENS, 1, &batch) ||
		(g == 4 && steps_operand(n, C, 3, state)) ||
		(g == 4 && steps_operand(n, P, 1, (Dim[]){ dim_mul(hidden, 3) })) ||
		(g == 3 && steps_operand(n, RB, 1, &hidden)))
		return -1;
	for (int i = 0; i < n->nout; i++) {
		const Dim *dim = every;
		if (i == Y_H || (g == 4 && i == Y_C))
			dim = state;
		else if (i == GATES)
			dim = gates;
		operand_set_result(n, i, operand_dtype(n, XW), 3, dim);
	}
	return 0;
}

/* The shape of dy determines those of the results, whose operands are found by name. */
static int shape_steps_grad(Node *n)
{
	Type *dy = operand_type(n, 0);
	if (dy && dy->ndim >= 0 && dy->ndim != 3) {
		err_at(operand_loc(n, 0), "%s needs dy of 3 axes, it is %s", n->op, type_text(dy));
		return -1;
	}
	bool known = dy && dy->ndim == 3;
	Dim seq = known ? dy->dim[0] : DIM_UNKNOWN, batch = known ? dy->dim[1] : DIM_UNKNOWN,
	    hidden = known ? dy->dim[2] : DIM_UNKNOWN;
	Dim all = dim_mul(hidden, gates_of(n)), state[3] = { 1, batch, hidden }, gates[3] = { seq, batch, all },
	    every[3] = { seq, batch, hidden };
	for (int i = 1; i < n->nin; i++) {
		const char *name = n->row->schema->in[i].name;
		bool bad;
		if (!strcmp(name, "r"))
			bad = steps_operand(n, i, 2, (Dim[]){ all, hidden });
		else if (!strcmp(name, "lens"))
			bad = steps_operand(n, i, 1, &batch);
		else if (!strcmp(name, "gates"))
			bad = steps_operand(n, i, 3, gates);
		else if (!strcmp(name, "c") || !strncmp(name, "dy_", 3))
			bad = steps_operand(n, i, 3, state);
		else
			bad = steps_operand(n, i, 3, every);
		if (bad)
			return -1;
	}
	for (int i = 0; i < n->nout; i++)
		operand_set_result(n, i, operand_dtype(n, 0), 3,
			i == 0 || (gates_of(n) == 3 && i == 2) ? gates : state);
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
static Value *activate(Cell *c, int act, Value *v)
{
	double clip = attr_float(c->n, "clip");
	if (v && clip > 0)
		v = make(c->n, NULL, "Clip", NULL, v, num(c, v, -clip), num(c, v, clip));
	return apply(c, &c->act[act], v);
}

/* v split into equal pieces along an axis, stored in part. */
static int cut(Cell *c, Value *v, int axis, int count, int64_t size, Value **piece)
{
	Node *n = c->n;
	Graph *g = n->graph;
	int64_t *sizes = arena_array(g->scratch, int64_t, count);
	for (int i = 0; i < count; i++) {
		sizes[i] = size;
		piece[i] = NULL;
	}
	if (!v)
		return -1;
	if (count == 1) {
		piece[0] = v;
		return 0;
	}
	return build(g, n->loc, "Split", arena_printf(g->scratch, "axis=%d", axis), count, piece, 2, v,
		       expand_ints(n, sizes, count))
	               ? 0
	               : -1;
}

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

static Value *joined(Cell *c, Value *to, int axis, int count, Value **v)
{
	Graph *g = c->n->graph;
	Node *m = node_new(g, name_of(""), name_of("Concat"), c->n->loc);
	node_attr_add(m, name_of("axis"), AT_INT)->u.i = axis;
	for (int i = 0; i < count; i++) {
		if (!v[i])
			return NULL;
		node_in(m, v[i]);
	}
	Value *out = to ? to : graph_fresh(g, name_fmt("Concat.%d", g->nvalue));
	node_out(m, out);
	return inline_append(g, m) < 0 ? NULL : out;
}

/* Results of a step besides its state: kept by composites whose gradient reads them. */
typedef struct Made {
	Value *h, *state;        /* after the step */
	Value *gates, *inner;
} Made;

static Value *step_rnn(Cell *c, Value *x, Value *h)
{
	Value *hr = make2(c->n, "MatMul", h, c->rt);
	return hr ? activate(c, 0, add(c, x, hr)) : NULL;
}

static Value *step_gru(Cell *c, Value *x, Value *h, Made *made)
{
	Node *n = c->n;
	Value *xg[3], *hg[3], *z, *r, *cand;
	if (cut(c, x, 2, 3, c->hidden, xg))
		return NULL;
	if (attr_int(n, "linear_before_reset")) {
		if (cut(c, make2(n, "MatMul", h, c->rt), 2, 3, c->hidden, hg))
			return NULL;
		z = activate(c, 0, add(c, xg[0], hg[0]));
		r = activate(c, 0, add(c, xg[1], hg[1]));
		made->inner = add(c, hg[2], operand_value(n, RB));
		cand = mul(c, made->inner, r);
	} else {
		if (cut(c, make2(n, "MatMul", h, c->rzr), 2, 2, c->hidden, hg))
			return NULL;
		z = activate(c, 0, add(c, xg[0], hg[0]));
		r = activate(c, 0, add(c, xg[1], hg[1]));
		made->inner = mul(c, h, r);
		cand = made->inner ? make2(n, "MatMul", made->inner, c->rh) : NULL;
	}
	if (!z || !cand)
		return NULL;
	cand = activate(c, 1, add(c, xg[2], cand));
	if (operand_result(n, GATES) && !(made->gates = joined(c, NULL, 2, 3, (Value *[]){ z, r, cand })))
		return NULL;
	Value *fresh = mul(c, from_one(c, z), cand), *old = mul(c, z, h);
	return fresh && old ? add(c, fresh, old) : NULL;
}

static Value *step_lstm(Cell *c, Value *x, Value *h, Value *state, Made *made)
{
	Node *n = c->n;
	Value *hr = make2(n, "MatMul", h, c->rt), *g[4]; /* i o f c */
	if (!hr || cut(c, add(c, x, hr), 2, 4, c->hidden, g))
		return NULL;
	bool peep = c->peep[0] != NULL, coupled = attr_int(n, "input_forget") != 0;
	Value *i = activate(c, 0, peep ? add(c, g[0], mul(c, state, c->peep[0])) : g[0]);
	Value *f = coupled ? from_one(c, i) : activate(c, 0, peep ? add(c, g[2], mul(c, state, c->peep[2])) : g[2]);
	Value *cand = activate(c, 1, g[3]);
	Value *kept = mul(c, f, state), *fresh = i ? mul(c, i, cand) : NULL;
	made->state = kept && fresh ? add(c, kept, fresh) : NULL;
	if (!made->state)
		return NULL;
	Value *o = activate(c, 0, peep ? add(c, g[1], mul(c, made->state, c->peep[1])) : g[1]);
	Value *out = apply(c, &c->act[2], made->state);
	if (operand_result(n, GATES) && !(made->gates = joined(c, NULL, 2, 4, (Value *[]){ i, o, f, cand })))
		return NULL;
	return o && out ? mul(c, o, out) : NULL;
}

/* ---- all steps ---- */

static void read_acts(Cell *c)
{
	static const char *const defaults[] = { "Sigmoid", "Tanh", "Tanh" };
	const Attr *names = node_attr(c->n, "activations"), *alpha = node_attr(c->n, "activation_alpha"),
		   *beta = node_attr(c->n, "activation_beta");
	for (int i = 0; i < ACTS; i++) {
		c->act[i].name = names && i < names->n ? names->u.ss[i] : c->gates == 1 ? "Tanh" : defaults[i];
		c->act[i].alpha = alpha && i < alpha->n ? (double)alpha->u.fs[i] : 0;
		c->act[i].beta = beta && i < beta->n ? (double)beta->u.fs[i] : 0;
	}
}

static int read_cell(Node *n, Cell *c)
{
	Type *x = operand_type(n, XW), *r = operand_type(n, R);
	*c = (Cell){ .n = n, .gates = gates_of(n) };
	if (!x || x->ndim != 3 || !dim_known(x->dim[0]) || !r || r->ndim != 2 || !dim_known(r->dim[1]) ||
		x->dim[0] < 1 || r->dim[1] < 1) {
		err_at(n->loc,
			"%s is unrolled: it needs a known number of steps and a known hidden size, the operands are %s "
			"and %s",
			n->op, x ? type_text(x) : "of unknown shape", r ? type_text(r) : "of unknown shape");
		return -1;
	}
	c->steps = x->dim[0];
	c->hidden = r->dim[1];
	if (c->steps > limits.unroll / STEP_NODES) {
		fail_at(EXIT_LIMIT, n->loc, "%s over %lld steps becomes more than --max-unroll=%lld nodes", n->op,
			(long long)c->steps, (long long)limits.unroll);
		return -1;
	}
	read_acts(c);
	Value *piece[2] = { NULL, NULL };
	c->rt = make(n, NULL, "Transpose", "perm=[1, 0]", n->in[R], NULL, NULL);
	if (!c->rt)
		return -1;
	if (c->gates == 3 && !attr_int(n, "linear_before_reset")) {
		int64_t h = c->hidden;
		if (!build(n->graph, n->loc, "Split", "axis=1", 2, piece, 2, c->rt,
			    expand_ints(n, (int64_t[]){ 2 * h, h }, 2)))
			return -1;
		c->rzr = piece[0], c->rh = piece[1];
	}
	return c->gates == 4 && operand_value(n, P) ? cut(c, n->in[P], 0, 3, c->hidden, c->peep) : 0;
}

/* [1, batch, hidden] of zeros, or the given operand. */
static Value *first_state(Cell *c, int operand)
{
	Node *n = c->n;
	Dim batch = n->in[XW]->type->dim[1];
	Value *shape;
	if (operand_value(n, operand))
		return n->in[operand];
	if (dim_known(batch)) {
		shape = expand_ints(n, (int64_t[]){ 1, batch, c->hidden }, 3);
	} else {
		Value *size = make(n, NULL, "Gather", "axis=0", make1(n, "Shape", n->in[XW]),
			expand_ints(n, (int64_t[]){ 1 }, 1), NULL);
		shape = make(n, NULL, "Concat", "axis=0", expand_ints(n, (int64_t[]){ 1 }, 1), size,
			expand_ints(n, &c->hidden, 1));
	}
	return shape ? make2(n, "Expand", num(c, n->in[XW], 0), shape) : NULL;
}

/* Which sequences reach step t: bool [batch, 1]; NULL when all do. */
static Value *alive(Cell *c, int64_t t)
{
	Node *n = c->n;
	Value *lens = operand_value(n, LENS);
	if (!lens)
		return NULL;
	Value *yes = make2(n, "Greater", lens, make_num(n, lens, (double)t));
	return make2(n, "Unsqueeze", yes, expand_ints(n, (int64_t[]){ 1 }, 1));
}

static Value *choose(Cell *c, Value *cond, Value *yes, Value *no)
{
	return !cond ? yes : yes && no ? make(c->n, NULL, "Where", NULL, cond, yes, no) : NULL;
}

static int expand_steps(Node *n)
{
	Cell c;
	if (read_cell(n, &c))
		return -1;
	Arena *a = n->graph->scratch;
	Value **at = arena_array(a, Value *, c.steps), *h = first_state(&c, H),
	      *state = c.gates == 4 ? first_state(&c, C) : NULL;
	enum { NOUT = CELLS + 1 };
	Value **kept[NOUT];
	for (int i = 0; i < NOUT; i++)
		kept[i] = arena_array(a, Value *, c.steps);
	if (cut(&c, n->in[XW], 0, (int)c.steps, 1, at))
		return -1;
	for (int64_t t = 0; t < c.steps; t++) {
		Value *live = alive(&c, t), *fresh = NULL;
		Made made = { 0 };
		if (!h || (c.gates == 4 && !state) || (operand_value(n, LENS) && !live))
			return -1;
		kept[BEFORE][t] = h;
		if (c.gates == 1)
			fresh = step_rnn(&c, at[t], h);
		else if (c.gates == 3)
			fresh = step_gru(&c, at[t], h, &made);
		else
			fresh = step_lstm(&c, at[t], h, state, &made);
		if (!fresh)
			return -1;
		kept[Y][t] = choose(&c, live, fresh, num(&c, fresh, 0));
		h = choose(&c, live, fresh, h);
		state = c.gates == 4 ? choose(&c, live, made.state, state) : NULL;
		kept[GATES][t] = made.gates;
		kept[c.gates == 4 ? CELLS : INNER][t] = c.gates == 4 ? state : made.inner;
	}
	for (int i = 0; i < n->nout; i++) {
		Value *to = n->out[i], *last = i == Y_H ? h : c.gates == 4 && i == Y_C ? state : NULL;
		if (to && (last ? expand_result(n, i, last) < 0 : !joined(&c, to, 0, (int)c.steps, kept[i])))
			return -1;
	}
	return 0;
}

/* ---- gradients ---- */

/* Rows of a tensor as doubles; NULL: left out. */
static double *rows(Tensor *const *in, const Node *n, int i)
{
	return i < n->nin && in[i] ? eval_doubles(in[i]) : NULL;
}

typedef struct Walk {
	int64_t steps, batch, hidden, wide;
	double *dxw, *dh, *dc, *side;
	const double *r, *h;
} Walk;

/* dh[b] += dg R, of the gates from .. to - 1. */
static void through_r(const Walk *w, const double *dg, double *dh, int64_t from, int64_t to)
{
	for (int64_t g = from * w->hidden; g < to * w->hidden; g++)
		for (int64_t k = 0; k < w->hidden; k++)
			dh[k] += dg[g] * w->r[g * w->hidden + k];
}

static int walk_begin(Node *n, Tensor **in, Walk *w)
{
	const Tensor *dy = in[0];
	*w = (Walk){ .steps = dy->dim[0], .batch = dy->dim[1], .hidden = dy->dim[2], .wide = dy->dim[2] * gates_of(n) };
	int64_t states = w->batch * w->hidden;
	w->r = eval_doubles(in[3]);
	w->dxw = eval_scratch(sizeof(double) * (size_t)(w->steps * w->batch * w->wide + 1));
	w->side = eval_scratch(sizeof(double) * (size_t)(w->steps * w->batch * w->wide + 1));
	w->dc = eval_scratch(sizeof(double) * (size_t)(states + 1));
	w->dh = rows(in, n, 1);
	if (!w->dh) {
		w->dh = eval_scratch(sizeof(double) * (size_t)(states + 1));
		memset(w->dh, 0, sizeof(double) * (size_t)states);
	}
	memset(w->dxw, 0, sizeof(double) * (size_t)(w->steps * w->batch * w->wide));
	memset(w->side, 0, sizeof(double) * (size_t)(w->steps * w->batch * w->wide));
	return 0;
}

static bool live(Tensor *const *in, const Node *n, int i, int64_t b, int64_t t)
{
	return i >= n->nin || !in[i] || t < tensor_int(in[i], b);
}

static int eval_rnn_grad(Node *n, Tensor **in, Tensor **out)
{
	Walk w;
	walk_begin(n, in, &w);
	const double *dy = eval_doubles(in[0]), *y = eval_doubles(in[2]);
	for (int64_t t = w.steps; t-- > 0;)
		for (int64_t b = 0; b < w.batch; b++) {
			double *dh = w.dh + b * w.hidden, *dg = w.dxw + (t * w.batch + b) * w.wide;
			if (!live(in, n, 4, b, t))
				continue;
			for (int64_t j = 0; j < w.hidden; j++) {
				int64_t at = (t * w.batch + b) * w.hidden + j;
				dg[j] = (dh[j] + dy[at]) * (1 - y[at] * y[at]);
				dh[j] = 0;
			}
			through_r(&w, dg, dh, 0, 1);
		}
	eval_store(out[0], w.dxw);
	if (n->nout > 1 && out[1])
		eval_store(out[1], w.dh);
	return 0;
}

/* Operands: dy dy_h gates r before inner lens. */
static int eval_gru_grad(Node *n, Tensor **in, Tensor **out)
{
	Walk w;
	walk_begin(n, in, &w);
	bool linear = attr_int(n, "linear_before_reset") != 0;
	const double *dy = eval_doubles(in[0]), *gates = eval_doubles(in[2]), *before = eval_doubles(in[4]),
		     *inner = eval_doubles(in[5]);
	double *reset = eval_scratch(sizeof(double) * (size_t)(w.hidden + 1));
	int64_t hn = w.hidden;
	for (int64_t t = w.steps; t-- > 0;)
		for (int64_t b = 0; b < w.batch; b++) {
			int64_t row = t * w.batch + b;
			double *dh = w.dh + b * hn, *dg = w.dxw + row * w.wide, *side = w.side + row * w.wide;
			const double *z = gates + row * w.wide, *r = z + hn, *cand = r + hn, *h = before + row * hn;
			if (!live(in, n, 6, b, t))
				continue;
			for (int64_t j = 0; j < hn; j++) {
				double d = dh[j] + dy[row * hn + j];
				dg[j] = d * (h[j] - cand[j]) * z[j] * (1 - z[j]);
				dg[2 * hn + j] = d * (1 - z[j]) * (1 - cand[j] * cand[j]);
				dh[j] = d * z[j];
				reset[j] = linear ? dg[2 * hn + j] * inner[row * hn + j] : 0;
			}
			for (int64_t g = 0; g < hn && !linear; g++)
				for (int64_t k = 0; k < hn; k++)
					reset[k] += dg[2 * hn + g] * w.r[(2 * hn + g) * hn + k];
			for (int64_t j = 0; j < hn; j++) {
				dh[j] += linear ? 0 : reset[j] * r[j];
				dg[hn + j] = reset[j] * (linear ? 1 : h[j]) * r[j] * (1 - r[j]);
				side[j] = dg[j];
				side[hn + j] = dg[hn + j];
				side[2 * hn + j] = linear ? dg[2 * hn + j] * r[j] : dg[2 * hn + j];
			}
			through_r(&w, side, dh, 0, linear ? 3 : 2);
		}
	eval_store(out[0], w.dxw);
	if (n->nout > 1 && out[1])
		eval_store(out[1], w.dh);
	if (n->nout > 2 && out[2])
		eval_store(out[2], w.side);
	return 0;
}

/* Operands: dy dy_h gates r dy_c cells c lens. */
static int eval_lstm_grad(Node *n, Tensor **in, Tensor **out)
{
	Walk w;
	walk_begin(n, in, &w);
	const double *dy = eval_doubles(in[0]), *gates = eval_doubles(in[2]), *dyc = rows(in, n, 4),
		     *cells = eval_doubles(in[5]), *first = rows(in, n, 6);
	int64_t hn = w.hidden, states = w.batch * hn;
	for (int64_t i = 0; i < states; i++)
		w.dc[i] = dyc ? dyc[i] : 0;
	for (int64_t t = w.steps; t-- > 0;)
		for (int64_t b = 0; b < w.batch; b++) {
			int64_t row = t * w.batch + b;
			double *dh = w.dh + b * hn, *dc = w.dc + b * hn, *dg = w.dxw + row * w.wide;
			const double *i = gates + row * w.wide, *o = i + hn, *f = o + hn, *cand = f + hn;
			if (!live(in, n, 7, b, t))
				continue;
			for (int64_t j = 0; j < hn; j++) {
				double out_ = tanh(cells[row * hn + j]), d = dh[j] + dy[row * hn + j],
				       s = dc[j] + d * o[j] * (1 - out_ * out_);
				double old = t > 0 ? cells[(row - w.batch) * hn + j] : first ? first[b * hn + j] : 0;
				dg[j] = s * cand[j] * i[j] * (1 - i[j]);
				dg[hn + j] = d * out_ * o[j] * (1 - o[j]);
				dg[2 * hn + j] = s * old * f[j] * (1 - f[j]);
				dg[3 * hn + j] = s * i[j] * (1 - cand[j] * cand[j]);
				dc[j] = s * f[j];
				dh[j] = 0;
			}
			through_r(&w, dg, dh, 0, 4);
		}
	eval_store(out[0], w.dxw);
	if (n->nout > 1 && out[1])
		eval_store(out[1], w.dh);
	if (n->nout > 2 && out[2])
		eval_store(out[2], w.dc);
	return 0;
}

/* ---- rows ---- */

/* Only the batch may be split: the second axis of all operands but r and the vectors, the first of lens. */
static int factor_steps(Node *n, FactorRule *r)
{
	Type *x = operand_type(n, 0);
	if (!x || x->ndim != 3)
		return -1;
	int f = factor_add(r, x->dim[1]);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && operand_ndim(n, i) == 3)
			r->in[i][1] = f;
		else if (n->in[i] && !strcmp(n->row->schema->in[i].name, "lens"))
			r->in[i][0] = f;
	for (int i = 0; i < n->nout; i++)
		if (r->out[i])
			r->out[i][1] = f;
	return 0;
}

/* The cost of the product with R at every step. */
static Cost cost_steps(const Node *n)
{
	Cost c = cost_bytes(n);
	Type *x = operand_type(n, 0), *r = operand_type(n, strstr(n->op, "Grad") ? 3 : R);
	int64_t nr = r ? type_elements(r) : -1;
	if (x && x->ndim == 3 && dim_known(x->dim[0]) && dim_known(x->dim[1]) && nr > 0)
		c.flops = 2.0 * (double)x->dim[0] * (double)x->dim[1] * (double)nr;
	return c;
}

#define STEPS \
	.domain = "sbpcc", .since = 1, .shape = shape_steps, .composite = true, .expand = expand_steps, \
	.factor_fn = factor_steps, .own = own_steps, .cost = cost_steps
#define STEPS_GRAD \
	.domain = "sbpcc", .since = 1, .shape = shape_steps_grad, .factor_fn = factor_steps, .nograd = true, \
	.cost = cost_steps
#define ACT_ATTRS "activations:strings activation_alpha:floats activation_beta:floats clip:float"

/* clang-format off */
const Op ops_steps[] = {
	{ .name = "RNNSteps", STEPS, .sig = "xw:F r:F h:F? lens:int32? -> y:F y_h:F? before:F?", .attrs = ACT_ATTRS,
	  .kernel = "rnn",
	  .stash = "before", .grad = "dxw, dh = RNNStepsGrad(dy, dy_h, y, r, lens); dr = MatMulOver(dxw, before)",
	  .test = "xw:[3,2,3] r:[3,3] | xw:[3,2,2] r:[2,2] h:[1,2,2] lens:int32(0,4)[2]" },
	{ .name = "RNNStepsGrad", STEPS_GRAD, .sig = "dy:F dy_h:F? y:F r:F lens:int32? -> dxw:F dh:F?",
	  .kernel = "rnn_grad", .eval = eval_rnn_grad,
	  .test = "dy:[3,2,3] dy_h:[1,2,3] y:[3,2,3] r:[3,3] lens:int32(0,4)[2]" },
	{ .name = "GRUSteps", STEPS,
	  .sig = "xw:F r:F h:F? lens:int32? rb:F? -> y:F y_h:F? before:F? gates:F? inner:F?",
	  .attrs = ACT_ATTRS " linear_before_reset:int=0", .kernel = "gru", .stash = "before gates inner",
	  .grad = "dxw, dh, side = GRUStepsGrad<linear_before_reset=@linear_before_reset>(dy, dy_h, gates, r, "
	          "before, inner, lens);"
	          "n = Shape<start=2, end=3>(before); "
	          "m = Add(n, n);"
	          "dr = MatMulOver(side, before) @when(\"linear_before_reset\");"
	          "upper = MatMulOver(Slice(side, [0], m, [2]), before) @when(\"!linear_before_reset\");"
	          "lower = MatMulOver(Slice(side, m, Add(m, n), [2]), inner) @when(\"!linear_before_reset\");"
	          "dr = Concat<axis=0>(upper, lower) @when(\"!linear_before_reset\");"
	          "drb = ReduceSum<keepdims=0>(Slice(side, m, Add(m, n), [2]), [0, 1]) @when(\"has(rb)\")",
	  .test = "xw:[3,2,9] r:[9,3] | xw:[3,2,6] r:[6,2] h:[1,2,2] lens:int32(0,4)[2] | "
	          "xw:[3,2,6] r:[6,2] h:[1,2,2] rb:[2] =linear_before_reset:1" },
	{ .name = "GRUStepsGrad", STEPS_GRAD,
	  .sig = "dy:F dy_h:F? gates:F r:F before:F inner:F lens:int32? -> dxw:F dh:F? side:F?",
	  .attrs = "linear_before_reset:int=0", .kernel = "gru_grad", .eval = eval_gru_grad,
	  .test = "dy:[3,2,2] dy_h:[1,2,2] gates:(0.1,0.9)[3,2,6] r:[6,2] before:[3,2,2] inner:[3,2,2] | "
	          "dy:[3,2,2] gates:(0.1,0.9)[3,2,6] r:[6,2] before:[3,2,2] inner:[3,2,2] lens:int32(0,4)[2] "
	          "=linear_before_reset:1" },
	{ .name = "LSTMSteps", STEPS,
	  .sig = "xw:F r:F h:F? lens:int32? c:F? p:F? -> y:F y_h:F? before:F? gates:F? y_c:F? cells:F?",
	  .attrs = ACT_ATTRS " input_forget:int=0", .kernel = "lstm", .stash = "before gates cells",
	  .grad = "dxw, dh, dc = LSTMStepsGrad(dy, dy_h, gates, r, dy_c, cells, c, lens); "
	          "dr = MatMulOver(dxw, before)",
	  .test = "xw:[3,2,12] r:[12,3] | xw:[3,2,8] r:[8,2] h:[1,2,2] c:[1,2,2] lens:int32(0,4)[2] | "
	          "xw:[2,2,8] r:[8,2] p:[6] =input_forget:1" },
	{ .name = "LSTMStepsGrad", STEPS_GRAD,
	  .sig = "dy:F dy_h:F? gates:F r:F dy_c:F? cells:F c:F? lens:int32? -> dxw:F dh:F? dc:F?",
	  .kernel = "lstm_grad", .eval = eval_lstm_grad,
	  .test = "dy:[3,2,2] dy_h:[1,2,2] gates:(0.1,0.9)[3,2,8] r:[8,2] dy_c:[1,2,2] cells:[3,2,2] c:[1,2,2] | "
	          "dy:[3,2,2] gates:(0.1,0.9)[3,2,8] r:[8,2] cells:[3,2,2] lens:int32(0,4)[2]" },
	{ 0 },
};
/* clang-format on */
