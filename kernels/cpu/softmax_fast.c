/* Softmax and its logarithm: rows where the axis is the last, else one column of the inner axes after the other. */
#include "kernels.h"
#include "isa.h"
#include "fastmath.h"

typedef struct Soft { float *y; const float *x; int64_t n, inner; bool log; } Soft;

K_LOOP float most(const float *restrict x, int64_t n)
{
	float s[K_LANES], top = -INFINITY;
	int64_t i = 0;
	for (int j = 0; j < K_LANES; j++)
		s[j] = -INFINITY;
	for (; i + K_LANES <= n; i += K_LANES)
		for (int j = 0; j < K_LANES; j++)
			s[j] = x[i + j] > s[j] ? x[i + j] : s[j];
	for (int j = 0; i < n; i++, j++)
		s[j] = x[i] > s[j] ? x[i] : s[j];
	for (int j = 0; j < K_LANES; j++)
		top = s[j] > top ? s[j] : top;
	return top;
}

/* y = exp(x - top), where y is wanted; the sum of it. */
K_LOOP float exps(float *restrict y, const float *restrict x, int64_t n, float top)
{
	float s[K_LANES] = { 0 }, sum = 0;
	int64_t i = 0;
	for (; i + K_LANES <= n; i += K_LANES)
		for (int j = 0; j < K_LANES; j++) {
			float e = fast_expf(x[i + j] - top);
			if (y)
				y[i + j] = e;
			s[j] += e;
		}
	for (int j = 0; i < n; i++, j++) {
		float e = fast_expf(x[i] - top);
		if (y)
			y[i] = e;
		s[j] += e;
	}
	for (int j = 0; j < K_LANES; j++)
		sum += s[j];
	return sum;
}

K_LOOP void row(const Soft *s, float *restrict y, const float *restrict x)
{
	float top = most(x, s->n);
	if (s->log) {
		float shift = top + logf(exps(NULL, x, s->n, top));
		for (int64_t j = 0; j < s->n; j++)
			y[j] = x[j] - shift;
		return;
	}
	float scale = 1 / exps(y, x, s->n, top);
	for (int64_t j = 0; j < s->n; j++)
		y[j] *= scale;
}

static void column(const Soft *s, float *y, const float *x)
{
	float top = -INFINITY, sum = 0;
	for (int64_t j = 0; j < s->n; j++)
		top = x[j * s->inner] > top ? x[j * s->inner] : top;
	for (int64_t j = 0; j < s->n; j++)
		sum += fast_expf(x[j * s->inner] - top);
	float shift = top + logf(sum);
	for (int64_t j = 0; j < s->n; j++)
		y[j * s->inner] = s->log ? x[j * s->inner] - shift : fast_expf(x[j * s->inner] - top) / sum;
}

K_LOOP void rows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Soft *s = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t at = i / s->inner * s->n * s->inner + i % s->inner;
		if (s->inner == 1)
			row(s, s->y + at, s->x + at);
		else
			column(s, s->y + at, s->x + at);
	}
}
K_EACH_ISA(rows)

int k_softmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	Soft s = { y, x, n, inner, false };
	rt_parallel(c, outer * inner, 1 + 4096 / (n + 1), K_PICK(c, rows), &s);
	return 0;
}

int k_logsoftmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	Soft s = { y, x, n, inner, true };
	rt_parallel(c, outer * inner, 1 + 4096 / (n + 1), K_PICK(c, rows), &s);
	return 0;
}
