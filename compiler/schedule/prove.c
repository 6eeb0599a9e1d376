/* Proves the plan before any file is written.  A plan that fails is a mistake of ours or of the model, and is refused
 * either way.
 *
 * 1. Every node has a legal signature, and every transfer leads from the SBP of its operand to that of its result.
 * 2. The lists of actions, simulated on all ranks at once, run to their end: whenever a rank waits at a transfer, all
 * ranks of that transfer reach it, with the same size.  Lists are deterministic, so one simulation decides for all
 * interleavings. A transfer with start and finish is simulated at its start: ranks perform transfers in the order of
 * starts, a start does not wait, and a finish waits only for transfers before it in this order.  Every start has one
 * later finish in the same section.  All roles of a transfer reach it on the same channel, so it has the same number
 * there on all ranks.
 * 3. No value is read before it is made or after its memory was reused; the result of a transfer is not read before its
 * finish, and its operands are not written until then; values that are live at the same time on the same rank do not
 * overlap; every value lies inside its area.
 * 4. A value in the memory of another has the same bytes and form.  An action writes a result over its own operand only
 * if its kernel allows that: it has finished reading an element, or a row, when it writes there. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

static int legal(Graph *g, Node *n)
{
	const Mesh *m = n->place->mesh;
	if (kernel_transfer(n)) {
		const char *how = boxing_how(n);
		if (!strcmp(how, attr_str(n, "how")))
			return 0;
		err_at(n->loc, "%s does not lead from %s to %s; that is %s", attr_str(n, "how"),
			sbp_text(n->in[0]->sbp, n->in[0]->place->mesh->ndim),
		       sbp_text(n->out[0]->sbp, n->out[0]->place->mesh->ndim), how);
		return -1;
	}
	if (signatures_legal(n, m, g->scratch))
		return 0;
	err_at(n->loc, "%s has no signature for these operands and results", n->op);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			note_at(operand_loc(n, i), "%s is %s", n->in[i]->name,
				sbp_text(n->in[i]->sbp, n->in[i]->place->mesh->ndim));
	return -1;
}

/* Whether NCCL can perform a transfer: between GPUs fewer kinds exist than between processes. */
static bool possible(const Plan *p, const Node *n)
{
	const Slot *x = slot_of(p, n->in[0]), *y = slot_of(p, n->out[0]);
	if (!x || !y)
		return true;
	const Form *from = slot_form(p, x), *to = slot_form(p, y);
	bool sums = form_terms(from) > 1 && n->in[0]->type->elem != DT_FLOAT;
	bool all = transfer_of(from, to)->local || form_nrank(to) == p->world->nrank;
	return all && transfer_nccl(from, to, sums ? 0 : 4);
}

static int between_gpus(Graph *g, const Plan *p)
{
	int reported = 0;
	for (int i = 0; i < g->nnode && reported < 5; i++) {
		const Node *n = g->node[i];
		if (!kernel_transfer(n) || possible(p, n))
			continue;
		reported++;
		const Value *x = n->in[0], *y = n->out[0];
		fail_at(EXIT_NOPLAN, n->loc,
			"%s cannot go from %s to %s between GPUs yet: the transfers there are sums of float "
		        "over all ranks, and gathers of what is cut along its first axis", x->name,
		        sbp_text(x->sbp, x->place->mesh->ndim), sbp_text(y->sbp, y->place->mesh->ndim));
	}
	return reported ? -1 : 0;
}

/* ---- transfers ---- */

static int mismatch(const Action *a, int ra, const Action *b, int rb)
{
	fail_at(EXIT_NOPLAN, a->n->loc, "rank %d waits at action %d, a transfer of %s, while rank %d is at action %d%s",
		ra, a->id, a->take[0]->v->name, rb,
	        b ? b->id : -1, b ? ", another one" : ", the end");
	return -1;
}

/* Whether the ranks of a role take part in a transfer; all of them belong to the same meshes. */
static bool joins(const Role *r, const Action *a)
{
	return channel_joins(a, r->rank[0]);
}

/* The next transfer that a role takes part in, at or after *i in its list; NULL: there is none. */
static const Action *next_transfer(const Role *r, int *i)
{
	while (*i < r->nstep && ((r->step[*i].kind != ACT_COLLECTIVE && r->step[*i].kind != ACT_START) ||
		!joins(r, &r->step[*i])))
		(*i)++;
	return *i < r->nstep ? &r->step[*i] : NULL;
}

