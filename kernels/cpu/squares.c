/* Sums of squares: each part of a term is added up in double and rounded once. */
#include "kernels.h"
#include "tree.h"

static float term(const float *x, int64_t n, int64_t parts)
{
	float room[64], y = 0;
	for (int64_t k = 0; k < parts; k++) {
		double sum = 0;
		for (int64_t i = n / parts * k; i < n / parts * (k + 1); i++)
			sum += (double)x[i] * (double)x[i];
		float *to = tree_place(&y, room, 1, k, parts);
		*to = (float)sum;
		tree_join(to, room, 1, k);
	}
	return y;
}

int k_sum_squares_f32(Ctx *c, const KSums *s)
{
	int64_t t = 0;
	(void)c;
	for (int64_t i = 0; i < s->count; i++)
		for (int64_t k = 0; k < s->terms[i]; k++, t++) {
			float v = s->n[t] == K_PLAIN ? *s->x[t] : term(s->x[t], s->n[t], s->parts ? s->parts[t] : 1);
			*s->y[i] = k ? *s->y[i] + v : v;
		}
	return 0;
}
