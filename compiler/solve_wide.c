/* Where the cut is too wide for elimination: sequential tree-reweighted message passing (TRW-S, Kolmogorov 2006; written as
 * in SRMP, 2015).  Costs are moved between nodes and edges without changing any sum, forward and backward through the
 * nodes, so that the sum of the smallest entries of all tables, which no solution can undercut, rises.
 *
 * Every few passes a solution is read off in the order of the nodes, each node given those before it, and improved by
 * moves of one node and of the two ends of an edge.  In the end choices whose own lower bound exceeds the best solution
 * are removed, which is often enough for elimination to succeed.  All is counted in passes, never in time, so the result
 * is the same everywhere. */
#include "solve.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

enum { PASSES = 400, STALL = 40, LOOK = 4, ROUNDS = 50 };
static const double WORK = 4e9;     /* table entries that all passes may visit together */

typedef struct Trw {
	Net *net;
	Arena *arena;
	double **own;                   /* by variable: its costs, as moved */
	double **at_a, **at_b;          /* by link: added to its rows and to its columns */
	Table **turned;                 /* by link: rows are choices of b */
	double *pull;
	int *fore, *back;               /* by variable: links to later and earlier ones */
} Trw;

static double snap(const Net *net, double x)
{
	return floor(x / net->unit) * net->unit;
}

/* out(x) = min over y of t(y, x) + rows(y): all but what is added along x. */
static void fold_rows(const Table *t, const double *rows, double *restrict out)
{
	int n = t->dim[0], m = t->dim[1];
	for (int x = 0; x < m; x++)
		out[x] = INFINITY;
	for (int y = 0; y < n; y++) {
		const double *r = t->v + (size_t)y * (size_t)m;
		double add = rows[y];
		if (add == INFINITY)
			continue;
		for (int x = 0; x < m; x++) {
			double s = r[x] + add;
			out[x] = s < out[x] ? s : out[x];
		}
	}
}

/* Moves all that link l holds of v into v. */
static void pull(Trw *w, int l, int v)
{
	const Link *k = &w->net->link[l];
	bool first = k->a == v;
	double *mine = first ? w->at_a[l] : w->at_b[l], *other = first ? w->at_b[l] : w->at_a[l];
	fold_rows(first ? w->turned[l] : k->t, other, w->pull);
	for (int x = 0; x < w->net->var[v].n; x++) {
		double take = w->pull[x] + mine[x];
		if (take == INFINITY)
			continue;               /* forbidden by the neighbours: the link goes on saying so */
		w->own[v][x] += take;
		mine[x] -= take;
	}
}

/* Moves a share of v's costs into link l. */
static void push(Trw *w, int l, int v, double share, const double *own)
{
	double *mine = w->net->link[l].a == v ? w->at_a[l] : w->at_b[l];
	for (int x = 0; x < w->net->var[v].n; x++) {
		double give = own[x] == INFINITY ? 0 : snap(w->net, own[x] * share);
		w->own[v][x] -= give;
		mine[x] += give;
	}
}

static void visit(Trw *w, int v, bool forward)
{
	Var *x = &w->net->var[v];
	int out = forward ? w->fore[v] : w->back[v], most = w->fore[v] > w->back[v] ? w->fore[v] : w->back[v];
	double *was = w->pull + x->n;
	for (int k = 0; k < x->nedge; k++) {
		const Link *l = &w->net->link[x->edge[k]];
		if (!l->gone && (link_other(l, v) < v) == forward)
			pull(w, x->edge[k], v);
	}
	if (!out)
		return;
	memcpy(was, w->own[v], sizeof *was * (size_t)x->n);
	for (int k = 0; k < x->nedge; k++) {
		const Link *l = &w->net->link[x->edge[k]];
		if (!l->gone && (link_other(l, v) > v) == forward)
			push(w, x->edge[k], v, 1.0 / most, was);
	}
}

static double row_least(const double *v, int n)
{
	double least = INFINITY;
	for (int i = 0; i < n; i++)
		least = v[i] < least ? v[i] : least;
	return least;
}

