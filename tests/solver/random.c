/* The solver of signatures against enumeration: random small graphs, chains, ladders and grids, like layers, problems
 * that are forced through message passing, and limits on sums. */
#include "solve/solve.h"

#include <math.h>
#include <string.h>

static uint64_t state;

static int below(int n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int)((state >> 33) % (uint64_t)n);
}

static int done, bad;

static void check(bool ok, const char *what, int i)
{
	done++;
	if (!ok && bad++ < 10)
		printf("not ok %s: case %d\n", what, i);
}

static double *numbers(Arena *a, int n, int most, int forbidden)
{
	double *v = arena_array(a, double, n);
	for (int i = 0; i < n; i++)
		v[i] = below(100) < forbidden ? INFINITY : below(most) * 0.125;
	return v;
}

static void node(SolveProblem *p, Arena *a, int n, int forbidden)
{
	SolveNode x = { .n = n, .cost = below(5) ? numbers(a, n, 60, forbidden) : NULL };
	arena_push(a, p->node, p->nnode, x);
}

static void edge(SolveProblem *p, Arena *a, int from, int to, int forbidden)
{
	SolveEdge e = { from, to, numbers(a, p->node[from].n * p->node[to].n, 40, forbidden) };
	arena_push(a, p->edge, p->nedge, e);
}

static void graph(SolveProblem *p, Arena *a, int nodes, int choices, int edges, int forbidden)
{
	*p = (SolveProblem){ 0 };
	for (int i = 0; i < nodes; i++)
		node(p, a, 1 + below(choices), forbidden);
	for (int i = 0; i < edges; i++)
		edge(p, a, below(nodes), below(nodes), forbidden);      /* also twice, also of a node with itself */
}

static double cost(const SolveProblem *p, const int *at)
{
	double sum = 0;
	for (int i = 0; i < p->nnode; i++)
		sum += p->node[i].cost ? p->node[i].cost[at[i]] : 0;
	for (int i = 0; i < p->nedge; i++)
		sum += p->edge[i].cost[at[p->edge[i].a] * p->node[p->edge[i].b].n + at[p->edge[i].b]];
	return sum;
}

static bool within(const SolveProblem *p, const int *at)
{
	for (int k = 0; k < p->nlimit; k++) {
		double sum = 0;
		for (int i = 0; i < p->nnode; i++)
			sum += p->node[i].use ? p->node[i].use[k * p->node[i].n + at[i]] : 0;
		if (sum > p->limit[k])
			return false;
	}
	return true;
}

static double enumerate(const SolveProblem *p)
{
	int at[16] = { 0 }, i;
	double least = INFINITY;
	do {
		double c = within(p, at) ? cost(p, at) : INFINITY;
		least = c < least ? c : least;
		for (i = 0; i < p->nnode && ++at[i] == p->node[i].n; i++)
			at[i] = 0;
	} while (i < p->nnode);
	return least;
}

static bool legal(const SolveProblem *p, const SolveResult *r)
{
	for (int i = 0; i < p->nnode; i++)
		if (r->choice[i] < 0 || r->choice[i] >= p->node[i].n)
			return false;
	return cost(p, r->choice) == r->cost;
}

static void small(void)
{
	for (int i = 0; i < 1500; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r, again;
		graph(&p, &a, 1 + below(7), 4, below(12), i % 3 ? 0 : 15);
		double least = enumerate(&p);
		solve_run(&p, &a, &r);
		check(r.possible == (least < INFINITY), "possible", i);
		if (r.possible)
			check(r.exact && legal(&p, &r) && r.cost == least && r.bound == least,
				"small graphs are solved exactly", i);
		p.forget = true;
		solve_run(&p, &a, &again);
		check(!r.possible || !memcmp(r.choice, again.choice, sizeof *r.choice * (size_t)p.nnode),
			"remembering changes nothing", i);
		arena_free(&a);
	}
}

