/* Norms, losses, and the gradients of both and of softmax. */
#include "fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define k_layernorm_f32 k_plain_layernorm_f32
#define k_layernorm_grad_f32 k_plain_layernorm_grad_f32
#define k_layernorm_grad_w_f32 k_plain_layernorm_grad_w_f32
#define k_groupnorm_f32 k_plain_groupnorm_f32
#define k_groupnorm_grad_f32 k_plain_groupnorm_grad_f32
#define k_groupnorm_grad_w_f32 k_plain_groupnorm_grad_w_f32
#define k_batchnorm_f32 k_plain_batchnorm_f32
#define k_batchnorm_grad_f32 k_plain_batchnorm_grad_f32
#define k_batchnorm_grad_w_f32 k_plain_batchnorm_grad_w_f32
#define k_xent_f32 k_plain_xent_f32
#define k_xent_grad_f32 k_plain_xent_grad_f32
#define k_xent_both_f32 k_plain_xent_both_f32
#define k_nll_f32 k_plain_nll_f32
#define k_xent_grad_shard_f32 k_plain_xent_grad_shard_f32
#define k_nll_shard_f32 k_plain_nll_shard_f32
#define k_sum_exp_f32 k_plain_sum_exp_f32
#define k_ahead_f32 k_plain_ahead_f32
#define k_softmax_f32 k_plain_softmax_f32
#define k_logsoftmax_f32 k_plain_logsoftmax_f32
#define k_softmax_grad_f32 k_plain_softmax_grad_f32
#define k_logsoftmax_grad_f32 k_plain_logsoftmax_grad_f32
#include "../../../kernels/cpu/norm.c"
#include "../../../kernels/cpu/loss.c"
#define scan plain_scan
#include "../../../kernels/cpu/softmax.c"
#undef k_layernorm_f32
#undef k_layernorm_grad_f32
#undef k_layernorm_grad_w_f32
#undef k_groupnorm_f32
#undef k_groupnorm_grad_f32
#undef k_groupnorm_grad_w_f32
#undef k_batchnorm_f32
#undef k_batchnorm_grad_f32
#undef k_batchnorm_grad_w_f32
#undef k_xent_f32
#undef k_xent_grad_f32
#undef k_xent_both_f32
#undef k_nll_f32
#undef k_xent_grad_shard_f32
#undef k_nll_shard_f32
#undef k_sum_exp_f32
#undef k_ahead_f32
#undef k_softmax_f32
#undef k_logsoftmax_f32
#undef k_softmax_grad_f32
#undef k_logsoftmax_grad_f32

/* y holds one result after the other. */
typedef struct Case {
	const float *x, *dy, *scale, *b, *mean, *inv, *lse, *weight;
	const int64_t *label;
	int64_t d[4], n;                /* sizes; numbers in x */
	int kind, variant;
} Case;

#define NORMS(name, pre) \
	static void name(Ctx *c, float *y, const Case *s) \
	{ \
		const int64_t *d = s->d; \
		float *more = y + s->n, *db = s->variant ? NULL : more + d[1] * d[2]; \
		switch (s->kind) { \
		case 0: pre##layernorm_f32(c, y, s->variant ? NULL : more, more + d[0], s->x, s->scale, \
			s->variant ? NULL : s->b, d[0], d[1], !s->variant, 1e-5f); break; \
		case 1: pre##layernorm_grad_f32(c, y, s->dy, s->x, s->scale, s->variant ? NULL : s->mean, s->inv, \
			d[0], d[1]); break; \
		case 2: pre##layernorm_grad_w_f32(c, y, s->variant ? NULL : y + d[1], s->dy, s->x, \
			s->variant ? NULL : s->mean, s->inv, d[0], d[1]); break; \
		case 3: pre##groupnorm_f32(c, y, more, more + d[0] * d[1], s->x, s->scale, s->b, d[0], d[1], d[2], \
			d[3], 1e-5f); break; \
		case 4: pre##groupnorm_grad_f32(c, y, s->dy, s->x, s->scale, s->mean, s->inv, d[0], d[1], d[2], d[3]); \
			break; \
		case 5: pre##groupnorm_grad_w_f32(c, more, db, s->dy, s->x, s->mean, s->inv, d[0], d[1], d[2], d[3]); \
			break; \
		case 6: pre##batchnorm_f32(c, y, more, more + d[1], more + 2 * d[1], more + 3 * d[1], s->x, s->scale, \
			s->b, s->mean, s->inv, d[0], d[1], d[3], 1e-5f, 0.9f); break; \
		case 7: pre##batchnorm_grad_f32(c, y, s->dy, s->x, s->scale, s->mean, s->inv, d[0], d[1], d[3]); \
			break; \
		case 8: pre##batchnorm_grad_w_f32(c, more, more + d[1], s->dy, s->x, s->mean, s->inv, d[0], d[1], \
			d[3]); break; \
		} \
	}
