/* Arguments of calls: shapes and strides read off slots, and how loops, pointers and sizes are written. */
#include "calls.h"

#include <inttypes.h>
#include <string.h>

/* ---- scratch ---- */

void emit_need(const Print *p, KWork w)
{
	Emit *e = p->e;
	e->work_shared = w.shared > e->work_shared ? w.shared : e->work_shared;
	e->work_each = w.each > e->work_each ? w.each : e->work_each;
}

/* ---- shapes ---- */

Shape emit_held(const Print *p, const Slot *s)
{
	Shape r = { .rank = s->rank };
	for (int a = 0; a < s->rank; a++)
		r.d[a] = slot_len(p->e->plan, s, a, p->rank);
	return r;
}

Shape emit_in(const Print *p, int i)
{
	return emit_held(p, plan_slot(p->e->plan, p->n->in[i]));
}

Shape emit_out(const Print *p, int i)
{
	return emit_held(p, p->make[i]);
}

/* ---- text ---- */

const char *emit_result(const Print *p, int i)
{
	return i < p->n->nout && p->make[i] ? emit_param(p, p->make[i], true) : "NULL";
}

const char *emit_operand(const Print *p, int i)
{
	return i < p->n->nin && p->take[i] ? emit_param(p, p->take[i], false) : "NULL";
}

const char *emit_name(const Print *p)
{
	return arena_printf(p->e->tree.arena, "k_%s_f32", p->n->row->kernel);
}

void emit_call(const Print *p, const char *name, const char *results, const char *operands)
{
	text_add(p->t, "%s(c", name);
	for (; *results; results++)
		text_add(p->t, ", %s", emit_result(p, *results - '0'));
	for (; *operands; operands++)
		text_add(p->t, ", %s", emit_operand(p, *operands - '0'));
}

const char *emit_real(const Print *p, double v)
{
	char *s = arena_printf(p->e->tree.arena, "%.9g", v);
	return arena_printf(p->e->tree.arena, "%s%sf", s, strpbrk(s, ".en") ? "" : ".0");
}

void emit_ints(const Print *p, const int64_t *v, int n)
{
	for (int i = 0; i < n; i++)
		text_add(p->t, ", %" PRId64, v[i]);
}

void emit_dims(const Print *p, const int64_t *d, int n)
{
	text_add(p->t, ", {");
	for (int i = 0; i < n; i++)
		text_add(p->t, "%s %" PRId64, i ? "," : "", d[i]);
	text_add(p->t, n ? " }" : " 0 }");
}

void emit_loops(const Print *p, const Loops *l)
{
	text_add(p->t, ", (KLoops){ %d", l->n);
	emit_dims(p, l->len, l->n);
	emit_dims(p, l->stride, l->n);
	text_add(p->t, " }");
}

void emit_around(const Print *p, const Shape *s, int axis)
{
	emit_sizes(p, loops_product(s, 0, axis), s->d[axis], loops_product(s, axis + 1, s->rank));
}

void emit_word(const Print *p, bool yes)
{
	text_add(p->t, yes ? ", true" : ", false");
}

void emit_width(const Print *p, const Value *v)
{
	emit_sizes(p, kernel_bytes(v));
	emit_end(p);
}

void emit_type(const Print *p, const Value *v)
{
	static const struct { DType type; const char *name; } list[] = {
		{ DT_FLOAT, "F32" }, { DT_DOUBLE, "F64" }, { DT_INT64, "I64" }, { DT_INT32, "I32" }, { DT_UINT8, "U8" }, { DT_BOOL, "BOOL" },
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
		if (list[i].type == kernel_stored(v->type->elem))
			text_add(p->t, ", K_%s)", list[i].name);
}

void emit_end(const Print *p)
{
	text_add(p->t, ")");
}

int64_t emit_chunks(const Print *p, const char *file)
{
	int operand, axis;
	int64_t n = chunks_of(p->whole, p->e->tree.arena, &operand, &axis);
	if (n > 1) {
		Shape x = emit_in(p, operand);
		n = n * x.d[axis] / p->whole->in[operand]->type->dim[axis];
	}
	if (n > 1)
		emit_file(p->e, file);
	return n;
}
