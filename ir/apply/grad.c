/* The backward pass: d loss / d v for every wanted value, from the gradient column of the table.
 *
 * Nodes are walked once, last to first.  The gradient of a value is the sum of the terms that its users
 * contribute; it is summed when its own node is reached, in the order of the users, so that results do not depend
 * on hashing.  Only values between a wanted value and the loss are differentiated.  A composite without a gradient
 * of its own is lowered first, and the operators of its definition are differentiated.  One with a gradient stays,
 * and from then on also gives the results that the gradient reads (its stash).
 *
 * Pipelines run the two halves of an operator's backward pass separately, so each node is marked: @backward(B) when
 * the gradient of something computed from the inputs needs it, @backward(W) when only gradients of weights (or of
 * values computed from weights alone) do.  Where the model has stages, a node that makes both kinds becomes two,
 * each with the results of its half.
 *
 * In micro-batches (grad_build_uses), the gradient of a value that is computed from weights alone is a sum over its
 * uses, and each use may be on another stage of a pipeline.  A use is a node of the model that reads the value; the
 * nodes of a lowered composite, or of an unrolled loop, are one use.  The terms of a use are added in every
 * micro-batch.  The uses are added in the order of the graph, by nodes marked @update, which run once, on the sums over
 * all micro-batches.  A Cast or Expand of a weight is not a use, but passes the terms of its own uses on. */
#include "apply.h"

#include <string.h>

/* A term of a gradient, and where the value is read: the number of the node, its stage and location in the model. */
typedef struct Term { Value *v; int at; Name use; } Term;

typedef struct Back {
	Graph *g;
	bool uses;              /* gradients of values computed from weights alone are added by uses */
	bool *need;             /* by value id: depends on a wanted value */
	Term **term;            /* by value id: the terms of its gradient */
	int *nterm;
	int nvalue;             /* ids below this existed before */
	bool *want;             /* by value id: wanted */
	bool staged;            /* some node has @stage */
	bool *moving;           /* by value id: computed from an input of the graph, not from weights alone */
} Back;

enum { HALF_B = 1, HALF_W = 2 };

static bool differentiable(const Op *op)
{
	return op->grad || op->grad_fn;
}

static bool floating(const Value *v)
{
	return v && v->type && v->type->kind == TY_TENSOR && dtype_is_float(v->type->elem);
}

/* Whether n gives a gradient to operand i.  A frozen node gives none to its parameters (of batch normalisation, frozen
 * means its statistics). */
static bool wants(const Back *b, const Node *n, int i)
{
	const Value *v = n->in[i];
	if (!v || v->graph != b->g || v->id >= b->nvalue || !b->need[v->id])
		return false;
	return !v->param || !annot_find(n->annot, "frozen") || !strcmp(n->op, "BatchNormalization");
}

static void mark_needed(Back *b, Value **want, int nwant)
{
	Graph *g = b->g;

	for (int i = 0; i < nwant; i++)
		b->need[want[i]->id] = b->want[want[i]->id] = true;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool any = false;

		for (int j = 0; j < n->nin; j++)
			any |= wants(b, n, j);
		for (int j = 0; j < n->nout && any && !n->row->nograd; j++)
			if (floating(n->out[j]))
				b->need[n->out[j]->id] = true;
	}
}

static void mark_moving(Back *b)
{
	Graph *g = b->g;

	for (int i = 0; i < g->nin; i++)
		b->moving[g->in[i]->id] = !g->in[i]->param;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool any = n->row->random;

		b->staged |= annot_find(n->annot, "stage") != NULL;

		for (int j = 0; j < n->nin; j++)
			any |= n->in[j] && n->in[j]->graph == g && b->moving[n->in[j]->id];
		for (int j = 0; j < n->nout; j++)
			if (n->out[j])
				b->moving[n->out[j]->id] = any;
	}
}

/* Whether the definition of a composite is differentiated, not the composite itself. */
static bool by_definition(const Node *n, void *arg)
{
	const Back *b = arg;
	bool want[64] = { false }, any = false;

	for (int i = 0; i < n->nin && i < 64; i++)      /* a value made since then: not known, so assume yes */
		any |= want[i] = wants(b, n, i) || (floating(n->in[i]) && n->in[i]->id >= b->nvalue);
	/* part of the backward pass of another loss: not on a path to this one */
	if (n->row->nograd || annot_find(n->annot, "backward"))
		return false;
	return !differentiable(n->row) || (any && n->row->own && !n->row->own(n, want));
}

