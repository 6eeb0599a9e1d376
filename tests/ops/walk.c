/* Walks the operator table.  For each row and definition, on the operands that its test column (or @test) names:
 *
 *   shape     inference succeeds, evaluation gives exactly the inferred types, and inference with the first axis of
 *             every operand as a symbol agrees with it
 *   bad       operands of other lengths, of a wrong type, missing, too many, an unknown attribute: refused with a
 *             message, or accepted and then evaluated to the inferred shape; never a crash
 *   gradient  against central differences in double, through the same evaluator
 *   extremes  gradients at 0, +-100 and +-10,000 are no NaN and lie between the one-sided differences
 *   meaning   a composite's kernel against its definition
 *
 * A row that cannot be checked fails: "no test column". */
#include "case.h"

#include <sys/wait.h>
#include <unistd.h>

/* Evaluates and compares the result types with the inferred ones. */
static bool check_shape(const Case *c, Tensor **t, int nout)
{
	Run r = { 0 };
	Arena a = { 0 };
	Tensor *in[MAXIN], *out[64] = { 0 };
	bool ok = true;

	memcpy(r.t, t, sizeof r.t);
	if (build_case(&r, c, nout, false) < 0) {
		fail(c, "the test operands are refused");
		ok = false;
	} else {
		inputs_of(c, t, in);
		if (eval_graph(r.g, in, out, &a, (EvalOpts){ 0 }) < 0) {
			fail(c, "evaluation fails");
			ok = false;
		}
		for (int i = 0; i < nout && ok; i++) {
			const Type *ty = r.g->out[i]->type;

			if (!ty || ty->ndim != out[i]->ndim || ty->elem != out[i]->dtype) {
				fail(c, name_fmt("result %d is evaluated as %s with %d axes, inferred as %s", i,
					dtype_name(out[i]->dtype), out[i]->ndim, type_text(ty)));
				ok = false;
				break;
			}
			for (int k = 0; k < ty->ndim && ok; k++)
				if (dim_differ(ty->dim[k], out[i]->dim[k])) {
					fail(c, name_fmt("axis %d of result %d is evaluated as %lld, inferred as %s", k,
						i, (long long)out[i]->dim[k], type_text(ty)));
					ok = false;
				}
		}
	}
	Run s = { 0 };
	memcpy(s.t, t, sizeof s.t);
	if (ok) {
		FILE *keep;

		/* A rule may need numbers (an operand must be known): refusing symbols with a message is allowed, a
		 * wrong shape is not. */
		quiet(&keep);
		int bad = build_case(&s, c, nout, true);
		diag_out = keep;
		diag_reset();
		for (int i = 0; i < nout && !bad && ok; i++) {
			const Type *ty = s.g->out[i]->type;

			for (int k = 0; ty && ty->ndim == out[i]->ndim && k < ty->ndim && ok; k++) {
				for (int n = 2; n < 33; n++)
					dim_bind(name_fmt("walk%d", n), n);
				Dim d = dim_bound(ty->dim[k]);
				if (dim_differ(d, out[i]->dim[k])) {
					fail(c, name_fmt("with symbols, axis %d of result %d is %s, which is not %lld",
						k, i, dim_text(ty->dim[k]), (long long)out[i]->dim[k]));
					ok = false;
				}
			}
			if (ty && ty->ndim >= 0 && ty->ndim != out[i]->ndim) {
				fail(c, name_fmt("with symbols, result %d has %d axes, not %d", i, ty->ndim,
					out[i]->ndim));
				ok = false;
			}
		}
	}
	model_free(r.m);
	model_free(s.m);
	arena_free(&a);
	return ok;
}

