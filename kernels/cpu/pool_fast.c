/* Pools over planes, one thread per plane.  Where whole rows of windows lie inside the input, a row of results (or of
 * positions of the maxima) is found by comparing shifted rows.  Windows at the edge are computed one by one, as in
 * pool.c. */
#include "kernels.h"
#include "isa.h"

#include <math.h>
#include <string.h>

/* shard: only the stretch `own` of the gradient is wanted */
typedef struct Pool { float *y; const float *x, *g; KWindow w; KStretch own; bool shard; } Pool;

/* The position in the plane of the largest element of a window; -1 if the window has only padding. */
K_LOOP int64_t largest(const float *x, const KWindow *w, int64_t oy, int64_t ox)
{
	int64_t best = -1;
	int64_t iy0 = oy * w->stride[0] - w->lo[0], ix0 = ox * w->stride[1] - w->lo[1];
	for (int64_t ky = 0; ky < w->k[0]; ky++) {
		int64_t iy = iy0 + ky * w->dil[0];
		if (iy < 0 || iy >= w->in[0])
			continue;
		for (int64_t kx = 0; kx < w->k[1]; kx++) {
			int64_t ix = ix0 + kx * w->dil[1], at = iy * w->in[1] + ix;
			if (ix < 0 || ix >= w->in[1])
				continue;
			if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]))
				best = at;
		}
	}
	return best;
}

K_LOOP void edge(const float *x, float *y, const KWindow *w, int64_t oy, int64_t from, int64_t to)
{
	for (int64_t ox = from; ox < to; ox++) {
		int64_t at = largest(x, w, oy, ox);
		y[ox] = at < 0 ? -INFINITY : x[at];
	}
}

/* Results from .. to - 1 of a row, whose windows lie inside the input along this axis. */
K_LOOP void inside(const float *restrict x, float *restrict y, const KWindow *w, int64_t oy, int64_t from, int64_t to)
{
	for (int64_t ox = from; ox < to; ox++)
		y[ox] = -INFINITY;
	for (int64_t ky = 0; ky < w->k[0]; ky++) {
		int64_t iy = oy * w->stride[0] - w->lo[0] + ky * w->dil[0];
		if (iy < 0 || iy >= w->in[0])
			continue;
		for (int64_t kx = 0; kx < w->k[1]; kx++) {
			const float *restrict in = x + iy * w->in[1] + kx * w->dil[1] - w->lo[1];
			if (w->stride[1] == 2)
				for (int64_t ox = from; ox < to; ox++)
					y[ox] = in[2 * ox] > y[ox] || in[2 * ox] != in[2 * ox] ? in[2 * ox] : y[ox];
			else
				for (int64_t ox = from; ox < to; ox++)
					y[ox] = in[w->stride[1] * ox] > y[ox] ||
						in[w->stride[1] * ox] != in[w->stride[1] * ox]
						? in[w->stride[1] * ox] : y[ox];
		}
	}
}

/* The range of results of a row whose windows lie wholly inside the input. */
static void whole(const KWindow *w, int64_t *from, int64_t *to)
{
	int64_t s = w->stride[1], span = (w->k[1] - 1) * w->dil[1];
	*from = (w->lo[1] + s - 1) / s;
	int64_t last = w->in[1] - 1 - span + w->lo[1];
	*to = last < 0 ? 0 : last / s + 1;
	if (*to > w->out[1])
		*to = w->out[1];
	if (*from > *to)
		*from = *to;
}

K_LOOP void planes(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Pool *p = arg;
	const KWindow *w = &p->w;
	int64_t from, to;
	(void)thread;
	whole(w, &from, &to);
	for (int64_t i = lo; i < hi; i++) {
		const float *x = p->x + i * w->in[0] * w->in[1];
		for (int64_t oy = 0; oy < w->out[0]; oy++) {
			float *y = p->y + (i * w->out[0] + oy) * w->out[1];
			edge(x, y, w, oy, 0, from);
			edge(x, y, w, oy, to, w->out[1]);
			inside(x, y, w, oy, from, to);
		}
	}
}
K_EACH_ISA(planes)

int k_maxpool_f32(Ctx *c, float *y, const float *x, int64_t n, KWindow w)
{
	Pool p = { .y = y, .x = x, .w = w };
	rt_parallel(c, n, 1, K_PICK(c, planes), &p);
	return 0;
}

/* For gradients: the positions in the plane of the maxima of windows from .. from + n - 1 of a row. */
enum { SPAN = 64 };

