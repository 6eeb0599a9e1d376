/* Sums in chunks: what they make of all is, to the bit, the sum of what they make of both halves with half of the
 * chunks, down to what the kernels make of one, on every instruction set and number of threads; and it is near what the
 * plain kernels make of all. */
#include "fast.h"
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Case {
	int64_t m, n, k, chunks;        /* k is summed; of convolutions and tables: m images or positions */
	const float *a, *b, *c;
	const int64_t *index;
	bool ta, tb, halves;            /* operands transposed; halves give other bits */
} Case;

/* Of `len` k's from `from` on. */
typedef void Part(Ctx *, float *y, const Case *, int64_t from, int64_t len, int64_t chunks);
typedef struct Try { Case *c; Part *part; int64_t n; } Try;

/* y of chunks from .. from + len - 1 is there: does it come of its halves?  Then of the first of them, down to single
 * chunks. */
static void halve(Ctx *c, const float *y, const Try *t, int64_t len, int64_t chunks, float *first, float *second)
{
	Case *k = t->c;
	if (chunks < 2)
		return;
	t->part(c, first, k, 0, len / 2, chunks / 2);
	t->part(c, second, k, len / 2, len / 2, chunks / 2);
	for (int64_t i = 0; i < t->n; i++) {
		float sum = first[i] + second[i];
		k->halves |= memcmp(&sum, &y[i], sizeof sum) != 0;
	}
	float *room = copy_of(first, t->n);
	halve(c, room, t, len / 2, chunks / 2, first, second);
	free(room);
}

static void both_ways(Ctx *c, float *y, void *arg)
{
	const Try *t = arg;
	float *first = copy_of(y, t->n), *second = copy_of(y, t->n);
	t->part(c, y, t->c, 0, t->c->k, t->c->chunks);
	halve(c, y, t, t->c->k, t->c->chunks, first, second);
	free(first);
	free(second);
}

static int try(const char *what, Case *c, Part *part, int64_t n)
{
	static const RtProgram program = { .nrank = 1, .work_shared = RT_WORK_SHARED, .work_each = RT_WORK_EACH };
	Ctx one = { .program = &program, .nrank = 1, .nthread = 1 };
	float *want = malloc((size_t)(n ? n : 1) * sizeof *want);
	Try t = { c, part, n };
	char name[128];
	static _Alignas(64) unsigned char shared[RT_WORK_SHARED], work[RT_WORK_EACH];
	if (!want)
		exit(1);
	one.shared = shared, one.work = work, one.work_each = sizeof work;
	snprintf(name, sizeof name, "%s %lld x %lld x %lld, %lld chunks", what, (long long)c->m, (long long)c->n,
		(long long)c->k, (long long)c->chunks);
	part(&one, want, c, 0, c->k, 1);
	int bad = compare(name, both_ways, &t, want, n, 1e-5, (double)c->k, NULL);
	if (c->halves)
		printf("    %s: halves give other bits\n", name);
	free(want);
	return bad | c->halves;
}

static void product(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	KMat a = k->ta ? (KMat){ 1, k->m, 0 } : (KMat){ k->k, 1, 0 };
	KMat b = k->tb ? (KMat){ 1, k->k, 0 } : (KMat){ k->n, 1, 0 };
	const float *x = k->a + from * a.col, *z = k->b + from * b.row;
	if (chunks > 1)
		k_matmul_tree_f32(c, y, x, z, 1, k->m, k->n, len, a, b, k_cut_tree(k->m, k->n, len, chunks), NULL,
			chunks);
	else
		k_matmul_f32(c, y, x, z, 1, k->m, k->n, len, a, b, k_cut(k->m, k->n, len), NULL);
}

