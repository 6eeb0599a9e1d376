/* Which weights are kept in packed form.
 *
 * A product packs its right operand before it multiplies (kernels/cpu/gemm.c).  Where that operand is a weight that is
 * read more often than it changes (micro-batches of a step, batches of an evaluation, calls of an inference), the
 * packed form is worth keeping: it takes as many bytes as the weight and saves the time of packing, a share of about 16
 * / (16 + m) for m rows. It is kept where this share is at least a twentieth: down to there, products were measured 5
 * to 7 % faster.  Below 16 rows a product is bound by reading the weight, packed or not.
 *
 * A step in micro-batches and a program that only infers get memory for it at the end of their slab.  Eval and infer
 * beside a step use the bytes of its slab that they do not need otherwise.  The runtime packs when it first reaches the
 * product, and again after a kept value was changed (rt_packed). */
#include "schedule/schedule.h"

#include <string.h>

#include "cpu/gemm.h"

/* Whether the repeated actions of the program write to the memory of s. */
static bool written(const Role *r, const Slot *s)
{
	for (int i = 0; i < r->after; i++)
		for (int k = 0; k < r->step[i].nmake; k++)
			if (r->step[i].make[k] && r->step[i].make[k]->store == s->store)
				return true;
	return false;
}

/* The right operand of the product of an action, if it is a kept float matrix: its sizes and strides in w, the rows of
 * the product in m. */
static bool weight_of(const Plan *p, const Action *a, Packed *w, int64_t *m)
{
	const Node *n = a->host ? a->host : a->n;
	if (a->kind != ACT_COMPUTE || !n->row->kernel || strcmp(n->row->kernel, "matmul") || a->ntake < 2 ||
		!a->take[1])
		return false;
	const Type *x = n->in[0]->type, *b = n->in[1]->type;
	bool ta = attr_has(n, "transA") && attr_int(n, "transA"), tb = attr_has(n, "transB") && attr_int(n, "transB");
	w->w = slot_value(a->take[1]);
	if (b->ndim != 2 || b->elem != DT_FLOAT || x->ndim < 2 || (ta && x->ndim > 2) || !slot_kept(w->w) ||
		w->w->window || written(&p->role[0], w->w))
		return false;
	w->k = b->dim[tb], w->n = b->dim[!tb];
	w->row = tb ? 1 : w->n, w->col = tb ? w->k : 1;
	*m = w->n ? type_elements(n->out[0]->type) / w->n : 0;
	return w->k && w->n && *m;
}

static bool listed(const Plan *p, const Packed *w)
{
	for (int i = 0; i < p->npacked; i++)
		if (p->packed[i].w->store == w->w->store && p->packed[i].row == w->row && p->packed[i].col == w->col &&
			p->packed[i].n == w->n)
			return true;
	return false;
}

/* The share of the time that is saved by packing the operand of products of m rows once instead of `runs` times (0: any
 * number). */
static double saved(int64_t m, int64_t runs)
{
	double often = runs ? 1.0 - 1.0 / (double)runs : 1.0;
	return m < 16 ? 0 : often * 16 / (16 + (double)m);
}

/* runs: how often the products of the program run while weights do not change; 0: any number.  room: the largest size
 * of the slab. */
static void choose(Graph *g, Plan *p, int64_t runs, int64_t room)
{
	const Role *r = &p->role[0];
	for (int i = 0; i < r->nstep; i++) {
		Packed w = { 0 };
		int64_t m;
		if (!weight_of(p, &r->step[i], &w, &m) || saved(m, runs) < 0.05 || listed(p, &w))
			continue;
		w.bytes = memplan_aligned(gemm_packed_bytes(w.n, w.k));
		w.offset = memplan_aligned(p->layout.slab);
		if (w.bytes > room - w.offset)
			continue;
		p->layout.slab = w.offset + w.bytes;
		p->layout.packed += w.bytes;
		arena_push(g->arena, p->packed, p->npacked, w);
	}
}

int packed_weights_run(Graph *g)
{
	Model *m = g->model;
	Plan *p = m->plan;
	if (m->main || p->main->cuda || p->world->nrank > 1 || opt.chunks)
		return 0;               /* together with the main program */
	int64_t runs = 0;
	if (p->training)
		runs = p->train.microbatches ? p->train.microbatches : 1;
	choose(g, p, runs, INT64_MAX / 2);
	for (int i = 0; i < m->nothers; i++)
		choose(m->others[i]->graph, m->others[i]->plan, 0, p->layout.slab);
	return 0;
}
