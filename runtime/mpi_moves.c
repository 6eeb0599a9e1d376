/* Transfers by messages of MPI.
 *
 * From the forms of a transfer every rank knows what it takes from each peer and what each peer takes from it, so no
 * requests are needed:
 *
 *   sender          packs the blocks that a peer takes, in the order of that peer's route, and sends them as one
 *                   message
 *   receiver        waits for all messages, then combines their blocks and its own in the order of terms
 *
 * A bucket of transfers sends one message to each peer.  The receiver computes sums, by the same function and in the
 * same order as between processes of one machine, so both transports give the same bits; the reductions of MPI are not
 * used, because their order is unspecified.  Messages make progress only while MPI is called, so a thread calls it
 * (lane.c), or the walk.  Another thread answers peers that ask whether this rank is alive; one thread at a time calls
 * MPI. */
#include "mpi_moves.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TURNS = 20000 };                 /* polls before a waiting thread sleeps in between */
enum { MESSAGE = 1 << 30 };             /* bytes of one message at most: MPI counts in int */
enum { FEW = 8 << 10, CHUNK = 4 << 20 };        /* bytes of an all-reduce: sent in one round; in flight at a time */

/* The messages between this rank and a peer in one transfer. */
typedef struct Peer { int rank; RtRoute pack; size_t out, in; } Peer;
typedef struct Line {
	RtRoute take;                   /* the route, with blocks of peers as they lie in their messages */
	Peer *peer; int npeer;
} Line;
typedef RtMpi Mpi;

/* ---- messages ---- */

static int no_memory(Ctx *c)
{
	return rt_error(c, RT_MEMORY, "no memory for transfers");
}

static MPI_Request *next_request(RtFlow *m, int whom)
{
	if (m->nrequest == m->room) {
		int room = m->room ? 2 * m->room : 64;
		MPI_Request *more = realloc(m->request, (size_t)room * sizeof *more);
		m->request = more ? more : m->request;
		int *who = more ? realloc(m->whom, (size_t)room * sizeof *who) : NULL;
		if (!who)
			return NULL;
		m->whom = who;
		m->room = room;
	}
	m->whom[m->nrequest] = whom;
	return &m->request[m->nrequest++];
}

/* Messages with one tag between two ranks arrive in the order in which they were sent, and both ranks have the same
 * transfers of a channel in the same order: the tag tells channels apart, and messages need no numbers. */
static int send_or_receive(Ctx *c, RtFlow *f, int tag, bool sends, const void *data, size_t bytes, int rank)
{
	Mpi *m = c->comm->state;
	for (size_t at = 0; at < bytes; at += MESSAGE) {
		int n = (int)(bytes - at < MESSAGE ? bytes - at : MESSAGE);
		MPI_Request *r = next_request(f, rank);
		if (!r)
			return no_memory(c);
		pthread_mutex_lock(&m->lock);
		if (sends)
			MPI_Isend((const unsigned char *)data + at, n, MPI_BYTE, rank, tag, MPI_COMM_WORLD, r);
		else
			MPI_Irecv((unsigned char *)(uintptr_t)data + at, n, MPI_BYTE, rank, tag, MPI_COMM_WORLD, r);
		pthread_mutex_unlock(&m->lock);
	}
	return 0;
}

int rt_mpi_post(Ctx *c, Mpi *m, int tag, bool sends, const void *data, size_t bytes, int rank)
{
	return send_or_receive(c, &m->flow, tag, sends, data, bytes, rank);
}

static int post(Ctx *c, RtFlow *f, const RtJob *j, bool sends, const void *data, size_t bytes, int rank)
{
	return send_or_receive(c, f, RT_MPI_AGREE + 1 + rt_bucket_channel(c, j), sends, data, bytes, rank);
}

