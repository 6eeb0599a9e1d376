/* Seconds from flops and bytes, by the figures of the machine.
 *
 * An operator takes as long as its arithmetic or its memory needs, whichever is more, on the largest part that a rank has.  A
 * transfer goes along one axis of the mesh at a time, by a ring of the ranks of a line: latency of its steps and bytes over
 * the bandwidth of a link, on what the cuts along the other axes leave of the value.  Of the orders of the axes, and of the
 * ways through another cut (a sum over ranks by scattering along a quick axis, summing along the slow one and gathering), the cheapest
 * counts. */
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

/* What the largest part has of the whole, for a cut along one axis of the mesh. */
static double share(const Value *v, const Sbp *s, int parts)
{
	if (s->kind != SBP_S || parts == 1)
		return 1;
	int64_t len = v->type->dim[s->axis];
	if (s->leaf)
		len = v->graph->factor[v->factors->axis[s->axis].factor[s->leaf - 1]];
	return len > 0 ? (double)((len + parts - 1) / parts) / (double)len : 1;
}

double cost_part(const Value *v, const Sbp *s, const Mesh *m)
{
	double b = bytes_of(v);
	for (int k = 0; k < m->ndim; k++)
		b *= share(v, &s[k], m->dim[k]);
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
	return figures.start + fmax(c.flops / rate_of(n), c.bytes / figures.bytes) * part;
}

/* By the forms of operands and results: in[i] and out[i] have an entry for each axis of the mesh. */
double cost_run(const Node *n, Sbp *const *in, Sbp *const *out, const Mesh *m)
{
	double work = 1, made = 0, b = 0;
	for (int k = 0; k < m->ndim; k++) {
		double least = 1;               /* any operand or result that is cut divides the work */
		for (int i = 0; i < n->nin; i++)
			if (n->in[i])
				least = fmin(least, share(n->in[i], &in[i][k], m->dim[k]));
		for (int i = 0; i < n->nout; i++)
			if (n->out[i])
				least = fmin(least, share(n->out[i], &out[i][k], m->dim[k]));
		work *= least;
	}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			made += cost_part(n->out[i], out[i], m);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i]) {
			double all = cost_part(n->in[i], in[i], m);
			b += n->row->index && !i ? fmin(all, made) : all;       /* of a table only the rows that are asked for */
		}
	if (n->row->kernel && n->row->carries && made == b && n->nin && n->in[0]->type->elem == n->out[0]->type->elem)
		return 0;                       /* the same bytes in the same order, mostly */
	return figures.start + fmax(cost_flops(n) * work / rate_of(n), (b + made) / figures.bytes);
}

/* ---- transfers ---- */

static double steps(int parts)
{
	return ceil(log2(parts));
}

/* Along one axis; bytes: of the value as the cuts along the others leave it. */
static double hop(const Sbp *from, const Sbp *to, double bytes, int k, int parts)
{
	double link = bytes / figures.axis[k].bytes, late = figures.axis[k].latency * steps(parts);
	double copy = figures.start + bytes / figures.bytes, part = 1.0 / parts, rest = 1 - part;
	if (from->kind == SBP_P && to->kind == SBP_B)                           /* in two halves, or each from all others */
		return fmin(2 * (late + rest * link), late + (parts - 1) * link);
	if (from->kind == SBP_P && to->kind == SBP_P)
		return 2 * (late + rest * link) + copy;          /* of another reduction: through B */
	if (to->kind == SBP_P)
		return copy;
	if (from->kind == SBP_B)
		return figures.start + 2 * part * (copy - figures.start);
	if (from->kind == SBP_P || to->kind == SBP_B)
		return late + rest * link;
	if (from->axis == to->axis && from->leaf == to->leaf)                   /* neighbours' edges */
		return figures.axis[k].latency + 0.1 * part * link + copy;
	return figures.axis[k].latency + rest * part * link + copy;
}

