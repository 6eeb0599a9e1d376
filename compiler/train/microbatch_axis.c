/* How the values of a step lie along the axis of micro-batches (see microbatch.c): S, P or B.  Factor rules give
 * it from operands to results, node by node.  A node that no rule covers needs the whole batch at once and is
 * refused. */
#include "microbatch.h"

#include <string.h>

enum { ASK_MAX = 256, ASK_DEPTH = 8 };

Along microbatch_axis_of(const Micro *m, const Value *v)
{
	return v->graph == m->g && v->id < m->nalong ? m->along[v->id] : (Along){ 0 };
}

static int refuse(const Micro *m, const Node *n)
{
	if (m->quiet)
		return -1;
	err_at(n->loc, "%s needs all of the batch at once, but it comes in %lld micro-batches", n->op,
		(long long)m->microbatches);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && microbatch_axis_of(m, n->in[i]).kind == ALONG_S)
			note_at(operand_loc(n, i), "%s is a slice of the batch", n->in[i]->name);
	if (strstr(n->op, "BatchNorm") || annot_find(n->annot, "batchnorm"))
		note_at(n->loc, "statistics of a batch depend on its size: remove microbatch, freeze them, or "
			"take those of parts (@local_stats)");
	return -1;
}

/* Are all slices of a constant along an axis the same? */
static bool slices_equal(const Tensor *t, int axis)
{
	int64_t outer = 1, inner = 1, len = t->dim[axis];
	for (int a = 0; a < t->ndim; a++)
		*(a < axis ? &outer : &inner) *= a == axis ? 1 : t->dim[a];
	for (int64_t o = 0; o < outer; o++)
		for (int64_t k = 1; k < len; k++)
			for (int64_t i = 0; i < inner; i++)
				if (tensor_get(t, (o * len + k) * inner + i) != tensor_get(t, o * len * inner + i))
					return false;
	return true;
}

/* Each micro-batch runs the kernel as if it were the whole batch.  So a factor cannot be split if the kernel normalises
 * over it, counts along it or divides by its length.  Random nodes can: they get the number of the micro-batch as an
 * operand. */
static bool alone(const Node *n, const FactorRule *r, int f)
{
	return f < 64 && (r->defined | r->counted | (n->row->random ? 0 : r->runs)) >> f & 1;
}

/* The axis that has factor f: -1 none, -2 several. */
static int axis_of(const int *row, int ndim, int f)
{
	int axis = -1;
	for (int a = 0; row && a < ndim; a++)
		if (row[a] == f)
			axis = axis == -1 ? a : -2;
	return axis;
}

/* Can v, the same in every micro-batch, be used as a slice along an axis?  Only if all its slices along that axis are
 * equal: start values of a recurrence, tables that were expanded to the batch, and what is computed from these
 * alone. */
static bool serves(Micro *m, const Value *v, int axis, int depth)
{
	const Tensor *t = whole_batch_data(m->g, v);
	if (v->type->dim[axis] == 1 && (!t || t->dim[axis] == 1) && whole_batch_axis(m->g, v, m->microbatches) != axis)
		return true;
	if (t && !v->param)
		return t->ndim == v->type->ndim && t->dtype != DT_STRING && !extdata_load((Tensor *)t) &&
			slices_equal(t, axis);
	Node *n = v->def;
	if (!n || depth == 0 || ++m->asked > ASK_MAX)
		return false;
	if (node_is(n, "Expand") || node_is(n, "sbpcc.LikeShape")) {
		const Type *x = n->in[0]->type;
		int from = axis - (v->type->ndim - x->ndim);
		return from < 0 || x->dim[from] == 1;
	}
	if (node_is(n, "sbpcc.ZerosLike") || node_is(n, "sbpcc.OnesLike") || node_is(n, "ConstantOfShape"))
		return true;
	const FactorRule *r = n->nin <= 8 ? factor_rule(n, m->g->scratch) : NULL;
	int f = r && r->out[v->defidx] ? r->out[v->defidx][axis] : -1;
	if (f >= 0 && alone(n, r, f))
		return false;
	for (int i = 0; f >= 0 && i < n->nin; i++) {
		int at = n->in[i] ? axis_of(r->in[i], n->in[i]->type->ndim, f) : -1;
		if (at == -2 || (at >= 0 && !serves(m, n->in[i], at, depth - 1)))
			return false;
	}
	return f >= 0;
}

/* Such an operand may differ between micro-batches: its shape does not. */
bool microbatch_axis_shape_only(const Node *n, int operand)
{
	return !kernel_reads(n, operand) && !kernel_literal(n->in[operand]);
}

/* Can the node be split along factor f?  The rule may not mention an operand that gives only its shape, or an axis of
 * length 1, which looks broadcast when a micro-batch is one sample; then the rule must mention another operand that is
 * S. */
