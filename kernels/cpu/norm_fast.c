/* Normalisations and their gradients, by the formulas of norm.c.  Threads share rows (layer norm) or channels and
 * groups (batch and group norm).  The sum of a row or run is K_LANES partial sums, joined in order.  The gradients of
 * scale and bias of a layer norm are column sums; threads share the columns. */
#include "kernels.h"
#include "isa.h"

#include <math.h>
#include <string.h>

enum { COLS = 128, PIECE = 256 };

/* Sums use K_LANES partial sums: floats for SHORT vectors, which are then added to doubles.  The remainder of n is
 * added in double, one by one. */
enum { SHORT = 8, HALF = K_LANES / 2, RUN = SHORT * K_LANES };
typedef float Some __attribute__((vector_size(4 * HALF)));
typedef float Anywhere __attribute__((vector_size(4 * HALF), aligned(4), may_alias));
#define SOME(x) (*(const Anywhere *)(const void *)(x))

K_LOOP void flush(double *restrict s, const Some *a, const Some *b)
{
	float f[K_LANES];
	memcpy(f, a, sizeof *a);
	memcpy(f + HALF, b, sizeof *b);
	for (int j = 0; j < K_LANES; j++)
		s[j] += (double)f[j];
}

K_LOOP int64_t run_end(int64_t i, int64_t n)
{
	return i + (n - i < RUN ? (n - i) / K_LANES * K_LANES : RUN);
}

K_LOOP double joined(const double *s)
{
	double t = 0;
	for (int j = 0; j < K_LANES; j++)
		t += s[j];
	return t;
}

/* sum(x). */
K_LOOP double sum_of(const float *x, int64_t n)
{
	double s[K_LANES] = { 0 };
	int64_t i = 0;
	for (int64_t end; i + K_LANES <= n;) {
		Some a = { 0 }, b = { 0 };
		for (end = run_end(i, n); i < end; i += K_LANES) {
			a += SOME(x + i);
			b += SOME(x + i + HALF);
		}
		flush(s, &a, &b);
	}
	double sum = joined(s);
	for (; i < n; i++)
		sum += (double)x[i];
	return sum;
}

K_LOOP double squares_of(const float *x, int64_t n, float m)
{
	double s[K_LANES] = { 0 };
	int64_t i = 0;
	for (int64_t end; i + K_LANES <= n;) {
		Some a = { 0 }, b = { 0 };
		for (end = run_end(i, n); i < end; i += K_LANES) {
			Some v = SOME(x + i) - m, w = SOME(x + i + HALF) - m;
			a += v * v;
			b += w * w;
		}
		flush(s, &a, &b);
	}
	double sum = joined(s);
	for (; i < n; i++)
		sum += (double)((x[i] - m) * (x[i] - m));
	return sum;
}

/* The variance of n numbers from the sum of squares of x - m, where m is the rounded mean. */
K_LOOP double variance(double squares, double n, double mean, float m)
{
	double off = mean - (double)m, v = squares / n - off * off;
	return v < 0 ? 0 : v;
}

/* sum(g) and sum(g h), where g = dy scale (or dy, without a vector of scales) and h = (x - mean) inv. */
K_LOOP void products_of(const float *dy, const float *x, const float *scale, float mean, float inv, int64_t n,
	double *g, double *gh)
{
	double s[K_LANES] = { 0 }, t[K_LANES] = { 0 };
	int64_t i = 0;
	for (int64_t end; i + K_LANES <= n;) {
		Some a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
		for (end = run_end(i, n); i < end; i += K_LANES) {
			Some v = SOME(dy + i), w = SOME(dy + i + HALF);
			if (scale) {
				v *= SOME(scale + i);
				w *= SOME(scale + i + HALF);
			}
			a += v;
			b += w;
			c += v * (SOME(x + i) - mean);
			d += w * (SOME(x + i + HALF) - mean);
		}
		flush(s, &a, &b);
		flush(t, &c, &d);
	}
	double sum = joined(s), with = joined(t);
	for (; i < n; i++) {
		float one = scale ? dy[i] * scale[i] : dy[i];
		sum += (double)one;
		with += (double)one * (double)(x[i] - mean);
	}
	*g += sum;
	*gh += with * (double)inv;
}

