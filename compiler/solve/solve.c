/* Reads a problem and finds a solution of least cost and a lower bound.
 *
 * Identical layers are found first (fold.c): one copy of each motif is read and pruned, and the nodes that are left of
 * it represent every copy in the network of the problem, called the whole net.  Without limits this net is then pruned
 * and eliminated.  Where it is too wide for elimination, messages are passed, the choices that they rule out are
 * removed, and elimination is tried again.
 *
 * A limit on a sum of use (memory) has a price per unit, a Lagrange multiplier: the minimum of cost + price * (use -
 * limit) is a lower bound for every price.  For one limit the best price is found by secants: two solutions, one that
 * costs less and one that fits, have equal sums at one price.  Either that price gives a third solution below both, or
 * it is the best price.  More solutions lie between the two at the best price: the first k variables in the order of
 * decoding take the choices of the cheaper one, the rest are the best completion at a price that fits.  So identical
 * layers may get different choices. */
#include "solve/solve.h"

#include <math.h>
#include <string.h>

enum { SECANTS = 12, CLIMBS = 60, POLISH = 20 };
static const double FINEST = 0x1p-40;           /* seconds: costs below a picosecond do not matter */

void (*solve_seen)(const SolveProblem *, const SolveResult *);

/* A pruned copy of a motif: a net of its nodes and its ports, and those of them that are variables of the whole net. */
typedef struct Piece { Net *net; int *stay, nstay, nlink; } Piece;

/* One solution of the problem at given prices. */
typedef struct Shot {
	Arena arena, work;              /* for the solution; for net and sweep, freed by close_shot */
	Net *net;
	Piece **piece;                  /* [motif][copy] */
	Sweep sweep;                    /* exact only */
	bool possible, exact, stopped;
	int *choice, *at;
	double value, bound;            /* weight * cost + price * use */
	double cost, *used;
	int left, passes;
	size_t table;
} Shot;

typedef struct Run {
	const SolveProblem *p;
	const Fold *fold;
	Arena *arena;
	double *price;
	double weight;                  /* of costs: 1, or 0 to minimise use alone */
	bool quick;                     /* one of many solutions: a gap may remain */
} Run;

/* ---- reading ---- */

static double most(const double *v, size_t n)
{
	double m = 0;
	for (size_t i = 0; i < n; i++)
		if (v[i] < INFINITY && v[i] > m)
			m = v[i];
	return m;
}

static double price_of(const Run *r, const SolveNode *x, int c)
{
	double sum = 0;
	for (int k = 0; k < r->p->nlimit && x->use; k++)
		sum += r->price[k] * x->use[k * x->n + c];
	return sum;
}

/* The largest entry of a table, computed once. */
static double most_of(Map *seen, Arena *a, const SolveProblem *p, const SolveEdge *e)
{
	double *m = map_get(seen, e->cost);
	if (!m) {
		m = arena_new(a, double);
		*m = most(e->cost, (size_t)p->node[e->a].n * (size_t)p->node[e->b].n);
		map_put(seen, e->cost, m);
	}
	return *m;
}

/* The sum of the largest costs of some nodes and edges. */
static double most_of_all(const Run *r, Map *seen, Arena *a, const int *node, int nnode, const int *edge, int nedge)
{
	double sum = 0;
	for (int i = 0; i < nnode; i++) {
		const SolveNode *x = &r->p->node[node[i]];
		double high = 0;
		for (int c = 0; c < x->n && x->use; c++)
			high = fmax(high, price_of(r, x, c));
		sum += high + (x->cost ? r->weight * most(x->cost, (size_t)x->n) : 0);
	}
	for (int i = 0; i < nedge; i++)
		sum += r->weight * most_of(seen, a, r->p, &r->p->edge[edge[i]]);
	return sum;
}

/* The unit of costs: coarse enough that no sum needs more than 52 bits. */
static double choose_unit(const Run *r, Arena *a)
{
	const Fold *f = r->fold;
	Map seen;
	map_init(&seen, a);
	double sum = most_of_all(r, &seen, a, f->node, f->nnode, f->edge, f->nedge), unit = FINEST;
	for (int i = 0; i < f->nmotif; i++) {
		const Motif *b = &f->motif[i];
		sum += b->ncopy * most_of_all(r, &seen, a, b->node, b->nin, b->edge, b->nedge);
	}
	while (sum / unit > 0x1p50)
		unit *= 2;
	return unit;
}

