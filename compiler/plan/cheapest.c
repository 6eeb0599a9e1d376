/* The cheapest signature of one node, given the SBP of its operands and results.  After the solver one signature mostly
 * needs no transfer at all.  Otherwise the few that are cheapest along each axis of the mesh alone are combined, and
 * the combinations are compared by their full cost.  Only where none of these is valid are all combinations tried. */
#include "search.h"

#include <math.h>
#include <string.h>

enum {
	FEW = 4,                        /* signatures along one axis of the mesh that are combined with others */
	DEFINED = 4                     /* number of reductions inside a definition, about */
};

/* Seconds from the SBP of v to one that differs along axis k, or back.  Where the new entry is not valid together with
 * the others, or another partial axis must be reduced before this one, the others are taken as B. */
static double moved(const Value *v, const Sbp *s, const Mesh *m, int k, bool back)
{
	Sbp has[MESH_DIMS] = { { 0 } }, other[MESH_DIMS] = { { 0 } };
	if (!v->sbp || (v->place && v->place->mesh != m) || v->sbp[k].kind == SBP_ANY || sbp_equal(&v->sbp[k], s, 1))
		return 0;                       /* from another mesh it arrives in any SBP */
	for (int i = 0; i < m->ndim; i++)
		if (v->sbp[i].kind != SBP_ANY)
			has[i] = other[i] = v->sbp[i];
	other[k] = *s;
	for (int i = 0; i < m->ndim && !signatures_can(other, m->ndim); i++)
		if (i != k)
			has[i] = other[i] = (Sbp){ .kind = SBP_B };
	double t = back ? cost_move(v, other, has, m) : cost_move(v, has, other, m);
	if (t < INFINITY)
		return t;
	for (int i = 0; i < m->ndim; i++)
		if (i != k)
			has[i] = other[i] = (Sbp){ .kind = SBP_B };
	return back ? cost_move(v, other, has, m) : cost_move(v, has, other, m);
}

/* The cost to run n by s along axis k, given the SBP of its operands and of the results that have one. */
static double price(Node *n, const Sig *s, const Mesh *m, int k)
{
	bool split = false;
	double t = 0;
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		split |= s->in[i].kind == SBP_S;
		double move = moved(n->in[i], &s->in[i], m, k, false);
		/* only its shape is read: any SBP is correct, its own is preferred */
		t += kernel_reads(n, i) ? move : 1e-3 * move;
	}
	for (int i = 0; i < n->nout; i++)
		split |= n->out[i] && s->out[i].kind == SBP_S;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			t += moved(n->out[i], &s->out[i], m, k, true);
	if (s->define)
		t += DEFINED * device.axis[k].latency;
	return t + cost_node(n, split ? 1.0 / m->dim[k] : 1.0);
}

/* Only floats can be partial in the passes that follow. */
static bool served_one(const Value *v, const Sbp *s)
{
	return s->kind != SBP_P || dtype_is_float(v->type->elem);
}

bool cheapest_served(const Node *n, const Sig *s)
{
	if ((s->counted || (s->run && !n->row->random)) && !kernel_counts(n))
		return false;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !served_one(n->in[i], &s->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !served_one(n->out[i], &s->out[i]))
			return false;
	return true;
}

/* The cost of the transfers of operands and results.  Two SBPs may give the same shards, as S(1) of 3 x 64 and S(1/0)
 * do on three ranks: then nothing moves.  same: all SBPs are those of the values, too. */
static double transfers(const Node *n, const NdSig *s, const Mesh *m, bool *same)
{
	double t = 0;
	*same = true;
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		const Sbp *f = i < n->nin ? s->in[i] : s->out[i - n->nin];
		bool open = !v || !v->sbp || (v->place && v->place->mesh != m);
		for (int k = 0; k < m->ndim && !open; k++)
			open = v->sbp[k].kind == SBP_ANY;
		if (open || sbp_equal(v->sbp, f, m->ndim))
			continue;
		*same = false;
		double move = i < n->nin ? cost_move(v, v->sbp, f, m) : cost_move(v, f, v->sbp, m);
		t += i >= n->nin || kernel_reads(n, i) ? move : 1e-3 * move;
	}
	return t;
}

