/* One node in exact arithmetic, by what its row says of it:
 *
 *   expression     run over the field; functions are hashes of their operands, comparisons go by the order of the field
 *   composite      its definition, inlined for the operands at hand
 *   linear         the reference evaluator of the row, on limbs: numbers cut into pieces so short that its sums of
 *                  doubles are exact
 *   order only     (largest, first, indices) the same evaluator, on the ranks of the numbers among each other
 *   anything else  a hash of all elements at the same indices of the axes that are split together, by the row's factors
 */
#include "exact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *reason = "";

const char *exact_reason(void)
{
	return reason;
}

Exact *exact_new(Arena *a, DType t, int ndim, const int64_t *dim)
{
	Exact *x = arena_new(a, Exact);
	*x = (Exact){ .real = dtype_is_float(t), .dtype = t, .ndim = ndim, .n = 1 };
	for (int i = 0; i < ndim; i++)
		x->n *= x->dim[i] = dim[i];
	x->v = arena_array(a, uint64_t, x->n + 1);
	return x;
}

Exact *exact_tensor(Arena *a, const Tensor *t)
{
	Exact *x = exact_new(a, t->dtype, t->ndim, t->dim);
	for (int64_t i = 0; i < x->n; i++)
		x->v[i] = x->real ? field_double(tensor_get(t, i)) : (uint64_t)tensor_int(t, i);
	return x;
}

Exact *exact_start(Arena *a, const Value *v, uint64_t seed, int64_t below)
{
	Exact *x = exact_new(a, v->type->elem, v->type->ndim, v->type->dim);
	uint64_t key = field_hash(field_text(v->name), seed);
	uint64_t most = x->dtype == DT_BOOL ? 2 : (uint64_t)below;
	if (x->real)
		most = FIELD_P;
	for (int64_t i = 0; i < x->n; i++)
		x->v[i] = field_hash(key, (uint64_t)i) % most;
	return x;
}

/* ---- expressions ---- */

typedef struct Stack { Exact **in; Arena *a; int64_t n; const Exact *like; uint64_t *at[64]; int top; } Stack;

/* Operand i at every place of the result. */
static uint64_t *spread(Stack *s, const Exact *x)
{
	uint64_t *r = arena_array(s->a, uint64_t, s->n + 1);
	int64_t stride[NDIM_MAX] = { 0 }, idx[NDIM_MAX] = { 0 }, step = 1, at = 0;
	int shift = s->like->ndim - x->ndim;
	for (int k = x->ndim; k-- > 0;) {
		stride[k + shift] = x->dim[k] == 1 ? 0 : step;
		step *= x->dim[k];
	}
	for (int64_t i = 0; i < s->n; i++) {
		r[i] = x->real ? x->v[at] : field_int((int64_t)x->v[at]);
		at = tensor_next(s->like->ndim, s->like->dim, stride, idx, at);
	}
	return r;
}

static uint64_t absolute(uint64_t x)
{
	return field_signed(x) < 0 ? field_sub(0, x) : x;
}

static uint64_t apply(const char *op, const uint64_t *x, int n)
{
	int64_t a = field_signed(x[0]), b = n > 1 ? field_signed(x[1]) : 0;
	switch (op[0]) {
	case '+': return field_add(x[0], x[1]);
	case '-': return field_sub(x[0], x[1]);
	case '*': return field_mul(x[0], x[1]);
	case '/': return field_mul(x[0], field_inverse(x[1]));
	case '<': return op[1] == '=' ? a <= b : a < b;
	case '>': return op[1] == '=' ? a >= b : a > b;
	case '=': return a == b;
	case '!': return op[1] ? a != b : a == 0;
	case '&': return a && b;
	case '|': return a || b;
	case '?': return x[0] ? x[1] : x[2];
	}
	if (!strcmp(op, "neg"))
		return field_sub(0, x[0]);
	if (!strcmp(op, "sum"))
		return field_add(x[0], x[1]);
	if (!strcmp(op, "max") || !strcmp(op, "min"))
		return field_combine(op[1] == 'a' ? RED_MAX : RED_MIN, x[0], x[1]);
	if (!strcmp(op, "abs"))
		return absolute(x[0]);
	if (!strcmp(op, "sign"))
		return field_int((a > 0) - (a < 0));
	if (!strcmp(op, "isnan") || !strcmp(op, "isinf"))
		return 0;
	if (!strcmp(op, "pow") && x[1] < 64)
		return field_power(x[0], x[1]);
	uint64_t h = field_text(op);
	for (int i = 0; i < n; i++)
		h = field_hash(h, x[i]);
	return h;
}

