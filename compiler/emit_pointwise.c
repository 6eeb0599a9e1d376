/* Pointwise operators: a loop for C and a kernel for CUDA, both written from the scalar expression of the operator's row.
 *
 * The axes of the result are joined as far as every operand allows, so most loops are flat.  A scalar constant becomes a
 * number in the text.  Two nodes whose loops are the same text share one function. */
#include "compiler.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pointwise { const char *c, *cuda, *launch, *proto; } Pointwise;

enum { AXES = 8, OPERANDS = 32 };

typedef struct Loop {
	int n;                          /* nested loops */
	int64_t len[AXES];
	int64_t stride[OPERANDS][AXES]; /* of each operand; 0 where it is broadcast */
} Loop;

bool emit_literal(const Value *v)
{
	return v && v->data && !v->param && type_elements(v->type) == 1 && (dtype_is_float(v->type->elem) || dtype_is_int(v->type->elem) || v->type->elem == DT_BOOL);
}

static Loop loops_of(const Plan *p, const Action *a, int rank)
{
	const Slot *y = a->make[0];
	Loop l = { 0 };
	int64_t stride[OPERANDS][AXES] = { { 0 } };
	for (int i = 0; i < a->ntake; i++) {
		const Slot *x = a->take[i];
		int64_t n = 1;
		for (int k = x ? x->rank - 1 : -1; k >= 0; k--) {
			int64_t len = slot_len(p, x, k, rank);
			stride[i][k + y->rank - x->rank] = len == 1 ? 0 : n;
			n *= len;
		}
	}
	for (int k = 0; k < y->rank; k++) {
		int64_t len = slot_len(p, y, k, rank);
		bool join = l.n > 0;
		if (len == 1)
			continue;
		for (int i = 0; i < a->ntake; i++)
			join = join && (!a->take[i] || l.stride[i][l.n - 1] == stride[i][k] * len);
		if (join)
			l.len[l.n - 1] *= len;
		else
			l.len[l.n++] = len;
		for (int i = 0; i < a->ntake; i++)
			l.stride[i][l.n - 1] = stride[i][k];
	}
	return l;
}

static const char *literal(Arena *a, const Value *v)
{
	DType t = v->type->elem;
	if (!dtype_is_float(t))
		return arena_printf(a, "%" PRId64, tensor_int(v->data, 0));
	double d = tensor_get(v->data, 0);
	if (isnan(d) || isinf(d))
		return isnan(d) ? "NAN" : d < 0 ? "(-INFINITY)" : "INFINITY";
	char *s = arena_printf(a, t == DT_DOUBLE ? "%.17g" : "%.9g", d);
	s = arena_printf(a, "%s%s%s", s, strpbrk(s, ".e") ? "" : ".0", t == DT_DOUBLE ? "" : "f");
	return d < 0 ? arena_printf(a, "(%s)", s) : s;
}

/* "i * 128 + j" */
static const char *place(Arena *a, const Loop *l, const int64_t *stride)
{
	static const char *const var[] = { "i", "j", "k", "l", "m", "n", "o", "p" };
	const char *s = NULL;
	for (int k = 0; k < l->n; k++) {
		if (!stride[k])
			continue;
		const char *term = stride[k] == 1 ? var[k] : arena_printf(a, "%s * %" PRId64, var[k], stride[k]);
		s = s ? arena_printf(a, "%s + %s", s, term) : term;
	}
	return s ? s : "0";
}

/* The type in which the expression is computed: that of the first operand that is not bool, else of the result. */
static DType compute_type(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && n->in[i]->type->elem != DT_BOOL)
			return dtype_is_float(n->in[i]->type->elem) ? n->in[i]->type->elem : DT_INT64;
	return dtype_is_float(n->out[0]->type->elem) ? n->out[0]->type->elem : DT_INT64;
}

static const char *expression(Arena *a, Node *n, const char *const *arg, DType t)
{
	char *s = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&s, &len);
	if (!f)
		die("out of memory");
	expr_print_c(f, expr_of(n), arg, t);
	fclose(f);
	const char *r = arena_printf(a, "%s", s);
	free(s);
	return r;
}

