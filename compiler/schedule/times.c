/* The pipeline as numbers, from the actions of its blocks: the schedule solver, the bound and the report read them.
 *
 *   seconds     of F, B, W of each stage; of the reduction of its gradients; of what its rank does once per step
 *   hops        seconds and bytes of what stages send each other
 *   bytes       kept from F to B, and from B to W; fixed: all that does not depend on the order.  The memory plan
 *               comes later, so this is an estimate: gaps, workspaces and tables are not in it
 *
 * The memory of a rank limits the orders that the solver tries. */
#include "schedule/schedule.h"

#include <limits.h>

bool times_runs(const Action *a, int rank)
{
	if (a->channel >= 0)
		return channel_joins(a, rank);
	return !a->n || mesh_index(a->n->place->mesh, rank) >= 0;
}

double times_action(const Plan *p, const Block *b, const Action *a)
{
	bool moves = a->kind == ACT_COLLECTIVE || (a->kind == ACT_START && b->kind == BLOCK_REDUCE);
	return p->stages && moves ? overlap_moving(p, a) : overlap_seconds(p, a);
}

double times_block(const Plan *p, const Block *b, int rank)
{
	double sum = 0;
	for (int i = b->from; i < b->to; i++)
		if (times_runs(&p->role[0].step[i], rank))
			sum += times_action(p, b, &p->role[0].step[i]);
	return sum;
}

/* ---- seconds ---- */

