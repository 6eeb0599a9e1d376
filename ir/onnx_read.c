/* .onnx files: protobuf -> Model, without a protobuf library.
 *
 * The file is mapped and walked once or twice per message; names are interned, everything else that is large stays
 * where it is: a Tensor points into the map.  A graph is read in the order of the text syntax, whatever the order in
 * the file: inputs, outputs, initialisers, value infos, nodes.  So names are found as the text parser finds
 * them, and a value that a node of an inner graph captures is known before that node is read.
 *
 * What is refused here cannot be represented: malformed bytes, sizes that contradict each other, unknown element
 * types.  What a graph must fulfil besides is checked in verify.c, for text and protobuf alike. */
#include "wire.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Field numbers are those of onnx.proto. */
static const Spec MODEL     = { "ModelProto",          " isssissS     S     k    SS" };
static const Spec GRAPH     = { "GraphProto",          " Ss  S    sSSSkSS" };
static const Spec NODE      = { "NodeProto",           " SSssSsssSS" };
static const Spec ATTRIBUTE = { "AttributeProto",      " sfisssFISSS ssS    issS" };
static const Spec TENSOR    = { "TensorProto",         " IisFISIssDIsSi S" };
static const Spec SPARSE    = { "SparseTensorProto",   " ssI" };
static const Spec VALUE     = { "ValueInfoProto",      " sssS" };
static const Spec TYPE      = { "TypeProto",           " s  ssssss" };
static const Spec TENSOR_TY = { "TypeProto.Tensor",    " is" };
static const Spec SUB_TY    = { "TypeProto.Sequence",  " s" };
static const Spec MAP_TY    = { "TypeProto.Map",       " is" };
static const Spec OPAQUE_TY = { "TypeProto.Opaque",    " ss" };
static const Spec SHAPE     = { "TensorShapeProto",    " S" };
static const Spec DIMENSION = { "TensorShapeProto.Dimension", " iss" };
static const Spec OPSET     = { "OperatorSetIdProto",  " si" };
static const Spec ENTRY     = { "StringStringEntryProto", " ss" };
static const Spec FUNCTION  = { "FunctionProto",       " s  SSSSsSsSSsS" };

typedef struct Reader {
	Wire w;
	Model *m;
	SrcFile *src;
	int64_t nodes;
	ShardReader *shard;
} Reader;

static Loc at(const Reader *r, const Field *f)
{
	return wire_loc(&r->w, f->p, f->n);
}

static Name or_empty(Name s)
{
	return s ? s : name_of("");
}

static void entry(Reader *r, const Field *f, Pair **list, int *n)
{
	Msg m = wire_msg(&r->w, &ENTRY, f->p, f->n, false);
	Pair p = { .key = name_of(""), .value = name_of(""), .loc = at(r, f) };
	Field g;

	while (wire_next(&m, &g)) {
		if (g.num == 1)
			p.key = wire_text(&r->w, &g);
		else
			p.value = wire_text(&r->w, &g);
	}
	arena_push(r->w.arena, *list, *n, p);
}

/* Takes the entry of ours with that key out of a list. */
static Name take(Pair *list, int *n, const char *key)
{
	for (int i = 0; i < *n; i++)
		if (!strcmp(list[i].key, key)) {
			Name value = list[i].value;

			memmove(list + i, list + i + 1, sizeof *list * (size_t)(--*n - i));
			return value;
		}
	return NULL;
}

static void annots(Reader *r, Pair *list, int *n, AnnotPlace place, Annot **to)
{
	Name text = take(list, n, place == ON_GRAPH ? KEY_GRAPH : KEY_ANNOT);

	if (text && parse_annots(file_memory(name_fmt("%s (annotation)", r->src->path), text, strlen(text)), r->m, place, to))
		r->w.bad = true;
}

static void opset(Reader *r, const Field *f, Opset **list, int *n)
{
	Msg m = wire_msg(&r->w, &OPSET, f->p, f->n, false);
	Opset o = { .domain = name_of(""), .loc = at(r, f) };
	Field g;

	while (wire_next(&m, &g)) {
		if (g.num == 1)
			o.domain = wire_name(&r->w, &g);
		else
			o.version = (int64_t)g.v;
	}
	for (int i = 0; i < *n; i++)
		if ((*list)[i].domain == o.domain) {
			if ((*list)[i].version != o.version)
				err_at(o.loc, "domain \"%s\" is imported twice, in versions %lld and %lld", o.domain,
					(long long)(*list)[i].version, (long long)o.version);
			return;
		}
	arena_push(r->w.arena, *list, *n, o);
}

/* Keeps a field that was understood but shall be written again as it is. */
static void keep(Reader *r, const Field *f, Blob **list, int *n)
{
	arena_push(r->w.arena, *list, *n, ((Blob){ f->at, (size_t)(f->p + f->n - f->at), f->num }));
}

/* Types. */

static DType elem(Reader *r, const Field *f)
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

static Type *type(Reader *r, const Field *f);

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
			t->sub = type(r, &g);
		else if (g.num == 1)
			t->elem = elem(r, &g);
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
static Type *type(Reader *r, const Field *f)
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

/* Tensors. */

static bool bad_tensor(Reader *r)
{
	r->w.bad = true;
	return false;
}

