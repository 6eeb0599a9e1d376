/* Ranks as processes that mpirun starts, on one machine or many: make TRANSPORT=mpi.
 *
 * From the forms of a transfer every rank knows what it takes from each peer and what each peer takes from it, so nothing is asked:
 *
 *   sender          packs the blocks that a peer takes, in the order of that peer's route, and sends them as one message
 *   receiver        has all messages, then combines their blocks and its own in the order of terms
 *
 * Sums are made by the receiver, by the same function and in the same order as between processes of one machine, so both transports
 * give the same bits; the reductions of MPI are not used, for their order is MPI's affair.  Only the thread that walks the actions
 * calls MPI. */
#include "run.h"

#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATIENCE = 100 };                /* seconds in which a peer that lives has answered */
enum { MESSAGE = 1 << 30 };             /* bytes of one message at most: MPI counts in int */
enum { FEW = 8 << 10, CHUNK = 4 << 20 };        /* bytes of an all-reduce: in one round; in flight at a time */

/* What one rank sends to and receives from another in one transfer. */
typedef struct Peer { int rank; RtRoute pack; size_t out, in, out_at, in_at; } Peer;
typedef struct Line {
	RtRoute take;                   /* the route, with blocks of peers as they lie in their messages */
	Peer *peer; int npeer;
} Line;

typedef struct Mpi {
	Line *line;                     /* by transfer */
	unsigned char *out, *in;
	MPI_Request *request; int nrequest, room;
	const Line *now;
	const void *x;
	int rank;
} Mpi;

static _Atomic uint32_t asked;          /* signals that asked for the end */

static void ask(int sig)
{
	(void)sig;
	if (atomic_fetch_add(&asked, 1) >= 1)
		_exit(RT_STOPPED);
}

/* ---- messages ---- */

static int no_memory(Ctx *c)
{
	return rt_error(c, RT_MEMORY, "no memory for transfers");
}

static MPI_Request *next_request(Mpi *m)
{
	if (m->nrequest == m->room) {
		int room = m->room ? 2 * m->room : 64;
		MPI_Request *more = realloc(m->request, (size_t)room * sizeof *more);
		if (!more)
			return NULL;
		m->request = more;
		m->room = room;
	}
	return &m->request[m->nrequest++];
}

/* Between two ranks messages arrive in the order in which they were sent, and all ranks walk the same transfers: no tags are needed. */
static int post(Ctx *c, Mpi *m, bool sends, void *data, size_t bytes, int rank)
{
	for (size_t at = 0; at < bytes; at += MESSAGE) {
		int n = (int)(bytes - at < MESSAGE ? bytes - at : MESSAGE);
		MPI_Request *r = next_request(m);
		if (!r)
			return no_memory(c);
		if (sends)
			MPI_Isend((unsigned char *)data + at, n, MPI_BYTE, rank, 0, MPI_COMM_WORLD, r);
		else
			MPI_Irecv((unsigned char *)data + at, n, MPI_BYTE, rank, 0, MPI_COMM_WORLD, r);
	}
	return 0;
}

/* Until all messages of this transfer have passed.  Whoever waits yields: there may be more ranks than processors. */
static int wait_all(Ctx *c, Mpi *m)
{
	double begin = 0;
	for (int done = 0, turn = 0;; turn++) {
		MPI_Testall(m->nrequest, m->request, &done, MPI_STATUSES_IGNORE);
		if (done)
			break;
		if (turn < 100)
			continue;
		sched_yield();
		begin = begin > 0 ? begin : rt_seconds();
		if (turn % 1000 == 0 && rt_seconds() - begin > PATIENCE)
			return rt_error(c, RT_PEER, "a peer has not answered for %d seconds", PATIENCE);
	}
	m->nrequest = 0;
	return 0;
}

/* ---- lines ---- */

/* One side of a block as it lies in a message: without gaps. */
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

/* What a peer takes from this rank. */
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
	if (r->move->here || r->nterm)
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

/* Messages of one transfer lie one after the other. */
static void lay_out(Line *l, size_t *out, size_t *in)
{
	size_t o = 0, n = 0;
	for (int i = 0; i < l->npeer; i++) {
		l->peer[i].out_at = o;
		l->peer[i].in_at = n;
		o += (l->peer[i].out + 63) / 64 * 64;
		n += (l->peer[i].in + 63) / 64 * 64;
	}
	*out = o > *out ? o : *out;
	*in = n > *in ? n : *in;
}

