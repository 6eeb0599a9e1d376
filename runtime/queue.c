/* Queues: pieces of values that one stage of a pipeline sends to another, micro-batch after micro-batch.
 *
 *   sender     F 0 -> piece 0     F 1 -> piece 1     waits for room        F 2 -> piece 2
 *   courier                 take 0             take 1
 *   receiver   waits for piece 0     F 0                 F 1  gives back 0
 *
 * A queue has an end at every rank that sends or receives.  An end counts two things: pieces that the walk has
 * published or given back, and pieces that are complete, because no peer reads them any more or because they have
 * arrived.  A sender may have as many pieces out as it has copies, a receiver takes pieces as long as it has free
 * copies.  The k-th piece that is published is the k-th that is received.
 *
 * One thread advances all ends, that of the lane; without it, the walk does so where it waits and between actions.
 * Only the pieces of a run that has begun are received: before that, another program may use their memory. */
#include "comm.h"
#include "wait.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 1000 };

typedef struct RtQueues {
	RtEnd *end[RT_PROGRAMS];
	int nend[RT_PROGRAMS];
	_Atomic int open;               /* the program whose ends are advanced; RT_PROGRAMS: none */
	_Atomic uint32_t moved, asleep; /* completed pieces of all ends; the walk sleeps until the number changes */
	_Atomic int code;               /* of the first that failed */
	bool threaded;
} RtQueues;

/* ---- pieces ---- */

int64_t rt_micros(const Ctx *c, RtProgramKind kind)
{
	return kind == RT_TRAIN && c->program->microbatches > 1 ? c->program->microbatches : 1;
}

int64_t rt_end_piece(const Ctx *c, const RtEnd *e, uint64_t k)
{
	return (int64_t)(k / (uint64_t)e->per) * rt_micros(c, e->kind) + e->order[k % (uint64_t)e->per];
}

bool rt_end_waits(const RtEnd *e)
{
	uint64_t made = atomic_load(&e->made), done = atomic_load(&e->done);
	if (e->queue->sends)
		return done < made;
	return done < atomic_load(&e->begun) && done - made < (uint64_t)e->queue->copies;
}

/* ---- opening ---- */

static int add_rank(Ctx *c, RtEnd *e, int rank)
{
	for (int i = 0; i < e->npeer; i++)
		if (e->peer[i] == rank)
			return 0;
	int *more = realloc(e->peer, ((size_t)e->npeer + 1) * sizeof *more);
	if (!more)
		return rt_error(c, RT_MEMORY, "no memory for queues");
	e->peer = more;
	e->peer[e->npeer++] = rank;
	return 0;
}

/* Adds a rank that takes something from another, if that is this rank; or what this rank takes from. */
static int add_takers(Ctx *c, RtEnd *e, const RtRoute *r, int taker)
{
	int code = 0;
	for (int i = 0; i < r->nblock && !code; i++) {
		int from = r->block[i].rank;
		if (e->queue->sends && from != c->rank)
			continue;
		int other = e->queue->sends ? taker : from;
		e->self |= other == c->rank;
		if (other != c->rank)
			code = add_rank(c, e, other);
	}
	return code;
}

static int find_peers(Ctx *c, RtEnd *e)
{
	int code = 0;
	for (int i = 0; i < e->queue->n && !code; i++) {
		const RtMove *m = &c->program->move[e->queue->move[i]];
		const Form *to = &c->program->form[m->to - 1];
		if (!e->queue->sends) {
			code = add_takers(c, e, &c->route[e->queue->move[i]], c->rank);
			continue;
		}
		for (int k = 0; k < form_nrank(to) && !code; k++) {
			RtRoute r;
			int taker = form_rank(to, k);
			code = rt_route_open(c, &r, m, taker);
			if (!code)
				code = add_takers(c, e, &r, taker);
			rt_route_close(&r);
		}
	}
	return code;
}

