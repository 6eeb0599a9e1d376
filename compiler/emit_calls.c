/* Calls of kernels: how the arguments of each are read off a node and the shapes of what the role's ranks hold.
 *
 * The table at the end has a row per kernel that rows of operators name: the file it is in, the operands that are read at
 * run time, which nodes it can do, and how its call is printed.  The text is the same for C and for CUDA. */
#include "compiler.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- shapes ---- */

typedef struct Shape { int rank; int64_t d[8]; } Shape;

static Shape shape_of(const Print *p, const Slot *s)
{
	Shape r = { .rank = s->rank };
	for (int a = 0; a < s->rank; a++)
		r.d[a] = slot_len(p->e->plan, s, a, p->rank);
	return r;
}

static Shape in_shape(const Print *p, int i)
{
	const Slot *s = plan_slot(p->e->plan, p->n->in[i]);
	return shape_of(p, s);
}

static Shape out_shape(const Print *p, int i)
{
	return shape_of(p, p->make[i]);
}

static int64_t product(const Shape *s, int from, int to)
{
	int64_t n = 1;
	for (int a = from; a < to; a++)
		n *= s->d[a];
	return n;
}

static void strides_of(const Shape *s, int64_t *stride)
{
	int64_t n = 1;
	for (int a = s->rank - 1; a >= 0; a--) {
		stride[a] = n;
		n *= s->d[a];
	}
}

/* Loops that walk the axes of one shape with strides of another: axes of length 1 vanish, neighbours are joined. */
typedef struct Loops { int n; int64_t len[8], stride[8]; } Loops;

static void loop_add(Loops *l, int64_t len, int64_t stride)
{
	if (len == 1)
		return;
	if (l->n && l->stride[l->n - 1] == len * stride) {
		l->len[l->n - 1] *= len;
		l->stride[l->n - 1] = stride;
		return;
	}
	l->len[l->n] = len;
	l->stride[l->n++] = stride;
}

static void print_loops(const Print *p, const Loops *l)
{
	text_add(p->t, "(KLoops){ %d, {", l->n);
	for (int i = 0; i < l->n; i++)
		text_add(p->t, "%s %" PRId64, i ? "," : "", l->len[i]);
	text_add(p->t, "%s }, {", l->n ? "" : " 0");
	for (int i = 0; i < l->n; i++)
		text_add(p->t, "%s %" PRId64, i ? "," : "", l->stride[i]);
	text_add(p->t, "%s } }", l->n ? "" : " 0");
}

int emit_bits(const Value *v)
{
	return dtype_bits(emit_stored(v->type->elem));
}

/* ---- pointers ---- */

static const char *make_ptr(const Print *p, int i)
{
	return i < p->n->nout && p->make[i] ? emit_param(p, p->make[i], true) : "NULL";
}

static const char *take_ptr(const Print *p, int i)
{
	return i < p->n->nin && p->take[i] ? emit_param(p, p->take[i], false) : "NULL";
}

/* ---- calls ---- */

/* x read with strides into y: transposes, broadcasts, slices. */
static void call_copy(const Print *p, int64_t offset, const Loops *l)
{
	text_add(p->t, "k_copy_%d(c, %s, %s, %" PRId64 ", ", emit_bits(p->n->in[0]), make_ptr(p, 0), take_ptr(p, 0), offset);
	print_loops(p, l);
	text_add(p->t, ")");
}

static bool can_copy(const Node *n)
{
	int w = emit_bits(n->in[0]);
	return w == 8 || w == 32 || w == 64;
}

static void call_same(const Print *p)
{
	Shape y = out_shape(p, 0);
	Loops l = { 0 };
	loop_add(&l, product(&y, 0, y.rank), 1);
	call_copy(p, 0, &l);
}

static void call_transpose(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, 0);
	int64_t st[8];
	bool swap = !strcmp(p->n->op, "Swap");          /* the last two axes */
	int np = 0;
	const int64_t *perm = swap ? NULL : attr_ints(p->n, "perm", &np);
	Loops l = { 0 };
	strides_of(&x, st);
	for (int a = 0; a < y.rank; a++)
		loop_add(&l, y.d[a], st[np ? perm[a] : !swap ? y.rank - 1 - a : a < y.rank - 2 ? a : 2 * y.rank - 3 - a]);
	call_copy(p, 0, &l);
}

static void call_expand(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, 0);
	int64_t st[8];
	Loops l = { 0 };
	strides_of(&x, st);
	for (int a = 0; a < y.rank; a++) {
		int b = a - (y.rank - x.rank);
		loop_add(&l, y.d[a], b < 0 || x.d[b] == 1 ? 0 : st[b]);
	}
	call_copy(p, 0, &l);
}

static void print_reduce(const Print *p, const Shape *x, const bool *gone, const char *how)
{
	int64_t st[8];
	Loops keep = { 0 }, over = { 0 };
	strides_of(x, st);
	for (int a = 0; a < x->rank; a++)
		loop_add(gone[a] ? &over : &keep, x->d[a], st[a]);
	DType dt = p->n->in[0]->type->elem;
	text_add(p->t, "k_reduce_%s(c, %s, %s, ", dt == DT_DOUBLE ? "f64" : dt == DT_INT64 ? "i64" : "f32", make_ptr(p, 0), take_ptr(p, 0));
	print_loops(p, &keep);
	text_add(p->t, ", ");
	print_loops(p, &over);
	text_add(p->t, ", %s)", how);
}

static void call_reduce_to(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, 0);
	bool gone[8];
	for (int a = 0; a < x.rank; a++) {
		int b = a - (x.rank - y.rank);
		gone[a] = b < 0 || (y.d[b] == 1 && x.d[a] != 1);
	}
	print_reduce(p, &x, gone, "K_SUM");
}

static bool const_axes(const Node *n)
{
	return n->nin < 2 || !n->in[1] || in_const(n, 1);
}

static bool can_reduce(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && const_axes(n);
}

static void call_reduce(const Print *p)
{
	static const struct { const char *op, *how; } kinds[] = { { "ReduceSum", "K_SUM" }, { "ReduceMean", "K_MEAN" }, { "ReduceMax", "K_MAX" },
		{ "ReduceMin", "K_MIN" }, { "ReduceProd", "K_PROD" } };
	Shape x = in_shape(p, 0);
	const Tensor *axes = p->n->nin > 1 && p->n->in[1] ? in_const(p->n, 1) : NULL;
	int64_t n = axes ? tensor_elements(axes) : 0;
	bool gone[8], all = n == 0 && !attr_int(p->n, "noop_with_empty_axes");
	for (int a = 0; a < x.rank; a++)
		gone[a] = all;
	for (int64_t i = 0; i < n; i++) {
		int64_t a = tensor_int(axes, i);
		gone[a < 0 ? a + x.rank : a] = true;
	}
	const char *how = "K_SUM";
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (!strcmp(kinds[i].op, p->n->op))
			how = kinds[i].how;
	print_reduce(p, &x, gone, how);
}

static bool is_float(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT;
}

static bool can_matmul(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && n->in[0]->type->rank >= 1 && n->in[1]->type->rank >= 1;
}

/* One operand of a product: its matrix, and how far each axis of the batch of the result moves it. */
typedef struct Factor {
	struct { int64_t row, col, batch; } m;
	int64_t batch[8];
} Factor;

/* A vector is a row on the left and a column on the right. */
static Factor factor_of(const Shape *s, int nbatch, bool transposed, int64_t vector_row, int64_t vector_col)
{
	int64_t st[8];
	Factor f = { { vector_row, vector_col, 0 }, { 0 } };
	strides_of(s, st);
	if (s->rank > 1) {
		f.m.row = st[s->rank - (transposed ? 1 : 2)];
		f.m.col = st[s->rank - (transposed ? 2 : 1)];
	}
	for (int a = 0; a < s->rank - 2; a++)
		f.batch[a + nbatch - (s->rank - 2)] = s->d[a] == 1 ? 0 : st[a];
	return f;
}

