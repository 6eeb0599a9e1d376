/* .npy files: inputs and outputs of --eval.
 *
 * Reading: versions 1 to 3, both byte orders, both element orders; plain little-endian C order stays in the mapped
 * file.  Writing: version 1, little-endian, C order; types that NumPy lacks are widened, and that is reported. */
#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct { DType t; char kind; int bytes; } types[] = {
	{ DT_BOOL, 'b', 1 }, { DT_INT8, 'i', 1 }, { DT_INT16, 'i', 2 }, { DT_INT32, 'i', 4 }, { DT_INT64, 'i', 8 },
	{ DT_UINT8, 'u', 1 },
	{ DT_UINT16, 'u', 2 }, { DT_UINT32, 'u', 4 }, { DT_UINT64, 'u', 8 }, { DT_FLOAT16, 'f', 2 },
	{ DT_FLOAT, 'f', 4 }, { DT_DOUBLE, 'f', 8 },
	{ DT_COMPLEX64, 'c', 8 }, { DT_COMPLEX128, 'c', 16 },
};

typedef struct Header {
	DType dtype;
	bool big, fortran;
	int ndim;
	int64_t dim[NDIM_MAX];
} Header;

/* The text after 'key': in the dictionary, blanks skipped; NULL when the key is missing. */
static const char *after(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	if (!p)
		return NULL;
	p += strlen(key);
	p += strspn(p, " '\"");
	return *p == ':' ? p + 1 + strspn(p + 1, " ") : NULL;
}

static const char *parse_type(const char *p, Header *h)
{
	if (!p || (*p != '\'' && *p != '"') || !strchr("<>|=", p[1]) || !p[1])
		return "its element type is not a plain number";
	h->big = p[1] == '>';
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].kind == p[2] && types[i].bytes == atoi(p + 3))
			h->dtype = types[i].t;
	return h->dtype ? NULL : "its element type is not supported";
}

static const char *parse_shape(const char *p, Header *h)
{
	int64_t all = 1;

	if (!p || *p++ != '(')
		return "it has no shape";
	for (;;) {
		char *end;

		p += strspn(p, " ,");
		if (*p == ')')
			return NULL;
		errno = 0;
		long long d = strtoll(p, &end, 10);
		if (end == p || d < 0 || errno || h->ndim == NDIM_MAX || (d && __builtin_mul_overflow(all, d, &all)))
			return "its shape is not sensible";
		h->dim[h->ndim++] = d;
		p = end + (*end == 'L');
	}
}

static const char *parse_header(const char *text, Header *h)
{
	const char *order = after(text, "fortran_order"), *why = parse_type(after(text, "descr"), h);

	if (why)
		return why;
	if (!order || (strncmp(order, "True", 4) && strncmp(order, "False", 5)))
		return "it does not say which order the elements have";
	h->fortran = *order == 'T';
	return parse_shape(after(text, "shape"), h);
}

static void swap_bytes(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t t = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = t;
	}
}

/* Elements into C order and our byte order. */
static void convert(Tensor *t, const uint8_t *in, const Header *h)
{
	size_t width = (size_t)dtype_bits(t->dtype) / 8,
	       part = t->dtype == DT_COMPLEX64 || t->dtype == DT_COMPLEX128 ? width / 2 : width;
	int64_t n = tensor_elements(t), index[NDIM_MAX] = { 0 }, stride[NDIM_MAX], from = 0;
	uint8_t *out = (uint8_t *)t->data;

	for (int k = 0; k < t->ndim; k++)
		stride[k] = k ? stride[k - 1] * t->dim[k - 1] : 1;
	for (int64_t i = 0; i < n; i++, out += width) {
		memcpy(out, in + (size_t)(h->fortran ? from : i) * width, width);
		for (size_t b = 0; h->big && b < width; b += part)
			swap_bytes(out + b, part);
		from = tensor_next(t->ndim, t->dim, stride, index, from);
	}
}

