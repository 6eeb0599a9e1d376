/* The command line of a trainer, and the loop over steps.  Options stand in one table, from which help is printed. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 1024 };

typedef struct Args {
	int64_t steps, every, seed, threads, dump_step;
	const char *weights, *data, *dump;
	bool help;
} Args;

typedef enum { FLAG, NUMBER, TEXT } Kind;
static const struct Option {
	const char *name;
	size_t at;                      /* in Args */
	Kind kind;
	int64_t low;
	const char *word, *help;
} options[] = {
	{ "steps", offsetof(Args, steps), NUMBER, 0, "N", "how many steps to train" },
	{ "every", offsetof(Args, every), NUMBER, 1, "N", "print the loss of every N-th step" },
	{ "seed", offsetof(Args, seed), NUMBER, 0, "N", "of the parameters at the start" },
	{ "threads", offsetof(Args, threads), NUMBER, 1, "N", "threads of each rank; else the processors divided by the ranks" },
	{ "data", offsetof(Args, data), TEXT, 0, "PATH", "the data, instead of what the model names" },
	{ "weights", offsetof(Args, weights), TEXT, 0, "FILE", "the weights to start from, if not weights.safetensors beside this program" },
	{ "dump", offsetof(Args, dump), TEXT, 0, "DIR", "write every value of a step to DIR/step/NAME.npy, and to DIR/kept what is kept as it was before" },
	{ "dump-step", offsetof(Args, dump_step), NUMBER, 0, "N", "of this step, not of step 0" },
	{ "help", offsetof(Args, help), FLAG, 0, "", "print this" },
};
enum { NOPTION = sizeof options / sizeof options[0] };

static void help(const RtProgram *p)
{
	printf("usage: trainer [OPTION...]\n%d rank%s, %zu bytes each, of which %zu are seen by other ranks\n\n", p->nrank,
	       p->nrank == 1 ? "" : "s", p->slab_bytes + p->window_bytes, p->window_bytes);
	for (int i = 0; i < NOPTION; i++) {
		int n = printf("  --%s%s%s", options[i].name, *options[i].word ? "=" : "", options[i].word);
		printf("%*s%s\n", n < 24 ? 24 - n : 1, "", options[i].help);
	}
}

static int parse_value(const struct Option *o, const char *s, Args *a)
{
	char *end;
	void *to = (char *)a + o->at;
	if (o->kind == TEXT && s && *s) {
		*(const char **)to = s;
		return 0;
	}
	errno = 0;
	long long v = s && o->kind == NUMBER ? strtoll(s, &end, 10) : 0;
	if (o->kind == NUMBER && s && end != s && !*end && !errno && v >= o->low) {
		*(int64_t *)to = v;
		return 0;
	}
	if (o->kind == NUMBER)
		fprintf(stderr, "trainer: --%s needs a number of at least %" PRId64 "\n", o->name, o->low);
	else
		fprintf(stderr, "trainer: --%s needs %s\n", o->name, o->word);
	return RT_USAGE;
}

static int parse_one(int argc, char **argv, int *i, Args *a)
{
	const char *arg = argv[*i] + (strncmp(argv[*i], "--", 2) ? 0 : 2);
	size_t len = strcspn(arg, "=");
	for (int k = 0; k < NOPTION && arg != argv[*i]; k++) {
		const struct Option *o = &options[k];
		if (strlen(o->name) != len || strncmp(o->name, arg, len) != 0)
			continue;
		if (o->kind != FLAG)
			return parse_value(o, arg[len] ? arg + len + 1 : *i + 1 < argc ? argv[++*i] : NULL, a);
		*(bool *)((char *)a + o->at) = true;
		return 0;
	}
	fprintf(stderr, "trainer: unknown option; --help lists them\n");
	return RT_USAGE;
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One rank, from start to end. */
static int train(Ctx *c, void *arg)
{
	const Args *a = arg;
	c->seed = (uint64_t)a->seed;
	int code = rt_pool_open(c, a->threads ? (int)(a->threads < MAX_THREADS ? a->threads : MAX_THREADS) : rt_threads(c));
	if (!code)
		code = rt_start_all(c, a->weights);
	if (!code)
		code = rt_data_open(c, a->data, 0);
	double begin = seconds();
	for (c->step = 0; !code && c->step < a->steps; c->step++) {
		c->after = NULL;
		if (a->dump && c->step == a->dump_step)
			code = rt_dump_begin(c, a->dump);
		if (!code)
			code = rt_do(c, RT_TRAIN);
		if (!code && c->rank == 0 && (c->step % a->every == 0 || c->step == a->steps - 1))
			printf("step %6" PRId64 "  loss %.7f\n", c->step, c->loss);
	}
	if (!code)
		code = rt_sync(c);
	rt_data_close(c);
	rt_pool_close(c);
	double t = seconds() - begin;
	if (!code && c->rank == 0 && a->steps > 0)
		printf("%" PRId64 " steps, %.1f samples/s\n", a->steps, (double)(a->steps * c->program->batch) / (t > 0 ? t : 1e-9));
	return code;
}

int rt_main(const RtProgram *p, int argc, char **argv)
{
	Args a = { .steps = p->steps, .every = 10, .seed = (int64_t)p->seed };
	for (int i = 1; i < argc; i++) {
		int code = parse_one(argc, argv, &i, &a);
		if (code)
			return code;
	}
	if (a.help) {
		help(p);
		return RT_OK;
	}
	return rt_run(p, train, &a);
}
