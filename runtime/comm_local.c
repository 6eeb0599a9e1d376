/* Ranks as processes of one machine.
 *
 * The parent maps shared memory, forks the ranks, and waits.  The memory holds a barrier, a page of scratch, the pulse
 * of each rank, the signals of each rank on each channel, and one window per rank.  Values of transfers live in
 * windows, so a transfer reads the values of its peers in place, and a sum is written where it is needed.  Before each
 * window is a guard page.  Nothing has a name in the file system, so nothing can be left behind.
 *
 *   | Shared | scratch | pulses | signals | - | window of rank 0 | - | window of rank 1 | ...
 *
 * The ranks of a channel count its buckets of transfers, independently of other channels.  A rank signals how many
 * buckets have their operands ready, and how many it has completed.  Other ranks wait for these counters: they spin
 * for a while, if every rank has a processor, then sleep by futex.  There is address space for the signals of every
 * rank on every channel, but memory only for those in use: a rank does not touch those of a channel that it takes no
 * part in.  The parent sees a rank that fails or is killed, and ends the others; ranks that wait for a stopped rank
 * see that its pulse is missing. */
#include "comm.h"
#include "wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = RT_PAGE, SCRATCH = PAGE, LINE = RT_LINE, SPINS = 20000 };

typedef struct Shared {
	_Atomic uint32_t arrived, round;
	_Atomic uint64_t opened;        /* when the last rank reached the barrier, in nanoseconds */
	_Atomic uint32_t stop, asked;   /* requests to end: the number of signals to the parent; 1 if a rank got one */
	_Atomic uint32_t agreed[2];     /* the last values of rank 0, alternating */
	_Atomic uint32_t worst[3];      /* the largest values of all ranks, rotating */
	_Atomic uint32_t named;         /* a rank is lost, and another one reports it */
	/* of a step: ranks that have voted, the largest of each word, when the last rank voted; rotating */
	struct { _Atomic uint32_t votes, worst[3]; _Atomic uint64_t when; } verdict[3];
} Shared;

/* The sign of life of a rank. */
typedef struct Pulse {
	_Atomic uint64_t beat;          /* time of the last one */
	_Atomic uint64_t waited;        /* nanoseconds that this rank has waited for others */
	RtBell bell;
	_Atomic int64_t task;           /* that it is in: rt_task */
	_Atomic uint32_t waits;         /* 1 + the rank that it waits for in a queue; 0: none */
	char rest[LINE - 3 * sizeof(uint64_t) - sizeof(RtBell) - sizeof(uint32_t)];
} Pulse;

/* The progress of a rank on a channel: the number of buckets whose operands others may read and whose results others
 * may write; the number of buckets of which it has finished all reads and writes. */
typedef struct Signal {
	_Atomic uint32_t ready, through, asleep;
	_Atomic uint64_t when;          /* time of the last change */
	char rest[LINE - 4 * sizeof(uint32_t) - sizeof(uint64_t)];
} Signal;
_Static_assert(sizeof(Signal) == RT_SIGNAL && sizeof(Pulse) == LINE, "a cache line each");
enum { FEW = 8 << 10 };                 /* bytes of buckets that every rank sums for itself */

typedef struct Local {
	Shared *shared;
	Pulse *pulse;                   /* by rank */
	Signal *signal;                 /* by channel and rank */
	unsigned char *scratch, *window;
	size_t stride;
	uint32_t turn, worst, verdict;
	int spins;
	double patience;                /* seconds */
	_Atomic uint64_t came;          /* when the last rank that the lane waited for was ready */
	const RtEnd *_Atomic wanted;    /* the end that the walk waits for */
	_Atomic uint64_t since;         /* since when, in nanoseconds, and in which step */
	_Atomic int64_t step;
	bool warned;
	struct Doubt { int rank; uint64_t beat; double looked, unchanged; } doubt;      /* of the thread that rests */
	_Alignas(LINE) unsigned char few[FEW];
} Local;