/* Elimination is not allowed: messages, and what they rule out. */
static void forced(void)
{
	int closed = 0, n = 300;
	for (int i = 0; i < n; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r;
		graph(&p, &a, 4 + below(4), 4, 10 + below(10), 0);
		double least = enumerate(&p);
		p.cap = 1;
		solve_run(&p, &a, &r);
		check(r.possible && legal(&p, &r) && r.bound <= least && least <= r.cost,
			"bound <= optimum <= found, by messages", i);
		closed += r.cost == r.bound;
		arena_free(&a);
	}
	check(closed > n / 2, "messages alone close the gap of most small graphs", closed);
}

/* Columns of `wide` nodes, edges down and across: the sum over columns by plain dynamic programming. */
static double columns(const SolveProblem *p, Arena *a, int wide, int columns)
{
	int d = p->node[0].n, n = 1;
	for (int k = 0; k < wide; k++)
		n *= d;
	double *best = arena_array(a, double, n), *next = arena_array(a, double, n);
	for (int c = 0; c < columns; c++) {
		for (int s = 0; s < n; s++) {
			double least = c ? INFINITY : 0;
			for (int t = 0; t < n && c; t++) {
				double sum = best[t];
				for (int e = 0; e < p->nedge; e++) {
					const SolveEdge *x = &p->edge[e];
					if (x->a / wide != c - 1 || x->b / wide != c)
						continue;
					int i = t, j = s;
					for (int k = 0; k < x->a % wide; k++)
						i /= d;
					for (int k = 0; k < x->b % wide; k++)
						j /= d;
					sum += x->cost[i % d * d + j % d];
				}
				least = sum < least ? sum : least;
			}
			for (int k = 0, at = s; k < wide; k++, at /= d)
				least += p->node[c * wide + k].cost ? p->node[c * wide + k].cost[at % d] : 0;
			for (int e = 0; e < p->nedge; e++) {
				const SolveEdge *x = &p->edge[e];
				if (x->a / wide != c || x->b / wide != c)
					continue;
				int i = s, j = s;
				for (int k = 0; k < x->a % wide; k++)
					i /= d;
				for (int k = 0; k < x->b % wide; k++)
					j /= d;
				least += x->cost[i % d * d + j % d];
			}
			next[s] = least;
		}
		double *t = best;
		best = next;
		next = t;
	}
	double least = INFINITY;
	for (int s = 0; s < n; s++)
		least = best[s] < least ? best[s] : least;
	return least;
}

static void lattice(SolveProblem *p, Arena *a, int wide, int columns, int d)
{
	*p = (SolveProblem){ 0 };
	for (int i = 0; i < wide * columns; i++)
		node(p, a, d, 0);
	for (int c = 0; c < columns; c++)
		for (int k = 0; k < wide; k++) {
			if (k + 1 < wide)
				edge(p, a, c * wide + k, c * wide + k + 1, 0);
			if (c + 1 < columns)
				edge(p, a, c * wide + k, (c + 1) * wide + k, 0);
		}
}

static void lattices(void)
{
	static const int shape[][3] = { { 1, 40, 9 }, { 2, 20, 6 }, { 3, 8, 4 }, { 4, 5, 3 } };
	for (int i = 0; i < 40; i++) {
		const int *s = shape[i % 4];
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r;
		lattice(&p, &a, s[0], s[1], s[2]);
		solve_run(&p, &a, &r);
		check(r.exact && legal(&p, &r) && r.cost == columns(&p, &a, s[0], s[1]), "chains, ladders and grids",
			i);
		arena_free(&a);
	}
}