static void visit(void *ctx, const char *op, int operands, int arg, double num)
{
	Stack *s = ctx;
	if (!strcmp(op, "arg")) {
		s->at[s->top++] = spread(s, s->in[arg]);
		return;
	}
	uint64_t *r = arena_array(s->a, uint64_t, s->n + 1), x[3] = { 0 }, c = operands ? 0 : field_double(num);
	s->top -= operands;
	if (s->top + 3 >= 64)
		die("exact: an expression is too deep");
	for (int64_t i = 0; i < s->n; i++) {
		for (int k = 0; k < operands; k++)
			x[k] = s->at[s->top + k][i];
		r[i] = operands ? apply(op, x, operands) : c;
	}
	s->at[s->top++] = r;
}

static void by_expression(Node *n, Exact **in, Exact *out)
{
	Arena tmp = { 0 };
	Stack s = { .in = in, .a = &tmp, .n = out->n, .like = out };
	expr_each(expr_of(n), visit, &s);
	for (int64_t i = 0; i < out->n; i++)
		out->v[i] = out->real ? s.at[0][i] : (uint64_t)field_signed(s.at[0][i]);
	arena_free(&tmp);
}

static void convert(const Exact *x, Exact *y)
{
	for (int64_t i = 0; i < y->n; i++) {
		uint64_t v = x->v[i];
		if (x->real && !y->real)
			v = y->dtype == DT_BOOL ? v != 0 : v % 5;
		else if (!x->real)
			v = y->real ? field_int((int64_t)v) : y->dtype == DT_BOOL ? v != 0 : v;
		y->v[i] = v;
	}
}

/* ---- the evaluator of a row ---- */

/* The node as it is on these operands: a copy, with types of their shapes and contents of integers.  An operand that
 * stands twice may be held in two ways. */
typedef struct Local { Node node, *n; Tensor **tin, **tout; Arena tmp; } Local;

static Tensor *tensor_of(Arena *a, const Exact *x)
{
	Tensor *t = tensor_new(a, x->real ? DT_DOUBLE : x->dtype, x->ndim, x->dim);
	for (int64_t i = 0; i < x->n && !x->real; i++)
		tensor_set_int(t, i, (int64_t)x->v[i]);
	return t;
}

static Value *value_on(Arena *a, const Value *v, const Exact *x, Tensor *t)
{
	Value *c = arena_new(a, Value);
	*c = *v;
	c->type = type_tensor(a, x->dtype, x->ndim, x->dim);
	c->data = x->real ? NULL : t;
	return c;
}

static void enter(Local *l, Node *n, Exact **in, Exact **out)
{
	*l = (Local){ .node = *n };
	Arena *a = &l->tmp;
	l->n = &l->node;
	l->node.in = arena_array(a, Value *, n->nin + 1);
	l->node.out = arena_array(a, Value *, n->nout + 1);
	l->tin = arena_array(a, Tensor *, n->nin + 1);
	l->tout = arena_array(a, Tensor *, n->nout + 1);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i]) {
			l->tin[i] = tensor_of(a, in[i]);
			l->node.in[i] = value_on(a, n->in[i], in[i], l->tin[i]);
		}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			l->tout[i] = tensor_of(a, out[i]);
			l->node.out[i] = value_on(a, n->out[i], out[i], NULL);
		}
}

static void leave(Local *l)
{
	arena_free(&l->tmp);
}

static int evaluate(Local *l)
{
	for (int i = 0; i < l->n->nout; i++)
		if (l->tout[i] && l->tout[i]->bytes)
			memset((void *)l->tout[i]->data, 0, l->tout[i]->bytes);
	return eval_into(l->n, l->tin, l->tout);
}

static int by_order_of(const void *a, const void *b)
{
	int64_t x = field_signed(*(const uint64_t *)a), y = field_signed(*(const uint64_t *)b);
	return (x > y) - (x < y);
}

