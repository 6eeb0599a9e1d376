/* One transfer from a form to another: its name, its groups of ranks, its volume and its time.
 *
 * The name (all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, scatter, gather, reduce, send, slice,
 * zero_fill, none) is for readers and for fast paths of a runtime; the meaning is that of the two forms.  On one mesh a
 * transfer is described by the axes of the mesh along which the forms differ: ranks that differ in these coordinates
 * only are a group and exchange among themselves.  An axis with the same cut on both sides counts as different when an
 * outer axis that differs cuts the same factor, because it then divides another range.
 *
 * Volumes are elements received from other ranks.  On one mesh they need no list of pieces: where the destination is
 * not partial, a rank receives all terms of its shard, less what it has itself.  When all cuts are even, all ranks have
 * shards of one size, and counting for one rank is enough.  An all-reduce takes two phases over equal blocks: each rank
 * reduces one block, then all gather the results.  That moves 2 (p - 1) times the value; sending every term to every
 * rank would move p (p - 1) times the value.
 *
 * Seconds follow the alpha-beta model: the volume of the busiest rank over the slowest link in use, and the latency of
 * log2 p steps. */
#include "plan/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void transfer_no_room(void)
{
	fail_at(EXIT_LIMIT, (Loc){ 0 },
		"out of memory: a shard is in too many pieces; its axes are too long");
	diag_finish();
	fflush(NULL);
	_exit((int)diag_exit());                /* at once: callers cannot recover */
}

static int ranks_across(const Form *f, unsigned axes)
{
	int n = 1;
	for (int k = 0; k < f->ndim; k++)
		n *= axes >> k & 1 ? f->mesh[k] : 1;
	return n;
}

static bool same_factor(const FormCut *a, const FormCut *b)
{
	return a->kind == FORM_S && b->kind == FORM_S && a->axis == b->axis && a->inner == b->inner;
}

bool transfer_same_cut(const FormCut *a, const FormCut *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == FORM_S)
		return same_factor(a, b) && a->len == b->len && form_reach_same(a->reach, b->reach);
	return a->kind == FORM_B || a->reduce == b->reduce;
}

/* The axes of the mesh along which the forms differ. */
static unsigned differing(const Form *from, const Form *to)
{
	unsigned axes = 0;
	for (int k = 0; k < from->ndim; k++) {
		bool other = from->mesh[k] > 1 && !transfer_same_cut(&from->cut[k], &to->cut[k]);
		for (int j = 0; j < k && from->mesh[k] > 1; j++)
			other |= (axes >> j & 1) && (same_factor(&from->cut[j], &from->cut[k]) ||
				same_factor(&to->cut[j], &from->cut[k]));
		axes |= other ? 1u << k : 0;
	}
	return axes;
}

/* Whether every axis among these is cut by one kind in `from` and by another in `to`. */
static bool all(const Form *from, const Form *to, unsigned axes, FormKind a, FormKind b)
{
	for (int k = 0; k < from->ndim; k++)
		if ((axes >> k & 1) && (from->cut[k].kind != (int8_t)a || to->cut[k].kind != (int8_t)b))
			return false;
	return true;
}

static bool has_edges(const Form *f)
{
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_S && f->cut[k].reach)
			return true;
	return false;
}

/* Whether along all these axes ranks only keep their shards as terms of a partial value: nothing is moved. */
static bool becomes_terms(const Form *from, const Form *to, unsigned axes)
{
	for (int k = 0; k < from->ndim; k++)
		if ((axes >> k & 1) && (to->cut[k].kind != FORM_P || from->cut[k].kind == FORM_P))
			return false;
	return true;
}

static const char *on_one_mesh(const Form *from, const Form *to, unsigned axes)
{
	if (!axes)
		return "none";
	if (becomes_terms(from, to, axes))
		return "zero_fill";
	if (has_edges(to))
		return "send";
	if (all(from, to, axes, FORM_P, FORM_B))
		return "all_reduce";
	if (all(from, to, axes, FORM_P, FORM_S))
		return "reduce_scatter";
	if (all(from, to, axes, FORM_S, FORM_B))
		return "all_gather";
	if (all(from, to, axes, FORM_B, FORM_S))
		return "slice";
	return all(from, to, axes, FORM_S, FORM_S) ? "all_to_all" : "send";
}

