/* Arguments of calls: shapes and strides read off slots, and how loops, pointers and sizes are written. */
#include "calls.h"

#include <inttypes.h>
#include <string.h>

/* ---- scratch ---- */

void args_need(const Print *p, KWork w)
{
	Emit *e = p->e;
	e->work_shared = w.shared > e->work_shared ? w.shared : e->work_shared;
	e->work_each = w.each > e->work_each ? w.each : e->work_each;
}

/* ---- shapes ---- */

static Shape args_held(const Print *p, const Slot *s)
{
	Shape r = { .ndim = s->ndim };
	for (int a = 0; a < s->ndim; a++)
		r.d[a] = slot_len(p->e->plan, s, a, p->rank);
	return r;
}

Shape args_in(const Print *p, int i)
{
	return args_held(p, slot_of(p->e->plan, p->n->in[i]));
}

Shape args_out(const Print *p, int i)
{
	return args_held(p, p->make[i]);
}

/* ---- text ---- */

const char *args_result(const Print *p, int i)
{
	return i < p->n->nout && p->make[i] ? statement_param(p, p->make[i], true) : "NULL";
}

const char *args_operand(const Print *p, int i)
{
	return i < p->n->nin && p->take[i] ? statement_param(p, p->take[i], false) : "NULL";
}

const char *args_name(const Print *p)
{
	return arena_printf(p->e->tree.arena, "k_%s_f32", p->n->row->kernel);
}

void args_call(const Print *p, const char *name, const char *results, const char *operands)
{
	text_add(p->t, "%s(c", name);
	for (; *results; results++)
		text_add(p->t, ", %s", args_result(p, *results - '0'));
	for (; *operands; operands++)
		text_add(p->t, ", %s", args_operand(p, *operands - '0'));
}

const char *args_real(const Print *p, double v)
{
	char *s = arena_printf(p->e->tree.arena, "%.9g", v);
	return arena_printf(p->e->tree.arena, "%s%sf", s, strpbrk(s, ".en") ? "" : ".0");
}

void args_ints(const Print *p, const int64_t *v, int n)
{
	for (int i = 0; i < n; i++)
		text_add(p->t, ", %" PRId64, v[i]);
}

/* "{ 3, 4 }" */
static const char *dims_text(const Print *p, const int64_t *d, int n)
{
	const char *s = "{";
	for (int i = 0; i < n; i++)
		s = arena_printf(p->e->tree.arena, "%s%s %" PRId64, s, i ? "," : "", d[i]);
	return arena_printf(p->e->tree.arena, n ? "%s }" : "%s 0 }", s);
}

void args_dims(const Print *p, const int64_t *d, int n)
{
	text_add(p->t, ", %s", dims_text(p, d, n));
}

void args_field(const Print *p, const char *field, const char *value)
{
	text_add(p->t, "%s .%s = %s", p->t->s[p->t->n - 1] == '{' ? "" : ",", field, value);
}

void args_field_int(const Print *p, const char *field, int64_t value)
{
	args_field(p, field, arena_printf(p->e->tree.arena, "%" PRId64, value));
}

void args_field_dims(const Print *p, const char *field, const int64_t *d, int n)
{
	args_field(p, field, dims_text(p, d, n));
}

void args_loops(const Print *p, const Loops *l)
{
	text_add(p->t, ", (KLoops){ %d", l->n);
	args_dims(p, l->len, l->n);
	args_dims(p, l->stride, l->n);
	text_add(p->t, " }");
}

void args_around(const Print *p, const Shape *s, int axis)
{
	args_sizes(p, loops_product(s, 0, axis), s->d[axis], loops_product(s, axis + 1, s->ndim));
}

void args_word(const Print *p, bool yes)
{
	text_add(p->t, yes ? ", true" : ", false");
}

void args_width(const Print *p, const Value *v)
{
	args_sizes(p, kernel_bytes(v));
	args_end(p);
}

void args_type(const Print *p, const Value *v)
{
	static const struct { DType type; const char *name; } list[] = {
		{ DT_FLOAT, "F32" }, { DT_DOUBLE, "F64" }, { DT_INT64, "I64" }, { DT_INT32, "I32" }, { DT_UINT8, "U8" },
		{ DT_BOOL, "BOOL" },
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
		if (list[i].type == kernel_stored(v->type->elem))
			text_add(p->t, ", K_%s)", list[i].name);
}

void args_end(const Print *p)
{
	text_add(p->t, ")");
}

int64_t args_chunks(const Print *p, const char *file)
{
	int operand, axis;
	int64_t n = any_ranks_chunks(p->whole, p->e->tree.arena, &operand, &axis);
	if (n > 1) {
		Shape x = args_in(p, operand);
		n = n * x.d[axis] / p->whole->in[operand]->type->dim[axis];
	}
	if (n > 1)
		statement_file(p->e, file);
	return n;
}