static bool split(Micro *m, Node *n, const FactorRule *r, int f)
{
	bool spoken = false;
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		Along t = microbatch_axis_of(m, n->in[i]);
		int axis = axis_of(r->in[i], n->in[i]->type->ndim, f);
		bool silent = t.kind == ALONG_S && axis == -1 && (microbatch_axis_shape_only(n, i) ||
			(n->in[i]->type->dim[t.axis] == 1 && m->rows == 1 && r->in[i][t.axis] == -1));
		if (axis == -2 || (t.kind == ALONG_S && t.axis != axis && !silent))
			return false;
		spoken |= t.kind == ALONG_S && t.axis == axis;
		if (t.kind == ALONG_B && axis >= 0 && !microbatch_axis_shape_only(n, i) &&
			!serves(m, n->in[i], axis, ASK_DEPTH))
			return false;
	}
	for (int i = 0; i < n->nout; i++) {
		int axis = n->out[i] ? axis_of(r->out[i], n->out[i]->type->ndim, f) : -1;
		if (!spoken || axis == -2 || (axis == -1 && n->out[i] && r->red != RED_SUM))
			return false;
	}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			int axis = axis_of(r->out[i], n->out[i]->type->ndim, f);
			m->along[n->out[i]->id] = axis >= 0 ? (Along){ ALONG_S, axis } : (Along){ ALONG_P, 0 };
		}
	return true;
}

/* A Reshape keeps the number of elements before the batch axis, which becomes an axis of the result or the leading
 * factor of one.  Factors cannot express this for [batch, length, width] -> [batch * length, width].  Where axes of
 * length 1 leave several candidates, the whole batch decides; if the result has no match there, the first candidate
 * that can hold the batch is taken. */
static bool reshaped(Micro *m, Node *n)
{
	Along t = microbatch_axis_of(m, n->in[0]);
	const Type *x = n->in[0]->type, *y = n->out[0]->type;
	if ((!node_is(n, "Reshape") && !node_is(n, "Flatten")) || t.kind != ALONG_S || y->ndim < 1)
		return false;
	if (annot_find(n->annot, "local_stats") && t.axis == 0) {       /* samples -> parts, samples of each; or back */
		m->along[n->out[0]->id] = t;
		return true;
	}
	int64_t before = 1, lead = 1;
	for (int a = 0; a < t.axis; a++)
		before *= x->dim[a];
	int want = whole_batch_axis(m->g, n->out[0], m->microbatches);
	for (int axis = 0; axis < y->ndim; lead *= y->dim[axis++]) {
		bool here = want >= 0 ? axis == want : m->rows == 1 || y->dim[axis] > 1;
		if (lead != before || y->dim[axis] % m->rows || !here)
			continue;
		m->along[n->out[0]->id] = (Along){ ALONG_S, axis };
		return true;
	}
	return false;
}

/* The result of a ReduceTo has the shape of its second operand.  If that is not longer in the whole batch, the batch
 * axis is summed.  Shapes do not say so when a micro-batch is one sample. */
static bool reduced(Micro *m, Node *n)
{
	if (!node_is(n, "sbpcc.ReduceTo") || microbatch_axis_of(m, n->in[0]).kind != ALONG_S ||
		microbatch_axis_of(m, n->in[1]).kind != ALONG_B ||
		whole_batch_axis(m->g, n->in[1], m->microbatches) >= 0)
		return false;
	m->along[n->out[0]->id] = (Along){ ALONG_P, 0 };
	return true;
}

int microbatch_axis_along(Micro *m, Node *n)
{
	if (reshaped(m, n) || reduced(m, n))
		return 0;
	FactorRule *r = factor_rule(n, m->g->scratch);
	/* the second operand has the shape of the result */
	if (r && (node_is(n, "sbpcc.LikeShape") || node_is(n, "sbpcc.ReduceTo")))
		r->in[1] = r->out[0];
	for (int f = 0; r && f < r->nfactor; f++)
		if (!alone(n, r, f) && split(m, n, r, f))
			return 0;
	return refuse(m, n);
}

/* Is the node linear in all its P operands together, as a sum is? */
static bool sums(const Micro *m, Node *n)
{
	int *group = arena_array(m->g->scratch, int, n->nin + 1), k = 0, members = 0;
	factor_linear(n, group);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && microbatch_axis_of(m, n->in[i]).kind == ALONG_P)
			k = group[i];
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		bool p = microbatch_axis_of(m, n->in[i]).kind == ALONG_P;
		if (p != (group[i] == k) || !k)
			return false;
		members += p;
	}
	return members > 1;
}

/* A scalar P multiplied by a constant stays P: a loss divided by its count need not wait for the end of the body.  An
 * added constant is not allowed, because every micro-batch would add it. */
