/* Calls that move elements or create them: copies by strides, pieces of a tensor, padding, fills,
 * random numbers. */
#include "calls.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <string.h>

/* ---- x read with strides into y: transposes, broadcasts, repeats ---- */

static void print_copy(const Print *p, const Loops *l)
{
	args_call(p, "k_copy", "0", "0");
	args_sizes(p, 0);
	args_loops(p, l);
	args_width(p, p->n->in[0]);
}

static void call_same(const Print *p)
{
	Shape y = args_out(p, 0);
	Loops l = { 0 };
	loops_add(&l, loops_count(&y), 1);
	print_copy(p, &l);
}

static void print_transposed(const Print *p, const int64_t *perm)
{
	Shape x = args_in(p, 0), y = args_out(p, 0);
	int64_t st[8];
	Loops l = { 0 };
	loops_strides(&x, st);
	for (int a = 0; a < y.ndim; a++)
		loops_add(&l, y.d[a], st[perm[a]]);
	print_copy(p, &l);
}

/* Without perm the axes are reversed. */
static void call_transpose(const Print *p)
{
	int np = 0, ndim = p->n->in[0]->type->ndim;
	const int64_t *given = attr_ints(p->n, "perm", &np);
	int64_t perm[8];
	for (int a = 0; a < ndim; a++)
		perm[a] = np ? given[a] : ndim - 1 - a;
	print_transposed(p, perm);
}

/* The last two axes. */
static void call_swap(const Print *p)
{
	int ndim = p->n->in[0]->type->ndim;
	int64_t perm[8];
	for (int a = 0; a < ndim; a++)
		perm[a] = a < ndim - 2 ? a : 2 * ndim - 3 - a;
	print_transposed(p, perm);
}

static void call_expand(const Print *p)
{
	Shape x = args_in(p, 0), y = args_out(p, 0);
	int64_t st[8];
	Loops l = { 0 };
	loops_strides(&x, st);
	for (int a = 0; a < y.ndim; a++) {
		int b = a - (y.ndim - x.ndim);
		loops_add(&l, y.d[a], b < 0 || x.d[b] == 1 ? 0 : st[b]);
	}
	print_copy(p, &l);
}

static void call_tile(const Print *p)
{
	Shape x = args_in(p, 0);
	Loops l = loops_tile(p->n, &x);
	print_copy(p, &l);
}

/* ---- pieces of a tensor ---- */

/* One side of a move: where it begins, and the stride of each axis. */
typedef struct Side { const char *text; int64_t offset, stride[8]; } Side;

/* Loops over the axes of a piece, with its own strides and those of the tensor; axes are joined where both allow. */
static void print_move(const Print *p, const Shape *len, const Side *y, const Side *x)
{
	Loops to = { 0 }, from = { 0 };
	for (int a = 0; a < len->ndim; a++) {
		if (len->d[a] == 1)
			continue;
		bool join = to.n && to.stride[to.n - 1] == len->d[a] * y->stride[a] &&
			from.stride[from.n - 1] == len->d[a] * x->stride[a];
		if (!join)
			to.len[to.n++] = from.len[from.n++] = 1;
		to.len[to.n - 1] *= len->d[a];
		from.len[from.n - 1] *= len->d[a];
		to.stride[to.n - 1] = y->stride[a];
		from.stride[from.n - 1] = x->stride[a];
	}
	text_add(p->t, "\tif (!code)\n\t\tcode = k_move(c, %s, %" PRId64 ", %s, %" PRId64, y->text, y->offset, x->text,
		x->offset);
	args_loops(p, &to);
	args_loops(p, &from);
	args_width(p, p->n->in[0]);
	text_add(p->t, ";\n");
}

static void call_concat(const Print *p)
{
	Shape y = args_out(p, 0);
	int axis = kernel_axis(p->n, y.ndim);
	Side joined = { .text = args_result(p, 0) }, piece = { 0 };
	loops_strides(&y, joined.stride);
	for (int i = 0; i < p->n->nin; i++) {
		Shape x = args_in(p, i);
		loops_strides(&x, piece.stride);
		piece.text = args_operand(p, i);
		print_move(p, &x, &joined, &piece);
		joined.offset += x.d[axis] * joined.stride[axis];
	}
}

static void call_split(const Print *p)
{
	Shape x = args_in(p, 0);
	int axis = kernel_axis(p->n, x.ndim);
	Side joined = { .text = args_operand(p, 0) }, piece = { 0 };
	loops_strides(&x, joined.stride);
	for (int i = 0; i < p->n->nout; i++) {
		Shape y = args_out(p, i);
		loops_strides(&y, piece.stride);
		piece.text = args_result(p, i);
		print_move(p, &y, &piece, &joined);
		joined.offset += y.d[axis] * joined.stride[axis];
	}
}

