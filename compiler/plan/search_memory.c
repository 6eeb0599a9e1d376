/* Memory as a limit of the search.
 *
 * The live range of a value is from its producer to its last reader; parameters, state and inputs are always live.  It
 * takes the bytes of its largest shard.  The memory in use while one node runs is a sum over choices, which the solver
 * can limit.  The node of the peak depends on the solution: the first has no limit, the next a limit at the peak of a
 * solution that is too large, and if another node then exceeds the limit, one on the average of both.  So identical
 * layers may be split differently when that is what fits.  Where no solution fits, every value takes the SBP with the
 * smallest shard.  The limit that makes the generated program fit is found by trials (compiler/trials.c).
 *
 * In a pipeline, a value that stays from one block of a stage to another is in as many copies as micro-batches are in
 * flight between them (in_flight.c), and live throughout the body; what comes from or goes to another stage has one
 * copy more, so that transfers overlap (schedule/copies.c counts the same in the program).
 *
 * Views, and results of pointwise nodes with one reader (they are fused), take no memory of their own. */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4, NAMED = 5 };
static const double SMALL = 64 << 20;

/* by value id: first and last node, first > last: none; how many micro-batches of it are in memory */
typedef struct Lives { int *first, *last, *copies; } Lives;

/* The value whose memory v uses. */
static int store(const Search *s, int v)
{
	const Candidates *w = &s->candidates;
	for (;;) {
		const Trait *f = &w->trait[v];
		if (f->into >= 0)
			v = f->into;
		else if (f->maker >= 0 && w->candidate[f->maker]->view && candidates_in(w, f->maker, 0) >= 0)
			v = candidates_in(w, f->maker, 0);
		else
			return v;
	}
}

static void find_copies(const Search *, Lives *);

static void find_lives(const Search *s, Lives *l)
{
	const Graph *g = s->g;
	const Candidates *w = &s->candidates;
	l->first = arena_array(s->arena, int, g->nvalue + 1);
	l->last = arena_array(s->arena, int, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		const Trait *v = &w->trait[i];
		bool always = (v->init && (v->param || !v->data)) || v->input;
		l->first[i] = v->maker >= 0 ? v->maker : g->nnode;
		l->last[i] = -1;
		if (always) {
			l->first[i] = 0;
			l->last[i] = g->nnode - 1;
		}
	}
	for (int k = 0; k < g->nnode; k++)
		for (int i = 0; i < w->candidate[k]->n->nin; i++)
			if (candidates_in(w, k, i) >= 0 && w->candidate[k]->reads[i]) {
				int v = store(s, candidates_in(w, k, i));
				l->last[v] = l->last[v] > k ? l->last[v] : k;
			}
	find_copies(s, l);
	for (int i = 0; i < g->nvalue; i++) {
		const Trait *v = &w->trait[i];
		bool fused = v->maker >= 0 && w->candidate[v->maker]->expr && s->readers[i] < 2 &&
			l->last[i] <= l->first[i] + 1;
		if (store(s, i) != i || !w->kind[i] || search_variable(s, i) < 0 || fused)
			l->first[i] = g->nnode;
	}
}

/* The kind of block that runs a node, before kinds are known exactly (schedule/kinds.c). */
static BlockKind kind_of(const Node *n)
{
	const Annot *half = annot_find(n->annot, "backward");
	if (microbatch_begins(n) || microbatch_updates(n))
		return BLOCK_UPDATE;
	if (half)
		return strcmp(half->arg->s, "W") ? BLOCK_B : BLOCK_W;
	return annot_find(n->annot, "again") ? BLOCK_B : BLOCK_F;
}

static int copies_between(const InFlight *f, BlockKind from, BlockKind to)
{
	if (from == BLOCK_F && to == BLOCK_B)
		return f->f_b;
	if (from == BLOCK_F && to == BLOCK_W)
		return f->f_w;
	return from == BLOCK_B && to == BLOCK_W ? f->b_w : 1;
}

