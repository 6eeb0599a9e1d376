/* The proof that no two values of a rank are in the same bytes at the same time, from its tasks and the offsets alone;
 * the lifetimes of the memory plan are not read.
 *
 * A rank runs its tasks one after the other, so time is the order of its tasks, and inside a block that of its actions.
 * For each value a range of the list of actions is found in which it is in use:
 *   - a value that one block makes and reads: from its first action to its last;
 *   - a value that several blocks touch: if the tasks between its first and its last block are, for every micro-batch,
 *     of blocks that stand between the two in the list, and no two micro-batches meet, again from its first action to
 *     its last; else the whole body, with all its copies;
 *   - what is made before the micro-batches and read by them, or made by them and read after them, or reduced and read
 *     after that: also the whole body;
 *   - the ends of queues, and values kept from step to step: always.
 * Ranges that meet have no byte in common.  The tasks are played to see that a piece is given back before it is made
 * again. */
#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

typedef struct Use {
	const Slot *s;
	int first, last;                /* blocks */
	int from, to;                   /* actions */
	bool wide, always;
	int *block, nblock;             /* all that touch it */
	int open;                       /* micro-batches in use */
	int *left, *micro;              /* by copy: blocks that have yet to run, 0: not in use; for which micro-batch */
} Use;
typedef struct Bytes {
	Graph *g;
	const Plan *p;
	const Role *r;
	Use *use; int nuse;
	int *at, *list;
		                /* by block: the uses that it begins or ends are list[at[b]] .. list[at[b + 1] - 1] */
} Bytes;

static int clash(const Bytes *b, const Slot *x, const Slot *y)
{
	const Node *n = x->v->def ? x->v->def : y->v->def;
	fail_at(EXIT_NOPLAN, n ? n->loc : x->v->loc, "%s and %s share bytes on rank %d while both are in use",
		x->v->name,
		y->v->name, b->r->rank[0]);
	return -1;
}

static bool body(const Plan *p, int block)
{
	return !pipe_once(p->block[block].kind);
}

/* A block of the body, or a reduction between its blocks. */
static bool inside(const Plan *p, int block)
{
	return body(p, block) || p->block[block].kind == BLOCK_REDUCE;
}

/* ---- who touches what ---- */

static void touch(Arena *a, Use *u, int block, int at)
{
	if (!u->nblock || u->block[u->nblock - 1] != block)
		arena_push(a, u->block, u->nblock, block);
	u->first = u->first < 0 ? block : u->first;
	u->from = u->from < 0 ? at : u->from;
	u->last = block;
	u->to = at;
}

static void find_uses(Bytes *b)
{
	const Plan *p = b->p;
	Use *all = arena_array(b->g->scratch, Use, p->nslot + 1);
	const bool *runs = copies_runs(p, b->r, b->g->scratch);
	for (int i = 0; i < p->nslot; i++)
		all[i] = (Use){ .first = -1, .from = -1 };
	for (int i = 0; i < b->r->nstep; i++) {
		const Action *a = &b->r->step[i];
		for (int k = 0; runs[a->block] && k < a->ntake + a->nmake; k++) {
			const Slot *s = k < a->ntake ? a->take[k] : a->make[k - a->ntake];
			if (s)
				touch(b->g->scratch, &all[s->store->v->id], a->block, i);
		}
	}
	for (int i = 0; i < p->nqueue; i++)
		for (int k = 0; k < p->queue[i].n; k++)
			all[p->queue[i].take[k]->store->v->id].always =
				all[p->queue[i].make[k]->store->v->id].always = true;
	for (int i = 0; i < p->nslot; i++) {
		Use u = all[i];
		u.s = p->slot[i];
		if (!u.s || u.s->store != u.s || !u.s->bytes || mesh_index(u.s->v->place->mesh, b->r->rank[0]) < 0)
			continue;
		u.always |= slot_kept(u.s);
		u.left = arena_array(b->g->scratch, int, u.s->copies + 1);
		u.micro = arena_array(b->g->scratch, int, u.s->copies + 1);
		if (u.always || u.first >= 0)
			arena_push(b->g->scratch, b->use, b->nuse, u);
	}
}

static bool across(const Bytes *b, const Use *u)
{
	return !u->always && u->first != u->last && body(b->p, u->first) && body(b->p, u->last);
}

