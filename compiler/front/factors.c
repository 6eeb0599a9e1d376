/* Axes as products of factors, across the graph.
 *
 * A fused QKV axis of length 3 * heads * width is one axis to MatMul, but Reshape or Split takes it apart later.  To
 * split heads without a transfer, the axis must be known as that product where it is made: in the weight.  So every
 * axis starts as one factor, and the factor rules of nodes say which axes are one factor, and which are a product of
 * several (Reshape, Split into equal lengths, groups of channels, heads).  Lists with the same product are aligned from
 * the left: a factor of 12 that meets one of 3 is refined into 3 x 4, everywhere.
 *
 * A factor is a union-find node that may later get two children (outer, inner); every list that mentions it then has
 * the two.  Where lengths do not divide (3 x 4 against 2 x 6) the axes stay unrelated from there on: S on them needs a
 * transfer, as it should.  Each alignment either joins two factors or splits one, so the pass is linear up to the
 * union-find. */
#include "front/front.h"

#include <string.h>

typedef struct Fac { struct Fac *same, *outer, *inner; Dim len; int id; } Fac;
typedef struct List { Fac *f[256]; int n; } List;
typedef struct State { Graph *g; Arena *a; Fac ***axis; } State;       /* axis[value id][axis] */

static Fac *fac_new(State *s, Dim len)
{
	Fac *f = arena_new(s->a, Fac);

	f->len = len;
	f->id = -1;
	return f;
}

static Fac *find(Fac *f)
{
	while (f->same) {
		if (f->same->same)
			f->same = f->same->same;
		f = f->same;
	}
	return f;
}

/* The leaves of a factor, outer first, by an explicit stack, because a chain of splits may be long. */
static bool leaves(Fac *f, List *l)
{
	Fac *stack[256];
	int n = 0;

	stack[n++] = f;
	while (n) {
		f = find(stack[--n]);
		if (f->outer) {
			if (n + 2 > 256)
				return false;
			stack[n++] = f->inner;
			stack[n++] = f->outer;
		} else if (f->len != 1) {
			if (l->n == 256)
				return false;
			l->f[l->n++] = f;
		}
	}
	return true;
}

static void split(State *s, Fac *f, Dim outer, Dim inner)
{
	f->outer = fac_new(s, outer);
	f->inner = fac_new(s, inner);
}

/* The leaf at index i; a factor that was split while the lists are walked is replaced by its two children. */
static Fac *leaf(List *l, int i)
{
	Fac *f = find(l->f[i]);

	while (f->outer && l->n < 256) {
		memmove(&l->f[i + 1], &l->f[i], sizeof *l->f * (size_t)(l->n - i));
		l->n++;
		l->f[i] = f->outer;
		l->f[i + 1] = f->inner;
		f = find(l->f[i]);
	}
	return f->outer ? NULL : f;
}

/* Aligns two lists of leaves with the same product from the left, as far as lengths divide. */
static void align(State *s, List *a, List *b)
{
	int i = 0, j = 0;

	while (i < a->n && j < b->n) {
		Fac *x = leaf(a, i), *y = leaf(b, j);
		Dim q;

		if (!x || !y)
			return;
		if (x == y) {
			i++;
			j++;
		} else if (dim_same(x->len, y->len)) {
			y->same = x;
			i++;
			j++;
		} else if ((q = dim_div(y->len, x->len)) != DIM_UNKNOWN && q != 1) {
			split(s, y, x->len, q);
			y->outer->same = x;
			b->f[j] = y->inner;
			i++;
		} else if ((q = dim_div(x->len, y->len)) != DIM_UNKNOWN && q != 1) {
			split(s, x, y->len, q);
			x->outer->same = y;
			a->f[i] = x->inner;
			j++;
		} else {
			return;
		}
	}
}

static void unite(State *s, Fac *a, Fac *b)
{
	List la, lb;                    /* not cleared: most axes have one factor */

	la.n = lb.n = 0;
	if (find(a) != find(b) && dim_same(find(a)->len, find(b)->len) && leaves(a, &la) && leaves(b, &lb))
		align(s, &la, &lb);
}

static Fac **axes_of(State *s, const Value *v)
{
	if (!v || v->graph != s->g || !v->type || v->type->kind != TY_TENSOR || v->type->ndim < 0)
		return NULL;
	if (!s->axis[v->id]) {
		s->axis[v->id] = arena_array(s->a, Fac *, v->type->ndim + 1);
		for (int i = 0; i < v->type->ndim; i++)
			s->axis[v->id][i] = fac_new(s, v->type->dim[i]);
	}
	return s->axis[v->id];
}