static double snap(const Run *r, double unit, double x)
{
	return x == INFINITY ? x : nearbyint(r->weight * x / unit) * unit + 0.0;
}

/* The data that all nets of a problem share. */
typedef struct Reader {
	const Run *r;
	Arena *arena;
	Tables *tab;
	Table *nothing;
	double unit;
	Map read;                       /* tables by the costs they were read from */
	const int *choice;              /* 0, 1, 2 ... */
	int *var;                       /* by node of the problem: its variable in the net being read */
} Reader;

static void reader_init(Reader *d, const Run *r, Arena *a)
{
	static const int one = 1;
	int most = 0;
	*d = (Reader){ .r = r, .arena = a };
	d->tab = arena_new(a, Tables);
	d->unit = choose_unit(r, a);
	d->var = arena_array(a, int, r->p->nnode + 1);
	table_init(d->tab, a, r->p->forget);
	map_init(&d->read, a);
	for (int i = 0; i < r->p->nnode; i++)
		most = r->p->node[i].n > most ? r->p->node[i].n : most;
	int *choice = arena_array(a, int, most + 1);
	for (int c = 0; c < most; c++)
		choice[c] = c;
	d->choice = choice;
	d->nothing = table_of(d->tab, 1, &one, arena_array(a, double, 1));
}

/* Nodes with equal costs share a table, and all share one list of choice numbers. */
static void read_node(Reader *d, Var *v, int i)
{
	const SolveNode *x = &d->r->p->node[i];
	v->n = x->n;
	v->choice = d->choice;
	v->own = x->use || !x->cost ? NULL : map_get(&d->read, x->cost);
	if (v->own && v->own->n == (size_t)x->n)
		return;
	double *own = arena_array(d->arena, double, x->n);
	for (int c = 0; c < x->n; c++) {
		double price = floor(price_of(d->r, x, c) / d->unit) * d->unit;
		own[c] = (x->cost ? snap(d->r, d->unit, x->cost[c]) : 0) + price;
	}
	v->own = table_of(d->tab, 1, &x->n, own);
	if (x->cost && !x->use)
		map_put(&d->read, x->cost, v->own);
}

/* A port: its own costs belong to the whole net, so they are zero here. */
static void read_port(Reader *d, Var *v, int i)
{
	v->n = d->r->p->node[i].n;
	v->choice = d->choice;
	v->own = table_of(d->tab, 1, &v->n, arena_array(d->arena, double, v->n));
	v->fixed = true;
}

static Table *read_table(Reader *d, const SolveEdge *e)
{
	Table *t = map_get(&d->read, e->cost);
	int dim[2] = { d->r->p->node[e->a].n, d->r->p->node[e->b].n };
	size_t n = (size_t)dim[0] * (size_t)dim[1];
	if (t)
		return t;
	double *v = arena_array(d->arena, double, n);
	for (size_t k = 0; k < n; k++)
		v[k] = snap(d->r, d->unit, e->cost[k]);
	t = table_of(d->tab, 2, dim, v);
	map_put(&d->read, e->cost, t);
	return t;
}

static void put_link(Net *net, int a, int b, Table *t)
{
	Link *l = &net->link[net->nlink];
	*l = (Link){ a < b ? a : b, a < b ? b : a, a < b ? t : table_turn(net->tab, t), false };
	arena_push(net->arena, net->var[l->a].edge, net->var[l->a].nedge, net->nlink);
	arena_push(net->arena, net->var[l->b].edge, net->var[l->b].nedge, net->nlink);
	net->nlink++;
}

static void read_edges(Reader *d, Net *net, const int *edge, int nedge)
{
	for (int i = 0; i < nedge; i++) {
		const SolveEdge *e = &d->r->p->edge[edge[i]];
		Table *t = read_table(d, e);
		if (e->a != e->b) {
			put_link(net, d->var[e->a], d->var[e->b], t);
			continue;
		}
		int n = d->r->p->node[e->a].n;
		Var *v = &net->var[d->var[e->a]];
		double *own = arena_array(d->arena, double, n);
		for (int c = 0; c < n; c++)
			own[c] = t->v[(size_t)c * (size_t)n + (size_t)c];
		v->own = table_sum(d->tab, v->own, table_of(d->tab, 1, &n, own));
	}
}