/* All numbers of operands outside of `group`, sorted; the operands become their places in it. */
static uint64_t *rank_numbers(Local *l, Exact **in, const int *group, int64_t *count)
{
	int64_t n = 0;
	for (int i = 0; i < l->n->nin; i++)
		n += l->n->in[i] && in[i]->real && !group[i] ? in[i]->n : 0;
	uint64_t *all = arena_array(&l->tmp, uint64_t, n + 1);
	n = 0;
	for (int i = 0; i < l->n->nin; i++)
		for (int64_t k = 0; l->n->in[i] && in[i]->real && !group[i] && k < in[i]->n; k++)
			all[n++] = in[i]->v[k];
	qsort(all, (size_t)n, sizeof *all, by_order_of);
	*count = 0;
	for (int64_t k = 0; k < n; k++)
		if (!k || all[k] != all[k - 1])
			all[(*count)++] = all[k];
	for (int i = 0; i < l->n->nin; i++)
		for (int64_t k = 0; l->n->in[i] && in[i]->real && !group[i] && k < in[i]->n; k++) {
			const uint64_t *at = bsearch(&in[i]->v[k], all, (size_t)*count, sizeof *all, by_order_of);
			((double *)l->tin[i]->data)[k] = (double)(at - all);
		}
	return all;
}

static int by_order(Local *l, Exact **in, Exact **out)
{
	int none[64] = { 0 };
	int64_t count;
	if (l->n->nin > 64)
		return -1;
	uint64_t *all = rank_numbers(l, in, none, &count);
	if (evaluate(l))
		return -1;
	for (int o = 0; o < l->n->nout; o++)
		for (int64_t i = 0; l->n->out[o] && i < out[o]->n; i++) {
			double d = out[o]->real ? ((const double *)l->tout[o]->data)[i] : 0;
			if (!out[o]->real)
				out[o]->v[i] = (uint64_t)tensor_int(l->tout[o], i);
			else if (!count)
				out[o]->v[i] = isinf(d) ? field_neutral(d < 0 ? RED_MAX : RED_MIN) : field_double(d);
			else
				out[o]->v[i] = isinf(d) ? field_neutral(d < 0 ? RED_MAX : RED_MIN) : all[(int64_t)d];
		}
	return 0;
}

static int64_t lcm_to(int64_t k)
{
	int64_t l = 1;
	for (int64_t i = 2; i <= k; i++) {
		int64_t a = l, b = i;
		while (b) {
			int64_t r = a % b;
			a = b;
			b = r;
		}
		l = l / a * i;
	}
	return l;
}

/* What makes the coefficients of the row integers. */
static int64_t denominator(const Node *n)
{
	int k = 0;
	int64_t l = 1;
	if (strncmp(n->op, "AveragePool", 11))
		return 1;
	const int64_t *size = attr_ints(n, "kernel_shape", &k);
	for (int i = 0; i < k; i++)
		l *= lcm_to(size[i]);
	return l;
}

/* Multilinear in groups: the sum over the limbs of each group, weighted.  Operands of the same group are cut
 * together. */
static int by_limbs(Local *l, Exact **in, Exact **out, const int *group, int most)
{
	Node *n = l->n;
	int64_t scale = denominator(n), count;
	int bits = most == 1 && scale == 1 ? 31 : 21, limbs = most == 1 && scale == 1 ? 2 : 3, turns = 1;
	if (most > 2 || scale > 1 << 22)
		return -1;
	rank_numbers(l, in, group, &count);
	for (int g = 0; g < most; g++)
		turns *= limbs;
	uint64_t back = field_inverse((uint64_t)scale);
	for (int t = 0; t < turns; t++) {
		int at[] = { 0, t % limbs, t / limbs }, weight = (at[1] + at[2]) * bits % 61;
		for (int i = 0; i < n->nin; i++) {
			if (!n->in[i] || !group[i] || group[i] > most || !in[i]->real)
				continue;
			for (int64_t k = 0; k < in[i]->n; k++) {
				uint64_t limb = in[i]->v[k] >> (bits * at[group[i]]) & ((UINT64_C(1) << bits) - 1);
				((double *)l->tin[i]->data)[k] = (double)((int64_t)limb * (group[i] == 1 ? scale : 1));
			}
		}
		if (evaluate(l))
			return -1;
		for (int o = 0; o < n->nout; o++)
			for (int64_t i = 0; n->out[o] && i < out[o]->n; i++) {
				double d = out[o]->real ? ((const double *)l->tout[o]->data)[i] : 0;
				if (fabs(d) > 9e15)
					return -1;
				uint64_t weighted = field_mul(field_int((int64_t)rint(d)), UINT64_C(1) << weight);
				if (out[o]->real)
					out[o]->v[i] = field_add(t ? out[o]->v[i] : 0, field_mul(weighted, back));
				else
					out[o]->v[i] = (uint64_t)tensor_int(l->tout[o], i);
			}
	}
	return 0;
}

