/* Values as ranks hold them, by definition: element by element, with nothing of form.c but the pieces that are to be
 * tested.
 *
 * An index i of an axis has the digit i / inner % len of a factor.  A rank holds an element when, for each axis of the
 * mesh that is cut by S, the digit lies in its share of the range that the outer axes of the mesh have left of this
 * factor. */
#include "rows.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 16, ELEMENTS = 256 };

typedef struct World {                  /* a value in one form: what each place holds, in logical order */
	const Form *f;
	int n[PLACES];
	int element[PLACES][ELEMENTS];
	int at[PLACES][ELEMENTS];       /* where an element lies; -1 */
	int64_t x[PLACES][ELEMENTS];
} World;

static int elements_of(const Form *f)
{
	int64_t n = 1;
	for (int a = 0; a < f->naxis; a++)
		n *= f->dim[a];
	return (int)n;
}

static void place_coord(const Form *f, int place, int *c)
{
	for (int k = f->ndim - 1; k >= 0; place /= f->mesh[k--])
		c[k] = place % f->mesh[k];
}

/* Whether a window that one of lo .. hi - 1 asks for, or one between two such, sees index i; by trying all windows. */
static bool reached(const FormReach *r, int64_t lo, int64_t hi, int64_t i)
{
	int64_t first = r->mid, last = -1, wide = 1000 * r->div;        /* rounding down: nothing is negative */
	for (int64_t w = 0; w < r->mid; w++)
		for (int64_t j = lo; j < hi; j++)
			if ((wide + j + r->lo) / r->div - 1000 <= w && w <= (wide + j + r->hi) / r->div - 1000) {
				first = w < first ? w : first;
				last = w;
			}
	if (last < 0)                   /* one at least: the last one before them */
		first = last = (wide + lo + r->lo) / r->div - 1000 < 0 ? 0 : r->mid - 1;
	return i >= first * r->mul + r->from && i <= last * r->mul + r->to;
}

static bool holds(const Form *f, const int *c, int e)
{
	int64_t index[FORM_AXES], lo[FORM_MESH], hi[FORM_MESH];
	for (int a = f->naxis - 1; a >= 0; e /= (int)f->dim[a--])
		index[a] = e % f->dim[a];
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *cut = &f->cut[k];
		if (cut->kind != FORM_S)
			continue;
		lo[k] = 0;
		hi[k] = cut->reach ? cut->reach->of : cut->len;
		for (int j = 0; j < k; j++)
			if (f->cut[j].kind == FORM_S && f->cut[j].axis == cut->axis && f->cut[j].inner == cut->inner) {
				lo[k] = lo[j];
				hi[k] = hi[j];
			}
		int64_t n = hi[k] - lo[k], m = f->mesh[k], first = 0;
		for (int i = 0; i < c[k]; i++)
			first += n / m + (i < n % m);
		lo[k] += first;
		hi[k] = lo[k] + n / m + (c[k] < n % m);
	}
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *cut = &f->cut[k];
		bool inner = false;
		for (int j = k + 1; j < f->ndim; j++)
			inner |= f->cut[j].kind == FORM_S && f->cut[j].axis == cut->axis &&
				f->cut[j].inner == cut->inner;
		if (cut->kind != FORM_S || inner)       /* the innermost range is what is left */
			continue;
		int64_t digit = index[cut->axis] / cut->inner % cut->len;
		if (lo[k] == hi[k])
			return false;
		if (cut->reach ? !reached(cut->reach, lo[k], hi[k], digit) : digit < lo[k] || digit >= hi[k])
			return false;
	}
	return true;
}

static void world_make(World *w, const Form *f)
{
	int n = elements_of(f), places = 1;
	for (int k = 0; k < f->ndim; k++)
		places *= f->mesh[k];
	w->f = f;
	for (int p = 0; p < places; p++) {
		int c[FORM_MESH];
		place_coord(f, p, c);
		w->n[p] = 0;
		for (int e = 0; e < n; e++) {
			w->at[p][e] = -1;
			if (holds(f, c, e)) {
				w->at[p][e] = w->n[p];
				w->element[p][w->n[p]++] = e;
			}
		}
	}
}

static int64_t neutral(int reduce)
{
	return reduce == FORM_MAX ? INT64_MIN : reduce == FORM_MIN ? INT64_MAX : reduce == FORM_PROD;
}