/* The actor that a queue belongs to: that makes its pieces, or that reads them first. */
static int actor_of(const RtSchedule *s, const RtQueue *q)
{
	for (int a = 0; a < s->nactor; a++) {
		const RtActor *x = &s->actor[a];
		const int *list = q->sends ? x->make : x->wait;
		for (int i = 0; i < (q->sends ? x->nmake : x->nwait); i++)
			if (&s->queue[list[i]] == q)
				return a;
	}
	return -1;
}

static int open_end(Ctx *c, const RtSchedule *s, RtEnd *e)
{
	int actor = actor_of(s, e->queue);
	for (int i = 0; i < s->ntask; i++)
		e->per += s->task[i].actor == actor;
	if (!e->per || e->queue->copies < 1)
		return rt_error(c, RT_PLAN, "no task uses the queue %s", e->queue->name);
	e->order = calloc((size_t)e->per, sizeof *e->order);
	e->from = calloc((size_t)e->queue->copies, 2 * sizeof *e->from);
	if (!e->order || !e->from)
		return rt_error(c, RT_MEMORY, "no memory for queues");
	e->to = e->from + e->queue->copies;
	for (int i = 0, k = 0; i < s->ntask; i++)
		if (s->task[i].actor == actor)
			e->order[k++] = e->kind != RT_TRAIN || s->task[i].micro < 0 ? 0 : s->task[i].micro;
	int code = find_peers(c, e);
	return !code && c->comm->end_open ? c->comm->end_open(c, e) : code;
}

/* A rank that is both a sender and a receiver of a queue. */
static void find_other(RtEnd *e, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; e[i].self && k < n; k++)
			if (k != i && e[k].queue->channel == e[i].queue->channel)
				e[i].other = &e[k];
}

/* No two ends of a direction have the same channel: it counts the pieces of one queue. */
static int check_channels(Ctx *c)
{
	const RtRole *r = c->program->role[c->role];
	for (int k = 0; k < RT_PROGRAMS; k++)
		for (int i = 0; r->schedule[k] && i < r->schedule[k]->nqueue; i++)
			for (int l = 0; l <= k; l++)
				for (int j = 0; r->schedule[l] && j < (l < k ? r->schedule[l]->nqueue : i); j++) {
					const RtQueue *a = &r->schedule[k]->queue[i], *b = &r->schedule[l]->queue[j];
					if (a->channel == b->channel && a->sends == b->sends)
						return rt_error(c, RT_PLAN, "queues %s and %s have one channel",
							a->name, b->name);
				}
	return 0;
}

int rt_queues_open(Ctx *c)
{
	const RtRole *r = c->program->role ? c->program->role[c->role] : NULL;
	int all = 0, code = 0;
	for (int k = 0; r && k < RT_PROGRAMS; k++)
		all += r->schedule[k] ? r->schedule[k]->nqueue : 0;
	if (!all)
		return 0;
	if (!c->comm || !c->comm->end_advance || c->device)
		return rt_error(c, RT_PLAN, "this transport has no queues between stages");
	if ((code = check_channels(c)))
		return code;
	RtQueues *q = calloc(1, sizeof *q);
	c->queues = q;
	if (!q)
		return rt_error(c, RT_MEMORY, "no memory for queues");
	atomic_store(&q->open, RT_PROGRAMS);
	for (int k = 0; k < RT_PROGRAMS && !code; k++) {
		const RtSchedule *s = r->schedule[k];
		q->nend[k] = s ? s->nqueue : 0;
		q->end[k] = calloc((size_t)q->nend[k] + 1, sizeof *q->end[k]);
		if (!q->end[k])
			return rt_error(c, RT_MEMORY, "no memory for queues");
		for (int i = 0; i < q->nend[k] && !code; i++) {
			q->end[k][i].queue = &s->queue[i];
			q->end[k][i].kind = (RtProgramKind)k;
			code = open_end(c, s, &q->end[k][i]);
		}
		find_other(q->end[k], q->nend[k]);
	}
	return code;
}

void rt_queues_close(Ctx *c)
{
	RtQueues *q = c->queues;
	c->queues = NULL;
	for (int k = 0; q && k < RT_PROGRAMS; k++) {
		for (int i = 0; q->end[k] && i < q->nend[k]; i++) {
			if (c->comm->end_close)
				c->comm->end_close(c, &q->end[k][i]);
			free(q->end[k][i].peer);
			free(q->end[k][i].order);
			free(q->end[k][i].from);
		}
		free(q->end[k]);
	}
	free(q);
}