/* ---- by factors alone ---- */

typedef struct Cells { const int *row; int64_t n, len[NDIM_MAX]; uint64_t *hash; } Cells;

/* What an operand has at each index of its factors. */
static Cells cells_of(Arena *a, const Exact *x, const int *row, uint64_t start)
{
	Cells c = { .row = row, .n = 1 };
	int64_t idx[NDIM_MAX] = { 0 }, none[NDIM_MAX] = { 0 };
	for (int k = 0; k < x->ndim; k++)
		c.n *= c.len[k] = row && row[k] >= 0 ? x->dim[k] : 1;
	c.hash = arena_array(a, uint64_t, c.n + 1);
	for (int64_t i = 0; i < c.n; i++)
		c.hash[i] = start;
	for (int64_t i = 0; i < x->n; i++) {
		int64_t at = 0;
		for (int k = 0; k < x->ndim; k++)
			at = at * c.len[k] + (c.len[k] > 1 ? idx[k] : 0);
		c.hash[at] = field_hash(c.hash[at], x->v[i]);
		tensor_next(x->ndim, x->dim, none, idx, 0);
	}
	return c;
}

static uint64_t cell_at(const Cells *c, int ndim, const int64_t *coord)
{
	int64_t at = 0;
	for (int k = 0; k < ndim; k++)
		at = at * c->len[k] + (c->len[k] > 1 ? coord[c->row[k]] : 0);
	return c->hash[at];
}

static int by_factors(Local *l, Exact **in, Exact **out)
{
	Node *n = l->n;
	FactorRule *r = factor_rule(n, &l->tmp);
	if (!r)
		r = factor_new(n, &l->tmp);
	Cells *cell = arena_array(&l->tmp, Cells, n->nin + 1);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			cell[i] = cells_of(&l->tmp, in[i], r->in[i], field_int(i));
	for (int o = 0; o < n->nout; o++) {
		int64_t idx[NDIM_MAX] = { 0 }, none[NDIM_MAX] = { 0 }, terms = 1;
		int64_t *coord = arena_array(&l->tmp, int64_t, r->nfactor + 1);
		bool *kept = arena_array(&l->tmp, bool, r->nfactor + 1);
		for (int k = 0; n->out[o] && k < out[o]->ndim; k++)
			if (r->out[o][k] >= 0)
				kept[r->out[o][k]] = true;
		for (int f = 0; f < r->nfactor; f++)
			terms *= kept[f] ? 1 : r->len[f];
		for (int64_t e = 0; n->out[o] && e < out[o]->n; e++) {
			uint64_t base = field_hash(field_text(n->op), (uint64_t)o), sum = field_neutral(r->red);
			for (int k = 0; k < out[o]->ndim; k++)
				if (r->out[o][k] >= 0)
					coord[r->out[o][k]] = idx[k];
				else
					base = field_hash(base, (uint64_t)idx[k]);
			for (int64_t t = 0; t < terms; t++) {
				int64_t rest = t;
				uint64_t h = base;
				for (int f = 0; f < r->nfactor; f++)
					if (!kept[f]) {
						coord[f] = rest % r->len[f];
						rest /= r->len[f];
					}
				for (int i = 0; i < n->nin; i++)
					if (n->in[i])
						h = field_hash(h, cell_at(&cell[i], in[i]->ndim, coord));
				sum = field_combine(r->red, sum, h);
			}
			out[o]->v[e] = out[o]->real ? sum : sum % 2;
			tensor_next(out[o]->ndim, out[o]->dim, none, idx, 0);
		}
	}
	return 0;
}

/* ---- definitions ---- */

static int run_graph(Graph *g, Exact **held, Arena *a)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		Exact **in = arena_array(a, Exact *, n->nin + 1), **out = arena_array(a, Exact *, n->nout + 1);
		bool known = true;
		for (int k = 0; k < n->nin; k++) {
			Value *v = n->in[k];
			if (v && !held[v->id] && v->data)
				held[v->id] = exact_tensor(a, v->data);
			in[k] = v ? held[v->id] : NULL;
		}
		for (int k = 0; k < n->nout; k++) {
			Value *v = n->out[k];
			if (!v)
				continue;
			known &= v->data != NULL;
			held[v->id] = out[k] = v->data ? exact_tensor(a, v->data)
				: exact_new(a, v->type->elem, v->type->ndim, v->type->dim);
		}
		if (!known && exact_node(n, in, out, a))
			return -1;
	}
	return 0;
}