/* A cut along k moves whole parts about when an axis of the mesh further in cuts the same axis of the tensor. */
static bool nested(const Sbp *s, const Sbp *to, int k, int ndim)
{
	for (int i = k + 1; i < ndim; i++)
		if (s[i].kind == SBP_S && ((s[k].kind == SBP_S && s[k].axis == s[i].axis) || (to->kind == SBP_S && to->axis == s[i].axis)))
			return true;
	return false;
}

/* The step along axis k of the mesh that takes form s to `to` there. */
static double one_step(const Value *v, const Sbp *s, const Sbp *to, int k, const Mesh *m)
{
	double bytes = bytes_of(v);
	for (int i = 0; i < m->ndim; i++)
		if (i != k)
			bytes *= share(v, &s[i], m->dim[i]);
	double t = hop(&s[k], to, bytes, k, m->dim[k]);
	if (nested(s, to, k, m->ndim))
		t += figures.axis[k].latency + bytes / m->dim[k] / figures.axis[k].bytes;
	return t;
}

/* An axis along which the parts of a sum can be scattered: cut by nothing else. */
static bool scatter(const Value *v, const Sbp *from, const Sbp *to, const Mesh *m, int k, Sbp *mid)
{
	for (int a = 0; a < v->type->rank; a++) {
		bool is_free = v->type->dim[a] >= m->dim[k];
		for (int i = 0; i < m->ndim; i++)
			is_free &= !(from[i].kind == SBP_S && from[i].axis == a) && !(to[i].kind == SBP_S && to[i].axis == a);
		if (is_free) {
			*mid = (Sbp){ .kind = SBP_S, .axis = a };
			return true;
		}
	}
	return false;
}

/* Every axis of the mesh is at its beginning (0), at a cut in between (1) or at its end (2): the cheapest way through these. */
double cost_move(const Value *v, const Sbp *from, const Sbp *to, const Mesh *m)
{
	Sbp at[MESH_DIMS][3];
	bool mid[MESH_DIMS];
	double best[81];
	int n = 1, differ = 0;
	for (int k = 0; k < m->ndim; k++) {
		bool same = m->dim[k] == 1 || sbp_equal(&from[k], &to[k], 1);
		at[k][0] = from[k];
		at[k][2] = to[k];
		at[k][1] = (Sbp){ .kind = SBP_B };
		differ += !same;
		mid[k] = from[k].kind == SBP_S && to[k].kind == SBP_S && !same;
		if (from[k].kind == SBP_P && to[k].kind == SBP_B)
			mid[k] = scatter(v, from, to, m, k, &at[k][1]);
		if (same)
			at[k][0] = to[k];
		n *= 3;
	}
	if (!differ)
		return 0;
	for (int s = 0; s < n; s++)
		best[s] = s ? INFINITY : 0;
	for (int s = 0; s < n; s++) {           /* steps only lead upwards */
		Sbp now[MESH_DIMS];
		int place[MESH_DIMS], unit = 1;
		if (best[s] == INFINITY)
			continue;
		for (int k = 0, rest = s; k < m->ndim; k++, rest /= 3) {
			place[k] = rest % 3;
			now[k] = at[k][place[k]];
		}
		for (int k = 0; k < m->ndim; k++, unit *= 3)
			for (int next = place[k] + 1; next < 3; next++) {
				if (next == 1 && !mid[k])
					continue;
				bool same = m->dim[k] == 1 || sbp_equal(&now[k], &at[k][next], 1);
				double t = best[s] + (same ? 0 : one_step(v, now, &at[k][next], k, m));
				int to_state = s + (next - place[k]) * unit;
				best[to_state] = fmin(best[to_state], t);
			}
	}
	return best[n - 1];
}

/* Along the only axis of a mesh, by bytes alone. */
double cost_box(const Sbp *from, const Sbp *to, int64_t bytes, int p)
{
	return p == 1 || sbp_equal(from, to, 1) ? 0 : hop(from, to, (double)bytes, 0, p);
}
