/* Whether an initialiser of an .onnx file looks like a weight, where neither the export nor an annotation says what it
 * is.
 *
 * PyTorch's TorchScript exporter writes parameters and buffers alike: as initialisers, under their names in the
 * state_dict and in its order, in which the parameters of a module stand before its buffers.  So there is evidence of
 * four kinds, the strongest first:
 *
 *   numbers  infinite or huge ones, sines and cosines of one table, numbers in ascending or descending order: no weight
 *            has them
 *   names    weight, bias, original0, logit_scale: modules name parameters so; running_mean, final_logits_bias, pe:
 *            buffers
 *   order    before a weight of the same module: a parameter; after a buffer of it: a buffer
 *   digits   different numbers that all have few digits were written by hand
 *
 * Without any evidence it is taken for a weight, with a warning.  So it is where its name is a weight's and its digits
 * are not: `bias` of -4, -3, -2 may be a table of distances. */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* SCANNED_MOST: a larger value that has the name of a weight is not searched for infinite numbers. */
enum { SORTED_LEAST = 16, TABLE_LEAST = 4, TABLE_ROWS = 64, DIGITS_MOST = 4096, SCANNED_MOST = 1 << 20 };
static const double HUGE_NUMBER = 1e9;

/* ---- numbers ---- */

static const char *infinite(const Tensor *t)
{
	bool huge = false;
	for (int64_t i = 0, n = tensor_elements(t); i < n; i++) {
		double v = tensor_get(t, i);
		if (!isfinite(v))
			return "it holds numbers that are not finite";
		huge |= fabs(v) >= HUGE_NUMBER;
	}
	return huge ? "it holds huge numbers, as masks do" : NULL;
}

/* Whether a table holds sines and cosines, in neighbouring columns or in both halves of a row: their squares add up to
 * 1.  Rows of zeros are padding. */
static bool circles(const Tensor *t, int64_t rows, int64_t width, int64_t apart)
{
	int64_t seen = 0;
	for (int64_t r = 0; r < rows && r < TABLE_ROWS; r++) {
		bool any = false;
		for (int64_t k = 0; k < width && !any; k++)
			any = tensor_get(t, r * width + k) != 0;
		seen += any;
		for (int64_t k = 0; k < width / 2 && any; k++) {
			int64_t at = r * width + (apart == 1 ? 2 * k : k);
			double a = tensor_get(t, at), b = tensor_get(t, at + apart);
			if (fabs(a * a + b * b - 1) > 1e-3)
				return false;
		}
	}
	return seen >= TABLE_LEAST;
}

static bool sinusoids(const Tensor *t)
{
	int64_t rows = 1, width = 1;
	for (int i = 0; i < t->ndim; i++) {
		rows *= width;
		width = t->dim[i];
	}
	if (t->ndim < 2 || width < TABLE_LEAST || width % 2 || rows < TABLE_LEAST)
		return false;
	return circles(t, rows, width, 1) || circles(t, rows, width, width / 2);
}

static bool sorted(const Tensor *t)
{
	int64_t n = tensor_elements(t), up = 0, down = 0;
	if (t->ndim != 1 || n < SORTED_LEAST)
		return false;
	for (int64_t i = 1; i < n; i++) {
		double a = tensor_get(t, i - 1), b = tensor_get(t, i);
		up += b > a;
		down += b < a;
		if (up && down)
			return false;
	}
	return up + down >= n / 2;
}

typedef struct Digits { bool few, differ, plain; } Digits;      /* plain: only 0 and 1, which initialise weights, too */

static Digits digits_of(const Tensor *t)
{
	int64_t n = tensor_elements(t);
	Digits d = { .few = (t->dtype == DT_FLOAT || t->dtype == DT_DOUBLE) && n >= 2, .plain = true };
	for (int64_t i = 0; i < n && i < DIGITS_MOST && d.few; i++) {
		char text[40];
		double v = tensor_get(t, i);
		d.differ |= v != tensor_get(t, 0);
		if (v == 0 || v == 1)
			continue;
		d.plain = false;
		snprintf(text, sizeof text, "%.4g", v);
		d.few = t->dtype == DT_FLOAT ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v;
	}
	return d;
}

/* Whether the numbers are unlikely to come from random initialisation: at most four digits, and not all the same. */
static bool by_hand(const Tensor *t)
{
	Digits d = digits_of(t);
	return d.few && d.differ;
}

/* ---- names ---- */

static bool any_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (name_match(*list, name))
			return true;
	return false;
}

static const char *last(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot ? dot + 1 : name;
}

