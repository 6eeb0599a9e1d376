/* run_cases [OPTION...] FOLDER...: the ONNX project's own test cases through `sbpcc --eval`.
 *
 * A case is a folder with model.onnx and test_data_set_0/{input,output}_N.pb, found anywhere below a FOLDER, or a
 * "light" model: light_NAME.onnx with light_NAME_output_N.pb beside it, whose inputs are arange(n)/n.
 *
 *   --sbpcc PROGRAM   the compiler (default: $SBPCC)          --refused FILE   may be refused (expected-refused.txt)
 *   --amended FILE    cases judged otherwise (amended.txt)    --match PATTERN  only cases whose name matches
 *   -j N              processes                               -q               print failures and the summary only
 *   --save FOLDER     keep what sbpcc writes, in FOLDER/CASE  --light          only light models (else: none)
 *   --prefix TEXT     put before the names of cases
 *
 * Each case prints `ok CASE`, `ok CASE (refused: OPERATOR)` or `not ok CASE: why`; then the summary in lines with #.
 * A refusal (exit status 1 with a message) is right when the model holds something that the list names. Values are
 * compared as ONNX's own runner does: |got - expected| <= 1e-7 + 1e-3 |expected|, or the tolerances of the case's
 * data.json. Everything is read here by other code than the compiler's: a mistake shared by both would hide
 * itself. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_SECONDS = 300 };

static const char *sbpcc, *save, *match, *prefix = "";
static bool quiet, light;

static _Noreturn void usage(const char *why)
{
	fprintf(stderr, "run_cases: %s\n", why);
	exit(2);
}

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "run_cases: out of memory\n");
		exit(2);
	}
	return p;
}

static char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *fmt, ...)
{
	va_list ap;
	char *s;
	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		need(NULL);
	va_end(ap);
	return s;
}

/* ---- Files and patterns. */
typedef struct Bytes { const uint8_t *p; size_t n; } Bytes;

static bool slurp(const char *path, Bytes *b)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return false;
	fseek(f, 0, SEEK_END);
	long n = ftell(f);
	rewind(f);
	uint8_t *p = need(malloc(n > 0 ? (size_t)n + 1 : 1));
	b->n = fread(p, 1, n > 0 ? (size_t)n : 0, f);
	p[b->n] = 0;
	b->p = p;
	fclose(f);
	return true;
}

typedef struct List { char **s; int n; } List;

static void list_add(List *l, const char *s)
{
	for (int i = 0; i < l->n; i++)
		if (!strcmp(l->s[i], s))
			return;
	l->s = need(realloc(l->s, sizeof *l->s * (size_t)(l->n + 1)));
	l->s[l->n++] = need(strdup(s));
}

static void list_free(List *l)
{
	for (int i = 0; i < l->n; i++)
		free(l->s[i]);
	free(l->s);
	*l = (List){ 0 };
}

static List list_read(const char *path)
{
	List l = { 0 };
	Bytes b;
	if (!slurp(path, &b))
		usage(text("cannot read %s", path));
	for (char *line = strtok((char *)b.p, "\n"); line; line = strtok(NULL, "\n")) {
		line[strcspn(line, "# \t\r")] = 0;
		if (*line)
			list_add(&l, line);
	}
	free((void *)b.p);
	return l;
}

static bool list_matches(const List *l, const char *s)
{
	for (int i = 0; i < l->n; i++)
		if (fnmatch(l->s[i], s, 0) == 0)
			return true;
	return false;
}

static List may_refuse;

/* What amended.txt says of a case: no values are compared; what stands for an expected NaN; another absolute
 * tolerance. */
typedef struct Amended { char *pattern; bool random; double nan, atol; } Amended;
static Amended *amended;
static int namended;

static void amended_read(const char *path)
{
	Bytes b;
	if (!slurp(path, &b))
		usage(text("cannot read %s", path));
	char *rest = (char *)b.p, *line;
	while ((line = strsep(&rest, "\n"))) {
		line[strcspn(line, "#")] = 0;
		char *words = line, *name = strsep(&words, " \t"), *word;
		if (!*name)
			continue;
		Amended a = { need(strdup(name)), false, NAN, -1 };
		while ((word = strsep(&words, " \t"))) {
			if (!strcmp(word, "random"))
				a.random = true;
			else if (!strncmp(word, "nan=", 4))
				a.nan = strtod(word + 4, NULL);
			else if (!strncmp(word, "atol=", 5))
				a.atol = strtod(word + 5, NULL);
			else if (*word)
				usage(text("%s: unknown word %s", path, word));
		}
		amended = need(realloc(amended, sizeof *amended * (size_t)(namended + 1)));
		amended[namended++] = a;
	}
	free((void *)b.p);
}