/* By value: whether a stage on another mesh reads it. */
static bool *find_sent(const Search *s)
{
	const Graph *all = s->g->model->graph;
	bool *sent = arena_array(s->arena, bool, s->g->nvalue + 1);
	for (int k = 0; k < all->nnode; k++) {
		const Node *n = all->node[k];
		for (int i = 0; i < n->nin && n->place->mesh != s->mesh && kind_of(n) != BLOCK_UPDATE; i++)
			if (n->in[i] && n->in[i]->graph == all && n->in[i]->id < s->g->nvalue)
				sent[n->in[i]->id] = true;
	}
	return sent;
}

/* The first node of this mesh that reads each value that another stage makes; -1: none.  Also the copies between it and
 * later readers, and between the maker of a value and its readers. */
static void count_copies(const Search *s, Lives *l, const InFlight *flight, int *arrives)
{
	const Candidates *w = &s->candidates;
	for (int k = 0; k < s->g->nnode; k++) {
		const Node *n = s->g->node[k];
		for (int i = 0; i < n->nin && kind_of(n) != BLOCK_UPDATE; i++) {
			int v = candidates_in(w, k, i);
			if (v < 0 || !w->candidate[k]->reads[i])
				continue;
			const Value *x = s->g->value[v];
			v = store(s, v);
			bool foreign = w->trait[v].maker < 0 && x->def && kind_of(x->def) != BLOCK_UPDATE;
			if (foreign && arrives[v] < 0)
				arrives[v] = k;
			int maker = foreign ? arrives[v] : w->trait[v].maker;
			const Node *from = maker >= 0 ? s->g->node[maker] : NULL;
			if (!from || from->stage < 0 || kind_of(from) == BLOCK_UPDATE)
				continue;
			int copies = copies_between(&flight[from->stage], kind_of(from), kind_of(n)) + foreign;
			l->copies[v] = copies > l->copies[v] ? copies : l->copies[v];
		}
	}
}

