/* The innermost part of gemm.c, written once for all instruction sets.  gemm.c includes it with LANES_ISA as for
 * lanes.h and gets tiles of 1 to MR rows in NAME(tiles), and NAME(strip), NAME(keep) for MR rows. */
#include "lanes.h"

/* y = a b (or y += a b) for a tile of `rows` rows; a is packed, rows of b are bs apart.  b is packed to keep, if not
 * NULL. */
INLINE TARGET void NAME(tile)(int rows, const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow,
	bool add, float *keep)
{
	V sum[MR][NV];
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV; j++)
			sum[i][j] = ZERO();
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV * LANES; j += 16)
			__builtin_prefetch(y + i * yrow + j, 1, 3);
	if (yrow % 16)                          /* an unaligned row touches one more cache line */
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

/* Adds the products of one element of k, for `rows` rows and `wide` vectors. */
INLINE TARGET void NAME(one)(int rows, int wide, V (*sum)[NV], const float *a, const float *b, float *keep)
{
	V row[NV];
	UNROLL for (int j = 0; j < wide; j++)
		row[j] = LOAD(b + j * LANES);
	UNROLL for (int j = 0; j < wide && keep; j++)
		STORE(keep + j * LANES, row[j]);
	UNROLL for (int i = 0; i < rows; i++) {
		V f = SPREAD(a + i);
		UNROLL for (int j = 0; j < wide; j++)
			sum[i][j] = FMA(f, row[j], sum[i][j]);
	}
}

/* The same where k is t->chunks chunks, each summed from zero.  Their sums are combined as a tree, then with the sums
 * at t->add.  keep as above. */
INLINE TARGET void NAME(tree)(int rows, const float *a, const float *b, int64_t bs, const GemmTree *t, int64_t at,
	float *y, int64_t yrow, float *keep)
{
	V sum[MR][NV], under[GEMM_LEVELS][MR][NV];
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV * LANES; j += 16)
			__builtin_prefetch(y + i * yrow + j, 1, 3);
	for (int n = 0; n < t->nadd; n++)
		UNROLL for (int i = 0; i < rows; i++)
			UNROLL for (int j = 0; j < NV * LANES; j += 16)
				__builtin_prefetch(t->add[n] + at + i * t->row + j, 0, 3);
	for (int64_t c = 0, len = t->len;; c++) {
		UNROLL for (int i = 0; i < rows; i++)
			UNROLL for (int j = 0; j < NV; j++)
				sum[i][j] = ZERO();
		for (int64_t p = 0; p < len; p++) {
			NAME(one)(rows, NV, sum, a, b, keep);
			a += rows;
			b += bs;
			keep = keep ? keep + NV * LANES : NULL;
		}
		int l = 0;
		for (; c >> l & 1; l++)
			UNROLL for (int i = 0; i < rows; i++)
				UNROLL for (int j = 0; j < NV; j++)
					sum[i][j] = ADD(under[l][i][j], sum[i][j]);
		if (c + 1 == t->chunks)
			break;
		UNROLL for (int i = 0; i < rows; i++)
			UNROLL for (int j = 0; j < NV; j++)
				under[l][i][j] = sum[i][j];
	}
	for (int n = 0; n < t->nadd; n++)
		UNROLL for (int i = 0; i < rows; i++)
			UNROLL for (int j = 0; j < NV; j++)
				sum[i][j] = ADD(LOAD(t->add[n] + at + i * t->row + j * LANES), sum[i][j]);
	UNROLL for (int i = 0; i < rows; i++)
		UNROLL for (int j = 0; j < NV; j++)
			STORE(y + i * yrow + j * LANES, sum[i][j]);
}

/* Half of the rows of a tile.  Two chunks are summed at a time, so that both sums meet in registers; a sum of
 * two chunks and one of four wait beside them.  With 32 registers, four sums of 7 rows and one vector take 28, and no
 * sum of 8 chunks is ever stored, because a store costs more than reading b twice.  With 16 registers, tiles of one
 * vector would load more than they multiply, so waiting sums are stored.  Chunks may have a single element: unrolled
 * loops over k cost more than they save there, and gain nothing where chunks are long. */
