/* Sums of chunks, combined as a balanced tree: what kernels with `chunks` do so that 1, 2, 4 or 8 ranks give the same
 * bits.
 *
 *   (0 + 1) + (2 + 3)          a rank that has chunks 2 and 3 only computes the second brackets
 *
 * Sums that wait for their neighbours are counted as one counts in binary: after chunk c there is one for each bit of c
 * + 1 that is set, that of bit l over 2^l chunks.  Each has `n` numbers, level l at room + l * n; the last chunk of all
 * goes to y, and all others are added there. */
#ifndef TREE_H
#define TREE_H

#include <stdint.h>

/* The level that chunk c ends on: it is free before. */
static inline int tree_level(int64_t c)
{
	int l = 0;
	while (c >> l & 1)
		l++;
	return l;
}

/* Copies that wait, at most. */
static inline int64_t tree_waits(int64_t chunks)
{
	return tree_level(chunks - 1);
}

/* Where chunk c is to be written. */
static inline float *tree_place(float *y, float *room, int64_t n, int64_t c, int64_t chunks)
{
	return c + 1 == chunks ? y : room + tree_level(c) * n;
}

/* It is there: what waited for it is added to it. */
static inline void tree_join(float *restrict to, const float *room, int64_t n, int64_t c)
{
	for (int l = 0; l < tree_level(c); l++) {
		const float *restrict from = room + l * n;
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i] + to[i];
	}
}

#endif