static int by_definition(Node *n, Exact **in, Exact **out)
{
	Model *m = model_new();
	const Model *of = n->graph->model;
	m->file = of->file;
	m->opset = of->opset, m->nopset = of->nopset;
	Graph *g = m->graph = graph_new(m, NULL, name_of("definition"));
	Node *c = graph_node(g, n->domain, n->op, n->loc);
	c->row = n->row;
	c->version = n->version;
	c->name = n->name;
	c->attr = n->attr, c->nattr = n->nattr;
	for (int i = 0; i < n->nin; i++) {
		Value *v = NULL;
		for (int k = 0; n->in[i] && k < i && !v; k++)
			if (n->in[k] == n->in[i] && in[k] == in[i])
				v = c->in[k];
		if (n->in[i] && !v) {
			v = graph_fresh(g, n->in[i]->name);
			v->type = type_tensor(g->arena, in[i]->dtype, in[i]->ndim, in[i]->dim);
			v->data = in[i]->real ? NULL : tensor_of(g->arena, in[i]);
			v->init = v->data != NULL;
			v->input = !v->init;
			if (v->init)
				arena_push(g->arena, g->init, g->ninit, v);
			else
				arena_push(g->arena, g->in, g->nin, v);
		}
		node_in(c, v);
	}
	for (int i = 0; i < n->nout; i++) {
		Value *v = n->out[i] ? graph_fresh(g, n->out[i]->name) : NULL;
		node_out(c, v);
		if (v) {
			v->output = true;
			arena_push(g->arena, g->out, g->nout, v);
		}
	}
	int bad = inline_composites(g);
	Exact **held = arena_array(g->arena, Exact *, g->nvalue + 1);
	for (int i = 0; i < n->nin && !bad; i++)
		if (n->in[i])
			held[c->in[i]->id] = in[i];
	bad = bad || run_graph(g, held, g->arena);
	for (int i = 0, k = 0; i < n->nout && !bad; i++) {
		if (!n->out[i])
			continue;
		const Value *v = g->out[k++];
		const Exact *x = held[v->id] ? held[v->id] : v->data ? exact_tensor(g->arena, v->data) : NULL;
		if (!x || x->n != out[i]->n)
			bad = -1;
		else
			memcpy(out[i]->v, x->v, (size_t)x->n * sizeof *x->v);
	}
	model_free(m);
	return bad;
}

/* ---- all kinds ---- */

static bool any_real(const Node *n, Exact **in, Exact **out)
{
	bool any = false;
	for (int i = 0; i < n->nin; i++)
		any |= n->in[i] && in[i]->real;
	for (int i = 0; i < n->nout; i++)
		any |= n->out[i] && out[i]->real;
	return any;
}

static void add_bias(const Exact *b, Exact *y)
{
	int64_t inner = 1;
	for (int k = 2; k < y->ndim; k++)
		inner *= y->dim[k];
	for (int64_t i = 0; i < y->n; i++)
		y->v[i] = field_add(y->v[i], b->v[i / inner % y->dim[1]]);
}

/* A mean is a sum, divided by how many there are on all ranks. */
static int by_mean(Local *l, Exact **in, Exact **out)
{
	int group[2] = { 1, 0 };
	l->n->op = name_of("ReduceSum");
	l->n->row = op_find(l->n->domain, l->n->op, 18);
	int bad = by_limbs(l, in, out, group, 1);
	int64_t among;
	attr_origin(l->n, out[0]->n ? in[0]->n / out[0]->n : 1, &among);
	uint64_t by = field_inverse(field_int(among));
	for (int64_t i = 0; i < out[0]->n; i++)
		out[0]->v[i] = field_mul(out[0]->v[i], by);
	return bad;
}

static int by_product(Local *l, Exact **in, Exact **out)
{
	const Exact *x = in[0];
	const Tensor *axes = l->n->nin > 1 ? l->tin[1] : NULL;
	bool gone[NDIM_MAX] = { false };
	int64_t stride[NDIM_MAX] = { 0 }, idx[NDIM_MAX] = { 0 }, step = 1, at = 0;
	for (int k = 0; k < x->ndim; k++)
		gone[k] = !axes || !tensor_elements(axes);
	for (int64_t i = 0; axes && i < tensor_elements(axes); i++) {
		int k;
		if (op_axis(l->n, tensor_int(axes, i), x->ndim, &k))
			return -1;
		gone[k] = true;
	}
	for (int k = x->ndim; k-- > 0;)
		if (!gone[k]) {
			stride[k] = step;
			step *= x->dim[k];
		}
	for (int64_t i = 0; i < out[0]->n; i++)
		out[0]->v[i] = 1;
	for (int64_t i = 0; i < x->n; i++) {
		out[0]->v[at] = field_mul(out[0]->v[at], x->v[i]);
		at = tensor_next(x->ndim, x->dim, stride, idx, at);
	}
	return 0;
}