enum { NAME(HALF) = MR / 2, NAME(WIDE) = LANES == 16 ? 1 : NV };
#if LANES == 16 || !defined(__clang__)
enum { NAME(MOST) = 8 };                /* chunks that are combined in registers */
#else
/* With 16 registers clang keeps waiting sums in registers and spills those it computes: twice the time. */
enum { NAME(MOST) = 2 };
#endif
typedef struct NAME(Half) { const float *a, *b; int64_t bs, len; } NAME(Half);
typedef V NAME(Sums)[NAME(HALF)][NV];

/* sum = earlier + sum */
INLINE TARGET void NAME(join)(V (*earlier)[NV], V (*sum)[NV])
{
	UNROLL for (int i = 0; i < NAME(HALF); i++)
		UNROLL for (int j = 0; j < NAME(WIDE); j++)
			sum[i][j] = ADD(earlier[i][j], sum[i][j]);
}

INLINE TARGET void NAME(two)(NAME(Half) *h, V (*sum)[NV])
{
	NAME(Sums) first;
	const float *a = h->a, *b = h->b, *a2 = a + h->len * MR, *b2 = b + h->len * h->bs;
	UNROLL for (int i = 0; i < NAME(HALF); i++)
		UNROLL for (int j = 0; j < NAME(WIDE); j++)
			first[i][j] = sum[i][j] = ZERO();
	for (int64_t p = h->len; p > 0; p--, a += MR, a2 += MR, b += h->bs, b2 += h->bs) {
		NAME(one)(NAME(HALF), NAME(WIDE), first, a, b, NULL);
		NAME(one)(NAME(HALF), NAME(WIDE), sum, a2, b2, NULL);
	}
	h->a = a2, h->b = b2;
	NAME(join)(first, sum);
}

INLINE TARGET void NAME(four)(NAME(Half) *h, V (*sum)[NV])
{
	NAME(Sums) first;
	NAME(two)(h, first);
	NAME(two)(h, sum);
	NAME(join)(first, sum);
}

INLINE TARGET void NAME(eight)(NAME(Half) *h, V (*sum)[NV])
{
	NAME(Sums) first;
	NAME(four)(h, first);
	NAME(four)(h, sum);
	NAME(join)(first, sum);
}

/* All chunks of the block, `each` at a time. */
INLINE TARGET void NAME(half)(int each, NAME(Half) h, const GemmTree *t, int64_t at, float *y, int64_t yrow)
{
	NAME(Sums) sum, under[GEMM_LEVELS];
	for (int64_t c = 0, n = t->chunks / each;; c++) {
		if (each == 8)
			NAME(eight)(&h, sum);
		else if (each == 4)
			NAME(four)(&h, sum);
		else
			NAME(two)(&h, sum);
		int l = 0;
		for (; c >> l & 1; l++)
			NAME(join)(under[l], sum);
		if (c + 1 == n)
			break;
		UNROLL for (int i = 0; i < NAME(HALF); i++)
			UNROLL for (int j = 0; j < NAME(WIDE); j++)
				under[l][i][j] = sum[i][j];
	}
	for (int k = 0; k < t->nadd; k++)
		UNROLL for (int i = 0; i < NAME(HALF); i++)
			UNROLL for (int j = 0; j < NAME(WIDE); j++)
				sum[i][j] = ADD(LOAD(t->add[k] + at + i * t->row + j * LANES), sum[i][j]);
	UNROLL for (int i = 0; i < NAME(HALF); i++)
		UNROLL for (int j = 0; j < NAME(WIDE); j++)
			STORE(y + i * yrow + j * LANES, sum[i][j]);
}

/* A tile of MR rows, half by half: halves of the same columns follow each other, while these columns are in
 * the cache. */
