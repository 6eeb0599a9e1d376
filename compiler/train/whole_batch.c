/* The graph of the whole batch, beside that of one micro-batch.
 *
 * A model is read with its batch axis bound to the samples of one micro-batch.  A number that a node takes from a shape
 * is then too small: a sum divided by Shape(x)[0] is divided by the size of the micro-batch, and Reshape(x, [6, -1])
 * makes 6 rows of each micro-batch where the whole batch has 6 in all.  Therefore the passes before train also run on a
 * copy whose batch axis is bound to all samples, and the two graphs are compared.  A value that is split along an axis
 * is M times as long in the copy; any other has the same shape; a constant that a node computes with takes its contents
 * from the copy.
 *
 * Values of the two graphs are matched by identity (ir/graph/identity.c), never by name.  Each pass runs on the copy,
 * then on the model.  Folding asks the other graph before it removes what is neutral, equal or a copy in one of them
 * only, so that both lose the same nodes.  When train begins, this holds for every value that is left in the model:
 *
 *   a result of a node    has a match.  The match may have lost its node, because the copy does not need it or knows
 *                         its contents; its type, which is what is compared, stays.  A cast may have no match; then the
 *                         value that it casts has one, of the same shape.
 *   a constant that a     has a match with known contents: a constant, or a value that depends on constants only and is
 *   node computes with    evaluated here (folding leaves large ones).
 *   another constant      has a match or no identity: folding writes shapes and axes anew, and they say nothing that
 *                         the types of results do not say.  Where these types are the same in both graphs, it is
 *                         treated like a constant that the node computes with: it may be the bounds of a Slice.
 *
 * Control flow goes the same way in both graphs, unless its results are constants.  Anything else is an error of the
 * model: it becomes different operators for the whole batch than for a micro-batch.  A value without identity is our
 * mistake.  Values that train makes have no identity: they follow from values that were compared. */
#include "train/train.h"

#include <string.h>

/* The symbol of the batch axis, and its length; NULL: the axis has no symbol. */
static Name batch_symbol(const Graph *g, int64_t *rows)
{
	for (int i = 0; i < g->nin; i++) {
		const Type *t = g->in[i]->type;
		const char *s = t && t->kind == TY_TENSOR && t->ndim > 0 && dim_symbolic(t->dim[0]) &&
			!dim_symbolic(dim_bound(t->dim[0])) ? dim_text(t->dim[0]) : NULL;
		if (s && !strpbrk(s, "*+-/() ")) {
			*rows = dim_bound(t->dim[0]);
			return name_of(s);
		}
	}
	return NULL;
}

Model *whole_batch_model(Model *m)
{
	int64_t microbatches = annot_find(m->annot, "train") && !opt.infer ? microbatch_count(m) : 1, rows, samples;
	m->microbatches = microbatches;
	Name symbol = microbatches > 1 && !options_done(m, "inline") ? batch_symbol(m->graph, &rows) : NULL;
	if (!symbol)
		return NULL;
	if (__builtin_mul_overflow(rows, microbatches, &samples)) {
		fail_at(EXIT_LIMIT, m->graph->loc,
			"the whole batch, %lld micro-batches of %s = %lld samples, does not fit in 64 bits",
			(long long)microbatch_count(m), symbol,
		        (long long)rows);
		return NULL;
	}
	Model *w = model_copy(m);
	w->function = m->function;
	w->nfunction = m->nfunction;
	w->annot = annot_copy(&w->arena, m->annot);
	m->whole = w;
	w->microbatches = 0;
	m->batch = symbol;
	m->rows = rows;
	w->of = m;
	identity_start(m);
	identity_start(w);
	return w;
}

void whole_batch_bind(const Model *m, bool all)
{
	dim_bind(m->batch, all ? m->rows * microbatch_count(m) : m->rows);
}

/* Does the node compute with the contents of this operand, rather than take a shape or bounds from it? */
static bool computes(const Node *n, int i)
{
	return kernel_reads(n, i) || (n->row->expr && kernel_literal(n->in[i]));
}

static bool constant(const Graph *g, const Value *v)
{
	return v && v->data && !v->param && v->graph == g;
}

void whole_batch_check(const Graph *g)
{
	for (int i = 0; i < g->nnode && g->model->identity; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && !n->out[k]->identity)
				die("%s, made for a %s, has no identity", n->out[k]->name, n->op);
		for (int k = 0; k < n->nin && n->row; k++)
			if (constant(g, n->in[k]) && !n->in[k]->identity && computes(n, k))
				die("the constant %s of a %s has no identity", n->in[k]->name, n->op);
	}
}

/* ---- questions to the other graph ---- */

/* Was the value made before train, so that it must have a match? */
static bool compared(const Graph *g, const Value *v)
{
	return (g->model->whole || g->model->of) && v->identity && v->graph == g && v->type &&
		v->type->kind == TY_TENSOR;
}

/* The same value in the other graph; NULL: none. */
static const Value *same(const Graph *g, const Value *v)
{
	const Value *o = compared(g, v) ? identity_find(g->model->whole ? g->model->whole : g->model->of, v) : NULL;
	return o && o->type && o->type->kind == TY_TENSOR ? o : NULL;
}

/* As same; of a cast that the other graph does not have, what is cast. */
static const Value *other(const Graph *g, const Value *v)
{
	const Value *o = NULL;
	for (; v && compared(g, v) && !o; v = identity_like(v))
		o = same(g, v);
	return o;
}

