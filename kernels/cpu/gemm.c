/* See gemm.h.  Rows of a are packed so that they stay in the second-level cache.  Columns of b are packed so that one
 * panel stays in the first-level cache and all panels in the third.  Tiles of y are summed in registers:
 *
 *   for each block of y (rows x columns; blocks are what threads take)
 *     for each block of k
 *       for some rows at a time                pack a: rows / MR panels [k][MR]
 *         for each NR columns                  the first rows pack b: a panel [k][NR]
 *           for each MR rows                   a tile in registers
 *
 * The caller chooses how many rows and columns a block has, and how many rows are packed at a time (KCut, which k_cut
 * in work.h finds for a shape): b is packed once for as many rows as possible, and the block of y stays in the
 * third-level cache.
 *
 * The blocking is that of K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008. */
#include "gemm.h"

#include <string.h>

#define LANES_ISA 0
#include "lanes.h"

/* A prefetch of the next panel of b while the current one is used, some cache lines with each tile: `count` lines
 * `apart` from each other, then x advances by `step`; `left` such steps remain, `each` of them per tile. */
typedef struct Ahead { const float *x; int64_t apart, count, step, left, each; } Ahead;

INLINE void ask(Ahead *n)
{
	for (int64_t e = 0; e < n->each && n->left > 0; e++, n->left--, n->x += n->step)
		for (int64_t i = 0; i < n->count; i++)
			__builtin_prefetch(n->x + i * n->apart, 0, 2);
}

typedef GemmTile Tile;

/* A tile whose k has chunks: the number and length of the chunks in this block of k, and the sums of earlier chunks
 * that are added to the result; their rows are `row` apart. */
typedef struct GemmTree { int64_t chunks, len, row; const float *add[GEMM_LEVELS]; int nadd; } GemmTree;
typedef void TreeTile(const float *a, const float *b, int64_t bs, const GemmTree *, int64_t at, float *y,
	int64_t yrow, float *keep);
typedef void TreeStrip(int64_t tiles, const float *a, const float *b, int64_t bs, const GemmTree *, int64_t at,
	float *y, int64_t yrow, Ahead *next);
typedef void Keep(const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow, bool add, float *to);
typedef void Strip(int64_t tiles, const float *a, const float *b, int64_t bs, int64_t k, float *y, int64_t yrow,
	bool add, Ahead *next);

/* Packs by transposition, for operands that are dense along k: `count` rows become `count` columns of a panel. */
typedef void Turn(float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len);

typedef struct Kind {
	int mr, nr;
	Tile *const *tile;              /* tile[rows] */
	Keep *keep;                     /* mr rows; packs b on the way */
	Strip *strip;                   /* several tiles of mr rows */
	Turn *turn;
	TreeTile *const *tree;          /* tree[rows] */
	TreeStrip *tree_strip;
} Kind;

/* ---- plain C ---- */

#include "gemm_tile.h"

static void turn_plain(float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len)
{
	for (int64_t p = 0; p < len; p++)
		for (int64_t i = 0; i < count; i++)
			to[p * width + i] = x[i * apart + p];
}

#if defined(__x86_64__)
/* ---- AVX2: 12 of 16 registers are sums ---- */

#define AVX2 __attribute__((target("avx2,fma")))
#define LANES_ISA 1
#include "gemm_tile.h"

/* Transposes 8 x 8 numbers in registers; each input register holds half of row i beside half of row i + 4. */
INLINE AVX2 void turn4(const __m256 *x, __m256 *y)
{
	__m256 a = _mm256_unpacklo_ps(x[0], x[1]), b = _mm256_unpackhi_ps(x[0], x[1]),
		c = _mm256_unpacklo_ps(x[2], x[3]), d = _mm256_unpackhi_ps(x[2], x[3]);
	y[0] = _mm256_shuffle_ps(a, c, 0x44);
	y[1] = _mm256_shuffle_ps(a, c, 0xEE);
	y[2] = _mm256_shuffle_ps(b, d, 0x44);
	y[3] = _mm256_shuffle_ps(b, d, 0xEE);
}

INLINE AVX2 __m256 halves(const float *x, const float *z)
{
	return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(x)), z ? _mm_loadu_ps(z) : _mm_setzero_ps(), 1);
}

