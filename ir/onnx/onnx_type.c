/* The types of an .onnx file: TypeProto and the messages in it. */
#include "onnx.h"

#include <string.h>

typedef struct TypeBlobs TypeBlobs;

DType onnx_elem(OnnxReader *r, const WireField *f)
{
	if (f->v < DT_COUNT)
		return (DType)f->v;
	err_at(wire_loc(&r->w, f->at, 1), "%lld is no element type: they are numbered 1 to %d", (long long)f->v,
		DT_COUNT - 1);
	r->w.bad = true;
	return DT_UNDEFINED;
}

static Dim dimension(OnnxReader *r, const WireField *f, Name *denote, Blobs *keep)
{
	WireMsg m = wire_msg(&r->w, &message_dimension, f, keep);
	Dim d = DIM_UNKNOWN;
	WireField g;

	while (wire_next(&m, &g)) {
		if (g.num == 1 && (int64_t)g.v < 0) {
			err_at(wire_loc(&r->w, g.at, 1), "a dimension is negative: %lld", (long long)g.v);
			r->w.bad = true;
		} else if (g.num == 1) {
			d = (Dim)g.v;
		} else if (g.num == 2) {
			d = g.n ? dim_symbol(wire_name(&r->w, &g)) : DIM_UNKNOWN;
		} else {
			*denote = g.n ? wire_name(&r->w, &g) : NULL;
		}
	}
	return d;
}

static void shape(OnnxReader *r, const WireField *f, Type *t, TypeBlobs *keep)
{
	WireMsg m = wire_msg(&r->w, &message_shape, f, &keep->shape);
	bool denoted = false;
	WireField g;
	int n = 0;

	t->ndim = 0;
	t->dim = NULL;
	t->denote = NULL;
	keep->dim = NULL;
	while (wire_next(&m, &g)) {
		Blobs unknown = { 0 };
		Name denote = NULL;
		Dim d = dimension(r, &g, &denote, &unknown);

		if (unknown.n && !keep->dim)
			keep->dim = arena_array(r->w.arena, Blobs, NDIM_MAX);
		if (unknown.n && t->ndim < NDIM_MAX)
			keep->dim[t->ndim] = unknown;

		arena_push(r->w.arena, t->dim, t->ndim, d);
		arena_push(r->w.arena, t->denote, n, denote);
		denoted |= denote != NULL;
	}
	if (!denoted)
		t->denote = NULL;
	if (!t->dim)
		t->dim = arena_array(r->w.arena, Dim, 1);
	if (t->ndim > NDIM_MAX && !r->w.bad) {
		fail_at(EXIT_LIMIT, onnx_at(r, f), "a type has %d axes; at most %d are possible", t->ndim, NDIM_MAX);
		r->w.bad = true;
	}
}

/* One case of TypeProto's oneof. */
static void type_case(OnnxReader *r, const WireField *f, Type *t, TypeBlobs *keep)
{
	static const TypeKind kinds[] = {
		[1] = TY_TENSOR, [4] = TY_SEQ, [5] = TY_MAP, [7] = TY_OPAQUE, [8] = TY_SPARSE, [9] = TY_OPTIONAL,
	};
	static const WireSpec *const specs[] = {
		[1] = &message_tensor_type, [4] = &message_sub_type, [5] = &message_map_type,
		[7] = &message_opaque_type, [8] = &message_tensor_type, [9] = &message_sub_type,
	};
	Name denotation = t->denotation;
	bool hollow;
	WireMsg m = wire_msg(&r->w, specs[f->num], f, &keep->kind);
	WireField g;

	*keep = (TypeBlobs){ .type = keep->type };
	*t = (Type){ .kind = kinds[f->num], .ndim = -1, .denotation = denotation };
	while (wire_next(&m, &g)) {
		if (t->kind == TY_OPAQUE && g.num == 1)
			t->domain = wire_name(&r->w, &g);
		else if (t->kind == TY_OPAQUE)
			t->name = wire_name(&r->w, &g);
		else if (m.spec == &message_sub_type || (t->kind == TY_MAP && g.num == 2))
			t->sub = onnx_type(r, &g, &hollow);
		else if (g.num == 1)
			t->elem = onnx_elem(r, &g);
		else
			shape(r, &g, t, keep);
	}
	if (r->w.bad)
		return;
	if ((m.spec == &message_sub_type || t->kind == TY_MAP) && !t->sub) {
		err_at(onnx_at(r, f), "the type of the elements is missing");
		r->w.bad = true;
	}
}

/* *hollow: the result is NULL, but the message was not empty. */
Type *onnx_type(OnnxReader *r, const WireField *f, bool *hollow)
{
	TypeBlobs keep = { 0 };
	WireMsg m = wire_msg(&r->w, &message_type, f, &keep.type);
	Type *t = arena_new(r->w.arena, Type);
	bool given = false;
	WireField g;

	*hollow = false;
	if (!wire_enter(&r->w, f->p))
		return NULL;
	while (wire_next(&m, &g)) {
		if (g.num == 6) {
			t->denotation = g.n ? wire_name(&r->w, &g) : NULL;
			continue;
		}
		type_case(r, &g, t, &keep);
		given = true;
	}
	r->w.depth--;
	if (keep.type.n || keep.kind.n || keep.shape.n || keep.dim) {
		t->unknown = arena_new(r->w.arena, TypeBlobs);
		*t->unknown = keep;
	}
	bool wanting = (t->kind == TY_TENSOR || t->kind == TY_SPARSE || t->kind == TY_MAP) && t->elem == DT_UNDEFINED;
	if (given && !wanting)
		return t;
	*hollow = t->unknown || t->denotation || (given && (t->ndim >= 0 || t->kind != TY_TENSOR));
	return NULL;
}

/* Fields that only `from` has go to `to`. */
static void merge(Arena *mem, Blobs *to, const Blobs *from)
{
	int n = to->n;

	for (int i = 0; i < from->n; i++) {
		const Blob *b = &from->blob[i];
		bool same = false;

		for (int k = 0; k < n && !same; k++)
			same = to->blob[k].bytes == b->bytes && !memcmp(to->blob[k].data, b->data, b->bytes);
		if (!same)
			arena_push(mem, to->blob, to->n, *b);
	}
}

/* A value whose type is given twice: denotations and unknown fields of the first go to the second. */
void onnx_type_merge(OnnxReader *r, Type *to, const Type *from)
{
	int ndim = to->kind == from->kind && to->ndim == from->ndim ? to->ndim : 0;

	if (to == from)
		return;
	if (!to->denotation)
		to->denotation = from->denotation;
	if (from->denote && ndim > 0 && !to->denote)
		to->denote = from->denote;
	if (from->unknown && !to->unknown)
		to->unknown = arena_new(r->w.arena, TypeBlobs);
	if (from->unknown) {
		merge(r->w.arena, &to->unknown->type, &from->unknown->type);
		if (to->kind == from->kind) {
			merge(r->w.arena, &to->unknown->kind, &from->unknown->kind);
			merge(r->w.arena, &to->unknown->shape, &from->unknown->shape);
		}
		if (from->unknown->dim && ndim > 0 && !to->unknown->dim)
			to->unknown->dim = arena_array(r->w.arena, Blobs, NDIM_MAX);
		for (int i = 0; from->unknown->dim && i < ndim; i++)
			merge(r->w.arena, &to->unknown->dim[i], &from->unknown->dim[i]);
	}
	if (to->sub && from->sub)
		onnx_type_merge(r, to->sub, from->sub);
}
