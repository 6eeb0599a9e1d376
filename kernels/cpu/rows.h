/* What softmax and the losses over classes do with a row of numbers that lie next to each other. */
#ifndef ROWS_H
#define ROWS_H

#include "isa.h"
#include "fastmath.h"

K_LOOP float row_most(const float *x, int64_t n)
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

/* The sum of exp(x - top).  A row of a large vocabulary is summed in pieces. */
K_LOOP float row_exps(const float *x, int64_t n, float top)
{
	float sum = 0;
	for (int64_t at = 0; at < n; at += 4096) {
		int64_t m = n - at < 4096 ? n - at : 4096, i = 0;
		float s[K_LANES] = { 0 }, piece = 0;
		for (; i + K_LANES <= m; i += K_LANES)
			for (int j = 0; j < K_LANES; j++)
				s[j] += fast_exp_belowf(x[at + i + j] - top);
		for (int j = 0; i < m; i++, j++)
			s[j] += fast_exp_belowf(x[at + i] - top);
		for (int j = 0; j < K_LANES; j++)
			piece += s[j];
		sum += piece;
	}
	return sum;
}

/* The sum of x, or of x z. */
K_LOOP float row_sum(const float *x, const float *z, int64_t n)
{
	float s[K_LANES] = { 0 }, sum = 0;
	int64_t i = 0;
	for (; i + K_LANES <= n; i += K_LANES)
		for (int j = 0; j < K_LANES; j++)
			s[j] += z ? x[i + j] * z[i + j] : x[i + j];
	for (int j = 0; i < n; i++, j++)
		s[j] += z ? x[i] * z[i] : x[i];
	for (int j = 0; j < K_LANES; j++)
		sum += s[j];
	return sum;
}

#endif
