/* Copies, reductions, softmax, rows by index, pools. */
#include "fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define k_copy k_plain_copy
#define k_keep k_plain_keep
#define k_zero k_plain_zero
#define k_move k_plain_move
#include "../../../kernels/cpu/copy.c"
#undef k_copy
#undef k_keep
#undef k_zero
#undef k_move
#define k_reduce_f32 k_plain_reduce_f32
#define k_mean_shard_f32 k_plain_mean_shard_f32
#include "../../../kernels/cpu/reduce.c"
#undef k_reduce_f32
#undef k_mean_shard_f32
#define k_sum_squares_f32 k_plain_sum_squares_f32
#define term k_plain_term
#include "../../../kernels/cpu/squares.c"
#undef k_sum_squares_f32
#undef term
#define k_softmax_f32 k_plain_softmax_f32
#define k_logsoftmax_f32 k_plain_logsoftmax_f32
int k_softmax_f32(Ctx *, float *y, const float *x, int64_t outer, int64_t n, int64_t inner);       /* in fast_norms.c */
int k_logsoftmax_f32(Ctx *, float *y, const float *x, int64_t outer, int64_t n, int64_t inner);
#undef k_softmax_f32
#undef k_logsoftmax_f32
#define k_gather k_plain_gather
#define k_gather_grad_f32 k_plain_gather_grad_f32
#define k_gather_shard k_plain_gather_shard
#define k_gather_grad_shard_f32 k_plain_gather_grad_shard_f32
#define k_gather_elements k_plain_gather_elements
#include "../../../kernels/cpu/index.c"
#undef k_gather
#undef k_gather_grad_f32
#undef k_gather_shard
#undef k_gather_grad_shard_f32
#undef k_gather_elements
#define k_maxpool_f32 k_plain_maxpool_f32
#define k_maxpool_grad_f32 k_plain_maxpool_grad_f32
#define k_maxpool_grad_shard_f32 k_plain_maxpool_grad_shard_f32
#include "../../../kernels/cpu/pool.c"
#undef k_maxpool_f32
#undef k_maxpool_grad_f32
#undef k_maxpool_grad_shard_f32

static float *space(int64_t n)
{
	float *y = calloc((size_t)(n + 1), sizeof *y);
	if (!y)
		exit(1);
	return y;
}

/* ---- copies ---- */

typedef struct Copy { const float *x; KLoops to, from; int64_t offset, n; int kind; } Copy;

static void run_copy(Ctx *c, float *y, void *arg)
{
	Copy *s = arg;
	memset(y, 0, (size_t)s->n * sizeof *y);
	if (s->kind == 1)
		k_move(c, y, 3, s->x, s->offset, s->to, s->from, 4);
	else
		k_copy(c, y, s->x, s->offset, s->from, s->kind == 0 ? 4 : s->kind == 2 ? 8 : 1);
}

static void plain_copy(float *y, Copy *s)
{
	if (s->kind == 1)
		k_plain_move(NULL, y, 3, s->x, s->offset, s->to, s->from, 4);
	else
		k_plain_copy(NULL, y, s->x, s->offset, s->from, s->kind == 0 ? 4 : s->kind == 2 ? 8 : 1);
}