/* Pointers: the result y, then the operands that are read.  For C they are taken from t, for CUDA they are parameters. */
static const char *pointers(Arena *a, const Action *act, const char *const *names, bool cuda)
{
	const char *s = arena_printf(a, cuda ? "%s *y" : "\t%s *y = t[0];\n", emit_ctype(act->make[0]->v->type->elem));
	for (int i = 0, k = 1; i < act->ntake; i++)
		if (act->take[i])
			s = cuda ? arena_printf(a, "%s, const %s *%s", s, emit_ctype(act->take[i]->v->type->elem), names[i])
			         : arena_printf(a, "%s\tconst %s *%s = t[%d];\n", s, emit_ctype(act->take[i]->v->type->elem), names[i], k++);
	return s;
}

/* The first axis runs from lo to hi, so that threads share it; the innermost is the one that becomes vector code.  A result
 * may lie exactly on an operand, never across one. */
static const char *c_body(Arena *a, const Loop *l, const char *y, const char *value)
{
	static const char *const var[] = { "i", "j", "k", "l", "m", "n", "o", "p" };
	static const char tabs[] = "\t\t\t\t\t\t\t\t\t";
	Text t = { 0 };
	int n = l->n ? l->n : 1;
	for (int k = 0; k < n; k++) {
		const char *v = var[k];
		text_add(&t, "%.*s%s", k + 1, tabs, k == n - 1 ? "K_VECTOR " : "");
		if (k == 0)
			text_add(&t, "for (int64_t %s = lo; %s < hi; %s++)\n", v, v, v);
		else
			text_add(&t, "for (int64_t %s = 0; %s < %" PRId64 "; %s++)\n", v, v, l->len[k], v);
	}
	text_add(&t, "%.*sy[%s] = %s;\n", n + 1, tabs, y, value);
	return arena_printf(a, "%s", t.s);
}

static const char *cuda_body(Arena *a, const Loop *l, int64_t total, const char *value)
{
	static const char *const var[] = { "i", "j", "k", "l", "m", "n", "o", "p" };
	Text t = { 0 };
	text_add(&t, "\ti64 e = element();\n\tif (e >= %" PRId64 ")\n\t\treturn;\n", total);
	int64_t inner = total;
	for (int k = 0; k < l->n; k++) {
		inner /= l->len[k] ? l->len[k] : 1;
		if (!strstr(value, arena_printf(a, "%s", var[k])))
			continue;
		if (k == 0 && inner == 1)
			text_add(&t, "\ti64 %s = e;\n", var[k]);
		else if (k == 0)
			text_add(&t, "\ti64 %s = e / %" PRId64 ";\n", var[k], inner);
		else if (inner == 1)
			text_add(&t, "\ti64 %s = e %% %" PRId64 ";\n", var[k], l->len[k]);
		else
			text_add(&t, "\ti64 %s = e / %" PRId64 " %% %" PRId64 ";\n", var[k], inner, l->len[k]);
		text_add(&t, "\t(void)%s;\n", var[k]);
	}
	text_add(&t, "\ty[e] = %s;\n", value);
	return arena_printf(a, "%s", t.s);
}

/* The name of the function for this action; made when no other has the same text. */
static const char *function(Emit *e, const Action *act, const Loop *l, const char *const *names, const char *value, int rank)
{
	Arena *a = e->tree.arena;
	int64_t dense[AXES] = { 0 }, total = 1;
	for (int k = l->n - 1; k >= 0; k--) {
		dense[k] = total;
		total *= l->len[k];
	}
	int64_t first = l->n ? l->len[0] : 1, each = first ? total / first : 0;
	const char *run = arena_printf(a, "%" PRId64 ", %" PRId64, first, 1 + 16384 / (each + 1));
	const char *body = arena_printf(a, "%s%s", pointers(a, act, names, false), c_body(a, l, place(a, l, dense), value));
	if (!e->pwbyname.arena)
		map_init(&e->pwbyname, a);
	Name key = name_of(arena_printf(a, "%s %s", run, body));
	const char *known = map_get(&e->pwbyname, key);
	if (known)
		return known;
	char *name = arena_printf(a, "pw%d", e->npw);
	Pointwise p = { 0 };
	const char *about = arena_printf(a, "/* %s  %s */", emit_comment(a, act->n->op), emit_shapes(e, act, rank));
	p.proto = arena_printf(a, "int %s(Ctx *c, void *const *t);\n", name);
	p.c = arena_printf(a, "%s\nLOOP(%s)\n{\n%s}\nRUN(%s, %s)\n\n", about, name, body, name, run);
	p.cuda = arena_printf(a, "%s\nKERNEL g_%s(%s)\n{\n%s}\n\n", about, name, pointers(a, act, names, true), cuda_body(a, l, total, value));
	Text args = { 0 };
	text_add(&args, "(void *)&t[0]");
	for (int i = 0, k = 1; i < act->ntake; i++)
		if (act->take[i])
			text_add(&args, ", (void *)&t[%d]", k++);
	p.launch = arena_printf(a, "int %s(Ctx *c, void *const *t)\n{\n\tvoid *args[] = { %s };\n\treturn rt_launch(c, \"g_%s\", rt_blocks(%" PRId64 "), 1, args);\n}\n\n", name,
	                        args.s, name, total);
	arena_push(a, e->pw, e->npw, p);
	map_put(&e->pwbyname, key, name);
	return name;
}

