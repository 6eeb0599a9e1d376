/* Attention: one thread per query, in the order of kernels/cpu/attention.c; the gradients of keys and values use one
 * thread per key. */
#include "dialect.h"

__device__ static float inner(const float *a, const float *b, i64 n)
{
	float s = 0;
	for (i64 i = 0; i < n; i++)
		s += a[i] * b[i];
	return s;
}

__device__ static float score(const KAttention &a, const float *q, const float *k, const void *mask, i64 b, i64 h,
	i64 i, i64 j, float *slope)
{
	i64 at = b * a.m.batch + h * a.m.head + i * a.m.row + j * a.mcol;
	if (a.mask == K_MASK_BOOL && !((const unsigned char *)mask)[at])
		return NEG_INF;
	float s = a.scale * inner(q, k, a.d);
	*slope = 1.0f;
	if (a.softcap > 0.0f) {
		float t = tanhf(s / a.softcap);
		s = a.softcap * t;
		*slope = 1.0f - t * t;
	}
	return a.mask == K_MASK_ADD ? s + ((const float *)mask)[at] : s;
}

KERNEL g_attention_f32(float *y, float *lse, const float *q, const float *k, const float *v,
	const void *mask, KAttention a)
{
	i64 n = element();
	if (n >= a.batch * a.heads * a.sq)
		return;
	i64 i = n % a.sq, h = n / a.sq % a.heads, b = n / (a.sq * a.heads), kv = h / (a.heads / a.kvheads);
	i64 from = i > a.left ? i - a.left : 0, to = i + a.right + 1 < a.sk ? i + a.right + 1 : a.sk;
	float top = NEG_INF, sum = 0, slope;
	y += b * a.y.batch + h * a.y.head + i * a.y.row;
	q += b * a.q.batch + h * a.q.head + i * a.q.row;
	k += b * a.k.batch + kv * a.k.head;
	v += b * a.v.batch + kv * a.v.head;
	for (i64 e = 0; e < a.dv; e++)
		y[e] = 0;
	for (i64 j = from; j < to; j++) {
		float s = score(a, q, k + j * a.k.row, mask, b, h, i, j, &slope);
		if (s == NEG_INF)
			continue;
		if (s > top) {
			float f = expf(top - s);
			sum *= f;
			for (i64 e = 0; e < a.dv; e++)
				y[e] *= f;
			top = s;
		}
		float p = expf(s - top);
		sum += p;
		for (i64 e = 0; e < a.dv; e++)
			y[e] += p * v[j * a.v.row + e];
	}
	for (i64 e = 0; e < a.dv && sum > 0; e++)
		y[e] /= sum;
	if (lse)
		lse[n] = sum > 0 ? top + logf(sum) : -NEG_INF;
}

KERNEL g_attention_grad_q_f32(float *dq, const float *q, const float *k, const float *v, const void *mask,
	const float *y, const float *lse, const float *dy, KAttention a)
{
	i64 n = element();
	if (n >= a.batch * a.heads * a.sq)
		return;
	i64 i = n % a.sq, h = n / a.sq % a.heads, b = n / (a.sq * a.heads), kv = h / (a.heads / a.kvheads);
	i64 from = i > a.left ? i - a.left : 0, to = i + a.right + 1 < a.sk ? i + a.right + 1 : a.sk;
	i64 yi = b * a.y.batch + h * a.y.head + i * a.y.row, qi = b * a.q.batch + h * a.q.head + i * a.q.row;
	float total = inner(dy + yi, y + yi, a.dv), slope;
	for (i64 e = 0; e < a.d; e++)
		dq[qi + e] = 0;
	for (i64 j = from; j < to; j++) {
		i64 kj = b * a.k.batch + kv * a.k.head + j * a.k.row, vj = b * a.v.batch + kv * a.v.head + j * a.v.row;
		float s = score(a, q + qi, k + kj, mask, b, h, i, j, &slope);
		if (s == NEG_INF)
			continue;
		float ds = a.scale * slope * expf(s - lse[n]) * (inner(dy + yi, v + vj, a.dv) - total);
		for (i64 e = 0; e < a.d; e++)
			dq[qi + e] += ds * k[kj + e];
	}
}

KERNEL g_attention_grad_kv_f32(float *dk, float *dv, const float *q, const float *k, const float *v, const void *mask,
	const float *y, const float *lse, const float *dy, KAttention a)
{
	i64 n = element(), group = a.heads / a.kvheads;
	if (n >= a.batch * a.kvheads * a.sk)
		return;
	i64 j = n % a.sk, kv = n / a.sk % a.kvheads, b = n / (a.sk * a.kvheads);
	i64 kj = b * a.k.batch + kv * a.k.head + j * a.k.row, vj = b * a.v.batch + kv * a.v.head + j * a.v.row;
	float slope;
	for (i64 e = 0; e < a.d; e++)
		dk[kj + e] = 0;
	for (i64 e = 0; e < a.dv; e++)
		dv[vj + e] = 0;
	for (i64 h = kv * group; h < (kv + 1) * group; h++)
		for (i64 i = 0; i < a.sq; i++) {
			if (j < i - a.left || j > i + a.right)
				continue;
			i64 yi = b * a.y.batch + h * a.y.head + i * a.y.row,
				qi = b * a.q.batch + h * a.q.head + i * a.q.row;
			float s = score(a, q + qi, k + kj, mask, b, h, i, j, &slope);
			if (s == NEG_INF)
				continue;
			float p = expf(s - lse[(b * a.heads + h) * a.sq + i]);
			float ds = a.scale * slope * p * (inner(dy + yi, v + vj, a.dv) - inner(dy + yi, y + yi, a.dv));
			for (i64 e = 0; e < a.d; e++)
				dk[kj + e] += ds * q[qi + e];
			for (i64 e = 0; e < a.dv; e++)
				dv[vj + e] += p * dy[yi + e];
		}
}

/* A position outside of the cache gives NaN, which ends the job where the loss is reported. */
KERNEL g_rotary_f32(float *y, const float *x, const float *cosine, const float *sine, const i64 *position, KRotary r)
{
	i64 n = element();
	if (n >= r.batch * r.heads * r.seq)
		return;
	i64 s = n % r.seq, h = n / r.seq % r.heads, b = n / (r.seq * r.heads),
		at = b * r.x.batch + h * r.x.head + s * r.x.row;
	i64 where = position ? position[b * r.seq + s] : b * r.seq + s;
	int bad = position && (where < 0 || where >= r.positions);
	for (i64 e = 0; e < r.width; e++)
		y[at + e] = bad ? NEG_INF - NEG_INF : x[at + e];
	for (i64 e = 0; e < r.rot / 2 && !bad; e++) {
		i64 i = r.interleaved ? 2 * e : e, j = r.interleaved ? 2 * e + 1 : e + r.rot / 2;
		float u = x[at + i], w = x[at + j], co = cosine[where * (r.rot / 2) + e],
			si = sine[where * (r.rot / 2) + e];
		y[at + i] = co * u - si * w;
		y[at + j] = si * u + co * w;
	}
}