/* Copies in a pipeline.  A value that is in several is live throughout the body. */
static void find_copies(const Search *s, Lives *l)
{
	const Graph *g = s->g;
	Stages *stages = g->model->main ? NULL : g->model->plan->stages;
	int begin = 0, end = g->nnode;
	l->copies = arena_array(s->arena, int, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		l->copies[i] = 1;
	if (!stages || stages->pipe.micros < 2)
		return;
	int *arrives = arena_array(s->arena, int, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		arrives[i] = -1;
	count_copies(s, l, in_flight_find(stages, g->model->graph->arena, s->arena), arrives);
	const bool *sent = find_sent(s);
	while (begin < end && kind_of(g->node[begin]) == BLOCK_UPDATE)
		begin++;
	while (end > begin && kind_of(g->node[end - 1]) == BLOCK_UPDATE)
		end--;
	for (int i = 0; i < g->nvalue; i++) {
		int maker = s->candidates.trait[i].maker;
		bool made = maker >= 0 && kind_of(g->node[maker]) != BLOCK_UPDATE;
		if (made && sent[i] && l->copies[i] < 2)
			l->copies[i] = 2;
		if ((made || arrives[i] >= 0) && l->copies[i] > 1 && store(s, i) == i) {
			l->first[i] = begin < l->first[i] ? begin : l->first[i];
			l->last[i] = end - 1 > l->last[i] ? end - 1 : l->last[i];
		}
	}
}

/* Bytes of the copies of a shard as it is stored. */
static double bytes_of(Search *s, const Lives *l, int v, int choice)
{
	Kind *k = s->candidates.kind[v];
	return l->copies[v] * k->stored * candidates_shard(&s->candidates, k, search_sbp(s, v, choice));
}

/* The busiest node of a solution, and its bytes. */
static int busiest(Search *s, const Lives *l, const int *choice, double *most)
{
	int n = s->g->nnode, at = 0;
	double *change = arena_array(s->arena, double, n + 2), now = 0;
	for (int i = 0; i < s->g->nvalue; i++) {
		if (l->first[i] > l->last[i])
			continue;
		double b = bytes_of(s, l, i, choice[search_variable(s, i)]);
		change[l->first[i]] += b;
		change[l->last[i] + 1] -= b;
	}
	*most = 0;
	for (int k = 0; k < n; k++) {
		now += change[k];
		if (now > *most) {
			*most = now;
			at = k;
		}
	}
	return at;
}

/* Equal lists share one pointer, so that the solver sees which nodes are identical. */
static const double *shared(Map *seen, const double *v, int n)
{
	Name key = name_n((const char *)v, sizeof *v * (size_t)n);
	const double *have = map_get(seen, key);
	if (!have)
		map_put(seen, key, (void *)(have = v));
	return have;
}

/* Sets one limit: the memory in use at these nodes, on average. */
static void set_limit(Search *s, const Lives *l, const int *at, int nat, const double *limit)
{
	SolveProblem *p = &s->p;
	double **use = arena_array(s->arena, double *, p->nnode + 1);
	p->nlimit = 1;
	p->limit = limit;
	for (int i = 0; i < s->g->nvalue; i++) {
		int there = 0, x = search_variable(s, i);
		for (int k = 0; k < nat; k++)
			there += l->first[i] <= at[k] && l->last[i] >= at[k];
		if (!there)
			continue;
		if (!use[x])
			use[x] = arena_array(s->arena, double, p->node[x].n);
		for (int c = 0; c < p->node[x].n; c++)
			use[x][c] += bytes_of(s, l, i, c) * there / nat;
	}
	Map seen;
	map_init(&seen, s->arena);
	for (int x = 0; x < p->nnode; x++)
		p->node[x].use = use[x] ? shared(&seen, use[x], p->node[x].n) : NULL;
}

/* The quickest of the plans in which every value has its smallest shard. */
static void leanest(Search *s, const Lives *l, SolveResult *r)
{
	SolveProblem p = s->p;
	double **sum = arena_array(s->arena, double *, p.nnode + 1);
	p.nlimit = 0;
	p.node = arena_array(s->arena, SolveNode, p.nnode + 1);
	for (int i = 0; i < s->g->nvalue; i++) {
		if (l->first[i] > l->last[i])
			continue;
		int x = search_variable(s, i);
		if (!sum[x])
			sum[x] = arena_array(s->arena, double, s->p.node[x].n);
		for (int c = 0; c < s->p.node[x].n; c++)
			sum[x][c] += bytes_of(s, l, i, c);
	}
	Map seen;
	map_init(&seen, s->arena);
	for (int x = 0; x < p.nnode; x++) {
		SolveNode *n = &p.node[x];
		double least = INFINITY;
		*n = s->p.node[x];
		n->use = NULL;
		for (int c = 0; c < n->n && sum[x]; c++)
			least = fmin(least, n->cost && n->cost[c] == INFINITY ? INFINITY : sum[x][c]);
		for (int c = 0; c < n->n && sum[x]; c++)
			sum[x][c] = sum[x][c] > least ? INFINITY : n->cost ? n->cost[c] : 0;
		n->cost = sum[x] ? shared(&seen, sum[x], n->n) : n->cost;
	}
	solve_run(&p, s->arena, r);
}

/* A solution that exceeds the limit at no node, or else the smallest that was found. */
static void limited(Search *s, const Lives *l, SolveResult *best, double most, int at)
{
	double bound = best->bound, limit = opt.change.limit;
	int busy[ROUNDS];
	for (int i = 0; i < ROUNDS && most > opt.change.limit; i++) {
		SolveResult r;
		double now;
		busy[i] = at;
		set_limit(s, l, busy, i + 1, &limit);
		solve_run(&s->p, s->arena, &r);
		if (!r.fits)
			leanest(s, l, &r);
		at = busiest(s, l, r.choice, &now);
		if (now < most) {
			*best = r;
			most = now;
		}
		if (!r.fits)
			break;
		limit *= fmin(1, opt.change.limit / now);
	}
	best->bound = bound;                    /* of the problem without a limit, so it holds for any plan */
}

typedef struct Large { const Value *v; double bytes; } Large;

static int larger(const void *a, const void *b)
{
	const Large *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->v->id > y->v->id) - (x->v->id < y->v->id);
}

/* Reports that no plan fits, by the estimate of the solver: no program is generated that could be measured. */
static int refuse(Search *s, const Lives *l, const int *choice)
{
	double most;
	int at = busiest(s, l, choice, &most), n = 0;
	Large *list = arena_array(s->arena, Large, s->g->nvalue + 1);
	fail_at(EXIT_NOPLAN, s->mesh->loc,
		"no plan was found that fits into %.0f bytes a rank: the smallest needs about %.0f", device.memory,
		most);
	for (int i = 0; i < s->g->nvalue; i++) {
		if (l->first[i] <= at && l->last[i] >= at)
			list[n++] = (Large){ s->g->value[i], bytes_of(s, l, i, choice[search_variable(s, i)]) };
	}
	qsort(list, (size_t)n, sizeof *list, larger);
	for (int i = 0; i < n && i < NAMED; i++)
		note_at(list[i].v->loc, "then %s takes %.0f of them", list[i].v->name, list[i].bytes);
	return -1;
}

/* Whether it is so far below the memory of a rank that the other memory of a program fits, too. */
static bool small(double most)
{
	return 4 * most + SMALL <= device.memory;
}

bool search_memory_near(const Graph *g)
{
	double all = 0;
	for (int i = 0; i < g->nvalue && device.memory; i++) {
		const Type *t = g->value[i]->type;
		all += t ? (double)type_elements(t) * (double)sizeof(double) : 0;
	}
	return device.memory && !small(all);
}

/* Without trials: the limit is applied to the estimate of the solver. */
static int alone(Search *s, const Lives *l, double most)
{
	SolveResult lean;
	double least;
	if (most <= device.memory || opt.change.limit)
		return 0;
	leanest(s, l, &lean);
	busiest(s, l, lean.choice, &least);
	if (least > device.memory)
		return refuse(s, l, lean.choice);
	opt.change.limit = device.memory;
	return 0;
}

/* The range of limits that trials search: from the least memory of any plan to that of the quickest. */
static void find_range(Search *s, const Lives *l, Predicted *p, double most)
{
	SolveResult lean;
	double least;
	leanest(s, l, &lean);
	busiest(s, l, lean.choice, &least);
	*p = (Predicted){ .seconds = p->seconds, .most = most, .least = fmin(least, most), .tight = s->mesh };
}

int search_memory_solve(Search *s, SolveResult *r)
{
	bool first = !s->g->model->main, sketch = first && !options_program() && !opt.change.trial;
	Predicted *p = &s->g->model->plan->predicted;
	Lives l;
	double most;
	solve_run(&s->p, s->arena, r);
	if (first)              /* of a pipeline: of its slowest rank */
		p->seconds = s->g->model->plan->stages ? fmax(p->seconds, r->cost) : r->cost;
	if (!r->possible || !device.memory)
		return 0;
	find_lives(s, &l);
	int at = busiest(s, &l, r->choice, &most);
	if (sketch && alone(s, &l, most))
		return -1;
	if (first && opt.change.made && !opt.change.limit && !p->least && !small(most))
		find_range(s, &l, p, most);
	s->bytes = most;
	if (opt.change.limit && most > opt.change.limit) {
		limited(s, &l, r, most, at);
		busiest(s, &l, r->choice, &s->bytes);
	}
	if (!options_program() && !opt.change.trial && s->bytes > device.memory)
		leanest(s, &l, r);
	if (first) {
		p->seconds = s->g->model->plan->stages ? fmax(p->seconds, r->cost) : r->cost;
		p->held = fmax(s->g->model->plan->stages ? p->held : 0, s->bytes);
	}
	return 0;
}
