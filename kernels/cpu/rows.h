/* Operations of softmax and losses on a row of neighbouring numbers. */
#ifndef ROWS_H
#define ROWS_H

#include "isa.h"
#include "fastmath.h"

/* Adds K_LANES numbers by halves: the longest chain of dependent additions is short. */
K_LOOP float row_fold(float *s)
{
	for (int j = 0; j < 8; j++)
		s[j] += s[j + 8];
	for (int j = 0; j < 4; j++)
		s[j] += s[j + 4];
	return (s[0] + s[2]) + (s[1] + s[3]);
}

K_LOOP float row_fold_most(float *s)
{
	for (int j = 0; j < 8; j++)
		s[j] = s[j] > s[j + 8] ? s[j] : s[j + 8];
	for (int j = 0; j < 4; j++)
		s[j] = s[j] > s[j + 4] ? s[j] : s[j + 4];
	float a = s[0] > s[2] ? s[0] : s[2], b = s[1] > s[3] ? s[1] : s[3];
	return a > b ? a : b;
}

K_LOOP float row_most(const float *x, int64_t n)
{
	float s[K_LANES];
	int64_t i = 0;
	for (int j = 0; j < K_LANES; j++)
		s[j] = -INFINITY;
	for (; i + K_LANES <= n; i += K_LANES)
		for (int j = 0; j < K_LANES; j++)
			s[j] = x[i + j] > s[j] ? x[i + j] : s[j];
	for (int j = 0; i < n; i++, j++)
		s[j] = x[i] > s[j] ? x[i] : s[j];
	return row_fold_most(s);
}

/* The sum of exp(scale x - top); with keep the exponentials are also written to y, which may be x.  A long row (a large
 * vocabulary) is summed in pieces. */
K_LOOP float row_exps(const float *x, int64_t n, float scale, float top, bool keep, float *y)
{
	float sum = 0;
	for (int64_t at = 0; at < n; at += 4096) {
		int64_t m = n - at < 4096 ? n - at : 4096, i = 0;
		float s[K_LANES] = { 0 };
		for (; i + K_LANES <= m; i += K_LANES)
			K_VECTOR for (int j = 0; j < K_LANES; j++) {
				float e = fast_exp_belowf(fmaf(x[at + i + j], scale, -top));
				s[j] += e;
				if (keep)
					y[at + i + j] = e;
			}
		for (int j = 0; i < m; i++, j++) {
			float e = fast_exp_belowf(fmaf(x[at + i], scale, -top));
			s[j] += e;
			if (keep)
				y[at + i] = e;
		}
		sum += row_fold(s);
	}
	return sum;
}

/* The sum of x, or of x z. */
K_LOOP float row_sum(const float *x, const float *z, int64_t n)
{
	float s[K_LANES] = { 0 };
	int64_t i = 0;
	for (; i + K_LANES <= n; i += K_LANES)
		for (int j = 0; j < K_LANES; j++)
			s[j] += z ? x[i + j] * z[i + j] : x[i + j];
	for (int j = 0; i < n; i++, j++)
		s[j] += z ? x[i] * z[i] : x[i];
	return row_fold(s);
}

#endif
