/* Plays a net with seconds, by events: the end of a task, the end of a segment of a block before a meeting, the arrival
 * of a message.  At each event the lanes that it wakes are looked at, and what can start does.  Events of one time
 * are taken in the order in which they were made, so the same net gives the same timeline.
 *
 *   block      its seconds; its meetings cut it into equal segments
 *   transfer   waits for its link; the link is taken for `busy` seconds, and `latency` seconds later the message is
 *              there.  Rendezvous: both ends last until then.  Buffered: the send ends when the link is free again,
 *              the receive when the message is there.
 *
 * A piece is in use from the start of the task that makes it until the last lane that reads it gives it back. */
#include "lanes/walk.h"

#include <math.h>

typedef struct Event { double at; int64_t turn; int lane, arrives; } Event;     /* arrives: a channel, or -1 */
typedef struct Player {
	Walk w;
	Event *heap; int nheap;
	int64_t turn;
	double now, *link;              /* link: free from then on */
	int64_t *use;                   /* by role: bytes in use */
	double *last;                   /* [step][role]: the end of its last block */
	double *first;                  /* by role: the start of its first block; negative: none */
	int *open;                      /* by register: lanes that have not given piece k back, k % copies */
	int *open0;                     /* by register: where its pieces begin in open */
	int *early;                     /* by role: lanes in the first step */
	LaneEvent later;                /* of tasks of other steps */
	LanePlay *play;
} Player;

/* ---- the queue of events ---- */

static bool earlier(const Event *a, const Event *b)
{
	return a->at < b->at || (a->at == b->at && a->turn < b->turn);
}

static void push(Player *p, double at, int lane, int arrives)
{
	Event e = { at, p->turn++, lane, arrives };
	arena_push(p->w.arena, p->heap, p->nheap, e);
	int i = p->nheap - 1;
	for (; i && earlier(&e, &p->heap[(i - 1) / 2]); i = (i - 1) / 2)
		p->heap[i] = p->heap[(i - 1) / 2];
	p->heap[i] = e;
}

static Event pop(Player *p)
{
	Event top = p->heap[0], e = p->heap[--p->nheap];
	int i = 0;
	for (int k; (k = 2 * i + 1) < p->nheap; i = k) {
		k += k + 1 < p->nheap && earlier(&p->heap[k + 1], &p->heap[k]);
		if (earlier(&e, &p->heap[k]))
			break;
		p->heap[i] = p->heap[k];
	}
	p->heap[i] = e;
	return top;
}

/* ---- bytes in use ---- */

static void uses(Player *p, int role, int64_t bytes)
{
	LanePlay *y = p->play;
	int64_t now = p->use[role] += bytes;
	y->peak[role] = now > y->peak[role] ? now : y->peak[role];
	if (!bytes || !p->early[role])
		return;
	if (y->nuse[role] && y->use[role][y->nuse[role] - 1].at == p->now)
		y->use[role][y->nuse[role] - 1].bytes = now;
	else
		arena_push(p->w.arena, y->use[role], y->nuse[role], ((LaneUse){ p->now, now }));
}

static void take(Player *p, const WalkActor *a)
{
	for (int i = 0; i < a->nmake; i++) {
		const WalkReg *r = &p->w.reg[a->make[i]];
		p->open[p->open0[a->make[i]] + r->made % r->r->copies] = r->nuse;
		uses(p, r->role, r->r->bytes);
	}
	if (a->act == DO_BLOCK)
		uses(p, a->role, a->block->scratch);
}

static void give(Player *p, const WalkActor *a)
{
	for (int i = 0; i < a->ngive; i++) {
		const WalkUse *u = &p->w.use[a->give[i]];
		const WalkReg *r = &p->w.reg[u->reg];
		if (!--p->open[p->open0[u->reg] + u->given % r->r->copies])
			uses(p, r->role, -r->r->bytes);
	}
	if (a->act == DO_BLOCK)
		uses(p, a->role, -a->block->scratch);
}

/* ---- tasks ---- */

static LaneEvent *event_of(Player *p, int lane)
{
	const WalkLane *l = &p->w.lane[lane];
	return l->step ? &p->later : &p->play->event[lane][l->pos];
}

static void begin(Player *p, int lane)
{
	const WalkActor *a = walk_actor(&p->w, lane);
	event_of(p, lane)->start = p->now;
	take(p, a);
	if (a->act == DO_BLOCK && p->first[a->role] < 0)
		p->first[a->role] = p->now;
}

static void transfer(Player *p, int lane, int other, const WalkActor *a)
{
	const LaneChannel *c = &p->w.net->channel[a->channel];
	if (p->w.buffered && a->act == DO_RECEIVE) {
		push(p, p->now, lane, -1);
		return;
	}
	double leave = p->link[c->link] > p->now ? p->link[c->link] : p->now, there = leave + c->busy + c->latency;
	p->link[c->link] = leave + c->busy;
	if (p->w.buffered) {
		push(p, leave + c->busy, lane, -1);
		push(p, there, lane, a->channel);
		return;
	}
	begin(p, other);
	push(p, there, lane, -1);
	push(p, there, other, -1);
}

