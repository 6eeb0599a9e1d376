/* Where the list of nodes is cut into stages.
 *
 * The longest piece is as short as possible, and of the cuts that are at most 2 % longer, the one that moves the fewest
 * bytes is taken; of several such cuts, the most even one.  The first cut is made before the backward pass is built, by
 * costs of the forward pass.  When the blocks of a program are known, the seconds of F, B, W and update of each node,
 * and the bytes that it needs, are taken from them (schedule/loads.c), and trials decide whether the model is cut again
 * (compiler/trials.c).  Then no stage may need more than the memory of its rank, if there is such a cut. */
#include "plan/plan.h"

#include <math.h>

static const double LARGER = 4;         /* than the memory of a rank: such stages are still compared by their bytes */

typedef struct Cut {
	Graph *g;
	Stages *s;
	const bool *free;               /* by value: computed by all ranks that need it */
	const Loads *loads;             /* of the nodes; NULL: not known yet */
	int n;                          /* positions: before node 0, ..., after the last */
	double *work, *bytes;           /* by position: of all nodes before it; moved by a cut there */
	double *fixed, *kept;           /* by position: of all nodes before it; NULL: memory is not limited */
	double memory;                  /* of a rank */
	int share;                      /* stages of a rank */
	const InFlight *flight;
} Cut;

static bool is_free(const Cut *c, const Node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			return c->free[n->out[k]->id];
	return false;
}

/* Bytes of the values that are computed before each position and read after it. */
static void measure(Cut *c)
{
	Graph *g = c->g;
	int *last = arena_array(g->scratch, int, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k] && g->node[i]->in[k]->graph == g)
				last[g->node[i]->in[k]->id] = i;
	c->n = g->nnode + 1;
	c->work = arena_array(g->scratch, double, c->n + 1);
	c->bytes = arena_array(g->scratch, double, c->n + 1);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		double seconds = 0;
		if (!is_free(c, n))
			seconds = c->loads ? c->loads->of[i].seconds : cost_node(n, 1);
		c->work[i + 1] = c->work[i] + seconds;
		for (int k = 0; k < n->nout && !is_free(c, n); k++) {
			const Value *v = n->out[k];
			int64_t count = v ? type_elements(v->type) : 0;
			if (!v || count <= 0 || last[v->id] <= i)
				continue;
			c->bytes[i + 1] += (double)count * dtype_bits(v->type->elem) / 8;
			c->bytes[last[v->id] + 1] -= (double)count * dtype_bits(v->type->elem) / 8;
		}
	}
	for (int i = 1; i < c->n; i++)
		c->bytes[i] += c->bytes[i - 1];
}

/* The fewest pieces of at most this much work; every piece has a node with work. */
static int pieces(const Cut *c, double most)
{
	int n = 1, from = 0;
	for (int i = 1; i < c->n; i++)
		if (c->work[i] - c->work[from] > most) {
			n++;
			from = i - 1;
		}
	return n;
}

static double longest(const Cut *c, int stages)
{
	double all = c->work[c->n - 1], low = all / stages, high = all;
	for (int i = 1; i < c->n; i++)
		low = fmax(low, c->work[i] - c->work[i - 1]);
	for (int i = 0; i < 60 && high - low > 1e-6 * all; i++) {
		double mid = (low + high) / 2;
		*(pieces(c, mid) <= stages ? &high : &low) = mid;
	}
	return high;
}

/* Positions for cuts: all of them, or those where a cut moves no more bytes than nearby. */
static int *candidates(const Cut *c, bool all, int *n)
{
	enum { NEAR = 6 };
	int *list = NULL;
	*n = 0;
	arena_push(c->g->scratch, list, *n, 0);
	for (int i = 1; i + 1 < c->n; i++) {
		bool least = c->work[i] > 0 && c->work[i] < c->work[c->n - 1];
		for (int k = i - NEAR; k <= i + NEAR && least && !all; k++)
			least = k < 1 || k + 1 >= c->n || c->bytes[i] <= 1.01 * c->bytes[k];
		if (least)
			arena_push(c->g->scratch, list, *n, i);
	}
	arena_push(c->g->scratch, list, *n, c->n - 1);
	return list;
}

/* By what was measured: whether a stage of these nodes fits into the memory of its rank. */
static bool fits(const Cut *c, int stage, int from, int to)
{
	if (!c->fixed)
		return true;
	double bytes = c->fixed[to] - c->fixed[from] + c->flight[stage].f_b * (c->kept[to] - c->kept[from]);
	return c->share * bytes + c->loads->beside <= c->memory;
}