static Amended amended_for(const char *name)
{
	for (int i = 0; i < namended; i++)
		if (fnmatch(amended[i].pattern, name, 0) == 0)
			return amended[i];
	return (Amended){ .nan = NAN, .atol = -1 };
}

/* ---- The wire format of protobuf: one field at a time. */
typedef struct Field { int number, wire; uint64_t v; Bytes b; } Field;

static bool varint(Bytes *in, uint64_t *v)
{
	*v = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		if (in->n == 0)
			return false;
		uint8_t c = *in->p++;
		in->n--;
		*v |= (uint64_t)(c & 127) << shift;
		if (c < 128)
			return true;
	}
	return false;
}

static bool field(Bytes *in, Field *f)
{
	uint64_t tag, len;
	if (in->n == 0 || !varint(in, &tag))
		return false;
	f->number = (int)(tag >> 3);
	f->wire = (int)(tag & 7);
	f->b = (Bytes){ 0 };
	switch (f->wire) {
	case 0: return varint(in, &f->v);
	case 1: len = 8; break;
	case 5: len = 4; break;
	case 2:
		if (!varint(in, &len))
			return false;
		break;
	default: return false;
	}
	if (len > in->n)
		return false;
	f->b = (Bytes){ in->p, (size_t)len };
	f->v = 0;
	if (f->wire != 2)
		memcpy(&f->v, in->p, (size_t)len);
	in->p += len;
	in->n -= (size_t)len;
	return true;
}

static char *string_of(Bytes b)
{
	return need(strndup((const char *)b.p, b.n));
}

/* ---- Arrays, from TensorProto or .npy, with every element as a double or, for integers, exactly. */
enum { NDIM_MAX = 32 };
typedef struct Array {
	int dtype;                      /* ONNX's number; from .npy: of the type that numpy names */
	int ndim;
	int64_t dim[NDIM_MAX], n;
	double *v;
	int64_t *i;                     /* integers and bool (unsigned 64-bit as its bit pattern); else NULL */
} Array;

static void array_free(Array *a)
{
	free(a->v);
	free(a->i);
}

static const struct { const char *name, *npy; int bits; char kind; } dtypes[] = {
	[1] = { "float", "f4", 32, 'f' }, [2] = { "uint8", "u1", 8, 'u' }, [3] = { "int8", "i1", 8, 'i' },
	[4] = { "uint16", "u2", 16, 'u' }, [5] = { "int16", "i2", 16, 'i' }, [6] = { "int32", "i4", 32, 'i' },
	[7] = { "int64", "i8", 64, 'i' }, [8] = { "string", "?", 0, 's' }, [9] = { "bool", "b1", 8, 'u' },
	[10] = { "float16", "f2", 16, 'f' }, [11] = { "double", "f8", 64, 'f' }, [12] = { "uint32", "u4", 32, 'u' },
	[13] = { "uint64", "u8", 64, 'u' }, [14] = { "complex64", "c8", 64, 'c' },
	[15] = { "complex128", "c16", 128, 'c' },
	[16] = { "bfloat16", "f4", 16, 'f' }, [17] = { "float8e4m3fn", "f4", 8, 'f' },
	[18] = { "float8e4m3fnuz", "f4", 8, 'f' },
	[19] = { "float8e5m2", "f4", 8, 'f' }, [20] = { "float8e5m2fnuz", "f4", 8, 'f' },
	[21] = { "uint4", "u1", 4, 'u' },
	[22] = { "int4", "i1", 4, 'i' }, [23] = { "float4e2m1", "f4", 4, 'f' }, [24] = { "float8e8m0", "f4", 8, 'f' },
	[25] = { "uint2", "u1", 2, 'u' }, [26] = { "int2", "i1", 2, 'i' }, [27] = { "float6e2m3", "f4", 6, 'f' },
	[28] = { "float6e3m2", "f4", 6, 'f' },
};
enum { NDTYPES = sizeof dtypes / sizeof *dtypes };

/* Sign, exponent and fraction of a small float; nan_top: the highest pattern only is NaN and there is no infinity
 * (e4m3fn), fnuz: no infinity, no -0, whose pattern is NaN. */
static double small_float(uint32_t bits, int ebits, int mbits, int bias, bool inf, bool fnuz)
{
	uint32_t m = bits & ((1u << mbits) - 1), e = (bits >> mbits) & ((1u << ebits) - 1),
		s = (bits >> (ebits + mbits)) & 1;
	if (fnuz && s && !e && !m)
		return NAN;
	if (!fnuz && e == (1u << ebits) - 1) {
		if (inf)
			return m ? NAN : s ? -INFINITY : INFINITY;
		if (ebits == 4 && mbits == 3 && m == 7)
			return NAN;
	}
	double v = e ? ldexp(m + (double)(1u << mbits), (int)e - bias - mbits) : ldexp(m, 1 - bias - mbits);
	return s ? -v : v;
}

