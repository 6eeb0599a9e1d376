/* RNN, GRU and LSTM: directions, layouts and biases.  The product of the operands of all steps with W is one MatMul.
 * The recurrence is a node of steps.c for each direction, which walks forward; for the backward direction sequences are
 * reversed before and after. */
#include <ctype.h>
#include <string.h>

#include "ops.h"

enum { X, W, R, B, LENS, H0, C0, PEEP };
enum { ACTS_MAX = 6 };

typedef struct Cell {
	Node *n;
	int gates; /* 1 RNN, 3 GRU, 4 LSTM */
	int dirs;
	bool batch_first, reverse_only;
	int64_t hidden;
	Act act[ACTS_MAX]; /* nact per direction */
	int nact;
	bool unusual; /* not all activations are those of the cell */
} Cell;

static const struct {
	const char *name;
	bool alpha, beta;       /* whether it has the parameter */
	double a, b;            /* their defaults */
} known_acts[] = {
	{ .name = "Relu" },
	{ .name = "Tanh" },
	{ .name = "Sigmoid" },
	{ .name = "Affine", .alpha = true, .beta = true, .a = 1 },
	{ .name = "LeakyRelu", .alpha = true, .a = 0.01 },
	{ .name = "ThresholdedRelu", .alpha = true, .a = 1 },
	{ .name = "ScaledTanh", .alpha = true, .beta = true, .a = 1, .b = 1 },
	{ .name = "HardSigmoid", .alpha = true, .beta = true, .a = 0.2, .b = 0.5 },
	{ .name = "Elu", .alpha = true, .a = 1 },
	{ .name = "Softsign" },
	{ .name = "Softplus" },
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
		err_at(n->loc, "%s: %d activations are given, %d are needed", n->op, names->n,
			c->nact * c->dirs);
		return -1;
	}
	for (int i = 0; i < c->nact * c->dirs; i++) {
		const char *usual = c->gates == 1 ? "Tanh" : defaults[i % c->nact],
			   *name = names && names->n ? names->u.ss[i] : usual;
		size_t k = 0, all = sizeof known_acts / sizeof *known_acts;
		while (k < all && !same_word(known_acts[k].name, name))
			k++;
		if (k == all) {
			err_at(n->loc, "%s: activation \"%s\" is not known", n->op, name);
			return -1;
		}
		c->act[i] = (Act){ known_acts[k].name, known_acts[k].a, known_acts[k].b };
		c->unusual |= strcmp(known_acts[k].name, usual) != 0;
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
	Type *r = operand_type(n, R);
	*c = (Cell){ .n = n, .gates = gates_of(n), .batch_first = attr_int(n, "layout") != 0 };
	c->dirs = !strcmp(dir, "bidirectional") ? 2 : 1;
	c->reverse_only = !strcmp(dir, "reverse");
	if (strcmp(dir, "forward") && c->dirs == 1 && !c->reverse_only) {
		err_at(n->loc, "%s: direction \"%s\" is none of forward, reverse, bidirectional", n->op, dir);
		return -1;
	}
	c->hidden = attr_has(n, "hidden_size")                  ? attr_int(n, "hidden_size")
	            : r && r->ndim == 3 && dim_known(r->dim[2]) ? r->dim[2]
	                                                        : -1;
	return read_acts(c);
}

static int shape_recurrent(Node *n)
{
	Type *x = operand_type(n, X);
	Cell c;
	if (read_cell(n, &c))
		return -1;
	if (x && x->ndim >= 0 && x->ndim != 3) {
		err_at(operand_loc(n, X), "%s needs an operand of 3 axes, it is %s", n->op, type_text(x));
		return -1;
	}
	bool known = x && x->ndim == 3;
	Dim seq = known ? x->dim[c.batch_first] : DIM_UNKNOWN,
	    batch = known ? x->dim[!c.batch_first] : DIM_UNKNOWN;
	Dim hidden = c.hidden < 0 ? DIM_UNKNOWN : c.hidden, all = dim_mul(hidden, c.gates), dirs = c.dirs;
	Dim in = known ? x->dim[2] : DIM_UNKNOWN;
	Dim state[3] = { c.batch_first ? batch : dirs, c.batch_first ? dirs : batch, hidden };
	if (steps_operand(n, W, 3, (Dim[]){ dirs, all, in }) ||
		steps_operand(n, R, 3, (Dim[]){ dirs, all, hidden }) ||
		steps_operand(n, B, 2, (Dim[]){ dirs, dim_mul(all, 2) }) ||
		steps_operand(n, LENS, 1, &batch) || steps_operand(n, H0, 3, state))
		return -1;
	if (c.gates == 4 && (steps_operand(n, C0, 3, state) ||
				    steps_operand(n, PEEP, 2, (Dim[]){ dirs, dim_mul(hidden, 3) })))
		return -1;
	if (c.batch_first)
		operand_set_result(n, 0, operand_dtype(n, X), 4, (Dim[]){ batch, seq, dirs, hidden });
	else
		operand_set_result(n, 0, operand_dtype(n, X), 4, (Dim[]){ seq, dirs, batch, hidden });
	for (int i = 1; i < n->nout; i++)
		operand_set_result(n, i, operand_dtype(n, X), 3, state);
	return 0;
}