static void back_start(Back *b, Graph *g, Value **want, int nwant)
{
	*b = (Back){ .g = g, .nvalue = g->nvalue, .uses = b->uses };
	b->need = arena_array(g->scratch, bool, g->nvalue + 1);
	b->term = arena_array(g->scratch, Term *, g->nvalue + 1);
	b->nterm = arena_array(g->scratch, int, g->nvalue + 1);
	b->want = arena_array(g->scratch, bool, g->nvalue + 1);
	b->moving = arena_array(g->scratch, bool, g->nvalue + 1);
	mark_needed(b, want, nwant);
}

/* Gives n the results that its gradient reads. */
static int add_stash(Back *b, Node *n)
{
	const Schema *s = n->row->schema;
	bool fresh = false;

	for (const char *p = n->row->stash; p && *p;) {
		size_t len = strcspn(p, " ");
		int at = 0;

		while (at < s->nout && (strlen(s->out[at].name) != len || strncmp(s->out[at].name, p, len) != 0))
			at++;
		if (at == s->nout)
			die("%s: .stash names a result that .sig does not have", n->op);
		while (n->nout <= at)
			node_out(n, NULL);
		if (!n->out[at]) {
			Value *v = graph_fresh(b->g, name_fmt("%s.%s", n->out[0]->name, s->out[at].name));

			n->out[at] = v;
			v->def = n;
			v->defidx = at;
			v->loc = n->loc;
			fresh = true;
		}
		p += len + strspn(p + len, " ");
	}
	return fresh ? infer_node(n) : 0;
}

/* Whether a value was in the graph before the backward pass. */
static bool old(const Back *b, const Value *v)
{
	return v && v->id < b->nvalue;
}

static void give(Back *b, Value *v, Term term)
{
	if (term.v && v && v->graph == b->g && v->id < b->nvalue && b->need[v->id])
		arena_push(b->g->scratch, b->term[v->id], b->nterm[v->id], term);
}

static void note_half(Node *n, const char *which)
{
	Annot *a = arena_new(n->graph->arena, Annot);
	Arg arg = { .kind = ARG_WORD, .s = name_of(which), .loc = n->loc };

	a->name = name_of("backward");
	arena_push(n->graph->arena, a->arg, a->narg, arg);
	if (annot_check(a, ON_NODE))
		die("@backward(%s) is refused", which);
	annot_add(&n->annot, a);
}

static void note_update(Node *n)
{
	Annot *a = arena_new(n->graph->arena, Annot);

	a->name = name_of("update");
	if (annot_check(a, ON_NODE))
		die("@update is refused");
	annot_add(&n->annot, a);
}

static void inherit(Node *m, const Node *n)
{
	if (!m->annot)
		node_inherit(m, n);
}

static int half_of(const Back *b, const Value *v)
{
	return b->moving[v->id] ? HALF_B : HALF_W;
}

/* The results of m that only gradients of weights need move to a copy of it, if there are others too. */
static void take_apart(Node *m, const uint8_t *need, int new)
{
	bool some = false;

	for (int k = 0; k < m->nout; k++)
		some |= m->out[k] && m->out[k]->id >= new && need[m->out[k]->id - new] == HALF_W;
	if (!some)
		return;
	Node *w = graph_node(m->graph, m->domain, m->op, m->loc);

	*w = *m;
	w->annot = NULL;
	inherit(w, m);
	w->out = arena_array(m->graph->arena, Value *, m->nout);
	w->in = arena_array(m->graph->arena, Value *, m->nin + 1);
	memcpy(w->in, m->in, sizeof *m->in * (size_t)m->nin);
	for (int k = 0; k < m->nout; k++)
		if (m->out[k] && m->out[k]->id >= new && need[m->out[k]->id - new] == HALF_W) {
			w->out[k] = m->out[k];
			w->out[k]->def = w;
			m->out[k] = NULL;
		}
	note_half(w, "W");
}

/* Marks the nodes from number `first` on, with values from `new` on: the gradient of n.  @backward says which gradients
 * need them. */
static void note_halves(Back *b, const Node *n, Value **din, int first, int new)
{
	Graph *g = b->g;
	uint8_t *need = arena_array(g->scratch, uint8_t, g->nvalue - new + 1);

	for (int i = 0; i < n->nin; i++)
		if (din[i] && din[i] != n->in[i] && din[i]->id >= new)
			need[din[i]->id - new] |= (uint8_t)half_of(b, n->in[i]);
	for (int i = g->nnode; i-- > first;) {
		Node *m = g->node[i];
		uint8_t all = 0;

		for (int k = 0; k < m->nout; k++)
			all |= m->out[k] && m->out[k]->id >= new ? need[m->out[k]->id - new] : 0;
		for (int k = 0; k < m->nin; k++)
			if (m->in[k] && m->in[k]->graph == g && m->in[k]->id >= new)
				need[m->in[k]->id - new] |= all;
		if (b->staged && all == (HALF_B | HALF_W) && m->nout > 1)
			take_apart(m, need, new);
		if (all)
			note_half(m, all & HALF_B ? "B" : "W");
	}
}

