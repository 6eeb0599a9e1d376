/* The memory plan as a table: buffers.c has the name, type, offset and bytes of every value that a step makes (those
 * that live from step to step stand in params.c).  A value that is updated in place is one with what it updates. */
#include "emit/emit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *values_type_word(DType t)
{
	switch (kernel_stored(t)) {
	case DT_FLOAT: return "F32";
	case DT_DOUBLE: return "F64";
	case DT_INT64: return "I64";
	case DT_INT32: return "I32";
	default: return "U8";
	}
}

const char *values_quoted(const char *escaped)
{
	Text t = { 0 };
	text_add(&t, "\"");
	for (const char *s = escaped; *s; s++)
		text_add(&t, *s == '\\' ? "\\\\" : "%c", *s);
	text_add(&t, "\"");
	return t.s;
}

const char *values_string(Arena *a, const char *name)
{
	return values_quoted(emit_comment(a, name));
}

void values_pack(Text *t, size_t *line, const char *item)
{
	size_t n = strlen(item);
	if (*line && *line + n + 1 > EMIT_COLUMNS) {
		text_add(t, "\n");
		*line = 0;
	}
	text_add(t, "%s%s", *line ? " " : "\t", item);
	*line += n + (*line ? 1 : 8);
}

void values_packed(Text *t)
{
	if (t->n && t->s[t->n - 1] == ',')
		t->s[--t->n] = 0;
	text_add(t, "\n");
}

/* The slot of which s is another state or a view, in the same memory; itself otherwise. */
static Slot *origin(Slot *s)
{
	for (;;) {
		Slot *older = s->view ? s->view : s->v->into ? slot_of(s->v->graph->model->plan, s->v->into) : NULL;
		if (!older || older->window != s->window || older->offset != s->offset || older->bytes != s->bytes ||
			older->copies != s->copies)
			return s;
		s = older;
	}
}

static int by_id(const void *a, const void *b)
{
	return (*(Slot *const *)a)->id - (*(Slot *const *)b)->id;
}

/* The slots of all programs, by id. */
static Slot **all_slots(const Emit *e, int *n)
{
	Slot **list = NULL;
	*n = 0;
	for (int k = 0; k < e->nprogram; k++)
		for (int i = 0; i < e->program[k].model->plan->nslot; i++)
			if (e->program[k].model->plan->slot[i])
				arena_push(e->tree.arena, list, *n, e->program[k].model->plan->slot[i]);
	if (*n)
		qsort(list, (size_t)*n, sizeof *list, by_id);
	return list;
}

/* Numbers values: first those that are kept, which stand in params.c, then all others.  What several programs keep has
 * one id. */
void values_number(Emit *e)
{
	int n;
	Slot **order = all_slots(e, &n), **row = arena_array(e->tree.arena, Slot *, n + 1);
	/* by id: 1 + the number */
	int *number = arena_array(e->tree.arena, int, n ? order[n - 1]->id + 1 : 1);
	e->nkept = e->plan->nkept;
	for (int i = 0; i < e->nkept; i++) {
		row[i] = e->plan->kept[i];
		number[row[i]->id] = i + 1;
	}
	e->nvalue = e->nkept;
	for (int i = 0; i < n; i++)
		if (origin(order[i]) == order[i]) {
			if (!number[order[i]->id]) {
				row[e->nvalue] = order[i];
				number[order[i]->id] = ++e->nvalue;
			}
			order[i]->entry = number[order[i]->id] - 1;
		}
	for (int i = 0; i < n; i++)
		order[i]->entry = origin(order[i])->entry;
	e->value = row;
}

static int most_values(const Emit *e)
{
	int most = 1;
	for (int k = 0; k < e->nprogram; k++) {
		const Plan *p = e->program[k].model->plan;
		for (int r = 0; r < p->nrole; r++)
			for (int i = 0; i < p->role[r].nstep; i++) {
				const Action *a = &p->role[r].step[i];
				most = a->nmake + a->ntake > most ? a->nmake + a->ntake : most;
			}
	}
	return most;
}

