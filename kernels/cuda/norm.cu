/* Normalisations: one thread per row, group or channel, in the order of kernels/cpu/norm.c. */
#include "dialect.h"

struct Set {
	i64 runs, len, step, each;
};

__device__ static inline i64 spot(const Set &s, i64 i)
{
	return i / s.len * s.step + i % s.len;
}

__device__ static inline i64 which(const Set &s, i64 i)
{
	return s.each ? i / s.each : i;
}

__device__ static float forward(float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	const Set &s, int centre, float eps)
{
	i64 n = s.runs * s.len;
	double m = 0, v = 0;
	for (i64 i = 0; i < n && centre; i++)
		m += (double)x[spot(s, i)] / (double)n;
	for (i64 i = 0; i < n; i++) {
		double d = (double)x[spot(s, i)] - m;
		v += d * d;
	}
	float fm = (float)m, fi = (float)(1 / sqrt(v / (double)n + (double)eps));
	for (i64 i = 0; i < n; i++) {
		i64 at = spot(s, i);
		y[at] = (x[at] - fm) * fi * scale[which(s, i)] + (b ? b[which(s, i)] : 0.0f);
	}
	if (mean)
		*mean = fm;
	if (inv)
		*inv = fi;
	return (float)(v / (double)n);
}

__device__ static void backward(float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	float inv, const Set &s)
{
	i64 n = s.runs * s.len;
	float m = mean ? *mean : 0.0f;
	double g = 0, gh = 0;
	for (i64 i = 0; i < n; i++) {
		i64 at = spot(s, i);
		float d = dy[at] * scale[which(s, i)];
		g += (double)d;
		gh += (double)d * (double)((x[at] - m) * inv);
	}
	float ga = mean ? (float)(g / (double)n) : 0.0f, gha = (float)(gh / (double)n);
	for (i64 i = 0; i < n; i++) {
		i64 at = spot(s, i);
		dx[at] = inv * (dy[at] * scale[which(s, i)] - ga - (x[at] - m) * inv * gha);
	}
}

KERNEL g_layernorm_f32(float *y, float *mean, float *inv, const float *x, const float *scale, const float *b, i64 rows,
	i64 n, int centre, float eps)
{
	i64 r = element();
	Set s = { 1, n, 0, 0 };
	if (r < rows)
		forward(y + r * n, mean ? mean + r : 0, inv ? inv + r : 0, x + r * n, scale, b, s, centre, eps);
}

KERNEL g_layernorm_grad_f32(float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, i64 rows, i64 n)
{
	i64 r = element();
	Set s = { 1, n, 0, 0 };
	if (r < rows)
		backward(dx + r * n, dy + r * n, x + r * n, scale, mean ? mean + r : 0, inv[r], s);
}

KERNEL g_layernorm_grad_w_f32(float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, i64 rows, i64 n)
{
	i64 j = element();
	if (j >= n)
		return;
	float s = 0, t = 0;
	for (i64 r = 0; r < rows; r++) {
		s += dy[r * n + j] * ((x[r * n + j] - (mean ? mean[r] : 0.0f)) * inv[r]);
		t += dy[r * n + j];
	}
	dscale[j] = s;
	if (db)
		db[j] = t;
}

KERNEL g_groupnorm_f32(float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	i64 total, i64 groups, i64 each, i64 inner, float eps)
{
	i64 i = element(), len = each * inner;
	Set s = { 1, len, 0, inner };
	if (i < total)
		forward(y + i * len, mean ? mean + i : 0, inv ? inv + i : 0, x + i * len, scale + i % groups * each,
			b + i % groups * each, s, 1, eps);
}

KERNEL g_groupnorm_grad_f32(float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, i64 total, i64 groups, i64 each, i64 inner)
{
	i64 i = element(), len = each * inner;
	Set s = { 1, len, 0, inner };
	if (i < total)
		backward(dx + i * len, dy + i * len, x + i * len, scale + i % groups * each, mean + i, inv[i], s);
}

/* Statistic of channel ch in image i: number i * step + ch / each. */
KERNEL g_channels_grad_w_f32(float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, i64 batch, i64 channels, i64 inner, i64 step, i64 each)
{
	i64 ch = element();
	if (ch >= channels)
		return;
	float s = 0, t = 0;
	for (i64 i = 0; i < batch; i++)
		for (i64 j = 0; j < inner; j++) {
			i64 at = (i * channels + ch) * inner + j, k = i * step + ch / each;
			s += dy[at] * ((x[at] - mean[k]) * inv[k]);
			t += dy[at];
		}
	dscale[ch] = s;
	if (db)
		db[ch] = t;
}

KERNEL g_batchnorm_f32(float *y, float *newmean, float *newvar, float *mean, float *inv, const float *x,
	const float *scale, const float *b, const float *oldmean, const float *oldvar, i64 batch, i64 channels,
	i64 inner, float eps, float momentum)
{
	i64 ch = element();
	if (ch >= channels)
		return;
	Set s = { batch, inner, channels * inner, batch * inner };
	float m, i, v = forward(y + ch * inner, &m, &i, x + ch * inner, scale + ch, b + ch, s, 1, eps);
	if (newmean)
		newmean[ch] = momentum * oldmean[ch] + (1 - momentum) * m;
	if (newvar)
		newvar[ch] = momentum * oldvar[ch] + (1 - momentum) * v;
	if (mean)
		mean[ch] = m;
	if (inv)
		inv[ch] = i;
}

KERNEL g_batchnorm_grad_f32(float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, i64 batch, i64 channels, i64 inner)
{
	i64 ch = element();
	Set s = { batch, inner, channels * inner, batch * inner };
	if (ch < channels)
		backward(dx + ch * inner, dy + ch * inner, x + ch * inner, scale + ch, mean + ch, inv[ch], s);
}