/* Is the gradient of v added by uses? */
static bool by_uses(const Back *b, const Value *v)
{
	return b->uses && !b->moving[v->id];
}

/* a + b, for the gradient of v */
static Value *plus(Back *b, const Value *v, Name name, Loc loc, Value *const term[2])
{
	Value *out = graph_fresh(b->g, name);

	if (!build_list(b->g, loc, "Add", NULL, 1, &out, 2, term))
		return NULL;
	if (v->def)
		inherit(out->def, v->def);
	note_half(out->def, half_of(b, v) == HALF_B ? "B" : "W");
	return out;
}

static Name use_of(const Node *n, int at)
{
	if (!n->from && !n->loc.file)
		return name_fmt("%d", at);
	return name_fmt("%d %s", n->stage, n->from ? n->from : loc_text(n->loc));
}

/* Joins the terms of each use of v; the uses are then in the order of the graph. */
static int join_uses(Back *b, const Value *v, Loc loc)
{
	Term *term = b->term[v->id];
	int n = 0;

	for (int i = 1; i < b->nterm[v->id]; i++)
		for (int k = i; k > 0 && term[k - 1].at > term[k].at; k--) {
			Term t = term[k];

			term[k] = term[k - 1];
			term[k - 1] = t;
		}
	for (int i = 0; i < b->nterm[v->id]; i++) {
		int k = 0;

		while (k < n && term[k].use != term[i].use)
			k++;
		if (k == n)
			term[n++] = term[i];
		else if (!(term[k].v = plus(b, v, name_fmt("%s.term", v->name), loc,
			(Value *[2]){ term[k].v, term[i].v })))
			return -1;
	}
	b->nterm[v->id] = n;
	for (int i = 0; i < n && n > 1; i++)
		if (strstr(term[i].v->name, ".term"))
			graph_rename(b->g, term[i].v, name_fmt("%s.grad.use%d", v->name, i));
	return 0;
}

/* The sum of the terms, named v.grad; NULL when there are none. */
static Value *total(Back *b, Value *v, Loc loc)
{
	Value *sum = NULL;
	bool uses = old(b, v) && by_uses(b, v);

	if (!old(b, v) || b->nterm[v->id] == 0 || (uses && join_uses(b, v, loc) < 0))
		return NULL;
	int n = b->nterm[v->id];
	for (int i = 0; i < n; i++) {
		Value *p = b->term[v->id][i].v;

		if (!sum) {
			sum = p;
			continue;
		}
		if (!(sum = plus(b, v, name_fmt(i == n - 1 ? "%s.grad" : "%s.term", v->name), loc,
			(Value *[2]){ sum, p })))
			return NULL;
		if (uses)
			note_update(sum->def);
	}
	if (n == 1 && strstr(sum->name, ".term"))
		graph_rename(b->g, sum, name_fmt("%s.grad", v->name));
	b->term[v->id][0].v = sum;
	b->nterm[v->id] = 1;
	return sum;
}

static int through_text(Back *b, Node *n, const Function *f, Value **dout, Value **din)
{
	const Schema *s = n->row->schema;
	Value *args[192], *outs[192] = { 0 };
	int nargs = 0;

	if (s->nin + 2 * s->nout > 192)
		die("gradient of %s: too many operands", n->op);
	for (int i = 0; i < s->nin; i++)
		args[nargs++] = i < n->nin ? n->in[i] : NULL;
	for (int i = 0; i < s->nout; i++)
		args[nargs++] = i < n->nout ? n->out[i] : NULL;
	for (int i = 0; i < s->nout; i++)
		args[nargs++] = i < n->nout ? dout[i] : NULL;
	/* The function's results are d + operand, for those that the text assigns. */
	for (int k = 0; k < f->body->nout; k++)
		for (int i = 0; i < s->nin && i < n->nin; i++)
			if (!strcmp(f->body->out[k]->name + 1, s->in[i].name) && wants(b, n, i)) {
				outs[k] = din[i] = graph_fresh(b->g, name_fmt("%s.term", n->in[i]->name));
			}
	return inline_body(b->g, f, n, args, nargs, outs, f->body->nout);
}

/* Reports how the loss depends on a wanted value through a node without gradient. */
static int no_gradient(Back *b, Node *n, Value *loss)
{
	err_at(n->loc, "%s has no gradient, but the loss %s depends on it through %s", n->op, loss->name,
		n->nout && n->out[0] ? n->out[0]->name : "it");
	Value *v = n->out[0];
	for (int i = 0, steps = 0; i < b->g->nnode && v != loss && steps < 6; i++) {
		Node *u = b->g->node[i];

		for (int j = 0; j < u->nin; j++)
			if (u->in[j] == v && u->nout && u->out[0]) {
				note_at(u->loc, "%s goes into %s", v->name, u->out[0]->name);
				v = u->out[0];
				steps++;
				break;
			}
	}
	return -1;
}

