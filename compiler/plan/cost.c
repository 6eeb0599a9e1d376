/* Seconds from flops and bytes, by the performance of the machine (device.c).
 *
 * An operator takes the time of its arithmetic plus that of its memory traffic, on the largest shard of a rank.  The
 * two are added because a product packs its operands before it multiplies.  Splitting one operand while the other stays
 * B halves the arithmetic, but not the packing of the other operand.  The time of transfers comes from transfer.c and
 * boxing_route.c. */
#include "plan/plan.h"

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
	if (!n->nout || !n->out[0] || !n->row || !n->row->expr)
		return 0;
	return (double)type_elements(n->out[0]->type) * (n->row->flops ? n->row->flops : 1);
}

/* How many of the len elements of an axis are read for n elements of the axis that is split. */
static double reached(const FormReach *r, int64_t n, int64_t len)
{
	int64_t windows = (n - 1 + r->hi - r->lo) / r->div + 1;
	int64_t sees = (windows - 1) * r->mul + r->to - r->from + 1;
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

/* The size of the largest shard after the split along axis k of the mesh, as a fraction of its size after the splits
 * along the axes before it. */
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

double cost_shard(const Value *v, const Sbp *s, const Mesh *m)
{
	double b = bytes_of(v);
	for (int k = 0; k < m->ndim; k++)
		b *= share(v, s, m, k);
	return b;
}

/* A product consists of multiply-adds of full vectors.  A function consists of polynomials, quotients and selections,
 * often of short rows: each of its operations takes as long as so many operations of a product. */
enum { OTHERS = 14 };

static double work_of(const Node *n)
{
	return cost_flops(n) + (n->row && n->row->cost ? OTHERS * n->row->cost(n).others : 0);
}

static double rate_of(const Node *n)
{
	const Value *v = n->nin ? n->in[0] : NULL;
	if (!v && n->nout)
		v = n->out[0];
	return v && v->type && dtype_bits(v->type->elem) <= 16 ? device.half : device.flops;
}

double cost_node(Node *n, double share)
{
	Cost c = { 0, 0, 0 };
	if (n->row && n->row->cost)
		c = n->row->cost(n);
	else
		for (int i = 0; i < n->nin + n->nout; i++)
			c.bytes += bytes_of(i < n->nin ? n->in[i] : n->out[i - n->nin]);
	return device.start + (work_of(n) / rate_of(n) + c.bytes / device.bytes) * share;
}

/* in[i] and out[i]: the SBP of an operand or result, with an entry per axis of the mesh.  Bit i of `inside`: operand i,
 * or result i - nin, is in a register, because another pointwise node of the same loop computes it, has read it or is
 * its only reader. */
double cost_run(const Node *n, Sbp *const *in, Sbp *const *out, const Mesh *m, uint64_t inside)
{
	double work = 1, made = 0, t = 0;
	for (int k = 0; k < m->ndim; k++) {
		double least = 1;               /* any operand or result that is split divides the work */
		for (int i = 0; i < n->nin; i++)
			if (n->in[i])
				least = fmin(least, share(n->in[i], in[i], m, k));
		for (int i = 0; i < n->nout; i++)
			if (n->out[i])
				least = fmin(least, share(n->out[i], out[i], m, k));
		work *= least;
	}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !(inside >> (n->nin + i) & 1)) {
			made += cost_shard(n->out[i], out[i], m);
			t += device_through(cost_shard(n->out[i], out[i], m));
		}
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !(inside >> i & 1)) {
			double all = cost_shard(n->in[i], in[i], m);
			bool picks = n->row->index && !i && cost_flops(n) < (double)type_elements(n->in[0]->type);
			/* of a table only the rows that the indices select are read */
			t += device_through(picks ? fmin(all, made) : all);
		}
	bool carries = n->row->kernel && n->row->carries && n->nin && n->in[0];
	if (carries && made == cost_shard(n->in[0], in[0], m) && n->in[0]->type->elem == n->out[0]->type->elem)
		return 0;                       /* mostly a view: the same bytes in the same order */
	return (inside >> n->nin ? 0 : device.start) + work_of(n) * work / rate_of(n) + t;
}

/* ---- loops of several nodes ---- */

static bool pointwise(const Node *n)
{
	return n->row && n->row->expr && n->nout == 1 && n->out[0] && n->out[0]->type;
}

static bool alike(const Value *a, const Value *b)
{
	bool same = a->type && b->type && a->type->ndim == b->type->ndim;
	for (int i = 0; same && i < a->type->ndim; i++)
		same = a->type->dim[i] == b->type->dim[i];
	return same;
}

static int loop_of(int *loop, int v)
{
	while (loop[v] != v)
		v = loop[v] = loop[loop[v]];
	return v;
}

/* By the result of a pointwise node, the loop that it belongs to: nodes of one shape that feed each other, as fuse.c
 * joins them.  The level of a value is the largest number of nodes that are not pointwise on a path to it.  Between two
 * values of one level there is no such node, so they can be in one loop.  A loop can also be joined to a later node
 * that is its only reader, because the loop can wait for the other operands of that node. */