/* The product of the dimensions; those that are 0 are left out of the check, so that no product of some overflows. */
static bool elements(Reader *r, const Tensor *t, int64_t *n)
{
	bool zero = false;

	*n = 1;
	if (t->rank > RANK_MAX) {
		fail_at(EXIT_LIMIT, t->loc, "tensor %s has %d axes; at most %d are possible", or_empty(t->name), t->rank, RANK_MAX);
		return bad_tensor(r);
	}
	for (int i = 0; i < t->rank; i++) {
		if (t->dim[i] < 0) {
			err_at(t->loc, "tensor %s has a negative dimension: %lld", or_empty(t->name), (long long)t->dim[i]);
			return bad_tensor(r);
		}
		zero |= t->dim[i] == 0;
		if (t->dim[i] && __builtin_mul_overflow(*n, t->dim[i], n)) {
			err_at(t->loc, "the dimensions of tensor %s multiply to more than 2^63 elements", or_empty(t->name));
			return bad_tensor(r);
		}
	}
	if (zero)
		*n = 0;
	if (tensor_bytes(t->dtype, *n) == SIZE_MAX) {
		err_at(t->loc, "tensor %s has more than 2^64 bytes", or_empty(t->name));
		return bad_tensor(r);
	}
	return true;
}

enum { FLOATS = 4, INT32S = 5, STRINGS = 6, INT64S = 7, RAW = 9, DOUBLES = 10, UINT64S = 11 };

static const char *const data_field[] = { [FLOATS] = "float_data", [INT32S] = "int32_data", [STRINGS] = "string_data",
	[INT64S] = "int64_data", [RAW] = "raw_data", [DOUBLES] = "double_data", [UINT64S] = "uint64_data" };

/* The typed field that carries elements of a type, and how many entries n elements take there. */
static uint32_t home(DType t, int64_t n, int64_t *entries)
{
	*entries = n;
	switch (t) {
	case DT_FLOAT:      return FLOATS;
	case DT_COMPLEX64:  *entries = 2 * n; return FLOATS;
	case DT_DOUBLE:     return DOUBLES;
	case DT_COMPLEX128: *entries = 2 * n; return DOUBLES;
	case DT_INT64:      return INT64S;
	case DT_UINT32: case DT_UINT64: return UINT64S;
	case DT_STRING:     return STRINGS;
	default:
		*entries = dtype_bits(t) == 4 ? n / 2 + n % 2 : dtype_bits(t) == 2 ? n / 4 + (n % 4 != 0) : n;
		return INT32S;
	}
}

/* Entries of a typed field, one after the other, into t's memory. */
static void decode(Reader *r, Tensor *t, const Msg *msg, uint32_t num, int64_t entries)
{
	Msg m = wire_again(msg);
	int width = num == FLOATS ? 4 : num == DOUBLES ? 8 : dtype_bits(t->dtype) < 8 ? 1 : dtype_bits(t->dtype) / 8;
	uint8_t *out = arena_alloc(r->w.arena, t->bytes + 8);
	int64_t i = 0;
	Field f;

	t->data = out;
	while (wire_next(&m, &f)) {
		if (f.num != num)
			continue;
		if (num == STRINGS) {
			t->str[i++] = wire_text(&r->w, &f);
		} else if (num == FLOATS || num == DOUBLES) {
			memcpy(out, f.p, f.n);
			out += f.n;
		} else {
			for (const uint8_t *p = f.p, *end = p + f.n; p < end && i < entries; i++, out += width) {
				uint64_t v;

				if (!wire_varint(&r->w, &p, end, &v))
					return;
				if (t->dtype == DT_BOOL)
					v = v != 0;
				memcpy(out, &v, (size_t)width);
			}
		}
	}
}

/* What the fields of a tensor hold: one walk, nothing allocated but the dimensions. */
typedef struct Found {
	uint32_t used;                  /* data fields that are not empty, as bits */
	int64_t entries;
	int pieces;
	Field piece;                    /* the last one */
	int64_t location;
} Found;

static bool data_fits(Reader *r, Tensor *t, const Found *d, int64_t n)
{
	int64_t want;
	uint32_t num = (uint32_t)__builtin_ctz(d->used | 1u << 31), typed = home(t->dtype, n, &want);

	if (d->used & (d->used - 1)) {
		uint32_t other = (uint32_t)__builtin_ctz(d->used & (d->used - 1));

		err_at(t->loc, "tensor %s has both %s and %s", or_empty(t->name), data_field[num], data_field[other]);
		return bad_tensor(r);
	}
	if (num != 31 && num != RAW && num != typed) {
		err_at(t->loc, "the %s elements of tensor %s cannot stand in %s", dtype_name(t->dtype), or_empty(t->name), data_field[num]);
		return bad_tensor(r);
	}
	if (num == RAW && t->dtype == DT_STRING) {
		err_at(t->loc, "the strings of tensor %s cannot stand in raw_data", or_empty(t->name));
		return bad_tensor(r);
	}
	int64_t have = num == RAW ? (int64_t)d->piece.n : d->entries;
	if (num == RAW)
		want = (int64_t)t->bytes;
	if (have == want)
		return true;
	if (n > limits.elements)
		fail_at(EXIT_LIMIT, t->loc, "tensor %s has %lld elements, more than --max-elements=%lld, but not their data", or_empty(t->name),
		        (long long)n, (long long)limits.elements);
	else if (num == 31)
		err_at(t->loc, "tensor %s has %lld elements but no data", or_empty(t->name), (long long)n);
	else
		err_at(t->loc, "%s of tensor %s has %lld %s, but its dimensions and type ask for %lld", data_field[num], or_empty(t->name),
		       (long long)have, num == RAW ? "bytes" : "entries", (long long)want);
	return bad_tensor(r);
}

