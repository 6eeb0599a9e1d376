/* Fusion: which nodes run as one action.
 *
 * Pointwise nodes of one shape that feed each other become one loop: values that only they read stay in registers and
 * have no slot. A matrix product takes the pointwise nodes after it as its epilogue.  Groups begin as single nodes, in
 * the order of the graph. Each pointwise node in turn is joined with the groups that make its operands, if the order
 * allows it: the earlier group moves down to the later one, past no reader of its results, or the later one moves up,
 * past nothing that it reads.  An update in place stays after all readers of the old value.
 *
 * Two nodes that one kernel computes in one pass (a loss and its gradient) become one action if the order allows it.
 *
 * The sums of squares of all gradients that clipping reads (SumSquare) and the additions that make one number of them
 * become one action on each placement, for all gradients live until the norm is known in any case.  It also takes in
 * the terms that count on one rank only (zero_fill).  If a sum begins with a number from elsewhere, such as that of the
 * stage before, the squares do not wait for it: its additions are a second action.
 *
 * Joining distant groups lengthens live ranges; it is done when the values that vanish are at least as large as those
 * that live longer.  The number of operands and results is limited, so that a loop keeps its pointers and values in
 * registers. */
#include "schedule/schedule.h"

#include <string.h>

enum { NEAR = 24, NODES = 64, OPERANDS = 12, RESULTS = 6 };

typedef struct Edges { int *at, *to; } Edges;          /* of node i: to[at[i]] .. to[at[i + 1] - 1] */

typedef struct Fuse {
	Graph *g;
	Plan *p;
	Edges succ, pred;               /* nodes that must come after and before a node */
	Edges use;                      /* by value: the nodes that name it */
	bool *taken;                    /* by value: another value is stored in its memory (@into) */
	int *group;                     /* by node: the number of its group */
	int *order;                     /* by group: its position */
	int **member, *nmember;         /* by group: nodes, in the order of the graph */
	bool *sums;                     /* by group: it adds scalars, one kernel runs it */
	/* by value: the gradient of a parameter, which always has memory, so that it can be dumped */
	bool *gradient;
} Fuse;

/* ---- order ---- */

typedef struct Pairs { int *a, *b, n; } Pairs;

static void pair(Arena *ar, Pairs *p, int a, int b)
{
	int n = p->n;
	if (a == b)
		return;
	arena_push(ar, p->a, n, a);
	arena_push(ar, p->b, p->n, b);
}

/* Readers of a value, also through views of it, come before the node that updates it. */
static void readers_first(Fuse *f, Pairs *p, const Value *v, int before, int depth)
{
	for (int k = f->use.at[v->id]; k < f->use.at[v->id + 1]; k++) {
		const Node *r = f->g->node[f->use.to[k]];
		pair(f->g->scratch, p, f->use.to[k], before);
		Slot *s = r->nout ? slot_of(f->p, r->out[0]) : NULL;
		if (s && s->view && depth)
			readers_first(f, p, r->out[0], before, depth - 1);
	}
}

static Edges edges_of(Arena *ar, int n, const int *from, const int *to, int count)
{
	Edges e = { arena_array(ar, int, n + 2), arena_array(ar, int, count + 1) };
	int *fill = arena_array(ar, int, n + 1);
	for (int i = 0; i < count; i++)
		e.at[from[i] + 1]++;
	for (int i = 0; i < n; i++)
		e.at[i + 1] += e.at[i];
	for (int i = 0; i < count; i++)
		e.to[e.at[from[i]] + fill[from[i]]++] = to[i];
	return e;
}

static void find_order(Fuse *f)
{
	Graph *g = f->g;
	Arena *ar = g->scratch;
	Pairs data = { 0 }, use = { 0 };
	for (int i = 0; i < g->nnode; i++)
		g->node[i]->mark = i;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			Value *v = n->in[k];
			if (!v || v->graph != g)
				continue;
			if (v->def)
				pair(ar, &data, v->def->mark, i);
			int m = use.n;
			arena_push(ar, use.a, m, v->id);
			arena_push(ar, use.b, use.n, i);
		}
	}
	f->use = edges_of(ar, g->nvalue, use.a, use.b, use.n);
	f->taken = arena_array(ar, bool, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nout; k++)
			for (Value *v = g->node[i]->out[k] ? g->node[i]->out[k]->into : NULL; v; v = v->into) {
				f->taken[v->id] = true;
				readers_first(f, &data, v, i, 8);
			}
	f->succ = edges_of(ar, g->nnode, data.a, data.b, data.n);
	f->pred = edges_of(ar, g->nnode, data.b, data.a, data.n);
}

