/* Variable elimination: a variable is replaced by a table over its neighbours that holds the cost of its best choice
 * (bucket elimination, Dechter 1999).  The order is greedy: the variable with the least work goes next, the lowest
 * number among equals; so variables with one or two neighbours and chains of them go first.  Identical layers are
 * eliminated in the same order, so their tables are memoised (table.c).  Choices are decoded backwards: each variable
 * takes its best choice given its neighbours, the lowest among equals.
 *
 * exact_plan computes sizes only; when some table would exceed the cap, nothing is computed.  A network that is too
 * wide with a few layers is too wide with all of them, so exact_hopeless tries a few first. */
#include "solve/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

enum {
	K_ELIMINATE = 32,
	SCOPE_MAX = 40,
	FEW = 4                         /* copies of a motif that decide whether any number of them is too wide */
};

typedef struct Factor {
	Table *t;
	int n, *var;                    /* sorted by number of choices, then by number: the last axis is the longest */
	bool gone;
} Factor;

/* ---- elimination order ---- */

typedef struct Around { int *v, n; } Around;      /* the neighbours of a variable */
typedef struct Item { double work; int v; } Item;
typedef struct Order {
	Net *net;
	Around *near;
	double *work;
	int *seen, stamp;
	Item *heap; int n;
	bool *done;
} Order;

static bool before(Item a, Item b)
{
	return a.work < b.work || (a.work == b.work && a.v < b.v);
}

static void heap_push(Order *o, Item x)
{
	arena_push(o->net->arena, o->heap, o->n, x);
	for (int i = o->n - 1; i && before(x, o->heap[(i - 1) / 2]); i = (i - 1) / 2) {
		o->heap[i] = o->heap[(i - 1) / 2];
		o->heap[(i - 1) / 2] = x;
	}
}

static Item heap_pop(Order *o)
{
	Item top = o->heap[0], x = o->heap[--o->n];
	for (int i = 0, c; (c = 2 * i + 1) < o->n; i = c) {
		c += c + 1 < o->n && before(o->heap[c + 1], o->heap[c]);
		if (!before(o->heap[c], x)) {
			o->heap[i] = x;
			return top;
		}
		o->heap[i] = o->heap[c];
		o->heap[c] = x;
	}
	if (o->n == 1)
		o->heap[0] = x;
	return top;
}

/* Entries of the table that replaces v. */
static double entries(const Order *o, int v)
{
	double n = 1;
	for (int k = 0; k < o->near[v].n && n < 1e30; k++)
		n *= o->net->var[o->near[v].v[k]].n;
	return n;
}

static void rate(Order *o, int v)
{
	double work = entries(o, v) * o->net->var[v].n;
	if (work == o->work[v])
		return;
	o->work[v] = work;
	heap_push(o, (Item){ work, v });
}

/* The neighbours of v become neighbours of each other. */
static void join(Order *o, int v)
{
	Around *x = &o->near[v];
	for (int k = 0; k < x->n; k++) {
		Around *u = &o->near[x->v[k]];
		int n = 0;
		o->stamp++;
		o->seen[x->v[k]] = o->stamp;
		for (int i = 0; i < u->n; i++)
			if (u->v[i] != v) {
				o->seen[u->v[i]] = o->stamp;
				u->v[n++] = u->v[i];
			}
		u->n = n;
		for (int i = 0; i < x->n; i++)
			if (o->seen[x->v[i]] != o->stamp)
				arena_push(o->net->arena, u->v, u->n, x->v[i]);
	}
	for (int k = 0; k < x->n; k++)
		rate(o, x->v[k]);
}

static void order_init(Order *o, Net *net, const bool *out)
{
	int n = net->nvar;
	*o = (Order){ .net = net };
	o->near = arena_array(net->arena, Around, n);
	o->work = arena_array(net->arena, double, n);
	o->seen = arena_array(net->arena, int, n);
	o->done = arena_array(net->arena, bool, n);
	for (int i = 0; i < net->nlink; i++) {
		Link *l = &net->link[i];
		if (l->gone || (out && (out[l->a] || out[l->b])))
			continue;
		arena_push(net->arena, o->near[l->a].v, o->near[l->a].n, l->b);
		arena_push(net->arena, o->near[l->b].v, o->near[l->b].n, l->a);
	}
}

