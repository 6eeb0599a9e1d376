/* The innermost part of gemm.c, written once for all instruction sets: gemm.c includes it with
 *   NAME(x)  x for this instruction set        TARGET   attributes of functions that use it
 *   V        a vector of LANES numbers         MR, NV   a tile: rows, and vectors in each
 *   ZERO() LOAD(p) STORE(p, v) SPREAD(p) ADD(a, b) FMA(a, b, c) */

/* y (or y +) = a b for a tile of `rows` rows; a is packed, rows of b are bs apart. */
INLINE TARGET void NAME(tile)(int rows, const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add)
{
	V sum[MR][NV];
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV; j++)
			sum[i][j] = ZERO();
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV * LANES; j += 16)
			__builtin_prefetch(y + i * yrow + j, 1, 3);
	for (int64_t p = 0; p < k; p++) {
		V row[NV];
		UNROLL for (int j = 0; j < NV; j++)
			row[j] = LOAD(b + j * LANES);
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
		NAME(tile)(n, a, b, bs, k, y, yrow, add); \
	}
