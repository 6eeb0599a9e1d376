/* Every model in examples/: read, resolved, inlined, folded, evaluated, and the gradient of its loss for every
 * parameter compared with central differences in double (some elements of each). */
#include "compiler.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t rng = 88172645463325252u;

static double uniform(double lo, double hi)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return lo + (hi - lo) * (double)(rng >> 11) * 0x1p-53;
}

/* Vectors are scales, shifts or variances: positive; matrices are weights. */
static Tensor *fill(Arena *a, const Type *t, bool param)
{
	int64_t dim[NDIM_MAX];

	for (int i = 0; i < t->ndim; i++)
		dim[i] = dim_bound(t->dim[i]);
	Tensor *x = tensor_new(a, dtype_is_float(t->elem) ? DT_DOUBLE : t->elem, t->ndim, dim);
	for (int64_t i = 0; i < tensor_elements(x); i++) {
		if (!dtype_is_float(t->elem))
			tensor_set_int(x, i, t->elem == DT_BOOL ? i % 5 != 4 : (int64_t)uniform(0, 2));
		else if (!param)
			tensor_set(x, i, uniform(-1, 1));
		else
			tensor_set(x, i, t->ndim == 1 ? uniform(0.5, 1.5) : uniform(-0.3, 0.3));
	}
	return x;
}

typedef struct Point { Tensor *in[32]; Tensor *want[256]; } Point;

static double loss_at(Graph *g, Point *p, bool *ok)
{
	Arena a = { 0 };
	Tensor *out[8] = { 0 };
	double v = NAN;

	if (g->nout > 8 || eval_graph(g, p->in, out, &a, (EvalOpts){ .wide = true }) < 0)
		*ok = false;
	else
		v = tensor_get(out[0], 0);
	arena_free(&a);
	return v;
}

static bool check(const char *path, const char **why)
{
	Model *m = read_model(path);
	Arena a = { 0 };
	Value *want[256], *grad[256];
	Point p = { 0 };
	int n = 0;
	bool ok = true;

	*why = "it cannot be read";
	if (!m || resolve_run(m) < 0)
		return false;
	Graph *g = m->graph;
	*why = "the first output must be the scalar loss";
	if (g->nin > 32 || g->nout < 1)
		return false;
	for (int i = 0; i < g->ninit; i++) {
		Value *v = g->init[i];

		if (v->data || n == 256)
			continue;
		v->data = fill(&m->arena, v->type, true);
		v->param = true;                /* not to be folded */
		want[n] = v;
		p.want[n++] = v->data;
	}
	*why = "it has no parameters";
	if (n == 0)
		return false;
	*why = "it does not pass inlining and inference";
	if (inline_run(g) < 0)
		return false;
	*why = "it does not pass folding";
	if (fold_run(g) < 0)
		return false;
	for (int i = 0; i < g->nin; i++)
		p.in[i] = fill(&m->arena, g->in[i]->type, false);
	*why = "it does not pass lifting";
	if (lift_run(g) < 0)
		return false;
	Model *fm = model_new();
	Graph *forward = fm->graph = graph_copy(fm, g);
	*why = "its gradient cannot be built";
	if (grad_build(g, g->out[0], want, n, grad) < 0)
		return false;
	int nout = 0;
	g->out = NULL;
	g->nout = 0;
	for (int i = 0; i < n; i++)
		if (grad[i])
			arena_push(g->arena, g->out, g->nout, grad[i]);
	Tensor **out = arena_array(&a, Tensor *, n + 1);
	*why = "its gradient cannot be evaluated";
	if (eval_graph(g, p.in, out, &a, (EvalOpts){ .wide = true }) < 0)
		return false;
	forward->nout = 1;
	for (int i = 0; i < n && ok; i++) {
		Tensor *x = p.want[i], *d = grad[i] ? out[nout++] : NULL;
		int64_t count = tensor_elements(x);

		for (int64_t k = 0; k < 3 && ok; k++) {
			int64_t e = (int64_t)uniform(0, (double)count);
			double v = tensor_get(x, e), h = 1e-5, got = d ? tensor_get(d, e) : 0;

			tensor_set(x, e, v + h);
			double up = loss_at(forward, &p, &ok);
			tensor_set(x, e, v - h);
			double down = loss_at(forward, &p, &ok);
			tensor_set(x, e, v);
			double mid = (up - down) / (2 * h);
			if (!(fabs(got - mid) <= 1e-6 + 1e-4 * fmax(fabs(got), fabs(mid)))) {
				static char text[256];

				snprintf(text, sizeof text, "d loss / d %s[%lld] is %.9g, differences say %.9g",
					want[i]->name, (long long)e, got, mid);
				*why = text;
				ok = false;
			}
		}
	}
	model_free(fm);
	model_free(m);
	arena_free(&a);
	return ok;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int main(int argc, char **argv)
{
	const char *names[64];
	int n = 0;
	const char *root = getenv("ROOT");      /* set by tests/run */

	dim_bind(name_of("N"), 2);
	if (root && chdir(root) < 0)
		return 1;
	DIR *d = opendir("examples");
	for (struct dirent *e; d && (e = readdir(d)) != NULL && n < 64;) {
		size_t len = strlen(e->d_name);

		if (len > 3 && !strcmp(e->d_name + len - 3, ".ir"))
			names[n++] = name_of(e->d_name);
	}
	if (d)
		closedir(d);
	if (!n)
		printf("not ok examples: none found; run from the top of the tree\n");
	qsort(names, (size_t)n, sizeof *names, by_name);
	for (int i = 0; i < n; i++) {
		const char *why = "";

		if (argc > 1 && strcmp(argv[1], names[i]))
			continue;
		if (check(name_fmt("examples/%s", names[i]), &why))
			printf("ok %s: gradients agree with differences\n", names[i]);
		else
			printf("not ok %s: %s\n", names[i], why);
		diag_reset();
	}
	return 0;
}