NORMS(norm, k_)
NORMS(plain_norm, k_plain_)

static void run_norm(Ctx *c, float *y, void *arg)
{
	const Case *s = arg;
	memset(y, 0, (size_t)(s->n + 16384) * sizeof *y);
	norm(c, y, s);
}

int test_norms(void)
{
	/* rows, n; or batch, groups or channels, channels of a group, inner */
	static const int64_t sizes[][4] = { { 7, 768, 1, 1 }, { 300, 10, 1, 1 }, { 1, 5, 3, 77 }, { 4, 6, 1, 49 },
		{ 3, 2, 5, 1 }, { 2, 33, 1, 200 }, { 600, 3, 1, 1 } };
	int bad = 0;
	float *x = numbers(70000, 21), *dy = numbers(70000, 22), *scale = numbers(1000, 23), *b = numbers(1000, 24),
		*mean = numbers(8000, 25), *inv = numbers(8000, 26);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int kind = 0; kind < 9; kind++)
			for (int variant = 0; variant < 2; variant++) {
				Case s = { .x = x, .dy = dy, .scale = scale, .b = b, .mean = mean, .inv = inv,
					.kind = kind, .variant = variant };
				memcpy(s.d, sizes[i], sizeof s.d);
				s.n = kind < 3 ? s.d[0] * s.d[1] : kind < 6 ? s.d[0] * s.d[1] * s.d[2] * s.d[3]
					: s.d[0] * s.d[1] * s.d[3];
				float *want = calloc((size_t)s.n + 16384, sizeof *want);
				if (!want)
					exit(1);
				plain_norm(NULL, want, &s);
				char what[80];
				snprintf(what, sizeof what, "norm %zu kind %d variant %d", i, kind, variant);
				bad += compare(what, run_norm, &s, want, s.n + 16384, 4e-6,
					kind % 3 == 2 ? sqrt((double)(s.d[0] * s.d[3])) * 4 : 8, NULL);
				free(want);
			}
	free(x), free(dy), free(scale), free(b), free(mean), free(inv);
	return group("norms", bad);
}

#define LOSSES(name, pre) \
	static void name(Ctx *c, float *y, const Case *s) \
	{ \
		const int64_t *d = s->d, rows = d[0] * d[2]; \
		const float *w = s->variant & 1 ? s->weight : NULL; \
		KLoss how = (KLoss)(s->variant / 2 % 3); \
		switch (s->kind) { \
		case 0: pre##xent_f32(c, y, y + rows, y + rows + s->n, s->x, s->label, w, d[0], d[1], d[2], 2, how); \
			break; \
		case 1: pre##xent_grad_f32(c, y, s->x, s->label, w, s->lse, s->dy, d[0], d[1], d[2], 2, how); break; \
		case 2: pre##nll_f32(c, y, s->x, s->label, w, d[0], d[1], d[2], 2, how); break; \
		case 3: pre##softmax_grad_f32(c, y, s->dy, s->x, d[0], d[1], d[2]); break; \
		case 4: pre##logsoftmax_grad_f32(c, y, s->dy, s->x, d[0], d[1], d[2]); break; \
		case 5: pre##xent_both_f32(c, y, y + rows, y + 2 * rows, s->x, s->label, w, s->dy, d[0], d[1], d[2], \
			2, how); break; \
		case 6: /* in place */ \
			memcpy(y + 2 * rows, s->x, (size_t)s->n * sizeof *y); \
			pre##xent_both_f32(c, y, y + rows, y + 2 * rows, y + 2 * rows, s->label, w, s->dy, d[0], d[1], \
				d[2], 2, how); \
			break; \
		/* of some of the classes */ \
		case 7: pre##xent_grad_shard_f32(c, y, s->x, s->label, w, s->lse, s->dy, d[0], d[1], d[2], 2, how, 1, \
			d[1] + 5); break; \
		case 8: pre##nll_shard_f32(c, y, s->x, s->label, w, d[0], d[1], d[2], 2, how, 1, d[1] + 5); break; \
		case 9: pre##sum_exp_f32(c, y, s->x, s->lse, d[0], d[1], d[2]); break; \
		case 10: pre##ahead_f32(c, y, s->x, s->x, s->label, d[0], d[1], d[2], 0); break; \
			/* the first rows have scores that are equal */ \
		case 11: pre##ahead_f32(c, y, s->x, s->lse, s->label, d[0], d[1], d[2], 2); break; \
		} \
	}
