/* Windows over any number of axes: convolutions, their gradients, and pools.  Those over planes have kernels of their own; this is for
 * the others, and for sums. */
#include "kernels.h"

#include <math.h>

static int64_t product(const KWindows *w, const int64_t *d)
{
	int64_t n = 1;
	for (int a = 0; a < w->n; a++)
		n *= d[a];
	return n;
}

/* The input under place p of the window of output o, or -1: padding; *inside: it lies within the padded input. */
static int64_t under(const KWindows *w, int64_t o, int64_t p, bool *inside)
{
	int64_t at = 0, stride = 1;
	bool pad = false;
	*inside = true;
	for (int a = w->n - 1; a >= 0; a--) {
		int64_t i = o % w->out[a] * w->stride[a] - w->lo[a] + p % w->k[a] * w->dil[a];
		*inside = *inside && i < w->in[a] + w->hi[a];
		pad = pad || i < 0 || i >= w->in[a];
		at += i * stride;
		stride *= w->in[a];
		o /= w->out[a];
		p /= w->k[a];
	}
	return pad ? -1 : at;
}

typedef enum { FORWARD, GRAD_X, GRAD_W } Way;

static void conv(Way way, float *y, float *x, float *f, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w)
{
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	bool inside;
	for (int64_t b = 0; b < batch; b++)
		for (int64_t g = 0; g < groups; g++)
			for (int64_t o = 0; o < cout; o++)
				for (int64_t i = 0; i < cin; i++)
					for (int64_t p = 0; p < nk; p++) {
						float *fp = f + ((g * cout + o) * cin + i) * nk + p;
						for (int64_t q = 0; q < nout; q++) {
							int64_t at = under(w, q, p, &inside);
							float *xp = x + ((b * groups + g) * cin + i) * nin + at, *yp = y + ((b * groups + g) * cout + o) * nout + q;
							if (at < 0)
								continue;
							if (way == FORWARD)
								*yp += *fp * *xp;
							else if (way == GRAD_X)
								*xp += *fp * *yp;
							else
								*fp += *xp * *yp;
						}
					}
}

/* The operands that a way only reads are const to its caller. */
static float *writable(const float *p)
{
	union { const float *in; float *out; } u = { p };
	return u.out;
}

int k_conv_nd_f32(Ctx *c, float *y, const float *x, const float *f, const float *b, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w)
{
	(void)c;
	int64_t nout = product(w, w->out);
	for (int64_t p = 0; p < batch * groups * cout; p++)
		for (int64_t i = 0; i < nout; i++)
			y[p * nout + i] = b ? b[p % (groups * cout)] : 0;
	conv(FORWARD, y, writable(x), writable(f), batch, groups, cin, cout, w);
	return 0;
}

int k_conv_nd_grad_x_f32(Ctx *c, float *x, const float *g, const float *f, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w)
{
	(void)c;
	for (int64_t i = 0; i < batch * groups * cin * product(w, w->in); i++)
		x[i] = 0;
	conv(GRAD_X, writable(g), x, writable(f), batch, groups, cin, cout, w);
	return 0;
}

int k_conv_nd_grad_w_f32(Ctx *c, float *f, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin, int64_t cout, const KWindows *w)
{
	(void)c;
	for (int64_t i = 0; i < groups * cout * cin * product(w, w->k); i++)
		f[i] = 0;
	conv(GRAD_W, writable(g), writable(x), f, batch, groups, cin, cout, w);
	return 0;
}

static int64_t largest(const float *x, const KWindows *w, int64_t o)
{
	int64_t best = -1;
	bool inside;
	for (int64_t p = 0, nk = product(w, w->k); p < nk; p++) {
		int64_t at = under(w, o, p, &inside);
		if (at >= 0 && (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best]))))
			best = at;
	}
	return best;
}

int k_maxpool_nd_f32(Ctx *c, float *y, int64_t *index, const float *x, int64_t planes, const KWindows *w)
{
	(void)c;
	int64_t nin = product(w, w->in), nout = product(w, w->out);
	for (int64_t i = 0; i < planes * nout; i++) {
		int64_t at = largest(x + i / nout * nin, w, i % nout);
		if (y)
			y[i] = at < 0 ? -INFINITY : x[i / nout * nin + at];
		if (index)
			index[i] = at < 0 ? -1 : i / nout * nin + at;
	}
	return 0;
}

int k_maxpool_nd_grad_f32(Ctx *c, float *dx, const float *g, const float *x, int64_t planes, const KWindows *w)
{
	(void)c;
	int64_t nin = product(w, w->in), nout = product(w, w->out);
	for (int64_t i = 0; i < planes * nin; i++)
		dx[i] = 0;
	for (int64_t i = 0; i < planes * nout; i++) {
		int64_t at = largest(x + i / nout * nin, w, i % nout);
		if (at >= 0)
			dx[i / nout * nin + at] += g[i];
	}
	return 0;
}

/* What the sum over a window is multiplied by. */
static float weight(const KWindows *w, int64_t o, KPool kind)
{
	int64_t n = 0;
	bool inside;
	if (kind == K_POOL_SUM)
		return 1;
	for (int64_t p = 0, nk = product(w, w->k); p < nk; p++) {
		int64_t at = under(w, o, p, &inside);
		n += kind == K_POOL_PADDED ? inside : at >= 0;
	}
	return n ? 1 / (float)n : 0;
}

int k_sumpool_f32(Ctx *c, float *y, const float *x, int64_t planes, const KWindows *w, KPool kind)
{
	(void)c;
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	bool inside;
	for (int64_t i = 0; i < planes * nout; i++) {
		float sum = 0;
		for (int64_t p = 0; p < nk; p++) {
			int64_t at = under(w, i % nout, p, &inside);
			if (at >= 0)
				sum += x[i / nout * nin + at];
		}
		y[i] = sum * weight(w, i % nout, kind);
	}
	return 0;
}

int k_sumpool_grad_f32(Ctx *c, float *dx, const float *g, int64_t planes, const KWindows *w, KPool kind)
{
	(void)c;
	int64_t nin = product(w, w->in), nout = product(w, w->out), nk = product(w, w->k);
	bool inside;
	for (int64_t i = 0; i < planes * nin; i++)
		dx[i] = 0;
	for (int64_t i = 0; i < planes * nout; i++) {
		float v = g[i] * weight(w, i % nout, kind);
		for (int64_t p = 0; p < nk; p++) {
			int64_t at = under(w, i % nout, p, &inside);
			if (at >= 0)
				dx[i / nout * nin + at] += v;
		}
	}
	return 0;
}
