/* A value as the ranks of a mesh hold it. */
#include "exact.h"

#include "../../boxing/rows.h"

#include <string.h>

static Exact *part_new(Arena *a, const Form *f, int place, DType t)
{
	FormShard p;
	int64_t dim[FORM_AXES];
	if (form_shard(f, place, &p))
		die("no memory");
	for (int i = 0; i < p.naxis; i++)
		dim[i] = p.axis[i].len;
	Exact *x = exact_new(a, t, p.naxis, dim);
	form_shard_free(&p);
	return x;
}

Hold *hold_new(Arena *a, const Form *f, DType t)
{
	Hold *h = arena_new(a, Hold);
	*h = (Hold){ .form = *f, .places = form_nrank(f) };
	h->part = arena_array(a, Exact *, h->places + 1);
	for (int i = 0; i < h->places; i++)
		h->part[i] = part_new(a, f, i, t);
	return h;
}

static uint64_t combine(const Exact *x, Reduce red, uint64_t a, uint64_t b)
{
	if (x->real)
		return field_combine(red, a, b);
	int64_t i = (int64_t)a, k = (int64_t)b;
	return red == RED_SUM ? a + b : red == RED_PROD ? a * b : red == RED_MAX ? (i > k ? a : b) : i < k ? a : b;
}

static uint64_t neutral(const Exact *x, Reduce red)
{
	if (x->real)
		return field_neutral(red);
	return red == RED_SUM ? 0 : red == RED_PROD ? 1 : (uint64_t)(red == RED_MAX ? INT64_MIN : INT64_MAX);
}

static Reduce reduction(const Form *f)
{
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P)
			return (Reduce)f->cut[k].reduce;
	return RED_SUM;
}

uint64_t hold_neutral(const Hold *h)
{
	return neutral(h->part[0], reduction(&h->form));
}

/* ---- transfers ---- */

typedef struct Moving {
	const Hold *from;
	Hold *to;
	const FormPiece *piece;
	Fault fault;
	bool done;
	Reduce red;
} Moving;

static void row(void *arg, int64_t from, int64_t to, int64_t n)
{
	Moving *m = arg;
	const Exact *x = m->from->part[m->piece->from];
	Exact *y = m->to->part[m->piece->to];
	for (int64_t i = 0; i < n; i++)
		y->v[to + i] = m->piece->first ? x->v[from + i] : combine(y, m->red, y->v[to + i], x->v[from + i]);
}

static void row_twice(void *arg, int64_t from, int64_t to, int64_t n)
{
	Moving *m = arg;
	const Exact *x = m->from->part[m->piece->from];
	Exact *y = m->to->part[m->piece->to];
	for (int64_t i = 0; i < n; i++)
		y->v[to + i] = combine(y, m->red, y->v[to + i], x->v[from + i]);
}

static int piece(void *arg, const FormPiece *p)
{
	Moving *m = arg;
	FormPiece q = *p;
	bool fault = !m->done && m->fault != FAULT_NONE;
	m->piece = p;
	if (fault && m->fault == FAULT_MISSING && !p->first) {
		m->done = true;
		return 0;
	}
	if (fault && m->fault == FAULT_ELSEWHERE) {     /* from the next rank that has a part of that size */
		for (int i = 1; i < m->from->places; i++) {
			int other = (p->from + i) % m->from->places;
			if (m->from->part[other]->n == m->from->part[p->from]->n &&
				memcmp(m->from->part[other]->v, m->from->part[p->from]->v,
				(size_t)m->from->part[other]->n * sizeof(uint64_t)) != 0) {
				q.from = other;
				m->done = true;
				break;
			}
		}
		m->piece = &q;
	}
	form_rows(m->piece, row, m);
	if (fault && m->fault == FAULT_TWICE && !p->first) {
		form_rows(m->piece, row_twice, m);
		m->done = true;
	}
	return 0;
}

Hold *hold_move(Arena *a, const Hold *h, const Form *to, Fault fault)
{
	Hold *r = hold_new(a, to, h->part[0]->dtype);
	Moving m = { .from = h, .to = r, .fault = fault, .red = reduction(&h->form) };
	for (int i = 0; i < r->places; i++) {
		Exact *x = r->part[i];
		for (int64_t k = 0; k < x->n; k++)
			x->v[k] = neutral(x, reduction(to));
		if (form_pieces(&h->form, to, i, NULL, piece, &m))
			die("no memory");
	}
	/* what lies there is taken for what is wanted */
	for (int i = 0; i < r->places && fault == FAULT_SKIPPED; i++)
		if (i < h->places && r->part[i]->n == h->part[i]->n)
			memcpy(r->part[i]->v, h->part[i]->v, (size_t)r->part[i]->n * sizeof(uint64_t));
	return r;
}

/* ---- whole values ---- */

