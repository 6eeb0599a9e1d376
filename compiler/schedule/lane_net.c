/* The tasks of all roles as programs of lanes, as they are emitted: from blocks, tasks, queues and copies alone.  The
 * proof walks them, the simulator plays them, the report draws them.
 *
 *   compute     the tasks of a role, in order
 *   registers   values of a block that later blocks of the role read: one for each pair of blocks, with the fewest
 *               copies that any of its values has; and the ends of queues
 *   channels    one for each queue and pair of roles that it joins; each end is a lane of its own
 *   meetings    transfers inside blocks
 *
 * Offsets are not those of the memory plan, which prove.c checks by itself: registers lie one after the other. */
#include "schedule/schedule.h"

#include <math.h>

typedef struct Net {
	Graph *g;
	const Plan *p;
	Arena *a;
	LaneNet *net;
	const Touch *touch;
	bool *queued;                   /* by value: the result of a queue */
	int *at;                        /* by block of the plan: its index among those of the current role; -1: none */
} Net;

static LaneBlock *block_of(const Net *k, LaneRole *r, int block)
{
	return k->at[block] < 0 ? NULL : &r->block[k->at[block]];
}

static int add_reg(const Net *k, LaneRole *r, const char *name, int copies, int64_t bytes)
{
	int64_t at = r->nreg ? r->reg[r->nreg - 1].offset + r->reg[r->nreg - 1].copies * r->reg[r->nreg - 1].bytes : 0;
	arena_push(k->a, r->reg, r->nreg, ((LaneRegister){ .name = name, .copies = copies, .bytes = bytes,
		.offset = memplan_aligned(at) }));
	return r->nreg - 1;
}

static void push(const Net *k, int **list, int *n, int reg)
{
	for (int i = 0; i < *n; i++)
		if ((*list)[i] == reg)
			return;
	arena_push(k->a, *list, *n, reg);
}

/* ---- blocks ---- */

static void add_meets(const Net *k, const Role *role, LaneBlock *b, const Block *from)
{
	for (int i = from->from; i < from->to; i++) {
		const Action *a = &role->step[i];
		if ((a->kind != ACT_COLLECTIVE && a->kind != ACT_START) || !channel_joins(a, role->rank[0]))
			continue;
		push(k, &b->meet, &b->nmeet, i);
	}
}

static void add_blocks(Net *k, const Role *role, LaneRole *r)
{
	Lane compute = { .kind = LANE_COMPUTE };
	for (int i = 0; i < k->p->nblock; i++)
		k->at[i] = -1;
	for (int i = 0; i < role->ntask; i++) {
		const Task *t = &role->task[i];
		const Block *b = &k->p->block[t->block];
		if (k->at[t->block] < 0) {
			k->at[t->block] = r->nblock;
			arena_push(k->a, r->block, r->nblock, ((LaneBlock){ .name = b->name, .kind = b->kind,
				.stage = b->stage, .seconds = times_block(k->p, b, role->rank[0]) }));
			add_meets(k, role, &r->block[r->nblock - 1], b);
		}
		arena_push(k->a, compute.task, compute.ntask, ((LaneTask){ DO_BLOCK, k->at[t->block], t->micro }));
	}
	arena_push(k->a, r->lane, r->nlane, compute);
}

/* Meetings are the transfers of the list; a role takes part if it has one in a block. */
static void number_meets(const Net *k)
{
	int n = 0, *number = arena_array(k->a, int, k->p->role[0].nstep + 1);
	for (int i = 0; i < k->net->nrole; i++)
		for (int b = 0; b < k->net->role[i].nblock; b++) {
			LaneBlock *x = &k->net->role[i].block[b];
			for (int m = 0; m < x->nmeet; m++) {
				const Action *a = &k->p->role[0].step[x->meet[m]];
				if (!number[x->meet[m]]) {
					number[x->meet[m]] = ++n;
					arena_push(k->a, k->net->meet, k->net->nmeet,
						((LaneMeet){ .name = a->take[0]->v->name }));
				}
				x->meet[m] = number[x->meet[m]] - 1;
				LaneMeet *meet = &k->net->meet[x->meet[m]];
				push(k, &meet->role, &meet->nrole, i);
			}
		}
}

/* ---- registers ---- */

typedef struct Kept { int made, last, copies; int64_t bytes; } Kept;

static bool here(const Slot *s, const Role *role)
{
	return mesh_index(s->v->place->mesh, role->rank[0]) >= 0;
}

