/* The call of an action, as an expression of C over its values t[0], t[1], ...: results first, then operands.
 *
 * An action that takes several statements gets a function of its own, which is called; equal ones share it.  Literals
 * of structs with named fields, such as the shape of an attention, become constants with a name, each written once.
 * The text is the same for C and for CUDA. */
#include "emit/emit.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count(Slot *const *list, int n)
{
	int k = 0;
	for (int i = 0; i < n; i++)
		k += list[i] != NULL;
	return k;
}

const char *statement_param(const Print *p, const Slot *s, bool result)
{
	const Action *a = p->a;
	Slot *const *list = result ? a->make : a->take;
	int at = result ? 0 : count(a->make, a->nmake);
	for (int i = 0; i < (result ? a->nmake : a->ntake); i++) {
		if (list[i] == s)
			return arena_printf(p->e->tree.arena, "t[%d]", at);
		at += list[i] != NULL;
	}
	die("%s is no value of action a%d", s->v->name, a->id);
}

void statement_file(Emit *e, const char *file)
{
	Name f = name_of(file);
	for (int i = 0; i < e->nkernel; i++)
		if (e->kernel[i] == f)
			return;
	arena_push(e->tree.arena, e->kernel, e->nkernel, f);
}

/* Sums and counts of metrics, which are the outputs from `from` on. */
static void emit_metrics(const Print *p, int from)
{
	int n = p->e->g->nout;
	text_add(p->t, n > from ? ", (const float *const[]){" : ", NULL)");
	for (int i = from; i < n; i++)
		text_add(p->t, "%s %s", i > from ? "," : "", statement_param(p, p->a->take[i], false));
	text_add(p->t, n > from ? " })" : "");
}

/* A training step reports its loss as soon as it is computed; at its end the loss, the rate and the norm if they exist,
 * and metrics. */
static void emit_save(const Print *p)
{
	const Action *a = p->a;
	if (a->ntake == 1) {
		text_add(p->t, "rt_save_loss(c, %s)", statement_param(p, a->take[0], false));
		return;
	}
	text_add(p->t, "rt_save_step(c, %s", statement_param(p, a->take[0], false));
	for (int i = a->ntake - 2; i < a->ntake; i++)
		text_add(p->t, ", %s", a->take[i] ? statement_param(p, a->take[i], false) : "NULL");
	emit_metrics(p, 1);
}

/* The slot to which a product with an epilogue is written. */
static Slot *room_of(const Emit *e, const Action *a)
{
	Slot *own = slot_of(e->plan, a->host->out[0]);
	for (int i = 0; !own && i < a->nmake; i++)
		if (fuse_room(e->plan, a->make[i]->v))
			own = a->make[i];
	return own;
}

/* Shortens a body: the first call needs no "int code = 0; if (!code)", and a single call becomes "return call;". */
static const char *simpler(Arena *ar, const char *body)
{
	static const char *const begin[] = { "\tint code = 0;\n\tif (!code)\n\t\tcode = ",
		"\tint code = 0;\n\tcode = " }, *const end = ";\n\treturn code;\n";
	for (int i = 0; i < 2; i++) {
		const char *call = body + strlen(begin[i]), *stop = strstr(body, end);
		if (strncmp(body, begin[i], strlen(begin[i])))
			continue;
		if (strchr(call, '\n') == stop + 1)
			return arena_printf(ar, "\treturn %.*s;\n", (int)(stop - call), call);
		return arena_printf(ar, "\tint code = %s", call);
	}
	return body;
}

/* Whether a transfer from x to y reduces partial values. */
static bool sums(const Value *x, const Value *y)
{
	for (int k = 0; y && k < x->place->mesh->ndim; k++)
		if (x->sbp[k].kind == SBP_P && (x->place->mesh != y->place->mesh ||
			!sbp_equal(&x->sbp[k], &y->sbp[k], 1)))
			return true;
	return false;
}

