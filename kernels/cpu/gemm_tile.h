/* The innermost part of gemm.c, written once for all instruction sets: gemm.c includes it with LANES_ISA as for lanes.h, and finds tiles of 1
 * to MR rows in NAME(tiles), and NAME(strip), NAME(keep) for MR rows. */
#include "lanes.h"

/* y (or y +) = a b for a tile of `rows` rows; a is packed, rows of b are bs apart.  keep: b is packed on the way. */
INLINE TARGET void NAME(tile)(int rows, const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add, float *keep)
{
	V sum[MR][NV];
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV; j++)
			sum[i][j] = ZERO();
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV * LANES; j += 16)
			__builtin_prefetch(y + i * yrow + j, 1, 3);
	if (yrow % 16)                          /* rows that begin within a line end in one more */
		UNROLL for (int i = 0; i < rows; i++)
			__builtin_prefetch(y + i * yrow + NV * LANES - 1, 1, 3);
	for (int64_t p = 0; p < k; p++) {
		V row[NV];
		UNROLL for (int j = 0; j < NV; j++)
			row[j] = LOAD(b + j * LANES);
		if (keep) {
			UNROLL for (int j = 0; j < NV; j++)
				STORE(keep + j * LANES, row[j]);
			keep += NV * LANES;
		}
		UNROLL for (int i = 0; i < rows; i++) {
			V f = SPREAD(a + i);
			UNROLL for (int j = 0; j < NV; j++)
				sum[i][j] = FMA(f, row[j], sum[i][j]);
		}
		a += rows;
		b += bs;
	}
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV; j++) {
			float *at = y + i * yrow + j * LANES;
			STORE(at, add ? ADD(LOAD(at), sum[i][j]) : sum[i][j]);
		}
}

#define ROWS(n) \
	static TARGET void NAME(tile##n)(const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add) \
	{ \
		NAME(tile)(n, a, b, bs, k, y, yrow, add, NULL); \
	}
ROWS(1) ROWS(2) ROWS(3)
#if MR >= 6
ROWS(4) ROWS(5)
#endif
#if MR >= 14
ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13)
#endif

/* Several tiles of MR rows, one below the other. */
static TARGET void NAME(strip)(int64_t tiles, const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add, Ahead *next)
{
	for (; tiles > 0; tiles--, a += MR * k, y += MR * yrow) {
		ask(next);
		NAME(tile)(MR, a, b, bs, k, y, yrow, add, NULL);
	}
}

static void NAME(whole)(const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add)
{
	NAME(strip)(1, a, b, bs, k, y, yrow, add, &(Ahead){ 0 });
}

/* MR rows, b packed on the way. */
static TARGET void NAME(keep)(const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add, float *to)
{
	NAME(tile)(MR, a, b, bs, k, y, yrow, add, to);
}

static Tile *const NAME(tiles)[] = {
	NULL, NAME(tile1), NAME(tile2), NAME(tile3),
#if MR >= 6
	NAME(tile4), NAME(tile5),
#endif
#if MR >= 14
	NAME(tile6), NAME(tile7), NAME(tile8), NAME(tile9), NAME(tile10), NAME(tile11), NAME(tile12), NAME(tile13),
#endif
	NAME(whole),
};

#undef ROWS
#undef LANES_ISA