/* Like layers: tables shared, two values from layer to layer, one node that all are tied to, different ends. */
static void layers(SolveProblem *p, Arena *a, int n, int per, int more, int d)
{
	double *own[16], *in[32], *across[4];
	int from[32], to[32], nin = per - 1 + more;
	*p = (SolveProblem){ 0 };
	for (int k = 0; k < per; k++)
		own[k] = numbers(a, d, 60, 0);
	for (int k = 0; k < nin; k++) {
		from[k] = k < per - 1 ? k : below(per);
		to[k] = k < per - 1 ? k + 1 : below(per);
		in[k] = numbers(a, d * d, 40, 0);
	}
	for (int k = 0; k < 4; k++)
		across[k] = numbers(a, d * d, 40, 0);
	node(p, a, 2, 0);
	double *hub = numbers(a, 2 * d, 9, 0);
	for (int l = 0; l < n; l++) {
		int base = 1 + l * per;
		for (int k = 0; k < per; k++) {
			SolveNode x = { .n = d, .cost = own[k] };
			arena_push(a, p->node, p->nnode, x);
		}
		for (int k = 0; k < nin; k++) {
			SolveEdge e = { base + from[k], base + to[k], in[k] };
			arena_push(a, p->edge, p->nedge, e);
		}
		SolveEdge h = { 0, base + per / 2, hub }, f = { base - 1, base, across[0] },
			b = { base + per - 1, base - per, across[1] };
		arena_push(a, p->edge, p->nedge, h);
		if (l)
			arena_push(a, p->edge, p->nedge, f);
		if (l)
			arena_push(a, p->edge, p->nedge, b);
	}
	edge(p, a, 1, p->nnode - 1, 0);
}

/* Memoised results change neither choices nor cost nor bound. */
static void fold(SolveProblem *p, Arena *a, SolveResult *r, const char *what, int i)
{
	SolveResult plain;
	p->forget = false;
	solve_run(p, a, r);
	p->forget = true;
	solve_run(p, a, &plain);
	check(r->possible && legal(p, r) && r->cost == plain.cost && r->bound == plain.bound && r->fits == plain.fits,
		what, i);
	check(!memcmp(r->choice, plain.choice, sizeof *r->choice * (size_t)p->nnode), what, i);
}

static void folding(void)
{
	int by_messages = 0, within = 0;
	for (int i = 0; i < 30; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r;
		int per = 5 + below(4);
		layers(&p, &a, 12 + 7 * (i % 12), per, 1 + per / 2, 3 + below(3));
		fold(&p, &a, &r, "like layers, folded and not", i);
		check(r.exact && r.cost == r.bound, "like layers are solved exactly", i);
		p.cap = 1;
		fold(&p, &a, &r, "like layers by messages, folded and not", i);
		by_messages += !r.exact && r.passes;
		p.cap = 0;
		double *use = numbers(&a, 8, 20, 0), limit = 0;
		for (int v = 0; v < p.nnode; v++) {
			p.node[v].use = use;
			limit += use[r.choice[v]];
		}
		limit = floor(0.8 * limit);
		p.limit = &limit;
		p.nlimit = 1;
		fold(&p, &a, &r, "like layers within a limit, folded and not", i);
		within += r.fits;
		arena_free(&a);
	}
	check(by_messages > 10, "messages were passed", by_messages);
	check(within > 10, "limits were kept", within);
}

/* Columns that are alike, but for a fault in one of them: motifs are found, one copy of each is pruned, and the sum is
 * that of plain dynamic programming.  The last node of a column is tied to the first of the next. */
enum { FAULTS = 5 };

static void alike(SolveProblem *p, Arena *a, int wide, int columns, int d, int fault)
{
	double *own[8], *in[16], *across = numbers(a, d * d, 40, 0);
	int from[16], to[16], nin = wide + below(wide), odd = 1 + below(columns - 2), which = below(nin);
	*p = (SolveProblem){ 0 };
	for (int k = 0; k < wide; k++)
		own[k] = below(4) ? numbers(a, d, 60, 0) : NULL;
	for (int k = 0; k < nin; k++) {
		from[k] = k < wide - 1 ? k : below(wide);
		to[k] = k < wide - 1 ? k + 1 : below(wide);
		in[k] = numbers(a, d * d, 40, k % 5 ? 0 : 10);
	}
	for (int c = 0; c < columns; c++)
		for (int k = 0; k < wide; k++) {
			SolveNode x = { .n = d, .cost = fault == 1 && c == odd && k == which % wide ? numbers(a, d, 60,
				0) : own[k] };
			arena_push(a, p->node, p->nnode, x);
		}
	for (int c = 0; c < columns; c++) {
		for (int k = 0; k < nin; k++) {
			SolveEdge e = { c * wide + from[k], c * wide + to[k], fault == 2 && c == odd &&
				k == which ? numbers(a, d * d, 40, 0) : in[k] };
			if (fault != 3 || c != odd || k != which)
				arena_push(a, p->edge, p->nedge, e);
		}
		SolveEdge next = { c * wide + wide - 1, (c + 1) * wide, across };
		if (c + 1 < columns)
			arena_push(a, p->edge, p->nedge, next);
	}
	if (fault == 4)
		edge(p, a, odd * wide + which % wide, (odd + 1) * wide + below(wide), 0);
}