/* ---- layer norm, and root mean square ---- */

typedef struct Layer {
	float *y, *mean, *inv;
	const float *x, *dy, *scale, *b, *kmean, *kinv;
	float *dscale, *db;
	int64_t rows, n;
	bool centre;
	float eps;
} Layer;

K_LOOP void layer_rows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Layer *l = arg;
	int64_t n = l->n;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		const float *x = l->x + r * n;
		float *y = l->y + r * n;
		double m = l->centre ? sum_of(x, n) / (double)n : 0;
		float fm = (float)m,
			fi = (float)(1 / sqrt(variance(squares_of(x, n, fm), (double)n, m, fm) + (double)l->eps));
		if (l->b)
			K_VECTOR for (int64_t j = 0; j < n; j++)
				y[j] = (x[j] - fm) * fi * l->scale[j] + l->b[j];
		else
			K_VECTOR for (int64_t j = 0; j < n; j++)
				y[j] = (x[j] - fm) * fi * l->scale[j];
		if (l->mean)
			l->mean[r] = fm;
		if (l->inv)
			l->inv[r] = fi;
	}
}
K_EACH_ISA(layer_rows)

int k_layernorm_f32(Ctx *c, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t rows, int64_t n, bool centre, float eps)
{
	Layer l = { .y = y, .mean = mean, .inv = inv, .x = x, .scale = scale, .b = b, .rows = rows, .n = n,
		.centre = centre, .eps = eps };
	rt_parallel(c, rows, 1 + 8192 / (n + 1), K_PICK(c, layer_rows), &l);
	return 0;
}

K_LOOP void layer_grads(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Layer *l = arg;
	int64_t n = l->n;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		const float *x = l->x + r * n, *dy = l->dy + r * n;
		float *dx = l->y + r * n, m = l->kmean ? l->kmean[r] : 0, inv = l->kinv[r];
		double g = 0, gh = 0;
		products_of(dy, x, l->scale, m, inv, n, &g, &gh);
		float ga = l->kmean ? (float)(g / (double)n) : 0, gha = (float)(gh / (double)n);
		K_VECTOR for (int64_t j = 0; j < n; j++)
			dx[j] = inv * (dy[j] * l->scale[j] - ga - (x[j] - m) * inv * gha);
	}
}
K_EACH_ISA(layer_grads)

int k_layernorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t rows, int64_t n)
{
	Layer l = { .y = dx, .dy = dy, .x = x, .scale = scale, .kmean = mean, .kinv = inv, .rows = rows, .n = n };
	rt_parallel(c, rows, 1 + 8192 / (n + 1), K_PICK(c, layer_grads), &l);
	return 0;
}

/* dscale and db of blocks of COLS columns. */
K_LOOP void layer_columns(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Layer *l = arg;
	(void)thread;
	for (int64_t k = lo; k < hi; k++) {
		int64_t from = k * COLS, n = l->n - from < COLS ? l->n - from : COLS;
		float s[COLS] = { 0 }, t[COLS] = { 0 };
		for (int64_t r0 = 0; r0 < l->rows; r0 += PIECE) {
			float ps[COLS] = { 0 }, pt[COLS] = { 0 };
			for (int64_t r = r0; r < l->rows && r < r0 + PIECE; r++) {
				const float *dy = l->dy + r * l->n + from, *x = l->x + r * l->n + from;
				float m = l->kmean ? l->kmean[r] : 0, inv = l->kinv[r];
				for (int64_t j = 0; j < n; j++) {
					ps[j] += dy[j] * ((x[j] - m) * inv);
					pt[j] += dy[j];
				}
			}
			for (int64_t j = 0; j < n; j++)
				s[j] += ps[j], t[j] += pt[j];
		}
		for (int64_t j = 0; j < n; j++)
			l->dscale[from + j] = s[j];
		for (int64_t j = 0; j < n && l->db; j++)
			l->db[from + j] = t[j];
	}
}
K_EACH_ISA(layer_columns)

