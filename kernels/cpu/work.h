/* The scratch that kernels need, as a function of the sizes of a call.
 *
 * sbpcc calls these functions for every kernel call that it prints and plans the largest result (class "workspace" of
 * the memory plan).  At run time a kernel finds that many bytes at c->shared, and each thread at c->work + thread *
 * c->work_each, aligned to a page.  A kernel that comes to need more adds it here, and the plan follows.  Under the
 * address sanitizer the bytes behind the planned ones are poisoned, so that too small a number is found
 * (tests/memory/workspace.sh). */
#ifndef WORK_H
#define WORK_H

#include "gemm.h"
#include "lay.h"
#include "tree.h"

/* The numbers that a thread squares and adds at a time, and how many such blocks a term has. */
enum { K_SQUARES = 16384 };
static inline int64_t k_square_blocks(int64_t n, int64_t parts)
{
	return parts * ((n / parts + K_SQUARES - 1) / K_SQUARES);
}

typedef struct KWork { int64_t shared, each; } KWork;     /* bytes: shared by all threads, of each thread */

/* The blocking of a product m x n over k.  The packed rows of a fill half of a second-level cache of 512 KB.  Each
 * number of b is packed once for a pass of rows, and each of a once for the columns that stay, so both are as large as
 * the third-level cache allows: columns of 1.5 MB, and 6 MB of y that several blocks of k are added to. */
static inline KCut k_cut(int64_t m, int64_t n, int64_t k)
{
	enum { ROWS = 264, COLS = GEMM_COLS, SUMS = COLS << 10, UNIT = 128 };
	int64_t many = m > ROWS ? (m + ROWS - 1) / ROWS : 1, wide = n > COLS ? (n + COLS - 1) / COLS : 1;
	KCut c = { (m + many - 1) / many, m, ((n + wide - 1) / wide + UNIT - 1) / UNIT * UNIT };
	int64_t most = c.cols ? SUMS / c.cols : m;
	if (k > GEMM_K && m > most) {
		int64_t turns = (m + most - 1) / most;
		c.pass = (m + turns - 1) / turns;
	}
	return c;
}

static inline KWork k_work_squares(int64_t blocks)
{
	return (KWork){ blocks * (int64_t)sizeof(double), 0 };
}

static inline KWork k_work_matmul(KCut cut, int64_t n, int64_t k)
{
	return (KWork){ 0, gemm_bytes(cut, n, k) };
}

/* The same where k has chunks: the copies of y in which sums wait count, too. */
static inline KCut k_cut_tree(int64_t m, int64_t n, int64_t k, int64_t chunks)
{
	enum { SUMS = GEMM_COLS << 10 };
	KCut c = k_cut(m, n, k);
	GemmDeep d = gemm_deep(k, chunks);
	int64_t most = c.cols ? SUMS / (1 + d.waits) / c.cols : m;
	if (m > most && d.blocks > 1) {
		int64_t turns = (m + most - 1) / most;
		c.pass = (m + turns - 1) / turns;
	}
	return c;
}

static inline KWork k_work_matmul_tree(KCut cut, int64_t n, int64_t k, int64_t chunks)
{
	return (KWork){ 0, gemm_tree_bytes(cut, n, k, chunks) };
}

/* The scratch of a convolution: planes laid out, or transformed tiles and weights. */
typedef enum { K_CONV, K_CONV_GRAD_X, K_CONV_GRAD_W } KConv;

static inline KWork k_work_conv(KConv way, const KWindow *v, int64_t batch, int64_t groups, int64_t cin, int64_t cout)
{
	if (lay_none(groups, cin, cout))
		return (KWork){ 0, 0 };
	if (!winograd_fits(v, cin, cout))
		return (KWork){ way == K_CONV_GRAD_X ? lay_bytes_g(v, batch, cin, cout)
			: lay_bytes_x(v, lay_images(v, batch), cin), GEMM_WORK };
	bool gx = way == K_CONV_GRAD_X, gw = way == K_CONV_GRAD_W;
	int64_t apart = gx ? winograd_apart(batch, v->in[0], v->in[1]) : winograd_apart(batch, v->out[0], v->out[1]),
		each = winograd_each(apart);
	return (KWork){ gx ? winograd_shared(cout, cin, apart, gw) : winograd_shared(cin, cout, apart, gw),
		gw && each < GEMM_WORK ? GEMM_WORK : each };
}

/* Scratch for waiting sums (tree.h), n numbers each: alone, or (k_work_behind) after the scratch of one chunk. */
static inline KWork k_work_tree(int64_t n, int64_t chunks)
{
	return (KWork){ 4 * n * tree_waits(chunks), 0 };
}

static inline int64_t k_work_behind(KWork w)
{
	return (w.shared + 63) / 64 * 64;
}