/* Transposes `count` rows, 8 k's at a time; count is a constant where this is inlined. */
INLINE AVX2 void turn_some(int count, float *to, const float *x, int64_t apart, int64_t width, int64_t len)
{
	int64_t p = 0;
	for (; p + 8 <= len; p += 8) {
		__m256 lo[4], hi[4], r[8];
		if (p % 16 == 0)                        /* prefetch the next cache lines */
			UNROLL for (int i = 0; i < count; i++)
				__builtin_prefetch(x + (count + i) * apart + p, 0, 3);
		UNROLL for (int i = 0; i < 4; i++) {
			const float *at = x + i * apart + p;
			lo[i] = halves(at, i + 4 < count ? at + 4 * apart : NULL);
			hi[i] = halves(at + 4, i + 4 < count ? at + 4 * apart + 4 : NULL);
		}
		turn4(lo, r);
		turn4(hi, r + 4);
		UNROLL for (int i = 0; i < 8; i++) {
			float *at = to + (p + i) * width;
			if (count == 8) {
				_mm256_storeu_ps(at, r[i]);
			} else {
				_mm_storeu_ps(at, _mm256_castps256_ps128(r[i]));
				_mm_storel_pi((__m64 *)(void *)(at + 4), _mm256_extractf128_ps(r[i], 1));
			}
		}
	}
	for (; p < len; p++)
		for (int i = 0; i < count; i++)
			to[p * width + i] = x[i * apart + p];
}

static AVX2 void turn_avx2(float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len)
{
	int64_t i = 0;
	for (; i + 8 <= count; i += 8)
		turn_some(8, to + i, x + i * apart, apart, width, len);
	if (i + 6 <= count) {
		turn_some(6, to + i, x + i * apart, apart, width, len);
		i += 6;
	}
	if (i < count)
		turn_plain(to + i, x + i * apart, apart, count - i, width, len);
}

/* ---- AVX-512: 28 of 32 registers are sums ---- */

#define LANES_ISA 2
#include "gemm_tile.h"
#endif

static const Kind *kind_of(RtIsa isa)
{
	static const Kind kinds[] = {
		{ .mr = 4, .nr = 8, .tile = tiles_plain, .keep = keep_plain, .strip = strip_plain, .turn = turn_plain,
			.tree = trees_plain, .tree_strip = tree_strip_plain },
#if defined(__x86_64__)
		{ .mr = 6, .nr = 16, .tile = tiles_avx2, .keep = keep_avx2, .strip = strip_avx2, .turn = turn_avx2,
			.tree = trees_avx2, .tree_strip = tree_strip_avx2 },
		{ .mr = 14, .nr = 32, .tile = tiles_avx512, .keep = keep_avx512, .strip = strip_avx512,
			.turn = turn_avx2, .tree = trees_avx512, .tree_strip = tree_strip_avx512 },
#endif
	};
	size_t i = (size_t)isa;
	return &kinds[i < sizeof kinds / sizeof kinds[0] ? i : 0];
}

void gemm_turn(RtIsa isa, float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len)
{
	kind_of(isa)->turn(to, x, apart, count, width, len);
}

GemmTiles gemm_tiles(RtIsa isa)
{
	const Kind *k = kind_of(isa);
	return (GemmTiles){ k->mr, k->nr, k->tile };
}

/* ---- packing ---- */

INLINE void copy_rows(float *to, const float *x, int64_t apart, int64_t width, int64_t len)
{
	for (int64_t p = 0; p < len; p++)
		memcpy(to + p * width, x + p * apart, (size_t)width * sizeof *to);
}

/* Packs one panel [len][width] of a strided operand. */
static void pack(const Kind *kind, const GemmSide *s, float *to, int64_t batch, int64_t at, int64_t count,
	int64_t width, int64_t from, int64_t len)
{
	if (s->pack) {
		s->pack(s->arg, to, batch, at, count, width, from, len);
		return;
	}
	const float *x = s->x + batch * s->batch + at * s->at + from * s->k;
	if (s->at == 1 && count == width) {
		switch (width) {                        /* a copy of known length is a few instructions */
		case 6: copy_rows(to, x, s->k, 6, len); return;
		case 14: copy_rows(to, x, s->k, 14, len); return;
		case 16: copy_rows(to, x, s->k, 16, len); return;
		case 32: copy_rows(to, x, s->k, 32, len); return;
		default: copy_rows(to, x, s->k, width, len); return;
		}
	}
	if (s->at == 1)
		for (int64_t p = 0; p < len; p++)
			for (int64_t i = 0; i < count; i++)
				to[p * width + i] = x[p * s->k + i];
	else if (s->k == 1)
		kind->turn(to, x, s->at, count, width, len);
	else
		for (int64_t p = 0; p < len; p++)
			for (int64_t i = 0; i < count; i++)
				to[p * width + i] = x[i * s->at + p * s->k];
	for (int64_t p = 0; p < len && count < width; p++)
		for (int64_t i = count; i < width; i++)
			to[p * width + i] = 0;
}

