/* Calls of softmax, losses and norms: rows, channels or groups, and the statistics that a gradient reads. */
#include "emit_calls.h"

#include <inttypes.h>
#include <string.h>

/* ---- softmax and losses ---- */

static void call_softmax(const Print *p)
{
	Shape x = emit_in(p, 0);
	emit_call(p, emit_name(p), "0", strstr(p->n->row->kernel, "_grad") ? "01" : "0");
	emit_around(p, &x, emit_axis(p->n, x.rank));
	emit_end(p);
}

static bool can_loss(const Node *n)
{
	return emit_float(n->in[0]) && emit_int64(n->in[1]);
}

/* What follows the pointers. */
static void end_loss(const Print *p, int64_t chunks)
{
	const char *r = attr_str(p->n, "reduction");
	Shape x = emit_in(p, 0);
	emit_need(p, k_work_loss(x.d[1] ? emit_count(&x) / x.d[1] : 0, !strcmp(r, "none") ? K_LOSS_NONE : K_LOSS_SUM));
	emit_around(p, &x, 1);
	if (attr_has(p->n, "ignore_index"))
		emit_sizes(p, attr_int(p->n, "ignore_index"));
	else
		text_add(p->t, ", INT64_MIN");
	text_add(p->t, ", %s", !strcmp(r, "none") ? "K_LOSS_NONE" : !strcmp(r, "sum") ? "K_LOSS_SUM" : "K_LOSS_MEAN");
	if (chunks)
		emit_sizes(p, chunks);
}

/* With opt.chunks the loss is a sum in chunks, and its gradient that of k_xent_both. */
static int64_t loss_chunks(const Print *p)
{
	int64_t n = emit_chunks(p, "loss_tree");
	if (opt.chunks)
		emit_file(p->e, "loss_tree");
	return n;
}

static void print_loss(const Print *p, const char *name, const char *results, const char *operands)
{
	emit_call(p, name, results, operands);
	end_loss(p, 0);
	emit_end(p);
}

/* Of some of the classes the kernel is told which. */
static void print_part(const Print *p, const char *name, const char *part, const char *operands)
{
	const char *first = emit_origin(p, p->take[0], 1);
	if (!strcmp(first, "0")) {
		print_loss(p, name, "0", operands);
		return;
	}
	emit_call(p, part, "0", operands);
	end_loss(p, 0);
	text_add(p->t, ", %s", first);
	emit_sizes(p, p->take[0]->v->type->dim[1]);
	emit_end(p);
}

static void call_xent(const Print *p)
{
	int64_t chunks = loss_chunks(p);
	emit_call(p, chunks > 1 ? "k_xent_tree_f32" : "k_xent_f32", "012", "012");
	end_loss(p, chunks > 1 ? chunks : 0);
	emit_end(p);
}

static void call_xent_grad(const Print *p)
{
	Shape t = emit_in(p, 1);
	loss_chunks(p);
	if (opt.chunks)
		emit_need(p, (KWork){ 12 * emit_count(&t), 0 });
	print_part(p, opt.chunks ? "k_xent_grad_tree_f32" : "k_xent_grad_f32", "k_xent_grad_part_f32", "01234");
}

static const Value *operand(const Node *n, int i)
{
	return i < n->nin ? n->in[i] : NULL;
}

static bool same_ignored(const Node *a, const Node *b)
{
	bool has = attr_has(a, "ignore_index");
	return has == attr_has(b, "ignore_index") && (!has || attr_int(a, "ignore_index") == attr_int(b, "ignore_index"));
}

/* A loss and its own gradient, which does not wait for the loss: what is asked of it is known before. */
static bool can_xent_both(const Node *loss, const Node *grad)
{
	for (int i = 0; i < 3; i++)
		if (operand(loss, i) != operand(grad, i))
			return false;
	return can_loss(loss) && emit_float(grad->in[4]) && loss->nout > 2 && loss->out[0] && !loss->out[1] && loss->out[2] && grad->in[3] == loss->out[2] && grad->in[4] != loss->out[0] &&
	       !strcmp(attr_str(loss, "reduction"), attr_str(grad, "reduction")) && same_ignored(loss, grad);
}