enum { EVAL_DEPTH = 24, EVAL_MAX = 1 << 24 };

/* What a value that depends on constants only holds; NULL: it depends on more, or is too large. */
static const Tensor *contents(const Value *v, int depth)
{
	Tensor *in[8] = { 0 }, *out[1] = { 0 };
	Node *n = v->def;
	if (v->data || v->param)
		return v->param ? NULL : v->data;
	if (!n || depth == EVAL_DEPTH || n->nout != 1 || n->nin > 8 || !n->row || n->row->random || n->row->moves ||
		type_elements(v->type) < 0 || type_elements(v->type) > EVAL_MAX)
		return NULL;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !(in[i] = (Tensor *)contents(n->in[i], depth + 1)))
			return NULL;
	return eval_node(n, in, out, v->graph->arena, false) ? NULL : out[0];
}

int whole_batch_axis(const Graph *g, const Value *v, int64_t microbatches)
{
	const Value *o = other(g, v);
	int axis = WHOLE_SAME;
	if (!o)
		return compared(g, v) ? WHOLE_MISSING : WHOLE_UNKNOWN;
	if (o->type->ndim != v->type->ndim)
		return WHOLE_OTHER;
	for (int a = 0; a < v->type->ndim; a++)
		if (o->type->dim[a] != v->type->dim[a])
			axis = axis == WHOLE_SAME &&
				o->type->dim[a] == v->type->dim[a] * microbatches ? a : WHOLE_OTHER;
	return axis;
}

const char *whole_batch_text(const Graph *g, const Value *v)
{
	return type_text(other(g, v)->type);
}

/* Runs before folding, which turns a tensor without elements into a constant. */
int whole_batch_empty(const Graph *g)
{
	int bad = 0;
	for (int i = 0; i < g->nvalue && g->model->whole; i++) {
		const Value *v = g->value[i], *o = v->def && v->type && v->type->kind == TY_TENSOR &&
			type_elements(v->type) == 0 ? same(g, v) : NULL;
		if (!o || type_elements(o->type) == 0)
			continue;
		err_at(v->def->loc, "%s is empty in each of %lld micro-batches, but %s in the whole batch", v->name,
			(long long)microbatch_count(g->model), type_text(o->type));
		bad = -1;
	}
	return bad;
}

static bool all_constant(const Node *n)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !n->out[i]->data)
			return false;
	return true;
}

/* Nodes inside control flow that takes another branch are not compared: the branch itself was reported, or its results
 * are constants. */
int whole_batch_controls(const Graph *g)
{
	int bad = 0;
	for (const Control *w = g->model->whole ? identity_controls(g->model) : NULL; w; w = w->next) {
		const Control *o = identity_find_control(g->model->whole, w);
		if (!o || o->taken == w->taken || (all_constant(w->n) && all_constant(o->n)))
			continue;
		err_at(w->n->loc,
			"%s goes a different way for the whole batch (%lld) than for its %lld micro-batches (%lld)",
			w->n->op, (long long)o->taken, (long long)microbatch_count(g->model), (long long)w->taken);
		bad = -1;
	}
	return bad;
}

bool whole_batch_differ(const Graph *g, const Value *a, const Value *b)
{
	const Value *x = other(g, a), *y = other(g, b);
	return x && y && !type_equal(x->type, y->type);
}

const Tensor *whole_batch_data(const Graph *g, const Value *v)
{
	if (!v->data || !compared(g, v))
		return v->data;
	const Value *o = other(g, v);
	return o ? contents(o, 0) : NULL;
}

/* A pass runs on the copy first, where a new constant has no match yet. */
bool whole_batch_differs(const Graph *g, const Value *v)
{
	if (!constant(g, v) || !compared(g, v))
		return false;
	const Value *o = same(g, v), *like = o ? NULL : identity_like(v);
	if (like)
		return whole_batch_differs(g, like);
	return o ? !o->data || (o->data != v->data && !tensor_equal(o->data, v->data)) : !g->model->of;
}

/* Reports a constant whose contents in the whole batch are not known. */
static int unknown(const Graph *g, const Node *n, const Value *v)
{
	err_at(n->loc,
		"%s computes with %s, which is known for each of %lld micro-batches, but not for the whole batch",
		n->op, v->name, (long long)microbatch_count(g->model));
	return -1;
}

/* Have all operands and results of a node the same types in the whole batch?  Then its bounds (of a Slice, of a Pad)
 * are numbers like others; else they follow from the types. */
static bool steady(const Graph *g, const Node *n)
{
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		int axis = v ? whole_batch_axis(g, v, 1) : WHOLE_SAME;
		if (axis != WHOLE_SAME && axis != WHOLE_UNKNOWN)
			return false;
	}
	return true;
}

int whole_batch_constants(Graph *g)
{
	for (int i = 0; i < g->nnode && g->model->whole; i++) {
		Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k];
			if (!constant(g, v) || !whole_batch_differs(g, v) || (!computes(n, k) && !steady(g, n)))
				continue;
			const Value *o = same(g, v);
			if (o && !type_equal(o->type, v->type))
				continue;               /* a slice of it, or the comparison of types refuses it */
			const Tensor *t = o ? contents(o, 0) : NULL;
			if (!t)
				return unknown(g, n, v);
			if (!tensor_equal(t, v->data))
				n->in[k] = graph_const(g, (Tensor *)t, name_fmt("%s.whole", v->name));
		}
	}
	return 0;
}