/* The nodes of a problem in another order: forward parts of all layers, then what is left of them from the last to the
 * first. */
static void reorder(SolveProblem *p, Arena *a, int per, int n)
{
	int *to = arena_array(a, int, p->nnode + 1), at = 0;
	SolveNode *node = arena_array(a, SolveNode, p->nnode + 1);
	for (int l = 0; l < n; l++)
		for (int k = 0; k < per / 2; k++)
			to[l * per + k] = at++;
	for (int l = n - 1; l >= 0; l--)
		for (int k = per / 2; k < per; k++)
			to[l * per + k] = at++;
	for (int i = n * per; i < p->nnode; i++)
		to[i] = at++;
	for (int i = 0; i < p->nnode; i++)
		node[to[i]] = p->node[i];
	p->node = node;
	for (int i = 0; i < p->nedge; i++) {
		p->edge[i].a = to[p->edge[i].a];
		p->edge[i].b = to[p->edge[i].b];
	}
}

static void motifs(void)
{
	int found = 0, n = 0;
	for (int i = 0; i < 100; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r, flat;
		int wide = 3 + i % 2, many = 16 + below(12);
		alike(&p, &a, wide, many, 3, i % FAULTS);
		double least = columns(&p, &a, wide, many);
		if (i % 3 == 0)
			reorder(&p, &a, wide, many);
		solve_run(&p, &a, &r);
		check(r.possible == (least < INFINITY), "motifs are possible when all is", i);
		if (r.possible) {
			fold(&p, &a, &r, "motifs, one read for all and each read", i);
			check(r.cost == least && r.bound == least, "motifs against dynamic programming", i);
			p.flat = true;
			solve_run(&p, &a, &flat);
			check(flat.cost == least && !flat.folded, "no motifs against dynamic programming", i);
		}
		found += r.folded > 0;
		n++;
		arena_free(&a);
	}
	check(found > n * 3 / 4, "like columns are found", found);
}

/* Something of one layer is different. */
static void plant(SolveProblem *p, Arena *a, int fault)
{
	int v = below(p->nnode - 1), e = below(p->nedge);
	SolveEdge *x = &p->edge[e];
	int n = p->node[x->a].n, m = p->node[x->b].n;
	if (fault == 1)
		p->node[v].cost = numbers(a, p->node[v].n, 60, 0);
	if (fault == 2)
		x->cost = numbers(a, n * m, 40, 0);
	if (fault == 3)
		memmove(x, x + 1, sizeof *x * (size_t)(--p->nedge - e));
	for (int k = 0; k < p->nnode && fault == 4; k++)         /* ends somewhere else */
		if (p->node[(v + k) % p->nnode].n == m) {
			x->b = (v + k) % p->nnode;
			break;
		}
	if (fault == 5)
		edge(p, a, v, below(p->nnode), 0);
}