static Net *new_net(Reader *d, int nvar, int nlink)
{
	Net *net = arena_new(d->arena, Net);
	*net = (Net){ .arena = d->arena, .tab = d->tab, .nothing = d->nothing, .nvar = nvar, .unit = d->unit };
	net->most = d->r->p->work ? d->r->p->work : INFINITY;
	net->var = arena_array(d->arena, Var, nvar + 1);
	net->link = arena_array(d->arena, Link, nlink + nvar + 1);
	return net;
}

/* ---- motifs ---- */

static bool live(const Net *net, int v)
{
	const Var *x = &net->var[v];
	for (int k = 0; k < x->nedge; k++)
		if (!net->link[x->edge[k]].gone)
			return true;
	return false;
}

/* Reads one copy and prunes it as far as is valid for every assignment of its ports.  Variables that remain are in
 * `stay`; all others are decided or follow from these. */
static void read_copy(Reader *d, const Motif *b, int copy, Piece *out)
{
	const int *node = b->node + (size_t)copy * (size_t)(b->nin + b->nport);
	Net *net = new_net(d, b->nin + b->nport, b->nedge);
	for (int i = 0; i < net->nvar; i++) {
		d->var[node[i]] = i;
		if (i < b->nin)
			read_node(d, &net->var[i], node[i]);
		else
			read_port(d, &net->var[i], node[i]);
	}
	read_edges(d, net, b->edge + (size_t)copy * (size_t)b->nedge, b->nedge);
	prune_run(net);
	*out = (Piece){ .net = net, .stay = arena_array(d->arena, int, b->nin + 1) };
	for (int i = 0; i < b->nin; i++)
		if (net->var[i].n > 1 || live(net, i))
			out->stay[out->nstay++] = i;
		else
			net->sum += net->var[i].own->v[0];
	for (int i = 0; i < net->nlink; i++)
		out->nlink += !net->link[i].gone;
}

static Piece **read_pieces(Reader *d)
{
	const Fold *f = d->r->fold;
	Piece **all = arena_array(d->arena, Piece *, f->nmotif + 1);
	for (int i = 0; i < f->nmotif; i++) {
		const Motif *b = &f->motif[i];
		all[i] = arena_array(d->arena, Piece, b->ncopy);
		for (int k = 0; k < b->ncopy; k++)
			if (!k || d->r->p->forget)
				read_copy(d, b, k, &all[i][k]);
			else
				all[i][k] = all[i][0];
	}
	return all;
}

/* Adds the variables and links that are left of a copy to the whole net. */
static void put_copy(Reader *d, Net *net, const Motif *b, const Piece *p, const int *node)
{
	const Net *from = p->net;
	for (int i = 0; i < p->nstay; i++) {
		const Var *x = &from->var[p->stay[i]];
		net->var[d->var[node[p->stay[i]]]] = (Var){
			.n = x->n, .choice = x->choice, .chosen = x->chosen, .own = x->own, .quiet = x->quiet,
		};
	}
	for (int i = b->nin; i < b->nin + b->nport; i++) {
		Var *x = &net->var[d->var[node[i]]];
		x->own = table_sum(d->tab, x->own, from->var[i].own);
	}
	for (int i = 0; i < from->nlink; i++)
		if (!from->link[i].gone)
			put_link(net, d->var[node[from->link[i].a]], d->var[node[from->link[i].b]], from->link[i].t);
	net->sum += from->sum;
	net->impossible |= from->impossible;
}

static void put_like(Reader *d, Net *net, const Motif *b, const Piece *p)
{
	Like *l = &net->like[net->nlike++];
	*l = (Like){ 0, p->nstay, arena_array(d->arena, int, (size_t)b->ncopy * (size_t)p->nstay + 1) };
	for (int k = 0; k < b->ncopy; k++) {
		const int *node = b->node + (size_t)k * (size_t)(b->nin + b->nport);
		for (int i = 0; i < p->nstay && p[k].nstay == p->nstay; i++)
			l->var[l->ncopy * l->n + i] = d->var[node[p->stay[i]]];
		l->ncopy += p[k].nstay == p->nstay;
	}
}