static int open_lines(Ctx *c, Mpi *m)
{
	size_t out = 64, in = CHUNK + 64 * (size_t)c->nrank + FEW * (size_t)c->nrank;
	m->line = calloc((size_t)c->program->nmove + 1, sizeof *m->line);
	if (!m->line)
		return no_memory(c);
	for (int i = 0; i < c->program->nmove; i++) {
		int code = open_line(c, &c->route[i], &m->line[i]);
		if (code)
			return code;
		lay_out(&m->line[i], &out, &in);
	}
	m->out = malloc(out);
	m->in = malloc(in);
	return m->out && m->in ? 0 : no_memory(c);
}

static void close_lines(const Ctx *c, Mpi *m)
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
	free(m->out);
	free(m->in);
	free(m->request);
}

/* ---- transfers ---- */

static const void *own(void *arg, int rank)
{
	(void)rank;
	return arg;
}

static const void *source(void *arg, int rank)
{
	const Mpi *m = arg;
	if (rank == m->rank)
		return m->x;
	for (int i = 0; i < m->now->npeer; i++)
		if (m->now->peer[i].rank == rank)
			return m->in + m->now->peer[i].in_at;
	return NULL;
}

/* Any transfer.
 *
 *             rank 0              rank 1
 *   x         a a a a             b b b b
 *   pack          [a a]           [b b]
 *   messages          \___________/  ___________
 *             [b b] __/           \__[a a]
 *   y         a a b b             a a b b           in the order of terms
 */
static int exchange(Ctx *c, Mpi *m, const Line *l, void *y, const void *x)
{
	int code = 0;
	for (int i = 0; i < l->npeer && !code; i++)
		code = post(c, m, false, m->in + l->peer[i].in_at, l->peer[i].in, l->peer[i].rank);
	for (int i = 0; i < l->npeer && !code; i++) {
		const Peer *p = &l->peer[i];
		if (!p->out)
			continue;
		rt_route_take(c, &p->pack, m->out + p->out_at, own, (void *)x);
		code = post(c, m, true, m->out + p->out_at, p->out, p->rank);
	}
	if (!code)
		code = wait_all(c, m);
	m->now = l;
	m->x = x;
	if (!code)
		rt_route_take(c, &l->take, y, source, m);
	return code;
}

/* A few bytes: everybody gets all terms. */
static int sum_few(Ctx *c, Mpi *m, const RtRoute *r, void *y, const void *x)
{
	size_t bytes = (size_t)r->count * r->elem;
	const void *term[r->nterm];
	int code = 0;
	for (int i = 0; i < r->nterm && !code; i++) {
		unsigned char *to = m->in + (size_t)i * FEW;
		term[i] = i == r->me ? x : to;
		if (i != r->me)
			code = post(c, m, false, to, bytes, r->term[i]);
	}
	for (int i = 0; i < r->nterm && !code; i++)
		if (i != r->me)
			code = post(c, m, true, (void *)x, bytes, r->term[i]);
	if (!code)
		code = wait_all(c, m);
	if (!code)
		rt_route_sum(r, y, term, r->nterm, r->count);
	return code;
}

/* An all-reduce, chunk by chunk: each rank gets all terms of its share, sums them, and sends the sum to all.  y may lie on x.
 *
 *             rank 0      rank 1      rank 2
 *   x         a0 b0 c0    a1 b1 c1    a2 b2 c2
 *   get       a0 a1 a2    b0 b1 b2    c0 c1 c2
 *   sum       A  .  .     .  B  .     .  .  C       A = a0 + a1 + a2
 *   send      A  B  C     A  B  C     A  B  C
 */
static int all_reduce(Ctx *c, Mpi *m, const RtRoute *r, void *y, const void *x)
{
	int n = r->nterm, code = 0;
	int64_t chunk = CHUNK / (int64_t)r->elem / n * n;
	for (int64_t lo = 0; lo < r->count && !code; lo += chunk) {
		int64_t len = r->count - lo < chunk ? r->count - lo : chunk, at[n + 1];
		const void *term[n];
		for (int i = 0; i <= n; i++)
			at[i] = lo + len * i / n;
		size_t mine = (size_t)(at[r->me + 1] - at[r->me]) * r->elem;
		for (int i = 0; i < n && !code; i++) {
			unsigned char *to = m->in + (size_t)i * ((mine + 63) / 64 * 64);
			term[i] = i == r->me ? (const unsigned char *)x + (size_t)at[i] * r->elem : to;
			if (i != r->me)
				code = post(c, m, false, to, mine, r->term[i]);
		}
		for (int i = 0; i < n && !code; i++)
			if (i != r->me)
				code = post(c, m, true, (unsigned char *)x + (size_t)at[i] * r->elem, (size_t)(at[i + 1] - at[i]) * r->elem, r->term[i]);
		if (!code)
			code = wait_all(c, m);
		unsigned char *sum = (unsigned char *)y + (size_t)at[r->me] * r->elem;
		if (!code)
			rt_route_sum(r, sum, term, n, at[r->me + 1] - at[r->me]);
		for (int i = 0; i < n && !code; i++)
			if (i != r->me)
				code = post(c, m, false, (unsigned char *)y + (size_t)at[i] * r->elem, (size_t)(at[i + 1] - at[i]) * r->elem, r->term[i]);
		for (int i = 0; i < n && !code; i++)
			if (i != r->me)
				code = post(c, m, true, sum, mine, r->term[i]);
		if (!code)
			code = wait_all(c, m);
	}
	return code;
}

