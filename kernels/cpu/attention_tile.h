/* The innermost part of attention_fast.c, compiled for each instruction set: products whose left operand is read in
 * place, by rows or by columns, without packing.  The includer defines LANES_ISA as for lanes.h. */
#include "lanes.h"

/* y = a b (or y += a b) for a tile of `rows` rows, where element (i, p) of a is a[i ar + p ak] and rows of b are bs
 * apart. */
INLINE TARGET void NAME(cell)(int rows, const float *a, int64_t ar, int64_t ak, const float *b, int64_t bs, int64_t k,
	float *y, int64_t yrow, bool add)
{
	V sum[MR][NV];
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV; j++)
			sum[i][j] = ZERO();
	for (int64_t p = 0; p < k; p++) {
		V row[NV];
		UNROLL for (int j = 0; j < NV; j++)
			row[j] = LOAD(b + j * LANES);
		UNROLL for (int i = 0; i < rows; i++) {
			V f = SPREAD(a + i * ar);
			UNROLL for (int j = 0; j < NV; j++)
				sum[i][j] = FMA(f, row[j], sum[i][j]);
		}
		a += ak;
		b += bs;
	}
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV; j++) {
			float *at = y + i * yrow + j * LANES;
			STORE(at, add ? ADD(LOAD(at), sum[i][j]) : sum[i][j]);
		}
}

/* A stride of 1 is passed as a constant, so that the compiler uses constant offsets. */
static TARGET void NAME(whole)(const float *a, int64_t ar, int64_t ak, const float *b, int64_t bs, int64_t k, float *y,
	int64_t yrow, bool add)
{
	if (ar == 1)
		NAME(cell)(MR, a, 1, ak, b, bs, k, y, yrow, add);
	else
		NAME(cell)(MR, a, ar, ak, b, bs, k, y, yrow, add);
}

#define ROWS(n) \
	static TARGET void NAME(cell##n)(const float *a, int64_t ar, int64_t ak, const float *b, int64_t bs, \
		int64_t k, float *y, int64_t yrow, bool add) \
	{ \
		NAME(cell)(n, a, ar, ak, b, bs, k, y, yrow, add); \
	}
ROWS(1) ROWS(2)
#if MR > 4
ROWS(4)
#endif
#if MR > 8
ROWS(8)
#endif
#undef ROWS

static Cell *const NAME(cells)[MR + 1] = {
	[1] = NAME(cell1), [2] = NAME(cell2),
#if MR > 4
	[4] = NAME(cell4),
#endif
#if MR > 8
	[8] = NAME(cell8),
#endif
	[MR] = NAME(whole),
};
#undef LANES_ISA
