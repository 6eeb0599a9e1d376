/* Operators that carry a state from one call to the next: a cache that is written into, a causal convolution that
 * remembers the end of its operand, and attention whose memory is one matrix per head, written token by token.  The
 * recurrence of the last is unrolled. */
#include "ops.h"

#include <math.h>
#include <string.h>

#define op2(n, op, a, b) expand_op(n, op, NULL, a, b)

static Value *one_int(Node *n, int64_t v)
{
	return expand_ints(n, &v, 1);
}

static bool given(const Node *n, int i)
{
	return i < n->nin && n->in[i];
}

/* ---- TensorScatter: writes into a cache along one axis, from a position that each sample gives ---- */

static int expand_tensor_scatter(Node *n)
{
	static const char *const modes[] = { "linear", "circular", NULL };
	Type *x = operand_type(n, 0), *u = operand_type(n, 1);
	int64_t axes[NDIM_MAX];
	int axis, k = 0;

	if (!x || x->ndim < 2 || !u || u->ndim != x->ndim) {
		err_at(n->loc,
			"TensorScatter needs a cache and an update with the same known number of axes, not %s and %s",
			type_text(x), type_text(u));
		return -1;
	}
	if (!expand_oneof(n, "mode", modes) || op_axis(n, attr_int(n, "axis"), x->ndim, &axis))
		return -1;
	if (axis == 0) {
		err_at(n->loc, "TensorScatter cannot write along axis 0, the samples");
		return -1;
	}
	char *which = expand_attr(n, "start=%d, end=%d", axis, axis + 1);
	Value *len = op2(n, "Reshape", expand_op(n, "Shape", which, n->in[1]), expand_ints(n, NULL, 0));
	Value *at = expand_op(n, "Range", NULL, expand_num(n, DT_INT64, 0), len, expand_num(n, DT_INT64, 1));
	if (given(n, 2))
		at = op2(n, "Add", op2(n, "Unsqueeze", n->in[2], one_int(n, 1)), at);
	else
		at = op2(n, "Unsqueeze", at, one_int(n, 0));
	if (!strcmp(attr_str(n, "mode"), "circular"))
		at = op2(n, "Mod", at, expand_op(n, "Shape", which, n->in[0]));
	for (int i = 1; i < x->ndim; i++)
		if (i != axis)
			axes[k++] = i;
	if (k)
		at = op2(n, "Unsqueeze", at, expand_ints(n, axes, k));
	at = op2(n, "Expand", at, expand_op(n, "Shape", NULL, n->in[1]));
	return expand_result(n, 0,
		expand_op(n, "ScatterElements", expand_attr(n, "axis=%d", axis), n->in[0], at, n->in[1]));
}

/* ---- CausalConvWithState ---- */

static int expand_causal_conv(Node *n)
{
	static const char *const kinds[] = { "none", "silu", "swish", NULL };
	Type *x = operand_type(n, 0), *w = operand_type(n, 1);

	if (!expand_oneof(n, "activation", kinds))
		return -1;
	if (!x || x->ndim != 3 || !w || w->ndim != 3 || !dim_known(w->dim[2]) || w->dim[2] < 1 ||
		!dim_known(w->dim[0]) || dim_differ(x->dim[1], w->dim[0]) || dim_differ(w->dim[1], 1)) {
		err_at(n->loc,
			"CausalConvWithState needs x [batch, channels, length] and w [channels, 1, k], not "
		        "%s and %s",
			type_text(x), type_text(w));
		return -1;
	}
	int64_t k = w->dim[2], pads[2] = { k - 1, 0 };
	Value *all;
	if (given(n, 3))
		all = expand_op(n, "Concat", "axis=2", n->in[3], n->in[0]);
	else
		all = expand_op(n, "Pad", NULL, n->in[0], expand_ints(n, pads, 2), expand_num(n, x->elem, 0),
			one_int(n, 2));
	char *group = expand_attr(n, "group=%lld", (long long)w->dim[0]);
	Value *y = given(n, 2) ? expand_op(n, "Conv", group, all, n->in[1], n->in[2])
	                       : expand_op(n, "Conv", group, all, n->in[1]);
	if (strcmp(attr_str(n, "activation"), "none"))
		y = op2(n, "Mul", y, expand_op(n, "Sigmoid", NULL, y));
	if (expand_result(n, 0, y))
		return -1;
	if (n->nout < 2 || !n->out[1])
		return 0;
	Value *end = expand_op(n, "Shape", "start=2, end=3", all),
	      *from = op2(n, "Sub", end, one_int(n, k - 1));
	return expand_result(n, 1, expand_op(n, "Slice", NULL, all, from, end, one_int(n, 2)));
}

