/* Calls that reduce along axes: sums and extremes, running sums, the largest elements and where they are. */
#include "calls.h"

#include <ctype.h>
#include <string.h>

/* The loops do not depend on the shard of a rank: only axes that are 1 in the logical value vanish, and only those that
 * are neighbours there are joined. */
static void logical_loops(const Print *p, const Shape *x, const int64_t *st, const bool *gone, Loops *keep, Loops *over)
{
	for (int a = 0, last = -1; a < x->ndim; a++) {
		Loops *l = gone[a] ? over : keep;
		if (p->n->in[0]->type->dim[a] == 1)
			continue;
		if (last < 0 || gone[last] != gone[a])
			l->len[l->n++] = 1;
		l->len[l->n - 1] *= x->d[a];
		l->stride[l->n - 1] = st[a];
		last = a;
	}
}

/* The number of elements that are reduced to one, on all ranks together. */
static int64_t whole_count(const Print *p, const bool *gone)
{
	const Type *t = p->take[0]->v->type;
	int64_t n = 1;
	for (int a = 0; a < t->ndim; a++)
		n *= gone[a] ? t->dim[a] : 1;
	return n;
}

static void print_reduce(const Print *p, const bool *gone, const char *how)
{
	bool mean = !strcmp(how, "K_MEAN");
	Shape x = args_in(p, 0);
	bool single = kernel_float(p->n->in[0]);
	int64_t st[8], chunks = single ? args_chunks(p, "reduce_tree") : 1;
	Loops keep = { 0 }, over = { 0 };
	loops_strides(&x, st);
	for (int a = 0; a < x.ndim && !opt.chunks; a++)
		loops_add(gone[a] ? &over : &keep, x.d[a], st[a]);
	int64_t all = mean ? whole_count(p, gone) : 1, here = 1;
	for (int a = 0; a < x.ndim; a++)
		here *= mean && gone[a] ? x.d[a] : 1;
	bool shard = all != here;
	if (opt.chunks)
		logical_loops(p, &x, st, gone, &keep, &over);
	args_call(p, shard ? "k_mean_shard_f32" : chunks > 1 ? "k_reduce_tree_f32" : single ? "k_reduce_f32"
		: "k_reduce", "0", "0");
	args_loops(p, &keep);
	args_loops(p, &over);
	if (shard) {
		args_sizes(p, all);
		args_end(p);
		return;
	}
	if (chunks > 1) {
		int64_t n = 1;
		for (int i = 0; i < keep.n; i++)
			n *= keep.len[i];
		args_need(p, k_work_tree(n, chunks));
		args_sizes(p, chunks);
		args_end(p);
		return;
	}
	text_add(p->t, ", %s", how);
	single ? args_end(p) : args_type(p, p->n->in[0]);
}

/* Axes that the result lacks, or has once. */
static void call_reduce_to(const Print *p)
{
	Shape x = args_in(p, 0), y = args_out(p, 0);
	bool gone[8];
	for (int a = 0; a < x.ndim; a++) {
		int b = a - (x.ndim - y.ndim);
		gone[a] = b < 0 || (y.d[b] == 1 && x.d[a] != 1);
	}
	print_reduce(p, gone, "K_SUM");
}

/* reduce_sum is K_SUM. */
static void call_reduce(const Print *p)
{
	const Tensor *axes = p->n->nin > 1 && p->n->in[1] ? operand_const(p->n, 1) : NULL;
	int ndim = p->n->in[0]->type->ndim;
	int64_t n = axes ? tensor_elements(axes) : 0;
	bool gone[8], all = n == 0 && !attr_int(p->n, "noop_with_empty_axes");
	for (int a = 0; a < ndim; a++)
		gone[a] = all;
	for (int64_t i = 0; i < n; i++) {
		int64_t a = tensor_int(axes, i);
		gone[a < 0 ? a + ndim : a] = true;
	}
	char *how = arena_printf(p->e->tree.arena, "K_%s", p->n->row->kernel + strlen("reduce_"));
	for (char *s = how; *s; s++)
		*s = (char)toupper((unsigned char)*s);
	print_reduce(p, gone, how);
}

static void call_cumsum(const Print *p)
{
	Shape x = args_in(p, 0);
	int64_t axis = kernel_const(p->n, 1, 0);
	args_call(p, "k_cumsum", "0", "0");
	args_around(p, &x, (int)(axis < 0 ? axis + x.ndim : axis));
	args_word(p, attr_int(p->n, "exclusive"));
	args_word(p, attr_int(p->n, "reverse"));
	args_type(p, p->n->in[0]);
}

static void call_topk(const Print *p)
{
	Shape x = args_in(p, 0);
	args_call(p, "k_topk", "01", "0");
	args_around(p, &x, kernel_axis(p->n, x.ndim));
	args_sizes(p, kernel_const(p->n, 1, 0));
	args_word(p, attr_int(p->n, "largest"));
	args_type(p, p->n->in[0]);
}

static void print_argmax(const Print *p, bool largest)
{
	Shape x = args_in(p, 0);
	args_call(p, "k_argmax", "0", "0");
	args_around(p, &x, kernel_axis(p->n, x.ndim));
	args_word(p, largest);
	args_word(p, attr_int(p->n, "select_last_index"));
	args_type(p, p->n->in[0]);
}

static void call_argmax(const Print *p)
{
	print_argmax(p, true);
}

static void call_argmin(const Print *p)
{
	print_argmax(p, false);
}

const Call reduce_calls[] = {
	{ "reduce_to", "reduce", call_reduce_to, false },
	{ "reduce_to", "typed", call_reduce_to, false },
	{ "reduce_sum", "reduce", call_reduce, false },
	{ "reduce_sum", "typed", call_reduce, false },
	{ "reduce_mean", "reduce", call_reduce, false },
	{ "reduce_mean", "typed", call_reduce, false },
	{ "reduce_prod", "reduce", call_reduce, false },
	{ "reduce_prod", "typed", call_reduce, false },
	{ "reduce_max", "reduce", call_reduce, false },
	{ "reduce_max", "typed", call_reduce, false },
	{ "reduce_min", "reduce", call_reduce, false },
	{ "reduce_min", "typed", call_reduce, false },
	{ "cumsum", "typed", call_cumsum, false },
	{ "topk", "typed", call_topk, false },
	{ "argmax", "typed", call_argmax, false },
	{ "argmin", "typed", call_argmin, false },
	{ 0 },
};