/* All tables of one shape are one, so that only the places of edges tell nodes apart; and two edges exchange an end. */
static void only_places(SolveProblem *p)
{
	for (int i = 0; i < p->nnode - 1; i++)
		p->node[i].cost = i % 3 ? NULL : p->node[i].cost;
	for (int i = 0; i < p->nedge; i++)
		for (int k = 0; k < i; k++)
			if (p->node[p->edge[i].a].n == p->node[p->edge[k].a].n &&
				p->node[p->edge[i].b].n == p->node[p->edge[k].b].n) {
				p->edge[i].cost = p->edge[k].cost;
				break;
			}
	for (int t = 0; t < 40; t++) {
		SolveEdge *x = &p->edge[below(p->nedge - 4)], *y = x + 1 + below(4);
		if (x->cost == y->cost && x->b != y->b && x->a != y->b && y->a != x->b) {
			int b = x->b;
			x->b = y->b;
			y->b = b;
			return;
		}
	}
}

/* The shared node last, so that layers begin at 0. */
static void shared_last(SolveProblem *p)
{
	SolveNode shared = p->node[0];
	memmove(p->node, p->node + 1, sizeof *p->node * (size_t)(p->nnode - 1));
	p->node[p->nnode - 1] = shared;
	for (int e = 0; e < p->nedge; e++) {
		p->edge[e].a = p->edge[e].a ? p->edge[e].a - 1 : p->nnode - 1;
		p->edge[e].b = p->edge[e].b ? p->edge[e].b - 1 : p->nnode - 1;
	}
}

/* Layers with all that models have: two values from layer to layer, a node that all share, a part that is somewhere
 * else in the order; and faults. */
static void models(void)
{
	int found = 0, by_messages = 0, n = 120;
	double bound = 0, plain = 0;
	for (int i = 0; i < n; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r, flat;
		int per = 6 + below(10), many = 10 + below(20);
		layers(&p, &a, many, per, i % 5 ? per / 2 + below(per / 2) : 1, 3 + below(2));
		shared_last(&p);
		if (i % 2)
			reorder(&p, &a, per, many);
		if (i % 6 == 0)
			only_places(&p);
		for (int k = 0; k < i % 3; k++)
			plant(&p, &a, 1 + below(5));
		p.flat = true;
		solve_run(&p, &a, &flat);
		p.flat = false;
		fold(&p, &a, &r, "layers, one read for all and each read", i);
		check(r.cost == flat.cost && r.bound == flat.bound && r.exact, "layers cost the same, motifs or none",
			i);
		found += r.folded > 0;
		p.cap = 1;
		p.work = i % 4 ? 0 : 4e4;               /* stopped before all is found */
		solve_run(&p, &a, &r);
		check(r.bound <= flat.cost && flat.cost <= r.cost, "bound <= optimum <= found, by messages of layers",
			i);
		by_messages += !r.exact && r.passes;
		bound += r.bound;
		if (!p.work)
			fold(&p, &a, &r, "layers by messages, one read for all and each read", i);
		p.flat = true;
		solve_run(&p, &a, &flat);
		plain += flat.bound;
		arena_free(&a);
	}
	check(found > n * 3 / 4, "like layers are found", found);
	check(by_messages > n / 4, "messages were passed between motifs", by_messages);
	check(bound > 0.98 * plain, "the bound is as near with motifs", (int)(1000 * bound / plain));
}

/* Layers that have ends farther apart than colours look: five nodes that are all tied to each other, the first to a
 * node that all layers share, the last to a chain. */
enum { CORE = 5, CHAIN = 6, STEM = CORE + CHAIN };

static void stems(SolveProblem *p, Arena *a, int n, int per, int d)
{
	double *own[STEM], *in[STEM][STEM], *hub = numbers(a, 2 * d, 20, 0);
	*p = (SolveProblem){ 0 };
	for (int k = 0; k < STEM; k++)
		own[k] = numbers(a, d, 60, 0);
	for (int k = 0; k < STEM; k++)
		for (int j = 0; j < k; j++)
			in[j][k] = numbers(a, d * d, 40, 0);
	for (int i = 0; i < n * per; i++)
		arena_push(a, p->node, p->nnode, ((SolveNode){ .n = d, .cost = i % per < STEM ? own[i % per] : NULL }));
	node(p, a, 2, 0);
	for (int l = 0; l < n; l++) {
		for (int k = 0; k < STEM; k++)
			for (int j = k < CORE ? 0 : k - 1; j < k; j++)
				arena_push(a, p->edge, p->nedge, ((SolveEdge){ l * per + j, l * per + k, in[j][k] }));
		arena_push(a, p->edge, p->nedge, ((SolveEdge){ n * per, l * per, hub }));
	}
}