static void print_sizes(const Emit *e, Text *t, int n)
{
	const Plan *p = e->plan;
	text_add(t, "/* Bytes of one rank, by what they hold when most is in use:\n");
	for (int i = 0; i <= KEEP_ACT; i++)
		text_add(t, " *   %-11s %12" PRId64 "\n", emit_keep[i], p->layout.by[i]);
	text_add(t,
		" */\n#define SLAB_BYTES ((size_t)%" PRId64 ") /* private */\n#define WINDOW_BYTES "
		"((size_t)%" PRId64 ") /* read by other ranks */\n",
	         values_slab(e), values_window(e));
	text_add(t,
		"#define WORK_SHARED ((size_t)%" PRId64 ") /* scratch of kernels: of all threads together */\n#define "
		"WORK_EACH ((size_t)%" PRId64 ") /* and of each */\n",
	         e->work_shared, e->work_each);
	text_add(t,
		"#define NVALUE %d /* values that a step makes */\n#define MOST %d /* those of one action, at most "
		"*/\n", n ? n : 1, most_values(e));
	text_add(t,
		"#define NFORM %d /* ways in which values lie on ranks */\n#define NMOVE %d /* transfers between them "
		"*/\n#define NCHANNEL %d /* channels on which they are numbered */\n",
		e->nform, e->nmove, e->plan->channels->n);
}

/* Ranks of a mesh that are not consecutive: the name of a table of their own, before the forms; NULL: they are. */
static const char *ranks_of(const Emit *e, Text *tables, const char *name, const int *list, const Form *f)
{
	Arena *a = e->tree.arena;
	size_t line = 0;
	int same = 0;
	if (!f->rank)
		return NULL;
	while (e->plan->forms->form[list[same]].rank != f->rank)
		same++;
	if (f == &e->plan->forms->form[list[same]]) {
		text_add(tables, "static const int %s%d[] = {\n", name, same);
		for (int i = 0; i < form_nrank(f); i++)
			values_pack(tables, &line, arena_printf(a, "%d,", f->rank[i]));
		values_packed(tables);
		text_add(tables, "};\n");
	}
	return arena_printf(a, "%s%d", name, same);
}

static void print_form(Text *t, const Form *f, const char *ranks)
{
	static const char *const reduce[] = { [FORM_SUM] = "SUM", [FORM_MAX] = "MAX", [FORM_MIN] = "MIN",
		[FORM_PROD] = "PROD" };
	text_add(t, "\t{ .ndim = %d, .mesh = {", f->ndim);
	for (int k = 0; k < f->ndim; k++)
		text_add(t, "%s %d", k ? "," : "", f->mesh[k]);
	text_add(t, " }");
	if (f->first)
		text_add(t, ", .first = %d", f->first);
	if (ranks)
		text_add(t, ", .rank = %s", ranks);
	if (f->naxis)
		text_add(t, ", .naxis = %d, .dim = {", f->naxis);
	for (int a = 0; a < f->naxis; a++)
		text_add(t, "%s %" PRId64, a ? "," : "", f->dim[a]);
	text_add(t, "%s, .cut = {", f->naxis ? " }" : "");
	for (int k = 0; k < f->ndim; k++) {
		const FormCut *c = &f->cut[k];
		text_add(t, k ? ", " : " ");
		if (c->kind == FORM_B)
			text_add(t, "CUT_B");
		else if (c->kind == FORM_P)
			text_add(t, "CUT_P(%s)", reduce[c->reduce]);
		else if (c->reach)
			text_add(t, "CUT_REACH(%d, %" PRId64 ", %s)", c->axis, c->len, sbp_reach_text(c->reach));
		else
			text_add(t, "CUT_S(%d, %" PRId64 ", %" PRId64 ")", c->axis, c->len, c->inner);
	}
	text_add(t, " } },\n");
}

