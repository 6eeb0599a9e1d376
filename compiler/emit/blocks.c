/* blocks.c of a tree: a function for each sequence of actions that runs together, such as the forward pass of a layer.
 *
 *   int forward_layer(Ctx *c, const int *values)
 *   {
 *           union { void *t[9]; struct { float *n1, *up, *y; float *x, *norm_w, ...; }; } h;
 *           BIND(h, values);                        the addresses of the values, by their numbers
 *           DO(COMPUTE, "MatMul+Add", up, 1, 4.5e+08, k_matmul_f32(c, h.up, h.n1, h.up_w, ...));
 *           ...
 *
 * A function has a pointer for each value: first the results of its actions in their order, then what it reads besides.
 * A layer that repeats is one function, which is called in a loop with other values, and so is what several roles or
 * programs run: functions are compared by their text without names.  Names are those of the model, without the parts in
 * which the layers differ.  Two uses of a value have one pointer if they are one value in every repetition. */
#include "emit/emit.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static const char *const kind_name[] = { [ACT_LOAD] = "LOAD", [ACT_COMPUTE] = "COMPUTE",
	[ACT_COLLECTIVE] = "COLLECTIVE", [ACT_START] = "START", [ACT_FINISH] = "FINISH", [ACT_SAVE] = "SAVE" };

/* A use of a value by an action, as a result that exists after it or otherwise. */
typedef struct Use { bool made; int pointer; } Use;

/* The function that is written. */
typedef struct Fn {
	Emit *e;
	const Action *list;             /* of the role; the function begins at list[r.from] */
	const char *const *call;        /* of each action of the list (statement.c) */
	Repeat r;
	int rank;
	Use *use; int nuse, *first;     /* by action: its first use */
	const Slot **slot;              /* of each use, repetition after repetition */
	int *pointer, npointer;         /* by pointer: the use that it is named after */
	const char **name;              /* by pointer */
} Fn;

static const Slot *slot_at(const Fn *f, int turn, int use)
{
	return f->slot[turn * f->nuse + use];
}

/* Two uses are one value in every repetition. */
static bool same(const Fn *f, int a, int b)
{
	for (int turn = 0; turn < f->r.count; turn++)
		if (slot_at(f, turn, a)->entry != slot_at(f, turn, b)->entry)
			return false;
	return true;
}

/* The values of an action: results, then operands, without those that are left out. */
static int values_of(const Action *a, const Slot **out)
{
	int n = 0;
	for (int i = 0; i < a->nmake + a->ntake; i++) {
		const Slot *s = i < a->nmake ? a->make[i] : a->take[i - a->nmake];
		if (s && out)
			out[n] = s;
		n += s != NULL;
	}
	return n;
}

static void find_uses(Fn *f)
{
	Arena *a = f->e->tree.arena;
	const Repeat *r = &f->r;
	f->first = arena_array(a, int, r->period + 1);
	for (int k = 0; k < r->period; k++) {
		int n = values_of(&f->list[r->from + k], NULL), made = role_makes(&f->list[r->from + k]);
		f->first[k] = f->nuse;
		for (int i = 0; i < n; i++)
			arena_push(a, f->use, f->nuse, ((Use){ .made = i < made, .pointer = -1 }));
	}
	f->first[r->period] = f->nuse;
	f->slot = arena_array(a, const Slot *, (int64_t)r->count * f->nuse + 1);
	for (int k = 0; k < r->period * r->count; k++)
		values_of(&f->list[r->from + k], f->slot + k / r->period * f->nuse + f->first[k % r->period]);
}

/* Gives each result a pointer, then each other use that of the same value: the last result before it, a later one, what
 * was read before, or a new one. */
static void find_pointers(Fn *f)
{
	Arena *a = f->e->tree.arena;
	f->pointer = arena_array(a, int, f->nuse + 1);
	for (int i = 0; i < f->nuse; i++)
		if (f->use[i].made) {
			f->use[i].pointer = f->npointer;
			f->pointer[f->npointer++] = i;
		}
	for (int i = 0, before = 0; i < f->nuse; i++) {
		Use *u = &f->use[i];
		before += u->made;
		for (int k = before - 1; k >= 0 && u->pointer < 0; k--)
			u->pointer = same(f, i, f->pointer[k]) ? k : -1;
		for (int k = before; k < f->npointer && u->pointer < 0; k++)
			u->pointer = same(f, i, f->pointer[k]) ? k : -1;
		if (u->pointer < 0) {
			u->pointer = f->npointer;
			f->pointer[f->npointer++] = i;
		}
	}
}

