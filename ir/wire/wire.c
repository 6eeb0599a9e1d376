/* The protobuf wire format: see wire.h.  Nothing here knows what a model is. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

Loc wire_loc(const WireIn *w, const uint8_t *at, size_t len)
{
	return (Loc){ .file = w->file, .off = (uint64_t)(at - w->base),
		.len = len < 1 ? 1 : len > UINT32_MAX ? UINT32_MAX : (uint32_t)len };
}

static bool wrong(WireIn *w, const uint8_t *at, const char *what)
{
	if (!w->bad)
		err_at(wire_loc(w, at, 1), "%s", what);
	w->bad = true;
	return false;
}

/* Most numbers are tags and lengths of one byte. */
static inline bool varint_in(WireIn *w, const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	if (*p < end && **p < 0x80) {
		*v = *(*p)++;
		return true;
	}
	return wire_varint(w, p, end, v);
}

bool wire_varint(WireIn *w, const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	const uint8_t *q = *p;
	uint64_t x = 0;

	for (int shift = 0; q < end; shift += 7, q++) {
		if (shift == 63 && *q > 1)
			return wrong(w, *p,
				*q & 0x80 ? "this number (varint) has more than 10 bytes"
					  : "this number (varint) has more than 64 bits");
		x |= (uint64_t)(*q & 0x7f) << shift;
		if (*q < 0x80) {
			*v = x;
			*p = q + 1;
			return true;
		}
	}
	return wrong(w, *p, "the file ends, or its message does, inside a number (varint)");
}

WireMsg wire_msg(WireIn *w, const WireSpec *spec, const WireField *f, Blobs *keep)
{
	return (WireMsg){ .w = w, .spec = spec, .nkind = strlen(spec->kind), .keep = keep,
		.start = f->p, .p = f->p, .end = f->p + f->n };
}

WireMsg wire_again(const WireMsg *m)
{
	WireMsg again = *m;

	again.p = m->start;
	again.keep = NULL;
	again.again = true;
	return again;
}

bool wire_enter(WireIn *w, const uint8_t *at)
{
	if (w->bad)
		return false;
	if (w->depth >= limits.depth) {
		fail_at(EXIT_LIMIT, wire_loc(w, at, 1), "messages are nested more than %lld deep (--max-depth)",
			(long long)limits.depth);
		w->bad = true;
		return false;
	}
	w->depth++;
	return true;
}

static bool field(WireIn *w, const uint8_t **pp, const uint8_t *end, WireField *f);

/* Groups are of an older format; they only occur as unknown fields and are stepped over, inner ones included. */
static bool skip_group(WireIn *w, const uint8_t **pp, const uint8_t *end, uint32_t num)
{
	const uint8_t *start = *pp;
	uint32_t *open = malloc(sizeof *open * (size_t)(limits.depth + 1));
	int depth = 0;

	if (!open)
		die("out of memory");
	open[depth++] = num;
	while (depth && !w->bad) {
		const uint8_t *at = *pp;
		WireField f;

		if (*pp >= end) {
			wrong(w, start, "this group is never closed");
		} else if (!field(w, pp, end, &f)) {
			break;
		} else if (f.wire == WIRE_GROUP_END) {
			if (open[--depth] != f.num)
				wrong(w, at, "this end of a group belongs to no group");
		} else if (f.wire == WIRE_GROUP) {
			if (depth + w->depth >= limits.depth) {
				fail_at(EXIT_LIMIT, wire_loc(w, at, 1),
					"groups are nested more than %lld deep (--max-depth)",
					(long long)limits.depth);
				w->bad = true;
			} else {
				open[depth++] = f.num;
			}
		}
	}
	free(open);
	return !w->bad;
}

/* One field: tag and payload; of a group only the tag. */
static bool field(WireIn *w, const uint8_t **pp, const uint8_t *end, WireField *f)
{
	const uint8_t *at = *pp;
	uint64_t tag, len;

	if (!varint_in(w, pp, end, &tag))
		return false;
	if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
		return wrong(w, at, "here should be a field, but its number is out of range");
	f->at = at;
	f->num = (uint32_t)(tag >> 3);
	f->wire = (int)(tag & 7);
	f->v = 0;
	f->p = *pp;
	f->n = 0;
	switch (f->wire) {
	case WIRE_VARINT:
		if (!wire_varint(w, pp, end, &f->v))
			return false;
		f->n = (size_t)(*pp - f->p);
		return true;
	case WIRE_FIXED64:
	case WIRE_FIXED32:
		f->n = f->wire == WIRE_FIXED64 ? 8 : 4;
		if ((size_t)(end - *pp) < f->n)
			return wrong(w, at, "the file ends, or its message does, inside a number");
		*pp += f->n;
		return true;
	case WIRE_BYTES:
		if (!varint_in(w, pp, end, &len))
			return false;
		if (len > (uint64_t)(end - *pp)) {
			err_at(wire_loc(w, at, 1),
				len >> 63 ? "field %u has a negative length (%lld)"
					  : "field %u has %lld bytes, but only %lld are left",
				f->num, (long long)len, (long long)(end - *pp));
			w->bad = true;
			return false;
		}
		f->p = *pp;
		f->n = (size_t)len;
		*pp += len;
		return true;
	case WIRE_GROUP:
	case WIRE_GROUP_END:
		return true;
	default:
		return wrong(w, at, "here should be a field, but its wire type does not exist");
	}
}

