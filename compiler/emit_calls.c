/* Calls of kernels: which row of the tables of calls is a node's, what it asks of its operands, and how transfers are called. */
#include "emit_calls.h"

#include <inttypes.h>
#include <string.h>

static const Kernel *const tables[] = { calls_matmul, calls_norm, calls_attention, calls_window, calls_move, calls_index, calls_reduce, calls_cells };

const Kernel *emit_kernel(const Node *n)
{
	const Kernel *first = NULL;
	for (size_t i = 0; n->row->kernel && i < sizeof tables / sizeof tables[0]; i++)
		for (const Kernel *k = tables[i]; k->name; k++) {
			if (strcmp(n->row->kernel, k->name))
				continue;
			if (k->can(n))
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
	return n->row->expr || emit_boxing(n) || (k && k->can(n));
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
	Shape len = emit_held(p, s);
	text_add(p->t, "&(RtBox){ %d", s->rank);
	emit_dims(p, s->dim, s->rank);
	emit_dims(p, len.d, s->rank);
	text_add(p->t, ", {");
	for (int a = 0; a < s->rank; a++)
		text_add(p->t, s->split[a] < 0 ? "%s -1" : "%s SPLIT%d", a ? "," : "", s->split[a]);
	text_add(p->t, "%s } }", s->rank ? "" : " 0");
}

/* The part of x that this rank's y is. */
static void print_slice(const Print *p, const Slot *x, const Slot *y)
{
	Shape xs = emit_held(p, x), ys = emit_held(p, y);
	int64_t st[8];
	Loops l = { 0 };
	const char *plus = ", ";
	emit_strides(&xs, st);
	emit_call(p, "k_copy", "0", "0");
	for (int a = 0; a < y->rank; a++) {
		emit_loop(&l, ys.d[a], st[a]);
		if (y->split[a] < 0)
			continue;
		text_add(p->t, "%sc->me->origin[SPLIT%d] * %" PRId64, plus, y->split[a], st[a]);
		plus = " + ";
	}
	if (*plus == ',')
		emit_sizes(p, 0);
	emit_loops(p, &l);
	emit_width(p, x->v);
}

void emit_transfer(const Print *p)
{
	const Slot *x = p->take[0], *y = p->make[0];
	int64_t n = slot_elements(p->e->plan, y, p->rank);
	if (!strcmp(p->a->how, "all_reduce")) {
		emit_call(p, "c->comm->all_reduce", "0", "0");
		emit_sizes(p, n);
		emit_end(p);
	} else if (!strcmp(p->a->how, "all_gather")) {
		emit_call(p, "c->comm->all_gather", "0", "0");
		text_add(p->t, ", ");
		emit_box(p, x);
		emit_sizes(p, emit_bytes(x->v));
		emit_end(p);
	} else if (!strcmp(p->a->how, "slice")) {
		print_slice(p, x, y);
	} else {                        /* zero: rank 0 keeps the value, the others hold 0 */
		emit_call(p, "k_keep", "0", "0");
		emit_sizes(p, n * emit_bytes(x->v));
		text_add(p->t, ", c->me->coord[0] == 0)");
	}
}