/* Numbers the nodes that are variables of the whole net, in the order of the problem. */
static const int *number(Reader *d, Piece *const *piece, int *nvar, int *nlink)
{
	const Fold *f = d->r->fold;
	int n = d->r->p->nnode, *list = arena_array(d->arena, int, n + 1);
	*nvar = 0;
	*nlink = f->nedge;
	memset(d->var, 0, sizeof *d->var * (size_t)n);
	for (int i = 0; i < f->nnode; i++)
		d->var[f->node[i]] = 1;
	for (int i = 0; i < f->nmotif; i++)
		for (int k = 0; k < f->motif[i].ncopy; k++) {
			const Motif *b = &f->motif[i];
			const Piece *p = &piece[i][k];
			const int *node = b->node + (size_t)k * (size_t)(b->nin + b->nport);
			for (int j = 0; j < p->nstay; j++)
				d->var[node[p->stay[j]]] = 1;
			*nlink += p->nlink;
		}
	for (int v = 0; v < n; v++)
		if (d->var[v]) {
			d->var[v] = *nvar;
			list[(*nvar)++] = v;
		}
	return list;
}

static Net *read_net(const Run *r, Arena *a, Piece ***pieces)
{
	const Fold *f = r->fold;
	Reader d;
	int nvar, nlink;
	reader_init(&d, r, a);
	Piece **piece = *pieces = read_pieces(&d);
	const int *list = number(&d, piece, &nvar, &nlink);
	Net *net = new_net(&d, nvar, nlink);
	net->number = list;
	net->like = arena_array(a, Like, f->nmotif + 1);
	for (int i = 0; i < f->nnode; i++)
		read_node(&d, &net->var[d.var[f->node[i]]], f->node[i]);
	read_edges(&d, net, f->edge, f->nedge);
	for (int i = 0; i < f->nmotif; i++) {
		const Motif *b = &f->motif[i];
		for (int k = 0; k < b->ncopy; k++) {
			put_copy(&d, net, b, &piece[i][k], b->node + (size_t)k * (size_t)(b->nin + b->nport));
			net->work += k && !r->p->forget ? 0 : piece[i][k].net->work;
		}
		put_like(&d, net, b, piece[i]);
	}
	return net;
}

/* ---- one solution ---- */

static double cost_of(const SolveProblem *p, const int *choice)
{
	double sum = 0;
	for (int i = 0; i < p->nnode; i++)
		sum += p->node[i].cost ? p->node[i].cost[choice[i]] : 0;
	for (int i = 0; i < p->nedge; i++) {
		const SolveEdge *e = &p->edge[i];
		sum += e->cost[(size_t)choice[e->a] * (size_t)p->node[e->b].n + (size_t)choice[e->b]];
	}
	return sum;
}

static double use_of(const SolveProblem *p, const int *choice, int k)
{
	double sum = 0;
	for (int i = 0; i < p->nnode; i++)
		if (p->node[i].use)
			sum += p->node[i].use[k * p->node[i].n + choice[i]];
	return sum;
}

static bool fits(const SolveProblem *p, const double *used)
{
	for (int k = 0; k < p->nlimit; k++)
		if (used[k] > p->limit[k])
			return false;
	return true;
}

static void measure(const SolveProblem *p, Shot *s)
{
	s->used = arena_array(&s->arena, double, p->nlimit + 1);
	s->cost = cost_of(p, s->choice);
	for (int k = 0; k < p->nlimit; k++)
		s->used[k] = use_of(p, s->choice, k);
}

/* ---- decoding ---- */

enum { MEMORY = 16 };

