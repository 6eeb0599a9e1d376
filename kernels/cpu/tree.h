/* Sums of chunks, combined as a balanced tree, for kernels with `chunks`: 1, 2, 4 or 8 ranks give the same bits.
 *
 *   (0 + 1) + (2 + 3)          a rank that has only chunks 2 and 3 computes the second bracket
 *
 * Sums that wait for their neighbours are a binary counter: after chunk c there is one for each bit of c + 1 that is
 * set, and that of bit l covers 2^l chunks.  Each has `n` numbers; level l lies at room + l * n.  The last chunk goes
 * to y, and all waiting sums are added there. */
#ifndef TREE_H
#define TREE_H

#include <stdint.h>

/* The level at which the sum of chunk c waits: the lowest bit of c that is 0. */
static inline int tree_level(int64_t c)
{
	int l = 0;
	while (c >> l & 1)
		l++;
	return l;
}

/* The largest number of sums that wait at a time. */
static inline int64_t tree_waits(int64_t chunks)
{
	return tree_level(chunks - 1);
}

/* The address to which chunk c is to be written. */
static inline float *tree_place(float *y, float *room, int64_t n, int64_t c, int64_t chunks)
{
	return c + 1 == chunks ? y : room + tree_level(c) * n;
}

/* Call it when chunk c is written: adds the sums that waited for it. */
static inline void tree_join(float *restrict to, const float *room, int64_t n, int64_t c)
{
	for (int l = 0; l < tree_level(c); l++) {
		const float *restrict from = room + l * n;
		for (int64_t i = 0; i < n; i++)
			to[i] = from[i] + to[i];
	}
}

#endif
