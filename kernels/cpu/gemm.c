/* See gemm.h.  A block of rows of a is packed so that it stays in the second cache, a panel of b so that it stays in the
 * first, and tiles of y are summed in registers:
 *
 *   for each block of y (rows x columns; blocks are what threads take)
 *     for each block of k                      pack a: rows / MR panels [k][MR]
 *       for each NR columns                    pack b: one panel [k][NR]
 *         for each MR rows                     a tile in registers
 *
 * This way of blocking is that of K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008. */
#include "gemm.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

typedef GemmTile Tile;

/* k is the axis whose elements lie next to each other: `count` rows become `count` columns of panels. */
typedef void Turn(float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len);

typedef struct Kind {
	int mr, nr;
	Tile *const *tile;              /* by rows */
	Turn *turn;
} Kind;

/* ---- plain C: vectors of four, which every compiler can lower ---- */

typedef float Four __attribute__((vector_size(16)));

INLINE Four load_four(const float *p)
{
	Four v;
	memcpy(&v, p, sizeof v);
	return v;
}

INLINE void store_four(float *p, Four v)
{
	memcpy(p, &v, sizeof v);
}

#define NAME(x) x##_plain
#define TARGET
#define V Four
enum { MR_plain = 4, NV_plain = 2 };
#define MR MR_plain
#define NV NV_plain
#define LANES 4
#define ZERO() ((Four){ 0, 0, 0, 0 })
#define LOAD(p) load_four(p)
#define STORE(p, v) store_four(p, v)
#define SPREAD(p) ((Four){ *(p), *(p), *(p), *(p) })
#define ADD(a, b) ((a) + (b))
#define FMA(a, b, c) ((a) * (b) + (c))
#include "gemm_tile.h"
ROWS(1) ROWS(2) ROWS(3) ROWS(4)
static Tile *const tiles_plain[] = { NULL, tile1_plain, tile2_plain, tile3_plain, tile4_plain };

static void turn_plain(float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len)
{
	for (int64_t p = 0; p < len; p++)
		for (int64_t i = 0; i < count; i++)
			to[p * width + i] = x[i * apart + p];
}

#if defined(__x86_64__)
#undef NAME
#undef TARGET
#undef V
#undef MR
#undef NV
#undef LANES
#undef ZERO
#undef LOAD
#undef STORE
#undef SPREAD
#undef ADD
#undef FMA

/* ---- AVX2: 12 of 16 registers are sums ---- */

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define V __m256
enum { MR_avx2 = 6, NV_avx2 = 2 };
#define MR MR_avx2
#define NV NV_avx2
#define LANES 8
#define ZERO() _mm256_setzero_ps()
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define SPREAD(p) _mm256_broadcast_ss(p)
#define ADD(a, b) _mm256_add_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "gemm_tile.h"
ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6)
static Tile *const tiles_avx2[] = { NULL, tile1_avx2, tile2_avx2, tile3_avx2, tile4_avx2, tile5_avx2, tile6_avx2 };

/* Eight by eight, turned in registers. */
INLINE TARGET void turn8(__m256 *r)
{
	__m256 a[8], b[8];
	UNROLL for (int i = 0; i < 4; i++) {
		a[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
		a[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
	}
	UNROLL for (int i = 0; i < 2; i++) {
		b[4 * i] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0x44);
		b[4 * i + 1] = _mm256_shuffle_ps(a[4 * i], a[4 * i + 2], 0xEE);
		b[4 * i + 2] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0x44);
		b[4 * i + 3] = _mm256_shuffle_ps(a[4 * i + 1], a[4 * i + 3], 0xEE);
	}
	UNROLL for (int i = 0; i < 4; i++) {
		r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
		r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
	}
}