/* The gradient of n from dout.  Its terms belong to the use of `term`, if given, else to n. */
static int through(Back *b, Node *n, int at, Value **dout, const Term *term)
{
	Value **din = arena_array(b->g->scratch, Value *, n->nin + 1);
	const Function *f = op_gradient(n->row);
	int first = b->g->nnode, new = b->g->nvalue;
	Term mine = { NULL, at, b->uses && !term ? use_of(n, at) : NULL };

	for (int i = 0; i < n->nin && !f; i++)          /* a grad_fn computes the entries that are set */
		din[i] = wants(b, n, i) ? n->in[i] : NULL;
	if ((f ? through_text(b, n, f, dout, din) : n->row->grad_fn(n, dout, din)) < 0)
		return -1;
	for (int i = first; i < b->g->nnode; i++)
		inherit(b->g->node[i], n);
	note_halves(b, n, din, first, new);
	for (int i = 0; i < n->nin; i++)
		if (din[i] && din[i] != n->in[i]) {
			Term t = term ? *term : mine;

			t.v = din[i];
			give(b, n->in[i], t);
		}
	return 0;
}

/* A cast of a value computed from weights alone: its terms are cast one by one, because sums are in full precision.  An
 * Expand to the batch: its terms are slices of the batch until they are reduced. */
static bool passes_uses(const Back *b, const Node *n)
{
	return (node_is(n, "Cast") || node_is(n, "Expand")) && by_uses(b, n->out[0]) && !b->want[n->out[0]->id];
}

static int step(Back *b, int at, Value *loss)
{
	Node *n = b->g->node[at];
	bool flows = false, wanted = false;

	for (int i = 0; i < n->nout; i++)
		flows |= n->out[i] && n->out[i]->id < b->nvalue && b->nterm[n->out[i]->id] > 0 &&
		         !b->want[n->out[i]->id];
	for (int i = 0; i < n->nin; i++)
		wanted |= wants(b, n, i);
	if (!flows || !wanted || n->row->nograd)
		return 0;
	if (add_stash(b, n) < 0)
		return -1;
	if (!differentiable(n->row))
		return no_gradient(b, n, loss);
	if (passes_uses(b, n)) {
		Value *y = n->out[0];

		if (join_uses(b, y, n->loc) < 0)
			return -1;
		for (int i = 0; i < b->nterm[y->id]; i++)
			if (through(b, n, at, &b->term[y->id][i].v, &b->term[y->id][i]) < 0)
				return -1;
		return 0;
	}
	Value **dout = arena_array(b->g->scratch, Value *, n->nout + 1);
	for (int i = 0; i < n->nout; i++) {
		if (!old(b, n->out[i]))
			continue;
		dout[i] = b->want[n->out[i]->id] ? NULL : total(b, n->out[i], n->loc);
		if (!dout[i] && floating(n->out[i]))
			dout[i] = build(b->g, n->loc, "ZerosLike", NULL, 1, NULL, 1, n->out[i]);
	}
	return through(b, n, at, dout, NULL);
}

static int build_all(Graph *g, bool uses, Value *loss, Value **want, int nwant, Value **grad)
{
	Back b = { .uses = uses };

	back_start(&b, g, want, nwant);
	if (inline_lower(g, by_definition, &b) < 0)
		return -1;
	back_start(&b, g, want, nwant);
	int nnode = g->nnode;

	mark_moving(&b);
	if (b.need[loss->id]) {
		Value *one = build(g, loss->loc, "OnesLike", NULL, 1,
			(Value *[]){ graph_fresh(g, name_fmt("%s.grad", loss->name)) }, 1, loss);

		if (!one)
			return -1;
		give(&b, loss, (Term){ one, nnode, NULL });
	}
	for (int i = nnode; i-- > 0;)
		if (step(&b, i, loss) < 0)
			return -1;
	for (int i = 0; i < nwant; i++)
		grad[i] = want[i]->id < b.nvalue ? total(&b, want[i], want[i]->loc) : NULL;
	return 0;
}

int grad_build(Graph *g, Value *loss, Value **want, int nwant, Value **grad)
{
	return build_all(g, false, loss, want, nwant, grad);
}

int grad_build_uses(Graph *g, Value *loss, Value **want, int nwant, Value **grad)
{
	return build_all(g, true, loss, want, nwant, grad);
}