/* Sleeps for a limited time: then the caller checks whether the rank it waits for is alive. */
static void futex_wait(_Atomic uint32_t *at, uint32_t old, double seconds)
{
	struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };
	syscall(SYS_futex, at, FUTEX_WAIT, old, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *at)
{
	syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint64_t nanoseconds(void)
{
	return (uint64_t)(1e9 * rt_seconds());
}

/* Counts the time from `since` until the others were ready; later sleep, for example while stopped, does not count. */
static void has_waited(const Ctx *c, uint64_t since, uint64_t until)
{
	const Local *l = c->comm->state;
	if (until > since)
		atomic_fetch_add(&l->pulse[c->rank].waited, until - since);
}

static double waited(const Ctx *c, int rank)
{
	const Local *l = c->comm->state;
	return 1e-9 * (double)atomic_load(&l->pulse[rank].waited);
}

/* ---- liveness ---- */

static void beat(void *arg)
{
	Pulse *p = arg;
	atomic_store(&p->beat, nanoseconds());
}

/* The rank with the oldest pulse, among those that are waited for, and for how long it has not changed. */
typedef struct Doubt Doubt;

/* Several ranks may detect that a rank is lost: one of them reports it, and its exit ends all. */
static _Noreturn void lost(const Ctx *c, int rank)
{
	const Local *l = c->comm->state;
	while (atomic_exchange(&l->shared->named, 1))
		pause();
	_exit(rt_error(c, RT_PEER, "rank %d has not answered for %.0f seconds: it is lost", rank, l->patience));
}

/* Checks the ranks first .. last, one of which is waited for.  If all ranks were stopped together, the time passed says
 * nothing: so this rank must itself have watched for a while. */
static void doubt(const Ctx *c, Doubt *d, int first, int last)
{
	const Local *l = c->comm->state;
	double now = rt_seconds(), most = 2 * rt_pulse_tick(l->patience), passed = d->looked > 0 ? now - d->looked : 0;
	int oldest = first == c->rank && first < last ? first + 1 : first;
	for (int r = oldest + 1; r <= last; r++)
		if (r != c->rank && atomic_load(&l->pulse[r].beat) < atomic_load(&l->pulse[oldest].beat))
			oldest = r;
	uint64_t seen = atomic_load(&l->pulse[oldest].beat);
	if (d->rank != oldest || d->beat != seen)
		*d = (Doubt){ .rank = oldest, .beat = seen };
	else
		d->unchanged += passed < most ? passed : most;
	d->looked = now;
	if (d->unchanged > l->patience / 8 && now - 1e-9 * (double)seen > l->patience)
		lost(c, oldest);
}

static int barrier(Ctx *c)
{
	Local *l = c->comm->state;
	uint64_t since = nanoseconds();
	uint32_t round = atomic_load(&l->shared->round);
	if (atomic_fetch_add(&l->shared->arrived, 1) + 1 == (uint32_t)c->nrank) {
		atomic_store(&l->shared->arrived, 0);
		atomic_store(&l->shared->opened, nanoseconds());
		atomic_fetch_add(&l->shared->round, 1);
		futex_wake(&l->shared->round);
		return 0;
	}
	for (int i = 0; i < l->spins; i++) {
		if (atomic_load(&l->shared->round) != round)
			return 0;
		rt_breathe();
	}
	for (Doubt d = { 0 }; atomic_load(&l->shared->round) == round; doubt(c, &d, 0, c->nrank - 1))
		futex_wait(&l->shared->round, round, rt_pulse_tick(l->patience));
	has_waited(c, since, atomic_load(&l->shared->opened));
	return 0;
}

/* ---- transfers ---- */

/* The signal of a rank on the channel of a job. */
static Signal *signal_of(const Ctx *c, const RtJob *j, int rank)
{
	const Local *l = c->comm->state;
	return &l->signal[(size_t)rt_bucket_channel(c, j) * (size_t)c->nrank + (size_t)rank];
}

static void say(Signal *s, _Atomic uint32_t *what, uint32_t value)
{
	atomic_store(&s->when, nanoseconds());
	atomic_store(what, value);
	if (atomic_load(&s->asleep))
		futex_wake(what);
}

/* To the other ranks of a job: to those that wait for this counter, and to those whose courier sleeps. */
static void say_all(const Ctx *c, const RtJob *j, Signal *s, _Atomic uint32_t *what, uint32_t value)
{
	const Local *l = c->comm->state;
	say(s, what, value);
	for (int m = 0; m < j->n; m++) {
		const RtRoute *r = &c->route[j->move[m]];
		if (m && r->npeer == c->route[j->move[0]].npeer)
			continue;               /* the same ranks, unless shards are empty */
		for (int i = 0; i < r->npeer; i++)
			if (r->peer[i] != c->rank)
				rt_ring(&l->pulse[r->peer[i]].bell, RT_FOR_JOB);
	}
}

static void say_through(const Ctx *c, const RtJob *j)
{
	Signal *s = signal_of(c, j, c->rank);
	say_all(c, j, s, &s->through, j->number + 1);
}

static bool is_at(_Atomic uint32_t *what, uint32_t want)
{
	return (int32_t)(atomic_load(what) - want) >= 0;
}

/* The walk waits until a counter of a rank reaches `want`. */
static void await(const Ctx *c, int rank, Signal *s, _Atomic uint32_t *what, uint32_t want)
{
	const Local *l = c->comm->state;
	uint32_t now;
	uint64_t since = nanoseconds();
	for (int i = 0; i < l->spins; i++) {
		if (is_at(what, want))
			return;
		rt_breathe();
	}
	atomic_fetch_add(&s->asleep, 1);
	for (Doubt d = { 0 }; (int32_t)((now = atomic_load(what)) - want) < 0; doubt(c, &d, rank, rank))
		futex_wait(what, now, rt_pulse_tick(l->patience));
	atomic_fetch_sub(&s->asleep, 1);
	has_waited(c, since, atomic_load(&s->when));
}

static void late(Ctx *c, double since)
{
	Local *l = c->comm->state;
	has_waited(c, (uint64_t)(1e9 * since), atomic_load(&l->came));
}

/* True if all ranks that take part are ready for the job, or have completed it; wait: until they are. */
static bool all_are(const Ctx *c, const RtJob *j, bool ready, bool wait)
{
	Local *l = c->comm->state;
	uint64_t last = 0, when;
	for (int m = 0; m < j->n; m++) {                /* values may differ in their peers where shards are empty */
		const RtRoute *r = &c->route[j->move[m]];
		for (int i = 0; i < r->npeer; i++) {
			Signal *s = signal_of(c, j, r->peer[i]);
			_Atomic uint32_t *what = ready ? &s->ready : &s->through;
			if (r->peer[i] == c->rank)
				continue;
			if (!is_at(what, j->number + 1)) {
				if (!wait)
					return false;
				await(c, r->peer[i], s, what, j->number + 1);
			}
			when = atomic_load(&s->when);
			last = when > last ? when : last;
		}
	}
	if (c->aside)
		atomic_store(&l->came, last);
	return true;
}

static bool all_ready(const Ctx *c, const RtJob *j, bool wait)
{
	return all_are(c, j, true, wait);
}

static bool all_through(const Ctx *c, const RtJob *j, bool wait)
{
	return all_are(c, j, false, wait);
}

/* The same value in the window of rank r: all ranks have the same layout. */
static void *peer(const Ctx *c, const void *mine, int r)
{
	const Local *l = c->comm->state;
	return l->window + (size_t)r * l->stride + ((const unsigned char *)mine - c->window);
}

static bool theirs(const Ctx *c, const void *p)
{
	const Local *l = c->comm->state;
	return (const unsigned char *)p >= l->window && (const unsigned char *)p < l->window + (size_t)c->nrank *
		l->stride && p != c->window;
}

static bool in_window(const Ctx *c, const void *p)
{
	return (const unsigned char *)p >= c->window && (const unsigned char *)p < c->window + c->program->window_bytes;
}

/* Transfers of any kind: each rank reads what it needs in place, in the order of terms.
 *
 *             rank 0           rank 1           rank 2
 *   x         a a a            b b b            c c c
 *              \  \________     |  \_______      |
 *               \________  \____|_______  \      |
 *   y         a b ...       ...    a b c    ...  c ...
 */
typedef struct Source { Ctx *c; const void *x; } Source;

static const void *source(void *arg, int rank)
{
	const Source *s = arg;
	return rank == s->c->rank ? s->x : peer(s->c, s->x, rank);
}

static void take_all(Ctx *c, const RtJob *j)
{
	for (int i = 0; i < j->n; i++)
		rt_route_take(c, &c->route[j->move[i]], j->y[i], source, &(Source){ c, j->x[i] });
}

/* The address of term i of a range. */
typedef struct Share { const Ctx *c; const RtJob *j; size_t lo, hi; } Share;

static const void *term(void *arg, int i, const RtSpan *s)
{
	const Share *w = arg;
	const RtRoute *r = &w->c->route[w->j->move[s->i]];
	return (const unsigned char *)peer(w->c, w->j->x[s->i], r->term[i]) + s->from;
}

/* A small bucket: all ranks sum everything.  x and y may be the same memory, so y is written after all have read. */
static int sum_few(Ctx *c, RtJob *j, size_t bytes, bool wait)
{
	Local *l = c->comm->state;
	if (!j->phase++) {
		rt_bucket_sum(c, j, 0, bytes, term, &(Share){ c, j, 0, bytes }, l->few);
		say_through(c, j);
	}
	if (!all_through(c, j, wait))
		return RT_LATER;
	rt_bucket_put(c, j, 0, bytes, l->few);
	return 0;
}

/* An all-reduce: each rank sums its share of all terms, in order, and writes the sum into the results of all.  No other
 * rank reads these terms or writes there, so y may be the memory of x.
 *
 *             rank 0      rank 1      rank 2
 *   x         a0 b0 c0    a1 b1 c1    a2 b2 c2
 *   sum       A  .  .     .  B  .     .  .  C       A = a0 + a1 + a2
 *   give      A  B  C     A  B  C     A  B  C
 */
static void sum_lines(void *arg, int64_t lo, int64_t hi, int thread)
{
	/* lines that are still in the first-level cache when they are copied */
	enum { SOME = (16 << 10) / LINE };
	const Share *w = arg;
	const RtRoute *r = &w->c->route[w->j->move[0]];
	(void)thread;
	for (int64_t at = lo; at < hi; at += SOME) {
		size_t from = w->lo + (size_t)at * LINE, to = w->lo + (size_t)(hi - at < SOME ? hi : at + SOME) * LINE;
		to = to < w->hi ? to : w->hi;
		rt_bucket_sum(w->c, w->j, from, to, term, arg, NULL);
		for (RtSpan s = { 0 }; rt_bucket_next(w->c, w->j, from, to, &s);) {
			const unsigned char *y = (const unsigned char *)w->j->y[s.i] + s.from;
			for (int i = 0; i < r->nterm; i++)
				if (i != r->me)
					memcpy(peer(w->c, y, r->term[i]), y, s.bytes);
		}
	}
}

/* Where the share of term i begins, aligned to lines. */
static size_t share(size_t bytes, int i, int n)
{
	return i == n ? bytes : bytes * (size_t)i / (size_t)n / LINE * LINE;
}

static int all_reduce(Ctx *c, RtJob *j, size_t bytes, bool wait)
{
	enum { GRAIN = (32 << 10) / LINE };
	const RtRoute *r = &c->route[j->move[0]];
	if (!j->phase++) {
		Share s = { c, j, share(bytes, r->me, r->nterm), share(bytes, r->me + 1, r->nterm) };
		rt_parallel(c, (int64_t)((s.hi - s.lo + LINE - 1) / LINE), GRAIN, sum_lines, &s);
		say_through(c, j);
	}
	return all_through(c, j, wait) ? 0 : RT_LATER;
}

static void publish(Ctx *c, RtJob *j)
{
	Signal *s = signal_of(c, j, c->rank);
	j->number = atomic_load(&s->ready);
	say_all(c, j, s, &s->ready, j->number + 1);
}

static int advance(Ctx *c, RtJob *j, bool wait)
{
	const RtRoute *r = &c->route[j->move[0]];
	if (!j->phase && !all_ready(c, j, wait))
		return RT_LATER;
	size_t bytes = r->nterm ? rt_bucket_bytes(c, j) : 0;
	if (r->nterm && bytes <= FEW)
		return sum_few(c, j, bytes, wait);
	if (r->nterm && in_window(c, j->y[0]))
		return all_reduce(c, j, bytes, wait);
	take_all(c, j);
	say_through(c, j);
	return 0;
}

static void release(Ctx *c, const RtJob *j)
{
	all_through(c, j, true);
}

static void begin_task(Ctx *c, int actor)
{
	const Local *l = c->comm->state;
	atomic_store_explicit(&l->pulse[c->rank].task, rt_task(c, actor), memory_order_relaxed);
}

/* The first peer that an end waits for; -1: none. */
static int owes(const Ctx *c, const RtEnd *e)
{
	uint32_t next = (uint32_t)atomic_load(&e->done) + 1;
	for (int i = 0; i < e->npeer; i++) {
		Signal *s = &((const Local *)c->comm->state)->signal[(size_t)e->queue->channel * (size_t)c->nrank +
			(size_t)e->peer[i]];
		if ((int32_t)(atomic_load(e->queue->sends ? &s->through : &s->ready) - next) < 0)
			return e->peer[i];
	}
	return -1;
}

static void waits(Ctx *c, const RtEnd *e)
{
	Local *l = c->comm->state;
	atomic_store(&l->pulse[c->rank].waits, e ? (uint32_t)(owes(c, e) + 1) : 0);
	atomic_store(&l->since, nanoseconds());
	atomic_store(&l->step, c->step);
	atomic_store(&l->wanted, e);
}

/* Reports once that the walk has waited longer than the patience although all ranks are alive.  It names the queue, the
 * rank that it waits for, and the rank at the end of the chain of waiting ranks. */
static void warn(Ctx *c)
{
	Local *l = c->comm->state;
	const RtEnd *e = atomic_load(&l->wanted);
	double seconds = 1e-9 * (double)(nanoseconds() - atomic_load(&l->since));
	if (!e || l->warned || seconds < l->patience)
		return;
	int first = owes(c, e), last = first;
	for (int i = 0; i < c->nrank && last >= 0 && atomic_load(&l->pulse[last].waits); i++)
		last = (int)atomic_load(&l->pulse[last].waits) - 1;
	if (first < 0 || last < 0)
		return;
	rt_queues_warn(c, &(RtChain){ .end = e, .step = atomic_load(&l->step), .seconds = seconds, .first = first,
		.last = last, .task = atomic_load(&l->pulse[last].task),
		.circle = atomic_load(&l->pulse[last].waits) });
	l->warned = true;
}

/* Sleeps until the bell rings.  The courier does not spin: it leaves the processor to the walk. */
static int rest(Ctx *c, uint32_t rung, int what, int turn)
{
	Local *l = c->comm->state;
	RtBell *b = c->comm->bell;
	for (int i = 0; i < l->spins && !c->aside; i++) {
		if (atomic_load(&b->rings) != rung)
			return 0;
		rt_breathe();
	}
	if (!turn)
		l->doubt = (Doubt){ 0 };
	atomic_store(&b->asleep, (uint32_t)(what | RT_FOR_OWN));
	if (atomic_load(&b->rings) == rung)
		futex_wait(&b->rings, rung, what ? rt_pulse_tick(l->patience) : 3600);
	atomic_store(&b->asleep, 0);
	if (what) {
		doubt(c, &l->doubt, 0, c->nrank - 1);
		warn(c);
	}
	return 0;
}

/* ---- queues ----
 *
 * A sender counts the pieces that are ready, a receiver those that it has finished copying.  The receiver copies from
 * the windows of the senders:
 *
 *             rank 0 (sends)         rank 1 (receives)
 *   x         piece 3 | piece 4      y   piece 3 | -
 *   ready     5                      through   4       rank 0 may overwrite piece 3, rank 1 takes piece 4
 */
static Signal *signal_on(const Ctx *c, const RtEnd *e, int rank)
{
	const Local *l = c->comm->state;
	return &l->signal[(size_t)e->queue->channel * (size_t)c->nrank + (size_t)rank];
}

static void say_peers(const Ctx *c, const RtEnd *e, Signal *s, _Atomic uint32_t *what, uint64_t value)
{
	const Local *l = c->comm->state;
	say(s, what, (uint32_t)value);
	for (int i = 0; i < e->npeer; i++)
		rt_ring(&l->pulse[e->peer[i]].bell, RT_FOR_QUEUE);
}

static void end_publish(Ctx *c, RtEnd *e)
{
	Signal *s = signal_on(c, e, c->rank);
	say_peers(c, e, s, &s->ready, atomic_load(&e->made));
}

/* The operand of a transfer in the window of a sender. */
typedef struct Piece { const Ctx *c; int64_t offset; } Piece;

static const void *piece_of(void *arg, int rank)
{
	const Piece *p = arg;
	const Local *l = p->c->comm->state;
	return l->window + (size_t)rank * l->stride + p->offset;
}

static int end_advance(Ctx *c, RtEnd *e, uint64_t k)
{
	Local *l = c->comm->state;
	const RtQueue *q = e->queue;
	uint64_t last = 0;
	for (int i = 0; i < e->npeer; i++) {
		Signal *s = signal_on(c, e, e->peer[i]);
		if (!is_at(q->sends ? &s->through : &s->ready, (uint32_t)k + 1))
			return RT_LATER;
		uint64_t when = atomic_load(&s->when);
		last = when > last ? when : last;
	}
	atomic_store(&l->came, last);
	if (q->sends)
		return 0;
	int64_t piece = rt_end_piece(c, e, k);
	for (int i = 0; i < q->n; i++) {
		int v = q->to[i];
		bool window = v < c->program->nkept ? c->program->kept[v].t.window
			: c->program->value[v - c->program->nkept].window;
		rt_route_take(c, &c->route[q->move[i]],
			(window ? c->window : c->slab) + rt_offset(c->program, v, piece), piece_of,
			&(Piece){ c, rt_offset(c->program, q->from[i], piece) });
	}
	Signal *s = signal_on(c, e, c->rank);
	say_peers(c, e, s, &s->through, k + 1);
	return 0;
}

void *rt_shared(const Ctx *c, size_t *bytes)
{
	const Local *l = c->comm->state;
	*bytes = SCRATCH;
	return l->scratch;
}

/* Two slots alternate: rank 0 can be one call ahead of a rank that has yet to read, never two. */
uint32_t rt_agree(Ctx *c, uint32_t mine)
{
	Local *l = c->comm->state;
	_Atomic uint32_t *agreed = &l->shared->agreed[l->turn++ & 1];
	if (c->nrank == 1)
		return mine;
	if (c->rank == 0)
		atomic_store(agreed, mine);
	barrier(c);
	return atomic_load(agreed);
}

/* Three slots rotate: the next one is cleared while no rank reads its value of two calls ago and none writes to it
 * yet. */
uint32_t rt_worst(Ctx *c, uint32_t mine)
{
	Local *l = c->comm ? c->comm->state : NULL;
	if (c->nrank == 1)
		return mine;
	uint32_t turn = l->worst++ % 3;
	_Atomic uint32_t *worst = &l->shared->worst[turn];
	if (c->rank == 0)
		atomic_store(&l->shared->worst[(turn + 1) % 3], 0);
	for (uint32_t old = atomic_load(worst); mine > old && !atomic_compare_exchange_weak(worst, &old, mine);)
		;
	barrier(c);
	return atomic_load(worst);
}

static void raise_to(_Atomic uint32_t *at, uint32_t value)
{
	for (uint32_t old = atomic_load(at); value > old && !atomic_compare_exchange_weak(at, &old, value);)
		;
}

/* As in rt_worst, three slots rotate: a rank votes on the next verdict after it has received this one. */
static void vote(Ctx *c, const RtVerdict *v)
{
	Local *l = c->comm->state;
	const uint32_t mine[] = { v->code, v->not_finite, v->stop };
	uint32_t slot = l->verdict % 3, next = (slot + 1) % 3;
	for (int i = 0; i < 3; i++) {
		if (c->rank == 0)
			atomic_store(&l->shared->verdict[next].worst[i], 0);
		raise_to(&l->shared->verdict[slot].worst[i], mine[i]);
	}
	if (c->rank == 0)
		atomic_store(&l->shared->verdict[next].votes, 0);
	atomic_store(&l->shared->verdict[slot].when, nanoseconds());
	if (atomic_fetch_add(&l->shared->verdict[slot].votes, 1) + 1 < (uint32_t)c->nrank)
		return;
	futex_wake(&l->shared->verdict[slot].votes);
	for (int r = 0; r < c->nrank; r++)
		rt_ring(&l->pulse[r].bell, RT_FOR_JOB);
}

static int hear(Ctx *c, RtVerdict *v, bool wait)
{
	Local *l = c->comm->state;
	uint32_t slot = l->verdict % 3, all = (uint32_t)c->nrank, now;
	_Atomic uint32_t *votes = &l->shared->verdict[slot].votes;
	uint64_t since = nanoseconds();
	if (!wait && atomic_load(votes) < all)
		return RT_LATER;
	for (int i = 0; i < l->spins && atomic_load(votes) < all; i++)
		rt_breathe();
	for (Doubt d = { 0 }; (now = atomic_load(votes)) < all; doubt(c, &d, 0, c->nrank - 1))
		futex_wait(votes, now, rt_pulse_tick(l->patience));
	has_waited(c, since, atomic_load(&l->shared->verdict[slot].when));
	_Atomic uint32_t *worst = l->shared->verdict[slot].worst;
	*v = (RtVerdict){ atomic_load(&worst[0]), atomic_load(&worst[1]), atomic_load(&worst[2]) };
	l->verdict++;
	return 0;
}

void rt_broadcast(Ctx *c, int from, void *what, size_t bytes)
{
	if (c->nrank == 1)
		return;
	Local *l = c->comm->state;
	if (c->rank == from)
		memcpy(l->scratch, what, bytes);
	barrier(c);
	memcpy(what, l->scratch, bytes);
	barrier(c);
}

uint32_t rt_stop_asked(const Ctx *c)
{
	const Local *l = c->comm->state;
	return atomic_load(&l->shared->stop) + atomic_load(&l->shared->asked);
}

/* ---- signals ---- */

static Shared *signalled;               /* the parent counts, ranks read */
static volatile sig_atomic_t at_once;

static void ask(int sig)
{
	(void)sig;
	at_once |= rt_stops_now(atomic_fetch_add(&signalled->stop, 1) + 1, true);
}

/* A signal to all processes of a job reaches the parent, too: that is one request, not two. */
static void ask_once(int sig)
{
	(void)sig;
	atomic_store(&signalled->asked, 1);
}

/* Binds each rank to its share of the processors: without it, two ranks were seen on one processor while another was
 * idle (an all-reduce of 4 MiB took three times as long).  With more ranks than processors, the system decides. */
static bool bind_rank(int rank, int nrank)
{
	cpu_set_t all, mine;
	if (nrank < 2 || sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < nrank)
		return false;
	int64_t at, n, seen = 0;
	form_share(CPU_COUNT(&all), nrank, rank, &at, &n);
	CPU_ZERO(&mine);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			if (seen >= at && seen < at + n)
				CPU_SET(i, &mine);
			seen++;
		}
	return !sched_setaffinity(0, sizeof mine, &mine);
}

