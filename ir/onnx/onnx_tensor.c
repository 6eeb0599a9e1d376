/* The tensors of an .onnx file: TensorProto, whose data stays where it is, and SparseTensorProto, which becomes a dense
 * one.  In any field, the size of the data must agree with dimensions and type. */
#include "onnx.h"

#include <string.h>

static Name or_empty(Name s)
{
	return s ? s : name_of("");
}

static bool bad_tensor(OnnxReader *r)
{
	r->w.bad = true;
	return false;
}

/* The product of the dimensions.  Dimensions of 0 are left out of the check, so that no partial product overflows. */
static bool elements(OnnxReader *r, const Tensor *t, int64_t *n)
{
	bool zero = false;

	*n = 1;
	if (t->ndim > NDIM_MAX) {
		fail_at(EXIT_LIMIT, t->loc, "tensor %s has %d axes; at most %d are possible", or_empty(t->name),
			t->ndim, NDIM_MAX);
		return bad_tensor(r);
	}
	for (int i = 0; i < t->ndim; i++) {
		if (t->dim[i] < 0) {
			err_at(t->loc, "tensor %s has a negative dimension: %lld", or_empty(t->name),
				(long long)t->dim[i]);
			return bad_tensor(r);
		}
		zero |= t->dim[i] == 0;
		if (t->dim[i] && __builtin_mul_overflow(*n, t->dim[i], n)) {
			err_at(t->loc, "the dimensions of tensor %s multiply to more than 2^63 elements",
				or_empty(t->name));
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
		if (dtype_literal_is_byte(t))
			*entries = (int64_t)tensor_bytes(t, n);
		return INT32S;
	}
}

/* Entries of a typed field, one after the other, into t's memory. */
static void decode(OnnxReader *r, Tensor *t, const WireMsg *msg, uint32_t num, int64_t entries)
{
	WireMsg m = wire_again(msg);
	int width = num == FLOATS ? 4 : num == DOUBLES ? 8 : dtype_bits(t->dtype) < 8 ? 1 : dtype_bits(t->dtype) / 8;
	uint8_t *out = arena_alloc(r->w.arena, t->bytes + 8);
	int64_t i = 0;
	WireField f;

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
				if (dtype_bits(t->dtype) == 6)
					tensor_pack(t, i, (uint32_t)v);
				else
					memcpy(out, &v, (size_t)width);
			}
		}
	}
}

/* The fields of a tensor: found in one walk that allocates nothing but the dimensions. */
typedef struct Found {
	uint32_t used;                  /* data fields that are not empty, as bits */
	int64_t entries;
	int pieces;
	WireField piece;                    /* the last one */
	int64_t location;
} Found;

static bool data_fits(OnnxReader *r, Tensor *t, const Found *d, int64_t n)
{
	int64_t want;
	uint32_t num = (uint32_t)__builtin_ctz(d->used | 1u << 31), typed = home(t->dtype, n, &want);

	if (d->used & (d->used - 1)) {
		uint32_t other = (uint32_t)__builtin_ctz(d->used & (d->used - 1));

		err_at(t->loc, "tensor %s has both %s and %s", or_empty(t->name), data_field[num], data_field[other]);
		return bad_tensor(r);
	}
	if (num != 31 && num != RAW && num != typed) {
		err_at(t->loc, "the %s elements of tensor %s cannot stand in %s", dtype_name(t->dtype),
			or_empty(t->name), data_field[num]);
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
		fail_at(EXIT_LIMIT, t->loc,
			"tensor %s has %lld elements, more than --max-elements=%lld, but not their data",
			or_empty(t->name), (long long)n, (long long)limits.elements);
	else if (num == 31)
		err_at(t->loc, "tensor %s has %lld elements but no data", or_empty(t->name), (long long)n);
	else
		err_at(t->loc, "%s of tensor %s has %lld %s, but its dimensions and type ask for %lld",
			data_field[num], or_empty(t->name), (long long)have, num == RAW ? "bytes" : "entries",
			(long long)want);
	return bad_tensor(r);
}

static void tensor_data(OnnxReader *r, Tensor *t, const WireMsg *m, const Found *d)
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
			err_at(t->loc,
				d->used ? "tensor %s has external data and also %s"
					: "tensor %s names external data, but data_location does not say so",
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
		t->file = onnx_take(t->meta, &t->nmeta, KEY_LITERAL) ? 0 : r->w.file;
		t->file_off = (uint64_t)(d->piece.p - r->w.base);
	} else {
		decode(r, t, m, num, d->entries);
	}
}

