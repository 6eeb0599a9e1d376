/* Annotations: @name(arguments).
 *
 * One table says of each annotation where it may stand and what it takes; the same table holds the words that may
 * be values (optimizers, schedules, initialisers, ...).  Checking, "did you mean" and LANGUAGE.md all follow it. 
 * resolve.c checks what needs the whole model. */
#include "annot.h"

#include <stdlib.h>
#include <string.h>

/* Arguments: "key:kind", in the order in which they may stand without their keys; ! is required, * takes all without a
 * key from there on, a key of * is any key.  A kind is a row of kinds[], a choice of words a|b|c, or a family of this table. */
typedef struct Row {
	const char *family, *name, *args, *help;
	int places;                     /* of the family "@" */
} Row;

/* clang-format off */
static const Row rows[] = {
	/* the whole model */
	{ "@", "mesh",      "name:word! device:cpu|cuda! shape:counts! ranks:ranks*",     "a named array of devices; ranks default to 0, 1, 2, ...", ON_MODEL },
	{ "@", "train",     "group:group* loss:name+loss metrics:metrics optimizer:optimizer schedule:schedule clip:clip precision:precision batch:count microbatch:count "
	                    "accumulate:count steps:count epochs:count data:data seed:index ema:unit",
	                                                                                  "what is trained, how, on which data", ON_MODEL },
	{ "@", "metric",    "metric:metric* *:metric",                                    "reported beside the loss; a key is its name", ON_MODEL },
	{ "@", "place",     "names:names* on:place stage:index sbp:sbps recompute:flag precision:type frozen:flag",
	                                                                                  "annotates nodes and values by name or pattern", ON_MODEL },
	{ "@", "pin",       "names:names* on:place sbp:sbps",                             "annotates values, also those that the compiler adds (w.grad)", ON_MODEL },
	{ "@", "param",     "names:names*",                                               "these initialisers are trained", ON_MODEL },
	{ "@", "state",     "names:names*",                                               "these initialisers are kept but not trained", ON_MODEL },
	{ "@", "freeze",    "names:names*",                                               "these parameters stay as they are", ON_MODEL },
	{ "@", "batchnorm", "names:names* frozen:flag local:count unbiased:flag",         "batch normalisation that keeps its stored statistics, or has @local_stats or @unbiased", ON_MODEL },
	{ "@", "any_ranks", "chunks:count",                                               "sums in so many chunks (8), a power of two: 1, 2, 4 .. as many ranks give the same bits", ON_MODEL },
	{ "@", "done",      "passes:word*",                                               "a dump: these passes have run", ON_MODEL },
	{ "@", "made",      "by:str! model:str! sum:str! options:str* place:str place_sum:str",
	                                                                                  "a plan: by which sbpcc, from which files (with their SHA-1) and options", ON_MODEL },
	{ "@", "program",   "name:eval|infer!",                                           "a dump: what follows is this other program of the model", ON_MODEL },
	/* nodes and groups of nodes */
	{ "@", "on",        "mesh:place!",                                                "the devices that do it or hold it", ON_NODE | ON_VALUE },
	{ "@", "sbp",       "entry:sbps*",                                                "the signature: operands -> results", ON_NODE },
	{ "@", "stage",     "number:index!",                                              "the stage of the pipeline", ON_NODE },
	{ "@", "recompute", "",                                                           "computed again in the backward pass instead of kept", ON_NODE },
	{ "@", "again",     "",                                                           "a dump: computed again for the backward pass", ON_NODE },
	{ "@", "precision", "type:type!",                                                 "computed in this type", ON_NODE },
	{ "@", "frozen",    "",                                                           "batch normalisation: stored statistics; others: no gradient for their parameters", ON_NODE },
	{ "@", "local_stats", "parts:count!",                                             "batch normalisation: statistics of each of so many equal parts of the batch, not of all of it", ON_NODE },
	{ "@", "unbiased",  "",                                                           "batch normalisation: the running variance takes the unbiased estimate, as PyTorch's does", ON_NODE },
	{ "@", "when",      "condition:str!",                                             "in a definition: the node exists only if this holds", ON_NODE },
	{ "@", "from",      "place:str!",                                                 "a dump: where the node stood originally", ON_NODE },
	{ "@", "opset",     "version:count!",                                             "a dump: the operator as of this version, not the newest", ON_NODE },
	{ "@", "part",      "which:B|W!",                                                 "a dump: the half of the backward pass that it belongs to, gradients of inputs (B) or of weights (W)", ON_NODE },
	{ "@", "begin",     "",                                                           "a dump: runs once, before the micro-batches of a step", ON_NODE },
	{ "@", "update",    "",                                                           "a dump: runs once, after the micro-batches of a step", ON_NODE },
	{ "@", "fused",     "action:count!",                                              "a dump: runs as one action with the other nodes of that number", ON_NODE },
	{ "@", "with",      "on:place stage:index recompute:flag precision:type frozen:flag",
	                                                                                  "the annotations of all nodes in { }", ON_GROUP },
	/* values */
	{ "@", "sbp",       "entry:sbp*",                                                 "how it lies on its mesh, one per axis", ON_VALUE },
	{ "@", "init",      "how:init!",                                                  "a parameter, and what it is at the start", ON_VALUE },
	{ "@", "frozen",    "",                                                           "an initialiser: a parameter that stays as it is", ON_VALUE },
	{ "@", "factors",   "axes:any*",                                                  "a dump: each axis as a product", ON_VALUE },
	{ "@", "gradient",  "value:name!",                                                "a dump: a parameter whose gradient is also that of another, which names it", ON_VALUE },
	{ "@", "into",      "value:name!",                                                "an update: lives where that older value lived", ON_VALUE },
	{ "@", "denotation","meaning:str! axes:str* at:str",                              "what the value and its axes stand for", ON_VALUE | ON_ATTR },
	/* anything */
	{ "@", "op",        "since:count until:count",                                    "a definition: the versions of the operator that it defines", ON_FUNCTION },
	{ "@", "test",      "operands:str!",                                              "a definition: operands for the test that walks the table", ON_FUNCTION },
	{ "@", "meta",      "key:str! value:str! at:str",                                 "a metadata entry", ON_NODE | ON_VALUE | ON_GRAPH | ON_FUNCTION | ON_ATTR },
	{ "@", "doc",       "text:str! at:str",                                           "documentation", ON_NODE | ON_VALUE | ON_GRAPH | ON_ATTR },
	{ "@", "unknown",   "bytes:str* at:str",                                          "protobuf fields that sbpcc does not know, in hexadecimal",
	                                                                                  ON_MODEL | ON_NODE | ON_VALUE | ON_GRAPH | ON_FUNCTION | ON_ATTR },

	{ "optimizer", "sgd",      "lr:nonneg! momentum:unit weight_decay:nonneg dampening:unit nesterov:flag", "w -= lr * g, with momentum if given", 0 },
	{ "optimizer", "momentum", "lr:nonneg! momentum:unit weight_decay:nonneg",                      "sgd with momentum 0.9", 0 },
	{ "optimizer", "nesterov", "lr:nonneg! momentum:unit weight_decay:nonneg",                      "sgd with Nesterov's momentum 0.9", 0 },
	{ "optimizer", "adam",     "lr:nonneg! betas:betas eps:pos weight_decay:nonneg amsgrad:flag",   "Adam; weight decay is added to the gradient", 0 },
	{ "optimizer", "adamw",    "lr:nonneg! betas:betas eps:pos weight_decay:nonneg amsgrad:flag",   "Adam with decoupled weight decay", 0 },
	{ "optimizer", "lamb",     "lr:nonneg! betas:betas eps:pos weight_decay:nonneg",                "Adam scaled by layer", 0 },
	{ "optimizer", "lars",     "lr:nonneg! momentum:unit weight_decay:nonneg trust:pos eps:pos",    "momentum scaled by layer", 0 },
	{ "optimizer", "rmsprop",  "lr:nonneg! alpha:unit eps:pos momentum:unit weight_decay:nonneg centered:flag", "RMSProp", 0 },
	{ "optimizer", "adagrad",  "lr:nonneg! eps:pos lr_decay:nonneg weight_decay:nonneg initial:nonneg", "Adagrad", 0 },
	{ "optimizer", "lion",     "lr:nonneg! betas:betas weight_decay:nonneg",                        "the sign of an interpolated momentum", 0 },

	{ "group", "group", "names:names* lr:nonneg lr_scale:nonneg weight_decay:nonneg momentum:unit betas:betas eps:pos",
	                                                                                  "other hyper-parameters for some parameters", 0 },

	{ "loss", "cross_entropy",   "scores:name! target:name! axis:int ignore_index:int label_smoothing:unit", "of classes, from scores: softmax and nll", 0 },
	{ "loss", "nll",             "scores:name! target:name! axis:int ignore_index:int", "of classes, from logarithms of probabilities", 0 },
	{ "loss", "bce_with_logits", "y:name! target:name!",           "of yes and no, from scores: sigmoid and bce", 0 },
	{ "loss", "bce",             "y:name! target:name!",           "of yes and no, from probabilities; logarithms are at least -100", 0 },
	{ "loss", "mse",             "y:name! target:name!",           "the mean of squared differences", 0 },
	{ "loss", "l1",              "y:name! target:name!",           "the mean of absolute differences", 0 },
	{ "loss", "smooth_l1",       "y:name! target:name! beta:pos",  "l1 - beta / 2, and below beta (1) a parabola", 0 },
	{ "loss", "huber",           "y:name! target:name! delta:pos", "smooth_l1 times delta (1)", 0 },

	{ "metric", "accuracy",        "scores:name! target:name! axis:int ignore_index:int",          "the share of labels with the highest score", 0 },
	{ "metric", "top",             "scores:name! target:name! k:count! axis:int ignore_index:int", "the share of labels among the k highest scores", 0 },
	{ "metric", "binary_accuracy", "y:name! target:name! threshold:num weight:name", "the share of y above the threshold (0) where the target is above 0.5, else not", 0 },
	{ "metric", "mae",             "y:name! target:name! weight:name", "the mean of absolute differences", 0 },
	{ "metric", "mse",             "y:name! target:name! weight:name", "the mean of squared differences", 0 },
	{ "metric", "rmse",            "y:name! target:name! weight:name", "the square root of mse", 0 },
	{ "metric", "mean",            "value:name! weight:name",      "the mean of a value of the graph", 0 },
	{ "metric", "perplexity",      "value:name",                   "exp of the mean loss, or of the mean of another value", 0 },

	{ "schedule", "constant",     "warmup:index",                                     "lr, after a linear warm-up", 0 },
	{ "schedule", "linear",       "total:count! warmup:index min:nonneg",             "down to min at step total", 0 },
	{ "schedule", "cosine",       "total:count! warmup:index min:nonneg",             "down to min along half a cosine", 0 },
	{ "schedule", "cosine_restarts", "period:count! growth:count warmup:index min:nonneg", "half a cosine again and again, each growth (1) times as long as the last", 0 },
	{ "schedule", "step",         "every:count! gamma:nonneg warmup:index",           "times gamma (0.1) every so many steps", 0 },
	{ "schedule", "multistep",    "milestones:counts! gamma:nonneg warmup:index",     "times gamma (0.1) at each of these steps", 0 },
	{ "schedule", "polynomial",   "total:count! power:pos min:nonneg warmup:index",   "down to min along (1 - t)^power", 0 },
	{ "schedule", "exponential",  "gamma:nonneg! every:count warmup:index",           "times gamma^(step / every)", 0 },
	{ "schedule", "inverse_sqrt", "warmup:count!",                                    "lr * sqrt(warmup / step) after the warm-up", 0 },
	{ "schedule", "wsd",          "total:count! warmup:index decay:count! min:nonneg","warm-up, stable, then down to min in the last decay steps", 0 },

	{ "clip", "norm",  "max:pos!", "the norm of all gradients together", 0 },
	{ "clip", "value", "max:pos!", "each element of each gradient", 0 },

	{ "precision", "f32",  "*:type",                 "everything in float; MatMul: bf16 excepts an operator", 0 },
	{ "precision", "bf16", "*:type",                 "bfloat16 with float master weights; Conv: f32 excepts an operator", 0 },
	{ "precision", "fp16", "loss_scale:pos growth:pos backoff:pos every:count *:type",
	                                                 "float16 with float master weights and a loss scale (65536): times growth (2) after every (2000) "
	                                                 "good steps, times backoff (0.5) when a gradient is not finite", 0 },

	{ "data", "bytes",       "file:str+ validation:held shuffle:flag", "each byte is a token", 0 },
	{ "data", "tokens16",    "file:str+ validation:held shuffle:flag", "little-endian 16-bit tokens", 0 },
	{ "data", "tokens32",    "file:str+ validation:held shuffle:flag", "little-endian 32-bit tokens", 0 },
	{ "data", "npy",         "folder:str* validation:held shuffle:flag scale:num mean:num std:pos *:str", "a .npy file per input: FOLDER/x.npy, or several: FOLDER/x-*.npy; or x: \"x.npy\", y: \"y.npy\"", 0 },
	{ "data", "idx",         "folder:str* validation:held shuffle:flag scale:num mean:num std:pos *:str", "an IDX file per input, as MNIST: FOLDER/x.idx, or several: FOLDER/x-*.idx; or x: \"x.idx\"", 0 },
	{ "data", "cifar",       "files:str+ validation:held shuffle:flag scale:num mean:num std:pos", "CIFAR-10 binary batches", 0 },
	{ "data", "safetensors", "file:str+ validation:held shuffle:flag scale:num mean:num std:pos", "one tensor per input, by name", 0 },
	{ "data", "tar",         "files:str+ validation:held shuffle:flag scale:num mean:num std:pos", "shards as WebDataset has them: members KEY.INPUT.npy or KEY.INPUT.bin", 0 },
	{ "data", "points",      "classes:count noise:nonneg", "made up, for trying a model out: points around one centre per class (10), with noise (1)", 0 },

	{ "init", "zeros",           "",                               "0", 0 },
	{ "init", "ones",            "",                               "1", 0 },
	{ "init", "constant",        "value:num!",                     "one number", 0 },
	{ "init", "normal",          "mean:num std:nonneg",            "normal(0, 1) unless said otherwise", 0 },
	{ "init", "uniform",         "low:num high:num",               "uniform from 0 to 1 unless said otherwise", 0 },
	{ "init", "xavier_uniform",  "gain:pos fan_in:count fan_out:count", "gain * sqrt(6 / (fan_in + fan_out)) to both sides", 0 },
	{ "init", "xavier_normal",   "gain:pos fan_in:count fan_out:count", "deviation gain * sqrt(2 / (fan_in + fan_out))", 0 },
	{ "init", "kaiming_uniform", "gain:pos mode:fan_in|fan_out fan:count", "gain * sqrt(3 / fan) to both sides; gain sqrt(2)", 0 },
	{ "init", "kaiming_normal",  "gain:pos mode:fan_in|fan_out fan:count", "deviation gain / sqrt(fan); gain sqrt(2)", 0 },
	{ "init", "file",            "path:str! key:str",              "an .npy file, or a tensor of a .safetensors file", 0 },
};
/* clang-format on */