bool wire_field(WireIn *w, const Blob *b, WireField *f)
{
	const uint8_t *p = b->data;

	return field(w, &p, b->data + b->bytes, f);
}

/* The wire type for the letter of a field; a repeated number may also be packed. */
static bool fits(char kind, int wire)
{
	switch (kind) {
	case 'i': return wire == WIRE_VARINT;
	case 'I': return wire == WIRE_VARINT || wire == WIRE_BYTES;
	case 'f': return wire == WIRE_FIXED32;
	case 'F': return wire == WIRE_FIXED32 || wire == WIRE_BYTES;
	case 'd': return wire == WIRE_FIXED64;
	case 'D': return wire == WIRE_FIXED64 || wire == WIRE_BYTES;
	default:  return wire == WIRE_BYTES;
	}
}

static bool wrong_type(WireMsg *m, const WireField *f, const uint8_t *at)
{
	static const char *const types[] = { "a varint", "8 bytes", "bytes", "a group", "the end of a group",
		"4 bytes" };

	err_at(wire_loc(m->w, at, 1), "field %u of %s has the wrong wire type: %s", f->num, m->spec->name,
		types[f->wire]);
	m->w->bad = true;
	return false;
}

static void unknown(WireMsg *m, const WireField *f, const uint8_t *at, bool known)
{
	WireIn *w = m->w;

	if (!known && !m->again && !w->nunknown++)
		w->unknown = wire_loc(w, at, 1);
	if (m->keep)
		arena_push(w->arena, m->keep->blob, m->keep->n, ((Blob){ at, (size_t)(m->p - at), f->num }));
}

bool wire_next(WireMsg *m, WireField *f)
{
	WireIn *w = m->w;

	while (!w->bad && m->p < m->end) {
		const uint8_t *at = m->p;

		if (!field(w, &m->p, m->end, f))
			return false;
		char kind = f->num < m->nkind ? m->spec->kind[f->num] : ' ';
		if (__builtin_expect(f->wire == WIRE_GROUP_END, 0))
			return wrong(w, at, "this end of a group belongs to no group");
		if (__builtin_expect(f->wire == WIRE_GROUP, 0) && !skip_group(w, &m->p, m->end, f->num))
			return false;
		if (kind == ' ' || kind == 'k') {
			unknown(m, f, at, kind == 'k');
			continue;
		}
		if (!fits(kind, f->wire))
			return wrong_type(m, f, at);
		if (kind >= 'a') {
			if (m->seen >> f->num & 1 && !m->again && !w->ntwice++) {
				w->twice = wire_loc(w, at, 1);
				w->twice_in = m->spec;
				w->twice_field = f->num;
			}
			m->seen |= 1u << f->num;
		}
		return true;
	}
	return false;
}

int64_t wire_count(const WireField *f, int width)
{
	int64_t n = 0;

	if (f->wire != WIRE_BYTES)
		return 1;
	if (width)
		return (int64_t)(f->n / (size_t)width);
	for (size_t i = 0; i < f->n; i++)
		n += f->p[i] < 0x80;
	return n;
}

Name wire_text(WireIn *w, const WireField *f)
{
	const uint8_t *nul = f->n ? memchr(f->p, 0, f->n) : NULL;

	if (nul)
		wrong(w, nul, "this text holds a NUL byte");
	return name_n((const char *)f->p, nul ? 0 : f->n);
}

Name wire_name(WireIn *w, const WireField *f)
{
	if ((int64_t)f->n > limits.name_bytes && !w->bad) {
		fail_at(EXIT_LIMIT, wire_loc(w, f->p, 1),
			"this name or text has %zu bytes, more than --max-name-bytes=%lld", f->n,
			(long long)limits.name_bytes);
		w->bad = true;
	}
	return w->bad ? name_of("") : wire_text(w, f);
}

void wire_ints(WireIn *w, const WireField *f, int64_t **list, int *n)
{
	if (f->wire == WIRE_VARINT) {
		arena_push(w->arena, *list, *n, (int64_t)f->v);
		return;
	}
	for (const uint8_t *p = f->p, *end = p + f->n; p < end;) {
		uint64_t v;

		if (!wire_varint(w, &p, end, &v))
			return;
		arena_push(w->arena, *list, *n, (int64_t)v);
	}
}

