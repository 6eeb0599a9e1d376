/* What can be decided without a search, each step leaving at least one best solution:
 *   - a choice that is never better than another one whatever the neighbours choose (Goldstein's criterion) goes;
 *   - an edge whose table is the sum of a column and a row goes, its parts join the costs of its two ends;
 *   - a node with one choice left goes, its rows join its neighbours;
 *   - a node of at most two edges follows its neighbours: its best choice is a function of theirs, and the cost of that
 *     choice is a table between them.  exact_plan takes these first, so they need no code here.
 * Of two choices that are alike the one with the lower number stays. */
#include "solve.h"

#include <math.h>
#include <string.h>

enum { K_DOMINATED = 16, K_SEPARABLE };

int link_other(const Link *l, int v)
{
	return l->a == v ? l->b : l->a;
}

double link_at(const Link *l, int v, int i, int j)
{
	int row = l->a == v ? i : j, col = l->a == v ? j : i;
	return l->t->v[(size_t)row * (size_t)l->t->dim[1] + (size_t)col];
}

void net_keep(Net *net, int v, const int *keep, int n)
{
	Var *x = &net->var[v];
	x->own = table_keep(&net->tab, x->own, 0, keep, n);
	for (int k = 0; k < x->nedge; k++) {
		Link *l = &net->link[x->edge[k]];
		if (!l->gone)
			l->t = table_keep(&net->tab, l->t, l->b == v, keep, n);
	}
	for (int i = 0; i < n; i++)
		x->choice[i] = x->choice[keep[i]];
	x->n = n;
}

/* A neighbour as v sees it: one row for each choice of v. */
typedef struct Side { const double *v; int n; int *best; } Side;

/* min over y of side(i, y) - side(j, y); where i is forbidden y does not matter. */
static double worst(const Side *s, int i, int j)
{
	const double *a = s->v + (size_t)i * (size_t)s->n, *b = s->v + (size_t)j * (size_t)s->n;
	double least = INFINITY;
	for (int y = 0; y < s->n; y++) {
		double d = a[y] == INFINITY ? INFINITY : a[y] - b[y];
		least = d < least ? d : least;
	}
	return least;
}

/* At most worst(): at the y that is best for i. */
static double guess(const Side *s, int i, int j)
{
	double a = s->v[(size_t)i * (size_t)s->n + (size_t)s->best[i]];
	return a == INFINITY ? INFINITY : a - s->v[(size_t)j * (size_t)s->n + (size_t)s->best[i]];
}

/* Whether choice i is never better than j. */
static bool dominated(const double *own, const Side *s, int ns, int i, int j)
{
	double d = own[i] - own[j];
	for (int k = 0; k < ns && d > -INFINITY; k++)
		d += guess(&s[k], i, j);
	if (!(d >= 0))
		return false;
	d = own[i] - own[j];
	for (int k = 0; k < ns && d > -INFINITY; k++)
		d += worst(&s[k], i, j);
	return d > 0 || (d == 0 && j < i);
}

static Side *sides(Net *net, int v, int *n)
{
	Var *x = &net->var[v];
	Side *s = arena_array(net->arena, Side, x->nedge + 1);
	*n = 0;
	for (int k = 0; k < x->nedge; k++) {
		Link *l = &net->link[x->edge[k]];
		if (l->gone)
			continue;
		Table *t = l->a == v ? l->t : table_turn(&net->tab, l->t);
		Side *d = &s[(*n)++];
		*d = (Side){ t->v, t->dim[1], arena_array(net->arena, int, x->n) };
		for (int i = 0; i < x->n; i++)
			for (int y = 1; y < d->n; y++)
				if (d->v[(size_t)i * (size_t)d->n + (size_t)y] < d->v[(size_t)i * (size_t)d->n + (size_t)d->best[i]])
					d->best[i] = y;
	}
	return s;
}

static void find_dominated(Net *net, int v, Known *k)
{
	Var *x = &net->var[v];
	int ns;
	Side *s = sides(net, v, &ns);
	bool *out = arena_array(net->arena, bool, x->n);
	for (int i = 0; i < x->n; i++)
		out[i] = x->own->v[i] == INFINITY;
	for (int i = x->n - 1; i >= 0; i--)
		for (int j = 0; j < x->n && !out[i]; j++)
			out[i] = j != i && !out[j] && dominated(x->own->v, s, ns, i, j);
	k->list = arena_array(net->arena, int, x->n);
	for (int i = 0; i < x->n; i++)
		if (!out[i])
			k->list[k->nlist++] = i;
}