/* The number of incomplete messages.  They are tested one by one, to know which are complete. */
static int pending(Mpi *m, RtFlow *f)
{
	int n = 0;
	if (!f->nrequest)
		return 0;
	pthread_mutex_lock(&m->lock);
	for (int i = 0, done = 0; i < f->nrequest; i++) {
		if (f->request[i] != MPI_REQUEST_NULL)
			MPI_Test(&f->request[i], &done, MPI_STATUS_IGNORE);
		n += f->request[i] != MPI_REQUEST_NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return n;
}

/* ---- liveness ----
 *
 *   a rank that waits    asks the ranks whose messages are incomplete, repeatedly
 *   pulse of the other   answers, while its rank computes, reads or saves
 *
 * An answer reports in which task a rank is and for which rank it waits.  So a rank that waits too long can follow the
 * chain of waits, from rank to rank, to the one that waits for nobody.
 *
 * A connection can break without notice, and a process can be stopped: so a timeout decides. */
enum { ASK = 1, ANSWER = 2 };           /* tags */
typedef struct Answer { int64_t task, waits; } Answer;      /* waits: 1 + the rank that it waits for; 0: none */

static void ask(Mpi *m, int rank)
{
	static const char nothing;
	MPI_Request r;
	MPI_Isend(&nothing, 0, MPI_BYTE, rank, ASK, m->asks, &r);
	MPI_Request_free(&r);
}

/* An answer that is still on its way is enough. */
static void send_answer(Mpi *m, int rank)
{
	int gone = 1;
	MPI_Test(&m->sending[rank], &gone, MPI_STATUS_IGNORE);
	if (!gone)
		return;
	Answer *t = &m->answers[rank];
	t->task = atomic_load(&m->task);
	t->waits = atomic_load(&m->wanted) ? atomic_load(&m->waits) : 0;
	MPI_Isend(t, sizeof *t, MPI_BYTE, rank, ANSWER, m->asks, &m->sending[rank]);
}

static void answer_all(void *arg)
{
	Mpi *m = arg;
	MPI_Status st;
	int any;
	pthread_mutex_lock(&m->lock);
	while (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, m->asks, &any, &st) == MPI_SUCCESS && any) {
		Answer *got = &m->answered[st.MPI_SOURCE];
		MPI_Recv(got, st.MPI_TAG == ASK ? 0 : sizeof *got, MPI_BYTE, st.MPI_SOURCE, st.MPI_TAG, m->asks,
			MPI_STATUS_IGNORE);
		if (st.MPI_TAG == ASK)
			send_answer(m, st.MPI_SOURCE);
		else
			atomic_fetch_add(&m->heard[st.MPI_SOURCE], 1);
	}
	pthread_mutex_unlock(&m->lock);
}

int rt_mpi_pulse_open(Ctx *c, Mpi *m)
{
	size_t n = (size_t)c->nrank;
	m->heard = calloc(n, sizeof *m->heard);
	m->answered = calloc(n, 2 * sizeof *m->answered);
	m->sending = calloc(n, sizeof(MPI_Request));
	m->before = calloc(n, sizeof *m->before);
	if (!m->answered || !m->sending || !m->before)
		return no_memory(c);
	m->answers = m->answered + n;
	for (size_t i = 0; i < n; i++)
		m->sending[i] = MPI_REQUEST_NULL;
	for (int i = 0; i < 2; i++) {
		RtAsking *a = &m->asking[i];
		a->seen = calloc(n, sizeof *a->seen);
		a->when = calloc(n, 2 * sizeof *a->when);
		if (!m->heard || !a->seen || !a->when)
			return no_memory(c);
		a->asked = a->when + n;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &m->asks);
	MPI_Comm_dup(MPI_COMM_WORLD, &m->verdicts);
	m->pulse = c->nrank > 1 ? rt_pulse_open(rt_pulse_tick(m->patience), answer_all, m) : NULL;
	return c->nrank > 1 && !m->pulse ? no_memory(c) : 0;
}

void rt_mpi_pulse_close(const Ctx *c, Mpi *m)
{
	rt_pulse_close(m->pulse);
	for (int r = 0; m->sending && r < c->nrank; r++)
		MPI_Wait(&m->sending[r], MPI_STATUS_IGNORE);
	free((void *)m->heard);
	free(m->answered);
	free(m->sending);
	free(m->before);
	for (int i = 0; i < 2; i++) {
		free(m->asking[i].seen);
		free(m->asking[i].when);
	}
}

/* Seconds that this process has run; time while it was stopped does not count. */
static double waiting(const Mpi *m, RtAsking *a)
{
	double now = rt_seconds(), most = 2 * rt_pulse_tick(m->patience), passed = now - a->looked;
	a->clock += passed < most ? passed : most;
	a->looked = now;
	return a->clock;
}

/* Calls `visit` for the ranks that a thread waits for: those of its incomplete messages, of the courier also in
 * queues. */
typedef int Visit(Ctx *, Mpi *, RtAsking *, int rank, double now);

static int visit_flow(Ctx *c, Mpi *m, const RtFlow *f, Visit *visit, double now)
{
	int code = 0;
	for (int i = 0; i < f->nrequest && !code; i++)
		if (f->request[i] != MPI_REQUEST_NULL)
			code = visit(c, m, &m->asking[c->aside], f->whom[i], now);
	return code;
}

