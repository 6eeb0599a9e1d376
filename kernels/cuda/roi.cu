/* Regions of interest: what a bin sees is a list of taps, a pixel and a weight each.  One thread per element of the result; of the gradient
 * one thread in all, because regions overlap.  A region in no image gives nothing. */
#include "dialect.h"

/* As KRoi in kernels.h. */
struct Roi {
	i64 images, channels, h, w, regions, ph, pw, samples;
	bool align, half, mean;
	double scale;
};

struct Bin {
	double y, x, high, wide;
	i64 ny, nx, y0, x0, taps;
};

__device__ static i64 pixel_at(double v, i64 n)
{
	return v > 0 ? v < (double)n ? (i64)v : n : 0;
}

__device__ static i64 points(const Roi &r, double size)
{
	double n = ceil(size);
	return r.samples ? r.samples : n > 4096 ? 4096 : n > 0 ? (i64)n : 0;
}

template <class T> __device__ static Bin bin_of(const Roi &r, const T *box, i64 i, i64 j)
{
	Bin b = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
	if (r.align) {
		double shift = r.half ? 0.5 : 0, x = box[0] * r.scale - shift, y = box[1] * r.scale - shift;
		double w = box[2] * r.scale - shift - x, h = box[3] * r.scale - shift - y;
		double bh = (r.half || h > 1 ? h : 1) / (double)r.ph, bw = (r.half || w > 1 ? w : 1) / (double)r.pw;
		b.ny = points(r, bh);
		b.nx = points(r, bw);
		b.high = bh / (double)(b.ny ? b.ny : 1);
		b.wide = bw / (double)(b.nx ? b.nx : 1);
		b.y = y + (double)i * bh + b.high / 2;
		b.x = x + (double)j * bw + b.wide / 2;
		b.taps = 4 * b.ny * b.nx;
		return b;
	}
	double x = round(box[0] * r.scale), y = round(box[1] * r.scale);
	double h = round(box[3] * r.scale) - y + 1, w = round(box[2] * r.scale) - x + 1;
	double bh = (h > 1 ? h : 1) / (double)r.ph, bw = (w > 1 ? w : 1) / (double)r.pw;
	b.y0 = pixel_at(floor((double)i * bh) + y, r.h);
	b.x0 = pixel_at(floor((double)j * bw) + x, r.w);
	b.ny = pixel_at(ceil((double)(i + 1) * bh) + y, r.h) - b.y0;
	b.nx = pixel_at(ceil((double)(j + 1) * bw) + x, r.w) - b.x0;
	b.taps = b.ny > 0 && b.nx > 0 ? b.ny * b.nx : 0;
	return b;
}

__device__ static double clamped(double v, i64 n)
{
	return v < 0 ? 0 : v > (double)(n - 1) ? (double)(n - 1) : v;
}

__device__ static i64 tap(const Roi &r, const Bin &b, i64 k, double *weight)
{
	*weight = 1;
	if (!r.align)
		return (b.y0 + k / b.nx) * r.w + b.x0 + k % b.nx;
	double y = b.y + (double)(k / 4 / b.nx) * b.high, x = b.x + (double)(k / 4 % b.nx) * b.wide;
	*weight = 0;
	if (!(y >= -1 && y <= (double)r.h && x >= -1 && x <= (double)r.w))
		return 0;
	y = clamped(y, r.h);
	x = clamped(x, r.w);
	i64 iy = (i64)y, ix = (i64)x;
	double fy = y - (double)iy, fx = x - (double)ix;
	bool down = k & 2, right = k & 1;
	*weight = (down ? fy : 1 - fy) * (right ? fx : 1 - fx);
	return (down && iy < r.h - 1 ? iy + 1 : iy) * r.w + (right && ix < r.w - 1 ? ix + 1 : ix);
}

template <class T> __device__ static double value_of(const Roi &r, const Bin &b, const T *plane, i64 *best)
{
	double v = 0, weight;
	*best = -1;
	for (i64 k = 0; k < b.taps; k++) {
		i64 at = tap(r, b, k, &weight);
		double t = weight * plane[at];
		if (r.mean) {
			v += t;
		} else if (*best < 0 || t > v) {
			v = t;
			*best = k;
		}
	}
	return r.mean && b.taps ? v / (double)(b.taps / 4) : v;
}

/* The image of region n, or -1; *box: its corners. */
template <class T> __device__ static i64 region_of(const Roi &r, const T *region, const i64 *image, i64 n, const T **box)
{
	double of = image ? (double)image[n] : (double)region[n * 5];
	*box = image ? region + n * 4 : region + n * 5 + 1;
	return of >= 0 && of < (double)r.images ? (i64)of : -1;
}

template <class T> __device__ static void roi(T *y, const T *x, const T *region, const i64 *image, const Roi &r, i64 total)
{
	i64 e = element(), bins = r.ph * r.pw, k = e / bins % r.channels, i = e % bins, best;
	if (e >= total)
		return;
	const T *box;
	i64 of = region_of(r, region, image, e / bins / r.channels, &box);
	if (of < 0) {
		y[e] = 0;
		return;
	}
	Bin b = bin_of(r, box, i / r.pw, i % r.pw);
	y[e] = (T)value_of(r, b, x + (of * r.channels + k) * r.h * r.w, &best);
}

KERNEL g_roi(Any y, Any x, Any region, const i64 *image, Roi r, i64 total, int type)
{
	BY_REAL(type, roi, y, x, region, image, r, total);
}

template <class T> __device__ static void roi_grad(T *dx, const T *dy, const T *x, const T *region, const i64 *image, const Roi &r, i64 total)
{
	i64 bins = r.ph * r.pw, best;
	if (element() != 0)
		return;
	for (i64 i = 0; i < r.images * r.channels * r.h * r.w; i++)
		dx[i] = 0;
	for (i64 e = 0; e < total; e++) {
		const T *box;
		i64 of = region_of(r, region, image, e / bins / r.channels, &box), plane = (of * r.channels + e / bins % r.channels) * r.h * r.w;
		if (of < 0)
			continue;
		Bin b = bin_of(r, box, e % bins / r.pw, e % r.pw);
		value_of(r, b, x + plane, &best);
		for (i64 k = 0; k < b.taps; k++) {
			double weight;
			i64 at = plane + tap(r, b, k, &weight);
			if (r.mean)
				dx[at] += (T)(dy[e] * weight / (double)(b.taps / 4));
			else if (k == best)
				dx[at] += (T)(dy[e] * weight);
		}
	}
}

KERNEL g_roi_grad(Any dx, Any dy, Any x, Any region, const i64 *image, Roi r, i64 total, int type)
{
	BY_REAL(type, roi_grad, dx, dy, x, region, image, r, total);
}
