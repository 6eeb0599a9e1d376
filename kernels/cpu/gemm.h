/* Matrix products, for all kernels that consist of them: matmul, convolution, attention.
 *
 * y = a b, where a is m x k and b is k x n, is computed in tiles that stay in registers.  The k axis is cut into blocks
 * of GEMM_K: a tile starts each block from zero, sums it in order, and adds it to y, again in order.  So the bits of an
 * element depend on its row of a, its column of b and k alone, not on m, n, its position or the number of threads. */
#ifndef GEMM_H
#define GEMM_H

#include "kernels.h"

/* The sizes of blocks of k, m and n; the width of the widest tile. */
enum { GEMM_K = 256, GEMM_ROWS = 266, GEMM_COLS = 1536, GEMM_WIDTH = 32 };

/* Copies elements at .. at + count - 1 of the m axis (or of n), each with k's from .. from + len - 1, into a panel
 * to[len][width]; columns from count to width are zero. */
typedef void GemmPack(const void *arg, float *to, int64_t batch, int64_t at, int64_t count, int64_t width,
	int64_t from, int64_t len);

/* An operand: strided, or read by a function that packs it. */
typedef struct GemmSide {
	const float *x;
	int64_t batch, at, k;           /* strides; at: along m or n */
	GemmPack *pack;                 /* NULL: strided */
	const void *arg;
} GemmSide;

/* Receives a finished tile, to be added to the sum of earlier blocks of k: rows x cols at (row, col), rows `width`
 * apart. */
typedef void GemmStore(const void *arg, const float *tile, int64_t width, int64_t batch, int64_t row, int64_t rows,
	int64_t col, int64_t cols, bool first);

/* The address of `cols` columns of a row of y, if they are neighbours in memory and rows are yrow apart; else NULL. */
typedef float *GemmAddress(const void *arg, int64_t batch, int64_t row, int64_t col, int64_t cols);

typedef struct Gemm {
	int64_t batch, m, n, k;
	GemmSide a, b;
	float *y;
	int64_t yrow, ybatch;           /* strides; columns are next to each other */
	bool add;                       /* add to y instead of overwriting it */
	GemmStore *store;               /* NULL: into y */
	GemmAddress *address;           /* with store: a tile with an address is summed there, without store */
	const void *arg;
	const KEpilogue *e;             /* NULL: none; with an epilogue, y is dense */
	const float *packed;            /* all of b as gemm_pack writes it, for a batch of one; NULL: pack b here */
	KCut cut;                       /* zeros: b is packed for GEMM_ROWS rows at a time, with GEMM_WORK bytes
	                                 * per thread */
	int64_t chunks;                 /* a power of two that divides k: so many pieces of k are summed separately and
	                                 * combined as a tree (gemm_tree.h); 0, 1: one sum.  With chunks there is a
	                                 * cut, no store, no add, and each thread has gemm_tree_bytes */
} Gemm;

void gemm_run(Ctx *, const Gemm *);

/* Packs all of b into gemm_packed_bytes at `to`, for several products with the same b, n and k. */
void gemm_pack(Ctx *, const Gemm *, float *to);
static inline int64_t gemm_packed_bytes(int64_t n, int64_t k)
{
	return (n + GEMM_WIDTH - 1) / GEMM_WIDTH * GEMM_WIDTH * k * 4;
}

/* The same within one thread; work has GEMM_WORK bytes. */
enum { GEMM_WORK = (GEMM_ROWS * GEMM_K + GEMM_K * GEMM_WIDTH + 64) * 4 };
void gemm_one(RtIsa, const Gemm *, float *work);

/* Bytes of scratch of each thread for a cut.  All columns of a block stay packed if they serve more rows than are
 * packed at a time. */
static inline int64_t gemm_bytes(KCut cut, int64_t n, int64_t k)
{
	int64_t cols = cut.cols < n ? cut.cols : n, width = (cols + GEMM_WIDTH - 1) / GEMM_WIDTH * GEMM_WIDTH,
		deep = k < GEMM_K ? k : GEMM_K;
	return cut.pass > cut.rows ? (GEMM_ROWS * GEMM_K + 32 + deep * width) * 4 : GEMM_WORK;
}

/* How the k axis is walked when it has chunks.  A block, packed at once, is `each` whole chunks, or one of `pieces`
 * pieces of a chunk; there are `blocks` blocks.  Sums of chunks wait in `waits` copies of a block of y until the
 * neighbouring chunks are summed. */
enum { GEMM_LEVELS = 8 };
typedef struct GemmDeep { int64_t chunk, each, pieces, len, blocks; int levels, waits; } GemmDeep;
static inline GemmDeep gemm_deep(int64_t k, int64_t chunks)
{
	GemmDeep d = { .chunk = k / chunks, .each = 1, .pieces = 1 };
	while (2 * d.each <= chunks && 2 * d.each * d.chunk <= GEMM_K && 2 * d.each <= 1 << GEMM_LEVELS)
		d.each *= 2;
	/* cut as k is without chunks, because a rank may hold a single chunk */
	if (d.chunk > GEMM_K)
		d.pieces = (d.chunk + GEMM_K - 1) / GEMM_K;
	d.len = d.pieces > 1 ? GEMM_K : d.each * d.chunk;
	d.blocks = chunks / d.each * d.pieces;
	while ((int64_t)1 << d.levels < chunks / d.each)
		d.levels++;
	d.waits = d.levels + (d.pieces > 1);
	return d;
}

/* Bytes of scratch of each thread for a product with chunks. */
static inline int64_t gemm_tree_bytes(KCut cut, int64_t n, int64_t k, int64_t chunks)
{
	GemmDeep d = gemm_deep(k, chunks);
	int64_t cols = (cut.cols < n ? cut.cols : n) + 128;
	return 4 * (GEMM_ROWS * GEMM_K + 32 + d.len * (cut.pass > cut.rows ? cols : GEMM_WIDTH) + 32 +
		d.waits * (cut.pass + 16) * cols);
}

/* For packers: `count` rows of x, `apart` from each other and `len` long, become the first columns of
 * to[len][width]. */
void gemm_turn(RtIsa, float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len);

/* For kernels that lay out both operands themselves: y = a b (or y += a b) for a tile of `rows` <= mr rows and nr
 * columns, where a is packed [k][rows] and rows of b are bs apart. */
typedef void GemmTile(const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add);
typedef struct GemmTiles { int64_t mr, nr; GemmTile *const *of; } GemmTiles;      /* of[rows] */
GemmTiles gemm_tiles(RtIsa);

#endif