/* The axis is the product of these factors: its leaves are theirs. */
static void by_product(State *s, const FactorProduct *p, Fac **mine, Fac *axis)
{
	List a = { .n = 0 }, b = { .n = 0 };

	for (int i = 0; i < p->nsub; i++) {
		Fac *sub = p->sub[i].factor < 0 ? fac_new(s, p->sub[i].len) : mine[p->sub[i].factor];

		if (!leaves(sub, &b))
			return;
	}
	if (leaves(axis, &a))
		align(s, &a, &b);
}

static void relate(State *s, Node *n)
{
	FactorRule *r = factor_rule(n, s->a);

	if (!r)
		return;
	Fac **mine = arena_array(s->a, Fac *, r->nfactor + 1);
	for (int i = 0; i < r->nfactor; i++)
		mine[i] = fac_new(s, r->len[i]);
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < (side ? n->nout : n->nin); i++) {
			const Value *v = side ? n->out[i] : n->in[i];
			int *f = side ? r->out[i] : r->in[i];
			Fac **x = f ? axes_of(s, v) : NULL;

			for (int k = 0; x && k < v->type->ndim; k++)
				if (f[k] >= 0 && v->type->dim[k] != 1)
					unite(s, mine[f[k]], x[k]);
		}
	for (int i = 0; i < r->nproduct; i++) {
		const FactorProduct *p = &r->product[i];
		Fac **x = axes_of(s, p->out ? n->out[p->at] : n->in[p->at]);

		if (x)
			by_product(s, p, mine, x[p->axis]);
	}
}

/* Writes the factors of a value; factors are numbered in the order in which values have them. */
static void settle(State *s, Value *v)
{
	Graph *g = s->g;
	Fac **x = axes_of(s, v);

	if (!x)
		return;
	Factors *f = arena_new(g->arena, Factors);
	f->ndim = v->type->ndim;
	f->axis = arena_array(g->arena, struct FactorAxis, f->ndim + 1);
	for (int i = 0; i < f->ndim; i++) {
		List l = { .n = 0 };

		if (!leaves(x[i], &l))
			continue;
		f->axis[i].factor = arena_array(g->arena, int, l.n + 1);
		for (int k = 0; k < l.n; k++) {
			if (l.f[k]->id < 0) {
				l.f[k]->id = g->nfactor;
				arena_push(g->arena, g->factor, g->nfactor, l.f[k]->len);
			}
			f->axis[i].factor[f->axis[i].n++] = l.f[k]->id;
		}
	}
	v->factors = f;
}

static Arg length(Dim d)
{
	return dim_known(d) ? (Arg){ .kind = ARG_INT, .i = d } : (Arg){ .kind = ARG_STRING, .s = dim_text(d) };
}

/* "@factors(f0(32), [f1(3), f2(4), f3(16)], 1)": f2(4) is factor 2, of length 4; 1 is an axis of length one. */
static void note(Graph *g, Value *v)
{
	const Factors *f = v->factors;
	Annot *a = arena_new(g->arena, Annot);

	if (!f || annot_find(v->annot, "factors"))
		return;
	a->name = name_of("factors");
	for (int i = 0; i < f->ndim; i++) {
		Arg list = { .kind = ARG_LIST };

		for (int k = 0; k < f->axis[i].n; k++) {
			Arg call = { .kind = ARG_CALL, .s = name_fmt("f%d", f->axis[i].factor[k]) };

			arena_push(g->arena, call.arg, call.narg, length(g->factor[f->axis[i].factor[k]]));
			arena_push(g->arena, list.arg, list.narg, call);
		}
		if (list.narg == 0)
			list = (Arg){ .kind = ARG_INT, .i = 1 };
		arena_push(g->arena, a->arg, a->narg, (list.kind == ARG_LIST && list.narg == 1 ? list.arg[0] : list));
	}
	if (a->narg)
		annot_add(&v->annot, a);
}

int factors_run(Graph *g)
{
	Arena tmp = { 0 };
	State s = { .g = g, .a = &tmp };

	s.axis = arena_array(&tmp, Fac **, g->nvalue + 1);
	g->nfactor = 0;
	g->factor = NULL;
	for (int i = 0; i < g->nnode; i++)
		relate(&s, g->node[i]);
	bool show = opt.dump_after && (!strcmp(opt.dump_after, "factors") || !strcmp(opt.dump_after, "all"));
	int *uses = graph_uses(g, g->scratch);
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];

		v->factors = NULL;
		if (uses[v->id] || (v->def && v->def->graph == g) || v->input) {
			settle(&s, v);
			if (show)
				note(g, v);
		}
	}
	arena_free(&tmp);
	return 0;
}