static double decode(int dtype, uint64_t bits)
{
	float f;
	double d;
	uint32_t b = (uint32_t)bits;
	switch (dtype) {
	case 1: memcpy(&f, &b, 4); return f;
	case 11: memcpy(&d, &bits, 8); return d;
	case 10: return small_float(b, 5, 10, 15, true, false);
	case 16: b <<= 16; memcpy(&f, &b, 4); return f;
	case 17: return small_float(b, 4, 3, 7, false, false);
	case 18: return small_float(b, 4, 3, 8, false, true);
	case 19: return small_float(b, 5, 2, 15, true, false);
	case 20: return small_float(b, 5, 2, 16, false, true);
	case 23: return small_float(b, 2, 1, 1, false, false);
	case 27: return small_float(b, 2, 3, 1, false, false);
	case 28: return small_float(b, 3, 2, 3, false, false);
	case 24: return b == 255 ? NAN : ldexp(1, (int)b - 127);
	}
	return NAN;
}

/* Element k of little-endian, packed bytes, as its bit pattern. */
static uint64_t element(Bytes raw, int bits, int64_t k)
{
	uint64_t v = 0;
	if (bits >= 8)
		memcpy(&v, raw.p + k * (bits / 8), (size_t)bits / 8);
	else
		for (int64_t j = 0, at = k * bits; j < bits; j++, at++)
			v |= (uint64_t)(raw.p[at / 8] >> at % 8 & 1) << j;
	return v;
}

static void put(Array *a, int64_t k, uint64_t bits)
{
	int width = dtypes[a->dtype].bits;
	if (dtypes[a->dtype].kind == 'f') {
		a->v[k] = decode(a->dtype, bits);
		return;
	}
	int64_t i = (int64_t)bits;
	if (width < 64 && dtypes[a->dtype].kind == 'i')
		i = (int64_t)(bits << (64 - width)) >> (64 - width);
	if (a->dtype == 9)
		i = bits != 0;
	a->i[k] = i;
	a->v[k] = dtypes[a->dtype].kind == 'u' ? (double)(uint64_t)i : (double)i;
}

static bool fill(Array *a, Bytes raw, char **why)
{
	int bits = dtypes[a->dtype].bits;
	size_t bytes = ((size_t)a->n * (size_t)bits + 7) / 8;
	if (raw.n != bytes) {
		*why = text("%zu bytes of data, %zu expected", raw.n, bytes);
		return false;
	}
	for (int64_t k = 0; k < a->n; k++)
		put(a, k, element(raw, bits, k));
	return true;
}

static bool array_make(Array *a, char **why)
{
	if (a->dtype <= 0 || a->dtype >= NDTYPES || !strchr("fiu", dtypes[a->dtype].kind)) {
		*why = text("elements of type %d", a->dtype);
		return false;
	}
	a->n = 1;
	for (int i = 0; i < a->ndim; i++)
		if (a->dim[i] < 0 || __builtin_mul_overflow(a->n, a->dim[i], &a->n) || a->n > 1 << 30) {
			*why = text("too many elements");
			return false;
		}
	a->v = need(calloc((size_t)a->n + 1, sizeof *a->v));
	if (dtypes[a->dtype].kind != 'f')
		a->i = need(calloc((size_t)a->n + 1, sizeof *a->i));
	return true;
}

/* TensorProto: dims 1, data_type 2, float_data 4, int32_data 5, int64_data 7, raw_data 9, double_data 10,
 * uint64_data 11. */
