/* Functions that every file of the runtime uses: messages, time, element types, tensors as text, writing to files. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- messages ---- */

static const char *name_of(const RtProgram *p, int value)
{
	return value < p->nkept ? p->kept[value].t.name : p->value[value - p->nkept].name;
}

/* " step 812 action a41 (MatMul h)"; between steps without the action; nothing before the first step. */
static void describe(const Ctx *c, char *to, size_t room)
{
	bool any = c->at && c->values;
	*to = 0;
	if (c->at)
		snprintf(to, room, " step %lld action a%d (%s%s%s)", (long long)c->step, c->id, c->at->op,
			any ? " " : "", any ? name_of(c->program, c->values[0]) : "");
	else if (c->begun)
		snprintf(to, room, " step %lld", (long long)c->step);
}

int rt_error(const Ctx *c, int code, const char *fmt, ...)
{
	char text[RT_MESSAGE], where[RT_MESSAGE / 2];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	describe(c, where, sizeof where);
	if (c->error)
		snprintf(c->error, RT_MESSAGE, "%.160s%s%.300s", where + (*where == ' '), *where ? ": " : "", text);
	else
		fprintf(stderr, "rank %d%s: %s\n", c->rank, where, text);
	return code;
}

double rt_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

size_t rt_slab_bytes(const Ctx *c)
{
	const RtRole *r = c->program->role ? c->program->role[c->role] : NULL;
	return r && r->slab_bytes ? r->slab_bytes : c->program->slab_bytes;
}

/* ---- types and tensors ---- */

size_t rt_width(RtType t)
{
	static const uint8_t width[RT_TYPES] = {
		[RT_F32] = 4, [RT_F64] = 8, [RT_F16] = 2, [RT_BF16] = 2,
		[RT_I64] = 8, [RT_I32] = 4, [RT_I16] = 2, [RT_I8] = 1,
		[RT_U64] = 8, [RT_U32] = 4, [RT_U16] = 2, [RT_U8] = 1, [RT_BOOL] = 1,
	};
	return width[t];
}

static const char *const type_name[RT_TYPES] = {
	[RT_F32] = "F32", [RT_F64] = "F64", [RT_F16] = "F16", [RT_BF16] = "BF16",
	[RT_I64] = "I64", [RT_I32] = "I32", [RT_I16] = "I16", [RT_I8] = "I8",
	[RT_U64] = "U64", [RT_U32] = "U32", [RT_U16] = "U16", [RT_U8] = "U8", [RT_BOOL] = "BOOL",
};

const char *rt_type_name(RtType t)
{
	return type_name[t];
}

bool rt_is_float(RtType t)
{
	return t == RT_F32 || t == RT_F64 || t == RT_F16 || t == RT_BF16;
}

size_t rt_logical_bytes(const RtTensor *t)
{
	size_t n = rt_width(t->type);
	for (int a = 0; a < t->naxis; a++)
		n *= (size_t)t->dim[a];
	return n;
}

int64_t rt_sample_elements(const RtTensor *t)
{
	int64_t n = 1;
	for (int a = 1; a < t->naxis; a++)
		n *= t->dim[a];
	return n;
}

const char *rt_shape_text(char *to, size_t room, RtType t, int naxis, const int64_t *dim)
{
	size_t n = (size_t)snprintf(to, room, "%s[", type_name[t]);
	for (int a = 0; a < naxis && n < room; a++)
		n += (size_t)snprintf(to + n, room - n, "%s%" PRId64, a ? ", " : "", dim[a]);
	if (n < room)
		snprintf(to + n, room - n, "]");
	return to;
}

const char *rt_shown(const char *name)
{
	static _Thread_local char text[2][256];
	static _Thread_local int turn;
	char *to = text[turn ^= 1];
	size_t n = 0;
	for (; *name && n + 8 < sizeof text[0]; name++)
		n += (size_t)snprintf(to + n, sizeof text[0] - n, *name > 31 && *name < 127 ? "%c" : "\\x%02X",
			(unsigned char)*name);
	to[n] = 0;
	return *name ? strcat(to, "..") : to;
}

/* ---- files ---- */

int rt_write_at(int fd, const void *data, size_t n, uint64_t at)
{
	while (n) {
		ssize_t k = pwrite(fd, data, n, (off_t)at);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			errno = k ? errno : ENOSPC;
			return -1;
		}
		data = (const char *)data + k;
		at += (uint64_t)k;
		n -= (size_t)k;
	}
	return 0;
}