static const char *decode(const SrcFile *f, uint32_t file, Arena *a, Tensor **out)
{
	Header h = { 0 };

	if (f->bytes < 10 || memcmp(f->data, "\x93NUMPY", 6))
		return "it is no .npy file";
	int version = f->data[6];
	size_t wide = version > 1 ? 4 : 2, at = 8 + wide, len = f->data[8] | (size_t)f->data[9] << 8;
	if (version < 1 || version > 3 || f->bytes < at)
		return "its version is not known";
	if (wide == 4)
		len |= (size_t)f->data[10] << 16 | (size_t)f->data[11] << 24;
	if (len > f->bytes - at || len > 1 << 20)
		return "its header is longer than the file";
	char *text = arena_alloc(a, len + 1);
	memcpy(text, f->data + at, len);
	const char *why = parse_header(text, &h);
	if (why)
		return why;
	int64_t n = 1;
	for (int i = 0; i < h.ndim; i++)
		n *= h.dim[i];
	size_t bytes = tensor_bytes(h.dtype, n), have = f->bytes - at - len;
	if (bytes != have)
		return have < bytes ? "it is shorter than its shape" : "it is longer than its shape";
	if (h.big || h.fortran) {
		*out = tensor_new(a, h.dtype, h.ndim, h.dim);
		convert(*out, f->data + at + len, &h);
		return NULL;
	}
	Tensor *t = arena_new(a, Tensor);
	*t = (Tensor){ .dtype = h.dtype, .ndim = h.ndim, .dim = arena_array(a, int64_t, h.ndim + 1),
		.data = f->data + at + len, .bytes = bytes, .file = file, .file_off = at + len };
	memcpy(t->dim, h.dim, sizeof *h.dim * (size_t)h.ndim);
	*out = t;
	return NULL;
}

Tensor *npy_read(const char *path, Arena *a)
{
	ExitCode code;
	uint32_t file = file_open(path, &code);

	return file ? npy_decode(file, a) : NULL;
}

Tensor *npy_decode(uint32_t file, Arena *a)
{
	Tensor *t = NULL;

	file_of(file)->binary = true;
	const char *why = decode(file_of(file), file, a, &t);
	if (why)
		err_at((Loc){ .file = file, .len = 1 }, "cannot read this array: %s", why);
	return t;
}

/* The type that NumPy has for t, as wide as needed. */
static DType wider(DType t)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (types[i].t == t)
			return t;
	return dtype_is_float(t) ? DT_FLOAT : t == DT_INT4 || t == DT_INT2 ? DT_INT8 : DT_UINT8;
}

static bool put_header(FILE *f, const Tensor *t, DType dtype)
{
	char text[64 + 24 * NDIM_MAX];
	size_t i = 0;

	while (types[i].t != dtype)
		i++;
	int n = sprintf(text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
		types[i].bytes == 1 ? '|' : '<', types[i].kind, types[i].bytes);
	for (int k = 0; k < t->ndim; k++)
		n += sprintf(text + n, k + 1 < t->ndim ? "%lld, " : t->ndim == 1 ? "%lld," : "%lld",
			(long long)t->dim[k]);
	n += sprintf(text + n, "), }");
	int pad = (64 - (10 + n + 1) % 64) % 64, len = n + pad + 1;
	return fprintf(f, "\x93NUMPY%c%c%c%c%s%*s\n", 1, 0, len & 255, len >> 8, text, pad, "") == 10 + len;
}

int npy_write(const char *path, const Tensor *t)
{
	DType dtype = wider(t->dtype);
	Arena tmp = { 0 };

	if (t->dtype == DT_STRING || t->dtype == DT_UNDEFINED) {
		err_at((Loc){ 0 }, "cannot write %s: an array of %s has no .npy form here", path, dtype_name(t->dtype));
		return -1;
	}
	const Tensor *out = t;
	if (dtype != t->dtype) {
		Tensor *wide = tensor_new(&tmp, dtype, t->ndim, t->dim);

		for (int64_t i = 0, n = tensor_elements(t); i < n; i++)
			tensor_set(wide, i, tensor_get(t, i));
		warn_at((Loc){ 0 }, "%s: %s is written as %s", path, dtype_name(t->dtype), dtype_name(dtype));
		out = wide;
	}
	FILE *f = fopen(path, "wb");
	bool ok = f && put_header(f, t, dtype) &&
	          (out->bytes == 0 || fwrite(out->data, 1, out->bytes, f) == out->bytes);
	if (f && fclose(f))
		ok = false;
	if (!ok)
		fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write %s: %s", path, strerror(errno));
	arena_free(&tmp);
	return ok ? 0 : -1;
}
