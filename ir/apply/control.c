/* Control flow that is known at compile time: If with a constant condition, Loop with a constant count, Scan over
 * an axis of known length.  Each is replaced by the nodes that it would run.  Other control flow is refused, because a
 * statically scheduled program cannot run it. */
#include "apply.h"

#include <string.h>

bool control_is(const Node *n)
{
	return (!*n->domain || !strcmp(n->domain, "ai.onnx")) &&
	       (!strcmp(n->op, "If") || !strcmp(n->op, "Loop") || !strcmp(n->op, "Scan"));
}

static Graph *branch(Node *n, const char *name)
{
	const Attr *a = node_attr(n, name);

	if (a && a->type == AT_GRAPH && a->u.g)
		return a->u.g;
	err_at(n->loc, "%s needs the graph attribute %s", n->op, name);
	return NULL;
}

static int refuse(Node *n, const char *what)
{
	err_at(n->loc, "%s is supported only where %s is known at compile time", n->op, what);
	return -1;
}

static int resolve_if(Graph *g, Node *n)
{
	const Tensor *cond = operand_const(n, 0);
	Graph *yes = branch(n, "then_branch"), *no = branch(n, "else_branch");

	if (!yes || !no)
		return -1;
	if (!cond || tensor_elements(cond) != 1)
		return refuse(n, "its condition");
	Graph *taken = tensor_int(cond, 0) ? yes : no;
	if (taken->nout != n->nout || taken->nin) {
		err_at(n->loc, "the branch of If gives %d results, not %d", taken->nout, n->nout);
		return -1;
	}
	identity_control(n, taken == yes);
	return inline_graph(g, n, taken, NULL, n->out);
}

/* Slices joined along a new axis. */
static int stack(Graph *g, Node *n, Value **slice, int64_t count, int64_t axis, bool backward, Value *out)
{
	Node *cat = node_new(g, name_of(""), name_of("Concat"), n->loc);
	Value *at = graph_const(g, tensor_ints(g->arena, &axis, 1), "axis");

	node_attr_add(cat, name_of("axis"), AT_INT)->u.i = axis;
	for (int64_t i = 0; i < count; i++) {
		Value *row = build(g, n->loc, "Unsqueeze", NULL, 1, NULL, 2, slice[backward ? count - 1 - i : i], at);

		if (!row)
			return -1;
		node_in(cat, row);
	}
	node_out(cat, out);
	return inline_append(g, cat);
}

static int pass_on(Graph *g, Node *n, Value *from, Value *to)
{
	return !to || build(g, n->loc, "Identity", NULL, 1, &to, 1, from) ? 0 : -1;
}

static int too_long(Node *n, int64_t steps, const Graph *body)
{
	if (steps * (body->nnode + 1) <= limits.unroll)
		return 0;
	fail_at(EXIT_LIMIT, n->loc, "%s would become %lld nodes, more than --max-unroll=%lld", n->op,
		(long long)(steps * body->nnode), (long long)limits.unroll);
	return -1;
}

/* body: (iteration, condition, carried...) => (condition, carried..., scanned...) */
static int resolve_loop(Graph *g, Node *n)
{
	Graph *body = branch(n, "body");
	const Tensor *m = operand_const(n, 0), *c = operand_const(n, 1);
	int ncarry = n->nin - 2;

	if (!body)
		return -1;
	if (ncarry < 0 || body->nin != ncarry + 2 || body->nout < ncarry + 1 || n->nout != body->nout - 1) {
		err_at(n->loc, "Loop and its body do not agree on the number of values: %d carried, body %d => %d",
			ncarry, body->nin, body->nout);
		return -1;
	}
	if ((n->in[0] && !m) || (n->in[1] && !c) || (!n->in[0] && !n->in[1]))
		return refuse(n, "its number of iterations");
	int64_t most = m && tensor_elements(m) == 1 ? tensor_int(m, 0) : limits.unroll;
	int nscan = body->nout - 1 - ncarry;
	Value **carry = arena_array(g->scratch, Value *, ncarry + 1),
	      **args = arena_array(g->scratch, Value *, body->nin);
	Value ***rows = arena_array(g->scratch, Value **, nscan + 1);
	bool go = !c || tensor_int(c, 0);
	int64_t i;
	for (int k = 0; k < ncarry; k++)
		carry[k] = n->in[2 + k];
	for (int k = 0; k < nscan; k++)
		rows[k] = NULL;
	for (i = 0; i < most && go; i++) {
		Value **outs = arena_array(g->scratch, Value *, body->nout);

		if (too_long(n, i + 1, body) < 0)
			return -1;
		Tensor *it = tensor_new(g->arena, DT_INT64, 0, NULL), *yes = tensor_new(g->arena, DT_BOOL, 0, NULL);
		tensor_set_int(it, 0, i);
		tensor_set_int(yes, 0, 1);
		args[0] = graph_const(g, it, "iteration");
		args[1] = graph_const(g, yes, "condition");
		for (int k = 0; k < ncarry; k++)
			args[2 + k] = carry[k];
		if (inline_graph(g, n, body, args, outs) < 0)
			return -1;
		if (!outs[0]->data)
			return refuse(n, "its condition");
		go = tensor_int(outs[0]->data, 0);
		for (int k = 0; k < ncarry; k++)
			carry[k] = outs[1 + k];
		for (int k = 0; k < nscan; k++) {
			int count = (int)i;

			arena_push(g->scratch, rows[k], count, outs[1 + ncarry + k]);
		}
	}
	identity_control(n, i);
	for (int k = 0; k < ncarry; k++)
		if (pass_on(g, n, carry[k], n->out[k]) < 0)
			return -1;
	for (int k = 0; k < nscan; k++) {
		if (!n->out[ncarry + k])
			continue;
		if (i == 0) {
			err_at(n->loc, "Loop never runs, so the shape of %s is not known", n->out[ncarry + k]->name);
			return -1;
		}
		if (stack(g, n, rows[k], i, 0, false, n->out[ncarry + k]) < 0)
			return -1;
	}
	return 0;
}

