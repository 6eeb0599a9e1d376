/* Every model in tests/exported: read, marked, inlined, folded, lifted, and evaluated on its inputs: what PyTorch
 * computed must come out, and where there is a loss, its gradients.
 *
 *   exported/MODEL      outputs agree, and gradients where grads/MODEL holds them
 *   expected-lifts.txt  per file: nodes as written, folded, lifted, and how many of each composite there are at the end
 *
 * test-exported-models [-v] [MODEL...] runs some; without ROOT in the environment from the top of the tree. */
#include "compiler.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *root = ".";
static bool verbose;

typedef struct Case {
	const char *name, *dir;
	Model *m;
	Arena a;
	Tensor *in[16];
	int written, folded, lifted;
	char why[512];
} Case;

static bool fails(Case *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool fails(Case *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, sizeof c->why, fmt, ap);
	va_end(ap);
	return false;
}

static const char *path(Case *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *path(Case *c, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		die("out of memory");
	const char *s = arena_printf(&c->a, "%s/tests/exported/%s", root, text);
	free(text);
	return s;
}

static double tolerance(Case *c)
{
	FILE *f = fopen(path(c, "%s/tolerance", c->name), "r");
	double t = 1e-4;

	if (f) {
		if (fscanf(f, "%lf", &t) != 1)
			t = 0;
		fclose(f);
	}
	return t;
}

/* The largest difference, relative to the largest element. */
static double distance(const Tensor *got, const Tensor *want)
{
	int64_t n = tensor_elements(want);
	double most = 0, apart = 0;

	if (tensor_elements(got) != n)
		return INFINITY;
	for (int64_t i = 0; i < n; i++)
		if (isfinite(tensor_get(want, i)))
			most = fmax(most, fabs(tensor_get(want, i)));
	for (int64_t i = 0; i < n; i++) {
		double g = tensor_get(got, i), w = tensor_get(want, i), d = fabs(g - w);

		if (g == w || (isnan(g) && isnan(w)))
			continue;
		apart = fmax(apart, isnan(d) ? INFINITY : d);
	}
	return most > 0 ? apart / most : apart;
}

static void bind_symbols(const Value *v, const Tensor *t)
{
	for (int i = 0; v->type && i < v->type->ndim && v->type->ndim == t->ndim; i++)
		if (dim_symbolic(v->type->dim[i]) && dim_symbolic(dim_bound(v->type->dim[i])))
			dim_bind(dim_text(v->type->dim[i]), t->dim[i]);
}

static bool prepare(Case *c, bool bind)
{
	c->m = read_model(path(c, "%s/model.onnx", c->name));
	if (!c->m)
		return fails(c, "it cannot be read");
	Graph *g = c->m->graph;
	c->written = g->nnode;
	if (g->nin > 16)
		return fails(c, "it has more than 16 inputs");
	for (int i = 0; i < g->nin; i++) {
		const char *p = path(c, "%s/input_%d.npy", c->name, i);

		if (access(p, F_OK) != 0)
			continue;
		if (!(c->in[i] = npy_read(p, &c->a)))
			return fails(c, "input %d cannot be read", i);
		if (bind)
			bind_symbols(g->in[i], c->in[i]);
	}
	if (params_run(g))
		return fails(c, "it does not pass params");
	if (inline_run(g))
		return fails(c, "it does not pass inlining and inference");
	if (mode_training(g))
		return fails(c, "it cannot be put into training mode");
	if (fold_run(g) || verify_graph(g, 0))
		return fails(c, "it does not pass folding");
	c->folded = g->nnode;
	if (lift_run(g) || verify_graph(g, 0))
		return fails(c, "it does not pass lifting");
	c->lifted = g->nnode;
	return true;
}

static bool same_outputs(Case *c)
{
	Graph *g = c->m->graph;
	Tensor **out = arena_array(&c->a, Tensor *, g->nout + 1);
	double limit = tolerance(c);

	if (g->nin && !c->in[0])
		return true; /* random: only read */
	if (eval_graph(g, c->in, out, &c->a, (EvalOpts){ 0 }))
		return fails(c, "it cannot be evaluated");
	for (int i = 0; i < g->nout; i++) {
		Tensor *want = npy_read(path(c, "%s/output_%d.npy", c->name, i), &c->a);

		if (!want)
			return fails(c, "output %d cannot be read", i);
		double d = distance(out[i], want);
		if (verbose)
			printf("    output %d (%s): %.3g apart\n", i, g->out[i]->name, d);
		if (!(d <= limit))
			return fails(c, "output %d (%s) is %.3g apart", i, g->out[i]->name, d);
	}
	return true;
}

static bool same_gradients(Case *c)
{
	Graph *g = c->m->graph;
	const char *dot = strchr(c->name, '.');
	Value *want[1024], *grad[1024] = { 0 };
	Tensor *expected[1024], *out[1024] = { 0 };
	int n = 0, nout = 0;

	if (!strcmp(dot, ".folded") || !strcmp(dot, ".eval"))
		return true;
	for (int i = 0; i < g->ninit && n < 1024; i++) {
		const char *p = path(c, "grads/%.*s/%s.npy", (int)(dot - c->name), c->name, g->init[i]->name);

		if (!strchr(g->init[i]->name, '/') && access(p, F_OK) == 0 &&
			(expected[n] = npy_read(p, &c->a)) != NULL) {
			if (!g->init[i]->param)
				return fails(c, "%s is not seen as a parameter", g->init[i]->name);
			want[n++] = g->init[i];
		}
	}
	if (n == 0)
		return true;
	if (grad_build(g, g->out[0], want, n, grad))
		return fails(c, "its gradient cannot be built");
	g->out = NULL;
	g->nout = 0;
	for (int i = 0; i < n; i++)
		if (grad[i])
			arena_push(g->arena, g->out, g->nout, grad[i]);
	graph_sweep(g);
	if (eval_graph(g, c->in, out, &c->a, (EvalOpts){ 0 }))
		return fails(c, "its gradient cannot be evaluated");
	double limit = fmax(1e-3, 4 * tolerance(c)), worst = 0;
	for (int i = 0; i < n; i++) {
		if (!grad[i])
			return fails(c, "no gradient reaches %s", want[i]->name);
		double d = distance(out[nout++], expected[i]);
		worst = fmax(worst, d);
		if (!(d <= limit))
			return fails(c, "the gradient of %s is %.3g apart", want[i]->name, d);
	}
	if (verbose)
		printf("    %d gradients: at most %.3g apart\n", n, worst);
	return true;
}

/* "gpt2.dynamo 1085 > 513 > 333: Attention 12, Gelu 12, LayerNormalization 25" */
static const char *summary(Case *c)
{
	static const char *const composites[] = { "Attention", "Gelu", "GroupNormalization",
		"LayerNormalization", "RMSNormalization", "RotaryEmbedding", "SwiGLU", NULL };
	char *s = arena_printf(&c->a, "%s %d > %d > %d:", c->name, c->written, c->folded, c->lifted);
	bool any = false;

	for (int k = 0; composites[k]; k++) {
		int count = 0;

		for (int i = 0; i < c->m->graph->nnode; i++)
			count += !strcmp(c->m->graph->node[i]->op, composites[k]);
		if (count)
			s = arena_printf(&c->a, "%s%s %s %d", s, any ? "," : "", composites[k], count);
		any |= count > 0;
	}
	return s;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *find_line(char *text, const char *name)
{
	size_t len = strlen(name);

	for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (!strncmp(line, name, len) && line[len] == ' ')
			return name_n(line, strcspn(line, "\n"));
	return "";
}

static char *read_expected(Arena *a)
{
	FILE *f = fopen(arena_printf(a, "%s/tests/exported/expected-lifts.txt", root), "r");
	char *text = arena_alloc(a, 1 << 16);

	if (f) {
		text[fread(text, 1, (1 << 16) - 1, f)] = 0;
		fclose(f);
	}
	return text;
}

static bool check(Case *c, char *expected, FILE *accept)
{
	bool dynamic = strstr(c->name, "-dyn") != NULL;

	if (!prepare(c, false))
		return false;
	const char *got = summary(c), *want = find_line(expected, c->name);
	if (accept)
		fprintf(accept, "%s\n", got);
	else if (strcmp(got, want))
		return fails(c, "%s\n    expected: %s", got, want);
	if (!strncmp(c->name, "gpt2", 4) && c->lifted >= 400)
		return fails(c, "%d nodes after lifting, 12 layers must end below 400", c->lifted);
	(void)dynamic;
	return same_outputs(c) && same_gradients(c);
}

int main(int argc, char **argv)
{
	const char *names[256];
	int n = 0, first = 1;
	Arena mem = { 0 };

	if (getenv("ROOT"))
		root = getenv("ROOT");
	if (argc > 1 && !strcmp(argv[1], "-v"))
		verbose = true, first = 2;
	language_init();
	DIR *d = opendir(arena_printf(&mem, "%s/tests/exported", root));
	for (struct dirent *e; d && (e = readdir(d)) != NULL && n < 256;)
		if (e->d_name[0] != '.' &&
			access(arena_printf(&mem, "%s/tests/exported/%s/model.onnx", root, e->d_name),
				F_OK) == 0)
			names[n++] = name_of(e->d_name);
	if (d)
		closedir(d);
	if (!n)
		printf("not ok exported/models: there are none\n");
	qsort(names, (size_t)n, sizeof *names, by_name);
	char *expected = read_expected(&mem);
	bool accepting = getenv("ACCEPT") && *getenv("ACCEPT");
	FILE *accept = accepting && first >= argc
	                       ? fopen(arena_printf(&mem, "%s/tests/exported/expected-lifts.txt", root), "w")
	                       : NULL;
	for (int i = 0; i < n; i++) {
		Case c = { .name = names[i] };
		bool chosen = first >= argc;

		for (int k = first; k < argc; k++)
			chosen |= name_match(argv[k], names[i]);
		if (!chosen)
			continue;
		bool good = check(&c, expected, accept ? accept : accepting ? stdout : NULL);
		if (good)
			printf("ok exported/%s\n", names[i]);
		else
			printf("not ok exported/%s: %s\n", names[i], c.why);
		fflush(stdout);
		model_free(c.m);
		arena_free(&c.a);
		diag_reset();
	}
	if (accept)
		fclose(accept);
	arena_free(&mem);
	return 0;
}
