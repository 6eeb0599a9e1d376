/* Calls of softmax, losses and norms: rows, channels or groups, and the statistics that a gradient reads. */
#include "calls.h"

#include <inttypes.h>
#include <string.h>

/* ---- softmax and losses ---- */

static void print_softmax(const Print *p, const char *operands)
{
	Shape x = args_in(p, 0);
	args_call(p, args_name(p), "0", operands);
	args_around(p, &x, kernel_axis(p->n, x.ndim));
	args_end(p);
}

static void call_softmax(const Print *p)
{
	print_softmax(p, "0");
}

static void call_softmax_grad(const Print *p)
{
	print_softmax(p, "01");
}

/* The arguments of a loss after its pointers. */
static void end_loss(const Print *p, int64_t chunks)
{
	const char *r = attr_str(p->n, "reduction");
	Shape x = args_in(p, 0);
	args_need(p, k_work_loss(x.d[1] ? loops_count(&x) / x.d[1] : 0, !strcmp(r, "none") ? K_LOSS_NONE : K_LOSS_SUM));
	args_around(p, &x, 1);
	if (attr_has(p->n, "ignore_index"))
		args_sizes(p, attr_int(p->n, "ignore_index"));
	else
		text_add(p->t, ", INT64_MIN");
	text_add(p->t, ", %s", !strcmp(r, "none") ? "K_LOSS_NONE" : !strcmp(r, "sum") ? "K_LOSS_SUM" : "K_LOSS_MEAN");
	if (chunks)
		args_sizes(p, chunks);
}

/* With opt.chunks the loss is a sum in chunks, and its gradient that of k_xent_both. */
static int64_t loss_chunks(const Print *p)
{
	int64_t n = args_chunks(p, "loss_tree");
	if (opt.chunks)
		statement_file(p->e, "loss_tree");
	return n;
}

static void print_loss(const Print *p, const char *name, const char *results, const char *operands)
{
	args_call(p, name, results, operands);
	end_loss(p, 0);
	args_end(p);
}

/* A rank that holds some of the classes calls the kernel `shard`, which takes the number of the first of them and of
 * all. */
static void print_shard(const Print *p, const char *name, const char *shard, const char *operands)
{
	const char *first = calls_origin(p, p->take[0], 1);
	if (!strcmp(first, "0")) {
		print_loss(p, name, "0", operands);
		return;
	}
	args_call(p, shard, "0", operands);
	end_loss(p, 0);
	text_add(p->t, ", %s", first);
	args_sizes(p, p->take[0]->v->type->dim[1]);
	args_end(p);
}

static void call_xent(const Print *p)
{
	int64_t chunks = loss_chunks(p);
	args_call(p, chunks > 1 ? "k_xent_tree_f32" : "k_xent_f32", "012", "012");
	end_loss(p, chunks > 1 ? chunks : 0);
	args_end(p);
}

static void call_xent_grad(const Print *p)
{
	Shape t = args_in(p, 1);
	loss_chunks(p);
	if (opt.chunks)
		args_need(p, (KWork){ 12 * loops_count(&t), 0 });
	print_shard(p, opt.chunks ? "k_xent_grad_tree_f32" : "k_xent_grad_f32", "k_xent_grad_shard_f32", "01234");
}

static void call_xent_both(const Print *p)
{
	const Action *a = p->a;
	Slot *const made[] = { a->make[0], a->make[2], a->make[3] };
	int64_t chunks = loss_chunks(p);
	text_add(p->t, chunks > 1 ? "k_xent_both_tree_f32(c" : "k_xent_both_f32(c");
	for (int i = 0; i < 3; i++)
		text_add(p->t, ", %s", statement_param(p, made[i], true));
	for (int i = 0; i < 3; i++)
		text_add(p->t, ", %s", args_operand(p, i));
	text_add(p->t, ", %s", statement_param(p, a->take[a->ntake - 1], false));
	end_loss(p, chunks > 1 ? chunks : 0);
	args_end(p);
}

const CallPair norm_pairs[] = {
	{ "softmax_xent", "softmax_xent_grad", call_xent_both },
	{ 0 },
};

static void call_nll(const Print *p)
{
	print_shard(p, "k_nll_f32", "k_nll_shard_f32", "012");
}

static void call_sum_exp(const Print *p)
{
	Shape x = args_in(p, 0);
	args_call(p, args_name(p), "0", "01");
	args_around(p, &x, kernel_axis(p->n, x.ndim));
	args_end(p);
}

static void call_ahead(const Print *p)
{
	Shape x = args_in(p, 0);
	args_call(p, "k_ahead_f32", "0", "012");
	args_around(p, &x, 1);
	text_add(p->t, ", %s", calls_origin(p, p->take[0], 1));
	args_end(p);
}

/* ---- norms ---- */

