/* The threads of a rank: they run one parallel loop at a time.
 *
 * The pool is created once, with the context; a loop costs one store and one wake.  A waiting thread spins for a few
 * microseconds, then sleeps in the kernel, so that more threads than processors do no harm.  Free threads take pieces
 * in order from one counter.  Which thread runs a piece is not determined, so a body may use the number of its thread
 * for scratch only, never to decide what is summed with what. */
#include "run.h"
#include "wait.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Set by tests: even the smallest loops are cut, regardless of grain. */
#ifndef RT_CUT_ALL
#define RT_CUT_ALL 0
#endif

enum { STACK = 256 << 10, SPINS = 2000 };

typedef struct Worker { struct RtPool *pool; pthread_t id; int thread; } Worker;

struct RtPool {
	int n;                          /* threads, the caller included */
	_Atomic uint32_t turn;          /* counts loops: a change starts one */
	_Atomic uint32_t busy;          /* workers that have not finished this loop */
	_Atomic uint32_t asleep;        /* threads that sleep until turn changes */
	_Atomic int64_t next;           /* the first piece not taken yet */
	bool stop;
	int64_t len, step;              /* of the loop, and of a piece */
	RtBody *body;
	void *arg;
	void *work;
	size_t bytes;
	Worker worker[];
};

static void take_pieces(RtPool *p, int thread)
{
	for (;;) {
		int64_t lo = atomic_fetch_add(&p->next, p->step);
		if (lo >= p->len)
			return;
		p->body(p->arg, lo, p->len - lo < p->step ? p->len : lo + p->step, thread);
	}
}

/* Waits until turn is no longer old. */
static void wait_turn(RtPool *p, uint32_t old)
{
	for (int i = 0; i < SPINS; i++) {
		if (atomic_load(&p->turn) != old)
			return;
		rt_breathe();
	}
	atomic_fetch_add(&p->asleep, 1);
	while (atomic_load(&p->turn) == old)
		rt_futex(&p->turn, FUTEX_WAIT, old);
	atomic_fetch_sub(&p->asleep, 1);
}

static void next_turn(RtPool *p)
{
	atomic_store(&p->busy, (uint32_t)p->n - 1);
	atomic_fetch_add(&p->turn, 1);
	if (atomic_load(&p->asleep))
		rt_futex(&p->turn, FUTEX_WAKE, INT_MAX);
}

static void wait_workers(RtPool *p)
{
	uint32_t left;
	for (int i = 0; i < SPINS; i++) {
		if (!atomic_load(&p->busy))
			return;
		rt_breathe();
	}
	while ((left = atomic_load(&p->busy)) != 0)
		rt_futex(&p->busy, FUTEX_WAIT, left);
}

/* Touches the stack, so that no step waits for page faults and the plan can count the pages. */
void rt_touch_stack(void)
{
	volatile char page[RT_STACK - 4096];
	for (int i = 0; i < (int)sizeof page; i += 4096)
		page[i] = 0;
	page[sizeof page - 1] = 0;
}

static void *work(void *arg)
{
	rt_touch_stack();
	Worker *w = arg;
	RtPool *p = w->pool;
	for (uint32_t turn = 0;; turn++) {
		wait_turn(p, turn);
		if (p->stop)
			return NULL;
		take_pieces(p, w->thread);
		if (atomic_fetch_sub(&p->busy, 1) == 1)
			rt_futex(&p->busy, FUTEX_WAKE, 1);
	}
}

void rt_parallel(Ctx *c, int64_t n, int64_t grain, RtBody *body, void *arg)
{
	RtPool *p = c->pool;
	if (n <= 0)
		return;
	if (grain < 1 || RT_CUT_ALL)
		grain = 1;
	if (!p || p->n == 1 || n <= grain) {
		body(arg, 0, n, 0);
		return;
	}
	/* About four pieces per thread, so that a delayed thread holds up little. */
	int64_t step = (n + 4 * p->n - 1) / (4 * p->n);
	p->step = (step + grain - 1) / grain * grain;
	p->len = n;
	p->body = body;
	p->arg = arg;
	atomic_store(&p->next, 0);
	next_turn(p);
	take_pieces(p, 0);
	wait_workers(p);
}