/* ---- LinearAttention ---- */

typedef struct Linear {
	Node *n;
	int64_t tokens, heads, group, dk, dv; /* heads of keys and values; queries per head; widths */
	DType type, work;
	bool gated, delta;
	Value *q, *k, *kt, *v, *decay, *beta; /* [B, T, heads, ...] */
} Linear;

/* Operand i as [B, T, dims...], in the type we compute in. */
static Value *unpack(Linear *a, int i, const int64_t *dim, int count)
{
	int64_t shape[NDIM_MAX] = { 0, 0 };
	Value *v = operand_dtype(a->n, i) == a->work ? a->n->in[i] : expand_cast(a->n, a->n->in[i], a->work);

	memcpy(shape + 2, dim, sizeof *dim * (size_t)count);
	return op2(a->n, "Reshape", v, expand_ints(a->n, shape, count + 2));
}

static int read_linear(Linear *a)
{
	static const char *const rules[] = { "linear", "gated", "delta", "gated_delta", NULL };
	Node *n = a->n;
	Name rule = attr_str(n, "update_rule");
	int64_t qd[NDIM_MAX], vd[NDIM_MAX], heads = attr_int(n, "q_num_heads");

	a->heads = attr_int(n, "kv_num_heads");
	a->gated = !strncmp(rule, "gated", 5);
	a->delta = strstr(rule, "delta") != NULL;
	if (!expand_oneof(n, "update_rule", rules) || expand_shape(n, 0, qd) < 0 ||
		expand_shape(n, 2, vd) < 0)
		return -1;
	if (operand_ndim(n, 0) != 3 || operand_ndim(n, 1) != 3 || operand_ndim(n, 2) != 3 || a->heads < 1 ||
		heads < 1 || heads % a->heads || qd[2] % heads || vd[2] % a->heads || a->gated != given(n, 4) ||
		a->delta != given(n, 5)) {
		err_at(n->loc,
			"LinearAttention \"%s\" of query %s and value %s with %lld and %lld heads: operands "
		        "do not fit",
			rule, type_text(operand_type(n, 0)), type_text(operand_type(n, 2)), (long long)heads,
			(long long)a->heads);
		return -1;
	}
	a->tokens = qd[1];
	a->group = heads / a->heads;
	a->dk = qd[2] / heads;
	a->dv = vd[2] / a->heads;
	a->type = operand_dtype(n, 0);
	a->work = a->type == DT_DOUBLE ? a->type : DT_FLOAT;
	if (a->tokens * 16 > limits.unroll) {
		fail_at(EXIT_LIMIT, n->loc,
			"LinearAttention over %lld tokens becomes more nodes than --max-unroll",
			(long long)a->tokens);
		return -1;
	}
	return 0;
}

/* Token t of v. */
static Value *token(Linear *a, Value *v, int64_t t)
{
	return expand_op(a->n, "Gather", "axis=1", v, expand_num(a->n, DT_INT64, (double)t));
}

/* The memory after token t: decayed, then updated at the key by the value (replaced or added). */
static Value *remember(Linear *a, Value *state, int64_t t)
{
	Node *n = a->n;
	Value *value = token(a, a->v, t);

	if (a->gated)
		state = op2(n, "Mul", state, expand_op(n, "Exp", NULL, token(a, a->decay, t)));
	if (a->delta) {
		Value *found = op2(n, "MatMul", token(a, a->kt, t), state);

		value = op2(n, "Mul", token(a, a->beta, t), op2(n, "Sub", value, found));
	}
	return op2(n, "Add", state, op2(n, "Mul", token(a, a->k, t), value));
}