/* Sets the choices of all nodes of a copy, given those of its ports and of the variables that stayed. */
static void choose_inside(const Motif *b, const Piece *p, const int *node, int *at, int *choice)
{
	for (int i = 0; i < b->nin + b->nport; i++)
		at[i] = p->net->var[i].choice[0];
	for (int i = 0; i < p->nstay; i++)
		at[p->stay[i]] = choice[node[p->stay[i]]];
	for (int i = b->nin; i < b->nin + b->nport; i++)
		at[i] = choice[node[i]];
	prune_follow(p->net, at);
	for (int i = 0; i < b->nin; i++)
		choice[node[i]] = at[i];
}

static bool chosen_alike(const Motif *b, const Piece *p, const int *x, const int *y, const int *choice)
{
	for (int i = b->nin; i < b->nin + b->nport; i++)
		if (choice[x[i]] != choice[y[i]])
			return false;
	for (int i = 0; i < p->nstay; i++)
		if (choice[x[p->stay[i]]] != choice[y[p->stay[i]]])
			return false;
	return true;
}

/* Copies with equal choices at their ports have equal choices inside; few different assignments occur. */
static void choose_copies(const SolveProblem *p, const Motif *b, const Piece *piece, int *choice, int *at)
{
	int known[MEMORY], nknown = 0, size = b->nin + b->nport;
	for (int k = 0; k < b->ncopy; k++) {
		const int *node = b->node + (size_t)k * (size_t)size, *like = NULL;
		for (int i = 0; i < nknown && !like && !p->forget; i++) {
			like = b->node + (size_t)known[i] * (size_t)size;
			if (!chosen_alike(b, &piece[k], node, like, choice))
				like = NULL;
		}
		for (int i = 0; i < b->nin && like; i++)
			choice[node[i]] = choice[like[i]];
		if (like)
			continue;
		choose_inside(b, &piece[k], node, at, choice);
		if (nknown < MEMORY)
			known[nknown++] = k;
	}
}

/* The choices of all nodes, from the positions of the variables of the net. */
static void choose(const Run *r, const Shot *s, const int *pos, int *choice)
{
	const Net *net = s->net;
	const Fold *f = r->fold;
	Arena tmp = { 0 };
	int *at = arena_array(&tmp, int, r->p->nnode + 1);
	for (int v = 0; v < net->nvar; v++)
		at[v] = net->var[v].choice[pos[v]];
	prune_follow(net, at);
	for (int v = 0; v < net->nvar; v++)
		choice[net->number[v]] = at[v];
	for (int i = 0; i < f->nmotif; i++)
		choose_copies(r->p, &f->motif[i], s->piece[i], choice, at);
	arena_free(&tmp);
}

static void take(const Run *r, Shot *s, const int *at)
{
	choose(r, s, at, s->choice);
}

static bool try_exact(const Run *r, Shot *s, double *value)
{
	size_t cap = r->p->cap ? r->p->cap : SOLVE_CAP;
	if (exact_hopeless(s->net, cap) || !exact_plan(s->net, cap, &s->sweep))
		return false;
	if (exact_run(&s->sweep, value))
		exact_decode(&s->sweep, NULL, 0, s->at);
	s->table = s->sweep.table;
	return !s->sweep.stopped;
}

static int choices_left(const Net *net)
{
	int n = 0;
	for (int v = 0; v < net->nvar; v++)
		n += net->var[v].n;
	return n;
}

static void by_messages(const Run *r, Shot *s)
{
	static const struct { int depth, passes; } tries[] = { { 6, 64 }, { 12, 256 }, { 1000, 400 }, { 1000, 400 } };
	s->value = INFINITY;
	s->bound = -INFINITY;
	for (size_t t = 0; t < (r->quick ? 1 : sizeof tries / sizeof *tries); t++) {
		Wide w;
		double value;
		int was = choices_left(s->net);
		wide_run(s->net, tries[t].depth, tries[t].passes, &w);
		s->passes += w.passes;
		s->bound = w.bound > s->bound ? w.bound : s->bound;
		if (w.cost < s->value) {
			s->value = w.cost;
			take(r, s, w.at);
		}
		s->bound = s->bound < s->value ? s->bound : s->value;
		if (s->value < INFINITY && (s->bound >= s->value || s->net->work >= s->net->most))
			return;
		if (choices_left(s->net) == was)
			continue;
		prune_run(s->net);
		if (s->net->impossible || !try_exact(r, s, &value))
			continue;
		if (value <= s->value) {        /* only choices that cannot be better were removed */
			s->value = value;
			take(r, s, s->at);
		}
		s->bound = s->value;
		return;
	}
}