/* Whether the gradient of the weight of a convolution in chunks is one product whose k has chunks: it is, if a chunk
 * has few pixels.  Winograd's algorithm would transform a whole weight for each chunk, and separate chunks would go
 * through memory: with 512 x 512 weights and images of 7 x 7 this took 65 ms instead of 20.  The decision depends on
 * the size of a chunk, not on how many chunks a rank has, so that all ranks decide alike. */
static inline bool k_conv_at_once(const KWindow *v, int64_t batch, int64_t groups, int64_t cin, int64_t cout,
	int64_t chunks)
{
	return !lay_none(groups, cin, cout) && batch / chunks * v->out[0] * v->out[1] <= GEMM_K;
}

static inline KWork k_work_conv_tree(const KWindow *v, int64_t batch, int64_t groups, int64_t cin, int64_t cout,
	int64_t chunks)
{
	if (k_conv_at_once(v, batch, groups, cin, cout, chunks)) {
		int64_t n = cin * v->k[0] * v->k[1], k = batch * v->out[0] * v->out[1];
		return (KWork){ lay_bytes_x(v, batch, cin),
			gemm_tree_bytes(k_cut_tree(cout, n, k, chunks), n, k, chunks) };
	}
	KWork w = k_work_conv(K_CONV_GRAD_W, v, batch / chunks, groups, cin, cout);
	return (KWork){ k_work_behind(w) + k_work_tree(groups * cout * cin * v->k[0] * v->k[1], chunks).shared,
		w.each };
}

/* Lists of positions by row (index_tree.c). */
static inline KWork k_work_lists(int64_t rows, int64_t positions)
{
	return (KWork){ 8 * (rows + positions), 0 };
}

/* Blocks of queries and keys, in multiples of tile heights and widths.  Heads wider than a few hundred get smaller
 * blocks, down to one tile.  srow, drow, vrow: the length in scratch of a row of scores, of a query or key, and of a
 * value, rounded up to whole tiles. */
enum { ATTENTION_KEYS = 192, ATTENTION_QUERIES = 168, ATTENTION_QUERIES_GRAD = 84, ATTENTION_ROWS = 14,
	ATTENTION_MOST = 1 << 16 };
typedef struct KBlocks { int64_t queries, keys, srow, drow, vrow; } KBlocks;

static inline KBlocks k_attention_blocks(int64_t d, int64_t dv, bool grad)
{
	int64_t wide = d > dv ? d : dv, fit = (1 << 15) / (wide > 0 ? wide : 1), tile = GEMM_WIDTH;
	int64_t queries = fit < ATTENTION_ROWS ? ATTENTION_ROWS : fit, keys = fit < tile ? tile : fit / tile * tile;
	int64_t most = grad ? ATTENTION_QUERIES_GRAD : ATTENTION_QUERIES;
	queries = queries < most ? queries : most;
	keys = keys < ATTENTION_KEYS ? keys : ATTENTION_KEYS;
	return (KBlocks){ .queries = queries, .keys = keys, .srow = keys + 16, .drow = (d + tile - 1) / tile * tile,
		.vrow = (dv + tile - 1) / tile * tile };
}

/* Forward: keys and values, scores, results.  Backward: also all gradients of a block, and one number per query. */
static inline KWork k_work_attention(int64_t sq, int64_t d, int64_t dv, bool grad)
{
	KBlocks b = k_attention_blocks(d, dv, grad);
	if (!grad)
		return (KWork){ 0, 4 * (b.keys * (d + b.vrow) + b.queries * (b.srow + b.vrow)) };
	return (KWork){ 0,
		4 * (b.keys * (d + dv + 2 * b.drow + b.vrow) + b.queries * (2 * b.drow + b.vrow + 2 * b.srow) + sq) };
}

/* Losses of single rows before they are summed; at most LOSS_ROWS at a time. */
enum { LOSS_ROWS = 1 << 16 };

static inline KWork k_work_loss(int64_t rows, KLoss kind)
{
	return (KWork){ kind == K_LOSS_NONE ? 0 : 4 * (rows < LOSS_ROWS ? rows : LOSS_ROWS), 0 };
}

/* det, cofactor: one matrix. */
static inline KWork k_work_det(int64_t m)
{
	return (KWork){ 0, 8 * m * m };
}

/* Recurrent cells: the number of sequences that go through the steps together; scratch for nine states of each, beside
 * that of a product. */
static inline int64_t k_cell_rows(int64_t batch, int64_t hidden)
{
	int64_t fit = (1 << 15) / hidden, rows = fit < 8 ? 8 : fit > 64 ? 64 : fit;
	return rows < batch ? rows : batch;
}

static inline KWork k_work_cells(int64_t batch, int64_t hidden, KType type)
{
	return (KWork){ 0, type == K_F64 ? 8 * 8 * hidden : GEMM_WORK + 4 * 9 * hidden * k_cell_rows(batch, hidden) };
}

#endif
