/* Attention in blocks of queries and keys, so that a block of scores is all there ever is of the matrix of probabilities.
 * Both directions are products of such blocks:
 *
 *   forward    s = q k'    p = exp(s - top)    y = y f + p v           f: by how much the largest score so far has grown
 *   backward   s = q k'    p = exp(s - lse)    ds = p (dy v' - dy y)   dv += p' dy    dq += ds k    dk += ds' q
 *
 * after M. Rabe and C. Staats, "Self-attention does not need O(n^2) memory", 2021, and T. Dao et al., "FlashAttention", 2022.
 * A thread owns a block of queries forward, and all queries of a head of keys backward. */
#include "gemm.h"
#include "rows.h"
#include "work.h"

#include <string.h>

enum { QUERIES = ATTENTION_QUERIES, KEYS = ATTENTION_KEYS };

typedef struct Job {
	Ctx *c;
	const KAttention *a;
	float *y, *lse, *dq, *dk, *dv;
	const float *q, *k, *v, *dy, *ky, *klse;
	const void *mask;
	int64_t queries, blocks;        /* in a block, blocks of a head */
} Job;

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The keys that queries i .. i + n - 1 see between them. */
static void reach(const KAttention *a, int64_t i, int64_t n, int64_t *from, int64_t *to)
{
	*from = most(0, i - a->left);
	*to = a->right >= a->sk ? a->sk : least(a->sk, i + n - 1 + a->right + 1);
}

/* m x n = (m x k) (k x n), within this thread. */
static void product(const Job *j, float *work, float *y, int64_t yrow, const float *x, int64_t xrow, int64_t xk, const float *z, int64_t zcol, int64_t zk, int64_t m,
                    int64_t n, int64_t k, bool add)
{
	Gemm g = { .batch = 1, .m = m, .n = n, .k = k, .a = { .x = x, .at = xrow, .k = xk }, .b = { .x = z, .at = zcol, .k = zk }, .y = y, .yrow = yrow, .add = add };
	gemm_one(j->c->isa, &g, work);
}

/* Compiled once, for it is rare. */
static void cap(const KAttention *a, float *s, float *slope, int64_t n)
{
	for (int64_t e = 0; e < n; e++) {
		float t = fast_tanhf(a->scale * s[e] / a->softcap);
		s[e] = a->softcap * t;
		if (slope)
			slope[e] = 1 - t * t;
	}
}

/* Products of a query with keys key .. key + n - 1 become scores, -inf where it does not see them; the slope is that of the cap.
 * Scores are to be multiplied by what is returned. */
K_LOOP float scores(const Job *j, float *s, float *slope, int64_t b, int64_t h, int64_t i, int64_t key, int64_t n)
{
	const KAttention *a = j->a;
	int64_t from, to;
	reach(a, i, 1, &from, &to);
	int64_t lo = least(n, most(0, from - key)), hi = most(lo, least(n, to - key));
	int64_t at = b * a->m.batch + h * a->m.head + i * a->m.row + key * a->mcol;
	bool plain = a->mask == K_MASK_NONE && !(a->softcap > 0) && a->scale > 0;
	if (a->softcap > 0)
		cap(a, s + lo, slope ? slope + lo : NULL, hi - lo);
	else if (!plain)
		for (int64_t e = lo; e < hi; e++)
			s[e] *= a->scale;
	if (a->mask == K_MASK_ADD)
		for (int64_t e = lo; e < hi; e++)
			s[e] += ((const float *)j->mask)[at + e * a->mcol];
	else if (a->mask == K_MASK_BOOL)
		for (int64_t e = lo; e < hi; e++)
			s[e] = ((const uint8_t *)j->mask)[at + e * a->mcol] ? s[e] : -INFINITY;
	for (int64_t e = 0; e < lo; e++)
		s[e] = -INFINITY;
	for (int64_t e = hi; e < n; e++)
		s[e] = -INFINITY;
	return plain ? a->scale : 1;
}

/* One more block of scores for a query: they become exponentials, and what was summed before shrinks. */
K_LOOP void soften(float *s, int64_t n, float scale, float *top, float *sum, float *y, int64_t dv)
{
	float now = row_most(s, n) * scale;
	now = now > *top ? now : *top;
	if (now == -INFINITY) {
		memset(s, 0, (size_t)n * sizeof *s);
		return;
	}
	if (now > *top) {
		float f = fast_expf(*top - now);
		*sum *= f;
		K_VECTOR for (int64_t e = 0; e < dv; e++)
			y[e] *= f;
		*top = now;
	}
	K_VECTOR for (int64_t e = 0; e < n; e++)
		s[e] = fast_exp_belowf(fmaf(s[e], scale, -now));
	*sum += row_sum(s, NULL, n);
}

