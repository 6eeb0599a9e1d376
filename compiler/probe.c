/* --probe: measures this computer once, in about two seconds, and prints the figures of one rank on one core as a file for --machine.
 *
 * Arithmetic: multiply-adds in registers, as the inner loop of a product does, of the widest vectors that there are; eight tenths of that
 * is what a product reaches.  Memory: a long array is read and another written, on all cores at once, as ranks do.  Links: two processes that share memory, as
 * ranks of the local transport do, hand a word back and forth, and one copies what the other has just written. */
#include "compiler.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 64 << 20, TURNS = 20000, SOME = 50, TRIES = 5 };

static const double LATE = 5e-6;        /* ranks meet twice in a transfer, and one is later than the other */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Twelve sums hide the latency of multiply-add on every processor of the last ten years. */
#define STEP(k) s[k] = s[k] * a + b;
#define LOOP(name, width, how) \
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
			STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) \
			STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11) \
		} \
		__asm__ volatile("" : : "m"(s)); \
		return (double)turns * 12 * width * 2 / (now() - t); \
	}

LOOP(plain, 4, )
#if defined(__x86_64__)
LOOP(avx2, 8, __attribute__((target("avx2,fma"))))
LOOP(avx512, 16, __attribute__((target("avx512f"))))
#endif

static double arithmetic(void)
{
	double (*run)(int64_t) = plain, best = 0;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		run = avx2;
	if (__builtin_cpu_supports("avx512f"))
		run = avx512;
#endif
	for (int i = 0; i < TRIES; i++)
		best = fmax(best, run(5000000));
	return 0.8 * best;
}

static double memory(char *a, char *b)
{
	double best = 0;
	for (int i = 0; i < TRIES; i++) {
		double t = now();
		memcpy(a, b, LARGE);
		best = fmax(best, 2.0 * LARGE / (now() - t));
	}
	return best;
}

/* What one process has while another on each other core copies as well. */
static double memory_shared(char *a, char *b, long cores)
{
	pid_t child[64];
	int n = 0;
	for (; n + 1 < cores && n < 64; n++) {
		child[n] = fork();              /* both arrays become its own as it writes */
		if (!child[n])
			for (;;)
				memory(a, b);
		if (child[n] < 0)
			break;
	}
	memory(a, b);                           /* until all are at it */
	double rate = memory(a, b);
	for (int i = 0; i < n; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	return rate;
}

static void wait_for(atomic_int *turn, int want)
{
	for (int i = 0; atomic_load(turn) != want; i++)
		if (i % 64 == 63)
			sched_yield();
}

/* Two processes; times[0]: seconds of one handing over, times[1]: bytes a second that are copied from the other's pages. */
static int links(char *shared, char *mine, double *times)
{
	atomic_int *turn = (atomic_int *)(void *)shared, *last = turn + 64;
	char *data = shared + 4096;
	fflush(NULL);
	pid_t child = fork();
	if (child < 0)
		return -1;
	int turns = 0;
	double start = now(), mark = start;
	times[0] = 1;
	for (bool more = true; more; turns++) {         /* half a second at most: the parent says which turn is the last */
		wait_for(turn, 2 * turns + !child);
		if (child)
			atomic_store(last, turns + 1 == TURNS || now() - start > 0.5);
		more = !atomic_load(last);
		atomic_store(turn, 2 * turns + 1 + !child);
		if (child && turns % SOME == SOME - 1) {
			times[0] = fmin(times[0], (now() - mark) / (2 * SOME));
			mark = now();
		}
	}
	if (child)
		wait_for(turn, 2 * turns);
	for (int i = 0; i < TRIES; i++) {
		int at = 2 * turns + 2 * i;
		if (!child) {
			wait_for(turn, at);
			memset(data, i, LARGE);
			atomic_store(turn, at + 1);
			continue;
		}
		wait_for(turn, at + 1);
		double t = now();
		memcpy(mine, data, LARGE);
		times[1] = fmax(times[1], LARGE / (now() - t));
		atomic_store(turn, at + 2);
	}
	if (!child)
		_exit(0);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static void *pages(int how)
{
	void *p = mmap(NULL, LARGE + 4096, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	memset(p, 0, LARGE + 4096);
	return p;
}

int figures_probe(FILE *f)
{
	char *a = pages(MAP_PRIVATE), *b = pages(MAP_PRIVATE), *shared = pages(MAP_SHARED);
	double times[2] = { 0 };
	if (!a || !b || !shared || links(shared, a, times)) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "no memory or process to measure with");
		return -1;
	}
	long cores = sysconf(_SC_NPROCESSORS_ONLN) > 0 ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
	double flops = arithmetic(), bytes = memory_shared(a, b, cores);
	double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	fprintf(f, "# one rank on one core of this computer, measured by sbpcc --probe\nflops %.3g\nhalf %.3g\nbytes %.3g\nstart 5e-7\ncores %ld\n", flops, flops, bytes, cores);
	fprintf(f, "# memory %.3g             of a rank, when there are as many as cores\n", floor(all / (double)cores));
	fprintf(f, "link * %.3g %.3g\n", LATE + 4 * times[0], times[1]);
	return ferror(f) ? -1 : 0;
}
