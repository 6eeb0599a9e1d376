/* Losses over classes.  One block walks the rows, so the order of the sum is fixed; a label out of range makes the loss
 * NaN, which ends the job when the loss is reported. */
#include "dialect.h"

/* The logarithm of the sum of exp(x - *largest), as in kernels/cpu/loss.c. */
__device__ static float logsum(const float *x, i64 n, i64 inner, float *largest)
{
	float rest;
	*largest = top_of(x, n, inner, &rest);
	return log1pf(rest);
}

/* The sum over all threads of the block, added in the order of threads; every thread gets it. */
__device__ static float total(float v)
{
	__shared__ float part[BLOCK];
	__syncthreads();
	part[threadIdx.x] = v;
	__syncthreads();
	float sum = 0;
	for (int i = 0; i < BLOCK; i++)
		sum += part[i];
	return sum;
}

__device__ static void finish(float *y, float sum, float used, int kind)
{
	sum = total(sum);
	used = total(used);
	if (threadIdx.x == 0 && kind != K_LOSS_NONE)
		*y = kind == K_LOSS_MEAN ? sum / used : sum;
}

__device__ static float share(const float *weight, i64 label, i64 n, i64 ignore)
{
	return label == ignore ? 0.0f : label < 0 || label >= n ? NEG_INF - NEG_INF : weight ? weight[label] : 1.0f;
}

KERNEL g_xent_f32(float *y, float *logp, float *lse, const float *x, const i64 *label, const float *weight, i64 rows,
	i64 n, i64 inner, i64 ignore, int kind)
{
	float sum = 0, used = 0;
	for (i64 i = (i64)threadIdx.x; i < rows; i += BLOCK) {
		i64 at = i / inner * n * inner + i % inner, k = label[i];
		float top, log = logsum(x + at, n, inner, &top), w = share(weight, k, n, ignore), v = w;
		if (logp)
			for (i64 j = 0; j < n; j++)
				logp[at + j * inner] = x[at + j * inner] - top - log;
		if (lse)
			lse[i] = top + log;
		if (k != ignore && k >= 0 && k < n)
			v = w * (top - x[at + k * inner] + log);
		if (kind == K_LOSS_NONE)
			y[i] = v;
		sum += v;
		used += w;
	}
	finish(y, sum, used, kind);
}

KERNEL g_xent_grad_f32(float *dx, const float *x, const i64 *label, const float *weight, const float *lse,
	const float *dy, i64 rows, i64 n, i64 inner, i64 ignore, int kind, i64 first, i64 all)
{
	float used = 0;
	for (i64 i = (i64)threadIdx.x; i < rows; i += BLOCK)
		used += share(weight, label[i], all, ignore);
	used = total(used);
	for (i64 i = (i64)threadIdx.x; i < rows; i += BLOCK) {
		i64 at = i / inner * n * inner + i % inner;
		float w = share(weight, label[i], all, ignore) * dy[kind == K_LOSS_NONE ? i : 0] /
			(kind == K_LOSS_MEAN ? used : 1.0f);
		i64 k = label[i] - first;
		float others = 0;
		for (i64 j = 0; j < n; j++) {
			float p = expf(x[at + j * inner] - lse[i]);
			others += j == k ? 0.0f : p;
			dx[at + j * inner] = w * (j == k ? p - 1.0f : p);
		}
		if (n == all && k >= 0 && k < n)
			dx[at + k * inner] = -w * others;
	}
}

KERNEL g_nll_f32(float *y, const float *x, const i64 *label, const float *weight, i64 rows, i64 n, i64 inner,
	i64 ignore, int kind, i64 first, i64 all)
{
	float sum = 0, used = 0;
	for (i64 i = (i64)threadIdx.x; i < rows; i += BLOCK) {
		i64 at = i / inner * n * inner + i % inner, k = label[i];
		float w = share(weight, k, all, ignore), v = k == ignore || (k >= 0 && k < all) ? 0.0f : w;
		if (k != ignore && k >= first && k < first + n)
			v = -w * x[at + (k - first) * inner];
		if (kind == K_LOSS_NONE)
			y[i] = v;
		sum += v;
		used += w;
	}
	finish(y, sum, used, kind);
}

KERNEL g_sum_exp_f32(float *y, const float *x, const float *top, i64 rows, i64 n, i64 inner)
{
	i64 i = element();
	if (i >= rows)
		return;
	const float *from = x + i / inner * n * inner + i % inner;
	float sum = 0;
	for (i64 j = 0; j < n; j++)
		sum += expf(from[j * inner] - top[i]);
	y[i] = sum;
}

KERNEL g_ahead_f32(float *y, const float *x, const float *own, const i64 *label, i64 rows, i64 n, i64 inner, i64 first)
{
	i64 i = element();
	if (i >= rows)
		return;
	const float *from = x + i / inner * n * inner + i % inner;
	i64 count = 0;
	for (i64 j = 0; j < n; j++) {
		float v = from[j * inner];
		bool behind = v < own[i] || (v == own[i] && first + j >= label[i]);
		count += !behind;
	}
	y[i] = (float)count;
}