/* ---- shapes ---- */

static bool pointwise(const Node *n)
{
	return n->row->expr && !kernel_transfer(n) && n->nout == 1 && n->out[0];
}

static bool same_shape(const Plan *p, const Slot *a, const Slot *b)
{
	return a && b && slot_alike(p, a, b);
}

/* ---- groups ---- */

/* Whether a result needs no memory when its group holds all its readers. */
static bool may_vanish(const Fuse *f, const Value *v)
{
	const Slot *s = slot_of(f->p, v);
	return s && s->store == s && !v->output && !f->gradient[v->id] && !optimizer_reports(v) && !v->into &&
		!f->taken[v->id] && v != f->p->count && v != f->p->train.loss &&
		(s->keep == KEEP_ACT || s->keep == KEEP_GRAD);
}

/* Whether all readers of a value are in groups a and b. */
static bool read_inside(const Fuse *f, const Value *v, int a, int b)
{
	for (int k = f->use.at[v->id]; k < f->use.at[v->id + 1]; k++) {
		int s = f->group[f->use.to[k]];
		if (s != a && s != b)
			return false;
	}
	return f->use.at[v->id] < f->use.at[v->id + 1];
}

typedef struct Sizes {
	int operands, results;          /* pointers of the loop */
	int64_t in, out;                /* bytes of operands and results that are not kept from step to step */
	int64_t gone;                   /* bytes of results that vanish by joining */
} Sizes;

/* Whether operand k of member m is also an operand before it. */
static bool reads_before(const Fuse *f, const int *list, int m, int k)
{
	const Value *v = f->g->node[list[m]]->in[k];
	for (int i = 0; i <= m; i++) {
		const Node *x = f->g->node[list[i]];
		for (int j = 0; j < (i < m ? x->nin : k); j++)
			if (x->in[j] == v)
				return true;
	}
	return false;
}

/* The values that group a reads and writes outside of a and b. */
static void measure(const Fuse *f, int a, int b, Sizes *z)
{
	for (int m = 0; m < f->nmember[a]; m++) {
		int i = f->member[a][m];
		const Node *n = f->g->node[i];
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k];
			int from = v && v->def && v->graph == f->g ? f->group[v->def->mark] : -1;
			Slot *s = v ? slot_of(f->p, v) : NULL;
			if (!s || !kernel_reads(n, k) || from == a || from == b || reads_before(f, f->member[a], m, k))
				continue;
			z->operands++;
			if (s->keep == KEEP_ACT || s->keep == KEEP_GRAD)
				z->in += s->bytes;
		}
		for (int k = 0; k < n->nout; k++) {
			Slot *s = slot_of(f->p, n->out[k]);
			bool gone = s && may_vanish(f, n->out[k]) && read_inside(f, n->out[k], a, b);
			z->results += s && !gone;
			z->gone += gone && !read_inside(f, n->out[k], a, a) ? s->bytes : 0;
			z->out += s && !gone && (s->keep == KEEP_ACT || s->keep == KEEP_GRAD) ? s->bytes : 0;
		}
	}
}

static bool down(const Fuse *f, int a, int b)
{
	for (int m = 0; m < f->nmember[a]; m++)
		for (int i = f->member[a][m], k = f->succ.at[i]; k < f->succ.at[i + 1]; k++) {
			int s = f->group[f->succ.to[k]];
			if (s != a && s != b && f->order[s] < f->order[b])
				return false;
		}
	return true;
}

static bool up(const Fuse *f, int b, int a)
{
	for (int m = 0; m < f->nmember[b]; m++)
		for (int i = f->member[b][m], k = f->pred.at[i]; k < f->pred.at[i + 1]; k++) {
			int s = f->group[f->pred.to[k]];
			if (s != a && s != b && f->order[s] > f->order[a])
				return false;
		}
	return true;
}

/* Groups a and b, in this order, become a; at the position of b if it sinks. */
static void merge(Fuse *f, int a, int b, bool sink)
{
	int n = f->nmember[a] + f->nmember[b];
	int *all = arena_array(f->g->scratch, int, n), x = 0, y = 0;
	for (int i = 0; i < n; i++)             /* in the order of the graph */
		all[i] = y == f->nmember[b] ||
			(x < f->nmember[a] && f->member[a][x] < f->member[b][y]) ? f->member[a][x++]
			: f->member[b][y++];
	f->order[a] = sink ? f->order[b] : f->order[a];
	f->member[a] = all;
	f->nmember[a] = n;
	f->nmember[b] = 0;
	for (int i = 0; i < n; i++)
		f->group[all[i]] = a;
}

