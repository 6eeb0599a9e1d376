/* What the table says about axes and partial values, tried out, on the operands of each test column:
 *
 *   factors   every factor of a row's rule is cut in two: the operands that have it are cut, the node is evaluated on
 *             both parts, and the results are put together (S), or combined where they lack the factor (P)
 *   linear    the operands of every group of .linear are written as a sum of two: the results add up
 *
 * seconds: 900
 *
 * From these two follow all SBP signatures.  A node whose attributes or constants speak of the whole axis cannot be
 * evaluated on a part as it stands (the compiler adapts them); such a factor is passed over. */
#include "case.h"

#include <sys/wait.h>
#include <unistd.h>

enum { MAXOUT = 8 };

/* Evaluates the case; false when it is refused.  The rule is of the node, for the shapes of the case. */
static bool run(const Case *c, Tensor **t, int nout, Tensor **out, Arena *a, FactorRule **rule, int *group)
{
	Run r = { 0 };
	Tensor *in[MAXIN];
	memcpy(r.t, t, sizeof r.t);
	bool ok = build_case(&r, c, nout, false) == 0 && r.g->nnode == 1 && r.g->node[0] == r.n;
	inputs_of(c, t, in);
	ok = ok && eval_graph(r.g, in, out, a, (EvalOpts){ 0 }) == 0;
	if (ok && rule) {
		*rule = factor_rule(r.n, a);
		factor_linear(r.n, group);
	}
	model_free(r.m);
	return ok;
}

/* Elements from to to - 1 along an axis. */
static Tensor *cut(Arena *a, const Tensor *t, int axis, int64_t from, int64_t to)
{
	int64_t dim[RANK_MAX], inner = 1, len = t->dim[axis], at = 0;
	memcpy(dim, t->dim, (size_t)t->rank * sizeof *dim);
	dim[axis] = to - from;
	Tensor *r = tensor_new(a, t->dtype, t->rank, dim);
	for (int k = axis + 1; k < t->rank; k++)
		inner *= t->dim[k];
	for (int64_t i = 0; i < tensor_elements(t); i++) {
		int64_t k = i / inner % len;
		if (k < from || k >= to)
			continue;
		if (dtype_is_float(t->dtype))
			tensor_set(r, at++, tensor_get(t, i));
		else
			tensor_set_int(r, at++, tensor_int(t, i));
	}
	return r;
}

static int axis_of(const int *row, int rank, int factor)
{
	for (int k = 0; row && k < rank; k++)
		if (row[k] == factor)
			return k;
	return -1;
}

/* The case with every operand that has the factor cut to from..to; false when none has it. */
static bool part(Case *c, Tensor **t, Arena *a, const FactorRule *r, int f, int64_t from, int64_t to)
{
	bool any = false;
	for (int i = 0; i < c->nin; i++) {
		int k = c->in[i].given ? axis_of(r->in[i], c->in[i].rank, f) : -1;
		if (k < 0)
			continue;
		t[i] = cut(a, t[i], k, from, to);
		c->in[i].dim[k] = to - from;
		any = true;
	}
	return any;
}

static double combine(Reduce red, double a, double b)
{
	return red == RED_SUM ? a + b : red == RED_PROD ? a * b : red == RED_MAX ? fmax(a, b) : fmin(a, b);
}

static bool near(double a, double b)
{
	return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

static bool same(const Tensor *a, const Tensor *b)
{
	if (a->rank != b->rank || memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) != 0)
		return false;
	for (int64_t i = 0; i < tensor_elements(a); i++)
		if (!near(tensor_get(a, i), tensor_get(b, i)))
			return false;
	return true;
}

/* Whether two partial results, one per part, make up the whole. */
static bool joins(const Tensor *whole, Tensor **half, Reduce red, Arena *a)
{
	if (!dtype_is_float(whole->dtype))
		return true;
	Tensor *sum = tensor_new(a, whole->dtype, whole->rank, whole->dim);
	for (int p = 0; p < 2; p++)
		if (half[p]->rank != whole->rank || memcmp(half[p]->dim, whole->dim, (size_t)whole->rank * sizeof *whole->dim) != 0)
			return false;
	for (int64_t i = 0; i < tensor_elements(whole); i++)
		tensor_set(sum, i, combine(red, tensor_get(half[0], i), tensor_get(half[1], i)));
	return same(sum, whole);
}

