/* Calls of kernels that walk: recurrent cells step by step, determinants by elimination. */
#include "emit_calls.h"
#include "ops/ops.h"

#include <string.h>

/* The cell, told by the shape of a state sequence [steps, batch, hidden] and the gates' weights. */
static void print_cells(const Print *p, int xw, int r)
{
	Shape x = emit_in(p, xw), w = emit_in(p, r);
	emit_need(p, k_work_cells(x.d[1], w.d[1], emit_float(p->n->in[0]) ? K_F32 : K_F64));
	text_add(p->t, ", &(KCells){ %lld", (long long)x.d[0]);
	emit_sizes(p, x.d[1], w.d[1]);
	emit_word(p, attr_has(p->n, "linear_before_reset") && attr_int(p->n, "linear_before_reset"));
	text_add(p->t, " }");
	emit_type(p, p->n->in[0]);
}

static void call_lstm(const Print *p)
{
	emit_call(p, "k_lstm", "012345", "01234");
	print_cells(p, 0, 1);
}

static void call_lstm_grad(const Print *p)
{
	emit_call(p, "k_lstm_grad", "012", "01234567");
	print_cells(p, 0, 3);
}

static void call_gru(const Print *p)
{
	emit_call(p, "k_gru", "01234", "01234");
	print_cells(p, 0, 1);
}

static void call_gru_grad(const Print *p)
{
	emit_call(p, "k_gru_grad", "012", "0123456");
	print_cells(p, 0, 3);
}

static void call_rnn(const Print *p)
{
	emit_call(p, "k_rnn", "012", "0123");
	print_cells(p, 0, 1);
}

static void call_rnn_grad(const Print *p)
{
	emit_call(p, "k_rnn_grad", "01", "01234");
	print_cells(p, 0, 3);
}

/* Their composites exist for what the forward kernel can do alone. */
static bool can_grad(const Node *n)
{
	return emit_floating(n->in[0]);
}

static bool can_det(const Node *n)
{
	const Type *x = n->in[0]->type;
	return emit_floating(n->in[0]) && x->dim[x->rank - 1] <= K_DET;
}

static void print_det(const Print *p, const char *name)
{
	Shape x = emit_in(p, 0);
	emit_need(p, k_work_det(x.d[x.rank - 1]));
	emit_call(p, name, "0", "0");
	emit_sizes(p, emit_product(&x, 0, x.rank - 2), x.d[x.rank - 1]);
	emit_type(p, p->n->in[0]);
}

static void call_det(const Print *p)
{
	print_det(p, "k_det");
}

static void call_cofactor(const Print *p)
{
	print_det(p, "k_cofactor");
}

const Kernel calls_cells[] = {
	{ "lstm", "recurrent", 31, steps_plain, call_lstm, false },
	{ "lstm_grad", "recurrent", 255, can_grad, call_lstm_grad, false },
	{ "gru", "recurrent", 31, steps_plain, call_gru, false },
	{ "gru_grad", "recurrent", 127, can_grad, call_gru_grad, false },
	{ "rnn", "recurrent", 15, steps_plain, call_rnn, false },
	{ "rnn_grad", "recurrent", 31, can_grad, call_rnn_grad, false },
	{ "det", "det", 1, can_det, call_det, false },
	{ "cofactor", "det", 1, can_det, call_cofactor, false },
	{ 0 },
};
