/* See winograd.h.  A block of tiles, in whole rows, is transformed to v[16][channel][tile], and the weights to u[16],
 * packed for the matrix product.  Then each thread takes some channels of the result, computes all 16 products, and
 * transforms them back while they are in its cache. */
#include "winograd.h"
#include "gemm.h"
#include "isa.h"

#include <string.h>

enum { CHUNK = 64 };

typedef struct Job {
	const Winograd *s;
	RtIsa isa;
	GemmTiles g;
	int64_t across, down;   /* tiles of a plane */
	int64_t first, rows;    /* rows of tiles of this block, counted over all images */
	int64_t apart, block;   /* block: channels of the result per thread, in whole panels of the product */
	float *u, *v, *vg;
	const float *gy;        /* dy, which the gradient of w transforms */
	float *w;
	unsigned char *work;
	size_t each;
} Job;

static float *scratch(const Job *j, int thread)
{
	return (float *)(void *)(j->work + (size_t)thread * j->each);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- weights ---- */

/* Transforms n weights, [9][CHUNK] to [16][CHUNK]: G w G'. */
K_LOOP void lift(float *restrict u, const float *restrict w, int64_t n)
{
	K_APART for (int64_t i = 0; i < n; i++) {
		float t[4][3];
		for (int c = 0; c < 3; c++) {
			float a = w[c * CHUNK + i], b = w[(3 + c) * CHUNK + i], d = w[(6 + c) * CHUNK + i],
				h = 0.5f * (a + d), m = 0.5f * b;
			t[0][c] = a;
			t[1][c] = h + m;
			t[2][c] = h - m;
			t[3][c] = d;
		}
		for (int r = 0; r < 4; r++) {
			float h = 0.5f * (t[r][0] + t[r][2]), m = 0.5f * t[r][1];
			u[(4 * r) * CHUNK + i] = t[r][0];
			u[(4 * r + 1) * CHUNK + i] = h + m;
			u[(4 * r + 2) * CHUNK + i] = h - m;
			u[(4 * r + 3) * CHUNK + i] = t[r][2];
		}
	}
}

/* The same for n windows that are neighbours in memory. */
K_LOOP void lift_windows(const Job *j, float *u, float *w9, const float *w, int64_t n)
{
	gemm_turn(j->isa, w9, w, 9, n, CHUNK, 9);
	for (int k = 0; k < 4 && j->s->flip; k++)
		for (int64_t i = 0; i < n; i++) {
			float a = w9[k * CHUNK + i];
			w9[k * CHUNK + i] = w9[(8 - k) * CHUNK + i];
			w9[(8 - k) * CHUNK + i] = a;
		}
	lift(u, w9, n);
}

/* Panels lo .. hi - 1, of mr rows each, where the channels of the sum are neighbours in w. */
K_LOOP void weights(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	const Winograd *s = j->s;
	float *w9 = scratch(j, thread), *u = w9 + 9 * CHUNK;
	for (int64_t p = lo; p < hi; p++) {
		int64_t row = p * j->g.mr, rows = least(j->g.mr, s->cout - row);
		for (int64_t k = 0; k < s->cin; k += CHUNK) {
			int64_t n = least(CHUNK, s->cin - k);
			for (int64_t r = 0; r < rows; r++)
				lift_windows(j, u + r * 16 * CHUNK, w9, s->w + (row + r) * s->wout + k * s->win, n);
			for (int64_t e = 0; e < 16; e++)
				gemm_turn(j->isa, j->u + (e * s->cout + row) * s->cin + k * rows, u + e * CHUNK,
					16 * CHUNK, rows, rows, n);
		}
	}
}
K_EACH_ISA(weights)

/* The same where the rows are neighbours in w; a panel is as many multiples of mr rows as a chunk holds. */
K_LOOP void weights_of_rows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	const Winograd *s = j->s;
	int64_t chunk = CHUNK / j->g.mr * j->g.mr;
	float *w9 = scratch(j, thread), *u = w9 + 9 * CHUNK;
	for (int64_t p = lo; p < hi; p++)
		for (int64_t k = 0; k < s->cin; k++) {
			int64_t row = p * chunk, n = least(chunk, s->cout - row);
			lift_windows(j, u, w9, s->w + row * s->wout + k * s->win, n);
			for (int64_t e = 0; e < 16; e++)
				for (int64_t r = 0; r < n; r += j->g.mr) {
					int64_t rows = least(j->g.mr, n - r);
					float *to = j->u + (e * s->cout + row + r) * s->cin + k * rows;
					if (rows == 6)          /* a copy of known length is a few instructions */
						memcpy(to, u + e * CHUNK + r, 6 * sizeof *u);
					else
						memcpy(to, u + e * CHUNK + r, (size_t)rows * sizeof *u);
				}
		}
}
K_EACH_ISA(weights_of_rows)