/* Starts the next task of a lane, if it can start. */
static void look(Player *p, int lane)
{
	WalkLack lack;
	if (p->w.lane[lane].state != WALK_IDLE || walk_done(&p->w, lane))
		return;
	const WalkActor *a = walk_actor(&p->w, lane);
	if (walk_lacks(&p->w, lane, &lack)) {
		LaneEvent *e = event_of(p, lane);
		e->wait = lack.wait;
		e->what = lack.wait == WAIT_PEER ? lack.what : lack.what - p->w.reg0[a->role];
		return;
	}
	int other = walk_start(&p->w, lane);
	begin(p, lane);
	if (a->act == DO_BLOCK)
		push(p, p->now + a->block->seconds / (a->block->nmeet + 1), lane, -1);
	else
		transfer(p, lane, other, a);
}

static void end(Player *p, int lane)
{
	const WalkLane *l = &p->w.lane[lane];
	const WalkActor *a = walk_actor(&p->w, lane);
	int step = l->step;
	event_of(p, lane)->end = p->now;
	give(p, a);
	if (a->act == DO_BLOCK) {
		p->last[step * p->w.net->nrole + a->role] = p->now;
		p->play->busy[a->role] += step ? 0 : a->block->seconds;
	}
	walk_end(&p->w, lane);
	p->early[l->role] -= step < l->step && !step;
	if (!walk_done(&p->w, lane))
		event_of(p, lane)->ready = p->now;
}

/* A segment of a block has ended: goes on to its next meeting, or to its end. */
static void segment_over(Player *p, int lane)
{
	const LaneBlock *b = walk_actor(&p->w, lane)->block;
	if (!b || p->w.lane[lane].met == b->nmeet) {
		end(p, lane);
		return;
	}
	const WalkMeet *m = &p->w.meet[b->meet[p->w.lane[lane].met]];
	if (!walk_meet(&p->w, lane))
		return;
	for (int i = 0; i < p->w.net->meet[m - p->w.meet].nrole; i++) {
		const LaneBlock *x = walk_actor(&p->w, m->lane[i])->block;
		push(p, p->now + x->seconds / (x->nmeet + 1), m->lane[i], -1);
	}
}

/* ---- results ---- */

static double latest(const Player *p, int step)
{
	double most = 0;
	for (int r = 0; r < p->w.net->nrole; r++)
		most = fmax(most, p->last[step * p->w.net->nrole + r]);
	return most;
}

static void sum_up(Player *p, int steps)
{
	LanePlay *y = p->play;
	y->makespan = latest(p, 0);
	for (int r = 0; r < p->w.net->nrole; r++)
		if (p->first[r] >= 0)
			y->span = fmax(y->span, p->last[r] - p->first[r]);
	int from = (steps - 1) / 2;
	if (steps > 1)
		y->period = (latest(p, steps - 1) - latest(p, from)) / (steps - 1 - from);
}

static void player_begin(Player *p, int steps, Arena *a, LanePlay *y)
{
	const LaneNet *n = p->w.net;
	*y = (LanePlay){ .event = arena_array(a, LaneEvent *, p->w.nlane + 1) };
	y->busy = arena_array(a, double, n->nrole + 1);
	y->use = arena_array(a, LaneUse *, n->nrole + 1);
	y->nuse = arena_array(a, int, n->nrole + 1);
	y->peak = arena_array(a, int64_t, n->nrole + 1);
	for (int l = 0; l < p->w.nlane; l++)
		y->event[l] = arena_array(a, LaneEvent, p->w.lane[l].lane->ntask + 1);
	p->link = arena_array(a, double, n->nlink + 1);
	p->use = arena_array(a, int64_t, n->nrole + 1);
	p->first = arena_array(a, double, n->nrole + 1);
	p->early = arena_array(a, int, n->nrole + 1);
	p->last = arena_array(a, double, (size_t)n->nrole * (size_t)steps + 1);
	p->open0 = arena_array(a, int, p->w.nreg + 1);
	int pieces = 0;
	for (int i = 0; i < p->w.nreg; i++) {
		p->open0[i] = pieces;
		pieces += p->w.reg[i].r->copies;
	}
	p->open = arena_array(a, int, pieces + 1);
	for (int r = 0; r < n->nrole; r++) {
		p->first[r] = -1;
		p->early[r] = n->role[r].nlane;
		uses(p, r, n->role[r].fixed);
	}
	for (int i = 0; i < p->w.nreg; i++)
		for (int k = 0; k < p->w.reg[i].r->first; k++) {
			p->open[p->open0[i] + k] = p->w.reg[i].nuse;
			uses(p, p->w.reg[i].role, p->w.reg[i].r->bytes);
		}
}

bool play_net(const LaneNet *net, int steps, bool buffered, Arena *a, LanePlay *play)
{
	Player p = { .play = play };
	const char *why = walk_begin(&p.w, net, steps, buffered, a);
	if (why)
		die("%s", why);
	player_begin(&p, steps, a, play);
	for (;;) {
		for (int lane; (lane = walk_next(&p.w)) >= 0;)
			look(&p, lane);
		if (!p.nheap)
			break;
		Event e = pop(&p);
		p.now = e.at;
		if (e.arrives >= 0) {
			p.w.arrived[e.arrives]++;
			walk_wake(&p.w, walk_other(&p.w, e.arrives, DO_RECEIVE));
		} else {
			segment_over(&p, e.lane);
		}
	}
	bool whole = true;
	for (int l = 0; l < p.w.nlane; l++)
		whole = whole && walk_done(&p.w, l);
	sum_up(&p, steps);
	return whole;
}