static int64_t nth(const Node *n, const char *name, int k)
{
	const Attr *a = node_attr(n, name);

	return a && a->type == AT_INTS && k < a->n ? a->u.is[k] : 0;
}

/* body: (state..., slice...) => (state..., slice...) */
static int resolve_scan(Graph *g, Node *n)
{
	Graph *body = branch(n, "body");
	const Attr *count = node_attr(n, "num_scan_inputs");
	int nx = count && count->type == AT_INT ? (int)count->u.i : -1, nstate = n->nin - nx,
	    ny = body ? body->nout - nstate : 0;
	int64_t length = -1;

	if (!body)
		return -1;
	if (nx < 1 || nstate < 0 || ny < 0 || body->nin != n->nin || n->nout != body->nout) {
		err_at(n->loc, "Scan and its body do not agree on the number of values");
		return -1;
	}
	int axis[64];
	for (int k = 0; k < nx && k < 64; k++) {
		const Type *t = operand_type(n, nstate + k);

		if (!t || t->ndim < 1 || op_axis(n, nth(n, "scan_input_axes", k), t->ndim, &axis[k]) < 0)
			return refuse(n, "the number of axes of what it scans");
		if (!dim_known(t->dim[axis[k]]) || (length >= 0 && length != t->dim[axis[k]]))
			return refuse(n, "the (common) length of what it scans");
		length = t->dim[axis[k]];
	}
	if (too_long(n, length, body) < 0)
		return -1;
	identity_control(n, length);
	Value **args = arena_array(g->scratch, Value *, body->nin), ***rows = arena_array(g->scratch, Value **, ny + 1);
	for (int k = 0; k < nstate; k++)
		args[k] = n->in[k];
	for (int64_t i = 0; i < length; i++) {
		Value **outs = arena_array(g->scratch, Value *, body->nout);

		for (int k = 0; k < nx; k++) {
			Tensor *at = tensor_new(g->arena, DT_INT64, 0, NULL);
			char attr[32];

			tensor_set_int(at, 0, nth(n, "scan_input_directions", k) ? length - 1 - i : i);
			snprintf(attr, sizeof attr, "axis=%d", axis[k]);
			args[nstate + k] = build(g, n->loc, "Gather", attr, 1, NULL, 2, n->in[nstate + k],
				graph_const(g, at, "step"));
			if (!args[nstate + k])
				return -1;
		}
		if (inline_graph(g, n, body, args, outs) < 0)
			return -1;
		for (int k = 0; k < nstate; k++)
			args[k] = outs[k];
		for (int k = 0; k < ny; k++) {
			int have = (int)i;

			arena_push(g->scratch, rows[k], have, outs[nstate + k]);
		}
	}
	for (int k = 0; k < nstate; k++)
		if (pass_on(g, n, args[k], n->out[k]) < 0)
			return -1;
	for (int k = 0; k < ny; k++) {
		if (!n->out[nstate + k])
			continue;
		if (length == 0) {
			err_at(n->loc, "Scan over an axis of length 0");
			return -1;
		}
		int64_t at = nth(n, "scan_output_axes", k);
		if (at < 0)
			at += rows[k][0]->type && rows[k][0]->type->ndim >= 0 ? rows[k][0]->type->ndim + 1 : 0;
		if (stack(g, n, rows[k], length, at, nth(n, "scan_output_directions", k) != 0, n->out[nstate + k]) < 0)
			return -1;
	}
	return 0;
}

int control_resolve(Graph *g, Node *n)
{
	if (!strcmp(n->op, "If"))
		return resolve_if(g, n);
	return !strcmp(n->op, "Loop") ? resolve_loop(g, n) : resolve_scan(g, n);
}