/* Starts and steps of each axis, from constant operands in[at] to in[at + 3]; x is the shape that is sliced. */
static void read_slice(const Node *n, int at, const Shape *x, Side *side)
{
	const Tensor *s = operand_const(n, at), *e = operand_const(n, at + 1), *ax = n->nin > at + 2 &&
		n->in[at + 2] ? operand_const(n, at + 2) : NULL;
	const Tensor *st = n->nin > at + 3 && n->in[at + 3] ? operand_const(n, at + 3) : NULL;
	int64_t dense[8];
	loops_strides(x, dense);
	memcpy(side->stride, dense, sizeof dense);
	for (int64_t k = 0; k < tensor_elements(s); k++) {
		int64_t a = ax ? tensor_int(ax, k) : k, from = tensor_int(s, k), to = tensor_int(e, k),
			step = st ? tensor_int(st, k) : 1;
		a = a < 0 ? a + x->ndim : a;
		contents_clamp(&from, &to, step, x->d[a]);
		side->offset += from * dense[a];
		side->stride[a] = step * dense[a];
	}
}

static void call_slice(const Print *p)
{
	Shape x = args_in(p, 0), y = args_out(p, 0);
	Side to = { .text = args_result(p, 0) }, from = { .text = args_operand(p, 0) };
	read_slice(p->n, 1, &x, &from);
	loops_strides(&y, to.stride);
	print_move(p, &y, &to, &from);
}

static void call_slice_grad(const Print *p)
{
	Shape dy = args_in(p, 0), y = args_out(p, 0);
	Side to = { .text = args_result(p, 0) }, from = { .text = args_operand(p, 0) };
	read_slice(p->n, 2, &y, &to);
	loops_strides(&dy, from.stride);
	text_add(p->t, "\tcode = k_zero(c, %s, %" PRId64 ");\n", to.text, loops_count(&y) * kernel_bytes(p->n->in[0]));
	print_move(p, &dy, &to, &from);
}

/* ---- padding ---- */

static void print_pad(const Print *p, int at, const Shape *x, const Shape *y)
{
	static const char *const mode[][2] = { { "reflect", "K_PAD_REFLECT" }, { "edge", "K_PAD_EDGE" },
		{ "wrap", "K_PAD_WRAP" } };
	int64_t before[NDIM_MAX], after[NDIM_MAX];
	const char *how = "K_PAD_CONSTANT";
	for (size_t i = 0; i < sizeof mode / sizeof mode[0]; i++)
		if (!strcmp(attr_str(p->n, "mode"), mode[i][0]))
			how = mode[i][1];
	if (cut_pads(p->n, at, 3, x->ndim, before, after))
		return;
	text_add(p->t, ", &(KPad){");
	args_field_int(p, "n", x->ndim);
	args_field(p, "mode", how);
	args_field_dims(p, "in", x->d, x->ndim);
	args_field_dims(p, "out", y->d, y->ndim);
	args_field_dims(p, "lo", before, x->ndim);
	text_add(p->t, " }");
}

static void call_pad(const Print *p)
{
	Shape x = args_in(p, 0), y = args_out(p, 0);
	args_call(p, "k_pad", "0", "02");
	print_pad(p, 1, &x, &y);
	args_width(p, p->n->in[0]);
}

static void call_pad_grad(const Print *p)
{
	Shape y = args_in(p, 0), x = args_out(p, 0);
	args_call(p, "k_pad_grad", "0", "0");
	print_pad(p, 2, &x, &y);
	args_type(p, p->n->in[0]);
}

/* ---- elements kept or dropped by their index ---- */

static void call_trilu(const Print *p)
{
	Shape x = args_in(p, 0);
	args_call(p, "k_trilu", "0", "0");
	args_sizes(p, loops_product(&x, 0, x.ndim - 2), x.d[x.ndim - 2], x.d[x.ndim - 1], kernel_const(p->n, 1, 0));
	args_word(p, attr_int(p->n, "upper"));
	args_width(p, p->n->in[0]);
}

/* The first two axes are batch and time, in one order or the other; what follows moves as one element. */
static void call_reverse(const Print *p)
{
	Shape x = args_in(p, 0);
	int time = (int)attr_int(p->n, "time_axis"), batch = (int)attr_int(p->n, "batch_axis");
	args_call(p, "k_reverse_sequence", "0", "01");
	args_sizes(p, x.d[batch], x.d[time], batch == 0 ? x.d[1] : 1, time == 0 ? x.d[1] : 1,
		loops_product(&x, 2, x.ndim) * kernel_bytes(p->n->in[0]));
	args_end(p);
}

/* ---- created ---- */

static void call_zeros(const Print *p)
{
	Shape y = args_out(p, 0);
	args_call(p, "k_zero", "0", "");
	args_sizes(p, loops_count(&y) * kernel_bytes(p->n->out[0]));
	args_end(p);
}