/* A variable without neighbours and with one choice goes first and needs no rating. */
static bool alone(const Order *o, int v)
{
	return !o->near[v].n && o->net->var[v].n == 1;
}

/* Variables in `out` are ignored: the result is then no order to run, but shows whether one exists. */
static bool find_order(Net *net, size_t cap, const bool *out, Sweep *s)
{
	Order o;
	order_init(&o, net, out);
	*s = (Sweep){ .net = net, .order = arena_array(net->arena, int, net->nvar + 1) };
	for (int v = 0; v < net->nvar; v++)
		if (out && out[v])
			continue;
		else if (alone(&o, v))
			s->order[s->n++] = v;
		else
			rate(&o, v);
	while (o.n) {
		Item x = heap_pop(&o);
		if (o.done[x.v] || x.work != o.work[x.v])
			continue;
		double n = entries(&o, x.v);
		if (n > (double)cap || o.near[x.v].n > SCOPE_MAX - 2)
			return false;
		s->table = (size_t)n > s->table ? (size_t)n : s->table;
		o.done[x.v] = true;
		s->order[s->n++] = x.v;
		join(&o, x.v);
	}
	return true;
}

bool exact_plan(Net *net, size_t cap, Sweep *s)
{
	return find_order(net, cap, NULL, s);
}

bool exact_hopeless(Net *net, size_t cap)
{
	bool *out = arena_array(net->arena, bool, net->nvar + 1), any = false;
	Sweep s;
	for (int i = 0; i < net->nlike; i++)
		for (int k = FEW * net->like[i].n; k < net->like[i].ncopy * net->like[i].n; k++)
			any = out[net->like[i].var[k]] = true;
	return any && !find_order(net, cap, out, &s);
}

/* ---- one elimination ---- */

static bool inner_first(const Net *net, int a, int b)
{
	return net->var[a].n < net->var[b].n || (net->var[a].n == net->var[b].n && a < b);
}

static void sort_scope(const Net *net, int *v, int n)
{
	for (int i = 1; i < n; i++)
		for (int k = i; k && inner_first(net, v[k], v[k - 1]); k--) {
			int t = v[k];
			v[k] = v[k - 1];
			v[k - 1] = t;
		}
}

/* A table with the strides that the loops of an elimination need. */
typedef struct Stream {
	const double *v;
	size_t step[SCOPE_MAX];         /* stride by variable of the scope */
	size_t choice;                  /* stride by choice of the eliminated variable */
	bool row;                       /* contains the last variable of the scope */
} Stream;

/* The table with axis k moved to the front, so that for each choice the last variable is contiguous. */
static const double *in_front(Arena *a, const Table *t, int k)
{
	size_t outer = 1, n = (size_t)t->dim[k], inner;
	for (int i = 0; i < k; i++)
		outer *= (size_t)t->dim[i];
	inner = t->n / outer / n;
	double *v = arena_array(a, double, t->n);
	for (size_t o = 0; o < outer; o++)
		for (size_t c = 0; c < n; c++)
			memcpy(v + (c * outer + o) * inner, t->v + (o * n + c) * inner, sizeof *v * inner);
	return v;
}

static void stream_of(Arena *a, const Factor *f, int x, const int *scope, int m, Stream *s)
{
	size_t step = 1, rest = 1;
	int at = 0;
	*s = (Stream){ .v = f->t->v };
	while (f->var[at] != x)
		at++;
	bool front = m && f->n > 1 && at == f->n - 1 && f->var[f->n - 2] == scope[m - 1];
	if (front)
		s->v = in_front(a, f->t, at);
	for (int k = f->n - 1; k >= 0; k--) {
		if (k == at && front)
			continue;
		for (int i = 0; i < m; i++)
			if (scope[i] == f->var[k])
				s->step[i] = step;
		if (k == at)
			s->choice = step;
		step *= (size_t)f->t->dim[k];
		rest = step;
	}
	if (front)
		s->choice = rest;
	s->row = m && s->step[m - 1];
}

