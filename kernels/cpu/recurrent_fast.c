/* The steps of recurrent cells in float.  A thread takes some sequences through all steps, so threads never wait for
 * each other.  Each step is one product with R by gemm.c for all of these sequences, then one loop over the gates.
 * Double uses the plain loops of cells.h. */
#include "cells_list.h"
#include "work.h"
#include "isa.h"
#include "fastmath.h"

#define T double
#define NAME(f) f##_f64
#define EXP exp
#define TANH tanh
#include "cells.h"

typedef struct Job {
	Ctx *c;
	const KCells *k;
	float *y, *yh, *before, *gates, *yc, *cells, *inner;    /* forward */
	const float *xw, *r, *h0, *c0, *rb;
	float *dxw, *dh0, *dc0, *side;                          /* backward */
	const float *dy, *dyh, *dyc, *stay, *state, *saved;     /* gradients of results; saved values */
	const float *was;
	const int32_t *lens;
	int64_t wide;                                           /* gates * hidden */
	int64_t each;                                           /* sequences that go through the steps together */
} Job;

/* The loop over blocks of sequences around NAME_rows. */
#define ROWS(name) \
	K_LOOP void name(void *arg, int64_t lo, int64_t hi, int thread) \
	{ \
		const Job *j = arg; \
		for (int64_t i = lo; i < hi; i++) \
			name##_rows(j, i * j->each, (i + 1) * j->each < j->k->batch ? (i + 1) * j->each : j->k->batch, \
				thread); \
	} \
	K_EACH_ISA(name)

K_LOOP float sigmoid(float v)
{
	return 1.0f / (1.0f + fast_expf(-v));
}

/* For `rows` sequences: y = x w (or y += x w), rows of y yrow apart; w is [k, n], with strides. */
static void product(const Job *j, float *work, float *y, int64_t yrow, const float *x, int64_t xrow, const float *w,
	int64_t wn, int64_t wk, int64_t rows, int64_t n, int64_t k, bool add)
{
	Gemm g = { .batch = 1, .m = rows, .n = n, .k = k, .a = { .x = x, .at = xrow, .k = 1 },
		.b = { .x = w, .at = wn, .k = wk }, .y = y, .yrow = yrow, .add = add };
	gemm_one(j->c->isa, &g, work);
}

static float *work_of(const Job *j, int thread)
{
	return (float *)(void *)(j->c->work + (size_t)thread * j->c->work_each);
}

/* Copies `rows` rows of n numbers; rows are `to` apart in y and `from` apart in x.  Writes zeros if x is NULL; does
 * nothing if y is NULL. */
static void put(float *y, int64_t to, const float *x, int64_t from, int64_t rows, int64_t n)
{
	for (int64_t i = 0; y && i < rows; i++)
		if (x)
			memcpy(y + i * to, x + i * from, (size_t)n * sizeof *y);
		else
			memset(y + i * to, 0, (size_t)n * sizeof *y);
}

static float *at(float *p, int64_t i)
{
	return p ? p + i : NULL;
}

static const float *from(const float *p, int64_t i)
{
	return p ? p + i : NULL;
}

static bool alive(const Job *j, int64_t b, int64_t t)
{
	return !j->lens || t < j->lens[b];
}

/* ---- LSTM ---- */

K_LOOP void lstm_step(float *restrict v, float *restrict h, float *restrict s, int64_t n)
{
	K_VECTOR
	for (int64_t j = 0; j < n; j++) {
		float i = sigmoid(v[j]), o = sigmoid(v[n + j]), f = sigmoid(v[2 * n + j]), g = fast_tanhf(v[3 * n + j]);
		float next = f * s[j] + i * g;
		v[j] = i;
		v[n + j] = o;
		v[2 * n + j] = f;
		v[3 * n + j] = g;
		s[j] = next;
		h[j] = o * fast_tanhf(next);
	}
}

