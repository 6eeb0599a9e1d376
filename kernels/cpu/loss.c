/* Losses over classes.  A label that is no class ends the job: it would read what is not there. */
#include "kernels.h"

#include <math.h>

static float logsum(const float *x, int64_t n, int64_t inner)
{
	float top = -INFINITY, s = 0;
	for (int64_t j = 0; j < n; j++)
		top = fmaxf(top, x[j * inner]);
	for (int64_t j = 0; j < n; j++)
		s += expf(x[j * inner] - top);
	return top + logf(s);
}

static int bad_label(Ctx *c, int64_t row, int64_t label, int64_t n)
{
	return rt_error(c, RT_DATA, "row %lld has label %lld, but there are %lld classes", (long long)row, (long long)label, (long long)n);
}

int k_xent_f32(Ctx *c, float *y, float *logp, const float *x, const int64_t *label, int64_t outer, int64_t n, int64_t inner,
               int64_t ignore, KLoss kind)
{
	float sum = 0;
	int64_t used = 0;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t at = o * n * inner + i, row = o * inner + i;
			float shift = logsum(x + at, n, inner), v = 0;
			if (logp)
				for (int64_t j = 0; j < n; j++)
					logp[at + j * inner] = x[at + j * inner] - shift;
			if (label[row] != ignore) {
				if (label[row] < 0 || label[row] >= n)
					return bad_label(c, row, label[row], n);
				v = shift - x[at + label[row] * inner];
				used++;
			}
			if (kind == K_LOSS_NONE)
				y[row] = v;
			sum += v;
		}
	if (kind != K_LOSS_NONE)
		*y = kind == K_LOSS_MEAN ? sum / (float)used : sum;
	return 0;
}

int k_nll_f32(Ctx *c, float *y, const float *x, const int64_t *label, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	float sum = 0;
	int64_t used = 0;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < inner; i++) {
			int64_t row = o * inner + i;
			float v = 0;
			if (label[row] != ignore) {
				if (label[row] < 0 || label[row] >= n)
					return bad_label(c, row, label[row], n);
				v = -x[(o * n + label[row]) * inner + i];
				used++;
			}
			if (kind == K_LOSS_NONE)
				y[row] = v;
			sum += v;
		}
	if (kind != K_LOSS_NONE)
		*y = kind == K_LOSS_MEAN ? sum / (float)used : sum;
	return 0;
}