static bool array_proto(const char *path, Array *a, char **why, int declared)
{
	Bytes file, in, raw = { 0 };
	Field f;
	bool have_raw = false, good = false;
	*a = (Array){ 0 };
	if (!slurp(path, &file)) {
		*why = text("cannot read %s", path);
		return false;
	}
	in = file;
	while (field(&in, &f)) {
		if (f.number == 2)
			a->dtype = (int)f.v;
		if (f.number == 9)
			raw = f.b, have_raw = true;
		if (f.number == 1 && f.wire == 0 && a->ndim < NDIM_MAX)
			a->dim[a->ndim++] = (int64_t)f.v;
		if (f.number == 1 && f.wire == 2)
			for (Bytes p = f.b; p.n && a->ndim < NDIM_MAX;)
				if (!varint(&p, (uint64_t *)&a->dim[a->ndim++]))
					break;
	}
	if (a->dtype == 4 && declared == 16)    /* older cases give the bits of bfloat16 as uint16 */
		a->dtype = declared;
	if (!array_make(a, why))
		goto out;
	if (have_raw) {
		good = fill(a, raw, why);
		goto out;
	}
	int64_t k = 0;
	/* elements in an int32_data entry */
	int bits = dtypes[a->dtype].bits, per = bits < 8 && bits != 6 ? 8 / bits : 1;
	in = file;
	while (field(&in, &f)) {
		bool fixed = f.number == 4 || f.number == 10;
		if (!fixed && f.number != 5 && f.number != 7 && f.number != 11)
			continue;
		Bytes p = f.b;
		size_t width = f.number == 4 ? 4 : 8;
		for (bool once = f.wire != 2; once || p.n; once = false) {
			uint64_t v = f.v;
			if (f.wire == 2 && fixed) {
				if (p.n < width)
					break;
				v = element(p, (int)width * 8, 0);
				p.p += width, p.n -= width;
			} else if (f.wire == 2 && !varint(&p, &v)) {
				break;
			}
			if (bits < 64)
				v &= (1ull << (bits * per)) - 1;
			for (int j = 0; j < per && k < a->n; j++)
				put(a, k++, bits < 8 ? (v >> (j * bits)) & ((1u << bits) - 1) : v);
		}
	}
	good = k == a->n;
	if (!good)
		*why = text("%lld of %lld elements", (long long)k, (long long)a->n);
out:
	free((void *)file.p);
	return good;
}

/* .npy: magic, version, length of the header, a Python dictionary, the elements. */
static bool array_npy(const char *path, Array *a, char **why)
{
	Bytes b;
	*a = (Array){ 0 };
	if (!slurp(path, &b)) {
		*why = text("was not written");
		return false;
	}
	bool good = false;
	size_t head = 0;
	if (b.n >= 10 && !memcmp(b.p, "\x93NUMPY", 6))
		head = b.p[6] == 1 ? 10u + b.p[8] + b.p[9] * 256u : b.n < 12 ? 0 : 12u + b.p[8] + b.p[9] * 256u +
			b.p[10] * 65536u;
	*why = text("is not a .npy file");
	if (head == 0 || head > b.n)
		goto out;
	char *h = string_of((Bytes){ b.p + 10, head - 10 });
	char *descr = strstr(h, "'descr'"), *shape = strstr(h, "'shape'"), *fortran = strstr(h, "'fortran_order'");
	if (descr && shape && fortran && (descr = strchr(descr + 7, '\'')) && (shape = strchr(shape, '(')) &&
		!strncmp(fortran + strcspn(fortran, ":"), ": False", 7)) {
		descr++;
		descr += strspn(descr, "<|=");
		size_t len = strcspn(descr, "'");
		for (int d = 1; d < NDTYPES && !a->dtype; d++)
			if (strlen(dtypes[d].npy) == len && !strncmp(dtypes[d].npy, descr, len))
				a->dtype = d;
		for (char *s = shape + 1; *s && *s != ')' && a->ndim < NDIM_MAX;) {
			char *end;
			long long n = strtoll(s, &end, 10);
			if (end == s)
				break;
			a->dim[a->ndim++] = n;
			s = end + strspn(end, ", ");
		}
		free(*why);
		*why = NULL;
		good = array_make(a, why) && fill(a, (Bytes){ b.p + head, b.n - head }, why);
	}
	free(h);
out:
	free((void *)b.p);
	return good;
}

static bool npy_arange(const char *path, int ndim, const int64_t *dim)
{
	char shape[400] = "", head[600];
	int64_t n = 1;
	for (int i = 0; i < ndim; i++) {
		n *= dim[i];
		snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld, ", (long long)dim[i]);
	}
	FILE *f = fopen(path, "wb");
	if (!f)
		return false;
	int len = snprintf(head, sizeof head, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape);
	int total = (10 + len + 1 + 63) / 64 * 64 - 10;
	fwrite("\x93NUMPY\1", 1, 7, f);
	putc(0, f), putc(total & 255, f), putc(total >> 8, f);
	fprintf(f, "%s%*s\n", head, total - len - 1, "");
	for (int64_t k = 0; k < n; k++) {
		float v = (float)((double)k / (double)n);
		fwrite(&v, 4, 1, f);
	}
	return fclose(f) == 0;
}

/* As numpy's assert_allclose: |got - want| <= atol + rtol |want|, NaN equals NaN; integers must be equal.  What is
 * expected was rounded to float on the way: where elements cancel, its noise grows with the largest of them. */