void wire_warn(const WireIn *w)
{
	if (w->nunknown)
		warn_at(w->unknown, "%d unknown field%s kept, the first one here", w->nunknown,
			w->nunknown > 1 ? "s are" : " is");
	if (w->ntwice == 1)
		warn_at(w->twice, "field %u of %s stands twice, the last one counts", w->twice_field,
			w->twice_in->name);
	else if (w->ntwice)
		warn_at(w->twice, "field %u of %s stands twice, the last one counts; so do %d other fields",
			w->twice_field, w->twice_in->name, w->ntwice - 1);
}

/* Writing. */

static uint8_t *room(WireOut *o, size_t n)
{
	if (o->cap - o->n < n) {
		o->cap = o->cap * 2 > o->n + n ? o->cap * 2 : o->n + n + 4096;
		o->p = realloc(o->p, o->cap);
		if (!o->p)
			die("out of memory for %zu bytes of output", o->cap);
	}
	return o->p + o->n;
}

static size_t put_varint(uint8_t *p, uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		p[n++] = (uint8_t)(v | 0x80);
	p[n++] = (uint8_t)v;
	return n;
}

static void varint(WireOut *o, uint64_t v)
{
	o->n += put_varint(room(o, 10), v);
}

static void tag(WireOut *o, uint32_t num, int wire)
{
	varint(o, (uint64_t)num << 3 | (unsigned)wire);
}

void wire_out_bytes(WireOut *o, const void *p, size_t n)
{
	if (n)
		memcpy(room(o, n), p, n);
	o->n += n;
}

void wire_out_int(WireOut *o, uint32_t num, int64_t v)
{
	tag(o, num, WIRE_VARINT);
	varint(o, (uint64_t)v);
}

void wire_out_data(WireOut *o, uint32_t num, const void *p, size_t n)
{
	tag(o, num, WIRE_BYTES);
	varint(o, n);
	if (n < 4096)
		wire_out_bytes(o, p, n);
	else
		arena_push(o->arena, o->span, o->nspan, ((WireSpan){ o->n, n, p }));
}

void wire_out_text(WireOut *o, uint32_t num, Name s)
{
	if (s)
		wire_out_data(o, num, s, strlen(s));
}

void wire_out_float(WireOut *o, uint32_t num, float v)
{
	tag(o, num, WIRE_FIXED32);
	wire_out_bytes(o, &v, sizeof v);
}

void wire_out_ints(WireOut *o, uint32_t num, const int64_t *v, int n, bool packed)
{
	if (!packed) {
		for (int i = 0; i < n; i++)
			wire_out_int(o, num, v[i]);
		return;
	}
	size_t at = wire_out_open(o, num);
	for (int i = 0; i < n; i++)
		varint(o, (uint64_t)v[i]);
	wire_out_close(o, at);
}

/* One byte is set aside for the length, which is enough for most messages; a longer one is moved. */
size_t wire_out_open(WireOut *o, uint32_t num)
{
	tag(o, num, WIRE_BYTES);
	room(o, 1);
	return o->n++;
}

void wire_out_close(WireOut *o, size_t at)
{
	uint8_t len[10];
	size_t here = o->n - at - 1, bytes = here, n;
	int first = o->nspan;

	for (; first > 0 && o->span[first - 1].at > at; first--)
		bytes += o->span[first - 1].n;
	n = put_varint(len, bytes);
	room(o, 10);
	if (n > 1)
		memmove(o->p + at + n, o->p + at + 1, here);
	memcpy(o->p + at, len, n);
	o->n += n - 1;
	for (; first < o->nspan; first++)
		o->span[first].at += n - 1;
}

size_t wire_out_size(const WireOut *o)
{
	size_t n = o->n;

	for (int i = 0; i < o->nspan; i++)
		n += o->span[i].n;
	return n;
}

int wire_out_write(WireOut *o, FILE *f)
{
	size_t done = 0;
	bool ok = true;

	for (int i = 0; i < o->nspan; i++) {
		WireSpan s = o->span[i];

		ok = ok && fwrite(o->p + done, 1, s.at - done, f) == s.at - done && fwrite(s.p, 1, s.n, f) == s.n;
		done = s.at;
	}
	ok = ok && fwrite(o->p + done, 1, o->n - done, f) == o->n - done;
	free(o->p);
	*o = (WireOut){ 0 };
	return ok ? 0 : -1;
}

void wire_out_blobs(WireOut *o, const Blobs *b)
{
	for (int i = 0; i < b->n; i++)
		wire_out_bytes(o, b->blob[i].data, b->blob[i].bytes);
}