/* ---- blocks ---- */

typedef struct Block { int64_t batch, row, rows, col, cols; } Block;

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Copies panels of a whose rows are neighbours in memory, several at a time, so that cache lines are read whole. */
INLINE void copy_panels(float *to, const float *x, int64_t apart, int64_t width, int64_t many, int64_t len)
{
	enum { AHEAD = 12 };
	for (int64_t p = 0; p < len; p++) {
		for (int64_t i = 0; i < many * width; i += 16)
			__builtin_prefetch(x + (p + AHEAD) * apart + i, 0, 3);
		for (int64_t i = 0; i < many; i++)
			memcpy(to + (i * len + p) * width, x + p * apart + i * width, (size_t)width * sizeof *to);
	}
}

/* Packs all rows of the block, k's from .. from + k - 1. */
static void pack_a(const Kind *kind, const Gemm *g, const Block *b, float *pa, int64_t from, int64_t k)
{
	enum { MANY = 8 };
	const GemmSide *s = &g->a;
	int64_t i = 0, mr = kind->mr;
	for (; !s->pack && s->at == 1 && i + MANY * mr <= b->rows; i += MANY * mr) {
		const float *x = s->x + b->batch * s->batch + b->row + i + from * s->k;
		switch (mr) {
		case 6: copy_panels(pa + i * k, x, s->k, 6, MANY, k); break;
		case 14: copy_panels(pa + i * k, x, s->k, 14, MANY, k); break;
		default: copy_panels(pa + i * k, x, s->k, mr, MANY, k); break;
		}
	}
	for (; i < b->rows; i += mr) {
		int64_t rows = least(mr, b->rows - i);
		pack(kind, s, pa + i * k, b->batch, b->row + i, rows, rows, from, k);
	}
}

/* The destination of a panel of the block, rows yrow apart; NULL: the panel is not full, or has no single
 * destination. */
static float *address(const Kind *kind, const Gemm *g, const Block *b, int64_t row, int64_t col)
{
	int64_t cols = b->col + b->cols - col;
	if (cols < kind->nr || (g->store && !g->address))
		return NULL;
	return g->store ? g->address(g->arg, b->batch, row, col, kind->nr)
		: g->y + b->batch * g->ybatch + row * g->yrow + col;
}

/* Computes a tile without a single destination in a small buffer. */
static void tile(const Kind *kind, const Gemm *g, const Block *b, const float *pa, const float *pb, int64_t bs,
	int64_t k, int64_t row, int64_t rows, int64_t col, bool first, float *keep)
{
	int64_t cols = least(kind->nr, b->col + b->cols - col);
	float sum[14 * GEMM_WIDTH];
	if (keep)
		kind->keep(pa, pb, bs, k, sum, kind->nr, false, keep);
	else
		kind->tile[rows](pa, pb, bs, k, sum, kind->nr, false);
	if (g->store) {
		g->store(g->arg, sum, kind->nr, b->batch, row, rows, col, cols, first);
		return;
	}
	float *y = g->y + b->batch * g->ybatch + row * g->yrow + col;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			y[i * g->yrow + j] = g->add ||
				!first ? y[i * g->yrow + j] + sum[i * kind->nr + j] : sum[i * kind->nr + j];
}

/* What to prefetch of the next panel of b: from its packed copy if there is one, else from the operand. */
static Ahead ahead_of(const Kind *kind, const Gemm *g, const Block *b, const float *packed, int64_t col,
	int64_t from, int64_t k)
{
	enum { NEAR = 1 << 18 };                        /* a matrix of at most this many numbers is in a cache */
	const GemmSide *s = &g->b;
	Ahead n = { 0 };
	if ((s->pack && !packed) || col + kind->nr > b->col + b->cols || g->k * g->n <= NEAR)
		return n;
	n.x = packed ? packed : s->x + b->batch * s->batch + col * s->at + from * s->k;
	if (packed)
		n.count = 1, n.step = 16, n.left = k * kind->nr / 16;
	else if (s->at == 1)
		n.apart = 16, n.count = (kind->nr + 15) / 16, n.step = s->k, n.left = k;
	else if (s->k == 1)
		n.apart = s->at, n.count = kind->nr, n.step = 16, n.left = (k + 15) / 16;
	int64_t tiles = (b->rows + kind->mr - 1) / kind->mr;
	n.each = (n.left + tiles - 1) / tiles;
	return n;
}