/* Wrong operands: refused with a message, or accepted and then evaluated as inferred. */
static bool check_bad(const Case *base, int nout, int *refused)
{
	for (int i = 0; i < base->nin; i++)
		for (int k = -3; k < base->in[i].ndim; k++) {
			Case c = *base;
			Run r = { 0 };
			Arena a = { 0 };
			Tensor *t[MAXIN] = { 0 }, *in[MAXIN], *out[64] = { 0 };
			FILE *keep;
			bool ok = true;

			if (!c.in[i].given || (c.in[i].isconst && k >= 0))
				continue;
			if (k == -3)
				c.in[i].given = false;
			else if (k == -2)
				c.in[i].dtype = dtype_is_float(c.in[i].dtype) ? DT_BOOL : DT_FLOAT;
			else if (k == -1) {
				if (c.in[i].ndim == 0 || c.in[i].isconst)
					continue;
				c.in[i].ndim--;
			} else
				c.in[i].dim[k] = c.in[i].dim[k] == 7 ? 5 : 7;
			for (int j = 0; j < c.nin; j++)
				t[j] = c.in[j].given ? make(&c.in[j], &a) : NULL;
			memcpy(r.t, t, sizeof r.t);
			quiet(&keep);
			int bad = build_case(&r, &c, nout, false);
			if (bad && !diag_errors()) {
				diag_out = keep;
				fail(base, "a bad operand is refused without a message");
				return false;
			}
			*refused += bad != 0;
			if (!bad) {
				inputs_of(&c, t, in);
				int evil = eval_graph(r.g, in, out, &a, (EvalOpts){ 0 });

				for (int j = 0; j < nout && !evil && ok; j++) {
					const Type *ty = r.g->out[j]->type;

					for (int x = 0; ty && x < ty->ndim && out[j] && x < out[j]->ndim; x++)
						ok &= !dim_differ(ty->dim[x], out[j]->dim[x]);
				}
				if (evil && !diag_errors())
					ok = false;
			}
			diag_reset();
			diag_out = keep;
			model_free(r.m);
			arena_free(&a);
			if (!ok) {
				fail(base, name_fmt("changed operand %d (axis %d) is accepted, but evaluates to "
					"another shape", i, k));
				return false;
			}
		}
	return true;
}

/* ---- gradients ---- */

typedef struct Diff {
	Run r;
	Value *loss, *grad[MAXIN];
	int want[MAXIN], nwant;
	Graph *fwd;
	Model *fm;
	Value *floss;
} Diff;

static bool isfloat(const Value *v)
{
	return v && v->type && v->type->kind == TY_TENSOR && dtype_is_float(v->type->elem);
}

/* loss = sum over float results of sum(result * weight), the weights random but fixed by *seed. */
static Value *weigh(Run *r, uint64_t seed)
{
	Value *loss = NULL;

	rng = seed;
	for (int i = 0, n = r->g->nout; i < n; i++) {
		Value *o = r->g->out[i];
		int64_t dim[32];

		if (!isfloat(o) || type_elements(o->type) < 0)
			continue;
		for (int k = 0; k < o->type->ndim; k++)
			dim[k] = o->type->dim[k];
		Tensor *w = tensor_new(r->g->arena, o->type->elem, o->type->ndim, dim);
		for (int64_t k = 0; k < tensor_elements(w); k++)
			tensor_set(w, k, uniform(0.5, 1.5));
		Value *p = build(r->g, (Loc){ 0 }, "Mul", NULL, 1, NULL, 2, o, graph_const(r->g, w, "weight"));
		Value *s = p ? build(r->g, (Loc){ 0 }, "ReduceSum", "keepdims=0", 1, NULL, 1, p) : NULL;
		if (!s)
			return NULL;
		loss = loss ? build(r->g, (Loc){ 0 }, "Add", NULL, 1, NULL, 2, loss, s) : s;
	}
	return loss;
}

static void set_outputs(Graph *g, Value **v, int n)
{
	g->out = NULL;
	g->nout = 0;
	for (int i = 0; i < n; i++)
		arena_push(g->arena, g->out, g->nout, v[i]);
}