static void index_blocks(Bytes *b)
{
	int n = 0;
	b->at = arena_array(b->g->scratch, int, b->p->nblock + 2);
	for (int i = 0; i <= b->p->nblock; i++) {
		b->at[i] = n;
		for (int k = 0; k < b->nuse && i < b->p->nblock; k++)
			for (int j = 0; j < b->use[k].nblock && across(b, &b->use[k]); j++)
				if (b->use[k].block[j] == i)
					arena_push(b->g->scratch, b->list, n, k);
	}
}

/* ---- the tasks ---- */

/* Pieces that a task touches, before it runs. */
static int begin(const Bytes *b, const Task *t)
{
	for (int i = b->at[t->block]; i < b->at[t->block + 1]; i++) {
		Use *u = &b->use[b->list[i]];
		int k = t->micro % u->s->copies;
		if (u->left[k] && u->micro[k] != t->micro) {
			fail_at(EXIT_NOPLAN, u->s->v->loc,
				"%s of micro-batch %d overwrites that of micro-batch %d, which rank %d "
				"still needs: it has %d cop%s", u->s->v->name, t->micro, u->micro[k], b->r->rank[0],
				u->s->copies, u->s->copies == 1 ? "y" : "ies");
			return -1;
		}
		if (u->left[k])
			continue;
		u->left[k] = u->nblock + 1;
		u->micro[k] = t->micro;
		u->wide |= ++u->open > 1;
	}
	return 0;
}

static void end(const Bytes *b, const Task *t)
{
	for (int i = b->at[t->block]; i < b->at[t->block + 1]; i++) {
		Use *u = &b->use[b->list[i]];
		int k = t->micro % u->s->copies;
		if (--u->left[k] == 1) {
			u->left[k] = 0;
			u->open--;
		}
	}
}

static int play(Bytes *b)
{
	for (int i = 0; i < b->r->ntask; i++) {
		const Task *t = &b->r->task[i];
		if (t->micro >= 0 && begin(b, t))
			return -1;
		for (int k = 0; k < b->nuse; k++)
			b->use[k].wide |= b->use[k].open && (t->block < b->use[k].first || t->block > b->use[k].last);
		if (t->micro >= 0)
			end(b, t);
	}
	return 0;
}

static void find_ranges(const Bytes *b)
{
	int from = b->r->body, to = b->r->after - 1;
	for (int k = 0; k < b->nuse; k++) {
		Use *u = &b->use[k];
		bool in = !u->always && inside(b->p, u->first), out = !u->always && inside(b->p, u->last);
		bool leaves = !u->always && u->first != u->last && !(body(b->p, u->first) && body(b->p, u->last));
		if (u->always) {
			u->from = -1;
			u->to = b->r->nstep;
		} else if (u->wide || leaves) {
			u->from = in && from < u->from ? from : u->from;
			u->to = out && to > u->to ? to : u->to;
		}
	}
}

/* ---- the bytes ---- */

static int by_offset(const void *x, const void *y)
{
	const Use *a = x, *b = y;
	if (a->s->window != b->s->window)
		return a->s->window - b->s->window;
	if (a->s->offset != b->s->offset)
		return a->s->offset < b->s->offset ? -1 : 1;
	return a->s->id - b->s->id;
}

static int compare(Bytes *b)
{
	if (b->nuse)
		qsort(b->use, (size_t)b->nuse, sizeof *b->use, by_offset);
	for (int i = 0; i < b->nuse; i++) {
		const Use *x = &b->use[i];
		for (int k = i + 1; k < b->nuse; k++) {
			const Use *y = &b->use[k];
			if (y->s->window != x->s->window || y->s->offset >= x->s->offset + slot_room(x->s))
				break;
			if (x->from <= y->to && y->from <= x->to)
				return clash(b, x->s, y->s);
		}
	}
	return 0;
}

int prove_bytes(Graph *g)
{
	const Plan *p = g->model->plan;
	for (int i = 0; i < p->nrole; i++) {
		const Role played = tasks_played(p, &p->role[i], g->scratch);
		Bytes b = { .g = g, .p = p, .r = &played };
		find_uses(&b);
		index_blocks(&b);
		if (play(&b))
			return -1;
		find_ranges(&b);
		if (compare(&b))
			return -1;
	}
	return 0;
}
