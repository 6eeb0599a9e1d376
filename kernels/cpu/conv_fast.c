/* Convolutions and their two gradients as matrix products.  The unfolded operand (im2col) is never written as a whole:
 * packing a panel copies the numbers it needs from the planes.  A letter p stands for a position of the window.
 *
 *   forward     y[o, pixel]  = sum over (channel, p) of  w[o, channel, p]  x[channel, pixel + p]
 *   gradient x  x[i, pixel]  = sum over (o, p)       of  w[o, i, p]        g[o, pixel - p]
 *   gradient w  w[o, (i, p)] = sum over pixels       of  g[o, pixel]       x[i, pixel + p]
 *
 * For a window of one position and step 1 the planes themselves are the operand.  Other planes are first laid out for
 * the product, some images at a time: with their padding, and with a step s as s x s planes of every s-th pixel, so
 * that each position of the window is a plane that is read from some offset on.  With a step, the pixels of a gradient
 * of x fall into s x s classes, each of which sees only some positions of the window.  Each class is one product, and
 * the classes are interleaved afterwards.
 *
 * Windows of 3 x 3 with step 1 have a faster algorithm (winograd.h).  Groups of one channel have no matrix product:
 * they are computed plane by plane. */
#include "isa.h"
#include "winograd.h"
#include "work.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* One product.  For position p of the window and channel ch of the sum, pixel (u, v) of the result reads
 * x[image * ximage + ch * xplane + off[p] + u * xrow + v] and the weight w[row * wout + ch * win + at[p]]. */
typedef struct Conv {
	RtIsa isa;
	const float *x, *w;
	const float *end;               /* the end of the memory around x that may be read */
	float *y;
	const int64_t *off, *at;
	int64_t nk;
	int64_t ximage, xplane, xrow;
	int64_t rows, cols, pixels;     /* sizes of a plane of the result */
	int64_t yimage, yplane;
	int64_t wout, win;
} Conv;

/* A piece of a row of results: n of them, from column j of a panel on; x points to the input of the first, for position
 * 0 of the window. */
typedef struct RowPiece { const float *x; int64_t j, n; } RowPiece;

static int row_pieces(const Conv *v, RowPiece *piece, int64_t at, int64_t count)
{
	int np = 0;
	for (int64_t j = 0; j < count;) {
		int64_t image = (at + j) / v->pixels, p = (at + j) % v->pixels, u = p / v->cols, c = p % v->cols,
			n = least(count - j, v->cols - c);
		piece[np++] = (RowPiece){ v->x + image * v->ximage + u * v->xrow + c, j, n };
		j += n;
	}
	return np;
}

/* Packs a panel of pixels, for several k's (channel, position).  If the width is known, `width` numbers are copied even
 * if fewer are needed: the next copy overwrites the surplus, and there is room to read behind the planes. */
INLINE void pack_width(int width, bool known, const Conv *v, float *to, int64_t at, int64_t count,
	int64_t from, int64_t len)
{
	RowPiece piece[GEMM_WIDTH];
	int np = row_pieces(v, piece, at, count);
	int64_t ch = from / v->nk, m = from % v->nk;
	const float *x = piece[np - 1].x;
	bool whole = known && np == 1 && count == width, loose = known &&
		v->end - x >= ((from + len - 1) / v->nk + 1) * v->xplane + width;
	for (int64_t k = 0; k < len; k++, to += width) {
		int64_t off = ch * v->xplane + v->off[m];
		if (whole)
			memcpy(to, x + off, (size_t)width * sizeof *to);
		else if (loose)
			for (int i = 0; i < np; i++)
				memcpy(to + piece[i].j, piece[i].x + off, (size_t)width * sizeof *to);
		else
			for (int i = 0; i < np; i++)
				memcpy(to + piece[i].j, piece[i].x + off, (size_t)piece[i].n * sizeof *to);
		for (int64_t j = count; j < width; j++)
			to[j] = 0;
		if (++m == v->nk)
			m = 0, ch++;
	}
}

#if defined(__x86_64__)
K_AVX2 static void pack_avx2(const Conv *v, float *to, int64_t at, int64_t count, int64_t from, int64_t len)
{
	pack_width(16, true, v, to, at, count, from, len);
}

