/* Losses over classes.  One block walks the rows, so the sum has one order; a label that is no class makes the loss a NaN,
 * which ends the job where the loss is reported. */
#include "dialect.h"

enum { LOSS_NONE, LOSS_SUM, LOSS_MEAN };

__device__ static float logsum(const float *x, i64 n, i64 inner)
{
	float top = NEG_INF, s = 0;
	for (i64 j = 0; j < n; j++)
		top = fmaxf(top, x[j * inner]);
	for (i64 j = 0; j < n; j++)
		s += expf(x[j * inner] - top);
	return top + logf(s);
}

/* Each thread holds a partial sum and a count; the first adds them up in the order of threads. */
__device__ static void finish(float *y, float sum, i64 used, int kind)
{
	__shared__ float sums[BLOCK];
	__shared__ i64 count[BLOCK];
	sums[threadIdx.x] = sum;
	count[threadIdx.x] = used;
	__syncthreads();
	if (threadIdx.x != 0 || kind == LOSS_NONE)
		return;
	for (int i = 1; i < BLOCK; i++) {
		sum += sums[i];
		used += count[i];
	}
	*y = kind == LOSS_MEAN ? sum / (float)used : sum;
}

KERNEL g_xent_f32(float *y, float *logp, const float *x, const i64 *label, i64 rows, i64 n, i64 inner, i64 ignore, int kind)
{
	float sum = 0;
	i64 used = 0;
	for (i64 i = (i64)threadIdx.x; i < rows; i += BLOCK) {
		i64 at = i / inner * n * inner + i % inner, k = label[i];
		float shift = logsum(x + at, n, inner), v = 0;
		if (logp)
			for (i64 j = 0; j < n; j++)
				logp[at + j * inner] = x[at + j * inner] - shift;
		if (k != ignore) {
			v = k < 0 || k >= n ? NEG_INF - NEG_INF : shift - x[at + k * inner];
			used++;
		}
		if (kind == LOSS_NONE)
			y[i] = v;
		sum += v;
	}
	finish(y, sum, used, kind);
}

KERNEL g_nll_f32(float *y, const float *x, const i64 *label, i64 rows, i64 n, i64 inner, i64 ignore, int kind)
{
	float sum = 0;
	i64 used = 0;
	for (i64 i = (i64)threadIdx.x; i < rows; i += BLOCK) {
		i64 at = i / inner * n * inner + i % inner, k = label[i];
		float v = 0;
		if (k != ignore) {
			v = k < 0 || k >= n ? NEG_INF - NEG_INF : -x[at + k * inner];
			used++;
		}
		if (kind == LOSS_NONE)
			y[i] = v;
		sum += v;
	}
	finish(y, sum, used, kind);
}
