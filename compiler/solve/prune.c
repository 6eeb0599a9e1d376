/* Decisions that need no search.  Each step keeps at least one optimal solution:
 *   - a choice that is never better than another, whatever the neighbours choose, is removed (Goldstein's criterion);
 *   - an edge whose table is the sum of a column and a row is removed; column and row are added to the costs of its
 *     ends;
 *   - the edges of a node with one remaining choice are removed; their rows are added to the costs of the neighbours;
 *   - a node of at most two edges follows its neighbours: its best choice is a function of theirs, and the cost of that
 *     choice becomes a table between them.  This often makes more of their choices removable.
 * Of two equivalent choices the one with the lower number is kept. */
#include "solve/solve.h"

#include <math.h>
#include <string.h>

enum { K_DOMINATED = 16, K_CHOSEN, K_FOLLOW };

int prune_other(const Link *l, int v)
{
	return l->a == v ? l->b : l->a;
}

/* The cost of a link for choice i of v and choice j of the other end. */
static double prune_at(const Link *l, int v, int i, int j)
{
	int row = l->a == v ? i : j, col = l->a == v ? j : i;
	return l->t->v[(size_t)row * (size_t)l->t->dim[1] + (size_t)col];
}

/* The choices of x at the positions in `keep`, as numbers of the problem. */
static const Known *chosen(Net *net, const Var *x, Known *keep)
{
	bool found;
	if (keep->chosen && keep->from == x->chosen && !net->tab->forget)
		return keep->chosen;
	table_key_begin(net->tab, K_CHOSEN);
	key_add(net->tab, x->chosen);
	key_add(net->tab, keep->id);
	Known *k = table_key_find(net->tab, &found);
	if (!found) {
		k->nlist = keep->nlist;
		k->list = arena_array(net->arena, int, k->nlist);
		for (int i = 0; i < k->nlist; i++)
			k->list[i] = x->choice[keep->list[i]];
	}
	keep->from = x->chosen;
	return keep->chosen = k;
}

/* v changed, so it and its neighbours are visited again. */
static void wake(Net *net, int v)
{
	const Var *x = &net->var[v];
	net->var[v].quiet = false;
	for (int k = 0; k < x->nedge; k++)
		if (!net->link[x->edge[k]].gone)
			net->var[prune_other(&net->link[x->edge[k]], v)].quiet = false;
}

void prune_keep(Net *net, int v, Known *keep)
{
	Var *x = &net->var[v];
	x->own = table_keep(net->tab, x->own, 0, keep);
	for (int k = 0; k < x->nedge; k++) {
		Link *l = &net->link[x->edge[k]];
		if (!l->gone)
			l->t = table_keep(net->tab, l->t, l->b == v, keep);
	}
	const Known *k = chosen(net, x, keep);
	x->choice = k->list;
	x->chosen = k->id;
	x->n = k->nlist;
	wake(net, v);
}

/* The table between v and a neighbour, one row for each choice of v. */
typedef struct Side { const double *v; int n; int *best; } Side;

/* min over y of side(i, y) - side(j, y); a y that forbids i does not matter. */
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

/* An upper bound of worst(): its value at the y that is best for i. */
static double guess(const Side *s, int i, int j)
{
	double a = s->v[(size_t)i * (size_t)s->n + (size_t)s->best[i]];
	return a == INFINITY ? INFINITY : a - s->v[(size_t)j * (size_t)s->n + (size_t)s->best[i]];
}

/* Whether choice j dominates choice i. */
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
		Table *t = l->a == v ? l->t : table_turn(net->tab, l->t);
		Side *d = &s[(*n)++];
		*d = (Side){ t->v, t->dim[1], arena_array(net->arena, int, x->n) };
		for (int i = 0; i < x->n; i++) {
			const double *row = d->v + (size_t)i * (size_t)d->n;
			for (int y = 1; y < d->n; y++)
				d->best[i] = row[y] < row[d->best[i]] ? y : d->best[i];
		}
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
	for (int i = 0; i < ns; i++)
		net->work += (double)x->n * s[i].n;
	k->list = arena_array(net->arena, int, x->n);
	for (int i = 0; i < x->n; i++)
		if (!out[i])
			k->list[k->nlist++] = i;
	k->kept = table_keep_of(net->tab, k->list, k->nlist);
}