enum { NROW = sizeof rows / sizeof *rows, MAXKEYS = 24 };

/* ---- Kinds of arguments */

static bool is(const char *a, const char *b)
{
	return a && !strcmp(a, b);
}

static bool is_int(const Arg *a)
{
	return a->kind == ARG_INT;
}

static bool is_index(const Arg *a)
{
	return is_int(a) && a->i >= 0 && a->i <= INT32_MAX;
}

static bool is_count(const Arg *a)
{
	return is_index(a) && a->i > 0;
}

static bool is_num(const Arg *a)
{
	return a->kind == ARG_INT || (a->kind == ARG_FLOAT && a->f - a->f == 0);
}

static bool is_nonneg(const Arg *a)
{
	return is_num(a) && a->f >= 0;
}

static bool is_pos(const Arg *a)
{
	return is_num(a) && a->f > 0;
}

static bool is_unit(const Arg *a)
{
	return is_num(a) && a->f >= 0 && a->f <= 1;
}

static bool is_str(const Arg *a)
{
	return a->kind == ARG_STRING;
}

static bool is_held(const Arg *a)
{
	return is_unit(a) || is_str(a);
}

static bool is_word(const Arg *a)
{
	return a->kind == ARG_WORD;
}

static bool is_name(const Arg *a)
{
	return is_word(a) || is_str(a);
}

