/* Ranks as processes of one machine.
 *
 * The parent maps one piece of shared memory, forks the ranks, and waits.  The memory holds a barrier, a few bytes for
 * the program, and one window per rank: values that meet transfers live there, so a collective reads its peers' values
 * where they are.  Nothing has a name in the file system, so nothing can be left behind.
 *
 *   | Shared | scratch | window of rank 0 | window of rank 1 | ... | snapshot of rank 0 | ...
 *
 * Waiting is by futex.  A rank that ends with an error, or is killed, is seen by the parent, which ends the others. */
#include "rt.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
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

enum { PAGE = 4096, SCRATCH = PAGE };

typedef struct Shared {
	_Atomic uint32_t arrived, round;
	_Atomic uint64_t hash;
	_Atomic uint32_t stop;          /* signals that asked for the end */
	_Atomic uint32_t said[2];       /* what rank 0 said last, in turn */
	_Atomic uint32_t worst[2];      /* the largest that any rank said, in turn; it stays */
} Shared;

typedef struct Local { Shared *shared; unsigned char *scratch, *window, *snapshot; size_t stride, snapshot_stride; uint32_t turn, worst; } Local;

static void futex_wait(_Atomic uint32_t *at, uint32_t old)
{
	syscall(SYS_futex, at, FUTEX_WAIT, old, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *at)
{
	syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int barrier(Ctx *c)
{
	Local *l = c->comm->state;
	uint32_t round = atomic_load(&l->shared->round);
	if (atomic_fetch_add(&l->shared->arrived, 1) + 1 == (uint32_t)c->nrank) {
		atomic_store(&l->shared->arrived, 0);
		atomic_fetch_add(&l->shared->round, 1);
		futex_wake(&l->shared->round);
		return 0;
	}
	for (int i = 0; i < 200; i++)
		if (atomic_load(&l->shared->round) != round)
			return 0;
	while (atomic_load(&l->shared->round) == round)
		futex_wait(&l->shared->round, round);
	return 0;
}

/* The same value in the window of rank r: all ranks have one layout. */
static const void *peer(const Ctx *c, const void *mine, int r)
{
	const Local *l = c->comm->state;
	return l->window + (size_t)r * l->stride + ((const unsigned char *)mine - c->window);
}

/* Sum over ranks; x and y in the window.  Each rank sums one block of all ranks, in the order of ranks, then takes the
 * other blocks from their owners: every byte is read p times once and once p times, and the order never changes.
 *
 *             rank 0      rank 1      rank 2
 *   x         a0 b0 c0    a1 b1 c1    a2 b2 c2
 *   sum       A  .  .     .  B  .     .  .  C       A = a0 + a1 + a2
 *   take      A  B  C     A  B  C     A  B  C
 */
static int all_reduce(Ctx *c, float *y, const float *x, int64_t n)
{
	int64_t p = c->nrank, from = c->rank * n / p, to = (c->rank + 1) * n / p;
	barrier(c);
	for (int64_t i = from; i < to; i++)
		y[i] = ((const float *)peer(c, x, 0))[i];
	for (int r = 1; r < c->nrank; r++) {
		const float *q = peer(c, x, r);
		for (int64_t i = from; i < to; i++)
			y[i] += q[i];
	}
	barrier(c);
	for (int64_t r = 0; r < p; r++) {
		int64_t b = r * n / p, e = (r + 1) * n / p;
		if (r != c->rank && e > b)
			memcpy(y + b, (const float *)peer(c, y, (int)r) + b, (size_t)(e - b) * sizeof *y);
	}
	return barrier(c);
}

/* Every rank copies the part of each peer to its place in y.  Parts lie along one axis, so a part is a run of rows:
 * outer rows of len[axis] * inner elements, dim[axis] * inner elements apart. */
static int all_gather(Ctx *c, void *y, const void *x, const RtBox *b, size_t elem)
{
	int axis = 0;
	while (axis < b->rank && b->split[axis] < 0)
		axis++;
	if (axis == b->rank)
		return rt_error(c, RT_PLAN, "a gather of a value that is not split");
	int64_t outer = 1, inner = 1;
	for (int a = 0; a < axis; a++)
		outer *= b->dim[a];
	for (int a = axis + 1; a < b->rank; a++)
		inner *= b->dim[a];
	barrier(c);
	for (int r = 0; r < c->nrank; r++) {
		int64_t at = c->program->rank[r].origin[b->split[axis]];
		int64_t end = r + 1 < c->nrank ? c->program->rank[r + 1].origin[b->split[axis]] : b->dim[axis];
		size_t run = (size_t)((end - at) * inner) * elem;
		const unsigned char *from = peer(c, x, r);
		for (int64_t o = 0; o < outer && run; o++)
			memcpy((unsigned char *)y + (size_t)((o * b->dim[axis] + at) * inner) * elem, from + (size_t)o * run, run);
	}
	return barrier(c);
}

void *rt_shared(const Ctx *c, size_t *bytes)
{
	const Local *l = c->comm->state;
	*bytes = SCRATCH;
	return l->scratch;
}

void *rt_snapshot(const Ctx *c, int rank)
{
	const Local *l = c->comm->state;
	return l->snapshot + (size_t)rank * l->snapshot_stride;
}

/* Two places in turn: rank 0 can be one call ahead of a rank that has yet to read, never two. */
uint32_t rt_agree(Ctx *c, uint32_t mine)
{
	Local *l = c->comm->state;
	_Atomic uint32_t *said = &l->shared->said[l->turn++ & 1];
	if (c->nrank == 1)
		return mine;
	if (c->rank == 0)
		atomic_store(said, mine);
	barrier(c);
	return atomic_load(said);
}

uint32_t rt_worst(Ctx *c, uint32_t mine)
{
	Local *l = c->comm ? c->comm->state : NULL;
	if (c->nrank == 1)
		return mine;
	_Atomic uint32_t *worst = &l->shared->worst[l->worst++ & 1];
	for (uint32_t old = atomic_load(worst); mine > old && !atomic_compare_exchange_weak(worst, &old, mine);)
		;
	barrier(c);
	return atomic_load(worst);
}

uint32_t rt_stop_asked(const Ctx *c)
{
	const Local *l = c->comm->state;
	return atomic_load(&l->shared->stop);
}

/* ---- signals ---- */

static _Atomic uint32_t *stop_flag;     /* in shared memory: the parent counts, ranks look */

static void ask(int sig)
{
	(void)sig;
	atomic_fetch_add(stop_flag, 1);
}

static void ask_once(int sig)
{
	uint32_t none = 0;
	(void)sig;
	atomic_compare_exchange_strong(stop_flag, &none, 1);
}

/* A mapped file that became shorter: its pages are gone. */
static void lost_file(int sig)
{
	static const char text[] = "a file of the data set, or a checkpoint, became shorter while it was read\n";
	(void)sig;
	if (write(2, text, sizeof text - 1) < 0)
		_exit(RT_DATA);
	_exit(RT_DATA);
}

static void on(int sig, void (*what)(int))
{
	struct sigaction a = { .sa_handler = what };
	sigemptyset(&a.sa_mask);
	sigaction(sig, &a, NULL);
}

/* Ranks were built from one plan: with fork they always are, but a transport that starts programs apart relies on it. */
static int agree(Ctx *c)
{
	Local *l = c->comm->state;
	uint64_t none = 0, mine = c->program->hash;
	if (!atomic_compare_exchange_strong(&l->shared->hash, &none, mine) && none != mine)
		return rt_error(c, RT_PLAN, "this rank was built from another plan than its peers");
	return 0;
}

/* A rank reads what belongs to its peers, and cannot write it. */
static int only_read(const Ctx *c, unsigned char *base, size_t stride)
{
	for (int r = 0; r < c->nrank && stride; r++)
		if (r != c->rank && mprotect(base + (size_t)r * stride, stride, PROT_READ))
			return rt_error(c, RT_MEMORY, "cannot protect the memory of rank %d: %s", r, strerror(errno));
	return 0;
}

static int child(const RtProgram *p, Local *l, int rank, pid_t parent, int (*body)(Ctx *, void *), void *arg)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return RT_PEER;
	on(SIGINT, SIG_IGN);            /* the parent sees it, and counts it once */
	on(SIGTERM, ask_once);
	on(SIGBUS, lost_file);
	on(SIGXFSZ, SIG_IGN);
	on(SIGPIPE, SIG_IGN);           /* who reads what is told may leave: report.c goes on without */
	RtComm comm = { "local", all_reduce, all_gather, barrier, l };
	Ctx c = { .program = p, .me = &p->rank[rank], .rank = rank, .nrank = p->nrank, .comm = &comm, .seed = p->seed };
	int code = agree(&c);
	if (!code)
		code = only_read(&c, l->window, l->stride);
	if (!code)
		code = only_read(&c, l->snapshot, l->snapshot_stride);
	if (!code)
		code = rt_device_open(&c, l->window + (size_t)rank * l->stride);
	if (!code) {
		code = body(&c, arg);
		rt_device_close(&c);
	}
	fflush(stdout);
	return code;
}

/* Waits for all; the first that fails takes the others with it, and its code is the job's. */
static int wait_all(pid_t *pid, int n)
{
	int code = 0;
	bool now = false;
	for (int left = n; left > 0;) {
		int status;
		pid_t p = wait(&status);
		if (p < 0 && errno == EINTR && atomic_load(stop_flag) >= 2 && !code) {
			code = RT_STOPPED;      /* asked twice */
			now = true;
			for (int k = 0; k < n; k++)
				if (pid[k])
					kill(pid[k], SIGKILL);
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
			continue;               /* so do the others */
		if (WIFSIGNALED(status))
			fprintf(stderr, "rank %d was ended by signal %d\n", r, WTERMSIG(status));
		for (int k = 0; k < n; k++)
			if (pid[k])
				kill(pid[k], SIGKILL);
	}
	return code;
}

int rt_run(const RtProgram *p, size_t snapshot, int (*body)(Ctx *, void *), void *arg)
{
	Local l = { .stride = (p->window_bytes + PAGE - 1) / PAGE * PAGE };
	l.snapshot_stride = (snapshot + PAGE - 1) / PAGE * PAGE;
	size_t bytes = PAGE + SCRATCH + (l.stride + l.snapshot_stride) * (size_t)p->nrank;
	unsigned char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *pid = calloc((size_t)p->nrank, sizeof *pid), parent = getpid();
	if (base == MAP_FAILED || !pid) {
		fprintf(stderr, "cannot map %zu bytes of shared memory: %s\n", bytes, strerror(errno));
		free(pid);
		return RT_MEMORY;
	}
	l.shared = (Shared *)base;
	l.scratch = base + PAGE;
	l.window = l.scratch + SCRATCH;
	l.snapshot = l.window + l.stride * (size_t)p->nrank;
	stop_flag = &l.shared->stop;
	on(SIGINT, ask);
	on(SIGTERM, ask);
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
