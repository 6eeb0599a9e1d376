/* Routes: which elements a rank takes from which peer in each transfer, computed once, at the start, from the forms of
 * both sides.
 *
 *   form_pieces      pieces: sets of indices, one per axis, that a peer holds and this rank needs, in the order of
 *                    terms
 *   blocks           each piece as nested loops over both shards, with consecutive elements innermost
 *
 * A transport waits for peers and gives the addresses of their values; this file moves and combines. */
#include "comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- combining ---- */

#define COMBINE(NAME, T, EXPR) \
	static void NAME(void *to, const void *from, int64_t n) \
	{ \
		T *restrict y = to; \
		const T *restrict x = from; \
		for (int64_t i = 0; i < n; i++) { \
			T a = y[i], b = x[i]; \
			y[i] = (T)(EXPR); \
		} \
	}
#define COMBINE_REST(N, T) \
	COMBINE(max_##N, T, b > a || b != b ? b : a) \
	COMBINE(min_##N, T, b < a || b != b ? b : a) \
	COMBINE(prod_##N, T, a *b)
#define COMBINE_ALL(N, T) \
	COMBINE(sum_##N, T, a + b) \
	COMBINE_REST(N, T)
COMBINE_REST(f32, float)
COMBINE_ALL(f64, double)
COMBINE_ALL(i64, int64_t)
COMBINE_ALL(i32, int32_t)
COMBINE_ALL(u8, uint8_t)

/* y = a + b of floats, the usual case: each term is read once.  y may be a or b. */
typedef float Floats __attribute__((vector_size(16), aligned(4), may_alias));

enum { AHEAD = 4096 };                  /* prefetch distance in bytes */

/* Copies data that another processor wrote.  It uses vectors, because `rep movsb`, which libraries use for such sizes,
 * reads from the cache of another processor at a fifth of the speed (2.8 against 14 GB/s here). */
static void copy_peer(void *to, const void *from, size_t bytes)
{
	typedef unsigned char Some __attribute__((vector_size(16), aligned(1), may_alias));
	char *y = to;
	const char *x = from;
	size_t i = 0;
	for (; i + 64 <= bytes; i += 64) {
		__builtin_prefetch(x + i + AHEAD);
		for (size_t k = i; k < i + 64; k += 16)
			*(Some *)(void *)(y + k) = *(const Some *)(const void *)(x + k);
	}
	if (i < bytes)
		memcpy(y + i, x + i, bytes - i);
}

static void sum_two(void *to, const void *first, const void *second, int64_t n)
{
	float *y = to;
	const float *a = first, *b = second;
	int64_t i = 0;
	for (; i + 16 <= n; i += 16) {
		__builtin_prefetch(a + i + AHEAD / sizeof(float));
		__builtin_prefetch(b + i + AHEAD / sizeof(float));
		for (int64_t k = i; k < i + 16; k += 4)
			*(Floats *)(void *)(y + k) = *(const Floats *)(const void *)(a + k) +
				*(const Floats *)(const void *)(b + k);
	}
	for (; i < n; i++)
		y[i] = a[i] + b[i];
}

static void sum_f32(void *y, const void *x, int64_t n)
{
	sum_two(y, y, x, n);
}

#define ROW(N) { sum_##N, max_##N, min_##N, prod_##N }
static RtCombine *const combine[RT_TYPES][4] = { [RT_F32] = ROW(f32), [RT_F64] = ROW(f64), [RT_I64] = ROW(i64),
	[RT_I32] = ROW(i32), [RT_U8] = ROW(u8), [RT_BOOL] = ROW(u8) };

/* to = a and b combined; to may be a, and in sums of floats b. */
static void combine_two(const RtRoute *r, void *to, const void *a, const void *b, int64_t n)
{
	if (r->combine == sum_f32) {
		sum_two(to, a, b, n);
		return;
	}
	if (to != a)
		memmove(to, a, (size_t)n * r->elem);
	r->combine(to, b, n);
}

enum { CHUNK = 8192 };                  /* bytes that stay in the cache while all terms are combined */

static const void *combine_tree(const RtRoute *r, void *to, const void *const *x, int n, size_t skip, int64_t k);

/* More than two terms need a buffer for the second half. */
static __attribute__((noinline)) void combine_halves(const RtRoute *r, void *to, const void *const *x, int half, int n,
	size_t skip, int64_t k)
{
	_Alignas(64) char room[CHUNK];
	const void *a = combine_tree(r, to, x, half, skip, k), *b = combine_tree(r, room, x + half, n - half, skip, k);
	combine_two(r, to, a, b, k);
}

/* Combines the terms of k elements as a tree: the first half, a power of two, then the others, then both.  Returns the
 * address of the result: of a single term its own, else `to`. */
static const void *combine_tree(const RtRoute *r, void *to, const void *const *x, int n, size_t skip, int64_t k)
{
	int half = 1;
	if (n == 1)
		return (const char *)x[0] + skip;
	while (2 * half < n)
		half *= 2;
	if (n == 2)
		combine_two(r, to, (const char *)x[0] + skip, (const char *)x[1] + skip, k);
	else
		combine_halves(r, to, x, half, n, skip, k);
	return to;
}

/* The same if the result overwrites a term that is yet to be read. */
static __attribute__((noinline)) void combine_aside(const RtRoute *r, void *to, const void *const *x, int n,
	size_t skip, int64_t k)
{
	_Alignas(64) char room[CHUNK];
	const void *sum = combine_tree(r, room, x, n, skip, k);
	if (sum != to)
		memmove(to, sum, (size_t)k * r->elem);
}

/* Two ranks a + b, four (a + b) + (c + d): one rank of two computes the same sum as two ranks of four, so the result
 * can be independent of the number of ranks (--deterministic=any-ranks). */
void rt_route_sum(const RtRoute *r, void *y, const void *const *x, int n, int64_t count)
{
	bool aside = false;
	for (int i = r->combine == sum_f32 ? 2 : 1; i < n; i++)
		aside |= x[i] == y;             /* a term that is yet to be read must not be overwritten */
	int64_t chunk = CHUNK / (int64_t)r->elem;
	for (int64_t at = 0; at < count; at += chunk) {
		int64_t k = count - at < chunk ? count - at : chunk;
		size_t skip = (size_t)at * r->elem;
		char *to = (char *)y + skip;
		if (aside) {
			combine_aside(r, to, x, n, skip, k);
			continue;
		}
		const void *sum = combine_tree(r, to, x, n, skip, k);
		if (sum != to)
			memmove(to, sum, (size_t)k * r->elem);
	}
}

static FormReduce reduce_of(const Form *f)
{
	int how = form_reduction(f);
	return how < 0 ? FORM_SUM : (FormReduce)how;
}

#define NEUTRAL(T, ...) \
	{ \
		const T v[] = { __VA_ARGS__ }; \
		memcpy(one, &v[how], sizeof(T)); \
		break; \
	}

/* The neutral element of a reduction; of sums it is zero in every type. */
static void neutral(unsigned char one[8], RtType t, FormReduce how)
{
	memset(one, 0, 8);
	switch (t) {
	case RT_F32: NEUTRAL(float, 0, -INFINITY, INFINITY, 1)
	case RT_F64: NEUTRAL(double, 0, -(double)INFINITY, (double)INFINITY, 1)
	case RT_I64: NEUTRAL(int64_t, 0, INT64_MIN, INT64_MAX, 1)
	case RT_I32: NEUTRAL(int32_t, 0, INT32_MIN, INT32_MAX, 1)
	case RT_BOOL: NEUTRAL(uint8_t, 0, 0, 1, 1)
	default: NEUTRAL(uint8_t, 0, 0, UINT8_MAX, 1)
	}
}

void rt_fill(void *y, RtType t, FormReduce how, int64_t n)
{
	unsigned char one[8];
	size_t w = rt_width(t);
	neutral(one, t, how);
	if (how == FORM_SUM)
		memset(y, 0, (size_t)n * w);
	for (int64_t i = 0; i < n && how != FORM_SUM; i++)
		memcpy((char *)y + (size_t)i * w, one, w);
}

/* ---- blocks ---- */

typedef struct Build {
	Ctx *c;
	RtRoute *r;
	const Form *from;
	const FormPiece *p;
	int64_t from_step[RT_AXES], to_step[RT_AXES];
	int cell, each, terms;          /* pieces of the same elements: their first block, blocks of each, how many */
} Build;

/* A block under construction, with room for all loops. */
typedef struct Draft { RtBlock b; RtLoop loop[RT_LOOPS]; } Draft;

/* Adds an innermost loop; it is merged with the last one if both sides continue without a gap. */
static void add_loop(Draft *d, int64_t len, int64_t from, int64_t to)
{
	if (len == 1)
		return;
	RtLoop *last = &d->loop[d->b.n - 1];
	if (d->b.n && last->from_step == len * from && last->to_step == len * to)
		*last = (RtLoop){ last->len * len, from, to };
	else
		d->loop[d->b.n++] = (RtLoop){ len, from, to };
}

static int add_block(Build *u, const Draft *d)
{
	RtRoute *r = u->r;
	RtBlock b = d->b;
	b.run = 1;
	if (b.n && d->loop[b.n - 1].from_step == 1 && d->loop[b.n - 1].to_step == 1)
		b.run = d->loop[--b.n].len;
	RtBlock *more = realloc(r->block, (size_t)(r->nblock + 1) * sizeof *more);
	if (!more)
		return -1;
	r->block = more;
	b.loop = b.n ? malloc((size_t)b.n * sizeof *b.loop) : NULL;
	if (b.n && !b.loop)
		return -1;
	if (b.n)
		memcpy(b.loop, d->loop, (size_t)b.n * sizeof *b.loop);
	r->block[r->nblock++] = b;
	return 0;
}

/* Runs of an axis with equal lengths and distances become a loop; others become separate blocks. */
static int expand(Build *u, int axis, const Draft *d)
{
	if (axis == u->p->naxis)
		return add_block(u, d);
	const FormMeet *m = u->p->axis[axis].meet;
	int n = u->p->axis[axis].n;
	int64_t f = u->from_step[axis], t = u->to_step[axis];
	bool even = true;
	for (int i = 1; i < n; i++)
		even &= m[i].len == m[0].len && m[i].from - m[i - 1].from == m[1].from - m[0].from &&
			m[i].to - m[i - 1].to == m[1].to - m[0].to;
	for (int i = 0; i < (even ? 1 : n); i++) {
		Draft next = *d;
		next.b.from += m[i].from * f;
		next.b.to += m[i].to * t;
		if (even && n > 1)
			add_loop(&next, n, (m[1].from - m[0].from) * f, (m[1].to - m[0].to) * t);
		add_loop(&next, m[i].len, f, t);
		if (expand(u, axis + 1, &next))
			return -1;
	}
	return 0;
}

static int add_blocks(Build *u)
{
	const FormPiece *p = u->p;
	for (int a = p->naxis - 1; a >= 0; a--) {
		bool last = a == p->naxis - 1;
		u->from_step[a] = last ? 1 : u->from_step[a + 1] * p->from_dim[a + 1];
		u->to_step[a] = last ? 1 : u->to_step[a + 1] * p->to_dim[a + 1];
	}
	return expand(u, 0, &(Draft){ .b = { .rank = form_rank(u->from, p->from), .first = p->first } });
}

/* Reorders blocks so that all terms of a block are consecutive: they are combined at once. */
static int close_cell(Build *u)
{
	RtBlock *at = u->r->block + u->cell, *copy;
	int n = u->each * u->terms;
	if (u->each < 2 || u->terms < 2 || u->cell + n != u->r->nblock)
		return 0;
	copy = malloc((size_t)n * sizeof *copy);
	if (!copy)
		return -1;
	memcpy(copy, at, (size_t)n * sizeof *copy);
	for (int i = 0; i < n; i++)
		at[i] = copy[i % u->terms * u->each + i / u->terms];
	free(copy);
	return 0;
}

static int add_piece(void *arg, const FormPiece *p)
{
	Build *u = arg;
	u->p = p;
	if (p->first) {
		if (close_cell(u))
			return -1;
		u->cell = u->r->nblock;
		u->terms = 0;
	}
	u->terms++;
	if (add_blocks(u))
		return -1;
	if (p->first)
		u->each = u->r->nblock - u->cell;
	return 0;
}

/* ---- ranks that take part ---- */

/* Ranks whose coordinates differ from those of this rank only along axes that data crosses, in the order of the
 * mesh. */
static int find_peers(RtRoute *r, const Form *a, const Form *b, int rank, int nrank)
{
	bool one = form_one_mesh(a, b), across[FORM_MESH];
	int at[FORM_MESH], mine[FORM_MESH], me = one ? form_index(a, rank) : -1, n = form_nrank(a);
	r->peer = malloc((size_t)nrank * sizeof *r->peer);
	if (!r->peer)
		return -1;
	for (int i = 0; i < nrank && !one; i++)
		if (form_index(a, i) >= 0 || form_index(b, i) >= 0)
			r->peer[r->npeer++] = i;
	if (me < 0)
		return 0;
	form_coord(a, me, mine);
	for (int k = 0; k < a->ndim; k++)
		across[k] = form_crosses(a, b, k);
	for (int i = 0; i < n; i++) {
		bool with = true;
		form_coord(a, i, at);
		for (int k = 0; k < a->ndim; k++)
			with &= across[k] || at[k] == mine[k];
		if (with)
			r->peer[r->npeer++] = form_rank(a, i);
	}
	return 0;
}

/* An all-reduce: every axis of the mesh sums terms, or changes nothing; then the peers are the terms. */
static void find_terms(RtRoute *r, const Form *a, const Form *b, int rank)
{
	bool any = false;
	if (!form_one_mesh(a, b))
		return;
	for (int k = 0; k < a->ndim; k++) {
		bool sums = a->cut[k].kind == FORM_P && b->cut[k].kind == FORM_B;
		if (!sums && !form_cut_same(&a->cut[k], &b->cut[k]))
			return;
		any |= sums;
	}
	if (!any)
		return;
	r->term = r->peer;
	r->nterm = r->npeer;
	while (r->me < r->nterm && r->term[r->me] != rank)
		r->me++;
}

int rt_route_open(Ctx *c, RtRoute *r, const RtMove *m, int rank)
{
	const Form *a = &c->program->form[m->from - 1], *b = &c->program->form[m->to - 1];
	Build u = { .c = c, .r = r, .from = a };
	int index = form_index(b, rank);
	int64_t len[RT_AXES];
	*r = (RtRoute){ .move = m, .elem = rt_width(m->type) };
	r->combine = combine[m->type][reduce_of(a)];
	if (form_index(a, rank) < 0 && index < 0)
		return 0;                       /* it takes no part */
	if (find_peers(r, a, b, rank, c->nrank))
		return rt_error(c, RT_MEMORY, "no memory");
	find_terms(r, a, b, rank);
	if (index < 0)
		return 0;
	form_lengths(b, index, len);
	r->count = 1;
	for (int k = 0; k < b->naxis; k++)
		r->count *= len[k];
	if (form_pieces(a, b, index, &r->fill, add_piece, &u) || close_cell(&u))
		return rt_error(c, RT_MEMORY, "no memory");
	for (int i = 0; i < r->nblock; i++)
		if ((m->channel < 0 && r->block[i].rank != rank) || (!r->block[i].first && !r->combine))
			return rt_error(c, RT_PLAN, "transfer %d does not fit its forms", (int)(m - c->program->move));
	return 0;
}

int rt_routes_open(Ctx *c)
{
	int code = 0, n = c->program->nmove;
	c->route = calloc((size_t)n + 1, sizeof *c->route);
	if (!c->route)
		return rt_error(c, RT_MEMORY, "no memory");
	for (int i = 0; i < n && !code; i++)
		code = rt_route_open(c, &c->route[i], &c->program->move[i], c->rank);
	return code;
}

void rt_route_close(RtRoute *r)
{
	for (int i = 0; i < r->nblock; i++)
		free(r->block[i].loop);
	free(r->block);
	free(r->peer);
}

void rt_routes_close(Ctx *c)
{
	for (int i = 0; c->route && i < c->program->nmove; i++)
		rt_route_close(&c->route[i]);
	free(c->route);
	c->route = NULL;
}

/* ---- moving ---- */

static void fill(const Ctx *c, const RtRoute *r, void *y)
{
	if (r->fill)
		rt_fill(y, r->move->type, reduce_of(&c->program->form[r->move->to - 1]), r->count);
}

/* The n terms of one block, and the addresses of their sources. */
typedef struct Rows { const RtRoute *r; const RtBlock *b; int n; unsigned char *y; const void *const *x; } Rows;

/* One run of each term, from these elements on. */
static void move_run(const Rows *w, int64_t to, const int64_t *from, int64_t n)
{
	size_t e = w->r->elem;
	unsigned char *y = w->y + (size_t)to * e;
	const void *x[w->n];
	for (int i = 0; i < w->n; i++)
		x[i] = (const unsigned char *)w->x[i] + (size_t)from[i] * e;
	if (w->n > 1)
		rt_route_sum(w->r, y, x, w->n, n);
	else if (w->b->first)
		copy_peer(y, x[0], (size_t)n * e);
	else
		w->r->combine(y, x[0], n);
}

/* Iterations lo .. hi - 1 of the outermost loop. */
static void some_turns(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Rows *w = arg;
	const RtBlock *b = w->b;
	int64_t k[RT_LOOPS] = { lo }, to = b->to + lo * b->loop[0].to_step, from[w->n];
	(void)thread;
	for (int i = 0; i < w->n; i++)
		from[i] = b[i].from + lo * b[i].loop[0].from_step;
	for (;;) {
		move_run(w, to, from, b->run);
		int a = b->n - 1;
		for (; a >= 0; a--) {
			bool more = ++k[a] < (a ? b->loop[a].len : hi);
			int64_t turns = more ? 1 : 1 - k[a];
			to += turns * b->loop[a].to_step;
			for (int i = 0; i < w->n; i++)
				from[i] += turns * b[i].loop[a].from_step;
			if (more)
				break;
			k[a] = 0;
		}
		if (a < 0)
			return;
	}
}

/* Elements lo .. hi - 1 of a block that is one run. */
static void some_of_run(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Rows *w = arg;
	int64_t from[w->n];
	(void)thread;
	for (int i = 0; i < w->n; i++)
		from[i] = w->b[i].from + lo;
	move_run(w, w->b->to + lo, from, hi - lo);
}

static void take_block(Ctx *c, const Rows *w)
{
	enum { GRAIN = 1 << 15 };
	const RtBlock *b = w->b;
	int64_t each = b->run;
	for (int k = 1; k < b->n; k++)
		each *= b->loop[k].len;
	if (!b->n)
		rt_parallel(c, b->run, GRAIN, some_of_run, (void *)w);
	else
		rt_parallel(c, b->loop[0].len, 1 + GRAIN / each, some_turns, (void *)w);
}

static bool same_elements(const RtBlock *a, const RtBlock *b)
{
	bool same = a->to == b->to && a->run == b->run && a->n == b->n;
	for (int k = 0; k < a->n && same; k++)
		same = a->loop[k].len == b->loop[k].len && a->loop[k].to_step == b->loop[k].to_step;
	return same;
}

/* The number of blocks from i on that are terms of the same elements. */
static int terms_at(const RtRoute *r, int i)
{
	int n = 1;
	while (i + n < r->nblock && !r->block[i + n].first && same_elements(&r->block[i], &r->block[i + n]))
		n++;
	return r->block[i].first ? n : 1;
}

void rt_route_take(Ctx *c, const RtRoute *r, void *y, RtSource *source, void *arg)
{
	fill(c, r, y);
	for (int i = 0, n; i < r->nblock; i += n) {
		n = terms_at(r, i);
		const void *x[n];
		for (int k = 0; k < n; k++)
			x[k] = source(arg, r->block[i + k].rank);
		take_block(c, &(Rows){ .r = r, .b = &r->block[i], .n = n, .y = y, .x = x });
	}
}

static const void *my_own(void *arg, int rank)
{
	(void)rank;
	return arg;
}

bool rt_mine(const Ctx *c, int move)
{
	return c->route[move].nblock > 0;
}

/* Without a transport, or if no peer takes part, nothing is exchanged. */
int rt_move(Ctx *c, int move, void *y, const void *x)
{
	const RtRoute *r = &c->route[move];
	if (c->comm && (r->move->channel >= 0 || c->device))
		return rt_moves(c, 1, &move, &y, &x);
	rt_route_take(c, r, y, my_own, (void *)x);
	return 0;
}
