/* Scalar expressions: what a pointwise row computes, written once.
 *
 * The reference evaluator runs an expression on vectors of doubles or of 64-bit integers; the back ends print it as C
 * or CUDA.  One text serves every element type: on integers `/` truncates, `+ - *` wrap, and the type's own width is
 * applied when the result is stored.  Division by zero on integers gives 0, a shift by the width or more gives 0: data
 * is never able to stop a program.
 *
 *     expr  = or ["?" expr ":" expr]          both branches are computed, one is kept
 *     names = operands of the row, inf, nan; @attr is the value of an attribute; has(name) is 1 or 0 and decides a "?:"
 *             before the branches are looked at, so the other branch may name an operand that is not there
 *     f(x...) folds a function of two arguments over all operands of a variadic row; count(x) is how many there are
 *
 * An Expr is an array of nodes with operands before users: walking it in order is the evaluation, with a short
 * stack. */
#include "table.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
	E_NUM, E_ARG, E_NEG, E_NOT, E_COM,
	E_ADD, E_SUB, E_MUL, E_DIV, E_REM, E_SHL, E_SHR, E_BAND, E_BOR, E_BXOR,
	E_LT, E_LE, E_GT, E_GE, E_EQ, E_NE, E_AND, E_OR, E_SEL, E_CALL1, E_CALL2
} Kind;

typedef struct ENode {
	Kind kind;
	int a, b, c;                    /* children */
	int arg;                        /* E_ARG: which operand; calls: which function */
	double num;
} ENode;

struct Expr {
	Arena *arena;
	ENode *node; int nnode;         /* the last one is the root */
	bool fixed; /* no attribute, no has(), no variadic operand: the same for every node of a row */
};

enum { STACK = 24 };

/* The functions.  Names of C are used where C has the function; e_... are in expr_prelude. */
static double fn_sign(double x)
{
	return isnan(x) ? x : (x > 0) - (x < 0);
}

static double fn_isnan(double x)
{
	return isnan(x) != 0;
}

static double fn_isinf(double x)
{
	return isinf(x) != 0;
}

static double fn_min(double x, double y)
{
	return isnan(x) || x < y ? x : y;
}

static double fn_max(double x, double y)
{
	return isnan(x) || x > y ? x : y;
}

static double fn_sum(double x, double y)
{
	return x + y;
}