INLINE TARGET void NAME(halves)(int each, const float *a, const float *b, int64_t bs, const GemmTree *t, int64_t at,
	float *y, int64_t yrow)
{
	for (int64_t j = 0; j < NV * LANES; j += NAME(WIDE) * LANES)
		for (int64_t i = 0; i < MR; i += NAME(HALF))
			NAME(half)(each, (NAME(Half)){ a + i, b + j, bs, t->len }, t, at + i * t->row + j,
				y + i * yrow + j, yrow);
}

#define ROWS(n) \
	static TARGET void NAME(tile##n)(const float *a, const float *b, int64_t bs, int64_t k, float *y, \
		int64_t yrow, bool add) \
	{ \
		NAME(tile)(n, a, b, bs, k, y, yrow, add, NULL); \
	} \
	static TARGET void NAME(tree##n)(const float *a, const float *b, int64_t bs, const GemmTree *t, int64_t at, \
		float *y, int64_t yrow, float *keep) \
	{ \
		(void)keep; \
		NAME(tree)(n, a, b, bs, t, at, y, yrow, NULL); \
	}
ROWS(1) ROWS(2) ROWS(3)
#if MR >= 6
ROWS(4) ROWS(5)
#endif
#if MR >= 14
ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13)
#endif

/* Several tiles of MR rows, one below the other. */
static TARGET void NAME(strip)(int64_t tiles, const float *a, const float *b, int64_t bs, int64_t k, float *y,
	int64_t yrow, bool add, Ahead *next)
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

/* MR rows; packs b on the way. */
static TARGET void NAME(keep)(const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow,
	bool add, float *to)
{
	NAME(tile)(MR, a, b, bs, k, y, yrow, add, to);
}

static TARGET void NAME(tree_keep)(const float *a, const float *b, int64_t bs, const GemmTree *t, int64_t at, float *y,
	int64_t yrow, float *keep)
{
	NAME(tree)(MR, a, b, bs, t, at, y, yrow, keep);
}

static TARGET void NAME(tree_strip)(int64_t tiles, const float *a, const float *b, int64_t bs, const GemmTree *t,
	int64_t at, float *y, int64_t yrow, Ahead *next)
{
	for (; tiles > 0; tiles--, a += MR * t->chunks * t->len, y += MR * yrow, at += MR * t->row) {
		ask(next);
		if (t->chunks == 1) {
			NAME(tree)(MR, a, b, bs, t, at, y, yrow, NULL);
			continue;
		}
		UNROLL for (int i = 0; i < MR; i++)     /* prefetch the tile below, a whole tile ahead */
			UNROLL for (int j = 0; j < NV * LANES; j += 16)
				__builtin_prefetch(y + (MR + i) * yrow + j, 1, 3);
		for (int n = 0; n < t->nadd; n++)
			UNROLL for (int i = 0; i < MR; i++)
				UNROLL for (int j = 0; j < NV * LANES; j += 16)
					__builtin_prefetch(t->add[n] + at + (MR + i) * t->row + j, 0, 3);
		if (t->chunks >= NAME(MOST))
			NAME(halves)(NAME(MOST), a, b, bs, t, at, y, yrow);
		else if (t->chunks >= 4)
			NAME(halves)(4, a, b, bs, t, at, y, yrow);
		else
			NAME(halves)(2, a, b, bs, t, at, y, yrow);
	}
}

static void NAME(tree_whole)(const float *a, const float *b, int64_t bs, const GemmTree *t, int64_t at, float *y,
	int64_t yrow, float *keep)
{
	if (keep)
		NAME(tree_keep)(a, b, bs, t, at, y, yrow, keep);
	else
		NAME(tree_strip)(1, a, b, bs, t, at, y, yrow, &(Ahead){ 0 });
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

static TreeTile *const NAME(trees)[] = {
	NULL, NAME(tree1), NAME(tree2), NAME(tree3),
#if MR >= 6
	NAME(tree4), NAME(tree5),
#endif
#if MR >= 14
	NAME(tree6), NAME(tree7), NAME(tree8), NAME(tree9), NAME(tree10), NAME(tree11), NAME(tree12), NAME(tree13),
#endif
	NAME(tree_whole),
};

#undef ROWS
#undef LANES_ISA
