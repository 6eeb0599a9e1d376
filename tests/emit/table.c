/* Every operator that the table holds, as generated C, against the evaluator: the operands of each test column, in
 * every type of the back end that the row allows, become inputs of one large model, whose program is built once.
 *
 *   table make     writes model.ir, inputs/NAME, want/NAME and list: a line per result, or why the model lacks a row
 *   table compare  reads list, want/NAME and got/NAME
 *
 * A row without a kernel is a failure, unless it stands in the list of refused rows.  Random rows are compared
 * elsewhere. */
#include "../ops/case.h"
#include "compiler.h"

#include <sys/stat.h>

/* What is refused, and why (README.md says so too), or compared by tests/equiv/random. */
static const struct { const char *name, *why; } refusals[] = {
	{ "NonMaxSuppression-10", "how many boxes stay depends on the data" },
	{ "Unique-11", "how many elements differ depends on the data" },
	{ "RandomUniform-1", "random" }, { "RandomUniformLike-1", "random" }, { "RandomNormal-1", "random" },
	{ "RandomNormalLike-1", "random" },
	{ "Bernoulli-15", "random" }, { "Multinomial-7", "random" },
	{ "QuantizeLinear-10.2", "the back end has no int8" },
	{ "DequantizeLinear-10.1", "the back end has no int8" },
};

static const char *refusal(const char *name)
{
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		size_t n = strlen(refusals[i].name);
		if (!strncmp(name, refusals[i].name, n) && (!name[n] || name[n] == '.'))
			return refusals[i].why;
	}
	return NULL;
}

static void save(const char *dir, const char *name, const void *data, size_t bytes)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f))
		die("cannot write %s", path);
}

static size_t bytes_of(const Tensor *t)
{
	return (size_t)tensor_elements(t) * (size_t)(dtype_bits(t->dtype) / 8);
}

/* A tensor over those bytes. */
static Tensor *same(Arena *a, DType t, int ndim, const int64_t *dim, const void *bytes)
{
	Tensor *x = tensor_new(a, t, ndim, dim);
	size_t n = bytes_of(x);
	char *copy = arena_array(a, char, (int64_t)n + 1);
	memcpy(copy, bytes, n);
	x->data = copy;
	return x;
}

/* Results that are known before anything runs but for the operands: no numbers are drawn, and shapes are fixed. */
static bool fixed(const Graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->row->random)
			return false;
	for (int i = 0; i < g->nout; i++)
		if (!g->out[i]->type || g->out[i]->type->ndim < 0 || type_elements(g->out[i]->type) < 1)
			return false;
	return true;
}

/* What of a case cannot be compiled; NULL: nothing. */
static const char *refused(const Case *c, Tensor **t, int nout)
{
	Run r = { 0 };
	const char *why = NULL;
	memcpy(r.t, t, sizeof r.t);
	if (build_case(&r, c, nout, false) || lower_run(r.g))
		why = "the test operands are refused";
	for (int i = 0; i < r.g->nnode && !why; i++)
		if (!kernel_has(r.g->node[i]))
			why = name_fmt("no kernel for %s of %s", r.g->node[i]->op, r.g->node[i]->nin &&
				r.g->node[i]->in[0] ? type_text(r.g->node[i]->in[0]->type) : "nothing");
	model_free(r.m);
	return why;
}

/* The case as a node of the large graph. */
static void append(Graph *g, const Case *c, Tensor **t, int nout, const char *name)
{
	Node *n = node_new(g, name_of(c->op->domain ? c->op->domain : ""), name_of(c->op->name), (Loc){ 0 });
	n->row = c->op;
	for (int i = 0; i < c->nin; i++) {
		Value *v = NULL;
		if (c->in[i].given) {
			v = graph_value_here(g, name_fmt("%s.in%d", name, i), (Loc){ 0 });
			v->type = type_tensor(g->arena, c->in[i].dtype, c->in[i].ndim, c->in[i].dim);
			if (c->in[i].isconst) {
				v->data = same(g->arena, t[i]->dtype, t[i]->ndim, t[i]->dim, t[i]->data);
				v->init = true;
				arena_push(g->arena, g->init, g->ninit, v);
			} else {
				v->input = true;
				arena_push(g->arena, g->in, g->nin, v);
				save("inputs", v->name, t[i]->data, bytes_of(t[i]));
			}
		}
		node_in(n, v);
	}
	for (int i = 0; i < nout; i++)
		node_out(n, graph_value_here(g, name_fmt("%s.out%d", name, i), (Loc){ 0 }));
	for (int i = 0; i < c->nattr; i++)
		arena_push(g->arena, n->attr, n->nattr, c->attr[i]);
	for (int i = 0; i < nout; i++) {
		Value *v = n->out[i];
		v->output = true;
		arena_push(g->arena, g->out, g->nout, v);
	}
	if (inline_append(g, n))
		die("%s: a node that was accepted alone is refused", name);
}

