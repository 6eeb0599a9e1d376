/* Softmax and its logarithm over one axis, and their gradients from the results; the maximum is subtracted first, so nothing overflows. */
#include "kernels.h"

#include <math.h>

/* The largest of n numbers, inner apart, and the sum of exp(x - largest). */
static float scan(const float *x, int64_t n, int64_t inner, float *sum)
{
	float top = -INFINITY, s = 0;
	for (int64_t j = 0; j < n; j++)
		top = fmaxf(top, x[j * inner]);
	for (int64_t j = 0; j < n; j++)
		s += expf(x[j * inner] - top);
	*sum = s;
	return top;
}

int k_softmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i;
			float sum, top = scan(x + at, n, inner, &sum);
			for (int64_t j = 0; j < n; j++)
				y[at + j * inner] = expf(x[at + j * inner] - top) / sum;
		}
	return 0;
}

int k_logsoftmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i;
			float sum, top = scan(x + at, n, inner, &sum);
			float shift = top + logf(sum);
			for (int64_t j = 0; j < n; j++)
				y[at + j * inner] = x[at + j * inner] - shift;
		}
	return 0;
}

int k_softmax_grad_f32(Ctx *c, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i;
			float sum = 0;
			for (int64_t j = 0; j < n; j++)
				sum += dy[at + j * inner] * y[at + j * inner];
			for (int64_t j = 0; j < n; j++)
				dx[at + j * inner] = y[at + j * inner] * (dy[at + j * inner] - sum);
		}
	return 0;
}

int k_logsoftmax_grad_f32(Ctx *c, float *dx, const float *dy, const float *y, int64_t outer, int64_t n, int64_t inner)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i;
			float sum = 0;
			for (int64_t j = 0; j < n; j++)
				sum += dy[at + j * inner];
			for (int64_t j = 0; j < n; j++)
				dx[at + j * inner] = dy[at + j * inner] - expf(y[at + j * inner]) * sum;
		}
	return 0;
}
