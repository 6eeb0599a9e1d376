/* Formats of data sets: what one file adds to the columns of a set.
 *
 *   bytes, tokens16, tokens32    a stream of tokens; the second input is one token later
 *   npy, idx, safetensors        arrays, one or more files per input, the first axis the samples
 *   cifar                        records of one byte, the label, and the bytes of the image
 *   tar                          members KEY.INPUT.npy or KEY.INPUT.bin, those of a key one sample: data_tar.c */
#include "data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool format_has_arrays(RtFormat f)
{
	return f == RT_NPY || f == RT_IDX;
}

/* ---- tokens ---- */

static int take_tokens(Ctx *c, Set *s, const RtFile *f, RtType type)
{
	int64_t w = (int64_t)rt_width(type), later = 0;
	int code = 0;
	if (f->bytes % (size_t)w)
		return rt_error(c, RT_DATA, "%s has %zu bytes, which is not a multiple of %d",
			f->path, f->bytes, (int)w);
	for (int i = 0; i < s->ncolumn && !code; i++) {
		const RtInput *in = &c->program->io[RT_TRAIN].input[i];
		Column *col = &s->column[i];
		if (in->feed != RT_SAMPLES || in->t.type == RT_BOOL)
			continue;
		col->type = type;
		col->stream = true;
		col->count = rt_sample_elements(&in->t);
		col->later = later++;
		col->scale = col->dev = 1;
		code = set_add_run(c, col, f->data, s->nfile - 1, (int64_t)f->bytes / w, w);
	}
	return code;
}

/* ---- arrays ---- */

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
	static const struct {
		char kind, width;
		RtType t;
	} list[] = { { 'f', '4', RT_F32 }, { 'f', '8', RT_F64 }, { 'f', '2', RT_F16 }, { 'i', '8', RT_I64 },
		{ 'i', '4', RT_I32 }, { 'i', '2', RT_I16 }, { 'i', '1', RT_I8 }, { 'u', '8', RT_U64 },
		{ 'u', '4', RT_U32 }, { 'u', '2', RT_U16 }, { 'u', '1', RT_U8 }, { 'b', '1', RT_BOOL } };
	for (size_t i = 0; s && i < sizeof list / sizeof list[0]; i++)
		if (s[0] && strchr("<>|=", s[0]) && s[1] == list[i].kind && s[2] == list[i].width &&
			(s[3] == '\'' || s[3] == '"')) {
			*t = list[i].t;
			*big = s[0] == '>';
			return true;
		}
	return false;
}

int npy_take(Ctx *c, Set *s, int input, const char *what, const unsigned char *data, size_t bytes, bool samples)
{
	size_t wide = bytes > 10 && data[6] > 1 ? 4 : 2, at = 8 + wide, len = 0;
	char text[4096];
	RtType type = RT_F32;
	bool big = false;
	int64_t dim[RT_AXES];
	int naxis = 0;
	if (bytes < 12 || memcmp(data, "\x93NUMPY", 6))
		return rt_error(c, RT_DATA, "%s is not a .npy file", what);
	for (size_t i = wide; i-- > 0;)
		len = len << 8 | data[8 + i];
	if (len > bytes - at || len >= sizeof text)
		return rt_error(c, RT_DATA, "%s: its header is truncated or too long", what);
	memcpy(text, data + at, len);
	text[len] = 0;
	const char *order = after(text, "fortran_order"), *shape = after(text, "shape");
	if (!npy_type(after(text, "descr"), &type, &big) || !order || !shape || *shape != '(')
		return rt_error(c, RT_DATA, "%s: its element type or shape is not supported", what);
	if (*order == 'T')
		return rt_error(c, RT_DATA, "%s is in Fortran order: save it with numpy.ascontiguousarray", what);
	for (shape++;; naxis++) {
		char *end;
		shape += strspn(shape, " ,");
		if (*shape == ')')
			break;
		errno = 0;
		long long v = strtoll(shape, &end, 10);
		if (end == shape || v < 0 || errno || naxis == RT_AXES)
			return rt_error(c, RT_DATA, "%s: its shape is invalid", what);
		dim[naxis] = v;
		shape = end;
	}
	return set_take_array(c, s, input, what, type, big, naxis, dim, data + at + len, bytes - at - len, samples);
}