/* ---- tiles ---- */

/* Transforms a row of tiles along the row, from the even and odd columns of four rows, `half` apart: 16 results, vapart
 * apart. */
K_LOOP void along(float *restrict v, int64_t vapart, const float *restrict e, const float *restrict o,
	int64_t half, int64_t n)
{
	for (int r = 0; r < 4; r++) {
		const float *restrict a = e + r * half, *restrict b = o + r * half;
		float *restrict v0 = v + 4 * r * vapart, *restrict v1 = v0 + vapart, *restrict v2 = v1 + vapart,
			*restrict v3 = v2 + vapart;
		K_APART for (int64_t t = 0; t < n; t++) {
			v0[t] = a[t] - a[t + 1];
			v1[t] = b[t] + a[t + 1];
			v2[t] = a[t + 1] - b[t];
			v3[t] = b[t] - b[t + 1];
		}
	}
}

K_LOOP void split_pairs(float *restrict e, float *restrict o, const float *restrict x, int64_t n)
{
	K_VECTOR for (int64_t t = 0; t < n; t++) {
		e[t] = x[2 * t];
		o[t] = x[2 * t + 1];
	}
}

/* Channels lo..hi - 1 of the block: B' x B. */
K_LOOP void inputs(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	const Winograd *s = j->s;
	enum { ROW = WINOGRAD_WIDE + 32 };
	float *zero = scratch(j, thread), *c = zero + ROW, *e = c + 4 * ROW, *o = e + 2 * ROW;
	int64_t n = (j->across + 7) / 8 * 8, w = s->in[1];
	memset(zero, 0, 5 * ROW * sizeof *zero);
	for (int64_t ch = lo; ch < hi; ch++)
		for (int64_t q = 0; q < j->rows; q++) {
			int64_t image = (j->first + q) / j->down, top = (j->first + q) % j->down * 2 - s->lo[0];
			const float *plane = s->x + image * s->ximage + ch * s->in[0] * w, *x[4];
			float *restrict to = c + s->lo[1];
			for (int64_t r = 0; r < 4; r++)
				x[r] = top + r < 0 || top + r >= s->in[0] ? zero : plane + (top + r) * w;
			K_VECTOR for (int64_t i = 0; i < w; i++) {
				float a = x[0][i], b = x[1][i], d = x[2][i], f = x[3][i];
				to[i] = a - d;
				to[ROW + i] = b + d;
				to[2 * ROW + i] = d - b;
				to[3 * ROW + i] = b - f;
			}
			for (int r = 0; r < 4; r++)
				split_pairs(e + r * ROW / 2, o + r * ROW / 2, c + r * ROW, n + 1);
			along(j->v + ch * j->apart + q * j->across, s->cin * j->apart, e, o, ROW / 2, n);
		}
}
K_EACH_ISA(inputs)

