/* Operators that move elements without changing them, and the two that undo broadcasting for gradients.  Elements are
 * copied as bytes, so every type passes, 4-bit ones included. */
#include "ops.h"
#include <string.h>

static void eval_copy_all(const Tensor *from, Tensor *to)
{
	eval_copy(from, 0, to, 0, tensor_elements(to));
}

/* Strides of a tensor seen in a larger shape: 0 on axes that are broadcast. */
static void broadcast_strides(const Tensor *t, const Tensor *in, int64_t *stride)
{
	int64_t s = 1;
	for (int a = in->ndim; a-- > 0;) {
		int k = a - (in->ndim - t->ndim);
		stride[a] = k < 0 || t->dim[k] == 1 ? 0 : s;
		s *= k < 0 ? 1 : t->dim[k];
	}
}

/* Axes aligned at the right; an axis that only the result has is split there alone. */
static int factor_expand(Node *n, FactorRule *r)
{
	const Type *x = operand_type(n, 0), *y = n->out[0] ? n->out[0]->type : NULL;
	if (!x || !y || x->ndim < 0 || y->ndim < x->ndim)
		return -1;
	for (int a = 0; a < y->ndim; a++) {
		int k = a - (y->ndim - x->ndim);
		r->out[0][a] = factor_add(r, y->dim[a]);
		if (k >= 0 && dim_same(x->dim[k], y->dim[a]))
			r->in[0][k] = r->out[0][a];
		if (n->nin > 1 && r->in[1] && operand_ndim(n, 1) == y->ndim &&
			!strcmp(n->row->schema->in[1].name, "like"))
			r->in[1][a] = r->out[0][a];
	}
	return 0;
}

/* One side of a reshape while it is read: the axis, what is left of its length, and the sub-factors found. */
typedef struct Side { const Type *t; bool out; int axis, nsub; Dim rest; SubFactor sub[NDIM_MAX]; } Side;

static bool next_axis(Side *s)
{
	while (++s->axis < s->t->ndim && dim_same(s->t->dim[s->axis], 1))
		;
	s->nsub = 0;
	s->rest = s->axis < s->t->ndim ? s->t->dim[s->axis] : 1;
	return s->axis < s->t->ndim && s->rest != 0;
}

/* Ends an axis: it is the product of the sub-factors found; the rest of it is never split. */
static void end_axis(FactorRule *r, Side *s, bool all)
{
	if (!all && s->nsub && s->nsub < NDIM_MAX)
		s->sub[s->nsub++] = (SubFactor){ -1, s->rest };
	if (all && s->nsub == 1)
		(s->out ? r->out : r->in)[0][s->axis] = s->sub[0].factor;
	else if (s->nsub)
		factor_product(r, s->out, 0, s->axis, s->nsub, s->sub);
}

/* Whether a is a multiple of b, other than b itself; *q is the quotient. */
static bool times(Dim a, Dim b, Dim *q)
{
	*q = dim_div(a, b);
	return *q > 1 || dim_symbolic(*q);
}

/* Elements keep their order, so the axes of both sides are two factorisations of the same number.  They are matched
 * from the left: an axis of 12 that meets one of 3 is 3 x 4.  Where lengths do not divide (3 x 4 against 2 x 6), the
 * remaining axes are unrelated, except equal axes at the right. */
static int factor_reshape(Node *n, FactorRule *r)
{
	const Type *x = operand_type(n, 0), *y = n->out[0] ? n->out[0]->type : NULL;
	if (!x || !y || x->ndim < 0 || y->ndim < 0)
		return -1;
	Side a = { .t = x, .axis = -1 }, b = { .t = y, .out = true, .axis = -1 };
	bool more = next_axis(&a), other = next_axis(&b);
	more &= other;
	while (more && a.nsub < NDIM_MAX - 1 && b.nsub < NDIM_MAX - 1) {
		Dim q = DIM_UNKNOWN;
		bool same = dim_same(a.rest, b.rest), left = !same && times(b.rest, a.rest, &q);
		if (!same && !left && !times(a.rest, b.rest, &q))
			break;
		int f = factor_add(r, left || same ? a.rest : b.rest);
		a.sub[a.nsub++] = b.sub[b.nsub++] = (SubFactor){ f, 0 };
		if (same || left)
			end_axis(r, &a, true);
		if (same || !left)
			end_axis(r, &b, true);
		if (left)
			b.rest = q;
		else if (!same)
			a.rest = q;
		if (same || left)
			more = next_axis(&a);
		if (same || !left)
			more &= next_axis(&b);
	}
	if (!more)
		return 0;
	end_axis(r, &a, false);
	end_axis(r, &b, false);
	for (int i = x->ndim - 1, k = y->ndim - 1; i > a.axis && k > b.axis && dim_same(x->dim[i], y->dim[k]); i--, k--)
		r->in[0][i] = r->out[0][k] = factor_add(r, x->dim[i]);
	return 0;
}

