/* How the planes of a convolution are laid out for its products, and how many images at a time.  conv_fast.c and
 * winograd.c use these functions, and work.h plans their scratch by the same numbers. */
#ifndef LAY_H
#define LAY_H

#include "kernels.h"

/* Groups of one channel are not computed as matrix products. */
static inline bool lay_none(int64_t groups, int64_t cin, int64_t cout)
{
	return groups > 1 && cin * cout <= 4;
}

/* Planes of rows x cols: element (r, c) of plane (p, q) is pixel (r * step + p - lo, c * step + q - lo) of the source,
 * or zero outside of it.  There are `phase` planes along each axis and `all` numbers per channel.  plain: the source
 * already has this layout. */
typedef struct Lay { bool plain; int64_t in[2], lo[2], step[2], phase[2], rows, cols, all; } Lay;

static inline int64_t lay_most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline Lay lay_done(Lay l, const int64_t *len)
{
	l.rows = len[0];
	l.cols = len[1];
	l.all = l.phase[0] * l.phase[1] * l.rows * l.cols;
	l.plain = l.step[0] == 1 && l.step[1] == 1 && !l.lo[0] && !l.lo[1] && l.rows == l.in[0] && l.cols == l.in[1];
	return l;
}

/* The layout of the input of a convolution. */
static inline Lay lay_of_x(const KWindow *v)
{
	Lay l = { 0 };
	int64_t len[2];
	for (int a = 0; a < 2; a++) {
		int64_t far = (v->k[a] - 1) * v->dil[a];
		l.in[a] = v->in[a], l.lo[a] = v->lo[a], l.step[a] = v->stride[a];
		l.phase[a] = far + 1 < v->stride[a] ? far + 1 : v->stride[a];
		len[a] = v->out[a] + far / v->stride[a];
	}
	return lay_done(l, len);
}

/* The layout of its output, for the gradient of the input: pixel i of the input reads (i + lo - position) / stride. */
static inline Lay lay_of_g(const KWindow *v)
{
	Lay l = { .step = { 1, 1 }, .phase = { 1, 1 } };
	int64_t len[2];
	for (int a = 0; a < 2; a++) {
		int64_t far = (v->k[a] - 1) * v->dil[a];
		l.in[a] = v->out[a];
		l.lo[a] = far > v->lo[a] ? (far - v->lo[a]) / v->stride[a] : 0;
		len[a] = l.lo[a] + lay_most(v->out[a], (v->in[a] - 1 + v->lo[a]) / v->stride[a] + 1);
	}
	return lay_done(l, len);
}

/* Along axis a, the class r of input pixels r, r + stride, ...: the first position of the window that reaches them
 * (lay_first, -1: none), and the number of these pixels (lay_class), 0 if no position reaches them. */
static inline int64_t lay_first(const KWindow *v, int a, int64_t r)
{
	for (int64_t m = 0; m < v->k[a]; m++)
		if ((r + v->lo[a] - m * v->dil[a]) % v->stride[a] == 0)
			return m;
	return -1;
}

static inline int64_t lay_class(const KWindow *v, int a, int64_t r)
{
	return v->in[a] > r && lay_first(v, a, r) >= 0 ? (v->in[a] - r + v->stride[a] - 1) / v->stride[a] : 0;
}

/* The number of pixels in all classes before r. */
static inline int64_t lay_before(const KWindow *v, int a, int64_t r)
{
	int64_t n = 0;
	for (int64_t q = 0; q < r; q++)
		n += lay_class(v, a, q);
	return n;
}

/* Images that are laid out at a time.  The number depends on pixels only, so that the order of sums over pixels does
 * not depend on the number of channels. */
static inline int64_t lay_images(const KWindow *v, int64_t batch)
{
	enum { PIXELS = 2048 };
	int64_t n = PIXELS / lay_most(1, v->out[0] * v->out[1]);
	return lay_most(1, n < batch ? n : batch);
}

enum { LAY_BEYOND = 64 };                               /* numbers behind the planes that packing may read */

/* Bytes of scratch for `images` images that are laid out together. */
static inline int64_t lay_bytes_x(const KWindow *v, int64_t images, int64_t cin)
{
	Lay l = lay_of_x(v);
	return 16 * v->k[0] * v->k[1] + (l.plain ? 0 : 4 * (images * cin * l.all + LAY_BEYOND));
}

static inline int64_t lay_bytes_g(const KWindow *v, int64_t batch, int64_t cin, int64_t cout)
{
	Lay l = lay_of_g(v);
	int64_t n = lay_images(v, batch), planes = l.plain ? 0 : n * cout * l.all + LAY_BEYOND;
	int64_t classes = v->stride[0] * v->stride[1] > 1
		? n * cin * lay_before(v, 0, v->stride[0]) * lay_before(v, 1, v->stride[1]) : 0;
	return 16 * v->k[0] * v->k[1] + 4 * (planes + classes);
}

/* ---- windows of 3 x 3 with step 1: winograd.h ---- */

enum { WINOGRAD_TILES = 224, WINOGRAD_WIDE = 512, WINOGRAD_ROWS = 28, WINOGRAD_FEW = 8 };

/* Whether Winograd's algorithm is used for this window.  It does not pay for few channels; the limit is low, so that
 * splitting a convolution by channels does not change the algorithm. */
static inline bool winograd_fits(const KWindow *v, int64_t cin, int64_t cout)
{
	for (int a = 0; a < 2; a++)
		if (v->k[a] != 3 || v->stride[a] != 1 || v->dil[a] != 1 || v->lo[a] < 0 || v->lo[a] > 2 ||
		    v->out[a] < 4 || v->out[a] - v->in[a] > 2 || v->out[a] - v->in[a] < -2)
			return false;
	return cin >= WINOGRAD_FEW && cout >= WINOGRAD_FEW && v->in[1] <= WINOGRAD_WIDE && v->out[1] <= WINOGRAD_WIDE;
}

/* The number of rows of tiles that are transformed at once, for a batch of planes `high` x `wide`; and the distance of
 * channels among transformed tiles: an odd number of cache lines. */
static inline int64_t winograd_rows(int64_t batch, int64_t high, int64_t wide)
{
	int64_t tiles = (wide + 1) / 2, all = batch * ((high + 1) / 2),
		rows = tiles > WINOGRAD_TILES ? 1 : WINOGRAD_TILES / tiles;
	return rows < all ? rows : all;
}

static inline int64_t winograd_apart(int64_t batch, int64_t high, int64_t wide)
{
	int64_t tiles = winograd_rows(batch, high, wide) * ((wide + 1) / 2);
	return (tiles + 8 + 31) / 32 * 32 + 16;
}

/* Bytes of scratch: shared by all threads, and of each thread. */
static inline int64_t winograd_shared(int64_t cin, int64_t cout, int64_t apart, bool gradw)
{
	return 64 * (cin * cout + (cin + (gradw ? cout : 0)) * apart) + 512;
}

static inline int64_t winograd_each(int64_t apart)
{
	return 64 * WINOGRAD_ROWS * apart + 4 * 32 * (WINOGRAD_WIDE + 32);
}

#endif