K_LOOP void find(const float *restrict x, int32_t *restrict position, const KWindow *w, int64_t oy,
	int64_t from, int64_t n)
{
	float best[SPAN];
	int64_t s = w->stride[1];
	bool first = true;
	for (int64_t ky = 0; ky < w->k[0]; ky++) {
		int64_t iy = oy * w->stride[0] - w->lo[0] + ky * w->dil[0];
		if (iy < 0 || iy >= w->in[0])
			continue;
		for (int64_t kx = 0; kx < w->k[1]; kx++, first = false) {
			int64_t at = iy * w->in[1] + from * s + kx * w->dil[1] - w->lo[1];
			const float *restrict in = x + at;
			if (first)
				for (int64_t i = 0; i < n; i++)
					best[i] = in[s * i], position[i] = (int32_t)(at + s * i);
			else if (s == 2)
				K_VECTOR for (int32_t i = 0; i < (int32_t)n; i++) {
					float v = in[2 * i];
					bool more = (v > best[i]) | ((v != v) & (best[i] == best[i]));
					best[i] = more ? v : best[i];
					position[i] = more ? (int32_t)at + 2 * i : position[i];
				}
			else
				K_VECTOR for (int32_t i = 0; i < (int32_t)n; i++) {
					float v = in[s * i];
					bool more = (v > best[i]) | ((v != v) & (best[i] == best[i]));
					best[i] = more ? v : best[i];
					position[i] = more ? (int32_t)(at + s * i) : position[i];
				}
		}
	}
	for (int64_t i = 0; first && i < n; i++)
		position[i] = -1;
}

/* Adds to the gradient of an element of the plane, if it is inside the wanted stretch. */
K_LOOP void give(const Pool *p, float *dx, int64_t at, float g)
{
	int64_t iy = at / p->w.in[1] - p->own.from[0], ix = at % p->w.in[1] - p->own.from[1];
	if (iy >= 0 && iy < p->own.size[0] && ix >= 0 && ix < p->own.size[1])
		dx[iy * p->own.size[1] + ix] += g;
}

K_LOOP void give_edge(const Pool *p, float *dx, const float *g, const float *x, const KWindow *w, int64_t oy,
	int64_t from, int64_t to)
{
	for (int64_t ox = from; ox < to; ox++) {
		int64_t at = largest(x, w, oy, ox);
		if (at >= 0 && p->shard)
			give(p, dx, at, g[ox]);
		else if (at >= 0)
			dx[at] += g[ox];
	}
}

K_LOOP void grads(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Pool *p = arg;
	const KWindow w = p->w;
	int64_t nin = w.in[0] * w.in[1], own = p->own.size[0] * p->own.size[1], from, to;
	(void)thread;
	whole(&w, &from, &to);
	if (nin > INT32_MAX)
		from = to = w.out[1];
	for (int64_t i = lo; i < hi; i++) {
		const float *x = p->x + i * nin;
		float *dx = p->y + i * own;
		memset(dx, 0, (size_t)own * sizeof *dx);
		for (int64_t oy = 0; oy < w.out[0]; oy++) {
			const float *g = p->g + (i * w.out[0] + oy) * w.out[1];
			give_edge(p, dx, g, x, &w, oy, 0, from);
			for (int64_t ox = from; ox < to; ox += SPAN) {
				int32_t position[SPAN];
				int64_t n = to - ox < SPAN ? to - ox : SPAN;
				find(x, position, &w, oy, ox, n);
				for (int64_t k = 0; k < n; k++)
					if (position[k] >= 0 && p->shard)
						give(p, dx, position[k], g[ox + k]);
					else if (position[k] >= 0)
						dx[position[k]] += g[ox + k];
			}
			give_edge(p, dx, g, x, &w, oy, to, w.out[1]);
		}
	}
}
K_EACH_ISA(grads)

int k_maxpool_grad_f32(Ctx *c, float *dx, const float *g, const float *x, int64_t n, KWindow w)
{
	Pool p = { .y = dx, .x = x, .g = g, .w = w, .own = { { 0 }, { w.in[0], w.in[1] } } };
	rt_parallel(c, n, 1, K_PICK(c, grads), &p);
	return 0;
}

int k_maxpool_grad_shard_f32(Ctx *c, float *dx, const float *g, const float *x, int64_t n, KWindow w, KStretch own)
{
	Pool p = { .y = dx, .x = x, .g = g, .w = w, .own = own, .shard = true };
	rt_parallel(c, n, 1, K_PICK(c, grads), &p);
	return 0;
}
