/* What the program of a pipeline takes for each node of the model that was cut into stages (plan/cut.c): the seconds of
 * its forward and backward pass and of its update, and the bytes of its weights and of what stays for the backward
 * pass.  Nodes that a pass makes keep the place in the model of the node that they are made for.  What belongs to no
 * place is shared by the nodes of its stage.  Several nodes of one place, as of a loop, share by their costs. */
#include "schedule/schedule.h"

#include <math.h>
#include <string.h>

typedef struct Measure {
	Graph *g;
	const Stages *s;
	int *same;                      /* by node of the model: the first node of its place */
	Map at;                         /* by place: that node + 1 */
	Load *sum, *rest;               /* by first node; by stage */
	Name *reads;                    /* by value: the place that reads a parameter first */
} Measure;

static void find_readers(Measure *m)
{
	Graph *g = m->g;
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin && annot_find(n->annot, "stage"); k++)
			if (n->in[k] && n->in[k]->graph == g && n->in[k]->param && !m->reads[n->in[k]->id])
				m->reads[n->in[k]->id] = cut_made(n);
	}
}

/* The parameter that a value is, or is state of. */
static const Value *parameter(const Graph *g, const Value *v)
{
	return v && v->graph == g && v->param ? v : v && v->graph == g && v->init ? params_owner(g, v) : NULL;
}

/* Where the seconds or bytes of a place go; of an update, by its parameter. */
static Load *load_of(Measure *m, Name made, const Node *n, const Value *v, int stage)
{
	static Load none;
	intptr_t at = made && *made ? (intptr_t)map_get(&m->at, made) : 0;
	const Value *w = at ? NULL : parameter(m->g, v);
	for (int k = 0; n && k < n->nin && !at && !w; k++)
		w = parameter(m->g, n->in[k]);
	if (w && m->reads[w->id])
		at = (intptr_t)map_get(&m->at, m->reads[w->id]);
	return at ? &m->sum[at - 1] : stage >= 0 ? &m->rest[stage] : &none;
}

static void add_seconds(Measure *m)
{
	const Plan *p = m->g->model->plan;
	for (int b = 0; b < p->nblock; b++)
		for (int i = p->block[b].from; i < p->block[b].to; i++) {
			const Action *a = &p->role[0].step[i];
			const Node *n = a->host ? a->host : a->mate ? a->mate : a->n;
			double times = pipe_once(p->block[b].kind) ? m->s->pipe.micros : 1;
			if (n)
				load_of(m, cut_made(n), n, NULL, p->block[b].stage)->seconds +=
					times_action(p, &p->block[b], a) / times;
		}
}

static void add_bytes(Measure *m)
{
	const Plan *p = m->g->model->plan;
	for (int i = 0; i < p->nslot; i++) {
		const Slot *s = p->slot[i];
		if (!s || s->store != s || s->keep == KEEP_INPUT || s->keep == KEEP_CONST)
			continue;
		const Node *n = s->v->def;
		Name made = n ? cut_made(n) : parameter(m->g, s->v) ? m->reads[parameter(m->g, s->v)->id] : NULL;
		double bytes = (double)memplan_aligned(s->bytes);
		Load *l = load_of(m, made, NULL, s->v, n ? n->stage : -1);
		if (!n || n->block == BLOCK_BEGIN)
			l->fixed += bytes;
		else if (s->life == LIFE_BODY && kinds_in_body(n))
			l->kept += bytes;
	}
}

/* Each node takes its share of its place, and of the rest of its stage. */
static void divide(Measure *m, Loads *l)
{
	double *cost = arena_array(m->g->scratch, double, l->n + 1);
	double *stage = arena_array(m->g->scratch, double, m->s->pipe.nstage + 1);
	for (int i = 0; i < l->n; i++) {
		const CutNode *c = &m->s->cut[i];
		cost[m->same[i]] += c->seconds;
		if (c->stage >= 0)
			stage[c->stage] += c->seconds;
	}
	for (int i = 0; i < l->n; i++) {
		const CutNode *c = &m->s->cut[i];
		const Load *a = &m->sum[m->same[i]], *r = c->stage >= 0 ? &m->rest[c->stage] : NULL;
		double x = c->seconds / cost[m->same[i]], y = r ? c->seconds / stage[c->stage] : 0;
		l->of[i] = (Load){ x * a->seconds, x * a->fixed, x * a->kept, c->stage };
		if (r) {
			l->of[i].seconds += y * r->seconds;
			l->of[i].fixed += y * r->fixed;
			l->of[i].kept += y * r->kept;
		}
	}
}

/* The bytes that belong to no node, of the rank that needs most: gaps, values of one block, scratch, buffers. */
static double beside(const Measure *m, const Loads *l)
{
	const Plan *p = m->g->model->plan;
	const Pipeline *pipe = &m->s->pipe;
	double most = 0;
	double *need = arena_array(m->g->scratch, double, pipe->nrank + 1);
	for (int i = 0; i < l->n; i++) {
		const Load *x = &l->of[i];
		if (x->stage >= 0)
			need[pipe->stage[x->stage].rank] += x->fixed + m->s->flight[x->stage].f_b * x->kept;
	}
	for (int r = 0; r < pipe->nrank; r++)
		most = fmax(most, need[r]);
	return fmax(0, (double)p->predicted.bytes - most);
}

Loads *loads_measure(Graph *g, Arena *a)
{
	Stages *s = g->model->plan->stages;
	Loads *l = arena_new(a, Loads);
	*l = (Loads){ .of = arena_array(a, Load, s->ncut + 1), .n = s->ncut };
	Measure m = { .g = g, .s = s, .same = arena_array(g->scratch, int, s->ncut + 1),
		.sum = arena_array(g->scratch, Load, s->ncut + 1),
		.rest = arena_array(g->scratch, Load, s->pipe.nstage + 1),
		.reads = arena_array(g->scratch, Name, g->nvalue + 1) };
	map_init(&m.at, g->scratch);
	for (int i = 0; i < s->ncut; i++) {
		intptr_t at = *s->cut[i].made ? (intptr_t)map_get(&m.at, s->cut[i].made) : 0;
		m.same[i] = at ? (int)at - 1 : i;
		if (!at && *s->cut[i].made)
			map_put(&m.at, s->cut[i].made, (void *)(intptr_t)(i + 1));
	}
	find_readers(&m);
	add_seconds(&m);
	add_bytes(&m);
	divide(&m, l);
	in_flight_find(s, g->arena, g->scratch);
	if (g->facts & PLANNED)
		l->beside = beside(&m, l);
	return l;
}