static bool scales(const Micro *m, Node *n)
{
	int *group = arena_array(m->g->scratch, int, n->nin + 1), p = 0, k = 0;
	factor_linear(n, group);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && microbatch_axis_of(m, n->in[i]).kind == ALONG_P)
			k = group[i];
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && microbatch_axis_of(m, n->in[i]).kind != ALONG_P && group[i] == k)
			return false;
	for (int i = 0; i < n->nin; i++) {
		const Value *v = n->in[i];
		if (!v || (v->data && !v->param))
			continue;
		p++;
		if (microbatch_axis_of(m, v).kind != ALONG_P || !group[i])
			return false;
	}
	return p == 1 && n->nout == 1 && n->out[0] && type_elements(n->out[0]->type) == 1;
}

/* A term of half precision is cast to float before it is added: sums are float. */
static bool widens(const Node *n)
{
	return (node_is(n, "Cast") || node_is(n, "CastLike")) && dtype_is_float(n->in[0]->type->elem) &&
		dtype_bits(n->in[0]->type->elem) < 32 &&
	       dtype_bits(n->out[0]->type->elem) >= 32;
}

void microbatch_axis_results(Micro *m, const Node *n, AlongKind kind)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			m->along[n->out[i]->id] = (Along){ kind, 0 };
}

int microbatch_axis_find(Micro *m, Node *n)
{
	bool has[4] = { false };
	m->asked = 0;
	if (node_is(n, "Shape") || node_is(n, "Size")) {
		microbatch_axis_results(m, n, ALONG_B);
		return 0;
	}
	for (int i = 0; i < n->nin; i++)
		if (n->in[i]) {
			AlongKind k = microbatch_axis_of(m, n->in[i]).kind;
			has[k == ALONG_S || !microbatch_axis_shape_only(n, i) ? k : ALONG_B] = true;
		}
	if (has[ALONG_S] && (has[ALONG_P] || has[ALONG_AFTER]))
		return refuse(m, n);
	if (has[ALONG_S])
		return microbatch_axis_along(m, n);
	if (has[ALONG_P] && !has[ALONG_AFTER] && !microbatch_updates(n) && (sums(m, n) || scales(m, n) || widens(n)))
		microbatch_axis_results(m, n, ALONG_P);
	else
		microbatch_axis_results(m, n, has[ALONG_P] || has[ALONG_AFTER] ? ALONG_AFTER : ALONG_B);
	return 0;
}

void microbatch_axis_sources(Micro *m)
{
	const Graph *g = m->g;
	m->rows = microbatch_rows(g);
	for (int i = 0; i < g->nin; i++) {
		const Type *t = g->in[i]->type;
		if (!g->in[i]->init && t && t->ndim > 0 && t->dim[0] == m->rows)
			m->along[g->in[i]->id] = (Along){ ALONG_S, 0 };
	}
}

void microbatch_axis_room(Micro *m)
{
	Along *old = m->along;
	int n = m->nalong;
	m->nalong = m->g->nvalue;
	if (m->nalong < m->room)
		return;
	m->room = 2 * m->nalong + 1;             /* called after every node, so it grows by doubling */
	m->along = arena_array(m->g->scratch, Along, m->room);
	if (n)
		memcpy(m->along, old, sizeof *old * (size_t)n);
}

/* Does the axis along which a value is longer in the whole batch agree with how it lies along the micro-batches?
 * longer: an operand that every micro-batch has in full is longer there. */
static bool agrees(Along t, int axis, bool longer)
{
	if (t.kind == ALONG_S)
		return axis == t.axis;
	if (axis == WHOLE_SAME)
		return t.kind != ALONG_B || !longer;
	return t.kind == ALONG_B && axis >= 0;
}

/* Compares the results of a node with those in the whole batch: a value that is S must be longer there along its axis.
 * A value that is B may be longer there, if it was expanded to the batch; then all results computed from it must be
 * longer too. */
int microbatch_axis_compare(const Micro *m, const Node *n)
{
	const Graph *g = m->g;
	const Value *longer = NULL;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && n->in[i]->graph == g && microbatch_axis_of(m, n->in[i]).kind == ALONG_B &&
			!microbatch_axis_shape_only(n, i) && whole_batch_axis(g, n->in[i], m->microbatches) >= 0)
			longer = n->in[i];
	for (int i = 0; i < n->nout; i++) {
		const Value *v = n->out[i];
		int axis = v ? whole_batch_axis(g, v, m->microbatches) : WHOLE_UNKNOWN;
		if (axis == WHOLE_UNKNOWN)
			continue;
		if (axis == WHOLE_MISSING) {
			err_at(n->loc, "%s is computed by different operators for the whole batch than for its %lld "
				"micro-batches", v->name, (long long)m->microbatches);
			return -1;
		}
		Along t = microbatch_axis_of(m, v);
		if (agrees(t, axis, longer != NULL))
			continue;
		err_at(n->loc, "%s does something else to the whole batch than to its %lld micro-batches", n->op,
			(long long)m->microbatches);
		v = axis == WHOLE_SAME && longer ? longer : v;
		note_at(v->loc.file ? v->loc : n->loc, "%s is %s for the whole batch, and %s for each micro-batch",
			v->name, whole_batch_text(g, v), type_text(v->type));
		return -1;
	}
	return 0;
}
