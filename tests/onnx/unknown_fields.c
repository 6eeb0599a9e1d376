/* A file that has a field nobody knows in every kind of message keeps each of them in its message: written as .onnx
 * again, and printed as text, read and written. */
#include "ir.h"

#include <stdlib.h>
#include <string.h>

enum { MARK = 3000, MAX = 1000 };

typedef struct Found { char way[200]; int mark; } Found;

static Arena arena;
static WireOut o = { .arena = &arena };
static int nmark;
static bool again, merged[MAX];         /* said of a value a second time: belongs where it was said first */
static bool sparse;                     /* the text has dense tensors only */

/* Every message that is closed here gets its own mark. */
static size_t open(uint32_t num)
{
	return wire_out_open(&o, num);
}

static void mark(void)
{
	char text[24];

	merged[nmark] = again;
	snprintf(text, sizeof text, "MARK%04d", nmark++);
	wire_out_data(&o, MARK, text, strlen(text));
}

static void done(size_t at)
{
	mark();
	wire_out_close(&o, at);
}

static void word(uint32_t num, const char *s)
{
	wire_out_data(&o, num, s, strlen(s));
}

static void entry(uint32_t num, const char *key, const char *value)
{
	size_t at = open(num);

	word(1, key);
	word(2, value);
	done(at);
}

static void tensor_case(uint32_t num, int64_t dim)
{
	size_t at = open(num), shape, d;

	wire_out_int(&o, 1, DT_FLOAT);
	shape = open(2);
	d = open(1);
	wire_out_int(&o, 1, dim);
	word(3, "AXIS");
	done(d);
	d = open(1);
	word(2, "N");
	done(d);
	done(shape);
	done(at);
}

static void type(uint32_t num, TypeKind kind)
{
	size_t at = open(num), in;

	switch (kind) {
	case TY_TENSOR: tensor_case(1, 2); break;
	case TY_SPARSE: tensor_case(8, 2); break;
	case TY_SEQ:
	case TY_OPTIONAL:
		in = open(kind == TY_SEQ ? 4 : 9);
		type(1, TY_TENSOR);
		done(in);
		break;
	case TY_MAP:
		in = open(5);
		wire_out_int(&o, 1, DT_INT64);
		type(2, TY_SEQ);
		done(in);
		break;
	case TY_OPAQUE:
		in = open(7);
		word(1, "some.domain");
		word(2, "thing");
		done(in);
		break;
	}
	word(6, "MEANING");
	done(at);
}

static void value(uint32_t num, const char *name, TypeKind kind)
{
	size_t at = open(num);

	word(1, name);
	type(2, kind);
	word(3, "about it");
	entry(4, "key", "value");
	done(at);
}

static void tensor(uint32_t num, const char *name, bool external)
{
	size_t at = open(num);

	wire_out_int(&o, 1, 2);
	wire_out_int(&o, 1, 1);
	wire_out_int(&o, 2, DT_FLOAT);
	word(8, name);
	if (!external)
		wire_out_data(&o, 9, "\1\0\200\177\0\0\200\77", 8);      /* a signalling NaN and 1 */
	word(12, "tensor doc");
	if (external) {
		entry(13, "location", "w.bin");
		entry(13, "length", "8");
		wire_out_int(&o, 14, 1);
	}
	entry(16, "tensor", "meta");
	done(at);
}

static void sparse_tensor(uint32_t num, const char *name)
{
	size_t at = open(num), in = open(1);

	wire_out_int(&o, 1, 1);
	wire_out_int(&o, 2, DT_FLOAT);
	word(8, name);
	wire_out_data(&o, 9, "\0\0\200\77", 4);
	word(12, "sparse doc");
	entry(16, "tensor", "meta");
	done(in);
	in = open(2);
	wire_out_int(&o, 1, 1);
	wire_out_int(&o, 2, DT_INT64);
	wire_out_data(&o, 9, "\1\0\0\0\0\0\0\0", 8);
	entry(16, "indices", "meta");
	done(in);
	wire_out_int(&o, 3, 4);
	done(at);
}

static void graph(uint32_t num, int depth);

