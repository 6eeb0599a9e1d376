/* Products whose k is cut into chunks; part of gemm.c.
 *
 * So that 1, 2, 4 or 8 ranks give the same bits, k is cut into `chunks` chunks of equal length.  Each chunk is summed
 * separately, and the sums are combined as a balanced tree: a rank that has half of the chunks computes exactly one
 * subtree.
 *
 *        (0 + 1) + (2 + 3)            waiting sums: one after chunk 0, one after chunk 1 (of 0 and 1),
 *                                     two after chunk 2, none after chunk 3
 *
 * A waiting sum is a copy of the tile.  Within one block of k the sums wait in registers as far as they fit, else in a
 * few cache lines beside the tile, and never reach memory.  Across blocks of k they wait in scratch, in copies of the
 * block of y.  The binary digits of the number of a block of k (or of a long chunk) say which copies are in use, as in
 * a binary counter. */

/* Block i of k: where it begins, and how long it is. */
static int64_t block_from(const Gemm *g, int64_t i, int64_t *len)
{
	if (g->chunks <= 1) {
		*len = least(GEMM_K, g->k - i * GEMM_K);
		return i * GEMM_K;
	}
	GemmDeep d = gemm_deep(g->k, g->chunks);
	int64_t piece = i % d.pieces, from = d.pieces > 1 ? piece * d.len : 0;
	*len = d.pieces > 1 ? least(d.len, d.chunk - from) : d.len;
	return i / d.pieces * d.each * d.chunk + from;
}

/* One tile: to `to` if that has room for all columns of the tile, else through a small buffer. */
static void tree_tile(const Kind *kind, const Gemm *g, const Block *b, const GemmTree *t,
	const float *pa, const float *pb, int64_t bs, int64_t row, int64_t rows, int64_t col, int64_t at, float *to,
	int64_t torow, float *keep)
{
	int64_t cols = least(kind->nr, b->col + b->cols - col);
	float sum[14 * GEMM_WIDTH];
	if (to) {
		kind->tree[rows](pa, pb, bs, t, at, to, torow, keep);
		return;
	}
	kind->tree[rows](pa, pb, bs, t, at, sum, kind->nr, keep);
	float *y = g->y + b->batch * g->ybatch + row * g->yrow + col;
	for (int64_t i = 0; i < rows; i++)
		memcpy(y + i * g->yrow, sum + i * kind->nr, (size_t)cols * sizeof *y);
}

/* Where sums of a block of y wait: copy l begins at wait + l * size, its rows are `row` apart; the rows of this pass
 * begin `skip` rows into it. */
typedef struct Waiting { float *wait; int64_t size, row, skip; GemmDeep d; } Waiting;

/* What block i of k is added to (t->add); returns the copy that receives the sum, -1: y. */
static int tree_plan(const Waiting *w, int64_t i, int64_t len, GemmTree *t)
{
	const GemmDeep *d = &w->d;
	int64_t group = i / d->pieces, piece = i % d->pieces;
	int level = __builtin_ctzll(~(unsigned long long)group), done = piece + 1 == d->pieces;
	*t = (GemmTree){ .chunks = d->each, .len = len / d->each, .row = w->row };
	if (piece)
		t->add[t->nadd++] = w->wait + level * w->size;
	for (int l = 0; l < level && done; l++)
		t->add[t->nadd++] = w->wait + l * w->size;
	return done && level == d->levels ? -1 : level;
}

/* The rows of one packing of a, times block i of k; as `pass` of gemm.c. */
static void tree_pass(const Kind *kind, const Gemm *g, const Block *b, float *pa, float *pb, int64_t apart,
	bool packed, int64_t i, const Waiting *w)
{
	enum { DONE = 128 };
	int64_t k, from = block_from(g, i, &k), mr = kind->mr;
	bool rows = !g->b.pack && g->b.at == 1, few = rows && !apart && b->rows <= 2 * mr, last = i + 1 == w->d.blocks;
	GemmTree t;
	int level = tree_plan(w, i, k, &t);
	pack_a(kind, g, b, pa, from, k);
	for (int64_t j = 0; j < b->cols; j += kind->nr) {
		int64_t cols = least(kind->nr, b->cols - j), col = b->col + j, bs = kind->nr, at = w->skip * w->row + j;
		float *panel = pb + j * apart, *keep = NULL;
		const float *from_b = panel;
		Ahead next = few ? (Ahead){ 0 }
			: ahead_of(kind, g, b, packed ? panel + kind->nr * apart : NULL, col + kind->nr, from, k);
		if (!packed && rows && cols == kind->nr) {
			from_b = g->b.x + b->batch * g->b.batch + col + from * g->b.k;
			bs = g->b.k;
			keep = few ? NULL : panel;
		} else if (!packed) {
			pack(kind, &g->b, panel, b->batch, col, cols, kind->nr, from, k);
		}
		float *to = level >= 0 ? w->wait + level * w->size + at : address(kind, g, b, b->row, col);
		int64_t torow = level >= 0 ? w->row : g->yrow;
		int64_t r = 0;
		if (keep) {
			tree_tile(kind, g, b, &t, pa, from_b, bs, b->row, mr, col, at, to, torow, keep);
			from_b = keep, bs = kind->nr, r = mr;
		}
		if (to) {
			kind->tree_strip((b->rows - r) / mr, pa + r * k, from_b, bs, &t, at + r * w->row,
				to + r * torow, torow, &next);
			r += (b->rows - r) / mr * mr;
		}
		for (; r < b->rows; r += mr) {
			ask(&next);
			tree_tile(kind, g, b, &t, pa + r * k, from_b, bs, b->row + r, least(mr, b->rows - r), col,
				at + r * w->row, to ? to + r * torow : NULL, torow, NULL);
		}
		int64_t end = j + cols, begin = j / DONE * DONE;
		if (last && g->e && (end == b->cols || end % DONE == 0))
			g->e->run(g->e->arg, g->y, b->batch * g->m + b->row, b->rows, b->col + begin, end - begin);
	}
}

static void tree_block(const Kind *kind, const Gemm *g, const Block *b, int64_t rows, float *work)
{
	Waiting w = { .row = (b->cols + kind->nr - 1) / kind->nr * kind->nr, .d = gemm_deep(g->k, g->chunks) };
	float *pa = work, *pb = work + GEMM_ROWS * GEMM_K + 32;
	int64_t apart = b->rows > rows ? w.d.len : 0;
	w.size = w.row * b->rows;
	w.wait = pb + w.d.len * (apart ? w.row : GEMM_WIDTH) + 16;
	for (int64_t i = 0; i < w.d.blocks; i++)
		for (int64_t r = 0; r < b->rows; r += rows) {
			Block some = { .batch = b->batch, .row = b->row + r, .rows = least(rows, b->rows - r),
				.col = b->col, .cols = b->cols };
			int64_t len, from = block_from(g, i, &len);
			w.skip = r;
			if (g->packed)
				tree_pass(kind, g, &some, pa,
					(float *)g->packed + panel_at(kind, g, b->col, from, len), len, true, i, &w);
			else
				tree_pass(kind, g, &some, pa, pb, apart, r > 0, i, &w);
		}
}