static int child(const RtProgram *p, Local *l, int rank, pid_t parent, int (*body)(Ctx *, void *), void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return RT_PEER;
	rt_signals(ask_once);
	rt_on(SIGINT, SIG_IGN);         /* the parent gets it and counts it once */
	RtComm comm = { .name = "local", .publish = publish, .advance = advance, .release = release, .late = late,
		.barrier = barrier, .say = vote, .hear = hear, .waited = waited, .theirs = theirs,
		.bell = &l->pulse[rank].bell, .rest = rest,
		.end_publish = end_publish, .end_advance = end_advance, .task = begin_task,
		.waits = waits, .state = l };
	Ctx c = { .program = p, .role = p->role_of ? p->role_of[rank] : 0, .rank = rank, .nrank = p->nrank,
		.comm = &comm, .seed = p->seed, .here = p->nrank, .first_here = !rank };
	c.bound = bind_rank(rank, p->nrank);
	RtPulse *pulse = p->nrank > 1 ? rt_pulse_open(rt_pulse_tick(l->patience), beat, &l->pulse[rank]) : NULL;
	int code = p->nrank > 1 && !pulse ? rt_error(&c, RT_MEMORY, "cannot start a thread") : rt_shards_open(&c);
	if (!code)
		code = rt_device_open(&c, l->window + (size_t)rank * l->stride);
	if (!code) {
		code = body(&c, arg);
		rt_device_close(&c);
	}
	rt_shards_close(&c);
	rt_pulse_close(pulse);
	fflush(stdout);
	return code;
}

