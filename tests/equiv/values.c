/* values MODEL DIR step|eval|infer [TRAIN [--infer]]: a program of one rank wrote its values to DIR (--dump); the
 * reference evaluator computes them from the graph that the program was made of, and they agree, value by value.  This
 * is done twice: from the inputs and what was kept before the step, which says that the whole is right; and node by
 * node on the operands that the program had itself, where nothing adds up, so that the tolerance is tight and the first
 * node that is wrong is named.
 *
 * Some values are noise: the gradient of a bias before a softmax is a sum whose terms cancel.  What rounding alone does
 * to a value is measured, and ten times that is allowed: at a node by changing the operands in their last bits; on the
 * whole by evaluating once more without rounding, where values without two certain digits are left to the comparison by
 * node. */
#include "compiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Seen { int values, inner, bad; double whole, node; Name worst; } Seen;

/* What the program wrote of this value; NULL: it was never in memory, or is a state that a later one replaced. */
static Tensor *written(const Graph *g, const char *dir, const char *part, const Value *v, Arena *a)
{
	const Value *first = v;
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->into == v && strcmp(part, "kept"))
			return NULL;
	while (first->into)
		first = first->into;
	const char *name = emit_comment(a, first->name);
	Text file = { 0 };
	for (const char *s = name; *s; s++)
		text_add(&file, *s == '/' ? "\\x2F" : "%c", *s);
	const char *path = arena_printf(a, "%s/%s/%s.npy", dir, part, file.s);
	if (strlen(name) > 180 || access(path, F_OK))
		return NULL;
	Tensor *t = npy_read(path, a), *to = t ? tensor_new(a, v->type->elem, v->type->ndim, v->type->dim) : NULL;
	if (!t || tensor_elements(t) != tensor_elements(to) || dtype_bits(t->dtype) != dtype_bits(to->dtype)) {
		printf(" %s: %s does not hold %s\n", v->name, path, type_text(v->type));
		exit(1);
	}
	memcpy((void *)to->data, t->data, (size_t)tensor_elements(t) * (size_t)dtype_bits(t->dtype) / 8);
	return to;
}

/* How far two tensors are apart, as a share of the largest element; anything but floats is equal or infinitely far. */
static double far(const Tensor *got, const Tensor *want, double noise)
{
	double most = 0, apart = 0;
	bool real = dtype_is_float(want->dtype);
	for (int64_t i = 0; i < tensor_elements(want); i++) {
		double x = tensor_get(got, i), y = tensor_get(want, i);
		bool special = isfinite(x) != isfinite(y) || (!isfinite(y) && x != y && !(isnan(x) && isnan(y)));
		if (real ? special : tensor_int(got, i) != tensor_int(want, i))
			return INFINITY;
		if (!real || !isfinite(y))
			continue;
		most = fmax(most, fabs(y));
		apart = fmax(apart, fabs(x - y));
	}
	apart -= noise;
	return apart <= 0 ? 0 : apart / fmax(most, 1e-30);
}

/* The same, but in units: how large the noise between two tensors is. */
static double noise(const Tensor *a, const Tensor *b)
{
	double apart = 0;
	for (int64_t i = 0; dtype_is_float(a->dtype) && i < tensor_elements(a); i++) {
		double d = fabs(tensor_get(a, i) - tensor_get(b, i));
		apart = d > apart ? d : apart;
	}
	return apart;
}

static double largest(const Tensor *t)
{
	double most = 0;
	for (int64_t i = 0; i < tensor_elements(t); i++)
		most = fmax(most, fabs(tensor_get(t, i)));
	return most;
}

/* Half a unit in the last place is 2^-24 of float and 2^-9 of bfloat16: what sums of some thousand terms may differ
 * by. */
static double allowed(DType t, bool whole)
{
	double unit = t == DT_BFLOAT16 ? 0x1p-9 : t == DT_FLOAT16 ? 0x1p-12 : t == DT_DOUBLE ? 0x1p-53 : 0x1p-24;
	return unit * (whole ? 1700 : 170);
}

static void judge(Seen *s, const Value *v, double far, bool whole)
{
	double *worst = whole ? &s->whole : &s->node;
	if (far > *worst) {
		*worst = far;
		s->worst = whole ? s->worst : v->name;
	}
	if (far <= allowed(v->type->elem, whole))
		return;
	printf(" %s %s (%s): %.3g of the largest element apart\n", whole ? "from the inputs," : "from its operands,",
		v->name, v->def ? v->def->op : "", far);
	s->bad++;
}

/* Floats a little changed, up or down as their places say. */
static Tensor *shaken(const Tensor *t, Arena *a)
{
	if (!t || t->dtype != DT_FLOAT)
		return (Tensor *)t;
	Tensor *s = tensor_new(a, t->dtype, t->ndim, t->dim);
	for (int64_t i = 0; i < tensor_elements(t); i++) {
		double by = (uint64_t)i * 0x9E3779B97F4A7C15u >> 63 ? 0x1p-23 : -0x1p-23;
		tensor_set(s, i, tensor_get(t, i) * (1 + by));
	}
	return s;
}

