#include "gpt_onnx.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 32, HEADS = 4, VOCAB = 64, CONTEXT = 64, OPSET = 17, IR = 8 };
enum { FLOAT = 1, INT64 = 7 };

/* ---- Protobuf, from the inside out: a message is a buffer that is put into another one as a field. */
typedef struct Buf { uint8_t *p; size_t n, cap; } Buf;

static void put(Buf *b, const void *p, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = 2 * (b->n + n) + 64;
		b->p = realloc(b->p, b->cap);
		if (!b->p)
			abort();
	}
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void varint(Buf *b, uint64_t v)
{
	uint8_t byte[10];
	int n = 0;
	for (; v > 127; v >>= 7)
		byte[n++] = (uint8_t)(v | 128);
	byte[n++] = (uint8_t)v;
	put(b, byte, (size_t)n);
}

static void put_int(Buf *b, int field, int64_t v)
{
	varint(b, (uint64_t)field << 3);
	varint(b, (uint64_t)v);
}

static void put_bytes(Buf *b, int field, const void *p, size_t n)
{
	varint(b, (uint64_t)field << 3 | 2);
	varint(b, n);
	put(b, p, n);
}

static void put_text(Buf *b, int field, const char *s)
{
	put_bytes(b, field, s, strlen(s));
}

static void put_msg(Buf *b, int field, Buf *inner)
{
	put_bytes(b, field, inner->p, inner->n);
	free(inner->p);
	*inner = (Buf){ 0 };
}

/* ---- Nodes and initialisers of one graph. */
typedef struct Gpt { Buf nodes, inits; int nnode, fresh; } Gpt;
typedef struct Val { char s[64]; } Val;

static Val named(const char *s)
{
	Val v;
	snprintf(v.s, sizeof v.s, "%s", s);
	return v;
}

static Val fresh(Gpt *g)
{
	Val v;
	snprintf(v.s, sizeof v.s, "%d", g->fresh++);     /* exporters number their values */
	return v;
}

static void attr_int(Buf *attrs, const char *name, int64_t v)
{
	Buf a = { 0 };
	put_text(&a, 1, name);
	put_int(&a, 3, v);
	put_int(&a, 20, 2);
	put_msg(attrs, 5, &a);
}

static void attr_ints(Buf *attrs, const char *name, int n, const int64_t *v)
{
	Buf a = { 0 };
	put_text(&a, 1, name);
	for (int i = 0; i < n; i++)
		put_int(&a, 8, v[i]);
	put_int(&a, 20, 7);
	put_msg(attrs, 5, &a);
}

/* A node with the attributes collected in attrs, which is emptied; its operands end with NULL. */
static Val node(Gpt *g, const char *op, Buf *attrs, int nout, Val *outs, ...)
{
	Buf b = { 0 };
	Val first = { "" };
	char name[40];
	va_list ap;
	va_start(ap, outs);
	for (const Val *v; (v = va_arg(ap, const Val *));)
		put_text(&b, 1, v->s);
	va_end(ap);
	for (int i = 0; i < nout; i++) {
		Val v = fresh(g);
		put_text(&b, 2, v.s);
		if (outs)
			outs[i] = v;
		if (i == 0)
			first = v;
	}
	snprintf(name, sizeof name, "%s_%d", op, g->nnode++);
	put_text(&b, 3, name);
	put_text(&b, 4, op);
	if (attrs) {
		put(&b, attrs->p, attrs->n);
		free(attrs->p);
		*attrs = (Buf){ 0 };
	}
	put_msg(&g->nodes, 1, &b);
	return first;
}

#define NODE(g, op, attrs, ...) node(g, op, attrs, 1, NULL, __VA_ARGS__, (const Val *)NULL)

static Buf tensor(const char *name, int dtype, int ndim, const int64_t *dim, const void *data, size_t bytes)
{
	Buf t = { 0 };
	for (int i = 0; i < ndim; i++)
		put_int(&t, 1, dim[i]);
	put_int(&t, 2, dtype);
	if (name)
		put_text(&t, 8, name);
	put_bytes(&t, 9, data, bytes);
	return t;
}

static Val constant(Gpt *g, int dtype, int ndim, const int64_t *dim, const void *data, size_t bytes)
{
	Buf a = { 0 }, attrs = { 0 }, t = tensor(NULL, dtype, ndim, dim, data, bytes);
	put_text(&a, 1, "value");
	put_msg(&a, 5, &t);
	put_int(&a, 20, 4);
	put_msg(&attrs, 5, &a);
	return node(g, "Constant", &attrs, 1, NULL, (const Val *)NULL);
}

static Val const_f(Gpt *g, float v)
{
	return constant(g, FLOAT, 0, NULL, &v, sizeof v);
}

static Val const_i(Gpt *g, int64_t v)
{
	return constant(g, INT64, 0, NULL, &v, sizeof v);
}