LOSSES(loss, k_)
LOSSES(plain_loss, k_plain_)

static void run_loss(Ctx *c, float *y, void *arg)
{
	const Case *s = arg;
	memset(y, 0, (size_t)(s->n + 2 * s->d[0] * s->d[2]) * sizeof *y);
	loss(c, y, s);
}

/* Sure predictions, held against double: the score of the label stands far above the others, and what is lost, the
 * logarithm of a number near 1, is as exact as the sum of exponentials, which is a float near 1 (PyTorch's is off
 * by 2.5e-7 of 10 classes and 5e-6 of 5000), and not only as the scores are, whose last bit is 4e-6. */
enum { SURE = 4 };
#define SURES(name, pre) \
	static void name(Ctx *c, float *y, const Case *s) \
	{ \
		const int64_t *d = s->d, rows = d[0] * d[2]; \
		switch (s->kind) { \
		case 0: pre##xent_f32(c, y, y + rows, y + rows + s->n, s->x, s->label, NULL, d[0], d[1], d[2], -1, \
			K_LOSS_NONE); break; \
		case 1: pre##xent_both_f32(c, y, y + rows, y + 2 * rows, s->x, s->label, NULL, s->dy, d[0], d[1], \
			d[2], -1, K_LOSS_NONE); break; \
		case 2: pre##xent_grad_f32(c, y, s->x, s->label, NULL, s->lse, s->dy, d[0], d[1], d[2], -1, \
			K_LOSS_NONE); break; \
		case 3: pre##logsoftmax_f32(c, y, s->x, d[0], d[1], d[2]); break; \
		} \
	}
SURES(sure, k_)
SURES(plain_sure, k_plain_)

/* What is held against double of what was made: losses, logarithms at labels, gradients at labels; and the rest as it
 * is. */
static double sure_error(const Case *s, const float *y, int64_t row)
{
	int64_t rows = s->d[0] * s->d[2], at = row / s->d[2] * s->d[1] * s->d[2] + row % s->d[2],
		k = at + s->label[row] * s->d[2];
	double sum = 0, e = 0;
	for (int64_t j = 0; j < s->d[1]; j++)
		sum += j == s->label[row] ? 0 : exp((double)s->x[at + j * s->d[2]] - (double)s->x[k]);
	double lost = log1p(sum), slope = -sum / (1 + sum);
	if (s->kind < 2)
		e = fabs((double)y[row] - lost);
	if (s->kind == 0)
		e = fmax(e, fabs((double)y[rows + k] + lost));
	if (s->kind == 1 || s->kind == 2)
		e = fmax(e, fabs((double)y[(s->kind == 1 ? 2 * rows : 0) + k] - slope));
	if (s->kind == 3)
		e = fabs((double)y[k] + lost);
	return e / (2.5e-7 * (1 + (double)s->d[1] / 500) + 4e-7 * lost);
}

static double worst;

static void hold(const Case *s, const float *y)
{
	for (int64_t r = 0; r < s->d[0] * s->d[2]; r++)
		worst = fmax(worst, sure_error(s, y, r));
}

static void run_sure(Ctx *c, float *y, void *arg)
{
	sure(c, y, arg);
	hold(arg, y);
}

