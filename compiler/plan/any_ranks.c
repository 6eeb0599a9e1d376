/* --deterministic=any-ranks: which signatures give the same bits on any number of ranks, and how sums are cut.
 *
 * Floating-point sums depend on their order.  So one summed factor of each contraction and reduction is *declared*: the
 * first, which is the batch where there is one.  It is divided into N equal chunks (opt.chunks, 8 by default; where N
 * does not divide it, the largest power of two that does; of an axis that is a product, its major factor is divided).
 * A chunk is summed in an order that depends on the chunk alone, and chunks are combined in a balanced binary tree.
 * One rank does that too, in the kernels with `chunks` (kernels/cpu/tree.h, gemm_tree.h).
 *
 *      ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))       2 ranks have half of it each, 4 a quarter, 8 a chunk
 *
 * A plan may split the declared factor over a number of ranks that divides the chunks: a rank then computes a branch
 * of the tree, and transfers combine partial values of ranks by the same tree (runtime/), minor axes of the mesh
 * first (boxing_route.c).  No other summed factor is split; an operand that is split there is gathered first.  Factors
 * that are not summed are split freely where the kernel is known to compute every element independently of the others
 * (KERNEL_EACH and its like, target/kernel_rows.c).  Partial values pass through operators that only move elements, not
 * through additions or products: (a + b) c is not a c + b c.  A node that would be replaced by its definition is not
 * split.
 *
 * Random numbers and data are counted by logical positions in every mode. */
#include "plan/plan.h"

#include <string.h>

/* Whether some result lacks the factor. */
static bool summed(const Node *n, const FactorRule *r, int f)
{
	for (int i = 0; i < n->nout; i++) {
		bool has = !n->out[i];
		for (int a = 0; !has && r->out[i] && a < n->out[i]->type->ndim; a++)
			has = r->out[i][a] == f;
		for (int k = 0; !has && k < r->nproduct; k++)
			for (int j = 0; r->product[k].out && r->product[k].at == i && j < r->product[k].nsub; j++)
				has |= r->product[k].sub[j].factor == f;
		if (!has)
			return true;
	}
	return false;
}

/* The declared factor of a node; -1: none. */
static int declared(const Node *n, const FactorRule *r)
{
	for (int f = 0; f < r->nfactor; f++)
		if (r->len[f] > 1 && summed(n, r, f) && !(f < 64 && (r->defined | r->runs | r->counted) >> f & 1))
			return f;
	return -1;
}

/* The axis of an operand that is factor f; -1: none. */
static int axis_of(const FactorRule *r, const Node *n, int i, int f)
{
	for (int a = 0; n->in[i] && r->in[i] && a < n->in[i]->type->ndim; a++)
		if (r->in[i][a] == f)
			return a;
	return -1;
}

/* The length of the major factor of an axis. */
static int64_t major(const Value *v, int axis)
{
	const struct FactorAxis *x = v->factors && axis < v->factors->ndim ? &v->factors->axis[axis] : NULL;
	return x && x->n > 1 ? v->graph->factor[x->factor[0]] : v->type->dim[axis];
}

/* Whether the kernel of a node has one of these properties. */
static bool does(const Node *n, int how)
{
	const Kernel *k = n->row->expr ? NULL : kernel_of(n);
	return k && k->can(n) && k->c & how;
}

/* The number of chunks of the declared factor f. */
static int64_t count(const Node *n, const FactorRule *r, int f)
{
	int64_t c = opt.chunks;
	for (int k = 0; k < r->nproduct; k++)
		for (int j = 0; j < r->product[k].nsub; j++)
			if (r->product[k].sub[j].factor == f)
				return 1;
	for (int i = 0; i < n->nin; i++) {
		int a = axis_of(r, n, i, f);
		while (a >= 0 && c > 1 && major(n->in[i], a) % c)
			c /= 2;
	}
	return c;
}

int64_t any_ranks_chunks(Node *n, Arena *a, int *operand, int *axis)
{
	const FactorRule *r = opt.chunks && does(n, KERNEL_CHUNKS) ? factor_rule(n, a) : NULL;
	int f = r && r->red == RED_SUM ? declared(n, r) : -1;
	*operand = *axis = -1;
	for (int i = 0; f >= 0 && i < n->nin && *operand < 0; i++)
		if ((*axis = axis_of(r, n, i, f)) >= 0)
			*operand = i;
	return *operand < 0 ? 1 : count(n, r, f);
}

/* Whether the kernel of n computes every element independently of the others along the axis of factor f. */
static bool apart(const Node *n, const FactorRule *r, int f)
{
	if (n->row->expr || does(n, KERNEL_EACH) || !n->row->kernel)
		return true;
	int64_t own = n->row->attrs && strstr(n->row->attrs, "axis:") ? attr_int(n, "axis") : 1;
	for (int i = 0; i < n->nin; i++) {
		int a = axis_of(r, n, i, f), ndim = n->in[i] ? n->in[i]->type->ndim : 0;
		if (a < 0 || ndim != n->in[0]->type->ndim)
			continue;
		if (does(n, KERNEL_FIRST))
			return a == 0 && (i == 0 || does(n, KERNEL_ROWS));
		return does(n, KERNEL_LEADING) && a < (own < 0 ? own + ndim : own);
	}
	return false;
}

bool any_ranks_allow(Node *n, const FactorRule *r, int f, int leaf, int nrank, int64_t *of)
{
	bool run = f < 64 && r->runs >> f & 1, define = f < 64 && r->defined >> f & 1;
	*of = 0;
	if (define || (run && !n->row->random && !does(n, KERNEL_RUNS)))
		return false;
	if (!summed(n, r, f))
		return apart(n, r, f);
	if (run || leaf > 0 || f != declared(n, r) || r->red != RED_SUM || !does(n, KERNEL_CHUNKS))
		return false;
	for (int i = 0; i < n->nout; i++)       /* in half precision terms are rounded, and their sum again */
		if (n->out[i] && n->out[i]->type->elem != DT_FLOAT)
			return false;
	*of = count(n, r, f);
	return *of % nrank == 0 && apart(n, r, f);
}

bool any_ranks_carry(const Node *n)
{
	return n->row->carries && n->nin && n->in[0] && n->out[0] && n->in[0]->type->elem == n->out[0]->type->elem;
}

/* The command line has precedence over @any_ranks of the model.  Either way @any_ranks is written to the model, so that
 * plans and their hashes depend on it. */
int any_ranks_read(Model *m)
{
	Annot *a = annot_find(m->annot, "any_ranks");
	const Arg *given = a ? arg_find(a->arg, a->narg, name_of("chunks")) : NULL;
	int64_t n = a ? CHUNKS : 0;
	if (opt.chunks)
		n = opt.chunks;
	else if (given)
		n = given->i;
	if (n & (n - 1) || n > CHUNKS_MOST) {
		err_at(a->loc, "@any_ranks takes a power of two, at most %d", CHUNKS_MOST);
		return -1;
	}
	opt.chunks = n;
	if (!n || m->main)
		return 0;
	if (!a) {
		a = arena_new(&m->arena, Annot);
		a->name = name_of("any_ranks");
		annot_add(&m->annot, a);
	}
	a->narg = 0;
	a->arg = NULL;
	Arg one = { .kind = ARG_INT, .i = n, .f = (double)n, .param = name_of("chunks") };
	arena_push(&m->arena, a->arg, a->narg, one);
	return annot_check(a, ON_MODEL);
}