/* The rows of a table in braces; an empty one has a row of zeros. */
static const char *table(const Emit *e, const Text *rows)
{
	return rows->n ? arena_printf(e->tree.arena, "{\n%s};\n", rows->s) : "{ { 0 } };\n";
}

/* The table of forms, after tables of ranks, and those of transfers and channels. */
static void print_forms(Emit *e, Text *forms, Text *moves)
{
	Text rows = { 0 };
	const Channels *all = e->plan->channels;
	for (int i = 0; i < e->nform; i++) {
		const Form *f = &e->plan->forms->form[e->form[i]];
		print_form(&rows, f, ranks_of(e, forms, "ranks", e->form, f));
	}
	text_add(forms, "const Form forms[NFORM + 1] = %s", table(e, &rows));
	rows = (Text){ 0 };
	for (int i = 0; i < e->nmove; i++)
		text_add(&rows, "\t{ %d, %d, RT_%s, %d },\n", e->move[i].from, e->move[i].to,
			values_type_word(e->move[i].type), e->move[i].channel);
	text_add(moves, "const RtMove moves[NMOVE + 1] = %s", table(e, &rows));
	rows = (Text){ 0 };
	for (int i = 0; i < all->n; i++)
		text_add(&rows, "\t{ %d, %d },\n", calls_number(e, all->channel[i].from),
			calls_number(e, all->channel[i].to));
	text_add(moves, "const RtChannel channels[NCHANNEL + 1] = %s", table(e, &rows));
}

/* A float in the slab, as most are, or any value: where it lies, and its bytes. */
static const char *row_text(Emit *e, int i)
{
	Arena *a = e->tree.arena;
	const Slot *s = e->value[i];
	const char *bytes = arena_printf(a, "%" PRId64, s->bytes);
	const char *name = values_string(a, s->v->name), *type = values_type_word(s->v->type->elem);
	/* ranks hold less than the bytes that there are for it */
	int form = e->plan->nrole > 1 ? calls_form(e, s) : 0;
	if (s->copies > 1)
		return arena_printf(a, "R(%s, %s, %s, %" PRId64 ", %s, %d, %d),", name, type,
			s->window ? "true" : "false", s->offset, bytes, form, s->copies);
	if (form)
		return arena_printf(a, "C(%s, %s, %s, %" PRId64 ", %s, %d),", name, type, s->window ? "true" : "false",
			s->offset, bytes, form);
	if (!s->window && kernel_stored(s->v->type->elem) == DT_FLOAT)
		return arena_printf(a, "F(%s, %" PRId64 ", %s),", name, s->offset, bytes);
	return arena_printf(a, "%c(%s, %s, %" PRId64 ", %s),", s->window ? 'W' : 'S', name, type, s->offset, bytes);
}

/* ---- values in dumps of the trainer ---- */

typedef struct Shapes { int *form, n; } Shapes;

static int shape_number(const Emit *e, Shapes *s, int form)
{
	int i = 0;
	while (i < s->n && s->form[i] != form)
		i++;
	if (i == s->n)
		arena_push(e->tree.arena, s->form, s->n, form);
	return i;
}

static bool partial(const Emit *e, const Slot *s)
{
	const Form *f = slot_form(e->plan, s);
	bool any = false;
	for (int k = 0; k < f->ndim; k++)
		any |= f->cut[k].kind == FORM_P && f->mesh[k] > 1;
	return any;
}

/* The slot in which the value is not partial: itself, or the result of a transfer of it. */
static const Slot *settled(const Emit *e, const Graph *g, const Value *v)
{
	const Plan *p = e->program[0].model->plan;
	const Slot *s = slot_of(p, v), *to;
	for (int i = 0; s && partial(e, s) && i < g->nnode; i++)
		if (kernel_transfer(g->node[i]) && g->node[i]->in[0] == v &&
			(to = slot_of(p, g->node[i]->out[0])) != NULL && !partial(e, to))
			return to;
	return s;
}

