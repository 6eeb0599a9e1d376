/* Softmax, its logarithm, and their gradients: by rows if the axis is the last, else one column of the inner axes after
 * the other. */
#include "kernels.h"
#include "rows.h"

typedef enum { SOFT, LOG, SOFT_GRAD, LOG_GRAD } Kind;
typedef struct Soft { float *y; const float *x, *dy; int64_t n, inner; Kind kind; } Soft;

K_LOOP void one_row(const Soft *s, float *y, const float *x, const float *dy)
{
	int64_t n = s->n;
	if (s->kind == SOFT) {
		float top = row_most(x, n);
		K_VECTOR for (int64_t j = 0; j < n; j++)
			y[j] = fast_exp_belowf(x[j] - top);
		float scale = 1 / row_sum(y, NULL, n);
		K_VECTOR for (int64_t j = 0; j < n; j++)
			y[j] *= scale;
	} else if (s->kind == LOG) {
		float top = row_most(x, n), log = logf(row_exps(x, n, 1, top, false, NULL));
		K_VECTOR for (int64_t j = 0; j < n; j++)
			y[j] = x[j] - top - log;
	} else if (s->kind == SOFT_GRAD) {
		float sum = row_sum(dy, x, n);
		K_VECTOR for (int64_t j = 0; j < n; j++)
			y[j] = x[j] * (dy[j] - sum);
	} else {
		float sum = row_sum(dy, NULL, n);
		K_VECTOR for (int64_t j = 0; j < n; j++)
			y[j] = dy[j] - fast_expf(x[j]) * sum;
	}
}

static void one_column(const Soft *s, float *y, const float *x, const float *dy)
{
	int64_t all = s->n * s->inner, step = s->inner;
	float top = -INFINITY, sum = 0;
	if (s->kind == SOFT || s->kind == LOG) {
		for (int64_t j = 0; j < all; j += step)
			top = x[j] > top ? x[j] : top;
		for (int64_t j = 0; j < all; j += step)
			sum += fast_exp_belowf(x[j] - top);
		float log = logf(sum);
		for (int64_t j = 0; j < all; j += step)
			y[j] = s->kind == LOG ? x[j] - top - log : fast_exp_belowf(x[j] - top) / sum;
		return;
	}
	for (int64_t j = 0; j < all; j += step)
		sum += s->kind == SOFT_GRAD ? dy[j] * x[j] : dy[j];
	for (int64_t j = 0; j < all; j += step)
		y[j] = s->kind == SOFT_GRAD ? x[j] * (dy[j] - sum) : dy[j] - fast_expf(x[j]) * sum;
}

K_LOOP void rows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Soft *s = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t at = i / s->inner * s->n * s->inner + i % s->inner;
		const float *dy = s->dy ? s->dy + at : NULL;
		if (s->inner == 1)
			one_row(s, s->y + at, s->x + at, dy);
		else
			one_column(s, s->y + at, s->x + at, dy);
	}
}
K_EACH_ISA(rows)

static int run(Ctx *c, Kind kind, float *y, const float *x, const float *dy, int64_t outer, int64_t n, int64_t inner)
{
	Soft s = { .y = y, .x = x, .dy = dy, .n = n, .inner = inner, .kind = kind };
	rt_parallel(c, outer * inner, 1 + 4096 / (n + 1), K_PICK(c, rows), &s);
	return 0;
}

int k_softmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	return run(c, SOFT, y, x, NULL, outer, n, inner);
}

int k_logsoftmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	return run(c, LOG, y, x, NULL, outer, n, inner);
}

int k_softmax_grad_f32(Ctx *c, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner)
{
	return run(c, SOFT_GRAD, dx, y, dy, outer, n, inner);
}

int k_logsoftmax_grad_f32(Ctx *c, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner)
{
	return run(c, LOG_GRAD, dx, y, dy, outer, n, inner);
}
