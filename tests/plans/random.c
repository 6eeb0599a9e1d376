/* Random models under random plans, in exact arithmetic.
 *
 *   signatures   every node runs by a random signature of its own and values are kept in random forms; operands in
 *                another form are moved
 *   passes       the model is planned and boxed by the compiler under random pins, and the physical graph is executed
 *   programs     then it is scheduled for a slow machine, so that transfers have a start and a finish, and the lists of
 *                actions are executed
 *   faults       the same with a transfer that is wrong, missing or done twice, with a finish that is missing or
 *                elsewhere, or with memory that is used while a transfer is on its way: each must be noticed
 *
 * random [FROM [COUNT]]: by default seeds 1 to 500, with LONG 1 to 20,000.  A model that differs is cut down and
 * printed. */
#include "exact/exact.h"
#include "exact/make.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Seen { int planted, found; } Seen;
typedef struct Tally {
	int same, cannot, bad, nodes, programs, starts;
	Seen fault[FAULT_COUNT], spoil[SPOIL_COUNT];
} Tally;
static Tally tally;

static Model *compile(const Made *m, char **text)
{
	*text = make_text(m);
	char *name = arena_printf(&arena_process, "seed-%llu.ir", (unsigned long long)m->seed);
	Model *model = parse_text(file_memory(name, *text, strlen(*text)));
	opt.stop_after = "lower";
	int bad = !model || resolve_run(model) || verify_graph(model->graph, 0);
	if (!bad) {
		train_bind_batch(model);
		bad = passes_run(model) || transpose_run(model->graph) || factors_run(model->graph);
	}
	if (bad && model)
		model_free(model);
	return bad ? NULL : model;
}

static const Mesh *meshes_of(const Made *m)
{
	static Mesh list[MADE_MESHES];
	for (int i = 0; i < m->nmesh; i++) {
		const MadeMesh *x = &m->mesh[i];
		list[i] = (Mesh){ .name = name_of("ranks"), .ndim = x->ndim, .nrank = 1, .rank = i ? x->rank : NULL };
		for (int k = 0; k < x->ndim; k++)
			list[i].nrank *= list[i].dim[k] = x->dim[k];
	}
	return list;
}

/* The main program, with starts and finishes wherever there is anything to compute in between; -1: the compiler makes
 * none. */
static int schedule(Graph *g)
{
	Model *m = g->model;
	int others = m->nothers;
	m->nothers = 0;
	device.flops = device.bytes = 1e6;
	int bad = project_run(g) || fuse_run(g) || schedule_run(g) || memplan_run(g) || prove_run(g);
	m->nothers = others;
	diag_reset();
	return bad;
}

static int starts(const Graph *g)
{
	const Role *r = &g->model->plan->role[0];
	int n = 0;
	for (int i = 0; i < r->nstep; i++)
		n += r->step[i].kind == ACT_START;
	return n;
}

static Outcome by_program(Graph *g, Hold **at, Outcome o, bool count)
{
	if (o.what != RUN_SAME || schedule(g))
		return o;
	tally.programs += count;
	tally.starts += count ? starts(g) : 0;
	for (int late = 0; late < 2 && o.what == RUN_SAME; late++)
		o = run_program(g, at, late, SPOIL_NONE, 0);
	return o;
}

static Outcome by_passes(const Made *made, Model *m, const Whole *w, Arena *a, bool count)
{
	Graph *g = m->graph;
	Hold **at;
	if (plan_run(g) || boxing_run(g)) {
		diag_reset();
		return (Outcome){ .what = RUN_DIFFERS, .why = "the compiler refuses the plan" };
	}
	Outcome o = run_physical(g, w, made->seed, a, &at);
	return by_program(g, at, o, count);
}

enum { BY_SIGNATURES = 1, BY_PASSES = 2 };