/* `count` rows, a number known where this is inlined, 8 k's at a time. */
INLINE TARGET void turn_some(int count, float *to, const float *x, int64_t apart, int64_t width, int64_t len)
{
	int64_t p = 0;
	for (; p + 8 <= len; p += 8) {
		__m256 r[8];
		UNROLL for (int i = 0; i < 8; i++)
			r[i] = i < count ? _mm256_loadu_ps(x + i * apart + p) : _mm256_setzero_ps();
		turn8(r);
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

static TARGET void turn_avx2(float *to, const float *x, int64_t apart, int64_t count, int64_t width, int64_t len)
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

#undef NAME
#undef TARGET
#undef V
#undef MR
#undef NV
#undef LANES
#undef ZERO
#undef LOAD
#undef STORE
#undef SPREAD
#undef ADD
#undef FMA

/* ---- AVX-512: 28 of 32 registers are sums ---- */

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))
#define V __m512
enum { MR_avx512 = 14, NV_avx512 = 2 };
#define MR MR_avx512
#define NV NV_avx512
#define LANES 16
#define ZERO() _mm512_setzero_ps()
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SPREAD(p) _mm512_set1_ps(*(p))
#define ADD(a, b) _mm512_add_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#include "gemm_tile.h"
ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13) ROWS(14)
static Tile *const tiles_avx512[] = { NULL, tile1_avx512, tile2_avx512, tile3_avx512, tile4_avx512, tile5_avx512, tile6_avx512, tile7_avx512,
	tile8_avx512, tile9_avx512, tile10_avx512, tile11_avx512, tile12_avx512, tile13_avx512, tile14_avx512 };
#endif

