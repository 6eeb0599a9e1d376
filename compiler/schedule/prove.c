/* Proves the plan before any file is written; a plan that fails is our mistake or the model's, and is refused either way.
 *
 * 1. Every node runs by a legal signature, and every transfer leads from the SBP of its operand to that of its result.
 * 2. The lists of actions, played on all ranks at once, come to their end: whenever a rank waits at a transfer, all ranks that take
 *    part reach the same transfer of the same size.  Lists are deterministic, so one play decides for all interleavings.
 *    A transfer with two ends takes its place in this play at its start: ranks do their transfers in the order of starts, a start waits for
 *    nobody, and a finish waits for those before it in this order only.  Every start has one finish, later, in the same stretch.
 * 3. No value is read before it is made, or after its memory was given to another; of a transfer, none is read before its finish, and until
 *    then its operands are not written; nothing that lives at the same time on the same rank overlaps; everything lies inside its area.
 * 4. A value in the memory of another has its bytes and its form, and an action that makes a value on an operand of its own is one whose
 *    kernel may: it is done with an element, or with a row, when it writes there. */
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
		err_at(n->loc, "%s does not lead from %s to %s; that is %s", attr_str(n, "how"), sbp_text(n->in[0]->sbp, n->in[0]->place->mesh->ndim),
		       sbp_text(n->out[0]->sbp, n->out[0]->place->mesh->ndim), how);
		return -1;
	}
	if (signatures_legal(n, m, g->scratch))
		return 0;
	err_at(n->loc, "%s has no signature for these operands and results", n->op);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			note_at(operand_loc(n, i), "%s is %s", n->in[i]->name, sbp_text(n->in[i]->sbp, n->in[i]->place->mesh->ndim));
	return -1;
}

/* Between GPUs there are fewer transfers than between processes. */
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
		fail_at(EXIT_NOPLAN, n->loc, "%s cannot go from %s to %s between GPUs yet: the transfers there are sums of float "
		        "over all ranks, and gathers of what is cut along its first axis", x->name,
		        sbp_text(x->sbp, x->place->mesh->ndim), sbp_text(y->sbp, y->place->mesh->ndim));
	}
	return reported ? -1 : 0;
}

/* ---- transfers ---- */

static int mismatch(const Action *a, int ra, const Action *b, int rb)
{
	fail_at(EXIT_NOPLAN, a->n->loc, "rank %d waits at action %d, a transfer of %s, while rank %d is at action %d%s", ra, a->id, a->take[0]->v->name, rb,
	        b ? b->id : -1, b ? ", another one" : ", the end");
	return -1;
}

/* Whether ranks of a role take part in a transfer; they are all of the same meshes. */
static bool takes_part(const Role *r, const Action *a)
{
	const Node *n = a->n;
	for (int i = 0; i < 2; i++) {
		const Mesh *m = i ? n->out[0]->place->mesh : n->in[0]->place->mesh;
		if (mesh_index(m, r->rank[0]) >= 0)
			return true;
	}
	return false;
}

/* The next transfer that a role takes part in, at or after its place in its list; NULL: there is none. */
static const Action *next_transfer(const Role *r, int *i)
{
	while (*i < r->nstep && ((r->step[*i].kind != ACT_COLLECTIVE && r->step[*i].kind != ACT_START) || !takes_part(r, &r->step[*i])))
		(*i)++;
	return *i < r->nstep ? &r->step[*i] : NULL;
}

static bool one_transfer(const Action *a, const Action *b)
{
	if (!b || a->n != b->n || strcmp(a->how, b->how) || a->nmake != b->nmake || a->ntake != b->ntake)
		return false;
	for (int i = 0; i < a->nmake; i++)
		if (a->take[i] != b->take[i] || a->make[i] != b->make[i])
			return false;
	return true;
}

/* A transfer is done when all roles that take part in it have come to it.  Waiting for all of them is more than ranks do, who wait for
 * their own group, so lists that come to their end here do so there.  Ranks of one role have one list, so one speaks for all. */
static int play(Graph *g, const Plan *p)
{
	int *at = arena_array(g->scratch, int, p->nrole);
	for (bool moved = true; moved;) {
		const Action *late = NULL, *other = NULL;
		int who = 0, whom = 0;
		moved = false;
		for (int k = 0; k < p->nrole && !moved; k++) {
			const Action *a = next_transfer(&p->role[k], &at[k]);
			int j = 0;
			while (a && j < p->nrole && (!takes_part(&p->role[j], a) || one_transfer(a, next_transfer(&p->role[j], &at[j]))))
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
			for (j = 0; j < p->nrole && moved; j++)
				at[j] += takes_part(&p->role[j], a);
		}
		if (!moved && late)
			return mismatch(late, who, other, whom);
	}
	return 0;
}

/* The number of the stretch of a list that an action is in. */
static int stretch(const Role *r, int i)
{
	return (i >= r->body) + (i >= r->after);
}

