/* Kernels that only move elements, of any width in bytes.  Threads share the elements of the result. */
#include "indices.h"
#include "turns.h"

#include <string.h>

/* The arguments of all kernels of this file; each kernel sets those that it uses. */
typedef struct Job {
	void *y;
	const void *x, *value;
	const int64_t *index;
	int64_t width, offset, n, inner, time, k, first, all;
	int64_t bstride, tstride;
	KLoops loops;
	const KPad *pad;
	const KNd *nd;
	const uint8_t *keep;
	int64_t nkeep, kept;
	bool upper;
} Job;

static const char zero[16];

/* y[i] = x[j]. */
static void set(const Job *b, int64_t i, const void *x, int64_t j)
{
	memcpy((char *)b->y + i * b->width, (const char *)x + j * b->width, (size_t)b->width);
}

static void fill(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++)
		set(b, b->offset + k_offset(&b->loops, i), b->value, 0);
}

int k_fill(Ctx *c, void *y, int64_t offset, KLoops l, const void *value, int64_t width)
{
	return turns(c, k_count(&l), 1, fill,
		&(Job){ .y = y, .offset = offset, .loops = l, .value = value, .width = width });
}

static void pad(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t at = pad_behind(b->pad, i);
		set(b, i, at < 0 ? b->value : b->x, at < 0 ? 0 : at);
	}
}

int k_pad(Ctx *c, void *y, const void *x, const void *value, const KPad *p, int64_t width)
{
	return turns(c, pad_count(p, p->out), 1, pad,
		&(Job){ .y = y, .x = x, .value = value ? value : zero, .pad = p, .width = width });
}

static void trilu(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t right = i % b->inner - i / b->inner % b->n;
		bool keep = b->upper ? right >= b->k : right <= b->k;
		set(b, i, keep ? b->x : zero, keep ? i : 0);
	}
}

int k_trilu(Ctx *c, void *y, const void *x, int64_t batch, int64_t rows, int64_t cols, int64_t k, bool upper,
	int64_t width)
{
	return turns(c, batch * rows * cols, 1, trilu,
		&(Job){ .y = y, .x = x, .n = rows, .inner = cols, .k = k, .upper = upper, .width = width });
}

static void reverse(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t at = i / b->time * b->bstride, t = i % b->time, len = b->index[i / b->time];
		set(b, at + t * b->tstride, b->x, at + (t < len ? len - 1 - t : t) * b->tstride);
	}
}

int k_reverse_sequence(Ctx *c, void *y, const void *x, const int64_t *len, int64_t batch, int64_t time,
	int64_t bstride, int64_t tstride, int64_t width)
{
	for (int64_t b = 0; b < batch; b++)
		if (len[b] < 0 || len[b] > time)
			return rt_error(c, RT_DATA, "sequence %lld has length %lld, but there are %lld positions",
				(long long)b, (long long)len[b], (long long)time);
	return turns(c, batch * time, width / 4, reverse, &(Job){ .y = y, .x = x, .index = len, .time = time,
		.bstride = bstride, .tstride = tstride, .width = width });
}

static void gather_nd(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++)
		memcpy((char *)b->y + i * b->nd->run * b->width,
			(const char *)b->x + nd_place(b->index, i, b->nd) * b->width, (size_t)(b->nd->run * b->width));
}

int k_gather_nd(Ctx *c, void *y, const void *x, const int64_t *index, const KNd *d, int64_t width)
{
	int code = check_tuples(c, index, d);
	return code ? code : turns(c, d->batch * d->many, d->run, gather_nd,
		&(Job){ .y = y, .x = x, .index = index, .nd = d, .width = width });
}

static void one_hot(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t at = b->index[i / b->inner / b->n * b->inner + i % b->inner];
		set(b, i, b->value, b->first + i / b->inner % b->n == (at < 0 ? at + b->all : at));
	}
}

int k_one_hot_shard(Ctx *c, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth,
	int64_t inner, int64_t width, int64_t first, int64_t all)
{
	return turns(c, outer * depth * inner, 1, one_hot, &(Job){ .y = y, .index = index, .value = values, .n = depth,
		.inner = inner, .width = width, .first = first, .all = all });
}

int k_one_hot(Ctx *c, void *y, const int64_t *index, const void *values, int64_t outer, int64_t depth, int64_t inner,
	int64_t width)
{
	return k_one_hot_shard(c, y, index, values, outer, depth, inner, width, 0, depth);
}

/* Copies the kept slices of outer indices lo .. hi - 1. */
static void compress(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	size_t run = (size_t)(b->inner * b->width);
	(void)thread;
	for (int64_t o = lo; o < hi; o++) {
		char *to = (char *)b->y + (size_t)(o * b->kept) * run;
		for (int64_t i = 0; i < b->n && i < b->nkeep; i++)
			if (b->keep[i]) {
				memcpy(to, (const char *)b->x + (size_t)(o * b->n + i) * run, run);
				to += run;
			}
	}
}

int k_compress(Ctx *c, void *y, const void *x, const uint8_t *keep, int64_t nkeep, int64_t outer, int64_t n,
	int64_t inner, int64_t width)
{
	Job b = { .y = y, .x = x, .keep = keep, .nkeep = nkeep, .n = n, .inner = inner, .width = width };
	for (int64_t i = 0; i < n && i < nkeep; i++)
		b.kept += keep[i] != 0;
	return turns(c, outer, n * inner, compress, &b);
}