/* Channels lo..hi - 1 of the gradient: A dy A'. */
K_LOOP void grads(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	const Winograd *s = j->s;
	enum { ROW = WINOGRAD_WIDE + 32 };
	float *zero = scratch(j, thread), *c = zero + ROW, *e = c + 2 * ROW, *o = e + ROW;
	int64_t n = (j->across + 7) / 8 * 8, w = s->out[1], vapart = s->cout * j->apart;
	memset(zero, 0, 3 * ROW * sizeof *zero);
	for (int64_t ch = lo; ch < hi; ch++)
		for (int64_t q = 0; q < j->rows; q++) {
			int64_t image = (j->first + q) / j->down, top = (j->first + q) % j->down * 2;
			const float *plane = j->gy + image * s->yimage + ch * s->out[0] * w;
			memcpy(c, plane + top * w, (size_t)w * sizeof *c);
			memcpy(c + ROW, top + 1 < s->out[0] ? plane + (top + 1) * w : zero, (size_t)w * sizeof *c);
			split_pairs(e, o, c, n);
			split_pairs(e + ROW / 2, o + ROW / 2, c + ROW, n);
			float *restrict v = j->vg + ch * j->apart + q * j->across;
			const float *restrict e0 = e, *restrict o0 = o, *restrict e1 = e + ROW / 2,
				*restrict o1 = o + ROW / 2;
			for (int r = 0; r < 4; r++) {
				float p = r < 3, m = r == 0 ? 0 : r == 1 ? 1 : -1;
				float *restrict v0 = v + 4 * r * vapart, *restrict v1 = v0 + vapart,
					*restrict v2 = v1 + vapart, *restrict v3 = v2 + vapart;
				K_VECTOR for (int64_t t = 0; t < n; t++) {
					float a = p * e0[t] + m * e1[t], b = p * o0[t] + m * o1[t];
					v0[t] = a;
					v1[t] = a + b;
					v2[t] = a - b;
					v3[t] = -b;
				}
			}
		}
}
K_EACH_ISA(grads)

/* ---- results ---- */

/* Transforms n tiles of a row, m[16] `apart` from each other, back to two rows of results: A' m A. */
K_LOOP void back(const Job *j, float *restrict y, const float *restrict m, int64_t apart, float *restrict t, bool two)
{
	enum { HALF = WINOGRAD_WIDE / 2 + 16 };
	int64_t n = (j->across + 7) / 8 * 8, w = j->s->out[1];
	for (int r = 0; r < 2; r++)
		K_APART for (int64_t i = 0; i < n; i++) {
			float s[4];
			for (int c = 0; c < 4; c++) {
				float b = m[(4 + c) * apart + i], d = m[(8 + c) * apart + i];
				s[c] = r ? b - d - m[(12 + c) * apart + i] : m[c * apart + i] + b + d;
			}
			t[2 * r * HALF + i] = s[0] + s[1] + s[2];
			t[(2 * r + 1) * HALF + i] = s[1] - s[2] - s[3];
		}
	for (int r = 0; r < 1 + two; r++) {
		const float *restrict a = t + 2 * r * HALF, *restrict b = a + HALF;
		float *restrict to = y + r * w;
		K_VECTOR for (int64_t i = 0; i < w / 2; i++) {
			to[2 * i] = a[i];
			to[2 * i + 1] = b[i];
		}
		if (w % 2)
			to[w - 1] = a[w / 2];
	}
}

/* Blocks lo..hi - 1 of channels of the result. */
K_LOOP void results(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	const Winograd *s = j->s;
	float *m = scratch(j, thread), *t = m + 16 * WINOGRAD_ROWS * j->apart;
	int64_t tiles = j->rows * j->across;
	for (int64_t i = lo; i < hi; i++) {
		int64_t row = i * j->block, rows = least(j->block, s->cout - row);
		for (int64_t e = 0; e < 16; e++)
			for (int64_t k = 0; k < s->cin; k += GEMM_K)
				for (int64_t col = 0; col < tiles; col += j->g.nr)
					for (int64_t r = 0; r < rows; r += j->g.mr) {
						int64_t n = least(j->g.mr, rows - r);
						j->g.of[n](j->u + (e * s->cout + row + r) * s->cin + k * n,
							j->v + (e * s->cin + k) * j->apart + col,
							j->apart, least(GEMM_K, s->cin - k),
							m + (e * WINOGRAD_ROWS + r) * j->apart + col, j->apart, k > 0);
					}
		for (int64_t r = 0; r < rows; r++)
			for (int64_t q = 0; q < j->rows; q++) {
				int64_t image = (j->first + q) / j->down, top = (j->first + q) % j->down * 2;
				back(j, s->y + image * s->yimage + ((row + r) * s->out[0] + top) * s->out[1],
					m + r * j->apart + q * j->across, WINOGRAD_ROWS * j->apart, t,
					top + 1 < s->out[0]);
			}
	}
}
K_EACH_ISA(results)

