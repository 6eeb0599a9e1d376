/* The command line of a trainer, and the loop over steps.  Options stand in one table, from which help is printed. */
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 1024 };

typedef struct Args {
	int64_t steps, every, seed, threads, save_every, keep, dump_step;
	const char *weights, *data, *checkpoint, *resume, *log, *trace, *dump;
	bool last_good, changed_data, eval, profile, help;
	bool resuming, seed_given;
	RtResume from;
} Args;

typedef enum { FLAG, NUMBER, TEXT, MAYBE } Kind;        /* MAYBE: a text after =, or none */
static const struct Option {
	const char *name;
	size_t at;                      /* in Args */
	Kind kind;
	int64_t low;
	const char *word, *help;
} options[] = {
	{ "steps", offsetof(Args, steps), NUMBER, 0, "N", "how many steps to train, those of a resumed run included" },
	{ "data", offsetof(Args, data), TEXT, 0, "PATH", "the data, instead of what the model names" },
	{ "seed", offsetof(Args, seed), NUMBER, 0, "N", "of parameters at the start, of the order of the data and of every random choice" },
	{ "threads", offsetof(Args, threads), NUMBER, 1, "N", "threads of each rank; else the processors divided by the ranks" },
	{ "weights", offsetof(Args, weights), TEXT, 0, "FILE", "the weights to start from, if not weights.safetensors beside this program" },
	{ "checkpoint", offsetof(Args, checkpoint), TEXT, 0, "DIR", "save into DIR, at the end and when stopped by a signal" },
	{ "every-checkpoint", offsetof(Args, save_every), NUMBER, 1, "N", "save every N steps, too" },
	{ "keep", offsetof(Args, keep), NUMBER, 1, "K", "keep the last K checkpoints (3)" },
	{ "resume", offsetof(Args, resume), MAYBE, 0, "DIR", "go on from the newest checkpoint of DIR (that of --checkpoint), or from the checkpoint DIR" },
	{ "last-good", offsetof(Args, last_good), FLAG, 0, "", "with --resume: pass over checkpoints that are damaged" },
	{ "changed-data", offsetof(Args, changed_data), FLAG, 0, "", "with --resume: go on although the data set is another one" },
	{ "eval", offsetof(Args, eval), FLAG, 0, "", "train no step; print the loss of the samples that are held out" },
	{ "every", offsetof(Args, every), NUMBER, 1, "N", "print every N-th step (10)" },
	{ "log", offsetof(Args, log), TEXT, 0, "FILE", "write every step as a line of JSON" },
	{ "trace", offsetof(Args, trace), TEXT, 0, "FILE", "write when each action ran, as Chrome's trace format has it" },
	{ "profile", offsetof(Args, profile), FLAG, 0, "", "print the time of each node at the end" },
	{ "dump", offsetof(Args, dump), TEXT, 0, "DIR", "write every value of a step, or of --eval, to DIR/step/NAME.npy or DIR/eval, and to DIR/kept what was kept before" },
	{ "dump-step", offsetof(Args, dump_step), NUMBER, 0, "N", "of this step, not of step 0" },
	{ "help", offsetof(Args, help), FLAG, 0, "", "print this" },
};
enum { NOPTION = sizeof options / sizeof options[0] };

static void help(const RtProgram *p)
{
	printf("usage: trainer [OPTION...]\n%d rank%s, %zu bytes each, of which %zu are seen by other ranks\n\n", p->nrank,
	       p->nrank == 1 ? "" : "s", p->slab_bytes + p->window_bytes, p->window_bytes);
	for (int i = 0; i < NOPTION; i++) {
		bool maybe = options[i].kind == MAYBE;
		int n = printf("  --%s%s%s%s%s", options[i].name, maybe ? "[" : "", *options[i].word ? "=" : "", options[i].word, maybe ? "]" : "");
		printf("%*s%s\n", n < 24 ? 24 - n : 1, "", options[i].help);
	}
	printf("\nexit status: 0 done, 2 usage, 20 data, 21 checkpoint, 22 a rank was lost, 23 not a number, 24 another plan, 25 memory,\n75 stopped by a signal, go on with --resume\n");
}

static int parse_value(const struct Option *o, const char *s, Args *a)
{
	char *end;
	void *to = (char *)a + o->at;
	if (o->kind != NUMBER && s && *s) {
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
		a->resuming |= !strcmp(o->name, "resume");
		a->seed_given |= !strcmp(o->name, "seed");
		bool next = *i + 1 < argc && (o->kind != MAYBE || strncmp(argv[*i + 1], "--", 2));
		if (arg[len] && o->kind != FLAG)
			return parse_value(o, arg + len + 1, a);
		if (o->kind == NUMBER || o->kind == TEXT || (o->kind == MAYBE && next))
			return parse_value(o, next ? argv[++*i] : NULL, a);
		if (o->kind == FLAG && !arg[len])
			*(bool *)((char *)a + o->at) = true;
		else if (arg[len])
			break;
		return 0;
	}
	fprintf(stderr, "trainer: unknown option; --help lists them\n");
	return RT_USAGE;
}