static int visit_all(Ctx *c, Mpi *m, bool buckets, bool queues, Visit *visit)
{
	double now = waiting(m, &m->asking[c->aside]);
	int n = 0, code = buckets ? visit_flow(c, m, &m->flow, visit, now) : 0;
	RtEnd *e = queues ? rt_queues_ends(c, &n) : NULL;
	for (int i = 0; i < n && !code; i++)
		code = visit_flow(c, m, e[i].state, visit, now);
	return code;
}

/* Starts the timeout of a rank that is waited for. */
static int begin_one(Ctx *c, Mpi *m, RtAsking *a, int r, double now)
{
	(void)c;
	a->when[r] = a->asked[r] = now;
	a->seen[r] = atomic_load(&m->heard[r]);
	return 0;
}

/* Asks a rank whether it is alive; one that has not answered for too long is lost. */
static int ask_one(Ctx *c, Mpi *m, RtAsking *a, int r, double now)
{
	uint32_t heard = atomic_load(&m->heard[r]);
	a->when[r] = heard != a->seen[r] ? now : a->when[r];
	a->seen[r] = heard;
	if (now - a->when[r] > m->patience)
		return rt_error(c, RT_PEER, "rank %d has not answered for %.0f seconds: it is lost", r, m->patience);
	if (now - a->asked[r] > m->patience / 4) {
		a->asked[r] = now;
		pthread_mutex_lock(&m->lock);
		ask(m, r);
		pthread_mutex_unlock(&m->lock);
	}
	return 0;
}

/* ---- chains of waits ---- */

void rt_mpi_task(Ctx *c, int actor)
{
	Mpi *m = c->comm->state;
	atomic_store_explicit(&m->task, rt_task(c, actor), memory_order_relaxed);
}

void rt_mpi_waits(Ctx *c, const RtEnd *e)
{
	Mpi *m = c->comm->state;
	atomic_store(&m->waits, 0);
	atomic_store(&m->since, rt_seconds());
	atomic_store(&m->step, c->step);
	atomic_store(&m->wanted, e);
}

/* The first rank whose message an end waits for; -1: none. */
static int owes(const RtEnd *e)
{
	const RtFlow *f = e->state;
	for (int i = 0; i < f->nrequest; i++)
		if (f->request[i] != MPI_REQUEST_NULL)
			return f->whom[i];
	return -1;
}

/* The answer of a rank since the chain began to be followed; false: it is asked for one.  This rank is at the end of a
 * chain that comes back to it. */
static bool answered(Ctx *c, Mpi *m, RtAsking *a, int r, Answer *got)
{
	if (r == c->rank) {
		*got = (Answer){ atomic_load(&m->task), 0 };
		return true;
	}
	bool heard = atomic_load(&m->heard[r]) != m->before[r];
	pthread_mutex_lock(&m->lock);
	if (heard) {
		*got = m->answered[r];
	} else if (a->clock - a->asked[r] > m->patience / 4) {
		a->asked[r] = a->clock;
		ask(m, r);
	}
	pthread_mutex_unlock(&m->lock);
	return heard;
}

/* Once, if the walk waits for longer than the patience though all ranks answer: for which queue, and for which rank in
 * the end.  Called again and again: each rank of the chain is asked when the one before it has answered. */
static void follow(Ctx *c, Mpi *m)
{
	const RtEnd *e = atomic_load(&m->wanted);
	double since = atomic_load(&m->since), seconds = rt_seconds() - since;
	int first = e ? owes(e) : -1, last = first;
	RtAsking *a = &m->asking[c->aside];
	if (e)
		atomic_store(&m->waits, (uint32_t)(first + 1));
	if (first < 0 || m->warned || seconds < m->patience)
		return;
	for (int r = 0; r < c->nrank && m->followed != since; r++) {
		m->before[r] = atomic_load(&m->heard[r]);
		a->asked[r] = a->clock - m->patience;
	}
	m->followed = since;
	Answer got = { 0 };
	bool circle = false;
	for (int i = 0; i < c->nrank && !circle; i++) {
		if (!answered(c, m, a, last, &got))
			return;
		if (!got.waits)
			break;
		last = (int)got.waits - 1;
		circle = last == c->rank || i == c->nrank - 1;
	}
	if (circle)
		answered(c, m, a, last, &got);
	m->warned = true;
	rt_queues_warn(c, &(RtChain){ .end = e, .step = atomic_load(&m->step), .seconds = seconds, .first = first,
		.last = last, .task = got.task, .circle = circle });
}