int rt_threads(const Ctx *c)
{
	cpu_set_t set;
	int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	int ranks = c->bound || !c->here ? 1 : c->here;
	return cpus > ranks ? cpus / ranks : 1;
}

/* RT_ISA selects a lower one than the processor has: tests compare them. */
static RtIsa choose_isa(void)
{
	RtIsa isa = RT_PLAIN;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		isa = RT_AVX2;
	if (isa == RT_AVX2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
		isa = RT_AVX512;
#endif
	const char *want = getenv("RT_ISA");
	if (want && !strcmp(want, "plain"))
		return RT_PLAIN;
	if (want && !strcmp(want, "avx2") && isa > RT_AVX2)
		return RT_AVX2;
	return isa;
}

/* Present only in programs that are built with the address sanitizer. */
void __asan_poison_memory_region(const volatile void *, size_t) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *, size_t) __attribute__((weak));

/* Poisons the memory after the planned bytes. */
static void guard(unsigned char *at, size_t planned, size_t room)
{
	if (__asan_poison_memory_region)
		__asan_poison_memory_region(at + planned, room - planned);
}

/* The scratch of kernels: first what all threads share, then each thread's own. */
static int open_work(Ctx *c, RtPool *p)
{
	size_t between = __asan_poison_memory_region ? 4096 : 0;
	c->work_shared = rt_round_up(c->program->work_shared, RT_PAGE) + between;
	c->work_each = rt_round_up(c->program->work_each, RT_PAGE) + between;
	p->bytes = c->work_shared + (size_t)p->n * c->work_each;
	if (!p->bytes)
		return 0;
	p->work = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->work == MAP_FAILED) {
		p->work = NULL;
		return rt_error(c, RT_MEMORY, "cannot map %zu bytes of workspace", p->bytes);
	}
	if (madvise(p->work, p->bytes, MADV_POPULATE_WRITE) && errno == ENOMEM)
		return rt_error(c, RT_MEMORY, "there is no memory for %zu bytes of workspace", p->bytes);
	c->shared = p->work;
	c->work = c->shared + c->work_shared;
	guard(c->shared, c->program->work_shared, c->work_shared);
	for (int t = 0; t < p->n; t++)
		guard(c->work + (size_t)t * c->work_each, c->program->work_each, c->work_each);
	return 0;
}

int rt_pool_open(Ctx *c, int nthread)
{
	RtPool *p = calloc(1, sizeof *p + (size_t)nthread * sizeof p->worker[0]);
	if (!p)
		return rt_error(c, RT_MEMORY, "no memory for %d threads", nthread);
	p->n = 1;
	rt_touch_stack();
	c->isa = choose_isa();
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (p->n < nthread) {        /* fewer, if the system gives no more */
		Worker *w = &p->worker[p->n];
		*w = (Worker){ .pool = p, .thread = p->n };
		if (pthread_create(&w->id, &attr, work, w))
			break;
		p->n++;
	}
	pthread_attr_destroy(&attr);
	c->pool = p;
	c->nthread = p->n;
	int code = open_work(c, p);
	if (code)
		rt_pool_close(c);
	return code;
}

void rt_pool_close(Ctx *c)
{
	RtPool *p = c->pool;
	if (!p)
		return;
	p->stop = true;
	next_turn(p);
	for (int t = 1; t < p->n; t++)
		pthread_join(p->worker[t].id, NULL);
	if (p->work && __asan_unpoison_memory_region)
		__asan_unpoison_memory_region(p->work, p->bytes);
	if (p->work)
		munmap(p->work, p->bytes);
	free(p);
	c->pool = NULL;
	c->work = c->shared = NULL;
	c->nthread = 1;
}
