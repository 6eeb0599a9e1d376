/* The cheapest signature of one node, given how its operands and results are held.  Prices add up over the axes of the mesh, so
 * each axis is chosen for itself; only where the cheapest of all do not go together are their mixtures compared. */
#include "compiler.h"

#include <math.h>
#include <string.h>

static int64_t bytes_of(const Value *v)
{
	int64_t n = type_elements(v->type);
	return n < 0 ? 0 : n * dtype_bits(v->type->elem) / 8;
}

/* From the form that v has to one along axis k, or back. */
static double moved(const Value *v, const Sbp *s, const Mesh *m, int k, bool back)
{
	Sbp all[MESH_DIMS] = { { 0 } };
	if (!v->sbp || (v->place && v->place->mesh != m) || v->sbp[k].kind == SBP_ANY)
		return 0;                       /* from another mesh it comes in any form */
	Sbp from = sbp_plain(v, v->sbp, m, k), to;
	memcpy(all, v->sbp, sizeof *all * (size_t)m->ndim);
	all[k] = *s;
	to = sbp_plain(v, all, m, k);
	if (s->reach && !back)                  /* a strip: bytes alone do not tell how small */
		return sbp_can(all, m->ndim) ? cost_move(v, v->sbp, all, m) : INFINITY;
	return back ? cost_box(&to, &from, bytes_of(v), m->dim[k]) : cost_box(&from, &to, bytes_of(v), m->dim[k]);
}

/* What it costs to run n by s along axis k, given its operands and the results that are settled already. */
static double price(Node *n, const Sig *s, const Mesh *m, int k)
{
	bool split = false;
	double t = 0;
	int parts = m->dim[k];
	for (int i = 0; i < n->nin; i++) {
		if (!n->in[i])
			continue;
		split |= s->in[i].kind == SBP_S;
		double move = moved(n->in[i], &s->in[i], m, k, false);
		t += emit_reads(n, i) ? move : 1e-3 * move;     /* only its shape matters: any form will do, its own is neater */
	}
	for (int i = 0; i < n->nout; i++)
		split |= n->out[i] && s->out[i].kind == SBP_S;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			t += moved(n->out[i], &s->out[i], m, k, true);
	if (s->define)                          /* its reductions are waited for */
		t += 4 * figures.axis[k].latency;
	return t + cost_node(n, split ? 1.0 / parts : 1.0);
}

/* What the passes behind this one can hold and run. */
static bool served_one(const Value *v, const Sbp *s)
{
	return s->kind != SBP_P || dtype_is_float(v->type->elem);
}

bool sbp_served(const Node *n, const Sig *s)
{
	if ((s->counted || (s->run && !n->row->random)) && !emit_counts(n))
		return false;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !served_one(n->in[i], &s->in[i]))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !served_one(n->out[i], &s->out[i]))
			return false;
	return true;
}

NdSig *sbp_choose(Node *n, const Mesh *m, bool define, Arena *a)
{
	Sig *list[MESH_DIMS];
	double *cost[MESH_DIMS], least = INFINITY;
	const Sig *pick[MESH_DIMS];
	int len[MESH_DIMS], at[MESH_DIMS] = { 0 }, bad = 0, k;
	const NodePin *pin = pins_node(n, m, a, &bad);
	for (k = 0; k < m->ndim; k++) {
		double best = INFINITY;
		list[k] = sbp_signatures(n, m->dim[k], a, &len[k]);
		cost[k] = arena_array(a, double, len[k]);
		for (int i = 0; i < len[k]; i++) {
			bool may = m->dim[k] == 1 || (pins_allow(n, pin, &list[k][i], k) && (pin || sbp_served(n, &list[k][i])) && (define || !list[k][i].define));
			cost[k][i] = may ? price(n, &list[k][i], m, k) : INFINITY;
			if (cost[k][i] < best) {
				best = cost[k][i];
				pick[k] = &list[k][i];
			}
		}
	}
	NdSig *s = sbp_together(n, pick, m->ndim, a);
	for (bool more = !s; more;) {           /* mixtures */
		double t = 0;
		for (k = 0; k < m->ndim; k++) {
			pick[k] = &list[k][at[k]];
			t += cost[k][at[k]];
		}
		NdSig *nd = t < least ? sbp_together(n, pick, m->ndim, a) : NULL;
		if (nd) {
			s = nd;
			least = t;
		}
		for (k = m->ndim; k-- > 0 && ++at[k] == len[k];)
			at[k] = 0;
		more = k >= 0;
	}
	return s;
}
