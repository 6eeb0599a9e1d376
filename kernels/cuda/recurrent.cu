/* The steps of recurrent cells: a block takes one sequence through them, with its state in shared memory; each thread
 * computes every BLOCK-th element of the state. */
#include "dialect.h"

__device__ static inline float exp_of(float v) { return expf(v); }
__device__ static inline double exp_of(double v) { return exp(v); }
__device__ static inline float tanh_of(float v) { return tanhf(v); }
__device__ static inline double tanh_of(double v) { return tanh(v); }

template <class T> __device__ static T sigmoid_of(T v)
{
	return 1 / (1 + exp_of(-v));
}

/* Element g of r h. */
template <class T> __device__ static T gate(const T *r, const T *h, i64 g, i64 n)
{
	T sum = 0;
	for (i64 k = 0; k < n; k++)
		sum += r[g * n + k] * h[k];
	return sum;
}

/* Element k of r' d, summed over gates from .. to - 1. */
template <class T> __device__ static T back(const T *r, const T *d, i64 from, i64 to, i64 k, i64 n)
{
	T sum = 0;
	for (i64 g = from; g < to; g++)
		sum += r[g * n + k] * d[g];
	return sum;
}

#define EACH(j) for (i64 j = threadIdx.x; j < n; j += BLOCK)

/* Calls f, a template, with the shared memory of the block and the other arguments. */
#define IN_ROOM(f, ...) \
	__shared__ double room[6 * K_STATE / 8]; \
	Any shared = { room }; \
	BY_REAL(type, f, shared, __VA_ARGS__)

template <class T> __device__ static void lstm(T *room, T *y, T *yh, T *before, T *gates, T *yc, T *cells, const T *xw,
	const T *r, const T *h0, const int *lens, const T *c0, const KCells &k)
{
	i64 b = blockIdx.x, n = k.hidden;
	T *h = room, *s = h + n, *next = s + n;
	EACH(j) {
		h[j] = h0 ? h0[b * n + j] : 0;
		s[j] = c0 ? c0[b * n + j] : 0;
	}
	__syncthreads();
	for (i64 t = 0; t < k.steps; t++) {
		i64 row = t * k.batch + b;
		bool live = !lens || t < lens[b];
		const T *x = xw + row * 4 * n;
		EACH(j) {
			T i = sigmoid_of(x[j] + gate(r, h, j, n)), o = sigmoid_of(x[n + j] + gate(r, h, n + j, n)),
				f = sigmoid_of(x[2 * n + j] + gate(r, h, 2 * n + j, n));
			T g = tanh_of(x[3 * n + j] + gate(r, h, 3 * n + j, n)), state = f * s[j] + i * g,
				out = o * tanh_of(state);
			if (before)
				before[row * n + j] = h[j];
			if (gates) {
				T *v = gates + row * 4 * n + j;
				v[0] = i;
				v[n] = o;
				v[2 * n] = f;
				v[3 * n] = g;
			}
			if (y)
				y[row * n + j] = live ? out : 0;
			next[j] = live ? out : h[j];
			s[j] = live ? state : s[j];
			if (cells)
				cells[row * n + j] = s[j];
		}
		__syncthreads();
		T *swap = h;
		h = next;
		next = swap;
	}
	EACH(j) {
		if (yh)
			yh[b * n + j] = h[j];
		if (yc)
			yc[b * n + j] = s[j];
	}
}

KERNEL g_lstm(Any y, Any yh, Any before, Any gates, Any yc, Any cells, Any xw, Any r, Any h0, const int *lens, Any c0,
	KCells k, int type)
{
	IN_ROOM(lstm, y, yh, before, gates, yc, cells, xw, r, h0, lens, c0, k);
}

