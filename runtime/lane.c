/* The lane: transfers in flight while the walk continues.
 *
 *   walk     compute  start 0  compute  start 1  compute   finish 0   compute  finish 1
 *   lane              |------- 0 ------|         |-- 1 --|
 *
 * A bucket of transfers is started when its operands are ready, and finished before an action reads its results or
 * overwrites its operands.  A rank starts the buckets that it takes part in, of all channels, in the order of one
 * list, which the compiler has made for all ranks, and its lane processes them in this order.  So there is no
 * deadlock: consider the first bucket of that list that any rank waits in; all ranks that take part in it have started
 * it, or have nothing before it to wait for.
 *
 * A separate thread, the courier, does the work, and that of the ends of queues (queue.c).  It waits for nothing in
 * particular: it tries the first bucket and all ends in turn, and sleeps when none can advance, until a peer or the
 * walk rings its bell.  Without a thread, the walk polls after every action, and does the same where it waits. */
#include "comm.h"
#include "wait.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLIGHT = 8, SPINS = 2000, STACK = 256 << 10 };

typedef struct RtLane {
	RtJob job[FLIGHT];              /* bucket k is in k % FLIGHT, until FLIGHT more have been started */
	_Atomic uint32_t started, done;
	_Atomic uint32_t asleep;        /* threads that sleep until one of the two changes */
	_Atomic bool wanted;            /* the walk waits */
	_Atomic int code;               /* of the first that failed */
	bool threaded;
	_Atomic bool stop, busy;        /* busy: the thread, or the walk instead, is at work */
	pthread_t thread;
	Ctx own;                        /* of the thread */
	void *room;
} RtLane;

/* Waits until a counter is no longer old; the thread of the lane does not spin, because the walk needs its
 * processor. */
static void wait_change(RtLane *l, _Atomic uint32_t *at, uint32_t old, int spins)
{
	for (int i = 0; i < spins; i++) {
		if (atomic_load(at) != old)
			return;
		rt_breathe();
	}
	atomic_fetch_add(&l->asleep, 1);
	if (atomic_load(at) == old && !atomic_load(&l->stop) && !atomic_load(&l->code))
		rt_futex(at, FUTEX_WAIT, old);
	atomic_fetch_sub(&l->asleep, 1);
}

static void changed(RtLane *l, _Atomic uint32_t *at)
{
	if (atomic_load(&l->asleep))
		rt_futex(at, FUTEX_WAKE, INT_MAX);
}

/* Advances the first bucket as far as peers are ready: 0 when this rank has completed it. */
static int advance(Ctx *c, RtLane *l, bool wait)
{
	uint32_t k = atomic_load(&l->done);
	RtJob *j = &l->job[k % FLIGHT];
	if (j->from <= 0)
		j->from = rt_seconds();
	int code = c->comm->advance(c, j, wait);
	if (code == RT_LATER)
		return code;
	j->to = rt_seconds();
	if (code)
		atomic_store(&l->code, code);
	else
		atomic_store(&l->done, k + 1);
	changed(l, &l->done);
	return code;
}

/* Everything in flight, once: 0 if something advanced, RT_LATER, or an exit status. */
static int pass(Ctx *c, RtLane *l)
{
	int code = RT_LATER;
	if (l && atomic_load(&l->started) != atomic_load(&l->done))
		code = advance(c, l, false);
	int now = code > 0 || !c->queues ? RT_LATER : rt_queues_poll(c);
	return code > 0 ? code : now == RT_LATER ? code : now;
}

static void *drive(void *arg)
{
	RtLane *l = arg;
	Ctx *c = &l->own;
	rt_touch_stack();
	for (int turn = 0;; turn++) {
		uint32_t rung = atomic_load(&c->comm->bell->rings);
		if (atomic_load(&l->stop))
			return NULL;
		bool any = atomic_load(&l->started) != atomic_load(&l->done);
		const RtJob *j = &l->job[atomic_load(&l->done) % FLIGHT];
		if (any) {                      /* for messages */
			c->step = j->step;
			c->at = j->at;
			c->id = j->id;
			c->values = j->values;
		}
		rt_lane_lock(c);
		int code = pass(c, l), n = 0;
		rt_queues_ends(c, &n);
		rt_lane_unlock(c);
		turn = code ? turn : -1;
		if (code == RT_LATER)
			code = c->comm->rest(c, rung, (any ? RT_FOR_JOB : 0) | (n ? RT_FOR_QUEUE : 0), turn);
		if (code > 0) {
			atomic_store(&l->code, code);
			changed(l, &l->done);
			rt_queues_fail(c, code);
			return NULL;
		}
	}
}