K_LOOP void forward_block(const Job *j, int64_t b, int64_t h, int64_t i, float *work)
{
	const KAttention *a = j->a;
	int64_t n = least(j->queries, a->sq - i), kv = h / (a->heads / a->kvheads), from, to;
	float *s = work + GEMM_WORK / 4, *y = s + QUERIES * KEYS, top[QUERIES], sum[QUERIES];
	const float *q = j->q + b * a->q.batch + h * a->q.head + i * a->q.row, *k = j->k + b * a->k.batch + kv * a->k.head, *v = j->v + b * a->v.batch + kv * a->v.head;
	memset(y, 0, (size_t)(n * a->dv) * sizeof *y);
	for (int64_t r = 0; r < n; r++)
		top[r] = -INFINITY, sum[r] = 0;
	reach(a, i, n, &from, &to);
	for (int64_t key = from; key < to; key += KEYS) {
		int64_t m = least(KEYS, to - key);
		product(j, work, s, m, q, a->q.row, 1, k + key * a->k.row, a->k.row, 1, n, m, a->d, false);
		for (int64_t r = 0; r < n; r++) {
			float scale = scores(j, s + r * m, NULL, b, h, i + r, key, m);
			soften(s + r * m, m, scale, &top[r], &sum[r], y + r * a->dv, a->dv);
		}
		product(j, work, y, a->dv, s, m, 1, v + key * a->v.row, 1, a->v.row, n, a->dv, m, true);
	}
	for (int64_t r = 0; r < n; r++) {
		float *to_y = j->y + b * a->y.batch + h * a->y.head + (i + r) * a->y.row, f = sum[r] > 0 ? 1 / sum[r] : 0;
		for (int64_t e = 0; e < a->dv; e++)
			to_y[e] = y[r * a->dv + e] * f;
		if (j->lse)
			j->lse[(b * a->heads + h) * a->sq + i + r] = sum[r] > 0 ? top[r] + logf(sum[r]) : INFINITY;
	}
}

static float *work_of(const Job *j, int thread)
{
	return (float *)(void *)(j->c->work + (size_t)thread * j->c->work_each);
}

K_LOOP void forward(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	for (int64_t t = lo; t < hi; t++) {
		int64_t head = t / j->blocks;
		forward_block(j, head / j->a->heads, head % j->a->heads, t % j->blocks * j->queries, work_of(j, thread));
	}
}
K_EACH_ISA(forward)

K_LOOP float dot(const float *x, const float *y, int64_t n)
{
	return row_sum(x, y, n);
}

/* Queries i .. of head h, and all keys that they see. */
K_LOOP void backward_block(const Job *j, int64_t b, int64_t h, int64_t i, float *work)
{
	const KAttention *a = j->a;
	int64_t n = least(j->queries, a->sq - i), kv = h / (a->heads / a->kvheads), from, to;
	float *p = work + GEMM_WORK / 4, *dp = p + QUERIES * KEYS, slope[KEYS], total[QUERIES];
	int64_t yi = b * a->y.batch + h * a->y.head + i * a->y.row, qi = b * a->q.batch + h * a->q.head + i * a->q.row;
	int64_t kb = b * a->k.batch + kv * a->k.head, vb = b * a->v.batch + kv * a->v.head;
	for (int64_t r = 0; r < n; r++) {
		total[r] = dot(j->dy + yi + r * a->y.row, j->ky + yi + r * a->y.row, a->dv);
		memset(j->dq + qi + r * a->q.row, 0, (size_t)a->d * sizeof *j->dq);
	}
	reach(a, i, n, &from, &to);
	for (int64_t key = from; key < to; key += KEYS) {
		int64_t m = least(KEYS, to - key), kj = kb + key * a->k.row, vj = vb + key * a->v.row;
		product(j, work, p, m, j->q + qi, a->q.row, 1, j->k + kj, a->k.row, 1, n, m, a->d, false);
		product(j, work, dp, m, j->dy + yi, a->y.row, 1, j->v + vj, a->v.row, 1, n, m, a->dv, false);
		for (int64_t r = 0; r < n; r++) {
			float *pr = p + r * m, *dr = dp + r * m, lse = j->klse[(b * a->heads + h) * a->sq + i + r], scale = a->scale, t = total[r];
			float each = scores(j, pr, slope, b, h, i + r, key, m);
			K_VECTOR for (int64_t e = 0; e < m; e++) {
				pr[e] = fast_exp_belowf(fmaf(pr[e], each, -lse));
				dr[e] = scale * pr[e] * (dr[e] - t);
			}
			if (a->softcap > 0)
				for (int64_t e = 0; e < m; e++)
					dr[e] = pr[e] > 0 ? dr[e] * slope[e] : 0;
		}
		product(j, work, j->dv + vj, a->v.row, p, 1, m, j->dy + yi, 1, a->y.row, m, a->dv, n, true);
		product(j, work, j->dq + qi, a->q.row, dp, m, 1, j->k + kj, 1, a->k.row, n, a->d, m, true);
		product(j, work, j->dk + kj, a->k.row, dp, 1, m, j->q + qi, 1, a->q.row, m, a->d, n, true);
	}
}

