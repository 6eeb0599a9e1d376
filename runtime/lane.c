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
 * A separate thread does the work.  It sleeps until peers are ready, even if it shares the processor of the walk.
 * Without a thread, the walk polls after every action and does not wait before the finish. */
#include "comm.h"
#include "wait.h"

#include <limits.h>
#include <pthread.h>
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
	_Atomic bool stop;
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

static void *drive(void *arg)
{
	RtLane *l = arg;
	rt_touch_stack();
	for (;;) {
		uint32_t n = atomic_load(&l->started);
		if (atomic_load(&l->stop))
			return NULL;
		if (n == atomic_load(&l->done)) {
			wait_change(l, &l->started, n, 0);
			continue;
		}
		const RtJob *j = &l->job[atomic_load(&l->done) % FLIGHT];
		l->own.step = j->step;          /* for messages */
		l->own.at = j->at;
		l->own.id = j->id;
		l->own.values = j->values;
		if (advance(&l->own, l, true))
			return NULL;
	}
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
	while (!atomic_load(&l->code) && !before(k, atomic_load(&l->done))) {
		uint32_t now = atomic_load(&l->done);
		if (!l->threaded) {
			advance(c, l, true);
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
	changed(l, &l->started);
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
	code = c->comm->advance(c, &j, true);
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
	/* of which move takes less */
	size_t most = (size_t)c->program->most + 1, each = most * 3 * sizeof(void *);
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
	if (!asked_for("walk")) {
		pthread_attr_t attr;
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK);
		l->threaded = !pthread_create(&l->thread, &attr, drive, l);
		pthread_attr_destroy(&attr);
	}
	c->lane = l;
	return 0;
}

/* After a failure the thread may wait forever: it ends with the process. */
void rt_lane_close(Ctx *c, bool failed)
{
	RtLane *l = c->lane;
	c->lane = NULL;
	if (!l)
		return;
	atomic_store(&l->stop, true);
	rt_futex(&l->started, FUTEX_WAKE, INT_MAX);
	if (l->threaded && failed)
		return;
	if (l->threaded)
		pthread_join(l->thread, NULL);
	free(l->room);
	free(l);
}
