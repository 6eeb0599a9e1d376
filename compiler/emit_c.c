/* Schedules: one C function per action, and the list of them.
 *
 * A node becomes one call.  What is called is found by the kernel that its operator's row names, or by its scalar
 * expression; the table below says how the arguments of each kernel are read off the shapes.  All shapes are those of the
 * part that the role's ranks hold.  Schedules are the same text for C and for CUDA: kernels have one prototype. */
#include "compiler.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a call is printed from. */
typedef struct Print {
	Emit *e;
	Text *t;
	const Action *a;
	Node *n;
	int rank;                       /* of the role: any has the same shapes */
} Print;

typedef struct Kernel {
	const char *name;               /* as the row of the operator has it */
	const char *file;               /* in kernels/, without the ending */
	unsigned reads;                 /* bit i: operand i is read at run time; the last bit stands for all that follow */
	bool (*can)(const Node *);
	void (*call)(const Print *);
	bool several;                   /* call prints statements that set `code`, not one expression */
} Kernel;

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
	return shape_of(p, p->a->make[i]);
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

static int width(const Value *v)
{
	return dtype_bits(v->type->elem);
}

/* ---- pointers ---- */

static const char *make_ptr(const Print *p, int i)
{
	const Slot *s = i < p->a->nmake ? p->a->make[i] : NULL;
	return s ? arena_printf(p->e->tree.arena, "t%d(c)", s->id) : "NULL";
}

static const char *take_ptr(const Print *p, int i)
{
	const Slot *s = i < p->a->ntake ? p->a->take[i] : NULL;
	return s ? arena_printf(p->e->tree.arena, "t%d(c)", s->id) : "NULL";
}

/* ---- calls ---- */

/* x read with strides into y: transposes, broadcasts, slices. */
static void call_copy(const Print *p, int64_t offset, const Loops *l)
{
	text_add(p->t, "k_copy_%d(c, %s, %s, %" PRId64 ", ", width(p->n->in[0]), make_ptr(p, 0), take_ptr(p, 0), offset);
	print_loops(p, l);
	text_add(p->t, ")");
}