static bool one_transfer(const Action *a, const Action *b)
{
	if (!b || a->n != b->n || a->channel != b->channel || strcmp(a->how, b->how) ||
		a->nmake != b->nmake || a->ntake != b->ntake)
		return false;
	for (int i = 0; i < a->nmake; i++)
		if (a->take[i] != b->take[i] || a->make[i] != b->make[i])
			return false;
	return true;
}

/* Whether all transfers of a bucket are between the meshes of its channel. */
static bool on_channel(const Plan *p, const Action *a)
{
	if (a->channel < 0 || a->channel >= p->channels->n)
		return false;
	const Channel *c = &p->channels->channel[a->channel];
	for (int i = 0; i < a->nmake; i++)
		if (!form_one_mesh(&p->forms->form[c->from], slot_form(p, a->take[i])) ||
			!form_one_mesh(&p->forms->form[c->to], slot_form(p, a->make[i])))
			return false;
	return true;
}

/* Simulates the transfers.  One is done when all its roles have reached it.  Ranks wait only for their own group, which
 * is less, so lists that end here end there too.  Ranks of one role share a list, so one stands for all. */
static int simulate(Graph *g, const Plan *p)
{
	int *at = arena_array(g->scratch, int, p->nrole);
	for (bool moved = true; moved;) {
		const Action *late = NULL, *other = NULL;
		int who = 0, whom = 0;
		moved = false;
		for (int k = 0; k < p->nrole && !moved; k++) {
			const Action *a = next_transfer(&p->role[k], &at[k]);
			int j = 0;
			while (a && j < p->nrole && (!joins(&p->role[j], a) ||
				one_transfer(a, next_transfer(&p->role[j], &at[j]))))
				j++;
			if (a && j < p->nrole && !late) {
				late = a;
				who = p->role[k].rank[0];
				other = next_transfer(&p->role[j], &at[j]);
				whom = p->role[j].rank[0];
			}
			moved = a && j == p->nrole;
			if (moved && (!a->take[0]->window || (schedule_all_reduce(a) && !a->make[0]->window)))
				die("a transfer of %s outside the window", a->take[0]->v->name);
			if (moved && !on_channel(p, a))
				die("a transfer of %s on a channel of other ranks", a->take[0]->v->name);
			for (j = 0; j < p->nrole && moved; j++)
				at[j] += joins(&p->role[j], a);
		}
		if (!moved && late)
			return mismatch(late, who, other, whom);
	}
	return 0;
}

/* Every start has its finish. */
static void check_ends(const Role *r)
{
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i], *b;
		if (a->kind != ACT_START && a->kind != ACT_FINISH)
			continue;
		if (a->other < 0 || a->other >= r->nstep || a->id != i)
			die("action %d, an end of a transfer, has no other", i);
		b = &r->step[a->other];
		if (b->other != i || b->kind == a->kind || (a->kind == ACT_START) != (i < a->other) ||
			!one_transfer(a, b) || a->block != b->block)
			die("actions %d and %d are not the ends of one transfer", i, a->other);
	}
}

/* ---- memory ---- */

/* Pieces of queues are there when the first block that reads them begins. */
static void arrive(const Plan *p, int at, const Slot **holds)
{
	for (int i = 0; i < p->nqueue; i++)
		for (int k = 0; k < p->queue[i].n && p->block[p->queue[i].to].from == at; k++)
			holds[p->queue[i].make[k]->store->v->id] = p->queue[i].make[k];
}

/* Simulates the list of a role: which value each memory holds at any time. */
static int simulate_slots(Graph *g, const Plan *p, const Role *r)
{
	const Slot **holds = arena_array(g->scratch, const Slot *, p->nslot + 1);      /* by id of the store */
	/* the result of a transfer that is in flight */
	const Slot **moves = arena_array(g->scratch, const Slot *, p->nslot + 1);
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i] && !p->slot[i]->view && slot_kept(p->slot[i]))
			holds[p->slot[i]->store->v->id] = p->slot[i];
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		arrive(p, i, holds);
		for (int k = 0; k < a->ntake; k++) {
			const Slot *s = a->take[k] ? slot_value(a->take[k]) : NULL;
			if (s && a->kind == ACT_FINISH && holds[s->store->v->id] == NULL &&
				moves[s->store->v->id] == a->make[k])
				continue;               /* the result has taken its memory */
			if (!s || holds[s->store->v->id] == s)
				continue;
			err_at(a->n ? a->n->loc : s->v->loc, "%s is read when its memory holds %s", s->v->name,
			       holds[s->store->v->id] ? holds[s->store->v->id]->v->name : "nothing yet");
			return -1;
		}
		for (int k = 0; k < a->nmake; k++) {
			int m = a->make[k] ? a->make[k]->store->v->id : -1;
			if (m >= 0 && a->kind == ACT_FINISH && (holds[m] || moves[m] != a->make[k]))
				die("%s was overwritten on its way", a->make[k]->v->name);
			if (m < 0)
				continue;
			holds[m] = a->kind == ACT_START ? NULL : a->make[k];
			moves[m] = a->kind == ACT_START ? a->make[k] : NULL;
		}
	}
	return 0;
}

