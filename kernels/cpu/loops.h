/* The macros of pointwise.c of a tree: loops, each compiled for every instruction set. */
#ifndef LOOPS_H
#define LOOPS_H

#include "kernels.h"
#include "isa.h"

#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop that calls functions is not vectorised */
#endif

/* RANGE is a loop from lo to hi - 1 over values t[0], t[1], ...; its iterations are independent.  RUN runs the n
 * iterations of a RANGE on the threads of the rank, in pieces of at least `grain`, compiled for this processor. */
#define RANGE(pw) \
	K_LOOP void pw##_range(void *const *t, int64_t lo, int64_t hi); \
	K_LOOP void pw##_loop(void *t, int64_t lo, int64_t hi, int thread) \
	{ \
		(void)thread, pw##_range(t, lo, hi); \
	} \
	K_EACH_ISA(pw##_loop) \
	K_LOOP void pw##_range(void *const *t, int64_t lo, int64_t hi)
#define RUN(pw, range, n, grain) \
	int pw(Ctx *c, void *const *t) \
	{ \
		rt_parallel(c, n, grain, K_PICK(c, range##_loop), (void *)t); \
		return 0; \
	}

/* TILE_FOR is an epilogue over a tile: rows and columns of a product that was just written to one of the results. */
#define TILE_FOR(ep, isa) \
	static void ep##_##isa(const void *arg, float *y, int64_t row, int64_t nrow, int64_t col, int64_t ncol) \
	{ \
		(void)y, ep##_tile(((const KTile *)arg)->t, row, nrow, col, ncol); \
	}
#ifdef __x86_64__
#define TILE_EACH(ep) TILE_FOR(ep, plain) K_AVX2 TILE_FOR(ep, avx2)
#else
#define TILE_EACH(ep) TILE_FOR(ep, plain)
#endif
#define TILE(ep) \
	K_LOOP void ep##_tile(void *const *t, int64_t row, int64_t nrow, int64_t col, int64_t ncol); \
	TILE_EACH(ep) \
	KEpilogue ep(const KTile *tile) \
	{ \
		return (KEpilogue){ K_PICK(tile->c, ep), tile }; \
	} \
	K_LOOP void ep##_tile(void *const *t, int64_t row, int64_t nrow, int64_t col, int64_t ncol)

#endif