K_AVX2 static void pack_avx512(const Conv *v, float *to, int64_t at, int64_t count, int64_t from, int64_t len)
{
	pack_width(32, true, v, to, at, count, from, len);
}
#endif

static void pack_pixels(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width,
	int64_t from, int64_t len)
{
	(void)batch;
#if defined(__x86_64__)
	if (width == 16) {
		pack_avx2(arg, to, at, count, from, len);
		return;
	}
	if (width == 32) {
		pack_avx512(arg, to, at, count, from, len);
		return;
	}
#endif
	pack_width((int)width, false, arg, to, at, count, from, len);
}

/* Packs a panel of the weight: rows at .. at + count - 1, several k's (channel, position). */
static void pack_weight(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width,
	int64_t from, int64_t len)
{
	const Conv *v = arg;
	(void)batch;
	for (int64_t i = 0; i < count; i++) {
		int64_t ch = from / v->nk, m = from % v->nk;
		const float *w = v->w + (at + i) * v->wout;
		for (int64_t k = 0; k < len; k++) {
			to[k * width + i] = w[ch * v->win + v->at[m]];
			if (++m == v->nk)
				m = 0, ch++;
		}
	}
}

/* Stores a finished tile whose columns lie in several images. */
static void put(const void *arg, const float *tile, int64_t width, int64_t batch, int64_t row, int64_t rows,
	int64_t col, int64_t cols, bool first)
{
	const Conv *v = arg;
	(void)batch;
	for (int64_t j = 0; j < cols;) {
		int64_t image = (col + j) / v->pixels, p = (col + j) % v->pixels, n = least(cols - j, v->pixels - p);
		for (int64_t i = 0; i < rows; i++) {
			float *y = v->y + image * v->yimage + (row + i) * v->yplane + p;
			for (int64_t k = 0; k < n; k++)
				y[k] = first ? tile[i * width + j + k] : y[k] + tile[i * width + j + k];
		}
		j += n;
	}
}

/* The destination of columns that lie in one image; else NULL. */
static float *address(const void *arg, int64_t batch, int64_t row, int64_t col, int64_t cols)
{
	const Conv *v = arg;
	int64_t image = col / v->pixels, p = col % v->pixels;
	(void)batch;
	return p + cols <= v->pixels ? v->y + image * v->yimage + row * v->yplane + p : NULL;
}

/* The product over `images` images: m rows, k = channels x positions.  turned: the weights of neighbouring k's are not
 * neighbours in memory. */
static void run_pixels(Ctx *c, Conv *v, int64_t images, int64_t m, int64_t channels, bool turned)
{
	v->pixels = v->rows * v->cols;
	if (v->nk == 1 && v->xrow == v->cols)           /* treat the plane as one row */
		v->cols = v->pixels, v->rows = 1;
	Gemm g = { .batch = 1, .m = m, .n = images * v->pixels, .k = channels * v->nk,
		.a = { .x = v->w, .at = v->wout, .k = 1 }, .b = { .pack = pack_pixels, .arg = v }, .y = v->y,
		.yrow = v->yplane, .store = put, .address = address, .arg = v };
	if (turned && v->nk == 1)
		g.a = (GemmSide){ .x = v->w + v->at[0], .at = v->wout, .k = v->win };
	else if (turned)
		g.a.pack = pack_weight, g.a.arg = v;
	if (images == 1) {
		g.store = NULL;
		if (v->rows == 1 && v->nk == 1)         /* the plane is the operand: no packing */
			g.b = (GemmSide){ .x = v->x + v->off[0], .at = 1, .k = v->xplane };
	}
	gemm_run(c, &g);
}

/* ---- planes laid out ---- */

typedef struct Layer { const float *x; float *to; int64_t ximage, channels; Lay l; } Layer;

