/* Convolutions and their two gradients as matrix products whose operand is never written out: what a panel of the product
 * needs is copied from the planes when it is packed.
 *
 *   forward     y[o, pixel]   = sum over (channel, place) of  w[o, channel, place]  x[channel, pixel + place]
 *   gradient x  x[i, pixel]   = sum over (o, place)       of  w[o, i, place]        g[o, pixel - place]
 *   gradient w  w[o, (i, place)] = sum over pixels        of  g[o, pixel]           x[i, pixel + place]
 *
 * With a step s > 1 the pixels of x fall into s x s classes, each of which sees some places of the window only: each class is
 * one product.  Small planes of a batch are taken together, so that the weight is packed once.  Groups of one channel have
 * nothing to multiply: they go plane by plane. */
#include "gemm.h"
#include "isa.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* One axis: n places of the window, place m being number first + m * step of the weight; result u reads source
 * u * stride + c0 + m * cstep, if that is on the source; results lie at u * ystep + y0 in a plane of `y`. */
typedef struct Axis { int64_t n, first, step, c0, cstep, stride, src, out, ystep, y0, y; } Axis;

typedef struct Conv {
	RtIsa isa;
	const float *x, *w;
	const float *begin, *end;       /* of all that may be read around x */
	float *y;
	Axis a[2];
	int64_t pixels;                 /* results per plane */
	int64_t ximage, xplane;         /* strides of the source */
	int64_t yimage, yplane;         /* of the result */
	int64_t wout, win, nk, kw;      /* of the weight along rows and along channels of the sum; places in all; per row of the window */
	bool together;                  /* pixels are counted over all images */
	int64_t image;                  /* else: the one image is that of the batch */
} Conv;

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Part of a row of results: n of them from column j of a panel on. */
typedef struct Part { const float *x; int64_t row, col, j, n; } Part;

static int parts_of(const Conv *v, Part *part, int64_t batch, int64_t at, int64_t count)
{
	int np = 0;
	for (int64_t j = 0; j < count;) {
		int64_t image = v->together ? (at + j) / v->pixels : batch, p = v->together ? (at + j) % v->pixels : at + j;
		int64_t oy = p / v->a[1].out, ox = p % v->a[1].out, n = least(count - j, v->a[1].out - ox);
		part[np++] = (Part){ v->x + image * v->ximage, oy * v->a[0].stride + v->a[0].c0, ox * v->a[1].stride + v->a[1].c0, j, n };
		j += n;
	}
	return np;
}

/* n numbers of a source row, from column col on, `stride` apart; zero beside the row. */
static void copy_row(float *to, const float *row, int64_t col, int64_t n, int64_t stride, int64_t len)
{
	int64_t lo = col < 0 ? least(n, (-col + stride - 1) / stride) : 0, hi = len > col ? least(n, (len - col + stride - 1) / stride) : 0;
	hi = most(hi, lo);
	for (int64_t j = 0; j < lo; j++)
		to[j] = 0;
	if (stride == 1)
		memcpy(to + lo, row + col + lo, (size_t)(hi - lo) * sizeof *to);
	else
		for (int64_t j = lo; j < hi; j++)
			to[j] = row[col + j * stride];
	for (int64_t j = hi; j < n; j++)
		to[j] = 0;
}

/* The same for up to `width` numbers, a width known where this is inlined: all are copied, more than n, and what lies beside
 * the row is made zero.  What is too much is written over by what comes next in the panel. */
INLINE void copy_wide(int width, float *to, const float *x, int64_t col, int64_t n, int64_t stride, int64_t len)
{
	if (stride == 1)
		memcpy(to, x, (size_t)width * sizeof *to);
	else
		for (int j = 0; j < width; j++)
			to[j] = x[2 * j];
	for (int64_t j = 0, c = col; c < 0 && j < n; j++, c += stride)
		to[j] = 0;
	for (int64_t j = n - 1, c = col + (n - 1) * stride; c >= len && j >= 0; j--, c -= stride)
		to[j] = 0;
}

