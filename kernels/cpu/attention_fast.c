/* Attention in blocks of queries and keys; only one block of the matrix of probabilities exists at a time.  Both
 * directions are products of such blocks:
 *
 *   forward    s = q k'    p = exp(s - top)    y = y f + p v           f rescales when the largest score, top, grows
 *   backward   s = q k'    p = exp(s - lse)    ds = p (dy v' - dy y)   dv += p' dy    dq += ds k    dk += ds' q
 *
 * after M. Rabe and C. Staats, "Self-attention does not need O(n^2) memory", 2021, and T. Dao et al., "FlashAttention",
 * 2022.  Forward, a thread owns a block of queries.  Backward, it owns a head of keys with all their queries: a block
 * of keys stays in cache while the blocks of queries pass by.  Products skip each tile whose scores are all outside of
 * the window. */
#include "gemm.h"
#include "rows.h"
#include "work.h"

#include <string.h>

typedef void Cell(const float *a, int64_t ar, int64_t ak, const float *b, int64_t bs, int64_t k, float *y,
	int64_t yrow, bool add);
#define LANES_ISA 0
#include "attention_tile.h"
#if defined(__x86_64__)
#define LANES_ISA 1
#include "attention_tile.h"
#define LANES_ISA 2
#include "attention_tile.h"
#endif

typedef struct Cells { int64_t mr, nr; Cell *const *of; } Cells;        /* of[rows]: rows 1, 2, 4, 8 and mr */

typedef struct Job {
	Ctx *c;
	const KAttention *a;
	Cells cells;
	float *y, *lse, *dq, *dk, *dv;
	const float *q, *k, *v, *dy, *ky, *klse;
	const void *mask;
	KBlocks cut;
	int64_t blocks;                 /* blocks of queries in a head */
} Job;

static Cells cells_of(RtIsa isa)
{
	static const Cells all[] = {
		{ 4, 8, cells_plain },
#if defined(__x86_64__)
		{ 6, 16, cells_avx2 },
		{ 14, 32, cells_avx512 },
#endif
	};
	size_t i = (size_t)isa;
	return all[i < sizeof all / sizeof all[0] ? i : 0];
}