/* ---- a direction ---- */

/* Part d of an operand whose first axis counts directions, without that axis. */
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

/* initial_h or initial_c of direction d as [1, batch, hidden]; NULL: zeros. */
static Value *first_state(Cell *c, int operand, int d)
{
	Node *n = c->n;
	Value *v = operand_value(n, operand);
	if (v && c->batch_first)
		v = make(n, NULL, "Transpose", "perm=[1, 0, 2]", v, NULL, NULL);
	return v && c->dirs == 2 ? make(n, NULL, "Gather", "axis=0", v, expand_ints(n, (int64_t[]){ d }, 1), NULL) : v;
}

static Value *add(Cell *c, Value *a, Value *b)
{
	return a && b ? make2(c->n, "Add", a, b) : NULL;
}

/* A vector cut in two. */
static int halves(Cell *c, Value *v, int64_t first, int64_t second, Value **piece)
{
	Node *n = c->n;
	piece[0] = piece[1] = NULL;
	Value *sizes = v ? expand_ints(n, (int64_t[]){ first, second }, 2) : NULL;
	return v && build(n->graph, n->loc, "Split", "axis=0", 2, piece, 2, v, sizes) ? 0 : -1;
}

/* Biases of direction d: *early is added before the steps; for a GRU with linear_before_reset, *late is added inside
 * the reset. */
static int read_bias(Cell *c, int d, Value **early, Value **late)
{
	Node *n = c->n;
	Value *half[2], *wg[2], *rg[2];
	int64_t all = c->gates * c->hidden, h = c->hidden;
	*early = *late = NULL;
	if (!operand_value(n, B))
		return 0;
	if (halves(c, direction(c, n->in[B], d), all, all, half))
		return -1;
	if (c->gates != 3 || !attr_int(n, "linear_before_reset")) {
		*early = add(c, half[0], half[1]);
		return *early ? 0 : -1;
	}
	if (halves(c, half[0], 2 * h, h, wg) || halves(c, half[1], 2 * h, h, rg))
		return -1;
	*late = rg[1];
	*early = make(n, NULL, "Concat", "axis=0", add(c, wg[0], rg[0]), wg[1], NULL);
	return *early ? 0 : -1;
}

/* Reverses [steps, batch, ...] for the backward direction, each sequence within its length. */
static Value *turn_round(Cell *c, Value *v)
{
	Node *n = c->n;
	Value *lens = operand_value(n, LENS);
	if (lens)
		return make(n, NULL, "ReverseSequence", "batch_axis=1, time_axis=0", v,
			expand_cast(n, lens, DT_INT64), NULL);
	Value *last = expand_ints(n, (int64_t[]){ -1 }, 1);
	return expand_op(n, "Slice", NULL, v, last, expand_ints(n, (int64_t[]){ INT64_MIN }, 1),
		expand_ints(n, (int64_t[]){ 0 }, 1), last);
}

/* The attributes of the steps: activations only where they are not the default. */
static void say_attrs(Cell *c, int d, Node *steps)
{
	static const char *const same[] = { "clip", "input_forget", "linear_before_reset" };
	Graph *g = c->n->graph;
	for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
		const Attr *a = node_attr(c->n, same[i]);
		if (a)
			arena_push(g->arena, steps->attr, steps->nattr, *a);
	}
	if (!c->unusual)
		return;
	Attr names = { .name = name_of("activations"), .type = AT_STRINGS },
	     alpha = { .name = name_of("activation_alpha"), .type = AT_FLOATS },
	     beta = { .name = name_of("activation_beta"), .type = AT_FLOATS };
	for (int i = 0; i < c->nact; i++) {
		const Act *a = &c->act[d * c->nact + i];
		arena_push(g->arena, names.u.ss, names.n, name_of(a->name));
		arena_push(g->arena, alpha.u.fs, alpha.n, (float)a->alpha);
		arena_push(g->arena, beta.u.fs, beta.n, (float)a->beta);
	}
	arena_push(g->arena, steps->attr, steps->nattr, names);
	arena_push(g->arena, steps->attr, steps->nattr, alpha);
	arena_push(g->arena, steps->attr, steps->nattr, beta);
}

