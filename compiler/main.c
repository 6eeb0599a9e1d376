/* Options, files, exit status.  All options are rows of one table, which --help prints and parsing searches. */
#include "compiler.h"
#include "lanes/lanes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int set_dim(const char *), set_target(const char *), set_recompute(const char *),
	set_prefix(const char *), set_deterministic(const char *);

#define CAP(n, f, text) \
	{ .name = "max-" n, .arg = "N", .kind = NUMBER, .to = &limits.f, .high = INT64_MAX, .help = text }
#define CAP_BYTES(n, f, text) \
	{ .name = "max-" n, .arg = "BYTES", .kind = BYTES, .to = &limits.f, .high = INT64_MAX, .help = text }
static const Option options[] = {
	{ .name = "output", .arg = "DIR", .kind = TEXT, .to = &opt.out,
	  .help = "write the program into DIR (also -o DIR)" },
	{ .name = "ranks", .arg = "N", .kind = NUMBER, .to = &opt.ranks, .low = 1, .high = 65536,
	  .help = "spread the training step over N ranks; without @mesh, they are a mesh of one axis, called ranks" },
	{ .name = "stages", .arg = "N", .kind = NUMBER, .to = &opt.stages, .low = 1, .high = 65536,
	  .help = "cut the model into a pipeline of N stages of about equal time; without @mesh, the ranks are as many "
		"groups, or fewer, each with several stages" },
	{ .name = "micro-batches", .arg = "N", .kind = NUMBER, .to = &opt.micro_batches, .low = 1, .high = INT64_MAX,
	  .help = "split the batch into N micro-batches; the same as accumulate: N of @train; without both, 1, or of a "
		"pipeline the number with the quickest step" },
	{ .name = "schedule", .arg = "NAME|FILE.csv", .kind = TEXT, .to = &opt.schedule,
	  .help = "the order in which stages run micro-batches: a name, such as 1f1b or zb-h1 (a wrong one lists all), "
		"or a schedule of PyTorch; without it the best that is found" },
	{ .name = "deterministic", .arg = "any-ranks[:N]", .kind = FUNCTION, .set = set_deterministic,
	  .help = "sums in N chunks (default 8), a power of two: 1, 2, 4 .. N ranks give the same bits" },
	{ .name = "machine", .arg = "FILE|NAME", .kind = TEXT, .to = &opt.machine,
	  .help = "the performance of devices and links: a file, or cpu, a100x8, h100x8" },
	{ .name = "memory", .arg = "BYTES", .kind = BYTES, .to = &opt.memory, .low = 1, .high = INT64_MAX,
	  .help = "the memory of a rank, instead of that of the machine: 2000000000, 2GB, 2GiB" },
	{ .name = "recompute", .arg = "auto|none", .kind = FUNCTION, .set = set_recompute,
	  .help = "auto, the default: where a rank would not fit into its memory, the backward pass computes parts of "
		"the forward pass again; none: only what @recompute marks" },
	{ .name = "probe", .kind = FLAG, .to = &opt.probe,
	  .help = "measure this computer and print a file for --machine" },
	{ .name = "solve-seconds", .arg = "N", .kind = NUMBER, .to = &opt.solve_seconds, .high = 1000000,
	  .help = "take the best plan after about N seconds of looking for it, counted in work, so that equal inputs "
		"give equal plans" },
	{ .name = "schedule-seconds", .arg = "N", .kind = NUMBER, .to = &opt.schedule_seconds, .high = 1000000,
	  .help = "take the best order of the blocks of a pipeline after about N seconds of looking for it, counted in "
		"work; 0: by list scheduling and named schedules only; without it, a quarter of a second" },
	{ .name = "target", .arg = "c|cuda", .kind = FUNCTION, .set = set_target,
	  .help = "what the program is written in (default: as the devices of @mesh are, else c)" },
	{ .name = "simulate", .arg = "[=FILE]", .kind = TEXT, .to = &opt.simulate,
	  .help = "print what every rank of a pipeline does when, what it waits for, and the memory in use, of a "
		"model or of a text of block times (compiler/lanes/PIPELINES.md), and stop" },
	{ .name = "trace", .arg = "FILE.json", .kind = TEXT, .to = &opt.trace,
	  .help = "of --simulate: write a trace for chrome://tracing or ui.perfetto.dev" },
	{ .name = "html", .arg = "FILE.html", .kind = TEXT, .to = &opt.html,
	  .help = "of --simulate: write a page with a timeline of every lane" },
	{ .name = "write-schedule", .arg = "FILE.csv", .kind = TEXT, .to = &opt.write_schedule,
	  .help = "write the schedule of the pipeline, of a model or of --simulate, as PyTorch reads it" },
	{ .name = "set", .arg = "NAME=N", .kind = FUNCTION, .set = set_dim,
	  .help = "give a symbolic dimension a value" },
	{ .name = "train", .arg = "TEXT", .kind = TEXT, .to = &opt.train,
	  .help = "the training section, as it would stand inside @train(...)" },
	{ .name = "prefix", .arg = "NAME", .kind = FUNCTION, .set = set_prefix,
	  .help = "the prefix of the names of the C interface, instead of sbp" },
	{ .name = "infer", .kind = FLAG, .to = &opt.infer,
	  .help = "write a program that computes the outputs, without training" },
	{ .name = "place", .arg = "FILE", .kind = TEXT, .to = &opt.place,
	  .help = "a side file with annotations for a model without them" },
	{ .name = "seed", .arg = "N", .kind = NUMBER, .to = &opt.seed, .high = INT64_MAX,
	  .help = "the seed of all random numbers, here and in the program" },
	{ .name = "steps", .arg = "N", .kind = NUMBER, .to = &opt.steps, .high = INT64_MAX,
	  .help = "how many steps the program trains by default" },
	{ .name = "data-root", .arg = "DIR", .kind = TEXT, .to = &extdata_root,
	  .help = "below DIR, external data may be reached through links" },
	{ .name = "print", .kind = FLAG, .to = &opt.print, .help = "print the model as text and stop" },
	{ .name = "print-io", .kind = FLAG, .to = &opt.print_io,
	  .help = "print names and types of inputs and outputs, as annotations and --train name them, and stop" },
	{ .name = "write", .arg = "FILE.onnx", .kind = TEXT, .to = &opt.write,
	  .help = "write the model as ONNX, and the external data that it names beside it, and stop" },
	{ .name = "eval", .kind = FLAG, .to = &opt.eval,
	  .help = "evaluate the model on --inputs and write --outputs" },
	{ .name = "inputs", .arg = "DIR", .kind = TEXT, .to = &opt.inputs,
	  .help = "input_N.npy, input_N.pb or NAME.npy" },
	{ .name = "outputs", .arg = "DIR", .kind = TEXT, .to = &opt.outputs, .help = "where output_N.npy go" },
	{ .name = "list-ops", .kind = FLAG, .to = &opt.list_ops, .help = "print the operator table" },
	{ .name = "list-annotations", .kind = FLAG, .to = &opt.list_annotations,
	  .help = "print the table of annotations" },
	{ .name = "list-passes", .kind = FLAG, .to = &opt.list_passes, .help = "print the passes in order" },
	{ .name = "dump-after", .arg = "PASS|all", .kind = TEXT, .to = &opt.dump_after,
	  .help = "print the graph after a pass; it can be read back" },
	{ .name = "stop-after", .arg = "PASS", .kind = TEXT, .to = &opt.stop_after,
	  .help = "run no pass after this one" },
	{ .name = "explain", .arg = "[=NAME]", .kind = TEXT, .to = &opt.explain,
	  .help = "report how values are placed, split, moved and stored; of NAME why, what else it could be at what "
		"cost, and how to ask for it" },
	CAP_BYTES("file-bytes", file_bytes, "of a text input"),
	CAP_BYTES("onnx-bytes", onnx_bytes, "of an .onnx input, without external data"),
	CAP_BYTES("name-bytes", name_bytes, "of one name or string"),
	CAP("nodes", nodes, "in a graph, after inlining"),
	CAP("depth", depth, "of nested brackets, messages, functions"),
	CAP("table", table, "of a constant that the definition of an operator makes"),
	CAP("elements", elements, "of one constant or evaluated tensor"),
	CAP_BYTES("const-bytes", const_bytes, "of one folded constant"),
	CAP("compared", compared, "of the names held against patterns that begin and end with a wildcard"),
	CAP_BYTES("memory", memory, "of the bytes held while a model is read; 0 is 64 MiB and eight times the input"),
	CAP("unroll", unroll, "of the nodes that one loop may become"),
	{ .name = "max-errors", .arg = "N", .kind = NUMBER, .to = &limits.errors, .low = 1, .high = INT64_MAX,
	  .help = "of the errors shown in one run; unsupported nodes are shown all" },
	CAP_BYTES("checksum-bytes", checksum_bytes, "of external data that is compared with its checksum; 0: none is"),
	{ .name = "version", .kind = FLAG, .to = &opt.version, .help = "print the version" },
	{ .name = "help", .arg = "[=man|bash]", .kind = TEXT, .to = &opt.help,
	  .help = "print this, or it as a manual page, or a completion for bash" },
};
enum { NOPTION = sizeof options / sizeof options[0] };