static void print_fill(const Print *p, int64_t from, const Loops *l, int value)
{
	args_call(p, "k_fill", "0", "");
	args_sizes(p, from);
	args_loops(p, l);
	text_add(p->t, ", &(%s){ %d }, %" PRId64 ");\n", kernel_ctype(p->n->out[0]->type->elem), value,
		kernel_bytes(p->n->out[0]));
}

/* Zeros, then ones along the diagonal. */
static void call_eye(const Print *p)
{
	Shape y = args_out(p, 0);
	int64_t k = attr_int(p->n, "k"), rows = y.d[0], cols = y.d[1], from = k < 0 ? -k * cols : k,
		len = k < 0 ? rows + k : cols - k;
	Loops all = { 0 }, diagonal = { 0 };
	loops_add(&all, rows * cols, 1);
	len = len > rows ? rows : len > cols ? cols : len;
	text_add(p->t, "\tcode = ");
	print_fill(p, 0, &all, 0);
	if (len < 1)
		return;
	loops_add(&diagonal, len, cols + 1);
	text_add(p->t, "\tif (!code)\n\t\tcode = ");
	print_fill(p, from, &diagonal, 1);
}

/* The indices that a rank holds along an axis, as loops: runs of one length, equally far from each other, once or in
 * groups. */
static void walk_axis(const Print *p, const Slot *y, int axis, int64_t stride, Loops *l)
{
	FormShard shard;
	const Form *f = slot_form(p->e->plan, y);
	if (form_shard(f, form_index(f, p->rank), &shard))
		transfer_no_room();
	const FormRun *r = shard.axis[axis].run;
	int n = shard.axis[axis].n, each = n;
	for (int i = 2; i < each; i++)
		if (r[i].at - r[i - 1].at != r[1].at - r[0].at)
			each = i;
	if (n > each)
		loops_add(l, n / each, (r[each].at - r[0].at) * stride);
	if (n && each > 1)
		loops_add(l, each, (r[1].at - r[0].at) * stride);
	loops_add(l, n ? r[0].len : 0, stride);
	form_shard_free(&shard);
}

/* Random numbers for the shard of a rank in a micro-batch: where the shard begins in the logical tensor, and the
 * strides of its axes there. */
static void call_random(const Print *p)
{
	const Node *n = p->n;
	const Slot *y = p->make[0];
	Shape whole = { .ndim = y->ndim };
	int64_t microbatches = attr_int(n, "microbatches"), axis = attr_int(n, "axis"), st[8];
	Loops l = { 0 };
	for (int a = 0; a < y->ndim; a++)
		whole.d[a] = y->dim[a] * (a == axis ? microbatches : 1);
	loops_strides(&whole, st);
	uint64_t key = attr_has(n, "key") ? (uint64_t)attr_int(n, "key") : tables_key(n->out[0]->name);
	args_call(p, "k_random_uniform_f32", "0", "");
	if (attr_has(n, "seed"))
		text_add(p->t, ", 0x%016" PRIx64 "u", (uint64_t)attr_int(n, "seed"));
	else
		text_add(p->t, ", c->seed");
	text_add(p->t, n->nin > 2 && n->in[2] ? ", (uint64_t)c->step" : ", 0");
	text_add(p->t, ", 0x%016" PRIx64 "u, ", key);
	if (microbatches > 1)
		text_add(p->t, "c->micro * %" PRId64, y->dim[axis] * st[axis]);
	else
		text_add(p->t, "0");
	for (int a = 0; a < y->ndim; a++) {
		const char *origin = calls_origin(p, y, a);
		if (strcmp(origin, "0"))
			text_add(p->t, " + %s * %" PRId64, origin, st[a]);
		walk_axis(p, y, a, st[a], &l);
	}
	args_loops(p, &l);
	args_end(p);
}

const Call move_calls[] = {
	{ "copy", "copy", call_same, false },
	{ "transpose", "copy", call_transpose, false },
	{ "swap", "copy", call_swap, false },
	{ "expand", "copy", call_expand, false },
	{ "tile", "copy", call_tile, false },
	{ "concat", "copy", call_concat, true },
	{ "split", "copy", call_split, true },
	{ "slice", "copy", call_slice, true },
	{ "slice_grad", "copy", call_slice_grad, true },
	{ "pad", "any", call_pad, false },
	{ "pad_grad", "typed", call_pad_grad, false },
	{ "trilu", "any", call_trilu, false },
	{ "reverse_sequence", "any", call_reverse, false },
	{ "zeros", "copy", call_zeros, false },
	{ "eye", "any", call_eye, true },
	{ "random_uniform", "random", call_random, false },
	{ 0 },
};
