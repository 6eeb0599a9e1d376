/* --probe: measures this computer once, in about two seconds, and prints the performance of one rank on one core as a
 * file for --machine.
 *
 *   arithmetic  Multiply-adds in registers, of the widest vectors of the processor, as the inner loop of a product does
 *               them.  A product reaches nine tenths of that.
 *   memory      A long array is updated by another, as an optimizer does it, in pages as large as those of a rank, on
 *               all cores at once.  So is a short one, which fits into the cache of one core of any processor.
 *   links       Ranks of the local transport synchronise, then copy from shared memory into their own, all at once.
 *               Here two processes with a core each synchronise by spinning.
 *   turn        Ranks that share cores sleep while they wait.  Twice as many processes as cores synchronise like this;
 *               half of the time is a turn, because two processes share a core.
 *   overlap     How much a computation, half of it in memory, slows down while another core copies.  The rest of the
 *               time of the copy is hidden.
 *
 * Other work of the computer only makes things slower, so the quickest of several tries is taken each time. */
#include "plan/plan.h"

#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { LARGE = 64 << 20, SMALL = 512 << 10, TRIES = 5, COPIES = 15, SPINS = 20000, COPYING = 64, MEETING = 1024 };

static const double LATE = 5e-6;        /* seconds by which one rank comes later than another to a transfer */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve sums hide the latency of multiply-add on every processor of the last ten years.  fused: the intrinsic, because
 * C itself rounds the product. */
#define STEP(fused, k) s[k] = fused(s[k], a, b);
#define LOOP(name, width, fused, how) \
	how static double name(int64_t turns) \
	{ \
		typedef float Vec __attribute__((vector_size(4 * width))); \
		Vec s[12] = { { 0 } }, a, b; \
		for (int i = 0; i < width; i++) { \
			a[i] = 0.5f; \
			b[i] = 0.25f; \
		} \
		__asm__ volatile("" : "+m"(a), "+m"(b)); \
		double t = now(); \
		for (int64_t i = 0; i < turns; i++) { \
			STEP(fused, 0) STEP(fused, 1) STEP(fused, 2) STEP(fused, 3) STEP(fused, 4) STEP(fused, 5) \
			STEP(fused, 6) STEP(fused, 7) STEP(fused, 8) STEP(fused, 9) STEP(fused, 10) STEP(fused, 11) \
		} \
		__asm__ volatile("" : : "m"(s)); \
		return (double)turns * 12 * width * 2 / (now() - t); \
	}
#define PLAIN(x, a, b) ((x) * (a) + (b))

LOOP(plain, 4, PLAIN, )
#if defined(__x86_64__)
LOOP(avx2, 8, _mm256_fmadd_ps, __attribute__((target("avx2,fma"))))
LOOP(avx512, 16, _mm512_fmadd_ps, __attribute__((target("avx512f"))))
#endif

static double multiply(int64_t turns)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		return avx512(turns);
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return avx2(turns);
#endif
	return plain(turns);
}