K_LOOP void lstm_rows(const Job *j, int64_t lo, int64_t hi, int thread)
{
	int64_t n = j->k->hidden, rows = hi - lo;
	float *work = work_of(j, thread), *h = work + GEMM_WORK / 4, *s = h + rows * n, *v = s + rows * n,
		*over = v + rows * 4 * n;
	put(h, n, from(j->h0, lo * n), n, rows, n);
	put(s, n, from(j->c0, lo * n), n, rows, n);
	for (int64_t t = 0; t < j->k->steps; t++) {
		int64_t row = t * j->k->batch + lo;
		put(v, 4 * n, j->xw + row * 4 * n, 4 * n, rows, 4 * n);
		put(at(j->before, row * n), n, h, n, rows, n);
		if (t || j->h0)
			product(j, work, v, 4 * n, h, n, j->r, n, 1, rows, 4 * n, n, true);
		for (int64_t b = 0; b < rows; b++) {
			bool live = alive(j, lo + b, t);
			put(over + n, n, s + b * n, n, 1, n); /* a scratch state, if the sequence has ended */
			lstm_step(v + b * 4 * n, live ? h + b * n : over, live ? s + b * n : over + n, n);
			put(at(j->y, (row + b) * n), n, live ? h + b * n : NULL, n, 1, n);
		}
		put(at(j->gates, row * 4 * n), 4 * n, v, 4 * n, rows, 4 * n);
		put(at(j->cells, row * n), n, s, n, rows, n);
	}
	put(at(j->yh, lo * n), n, h, n, rows, n);
	put(at(j->yc, lo * n), n, s, n, rows, n);
}
ROWS(lstm)

K_LOOP void lstm_back(float *restrict d, float *restrict ds, const float *restrict dh, const float *restrict dy,
	const float *restrict v, const float *restrict s, const float *restrict old, int64_t n)
{
	K_VECTOR
	for (int64_t j = 0; j < n; j++) {
		float i = v[j], o = v[n + j], f = v[2 * n + j], g = v[3 * n + j], out = fast_tanhf(s[j]);
		float dout = dh[j] + dy[j], dnext = ds[j] + dout * o * (1.0f - out * out);
		d[j] = dnext * g * i * (1.0f - i);
		d[n + j] = dout * out * o * (1.0f - o);
		d[2 * n + j] = dnext * old[j] * f * (1.0f - f);
		d[3 * n + j] = dnext * i * (1.0f - g * g);
		ds[j] = dnext * f;
	}
}

/* After a backward step: sets dh to d R for the sequences that were live at step t; the others keep theirs. */
static void back_through(const Job *j, float *work, float *dh, float *next, const float *d, int64_t t, int64_t lo,
	int64_t rows, int64_t gates, bool add)
{
	int64_t n = j->k->hidden;
	if (add)
		put(next, n, dh, n, rows, n);
	product(j, work, next, n, d, j->wide, j->r, 1, n, rows, n, gates * n, add);
	for (int64_t b = 0; b < rows; b++)
		if (alive(j, lo + b, t))
			put(dh + b * n, n, next + b * n, n, 1, n);
}

K_LOOP void lstm_grad_rows(const Job *j, int64_t lo, int64_t hi, int thread)
{
	int64_t n = j->k->hidden, rows = hi - lo;
	float *work = work_of(j, thread), *dh = work + GEMM_WORK / 4, *ds = dh + rows * n, *next = ds + rows * n,
		*d = next + rows * n, *zero = d + rows * 4 * n;
	put(dh, n, from(j->dyh, lo * n), n, rows, n);
	put(ds, n, from(j->dyc, lo * n), n, rows, n);
	put(zero, n, NULL, 0, 1, n);
	for (int64_t t = j->k->steps - 1; t >= 0; t--) {
		int64_t row = t * j->k->batch + lo;
		for (int64_t b = 0; b < rows; b++) {
			const float *old = t ? j->state + (row + b - j->k->batch) * n
				: j->c0 ? j->c0 + (lo + b) * n : zero;
			if (alive(j, lo + b, t))
				lstm_back(d + b * 4 * n, ds + b * n, dh + b * n, j->dy + (row + b) * n,
					j->stay + (row + b) * 4 * n, j->state + (row + b) * n, old, n);
			else
				put(d + b * 4 * n, 4 * n, NULL, 0, 1, 4 * n);
		}
		put(at(j->dxw, row * 4 * n), 4 * n, d, 4 * n, rows, 4 * n);
		if (t || j->dh0)
			back_through(j, work, dh, next, d, t, lo, rows, 4, false);
	}
	put(at(j->dh0, lo * n), n, dh, n, rows, n);
	put(at(j->dc0, lo * n), n, ds, n, rows, n);
}
ROWS(lstm_grad)

/* ---- GRU ---- */