static void call_xent_both(const Print *p)
{
	const Action *a = p->a;
	Slot *const made[] = { a->make[0], a->make[2], a->make[3] };
	int64_t chunks = loss_chunks(p);
	text_add(p->t, chunks > 1 ? "k_xent_both_tree_f32(c" : "k_xent_both_f32(c");
	for (int i = 0; i < 3; i++)
		text_add(p->t, ", %s", emit_param(p, made[i], true));
	for (int i = 0; i < 3; i++)
		text_add(p->t, ", %s", emit_operand(p, i));
	text_add(p->t, ", %s", emit_param(p, a->take[a->ntake - 1], false));
	end_loss(p, chunks > 1 ? chunks : 0);
	emit_end(p);
}

const KernelPair calls_pairs[] = {
	{ "softmax_xent", "softmax_xent_grad", "loss", can_xent_both, call_xent_both },
	{ 0 },
};

static void call_nll(const Print *p)
{
	print_part(p, "k_nll_f32", "k_nll_part_f32", "012");
}

static void call_sum_exp(const Print *p)
{
	Shape x = emit_in(p, 0);
	emit_call(p, emit_name(p), "0", "01");
	emit_around(p, &x, emit_axis(p->n, x.rank));
	emit_end(p);
}

static bool can_ahead(const Node *n)
{
	return emit_float(n->in[0]) && emit_float(n->in[1]) && emit_int64(n->in[2]) && emit_float(n->out[0]);
}

static void call_ahead(const Print *p)
{
	Shape x = emit_in(p, 0);
	emit_call(p, "k_ahead_f32", "0", "012");
	emit_around(p, &x, 1);
	text_add(p->t, ", %s", emit_origin(p, p->take[0], 1));
	emit_end(p);
}

/* ---- norms ---- */

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
	int axis = emit_axis(n, x->rank);
	return emit_all_float(n) && fills_axes(n->in[1], x, axis) && (n->nin < 3 || fills_axes(n->in[2], x, axis));
}

static bool can_layernorm_grad(const Node *n)
{
	const Type *x = n->in[1]->type;
	return emit_all_float(n) && fills_axes(n->in[2], x, emit_axis(n, x->rank));
}

/* Rows and their length. */
static void print_rows(const Print *p, const Shape *x)
{
	int axis = emit_axis(p->n, x->rank);
	emit_sizes(p, emit_product(x, 0, axis), emit_product(x, axis, x->rank));
}

/* batch, groups, channels of a group, the rest. */
static void print_groups(const Print *p, const Shape *x)
{
	int64_t groups = attr_has(p->n, "num_groups") ? attr_int(p->n, "num_groups") : 0;
	groups = groups < 1 ? x->d[1] : groups;         /* one channel each */
	emit_sizes(p, x->d[0], groups, x->d[1] / groups, emit_product(x, 2, x->rank));
}

static void print_channels(const Print *p, const Shape *x)
{
	emit_sizes(p, x->d[0], x->d[1], emit_product(x, 2, x->rank));
}

static void print_layernorm(const Print *p, bool centred)
{
	Shape x = emit_in(p, 0);
	emit_call(p, "k_layernorm_f32", "0", "");
	text_add(p->t, ", %s, %s", centred ? emit_result(p, 1) : "NULL", emit_result(p, centred ? 2 : 1));
	for (int i = 0; i < 3; i++)
		text_add(p->t, ", %s", emit_operand(p, i));
	print_rows(p, &x);
	emit_word(p, centred);
	text_add(p->t, ", %s)", emit_real(p, attr_float(p->n, "epsilon")));
}

static void call_layernorm(const Print *p)
{
	print_layernorm(p, true);
}

static void call_rmsnorm(const Print *p)
{
	print_layernorm(p, false);
}

static bool can_groupnorm(const Node *n)
{
	return emit_all_float(n) && n->in[1]->type->dim[0] == n->in[0]->type->dim[1];
}

static void call_groupnorm(const Print *p)
{
	Shape x = emit_in(p, 0);
	emit_call(p, "k_groupnorm_f32", "012", "012");
	print_groups(p, &x);
	text_add(p->t, ", %s)", emit_real(p, attr_float(p->n, "epsilon")));
}