/* The smallest entry of a link by choice of v, as moved. */
static void link_rows(Trw *w, int l, int v, double *out)
{
	const Link *k = &w->net->link[l];
	bool first = k->a == v;
	const double *mine = first ? w->at_a[l] : w->at_b[l];
	fold_rows(first ? w->turned[l] : k->t, first ? w->at_b[l] : w->at_a[l], out);
	for (int x = 0; x < w->net->var[v].n; x++)
		out[x] += mine[x];
}

static double lower_bound(Trw *w)
{
	Net *net = w->net;
	double sum = net->sum;
	for (int v = 0; v < net->nvar; v++)
		sum += row_least(w->own[v], net->var[v].n);
	for (int l = 0; l < net->nlink; l++) {
		if (net->link[l].gone)
			continue;
		link_rows(w, l, net->link[l].b, w->pull);
		sum += row_least(w->pull, net->var[net->link[l].b].n);
	}
	return sum;
}

/* ---- solutions ---- */

/* What v pays for each choice, its neighbours being as they are; only those before it when `part`, with messages for the rest. */
static void price(const Trw *w, int v, const int *at, bool part, double *out)
{
	const Var *x = &w->net->var[v];
	memcpy(out, x->own->v, sizeof *out * (size_t)x->n);
	for (int k = 0; k < x->nedge; k++) {
		int e = x->edge[k];
		const Link *l = &w->net->link[e];
		int u = link_other(l, v);
		if (l->gone)
			continue;
		if (part && u > v) {
			for (int c = 0; c < x->n; c++)
				out[c] -= w->at_a[e][c];
			continue;
		}
		const Table *t = l->a == v ? w->turned[e] : l->t;
		const double *row = t->v + (size_t)at[u] * (size_t)x->n;
		for (int c = 0; c < x->n; c++)
			out[c] += row[c];
	}
}

static int least_of(const double *v, int n)
{
	int best = 0;
	for (int c = 1; c < n; c++)
		if (v[c] < v[best])
			best = c;
	return best;
}

static bool move_one(const Trw *w, int v, int *at, double *out)
{
	price(w, v, at, false, out);
	int best = least_of(out, w->net->var[v].n);
	if (!(out[best] < out[at[v]]))
		return false;
	at[v] = best;
	return true;
}

/* Both ends of a link at once. */
static bool move_two(const Trw *w, int e, int *at, double *out)
{
	const Link *l = &w->net->link[e];
	int n = w->net->var[l->a].n, m = w->net->var[l->b].n, bi = at[l->a], bj = at[l->b];
	double *pa = out, *pb = out + n;
	price(w, l->a, at, false, pa);
	price(w, l->b, at, false, pb);
	const double *col = w->turned[e]->v + (size_t)bj * (size_t)n, *row = l->t->v + (size_t)bi * (size_t)m;
	for (int i = 0; i < n; i++)
		pa[i] = col[i] == INFINITY ? INFINITY : pa[i] - col[i];
	for (int j = 0; j < m; j++)
		pb[j] = row[j] == INFINITY ? INFINITY : pb[j] - row[j];
	double least = pa[bi] + pb[bj] + row[bj];
	for (int i = 0; i < n; i++)
		for (int j = 0; j < m && pa[i] < INFINITY; j++) {
			double s = pa[i] + pb[j] + l->t->v[(size_t)i * (size_t)m + (size_t)j];
			if (s < least) {
				least = s;
				bi = i;
				bj = j;
			}
		}
	if (bi == at[l->a] && bj == at[l->b])
		return false;
	at[l->a] = bi;
	at[l->b] = bj;
	return true;
}

static void improve(const Trw *w, int *at, double *out)
{
	bool moved = true;
	for (int round = 0; moved && round < ROUNDS; round++) {
		moved = false;
		for (int v = 0; v < w->net->nvar; v++)
			moved |= w->net->var[v].n > 1 && move_one(w, v, at, out);
		for (int e = 0; e < w->net->nlink && !moved; e++)
			moved |= !w->net->link[e].gone && move_two(w, e, at, out);
	}
}

static void look(const Trw *w, Wide *r, int *at, double *out)
{
	for (int v = 0; v < w->net->nvar; v++) {
		price(w, v, at, true, out);
		at[v] = least_of(out, w->net->var[v].n);
	}
	improve(w, at, out);
	double cost = net_cost(w->net, at);
	if (cost < r->cost) {
		r->cost = cost;
		memcpy(r->at, at, sizeof *at * (size_t)w->net->nvar);
	}
}

