/* Elements of any width moved about, one thread per element of the result (or of what is put somewhere, by one thread where several may
 * meet at one place, so that the order is that of kernels/cpu/any.c).  An index that is none gives nothing: it moves no element. */
#include "dialect.h"

enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };
enum { PUT, ADD, MUL, LARGEST, SMALLEST };

/* As KPad and KNd in kernels.h. */
struct Padding {
	int n, mode;
	i64 in[AXES], out[AXES], lo[AXES];
};

struct Tuples {
	i64 batch, many, xbatch, run;
	Loops axes;
};

__device__ static inline void put(void *y, i64 i, const void *x, i64 j, i64 width)
{
	for (i64 k = 0; k < width; k++)
		((char *)y)[i * width + k] = x ? ((const char *)x)[j * width + k] : 0;
}

__device__ static inline i64 wrapped(i64 i, i64 n)
{
	i = i < 0 ? i + n : i;
	return i < 0 || i >= n ? -1 : i;
}

KERNEL g_fill(void *y, i64 offset, Loops l, u64 bits, i64 width, i64 n)
{
	i64 i = element();
	if (i < n)
		put(y, offset + place(l, i), &bits, 0, width);
}

KERNEL g_move(void *y, i64 yoffset, const void *x, i64 xoffset, Loops to, Loops from, i64 width, i64 n)
{
	i64 i = element();
	if (i < n)
		put(y, yoffset + place(to, i), x, xoffset + place(from, i), width);
}

__device__ static i64 source(int mode, i64 i, i64 n)
{
	if (i >= 0 && i < n)
		return i;
	if (mode == PAD_EDGE)
		return i < 0 ? 0 : n - 1;
	if (mode == PAD_WRAP)
		return (i % n + n) % n;
	if (mode == PAD_CONSTANT)
		return -1;
	i64 period = n > 1 ? 2 * (n - 1) : 1, k = (i % period + period) % period;
	return k < n ? k : period - k;
}

__device__ static i64 behind(const Padding &p, i64 i)
{
	i64 at = 0, stride = 1;
	for (int a = p.n - 1; a >= 0; a--) {
		i64 s = source(p.mode, i % p.out[a] - p.lo[a], p.in[a]);
		if (s < 0)
			return -1;
		at += s * stride;
		stride *= p.in[a];
		i /= p.out[a];
	}
	return at;
}

KERNEL g_pad(void *y, const void *x, const void *value, Padding p, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 at = behind(p, i);
	put(y, i, at < 0 ? value : x, at < 0 ? 0 : at, width);
}

KERNEL g_pad_grad_f32(float *dx, const float *dy, Padding p, i64 nin, i64 nout)
{
	if (element() != 0)
		return;
	for (i64 i = 0; i < nin; i++)
		dx[i] = 0;
	for (i64 i = 0; i < nout; i++) {
		i64 at = behind(p, i);
		if (at >= 0)
			dx[at] += dy[i];
	}
}

KERNEL g_trilu(void *y, const void *x, i64 rows, i64 cols, i64 k, int upper, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 d = i % cols - i / cols % rows;
	put(y, i, (upper ? d >= k : d <= k) ? x : 0, i, width);
}

KERNEL g_reverse_sequence(void *y, const void *x, const i64 *len, i64 time, i64 bstride, i64 tstride, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 b = i / time, t = i % time;
	put(y, b * bstride + t * tstride, x, b * bstride + (t < len[b] && len[b] <= time ? len[b] - 1 - t : t) * tstride, width);
}

KERNEL g_gather(void *y, const void *x, const i64 *index, i64 n, i64 inner, i64 many, i64 width, i64 total)
{
	i64 i = element();
	if (i >= total)
		return;
	i64 at = wrapped(index[i / inner % many], n);
	put(y, i, at < 0 ? 0 : x, (i / inner / many * n + at) * inner + i % inner, width);
}

KERNEL g_gather_elements(void *y, const void *x, const i64 *index, Loops l, i64 n, i64 stride, i64 width, i64 total)
{
	i64 i = element();
	if (i >= total)
		return;
	i64 at = wrapped(index[i], n);
	put(y, i, at < 0 ? 0 : x, place(l, i) + at * stride, width);
}

__device__ static void join(void *y, i64 i, const void *v, i64 j, int how, i64 width)
{
	if (how == PUT) {
		put(y, i, v, j, width);
		return;
	}
	float *a = (float *)y + i, b = ((const float *)v)[j];
	if (how == ADD)
		*a += b;
	else if (how == MUL)
		*a *= b;
	else if (how == LARGEST ? b > *a || b != b : b < *a || b != b)
		*a = b;
}

KERNEL g_scatter_elements(void *y, const void *x, const i64 *index, const void *updates, i64 total, Loops l, i64 n, i64 stride, int how, i64 width, i64 many)
{
	if (element() != 0)
		return;
	for (i64 i = 0; i < total; i++)
		put(y, i, x, i, width);
	for (i64 i = 0; i < many; i++) {
		i64 at = wrapped(index[i], n);
		if (at >= 0)
			join(y, place(l, i) + at * stride, updates, i, how, width);
	}
}

__device__ static i64 tuple(const i64 *index, i64 i, const Tuples &d)
{
	i64 at = i / d.many * d.xbatch;
	for (int a = 0; a < d.axes.n; a++) {
		i64 k = wrapped(index[i * d.axes.n + a], d.axes.len[a]);
		if (k < 0)
			return -1;
		at += k * d.axes.stride[a];
	}
	return at;
}

KERNEL g_gather_nd(void *y, const void *x, const i64 *index, Tuples d, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 at = tuple(index, i / d.run, d);
	put(y, i, at < 0 ? 0 : x, at + i % d.run, width);
}

