/* Attention and rotary embedding: causal, sliding, masked and capped; heads shared by several queries; both layouts. */
#include "fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define k_attention_f32 k_plain_attention_f32
#define k_attention_grad_f32 k_plain_attention_grad_f32
#define k_rotary_f32 k_plain_rotary_f32
#include "../../../kernels/cpu/attention.c"
#undef k_attention_f32
#undef k_attention_grad_f32
#undef k_rotary_f32

/* y holds y and lse, or dq, dk and dv. */
typedef struct Case {
	KAttention a;
	const float *q, *k, *v, *y, *lse, *dy;
	const void *mask;
	int64_t nq, nk, nv, ny;
	bool grad;
} Case;

static void run(Ctx *c, float *y, void *arg)
{
	Case *s = arg;
	if (s->grad)
		k_attention_grad_f32(c, y, y + s->nq, y + s->nq + s->nk, s->q, s->k, s->v, s->mask, s->y, s->lse, s->dy,
			&s->a);
	else
		k_attention_f32(c, y, y + s->ny, s->q, s->k, s->v, s->mask, &s->a);
}

/* [batch, heads, seq, width] or [batch, seq, heads, width] */
static KHeads heads_of(bool inside, int64_t heads, int64_t seq, int64_t width)
{
	if (inside)
		return (KHeads){ heads * seq * width, width, heads * width };
	return (KHeads){ heads * seq * width, seq * width, width };
}

int test_attention(void)
{
	/* batch, heads, kvheads, sq, sk, d, dv, left, right (-1: all), mask, softcap, layout */
	static const int64_t cases[][12] = {
		{ 2, 3, 3, 5, 5, 8, 8, -1, -1, 0, 0, 0 }, { 1, 2, 2, 64, 64, 64, 64, -1, 0, 0, 0, 1 },
		{ 1, 4, 2, 130, 130, 16, 16, -1, 0, 0, 0, 1 },
		{ 2, 2, 1, 33, 300, 20, 12, -1, -1, 1, 0, 0 }, { 1, 2, 2, 200, 200, 8, 8, 40, 3, 0, 0, 0 },
		{ 1, 1, 1, 70, 150, 5, 7, -1, -1, 2, 0, 0 }, { 1, 2, 2, 40, 40, 32, 32, -1, 0, 1, 2, 1 },
		{ 1, 1, 1, 300, 20, 4, 4, 5, 0, 0, 0, 0 }, { 1, 4, 2, 400, 400, 40, 24, -1, 0, 0, 0, 1 },
		{ 1, 2, 1, 205, 430, 16, 33, 150, 190, 2, 0, 1 }, { 1, 1, 1, 50, 70, 700, 800, -1, 0, 0, 0, 0 },
		/* queries from 63 on of 130, from 60 on of 200 */
		{ 1, 4, 2, 67, 130, 16, 16, -1, 63, 0, 0, 1 }, { 1, 2, 2, 50, 200, 8, 8, 40 - 60, 3 + 60, 0, 0, 0 } };
	int bad = 0;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const int64_t *d = cases[i], all = d[3] + d[4];
		Case s = { .a = { .batch = d[0], .heads = d[1], .kvheads = d[2], .sq = d[3], .sk = d[4], .d = d[5],
			.dv = d[6], .left = d[7] == -1 ? all : d[7], .right = d[8] == -1 ? all : d[8],
			.scale = 0.3f, .softcap = (float)d[10], .mask = (KMask)d[9], .mcol = 1 } };
		KAttention *a = &s.a;
		a->q = heads_of(d[11], a->heads, a->sq, a->d), a->k = heads_of(d[11], a->kvheads, a->sk, a->d);
		a->v = heads_of(d[11], a->kvheads, a->sk, a->dv), a->y = heads_of(d[11], a->heads, a->sq, a->dv);
		a->m = (KHeads){ 0, a->sq * a->sk, a->sk };
		s.nq = a->batch * a->heads * a->sq * a->d, s.nk = a->batch * a->kvheads * a->sk * a->d;
		s.nv = a->batch * a->kvheads * a->sk * a->dv, s.ny = a->batch * a->heads * a->sq * a->dv;
		int64_t nl = a->batch * a->heads * a->sq, nm = a->heads * a->sq * a->sk;
		float *q = numbers(s.nq, 1), *k = numbers(s.nk, 2), *v = numbers(s.nv, 3), *dy = numbers(s.ny, 4),
			*mask = numbers(nm, 5);
		uint8_t *allow = malloc((size_t)nm);
		float *want = calloc((size_t)(s.ny + nl), sizeof *want);
		float *grads = calloc((size_t)(s.nq + s.nk + s.nv), sizeof *grads);
		if (!allow || !want || !grads)
			exit(1);
		for (int64_t e = 0; e < nm; e++) {
			allow[e] = e * 7 % 5 != 0 && e / a->sk % 11 != 3;       /* some rows see nothing */
			mask[e] = e % 13 == 0 ? -INFINITY : mask[e];
		}
		s.q = q, s.k = k, s.v = v, s.dy = dy, s.mask = a->mask == K_MASK_BOOL ? (const void *)allow : mask;
		k_plain_attention_f32(NULL, want, want + s.ny, q, k, v, s.mask, a);
		char what[64];
		snprintf(what, sizeof what, "attention %zu", i);
		bad += compare(what, run, &s, want, s.ny + nl, 1e-5, 1, NULL);
		s.grad = true, s.y = want, s.lse = want + s.ny;
		k_plain_attention_grad_f32(NULL, grads, grads + s.nq, grads + s.nq + s.nk, q, k, v, s.mask, want, s.lse,
			dy, a);
		snprintf(what, sizeof what, "attention %zu, gradient", i);
		bad += compare(what, run, &s, grads, s.nq + s.nk + s.nv, 1e-5, 2, NULL);
		free(q), free(k), free(v), free(dy), free(mask), free(allow), free(want), free(grads);
	}
	return group("attention", bad);
}

typedef struct Turn { KRotary r; const float *x, *co, *si; const int64_t *place; } Turn;

static void run_turn(Ctx *c, float *y, void *arg)
{
	Turn *t = arg;
	k_rotary_f32(c, y, t->x, t->co, t->si, t->place, &t->r);
}

int test_rotary(void)
{
	int bad = 0;
	float *x = numbers(20000, 1), *co = numbers(9000, 2), *si = numbers(9000, 3),
		*want = calloc(20000, sizeof *want);
	int64_t place[64];
	if (!want)
		exit(1);
	for (int i = 0; i < 64; i++)
		place[i] = i * 5 % 32;
	for (int kind = 0; kind < 4; kind++) {
		KRotary r = { .batch = 2, .heads = 3, .seq = 32, .width = 20, .rot = kind == 3 ? 12 : 20,
			.positions = 32, .x = heads_of(kind == 1, 3, 32, 20), .interleaved = kind == 2 };
		Turn t = { .r = r, .x = x, .co = co, .si = si, .place = kind % 2 ? place : NULL };
		int64_t n = 2 * 3 * 32 * 20;
		k_plain_rotary_f32(NULL, want, x, co, si, t.place, &t.r);
		bad += compare("rotary", run_turn, &t, want, n, 1e-6, 1, NULL);
	}
	free(x), free(co), free(si), free(want);
	return group("rotary", bad);
}