static void tensor_data(Reader *r, Tensor *t, const Msg *m, const Found *d)
{
	int64_t n;

	if (t->dtype == DT_UNDEFINED && !r->w.bad) {
		err_at(t->loc, "tensor %s has no element type", or_empty(t->name));
		bad_tensor(r);
	}
	if (r->w.bad || !elements(r, t, &n))
		return;
	t->bytes = tensor_bytes(t->dtype, n);
	if (d->location == 1 || t->next) {
		if (d->used || d->location != 1) {
			err_at(t->loc, d->used ? "tensor %s has external data and also %s" : "tensor %s names external data, but data_location does not say so",
			       or_empty(t->name), data_field[d->used ? __builtin_ctz(d->used) : RAW]);
			bad_tensor(r);
		} else if (!t->next) {
			err_at(t->loc, "the data of tensor %s are external, but nothing says where", or_empty(t->name));
			bad_tensor(r);
		}
		return;
	}
	if (!data_fits(r, t, d, n))
		return;
	if (t->dtype == DT_STRING)
		t->str = arena_array(r->w.arena, Name, n + 1);
	uint32_t num = d->used ? (uint32_t)__builtin_ctz(d->used) : 0;
	if (num == RAW || (d->pieces == 1 && (num == FLOATS || num == DOUBLES))) {
		t->data = d->piece.p;
		t->file = take(t->meta, &t->nmeta, KEY_LITERAL) ? 0 : r->w.file;
		t->file_off = (uint64_t)(d->piece.p - r->w.base);
	} else {
		decode(r, t, m, num, d->entries);
	}
}

static Tensor *tensor(Reader *r, const Field *field)
{
	Msg m = wire_msg(&r->w, &TENSOR, field->p, field->n, true);
	Tensor *t = arena_new(r->w.arena, Tensor);
	Found d = { 0 };
	Field f;

	t->loc = at(r, field);
	if (!wire_enter(&r->w, field->p))
		return t;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1:  wire_ints(&r->w, &f, &t->dim, &t->rank); break;
		case 2:  t->dtype = elem(r, &f); break;
		case 3:
			err_at(wire_loc(&r->w, f.at, 1), "tensors in segments are not supported");
			r->w.bad = true;
			break;
		case 8:  t->name = wire_name(&r->w, &f); break;
		case 12: t->doc = wire_text(&r->w, &f); break;
		case 13: entry(r, &f, &t->ext, &t->next); break;
		case 14: d.location = (int64_t)f.v; break;
		case 16: entry(r, &f, &t->meta, &t->nmeta); break;
		default:
			if (f.n == 0 && f.num != STRINGS)
				break;
			if ((f.num == FLOATS && f.n % 4) || (f.num == DOUBLES && f.n % 8)) {
				err_at(at(r, &f), "%s has %zu bytes, which is no whole number of elements", data_field[f.num], f.n);
				r->w.bad = true;
			}
			d.used |= 1u << f.num;
			d.entries += f.num == STRINGS || f.num == RAW ? 1 : wire_count(&f, f.num == FLOATS ? 4 : f.num == DOUBLES ? 8 : 0);
			d.pieces++;
			d.piece = f;
		}
	}
	t->unknown = m.blob;
	t->nunknown = m.nblob;
	if (!t->dim)
		t->dim = arena_array(r->w.arena, int64_t, 1);
	tensor_data(r, t, &m, &d);
	r->w.depth--;
	return t;
}

/* A sparse tensor as a dense one: values [nnz], indices [nnz] into the flattened tensor or [nnz, rank]. */
static Tensor *sparse(Reader *r, const Field *field)
{
	Msg m = wire_msg(&r->w, &SPARSE, field->p, field->n, false);
	Field f, parts[3] = { 0 };
	Tensor *t = arena_new(r->w.arena, Tensor), *val, *idx;
	int64_t n;

	t->loc = at(r, field);
	if (!wire_enter(&r->w, field->p))
		return t;
	while (wire_next(&m, &f)) {
		if (f.num == 3)
			wire_ints(&r->w, &f, &t->dim, &t->rank);
		else
			parts[f.num] = f;
	}
	if (!r->w.bad && (!parts[1].p || !parts[2].p)) {
		err_at(t->loc, "a sparse tensor needs values and indices");
		r->w.bad = true;
	}
	if (r->w.bad)
		return t;
	val = tensor(r, &parts[1]);
	idx = tensor(r, &parts[2]);
	if (!t->dim)
		t->dim = arena_array(r->w.arena, int64_t, 1);
	t->name = val->name;
	t->doc = val->doc;
	t->meta = val->meta;
	t->nmeta = val->nmeta;
	t->dtype = val->dtype;
	if (r->w.bad || !elements(r, t, &n))
		return t;
	int64_t nnz = val->rank == 1 ? val->dim[0] : -1;
	bool flat = idx->rank == 1, deep = idx->rank == 2 && idx->dim[1] == t->rank;
	if (nnz < 0 || idx->dtype != DT_INT64 || !(flat || deep) || idx->dim[0] != nnz || val->next || idx->next || dtype_bits(t->dtype) < 8) {
		err_at(t->loc, "sparse tensor %s needs values [n] and int64 indices [n] or [n, %d], inside the file", or_empty(t->name), t->rank);
		r->w.bad = true;
		return t;
	}
	size_t width = (size_t)dtype_bits(t->dtype) / 8, bytes = tensor_bytes(t->dtype, n);
	if (n > limits.elements || bytes > (16u << 20) + 4 * r->src->bytes) {
		fail_at(EXIT_LIMIT, t->loc, "sparse tensor %s would have %lld elements when it is made dense", or_empty(t->name), (long long)n);
		r->w.bad = true;
		return t;
	}
	uint8_t *out = arena_alloc(r->w.arena, bytes + 8);
	for (int64_t i = 0; i < nnz; i++) {
		int64_t where = 0;

		for (int k = 0; k < (flat ? 1 : t->rank); k++) {
			int64_t x = tensor_int(idx, flat ? i : i * t->rank + k), size = flat ? n : t->dim[k];

			if (x < 0 || x >= size) {
				err_at(idx->loc, "index %lld of sparse tensor %s is not below %lld", (long long)x, or_empty(t->name), (long long)size);
				r->w.bad = true;
				return t;
			}
			where = where * (flat ? 1 : size) + x;
		}
		memcpy(out + (size_t)where * width, (const uint8_t *)val->data + (size_t)i * width, width);
	}
	t->data = out;
	t->bytes = bytes;
	r->w.depth--;
	return t;
}