static char *compare(const Array *want, const Array *got, double rtol, double atol, Amended how)
{
	if (strcmp(dtypes[want->dtype].npy, dtypes[got->dtype].npy))
		return text("type is %s, expected %s", dtypes[got->dtype].name, dtypes[want->dtype].name);
	bool same = want->ndim == got->ndim;
	for (int i = 0; same && i < want->ndim; i++)
		same = want->dim[i] == got->dim[i];
	if (!same) {
		char w[300] = "", g[300] = "";
		for (int i = 0; i < want->ndim; i++)
			snprintf(w + strlen(w), sizeof w - strlen(w), "%s%lld", i ? "," : "", (long long)want->dim[i]);
		for (int i = 0; i < got->ndim; i++)
			snprintf(g + strlen(g), sizeof g - strlen(g), "%s%lld", i ? "," : "", (long long)got->dim[i]);
		return text("shape is [%s], expected [%s]", g, w);
	}
	if (want->dtype == 16)
		rtol = fmax(rtol, 1 / 64.0);    /* as ONNX's own runner: two units in the last place */
	if (how.atol >= 0)
		atol = how.atol;
	int64_t bad = 0, first = -1;
	for (int64_t k = 0; !how.random && k < want->n; k++) {
		if (isnan(want->v[k]))
			want->v[k] = how.nan;
		double w = want->v[k], g = got->v[k];
		bool ok = want->i && got->i ? want->i[k] == got->i[k]
			: isnan(w) || isnan(g) ? isnan(w) && isnan(g)
			: isinf(w) || isinf(g) ? w == g : fabs(g - w) <= atol + rtol * fabs(w);
		if (!ok && bad++ == 0)
			first = k;
	}
	if (bad)
		return text("element %lld is %.9g, expected %.9g (%lld of %lld differ)", (long long)first,
			got->v[first],
			want->v[first], (long long)bad, (long long)want->n);
	return NULL;
}

/* ---- What a model holds: operators, and kinds of its inputs and outputs. */
typedef struct Holds {
	List ops, kinds;
	List init;                      /* names of initialisers */
	int nin;                        /* inputs that are not initialisers */
	struct { int ndim; int64_t dim[NDIM_MAX]; } in[16];
	int nout, out[64];              /* declared element types of the outputs */
} Holds;

static void holds_nodes(Holds *h, Bytes in, int number);

static void holds_node(Holds *h, Bytes in)
{
	Field f, g;
	char *op = NULL, *domain = NULL;
	while (field(&in, &f)) {
		if (f.number == 4)
			free(op), op = string_of(f.b);
		if (f.number == 7)
			free(domain), domain = string_of(f.b);
		if (f.number == 5)
			for (Bytes a = f.b; field(&a, &g);)
				if (g.number == 6 || g.number == 11)
					holds_nodes(h, g.b, 1);
	}
	bool plain = !domain || !*domain || !strcmp(domain, "ai.onnx");
	char *full = text("%s%s%s", plain ? "" : domain, plain ? "" : ".", op ? op : "");
	list_add(&h->ops, full);
	free(full);
	free(op);
	free(domain);
}

static void holds_nodes(Holds *h, Bytes in, int number)
{
	Field f;
	while (field(&in, &f))
		if (f.number == number && f.wire == 2)
			holds_node(h, f.b);
}

/* TypeProto: tensor_type 1 {elem_type 1, shape 2}, sequence_type 4, map_type 5, optional_type 9. */
static void holds_value(Holds *h, Bytes in, bool input)
{
	Field f, t, s, d, v;
	char *name = NULL;
	int ndim = 0, dtype = 0;
	int64_t dim[NDIM_MAX];
	while (field(&in, &f)) {
		if (f.number == 1)
			free(name), name = string_of(f.b);
		if (f.number != 2)
			continue;
		for (Bytes ty = f.b; field(&ty, &t);) {
			if (t.number == 4 || t.number == 5 || t.number == 9)
				list_add(&h->kinds, t.number == 4 ? "type:sequence" : t.number == 5 ? "type:map"
					: "type:optional");
			if (t.number != 1)
				continue;
			for (Bytes te = t.b; field(&te, &s);) {
				if (s.number == 1)
					dtype = (int)s.v;
				if (s.number == 1 && s.v == 8)
					list_add(&h->kinds, "type:string");
				if (s.number != 2)
					continue;
				for (Bytes sh = s.b; field(&sh, &d);) {
					int64_t n = 1;
					for (Bytes di = d.b; field(&di, &v);)
						if (v.number == 1)
							n = (int64_t)v.v;
					if (ndim < NDIM_MAX)
						dim[ndim++] = n;
				}
			}
		}
	}
	bool given = false;
	for (int i = 0; name && i < h->init.n; i++)
		given |= !strcmp(h->init.s[i], name);
	if (input && !given && h->nin < 16) {
		h->in[h->nin].ndim = ndim;
		memcpy(h->in[h->nin++].dim, dim, sizeof *dim * (size_t)ndim);
	}
	if (!input && h->nout < 64)
		h->out[h->nout++] = dtype;
	free(name);
}