/* n numbers of a source row, from column col on, `stride` apart; zero outside of the row. */
K_LOOP void copy_row(float *restrict to, const float *restrict row, int64_t col, int64_t n, int64_t stride, int64_t len)
{
	int64_t lo = col < 0 ? least(n, (-col + stride - 1) / stride) : 0,
		hi = len > col ? least(n, (len - col + stride - 1) / stride) : 0;
	hi = hi < lo ? lo : hi;
	for (int64_t j = 0; j < lo; j++)
		to[j] = 0;
	if (stride == 1)
		K_VECTOR for (int64_t j = lo; j < hi; j++)
			to[j] = row[col + j];
	else if (stride == 2)
		K_VECTOR for (int64_t j = lo; j < hi; j++)
			to[j] = row[col + 2 * j];
	else
		for (int64_t j = lo; j < hi; j++)
			to[j] = row[col + j * stride];
	for (int64_t j = hi; j < n; j++)
		to[j] = 0;
}

K_LOOP void lay(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Layer *s = arg;
	const Lay *l = &s->l;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		const float *x = s->x + i / s->channels * s->ximage + i % s->channels * l->in[0] * l->in[1];
		float *to = s->to + i * l->all;
		for (int64_t p = 0; p < l->phase[0] * l->phase[1]; p++)
			for (int64_t r = 0; r < l->rows; r++, to += l->cols) {
				int64_t row = r * l->step[0] + p / l->phase[1] - l->lo[0];
				if (row < 0 || row >= l->in[0])
					memset(to, 0, (size_t)l->cols * sizeof *to);
				else
					copy_row(to, x + row * l->in[1], p % l->phase[1] - l->lo[1], l->cols,
						l->step[1], l->in[1]);
			}
	}
}
K_EACH_ISA(lay)

/* Lays out `channels` planes of some images, unless the source already has that layout; v then reads the result. */
static void lay_out(Ctx *c, Conv *v, const Lay *l, float *to, const float *x, int64_t ximage, int64_t images,
	int64_t channels)
{
	Layer s = { .x = x, .to = to, .ximage = ximage, .channels = channels, .l = *l };
	v->x = l->plain ? x : to;
	v->ximage = l->plain ? ximage : channels * l->all;
	v->end = l->plain ? x + (images - 1) * ximage + channels * l->all
		: to + images * channels * l->all + LAY_BEYOND;
	v->xplane = l->all;
	v->xrow = l->cols;
	if (!l->plain)
		rt_parallel(c, images * channels, 1 + 8192 / (l->all + 1), K_PICK(c, lay), &s);
}

/* ---- gradient of the weight: the sum (k) runs over the pixels of all images ---- */

typedef struct Grad { Conv v; const float *g; int64_t gimage, gplane; } Grad;

static void pack_rows(RtIsa isa, float *to, const float *x, int64_t image, int64_t plane, int64_t pixels, int64_t at,
	int64_t count, int64_t width, int64_t from, int64_t len)
{
	for (int64_t k = 0; k < len;) {
		int64_t i = (from + k) / pixels, p = (from + k) % pixels, n = least(len - k, pixels - p);
		gemm_turn(isa, to + k * width, x + i * image + at * plane + p, plane, count, width, n);
		k += n;
	}
	for (int64_t k = 0; k < len && count < width; k++)
		for (int64_t j = count; j < width; j++)
			to[k * width + j] = 0;
}

static void pack_g(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width,
	int64_t from, int64_t len)
{
	const Grad *d = arg;
	(void)batch;
	pack_rows(d->v.isa, to, d->g, d->gimage, d->gplane, d->v.pixels, at, count, width, from, len);
}

/* A piece of a row of pixels: n of them, from index `at` of k on; x is the offset of the first, for position 0 and
 * channel 0. */
typedef struct Run { int64_t at, x, n; } Run;

static int runs_of(const Conv *v, Run *run, int64_t from, int64_t len)
{
	int nrun = 0;
	for (int64_t k = 0; k < len; k += run[nrun++].n) {
		int64_t image = (from + k) / v->pixels, p = (from + k) % v->pixels;
		run[nrun] = (Run){ k, image * v->ximage + p / v->cols * v->xrow + p % v->cols,
			least(len - k, v->cols - p % v->cols) };
	}
	return nrun;
}

enum { RUN = 16 };                                      /* numbers per copy, as in pack_width */