static double arithmetic(void)
{
	double best = 0;
	for (int i = 0; i < TRIES; i++)
		best = fmax(best, multiply(5000000));
	return 0.9 * best;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

typedef float Floats __attribute__((vector_size(32)));

static void copy(char *a, const char *b)
{
	memcpy(a, b, LARGE);
}

static void update_first(char *a, const char *b, size_t bytes)
{
	Floats *x = (Floats *)(void *)a;
	const Floats *y = (const Floats *)(const void *)b;
	for (size_t i = 0; i < bytes / sizeof *x; i++)
		x[i] = x[i] * 0.5f + y[i];
}

static void update(char *a, const char *b)
{
	update_first(a, b, LARGE);
}

/* As many bytes, but in the cache. */
static void update_small(char *a, const char *b)
{
	for (int i = 0; i < LARGE / SMALL; i++)
		update_first(a, b, SMALL);
}

typedef void Through(char *a, const char *b);

/* The median of several times, in seconds: the least would be of a moment at which the other processes paused. */
static double usual(Through *go, char *a, const char *b)
{
	double took[COPIES];
	for (int i = 0; i < COPIES; i++) {
		double t = now();
		go(a, b);
		took[i] = now() - t;
	}
	qsort(took, COPIES, sizeof *took, by_size);
	return took[COPIES / 2];
}

/* A process that does not outlive this one. */
static pid_t spawn(void)
{
	pid_t p = fork();
	if (!p)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return p;
}

/* Starts processes that do this for ever and returns their number; all are running then.  Each has an own copy of the
 * array that it writes, because private pages are copied on write.  at: in memory that all share. */
static int begin(Through *go, char *a, const char *b, _Atomic int *at, int wanted, pid_t *child)
{
	int n = 0;
	atomic_store(at, 0);
	for (; n < wanted && n < COPYING; n++) {
		child[n] = spawn();
		if (!child[n])
			for (go(a, b), atomic_fetch_add(at, 1);;)
				go(a, b);
		if (child[n] < 0)
			break;
	}
	while (atomic_load(at) < n)
		go(a, b);
	return n;
}

static void end(const pid_t *child, int n)
{
	for (int i = 0; i < n; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
}

/* Seconds, on all cores at once. */
static double together(Through *go, char *a, const char *b, void *shared, int cores)
{
	pid_t child[COPYING];
	int n = begin(go, a, b, shared, cores - 1, child);
	double t = usual(go, a, b);
	end(child, n);
	return t;
}

/* Seconds of arithmetic and of a copy that takes about as long. */
static double mixture(char *a, const char *b)
{
	double best = INFINITY;
	for (int i = 0; i < TRIES; i++) {
		double t = now();
		multiply(5000000);
		copy(a, b);
		best = fmin(best, now() - t);
	}
	return best;
}

static double hidden(char *a, const char *b, void *shared, int cores)
{
	pid_t child[COPYING];
	if (cores < 2)
		return 0;
	double alone = mixture(a, b);
	int n = begin(copy, a, b, shared, 1, child);
	double beside = mixture(a, b);
	end(child, n);
	return n ? fmax(0, fmin(1, alone / beside)) : 0;        /* 1 - (beside - alone) / beside */
}

/* ---- synchronising ---- */

typedef struct Meeting {
	_Atomic uint32_t at, asleep;
	char rest[64 - 2 * sizeof(uint32_t)];
} Meeting;

/* A barrier, as ranks of the local transport have it: announces its turn, then waits for each of the others. */
static void meet(Meeting *list, int n, int me, uint32_t turn, int spins)
{
	atomic_store(&list[me].at, turn);
	if (atomic_load(&list[me].asleep))
		syscall(SYS_futex, &list[me].at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	for (int i = 0; i < n; i++) {
		uint32_t at = atomic_load(&list[i].at);
		for (int k = 0; k < spins && at < turn; k++)
			at = atomic_load(&list[i].at);
		if (at >= turn)
			continue;
		atomic_fetch_add(&list[i].asleep, 1);
		while ((at = atomic_load(&list[i].at)) < turn)
			syscall(SYS_futex, &list[i].at, FUTEX_WAIT, at, NULL, NULL, 0);
		atomic_fetch_sub(&list[i].asleep, 1);
	}
}

/* Seconds of a barrier: the median, which is between the quickest, where all happen to come at once, and those that
 * other work delayed. */
static double meet_often(Meeting *list, int n, int me, int spins)
{
	enum { GROUPS = 51, EACH = 10 };
	double took[GROUPS];
	uint32_t turn = 0;
	for (double t = now(); now() - t < 0.03;)       /* until the system has moved each to its core */
		multiply(100000);
	for (int g = 0; g < GROUPS; g++) {
		double t = now();
		for (int i = 0; i < EACH; i++)
			meet(list, n, me, ++turn, spins);
		took[g] = (now() - t) / EACH;
	}
	qsort(took, GROUPS, sizeof *took, by_size);
	return took[GROUPS / 2];
}

/* Binds the process to one of these processors, the one with so many before it, as a rank with its own core is. */
static void stay(const cpu_set_t *all, int before)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, all) && before-- == 0)
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof one, &one);         /* if that fails, the system may move it */
}

