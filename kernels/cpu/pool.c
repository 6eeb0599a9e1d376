/* Pools over planes.  Padding is never the maximum.  A window that lies wholly on padding gives minus infinity and has
 * no gradient. */
#include "kernels.h"

#include <math.h>

/* The position in the plane of the largest element of a window; -1 if the window has only padding. */
static int64_t largest(const float *x, const KWindow *w, int64_t oy, int64_t ox)
{
	int64_t best = -1;
	for (int64_t ky = 0; ky < w->k[0]; ky++)
		for (int64_t kx = 0; kx < w->k[1]; kx++) {
			int64_t iy = oy * w->stride[0] - w->lo[0] + ky * w->dil[0],
				ix = ox * w->stride[1] - w->lo[1] + kx * w->dil[1];
			if (iy < 0 || iy >= w->in[0] || ix < 0 || ix >= w->in[1])
				continue;
			int64_t at = iy * w->in[1] + ix;
			if (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best])))
				best = at;
		}
	return best;
}

int k_maxpool_f32(Ctx *c, float *y, const float *x, int64_t planes, KWindow w)
{
	(void)c;
	for (int64_t p = 0; p < planes; p++)
		for (int64_t oy = 0; oy < w.out[0]; oy++)
			for (int64_t ox = 0; ox < w.out[1]; ox++) {
				const float *in = x + p * w.in[0] * w.in[1];
				int64_t at = largest(in, &w, oy, ox);
				y[(p * w.out[0] + oy) * w.out[1] + ox] = at < 0 ? -INFINITY : in[at];
			}
	return 0;
}

int k_maxpool_grad_shard_f32(Ctx *c, float *dx, const float *g, const float *x, int64_t planes, KWindow w, KStretch s)
{
	(void)c;
	int64_t nin = w.in[0] * w.in[1], own = s.size[0] * s.size[1];
	for (int64_t i = 0; i < planes * own; i++)
		dx[i] = 0;
	for (int64_t p = 0; p < planes; p++)
		for (int64_t oy = 0; oy < w.out[0]; oy++)
			for (int64_t ox = 0; ox < w.out[1]; ox++) {
				int64_t at = largest(x + p * nin, &w, oy, ox);
				int64_t iy = at < 0 ? -1 : at / w.in[1] - s.from[0],
					ix = at < 0 ? -1 : at % w.in[1] - s.from[1];
				if (iy >= 0 && iy < s.size[0] && ix >= 0 && ix < s.size[1])
					dx[p * own + iy * s.size[1] + ix] += g[(p * w.out[0] + oy) * w.out[1] + ox];
			}
	return 0;
}

int k_maxpool_grad_f32(Ctx *c, float *dx, const float *g, const float *x, int64_t planes, KWindow w)
{
	KStretch all = { { 0 }, { w.in[0], w.in[1] } };
	return k_maxpool_grad_shard_f32(c, dx, g, x, planes, w, all);
}
