/* Converts elements of samples from the types of files to those of the model. */
#include "bits.h"
#include "data.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint64_t raw(const unsigned char *p, size_t w, bool big)
{
	uint64_t v = 0;
	for (size_t i = 0; i < w; i++)
		v = v << 8 | p[big ? i : w - 1 - i];
	return v;
}

static int64_t integer(RtType t, uint64_t v)
{
	switch (t) {
	case RT_I8: return (int8_t)v;
	case RT_I16: return (int16_t)v;
	case RT_I32: return (int32_t)v;
	default: return (int64_t)v;
	}
}

static double real(RtType t, uint64_t v)
{
	uint32_t bits = (uint32_t)(t == RT_BF16 ? v << 16 : v);
	float f;
	double d;
	memcpy(&f, &bits, sizeof f);
	memcpy(&d, &v, sizeof d);
	return t == RT_F64 ? d : t == RT_F16 ? (double)rt_from_half((uint16_t)v) : (double)f;
}

static bool wrong(Wrong *w, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(w->text, sizeof w->text, fmt, ap);
	va_end(ap);
	w->code = code;
	return false;
}

/* Where elements come from. */
typedef struct From {
	const Column *col;
	const RtInput *in;
	const Run *run;
	const char *path;
	int64_t at;
	const unsigned char *p;
} From;

/* The index of a record, or of a token of a stream, in its file. */
static int64_t in_file(const From *f)
{
	const Run *first = f->run;
	while (first > f->col->run && first[-1].file == first->file)
		first--;
	return f->at - first->first;
}

static bool fetch_floats(const From *f, int64_t n, float *to, Wrong *w)
{
	const Column *col = f->col;
	const unsigned char *p = f->p;
	size_t width = rt_width(col->type);
	bool is_float = rt_is_float(col->type),
	     same = col->type == RT_F32 && !col->big && col->scale == 1 && col->mean == 0 && col->dev == 1;
	if (same)
		memcpy(to, p, (size_t)n * sizeof *to);
	for (int64_t i = 0; i < n && !same; i++) {
		uint64_t v = raw(p + (size_t)i * width, width, col->big);
		double x = is_float ? real(col->type, v) : (double)integer(col->type, v);
		to[i] = (float)((x * (double)col->scale - (double)col->mean) / (double)col->dev);
	}
	for (int64_t i = 0; i < n && is_float; i++)
		if (!isfinite(to[i]))
			return wrong(w, RT_NUMERIC, "%s, record %" PRId64 ": %s is %g", f->path, in_file(f),
				f->in->t.name, (double)to[i]);
	return true;
}

static bool fetch_integers(const From *f, int64_t n, void *to, Wrong *w)
{
	const Column *col = f->col;
	size_t width = rt_width(col->type), wide = rt_width(f->in->t.type);
	if (rt_is_float(col->type))
		return wrong(w, RT_DATA, "%s holds floating numbers; %s needs integers", f->path, f->in->t.name);
	for (int64_t i = 0; i < n; i++) {
		int64_t v = integer(col->type, raw(f->p + (size_t)i * width, width, col->big));
		if (f->in->range && (v < 0 || v >= f->in->range))
			return wrong(w, RT_DATA,
				"%s, %s %" PRId64 ": %s is %" PRId64 ", which is not in 0 to %" PRId64, f->path,
				col->stream ? "token" : "record", in_file(f) + (col->stream ? i : 0), f->in->t.name,
				v, f->in->range - 1);
		memcpy((char *)to + (size_t)i * wide, &v, wide); /* little-endian, as all machines that run this */
	}
	return true;
}

static const Run *run_with(const Column *col, int64_t at)
{
	int lo = 0, hi = col->nrun - 1;
	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;
		if (col->run[mid].first <= at)
			lo = mid;
		else
			hi = mid - 1;
	}
	return &col->run[lo];
}

bool set_fetch(
	const Set *s, const RtInput *in, int column, int64_t sample, int64_t from, int64_t n, void *to, Wrong *w)
{
	const Column *col = &s->column[column];
	int64_t at = col->stream ? sample * col->count + col->later + from : sample;
	if (!col->nrun) {              /* a mask beside tokens: all ones */
		memset(to, 1, (size_t)n * rt_width(in->t.type));
		return true;
	}
	while (n > 0) {
		const Run *run = run_with(col, at);
		int64_t k = col->stream && n > run->first + run->n - at ? run->first + run->n - at : n;
		From f = { .col = col, .in = in, .run = run, .path = s->file[run->file].path, .at = at,
			.p = run->data + (at - run->first) * run->stride };
		f.p += col->stream ? 0 : from * (int64_t)rt_width(col->type);
		if (!(in->t.type == RT_F32 ? fetch_floats(&f, k, to, w) : fetch_integers(&f, k, to, w)))
			return false;
		to = (char *)to + (size_t)k * rt_width(in->t.type);
		at += k;
		n -= k;
	}
	return true;
}