/* Attributes. */

static Graph *graph(Reader *r, const Field *f, Graph *outer);

/* The field that carries an attribute of each type. */
static const uint8_t attr_field[] = { [AT_FLOAT] = 2, [AT_INT] = 3, [AT_STRING] = 4, [AT_TENSOR] = 5, [AT_GRAPH] = 6, [AT_FLOATS] = 7,
	[AT_INTS] = 8, [AT_STRINGS] = 9, [AT_TENSORS] = 10, [AT_GRAPHS] = 11, [AT_SPARSE] = 22, [AT_SPARSES] = 23, [AT_TYPE] = 14, [AT_TYPES] = 15 };

static const char *const attr_kind[] = { "undefined", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors",
	"graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos" };

/* The type that the attribute states, or that follows from the one field it has. */
static void attr_type(Reader *r, Attr *a, uint32_t used)
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

static void attr_floats(Reader *r, const Field *f, float **list, int *n)
{
	if (f->n % 4) {
		err_at(at(r, f), "a list of floats has %zu bytes", f->n);
		r->w.bad = true;
	}
	for (size_t i = 0; i + 4 <= f->n; i += 4) {
		float v;

		memcpy(&v, f->p + i, 4);
		arena_push(r->w.arena, *list, *n, v);
	}
}

/* The value, from the fields of a second walk. */
static void attr_value(Reader *r, Attr *a, const Msg *msg, Graph *g)
{
	Msg m = wire_again(msg);
	Arena *mem = r->w.arena;
	bool given = false;
	Field f;

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
		case AT_TENSOR:  a->u.t = tensor(r, &f); break;
		case AT_GRAPH:   a->u.g = graph(r, &f, g); break;
		case AT_FLOATS:  attr_floats(r, &f, &a->u.fs, &a->n); break;
		case AT_INTS:    wire_ints(&r->w, &f, &a->u.is, &a->n); break;
		case AT_STRINGS: arena_push(mem, a->u.ss, a->n, wire_text(&r->w, &f)); break;
		case AT_TENSORS: arena_push(mem, a->u.ts, a->n, tensor(r, &f)); break;
		case AT_GRAPHS:  arena_push(mem, a->u.gs, a->n, graph(r, &f, g)); break;
		case AT_SPARSE:  a->u.t = sparse(r, &f); break;
		case AT_SPARSES: arena_push(mem, a->u.ts, a->n, sparse(r, &f)); break;
		case AT_TYPE:    a->u.tp = type(r, &f); break;
		case AT_TYPES:   arena_push(mem, a->u.tps, a->n, type(r, &f)); break;
		default: break;
		}
	}
	if (!given && !a->ref && !r->w.bad && (a->type == AT_TENSOR || a->type == AT_GRAPH || a->type == AT_SPARSE || a->type == AT_TYPE)) {
		err_at(a->loc, "attribute %s has no value", a->name);
		r->w.bad = true;
	}
	bool hollow = a->type == AT_TYPE && given && !a->u.tp;
	for (int i = 0; a->type == AT_TYPES && i < a->n; i++)
		hollow |= !a->u.tps[i];
	if (hollow && !a->ref && !r->w.bad) {
		err_at(a->loc, "attribute %s holds a type that says nothing", a->name);
		r->w.bad = true;
	}
	/* Sparse tensors have become dense ones. */
	if (a->type == AT_SPARSE || a->type == AT_SPARSES)
		a->type = a->type == AT_SPARSE ? AT_TENSOR : AT_TENSORS;
}