static const Kind *kind_of(RtIsa isa)
{
	static const Kind kinds[] = {
		{ MR_plain, NV_plain * 4, tiles_plain, turn_plain },
#if defined(__x86_64__)
		{ MR_avx2, NV_avx2 * 8, tiles_avx2, turn_avx2 },
		{ MR_avx512, NV_avx512 * 16, tiles_avx512, turn_avx2 },
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

/* One panel of a strided operand: [len][width]. */
static void pack(const Kind *kind, const GemmSide *s, float *to, int64_t batch, int64_t at, int64_t count, int64_t width, int64_t from, int64_t len)
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
	if (s->k == 1)
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

/* One tile: into y where it is whole, else by way of a small buffer. */
static void tile(const Kind *kind, const Gemm *g, const Block *b, Tile *run, const float *pa, const float *pb, int64_t bs, int64_t k, int64_t row, int64_t rows,
                 int64_t col, bool first)
{
	int64_t cols = least(kind->nr, b->col + b->cols - col);
	float *y = !g->store ? g->y + b->batch * g->ybatch + row * g->yrow + col : g->place && cols == kind->nr ? g->place(g->arg, b->batch, row, col, cols) : NULL;
	bool add = g->add || !first;
	if (cols == kind->nr && y) {
		run(pa, pb, bs, k, y, g->yrow, add);
		return;
	}
	float sum[14 * GEMM_WIDTH];
	run(pa, pb, bs, k, sum, kind->nr, false);
	if (g->store) {
		g->store(g->arg, sum, kind->nr, b->batch, row, rows, col, cols, first);
		return;
	}
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < cols; j++)
			y[i * g->yrow + j] = add ? y[i * g->yrow + j] + sum[i * kind->nr + j] : sum[i * kind->nr + j];
}

/* What the next panel will be packed from is asked for while this one is used, a little with each tile. */
typedef struct Ahead { const float *x; int64_t apart, lines, each, row, at; } Ahead;    /* rows `apart`, of `row` lines; at: the next line of a row */

static void ask(Ahead *n)
{
	for (int64_t i = 0; i < n->each && n->lines > 0; i++, n->lines--) {
		__builtin_prefetch(n->x + 16 * n->at, 0, 2);
		if (++n->at == n->row) {
			n->at = 0;
			n->x += n->apart;
		}
	}
}

static Ahead ahead_of(const Kind *kind, const Gemm *g, const Block *b, int64_t col, int64_t from, int64_t k)
{
	Ahead n = { 0 };
	if (g->b.pack || col + kind->nr > b->col + b->cols)
		return n;
	int64_t tiles = (b->rows + kind->mr - 1) / kind->mr, rows = 0;
	n.x = g->b.x + b->batch * g->b.batch + col * g->b.at + from * g->b.k;
	if (g->b.at == 1) {
		n.apart = g->b.k, rows = k;
		n.row = (kind->nr + 15) / 16;
	} else if (g->b.k == 1) {
		n.apart = g->b.at, rows = kind->nr;
		n.row = (k + 15) / 16;
	}
	n.lines = rows * n.row;
	n.each = (n.lines + tiles - 1) / tiles;
	return n;
}

/* All rows of the block times one panel of b.  The last rows have a tile of their own height, so nothing beyond y is written. */
static void panel(const Kind *kind, const Gemm *g, const Block *b, const float *pa, const float *pb, int64_t bs, int64_t k, int64_t col, bool first, Ahead *next)
{
	for (int64_t i = 0; i < b->rows; i += kind->mr) {
		int64_t rows = least(kind->mr, b->rows - i);
		ask(next);
		tile(kind, g, b, kind->tile[rows], pa + i * k, pb, bs, k, b->row + i, rows, col, first);
	}
}

static void block(const Kind *kind, const Gemm *g, const Block *b, float *work)
{
	enum { DONE = 128 };                            /* columns that an epilogue gets at once */
	float *pa = work, *pb = work + GEMM_ROWS * GEMM_K + 32;
	/* Few rows do not pay for a copy of b. */
	bool direct = !g->b.pack && g->b.at == 1 && b->rows <= 2 * kind->mr;
	for (int64_t from = 0; from < g->k || from == 0; from += GEMM_K) {
		int64_t k = least(GEMM_K, g->k - from);
		bool last = from + k >= g->k;
		for (int64_t i = 0; i < b->rows; i += kind->mr) {
			int64_t rows = least(kind->mr, b->rows - i);
			pack(kind, &g->a, pa + i * k, b->batch, b->row + i, rows, rows, from, k);
		}
		for (int64_t j = 0; j < b->cols; j += kind->nr) {
			int64_t cols = least(kind->nr, b->cols - j), col = b->col + j;
			if (direct && cols == kind->nr) {
				panel(kind, g, b, pa, g->b.x + b->batch * g->b.batch + col + from * g->b.k, g->b.k, k, col, from == 0, &(Ahead){ 0 });
			} else {
				pack(kind, &g->b, pb, b->batch, col, cols, kind->nr, from, k);
				Ahead next = ahead_of(kind, g, b, col + kind->nr, from, k);
				panel(kind, g, b, pa, pb, kind->nr, k, col, from == 0, &next);
			}
			int64_t end = j + cols, begin = j / DONE * DONE;
			if (last && g->e && (end == b->cols || end % DONE == 0))
				g->e->run(g->e->arg, g->y, b->batch * g->m + b->row, b->rows, b->col + begin, end - begin);
		}
	}
}

/* ---- splitting ---- */

typedef struct Job { const Gemm *g; const Kind *kind; int64_t rows, cols, nrow, ncol; unsigned char *work; size_t each; } Job;

static int64_t cut(int64_t n, int64_t parts, int64_t unit)
{
	int64_t len = (n + parts - 1) / parts;
	return (len + unit - 1) / unit * unit;
}

static void plan_blocks(Job *j, int nthread)
{
	enum { COLS = 1536 };
	const Gemm *g = j->g;
	int64_t limit = GEMM_ROWS / j->kind->mr * j->kind->mr;
	int64_t row = (g->m + limit - 1) / limit, col = (g->n + COLS - 1) / COLS;
	/* Enough for all threads, as long as a block is worth its packing. */
	while (nthread > 1 && g->batch * row * col < 3 * nthread && (g->n / col > 16 * j->kind->nr || g->m / row > 8 * j->kind->mr)) {
		if (g->n / col > 16 * j->kind->nr)
			col++;
		else
			row++;
	}
	j->rows = cut(g->m, row, j->kind->mr);
	j->cols = cut(g->n, col, 128);
	j->nrow = (g->m + j->rows - 1) / j->rows;
	j->ncol = (g->n + j->cols - 1) / j->cols;
}

static void blocks(const Job *j, int64_t lo, int64_t hi, float *work)
{
	for (int64_t i = lo; i < hi; i++) {
		/* Rows first: the columns of b that a block has read are still near for the next. */
		Block b = { .batch = i / (j->nrow * j->ncol), .row = i % j->nrow * j->rows, .col = i / j->nrow % j->ncol * j->cols };
		b.rows = least(j->rows, j->g->m - b.row);
		b.cols = least(j->cols, j->g->n - b.col);
		block(j->kind, j->g, &b, work);
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

void gemm_one(RtIsa isa, const Gemm *g, float *work)
{
	if (!g->batch || !g->m || !g->n)
		return;
	Job j = { .g = g, .kind = kind_of(isa) };
	plan_blocks(&j, 1);
	blocks(&j, 0, g->batch * j.nrow * j.ncol, work);
}