static bool can_copy(const Node *n)
{
	int w = dtype_bits(n->in[0]->type->elem);
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
	text_add(p->t, "k_reduce_f32(c, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0));
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
	return n->in[0]->type->elem == DT_FLOAT && const_axes(n);
}

static void call_reduce(const Print *p)
{
	static const struct { const char *op, *how; } kinds[] = { { "ReduceSum", "K_SUM" }, { "ReduceMean", "K_MEAN" }, { "ReduceMax", "K_MAX" },
		{ "ReduceMin", "K_MIN" }, { "ReduceProd", "K_PROD" } };
	Shape x = in_shape(p, 0);
	const Tensor *axes = p->n->nin > 1 && p->n->in[1] ? in_const(p->n, 1) : NULL;
	int64_t n = axes ? tensor_elements(axes) : 0;
	bool gone[8], all = n == 0;
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
	return n->in[0]->type->elem == DT_FLOAT;
}

/* Batched only over leading axes that are those of both operands, or of one. */
static bool can_matmul(const Node *n)
{
	const Type *a = n->in[0]->type, *b = n->in[1]->type, *y = n->out[0]->type;
	if (a->elem != DT_FLOAT || a->rank < 1 || b->rank < 1)
		return false;
	if (a->rank <= 2 || b->rank <= 2)
		return true;
	if (a->rank != y->rank || b->rank != y->rank)
		return false;
	bool same = true, aone = true, bone = true;
	for (int i = 0; i < y->rank - 2; i++) {
		same &= a->dim[i] == b->dim[i];
		aone &= a->dim[i] == 1;
		bone &= b->dim[i] == 1;
	}
	return same || aone || bone;
}

static void call_matmul(const Print *p)
{
	Shape a = in_shape(p, 0), b = in_shape(p, 1);
	int64_t k = a.d[a.rank - 1], m = a.rank > 1 ? a.d[a.rank - 2] : 1, n = b.rank > 1 ? b.d[b.rank - 1] : 1;
	int64_t ab = a.rank > 2 ? product(&a, 0, a.rank - 2) : 1, bb = b.rank > 2 ? product(&b, 0, b.rank - 2) : 1;
	int64_t batch = ab > bb ? ab : bb;
	if (bb == 1 && ab > 1) {        /* one matrix on the right: the batch is more rows */
		m *= ab;
		batch = ab = 1;
	}
	text_add(p->t, "k_matmul_f32(c, %s, %s, %s, %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ")", make_ptr(p, 0), take_ptr(p, 0),
	         take_ptr(p, 1), batch, m, n, k, ab == 1 ? 0 : m * k, bb == 1 ? 0 : k * n);
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

static bool can_loss(const Node *n)
{
	return n->in[0]->type->elem == DT_FLOAT && n->in[1]->type->elem == DT_INT64 && (n->nin < 3 || !n->in[2]);
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
	text_add(p->t, "k_xent_f32(c, %s, %s, %s, %s, ", make_ptr(p, 0), make_ptr(p, 1), take_ptr(p, 0), take_ptr(p, 1));
	print_loss_tail(p);
}

static void call_nll(const Print *p)
{
	text_add(p->t, "k_nll_f32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 1));
	print_loss_tail(p);
}

static bool can_gather(const Node *n)
{
	return dtype_bits(n->in[0]->type->elem) == 32 && n->in[1]->type->elem == DT_INT64;
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
	return dtype_bits(n->in[0]->type->elem) == 32 && n->in[1]->type->elem == DT_INT64;
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
	return n->in[0]->type->elem == DT_FLOAT && n->in[1]->type->elem == DT_INT64 && !strcmp(attr_str(n, "reduction"), "add");
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
	text_add(p->t, "\tif (!code)\n\t\tcode = k_move_%d(c, %s, %" PRId64 ", %s, %" PRId64 ", ", w, y, yoff, x, xoff);
	print_loops(p, &to);
	text_add(p->t, ", ");
	print_loops(p, &from);
	text_add(p->t, ");\n");
}

static bool can_move(const Node *n)
{
	int w = dtype_bits(n->in[0]->type->elem);
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
		print_move(p, width(p->n->in[0]), make_ptr(p, 0), at * yst[axis], &x, yst, take_ptr(p, i), 0, xst);
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
		print_move(p, width(p->n->in[0]), make_ptr(p, i), 0, &y, yst, take_ptr(p, 0), at * xst[axis], xst);
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
	return can_move(n) && type_elements(n->out[0]->type) > 0;
}

static bool can_slice(const Node *n)
{
	return can_slice_at(n, 1);
}

static bool can_slice_grad(const Node *n)
{
	return can_slice_at(n, 2) && dtype_bits(n->in[0]->type->elem) == 32;
}

static void call_slice(const Print *p)
{
	Shape x = in_shape(p, 0), y = out_shape(p, 0);
	int64_t xst[8], yst[8], offset = slices(p, 1, &x, xst);
	strides_of(&y, yst);
	print_move(p, width(p->n->in[0]), make_ptr(p, 0), 0, &y, yst, take_ptr(p, 0), offset, xst);
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
	return n->in[0]->type->elem == DT_FLOAT && n->in[2]->type->elem == DT_INT64;
}

static void call_gather_grad(const Print *p)
{
	Shape y = out_shape(p, 0), i = in_shape(p, 2);
	text_add(p->t, "k_gather_grad_f32(c, %s, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0), take_ptr(p, 2));
	print_axis(p, &y, axis_attr(p->n, y.rank));
	text_add(p->t, ", %" PRId64 ")", product(&i, 0, i.rank));
}

/* ---- windows ---- */

static bool planes(const Type *t)
{
	return t->elem == DT_FLOAT && (t->rank == 3 || t->rank == 4);
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

static const Kernel kernels[] = {
	{ "concat", "copy", ~0u, can_move, call_concat, true },
	{ "split", "copy", 1, can_move, call_split, true },
	{ "slice", "copy", 1, can_slice, call_slice, true },
	{ "slice_grad", "copy", 1, can_slice_grad, call_slice_grad, true },
	{ "gather_grad", "index", 5, can_gather_grad, call_gather_grad, false },
	{ "conv", "conv", 7, can_conv, call_conv, false },
	{ "conv_grad_x", "conv", 3, can_conv, call_conv_grad_x, false },
	{ "conv_grad_w", "conv", 3, can_conv, call_conv_grad_w, false },
	{ "maxpool", "pool", 1, can_maxpool, call_maxpool, false },
	{ "maxpool_grad", "pool", 3, can_maxpool, call_maxpool_grad, false },
	{ "matmul", "matmul", 3, can_matmul, call_matmul, false },
	{ "softmax", "softmax", 1, is_float, call_softmax, false },
	{ "logsoftmax", "softmax", 1, is_float, call_softmax, false },
	{ "softmax_xent", "loss", 3, can_loss, call_xent, false },
	{ "nll_loss", "loss", 3, can_loss, call_nll, false },
	{ "gather", "index", 3, can_gather, call_gather, false },
	{ "gather_elements", "index", 3, can_gather_elements, call_gather_elements, false },
	{ "scatter_elements", "index", 7, can_scatter_elements, call_scatter_elements, false },
	{ "copy", "copy", 1, can_copy, call_same, false },
	{ "transpose", "copy", 1, can_copy, call_transpose, false },
	{ "expand", "copy", 1, can_copy, call_expand, false },
	{ "reduce_to", "reduce", 1, is_float, call_reduce_to, false },
	{ "reduce", "reduce", 1, can_reduce, call_reduce, false },
};

static const Kernel *kernel_of(const Node *n)
{
	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
		if (n->row->kernel && !strcmp(n->row->kernel, kernels[i].name))
			return &kernels[i];
	return NULL;
}

static bool boxing(const Node *n)
{
	return n->row->domain && !strcmp(n->row->domain, "sbpcc") && !strcmp(n->row->name, "Boxing");
}

bool emit_reads(const Node *n, int i)
{
	if (boxing(n))
		return true;
	const Kernel *k = n->row->expr ? NULL : kernel_of(n);
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

bool emit_can(Node *n)
{
	const Kernel *k = n->row->expr ? NULL : kernel_of(n);
	if (!n->row->expr && !boxing(n) && (!k || (k->can && !k->can(n)))) {
		if (k)
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

static void print_box(const Print *p, const Slot *s)
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

static void call_boxing(const Print *p)
{
	const Slot *x = p->a->take[0], *y = p->a->make[0];
	int64_t n = slot_elements(p->e->plan, y, p->rank);
	if (!strcmp(p->a->how, "all_reduce")) {
		text_add(p->t, "c->comm->all_reduce(c, %s, %s, %" PRId64 ")", make_ptr(p, 0), take_ptr(p, 0), n);
	} else if (!strcmp(p->a->how, "all_gather")) {
		text_add(p->t, "c->comm->all_gather(c, %s, %s, ", make_ptr(p, 0), take_ptr(p, 0));
		print_box(p, x);
		text_add(p->t, ", %d)", width(x->v) / 8);
	} else if (!strcmp(p->a->how, "slice")) {
		Shape xs = shape_of(p, x), ys = shape_of(p, y);
		int64_t st[8];
		Loops l = { 0 };
		strides_of(&xs, st);
		text_add(p->t, "k_copy_%d(c, %s, %s, ", width(x->v), make_ptr(p, 0), take_ptr(p, 0));
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
		text_add(p->t, "k_keep_%d(c, %s, %s, %" PRId64 ", c->me->coord[0] == 0)", width(x->v), make_ptr(p, 0), take_ptr(p, 0), n);
	}
}

/* ---- start values and data ---- */

/* The key of a value in random numbers: of its name. */
uint64_t emit_key(const char *s)
{
	uint64_t h = 0xCBF29CE484222325u;
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001B3u;
	return h;
}

static double arg_number(const Arg *call, const char *key, double otherwise)
{
	const Arg *a = arg_find(call->arg, call->narg, key);
	return !a ? otherwise : a->kind == ARG_INT ? (double)a->i : a->f;
}

/* Fans of a weight: [in, out] of a matrix, [out, in, window...] of a convolution. */
static void fans(const Type *t, double *in, double *out)
{
	*in = *out = 1;
	if (t->rank == 1)
		*in = *out = (double)t->dim[0];
	if (t->rank == 2) {
		*in = (double)t->dim[0];
		*out = (double)t->dim[1];
	}
	if (t->rank > 2) {
		double window = 1;
		for (int a = 2; a < t->rank; a++)
			window *= (double)t->dim[a];
		*in = (double)t->dim[1] * window;
		*out = (double)t->dim[0] * window;
	}
}

/* %.9g without a point is an int to C. */
static const char *real(const Emit *e, double v)
{
	char *s = arena_printf(e->tree.arena, "%.9g", v);
	return strpbrk(s, ".en") ? s : arena_printf(e->tree.arena, "%s.0", s);
}

static int print_random(const Print *p, const Slot *s, const char *how, double a, double b)
{
	text_add(p->t, "rt_%s(c, t%d(c), ", how, s->id);
	print_box(p, s);
	text_add(p->t, ", 0x%016" PRIx64 "u, %sf, %sf)", emit_key(s->v->name), real(p->e, a), real(p->e, b));
	return 0;
}

static bool ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);
	return n >= k && !strcmp(s + n - k, end);
}

/* What @init says: "fill" with a, "normal" of mean a and deviation b, or "uniform" from a to b.  NULL after explaining. */
const char *emit_init(const Value *v, double *a, double *b)
{
	const Annot *an = annot_find(v->annot, "init");
	const Arg *how = an && an->narg ? &an->arg[0] : NULL;
	const char *k = how && how->s ? how->s : "";
	double in, out, dev = -1;
	fans(v->type, &in, &out);
	*a = *b = 0;
	if (!strcmp(k, "zeros") || !strcmp(k, "ones") || !strcmp(k, "constant")) {
		*a = *k == 'z' ? 0 : *k == 'o' ? 1 : arg_number(how, "value", 0);
		return "fill";
	}
	if (!strcmp(k, "normal") || !strcmp(k, "uniform")) {
		bool normal = *k == 'n';
		*a = arg_number(how, normal ? "mean" : "low", 0);
		*b = arg_number(how, normal ? "std" : "high", 1);
		return normal ? "normal" : "uniform";
	}
	if (!strncmp(k, "xavier", 6))
		dev = arg_number(how, "gain", 1) * sqrt(2 / (arg_number(how, "fan_in", in) + arg_number(how, "fan_out", out)));
	if (!strncmp(k, "kaiming", 7)) {
		const Arg *mode = arg_find(how->arg, how->narg, "mode");
		dev = arg_number(how, "gain", sqrt(2)) / sqrt(arg_number(how, "fan", mode && mode->s && !strcmp(mode->s, "fan_out") ? out : in));
	}
	if (dev < 0) {
		err_at(an ? an->loc : v->loc, "this back end has no initialiser %s yet", *k ? k : "of this form");
		return NULL;
	}
	if (!ends_in(k, "_uniform")) {
		*b = dev;
		return "normal";
	}
	*b = dev * sqrt(3);
	*a = -*b;
	return "uniform";
}

static int print_init(const Print *p, const Slot *s)
{
	double a, b;
	const char *how = emit_init(s->v, &a, &b);
	if (!how)
		return -1;
	if (strcmp(how, "fill"))
		return print_random(p, s, how, a, b);
	text_add(p->t, "rt_fill(c, t%d(c), ", s->id);
	print_box(p, s);
	text_add(p->t, ", %sf)", real(p->e, a));
	return 0;
}

/* A constant as an array of its bits: exact for every type. */
static int print_constant(const Emit *e, Text *t, const Slot *s)
{
	const Tensor *d = s->v->data;
	int64_t n = tensor_elements(d);
	int w = dtype_bits(d->dtype) / 8;
	if (n > 1 << 20) {
		err_at(s->v->loc, "%s has %" PRId64 " elements; this back end writes constants of up to %d", s->v->name, n, 1 << 20);
		return -1;
	}
	text_add(t, "static const uint%d_t k%d[] = {      /* %s */", w * 8, s->id, emit_comment(e->tree.arena, s->v->name));
	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		memcpy(&bits, (const char *)d->data + i * w, (size_t)w);
		text_add(t, "%s0x%0*" PRIx64 "u,", i % 10 ? " " : "\n\t", w * 2, bits);
	}
	text_add(t, "%s\n};\n", n ? "" : "\n\t0,");
	return 0;
}

static int print_start(const Print *p, Text *constants)
{
	const Slot *s = p->a->make[0];
	if (!s->v->data) {
		if (s->v->type->elem == DT_FLOAT)
			return print_init(p, s);
		err_at(s->v->loc, "this back end initialises float parameters only; %s is %s", s->v->name, type_text(s->v->type));
		return -1;
	}
	if (tensor_load(s->v->data) || print_constant(p->e, constants, s))
		return -1;
	text_add(p->t, "rt_copy(c, t%d(c), ", s->id);
	print_box(p, s);
	text_add(p->t, ", k%d, %d)", s->id, dtype_bits(s->v->type->elem) / 8);
	return 0;
}

static int print_load(const Print *p)
{
	const Slot *s = p->a->make[0];
	const Training *t = &p->e->plan->train;
	const Arg *d = t->data;
	if (!strcmp(s->v->name, "train.step")) {
		text_add(p->t, "rt_step(c, t%d(c))", s->id);
		return 0;
	}
	if (!d) {
		err_at(t->loc, "the training section names no data: write data: points(classes: 10, noise: 1)");
		return -1;
	}
	if (!d->s || strcmp(d->s, "points")) {
		err_at(d->loc, "this back end has no data source %s yet; it has points(classes: 10, noise: 1)", d->s ? d->s : "of this form");
		return -1;
	}
	int64_t classes = (int64_t)arg_number(d, "classes", 10);
	DType dt = s->v->type->elem;
	if (s->rank < 1 || (dt != DT_FLOAT && dt != DT_INT64 && dt != DT_BOOL) || classes < 1) {
		err_at(s->v->loc, "points gives float rows, int64 labels and bool masks; %s is %s", s->v->name, type_text(s->v->type));
		return -1;
	}
	text_add(p->t, "rt_data_%s(c, t%d(c), ", dt == DT_FLOAT ? "points" : dt == DT_INT64 ? "labels" : "present", s->id);
	print_box(p, s);
	if (dt != DT_BOOL)
		text_add(p->t, ", %" PRId64, classes);
	if (dt == DT_FLOAT)
		text_add(p->t, ", %sf", real(p->e, arg_number(d, "noise", 1)));
	text_add(p->t, ")");
	return 0;
}

/* ---- actions ---- */

static void print_about(const Print *p)
{
	Arena *a = p->e->tree.arena;
	const Node *n = p->n;
	int nd = p->e->plan->main->ndim;
	text_add(p->t, "/* a%d %s  ", p->a->id, emit_from(a, n));
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			text_add(p->t, "%s%s", i ? ", " : "", emit_comment(a, n->out[i]->name));
	text_add(p->t, " = %s(", emit_comment(a, n->op));
	for (int i = 0; i < n->nin; i++)
		text_add(p->t, "%s%s", i ? ", " : "", n->in[i] ? emit_comment(a, n->in[i]->name) : "");
	text_add(p->t, ")  ");
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			text_add(p->t, "%s ", sbp_text(n->in[i]->sbp, nd));
	text_add(p->t, "->");
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			text_add(p->t, " %s", sbp_text(n->out[i]->sbp, nd));
	text_add(p->t, " */\n");
}

static void print_asserts(const Print *p)
{
	for (int i = 0; i < p->a->nmake; i++) {
		const Slot *s = p->a->make[i];
		if (!s)
			continue;
		text_add(p->t, "\t_Static_assert(");
		for (int a = 0; a < s->rank; a++)
			text_add(p->t, "%" PRId64 " * ", slot_len(p->e->plan, s, a, p->rank));
		text_add(p->t, "%d <= T%d_BYTES, \"t%d\");\n", width(s->v) / 8, s->id, s->id);
	}
}

static const char *const kind_name[] = { [ACT_START] = "RT_COMPUTE", [ACT_LOAD] = "RT_LOAD", [ACT_COMPUTE] = "RT_COMPUTE",
	[ACT_COLLECTIVE] = "RT_COLLECTIVE", [ACT_SAVE] = "RT_SAVE" };

static void use_file(Emit *e, const char *file)
{
	Name f = name_of(file);
	for (int i = 0; i < e->nkernel; i++)
		if (e->kernel[i] == f)
			return;
	arena_push(e->tree.arena, e->kernel, e->nkernel, f);
}

static int print_action(Emit *e, Text *t, const Action *a, int rank, const char *prefix, Text *constants)
{
	Print p = { e, t, a, a->n, rank };
	int bad = 0;
	if (a->n)
		print_about(&p);
	else
		text_add(t, "/* %s%d %s %s */\n", prefix, a->id, a->kind == ACT_START ? "start value of" : a->kind == ACT_LOAD ? "load" : "report",
		         emit_comment(e->tree.arena, (a->nmake ? a->make[0] : a->take[0])->v->name));
	text_add(t, "static int %s%d(Ctx *c)\n{\n", prefix, a->id);
	print_asserts(&p);
	const Kernel *k = a->kind == ACT_COMPUTE && !a->n->row->expr && !boxing(a->n) ? kernel_of(a->n) : NULL;
	text_add(t, k && k->several ? "\tint code = 0;\n" : "\treturn ");
	if (a->kind == ACT_START)
		bad = print_start(&p, constants);
	else if (a->kind == ACT_LOAD)
		bad = print_load(&p);
	else if (a->kind == ACT_SAVE)
		text_add(t, "rt_save_loss(c, t%d(c))", a->take[0]->id);
	else if (boxing(a->n)) {
		call_boxing(&p);
		if (a->kind == ACT_COMPUTE)
			use_file(e, "copy");
	} else if (a->n->row->expr) {
		emit_pointwise(e, t, a, rank);
	} else {
		k->call(&p);
		use_file(e, k->file);
	}
	text_add(t, k && k->several ? "\treturn code;\n}\n\n" : ";\n}\n\n");
	return bad;
}

static void print_list(Text *t, const Action *list, int n, const char *prefix, const char *array, const char *count)
{
	text_add(t, "static const RtAction %s[] = {\n", array);
	for (int i = 0; i < n; i++)
		text_add(t, "\t{ %s, \"%s%d\", %s%d },\n", kind_name[list[i].kind], prefix, list[i].id, prefix, list[i].id);
	if (!n)
		text_add(t, "\t{ RT_COMPUTE, \"none\", NULL },\n");
	text_add(t, "};\nenum { %s = %d };\n", count, n);
}

int emit_schedule(Emit *e, const Role *r)
{
	Text constants = { 0 }, start = { 0 }, step = { 0 }, role = { 0 };
	int bad = 0;
	for (int i = 0; i < r->nstart && !bad; i++)
		bad |= print_action(e, &start, &r->start[i], r->rank[0], "s", &constants);
	for (int i = 0; i < r->nstep && !bad; i++)
		bad |= print_action(e, &step, &r->step[i], r->rank[0], "a", &constants);
	if (bad)
		return -1;
	print_list(&start, r->start, r->nstart, "s", "start", "NSTART");
	print_list(&step, r->step, r->nstep, "a", "step", "NSTEP");
	text_add(&role, "extern const RtRole role%d;\nconst RtRole role%d = { start, NSTART, step, NSTEP };\n", r->id, r->id);
	const char *path = arena_printf(e->tree.arena, "role%d/schedule.c", r->id);
	template_fill(tree_file(&e->tree, path), "schedule.c", "banner", emit_banner(e, arena_printf(e->tree.arena, "The schedule of role %d, played by %d rank%s.",
	              r->id, r->nrank, r->nrank == 1 ? "" : "s")), "constants", constants.s ? constants.s : "", "start", start.s, "step", step.s, "role", role.s, NULL);
	return 0;
}