/* ---- the courier ---- */

RtEnd *rt_queues_ends(const Ctx *c, int *n)
{
	RtQueues *q = c->queues;
	int kind = q ? atomic_load(&q->open) : RT_PROGRAMS;
	*n = kind < RT_PROGRAMS ? q->nend[kind] : 0;
	return *n ? q->end[kind] : NULL;
}

void rt_queues_fail(Ctx *c, int code)
{
	RtQueues *q = c->queues;
	if (!q)
		return;
	atomic_store(&q->code, code);
	atomic_fetch_add(&q->moved, 1);
	rt_futex(&q->moved, FUTEX_WAKE, INT_MAX);
}

/* Completes the pieces of an end that peers are ready for. */
static int advance(Ctx *c, RtQueues *q, RtEnd *e)
{
	int code = RT_LATER;
	while (rt_end_waits(e)) {
		uint64_t k = atomic_load(&e->done);
		size_t slot = k % (uint64_t)e->queue->copies;
		double from = rt_seconds();
		bool here = !e->other || atomic_load(e->queue->sends ? &e->other->done : &e->other->made) > k;
		int now = here ? c->comm->end_advance(c, e, k) : RT_LATER;
		if (now == RT_LATER)
			break;
		if (now) {
			rt_queues_fail(c, now);
			return now;
		}
		e->from[slot] = from;
		e->to[slot] = rt_seconds();
		atomic_store(&e->done, k + 1);
		atomic_fetch_add(&q->moved, 1);
		if (atomic_load(&q->asleep))
			rt_futex(&q->moved, FUTEX_WAKE, INT_MAX);
		code = 0;
	}
	return code;
}

int rt_queues_poll(Ctx *c)
{
	RtQueues *q = c->queues;
	int n, code = RT_LATER;
	RtEnd *e = rt_queues_ends(c, &n);
	for (int i = 0; i < n; i++) {
		int now = advance(c, q, &e[i]);
		if (now > 0)
			return now;
		code = now ? code : 0;
	}
	return code;
}

bool rt_queues_wait(const Ctx *c)
{
	int n;
	const RtEnd *e = rt_queues_ends(c, &n);
	for (int i = 0; i < n; i++)
		if (rt_end_waits(&e[i]))
			return true;
	return false;
}

void rt_queues_threaded(Ctx *c, bool threaded)
{
	if (c->queues)
		c->queues->threaded = threaded;
}

/* ---- the walk ---- */

/* Sends: there is room for one more piece.  Receives: the next piece has arrived. */
static bool ready(const RtEnd *e)
{
	uint64_t done = atomic_load(&e->done);
	return e->queue->sends ? atomic_load(&e->made) - done < (uint64_t)e->queue->copies : done > e->seen;
}

static bool all_gone(const RtEnd *e)
{
	return atomic_load(&e->done) == atomic_load(&e->made);
}

/* Waits until the condition holds for an end.  The thread of the lane wakes it up; without one, this thread does its
 * work. */
static int until(Ctx *c, RtEnd *e, bool (*holds)(const RtEnd *))
{
	RtQueues *q = c->queues;
	int code = 0;
	if (holds(e))
		return atomic_load(&q->code);
	double since = rt_seconds();
	if (c->comm->waits)
		c->comm->waits(c, e);
	for (int turn = 0; !holds(e) && !(code = atomic_load(&q->code)); turn++) {
		if (!q->threaded) {
			int now = rt_lane_turn(c, turn);
			if (now > 0)
				return now;
			turn = now ? turn : -1;
			continue;
		}
		uint32_t now = atomic_load(&q->moved);
		if (turn < SPINS && c->nthread > 1) {
			rt_breathe();
			continue;
		}
		rt_lane_want(c, true);
		atomic_fetch_add(&q->asleep, 1);
		if (!holds(e) && !atomic_load(&q->code))
			rt_futex(&q->moved, FUTEX_WAIT, now);
		atomic_fetch_sub(&q->asleep, 1);
	}
	rt_lane_want(c, false);
	if (c->comm->waits)
		c->comm->waits(c, NULL);
	if (c->comm->late)
		c->comm->late(c, since);
	if (c->watch && c->watch->waited)
		c->watch->waited(c, e, since);
	return code;
}