/* What is wrong with it; NULL: nothing. */
static const char *check(const Made *made, int how, bool count)
{
	char *text;
	Model *m = compile(made, &text);
	const char *why = NULL;
	Arena a = { 0 };
	if (!m) {
		diag_reset();
		return name_fmt("does not compile:\n%s", text);
	}
	Whole *w = run_whole(m->graph, made->seed, &a);
	if (!w) {
		tally.cannot += count;
		if (getenv("SHOW"))
			printf("# seed %llu: %s\n", (unsigned long long)made->seed, exact_reason());
	}
	for (int k = BY_SIGNATURES; w && !why && k <= BY_PASSES; k++) {
		if (!(how & k))
			continue;
		Outcome o = k == BY_SIGNATURES ? run_random(m->graph, meshes_of(made), made->nmesh, w, made->seed,
			FAULT_NONE, 0, &a) : by_passes(made, m, w, &a, count);
		why = o.what == RUN_DIFFERS ? o.why : NULL;
		tally.cannot += count && o.what == RUN_CANNOT;
		tally.same += count && o.what == RUN_SAME;
		if (getenv("SHOW") && o.what == RUN_CANNOT)
			printf("# seed %llu by %d: %s\n", (unsigned long long)made->seed, k, o.why);
	}
	if (count)
		tally.nodes += m->graph->nnode;
	arena_free(&a);
	model_free(m);
	return why;
}

/* Leaves out lines as long as it is still wrong. */
static void cut_down(Made *made, int how)
{
	for (bool any = true; any;) {
		any = false;
		for (int i = made->nline; i-- > 0;) {
			if (made->line[i].gone)
				continue;
			made->line[i].gone = true;
			const char *why = check(made, how, false);
			if (why && strncmp(why, "does not", 8))
				any = true;
			else
				made->line[i].gone = false;
		}
	}
	for (int i = 0; i < made->nvalue; i++) {
		char pin[sizeof made->value[i].pin];
		memcpy(pin, made->value[i].pin, sizeof pin);
		made->value[i].pin[0] = 0;
		const char *why = *pin ? check(made, how, false) : "";
		if (!why || !strncmp(why, "does not", 8))
			memcpy(made->value[i].pin, pin, sizeof pin);
	}
}

static bool run_seed(uint64_t seed)
{
	static Made made;
	bool good = true;
	make_model(&made, seed);
	for (int how = BY_SIGNATURES; how <= BY_PASSES && good; how++) {
		const char *why = check(&made, how, true);
		if (!why)
			continue;
		good = false;
		printf("not ok seed-%llu-by-%s: %s\n", (unsigned long long)seed,
			how == BY_PASSES ? "passes" : "signatures", why);
		if (!strncmp(why, "does not", 8))
			continue;
		cut_down(&made, how);
		char *text = make_text(&made);
		why = check(&made, how, false);
		printf("# cut down: %s\n", why ? why : "?");
		for (char *s = strtok(text, "\n"); s; s = strtok(NULL, "\n"))
			printf("#   %s\n", s);
	}
	return good;
}

static void note(Seen *s, bool planted, bool found)
{
	s->planted += planted;
	s->found += planted && found;
}

static void plant(uint64_t seed)
{
	static Made made;
	char *text;
	make_model(&made, seed);
	Model *m = compile(&made, &text);
	Arena a = { 0 };
	Whole *w = m ? run_whole(m->graph, seed, &a) : NULL;
	for (int f = FAULT_NONE + 1; w && f < FAULT_COUNT; f++) {
		Outcome o = run_random(m->graph, meshes_of(&made), made.nmesh, w, seed, (Fault)f, (int)(seed % 7), &a);
		note(&tally.fault[f], o.planted, o.what == RUN_DIFFERS);
	}
	Hold **at;
	bool runs = w && !plan_run(m->graph) && !boxing_run(m->graph) &&
		run_physical(m->graph, w, seed, &a, &at).what == RUN_SAME && !schedule(m->graph);
	for (int f = SPOIL_NONE + 1; runs && f < SPOIL_COUNT; f++) {
		Outcome early = run_program(m->graph, at, false, (Spoil)f, (int)(seed % 7)),
			late = run_program(m->graph, at, true, (Spoil)f, (int)(seed % 7));
		note(&tally.spoil[f], early.planted, early.what == RUN_DIFFERS || late.what == RUN_DIFFERS);
	}
	arena_free(&a);
	if (m)
		model_free(m);
	diag_reset();
}

