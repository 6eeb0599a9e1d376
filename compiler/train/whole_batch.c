/* The graph of the whole batch, beside that of one micro-batch.
 *
 * A model is read with its batch axis bound to the samples of one micro-batch.  A number that a node takes from a shape is then too small: a
 * sum divided by Shape(x)[0] is divided by the size of the micro-batch, and Reshape(x, [6, -1]) makes 6 rows of each micro-batch where the
 * whole batch has 6 in all.  Therefore the passes before train also run on a copy whose batch axis is bound to all samples, and the two
 * graphs are compared.  A value that is split along an axis is M times as long in the copy; any other has the same shape; a constant that a
 * node computes with takes its contents from the copy.
 *
 * Values of the two graphs are matched by name, operator and place in the source.  A value that only one of them has (folding differs, or
 * train made it later) is not compared. */
#include "train/train.h"

#include <string.h>

/* The symbol of the batch axis, and its length; NULL: the axis has no symbol. */
static Name batch_symbol(const Graph *g, int64_t *rows)
{
	for (int i = 0; i < g->nin; i++) {
		const Type *t = g->in[i]->type;
		const char *s = t && t->kind == TY_TENSOR && t->rank > 0 && dim_symbolic(t->dim[0]) && !dim_symbolic(dim_bound(t->dim[0])) ? dim_text(t->dim[0]) : NULL;
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
	Name symbol = microbatches > 1 && !options_done(m, "inline") ? batch_symbol(m->graph, &rows) : NULL;
	if (!symbol)
		return NULL;
	if (__builtin_mul_overflow(rows, microbatches, &samples)) {
		fail_at(EXIT_LIMIT, m->graph->loc, "the whole batch, %lld micro-batches of %s = %lld samples, does not fit in 64 bits", (long long)microbatch_count(m), symbol,
		        (long long)rows);
		return NULL;
	}
	Model *w = model_copy(m);
	w->function = m->function;
	w->nfunction = m->nfunction;
	w->annot = annot_copy(&w->arena, m->annot);
	m->whole = w;
	w->of = m;
	return w;
}

bool whole_batch_is(const Model *m)
{
	return m->of != NULL;
}

void whole_batch_bind(const Model *m, bool all)
{
	int64_t rows;
	Name symbol = batch_symbol(m->graph, &rows);
	dim_bind(symbol, all ? rows * microbatch_count(m) : rows / microbatch_count(m));
}

/* ---- questions to the copy ---- */

/* The same value in the copy; NULL: it has none, or a different node makes it. */
static const Value *other(const Graph *g, const Value *v)
{
	const Model *w = g->model->whole;
	const Value *o = w && v->type && v->type->kind == TY_TENSOR ? graph_find(w->graph, v->name) : NULL;
	if (!o || !o->type || o->type->kind != TY_TENSOR || o->type->rank != v->type->rank || !o->def != !v->def || !o->data != !v->data)
		return NULL;
	return o->def && (strcmp(o->def->op, v->def->op) || memcmp(&o->def->loc, &v->def->loc, sizeof(Loc))) ? NULL : o;
}

int whole_batch_axis(const Graph *g, const Value *v, int64_t microbatches)
{
	const Value *o = other(g, v);
	int axis = WHOLE_SAME;
	for (int a = 0; o && a < v->type->rank; a++)
		if (o->type->dim[a] != v->type->dim[a])
			axis = axis == WHOLE_SAME && o->type->dim[a] == v->type->dim[a] * microbatches ? a : WHOLE_OTHER;
	return o ? axis : WHOLE_UNKNOWN;
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
		const Value *v = g->value[i], *o = v->def && v->type && v->type->kind == TY_TENSOR && type_elements(v->type) == 0 ? graph_find(g->model->whole->graph, v->name) : NULL;
		if (!o || !o->type || o->type->kind != TY_TENSOR || type_elements(o->type) == 0)
			continue;
		err_at(v->def->loc, "%s is empty in each of %lld micro-batches, but %s in the whole batch", v->name, (long long)microbatch_count(g->model), type_text(o->type));
		bad = -1;
	}
	return bad;
}

/* Does the node compute with the contents of this operand, rather than take a shape or bounds from it? */
static bool computes(const Node *n, int i)
{
	return kernel_reads(n, i) || (n->row->expr && kernel_literal(n->in[i]));
}

bool whole_batch_differ(const Graph *g, const Value *a, const Value *b)
{
	const Value *x = other(g, a), *y = other(g, b);
	return x && y && !type_equal(x->type, y->type);
}

const Tensor *whole_batch_data(const Graph *g, const Value *v)
{
	const Value *o = v->data ? other(g, v) : NULL;
	return o ? o->data : v->data;
}

bool whole_batch_differs(const Graph *g, const Value *v)
{
	const Value *o = v->data && !v->param && v->graph == g ? other(g, v) : NULL;
	return o && o->data != v->data && !tensor_equal(o->data, v->data);
}

void whole_batch_constants(Graph *g)
{
	for (int i = 0; i < g->nnode && g->model->whole; i++) {
		Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k], *o = v && whole_batch_differs(g, v) ? other(g, v) : NULL;
			if (o && type_equal(o->type, v->type) && computes(n, k))
				n->in[k] = graph_const(g, o->data, name_fmt("%s.whole", v->name));
		}
	}
}