K_LOOP void backward(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	const KAttention *a = j->a;
	int64_t each = a->heads / a->kvheads;
	for (int64_t t = lo; t < hi; t++) {
		int64_t b = t / a->kvheads, kv = t % a->kvheads;
		for (int64_t r = 0; r < a->sk; r++) {
			memset(j->dk + b * a->k.batch + kv * a->k.head + r * a->k.row, 0, (size_t)a->d * sizeof *j->dk);
			memset(j->dv + b * a->v.batch + kv * a->v.head + r * a->v.row, 0, (size_t)a->dv * sizeof *j->dv);
		}
		for (int64_t h = kv * each; h < (kv + 1) * each; h++)
			for (int64_t i = 0; i < a->sq; i += j->queries)
				backward_block(j, b, h, i, work_of(j, thread));
	}
}
K_EACH_ISA(backward)

/* Blocks of queries are smaller where heads are very wide. */
static int cut(Ctx *c, Job *j)
{
	int64_t wide = most(1, most(j->a->d, j->a->dv));
	if (wide > ATTENTION_MOST)
		return rt_error(c, RT_PLAN, "a head of width %lld is wider than attention is made for", (long long)wide);
	j->queries = k_attention_queries(j->a->d, j->a->dv);
	j->blocks = (j->a->sq + j->queries - 1) / j->queries;
	return 0;
}

int k_attention_f32(Ctx *c, float *y, float *lse, const float *q, const float *k, const float *v, const void *mask, const KAttention *a)
{
	Job j = { .c = c, .a = a, .y = y, .lse = lse, .q = q, .k = k, .v = v, .mask = mask };
	int code = cut(c, &j);
	if (!code)
		rt_parallel(c, a->batch * a->heads * j.blocks, 1, K_PICK(c, forward), &j);
	return code;
}

int k_attention_grad_f32(Ctx *c, float *dq, float *dk, float *dv, const float *q, const float *k, const float *v, const void *mask, const float *y,
                         const float *lse, const float *dy, const KAttention *a)
{
	Job j = { .c = c, .a = a, .dq = dq, .dk = dk, .dv = dv, .q = q, .k = k, .v = v, .mask = mask, .ky = y, .klse = lse, .dy = dy };
	int code = cut(c, &j);
	if (!code)
		rt_parallel(c, a->batch * a->kvheads, 1, K_PICK(c, backward), &j);
	return code;
}

/* ---- rotary ---- */

typedef struct Turns { float *y; const float *x, *cosine, *sine; const int64_t *place; const KRotary *r; } Turns;

K_LOOP void turns(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Turns *t = arg;
	const KRotary *r = t->r;
	int64_t half = r->rot / 2;
	(void)thread;
	for (int64_t k = lo; k < hi; k++) {
		int64_t s = k % r->seq, h = k / r->seq % r->heads, b = k / r->seq / r->heads, at = b * r->x.batch + h * r->x.head + s * r->x.row;
		int64_t angle = (t->place ? t->place[b * r->seq + s] : b * r->seq + s) * half;
		const float *x = t->x + at, *co = t->cosine + angle, *si = t->sine + angle;
		float *y = t->y + at;
		if (r->interleaved)
			for (int64_t e = 0; e < half; e++) {
				float u = x[2 * e], w = x[2 * e + 1];
				y[2 * e] = co[e] * u - si[e] * w;
				y[2 * e + 1] = si[e] * u + co[e] * w;
			}
		else
			K_VECTOR for (int64_t e = 0; e < half; e++) {
				float u = x[e], w = x[e + half];
				y[e] = co[e] * u - si[e] * w;
				y[e + half] = si[e] * u + co[e] * w;
			}
		for (int64_t e = 2 * half; e < r->width; e++)
			y[e] = x[e];
	}
}
K_EACH_ISA(turns)

int k_rotary_f32(Ctx *c, float *y, const float *x, const float *cosine, const float *sine, const int64_t *place, const KRotary *r)
{
	for (int64_t i = 0; place && i < r->batch * r->seq; i++)
		if (place[i] < 0 || place[i] >= r->places)
			return rt_error(c, RT_DATA, "position %lld is outside of the %lld that the cache holds", (long long)place[i], (long long)r->places);
	Turns t = { y, x, cosine, sine, place, r };
	rt_parallel(c, r->batch * r->heads * r->seq, 1 + 4096 / (r->width + 1), K_PICK(c, turns), &t);
	return 0;
}