/* ---- progress ---- */

typedef struct Report {
	FILE *log;
	bool terminal, saves;
	int64_t per_sample, first;      /* tokens of a sample, or 1; the first step of this run */
	double begin;
} Report;

static int report_open(Ctx *c, const Args *a, Report *r)
{
	const RtData *d = &c->program->data;
	const RtPart *p = &c->program->part[RT_TRAIN];
	*r = (Report){ .per_sample = 1, .terminal = isatty(1), .saves = a->checkpoint != NULL, .first = c->step };
	if (c->rank)
		return 0;
	if (d->format == RT_BYTES || d->format == RT_TOKENS16 || d->format == RT_TOKENS32)
		for (int i = 0; i < p->ninput; i++)
			if (p->input[i].feed == RT_SAMPLES && p->input[i].t.rank == 2)
				r->per_sample = p->input[i].t.dim[1];
	if (a->log && !(r->log = fopen(a->log, a->resuming ? "a" : "w")))
		return rt_error(c, RT_USAGE, "cannot write %s: %s", a->log, strerror(errno));
	int64_t train, held, dropped;
	rt_data_counts(c, &train, &held, &dropped);
	if (r->log)
		fprintf(r->log, "{\"event\":\"start\",\"step\":%" PRId64 ",\"steps\":%" PRId64 ",\"batch\":%" PRId64 ",\"samples\":%" PRId64 ",\"held_out\":%" PRId64
		        ",\"dropped_per_epoch\":%" PRId64 ",\"seed\":%" PRIu64 ",\"ranks\":%d,\"threads\":%d}\n", c->step, a->steps, c->program->batch, train, held, dropped, c->seed, c->nrank, c->nthread);
	return 0;
}

static void log_number(FILE *f, const char *name, double v)
{
	if (isfinite(v))
		fprintf(f, ",\"%s\":%.9g", name, v);
}

static void time_left(double seconds)
{
	int64_t s = (int64_t)(seconds + 0.5);
	if (s >= 3600)
		printf("%" PRId64 ":%02" PRId64 ":%02" PRId64 " left", s / 3600, s / 60 % 60, s % 60);
	else
		printf("%" PRId64 ":%02" PRId64 " left", s / 60, s % 60);
}

/* After a step, on rank 0. */
static void report_step(const Ctx *c, const Args *a, const Report *r)
{
	double t = rt_seconds() - r->begin;
	int64_t done = c->step + 1 - r->first;
	double rate = (double)(done * c->program->batch * r->per_sample) / (t > 0 ? t : 1e-9);
	if (r->log) {
		fprintf(r->log, "{\"step\":%" PRId64, c->step);
		log_number(r->log, "loss", c->loss);
		log_number(r->log, "rate", c->rate);
		log_number(r->log, "norm", c->norm);
		log_number(r->log, r->per_sample > 1 ? "tokens_per_s" : "samples_per_s", rate);
		log_number(r->log, "seconds", t);
		fprintf(r->log, "}\n");
		fflush(r->log);
	}
	bool line = c->step % a->every == 0 || c->step == a->steps - 1;
	if (!line && !r->terminal)
		return;
	printf("%sstep %6" PRId64 "  loss %.7f", r->terminal ? "\r" : "", c->step, c->loss);
	if (r->terminal) {
		if (isfinite(c->rate))
			printf("  rate %.3g", c->rate);
		if (isfinite(c->norm))
			printf("  norm %.3g", c->norm);
		printf("  %.0f %s/s  ", rate, r->per_sample > 1 ? "tokens" : "samples");
		time_left(t / (double)done * (double)(a->steps - c->step - 1));
		printf("\033[K");
	}
	printf(line ? "\n" : "");
	fflush(stdout);
}

static void report_end(const Ctx *c, const Report *r, int code)
{
	double t = rt_seconds() - r->begin;
	int64_t done = c->step - r->first;
	if (r->log) {
		fprintf(r->log, "{\"event\":\"end\",\"step\":%" PRId64 ",\"status\":%d}\n", c->step, code);
		fclose(r->log);
	}
	if (!code && done > 0)
		printf("%" PRId64 " steps, %.1f %s/s\n", done, (double)(done * c->program->batch * r->per_sample) / (t > 0 ? t : 1e-9), r->per_sample > 1 ? "tokens" : "samples");
	size_t peers, measured = rt_memory_measured(&peers);
	if (!code && done > 0 && measured && c->nrank > 1)
		printf("memory of rank 0: %zu bytes planned, %zu measured, and %zu of other ranks mapped, which they count\n", rt_memory_planned(c, r->saves), measured, peers);
	else if (!code && done > 0 && measured)
		printf("memory of rank 0: %zu bytes planned, %zu measured\n", rt_memory_planned(c, r->saves), measured);
}

/* ---- steps ---- */

/* The loss is not a number: the step is walked once more, which names the first value that is not, and since nothing was
 * updated yet the state is saved as it was before the step. */