static bool drop_choices(Net *net, int v)
{
	Var *x = &net->var[v];
	bool found;
	key_begin(&net->tab, K_DOMINATED);
	key_add(&net->tab, x->own->id);
	for (int k = 0; k < x->nedge; k++)
		if (!net->link[x->edge[k]].gone) {
			key_add(&net->tab, net->link[x->edge[k]].t->id);
			key_add(&net->tab, net->link[x->edge[k]].a == v);
		}
	Known *k = key_find(&net->tab, &found);
	if (!found)
		find_dominated(net, v, k);
	if (!k->nlist)
		net->impossible = true;
	if (!k->nlist || k->nlist == x->n)
		return false;
	net_keep(net, v, k->list, k->nlist);
	return true;
}

/* ---- edges that say nothing ---- */

/* t(i, j) = t(i, 0) + t(0, j) - t(0, 0), all finite: exact, as all sums are. */
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

static void drop_link(Net *net, Link *l)
{
	int rows = l->t->dim[0], cols = l->t->dim[1];
	double *a = arena_array(net->arena, double, rows), *b = arena_array(net->arena, double, cols);
	for (int i = 0; i < rows; i++)
		a[i] = l->t->v[(size_t)i * (size_t)cols];
	for (int j = 0; j < cols; j++)
		b[j] = l->t->v[j] - l->t->v[0];
	net->var[l->a].own = table_sum(&net->tab, net->var[l->a].own, table_of(&net->tab, 1, &rows, a));
	net->var[l->b].own = table_sum(&net->tab, net->var[l->b].own, table_of(&net->tab, 1, &cols, b));
	l->gone = true;
}

/* Also where one end has one choice: then infinite costs do no harm. */
static bool drop_empty(Net *net, Link *l)
{
	bool found;
	for (int side = 0; side < 2; side++)
		if (l->t->dim[side] == 1) {
			Var *other = &net->var[side ? l->a : l->b];
			other->own = table_sum(&net->tab, other->own, table_row(&net->tab, l->t, side));
			return l->gone = true;
		}
	key_begin(&net->tab, K_SEPARABLE);
	key_add(&net->tab, l->t->id);
	Known *k = key_find(&net->tab, &found);
	if (!found)
		k->nlist = separable(l->t);
	if (k->nlist)
		drop_link(net, l);
	return l->gone;
}

/* Two edges between the same nodes are one. */
static void merge_links(Net *net)
{
	int *seen = arena_array(net->arena, int, net->nvar);
	memset(seen, -1, sizeof *seen * (size_t)net->nvar);
	for (int v = 0; v < net->nvar; v++) {
		Var *x = &net->var[v];
		int n = 0;
		for (int k = 0; k < x->nedge; k++) {
			Link *l = &net->link[x->edge[k]];
			if (l->gone)
				continue;
			if (l->a == v && seen[l->b] >= 0 && net->link[seen[l->b]].a == v) {
				Link *first = &net->link[seen[l->b]];
				first->t = table_sum(&net->tab, first->t, l->t);
				l->gone = true;
				continue;
			}
			if (l->a == v)
				seen[l->b] = x->edge[k];
			x->edge[n++] = x->edge[k];
		}
		x->nedge = n;
	}
}

void prune(Net *net)
{
	merge_links(net);
	bool *quiet = arena_array(net->arena, bool, net->nvar);         /* nothing near it changed since it was looked at */
	for (bool again = true; again && !net->impossible;) {
		again = false;
		for (int v = 0; v < net->nvar && !net->impossible; v++) {
			Var *x = &net->var[v];
			bool changed = false;
			if (quiet[v])
				continue;
			quiet[v] = true;
			for (int k = 0; k < x->nedge; k++) {
				Link *l = &net->link[x->edge[k]];
				if (!l->gone && drop_empty(net, l))
					changed = true, quiet[link_other(l, v)] = false;
			}
			if (x->n > 1 && drop_choices(net, v))
				changed = true;
			again |= changed;
			quiet[v] = !changed;
			for (int k = 0; k < x->nedge && changed; k++)
				if (!net->link[x->edge[k]].gone)
					quiet[link_other(&net->link[x->edge[k]], v)] = false;
		}
	}
	for (int v = 0; v < net->nvar && !net->impossible; v++)
		net->impossible = net->var[v].n == 1 && net->var[v].own->v[0] == INFINITY;
}

double net_cost(const Net *net, const int *at)
{
	double sum = net->sum;
	for (int v = 0; v < net->nvar; v++)
		sum += net->var[v].own->v[at[v]];
	for (int i = 0; i < net->nlink; i++)
		if (!net->link[i].gone)
			sum += link_at(&net->link[i], net->link[i].a, at[net->link[i].a], at[net->link[i].b]);
	return sum;
}