/* Integers mean what they mean. */
static int by_integers(Node *n, Exact **in, Exact **out)
{
	Arena tmp = { 0 };
	Tensor **tin = arena_array(&tmp, Tensor *, n->nin + 1), **tout = arena_array(&tmp, Tensor *, n->nout + 1);
	for (int i = 0; i < n->nin; i++)
		tin[i] = n->in[i] ? tensor_of(&tmp, in[i]) : NULL;
	int bad = eval_node(n, tin, tout, &tmp, false);
	for (int o = 0; o < n->nout && !bad; o++)
		for (int64_t i = 0; n->out[o] && i < out[o]->n; i++)
			out[o]->v[i] = (uint64_t)tensor_int(tout[o], i);
	arena_free(&tmp);
	return bad;
}

static int by_row(Node *n, Exact **in, Exact **out)
{
	static const char *const opaque[] = { "RNNStepsGrad", "GRUStepsGrad", "LSTMStepsGrad", "Det", "Cofactor",
		"RoiAlign", "RoiAlignGrad", "MaxRoiPool",
		"MaxRoiPoolGrad", NULL };
	static const char *const refused[] = { "ScatterElements", "ScatterND", "NonMaxSuppression", "BitCast", NULL };
	int group[64] = { 0 }, most = 0, bad;
	bool conv = !strcmp(n->op, "Conv"), by_hash = false, no = n->nin > 64;
	Exact *bias = conv && n->nin > 2 && n->in[2] ? in[2] : NULL;
	Local l;
	for (int i = 0; opaque[i]; i++)
		by_hash |= !strcmp(n->op, opaque[i]);
	for (int i = 0; refused[i]; i++)
		no |= !strcmp(n->op, refused[i]);
	if (no)
		return -1;
	enter(&l, n, in, out);
	factor_linear(l.n, group);
	for (int i = 0; i < n->nin; i++)
		most = group[i] > most ? group[i] : most;
	if (conv) {
		group[1] = most = 2;
		if (bias)
			group[2] = 3;           /* zero in every turn */
	}
	if (by_hash)
		bad = by_factors(&l, in, out);
	else if (!strcmp(n->op, "ReduceMean"))
		bad = by_mean(&l, in, out);
	else if (!strcmp(n->op, "ReduceProd"))
		bad = by_product(&l, in, out);
	else if (most && in[0] && (in[0]->real || !strcmp(n->op, "OneHot")))
		bad = by_limbs(&l, in, out, group, most);
	else
		bad = by_order(&l, in, out);
	if (bias && !bad)
		add_bias(bias, out[0]);
	leave(&l);
	return bad;
}

static int run(Node *n, Exact **in, Exact **out)
{
	const Op *row = n->row;
	if (row->random) {
		uint64_t seed = attr_has(n, "key") ? (uint64_t)attr_int(n, "key") : field_text(n->out[0]->name);
		uint64_t key = field_hash(field_text("random"), seed);
		for (int64_t i = 0; i < out[0]->n; i++)
			out[0]->v[i] = field_hash(key, (uint64_t)i);
		return 0;
	}
	if (!strncmp(n->op, "Cast", 4)) {
		convert(in[0], out[0]);
		return 0;
	}
	if (row->expr && any_real(n, in, out)) {
		by_expression(n, in, out[0]);
		return 0;
	}
	if (row->composite && !row->expr)
		return by_definition(n, in, out);
	return row->eval ? by_row(n, in, out) : by_integers(n, in, out);
}

int exact_node(Node *n, Exact **in, Exact **out, Arena *a)
{
	(void)a;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !in[i])
			die("exact: operand %s of %s is nowhere", n->in[i]->name, n->op);
	if (!run(n, in, out))
		return 0;
	reason = name_fmt("%s at %s has no exact meaning here", n->op, n->from ? n->from : loc_text(n->loc));
	return -1;
}