static void copy_runs(float *to, const float *x, const Run *run, int nrun, const float *end)
{
	const Run *last = &run[nrun - 1];
	if (end - x >= last->x + last->n + RUN)
		for (int i = 0; i < nrun; i++)
			for (int64_t k = 0; k < run[i].n; k += RUN)
				memcpy(to + run[i].at + k, x + run[i].x + k, RUN * sizeof *to);
	else
		for (int i = 0; i < nrun; i++)
			memcpy(to + run[i].at, x + run[i].x, (size_t)run[i].n * sizeof *to);
}

static void pack_positions(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width,
	int64_t from, int64_t len)
{
	const Conv *v = &((const Grad *)arg)->v;
	/* Rows that are transposed together.  More would only take more stack, which the memory plan counts. */
	enum { SOME = 8 };
	float rows[SOME * GEMM_K + RUN];
	Run run[GEMM_K];
	(void)batch;
	if (v->nk == 1 && v->xrow == v->cols) {
		pack_rows(v->isa, to, v->x + v->off[0], v->ximage, v->xplane, v->pixels, at, count, width, from, len);
		return;
	}
	rows[0] = 0;
	int nrun = runs_of(v, run, from, len);
	for (int64_t j = 0; nrun && j < count; j++) {
		copy_runs(rows + j % SOME * GEMM_K, v->x + (at + j) / v->nk * v->xplane + v->off[(at + j) % v->nk],
			run, nrun, v->end);
		if (j % SOME == SOME - 1 || j + 1 == count)
			gemm_turn(v->isa, to + j / SOME * SOME, rows, GEMM_K, j % SOME + 1, width, len);
	}
	for (int64_t k = 0; k < len && count < width; k++)
		for (int64_t j = count; j < width; j++)
			to[k * width + j] = 0;
}

/* ---- groups of one channel ---- */

typedef enum { FORWARD, GRAD_X, GRAD_W } Way;
typedef struct Direct { Way way; float *x, *y, *w; int64_t batch, groups, cin, cout; KWindow v; } Direct;

static void reach(const KWindow *w, int a, int64_t k, int64_t *from, int64_t *to)
{
	int64_t at = k * w->dil[a] - w->lo[a], s = w->stride[a], last = w->in[a] - 1 - at;
	*from = at < 0 ? (-at + s - 1) / s : 0;
	*to = last < 0 ? 0 : least(last / s + 1, w->out[a]);
}

K_LOOP float row_of(Way way, float *in, float *out, int64_t n, int64_t s, float f)
{
	float sum[K_LANES] = { 0 }, all = 0;
	int64_t i = 0;
	if (way == FORWARD && s == 1)
		K_VECTOR for (i = 0; i < n; i++)
			out[i] += f * in[i];
	else if (way == FORWARD)
		K_VECTOR for (i = 0; i < n; i++)
			out[i] += f * in[i * s];
	else if (way == GRAD_X && s == 1)
		K_VECTOR for (i = 0; i < n; i++)
			in[i] += f * out[i];
	else if (way == GRAD_X)
		K_VECTOR for (i = 0; i < n; i++)
			in[i * s] += f * out[i];
	else {
		for (; i + K_LANES <= n; i += K_LANES)
			for (int j = 0; j < K_LANES; j++)
				sum[j] += in[(i + j) * s] * out[i + j];
		for (int j = 0; i < n; i++, j++)
			sum[j] += in[i * s] * out[i];
		for (int j = 0; j < K_LANES; j++)
			all += sum[j];
	}
	return all;
}

K_LOOP void one_plane(Way way, const KWindow *w, float *x, float *y, float *wt)
{
	for (int64_t ky = 0; ky < w->k[0]; ky++)
		for (int64_t kx = 0; kx < w->k[1]; kx++) {
			int64_t y0, y1, x0, x1;
			float *f = &wt[ky * w->k[1] + kx], sum = 0;
			reach(w, 0, ky, &y0, &y1);
			reach(w, 1, kx, &x0, &x1);
			for (int64_t oy = y0; oy < y1 && x0 < x1; oy++) {
				float *in = x + (oy * w->stride[0] - w->lo[0] + ky * w->dil[0]) * w->in[1] - w->lo[1] +
					kx * w->dil[1] + x0 * w->stride[1];
				sum += row_of(way, in, y + oy * w->out[1] + x0, x1 - x0, w->stride[1], *f);
			}
			if (way == GRAD_W)
				*f += sum;
		}
}