static int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *text = NULL;
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "sbpcc: %s\nsbpcc: --help lists the options\n",
		n < 0 ? "?" : diag_escape(&arena_process, text, (size_t)n));
	free(text);
	return -1;
}

static int number(const char *name, const char *s, int64_t low, int64_t high, int64_t *out)
{
	char *end;
	errno = 0;
	long long v = strtoll(s, &end, 10);
	if (end == s || *end || errno || v < low || v > high) {
		if (high == INT64_MAX)
			return usage("--%s=%s: must be a number of at least %" PRId64, name, s, low);
		return usage("--%s=%s: must be a number from %" PRId64 " to %" PRId64, name, s, low, high);
	}
	*out = v;
	return 0;
}

/* A number of bytes, with a unit or without. */
static int bytes(const char *name, const char *s, int64_t low, int64_t high, int64_t *out)
{
	static const struct { const char *name; double bytes; } units[] = {
		{ "", 1 }, { "B", 1 }, { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 }, { "TB", 1e12 },
		{ "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 }, { "TiB", 1099511627776.0 },
	};
	char *end;
	errno = 0;
	long long whole = strtoll(s, &end, 10);
	double v = *end == '.' ? strtod(s, &end) : (double)whole, unit = 0;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcasecmp(end, units[i].name))
			unit = units[i].bytes;
	if (!unit || *s < '0' || *s > '9' || errno || v * unit < (double)low || v * unit >= 9.2e18)
		return usage("--%s=%s: must be a number of bytes of at least %" PRId64
			", such as 2000000000, 2GB (10^9) or 2GiB (2^30)", name, s, low);
	int64_t n = unit > 1 ? (int64_t)(v * unit) : (int64_t)whole;
	*out = n < high ? n : high;
	return 0;
}

