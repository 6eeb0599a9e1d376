/* Calls of sequential kernels: recurrent cells step by step, determinants by elimination. */
#include "calls.h"
#include "ops/ops.h"

#include <string.h>

/* The sizes of a cell follow from its first operand, a sequence [steps, batch, ...], and the gates' weights [...,
 * hidden]. */
static void print_cells(const Print *p, int r)
{
	Shape x = args_in(p, 0), w = args_in(p, r);
	args_need(p, k_work_cells(x.d[1], w.d[1], kernel_float(p->n->in[0]) ? K_F32 : K_F64));
	text_add(p->t, ", &(KCells){ %lld", (long long)x.d[0]);
	args_sizes(p, x.d[1], w.d[1]);
	args_word(p, attr_has(p->n, "linear_before_reset") && attr_int(p->n, "linear_before_reset"));
	text_add(p->t, " }");
	args_type(p, p->n->in[0]);
}

/* By kernel: its results and operands, and which of these are the weights. */
static const struct { const char *kernel, *make, *take; int weights; } cells[] = {
	{ "lstm", "012345", "01234", 1 }, { "lstm_grad", "012", "01234567", 3 }, { "gru", "01234", "01234", 1 },
	{ "gru_grad", "012", "0123456", 3 }, { "rnn", "012", "0123", 1 }, { "rnn_grad", "01", "01234", 3 },
};

static void call_cells(const Print *p)
{
	for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
		if (!strcmp(p->n->row->kernel, cells[i].kernel)) {
			args_call(p, arena_printf(p->e->tree.arena, "k_%s", cells[i].kernel), cells[i].make,
				cells[i].take);
			print_cells(p, cells[i].weights);
		}
}

static void print_det(const Print *p, const char *name)
{
	Shape x = args_in(p, 0);
	args_need(p, k_work_det(x.d[x.ndim - 1]));
	args_call(p, name, "0", "0");
	args_sizes(p, loops_product(&x, 0, x.ndim - 2), x.d[x.ndim - 1]);
	args_type(p, p->n->in[0]);
}

static void call_det(const Print *p)
{
	print_det(p, "k_det");
}

static void call_cofactor(const Print *p)
{
	print_det(p, "k_cofactor");
}

const Call cells_calls[] = {
	{ "lstm", "recurrent", call_cells, false },
	{ "lstm_grad", "recurrent", call_cells, false },
	{ "gru", "recurrent", call_cells, false },
	{ "gru_grad", "recurrent", call_cells, false },
	{ "rnn", "recurrent", call_cells, false },
	{ "rnn_grad", "recurrent", call_cells, false },
	{ "det", "det", call_det, false },
	{ "cofactor", "det", call_cofactor, false },
	{ 0 },
};
