/* Windows over any number of axes: one thread per element of the result, which computes its sum in a fixed order; for a
 * gradient of the input one thread per plane, which walks the windows in order. */
#include "dialect.h"

__device__ static i64 volume(const KWindows &w, const i64 *d)
{
	i64 n = 1;
	for (int a = 0; a < w.n; a++)
		n *= d[a];
	return n;
}

__device__ static i64 under(const KWindows &w, i64 o, i64 p, int *inside)
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

template <class T> __device__ static void conv_nd(T *y, const T *x, const T *f, const T *b, i64 groups, i64 cin,
	i64 cout, KWindows w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k), q = e % nout,
		ch = e / nout % (groups * cout), n = e / nout / (groups * cout);
	int inside;
	T sum = b ? b[ch] : 0;
	for (i64 i = 0; i < cin; i++)
		for (i64 p = 0; p < nk; p++) {
			i64 at = under(w, q, p, &inside);
			if (at >= 0)
				sum += f[(ch * cin + i) * nk + p] * x[((n * groups + ch / cout) * cin + i) * nin + at];
		}
	y[e] = sum;
}

template <class T> __device__ static void conv_nd_grad_x(T *x, const T *g, const T *f, i64 groups, i64 cin, i64 cout,
	KWindows w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k), i = e % cin, gr = e / cin % groups,
		n = e / cin / groups;
	int inside;
	for (i64 j = 0; j < nin; j++)
		x[e * nin + j] = 0;
	for (i64 o = 0; o < cout; o++)
		for (i64 p = 0; p < nk; p++)
			for (i64 q = 0; q < nout; q++) {
				i64 at = under(w, q, p, &inside), ch = gr * cout + o;
				if (at >= 0)
					x[e * nin + at] += f[(ch * cin + i) * nk + p] *
						g[(n * groups * cout + ch) * nout + q];
			}
}

template <class T> __device__ static void conv_nd_grad_w(T *f, const T *x, const T *g, i64 batch, i64 groups, i64 cin,
	i64 cout, KWindows w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k), p = e % nk, i = e / nk % cin,
		ch = e / nk / cin;
	int inside;
	T sum = 0;
	for (i64 n = 0; n < batch; n++)
		for (i64 q = 0; q < nout; q++) {
			i64 at = under(w, q, p, &inside);
			if (at >= 0)
				sum += x[((n * groups + ch / cout) * cin + i) * nin + at] *
					g[(n * groups * cout + ch) * nout + q];
		}
	f[e] = sum;
}

/* The least value of the type: the start of a maximum. */
__device__ static inline float least(float) { return NEG_INF; }
__device__ static inline double least(double) { return -1.7976931348623157e308 * 10; }
__device__ static inline i64 least(i64) { return -0x7FFFFFFFFFFFFFFFll - 1; }
__device__ static inline int least(int) { return -0x7FFFFFFF - 1; }
__device__ static inline unsigned char least(unsigned char) { return 0; }
__device__ static inline Flag least(Flag) { return Flag(0); }

/* Converts position `at` of a plane to column-major order. */
__device__ static i64 by_columns(const KWindows &w, i64 at)
{
	i64 to = 0, stride = volume(w, w.in);
	for (int a = w.n - 1; a >= 0; a--) {
		stride /= w.in[a];
		to += at % w.in[a] * stride;
		at /= w.in[a];
	}
	return to;
}

template <class T> __device__ static i64 top(const T *x, const KWindows &w, i64 o)
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

template <class T> __device__ static void maxpool_nd(T *y, i64 *index, const T *x, KWindows w, int columns, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), base = e / nout * nin, at = top(x + base, w, e % nout);
	if (y)
		y[e] = at < 0 ? least((T)0) : x[base + at];
	if (index)
		index[e] = at < 0 ? -1 : base + (columns ? by_columns(w, at) : at);
}

/* Position `at` of a plane relative to the wanted stretch; -1: outside. */
__device__ static i64 stretch_at(const KWindows &w, const KStretch &s, i64 at)
{
	i64 to = 0, stride = 1;
	for (int a = w.n - 1; a >= 0; a--) {
		i64 i = at % w.in[a] - s.from[a];
		at /= w.in[a];
		if (i < 0 || i >= s.size[a])
			return -1;
		to += i * stride;
		stride *= s.size[a];
	}
	return to;
}