static int set_dim(const char *s)
{
	const char *eq = strchr(s, '=');
	int64_t v = 0;
	if (!eq || eq == s)
		return usage("--set=%s: must be NAME=NUMBER", s);
	if (number("set", eq + 1, 0, INT64_MAX, &v))
		return -1;
	dim_bind(name_n(s, (size_t)(eq - s)), v);
	return 0;
}

/* An identifier of C, so that names that begin with it are identifiers, too. */
static int set_prefix(const char *s)
{
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	if (!n || s[n] || n > 64 || strchr("0123456789_", *s))
		return usage("--prefix=%s: must be letters, digits and _, a letter first, at most 64", s);
	opt.prefix = s;
	return 0;
}

/* The limit is the number of partial values that a transfer reduces as one tree. */
static int set_deterministic(const char *s)
{
	static const char any[] = "any-ranks";
	size_t n = sizeof any - 1;
	opt.chunks = CHUNKS;
	if (strncmp(s, any, n) || (s[n] && s[n] != ':'))
		return usage("--deterministic=%s: must be any-ranks or any-ranks:N", s);
	if (s[n] && number("deterministic", s + n + 1, 1, CHUNKS_MOST, &opt.chunks))
		return -1;
	if (opt.chunks & (opt.chunks - 1))
		return usage("--deterministic=%s: the number of chunks must be a power of two", s);
	return 0;
}

static int set_recompute(const char *s)
{
	opt.no_recompute = !strcmp(s, "none");
	if (!opt.no_recompute && strcmp(s, "auto"))
		return usage("--recompute=%s: must be auto or none", s);
	return 0;
}

static int set_target(const char *s)
{
	if (!strcmp(s, "c") || !strcmp(s, "cuda")) {
		opt.target = strcmp(s, "cuda") ? TARGET_C : TARGET_CUDA;
		return 0;
	}
	return usage("--target=%s: must be c or cuda", s);
}

/* Keeps an option for the command that a tree names as its origin, unless it does not change the tree. */
static void remember(const Option *o, const char *value)
{
	static const char *const others[] = { "output", "dump-after", "stop-after", "explain" };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(o->name, others[i]))
			return;
	const char *text = value ? name_fmt("--%s=%s", o->name, value) : name_fmt("--%s", o->name);
	arena_push(&arena_process, opt.given, opt.ngiven, text);
}