/* Joins groups a and b, in this order, if that is possible and pays. */
static bool join(Fuse *f, int a, int b)
{
	int n = f->nmember[a] + f->nmember[b];
	Sizes za = { 0 }, zb = { 0 };
	if (n > NODES || !kinds_together(f->g->node[f->member[a][0]], f->g->node[f->member[b][0]]))
		return false;
	bool sink = down(f, a, b), rise = !sink && up(f, b, a);
	if (!sink && !rise)
		return false;
	measure(f, a, b, &za);
	measure(f, b, a, &zb);
	if (za.operands + zb.operands > OPERANDS || za.results + zb.results > RESULTS)
		return false;
	bool near = f->order[b] - f->order[a] <= NEAR;
	if (!near && (sink ? za.in : zb.out) > za.gone + zb.gone)
		return false;
	merge(f, a, b, sink);
	return true;
}

static void join_operands(Fuse *f, int i)
{
	Node *n = f->g->node[i];
	Slot *y = slot_of(f->p, n->out[0]);
	for (int k = 0; k < n->nin; k++) {
		const Value *v = n->in[k];
		Node *d = v && v->graph == f->g ? v->def : NULL;
		if (!d || !pointwise(d) || !kernel_reads(n, k) || !same_shape(f->p, slot_of(f->p, v), y))
			continue;
		int a = f->group[d->mark], b = f->group[i];
		if (a != b && !f->sums[a] && !f->sums[b])
			f->order[a] < f->order[b] ? join(f, a, b) : join(f, b, a);
	}
}

/* ---- sums of squares ---- */

static bool one_float(const Value *v)
{
	return v && v->type->elem == DT_FLOAT && v->type->ndim == 0;
}

static bool squares(const Node *n)
{
	return node_is(n, "sbpcc.SumSquare") && one_float(n->out[0]) && kernel_has(n);
}

/* The term that one rank contributes and the others do not. */
static bool fills_zero(const Node *n)
{
	return kernel_transfer(n) && one_float(n->out[0]) && !strcmp(attr_str(n, "how"), "zero_fill") &&
		n->in[0]->place->mesh == n->out[0]->place->mesh;
}

static Node *maker(const Fuse *f, const Value *v)
{
	return v && v->graph == f->g ? v->def : NULL;
}

/* A single number of a group: the next term of a sum. */
static bool single(const Fuse *f, const Value *v)
{
	const Node *d = maker(f, v);
	return d && (squares(d) || (fills_zero(d) && single(f, d->in[0])));
}

static bool in_group(const Fuse *f, const Value *v, int a)
{
	const Node *d = maker(f, v);
	return d && f->group[d->mark] == a;
}

static bool adds(const Node *n)
{
	return node_is(n, "Add") && one_float(n->in[0]) && one_float(n->in[1]) && one_float(n->out[0]);
}

/* Whether node i may be a member of group a, which has squares or only additions. */
static bool belongs(const Fuse *f, int i, int a)
{
	const Node *n = f->g->node[i], *first = f->g->node[f->member[a][0]];
	if (first->place->mesh != n->place->mesh || !kinds_together(first, n))
		return false;
	if (!squares(first))            /* additions one after the other; the other operand may be any number */
		return adds(n) && in_group(f, n->in[0], a) != in_group(f, n->in[1], a);
	if (fills_zero(n))
		return in_group(f, n->in[0], a) && single(f, n->in[0]);
	if (adds(n))
		return in_group(f, n->in[0], a) && in_group(f, n->in[1], a) &&
			(single(f, n->in[0]) || single(f, n->in[1]));
	return squares(n);
}

/* Whether the only readers of the sum of squares are additions, at once or after a transfer: it is a term of a norm of
 * many tensors, which all live until it is known. */
static bool term_of_many(const Fuse *f, const Value *v)
{
	bool any = false;
	for (int k = f->use.at[v->id]; k < f->use.at[v->id + 1]; k++, any = true) {
		const Node *r = f->g->node[f->use.to[k]];
		if (!adds(r) && !(kernel_transfer(r) && one_float(r->out[0]) && term_of_many(f, r->out[0])))
			return false;
	}
	return any;
}

/* Whether an addition reads a sum of squares, at once or after transfers. */
static bool reads_squares(const Fuse *f, const Node *n)
{
	for (int k = 0; k < n->nin; k++) {
		const Node *d = maker(f, n->in[k]);
		while (d && kernel_transfer(d))
			d = maker(f, d->in[0]);
		if (d && squares(d))
			return true;
	}
	return false;
}