int test_copies(void)
{
	static const KLoops loops[] = { { 0, { 0 }, { 0 } }, { 1, { 1000 }, { 1 } }, { 1, { 77 }, { 0 } },
		{ 1, { 50 }, { 3 } }, { 1, { 50 }, { -2 } }, { 2, { 33, 70 }, { 1, 33 } },
		{ 2, { 64, 64 }, { 1, 64 } }, { 3, { 5, 17, 40 }, { 680, 1, 17 } },
		{ 4, { 3, 4, 16, 20 }, { 1280, 20, 80, 1 } }, { 3, { 7, 9, 11 }, { 1, 7, 63 } },
		{ 3, { 4, 1, 30 }, { 0, 5, 1 } }, { 2, { 0, 5 }, { 5, 1 } }, { 2, { 200, 3 }, { 1, 200 } } };
	int bad = 0;
	float *x = numbers(20000, 1);
	for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
		for (int kind = 0; kind < 4; kind++) {
			bool back = loops[i].n == 1 && loops[i].stride[0] < 0;
			Copy s = { .x = x, .from = loops[i], .to = loops[i], .offset = back ? 300 : 2, .kind = kind };
			int64_t n = k_count(&s.from), at = 1;
			for (int a = s.to.n - 1; a >= 0; a--) {         /* every second element, axes backwards */
				s.to.stride[a] = at * 2;
				at *= s.to.len[a];
			}
			s.n = kind == 1 ? 2 * n + 8 : kind == 2 ? 2 * n : kind == 0 ? n : (n + 3) / 4;
			float *want = space(s.n);
			plain_copy(want, &s);
			char what[64];
			snprintf(what, sizeof what, "copy %zu kind %d", i, kind);
			bad += compare(what, run_copy, &s, want, s.n, 0, 0, NULL);
			free(want);
		}
	free(x);
	return group("copies", bad);
}

/* ---- reductions ---- */

typedef struct Red { const float *x; KLoops keep, over; KReduce op; int64_t all; } Red;

static void run_reduce(Ctx *c, float *y, void *arg)
{
	Red *s = arg;
	if (s->all)
		k_mean_shard_f32(c, y, s->x, s->keep, s->over, s->all);
	else
		k_reduce_f32(c, y, s->x, s->keep, s->over, s->op);
}

int test_reductions(void)
{
	static const struct { KLoops keep, over; } cases[] = {
		{ { 1, { 300 }, { 1 } }, { 1, { 700 }, { 300 } } }, { { 1, { 13 }, { 700 } }, { 1, { 700 }, { 1 } } },
		{ { 0, { 0 }, { 0 } }, { 1, { 90001 }, { 1 } } },
		{ { 1, { 5 }, { 49 } }, { 2, { 300, 49 }, { 245, 1 } } },
		{ { 2, { 3, 40 }, { 4000, 1 } }, { 1, { 100 }, { 40 } } },
		{ { 2, { 3, 4 }, { 100, 5 } }, { 2, { 5, 5 }, { 20, 1 } } },
		{ { 1, { 7 }, { 1 } }, { 0, { 0 }, { 0 } } }, { { 1, { 10 }, { 1 } }, { 1, { 0 }, { 10 } } },
		{ { 1, { 6 }, { 2 } }, { 1, { 500 }, { 12 } } }, { { 1, { 1 }, { 1 } }, { 1, { 33 }, { 1 } } } };
	int bad = 0;
	float *x = numbers(220000, 5);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (KReduce op = K_SUM; op <= K_PROD; op++) {
			Red s = { .x = x, .keep = cases[i].keep, .over = cases[i].over, .op = op };
			int64_t kept = k_count(&s.keep), n = k_count(&s.over);
			if (n == 0 && op == K_MEAN)
				continue;
			float *want = space(kept);
			k_plain_reduce_f32(NULL, want, x, s.keep, s.over, op);
			char what[64];
			snprintf(what, sizeof what, "reduce %zu kind %d", i, (int)op);
			bad += compare(what, run_reduce, &s, want, kept, 2e-6, op == K_SUM ? sqrt((double)n) * 4 : 1,
				NULL);
			s.all = op == K_MEAN ? 3 * n : 0;       /* a part of three times as many */
			if (s.all) {
				k_plain_mean_shard_f32(NULL, want, x, s.keep, s.over, s.all);
				bad += compare(what, run_reduce, &s, want, kept, 2e-6, 1, NULL);
			}
			free(want);
		}
	free(x);
	return group("reductions", bad);
}

/* ---- sums of squares ---- */

