/* The steps of recurrent cells: all results of a kernel one after the other. */
#include "fast.h"

#include <stdio.h>
#include <stdlib.h>

#define k_lstm k_plain_lstm
#define k_lstm_grad k_plain_lstm_grad
#define k_gru k_plain_gru
#define k_gru_grad k_plain_gru_grad
#define k_rnn k_plain_rnn
#define k_rnn_grad k_plain_rnn_grad
#include "../../../kernels/cpu/recurrent.c"
#undef k_lstm
#undef k_lstm_grad
#undef k_gru
#undef k_gru_grad
#undef k_rnn
#undef k_rnn_grad

enum { LSTM, LSTM_GRAD, GRU, GRU_GRAD, RNN, RNN_GRAD, KINDS };
static const int gates_of[KINDS] = { 4, 4, 3, 3, 1, 1 };

typedef struct Cell {
	KCells k;
	int kind;
	bool state;                     /* first states, and gradients of the last, are given */
	const float *in[8];
	const int32_t *lens;
} Cell;

/* How many numbers the results have: gates and the like, sequences, states. */
static int64_t results(const Cell *s)
{
	static const int wide[KINDS] = { 4 + 3, 4, 3 + 3, 6, 2, 1 }, states[KINDS] = { 2, 2, 1, 1, 1, 1 };
	return (s->k.steps * wide[s->kind] + states[s->kind]) * s->k.batch * s->k.hidden;
}

/* Calls the kernel P##lstm or the like with results at y. */
#define CALL(P) \
	int64_t all = s->k.steps * s->k.batch * s->k.hidden, one = s->k.batch * s->k.hidden; \
	const float *const *x = s->in, *h = s->state ? x[2] : NULL, *d = s->state ? x[3] : NULL; \
	switch (s->kind) { \
	case LSTM: P##lstm(c, y, y + 7 * all, y + all, y + 2 * all, y + 7 * all + one, y + 6 * all, x[0], x[1], h, \
		s->lens, d, &s->k, K_F32); break; \
	case LSTM_GRAD: P##lstm_grad(c, y, y + 4 * all, y + 4 * all + one, x[4], h, x[5], x[1], d, x[6], h, s->lens, \
		&s->k, K_F32); break; \
	case GRU: P##gru(c, y, y + 6 * all, y + all, y + 2 * all, y + 5 * all, x[0], x[1], h, s->lens, \
		s->state ? x[2] : NULL, &s->k, K_F32); break; \
	case GRU_GRAD: P##gru_grad(c, y, y + 6 * all, y + 3 * all, x[4], h, x[5], x[1], x[6], x[7], s->lens, &s->k, \
		K_F32); break; \
	case RNN: P##rnn(c, y, y + 2 * all, y + all, x[0], x[1], h, s->lens, &s->k, K_F32); break; \
	default: P##rnn_grad(c, y, y + all, x[4], h, x[6], x[1], s->lens, &s->k, K_F32); \
	}

static void fast(Ctx *c, float *y, void *arg)
{
	const Cell *s = arg;
	CALL(k_)
}

static void plain(Ctx *c, float *y, const Cell *s)
{
	CALL(k_plain_)
}

static int one(const Cell *s, const char *what)
{
	int64_t n = results(s);
	float *want = calloc((size_t)n, sizeof *want);
	unsigned char *work = malloc(RT_WORK_EACH);
	if (!want || !work)
		exit(1);
	plain(&(Ctx){ .work = work, .work_each = RT_WORK_EACH, .nthread = 1 }, want, s);
	int bad = compare(what, fast, (void *)s, want, n, 2e-5, 1, NULL);
	free(want);
	free(work);
	return bad;
}

int test_cells(void)
{
	static const KCells sizes[] = { { 1, 1, 1, false }, { 5, 3, 7, true }, { 4, 16, 24, false },
		{ 3, 9, 130, true }, { 2, 70, 40, false }, { 2, 3, 600, true } };
	int bad = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int kind = 0; kind < KINDS; kind++)
			for (int given = 0; given < 2; given++) {
				Cell s = { .k = sizes[i], .kind = kind, .state = given };
				int64_t all = s.k.steps * s.k.batch * s.k.hidden;
				float *in[8];
				int32_t *lens = malloc((size_t)s.k.batch * sizeof *lens);
				char what[80];
				if (!lens)
					exit(1);
				for (int64_t b = 0; b < s.k.batch; b++)
					lens[b] = (int32_t)((b * 7 + 3) % (s.k.steps + 1));
				for (int k = 0; k < 8; k++)
					s.in[k] = in[k] = numbers(k == 1 ? gates_of[kind] * s.k.hidden * s.k.hidden
						: gates_of[kind] * all, (uint64_t)(k + 1));
				for (int64_t k = 0; k < gates_of[kind] * s.k.hidden * s.k.hidden; k++)
					in[1][k] /= (float)s.k.hidden;
				s.lens = given ? lens : NULL;
				snprintf(what, sizeof what, "cell %d, %lld steps of %lld, hidden %lld, given %d", kind,
					(long long)s.k.steps, (long long)s.k.batch,
				         (long long)s.k.hidden, given);
				bad += one(&s, what);
				for (int k = 0; k < 8; k++)
					free(in[k]);
				free(lens);
			}
	return group("cells", bad);
}