/* All planes of group g of image b. */
K_LOOP void one_group(const Direct *d, Way way, int64_t b, int64_t g)
{
	int64_t nin = d->v.in[0] * d->v.in[1], nout = d->v.out[0] * d->v.out[1], nk = d->v.k[0] * d->v.k[1];
	for (int64_t o = 0; o < d->cout; o++)
		for (int64_t i = 0; i < d->cin; i++)
			one_plane(way, &d->v, d->x + ((b * d->groups + g) * d->cin + i) * nin,
				d->y + ((b * d->groups + g) * d->cout + o) * nout,
				d->w + ((g * d->cout + o) * d->cin + i) * nk);
}

K_LOOP void direct(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Direct *d = arg;
	int64_t nin = d->v.in[0] * d->v.in[1], nout = d->v.out[0] * d->v.out[1], nk = d->v.k[0] * d->v.k[1];
	(void)thread;
	for (int64_t i = lo; i < hi; i++)
		if (d->way == FORWARD) {
			memset(d->y + i * d->cout * nout, 0, (size_t)(d->cout * nout) * sizeof *d->y);
			one_group(d, FORWARD, i / d->groups, i % d->groups);
		} else if (d->way == GRAD_X) {
			memset(d->x + i * d->cin * nin, 0, (size_t)(d->cin * nin) * sizeof *d->x);
			one_group(d, GRAD_X, i / d->groups, i % d->groups);
		} else {
			memset(d->w + i * d->cout * d->cin * nk, 0, (size_t)(d->cout * d->cin * nk) * sizeof *d->w);
			for (int64_t b = 0; b < d->batch; b++)
				one_group(d, GRAD_W, b, i);
		}
}
K_EACH_ISA(direct)

/* The result is writable, the two operands are const to the caller; the loops take all three without const. */
static float *writable(const float *p)
{
	union { const float *in; float *out; } u = { p };
	return u.out;
}

static void run_direct(Ctx *c, Way way, const float *x, const float *y, const float *w, int64_t batch, int64_t groups,
	int64_t cin, int64_t cout, const KWindow *v)
{
	Direct d = { .way = way, .x = writable(x), .y = writable(y), .w = writable(w), .batch = batch,
		.groups = groups, .cin = cin, .cout = cout, .v = *v };
	rt_parallel(c, way == GRAD_W ? groups : batch * groups, 1, K_PICK(c, direct), &d);
}

/* ---- the kernels ---- */

typedef struct Bias { float *y; const float *b; int64_t channels, n; } Bias;

static void add_bias(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Bias *s = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		float b = s->b[i % s->channels], *y = s->y + i * s->n;
		K_VECTOR for (int64_t j = 0; j < s->n; j++)
			y[j] += b;
	}
}

/* The tables of offsets come first in the scratch; the planes follow. */
static float *tables(Ctx *c, int64_t nk, int64_t **off, int64_t **at)
{
	*off = (int64_t *)(void *)c->shared;
	*at = *off + nk;
	return (float *)(void *)(*at + nk);
}

/* The offset of each position of the window in planes that are laid out for it. */
static void find_places(const KWindow *v, const Lay *l, int64_t *off)
{
	for (int64_t m = 0; m < v->k[0] * v->k[1]; m++) {
		int64_t y = m / v->k[1] * v->dil[0], x = m % v->k[1] * v->dil[1];
		off[m] = (y % l->step[0] * l->phase[1] + x % l->step[1]) * l->rows * l->cols + y / l->step[0] *
			l->cols + x / l->step[1];
	}
}

static Winograd winograd(const KWindow *v, int64_t batch, int64_t groups, int64_t cin, int64_t cout)
{
	return (Winograd){
		.batch = batch, .cin = cin, .cout = cout,
		.in = { v->in[0], v->in[1] }, .out = { v->out[0], v->out[1] }, .lo = { v->lo[0], v->lo[1] },
		.ximage = groups * cin * v->in[0] * v->in[1], .yimage = groups * cout * v->out[0] * v->out[1],
		.wout = cin * 9, .win = 9,
	};
}