static Job job(Ctx *c, const Winograd *s)
{
	GemmTiles g = gemm_tiles(c->isa);
	return (Job){ .s = s, .isa = c->isa, .g = g,
		.block = WINOGRAD_ROWS / g.mr * g.mr, .across = (s->out[1] + 1) / 2, .down = (s->out[0] + 1) / 2,
		.apart = winograd_apart(s->batch, s->out[0], s->out[1]), .u = (float *)(void *)c->shared,
		.v = (float *)(void *)c->shared + 16 * s->cin * s->cout, .work = c->work, .each = c->work_each };
}

void winograd_run(Ctx *c, const Winograd *s)
{
	Job j = job(c, s);
	int64_t most = winograd_rows(s->batch, s->out[0], s->out[1]), all = s->batch * j.down,
		chunk = CHUNK / j.g.mr * j.g.mr;
	if (s->win == 9)
		rt_parallel(c, (s->cout + j.g.mr - 1) / j.g.mr, 1, K_PICK(c, weights), &j);
	else
		rt_parallel(c, (s->cout + chunk - 1) / chunk, 1, K_PICK(c, weights_of_rows), &j);
	for (; j.first < all; j.first += j.rows) {
		j.rows = least(most, all - j.first);
		rt_parallel(c, s->cin, 4, K_PICK(c, inputs), &j);
		rt_parallel(c, (s->cout + j.block - 1) / j.block, 1, K_PICK(c, results), &j);
	}
}

/* ---- gradient of the weight ---- */

/* Rows lo..hi - 1 of d[16][cout][cin] become windows: G' d G. */
K_LOOP void windows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	int64_t cin = j->s->cin, apart = cin * j->s->cout;
	float *restrict w9 = scratch(j, thread);
	for (int64_t o = lo; o < hi; o++)
		for (int64_t k = 0; k < cin; k += CHUNK) {
			int64_t n = least(CHUNK, cin - k);
			const float *restrict d = j->u + o * cin + k;
			K_APART for (int64_t i = 0; i < n; i++) {
				float t[3][4];
				for (int c = 0; c < 4; c++) {
					float a = d[(4 + c) * apart + i], b = d[(8 + c) * apart + i],
						h = 0.5f * (a + b);
					t[0][c] = d[c * apart + i] + h;
					t[1][c] = 0.5f * (a - b);
					t[2][c] = h + d[(12 + c) * apart + i];
				}
				for (int r = 0; r < 3; r++) {
					float h = 0.5f * (t[r][1] + t[r][2]);
					w9[(3 * r) * CHUNK + i] = t[r][0] + h;
					w9[(3 * r + 1) * CHUNK + i] = 0.5f * (t[r][1] - t[r][2]);
					w9[(3 * r + 2) * CHUNK + i] = h + t[r][3];
				}
			}
			gemm_turn(j->isa, j->w + (o * cin + k) * 9, w9, CHUNK, 9, 9, n);
		}
}
K_EACH_ISA(windows)

void winograd_grad_w(Ctx *c, float *w, const float *g, const Winograd *s)
{
	Job j = job(c, s);
	int64_t most = winograd_rows(s->batch, s->out[0], s->out[1]), all = s->batch * j.down;
	j.vg = j.v + 16 * s->cin * j.apart;
	j.gy = g;
	j.w = w;
	for (; j.first < all; j.first += j.rows) {
		j.rows = least(most, all - j.first);
		rt_parallel(c, s->cin, 4, K_PICK(c, inputs), &j);
		rt_parallel(c, s->cout, 4, K_PICK(c, grads), &j);
		Gemm p = { .batch = 16, .m = s->cout, .n = s->cin,
			.k = j.rows * j.across, .a = { .x = j.vg, .batch = s->cout * j.apart, .at = j.apart, .k = 1 },
			.b = { .x = j.v, .batch = s->cin * j.apart, .at = j.apart, .k = 1 }, .y = j.u, .yrow = s->cin,
			.ybatch = s->cin * s->cout, .add = j.first > 0 };
		gemm_run(c, &p);
	}
	rt_parallel(c, s->cout, 4, K_PICK(c, windows), &j);
}