static Attr attribute(Reader *r, const Field *field, Graph *g)
{
	Msg m = wire_msg(&r->w, &ATTRIBUTE, field->p, field->n, true);
	Attr a = { .name = name_of(""), .loc = at(r, field) };
	uint32_t used = 0;
	Field f;

	if (!wire_enter(&r->w, field->p))
		return a;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1:  a.name = wire_name(&r->w, &f); break;
		case 13: a.doc = wire_text(&r->w, &f); break;
		case 21: a.ref = f.n ? wire_name(&r->w, &f) : NULL; break;
		case 20:
			if (f.v > AT_TYPES) {
				err_at(a.loc, "attribute %s is of type %lld, which does not exist", a.name, (long long)f.v);
				r->w.bad = true;
			} else {
				a.type = (AttrType)f.v;
			}
			break;
		default: used |= 1u << f.num;
		}
	}
	a.unknown = m.blob;
	a.nunknown = m.nblob;
	attr_type(r, &a, used);
	if (!r->w.bad)
		attr_value(r, &a, &m, g);
	r->w.depth--;
	return a;
}

static void unique_attrs(Reader *r, const Attr *a, int n)
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

/* Nodes. */

static void node_names(Reader *r, Node *n, const Field *f)
{
	Name name = wire_name(&r->w, f);
	Loc loc = at(r, f);

	if (f->num == 1) {
		int k = n->nin;

		arena_push(r->w.arena, n->inloc, k, loc);
		node_in(n, *name ? graph_value(n->graph, name, loc) : NULL);
	} else {
		Value *v = *name ? graph_value_here(n->graph, name, loc) : NULL;

		if (v && !v->def && !v->input && !v->init)
			v->loc = loc;
		node_out(n, v);
	}
}

/* Name and operator first, so that messages about the rest can tell them. */
static void node(Reader *r, const Field *field, Graph *g)
{
	Msg m = wire_msg(&r->w, &NODE, field->p, field->n, true);
	Node *n = graph_node(g, NULL, name_of(""), at(r, field));
	int src = r->src->nnode;
	Field f;

	if (++r->nodes > limits.nodes && !r->w.bad) {
		fail_at(EXIT_LIMIT, n->loc, "more than %lld nodes (--max-nodes)", (long long)limits.nodes);
		r->w.bad = true;
	}
	if (!wire_enter(&r->w, field->p))
		return;
	arena_push(r->src->arena, r->src->node, r->src->nnode,
	           ((struct SrcNode){ n->loc.off, n->loc.off + field->n, g->nnode - 1, n->op, n->name }));
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 3: n->name = wire_name(&r->w, &f); break;
		case 4: n->op = wire_name(&r->w, &f); break;
		case 6: n->doc = wire_text(&r->w, &f); break;
		case 7: n->domain = wire_name(&r->w, &f); break;
		case 8: n->overload = f.n ? wire_name(&r->w, &f) : NULL; break;
		case 9: entry(r, &f, &n->meta, &n->nmeta); break;
		}
	}
	n->unknown = m.blob;
	n->nunknown = m.nblob;
	r->src->node[src].op = n->op;
	r->src->node[src].name = n->name;
	annots(r, n->meta, &n->nmeta, ON_NODE, &n->annot);
	n->from = take(n->meta, &n->nmeta, KEY_FROM);
	Msg again = wire_again(&m);
	while (wire_next(&again, &f)) {
		if (f.num <= 2)
			node_names(r, n, &f);
		else if (f.num == 5)
			arena_push(r->w.arena, n->attr, n->nattr, attribute(r, &f, g));
		else if (f.num == 10 && shard_node(r->shard, n, &f))
			keep(r, &f, &n->unknown, &n->nunknown);
	}
	unique_attrs(r, n->attr, n->nattr);
	if (!*n->op && !r->w.bad) {
		err_at(n->loc, "a node has no operator");
		r->w.bad = true;
	}
	r->w.depth--;
}

/* Graphs. */

typedef struct Fields { Field *f; int n; } Fields;

static void into(Reader *r, Value *v, Pair *meta, int *nmeta)
{
	Name name = take(meta, nmeta, KEY_INTO);

	if (name)
		v->into = graph_value(v->graph, name, (Loc){ .file = r->w.file, .len = 1 });
}

/* A value of the graph from its ValueInfoProto.  *position: of a parameter among the initialisers, if it is said. */
static Value *value(Reader *r, const Field *field, Graph *g, int *position)
{
	Msg m = wire_msg(&r->w, &VALUE, field->p, field->n, true);
	Field f, ty = { 0 };
	Name name = NULL, doc = NULL;
	Pair *meta = NULL;
	int nmeta = 0;

	*position = INT_MAX;
	if (!wire_enter(&r->w, field->p))
		return NULL;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1: name = wire_name(&r->w, &f); break;
		case 2: ty = f; break;
		case 3: doc = wire_text(&r->w, &f); break;
		case 4: entry(r, &f, &meta, &nmeta); break;
		}
	}
	if (!r->w.bad && (!name || !*name)) {
		err_at(at(r, field), "a value has no name");
		r->w.bad = true;
	}
	if (r->w.bad)
		return NULL;
	Value *v = graph_value_here(g, name, at(r, field));
	Type *t = ty.p ? type(r, &ty) : NULL;
	if (t) {
		v->type = t;
		v->declared = true;
	}
	Name pos = take(meta, &nmeta, KEY_INIT);
	if (pos)
		*position = atoi(pos);
	into(r, v, meta, &nmeta);
	annots(r, meta, &nmeta, ON_VALUE, &v->annot);
	if (doc)
		v->doc = doc;
	for (int i = 0; i < nmeta; i++)
		arena_push(r->w.arena, v->meta, v->nmeta, meta[i]);
	for (int i = 0; i < m.nblob; i++)
		arena_push(r->w.arena, v->unknown, v->nunknown, m.blob[i]);
	r->w.depth--;
	return v;
}