static bool all(const Arg *a, bool (*ok)(const Arg *))
{
	if (a->kind != ARG_LIST || !a->narg)
		return false;
	for (int i = 0; i < a->narg; i++)
		if (!ok(&a->arg[i]))
			return false;
	return true;
}

static bool is_names(const Arg *a)
{
	return is_name(a) || all(a, is_name);
}

static bool is_counts(const Arg *a)
{
	return all(a, is_count);
}

static bool is_beta(const Arg *a)
{
	return is_unit(a) && a->f < 1;
}

static bool is_betas(const Arg *a)
{
	return all(a, is_beta) && a->narg == 2;
}

static bool is_range(const Arg *a)
{
	return is_index(a) || (a->kind == ARG_RANGE && a->i >= 0 && a->j >= a->i && a->j < MAX_RANKS);
}

static bool is_ranks(const Arg *a)
{
	return is_range(a) || all(a, is_range);
}

static bool is_slice(const Arg *a)
{
	return is_range(a) || a->kind == ARG_STAR;
}

static bool is_place(const Arg *a)
{
	if (a->kind == ARG_INDEX)
		for (int i = 0; i < a->narg; i++)
			if (!is_slice(&a->arg[i]))
				return false;
	return is_word(a) || (a->kind == ARG_INDEX && a->narg);
}

