/* Regions of interest: a bin reads a list of taps, a pixel and a weight each.  One thread per element of the result.
 * The gradient uses a single thread, because regions overlap.  A region without an image contributes nothing. */
#include "dialect.h"

#include "roi.h"

template <class T> __device__ static double value_of(const KRoi &r, const Bin &b, const T *plane, i64 *best)
{
	double v = 0, weight;
	*best = -1;
	for (i64 k = 0; k < b.taps; k++) {
		i64 at = tap(&r, &b, k, &weight);
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

/* The image of region n, or -1; box receives its corners. */
template <class T> __device__ static i64 region_of(const KRoi &r, const T *region, const i64 *image, i64 n, double *box)
{
	double of = image ? (double)image[n] : (double)region[n * 5];
	const T *at = image ? region + n * 4 : region + n * 5 + 1;
	for (int k = 0; k < 4; k++)
		box[k] = at[k];
	return of >= 0 && of < (double)r.images ? (i64)of : -1;
}

template <class T> __device__ static void roi(T *y, const T *x, const T *region, const i64 *image,
	const KRoi &r, i64 total)
{
	i64 e = element(), bins = r.ph * r.pw, k = e / bins % r.channels, i = e % bins, best;
	if (e >= total)
		return;
	double box[4];
	i64 of = region_of(r, region, image, e / bins / r.channels, box);
	if (of < 0) {
		y[e] = 0;
		return;
	}
	Bin b = bin_of(&r, box, i / r.pw, i % r.pw);
	y[e] = (T)value_of(r, b, x + (of * r.channels + k) * r.h * r.w, &best);
}

KERNEL g_roi(Any y, Any x, Any region, const i64 *image, KRoi r, i64 total, int type)
{
	BY_REAL(type, roi, y, x, region, image, r, total);
}

template <class T> __device__ static void roi_grad(T *dx, const T *dy, const T *x, const T *region, const i64 *image,
	const KRoi &r, i64 total)
{
	i64 bins = r.ph * r.pw, best;
	if (element() != 0)
		return;
	for (i64 i = 0; i < r.images * r.channels * r.h * r.w; i++)
		dx[i] = 0;
	for (i64 e = 0; e < total; e++) {
		double box[4];
		i64 of = region_of(r, region, image, e / bins / r.channels, box),
			plane = (of * r.channels + e / bins % r.channels) * r.h * r.w;
		if (of < 0)
			continue;
		Bin b = bin_of(&r, box, e % bins / r.pw, e % r.pw);
		value_of(r, b, x + plane, &best);
		for (i64 k = 0; k < b.taps; k++) {
			double weight;
			i64 at = plane + tap(&r, &b, k, &weight);
			if (r.mean)
				dx[at] += (T)(dy[e] * weight / (double)(b.taps / 4));
			else if (k == best)
				dx[at] += (T)(dy[e] * weight);
		}
	}
}

KERNEL g_roi_grad(Any dx, Any dy, Any x, Any region, const i64 *image, KRoi r, i64 total, int type)
{
	BY_REAL(type, roi_grad, dx, dy, x, region, image, r, total);
}