static void run_squares(Ctx *c, float *y, void *arg)
{
	KSums s = *(KSums *)arg;
	float *to[] = { y, y + 1, y + 2, y + 3 };
	s.y = to;
	k_sum_squares_f32(c, &s);
}

/* Several sums in one call: empty terms, parts, numbers as they are. */
int test_squares(void)
{
	float *x = numbers(150000, 9), want[4], *to[] = { want, want + 1, want + 2, want + 3 };
	const float *at[] = { x, x + 1, x + 5, x + 70, x + 9000, x + 3, x, x + 7, x + 4, x + 100 };
	int64_t terms[] = { 5, 1, 3, 1 }, n[] = { 17, 100001, K_PLAIN, 0, 16384, 1, 65536, K_PLAIN, 4099, 131072 };
	int64_t parts[] = { 1, 1, 1, 1, 4, 1, 8, 1, 1, 64 };
	KSums s = { .count = 4, .y = to, .terms = terms, .x = at, .n = n, .parts = parts };
	k_plain_sum_squares_f32(NULL, &s);
	int bad = compare("squares", run_squares, &s, want, 4, 1e-6, 0, want);
	s.parts = NULL;
	k_plain_sum_squares_f32(NULL, &s);
	bad += compare("squares of one part", run_squares, &s, want, 4, 1e-6, 0, want);
	s.count = 0;
	bad += compare("no squares", run_squares, &s, want, 0, 0, 0, NULL);
	free(x);
	return group("sums-of-squares", bad);
}

/* ---- softmax, rows by index ---- */

typedef struct Soft { const float *x; const int64_t *index; int64_t outer, n, inner, count; int kind; } Soft;

/* Kinds 4 and 5 are of a part of the rows: half of them, from a third on. */
static int64_t rows_here(const Soft *s)
{
	return s->kind < 4 ? s->n : (s->n + 1) / 2;
}

static void run_row(Ctx *c, float *y, void *arg)
{
	Soft *s = arg;
	switch (s->kind) {
	case 0: k_softmax_f32(c, y, s->x, s->outer, s->n, s->inner); break;
	case 1: k_logsoftmax_f32(c, y, s->x, s->outer, s->n, s->inner); break;
	case 2: k_gather(c, y, s->x, s->index, s->outer, s->n, s->inner, s->count, 4); break;
	case 3: k_gather_grad_f32(c, y, s->x, s->index, s->outer, s->n, s->inner, s->count); break;
	case 4: k_gather_shard(c, y, s->x, s->index, s->outer, rows_here(s), s->inner, s->count, 4, s->n / 3, s->n);
		break;
	case 5: k_gather_grad_shard_f32(c, y, s->x, s->index, s->outer, rows_here(s), s->inner, s->count, s->n / 3,
		s->n); break;
	}
}

static void plain_row(float *y, const Soft *s)
{
	switch (s->kind) {
	case 0: k_plain_softmax_f32(NULL, y, s->x, s->outer, s->n, s->inner); break;
	case 1: k_plain_logsoftmax_f32(NULL, y, s->x, s->outer, s->n, s->inner); break;
	case 2: k_plain_gather(NULL, y, s->x, s->index, s->outer, s->n, s->inner, s->count, 4); break;
	case 3: k_plain_gather_grad_f32(NULL, y, s->x, s->index, s->outer, s->n, s->inner, s->count); break;
	case 4: k_plain_gather_shard(NULL, y, s->x, s->index, s->outer, rows_here(s), s->inner, s->count, 4, s->n / 3,
		s->n); break;
	case 5: k_plain_gather_grad_shard_f32(NULL, y, s->x, s->index, s->outer, rows_here(s), s->inner, s->count,
		s->n / 3, s->n); break;
	}
}

