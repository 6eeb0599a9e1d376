/* Reads a problem, finds the smallest sum and a bound that no choice can undercut.
 *
 * Without limits: prune, then eliminate; where a cut is too wide, pass messages, remove what they rule out, and try again.
 *
 * A limit on sums of use (memory) has a price per unit, a Lagrange multiplier: the least of cost + price * (use - limit) is
 * a lower bound for every price.  For one limit the best price is found by secants: two solutions, one that costs less and
 * one that fits, have equal sums at one price; either it gives a third solution below both, or it is the best price.
 * Between the two solutions at the best price lie others: the choices of the cheaper one for the first k nodes in the order of
 * decoding, the best completion at a price that fits for the rest.  So like layers may end up with different choices. */
#include "solve.h"

#include <math.h>
#include <string.h>

enum { SECANTS = 12, CLIMBS = 60, POLISH = 20 };
static const double FINEST = 0x1p-40;           /* seconds: below a picosecond nothing matters */

void (*solve_seen)(const SolveProblem *, const SolveResult *);

/* One solution of the problem under some prices. */
typedef struct Shot {
	Arena arena, work;              /* the solution; net and sweep, as long as somebody may ask them */
	Net *net;
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
	Arena *arena;
	double *price;
	double weight;                  /* of costs: 1, or 0 to ask for the least use */
	bool quick;                     /* one of many questions: a gap may stay open */
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

/* The largest entry of a table, which is looked for once. */
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

/* So coarse that no sum needs more than 52 bits. */
static double choose_unit(const Run *r, Arena *a)
{
	const SolveProblem *p = r->p;
	double sum = 0;
	Map seen;
	map_init(&seen, a);
	for (int i = 0; i < p->nnode; i++) {
		const SolveNode *x = &p->node[i];
		double high = 0;
		for (int c = 0; c < x->n && x->use; c++)
			high = fmax(high, price_of(r, x, c));
		sum += high + (x->cost ? r->weight * most(x->cost, (size_t)x->n) : 0);
	}
	for (int i = 0; i < p->nedge; i++)
		sum += r->weight * most_of(&seen, a, p, &p->edge[i]);
	double unit = FINEST;
	while (sum / unit > 0x1p50)
		unit *= 2;
	return unit;
}

static double snap(const Run *r, double unit, double x)
{
	return x == INFINITY ? x : nearbyint(r->weight * x / unit) * unit + 0.0;
}

/* Nodes of one list of costs share it, and all share the numbers of their choices. */
static void read_node(const Run *r, Net *net, Map *read, const int *choice, int i)
{
	const SolveNode *x = &r->p->node[i];
	Var *v = &net->var[i];
	v->n = x->n;
	v->choice = choice;
	v->own = x->use || !x->cost ? NULL : map_get(read, x->cost);
	if (v->own && v->own->n == (size_t)x->n)
		return;
	double *own = arena_array(net->arena, double, x->n);
	for (int c = 0; c < x->n; c++)
		own[c] = (x->cost ? snap(r, net->unit, x->cost[c]) : 0) + floor(price_of(r, x, c) / net->unit) * net->unit;
	v->own = table_of(&net->tab, 1, &x->n, own);
	if (x->cost && !x->use)
		map_put(read, x->cost, v->own);
}

static Table *read_table(const Run *r, Net *net, Map *read, const SolveEdge *e)
{
	Table *t = map_get(read, e->cost);
	int dim[2] = { r->p->node[e->a].n, r->p->node[e->b].n };
	size_t n = (size_t)dim[0] * (size_t)dim[1];
	if (t)
		return t;
	double *v = arena_array(net->arena, double, n);
	for (size_t k = 0; k < n; k++)
		v[k] = snap(r, net->unit, e->cost[k]);
	t = table_of(&net->tab, 2, dim, v);
	map_put(read, e->cost, t);
	return t;
}

static void read_edges(const Run *r, Net *net, Map *read)
{
	net->link = arena_array(net->arena, Link, r->p->nedge + net->nvar + 1);
	for (int i = 0; i < r->p->nedge; i++) {
		const SolveEdge *e = &r->p->edge[i];
		Table *t = read_table(r, net, read, e);
		if (e->a == e->b) {
			int n = r->p->node[e->a].n;
			double *own = arena_array(net->arena, double, n);
			for (int c = 0; c < n; c++)
				own[c] = t->v[(size_t)c * (size_t)n + (size_t)c];
			net->var[e->a].own = table_sum(&net->tab, net->var[e->a].own, table_of(&net->tab, 1, &n, own));
			continue;
		}
		Link *l = &net->link[net->nlink];
		*l = (Link){ e->a < e->b ? e->a : e->b, e->a < e->b ? e->b : e->a, e->a < e->b ? t : table_turn(&net->tab, t), false };
		arena_push(net->arena, net->var[l->a].edge, net->var[l->a].nedge, net->nlink);
		arena_push(net->arena, net->var[l->b].edge, net->var[l->b].nedge, net->nlink);
		net->nlink++;
	}
}

static Net *read_net(const Run *r, Arena *a)
{
	Net *net = arena_new(a, Net);
	Map read;
	int most = 0;
	*net = (Net){ .arena = a, .nvar = r->p->nnode, .unit = choose_unit(r, a), .most = r->p->work ? r->p->work : INFINITY };
	tables_init(&net->tab, a, r->p->forget);
	map_init(&read, a);
	net->var = arena_array(a, Var, net->nvar + 1);
	for (int i = 0; i < net->nvar; i++)
		most = r->p->node[i].n > most ? r->p->node[i].n : most;
	int *choice = arena_array(a, int, most + 1);
	for (int c = 0; c < most; c++)
		choice[c] = c;
	static const int one = 1;
	net->nothing = table_of(&net->tab, 1, &one, arena_array(a, double, 1));
	for (int i = 0; i < net->nvar; i++)
		read_node(r, net, &read, choice, i);
	read_edges(r, net, &read);
	return net;
}

/* ---- one solution ---- */

double solve_cost(const SolveProblem *p, const int *choice)
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
	s->cost = solve_cost(p, s->choice);
	for (int k = 0; k < p->nlimit; k++)
		s->used[k] = use_of(p, s->choice, k);
}