static int apply(const Option *o, const char *value)
{
	remember(o, value);
	switch (o->kind) {
	case FLAG: *(bool *)o->to = true; return 0;
	case TEXT: *(const char **)o->to = value; return 0;
	case NUMBER: return number(o->name, value, o->low, o->high, o->to);
	case BYTES: return bytes(o->name, value, o->low, o->high, o->to);
	case FUNCTION: return o->set(value);
	}
	return -1;
}

static int unknown(const char *arg, size_t len)
{
	const char *names[NOPTION + 1] = { 0 };
	for (int i = 0; i < NOPTION; i++)
		names[i] = options[i].name;
	const char *near = diag_suggest(name_n(arg, len), names);
	if (near)
		return usage("unknown option --%.*s; did you mean --%s?", (int)len, arg, near);
	return usage("unknown option --%.*s", (int)len, arg);
}

/* "--name", "--name=value" or "--name value" at argv[*i]. */
static int long_option(int argc, char **argv, int *i)
{
	const char *arg = argv[*i] + 2;
	size_t len = strcspn(arg, "=");
	for (int k = 0; k < NOPTION; k++) {
		const Option *o = &options[k];
		if (strlen(o->name) != len || strncmp(o->name, arg, len))
			continue;
		if (!o->arg)
			return arg[len] ? usage("--%s takes no value", o->name) : apply(o, NULL);
		if (arg[len])
			return apply(o, arg + len + 1);
		if (o->arg[0] == '[')
			return apply(o, "");
		if (*i + 1 >= argc)
			return usage("--%s needs a value: --%s=%s", o->name, o->name, o->arg);
		return apply(o, argv[++*i]);
	}
	return unknown(arg, len);
}

static int parse_options(int argc, char **argv)
{
	bool plain = false;
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		if (!plain && !strcmp(a, "--")) {
			plain = true;
		} else if (!plain && !strncmp(a, "--", 2)) {
			if (long_option(argc, argv, &i))
				return -1;
		} else if (!plain && !strncmp(a, "-o", 2)) {
			if (!a[2] && i + 1 >= argc)
				return usage("-o needs a directory");
			opt.out = a[2] ? a + 2 : argv[++i];
		} else if (!plain && a[0] == '-' && a[1]) {
			return usage("unknown option %s", a);
		} else if (opt.input) {
			return usage("two models: %s and %s", opt.input, a);
		} else {
			opt.input = a;
		}
	}
	return 0;
}

static bool names_model(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot && (!strcmp(dot, ".ir") || !strcmp(dot, ".onnx"));
}

/* --simulate=FILE is a text and --simulate MODEL a model, but the name of the file decides. */
static void choose_simulated(void)
{
	const char *s = opt.simulate;
	if (s && *s && !opt.input && names_model(s)) {
		opt.input = s;
		opt.simulate = "";
	} else if (s && !*s && opt.input && !names_model(opt.input)) {
		opt.simulate = opt.input;
		opt.input = NULL;
	}
}

static int check_options(void)
{
	if (!opt.input)
		return usage("no model given");
	if (opt.dump_after && strcmp(opt.dump_after, "all") && !passes_known(opt.dump_after))
		return usage("--dump-after=%s: there is no such pass; --list-passes lists them", opt.dump_after);
	if (opt.stop_after && !passes_known(opt.stop_after))
		return usage("--stop-after=%s: there is no such pass; --list-passes lists them", opt.stop_after);
	if (!opt.simulate && (opt.trace || opt.html))
		return usage("--%s needs --simulate", opt.trace ? "trace" : "html");
	if (opt.simulate && *opt.simulate)
		return usage("--simulate=FILE simulates a text, but %s is given, too: --simulate without a file "
			"simulates a model", opt.input);
	if (opt.simulate && (opt.print || opt.print_io || opt.write || opt.eval || opt.infer || opt.stop_after))
		return usage("--simulate of a model plays its training step: it does not go with --print, --print-io, "
			"--write, --eval, --infer or --stop-after");
	if (opt.eval && (!opt.inputs || !opt.outputs))
		return usage("--eval needs --inputs and --outputs");
	if (opt.out && !*opt.out)
		return usage("-o needs a directory");
	return 0;
}

