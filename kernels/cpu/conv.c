/* Convolutions over planes, and their two gradients.  All three walk the same pairs: a position of the window, and the
 * output pixels for which it lies inside the input. */
#include "kernels.h"

/* The outputs from .. to - 1 for which position k of the window along axis a lies inside the input. */
static void reach(const KWindow *w, int a, int64_t k, int64_t *from, int64_t *to)
{
	int64_t at = k * w->dil[a] - w->lo[a], s = w->stride[a];
	*from = at < 0 ? (-at + s - 1) / s : 0;
	int64_t last = w->in[a] - 1 - at;
	*to = last < 0 ? 0 : last / s + 1;
	if (*to > w->out[a])
		*to = w->out[a];
}

typedef enum { FORWARD, GRAD_X, GRAD_W } Way;

/* Adds the product of one input plane, one output plane and one plane of the weight to the one that is the result. */
static void plane(Way way, const KWindow *w, float *x, float *y, float *wt)
{
	for (int64_t ky = 0; ky < w->k[0]; ky++)
		for (int64_t kx = 0; kx < w->k[1]; kx++) {
			int64_t y0, y1, x0, x1;
			float *f = &wt[ky * w->k[1] + kx], sum = 0;
			reach(w, 0, ky, &y0, &y1);
			reach(w, 1, kx, &x0, &x1);
			for (int64_t oy = y0; oy < y1; oy++) {
				float *in = x + (oy * w->stride[0] - w->lo[0] + ky * w->dil[0]) * w->in[1] - w->lo[1] +
					kx * w->dil[1];
				float *out = y + oy * w->out[1];
				for (int64_t ox = x0; ox < x1; ox++) {
					float *i = in + ox * w->stride[1];
					if (way == FORWARD)
						out[ox] += *f * *i;
					else if (way == GRAD_X)
						*i += *f * out[ox];
					else
						sum += *i * out[ox];
				}
			}
			if (way == GRAD_W)
				*f += sum;
		}
}

static void all(Way way, float *y, float *x, float *wt, int64_t batch, int64_t groups, int64_t cin, int64_t cout,
	const KWindow *w)
{
	int64_t nin = w->in[0] * w->in[1], nout = w->out[0] * w->out[1], nk = w->k[0] * w->k[1];
	for (int64_t b = 0; b < batch; b++)
		for (int64_t g = 0; g < groups; g++)
			for (int64_t o = 0; o < cout; o++)
				for (int64_t i = 0; i < cin; i++)
					plane(way, w, x + ((b * groups + g) * cin + i) * nin,
						y + ((b * groups + g) * cout + o) * nout,
						wt + ((g * cout + o) * cin + i) * nk);
}

/* The result is writable, the two operands are const to the caller; `plane` takes all three without const. */
static float *writable(const float *p)
{
	union { const float *in; float *out; } u = { p };
	return u.out;
}

int k_conv_f32(Ctx *c, float *y, const float *x, const float *w, const float *b, int64_t batch, int64_t groups,
	int64_t cin, int64_t cout, KWindow v)
{
	(void)c;
	int64_t nout = v.out[0] * v.out[1];
	for (int64_t p = 0; p < batch * groups * cout; p++)
		for (int64_t i = 0; i < nout; i++)
			y[p * nout + i] = b ? b[p % (groups * cout)] : 0;
	all(FORWARD, y, writable(x), writable(w), batch, groups, cin, cout, &v);
	return 0;
}

int k_conv_grad_x_f32(Ctx *c, float *x, const float *g, const float *w, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow v)
{
	(void)c;
	for (int64_t i = 0; i < batch * groups * cin * v.in[0] * v.in[1]; i++)
		x[i] = 0;
	all(GRAD_X, writable(g), x, writable(w), batch, groups, cin, cout, &v);
	return 0;
}

int k_conv_grad_w_f32(Ctx *c, float *w, const float *x, const float *g, int64_t batch, int64_t groups, int64_t cin,
	int64_t cout, KWindow v)
{
	(void)c;
	for (int64_t i = 0; i < groups * cout * cin * v.k[0] * v.k[1]; i++)
		w[i] = 0;
	all(GRAD_W, writable(g), writable(x), w, batch, groups, cin, cout, &v);
	return 0;
}
