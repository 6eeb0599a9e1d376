/* Arguments of calls: shapes and strides read off slots, and how loops, pointers and sizes are written. */
#include "emit_calls.h"

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

int64_t emit_product(const Shape *s, int from, int to)
{
	int64_t n = 1;
	for (int a = from; a < to; a++)
		n *= s->d[a];
	return n;
}

int64_t emit_count(const Shape *s)
{
	return emit_product(s, 0, s->rank);
}

void emit_strides(const Shape *s, int64_t *stride)
{
	int64_t n = 1;
	for (int a = s->rank - 1; a >= 0; a--) {
		stride[a] = n;
		n *= s->d[a];
	}
}

int emit_axis(const Node *n, int rank)
{
	int64_t a = attr_int(n, "axis");
	return (int)(a < 0 ? a + rank : a);
}

void emit_loop(Loops *l, int64_t len, int64_t stride)
{
	if (len == 1)
		return;
	if (l->n && l->stride[l->n - 1] == len * stride) {
		l->len[l->n - 1] *= len;
		l->stride[l->n - 1] = stride;
		return;
	}
	l->len[l->n] = len;
	l->stride[l->n++] = stride;
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
	emit_sizes(p, emit_product(s, 0, axis), s->d[axis], emit_product(s, axis + 1, s->rank));
}

void emit_word(const Print *p, bool yes)
{
	text_add(p->t, yes ? ", true" : ", false");
}

void emit_width(const Print *p, const Value *v)
{
	emit_sizes(p, emit_bytes(v));
	emit_end(p);
}

void emit_type(const Print *p, const Value *v)
{
	static const struct { DType type; const char *name; } list[] = {
		{ DT_FLOAT, "F32" }, { DT_DOUBLE, "F64" }, { DT_INT64, "I64" }, { DT_INT32, "I32" }, { DT_UINT8, "U8" }, { DT_BOOL, "BOOL" },
	};
	for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
		if (list[i].type == emit_stored(v->type->elem))
			text_add(p->t, ", K_%s)", list[i].name);
}

void emit_end(const Print *p)
{
	text_add(p->t, ")");
}

/* ---- what kernels ask ---- */

int emit_bits(const Value *v)
{
	return dtype_bits(emit_stored(v->type->elem));
}

int64_t emit_bytes(const Value *v)
{
	return emit_bits(v) / 8;
}

bool emit_float(const Value *v)
{
	return emit_stored(v->type->elem) == DT_FLOAT;
}

bool emit_int64(const Value *v)
{
	return v->type->elem == DT_INT64;
}

bool emit_floating(const Value *v)
{
	return emit_float(v) || v->type->elem == DT_DOUBLE;
}

bool emit_first_float(const Node *n)
{
	return emit_float(n->in[0]);
}

bool emit_all_float(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !emit_float(n->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !emit_float(n->out[i]))
			return false;
	return true;
}

bool emit_any(const Node *n)
{
	return emit_ctype(n->in[0]->type->elem) && n->in[0]->type->rank <= 8 && n->out[0] && type_elements(n->out[0]->type) > 0;
}

bool emit_indexed(const Node *n)
{
	return emit_any(n) && emit_int64(n->in[1]);
}

bool emit_consts(const Node *n, int from)
{
	for (int i = from; i < n->nin; i++)
		if (n->in[i] && !in_const(n, i))
			return false;
	return true;
}

int64_t emit_const(const Node *n, int i, int64_t otherwise)
{
	const Tensor *t = i < n->nin && n->in[i] ? in_const(n, i) : NULL;
	return t ? tensor_int(t, 0) : otherwise;
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
