/* Calls of kernels: which row of the tables of calls is a node's, what it asks of its operands, and how transfers are called. */
#include "emit_calls.h"

#include <inttypes.h>
#include <string.h>

static const Kernel *const tables[] = { calls_matmul, calls_norm, calls_attention, calls_window, calls_move, calls_index, calls_reduce, calls_cells };

static bool settled(const Value *v)
{
	const Type *t = v ? v->type : NULL;
	bool ok = !v || (t && t->kind == TY_TENSOR && t->rank >= 0);
	for (int a = 0; v && ok && a < t->rank; a++)
		ok = dim_known(t->dim[a]);
	return ok;
}

/* Passes ask before they know whether all shapes are numbers; what kernels are able to do is said of numbers only. */
static bool all_settled(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (!settled(n->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (!settled(n->out[i]))
			return false;
	return true;
}

const Kernel *emit_kernel(const Node *n)
{
	const Kernel *first = NULL;
	bool known = n->row->kernel && all_settled(n);
	for (size_t i = 0; n->row->kernel && i < sizeof tables / sizeof tables[0]; i++)
		for (const Kernel *k = tables[i]; k->name; k++) {
			if (*n->row->kernel != *k->name || strcmp(n->row->kernel, k->name))
				continue;
			if (known && k->can(n))
				return k;
			first = first ? first : k;
		}
	return first;
}

const KernelPair *emit_pair(const Node *a, const Node *b)
{
	for (const KernelPair *k = calls_pairs; k->first; k++)
		if (a->row->kernel && b->row->kernel && !strcmp(a->row->kernel, k->first) && !strcmp(b->row->kernel, k->second) && k->can(a, b))
			return k;
	return NULL;
}

bool emit_boxing(const Node *n)
{
	return node_is(n, "sbpcc.Boxing");
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
	err_at(n->loc, "%s is %s: programs hold float, double, float16, bfloat16, int64, int32, uint8 and bool; Cast it", v->name, type_text(v->type));
	return false;
}

bool emit_counts(const Node *n)
{
	const Kernel *k = n->row->expr ? NULL : emit_kernel(n);
	return k && k->how & KERNEL_COUNTS;
}

bool emit_has(const Node *n)
{
	const Kernel *k = n->row->expr ? NULL : emit_kernel(n);
	return n->row->expr || emit_boxing(n) || (k && k->can(n));
}

static bool cut_along(const Value *v, int axis)
{
	for (int i = 0; v->sbp && v->place && i < v->place->mesh->ndim; i++)
		if (v->place->mesh->dim[i] > 1 && v->sbp[i].kind == SBP_S && v->sbp[i].axis == axis)
			return true;
	return false;
}

/* Whether a part of an axis is held that the kernel of n would take for all of it. */
static bool miscounts(Node *n)
{
	if (emit_counts(n) || n->row->random)
		return false;
	Arena tmp = { 0 };
	const FactorRule *r = factor_rule(n, &tmp);
	uint64_t told = r ? r->runs | r->counted : 0;
	bool bad = false;
	for (int i = 0; told && i < n->nin + n->nout; i++) {
		const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		const int *row = i < n->nin ? r->in[i] : r->out[i - n->nin];
		for (int a = 0; row && v && a < v->type->rank; a++)
			bad |= row[a] >= 0 && row[a] < 64 && (told >> row[a] & 1) && cut_along(v, a);
	}
	arena_free(&tmp);
	return bad;
}

bool emit_can(Node *n)
{
	if (miscounts(n)) {
		err_at(n->loc, "no kernel for %s of a part of the axis that it counts along yet in this back end", n->op);
		return false;
	}
	if (!emit_has(n)) {
		for (int i = 0; i < n->nin + n->nout; i++) {
			const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
			if (!v || !v->type || type_elements(v->type) != 0)
				continue;
			err_at(n->loc, "%s %s of this %s is empty: %s; no kernel takes tensors without elements", i < n->nin ? "operand" : "the result", v->name, n->op, type_text(v->type));
			return false;
		}
		for (int i = 0; i < n->nin + n->nout; i++)
			if ((i < n->nin ? n->in[i] : n->out[i - n->nin]) && !typed(n, i < n->nin ? n->in[i] : n->out[i - n->nin]))
				return false;
		Text types = { 0 };
		for (int i = 0; i < n->nin; i++)
			if (n->in[i])
				text_add(&types, "%s%s", types.n ? ", " : "", type_text(n->in[i]->type));
		err_at(n->loc, "no kernel computes %s of %s; operands that say how (axes, shapes, counts) must be constants", n->op, types.n ? types.s : "nothing");
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

/* ---- forms and transfers ---- */

static int number_of(Emit *e, int form)
{
	for (int i = 0; i < e->nform; i++)
		if (e->form[i] == form)
			return i + 1;
	arena_push(e->tree.arena, e->form, e->nform, form);
	return e->nform;
}

int emit_form(Emit *e, const Slot *s)
{
	return slot_cut(e->plan, s) ? number_of(e, s->form) : 0;
}

const char *emit_origin(const Print *p, const Slot *s, int axis)
{
	const Form *f = slot_form(p->e->plan, s);
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_S && f->cut[k].axis == axis && f->mesh[k] > 1)
			return arena_printf(p->e->tree.arena, "rt_origin(c, %d, %d)", emit_form(p->e, s), axis);
	return "0";
}

/* The number of the transfer from x to y. */
static int move_of(const Print *p, const Slot *x, const Slot *y)
{
	Emit *e = p->e;
	EmitMove m = { number_of(e, x->form), number_of(e, y->form), emit_stored(x->v->type->elem), p->a->kind == ACT_COMPUTE };
	int i = 0;
	while (i < e->nmove && (e->move[i].from != m.from || e->move[i].to != m.to || e->move[i].type != m.type || e->move[i].here != m.here))
		i++;
	if (i == e->nmove)
		arena_push(e->tree.arena, e->move, e->nmove, m);
	return i;
}

static void print_list(const Print *p, const char *type, const char *(*item)(const Print *, int), int n)
{
	for (int i = 0; i < n; i++)
		text_add(p->t, "%s%s", i ? ", " : type, item(p, i));
	text_add(p->t, " }");
}

static const char *move_text(const Print *p, int i)
{
	return arena_printf(p->e->tree.arena, "%d", move_of(p, p->take[i], p->make[i]));
}

static const char *result_text(const Print *p, int i) { return emit_param(p, p->make[i], true); }
static const char *operand_text(const Print *p, int i) { return emit_param(p, p->take[i], false); }

void emit_transfer(const Print *p)
{
	int n = p->a->nmake;
	if (p->a->kind == ACT_FINISH) {
		text_add(p->t, "rt_moves_finish(c, %s)", result_text(p, 0));
		return;
	}
	if (n == 1 && p->a->kind != ACT_START) {
		text_add(p->t, "rt_move(c, %s, %s, %s)", move_text(p, 0), result_text(p, 0), operand_text(p, 0));
		return;
	}
	text_add(p->t, "rt_moves%s(c, %d, ", p->a->kind == ACT_START ? "_start" : "", n);
	print_list(p, "(const int[]){ ", move_text, n);
	print_list(p, ", (void *const[]){ ", result_text, n);
	print_list(p, ", (const void *const[]){ ", operand_text, n);
	text_add(p->t, ")");
}