/* Group g of images from .. from + n - 1. */
static void forward(Ctx *c, float *y, const float *x, const float *w, int64_t groups, int64_t n, int64_t cin,
	int64_t cout, const KWindow *v)
{
	int64_t *off, *at, nout = v->out[0] * v->out[1], nk = v->k[0] * v->k[1];
	float *planes = tables(c, nk, &off, &at);
	Lay l = lay_of_x(v);
	Conv s = { .isa = c->isa, .w = w, .y = y, .off = off, .at = at, .nk = nk, .rows = v->out[0], .cols = v->out[1],
		.yimage = groups * cout * nout, .yplane = nout, .wout = cin * nk, .win = nk };
	find_places(v, &l, off);
	lay_out(c, &s, &l, planes, x, groups * cin * v->in[0] * v->in[1], n, cin);
	run_pixels(c, &s, n, cout, cin, false);
}

int k_conv_f32(Ctx *c, float *y, const float *x, const float *w, const float *b, int64_t batch, int64_t groups,
	int64_t cin, int64_t cout, KWindow v)
{
	int64_t nin = v.in[0] * v.in[1], nout = v.out[0] * v.out[1], nk = v.k[0] * v.k[1], some = lay_images(&v, batch);
	if (!cin)                               /* no channels: the result is the bias alone */
		memset(y, 0, (size_t)(batch * groups * cout * nout) * sizeof *y);
	else if (lay_none(groups, cin, cout))
		run_direct(c, FORWARD, x, y, w, batch, groups, cin, cout, &v);
	for (int64_t g = 0; g < groups && cin && !lay_none(groups, cin, cout); g++) {
		if (winograd_fits(&v, cin, cout)) {
			Winograd s = winograd(&v, batch, groups, cin, cout);
			s.x = x + g * cin * nin, s.w = w + g * cout * cin * 9, s.y = y + g * cout * nout;
			winograd_run(c, &s);
		} else {
			for (int64_t i = 0; i < batch; i += some)
				forward(c, y + (i * groups + g) * cout * nout, x + (i * groups + g) * cin * nin,
					w + g * cout * cin * nk, groups, least(some, batch - i), cin, cout, &v);
		}
	}
	if (b) {
		Bias s = { y, b, groups * cout, nout };
		rt_parallel(c, batch * groups * cout, 1 + 8192 / (nout + 1), add_bias, &s);
	}
	return 0;
}

/* Interleaves the results of all classes of a channel of an image. */
typedef struct Join { float *x; const float *z; int64_t ximage, images, channels; KWindow v; } Join;

static int64_t class_at(const Join *s, int64_t ry, int64_t rx)
{
	const KWindow *v = &s->v;
	return s->images * s->channels *
		(lay_before(v, 0, ry) * lay_before(v, 1, v->stride[1]) + lay_class(v, 0, ry) * lay_before(v, 1, rx));
}

K_LOOP void join_row(float *restrict x, const float *restrict z, int64_t stride, int64_t n)
{
	if (!z)
		for (int64_t j = 0; j < n; j++)
			x[j * stride] = 0;
	else if (stride == 2)
		K_VECTOR for (int64_t j = 0; j < n; j++)
			x[2 * j] = z[j];
	else
		for (int64_t j = 0; j < n; j++)
			x[j * stride] = z[j];
}

K_LOOP void join(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Join *s = arg;
	const KWindow *v = &s->v;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		float *x = s->x + i / s->channels * s->ximage + i % s->channels * v->in[0] * v->in[1];
		for (int64_t ry = 0; ry < v->stride[0]; ry++)
			for (int64_t rx = 0; rx < v->stride[1]; rx++) {
				int64_t h = lay_class(v, 0, ry), w = lay_class(v, 1, rx),
					n = v->in[1] > rx ? (v->in[1] - rx + v->stride[1] - 1) / v->stride[1] : 0;
				const float *z = h && w ? s->z + class_at(s, ry, rx) + i * h * w : NULL;
				for (int64_t u = 0; u * v->stride[0] + ry < v->in[0]; u++)
					join_row(x + (u * v->stride[0] + ry) * v->in[1] + rx, z ? z + u * w : NULL,
						v->stride[1], n);
			}
	}
}
K_EACH_ISA(join)