/* 0 when all posted messages are complete, RT_LATER, or an exit status.  A waiting thread yields, because there may be
 * more ranks than processors, and after some hundredths of a second sleeps between polls.  So does the thread of the
 * lane while the walk does not wait for it. */
int rt_mpi_passed(Ctx *c, Mpi *m, bool wait)
{
	for (int turn = 0, left, before = 0, code; (left = pending(m, &m->flow)) > 0; turn++) {
		if (!wait)
			return RT_LATER;
		if (turn < 100)
			continue;
		if (turn < TURNS && rt_lane_wanted(c))
			sched_yield();
		else
			usleep(50);
		if (left != before)
			visit_all(c, m, true, false, begin_one);
		before = left;
		if (turn % 100 == 0 && (code = visit_all(c, m, true, false, ask_one)))
			return code;
	}
	m->flow.nrequest = 0;
	return 0;
}

/* Messages make progress only while MPI is called: while any is incomplete, the courier sleeps for moments only. */
int rt_mpi_rest(Ctx *c, uint32_t rung, int what, int turn)
{
	Mpi *m = c->comm->state;
	if (!(what & RT_FOR_JOB) && !rt_queues_wait(c)) {
		atomic_store(&m->bell.asleep, RT_FOR_OWN);
		if (atomic_load(&m->bell.rings) == rung)
			syscall(SYS_futex, &m->bell.rings, FUTEX_WAIT, rung, NULL, NULL, 0);
		atomic_store(&m->bell.asleep, 0);
		return 0;
	}
	if (turn < 100)
		return 0;
	if (turn < TURNS && rt_lane_wanted(c))
		sched_yield();
	else
		usleep(50);
	if (turn == 100)
		visit_all(c, m, what & RT_FOR_JOB, true, begin_one);
	if (turn % 100)
		return 0;
	follow(c, m);
	answer_all(m);                    /* ranks that follow a chain through this one need not wait for the pulse */
	return visit_all(c, m, what & RT_FOR_JOB, true, ask_one);
}

/* The verdict of a step: the largest of each word, so that no order matters. */
void rt_mpi_say(Ctx *c, const RtVerdict *v)
{
	Mpi *m = c->comm->state;
	memcpy(m->vote, (uint32_t[]){ v->code, v->not_finite, v->stop }, sizeof m->vote);
	pthread_mutex_lock(&m->lock);
	MPI_Iallreduce(m->vote, m->verdict, 3, MPI_UINT32_T, MPI_MAX, m->verdicts, &m->heard_all);
	pthread_mutex_unlock(&m->lock);
}

static int visit_ranks(Ctx *c, Mpi *m, Visit *visit)
{
	RtAsking *a = &m->asking[c->aside];
	double now = waiting(m, a);
	int code = 0;
	for (int r = 0; r < c->nrank && !code; r++)
		if (r != c->rank)
			code = visit(c, m, a, r, now);
	return code;
}

int rt_mpi_hear(Ctx *c, RtVerdict *v, bool wait)
{
	Mpi *m = c->comm->state;
	for (int turn = 0, done = 0, code;; turn++) {
		pthread_mutex_lock(&m->lock);
		MPI_Test(&m->heard_all, &done, MPI_STATUS_IGNORE);
		pthread_mutex_unlock(&m->lock);
		if (done)
			break;
		if (!wait)
			return RT_LATER;
		if (turn < 100)
			continue;
		if (turn < TURNS)
			sched_yield();
		else
			usleep(50);
		code = turn % 100 ? 0 : visit_ranks(c, m, turn == 100 ? begin_one : ask_one);
		if (code)
			return code;
	}
	*v = (RtVerdict){ m->verdict[0], m->verdict[1], m->verdict[2] };
	return 0;
}

/* ---- lines ---- */

/* Lays out one side of a block as in a message: without gaps. */
static void packed(RtBlock *b, bool from, size_t elem, size_t *bytes)
{
	int64_t step = b->run, at = (int64_t)(*bytes / elem);
	for (int k = b->n - 1; k >= 0; k--) {
		*(from ? &b->loop[k].from_step : &b->loop[k].to_step) = step;
		step *= b->loop[k].len;
	}
	*(from ? &b->from : &b->to) = at;
	*bytes += (size_t)step * elem;
}