/* The height of the next tile, when `left` rows are left. */
static int64_t height(const Cells *c, int64_t left)
{
	return left >= c->mr ? c->mr : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

typedef struct Span { int64_t lo, hi; } Span;

/* The range from .. to - 1 relative to `at`, cut to 0 .. n - 1. */
static Span clip(int64_t from, int64_t to, int64_t at, int64_t n)
{
	int64_t lo = least(n, most(0, from - at));
	return (Span){ lo, most(lo, least(n, to - at)) };
}

/* Of keys key .. key + n - 1, those that any of queries i .. i + count - 1 sees. */
static Span keys_of(const KAttention *a, int64_t i, int64_t count, int64_t key, int64_t n)
{
	return clip(i - a->left, i + count + a->right, key, n);
}

/* Of queries i .. i + n - 1, those that see any of keys key .. key + count - 1. */
static Span queries_of(const KAttention *a, int64_t key, int64_t count, int64_t i, int64_t n)
{
	return clip(key - a->right, key + count + a->left, i, n);
}

/* A block: queries i .. i + n - 1 and keys key .. key + m - 1; rows of scores are cut.srow apart. */
typedef struct Pair { int64_t i, n, key, m; } Pair;

/* A few rows of y = a b (or y += a b), in columns cols, rounded out to whole tiles; b lies in panels of tile width. */
static void strip(const Job *j, int64_t rows, const float *a, int64_t ar, int64_t ak, const float *b, int64_t bs,
	int64_t panel, int64_t k, float *y, int64_t yrow, Span cols, bool add)
{
	int64_t nr = j->cells.nr;
	for (int64_t p = cols.lo / nr; p * nr < cols.hi; p++)
		j->cells.of[rows](a, ar, ak, b + p * panel, bs, k, y + p * nr, yrow, add);
}

/* s = x z', for the tiles inside the window; z is transposed into panels. */
static void times_keys(const Job *j, float *s, const float *x, int64_t xrow, const float *z, int64_t width,
	const Pair *p)
{
	int64_t nr = j->cells.nr, rows;
	for (int64_t r = 0; r < p->n; r += rows) {
		rows = height(&j->cells, p->n - r);
		strip(j, rows, x + r * xrow, xrow, 1, z, nr, width * nr, width, s + r * j->cut.srow, j->cut.srow,
			keys_of(j->a, p->i + r, rows, p->key, p->m), false);
	}
}

/* y += s z, summed over keys. */
static void over_keys(const Job *j, float *y, const float *s, const float *z, int64_t zrow, int64_t width,
	const Pair *p)
{
	int64_t srow = j->cut.srow, rows;
	for (int64_t r = 0; r < p->n; r += rows) {
		rows = height(&j->cells, p->n - r);
		Span k = keys_of(j->a, p->i + r, rows, p->key, p->m);
		if (k.lo < k.hi)
			strip(j, rows, s + r * srow + k.lo, srow, 1, z + k.lo * zrow, zrow, j->cells.nr, k.hi - k.lo,
				y + r * zrow, zrow, (Span){ 0, width }, true);
	}
}

/* y += s' z, summed over queries. */
static void over_queries(const Job *j, float *y, const float *s, const float *z, int64_t zrow, int64_t width,
	const Pair *p)
{
	int64_t srow = j->cut.srow, rows;
	for (int64_t r = 0; r < p->m; r += rows) {
		rows = height(&j->cells, p->m - r);
		Span q = queries_of(j->a, p->key + r, rows, p->i, p->n);
		if (q.lo < q.hi)
			strip(j, rows, s + q.lo * srow + r, 1, srow, z + q.lo * zrow, zrow, j->cells.nr, q.hi - q.lo,
				y + r * zrow, zrow, (Span){ 0, width }, true);
	}
}

/* Transposes rows of x into panels of columns. */
static void turn_panels(const Job *j, float *to, const float *x, int64_t row, int64_t rows, int64_t width)
{
	int64_t nr = j->cells.nr;
	for (int64_t r = 0; r < rows; r += nr)
		gemm_turn(j->c->isa, to + r * width, x + r * row, row, least(nr, rows - r), nr, width);
}

static void copy_rows(float *to, int64_t torow, const float *x, int64_t row, int64_t rows, int64_t width)
{
	for (int64_t r = 0; r < rows; r++)
		memcpy(to + r * torow, x + r * row, (size_t)width * sizeof *to);
}

static void add_rows(float *to, int64_t torow, const float *x, int64_t row, int64_t rows, int64_t width)
{
	for (int64_t r = 0; r < rows; r++)
		K_VECTOR for (int64_t e = 0; e < width; e++)
			to[r * torow + e] += x[r * row + e];
}

/* Not compiled for each instruction set: soft caps are rare. */
static void cap(const KAttention *a, float *s, float *slope, int64_t n)
{
	for (int64_t e = 0; e < n; e++) {
		float t = fast_tanhf(a->scale * s[e] / a->softcap);
		s[e] = a->softcap * t;
		if (slope)
			slope[e] = 1 - t * t;
	}
}

/* Turns the products of a query with the keys that it sees into scores; slope receives the derivative of the cap.
 * Returns a factor that the caller must still multiply the scores by. */
K_LOOP float scores(const Job *j, float *s, float *slope, int64_t b, int64_t h, int64_t i, int64_t key, Span see)
{
	const KAttention *a = j->a;
	int64_t at = b * a->m.batch + h * a->m.head + i * a->m.row + key * a->mcol;
	if (a->mask == K_MASK_NONE && !(a->softcap > 0) && a->scale > 0)
		return a->scale;
	if (a->softcap > 0)
		cap(a, s + see.lo, slope ? slope + see.lo : NULL, see.hi - see.lo);
	else
		for (int64_t e = see.lo; e < see.hi; e++)
			s[e] *= a->scale;
	if (a->mask == K_MASK_ADD)
		for (int64_t e = see.lo; e < see.hi; e++)
			s[e] += ((const float *)j->mask)[at + e * a->mcol];
	else if (a->mask == K_MASK_BOOL)
		for (int64_t e = see.lo; e < see.hi; e++)
			s[e] = ((const uint8_t *)j->mask)[at + e * a->mcol] ? s[e] : -INFINITY;
	return 1;
}

/* s, rounded out to whole vectors, so that loops have no remainder. */
static Span whole(Span s)
{
	return (Span){ s.lo / K_LANES * K_LANES, (s.hi + K_LANES - 1) / K_LANES * K_LANES };
}

/* Sets the elements of `row` outside of `see` to x. */
static void fill(float *s, Span row, Span see, float x)
{
	for (int64_t e = row.lo; e < see.lo; e++)
		s[e] = x;
	for (int64_t e = see.hi; e < row.hi; e++)
		s[e] = x;
}

/* One more block of scores for a query: replaces them by exponentials, and rescales the earlier sums if the maximum
 * grows. */
K_LOOP void soften(float *s, int64_t n, float scale, float *top, float *sum, float *y, int64_t dv)
{
	float now = row_most(s, n) * scale;
	now = now > *top ? now : *top;
	if (now == -INFINITY) {
		memset(s, 0, (size_t)n * sizeof *s);
		return;
	}
	if (now > *top) {
		float f = fast_expf(*top - now);
		*sum *= f;
		K_VECTOR for (int64_t e = 0; e < dv; e++)
			y[e] *= f;
		*top = now;
	}
	*sum += row_exps(s, n, scale, now, true, s);
}

K_LOOP void forward_block(const Job *j, int64_t b, int64_t h, int64_t i, float *work)
{
	const KAttention *a = j->a;
	int64_t n = least(j->cut.queries, a->sq - i), kv = h / (a->heads / a->kvheads), vrow = j->cut.vrow;
	float *kt = work, *vr = kt + j->cut.keys * a->d, *s = vr + j->cut.keys * vrow,
		*y = s + j->cut.queries * j->cut.srow, top[ATTENTION_QUERIES], sum[ATTENTION_QUERIES];
	const float *q = j->q + b * a->q.batch + h * a->q.head + i * a->q.row,
		*k = j->k + b * a->k.batch + kv * a->k.head, *v = j->v + b * a->v.batch + kv * a->v.head;
	memset(y, 0, (size_t)(n * vrow) * sizeof *y);
	for (int64_t r = 0; r < n; r++)
		top[r] = -INFINITY, sum[r] = 0;
	Span all = keys_of(a, i, n, 0, a->sk);
	for (int64_t key = all.lo; key < all.hi; key += j->cut.keys) {
		Pair p = { i, n, key, least(j->cut.keys, all.hi - key) };
		turn_panels(j, kt, k + key * a->k.row, a->k.row, p.m, a->d);
		copy_rows(vr, vrow, v + key * a->v.row, a->v.row, p.m, a->dv);
		times_keys(j, s, q, a->q.row, kt, a->d, &p);
		for (int64_t r = 0; r < n; r++) {
			Span see = keys_of(a, i + r, 1, key, p.m), round = whole(see);
			float *at = s + r * j->cut.srow, scale = scores(j, at, NULL, b, h, i + r, key, see);
			fill(at, round, see, -INFINITY);
			soften(at + round.lo, round.hi - round.lo, scale, &top[r], &sum[r], y + r * vrow, a->dv);
			fill(at, (Span){ 0, p.m }, see, 0);
		}
		over_keys(j, y, s, vr, vrow, a->dv, &p);
	}
	for (int64_t r = 0; r < n; r++) {
		float *to_y = j->y + b * a->y.batch + h * a->y.head + (i + r) * a->y.row,
			f = sum[r] > 0 ? 1 / sum[r] : 0;
		K_VECTOR for (int64_t e = 0; e < a->dv; e++)
			to_y[e] = y[r * vrow + e] * f;
		if (j->lse)
			j->lse[(b * a->heads + h) * a->sq + i + r] = sum[r] > 0 ? top[r] + logf(sum[r]) : INFINITY;
	}
}

static float *work_of(const Job *j, int thread)
{
	return (float *)(void *)(j->c->work + (size_t)thread * j->c->work_each);
}

K_LOOP void forward(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	for (int64_t t = lo; t < hi; t++) {
		int64_t head = t / j->blocks;
		forward_block(j, head / j->a->heads, head % j->a->heads, t % j->blocks * j->cut.queries,
			work_of(j, thread));
	}
}
K_EACH_ISA(forward)

/* Backward, one head: the operands and results of a block of keys, then of a block of queries. */
typedef struct Back {
	int64_t b, h;
	Pair p;
	float *kt, *vt, *kr, *dk, *dv;  /* keys and values in panels, keys in rows, gradients */
	float *qr, *gr, *dq;            /* queries and dy in rows, the gradient of queries */
	float *s, *ds, *total;          /* total: the sum of dy y of each query of the head */
} Back;

/* The probabilities s, and the gradients ds of the scores. */
K_LOOP void back_scores(const Job *j, const Back *t)
{
	const KAttention *a = j->a;
	const Pair *p = &t->p;
	float slope[ATTENTION_KEYS];
	times_keys(j, t->s, t->qr, j->cut.drow, t->kt, a->d, p);
	times_keys(j, t->ds, t->gr, j->cut.vrow, t->vt, a->dv, p);
	for (int64_t r = 0; r < p->n; r++) {
		Span see = keys_of(a, p->i + r, 1, p->key, p->m), round = whole(see);
		float *s = t->s + r * j->cut.srow, *ds = t->ds + r * j->cut.srow,
			lse = j->klse[(t->b * a->heads + t->h) * a->sq + p->i + r];
		float scale = a->scale, total = t->total[p->i + r],
			each = scores(j, s, slope, t->b, t->h, p->i + r, p->key, see);
		K_VECTOR for (int64_t e = round.lo; e < round.hi; e++) {
			s[e] = fast_exp_belowf(fmaf(s[e], each, -lse));
			ds[e] = scale * s[e] * (ds[e] - total);
		}
		if (a->softcap > 0)
			for (int64_t e = see.lo; e < see.hi; e++)
				ds[e] = s[e] > 0 ? ds[e] * slope[e] : 0;
		fill(s, (Span){ 0, p->m }, see, 0);
		fill(ds, (Span){ 0, p->m }, see, 0);
	}
}

K_LOOP void back_block(const Job *j, const Back *t, const float *q, const float *dy, float *dq)
{
	const KAttention *a = j->a;
	const Pair *p = &t->p;
	int64_t drow = j->cut.drow, vrow = j->cut.vrow;
	copy_rows(t->qr, drow, q + p->i * a->q.row, a->q.row, p->n, a->d);
	copy_rows(t->gr, vrow, dy + p->i * a->y.row, a->y.row, p->n, a->dv);
	back_scores(j, t);
	memset(t->dq, 0, (size_t)(p->n * drow) * sizeof *t->dq);
	over_keys(j, t->dq, t->ds, t->kr, drow, a->d, p);
	add_rows(dq + p->i * a->q.row, a->q.row, t->dq, drow, p->n, a->d);
	over_queries(j, t->dv, t->s, t->gr, vrow, a->dv, p);
	over_queries(j, t->dk, t->ds, t->qr, drow, a->d, p);
}

/* The gradients of head h: all its queries, and all keys that they see. */
K_LOOP void back_head(const Job *j, int64_t b, int64_t h, bool add, float *work)
{
	const KAttention *a = j->a;
	const KBlocks *c = &j->cut;
	int64_t kv = h / (a->heads / a->kvheads), yi = b * a->y.batch + h * a->y.head,
		qi = b * a->q.batch + h * a->q.head;
	const float *dy = j->dy + yi, *y = j->ky + yi;
	Back t = { .b = b, .h = h, .kt = work };
	t.vt = t.kt + c->keys * a->d, t.kr = t.vt + c->keys * a->dv, t.dk = t.kr + c->keys * c->drow,
		t.dv = t.dk + c->keys * c->drow;
	t.qr = t.dv + c->keys * c->vrow, t.gr = t.qr + c->queries * c->drow, t.dq = t.gr + c->queries * c->vrow;
	t.s = t.dq + c->queries * c->drow, t.ds = t.s + c->queries * c->srow, t.total = t.ds + c->queries * c->srow;
	for (int64_t r = 0; r < a->sq; r++) {
		t.total[r] = row_sum(dy + r * a->y.row, y + r * a->y.row, a->dv);
		memset(j->dq + qi + r * a->q.row, 0, (size_t)a->d * sizeof *j->dq);
	}
	for (int64_t key = 0; key < a->sk; key += c->keys) {
		int64_t kj = b * a->k.batch + kv * a->k.head + key * a->k.row,
			vj = b * a->v.batch + kv * a->v.head + key * a->v.row, m = least(c->keys, a->sk - key);
		turn_panels(j, t.kt, j->k + kj, a->k.row, m, a->d);
		turn_panels(j, t.vt, j->v + vj, a->v.row, m, a->dv);
		copy_rows(t.kr, c->drow, j->k + kj, a->k.row, m, a->d);
		memset(t.dk, 0, (size_t)(m * c->drow) * sizeof *t.dk);
		memset(t.dv, 0, (size_t)(m * c->vrow) * sizeof *t.dv);
		Span see = queries_of(a, key, m, 0, a->sq);
		for (int64_t i = see.lo; i < see.hi; i += c->queries) {
			t.p = (Pair){ i, least(c->queries, see.hi - i), key, m };
			back_block(j, &t, j->q + qi, dy, j->dq + qi);
		}
		(add ? add_rows : copy_rows)(j->dk + kj, a->k.row, t.dk, c->drow, m, a->d);
		(add ? add_rows : copy_rows)(j->dv + vj, a->v.row, t.dv, c->vrow, m, a->dv);
	}
}

K_LOOP void backward(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *j = arg;
	int64_t each = j->a->heads / j->a->kvheads;
	for (int64_t t = lo; t < hi; t++)
		for (int64_t h = 0; h < each; h++)
			back_head(j, t / j->a->kvheads, t % j->a->kvheads * each + h, h > 0, work_of(j, thread));
}
K_EACH_ISA(backward)

static int cut(Ctx *c, Job *j, bool grad)
{
	int64_t wide = most(1, most(j->a->d, j->a->dv));
	if (wide > ATTENTION_MOST)
		return rt_error(c, RT_PLAN, "a head of width %lld is wider than attention is made for",
			(long long)wide);
	j->cut = k_attention_blocks(j->a->d, j->a->dv, grad);
	j->cells = cells_of(c->isa);
	j->blocks = (j->a->sq + j->cut.queries - 1) / j->cut.queries;
	return 0;
}
int k_attention_f32(Ctx *c, float *y, float *lse, const float *q, const float *k, const float *v, const void *mask,
	const KAttention *a)
{
	Job j = { .c = c, .a = a, .y = y, .lse = lse, .q = q, .k = k, .v = v, .mask = mask };
	int code = cut(c, &j, false);
	if (!code)
		rt_parallel(c, a->batch * a->heads * j.blocks, 1, K_PICK(c, forward), &j);
	return code;
}

int k_attention_grad_f32(Ctx *c, float *dq, float *dk, float *dv, const float *q, const float *k, const float *v,
	const void *mask, const float *y, const float *lse, const float *dy, const KAttention *a)
{
	Job j = { .c = c, .a = a, .dq = dq, .dk = dk, .dv = dv, .q = q, .k = k, .v = v, .mask = mask, .ky = y,
		.klse = lse, .dy = dy };
	int code = cut(c, &j, true);
	if (!code)
		rt_parallel(c, a->batch * a->kvheads, 1, K_PICK(c, backward), &j);
	return code;
}

/* ---- rotary ---- */

typedef struct Turns { float *y; const float *x, *cosine, *sine; const int64_t *position; const KRotary *r; } Turns;

K_LOOP void turns(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Turns *t = arg;
	const KRotary *r = t->r;
	int64_t half = r->rot / 2;
	(void)thread;
	for (int64_t k = lo; k < hi; k++) {
		int64_t s = k % r->seq, h = k / r->seq % r->heads, b = k / r->seq / r->heads,
			at = b * r->x.batch + h * r->x.head + s * r->x.row;
		int64_t angle = (t->position ? t->position[b * r->seq + s] : b * r->seq + s) * half;
		const float *x = t->x + at, *co = t->cosine + angle, *si = t->sine + angle;
		float *y = t->y + at;
		if (r->interleaved)
			for (int64_t e = 0; e < half; e++) {
				float u = x[2 * e], w = x[2 * e + 1];
				y[2 * e] = co[e] * u - si[e] * w;
				y[2 * e + 1] = si[e] * u + co[e] * w;
			}
		else
			K_VECTOR for (int64_t e = 0; e < half; e++) {
				float u = x[e], w = x[e + half];
				y[e] = co[e] * u - si[e] * w;
				y[e + half] = si[e] * u + co[e] * w;
			}
		for (int64_t e = 2 * half; e < r->width; e++)
			y[e] = x[e];
	}
}
K_EACH_ISA(turns)

int k_rotary_f32(Ctx *c, float *y, const float *x, const float *cosine, const float *sine, const int64_t *position,
	const KRotary *r)
{
	for (int64_t i = 0; position && i < r->batch * r->seq; i++)
		if (position[i] < 0 || position[i] >= r->positions)
			return rt_error(c, RT_DATA, "position %lld is outside of the %lld that the cache holds",
				(long long)position[i], (long long)r->positions);
	Turns t = { .y = y, .x = x, .cosine = cosine, .sine = sine, .position = position, .r = r };
	rt_parallel(c, r->batch * r->heads * r->seq, 1 + 4096 / (r->width + 1), K_PICK(c, turns), &t);
	return 0;
}
