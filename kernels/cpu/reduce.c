/* Reductions over any set of axes, in row-major order of the axes that vanish. */
#include "kernels.h"

#include <math.h>

static int64_t place(const KLoops *l, int64_t i)
{
	int64_t at = 0;
	for (int a = l->n - 1; a >= 0; a--) {
		at += i % l->len[a] * l->stride[a];
		i /= l->len[a];
	}
	return at;
}

static int64_t count(const KLoops *l)
{
	int64_t n = 1;
	for (int a = 0; a < l->n; a++)
		n *= l->len[a];
	return n;
}

static float join(KReduce op, float a, float b)
{
	switch (op) {
	case K_MAX: return b > a || isnan(b) ? b : a;
	case K_MIN: return b < a || isnan(b) ? b : a;
	case K_PROD: return a * b;
	case K_SUM: case K_MEAN: break;
	}
	return a + b;
}

int k_reduce_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, KReduce op)
{
	(void)c;
	static const float neutral[] = { [K_SUM] = 0, [K_MEAN] = 0, [K_MAX] = -INFINITY, [K_MIN] = INFINITY, [K_PROD] = 1 };
	int64_t rows = count(&keep), n = count(&over);
	for (int64_t i = 0; i < rows; i++)
		y[i] = neutral[op];
	/* Rows inside: x is read in order wherever the vanishing axes come first, as they do in a gradient of a bias. */
	for (int64_t j = 0; j < n; j++) {
		const float *from = x + place(&over, j);
		for (int64_t i = 0; i < rows; i++)
			y[i] = join(op, y[i], from[place(&keep, i)]);
	}
	if (op == K_MEAN)
		for (int64_t i = 0; i < rows; i++)
			y[i] /= (float)n;
	return 0;
}