static double loss_at(const Case *c, Graph *fwd, Tensor **t, bool *ok)
{
	Arena a = { 0 };
	Tensor *in[MAXIN], *out[1] = { 0 };
	double v = NAN;

	inputs_of(c, t, in);
	if (eval_graph(fwd, in, out, &a, (EvalOpts){ .wide = true }) < 0)
		*ok = false;
	else
		v = tensor_get(out[0], 0);
	arena_free(&a);
	return v;
}

static double relative(double a, double b)
{
	return fabs(a - b) / fmax(1, fmax(fabs(a), fabs(b)));
}

/* The error of the loss because each operand is rounded to double once: half a unit times the slope, summed.  It is
 * some 1e-5 of the largest slope at 10,000, so it hides no wrong one. */
static double conditioned(int n, const int *which, const int *at, Tensor **t, Tensor **grad)
{
	double sum = 0;

	for (int k = 0; k < n; k++) {
		const Tensor *x = t[at[which[k]]];

		if (tensor_elements(grad[k]) == tensor_elements(x))
			for (int64_t e = 0; e < tensor_elements(x); e++)
				sum += fabs(tensor_get(x, e) * tensor_get(grad[k], e));
	}
	return isfinite(sum) ? sum * 0x1p-53 : 0;
}

/* Gradients at the point t against differences of step h.  one_sided: only between the two one-sided ones. */
static bool check_gradient(const Case *c, Tensor **t, int nout, bool one_sided, const char *where)
{
	Run b = { 0 }, f = { 0 };
	Arena a = { 0 };
	Value *want[MAXIN], *grad[MAXIN], *outs[MAXIN];
	int at[MAXIN], n = 0, nouts = 0, which[MAXIN];
	uint64_t seed = 1181783497276652981u;
	bool ok = true;

	memcpy(b.t, t, sizeof b.t);
	memcpy(f.t, t, sizeof f.t);
	if (build_case(&b, c, nout, false) < 0 || build_case(&f, c, nout, false) < 0) {
		fail(c, "the test operands are refused");
		ok = false;
		goto done;
	}
	Value *loss = weigh(&b, seed), *floss = weigh(&f, seed);
	for (int i = 0; i < c->nin; i++)
		if (b.in[i] && isfloat(b.in[i]) && !c->in[i].isconst) {
			at[n] = i;
			want[n++] = b.in[i];
		}
	if (!loss || !floss || !n)
		goto done;
	if (grad_build(b.g, loss, want, n, grad) < 0) {
		fail(c, "no gradient can be built");
		ok = false;
		goto done;
	}
	for (int i = 0; i < n; i++)
		if (grad[i]) {
			which[nouts] = i;
			outs[nouts++] = grad[i];
		}
	set_outputs(b.g, outs, nouts);
	set_outputs(f.g, &floss, 1);
	Tensor *in[MAXIN], *out[MAXIN] = { 0 };
	inputs_of(c, t, in);
	if (nouts && eval_graph(b.g, in, out, &a, (EvalOpts){ .wide = true }) < 0) {
		fail(c, "the gradient cannot be evaluated");
		ok = false;
		goto done;
	}
	double here = loss_at(c, f.g, t, &ok), blur = conditioned(nouts, which, at, t, out);
	for (int i = 0; i < n && ok; i++) {
		Tensor *x = t[at[i]], *g = NULL;
		int64_t count = tensor_elements(x);

		for (int k = 0; k < nouts; k++)
			if (which[k] == i)
				g = out[k];
		if (g) {
			bool same = g->ndim == x->ndim;

			for (int k = 0; same && k < g->ndim; k++)
				same &= g->dim[k] == x->dim[k];
			if (!same) {
				fail(c, name_fmt("the gradient of operand %d has another shape than it", at[i]));
				ok = false;
				break;
			}
		}
		for (int64_t e = 0; e < count && ok; e += count > 40 ? count / 23 : 1) {
			double v = tensor_get(x, e), h = one_sided ? 1e-5 : 1e-5 * fmax(1, fabs(v)),
				got = g ? tensor_get(g, e) : 0;

			tensor_set(x, e, v + h);
			double up = loss_at(c, f.g, t, &ok);
			tensor_set(x, e, v - h);
			double down = loss_at(c, f.g, t, &ok);
			tensor_set(x, e, v);
			double left = (here - down) / h, right = (up - here) / h, mid = (up - down) / (2 * h);
			if (!isfinite(here) || (one_sided && (!isfinite(left) || !isfinite(right))))
				continue;
			/* a jump, not a slope: it grows as the step shrinks */
			if (one_sided && fabs(mid) > 1e3 * (1 + fabs(got))) {
				tensor_set(x, e, v + h / 10);
				double up10 = loss_at(c, f.g, t, &ok);
				tensor_set(x, e, v);
				if (fabs((up10 - here) / (h / 10)) > 5 * fabs(right))
					continue;
			}
			/* differences of large losses lose digits, and so do those of losses that amplify the operands'
			 * rounding */
			double slack = 2e-5 + 1e-15 * fabs(here) / h * 16 + (one_sided ? blur / h : 0);
			bool fits = one_sided ? got >= fmin(left, right) - slack - 1e-4 * fabs(left) &&
				got <= fmax(left, right) + slack + 1e-4 * fabs(right)
			                      : relative(got, mid) < slack + 2e-5;
			if (!(fits && !isnan(got))) {
				fail(c,
					name_fmt(
					"%s: gradient of operand %d, element %lld at %.9g is %.9g, differences say "
					"%.9g (left %.9g, right %.9g)",
				                 where, at[i], (long long)e, v, got, mid, left, right));
				ok = false;
			}
		}
	}
done:
	model_free(b.m);
	model_free(f.m);
	arena_free(&a);
	return ok;
}