/* Statistics of all of the batch; stored ones make it pointwise. */
static bool can_batchnorm(const Node *n)
{
	return emit_all_float(n) && n->row->since >= 14 && attr_int(n, "training_mode") && !annot_find(n->annot, "local_stats");
}

static void call_batchnorm(const Print *p)
{
	Shape x = emit_in(p, 0);
	emit_call(p, "k_batchnorm_f32", "01234", "01234");
	print_channels(p, &x);
	text_add(p->t, ", %s, %s)", emit_real(p, attr_float(p->n, "epsilon")), emit_real(p, attr_float(p->n, "momentum")));
}

/* Gradients: of x, and with _w at the end of scale and bias. */
static void print_grad(const Print *p, void (*sizes)(const Print *, const Shape *))
{
	Shape x = emit_in(p, 1);
	bool w = strstr(p->n->row->kernel, "_w") != NULL;
	int64_t chunks = w ? emit_chunks(p, "norm_tree") : 1;
	emit_call(p, chunks > 1 ? arena_printf(p->e->tree.arena, "k_%s_tree_f32", p->n->row->kernel) : emit_name(p), w ? "01" : "0", w ? "0134" : "01234");
	sizes(p, &x);
	if (chunks > 1) {
		Shape y = emit_out(p, 0);
		emit_need(p, k_work_tree(2 * emit_count(&y), chunks));
		emit_sizes(p, chunks);
	}
	emit_end(p);
}

static void call_rows_grad(const Print *p)
{
	print_grad(p, print_rows);
}

static void call_groups_grad(const Print *p)
{
	print_grad(p, print_groups);
}

static void call_channels_grad(const Print *p)
{
	print_grad(p, print_channels);
}

const Kernel calls_norm[] = {
	{ "softmax", "softmax", 1, emit_first_float, call_softmax, KERNEL_LEADING },
	{ "logsoftmax", "softmax", 1, emit_first_float, call_softmax, KERNEL_LEADING },
	{ "softmax_grad", "softmax", 3, emit_first_float, call_softmax, KERNEL_LEADING },
	{ "logsoftmax_grad", "softmax", 3, emit_first_float, call_softmax, KERNEL_LEADING },
	{ "softmax_xent", "loss", 7, can_loss, call_xent, KERNEL_LEADING | KERNEL_CHUNKS },
	{ "softmax_xent_grad", "loss", 31, can_loss, call_xent_grad, KERNEL_COUNTS | KERNEL_LEADING },
	{ "nll_loss", "loss", 7, can_loss, call_nll, KERNEL_COUNTS | KERNEL_LEADING },
	{ "sum_exp", "loss", 3, emit_all_float, call_sum_exp, KERNEL_LEADING },
	{ "ahead", "loss", 7, can_ahead, call_ahead, KERNEL_COUNTS | KERNEL_LEADING },
	{ "layernorm", "norm", 7, can_layernorm, call_layernorm, KERNEL_LEADING },
	{ "rmsnorm", "norm", 3, can_layernorm, call_rmsnorm, KERNEL_LEADING },
	{ "layernorm_grad", "norm", 31, can_layernorm_grad, call_rows_grad, KERNEL_LEADING },
	{ "layernorm_grad_w", "norm", 27, can_layernorm_grad, call_rows_grad, KERNEL_LEADING | KERNEL_CHUNKS },
	{ "groupnorm", "norm", 7, can_groupnorm, call_groupnorm, KERNEL_FIRST },
	{ "instancenorm", "norm", 7, can_groupnorm, call_groupnorm, KERNEL_FIRST },
	{ "groupnorm_grad", "norm", 31, emit_all_float, call_groups_grad, KERNEL_FIRST },
	{ "groupnorm_grad_w", "norm", 27, emit_all_float, call_groups_grad, KERNEL_FIRST | KERNEL_CHUNKS },
	{ "batchnorm", "norm", 31, can_batchnorm, call_batchnorm, KERNEL_EACH | KERNEL_STATE },
	{ "batchnorm_grad", "norm", 31, emit_all_float, call_channels_grad, KERNEL_EACH },
	{ "batchnorm_grad_w", "norm", 27, emit_all_float, call_channels_grad, KERNEL_EACH | KERNEL_CHUNKS },
	{ 0 },
};