/* The element types that a case is tried with: that of operands whose type is a variable, by its first letter (see .sig
 * in ir.h), and that of indices.  A round is for cases that have an operand of one of these letters. */
static const struct Round { const char *name, *letters; DType any, index; } rounds[] = {
	{ "float", "FNTIB", DT_FLOAT, DT_INT64 }, { "double", "FNTI", DT_DOUBLE, DT_INT32 },
	{ "int64", "NT", DT_INT64, DT_INT64 },
	{ "int32", "NT", DT_INT32, DT_INT32 }, { "uint8", "NT", DT_UINT8, DT_INT64 },
	{ "bool", "T", DT_BOOL, DT_INT64 },
};

/* The letter of an operand whose type the test column leaves open, else 0. */
static char letter(const Case *c, int i)
{
	const Schema *s = c->op->schema;
	const Operand *o = s->nin ? &s->in[i < s->nin ? i : s->nin - 1] : NULL;
	bool open = o && c->in[i].given && !c->in[i].isconst && !dtype_of(o->type, strlen(o->type)) &&
		c->in[i].dtype == case_type(o->type);
	return open ? o->type[0] : 0;
}

static bool fits(const Case *c, const struct Round *r)
{
	for (int i = 0; i < c->nin; i++)
		if (letter(c, i) && strchr(r->letters, letter(c, i)))
			return true;
	return r == rounds;
}

/* What the loss hands to its gradient, which relies on it: the logarithms of the sums of exp(scores) over the classes,
 * axis 1. */
static void log_sums(Tensor *lse, const Tensor *scores)
{
	int64_t classes = scores->dim[1], inner = tensor_elements(lse) / scores->dim[0];
	for (int64_t i = 0; i < tensor_elements(lse); i++) {
		double sum = 0;
		for (int64_t k = 0; k < classes; k++)
			sum += exp(tensor_get(scores, (i / inner * classes + k) * inner + i % inner));
		tensor_set(lse, i, log(sum));
	}
}

/* The case in the types of a round: whether it became part of the model. */
static bool make_case(Graph *g, Case *c, const char *variant, const struct Round *round, Arena *a, FILE *list)
{
	Tensor *t[MAXIN] = { 0 }, *in[MAXIN], *out[64] = { 0 };
	int nout = nresults(c->op);
	Run r = { 0 };
	char name[128];
	snprintf(name, sizeof name, "%s-%d.%s", c->op->name, c->op->since, variant);
	for (int i = 0; i < c->nin; i++) {
		char of = letter(c, i);
		if (of)
			c->in[i].dtype = of == 'I' ? round->index : of == 'B' ? DT_BOOL : of == 'F' &&
				!dtype_is_float(round->any) ? DT_FLOAT : round->any;
		if (c->in[i].lo < 0 && !dtype_is_float(c->in[i].dtype))
			c->in[i].lo = 0, c->in[i].hi = 2;
		t[i] = c->in[i].given ? make(&c->in[i], a) : NULL;
	}
	for (int i = 0; i < c->nin; i++)
		/* no program has an empty input, but it may have an empty constant */
		c->in[i].isconst |= t[i] && t[i]->bytes == 0;
	if (!strcmp(c->op->name, "SoftmaxCrossEntropyGrad"))
		log_sums(t[3], t[0]);
	memcpy(r.t, t, sizeof r.t);
	inputs_of(c, t, in);
	FILE *keep;
	quiet(&keep);
	bool ok = build_case(&r, c, nout, false) == 0 && fixed(r.g) &&
		eval_graph(r.g, in, out, a, (EvalOpts){ 0 }) == 0;
	const char *why = ok ? refused(c, t, nout) : NULL;
	diag_out = keep;
	diag_reset();
	if (ok && why)
		fprintf(list, "refused %s %s\n", name, why);
	if (ok && !why) {
		append(g, c, t, nout, name);
		for (int i = 0; i < nout; i++) {
			fprintf(list, "%d %s.out%d %s\n", (int)out[i]->dtype, name, i, name);
			save("want", name_fmt("%s.out%d", name, i), out[i]->data, bytes_of(out[i]));
		}
	}
	model_free(r.m);
	return ok && !why;
}