static double noise_of_node(Node *n, Tensor **in, Tensor **out, int k, Arena *a)
{
	Tensor **x = arena_array(a, Tensor *, n->nin + 1), **y = arena_array(a, Tensor *, n->nout + 1);
	for (int i = 0; i < n->nin; i++)
		x[i] = n->in[i] && n->in[i]->def ? shaken(in[i], a) : in[i];
	return eval_node(n, x, y, a, false) ? 0 : noise(y[k], out[k]);
}

/* Node by node: what the program has not in memory is computed from what it has. */
static int by_node(Graph *g, Tensor **have, const char *dir, const char *part, Seen *s, Arena *a)
{
	Tensor **now = arena_array(a, Tensor *, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		now[i] = have[i];
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		Tensor **in = arena_array(a, Tensor *, n->nin + 1), **out = arena_array(a, Tensor *, n->nout + 1);
		for (int k = 0; k < n->nin; k++)
			in[k] = n->in[k] ? now[n->in[k]->id] : NULL;
		if (eval_node(n, in, out, a, false))
			return -1;
		for (int k = 0; k < n->nout; k++) {
			if (!n->out[k])
				continue;
			Tensor *got = written(g, dir, part, n->out[k], a);
			now[n->out[k]->id] = got ? got : out[k];
			s->values += got != NULL;
			s->inner += got == NULL;
			double d = got ? far(got, out[k], 0) : 0;
			if (d > allowed(n->out[k]->type->elem, false))
				d = far(got, out[k], 10 * noise_of_node(n, in, out, k, a));
			if (got)
				judge(s, n->out[k], d, false);
		}
	}
	return 0;
}

static int whole(Graph *g, Tensor **have, const char *dir, const char *part, Seen *s, Arena *a)
{
	Tensor **in = arena_array(a, Tensor *, g->nin + 1), **out;
	for (int i = 0; i < g->nin; i++)
		in[i] = have[g->in[i]->id];
	for (int i = 0; i < g->ninit; i++)
		g->init[i]->data = have[g->init[i]->id];
	g->nout = 0;
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->def)
			arena_push(g->arena, g->out, g->nout, g->value[i]);
	out = arena_array(a, Tensor *, g->nout + 1);
	Tensor **exact = arena_array(a, Tensor *, g->nout + 1);
	if (eval_graph(g, in, out, a, (EvalOpts){ 0 }) || eval_graph(g, in, exact, a, (EvalOpts){ .wide = true }))
		return -1;
	for (int i = 0; i < g->nout; i++) {
		Tensor *got = written(g, dir, part, g->out[i], a);
		double n = noise(exact[i], out[i]);
		if (got && n <= 0.01 * largest(exact[i]))
			judge(s, g->out[i], far(got, out[i], 10 * n), true);
	}
	return 0;
}

/* Inputs and what was kept before, by value; constants are what the graph says. */
static int start(Graph *g, Tensor **have, const char *dir, const char *part, Seen *s, Arena *a)
{
	for (int i = 0; i < g->nin + g->ninit; i++) {
		const Value *v = i < g->nin ? g->in[i] : g->init[i - g->nin];
		Tensor *t = written(g, dir, i < g->nin ? part : "kept", v, a);
		if (t && v->data && !v->param && far(t, v->data, 0) > 0)
			judge(s, v, INFINITY, true);
		have[v->id] = t ? t : v->data;
		if (!have[v->id]) {
			printf(" %s was not written\n", v->name);
			return -1;
		}
	}
	return 0;
}

static int compare(Model *m, const char *dir, const char *part)
{
	Graph *g = m->graph;
	for (int i = 0; i < m->nothers; i++)
		g = strcmp(part, m->others[i]->program) ? g : m->others[i]->graph;
	Arena a = { 0 };
	Tensor **have = arena_array(&a, Tensor *, g->nvalue + 1);
	Seen s = { .worst = name_of("") };
	int bad = start(g, have, dir, part, &s, &a) || by_node(g, have, dir, part, &s, &a) ||
		whole(g, have, dir, part, &s, &a);
	arena_free(&a);
	if (bad)
		return 1;
	printf("# %d values agree but for %d, %d are not in memory; furthest %.2g by node (%s), %.2g in all\n",
		s.values, s.bad, s.inner, s.node, s.worst, s.whole);
	return s.bad || !s.values;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	language_init();
	opt.stop_after = "plan";
	opt.infer = argc > 5;
	Model *m = read_model(argv[1]);
	if (!m || (argc > 4 && parse_train(argv[4], m)) || resolve_run(m))
		return 1;
	train_bind_batch(m);
	int bad = passes_run(m) || compare(m, argv[2], argv[3]);
	model_free(m);
	return bad;
}