K_LOOP void gru_rows(const Job *j, int64_t lo, int64_t hi, int thread)
{
	int64_t n = j->k->hidden, rows = hi - lo;
	bool linear = j->k->linear;
	float *work = work_of(j, thread), *h = work + GEMM_WORK / 4, *v = h + rows * n, *u = v + rows * 3 * n;
	put(h, n, from(j->h0, lo * n), n, rows, n);
	for (int64_t t = 0; t < j->k->steps; t++) {
		int64_t row = t * j->k->batch + lo;
		put(v, 3 * n, j->xw + row * 3 * n, 3 * n, rows, 3 * n);
		put(at(j->before, row * n), n, h, n, rows, n);
		product(j, work, v, 3 * n, h, n, j->r, n, 1, rows, 2 * n, n, true);
		for (int64_t b = 0; b < rows; b++) {
			float *restrict z = v + b * 3 * n, *restrict inner = u + b * n;
			const float *restrict old = h + b * n;
			K_VECTOR
			for (int64_t i = 0; i < 2 * n; i++)
				z[i] = sigmoid(z[i]);
			for (int64_t i = 0; i < n; i++)
				inner[i] = !linear ? z[n + i] * old[i] : j->rb ? j->rb[i] : 0.0f;
		}
		if (linear)
			product(j, work, u, n, h, n, j->r + 2 * n * n, n, 1, rows, n, n, true);
		else
			product(j, work, v + 2 * n, 3 * n, u, n, j->r + 2 * n * n, n, 1, rows, n, n, true);
		for (int64_t b = 0; b < rows; b++) {
			float *restrict z = v + b * 3 * n, *restrict old = h + b * n;
			const float *restrict inner = u + b * n;
			bool live = alive(j, lo + b, t);
			K_VECTOR
			for (int64_t i = 0; i < n; i++) {
				float g = fast_tanhf(linear ? z[2 * n + i] + z[n + i] * inner[i] : z[2 * n + i]),
					out = (1.0f - z[i]) * g + z[i] * old[i];
				z[2 * n + i] = g;
				old[i] = live ? out : old[i];
			}
			put(at(j->y, (row + b) * n), n, live ? old : NULL, n, 1, n);
		}
		put(at(j->gates, row * 3 * n), 3 * n, v, 3 * n, rows, 3 * n);
		put(at(j->inner, row * n), n, u, n, rows, n);
	}
	put(at(j->yh, lo * n), n, h, n, rows, n);
}
ROWS(gru)

K_LOOP void gru_grad_rows(const Job *j, int64_t lo, int64_t hi, int thread)
{
	int64_t n = j->k->hidden, rows = hi - lo;
	bool linear = j->k->linear;
	float *work = work_of(j, thread), *dh = work + GEMM_WORK / 4, *next = dh + rows * n, *d = next + rows * n,
		*e = d + rows * 3 * n, *du = e + rows * 3 * n;
	put(dh, n, from(j->dyh, lo * n), n, rows, n);
	for (int64_t t = j->k->steps - 1; t >= 0; t--) {
		int64_t row = t * j->k->batch + lo;
		for (int64_t b = 0; b < rows; b++) {
			float *restrict db = d + b * 3 * n, *restrict dub = du + b * n, *restrict dhb = dh + b * n;
			const float *restrict z = j->stay + (row + b) * 3 * n, *restrict h = j->was + (row + b) * n,
				*restrict dy = j->dy + (row + b) * n, *restrict inner = j->saved + (row + b) * n;
			if (!alive(j, lo + b, t)) {
				put(db, 0, NULL, 0, 1, 3 * n);
				put(dub, 0, NULL, 0, 1, n);
				continue;
			}
			K_VECTOR
			for (int64_t i = 0; i < n; i++) {
				float dout = dhb[i] + dy[i], g = z[2 * n + i];
				db[i] = dout * (h[i] - g) * z[i] * (1.0f - z[i]);
				db[2 * n + i] = dout * (1.0f - z[i]) * (1.0f - g * g);
				dhb[i] = dout * z[i];
				dub[i] = db[2 * n + i] * inner[i];
			}
		}
		if (!linear)                    /* the gradient of the reset state */
			product(j, work, du, n, d + 2 * n, 3 * n, j->r + 2 * n * n, 1, n, rows, n, n, false);
		for (int64_t b = 0; b < rows; b++) {
			float *restrict db = d + b * 3 * n, *restrict eb = e + b * 3 * n, *restrict dhb = dh + b * n;
			const float *restrict reset = j->stay + ((row + b) * 3 + 1) * n,
				*restrict h = j->was + (row + b) * n, *restrict dub = du + b * n;
			if (!alive(j, lo + b, t)) {
				put(eb, 0, NULL, 0, 1, 3 * n);
				continue;
			}
			K_VECTOR
			for (int64_t i = 0; i < n; i++) {
				float q = linear ? dub[i] : dub[i] * h[i];
				dhb[i] += linear ? 0.0f : dub[i] * reset[i];
				db[n + i] = q * reset[i] * (1.0f - reset[i]);
				eb[i] = db[i];
				eb[n + i] = db[n + i];
				eb[2 * n + i] = linear ? db[2 * n + i] * reset[i] : db[2 * n + i];
			}
		}
		put(at(j->dxw, row * 3 * n), 3 * n, d, 3 * n, rows, 3 * n);
		put(at(j->side, row * 3 * n), 3 * n, e, 3 * n, rows, 3 * n);
		back_through(j, work, dh, next, e, t, lo, rows, linear ? 3 : 2, true);
	}
	put(at(j->dh0, lo * n), n, dh, n, rows, n);
}
ROWS(gru_grad)

