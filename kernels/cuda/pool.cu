/* Pools over planes: one thread per output of the pool, one thread per plane of its gradient. */
#include "dialect.h"

__device__ static i64 largest(const float *x, const KWindow &w, i64 oy, i64 ox)
{
	i64 best = -1;
	for (i64 ky = 0; ky < w.k[0]; ky++)
		for (i64 kx = 0; kx < w.k[1]; kx++) {
			i64 iy = oy * w.stride[0] - w.lo[0] + ky * w.dil[0],
				ix = ox * w.stride[1] - w.lo[1] + kx * w.dil[1];
			if (iy < 0 || iy >= w.in[0] || ix < 0 || ix >= w.in[1])
				continue;
			i64 at = iy * w.in[1] + ix;
			if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]))
				best = at;
		}
	return best;
}

KERNEL g_maxpool_f32(float *y, const float *x, KWindow w, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	const float *in = x + e / (w.out[0] * w.out[1]) * w.in[0] * w.in[1];
	i64 at = largest(in, w, e / w.out[1] % w.out[0], e % w.out[1]);
	y[e] = at < 0 ? NEG_INF : in[at];
}

KERNEL g_maxpool_grad_f32(float *dx, const float *g, const float *x, KWindow w, KStretch s, i64 planes)
{
	i64 p = element(), nin = w.in[0] * w.in[1], own = s.size[0] * s.size[1];
	if (p >= planes)
		return;
	for (i64 i = 0; i < own; i++)
		dx[p * own + i] = 0;
	for (i64 o = 0; o < w.out[0] * w.out[1]; o++) {
		i64 at = largest(x + p * nin, w, o / w.out[1], o % w.out[1]);
		i64 iy = at < 0 ? -1 : at / w.in[1] - s.from[0], ix = at < 0 ? -1 : at % w.in[1] - s.from[1];
		if (iy >= 0 && iy < s.size[0] && ix >= 0 && ix < s.size[1])
			dx[p * own + iy * s.size[1] + ix] += g[p * w.out[0] * w.out[1] + o];
	}
}