/* Starts and finishes of a list belong to each other. */
static void check_ends(const Role *r)
{
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i], *b;
		if (a->kind != ACT_START && a->kind != ACT_FINISH)
			continue;
		if (a->other < 0 || a->other >= r->nstep || a->id != i)
			die("action %d, an end of a transfer, has no other", i);
		b = &r->step[a->other];
		if (b->other != i || b->kind == a->kind || (a->kind == ACT_START) != (i < a->other) || !one_transfer(a, b) || stretch(r, i) != stretch(r, a->other))
			die("actions %d and %d are not the ends of one transfer", i, a->other);
	}
}

/* ---- memory ---- */

/* Plays one role's list over its slots: what each memory holds at any time. */
static int play_slots(Graph *g, const Plan *p, const Role *r)
{
	const Slot **holds = arena_array(g->scratch, const Slot *, p->nslot + 1);      /* by id of the store */
	const Slot **moves = arena_array(g->scratch, const Slot *, p->nslot + 1);      /* what is on its way there */
	for (int i = 0; i < p->nslot; i++)
		if (p->slot[i] && !p->slot[i]->view && slot_kept(p->slot[i]))
			holds[p->slot[i]->store->v->id] = p->slot[i];
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		for (int k = 0; k < a->ntake; k++) {
			const Slot *s = a->take[k] ? slot_value(a->take[k]) : NULL;
			if (s && a->kind == ACT_FINISH && holds[s->store->v->id] == NULL && moves[s->store->v->id] == a->make[k])
				continue;               /* the result lies on it */
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

/* A value that lives in the memory of another fills it, as that does. */
static int fills(const Plan *p, const Value *v)
{
	const Slot *s = slot_of(p, v), *old = s && v->into ? slot_of(p, v->into) : NULL;
	if (s && slot_of(p, s->store->v) != s->store)
		die("%s lives in %s, which has no memory", v->name, s->store->v->name);
	if (s && s->bytes > s->store->bytes) {
		err_at(v->loc, "%s has %lld bytes, but lives in %s, which has %lld", v->name, (long long)s->bytes, s->store->v->name, (long long)s->store->bytes);
		return -1;
	}
	if (!old || (old->bytes == s->bytes && old->store == s->store && old->v->type->elem == v->type->elem && slot_alike(p, s, old)))
		return 0;
	err_at(v->loc, "%s lives in %s by @into, but is %s in %lld bytes where that is %s in %lld", v->name, v->into->name, type_text(v->type), (long long)s->bytes,
	       type_text(v->into->type), (long long)old->bytes);
	return -1;
}

/* May result m of an action lie on its operand k? */
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
		return k >= a->host->nin;       /* what the loop reads after the kernel is done with an element */
	return a->elementwise || (kernel && kernel->c & KERNEL_STATE && m > 0 && k == m + 2);
}

static int lies_on(const Plan *p, const Role *r)
{
	for (int i = 0; i < r->nstep; i++) {
		const Action *a = &r->step[i];
		for (int m = 0; m < a->nmake && a->n; m++)
			for (int k = 0; k < a->ntake; k++)
				if (a->make[m] && a->take[k] && a->make[m]->store == a->take[k]->store && !may_lie_on(p, a, m, k)) {
					err_at(a->n->loc, "%s cannot make %s in the memory of %s, which it reads meanwhile", a->n->op, a->make[m]->v->name, a->take[k]->v->name);
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
		if (a->offset < 0 || a->offset + a->bytes > (a->window ? p->layout.window : p->layout.slab))
			die("%s lies outside its area", a->v->name);
		for (int k = i + 1; k < n && list[k]->window == a->window && list[k]->offset < a->offset + a->bytes; k++)
			if (list[k]->first <= a->last && a->first <= list[k]->last && !places_apart(list[k]->v->place, a->v->place))
				die("%s and %s overlap while both live", a->v->name, list[k]->v->name);
	}
	return 0;
}

/* Packed weights are written in any program's own time: nothing of it lies there, nor does another. */
static void packed_apart(const Plan *p)
{
	for (int i = 0; i < p->npacked; i++) {
		const Packed *w = &p->packed[i];
		int64_t end = w->offset + w->bytes;
		if (end > (i + 1 < p->npacked ? p->packed[i + 1].offset : p->layout.slab))
			die("the packed form of %s has no room", w->w->v->name);
		for (int k = 0; k < p->nslot; k++)
			if (p->slot[k] && !p->slot[k]->window && p->slot[k]->offset < end && p->slot[k]->offset + p->slot[k]->bytes > w->offset)
				die("%s lies where %s is packed", p->slot[k]->v->name, w->w->v->name);
	}
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
		if (v->into && slot_of(p, v) && (v->place->mesh != v->into->place->mesh || !sbp_equal(v->sbp, v->into->sbp, v->place->mesh->ndim))) {
			err_at(v->loc, "%s lives in %s, but is %s where that is %s", v->name, v->into->name, sbp_text(v->sbp, v->place->mesh->ndim),
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
		bad |= play_slots(g, p, &p->role[i]);
	packed_apart(p);
	return bad || play(g, p) || overlaps(g, p) ? -1 : 0;
}