const char *emit_pointwise(Emit *e, const Action *act, int rank)
{
	Arena *a = e->tree.arena;
	Node *n = act->n;
	Loop l = loops_of(e->plan, act, rank);
	DType ct = compute_type(n);
	const char *names[OPERANDS] = { 0 }, *arg[OPERANDS] = { 0 };
	for (int i = 0; i < n->nin; i++) {
		names[i] = arena_printf(a, "x%d", i);
		if (!n->in[i])
			continue;
		if (!act->take[i]) {
			arg[i] = emit_literal(n->in[i]) ? literal(a, n->in[i]) : "0";   /* else: not used */
			continue;
		}
		DType xt = n->in[i]->type->elem;
		arg[i] = arena_printf(a, "%s%s[%s]", xt == ct || xt == DT_BOOL ? "" : arena_printf(a, "(%s)", emit_ctype(ct)), names[i], place(a, &l, l.stride[i]));
	}
	const char *value = arena_printf(a, "(%s)%s", emit_ctype(n->out[0]->type->elem), expression(a, n, arg, ct));
	return function(e, act, &l, names, value, rank);
}

/* kernels/: the pointwise functions of this model and the files of the library that it uses. */
void emit_kernels(Emit *e)
{
	Text proto = { 0 }, c = { 0 }, cuda = { 0 }, launch = { 0 }, inc = { 0 };
	text_raw(&proto, "", 0), text_raw(&c, "", 0), text_raw(&cuda, "", 0), text_raw(&launch, "", 0), text_raw(&inc, "", 0);
	for (int i = 0; i < e->npw; i++) {
		text_add(&proto, "%s", e->pw[i].proto);
		text_add(&c, "%s", e->pw[i].c);
		text_add(&cuda, "%s", e->pw[i].cuda);
		text_add(&launch, "%s", e->pw[i].launch);
	}
	const char *what = emit_banner(e, "Pointwise operators of this model, each with its shape.");
	bool gpu = e->target == TARGET_CUDA;
	tree_copy(&e->tree, "kernels/kernels.h", "kernels.h");
	template_fill(tree_file(&e->tree, "kernels/pointwise.h"), "pointwise.h", "banner", what, "prototypes", proto.s, NULL);
	template_fill(tree_file(&e->tree, "kernels/expr.h"), "expr.h", "functions", expr_prelude, NULL);
	for (int i = 0; i < e->nkernel; i++) {
		if (!gpu) {
			tree_kernel(&e->tree, e->kernel[i]);
			continue;
		}
		const char *file = arena_printf(e->tree.arena, "%s.cu", e->kernel[i]);
		tree_copy(&e->tree, arena_printf(e->tree.arena, "kernels/%s", file), file);
		text_add(&inc, "#include \"%s\"\n", file);
	}
	if (gpu)
		emit_cuda(e, inc.s, cuda.s, launch.s);
	else {
		tree_copy(&e->tree, "kernels/isa.h", "isa.h");
		tree_copy(&e->tree, "kernels/fastmath.h", "fastmath.h");
		template_fill(tree_file(&e->tree, "kernels/pointwise.c"), "pointwise.c", "banner", what, "functions", c.s, NULL);
	}
}