static void take(Shot *s, const int *at)
{
	for (int v = 0; v < s->net->nvar; v++)
		s->choice[v] = s->net->var[v].choice[at[v]];
	follow(s->net, s->choice);
}

static bool try_exact(const Run *r, Shot *s, double *value)
{
	if (!exact_plan(s->net, r->p->cap ? r->p->cap : SOLVE_CAP, &s->sweep))
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
			take(s, w.at);
		}
		s->bound = s->bound < s->value ? s->bound : s->value;
		if (s->value < INFINITY && (s->bound >= s->value || s->net->work >= s->net->most))
			return;
		if (choices_left(s->net) == was)
			continue;
		prune(s->net);
		if (s->net->impossible || !try_exact(r, s, &value))
			continue;
		if (value <= s->value) {        /* all that could be better is still there */
			s->value = value;
			take(s, s->at);
		}
		s->bound = s->value;
		return;
	}
}

/* What is left is the solution: a net takes as much memory as the graph it came from. */
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
	s->net = read_net(r, &s->work);
	s->choice = arena_array(&s->arena, int, s->net->nvar + 1);
	s->at = arena_array(&s->work, int, s->net->nvar + 1);
	prune(s->net);
	for (int v = 0; v < s->net->nvar; v++)
		s->left += s->net->var[v].n > 1;
	if (s->net->impossible)
		return s;
	s->exact = try_exact(r, s, &s->value);
	if (s->exact) {
		s->bound = s->value;
		if (s->value < INFINITY)
			take(s, s->at);
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

/* What changes when one node takes another choice. */
static double change(const SolveProblem *p, int *const *edges, const int *nedges, const int *choice, int v, int c)
{
	const SolveNode *x = &p->node[v];
	double sum = x->cost ? x->cost[c] - x->cost[choice[v]] : 0;
	for (int k = 0; k < nedges[v]; k++) {
		const SolveEdge *e = &p->edge[edges[v][k]];
		int m = p->node[e->b].n;
		if (e->a == e->b)
			sum += e->cost[(size_t)c * (size_t)m + (size_t)c] - e->cost[(size_t)choice[v] * (size_t)m + (size_t)choice[v]];
		else if (e->a == v)
			sum += e->cost[(size_t)c * (size_t)m + (size_t)choice[e->b]] - e->cost[(size_t)choice[v] * (size_t)m + (size_t)choice[e->b]];
		else
			sum += e->cost[(size_t)choice[e->a] * (size_t)m + (size_t)c] - e->cost[(size_t)choice[e->a] * (size_t)m + (size_t)choice[v]];
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

/* Moves of single nodes that cost less and keep the limits. */
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
	b->cost = solve_cost(p, b->choice);
}

/* Between a solution that is cheap and the tables of one that fits: as much of the first as the limits allow. */
static void mix(const SolveProblem *p, Arena *a, const Shot *cheap, const Shot *fit, Best *b)
{
	int n = p->nnode, *given = arena_array(a, int, n + 1), *at = arena_array(a, int, n + 1), *choice = arena_array(a, int, n + 1);
	double *used = arena_array(a, double, p->nlimit + 1);
	if (!fit->exact)
		return;
	for (int v = 0; v < n; v++) {
		const Var *x = &fit->net->var[v];
		given[v] = fit->at[v];
		for (int c = 0; c < x->n; c++)
			if (x->choice[c] == cheap->choice[v])
				given[v] = c;
	}
	for (int lo = 0, hi = n; lo < hi;) {
		int half = (lo + hi + 1) / 2;
		exact_decode(&fit->sweep, given, half, at);
		for (int v = 0; v < n; v++)
			choice[v] = fit->net->var[v].choice[at[v]];
		follow(fit->net, choice);
		for (int k = 0; k < p->nlimit; k++)
			used[k] = use_of(p, choice, k);
		if (fits(p, used))
			better(p, b, solve_cost(p, choice), choice);
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
			close_shot(s);          /* only of one that fits the tables are asked */
		if (same) {
			let_go(s, first, last, NULL);
			break;
		}
		Shot **side = ok ? &fit : &large;
		let_go(*side, first, last, NULL);
		*side = s;
	}
	mix(p, r->arena, large, fit, b);
	let_go(large, first, last, NULL);
	let_go(fit, first, last, NULL);
}

/* Several limits: a price that is exceeded rises, one with room to spare falls (subgradient steps). */
static void climb(Run *r, const Shot *first, Best *b)
{
	const SolveProblem *p = r->p;
	double scale = first->cost;
	for (int i = 0; i < CLIMBS; i++) {
		Shot *s = NULL;
		for (int k = 0; k < p->nlimit; k++) {
			double over = (first->used[k] - p->limit[k]) / fmax(p->limit[k], 1), step = scale / fmax(p->limit[k], 1) / (1 + i / 4);
			if (!i)
				r->price[k] = over > 0 ? step : 0;
		}
		s = shoot(r);
		double bound = s->bound;
		for (int k = 0; k < p->nlimit; k++)
			bound -= r->price[k] * p->limit[k];
		b->bound = bound > b->bound ? bound : b->bound;
		if (fits(p, s->used))
			better(p, b, s->cost, s->choice);
		for (int k = 0; k < p->nlimit; k++) {
			double over = (s->used[k] - p->limit[k]) / fmax(p->limit[k], 1), step = scale / fmax(p->limit[k], 1) / (1 + i / 4);
			double price = b->cost < INFINITY || over < 0 ? r->price[k] + step * over : r->price[k] * 1.5 + step * over;
			r->price[k] = fmax(0, price);
		}
		free_shot(s);
	}
}

/* The solution that uses least of limit k.  Choices that each use least mostly go together. */
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
			if (cost < INFINITY && (best < 0 || use < least || (use == least && cost < (x->cost ? x->cost[best] : 0))))
				best = c;
		}
		s->choice[i] = best;
	}
	if (solve_cost(p, s->choice) < INFINITY) {
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
	out->cost = solve_cost(p, out->choice);
	out->bound = out->fits && b.bound > out->cost ? out->cost : b.bound;
	free_shot(lean);
}

void solve_run(const SolveProblem *p, Arena *a, SolveResult *out)
{
	Arena scratch = { 0 };
	Run r = { .p = p, .arena = &scratch, .price = arena_array(&scratch, double, p->nlimit + 1), .weight = 1 };
	*out = (SolveResult){ .choice = arena_array(a, int, p->nnode + 1), .used = arena_array(a, double, p->nlimit + 1), .least = arena_array(a, double, p->nlimit + 1) };
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
			out->bound = out->cost;         /* but for the rounding of costs */
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
