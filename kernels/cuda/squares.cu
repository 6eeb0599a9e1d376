/* Sums of squares: one block adds the terms of a sum in order; its threads share out the numbers of a term. */
#include "dialect.h"

/* The sum over all threads of the block, added in the order of threads. */
__device__ static double total(double v)
{
	__shared__ double part[BLOCK];
	__syncthreads();
	part[threadIdx.x] = v;
	__syncthreads();
	double sum = 0;
	for (int i = 0; i < BLOCK; i++)
		sum += part[i];
	return sum;
}

/* more: y holds the sum of earlier terms. */
KERNEL g_sum_squares_f32(float *y, KTerms terms, int more)
{
	float sum = 0;
	for (int t = 0; t < terms.count; t++) {
		const float *x = terms.x[t];
		float v = 0;
		if (terms.n[t] < 0) {
			v = *x;
		} else {
			double s = 0;
			for (i64 i = (i64)threadIdx.x; i < terms.n[t]; i += BLOCK)
				s += (double)x[i] * (double)x[i];
			v = (float)total(s);
		}
		sum = t ? sum + v : more ? *y + v : v;
	}
	if (threadIdx.x == 0)
		*y = sum;
}
