/* Folding and lifting change no meaning: every model in passes/fold and passes/lift gives the same results on random
 * operands before and after, symbols bound to B = 2 and T = 3. */
#include "compiler.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng;

static double uniform(double lo, double hi)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return lo + (hi - lo) * (double)(rng >> 11) * 0x1p-53;
}

static Tensor *fill(Arena *a, const Type *t)
{
	int64_t dim[NDIM_MAX];

	for (int i = 0; i < t->ndim; i++)
		dim[i] = dim_bound(t->dim[i]);
	Tensor *x = tensor_new(a, t->elem, t->ndim, dim);
	for (int64_t i = 0; i < tensor_elements(x); i++)
		if (t->elem == DT_BOOL)
			tensor_set_int(x, i, i % 3 != 1);
		else
			tensor_set(x, i, uniform(-1, 1));
	return x;
}

/* The results of a model: as it is, or folded and lifted. */
static int run(const char *path, bool passes, Tensor **out, int *nout, Arena *a)
{
	Model *m = read_model(path);
	Tensor *in[32] = { 0 };

	if (!m || resolve_run(m) < 0)
		return -1;
	Graph *g = m->graph;
	rng = 88172645463325252u;
	for (int i = 0; i < g->ninit; i++)
		if (!g->init[i]->data) {
			g->init[i]->data = fill(&m->arena, g->init[i]->type);
			g->init[i]->param = true;
		}
	for (int i = 0; i < g->nin && i < 32; i++)
		in[i] = fill(a, g->in[i]->type);
	*nout = g->nout;
	int bad = g->nin > 32 || g->nout > 16 || inline_run(g) < 0;
	if (passes)
		bad = bad || fold_run(g) || lift_run(g) || verify_graph(g, 0);
	bad = bad || eval_graph(g, in, out, a, (EvalOpts){ 0 });
	model_free(m);
	return bad ? -1 : 0;
}

static double apart(const Tensor *x, const Tensor *y)
{
	double most = 0;

	if (tensor_elements(x) != tensor_elements(y) || x->dtype != y->dtype)
		return INFINITY;
	for (int64_t i = 0; i < tensor_elements(x); i++) {
		double v = tensor_get(x, i), w = tensor_get(y, i),
		       d = v == w || (isnan(v) && isnan(w)) ? 0 : fabs(v - w);

		most = fmax(most, isnan(d) ? INFINITY : d);
	}
	return x->dtype == DT_FLOAT ? most : most / 1e4; /* narrow types */
}

static void check(const char *path, const char *name)
{
	Tensor *before[16] = { 0 }, *after[16] = { 0 };
	Arena a = { 0 };
	int n;
	double most = 0;

	if (run(path, false, before, &n, &a) < 0 || run(path, true, after, &n, &a) < 0) {
		printf("not ok %s: it cannot be evaluated\n", name);
	} else {
		for (int i = 0; i < n; i++)
			most = fmax(most, apart(before[i], after[i]));
		printf(most <= 2e-6 ? "ok %s\n" : "not ok %s: results are %g apart\n", name, most);
	}
	arena_free(&a);
	diag_reset();
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int main(void)
{
	static const char *const folders[] = { "passes/fold", "passes/lift" };
	const char *root = getenv("ROOT") ? getenv("ROOT") : ".";

	language_init();
	dim_bind(name_of("B"), 2);
	dim_bind(name_of("T"), 3);
	for (int k = 0; k < 2; k++) {
		const char *names[256];
		int n = 0;
		DIR *d = opendir(name_fmt("%s/tests/%s", root, folders[k]));

		for (struct dirent *e; d && (e = readdir(d)) != NULL && n < 256;)
			if (name_match("*.ir", e->d_name))
				names[n++] = name_of(e->d_name);
		if (d)
			closedir(d);
		qsort(names, (size_t)n, sizeof *names, by_name);
		for (int i = 0; i < n; i++)
			check(name_fmt("%s/tests/%s/%s", root, folders[k], names[i]),
				name_fmt("same-meaning/%s/%s", folders[k], names[i]));
		if (!n)
			printf("not ok same-meaning/%s: there are no models\n", folders[k]);
	}
	return 0;
}