static bool holds_model(Holds *h, const char *path)
{
	Bytes file, in;
	Field f, g, n;
	*h = (Holds){ 0 };
	if (!slurp(path, &file))
		return false;
	for (in = file; field(&in, &f);) {
		if (f.number == 25)
			holds_nodes(h, f.b, 7);
		if (f.number != 7)
			continue;
		holds_nodes(h, f.b, 1);
		for (Bytes gr = f.b; field(&gr, &g);)
			if (g.number == 5)
				for (Bytes t = g.b; field(&t, &n);)
					if (n.number == 8) {
						char *name = string_of(n.b);
						list_add(&h->init, name);
						free(name);
					}
		for (Bytes gr = f.b; field(&gr, &g);)
			if (g.number == 11 || g.number == 12)
				holds_value(h, g.b, g.number == 11);
	}
	free((void *)file.p);
	return true;
}

/* The first thing in the model that may be refused, or NULL. */
static const char *refusable(const Holds *h)
{
	for (int i = 0; i < h->ops.n; i++)
		if (list_matches(&may_refuse, h->ops.s[i]))
			return h->ops.s[i];
	for (int i = 0; i < h->kinds.n; i++)
		if (list_matches(&may_refuse, h->kinds.s[i]))
			return h->kinds.s[i];
	return NULL;
}

/* ---- One case. */
typedef struct Case { char *dir, *name, *model; bool light; } Case;
typedef enum { UNTRIED, PASSED, REFUSED, WRONG } Verdict;
typedef struct Result { Verdict verdict; char why[400], ops[100]; } Result;

static void clear(const char *dir)
{
	DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.') {
			char *p = text("%s/%s", dir, e->d_name);
			unlink(p);
			free(p);
		}
	if (d)
		closedir(d);
}

