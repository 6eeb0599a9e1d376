/* Reductions over any set of axes.  The loop depends on whether the innermost axis of x is kept or reduced:
 *
 *   kept          columns side by side: rows are added to them, in order             the gradient of a bias
 *   reduced       K_LANES partial results along the run, joined in order             row sums
 *
 * Long sums are cut into pieces of 256 terms per lane or column, which are summed separately: the error grows with the
 * number of pieces plus the terms of a piece, not with all terms.  The order never depends on the threads. */
#include "kernels.h"
#include "isa.h"

#include <math.h>

enum { PIECE = 256, COLS = 256 };

typedef struct Reduce {
	float *y;
	const float *x;
	KLoops keep, over;              /* without the axis that is the run */
	int64_t run, step;              /* its length, and its stride */
	int64_t rows;                   /* iterations of the loops `over` */
	int64_t blocks;                 /* innermost axis kept: pieces of the run */
	float scale;
	KReduce op;
} Reduce;

K_LOOP float join(KReduce op, float a, float b)
{
	switch (op) {
	case K_MAX: return b > a || b != b ? b : a;
	case K_MIN: return b < a || b != b ? b : a;
	case K_PROD: return a * b;
	case K_SUM: case K_MEAN: break;
	}
	return a + b;
}

K_LOOP float neutral(KReduce op)
{
	return op == K_MAX ? -INFINITY : op == K_MIN ? INFINITY : op == K_PROD ? 1 : 0;
}

/* Advances some loops, as an odometer: the next offset in x. */
static int64_t count_on(const KLoops *l, int64_t *idx, int64_t at)
{
	for (int a = l->n - 1; a >= 0; a--) {
		at += l->stride[a];
		if (++idx[a] < l->len[a])
			return at;
		at -= l->len[a] * l->stride[a];
		idx[a] = 0;
	}
	return at;
}

/* n neighbouring columns of y, from x on. */
K_LOOP void columns(const Reduce *r, KReduce op, float *restrict y, const float *restrict x, int64_t n)
{
	float piece[COLS];
	int64_t idx[RT_AXES] = { 0 }, at = 0;
	for (int64_t j = 0; j < n; j++)
		y[j] = neutral(op);
	for (int64_t i = 0; i < r->rows; i += PIECE) {
		int64_t m = r->rows - i < PIECE ? r->rows - i : PIECE;
		for (int64_t j = 0; j < n; j++)
			piece[j] = neutral(op);
		for (int64_t k = 0; k < m; k++, at = count_on(&r->over, idx, at)) {
			const float *restrict from = x + at;
			for (int64_t j = 0; j < n; j++)
				piece[j] = join(op, piece[j], from[j]);
		}
		for (int64_t j = 0; j < n; j++)
			y[j] = join(op, y[j], piece[j]);
	}
	for (int64_t j = 0; j < n && r->op == K_MEAN; j++)
		y[j] *= r->scale;
}

K_LOOP float lanes_of(KReduce op, const float *s)
{
	float t = s[0];
	for (int j = 1; j < K_LANES; j++)
		t = join(op, t, s[j]);
	return t;
}

/* The reduction of a contiguous run of x. */
K_LOOP float run_of(KReduce op, const float *restrict x, int64_t n)
{
	float all = neutral(op);
	for (int64_t i = 0; i < n; i += PIECE * K_LANES) {
		int64_t m = n - i < PIECE * K_LANES ? n - i : PIECE * K_LANES, k = 0;
		float s[K_LANES];
		for (int j = 0; j < K_LANES; j++)
			s[j] = neutral(op);
		for (; k + K_LANES <= m; k += K_LANES)
			for (int j = 0; j < K_LANES; j++)
				s[j] = join(op, s[j], x[i + k + j]);
		for (int j = 0; k < m; k++, j++)
			s[j] = join(op, s[j], x[i + k]);
		all = join(op, all, lanes_of(op, s));
	}
	return all;
}

K_LOOP float whole(const Reduce *r, KReduce op, const float *x)
{
	int64_t idx[RT_AXES] = { 0 }, at = 0;
	float all = neutral(op);
	for (int64_t i = 0; i < r->rows; i += PIECE) {
		int64_t m = r->rows - i < PIECE ? r->rows - i : PIECE;
		float piece = neutral(op);
		for (int64_t k = 0; k < m; k++, at = count_on(&r->over, idx, at)) {
			float one = neutral(op);
			if (r->step == 1)
				one = run_of(op, x + at, r->run);
			else
				for (int64_t j = 0; j < r->run; j++)
					one = join(op, one, x[at + j * r->step]);
			piece = join(op, piece, one);
		}
		all = join(op, all, piece);
	}
	return r->op == K_MEAN ? all * r->scale : all;
}

K_LOOP void stays_op(const Reduce *r, KReduce op, int64_t lo, int64_t hi)
{
	for (int64_t i = lo; i < hi; i++) {
		int64_t from = i % r->blocks * COLS, n = r->run - from < COLS ? r->run - from : COLS,
			row = i / r->blocks;
		columns(r, op, r->y + row * r->run + from, r->x + k_offset(&r->keep, row) + from, n);
	}
}

K_LOOP void goes_op(const Reduce *r, KReduce op, int64_t lo, int64_t hi)
{
	for (int64_t i = lo; i < hi; i++)
		r->y[i] = whole(r, op, r->x + k_offset(&r->keep, i));
}

/* Compiles each reduction for each instruction set.  A mean is a sum that is scaled. */
#define EACH(WHAT) \
	K_LOOP void WHAT(void *arg, int64_t lo, int64_t hi, int thread) \
	{ \
		const Reduce *r = arg; \
		(void)thread; \
		switch (r->op) { \
		case K_MAX: WHAT##_op(r, K_MAX, lo, hi); break; \
		case K_MIN: WHAT##_op(r, K_MIN, lo, hi); break; \
		case K_PROD: WHAT##_op(r, K_PROD, lo, hi); break; \
		case K_SUM: case K_MEAN: WHAT##_op(r, K_SUM, lo, hi); break; \
		} \
	} \
	K_EACH_ISA(WHAT)

EACH(stays)
EACH(goes)

/* A mean divides by `whole`; the elements here may be some of them. */
static void reduce(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, KReduce op, int64_t whole)
{
	int64_t kept = k_count(&keep), n = k_count(&over);
	Reduce r = { .y = y, .x = x, .keep = keep, .over = over, .run = 1, .step = 1,
		.scale = 1 / (float)whole, .op = op };
	if (keep.n && keep.stride[keep.n - 1] == 1) {
		r.run = keep.len[--r.keep.n];
		r.rows = n;
		r.blocks = (r.run + COLS - 1) / COLS;
		int64_t all = k_count(&r.keep) * r.blocks;
		rt_parallel(c, all, 1 + 16384 / (n * COLS + 1), K_PICK(c, stays), &r);
		return;
	}
	if (over.n) {
		r.run = over.len[over.n - 1];
		r.step = over.stride[over.n - 1];
		r.over.n--;
	}
	r.rows = k_count(&r.over);
	rt_parallel(c, kept, 1 + 16384 / (n + 1), K_PICK(c, goes), &r);
}

int k_reduce_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, KReduce op)
{
	reduce(c, y, x, keep, over, op, k_count(&over));
	return 0;
}

int k_mean_shard_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, int64_t all)
{
	reduce(c, y, x, keep, over, K_MEAN, all);
	return 0;
}