static int test_sure(void)
{
	static const int64_t sizes[][3] = { { 32, 10, 1 }, { 3, 5000, 1 }, { 20, 5, 7 } };
	int bad = 0;
	float *x = numbers(60000, 35), *one = calloc(2000, sizeof *one), *lse = calloc(2000, sizeof *lse),
		*y = calloc(70000, sizeof *y);
	int64_t label[2000];
	if (!one || !lse || !y)
		exit(1);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int kind = 0; kind < SURE; kind++) {
			Case s = { .x = x, .dy = one, .lse = lse, .label = label, .kind = kind,
				.d = { sizes[i][0], sizes[i][1], sizes[i][2] } };
			int64_t rows = s.d[0] * s.d[2];
			s.n = rows * s.d[1];
			for (int64_t r = 0; r < rows; r++) {
				int64_t at = r / s.d[2] * s.d[1] * s.d[2] + r % s.d[2];
				label[r] = r * 31 % s.d[1];
				one[r] = 1;
				/* around 30, that of the label around 50 */
				for (int64_t j = 0; j < s.d[1]; j++) {
					float *score = &x[at + j * s.d[2]];
					float more = j == label[r] ? 12 + (float)(r % 5) : 0;
					*score = fmodf(*score, 2) + 32 + more;
				}
				double rest = 0, own = (double)x[at + label[r] * s.d[2]];
				for (int64_t j = 0; j < s.d[1]; j++)
					rest += j == label[r] ? 0 : exp((double)x[at + j * s.d[2]] - own);
				lse[r] = (float)(own + log1p(rest));
			}
			worst = 0;
			plain_sure(NULL, y, &s);
			hold(&s, y);
			char what[80];
			snprintf(what, sizeof what, "sure %zu kind %d", i, kind);
			bad += compare(what, run_sure, &s, y, kind < 2 ? s.n + 2 * rows : s.n, 4e-6, 8, NULL);
			if (!(worst < 1) && ++bad)
				printf("    %s: an error of %g times what a float near 1 allows\n", what, worst);
		}
	free(x), free(one), free(lse), free(y);
	return bad;
}

int test_losses(void)
{
	static const int64_t sizes[][3] = { { 32, 10, 1 }, { 3, 5000, 1 }, { 100, 3, 7 }, { 1, 40, 64 },
		{ 65, 33, 1 } };
	int bad = 0;
	float *x = numbers(60000, 31), *dy = numbers(60000, 32), *weight = numbers(6000, 33), *lse = numbers(2000, 34);
	float *sums = calloc(2000, sizeof *sums), *each = calloc(2000, sizeof *each);
	int64_t *label = malloc(2000 * sizeof *label);
	if (!label || !sums || !each)
		exit(1);
	for (int64_t i = 0; i < 6000; i++)
		weight[i] = weight[i] * 0.5f + 1;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int kind = 0; kind < 12; kind++)
			for (int variant = 0; variant < (kind == 3 || kind == 4 || kind >= 9 ? 1 : 6); variant++) {
				Case s = { .x = x, .dy = dy, .weight = weight, .lse = lse, .label = label, .kind = kind,
					.variant = variant };
				memcpy(s.d, sizes[i], sizeof sizes[i]);
				s.n = s.d[0] * s.d[1] * s.d[2];
				for (int64_t k = 0; k < 2000; k++)
					label[k] = k * 31 % s.d[1];
				if (kind == 1) {        /* the gradient of all classes asks for what it says it is */
					k_plain_xent_f32(NULL, each, NULL, sums, x, label, NULL, s.d[0], s.d[1], s.d[2],
						-1, K_LOSS_NONE);
					s.lse = sums;
				}
				int64_t all = s.n + 2 * s.d[0] * s.d[2];
				float *want = calloc((size_t)all, sizeof *want);
				if (!want)
					exit(1);
				plain_loss(NULL, want, &s);
				char what[80];
				snprintf(what, sizeof what, "loss %zu kind %d variant %d", i, kind, variant);
				bad += compare(what, run_loss, &s, want, all, 4e-6,
					(double)(s.d[0] * s.d[2]) / 4 + 4 * sqrt((double)s.d[1]) +
					(kind == 9 ? (double)s.d[1] : 0), NULL);
				free(want);
			}
	/* A label that is no class is refused. */
	label[1] = 99;
	static const RtProgram program = { .nrank = 1 };
	Ctx c = { .program = &program, .nrank = 1 };
	float y[64];
	bad += k_xent_f32(&c, y, NULL, NULL, x, label, NULL, 3, 10, 1, -1, K_LOSS_SUM) != RT_DATA;
	bad += k_xent_grad_f32(&c, y, x, label, NULL, lse, dy, 3, 10, 1, -1, K_LOSS_SUM) != RT_DATA;
	bad += k_xent_both_f32(&c, y, y, y, x, label, NULL, dy, 3, 10, 1, -1, K_LOSS_SUM) != RT_DATA;
	bad += k_xent_grad_shard_f32(&c, y, x, label, NULL, lse, dy, 3, 10, 1, -1, K_LOSS_SUM, 5, 99) != RT_DATA;
	bad += k_nll_shard_f32(&c, y, x, label, NULL, 3, 10, 1, -1, K_LOSS_SUM, 5, 99) != RT_DATA;
	free(x), free(dy), free(weight), free(lse), free(label), free(sums), free(each);
	bad += test_sure();
	return group("losses", bad);
}
