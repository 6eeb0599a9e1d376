/* Softmax and its logarithm over one axis, and their gradients from the results; the maximum is subtracted first, so
 * nothing overflows. */
#include "kernels.h"

#include <math.h>

/* Returns the largest of n numbers, `inner` apart; *rest is the sum of exp(x - largest) over the others. */
static float scan(const float *x, int64_t n, int64_t inner, float *rest)
{
	int64_t at = 0;
	float s = 0;
	for (int64_t j = 1; j < n; j++)
		at = x[j * inner] > x[at * inner] || isnan(x[j * inner]) ? j : at;
	for (int64_t j = 0; j < n; j++)
		s += j == at ? 0 : expf(x[j * inner] - x[at * inner]);
	*rest = s;
	return n ? x[at * inner] : -INFINITY;
}

int k_softmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i;
			float rest, top = scan(x + at, n, inner, &rest);
			for (int64_t j = 0; j < n; j++)
				y[at + j * inner] = expf(x[at + j * inner] - top) / (1 + rest);
		}
	return 0;
}

int k_logsoftmax_f32(Ctx *c, float *y, const float *x, int64_t outer, int64_t n, int64_t inner)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i;
			float rest, top = scan(x + at, n, inner, &rest);
			/* subtracted separately: top + log would be rounded at the magnitude of top */
			float log = log1pf(rest);
			for (int64_t j = 0; j < n; j++)
				y[at + j * inner] = x[at + j * inner] - top - log;
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