static int64_t common(int64_t a, int64_t b)
{
	while (b) {
		int64_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

/* The positions that reach class (ry, rx): returns their number; off: their offsets in the planes of g; at: their
 * positions in the window. */
static int64_t class_places(const KWindow *v, const Lay *l, int64_t ry, int64_t rx, int64_t *off, int64_t *at)
{
	int64_t n = 0, fy = lay_first(v, 0, ry), fx = lay_first(v, 1, rx);
	for (int64_t y = fy; y < v->k[0]; y += v->stride[0] / common(v->stride[0], v->dil[0]))
		for (int64_t x = fx; x < v->k[1]; x += v->stride[1] / common(v->stride[1], v->dil[1]), n++) {
			off[n] = ((ry + v->lo[0] - y * v->dil[0]) / v->stride[0] + l->lo[0]) * l->cols +
				(rx + v->lo[1] - x * v->dil[1]) / v->stride[1] + l->lo[1];
			at[n] = y * v->k[1] + x;
		}
	return n;
}

/* One group of n images. */
static void grad_x(Ctx *c, float *x, const float *g, const float *w, int64_t groups, int64_t n, int64_t cin,
	int64_t cout, const KWindow *v)
{
	int64_t *off, *at, nk = v->k[0] * v->k[1], ximage = groups * cin * v->in[0] * v->in[1];
	bool whole = v->stride[0] == 1 && v->stride[1] == 1;
	Lay l = lay_of_g(v);
	float *planes = tables(c, nk, &off, &at), *z = planes + (l.plain ? 0 : n * cout * l.all + LAY_BEYOND);
	Conv s = { .isa = c->isa, .w = w, .off = off, .at = at, .wout = nk, .win = cin * nk };
	Join j = { .x = x, .z = z, .ximage = ximage, .images = n, .channels = cin, .v = *v };
	lay_out(c, &s, &l, planes, g, groups * cout * v->out[0] * v->out[1], n, cout);
	for (int64_t i = 0; i < v->stride[0] * v->stride[1]; i++) {
		int64_t ry = i / v->stride[1], rx = i % v->stride[1], h = lay_class(v, 0, ry),
			wide = lay_class(v, 1, rx);
		if (!h || !wide)
			continue;
		s.rows = h, s.cols = wide;
		s.nk = class_places(v, &l, ry, rx, off, at);
		s.y = whole ? x : z + class_at(&j, ry, rx);
		s.yplane = h * wide;
		s.yimage = whole ? ximage : cin * h * wide;
		run_pixels(c, &s, n, cin, cout, true);
	}
	if (!whole)
		rt_parallel(c, n * cin, 1 + 8192 / (v->in[0] * v->in[1] + 1), K_PICK(c, join), &j);
}

int k_conv_grad_x_f32(Ctx *c, float *x, const float *g, const float *w, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow v)
{
	int64_t nin = v.in[0] * v.in[1], nout = v.out[0] * v.out[1], nk = v.k[0] * v.k[1], some = lay_images(&v, batch);
	if (lay_none(groups, cin, cout)) {
		run_direct(c, GRAD_X, x, g, w, batch, groups, cin, cout, &v);
		return 0;
	}
	for (int64_t k = 0; k < groups; k++) {
		if (winograd_fits(&v, cin, cout)) {
			KWindow turned = { .k = { 3, 3 }, .stride = { 1, 1 }, .dil = { 1, 1 },
				.lo = { 2 - v.lo[0], 2 - v.lo[1] }, .in = { v.out[0], v.out[1] },
				.out = { v.in[0], v.in[1] } };
			Winograd s = winograd(&turned, batch, groups, cout, cin);
			s.x = g + k * cout * nout, s.w = w + k * cout * cin * 9, s.y = x + k * cin * nin;
			s.wout = 9, s.win = cin * 9, s.flip = true;
			winograd_run(c, &s);
		} else {
			for (int64_t i = 0; i < batch; i += some)
				grad_x(c, x + (i * groups + k) * cin * nin, g + (i * groups + k) * cout * nout,
					w + k * cout * cin * nk, groups, least(some, batch - i), cin, cout, &v);
		}
	}
	return 0;
}

/* One group of n images; added to w unless it is the first.  chunks: chunks of images that are summed as a tree; 0:
 * summed in order. */
static void grad_w(Ctx *c, float *w, const float *x, const float *g, int64_t groups, int64_t n, int64_t cin,
	int64_t cout, const KWindow *v, bool first, int64_t chunks)
{
	int64_t *off, *at, nout = v->out[0] * v->out[1], nk = v->k[0] * v->k[1];
	float *planes = tables(c, nk, &off, &at);
	Lay l = lay_of_x(v);
	Grad d = { .v = { .isa = c->isa, .off = off, .nk = nk, .rows = v->out[0], .cols = v->out[1], .pixels = nout },
		.g = g, .gimage = groups * cout * nout, .gplane = nout };
	find_places(v, &l, off);
	lay_out(c, &d.v, &l, planes, x, groups * cin * v->in[0] * v->in[1], n, cin);
	gemm_run(c, &(Gemm){ .batch = 1, .m = cout, .n = cin * nk, .k = n * nout, .a = { .pack = pack_g, .arg = &d },
		.b = { .pack = pack_positions, .arg = &d }, .y = w, .yrow = cin * nk, .add = !first, .chunks = chunks,
		.cut = chunks ? k_cut_tree(cout, cin * nk, n * nout, chunks) : (KCut){ 0 } });
}

int k_conv_grad_w_f32(Ctx *c, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow v)
{
	int64_t nin = v.in[0] * v.in[1], nout = v.out[0] * v.out[1], nk = v.k[0] * v.k[1], some = lay_images(&v, batch);
	if (lay_none(groups, cin, cout)) {
		run_direct(c, GRAD_W, x, g, w, batch, groups, cin, cout, &v);
		return 0;
	}
	for (int64_t k = 0; k < groups; k++) {
		if (winograd_fits(&v, cin, cout)) {
			Winograd s = winograd(&v, batch, groups, cin, cout);
			s.x = x + k * cin * nin;
			winograd_grad_w(c, w + k * cout * cin * 9, g + k * cout * nout, &s);
		} else {
			for (int64_t i = 0; i < batch; i += some)
				grad_w(c, w + k * cout * cin * nk, x + (i * groups + k) * cin * nin,
					g + (i * groups + k) * cout * nout, groups, least(some, batch - i), cin, cout,
					&v, i == 0, 0);
		}
	}
	return 0;
}

/* Sums in chunks of images (tree.h, gemm_tree.h). */
int k_conv_grad_w_tree_f32(Ctx *c, float *w, const float *x, const float *g, int64_t batch, int64_t groups,
	int64_t cin, int64_t cout, KWindow v, int64_t chunks)
{
	int64_t some = batch / chunks, nw = cout * cin * v.k[0] * v.k[1], nx = cin * v.in[0] * v.in[1],
		ng = cout * v.out[0] * v.out[1];
	int code = 0;
	if (k_conv_at_once(&v, batch, groups, cin, cout, chunks)) {
		for (int64_t k = 0; k < groups; k++)
			grad_w(c, w + k * nw, x + k * nx, g + k * ng, groups, batch, cin, cout, &v, true, chunks);
		return 0;
	}
	/* The pending sums follow the scratch of one chunk. */
	float *room =
		(float *)(void *)(c->shared + k_work_behind(k_work_conv(K_CONV_GRAD_W, &v, some, groups, cin, cout)));
	for (int64_t k = 0; k < chunks && !code; k++) {
		float *to = tree_place(w, room, groups * nw, k, chunks);
		code = k_conv_grad_w_f32(c, to, x + k * some * groups * nx, g + k * some * groups * ng, some, groups,
			cin, cout, v);
		tree_join(to, room, groups * nw, k);
	}
	return code;
}