static int *loops(const Graph *g, const int *uses, Arena *a)
{
	int *loop = arena_array(a, int, g->nvalue + 1), *level = arena_array(a, int, g->nvalue + 1),
		*open = arena_array(a, int, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		loop[i] = i;
		open[i] = uses[i] != 1 || g->value[i]->into || g->value[i]->output;
	}
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		int at = 0;
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && level[n->in[k]->id] > at)
				at = level[n->in[k]->id];
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				level[n->out[k]->id] = at + !pointwise(n);
		for (int k = 0; k < n->nin && pointwise(n); k++) {
			const Value *v = n->in[k];
			if (!v || !v->def || !pointwise(v->def) || !alike(v, n->out[0]))
				continue;
			int from = loop_of(loop, v->id), to = loop_of(loop, n->out[0]->id);
			if (from == to || (level[v->id] != at && open[from]))
				continue;
			loop[from] = to;
			open[to] += open[from];
		}
	}
	return loop;
}

uint64_t *cost_fused(const Graph *g, Arena *a)
{
	int *uses = arena_array(a, int, g->nvalue + 1), *within = arena_array(a, int, g->nvalue + 1),
		*seen = arena_array(a, int, g->nvalue + 1);
	uint64_t *inside = arena_array(a, uint64_t, g->nvalue + 1);
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k])
				uses[g->node[i]->in[k]->id]++;
	int *loop = loops(g, uses, a);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		bool looped = pointwise(n) && n->nin < 63;
		int mine = looped ? loop_of(loop, n->out[0]->id) + 1 : 0;
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k];
			if (!v || !looped)
				continue;
			bool made = v->def && pointwise(v->def) && loop_of(loop, v->id) + 1 == mine;
			within[v->id] += made;
			if (made || seen[v->id] == mine)        /* computed in this loop, or read before */
				inside[n->out[0]->id] |= (uint64_t)1 << k;
			seen[v->id] = mine;
		}
	}
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin && pointwise(n) && n->nin < 63; k++) {
			const Value *v = n->in[k];
			if (!v || !v->def || !pointwise(v->def) || v->def->nin > 62 || v->into || v->output)
				continue;
			if (uses[v->id] > 1 && within[v->id] < uses[v->id])
				continue;                       /* a node outside the loop reads it */
			inside[n->out[0]->id] |= (uint64_t)1 << k;
			inside[v->id] |= (uint64_t)1 << v->def->nin;
		}
	}
	return inside;
}

uint64_t cost_inside(const Node *n, const uint64_t *fused)
{
	return n->nout && n->out[0] ? fused[n->out[0]->id] : 0;
}

/* ---- transfers ---- */

static bool cuts(const FormCut *c, int axis)
{
	return c->kind == FORM_S && c->axis == axis;
}

/* Whether another axis of the mesh than j cuts the same axis of the tensor. */
static bool shares_cut(const Form *f, const Form *t, int j)
{
	int axis = f->cut[j].axis;
	for (int i = 0; i < f->ndim; i++)
		if (i != j && (cuts(&f->cut[i], axis) || cuts(&t->cut[i], axis)))
			return true;
	return false;
}

/* Whether the forms can be narrowed along axis j of the mesh. */
static bool narrows(const Form *f, const Form *t, int j, bool b, bool partial)
{
	const FormCut *c = &f->cut[j];
	if (f->mesh[j] == 1 || !transfer_same_cut(c, &t->cut[j]))
		return false;
	switch (c->kind) {
	case FORM_S: return !c->reach && !shares_cut(f, t, j);
	case FORM_P: return partial;
	default: return b;
	}
}

/* Reduces a transfer to one group of ranks across each axis of the mesh along which nothing changes.  It is the same
 * transfer in every group, and takes as long as in the group with the largest shards.  So prices on meshes of many axes
 * are found as quickly as on those of few.  b: also along axes where the value is B, which a transfer of several hops
 * might use.  Axes where it is partial stay: partial values are copied even where the shards do not change, and partial
 * sums of chunks are combined in a fixed order.  On meshes of many axes only the latter counts. */
static void narrow(Form *f, Form *t, bool b)
{
	bool partial = mesh_axes_many(f->mesh, f->ndim) && !opt.chunks;
	for (int j = 0; j < f->ndim; j++) {
		FormCut *c = &f->cut[j];
		if (!narrows(f, t, j, b, partial))
			continue;
		if (c->kind == FORM_S) {
			int64_t at, len;
			form_share(c->len, f->mesh[j], 0, &at, &len);
			f->dim[c->axis] = t->dim[c->axis] = f->dim[c->axis] / c->len * len;
		}
		f->mesh[j] = t->mesh[j] = 1;
		f->cut[j] = t->cut[j] = (FormCut){ .kind = FORM_B };
	}
	f->rank = t->rank = NULL;
	f->first = t->first = 0;
}

static double seconds_of(const Value *v, const Form *f, const Form *t)
{
	int64_t elem = dtype_bits(v->type->elem) / 8;
	return boxing_route_find(f, t, elem ? elem : 1)->seconds;
}

double cost_move(const Value *v, const Sbp *from, const Sbp *to, const Mesh *m)
{
	Form f = sbp_form(v, from, m), t = sbp_form(v, to, m);
	if (mesh_axes_many(m->dim, m->ndim))
		narrow(&f, &t, false);
	return seconds_of(v, &f, &t);
}

double cost_step(const Value *v, const Sbp *from, const Sbp *to, const Mesh *m)
{
	Form f = sbp_form(v, from, m), t = sbp_form(v, to, m);
	narrow(&f, &t, true);
	return seconds_of(v, &f, &t);
}