static int expand_linear_attention(Node *n)
{
	Linear a = { .n = n };

	if (read_linear(&a))
		return -1;
	int64_t h = a.heads, qs[3] = { h, a.group, a.dk }, ks[3] = { h, a.dk, 1 }, kts[3] = { h, 1, a.dk },
		vs[3] = { h, 1, a.dv };
	int64_t ds[3] = { h, -1, 1 }, bs[3] = { -1, 1, 1 }, ss[3] = { h, a.dk, a.dv },
		token_shape[3] = { 0, 1, h * a.group * a.dv };
	double scale = attr_float(n, "scale") != 0 ? attr_float(n, "scale") : 1 / sqrt((double)a.dk);
	a.q = op2(n, "Mul", unpack(&a, 0, qs, 3), expand_num(n, a.work, scale));
	a.k = unpack(&a, 1, ks, 3);
	a.kt = unpack(&a, 1, kts, 3);
	a.v = unpack(&a, 2, vs, 3);
	a.decay = a.gated ? unpack(&a, 4, ds, 3) : NULL;
	a.beta = a.delta ? unpack(&a, 5, bs, 3) : NULL;
	DType keep = given(n, 3) ? operand_dtype(n, 3) : a.type;
	Value *state, *y = NULL;
	if (given(n, 3))
		state = keep == a.work ? n->in[3] : expand_cast(n, n->in[3], a.work);
	else
		state = op2(n, "Expand", expand_num(n, a.work, 0),
			expand_op(n, "Concat", "axis=0", expand_op(n, "Shape", "end=1", n->in[0]),
				expand_ints(n, ss, 3)));
	Value **row = arena_array(n->graph->scratch, Value *, a.tokens + 1);
	for (int64_t t = 0; t < a.tokens && state; t++) {
		state = remember(&a, state, t);
		row[t] = op2(n, "Reshape", op2(n, "MatMul", token(&a, a.q, t), state),
			expand_ints(n, token_shape, 3));
	}
	if (state && a.tokens)
		y = expand_node(n, "Concat", "axis=1", (int)a.tokens, row);
	if (!state || (!y && a.tokens))
		return -1;
	if (!a.tokens)
		y = op2(n, "Reshape", a.v, expand_ints(n, (int64_t[]){ 0, 0, h * a.group * a.dv }, 3));
	if (expand_result(n, 0, a.work == a.type ? y : expand_cast(n, y, a.type)))
		return -1;
	return n->nout > 1 ? expand_result(n, 1, keep == a.work ? state : expand_cast(n, state, keep)) : 0;
}

/* clang-format off */
const Op ops_state[] = {
	{ .name = "TensorScatter", .since = 24, .sig = "past_cache:T update:T write_indices:int64? -> y:T",
	  .attrs = "axis:int=-2 mode:string=\"linear\"", .expand = expand_tensor_scatter,
	  .test = "past_cache:[2,4,3] update:[2,2,3] write_indices:{1,2} | "
	          "past_cache:[2,4,3] update:[2,2,3] write_indices:{3,2} =mode:\"circular\"" },
	{ .name = "CausalConvWithState", .since = 27,
	  .sig = "input:F weight:F bias:F? past_state:F? -> output:F present_state:F?",
	  .attrs = "activation:string=\"none\"", .expand = expand_causal_conv,
	  .test = "input:[2,3,5] weight:[3,1,2] bias:[3] past_state:[2,3,1] =activation:\"silu\" | "
	          "input:[1,2,4] weight:[2,1,3]" },
	{ .name = "LinearAttention", .since = 27,
	  .sig = "query:F key:F value:F past_state:F1? decay:F? beta:F? -> output:F present_state:F1?",
	  .attrs = "chunk_size:int=64 kv_num_heads:int! q_num_heads:int! scale:float=0 "
	           "update_rule:string=\"gated_delta\"",
	  .expand = expand_linear_attention,
	  .test = "query:[1,3,4] key:[1,3,4] value:[1,3,6] decay:[1,3,2] beta:[1,3,2] "
	          "=q_num_heads:2 =kv_num_heads:2 | "
	          "query:[1,2,4] key:[1,2,2] value:[1,2,3] =q_num_heads:2 =kv_num_heads:1 =update_rule:\"linear\"" },
	{ 0 },
};
/* clang-format on */