/* Node i becomes the last member of group a if the order allows it. */
static bool take_in(Fuse *f, int a, int i)
{
	int b = f->group[i];
	bool sink = f->order[a] < f->order[b] && down(f, a, b);
	if (!sink && !up(f, b, a))
		return false;
	f->order[a] = sink ? f->order[b] : f->order[a];
	arena_push(f->g->scratch, f->member[a], f->nmember[a], i);
	f->nmember[b] = 0;
	f->group[i] = a;
	return true;
}

static void join_sums(Fuse *f)
{
	Arena *ar = f->g->scratch;
	int *open = NULL, nopen = 0;
	for (int i = 0; i < f->g->nnode; i++) {
		const Node *n = f->g->node[i];
		bool square = squares(n), add = adds(n), taken = false;
		if (f->nmember[f->group[i]] != 1 || (square && !term_of_many(f, n->out[0])) ||
			(!square && !add && !fills_zero(n)))
			continue;
		for (int k = 0; k < nopen && !taken; k++)
			taken = belongs(f, i, open[k]) && take_in(f, open[k], i);
		if (taken || (!square && !(add && reads_squares(f, n))))
			continue;
		f->sums[i] = true;
		f->member[i] = NULL;
		f->nmember[i] = 0;
		arena_push(ar, f->member[i], f->nmember[i], i);
		arena_push(ar, open, nopen, i);
	}
	for (int k = 0; k < nopen; k++)         /* alone, an addition is like any other node */
		f->sums[open[k]] = f->nmember[open[k]] > 1;
}

/* ---- pairs ---- */

/* Joins n with a node that one kernel computes together with it, if nothing between them depends on the first and is
 * read by the second. */
static void join_pair(Fuse *f, int i)
{
	const Node *n = f->g->node[i];
	for (int k = 0; k < n->nin; k++) {
		const Value *v = n->in[k];
		Node *d = v && v->graph == f->g ? v->def : NULL;
		if (!d || !kernel_pair(d, n))
			continue;
		int a = f->group[d->mark], b = f->group[i];
		bool sink = down(f, a, b);
		if (f->nmember[a] == 1 && f->order[a] < f->order[b] && kinds_together(d, n) && (sink || up(f, b, a)))
			merge(f, a, b, sink);
		return;
	}
}

/* ---- epilogues ---- */

/* A product with a single matrix on the right: its result is rows of the last axis, which an epilogue gets in tiles. */
static bool takes_epilogue(const Fuse *f, const Node *n)
{
	const Kernel *k = n->row->expr || kernel_transfer(n) ? NULL : kernel_of(n);
	const Slot *y = n->nout == 1 ? slot_of(f->p, n->out[0]) : NULL;
	if (!k || !y || y->ndim < 2 || kernel_stored(y->v->type->elem) != DT_FLOAT || y->store != y || y->view)
		return false;
	return !strcmp(k->name, "matmul_over") || (!strcmp(k->name, "matmul") && n->in[0]->type->ndim > 1 &&
		n->in[1]->type->ndim == 2);
}

static bool all_pointwise(const Fuse *f, int a)
{
	for (int m = 0; m < f->nmember[a]; m++)
		if (!pointwise(f->g->node[f->member[a][m]]))
			return false;
	return true;
}

/* Whether the product itself can be written: to its own result, or to a result of the group that shares memory with no
 * operand. */
static bool has_room(const Fuse *f, const Value *v, int a, int b)
{
	if (!may_vanish(f, v) || !read_inside(f, v, a, b))
		return true;
	for (int m = 0; m < f->nmember[b]; m++) {
		const Value *y = f->g->node[f->member[b][m]]->out[0];
		if (fuse_room(f->p, y) && !(may_vanish(f, y) && read_inside(f, y, a, b)))
			return true;
	}
	return false;
}

bool fuse_room(const Plan *p, const Value *v)
{
	const Slot *s = slot_of(p, v);
	return s && s->store == s && !v->into && kernel_stored(v->type->elem) == DT_FLOAT &&
		(s->keep == KEEP_ACT || s->keep == KEEP_GRAD);
}

/* Whether the group writes where the product reads: tiles are finished while others are still computed. */
static bool disturbs(const Fuse *f, const Node *n, int b)
{
	for (int m = 0; m < f->nmember[b]; m++)
		for (int k = 0; k < n->nin; k++) {
			const Slot *y = slot_of(f->p, f->g->node[f->member[b][m]]->out[0]),
				*x = slot_of(f->p, n->in[k]);
			if (x && y && x->store == y->store)
				return true;
		}
	return false;
}