typedef struct Choice {
	int with[MESH_DIMS];            /* by axis of the mesh: the first of its bundle (mesh_axes.c) */
	Sig *list[MESH_DIMS];
	double *cost[MESH_DIMS];
	int len[MESH_DIMS];
	int few[MESH_DIMS][FEW], nfew[MESH_DIMS];       /* the cheapest */
} Choice;

static void find_few(Choice *c, int k)
{
	for (int i = 0; i < c->len[k]; i++) {
		int at = c->nfew[k];
		if (c->cost[k][i] == INFINITY)
			continue;
		while (at && c->cost[k][i] < c->cost[k][c->few[k][at - 1]])
			at--;
		if (at == FEW)
			continue;
		c->nfew[k] += c->nfew[k] < FEW;
		memmove(&c->few[k][at + 1], &c->few[k][at], sizeof(int) * (size_t)(c->nfew[k] - at - 1));
		c->few[k][at] = i;
	}
}

/* The cheapest combination of the few, or of all, by its full cost. */
static NdSig *combined(const Node *n, const Choice *c, const Mesh *m, bool few, Arena *a)
{
	int at[MESH_DIMS] = { 0 }, k;
	const Sig *pick[MESH_DIMS], *best[MESH_DIMS];
	double least = INFINITY;
	bool same = true;
	Arena tmp = { 0 };
	for (k = 0; k < m->ndim; k++)
		if (!c->nfew[k])
			return NULL;
	for (;;) {
		bool may = true;
		double wait = 0;
		for (k = 0; k < m->ndim; k++) {
			int i = few ? c->few[k][at[k]] : at[k];
			pick[k] = &c->list[k][i];
			may &= c->cost[k][i] < INFINITY;
			wait += pick[k]->define ? DEFINED * device.axis[k].latency : 0;
		}
		const NdSig *nd = may ? signatures_together(n, pick, m->ndim, &tmp) : NULL;
		double move = nd ? transfers(n, nd, m, &same) : INFINITY;
		double t = nd ? wait + move + cost_run(n, nd->in, nd->out, m, 0) : INFINITY;
		if (t < least || (t <= least && move == 0 && same)) {
			least = t;
			memcpy(best, pick, sizeof best);
		}
		if (few && t <= least && move == 0 && same)
			break;                  /* the choice of the solver, or of the plan in a dump */
		if (!mesh_axes_next(m->ndim, c->with, few ? c->nfew : c->len, at))
			break;
	}
	arena_free(&tmp);
	return least < INFINITY ? signatures_together(n, best, m->ndim, a) : NULL;
}

bool cheapest_alike(const void *arg, int j, int k)
{
	const Node *n = arg;
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		if (v && v->sbp && v->place && n->place && v->place->mesh == n->place->mesh &&
			!sbp_equal(&v->sbp[j], &v->sbp[k], 1))
			return false;
	}
	return true;
}

NdSig *cheapest_find(Node *n, const Mesh *m, bool define, Arena *a)
{
	Choice c = { .nfew = { 0 } };
	int bad = 0;
	const NodePin *pin = pins_node(n, m, a, &bad);
	mesh_axes_bundle(m, cheapest_alike, n, c.with);
	for (int k = 0; k < m->ndim; k++) {
		c.list[k] = signatures_of(n, m->dim[k], a, &c.len[k]);
		c.cost[k] = arena_array(a, double, c.len[k]);
		for (int i = 0; i < c.len[k]; i++) {
			const Sig *s = &c.list[k][i];
			bool may = pins_allow(n, pin, s, k) && (pin || cheapest_served(n, s)) && (define || !s->define);
			c.cost[k][i] = may || m->dim[k] == 1 ? price(n, s, m, k) : INFINITY;
		}
		find_few(&c, k);
	}
	NdSig *s = combined(n, &c, m, true, a);
	return s ? s : combined(n, &c, m, false, a);
}