template <class T> __device__ static void lstm_grad(T *room, T *dxw, T *dh0, T *dc0, const T *dy, const T *dyh,
	const T *gates, const T *r, const T *dyc, const T *cells, const T *c0, const int *lens, const KCells &k)
{
	i64 b = blockIdx.x, n = k.hidden;
	T *dh = room, *ds = dh + n, *d = ds + n;
	EACH(j) {
		dh[j] = dyh ? dyh[b * n + j] : 0;
		ds[j] = dyc ? dyc[b * n + j] : 0;
	}
	for (i64 t = k.steps - 1; t >= 0; t--) {
		i64 row = t * k.batch + b;
		bool live = !lens || t < lens[b];
		EACH(j) {
			const T *v = gates + row * 4 * n + j;
			T i = v[0], o = v[n], f = v[2 * n], g = v[3 * n], out = tanh_of(cells[row * n + j]);
			T old = t ? cells[(row - k.batch) * n + j] : c0 ? c0[b * n + j] : 0;
			T dout = dh[j] + dy[row * n + j], state = ds[j] + dout * o * (1 - out * out);
			d[j] = live ? state * g * i * (1 - i) : 0;
			d[n + j] = live ? dout * out * o * (1 - o) : 0;
			d[2 * n + j] = live ? state * old * f * (1 - f) : 0;
			d[3 * n + j] = live ? state * i * (1 - g * g) : 0;
			ds[j] = live ? state * f : ds[j];
			for (i64 q = 0; q < 4 && dxw; q++)
				dxw[(row * 4 + q) * n + j] = d[q * n + j];
		}
		__syncthreads();
		EACH(j)
			dh[j] = live ? back(r, d, 0, 4 * n, j, n) : dh[j];
		__syncthreads();
	}
	EACH(j) {
		if (dh0)
			dh0[b * n + j] = dh[j];
		if (dc0)
			dc0[b * n + j] = ds[j];
	}
}

KERNEL g_lstm_grad(Any dxw, Any dh0, Any dc0, Any dy, Any dyh, Any gates, Any r, Any dyc, Any cells, Any c0,
	const int *lens, KCells k, int type)
{
	IN_ROOM(lstm_grad, dxw, dh0, dc0, dy, dyh, gates, r, dyc, cells, c0, lens, k);
}

template <class T> __device__ static void gru(T *room, T *y, T *yh, T *before, T *gates, T *inner, const T *xw,
	const T *r, const T *h0, const int *lens, const T *rb, const KCells &k)
{
	i64 b = blockIdx.x, n = k.hidden;
	T *h = room, *z = h + n, *reset = z + n, *u = reset + n;
	EACH(j)
		h[j] = h0 ? h0[b * n + j] : 0;
	__syncthreads();
	for (i64 t = 0; t < k.steps; t++) {
		i64 row = t * k.batch + b;
		bool live = !lens || t < lens[b];
		const T *x = xw + row * 3 * n;
		EACH(j) {
			z[j] = sigmoid_of(x[j] + gate(r, h, j, n));
			reset[j] = sigmoid_of(x[n + j] + gate(r, h, n + j, n));
			u[j] = k.linear ? (rb ? rb[j] : 0) + gate(r, h, 2 * n + j, n) : reset[j] * h[j];
			if (before)
				before[row * n + j] = h[j];
			if (inner)
				inner[row * n + j] = u[j];
		}
		__syncthreads();
		EACH(j) {
			T g = tanh_of(x[2 * n + j] + (k.linear ? reset[j] * u[j] : gate(r, u, 2 * n + j, n))),
				out = (1 - z[j]) * g + z[j] * h[j];
			if (gates) {
				gates[row * 3 * n + j] = z[j];
				gates[(row * 3 + 1) * n + j] = reset[j];
				gates[(row * 3 + 2) * n + j] = g;
			}
			if (y)
				y[row * n + j] = live ? out : 0;
			h[j] = live ? out : h[j];
		}
		__syncthreads();
	}
	EACH(j)
		if (yh)
			yh[b * n + j] = h[j];
}

KERNEL g_gru(Any y, Any yh, Any before, Any gates, Any inner, Any xw, Any r, Any h0, const int *lens, Any rb,
	KCells k, int type)
{
	IN_ROOM(gru, y, yh, before, gates, inner, xw, r, h0, lens, rb, k);
}