/* S(axis), S(axis/factor), S(axis, reach(...)) of operands of windows, B, P, P(sum), P(max), P(min), P(prod), and _ for free. */
static bool is_sbp(const Arg *a)
{
	const Arg *x = a->arg;

	if (is_word(a))
		return is(a->s, "B") || is(a->s, "P") || is(a->s, "_");
	if (a->kind != ARG_CALL || a->narg < 1 || x->key)
		return false;
	if (is(a->s, "S") && a->narg == 2)
		return x->kind == ARG_INT && x->i >= 0 && x->i < RANK_MAX && x[1].kind == ARG_CALL && !x[1].key && is(x[1].s, "reach");
	if (a->narg != 1)
		return false;
	if (is(a->s, "S"))
		return (x->kind == ARG_INT || x->kind == ARG_FACTOR) && x->i >= 0 && x->i < RANK_MAX &&
		       x->j >= 0;
	return is(a->s, "P") && is_word(x) &&
	       (is(x->s, "sum") || is(x->s, "max") || is(x->s, "min") || is(x->s, "prod"));
}

static bool is_sbps(const Arg *a)
{
	return is_sbp(a) || all(a, is_sbp);
}

static bool is_type(const Arg *a)
{
	return is_word(a) && (is(a->s, "f32") || is(a->s, "bf16") || is(a->s, "fp16"));
}

