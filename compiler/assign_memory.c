/* Memory as a limit of the choice of signatures.
 *
 * A value is in memory from the node that makes it to the last that reads it, parameters, state and inputs always; it takes the bytes of
 * its largest part.  What is in memory while one node runs is a sum over choices, which the solver can limit.  Which node that is depends
 * on the choice: first there is no limit, then the busiest node of each solution that is too large is one more, until a solution fits
 * everywhere.  So layers that are alike may be cut differently when that is what fits.
 *
 * Views, and results of pointwise nodes that one node reads (they are fused), take no room of their own. */
#include "assign.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8, NAMED = 5 };

typedef struct Lives { int *first, *last; } Lives;     /* by value id: nodes; first > last: never in memory */

static bool view(const Node *n)
{
	return n && n->row->kernel && !strcmp(n->row->kernel, "copy") && n->nin && n->in[0];
}

/* Whose bytes these are. */
static const Value *store(const Value *v)
{
	for (;;) {
		if (v->into)
			v = v->into;
		else if (view(v->def))
			v = v->def->in[0];
		else
			return v;
	}
}

static void find_lives(const Assign *s, Lives *l)
{
	const Graph *g = s->g;
	l->first = arena_array(s->arena, int, g->nvalue + 1);
	l->last = arena_array(s->arena, int, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		bool always = (v->init && (v->param || !v->data)) || v->input;
		l->first[i] = always ? 0 : v->def ? v->def->mark : g->nnode;
		l->last[i] = always ? g->nnode - 1 : -1;
	}
	for (int k = 0; k < g->nnode; k++) {
		const Node *n = g->node[k];
		for (int i = 0; i < n->nin; i++)
			if (n->in[i] && s->ways.way[k]->reads[i]) {
				int v = store(n->in[i])->id;
				l->last[v] = l->last[v] > k ? l->last[v] : k;
			}
	}
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		bool fused = v->def && v->def->row->expr && s->readers[i] < 2 && l->last[i] <= l->first[i] + 1;
		if (store(v) != v || !s->ways.kind[i] || assign_variable(s, v) < 0 || fused)
			l->first[i] = g->nnode;
	}
}

static double bytes_of(Assign *s, const Value *v, int choice)
{
	return kind_part(&s->ways, s->ways.kind[v->id], assign_form(s, v, choice));
}

/* The busiest node of a solution, and its bytes. */
static int busiest(Assign *s, const Lives *l, const int *choice, double *most)
{
	int n = s->g->nnode, at = 0;
	double *change = arena_array(s->arena, double, n + 2), now = 0;
	for (int i = 0; i < s->g->nvalue; i++) {
		const Value *v = s->g->value[i];
		if (l->first[i] > l->last[i])
			continue;
		double b = bytes_of(s, v, choice[assign_variable(s, v)]);
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

/* One more limit: what is in memory at node `at`. */
static void add_limit(Assign *s, const Lives *l, int at, double *limit)
{
	SolveProblem *p = &s->p;
	int k = p->nlimit++;
	limit[k] = figures.memory;
	p->limit = limit;
	double **use = arena_array(s->arena, double *, p->nnode);
	for (int v = 0; v < p->nnode; v++) {
		use[v] = arena_array(s->arena, double, (size_t)p->node[v].n * (size_t)p->nlimit);
		if (p->node[v].use)
			memcpy(use[v], p->node[v].use, sizeof(double) * (size_t)p->node[v].n * (size_t)k);
		p->node[v].use = use[v];
	}
	for (int i = 0; i < s->g->nvalue; i++) {
		const Value *v = s->g->value[i];
		if (l->first[i] > at || l->last[i] < at)
			continue;
		int x = assign_variable(s, v), n = p->node[x].n;
		for (int c = 0; c < n; c++)
			use[x][k * n + c] += bytes_of(s, v, c);
	}
}

typedef struct Large { const Value *v; double bytes; } Large;

static int larger(const void *a, const void *b)
{
	const Large *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : (x->v->id > y->v->id) - (x->v->id < y->v->id);
}

/* Every variable takes the choice of which least is in memory at all. */
static int *smallest(Assign *s, const Lives *l)
{
	int *choice = arena_array(s->arena, int, s->p.nnode + 1);
	double **sum = arena_array(s->arena, double *, s->p.nnode + 1);
	for (int i = 0; i < s->g->nvalue; i++) {
		const Value *v = s->g->value[i];
		if (l->first[i] > l->last[i])
			continue;
		int x = assign_variable(s, v), n = s->p.node[x].n;
		if (!sum[x])
			sum[x] = arena_array(s->arena, double, n);
		for (int c = 0; c < n; c++)
			sum[x][c] += bytes_of(s, v, c);
	}
	for (int x = 0; x < s->p.nnode; x++)
		for (int c = 1; c < s->p.node[x].n && sum[x]; c++)
			if (sum[x][c] < sum[x][choice[x]])
				choice[x] = c;
	return choice;
}

static int refuse(Assign *s, const Lives *l)
{
	double most;
	int *choice = smallest(s, l), at = busiest(s, l, choice, &most), n = 0;
	Large *list = arena_array(s->arena, Large, s->g->nvalue + 1);
	fail_at(EXIT_NOPLAN, s->mesh->loc, "no plan was found that fits into %.0f bytes a rank: the smallest needs %.0f", figures.memory, most);
	for (int i = 0; i < s->g->nvalue; i++) {
		const Value *v = s->g->value[i];
		if (l->first[i] <= at && l->last[i] >= at)
			list[n++] = (Large){ v, bytes_of(s, v, choice[assign_variable(s, v)]) };
	}
	qsort(list, (size_t)n, sizeof *list, larger);
	for (int i = 0; i < n && i < NAMED; i++)
		note_at(list[i].v->loc, "then %s takes %.0f of them", list[i].v->name, list[i].bytes);
	return -1;
}

int assign_within_memory(Assign *s, SolveResult *r)
{
	Lives l;
	double limit[ROUNDS], most;
	solve_run(&s->p, s->arena, r);
	if (!r->possible || !figures.memory)
		return 0;
	find_lives(s, &l);
	int at = busiest(s, &l, r->choice, &most);
	for (int i = 0; i < ROUNDS && most > figures.memory; i++) {
		add_limit(s, &l, at, limit);
		solve_run(&s->p, s->arena, r);
		if (!r->fits)
			return refuse(s, &l);
		at = busiest(s, &l, r->choice, &most);
	}
	s->bytes = most;
	return most > figures.memory ? refuse(s, &l) : 0;
}
