/* --probe: measures this computer once, in about two seconds, and prints the performance of one rank on one core as a file for --machine.
 *
 * Arithmetic: multiply-adds in registers, as the inner loop of a product does, of the widest vectors that there are; nine tenths of that
 * is what a product reaches.  Memory: a long array is updated by another, as an optimizer does, in pages as large as those of a rank, on all cores
 * at once, as ranks do, and a short one, of a size that the cache of one core holds everywhere.  Links: ranks of the local transport copy from memory that they share into their own, all at once; before that they meet, as
 * two processes do here that have a core each and look for each other.  Where ranks share cores they sleep until the others have come: what
 * it takes twice as many processes as cores to meet so, for each of two that share a core, is a turn.  Overlap: what is left of the time that
 * another core copies, when computing, half of it in memory, becomes slower by it.
 *
 * What else the computer does meanwhile only makes things slower, so the quickest of some tries is taken each time. */
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

static const double LATE = 5e-6;        /* ranks meet twice in a transfer, and one is later than the other */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve sums hide the latency of multiply-add on every processor of the last ten years.  fused: how it is asked for, since C by itself
 * rounds products. */
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

/* As many bytes, but of what is in the cache. */
static void update_small(char *a, const char *b)
{
	for (int i = 0; i < LARGE / SMALL; i++)
		update_first(a, b, SMALL);
}

typedef void Through(char *a, const char *b);

/* Seconds, usually: the least are those of a moment at which the others paused. */
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

/* Others that do this for ever, each with an array of its own to write, for it becomes its own by that, and how many there are; all are at it
 * when this returns.  at: in memory that all share. */
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

/* Seconds of arithmetic, and of as much memory as takes about as long. */
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

/* ---- meeting ---- */

typedef struct Meeting {
	_Atomic uint32_t at, asleep;
	char rest[64 - 2 * sizeof(uint32_t)];
} Meeting;

/* As ranks of the local transport do: says that it is so far, then waits for each of the others. */
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

/* Most meetings are between the quickest, when all happen to come at once, and those that something else held up. */
static double meet_often(Meeting *list, int n, int me, int spins)
{
	enum { GROUPS = 51, EACH = 10 };
	double took[GROUPS];
	uint32_t turn = 0;
	for (double t = now(); now() - t < 0.03;)       /* until each is on the core that it will stay on */
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

/* On the one of these processors that has so many before it, as ranks are that have one each. */
static void stay(const cpu_set_t *all, int before)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, all) && before-- == 0)
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof one, &one);         /* where it may not, it stays for as long as it likes */
}

/* Seconds of one meeting, of n processes, which look for each other when each has a core; -1: they cannot be made. */
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
	if (t < 0)                              /* who is there waits for those who are not */
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

/* What each rank that shares a core adds to a meeting. */
static double taking_turns(void *shared, const cpu_set_t *all)
{
	int cores = CPU_COUNT(all);
	return cores > MEETING / 2 ? 0 : fmax(0, meeting(shared, 2 * cores, all)) / 2;
}

/* Private ones lie as those of a rank do (slab.c), in large pages where there are any. */
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
	double flops = arithmetic(), bytes = 3.0 * LARGE / together(update, a, b, shared, cores), link = LARGE / together(copy, a, shared, shared, cores);
	double cached = 3.0 * LARGE / together(update_small, a, b, shared, cores);
	double memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	fprintf(f, "# one rank on one core of this computer, measured by sbpcc --probe\nflops %.3g\nhalf %.3g\nbytes %.3g\nstart 5e-7\n", flops, flops, bytes);
	fprintf(f, "cache %d %.3g\n", SMALL, cached);
	fprintf(f, "cores %d\nturn %.3g\noverlap %.2g\n", cores, taking_turns(shared, &all), hidden(a, b, shared, cores));
	fprintf(f, "# memory %.3g             of a rank, when there are as many as cores\n", floor(memory_bytes / cores));
	fprintf(f, "link * %.3g %.3g\n", LATE + 4 * met, link);
	return ferror(f) ? -1 : 0;
}