/* A panel of pixels, for k's (channel, place, place). */
INLINE void pack_width(int width, bool known, const Conv *v, float *to, int64_t batch, int64_t at, int64_t count, int64_t from, int64_t len)
{
	const Axis *ay = &v->a[0], *ax = &v->a[1];
	Part part[GEMM_WIDTH];
	int np = parts_of(v, part, batch, at, count);
	int64_t places = ay->n * ax->n, ch = places ? from / places : 0, my = places ? from % places / ax->n : 0, mx = places ? from % ax->n : 0;
	bool wide = known && ax->stride <= 2;
	/* Most panels of large planes: one part of a row, all of which is on the source whatever the place. */
	bool easy = known && np == 1 && count == width && ax->stride == 1 && part->col + least(0, (ax->n - 1) * ax->cstep) >= 0 &&
	            part->col + most(0, (ax->n - 1) * ax->cstep) + width <= ax->src;
	for (int64_t k = 0; easy && k < len; mx = 0) {
		int64_t row = part->row + my * ay->cstep, n = least(ax->n - mx, len - k);
		const float *x = part->x + ch * v->xplane + row * ax->src + part->col + mx * ax->cstep;
		if (row < 0 || row >= ay->src)
			memset(to, 0, (size_t)(n * width) * sizeof *to);
		else
			for (int64_t m = 0; m < n; m++, x += ax->cstep)
				memcpy(to + m * width, x, (size_t)width * sizeof *to);
		to += n * width;
		k += n;
		if (++my == ay->n)
			my = 0, ch++;
	}
	for (int64_t k = 0; !easy && k < len; k++, to += width) {
		for (int i = 0; i < np; i++) {
			const Part *p = &part[i];
			int64_t row = p->row + my * ay->cstep, col = p->col + mx * ax->cstep;
			const float *x = p->x + ch * v->xplane + row * ax->src;
			if (row < 0 || row >= ay->src) {
				memset(to + p->j, 0, (size_t)p->n * sizeof *to);
			} else if (wide && x + col >= v->begin && x + col + 2 * width <= v->end) {
				if (ax->stride == 1)
					copy_wide(width, to + p->j, x + col, col, p->n, 1, ax->src);
				else
					copy_wide(width, to + p->j, x + col, col, p->n, 2, ax->src);
			} else {
				copy_row(to + p->j, x, col, p->n, ax->stride, ax->src);
			}
		}
		for (int64_t j = count; j < width; j++)
			to[j] = 0;
		if (++mx == ax->n) {
			mx = 0;
			if (++my == ay->n)
				my = 0, ch++;
		}
	}
}

#if defined(__x86_64__)
K_AVX2 static void pack_avx2(const Conv *v, float *to, int64_t batch, int64_t at, int64_t count, int64_t from, int64_t len)
{
	pack_width(16, true, v, to, batch, at, count, from, len);
}

K_AVX2 static void pack_avx512(const Conv *v, float *to, int64_t batch, int64_t at, int64_t count, int64_t from, int64_t len)
{
	pack_width(32, true, v, to, batch, at, count, from, len);
}
#endif

static void pack_pixels(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width, int64_t from, int64_t len)
{
#if defined(__x86_64__)
	if (width == 16) {
		pack_avx2(arg, to, batch, at, count, from, len);
		return;
	}
	if (width == 32) {
		pack_avx512(arg, to, batch, at, count, from, len);
		return;
	}
#endif
	pack_width((int)width, false, arg, to, batch, at, count, from, len);
}

/* A panel of the weight: rows at .. at + count - 1, k's (channel, place, place). */
static void pack_weight(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width, int64_t from, int64_t len)
{
	const Conv *v = arg;
	const Axis *ay = &v->a[0], *ax = &v->a[1];
	int64_t places = ay->n * ax->n;
	(void)batch;
	for (int64_t i = 0; i < count; i++) {
		int64_t ch = places ? from / places : 0, my = places ? from % places / ax->n : 0, mx = places ? from % ax->n : 0;
		const float *w = v->w + (at + i) * v->wout;
		for (int64_t k = 0; k < len; my++, mx = 0) {
			if (my == ay->n)
				my = 0, ch++;
			const float *row = w + ch * v->win + (ay->first + my * ay->step) * v->kw + ax->first;
			for (; mx < ax->n && k < len; mx++, k++)
				to[k * width + i] = row[mx * ax->step];
		}
	}
}