static void print_matmul(const Print *p, const char *y, const char *a, const char *b, int64_t batch, int64_t m, int64_t n, int64_t k, const Factor *fa, const Factor *fb)
{
	text_add(p->t, "code = k_matmul_f32(c, %s, %s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", ", y, a, b, batch, m, n, k);
	text_add(p->t, "(KMat){ %" PRId64 ", %" PRId64 ", %" PRId64 " }, (KMat){ %" PRId64 ", %" PRId64 ", %" PRId64 " }, %s);\n", fa->m.row, fa->m.col, fa->m.batch,
	         fb->m.row, fb->m.col, fb->m.batch, p->epilogue ? p->epilogue : "NULL");
}

/* Axes of the batch are joined as far as both operands allow; what cannot be one batch is a loop around the call. */
static void call_matmul(const Print *p)
{
	Shape a = in_shape(p, 0), b = in_shape(p, 1), y = out_shape(p, 0);
	bool t = !strcmp(p->n->op, "MatMulT"), ta = t && attr_int(p->n, "transA"), tb = t && attr_int(p->n, "transB");
	int64_t k = a.d[a.rank - (ta ? 2 : 1)], m = a.rank > 1 ? a.d[a.rank - (ta ? 1 : 2)] : 1, n = b.rank > 1 ? b.d[b.rank - (tb ? 2 : 1)] : 1;
	int nb = y.rank - (a.rank > 1) - (b.rank > 1), outer = 0;
	Factor fa = factor_of(&a, nb, ta, 0, 1), fb = factor_of(&b, nb, tb, 1, 0);
	int64_t len[8] = { 0 }, as[8] = { 0 }, bs[8] = { 0 }, batch = 1;
	for (int i = 0; i < nb; i++) {
		if (y.d[i] == 1)
			continue;
		if (!outer || as[outer - 1] != fa.batch[i] * y.d[i] || bs[outer - 1] != fb.batch[i] * y.d[i])
			len[outer++] = 1;
		len[outer - 1] *= y.d[i];
		as[outer - 1] = fa.batch[i];
		bs[outer - 1] = fb.batch[i];
	}
	if (outer) {
		outer--;
		batch = len[outer];
		fa.m.batch = as[outer];
		fb.m.batch = bs[outer];
	}
	if (fb.m.batch == 0 && (batch == 1 || m == 1 || fa.m.batch == m * fa.m.row)) {  /* one matrix on the right: the batch is more rows */
		if (m == 1)
			fa.m.row = fa.m.batch;
		m *= batch;
		batch = 1;
		fa.m.batch = 0;
	}
	static const char tabs[] = "\t\t\t\t\t\t\t\t\t";
	Arena *ar = p->e->tree.arena;
	const char *at = take_ptr(p, 0), *bt = take_ptr(p, 1), *yt = make_ptr(p, 0);
	int64_t step = batch * m * n;
	if (outer) {
		yt = arena_printf(ar, "(float *)%s", yt);
		at = arena_printf(ar, "(const float *)%s", at);
		bt = arena_printf(ar, "(const float *)%s", bt);
	}
	for (int i = outer - 1; i >= 0; i--, step *= len[i + 1]) {
		char v = "ijkopq"[i];
		yt = arena_printf(ar, "%s + %c * %" PRId64, yt, v, step);
		at = as[i] ? arena_printf(ar, "%s + %c * %" PRId64, at, v, as[i]) : at;
		bt = bs[i] ? arena_printf(ar, "%s + %c * %" PRId64, bt, v, bs[i]) : bt;
	}
	for (int i = 0; i < outer; i++) {
		char v = "ijkopq"[i];
		text_add(p->t, "%.*sfor (int64_t %c = 0; %c < %" PRId64 " && !code; %c++)\n", i + 1, tabs, v, v, len[i], v);
	}
	text_add(p->t, "%.*s", outer + 1, tabs);
	print_matmul(p, yt, at, bt, batch, m, n, k, &fa, &fb);
}

/* One product: all axes but the last are k. */
static void call_matmul_over(const Print *p)
{
	Shape a = in_shape(p, 0), b = in_shape(p, 1);
	int64_t m = a.d[a.rank - 1], n = b.d[b.rank - 1];
	Factor fa = { { 1, m, 0 }, { 0 } }, fb = { { n, 1, 0 }, { 0 } };
	text_add(p->t, "\t");
	print_matmul(p, make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), 1, m, n, product(&a, 0, a.rank - 1), &fa, &fb);
}

/* outer x n x inner around one axis. */
static void print_axis(const Print *p, const Shape *s, int axis)
{
	text_add(p->t, "%" PRId64 ", %" PRId64 ", %" PRId64, product(s, 0, axis), s->d[axis], product(s, axis + 1, s->rank));
}

static int axis_attr(const Node *n, int rank)
{
	int64_t a = attr_int(n, "axis");
	return (int)(a < 0 ? a + rank : a);
}

static void call_softmax(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_%s_f32(c, %s, %s, ", p->n->row->kernel, make_ptr(p, 0), take_ptr(p, 0));
	print_axis(p, &x, axis_attr(p->n, x.rank));
	text_add(p->t, ")");
}

static void call_softmax_grad(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_%s_f32(c, %s, %s, %s, ", p->n->row->kernel, make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_axis(p, &x, axis_attr(p->n, x.rank));
	text_add(p->t, ")");
}

static bool can_loss(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && n->in[1]->type->elem == DT_INT64;
}

static const char *loss_kind(const Node *n)
{
	const char *r = attr_str(n, "reduction");
	return !strcmp(r, "none") ? "K_LOSS_NONE" : !strcmp(r, "sum") ? "K_LOSS_SUM" : "K_LOSS_MEAN";
}

static void print_loss_tail(const Print *p)
{
	Shape x = in_shape(p, 0);
	print_axis(p, &x, 1);
	if (attr_has(p->n, "ignore_index"))
		text_add(p->t, ", %" PRId64 ", %s)", attr_int(p->n, "ignore_index"), loss_kind(p->n));
	else
		text_add(p->t, ", INT64_MIN, %s)", loss_kind(p->n));
}

static void call_xent(const Print *p)
{
	text_add(p->t, "k_xent_f32(c, %s, %s, %s, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 1), make_ptr(p, 2), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2));
	print_loss_tail(p);
}

static void call_xent_grad(const Print *p)
{
	text_add(p->t, "k_xent_grad_f32(c, %s, %s, %s, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), take_ptr(p, 3), take_ptr(p, 4));
	print_loss_tail(p);
}

static void call_nll(const Print *p)
{
	text_add(p->t, "k_nll_f32(c, %s, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2));
	print_loss_tail(p);
}

/* ---- norms ---- */

static bool all_float(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && emit_stored(n->in[i]->type->elem) != DT_FLOAT)
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && emit_stored(n->out[i]->type->elem) != DT_FLOAT)
			return false;
	return true;
}

/* A vector of parameters has an element for each of the normalised axes: nothing is broadcast. */
static bool fills_axes(const Value *v, const Type *x, int axis)
{
	int64_t n = 1;
	for (int i = axis; i < x->rank; i++)
		n *= x->dim[i];
	return !v || type_elements(v->type) == n;
}

static bool can_layernorm(const Node *n)
{
	const Type *x = n->in[0]->type;
	int axis = axis_attr(n, x->rank);
	return all_float(n) && fills_axes(n->in[1], x, axis) && (n->nin < 3 || fills_axes(n->in[2], x, axis));
}

static bool can_layernorm_grad(const Node *n)
{
	const Type *x = n->in[1]->type;
	return all_float(n) && fills_axes(n->in[2], x, axis_attr(n, x->rank));
}

/* Rows and their length. */
static void print_rows(const Print *p, const Shape *x)
{
	int axis = axis_attr(p->n, x->rank);
	text_add(p->t, "%" PRId64 ", %" PRId64, product(x, 0, axis), product(x, axis, x->rank));
}

static const char *real(const Print *p, double v)
{
	char *s = arena_printf(p->e->tree.arena, "%.9g", v);
	return arena_printf(p->e->tree.arena, "%s%sf", s, strpbrk(s, ".en") ? "" : ".0");
}

static void call_layernorm(const Print *p)
{
	Shape x = in_shape(p, 0);
	bool rms = !strcmp(p->n->op, "RMSNormalization");
	text_add(p->t, "k_layernorm_f32(c, %s, %s, %s, %s, %s, %s, ", make_ptr(p, 0), rms ? "NULL" : make_ptr(p, 1), make_ptr(p, rms ? 1 : 2), take_ptr(p, 0),
	         take_ptr(p, 1), take_ptr(p, 2));
	print_rows(p, &x);
	text_add(p->t, ", %s, %s)", rms ? "false" : "true", real(p, attr_float(p->n, "epsilon")));
}

/* batch, groups, channels of a group, the rest; groups < 1: one channel each. */
static void print_groups(const Print *p, const Shape *x, int64_t groups)
{
	groups = groups < 1 ? x->d[1] : groups;
	text_add(p->t, "%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64, x->d[0], groups, x->d[1] / groups, product(x, 2, x->rank));
}

static void print_channels(const Print *p, const Shape *x)
{
	text_add(p->t, "%" PRId64 ", %" PRId64 ", %" PRId64, x->d[0], x->d[1], product(x, 2, x->rank));
}

static bool can_groupnorm(const Node *n)
{
	return all_float(n) && n->in[1]->type->dim[0] == n->in[0]->type->dim[1];
}

static void call_groupnorm(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_groupnorm_f32(c, %s, %s, %s, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 1), make_ptr(p, 2), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2));
	print_groups(p, &x, strcmp(p->n->op, "GroupNormalization") ? 0 : attr_int(p->n, "num_groups"));
	text_add(p->t, ", %s)", real(p, attr_float(p->n, "epsilon")));
}

/* Statistics of the batch; others make it pointwise. */
static bool can_batchnorm(const Node *n)
{
	return all_float(n) && n->row->since >= 14 && attr_int(n, "training_mode");
}

static void call_batchnorm(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_batchnorm_f32(c, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 1), make_ptr(p, 2), make_ptr(p, 3), make_ptr(p, 4),
	         take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), take_ptr(p, 3), take_ptr(p, 4));
	print_channels(p, &x);
	text_add(p->t, ", %s, %s)", real(p, attr_float(p->n, "epsilon")), real(p, attr_float(p->n, "momentum")));
}