/* A sum over micro-batches, and other memory that is there before them and changes in each, is read by the blocks that
 * change it only: other blocks may be at another micro-batch. */
static int sums(Graph *g, const Plan *p, const Role *r)
{
	int *by = arena_array(g->scratch, int, p->nslot + 1);           /* by id of the store: 1 + the block */
	bool *there = arena_array(g->scratch, bool, p->nslot + 1);
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		bool begin = p->block[a->block].kind == BLOCK_BEGIN;
		for (int k = 0; k < a->nmake; k++) {
			const Slot *s = a->make[k] ? a->make[k]->store : NULL;
			if (s && begin)
				there[s->v->id] = true;
			else if (s && !pipe_once(p->block[a->block].kind) && (there[s->v->id] || slot_kept(s)))
				by[s->v->id] = 1 + a->block;
		}
	}
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		for (int k = 0; k < a->ntake && !pipe_once(p->block[a->block].kind); k++) {
			const Slot *s = a->take[k] ? slot_value(a->take[k]) : NULL;
			int block = s ? by[s->store->v->id] : 0;
			if (!block || block == 1 + a->block)
				continue;
			err_at(a->n ? a->n->loc : s->v->loc,
				"%s reads %s, to which %s adds: it may be that of another micro-batch",
				p->block[a->block].name, s->v->name, p->block[block - 1].name);
			return -1;
		}
	}
	return 0;
}

/* A value in the memory of another has the same bytes, type and form. */
static int fills(const Plan *p, const Value *v)
{
	const Slot *s = slot_of(p, v), *old = s && v->into ? slot_of(p, v->into) : NULL;
	if (s && slot_of(p, s->store->v) != s->store)
		die("%s lives in %s, which has no memory", v->name, s->store->v->name);
	if (s && s->bytes > s->store->bytes) {
		err_at(v->loc, "%s has %lld bytes, but lives in %s, which has %lld", v->name, (long long)s->bytes,
			s->store->v->name, (long long)s->store->bytes);
		return -1;
	}
	if (!old || (old->bytes == s->bytes && old->store == s->store && old->v->type->elem == v->type->elem &&
		slot_alike(p, s, old)))
		return 0;
	err_at(v->loc, "%s lives in %s by @into, but is %s in %lld bytes where that is %s in %lld", v->name,
		v->into->name, type_text(v->type), (long long)s->bytes,
	       type_text(v->into->type), (long long)old->bytes);
	return -1;
}

/* Whether result m of an action may lie on its operand k. */
static bool may_lie_on(const Plan *p, const Action *a, int m, int k)
{
	const Slot *y = a->make[m], *x = a->take[k];
	const Kernel *kernel = a->kind == ACT_COMPUTE && !a->how && a->n->row->kernel ? kernel_of(a->n) : NULL;
	if (x->bytes != y->bytes || x->v->type->elem != y->v->type->elem || !slot_alike(p, x, y))
		return false;
	if (a->how)
		return schedule_all_reduce(a) && m == k;
	if (a->mate)
		return x == a->under;
	if (a->host)
		return k >= a->host->nin;       /* the loop reads it after the kernel has finished an element */
	return a->elementwise || (kernel && kernel->c & KERNEL_STATE && m > 0 && k == m + 2);
}

static int lies_on(const Plan *p, const Role *r)
{
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		for (int m = 0; m < a->nmake && a->n; m++)
			for (int k = 0; k < a->ntake; k++)
				if (a->make[m] && a->take[k] && a->make[m]->store == a->take[k]->store &&
					!may_lie_on(p, a, m, k)) {
					err_at(a->n->loc,
						"%s cannot make %s in the memory of %s, which it reads meanwhile",
						a->n->op, a->make[m]->v->name, a->take[k]->v->name);
					return -1;
				}
	}
	return 0;
}

