/* Tables of costs.  Equal tables are stored once and have one number; results computed from tables are memoised under
 * the numbers of their operands.  So identical layers (fold.c) cost little: every layer needs the same sums and the
 * same eliminations.  A message along a chain of layers soon repeats itself, because the powers of a matrix in min-plus
 * algebra become periodic up to a constant; from there on each layer is looked up.  The result is bit by bit that of
 * the computation without memoisation. */
#include "solve/solve.h"

#include <math.h>
#include <string.h>

enum { BUCKETS = 1 << 13 };

void table_init(Tables *s, Arena *a, bool forget)
{
	*s = (Tables){ .arena = a, .forget = forget };
	s->table = arena_array(a, Table *, BUCKETS);
	s->known = arena_array(a, Known *, BUCKETS);
}

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t hash_values(const double *v, size_t n)
{
	uint64_t h = n, x;
	for (size_t i = 0; i < n; i++) {
		memcpy(&x, &v[i], sizeof x);
		h = mix(h, x);
	}
	return h;
}

Table *table_of(Tables *s, int ndim, const int *dim, double *v)
{
	size_t n = 1;
	for (int i = 0; i < ndim; i++)
		n *= (size_t)dim[i];
	uint64_t h = hash_values(v, n);
	for (int i = 0; i < ndim; i++)
		h = mix(h, (uint64_t)dim[i]);
	Table **at = &s->table[h % BUCKETS];
	for (Table *t = *at; t; t = t->next) {
		if (t->hash != h || t->ndim != ndim || t->n != n)
			continue;
		if (memcmp(t->dim, dim, sizeof *dim * (size_t)ndim) || memcmp(t->v, v, sizeof *v * n))
			continue;
		arena_release(s->arena, v, sizeof *v * n);
		return t;
	}
	Table *t = arena_new(s->arena, Table);
	*t = (Table){ .id = s->ntable++, .ndim = ndim, .n = n, .v = v, .hash = h, .next = *at, .separable = -1 };
	t->dim = arena_array(s->arena, int, ndim + 1);
	memcpy(t->dim, dim, sizeof *dim * (size_t)ndim);
	return *at = t;
}

/* ---- memoised results ---- */

enum { K_SUM, K_LIST, K_KEEP, K_ROW };

void table_key_begin(Tables *s, int what)
{
	s->nkey = 0;
	key_add(s, what);
}

void table_key_room(Tables *s)
{
	int *old = s->key;
	s->room = s->room ? 2 * s->room : 256;
	s->key = arena_array(s->arena, int, s->room);
	if (s->nkey)
		memcpy(s->key, old, sizeof *old * (size_t)s->nkey);
}

Known *table_key_find(Tables *s, bool *found)
{
	uint64_t h = 1;
	for (int i = 0; i < s->nkey; i++)
		h = mix(h, (uint64_t)s->key[i]);
	Known **at = &s->known[h % BUCKETS];
	for (Known *k = *at; k && !s->forget; k = k->next)
		if (k->hash == h && k->n == s->nkey && !memcmp(k->key, s->key, sizeof *k->key * (size_t)k->n)) {
			*found = true;
			return k;
		}
	Known *k = arena_new(s->arena, Known);
	int *key = arena_array(s->arena, int, s->nkey);
	memcpy(key, s->key, sizeof *key * (size_t)s->nkey);
	*k = (Known){ .id = ++s->nknown, .hash = h, .n = s->nkey, .key = key, .next = *at };
	*found = false;
	return *at = k;
}

/* ---- arithmetic ---- */

Table *table_sum(Tables *s, Table *a, Table *b)
{
	bool found;
	if (!a || !b)
		return a ? a : b;
	table_key_begin(s, K_SUM);
	key_add(s, a->id < b->id ? a->id : b->id);
	key_add(s, a->id < b->id ? b->id : a->id);
	Known *k = table_key_find(s, &found);
	if (!found) {
		double *v = arena_array(s->arena, double, a->n);
		for (size_t i = 0; i < a->n; i++)
			v[i] = a->v[i] + b->v[i];
		k->t = table_of(s, a->ndim, a->dim, v);
	}
	return k->t;
}

Table *table_turn(Tables *s, Table *t)
{
	if (!t->turned || s->forget) {
		int rows = t->dim[0], cols = t->dim[1], dim[2] = { cols, rows };
		double *v = arena_array(s->arena, double, t->n);
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < cols; j++)
				v[(size_t)j * (size_t)rows + (size_t)i] = t->v[(size_t)i * (size_t)cols + (size_t)j];
		t->turned = table_of(s, 2, dim, v);
		t->turned->turned = t;
	}
	return t->turned;
}

static bool separable(const Table *t)
{
	int cols = t->dim[1];
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i] == INFINITY)
			return false;
	for (int i = 1; i < t->dim[0]; i++)
		for (int j = 1; j < cols; j++) {
			const double *row = t->v + (size_t)i * (size_t)cols;
			if (row[j] - row[0] != t->v[j] - t->v[0])
				return false;
		}
	return true;
}

/* The comparison is exact, because all sums are. */
bool table_separable(Tables *s, Table *t)
{
	if (t->separable < 0 || s->forget)
		t->separable = separable(t);
	return t->separable;
}

Known *table_keep_of(Tables *s, const int *keep, int n)
{
	bool found;
	table_key_begin(s, K_LIST);
	for (int i = 0; i < n; i++)
		key_add(s, keep[i]);
	Known *k = table_key_find(s, &found);
	if (!found) {
		k->list = arena_array(s->arena, int, n);
		memcpy(k->list, keep, sizeof *keep * (size_t)n);
		k->nlist = n;
	}
	return k;
}

/* The table has one or two axes. */
Table *table_keep(Tables *s, Table *t, int axis, const Known *keep)
{
	bool found;
	if (keep->nlist == t->dim[axis])
		return t;
	if (t->keep[axis] == keep && !s->forget)
		return t->kept[axis];
	table_key_begin(s, K_KEEP);
	key_add(s, t->id);
	key_add(s, axis);
	key_add(s, keep->id);
	Known *k = table_key_find(s, &found);
	if (!found) {
		int dim[2] = { t->dim[0], t->ndim > 1 ? t->dim[1] : 1 };
		size_t cols = (size_t)dim[1];
		dim[axis] = keep->nlist;
		double *v = arena_array(s->arena, double, (size_t)dim[0] * (size_t)dim[1]), *to = v;
		for (int i = 0; i < dim[0]; i++)
			for (int j = 0; j < dim[1]; j++) {
				int row = axis ? i : keep->list[i], col = axis ? keep->list[j] : j;
				*to++ = t->v[(size_t)row * cols + (size_t)col];
			}
		k->t = table_of(s, t->ndim, dim, v);
	}
	t->keep[axis] = keep;
	return t->kept[axis] = k->t;
}

Table *table_row(Tables *s, Table *t, int axis)
{
	bool found;
	table_key_begin(s, K_ROW);
	key_add(s, t->id);
	key_add(s, axis);
	Known *k = table_key_find(s, &found);
	if (!found) {
		double *v = arena_array(s->arena, double, t->n);
		memcpy(v, t->v, sizeof *v * t->n);
		k->t = table_of(s, 1, &t->dim[!axis], v);
	}
	return k->t;
}
