/* Softmax and its logarithm over one axis: one thread per row. */
#include "dialect.h"

KERNEL g_softmax_f32(float *y, const float *x, i64 rows, i64 n, i64 inner)
{
	i64 i = element();
	if (i >= rows)
		return;
	i64 at = i / inner * n * inner + i % inner;
	float rest, top = top_of(x + at, n, inner, &rest);
	for (i64 j = 0; j < n; j++)
		y[at + j * inner] = expf(x[at + j * inner] - top) / (1.0f + rest);
}

KERNEL g_logsoftmax_f32(float *y, const float *x, i64 rows, i64 n, i64 inner)
{
	i64 i = element();
	if (i >= rows)
		return;
	i64 at = i / inner * n * inner + i % inner;
	float rest, top = top_of(x + at, n, inner, &rest), log = log1pf(rest);
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