static void call_norm_grad(const Print *p)
{
	Shape x = in_shape(p, 1);
	text_add(p->t, "k_%s_f32(c, %s, %s, %s, %s, %s, %s, ", p->n->row->kernel, make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), take_ptr(p, 3),
	         take_ptr(p, 4));
	*p->n->op == 'L' ? print_rows(p, &x) : *p->n->op == 'G' ? print_groups(p, &x, attr_int(p->n, "num_groups")) : print_channels(p, &x);
	text_add(p->t, ")");
}

static void call_norm_grad_w(const Print *p)
{
	Shape x = in_shape(p, 1);
	text_add(p->t, "k_%s_f32(c, %s, %s, %s, %s, %s, %s, ", p->n->row->kernel, make_ptr(p, 0), make_ptr(p, 1), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 3),
	         take_ptr(p, 4));
	*p->n->op == 'L' ? print_rows(p, &x) : *p->n->op == 'G' ? print_groups(p, &x, attr_int(p->n, "num_groups")) : print_channels(p, &x);
	text_add(p->t, ")");
}

static bool can_gather(const Node *n)
{
	return emit_bits(n->in[0]) == 32 && n->in[1]->type->elem == DT_INT64;
}

static void call_gather(const Print *p)
{
	Shape x = in_shape(p, 0), i = in_shape(p, 1);
	text_add(p->t, "k_gather_32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_axis(p, &x, axis_attr(p->n, x.rank));
	text_add(p->t, ", %" PRId64 ")", product(&i, 0, i.rank));
}

static bool can_gather_elements(const Node *n)
{
	return emit_bits(n->in[0]) == 32 && n->in[1]->type->elem == DT_INT64;
}

/* Loops over the index that move in x, but not along the axis that is indexed. */
static void print_elements(const Print *p)
{
	Shape x = in_shape(p, 0), i = in_shape(p, 1);
	int axis = axis_attr(p->n, x.rank);
	int64_t st[8];
	Loops l = { 0 };
	strides_of(&x, st);
	for (int a = 0; a < i.rank; a++)
		loop_add(&l, i.d[a], a == axis ? 0 : st[a]);
	print_loops(p, &l);
	text_add(p->t, ", %" PRId64 ", %" PRId64 ")", x.d[axis], st[axis]);
}

static void call_gather_elements(const Print *p)
{
	text_add(p->t, "k_gather_elements_32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_elements(p);
}

static bool can_scatter_elements(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && n->in[1]->type->elem == DT_INT64 && !strcmp(attr_str(n, "reduction"), "add");
}

static void call_scatter_elements(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_scatter_add_f32(c, %s, %s, %s, %s, %" PRId64 ", ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), product(&x, 0, x.rank));
	print_elements(p);
}

/* Loops over the axes of a part, with the strides of what it is a part of and of itself; joined where both allow. */
static void print_move(const Print *p, int w, const char *y, int64_t yoff, const Shape *len, const int64_t *yst, const char *x, int64_t xoff, const int64_t *xst)
{
	Loops to = { 0 }, from = { 0 };
	for (int a = 0; a < len->rank; a++) {
		if (len->d[a] == 1)
			continue;
		bool join = to.n && to.stride[to.n - 1] == len->d[a] * yst[a] && from.stride[from.n - 1] == len->d[a] * xst[a];
		if (!join) {
			to.len[to.n++] = 1;
			from.len[from.n++] = 1;
		}
		to.len[to.n - 1] *= len->d[a];
		from.len[from.n - 1] *= len->d[a];
		to.stride[to.n - 1] = yst[a];
		from.stride[from.n - 1] = xst[a];
	}
	bool plain = w == 32 || w == 64;
	text_add(p->t, "\tif (!code)\n\t\tcode = k_move%s(c, %s, %" PRId64 ", %s, %" PRId64 ", ", !plain ? "" : w == 32 ? "_32" : "_64", y, yoff, x, xoff);
	print_loops(p, &to);
	text_add(p->t, ", ");
	print_loops(p, &from);
	if (!plain)
		text_add(p->t, ", %d", w / 8);
	text_add(p->t, ");\n");
}

static bool can_move(const Node *n)
{
	int w = emit_bits(n->in[0]);
	return w == 32 || w == 64;
}

static void call_concat(const Print *p)
{
	Shape y = out_shape(p, 0);
	int axis = axis_attr(p->n, y.rank);
	int64_t yst[8], xst[8], at = 0;
	strides_of(&y, yst);
	for (int i = 0; i < p->n->nin; i++) {
		Shape x = in_shape(p, i);
		strides_of(&x, xst);
		print_move(p, emit_bits(p->n->in[0]), make_ptr(p, 0), at * yst[axis], &x, yst, take_ptr(p, i), 0, xst);
		at += x.d[axis];
	}
}

static void call_split(const Print *p)
{
	Shape x = in_shape(p, 0);
	int axis = axis_attr(p->n, x.rank);
	int64_t yst[8], xst[8], at = 0;
	strides_of(&x, xst);
	for (int i = 0; i < p->n->nout; i++) {
		Shape y = out_shape(p, i);
		strides_of(&y, yst);
		print_move(p, emit_bits(p->n->in[0]), make_ptr(p, i), 0, &y, yst, take_ptr(p, 0), at * xst[axis], xst);
		at += y.d[axis];
	}
}

/* Starts and steps of each axis, from constant operands in[at] to in[at + 3]; x is the shape that is sliced. */
static int64_t slices(const Print *p, int at, const Shape *x, int64_t *stride)
{
	const Node *n = p->n;
	const Tensor *s = in_const(n, at), *e = in_const(n, at + 1), *ax = n->nin > at + 2 && n->in[at + 2] ? in_const(n, at + 2) : NULL;
	const Tensor *st = n->nin > at + 3 && n->in[at + 3] ? in_const(n, at + 3) : NULL;
	int64_t offset = 0, dense[8];
	strides_of(x, dense);
	memcpy(stride, dense, sizeof dense);
	for (int64_t k = 0; k < tensor_elements(s); k++) {
		int64_t a = ax ? tensor_int(ax, k) : k, from = tensor_int(s, k), to = tensor_int(e, k), step = st ? tensor_int(st, k) : 1;
		a = a < 0 ? a + x->rank : a;
		slice_clamp(&from, &to, step, x->d[a]);
		offset += from * dense[a];
		stride[a] = step * dense[a];
	}
	return offset;
}

static bool can_slice_at(const Node *n, int at)
{
	for (int i = at; i < n->nin; i++)
		if (n->in[i] && !in_const(n, i))
			return false;
	return dtype_bits(n->in[0]->type->elem) >= 8 && type_elements(n->out[0]->type) > 0;
}

static bool can_slice(const Node *n)
{
	return can_move(n) && can_slice_at(n, 1);
}

static bool can_slice_any(const Node *n)
{
	return can_slice_at(n, 1);
}

static bool can_slice_grad(const Node *n)
{
	return can_slice_at(n, 2) && emit_bits(n->in[0]) == 32;
}

static void call_slice(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, 0);
	int64_t xst[8], yst[8], offset = slices(p, 1, &x, xst);
	strides_of(&y, yst);
	print_move(p, emit_bits(p->n->in[0]), make_ptr(p, 0), 0, &y, yst, take_ptr(p, 0), offset, xst);
}