/* At the end of a chain four nodes by four tables, in two pairs by one table.  In one layer the pairs are others: each
 * node is tied as its like is. */
static void crossed(void)
{
	for (int i = 0; i < 20; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r, flat;
		int per = STEM + 4, many = 8 + below(8), odd = below(many);
		stems(&p, &a, many, per, 3);
		double *arm[4], *pair = numbers(&a, 9, 90, 0);
		for (int k = 0; k < 4; k++)
			arm[k] = numbers(&a, 9, 40, 0);
		for (int l = 0; l < many; l++) {
			int x = l * per + STEM;
			for (int k = 0; k < 4; k++)
				arena_push(&a, p.edge, p.nedge, ((SolveEdge){ x - 1, x + k, arm[k] }));
			for (int k = 0; k < 2; k++)
				arena_push(&a, p.edge, p.nedge,
					((SolveEdge){ x + k, x + (l == odd ? 3 - k : 2 + k), pair }));
		}
		p.flat = true;
		solve_run(&p, &a, &flat);
		p.flat = false;
		fold(&p, &a, &r, "layers and one of other pairs, one read for all and each read", i);
		check(flat.exact && r.cost == flat.cost && r.bound == flat.bound,
			"layers and one of other pairs, motifs or none", i);
		check(r.folded > 0, "all but that of other pairs are found", i);
		arena_free(&a);
	}
}

/* At one of the five hangs a node that has other costs in each layer.  Pruning adds them to those of the one: what is
 * left is alike but for that. */
static void hanging(void)
{
	int by_messages = 0;
	for (int i = 0; i < 20; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r, flat;
		int many = 8 + below(8);
		double *tie = numbers(&a, 9, 40, 0);
		stems(&p, &a, many, STEM, 3);
		for (int l = 0; l < many; l++) {
			arena_push(&a, p.node, p.nnode, ((SolveNode){ .n = 3, .cost = numbers(&a, 3, 20, 0) }));
			arena_push(&a, p.edge, p.nedge, ((SolveEdge){ l * STEM + 1, p.nnode - 1, tie }));
		}
		p.flat = true;
		solve_run(&p, &a, &flat);
		p.flat = false;
		p.cap = 1;
		fold(&p, &a, &r, "layers of other costs by messages, one read for all and each read", i);
		check(flat.exact && r.folded > 0 && r.bound <= flat.cost && flat.cost <= r.cost,
			"bound <= optimum <= found, by messages of layers of other costs", i);
		by_messages += !r.exact && r.passes;
		arena_free(&a);
	}
	check(by_messages > 10, "messages were passed between layers of other costs", by_messages);
}

/* Random graphs that no elimination can solve: the bound stays below every solution that is found. */
static void wide(void)
{
	for (int i = 0; i < 6; i++) {
		Arena a = { 0 };
		SolveProblem p = { 0 };
		SolveResult r;
		for (int k = 0; k < 60; k++)
			node(&p, &a, 12, 0);
		for (int k = 0; k < 300; k++) {
			int from = below(60), to = below(60);
			if (from != to)
				edge(&p, &a, from, to, i % 2 ? 3 : 0);
		}
		p.cap = 4096;
		solve_run(&p, &a, &r);
		check(r.possible && !r.exact && legal(&p, &r) && r.bound <= r.cost && r.passes, "wide graphs", i);
		check(r.cost - r.bound < 0.5 * r.cost, "the gap of wide graphs",
			(int)(100 * (r.cost - r.bound) / r.cost));
		for (int t = 0; t < 2000; t++) {
			int at[60];
			for (int k = 0; k < 60; k++)
				at[k] = below(3) ? r.choice[k] : below(12);
			check(r.bound <= cost(&p, at), "no solution is below the bound", i);
		}
		arena_free(&a);
	}
}

