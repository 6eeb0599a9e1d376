/* The command line of a trainer, and the loop over steps.  Options are rows of one table, from which help is
 * printed. */
#include "api.h"
#include "comm.h"
#include "save.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 1024 };

typedef struct Args {
	int64_t steps, every, seed, threads, save_every, eval_every, keep, dump_step;
	char map[RT_RULES];
	const char *weights, *data, *checkpoint, *resume, *log, *events, *plot, *trace, *dump, *eval_of,
		*infer, *export_to;
	bool partial, last_good, changed_data, overwrite, profile, help;
	bool only_export;               /* export without training: of a checkpoint, or in a program that only infers */
	bool resuming, seed_given, steps_given, eval, eval_raw, eval_held;
	double begin;                   /* when the program was started */
	RtResume from;
} Args;

/* LIST: texts separated by commas, may be repeated; MAYBE: a text after =, or none */
typedef enum { FLAG, NUMBER, TEXT, LIST, MAYBE } Kind;
static const struct Option {
	const char *name;
	size_t at;                      /* in Args */
	size_t given;                   /* in Args: a bool that is set when the option is given; 0: none */
	Kind kind;
	bool own;                       /* ranks under mpirun may differ in it */
	int64_t low;                    /* of a number */
	const char *word, *help;
} options[] = {
	{ .name = "steps", .at = offsetof(Args, steps), .given = offsetof(Args, steps_given), .kind = NUMBER,
	  .word = "N", .help = "train until N steps are done in total, including those before a resume" },
	{ .name = "data", .at = offsetof(Args, data), .kind = TEXT, .own = true, .word = "PATH",
	  .help = "read this data set instead of the one that the model names: a file, a folder with a file per "
	          "input, or a pattern such as 'shards/*.bin'; if the model names files, a folder that holds files of "
	          "these names" },
	{ .name = "seed", .at = offsetof(Args, seed), .given = offsetof(Args, seed_given), .kind = NUMBER, .word = "N",
	  .help = "the seed of initial parameters, of the order of the data and of every random choice" },
	{ .name = "threads", .at = offsetof(Args, threads), .kind = NUMBER, .own = true, .low = 1, .word = "N",
	  .help = "threads of each rank; default: the processors divided by the ranks" },
	{ .name = "weights", .at = offsetof(Args, weights), .kind = TEXT, .word = "PATH",
	  .help = "start from these weights: a safetensors file; a folder with model.safetensors, or with "
	          "model.safetensors.index.json and its files; or a checkpoint. bf16, fp16 and double are converted "
	          "to float" },
	{ .name = "weights-map", .at = offsetof(Args, map), .kind = LIST, .word = "RULES",
	  .help = "map names in the file to names of the model: FROM=TO,... where * matches any text, the first "
	          "matching rule applies, and an empty TO skips the tensor: --weights-map='module.*=*,head.*='" },
	{ .name = "weights-partial", .at = offsetof(Args, partial), .kind = FLAG, .word = "",
	  .help = "initialize tensors that the file does not have as the model says" },
	{ .name = "checkpoint", .at = offsetof(Args, checkpoint), .kind = TEXT, .word = "DIR",
	  .help = "save into DIR, at the end and when stopped by a signal" },
	{ .name = "every-checkpoint", .at = offsetof(Args, save_every), .kind = NUMBER, .low = 1, .word = "N",
	  .help = "save every N steps, too" },
	{ .name = "keep", .at = offsetof(Args, keep), .kind = NUMBER, .low = 1, .word = "K",
	  .help = "keep the last K checkpoints (3)" },
	{ .name = "resume", .at = offsetof(Args, resume), .given = offsetof(Args, resuming), .kind = MAYBE,
	  .word = "DIR", .help = "resume from the newest checkpoint in DIR (default: that of --checkpoint), or from "
	          "the checkpoint DIR itself" },
	{ .name = "export", .at = offsetof(Args, export_to), .kind = TEXT, .word = "DIR",
	  .help = "write DIR/model.safetensors for PyTorch and for --weights: parameters (their averages, if the "
	          "model has `ema`), frozen parameters and running statistics. Written at the end of training; with "
	          "--resume and neither --checkpoint nor --steps, without training a step" },
	{ .name = "last-good", .at = offsetof(Args, last_good), .kind = FLAG, .word = "",
	  .help = "with --resume: skip damaged checkpoints" },
	{ .name = "changed-data", .at = offsetof(Args, changed_data), .kind = FLAG, .word = "",
	  .help = "with --resume: continue although the data set has changed" },
	{ .name = "overwrite", .at = offsetof(Args, overwrite), .kind = FLAG, .word = "",
	  .help = "with --checkpoint: remove the checkpoints that another run left in DIR, or those later than the "
	          "one that --resume names" },
	{ .name = "eval", .at = offsetof(Args, eval_of), .given = offsetof(Args, eval), .kind = MAYBE, .word = "WORDS",
	  .help = "train no step; print loss and metrics of the held-out samples, or with --data of all samples there "
	          "(=held-out: of the held-out ones among them). If the model has `ema`, the averaged weights are "
	          "evaluated; =raw evaluates the trained ones; =raw,held-out is both" },
	{ .name = "infer", .at = offsetof(Args, infer), .kind = TEXT, .word = "DIR",
	  .help = "train no step; read DIR/INPUT.npy, with samples along the first axis, and write DIR/OUTPUT.npy for "
	          "each output" },
	{ .name = "every-eval", .at = offsetof(Args, eval_every), .kind = NUMBER, .low = 1, .word = "N",
	  .help = "while training, print loss and metrics of the held-out samples every N steps and at the end" },
	{ .name = "every", .at = offsetof(Args, every), .kind = NUMBER, .own = true, .low = 1, .word = "N",
	  .help = "print every N-th step (10): number, loss, metrics, learning rate, gradient norm (if the model "
	          "clips by it), speed, time left" },
	{ .name = "log", .at = offsetof(Args, log), .kind = TEXT, .own = true, .word = "FILE",
	  .help = "write every step as a line of JSON: step, loss, metrics by name, rate (learning rate), norm (of "
	          "the gradient, if the model clips by it), tokens_per_s or samples_per_s, seconds; and events start, "
	          "eval, end" },
	{ .name = "tensorboard", .at = offsetof(Args, events), .kind = TEXT, .own = true, .word = "DIR",
	  .help = "write an event file for TensorBoard into DIR: the numbers of every step under their names in the "
	          "log, those of evaluations as held_out/NAME" },
	{ .name = "plot", .at = offsetof(Args, plot), .kind = TEXT, .own = true, .word = "FILE",
	  .help = "plot the numbers of all steps and evaluations as SVG in FILE, at evaluations and at the end; with "
	          "--resume, earlier steps are read from the log that --log names" },
	{ .name = "trace", .at = offsetof(Args, trace), .kind = TEXT, .word = "FILE",
	  .help = "write when each action of each rank ran, as JSON for chrome://tracing or Perfetto" },
	{ .name = "profile", .at = offsetof(Args, profile), .kind = FLAG, .word = "",
	  .help = "print the time of the start-up, and at the end the time of each node with its share of the "
	          "processor's peak" },
	{ .name = "dump", .at = offsetof(Args, dump), .kind = TEXT, .word = "DIR",
	  .help = "write every value of a step to DIR/step/NAME.npy, or of --eval to DIR/eval, in its logical shape; "
	          "parameters and state before it to DIR/kept; the gradient of w is w.grad" },
	{ .name = "dump-step", .at = offsetof(Args, dump_step), .kind = NUMBER, .word = "N",
	  .help = "the step to dump (0)" },
	{ .name = "help", .at = offsetof(Args, help), .kind = FLAG, .own = true, .word = "", .help = "print this" },
};
enum { NOPTION = sizeof options / sizeof options[0] };