static const char *between_meshes(const Form *from, const Form *to)
{
	int p = form_nrank(from), q = form_nrank(to);
	if (p == 1 && q > 1 && form_terms(to) == 1)
		return all(to, to, ~0u, FORM_B, FORM_B) ? "broadcast" : "scatter";
	if (q == 1 && p > 1)
		return form_terms(from) > 1 ? "reduce" : "gather";
	return "send";
}

/* ---- volumes ---- */

typedef struct Sent { const Form *from, *to; int64_t *in, *out; } Sent;

static int count_piece(void *arg, const FormPiece *p)
{
	Sent *s = arg;
	if (form_rank(s->from, p->from) != form_rank(s->to, p->to)) {
		s->in[p->to] += p->elements;
		s->out[p->from] += p->elements;
	}
	return 0;
}

/* Between meshes: counts piece by piece; the busiest rank may be one that sends. */
static void by_pieces(const Form *from, const Form *to, Transfer *t)
{
	int p = form_nrank(from), q = form_nrank(to);
	int64_t *count = calloc((size_t)p + (size_t)q, sizeof *count);
	Sent s = { from, to, count, count ? count + q : NULL };
	if (!count)
		transfer_no_room();
	for (int i = 0; i < q; i++)
		if (form_pieces(from, to, i, NULL, count_piece, &s))
			transfer_no_room();
	for (int i = 0; i < p + q; i++) {
		t->total += i < q ? count[i] : 0;
		t->busiest = count[i] > t->busiest ? count[i] : t->busiest;
	}
	free(count);
}

/* Whether all shards have one size. */
static bool even(const Form *f)
{
	int64_t left[FORM_MESH];
	for (int k = 0; k < f->ndim; k++) {
		if (f->cut[k].kind != FORM_S)
			continue;
		left[k] = f->cut[k].len;
		for (int j = 0; j < k; j++)
			left[k] = same_factor(&f->cut[j], &f->cut[k]) ? left[j] : left[k];
		if (left[k] % f->mesh[k] || f->cut[k].reach)
			return false;
		left[k] /= f->mesh[k];
	}
	return true;
}

/* Whether both sides have the same cuts of an axis of the tensor, or one side has more of them at the inner end.  Then
 * the smaller shard of a rank lies in its larger one. */
static bool nested(const Form *a, const Form *b, int axis)
{
	int i = 0, j = 0;
	for (;;) {
		while (i < a->ndim && (a->cut[i].kind != FORM_S || a->cut[i].axis != axis || a->mesh[i] == 1))
			i++;
		while (j < b->ndim && (b->cut[j].kind != FORM_S || b->cut[j].axis != axis || b->mesh[j] == 1))
			j++;
		if (i == a->ndim || j == b->ndim)
			return true;
		if (i != j || !transfer_same_cut(&a->cut[i], &b->cut[j]))
			return false;
		i++;
		j++;
	}
}

/* Whether all ranks receive as much as the first, and keep as much of their own shard. */
static bool uniform(const Form *from, const Form *to)
{
	if (!even(from) || !even(to))
		return false;
	for (int a = 0; a < from->naxis; a++)
		if (!nested(from, to, a))
			return false;
	return true;
}

/* Whether the destination is partial only along axes where the source is, with the same reduction. */
static bool keeps_terms(const Form *from, const Form *to)
{
	for (int k = 0; k < to->ndim; k++)
		if (to->cut[k].kind == FORM_P && (from->cut[k].kind != FORM_P ||
			from->cut[k].reduce != to->cut[k].reduce))
			return false;
	return true;
}

static void without_pieces(const Form *from, const Form *to, bool exact, Transfer *t)
{
	bool one = !exact && keeps_terms(from, to) && uniform(from, to);
	if (form_volume(from, to, one, &t->total, &t->busiest))
		transfer_no_room();
	t->total *= one ? form_nrank(to) : 1;
}