/* Runs the compiler; returns its wait status, and the interesting line of its stderr. */
static int run(const Case *c, const char *indir, const char *outdir, const char *errfile, char line[static 300])
{
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(errfile, O_WRONLY | O_CREAT | O_TRUNC, 0600), null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		dup2(fd, 2);
		struct rlimit cpu = { CPU_SECONDS, CPU_SECONDS + 1 };
		setrlimit(RLIMIT_CPU, &cpu);
		execlp(sbpcc, sbpcc, "--eval", c->model, "--inputs", indir, "--outputs", outdir, (char *)NULL);
		dprintf(2, "cannot run %s: %s\n", sbpcc, strerror(errno));
		_exit(127);
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	Bytes b;
	line[0] = 0;
	if (!slurp(errfile, &b))
		return status;
	const char *at = strstr((const char *)b.p, "ERROR: ");
	if (!at)
		at = strstr((const char *)b.p, "runtime error: ");
	if (!at)
		at = strstr((const char *)b.p, "error: ");
	if (!at)
		at = (const char *)b.p;
	snprintf(line, 300, "%.*s", (int)strcspn(at, "\n"), at);
	for (char *s = line; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			*s = '?';
	free((void *)b.p);
	return status;
}

static double json_number(const char *path, const char *key, double otherwise)
{
	Bytes b;
	if (!slurp(path, &b))
		return otherwise;
	const char *at = strstr((const char *)b.p, key);
	if (at && (at = strchr(at, ':')))
		otherwise = strtod(at + 1, NULL);
	free((void *)b.p);
	return otherwise;
}

static void try_case(const Case *c, Result *r, const char *tmp)
{
	Holds h;
	char line[300], *in = NULL, *out = text("%s/out", tmp), *err = text("%s/stderr", tmp), *why = NULL;
	double rtol = 1e-3, atol = 1e-7;
	r->verdict = WRONG;
	if (!holds_model(&h, c->model)) {
		snprintf(r->why, sizeof r->why, "cannot read the model");
		return;
	}
	for (int i = 0; i < h.ops.n && i < 3; i++)
		snprintf(r->ops + strlen(r->ops), sizeof r->ops - strlen(r->ops), "%s%s", i ? "+" : "", h.ops.s[i]);
	if (save)
		free(out), out = text("%s/%s", save, strrchr(c->name, '/') + 1);
	mkdir(out, 0700);
	clear(out);
	if (c->light) {
		in = text("%s/in", tmp);
		mkdir(in, 0700);
		clear(in);
		for (int i = 0; i < h.nin; i++) {
			char *p = text("%s/input_%d.npy", in, i);
			npy_arange(p, h.in[i].ndim, h.in[i].dim);
			free(p);
		}
		char *json = text("%s/../real/test_%s/data.json", c->dir, strstr(c->name, "light_") + 6);
		rtol = json_number(json, "\"rtol\"", rtol);
		atol = json_number(json, "\"atol\"", atol);
		free(json);
	} else {
		in = text("%s/test_data_set_0", c->dir);
		for (int i = 0; i < h.nin; i++) {       /* data that contradict their own model */
			char *p = text("%s/input_%d.pb", in, i);
			Array a;
			if (access(p, R_OK) == 0 && array_proto(p, &a, &why, 0)) {
				if (a.ndim != h.in[i].ndim)
					list_add(&h.kinds, "input:rank");
				array_free(&a);
			}
			free(why), why = NULL;
			free(p);
		}
		char *json = text("%s/data.json", c->dir);
		rtol = json_number(json, "\"rtol\"", rtol);
		atol = json_number(json, "\"atol\"", atol);
		free(json);
	}
	int status = run(c, in, out, err, line);
	const char *because = refusable(&h);
	if (WIFSIGNALED(status)) {
		snprintf(r->why, sizeof r->why, "ended by signal %d: %s", WTERMSIG(status), line);
	} else if (WEXITSTATUS(status) == 1 && !strncmp(line, "error: ", 7) && because) {
		r->verdict = REFUSED;
		snprintf(r->why, sizeof r->why, "%s", because);
	} else if (WEXITSTATUS(status) == 1 && !strncmp(line, "error: ", 7)) {
		snprintf(r->why, sizeof r->why, "refused: %s", line + 7);
	} else if (WEXITSTATUS(status) != 0) {
		snprintf(r->why, sizeof r->why, "exit status %d: %s", WEXITSTATUS(status), line);
	} else {
		Amended how = amended_for(strrchr(c->name, '/') + 1);
		int n = 0;
		for (;; n++) {
			Array want, got;
			char *pb = c->light ? text("%.*s_output_%d.pb", (int)strlen(c->model) - 5, c->model, n)
				: text("%s/test_data_set_0/output_%d.pb", c->dir, n);
			char *npy = text("%s/output_%d.npy", out, n);
			if (access(pb, R_OK) != 0)
				break;
			if (!array_proto(pb, &want, &why, n < h.nout ? h.out[n] : 0))
				snprintf(r->why, sizeof r->why, "expected output %d: %s", n, why);
			else if (!array_npy(npy, &got, &why))
				snprintf(r->why, sizeof r->why, "output %d: %s", n, why);
			else if ((why = compare(&want, &got, rtol, atol, how)))
				snprintf(r->why, sizeof r->why, "output %d: %s", n, why);
			if (r->why[0])
				break;
			array_free(&want);
			array_free(&got);
			free(pb);
			free(npy);
		}
		if (!r->why[0] && n == 0)
			snprintf(r->why, sizeof r->why, "has no expected output");
		if (!r->why[0])
			r->verdict = PASSED;
	}
	list_free(&h.ops);
	list_free(&h.kinds);
	list_free(&h.init);
	free(in);
	free(out);
	free(err);
}

/* ---- Finding and running all. */
static Case *cases;
static int ncases;

static void add_case(const char *dir, const char *base, const char *model, bool is_light)
{
	/* The name: the last two parts, node/test_abs. */
	char *shown = text("%s%s%s", dir, base ? "/" : "", base ? base : "");
	char *cut = strrchr(shown, '/');
	while (cut && cut > shown && cut[-1] != '/')
		cut--;
	cases = need(realloc(cases, sizeof *cases * (size_t)(ncases + 1)));
	cases[ncases++] = (Case){ need(strdup(dir)), need(strdup(cut ? cut : shown)), need(strdup(model)), is_light };
	free(shown);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find(const char *dir)
{
	char *model = text("%s/model.onnx", dir);
	if (access(model, R_OK) == 0) {
		if (!light)
			add_case(dir, NULL, model, false);
		free(model);
		return;
	}
	free(model);
	List names = { 0 };
	DIR *d = opendir(dir);
	if (!d)
		usage(text("cannot open the folder %s", dir));
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			list_add(&names, e->d_name);
	closedir(d);
	qsort(names.s, (size_t)names.n, sizeof *names.s, by_name);
	for (int i = 0; i < names.n; i++) {
		char *p = text("%s/%s", dir, names.s[i]);
		size_t len = strlen(names.s[i]);
		struct stat st;
		if (stat(p, &st) == 0 && S_ISDIR(st.st_mode))
			find(p);
		else if (light && !strncmp(names.s[i], "light_", 6) && len > 11 &&
			!strcmp(names.s[i] + len - 5, ".onnx")) {
			names.s[i][len - 5] = 0;
			add_case(dir, names.s[i], p, true);
		}
		free(p);
	}
	list_free(&names);
}

typedef struct Tally { const char *what; int n; } Tally;

static int by_count(const void *a, const void *b)
{
	const Tally *x = a, *y = b;
	return x->n != y->n ? y->n - x->n : strcmp(x->what, y->what);
}

static void print_tally(const char *title, const Result *r, Verdict verdict, bool by_ops)
{
	Tally *t = need(calloc((size_t)ncases + 1, sizeof *t));
	int nt = 0, total = 0;
	for (int i = 0; i < ncases; i++) {
		if (r[i].verdict != verdict)
			continue;
		const char *what = by_ops ? r[i].ops : r[i].why;
		int k = 0;
		while (k < nt && strcmp(t[k].what, what))
			k++;
		t[k].what = what;
		t[k].n++;
		nt += k == nt;
		total++;
	}
	qsort(t, (size_t)nt, sizeof *t, by_count);
	if (total)
		printf("# %d %s:", total, title);
	for (int k = 0; k < nt; k++)
		printf(" %s %d%s", t[k].what, t[k].n, k + 1 < nt ? "," : "\n");
	free(t);
}

int main(int argc, char **argv)
{
	int jobs = 2;
	static List folders;
	sbpcc = getenv("SBPCC");
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if (!strcmp(a, "-q"))
			quiet = true;
		else if (!strcmp(a, "--light"))
			light = true;
		else if (a[0] != '-')
			list_add(&folders, a);
		else if (i + 1 == argc)
			usage(text("%s: unknown, or its value is missing", a));
		else if (!strcmp(a, "-j"))
			jobs = atoi(argv[++i]);
		else if (!strcmp(a, "--sbpcc"))
			sbpcc = argv[++i];
		else if (!strcmp(a, "--refused"))
			may_refuse = list_read(argv[++i]);
		else if (!strcmp(a, "--amended"))
			amended_read(argv[++i]);
		else if (!strcmp(a, "--match"))
			match = argv[++i];
		else if (!strcmp(a, "--prefix"))
			prefix = argv[++i];
		else if (!strcmp(a, "--save"))
			save = argv[++i];
		else
			usage(text("unknown option %s", a));
	}
	if (!sbpcc || folders.n == 0)
		usage("needs SBPCC and a folder");
	if (save)
		mkdir(save, 0777);
	for (int i = 0; i < folders.n; i++)
		find(folders.s[i]);
	if (match) {
		int n = 0;
		for (int i = 0; i < ncases; i++)
			if (fnmatch(match, strrchr(cases[i].name, '/') + 1, 0) == 0 ||
				fnmatch(match, cases[i].name, 0) == 0)
				cases[n++] = cases[i];
		ncases = n;
	}
	if (ncases == 0)
		usage("found no case");

	/* Worker processes take the next case from a shared counter and leave results in shared memory. A worker that
	 * itself dies leaves its case untried, which is reported. */
	char *shared = mmap(NULL, sizeof(int) * 4 + sizeof(Result) * (size_t)ncases, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		usage("out of memory");
	int *next = (int *)shared;
	Result *r = (Result *)(shared + sizeof(int) * 4);
	for (int j = 0; j < jobs; j++) {
		pid_t pid = fork();
		if (pid != 0)
			continue;
		const char *base = getenv("TMPDIR");
		char *tmp = text("%s/onnx-cases-XXXXXX", base ? base : "/tmp");
		if (!mkdtemp(tmp))
			_exit(2);
		for (int i; (i = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED)) < ncases;)
			try_case(&cases[i], &r[i], tmp);
		char *out = text("%s/out", tmp), *in = text("%s/in", tmp);
		clear(out), clear(in), clear(tmp);
		rmdir(out), rmdir(in), rmdir(tmp);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;

	int passed = 0, refused = 0, wrong = 0;
	for (int i = 0; i < ncases; i++) {
		passed += r[i].verdict == PASSED;
		refused += r[i].verdict == REFUSED;
		if (r[i].verdict == UNTRIED) {
			r[i].verdict = WRONG;
			snprintf(r[i].why, sizeof r[i].why, "the comparison itself failed");
		}
		if (r[i].verdict == WRONG) {
			wrong++;
			printf("not ok %s%s: %s\n", prefix, cases[i].name, r[i].why);
		} else if (!quiet) {
			printf(r[i].verdict == REFUSED ? "ok %s%s (refused: %s)\n" : "ok %s%s\n", prefix, cases[i].name,
				r[i].why);
		}
	}
	printf("# %s%d cases: %d passed, %d refused, %d wrong\n", prefix, ncases, passed, refused, wrong);
	print_tally("refused", r, REFUSED, false);
	print_tally("wrong", r, WRONG, true);
	return wrong > 0;
}