static bool is_flag(const Arg *a)
{
	return is_word(a) && (is(a->s, "true") || is(a->s, "false"));
}

static bool is_any(const Arg *a)
{
	(void)a;
	return true;
}

static const struct Kind { const char *name, *text; bool (*ok)(const Arg *); } kinds[] = {
	{ "index", "an integer of at least 0", is_index },
	{ "count", "an integer of at least 1", is_count },
	{ "int", "an integer", is_int },
	{ "num", "a number", is_num },
	{ "nonneg", "a number of at least 0", is_nonneg },
	{ "pos", "a number above 0", is_pos },
	{ "unit", "a number from 0 to 1", is_unit },
	{ "held", "a number from 0 to 1, or a string", is_held },
	{ "str", "a string", is_str },
	{ "word", "a word", is_word },
	{ "name", "a name or a string", is_name },
	{ "names", "a name, a pattern, or a list of them", is_names },
	{ "counts", "a list of positive integers", is_counts },
	{ "betas", "two numbers below 1: [0.9, 0.999]", is_betas },
	{ "ranks", "integers, ranges such as 0:7, or a list of these", is_ranks },
	{ "place", "a mesh or a part of one: gpus, gpus[0:3, *]", is_place },
	{ "sbp", "S(axis), S(axis/factor), B, P, P(max), P(min), P(prod) or _", is_sbp },
	{ "sbps", "S(axis), B, P or _, or a list with one per mesh axis", is_sbps },
	{ "type", "f32, bf16 or fp16", is_type },
	{ "flag", "true or false", is_flag },
	{ "any", "anything", is_any },
};

/* ---- Checking one annotation against its row */

typedef struct Spec { char key[24], kind[40]; bool required, many; } Spec;