/* In each group the p ranks hold partial values of the same shard, which is divided into p blocks. */
static void two_phases(const Form *from, const Form *to, unsigned axes, Transfer *t)
{
	int nrank = form_nrank(to), p = ranks_across(to, axes);
	bool one = even(to);
	for (int i = 0; i < (one ? 1 : nrank); i++) {
		int64_t n = form_held(from, i), at, block;
		form_share(n, p, 0, &at, &block);
		t->total += n;
		t->busiest = n + (p - 2) * block > t->busiest ? n + (p - 2) * block : t->busiest;
	}
	t->total = t->total * (one ? nrank : 1) / p * 2 * (p - 1);
}

Transfer transfer_count(const Form *from, const Form *to, bool exact)
{
	Transfer t = { .one_mesh = form_one_mesh(from, to) };
	t.axes = t.one_mesh ? differing(from, to) : 0;
	t.how = t.one_mesh ? on_one_mesh(from, to, t.axes) : between_meshes(from, to);
	if (!strcmp(t.how, "none") || !strcmp(t.how, "zero_fill") || !strcmp(t.how, "slice"))
		t.local = true;
	else if (!strcmp(t.how, "all_reduce"))
		two_phases(from, to, t.axes, &t);
	else if (t.one_mesh)
		without_pieces(from, to, exact, &t);
	else
		by_pieces(from, to, &t);
	if (!t.total && !t.local) {             /* the shards agree, or each rank has its own already */
		t.local = true;
		if (form_terms(to) > 1)
			t.how = "zero_fill";
		else
			t.how = form_same(from, to) ? "none" : "slice";
	}
	return t;
}

/* ---- memo ---- */

enum { REACH = sizeof(FormReach) / sizeof(int64_t) };

static void describe(int64_t *key, int *n, const Form *f)
{
	key[(*n)++] = (int64_t)f->ndim << 32 | f->first;
	key[(*n)++] = (int64_t)(intptr_t)f->rank;
	for (int a = 0; a < f->naxis; a++)
		key[(*n)++] = f->dim[a];
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *c = &f->cut[k];
		const FormReach *reach = c->kind == FORM_S ? c->reach : NULL;
		int64_t more = 0;
		if (c->kind == FORM_P)
			more = c->reduce;
		else if (c->kind == FORM_S)
			more = c->axis;
		key[(*n)++] = (int64_t)f->mesh[k] << 16 | more << 8 | c->kind | (reach ? 0x80 : 0);
		if (c->kind != FORM_S)
			continue;
		key[(*n)++] = c->len;
		key[(*n)++] = c->inner;
		for (int i = 0; reach && i < REACH; i++)
			key[(*n)++] = ((const int64_t *)reach)[i];
	}
}

typedef struct FormPair FormPair;
struct FormPair {
	FormPair *next;
	uint64_t hash;
	int n;
	void *what;
	int64_t key[];
};

void **transfer_pair(FormPairs *t, const Form *from, const Form *to, int64_t more)
{
	int64_t key[2 * (2 + FORM_AXES + (3 + REACH) * FORM_MESH) + 1] = { more };
	int n = 1;
	describe(key, &n, from);
	describe(key, &n, to);
	uint64_t h = 0;
	for (int i = 0; i < n; i++)
		h = (h ^ (uint64_t)key[i]) * 0x9E3779B97F4A7C15u, h ^= h >> 32;
	if (t->n * 2 >= t->cap) {
		FormPair **old = t->list;
		int cap = t->cap ? 4 * t->cap : 1024;
		t->list = arena_array(&arena_process, FormPair *, cap);
		for (int i = 0; i < t->cap; i++)
			for (FormPair *k = old[i], *next; k; k = next) {
				next = k->next;
				k->next = t->list[k->hash & (uint64_t)(cap - 1)];
				t->list[k->hash & (uint64_t)(cap - 1)] = k;
			}
		t->cap = cap;
	}
	FormPair **at = &t->list[h & (uint64_t)(t->cap - 1)];
	for (FormPair *k = *at; k; k = k->next)
		if (k->hash == h && k->n == n && !memcmp(k->key, key, (size_t)n * sizeof *key))
			return &k->what;
	FormPair *k = arena_alloc(&arena_process, sizeof *k + (size_t)n * sizeof *key);
	*k = (FormPair){ *at, h, n, NULL };
	memcpy(k->key, key, (size_t)n * sizeof *key);
	*at = k;
	t->n++;
	return &k->what;
}