static void limits_kept(void)
{
	int met = 0, exact = 0, can = 0, n = 400;
	double over = 0;
	for (int i = 0; i < n; i++) {
		Arena a = { 0 };
		SolveProblem p;
		SolveResult r;
		double limit[2];
		graph(&p, &a, 3 + below(5), 4, 3 + below(8), 0);
		p.limit = limit;
		p.nlimit = 1 + i % 2;
		double most = 0;
		for (int v = 0; v < p.nnode; v++) {
			double *use = arena_array(&a, double, 2 * p.node[v].n);
			for (int c = 0; c < 2 * p.node[v].n; c++)
				most += (use[c] = below(9)) / p.node[v].n / 2;
			p.node[v].use = use;
		}
		limit[0] = floor(most * (1 + below(4)) / 4);
		limit[1] = floor(most);
		double least = enumerate(&p);
		solve_run(&p, &a, &r);
		met += r.fits == (least < INFINITY);
		can += least < INFINITY;
		exact += r.fits && r.cost == least;
		over += r.fits ? (r.cost - least) / fmax(least, 1) : 0;
		check(!r.fits || (least < INFINITY && within(&p, r.choice) && legal(&p, &r)),
			"what is said to fit fits", i);
		check(!r.fits || (r.bound <= least && least <= r.cost), "bound <= optimum <= found, within limits", i);
		check(p.nlimit > 1 || r.fits == (least < INFINITY), "with one limit, what can fit is found", i);
		if (p.nlimit == 1 && !r.fits) {
			double need = r.least[0];
			p.limit = &need;
			check(enumerate(&p) < INFINITY, "the smallest limit that would do does", i);
			need = r.least[0] - 1;
			check(enumerate(&p) == INFINITY, "a smaller one does not", i);
		}
		arena_free(&a);
	}
	check(met > n * 95 / 100, "what fits is found", met);
	check(exact > can * 3 / 4, "limits are mostly met at the least cost", exact);
	check(over < 0.03 * can, "limits are met at a cost near the least", (int)(1000 * over / can));
}

/* Layers that are alike differ when that is what fits. */
static void layers_differ(void)
{
	Arena a = { 0 };
	SolveProblem p = { 0 };
	SolveResult r;
	static const double own[] = { 1, 2 }, use[] = { 10, 5 }, tie[] = { 0, 0.25, 0.25, 0 }, limit[] = { 80 };
	for (int i = 0; i < 10; i++) {
		SolveNode x = { 2, own, use };
		SolveEdge e = { i - 1, i, tie };
		arena_push(&a, p.node, p.nnode, x);
		if (i)
			arena_push(&a, p.edge, p.nedge, e);
	}
	p.limit = limit;
	p.nlimit = 1;
	solve_run(&p, &a, &r);
	check(r.fits && r.used[0] == 80 && r.cost == 14.25, "like layers differ under a limit", (int)r.used[0]);
	arena_free(&a);
}

int main(void)
{
	static const struct { void (*run)(void); const char *what; } part[] = {
		{ small, "random small graphs against enumeration" }, { forced, "message passing against enumeration" },
		{ lattices, "chains, ladders and grids against dynamic programming" },
		{ folding, "like layers, folded and not" },
		{ motifs, "motifs of like columns, with faults, against dynamic programming" },
		{ models, "motifs of like layers against none" },
		{ crossed, "layers of which one is tied otherwise inside" },
		{ hanging, "layers that are alike but for costs" },
		{ wide, "wide graphs" }, { limits_kept, "limits against enumeration" },
		{ layers_differ, "layers of one kind may differ" },
	};
	int failed = 0;
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		state = 20 + i;
		done = bad = 0;
		part[i].run();
		if (!bad)
			printf("ok %s: %d checks\n", part[i].what, done);
		failed |= bad;
	}
	return failed != 0;
}