static bool pointwise(const Case *c)
{
	int64_t n = -1;

	for (int i = 0; i < c->nin; i++)
		if (c->in[i].given && c->in[i].lo < 0 && c->in[i].dtype == DT_DOUBLE)
			n = 1;
	return n > 0;
}

static bool check_extremes(const Case *c, int nout)
{
	static const double points[] = { 0, 100, -100, 10000, -10000 };
	bool ok = true;

	for (int p = 0; p < 5 && ok; p++) {
		Arena a = { 0 };
		Tensor *t[MAXIN] = { 0 };
		char where[64];

		for (int i = 0; i < c->nin; i++) {
			if (!c->in[i].given)
				continue;
			t[i] = make(&c->in[i], &a);
			if (c->in[i].dtype == DT_DOUBLE && c->in[i].lo < 0 && !c->in[i].isconst)
				for (int64_t k = 0; k < tensor_elements(t[i]); k++)     /* near it, without ties */
					tensor_set(t[i], k, points[p] + 0.01 * (double)k);
		}
		snprintf(where, sizeof where, "at %g", points[p]);
		ok = check_gradient(c, t, nout, true, where);
		arena_free(&a);
	}
	return ok;
}

/* The kernel's meaning (.eval or .expr) against the definition of the same name. */
static bool check_meaning(const Case *c, Tensor **t, int nout)
{
	Run r = { 0 }, d = { 0 };
	Arena a = { 0 };
	Tensor *in[MAXIN], *out[64] = { 0 }, *def[64] = { 0 };
	bool ok = true;

	memcpy(r.t, t, sizeof r.t);
	memcpy(d.t, t, sizeof d.t);
	inputs_of(c, t, in);
	if (build_case(&r, c, nout, false) < 0 || build_case(&d, c, nout, false) < 0 || inline_composites(d.g) < 0 ||
	    eval_graph(r.g, in, out, &a, (EvalOpts){ 0 }) < 0 || eval_graph(d.g, in, def, &a, (EvalOpts){ 0 }) < 0) {
		fail(c, "kernel or definition cannot be evaluated");
		ok = false;
	}
	for (int i = 0; i < nout && ok; i++)
		for (int64_t k = 0; k < tensor_elements(out[i]) && ok; k++)
			if (relative(tensor_get(out[i], k), tensor_get(def[i], k)) > 1e-9) {
				fail(c, name_fmt("result %d, element %lld: kernel %.12g, definition %.12g", i,
					(long long)k, tensor_get(out[i], k), tensor_get(def[i], k)));
				ok = false;
			}
	model_free(r.m);
	model_free(d.m);
	arena_free(&a);
	return ok;
}