/* Seconds of one barrier of n processes, which spin when each has a core, else sleep; -1: they cannot be created. */
static double meet_once(void *shared, int n, const cpu_set_t *all)
{
	bool apart = n <= CPU_COUNT(all);
	Meeting *list = shared;
	pid_t child[MEETING];
	int k = 0, spins = apart ? SPINS : 0;
	memset(list, 0, sizeof *list * (size_t)n);
	for (; k + 1 < n; k++) {
		child[k] = spawn();
		if (!child[k]) {
			if (apart)
				stay(all, k + 1);
			meet_often(list, n, k + 1, spins);
			_exit(0);
		}
		if (child[k] < 0)
			break;
	}
	if (apart)
		stay(all, 0);
	double t = k + 1 == n ? meet_often(list, n, 0, spins) : -1;
	sched_setaffinity(0, sizeof *all, all);
	if (t < 0)                              /* those that exist wait for those that do not */
		end(child, k);
	for (int i = 0; i < k && t >= 0; i++)
		waitpid(child[i], NULL, 0);
	return t;
}

static double meeting(void *shared, int n, const cpu_set_t *all)
{
	double best = INFINITY;
	for (int i = 0; i < TRIES; i++)
		best = fmin(best, meet_once(shared, n, all));
	return best;
}

/* Seconds that each rank that shares a core adds to a barrier. */
static double taking_turns(void *shared, const cpu_set_t *all)
{
	int cores = CPU_COUNT(all);
	return cores > MEETING / 2 ? 0 : fmax(0, meeting(shared, 2 * cores, all)) / 2;
}

/* Memory; private memory is allocated like that of a rank (slab.c), in huge pages where the system has them. */
static void *pages(int how)
{
	enum { HUGE = 2 << 20 };
	char *p = mmap(NULL, LARGE + HUGE, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	p += (HUGE - (uintptr_t)p % HUGE) % HUGE;
	if (how == MAP_PRIVATE)
		madvise(p, LARGE, MADV_HUGEPAGE);
	memset(p, 0, LARGE);
	return p;
}

int probe_device(FILE *f)
{
	char *a = pages(MAP_PRIVATE), *b = pages(MAP_PRIVATE), *shared = pages(MAP_SHARED);
	cpu_set_t all;
	CPU_ZERO(&all);
	if (sched_getaffinity(0, sizeof all, &all))
		CPU_SET(0, &all);
	int cores = CPU_COUNT(&all);
	fflush(NULL);
	double met = a && b && shared ? meeting(shared, 2, &all) : -1;
	if (met < 0) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "no memory or process to measure with");
		return -1;
	}
	double flops = arithmetic();
	double bytes = 3.0 * LARGE / together(update, a, b, shared, cores);
	double link = LARGE / together(copy, a, shared, shared, cores);
	double cached = 3.0 * LARGE / together(update_small, a, b, shared, cores);
	double memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	fprintf(f, "# one rank on one core of this computer, measured by sbpcc --probe\n");
	fprintf(f, "flops %.3g\nhalf %.3g\nbytes %.3g\nstart 5e-7\n", flops, flops, bytes);
	fprintf(f, "cache %d %.3g\n", SMALL, cached);
	fprintf(f, "cores %d\nturn %.3g\noverlap %.2g\n", cores, taking_turns(shared, &all),
		hidden(a, b, shared, cores));
	fprintf(f, "# memory %.3g             of a rank, when there are as many as cores\n",
		floor(memory_bytes / cores));
	fprintf(f, "link * %.3g %.3g\n", LATE + 4 * met, link);
	return ferror(f) ? -1 : 0;
}