/* Adds the settings of the command line to the model. */
static int annotate(Model *m)
{
	ExitCode why;
	if (opt.place) {
		uint32_t f = file_open(opt.place, &why);
		if (!f || parse_place(f, m))
			return -1;
	}
	if (opt.train && parse_train(opt.train, m))
		return -1;
	if (microbatch_option(m))
		return -1;
	mesh_default(m);
	stages_default(m);
	if (opt.explain && *opt.explain)
		explain_read(m, opt.explain);
	bool as_written = opt.print || opt.print_io || opt.write || opt.infer;
	return (!as_written && objective_add(m)) || resolve_run(m) ? -1 : 0;
}

/* Writes to a temporary name first: the model may still be mapped from the same file. */
static int write_onnx(const Model *m)
{
	const char *tmp = name_fmt("%s.tmp%ld", opt.write, (long)getpid());
	FILE *f = fopen(tmp, "wbx");
	int bad = f && !extdata_copy(m, opt.write) ? onnx_write(f, m) : -1;
	if (f && fclose(f))
		bad = -1;
	if (!bad && rename(tmp, opt.write))
		bad = -1;
	if (bad && !diag_errors())
		fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write %s: %s", opt.write, strerror(errno));
	if (bad && f)
		remove(tmp);
	return bad;
}

static SimulateOptions simulate_options(void)
{
	return (SimulateOptions){
		.path = *opt.simulate ? opt.simulate : opt.input, .trace = opt.trace, .html = opt.html,
		.csv = opt.write_schedule,
		.seconds = opt.schedule_seconds < 0 ? SEARCH_USUAL : (double)opt.schedule_seconds,
	};
}

static int work(Model *m)
{
	if (dim_check() || annotate(m) || verify_graph(m->graph, 0))
		return -1;
	arena_bound(0);
	train_bind_batch(m);
	if (opt.print) {
		print_model(stdout, m);
		return 0;
	}
	if (opt.print_io) {
		print_io(stdout, m->graph);
		return 0;
	}
	if (opt.write)
		return write_onnx(m);
	if (opt.eval)
		return evaluate_files(m, opt.inputs, opt.outputs);
	if ((!opt.infer && train_check_batch(m)) || passes_run(m))
		return -1;
	if (opt.simulate) {
		SimulateOptions o = simulate_options();
		return simulate_model(m->graph, &o);
	}
	if (!opt.out && !opt.explain && !opt.dump_after && !opt.stop_after)
		puts("no mistake was found, and nothing was written: -o DIR writes the program, --explain shows the "
			"plan, --print the model");
	return 0;
}

/* Of a text; a model goes through the passes. */
static int simulate(void)
{
	SimulateOptions o = simulate_options();
	int bad = simulate_file(&o);
	if (fflush(stdout)) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write the standard output: %s", strerror(errno));
		bad = 1;
	}
	diag_finish();
	return bad && diag_exit() == EXIT_OK ? EXIT_BUG : (int)diag_exit();
}

int main(int argc, char **argv)
{
	if (parse_options(argc, argv))
		return EXIT_USAGE;
	if (opt.help || argc == 1) {
		if (manual_print(options, NOPTION, opt.help ? opt.help : ""))
			usage("--help=%s: must be man or bash", opt.help);
		else if (opt.help)
			return EXIT_OK;
		return EXIT_USAGE;
	}
	if (opt.version) {
		printf("sbpcc %s\n", stamp_version);
		return EXIT_OK;
	}
	if (opt.list_annotations) {
		annot_list(stdout);
		return EXIT_OK;
	}
	if (opt.list_passes) {
		passes_list(stdout);
		return EXIT_OK;
	}
	if (opt.probe)
		return probe_device(stdout) ? EXIT_ENV : EXIT_OK;
	choose_simulated();
	if (opt.simulate && *opt.simulate && !opt.input)
		return simulate();
	language_init();
	if (opt.list_ops)
		return list_ops(stdout) ? EXIT_ENV : EXIT_OK;
	if (check_options())
		return EXIT_USAGE;
	arena_bound(limits.memory ? limits.memory : 56 << 20);  /* of 64 MiB; code and tables take the others */
	Model *m = read_model(opt.input);
	int bad = !m || work(m);
	if (m && fflush(stdout)) {
		fail_at(EXIT_ENV, (Loc){ 0 }, "cannot write the standard output: %s", strerror(errno));
		bad = 1;
	}
	diag_finish();
	ExitCode code = diag_exit();
	model_free(m);
	return bad && code == EXIT_OK ? EXIT_BUG : (int)code;
}