/* Runs direction d over x [steps, batch, input]: *y is [steps, batch, hidden], *h and *state the last of each. */
static int run(Cell *c, int d, Value *x, Value **y, Value **h, Value **state)
{
	Node *n = c->n;
	Graph *g = n->graph;
	bool back = c->reverse_only || d == 1;
	Value *early, *late, *walked = back ? turn_round(c, x) : x;
	if (!walked || read_bias(c, d, &early, &late))
		return -1;
	Value *xw = make2(n, "MatMul", walked, turned(c, direction(c, n->in[W], d))), *r = direction(c, n->in[R], d);
	xw = early ? add(c, xw, early) : xw;
	Value *h0 = first_state(c, H0, d), *c0 = c->gates == 4 ? first_state(c, C0, d) : NULL,
	      *p = c->gates == 4 ? direction(c, operand_value(n, PEEP), d) : NULL;
	if (!xw || !r || (operand_value(n, H0) && !h0) ||
		(c->gates == 4 && ((operand_value(n, C0) && !c0) || (operand_value(n, PEEP) && !p))))
		return -1;
	Node *m = node_new(g, name_of("sbpcc"), name_fmt("%sSteps", n->op), n->loc);
	Value *in[] = { xw, r, h0, operand_value(n, LENS), c->gates == 3 ? late : c0, p };
	for (int i = 0; i < (c->gates == 1 ? 4 : c->gates == 3 ? 5 : 6); i++)
		node_in(m, in[i]);
	say_attrs(c, d, m);
	*y = graph_fresh(g, name_fmt("%s.%d", n->op, g->nvalue));
	*h = graph_fresh(g, name_fmt("%s.h.%d", n->op, g->nvalue));
	*state = c->gates == 4 ? graph_fresh(g, name_fmt("%s.c.%d", n->op, g->nvalue)) : NULL;
	Value *out[] = { *y, *h, NULL, NULL, *state };
	for (int i = 0; i < (c->gates == 4 ? 5 : 2); i++)
		node_out(m, out[i]);
	if (inline_append(g, m) < 0)
		return -1;
	*y = back ? turn_round(c, *y) : *y;
	return *y ? 0 : -1;
}

/* States of all directions as the result is laid out. */
static int give_state(Cell *c, int result, Value **v)
{
	Node *n = c->n;
	Value *to = operand_result(n, result);
	if (!to)
		return 0;
	Value *all = c->dirs == 1 ? v[0] : make(n, NULL, "Concat", "axis=0", v[0], v[1], NULL);
	return all && make(n, to, c->batch_first ? "Transpose" : "Identity",
			      c->batch_first ? "perm=[1, 0, 2]" : NULL, all, NULL, NULL)
	               ? 0
	               : -1;
}

static int expand_recurrent(Node *n)
{
	Cell c;
	if (read_cell(n, &c))
		return -1;
	if (c.hidden < 1) {
		err_at(n->loc, "%s needs a known hidden size", n->op);
		return -1;
	}
	Value *x = n->in[X], *y[2], *h[2], *state[2], *to = operand_result(n, 0);
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

#define CELL_ATTRS                                                                       \
	"activation_alpha:floats activation_beta:floats activations:strings clip:float " \
	"direction:string=\"forward\" "                                                  \
	"hidden_size:int layout:int=0"
/* clang-format off */
const Op ops_recurrent[] = {
	{ .name = "RNN", .since = 1, .sig = "x:F w:F r:F b:F? sequence_lens:int32? initial_h:F? -> y:F? y_h:F?",
	  .attrs = CELL_ATTRS, .shape = shape_recurrent, .expand = expand_recurrent,
	  .test = "x:[3,2,4] w:[1,3,4] r:[1,3,3] b:[1,6] | "
	          "x:[2,3,2] w:[2,3,2] r:[2,3,3] initial_h:[2,2,3] =direction:\"bidirectional\" =layout:1" },
	{ .name = "GRU", .since = 1, .sig = "x:F w:F r:F b:F? sequence_lens:int32? initial_h:F? -> y:F? y_h:F?",
	  .attrs = CELL_ATTRS " linear_before_reset:int=0", .shape = shape_recurrent, .expand = expand_recurrent,
	  .test = "x:[3,2,4] w:[1,9,4] r:[1,9,3] b:[1,18] | "
	          "x:[3,2,2] w:[2,9,2] r:[2,9,3] b:[2,18] initial_h:[2,2,3] "
	          "=direction:\"bidirectional\" =linear_before_reset:1 | "
	          "x:[3,2,2] w:[1,6,2] r:[1,6,2] =direction:\"reverse\"" },
	{ .name = "LSTM", .since = 1,
	  .sig = "x:F w:F r:F b:F? sequence_lens:int32? initial_h:F? initial_c:F? p:F? -> y:F? y_h:F? y_c:F?",
	  .attrs = CELL_ATTRS " input_forget:int=0", .shape = shape_recurrent, .expand = expand_recurrent,
	  .test = "x:[3,2,4] w:[1,12,4] r:[1,12,3] b:[1,24] | "
	          "x:[3,2,2] w:[2,12,2] r:[2,12,3] b:[2,24] initial_h:[2,2,3] initial_c:[2,2,3] p:[2,9] "
	          "=direction:\"bidirectional\" | "
	          "x:[2,3,2] w:[1,8,2] r:[1,8,2] =direction:\"reverse\" =input_forget:1 =layout:1" },
	{ 0 },
};
/* clang-format on */