static Val const_i1(Gpt *g, int64_t v)
{
	int64_t one = 1;
	return constant(g, INT64, 1, &one, &v, sizeof v);
}

static Val weight(Gpt *g, int layer, const char *name, int ndim, int64_t d0, int64_t d1)
{
	int64_t dim[2] = { d0, d1 };
	size_t n = (size_t)(ndim == 2 ? d0 * d1 : d0);
	float *w = malloc(n * sizeof *w);
	char full[64];
	if (!w)
		abort();
	for (size_t i = 0; i < n; i++)
		w[i] = (float)((i * 37 + (size_t)layer * 11) % 101) / 1010 - 0.05f;
	snprintf(full, sizeof full, "h.%d.%s", layer, name);
	Buf t = tensor(full, FLOAT, ndim, dim, w, n * sizeof *w);
	put_msg(&g->inits, 5, &t);
	free(w);
	return named(full);
}

/* ---- The pieces of a layer. */
static Val layer_norm(Gpt *g, Val x, int layer, const char *name)
{
	int64_t last = -1;
	char w[32], b[32];
	Buf a = { 0 };
	snprintf(w, sizeof w, "%s.w", name);
	snprintf(b, sizeof b, "%s.b", name);
	Val gamma = weight(g, layer, w, 1, WIDTH, 0), beta = weight(g, layer, b, 1, WIDTH, 0);
	attr_ints(&a, "axes", 1, &last);
	Val mean = NODE(g, "ReduceMean", &a, &x), diff = NODE(g, "Sub", NULL, &x, &mean), two = const_f(g, 2);
	Val sq = NODE(g, "Pow", NULL, &diff, &two);
	attr_ints(&a, "axes", 1, &last);
	Val var = NODE(g, "ReduceMean", &a, &sq), eps = const_f(g, 1e-5f), sum = NODE(g, "Add", NULL, &var, &eps);
	Val dev = NODE(g, "Sqrt", NULL, &sum), norm = NODE(g, "Div", NULL, &diff, &dev);
	Val scaled = NODE(g, "Mul", NULL, &norm, &gamma);
	return NODE(g, "Add", NULL, &scaled, &beta);
}

/* One number of the shape of x, as a vector of length 1. */
static Val extent(Gpt *g, Val x, int64_t axis)
{
	Val shape = NODE(g, "Shape", NULL, &x), k = const_i(g, axis);
	Val d = NODE(g, "Gather", NULL, &shape, &k), zero = const_i1(g, 0);
	return NODE(g, "Unsqueeze", NULL, &d, &zero);
}

static Val reshape(Gpt *g, Val x, int64_t third, int64_t fourth)
{
	Buf a = { 0 };
	Val b = extent(g, x, 0), t = extent(g, x, 1), c = const_i1(g, third), shape;
	attr_int(&a, "axis", 0);
	if (fourth) {
		Val d = const_i1(g, fourth);
		shape = NODE(g, "Concat", &a, &b, &t, &c, &d);
	} else {
		shape = NODE(g, "Concat", &a, &b, &t, &c);
	}
	return NODE(g, "Reshape", NULL, &x, &shape);
}

static Val transpose(Gpt *g, Val x, int64_t p0, int64_t p1, int64_t p2, int64_t p3)
{
	int64_t perm[4] = { p0, p1, p2, p3 };
	Buf a = { 0 };
	attr_ints(&a, "perm", 4, perm);
	return NODE(g, "Transpose", &a, &x);
}

static Val linear(Gpt *g, Val x, int layer, const char *name, int64_t in, int64_t out)
{
	char w[32], b[32];
	snprintf(w, sizeof w, "%s.w", name);
	snprintf(b, sizeof b, "%s.b", name);
	Val weights = weight(g, layer, w, 2, in, out), bias = weight(g, layer, b, 1, out, 0);
	Val y = NODE(g, "MatMul", NULL, &x, &weights);
	return NODE(g, "Add", NULL, &y, &bias);
}

static Val attention(Gpt *g, Val x, int layer, Val mask)
{
	Buf a = { 0 };
	Val qkv = linear(g, x, layer, "qkv", WIDTH, 3 * WIDTH), part[3];
	int64_t three = 3, sizes[3] = { WIDTH, WIDTH, WIDTH };
	Val split = constant(g, INT64, 1, &three, sizes, sizeof sizes);
	attr_int(&a, "axis", 2);
	node(g, "Split", &a, 3, part, &qkv, &split, (const Val *)NULL);
	Val q = reshape(g, part[0], HEADS, WIDTH / HEADS), k = reshape(g, part[1], HEADS, WIDTH / HEADS);
	Val v = reshape(g, part[2], HEADS, WIDTH / HEADS);
	q = transpose(g, q, 0, 2, 1, 3);
	k = transpose(g, k, 0, 2, 3, 1);
	v = transpose(g, v, 0, 2, 1, 3);
	Val scores = NODE(g, "MatMul", NULL, &q, &k), root = const_f(g, 2.8284271f);
	Val scaled = NODE(g, "Div", NULL, &scores, &root);
	/* Cuts the causal mask to the length of the sequence, by the nodes that the exporter writes. */
	Val t = extent(g, x, 1), zero = const_i1(g, 0), axis2 = const_i1(g, 2), axis3 = const_i1(g, 3);
	Val rows = NODE(g, "Slice", NULL, &mask, &zero, &t, &axis2);
	Val both = NODE(g, "Slice", NULL, &rows, &zero, &t, &axis3);
	Val low = const_f(g, -10000), masked = NODE(g, "Where", NULL, &both, &scaled, &low);
	attr_int(&a, "axis", 3);
	Val prob = NODE(g, "Softmax", &a, &masked), mixed = NODE(g, "MatMul", NULL, &prob, &v);
	Val back = transpose(g, mixed, 0, 2, 1, 3);
	return linear(g, reshape(g, back, WIDTH, 0), layer, "proj", WIDTH, WIDTH);
}