/* ---- */

static double begin(Trw *w)
{
	Net *net = w->net;
	double work = 0;
	int most = 1;
	w->own = arena_array(w->arena, double *, net->nvar);
	w->fore = arena_array(w->arena, int, net->nvar);
	w->back = arena_array(w->arena, int, net->nvar);
	w->at_a = arena_array(w->arena, double *, net->nlink + 1);
	w->at_b = arena_array(w->arena, double *, net->nlink + 1);
	w->turned = arena_array(w->arena, Table *, net->nlink + 1);
	for (int v = 0; v < net->nvar; v++) {
		most = net->var[v].n > most ? net->var[v].n : most;
		w->own[v] = arena_array(w->arena, double, net->var[v].n);
		memcpy(w->own[v], net->var[v].own->v, sizeof(double) * (size_t)net->var[v].n);
	}
	for (int l = 0; l < net->nlink; l++) {
		Link *k = &net->link[l];
		if (k->gone)
			continue;
		w->at_a[l] = arena_array(w->arena, double, net->var[k->a].n);
		w->at_b[l] = arena_array(w->arena, double, net->var[k->b].n);
		w->turned[l] = table_turn(&net->tab, k->t);
		w->fore[k->a]++;
		w->back[k->b]++;
		work += 2 * (double)k->t->n;
	}
	w->pull = arena_array(w->arena, double, 2 * most);
	return work;
}

/* Removes choices of whose solutions all cost more than the best one known; at is kept. */
static void fix(Trw *w, const Wide *r)
{
	Net *net = w->net;
	double **extra = arena_array(w->arena, double *, net->nvar), bound = lower_bound(w);
	for (int v = 0; v < net->nvar; v++) {
		Var *x = &net->var[v];
		extra[v] = arena_array(w->arena, double, x->n);
		double least = row_least(w->own[v], x->n);
		for (int c = 0; c < x->n; c++)
			extra[v][c] = w->own[v][c] - least;
		for (int k = 0; k < x->nedge; k++) {
			if (net->link[x->edge[k]].gone)
				continue;
			link_rows(w, x->edge[k], v, w->pull);
			least = row_least(w->pull, x->n);
			for (int c = 0; c < x->n; c++)
				extra[v][c] += w->pull[c] - least;
		}
	}
	for (int v = 0; v < net->nvar; v++) {
		int n = 0, *keep = arena_array(w->arena, int, net->var[v].n), at = 0;
		for (int c = 0; c < net->var[v].n; c++)
			if (c == r->at[v] || bound + extra[v][c] <= r->cost) {
				at = c == r->at[v] ? n : at;
				keep[n++] = c;
			}
		if (n < net->var[v].n)
			net_keep(net, v, keep, n);
		r->at[v] = at;
	}
}

void wide_run(Net *net, Wide *r)
{
	Arena tmp = { 0 };
	Trw w = { .net = net, .arena = &tmp };
	double work = begin(&w);
	int *at = arena_array(&tmp, int, net->nvar), most = 1, quiet = 0;
	for (int v = 0; v < net->nvar; v++)
		most = net->var[v].n > most ? net->var[v].n : most;
	double *out = arena_array(&tmp, double, 2 * most);
	*r = (Wide){ .bound = -INFINITY, .cost = INFINITY, .at = arena_array(net->arena, int, net->nvar) };
	while (r->passes < PASSES && quiet < STALL && (r->passes + 1) * work < WORK && r->bound < r->cost) {
		for (int v = 0; v < net->nvar; v++)
			visit(&w, v, true);
		for (int v = net->nvar - 1; v >= 0; v--)
			visit(&w, v, false);
		if (++r->passes % LOOK && r->passes > 2)
			continue;
		double bound = lower_bound(&w);
		quiet = bound > r->bound + 1e-5 * fabs(bound) ? 0 : quiet + LOOK;
		r->bound = bound > r->bound ? bound : r->bound;
		look(&w, r, at, out);
	}
	if (r->cost == INFINITY)
		look(&w, r, at, out);
	r->bound = r->bound < r->cost ? r->bound : r->cost;
	if (r->cost < INFINITY)
		fix(&w, r);
	arena_free(&tmp);
}