static void add_kept(const Net *k, const Role *role, LaneRole *r)
{
	Kept *list = NULL;
	int n = 0;
	for (int i = 0; i < k->p->nslot; i++) {
		const Slot *s = k->p->slot[i];
		const Touch *t = &k->touch[i];
		if (!s || s->store != s || slot_kept(s) || k->queued[i] || t->made < 0 || t->n < 2 || !here(s, role))
			continue;
		int m = 0, last = t->block[t->n - 1];
		bool one = true;
		for (int j = 0; j < t->n; j++)
			one &= k->p->block[t->block[j]].stage == k->p->block[t->made].stage;
		if (!one)
			continue;               /* of several stages: the order of its readers may differ;
				prove_bytes.c */
		while (m < n && (list[m].made != t->made || list[m].last != last))
			m++;
		if (m == n)
			arena_push(k->a, list, n, ((Kept){ t->made, last, s->copies, 0 }));
		list[m].copies = s->copies < list[m].copies ? s->copies : list[m].copies;
		list[m].bytes += memplan_aligned(s->bytes);
	}
	for (int m = 0; m < n; m++) {
		const Block *x = &k->p->block[list[m].made], *y = &k->p->block[list[m].last];
		if (pipe_once(x->kind) || pipe_once(y->kind))
			continue;               /* one for the whole step: order is enough */
		int reg = add_reg(k, r, arena_printf(k->a, "%s to %s", x->name, y->name), list[m].copies,
			list[m].bytes);
		LaneBlock *make = block_of(k, r, list[m].made), *read = block_of(k, r, list[m].last);
		push(k, &make->make, &make->nmake, reg);
		push(k, &read->wait, &read->nwait, reg);
		push(k, &read->give, &read->ngive, reg);
	}
}

/* ---- queues ---- */

static void add_end(const Net *k, LaneRole *r, int channel, LaneDo act, int block)
{
	Lane l = { .kind = act == DO_SEND ? LANE_SEND : LANE_RECEIVE };
	for (int i = 0; i < r->lane[0].ntask; i++)
		if (r->lane[0].task[i].id == block)
			arena_push(k->a, l.task, l.ntask, ((LaneTask){ act, channel, r->lane[0].task[i].micro }));
	arena_push(k->a, r->lane, r->nlane, l);
}

/* The index of a block among those of a role; -1: it does not run it. */
static int index_of(const LaneRole *r, const Block *b)
{
	for (int i = 0; i < r->nblock; i++)
		if (r->block[i].kind == b->kind && r->block[i].stage == b->stage)
			return i;
	return -1;
}

static void add_queue(const Net *k, const Queue *q, int from, int to)
{
	LaneRole *a = &k->net->role[from], *b = &k->net->role[to];
	int make = index_of(a, &k->p->block[q->from]), wait = index_of(b, &k->p->block[q->to]),
		give = index_of(b, &k->p->block[q->last]);
	int64_t bytes = 0;
	double seconds = 0;
	for (int i = 0; i < q->n; i++) {
		bytes += q->make[i]->bytes;
		seconds += transfer_seconds(slot_form(k->p, q->take[i]), slot_form(k->p, q->make[i]),
			dtype_bits(q->take[i]->v->type->elem) / 8);
	}
	if (make < 0 || wait < 0 || give < 0)
		die("queue %s joins blocks that nobody runs", q->name);
	int out = add_reg(k, a, q->name, q->out, bytes), in = add_reg(k, b, q->name, q->in, bytes);
	push(k, &a->block[make].make, &a->block[make].nmake, out);
	push(k, &b->block[wait].wait, &b->block[wait].nwait, in);
	push(k, &b->block[give].give, &b->block[give].ngive, in);
	int c = k->net->nchannel;
	arena_push(k->a, k->net->channel, k->net->nchannel, ((LaneChannel){ .name = q->name, .from = from,
		.from_reg = out, .to = to, .to_reg = in, .link = k->net->nlink++, .latency = seconds,
			.bytes = bytes }));
	add_end(k, a, c, DO_SEND, make);
	add_end(k, b, c, DO_RECEIVE, wait);
}

void lane_net_of(Graph *g, Arena *a, LaneNet *net)
{
	const Plan *p = g->model->plan;
	*net = (LaneNet){ .role = arena_array(a, LaneRole, p->nrole), .nrole = p->nrole };
	Net k = { .g = g, .p = p, .a = a, .net = net, .at = arena_array(a, int, p->nblock + 1),
		.queued = arena_array(a, bool, p->nslot + 1) };
	for (int i = 0; i < p->nqueue; i++)
		for (int m = 0; m < p->queue[i].n; m++)
			k.queued[p->queue[i].make[m]->store->v->id] = true;
	for (int i = 0; i < p->nrole; i++) {
		const Role played = tasks_played(p, &p->role[i], a);
		net->role[i].name = arena_printf(a, "rank %d", p->role[i].rank[0]);
		add_blocks(&k, &played, &net->role[i]);
		k.touch = copies_touched(p, &played, a);
		add_kept(&k, &played, &net->role[i]);
	}
	number_meets(&k);
	for (int i = 0; i < p->nqueue; i++)
		for (int x = 0; x < p->nrole; x++)
			for (int y = 0; y < p->nrole && here(p->queue[i].take[0], &p->role[x]); y++)
				if (here(p->queue[i].make[0], &p->role[y]))
					add_queue(&k, &p->queue[i], x, y);
}

double lane_net_period(Graph *g)
{
	Arena a = { 0 };
	LaneNet net;
	LanePlay play;
	lane_net_of(g, &a, &net);
	double seconds = play_net(&net, 4, true, &a, &play) ? play.period : INFINITY;
	arena_free(&a);
	return seconds;
}