/* The route by which a peer takes from this rank. */
static int open_send(Ctx *c, const RtRoute *r, Peer *p)
{
	RtRoute *k = &p->pack;
	int code = rt_route_open(c, k, r->move, p->rank), n = 0;
	for (int i = 0; i < k->nblock && !code; i++) {
		RtBlock b = k->block[i];
		if (b.rank != c->rank) {
			free(b.loop);
			continue;
		}
		b.first = true;
		packed(&b, false, r->elem, &p->out);
		k->block[n++] = b;
	}
	k->nblock = n;
	k->fill = false;
	return code;
}

static int open_line(Ctx *c, const RtRoute *r, Line *l)
{
	l->take = *r;
	if (r->move->channel < 0 || r->nterm)
		return 0;
	l->take.nblock = 0;
	l->take.block = malloc(((size_t)r->nblock + 1) * sizeof *r->block);
	l->peer = calloc((size_t)r->npeer + 1, sizeof *l->peer);
	if (!l->take.block || !l->peer)
		return no_memory(c);
	for (int i = 0; i < r->nblock; i++) {
		RtBlock b = r->block[i];
		if (b.n && !(b.loop = malloc((size_t)b.n * sizeof *b.loop)))
			return no_memory(c);
		if (b.n)
			memcpy(b.loop, r->block[i].loop, (size_t)b.n * sizeof *b.loop);
		l->take.block[l->take.nblock++] = b;
	}
	for (int i = 0; i < r->npeer; i++) {
		if (r->peer[i] == c->rank)
			continue;
		Peer *p = &l->peer[l->npeer++];
		p->rank = r->peer[i];
		int code = open_send(c, r, p);
		if (code)
			return code;
		for (int k = 0; k < r->nblock; k++)
			if (r->block[k].rank == p->rank)
				packed(&l->take.block[k], true, r->elem, &p->in);
	}
	return 0;
}

int rt_mpi_open(Ctx *c, Mpi *m)
{
	int *most, known, last = RT_MPI_AGREE + c->program->nchannel;
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known);
	if (known && last > *most)
		return rt_error(c, RT_PLAN, "this MPI has tags up to %d, but the channels of this program need %d",
			*most, last);
	m->line = calloc((size_t)c->program->nmove + 1, sizeof *m->line);
	if (!m->line)
		return no_memory(c);
	for (int i = 0; i < c->program->nmove; i++) {
		int code = open_line(c, &c->route[i], &m->line[i]);
		if (code)
			return code;
	}
	return 0;
}

static void leave(Mpi *m, unsigned char **at, size_t *have)
{
	if (*at)
		munmap(*at, *have);
	atomic_fetch_sub(&m->bytes, *have);
	*at = NULL;
	*have = 0;
}

static void close_flow(Mpi *m, RtFlow *f)
{
	leave(m, &f->out, &f->out_room);
	leave(m, &f->in, &f->in_room);
	free(f->request);
	free(f->whom);
}

void rt_mpi_close(const Ctx *c, Mpi *m)
{
	for (int i = 0; m->line && i < c->program->nmove; i++) {
		Line *l = &m->line[i];
		for (int k = 0; k < l->npeer; k++)
			rt_route_close(&l->peer[k].pack);
		for (int k = 0; l->peer && k < l->take.nblock; k++)
			free(l->take.block[k].loop);
		if (l->peer)
			free(l->take.block);
		free(l->peer);
	}
	free(m->line);
	close_flow(m, &m->flow);
}

/* ---- transfers ---- */

/* Buffers for messages: they grow to the largest bucket in the first step. */
static int room(Ctx *c, unsigned char **at, size_t *have, size_t want)
{
	if (want <= *have)
		return 0;
	Mpi *m = c->comm->state;
	leave(m, at, have);
	want = rt_round_up(want, RT_PAGE);
	void *p = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return no_memory(c);
	*at = p;
	*have = want;
	atomic_fetch_add(&m->bytes, want);
	return 0;
}

size_t rt_mpi_room(const Ctx *c)
{
	const Mpi *m = c->comm->state;
	return atomic_load(&m->bytes);
}

static const void *own(void *arg, int rank)
{
	(void)rank;
	return arg;
}

/* The transfer that is being received, the messages of its peers, and its operand on this rank. */
typedef struct Taking { int rank; const Line *line; const unsigned char *const *from; const void *x; } Taking;

static const void *source(void *arg, int rank)
{
	const Taking *k = arg;
	if (rank == k->rank)
		return k->x;
	for (int i = 0; i < k->line->npeer; i++)
		if (k->line->peer[i].rank == rank)
			return k->from[i];
	return NULL;
}