/* The remainder with the sign of the divisor. */
static double fn_mod(double x, double y)
{
	double r = fmod(x, y);
	return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static const struct Fn {
	const char *name;
	double (*f1)(double);
	double (*f2)(double, double);
	bool ours;                      /* printed as e_NAME */
} fns[] = {
	{ "exp", exp, NULL, false },     { "expm1", expm1, NULL, false }, { "log", log, NULL, false },
	{ "log1p", log1p, NULL, false }, { "sqrt", sqrt, NULL, false },   { "sin", sin, NULL, false },
	{ "cos", cos, NULL, false },     { "tan", tan, NULL, false },     { "asin", asin, NULL, false },
	{ "acos", acos, NULL, false },   { "atan", atan, NULL, false },   { "sinh", sinh, NULL, false },
	{ "cosh", cosh, NULL, false },   { "tanh", tanh, NULL, false },   { "asinh", asinh, NULL, false },
	{ "acosh", acosh, NULL, false }, { "atanh", atanh, NULL, false }, { "erf", erf, NULL, false },
	{ "floor", floor, NULL, false }, { "ceil", ceil, NULL, false },   { "rint", rint, NULL, false },
	{ "trunc", trunc, NULL, false }, { "abs", fabs, NULL, true },     { "sign", fn_sign, NULL, true },
	{ "isnan", fn_isnan, NULL, true }, { "isinf", fn_isinf, NULL, true },
	{ "min", NULL, fn_min, true },   { "max", NULL, fn_max, true },   { "sum", NULL, fn_sum, true },
	{ "mod", NULL, fn_mod, true },   { "fmod", NULL, fmod, true },    { "pow", NULL, pow, true },
	{ NULL, NULL, NULL, false },
};

/* Parsing. */
typedef struct Parser {
	Expr *e;
	const char *text, *p;
	const char *const *name; int nname;
	const Node *node;               /* for @attr, has and x...; NULL when parsed alone */
} Parser;

static _Noreturn void wrong(const Parser *s, const char *what)
{
	die("expression \"%s\": %s at \"%s\"", s->text, what, s->p);
}

static void skip(Parser *s)
{
	while (*s->p == ' ')
		s->p++;
}

/* Skips the operator when it is next and not the beginning of a longer one. */
static bool take(Parser *s, const char *op)
{
	size_t n = strlen(op);
	skip(s);
	if (strncmp(s->p, op, n) != 0)
		return false;
	char next = s->p[n];
	if (n == 1 && ((strchr("<>!=", *op) && next == '=') || (strchr("<>&|", *op) && next == *op)))
		return false;
	s->p += n;
	return true;
}

static void want(Parser *s, const char *op)
{
	if (!take(s, op))
		wrong(s, "unexpected text");
}

static int put(Parser *s, ENode n)
{
	arena_push(s->e->arena, s->e->node, s->e->nnode, n);
	return s->e->nnode - 1;
}

static int number(Parser *s, double v)
{
	return put(s, (ENode){ .kind = E_NUM, .num = v });
}

static int operand(Parser *s, int i)
{
	if (s->node && (i >= s->node->nin || !s->node->in[i]))
		wrong(s, "the operand is not given");
	return put(s, (ENode){ .kind = E_ARG, .arg = i });
}

static size_t word(Parser *s, const char **w)
{
	skip(s);
	*w = s->p;
	while (isalnum((unsigned char)*s->p) || *s->p == '_')
		s->p++;
	return (size_t)(s->p - *w);
}

static int operand_index(const Parser *s, const char *w, size_t n)
{
	for (int i = 0; i < s->nname; i++)
		if (strlen(s->name[i]) == n && memcmp(s->name[i], w, n) == 0)
			return i;
	return -1;
}

static int expression(Parser *s);

static int attribute(Parser *s)
{
	const char *w;
	size_t n = word(s, &w);
	if (!s->node)
		wrong(s, "an attribute without a node");
	s->e->fixed = false;
	Name name = name_n(w, n);
	const Attr *a = node_attr(s->node, name);
	const char *decl = s->node->row->attrs ? strstr(s->node->row->attrs, name_fmt("%s:int", name)) : NULL;
	if (a ? a->type == AT_INT : decl != NULL)
		return number(s, (double)attr_int(s->node, name));
	return number(s, attr_float(s->node, name));
}

/* is(attr, WORD): whether a string attribute has that value. */
static int is(Parser *s)
{
	const char *w, *v;
	want(s, "(");
	size_t n = word(s, &w);
	want(s, ",");
	size_t k = word(s, &v);
	want(s, ")");
	s->e->fixed = false;
	Name have = s->node ? attr_str(s->node, name_n(w, n)) : NULL;
	return number(s, have && have == name_n(v, k));
}

static int has(Parser *s)
{
	const char *w;
	want(s, "(");
	size_t n = word(s, &w);
	want(s, ")");
	int i = operand_index(s, w, n);
	s->e->fixed = false;
	return number(s, s->node && i >= 0 ? i < s->node->nin && s->node->in[i] != NULL : i >= 0);
}

/* Folds f over operands i to end - 1, as a balanced tree, whose depth is the logarithm of their number. */
static int fold(Parser *s, int f, int i, int end)
{
	if (end - i <= 1)
		return operand(s, i);
	int mid = i + (end - i + 1) / 2;
	int a = fold(s, f, i, mid), b = fold(s, f, mid, end);
	return put(s, (ENode){ .kind = E_CALL2, .arg = f, .a = a, .b = b });
}

static int call(Parser *s, int f)
{
	const char *w;
	want(s, "(");
	const char *back = s->p;
	size_t n = word(s, &w);
	int i = operand_index(s, w, n);
	if (i >= 0 && take(s, "...")) {
		want(s, ")");
		s->e->fixed = false;
		return fold(s, f, i, s->node ? s->node->nin : i + 1);
	}
	s->p = back;
	int a = expression(s);
	if (fns[f].f1) {
		want(s, ")");
		return put(s, (ENode){ .kind = E_CALL1, .arg = f, .a = a });
	}
	want(s, ",");
	int b = expression(s);
	want(s, ")");
	return put(s, (ENode){ .kind = E_CALL2, .arg = f, .a = a, .b = b });
}

static int primary(Parser *s)
{
	const char *w;
	skip(s);
	if (take(s, "(")) {
		int r = expression(s);
		want(s, ")");
		return r;
	}
	if (take(s, "@"))
		return attribute(s);
	if (isdigit((unsigned char)*s->p)) {
		char *end;
		double v = strtod(s->p, &end);
		s->p = end;
		return number(s, v);
	}
	size_t n = word(s, &w);
	if (n == 0)
		wrong(s, "an operand is missing");
	int i = operand_index(s, w, n);
	if (i >= 0)
		return operand(s, i);
	if (n == 3 && !memcmp(w, "inf", 3))
		return number(s, INFINITY);
	if (n == 3 && !memcmp(w, "nan", 3))
		return number(s, NAN);
	if (n == 3 && !memcmp(w, "has", 3))
		return has(s);
	if (n == 2 && !memcmp(w, "is", 2))
		return is(s);
	if (n == 5 && !memcmp(w, "count", 5)) {
		want(s, "(");
		n = word(s, &w);
		want(s, ")");
		s->e->fixed = false;
		return number(s, s->node ? s->node->nin - operand_index(s, w, n) : 1);
	}
	for (int f = 0; fns[f].name; f++)
		if (strlen(fns[f].name) == n && !memcmp(fns[f].name, w, n))
			return call(s, f);
	wrong(s, "unknown name");
}

static int unary(Parser *s)
{
	static const struct {
		const char *text;
		Kind kind;
	} ops[] = { { "-", E_NEG }, { "!", E_NOT }, { "~", E_COM } };
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (take(s, ops[i].text)) {
			int a = unary(s);
			return put(s, (ENode){ .kind = ops[i].kind, .a = a });
		}
	return primary(s);
}

/* Binary operators from the loosest to the tightest, as in C. */
static const struct { const char *text; Kind kind; int level; } binary_ops[] = {
	{ "||", E_OR, 0 },  { "&&", E_AND, 1 }, { "|", E_BOR, 2 },  { "^", E_BXOR, 3 }, { "&", E_BAND, 4 },
	{ "==", E_EQ, 5 },  { "!=", E_NE, 5 },  { "<=", E_LE, 6 },  { ">=", E_GE, 6 },  { "<", E_LT, 6 },
	{ ">", E_GT, 6 },   { "<<", E_SHL, 7 }, { ">>", E_SHR, 7 }, { "+", E_ADD, 8 },  { "-", E_SUB, 8 },
	{ "*", E_MUL, 9 },  { "/", E_DIV, 9 },  { "%", E_REM, 9 },
};
enum { NBINARY = sizeof binary_ops / sizeof *binary_ops, LEVELS = 10 };

static int binary(Parser *s, int level)
{
	if (level == LEVELS)
		return unary(s);
	int a = binary(s, level + 1);
	for (int i = 0; i < NBINARY; i++) {
		if (binary_ops[i].level != level || !take(s, binary_ops[i].text))
			continue;
		int b = binary(s, level + 1);
		a = put(s, (ENode){ .kind = binary_ops[i].kind, .a = a, .b = b });
		i = -1;
	}
	return a;
}

/* Skips one branch of a decided "?:", whose text may name missing operands. */
static void pass_over(Parser *s)
{
	int depth = 0, ask = 0;
	for (; *s->p; s->p++) {
		if (*s->p == '(')
			depth++;
		if (*s->p == ')' && depth-- == 0)
			return;
		if (depth == 0 && *s->p == ',')
			return;
		if (depth == 0 && *s->p == '?')
			ask++;
		if (depth == 0 && *s->p == ':' && ask-- == 0)
			return;
	}
}

static int expression(Parser *s)
{
	int c = binary(s, 0);
	if (!take(s, "?"))
		return c;
	ENode *n = &s->e->node[c];
	if (n->kind == E_NUM) {         /* decided now; the number is dropped: it is the last node */
		bool yes = n->num != 0;
		s->e->nnode = c;
		if (!yes)
			pass_over(s);
		int r = yes ? expression(s) : -1;
		want(s, ":");
		if (yes)
			pass_over(s);
		else
			r = expression(s);
		return r;
	}
	int a = expression(s);
	want(s, ":");
	int b = expression(s);
	return put(s, (ENode){ .kind = E_SEL, .a = c, .b = a, .c = b });
}

static Expr *parse(Arena *arena, const char *text, const char *const *names, int nnames, const Node *node)
{
	Expr *e = arena_new(arena, Expr);
	e->arena = arena;
	e->fixed = true;
	Parser s = { .e = e, .text = text, .p = text, .name = names, .nname = nnames, .node = node };
	expression(&s);
	skip(&s);
	if (*s.p)
		wrong(&s, "unexpected text");
	return e;
}

static Expr *expr_parse(const char *text, const char *const *names, int nnames)
{
	return parse(&arena_process, text, names, nnames, NULL);
}

Expr *expr_of(const Node *n)
{
	static Map cache;
	const Schema *schema = n->row->schema;
	if (!cache.arena)
		map_init(&cache, &arena_process);
	Expr *e = map_get(&cache, n->row);
	if (e)
		return e;
	const char **names = arena_array(n->graph->arena, const char *, schema->nin + 1);
	for (int i = 0; i < schema->nin; i++)
		names[i] = schema->in[i].name;
	e = parse(n->graph->arena, n->row->expr, names, schema->nin, n);
	if (!e->fixed)
		return e;
	e = expr_parse(n->row->expr, names, schema->nin);
	map_put(&cache, n->row, e);
	return e;
}

/* Running.  One loop per operator over a vector, so that the cost of decoding a node is shared by all elements. */
#define LOOP(T, what) do { for (int i = 0; i < n; i++) r[i] = (T)(what); } while (0)

static void step_float(const ENode *e, int n, const double *x, const double *y, const double *z, double *r)
{
	switch (e->kind) {
	case E_NUM: LOOP(double, e->num); break;
	case E_NEG: LOOP(double, -x[i]); break;
	case E_NOT: LOOP(double, x[i] == 0); break;
	case E_ADD: LOOP(double, x[i] + y[i]); break;
	case E_SUB: LOOP(double, x[i] - y[i]); break;
	case E_MUL: LOOP(double, x[i] * y[i]); break;
	case E_DIV: LOOP(double, x[i] / y[i]); break;
	case E_REM: LOOP(double, fmod(x[i], y[i])); break;
	case E_LT: LOOP(double, x[i] < y[i]); break;
	case E_LE: LOOP(double, x[i] <= y[i]); break;
	case E_GT: LOOP(double, x[i] > y[i]); break;
	case E_GE: LOOP(double, x[i] >= y[i]); break;
	case E_EQ: LOOP(double, x[i] == y[i]); break;
	case E_NE: LOOP(double, x[i] != y[i]); break;
	case E_AND: LOOP(double, x[i] != 0 && y[i] != 0); break;
	case E_OR: LOOP(double, x[i] != 0 || y[i] != 0); break;
	case E_SEL: LOOP(double, x[i] != 0 ? y[i] : z[i]); break;
	case E_CALL1: LOOP(double, fns[e->arg].f1(x[i])); break;
	case E_CALL2: LOOP(double, fns[e->arg].f2(x[i], y[i])); break;
	default: die("an expression uses bits of a floating-point number");
	}
}

static int64_t div_int(int64_t x, int64_t y)
{
	return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t rem_int(int64_t x, int64_t y)
{
	return y == 0 || y == -1 ? 0 : x % y;
}

static int64_t mod_int(int64_t x, int64_t y)
{
	int64_t r = rem_int(x, y);
	return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static uint64_t pow_uint(uint64_t x, uint64_t y)
{
	uint64_t r = 1;
	for (; y; y >>= 1, x *= x)
		if (y & 1)
			r *= x;
	return r;
}

static int64_t pow_int(int64_t x, int64_t y)
{
	if (y < 0)
		return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
	return (int64_t)pow_uint((uint64_t)x, (uint64_t)y);
}

static int64_t to_int(double v)
{
	return isnan(v)                     ? 0
	       : v >= 9223372036854775808.0 ? INT64_MAX
	       : v < -9223372036854775808.0 ? INT64_MIN
	                                    : (int64_t)v;
}

static int64_t call1_int(const struct Fn *f, int64_t x)
{
	const char *s = f->name;
	if (f->f1 == fabs)
		return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
	if (f->f1 == fn_sign)
		return (x > 0) - (x < 0);
	if (f->f1 == fn_isnan || f->f1 == fn_isinf)
		return 0;
	if (!strcmp(s, "floor") || !strcmp(s, "ceil") || !strcmp(s, "rint") || !strcmp(s, "trunc"))
		return x;
	return to_int(f->f1((double)x));
}

static int64_t call2_int(const struct Fn *f, int64_t x, int64_t y)
{
	if (f->f2 == fn_min)
		return x < y ? x : y;
	if (f->f2 == fn_max)
		return x > y ? x : y;
	if (f->f2 == fn_sum)
		return (int64_t)((uint64_t)x + (uint64_t)y);
	if (f->f2 == fn_mod)
		return mod_int(x, y);
	return f->f2 == fmod ? rem_int(x, y) : pow_int(x, y);
}

static uint64_t call2_uint(const struct Fn *f, uint64_t x, uint64_t y)
{
	if (f->f2 == fn_min)
		return x < y ? x : y;
	if (f->f2 == fn_max)
		return x > y ? x : y;
	if (f->f2 == fn_sum)
		return x + y;
	return f->f2 == pow ? pow_uint(x, y) : y ? x % y : 0;
}

/* Operators that are the same for signed and unsigned numbers: 1 when done. */
static bool step_bits(
	const ENode *e, int n, const uint64_t *x, const uint64_t *y, const uint64_t *z, uint64_t *r)
{
	switch (e->kind) {
	case E_NUM: LOOP(uint64_t, e->num < 0 ? (uint64_t)to_int(e->num) : (uint64_t)e->num); break;
	case E_NEG: LOOP(uint64_t, 0 - x[i]); break;
	case E_NOT: LOOP(uint64_t, x[i] == 0); break;
	case E_COM: LOOP(uint64_t, ~x[i]); break;
	case E_ADD: LOOP(uint64_t, x[i] + y[i]); break;
	case E_SUB: LOOP(uint64_t, x[i] - y[i]); break;
	case E_MUL: LOOP(uint64_t, x[i] * y[i]); break;
	case E_SHL: LOOP(uint64_t, y[i] < 64 ? x[i] << y[i] : 0); break;
	case E_BAND: LOOP(uint64_t, x[i] & y[i]); break;
	case E_BOR: LOOP(uint64_t, x[i] | y[i]); break;
	case E_BXOR: LOOP(uint64_t, x[i] ^ y[i]); break;
	case E_EQ: LOOP(uint64_t, x[i] == y[i]); break;
	case E_NE: LOOP(uint64_t, x[i] != y[i]); break;
	case E_AND: LOOP(uint64_t, x[i] && y[i]); break;
	case E_OR: LOOP(uint64_t, x[i] || y[i]); break;
	case E_SEL: LOOP(uint64_t, x[i] ? y[i] : z[i]); break;
	default: return false;
	}
	return true;
}

static void step_int(const ENode *e, int n, const int64_t *x, const int64_t *y, const int64_t *z, int64_t *r)
{
	if (step_bits(e, n, (const uint64_t *)x, (const uint64_t *)y, (const uint64_t *)z, (uint64_t *)r))
		return;
	switch (e->kind) {
	case E_DIV: LOOP(int64_t, div_int(x[i], y[i])); break;
	case E_REM: LOOP(int64_t, rem_int(x[i], y[i])); break;
	case E_SHR:
		LOOP(int64_t, (uint64_t)y[i] < 64 ? x[i] >> y[i] : -(int64_t)(x[i] < 0));
		break; /* the sign moves in */
	case E_LT: LOOP(int64_t, x[i] < y[i]); break;
	case E_LE: LOOP(int64_t, x[i] <= y[i]); break;
	case E_GT: LOOP(int64_t, x[i] > y[i]); break;
	case E_GE: LOOP(int64_t, x[i] >= y[i]); break;
	case E_CALL1: LOOP(int64_t, call1_int(&fns[e->arg], x[i])); break;
	case E_CALL2: LOOP(int64_t, call2_int(&fns[e->arg], x[i], y[i])); break;
	default: die("expression node %d on integers", (int)e->kind);
	}
}

static void step_uint(
	const ENode *e, int n, const uint64_t *x, const uint64_t *y, const uint64_t *z, uint64_t *r)
{
	if (step_bits(e, n, x, y, z, r))
		return;
	switch (e->kind) {
	case E_DIV: LOOP(uint64_t, y[i] ? x[i] / y[i] : 0); break;
	case E_REM: LOOP(uint64_t, y[i] ? x[i] % y[i] : 0); break;
	case E_SHR: LOOP(uint64_t, y[i] < 64 ? x[i] >> y[i] : 0); break;
	case E_LT: LOOP(uint64_t, x[i] < y[i]); break;
	case E_LE: LOOP(uint64_t, x[i] <= y[i]); break;
	case E_GT: LOOP(uint64_t, x[i] > y[i]); break;
	case E_GE: LOOP(uint64_t, x[i] >= y[i]); break;
	case E_CALL1:
		if (fns[e->arg].f1 == fabs)
			memcpy(r, x, (size_t)n * sizeof *r);
		else if (fns[e->arg].f1 == fn_sign)
			LOOP(uint64_t, x[i] != 0);
		else
			LOOP(uint64_t, call1_int(&fns[e->arg], (int64_t)x[i]));
		break;
	case E_CALL2: LOOP(uint64_t, call2_uint(&fns[e->arg], x[i], y[i])); break;
	default: die("expression node %d on integers", (int)e->kind);
	}
}

static int children(const ENode *e)
{
	switch (e->kind) {
	case E_NUM: case E_ARG: return 0;
	case E_NEG: case E_NOT: case E_COM: case E_CALL1: return 1;
	case E_SEL: return 3;
	default: return 2;
	}
}

void expr_run(const Expr *e, ExprMode mode, int n, const void *const *args, void *out)
{
	union { double d[EXPR_BLOCK]; int64_t i[EXPR_BLOCK]; uint64_t u[EXPR_BLOCK]; } buf[STACK];
	const void *at[STACK]; /* where the vector of each stack position is: buf, or an operand itself */
	int top = 0;
	for (int k = 0; k < e->nnode; k++) {
		const ENode *x = &e->node[k];
		if (top + 1 > STACK - 3)
			die("an expression is too deep");
		if (x->kind == E_ARG) {
			at[top++] = args[x->arg];
			continue;
		}
		int nc = children(x);
		top -= nc;
		const void *a = nc > 0 ? at[top] : NULL, *b = nc > 1 ? at[top + 1] : NULL,
			   *c = nc > 2 ? at[top + 2] : NULL;
		void *r = k == e->nnode - 1 ? out : (void *)&buf[top];
		if (mode == EXPR_FLOAT)
			step_float(x, n, a, b, c, r);
		else if (mode == EXPR_INT)
			step_int(x, n, a, b, c, r);
		else
			step_uint(x, n, a, b, c, r);
		at[top++] = r;
	}
	if (at[0] != out)
		memcpy(out, at[0], (size_t)n * 8);
}

/* Operands before users: a visitor that keeps a stack can evaluate the expression in another arithmetic. */
void expr_each(const Expr *e, void (*visit)(void *, const char *op, int operands, int arg, double num), void *ctx)
{
	static const char *const text[] = {
		[E_NUM] = "num", [E_ARG] = "arg", [E_NEG] = "neg", [E_NOT] = "!", [E_COM] = "~",
		[E_ADD] = "+", [E_SUB] = "-", [E_MUL] = "*", [E_DIV] = "/", [E_REM] = "%",
		[E_SHL] = "<<", [E_SHR] = ">>", [E_BAND] = "&", [E_BOR] = "|", [E_BXOR] = "^",
		[E_LT] = "<", [E_LE] = "<=", [E_GT] = ">", [E_GE] = ">=", [E_EQ] = "==", [E_NE] = "!=",
		[E_AND] = "&&", [E_OR] = "||", [E_SEL] = "?:",
	};
	for (int k = 0; k < e->nnode; k++) {
		const ENode *x = &e->node[k];
		bool call = x->kind == E_CALL1 || x->kind == E_CALL2;
		visit(ctx, call ? fns[x->arg].name : text[x->kind], children(x), x->arg, x->num);
	}
}

/* Printing.  EXPR_FN is "static inline" in C and "static __device__ inline" in CUDA; the text is the same. */
const char expr_prelude[] =
	"#define E_REAL(T, F) \\\n"
	"\tEXPR_FN T e_abs##F(T x) { return fabs##F(x); } \\\n"
	"\tEXPR_FN T e_sign##F(T x) { return x != x ? x : (T)((x > 0) - (x < 0)); } \\\n"
	"\tEXPR_FN int e_isnan##F(T x) { return x != x; } \\\n"
	"\tEXPR_FN int e_isinf##F(T x) { return x == (T)INFINITY || x == -(T)INFINITY; } \\\n"
	"\tEXPR_FN T e_min##F(T x, T y) { return x != x || x < y ? x : y; } \\\n"
	"\tEXPR_FN T e_max##F(T x, T y) { return x != x || x > y ? x : y; } \\\n"
	"\tEXPR_FN T e_sum##F(T x, T y) { return x + y; } \\\n"
	"\tEXPR_FN T e_fmod##F(T x, T y) { return fmod##F(x, y); } \\\n"
	"\tEXPR_FN T e_mod##F(T x, T y) { T r = fmod##F(x, y); return r != 0 && (r < 0) != (y < 0) ? r + y : r; } \\\n"
	"\tEXPR_FN T e_pow##F(T x, T y) { return y == 2 ? x * x : y == 1 ? x : pow##F(x, y); }\n"
	"#define E_INTEGER(T, F, BELOW) \\\n"
	"\tEXPR_FN T e_abs##F(T x) { return BELOW(x) ? (T)(0 - (uint64_t)x) : x; } \\\n"
	"\tEXPR_FN T e_sign##F(T x) { return BELOW(x) ? (T)-1 : (T)(x != 0); } \\\n"
	"\tEXPR_FN T e_isnan##F(T x) { return 0 * x; } \\\n"
	"\tEXPR_FN T e_isinf##F(T x) { return 0 * x; } \\\n"
	"\tEXPR_FN T e_min##F(T x, T y) { return x < y ? x : y; } \\\n"
	"\tEXPR_FN T e_max##F(T x, T y) { return x > y ? x : y; } \\\n"
	"\tEXPR_FN T e_sum##F(T x, T y) { return (T)((uint64_t)x + (uint64_t)y); } \\\n"
	"\tEXPR_FN T e_div##F(T x, T y) { return y == 0 ? 0 : BELOW(y) && y == (T)-1 ? (T)(0 - (uint64_t)x) : x / y; } "
	"\\\n"
	"\tEXPR_FN T e_fmod##F(T x, T y) { return y == 0 || (BELOW(y) && y == (T)-1) ? 0 : x % y; } \\\n"
	"\tEXPR_FN T e_mod##F(T x, T y) { T r = e_fmod##F(x, y); return r != 0 && BELOW(r) != BELOW(y) ? r + y : r; } "
	"\\\n"
	"\tEXPR_FN T e_shl##F(T x, T y) { return (uint64_t)y < 64 ? (T)((uint64_t)x << y) : 0; } \\\n"
	"\tEXPR_FN T e_shr##F(T x, T y) { return (uint64_t)y < 64 ? x >> y : BELOW(x) ? (T)-1 : 0; } \\\n"
	"\tEXPR_FN T e_pow##F(T x, T y) { \\\n"
	"\t\tif (BELOW(y)) return x == 1 ? 1 : x == (T)-1 ? (y % 2 ? (T)-1 : 1) : 0; \\\n"
	"\t\tuint64_t r = 1, b = (uint64_t)x; \\\n"
	"\t\tfor (; y; y /= 2, b *= b) if (y % 2) r *= b; \\\n"
	"\t\treturn (T)r; }\n"
	"#define E_BELOW(x) ((x) < 0)\n"
	"#define E_NEVER(x) 0\n"
	"E_REAL(float, f)\n"
	"E_REAL(double, )\n"
	"E_INTEGER(int64_t, _i, E_BELOW)\n"
	"E_INTEGER(uint64_t, _u, E_NEVER)\n";

typedef struct Printer {
	FILE *f;
	const Expr *e;
	const char *const *arg;
	bool real;
	const char *suffix;             /* of e_ functions: "f", "", "_i", "_u" */
	bool narrow;                    /* float: C's functions end in f */
	const char *type;
} Printer;

static void print_number(const Printer *p, double v)
{
	if (isnan(v))
		fprintf(p->f, "NAN");
	else if (isinf(v))
		fprintf(p->f, v < 0 ? "-INFINITY" : "INFINITY");
	else if (!p->real)
		fprintf(p->f, "%lld", (long long)to_int(v));
	else {
		char s[40];
		snprintf(s, sizeof s, p->narrow ? "%.9g" : "%.17g", v);
		fprintf(p->f, "%s%s%s", s, strpbrk(s, ".e") ? "" : ".0", p->narrow ? "f" : "");
	}
}

static void print_node(const Printer *p, int k);

static void print_two(const Printer *p, const char *open, const char *mid, const ENode *x)
{
	fprintf(p->f, "%s", open);
	print_node(p, x->a);
	fprintf(p->f, "%s", mid);
	print_node(p, x->b);
	fprintf(p->f, ")");
}

static void print_binary(const Printer *p, const ENode *x)
{
	const char *fn = x->kind == E_DIV   ? "div"
	                 : x->kind == E_SHL ? "shl"
	                 : x->kind == E_SHR ? "shr"
	                 : x->kind == E_REM ? "fmod"
	                                    : NULL;
	char text[32];
	if (fn && (!p->real || x->kind == E_REM)) {
		snprintf(text, sizeof text, "e_%s%s(", fn, p->suffix);
		print_two(p, text, ", ", x);
		return;
	}
	const char *op = "?";
	for (int i = 0; i < NBINARY; i++)
		if (binary_ops[i].kind == x->kind)
			op = binary_ops[i].text;
	if (!p->real &&
		(x->kind == E_ADD || x->kind == E_SUB || x->kind == E_MUL)) { /* wraps, never undefined */
		fprintf(p->f, "(%s)((uint64_t)", p->type);
		print_node(p, x->a);
		fprintf(p->f, " %s (uint64_t)", op);
		print_node(p, x->b);
		fprintf(p->f, ")");
		return;
	}
	snprintf(text, sizeof text, " %s ", op);
	print_two(p, "(", text, x);
}

static void print_node(const Printer *p, int k)
{
	const ENode *x = &p->e->node[k];
	switch (x->kind) {
	case E_NUM: print_number(p, x->num); return;
	case E_ARG: fprintf(p->f, "%s", p->arg[x->arg]); return;
	case E_NEG: case E_NOT: case E_COM:
		if (x->kind == E_NEG && !p->real)
			fprintf(p->f, "(%s)(0 - (uint64_t)", p->type);
		else
			fprintf(p->f, "(%c", x->kind == E_NEG ? '-' : x->kind == E_NOT ? '!' : '~');
		print_node(p, x->a);
		fprintf(p->f, ")");
		return;
	case E_SEL:
		fprintf(p->f, "(");
		print_node(p, x->a);
		fprintf(p->f, " ? ");
		print_node(p, x->b);
		fprintf(p->f, " : ");
		print_node(p, x->c);
		fprintf(p->f, ")");
		return;
	case E_CALL1: case E_CALL2: {
		const struct Fn *f = &fns[x->arg];
		if (f->ours)
			fprintf(p->f, "e_%s%s(", f->name, p->suffix);
		else
			fprintf(p->f, "%s%s(", f->name, p->narrow ? "f" : "");
		print_node(p, x->a);
		if (x->kind == E_CALL2) {
			fprintf(p->f, ", ");
			print_node(p, x->b);
		}
		fprintf(p->f, ")");
		return;
	}
	default: print_binary(p, x);
	}
}

bool expr_uses(const Expr *e, int arg)
{
	for (int k = 0; k < e->nnode; k++)
		if (e->node[k].kind == E_ARG && e->node[k].arg == arg)
			return true;
	return false;
}

void expr_print_c(FILE *f, const Expr *e, const char *const *args, DType t)
{
	bool real = dtype_is_float(t), uint = t == DT_UINT64;
	Printer p = { .f = f, .e = e, .arg = args, .real = real, .narrow = real && t != DT_DOUBLE };
	p.suffix = real ? (p.narrow ? "f" : "") : uint ? "_u" : "_i";
	p.type = uint ? "uint64_t" : "int64_t";
	print_node(&p, e->nnode - 1);
}
