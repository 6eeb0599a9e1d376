/* The types of an .onnx file: TypeProto and the messages in it. */
#include "onnx_read.h"

static const Spec TYPE      = { "TypeProto",           " s  ssssss" };
static const Spec TENSOR_TY = { "TypeProto.Tensor",    " is" };
static const Spec SUB_TY    = { "TypeProto.Sequence",  " s" };
static const Spec MAP_TY    = { "TypeProto.Map",       " is" };
static const Spec OPAQUE_TY = { "TypeProto.Opaque",    " ss" };
static const Spec SHAPE     = { "TensorShapeProto",    " S" };
static const Spec DIMENSION = { "TensorShapeProto.Dimension", " iss" };

DType onnx_elem(Reader *r, const Field *f)
{
	if (f->v < DT_COUNT)
		return (DType)f->v;
	err_at(wire_loc(&r->w, f->at, 1), "%lld is no element type: they are numbered 1 to %d", (long long)f->v, DT_COUNT - 1);
	r->w.bad = true;
	return DT_UNDEFINED;
}

static Dim dimension(Reader *r, const Field *f, Name *denote)
{
	Msg m = wire_msg(&r->w, &DIMENSION, f->p, f->n, false);
	Dim d = DIM_UNKNOWN;
	Field g;

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

static void shape(Reader *r, const Field *f, Type *t)
{
	Msg m = wire_msg(&r->w, &SHAPE, f->p, f->n, false);
	bool denoted = false;
	Field g;
	int n = 0;

	t->rank = 0;
	t->dim = NULL;
	t->denote = NULL;
	while (wire_next(&m, &g)) {
		Name denote = NULL;
		Dim d = dimension(r, &g, &denote);

		arena_push(r->w.arena, t->dim, t->rank, d);
		arena_push(r->w.arena, t->denote, n, denote);
		denoted |= denote != NULL;
	}
	if (!denoted)
		t->denote = NULL;
	if (!t->dim)
		t->dim = arena_array(r->w.arena, Dim, 1);
	if (t->rank > RANK_MAX && !r->w.bad) {
		fail_at(EXIT_LIMIT, at(r, f), "a type has %d axes; at most %d are possible", t->rank, RANK_MAX);
		r->w.bad = true;
	}
}

/* One case of TypeProto's oneof. */
static void type_case(Reader *r, const Field *f, Type *t)
{
	static const TypeKind kinds[] = { [1] = TY_TENSOR, [4] = TY_SEQ, [5] = TY_MAP, [7] = TY_OPAQUE, [8] = TY_SPARSE, [9] = TY_OPTIONAL };
	static const Spec *const specs[] = { [1] = &TENSOR_TY, [4] = &SUB_TY, [5] = &MAP_TY, [7] = &OPAQUE_TY, [8] = &TENSOR_TY, [9] = &SUB_TY };
	Name denotation = t->denotation;
	Msg m = wire_msg(&r->w, specs[f->num], f->p, f->n, false);
	Field g;

	*t = (Type){ .kind = kinds[f->num], .rank = -1, .denotation = denotation };
	while (wire_next(&m, &g)) {
		if (t->kind == TY_OPAQUE && g.num == 1)
			t->domain = wire_name(&r->w, &g);
		else if (t->kind == TY_OPAQUE)
			t->name = wire_name(&r->w, &g);
		else if (m.spec == &SUB_TY || (t->kind == TY_MAP && g.num == 2))
			t->sub = onnx_type(r, &g);
		else if (g.num == 1)
			t->elem = onnx_elem(r, &g);
		else
			shape(r, &g, t);
	}
	if (r->w.bad)
		return;
	if ((m.spec == &SUB_TY || t->kind == TY_MAP) && !t->sub) {
		err_at(at(r, f), "the type of the elements is missing");
		r->w.bad = true;
	}
}

/* NULL when nothing is said: no case is given, or a tensor of elements that are not known. */
Type *onnx_type(Reader *r, const Field *f)
{
	Msg m = wire_msg(&r->w, &TYPE, f->p, f->n, false);
	Type *t = arena_new(r->w.arena, Type);
	bool given = false;
	Field g;

	if (!wire_enter(&r->w, f->p))
		return NULL;
	while (wire_next(&m, &g)) {
		if (g.num == 6) {
			t->denotation = g.n ? wire_name(&r->w, &g) : NULL;
			continue;
		}
		type_case(r, &g, t);
		given = true;
	}
	r->w.depth--;
	return given && !(t->kind == TY_TENSOR && t->elem == DT_UNDEFINED) ? t : NULL;
}
