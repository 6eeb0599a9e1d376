/* bench-prove [--runs N] [STAGES MICROS]...: time to prove schedules of pipelines (compiler/lanes/check.c), by default
 * of 64 stages and 256 micro-batches; then time to solve the schedule in which F, B and W take equally long.
 *
 * disjoint: no two areas share bytes, so one pass over two steps decides.  shared: the update of each rank reuses the
 * memory of the activations that it keeps, so vector clocks prove that they are dead.  Times are processor time of one
 * thread, the smallest of all runs. */
#include "lanes/lanes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static Pipeline even(Arena *a, const PipeSchedule *s, int nrank, int micros)
{
	int nstage = nrank * (s->chunks ? s->chunks : 2);
	Pipeline p = { .nrank = nrank, .nstage = nstage, .micros = micros, .nhop = nstage - 1 };
	p.stage = arena_array(a, PipeStage, nstage);
	p.hop = arena_array(a, PipeHop, nstage);
	for (int i = 0; i < nstage; i++) {
		p.stage[i] = (PipeStage){ .f = 1, .b = 1, .w = 1, .update = 1, .kept = 4096, .kept_w = 2048 };
		p.hop[i] = (PipeHop){ .from = i, .to = i + 1, .bytes = 1024 };
	}
	schedules_place(s, &p);
	return p;
}

static void share(LaneNet *n)
{
	for (int r = 0; r < n->nrole; r++)
		for (int b = 0; b < n->role[r].nblock; b++)
			if (n->role[r].block[b].kind == BLOCK_UPDATE) {
				n->role[r].block[b].scratch = 4096;
				n->role[r].block[b].offset = n->role[r].reg[0].offset;
			}
}

static double measure(const LaneNet *n, int runs)
{
	double least = 1e9;
	for (int i = 0; i < runs; i++) {
		Arena a = { 0 };
		double from = now();
		const char *why = check_net(n, &a);
		double took = now() - from;
		if (why) {
			fprintf(stderr, "refused: %s\n", why);
			exit(1);
		}
		least = took < least ? took : least;
		arena_free(&a);
	}
	return least;
}

static void table(int nrank, int micros, int runs)
{
	printf("%d ranks x %d micro-batches\n%-12s %8s %8s %12s %12s %12s\n", nrank, micros, "schedule", "tasks",
		"lanes", "programs, s", "disjoint, s", "shared, s");
	for (const PipeSchedule *s = schedules; s->name; s++) {
		Arena a = { 0 };
		Pipeline p = even(&a, s, nrank, micros);
		PipeOrder o;
		LaneNet n;
		int tasks = 0, lanes = 0;
		if (s->order(&p, &a, &o))
			continue;
		double from = now();
		net_of(&p, &o, 1, &a, &n);
		double made = now() - from;
		for (int r = 0; r < n.nrole; r++)
			for (int l = 0; l < n.role[r].nlane; l++, lanes++)
				tasks += n.role[r].lane[l].ntask;
		double apart = measure(&n, runs);
		share(&n);
		printf("%-12s %8d %8d %12.3f %12.3f %12.3f\n", s->name, tasks, lanes, made, apart, measure(&n, runs));
		arena_free(&a);
	}
}

/* Times the schedule solver: all blocks take equally long, and memory holds as many micro-batches as ranks. */
static void solve(int nrank, int micros, int runs)
{
	double least = 1e9;
	SearchResult r;
	for (int i = 0; i < runs; i++) {
		Arena a = { 0 };
		Pipeline p = even(&a, schedules_find("1f1b"), nrank, micros);
		p.limit = arena_array(&a, int64_t, nrank);
		for (int k = 0; k < nrank; k++) {
			p.stage[k].update = 0;
			p.limit[k] = 4096 * (int64_t)nrank;
		}
		double from = now();
		if (search_run(&p, 1, &a, &r))
			exit(1);
		double took = now() - from;
		least = took < least ? took : least;
		arena_free(&a);
	}
	printf("solver: %.3f s, %.2f %% above the lower bound\n", least, 100 * r.gap);
}

int main(int argc, char **argv)
{
	int runs = 5, i = 1;
	if (argc > 2 && !strcmp(argv[1], "--runs")) {
		runs = atoi(argv[2]);
		i = 3;
	}
	if (i + 1 >= argc) {
		table(64, 256, runs);
		solve(64, 256, runs);
	}
	for (; i + 1 < argc; i += 2) {
		table(atoi(argv[i]), atoi(argv[i + 1]), runs);
		solve(atoi(argv[i]), atoi(argv[i + 1]), runs);
	}
	return 0;
}