static bool named_weight(const Value *v)
{
	static const char *const list[] = {
		"weight", "bias", "*_weight", "*_bias", "weight_*", "bias_*", "*bias_table", "original",
		"original[0-9]", "gamma*", "beta", "beta_*", "*_gamma", "*_beta", "*embed*", "*_token", "*_tokens",
		"logit_scale", "*_scale", "*_gain", "gain", "lora_*", NULL,
	};
	return any_of(last(v->name), list);
}

static bool named_buffer(const Value *v)
{
	static const char *const list[] = {
		"final_logits_bias", "weight_u", "running_*", "*inv_freq", "*mask*", "pe", "tril", "triu", "*freqs*",
		"*_cached", "*cumprod*", "betas", "alphas*", "sigmas", "timesteps", "posterior_*", "anchors",
		"pixel_mean", "pixel_std", "_*", NULL,
	};
	static const char *const but[] = { "*token*", "*embed*", NULL };
	return any_of(last(v->name), list) && !any_of(last(v->name), but);
}

/* ---- all together ---- */

const char *guess_numbers(const Value *v)
{
	const Tensor *t = v->data;
	if (extdata_load(v->data) || !dtype_is_float(t->dtype))
		return NULL;
	if (sinusoids(t))
		return "it is a table of sines and cosines";
	if (sorted(t))
		return "its numbers are in order, as those of a schedule";
	return tensor_elements(t) > SCANNED_MOST && named_weight(v) ? NULL : infinite(t);
}

typedef enum { NOTHING, WEIGHT, BUFFER } Witness;

static Witness by_name(const Value *v)
{
	if (named_buffer(v))
		return BUFFER;
	return named_weight(v) ? WEIGHT : NOTHING;
}

static bool one_module(const Value *a, const Value *b)
{
	size_t n = (size_t)(last(a->name) - a->name);
	return n == (size_t)(last(b->name) - b->name) && !strncmp(a->name, b->name, n);
}

/* Whether it has the name of a weight, but numbers that somebody wrote. */
static bool doubtful(const Value *v)
{
	if (by_name(v) != WEIGHT || extdata_load(v->data))
		return false;
	Digits d = digits_of(v->data);
	return d.few && d.differ && !d.plain;
}

static bool weight(const Value *v, const uint8_t *use)
{
	return by_name(v) == WEIGHT && !(use[v->id] & USE_STATE) && !doubtful(v);
}

static bool buffer(const Value *v, const uint8_t *use)
{
	Witness name = by_name(v);
	if (name == BUFFER || (use[v->id] & USE_STATE))
		return true;
	return name == NOTHING && (guess_numbers(v) || by_hand(v->data));
}

/* Initialisers stand in the order of the state_dict. */
static Witness by_order(const Graph *g, const Value *v, const uint8_t *use)
{
	int at = 0;
	while (g->init[at] != v)
		at++;
	for (int i = at + 1; i < g->ninit && one_module(g->init[i], v); i++)
		if (weight(g->init[i], use))
			return WEIGHT;
	for (int i = at; i-- > 0 && one_module(g->init[i], v);)
		if (buffer(g->init[i], use))
			return BUFFER;
	return NOTHING;
}

/* A batch norm written by hand, with buffers only: no node updates its running variance. */
static bool still_norm(const Graph *g, const Value *v)
{
	const char *own = last(v->name);
	if (strcmp(own, "weight") && strcmp(own, "bias"))
		return false;
	const Value *var = map_get(&g->byname, name_fmt("%.*srunning_var", (int)(own - v->name), v->name));
	return var && var->init && !params_state(g)[var->id];
}

Guess guess_of(const Graph *g, const Value *v, const uint8_t *use)
{
	const char *why = guess_numbers(v);
	if (why)
		return (Guess){ false, why };
	Witness name = by_name(v), order = name == NOTHING ? by_order(g, v, use) : NOTHING;
	if (name == BUFFER)
		return (Guess){ false, "buffers have such names" };
	if (order == BUFFER)
		return (Guess){ false, "it stands behind a buffer of its module" };
	if (name == WEIGHT && still_norm(g, v))
		return (Guess){ false, "the running variance of its module goes into no batch norm" };
	if (doubtful(v))
		return (Guess){ true, "its numbers look as if they were written by hand" };
	if (name == WEIGHT || order == WEIGHT)
		return (Guess){ true, NULL };
	if (by_hand(v->data))
		return (Guess){ false, "its numbers were written by hand" };
	return (Guess){ true, "nothing in the file distinguishes it from a buffer" };
}