static void find_names(Fn *f)
{
	Arena *a = f->e->tree.arena;
	Map taken;
	map_init(&taken, a);
	f->name = arena_array(a, const char *, f->npointer + 1);
	const char **each = arena_array(a, const char *, f->r.count);
	for (int k = 0; k < f->npointer; k++) {
		for (int turn = 0; turn < f->r.count; turn++)
			each[turn] = f->e->value[slot_at(f, turn, f->pointer[k])->entry]->v->name;
		f->name[k] = names_unique(a, &taken, names_c(a, names_common(a, each, f->r.count)));
	}
}

/* ---- text ---- */

/* The call of action k; its values are called h.NAME, or, for comparison, by their numbers. */
static const char *call_text(const Fn *f, int k, bool named)
{
	Arena *a = f->e->tree.arena;
	int n = f->first[k + 1] - f->first[k];
	const char **name = arena_array(a, const char *, n + 1);
	for (int i = 0; i < n; i++) {
		int p = f->use[f->first[k] + i].pointer;
		name[i] = named ? arena_printf(a, "h.%s", f->name[p]) : arena_printf(a, "%d", p);
	}
	return statement_named(f->call[f->r.from + k], name);
}

static void print_do(const Fn *f, Text *t, int k, bool named)
{
	const Action *a = &f->list[f->r.from + k];
	const char *call = call_text(f, k, named), *kind = kind_name[a->kind], *op = role_op(f->e, a);
	if (f->first[k] == f->first[k + 1]) {
		text_add(t, "\tDO_ALONE(%s, \"%s\", %s);\n", kind, op, call);
		return;
	}
	int p = f->use[f->first[k]].pointer;
	const char *name = named ? f->name[p] : arena_printf(f->e->tree.arena, "%d", p);
	text_add(t, "\tDO(%s, \"%s\", %s, %d, %.3g, %s);\n", kind, op, name, role_makes(a),
		schedule_flops(f->e->plan, a), call);
}

static const char *type_of(const Fn *f, int pointer)
{
	return kernel_ctype(slot_at(f, 0, f->pointer[pointer])->v->type->elem);
}

/* What two equal functions have in common: types, and the calls with numbers instead of names. */
static Name key_of(const Fn *f)
{
	Text t = { 0 };
	for (int k = 0; k < f->npointer; k++)
		text_add(&t, "%s ", type_of(f, k));
	for (int k = 0; k < f->r.period; k++)
		print_do(f, &t, k, false);
	return name_of(t.s);
}

static void print_union(const Fn *f, Text *t)
{
	const char *type = NULL;
	if (!f->npointer) {
		text_add(t, "\t(void)values;\n");
		return;
	}
	text_add(t, "\tunion {\n\t\tvoid *t[%d];\n\t\tstruct {\n", f->npointer);
	for (int k = 0; k < f->npointer; k++) {
		const char *next = type_of(f, k);
		if (type && !strcmp(type, next))
			text_add(t, ", *%s", f->name[k]);
		else
			text_add(t, "%s\t\t\t%s *%s", type ? ";\n" : "", next, f->name[k]);
		type = next;
	}
	text_add(t, ";\n\t\t};\n\t} h;\n\tBIND(h, values);\n");
}

/* The call of a function of the model that all actions come from; "": there is none. */
static const char *site_of(const Fn *f)
{
	const char *site = NULL;
	for (int k = 0; k < f->r.period; k++) {
		const Action *a = &f->list[f->r.from + k];
		const char *own = role_site(f->e, a);
		site = site ? site : own;
		if (a->n && strcmp(site, own))
			return "";
	}
	return site;
}

/* site: not said again */
static void print_comment(const Fn *f, Text *t, int k, const char *site)
{
	const Action *a = &f->list[f->r.from + k];
	Text about = { 0 };
	role_about(f->e, &about, a);
	const char *at = *site ? strstr(about.s, site) : NULL;
	text_add(t, "\t/* a%d %.*s%s", a->id, (int)(at ? at - about.s : (ptrdiff_t)about.n), about.s,
		at ? at + strlen(site) : "");
	if (a->n)
		text_add(t, "  %s", role_shape(f->e, slot_at(f, 0, f->first[k]), f->rank));
	text_add(t, " */\n");
}

