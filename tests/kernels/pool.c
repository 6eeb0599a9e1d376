/* The thread pool: every piece runs once, whatever the number of threads, and many short loops follow each other. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100003 };

typedef struct Job { int *count; int64_t grain; int bad; int nthread; } Job;

static void touch(void *arg, int64_t lo, int64_t hi, int thread)
{
	Job *j = arg;
	if (lo % j->grain || thread < 0 || thread >= j->nthread)
		j->count[N]++;                  /* never: so there is no race to speak of */
	for (int64_t i = lo; i < hi; i++)
		j->count[i]++;
}

static int check(int nthread, int64_t n, int64_t grain, int times)
{
	static const RtProgram program = { .nrank = 1, .work_shared = 100, .work_each = 5000 };
	Ctx c = { .program = &program, .nrank = 1 };
	if (rt_pool_open(&c, nthread))
		return 1;
	Job j = { .count = calloc(N + 1, sizeof(int)), .grain = grain, .nthread = c.nthread };
	if (!j.count)
		return 1;
	for (int i = 0; i < times; i++)
		rt_parallel(&c, n, grain, touch, &j);
	int bad = j.count[N] != 0 || c.work_each < 5000;
	for (int t = 0; t < c.nthread; t++)
		memset(c.work + (size_t)t * c.work_each, 1, program.work_each);
	for (int64_t i = 0; i < N; i++)
		bad |= j.count[i] != (i < n ? times : 0);
	free(j.count);
	rt_pool_close(&c);
	return bad;
}

int main(void)
{
	static const struct { int64_t n, grain; int times; } loops[] = { { N, 1, 20 }, { N, 64, 20 }, { N, N, 3 },
		{ 7, 1, 5000 }, { 1, 1, 100 }, { 0, 1, 3 }, { 65, 64, 1000 } };
	int bad = 0;
	for (int threads = 1; threads <= 5; threads++) {
		int mine = 0;
		for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++)
			mine |= check(threads, loops[i].n, loops[i].grain, loops[i].times);
		if (mine)
			printf("not ok threads-%d: a piece ran not once\n", threads);
		else
			printf("ok threads-%d\n", threads);
		bad |= mine;
	}
	return bad;
}
