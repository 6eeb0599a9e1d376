/* The pixels that a bin of a region of interest reads, as a list of taps: a pixel and a weight each.  The CPU and CUDA
 * kernels share this text. */
#ifndef ROI_H
#define ROI_H

#ifndef DIALECT_H
#include "kernels.h"

#include <math.h>

#define K_DEVICE static inline
#endif

typedef struct Bin {
	double y, x, high, wide;        /* aligned: the first point, and the distance of points */
	i64 ny, nx;                     /* aligned: points per axis; else pixels */
	i64 y0, x0;                     /* not aligned: the first pixel */
	i64 taps;
} Bin;

K_DEVICE i64 pixel_at(double v, i64 n)
{
	return v > 0 ? v < (double)n ? (i64)v : n : 0;
}

K_DEVICE i64 points(const KRoi *r, double size)
{
	double n = ceil(size);
	return r->samples ? r->samples : n > 4096 ? 4096 : n > 0 ? (i64)n : 0;
}

/* Bin (i, j) of the region box[] = { x1, y1, x2, y2 }. */
K_DEVICE Bin bin_of(const KRoi *r, const double *box, i64 i, i64 j)
{
	Bin b = { 0 };
	if (r->align) {
		double shift = r->half ? 0.5 : 0, x = box[0] * r->scale - shift, y = box[1] * r->scale - shift;
		double w = box[2] * r->scale - shift - x, h = box[3] * r->scale - shift - y;
		double bh = (r->half || h > 1 ? h : 1) / (double)r->ph, bw = (r->half || w > 1 ? w : 1) / (double)r->pw;
		b.ny = points(r, bh);
		b.nx = points(r, bw);
		b.high = bh / (double)(b.ny ? b.ny : 1);
		b.wide = bw / (double)(b.nx ? b.nx : 1);
		b.y = y + (double)i * bh + b.high / 2;
		b.x = x + (double)j * bw + b.wide / 2;
		b.taps = 4 * b.ny * b.nx;
		return b;
	}
	double x = round(box[0] * r->scale), y = round(box[1] * r->scale);
	double h = round(box[3] * r->scale) - y + 1, w = round(box[2] * r->scale) - x + 1;
	double bh = (h > 1 ? h : 1) / (double)r->ph, bw = (w > 1 ? w : 1) / (double)r->pw;
	b.y0 = pixel_at(floor((double)i * bh) + y, r->h);
	b.x0 = pixel_at(floor((double)j * bw) + x, r->w);
	b.ny = pixel_at(ceil((double)(i + 1) * bh) + y, r->h) - b.y0;
	b.nx = pixel_at(ceil((double)(j + 1) * bw) + x, r->w) - b.x0;
	b.taps = b.ny > 0 && b.nx > 0 ? b.ny * b.nx : 0;
	return b;
}

K_DEVICE double clamped(double v, i64 n)
{
	return v < 0 ? 0 : v > (double)(n - 1) ? (double)(n - 1) : v;
}

/* The pixel of tap k, and its weight.  Aligned: taps are the four neighbours of each point in turn, and points more
 * than a pixel outside of the image have weight 0. */
K_DEVICE i64 tap(const KRoi *r, const Bin *b, i64 k, double *weight)
{
	*weight = 1;
	if (!r->align)
		return (b->y0 + k / b->nx) * r->w + b->x0 + k % b->nx;
	double y = b->y + (double)(k / 4 / b->nx) * b->high, x = b->x + (double)(k / 4 % b->nx) * b->wide;
	*weight = 0;
	if (!(y >= -1 && y <= (double)r->h && x >= -1 && x <= (double)r->w))
		return 0;
	y = clamped(y, r->h);
	x = clamped(x, r->w);
	i64 iy = (i64)y, ix = (i64)x;
	double fy = y - (double)iy, fx = x - (double)ix;
	bool down = k & 2, right = k & 1;
	*weight = (down ? fy : 1 - fy) * (right ? fx : 1 - fx);
	return (down && iy < r->h - 1 ? iy + 1 : iy) * r->w + (right && ix < r->w - 1 ? ix + 1 : ix);
}

#endif