static void twice(Loc loc, const char *what, const Value *v, Loc first)
{
	err_at(loc, "%s %s stands twice", what, v->name);
	note_at(first, "%s stands here first", v->name);
}

static Type *tensor_type(Reader *r, const Tensor *t)
{
	Dim dim[RANK_MAX];

	for (int i = 0; i < t->rank; i++)
		dim[i] = t->dim[i];
	return type_tensor(r->w.arena, t->dtype, t->rank, dim);
}

static void initialiser(Reader *r, const Field *f, Graph *g)
{
	Tensor *t = f->num == 15 ? sparse(r, f) : tensor(r, f);

	if (r->w.bad)
		return;
	if (!t->name || !*t->name) {
		err_at(t->loc, "an initialiser has no name");
		r->w.bad = true;
		return;
	}
	Value *v = graph_value_here(g, t->name, t->loc);
	Type *own = tensor_type(r, t);
	if (v->init) {
		twice(t->loc, "initialiser", v, v->data ? v->data->loc : v->loc);
		r->w.bad = true;
		return;
	}
	bool differ = v->type && (v->type->kind != TY_TENSOR || v->type->elem != own->elem || (v->type->rank >= 0 && v->type->rank != own->rank));
	for (int i = 0; v->type && !differ && i < v->type->rank; i++)
		differ = dim_differ(v->type->dim[i], own->dim[i]);
	if (differ) {
		err_at(t->loc, "%s is declared as %s but its data is %s", v->name, type_text(v->type), type_text(own));
		note_at(v->loc, "%s is declared here", v->name);
		r->w.bad = true;
		return;
	}
	if (!v->input) {
		into(r, v, t->meta, &t->nmeta);
		annots(r, t->meta, &t->nmeta, ON_VALUE, &v->annot);
		v->doc = t->doc;
		v->meta = t->meta;
		v->nmeta = t->nmeta;
		t->doc = NULL;
		t->meta = NULL;
		t->nmeta = 0;
	}
	v->type = own;
	v->data = t;
	v->init = true;
	v->param = annot_find(v->annot, "init") != NULL;
	arena_push(r->w.arena, g->init, g->ninit, v);
}

/* Inputs that are parameters with an @init and no data go back to their places among the initialisers. */
static void parameters(Reader *r, Graph *g, Value **param, const int *position, int n)
{
	Value **old = g->init;
	int nold = g->ninit, k = 0;

	if (!n)
		return;
	g->init = NULL;
	g->ninit = 0;
	for (int i = 0; i < n; i++) {
		while (k < nold && g->ninit < position[i])
			arena_push(r->w.arena, g->init, g->ninit, old[k++]);
		arena_push(r->w.arena, g->init, g->ninit, param[i]);
	}
	while (k < nold)
		arena_push(r->w.arena, g->init, g->ninit, old[k++]);
}

static void graph_values(Reader *r, Graph *g, const Fields *in, const Fields *out, const Fields *init, const Fields *info)
{
	Value **param = NULL;
	int *position = NULL, nparam = 0, pos;
	Value *v;

	for (int i = 0; i < in->n && !r->w.bad; i++) {
		if (!(v = value(r, &in->f[i], g, &pos)))
			return;
		if (v->input || v->init) {
			twice(at(r, &in->f[i]), "input", v, v->loc);
			r->w.bad = true;
			return;
		}
		if (annot_find(v->annot, "init")) {
			int k = nparam;

			v->init = v->param = true;
			arena_push(r->w.arena, position, k, pos);
			arena_push(r->w.arena, param, nparam, v);
			continue;
		}
		v->input = true;
		arena_push(r->w.arena, g->in, g->nin, v);
	}
	for (int i = 0; i < out->n && !r->w.bad; i++) {
		if (!(v = value(r, &out->f[i], g, &pos)))
			return;
		v->output = true;
		arena_push(r->w.arena, g->out, g->nout, v);
	}
	for (int i = 0; i < init->n && !r->w.bad; i++)
		initialiser(r, &init->f[i], g);
	for (int i = 0; i < info->n && !r->w.bad; i++)
		value(r, &info->f[i], g, &pos);
	parameters(r, g, param, position, nparam);
}

static void graph_nodes(Reader *r, const Msg *msg, uint32_t num, Graph *g)
{
	Msg m = wire_again(msg);
	Field f;

	while (wire_next(&m, &f))
		if (f.num == num)
			node(r, &f, g);
}

static Graph *graph(Reader *r, const Field *field, Graph *outer)
{
	Graph *g = graph_new(r->m, outer, name_of(""));
	Msg m = wire_msg(&r->w, &GRAPH, field->p, field->n, true);
	Fields in = { 0 }, out = { 0 }, init = { 0 }, info = { 0 };
	Arena tmp = { 0 };
	Field f;

	g->loc = at(r, field);
	if (!wire_enter(&r->w, field->p))
		return g;
	while (wire_next(&m, &f)) {
		Fields *list = f.num == 11 ? &in : f.num == 12 ? &out : f.num == 13 ? &info : f.num == 5 || f.num == 15 ? &init : NULL;

		if (list)
			arena_push(&tmp, list->f, list->n, f);
		else if (f.num == 2)
			g->name = wire_name(&r->w, &f);
		else if (f.num == 10)
			g->doc = wire_text(&r->w, &f);
		else if (f.num == 16)
			entry(r, &f, &g->meta, &g->nmeta);
	}
	g->unknown = m.blob;
	g->nunknown = m.nblob;
	annots(r, g->meta, &g->nmeta, ON_GRAPH, &g->annot);
	graph_values(r, g, &in, &out, &init, &info);
	graph_nodes(r, &m, 1, g);
	r->w.depth--;
	arena_free(&tmp);
	return g;
}