static void join_epilogue(Fuse *f, int i)
{
	const Value *v = f->g->node[i]->out[0];
	for (int k = f->use.at[v->id]; k < f->use.at[v->id + 1]; k++) {
		const Node *r = f->g->node[f->use.to[k]];
		int a = f->group[i], b = f->group[f->use.to[k]];
		if (!pointwise(r) || !all_pointwise(f, b) || f->sums[b] ||
			!same_shape(f->p, slot_of(f->p, v), slot_of(f->p, r->out[0])) || !has_room(f, v, a, b) ||
			disturbs(f, f->g->node[i], b))
			continue;
		if (f->order[a] < f->order[b] && join(f, a, b))
			return;
	}
}

/* ---- the result ---- */

static void drop_slots(Fuse *f)
{
	for (int i = 0; i < f->g->nnode; i++) {
		Value *v = f->g->node[i]->out[0];
		if (f->nmember[f->group[i]] > 1 && v && may_vanish(f, v) && read_inside(f, v, f->group[i], f->group[i]))
			f->p->slot[v->id] = NULL;
	}
}

/* Writes the number of the group as @fused for the dump; replaces that of an older dump. */
static void note(Node *n, int number)
{
	Annot **at = &n->annot;
	while (*at)
		if (!strcmp((*at)->name, "fused"))
			*at = (*at)->next;
		else
			at = &(*at)->next;
	if (!number)
		return;
	Annot *a = arena_new(n->graph->arena, Annot);
	Arg arg = { .kind = ARG_INT, .i = number, .loc = n->loc };
	a->name = name_of("fused");
	arena_push(n->graph->arena, a->arg, a->narg, arg);
	if (annot_check(a, ON_NODE))
		die("@fused(%d) is refused", number);
	annot_add(&n->annot, a);
}

/* A zero_fill in a group has no memory, but the ranks still ask by its forms which of them contributes. */
static void note_fills(const Fuse *f, Group *grp)
{
	for (int m = 0; m < grp->nnode && grp->sums; m++)
		if (fills_zero(grp->node[m])) {
			Fill x = { slot_of(f->p, grp->node[m]->in[0]), slot_of(f->p, grp->node[m]->out[0]) };
			arena_push(f->g->arena, grp->fill, grp->nfill, x);
		}
}

static void put_groups(Fuse *f)
{
	Graph *g = f->g;
	int shared = 0;
	int *at = arena_array(g->scratch, int, g->nnode + 1);  /* by position: group + 1 */
	for (int i = 0; i < g->nnode; i++)
		if (f->nmember[i])
			at[f->order[i]] = i + 1;
	for (int i = 0; i < g->nnode; i++) {
		Group grp = { 0 };
		for (int m = 0; at[i] && m < f->nmember[at[i] - 1]; m++)
			arena_push(g->arena, grp.node, grp.nnode, g->node[f->member[at[i] - 1][m]]);
		grp.sums = at[i] && f->sums[at[i] - 1];
		note_fills(f, &grp);
		shared += grp.nnode > 1;
		for (int m = 0; m < grp.nnode; m++)
			note(grp.node[m], grp.nnode > 1 ? shared : 0);
		if (grp.nnode)
			arena_push(g->arena, f->p->group, f->p->ngroup, grp);
	}
}

int fuse_run(Graph *g)
{
	Arena *ar = g->scratch;
	int n = g->nnode;
	Fuse f = { .g = g, .p = g->model->plan };
	kinds_mark(g);
	find_order(&f);
	f.group = arena_array(ar, int, n + 1);
	f.order = arena_array(ar, int, n + 1);
	f.member = arena_array(ar, int *, n + 1);
	f.nmember = arena_array(ar, int, n + 1);
	for (int i = 0; i < n; i++) {
		f.member[i] = arena_array(ar, int, 1);
		f.member[i][0] = f.group[i] = f.order[i] = i;
		f.nmember[i] = 1;
	}
	f.gradient = arena_array(ar, bool, g->nvalue + 1);
	for (int i = 0; i < g->ninit; i++) {
		const Value *v = g->init[i]->param ? params_gradient(g, g->init[i]) : NULL;
		if (v)
			f.gradient[v->id] = true;
	}
	f.sums = arena_array(ar, bool, n + 1);
	for (int i = 0; i < n; i++)
		join_pair(&f, i);
	join_sums(&f);
	for (int i = 0; i < n; i++)
		if (pointwise(g->node[i]))
			join_operands(&f, i);
	/* of two products that are added, the later one takes the other as an operand */
	for (int i = n; i-- > 0;)
		if (takes_epilogue(&f, g->node[i]))
			join_epilogue(&f, i);
	put_groups(&f);
	drop_slots(&f);
	return 0;
}