/* Whether a kernel computes numbers of half precision without rounding them.  An epilogue rounds its results itself. */
static bool leaves_float(const Action *a, const Kernel *k, int i)
{
	static const char *const moves[] = { "gather", "gather_elements", "maxpool", NULL };
	const Slot *y = a->kind == ACT_START ? NULL : a->make[i];
	bool exact = k ? !strcmp(k->file, "copy") : !a->mate && (!a->how || !sums(a->take[i]->v, y ? y->v : NULL));
	for (int m = 0; k && moves[m]; m++)
		exact |= !strcmp(k->name, moves[m]);
	return y && !exact && !a->host && kernel_stored(y->v->type->elem) != y->v->type->elem;
}

static void round_results(Emit *e, int rank, const Print *p, const Kernel *k)
{
	for (int i = 0; i < p->a->nmake; i++) {
		const Slot *y = p->a->make[i];
		if (!leaves_float(p->a, k, i))
			continue;
		text_add(p->t, "\tif (!code)\n\t\tcode = k_round_%s(c, %s, %" PRId64 ");\n",
			y->v->type->elem == DT_BFLOAT16 ? "bf16" : "f16", statement_param(p, y, true),
		         slot_elements(e->plan, y, rank));
		statement_file(e, "round");
		e->halves = true;
	}
}

/* The shard node of this role. */
static Node *own_node(Emit *e, int rank, Node *n)
{
	const Plan *p = e->plan;
	Arena *a = e->tree.arena;
	Type **type = arena_array(a, Type *, n->nin + n->nout + 1);
	const int64_t **at = arena_array(a, const int64_t *, n->nin + n->nout + 1);
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Slot *t = slot_of(p, i < n->nin ? n->in[i] : n->out[i - n->nin]);
		Dim dim[NDIM_MAX];
		for (int k = 0; t && k < t->ndim; k++)
			dim[k] = slot_len(p, t, k, rank);
		type[i] = t ? type_tensor(a, t->v->type->elem, t->ndim, dim) : NULL;
		int64_t *from = arena_array(a, int64_t, FORM_AXES);
		at[i] = from;
		if (t)
			slot_begin(p, t, rank, from);
	}
	Node *shard = shard_node_of(n, type, type + n->nin, at, NULL, a);
	return shard ? shard : n;
}

/* Whether the shard of this role is empty though the value is not. */
static bool has_none(const Emit *e, int rank, const Slot *x)
{
	return x && e->plan->forms->most[x->form] && !slot_elements(e->plan, x, rank);
}

static const Sbp *term_of(const Value *v)
{
	for (int k = 0; k < v->place->mesh->ndim; k++)
		if (v->sbp[k].kind == SBP_P)
			return &v->sbp[k];
	return NULL;
}

/* The call for a rank with empty operands: its results are empty too, or partial and filled with the neutral element.
 * NULL: it computes. */
static const char *idle(Emit *e, int rank, const Action *a)
{
	static const char *const reduce[] = { [RED_SUM] = "SUM", [RED_MAX] = "MAX", [RED_MIN] = "MIN",
		[RED_PROD] = "PROD" };
	Arena *ar = e->tree.arena;
	Print p = { .e = e, .a = a };
	bool nothing = a->kind == ACT_COMPUTE && !a->how, lacks = false, any = false;
	const char *fill = "";
	for (int i = 0; i < a->ntake; i++)
		lacks |= has_none(e, rank, a->take[i]);
	const Node *n = a->host ? a->host : a->n;
	if (a->sums || (n && op_added(n) >= 0))
		lacks = false;                  /* the operand that is added may be the only one that is not empty */
	for (int i = 0; i < a->nmake && nothing; i++) {
		const Slot *y = a->make[i];
		if (!y)
			continue;
		any = true;
		if (has_none(e, rank, y))
			continue;
		const Sbp *term = lacks ? term_of(y->v) : NULL;
		nothing = term != NULL;
		if (term)
			fill = arena_printf(ar, "%srt_fill(%s, RT_%s, FORM_%s, %" PRId64 "), ", fill,
				statement_param(&p, y, true), values_type_word(y->v->type->elem), reduce[term->red],
				slot_elements(e->plan, y, rank));
	}
	return !nothing || !any ? NULL : *fill ? arena_printf(ar, "(%s0)", fill) : "0";
}

/* "t[0], t[1], t[2]": all values of an action. */
static const char *all_values(Arena *a, const Action *act)
{
	int n = count(act->make, act->nmake) + count(act->take, act->ntake);
	const char *s = "";
	for (int i = 0; i < n; i++)
		s = arena_printf(a, "%s%st[%d]", s, i ? ", " : "", i);
	return s;
}