/* Dynamic programming over candidates: the fewest bytes with no piece longer than `most`, or too large, and of several
 * such cuts the one with the most even pieces, by the sum of squares; false: there is no such cut. */
static bool fewest_bytes(const Cut *c, const int *at, int n, double most, int *end)
{
	int stages = c->s->pipe.nstage;
	double *cost = arena_array(c->g->scratch, double, (stages + 1) * n);
	double *uneven = arena_array(c->g->scratch, double, (stages + 1) * n);
	int *from = arena_array(c->g->scratch, int, (stages + 1) * n);
	for (int i = 0; i < (stages + 1) * n; i++)
		cost[i] = INFINITY;
	cost[0] = 0;
	for (int s = 1; s <= stages; s++)
		for (int i = 1; i < n; i++)
			for (int k = i - 1; k >= 0 && c->work[at[i]] - c->work[at[k]] <= most; k--) {
				double x = cost[(s - 1) * n + k] + (i + 1 < n ? c->bytes[at[i]] : 0);
				double here = c->work[at[i]] - c->work[at[k]];
				double sum = uneven[(s - 1) * n + k] + here * here;
				if (x > cost[s * n + i] || (x == cost[s * n + i] && sum >= uneven[s * n + i]) ||
					here <= 0 || !fits(c, s - 1, at[k], at[i]))
					continue;
				cost[s * n + i] = x;
				uneven[s * n + i] = sum;
				from[s * n + i] = k;
			}
	if (isinf(cost[stages * n + n - 1]))
		return false;
	for (int s = stages, i = n - 1; s > 0; i = from[s * n + i], s--)
		end[s - 1] = at[i];
	return true;
}

static void limit_memory(Cut *c)
{
	Graph *g = c->g;
	if (!c->loads || !device.memory)
		return;
	c->fixed = arena_array(g->scratch, double, c->n + 1);
	c->kept = arena_array(g->scratch, double, c->n + 1);
	for (int i = 0; i < g->nnode; i++) {
		c->fixed[i + 1] = c->fixed[i] + c->loads->of[i].fixed;
		c->kept[i + 1] = c->kept[i] + c->loads->of[i].kept;
	}
	c->memory = device.memory;
	c->share = c->s->pipe.nstage / c->s->pipe.nrank;
	c->flight = in_flight_find(c->s, g->arena, g->scratch);
}

static bool find_ends(const Cut *c, int *end)
{
	int n, stages = c->s->pipe.nstage;
	double most = longest(c, stages);
	for (int all = 0; all < 2; all++) {
		int *at = candidates(c, all, &n);
		for (double slack = 1.02; slack < (all ? stages : 1.25); slack *= 1.04)
			if (fewest_bytes(c, at, n, slack * most, end))
				return true;
	}
	return false;
}

/* What the cut is based on, so that the program that comes of it can be compared with it. */
static void remember(const Cut *c, const int *of)
{
	Graph *g = c->g;
	c->s->ncut = g->nnode;
	c->s->cut = arena_array(g->arena, CutNode, g->nnode + 1);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		c->s->cut[i] = (CutNode){ cut_made(n), cost_node(n, 1), of[i] };
	}
}

Name cut_made(const Node *n)
{
	return name_of(n->from ? n->from : n->loc.file ? loc_text(n->loc) : "");
}

int cut_nodes(Graph *g, Stages *s, const bool *free, const Loads *loads, int *of)
{
	Cut c = { .g = g, .s = s, .free = free, .loads = loads };
	int *end = arena_array(g->scratch, int, s->pipe.nstage + 1);
	Mesh line = { .ndim = 1, .dim = { 1 }, .nrank = 1 };
	if (device_read(opt.machine, &line))
		return -1;
	measure(&c);
	limit_memory(&c);
	bool found = find_ends(&c, end);
	for (; !found && c.fixed && c.memory < LARGER * device.memory; found = find_ends(&c, end))
		c.memory *= 1.05;
	if (!found && c.fixed) {
		c.fixed = NULL;
		found = find_ends(&c, end);
	}
	if (!found) {
		fail_at(EXIT_NOPLAN, annot_find(g->model->annot, "pipeline")->loc,
			"the model cannot be cut into %d stages: it has %d nodes; use fewer, or write @stage",
			s->pipe.nstage, g->nnode);
		return -1;
	}
	for (int i = 0, stage = 0; i < g->nnode; i++) {
		while (i >= end[stage])
			stage++;
		if (!is_free(&c, g->node[i]))
			of[i] = stage;
	}
	remember(&c, of);
	return 0;
}