static void attribute(uint32_t num, AttrType t, int depth)
{
	size_t at = open(num);
	char name[16];

	snprintf(name, sizeof name, "a%d", (int)t);
	word(1, name);
	switch (t) {
	/* field 2, a negative signalling NaN */
	case AT_FLOAT:  wire_out_bytes(&o, "\25\1\0\200\377", 5); break;
	case AT_TENSOR: tensor(5, "t", false); break;
	case AT_GRAPH:  graph(6, depth + 1); break;
	case AT_TYPE:   type(14, TY_MAP); break;
	case AT_SPARSE: sparse_tensor(22, "s"); break;
	default:        wire_out_int(&o, 3, INT64_MIN); break;
	}
	word(13, "attribute doc");
	wire_out_int(&o, 20, t);
	done(at);
}

static void devices(uint32_t num)
{
	size_t at = open(num), spec, dim, simple;

	word(1, "theirs");
	spec = open(2);
	word(1, "y");
	wire_out_int(&o, 2, 0);
	wire_out_int(&o, 2, 1);
	dim = open(4);
	wire_out_int(&o, 1, 0);
	simple = open(2);
	wire_out_int(&o, 3, 2);
	done(simple);
	done(dim);
	done(spec);
	done(at);
}

static void node(uint32_t num, const char *op, const char *in, const char *out, int depth)
{
	size_t at = open(num);

	word(1, in);
	word(2, out);
	word(4, op);
	for (int t = AT_FLOAT; t <= AT_TYPE && depth < 2; t++)
		if (t == AT_FLOAT || t == AT_INT || t == AT_TENSOR || t == AT_GRAPH || t == AT_TYPE ||
			(t == AT_SPARSE && sparse))
			attribute(5, (AttrType)t, depth);
	word(6, "node doc");
	if (depth)
		word(7, "their.ops");
	entry(9, "key", "value");
	if (!depth)
		devices(10);
	done(at);
}

static void quantization(uint32_t num)
{
	size_t at = open(num);

	word(1, "y");
	entry(2, "SCALE_TENSOR", "w");
	done(at);
}

static void graph(uint32_t num, int depth)
{
	size_t at = open(num), hollow, in, shape;
	char name[16];

	snprintf(name, sizeof name, "g%d", depth);
	node(1, "Custom", "x", "y", depth);
	word(2, name);
	if (!depth) {
		tensor(5, "w", false);
		tensor(5, "both", false);
		tensor(5, "far", true);
		if (sparse)
			sparse_tensor(15, "thin");
	}
	word(10, "graph doc");
	if (!depth) {
		value(11, "x", TY_TENSOR);
		value(11, "both", TY_TENSOR);
		value(11, "m", TY_MAP);
		value(11, "s", TY_SPARSE);
		value(11, "q", TY_SEQ);
		value(11, "p", TY_OPTIONAL);
		value(11, "u", TY_OPAQUE);
	}
	value(12, "y", TY_TENSOR);
	if (!depth) {
		again = true;
		value(13, "w", TY_TENSOR);
		value(13, "y", TY_TENSOR);
		again = false;
		node(1, "Custom", "y", "z", 2);
		hollow = open(13);
		word(1, "z");
		in = open(2);                           /* a tensor, of what is not said */
		shape = open(1);
		done(open(2));
		done(shape);
		done(in);
		done(hollow);
		quantization(14);
	}
	entry(16, "graph", "meta");
	done(at);
}

static void opset(uint32_t num, const char *domain, int64_t version)
{
	size_t at = open(num);

	word(1, domain);
	wire_out_int(&o, 2, version);
	done(at);
}

static void function(uint32_t num)
{
	size_t at = open(num);

	word(1, "f");
	word(4, "x");
	word(5, "y");
	node(7, "Custom", "x", "y", 2);
	word(8, "function doc");
	opset(9, "their.ops", 2);
	word(10, "local");
	attribute(11, AT_TENSOR, 2);
	attribute(11, AT_FLOAT, 2);
	value(12, "x", TY_TENSOR);
	entry(14, "function", "meta");
	done(at);
}

