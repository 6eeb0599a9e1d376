/* Sums of squares, of many tensors in one call.
 *
 * Each part of a term is cut into blocks, and the blocks of all terms are shared out among the threads: small tensors
 * do not end a parallel loop each.  A block is summed in K_LANES partial sums, 256 terms each, and these in double; the
 * blocks of a part are then added in order.  So the result depends neither on the threads nor on the other terms. */
#include "kernels.h"
#include "isa.h"
#include "tree.h"
#include "work.h"

enum { PIECE = 256 * K_LANES };

typedef struct Squares { const KSums *s; double *block; } Squares;

K_LOOP double block_of(const float *restrict x, int64_t n)
{
	double all = 0;
	for (int64_t i = 0; i < n; i += PIECE) {
		int64_t m = n - i < PIECE ? n - i : PIECE, k = 0;
		float s[K_LANES] = { 0 };
		for (; k + K_LANES <= m; k += K_LANES)
			for (int j = 0; j < K_LANES; j++)
				s[j] += x[i + k + j] * x[i + k + j];
		for (int j = 0; k < m; k++, j++)
			s[j] += x[i + k] * x[i + k];
		for (int j = 0; j < K_LANES; j++)
			all += (double)s[j];
	}
	return all;
}

static int64_t parts_of(const KSums *s, int64_t t)
{
	return s->parts ? s->parts[t] : 1;
}

K_LOOP void blocks(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Squares *q = arg;
	const KSums *s = q->s;
	(void)thread;
	for (int64_t t = 0, first = 0; first < hi; t++) {
		int64_t n = s->n[t] == K_PLAIN ? 0 : s->n[t], parts = parts_of(s, t), len = n / parts;
		int64_t each = k_square_blocks(n, parts) / parts, last = first + each * parts;
		for (int64_t b = lo > first ? lo : first; b < hi && b < last; b++) {
			int64_t part = (b - first) / each, from = (b - first) % each * K_SQUARES;
			int64_t some = len - from < K_SQUARES ? len - from : K_SQUARES;
			q->block[b] = block_of(s->x[t] + part * len + from, some);
		}
		first = last;
	}
}
K_EACH_ISA(blocks)

/* Adds up the blocks of a term. */
static float term(const double *block, int64_t n, int64_t parts)
{
	int64_t each = k_square_blocks(n, parts) / parts;
	float room[64], y = 0;
	for (int64_t k = 0; k < parts; k++) {
		double sum = 0;
		for (int64_t b = 0; b < each; b++)
			sum += block[k * each + b];
		float *to = tree_place(&y, room, 1, k, parts);
		*to = (float)sum;
		tree_join(to, room, 1, k);
	}
	return y;
}

int k_sum_squares_f32(Ctx *c, const KSums *s)
{
	Squares q = { s, (double *)(void *)c->shared };
	int64_t all = 0, t = 0;
	for (int64_t i = 0; i < s->count; i++)
		for (int64_t k = 0; k < s->terms[i]; k++, t++)
			all += s->n[t] == K_PLAIN ? 0 : k_square_blocks(s->n[t], parts_of(s, t));
	rt_parallel(c, all, 4, K_PICK(c, blocks), &q);
	t = all = 0;
	for (int64_t i = 0; i < s->count; i++)
		for (int64_t k = 0; k < s->terms[i]; k++, t++) {
			bool plain = s->n[t] == K_PLAIN;
			float v = plain ? *s->x[t] : term(q.block + all, s->n[t], parts_of(s, t));
			all += plain ? 0 : k_square_blocks(s->n[t], parts_of(s, t));
			*s->y[i] = k ? *s->y[i] + v : v;
		}
	return 0;
}