static void call_slice_grad(const Print *p)
{
	Shape dy = in_shape(p, 0), y = out_shape(p, 0);
	int64_t xst[8], yst[8], offset = slices(p, 2, &y, yst);
	strides_of(&dy, xst);
	text_add(p->t, "\tcode = k_zero_32(c, %s, %" PRId64 ");\n", make_ptr(p, 0), product(&y, 0, y.rank));
	print_move(p, 32, make_ptr(p, 0), offset, &dy, yst, take_ptr(p, 0), 0, xst);
}

static bool can_gather_grad(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && n->in[2]->type->elem == DT_INT64;
}

static void call_gather_grad(const Print *p)
{
	Shape y = out_shape(p, 0), i = in_shape(p, 2);
	text_add(p->t, "k_gather_grad_f32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 2));
	print_axis(p, &y, axis_attr(p->n, y.rank));
	text_add(p->t, ", %" PRId64 ")", product(&i, 0, i.rank));
}

/* ---- attention ---- */

/* [B, S, H * D] or [B, H, S, D]. */
typedef struct HeadShape { int64_t batch, heads, seq, width, sbatch, shead, srow; } HeadShape;

static HeadShape head_shape(const Shape *s, int64_t heads)
{
	if (s->rank == 3)
		return (HeadShape){ s->d[0], heads, s->d[1], s->d[2] / heads, s->d[1] * s->d[2], s->d[2] / heads, s->d[2] };
	return (HeadShape){ s->d[0], s->d[1], s->d[2], s->d[3], s->d[1] * s->d[2] * s->d[3], s->d[2] * s->d[3], s->d[3] };
}

static void print_heads(const Print *p, const HeadShape *h)
{
	text_add(p->t, ", { %" PRId64 ", %" PRId64 ", %" PRId64 " }", h->sbatch, h->shead, h->srow);
}

static int64_t heads_of(const Node *n, const char *attr)
{
	return n->in[0]->type->rank == 3 ? attr_int(n, attr) : 0;
}

/* No cache, no lengths, no other result; a mask covers all keys, or is broadcast over them. */
static bool can_attention(const Node *n)
{
	bool grad = !strcmp(n->op, "AttentionGrad");
	const Type *q = n->in[0]->type, *k = n->in[1]->type, *m = n->nin > 3 && n->in[3] ? n->in[3]->type : NULL;
	for (int i = 0; i < 3; i++)
		if (n->in[i]->type->elem != DT_FLOAT)
			return false;
	for (int i = 4; i < n->nin && !grad; i++)
		if (n->in[i])
			return false;
	for (int i = 1; i < n->nout && i < 4 && !grad; i++)
		if (n->out[i])
			return false;
	if (m && ((m->elem != DT_FLOAT && m->elem != DT_BOOL) || m->rank < 1 || m->rank > 4 || (m->dim[m->rank - 1] != 1 && m->dim[m->rank - 1] != k->dim[k->rank - 2])))
		return false;
	return !attr_has(n, "softmax_precision") && q->rank == k->rank;
}

static int64_t window_attr(const Node *n, const char *name)
{
	return n->row->since >= 25 || !strcmp(n->op, "AttentionGrad") ? attr_int(n, name) : -1;
}

static void print_attention(const Print *p)
{
	const Node *n = p->n;
	Shape qs = in_shape(p, 0), ks = in_shape(p, 1), vs = in_shape(p, 2);
	HeadShape q = head_shape(&qs, heads_of(n, "q_num_heads")), k = head_shape(&ks, heads_of(n, "kv_num_heads")), v = head_shape(&vs, heads_of(n, "kv_num_heads"));
	HeadShape y = q, m = { 0 };
	y.width = v.width;
	y.shead = qs.rank == 3 ? v.width : q.seq * v.width;
	y.srow = qs.rank == 3 ? q.heads * v.width : v.width;
	y.sbatch = q.heads * q.seq * v.width;
	int64_t mcol = 0, left = window_attr(n, "left_window_size"), right = window_attr(n, "right_window_size"), none = q.seq + k.seq;
	const char *mask = "K_MASK_NONE";
	if (n->nin > 3 && n->in[3]) {
		Shape s = in_shape(p, 3);
		int64_t st[8], *to[4] = { &m.sbatch, &m.shead, &m.srow, &mcol };
		strides_of(&s, st);
		for (int a = 0; a < s.rank; a++)
			*to[a + 4 - s.rank] = s.d[a] == 1 ? 0 : st[a];
		mask = n->in[3]->type->elem == DT_BOOL ? "K_MASK_BOOL" : "K_MASK_ADD";
	}
	left = left < 0 ? none : left;
	right = right < 0 ? none : right;
	if (attr_int(n, "is_causal"))
		right = 0;
	double scale = attr_has(n, "scale") ? attr_float(n, "scale") : 1 / sqrt((double)q.width);
	text_add(p->t, "&(KAttention){ %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64, q.batch, q.heads, k.heads, q.seq, k.seq,
	         q.width, v.width);
	print_heads(p, &q), print_heads(p, &k), print_heads(p, &v), print_heads(p, &y), print_heads(p, &m);
	text_add(p->t, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %s, %s, %s })", mcol, left, right, real(p, scale), real(p, attr_float(n, "softcap")), mask);
}

static void call_attention(const Print *p)
{
	text_add(p->t, "k_attention_f32(c, %s, %s, %s, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 4), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), take_ptr(p, 3));
	print_attention(p);
}

static void call_attention_grad(const Print *p)
{
	text_add(p->t, "k_attention_grad_f32(c, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 1), make_ptr(p, 2), take_ptr(p, 0),
	         take_ptr(p, 1), take_ptr(p, 2), take_ptr(p, 3), take_ptr(p, 4), take_ptr(p, 5), take_ptr(p, 6));
	print_attention(p);
}

static bool can_rotary(const Node *n)
{
	for (int i = 0; i < 3; i++)
		if (emit_stored(n->in[i]->type->elem) != DT_FLOAT)
			return false;
	return n->in[1]->type->rank == 2 || n->in[1]->type->dim[0] == n->in[0]->type->dim[0];
}

static void call_rotary(const Print *p)
{
	const Node *n = p->n;
	Shape xs = in_shape(p, 0), cs = in_shape(p, 1);
	HeadShape x = head_shape(&xs, heads_of(n, "num_heads"));
	int64_t rot = attr_int(n, "rotary_embedding_dim");
	text_add(p->t, "k_rotary_f32(c, %s, %s, %s, %s, %s, &(KRotary){ %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64, make_ptr(p, 0),
	         take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), take_ptr(p, 3), x.batch, x.heads, x.seq, x.width, rot ? rot : x.width, cs.d[0]);
	print_heads(p, &x);
	text_add(p->t, ", %d })", attr_int(n, "interleaved") != 0);
}

/* ---- windows ---- */

static bool planes(const Type *t)
{
	return emit_stored(t->elem) == DT_FLOAT && (t->rank == 3 || t->rank == 4);
}

static bool can_conv(const Node *n)
{
	return planes(n->in[0]->type);
}