static int not_a_number(Ctx *c, const Args *a)
{
	if (c->nrank > 1 && isfinite(c->loss))
		return RT_NUMERIC;              /* one rank's data: the others know nothing of it, and the last checkpoint stays */
	rt_data_pause(c);
	rt_watch_close(c);
	if (!isfinite(c->loss) && !rt_watch_open(c, NULL, false, true))
		rt_do(c, RT_TRAIN);
	rt_watch_close(c);
	if (a->checkpoint)
		rt_save(c, c->step, true);
	return RT_NUMERIC;
}

static int train_steps(Ctx *c, const Args *a, const Report *r)
{
	int code = 0;
	int64_t saved = c->step;
	while (!code && c->step < a->steps) {
		c->rate = c->norm = NAN;
		c->after = NULL;
		if (a->dump && c->step == a->dump_step && (code = rt_dump_begin(c, a->dump)))
			return code;
		code = rt_do(c, RT_TRAIN);
		if (code == RT_NUMERIC)
			return not_a_number(c, a);
		if (code)
			return code;
		if (c->rank == 0)
			report_step(c, a, r);
		c->step++;
		c->at = NULL;
		bool stop = rt_agree(c, rt_stop_asked(c)) != 0;
		bool due = a->save_every && c->step % a->save_every == 0, end = stop || c->step == a->steps;
		if (a->checkpoint && (due || end)) {
			code = rt_save(c, c->step, end);
			saved = c->step;
		}
		if (!code && stop)
			code = RT_STOPPED;
	}
	if (!code && a->checkpoint && saved != c->step)
		code = rt_save(c, c->step, true);
	return code ? code : rt_sync(c);
}

static int evaluate(Ctx *c, const Args *a)
{
	int64_t train, held, dropped;
	double loss;
	int code = a->dump ? rt_dump_begin(c, a->dump) : 0;
	if (!code)
		code = rt_eval_all(c, &loss);
	rt_data_counts(c, &train, &held, &dropped);
	if (!code && c->rank == 0)
		printf("%" PRId64 " held-out samples, loss %.7f\n", held, loss);
	return code;
}

static int prepare(Ctx *c, const Args *a)
{
	int code = rt_pool_open(c, a->threads ? (int)(a->threads < MAX_THREADS ? a->threads : MAX_THREADS) : rt_threads(c));
	if (!code)
		code = rt_start_all(c, a->weights);
	if (!code && a->resuming)
		code = rt_resume_load(c, &a->from);
	if (!code)
		code = rt_data_open(c, a->data, c->step);
	if (!code && a->resuming && c->rank == 0 && !a->changed_data && !a->eval && rt_data_print(c) != a->from.data)
		code = rt_error(c, RT_DATA, "the data set is not the one that the checkpoint was trained on: --changed-data goes on with it");
	if (!code && a->checkpoint && !a->eval)
		code = rt_saver_open(c, a->checkpoint, a->keep);
	if (!code && (a->trace || a->profile))
		code = rt_watch_open(c, a->trace, a->profile, false);
	return code;
}

/* One rank, from start to end. */
static int run(Ctx *c, void *arg)
{
	const Args *a = arg;
	Report r = { 0 };
	c->seed = (uint64_t)a->seed;
	c->step = a->resuming ? a->from.step : 0;
	int code = prepare(c, a);
	if (!code)
		code = report_open(c, a, &r);
	if (!code) {
		r.begin = rt_seconds();
		code = a->eval ? evaluate(c, a) : train_steps(c, a, &r);
		if (c->rank == 0)
			report_end(c, &r, code);
	}
	if (!code || code == RT_STOPPED) {
		int bad = rt_watch_close(c);
		code = code ? code : bad;
	}
	rt_saver_close(c);
	rt_data_close(c);
	rt_pool_close(c);
	return code;
}

int rt_main(const RtProgram *p, int argc, char **argv)
{
	Args a = { .steps = p->steps, .every = 10, .seed = (int64_t)p->seed, .keep = 3 };
	for (int i = 1; i < argc; i++) {
		int code = parse_one(argc, argv, &i, &a);
		if (code)
			return code;
	}
	if (a.help) {
		help(p);
		return RT_OK;
	}
	if (a.save_every && !a.checkpoint) {
		fprintf(stderr, "trainer: --every-checkpoint needs --checkpoint=DIR\n");
		return RT_USAGE;
	}
	if (a.resuming) {
		const char *from = a.resume ? a.resume : a.checkpoint;
		if (!from) {
			fprintf(stderr, "trainer: --resume needs DIR, or --checkpoint=DIR\n");
			return RT_USAGE;
		}
		int code = rt_resume_find(p, from, a.last_good, &a.from);
		if (code)
			return code;
		if (a.seed_given && (uint64_t)a.seed != a.from.seed) {
			fprintf(stderr, "trainer: the checkpoint was trained with --seed=%" PRIu64 "\n", a.from.seed);
			return RT_USAGE;
		}
		a.seed = (int64_t)a.from.seed;
	}
	return rt_run(p, a.checkpoint && !a.eval ? rt_snapshot_bytes(p) : 0, run, &a);
}
