/* safetensors: eight bytes with the length of the header; the header, JSON with type, shape and offsets of each tensor;
 * then the bytes.  Everything is checked before it is used: files are untrusted. */
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rt_safe_fits(const RtEntry *e, const RtTensor *t)
{
	bool same = e->type == t->type && e->naxis == t->naxis;
	for (int a = 0; same && a < e->naxis; a++)
		same = e->dim[a] == t->dim[a];
	return same;
}

/* {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]} */
static const char *read_entry(RtJson *j, RtEntry *e)
{
	char key[64], word[64] = "";
	int64_t at[2] = { -1, -1 }, n = 1;
	const char *why = NULL;
	rt_json_open(j, '{');
	while (rt_json_more(j, '{')) {
		rt_json_key(j, key, sizeof key);
		if (!strcmp(key, "dtype")) {
			rt_json_string(j, word, sizeof word);
		} else if (!strcmp(key, "shape")) {
			for (rt_json_open(j, '['); rt_json_more(j, '[');) {
				int64_t d = rt_json_int(j);
				if (e->naxis == RT_AXES)
					return "has too many axes";
				if (d < 0 || (d && __builtin_mul_overflow(n, d, &n)))
					why = "has dimensions that multiply to too many elements";
				n = d ? n : 0;
				e->dim[e->naxis++] = d;
			}
		} else if (!strcmp(key, "data_offsets")) {
			int k = 0;
			for (rt_json_open(j, '['); rt_json_more(j, '['); k++)
				at[k < 2 ? k : 1] = rt_json_int(j);
		} else
			rt_json_skip(j);
	}
	int t = 0;
	while (t < RT_TYPES && strcmp(rt_type_name((RtType)t), word))
		t++;
	if (j->bad || why)
		return why ? why : "is not described in JSON";
	if (t == RT_TYPES)
		return "has an unknown type";
	e->type = (RtType)t;
	if (at[0] < 0 || at[1] < at[0] || __builtin_mul_overflow(n, (int64_t)rt_width(e->type), &n) ||
	    at[1] - at[0] != n)
		return "has offsets that do not fit its shape";
	e->from = (uint64_t)at[0];
	e->to = (uint64_t)at[1];
	return NULL;
}

/* {"sbpcc":"start values"} marks the file that the compiler writes beside a program. */
static void read_metadata(RtJson *j, RtSafe *s)
{
	char key[RT_NAME];
	for (rt_json_open(j, '{'); rt_json_more(j, '{');) {
		rt_json_key(j, key, sizeof key);
		s->ours |= !j->bad && !strcmp(key, "sbpcc");
		rt_json_skip(j);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A duplicate name would be ambiguous. */
static int check_names(Ctx *c, int code, const char *path, const RtSafe *s)
{
	const char **name = malloc((size_t)(s->n + 1) * sizeof *name);
	if (!name)
		return rt_error(c, RT_MEMORY, "no memory for the header of %s", path);
	for (int i = 0; i < s->n; i++)
		name[i] = s->entry[i].name;
	qsort(name, (size_t)s->n, sizeof *name, by_name);
	int bad = 0;
	for (int i = 1; i < s->n && !bad; i++)
		if (!strcmp(name[i], name[i - 1]))
			bad = rt_error(c, code, "%s: it has %s twice", path, rt_shown(name[i]));
	free(name);
	return bad;
}

static int read_header(Ctx *c, int code, const char *path, RtSafe *s, const char *text, size_t n, uint64_t room)
{
	RtJson j = { text, text + n, false };
	size_t used = 0, cap = 0;
	s->names = malloc(n + 1);
	if (!s->names)
		return rt_error(c, RT_MEMORY, "no memory for the header of %s", path);
	for (rt_json_open(&j, '{'); rt_json_more(&j, '{');) {
		char *name = s->names + used;
		size_t len = (size_t)rt_json_key(&j, name, n + 1 - used > RT_NAME ? RT_NAME : n + 1 - used);
		if (!j.bad && !strcmp(name, "__metadata__")) {
			read_metadata(&j, s);
			continue;
		}
		RtEntry e = { .name = name };
		const char *why = j.bad ? NULL : read_entry(&j, &e);
		if (!why && !j.bad && e.to > room)
			why = "lies beyond the end of the file";
		if (why)
			return rt_error(c, code, "%s: %s %s", path, rt_shown(name), why);
		used += len + 1;
		if ((size_t)s->n == cap) {
			RtEntry *grown = realloc(s->entry, (cap = cap ? 2 * cap : 64) * sizeof *grown);
			if (!grown)
				return rt_error(c, RT_MEMORY, "no memory for the header of %s", path);
			s->entry = grown;
		}
		s->entry[s->n++] = e;
	}
	return j.bad ? rt_error(c, code, "%s: its header is damaged", path) : check_names(c, code, path, s);
}

int rt_safe_open(Ctx *c, int code, const char *path, RtSafe *s)
{
	RtFile f;
	int bad = rt_file_open(c, code, path, &f);
	*s = (RtSafe){ 0 };
	if (bad || !(bad = rt_safe_read(c, code, path, f, s)))
		return bad;
	rt_safe_close(s);
	return bad;
}

int rt_safe_read(Ctx *c, int code, const char *path, RtFile f, RtSafe *s)
{
	uint64_t len = 0;
	int bad;
	*s = (RtSafe){ .file = f };
	for (int i = 7; i >= 0 && s->file.bytes >= 8; i--)
		len = len << 8 | s->file.data[i];
	if (s->file.bytes < 8 || len > s->file.bytes - 8 || len > 100 << 20)
		bad = rt_error(c, code, "%s is not a safetensors file, or is truncated", path);
	else
		bad = read_header(c, code, path, s, (const char *)s->file.data + 8, (size_t)len,
			s->file.bytes - 8 - len);
	s->data = bad ? NULL : s->file.data + 8 + len;
	return bad;
}

void rt_safe_close(RtSafe *s)
{
	free(s->entry);
	free(s->names);
	rt_file_close(&s->file);
	*s = (RtSafe){ 0 };
}

/* Callers mostly ask in the order of the file. */
const RtEntry *rt_safe_find(RtSafe *s, const char *name)
{
	for (int i = 0; i < s->n; i++) {
		int k = (s->next + i) % s->n;
		if (!strcmp(s->entry[k].name, name)) {
			s->next = k + 1;
			return &s->entry[k];
		}
	}
	return NULL;
}