static RtEnd *end_of(const Ctx *c, int queue)
{
	return &c->queues->end[c->kind][queue];
}

int rt_queues_before(Ctx *c, const RtActor *a)
{
	int code = 0;
	for (int i = 0; i < a->nwait && !code; i++) {
		RtEnd *e = end_of(c, a->wait[i]);
		code = until(c, e, ready);
		if (!code && c->watch && c->watch->arrived)
			c->watch->arrived(c, e, e->seen);
		e->seen++;
	}
	for (int i = 0; i < a->nmake && !code; i++)
		code = until(c, end_of(c, a->make[i]), ready);
	return code;
}

void rt_queues_after(Ctx *c, const RtActor *a)
{
	for (int i = 0; i < a->nmake; i++) {
		RtEnd *e = end_of(c, a->make[i]);
		atomic_fetch_add(&e->made, 1);
		if (c->comm->end_publish)
			c->comm->end_publish(c, e);
		else
			rt_lane_ring(c);
	}
	for (int i = 0; i < a->ngive; i++) {
		RtEnd *e = end_of(c, a->give[i]);
		bool full = atomic_load(&e->done) - atomic_fetch_add(&e->made, 1) == (uint64_t)e->queue->copies;
		if (full)
			rt_lane_ring(c);
	}
}

/* ---- chains of waits ---- */

int64_t rt_task(const Ctx *c, int actor)
{
	return (int64_t)c->kind << 56 | (int64_t)actor << 32 | c->micro;
}

void rt_queues_warn(const Ctx *c, const RtChain *k)
{
	const RtProgram *p = c->program;
	const RtEnd *e = k->end;
	const RtSchedule *s = p->role[p->role_of ? p->role_of[k->last] : 0]->schedule[k->task >> 56];
	bool trains = e->kind == RT_TRAIN;
	int64_t piece = rt_end_piece(c, e, atomic_load(&e->done)), micro = trains ? piece % rt_micros(c, e->kind)
		: piece - (int64_t)(atomic_load(&e->first) / (uint64_t)e->per);
	const char *of = trains ? "micro-batch" : "batch";
	fprintf(stderr, "rank %d step %lld: %s %s of %s %lld waits %.0f s for rank %d; rank %d %s, in %s of "
		"%s %d\n", c->rank, (long long)k->step, e->queue->sends ? "send" : "receive", e->queue->name,
		of, (long long)micro, k->seconds, k->first, k->last,
		k->circle ? "is in a cycle of waits" : "does not wait",
		s->actor[k->task >> 32 & 0xFFFFFF].name, of, (int)(k->task & 0xFFFFFFFF));
}

/* Waits until all published pieces are gone. */
int rt_queues_drain(Ctx *c)
{
	int n, code = 0;
	RtEnd *e = rt_queues_ends(c, &n);
	for (int i = 0; i < n && !code; i++)
		if (e[i].queue->sends)
			code = until(c, &e[i], all_gone);
	return code;
}

int rt_queues_begin(Ctx *c, RtProgramKind kind, int64_t n)
{
	RtQueues *q = c->queues;
	int code = 0;
	if (!q)
		return 0;
	if (atomic_load(&q->open) != (int)kind) {
		code = rt_queues_drain(c);
		rt_lane_lock(c);        /* the other thread has left the ends of the last program */
		atomic_store(&q->open, (int)kind);
		rt_lane_unlock(c);
	}
	for (int i = 0; i < q->nend[kind]; i++) {
		RtEnd *e = &q->end[kind][i];
		atomic_store(&e->first, (uint64_t)c->runs[kind] * (uint64_t)e->per);
		atomic_store(&e->begun, (uint64_t)(c->runs[kind] + n) * (uint64_t)e->per);
	}
	rt_lane_ring(c);
	return code;
}