/* best[y] = min(best[y], base + sum of row[k][y]) */
static void lower(double *restrict best, int n, double base, const double *const *row, int nrow, double *restrict sum)
{
	if (nrow == 1) {
		const double *r = row[0];
		for (int y = 0; y < n; y++) {
			double t = base + r[y];
			best[y] = t < best[y] ? t : best[y];
		}
		return;
	}
	const double *p = row[0], *q = row[1];
	if (nrow == 2) {
		for (int y = 0; y < n; y++) {
			double t = base + p[y] + q[y];
			best[y] = t < best[y] ? t : best[y];
		}
		return;
	}
	for (int y = 0; y < n; y++)
		sum[y] = base + p[y] + q[y];
	for (int k = 2; k < nrow; k++)
		for (int y = 0; y < n; y++)
			sum[y] += row[k][y];
	for (int y = 0; y < n; y++)
		best[y] = sum[y] < best[y] ? sum[y] : best[y];
}

/* The least sum over the choices of x, for every assignment of the scope. */
static double *sweep_out(Net *net, Arena *tmp, int x, Factor **f, int nf, const int *scope, int m, const int *dim,
	size_t n)
{
	int last = m ? dim[m - 1] : 1, at[SCOPE_MAX] = { 0 };
	double *out = arena_array(net->arena, double, n), *sum = arena_array(tmp, double, last);
	Stream *s = arena_array(tmp, Stream, nf);
	const double **row = arena_array(tmp, const double *, nf);
	for (int k = 0; k < nf; k++)
		stream_of(tmp, f[k], x, scope, m, &s[k]);
	for (size_t i = 0; i < n; i += (size_t)last) {
		double *best = out + i;
		for (int y = 0; y < last; y++)
			best[y] = INFINITY;
		for (int c = 0; c < net->var[x].n; c++) {
			double base = 0;
			int nrow = 0;
			for (int k = 0; k < nf; k++)
				if (s[k].row)
					row[nrow++] = s[k].v + (size_t)c * s[k].choice;
				else
					base += s[k].v[(size_t)c * s[k].choice];
			if (base == INFINITY)
				continue;
			if (nrow)
				lower(best, last, base, row, nrow, sum);
			else
				best[0] = base < best[0] ? base : best[0];
		}
		for (int d = m - 2; d >= 0; d--) {
			bool carry = ++at[d] == dim[d];
			ptrdiff_t by = carry ? 1 - dim[d] : 1;
			for (int k = 0; k < nf; k++)
				s[k].v += by * (ptrdiff_t)s[k].step[d];
			if (!carry)
				break;
			at[d] = 0;
		}
	}
	return out;
}

/* ---- all eliminations ---- */

typedef struct Work {
	Net *net;
	Factor ***of; int *nof;         /* by variable */
	Arena tmp;
} Work;

static void add_factor(Work *w, Table *t, const int *scope, int n)
{
	Net *net = w->net;
	int v = scope[0];
	for (int k = 1; k < n; k++)
		v = w->nof[scope[k]] < w->nof[v] ? scope[k] : v;
	for (int k = 0; k < w->nof[v]; k++) {
		Factor *f = w->of[v][k];
		if (!f->gone && f->n == n && !memcmp(f->var, scope, sizeof *scope * (size_t)n)) {
			f->t = table_sum(net->tab, f->t, t);
			return;
		}
	}
	Factor *f = arena_new(net->arena, Factor);
	*f = (Factor){ .t = t, .n = n, .var = arena_array(net->arena, int, n) };
	memcpy(f->var, scope, sizeof *scope * (size_t)n);
	for (int k = 0; k < n; k++)
		arena_push(net->arena, w->of[scope[k]], w->nof[scope[k]], f);
}

static void add_all(Work *w)
{
	Net *net = w->net;
	for (int v = 0; v < net->nvar; v++)
		add_factor(w, net->var[v].own, &v, 1);
	for (int i = 0; i < net->nlink; i++) {
		Link *l = &net->link[i];
		int scope[2] = { l->a, l->b };
		if (l->gone)
			continue;
		sort_scope(net, scope, 2);
		add_factor(w, scope[0] == l->a ? l->t : table_turn(net->tab, l->t), scope, 2);
	}
}