static bool can_maxpool(const Node *n)
{
	return planes(n->in[0]->type) && (n->nout < 2 || !n->out[1]);
}

/* One spatial axis is a plane of one row. */
static void print_window(const Print *p, const Shape *x, const int64_t *kernel, const Shape *y)
{
	Window w;
	int nd = x->rank - 2;
	if (window_read(p->n, nd, kernel, &w) || window_fit(p->n, &w, x->d + 2))
		return;
	const int64_t *field[] = { w.k, w.stride, w.dil, w.lo, x->d + 2, y->d + 2 };
	text_add(p->t, "(KWindow){");
	for (int i = 0; i < 6; i++) {
		int64_t one = i == 3 ? 0 : 1;
		text_add(p->t, "%s { %" PRId64 ", %" PRId64 " }", i ? "," : "", nd == 2 ? field[i][0] : one, field[i][nd - 1]);
	}
	text_add(p->t, " })");
}

static void print_conv(const Print *p, const Shape *x, const Shape *w, const Shape *y)
{
	int64_t groups = attr_int(p->n, "group");
	text_add(p->t, "%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", ", x->d[0], groups, w->d[1], w->d[0] / groups);
	print_window(p, x, w->d + 2, y);
}

static void call_conv(const Print *p)
{
	Shape x = in_shape(p, 0), w = in_shape(p, 1), y = out_shape(p, 0);
	text_add(p->t, "k_conv_f32(c, %s, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2));
	print_conv(p, &x, &w, &y);
}

static void call_conv_grad_x(const Print *p)
{
	Shape g = in_shape(p, 0), w = in_shape(p, 1), x = out_shape(p, 0);
	text_add(p->t, "k_conv_grad_x_f32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_conv(p, &x, &w, &g);
}

static void call_conv_grad_w(const Print *p)
{
	Shape x = in_shape(p, 0), g = in_shape(p, 1), w = out_shape(p, 0);
	text_add(p->t, "k_conv_grad_w_f32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_conv(p, &x, &w, &g);
}

static void print_pool(const Print *p, const Shape *x, const Shape *y)
{
	int len;
	const int64_t *k = attr_ints(p->n, "kernel_shape", &len);
	text_add(p->t, "%" PRId64 ", ", x->d[0] * x->d[1]);
	print_window(p, x, k, y);
}

static void call_maxpool(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, 0);
	text_add(p->t, "k_maxpool_f32(c, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0));
	print_pool(p, &x, &y);
}

static void call_maxpool_grad(const Print *p)
{
	Shape g = in_shape(p, 0), x = in_shape(p, 1);
	text_add(p->t, "k_maxpool_grad_f32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_pool(p, &x, &g);
}

static bool can_random(const Node *n)
{
	return n->out[0]->type->elem == DT_FLOAT;
}

/* Numbers of the part that a rank holds of a micro-batch: where it begins in the logical tensor, and how its axes move there. */
static void call_random(const Print *p)
{
	const Node *n = p->n;
	const Slot *y = p->make[0];
	Shape part = out_shape(p, 0), whole = { .rank = y->rank };
	int64_t times = attr_int(n, "times"), axis = attr_int(n, "axis"), st[8];
	Loops l = { 0 };
	for (int a = 0; a < y->rank; a++)
		whole.d[a] = y->dim[a] * (a == axis ? times : 1);
	strides_of(&whole, st);
	uint64_t key = attr_has(n, "key") ? (uint64_t)attr_int(n, "key") : emit_key(n->out[0]->name);
	text_add(p->t, "k_random_uniform_f32(c, %s, ", make_ptr(p, 0));
	if (attr_has(n, "seed"))
		text_add(p->t, "0x%016" PRIx64 "u, ", (uint64_t)attr_int(n, "seed"));
	else
		text_add(p->t, "c->seed, ");
	text_add(p->t, n->nin > 2 && n->in[2] ? "(uint64_t)c->step, " : "0, ");
	text_add(p->t, "0x%016" PRIx64 "u, ", key);
	if (times > 1)
		text_add(p->t, "c->micro * %" PRId64, y->dim[axis] * st[axis]);
	else
		text_add(p->t, "0");
	for (int a = 0; a < y->rank; a++)
		if (y->split[a] >= 0)
			text_add(p->t, " + c->me->origin[SPLIT%d] * %" PRId64, y->split[a], st[a]);
	text_add(p->t, ", ");
	for (int a = 0; a < y->rank; a++)
		loop_add(&l, part.d[a], st[a]);
	print_loops(p, &l);
	text_add(p->t, ")");
}

static bool can_zeros(const Node *n)
{
	int w = emit_bits(n->out[0]);
	return w == 32 || w == 64;
}

static void call_zeros(const Print *p)
{
	Shape y = out_shape(p, 0);
	text_add(p->t, "k_zero_32(c, %s, %" PRId64 ")", make_ptr(p, 0), product(&y, 0, y.rank) * (emit_bits(p->n->out[0]) / 32));
}

/* ---- windows over any number of axes ---- */

static bool can_nd(const Node *n)
{
	const Type *t = n->in[0]->type;
	return emit_stored(t->elem) == DT_FLOAT && t->rank > 2 && t->rank <= 2 + 6;
}

static bool can_maxpool_nd(const Node *n)
{
	return can_nd(n) && (strcmp(n->op, "MaxPool") || !attr_int(n, "storage_order"));
}

static void print_windows(const Print *p, const Shape *x, const int64_t *kernel, const Shape *y)
{
	Window w;
	int nd = x->rank - 2;
	if (window_read(p->n, nd, kernel, &w) || window_fit(p->n, &w, x->d + 2))
		return;
	const int64_t *field[] = { w.k, w.stride, w.dil, w.lo, w.hi, x->d + 2, y->d + 2 };
	text_add(p->t, "&(KWindows){ %d", nd);
	for (int i = 0; i < 7; i++)
		for (int a = 0; a < nd; a++)
			text_add(p->t, "%s%" PRId64 "%s", a ? ", " : ", { ", field[i][a], a == nd - 1 ? " }" : "");
	text_add(p->t, " }");
}

/* conv, conv_grad_x, conv_grad_w: the result and its two or three operands; x, w and y stand in different places. */
static void call_conv_nd(const Print *p)
{
	const char *k = p->n->row->kernel;
	bool gx = !strcmp(k, "conv_grad_x"), gw = !strcmp(k, "conv_grad_w");
	Shape x = gx ? out_shape(p, 0) : in_shape(p, 0), w = gw ? out_shape(p, 0) : in_shape(p, 1), y = gx ? in_shape(p, 0) : gw ? in_shape(p, 1) : out_shape(p, 0);
	int64_t groups = attr_int(p->n, "group");
	text_add(p->t, "k_conv_nd%s_f32(c, %s, %s, %s, ", gx ? "_grad_x" : gw ? "_grad_w" : "", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	if (!gx && !gw)
		text_add(p->t, "%s, ", take_ptr(p, 2));
	text_add(p->t, "%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", ", x.d[0], groups, w.d[1], w.d[0] / groups);
	print_windows(p, &x, w.d + 2, &y);
	text_add(p->t, ")");
}

static void print_pool_nd(const Print *p, const Shape *x, const Shape *y)
{
	int len;
	const int64_t *k = attr_ints(p->n, "kernel_shape", &len);
	text_add(p->t, "%" PRId64 ", ", x->d[0] * x->d[1]);
	print_windows(p, x, k, y);
}

static void call_maxpool_nd(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, p->make[0] ? 0 : 1);
	text_add(p->t, "k_maxpool_nd_f32(c, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 1), take_ptr(p, 0));
	print_pool_nd(p, &x, &y);
	text_add(p->t, ")");
}

static void call_maxpool_nd_grad(const Print *p)
{
	Shape g = in_shape(p, 0), x = in_shape(p, 1);
	text_add(p->t, "k_maxpool_nd_grad_f32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_pool_nd(p, &x, &g);
	text_add(p->t, ")");
}

/* sumpool, avgpool and their gradients: of what is small to what is large. */
static void call_sumpool(const Print *p)
{
	bool grad = strstr(p->n->row->kernel, "_grad") != NULL, mean = *p->n->row->kernel == 'a';
	Shape x = grad ? out_shape(p, 0) : in_shape(p, 0), y = grad ? in_shape(p, 0) : out_shape(p, 0);
	text_add(p->t, "k_sumpool%s_f32(c, %s, %s, ", grad ? "_grad" : "", make_ptr(p, 0), take_ptr(p, 0));
	print_pool_nd(p, &x, &y);
	text_add(p->t, ", %s)", !mean ? "K_POOL_SUM" : attr_int(p->n, "count_include_pad") ? "K_POOL_PADDED" : "K_POOL_MEAN");
}

/* ---- elements of any width ---- */

static int64_t bytes(const Value *v)
{
	return emit_bits(v) / 8;
}

static bool can_any(const Node *n)
{
	return emit_bits(n->in[0]) >= 8 && n->in[0]->type->rank <= 8 && n->out[0] && type_elements(n->out[0]->type) > 0;
}

static bool consts_from(const Node *n, int at)
{
	for (int i = at; i < n->nin; i++)
		if (n->in[i] && !in_const(n, i))
			return false;
	return true;
}

static int64_t const_int(const Node *n, int i, int64_t otherwise)
{
	const Tensor *t = i < n->nin && n->in[i] ? in_const(n, i) : NULL;
	return t ? tensor_int(t, 0) : otherwise;
}

/* Each axis is a repeat around it: axes of y by strides of x, of which a repeat moves 0. */
static bool tile_loops(const Node *n, const Shape *x, Loops *l)
{
	const Tensor *r = in_const(n, 1);
	int64_t st[8];
	strides_of(x, st);
	for (int a = 0; a < x->rank; a++)
		for (int k = 0; k < 2; k++) {
			if (l->n == 8)
				return false;
			loop_add(l, k ? x->d[a] : tensor_int(r, a), k ? st[a] : 0);
		}
	return true;
}

static Shape type_shape(const Type *t)
{
	Shape s = { .rank = t->rank };
	for (int a = 0; a < t->rank; a++)
		s.d[a] = t->dim[a];
	return s;
}

static bool can_tile(const Node *n)
{
	Loops l = { 0 };
	if (!can_any(n) || !consts_from(n, 1) || !can_copy(n))
		return false;
	Shape x = type_shape(n->in[0]->type);
	return tile_loops(n, &x, &l);
}

static void call_tile(const Print *p)
{
	Shape x = in_shape(p, 0);
	Loops l = { 0 };
	tile_loops(p->n, &x, &l);
	call_copy(p, 0, &l);
}

static bool can_pad(const Node *n)
{
	return can_any(n) && in_const(n, 1) && (n->nin < 4 || !n->in[3] || in_const(n, 3));
}

static bool can_pad_grad(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && n->in[0]->type->rank <= 8 && consts_from(n, 2);
}

static void print_dims(const Print *p, const int64_t *d, int n)
{
	for (int i = 0; i < n; i++)
		text_add(p->t, "%s%" PRId64, i ? ", " : "{ ", d[i]);
	text_add(p->t, n ? " }" : "{ 0 }");
}

static void print_pad(const Print *p, int at, const Shape *x, const Shape *y)
{
	static const char *const mode[][2] = { { "reflect", "K_PAD_REFLECT" }, { "edge", "K_PAD_EDGE" }, { "wrap", "K_PAD_WRAP" } };
	int64_t before[RANK_MAX], after[RANK_MAX];
	const char *how = "K_PAD_CONSTANT";
	for (size_t i = 0; i < sizeof mode / sizeof mode[0]; i++)
		if (!strcmp(attr_str(p->n, "mode"), mode[i][0]))
			how = mode[i][1];
	if (pad_read(p->n, at, 3, x->rank, before, after))
		return;
	text_add(p->t, "&(KPad){ %d, %s, ", x->rank, how);
	print_dims(p, x->d, x->rank);
	text_add(p->t, ", ");
	print_dims(p, y->d, y->rank);
	text_add(p->t, ", ");
	print_dims(p, before, x->rank);
	text_add(p->t, " }");
}

static void call_pad(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, 0);
	text_add(p->t, "k_pad(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 2));
	print_pad(p, 1, &x, &y);
	text_add(p->t, ", %" PRId64 ")", bytes(p->n->in[0]));
}

static void call_pad_grad(const Print *p)
{
	Shape y = in_shape(p, 0), x = out_shape(p, 0);
	text_add(p->t, "k_pad_grad_f32(c, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0));
	print_pad(p, 2, &x, &y);
	text_add(p->t, ")");
}

static bool can_trilu(const Node *n)
{
	return can_any(n) && consts_from(n, 1);
}

static void call_trilu(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_trilu(c, %s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %s, %" PRId64 ")", make_ptr(p, 0), take_ptr(p, 0),
	         product(&x, 0, x.rank - 2), x.d[x.rank - 2], x.d[x.rank - 1], const_int(p->n, 1, 0), attr_int(p->n, "upper") ? "true" : "false", bytes(p->n->in[0]));
}

static bool can_eye(const Node *n)
{
	const Type *y = n->out[0]->type;
	return emit_stored(y->elem) == DT_FLOAT || y->elem == DT_DOUBLE || y->elem == DT_INT64 || y->elem == DT_INT32 || y->elem == DT_BOOL;
}

/* Zeros, then ones along the diagonal. */
static void call_eye(const Print *p)
{
	Shape y = out_shape(p, 0);
	int64_t k = attr_int(p->n, "k"), rows = y.d[0], cols = y.d[1], from = k < 0 ? -k * cols : k, len = k < 0 ? rows + k : cols - k;
	Loops all = { 0 }, diagonal = { 0 };
	const char *ct = emit_ctype(p->n->out[0]->type->elem);
	loop_add(&all, rows * cols, 1);
	len = len > rows ? rows : len > cols ? cols : len;
	text_add(p->t, "\tcode = k_fill(c, %s, 0, ", make_ptr(p, 0));
	print_loops(p, &all);
	text_add(p->t, ", &(%s){ 0 }, %" PRId64 ");\n", ct, bytes(p->n->out[0]));
	if (len < 1)
		return;
	loop_add(&diagonal, len, cols + 1);
	text_add(p->t, "\tif (!code)\n\t\tcode = k_fill(c, %s, %" PRId64 ", ", make_ptr(p, 0), from);
	print_loops(p, &diagonal);
	text_add(p->t, ", &(%s){ 1 }, %" PRId64 ");\n", ct, bytes(p->n->out[0]));
}

static bool can_reverse(const Node *n)
{
	return can_any(n) && n->in[1]->type->elem == DT_INT64;
}

/* The first two axes are batch and time, in one order or the other; what follows moves as one element. */
static void call_reverse(const Print *p)
{
	Shape x = in_shape(p, 0);
	int time = (int)attr_int(p->n, "time_axis"), batch = (int)attr_int(p->n, "batch_axis");
	text_add(p->t, "k_reverse_sequence(c, %s, %s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ")", make_ptr(p, 0), take_ptr(p, 0),
	         take_ptr(p, 1), x.d[batch], x.d[time], batch == 0 ? x.d[1] : (int64_t)1, time == 0 ? x.d[1] : (int64_t)1, product(&x, 2, x.rank) * bytes(p->n->in[0]));
}

static bool by_int64(const Node *n)
{
	return can_any(n) && n->in[1]->type->elem == DT_INT64;
}

static void call_gather_any(const Print *p)
{
	Shape x = in_shape(p, 0), i = in_shape(p, 1);
	text_add(p->t, "k_gather(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_axis(p, &x, axis_attr(p->n, x.rank));
	text_add(p->t, ", %" PRId64 ", %" PRId64 ")", product(&i, 0, i.rank), bytes(p->n->in[0]));
}

/* Loops over the index that move in x, but not along the axis that is indexed, then that axis. */
static void print_elements_any(const Print *p)
{
	Shape x = in_shape(p, 0), i = in_shape(p, 1);
	int axis = axis_attr(p->n, x.rank);
	int64_t st[8];
	Loops l = { 0 };
	strides_of(&x, st);
	for (int a = 0; a < i.rank; a++)
		loop_add(&l, i.d[a], a == axis ? 0 : st[a]);
	print_loops(p, &l);
	text_add(p->t, ", %" PRId64 ", %" PRId64, x.d[axis], st[axis]);
}

static void call_gather_elements_any(const Print *p)
{
	text_add(p->t, "k_gather_elements(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_elements_any(p);
	text_add(p->t, ", %" PRId64 ")", bytes(p->n->in[0]));
}

static const char *scatter_how(const Node *n)
{
	const char *r = attr_has(n, "reduction") ? attr_str(n, "reduction") : "none";
	return !strcmp(r, "add") ? "K_ADD" : !strcmp(r, "mul") ? "K_MUL" : !strcmp(r, "max") ? "K_LARGEST" : !strcmp(r, "min") ? "K_SMALLEST" : "K_PUT";
}

static bool can_scatter(const Node *n)
{
	return by_int64(n) && (emit_stored(n->in[0]->type->elem) == DT_FLOAT || !strcmp(scatter_how(n), "K_PUT"));
}

static void call_scatter_any(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_scatter_elements(c, %s, %s, %s, %s, %" PRId64 ", ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), product(&x, 0, x.rank));
	print_elements_any(p);
	text_add(p->t, ", %s, %" PRId64 ")", scatter_how(p->n), bytes(p->n->in[0]));
}

static void print_nd(const Print *p, const Shape *x, const Shape *index, int batch)
{
	int depth = (int)index->d[index->rank - 1];
	int64_t st[8];
	strides_of(x, st);
	text_add(p->t, "&(KNd){ %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", { %d, ", product(index, 0, batch), product(index, batch, index->rank - 1),
	         product(x, batch, x->rank), product(x, batch + depth, x->rank), depth);
	print_dims(p, x->d + batch, depth);
	text_add(p->t, ", ");
	print_dims(p, st + batch, depth);
	text_add(p->t, " } }");
}

static bool can_gather_nd_grad(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && n->in[2]->type->elem == DT_INT64 && n->in[1]->type->rank <= 8;
}

static void call_gather_nd(const Print *p)
{
	Shape x = in_shape(p, 0), i = in_shape(p, 1);
	text_add(p->t, "k_gather_nd(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_nd(p, &x, &i, (int)attr_int(p->n, "batch_dims"));
	text_add(p->t, ", %" PRId64 ")", bytes(p->n->in[0]));
}

static void call_gather_nd_grad(const Print *p)
{
	Shape x = out_shape(p, 0), i = in_shape(p, 2);
	text_add(p->t, "k_gather_nd_grad_f32(c, %s, %s, %s, %" PRId64 ", ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 2), product(&x, 0, x.rank));
	print_nd(p, &x, &i, (int)attr_int(p->n, "batch_dims"));
	text_add(p->t, ")");
}

static void call_scatter_nd(const Print *p)
{
	Shape x = in_shape(p, 0), i = in_shape(p, 1);
	text_add(p->t, "k_scatter_nd(c, %s, %s, %s, %s, %" PRId64 ", ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), take_ptr(p, 2), product(&x, 0, x.rank));
	print_nd(p, &x, &i, 0);
	text_add(p->t, ", %s, %" PRId64 ")", scatter_how(p->n), bytes(p->n->in[0]));
}

static bool can_one_hot(const Node *n)
{
	return n->in[0]->type->elem == DT_INT64 && emit_bits(n->in[2]) >= 8 && type_elements(n->out[0]->type) > 0;
}

static void call_one_hot(const Print *p)
{
	Shape y = out_shape(p, 0);
	text_add(p->t, "k_one_hot(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 2));
	print_axis(p, &y, axis_attr(p->n, y.rank));
	text_add(p->t, ", %" PRId64 ")", bytes(p->n->in[2]));
}

static void call_compress(const Print *p)
{
	Shape x = in_shape(p, 0), k = in_shape(p, 1);
	text_add(p->t, "k_compress(c, %s, %s, %s, %" PRId64 ", ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1), k.d[0]);
	if (attr_has(p->n, "axis"))
		print_axis(p, &x, axis_attr(p->n, x.rank));
	else
		text_add(p->t, "1, %" PRId64 ", 1", product(&x, 0, x.rank));
	text_add(p->t, ", %" PRId64 ")", bytes(p->n->in[0]));
}

static bool can_cumsum(const Node *n)
{
	return (emit_stored(n->in[0]->type->elem) == DT_FLOAT || n->in[0]->type->elem == DT_INT64) && in_const(n, 1);
}

static void call_cumsum(const Print *p)
{
	Shape x = in_shape(p, 0);
	int64_t axis = const_int(p->n, 1, 0);
	text_add(p->t, "k_cumsum_%s(c, %s, %s, ", emit_stored(p->n->in[0]->type->elem) == DT_FLOAT ? "f32" : "i64", make_ptr(p, 0), take_ptr(p, 0));
	print_axis(p, &x, (int)(axis < 0 ? axis + x.rank : axis));
	text_add(p->t, ", %s, %s)", attr_int(p->n, "exclusive") ? "true" : "false", attr_int(p->n, "reverse") ? "true" : "false");
}

static bool can_topk(const Node *n)
{
	return emit_stored(n->in[0]->type->elem) == DT_FLOAT && in_const(n, 1);
}

static void call_topk(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_topk_f32(c, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 1), take_ptr(p, 0));
	print_axis(p, &x, axis_attr(p->n, x.rank));
	text_add(p->t, ", %" PRId64 ", %s)", const_int(p->n, 1, 0), attr_int(p->n, "largest") ? "true" : "false");
}

static void call_argmax(const Print *p)
{
	Shape x = in_shape(p, 0);
	text_add(p->t, "k_argmax_f32(c, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0));
	print_axis(p, &x, axis_attr(p->n, x.rank));
	text_add(p->t, ", %s, %s)", strcmp(p->n->op, "ArgMax") ? "false" : "true", attr_int(p->n, "select_last_index") ? "true" : "false");
}

static bool can_reduce_other(const Node *n)
{
	DType t = n->in[0]->type->elem;
	return (t == DT_DOUBLE || t == DT_INT64) && const_axes(n);
}

static const Kernel kernels[] = {
	{ "random_uniform", "random", 0, can_random, call_random, false },
	{ "zeros", "copy", 0, can_zeros, call_zeros, false },
	{ "tile", "copy", 1, can_tile, call_tile, false },
	{ "pad", "any", 5, can_pad, call_pad, false },
	{ "pad_grad", "any", 1, can_pad_grad, call_pad_grad, false },
	{ "trilu", "any", 1, can_trilu, call_trilu, false },
	{ "eye", "any", 0, can_eye, call_eye, true },
	{ "reverse_sequence", "any", 3, can_reverse, call_reverse, false },
	{ "gather_nd", "any", 3, by_int64, call_gather_nd, false },
	{ "gather_nd_grad", "any", 5, can_gather_nd_grad, call_gather_nd_grad, false },
	{ "scatter_nd", "any", 7, can_scatter, call_scatter_nd, false },
	{ "one_hot", "any", 5, can_one_hot, call_one_hot, false },
	{ "compress", "any", 3, can_any, call_compress, false },
	{ "cumsum", "any", 1, can_cumsum, call_cumsum, false },
	{ "topk", "any", 1, can_topk, call_topk, false },
	{ "argmax", "any", 1, is_float, call_argmax, false },
	{ "argmin", "any", 1, is_float, call_argmax, false },
	{ "avgpool", "window", 1, can_nd, call_sumpool, false },
	{ "avgpool_grad", "window", 1, can_nd, call_sumpool, false },
	{ "sumpool", "window", 1, can_nd, call_sumpool, false },
	{ "sumpool_grad", "window", 1, can_nd, call_sumpool, false },
	{ "concat", "copy", ~0u, can_move, call_concat, true },
	{ "concat", "any", ~0u, can_any, call_concat, true },
	{ "split", "copy", 1, can_move, call_split, true },
	{ "split", "any", 1, can_any, call_split, true },
	{ "slice", "copy", 1, can_slice, call_slice, true },
	{ "slice", "any", 1, can_slice_any, call_slice, true },
	{ "slice_grad", "copy", 1, can_slice_grad, call_slice_grad, true },
	{ "gather_grad", "index", 5, can_gather_grad, call_gather_grad, false },
	{ "conv", "conv", 7, can_conv, call_conv, false },
	{ "conv", "window", 7, can_nd, call_conv_nd, false },
	{ "conv_grad_x", "conv", 3, can_conv, call_conv_grad_x, false },
	{ "conv_grad_x", "window", 3, can_nd, call_conv_nd, false },
	{ "conv_grad_w", "conv", 3, can_conv, call_conv_grad_w, false },
	{ "conv_grad_w", "window", 3, can_nd, call_conv_nd, false },
	{ "maxpool", "pool", 1, can_maxpool, call_maxpool, false },
	{ "maxpool", "window", 1, can_maxpool_nd, call_maxpool_nd, false },
	{ "maxpool_grad", "pool", 3, can_maxpool, call_maxpool_grad, false },
	{ "maxpool_grad", "window", 3, can_nd, call_maxpool_nd_grad, false },
	{ "matmul", "matmul", 3, can_matmul, call_matmul, true },
	{ "matmul_over", "matmul", 3, can_matmul, call_matmul_over, true },
	{ "softmax", "softmax", 1, is_float, call_softmax, false },
	{ "logsoftmax", "softmax", 1, is_float, call_softmax, false },
	{ "softmax_grad", "softmax", 3, is_float, call_softmax_grad, false },
	{ "logsoftmax_grad", "softmax", 3, is_float, call_softmax_grad, false },
	{ "softmax_xent", "loss", 7, can_loss, call_xent, false },
	{ "softmax_xent_grad", "loss", 31, can_loss, call_xent_grad, false },
	{ "nll_loss", "loss", 7, can_loss, call_nll, false },
	{ "attention", "attention", 15, can_attention, call_attention, false },
	{ "attention_grad", "attention", 127, can_attention, call_attention_grad, false },
	{ "rotary", "attention", 15, can_rotary, call_rotary, false },
	{ "layernorm", "norm", 7, can_layernorm, call_layernorm, false },
	{ "rmsnorm", "norm", 3, can_layernorm, call_layernorm, false },
	{ "layernorm_grad", "norm", 31, can_layernorm_grad, call_norm_grad, false },
	{ "layernorm_grad_w", "norm", 27, can_layernorm_grad, call_norm_grad_w, false },
	{ "groupnorm", "norm", 7, can_groupnorm, call_groupnorm, false },
	{ "instancenorm", "norm", 7, can_groupnorm, call_groupnorm, false },
	{ "groupnorm_grad", "norm", 31, all_float, call_norm_grad, false },
	{ "groupnorm_grad_w", "norm", 27, all_float, call_norm_grad_w, false },
	{ "batchnorm", "norm", 31, can_batchnorm, call_batchnorm, false },
	{ "batchnorm_grad", "norm", 31, all_float, call_norm_grad, false },
	{ "batchnorm_grad_w", "norm", 27, all_float, call_norm_grad_w, false },
	{ "gather", "index", 3, can_gather, call_gather, false },
	{ "gather", "any", 3, by_int64, call_gather_any, false },
	{ "gather_elements", "index", 3, can_gather_elements, call_gather_elements, false },
	{ "gather_elements", "any", 3, by_int64, call_gather_elements_any, false },
	{ "scatter_elements", "index", 7, can_scatter_elements, call_scatter_elements, false },
	{ "scatter_elements", "any", 7, can_scatter, call_scatter_any, false },
	{ "copy", "copy", 1, can_copy, call_same, false },
	{ "transpose", "copy", 1, can_copy, call_transpose, false },
	{ "expand", "copy", 1, can_copy, call_expand, false },
	{ "reduce_to", "reduce", 1, is_float, call_reduce_to, false },
	{ "reduce", "reduce", 1, can_reduce, call_reduce, false },
	{ "reduce", "any", 1, can_reduce_other, call_reduce, false },
};

const Kernel *emit_kernel(const Node *n)
{
	const Kernel *first = NULL;
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
		const Kernel *k = &kernels[i];
		if (!n->row->kernel || strcmp(n->row->kernel, k->name))
			continue;
		if (!k->can || k->can(n))
			return k;
		first = first ? first : k;
	}
	return first;
}

bool emit_boxing(const Node *n)
{
	return n->row->domain && !strcmp(n->row->domain, "sbpcc") && !strcmp(n->row->name, "Boxing");
}

bool emit_reads(const Node *n, int i)
{
	if (emit_boxing(n))
		return true;
	const Kernel *k = n->row->expr ? NULL : emit_kernel(n);
	if (k)
		return k->reads >> (i < 31 ? i : 31) & 1;
	return !n->row->expr || (!emit_literal(n->in[i]) && expr_uses(expr_of(n), i));
}

static bool typed(const Node *n, const Value *v)
{
	if (emit_ctype(v->type->elem))
		return true;
	err_at(n->loc, "this back end has no %s yet (%s)", dtype_name(v->type->elem), v->name);
	return false;
}

bool emit_has(const Node *n)
{
	const Kernel *k = n->row->expr ? NULL : emit_kernel(n);
	return n->row->expr || emit_boxing(n) || (k && (!k->can || k->can(n)));
}

bool emit_can(Node *n)
{
	if (!emit_has(n)) {
		if (emit_kernel(n))
			err_at(n->loc, "no C kernel for %s of %s yet in this back end", n->op, type_text(n->in[0]->type));
		else
			err_at(n->loc, "no C kernel for %s yet in this back end", n->op);
		return false;
	}
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && emit_reads(n, i) && !typed(n, n->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !typed(n, n->out[i]))
			return false;
	return true;
}

/* ---- transfers ---- */

void emit_box(const Print *p, const Slot *s)
{
	text_add(p->t, "&(RtBox){ %d, {", s->rank);
	for (int a = 0; a < s->rank; a++)
		text_add(p->t, "%s %" PRId64, a ? "," : "", s->dim[a]);
	text_add(p->t, "%s }, {", s->rank ? "" : " 0");
	for (int a = 0; a < s->rank; a++)
		text_add(p->t, "%s %" PRId64, a ? "," : "", slot_len(p->e->plan, s, a, p->rank));
	text_add(p->t, "%s }, {", s->rank ? "" : " 0");
	for (int a = 0; a < s->rank; a++)
		text_add(p->t, s->split[a] < 0 ? "%s -1" : "%s SPLIT%d", a ? "," : "", s->split[a]);
	text_add(p->t, "%s } }", s->rank ? "" : " 0");
}

void emit_transfer(const Print *p)
{
	const Slot *x = p->take[0], *y = p->make[0];
	int64_t n = slot_elements(p->e->plan, y, p->rank);
	if (!strcmp(p->a->how, "all_reduce")) {
		text_add(p->t, "c->comm->all_reduce(c, %s, %s, %" PRId64 ")", make_ptr(p, 0), take_ptr(p, 0), n);
	} else if (!strcmp(p->a->how, "all_gather")) {
		text_add(p->t, "c->comm->all_gather(c, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0));
		emit_box(p, x);
		text_add(p->t, ", %d)", emit_bits(x->v) / 8);
	} else if (!strcmp(p->a->how, "slice")) {
		Shape xs = shape_of(p, x), ys = shape_of(p, y);
		int64_t st[8];
		Loops l = { 0 };
		strides_of(&xs, st);
		text_add(p->t, "k_copy_%d(c, %s, %s, ", emit_bits(x->v), make_ptr(p, 0), take_ptr(p, 0));
		bool any = false;
		for (int a = 0; a < y->rank; a++) {
			loop_add(&l, ys.d[a], st[a]);
			if (y->split[a] >= 0) {
				text_add(p->t, "%sc->me->origin[SPLIT%d] * %" PRId64, any ? " + " : "", y->split[a], st[a]);
				any = true;
			}
		}
		text_add(p->t, any ? ", " : "0, ");
		print_loops(p, &l);
		text_add(p->t, ")");
	} else {                        /* zero: rank 0 keeps the value, the others hold 0 */
		text_add(p->t, "k_keep_%d(c, %s, %s, %" PRId64 ", c->me->coord[0] == 0)", emit_bits(x->v), make_ptr(p, 0), take_ptr(p, 0), n);
	}
}
