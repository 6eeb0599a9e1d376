/* Writes a C program, also valid as C++, that holds every scalar expression of the table printed for float, double,
 * int64 and uint64, and compares each with what the evaluator computes on values that are easy to get wrong. */
#include "ir.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double reals[] = { 0, 1, -1, 2, 0.5, -2.5, 3.25, 100, -100, 1e-3, INFINITY, -INFINITY, NAN };
static const int64_t wholes[] = { 0, 1, -1, 2, 7, -7, 63, 64, 1000, INT64_MAX, INT64_MIN };
enum { NREAL = sizeof reals / sizeof *reals, NWHOLE = sizeof wholes / sizeof *wholes };

static int count;

static Node *node_for(Graph *g, const Op *op, const char *word)
{
	const Schema *s = op->schema;
	Node *n = graph_node(g, name_of(""), name_of(op->name), (Loc){ 0 });
	n->row = op;
	for (int i = 0; i < s->nin; i++)
		for (int k = 0; k < (s->in[i].variadic ? 3 : 1); k++)
			node_in(n, graph_fresh(g, "x"));
	for (int i = 0; i < s->nattr; i++)
		if (s->required[i] && s->attr[i].type == AT_STRING)
			node_attr_add(n, s->attr[i].name, AT_STRING)->u.s = name_of(word);
	return n;
}

static void print_real(double v)
{
	if (isnan(v))
		printf("NAN");
	else if (isinf(v))
		printf(v < 0 ? "-INFINITY" : "INFINITY");
	else
		printf("%.17g", v);
}

/* One function and its calls: the operands walk through the values with different strides. */
static void print_case(const Node *n, DType t)
{
	static const char *const args[] = { "a", "b", "c", "d" };
	const Expr *e = expr_of(n);
	bool real = dtype_is_float(t);
	const char *type = t == DT_FLOAT    ? "float"
	                   : t == DT_DOUBLE ? "double"
	                   : t == DT_INT64  ? "int64_t"
	                                    : "uint64_t";
	ExprMode mode = real ? EXPR_FLOAT : t == DT_INT64 ? EXPR_INT : EXPR_UINT;
	printf("static %s f%d(", type, count);
	for (int i = 0; i < n->nin; i++)
		printf("%s%s %s", i ? ", " : "", type, args[i]);
	printf(")\n{\n%s\treturn (%s)", n->nin ? "" : "\t", type);
	expr_print_c(stdout, e, args, t);
	printf(";\n}\n\nstatic void t%d(void)\n{\n", count);
	int many = real ? NREAL : NWHOLE, cases = n->nin > 1 ? many * many : many;
	for (int k = 0; k < cases; k++) {
		union { double d; int64_t i; } v[4], r;
		const void *at[4];
		printf("\tck_%s(\"%s\", %d, f%d(", type, n->op, k, count);
		for (int i = 0; i < n->nin; i++) {
			int pick = i == 0 ? k % many : i == 1 ? k / many : (k + i) % many;
			at[i] = &v[i];
			printf("%s", i ? ", " : "");
			if (real) {
				v[i].d = t == DT_FLOAT ? (float)reals[pick] : reals[pick];
				print_real(v[i].d);
			} else {
				v[i].i = wholes[pick];
				printf("(%s)%" PRIu64 "u", type, (uint64_t)v[i].i);
			}
		}
		expr_run(e, mode, 1, at, &r);
		printf("), ");
		if (real)
			print_real(r.d);
		else
			printf("(%s)%" PRIu64 "u", type, (uint64_t)r.i);
		printf(");\n");
	}
	printf("}\n\n");
	count++;
}

static void print_op(Graph *g, const Op *op)
{
	static const DType types[] = { DT_FLOAT, DT_DOUBLE, DT_INT64, DT_UINT64 };
	const char *e = op->expr;
	bool bits = strpbrk(e, "^~") || strstr(e, " & ") || strstr(e, " | ") || strstr(e, "<<") ||
	            strstr(e, ">>");
	char class = 'T';
	for (int i = 0; i < op->schema->nin; i++)
		if (op->schema->in[i].type[0] == 'F')
			class = 'F';
	for (int k = 0; k < 4; k++)
		for (int w = 0; w < (strstr(e, "is(") ? 2 : 1); w++)
			if (dtype_is_float(types[k]) ? !bits : class != 'F')
				print_case(node_for(g, op, w ? "RIGHT" : "LEFT"), types[k]);
}

int main(void)
{
	Model *m = model_new();
	Graph *g = m->graph = graph_new(m, NULL, name_of("expr"));
	language_init();
	puts("#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#define EXPR_FN static inline");
	fputs(expr_prelude, stdout);
	puts("static int bad;\n"
	     "static void ck_double(const char *op, int k, double x, double want)\n{\n"
	     "\tif (x == want || (x != x && want != want) || fabs(x - want) <= 1e-12 * fabs(want)) return;\n"
	     "\tprintf(\"not ok %s on double, case %d: %.17g, not %.17g\\n\", op, k, x, want);\n\tbad++;\n}\n\n"
	     "static void ck_float(const char *op, int k, float x, double want)\n{\n"
	     "\tfloat w = (float)want;\n"
	     "\tif (x == w || (x != x && w != w) || fabsf(x - w) <= 1e-4f * fabsf(w) + 1e-37f) return;\n"
	     "\tprintf(\"not ok %s on float, case %d: %.9g, not %.9g\\n\", op, k, x, w);\n\tbad++;\n}\n\n"
	     "static void ck_int64_t(const char *op, int k, int64_t x, int64_t want)\n{\n"
	     "\tif (x == want) return;\n"
	     "\tprintf(\"not ok %s on int64, case %d: %lld, not %lld\\n\", op, k, (long long)x, (long "
	     "long)want);\n\tbad++;\n}\n\n"
	     "static void ck_uint64_t(const char *op, int k, uint64_t x, uint64_t want)\n{\n"
	     "\tif (x == want) return;\n"
	     "\tprintf(\"not ok %s on uint64, case %d: %llu, not %llu\\n\", op, k, (unsigned long long)x, (unsigned "
	     "long long)want);\n\tbad++;\n}\n");
	for (int i = 0; i < op_count(); i++)
		if (op_at(i)->expr && op_at(i)->schema->nin > 0)
			print_op(g, op_at(i));
	puts("int main(void)\n{");
	for (int i = 0; i < count; i++)
		printf("\tt%d();\n", i);
	puts("\tif (!bad) puts(\"ok\");\n\treturn bad != 0;\n}");
	model_free(m);
	return 0;
}