int test_rows(void)
{
	static const int64_t sizes[][4] = { { 37, 10, 1, 5 }, { 5, 1000, 1, 300 }, { 300, 1, 1, 1 }, { 4, 17, 9, 40 },
		{ 1, 50, 200, 77 }, { 64, 64, 1, 64 }, { 2, 3, 5, 1000 } };
	int bad = 0;
	float *x = numbers(400000, 9);
	int64_t *index = malloc(20000 * sizeof *index);
	if (!index)
		exit(1);
	for (int64_t i = 0; i < 400000; i++)
		x[i] *= 20;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int kind = 0; kind < 6; kind++) {
			Soft s = { .x = x, .index = index, .outer = sizes[i][0], .n = sizes[i][1], .inner = sizes[i][2],
				.count = sizes[i][3], .kind = kind };
			for (int64_t k = 0; k < 20000; k++)
				index[k] = k * 7919 % (2 * s.n) - s.n;
			int64_t n = s.outer * (kind == 2 || kind == 4 ? s.count : rows_here(&s)) * s.inner;
			float *want = space(n);
			plain_row(want, &s);
			char what[64];
			snprintf(what, sizeof what, "rows %zu kind %d", i, kind);
			bad += compare(what, run_row, &s, want, n, 2e-6, kind == 0 ? 0.5 : kind == 1 ? 40 : 0, NULL);
			free(want);
		}
	free(index), free(x);
	return group("softmax-and-rows", bad);
}

/* ---- pools ---- */

typedef struct Pools { const float *x, *g; KWindow w; int64_t planes; bool grad; } Pools;

static void run_pool(Ctx *c, float *y, void *arg)
{
	Pools *s = arg;
	if (s->grad)
		k_maxpool_grad_f32(c, y, s->g, s->x, s->planes, s->w);
	else
		k_maxpool_f32(c, y, s->x, s->planes, s->w);
}

int test_pools(void)
{
	static const KWindow windows[] = {
		{ .k = { 2, 2 }, .stride = { 2, 2 }, .dil = { 1, 1 }, .lo = { 0, 0 }, .in = { 8, 10 }, .out = { 4,
			5 } },
		{ .k = { 3, 3 }, .stride = { 2, 2 }, .dil = { 1, 1 }, .lo = { 1, 1 }, .in = { 23, 31 }, .out = { 12,
			16 } },
		{ .k = { 3, 2 }, .stride = { 1, 1 }, .dil = { 2, 2 }, .lo = { 1, 0 }, .in = { 9, 9 }, .out = { 7,
			7 } },
		{ .k = { 1, 5 }, .stride = { 1, 3 }, .dil = { 1, 1 }, .lo = { 0, 4 }, .in = { 1, 40 }, .out = { 1,
			15 } },
		{ .k = { 5, 5 }, .stride = { 1, 1 }, .dil = { 1, 1 }, .lo = { 2, 2 }, .in = { 3, 3 }, .out = { 3,
			3 } },
	};
	int bad = 0;
	float *x = numbers(20 * 800, 3), *g = numbers(20 * 800, 4);
	x[100] = NAN, x[301] = INFINITY;
	for (int64_t i = 0; i < 400; i++)
		x[500 + i] = (float)(i % 3);            /* ties: the first wins */
	for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
		for (int grad = 0; grad < 2; grad++) {
			Pools s = { .x = x, .g = g, .w = windows[i], .planes = 7, .grad = grad };
			int64_t n = 7 * (grad ? s.w.in[0] * s.w.in[1] : s.w.out[0] * s.w.out[1]);
			float *want = space(n);
			if (grad)
				k_plain_maxpool_grad_f32(NULL, want, g, x, 7, s.w);
			else
				k_plain_maxpool_f32(NULL, want, x, 7, s.w);
			char what[64];
			snprintf(what, sizeof what, "pool %zu%s", i, grad ? ", gradient" : "");
			bad += compare(what, run_pool, &s, want, n, 0, 0, NULL);
			free(want);
		}
	free(x), free(g);
	return group("pools", bad);
}