static void end_all(const pid_t *pid, int n)
{
	for (int k = 0; k < n; k++)
		if (pid[k])
			kill(pid[k], SIGKILL);
}

/* Waits for all ranks; the first failure ends the others, and its exit status is that of the job. */
static int wait_all(pid_t *pid, int n)
{
	int code = 0;
	bool now = false;
	for (int left = n; left > 0;) {
		int status;
		pid_t p = waitpid(-1, &status, 0);
		if (p < 0 && errno == EINTR && at_once && !code) {
			code = RT_STOPPED;
			now = true;
			end_all(pid, n);
		}
		if (p < 0 && errno == EINTR)
			continue;
		if (p < 0)
			break;
		int r = 0;
		while (r < n && pid[r] != p)
			r++;
		if (r == n)
			continue;
		left--;
		int mine = WIFEXITED(status) ? WEXITSTATUS(status) : RT_PEER;
		pid[r] = 0;
		if (!mine || now || (code && code != RT_STOPPED))
			continue;
		code = mine;
		if (mine == RT_STOPPED)
			continue;               /* the others stop, too */
		if (WIFSIGNALED(status))
			fprintf(stderr, "rank %d was ended by signal %d\n", r, WTERMSIG(status));
		end_all(pid, n);
	}
	return code;
}

