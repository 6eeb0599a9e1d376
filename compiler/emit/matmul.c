/* Calls of matrix products: strides of both operands, axes of the batch joined as far as both allow. */
#include "calls.h"

#include <inttypes.h>
#include <string.h>

/* One operand of a product: its matrix, and how far each axis of the batch of the result moves it. */
typedef struct Factor {
	struct { int64_t row, col, batch; } m;
	int64_t batch[8];
} Factor;

/* A vector is a row on the left and a column on the right. */
static Factor factor_of(const Shape *s, int nbatch, bool transposed, int64_t vector_row, int64_t vector_col)
{
	int64_t st[8];
	Factor f = { { vector_row, vector_col, 0 }, { 0 } };
	loops_strides(s, st);
	if (s->ndim > 1) {
		f.m.row = st[s->ndim - (transposed ? 1 : 2)];
		f.m.col = st[s->ndim - (transposed ? 2 : 1)];
	}
	for (int a = 0; a < s->ndim - 2; a++)
		f.batch[a + nbatch - (s->ndim - 2)] = s->d[a] == 1 ? 0 : st[a];
	return f;
}

/* A product as it is printed: pointers, sizes, matrices. */
typedef struct Product {
	const char *y, *a, *b;
	int64_t batch, m, n, k;
	Factor fa, fb;
} Product;

static void print_matrix(const Print *p, const Factor *f)
{
	text_add(p->t, ", (KMat){ %" PRId64 ", %" PRId64 ", %" PRId64 " }", f->m.row, f->m.col, f->m.batch);
}

static void print_product(const Print *p, const Product *x)
{
	bool single = kernel_float(p->n->in[0]);
	int64_t chunks = single ? args_chunks(p, "matmul_tree") : 1;
	KCut cut = chunks > 1 ? k_cut_tree(x->m, x->n, x->k, chunks) : k_cut(x->m, x->n, x->k);
	if (single)
		args_need(p, chunks > 1 ? k_work_matmul_tree(cut, x->n, x->k, chunks) : k_work_matmul(cut, x->n, x->k));
	text_add(p->t, "code = k_matmul%s%s(c, %s, %s, %s", chunks > 1 ? "_tree" : "", single ? "_f32" : "", x->y, x->a,
		x->b);
	args_sizes(p, x->batch, x->m, x->n, x->k);
	print_matrix(p, &x->fa);
	print_matrix(p, &x->fb);
	if (single)
		text_add(p->t, ", (KCut){ %" PRId64 ", %" PRId64 ", %" PRId64 " }, %s", cut.rows, cut.pass, cut.cols,
			p->epilogue ? p->epilogue : "NULL");
	if (chunks > 1)
		args_sizes(p, chunks);
	single ? args_end(p) : args_type(p, p->n->in[0]);
	text_add(p->t, ";\n");
}

/* Axes of the batch that are one in both operands. */
typedef struct Batch { int n; int64_t len[8], a[8], b[8]; } Batch;

static Batch join(const Product *x, const Shape *y, int nbatch)
{
	Batch o = { 0 };
	for (int i = 0; i < nbatch; i++) {
		if (y->d[i] == 1)
			continue;
		if (!o.n || o.a[o.n - 1] != x->fa.batch[i] * y->d[i] || o.b[o.n - 1] != x->fb.batch[i] * y->d[i])
			o.len[o.n++] = 1;
		o.len[o.n - 1] *= y->d[i];
		o.a[o.n - 1] = x->fa.batch[i];
		o.b[o.n - 1] = x->fb.batch[i];
	}
	return o;
}

