/* Reductions over any set of axes, in row-major order of the reduced axes. */
#include "kernels.h"

#include <math.h>

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

/* A mean divides by `all`; the elements here may be some of them. */
static void reduce(float *y, const float *x, KLoops keep, KLoops over, KReduce op, int64_t all)
{
	static const float neutral[] = {
		[K_SUM] = 0, [K_MEAN] = 0, [K_MAX] = -INFINITY, [K_MIN] = INFINITY, [K_PROD] = 1,
	};
	int64_t rows = k_count(&keep), n = k_count(&over);
	for (int64_t i = 0; i < rows; i++)
		y[i] = neutral[op];
	/* The loop over results is inside: x is then read in order if the reduced axes come first, as in the gradient
	 * of a bias. */
	for (int64_t j = 0; j < n; j++) {
		const float *from = x + k_offset(&over, j);
		for (int64_t i = 0; i < rows; i++)
			y[i] = join(op, y[i], from[k_offset(&keep, i)]);
	}
	if (op == K_MEAN)
		for (int64_t i = 0; i < rows; i++)
			y[i] /= (float)all;
}

int k_reduce_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, KReduce op)
{
	(void)c;
	reduce(y, x, keep, over, op, k_count(&over));
	return 0;
}

int k_mean_shard_f32(Ctx *c, float *y, const float *x, KLoops keep, KLoops over, int64_t all)
{
	(void)c;
	reduce(y, x, keep, over, K_MEAN, all);
	return 0;
}