/* Frees all but the solution: a net takes as much memory as the graph it came from. */
static void close_shot(Shot *s)
{
	arena_free(&s->work);
	s->net = NULL;
	s->at = NULL;
	s->exact = false;
}

static void free_shot(Shot *s)
{
	close_shot(s);
	arena_free(&s->arena);
}

static Shot *shoot(const Run *r)
{
	Shot *s = arena_new(r->arena, Shot);
	s->net = read_net(r, &s->work, &s->piece);
	s->choice = arena_array(&s->arena, int, r->p->nnode + 1);
	s->at = arena_array(&s->work, int, s->net->nvar + 1);
	if (!s->net->impossible)
		prune_run(s->net);
	for (int v = 0; v < s->net->nvar; v++)
		s->left += s->net->var[v].n > 1;
	if (s->net->impossible)
		return s;
	s->exact = try_exact(r, s, &s->value);
	if (s->exact) {
		s->bound = s->value;
		if (s->value < INFINITY)
			take(r, s, s->at);
	} else {
		by_messages(r, s);
	}
	s->possible = s->value < INFINITY;
	s->stopped = s->net->work >= s->net->most && s->bound < s->value;
	if (s->possible)
		measure(r->p, s);
	return s;
}

static void let_go(Shot *s, const Shot *a, const Shot *b, const Shot *c)
{
	if (s && s != a && s != b && s != c)
		free_shot(s);
}

/* ---- limits ---- */

typedef struct Best { double cost; int *choice; double bound; } Best;

static void better(const SolveProblem *p, Best *b, double cost, const int *choice)
{
	if (!(cost < b->cost))
		return;
	b->cost = cost;
	memcpy(b->choice, choice, sizeof *choice * (size_t)p->nnode);
}

/* The change of cost when one node takes another choice. */
static double change(const SolveProblem *p, int *const *edges, const int *nedges, const int *choice, int v, int c)
{
	const SolveNode *x = &p->node[v];
	double sum = x->cost ? x->cost[c] - x->cost[choice[v]] : 0;
	for (int k = 0; k < nedges[v]; k++) {
		const SolveEdge *e = &p->edge[edges[v][k]];
		size_t m = (size_t)p->node[e->b].n, row = (size_t)choice[e->a], col = (size_t)choice[e->b];
		size_t to_row = e->a == v ? (size_t)c : row, to_col = e->b == v ? (size_t)c : col;
		sum += e->cost[to_row * m + to_col] - e->cost[row * m + col];
	}
	return sum;
}

static bool room(const SolveProblem *p, const double *used, const SolveNode *x, int from, int to)
{
	for (int k = 0; k < p->nlimit && x->use; k++)
		if (used[k] + x->use[k * x->n + to] - x->use[k * x->n + from] > p->limit[k])
			return false;
	return true;
}

/* Local search: moves of single nodes that lower the cost and keep the limits. */
static void polish(const SolveProblem *p, Arena *a, Best *b)
{
	int **edges = arena_array(a, int *, p->nnode), *nedges = arena_array(a, int, p->nnode);
	double *used = arena_array(a, double, p->nlimit + 1);
	if (b->cost == INFINITY)
		return;
	for (int i = 0; i < p->nedge; i++) {
		arena_push(a, edges[p->edge[i].a], nedges[p->edge[i].a], i);
		if (p->edge[i].a != p->edge[i].b)
			arena_push(a, edges[p->edge[i].b], nedges[p->edge[i].b], i);
	}
	for (int k = 0; k < p->nlimit; k++)
		used[k] = use_of(p, b->choice, k);
	bool moved = true;
	for (int round = 0; moved && round < POLISH; round++) {
		moved = false;
		for (int v = 0; v < p->nnode; v++) {
			const SolveNode *x = &p->node[v];
			int best = b->choice[v], from = best;
			double least = 0;
			for (int c = 0; c < x->n; c++) {
				double d = change(p, edges, nedges, b->choice, v, c);
				if (d < least && room(p, used, x, from, c)) {
					least = d;
					best = c;
				}
			}
			for (int k = 0; k < p->nlimit && x->use; k++)
				used[k] += x->use[k * x->n + best] - x->use[k * x->n + from];
			b->choice[v] = best;
			moved |= best != from;
		}
	}
	b->cost = cost_of(p, b->choice);
}