/* Prints words in lines of COLUMNS; the first line is begun already, the others are indented. */
static void wrap(const char *s, int indent)
{
	enum { COLUMNS = 120 };
	int at = indent;
	while (*s) {
		int n = (int)strcspn(s, " ");
		if (at > indent && at + 1 + n > COLUMNS) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			at += printf(" ");
		}
		at += printf("%.*s", n, s);
		s += n + (s[n] == ' ');
	}
	printf("\n");
}

static void help(const RtProgram *p)
{
	enum { INDENT = 26 };
	bool trains = p->role[0]->schedule[RT_TRAIN] != NULL;
	printf("usage: trainer [OPTION...]\n\n%s the model that it was written "
		"for on %d rank%s, each with %zu bytes of values", trains ? "Trains" : "Infers with",
		p->nrank, p->nrank == 1 ? "" : "s", p->slab_bytes + p->window_bytes);
	if (p->nrank > 1)
		printf(", of which %zu are seen by other ranks", p->window_bytes);
	if (trains && p->epochs)
		printf("; %" PRId64 " epochs", p->epochs);
	else if (trains)
		printf("; %" PRId64 " steps", p->steps);
	printf(trains ? " of %" PRId64 " samples.\n\n" : "; %" PRId64 " samples at a time.\n\n", p->batch);
	for (int i = 0; i < NOPTION; i++) {
		bool maybe = options[i].kind == MAYBE;
		int n = printf("  --%s%s%s%s%s", options[i].name, maybe ? "[" : "", *options[i].word ? "=" : "",
			options[i].word, maybe ? "]" : "");
		printf("%*s", n < INDENT ? INDENT - n : 1, "");
		wrap(options[i].help, INDENT);
	}
	printf("\nThe first SIGINT, SIGTERM or SIGUSR1 ends training after the current step and saves a checkpoint if "
		"--checkpoint is given;\n"
		"the second one ends it at once.\n"
		"Exit status: 0 done, 2 usage, 20 data, 21 checkpoint, 22 a rank was lost, 23 not a number, 24 another "
		"plan, 25 memory,\n"
		"75 stopped by a signal: continue with --resume\n"
		"A rank is lost if its process has not run for RT_PATIENCE seconds (50), because it was stopped or its "
		"machine is unreachable.\n");
}

