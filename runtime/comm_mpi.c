/* Ranks as processes that mpirun starts, on one machine or several: make TRANSPORT=mpi.  This file starts and ends them
 * and lets them agree; mpi_moves.c moves values. */
#include "mpi_moves.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* seconds within which all ranks must start; within which mpirun must end them */
enum { START = 100, GRACE = 5 };
typedef RtMpi Mpi;

static Mpi *here;                       /* this rank */
static _Atomic uint32_t asked;          /* signals that asked for the end */
static bool speaks;                     /* this is rank 0, which prints messages */

static void ask(int sig)
{
	(void)sig;
	if (rt_stops_now(atomic_fetch_add(&asked, 1) + 1, speaks))
		_exit(RT_STOPPED);
}

/* ---- the end ---- */

/* How this process ends if a call of MPI does not return, for example because the network is down. */
static struct { char text[160]; int code; } late;

static void end_late(int sig)
{
	(void)sig;
	if (write(2, late.text, strlen(late.text)) < 0)
		_exit(late.code);
	_exit(late.code);
}

static void end_within(double seconds, int code, const char *where)
{
	late.code = code;
	late.text[0] = 0;
	if (where)
		snprintf(late.text, sizeof late.text, "%s: other ranks have not answered for %.0f seconds\n",
			where, seconds);
	rt_on(SIGALRM, end_late);
	alarm(seconds < 1 ? 1 : (unsigned)seconds);
}

/* Ends this rank, and through mpirun the others.  mpirun may be unreachable, so there is a time limit. */
static _Noreturn void end(int code)
{
	speaks = false;                 /* mpirun signals the ranks that it ends */
	fflush(stdout);
	fflush(stderr);
	end_within(GRACE, code, NULL);
	pthread_mutex_lock(&here->lock);
	MPI_Abort(MPI_COMM_WORLD, code);
	_exit(code);
}

/* ---- agreement ---- */

/* Values go down a tree of ranks, or up, so that a rank that waits knows for which one:
 *
 *         0
 *       /   \
 *      1     2
 *     / \   /
 *    3   4 5
 *
 * The result decides what all ranks do next: a rank that cannot get it ends. */
static void settle(Ctx *c, int code)
{
	code = code ? code : rt_mpi_passed(c, c->comm->state, true);
	if (code)
		end(code);
}

static void down(Ctx *c, int root, void *word, size_t bytes)
{
	if (c->nrank == 1)
		return;                 /* a library has no transport */
	Mpi *m = c->comm->state;
	int all = c->nrank, at = (c->rank - root + all) % all;  /* the place in the tree below root */
	if (at)
		settle(c, rt_mpi_post(c, m, RT_MPI_AGREE, false, word, bytes, ((at - 1) / 2 + root) % all));
	for (int k = 2 * at + 1, n = 0; n < 2 && k < all; k++, n++)
		settle(c, rt_mpi_post(c, m, RT_MPI_AGREE, true, word, bytes, (k + root) % all));
}

static uint32_t up(Ctx *c, uint32_t worst)
{
	if (c->nrank == 1)
		return worst;
	Mpi *m = c->comm->state;
	for (int k = 2 * c->rank + 1, n = 0; n < 2 && k < c->nrank; k++, n++) {
		uint32_t below = 0;
		settle(c, rt_mpi_post(c, m, RT_MPI_AGREE, false, &below, sizeof below, k));
		worst = below > worst ? below : worst;
	}
	if (c->rank)
		settle(c, rt_mpi_post(c, m, RT_MPI_AGREE, true, &worst, sizeof worst, (c->rank - 1) / 2));
	return worst;
}

uint32_t rt_agree(Ctx *c, uint32_t mine)
{
	down(c, 0, &mine, sizeof mine);
	return mine;
}

void rt_broadcast(Ctx *c, int from, void *what, size_t bytes)
{
	down(c, from, what, bytes);
}

uint32_t rt_worst(Ctx *c, uint32_t mine)
{
	return rt_agree(c, up(c, mine));
}

static int barrier(Ctx *c)
{
	return (int)rt_worst(c, 0);
}

uint32_t rt_stop_asked(const Ctx *c)
{
	(void)c;
	return atomic_load(&asked);
}

/* ---- start ---- */