/* ---- many ---- */

/* seeds of one process: what the compiler remembers of forms it never forgets */
enum { TURN = 100, WORKERS = 16 };

static void one_turn(uint64_t from, uint64_t end)
{
	for (uint64_t s = from; s < end && tally.bad < 20; s++)
		tally.bad += !run_seed(s);
}

/* Worker k takes turns k, k + n, ... each in a process of its own, and leaves what it counted in its place. */
static void work(Tally *all, uint64_t from, uint64_t end, int k, int n)
{
	for (uint64_t at = from + (uint64_t)k * TURN; at < end && all[k].bad < 20; at += (uint64_t)n * TURN) {
		pid_t pid = fork();
		if (!pid) {
			tally = all[k];
			one_turn(at, at + TURN < end ? at + TURN : end);
			all[k] = tally;
			fflush(stdout);
			_exit(0);
		}
		int status = 1;
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) {
			printf("not ok seeds-%llu-and-up: a process ended with status %d\n", (unsigned long long)at,
				status);
			all[k].bad++;
		}
	}
}

static void run_many(uint64_t from, uint64_t end)
{
	int n = getenv("JOBS") ? atoi(getenv("JOBS")) : 1;
	n = n < 1 ? 1 : n > WORKERS ? WORKERS : n;
	Tally *all = mmap(NULL, sizeof(Tally) * WORKERS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		die("no memory");
	for (int k = 1; k < n; k++)
		if (!fork()) {
			work(all, from, end, k, n);
			fflush(stdout);
			_exit(0);
		}
	work(all, from, end, 0, n);
	while (wait(NULL) > 0)
		;
	for (int k = 0; k < n; k++) {
		tally.same += all[k].same;
		tally.cannot += all[k].cannot;
		tally.nodes += all[k].nodes;
		tally.bad += all[k].bad;
		tally.programs += all[k].programs;
		tally.starts += all[k].starts;
	}
}

static void tell(const char *what, const Seen *s, int least)
{
	printf("# %s: planted %d times, seen %d times\n", what, s->planted, s->found);
	bool seen = s->planted >= 5 && s->found * 10 >= s->planted * least;
	printf("%s %s is seen%s\n", seen ? "ok" : "not ok", what, seen ? "" : ": too seldom");
}

int main(int argc, char **argv)
{
	static const char *const fault[] = { "", "a missing term", "a term added twice", "a part of another rank",
		"a transfer left out" };
	static const char *const spoil[] = { "", "a finish left out", "a finish before its start",
		"a finish behind a reader", "an operand in flight overwritten", "a result in flight overwritten" };
	uint64_t from = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	uint64_t count = getenv("LONG") && *getenv("LONG") ? 20000 : 500;
	if (argc > 1)
		count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	language_init();
	if (count > 1)
		diag_out = NULL;
	if (count > TURN)
		run_many(from, from + count);
	else
		one_turn(from, from + count);
	printf("# %llu models of %d nodes in all: %d runs are the same, %d have no exact meaning\n",
		(unsigned long long)count, tally.nodes,
	       tally.same, tally.cannot);
	printf("# %d programs with %d transfers that have a start and a finish\n", tally.programs, tally.starts);
	if (tally.cannot)
		printf("not ok every node has an exact meaning: %d runs could not be judged\n", tally.cannot);
	if (!tally.bad)
		printf("ok all plans of seeds %llu to %llu give what the whole gives\n", (unsigned long long)from,
			(unsigned long long)(from + count - 1));
	for (uint64_t s = from; s < from + 100 && count >= 100; s++)
		plant(s);
	for (int f = FAULT_NONE + 1; f < FAULT_COUNT && count >= 100; f++)
		tell(fault[f], &tally.fault[f], 8);
	for (int f = SPOIL_NONE + 1; f < SPOIL_COUNT && count >= 100; f++)
		tell(spoil[f], &tally.spoil[f], 10);
	return 0;
}