/* All rows of the block times one panel of b, which is either packed already or packed to `keep` by the first tile.
 * The last rows have a tile of their own height, so nothing beyond y is written. */
static void panel(const Kind *kind, const Gemm *g, const Block *b, const float *pa, const float *pb, int64_t bs,
	int64_t k, int64_t col, bool first, Ahead *next, float *keep)
{
	int64_t i = keep ? kind->mr : 0, whole = b->rows / kind->mr * kind->mr, rest = b->rows - whole;
	float *y = address(kind, g, b, b->row, col);
	bool add = g->add || !first;
	if (keep && y)
		kind->keep(pa, pb, bs, k, y, g->yrow, add, keep);
	else if (keep)
		tile(kind, g, b, pa, pb, bs, k, b->row, kind->mr, col, first, keep);
	if (keep)
		pb = keep, bs = kind->nr;
	if (y) {
		kind->strip((whole - i) / kind->mr, pa + i * k, pb, bs, k, y + i * g->yrow, g->yrow, add, next);
		if (rest)
			kind->tile[rest](pa + whole * k, pb, bs, k, y + whole * g->yrow, g->yrow, add);
		return;
	}
	for (; i < b->rows; i += kind->mr) {
		int64_t rows = least(kind->mr, b->rows - i);
		ask(next);
		tile(kind, g, b, pa + i * k, pb, bs, k, b->row + i, rows, col, first, NULL);
	}
}

/* The rows of one packing of a, times one block of k.  If `apart` is not 0, earlier rows have packed the panels of b:
 * they begin at pb, `apart` numbers per column.  Otherwise they are packed now. */
static void pass(const Kind *kind, const Gemm *g, const Block *b, float *pa, float *pb, int64_t apart,
	bool packed, int64_t from)
{
	enum { DONE = 128 };                            /* columns per call of an epilogue */
	int64_t k = least(GEMM_K, g->k - from);
	bool last = from + k >= g->k;
	/* Rows of b may be read in place; for few rows of a, a packed copy does not pay. */
	bool rows = !g->b.pack && g->b.at == 1, few = rows && !apart && b->rows <= 2 * kind->mr;
	pack_a(kind, g, b, pa, from, k);
	for (int64_t j = 0; j < b->cols; j += kind->nr) {
		int64_t cols = least(kind->nr, b->cols - j), col = b->col + j;
		float *at = pb + j * apart;
		Ahead next = few ? (Ahead){ 0 }
			: ahead_of(kind, g, b, packed ? at + kind->nr * apart : NULL, col + kind->nr, from, k);
		if (!packed && rows && cols == kind->nr) {
			panel(kind, g, b, pa, g->b.x + b->batch * g->b.batch + col + from * g->b.k, g->b.k, k, col,
				from == 0, &next, few ? NULL : at);
		} else {
			if (!packed)
				pack(kind, &g->b, at, b->batch, col, cols, kind->nr, from, k);
			panel(kind, g, b, pa, at, kind->nr, k, col, from == 0, &next, NULL);
		}
		int64_t end = j + cols, begin = j / DONE * DONE;
		if (last && g->e && (end == b->cols || end % DONE == 0))
			g->e->run(g->e->arg, g->y, b->batch * g->m + b->row, b->rows, b->col + begin, end - begin);
	}
}

/* The offset of the panel at column `col` of the block of k that begins at `from`, when all of b is packed. */
static int64_t panel_at(const Kind *kind, const Gemm *g, int64_t col, int64_t from, int64_t len)
{
	return (g->n + kind->nr - 1) / kind->nr * kind->nr * from + col * len;
}

#include "gemm_tree.h"

/* One block of y: its first rows pack b for the others. */
static void block(const Kind *kind, const Gemm *g, const Block *b, int64_t rows, float *work)
{
	float *pa = work, *pb = work + GEMM_ROWS * GEMM_K + 32;
	int64_t apart = b->rows > rows ? least(GEMM_K, g->k) : 0;
	if (g->chunks > 1) {
		tree_block(kind, g, b, rows, work);
		return;
	}
	for (int64_t from = 0; from < g->k || from == 0; from += GEMM_K)
		for (int64_t i = 0; i < b->rows; i += rows) {
			Block some = { .batch = b->batch, .row = b->row + i, .rows = least(rows, b->rows - i),
				.col = b->col, .cols = b->cols };
			if (g->packed)
				pass(kind, g, &some, pa, (float *)g->packed + panel_at(kind, g, b->col, from,
					least(GEMM_K, g->k - from)), least(GEMM_K, g->k - from), true, from);
			else
				pass(kind, g, &some, pa, pb, apart, i > 0, from);
		}
}