static int processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

int rt_run(const RtProgram *p, int (*body)(Ctx *, void *), void *arg)
{
	Local l = { .patience = rt_patience(), .stride = rt_round_up(p->window_bytes, PAGE) + PAGE };
	size_t pulses = rt_round_up((size_t)p->nrank * sizeof(Pulse), PAGE);
	size_t signals = rt_round_up((size_t)p->nchannel * (size_t)p->nrank * sizeof(Signal), PAGE);
	size_t bytes = PAGE + SCRATCH + pulses + signals + l.stride * (size_t)p->nrank;
	unsigned char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *pid = calloc((size_t)p->nrank, sizeof *pid), parent = getpid();
	if (base == MAP_FAILED || !pid) {
		fprintf(stderr, "cannot map %zu bytes of shared memory: %s\n", bytes, strerror(errno));
		free(pid);
		return RT_MEMORY;
	}
	l.shared = (Shared *)base;
	l.scratch = base + PAGE;
	l.pulse = (Pulse *)(void *)(l.scratch + SCRATCH);
	l.signal = (Signal *)(void *)(l.scratch + SCRATCH + pulses);
	l.window = l.scratch + SCRATCH + pulses + signals + PAGE;
	for (int r = 0; r < p->nrank; r++)
		if (mprotect(l.window + (size_t)r * l.stride - PAGE, PAGE, PROT_NONE)) {
			fprintf(stderr, "cannot protect the pages between windows: %s\n", strerror(errno));
			free(pid);
			return RT_MEMORY;
		}
	for (int r = 0; r < p->nrank; r++)
		beat(&l.pulse[r]);
	l.spins = p->nrank <= processors() ? SPINS : 0;
	signalled = l.shared;
	rt_on_stop(ask);
	fflush(stdout);
	for (int r = 0; r < p->nrank; r++) {
		pid[r] = fork();
		if (pid[r] == 0)
			_exit(child(p, &l, r, parent, body, arg));
		if (pid[r] < 0) {
			fprintf(stderr, "cannot start rank %d: %s\n", r, strerror(errno));
			for (int k = 0; k < r; k++)
				kill(pid[k], SIGKILL);
			free(pid);
			return RT_PEER;
		}
	}
	int code = wait_all(pid, p->nrank);
	free(pid);
	munmap(base, bytes);
	return code;
}