/* Functions. */

static void function_names(Reader *r, Function *fn, const Field *f)
{
	Graph *g = fn->body;
	Name name = wire_name(&r->w, f);
	Loc loc = at(r, f);

	if (f->num == 6) {
		arena_push(r->w.arena, fn->attr, fn->nattr, ((Attr){ .name = name, .absent = true, .loc = loc }));
		return;
	}
	Value *v = graph_value_here(g, name, loc);
	if (f->num == 4 && v->input && !r->w.bad) {
		twice(loc, "input", v, v->loc);
		r->w.bad = true;
	}
	if (f->num == 4) {
		v->input = true;
		arena_push(r->w.arena, g->in, g->nin, v);
	} else {
		v->output = true;
		arena_push(r->w.arena, g->out, g->nout, v);
	}
}

/* What ONNX can say of a graph but not of the body of a function. */
static void body_metadata(Reader *r, Function *fn)
{
	size_t n = strlen(KEY_BODY);
	int keep = 0;

	annots(r, fn->meta, &fn->nmeta, ON_GRAPH, &fn->body->annot);
	annots(r, fn->meta, &fn->nmeta, ON_FUNCTION, &fn->annot);
	const Annot *op = annot_find(fn->annot, "op");
	const Arg *since = op ? arg_find(op->arg, op->narg, "since") : NULL, *until = op ? arg_find(op->arg, op->narg, "until") : NULL;
	fn->since = since ? (int)since->i : 1;
	fn->until = until ? (int)until->i : 0;
	fn->body->doc = take(fn->meta, &fn->nmeta, KEY_DOC);
	for (int i = 0; i < fn->nmeta; i++) {
		Pair p = fn->meta[i];

		if (strncmp(p.key, KEY_BODY, n)) {
			fn->meta[keep++] = p;
			continue;
		}
		p.key = name_of(p.key + n);
		arena_push(r->w.arena, fn->body->meta, fn->body->nmeta, p);
	}
	fn->nmeta = keep;
}

/* "2 0:7": attribute 2 of those read comes first, then attribute 0, whose type is 7. */
static void attr_order(Reader *r, Function *fn, const char *text)
{
	Attr *old = fn->attr;
	int n = fn->nattr;

	bool *used = arena_array(r->w.arena, bool, n + 1);
	fn->attr = arena_array(r->w.arena, Attr, n + 1);
	fn->nattr = 0;
	while (*text && fn->nattr < n) {
		char *end;
		long i = strtol(text, &end, 10), type = *end == ':' ? strtol(end + 1, &end, 10) : 0;

		if (end == text || i < 0 || i >= n || used[i] || type < 0 || type > AT_TYPES || (type && !old[i].absent))
			break;
		used[i] = true;
		Attr a = old[i];
		if (type)
			a.type = (AttrType)type;
		fn->attr[fn->nattr++] = a;
		text = end + strspn(end, " ");
	}
	if (fn->nattr < n) {
		fn->attr = old;
		fn->nattr = n;
	}
}

static void function(Reader *r, const Field *field)
{
	Msg m = wire_msg(&r->w, &FUNCTION, field->p, field->n, true), again;
	Function *fn = arena_new(r->w.arena, Function);
	Field f;
	int pos;

	if (!wire_enter(&r->w, field->p))
		return;
	fn->loc = at(r, field);
	fn->domain = fn->name = fn->overload = name_of("");
	fn->since = 1;
	fn->body = graph_new(r->m, NULL, fn->name);
	fn->body->loc = fn->loc;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1:  fn->name = wire_name(&r->w, &f); break;
		case 8:  fn->doc = wire_text(&r->w, &f); break;
		case 9:  opset(r, &f, &fn->opset, &fn->nopset); break;
		case 10: fn->domain = wire_name(&r->w, &f); break;
		case 13: fn->overload = wire_name(&r->w, &f); break;
		case 14: entry(r, &f, &fn->meta, &fn->nmeta); break;
		}
	}
	fn->body->name = fn->name;
	fn->unknown = m.blob;
	fn->nunknown = m.nblob;
	Name header = take(fn->meta, &fn->nmeta, KEY_HEADER), attrs = take(fn->meta, &fn->nmeta, KEY_ATTRS);
	body_metadata(r, fn);
	static const uint8_t order[] = { 4, 5, 6, 11, 12 };
	for (size_t i = 0; i < sizeof order; i++)
		for (again = wire_again(&m); wire_next(&again, &f);) {
			if (f.num != order[i])
				continue;
			if (f.num == 11)
				arena_push(r->w.arena, fn->attr, fn->nattr, attribute(r, &f, fn->body));
			else if (f.num == 12)
				value(r, &f, fn->body, &pos);
			else
				function_names(r, fn, &f);
		}
	unique_attrs(r, fn->attr, fn->nattr);
	if (attrs && !r->w.bad)
		attr_order(r, fn, attrs);
	graph_nodes(r, &m, 7, fn->body);
	if (header && !r->w.bad)
		fn->nopset = 0;
	arena_push(r->w.arena, r->m->function, r->m->nfunction, fn);
	r->w.depth--;
}