/* Without axes, Squeeze removes the axes of length 1 of the logical value, not those of the shard. */
static void fit_squeeze(Node *shard, const Node *logical)
{
	const Type *x = logical->in[0]->type;
	int64_t axes[NDIM_MAX];
	int n = 0;
	if (shard->nin > 1 && shard->in[1])
		return;
	for (int a = 0; a < x->ndim; a++)
		if (x->dim[a] == 1)
			axes[n++] = a;
	Arena *s = shard->graph->scratch;
	Value **in = arena_array(s, Value *, 2);
	in[0] = shard->in[0];
	in[1] = arena_new(s, Value);
	in[1]->graph = shard->graph;
	in[1]->data = tensor_ints(s, axes, n);
	in[1]->init = true;
	in[1]->type = type_tensor(s, DT_INT64, 1, (Dim[]){ n });
	shard->in = in;
	shard->nin = 2;
}

/* Reshape. */
static int reshape_infer(Node *n, const Type *x, Dim *dim, int ndim, int hole)
{
	Dim total = 1, rest = 1;
	for (int a = 0; a < x->ndim; a++)
		total = dim_mul(total, x->dim[a]);
	for (int a = 0; a < ndim; a++)
		if (a != hole)
			rest = dim_mul(rest, dim[a]);
	if (hole >= 0 && dim_known(total) && dim_known(rest) && (rest == 0 || total % rest != 0)) {
		err_at(n->loc, "Reshape: %s has %lld elements, which %lld does not divide", type_text(x),
			(long long)total, (long long)rest);
		return -1;
	}
	if (hole >= 0)
		dim[hole] = rest == DIM_UNKNOWN || total == DIM_UNKNOWN ? DIM_UNKNOWN : dim_div(total, rest);
	else if (dim_differ(total, rest)) {
		err_at(n->loc, "Reshape cannot turn %s (%lld elements) into %s (%lld)", type_text(x),
			(long long)total, type_text(&(Type){ .elem = x->elem, .ndim = ndim, .dim = dim }),
			(long long)rest);
		return -1;
	}
	return 0;
}

static int shape_reshape(Node *n)
{
	const Type *x = operand_type(n, 0);
	Dim dim[NDIM_MAX];
	int64_t len = operand_length(n, 1);
	bool allowzero = attr_int(n, "allowzero") != 0, exact = operand_const(n, 1) != NULL;
	int ndim = operand_dims(n, 1, dim, NDIM_MAX), hole = -1, holes = 0;
	if (shape_ndim_check(n, len) != 0)
		return -1;
	if (ndim < 0)
		return len < 0 ? (operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL), 0)
		               : shape_any(n, 0, operand_dtype(n, 0), (int)len);
	for (int a = 0; a < ndim; a++) {
		int64_t given = exact ? tensor_int(operand_const(n, 1), a) : 0;
		if (given < -1) {
			err_at(operand_loc(n, 1), "Reshape: the shape has a negative size, %lld", (long long)given);
			return -1;
		}
		if (dim[a] == 0 && !allowzero) {
			if (x && x->ndim >= 0 && a >= x->ndim) {
				err_at(operand_loc(n, 1),
					"Reshape: 0 stands at position %d of the shape, but %s has only %d axes",
					a, type_text(x), x->ndim);
				return -1;
			}
			dim[a] = x && x->ndim >= 0 ? x->dim[a] : DIM_UNKNOWN;
			if (dim[a] != DIM_UNKNOWN)
				continue;
			holes += x && x->ndim >= 0 ? 2 : 0;
		} else if (dim[a] == DIM_UNKNOWN) {
			hole = a;
			holes++;
		}
	}
	if (exact && x && x->ndim >= 0) {
		const Tensor *t = operand_const(n, 1);
		int minus = 0;
		for (int a = 0; a < ndim; a++)
			minus += tensor_int(t, a) == -1;
		if (minus > 1) {
			err_at(operand_loc(n, 1), "Reshape: -1 stands %d times in the shape", minus);
			return -1;
		}
	}
	if (x && x->ndim >= 0 && holes <= 1 && reshape_infer(n, x, dim, ndim, hole) != 0)
		return -1;
	operand_set_result(n, 0, operand_dtype(n, 0), ndim, dim);
	return 0;
}

static int eval_same_order(Node *n, Tensor **in, Tensor **out)
{
	(void)n;
	eval_copy_all(in[0], out[0]);
	return 0;
}

