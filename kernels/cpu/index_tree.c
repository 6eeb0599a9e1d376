/* The gradient of a gather, in chunks of the index (tree.h).  Each row of the result has a list of the positions whose
 * index selects it, in order.  The rows of dy at these positions are summed chunk by chunk, and the chunks combined.  A
 * chunk without such a position has the sum +0, which changes no other sum, because no sum is -0: all begin at +0. */
#include "indices.h"

#include <string.h>

enum { COLS = 256, LEVELS = 16 };

typedef struct Lists {
	float *y;
	const float *dy;
	const int64_t *head, *next;     /* 1 + a position; 0: none */
	int64_t n, inner, count, some;  /* some: positions in a chunk */
} Lists;

/* Columns of one row, over chunks lo .. hi - 1; *at is the next position in the list, 0 at its end. */
static void sum_chunks(const Lists *s, const float *dy, int64_t *at, int64_t lo, int64_t hi, int64_t cols,
	float (*room)[COLS])
{
	float *restrict to = room[0];
	int64_t mid = (lo + hi) / 2;
	if (hi - lo == 1) {
		for (int64_t j = 0; j < cols; j++)
			to[j] = 0;
		for (; *at && (*at - 1) / s->some < hi; *at = s->next[*at - 1]) {
			const float *restrict from = dy + (*at - 1) * s->inner;
			for (int64_t j = 0; j < cols; j++)
				to[j] += from[j];
		}
	} else if ((*at - 1) / s->some >= mid) {
		sum_chunks(s, dy, at, mid, hi, cols, room);
	} else {
		sum_chunks(s, dy, at, lo, mid, cols, room);
		if (!*at || (*at - 1) / s->some >= hi)
			return;
		sum_chunks(s, dy, at, mid, hi, cols, room + 1);
		const float *restrict more = room[1];
		for (int64_t j = 0; j < cols; j++)
			to[j] = to[j] + more[j];
	}
}

static void rows(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Lists *s = arg;
	float room[LEVELS][COLS];
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		float *y = s->y + r * s->inner;
		if (!s->head[r % s->n]) {
			memset(y, 0, (size_t)s->inner * sizeof *y);
			continue;
		}
		for (int64_t from = 0; from < s->inner; from += COLS) {
			int64_t cols = s->inner - from < COLS ? s->inner - from : COLS, at = s->head[r % s->n];
			sum_chunks(s, s->dy + r / s->n * s->count * s->inner + from, &at, 0,
				s->count / s->some, cols, room);
			memcpy(y + from, room[0], (size_t)cols * sizeof *y);
		}
	}
}

int k_gather_grad_tree_f32(Ctx *c, float *y, const float *dy, const int64_t *index, int64_t outer, int64_t n,
	int64_t inner, int64_t count, int64_t first, int64_t all, int64_t chunks)
{
	int64_t *head = (int64_t *)(void *)c->shared, *next = head + n;
	int code = check_indices(c, index, count, all);
	if (code)
		return code;
	memset(head, 0, (size_t)n * sizeof *head);
	for (int64_t i = count; i-- > 0;) {
		int64_t k = shard_index(index[i], all, first, n);
		next[i] = 0;
		if (k >= 0) {
			next[i] = head[k];
			head[k] = i + 1;
		}
	}
	Lists s = { .y = y, .dy = dy, .head = head, .next = next, .n = n, .inner = inner, .count = count,
		.some = count / chunks };
	rt_parallel(c, outer * n, 1 + 16384 / (inner + 1), rows, &s);
	return 0;
}