static int by_area(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	if (x->window != y->window)
		return x->window - y->window;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->id - y->id;
}

static int overlaps(Graph *g, const Plan *p)
{
	Slot **list = arena_array(g->scratch, Slot *, p->nslot + 1);
	int n = 0;
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i] && p->slot[i]->store == p->slot[i] && p->slot[i]->bytes)
			list[n++] = p->slot[i];
	qsort(list, (size_t)n, sizeof *list, by_area);
	for (int i = 0; i < n; i++) {
		const Slot *a = list[i];
		if (a->offset < 0 || a->offset + slot_room(a) > (a->window ? p->layout.window : p->layout.slab))
			die("%s lies outside its area", a->v->name);
		for (int k = i + 1; k < n && list[k]->window == a->window && list[k]->offset < a->offset + slot_room(a);
			k++)
			if (list[k]->first <= a->last && a->first <= list[k]->last &&
				!placement_apart(list[k]->v->place, a->v->place))
				die("%s and %s overlap while both live", a->v->name, list[k]->v->name);
	}
	return 0;
}

/* Packed weights overlap no slot and no other packed weight: they may be written at any time of their program. */
static void packed_apart(const Plan *p)
{
	for (int i = 0; i < p->npacked; i++) {
		const Packed *w = &p->packed[i];
		int64_t end = w->offset + w->bytes;
		if (end > (i + 1 < p->npacked ? p->packed[i + 1].offset : p->layout.slab))
			die("the packed form of %s has no room", w->w->v->name);
		for (int k = 0; k < p->nslot; k++)
			if (p->slot[k] && !p->slot[k]->window && p->slot[k]->offset < end &&
				p->slot[k]->offset + slot_room(p->slot[k]) > w->offset)
				die("%s lies where %s is packed", p->slot[k]->v->name, w->w->v->name);
	}
}

/* Whether a rank runs the reductions that it takes part in.  Of blocks for micro-batches, check_net says more. */
static int runs_all(const Graph *g, const Plan *p, const Role *r)
{
	const bool *runs = copies_runs(p, r, g->scratch);
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		const Block *b = &p->block[a->block];
		if (runs[a->block] || b->kind != BLOCK_REDUCE || mesh_index(a->n->place->mesh, r->rank[0]) < 0)
			continue;
		fail_at(EXIT_NOPLAN, a->n->loc, "rank %d never runs %s, which reduces %s", r->rank[0], b->name,
			a->take[0]->v->name);
		return -1;
	}
	return 0;
}

/* Queues and tasks: as programs of lanes, in any order in which they can run. */
static int lanes_run(Graph *g)
{
	const Plan *p = g->model->plan;
	LaneNet net;
	if (!p->stages)
		return 0;
	for (int i = 0; i < p->nrole; i++)
		if (runs_all(g, p, &p->role[i]))
			return -1;
	lane_net_of(g, g->scratch, &net);
	const char *why = check_net(&net, g->scratch);
	if (why)
		check_explain(annot_find((g->model->main ? g->model->main : g->model)->annot, "pipeline")->loc, why);
	return why ? -1 : 0;
}

int prove_run(Graph *g)
{
	const Plan *p = g->model->plan;
	int bad = 0;
	for (int i = 0; i < g->nnode; i++)
		bad |= legal(g, g->node[i]);
	if (device.nccl && !bad)
		bad = between_gpus(g, p);
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		if (v->into && slot_of(p, v) && (v->place->mesh != v->into->place->mesh ||
			!sbp_equal(v->sbp, v->into->sbp, v->place->mesh->ndim))) {
			err_at(v->loc, "%s lives in %s, but is %s where that is %s", v->name, v->into->name,
				sbp_text(v->sbp, v->place->mesh->ndim),
			       sbp_text(v->into->sbp, v->into->place->mesh->ndim));
			bad = -1;
		}
		bad |= fills(p, v);
	}
	for (int i = 0; i < p->nrole && !bad; i++)
		bad |= lies_on(p, &p->role[i]);
	for (int i = 0; i < p->nrole && !bad; i++)
		check_ends(&p->role[i]);
	for (int i = 0; i < p->nrole && !bad; i++)
		bad |= simulate_slots(g, p, &p->role[i]) || sums(g, p, &p->role[i]) ? -1 : 0;
	packed_apart(p);
	return bad || simulate(g, p) || overlaps(g, p) || lanes_run(g) || prove_bytes(g) ? -1 : 0;
}