static int make_all(void)
{
	Model *m = model_new();
	Graph *g = m->graph = graph_new(m, NULL, name_of("table"));
	FILE *list = fopen("list", "w"), *ir = fopen("model.ir", "w");
	arena_push(&m->arena, m->opset, m->nopset, ((Opset){ .domain = name_of(""), .version = OPSET_MAX }));
	m->ir_version = 10;
	m->has_ir_version = true;
	if (!list || !ir || mkdir("inputs", 0777) || mkdir("want", 0777) || mkdir("got", 0777))
		die("cannot write here");
	for (int i = 0; i < op_count(); i++) {
		const Op *op = op_at(i);
		int variant = 0, made = 0;
		if (op->until || op->random || op->moves)
			continue;
		for (const char *p = op->test; p && *p;) {
			Case c;
			const char *next = read_case(&c, op, p, &m->arena);
			if (!next)
				die("%s: mistake in the test column", op->name);
			variant++;
			for (size_t k = 0; k < sizeof rounds / sizeof rounds[0]; k++)
				if (fits(&c, &rounds[k])) {
					Case copy = c;
					made += make_case(g, &copy, name_fmt("%d.%s", variant, rounds[k].name),
						&rounds[k], &m->arena, list);
				}
			p = *next == '|' ? next + 1 : next;
		}
		if (op->test && !made)
			fprintf(list, "refused %s-%d no case of it is part of the model\n", op->name, op->since);
	}
	print_model(ir, m);
	model_free(m);
	return fclose(list) || fclose(ir);
}

static void *load(const char *dir, const char *name, size_t *n)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "rb");
	char *s = malloc(1 << 20);
	if (!s)
		die("out of memory");
	*n = f ? fread(s, 1, 1 << 20, f) : 0;
	if (f)
		fclose(f);
	return s;
}

/* The first element in which they differ, or -1. */
static int64_t differs(DType t, const void *want, const void *got, size_t bytes, double *w, double *g)
{
	int64_t n = (int64_t)(bytes / (size_t)(dtype_bits(t) / 8)), dim[1] = { n };
	Arena a = { 0 };
	Tensor *x = same(&a, t, 1, dim, want), *y = same(&a, t, 1, dim, got);
	int64_t at = -1;
	for (int64_t i = 0; i < n && at < 0; i++) {
		*w = tensor_get(x, i);
		*g = tensor_get(y, i);
		bool same = *w == *g || (isnan(*w) && isnan(*g)) ||
			(dtype_is_float(t) && fabs(*w - *g) <= 2e-5 * (1 + fabs(*w)));
		at = same ? -1 : i;
	}
	arena_free(&a);
	return at;
}

static int compare_all(void)
{
	FILE *list = fopen("list", "r");
	char line[512], file[256], name[256];
	int type;
	while (list && fgets(line, sizeof line, list)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "refused ", 8)) {
			char *why = strchr(line + 8, ' ');
			*why++ = 0;
			if (!refusal(line + 8))
				printf("not ok %s: %s\n", line + 8, why);
			continue;
		}
		if (sscanf(line, "%d %255s %255s", &type, file, name) != 3)
			die("the list is damaged");
		size_t nw, ng;
		double w = 0, g = 0;
		void *want = load("want", file, &nw), *got = load("got", file, &ng);
		int64_t at = nw == ng ? differs((DType)type, want, got, nw, &w, &g) : 0;
		if (nw != ng)
			printf("not ok %s: %s has %zu bytes, not %zu\n", name, file, ng, nw);
		else if (at >= 0)
			printf("not ok %s: element %lld of %s is %.9g, the evaluator says %.9g\n", name, (long long)at,
				file, g, w);
		else
			printf("ok %s\n", file);
		free(want);
		free(got);
	}
	return list ? fclose(list) : 1;
}

int main(int argc, char **argv)
{
	language_init();
	return argc > 1 && !strcmp(argv[1], "compare") ? compare_all() : make_all();
}