static int products(void)
{
	static const struct { int64_t m, n, k, chunks; } size[] = {
		{ 1, 1, 8, 8 }, { 7, 5, 16, 4 }, { 13, 33, 24, 8 }, { 64, 48, 32, 8 }, { 29, 70, 392, 8 },
		{ 40, 130, 776, 8 }, { 270, 20, 1536, 4 }, { 31, 17, 1600, 2 }, { 20, 37, 3088, 16 },
		{ 9, 16, 64, 64 }, { 23, 18, 2408, 8 }, { 280, 140, 1200, 2 },
	};
	int bad = 0;
	for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
		for (int t = 0; t < 4; t++) {
			float *a = numbers(size[i].m * size[i].k, 1 + i), *b = numbers(size[i].n * size[i].k, 100 + i);
			Case c = { .m = size[i].m, .n = size[i].n, .k = size[i].k, .chunks = size[i].chunks, .a = a,
				.b = b, .ta = t & 1, .tb = t & 2 };
			bad += try("product", &c, product, c.m * c.n);
			free(a);
			free(b);
		}
	return group("products-in-chunks", bad);
}

/* x is k x m x n: k and n vanish, or k alone. */
static void sum(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	const float *x = k->a + from * k->m * k->n;
	KLoops keep = k->ta ? (KLoops){ 1, { k->m }, { k->n } } : (KLoops){ 1, { k->m * k->n }, { 1 } };
	KLoops over = { 1, { len }, { k->m * k->n } };
	if (k->ta)
		over = (KLoops){ 2, { len, k->n }, { k->m * k->n, 1 } };
	if (chunks > 1)
		k_reduce_tree_f32(c, y, x, keep, over, chunks);
	else
		k_reduce_f32(c, y, x, keep, over, K_SUM);
}

/* k rows of n numbers, and a second term: their parts are cut at the same places. */
static void squared(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	const float *x[] = { k->a + from * k->n, k->b + from * k->n };
	float *to[] = { y, y + 1 };
	k_sum_squares_f32(c, &(KSums){ .count = 2, .y = to, .terms = (int64_t[]){ 1, 1 }, .x = x,
		.n = (int64_t[]){ len * k->n, len * k->n }, .parts = (int64_t[]){ chunks, chunks } });
}

/* Rows of n, and their statistics at the end of b. */
static void scales(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	const float *dy = k->a + from * k->n, *x = k->b + from * k->n, *mean = k->c + from, *inv = k->c + k->k + from;
	if (chunks > 1)
		k_layernorm_grad_w_tree_f32(c, y, y + k->n, dy, x, mean, inv, len, k->n, chunks);
	else
		k_layernorm_grad_w_f32(c, y, y + k->n, dy, x, mean, inv, len, k->n);
}

/* A table of m rows of n. */
static void rows(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	k_gather_grad_tree_f32(c, y, k->a + from * k->n, k->index + from, 1, k->m, k->n, len, 0, k->m, chunks);
}

/* Images of m channels in one group, of n pixels. */
static void groups(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	const float *dy = k->a + from * k->m * k->n, *x = k->b + from * k->m * k->n, *mean = k->c + from,
		*inv = k->c + k->k + from;
	if (chunks > 1)
		k_groupnorm_grad_w_tree_f32(c, y, y + k->m, dy, x, mean, inv, len, 1, k->m, k->n, chunks);
	else
		k_groupnorm_grad_w_f32(c, y, y + k->m, dy, x, mean, inv, len, 1, k->m, k->n);
}

static void channels(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	const float *dy = k->a + from * k->m * k->n, *x = k->b + from * k->m * k->n, *mean = k->c, *inv = k->c + k->k;
	if (chunks > 1)
		k_batchnorm_grad_w_tree_f32(c, y, y + k->m, dy, x, mean, inv, len, k->m, k->n, chunks);
	else
		k_batchnorm_grad_w_f32(c, y, y + k->m, dy, x, mean, inv, len, k->m, k->n);
}

/* Of rows of m classes; alone, and as it comes with its gradient. */
static void loss(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	const float *x = k->a + from * k->m, one = 1;
	float *lse = malloc((size_t)(len + len * k->m) * sizeof *lse);
	if (!lse)
		exit(1);
	if (chunks > 1) {
		k_xent_tree_f32(c, y, NULL, NULL, x, k->index + from, NULL, len, k->m, 1, -1, K_LOSS_SUM, chunks);
		k_xent_both_tree_f32(c, y + 1, lse, lse + len, x, k->index + from, NULL, &one, len, k->m, 1, -1,
			K_LOSS_SUM, chunks);
	} else {
		k_xent_f32(c, y, NULL, NULL, x, k->index + from, NULL, len, k->m, 1, -1, K_LOSS_SUM);
		k_xent_both_f32(c, y + 1, lse, lse + len, x, k->index + from, NULL, &one, len, k->m, 1, -1, K_LOSS_SUM);
	}
	free(lse);
}