/* ---- splitting ---- */

/* Blocks of `rows` x `cols`; `some` rows are packed at a time. */
typedef struct Job { const Gemm *g; const Kind *kind; int64_t some, rows, cols, nrow, ncol; unsigned char *work;
	size_t each; } Job;

static int64_t ceil_div(int64_t n, int64_t len)
{
	return (n + len - 1) / len;
}

static int64_t cut(int64_t n, int64_t into, int64_t unit)
{
	return ceil_div(ceil_div(n, into), unit) * unit;
}

static void plan_blocks(Job *j, int nthread)
{
	const Gemm *g = j->g;
	int64_t mr = j->kind->mr, most = GEMM_ROWS / mr * mr,
		some = g->cut.rows ? least(cut(g->cut.rows, 1, mr), most) : most;
	int64_t row = ceil_div(g->m, g->cut.rows ? g->cut.pass : most),
		col = ceil_div(g->n, g->cut.rows ? g->cut.cols : GEMM_COLS);
	/* Enough blocks for all threads, as long as a block is worth its packing. */
	while (nthread > 1 && g->batch * row * col < 3 * nthread &&
		(g->n / col > 16 * j->kind->nr || g->m / row > 8 * mr)) {
		if (g->n / col > 16 * j->kind->nr)
			col++;
		else
			row++;
	}
	j->rows = cut(g->m, row, mr);
	j->cols = cut(g->n, col, 128);
	j->some = cut(j->rows, ceil_div(j->rows, some), mr);
	j->nrow = ceil_div(g->m, j->rows);
	j->ncol = ceil_div(g->n, j->cols);
}

static void blocks(const Job *j, int64_t lo, int64_t hi, float *work)
{
	for (int64_t i = lo; i < hi; i++) {
		/* Rows first: the next block finds the columns of b in the cache. */
		Block b = { .batch = i / (j->nrow * j->ncol), .row = i % j->nrow * j->rows,
			.col = i / j->nrow % j->ncol * j->cols };
		b.rows = least(j->rows, j->g->m - b.row);
		b.cols = least(j->cols, j->g->n - b.col);
		block(j->kind, j->g, &b, j->some, work);
	}
}

static void body(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	blocks(j, lo, hi, (float *)(void *)(j->work + (size_t)thread * j->each));
}

void gemm_run(Ctx *c, const Gemm *g)
{
	if (!g->batch || !g->m || !g->n)
		return;
	Job j = { .g = g, .kind = kind_of(c->isa), .work = c->work, .each = c->work_each };
	plan_blocks(&j, c->nthread);
	int64_t flops = g->m * g->n * g->k / (j.nrow * j.ncol) + 1;
	rt_parallel(c, g->batch * j.nrow * j.ncol, 1 + (1 << 16) / flops, body, &j);
}

typedef struct Packing { const Gemm *g; const Kind *kind; float *to; } Packing;

static void pack_panels(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Packing *p = arg;
	const Gemm *g = p->g;
	int64_t nr = p->kind->nr, count = ceil_div(g->n, nr);
	(void)thread;
	for (int64_t i = lo; i < hi; i++) {
		int64_t col = i % count * nr, len, from = block_from(g, i / count, &len);
		pack(p->kind, &g->b, p->to + panel_at(p->kind, g, col, from, len), 0, col, least(nr, g->n - col),
			nr, from, len);
	}
}

void gemm_pack(Ctx *c, const Gemm *g, float *to)
{
	Packing p = { g, kind_of(c->isa), to };
	rt_parallel(c, ceil_div(g->n, p.kind->nr) *
		(g->chunks > 1 ? gemm_deep(g->k, g->chunks).blocks : ceil_div(g->k, GEMM_K)), 4, pack_panels, &p);
}

void gemm_one(RtIsa isa, const Gemm *g, float *work)
{
	if (!g->batch || !g->m || !g->n)
		return;
	Job j = { .g = g, .kind = kind_of(isa) };
	plan_blocks(&j, 1);
	blocks(&j, 0, g->batch * j.nrow * j.ncol, work);
}