static int scope_of(const Work *w, int x, Factor **f, int nf, int *scope)
{
	int n = 0;
	for (int k = 0; k < nf; k++)
		for (int i = 0; i < f[k]->n; i++) {
			bool in = f[k]->var[i] == x;
			for (int j = 0; j < n && !in; j++)
				in = scope[j] == f[k]->var[i];
			if (!in)
				scope[n++] = f[k]->var[i];
		}
	sort_scope(w->net, scope, n);
	return n;
}

/* The memo entry of an elimination: equal tables at equal positions give equal results. */
static Known *known(Work *w, int x, Factor **f, int nf, const int *scope, int m, bool *found)
{
	Tables *s = w->net->tab;
	table_key_begin(s, K_ELIMINATE);
	key_add(s, m);
	for (int k = 0; k < nf; k++) {
		key_add(s, f[k]->t->id);
		for (int i = 0; i < f[k]->n; i++) {
			int at = 0;
			while (at < m && scope[at] != f[k]->var[i])
				at++;
			key_add(s, f[k]->var[i] == x ? -1 : at);
		}
	}
	return table_key_find(s, found);
}

static Factor **eliminate(Work *w, int x)
{
	Net *net = w->net;
	int scope[SCOPE_MAX], dim[SCOPE_MAX], nf = 0, m;
	Factor **f = arena_array(net->arena, Factor *, w->nof[x] + 1);
	for (int k = 0; k < w->nof[x]; k++)
		if (!w->of[x][k]->gone)
			f[nf++] = w->of[x][k];
	m = scope_of(w, x, f, nf, scope);
	bool found;
	Known *k = known(w, x, f, nf, scope, m, &found);
	if (!found) {
		size_t n = 1;
		for (int i = 0; i < m; i++)
			n *= (size_t)(dim[i] = net->var[scope[i]].n);
		net->work += (double)n * net->var[x].n;
		double *v = sweep_out(net, &w->tmp, x, f, nf, scope, m, dim, n), least = INFINITY;
		for (size_t i = 0; i < n; i++)
			least = v[i] < least ? v[i] : least;
		for (size_t i = 0; i < n && least < INFINITY; i++)
			v[i] -= least;
		k->least = least;
		k->t = table_of(net->tab, m, dim, v);
		arena_free(&w->tmp);
	}
	net->sum += k->least;
	for (int i = 0; i < nf; i++)
		f[i]->gone = true;
	if (m)
		add_factor(w, k->t, scope, m);
	return f;
}

bool exact_run(Sweep *s, double *least)
{
	Net *net = s->net;
	double before = net->sum;
	Work w = { .net = net };
	w.of = arena_array(net->arena, Factor **, net->nvar);
	w.nof = arena_array(net->arena, int, net->nvar);
	add_all(&w);
	s->had = arena_array(net->arena, Factor **, net->nvar);
	for (int i = 0; i < s->n && net->sum < INFINITY && !s->stopped; i++) {
		s->had[s->order[i]] = eliminate(&w, s->order[i]);
		s->stopped = net->work > net->most;
	}
	*least = net->sum;
	net->sum = before;
	return *least < INFINITY && !s->stopped;
}

static double factor_at(const Factor *f, const int *at)
{
	size_t i = 0;
	for (int k = 0; k < f->n; k++)
		i = i * (size_t)f->t->dim[k] + (size_t)at[f->var[k]];
	return f->t->v[i];
}

void exact_decode(const Sweep *s, const int *given, int ngiven, int *at)
{
	for (int i = s->n - 1; i >= 0; i--) {
		int v = s->order[i], best = 0;
		double least = INFINITY;
		if (s->n - 1 - i < ngiven) {
			at[v] = given[v];
			continue;
		}
		for (int c = 0; c < s->net->var[v].n; c++) {
			double sum = 0;
			at[v] = c;
			for (Factor **f = s->had[v]; *f; f++)
				sum += factor_at(*f, at);
			if (sum < least) {
				least = sum;
				best = c;
			}
		}
		at[v] = best;
	}
}
