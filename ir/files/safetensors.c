/* One tensor of a .safetensors file: eight bytes that give the length of a header, the header in JSON, then the bytes.
 *
 * The header is read from front to back without a tree; strings are compared as written, and only escapes of one letter
 * are decoded.  Data stays in the mapped file. */
#include "files.h"

#include <stdlib.h>
#include <string.h>

typedef struct Json { const char *at, *end; bool bad; } Json;

static char peek(Json *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
		j->at++;
	return j->at < j->end && !j->bad ? *j->at : 0;
}

static bool take(Json *j, char c)
{
	if (peek(j) != c)
		return !(j->bad = true);
	j->at++;
	return true;
}

/* Whether another entry follows; else skips the closing bracket. */
static bool more(Json *j, char shut)
{
	if (peek(j) == ',')
		j->at++;
	if (peek(j) != shut)
		return peek(j) || (j->bad = true, false);
	j->at++;
	return false;
}

static size_t string(Json *j, char *to, size_t room)
{
	size_t n = 0;
	take(j, '"');
	while (!j->bad && j->at < j->end && *j->at != '"') {
		j->at += *j->at == '\\' && j->at + 1 < j->end;
		if (n + 1 >= room)
			j->bad = true;
		else
			to[n++] = *j->at++;
	}
	take(j, '"');
	to[j->bad ? 0 : n] = 0;
	return n;
}

static int64_t integer(Json *j)
{
	int64_t v = 0;
	if (peek(j) < '0' || peek(j) > '9')
		j->bad = true;
	while (!j->bad && j->at < j->end && *j->at >= '0' && *j->at <= '9')
		j->bad = __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *j->at++ - '0', &v);
	return v;
}

/* One value of any kind, nested no deeper than limits.depth. */
static void skip(Json *j, char *room, size_t n)
{
	int64_t depth = 0;
	do {
		char c = peek(j);
		if (c == '"')
			string(j, room, n);
		else if (c)
			j->at++;
		depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
		j->bad |= !c || depth > limits.depth;
	} while (!j->bad && depth > 0);
	while (!j->bad && peek(j) && !strchr(",}]", peek(j)))
		j->at++;
}

static DType type_of(const char *s)
{
	static const struct { const char *name; DType t; } list[] = { { "F32", DT_FLOAT }, { "F64", DT_DOUBLE },
		{ "F16", DT_FLOAT16 },
		{ "BF16", DT_BFLOAT16 }, { "I64", DT_INT64 }, { "I32", DT_INT32 }, { "I16", DT_INT16 },
		{ "I8", DT_INT8 }, { "U64", DT_UINT64 },
		{ "U32", DT_UINT32 }, { "U16", DT_UINT16 }, { "U8", DT_UINT8 }, { "BOOL", DT_BOOL } };
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (!strcmp(list[i].name, s))
			return list[i].t;
	return DT_UNDEFINED;
}

/* {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]} */
static Tensor *entry(Json *j, Arena *a, int64_t *from, int64_t *to)
{
	char key[64], type[64] = "";
	Tensor *t = arena_new(a, Tensor);
	t->dim = arena_array(a, int64_t, NDIM_MAX);
	*from = *to = -1;
	for (take(j, '{'); more(j, '}');) {
		string(j, key, sizeof key);
		take(j, ':');
		if (!strcmp(key, "dtype")) {
			string(j, type, sizeof type);
		} else if (!strcmp(key, "shape")) {
			for (take(j, '['); more(j, ']') && !(j->bad |= t->ndim == NDIM_MAX);)
				t->dim[t->ndim++] = integer(j);
		} else if (!strcmp(key, "data_offsets") && take(j, '[')) {
			*from = integer(j);
			take(j, ',');
			*to = integer(j);
			take(j, ']');
		} else
			skip(j, key, sizeof key);
	}
	t->dtype = type_of(type);
	return j->bad || !t->dtype ? NULL : t;
}

static bool shape_fits(Tensor *t, int64_t bytes)
{
	int64_t n = 1;
	for (int i = 0; i < t->ndim; i++)
		if (__builtin_mul_overflow(n, t->dim[i], &n))
			return false;
	t->bytes = tensor_bytes(t->dtype, n);
	return bytes >= 0 && t->bytes == (size_t)bytes;
}

Tensor *safetensors_read(uint32_t file, const char *key, Arena *a)
{
	const SrcFile *f = file_of(file);
	Loc at = { .file = file, .len = 1 };
	uint64_t len = 0;
	size_t room = (size_t)limits.name_bytes;
	char *name = arena_alloc(a, room);
	for (int i = 7; i >= 0 && f->bytes >= 8; i--)
		len = len << 8 | f->data[i];
	if (f->bytes < 8 || len > f->bytes - 8) {
		err_at(at, "this is no safetensors file, or it is cut off");
		return NULL;
	}
	Json j = { (const char *)f->data + 8, (const char *)f->data + 8 + len, false };
	int64_t from, to, left = (int64_t)(f->bytes - 8 - len);
	for (take(&j, '{'); more(&j, '}');) {
		string(&j, name, room);
		take(&j, ':');
		if (strcmp(name, key)) {
			skip(&j, name, room);
			continue;
		}
		Tensor *t = entry(&j, a, &from, &to);
		if (!t)
			break;
		if (from < 0 || to > left || !shape_fits(t, to - from)) {
			err_at(at, "%s has a shape and a range of bytes that do not fit each other", key);
			return NULL;
		}
		t->data = f->data + 8 + len + from;
		t->file = file;
		t->file_off = 8 + len + (uint64_t)from;
		return t;
	}
	if (j.bad)
		err_at(at, "the header of this safetensors file is damaged");
	else
		err_at(at, "there is no tensor %s in this file", key);
	return NULL;
}
