/* Matrix products: shapes around the sizes of tiles and blocks, strided operands, batches, epilogues; and that a part
 * of a product has the bits of the whole. */
#include "fast.h"
#include "../../../kernels/cpu/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define k_matmul_f32 k_plain_matmul_f32
#include "../../../kernels/cpu/matmul.c"
#undef k_matmul_f32

typedef struct Case { const float *a, *b; int64_t batch, m, n, k; KMat as, bs; KCut cut; const KEpilogue *e; } Case;

static void run(Ctx *c, float *y, void *arg)
{
	Case *s = arg;
	k_matmul_f32(c, y, s->a, s->b, s->batch, s->m, s->n, s->k, s->as, s->bs, s->cut, s->e);
}

/* Only rows and columns from..: all others are put back from the whole product. */
typedef struct Part { Case whole; const float *y; int64_t row, rows, col, cols; KCut cut; } Part;

/* y = 2 y and a number of the row, for each element once. */
static void twice(const void *arg, float *y, int64_t row, int64_t nrow, int64_t col, int64_t ncol)
{
	int64_t n = *(const int64_t *)arg;
	for (int64_t i = row; i < row + nrow; i++)
		for (int64_t j = col; j < col + ncol; j++)
			y[i * n + j] = 2 * y[i * n + j] + (float)(i % 7);
}

/* So small that rows are packed three times in each of two passes, and columns in turns. */
static KCut small_cut(int64_t m)
{
	return (KCut){ (m + 5) / 6, (m + 1) / 2, 128 };
}

static int one(int64_t batch, int64_t m, int64_t n, int64_t k, int ta, int tb, bool shared, bool epilogue, KCut cut)
{
	char what[128];
	KEpilogue e = { twice, &n };
	Case s = { .batch = batch, .m = m, .n = n, .k = k, .cut = cut, .e = epilogue ? &e : NULL };
	/* ta: 0 rows, 1 turned, 2 every second column of a wider matrix */
	s.as = ta == 0 ? (KMat){ k, 1, m * k } : ta == 1 ? (KMat){ 1, m, m * k } : (KMat){ 2 * k, 2, 2 * m * k };
	s.bs = tb == 0 ? (KMat){ n, 1, k * n } : tb == 1 ? (KMat){ 1, k, k * n } : (KMat){ 2 * n, 2, 2 * k * n };
	if (shared)
		s.bs.batch = 0;
	float *a = numbers(batch * m * k * 2, (uint64_t)(m * 7 + k));
	float *b = numbers(batch * n * k * 2, (uint64_t)(n * 3 + k));
	float *want = malloc((size_t)(batch * m * n + 1) * sizeof *want);
	if (!want)
		exit(1);
	s.a = a, s.b = b;
	k_plain_matmul_f32(NULL, want, a, b, batch, m, n, k, s.as, s.bs, s.cut, s.e);
	snprintf(what, sizeof what, "%lld x %lld x %lld x %lld, ta %d, tb %d%s%s", (long long)batch, (long long)m,
		(long long)n, (long long)k, ta, tb, shared ? ", one b" : "",
	         epilogue ? ", epilogue" : "");
	int bad = compare(what, run, &s, want, batch * m * n, 1.5e-6, 4 * sqrt((double)k + 1), NULL);
	free(a), free(b), free(want);
	return bad;
}

/* The product of some rows and columns, alone, has the bits that it has within the whole. */
static void run_part(Ctx *c, float *y, void *arg)
{
	Part *p = arg;
	Case s = p->whole;
	k_matmul_f32(c, y, s.a, s.b, 1, s.m, s.n, s.k, s.as, s.bs, s.cut, NULL);
	float *part = malloc((size_t)(p->rows * p->cols) * sizeof *part);
	if (!part)
		exit(1);
	k_matmul_f32(c, part, s.a + p->row * s.as.row, s.b + p->col * s.bs.col, 1, p->rows, p->cols, s.k, s.as, s.bs,
		p->cut, NULL);
	for (int64_t i = 0; i < p->rows; i++)
		for (int64_t j = 0; j < p->cols; j++)
			if (memcmp(&y[(p->row + i) * s.n + p->col + j], &part[i * p->cols + j], sizeof *y))
				y[0] = NAN;
	free(part);
}

static int parts(void)
{
	int64_t m = 97, n = 131, k = 700;
	int bad = 0;
	float *a = numbers(m * k, 1), *b = numbers(k * n, 2), *want = malloc((size_t)(m * n) * sizeof *want);
	if (!want)
		exit(1);
	Part p = { .whole = { a, b, 1, m, n, k, { k, 1, 0 }, { n, 1, 0 }, k_cut(m, n, k), NULL } };
	k_plain_matmul_f32(NULL, want, a, b, 1, m, n, k, p.whole.as, p.whole.bs, p.whole.cut, NULL);
	static const int64_t cuts[][4] = { { 0, 1, 0, 131 }, { 13, 50, 7, 90 }, { 96, 1, 130, 1 }, { 0, 97, 64, 16 },
		{ 5, 6, 3, 17 } };
	for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
		p.row = cuts[i][0], p.rows = cuts[i][1], p.col = cuts[i][2], p.cols = cuts[i][3];
		p.cut = i % 2 ? small_cut(p.rows) : k_cut(p.rows, p.cols, k);
		bad += compare("a part has other bits than the whole", run_part, &p, want, m * n, 1.5e-6,
			4 * sqrt((double)k), NULL);
	}
	free(a), free(b), free(want);
	return bad;
}

