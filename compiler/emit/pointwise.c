/* Pointwise operators: a loop for C and a kernel for CUDA, both written from the scalar expressions of the operators'
 * rows.
 *
 * All nodes of a group are one loop: operands are read, every node is a variable, results that others read are written
 * at the end, so that a result may lie on an operand.  The axes of the results are joined as far as every operand
 * allows, so most loops are flat; else the innermost axis is a loop inside of one over all others together, which are
 * the rows.  A scalar constant becomes a number in the text.  Two groups whose loops are the same text share one
 * function. */
#include "emit/emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pointwise {
	const char *name, *loop;        /* of the function, and of the one that has its loop */
	bool tile;                      /* an epilogue: called for each tile of a product */
	const char *c, *cuda, *launch;
} Pointwise;

/* grain: elements that are worth handing to another thread */
enum { AXES = 8, OPERANDS = 64, GRAIN = 16384 };

typedef struct Loop {
	int n;                          /* nested loops */
	int64_t len[AXES];
	int64_t stride[OPERANDS][AXES]; /* of each operand; 0 where it is broadcast */
} Loop;

/* The group that is printed. */
typedef struct Gen {
	Emit *e;
	const Action *act;
	int rank;
	Slot **take; int ntake;         /* operands of the loop, and the index of the first in t */
	int at;
	Loop l;
	bool cuda;
	bool comments;                  /* names of the model beside each line; without them texts are compared */
} Gen;

/* ---- loops ---- */

/* An epilogue has the last axis by itself: its columns. */
static Loop loops_of(const Gen *g)
{
	const Plan *p = g->e->plan;
	const Slot *y = g->act->make[0];
	Loop l = { 0 };
	int64_t stride[OPERANDS][AXES] = { { 0 } };
	if (g->ntake > OPERANDS)
		die("a loop over %d operands", g->ntake);
	for (int i = 0; i < g->ntake; i++) {
		const Slot *x = g->take[i];
		int64_t n = 1;
		for (int k = x->ndim - 1; k >= 0; k--) {
			int64_t len = slot_len(p, x, k, g->rank);
			stride[i][k + y->ndim - x->ndim] = len == 1 ? 0 : n;
			n *= len;
		}
	}
	for (int k = 0; k < y->ndim; k++) {
		int64_t len = slot_len(p, y, k, g->rank);
		bool last = g->act->host && k == y->ndim - 1, join = l.n > 0 && !last;
		if (len == 1 && !last)
			continue;
		for (int i = 0; i < g->ntake; i++)
			join = join && l.stride[i][l.n - 1] == stride[i][k] * len;
		if (join)
			l.len[l.n - 1] *= len;
		else
			l.len[l.n++] = len;
		for (int i = 0; i < g->ntake; i++)
			l.stride[i][l.n - 1] = stride[i][k];
	}
	return l;
}