/* The last stage of a pipeline's rank. */
static PipeStage *last_of(const Pipeline *pipe, int rank)
{
	PipeStage *s = NULL;
	for (int i = 0; i < pipe->nstage; i++)
		if (pipe->stage[i].rank == rank)
			s = &pipe->stage[i];
	return s;
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Returns the seconds of what the role does once per step. */
static double stage_seconds(const Plan *p, Pipeline *pipe, const Role *r, int rank)
{
	double once = 0;
	for (int i = 0; i < p->nblock; i++) {
		const Block *b = &p->block[i];
		PipeStage *s = b->stage < 0 || pipe->stage[b->stage].rank != rank ? NULL : &pipe->stage[b->stage];
		double seconds = times_block(p, b, r->rank[0]);
		if (b->stage < 0 && pipe_once(b->kind))
			once += seconds;
		else if (s && b->kind == BLOCK_F)
			s->f = larger(s->f, seconds);
		else if (s && b->kind == BLOCK_W)
			s->w = larger(s->w, seconds);
		else if (s && b->kind == BLOCK_REDUCE)
			s->update = larger(s->update, seconds);
		else if (s)
			s->b = larger(s->b, seconds);
	}
	return once;
}

/* Seconds and bytes from a block of one stage to the same kind of block of another; false: nothing goes there. */
static bool way(const Plan *p, int from, int to, bool back, double *seconds, int64_t *bytes)
{
	bool any = false;
	*seconds = 0;
	for (int i = 0; i < p->nqueue; i++) {
		const Queue *q = &p->queue[i];
		const Block *x = &p->block[q->from], *y = &p->block[q->to];
		bool b = x->kind == BLOCK_B || x->kind == BLOCK_BW, f = x->kind == BLOCK_F;
		if (x->stage != from || y->stage != to || x->kind != y->kind || !(back ? b : f))
			continue;
		any = true;
		for (int k = 0; k < q->n; k++) {
			*seconds += transfer_seconds(slot_form(p, q->take[k]), slot_form(p, q->make[k]),
				dtype_bits(q->take[k]->v->type->elem) / 8);
			*bytes += q->make[k]->bytes;
		}
	}
	return any;
}

/* From each stage to the next, and where activations and their gradients skip stages.  The way back is as long as the
 * way there; where one is shorter, it counts for both. */
static void find_hops(Graph *g, Pipeline *pipe)
{
	const Plan *p = g->model->plan;
	pipe->hop = NULL;
	pipe->nhop = 0;
	for (int s = 0; s < pipe->nstage; s++)
		for (int t = s + 1; t < pipe->nstage; t++) {
			PipeHop h = { .from = s, .to = t };
			int64_t ignored = 0;
			double there, back;
			bool f = way(p, s, t, false, &there, &h.bytes), b = way(p, t, s, true, &back, &ignored);
			h.latency = b && back < there ? back : there;
			if (t == s + 1 || (f && b))
				arena_push(g->arena, pipe->hop, pipe->nhop, h);
		}
}

/* ---- bytes ---- */

/* What a role holds, by value: the actions that touch it first and last. */
typedef struct Held { int first, last; bool queued; } Held;

static Held *find_held(const Plan *p, const Role *r, Arena *a)
{
	Held *h = arena_array(a, Held, p->nslot + 1);
	for (int i = 0; i < p->nslot; i++)
		h[i].first = INT_MAX;
	for (int i = 0; i < p->role[0].nstep; i++) {
		const Action *x = &p->role[0].step[i];
		for (int k = 0; k < x->ntake + x->nmake && times_runs(x, r->rank[0]); k++) {
			const Slot *s = k < x->ntake ? x->take[k] : x->make[k - x->ntake];
			Held *at = s ? &h[copies_memory(s)->v->id] : NULL;
			if (at)
				*at = (Held){ i < at->first ? i : at->first, i, false };
		}
	}
	for (int i = 0; i < p->nqueue; i++)
		for (int k = 0; k < p->queue[i].n; k++) {
			h[copies_memory(p->queue[i].take[k])->v->id].queued = true;
			h[copies_memory(p->queue[i].make[k])->v->id].queued = true;
		}
	return h;
}

/* A value that several blocks touch for each micro-batch.  false: it is not one, or not of this rank's stages. */
static bool count_kept(const Plan *p, const Pipeline *pipe, int rank, const Touch *t, int64_t bytes, PipeStage *to)
{
	int stage = -1, n = 0;
	bool f = false, w = false;
	for (int i = 0; i < t->n; i++) {
		const Block *b = &p->block[t->block[i]];
		if (b->stage >= 0 && pipe->stage[b->stage].rank != rank)
			continue;
		if (pipe_once(b->kind))
			return false;
		n++;
		stage = stage < 0 ? b->stage : stage;
		f |= b->kind == BLOCK_F || b->kind == BLOCK_LOAD;
		w |= b->kind == BLOCK_W;
	}
	if (n < 2 || stage < 0)
		return false;
	to[stage].kept += f ? bytes : 0;
	to[stage].kept_w += w ? bytes : 0;
	return true;
}

/* The bytes of the stages of a rank, as this role holds them: `to` by stage, all of `fixed` at its last stage. */
static void stage_bytes(Graph *g, const Role *r, int rank, PipeStage *to)
{
	const Plan *p = g->model->plan;
	const Pipeline *pipe = &p->stages->pipe;
	const Touch *touch = copies_touched(p, NULL, g->scratch);
	const Held *held = find_held(p, r, g->scratch);
	int n = p->role[0].nstep;
	int64_t *change = arena_array(g->scratch, int64_t, n + 2), always = 0, now = 0, most = 0;
	for (int i = 0; i < p->nslot; i++) {
		const Slot *s = p->slot[i];
		const Held *h = &held[i];
		if (!s || s->store != s || mesh_index(s->v->place->mesh, r->rank[0]) < 0)
			continue;
		int64_t bytes = memplan_aligned(s->bytes);
		bool kept = !slot_kept(s) && count_kept(p, pipe, rank, &touch[i], bytes, to);
		if (slot_kept(s) || h->queued)  /* a queue has one or two copies beside those of the blocks */
			always += kept || slot_kept(s) ? bytes : 2 * bytes;
		else if (!kept && h->first < INT_MAX) {
			change[h->first] += bytes;
			change[h->last + 1] -= bytes;
		}
	}
	for (int i = 0; i < n; i++) {
		now += change[i];
		most = now > most ? now : most;
	}
	to[last_of(pipe, rank) - pipe->stage].fixed = always + most;
}

static void find_bytes(Graph *g, Pipeline *pipe, const Role *r, int rank)
{
	PipeStage *own = arena_array(g->scratch, PipeStage, pipe->nstage);
	stage_bytes(g, r, rank, own);
	for (int i = 0; i < pipe->nstage; i++) {
		PipeStage *s = &pipe->stage[i];
		s->kept = own[i].kept > s->kept ? own[i].kept : s->kept;
		s->kept_w = own[i].kept_w > s->kept_w ? own[i].kept_w : s->kept_w;
		s->fixed = own[i].fixed > s->fixed ? own[i].fixed : s->fixed;
	}
}

/* Whether all ranks take part in a transfer of the update, such as the sum of a norm. */
static bool has_barrier(const Plan *p)
{
	for (int b = 0; b < p->nblock; b++)
		for (int i = p->block[b].from; i < p->block[b].to && p->block[b].kind == BLOCK_UPDATE; i++) {
			const Action *a = &p->role[0].step[i];
			int n = 0;
			while (a->channel >= 0 && n < p->nrole && channel_joins(a, p->role[n].rank[0]))
				n++;
			if (a->channel >= 0 && n == p->nrole)
				return true;
		}
	return false;
}

int times_rank(const Plan *p, const Role *r)
{
	Mesh one = *p->main;
	one.nrank = 1;
	one.rank = NULL;
	one.first = r->rank[0];
	return kinds_rank(p, &(Placement){ .mesh = &one });
}

void times_find(Graph *g)
{
	const Plan *p = g->model->plan;
	Pipeline *pipe = &p->stages->pipe;
	double memory = device.memory > (double)opt.change.spare ? device.memory - (double)opt.change.spare : 0;
	double *once = arena_array(g->scratch, double, pipe->nrank + 1);
	for (int i = 0; i < pipe->nstage; i++)
		pipe->stage[i] = (PipeStage){ .rank = pipe->stage[i].rank };
	for (int i = 0; i < p->nrole; i++) {
		int r = times_rank(p, &p->role[i]);
		once[r] = larger(once[r], stage_seconds(p, pipe, &p->role[i], r));
		find_bytes(g, pipe, &p->role[i], r);
	}
	for (int r = 0; r < pipe->nrank; r++)
		last_of(pipe, r)->update += once[r];
	find_hops(g, pipe);
	pipe->barrier = has_barrier(p);
	pipe->limit = memory > 0 ? arena_array(g->arena, int64_t, pipe->nrank + 1) : NULL;
	for (int r = 0; r < pipe->nrank && memory > 0; r++)
		pipe->limit[r] = (int64_t)memory;
}