static int sums(void)
{
	static const struct { int64_t m, n, k, chunks; } size[] = { { 3, 5, 16, 8 }, { 1, 300, 64, 4 },
		{ 40, 7, 600, 8 }, { 2, 1, 8, 8 }, { 17, 260, 48, 16 } };
	int bad = 0;
	for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
		Case c = { .m = size[i].m, .n = size[i].n, .k = size[i].k, .chunks = size[i].chunks };
		float *a = numbers(c.k * c.m * c.n, 7 + i), *b = numbers(c.k * c.m * c.n, 70 + i),
			*s = numbers(2 * c.k, 700 + i);
		int64_t *index = malloc((size_t)c.k * sizeof *index);
		if (!index)
			exit(1);
		for (int64_t k = 0; k < c.k; k++)
			index[k] = (k * k + 3) % c.m;
		c.a = a, c.b = b, c.c = s, c.index = index;
		bad += try("columns", &c, sum, c.m * c.n);
		c.ta = true;
		bad += try("runs", &c, sum, c.m);
		bad += try("scales", &c, scales, 2 * c.n);
		bad += try("squares", &c, squared, 2);
		bad += try("table", &c, rows, c.m * c.n);
		bad += try("groups", &c, groups, 2 * c.m);
		bad += try("channels", &c, channels, 2 * c.m);
		bad += try("loss", &c, loss, 2);
		free(a);
		free(b);
		free(s);
		free(index);
	}
	return group("sums-in-chunks", bad);
}

/* k images of n x n, m channels to m + 1, of one group or two (ta), every pixel or every second (tb).  Chunks of few
 * pixels go another way than the plain kernel, also where there is one alone; with n = 12 and 8 channels they go
 * Winograd's. */
static void images(Ctx *c, float *y, const Case *k, int64_t from, int64_t len, int64_t chunks)
{
	int64_t step = k->tb ? 2 : 1, groups = k->ta ? 2 : 1, out = (k->n - 1) / step + 1;
	KWindow v = { .k = { 3, 3 }, .stride = { step, step }, .dil = { 1, 1 }, .lo = { 1, 1 }, .in = { k->n, k->n },
		.out = { out, out } };
	const float *x = k->a + from * groups * k->m * k->n * k->n, *g = k->b + from * groups * (k->m + 1) * out * out;
	if (chunks == 1 && len == k->k)         /* all of them, not cut */
		k_conv_grad_w_f32(c, y, x, g, len, groups, k->m, k->m + 1, v);
	else
		k_conv_grad_w_tree_f32(c, y, x, g, len, groups, k->m, k->m + 1, v, chunks);
}

static int convolutions(void)
{
	static const struct { int64_t m, n, k, chunks; } size[] = { { 2, 5, 8, 8 }, { 8, 12, 8, 4 }, { 3, 40, 4, 2 },
		{ 9, 7, 16, 8 }, { 8, 16, 8, 8 }, { 40, 4, 32, 8 } };
	int bad = 0;
	for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
		for (int t = 0; t < 4; t++) {
			Case c = { .m = size[i].m, .n = size[i].n, .k = size[i].k, .chunks = size[i].chunks,
				.ta = t & 1, .tb = t & 2 };
			float *a = numbers(2 * c.k * c.m * c.n * c.n, 9 + i),
				*b = numbers(2 * c.k * (c.m + 1) * c.n * c.n, 90 + i);
			c.a = a, c.b = b;
			bad += try("weights of images", &c, images, (1 + c.ta) * c.m * (c.m + 1) * 9);
			free(a);
			free(b);
		}
	return group("convolutions-in-chunks", bad);
}

int test_trees(void)
{
	return products() + sums() + convolutions();
}
