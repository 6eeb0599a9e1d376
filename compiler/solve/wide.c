/* Sequential tree-reweighted message passing, for networks that are too wide for elimination (TRW-S, Kolmogorov 2006;
 * written as in SRMP, 2015).  Costs are moved between nodes and edges without changing the cost of any solution,
 * forward and backward through the nodes, so that the sum of the smallest entries of all tables rises.  That sum is a
 * lower bound.
 *
 * Every few passes a solution is decoded in the order of the nodes, each given those before it, and improved by moves
 * of one node and of both ends of an edge.  In the end choices whose own lower bound exceeds the best solution are
 * removed; then elimination often succeeds.  Effort is counted in passes, never in time, so the result is the same
 * everywhere.
 *
 * Any movement of costs gives a valid bound, so nodes with equal neighbourhoods share messages: a problem of many
 * identical layers costs as much as one of a few. */
#include "solve/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

enum { STALL = 40, LOOK = 8, ROUNDS = 50, TWINS = 8, K_COLOUR = 48, K_LINK };
static const double WORK = 4e9;     /* table entries that all passes may visit together */

/* Nodes with equal neighbourhoods of radius `depth` are a class.  Links are a class when they have the same table and
 * the nodes at their ends have equal neighbourhoods of radius depth - 1; so all nodes of a class have the same classes
 * of links. */
typedef struct Tie {                    /* of a class of nodes: its links of one class */
	int link;
	bool first;                     /* the nodes are at end a of the links */
	int times;                      /* number of these links of one node */
} Tie;
typedef struct Class {
	int v, times;                   /* a representative; number of nodes */
	Tie *tie; int ntie;
	int fore, back;                 /* links to later and earlier nodes */
	double *own;                    /* scratch: costs by choice */
} Class;
typedef struct LinkClass {
	int l, times;                   /* a representative; number of links */
	double *at_a, *at_b;            /* costs moved into its rows and its columns */
	int *end[2], nend[2];           /* the classes of nodes at its ends b and a: mostly one each */
	Table *turned;                  /* rows are choices of b */
} LinkClass;

/* Twins: copies of a motif (fold.c) with equal costs and tables.  As long as their neighbours outside have equal
 * colours, so have they. */
typedef struct Twin {
	int like, of;                   /* its motif in Net.like; the copy that it equals, or itself */
	const int *var; int n;
	int *out, nout;                 /* of a copy that others equal: links to the outside, as position and index */
} Twin;
typedef struct Trw {
	Net *net;
	Arena *arena;
	Class *class; int nclass;
	LinkClass *link; int nlink;
	int *link_of;                   /* by link: its class */
	int *class_of;                  /* by live variable: its class */
	int *live, nlive;               /* variables that have links or more than one choice */
	Twin *twin; int ntwin;
	int *twin_of, *slot;            /* by variable: its copy and its position there; -1: in none */
	double rest;                    /* the cost of all other variables */
	double *pull;                   /* scratch */
} Trw;

static double snap(const Net *net, double x)
{
	return floor(x / net->unit) * net->unit;
}