/* Bytes of all messages of a bucket that are sent or received. */
static size_t all_bytes(const Mpi *m, const RtJob *j, bool sends)
{
	size_t sum = 0;
	for (int i = 0; i < j->n; i++)
		for (int k = 0; k < m->line[j->move[i]].npeer; k++) {
			const Peer *p = &m->line[j->move[i]].peer[k];
			sum += rt_round_up(sends ? p->out : p->in, RT_LINE);
		}
	return sum;
}

/* Any transfers.
 *
 *             rank 0              rank 1
 *   x         a a a a             b b b b
 *   pack          [a a]           [b b]
 *   messages          \___________/  ___________
 *             [b b] __/           \__[a a]
 *   y         a a b b             a a b b           in the order of terms
 *
 * All values of a bucket for one peer are one message. */
static const Peer *peer_of(const Mpi *m, int move, int rank)
{
	const Line *l = &m->line[move];
	for (int i = 0; i < l->npeer; i++)
		if (l->peer[i].rank == rank)
			return &l->peer[i];
	return NULL;
}

/* The ranks that take part in any transfer of a bucket; transfers may differ in them, because shards may be empty. */
static int peers_of(const Mpi *m, const RtJob *j, int *rank)
{
	int n = 0;
	for (int i = 0; i < j->n; i++)
		for (int k = 0; k < m->line[j->move[i]].npeer; k++) {
			int who = m->line[j->move[i]].peer[k].rank, at = 0;
			while (at < n && rank[at] != who)
				at++;
			if (at == n)
				rank[n++] = who;
		}
	return n;
}

/* Bytes that one peer sends of one value. */
static size_t comes(const Mpi *m, int move, int rank)
{
	const Peer *p = peer_of(m, move, rank);
	return p ? rt_round_up(p->in, RT_LINE) : 0;
}

static int post_receives(Ctx *c, Mpi *m, RtFlow *f, const RtJob *j)
{
	int who[c->nrank], n = peers_of(m, j, who), code = room(c, &f->in, &f->in_room, all_bytes(m, j, false));
	unsigned char *in = f->in;
	for (int k = 0; k < n && !code; k++) {
		size_t bytes = 0;
		for (int i = 0; i < j->n; i++)
			bytes += comes(m, j->move[i], who[k]);
		code = post(c, f, j, false, in, bytes, who[k]);
		in += bytes;
	}
	return code;
}

static int post_sends(Ctx *c, Mpi *m, RtFlow *f, const RtJob *j)
{
	int who[c->nrank], n = peers_of(m, j, who), code = room(c, &f->out, &f->out_room, all_bytes(m, j, true));
	unsigned char *out = f->out;
	for (int k = 0; k < n && !code; k++) {
		unsigned char *begin = out;
		for (int i = 0; i < j->n; i++) {
			const Peer *p = peer_of(m, j->move[i], who[k]);
			if (!p || !p->out)
				continue;
			rt_route_take(c, &p->pack, out, own, (void *)(uintptr_t)j->x[i]);
			out += rt_round_up(p->out, RT_LINE);
		}
		code = post(c, f, j, true, begin, (size_t)(out - begin), who[k]);
	}
	return code;
}

static void take_exchange(Ctx *c, const Mpi *m, const RtFlow *f, const RtJob *j)
{
	int who[c->nrank], n = peers_of(m, j, who);
	const unsigned char *from[c->nrank], *of[c->nrank], *in = f->in;
	for (int k = 0; k < n; k++) {
		from[k] = in;
		for (int i = 0; i < j->n; i++)
			in += comes(m, j->move[i], who[k]);
	}
	for (int i = 0; i < j->n; i++) {
		Taking now = { .rank = m->rank, .line = &m->line[j->move[i]], .from = of, .x = j->x[i] };
		for (int k = 0; k < n; k++)
			if (peer_of(m, j->move[i], who[k]))
				of[peer_of(m, j->move[i], who[k]) - now.line->peer] = from[k];
		rt_route_take(c, &now.line->take, j->y[i], source, &now);
		for (int k = 0; k < n; k++)
			from[k] += comes(m, j->move[i], who[k]);
	}
}

static int exchange(Ctx *c, Mpi *m, RtJob *j, bool wait)
{
	int code = j->phase ? 0 : post_receives(c, m, &m->flow, j);
	if (!code && !j->phase)
		code = post_sends(c, m, &m->flow, j);
	j->phase = 1;
	code = code ? code : rt_mpi_passed(c, m, wait);
	if (!code)
		take_exchange(c, m, &m->flow, j);
	return code;
}

