/* Convolutions over planes: one thread per element of the result, which computes its sum in a fixed order. */
#include "dialect.h"

KERNEL g_conv_f32(float *y, const float *x, const float *w, const float *b, i64 groups, i64 cin, i64 cout,
	KWindow v, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 ox = e % v.out[1], oy = e / v.out[1] % v.out[0], o = e / (v.out[0] * v.out[1]);
	i64 ch = o % (groups * cout), n = o / (groups * cout), g = ch / cout;
	float sum = b ? b[ch] : 0.0f;
	for (i64 i = 0; i < cin; i++)
		for (i64 ky = 0; ky < v.k[0]; ky++)
			for (i64 kx = 0; kx < v.k[1]; kx++) {
				i64 iy = oy * v.stride[0] - v.lo[0] + ky * v.dil[0],
					ix = ox * v.stride[1] - v.lo[1] + kx * v.dil[1];
				if (iy >= 0 && iy < v.in[0] && ix >= 0 && ix < v.in[1])
					sum += w[((ch * cin + i) * v.k[0] + ky) * v.k[1] + kx] *
						x[(((n * groups + g) * cin + i) * v.in[0] + iy) * v.in[1] + ix];
			}
	y[e] = sum;
}

KERNEL g_conv_grad_x_f32(float *x, const float *d, const float *w, i64 groups, i64 cin, i64 cout, KWindow v, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 ix = e % v.in[1], iy = e / v.in[1] % v.in[0], p = e / (v.in[0] * v.in[1]);
	i64 i = p % cin, g = p / cin % groups, n = p / (cin * groups);
	float sum = 0;
	for (i64 o = 0; o < cout; o++)
		for (i64 ky = 0; ky < v.k[0]; ky++)
			for (i64 kx = 0; kx < v.k[1]; kx++) {
				i64 ty = iy + v.lo[0] - ky * v.dil[0], tx = ix + v.lo[1] - kx * v.dil[1];
				if (ty < 0 || tx < 0 || ty % v.stride[0] || tx % v.stride[1] ||
				    ty / v.stride[0] >= v.out[0] || tx / v.stride[1] >= v.out[1])
					continue;
				i64 ch = g * cout + o;
				sum += w[((ch * cin + i) * v.k[0] + ky) * v.k[1] + kx] *
					d[((n * groups * cout + ch) * v.out[0] + ty / v.stride[0]) * v.out[1] +
					tx / v.stride[1]];
			}
	x[e] = sum;
}

KERNEL g_conv_grad_w_f32(float *w, const float *x, const float *d, i64 batch, i64 groups, i64 cin, i64 cout,
	KWindow v, i64 total)
{
	i64 e = element();
	if (e >= total)
		return;
	i64 kx = e % v.k[1], ky = e / v.k[1] % v.k[0], i = e / (v.k[0] * v.k[1]) % cin,
		ch = e / (v.k[0] * v.k[1] * cin), g = ch / cout;
	float sum = 0;
	for (i64 n = 0; n < batch; n++)
		for (i64 oy = 0; oy < v.out[0]; oy++)
			for (i64 ox = 0; ox < v.out[1]; ox++) {
				i64 iy = oy * v.stride[0] - v.lo[0] + ky * v.dil[0],
					ix = ox * v.stride[1] - v.lo[1] + kx * v.dil[1];
				if (iy >= 0 && iy < v.in[0] && ix >= 0 && ix < v.in[1])
					sum += x[(((n * groups + g) * cin + i) * v.in[0] + iy) * v.in[1] + ix] *
						d[((n * groups * cout + ch) * v.out[0] + oy) * v.out[1] + ox];
			}
	w[e] = sum;
}