template <class T> __device__ static void maxpool_nd_grad(T *dx, const T *g, const T *x, KWindows w,
	KStretch s, i64 planes)
{
	i64 e = element();
	if (e >= planes)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), own = volume(w, s.size);
	for (i64 i = 0; i < own; i++)
		dx[e * own + i] = 0;
	for (i64 o = 0; o < nout; o++) {
		i64 at = top(x + e * nin, w, o);
		if (at >= 0 && (at = stretch_at(w, s, at)) >= 0)
			dx[e * own + at] += g[e * nout + o];
	}
}

template <class T> __device__ static T weight(const KWindows &w, i64 o, int kind)
{
	i64 n = 0, nk = volume(w, w.k);
	int inside;
	if (kind == K_POOL_SUM)
		return 1;
	for (i64 p = 0; p < nk; p++) {
		i64 at = under(w, o, p, &inside);
		n += kind == K_POOL_PADDED ? inside : at >= 0;
	}
	return n ? 1 / (T)n : 0;
}

template <class T> __device__ static void sumpool(T *y, const T *x, KWindows w, int kind, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 nin = volume(w, w.in), nout = volume(w, w.out), nk = volume(w, w.k);
	int inside;
	T sum = 0;
	for (i64 p = 0; p < nk; p++) {
		i64 at = under(w, e % nout, p, &inside);
		if (at >= 0)
			sum += x[e / nout * nin + at];
	}
	y[e] = sum * weight<T>(w, e % nout, kind);
}

template <class T> __device__ static void sumpool_grad(T *dx, const T *g, KWindows w, KStretch s, int kind, i64 planes)
{
	i64 e = element();
	if (e >= planes)
		return;
	i64 nout = volume(w, w.out), nk = volume(w, w.k), own = volume(w, s.size);
	int inside;
	for (i64 i = 0; i < own; i++)
		dx[e * own + i] = 0;
	for (i64 o = 0; o < nout; o++) {
		T v = g[e * nout + o] * weight<T>(w, o, kind);
		for (i64 p = 0; p < nk; p++) {
			i64 at = under(w, o, p, &inside);
			if (at >= 0 && (at = stretch_at(w, s, at)) >= 0)
				dx[e * own + at] += v;
		}
	}
}

KERNEL g_conv_nd(Any y, Any x, Any f, Any b, i64 groups, i64 cin, i64 cout, KWindows w, i64 total, int type)
{
	BY_REAL(type, conv_nd, y, x, f, b, groups, cin, cout, w, total);
}

KERNEL g_conv_nd_grad_x(Any x, Any g, Any f, i64 groups, i64 cin, i64 cout, KWindows w, i64 total, int type)
{
	BY_REAL(type, conv_nd_grad_x, x, g, f, groups, cin, cout, w, total);
}

KERNEL g_conv_nd_grad_w(Any f, Any x, Any g, i64 batch, i64 groups, i64 cin, i64 cout, KWindows w, i64 total, int type)
{
	BY_REAL(type, conv_nd_grad_w, f, x, g, batch, groups, cin, cout, w, total);
}

KERNEL g_maxpool_nd(Any y, i64 *index, Any x, KWindows w, int columns, i64 total, int type)
{
	BY_TYPE(type, maxpool_nd, y, index, x, w, columns, total);
}

KERNEL g_maxpool_nd_grad(Any dx, Any g, Any x, KWindows w, KStretch s, i64 planes, int type)
{
	BY_REAL(type, maxpool_nd_grad, dx, g, x, w, s, planes);
}

KERNEL g_sumpool(Any y, Any x, KWindows w, int kind, i64 total, int type)
{
	BY_REAL(type, sumpool, y, x, w, kind, total);
}

KERNEL g_sumpool_grad(Any dx, Any g, KWindows w, KStretch s, int kind, i64 planes, int type)
{
	BY_REAL(type, sumpool_grad, dx, g, w, s, kind, planes);
}