/* An inference names its outputs by their indices: in a pipeline, each stage reports its own. */
static void emit_outputs(const Print *p)
{
	const Graph *g = p->e->g;
	int n = 0;
	text_add(p->t, "rt_save_outputs(c, (const int[]){");
	for (int i = 0; i < g->nout; i++)
		for (int k = 0; k < p->a->ntake; k++)
			if (p->a->take[k] && p->a->take[k] == slot_of(p->e->plan, g->out[i])) {
				text_add(p->t, "%s %d", n++ ? "," : "", i);
				break;
			}
	text_add(p->t, " }, %d)", n);
}

/* What is no kernel: loading, reporting, transfers. */
static void print_other(Print *p)
{
	const Action *a = p->a;
	if (a->kind == ACT_LOAD)
		text_add(p->t, "rt_load(c)");
	else if (a->kind != ACT_SAVE)
		calls_transfer(p);
	else if (p->e->now->kind == PROGRAM_STEP)
		emit_save(p);
	else if (p->e->now->kind == PROGRAM_INFER)
		emit_outputs(p);
	else {
		text_add(p->t, "rt_save_eval(c, %s, %s", statement_param(p, a->take[0], false),
			statement_param(p, a->take[1], false));
		emit_metrics(p, 2);
	}
}

/* The call of an action, or, if *several, the statements of a function that does it. */
static const char *call_of(Emit *e, int rank, const Action *a, bool *several)
{
	Arena *ar = e->tree.arena;
	Text t = { 0 };
	Slot *room[1] = { NULL };
	Print p = { .e = e, .t = &t, .a = a, .n = a->n, .take = a->take, .make = a->make, .rank = rank };
	const KernelPair *two = a->mate ? kernel_pair(a->mate, a->n) : NULL;
	const Kernel *k = a->n && !kernel_transfer(a->n) && !two ? kernel_of(a->host ? a->host : a->n) : NULL;
	if (a->sums) {
		squares_group(&p);
		return t.s;
	}
	if (a->host) {
		p.n = a->host;
		room[0] = room_of(e, a);
		p.make = room;
		p.epilogue = arena_printf(ar, "EPILOGUE(%s, %s)", pointwise_function(e, a, rank), all_values(ar, a));
	}
	p.whole = p.n;
	if (k && (p.n->row->fit || p.n->row->place))
		p.n = own_node(e, rank, p.n);
	bool rounds = false, parts = k && calls_of(k)->several;
	for (int i = 0; i < a->nmake; i++)
		rounds |= leaves_float(a, k, i);
	*several = parts || rounds;
	if (*several)
		text_add(&t, parts ? "\tint code = 0;\n" : "\tint code = ");
	if (two) {
		p.n = p.whole = a->mate;
		calls_of_pair(two)->print(&p);
		statement_file(e, two->file);
	} else if (k) {
		calls_of(k)->print(&p);
		statement_file(e, k->file);
	} else {
		print_other(&p);
	}
	if (!*several)
		return t.s;
	text_add(&t, parts ? "" : ";\n");
	round_results(e, rank, &p, k);
	text_add(&t, "\treturn code;\n");
	const char *body = parts ? simpler(ar, t.s) : t.s;
	*several = strncmp(body, "\treturn ", 8) != 0;
	return *several ? body : arena_printf(ar, "%.*s", (int)strlen(body) - 10, body + 8);
}

/* ---- constants ---- */

/* The position after the bracket that closes the one at s. */
static const char *closed(const char *s)
{
	int depth = 0;
	do
		depth += (*s == '{') - (*s == '}');
	while (*s && (s++, depth));
	return s;
}