/* Where each element of a part stands in the whole. */
static int64_t *indices(Arena *a, const Form *f, int place)
{
	FormShard p;
	int64_t n = 1, idx[FORM_AXES] = { 0 }, run[FORM_AXES] = { 0 }, off[FORM_AXES] = { 0 };
	if (form_shard(f, place, &p))
		die("no memory");
	n = form_elements(&p);
	int64_t *at = arena_array(a, int64_t, n + 1);
	for (int64_t i = 0; i < n; i++) {
		int64_t k = 0;
		for (int x = 0; x < p.naxis; x++)
			k = k * f->dim[x] + p.axis[x].run[run[x]].at + off[x];
		at[i] = k;
		for (int x = p.naxis; x-- > 0;) {
			if (++off[x] == p.axis[x].run[run[x]].len) {
				off[x] = 0;
				run[x]++;
			}
			if (++idx[x] < p.axis[x].len)
				break;
			idx[x] = run[x] = off[x] = 0;
		}
	}
	form_shard_free(&p);
	return at;
}

static bool is_p(const Form *f, int k)
{
	return f->cut[k].kind == FORM_P && f->mesh[k] > 1;
}

/* The term that a place holds, and how many there are. */
static int term_of(const Form *f, int place, int *terms)
{
	int coord[FORM_MESH], term = 0;
	form_coord(f, place, coord);
	*terms = 1;
	for (int k = 0; k < f->ndim; k++)
		if (is_p(f, k)) {
			term = term * f->mesh[k] + coord[k];
			*terms *= f->mesh[k];
		}
	return term;
}

/* A random term of an element. */
static uint64_t share_of(const Exact *x, uint64_t key, int term)
{
	uint64_t share = field_hash(key, (uint64_t)term);
	return x->real ? share : share % 100;
}

Hold *hold_cut(Arena *a, const Exact *whole, const Form *f, uint64_t seed)
{
	Hold *h = hold_new(a, f, whole->dtype);
	Reduce red = reduction(f);
	for (int i = 0; i < h->places; i++) {
		Exact *x = h->part[i];
		int terms, term = term_of(f, i, &terms);
		int64_t *at = indices(a, f, i);
		for (int64_t e = 0; e < x->n; e++) {
			uint64_t v = whole->v[at[e]], key = field_hash(seed, (uint64_t)at[e]);
			if (terms == 1 || red != RED_SUM) {
				x->v[e] = terms == 1 || (int)(key % (uint64_t)terms) == term ? v : neutral(x, red);
				continue;
			}
			uint64_t share = share_of(x, key, term);
			if (term)
				x->v[e] = share;
			else                    /* the first term is the value less all others */
				for (int t = 1; t < terms; t++) {
					share = share_of(x, key, t);
					v = x->real ? field_sub(v, share) : v - share;
					x->v[e] = v;
				}
		}
	}
	return h;
}

/* Terms are combined over the places of P, for each index of the other axes of the mesh; every element is found there
 * as often as ranks hold it, always the same. */
Exact *hold_whole(Arena *a, const Hold *h, const Exact *rest)
{
	const Form *f = &h->form;
	Exact *w = exact_new(a, h->part[0]->dtype, f->naxis, f->dim);
	Reduce red = reduction(f);
	bool *have = arena_array(a, bool, w->n + 1);
	for (int i = 0; i < h->places; i++) {
		int terms, term = term_of(f, i, &terms);
		if (term)
			continue;
		int64_t *at = indices(a, f, i);
		uint64_t *sum = arena_array(a, uint64_t, h->part[i]->n + 1);
		memcpy(sum, h->part[i]->v, (size_t)h->part[i]->n * sizeof *sum);
		int mine[FORM_MESH], other[FORM_MESH];
		form_coord(f, i, mine);
		for (int k = 0; k < h->places; k++) {
			bool same = true;
			int t, place = term_of(f, k, &t);
			form_coord(f, k, other);
			for (int d = 0; d < f->ndim; d++)
				same &= is_p(f, d) || mine[d] == other[d];
			for (int64_t e = 0; same && place && e < h->part[i]->n; e++)
				sum[e] = combine(w, red, sum[e], h->part[k]->v[e]);
		}
		for (int64_t e = 0; e < h->part[i]->n; e++) {
			if (have[at[e]] && w->v[at[e]] != sum[e])
				return NULL;
			w->v[at[e]] = sum[e];
			have[at[e]] = true;
		}
	}
	bool reaches = false;
	for (int k = 0; k < f->ndim; k++)
		reaches |= f->cut[k].kind == FORM_S && f->cut[k].reach;
	for (int64_t e = 0; e < w->n; e++) {
		if (!have[e] && !reaches)
			return NULL;
		if (!have[e] && rest)
			w->v[e] = rest->v[e];
	}
	return w;
}

bool exact_equal(const Exact *a, const Exact *b)
{
	return a->n == b->n && !memcmp(a->v, b->v, (size_t)a->n * sizeof *a->v);
}