static int take_idx(Ctx *c, Set *s, int input, const RtFile *f)
{
	static const RtType types[16] = {
		[8] = RT_U8, [9] = RT_I8, [11] = RT_I16, [12] = RT_I32, [13] = RT_F32, [14] = RT_F64
	};
	int naxis = f->bytes >= 4 ? f->data[3] : 0, kind = f->bytes >= 4 ? f->data[2] : 0;
	int64_t dim[RT_AXES];
	if (f->bytes < 4 || f->data[0] || f->data[1] || kind < 8 || kind == 10 || kind > 14 || naxis < 1 ||
		naxis > RT_AXES || f->bytes < 4 + 4 * (size_t)naxis)
		return rt_error(c, RT_DATA, "%s is not an IDX file, or is truncated", f->path);
	for (int a = 0; a < naxis; a++) {
		dim[a] = 0;
		for (int k = 0; k < 4; k++)
			dim[a] = dim[a] << 8 | f->data[4 + 4 * a + k];
	}
	return set_take_array(c, s, input, f->path, types[kind], true, naxis, dim, f->data + 4 + 4 * naxis,
		f->bytes - 4 - 4 * (size_t)naxis, true);
}

int format_input(Ctx *c, Set *s, int input, char *path)
{
	RtFile *f;
	int code = set_add_file(c, s, path, &f);
	if (code)
		return code;
	return c->program->data.format == RT_IDX ? take_idx(c, s, input, f)
	                                         : npy_take(c, s, input, f->path, f->data, f->bytes, true);
}

/* The header is freed, the file stays mapped. */
static int take_safe(Ctx *c, Set *s, const RtFile *f)
{
	RtSafe safe;
	int code = rt_safe_read(c, RT_DATA, f->path, *f, &safe);
	for (int i = 0; i < s->ncolumn && !code; i++) {
		const RtInput *in = &c->program->io[RT_TRAIN].input[i];
		if (in->feed != RT_SAMPLES)
			continue;
		const RtEntry *e = rt_safe_find(&safe, in->t.name);
		if (!e)
			code = rt_error(c, RT_DATA, "%s has no tensor %s", f->path, in->t.name);
		else
			code = set_take_array(c, s, i, f->path, e->type, false, e->naxis, e->dim, safe.data + e->from,
				(size_t)(e->to - e->from), true);
	}
	safe.file = (RtFile){ 0 };
	rt_safe_close(&safe);
	return code;
}

/* ---- CIFAR ---- */

static int take_cifar(Ctx *c, Set *s, const RtFile *f)
{
	const RtData *d = &c->program->data;
	int image = -1, label = -1;
	for (int i = 0; i < s->ncolumn; i++)
		if (c->program->io[RT_TRAIN].input[i].feed == RT_SAMPLES)
			*(c->program->io[RT_TRAIN].input[i].t.type == RT_F32 ? &image : &label) = i;
	if (image < 0 || label < 0)
		return rt_error(c, RT_DATA, "CIFAR's records are for an image, which is float, and a label");
	int64_t bytes = rt_sample_elements(&c->program->io[RT_TRAIN].input[image].t),
		n = (int64_t)f->bytes / (bytes + 1);
	Column *im = &s->column[image], *la = &s->column[label];
	if (!f->bytes || f->bytes % (size_t)(bytes + 1))
		return rt_error(c, RT_DATA, "%s has %zu bytes, which is not a multiple of a record of %" PRId64,
			f->path, f->bytes, bytes + 1);
	im->type = la->type = RT_U8;
	im->count = bytes;
	im->scale = d->scale != 0 ? d->scale : 1 / 255.0f;
	im->mean = d->mean;
	im->dev = d->dev != 0 ? d->dev : 1;
	la->count = 1;
	la->scale = la->dev = 1;
	int code = set_add_run(c, im, f->data + 1, s->nfile - 1, n, bytes + 1);
	return code ? code : set_add_run(c, la, f->data, s->nfile - 1, n, bytes + 1);
}

int format_open(Ctx *c, Set *s, char *path)
{
	RtFile *f;
	int code = set_add_file(c, s, path, &f);
	if (code)
		return code;
	switch (c->program->data.format) {
	case RT_BYTES: return take_tokens(c, s, f, RT_U8);
	case RT_TOKENS16: return take_tokens(c, s, f, RT_U16);
	case RT_TOKENS32: return take_tokens(c, s, f, RT_U32);
	case RT_SAFETENSORS: return take_safe(c, s, f);
	case RT_CIFAR: return take_cifar(c, s, f);
	case RT_TAR: return tar_take(c, s, f);
	default: return 0;
	}
}