static int move(Ctx *c, const RtRoute *r, void *y, const void *x)
{
	Mpi *m = c->comm->state;
	if (r->move->here) {
		rt_route_take(c, r, y, own, (void *)x);
		return 0;
	}
	if (!r->npeer)
		return 0;
	if (!r->nterm)
		return exchange(c, m, &m->line[r - c->route], y, x);
	return (size_t)r->count * r->elem <= FEW ? sum_few(c, m, r, y, x) : all_reduce(c, m, r, y, x);
}

/* ---- agreement ---- */

static int collective(Ctx *c, MPI_Request *r)
{
	Mpi *m = c->comm->state;
	MPI_Request *slot = next_request(m);
	if (!slot)
		return no_memory(c);
	*slot = *r;
	return wait_all(c, m);
}

static int barrier(Ctx *c)
{
	MPI_Request r;
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	return collective(c, &r);
}

uint32_t rt_agree(Ctx *c, uint32_t mine)
{
	MPI_Request r;
	MPI_Ibcast(&mine, 1, MPI_UINT32_T, 0, MPI_COMM_WORLD, &r);
	return collective(c, &r) ? UINT32_MAX : mine;
}

uint32_t rt_worst(Ctx *c, uint32_t mine)
{
	MPI_Request r;
	uint32_t worst = mine;
	MPI_Iallreduce(&mine, &worst, 1, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD, &r);
	return collective(c, &r) ? RT_PEER : worst;
}

uint32_t rt_stop_asked(const Ctx *c)
{
	(void)c;
	return atomic_load(&asked);
}

/* ---- start ---- */

/* Ranks that were built from another plan than rank 0, or for another kind of processor, must not meet. */
static int same_plan(Ctx *c)
{
	struct { uint64_t hash, order; double number; } mine = { c->program->hash, 0x0102030405060708u, 1.5 }, first = mine;
	MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
	int wrong = memcmp(&mine, &first, sizeof mine) != 0, any = 0;
	MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (wrong)
		return rt_error(c, RT_PLAN, "this rank was built from another plan than rank 0");
	return any ? RT_PLAN : 0;
}

static int on_this_machine(void)
{
	MPI_Comm here;
	int n = 1;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &n);
	MPI_Comm_free(&here);
	return n;
}

static int one_rank(Ctx *c, Mpi *m, int (*body)(Ctx *, void *), void *arg)
{
	size_t bytes = (c->program->window_bytes + 4095) / 4096 * 4096;
	unsigned char *window = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
	if (window == MAP_FAILED)
		return no_memory(c);
	int code = same_plan(c);
	if (!code)
		code = rt_parts_open(c);
	if (!code)
		code = open_lines(c, m);
	if (!code)
		code = rt_device_open(c, window);
	if (!code) {
		code = body(c, arg);
		rt_device_close(c);
	}
	close_lines(c, m);
	rt_parts_close(c);
	if (window)
		munmap(window, bytes);
	return code;
}

int rt_run(const RtProgram *p, int (*body)(Ctx *, void *), void *arg)
{
	int rank = 0, size = 1, level;
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
		return RT_PEER;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != p->nrank) {
		if (rank == 0)
			fprintf(stderr, "this program was planned for %d rank%s, but %d were started: mpirun -n %d %s\n", p->nrank, p->nrank == 1 ? "" : "s", size, p->nrank, "trainer");
		MPI_Finalize();
		return RT_PLAN;
	}
	rt_signals(ask);
	Mpi m = { .rank = rank };
	RtComm comm = { "mpi", move, barrier, NULL, &m };
	Ctx c = { .program = p, .role = p->role_of ? p->role_of[rank] : 0, .rank = rank, .nrank = size, .comm = &comm, .seed = p->seed, .here = on_this_machine() };
	int code = one_rank(&c, &m, body, arg);
	fflush(stdout);
	if (code && code != RT_STOPPED)
		MPI_Abort(MPI_COMM_WORLD, code);        /* the others wait for this one */
	MPI_Finalize();
	return code;
}
