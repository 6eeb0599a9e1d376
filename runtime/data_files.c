/* Data sets in files: raw bytes and token files, .npy, IDX, CIFAR's records, safetensors.
 *
 * A file is mapped and described by one Column per input: element type, where sample 0 begins, how far it is to the next.
 * Everything is checked against the declared shapes when the set is opened; values are checked when they are fetched.
 *
 *   bytes, tokens16, tokens32    sample i is the T tokens from i * T on; the second input is one token later
 *   npy, idx, safetensors        one array per input, its first axis the samples
 *   cifar                        records of one byte, the label, and the bytes of the image */
#include "data.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int64_t sample_elements(const RtTensor *t)
{
	int64_t n = 1;
	for (int a = 1; a < t->rank; a++)
		n *= t->dim[a];
	return n;
}

static bool is_folder(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Opens one more file of the set.  The name lives as long as the set. */
static int add_file(Ctx *c, Set *s, const char *path, RtFile **f)
{
	if (s->nfile == PARTS)
		return rt_error(c, RT_DATA, "a data set of more than %d files", PARTS);
	*f = &s->file[s->nfile];
	int code = rt_file_open(c, RT_DATA, path, *f);
	if (code)
		return code;
	s->names[s->nfile++] = strdup(path);
	return s->names[s->nfile - 1] ? 0 : rt_error(c, RT_MEMORY, "no memory");
}

static int one_part(Ctx *c, Set *s, Column *col, const char *path, const unsigned char *data, int64_t n)
{
	col->path = path;
	col->part[0] = (Part){ data, 0, n };
	col->npart = 1;
	if (s->n && s->n != n)
		return rt_error(c, RT_DATA, "%s has %" PRId64 " samples, others have %" PRId64, path, n, s->n);
	s->n = n;
	return 0;
}

/* ---- tokens ---- */

static int open_tokens(Ctx *c, Set *s, const char *path, RtType type)
{
	RtFile *f;
	int code = add_file(c, s, path, &f);
	if (code)
		return code;
	int64_t w = (int64_t)rt_width(type), later = 0;
	if (f->bytes % (size_t)w)
		return rt_error(c, RT_DATA, "%s has %zu bytes, which is no multiple of %d", path, f->bytes, (int)w);
	for (int i = 0; i < c->program->part[RT_TRAIN].ninput && !code; i++) {
		const RtInput *in = &c->program->part[RT_TRAIN].input[i];
		if (in->feed != RT_SAMPLES || in->t.type == RT_BOOL)
			continue;
		Column *col = &s->column[i];
		int64_t t = sample_elements(&in->t), n = ((int64_t)f->bytes / w - 1) / t;
		if (n < 1)
			return rt_error(c, RT_DATA, "%s has %zu tokens; one sample needs %" PRId64, path, f->bytes / (size_t)w, t + 1);
		*col = (Column){ .type = type, .stride = t * w, .count = t, .scale = 1, .dev = 1 };
		code = one_part(c, s, col, s->names[s->nfile - 1], f->data + later, n);
		later += w;
	}
	return code;
}

/* ---- arrays ---- */

/* The shape that a file gives must be [samples, declared...]; axes of length 1 do not count. */
static int take_array(Ctx *c, Set *s, int input, const char *path, RtType type, bool big, int rank, const int64_t *dim, const unsigned char *data, size_t bytes)
{
	const RtInput *in = &c->program->part[RT_TRAIN].input[input];
	const RtData *d = &c->program->data;
	char is[256], want[256];
	int64_t n = rank ? dim[0] : 1, count = 1;
	int a = 1, b = 1;
	for (;; a++, b++) {
		while (a < rank && dim[a] == 1)
			a++;
		while (b < in->t.rank && in->t.dim[b] == 1)
			b++;
		if (a >= rank || b >= in->t.rank || dim[a] != in->t.dim[b])
			break;
		count *= dim[a];
	}
	if (a < rank || b < in->t.rank || rank < 1)
		return rt_error(c, RT_DATA, "%s is %s; %s needs samples of %s", path, rt_shape_text(is, sizeof is, type, rank, dim), in->t.name,
		                rt_shape_text(want, sizeof want, in->t.type, in->t.rank - 1, in->t.dim + 1));
	int64_t w = (int64_t)rt_width(type), need;
	if (__builtin_mul_overflow(count * w, n, &need) || (size_t)need != bytes)
		return rt_error(c, RT_DATA, "%s has %zu bytes of elements; its shape %s needs %" PRId64, path, bytes, rt_shape_text(is, sizeof is, type, rank, dim), need);
	bool images = d->format == RT_IDX && type == RT_U8;
	s->column[input] = (Column){ .type = type, .big = big, .stride = count * w, .count = count, .scale = d->scale != 0 ? d->scale : images ? 1 / 255.0f : 1,
		.mean = d->mean, .dev = d->dev != 0 ? d->dev : 1 };
	return one_part(c, s, &s->column[input], path, data, n);
}

static const char *after(const char *text, const char *key)
{
	const char *p = strstr(text, key);
	if (!p)
		return NULL;
	p += strlen(key);
	p += strspn(p, " '\"");
	return *p == ':' ? p + 1 + strspn(p + 1, " '\"") : NULL;
}

static bool npy_type(const char *s, RtType *t, bool *big)
{
	static const struct { char kind, width; RtType t; } list[] = { { 'f', '4', RT_F32 }, { 'f', '8', RT_F64 }, { 'f', '2', RT_F16 }, { 'i', '8', RT_I64 },
		{ 'i', '4', RT_I32 }, { 'i', '2', RT_I16 }, { 'i', '1', RT_I8 }, { 'u', '8', RT_U64 }, { 'u', '4', RT_U32 }, { 'u', '2', RT_U16 }, { 'u', '1', RT_U8 },
		{ 'b', '1', RT_BOOL } };
	for (size_t i = 0; s && i < sizeof list / sizeof list[0]; i++)
		if (s[0] && strchr("<>|=", s[0]) && s[1] == list[i].kind && s[2] == list[i].width && (s[3] == '\'' || s[3] == '"')) {
			*t = list[i].t;
			*big = s[0] == '>';
			return true;
		}
	return false;
}

static int open_npy(Ctx *c, Set *s, int input, const RtFile *f, const char *path)
{
	size_t wide = f->bytes > 10 && f->data[6] > 1 ? 4 : 2, at = 8 + wide, len = 0;
	char text[4096];
	RtType type = RT_F32;
	bool big = false;
	int64_t dim[RT_AXES];
	int rank = 0;
	if (f->bytes < 12 || memcmp(f->data, "\x93NUMPY", 6))
		return rt_error(c, RT_DATA, "%s is no .npy file", path);
	for (size_t i = wide; i-- > 0;)
		len = len << 8 | f->data[8 + i];
	if (len > f->bytes - at || len >= sizeof text)
		return rt_error(c, RT_DATA, "%s: its header is cut off or too long", path);
	memcpy(text, f->data + at, len);
	text[len] = 0;
	const char *order = after(text, "fortran_order"), *shape = after(text, "shape");
	if (!npy_type(after(text, "descr"), &type, &big) || !order || !shape || *shape != '(')
		return rt_error(c, RT_DATA, "%s: its element type or shape is not one that can be read", path);
	if (*order == 'T')
		return rt_error(c, RT_DATA, "%s is in Fortran's order: save it with numpy.ascontiguousarray", path);
	for (shape++;; rank++) {
		char *end;
		shape += strspn(shape, " ,");
		if (*shape == ')')
			break;
		errno = 0;
		long long v = strtoll(shape, &end, 10);
		if (end == shape || v < 0 || errno || rank == RT_AXES)
			return rt_error(c, RT_DATA, "%s: its shape is not sensible", path);
		dim[rank] = v;
		shape = end;
	}
	return take_array(c, s, input, path, type, big, rank, dim, f->data + at + len, f->bytes - at - len);
}

static int open_idx(Ctx *c, Set *s, int input, const RtFile *f, const char *path)
{
	static const RtType types[16] = { [8] = RT_U8, [9] = RT_I8, [11] = RT_I16, [12] = RT_I32, [13] = RT_F32, [14] = RT_F64 };
	int rank = f->bytes >= 4 ? f->data[3] : 0, kind = f->bytes >= 4 ? f->data[2] : 0;
	int64_t dim[RT_AXES];
	if (f->bytes < 4 || f->data[0] || f->data[1] || kind < 8 || kind == 10 || kind > 14 || rank < 1 || rank > RT_AXES || f->bytes < 4 + 4 * (size_t)rank)
		return rt_error(c, RT_DATA, "%s is no IDX file, or is cut off", path);
	for (int a = 0; a < rank; a++) {
		dim[a] = 0;
		for (int k = 0; k < 4; k++)
			dim[a] = dim[a] << 8 | f->data[4 + 4 * a + k];
	}
	return take_array(c, s, input, path, types[kind], true, rank, dim, f->data + 4 + 4 * rank, f->bytes - 4 - 4 * (size_t)rank);
}

/* FOLDER/x.npy, or the file that the model names for the input, in that folder if there is one. */
static int array_path(Ctx *c, const RtInput *in, const char *folder, const char *end, char *to, size_t room)
{
	const char *name = in->file ? in->file : in->t.name;
	int n;
	if (folder && !is_folder(folder))
		return rt_error(c, RT_DATA, "cannot read %s: it is no folder", folder);
	if (in->file && !folder)
		n = snprintf(to, room, "%s", name);
	else
		n = snprintf(to, room, "%s/%s%s", folder ? folder : ".", in->file && strrchr(name, '/') ? strrchr(name, '/') + 1 : name, in->file ? "" : end);
	return n < 0 || (size_t)n >= room ? rt_error(c, RT_DATA, "the path of %s is too long", in->t.name) : 0;
}

static int open_arrays(Ctx *c, Set *s, const char *folder)
{
	bool idx = c->program->data.format == RT_IDX;
	char path[4096];
	int code = 0;
	for (int i = 0; i < c->program->part[RT_TRAIN].ninput && !code; i++) {
		const RtInput *in = &c->program->part[RT_TRAIN].input[i];
		RtFile *f;
		if (in->feed != RT_SAMPLES)
			continue;
		code = array_path(c, in, folder, idx ? ".idx" : ".npy", path, sizeof path);
		if (!code)
			code = add_file(c, s, path, &f);
		if (!code)
			code = idx ? open_idx(c, s, i, f, s->names[s->nfile - 1]) : open_npy(c, s, i, f, s->names[s->nfile - 1]);
	}
	return code;
}

static int open_safe(Ctx *c, Set *s, const char *path)
{
	int code = rt_safe_open(c, RT_DATA, path, &s->safe);
	for (int i = 0; i < c->program->part[RT_TRAIN].ninput && !code; i++) {
		const RtInput *in = &c->program->part[RT_TRAIN].input[i];
		if (in->feed != RT_SAMPLES)
			continue;
		const RtEntry *e = rt_safe_find(&s->safe, in->t.name);
		if (!e)
			return rt_error(c, RT_DATA, "%s has no tensor %s", path, in->t.name);
		code = take_array(c, s, i, path, e->type, false, e->rank, e->dim, s->safe.data + e->from, (size_t)(e->to - e->from));
	}
	return code;
}

/* ---- CIFAR ---- */

static int open_cifar(Ctx *c, Set *s, const char *path)
{
	const RtData *d = &c->program->data;
	int image = -1, label = -1, code = 0;
	for (int i = 0; i < c->program->part[RT_TRAIN].ninput; i++)
		if (c->program->part[RT_TRAIN].input[i].feed == RT_SAMPLES)
			*(c->program->part[RT_TRAIN].input[i].t.type == RT_F32 ? &image : &label) = i;
	if (image < 0 || label < 0)
		return rt_error(c, RT_DATA, "CIFAR's records are for an image, which is float, and a label");
	int64_t bytes = sample_elements(&c->program->part[RT_TRAIN].input[image].t);
	Column *im = &s->column[image], *la = &s->column[label];
	*im = (Column){ .type = RT_U8, .stride = bytes + 1, .count = bytes, .scale = d->scale != 0 ? d->scale : 1 / 255.0f, .mean = d->mean, .dev = d->dev != 0 ? d->dev : 1 };
	*la = (Column){ .type = RT_U8, .stride = bytes + 1, .count = 1, .scale = 1, .dev = 1 };
	int n = path ? (is_folder(path) ? d->nmore + 1 : 1) : d->nmore + 1;
	for (int k = 0; k < n && !code; k++) {
		const char *name = k ? d->more[k - 1] : d->path;
		char in[4096];
		RtFile *f;
		snprintf(in, sizeof in, "%s%s%s", path ? path : name, path && is_folder(path) ? "/" : "",
		         path && is_folder(path) ? (strrchr(name, '/') ? strrchr(name, '/') + 1 : name) : "");
		if ((code = add_file(c, s, in, &f)))
			break;
		if (!f->bytes || f->bytes % (size_t)(bytes + 1))
			return rt_error(c, RT_DATA, "%s has %zu bytes, which is no multiple of a record of %" PRId64, in, f->bytes, bytes + 1);
		im->path = la->path = s->names[s->nfile - 1];
		int64_t count = (int64_t)f->bytes / (bytes + 1);
		im->part[im->npart++] = (Part){ f->data + 1, s->n, count };
		la->part[la->npart++] = (Part){ f->data, s->n, count };
		s->n += count;
	}
	return code;
}

int set_open(Ctx *c, Set *s, const char *path)
{
	const RtData *d = &c->program->data;
	const char *at = path ? path : d->path;
	*s = (Set){ .column = calloc((size_t)c->program->part[RT_TRAIN].ninput + 1, sizeof *s->column) };
	if (!s->column)
		return rt_error(c, RT_MEMORY, "no memory");
	switch (d->format) {
	case RT_BYTES: return open_tokens(c, s, at, RT_U8);
	case RT_TOKENS16: return open_tokens(c, s, at, RT_U16);
	case RT_TOKENS32: return open_tokens(c, s, at, RT_U32);
	case RT_NPY: case RT_IDX: return open_arrays(c, s, at);
	case RT_SAFETENSORS: return open_safe(c, s, at);
	case RT_CIFAR: return open_cifar(c, s, path);
	default: return 0;
	}
}

void set_close(Set *s)
{
	for (int i = 0; i < s->nfile; i++) {
		rt_file_close(&s->file[i]);
		free((void *)(uintptr_t)s->names[i]);
	}
	rt_safe_close(&s->safe);
	free(s->column);
	*s = (Set){ 0 };
}

/* All bytes up to a GiB; of more, a few thousand blocks that lie evenly, and the size. */
static uint32_t print_file(uint32_t crc, const RtFile *f)
{
	enum { BLOCK = 64 << 10, BLOCKS = 4096 };
	uint64_t bytes = f->bytes;
	crc = rt_crc32c(crc, &bytes, sizeof bytes);
	if (bytes <= 1u << 30)
		return f->bytes ? rt_crc32c(crc, f->data, f->bytes) : crc;
	for (uint64_t i = 0; i < BLOCKS; i++)
		crc = rt_crc32c(crc, f->data + (bytes - BLOCK) / BLOCKS * i, BLOCK);
	return crc;
}

uint64_t set_print(const Set *s)
{
	uint32_t crc = 0;
	for (int i = 0; i < s->nfile; i++)
		crc = print_file(crc, &s->file[i]);
	if (s->safe.file.data)
		crc = print_file(crc, &s->safe.file);
	return (uint64_t)s->n << 32 ^ crc;
}

/* ---- values ---- */

static double half(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
	return h >> 15 ? -v : v;
}

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

static bool floating(RtType t)
{
	return t == RT_F32 || t == RT_F64 || t == RT_F16 || t == RT_BF16;
}

static double real(RtType t, uint64_t v)
{
	uint32_t bits = (uint32_t)(t == RT_BF16 ? v << 16 : v);
	float f;
	double d;
	memcpy(&f, &bits, sizeof f);
	memcpy(&d, &v, sizeof d);
	return t == RT_F64 ? d : t == RT_F16 ? half((uint16_t)v) : (double)f;
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

static bool fetch_floats(const Column *col, const RtInput *in, const unsigned char *p, int64_t sample, int64_t n, float *to, Wrong *w)
{
	size_t width = rt_width(col->type);
	bool is_float = floating(col->type), same = col->type == RT_F32 && !col->big && col->scale == 1 && col->mean == 0 && col->dev == 1;
	if (same)
		memcpy(to, p, (size_t)n * sizeof *to);
	for (int64_t i = 0; i < n && !same; i++) {
		uint64_t v = raw(p + (size_t)i * width, width, col->big);
		double x = is_float ? real(col->type, v) : (double)integer(col->type, v);
		to[i] = (float)((x * (double)col->scale - (double)col->mean) / (double)col->dev);
	}
	for (int64_t i = 0; i < n && is_float; i++)
		if (!isfinite(to[i]))
			return wrong(w, RT_NUMERIC, "%s, record %" PRId64 ": %s is %g", col->path, sample, in->t.name, (double)to[i]);
	return true;
}

static bool fetch_integers(const Column *col, const RtInput *in, const unsigned char *p, int64_t sample, int64_t n, void *to, Wrong *w)
{
	size_t width = rt_width(col->type), wide = rt_width(in->t.type);
	if (floating(col->type))
		return wrong(w, RT_DATA, "%s holds floating numbers; %s needs integers", col->path, in->t.name);
	for (int64_t i = 0; i < n; i++) {
		int64_t v = integer(col->type, raw(p + (size_t)i * width, width, col->big));
		if (in->range && (v < 0 || v >= in->range))
			return wrong(w, RT_DATA, "%s, record %" PRId64 ": %s is %" PRId64 ", which is not in 0 to %" PRId64, col->path, sample, in->t.name, v, in->range - 1);
		memcpy((char *)to + (size_t)i * wide, &v, wide);        /* little-endian, as all machines that run this */
	}
	return true;
}

bool set_fetch(const Set *s, const RtInput *in, int column, int64_t sample, int64_t from, int64_t n, void *to, Wrong *w)
{
	const Column *col = &s->column[column];
	int k = 0;
	if (!col->npart) {              /* a mask beside tokens: all are there */
		memset(to, 1, (size_t)n * rt_width(in->t.type));
		return true;
	}
	while (k < col->npart - 1 && sample >= col->part[k + 1].first)
		k++;
	const unsigned char *p = col->part[k].data + (sample - col->part[k].first) * col->stride + from * (int64_t)rt_width(col->type);
	return in->t.type == RT_F32 ? fetch_floats(col, in, p, sample, n, to, w) : fetch_integers(col, in, p, sample, n, to, w);
}