int k_layernorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t rows, int64_t n)
{
	Layer l = { .dscale = dscale, .db = db, .dy = dy, .x = x, .kmean = mean, .kinv = inv, .rows = rows, .n = n };
	rt_parallel(c, (n + COLS - 1) / COLS, 1, K_PICK(c, layer_columns), &l);
	return 0;
}

/* ---- batch and group norm: sets of runs, each run with one scale ---- */

/* Set i has `runs` runs of `len` numbers: run r begins at i / per * outer + i % per * each + r * step. */
typedef struct Sets {
	int64_t per, outer, each, runs, len, step;
	float *y, *mean, *inv, *newmean, *newvar;
	const float *x, *dy, *scale, *b, *kmean, *kinv, *oldmean, *oldvar;
	bool one;                                               /* all runs of a set have one scale, that of the set;
	                                                         * else run r of set i has i % per * runs + r */
	float eps, momentum;
} Sets;

K_LOOP float scale_at(const Sets *s, const float *v, int64_t i, int64_t r)
{
	return v[s->one ? i : i % s->per * s->runs + r];
}

K_LOOP void sets(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Sets *s = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t at = i / s->per * s->outer + i % s->per * s->each;
		double n = (double)(s->runs * s->len), m = 0, v = 0;
		for (int64_t r = 0; r < s->runs; r++)
			m += sum_of(s->x + at + r * s->step, s->len);
		m /= n;
		float fm = (float)m;
		for (int64_t r = 0; r < s->runs; r++)
			v += squares_of(s->x + at + r * s->step, s->len, fm);
		v = variance(v, n, m, fm);
		float fi = (float)(1 / sqrt(v + (double)s->eps));
		for (int64_t r = 0; r < s->runs; r++) {
			const float *x = s->x + at + r * s->step;
			float *y = s->y + at + r * s->step, w = scale_at(s, s->scale, i, r),
				b = scale_at(s, s->b, i, r);
			K_VECTOR for (int64_t j = 0; j < s->len; j++)
				y[j] = (x[j] - fm) * fi * w + b;
		}
		if (s->newmean)
			s->newmean[i] = s->momentum * s->oldmean[i] + (1 - s->momentum) * fm;
		if (s->newvar)
			s->newvar[i] = s->momentum * s->oldvar[i] + (1 - s->momentum) * (float)v;
		if (s->mean)
			s->mean[i] = fm;
		if (s->inv)
			s->inv[i] = fi;
	}
}
K_EACH_ISA(sets)

K_LOOP void set_grads(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Sets *s = arg;
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t at = i / s->per * s->outer + i % s->per * s->each;
		float m = s->kmean[i], inv = s->kinv[i];
		double n = (double)(s->runs * s->len), g = 0, gh = 0;
		for (int64_t r = 0; r < s->runs; r++) {
			double d = 0, dh = 0;
			products_of(s->dy + at + r * s->step, s->x + at + r * s->step, NULL, m, inv, s->len, &d, &dh);
			g += d * (double)scale_at(s, s->scale, i, r);
			gh += dh * (double)scale_at(s, s->scale, i, r);
		}
		float ga = (float)(g / n), gha = (float)(gh / n);
		for (int64_t r = 0; r < s->runs; r++) {
			const float *x = s->x + at + r * s->step, *dy = s->dy + at + r * s->step;
			float *dx = s->y + at + r * s->step, w = scale_at(s, s->scale, i, r);
			K_VECTOR for (int64_t j = 0; j < s->len; j++)
				dx[j] = inv * (dy[j] * w - ga - (x[j] - m) * inv * gha);
		}
	}
}
K_EACH_ISA(set_grads)