/* ---- RNN ---- */

K_LOOP void rnn_rows(const Job *j, int64_t lo, int64_t hi, int thread)
{
	int64_t n = j->k->hidden, rows = hi - lo;
	float *work = work_of(j, thread), *h = work + GEMM_WORK / 4, *v = h + rows * n;
	put(h, n, from(j->h0, lo * n), n, rows, n);
	for (int64_t t = 0; t < j->k->steps; t++) {
		int64_t row = t * j->k->batch + lo;
		put(v, n, j->xw + row * n, n, rows, n);
		put(at(j->before, row * n), n, h, n, rows, n);
		product(j, work, v, n, h, n, j->r, n, 1, rows, n, n, true);
		for (int64_t b = 0; b < rows; b++) {
			bool live = alive(j, lo + b, t);
			K_VECTOR
			for (int64_t i = b * n; i < b * n + n; i++)
				h[i] = live ? fast_tanhf(v[i]) : h[i];
			put(at(j->y, (row + b) * n), n, live ? h + b * n : NULL, n, 1, n);
		}
	}
	put(at(j->yh, lo * n), n, h, n, rows, n);
}
ROWS(rnn)

K_LOOP void rnn_grad_rows(const Job *j, int64_t lo, int64_t hi, int thread)
{
	int64_t n = j->k->hidden, rows = hi - lo;
	float *work = work_of(j, thread), *dh = work + GEMM_WORK / 4, *next = dh + rows * n, *d = next + rows * n;
	put(dh, n, from(j->dyh, lo * n), n, rows, n);
	for (int64_t t = j->k->steps - 1; t >= 0; t--) {
		int64_t row = t * j->k->batch + lo;
		for (int64_t b = 0; b < rows; b++) {
			const float *restrict y = j->state + (row + b) * n, *restrict dy = j->dy + (row + b) * n;
			bool live = alive(j, lo + b, t);
			K_VECTOR
			for (int64_t i = 0; i < n; i++)
				d[b * n + i] = live ? (dh[b * n + i] + dy[i]) * (1.0f - y[i] * y[i]) : 0.0f;
		}
		put(at(j->dxw, row * n), n, d, n, rows, n);
		back_through(j, work, dh, next, d, t, lo, rows, 1, false);
	}
	put(at(j->dh0, lo * n), n, dh, n, rows, n);
}
ROWS(rnn_grad)

/* ---- the kernels ---- */

/* Runs as many sequences at a time as threads share evenly and as fit in scratch. */
static int run(Ctx *c, RtBody *body, const Cells *a)
{
	int64_t room = k_cell_rows(a->k->batch, a->k->hidden), threads = c->nthread > 1 ? c->nthread : 1,
		share = (a->k->batch + threads - 1) / threads;
	Job j = { .c = c, .k = a->k, .y = a->y, .yh = a->yh, .before = a->before, .gates = a->gates,
		.yc = a->yc, .cells = a->cells, .inner = a->inner, .xw = a->xw, .r = a->r, .h0 = a->h0, .c0 = a->c0,
		.rb = a->rb, .dxw = a->dxw, .dh0 = a->dh0, .dc0 = a->dc0, .side = a->side, .dy = a->dy, .dyh = a->dyh,
		.dyc = a->dyc, .stay = a->stay, .state = a->state, .saved = a->saved, .was = a->was, .lens = a->lens };
	j.wide = a->gate * a->k->hidden;
	j.each = share < room ? share : room;
	rt_parallel(c, (a->k->batch + j.each - 1) / j.each, 1, body, &j);
	return 0;
}

#define RUN_CELLS(name) (type == K_F64 ? turns(c, k->batch, 1 << 20, name##_f64, &a) : run(c, K_PICK(c, name), &a))
#include "cells_calls.h"