static int64_t combine(int reduce, int64_t a, int64_t b)
{
	if (reduce == FORM_MAX || reduce == FORM_MIN)
		return (a > b) == (reduce == FORM_MAX) ? a : b;
	return reduce == FORM_PROD ? a * b : a + b;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9E3779B97F4A7C15u;
	return x ^ x >> 29;
}

/* The term of an element that coordinates c hold, so that all terms together are 1000 + e (a product: 1 or -1). */
static int64_t term_of(const Form *f, const int *c, int e)
{
	int terms = 1, t = 0, reduce = FORM_SUM;
	int64_t sum = 0;
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P) {
			t = t * f->mesh[k] + c[k];
			terms *= f->mesh[k];
			reduce = f->cut[k].reduce;
		}
	int whole = (int)(mix((uint64_t)e * 77 + 5) % (uint64_t)terms);
	if (reduce == FORM_PROD)
		return t == whole ? 1 - 2 * (e & 1) : 1;
	if (reduce != FORM_SUM)
		return t == whole ? 1000 + e : (reduce == FORM_MAX ? 999 : 1001) + e + (reduce == FORM_MAX ? -t : t);
	if (t != whole)
		return (int64_t)(mix((uint64_t)e * 64 + (uint64_t)t) % 1000) - 500;
	for (int i = 0; i < terms; i++)
		sum += i == whole ? 0 : (int64_t)(mix((uint64_t)e * 64 + (uint64_t)i) % 1000) - 500;
	return 1000 + e - sum;
}

static int64_t logical(const Form *f, int e)
{
	for (int k = 0; k < f->ndim; k++)
		if (f->cut[k].kind == FORM_P && f->cut[k].reduce == FORM_PROD)
			return 1 - 2 * (e & 1);
	return 1000 + e;
}

static void world_fill(World *w)
{
	for (int p = 0; p < form_nrank(w->f); p++) {
		int c[FORM_MESH];
		place_coord(w->f, p, c);
		for (int i = 0; i < w->n[p]; i++)
			w->x[p][i] = term_of(w->f, c, w->element[p][i]);
	}
}

/* ---- a transfer ---- */

/* across: axes of the mesh along which pieces travel */
typedef struct Moved { int64_t total, busiest, into[PLACES]; unsigned across; } Moved;
typedef struct Moving {
	const World *from;
	World *to;
	const FormPiece *p;
	Moved *m;
	bool one_mesh, written[ELEMENTS];
	const char *why;
} Moving;

static void move_row(void *arg, int64_t from, int64_t to, int64_t n)
{
	Moving *m = arg;
	const FormPiece *p = m->p;
	if (from < 0 || to < 0 || from + n > m->from->n[p->from] || to + n > m->to->n[p->to]) {
		m->why = "a row outside its part";
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t x = m->from->x[p->from][from + i], *y = &m->to->x[p->to][to + i];
		if (m->from->element[p->from][from + i] != m->to->element[p->to][to + i])
			m->why = "another element";
		if (p->first == m->written[to + i])
			m->why = "written twice, or combined with nothing";
		*y = p->first ? x : combine(form_reduction(m->from->f), *y, x);
		m->written[to + i] = true;
	}
}

static int move_piece(void *arg, const FormPiece *p)
{
	Moving *m = arg;
	const Form *f = m->from->f, *t = m->to->f;
	m->p = p;
	if (form_rank(f, p->from) != form_rank(t, p->to))
		m->m->into[p->to] += p->elements;
	if (m->one_mesh) {
		int a[FORM_MESH] = { 0 }, b[FORM_MESH] = { 0 };
		place_coord(f, p->from, a);
		place_coord(t, p->to, b);
		for (int k = 0; k < f->ndim; k++)
			m->m->across |= a[k] != b[k] ? 1u << k : 0;
	}
	form_rows(p, move_row, m);
	return m->why != NULL;
}