static bool drop_choices(Net *net, int v)
{
	Var *x = &net->var[v];
	bool found;
	table_key_begin(net->tab, K_DOMINATED);
	key_add(net->tab, x->own->id);
	for (int k = 0; k < x->nedge; k++)
		if (!net->link[x->edge[k]].gone) {
			key_add(net->tab, net->link[x->edge[k]].t->id);
			key_add(net->tab, net->link[x->edge[k]].a == v);
		}
	Known *k = table_key_find(net->tab, &found);
	if (!found)
		find_dominated(net, v, k);
	if (!k->nlist)
		net->impossible = true;
	if (!k->nlist || k->nlist == x->n)
		return false;
	prune_keep(net, v, k->kept);
	return true;
}

/* ---- edges without influence ---- */

static void drop_link(Net *net, Link *l)
{
	int rows = l->t->dim[0], cols = l->t->dim[1];
	double *a = arena_array(net->arena, double, rows), *b = arena_array(net->arena, double, cols);
	for (int i = 0; i < rows; i++)
		a[i] = l->t->v[(size_t)i * (size_t)cols];
	for (int j = 0; j < cols; j++)
		b[j] = l->t->v[j] - l->t->v[0];
	net->var[l->a].own = table_sum(net->tab, net->var[l->a].own, table_of(net->tab, 1, &rows, a));
	net->var[l->b].own = table_sum(net->tab, net->var[l->b].own, table_of(net->tab, 1, &cols, b));
	l->gone = true;
}

/* Removes a link that is separable, or one whose end has a single choice; in the latter case infinite costs are
 * allowed. */
static bool drop_empty(Net *net, Link *l)
{
	for (int side = 0; side < 2; side++)
		if (l->t->dim[side] == 1) {
			Var *other = &net->var[side ? l->a : l->b];
			other->own = table_sum(net->tab, other->own, table_row(net->tab, l->t, side));
			return l->gone = true;
		}
	if (table_separable(net->tab, l->t))
		drop_link(net, l);
	return l->gone;
}

/* Merges parallel links. */
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
				first->t = table_sum(net->tab, first->t, l->t);
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

/* ---- followers ---- */

/* min over choices c of own(c) + a(c, i) + b(c, j) */
static void least_sum(Net *net, const Table *own, const Table *a, const Table *b, Known *k)
{
	int rows = a->dim[1], cols = b ? b->dim[1] : 1, dim[2] = { rows, cols };
	double *v = arena_array(net->arena, double, (size_t)rows * (size_t)cols), least = INFINITY;
	net->work += (double)own->dim[0] * rows * cols;
	for (int i = 0; i < rows * cols; i++)
		v[i] = INFINITY;
	for (int c = 0; c < own->dim[0]; c++)
		for (int i = 0; i < rows; i++) {
			double base = own->v[c] + a->v[(size_t)c * (size_t)rows + (size_t)i];
			double *to = v + (size_t)i * (size_t)cols;
			const double *row = b ? b->v + (size_t)c * (size_t)cols : NULL;
			if (base == INFINITY)
				continue;
			for (int j = 0; j < cols; j++) {
				double t = base + (row ? row[j] : 0);
				to[j] = t < to[j] ? t : to[j];
			}
		}
	for (int i = 0; i < rows * cols; i++)
		least = v[i] < least ? v[i] : least;
	for (int i = 0; i < rows * cols && least < INFINITY; i++)
		v[i] -= least;
	k->least = least;
	k->t = table_of(net->tab, b ? 2 : 1, dim, v);
}

/* Adds a table to the link between two variables, which is created where there is none. */
static void add_link(Net *net, int a, int b, Table *t)
{
	Var *x = &net->var[net->var[a].nedge < net->var[b].nedge ? a : b];
	for (int k = 0; k < x->nedge; k++) {
		Link *l = &net->link[x->edge[k]];
		if (!l->gone && l->a == a && l->b == b) {
			l->t = table_sum(net->tab, l->t, t);
			return;
		}
	}
	net->link[net->nlink] = (Link){ a, b, t, false };
	arena_push(net->arena, net->var[a].edge, net->var[a].nedge, net->nlink);
	arena_push(net->arena, net->var[b].edge, net->var[b].nedge, net->nlink);
	net->nlink++;
}