/* Transpose. */
static int read_perm(Node *n, int ndim, int *perm)
{
	int k;
	const int64_t *p = attr_ints(n, "perm", &k);
	bool seen[NDIM_MAX] = { false };
	for (int a = 0; a < ndim; a++)
		perm[a] = ndim - 1 - a;
	if (!attr_has(n, "perm"))
		return 0;
	for (int a = 0; a < k && k == ndim; a++) {
		if (p[a] < 0 || p[a] >= ndim || seen[p[a]])
			break;
		seen[p[a]] = true;
		perm[a] = (int)p[a];
		if (a == ndim - 1)
			return 0;
	}
	if (k == 0 && ndim == 0)
		return 0;
	err_at(n->loc, "Transpose: perm must name each of the %d axes of %s once", ndim,
		type_text(operand_type(n, 0)));
	return -1;
}

static int shape_transpose(Node *n)
{
	const Type *x = operand_type(n, 0);
	int perm[NDIM_MAX], k;
	Dim dim[NDIM_MAX];
	if (!x || x->ndim < 0) {
		attr_ints(n, "perm", &k);
		return attr_has(n, "perm") && k <= NDIM_MAX
		               ? shape_any(n, 0, operand_dtype(n, 0), k)
		               : (operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL), 0);
	}
	if (read_perm(n, x->ndim, perm) != 0)
		return -1;
	for (int a = 0; a < x->ndim; a++)
		dim[a] = x->dim[perm[a]];
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

static int eval_transpose(Node *n, Tensor **in, Tensor **out)
{
	int perm[NDIM_MAX];
	int64_t stride[NDIM_MAX], s[NDIM_MAX];
	if (read_perm(n, in[0]->ndim, perm) != 0)
		return -1;
	eval_strides(in[0], s);
	for (int a = 0; a < in[0]->ndim; a++)
		stride[a] = s[perm[a]];
	eval_strided(in[0], 0, stride, out[0]);
	return 0;
}

static int factor_transpose(Node *n, FactorRule *r)
{
	int perm[NDIM_MAX], ndim = operand_ndim(n, 0);
	if (ndim < 0 || read_perm(n, ndim, perm) != 0)
		return -1;
	for (int a = 0; a < ndim; a++)
		r->in[0][perm[a]] = r->out[0][a] = factor_add(r, operand_type(n, 0)->dim[perm[a]]);
	return 0;
}

static int grad_transpose(Node *n, Value **dout, Value **din)
{
	int perm[NDIM_MAX], back[NDIM_MAX], ndim = operand_ndim(n, 0), at = 6;
	char text[6 + 4 * NDIM_MAX + 2] = "perm=[";
	if (ndim < 0)
		die("Transpose of an unknown number of axes has no gradient");
	if (read_perm(n, ndim, perm) != 0)
		return -1;
	for (int a = 0; a < ndim; a++)
		back[perm[a]] = a;
	for (int a = 0; a < ndim; a++)
		at += snprintf(text + at, sizeof text - (size_t)at, "%s%d", a ? "," : "", back[a]);
	snprintf(text + at, sizeof text - (size_t)at, "]");
	din[0] = build(n->graph, n->loc, "Transpose", text, 1, NULL, 1, dout[0]);
	return din[0] ? 0 : -1;
}