/* A finished tile, where results of a row are not neighbours or lie in several images. */
static void put(const void *arg, const float *tile, int64_t width, int64_t batch, int64_t row, int64_t rows, int64_t col, int64_t cols, bool first)
{
	const Conv *v = arg;
	int64_t at[GEMM_WIDTH];
	for (int64_t j = 0; j < cols; j++) {
		int64_t image = v->together ? (col + j) / v->pixels : batch, p = v->together ? (col + j) % v->pixels : col + j;
		int64_t u = p / v->a[1].out, w = p % v->a[1].out;
		at[j] = image * v->yimage + (u * v->a[0].ystep + v->a[0].y0) * v->a[1].y + w * v->a[1].ystep + v->a[1].y0;
	}
	for (int64_t i = 0; i < rows; i++) {
		float *y = v->y + (row + i) * v->yplane;
		for (int64_t j = 0; j < cols; j++)
			y[at[j]] = first ? tile[i * width + j] : y[at[j]] + tile[i * width + j];
	}
}

/* Columns of one image, where results of a row are neighbours. */
static float *place(const void *arg, int64_t batch, int64_t row, int64_t col, int64_t cols)
{
	const Conv *v = arg;
	int64_t image = v->together ? col / v->pixels : batch, p = v->together ? col % v->pixels : col;
	return p + cols <= v->pixels ? v->y + image * v->yimage + row * v->yplane + p : NULL;
}

/* ---- gradient of the weight: k's are the pixels of all images ---- */

typedef struct Grad { Conv v; const float *g; int64_t gimage, gplane; } Grad;

static void pack_g(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width, int64_t from, int64_t len)
{
	const Grad *d = arg;
	(void)batch;
	for (int64_t k = 0; k < len;) {
		int64_t image = (from + k) / d->v.pixels, p = (from + k) % d->v.pixels, n = least(len - k, d->v.pixels - p);
		gemm_turn(d->v.isa, to + k * width, d->g + image * d->gimage + at * d->gplane + p, d->gplane, count, width, n);
		k += n;
	}
}

static void pack_places(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width, int64_t from, int64_t len)
{
	const Grad *d = arg;
	const Conv *v = &d->v;
	const Axis *ay = &v->a[0], *ax = &v->a[1];
	float rows[GEMM_WIDTH * GEMM_K];
	(void)batch;
	rows[0] = 0;
	for (int64_t j = 0; j < count; j++) {
		int64_t ch = (at + j) / v->nk, my = (at + j) % v->nk / ax->n, mx = (at + j) % ax->n;
		for (int64_t k = 0; k < len;) {
			int64_t image = (from + k) / v->pixels, p = (from + k) % v->pixels, oy = p / ax->out, ox = p % ax->out, n = least(len - k, ax->out - ox);
			int64_t row = oy * ay->stride + ay->c0 + my * ay->cstep, col = ox * ax->stride + ax->c0 + mx * ax->cstep;
			float *r = rows + j * GEMM_K + k;
			if (row < 0 || row >= ay->src)
				memset(r, 0, (size_t)n * sizeof *r);
			else
				copy_row(r, v->x + image * v->ximage + ch * v->xplane + row * ax->src, col, n, ax->stride, ax->src);
			k += n;
		}
	}
	gemm_turn(v->isa, to, rows, GEMM_K, count, width, len);
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
				float *in = x + (oy * w->stride[0] - w->lo[0] + ky * w->dil[0]) * w->in[1] - w->lo[1] + kx * w->dil[1] + x0 * w->stride[1];
				sum += row_of(way, in, y + oy * w->out[1] + x0, x1 - x0, w->stride[1], *f);
			}
			if (way == GRAD_W)
				*f += sum;
		}
}

