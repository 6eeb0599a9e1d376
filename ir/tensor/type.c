/* Types of values and of attributes. */
#include "tensor.h"

#include <string.h>

Type *type_tensor(Arena *a, DType elem, int ndim, const Dim *dim)
{
	Type *t = arena_new(a, Type);

	t->elem = elem;
	t->ndim = ndim;
	if (ndim >= 0)
		t->dim = arena_array(a, Dim, ndim + 1);         /* never NULL: may be given to memcpy */
	if (ndim > 0)
		memcpy(t->dim, dim, sizeof *dim * (size_t)ndim);
	return t;
}

bool type_equal(const Type *a, const Type *b)
{
	for (; a && b; a = a->sub, b = b->sub) {
		if (a == b)
			return true;
		if (a->kind != b->kind || a->elem != b->elem || a->domain != b->domain || a->name != b->name ||
			a->ndim != b->ndim)
			return false;
		for (int i = 0; i < a->ndim; i++)
			if (a->dim[i] != b->dim[i])
				return false;
	}
	return a == b;
}

static size_t put(char *buf, size_t cap, size_t at, const char *s)
{
	size_t n = strlen(s);

	if (at + n >= cap)
		n = at + 1 < cap ? cap - at - 1 : 0;
	memcpy(buf + at, s, n);
	buf[at + n] = 0;
	return at + n;
}

/* Eight buffers in turn, so that one message can name several types. */
const char *type_text(const Type *t)
{
	static char ring[8][512];
	static int turn;
	char *buf = ring[turn++ & 7], close[64] = "";
	size_t at = 0, cap = sizeof ring[0];
	int nclose = 0;

	buf[0] = 0;
	if (!t)
		return "unknown";
	for (; t && nclose < 60; t = t->sub) {
		static const char *const open[] = { "", "seq(", "optional(", "map(", "sparse_tensor(", "opaque(" };

		at = put(buf, cap, at, open[t->kind]);
		if (t->kind != TY_TENSOR)
			close[nclose++] = ')';
		if (t->kind == TY_MAP) {
			at = put(buf, cap, at, dtype_name(t->elem));
			at = put(buf, cap, at, ", ");
		} else if (t->kind == TY_OPAQUE) {
			at = put(buf, cap, at, t->domain ? t->domain : "");
			at = put(buf, cap, at, t->domain && t->name ? ", " : "");
			at = put(buf, cap, at, t->name ? t->name : "");
		} else if (t->kind == TY_TENSOR || t->kind == TY_SPARSE) {
			at = put(buf, cap, at, dtype_name(t->elem));
			if (t->ndim < 0)
				at = put(buf, cap, at, "[]");
			for (int i = 0; i < t->ndim; i++) {
				at = put(buf, cap, at, i ? ", " : "[");
				at = put(buf, cap, at, dim_text(t->dim[i]));
			}
			if (t->ndim > 0)
				at = put(buf, cap, at, "]");
		}
	}
	close[nclose] = 0;
	put(buf, cap, at, close);
	return buf;
}

int64_t type_elements(const Type *t)
{
	int64_t n = 1;
	bool zero = false, over = false;

	if (!t || t->ndim < 0)
		return -1;
	for (int i = 0; i < t->ndim; i++) {
		if (!dim_known(t->dim[i]))
			return -1;
		zero |= t->dim[i] == 0;
		over |= t->dim[i] && __builtin_mul_overflow(n, t->dim[i], &n);
	}
	return zero ? 0 : over ? -2 : n;
}

static const char *const attr_types[] = { "undefined", "float", "int", "string", "tensor", "graph", "floats", "ints",
	"strings", "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos", NULL };

const char *type_attr_name(AttrType t)
{
	return attr_types[t];
}

const char *const *type_attr_names(void)
{
	return attr_types + 1;
}

AttrType type_attr_of(const char *name, size_t len)
{
	for (int t = 1; attr_types[t]; t++)
		if (strlen(attr_types[t]) == len && !memcmp(attr_types[t], name, len))
			return (AttrType)t;
	return AT_UNDEFINED;
}