KERNEL g_gather_nd_grad_f32(float *dx, const float *dy, const i64 *index, i64 total, Tuples d)
{
	if (element() != 0)
		return;
	for (i64 i = 0; i < total; i++)
		dx[i] = 0;
	for (i64 i = 0; i < d.batch * d.many; i++) {
		i64 at = tuple(index, i, d);
		for (i64 j = 0; j < d.run && at >= 0; j++)
			dx[at + j] += dy[i * d.run + j];
	}
}

KERNEL g_scatter_nd(void *y, const void *x, const i64 *index, const void *updates, i64 total, Tuples d, int how, i64 width)
{
	if (element() != 0)
		return;
	for (i64 i = 0; i < total; i++)
		put(y, i, x, i, width);
	for (i64 i = 0; i < d.batch * d.many; i++) {
		i64 at = tuple(index, i, d);
		for (i64 j = 0; j < d.run && at >= 0; j++)
			join(y, at + j, updates, i * d.run + j, how, width);
	}
}

KERNEL g_one_hot(void *y, const i64 *index, const void *values, i64 depth, i64 inner, i64 width, i64 n)
{
	i64 i = element();
	if (i >= n)
		return;
	i64 at = index[i / inner / depth * inner + i % inner];
	put(y, i, values, i / inner % depth == (at < 0 ? at + depth : at), width);
}

KERNEL g_compress(void *y, const void *x, const unsigned char *keep, i64 nkeep, i64 outer, i64 n, i64 inner, i64 width)
{
	if (element() != 0)
		return;
	i64 to = 0;
	for (i64 o = 0; o < outer; o++)
		for (i64 i = 0; i < n && i < nkeep; i++)
			for (i64 j = 0; j < inner && keep[i]; j++)
				put(y, to++, x, (o * n + i) * inner + j, width);
}

KERNEL g_cumsum_f32(float *y, const float *x, i64 rows, i64 n, i64 inner, int exclusive, int reverse)
{
	i64 r = element();
	if (r >= rows)
		return;
	float sum = 0;
	for (i64 k = 0; k < n; k++) {
		i64 at = r / inner * n * inner + r % inner + (reverse ? n - 1 - k : k) * inner;
		float v = x[at];
		y[at] = exclusive ? sum : sum + v;
		sum += v;
	}
}

KERNEL g_cumsum_i64(i64 *y, const i64 *x, i64 rows, i64 n, i64 inner, int exclusive, int reverse)
{
	i64 r = element();
	if (r >= rows)
		return;
	u64 sum = 0;
	for (i64 k = 0; k < n; k++) {
		i64 at = r / inner * n * inner + r % inner + (reverse ? n - 1 - k : k) * inner;
		u64 v = (u64)x[at];
		y[at] = (i64)(exclusive ? sum : sum + v);
		sum += v;
	}
}

__device__ static int before(float a, i64 i, float b, i64 j, int largest)
{
	int na = a != a, nb = b != b;
	if (na != nb)
		return largest ? na : nb;
	if (!na && a != b)
		return largest ? a > b : a < b;
	return i < j;
}

KERNEL g_topk_f32(float *y, i64 *index, const float *x, i64 rows, i64 n, i64 inner, i64 k, int largest)
{
	i64 r = element(), last = -1;
	if (r >= rows)
		return;
	const float *v = x + r / inner * n * inner + r % inner;
	for (i64 m = 0; m < k; m++) {
		i64 best = -1, to = r / inner * k * inner + r % inner + m * inner;
		for (i64 i = 0; i < n; i++)
			if ((last < 0 || before(v[last * inner], last, v[i * inner], i, largest)) &&
			    (best < 0 || before(v[i * inner], i, v[best * inner], best, largest)))
				best = i;
		if (y)
			y[to] = v[best * inner];
		if (index)
			index[to] = best;
		last = best;
	}
}

KERNEL g_argmax_f32(i64 *y, const float *x, i64 rows, i64 n, i64 inner, int largest, int last)
{
	i64 r = element(), best = 0;
	if (r >= rows)
		return;
	const float *v = x + r / inner * n * inner + r % inner;
	for (i64 i = 1; i < n; i++)
		if (before(v[i * inner], last ? -i : i, v[best * inner], last ? -best : best, largest))
			best = i;
	y[r] = best;
}

enum { R_SUM, R_MEAN, R_MAX, R_MIN, R_PROD };

KERNEL g_reduce_f64(double *y, const double *x, Loops keep, Loops over, int op, i64 rows, i64 n)
{
	i64 i = element();
	if (i >= rows)
		return;
	const double *from = x + place(keep, i);
	double v = op == R_PROD ? 1 : 0;
	for (i64 j = 0; j < n; j++) {
		double e = from[place(over, j)];
		if (op == R_PROD)
			v *= e;
		else if (op == R_SUM || op == R_MEAN)
			v += e;
		else if (j == 0 || (op == R_MAX ? e > v : e < v) || e != e)
			v = e;
	}
	y[i] = op == R_MEAN ? v / (double)n : v;
}

KERNEL g_reduce_i64(i64 *y, const i64 *x, Loops keep, Loops over, int op, i64 rows, i64 n)
{
	i64 i = element();
	if (i >= rows)
		return;
	const i64 *from = x + place(keep, i);
	u64 v = op == R_PROD ? 1 : 0;
	for (i64 j = 0; j < n; j++) {
		i64 e = from[place(over, j)];
		if (op == R_PROD)
			v *= (u64)e;
		else if (op == R_SUM || op == R_MEAN)
			v += (u64)e;
		else if (j == 0 || (op == R_MAX ? e > (i64)v : e < (i64)v))
			v = (u64)e;
	}
	y[i] = op == R_MEAN ? (i64)v / n : (i64)v;
}
