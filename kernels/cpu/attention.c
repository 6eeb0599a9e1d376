/* Attention without the matrix of probabilities.  Each query walks its keys once and subtracts the largest score so far
 * inside the exponentials (online softmax).  The gradient computes the probabilities again from lse, the logarithm of
 * the sum of exponentials. */
#include "kernels.h"

#include <math.h>

static float dot(const float *a, const float *b, int64_t n)
{
	float s = 0;
	for (int64_t i = 0; i < n; i++)
		s += a[i] * b[i];
	return s;
}

/* The score of query i and key j, -inf if the key is masked; *slope is the derivative of the cap. */
static float score(const KAttention *a, const float *q, const float *k, const void *mask, int64_t b, int64_t h,
	int64_t i, int64_t j, float *slope)
{
	int64_t at = b * a->m.batch + h * a->m.head + i * a->m.row + j * a->mcol;
	if (a->mask == K_MASK_BOOL && !((const uint8_t *)mask)[at])
		return -INFINITY;
	float s = a->scale * dot(q, k, a->d);
	*slope = 1;
	if (a->softcap > 0) {
		float t = tanhf(s / a->softcap);
		s = a->softcap * t;
		*slope = 1 - t * t;
	}
	return a->mask == K_MASK_ADD ? s + ((const float *)mask)[at] : s;
}

/* The keys *from .. *to - 1 inside the window of query i. */
static void reach(const KAttention *a, int64_t i, int64_t *from, int64_t *to)
{
	*from = i > a->left ? i - a->left : 0;
	*to = i + a->right + 1 < a->sk ? i + a->right + 1 : a->sk;
}

static void attend(const KAttention *a, float *y, float *lse, const float *q, const float *k, const float *v,
	const void *mask, int64_t b, int64_t h, int64_t i)
{
	int64_t from, to;
	float top = -INFINITY, sum = 0, slope;
	for (int64_t e = 0; e < a->dv; e++)
		y[e] = 0;
	reach(a, i, &from, &to);
	for (int64_t j = from; j < to; j++) {
		float s = score(a, q, k + j * a->k.row, mask, b, h, i, j, &slope);
		if (s == -INFINITY)
			continue;
		if (s > top) {                  /* rescale the sums so far to the new maximum */
			float f = expf(top - s);
			sum *= f;
			for (int64_t e = 0; e < a->dv; e++)
				y[e] *= f;
			top = s;
		}
		float p = expf(s - top);
		sum += p;
		for (int64_t e = 0; e < a->dv; e++)
			y[e] += p * v[j * a->v.row + e];
	}
	for (int64_t e = 0; e < a->dv && sum > 0; e++)
		y[e] /= sum;
	if (lse)
		*lse = sum > 0 ? top + logf(sum) : INFINITY;
}

int k_attention_f32(Ctx *c, float *y, float *lse, const float *q, const float *k, const float *v, const void *mask,
	const KAttention *a)
{
	(void)c;
	for (int64_t b = 0; b < a->batch; b++)
		for (int64_t h = 0; h < a->heads; h++)
			for (int64_t i = 0; i < a->sq; i++) {
				int64_t kv = h / (a->heads / a->kvheads);
				attend(a, y + b * a->y.batch + h * a->y.head + i * a->y.row,
					lse ? lse + (b * a->heads + h) * a->sq + i : NULL,
					q + b * a->q.batch + h * a->q.head + i * a->q.row,
					k + b * a->k.batch + kv * a->k.head, v + b * a->v.batch + kv * a->v.head,
					mask, b, h, i);
			}
	return 0;
}

static void zero(float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = 0;
}

int k_attention_grad_f32(Ctx *c, float *dq, float *dk, float *dv, const float *q, const float *k, const float *v,
	const void *mask, const float *y, const float *lse, const float *dy, const KAttention *a)
{
	(void)c;
	zero(dq, a->batch * a->heads * a->sq * a->d);
	zero(dk, a->batch * a->kvheads * a->sk * a->d);
	zero(dv, a->batch * a->kvheads * a->sk * a->dv);
	for (int64_t b = 0; b < a->batch; b++)
		for (int64_t h = 0; h < a->heads; h++)
			for (int64_t i = 0; i < a->sq; i++) {
				int64_t kv = h / (a->heads / a->kvheads), from, to,
					yi = b * a->y.batch + h * a->y.head + i * a->y.row;
				int64_t qi = b * a->q.batch + h * a->q.head + i * a->q.row;
				float total = dot(dy + yi, y + yi, a->dv),
					sum = lse[(b * a->heads + h) * a->sq + i], slope;
				reach(a, i, &from, &to);
				for (int64_t j = from; j < to; j++) {
					int64_t kj = b * a->k.batch + kv * a->k.head + j * a->k.row,
						vj = b * a->v.batch + kv * a->v.head + j * a->v.row;
					float s = score(a, q + qi, k + kj, mask, b, h, i, j, &slope);
					if (s == -INFINITY)
						continue;
					float p = expf(s - sum),
						ds = a->scale * slope * p * (dot(dy + yi, v + vj, a->dv) - total);
					for (int64_t e = 0; e < a->d; e++) {
						dq[qi + e] += ds * k[kj + e];
						dk[kj + e] += ds * q[qi + e];
					}
					for (int64_t e = 0; e < a->dv; e++)
						dv[vj + e] += p * dy[yi + e];
				}
			}
	return 0;
}

int k_rotary_f32(Ctx *c, float *y, const float *x, const float *cosine, const float *sine, const int64_t *position,
	const KRotary *r)
{
	(void)c;
	for (int64_t b = 0; b < r->batch; b++)
		for (int64_t h = 0; h < r->heads; h++)
			for (int64_t s = 0; s < r->seq; s++) {
				int64_t at = b * r->x.batch + h * r->x.head + s * r->x.row, token = b * r->seq + s,
					angle = (position ? position[token] : token) * (r->rot / 2);
				if (position && (position[token] < 0 || position[token] >= r->positions))
					return rt_error(c, RT_DATA,
						"position %lld is outside of the %lld that the cache holds",
						(long long)position[token], (long long)r->positions);
				for (int64_t e = 0; e < r->width; e++)
					y[at + e] = x[at + e];
				for (int64_t e = 0; e < r->rot / 2; e++) {
					int64_t i = r->interleaved ? 2 * e : e,
						j = r->interleaved ? 2 * e + 1 : e + r->rot / 2;
					float u = x[at + i], w = x[at + j], co = cosine[angle + e],
						si = sine[angle + e];
					y[at + i] = co * u - si * w;
					y[at + j] = si * u + co * w;
				}
			}
	return 0;
}