static Val gelu(Gpt *g, Val x)
{
	Val half = const_f(g, 0.5f), h = NODE(g, "Mul", NULL, &x, &half);
	Val three = const_f(g, 3), cube = NODE(g, "Pow", NULL, &x, &three);
	Val c = const_f(g, 0.044715f), cc = NODE(g, "Mul", NULL, &cube, &c), sum = NODE(g, "Add", NULL, &x, &cc);
	Val s = const_f(g, 0.7978845608f), in = NODE(g, "Mul", NULL, &sum, &s), th = NODE(g, "Tanh", NULL, &in);
	Val one = const_f(g, 1), up = NODE(g, "Add", NULL, &th, &one);
	return NODE(g, "Mul", NULL, &h, &up);
}

static Buf value_info(const char *name, int dtype, const char *d0, const char *d1, int64_t d2)
{
	Buf v = { 0 }, type = { 0 }, ten = { 0 }, shape = { 0 }, dim = { 0 };
	put_text(&dim, 2, d0);
	put_msg(&shape, 1, &dim);
	put_text(&dim, 2, d1);
	put_msg(&shape, 1, &dim);
	if (d2) {
		put_int(&dim, 1, d2);
		put_msg(&shape, 1, &dim);
	}
	put_int(&ten, 1, dtype);
	put_msg(&ten, 2, &shape);
	put_msg(&type, 1, &ten);
	put_text(&v, 1, name);
	put_msg(&v, 2, &type);
	return v;
}

int gpt_onnx(const char *path, int nodes)
{
	Gpt g = { .fresh = 100 };
	Buf graph = { 0 }, model = { 0 }, opset = { 0 };
	uint8_t tril[CONTEXT * CONTEXT];
	int64_t square[4] = { 1, 1, CONTEXT, CONTEXT };
	for (int i = 0; i < CONTEXT * CONTEXT; i++)
		tril[i] = i % CONTEXT <= i / CONTEXT;
	Buf mask = tensor("mask", 9, 4, square, tril, sizeof tril);
	put_msg(&g.inits, 5, &mask);

	Val ids = named("ids"), table = weight(&g, 0, "wte", 2, VOCAB, WIDTH), m = named("mask");
	Val x = NODE(&g, "Gather", NULL, &table, &ids);
	for (int layer = 0; layer == 0 || g.nnode < nodes; layer++) {
		Val a = attention(&g, layer_norm(&g, x, layer, "ln1"), layer, m);
		x = NODE(&g, "Add", NULL, &x, &a);
		Val h = linear(&g, layer_norm(&g, x, layer, "ln2"), layer, "up", WIDTH, 4 * WIDTH);
		Val d = linear(&g, gelu(&g, h), layer, "down", 4 * WIDTH, WIDTH);
		x = NODE(&g, "Add", NULL, &x, &d);
	}
	Val head = weight(&g, 0, "head", 2, WIDTH, VOCAB), logits = NODE(&g, "MatMul", NULL, &x, &head);

	put(&graph, g.nodes.p, g.nodes.n);
	put_text(&graph, 2, "gpt");
	put(&graph, g.inits.p, g.inits.n);
	Buf in = value_info("ids", INT64, "batch", "seq", 0), out = value_info(logits.s, FLOAT, "batch", "seq", VOCAB);
	put_msg(&graph, 11, &in);
	put_msg(&graph, 12, &out);
	put_int(&model, 1, IR);
	put_text(&model, 2, "bench");
	put_msg(&model, 7, &graph);
	put_text(&opset, 1, "");
	put_int(&opset, 2, OPSET);
	put_msg(&model, 8, &opset);
	free(g.nodes.p);
	free(g.inits.p);

	FILE *f = fopen(path, "wb");
	size_t done = f ? fwrite(model.p, 1, model.n, f) : 0;
	int bad = !f || done != model.n;
	if (f)
		bad |= fclose(f) != 0;
	free(model.p);
	return bad ? -1 : g.nnode;
}