static bool check_factor(const Case *c, Tensor **t, int nout, Tensor **whole, const FactorRule *r, int f, Arena *a)
{
	int64_t len = r->len[f], middle = len / 2;
	Tensor *half[2][MAXOUT] = { { 0 } };
	for (int p = 0; p < 2; p++) {
		Case d = *c;
		Tensor *td[MAXIN];
		FILE *keep;
		memcpy(td, t, sizeof td);
		if (!part(&d, td, a, r, f, p ? middle : 0, p ? len : middle))
			return true;
		quiet(&keep);
		bool ok = run(&d, td, nout, half[p], a, NULL, NULL);
		diag_out = keep;
		diag_reset();
		if (!ok)
			return true;
	}
	for (int o = 0; o < nout; o++) {
		int k = whole[o] ? axis_of(r->out[o], whole[o]->rank, f) : -1;
		Tensor *pair[2] = { half[0][o], half[1][o] };
		bool ok = true;
		if (k >= 0)
			ok = same(pair[0], cut(a, whole[o], k, 0, middle)) && same(pair[1], cut(a, whole[o], k, middle, len));
		else if (whole[o])
			ok = joins(whole[o], pair, r->red, a);
		if (!ok) {
			fail(c, name_fmt("result %d of the parts is not the whole when factor %d, of length %lld, is cut", o, f, (long long)len));
			return false;
		}
	}
	return true;
}

/* The operands of a group as x + y, with y random: the results add up when P may pass. */
static bool check_linear(const Case *c, Tensor **t, int nout, Tensor **whole, const int *group, int g, Arena *a)
{
	Tensor *part[2][MAXIN], *out[2][MAXOUT] = { { 0 } };
	memcpy(part[0], t, sizeof part[0]);
	memcpy(part[1], t, sizeof part[1]);
	for (int i = 0; i < c->nin; i++) {
		if (group[i] != g || !t[i] || !dtype_is_float(t[i]->dtype))
			continue;
		part[0][i] = tensor_new(a, t[i]->dtype, t[i]->rank, t[i]->dim);
		part[1][i] = tensor_new(a, t[i]->dtype, t[i]->rank, t[i]->dim);
		for (int64_t k = 0; k < tensor_elements(t[i]); k++) {
			double y = uniform(-1, 1);
			tensor_set(part[0][i], k, tensor_get(t[i], k) - y);
			tensor_set(part[1][i], k, y);
		}
	}
	for (int p = 0; p < 2; p++)
		if (!run(c, part[p], nout, out[p], a, NULL, NULL)) {
			fail(c, "the operands of .linear are refused");
			return false;
		}
	for (int o = 0; o < nout; o++) {
		Tensor *pair[2] = { out[0][o], out[1][o] };
		if (whole[o] && !joins(whole[o], pair, RED_SUM, a)) {
			fail(c, name_fmt("P does not pass through group %d of .linear to result %d", g, o));
			return false;
		}
	}
	return true;
}

static bool check(const Case *c, Tensor **t, int nout, Arena *a)
{
	Tensor *whole[MAXOUT] = { 0 };
	FactorRule *r = NULL;
	int group[MAXIN + 64] = { 0 };
	if (!run(c, t, nout, whole, a, &r, group))
		return true;            /* the walk says why */
	bool ok = true;
	for (int f = 0; r && f < r->nfactor && ok; f++)
		if (r->len[f] >= 2)
			ok = check_factor(c, t, nout, whole, r, f, a);
	for (int i = 0, done = 0; i < c->nin && ok; i++)
		if (group[i] > done)
			ok = check_linear(c, t, nout, whole, group, done = group[i], a);
	return ok;
}

static void walk(const Op *op)
{
	const char *p = op->test;
	int variant = 0, good = 0, nout = nresults(op);
	while (p && *p && nout <= MAXOUT) {
		Case c;
		Arena a = { 0 };
		Tensor *t[MAXIN] = { 0 };
		const char *next = read_case(&c, op, p, &a);
		if (!next)
			return;
		p = *next == '|' ? next + 1 : next;
		snprintf(c.title, sizeof c.title, "%s-%d/%d", op->name, op->since, ++variant);
		for (int i = 0; i < c.nin; i++)
			t[i] = c.in[i].given ? make(&c.in[i], &a) : NULL;
		good += check(&c, t, nout, &a);
		diag_reset();
		arena_free(&a);
	}
	if (variant && good == variant)
		printf("ok %s-%d\n", op->name, op->since);
}

int main(int argc, char **argv)
{
	for (int i = 0, n = op_count(); i < n; i++) {
		const Op *op = op_at(i);
		int status = 0;
		bool says = op->factors || op->factor_fn || op->linear;
		if (!says || op->random || (argc > 1 && strcmp(argv[1], op->name)))
			continue;
		fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			walk(op);
			fflush(NULL);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
			printf("not ok %s-%d: the check crashed (status %d)\n", op->name, op->since, status);
	}
	return 0;
}
