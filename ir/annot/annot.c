/* Annotations: @name(arguments).
 *
 * One table lists for each annotation where it may stand and which arguments it takes; it also holds the words that
 * may be values (optimizers, schedules, initialisers, ...).  Checks, "did you mean" and LANGUAGE.md follow it.
 * resolve.c checks what depends on the rest of the model. */
#include "annot.h"

#include <stdlib.h>
#include <string.h>

/* Arguments: "key:kind", in the order in which they may be given without keys.  "!" marks a required argument; "*"
 * takes all further arguments without a key; a key of "*" is any key.  A kind is a row of kinds[], a choice of words
 * a|b|c, or a family of this table. */
typedef struct Row {
	const char *family, *name, *args, *help;
	int on;                         /* of the family "@" */
} Row;

/* clang-format off */
static const Row rows[] = {
	/* the model */
	{ .family = "@", .name = "mesh", .on = ON_MODEL,
	  .args = "name:word! device:cpu|cuda! shape:counts! ranks:ranks*",
	  .help = "a named array of devices; ranks default to 0, 1, 2, ..." },
	{ .family = "@", .name = "pipeline", .on = ON_MODEL, .args = "axis:index! stages:count schedule:str",
	  .help = "an axis of the mesh enumerates the ranks of a pipeline; more stages than ranks are chunks" },
	{ .family = "@", .name = "lane", .on = ON_MODEL, .args = "rank:index! tasks:str!",
	  .help = "a dump: what a rank of the pipeline runs in a step, as stage, kind (F, I, W, or B: both) and "
	          "micro-batch" },
	{ .family = "@", .name = "train", .on = ON_MODEL,
	  .args = "group:group* loss:name+loss metrics:metrics optimizer:optimizer schedule:schedule clip:clip "
	          "precision:precision batch:count microbatch:count accumulate:count steps:count epochs:count "
	          "data:data seed:index ema:unit",
	  .help = "what is trained, how, on which data" },
	{ .family = "@", .name = "metric", .on = ON_MODEL, .args = "metric:metric* *:metric",
	  .help = "reported beside the loss; a key is its name" },
	{ .family = "@", .name = "place", .on = ON_MODEL,
	  .args = "names:names* on:placement stage:index sbp:sbps recompute:flag keep:flag precision:type frozen:flag",
	  .help = "annotates nodes and values by name or pattern" },
	{ .family = "@", .name = "pin", .on = ON_MODEL, .args = "names:names* on:placement sbp:sbps",
	  .help = "annotates values, also those that the compiler adds (w.grad)" },
	{ .family = "@", .name = "param", .on = ON_MODEL, .args = "names:names*",
	  .help = "these initialisers are trained" },
	{ .family = "@", .name = "state", .on = ON_MODEL, .args = "names:names*",
	  .help = "these initialisers are kept but not trained" },
	{ .family = "@", .name = "freeze", .on = ON_MODEL, .args = "names:names*",
	  .help = "these parameters stay as they are" },
	{ .family = "@", .name = "batchnorm", .on = ON_MODEL,
	  .args = "names:names* frozen:flag local:count unbiased:flag",
	  .help = "batch normalisation that keeps its stored statistics, or has @local_stats or @unbiased" },
	{ .family = "@", .name = "any_ranks", .on = ON_MODEL, .args = "chunks:count",
	  .help = "sums in so many chunks (8), a power of two: 1, 2, 4 .. as many ranks give the same bits" },
	{ .family = "@", .name = "done", .on = ON_MODEL, .args = "passes:word*",
	  .help = "a dump: these passes have run" },
	{ .family = "@", .name = "made", .on = ON_MODEL,
	  .args = "by:str! model:str! sum:str! options:str* place:str place_sum:str",
	  .help = "a plan: by which sbpcc, from which files (with their SHA-1) and options" },
	{ .family = "@", .name = "program", .on = ON_MODEL, .args = "name:eval|infer!",
	  .help = "a dump: what follows is this other program of the model" },
	/* nodes and groups of nodes */
	{ .family = "@", .name = "on", .on = ON_NODE | ON_VALUE, .args = "mesh:placement!",
	  .help = "the devices that do it or hold it" },
	{ .family = "@", .name = "sbp", .on = ON_NODE, .args = "entry:sbps*",
	  .help = "the signature: operands -> results" },
	{ .family = "@", .name = "stage", .on = ON_NODE, .args = "number:index!",
	  .help = "the stage of the pipeline" },
	{ .family = "@", .name = "recompute", .on = ON_NODE, .args = "segment:count",
	  .help = "computed again in the backward pass instead of kept; nodes of one segment together" },
	{ .family = "@", .name = "keep", .on = ON_NODE, .args = "",
	  .help = "never chosen to be computed again in the backward pass" },
	{ .family = "@", .name = "again", .on = ON_NODE, .args = "",
	  .help = "a dump: computed again for the backward pass" },
	{ .family = "@", .name = "precision", .on = ON_NODE, .args = "type:type!",
	  .help = "computed in this type" },
	{ .family = "@", .name = "frozen", .on = ON_NODE, .args = "",
	  .help = "batch normalisation: stored statistics; others: no gradient for their parameters" },
	{ .family = "@", .name = "local_stats", .on = ON_NODE, .args = "parts:count!",
	  .help = "batch normalisation: statistics of each of so many equal parts of the batch, not of all of it" },
	{ .family = "@", .name = "unbiased", .on = ON_NODE, .args = "",
	  .help = "batch normalisation: the running variance takes the unbiased estimate, as PyTorch's does" },
	{ .family = "@", .name = "when", .on = ON_NODE, .args = "condition:str!",
	  .help = "in a definition: the node exists only if this holds" },
	{ .family = "@", .name = "from", .on = ON_NODE, .args = "location:str!",
	  .help = "a dump: where the node stood originally" },
	{ .family = "@", .name = "opset", .on = ON_NODE, .args = "version:count!",
	  .help = "a dump: the operator as of this version, not the newest" },
	{ .family = "@", .name = "backward", .on = ON_NODE, .args = "which:B|W!",
	  .help = "a dump: the half of the backward pass that it belongs to, gradients of inputs (B) or of "
	          "weights (W)" },
	{ .family = "@", .name = "begin", .on = ON_NODE, .args = "",
	  .help = "a dump: runs once, before the micro-batches of a step" },
	{ .family = "@", .name = "update", .on = ON_NODE, .args = "",
	  .help = "a dump: runs once, after the micro-batches of a step" },
	{ .family = "@", .name = "fused", .on = ON_NODE, .args = "action:count!",
	  .help = "a dump: runs as one action with the other nodes of that number" },
	{ .family = "@", .name = "with", .on = ON_GROUP,
	  .args = "on:placement stage:index recompute:flag keep:flag precision:type frozen:flag",
	  .help = "the annotations of all nodes in { }" },
	/* values */
	{ .family = "@", .name = "sbp", .on = ON_VALUE, .args = "entry:sbp*",
	  .help = "how it lies on its mesh, one per axis" },
	{ .family = "@", .name = "init", .on = ON_VALUE, .args = "how:init!",
	  .help = "a parameter, and what it is at the start" },
	{ .family = "@", .name = "frozen", .on = ON_VALUE, .args = "",
	  .help = "an initialiser: a parameter that stays as it is" },
	{ .family = "@", .name = "factors", .on = ON_VALUE, .args = "axes:any*",
	  .help = "a dump: each axis as a product" },
	{ .family = "@", .name = "gradient", .on = ON_VALUE, .args = "value:name!",
	  .help = "a dump: a parameter whose gradient is also that of another, which names it" },
	{ .family = "@", .name = "copies", .on = ON_VALUE, .args = "number:count!",
	  .help = "a dump: memory for so many micro-batches of it" },
	{ .family = "@", .name = "into", .on = ON_VALUE, .args = "value:name!",
	  .help = "an update: lives where that older value lived" },
	{ .family = "@", .name = "denotation", .on = ON_VALUE | ON_ATTR, .args = "meaning:str! axes:str* at:str",
	  .help = "what the value and its axes stand for" },
	/* anything */
	{ .family = "@", .name = "op", .on = ON_FUNCTION, .args = "since:count until:count",
	  .help = "a definition: the versions of the operator that it defines" },
	{ .family = "@", .name = "test", .on = ON_FUNCTION, .args = "operands:str!",
	  .help = "a definition: operands for the test that walks the table" },
	{ .family = "@", .name = "meta", .on = ON_NODE | ON_VALUE | ON_GRAPH | ON_FUNCTION | ON_ATTR,
	  .args = "key:str! value:str! at:str",
	  .help = "a metadata entry" },
	{ .family = "@", .name = "doc", .on = ON_NODE | ON_VALUE | ON_GRAPH | ON_ATTR, .args = "text:str! at:str",
	  .help = "documentation" },
	{ .family = "@", .name = "unknown", .on = ON_MODEL | ON_NODE | ON_VALUE | ON_GRAPH | ON_FUNCTION | ON_ATTR,
	  .args = "bytes:str* at:str",
	  .help = "protobuf fields that sbpcc does not know, in hexadecimal" },

	{ .family = "optimizer", .name = "sgd",
	  .args = "lr:nonneg! momentum:unit weight_decay:nonneg dampening:unit nesterov:flag",
	  .help = "w -= lr * g, with momentum if given" },
	{ .family = "optimizer", .name = "momentum", .args = "lr:nonneg! momentum:unit weight_decay:nonneg",
	  .help = "sgd with momentum 0.9" },
	{ .family = "optimizer", .name = "nesterov", .args = "lr:nonneg! momentum:unit weight_decay:nonneg",
	  .help = "sgd with Nesterov's momentum 0.9" },
	{ .family = "optimizer", .name = "adam",
	  .args = "lr:nonneg! betas:betas eps:pos weight_decay:nonneg amsgrad:flag",
	  .help = "Adam; weight decay is added to the gradient" },
	{ .family = "optimizer", .name = "adamw",
	  .args = "lr:nonneg! betas:betas eps:pos weight_decay:nonneg amsgrad:flag",
	  .help = "Adam with decoupled weight decay" },
	{ .family = "optimizer", .name = "lamb", .args = "lr:nonneg! betas:betas eps:pos weight_decay:nonneg",
	  .help = "Adam scaled by layer" },
	{ .family = "optimizer", .name = "lars",
	  .args = "lr:nonneg! momentum:unit weight_decay:nonneg trust:pos eps:pos",
	  .help = "momentum scaled by layer" },
	{ .family = "optimizer", .name = "rmsprop",
	  .args = "lr:nonneg! alpha:unit eps:pos momentum:unit weight_decay:nonneg centered:flag",
	  .help = "RMSProp" },
	{ .family = "optimizer", .name = "adagrad",
	  .args = "lr:nonneg! eps:pos lr_decay:nonneg weight_decay:nonneg initial:nonneg",
	  .help = "Adagrad" },
	{ .family = "optimizer", .name = "lion", .args = "lr:nonneg! betas:betas weight_decay:nonneg",
	  .help = "the sign of an interpolated momentum" },

	{ .family = "group", .name = "group",
	  .args = "names:names* lr:nonneg lr_scale:nonneg weight_decay:nonneg momentum:unit betas:betas eps:pos",
	  .help = "other hyper-parameters for some parameters" },

	{ .family = "loss", .name = "cross_entropy",
	  .args = "scores:name! target:name! axis:int ignore_index:int label_smoothing:unit",
	  .help = "of classes, from scores: softmax and nll" },
	{ .family = "loss", .name = "nll", .args = "scores:name! target:name! axis:int ignore_index:int",
	  .help = "of classes, from logarithms of probabilities" },
	{ .family = "loss", .name = "bce_with_logits", .args = "y:name! target:name!",
	  .help = "of yes and no, from scores: sigmoid and bce" },
	{ .family = "loss", .name = "bce", .args = "y:name! target:name!",
	  .help = "of yes and no, from probabilities; logarithms are at least -100" },
	{ .family = "loss", .name = "mse", .args = "y:name! target:name!",
	  .help = "the mean of squared differences" },
	{ .family = "loss", .name = "l1", .args = "y:name! target:name!",
	  .help = "the mean of absolute differences" },
	{ .family = "loss", .name = "smooth_l1", .args = "y:name! target:name! beta:pos",
	  .help = "l1 - beta / 2, and below beta (1) a parabola" },
	{ .family = "loss", .name = "huber", .args = "y:name! target:name! delta:pos",
	  .help = "smooth_l1 times delta (1)" },

	{ .family = "metric", .name = "accuracy", .args = "scores:name! target:name! axis:int ignore_index:int",
	  .help = "the share of labels with the highest score" },
	{ .family = "metric", .name = "top", .args = "scores:name! target:name! k:count! axis:int ignore_index:int",
	  .help = "the share of labels among the k highest scores" },
	{ .family = "metric", .name = "binary_accuracy", .args = "y:name! target:name! threshold:num weight:name",
	  .help = "the share of y above the threshold (0) where the target is above 0.5, else not" },
	{ .family = "metric", .name = "mae", .args = "y:name! target:name! weight:name",
	  .help = "the mean of absolute differences" },
	{ .family = "metric", .name = "mse", .args = "y:name! target:name! weight:name",
	  .help = "the mean of squared differences" },
	{ .family = "metric", .name = "rmse", .args = "y:name! target:name! weight:name",
	  .help = "the square root of mse" },
	{ .family = "metric", .name = "mean", .args = "value:name! weight:name",
	  .help = "the mean of a value of the graph" },
	{ .family = "metric", .name = "perplexity", .args = "value:name",
	  .help = "exp of the mean loss, or of the mean of another value" },

	{ .family = "schedule", .name = "constant", .args = "warmup:index",
	  .help = "lr, after a linear warm-up" },
	{ .family = "schedule", .name = "linear", .args = "total:count! warmup:index min:nonneg",
	  .help = "down to min at step total" },
	{ .family = "schedule", .name = "cosine", .args = "total:count! warmup:index min:nonneg",
	  .help = "down to min along half a cosine" },
	{ .family = "schedule", .name = "cosine_restarts",
	  .args = "period:count! growth:count warmup:index min:nonneg",
	  .help = "half a cosine again and again, each growth (1) times as long as the last" },
	{ .family = "schedule", .name = "step", .args = "every:count! gamma:nonneg warmup:index",
	  .help = "times gamma (0.1) every so many steps" },
	{ .family = "schedule", .name = "multistep", .args = "milestones:counts! gamma:nonneg warmup:index",
	  .help = "times gamma (0.1) at each of these steps" },
	{ .family = "schedule", .name = "polynomial", .args = "total:count! power:pos min:nonneg warmup:index",
	  .help = "down to min along (1 - t)^power" },
	{ .family = "schedule", .name = "exponential", .args = "gamma:nonneg! every:count warmup:index",
	  .help = "times gamma^(step / every)" },
	{ .family = "schedule", .name = "inverse_sqrt", .args = "warmup:count!",
	  .help = "lr * sqrt(warmup / step) after the warm-up" },
	{ .family = "schedule", .name = "wsd", .args = "total:count! warmup:index decay:count! min:nonneg",
	  .help = "warm-up, stable, then down to min in the last decay steps" },

	{ .family = "clip", .name = "norm", .args = "max:pos!",
	  .help = "the norm of all gradients together" },
	{ .family = "clip", .name = "value", .args = "max:pos!",
	  .help = "each element of each gradient" },

	{ .family = "precision", .name = "f32", .args = "*:type",
	  .help = "everything in float; MatMul: bf16 excepts an operator" },
	{ .family = "precision", .name = "bf16", .args = "*:type",
	  .help = "bfloat16 with float master weights; Conv: f32 excepts an operator" },
	{ .family = "precision", .name = "fp16", .args = "loss_scale:pos growth:pos backoff:pos every:count *:type",
	  .help = "float16 with float master weights and a loss scale (65536): times growth (2) after every "
	          "(2000) good steps, times backoff (0.5) when a gradient is not finite" },

	{ .family = "data", .name = "bytes", .args = "file:str+ validation:held shuffle:flag",
	  .help = "each byte is a token" },
	{ .family = "data", .name = "tokens16", .args = "file:str+ validation:held shuffle:flag",
	  .help = "little-endian 16-bit tokens" },
	{ .family = "data", .name = "tokens32", .args = "file:str+ validation:held shuffle:flag",
	  .help = "little-endian 32-bit tokens" },
	{ .family = "data", .name = "npy",
	  .args = "folder:str* validation:held shuffle:flag scale:num mean:num std:pos *:str",
	  .help = "a .npy file per input: FOLDER/x.npy, or several: FOLDER/x-*.npy; or x: \"x.npy\", y: \"y.npy\"" },
	{ .family = "data", .name = "idx",
	  .args = "folder:str* validation:held shuffle:flag scale:num mean:num std:pos *:str",
	  .help = "an IDX file per input, as MNIST: FOLDER/x.idx, or several: FOLDER/x-*.idx; or x: \"x.idx\"" },
	{ .family = "data", .name = "cifar",
	  .args = "files:str+ validation:held shuffle:flag scale:num mean:num std:pos",
	  .help = "CIFAR-10 binary batches" },
	{ .family = "data", .name = "safetensors",
	  .args = "file:str+ validation:held shuffle:flag scale:num mean:num std:pos",
	  .help = "one tensor per input, by name" },
	{ .family = "data", .name = "tar",
	  .args = "files:str+ validation:held shuffle:flag scale:num mean:num std:pos",
	  .help = "shards as WebDataset has them: members KEY.INPUT.npy or KEY.INPUT.bin" },
	{ .family = "data", .name = "points", .args = "classes:count noise:nonneg",
	  .help = "made up, for trying a model out: points around one centre per class (10), with noise (1)" },

	{ .family = "init", .name = "zeros", .args = "",
	  .help = "0" },
	{ .family = "init", .name = "ones", .args = "",
	  .help = "1" },
	{ .family = "init", .name = "constant", .args = "value:num!",
	  .help = "one number" },
	{ .family = "init", .name = "normal", .args = "mean:num std:nonneg",
	  .help = "normal(0, 1) by default" },
	{ .family = "init", .name = "uniform", .args = "low:num high:num",
	  .help = "uniform from 0 to 1 by default" },
	{ .family = "init", .name = "xavier_uniform", .args = "gain:pos fan_in:count fan_out:count",
	  .help = "gain * sqrt(6 / (fan_in + fan_out)) to both sides" },
	{ .family = "init", .name = "xavier_normal", .args = "gain:pos fan_in:count fan_out:count",
	  .help = "deviation gain * sqrt(2 / (fan_in + fan_out))" },
	{ .family = "init", .name = "kaiming_uniform", .args = "gain:pos mode:fan_in|fan_out fan:count",
	  .help = "gain * sqrt(3 / fan) to both sides; gain sqrt(2)" },
	{ .family = "init", .name = "kaiming_normal", .args = "gain:pos mode:fan_in|fan_out fan:count",
	  .help = "deviation gain / sqrt(fan); gain sqrt(2)" },
	{ .family = "init", .name = "file", .args = "path:str! key:str",
	  .help = "an .npy file, or a tensor of a .safetensors file" },
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

static bool is_placement(const Arg *a)
{
	if (a->kind == ARG_INDEX)
		for (int i = 0; i < a->narg; i++)
			if (!is_slice(&a->arg[i]))
				return false;
	return is_word(a) || (a->kind == ARG_INDEX && a->narg);
}

/* S(axis), S(axis/factor), S(axis, reach(...)) of operands of windows, B, P, P(sum), P(max), P(min), P(prod); _ is
 * free. */
static bool is_sbp(const Arg *a)
{
	const Arg *x = a->arg;

	if (is_word(a))
		return is(a->s, "B") || is(a->s, "P") || is(a->s, "_");
	if (a->kind != ARG_CALL || a->narg < 1 || x->key)
		return false;
	if (is(a->s, "S") && a->narg == 2)
		return x->kind == ARG_INT && x->i >= 0 && x->i < NDIM_MAX && x[1].kind == ARG_CALL && !x[1].key &&
		       is(x[1].s, "reach");
	if (a->narg != 1)
		return false;
	if (is(a->s, "S"))
		return (x->kind == ARG_INT || x->kind == ARG_FACTOR) && x->i >= 0 && x->i < NDIM_MAX &&
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
	{ "placement", "a mesh or a slice of one: gpus, gpus[0:3, *]", is_placement },
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
		if (strncmp(kinds[i].name, spec->kind, strcspn(spec->kind, "+")) ||
			kinds[i].name[strcspn(spec->kind, "+")])
			continue;
		if (kinds[i].ok(a))
			return 0;
		err_at(a->loc, "%s: %s must be %s", who, is(spec->key, "*") ? a->key : spec->key,
			kinds[i].text);
		return -1;
	}
	return check_family(who, spec->key, spec->kind, a);
}

/* The parameter of the row that argument a sets: by its key, by the word of a flag, or by position; -1 after err_at. */
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

static const char *on_text(int on)
{
	return on & ON_NODE && on & ON_VALUE ? "after a node or the name of a value"
	       : on & ON_NODE                    ? "after a node"
	       : on & ON_VALUE                   ? "after the name of a value"
	       : on & ON_GROUP                   ? "before { nodes } in a graph"
	       : on & ON_MODEL                   ? "before the graph or between functions"
	                                             : "before a function";
}

int annot_check(Annot *a, AnnotOn on)
{
	const Row *same = NULL;
	const char *who = name_fmt("@%s", a->name), *list[NROW + 1];
	int n = 0;

	for (int i = 0; i < NROW && is(rows[i].family, "@"); i++) {
		if (rows[i].on & (int)on)
			list[n++] = rows[i].name;
		if (!is(rows[i].name, a->name))
			continue;
		same = &rows[i];
		if (same->on & (int)on)
			return check_args(who, a->loc, same->args, a->arg, a->narg);
	}
	list[n] = NULL;
	if (same)
		err_at(a->loc, "@%s cannot stand here; it stands %s", a->name, on_text(same->on));
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