bool rt_lane_threaded(const Ctx *c)
{
	return c->lane && c->lane->threaded;
}

void rt_lane_want(Ctx *c, bool wants)
{
	if (c->lane)
		atomic_store(&c->lane->wanted, wants);
}

void rt_lane_ring(Ctx *c)
{
	if (rt_lane_threaded(c))
		rt_ring(c->comm->bell, ~0u);
}

void rt_lane_lock(Ctx *c)
{
	while (rt_lane_threaded(c) && atomic_exchange(&c->lane->busy, true))
		sched_yield();
}

void rt_lane_unlock(Ctx *c)
{
	if (c->lane)
		atomic_store(&c->lane->busy, false);
}

int rt_lane_turn(Ctx *c, int turn)
{
	uint32_t rung = atomic_load(&c->comm->bell->rings);
	int code = pass(c, c->lane), failed = 0;
	if (code == RT_LATER)
		failed = c->comm->rest(c, rung, RT_FOR_JOB | RT_FOR_QUEUE, turn);
	return failed ? failed : code;
}

bool rt_lane_wanted(const Ctx *c)
{
	return !c->aside || atomic_load(&c->lane->wanted) || atomic_load(&c->lane->stop);
}

/* ---- the walk ---- */

static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Waits until this rank has completed bucket k. */
static int reach(Ctx *c, RtLane *l, uint32_t k)
{
	double since = rt_seconds();
	bool waited = false;
	for (int turn = 0; !atomic_load(&l->code) && !before(k, atomic_load(&l->done)); turn++) {
		uint32_t now = atomic_load(&l->done);
		if (!l->threaded) {
			int code = rt_lane_turn(c, turn);
			if (code > 0)
				return code;
			turn = code ? turn : -1;
			continue;
		}
		waited = true;
		atomic_store(&l->wanted, true);
		if (!before(k, now))
			wait_change(l, &l->done, now, SPINS);
	}
	atomic_store(&l->wanted, false);
	if (waited && c->comm->late)
		c->comm->late(c, since);
	return atomic_load(&l->code);
}

/* Waits until bucket k is completed, here and by the ranks that read its operands. */
static int finish(Ctx *c, RtLane *l, uint32_t k)
{
	RtJob *j = &l->job[k % FLIGHT];
	int code = reach(c, l, k);
	if (!code && c->comm->release)
		c->comm->release(c, j);
	if (!code && c->watch && c->watch->moved)
		c->watch->moved(c, j->from, j->to);
	j->open = false;
	return code;
}

/* Finishes all started buckets, before ranks synchronize in another way than by transfers. */
int rt_lane_drain(Ctx *c)
{
	RtLane *l = c->lane;
	int code = 0;
	for (uint32_t n = l ? atomic_load(&l->started) : 0, k = n - FLIGHT; l && k != n && !code; k++)
		if (l->job[k % FLIGHT].open)
			code = finish(c, l, k);
	return code;
}

int rt_lane_poll(Ctx *c)
{
	RtLane *l = c->lane;
	int code = 0;
	while (l && !l->threaded && atomic_load(&l->started) != atomic_load(&l->done) && !code)
		code = advance(c, l, false);
	if (code <= 0 && c->queues && !rt_lane_threaded(c))
		code = rt_queues_poll(c);
	return code == RT_LATER ? 0 : code;
}

int rt_moves_start(Ctx *c, int n, const int *move, void *const *y, const void *const *x)
{
	RtLane *l = c->lane;
	if (!l)
		return rt_moves(c, n, move, y, x);
	uint32_t k = atomic_load(&l->started);
	RtJob *j = &l->job[k % FLIGHT];
	int code = j->open ? finish(c, l, k - FLIGHT) : 0;
	if (code)
		return code;
	j->n = n;
	memcpy(j->move, move, (size_t)n * sizeof *move);
	memcpy(j->y, y, (size_t)n * sizeof *y);
	memcpy(j->x, x, (size_t)n * sizeof *x);
	j->open = true;
	j->from = j->to = 0;
	j->done = 0;
	j->phase = 0;
	j->step = c->step;
	j->at = c->at;
	j->id = c->id;
	j->values = c->values;
	c->comm->publish(c, j);
	atomic_store(&l->started, k + 1);
	rt_lane_ring(c);
	return 0;
}

