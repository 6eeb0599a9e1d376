/* Seconds from flops and bytes, by the figures of the machine.
 *
 * An operator takes as long as its arithmetic and its memory need, one after the other, on the largest part that a rank has: a product packs
 * what it reads before it multiplies, so cutting one operand while the other stays whole halves only one of the two.
 * What transfers take is said by transfer.c and route.c. */
#include "compiler.h"

#include <math.h>

static double bytes_of(const Value *v)
{
	int64_t n = v && v->type ? type_elements(v->type) : 0;
	return n > 0 ? (double)n * dtype_bits(v->type->elem) / 8 : 0;
}

double cost_flops(const Node *n)
{
	if (n->row && n->row->cost)
		return n->row->cost(n).flops;
	return n->nout && n->out[0] && n->row && n->row->expr ? (double)type_elements(n->out[0]->type) * (n->row->flops ? n->row->flops : 1) : 0;
}

/* How much of an axis of len elements windows see, of n of those that ask for them. */
static double reached(const FormReach *r, int64_t n, int64_t len)
{
	int64_t windows = (n - 1 + r->hi - r->lo) / r->div + 1, sees = (windows - 1) * r->mul + r->to - r->from + 1;
	return n > 0 ? (double)(sees < len ? sees : len) : 0;
}

static double share_reached(const Value *v, const Sbp *s, const Mesh *m, int k)
{
	const FormReach *r = s[k].reach;
	int64_t n = r->of, len = v->type->dim[s[k].axis];
	for (int i = 0; i < k; i++)
		if (s[i].kind == SBP_S && s[i].axis == s[k].axis)
			n = (n + m->dim[i] - 1) / m->dim[i];
	double before = n == r->of ? (double)len : reached(r, n, len);
	return before > 0 ? fmin(1, reached(r, (n + m->dim[k] - 1) / m->dim[k], len) / before) : 1;
}

/* What a cut along axis k of the mesh leaves of the largest part, after those along the axes before it. */
static double share(const Value *v, const Sbp *s, const Mesh *m, int k)
{
	if (s[k].kind != SBP_S || m->dim[k] == 1)
		return 1;
	if (s[k].reach)
		return share_reached(v, s, m, k);
	int64_t len = v->type->dim[s[k].axis];
	if (s[k].leaf)
		len = v->graph->factor[v->factors->axis[s[k].axis].factor[s[k].leaf - 1]];
	for (int i = 0; i < k; i++)
		if (s[i].kind == SBP_S && s[i].axis == s[k].axis && s[i].leaf == s[k].leaf)
			len = (len + m->dim[i] - 1) / m->dim[i];
	return len > 0 ? (double)((len + m->dim[k] - 1) / m->dim[k]) / (double)len : 1;
}

double cost_part(const Value *v, const Sbp *s, const Mesh *m)
{
	double b = bytes_of(v);
	for (int k = 0; k < m->ndim; k++)
		b *= share(v, s, m, k);
	return b;
}

static double rate_of(const Node *n)
{
	const Value *v = n->nin && n->in[0] ? n->in[0] : n->nout ? n->out[0] : NULL;
	return v && v->type && dtype_bits(v->type->elem) <= 16 ? figures.half : figures.flops;
}

double cost_node(Node *n, double part)
{
	Cost c = { 0, 0 };
	if (n->row && n->row->cost)
		c = n->row->cost(n);
	else
		for (int i = 0; i < n->nin + n->nout; i++)
			c.bytes += bytes_of(i < n->nin ? n->in[i] : n->out[i - n->nin]);
	return figures.start + (c.flops / rate_of(n) + c.bytes / figures.bytes) * part;
}

/* By the forms of operands and results: in[i] and out[i] have an entry for each axis of the mesh.  Bit i of `inside`: operand i, or result
 * i - nin, never leaves the registers, for another pointwise node of the same chain makes or reads it. */
double cost_run(const Node *n, Sbp *const *in, Sbp *const *out, const Mesh *m, uint64_t inside)
{
	double work = 1, made = 0, b = 0;
	for (int k = 0; k < m->ndim; k++) {
		double least = 1;               /* any operand or result that is cut divides the work */
		for (int i = 0; i < n->nin; i++)
			if (n->in[i])
				least = fmin(least, share(n->in[i], in[i], m, k));
		for (int i = 0; i < n->nout; i++)
			if (n->out[i])
				least = fmin(least, share(n->out[i], out[i], m, k));
		work *= least;
	}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !(inside >> (n->nin + i) & 1))
			made += cost_part(n->out[i], out[i], m);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !(inside >> i & 1)) {
			double all = cost_part(n->in[i], in[i], m);
			bool picks = n->row->index && !i && cost_flops(n) < (double)type_elements(n->in[0]->type);
			b += picks ? fmin(all, made) : all;     /* of a table only the rows that are asked for */
		}
	if (n->row->kernel && n->row->carries && made == b && n->nin && n->in[0]->type->elem == n->out[0]->type->elem)
		return 0;                       /* the same bytes in the same order, mostly */
	return (inside >> n->nin ? 0 : figures.start) + cost_flops(n) * work / rate_of(n) + (b + made) / figures.bytes;
}

bool *cost_fused(const Graph *g, Arena *a)
{
	int *uses = arena_array(a, int, g->nvalue + 1);
	bool *fused = arena_array(a, bool, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k])
				uses[g->node[i]->in[k]->id]++;
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin && g->node[i]->row->expr; k++) {
			const Value *v = g->node[i]->in[k];
			if (v && v->def && v->def->row->expr && uses[v->id] == 1 && !v->into && !v->output)
				fused[v->id] = true;
		}
	return fused;
}

uint64_t cost_inside(const Node *n, const bool *fused)
{
	uint64_t bits = 0;
	for (int i = 0; i < n->nin + n->nout && n->nin + n->nout < 64; i++) {
		const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		bits |= v && fused[v->id] ? (uint64_t)1 << i : 0;
	}
	return bits;
}

/* ---- transfers ---- */

double cost_move(const Value *v, const Sbp *from, const Sbp *to, const Mesh *m)
{
	int64_t elem = dtype_bits(v->type->elem) / 8;
	Form f = sbp_form(v, from, m), t = sbp_form(v, to, m);
	return route_find(&f, &t, elem ? elem : 1)->seconds;
}