Tensor *onnx_tensor(OnnxReader *r, const WireField *field)
{
	Tensor *t = arena_new(r->w.arena, Tensor);
	WireMsg m = wire_msg(&r->w, &message_tensor, field, &t->unknown);
	Found d = { 0 };
	WireField f;

	t->loc = onnx_at(r, field);
	if (!wire_enter(&r->w, field->p))
		return t;
	while (wire_next(&m, &f)) {
		switch (f.num) {
		case 1:  wire_ints(&r->w, &f, &t->dim, &t->ndim); break;
		case 2:  t->dtype = onnx_elem(r, &f); break;
		case 3:
			err_at(wire_loc(&r->w, f.at, 1), "tensors in segments are not supported");
			r->w.bad = true;
			break;
		case 8:  t->name = wire_name(&r->w, &f); break;
		case 12: t->doc = wire_text(&r->w, &f); break;
		case 13: onnx_entry(r, &f, &t->ext, &t->next); break;
		case 14: d.location = (int64_t)f.v; break;
		case 16: onnx_entry(r, &f, &t->meta, &t->nmeta); break;
		default:
			if (f.n == 0 && f.num != STRINGS)
				break;
			if ((f.num == FLOATS && f.n % 4) || (f.num == DOUBLES && f.n % 8)) {
				err_at(onnx_at(r, &f), "%s has %zu bytes, which is no whole number of elements",
					data_field[f.num], f.n);
				r->w.bad = true;
			}
			d.used |= 1u << f.num;
			int width = f.num == FLOATS ? 4 : f.num == DOUBLES ? 8 : 0;
			d.entries += f.num == STRINGS || f.num == RAW ? 1 : wire_count(&f, width);
			d.pieces++;
			d.piece = f;
		}
	}
	if (!t->dim)
		t->dim = arena_array(r->w.arena, int64_t, 1);
	tensor_data(r, t, &m, &d);
	r->w.depth--;
	return t;
}

/* A sparse tensor as a dense one: values [nnz], indices [nnz] into the flattened tensor or [nnz, ndim]. */
Tensor *onnx_sparse(OnnxReader *r, const WireField *field)
{
	WireField f, parts[3] = { 0 };
	Tensor *t = arena_new(r->w.arena, Tensor), *val, *idx;
	struct Sparse *whole = arena_new(r->w.arena, struct Sparse);
	WireMsg m = wire_msg(&r->w, &message_sparse, field, &whole->unknown);
	int64_t n;

	t->loc = onnx_at(r, field);
	if (!wire_enter(&r->w, field->p))
		return t;
	while (wire_next(&m, &f)) {
		if (f.num == 3)
			wire_ints(&r->w, &f, &t->dim, &t->ndim);
		else
			parts[f.num] = f;
	}
	if (!r->w.bad && (!parts[1].p || !parts[2].p)) {
		err_at(t->loc, "a sparse tensor needs values and indices");
		r->w.bad = true;
	}
	if (r->w.bad)
		return t;
	val = onnx_tensor(r, &parts[1]);
	idx = onnx_tensor(r, &parts[2]);
	if (!t->dim)
		t->dim = arena_array(r->w.arena, int64_t, 1);
	t->name = val->name;
	t->doc = val->doc;
	t->meta = val->meta;
	t->nmeta = val->nmeta;
	t->dtype = val->dtype;
	val->doc = NULL;
	val->meta = NULL;
	val->nmeta = 0;
	whole->values = val;
	whole->indices = idx;
	t->sparse = whole;
	if (r->w.bad || !elements(r, t, &n))
		return t;
	int64_t nnz = val->ndim == 1 ? val->dim[0] : -1;
	bool flat = idx->ndim == 1, deep = idx->ndim == 2 && idx->dim[1] == t->ndim;
	if (nnz < 0 || idx->dtype != DT_INT64 || !(flat || deep) || idx->dim[0] != nnz || val->next || idx->next ||
		dtype_bits(t->dtype) < 8) {
		err_at(t->loc, "sparse tensor %s needs values [n] and int64 indices [n] or [n, %d], inside the file",
			or_empty(t->name), t->ndim);
		r->w.bad = true;
		return t;
	}
	size_t width = (size_t)dtype_bits(t->dtype) / 8, bytes = tensor_bytes(t->dtype, n);
	if (n > limits.elements || bytes > (limits.memory ? (size_t)limits.memory : (16u << 20) + 4 * r->src->bytes)) {
		fail_at(EXIT_LIMIT, t->loc, "sparse tensor %s would have %lld elements when it is made dense (%s)",
			or_empty(t->name), (long long)n, n > limits.elements ? "--max-elements" : "--max-memory");
		r->w.bad = true;
		return t;
	}
	uint8_t *out = arena_alloc(r->w.arena, bytes + 8);
	for (int64_t i = 0; i < nnz; i++) {
		int64_t where = 0;

		for (int k = 0; k < (flat ? 1 : t->ndim); k++) {
			int64_t x = tensor_int(idx, flat ? i : i * t->ndim + k), size = flat ? n : t->dim[k];

			if (x < 0 || x >= size) {
				err_at(idx->loc, "index %lld of sparse tensor %s is not below %lld", (long long)x,
					or_empty(t->name), (long long)size);
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

/* A TensorProto alone, as the ONNX tests keep their inputs and outputs. */
Tensor *onnx_tensor_file(const char *path, Arena *arena)
{
	ExitCode why;
	uint32_t file = file_open(path, &why);

	if (!file)
		return NULL;
	SrcFile *src = file_of(file);
	OnnxReader r = { .w = { .file = file, .base = src->data, .arena = arena }, .src = src };
	WireField all = { .p = src->data, .n = src->bytes };
	src->binary = true;
	Tensor *t = onnx_tensor(&r, &all);
	return r.w.bad ? NULL : t;
}