static void model(void)
{
	size_t at;

	wire_out_int(&o, 1, 13);
	graph(7, 0);
	opset(8, "", 21);
	opset(8, "their.ops", 1);
	entry(14, "key", "value");
	at = open(20);                          /* training_info */
	graph(2, 2);
	done(at);
	function(25);
	at = open(26);
	word(1, "theirs");
	wire_out_int(&o, 2, 2);
	done(at);
	mark();
}

/* Every mark with the way to its message: field numbers from the model on. */
static int find(const uint8_t *p, size_t n, const char *way, Found *list, int count)
{
	static const WireSpec nothing = { "", "" };
	WireIn w = { .base = p, .arena = &arena };
	Blobs all = { 0 };
	WireField f = { .p = p, .n = n };
	char deeper[200];

	for (WireMsg m = wire_msg(&w, &nothing, &f, &all); wire_next(&m, &f);)
		;
	for (int i = 0; i < all.n; i++) {
		if (!wire_field(&w, &all.blob[i], &f) || f.wire != WIRE_BYTES || !memmem(f.p, f.n, "MARK", 4))
			continue;
		if (f.num == MARK) {
			snprintf(list[count].way, sizeof list->way, "%s", way);
			sscanf((const char *)f.p, "MARK%4d", &list[count++].mark);
			continue;
		}
		snprintf(deeper, sizeof deeper, "%s.%u", way, f.num);
		count = find(f.p, f.n, deeper, list, count);
	}
	return count;
}

static int by_mark(const void *a, const void *b)
{
	return ((const Found *)a)->mark - ((const Found *)b)->mark;
}

static void compare(const char *what, const uint8_t *p, size_t n)
{
	static Found before[MAX], after[MAX];
	int na = find(o.p, o.n, "", before, 0), nb = find(p, n, "", after, 0), bad = 0;

	qsort(before, (size_t)na, sizeof *before, by_mark);
	qsort(after, (size_t)nb, sizeof *after, by_mark);
	if (na != nmark)
		printf("not ok %s: %d marks were made, %d are found\n", what, nmark, na);
	for (int i = 0, k = 0; i < na; i++) {
		while (k < nb && after[k].mark < before[i].mark)
			k++;
		if (k == nb || after[k].mark != before[i].mark || (k + 1 < nb && after[k + 1].mark == after[k].mark))
			printf("# mark %d of message %s is %s\n", before[i].mark, before[i].way, k < nb &&
				after[k].mark == before[i].mark ? "there twice" : "lost"), bad++;
		else if (!merged[before[i].mark] && strcmp(after[k].way, before[i].way))
			printf("# mark %d of message %s is in %s\n", before[i].mark, before[i].way, after[k].way),
				bad++;
	}
	if (bad)
		printf("not ok %s: %d of %d unknown fields are not where they were\n", what, bad, na);
	else
		printf("ok %s\n", what);
}

static char *written(const Model *m, size_t *n)
{
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, n);

	onnx_write(f, m);
	fclose(f);
	return bytes;
}

static void make(bool with_sparse)
{
	o.n = 0;
	nmark = 0;
	sparse = with_sparse;
	model();
}

int main(void)
{
	language_init();
	char *bytes, *second, *text = NULL;
	size_t n, m, len;
	Model *model;

	diag_out = NULL;
	make(true);
	model = onnx_read(file_memory("marks.onnx", o.p, o.n));
	if (!model)
		return puts("not ok reading: refused"), 1;
	bytes = written(model, &n);
	compare("written", (uint8_t *)bytes, n);
	free(bytes);
	model_free(model);

	make(false);
	model = onnx_read(file_memory("marks.onnx", o.p, o.n));
	bytes = written(model, &n);
	FILE *f = open_memstream(&text, &len);
	print_model(f, model);
	fclose(f);
	model_free(model);
	diag_out = stderr;
	model = parse_text(file_memory("marks.ir", text, len));
	if (!model)
		return printf("not ok text: refused\n%s", text), 1;
	second = written(model, &m);
	compare("printed, read and written", (uint8_t *)second, m);
	puts(n == m &&
		!memcmp(bytes, second, n) ? "ok text gives the same bytes"
		: "not ok text gives the same bytes: it does not");
	free(bytes);
	free(second);
	free(text);
	free(o.p);
	model_free(model);
	arena_free(&arena);
	return 0;
}