/* Combines a cheap solution with the tables of one that fits: as many choices of the first as the limits allow. */
static void mix(const Run *r, const Shot *cheap, const Shot *fit, Best *b)
{
	const SolveProblem *p = r->p;
	Arena *a = r->arena;
	int n = fit->net ? fit->net->nvar : 0, *choice = arena_array(a, int, p->nnode + 1);
	int *given = arena_array(a, int, n + 1), *at = arena_array(a, int, n + 1);
	double *used = arena_array(a, double, p->nlimit + 1);
	if (!fit->exact)
		return;
	for (int v = 0; v < n; v++) {
		const Var *x = &fit->net->var[v];
		given[v] = fit->at[v];
		for (int c = 0; c < x->n; c++)
			if (x->choice[c] == cheap->choice[fit->net->number[v]])
				given[v] = c;
	}
	for (int lo = 0, hi = n; lo < hi;) {
		int half = (lo + hi + 1) / 2;
		exact_decode(&fit->sweep, given, half, at);
		choose(r, fit, at, choice);
		for (int k = 0; k < p->nlimit; k++)
			used[k] = use_of(p, choice, k);
		if (fits(p, used))
			better(p, b, cost_of(p, choice), choice);
		if (fits(p, used))
			lo = half;
		else
			hi = half - 1;
	}
}

/* One limit: secants between a solution that is too large and one that fits. */
static void secants(Run *r, Shot *large, Shot *fit, Best *b)
{
	const SolveProblem *p = r->p;
	Shot *first = large, *last = fit;
	for (int i = 0; i < SECANTS && large->used[0] > fit->used[0]; i++) {
		r->price[0] = (fit->cost - large->cost) / (large->used[0] - fit->used[0]);
		Shot *s = shoot(r);
		double bound = s->bound - r->price[0] * p->limit[0], sum = s->cost + r->price[0] * s->used[0];
		b->bound = bound > b->bound ? bound : b->bound;
		bool ok = fits(p, s->used), same = sum >= fit->cost + r->price[0] * fit->used[0] - 1e-12 * sum;
		if (ok)
			better(p, b, s->cost, s->choice);
		if (!ok || !s->exact)
			close_shot(s);          /* mix() needs only the tables of a solution that fits */
		if (same) {
			let_go(s, first, last, NULL);
			break;
		}
		Shot **side = ok ? &fit : &large;
		let_go(*side, first, last, NULL);
		*side = s;
	}
	mix(r, large, fit, b);
	let_go(large, first, last, NULL);
	let_go(fit, first, last, NULL);
}

/* Several limits: the price of a limit that is exceeded rises, that of one with slack falls (subgradient steps). */
static void climb(Run *r, const Shot *first, Best *b)
{
	const SolveProblem *p = r->p;
	double scale = first->cost;
	for (int i = 0; i < CLIMBS; i++) {
		Shot *s = NULL;
		for (int k = 0; k < p->nlimit && !i; k++)
			r->price[k] = first->used[k] > p->limit[k] ? scale / fmax(p->limit[k], 1) : 0;
		s = shoot(r);
		double bound = s->bound;
		for (int k = 0; k < p->nlimit; k++)
			bound -= r->price[k] * p->limit[k];
		b->bound = bound > b->bound ? bound : b->bound;
		if (fits(p, s->used))
			better(p, b, s->cost, s->choice);
		for (int k = 0; k < p->nlimit; k++) {
			double over = (s->used[k] - p->limit[k]) / fmax(p->limit[k], 1);
			double step = scale / fmax(p->limit[k], 1) / (1 + i / 4);
			double growth = b->cost < INFINITY || over < 0 ? 1 : 1.5;
			r->price[k] = fmax(0, r->price[k] * growth + step * over);
		}
		free_shot(s);
	}
}

/* The solution with the least use of limit k.  Mostly the choices of least use of all nodes are compatible; else it is
 * solved for. */