static void print_function(const Fn *f, Text *t, const char *name, int role)
{
	const Repeat *r = &f->r;
	const char *of = emit_program(f->e);
	const char *site = site_of(f);
	int from = f->list[r->from].id, to = f->list[r->from + r->period * r->count - 1].id;
	if (r->count > 1)
		text_add(t, "\n/* One of %d equal layers, a%d to a%d of role %d (%s).  Comments describe the first "
			"one%s%s. */\n", r->count, from, to, role, of, *site ? "," : "", site);
	else if (from < to)
		text_add(t, "\n/* a%d to a%d of role %d (%s)%s. */\n", from, to, role, of, site);
	else
		text_add(t, "\n/* a%d of role %d (%s)%s. */\n", from, role, of, site);
	text_add(t, "int %s(Ctx *c, const int *values)\n{\n", name);
	print_union(f, t);
	for (int k = 0; k < r->period; k++) {
		print_comment(f, t, k, site);
		print_do(f, t, k, true);
	}
	text_add(t, "\treturn 0;\n}\n");
}

/* "forward_layer"; of actions that do not repeat, by the last value that they make: "forward_logits". */
static const char *name_of_function(const Fn *f, const char *phase)
{
	Arena *a = f->e->tree.arena;
	const char *last = "";
	for (int k = 0; k < f->npointer; k++)
		if (!*last || f->use[f->pointer[k]].made)
			last = f->name[k];
	const char *name = arena_printf(a, "%s_%s", phase, f->r.count > 1 ? "layer" : *last ? last : "nothing");
	return names_unique(a, &f->e->blocks.taken, arena_printf(a, "%.40s", name));
}

/* The numbers of the values of one repetition. */
static int *numbers_of(const Fn *f, int turn)
{
	int *v = arena_array(f->e->tree.arena, int, f->npointer + 1);
	for (int k = 0; k < f->npointer; k++)
		v[k] = slot_at(f, turn, f->pointer[k])->entry;
	return v;
}

static Fn new_fn(Emit *e, const Role *own, const Repeat *r, const char *const *call)
{
	Fn f = { .e = e, .list = own->step, .call = call, .r = *r, .rank = own->rank[0] };
	if (!e->blocks.bykey.arena) {
		map_init(&e->blocks.bykey, e->tree.arena);
		map_init(&e->blocks.taken, e->tree.arena);
	}
	find_uses(&f);
	find_pointers(&f);
	return f;
}

bool blocks_has(Emit *e, const Role *own, const Repeat *r, const char *const *call)
{
	const Fn f = new_fn(e, own, r, call);
	return map_get(&e->blocks.bykey, key_of(&f)) != NULL;
}

BlockCall blocks_add(Emit *e, const Role *own, const Repeat *r, const char *const *call, const char *phase)
{
	Arena *a = e->tree.arena;
	Blocks *b = &e->blocks;
	Fn f = new_fn(e, own, r, call);
	Name key = key_of(&f);
	const char *name = map_get(&b->bykey, key);
	if (!name) {
		find_names(&f);
		name = name_of_function(&f, phase);
		map_put(&b->bykey, key, (void *)name);
		print_function(&f, &b->functions, name, own->id);
		arena_push(a, b->name, b->nname, name);
	}
	BlockCall out = { .function = name, .count = r->count, .nvalue = f.npointer,
		.value = arena_array(a, int *, r->count) };
	for (int turn = 0; turn < r->count; turn++)
		out.value[turn] = numbers_of(&f, turn);
	return out;
}

void blocks_write(Emit *e)
{
	Blocks *b = &e->blocks;
	Text names = { 0 };
	text_raw(&names, "", 0);
	for (int i = 0; i < b->nname; i++)
		text_add(&names, "%s%s", i ? ", " : "BlockRun ", b->name[i]);
	text_add(&names, b->nname ? ";\n" : "");
	tree_fill(tree_file(&e->tree, "blocks.c"), "blocks.c", "banner",
		emit_banner(e, "What the ranks compute: a function for each sequence of actions that runs together."),
		"before", b->before.s ? b->before.s : "", "functions", b->functions.s ? b->functions.s : "", NULL);
	tree_fill(tree_file(&e->tree, "blocks.h"), "blocks.h", "banner", emit_banner(e, "The functions of blocks.c."),
		"names", names.s, NULL);
}