/* Gradients that no row of the table of values names: of parameters that share one, that are a view of another value or
 * are summed up in place. */
static void print_gradients(const Emit *e, Shapes *shapes, Text *t)
{
	const Graph *g = e->program[0].model->graph;
	int n = 0;
	text_add(t, "const RtGradient gradients[] = {\n");
	for (int i = 0; i < g->ninit; i++) {
		const Value *p = g->init[i], *v = p->param ? params_gradient(g, p) : NULL;
		const Slot *s = v ? settled(e, g, v) : NULL;
		Name name = name_fmt("%s.grad", p->name);
		if (!s || (s->entry >= e->nkept && e->value[s->entry]->v->name == name))
			continue;
		text_add(t, "\t{ %s, RT_%s, %d, %d },\n", values_string(e->tree.arena, name),
			values_type_word(v->type->elem), s->entry, shape_number(e, shapes, s->form));
		n++;
	}
	text_add(t, n ? "};\nconst int ngradient = %d;\n" : "\t{ 0 }\n};\nconst int ngradient = %d;\n", n);
}

static const char *print_shapes(const Emit *e)
{
	Shapes shapes = { 0 };
	Text t = { 0 }, of = { 0 }, rows = { 0 }, gradients = { 0 };
	size_t line = 0;
	for (int i = e->nkept; i < e->nvalue; i++)
		values_pack(&of, &line, arena_printf(e->tree.arena, "%d,",
			shape_number(e, &shapes, e->value[i]->form)));
	if (e->nkept == e->nvalue)
		values_pack(&of, &line, "0");
	values_packed(&of);
	print_gradients(e, &shapes, &gradients);
	for (int i = 0; i < shapes.n; i++) {
		const Form *f = &e->plan->forms->form[shapes.form[i]];
		print_form(&rows, f, ranks_of(e, &t, "shape_ranks", shapes.form, f));
	}
	text_add(&t, "const Form shapes[] = {\n%s};\nconst int shape_of[NVALUE] = {\n%s};\n%s",
		rows.s ? rows.s : "\t{ 0 }\n", of.s, gradients.s);
	return t.s;
}

void values_write(Emit *e)
{
	Arena *a = e->tree.arena;
	Text sizes = { 0 }, values = { 0 }, forms = { 0 }, moves = { 0 };
	size_t line = 0;
	for (int i = e->nkept; i < e->nvalue; i++) {
		if (i == e->nkept || i % 50 == 0) {              /* so that a number is found */
			text_add(&values, "%s", line ? "\n" : "");
			line = 0;
			values_pack(&values, &line, arena_printf(a, "/* %d */", i));
		}
		values_pack(&values, &line, row_text(e, i));
	}
	if (e->nkept == e->nvalue)
		text_add(&values, "\t{ 0 }");
	values_packed(&values);
	print_forms(e, &forms, &moves);
	print_sizes(e, &sizes, e->nvalue - e->nkept);
	tree_fill(tree_file(&e->tree, "buffers.h"), "buffers.h", "banner", emit_banner(e, "The memory plan."), "sizes",
		sizes.s, NULL);
	tree_fill(tree_file(&e->tree, "buffers.c"), "buffers.c", "banner",
		emit_banner(e, "The memory plan: the offset and layout of every value."), "values",
	              values.s, "forms", forms.s, "moves", moves.s, "shapes", print_shapes(e), NULL);
}

int64_t values_slab(const Emit *e)
{
	int64_t n = 0;
	for (int i = 0; i < e->nprogram; i++)
		n = e->program[i].model->plan->layout.slab > n ? e->program[i].model->plan->layout.slab : n;
	return n;
}

int64_t values_window(const Emit *e)
{
	int64_t n = 0;
	for (int i = 0; i < e->nprogram; i++)
		n = e->program[i].model->plan->layout.window > n ? e->program[i].model->plan->layout.window : n;
	return n;
}