const Transfer *transfer_of(const Form *from, const Form *to)
{
	static FormPairs table;
	void **what = transfer_pair(&table, from, to, 0);
	if (!*what) {
		*what = arena_new(&arena_process, Transfer);
		*(Transfer *)*what = transfer_count(from, to, false);
	}
	return *what;
}

/* ---- between GPUs ---- */

/* Whether every shard is a contiguous range of the value, and none is empty. */
static bool in_runs(const Form *f)
{
	int axis = -1;
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *c = &f->cut[k];
		if (f->mesh[k] == 1)
			continue;
		if (c->kind != FORM_S || c->reach || (axis >= 0 && c->axis != axis))
			return false;
		if (c->len * c->inner != f->dim[c->axis] || c->len < form_nrank(f))
			return false;
		axis = c->axis;
	}
	for (int a = 0; a < axis; a++)
		if (f->dim[a] != 1)
			return false;
	return true;
}

/* Whether a form is B, or partial sums, along all axes of the mesh. */
static bool only(const Form *f, FormKind kind)
{
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *c = &f->cut[k];
		if (f->mesh[k] > 1 && (c->kind != (int8_t)kind || (kind == FORM_P && c->reduce != FORM_SUM)))
			return false;
	}
	return true;
}

bool transfer_nccl(const Form *from, const Form *to, int64_t elem_bytes)
{
	const Transfer *t = transfer_of(from, to);
	if (t->local)                           /* a rank without a term fills its shard with 0 */
		return form_terms(to) == 1 || form_reduction(to) == FORM_SUM;
	if (!t->one_mesh || !only(to, FORM_B))
		return false;
	return only(from, FORM_P) ? elem_bytes == 4 : in_runs(from);
}

/* ---- seconds ---- */

/* Seconds, more than any plan without it takes.  So it is chosen only where pins leave no alternative, and then refused
 * (prove.c). */
static const double IMPOSSIBLE = 1e3;

static double steps(int p)
{
	int n = 1;
	while (1 << n < p)
		n++;
	return n;
}

/* The slowest link along any of these axes. */
static Wire slowest(const Form *f, unsigned axes)
{
	Wire l = { 0, 0 };
	for (int k = 0; k < f->ndim; k++) {
		Wire x = device.axis[k];
		if (!(axes >> k & 1))
			continue;
		l.latency = x.latency > l.latency ? x.latency : l.latency;
		l.bytes = !l.bytes || x.bytes < l.bytes ? x.bytes : l.bytes;
	}
	return l;
}

/* Seconds in which a rank copies its shard. */
static double copying(const Form *f, int64_t elem_bytes)
{
	return device.start + 2 * device_through((double)form_held(f, 0) * (double)elem_bytes);
}

double transfer_time(const Transfer *t, const Form *from, const Form *to, int64_t elem_bytes)
{
	if (device.nccl && !transfer_nccl(from, to, elem_bytes))
		return IMPOSSIBLE;
	if (t->local)
		return strcmp(t->how, "none") ? copying(to, elem_bytes) : 0;
	int p = form_nrank(from), q = form_nrank(to), n = p > q ? p : q;
	if (t->one_mesh)
		n = ranks_across(to, t->axes);
	Wire l = slowest(to, t->one_mesh ? t->axes : ~0u);
	double late = l.latency * steps(n), link = (double)t->busiest * (double)elem_bytes / l.bytes;
	if (has_edges(to))                      /* copying the own shard may take longer than moving small halos */
		link += copying(to, elem_bytes);
	if (strcmp(t->how, "all_reduce"))
		return late + link;
	/* a small all-reduce takes one phase, in which each rank reads the terms of all others */
	return fmin(2 * late + link, late + (n - 1) * (double)form_held(from, 0) * (double)elem_bytes / l.bytes);
}

double transfer_seconds(const Form *from, const Form *to, int64_t elem_bytes)
{
	return transfer_time(transfer_of(from, to), from, to, elem_bytes);
}