/* Group g of image b; the gradient of a weight sums over images, so there g is all. */
K_LOOP void one_group(const Direct *d, Way way, int64_t b, int64_t g)
{
	int64_t nin = d->v.in[0] * d->v.in[1], nout = d->v.out[0] * d->v.out[1], nk = d->v.k[0] * d->v.k[1];
	for (int64_t o = 0; o < d->cout; o++)
		for (int64_t i = 0; i < d->cin; i++)
			one_plane(way, &d->v, d->x + ((b * d->groups + g) * d->cin + i) * nin, d->y + ((b * d->groups + g) * d->cout + o) * nout,
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

/* The operands that a way only reads are const to its caller. */
static float *writable(const float *p)
{
	union { const float *in; float *out; } u = { p };
	return u.out;
}

static bool few(int64_t groups, int64_t cin, int64_t cout)
{
	return groups > 1 && cin * cout <= 4;
}

static void run_direct(Ctx *c, Way way, const float *x, const float *y, const float *w, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindow *v)
{
	Direct d = { way, writable(x), writable(y), writable(w), batch, groups, cin, cout, *v };
	rt_parallel(c, way == GRAD_W ? groups : batch * groups, 1, K_PICK(c, direct), &d);
}

/* ---- the kernels ---- */

/* Products over the pixels of v: m rows, k terms. */
static void run_pixels(Ctx *c, Conv *v, int64_t batch, int64_t m, int64_t k, bool dense, bool turned)
{
	enum { SMALL = 1024 };
	v->pixels = v->a[0].out * v->a[1].out;
	v->together = batch > 1 && v->pixels < SMALL;
	Gemm g = { .batch = v->together ? 1 : batch, .m = m, .n = v->together ? batch * v->pixels : v->pixels, .k = k,
		.a = { .x = v->w, .at = v->wout, .k = 1 }, .b = { .pack = pack_pixels, .arg = v }, .y = v->y, .yrow = v->yplane, .ybatch = v->yimage };
	if (turned && v->nk == 1)
		g.a = (GemmSide){ .x = v->w, .at = v->wout, .k = v->win };
	else if (turned)
		g.a.pack = pack_weight, g.a.arg = v;
	if (v->together || !dense)
		g.store = put, g.arg = v;
	if (dense)
		g.place = place;
	if (!v->together && dense && v->a[0].n == 1 && v->a[1].n == 1 && v->a[0].stride == 1 && v->a[1].stride == 1 && v->a[0].c0 == 0 && v->a[1].c0 == 0 && v->a[0].src == v->a[0].out &&
	    v->a[1].src == v->a[1].out)                     /* one place: the planes are the operand */
		g.b = (GemmSide){ .x = v->x, .batch = v->ximage, .at = 1, .k = v->xplane };
	gemm_run(c, &g);
}

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

int k_conv_f32(Ctx *c, float *y, const float *x, const float *w, const float *b, int64_t batch, int64_t groups, int64_t cin, int64_t cout, KWindow v)
{
	int64_t nin = v.in[0] * v.in[1], nout = v.out[0] * v.out[1], nk = v.k[0] * v.k[1];
	if (few(groups, cin, cout))
		run_direct(c, FORWARD, x, y, w, batch, groups, cin, cout, &v);
	else
		for (int64_t g = 0; g < groups; g++) {
			Conv s = { .isa = c->isa, .x = x + g * cin * nin, .w = w + g * cout * cin * nk, .y = y + g * cout * nout, .ximage = groups * cin * nin, .xplane = nin,
				.yimage = groups * cout * nout, .yplane = nout, .wout = cin * nk, .win = nk, .nk = nk, .kw = v.k[1], .begin = x, .end = x + batch * groups * cin * nin };
			for (int a = 0; a < 2; a++)
				s.a[a] = (Axis){ v.k[a], 0, 1, -v.lo[a], v.dil[a], v.stride[a], v.in[a], v.out[a], 1, 0, v.out[a] };
			run_pixels(c, &s, batch, cout, cin * nk, true, false);
		}
	if (b) {
		Bias s = { y, b, groups * cout, nout };
		rt_parallel(c, batch * groups * cout, 1 + 8192 / (nout + 1), add_bias, &s);
	}
	return 0;
}

static int64_t common(int64_t a, int64_t b)
{
	while (b) {
		int64_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

/* Pixels r, r + stride, ... of the input along one axis, and the places of the window that reach them. */
static Axis axis_of_class(const KWindow *v, int a, int64_t r)
{
	int64_t s = v->stride[a], d = v->dil[a];
	Axis x = { .step = s / common(s, d), .stride = 1, .src = v->out[a], .out = v->in[a] > r ? (v->in[a] - r + s - 1) / s : 0, .ystep = s, .y0 = r, .y = v->in[a] };
	while (x.first < v->k[a] && (r + v->lo[a] - x.first * d) % s != 0)
		x.first++;
	if (x.first < v->k[a]) {
		x.n = (v->k[a] - x.first + x.step - 1) / x.step;
		x.c0 = (r + v->lo[a] - x.first * d) / s;
		x.cstep = -x.step * d / s;
	}
	return x;
}

static void clear(void *arg, int64_t lo, int64_t hi, int thread)
{
	(void)thread;
	memset((float *)arg + lo, 0, (size_t)(hi - lo) * sizeof(float));
}

int k_conv_grad_x_f32(Ctx *c, float *x, const float *g, const float *w, int64_t batch, int64_t groups, int64_t cin, int64_t cout, KWindow v)
{
	int64_t nin = v.in[0] * v.in[1], nout = v.out[0] * v.out[1], nk = v.k[0] * v.k[1];
	if (few(groups, cin, cout)) {
		run_direct(c, GRAD_X, x, g, w, batch, groups, cin, cout, &v);
		return 0;
	}
	/* Windows smaller than their step leave pixels that nothing reaches. */
	bool gaps = v.k[0] < v.stride[0] || v.k[1] < v.stride[1] || common(v.stride[0], v.dil[0]) > 1 || common(v.stride[1], v.dil[1]) > 1;
	if (gaps)
		rt_parallel(c, batch * groups * cin * nin, 65536, clear, x);
	for (int64_t i = 0; i < groups * v.stride[0] * v.stride[1]; i++) {
		int64_t k = i / (v.stride[0] * v.stride[1]), ry = i / v.stride[1] % v.stride[0], rx = i % v.stride[1];
		Conv s = { .isa = c->isa, .x = g + k * cout * nout, .w = w + k * cout * cin * nk, .y = x + k * cin * nin, .ximage = groups * cout * nout, .xplane = nout,
			.yimage = groups * cin * nin, .yplane = nin, .wout = nk, .win = cin * nk, .nk = nk, .kw = v.k[1], .begin = g, .end = g + batch * groups * cout * nout, .a = { axis_of_class(&v, 0, ry), axis_of_class(&v, 1, rx) } };
		if (gaps && (s.a[0].n == 0 || s.a[1].n == 0))
			continue;
		run_pixels(c, &s, batch, cin, cout * s.a[0].n * s.a[1].n, v.stride[0] == 1 && v.stride[1] == 1, true);
	}
	return 0;
}

int k_conv_grad_w_f32(Ctx *c, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin, int64_t cout, KWindow v)
{
	int64_t nin = v.in[0] * v.in[1], nout = v.out[0] * v.out[1], nk = v.k[0] * v.k[1];
	if (few(groups, cin, cout)) {
		run_direct(c, GRAD_W, x, g, w, batch, groups, cin, cout, &v);
		return 0;
	}
	for (int64_t k = 0; k < groups; k++) {
		Grad d = { .v = { .isa = c->isa, .x = x + k * cin * nin, .ximage = groups * cin * nin, .xplane = nin, .nk = nk, .pixels = nout }, .g = g + k * cout * nout,
			.gimage = groups * cout * nout, .gplane = nout };
		for (int a = 0; a < 2; a++)
			d.v.a[a] = (Axis){ v.k[a], 0, 1, -v.lo[a], v.dil[a], v.stride[a], v.in[a], v.out[a], 1, 0, v.out[a] };
		Gemm p = { .batch = 1, .m = cout, .n = cin * nk, .k = batch * nout, .a = { .pack = pack_g, .arg = &d }, .b = { .pack = pack_places, .arg = &d },
			.y = w + k * cout * cin * nk, .yrow = cin * nk };
		gemm_run(c, &p);
	}
	return 0;
}