/* dscale and db of channels; the statistic of image i and channel ch is number i * step + ch / each. */
typedef struct Weights { float *dscale, *db; const float *dy, *x, *mean, *inv; int64_t batch, channels, inner, step,
	each; } Weights;

K_LOOP void channels(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Weights *w = arg;
	(void)thread;
	for (int64_t ch = lo; ch < hi; ch++) {
		double s = 0, t = 0;
		for (int64_t i = 0; i < w->batch; i++) {
			int64_t at = (i * w->channels + ch) * w->inner, k = i * w->step + ch / w->each;
			products_of(w->dy + at, w->x + at, NULL, w->mean[k], w->inv[k], w->inner, &t, &s);
		}
		w->dscale[ch] = (float)s;
		if (w->db)
			w->db[ch] = (float)t;
	}
}
K_EACH_ISA(channels)

int k_groupnorm_f32(Ctx *c, float *y, float *mean, float *inv, const float *x, const float *scale, const float *b,
	int64_t batch, int64_t groups, int64_t each, int64_t inner, float eps)
{
	Sets s = { .per = groups, .outer = groups * each * inner, .each = each * inner, .runs = each, .len = inner,
		.step = inner, .y = y, .mean = mean, .inv = inv, .x = x, .scale = scale, .b = b, .eps = eps };
	rt_parallel(c, batch * groups, 1, K_PICK(c, sets), &s);
	return 0;
}

int k_groupnorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner)
{
	Sets s = { .per = groups, .outer = groups * each * inner, .each = each * inner, .runs = each, .len = inner,
		.step = inner, .y = dx, .dy = dy, .x = x, .scale = scale, .kmean = mean, .kinv = inv };
	rt_parallel(c, batch * groups, 1, K_PICK(c, set_grads), &s);
	return 0;
}

int k_groupnorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t groups, int64_t each, int64_t inner)
{
	Weights w = { .dscale = dscale, .db = db, .dy = dy, .x = x, .mean = mean, .inv = inv, .batch = batch,
		.channels = groups * each, .inner = inner, .step = groups, .each = each };
	rt_parallel(c, groups * each, 1, K_PICK(c, channels), &w);
	return 0;
}

int k_batchnorm_f32(Ctx *c, float *y, float *newmean, float *newvar, float *mean, float *inv, const float *x,
	const float *scale, const float *b, const float *oldmean, const float *oldvar, int64_t batch, int64_t nchannel,
	int64_t inner, float eps, float momentum)
{
	Sets s = { .per = nchannel, .each = inner, .runs = batch, .len = inner, .step = nchannel * inner, .one = true,
		.y = y, .newmean = newmean, .newvar = newvar, .mean = mean, .inv = inv, .x = x, .scale = scale, .b = b,
		.oldmean = oldmean, .oldvar = oldvar, .eps = eps, .momentum = momentum };
	rt_parallel(c, nchannel, 1, K_PICK(c, sets), &s);
	return 0;
}

int k_batchnorm_grad_f32(Ctx *c, float *dx, const float *dy, const float *x, const float *scale, const float *mean,
	const float *inv, int64_t batch, int64_t nchannel, int64_t inner)
{
	Sets s = { .per = nchannel, .each = inner, .runs = batch, .len = inner, .step = nchannel * inner, .one = true,
		.y = dx, .dy = dy, .x = x, .scale = scale, .kmean = mean, .kinv = inv };
	rt_parallel(c, nchannel, 1, K_PICK(c, set_grads), &s);
	return 0;
}

int k_batchnorm_grad_w_f32(Ctx *c, float *dscale, float *db, const float *dy, const float *x, const float *mean,
	const float *inv, int64_t batch, int64_t nchannel, int64_t inner)
{
	Weights w = { .dscale = dscale, .db = db, .dy = dy, .x = x, .mean = mean, .inv = inv, .batch = batch,
		.channels = nchannel, .inner = inner, .each = 1 };
	rt_parallel(c, nchannel, 1, K_PICK(c, channels), &w);
	return 0;
}
