/* The attributes of an .onnx file: AttributeProto, whose type determines the field of its value. */
#include "onnx.h"

#include <string.h>

/* The field that carries an attribute of each type. */
static const uint8_t attr_field[] = {
	[AT_FLOAT] = 2, [AT_INT] = 3, [AT_STRING] = 4, [AT_TENSOR] = 5, [AT_GRAPH] = 6,
	[AT_FLOATS] = 7, [AT_INTS] = 8, [AT_STRINGS] = 9, [AT_TENSORS] = 10, [AT_GRAPHS] = 11,
	[AT_SPARSE] = 22, [AT_SPARSES] = 23, [AT_TYPE] = 14, [AT_TYPES] = 15,
};

static const char *const attr_kind[] = { "undefined", "float", "int", "string", "tensor", "graph", "floats", "ints",
	"strings", "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos" };

/* The type that the attribute states, or that follows from its only field. */
static void attr_type(OnnxReader *r, Attr *a, uint32_t used)
{
	if (a->type == AT_UNDEFINED)
		for (int t = AT_FLOAT; t <= AT_TYPES && !a->type; t++)
			if (used == 1u << attr_field[t])
				a->type = (AttrType)t;
	if (r->w.bad || (a->ref && !used))
		return;
	if (a->type == AT_UNDEFINED) {
		err_at(a->loc, "attribute %s has no type and %s", a->name, used ? "several values" : "no value");
		r->w.bad = true;
	} else if (used & ~(1u << attr_field[a->type])) {
		err_at(a->loc, "attribute %s is %s but has a value of another type", a->name, attr_kind[a->type]);
		r->w.bad = true;
	}
}

static void attr_floats(OnnxReader *r, const WireField *f, float **list, int *n)
{
	if (f->n % 4) {
		err_at(onnx_at(r, f), "a list of floats has %zu bytes", f->n);
		r->w.bad = true;
	}
	for (size_t i = 0; i + 4 <= f->n; i += 4) {
		float v;

		memcpy(&v, f->p + i, 4);
		arena_push(r->w.arena, *list, *n, v);
	}
}

/* The value, from the fields of a second walk. */
static void attr_value(OnnxReader *r, Attr *a, const WireMsg *msg, Graph *g)
{
	WireMsg m = wire_again(msg);
	Arena *mem = r->w.arena;
	bool given = false, known;
	WireField f;

	if (a->type == AT_STRING)
		a->u.s = name_of("");
	while (wire_next(&m, &f)) {
		if (f.num != attr_field[a->type])
			continue;
		if (given && (a->type == AT_TENSOR || a->type == AT_GRAPH || a->type == AT_SPARSE))
			memset(&a->u, 0, sizeof a->u);
		given = true;
		switch (a->type) {
		case AT_FLOAT:   memcpy(&a->u.f, f.p, 4); break;
		case AT_INT:     a->u.i = (int64_t)f.v; break;
		case AT_STRING:  a->u.s = wire_text(&r->w, &f); break;
		case AT_TENSOR:  a->u.t = onnx_tensor(r, &f); break;
		case AT_GRAPH:   a->u.g = onnx_graph(r, &f, g); break;
		case AT_FLOATS:  attr_floats(r, &f, &a->u.fs, &a->n); break;
		case AT_INTS:    wire_ints(&r->w, &f, &a->u.is, &a->n); break;
		case AT_STRINGS: arena_push(mem, a->u.ss, a->n, wire_text(&r->w, &f)); break;
		case AT_TENSORS: arena_push(mem, a->u.ts, a->n, onnx_tensor(r, &f)); break;
		case AT_GRAPHS:  arena_push(mem, a->u.gs, a->n, onnx_graph(r, &f, g)); break;
		case AT_SPARSE:  a->u.t = onnx_sparse(r, &f); break;
		case AT_SPARSES: arena_push(mem, a->u.ts, a->n, onnx_sparse(r, &f)); break;
		case AT_TYPE:    a->u.tp = onnx_type(r, &f, &known); break;
		case AT_TYPES:   arena_push(mem, a->u.tps, a->n, onnx_type(r, &f, &known)); break;
		default: break;
		}
	}
	if (!given && !a->ref && !r->w.bad &&
		(a->type == AT_TENSOR || a->type == AT_GRAPH || a->type == AT_SPARSE || a->type == AT_TYPE)) {
		err_at(a->loc, "attribute %s has no value", a->name);
		r->w.bad = true;
	}
	bool hollow = a->type == AT_TYPE && given && !a->u.tp;
	for (int i = 0; a->type == AT_TYPES && i < a->n; i++)
		hollow |= !a->u.tps[i];
	if (hollow && !a->ref && !r->w.bad) {
		err_at(a->loc, "attribute %s holds an empty type", a->name);
		r->w.bad = true;
	}
	/* Sparse tensors have become dense ones. */
	if (given && !a->ref && (a->type == AT_SPARSE || a->type == AT_SPARSES))
		a->type = a->type == AT_SPARSE ? AT_TENSOR : AT_TENSORS;
}

Attr onnx_attribute(OnnxReader *r, const WireField *field, Graph *g)
{
	Attr a = { .name = name_of(""), .loc = onnx_at(r, field) };
	WireMsg m = wire_msg(&r->w, &message_attribute, field, &a.unknown);
	uint32_t used = 0;
	WireField f;

	if (!wire_enter(&r->w, field->p))
		return a;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1:  a.name = wire_name(&r->w, &f); break;
		case 13: a.doc = wire_text(&r->w, &f); break;
		case 21: a.ref = f.n ? wire_name(&r->w, &f) : NULL; break;
		case 20:
			if (f.v > AT_TYPES) {
				err_at(a.loc, "attribute %s is of type %lld, which does not exist", a.name,
					(long long)f.v);
				r->w.bad = true;
			} else {
				a.type = (AttrType)f.v;
			}
			break;
		default: used |= 1u << f.num;
		}
	}
	attr_type(r, &a, used);
	if (!r->w.bad)
		attr_value(r, &a, &m, g);
	r->w.depth--;
	return a;
}

void onnx_unique_attrs(OnnxReader *r, const Attr *a, int n)
{
	Arena tmp = { 0 };
	Map seen;

	map_init(&seen, &tmp);
	for (int i = 0; i < n && n > 1 && !r->w.bad; i++) {
		const Attr *first = map_get(&seen, a[i].name);

		if (first) {
			err_at(a[i].loc, "attribute %s stands twice", a[i].name);
			note_at(first->loc, "%s stands here first", a[i].name);
			r->w.bad = true;
		}
		map_put(&seen, a[i].name, (void *)&a[i]);
	}
	arena_free(&tmp);
}
