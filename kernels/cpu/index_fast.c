/* Operators whose indices are data.  One thread checks all indices first.  Then threads copy rows, or sum columns: a
 * thread owns some columns and adds all rows to them in order, so no two threads add to the same number. */
#include "indices.h"
#include "isa.h"

#include <string.h>

static int64_t from_end(int64_t k, int64_t n)
{
	return k < 0 ? k + n : k;
}

/* ---- rows ---- */

typedef struct Rows {
	unsigned char *y;
	const unsigned char *x;
	const int64_t *index;
	int64_t n, count;
	size_t run;
} Rows;

static void take(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Rows *r = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t from = i / r->count * r->n + from_end(r->index[i % r->count], r->n);
		memcpy(r->y + (size_t)i * r->run, r->x + (size_t)from * r->run, r->run);
	}
}

int k_gather(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count, int64_t width)
{
	int code = check_indices(c, index, count, n);
	if (code)
		return code;
	Rows r = { .y = y, .x = x, .index = index, .n = n, .count = count, .run = (size_t)(inner * width) };
	rt_parallel(c, outer * count, 1 + 16384 / (inner + 1), take, &r);
	return 0;
}

typedef struct ShardRows { Rows r; int64_t first, all; } ShardRows;

static void take_shard(void *arg, int64_t lo, int64_t hi, int thread)
{
	const ShardRows *p = arg;
	const Rows *r = &p->r;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t k = shard_index(r->index[i % r->count], p->all, p->first, r->n);
		if (k < 0)
			memset(r->y + (size_t)i * r->run, 0, r->run);
		else
			memcpy(r->y + (size_t)i * r->run, r->x + (size_t)(i / r->count * r->n + k) * r->run, r->run);
	}
}

int k_gather_shard(Ctx *c, void *y, const void *x, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count, int64_t width, int64_t first, int64_t all)
{
	int code = check_indices(c, index, count, all);
	if (code)
		return code;
	ShardRows p = { .r = { .y = y, .x = x, .index = index, .n = n, .count = count, .run = (size_t)(inner * width) },
		.first = first, .all = all };
	rt_parallel(c, outer * count, 1 + 16384 / (inner + 1), take_shard, &p);
	return 0;
}

typedef struct Sums { float *y; const float *dy; const int64_t *index; int64_t outer, n, inner, count; } Sums;

static void clear(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Sums *s = arg;
	(void)thread;
	memset(s->y + lo, 0, (size_t)(hi - lo) * sizeof *s->y);
}

K_LOOP void add(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Sums *s = arg;
	(void)thread;
	for (int64_t o = 0; o < s->outer; o++)
		for (int64_t i = 0; i < s->count; i++) {
			float *restrict y = s->y + (o * s->n + from_end(s->index[i], s->n)) * s->inner;
			const float *restrict dy = s->dy + (o * s->count + i) * s->inner;
			for (int64_t j = lo; j < hi; j++)
				y[j] += dy[j];
		}
}
K_EACH_ISA(add)

int k_gather_grad_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n, int64_t inner,
	int64_t count)
{
	int code = check_indices(c, index, count, n);
	if (code)
		return code;
	Sums s = { .y = y, .dy = dy, .index = index, .outer = outer, .n = n, .inner = inner, .count = count };
	rt_parallel(c, outer * n * inner, 65536, clear, &s);
	rt_parallel(c, inner, 64, K_PICK(c, add), &s);
	return 0;
}

typedef struct ShardSums { Sums s; int64_t first, all; } ShardSums;

K_LOOP void add_shard(void *arg, int64_t lo, int64_t hi, int thread)
{
	const ShardSums *p = arg;
	const Sums *s = &p->s;
	(void)thread;
	for (int64_t i = 0; i < s->outer * s->count; i++) {
		int64_t k = shard_index(s->index[i % s->count], p->all, p->first, s->n);
		if (k < 0)
			continue;
		float *restrict y = s->y + (i / s->count * s->n + k) * s->inner;
		const float *restrict dy = s->dy + i * s->inner;
		for (int64_t j = lo; j < hi; j++)
			y[j] += dy[j];
	}
}
K_EACH_ISA(add_shard)

int k_gather_grad_shard_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t count, int64_t first, int64_t all)
{
	int code = check_indices(c, index, count, all);
	if (code)
		return code;
	ShardSums p = { .s = { .y = y, .dy = dy, .index = index, .outer = outer, .n = n, .inner = inner,
		.count = count }, .first = first, .all = all };
	rt_parallel(c, outer * n * inner, 65536, clear, &p.s);
	rt_parallel(c, inner, 64, K_PICK(c, add_shard), &p);
	return 0;
}

/* ---- elements ---- */

typedef struct Elements { unsigned char *y; const unsigned char *x; const int64_t *index; KLoops l; int64_t n, stride,
	width; } Elements;

static void pick(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Elements *e = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		const unsigned char *from =
			e->x + (k_offset(&e->l, i) + from_end(e->index[i], e->n) * e->stride) * e->width;
		if (e->width == 4)
			memcpy(e->y + i * 4, from, 4);
		else
			memcpy(e->y + i * e->width, from, (size_t)e->width);
	}
}

int k_gather_elements(Ctx *c, void *y, const void *x, const int64_t *index, KLoops l, int64_t n, int64_t stride,
	int64_t width)
{
	int code = check_indices(c, index, k_count(&l), n);
	Elements e = { .y = y, .x = x, .index = index, .l = l, .n = n, .stride = stride, .width = width };
	if (!code)
		rt_parallel(c, k_count(&l), 4096, pick, &e);
	return code;
}