/* ---- queues ----
 *
 * An end has one piece in flight, packed into buffers of its own.  A piece is complete when MPI has sent it, or when it
 * has been unpacked. */
int rt_mpi_end_open(Ctx *c, RtEnd *e)
{
	e->state = calloc(1, sizeof(RtFlow));
	return e->state ? 0 : no_memory(c);
}

/* Receives that wait for pieces of a next step are cancelled. */
void rt_mpi_end_close(Ctx *c, RtEnd *e)
{
	Mpi *m = c->comm->state;
	RtFlow *f = e->state;
	for (int i = 0; f && i < f->nrequest; i++)
		if (f->request[i] != MPI_REQUEST_NULL) {
			pthread_mutex_lock(&m->lock);
			MPI_Cancel(&f->request[i]);
			MPI_Wait(&f->request[i], MPI_STATUS_IGNORE);
			pthread_mutex_unlock(&m->lock);
		}
	if (f)
		close_flow(m, f);
	free(f);
}

static void *address(const Ctx *c, int value, int64_t piece)
{
	const RtProgram *p = c->program;
	bool window = value < p->nkept ? p->kept[value].t.window : p->value[value - p->nkept].window;
	return (window ? c->window : c->slab) + rt_offset(p, value, piece);
}

int rt_mpi_end_advance(Ctx *c, RtEnd *e, uint64_t k)
{
	Mpi *m = c->comm->state;
	RtFlow *f = e->state;
	const RtQueue *q = e->queue;
	int64_t piece = rt_end_piece(c, e, k);
	void *y[q->n];
	const void *x[q->n];
	RtJob j = { .n = q->n, .move = (int *)q->move, .y = y, .x = x };
	for (int i = 0; i < q->n; i++) {
		y[i] = address(c, q->to[i], piece);
		x[i] = address(c, q->from[i], piece);
	}
	int code = f->posted ? 0 : q->sends ? post_sends(c, m, f, &j) : post_receives(c, m, f, &j);
	f->posted = true;
	if (code || pending(m, f))
		return code ? code : RT_LATER;
	f->nrequest = 0;
	f->posted = false;
	if (!q->sends)
		take_exchange(c, m, f, &j);
	return 0;
}

/* A chunk of an all-reduce, and its received terms. */
typedef struct Chunk { const RtJob *j; const RtRoute *r; size_t lo, len; unsigned char *in; size_t stride; } Chunk;

static size_t share(const Chunk *k, int i)
{
	return i == k->r->nterm ? k->lo + k->len : k->lo + k->len * (size_t)i / (size_t)k->r->nterm / RT_LINE * RT_LINE;
}

static const void *term(void *arg, int i, const RtSpan *s)
{
	const Chunk *k = arg;
	return i == k->r->me ? (const unsigned char *)k->j->x[s->i] + s->from : k->in + (size_t)i * k->stride + s->at;
}

static Chunk chunk_of(Ctx *c, Mpi *m, const RtJob *j)
{
	const RtRoute *r = &c->route[j->move[0]];
	size_t all = rt_bucket_bytes(c, j), most = all < CHUNK ? all : CHUNK;
	Chunk k = { .j = j, .r = r, .lo = j->done, .len = all - j->done < CHUNK ? all - j->done : CHUNK,
		.stride = rt_round_up(most / (size_t)r->nterm + RT_LINE, RT_LINE) };
	if (all <= FEW)
		k.stride = rt_round_up(all, RT_LINE);
	k.in = m->flow.in;
	return k;
}

/* A small bucket: every rank gets all terms. */
static int sum_few(Ctx *c, Mpi *m, RtJob *j, size_t bytes, bool wait)
{
	const RtRoute *r = &c->route[j->move[0]];
	int code = 0;
	if (!j->phase++) {
		code = room(c, &m->flow.out, &m->flow.out_room, bytes);
		code = code ? code : room(c, &m->flow.in, &m->flow.in_room, bytes * (size_t)r->nterm);
		for (int i = 0; i < r->nterm && !code; i++)
			if (i != r->me)
				code = post(c, &m->flow, j, false, m->flow.in + (size_t)i * bytes, bytes, r->term[i]);
		const void *x = code ? NULL : rt_bucket_get(c, j, 0, bytes, m->flow.out);
		for (int i = 0; i < r->nterm && !code; i++)
			if (i != r->me)
				code = post(c, &m->flow, j, true, x, bytes, r->term[i]);
	}
	code = code ? code : rt_mpi_passed(c, m, wait);
	if (!code) {
		Chunk k = chunk_of(c, m, j);
		rt_bucket_sum(c, j, 0, bytes, term, &k, NULL);
	}
	return code;
}

