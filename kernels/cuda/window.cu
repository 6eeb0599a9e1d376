/* Windows over any number of axes: one thread per element of the result, which gathers its sum in one order; of a gradient of the input
 * one thread per plane, which walks the windows in order. */
#include "dialect.h"

enum { SPATIAL = 6 };

/* As KWindows in kernels.h. */
struct Windows {
	int n;
	i64 k[SPATIAL], stride[SPATIAL], dil[SPATIAL], lo[SPATIAL], hi[SPATIAL], in[SPATIAL], out[SPATIAL];
};

enum { POOL_SUM, POOL_MEAN, POOL_PADDED };

__device__ static i64 volume(const Windows &w, const i64 *d)
{
	i64 n = 1;
	for (int a = 0; a < w.n; a++)
		n *= d[a];
	return n;
}

__device__ static i64 under(const Windows &w, i64 o, i64 p, int *inside)
{
	i64 at = 0, stride = 1;
	int pad = 0;
	*inside = 1;
	for (int a = w.n - 1; a >= 0; a--) {
		i64 i = o % w.out[a] * w.stride[a] - w.lo[a] + p % w.k[a] * w.dil[a];
		*inside = *inside && i < w.in[a] + w.hi[a];
		pad = pad || i < 0 || i >= w.in[a];
		at += i * stride;
		stride *= w.in[a];
		o /= w.out[a];
		p /= w.k[a];
	}
	return pad ? -1 : at;
}

KERNEL g_conv_nd_f32(float *y, const float *x, const float *f, const float *b, i64 groups, i64 cin, i64 cout, Windows w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k), q = e % nout, ch = e / nout % (groups * cout), n = e / nout / (groups * cout);
	int inside;
	float sum = b ? b[ch] : 0.0f;
	for (i64 i = 0; i < cin; i++)
		for (i64 p = 0; p < nk; p++) {
			i64 at = under(w, q, p, &inside);
			if (at >= 0)
				sum += f[(ch * cin + i) * nk + p] * x[((n * groups + ch / cout) * cin + i) * nin + at];
		}
	y[e] = sum;
}

KERNEL g_conv_nd_grad_x_f32(float *x, const float *g, const float *f, i64 groups, i64 cin, i64 cout, Windows w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k), i = e % cin, gr = e / cin % groups, n = e / cin / groups;
	int inside;
	for (i64 j = 0; j < nin; j++)
		x[e * nin + j] = 0;
	for (i64 o = 0; o < cout; o++)
		for (i64 p = 0; p < nk; p++)
			for (i64 q = 0; q < nout; q++) {
				i64 at = under(w, q, p, &inside), ch = gr * cout + o;
				if (at >= 0)
					x[e * nin + at] += f[(ch * cin + i) * nk + p] * g[(n * groups * cout + ch) * nout + q];
			}
}

KERNEL g_conv_nd_grad_w_f32(float *f, const float *x, const float *g, i64 batch, i64 groups, i64 cin, i64 cout, Windows w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k), p = e % nk, i = e / nk % cin, ch = e / nk / cin;
	int inside;
	float sum = 0;
	for (i64 n = 0; n < batch; n++)
		for (i64 q = 0; q < nout; q++) {
			i64 at = under(w, q, p, &inside);
			if (at >= 0)
				sum += x[((n * groups + ch / cout) * cin + i) * nin + at] * g[(n * groups * cout + ch) * nout + q];
		}
	f[e] = sum;
}

__device__ static i64 top(const float *x, const Windows &w, i64 o)
{
	i64 best = -1, nk = volume(w, w.k);
	int inside;
	for (i64 p = 0; p < nk; p++) {
		i64 at = under(w, o, p, &inside);
		if (at >= 0 && (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best])))
			best = at;
	}
	return best;
}

KERNEL g_maxpool_nd_f32(float *y, i64 *index, const float *x, Windows w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), base = e / nout * nin, at = top(x + base, w, e % nout);
	if (y)
		y[e] = at < 0 ? NEG_INF : x[base + at];
	if (index)
		index[e] = at < 0 ? -1 : base + at;
}

KERNEL g_maxpool_nd_grad_f32(float *dx, const float *g, const float *x, Windows w, i64 planes)
{
	i64 e = element();
	if (e >= planes)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out);
	for (i64 i = 0; i < nin; i++)
		dx[e * nin + i] = 0;
	for (i64 o = 0; o < nout; o++) {
		i64 at = top(x + e * nin, w, o);
		if (at >= 0)
			dx[e * nin + at] += g[e * nout + o];
	}
}

__device__ static float weight(const Windows &w, i64 o, int kind)
{
	i64 n = 0, nk = volume(w, w.k);
	int inside;
	if (kind == POOL_SUM)
		return 1.0f;
	for (i64 p = 0; p < nk; p++) {
		i64 at = under(w, o, p, &inside);
		n += kind == POOL_PADDED ? inside : at >= 0;
	}
	return n ? 1.0f / (float)n : 0.0f;
}

KERNEL g_sumpool_f32(float *y, const float *x, Windows w, int kind, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k);
	int inside;
	float sum = 0;
	for (i64 p = 0; p < nk; p++) {
		i64 at = under(w, e % nout, p, &inside);
		if (at >= 0)
			sum += x[e / nout * nin + at];
	}
	y[e] = sum * weight(w, e % nout, kind);
}

KERNEL g_sumpool_grad_f32(float *dx, const float *g, Windows w, int kind, i64 planes)
{
	i64 e = element();
	if (e >= planes)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k);
	int inside;
	for (i64 i = 0; i < nin; i++)
		dx[e * nin + i] = 0;
	for (i64 o = 0; o < nout; o++) {
		float v = g[e * nout + o] * weight(w, o, kind);
		for (i64 p = 0; p < nk; p++) {
			i64 at = under(w, o, p, &inside);
			if (at >= 0)
				dx[e * nin + at] += v;
		}
	}
}