/* Removes a variable that has one or two live links; false: it has none or more. */
static bool let_follow(Net *net, int v)
{
	Var *x = &net->var[v];
	Follow f = { .v = v, .n = x->n, .own = x->own };
	int live[2];
	for (int k = 0; k < x->nedge; k++)
		if (!net->link[x->edge[k]].gone) {
			if (f.nto == 2)
				return false;
			live[f.nto++] = x->edge[k];
		}
	if (!f.nto)
		return false;
	f.choice = x->choice;
	if (f.nto == 2 && prune_other(&net->link[live[0]], v) > prune_other(&net->link[live[1]], v)) {
		int t = live[0];
		live[0] = live[1];
		live[1] = t;
	}
	for (int k = 0; k < f.nto; k++) {
		Link *l = &net->link[live[k]];
		f.to[k] = prune_other(l, v);
		f.t[k] = l->a == v ? l->t : table_turn(net->tab, l->t);
		f.nseen[k] = net->var[f.to[k]].n;
		f.seen[k] = net->var[f.to[k]].choice;
		l->gone = true;
	}
	arena_push(net->arena, net->follow, net->nfollow, f);
	bool found;
	table_key_begin(net->tab, K_FOLLOW);
	key_add(net->tab, f.own->id);
	for (int k = 0; k < f.nto; k++)
		key_add(net->tab, f.t[k]->id);
	Known *k = table_key_find(net->tab, &found);
	if (!found)
		least_sum(net, f.own, f.t[0], f.nto == 2 ? f.t[1] : NULL, k);
	net->sum += k->least;
	net->impossible |= k->least == INFINITY;
	if (f.nto == 2)
		add_link(net, f.to[0], f.to[1], k->t);
	else
		net->var[f.to[0]].own = table_sum(net->tab, net->var[f.to[0]].own, k->t);
	x->n = 1;
	x->own = net->nothing;
	return true;
}

static int index_of(const int *list, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return i;
	return 0;
}

void prune_follow(const Net *net, int *choice)
{
	for (int i = net->nfollow - 1; i >= 0; i--) {
		const Follow *f = &net->follow[i];
		int best = 0, at[2] = { 0 };
		double least = INFINITY;
		for (int k = 0; k < f->nto; k++)
			at[k] = index_of(f->seen[k], f->nseen[k], choice[f->to[k]]);
		for (int c = 0; c < f->n; c++) {
			double sum = f->own->v[c];
			for (int k = 0; k < f->nto; k++)
				sum += f->t[k]->v[(size_t)c * (size_t)f->nseen[k] + (size_t)at[k]];
			if (sum < least) {
				least = sum;
				best = c;
			}
		}
		choice[f->v] = f->choice[best];
	}
}

/* Simplifies around one variable; returns whether anything changed. */
static bool look_at(Net *net, int v)
{
	Var *x = &net->var[v];
	bool changed = false;
	for (int k = 0; k < x->nedge; k++) {
		Link *l = &net->link[x->edge[k]];
		if (!l->gone && drop_empty(net, l)) {
			changed = true;
			net->var[prune_other(l, v)].quiet = false;
		}
	}
	if (x->n > 1 && drop_choices(net, v))
		changed = true;
	if (changed)
		wake(net, v);
	x->quiet = !changed;
	return changed;
}

void prune_run(Net *net)
{
	merge_links(net);
	for (bool again = true; again && !net->impossible && net->work < net->most;) {
		again = false;
		for (int v = 0; v < net->nvar && !net->impossible; v++)
			if (!net->var[v].quiet && !net->var[v].fixed)
				again |= look_at(net, v);
		for (int v = 0; v < net->nvar && !again && !net->impossible; v++)
			if (!net->var[v].fixed && let_follow(net, v)) {
				const Follow *f = &net->follow[net->nfollow - 1];
				for (int k = 0; k < f->nto; k++)
					net->var[f->to[k]].quiet = false;
			}
		for (int v = 0; v < net->nvar && !again; v++)
			again = !net->var[v].quiet && !net->var[v].fixed;
	}
	for (int v = 0; v < net->nvar && !net->impossible; v++)
		net->impossible = net->var[v].n == 1 && net->var[v].own->v[0] == INFINITY;
}

double prune_cost(const Net *net, const int *at)
{
	double sum = net->sum;
	for (int v = 0; v < net->nvar; v++)
		sum += net->var[v].own->v[at[v]];
	for (int i = 0; i < net->nlink; i++)
		if (!net->link[i].gone)
			sum += prune_at(&net->link[i], net->link[i].a, at[net->link[i].a], at[net->link[i].b]);
	return sum;
}
