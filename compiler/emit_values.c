/* The memory plan as a table: buffers.h has the size of every value as a constant, by which schedules check their calls;
 * buffers.c its name, type and offset.  A value that is updated in place is one entry with what it updates. */
#include "compiler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 140 };                   /* columns that rows of a table are packed into */

static const char *type_word(DType t)
{
	switch (t) {
	case DT_FLOAT: return "F32";
	case DT_DOUBLE: return "F64";
	case DT_INT64: return "I64";
	case DT_INT32: return "I32";
	default: return "U8";
	}
}

/* A name of the model as a string of C: whatever is not plain in octal, which ends by itself. */
static const char *quoted(Arena *a, const char *name)
{
	size_t n = strlen(name);
	char *out = arena_array(a, char, 4 * n + 3), *o = out;
	*o++ = '"';
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];
		if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("_.:/-", c)))
			*o++ = (char)c;
		else
			o += sprintf(o, "\\%03o", c);
	}
	*o++ = '"';
	*o = 0;
	return out;
}

void emit_pack(Text *t, size_t *line, const char *item)
{
	size_t n = strlen(item);
	if (*line && *line + n + 1 > WIDTH) {
		text_add(t, "\n");
		*line = 0;
	}
	text_add(t, "%s%s", *line ? " " : "\t", item);
	*line += n + (*line ? 1 : 8);
}

/* What a slot is another state or another shape of, at the same place; itself otherwise. */
static Slot *origin(Slot *s)
{
	for (;;) {
		Slot *older = s->view ? s->view : s->v->into ? plan_slot(s->v->graph->model->plan, s->v->into) : NULL;
		if (!older || older->window != s->window || older->offset != s->offset || older->bytes != s->bytes)
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
	for (int k = 0; k < e->npart; k++)
		for (int i = 0; i < e->part[k]->plan->nslot; i++)
			if (e->part[k]->plan->slot[i])
				arena_push(e->tree.arena, list, *n, e->part[k]->plan->slot[i]);
	if (*n)
		qsort(list, (size_t)*n, sizeof *list, by_id);
	return list;
}

/* Numbers the entries of the table.  What several programs keep has one id, and is one entry. */
static Slot **number(Emit *e, int *count)
{
	int n, nrow = 0;
	Slot **order = all_slots(e, &n), **row = arena_array(e->tree.arena, Slot *, n + 1);
	for (int i = 0; i < n; i++)
		if (origin(order[i]) == order[i]) {
			if (!nrow || row[nrow - 1]->id != order[i]->id)
				row[nrow++] = order[i];
			order[i]->entry = nrow - 1;
		}
	for (int i = 0; i < n; i++)
		order[i]->entry = origin(order[i])->entry;
	*count = nrow;
	return row;
}

static int most_values(const Emit *e)
{
	int most = 1;
	for (int k = 0; k < e->npart; k++) {
		const Plan *p = e->part[k]->plan;
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
	text_add(t, " */\n#define SLAB_BYTES   ((size_t)%" PRId64 ")      /* private */\n#define WINDOW_BYTES ((size_t)%" PRId64 ")      /* read by other ranks */\n",
	         emit_slab(e), emit_window(e));
	text_add(t, "enum { NVALUE = %d, MOST = %d };      /* entries of the table; values of one action, at most */\n", n, most_values(e));
}

void emit_values(Emit *e)
{
	const Plan *p = e->plan;
	Arena *a = e->tree.arena;
	Text sizes = { 0 }, splits = { 0 }, bytes = { 0 }, values = { 0 };
	int n;
	size_t line = 0;
	Slot **row = number(e, &n);
	print_sizes(e, &sizes, n);
	for (int i = 0; i < p->nsplit; i++)
		text_add(&splits, "%s\tSPLIT%d = %d,      /* %" PRId64 " elements along mesh axis %d */\n%s", i ? "" : "enum {\n", i, i, p->split[i].n, p->split[i].meshdim,
		         i == p->nsplit - 1 ? "};\n" : "");
	for (int i = 0; i < n; i++)
		emit_pack(&bytes, &line, arena_printf(a, "T%d = %" PRId64 ",", i, row[i]->bytes));
	line = 0;
	for (int i = 0; i < n; i++)
		emit_pack(&values, &line, arena_printf(a, "%c(%d, %s, %s, %" PRId64 "),", row[i]->window ? 'W' : 'S', i, quoted(a, row[i]->v->name),
		                                     type_word(row[i]->v->type->elem), row[i]->offset));
	template_fill(tree_file(&e->tree, "buffers.h"), "buffers.h", "banner", emit_banner(e, "The memory plan."), "sizes", sizes.s, "splits", splits.s ? splits.s : "",
	              "bytes", arena_printf(a, "enum {\n%s\n};\n", bytes.s), NULL);
	template_fill(tree_file(&e->tree, "buffers.c"), "buffers.c", "banner", emit_banner(e, "The memory plan: where every value lies."), "values",
	              arena_printf(a, "%s\n", values.s), NULL);
}
