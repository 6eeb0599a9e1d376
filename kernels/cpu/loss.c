/* Losses over classes.  A label out of range ends the job.
 * A loss is (top - score of the label) + log(sum of exp(score - top)), in this order: for a confident prediction both
 * are small, and neither is rounded at the magnitude of the scores, as top + log(sum) would be. */
#include "kernels.h"

#include <math.h>

/* The logarithm of the sum of exp(x - *largest): log1p of the sum over the others, which keeps small terms. */
static float logsum(const float *x, int64_t n, int64_t inner, float *largest)
{
	int64_t at = 0;
	float s = 0;
	for (int64_t j = 1; j < n; j++)
		at = x[j * inner] > x[at * inner] || isnan(x[j * inner]) ? j : at;
	for (int64_t j = 0; j < n; j++)
		s += j == at ? 0 : expf(x[j * inner] - x[at * inner]);
	*largest = n ? x[at * inner] : -INFINITY;
	return log1pf(s);
}

static int bad_label(Ctx *c, int64_t row, int64_t label, int64_t n)
{
	return rt_error(c, RT_DATA, "row %lld has label %lld, but there are %lld classes", (long long)row,
		(long long)label, (long long)n);
}

/* The weight of a label: that of its class, or 0 if it is ignored.  *bad is set if it is out of range. */
static float share(const float *weight, int64_t label, int64_t n, int64_t ignore, bool *bad)
{
	if (label == ignore)
		return 0;
	*bad = label < 0 || label >= n;
	return *bad ? 0 : weight ? weight[label] : 1;
}

int k_xent_f32(Ctx *c, float *y, float *logp, float *lse, const float *x, const int64_t *label, const float *weight,
	int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	float sum = 0, used = 0;
	bool bad = false;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i, row = o * inner + i;
			float top, log = logsum(x + at, n, inner, &top),
				w = share(weight, label[row], n, ignore, &bad), v = 0;
			if (bad)
				return bad_label(c, row, label[row], n);
			if (logp)
				for (int64_t j = 0; j < n; j++)
					logp[at + j * inner] = x[at + j * inner] - top - log;
			if (lse)
				lse[row] = top + log;
			if (label[row] != ignore)
				v = w * (top - x[at + label[row] * inner] + log);
			if (kind == K_LOSS_NONE)
				y[row] = v;
			sum += v;
			used += w;
		}
	if (kind != K_LOSS_NONE)
		*y = kind == K_LOSS_MEAN ? sum / used : sum;
	return 0;
}

int k_xent_grad_shard_f32(Ctx *c, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *lse, const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind,
	int64_t first, int64_t all)
{
	float used = 0;
	bool bad = false;
	for (int64_t row = 0; row < outer * inner; row++) {
		used += share(weight, label[row], all, ignore, &bad);
		if (bad)
			return bad_label(c, row, label[row], all);
	}
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i, row = o * inner + i;
			float w = share(weight, label[row], all, ignore, &bad) * dy[kind == K_LOSS_NONE ? row : 0] /
				(kind == K_LOSS_MEAN ? used : 1);
			int64_t k = label[row] - first;
			float others = 0;
			for (int64_t j = 0; j < n; j++) {
				float p = expf(x[at + j * inner] - lse[row]);
				others += j == k ? 0 : p;
				dx[at + j * inner] = w * (j == k ? p - 1 : p);
			}
			/* from the sum of the others: 1 - p would cancel for a confident prediction */
			if (n == all && k >= 0 && k < n)
				dx[at + k * inner] = -w * others;
		}
	return 0;
}

int k_xent_grad_f32(Ctx *c, float *dx, const float *x, const int64_t *label, const float *weight, const float *lse,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	return k_xent_grad_shard_f32(c, dx, x, label, weight, lse, dy, outer, n, inner, ignore, kind, 0, n);
}

int k_xent_both_f32(Ctx *c, float *y, float *lse, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	int code = k_xent_f32(c, y, NULL, lse, x, label, weight, outer, n, inner, ignore, kind);
	return code ? code : k_xent_grad_f32(c, dx, x, label, weight, lse, dy, outer, n, inner, ignore, kind);
}

int k_nll_shard_f32(Ctx *c, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer,
	int64_t n, int64_t inner, int64_t ignore, KLoss kind, int64_t first, int64_t all)
{
	float sum = 0, used = 0;
	bool bad = false;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t row = o * inner + i, at = label[row] - first;
			float w = share(weight, label[row], all, ignore, &bad), v = 0;
			if (bad)
				return bad_label(c, row, label[row], all);
			if (label[row] != ignore && at >= 0 && at < n)
				v = -w * x[(o * n + at) * inner + i];
			if (kind == K_LOSS_NONE)
				y[row] = v;
			sum += v;
			used += w;
		}
	if (kind != K_LOSS_NONE)
		*y = kind == K_LOSS_MEAN ? sum / used : sum;
	return 0;
}

int k_nll_f32(Ctx *c, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer, int64_t n,
	int64_t inner, int64_t ignore, KLoss kind)
{
	return k_nll_shard_f32(c, y, x, label, weight, outer, n, inner, ignore, kind, 0, n);
}

int k_sum_exp_f32(Ctx *c, float *y, const float *x, const float *top, int64_t outer, int64_t n, int64_t inner)
{
	(void)c;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			float sum = 0;
			for (int64_t j = 0; j < n; j++)
				sum += expf(x[(o * n + j) * inner + i] - top[o * inner + i]);
			y[o * inner + i] = sum;
		}
	return 0;
}

int k_ahead_f32(Ctx *c, float *y, const float *x, const float *own, const int64_t *label, int64_t outer, int64_t n,
	int64_t inner, int64_t first)
{
	(void)c;
	for (int64_t row = 0; row < outer * inner; row++) {
		int64_t count = 0;
		for (int64_t j = 0; j < n; j++) {
			float v = x[(row / inner * n + j) * inner + row % inner];
			bool behind = v < own[row] || (v == own[row] && first + j >= label[row]);
			count += !behind;
		}
		y[row] = (float)count;
	}
	return 0;
}