/* With b packed before, by one call for products of several m, an element has the bits that it has without. */
static void run_packed(Ctx *c, float *y, void *arg)
{
	const Case *s = arg;
	float *packed = malloc((size_t)gemm_packed_bytes(s->n, s->k)),
		*other = malloc((size_t)(s->m * s->n) * sizeof *other);
	if (!packed || !other)
		exit(1);
	Gemm g = { .batch = 1, .m = s->m, .n = s->n, .k = s->k, .a = { .x = s->a, .at = s->as.row, .k = s->as.col },
		.b = { .x = s->b, .at = s->bs.col, .k = s->bs.row },
		.y = other, .yrow = s->n, .cut = s->cut };
	gemm_pack(c, &g, packed);
	g.packed = packed;
	gemm_run(c, &g);
	run(c, y, arg);
	if (memcmp(y, other, (size_t)(s->m * s->n) * sizeof *y))
		y[0] = NAN;
	g.m = 1;
	memset(other, 0, (size_t)s->n * sizeof *other);
	gemm_run(c, &g);
	if (memcmp(y, other, (size_t)s->n * sizeof *y))
		y[0] = NAN;
	free(packed), free(other);
}

static int packed(void)
{
	static const int64_t sizes[][3] = { { 1, 1, 1 }, { 5, 70, 300 }, { 97, 131, 700 }, { 280, 50, 257 },
		{ 13, 32, 256 } };
	int bad = 0;
	for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
		int64_t m = sizes[i / 2][0], n = sizes[i / 2][1], k = sizes[i / 2][2];
		float *a = numbers(m * k, 1), *b = numbers(k * n, 2), *want = malloc((size_t)(m * n) * sizeof *want);
		if (!want)
			exit(1);
		Case s = { .a = a, .b = b, .batch = 1, .m = m, .n = n, .k = k, .as = { k, 1, 0 },
			.bs = i % 2 ? (KMat){ 1, k, 0 } : (KMat){ n, 1, 0 }, .cut = k_cut(m, n, k) };
		k_plain_matmul_f32(NULL, want, a, b, 1, m, n, k, s.as, s.bs, s.cut, NULL);
		bad += compare("b packed before gives other bits", run_packed, &s, want, m * n, 1.5e-6,
			4 * sqrt((double)k + 1), NULL);
		free(a), free(b), free(want);
	}
	return bad;
}

int test_matmul(void)
{
	static const int64_t ms[] = { 1, 2, 5, 6, 7, 13, 14, 15, 32, 97, 269 };
	static const int64_t ns[] = { 1, 7, 10, 16, 17, 31, 33, 130, 300 };
	static const int64_t ks[] = { 0, 1, 9, 64, 255, 256, 257, 600 };
	enum { NM = sizeof ms / sizeof ms[0], NN = sizeof ns / sizeof ns[0], NK = sizeof ks / sizeof ks[0] };
	int bad = 0, turn = 0;
	for (int i = 0; i < NM; i++)
		for (int j = 0; j < NN; j++)
			for (int k = 0; k < NK; k++, turn++)
				if (ms[i] * ns[j] * ks[k] < 4000000)
					bad += one(1, ms[i], ns[j], ks[k], turn % 3, turn / 3 % 3, false, turn % 4 == 0,
						turn % 5 ? k_cut(ms[i], ns[j], ks[k]) : small_cut(ms[i]));
	bad += one(12, 17, 33, 20, 0, 1, false, true, k_cut(17, 33, 20));
	bad += one(5, 64, 64, 64, 1, 0, false, false, k_cut(64, 64, 64));
	bad += one(6, 9, 40, 30, 0, 0, true, true, small_cut(9)) + one(3, 30, 20, 10, 1, 0, true, false, small_cut(30));
	bad += one(1, 600, 1700, 3, 0, 0, false, true, k_cut(600, 1700, 3));
	bad += one(1, 2, 4000, 40, 0, 1, false, true, k_cut(2, 4000, 40));
	bad += one(1, 700, 300, 300, 1, 1, false, true, k_cut(700, 300, 300));
	bad += one(1, 80, 4000, 270, 2, 2, false, false, small_cut(80));
	return group("matmul", bad) + group("parts-of-a-product-have-its-bits", parts()) +
		group("packed-before-or-on-the-way", packed());
}