static int64_t elements(const Loop *l, int from, int to)
{
	int64_t n = 1;
	for (int k = from; k < to; k++)
		n *= l->len[k];
	return n;
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

/* Where an operand is, when the first `loops` loops are at iteration `at` of all of them together: "r * 64", "r / 8
 * * 64 + r % 8". */
static const char *offset(Arena *a, const Loop *l, const int64_t *stride, int loops, const char *at)
{
	const char *s = NULL;
	int64_t inner = 1;
	for (int k = loops - 1, from; k >= 0; k = from - 1) {
		int64_t len = l->len[k];
		/* loops that move as one */
		for (from = k; from > 0 && stride[from - 1] == stride[from] * l->len[from]; from--)
			len *= l->len[from - 1];
		if (stride[k]) {
			const char *i = inner == 1 ? at : arena_printf(a, "%s / %" PRId64, at, inner);
			if (from > 0)
				i = arena_printf(a, "%s %% %" PRId64, i, len);
			if (stride[k] != 1)
				i = arena_printf(a, "%s * %" PRId64, i, stride[k]);
			s = s ? arena_printf(a, "%s + %s", i, s) : i;
		}
		inner *= len;
	}
	return s;
}

/* ---- expressions ---- */

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

/* The longest call that occurs again in s after its end; its length, or 0: there is none. */
static size_t repeated_call(const char *s, const char **call)
{
	size_t best = 0;
	for (const char *at = s, *open; (open = strchr(at, '(')) != NULL; at = open + 1) {
		const char *from = open, *to = open;
		while (from > s && (isalnum((unsigned char)from[-1]) || from[-1] == '_'))
			from--;
		int depth = 0;
		do
			depth += (*to == '(') - (*to == ')');
		while (*++to && depth);
		size_t n = (size_t)(to - from);
		if (from < open && n > best && memmem(to, strlen(to), from, n)) {
			best = n;
			*call = from;
		}
	}
	return best;
}

/* A long expression that repeats a call has a variable for it: "const float u2 = tanhf(x0[i]);". */
static const char *hoist(Text *t, const char *tabs, const char *type, int m, const char *s)
{
	const char *call;
	size_t n = strlen(s) + 8 * strlen(tabs) + 40 > EMIT_COLUMNS ? repeated_call(s, &call) : 0;
	if (!n)
		return s;
	Text out = { 0 };
	text_add(t, "%sconst %s u%d = %.*s;\n", tabs, type, m, (int)n, call);
	for (const char *at = s, *next; at; at = next ? next + n : NULL) {
		next = memmem(at, strlen(at), call, n);
		text_raw(&out, at, next ? (size_t)(next - at) : strlen(at));
		if (next)
			text_add(&out, "u%d", m);
	}
	return out.s;
}

static int taken(const Gen *g, const Slot *s)
{
	for (int i = 0; i < g->ntake; i++)
		if (g->take[i] == s)
			return i;
	return -1;
}

/* Which node before number m of the group makes v; -1: none. */
static int made(const Action *a, int m, const Value *v)
{
	for (int i = 0; i < m; i++)
		if (a->node[i]->out[0] == v)
			return i;
	return -1;
}

/* The type of a variable: a truth value is an int, which has the width of a float. */
static const char *var_type(DType t)
{
	return t == DT_BOOL ? "int" : kernel_ctype(t);
}

/* What stands before a result that is rounded to half precision. */
static const char *rounding(DType t)
{
	return t == DT_BFLOAT16 ? "e_bf16(" : t == DT_FLOAT16 ? "e_f16(" : "";
}

static void print_about(const Gen *g, Text *t, const Node *n)
{
	Arena *a = g->e->tree.arena;
	if (!g->comments)
		return;
	text_add(t, " /* %s = %s(", emit_comment(a, n->out[0]->name), emit_comment(a, n->op));
	for (int i = 0; i < n->nin; i++)
		text_add(t, "%s%s", i ? ", " : "", n->in[i] ? emit_comment(a, n->in[i]->name) : "");
	text_add(t, ") */");
}

/* Which result the product of a host is written to. */
static int host_room(const Gen *g)
{
	const Slot *own = slot_of(g->e->plan, g->act->host->out[0]);
	for (int i = 0; i < g->act->nmake; i++)
		if (own ? g->act->make[i] == own : fuse_room(g->e->plan, g->act->make[i]->v))
			return i;
	die("%s has no room for its product", g->act->host->op);
}

/* One element: a variable per node, then the results.  load[i] is the text that reads operand i; at is where results
 * stand. */
static void print_element(const Gen *g, Text *t, const char *tabs, const char *const *load, const char *at)
{
	Arena *a = g->e->tree.arena;
	const Action *act = g->act;
	for (int m = 0; m < act->nnode; m++) {
		Node *n = act->node[m];
		const char *arg[OPERANDS] = { 0 };
		if (n == act->host) {           /* the result of the product */
			const char *round = rounding(n->out[0]->type->elem);
			text_add(t, "%sconst float v%d = %sy%d[%s]%s;", tabs, m, round, host_room(g), at,
				*round ? ")" : "");
			g->e->halves |= *round != 0;
			print_about(g, t, n);
			text_add(t, "\n");
			continue;
		}
		DType ct = compute_type(n);
		if (n->nin > OPERANDS)
			die("%s of %d operands", n->op, n->nin);
		for (int i = 0; i < n->nin; i++) {
			if (!n->in[i])
				continue;
			Slot *s = slot_of(g->e->plan, n->in[i]);
			int from = made(act, m, n->in[i]), k = s ? taken(g, s) : -1;
			DType xt = n->in[i]->type->elem;
			if (from < 0 && !kernel_reads(n, i)) {
				arg[i] = kernel_literal(n->in[i]) ? literal(a, n->in[i]) : "0";   /* else: not used */
				continue;
			}
			arg[i] = from >= 0 ? arena_printf(a, "v%d", from) : load[k];
			if (kernel_stored(xt) != kernel_stored(ct) && xt != DT_BOOL)
				arg[i] = arena_printf(a, "(%s)%s", kernel_ctype(ct), arg[i]);
		}
		DType yt = n->out[0]->type->elem;
		const char *text = expression(a, n, arg, ct);
		if (dtype_is_float(ct))
			text = hoist(t, tabs, kernel_ctype(ct), m, text);
		if (yt == DT_BOOL && !strcmp(n->row->expr, "x"))        /* a cast: 0.5 is true */
			text_add(t, "%sconst int v%d = %s != 0;", tabs, m, text);
		else
			text_add(t, "%sconst %s v%d = %s(%s)%s%s;", tabs, var_type(yt), m, rounding(yt), var_type(yt),
				text, *rounding(yt) ? ")" : "");
		g->e->halves |= *rounding(yt) != 0;
		print_about(g, t, n);
		text_add(t, "\n");
	}
	for (int m = 0, y = 0; m < act->nnode; m++) {
		DType yt = act->node[m]->out[0]->type->elem;
		if (!slot_of(g->e->plan, act->node[m]->out[0]))
			continue;
		if (act->node[m] != act->host || *rounding(yt))
			text_add(t, yt == DT_BOOL ? "%sy%d[%s] = (uint8_t)v%d;\n" : "%sy%d[%s] = v%d;\n", tabs, y, at,
				m);
		y++;
	}
}

static const char *ctype_of(const Slot *s)
{
	return kernel_ctype(s->v->type->elem);
}

/* One more declaration, in a statement with those before it if the type is the same and the line does not become too
 * long: "const float *x0 = t[1], *x1 = t[2];" */
static void declare(Text *t, const char *tabs, const char **type, const char *want, const char *what)
{
	const char *line = *type ? strrchr(t->s, '\n') : NULL;
	size_t used = *type ? strlen(line ? line + 1 : t->s) + 7 * strlen(tabs) : 0;
	bool same = *type && !strcmp(*type, want) && used + strlen(what) + 3 <= EMIT_COLUMNS;
	if (same)
		text_add(t, ", %s", what);
	else
		text_add(t, "%s%s%s%s", *type ? ";\n" : "", tabs, want, what);
	*type = want;
}

/* Pointers to results and operands at a row (none: NULL) of a loop, and variables for operands that a row has one of.
 * load is filled with what reads an operand at iteration j of the innermost loop. */
static void print_pointers(const Gen *g, Text *t, const char *tabs, const char *row, const char *j, const char **load)
{
	Arena *a = g->e->tree.arena;
	const Action *act = g->act;
	const Loop *l = &g->l;
	const char *type = NULL;
	int outer = row ? l->n - 1 : 0;
	int64_t len = l->n ? l->len[l->n - 1] : 1;
	for (int i = 0; i < act->nmake; i++) {
		const char *c = ctype_of(act->make[i]);
		const char *at = row ? arena_printf(a, "(%s *)t[%d] + %s * %" PRId64, c, i, row, len) : arena_printf(a,
			"t[%d]", i);
		declare(t, tabs, &type, arena_printf(a, "%s ", c), arena_printf(a, "*y%d = %s", i, at));
	}
	for (int i = 0; i < g->ntake; i++) {
		const char *c = ctype_of(g->take[i]), *at = row ? offset(a, l, l->stride[i], outer, row) : NULL, *from;
		int64_t step = l->n ? l->stride[i][l->n - 1] : 0;
		int k = g->at + i;
		load[i] = step == 0 ? arena_printf(a, "x%d", i) : step == 1 ? arena_printf(a, "x%d[%s]", i,
			j) : arena_printf(a, "x%d[%s * %" PRId64 "]", i, j, step);
		if (step == 0)
			from = at ? arena_printf(a, "((const %s *)t[%d])[%s]", c, k, at) : arena_printf(a,
				"*(const %s *)t[%d]", c, k);
		else
			from = at ? arena_printf(a, "(const %s *)t[%d] + %s", c, k, at) : arena_printf(a, "t[%d]", k);
		declare(t, tabs, &type, arena_printf(a, "const %s ", c), arena_printf(a, "%sx%d = %s", step ? "*" : "",
			i, from));
	}
	text_add(t, ";\n");
}

/* The statements of a loop over a range of the group's elements, or of its rows. */
static const char *c_body(const Gen *g)
{
	Text t = { 0 };
	const char *load[OPERANDS] = { 0 };
	const Loop *l = &g->l;
	const char *each = "lo; r < hi";
	if (g->act->host) {
		each = "row; r < row + nrow";
	} else if (l->n < 2) {
		print_pointers(g, &t, "\t", NULL, "i", load);
		text_add(&t, "\tK_VECTOR\n\tfor (int64_t i = lo; i < hi; i++) {\n");
		print_element(g, &t, "\t\t", load, "i");
		text_add(&t, "\t}\n");
		return t.s;
	}
	text_add(&t, "\tfor (int64_t r = %s; r++) {\n", each);
	print_pointers(g, &t, "\t\t", "r", "i", load);
	if (g->act->host)
		text_add(&t, "\t\tK_VECTOR\n\t\tfor (int64_t i = col; i < col + ncol; i++) {\n");
	else
		text_add(&t, "\t\tK_VECTOR\n\t\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", l->len[l->n - 1]);
	print_element(g, &t, "\t\t\t", load, "i");
	text_add(&t, "\t\t}\n\t}\n");
	return t.s;
}

/* ---- CUDA ---- */

static const char *cuda_params(const Gen *g)
{
	Text t = { 0 };
	for (int i = 0; i < g->act->nmake; i++)
		text_add(&t, "%s%s *y%d", i ? ", " : "", ctype_of(g->act->make[i]), i);
	for (int i = 0; i < g->ntake; i++)
		text_add(&t, ", const %s *x%d", ctype_of(g->take[i]), i);
	return t.s;
}

static const char *cuda_body(const Gen *g)
{
	Arena *a = g->e->tree.arena;
	Text t = { 0 };
	const char *load[OPERANDS] = { 0 };
	for (int i = 0; i < g->ntake; i++) {
		const char *at = offset(a, &g->l, g->l.stride[i], g->l.n, "e");
		load[i] = arena_printf(a, "x%d[%s]", i, at ? at : "0");
	}
	text_add(&t, "\ti64 e = element();\n\tif (e >= %" PRId64 ")\n\t\treturn;\n", elements(&g->l, 0, g->l.n));
	print_element(g, &t, "\t", load, "e");
	return t.s;
}

/* ---- functions ---- */

static const char *ops_of(Arena *a, const Action *act)
{
	Text t = { 0 };
	for (int m = 0; m < act->nnode; m++)
		text_add(&t, "%s%s", m ? " " : "", emit_comment(a, act->node[m]->op));
	return t.s;
}

static const char *launcher(const Gen *g, const char *name)
{
	Arena *a = g->e->tree.arena;
	Text args = { 0 };
	int64_t n = elements(&g->l, 0, g->l.n);
	for (int i = 0; i < g->act->nmake + g->ntake; i++)
		text_add(&args, "%s(void *)&t[%d]", i ? ", " : "", i < g->act->nmake ? i : g->at + i - g->act->nmake);
	if (!g->act->host)
		return arena_printf(a,
			"\nint %s(Ctx *c, void *const *t)\n{\n\tvoid *args[] = { %s };\n\treturn rt_launch(c, "
			"\"g_%s\", rt_blocks(%" PRId64 "), 1, args);\n}\n",
		                    name, args.s, name, n);
	return arena_printf(a,
		"\nTILE(%s)\n{\n\tvoid *args[] = { %s };\n\trt_launch(c, \"g_%s\", "
		"rt_blocks(%" PRId64 "), 1, args);\n}\n", name, args.s, name, n);
}

/* The iterations that threads share, rows or elements, and how many of them are worth a thread. */
static const char *turns(const Gen *g)
{
	const Loop *l = &g->l;
	int64_t inner = l->n > 1 ? l->len[l->n - 1] : 1, count = elements(l, 0, l->n) / (inner ? inner : 1),
		grain = GRAIN / (inner ? inner : 1);
	return arena_printf(g->e->tree.arena, "%" PRId64 ", %" PRId64, count, grain > 1 ? grain : 1);
}

/* "pw3_add_gelu", "ep4_add": the first operators of a loop, or of an epilogue behind its product. */
static const char *name_of_loop(const Emit *e, const Action *act)
{
	Arena *a = e->tree.arena;
	char *name = arena_printf(a, act->host ? "ep%d" : "pw%d", e->npw);
	for (int i = 0, n = 0; i < act->nnode && n < 3; i++)
		if (act->node[i] != act->host) {
			name = arena_printf(a, "%s_%.16s", name, names_c(a, act->node[i]->op));
			n++;
		}
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	return name;
}

const char *pointwise_function(Emit *e, const Action *act, int rank)
{
	Arena *a = e->tree.arena;
	int first = act->host ? act->host->nin : 0, at = act->nmake;
	for (int i = 0; i < first; i++)
		at += act->take[i] != NULL;
	Gen g = { .e = e, .act = act, .rank = rank, .take = act->take + first, .ntake = act->ntake - first, .at = at };
	g.l = loops_of(&g);
	const char *body = arena_printf(a, "%s%s", act->host ? "tile\n" : "", c_body(&g)),
		*run = act->host ? "" : turns(&g), *key = arena_printf(a, "%s\n%s", run, body);
	if (!e->pwbyname.arena)
		map_init(&e->pwbyname, a);
	const char *known = map_get(&e->pwbyname, name_of(key)), *loop = map_get(&e->pwbyname, name_of(body));
	if (known)
		return known;
	const char *name = name_of_loop(e, act);
	const char *ops = ops_of(a, act), *shapes = role_shapes(e, act, rank);
	const char *about = arena_printf(a, "/* %s%s%s */", ops,
		strlen(ops) + strlen(shapes) + 8 <= EMIT_COLUMNS ? "  " : "\n * ", shapes);
	Pointwise p = { 0 };
	g.comments = true;
	p.c = "";
	if (!loop) {                            /* functions of other lengths share the loop */
		loop = name;
		map_put(&e->pwbyname, name_of(body), (void *)name);
		p.c = arena_printf(a, "\n%s\n%s(%s)\n{\n%s}\n", about, act->host ? "TILE" : "RANGE", name, c_body(&g));
	}
	if (!act->host)
		p.c = arena_printf(a, "%sRUN(%s, %s, %s)\n", p.c, name, loop, run);
	p.loop = loop;
	p.tile = act->host != NULL;
	p.name = name;
	g.cuda = true;
	p.cuda = arena_printf(a, "%s\nKERNEL g_%s(%s)\n{\n%s}\n\n", about, name, cuda_params(&g), cuda_body(&g));
	p.launch = launcher(&g, name);
	arena_push(a, e->pw, e->npw, p);
	map_put(&e->pwbyname, name_of(key), (void *)name);
	return name;
}

/* "KLoopRun pw0_add, pw1_mul;": the loops, or the epilogues, which work on tiles. */
static void print_prototypes(const Emit *e, Text *t, bool tile, const char *type)
{
	size_t line = 0;
	for (int i = 0; i < e->npw; i++) {
		const char *name = e->pw[i].name;
		if (e->pw[i].tile != tile)
			continue;
		bool more = line && line + strlen(name) + 3 <= EMIT_COLUMNS;
		if (!more)
			line = 0;
		size_t n = t->n;
		text_add(t, more ? ", %s" : "%s%s %s", more ? name : n ? ";\n" : "", type, name);
		line += t->n - n;
	}
}

/* kernels/: the pointwise functions of this model and the files of the library that it uses. */
void pointwise_write(Emit *e)
{
	Text proto = { 0 }, c = { 0 }, cuda = { 0 }, launch = { 0 }, inc = { 0 };
	text_raw(&proto, "", 0), text_raw(&c, "", 0), text_raw(&cuda, "", 0), text_raw(&launch, "", 0),
		text_raw(&inc, "", 0);
	for (int i = 0; i < e->npw; i++) {
		for (int k = i; !strcmp(e->pw[i].loop, e->pw[i].name) && k < e->npw; k++)
			if (!strcmp(e->pw[k].loop, e->pw[i].loop))      /* a loop, then all that run it */
				text_add(&c, "%s", e->pw[k].c);
		text_add(&cuda, "%s", e->pw[i].cuda);
		text_add(&launch, "%s", e->pw[i].launch);
	}
	print_prototypes(e, &proto, false, "KLoopRun");
	print_prototypes(e, &proto, true, "KTileRun");
	text_add(&proto, proto.n ? ";\n" : "");
	const char *what = emit_banner(e, "Pointwise operators of this model, each with its shape.");
	bool gpu = e->target == TARGET_CUDA;
	tree_copy(&e->tree, "kernels/kernels.h", "kernels.h");
	tree_headers(&e->tree, "kernels.h");
	tree_fill(tree_file(&e->tree, "kernels/pointwise.h"), "pointwise.h", "banner", what, "prototypes", proto.s,
		NULL);
	const char *halves = e->halves ? "\n#include \"halves.h\"\n" : "";
	tree_fill(tree_file(&e->tree, "kernels/expr.h"), "expr.h", "functions", arena_printf(e->tree.arena, "%s%s",
		expr_prelude, halves), NULL);
	if (e->halves)
		tree_copy(&e->tree, "kernels/halves.h", "halves.h");
	for (int i = 0; i < e->nkernel; i++) {
		if (!gpu) {
			tree_kernel(&e->tree, e->kernel[i]);
			continue;
		}
		const char *file = arena_printf(e->tree.arena, "%s.cu", e->kernel[i]);
		tree_copy(&e->tree, arena_printf(e->tree.arena, "kernels/%s", file), file);
		tree_headers(&e->tree, file);
		text_add(&inc, "#include \"%s\"\n", file);
	}
	if (gpu) {
		cuda_emit(e, inc.s, cuda.s, launch.s);
	} else {
		tree_copy(&e->tree, "kernels/isa.h", "isa.h");
		tree_copy(&e->tree, "kernels/loops.h", "loops.h");
		tree_copy(&e->tree, "kernels/fastmath.h", "fastmath.h");
		tree_fill(tree_file(&e->tree, "kernels/pointwise.c"), "pointwise.c", "banner", what, "functions", c.s,
			NULL);
	}
}