/* Moves the contents; NULL, or what is wrong. */
static const char *world_move(const World *from, World *to, Moved *moved)
{
	*moved = (Moved){ 0 };
	bool one_mesh = form_one_mesh(from->f, to->f);
	for (int p = 0; p < form_nrank(to->f); p++) {
		Moving m = { .from = from, .to = to, .m = moved, .one_mesh = one_mesh };
		bool fill = false, lacks = false;
		if (form_pieces(from->f, to->f, p, &fill, move_piece, &m) || m.why)
			return m.why ? m.why : "form_pieces fails";
		for (int i = 0; i < to->n[p]; i++)
			if (!m.written[i]) {
				lacks = true;
				to->x[p][i] = neutral(form_reduction(to->f));
			}
		if (lacks != fill)
			return "it is not said whether something is to be filled";
		if (lacks && form_reduction(to->f) < 0)
			return "not all elements are given";
		moved->total += moved->into[p];
		moved->busiest = moved->into[p] > moved->busiest ? moved->into[p] : moved->busiest;
	}
	return NULL;
}

/* Whether terms give `want` again, at every place: those that share its coordinates along S and B. */
static const char *world_check(const World *w, int64_t (*want)(const Form *, int), const Form *source)
{
	const Form *f = w->f;
	int places = form_nrank(f), reduce = form_reduction(f), terms = form_terms(f);
	for (int p = 0; p < places; p++) {
		int group[PLACES], n = 0, c[FORM_MESH];
		bool first = true;
		place_coord(f, p, c);
		for (int k = 0; k < f->ndim; k++)
			first &= f->cut[k].kind != FORM_P || c[k] == 0;
		if (!first)
			continue;
		for (int q = 0; q < places; q++) {
			int d[FORM_MESH];
			bool same = true;
			place_coord(f, q, d);
			for (int k = 0; k < f->ndim; k++)
				same &= f->cut[k].kind == FORM_P || c[k] == d[k];
			if (same)
				group[n++] = q;
		}
		if (n != terms)
			return "terms are not counted right";
		for (int i = 0; i < w->n[p]; i++) {
			int64_t x = w->x[p][i];
			for (int t = 1; t < n; t++)
				x = combine(reduce, x, w->x[group[t]][i]);
			if (x != want(source, w->element[p][i]))
				return "another value";
		}
	}
	return NULL;
}

static void form_show(const Form *f)
{
	static const char *const partial[] = { "P", "Pmax", "Pmin", "Pprod" };
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *c = &f->cut[k];
		printf("%s%d:", k ? " " : "[", f->mesh[k]);
		if (c->kind == FORM_S && c->inner == 1 && c->len == f->dim[c->axis])
			printf(c->reach ? "S%d+" : "S%d", c->axis);
		else if (c->kind == FORM_S)
			printf("S%d/%dx%d", c->axis, (int)c->len, (int)c->inner);
		else
			printf("%s", c->kind == FORM_B ? "B" : partial[c->reduce]);
	}
	printf("] from %d of (", form_rank(f, 0));
	for (int a = 0; a < f->naxis; a++)
		printf(a ? " %d" : "%d", (int)f->dim[a]);
	printf(")");
}

/* ---- the forms of tests ---- */

static FormCut cut_b(void) { return (FormCut){ .kind = FORM_B }; }
static FormCut cut_p(int reduce) { return (FormCut){ .kind = FORM_P, .reduce = (int8_t)reduce }; }
static FormCut cut_s(const int64_t *dim, int axis)
{
	return (FormCut){ .kind = FORM_S, .axis = (int8_t)axis, .len = dim[axis], .inner = 1 };
}

static Form form_of(int naxis, const int64_t *dim, int first)
{
	Form f = { .first = first, .naxis = naxis };
	for (int a = 0; a < naxis; a++)
		f.dim[a] = dim[a];
	return f;
}

static void form_add(Form *f, int mesh, FormCut c)
{
	f->mesh[f->ndim] = mesh;
	f->cut[f->ndim++] = c;
}

/* ---- what was tried, and what was wrong: the first twenty are shown ---- */

static int cases, failed;

static void fail(const char *what, const char *why, const Form *src, const Form *dst)
{
	if (failed++ > 20)
		return;
	printf("not ok %s: %s: ", what, why);
	form_show(src);
	printf(" to ");
	form_show(dst);
	printf("\n");
}

static void run(const char *what, void (*part)(void))
{
	int before = failed, count = cases;
	part();
	if (failed == before)
		printf("ok %s (%d cases)\n", what, cases - count);
}

static int ended(void)
{
	if (failed > 20)
		printf("not ok all: %d of %d cases fail\n", failed, cases);
	return 0;
}