/* Models. */

static void header(Reader *r, const Field *f)
{
	Model *m = r->m;

	switch (f->num) {
	case 1: m->ir_version = (int64_t)f->v; m->has_ir_version = true; break;
	case 2: m->producer_name = wire_text(&r->w, f); break;
	case 3: m->producer_version = wire_text(&r->w, f); break;
	case 4: m->domain = wire_text(&r->w, f); break;
	case 5: m->model_version = (int64_t)f->v; m->has_model_version = true; break;
	case 6: m->doc = wire_text(&r->w, f); break;
	case 8: opset(r, f, &m->opset, &m->nopset); break;
	case 14: entry(r, f, &m->meta, &m->nmeta); break;
	case 26:
		if (shard_config(r->shard, f))
			keep(r, f, &m->unknown, &m->nunknown);
		break;
	}
}

static void check_header(Reader *r)
{
	Model *m = r->m;
	Loc start = { .file = r->w.file, .len = 1 };

	if (r->w.bad)
		return;
	if (!m->has_ir_version)
		err_at(start, "this is no ONNX model: it has no ir_version");
	else if (m->ir_version < IR_MIN || m->ir_version > IR_MAX)
		err_at(start, "IR version %lld is not supported; %d to %d are", (long long)m->ir_version, IR_MIN, IR_MAX);
	else if (!m->nopset)
		err_at(start, "the model imports no operator set (opset_import)");
	else
		return;
	r->w.bad = true;
}

/* The text that this file was written from said less than a file must. */
static void restore_header(Model *m, const char *text)
{
	char *end;

	m->ir_version = strtol(text, &end, 10);
	m->has_ir_version = m->ir_version != 0;
	if (*end == ' ' && end[1] == '0')
		m->nopset = 0;
}

Model *onnx_read(uint32_t file)
{
	SrcFile *src = file_of(file);
	Model *model = model_new();
	Reader r = { .w = { .file = file, .base = src->data, .arena = &model->arena }, .m = model, .src = src };
	Msg m = wire_msg(&r.w, &MODEL, src->data, src->bytes, true);
	Field f, last = { 0 };
	int ngraph = 0;

	src->binary = true;
	r.shard = shard_reader(&r.w);
	model->file = file;
	model->from_onnx = true;
	while (wire_next(&m, &f)) {
		if (f.num == 7)
			last = f, ngraph++;
		else
			header(&r, &f);
	}
	Name as_written = take(model->meta, &model->nmeta, KEY_HEADER);
	annots(&r, model->meta, &model->nmeta, ON_MODEL, &model->annot);
	/* In file order, so that the table of nodes ascends; of several graphs the last one counts. */
	for (Msg again = wire_again(&m); wire_next(&again, &f);) {
		if (f.num == 7 && f.p == last.p)
			model->graph = graph(&r, &f, NULL);
		else if (f.num == 25)
			function(&r, &f);
	}
	for (int i = 0; i < m.nblob; i++)
		arena_push(&model->arena, model->unknown, model->nunknown, m.blob[i]);
	check_header(&r);
	if (!r.w.bad && !ngraph) {
		err_at((Loc){ .file = file, .off = src->bytes, .len = 1 }, "the model has no graph");
		r.w.bad = true;
	}
	if (!r.w.bad)
		shard_finish(r.shard, model);
	if (r.w.bad) {
		model_free(model);
		return NULL;
	}
	wire_warn(&r.w);
	if (as_written)
		restore_header(model, as_written);
	return model;
}

/* A TensorProto alone, as the ONNX tests keep their inputs and outputs. */
Tensor *onnx_tensor_file(const char *path, Arena *arena)
{
	ExitCode why;
	uint32_t file = file_open(path, &why);

	if (!file)
		return NULL;
	SrcFile *src = file_of(file);
	Reader r = { .w = { .file = file, .base = src->data, .arena = arena }, .src = src };
	Field all = { .p = src->data, .n = src->bytes };
	src->binary = true;
	Tensor *t = tensor(&r, &all);
	return r.w.bad ? NULL : t;
}

/* Text or protobuf: by the name where it is clear, else by the first bytes, where text has no control characters. */
static bool is_binary(const SrcFile *f)
{
	const char *dot = strrchr(f->path, '.');

	if (dot && (!strcasecmp(dot, ".ir") || !strcasecmp(dot, ".txt") || !strcasecmp(dot, ".onnxtxt")))
		return false;
	for (size_t i = 0; i < f->bytes && i < 256; i++)
		if (f->data[i] < 0x20 && f->data[i] != '\t' && f->data[i] != '\n' && f->data[i] != '\r' && f->data[i] != '\f')
			return true;
	return dot && !strcasecmp(dot, ".onnx") && !f->bytes;
}

Model *model_read(const char *path)
{
	ExitCode why;
	uint32_t file = file_open(path, &why);

	if (!file)
		return NULL;
	Model *m = is_binary(file_of(file)) ? onnx_read(file) : parse_text(file);
	if (m && (extdata_load(m) || verify_model(m))) {
		model_free(m);
		return NULL;
	}
	return m;
}
