/* Regions of interest.  A bin reads a list of taps, a pixel and a weight each (roi.h); value and gradient walk the same
 * list. */
#include "real.h"
#include "roi.h"
#include "turns.h"

/* The value of a bin on the plane at x; *best is the tap with the largest value, -1: none. */
static double value(const KRoi *r, const Bin *b, const void *x, int64_t plane, KType type, int64_t *best)
{
	double v = 0, weight;
	*best = -1;
	for (int64_t k = 0; k < b->taps; k++) {
		int64_t at = tap(r, b, k, &weight);
		double t = weight * load(x, plane + at, type);
		if (r->mean) {
			v += t;
		} else if (*best < 0 || t > v) {
			v = t;
			*best = k;
		}
	}
	return r->mean && b->taps ? v / (double)(b->taps / 4) : v;
}

/* Adds the gradient of a bin to the plane. */
static void spread(const KRoi *r, const Bin *b, void *dx, const void *x, int64_t plane, double dy, KType type)
{
	int64_t best;
	double weight;
	value(r, b, x, plane, type, &best);
	for (int64_t k = 0; k < b->taps; k++) {
		int64_t at = plane + tap(r, b, k, &weight);
		if (r->mean)
			store(dx, at, load(dx, at, type) + dy * weight / (double)(b->taps / 4), type);
		else if (k == best)
			store(dx, at, load(dx, at, type) + dy * weight, type);
	}
}

typedef struct Job { void *y; const void *dy, *x, *region; const int64_t *image; const KRoi *r; KType type; } Job;

/* The image of region n; box receives its corners. */
static double place_of(const Job *b, int64_t n, double *box)
{
	int64_t wide = b->image ? 4 : 5;
	for (int k = 0; k < 4; k++)
		box[k] = load(b->region, n * wide + wide - 4 + k, b->type);
	return b->image ? (double)b->image[n] : load(b->region, n * wide, b->type);
}

static int check(Ctx *c, const Job *b)
{
	for (int64_t n = 0; n < b->r->regions; n++) {
		double box[4], of = place_of(b, n, box);
		if (!(of >= 0 && of < (double)b->r->images))
			return rt_error(c, RT_DATA, "region %lld is in image %g of %lld", (long long)n, of,
				(long long)b->r->images);
	}
	return 0;
}

/* One iteration per bin of a region; it computes all channels. */
static void values(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	const KRoi *r = b->r;
	int64_t bins = r->ph * r->pw, best;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		double box[4];
		int64_t n = i / bins, image = (int64_t)place_of(b, n, box);
		Bin bin = bin_of(r, box, i % bins / r->pw, i % r->pw);
		for (int64_t k = 0; k < r->channels; k++)
			store(b->y, (n * r->channels + k) * bins + i % bins,
				value(r, &bin, b->x, (image * r->channels + k) * r->h * r->w, b->type, &best), b->type);
	}
}

/* One iteration per channel: regions overlap, but a channel adds to its own planes only. */
static void gradients(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	const KRoi *r = b->r;
	int64_t bins = r->ph * r->pw, pixels = r->h * r->w;
	(void)thread;
	for (int64_t image = 0; image < r->images; image++)
		for (int64_t i = (image * r->channels + lo) * pixels; i < (image * r->channels + hi) * pixels; i++)
			store(b->y, i, 0, b->type);
	for (int64_t i = 0; i < r->regions * bins; i++) {
		double box[4];
		int64_t n = i / bins, image = (int64_t)place_of(b, n, box);
		Bin bin = bin_of(r, box, i % bins / r->pw, i % r->pw);
		for (int64_t k = lo; k < hi; k++)
			spread(r, &bin, b->y, b->x, (image * r->channels + k) * pixels,
				load(b->dy, (n * r->channels + k) * bins + i % bins, b->type), b->type);
	}
}

int k_roi(Ctx *c, void *y, const void *x, const void *region, const int64_t *image, const KRoi *r, KType type)
{
	Job b = { .y = y, .x = x, .region = region, .image = image, .r = r, .type = type };
	int code = check(c, &b);
	return code ? code : turns(c, r->regions * r->ph * r->pw, 16 * r->channels, values, &b);
}

int k_roi_grad(Ctx *c, void *dx, const void *dy, const void *x, const void *region, const int64_t *image,
	const KRoi *r, KType type)
{
	Job b = { .y = dx, .dy = dy, .x = x, .region = region, .image = image, .r = r, .type = type };
	int code = check(c, &b);
	return code ? code : turns(c, r->channels, 16 * r->regions * r->ph * r->pw, gradients, &b);
}
