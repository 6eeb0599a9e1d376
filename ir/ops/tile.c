/* Tile: a tensor repeated along its axes.
 *
 * It is an Expand between two Reshapes: an axis that is repeated gets an axis of repeats before it.  Tensors of
 * programs have at most 8 axes, so only axes that are repeated get one; where these are still too many, a few axes are
 * repeated at a time and neighbours that move together are one axis.  The gradient is the same backwards, a sum over
 * the axes of repeats. */
#include "ops.h"
#include <string.h>

static int shape_tile(Node *n)
{
	const Type *x = operand_type(n, 0);
	const Tensor *t = operand_const(n, 1);
	Dim dim[NDIM_MAX];
	if (!x || x->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	int64_t len = t ? tensor_elements(t) : operand_length(n, 1);
	if (len >= 0 && len != x->ndim) {
		err_at(operand_loc(n, 1), "Tile: %lld repeats for %s", (long long)len, type_text(x));
		return -1;
	}
	if (operand_dims(n, 1, dim, NDIM_MAX) != x->ndim)
		return shape_any(n, 0, x->elem, x->ndim);
	for (int a = 0; a < x->ndim; a++) {
		if (t && dim[a] < 0) {
			err_at(operand_loc(n, 1), "Tile: a negative number of repeats, %lld",
				(long long)tensor_int(t, a));
			return -1;
		}
		dim[a] = dim_mul(x->dim[a], dim[a]);
	}
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

static int eval_tile(Node *n, Tensor **in, Tensor **out)
{
	int64_t stride[NDIM_MAX], total = tensor_elements(out[0]);
	const Tensor *x = in[0];
	int last = x->ndim - 1;
	(void)n;
	if (x->ndim == 0) {
		eval_copy(x, 0, out[0], 0, total);
		return 0;
	}
	eval_strides(x, stride);
	for (int64_t i = 0; i < total; i += x->dim[last]) {
		int64_t from = 0, rest = i / out[0]->dim[last];
		for (int a = last; a-- > 0;) {
			from += rest % out[0]->dim[a] % x->dim[a] * stride[a];
			rest /= out[0]->dim[a];
		}
		eval_copy(x, from, out[0], i, x->dim[last]);
	}
	return 0;
}

enum { AXES = 8, AT_ONCE = 3 };

/* The axes that are repeated, as far as that is known. */
static int repeated(const Node *n, int ndim, bool *on)
{
	Dim times[NDIM_MAX];
	int count = 0;
	bool known_dims = operand_dims(n, 1, times, NDIM_MAX) == ndim;
	for (int a = 0; a < ndim; a++)
		count += on[a] = !known_dims || times[a] != 1;
	return count;
}

/* Element a of a vector, as a vector; a number where it is one. */
static Value *element(Node *n, Value *v, const Dim *known, int a)
{
	if (known && dim_known(known[a]))
		return expand_ints(n, &known[a], 1);
	return expand_op(n, "Gather", "axis=0", v, expand_ints(n, (int64_t[]){ a }, 1));
}

/* One Expand.  from: the shape with an axis of 1 before each repeated axis; to: with the repeats there.  len: the
 * length of each axis before, then after. */
typedef struct Step { Value *from, *to, *made; int nax, axis[AT_ONCE + AXES]; } Step;

static Value *times(Node *n, Value *a, Value *b)
{
	return a ? expand_op(n, "Mul", NULL, a, b) : b;
}

/* Plans a step that repeats axes from on[first] on, at most `most` of them; join: neighbours that are not repeated are
 * one axis.  Returns where the next step begins. */
static int plan_step(Node *n, int ndim, const bool *on, int first, int most, bool join, Value **len,
	Value *const *repeats, Step *s)
{
	Value *from[2 * NDIM_MAX], *to[2 * NDIM_MAX], *one = expand_ints(n, (int64_t[]){ 1 }, 1);
	int count = 0, end = first;
	bool fresh = true;
	*s = (Step){ 0 };
	for (int a = 0; a < ndim; a++) {
		bool here = a >= first && on[a] && s->nax < most;
		if (here) {
			s->axis[s->nax++] = count;
			from[count] = one;
			to[count++] = repeats[a];
			end = a + 1;
		}
		fresh |= here || !join;
		from[fresh ? count : count - 1] = to[fresh ? count : count - 1] = times(n,
			fresh ? NULL : from[count - 1], len[a]);
		count += fresh;
		fresh = false;
		len[a] = here ? times(n, len[a], repeats[a]) : len[a];
	}
	s->from = expand_node(n, "Concat", "axis=0", count, from);
	s->to = expand_node(n, "Concat", "axis=0", count, to);
	s->made = expand_node(n, "Concat", "axis=0", ndim, len);
	return end;
}

static int plan_steps(Node *n, Step *step)
{
	const Type *x = operand_type(n, 0);
	Dim known[NDIM_MAX];
	bool on[NDIM_MAX];
	Value *len[NDIM_MAX], *repeats[NDIM_MAX], *shape = expand_op(n, "Shape", NULL, n->in[0]);
	bool known_dims = operand_dims(n, 1, known, NDIM_MAX) == x->ndim;
	int count = repeated(n, x->ndim, on), steps = 0, at = 0;
	bool join = x->ndim + count > AXES;
	for (int a = 0; a < x->ndim; a++) {
		len[a] = element(n, shape, x->dim, a);
		repeats[a] = on[a] ? element(n, n->in[1], known_dims ? known : NULL, a) : NULL;
	}
	for (int done = 0; done < count; done += step[steps++].nax)
		at = plan_step(n, x->ndim, on, at, join ? AT_ONCE : AXES, join, len, repeats, &step[steps]);
	return steps;
}

static int expand_tile(Node *n)
{
	Step step[NDIM_MAX];
	Value *y = n->in[0];
	if (operand_ndim(n, 0) < 0) {
		err_at(operand_loc(n, 0), "Tile needs an operand with a known number of axes");
		return -1;
	}
	int steps = plan_steps(n, step);
	for (int i = 0; i < steps; i++) {
		y = expand_op(n, "Reshape", "allowzero=1", y, step[i].from);
		y = expand_op(n, "Reshape", "allowzero=1", expand_op(n, "Expand", NULL, y, step[i].to), step[i].made);
	}
	return expand_result(n, 0, y);
}

static int grad_tile(Node *n, Value **dout, Value **din)
{
	Step step[NDIM_MAX];
	Value *d = dout[0];
	if (operand_ndim(n, 0) < 0)
		die("Tile of an unknown number of axes has no gradient");
	for (int i = plan_steps(n, step); i-- > 0;) {
		int64_t axes[AT_ONCE + AXES];
		for (int k = 0; k < step[i].nax; k++)
			axes[k] = step[i].axis[k];
		d = expand_op(n, "Reshape", "allowzero=1", d, step[i].to);
		d = expand_op(n, "ReduceSum", "keepdims=0", d, expand_ints(n, axes, step[i].nax));
	}
	din[0] = expand_op(n, "Reshape", "allowzero=1", d, expand_op(n, "Shape", NULL, n->in[0]));
	return din[0] ? 0 : -1;
}

/* clang-format off */
const Op ops_tile[] = {
	{ .name = "Tile", .since = 6, .sig = "x:T repeats:int64 -> y:T",
	  .shape = shape_tile, .kernel = "tile", .eval = eval_tile, .composite = true, .expand = expand_tile,
	  .factor_fn = factor_keep_equal, .linear = "x", .grad_fn = grad_tile, .cost = cost_bytes,
	  .test = "x:[2,3] repeats:{2,1} | x:[2,3] repeats:{1,3} | x:[1,2,2,2,1] repeats:{1,1,2,1,3} | "
	          "x:[1,2,1,2,2] repeats:{2,2,2,1,2} | x:[] repeats:{}" },
	{ 0 },
};