template <class T> __device__ static void gru_grad(T *room, T *dxw, T *dh0, T *side, const T *dy, const T *dyh,
	const T *gates, const T *r, const T *before, const T *inner, const int *lens, const KCells &k)
{
	i64 b = blockIdx.x, n = k.hidden;
	T *dh = room, *e = dh + n;              /* e: the gradient of the products with R */
	EACH(j)
		dh[j] = dyh ? dyh[b * n + j] : 0;
	for (i64 t = k.steps - 1; t >= 0; t--) {
		i64 row = t * k.batch + b;
		bool live = !lens || t < lens[b];
		const T *z = gates + row * 3 * n, *reset = z + n, *g = z + 2 * n, *h = before + row * n;
		EACH(j) {
			T dout = dh[j] + dy[row * n + j], cand = live ? dout * (1 - z[j]) * (1 - g[j] * g[j]) : 0;
			e[j] = live ? dout * (h[j] - g[j]) * z[j] * (1 - z[j]) : 0;
			e[2 * n + j] = k.linear ? cand * reset[j] : cand;
			dh[j] = live ? dout * z[j] : dh[j];
			if (k.linear)
				e[n + j] = cand * inner[row * n + j] * reset[j] * (1 - reset[j]);
			if (dxw)
				dxw[(row * 3 + 2) * n + j] = cand;
		}
		__syncthreads();
		EACH(j)
			if (!k.linear && live) {
				T u = back(r, e, 2 * n, 3 * n, j, n);
				dh[j] += u * reset[j];
				e[n + j] = u * h[j] * reset[j] * (1 - reset[j]);
			} else if (!k.linear) {
				e[n + j] = 0;
			}
		__syncthreads();
		EACH(j) {
			if (live)
				dh[j] += back(r, e, 0, k.linear ? 3 * n : 2 * n, j, n);
			for (i64 q = 0; q < 3 && side; q++)
				side[(row * 3 + q) * n + j] = e[q * n + j];
			for (i64 q = 0; q < 2 && dxw; q++)
				dxw[(row * 3 + q) * n + j] = e[q * n + j];
		}
		__syncthreads();
	}
	EACH(j)
		if (dh0)
			dh0[b * n + j] = dh[j];
}

KERNEL g_gru_grad(Any dxw, Any dh0, Any side, Any dy, Any dyh, Any gates, Any r, Any before, Any inner,
	const int *lens, KCells k, int type)
{
	IN_ROOM(gru_grad, dxw, dh0, side, dy, dyh, gates, r, before, inner, lens, k);
}

template <class T> __device__ static void rnn(T *room, T *y, T *yh, T *before, const T *xw, const T *r, const T *h0,
	const int *lens, const KCells &k)
{
	i64 b = blockIdx.x, n = k.hidden;
	T *h = room, *next = h + n;
	EACH(j)
		h[j] = h0 ? h0[b * n + j] : 0;
	__syncthreads();
	for (i64 t = 0; t < k.steps; t++) {
		i64 row = t * k.batch + b;
		bool live = !lens || t < lens[b];
		EACH(j) {
			T out = tanh_of(xw[row * n + j] + gate(r, h, j, n));
			if (before)
				before[row * n + j] = h[j];
			if (y)
				y[row * n + j] = live ? out : 0;
			next[j] = live ? out : h[j];
		}
		__syncthreads();
		T *swap = h;
		h = next;
		next = swap;
	}
	EACH(j)
		if (yh)
			yh[b * n + j] = h[j];
}

KERNEL g_rnn(Any y, Any yh, Any before, Any xw, Any r, Any h0, const int *lens, KCells k, int type)
{
	IN_ROOM(rnn, y, yh, before, xw, r, h0, lens, k);
}

template <class T> __device__ static void rnn_grad(T *room, T *dxw, T *dh0, const T *dy, const T *dyh, const T *y,
	const T *r, const int *lens, const KCells &k)
{
	i64 b = blockIdx.x, n = k.hidden;
	T *dh = room, *d = dh + n;
	EACH(j)
		dh[j] = dyh ? dyh[b * n + j] : 0;
	for (i64 t = k.steps - 1; t >= 0; t--) {
		i64 row = t * k.batch + b;
		bool live = !lens || t < lens[b];
		EACH(j) {
			T out = y[row * n + j];
			d[j] = live ? (dh[j] + dy[row * n + j]) * (1 - out * out) : 0;
			if (dxw)
				dxw[row * n + j] = d[j];
		}
		__syncthreads();
		EACH(j)
			dh[j] = live ? back(r, d, 0, n, j, n) : dh[j];
		__syncthreads();
	}
	EACH(j)
		if (dh0)
			dh0[b * n + j] = dh[j];
}

KERNEL g_rnn_grad(Any dxw, Any dh0, Any dy, Any dyh, Any y, Any r, const int *lens, KCells k, int type)
{
	IN_ROOM(rnn_grad, dxw, dh0, dy, dyh, y, r, lens, k);
}
