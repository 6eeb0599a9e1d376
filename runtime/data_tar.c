/* Tar files of samples, in the layout of WebDataset: members KEY.INPUT.npy or KEY.INPUT.bin; consecutive members with
 * one key are one sample.  KEY is the name up to the first dot of its last component.  A .npy has the shape of a
 * sample; a .bin holds its elements, in the declared type or a byte each.  In a tar, a header of 512 bytes precedes
 * each member; long names are separate members, in POSIX or GNU format. */
#include "data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME = 1024 };
typedef struct Member { char name[NAME], type; const unsigned char *data; size_t bytes; } Member;
typedef struct Walk {
	const RtFile *f;
	size_t at;
	char name[NAME];
} Walk; /* name: a long one, of the next member */

static bool octal(const unsigned char *p, int n, uint64_t *v)
{
	*v = 0;
	while (n && *p == ' ')
		p++, n--;
	for (; n && *p >= '0' && *p <= '7'; p++, n--)
		*v = *v << 3 | (uint64_t)(*p - '0');
	return !n || !*p || *p == ' ';
}

static bool is_header(const unsigned char *h)
{
	uint64_t want, sum = 8 * ' ';
	for (int i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? 0 : h[i];
	return octal(h + 148, 8, &want) && want == sum;
}

/* POSIX records, "LENGTH KEY=VALUE\n": only the path matters. */
static void pax_path(const Member *m, char *to)
{
	for (size_t at = 0; at < m->bytes;) {
		size_t len = 0, k = at;
		for (; k < m->bytes && m->data[k] >= '0' && m->data[k] <= '9' && len < m->bytes; k++)
			len = len * 10 + (size_t)(m->data[k] - '0');
		if (len < k - at + 2 || len > m->bytes - at)
			return;
		if (len > k - at + 7 && !memcmp(m->data + k, " path=", 6)) {
			size_t n = at + len - 1 - (k + 6);
			n = n < NAME ? n : NAME - 1;
			memcpy(to, m->data + k + 6, n);
			to[n] = 0;
		}
		at += len;
	}
}

/* The next member; 0: it is there, -1: there is none, else a code after rt_error. */
static int next_member(Ctx *c, Walk *w, Member *m)
{
	static const unsigned char zeros[BLOCK];
	const unsigned char *h = w->f->data + w->at;
	size_t left = w->f->bytes - w->at;
	uint64_t bytes;
	if (!left || (left >= BLOCK && !memcmp(h, zeros, BLOCK)))
		return -1;
	if (left < BLOCK || !is_header(h) || !octal(h + 124, 12, &bytes))
		return rt_error(c, RT_DATA, "%s, byte %zu: this is not a tar header", w->f->path, w->at);
	*m = (Member){ .type = (char)h[156], .data = h + BLOCK, .bytes = (size_t)bytes };
	if (*w->name)
		memcpy(m->name, w->name, NAME);
	else
		snprintf(m->name, NAME, "%.*s%s%.100s", memcmp(h + 257, "ustar", 6) ? 0 : 155, (const char *)h + 345,
			memcmp(h + 257, "ustar", 6) || !h[345] ? "" : "/", (const char *)h);
	if (bytes > left - BLOCK)
		return rt_error(c, RT_DATA, "%s: %s, of %" PRIu64 " bytes, is truncated", w->f->path, m->name, bytes);
	w->at += BLOCK + (size_t)(bytes + BLOCK - 1) / BLOCK * BLOCK;
	w->at = w->at < w->f->bytes ? w->at : w->f->bytes;
	return 0;
}

/* The input that a member belongs to, by what follows its key; -1: none. */
static int input_of(const Ctx *c, const char *ext, bool *npy)
{
	const RtIo *p = &c->program->io[RT_TRAIN];
	for (int i = 0; i < p->ninput; i++) {
		size_t n = strlen(p->input[i].t.name);
		if (p->input[i].feed != RT_SAMPLES || strncmp(ext, p->input[i].t.name, n))
			continue;
		*npy = !strcmp(ext + n, ".npy");
		if (*npy || !strcmp(ext + n, ".bin"))
			return i;
	}
	return -1;
}

static int take_raw(Ctx *c, Set *s, int input, const char *what, const Member *m)
{
	const RtTensor *t = &c->program->io[RT_TRAIN].input[input].t;
	int64_t count = rt_sample_elements(t);
	RtType type = m->bytes == (size_t)count * rt_width(t->type) ? t->type : RT_U8;
	if (m->bytes != (size_t)count * rt_width(type))
		return rt_error(c, RT_DATA, "%s has %zu bytes; %s needs %" PRId64 " elements of %zu, or of one", what,
			m->bytes, t->name, count, rt_width(t->type));
	return set_take_array(c, s, input, what, type, false, t->naxis - 1, t->dim + 1, m->data, m->bytes, false);
}

/* Checks that the sample that ends here has all inputs. */
static int complete(Ctx *c, const Set *s, const RtFile *f, const char *key, int64_t samples)
{
	for (int i = 0; i < s->ncolumn && *key; i++)
		if (c->program->io[RT_TRAIN].input[i].feed == RT_SAMPLES && s->column[i].n != samples)
			return rt_error(c, RT_DATA, "%s: sample %s has %s %s", f->path, key,
				s->column[i].n < samples ? "no" : "more than one",
				c->program->io[RT_TRAIN].input[i].t.name);
	return 0;
}

int tar_take(Ctx *c, Set *s, const RtFile *f)
{
	Walk w = { .f = f };
	Member m;
	char key[NAME] = "", what[NAME + RT_PATH], first[NAME] = "";
	int64_t samples = s->n;
	int code, ignored = 0;
	while (!(code = next_member(c, &w, &m))) {
		if (m.type == 'L')
			snprintf(w.name, NAME, "%.*s", (int)(m.bytes < NAME ? m.bytes : NAME), (const char *)m.data);
		else if (m.type == 'x')
			pax_path(&m, w.name);
		if (m.type == 'L' || m.type == 'x' || m.type == 'g' || m.type == '5')
			continue;
		*w.name = 0;
		bool npy = false, file = !m.type || m.type == '0' || m.type == '7';
		char *last = strrchr(m.name, '/'), *dot = strchr(last ? last + 1 : m.name, '.');
		int input = file && dot ? input_of(c, dot + 1, &npy) : -1;
		if (input < 0) {
			if (!ignored++)
				memcpy(first, m.name, NAME);
			continue;
		}
		snprintf(what, sizeof what, "%s: %s", f->path, m.name);
		*dot = 0;
		if (strcmp(key, m.name)) {
			code = complete(c, s, f, key, samples++);
			memcpy(key, m.name, NAME);
		}
		if (!code)
			code = npy ? npy_take(c, s, input, what, m.data, m.bytes, false)
			           : take_raw(c, s, input, what, &m);
		if (code)
			return code;
	}
	if (ignored && !c->rank && !c->error)
		fprintf(stderr, "note: %s: %d members are skipped: they are not KEY.INPUT.npy or KEY.INPUT.bin; the "
			"first is %s\n", f->path, ignored, first);
	return code > 0 ? code : complete(c, s, f, key, samples);
}
