/* Convolutions: steps, spacings, paddings of one side, groups, one channel per group, planes smaller than a panel. */
#include "fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define k_conv_f32 k_plain_conv_f32
#define k_conv_grad_x_f32 k_plain_conv_grad_x_f32
#define k_conv_grad_w_f32 k_plain_conv_grad_w_f32
#include "../../../kernels/cpu/conv.c"
#undef k_conv_f32
#undef k_conv_grad_x_f32
#undef k_conv_grad_w_f32

typedef struct Case { const float *x, *w, *g, *b; int64_t batch, groups, cin, cout; KWindow v; int way; } Case;

static void run(Ctx *c, float *y, void *arg)
{
	Case *s = arg;
	if (s->way == 0)
		k_conv_f32(c, y, s->x, s->w, s->b, s->batch, s->groups, s->cin, s->cout, s->v);
	else if (s->way == 1)
		k_conv_grad_x_f32(c, y, s->g, s->w, s->batch, s->groups, s->cin, s->cout, s->v);
	else
		k_conv_grad_w_f32(c, y, s->x, s->g, s->batch, s->groups, s->cin, s->cout, s->v);
}

/* All of it, then a part: fewer channels of the result, and of x and y one image.  What has other bits is no number. */
enum { KEPT = 9 };

static float *room(int64_t n)
{
	float *p = calloc((size_t)n, sizeof *p);
	if (!p)
		exit(1);
	return p;
}

static void run_part(Ctx *c, float *y, void *arg)
{
	Case s = *(Case *)arg;
	int64_t nin = s.v.in[0] * s.v.in[1], nout = s.v.out[0] * s.v.out[1], nk = s.v.k[0] * s.v.k[1],
		n = KEPT * (s.way == 0 ? nout : s.way == 1 ? nin : s.cin * nk);
	int64_t at = s.way == 0 ? s.cout * nout : s.way == 1 ? s.cin * nin : 0;
	float *part = room(n), *w = room(s.cout * KEPT * nk), *g = room(s.batch * KEPT * nout);
	run(c, y, arg);
	for (int64_t o = 0; o < s.cout; o++)
		memcpy(w + o * KEPT * nk, s.w + o * s.cin * nk, KEPT * (size_t)nk * sizeof *w);
	for (int64_t b = 0; b < s.batch; b++)
		memcpy(g + b * KEPT * nout, s.g + b * s.cout * nout, KEPT * (size_t)nout * sizeof *g);
	if (s.way == 0)
		k_conv_f32(c, part, s.x + s.cin * nin, s.w, s.b, 1, 1, s.cin, KEPT, s.v);
	else if (s.way == 1)
		k_conv_grad_x_f32(c, part, s.g + s.cout * nout, w, 1, 1, KEPT, s.cout, s.v);
	else
		k_conv_grad_w_f32(c, part, s.x, g, s.batch, 1, s.cin, KEPT, s.v);
	if (memcmp(part, y + at, (size_t)n * sizeof *part))
		y[0] = NAN;
	free(part), free(w), free(g);
}

int test_convolutions(void)
{
	/* batch, groups, cin, cout; window, step, spacing, padding before and after, each for both axes; size of the
	 * planes */
	static const int64_t cases[][16] = {
		{ 2, 1, 3, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 9, 21 },
		{ 3, 1, 8, 20, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 7, 7 },
		{ 2, 1, 4, 17, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 14, 15 },
		{ 1, 1, 3, 7, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3, 40, 38 },
		{ 2, 2, 4, 6, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 11, 13 },
		{ 2, 6, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 10, 33 },
		{ 2, 5, 1, 2, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 12, 12 },
		{ 1, 1, 2, 3, 1, 5, 1, 3, 1, 1, 0, 2, 0, 1, 1, 50 },
		{ 1, 1, 5, 4, 2, 2, 3, 3, 1, 1, 0, 0, 0, 0, 10, 10 },
		{ 2, 1, 6, 4, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 9, 9 },
		{ 1, 1, 2, 3, 3, 3, 2, 3, 3, 2, 0, 1, 4, 0, 13, 17 },
		{ 1, 1, 9, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 36, 36 },
		{ 3, 1, 9, 50, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 7, 7 },
		{ 2, 2, 12, 8, 3, 3, 1, 1, 1, 1, 0, 2, 2, 0, 9, 23 },
		{ 2, 1, 70, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 13, 60 },
		{ 1, 1, 8, 90, 3, 3, 1, 1, 1, 1, 2, 0, 2, 0, 31, 40 },
		{ 1, 1, 300, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 5, 4 },
		{ 3, 1, 20, 15, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 15, 22 },
		{ 3, 1, 14, 40, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 7, 6 },
		{ 2, 1, 1, 4, 5, 5, 1, 1, 1, 1, 0, 0, 0, 0, 28, 28 } };
	int bad = 0, parts = 0;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int way = 0; way < 3; way++) {
			const int64_t *d = cases[i];
			Case s = { .batch = d[0], .groups = d[1], .cin = d[2], .cout = d[3], .way = way };
			for (int a = 0; a < 2; a++) {
				s.v.k[a] = d[4 + a];
				s.v.stride[a] = d[6 + a];
				s.v.dil[a] = d[8 + a];
				s.v.lo[a] = d[10 + a];
				s.v.in[a] = d[14 + a];
				int64_t span = (s.v.k[a] - 1) * s.v.dil[a] + 1;
				s.v.out[a] = (s.v.in[a] + d[10 + a] + d[12 + a] - span) / s.v.stride[a] + 1;
			}
			int64_t nx = s.batch * s.groups * s.cin * s.v.in[0] * s.v.in[1],
				ny = s.batch * s.groups * s.cout * s.v.out[0] * s.v.out[1];
			int64_t nw = s.groups * s.cout * s.cin * s.v.k[0] * s.v.k[1],
				n = way == 0 ? ny : way == 1 ? nx : nw;
			float *x = numbers(nx, 1), *w = numbers(nw, 2), *g = numbers(ny, 3),
				*b = numbers(s.groups * s.cout, 4), *want = calloc((size_t)n, sizeof *want);
			if (!want)
				exit(1);
			s.x = x, s.w = w, s.g = g, s.b = i % 2 ? b : NULL;
			if (way == 0)
				k_plain_conv_f32(NULL, want, x, w, s.b, s.batch, s.groups, s.cin, s.cout, s.v);
			else if (way == 1)
				k_plain_conv_grad_x_f32(NULL, want, g, w, s.batch, s.groups, s.cin, s.cout, s.v);
			else
				k_plain_conv_grad_w_f32(NULL, want, x, g, s.batch, s.groups, s.cin, s.cout, s.v);
			double terms = way == 2 ? (double)(s.batch * s.v.out[0] * s.v.out[1])
				: (double)(s.v.k[0] * s.v.k[1] * (way ? s.cout : s.cin));
			char what[64];
			snprintf(what, sizeof what, "convolution %zu, %s", i,
				way == 0 ? "forward" : way == 1 ? "gradient of x" : "gradient of w");
			bad += compare(what, run, &s, want, n, 2e-6, 4 * sqrt(terms), NULL);
			if (s.groups == 1 && s.batch > 1 && s.cin >= KEPT && s.cout >= KEPT)
				parts += compare("a part has other bits than the whole", run_part, &s, want, n, 2e-6,
					4 * sqrt(terms), NULL);
			free(x), free(w), free(g), free(b), free(want);
		}
	return group("convolutions", bad) + group("parts-of-a-convolution-have-its-bits", parts);
}
