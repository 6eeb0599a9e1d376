/* Softmax and its logarithm over one axis: one thread per row. */
#include "dialect.h"

/* The largest, and the sum of exp(x - largest) of the others. */
__device__ static float scan(const float *x, i64 n, i64 inner, float *rest)
{
	i64 at = 0;
	float s = 0;
	for (i64 j = 1; j < n; j++)
		at = x[j * inner] > x[at * inner] || x[j * inner] != x[j * inner] ? j : at;
	for (i64 j = 0; j < n; j++)
		s += j == at ? 0.0f : expf(x[j * inner] - x[at * inner]);
	*rest = s;
	return n ? x[at * inner] : NEG_INF;
}

KERNEL g_softmax_f32(float *y, const float *x, i64 rows, i64 n, i64 inner)
{
	i64 i = element();
	if (i >= rows)
		return;
	i64 at = i / inner * n * inner + i % inner;
	float rest, top = scan(x + at, n, inner, &rest);
	for (i64 j = 0; j < n; j++)
		y[at + j * inner] = expf(x[at + j * inner] - top) / (1.0f + rest);
}

KERNEL g_logsoftmax_f32(float *y, const float *x, i64 rows, i64 n, i64 inner)
{
	i64 i = element();
	if (i >= rows)
		return;
	i64 at = i / inner * n * inner + i % inner;
	float rest, top = scan(x + at, n, inner, &rest), log = log1pf(rest);
	for (i64 j = 0; j < n; j++)
		y[at + j * inner] = x[at + j * inner] - top - log;
}

KERNEL g_softmax_grad_f32(float *dx, const float *dy, const float *y, i64 rows, i64 n, i64 inner)
{
	i64 i = element();
	if (i >= rows)
		return;
	i64 at = i / inner * n * inner + i % inner;
	float sum = 0;
	for (i64 j = 0; j < n; j++)
		sum += dy[at + j * inner] * y[at + j * inner];
	for (i64 j = 0; j < n; j++)
		dx[at + j * inner] = y[at + j * inner] * (dy[at + j * inner] - sum);
}

KERNEL g_logsoftmax_grad_f32(float *dx, const float *dy, const float *y, i64 rows, i64 n, i64 inner)
{
	i64 i = element();
	if (i >= rows)
		return;
	i64 at = i / inner * n * inner + i % inner;
	float sum = 0;
	for (i64 j = 0; j < n; j++)
		sum += dy[at + j * inner];
	for (i64 j = 0; j < n; j++)
		dx[at + j * inner] = dy[at + j * inner] - expf(y[at + j * inner]) * sum;
}