static const char *test_of(const Op *op)
{
	const Annot *a = op->def ? annot_find(op->def->annot, "test") : NULL;

	return op->test ? op->test : a && a->narg ? a->arg[0].s : NULL;
}

/* What every row of a core or composite operator carries; NULL, or what is missing.  No factor rule means that every
 * axis stays whole. */
static const char *missing(const Op *op)
{
	if (op->def && !op->composite)
		return op->shape ? "a definition has no shape rule" : NULL;
	if (op->expand && !op->composite)
		return NULL;
	bool defined = op->def || op->expand;
	if (!op->shape)
		return "no shape rule";
	if (!op->sig)
		return "no schema";
	if (!op->expr && !op->kernel)
		return "no expression and no kernel";
	if (!op->cost && !op->expr)
		return "no cost";
	if (!op->expr && !op->eval && !defined)
		return "no meaning";
	if (!op->grad && !op->grad_fn && !op->nograd && !defined)
		return "no gradient, and it does not say that there is none";
	return NULL;
}

static void walk(const Op *op)
{
	const char *p = test_of(op);
	char name[128], guess[256] = "";
	int refused = 0;

	snprintf(name, sizeof name, "%s%s%s-%d", op->domain ? op->domain : "", op->domain && *op->domain ? "." : "",
		op->name, op->since);
	if (!p && op->def && !op->composite) {  /* a definition: every operand a small matrix */
		for (int i = 0; i < op->schema->nin; i++)
			snprintf(guess + strlen(guess), sizeof guess - strlen(guess), "%s:[2,3] ",
				op->schema->in[i].name);
		p = guess;
	}
	if (missing(op) || !p) {
		printf("not ok %s: %s\n", name, p ? missing(op) : "no test column");
		return;
	}
	int variant = 0, good = 0;
	while (p && *p) {
		Case c;
		Arena a = { 0 };
		Tensor *t[MAXIN] = { 0 };
		int nout = nresults(op);
		const char *next = read_case(&c, op, p, &a);

		snprintf(c.title, sizeof c.title, "%s/%d", name, ++variant);
		if (!next) {
			fail(&c, "mistake in the test column");
			return;
		}
		p = *next == '|' ? next + 1 : next;
		for (int i = 0; i < c.nin; i++)
			t[i] = c.in[i].given ? make(&c.in[i], &a) : NULL;
		bool grads = !op->nograd && !op->random;
		bool meaning = op->composite && (op->eval || op->expr) && (op->def || op->expand);
		good += check_shape(&c, t, nout) && check_bad(&c, nout, &refused) &&
			(!grads || check_gradient(&c, t, nout, false, "at random points")) &&
			(!grads || !pointwise(&c) || check_extremes(&c, nout)) &&
			(!meaning || check_meaning(&c, t, nout));
		diag_reset();
		arena_free(&a);
	}
	if (op->schema->nin && !refused) {
		printf("not ok %s: no bad operand was refused\n", name);
		return;
	}
	if (good == variant)
		printf("ok %s\n", name);
}

/* Each operator in a process of its own: a crash fails that one and the walk goes on. */
int main(int argc, char **argv)
{
	language_init();
	int n = op_count();

	for (int i = 0; i < n; i++) {
		const Op *op = op_at(i);
		int status = 0;

		if (argc > 1 && strcmp(argv[1], op->name))
			continue;
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			walk(op);
			fflush(NULL);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0) {
			printf("not ok %s-%d: the check crashed (status %d)\n", op->name, op->since, status);
		}
	}
	return 0;
}