/* The number of ranks on this machine; *first: this is the first of them; *bound: mpirun gave it processors of its
 * own. */
static int on_this_machine(bool *first, bool *bound)
{
	MPI_Comm here;
	int n = 1, rank = 0;
	cpu_set_t mine, shared;
	CPU_ZERO(&mine);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &n);
	MPI_Comm_rank(here, &rank);
	*first = !rank;
	cpu_set_t *all = calloc((size_t)n, sizeof *all);
	*bound = !sched_getaffinity(0, sizeof mine, &mine);
	if (!all)
		MPI_Abort(MPI_COMM_WORLD, RT_MEMORY);
	if (MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, here) != MPI_SUCCESS)
		*bound = false;
	for (int r = 0; r < n && *bound; r++) {
		CPU_AND(&shared, &mine, &all[r]);
		*bound = r == rank || !CPU_COUNT(&shared);
	}
	free(all);
	MPI_Comm_free(&here);
	return n;
}

static int one_rank(Ctx *c, Mpi *m, int (*body)(Ctx *, void *), void *arg)
{
	size_t bytes = rt_round_up(c->program->window_bytes, RT_PAGE);
	unsigned char *window = bytes
		? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
	if (window == MAP_FAILED)
		return rt_error(c, RT_MEMORY, "no memory for the window");
	int code = rt_mpi_pulse_open(c, m);
	if (!code)
		code = rt_same_plan(c);
	c->comm->taken = rt_memory_taken();
	if (!code)
		code = rt_shards_open(c);
	if (!code)
		code = rt_mpi_open(c, m);
	if (!code)
		code = rt_device_open(c, window);
	if (!code) {
		code = body(c, arg);
		rt_device_close(c);
	}
	rt_mpi_pulse_close(c, m);
	rt_mpi_close(c, m);
	rt_shards_close(c);
	if (window)
		munmap(window, bytes);
	return code;
}

static void publish(Ctx *c, RtJob *j)
{
	(void)c;
	(void)j;
}

/* All ranks, started by mpirun, call it. */
int rt_run(const RtProgram *p, int (*body)(Ctx *, void *), void *arg)
{
	int level;
	Mpi m = { .patience = rt_patience(), .lock = PTHREAD_MUTEX_INITIALIZER };
	here = &m;
	/* some may not have been started yet */
	end_within(m.patience > START ? m.patience : START, RT_PEER, "start");
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS)
		return RT_PEER;
	if (level < MPI_THREAD_SERIALIZED) {
		fprintf(stderr, "this MPI supports one thread only; a trainer calls it from several, one at a time "
			"(MPI_THREAD_SERIALIZED)\n");
		MPI_Abort(MPI_COMM_WORLD, RT_PEER);
	}
	bool first, bound;
	int rank = 0, size = 1, near = on_this_machine(&first, &bound);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	alarm(0);
	int code = size == p->nrank ? 0 : RT_PLAN;
	if (code && rank == 0)
		fprintf(stderr, "this program was planned for %d rank%s, but %d were started: mpirun -n %d %s\n",
			p->nrank, p->nrank == 1 ? "" : "s", size, p->nrank, "trainer");
	if (!code) {
		speaks = rank == 0;
		rt_signals(ask);
		m.rank = rank;
		RtComm comm = { .name = "mpi", .publish = publish, .advance = rt_mpi_advance, .barrier = barrier,
			.say = rt_mpi_say, .hear = rt_mpi_hear,
			.room = rt_mpi_room, .bell = &m.bell, .rest = rt_mpi_rest,
			.end_open = rt_mpi_end_open, .end_close = rt_mpi_end_close, .end_advance = rt_mpi_end_advance,
			.task = rt_mpi_task, .waits = rt_mpi_waits,
			.state = &m };
		Ctx c = { .program = p, .role = p->role_of ? p->role_of[rank] : 0, .rank = rank, .nrank = size,
			.comm = &comm, .seed = p->seed, .here = near, .first_here = first, .bound = bound };
		code = one_rank(&c, &m, body, arg);
		if (code && code != RT_STOPPED)
			end(code);
	}
	fflush(stdout);
	end_within(m.patience, RT_PEER, "end");
	MPI_Finalize();
	alarm(0);
	return code;
}