int rt_moves_finish(Ctx *c, const void *y)
{
	RtLane *l = c->lane;
	uint32_t n = l ? atomic_load(&l->started) : 0;
	for (uint32_t k = n - FLIGHT; l && k != n; k++)
		if (l->job[k % FLIGHT].open && l->job[k % FLIGHT].y[0] == y)
			return finish(c, l, k);
	return 0;                               /* an earlier start has finished it */
}

/* Without a thread for queues: peers may wait for what this rank takes from a queue. */
static int at_once(Ctx *c, RtJob *j)
{
	for (int turn = 0;; turn++) {
		uint32_t rung = atomic_load(&c->comm->bell->rings);
		int code = c->comm->advance(c, j, false), now = code == RT_LATER ? rt_queues_poll(c) : RT_LATER;
		turn = now ? turn : -1;
		if (code == RT_LATER && now == RT_LATER)
			now = c->comm->rest(c, rung, RT_FOR_JOB | RT_FOR_QUEUE, turn);
		if (code != RT_LATER || now > 0)
			return now > 0 ? now : code;
	}
}

/* Done by the walk, with all its threads, after the earlier buckets are completed. */
int rt_moves(Ctx *c, int n, const int *move, void *const *y, const void *const *x)
{
	RtJob j = { .n = n, .move = (int *)move, .y = (void **)y, .x = (const void **)x };
	RtLane *l = c->lane;
	int code = l && atomic_load(&l->started) != atomic_load(&l->done)
		? reach(c, l, atomic_load(&l->started) - 1) : 0;
	if (code)
		return code;
	c->comm->publish(c, &j);
	code = c->queues && !rt_lane_threaded(c) ? at_once(c, &j) : c->comm->advance(c, &j, true);
	if (!code && c->comm->release)
		c->comm->release(c, &j);
	return code;
}

/* ---- open and close ---- */

/* RT_LANE=walk: no thread; RT_LANE=none: no lane, so that a start is the complete transfer.  Tests compare them. */
static bool asked_for(const char *what)
{
	const char *asked = getenv("RT_LANE");
	return asked && !strcmp(asked, what);
}

int rt_lane_open(Ctx *c)
{
	/* three arrays of a job: y, x and move, whose elements are smaller than pointers */
	size_t most = (size_t)c->program->most + 1, each = most * 3 * sizeof(void *);
	int code = c->nrank < 2 ? 0 : rt_queues_open(c);
	if (code)
		return code;
	if (c->nrank < 2 || c->device || asked_for("none"))          /* a device orders transfers by its stream */
		return 0;
	RtLane *l = calloc(1, sizeof *l);
	unsigned char *room = l ? calloc(FLIGHT, each) : NULL;
	if (!room) {
		free(l);
		return rt_error(c, RT_MEMORY, "no memory for transfers");
	}
	l->room = room;
	for (int i = 0; i < FLIGHT; i++, room += each) {
		l->job[i].y = (void **)(void *)room;
		l->job[i].x = (const void **)(void *)(room + most * sizeof(void *));
		l->job[i].move = (int *)(void *)(room + 2 * most * sizeof(void *));
	}
	l->own = *c;
	l->own.pool = NULL;
	l->own.nthread = 1;
	l->own.aside = true;
	l->own.lane = l;
	c->lane = l;
	if (!asked_for("walk")) {
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK);
		l->threaded = true;             /* the thread reads it, so it is written before */
		rt_queues_threaded(c, true);
		if (pthread_create(&l->thread, &attr, drive, l)) {
			l->threaded = false;
			rt_queues_threaded(c, false);
		}
		pthread_attr_destroy(&attr);
	}
	return 0;
}

/* After a failure the thread may wait forever: it ends with the process. */
void rt_lane_close(Ctx *c, bool failed)
{
	RtLane *l = c->lane;
	if (!l) {
		rt_queues_close(c);
		return;
	}
	atomic_store(&l->stop, true);
	rt_lane_ring(c);
	c->lane = NULL;
	if (l->threaded && failed)
		return;
	if (l->threaded)
		pthread_join(l->thread, NULL);
	rt_queues_close(c);
	free(l->room);
	free(l);
}