static int read_specs(const char *s, Spec *spec)
{
	int n = 0;

	while (*s && n < MAXKEYS) {
		Spec *at = &spec[n++];
		size_t key = strcspn(s, ":"), kind = strcspn(s + key + 1, " !*");
		bool some = s[key + kind] == '+';

		snprintf(at->key, sizeof at->key, "%.*s", (int)key, s);
		snprintf(at->kind, sizeof at->kind, "%.*s", (int)kind - some, s + key + 1);
		s += key + 1 + kind;
		at->required = *s == '!' || some;
		at->many = *s == '*' || some;
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	return n;
}

static int check_args(const char *who, Loc loc, const char *takes, Arg *arg, int n);

/* A word or call of a family: adamw(lr: 1e-3), zeros. */
static int check_family(const char *who, const char *key, const char *family, Arg *a)
{
	const char *list[NROW + 1], *text;
	int n = 0;

	for (int i = 0; i < NROW; i++) {
		if (!is(rows[i].family, family))
			continue;
		if ((a->kind == ARG_WORD || a->kind == ARG_CALL) && is(a->s, rows[i].name))
			return check_args(rows[i].name, a->loc, rows[i].args, a->arg, a->narg);
		list[n++] = rows[i].name;
	}
	list[n] = NULL;
	if (n == 1) {
		err_at(a->loc, "%s: %s(...) or a key is expected here", who, list[0]);
	} else if (a->kind == ARG_WORD || a->kind == ARG_CALL) {
		text = name_fmt("%s: unknown %s", who, key);
		diag_unknown(a->loc, text, a->s, list);
	} else {
		err_at(a->loc, "%s: %s must be a word or a call such as %s(...)", who, key, list[0]);
	}
	return -1;
}

static int check_choice(const char *who, const Spec *spec, const Arg *a)
{
	const char *list[16];
	char *words = strdupa(spec->kind), *save = NULL;
	int n = 0;

	for (char *w = strtok_r(words, "|", &save); w && n < 15; w = strtok_r(NULL, "|", &save)) {
		if (a->kind == ARG_WORD && is(a->s, w))
			return 0;
		list[n++] = w;
	}
	list[n] = NULL;
	if (a->kind == ARG_WORD)
		diag_unknown(a->loc, name_fmt("%s: unknown %s", who, spec->key), a->s, list);
	else
		err_at(a->loc, "%s: %s must be one of %s", who, spec->key, spec->kind);
	return -1;
}

static int check_metrics(const char *who, Arg *a)
{
	int bad = 0;

	if (a->kind != ARG_LIST)
		return check_family(who, "metric", "metric", a);
	for (int i = 0; i < a->narg; i++)
		bad |= check_family(who, "metric", "metric", &a->arg[i]);
	return bad;
}

static int check_kind(const char *who, const Spec *spec, Arg *a)
{
	const char *call = strchr(spec->kind, '+');

	if (call && a->kind == ARG_CALL)
		return check_family(who, spec->key, call + 1, a);
	if (is(spec->kind, "metrics"))
		return check_metrics(who, a);
	if (a->arrow && !is(spec->kind, "sbps")) {
		err_at(a->loc, "%s: '->' cannot stand here", who);
		return -1;
	}
	if (strchr(spec->kind, '|'))
		return check_choice(who, spec, a);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (strncmp(kinds[i].name, spec->kind, strcspn(spec->kind, "+")) || kinds[i].name[strcspn(spec->kind, "+")])
			continue;
		if (kinds[i].ok(a))
			return 0;
		err_at(a->loc, "%s: %s must be %s", who, is(spec->key, "*") ? a->key : spec->key,
			kinds[i].text);
		return -1;
	}
	return check_family(who, spec->key, spec->kind, a);
}

/* Which argument of the row a is, by key, by the word of a flag, or as the next one; -1 after explaining. */
static int find_spec(const char *who, const Spec *spec, int nspec, const bool *used, const Arg *a)
{
	const char *list[MAXKEYS + 1];
	int i;

	if (a->key) {
		for (i = 0; i < nspec; i++) {
			if (is(spec[i].key, a->key) || is(spec[i].key, "*"))
				return i;
			list[i] = spec[i].key;
		}
		list[nspec] = NULL;
		diag_unknown(a->loc, name_fmt("%s has no argument", who), a->key, list);
		return -1;
	}
	for (i = 0; i < nspec; i++)
		if (a->kind == ARG_WORD && is(spec[i].kind, "flag") && is(spec[i].key, a->s))
			return i;
	for (i = 0; i < nspec; i++)
		if ((!used[i] || spec[i].many) && !is(spec[i].key, "*") && !is(spec[i].kind, "flag"))
			return i;
	err_at(a->loc, nspec ? "%s: an argument too many" : "%s takes no arguments", who);
	return -1;
}