/* ---- classes ---- */

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;
	for (int i = 0; i < 2; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

/* Insertion sort, because most nodes have a few links. */
static void sort_pairs(int (*pair)[2], int n)
{
	if (n > 16) {
		qsort(pair, (size_t)n, sizeof *pair, compare);
		return;
	}
	for (int i = 1; i < n; i++)
		for (int k = i; k && compare(pair[k], pair[k - 1]) < 0; k--)
			for (int j = 0; j < 2; j++) {
				int t = pair[k][j];
				pair[k][j] = pair[k - 1][j];
				pair[k - 1][j] = t;
			}
}

/* The number of the key that was written; new keys are counted in *count. */
static int numbered(Tables *s, int *count)
{
	bool found;
	bool forget = s->forget;
	s->forget = false;
	Known *k = table_key_find(s, &found);
	s->forget = forget;
	if (!found)
		k->nlist = (*count)++;
	return k->nlist;
}

/* Whether variables u and v, the far ends of links of copies a and b, are at the same position inside, or both
 * outside. */
static bool same_end(const Trw *w, const Twin *a, int u, const Twin *b, int v)
{
	bool in_a = w->twin_of[u] >= 0 && &w->twin[w->twin_of[u]] == a;
	bool in_b = w->twin_of[v] >= 0 && &w->twin[w->twin_of[v]] == b;
	return in_a == in_b && (!in_a || w->slot[u] == w->slot[v]);
}

/* Whether two copies have equal costs, and equal tables between equal positions. */
static bool twins(const Trw *w, const Twin *a, const Twin *b)
{
	const Net *net = w->net;
	for (int i = 0; i < a->n; i++) {
		const Var *x = &net->var[a->var[i]], *y = &net->var[b->var[i]];
		if (x->own != y->own || x->nedge != y->nedge)
			return false;
		for (int k = 0; k < x->nedge; k++) {
			const Link *l = &net->link[x->edge[k]], *m = &net->link[y->edge[k]];
			if (l->gone != m->gone)
				return false;
			if (l->gone)
				continue;
			if (l->t != m->t || (l->a == a->var[i]) != (m->a == b->var[i]))
				return false;
			if (!same_end(w, a, prune_other(l, a->var[i]), b, prune_other(m, b->var[i])))
				return false;
		}
	}
	return true;
}

static void find_out(Trw *w, Twin *t)
{
	const Net *net = w->net;
	for (int i = 0; i < t->n; i++)
		for (int k = 0; k < net->var[t->var[i]].nedge; k++) {
			const Link *l = &net->link[net->var[t->var[i]].edge[k]];
			int u = w->twin_of[prune_other(l, t->var[i])];
			if (l->gone || (u >= 0 && &w->twin[u] == t))
				continue;
			arena_push(w->arena, t->out, t->nout, i);
			arena_push(w->arena, t->out, t->nout, k);
		}
}

static void find_twins(Trw *w)
{
	const Net *net = w->net;
	int n = 0;
	w->twin_of = arena_array(w->arena, int, net->nvar + 1);
	w->slot = arena_array(w->arena, int, net->nvar + 1);
	memset(w->twin_of, -1, sizeof *w->twin_of * (size_t)net->nvar);
	for (int i = 0; i < net->nlike && !net->tab->forget; i++)
		n += net->like[i].ncopy;
	w->twin = arena_array(w->arena, Twin, n + 1);
	for (int i = 0; i < net->nlike && n; i++)
		for (int k = 0; k < net->like[i].ncopy; k++) {
			const Like *l = &net->like[i];
			Twin *t = &w->twin[w->ntwin];
			*t = (Twin){ .like = i, .of = w->ntwin, .var = l->var + k * l->n, .n = l->n };
			for (int j = 0; j < t->n; j++) {
				w->twin_of[t->var[j]] = w->ntwin;
				w->slot[t->var[j]] = j;
			}
			w->ntwin++;
		}
	for (int i = 0; i < w->ntwin; i++)
		for (int k = 0, tried = 0; k < i && w->twin[i].of == i && tried < TWINS; k++)
			if (w->twin[k].of == k && w->twin[k].like == w->twin[i].like) {
				tried++;
				w->twin[i].of = twins(w, &w->twin[k], &w->twin[i]) ? k : i;
			}
	for (int i = 0; i < w->ntwin; i++)
		if (w->twin[i].of != i && !w->twin[w->twin[i].of].out)
			find_out(w, &w->twin[w->twin[i].of]);
}

static int far_end(const Net *net, int v, int k)
{
	return prune_other(&net->link[net->var[v].edge[k]], v);
}

/* Whether the outside neighbours of a copy have the same colours as those of the copy that it equals. */
static bool still_twins(const Trw *w, const Twin *t, const int *colour)
{
	const Twin *of = &w->twin[t->of];
	for (int i = 0; i < of->nout; i += 2) {
		int at = of->out[i], k = of->out[i + 1];
		if (colour[far_end(w->net, t->var[at], k)] != colour[far_end(w->net, of->var[at], k)])
			return false;
	}
	return true;
}

static bool is_twin(const Trw *w, int v)
{
	return w->twin_of[v] >= 0 && w->twin[w->twin_of[v]].of != w->twin_of[v];
}

/* Extends the radius by one link; true when there are more colours than before. */
static bool recolour(Trw *w, int *colour, int round, int *count, int (*pair)[2])
{
	Net *net = w->net;
	int *next = arena_array(w->arena, int, net->nvar), n = 0;
	for (int i = 0; i < w->ntwin && round; i++)
		if (w->twin[i].of != i && !still_twins(w, &w->twin[i], colour))
			w->twin[i].of = i;
	for (int i = 0; i < w->nlive; i++) {
		int v = w->live[i], m = 0;
		if (is_twin(w, v))
			continue;
		const Var *x = &net->var[v];
		for (int k = 0; k < x->nedge && round; k++) {
			const Link *l = &net->link[x->edge[k]];
			if (l->gone)
				continue;
			pair[m][0] = 2 * l->t->id + (l->a == v);
			pair[m++][1] = colour[prune_other(l, v)];
		}
		sort_pairs(pair, m);
		table_key_begin(net->tab, K_COLOUR);
		key_add(net->tab, round);
		key_add(net->tab, net->tab->serial);
		key_add(net->tab, round ? colour[v] : x->own->id);
		for (int k = 0; k < m; k++) {
			key_add(net->tab, pair[k][0]);
			key_add(net->tab, pair[k][1]);
		}
		next[v] = numbered(net->tab, &n);
	}
	for (int i = 0; i < w->ntwin; i++)
		for (int k = 0; k < w->twin[i].n && w->twin[i].of != i; k++)
			next[w->twin[i].var[k]] = next[w->twin[w->twin[i].of].var[k]];
	bool more = n > *count;
	*count = n;
	memcpy(colour, next, sizeof *next * (size_t)net->nvar);
	return more;
}

/* A link of a copy that equals another, inside of it or to no other copy: its class is that of the other's link. */
static bool of_twin(const Trw *w, const Link *l)
{
	int a = w->twin_of[l->a], b = w->twin_of[l->b];
	return (a == b || a < 0 || b < 0) && (is_twin(w, l->a) || is_twin(w, l->b));
}

static void classify_links(Trw *w, const int *colour)
{
	Net *net = w->net;
	Map seen;
	map_init(&seen, w->arena);
	w->link_of = arena_array(w->arena, int, net->nlink + 1);
	memset(w->link_of, -1, sizeof *w->link_of * (size_t)net->nlink);
	for (int l = 0; l < net->nlink; l++) {
		const Link *k = &net->link[l];
		if (k->gone || of_twin(w, k))
			continue;
		int key[3] = { k->t->id, colour[k->a], colour[k->b] };
		const char *name = name_n((const char *)key, sizeof key);
		LinkClass *c = map_get(&seen, name);
		if (!c) {
			LinkClass new = { .l = l, .turned = table_turn(net->tab, k->t) };
			new.at_a = arena_array(w->arena, double, net->var[k->a].n);
			new.at_b = arena_array(w->arena, double, net->var[k->b].n);
			arena_push(w->arena, w->link, w->nlink, new);
			map_put(&seen, name, (void *)(intptr_t)w->nlink);
		}
		w->link_of[l] = (int)(intptr_t)map_get(&seen, name) - 1;
		w->link[w->link_of[l]].times++;
	}
}

/* Links of a copy that equals another take the classes of the other's links. */
static void classify_twins(Trw *w)
{
	const Net *net = w->net;
	for (int i = 0; i < w->ntwin; i++) {
		const Twin *t = &w->twin[i], *of = &w->twin[t->of];
		for (int j = 0; j < t->n && of != t; j++)
			for (int k = 0; k < net->var[t->var[j]].nedge; k++) {
				int e = net->var[t->var[j]].edge[k];
				if (net->link[e].gone || w->link_of[e] >= 0)
					continue;
				w->link_of[e] = w->link_of[net->var[of->var[j]].edge[k]];
				w->link[w->link_of[e]].times++;
			}
	}
}

static void ties(Trw *w, Class *c)
{
	const Var *x = &w->net->var[c->v];
	for (int k = 0; k < x->nedge; k++) {
		const Link *l = &w->net->link[x->edge[k]];
		if (l->gone)
			continue;
		Tie t = { w->link_of[x->edge[k]], l->a == c->v, 1 };
		int i = 0;
		while (i < c->ntie && (c->tie[i].link != t.link || c->tie[i].first != t.first))
			i++;
		if (i < c->ntie)
			c->tie[i].times++;
		else
			arena_push(w->arena, c->tie, c->ntie, t);
		*(t.first ? &c->fore : &c->back) += 1;
	}
}

static void find_live(Trw *w)
{
	const Net *net = w->net;
	w->live = arena_array(w->arena, int, net->nvar + 1);
	for (int v = 0; v < net->nvar; v++) {
		const Var *x = &net->var[v];
		bool live = x->n > 1;
		for (int k = 0; k < x->nedge && !live; k++)
			live = !net->link[x->edge[k]].gone;
		if (live)
			w->live[w->nlive++] = v;
		else
			w->rest += x->own->v[0];
	}
}

static void classify(Trw *w, int depth)
{
	Net *net = w->net;
	find_live(w);
	find_twins(w);
	int *colour = arena_array(w->arena, int, net->nvar), *before = arena_array(w->arena, int, net->nvar);
	int count = 0, most = 1;
	for (int v = 0; v < net->nvar; v++)
		most = net->var[v].nedge > most ? net->var[v].nedge : most;
	int (*pair)[2] = (int (*)[2])arena_array(w->arena, int, 2 * most);
	net->tab->serial++;                      /* colours are not comparable with those of earlier calls */
	recolour(w, colour, 0, &count, pair);
	for (int r = 1; r <= depth; r++) {
		memcpy(before, colour, sizeof *colour * (size_t)net->nvar);
		if (!recolour(w, colour, r, &count, pair))
			break;
	}
	classify_links(w, before);
	classify_twins(w);
	int *number = arena_array(w->arena, int, count + 1);
	w->class_of = arena_array(w->arena, int, net->nvar + 1);
	for (int i = 0; i < w->nlive; i++) {
		int v = w->live[i];
		if (!number[colour[v]]) {
			Class c = { .v = v, .own = arena_array(w->arena, double, net->var[v].n) };
			ties(w, &c);
			for (int k = 0; k < c.ntie; k++) {
				LinkClass *l = &w->link[c.tie[k].link];
				arena_push(w->arena, l->end[c.tie[k].first], l->nend[c.tie[k].first], w->nclass);
			}
			arena_push(w->arena, w->class, w->nclass, c);
			number[colour[v]] = w->nclass;
		}
		w->class_of[v] = number[colour[v]] - 1;
		w->class[w->class_of[v]].times++;
	}
}

/* ---- messages ---- */

/* out(x) = min over y of t(y, x) + rows(y). */
static void fold_rows(const Table *t, const double *rows, double *restrict out)
{
	int n = t->dim[0], m = t->dim[1];
	for (int x = 0; x < m; x++)
		out[x] = INFINITY;
	for (int y = 0; y < n; y++) {
		const double *r = t->v + (size_t)y * (size_t)m;
		double add = rows[y];
		for (int x = 0; x < m; x++) {
			double s = r[x] + add;
			out[x] = s < out[x] ? s : out[x];
		}
	}
}

/* The smallest entry of a link for each choice at one of its ends, after the movement of costs. */
static void link_rows(const Trw *w, int link, bool first, double *out)
{
	const LinkClass *k = &w->link[link];
	const Table *t = w->net->link[k->l].t;
	const double *mine = first ? k->at_a : k->at_b;
	fold_rows(first ? k->turned : t, first ? k->at_b : k->at_a, out);
	for (int x = 0; x < t->dim[!first]; x++)
		out[x] += mine[x];
}

/* The costs of a node after the movement of costs. */
static void own_of(const Trw *w, const Class *c, double *out)
{
	const Var *x = &w->net->var[c->v];
	memcpy(out, x->own->v, sizeof *out * (size_t)x->n);
	for (int k = 0; k < c->ntie; k++) {
		const Tie *t = &c->tie[k];
		const double *moved = t->first ? w->link[t->link].at_a : w->link[t->link].at_b;
		for (int i = 0; i < x->n; i++)
			out[i] -= t->times * moved[i];
	}
}

static double row_least(const double *v, int n)
{
	double least = INFINITY;
	for (int i = 0; i < n; i++)
		least = v[i] < least ? v[i] : least;
	return least;
}

/* Sets c->own to the costs above their minimum; returns the share of them that one link may take. */
static double spare(Trw *w, Class *c)
{
	int n = w->net->var[c->v].n, most = c->fore > c->back ? c->fore : c->back;
	own_of(w, c, c->own);
	double least = row_least(c->own, n);
	for (int x = 0; x < n; x++)
		c->own[x] -= least;
	return 1.0 / most;
}

/* Takes all costs from the links on the side already passed and gives equal shares to those on the other side.  Where
 * some of these links have nodes of another class at this end, a share is also at most what those can give. */
static void visit(Trw *w, Class *c, bool forward)
{
	int n = w->net->var[c->v].n;
	for (int k = 0; k < c->ntie; k++) {
		const Tie *t = &c->tie[k];
		if (t->first == forward)
			continue;
		double *mine = t->first ? w->link[t->link].at_a : w->link[t->link].at_b;
		link_rows(w, t->link, t->first, w->pull);
		for (int x = 0; x < n; x++)
			if (w->pull[x] < INFINITY)      /* else the link itself keeps the choice forbidden */
				mine[x] -= w->pull[x];
	}
	if (!(forward ? c->fore : c->back))
		return;
	double share = spare(w, c);
	double *own = w->pull + n;
	memcpy(own, c->own, sizeof *own * (size_t)n);
	for (int k = 0; k < c->ntie; k++) {
		const Tie *t = &c->tie[k];
		LinkClass *l = &w->link[t->link];
		double *mine = t->first ? l->at_a : l->at_b;
		if (t->first != forward)
			continue;
		for (int x = 0; x < n; x++)
			w->pull[x] = own[x] * share;
		for (int i = 0; i < l->nend[t->first]; i++) {
			Class *d = &w->class[l->end[t->first][i]];
			if (d == c)
				continue;
			double most = spare(w, d);
			for (int x = 0; x < n; x++)
				w->pull[x] = fmin(w->pull[x], d->own[x] * most);
		}
		for (int x = 0; x < n; x++)
			if (w->pull[x] < INFINITY)
				mine[x] += snap(w->net, w->pull[x]);
	}
}

static double lower_bound(Trw *w)
{
	Net *net = w->net;
	double sum = net->sum + w->rest;
	for (int i = 0; i < w->nclass; i++) {
		Class *c = &w->class[i];
		own_of(w, c, c->own);
		sum += c->times * row_least(c->own, net->var[c->v].n);
	}
	for (int i = 0; i < w->nlink; i++) {
		link_rows(w, i, false, w->pull);
		sum += w->link[i].times * row_least(w->pull, net->var[net->link[w->link[i].l].b].n);
	}
	return sum;
}

/* ---- solutions ---- */

/* The cost of each choice of v, given the choices of its neighbours; with `decode` only of those before it, and
 * messages for the rest. */
static void price(const Trw *w, int v, const int *at, bool decode, double *out)
{
	const Var *x = &w->net->var[v];
	memcpy(out, x->own->v, sizeof *out * (size_t)x->n);
	for (int k = 0; k < x->nedge; k++) {
		int e = x->edge[k];
		const Link *l = &w->net->link[e];
		int u = prune_other(l, v);
		if (l->gone)
			continue;
		if (decode && u > v) {
			for (int c = 0; c < x->n; c++)
				out[c] -= w->link[w->link_of[e]].at_a[c];
			continue;
		}
		const Table *t = l->a == v ? w->link[w->link_of[e]].turned : l->t;
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

/* Moves both ends of a link at once. */
static bool move_two(const Trw *w, int e, int *at, double *out)
{
	const Link *l = &w->net->link[e];
	int n = w->net->var[l->a].n, m = w->net->var[l->b].n, bi = at[l->a], bj = at[l->b];
	double *pa = out, *pb = out + n;
	price(w, l->a, at, false, pa);
	price(w, l->b, at, false, pb);
	const double *col = w->link[w->link_of[e]].turned->v + (size_t)bj * (size_t)n;
	const double *row = l->t->v + (size_t)bi * (size_t)m;
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

/* Nodes and links whose last move failed and whose neighbours have not changed since. */
typedef struct Calm { bool *node, *link; } Calm;

/* v took another choice, so its neighbours may move again. */
static void wake(const Trw *w, const Calm *calm, int v)
{
	const Net *net = w->net;
	for (int k = -1; k < net->var[v].nedge; k++) {
		if (k >= 0 && net->link[net->var[v].edge[k]].gone)
			continue;
		int u = k < 0 ? v : prune_other(&net->link[net->var[v].edge[k]], v);
		calm->node[u] = false;
		for (int i = 0; i < net->var[u].nedge; i++)
			calm->link[net->var[u].edge[i]] = false;
	}
}

/* Both ends have more than one choice; else a move of both is a move of one. */
static bool free_ends(const Net *net, const Link *l)
{
	return !l->gone && net->var[l->a].n > 1 && net->var[l->b].n > 1;
}

static void improve(const Trw *w, const Calm *calm, int *at, double *out)
{
	const Net *net = w->net;
	bool moved = true;
	memset(calm->node, 0, sizeof *calm->node * (size_t)net->nvar);
	memset(calm->link, 0, sizeof *calm->link * (size_t)net->nlink);
	for (int round = 0; moved && round < ROUNDS; round++) {
		moved = false;
		for (int v = 0; v < net->nvar; v++) {
			if (net->var[v].n < 2 || calm->node[v])
				continue;
			calm->node[v] = true;
			if (move_one(w, v, at, out)) {
				wake(w, calm, v);
				moved = true;
			}
		}
		for (int e = 0; e < net->nlink && !moved; e++) {
			const Link *l = &net->link[e];
			if (!free_ends(net, l) || calm->link[e])
				continue;
			calm->link[e] = true;
			if (move_two(w, e, at, out)) {
				wake(w, calm, l->a);
				wake(w, calm, l->b);
				moved = true;
			}
		}
	}
}

/* Decodes a solution and improves it.  One at the lower bound is optimal and needs no improvement. */
static void look(const Trw *w, Wide *r, const Calm *calm, int *at, double *out)
{
	for (int i = 0; i < w->nlive; i++) {
		int v = w->live[i];
		price(w, v, at, true, out);
		at[v] = least_of(out, w->net->var[v].n);
	}
	double cost = prune_cost(w->net, at);
	if (cost > r->bound) {
		improve(w, calm, at, out);
		cost = prune_cost(w->net, at);
	}
	if (cost < r->cost) {
		r->cost = cost;
		memcpy(r->at, at, sizeof *at * (size_t)w->net->nvar);
	}
}

/* ---- reduced costs ---- */

/* Removes choices that occur only in solutions worse than the best known one; the choices of that one are kept. */
static void fix(Trw *w, const Wide *r)
{
	Net *net = w->net;
	double bound = lower_bound(w);
	for (int i = 0; i < w->nclass; i++) {
		Class *c = &w->class[i];
		int n = net->var[c->v].n;
		own_of(w, c, c->own);
		double least = row_least(c->own, n);
		for (int x = 0; x < n; x++)
			c->own[x] -= least;
		for (int k = 0; k < c->ntie; k++) {
			link_rows(w, c->tie[k].link, c->tie[k].first, w->pull);
			least = row_least(w->pull, n);
			for (int x = 0; x < n; x++)
				c->own[x] += c->tie[k].times * (w->pull[x] - least);
		}
	}
	for (int i = 0; i < w->nlive; i++) {
		int v = w->live[i], n = 0, *keep = arena_array(w->arena, int, net->var[v].n), at = 0;
		const double *extra = w->class[w->class_of[v]].own;
		for (int c = 0; c < net->var[v].n; c++)
			if (c == r->at[v] || bound + extra[c] <= r->cost) {
				at = c == r->at[v] ? n : at;
				keep[n++] = c;
			}
		if (n < net->var[v].n)
			prune_keep(net, v, table_keep_of(net->tab, keep, n));
		r->at[v] = at;
	}
}

void wide_run(Net *net, int depth, int passes, Wide *r)
{
	Arena tmp = { 0 };
	Trw w = { .net = net, .arena = &tmp };
	int *at = arena_array(&tmp, int, net->nvar), most = 1, quiet = 0;
	double work = 1;
	for (int v = 0; v < net->nvar; v++)
		most = net->var[v].n > most ? net->var[v].n : most;
	double *out = arena_array(&tmp, double, 2 * most);
	Calm calm = { arena_array(&tmp, bool, net->nvar), arena_array(&tmp, bool, net->nlink + 1) };
	w.pull = arena_array(&tmp, double, 2 * most);
	classify(&w, depth);
	for (int i = 0; i < w.nlink; i++)
		work += 2 * (double)net->link[w.link[i].l].t->n;
	*r = (Wide){ .bound = -INFINITY, .cost = INFINITY, .at = arena_array(net->arena, int, net->nvar) };
	for (int next = LOOK; r->passes < passes && quiet < STALL && r->bound < r->cost;) {
		if ((r->passes + 1) * work >= WORK || (r->passes && net->work >= net->most))
			break;
		net->work += work;
		for (int i = 0; i < w.nclass; i++)
			visit(&w, &w.class[i], true);
		for (int i = w.nclass - 1; i >= 0; i--)
			visit(&w, &w.class[i], false);
		if (++r->passes % LOOK && net->work < net->most)
			continue;
		double bound = lower_bound(&w);
		quiet = bound > r->bound + 1e-5 * fabs(bound) ? 0 : quiet + LOOK;
		r->bound = bound > r->bound ? bound : r->bound;
		if (r->passes >= next)
			look(&w, r, &calm, at, out);
		next = r->passes >= next ? 2 * next : next;
	}
	if (r->bound < r->cost)
		look(&w, r, &calm, at, out);
	r->bound = r->bound < r->cost ? r->bound : r->cost;
	r->classes = w.nclass;
	if (r->cost < INFINITY && r->bound < r->cost)
		fix(&w, r);
	arena_free(&tmp);
}