/* The innermost axis is the batch of the call; with one matrix on the right it is more rows. */
static void take_batch(Product *x, Batch *o)
{
	if (o->n) {
		o->n--;
		x->batch = o->len[o->n];
		x->fa.m.batch = o->a[o->n];
		x->fb.m.batch = o->b[o->n];
	}
	if (x->fb.m.batch == 0 && (x->batch == 1 || x->m == 1 || x->fa.m.batch == x->m * x->fa.m.row)) {
		if (x->m == 1)
			x->fa.m.row = x->fa.m.batch;
		x->m *= x->batch;
		x->batch = 1;
		x->fa.m.batch = 0;
	}
}

/* Loops around the call, and pointers that move with them. */
static void print_outer(const Print *p, Product *x, const Batch *o)
{
	static const char tabs[] = "\t\t\t\t\t\t\t\t\t", var[] = "ijkopqrs";
	Arena *ar = p->e->tree.arena;
	int64_t step = x->batch * x->m * x->n;
	if (o->n) {
		const char *type = kernel_ctype(p->n->in[0]->type->elem);
		x->y = arena_printf(ar, "(%s *)%s", type, x->y);
		x->a = arena_printf(ar, "(const %s *)%s", type, x->a);
		x->b = arena_printf(ar, "(const %s *)%s", type, x->b);
	}
	for (int i = o->n - 1; i >= 0; i--, step *= o->len[i + 1]) {
		x->y = arena_printf(ar, "%s + %c * %" PRId64, x->y, var[i], step);
		x->a = o->a[i] ? arena_printf(ar, "%s + %c * %" PRId64, x->a, var[i], o->a[i]) : x->a;
		x->b = o->b[i] ? arena_printf(ar, "%s + %c * %" PRId64, x->b, var[i], o->b[i]) : x->b;
	}
	for (int i = 0; i < o->n; i++)
		text_add(p->t, "%.*sfor (int64_t %c = 0; %c < %" PRId64 " && !code; %c++)\n", i + 1, tabs, var[i],
			var[i], o->len[i], var[i]);
	text_add(p->t, "%.*s", o->n + 1, tabs);
}

static void call_matmul(const Print *p)
{
	Shape a = args_in(p, 0), b = args_in(p, 1), y = args_out(p, 0);
	bool ta = attr_has(p->n, "transA") && attr_int(p->n, "transA"), tb = attr_has(p->n, "transB") &&
		attr_int(p->n, "transB");
	int nbatch = y.ndim - (a.ndim > 1) - (b.ndim > 1);
	Product x = { .y = args_result(p, 0), .a = args_operand(p, 0), .b = args_operand(p, 1), .batch = 1 };
	x.k = a.d[a.ndim - (ta ? 2 : 1)];
	x.m = a.ndim > 1 ? a.d[a.ndim - (ta ? 1 : 2)] : 1;
	x.n = b.ndim > 1 ? b.d[b.ndim - (tb ? 2 : 1)] : 1;
	x.fa = factor_of(&a, nbatch, ta, 0, 1);
	x.fb = factor_of(&b, nbatch, tb, 1, 0);
	Batch o = join(&x, &y, nbatch);
	take_batch(&x, &o);
	print_outer(p, &x, &o);
	print_product(p, &x);
}

/* One product: all axes but the last are k. */
static void call_matmul_over(const Print *p)
{
	Shape a = args_in(p, 0), b = args_in(p, 1);
	int64_t m = a.d[a.ndim - 1], n = b.d[b.ndim - 1];
	Product x = { .y = args_result(p, 0), .a = args_operand(p, 0), .b = args_operand(p, 1), .batch = 1, .m = m,
		.n = n, .k = loops_product(&a, 0, a.ndim - 1), .fa = { .m = { 1, m, 0 } }, .fb = { .m = { n, 1, 0 } } };
	text_add(p->t, "\t");
	print_product(p, &x);
}

const Call matmul_calls[] = {
	{ "matmul", "matmul", call_matmul, true },
	{ "matmul", "typed", call_matmul, true },
	{ "matmul_over", "matmul", call_matmul_over, true },
	{ "matmul_over", "typed", call_matmul_over, true },
	{ 0 },
};