/* Swap: the last two axes. */
static int shape_swap(Node *n)
{
	const Type *x = operand_type(n, 0);
	Dim dim[NDIM_MAX];
	if (!x || x->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	if (x->ndim < 2) {
		err_at(operand_loc(n, 0), "Swap needs two axes, not %s", type_text(x));
		return -1;
	}
	memcpy(dim, x->dim, (size_t)x->ndim * sizeof *dim);
	dim[x->ndim - 1] = x->dim[x->ndim - 2];
	dim[x->ndim - 2] = x->dim[x->ndim - 1];
	operand_set_result(n, 0, x->elem, x->ndim, dim);
	return 0;
}

static int eval_swap(Node *n, Tensor **in, Tensor **out)
{
	int64_t s[NDIM_MAX];
	int r = in[0]->ndim;
	(void)n;
	eval_strides(in[0], s);
	int64_t t = s[r - 1];
	s[r - 1] = s[r - 2];
	s[r - 2] = t;
	eval_strided(in[0], 0, s, out[0]);
	return 0;
}

/* Expand, LikeShape, ReduceTo. */
static int shape_expand(Node *n)
{
	const Type *x = operand_type(n, 0);
	const Tensor *t = operand_const(n, 1);
	Dim dim[NDIM_MAX];
	int64_t len = operand_length(n, 1);
	int ndim = operand_dims(n, 1, dim, NDIM_MAX);
	if (shape_ndim_check(n, len) != 0)
		return -1;
	for (int64_t i = 0; t && i < tensor_elements(t); i++)
		if (tensor_int(t, i) < 0) {
			err_at(operand_loc(n, 1), "Expand: the shape has a negative size, %lld",
				(long long)tensor_int(t, i));
			return -1;
		}
	if (!x || x->ndim < 0 || (ndim < 0 && len < 0)) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	if (ndim < 0) {
		ndim = (int)len;
		for (int a = 0; a < ndim; a++)
			dim[a] = DIM_UNKNOWN;
	}
	if ((ndim = shape_broadcast_dims(n, ndim, dim, x->ndim, x->dim)) < 0)
		return -1;
	operand_set_result(n, 0, x->elem, ndim, dim);
	return 0;
}

static int eval_expand(Node *n, Tensor **in, Tensor **out)
{
	int64_t stride[NDIM_MAX];
	(void)n;
	broadcast_strides(in[0], out[0], stride);
	eval_strided(in[0], 0, stride, out[0]);
	return 0;
}

/* small can be broadcast to large: checked as far as both are known. */
static int fits(Node *n, const Type *small, const Type *large)
{
	bool bad = small->ndim > large->ndim;
	for (int a = 0; !bad && a < small->ndim; a++)
		bad = small->dim[a] != 1 &&
		      dim_differ(small->dim[a], large->dim[a + large->ndim - small->ndim]);
	if (!bad)
		return 0;
	err_at(n->loc, "%s: %s does not broadcast to %s", n->op, type_text(small), type_text(large));
	return -1;
}

int movement_like_second(Node *n)
{
	const Type *x = operand_type(n, 0), *like = operand_type(n, 1);
	if (!like || like->ndim < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	bool up = !strcmp(n->op, "LikeShape");
	if (x && x->ndim >= 0 && (up || !strcmp(n->op, "ReduceTo")) &&
		fits(n, up ? x : like, up ? like : x) != 0)
		return -1;
	operand_set_result(n, 0, operand_dtype(n, 0), like->ndim, like->dim);
	return 0;
}

static int eval_reduce_to(Node *n, Tensor **in, Tensor **out)
{
	int64_t stride[NDIM_MAX], idx[NDIM_MAX] = { 0 }, total = tensor_elements(in[0]), at = 0;
	(void)n;
	if (total == tensor_elements(out[0])) {
		eval_copy_all(in[0], out[0]);
		return 0;
	}
	broadcast_strides(out[0], in[0], stride);
	bool real = dtype_is_float(in[0]->dtype);
	double *x = real ? eval_doubles(in[0]) : NULL,
	       *sum = eval_scratch((size_t)tensor_elements(out[0]) * 8);
	int64_t *xi = real ? NULL : eval_ints(in[0]), *isum = (int64_t *)sum;
	for (int64_t i = 0; i < total; i++) {
		if (real)
			sum[at] += x[i];
		else
			isum[at] = (int64_t)((uint64_t)isum[at] + (uint64_t)xi[i]);
		at = tensor_next(in[0]->ndim, in[0]->dim, stride, idx, at);
	}
	if (real)
		eval_store(out[0], sum);
	else
		eval_store_ints(out[0], isum);
	return 0;
}

/* Axes that the result lacks, or has with length 1, are summed: splitting them gives P. */
static int factor_reduce_to(Node *n, FactorRule *r)
{
	const Type *x = operand_type(n, 0), *y = n->out[0] ? n->out[0]->type : NULL;
	if (!x || !y || y->ndim < 0 || x->ndim < y->ndim)
		return -1;
	for (int a = 0; a < x->ndim; a++) {
		int k = a - (x->ndim - y->ndim);
		r->in[0][a] = factor_add(r, x->dim[a]);
		if (k >= 0 && dim_same(x->dim[a], y->dim[k]))
			r->out[0][k] = r->in[1][k] = r->in[0][a];
	}
	return 0;
}

/* Squeeze, Unsqueeze, Flatten. */
static int marked_axes(Node *n, int i, int ndim, bool *mark)
{
	const Tensor *t = operand_const(n, i);
	for (int64_t k = 0; k < tensor_elements(t); k++) {
		int a;
		if (op_axis(n, tensor_int(t, k), ndim, &a) != 0)
			return -1;
		if (mark[a]) {
			err_at(operand_loc(n, i), "%s: axis %d stands twice", n->op, a);
			return -1;
		}
		mark[a] = true;
	}
	return 0;
}

static int shape_squeeze(Node *n)
{
	const Type *x = operand_type(n, 0);
	bool gone[NDIM_MAX] = { false }, given = n->nin > 1 && n->in[1];
	Dim dim[NDIM_MAX];
	int ndim = 0;
	if (!x || x->ndim < 0 || (given && !operand_const(n, 1))) {
		int64_t len = operand_length(n, 1);
		if (x && x->ndim >= 0 && len >= 0 && len <= x->ndim)
			return shape_any(n, 0, x->elem, x->ndim - (int)len);
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	if (given && marked_axes(n, 1, x->ndim, gone) != 0)
		return -1;
	for (int a = 0; a < x->ndim; a++) {
		if (!given && x->dim[a] == DIM_UNKNOWN) {
			operand_set_result(n, 0, x->elem, -1, NULL);
			return 0;
		}
		if (!given)
			gone[a] = x->dim[a] == 1;
		if (gone[a] && dim_differ(x->dim[a], 1)) {
			err_at(operand_loc(n, 0), "Squeeze: axis %d of %s is not 1", a, type_text(x));
			return -1;
		}
		if (!gone[a])
			dim[ndim++] = x->dim[a];
	}
	operand_set_result(n, 0, x->elem, ndim, dim);
	return 0;
}

static int shape_unsqueeze(Node *n)
{
	const Type *x = operand_type(n, 0);
	const Tensor *axes = operand_const(n, 1);
	int64_t len = axes ? tensor_elements(axes) : operand_length(n, 1);
	bool fresh[NDIM_MAX] = { false };
	Dim dim[NDIM_MAX];
	if (!x || x->ndim < 0 || len < 0) {
		operand_set_result(n, 0, operand_dtype(n, 0), -1, NULL);
		return 0;
	}
	if (shape_ndim_check(n, len) != 0 || shape_ndim_check(n, x->ndim + len) != 0)
		return -1;
	int ndim = x->ndim + (int)len;
	if (!axes)
		return shape_any(n, 0, x->elem, ndim);
	if (marked_axes(n, 1, ndim, fresh) != 0)
		return -1;
	for (int a = 0, k = 0; a < ndim; a++)
		dim[a] = fresh[a] ? 1 : x->dim[k++];
	operand_set_result(n, 0, x->elem, ndim, dim);
	return 0;
}

/* Kept axes, in order.  An axis of one sample may also be the batch, which lengths alone do not show. */
static int factor_squeeze(Node *n, FactorRule *r)
{
	const Type *x = operand_type(n, 0), *y = n->out[0] ? n->out[0]->type : NULL;
	const Tensor *axes = operand_const(n, 1);
	bool on[NDIM_MAX] = { false };
	if (!x || !y || x->ndim < 0 || y->ndim < 0)
		return -1;
	if (!axes)
		return factor_reshape(n, r);
	const Type *big = x->ndim > y->ndim ? x : y;
	for (int64_t k = 0; k < tensor_elements(axes); k++) {
		int a;
		if (op_axis(n, tensor_int(axes, k), big->ndim, &a) != 0)
			return -1;
		on[a] = true;
	}
	for (int a = 0, k = 0; a < big->ndim; a++) {
		if (on[a])
			continue;
		int f = factor_add(r, big->dim[a]);
		if (k >= (big == x ? y->ndim : x->ndim))
			return -1;
		r->in[0][big == x ? a : k] = f;
		r->out[0][big == x ? k : a] = f;
		k++;
	}
	return 0;
}

static int shape_flatten(Node *n)
{
	const Type *x = operand_type(n, 0);
	int64_t axis = attr_int(n, "axis");
	Dim dim[2] = { 1, 1 };
	if (!x || x->ndim < 0)
		return shape_any(n, 0, operand_dtype(n, 0), 2);
	if (axis < -x->ndim || axis > x->ndim) {
		err_at(n->loc, "Flatten: axis %lld is outside [%d, %d]", (long long)axis, -x->ndim, x->ndim);
		return -1;
	}
	axis += axis < 0 ? x->ndim : 0;
	for (int a = 0; a < x->ndim; a++)
		dim[a >= axis] = dim_mul(dim[a >= axis], x->dim[a]);
	operand_set_result(n, 0, x->elem, 2, dim);
	return 0;
}

/* Trilu. */
static int shape_trilu(Node *n)
{
	if (operand_ndim(n, 0) >= 0 && operand_ndim(n, 0) < 2) {
		err_at(operand_loc(n, 0), "Trilu needs two axes, not %s", type_text(operand_type(n, 0)));
		return -1;
	}
	return shape_like_first(n);
}

static int eval_trilu(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0];
	if (n->nin > 1 && in[1] && tensor_elements(in[1]) != 1) {
		err_at(operand_loc(n, 1), "Trilu: k must be a scalar");
		return -1;
	}
	int64_t k = n->nin > 1 && in[1] ? tensor_int(in[1], 0) : 0, cols = x->dim[x->ndim - 1],
		rows = x->dim[x->ndim - 2];
	int64_t total = tensor_elements(x);
	bool upper = attr_int(n, "upper") != 0;
	k = k > cols ? cols : k < -rows ? -rows : k;
	for (int64_t i = 0, r = 0; i < total; i += cols, r = (r + 1) % rows) {
		int64_t cut = r + k;    /* upper keeps columns from here, lower up to here */
		cut = upper ? cut : cut + 1;
		cut = cut < 0 ? 0 : cut > cols ? cols : cut;
		if (upper)
			eval_copy(x, i + cut, out[0], i + cut, cols - cut);
		else
			eval_copy(x, i, out[0], i, cut);
	}
	return 0;
}

/* CumSum. */
static int cumsum_axis(Node *n, const Tensor *t, int ndim, int *axis)
{
	if (tensor_elements(t) != 1) {
		err_at(operand_loc(n, 1), "%s: axis must be a scalar", n->op);
		return -1;
	}
	return op_axis(n, tensor_int(t, 0), ndim, axis);
}

static int shape_cumsum(Node *n)
{
	int axis;
	if (operand_ndim(n, 0) >= 0 && operand_const(n, 1) &&
		cumsum_axis(n, operand_const(n, 1), operand_ndim(n, 0), &axis) != 0)
		return -1;
	return shape_like_first(n);
}

static int eval_cumsum(Node *n, Tensor **in, Tensor **out)
{
	int axis;
	const Tensor *x = in[0];
	int64_t inner = 1, total = tensor_elements(x);
	bool exclusive = attr_int(n, "exclusive") != 0, reverse = attr_int(n, "reverse") != 0,
	     real = dtype_is_float(x->dtype);
	if (cumsum_axis(n, in[1], x->ndim, &axis) != 0)
		return -1;
	int64_t len = x->dim[axis];
	for (int a = axis + 1; a < x->ndim; a++)
		inner *= x->dim[a];
	double *v = real ? eval_doubles(x) : NULL;
	int64_t *w = real ? NULL : eval_ints(x);
	for (int64_t o = 0; o < total; o++) {
		if (o / inner % len != 0)
			continue;
		double s = 0;
		uint64_t si = 0;
		for (int64_t k = 0; k < len; k++) {
			int64_t at = o + (reverse ? len - 1 - k : k) * inner;
			double t = s + (real ? v[at] : 0);
			uint64_t ti = si + (real ? 0 : (uint64_t)w[at]);
			if (real)
				v[at] = exclusive ? s : t;
			else
				w[at] = (int64_t)(exclusive ? si : ti);
			s = t;
			si = ti;
		}
	}
	if (real)
		eval_store(out[0], v);
	else
		eval_store_ints(out[0], w);
	return 0;
}

/* Sequences are independent of each other. */
static int factor_reverse(Node *n, FactorRule *r)
{
	bool whole[NDIM_MAX] = { false };
	int batch, time, ndim = operand_ndim(n, 0);
	if (ndim < 2 || op_axis(n, attr_int(n, "batch_axis"), ndim, &batch) != 0 ||
		op_axis(n, attr_int(n, "time_axis"), ndim, &time) != 0 || !r->in[1])
		return -1;
	whole[time] = true;
	if (factor_keep(n, r, whole) != 0)
		return -1;
	r->in[1][0] = r->in[0][batch];
	return 0;
}

static int factor_cumsum(Node *n, FactorRule *r)
{
	bool whole[NDIM_MAX] = { false };
	int axis;
	if (operand_ndim(n, 0) < 0 || !operand_const(n, 1) ||
		cumsum_axis(n, operand_const(n, 1), operand_ndim(n, 0), &axis) != 0)
		return -1;
	whole[axis] = true;
	return factor_keep(n, r, whole);
}

/* EyeLike. */
static int shape_eye(Node *n)
{
	const Type *x = operand_type(n, 0);
	int64_t to = attr_has(n, "dtype") ? attr_int(n, "dtype") : operand_dtype(n, 0);
	if (to < 0 || to >= DT_COUNT || to == DT_STRING || to == DT_COMPLEX64 || to == DT_COMPLEX128) {
		err_at(n->loc, "EyeLike: element type %lld is not supported", (long long)to);
		return -1;
	}
	if (x && x->ndim >= 0 && x->ndim != 2) {
		err_at(operand_loc(n, 0), "EyeLike needs two axes, not %s", type_text(x));
		return -1;
	}
	if (x && x->ndim == 2)
		operand_set_result(n, 0, (DType)to, 2, x->dim);
	else
		shape_any(n, 0, (DType)to, 2);
	return 0;
}

static int eval_eye(Node *n, Tensor **in, Tensor **out)
{
	int64_t k = attr_int(n, "k"), rows = out[0]->dim[0], cols = out[0]->dim[1];
	(void)in;
	for (int64_t r = 0; r < rows; r++)
		if (k >= -r && k < cols - r)
			tensor_set(out[0], r * cols + r + k, 1);
	return 0;
}

/* ReverseSequence. */
static int reverse_axes(Node *n, int64_t *time, int64_t *batch)
{
	*time = attr_int(n, "time_axis");
	*batch = attr_int(n, "batch_axis");
	if ((*time == 0 && *batch == 1) || (*time == 1 && *batch == 0))
		return 0;
	err_at(n->loc,
		"ReverseSequence: time_axis and batch_axis must be 0 and 1, in one order or the other");
	return -1;
}

static int shape_reverse(Node *n)
{
	const Type *x = operand_type(n, 0), *l = operand_type(n, 1);
	int64_t time, batch;
	if (reverse_axes(n, &time, &batch) != 0)
		return -1;
	if (x && x->ndim >= 0 &&
		(x->ndim < 2 ||
			(l && l->ndim >= 0 && (l->ndim != 1 || dim_differ(l->dim[0], x->dim[batch]))))) {
		err_at(n->loc, "ReverseSequence: %s does not fit lengths %s", type_text(x),
			l ? type_text(l) : "of any kind");
		return -1;
	}
	return shape_like_first(n);
}

static int eval_reverse(Node *n, Tensor **in, Tensor **out)
{
	const Tensor *x = in[0];
	int64_t time, batch, inner = 1;
	if (reverse_axes(n, &time, &batch) != 0)
		return -1;
	for (int a = 2; a < x->ndim; a++)
		inner *= x->dim[a];
	int64_t st = time == 0 ? x->dim[1] * inner : inner, sb = time == 0 ? inner : x->dim[1] * inner;
	for (int64_t b = 0; b < x->dim[batch]; b++) {
		int64_t len = tensor_int(in[1], b);
		if (len < 0 || len > x->dim[time]) {
			err_at(operand_loc(n, 1), "ReverseSequence: length %lld is outside [0, %lld]",
				(long long)len, (long long)x->dim[time]);
			return -1;
		}
		for (int64_t t = 0; t < x->dim[time]; t++)
			eval_copy(
				x, (t < len ? len - 1 - t : t) * st + b * sb, out[0], t * st + b * sb, inner);
	}
	return 0;
}

/* clang-format off */
#define RESHAPED "dx = Reshape<allowzero=1>(dy, Shape(x))"

const Op ops_movement[] = {
	{ .name = "Reshape", .since = 5, .carries = true, .sig = "x:T shape:int64 -> y:T", .attrs = "allowzero:int=0",
	  .shape = shape_reshape, .kernel = "copy", .eval = eval_same_order,
	  .factor_fn = factor_reshape, .fit = shape_fit, .linear = "x", .grad = RESHAPED, .cost = cost_bytes,
	  .test = "x:[2,3,4] shape:{0,-1} | x:[2,3,4] shape:{4,6} | x:[2,3] shape:{6} | x:[1] shape:{}" },
	{ .name = "Transpose", .since = 1, .carries = true, .sig = "x:T -> y:T", .attrs = "perm:ints",
	  .shape = shape_transpose, .kernel = "transpose", .eval = eval_transpose,
	  .factor_fn = factor_transpose, .linear = "x", .grad_fn = grad_transpose, .cost = cost_bytes,
	  .test = "x:[2,3,4] | x:[2,3,4] =perm:[1,2,0] | x:[3]" },
	{ .name = "Swap", .domain = "sbpcc", .since = 1, .sig = "x:T -> y:T",
	  .shape = shape_swap, .kernel = "swap", .eval = eval_swap, .factors = "... a b -> ... b a", .linear = "x",
	  .grad = "dx = Swap(dy)", .cost = cost_bytes, .test = "x:[2,3,4] | x:[2,3]" },
	{ .name = "Expand", .since = 8, .carries = true, .sig = "x:T shape:int64 -> y:T",
	  .shape = shape_expand, .kernel = "expand", .eval = eval_expand,
	  .factor_fn = factor_expand, .fit = shape_fit, .linear = "x", .grad = "dx = ReduceTo(dy, x)",
	  .cost = cost_bytes, .test = "x:[3,1] shape:{2,1,4} | x:[3] shape:{1} | x:[1] shape:{2,3}" },
	{ .name = "LikeShape", .domain = "sbpcc", .since = 1, .sig = "x:T like:T1 -> y:T",
	  .shape = movement_like_second, .kernel = "expand", .eval = eval_expand,
	  .factor_fn = factor_expand, .linear = "x", .grad = "dx = ReduceTo(dy, x)", .cost = cost_bytes,
	  .test = "x:[3,1] like:[2,3,4]" },
	{ .name = "ReduceTo", .domain = "sbpcc", .since = 1, .sig = "x:N like:N1 -> y:N",
	  .shape = movement_like_second, .kernel = "reduce_to", .eval = eval_reduce_to,
	  .factor_fn = factor_reduce_to, .linear = "x", .grad = "dx = LikeShape(dy, x)", .cost = cost_reduce,
	  .test = "x:[2,3,4] like:[3,1] | x:[2,3] like:[2,3] | x:[2,3] like:[]" },
	{ .name = "Squeeze", .since = 13, .carries = true, .sig = "x:T axes:int64? -> y:T",
	  .shape = shape_squeeze, .kernel = "copy", .eval = eval_same_order,
	  .factor_fn = factor_squeeze, .fit = fit_squeeze, .linear = "x", .grad = RESHAPED, .cost = cost_bytes,
	  .test = "x:[2,1,3,1] | x:[2,1,3,1] axes:{-1}" },
	{ .name = "Unsqueeze", .since = 13, .carries = true, .sig = "x:T axes:int64 -> y:T",
	  .shape = shape_unsqueeze, .kernel = "copy", .eval = eval_same_order,
	  .factor_fn = factor_squeeze, .linear = "x", .grad = RESHAPED, .cost = cost_bytes,
	  .test = "x:[2,3] axes:{0,-1}" },
	{ .name = "Flatten", .since = 1, .carries = true, .sig = "x:T -> y:T", .attrs = "axis:int=1",
	  .shape = shape_flatten, .kernel = "copy", .eval = eval_same_order,
	  .factor_fn = factor_reshape, .linear = "x", .grad = RESHAPED, .cost = cost_bytes,
	  .test = "x:[2,3,4] | x:[2,3,4] =axis:0 | x:[2,3,4] =axis:-1" },
	{ .name = "Trilu", .since = 14, .sig = "x:T k:int64? -> y:T", .attrs = "upper:int=1",
	  .shape = shape_trilu, .kernel = "trilu", .eval = eval_trilu,
	  .factors = "... * *, -> ... * *", .linear = "x", .grad = "dx = Trilu<upper=@upper>(dy, k)",
	  .cost = cost_bytes, .test = "x:[2,3,4] | x:[3,4] k:{1} =upper:0 | x:[3,4] k:{-1}" },
	{ .name = "CumSum", .since = 11, .precision = PRECISION_FLOAT, .sig = "x:N axis:I -> y:N",
	  .attrs = "exclusive:int=0 reverse:int=0", .shape = shape_cumsum, .kernel = "cumsum", .eval = eval_cumsum,
	  .factor_fn = factor_cumsum, .linear = "x",
	  .grad = "dx = CumSum<exclusive=@exclusive, reverse=1>(dy, axis) @when(\"reverse == 0\");"
	          "dx = CumSum<exclusive=@exclusive, reverse=0>(dy, axis) @when(\"reverse != 0\")",
	  .cost = cost_reduce, .test = "x:[2,3,4] axis:{1} | x:[2,3] axis:{-1} =exclusive:1 =reverse:1" },
	{ .name = "EyeLike", .since = 9, .sig = "x:T -> y:T1", .attrs = "dtype:int k:int=0",
	  .shape = shape_eye, .kernel = "eye", .eval = eval_eye, .unsplit = "its ones stand where both indices meet",
	  .nograd = true, .cost = cost_bytes, .test = "x:[3,4] | x:[3,4] =k:1" },
	{ .name = "ReverseSequence", .since = 10, .sig = "x:T lengths:int64 -> y:T",
	  .attrs = "batch_axis:int=1 time_axis:int=0",
	  .shape = shape_reverse, .kernel = "reverse_sequence", .eval = eval_reverse,
	  .factor_fn = factor_reverse, .linear = "x",
	  .grad = "dx = ReverseSequence<batch_axis=@batch_axis, time_axis=@time_axis>(dy, lengths)",
	  .cost = cost_bytes,
	  .test = "x:[4,3,2] lengths:{1,4,2} | x:[3,4] lengths:{2,0,4} =batch_axis:0 =time_axis:1" },
	{ 0 },
};