static int parse_value(const struct Option *o, const char *s, Args *a)
{
	char *end;
	void *to = (char *)a + o->at;
	if (o->kind == LIST && s && *s && strlen(to) + strlen(s) + 1 < RT_RULES) {
		strcat(strcat(to, *(char *)to ? "," : ""), s);
		return 0;
	}
	if (o->kind != NUMBER && o->kind != LIST && s && *s) {
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

/* The edit distance of a and b; both are shorter than WORD. */
enum { WORD = 32 };
static int distance(const char *a, size_t na, const char *b, size_t nb)
{
	int row[WORD + 1];
	for (size_t k = 0; k <= nb; k++)
		row[k] = (int)k;
	for (size_t i = 1; i <= na; i++) {
		int left = row[0]++;
		for (size_t k = 1; k <= nb; k++) {
			int change = left + (a[i - 1] != b[k - 1]),
				other = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
			left = row[k];
			row[k] = change < other ? change : other;
		}
	}
	return row[nb];
}

static int unknown(const char *arg)
{
	size_t n = strcspn(arg, "=");
	const struct Option *near = NULL;
	int best = 3;
	for (int i = 0; i < NOPTION && !strncmp(arg, "--", 2) && n > 3 && n < WORD; i++) {
		int d = distance(arg + 2, n - 2, options[i].name, strlen(options[i].name));
		bool begins = !strncmp(options[i].name, arg + 2, n - 2) ||
			!strncmp(options[i].name, arg + 2, strlen(options[i].name));
		d = begins && d > 2 ? 2 : d;
		near = d < best ? &options[i] : near;
		best = d < best ? d : best;
	}
	fprintf(stderr, "trainer: unknown %s %.*s%s%s%s --help lists options\n",
		strncmp(arg, "--", 2) ? "argument" : "option", (int)n, arg, near ? "; did you mean --" : "",
		near ? near->name : "", near ? "?" : ";");
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
		if (o->given)
			*(bool *)((char *)a + o->given) = true;
		bool next = *i + 1 < argc && (o->kind != MAYBE || strncmp(argv[*i + 1], "--", 2));
		if (arg[len] && o->kind != FLAG)
			return parse_value(o, arg + len + 1, a);
		if (o->kind == NUMBER || o->kind == TEXT || o->kind == LIST || (o->kind == MAYBE && next))
			return parse_value(o, next ? argv[++*i] : NULL, a);
		if (o->kind == FLAG && !arg[len])
			*(bool *)((char *)a + o->at) = true;
		else if (arg[len])
			break;
		return 0;
	}
	return unknown(argv[*i]);
}

/* ---- agreement of ranks ---- */

/* The words of --eval, separated by commas. */
static int eval_words(Args *a)
{
	for (const char *s = a->eval_of; *s;) {
		size_t n = strcspn(s, ",");
		bool raw = n == 3 && !strncmp(s, "raw", n), held = n == 8 && !strncmp(s, "held-out", n);
		if (!raw && !held) {
			fprintf(stderr, "trainer: --eval takes raw, held-out, both with a comma between, or nothing\n");
			return RT_USAGE;
		}
		a->eval_raw |= raw;
		a->eval_held |= held;
		s += n + (s[n] == ',');
	}
	return 0;
}

/* The total number of steps: as given, or from the epochs and the open data set. */
static int64_t steps_of(const Ctx *c, const Args *a)
{
	int64_t train, held, dropped;
	rt_data_counts(c, &train, &held, &dropped);
	if (a->steps_given || !c->program->epochs)
		return a->steps;
	return c->program->epochs * (train / c->program->batch);
}

static bool is_given(const struct Option *o, const Args *a)
{
	const void *at = (const char *)a + o->at;
	if (o->given)
		return *(const bool *)((const char *)a + o->given);
	if (o->kind == LIST)
		return *(const char *)at != 0;
	return o->kind == FLAG ? *(const bool *)at : *(const char *const *)at != NULL;
}

/* Under mpirun each rank has its own command line.  Of a path, ranks compare only whether it is given: machines may
 * have different ones. */
static int same_options(Ctx *c, const Args *a)
{
	RtFact fact[NOPTION + 2];
	int n = 0;
	for (int i = 0; i < NOPTION; i++) {
		const struct Option *o = &options[i];
		if (o->own)
			continue;
		snprintf(fact[n].name, RT_FACT, "--%s", o->name);
		if (o->kind == NUMBER)
			snprintf(fact[n].value, RT_FACT, "%" PRId64,
				*(const int64_t *)(const void *)((const char *)a + o->at));
		else
			snprintf(fact[n].value, RT_FACT, "%s", is_given(o, a) ? "given" : "not given");
		n++;
	}
	fact[n++] = (RtFact){ "whether --steps is", "" };
	fact[n++] = (RtFact){ "--eval", "" };
	snprintf(fact[n - 2].value, RT_FACT, "%s", a->steps_given ? "given" : "not given");
	if (a->eval)
		snprintf(fact[n - 1].value, RT_FACT, "%s%s%s", a->eval_raw ? "raw " : "",
			a->eval_held ? "held-out " : "", a->data ? "with --data" : "without --data");
	return rt_same(c, n, fact);
}

/* Compares the contents of files. */
static int same_files(Ctx *c, const Args *a, uint64_t data)
{
	RtFact fact[] = { { "the step that it begins with", "" }, { "the number of steps", "" },
		{ "the manifest of the checkpoint", "" }, { "the data set", "" } };
	int64_t train, held, dropped;
	rt_data_counts(c, &train, &held, &dropped);
	snprintf(fact[0].value, RT_FACT, "%" PRId64, c->step);
	snprintf(fact[1].value, RT_FACT, "%" PRId64, steps_of(c, a));
	snprintf(fact[2].value, RT_FACT, "checksum %08" PRIx32, a->resuming ? a->from.manifest : 0);
	snprintf(fact[3].value, RT_FACT, "%" PRId64 " samples, checksum %016" PRIx64, train + held, data);
	return rt_same(c, sizeof fact / sizeof *fact, fact);
}

/* The checkpoint to resume from.  Rank 0 chooses it; other machines may have other paths. */
static int find_checkpoint(Ctx *c, Args *a)
{
	const char *dir = a->resume ? a->resume : a->checkpoint;
	int code = (int)rt_worst(c, (uint32_t)(c->rank ? 0 : rt_resume_find(c, dir, a->last_good, &a->from)));
	if (code)
		return code;
	rt_broadcast(c, 0, &a->from.step, sizeof a->from.step);
	rt_broadcast(c, 0, &a->from.itself, sizeof a->from.itself);
	code = (int)rt_worst(c, (uint32_t)(c->rank ? rt_resume_at(c, dir, c->first_here, &a->from) : 0));
	if (!code && a->seed_given && (uint64_t)a->seed != a->from.seed)
		code = rt_error(c, RT_USAGE, "the checkpoint was trained with --seed=%" PRIu64, a->from.seed);
	a->seed = (int64_t)a->from.seed;
	return code;
}

/* ---- steps ---- */

/* The loss is not finite: the step runs again, to report the first value that is not finite.  Nothing was updated yet,
 * so the state before the step is saved.  All ranks come here together, by the verdict of the step. */
static int not_a_number(Ctx *c, const Args *a)
{
	rt_data_pause(c);
	rt_watch_close(c);
	c->at = NULL;
	if (c->vote.all.not_finite && !rt_watch_open(c, NULL, false, true)) {
		c->again = true;
		rt_do(c, RT_TRAIN);
	}
	rt_watch_close(c);
	c->at = NULL;
	if (a->checkpoint)
		rt_save(c, c->step, true);
	return RT_NUMERIC;
}

/* RT_STOPPED: a signal ended it, and nothing is reported. */
static int evaluate(Ctx *c, RtReport *r)
{
	RtRecord what;
	int code = rt_eval_all(c, &what);
	if (!code && c->rank == 0)
		rt_report(c, r, &what);
	return code;
}

/* Evaluation has its own samples and writes no kept values, so it does not affect training. */
static int evaluate_between(Ctx *c, RtReport *r)
{
	double begin = rt_seconds();
	int code = evaluate(c, r);
	r->begin += rt_seconds() - begin;
	return code ? code : rt_data_go_on(c, c->step);
}

static int train_steps(Ctx *c, const Args *a, RtReport *r)
{
	int code = 0;
	/* state loaded from another folder is saved here, even if no step is left */
	int64_t saved = a->resume ? -1 : c->step;
	if (a->resuming && c->step >= r->steps && c->rank == 0)
		printf("the checkpoint has %" PRId64 " steps already: nothing to train up to --steps=%" PRId64 "\n",
			c->step, r->steps);
	while (!code && c->step < r->steps) {
		c->rate = c->program->rate;
		c->norm = NAN;
		c->after = NULL;
		if (a->dump && c->step == a->dump_step && (code = rt_dump_begin(c, a->dump)))
			return code;
		code = rt_do(c, RT_TRAIN);
		c->after = NULL;
		if (code == RT_NUMERIC)
			return not_a_number(c, a);
		if (code)
			return code;
		if (c->rank == 0)
			rt_report_step(c, r);
		c->step++;
		c->at = NULL;
		bool stop = c->nrank > 1 ? c->vote.all.stop : rt_stop_asked(c);
		rt_save_look(c);
		bool due = a->save_every && c->step % a->save_every == 0, end = stop || c->step == r->steps;
		if (a->eval_every && !stop && (c->step % a->eval_every == 0 || end))
			code = evaluate_between(c, r);
		if (code == RT_STOPPED) {
			code = 0;
			stop = end = true;
		}
		if (!code && (a->checkpoint ? due || end : end))
			code = rt_replicas(c);
		if (!code && a->checkpoint && (due || end))
			code = rt_data_same(c);
		if (!code && a->checkpoint && (due || end)) {
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

static int evaluate_only(Ctx *c, const Args *a, RtReport *r)
{
	int code = a->eval_raw ? rt_average_off(c) : 0;
	if (!code && a->dump)
		code = rt_dump_begin(c, a->dump);
	return code ? code : evaluate(c, r);
}

/* The phases of the start-up: process, threads and scratch, memory, initial values, data. */
enum { PROCESS, THREADS, MEMORY, VALUES, SAMPLES, PHASES };

static RtWanted wanted(const Args *a)
{
	return !a->eval ? RT_SAMPLES_TO_TRAIN : a->data && !a->eval_held ? RT_ALL : RT_HELD_OUT;
}

static int prepare(Ctx *c, Args *a, double *at)
{
	at[PROCESS] = rt_seconds();
	int code = same_options(c, a);
	if (!code && a->resuming)
		code = find_checkpoint(c, a);
	c->seed = (uint64_t)a->seed;
	c->step = a->resuming ? a->from.step : 0;
	if (!code)
		code = rt_pool_open(c, a->threads ? (int)(a->threads < MAX_THREADS ? a->threads : MAX_THREADS)
			: rt_threads(c));
	if (!code)
		code = rt_lane_open(c);
	if (!code)
		code = rt_pace_open(c);
	at[THREADS] = rt_seconds();
	if (!code)
		code = rt_device_touch(c);
	at[MEMORY] = rt_seconds();
	int drawn = 0;
	if (!code)
		code = rt_start_all(c, &(RtFrom){ a->weights, a->map, a->partial }, a->resuming, &drawn);
	if (!code && drawn && !c->rank && !a->weights && !a->resuming && (a->eval || a->infer))
		fprintf(stderr, "warning: nothing was trained or loaded: %d parameters are random; --weights=PATH or "
			"--resume=DIR loads them\n", drawn);
	if (!code && a->resuming)
		code = rt_resume_load(c, &a->from);
	at[VALUES] = rt_seconds();
	if (!code && !a->infer && !a->only_export)
		code = rt_data_open(c, a->data, c->step, wanted(a));
	if (!a->infer)
		rt_signals_data(c);
	int64_t held;
	if (!code && a->eval_every && wanted(a) == RT_SAMPLES_TO_TRAIN && !a->infer && !a->only_export)
		code = rt_eval_possible(c, &held);      /* fails before the first step */
	at[SAMPLES] = rt_seconds();
	bool trains = !a->eval && !a->infer && !a->only_export;
	uint64_t data = !code && (c->nrank > 1 || a->resuming || a->checkpoint) ? rt_data_print(c) : 0;
	if (!code)
		code = same_files(c, a, data);
	if (!code && a->resuming && trains && !a->changed_data && data != a->from.data)
		code = c->rank ? RT_DATA : rt_resume_other_data(c, &a->from);
	if (!code && a->resuming && wanted(a) == RT_ALL && data == a->from.data && c->rank == 0)
		fprintf(stderr, "note: these samples include those that the checkpoint was trained on; "
			"--eval=held-out evaluates only the held-out ones\n");
	RtSaving to = { .dir = a->checkpoint, .keep = a->keep, .data = data, .from = a->resuming ? &a->from : NULL,
		.overwrite = a->overwrite, .last_good = a->last_good };
	if (!code && a->checkpoint && trains)
		code = rt_saver_open(c, &to);
	if (!code && (a->trace || a->profile))
		code = rt_watch_open(c, a->trace, a->profile, false);
	return code;
}

/* Warns if the schedule does not end where this run does. */
static void check_schedule(const RtProgram *p, int64_t steps)
{
	if (p->total && steps != p->total)
		fprintf(stderr, "trainer: warning: the learning-rate schedule ends at step %" PRId64
		        ", this run at step %" PRId64 " (--steps)\n", p->total, steps);
	else if (p->warmup && p->warmup >= steps)
		fprintf(stderr, "trainer: warning: the learning-rate warm-up takes %" PRId64 " steps, this run %" PRId64
		        " (--steps)\n", p->warmup, steps);
}

/* Evaluates, infers or trains, as requested; then exports. */
static int work(Ctx *c, const Args *a, RtReport *r)
{
	int code = 0;
	if (a->infer) {
		code = rt_infer_files(c, a->infer);
	} else if (a->eval) {
		code = evaluate_only(c, a, r);
	} else if (!a->only_export) {
		if (c->rank == 0 && r->steps > 0)
			check_schedule(c->program, r->steps);
		code = train_steps(c, a, r);
	}
	double begin = rt_seconds();
	if (!code && a->export_to)
		code = rt_export(c, a->export_to);
	r->begin += rt_seconds() - begin;
	if (code == RT_STOPPED && a->export_to && !c->rank)
		fprintf(stderr, "stopped: nothing was exported\n");
	return code;
}

/* One rank, from start to end. */
static int run(Ctx *c, void *arg)
{
	Args *a = arg;
	RtReport r = { .log_to = a->log, .events_to = a->events, .plot_to = a->plot, .every = a->every,
		.append = a->resuming, .saves = a->checkpoint != NULL, .trains = !a->eval && !a->infer,
		.reads = a->resuming || a->weights, .writes = (a->trace != NULL) + (a->export_to != NULL) };
	r.set = wanted(a) == RT_ALL ? a->data : NULL;
	double at[PHASES];
	int code = prepare(c, a, at);
	r.steps = steps_of(c, a);
	if (!code)
		code = rt_report_open(c, &r);
	if (!code) {
		if (a->profile && c->rank == 0)
			printf("start %.1f ms: process %.1f, threads %.1f, memory %.1f, values %.1f, data %.1f\n",
				1e3 * (rt_seconds() - a->begin), 1e3 * (at[PROCESS] - a->begin),
				1e3 * (at[THREADS] - at[PROCESS]), 1e3 * (at[MEMORY] - at[THREADS]),
				1e3 * (at[VALUES] - at[MEMORY]), 1e3 * (at[SAMPLES] - at[VALUES]));
		code = work(c, a, &r);
		if (c->rank == 0) {
			rt_report_end(c, &r, code);
			rt_report_saved(&r, c, code, a->checkpoint);
		}
	}
	if (!code || code == RT_STOPPED) {
		int bad = rt_watch_close(c);
		code = code ? code : bad;
	}
	rt_saver_close(c);
	rt_signals_data(NULL);
	rt_data_close(c);
	rt_lane_close(c, code && code != RT_STOPPED);
	rt_pace_close(c);
	rt_pool_close(c);
	return code;
}

static int check_weights(const Args *a)
{
	const char *wrong = *a->map ? rt_map_wrong(a->map) : NULL;
	if (a->weights && a->resuming)
		fprintf(stderr, "trainer: --resume takes all weights from the checkpoint, --weights from elsewhere: "
			"give one of them\n");
	else if (!a->weights && (*a->map || a->partial))
		fprintf(stderr, "trainer: --weights-%s needs --weights=PATH\n", *a->map ? "map" : "partial");
	else if (wrong)
		fprintf(stderr, "trainer: --weights-map=%s: %s\n", a->map, wrong);
	else
		return 0;
	return RT_USAGE;
}

int rt_main(const RtProgram *p, int argc, char **argv)
{
	Args a = { .steps = p->steps, .every = 10, .seed = (int64_t)p->seed, .keep = 3, .begin = rt_seconds() };
	for (int i = 1; i < argc; i++) {
		int code = parse_one(argc, argv, &i, &a);
		if (code)
			return code;
	}
	if (a.help) {
		help(p);
		return RT_OK;
	}
	if (!a.infer && !a.export_to && !p->role[0]->schedule[RT_TRAIN]) {
		fprintf(stderr, "trainer: this program only infers: --infer=DIR reads DIR/INPUT.npy and writes "
			"DIR/OUTPUT.npy\n");
		return RT_USAGE;
	}
	if (a.resuming && !p->role[0]->schedule[RT_TRAIN]) {
		fprintf(stderr, "trainer: this program only infers: --weights=DIR/state.safetensors takes the "
			"parameters of a checkpoint\n");
		return RT_USAGE;
	}
	if (check_weights(&a))
		return RT_USAGE;
	a.only_export = a.export_to && !a.eval && !a.infer &&
		(!p->role[0]->schedule[RT_TRAIN] || (a.resuming && !a.checkpoint && !a.steps_given));
	if (a.eval_of && eval_words(&a))
		return RT_USAGE;
	if (a.save_every && !a.checkpoint) {
		fprintf(stderr, "trainer: --every-checkpoint needs --checkpoint=DIR\n");
		return RT_USAGE;
	}
	if (a.resuming && !a.resume && !a.checkpoint) {
		fprintf(stderr, "trainer: --resume needs DIR, or --checkpoint=DIR\n");
		return RT_USAGE;
	}
	if (a.overwrite && !a.checkpoint) {
		fprintf(stderr, "trainer: --overwrite needs --checkpoint=DIR\n");
		return RT_USAGE;
	}
	rt_stops(a.eval || a.infer || a.only_export ? RT_NO_STEPS : a.checkpoint ? RT_SAVES : RT_TRAINS);
	return rt_run(p, run, &a);
}
