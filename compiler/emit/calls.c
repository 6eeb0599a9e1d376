/* Calls of kernels: which row of the tables of calls prints that of a kernel, and how transfers are called. */
#include "calls.h"

#include <inttypes.h>
#include <string.h>

static const Call *const tables[] = {
	matmul_calls, norm_calls, attention_calls, window_calls, move_calls, index_calls, reduce_calls, squares_calls,
	cells_calls,
};

const Call *calls_of(const Kernel *k)
{
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (const Call *c = tables[i]; c->name; c++)
			if (!strcmp(k->name, c->name) && !strcmp(k->file, c->file))
				return c;
	die("nothing prints calls of %s in %s", k->name, k->file);
}

const CallPair *calls_of_pair(const KernelPair *k)
{
	for (const CallPair *c = norm_pairs; c->first; c++)
		if (!strcmp(k->first, c->first) && !strcmp(k->second, c->second))
			return c;
	die("nothing prints calls of %s and %s", k->first, k->second);
}

/* ---- forms and transfers ---- */

int calls_number(Emit *e, int form)
{
	for (int i = 0; i < e->nform; i++)
		if (e->form[i] == form)
			return i + 1;
	arena_push(e->tree.arena, e->form, e->nform, form);
	return e->nform;
}

int calls_form(Emit *e, const Slot *s)
{
	return slot_cut(e->plan, s) ? calls_number(e, s->form) : 0;
}

const char *calls_origin(const Print *p, const Slot *s, int axis)
{
	const Form *f = slot_form(p->e->plan, s);
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_S && f->cut[k].axis == axis && f->mesh[k] > 1)
			return arena_printf(p->e->tree.arena, "rt_origin(c, %d, %d)", calls_form(p->e, s), axis);
	return "0";
}

int calls_move(Emit *e, const Slot *x, const Slot *y, int channel)
{
	EmitMove m = { calls_number(e, x->form), calls_number(e, y->form), kernel_stored(x->v->type->elem), channel };
	int i = 0;
	while (i < e->nmove && (e->move[i].from != m.from || e->move[i].to != m.to || e->move[i].type != m.type ||
		e->move[i].channel != m.channel))
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
	return arena_printf(p->e->tree.arena, "%d", calls_move(p->e, p->take[i], p->make[i], p->a->channel));
}

static const char *result_text(const Print *p, int i) { return statement_param(p, p->make[i], true); }
static const char *operand_text(const Print *p, int i) { return statement_param(p, p->take[i], false); }

void calls_transfer(const Print *p)
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