/* Rows and their length. */
static void print_rows(const Print *p, const Shape *x)
{
	int axis = kernel_axis(p->n, x->ndim);
	args_sizes(p, loops_product(x, 0, axis), loops_product(x, axis, x->ndim));
}

/* batch, groups, channels of a group, the rest. */
static void print_groups(const Print *p, const Shape *x)
{
	int64_t groups = attr_has(p->n, "num_groups") ? attr_int(p->n, "num_groups") : 0;
	groups = groups < 1 ? x->d[1] : groups;         /* one channel each */
	args_sizes(p, x->d[0], groups, x->d[1] / groups, loops_product(x, 2, x->ndim));
}

static void print_channels(const Print *p, const Shape *x)
{
	args_sizes(p, x->d[0], x->d[1], loops_product(x, 2, x->ndim));
}

static void print_layernorm(const Print *p, bool centred)
{
	Shape x = args_in(p, 0);
	args_call(p, "k_layernorm_f32", "0", "");
	text_add(p->t, ", %s, %s", centred ? args_result(p, 1) : "NULL", args_result(p, centred ? 2 : 1));
	for (int i = 0; i < 3; i++)
		text_add(p->t, ", %s", args_operand(p, i));
	print_rows(p, &x);
	args_word(p, centred);
	text_add(p->t, ", %s)", args_real(p, attr_float(p->n, "epsilon")));
}

static void call_layernorm(const Print *p)
{
	print_layernorm(p, true);
}

static void call_rmsnorm(const Print *p)
{
	print_layernorm(p, false);
}

static void call_groupnorm(const Print *p)
{
	Shape x = args_in(p, 0);
	args_call(p, "k_groupnorm_f32", "012", "012");
	print_groups(p, &x);
	text_add(p->t, ", %s)", args_real(p, attr_float(p->n, "epsilon")));
}

static void call_batchnorm(const Print *p)
{
	Shape x = args_in(p, 0);
	args_call(p, "k_batchnorm_f32", "01234", "01234");
	print_channels(p, &x);
	text_add(p->t, ", %s, %s)", args_real(p, attr_float(p->n, "epsilon")),
		args_real(p, attr_float(p->n, "momentum")));
}

/* The gradient of x, or, with w, those of scale and bias. */
static void print_grad(const Print *p, bool w, void (*sizes)(const Print *, const Shape *))
{
	Shape x = args_in(p, 1);
	int64_t chunks = w ? args_chunks(p, "norm_tree") : 1;
	args_call(p, chunks > 1 ? arena_printf(p->e->tree.arena, "k_%s_tree_f32", p->n->row->kernel) : args_name(p),
		w ? "01" : "0", w ? "0134" : "01234");
	sizes(p, &x);
	if (chunks > 1) {
		Shape y = args_out(p, 0);
		args_need(p, k_work_tree(2 * loops_count(&y), chunks));
		args_sizes(p, chunks);
	}
	args_end(p);
}

static void call_rows_grad(const Print *p)
{
	print_grad(p, false, print_rows);
}

static void call_rows_grad_w(const Print *p)
{
	print_grad(p, true, print_rows);
}

static void call_groups_grad(const Print *p)
{
	print_grad(p, false, print_groups);
}

static void call_groups_grad_w(const Print *p)
{
	print_grad(p, true, print_groups);
}

static void call_channels_grad(const Print *p)
{
	print_grad(p, false, print_channels);
}

static void call_channels_grad_w(const Print *p)
{
	print_grad(p, true, print_channels);
}

const Call norm_calls[] = {
	{ "softmax", "softmax", call_softmax, false },
	{ "logsoftmax", "softmax", call_softmax, false },
	{ "softmax_grad", "softmax", call_softmax_grad, false },
	{ "logsoftmax_grad", "softmax", call_softmax_grad, false },
	{ "softmax_xent", "loss", call_xent, false },
	{ "softmax_xent_grad", "loss", call_xent_grad, false },
	{ "nll_loss", "loss", call_nll, false },
	{ "sum_exp", "loss", call_sum_exp, false },
	{ "ahead", "loss", call_ahead, false },
	{ "layernorm", "norm", call_layernorm, false },
	{ "rmsnorm", "norm", call_rmsnorm, false },
	{ "layernorm_grad", "norm", call_rows_grad, false },
	{ "layernorm_grad_w", "norm", call_rows_grad_w, false },
	{ "groupnorm", "norm", call_groupnorm, false },
	{ "instancenorm", "norm", call_groupnorm, false },
	{ "groupnorm_grad", "norm", call_groups_grad, false },
	{ "groupnorm_grad_w", "norm", call_groups_grad_w, false },
	{ "batchnorm", "norm", call_batchnorm, false },
	{ "batchnorm_grad", "norm", call_channels_grad, false },
	{ "batchnorm_grad_w", "norm", call_channels_grad_w, false },
	{ 0 },
};