static int check_args(const char *who, Loc loc, const char *takes, Arg *arg, int n)
{
	Spec spec[MAXKEYS];
	bool used[MAXKEYS] = { false };
	int nspec = read_specs(takes, spec), bad = 0;

	for (int i = 0; i < n; i++) {
		Arg *a = &arg[i];
		int s = find_spec(who, spec, nspec, used, a);
		bool word = s >= 0 && !a->key && is(spec[s].kind, "flag");

		if (s < 0) {
			bad = -1;
			continue;
		}
		if (used[s] && !spec[s].many && !is(spec[s].key, "*")) {
			err_at(a->loc, "%s: %s is given twice", who, spec[s].key);
			bad = -1;
		}
		used[s] = true;
		a->param = is(spec[s].key, "*") ? a->key : name_of(spec[s].key);
		if (!word && check_kind(who, &spec[s], a))
			bad = -1;
	}
	for (int i = 0; i < nspec; i++)
		if (spec[i].required && !used[i]) {
			err_at(loc, "%s needs %s", who, spec[i].key);
			bad = -1;
		}
	return bad;
}

static const char *place_text(int places)
{
	return places & ON_NODE && places & ON_VALUE ? "after a node or the name of a value"
	       : places & ON_NODE                    ? "after a node"
	       : places & ON_VALUE                   ? "after the name of a value"
	       : places & ON_GROUP                   ? "before { nodes } in a graph"
	       : places & ON_MODEL                   ? "before the graph or between functions"
	                                             : "before a function";
}

int annot_check(Annot *a, AnnotPlace place)
{
	const Row *same = NULL;
	const char *who = name_fmt("@%s", a->name), *list[NROW + 1];
	int n = 0;

	for (int i = 0; i < NROW && is(rows[i].family, "@"); i++) {
		if (rows[i].places & (int)place)
			list[n++] = rows[i].name;
		if (!is(rows[i].name, a->name))
			continue;
		same = &rows[i];
		if (same->places & (int)place)
			return check_args(who, a->loc, same->args, a->arg, a->narg);
	}
	list[n] = NULL;
	if (same)
		err_at(a->loc, "@%s cannot stand here; it stands %s", a->name, place_text(same->places));
	else
		diag_unknown(a->loc, "unknown annotation", a->name, list);
	return -1;
}

void annot_list(FILE *o)
{
	const char *family = "";

	for (int i = 0; i < NROW; i++) {
		const Row *f = &rows[i];

		if (strcmp(f->family, family))
			fprintf(o, "%s%s\n", i ? "\n" : "", strcmp(f->family, "@") ? f->family : "annotation");
		family = f->family;
		fprintf(o, "  %s%s(%s)\n      %s\n", is(family, "@") ? "@" : "", f->name, f->args, f->help);
	}
}

/* ---- Lists */

Annot *annot_find(const Annot *list, const char *name)
{
	for (; list; list = list->next)
		if (is(list->name, name))
			return (Annot *)list;
	return NULL;
}

void annot_add(Annot **list, Annot *a)
{
	while (*list)
		list = &(*list)->next;
	*list = a;
}

void annot_drop(Annot **list, const char *name)
{
	while (*list)
		if (is((*list)->name, name))
			*list = (*list)->next;
		else
			list = &(*list)->next;
}

Annot *annot_copy(Arena *arena, const Annot *list)
{
	Annot *first = NULL, **end = &first;
	for (; list; list = list->next, end = &(*end)->next) {
		*end = arena_new(arena, Annot);
		**end = *list;
		(*end)->next = NULL;
	}
	return first;
}

static bool matches(const Arg *a, const char *name)
{
	if (a->kind == ARG_LIST) {
		for (int i = 0; i < a->narg; i++)
			if (matches(&a->arg[i], name))
				return true;
		return false;
	}
	return is(a->s, name) || name_match(a->s, name);
}

bool annot_names(const Annot *a, const char *name)
{
	for (int i = 0; i < a->narg; i++)
		if (is(a->arg[i].param, "names") && matches(&a->arg[i], name))
			return true;
	return false;
}
