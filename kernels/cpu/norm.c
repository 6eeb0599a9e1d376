/* Normalisations and their gradients.  The backward pass reads the mean and the reciprocal deviation of each row, group
 * or channel.  Sums are in double, so that their order hardly matters.
 *
 * With g = dy scale and h = (x - mean) inv, and averages over the set that the statistics are taken over:
 *     dx = inv (g - average(g) - h average(g h))      dscale = sum(dy h)      db = sum(dy)
 * Without a mean (mean is NULL: root mean square) the term average(g) is dropped. */
#include "kernels.h"

#include <math.h>

/* The numbers of one statistic: `runs` runs of `len` neighbours, `step` apart.  Element i has scale i / each (each 0:
 * scale i). */
typedef struct Set { int64_t runs, len, step, each; } Set;

static int64_t offset_of(const Set *s, int64_t i)
{
	return i / s->len * s->step + i % s->len;
}

static float scale_of(const Set *s, const float *scale, int64_t i)
{
	return scale[s->each ? i / s->each : i];
}

/* Computes y over one set; scale and b point to those of its first element.  Sets mean and inv unless NULL.  Returns
 * the variance. */
static float forward(float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	const Set *s, bool centre, float eps)
{
	int64_t n = s->runs * s->len;
	double m = 0, v = 0;
	for (int64_t i = 0; i < n && centre; i++)
		m += (double)x[offset_of(s, i)] / (double)n;
	for (int64_t i = 0; i < n; i++) {
		double d = (double)x[offset_of(s, i)] - m;
		v += d * d;
	}
	float fm = (float)m, fi = (float)(1 / sqrt(v / (double)n + (double)eps));
	for (int64_t i = 0; i < n; i++) {
		int64_t at = offset_of(s, i);
		y[at] = (x[at] - fm) * fi * scale_of(s, scale, i) + (b ? scale_of(s, b, i) : 0);
	}
	if (mean)
		*mean = fm;
	if (inv)
		*inv = fi;
	return (float)(v / (double)n);
}

static void backward(float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	float inv, const Set *s)
{
	int64_t n = s->runs * s->len;
	float m = mean ? *mean : 0;
	double g = 0, gh = 0;
	for (int64_t i = 0; i < n; i++) {
		int64_t at = offset_of(s, i);
		float d = dy[at] * scale_of(s, scale, i);
		g += (double)d;
		gh += (double)d * (double)((x[at] - m) * inv);
	}
	float ga = mean ? (float)(g / (double)n) : 0, gha = (float)(gh / (double)n);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = offset_of(s, i);
		dx[at] = inv * (dy[at] * scale_of(s, scale, i) - ga - (x[at] - m) * inv * gha);
	}
}

int k_layernorm_f32(Ctx *c, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t rows, int64_t n, bool centre, float eps)
{
	(void)c;
	Set s = { 1, n, 0, 0 };
	for (int64_t r = 0; r < rows; r++)
		forward(y + r * n, mean ? mean + r : NULL, inv ? inv + r : NULL, x + r * n, scale, b, &s, centre, eps);
	return 0;
}

int k_layernorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t rows, int64_t n)
{
	(void)c;
	Set s = { 1, n, 0, 0 };
	for (int64_t r = 0; r < rows; r++)
		backward(dx + r * n, dy + r * n, x + r * n, scale, mean ? mean + r : NULL, inv[r], &s);
	return 0;
}

int k_layernorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t rows, int64_t n)
{
	(void)c;
	for (int64_t j = 0; j < n; j++) {
		float s = 0, t = 0;
		for (int64_t r = 0; r < rows; r++) {
			s += dy[r * n + j] * ((x[r * n + j] - (mean ? mean[r] : 0)) * inv[r]);
			t += dy[r * n + j];
		}
		dscale[j] = s;
		if (db)
			db[j] = t;
	}
	return 0;
}

int k_groupnorm_f32(Ctx *c, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t batch, int64_t groups, int64_t each, int64_t inner, float eps)
{
	(void)c;
	Set s = { 1, each * inner, 0, inner };
	for (int64_t i = 0; i < batch * groups; i++)
		forward(y + i * s.len, mean ? mean + i : NULL, inv ? inv + i : NULL, x + i * s.len,
			scale + i % groups * each, b + i % groups * each, &s, true, eps);
	return 0;
}

int k_groupnorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner)
{
	(void)c;
	Set s = { 1, each * inner, 0, inner };
	for (int64_t i = 0; i < batch * groups; i++)
		backward(dx + i * s.len, dy + i * s.len, x + i * s.len, scale + i % groups * each,
			mean + i, inv[i], &s);
	return 0;
}

/* dscale and db of channel ch; the statistic of image i and channel j is number i * step + j / each. */
static void weights(float *dscale, float *db, const float *dy, const float *x, const float *mean, const float *inv,
	int64_t batch, int64_t channels, int64_t inner, int64_t step, int64_t each)
{
	for (int64_t ch = 0; ch < channels; ch++) {
		float s = 0, t = 0;
		for (int64_t i = 0; i < batch; i++)
			for (int64_t j = 0; j < inner; j++) {
				int64_t at = (i * channels + ch) * inner + j, k = i * step + ch / each;
				s += dy[at] * ((x[at] - mean[k]) * inv[k]);
				t += dy[at];
			}
		dscale[ch] = s;
		if (db)
			db[ch] = t;
	}
}

int k_groupnorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner)
{
	(void)c;
	weights(dscale, db, dy, x, mean, inv, batch, groups * each, inner, groups, each);
	return 0;
}

int k_batchnorm_f32(Ctx *c, float *y, float *newmean, float *newvar, float *mean, float *inv, const float *x,
	const float *scale, const float *b, const float *oldmean, const float *oldvar, int64_t batch, int64_t channels,
	int64_t inner, float eps, float momentum)
{
	(void)c;
	Set s = { batch, inner, channels * inner, batch * inner };
	for (int64_t ch = 0; ch < channels; ch++) {
		float m, i, v = forward(y + ch * inner, &m, &i, x + ch * inner, scale + ch, b + ch, &s, true, eps);
		if (newmean)
			newmean[ch] = momentum * oldmean[ch] + (1 - momentum) * m;
		if (newvar)
			newvar[ch] = momentum * oldvar[ch] + (1 - momentum) * v;
		if (mean)
			mean[ch] = m;
		if (inv)
			inv[ch] = i;
	}
	return 0;
}

int k_batchnorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner)
{
	(void)c;
	Set s = { batch, inner, channels * inner, batch * inner };
	for (int64_t ch = 0; ch < channels; ch++)
		backward(dx + ch * inner, dy + ch * inner, x + ch * inner, scale + ch, mean + ch, inv[ch], &s);
	return 0;
}

int k_batchnorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t channels, int64_t inner)
{
	(void)c;
	weights(dscale, db, dy, x, mean, inv, batch, channels, inner, 0, 1);
	return 0;
}