/* Whether s begins a literal with named fields, such as (KAttention){ .batch = 8 }, that is the same in every call. */
static bool constant_at(const char *s, const char **open, const char **end)
{
	size_t n = !strncmp(s, "(K", 2) ? strspn(s + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") : 0;
	if (!n || strncmp(s + 1 + n, "){ .", 4))
		return false;
	*open = s + n + 2;
	*end = closed(*open);
	for (const char *p = *open; p < *end; p++)
		if (!strncmp(p, "t[", 2) || !strncmp(p, "rt_", 3) || !strncmp(p, "c->", 3) || !strncmp(p, "code", 4))
			return false;
	return true;
}

static const char *constant(Emit *e, const char *s, const char *open, const char *end)
{
	Arena *a = e->tree.arena;
	Name key = name_of(arena_printf(a, "%.*s", (int)(end - s), s));
	const char *known = map_get(&e->blocks.statement, key);
	if (known)
		return known;
	char *type = arena_printf(a, "%.*s", (int)(open - s - 2), s + 1), *name = arena_printf(a, "%s_%d", type + 1,
		e->blocks.nstatement++);
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	text_add(&e->blocks.before, "static const %s %s = %.*s;\n", type, name, (int)(end - open), open);
	map_put(&e->blocks.statement, key, name);
	return name;
}

/* The text with the names of its constants. */
static const char *with_constants(Emit *e, const char *s)
{
	Text t = { 0 };
	const char *open, *end;
	text_raw(&t, "", 0);
	while (*s) {
		bool is = constant_at(s, &open, &end);
		text_add(&t, is ? "%s" : "%.1s", is ? constant(e, s, open, end) : s);
		s = is ? end : s + 1;
	}
	return t.s;
}

/* ---- functions of single actions ---- */

/* Whether a text reads value number i, and the text in which it has a name. */
static bool reads(const char *text, int i)
{
	char word[16];
	snprintf(word, sizeof word, "t[%d]", i);
	return strstr(text, word) != NULL;
}

const char *statement_named(const char *text, const char *const *name)
{
	Text t = { 0 };
	text_raw(&t, "", 0);
	for (const char *s = text; *s;) {
		bool word = s > text && (isalnum((unsigned char)s[-1]) || s[-1] == '_');
		if (strncmp(s, "t[", 2) || word) {
			text_raw(&t, s++, 1);
			continue;
		}
		char *end;
		text_add(&t, "%s", name[strtol(s + 2, &end, 10)]);
		s = end + 1;
	}
	return t.s;
}

/* The call of a function with these statements: "split_3(c, t[0], t[1])". */
static const char *function(Emit *e, int rank, const Action *act, const char *body)
{
	Arena *a = e->tree.arena;
	int n = 0, nmake = count(act->make, act->nmake), all = nmake + count(act->take, act->ntake);
	const char **name = arena_array(a, const char *, all + 1), *params = "", *args = "";
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < (k ? act->ntake : act->nmake); i++) {
			const Slot *s = k ? act->take[i] : act->make[i];
			if (!s)
				continue;
			name[n] = arena_printf(a, "%c%d", k ? 'x' : 'y', k ? n - nmake : n);
			if (reads(body, n)) {
				params = arena_printf(a, "%s, %s *%s", params, kernel_ctype(s->v->type->elem), name[n]);
				args = arena_printf(a, "%s, t[%d]", args, n);
			}
			n++;
		}
	Name key = name_of(arena_printf(a, "%s\n%s", params, body));
	const char *known = map_get(&e->blocks.statement, key);
	if (!known) {
		const Kernel *k = kernel_of(act->host ? act->host : act->mate ? act->mate : act->n);
		known = arena_printf(a, "%s_%d", k ? k->name : "move", e->blocks.nstatement++);
		text_add(&e->blocks.before, "\n/* %s  %s */\nstatic int %s(Ctx *c%s)\n{\n%s}\n", role_op(e, act),
			role_shapes(e, act, rank), known, params, statement_named(body, name));
		map_put(&e->blocks.statement, key, (void *)known);
	}
	return arena_printf(a, "%s(c%s)", known, args);
}

const char *statement_of(Emit *e, const Action *a, int rank)
{
	Arena *ar = e->tree.arena;
	bool several = false;
	if (!e->blocks.statement.arena)
		map_init(&e->blocks.statement, ar);
	const char *call = idle(e, rank, a);
	if (!call && a->elementwise)
		return arena_printf(ar, "%s(c, ON(%s))", pointwise_function(e, a, rank), all_values(ar, a));
	if (!call)
		call = call_of(e, rank, a, &several);
	call = with_constants(e, call);
	return several ? function(e, rank, a, call) : call;
}