static Shot *leanest(Run *r, int k)
{
	const SolveProblem *p = r->p;
	Shot *s = arena_new(r->arena, Shot);
	s->choice = arena_array(&s->arena, int, p->nnode + 1);
	for (int i = 0; i < p->nnode; i++) {
		const SolveNode *x = &p->node[i];
		int best = -1;
		for (int c = 0; c < x->n; c++) {
			double cost = x->cost ? x->cost[c] : 0, use = x->use ? x->use[k * x->n + c] : 0;
			double least = best >= 0 && x->use ? x->use[k * x->n + best] : 0;
			if (cost < INFINITY &&
				(best < 0 || use < least || (use == least && cost < (x->cost ? x->cost[best] : 0))))
				best = c;
		}
		s->choice[i] = best;
	}
	if (cost_of(p, s->choice) < INFINITY) {
		s->possible = true;
		measure(p, s);
		return s;
	}
	arena_free(&s->arena);
	memset(r->price, 0, sizeof *r->price * (size_t)p->nlimit);
	r->weight = 0;
	r->price[k] = 1;
	s = shoot(r);
	r->weight = 1;
	return s;
}

static void within_limits(Run *r, Shot *first, SolveResult *out)
{
	const SolveProblem *p = r->p;
	Best b = { INFINITY, arena_array(r->arena, int, p->nnode + 1), first->cost };
	Shot *lean = NULL;
	b.bound = first->bound;
	r->quick = true;
	for (int k = 0; k < p->nlimit; k++) {
		if (first->used[k] <= p->limit[k])
			continue;
		Shot *s = leanest(r, k);
		out->least[k] = s->used[k];
		if (fits(p, s->used))
			better(p, &b, s->cost, s->choice);
		if (!lean || (s->used[k] > p->limit[k] && fits(p, lean->used)))
			lean = s;
		else
			free_shot(s);
	}
	bool hopeless = false;
	for (int k = 0; k < p->nlimit; k++)
		hopeless |= out->least[k] > p->limit[k];
	if (!hopeless && p->nlimit == 1)
		secants(r, first, lean, &b);
	else if (!hopeless)
		climb(r, first, &b);
	polish(p, r->arena, &b);
	out->fits = b.cost < INFINITY;
	memcpy(out->choice, out->fits ? b.choice : lean->choice, sizeof *out->choice * (size_t)p->nnode);
	out->cost = cost_of(p, out->choice);
	out->bound = out->fits && b.bound > out->cost ? out->cost : b.bound;
	free_shot(lean);
}

void solve_run(const SolveProblem *p, Arena *a, SolveResult *out)
{
	Arena scratch = { 0 };
	Fold fold;
	fold_find(p, &scratch, &fold);
	Run r = { .p = p, .fold = &fold, .arena = &scratch, .weight = 1 };
	r.price = arena_array(&scratch, double, p->nlimit + 1);
	*out = (SolveResult){ .possible = false };
	out->choice = arena_array(a, int, p->nnode + 1);
	out->used = arena_array(a, double, p->nlimit + 1);
	out->least = arena_array(a, double, p->nlimit + 1);
	for (int i = 0; i < fold.nmotif; i++)
		out->folded += (fold.motif[i].ncopy - 1) * fold.motif[i].nin;
	Shot *s = shoot(&r);
	out->possible = s->possible;
	out->exact = s->exact;
	out->stopped = s->stopped;
	out->left = s->left;
	out->passes = s->passes;
	out->table = s->table;
	if (s->possible) {
		memcpy(out->choice, s->choice, sizeof *out->choice * (size_t)p->nnode);
		out->cost = s->cost;
		out->bound = s->bound < s->cost ? s->bound : s->cost;
		if (s->bound >= s->value)
			out->bound = out->cost;         /* they differ by the rounding of costs only */
		out->fits = fits(p, s->used);
		close_shot(s);
		if (!out->fits)
			within_limits(&r, s, out);
		for (int k = 0; k < p->nlimit; k++)
			out->used[k] = use_of(p, out->choice, k);
	}
	free_shot(s);
	arena_free(&scratch);
	if (solve_seen)
		solve_seen(p, out);
}