/* An all-reduce, chunk by chunk: each rank gets all terms of its share, sums them, and sends the sum to all.  y may be
 * the memory of x.
 *
 *             rank 0      rank 1      rank 2
 *   x         a0 b0 c0    a1 b1 c1    a2 b2 c2
 *   get       a0 a1 a2    b0 b1 b2    c0 c1 c2
 *   sum       A  .  .     .  B  .     .  .  C       A = a0 + a1 + a2
 *   send      A  B  C     A  B  C     A  B  C
 */
static int post_terms(Ctx *c, Mpi *m, const Chunk *k)
{
	int me = k->r->me, code = 0;
	for (int i = 0; i < k->r->nterm && !code; i++)
		if (i != me)
			code = post(c, &m->flow, k->j, false, k->in + (size_t)i * k->stride,
				share(k, me + 1) - share(k, me), k->r->term[i]);
	for (int i = 0; i < k->r->nterm && !code; i++)
		if (i != me)
			code = post(c, &m->flow, k->j, true, rt_bucket_get(c, k->j, share(k, i), share(k, i + 1),
				m->flow.out + (size_t)i * k->stride), share(k, i + 1) - share(k, i), k->r->term[i]);
	return code;
}

/* The address of a sum: in the results, or, if several values share the chunk, in the buffer of terms until all are
 * complete. */
static unsigned char *sum_at(Ctx *c, const Chunk *k, int i, unsigned char *room)
{
	unsigned char *y;
	return rt_bucket_in_one(c, k->j, share(k, i), share(k, i + 1), &y) ? y : room + (size_t)i * k->stride;
}

static int post_sums(Ctx *c, Mpi *m, Chunk *k)
{
	int me = k->r->me, code = 0;
	unsigned char *sum = sum_at(c, k, me, m->flow.out);
	rt_bucket_sum(c, k->j, share(k, me), share(k, me + 1), term, k, sum);
	for (int i = 0; i < k->r->nterm && !code; i++)
		if (i != me)
			code = post(c, &m->flow, k->j, false, sum_at(c, k, i, m->flow.in),
				share(k, i + 1) - share(k, i), k->r->term[i]);
	for (int i = 0; i < k->r->nterm && !code; i++)
		if (i != me)
			code = post(c, &m->flow, k->j, true, sum, share(k, me + 1) - share(k, me), k->r->term[i]);
	return code;
}

static void put_sums(Ctx *c, Mpi *m, const Chunk *k)
{
	for (int i = 0; i < k->r->nterm; i++) {
		unsigned char *room = i == k->r->me ? m->flow.out : m->flow.in, *at = sum_at(c, k, i, room);
		if (at == room + (size_t)i * k->stride)
			rt_bucket_put(c, k->j, share(k, i), share(k, i + 1), at);
	}
}

static int all_reduce(Ctx *c, Mpi *m, RtJob *j, size_t bytes, bool wait)
{
	Chunk k = chunk_of(c, m, j);
	int code = room(c, &m->flow.out, &m->flow.out_room, k.stride * (size_t)k.r->nterm);
	code = code ? code : room(c, &m->flow.in, &m->flow.in_room, k.stride * (size_t)k.r->nterm);
	while (j->done < bytes && !code) {
		k = chunk_of(c, m, j);
		if (j->phase == 0) {
			code = post_terms(c, m, &k);
			j->phase = 1;
		}
		code = code ? code : rt_mpi_passed(c, m, wait);
		if (!code && j->phase == 1) {
			code = post_sums(c, m, &k);
			j->phase = 2;
			code = code ? code : rt_mpi_passed(c, m, wait);
		}
		if (code)
			return code;
		put_sums(c, m, &k);
		j->phase = 0;
		j->done += k.len;
	}
	return code;
}

int rt_mpi_advance(Ctx *c, RtJob *j, bool wait)
{
	Mpi *m = c->comm->state;
	const RtRoute *r = &c->route[j->move[0]];
	if (!r->nterm)
		return exchange(c, m, j, wait);
	size_t bytes = rt_bucket_bytes(c, j);
	return bytes <= FEW ? sum_few(c, m, j, bytes, wait) : all_reduce(c, m, j, bytes, wait);
}
