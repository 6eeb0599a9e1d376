/* role<N>/schedule.c of a tree: what the ranks of a role run, and in which order.
 *
 * A block (actor) of the role is a function that calls functions of blocks.c, in loops where layers repeat; tables say
 * with which values.  Behind the blocks stand the queues between stages, the actors, and the tasks of a step in their
 * order.  The text is the same for C and for CUDA. */
#include "emit/emit.h"

#include <inttypes.h>
#include <string.h>

enum { LISTED = 8 };                    /* of results or operands, that a comment lists */
enum { LONGEST = 100 };                 /* actions of a function */

typedef struct Sched {
	Emit *e;
	int rank;                       /* of the role: any has the same shapes */
	Text lists;
} Sched;

static int count(Slot *const *list, int n)
{
	int k = 0;
	for (int i = 0; i < n; i++)
		k += list[i] != NULL;
	return k;
}

int role_makes(const Action *a)
{
	return a->kind == ACT_START ? 0 : count(a->make, a->nmake);
}

const char *role_shape(const Emit *e, const Slot *s, int rank)
{
	Arena *a = e->tree.arena;
	const char *t = dtype_name(s->v->type->elem);
	for (int k = 0; k < s->ndim; k++)
		t = arena_printf(a, "%s%s%" PRId64 "%s", t, k ? ", " : "[", slot_len(e->plan, s, k, rank),
			k == s->ndim - 1 ? "]" : "");
	return t;
}

/* At most LISTED of a list, then how many more there are. */
static void print_shapes(const Emit *e, Text *t, const char *before, Slot *const *list, int n, int rank)
{
	int k = 0, all = count(list, n);
	for (int i = 0; i < n; i++)
		if (list[i] && (k++ < LISTED || all == LISTED + 1))
			text_add(t, "%s%s", k > 1 ? ", " : before, role_shape(e, list[i], rank));
	if (all > LISTED + 1)
		text_add(t, ", ... (%d more)", all - LISTED);
}

/* "float[32, 10] = float[32, 64], float[64, 10]" */
const char *role_shapes(const Emit *e, const Action *a, int rank)
{
	Text t = { 0 };
	text_raw(&t, "", 0);
	print_shapes(e, &t, "", a->make, a->nmake, rank);
	print_shapes(e, &t, t.n ? " = " : "", a->take, a->ntake, rank);
	return t.s;
}

/* "MatMul", "Add+Gelu", "Mul+..+Sub" */
const char *role_op(const Emit *e, const Action *a)
{
	Arena *ar = e->tree.arena;
	if (!a->n)
		return a->kind == ACT_LOAD ? "load" : "report";
	const char *t = emit_comment(ar, a->node[0]->op);
	for (int i = 1; i < a->nnode && a->nnode <= 3; i++)
		t = arena_printf(ar, "%s+%s", t, emit_comment(ar, a->node[i]->op));
	return a->nnode > 3 ? arena_printf(ar, "%s+..+%s", t, emit_comment(ar, a->n->op)) : t;
}

/* ---- tables ---- */

/* At most LISTED names of a list, then how many more there are; or their SBP, each after a blank. */
static void print_values(const Emit *e, Text *t, Slot *const *list, int n, bool sbp)
{
	int all = count(list, n), k = 0;
	for (int i = 0; i < n; i++) {
		const Value *v = list[i] ? list[i]->v : NULL;
		if (!v || (k++ >= LISTED && all > LISTED + 1))
			continue;
		text_add(t, sbp ? "%s " : k > 1 ? ", %s" : "%s", sbp ? sbp_text(v->sbp, v->place->mesh->ndim)
			: emit_comment(e->tree.arena, v->name));
	}
	if (all > LISTED + 1)
		text_add(t, sbp ? "... " : ", ... (%d more)", all - LISTED);
}

/* "up0 = MatMul(n2, h0.up.w)  B B -> B"; for a group, what it reads and writes as a whole.  One rank has no SBP. */
static void print_nodes(const Emit *e, Text *t, const Action *a)
{
	print_values(e, t, a->make, a->nmake, false);
	text_add(t, " = %s(", role_op(e, a));
	print_values(e, t, a->take, a->ntake, false);
	text_add(t, ")");
	if (e->plan->world->nrank == 1)
		return;
	text_add(t, "  ");
	print_values(e, t, a->take, a->ntake, true);
	text_add(t, "-> ");
	print_values(e, t, a->make, a->nmake, true);
	t->s[--t->n] = 0;                       /* the blank at the end */
}

void role_about(const Emit *e, Text *t, const Action *a)
{
	Arena *ar = e->tree.arena;
	if (a->n) {
		text_add(t, "%s  ", emit_from(ar, a->n));
		print_nodes(e, t, a);
	} else {
		text_add(t, "%s", role_op(e, a));
		for (int i = 0; i < a->nmake + a->ntake; i++) {
			const Slot *x = i < a->nmake ? a->make[i] : a->take[i - a->nmake];
			if (x)
				text_add(t, " %s", emit_comment(ar, x->v->name));
		}
	}
}

static bool has_task(const Role *r, int block)
{
	int i = 0;
	while (i < r->ntask && r->task[i].block != block)
		i++;
	return i < r->ntask;
}

/* Whether a role has an action in its list: what is of no node, if it runs its block. */
static bool does(const Role *r, const Action *a)
{
	return times_runs(a, r->rank[0]) && (a->n || has_task(r, a->block));
}

int role_before(const Role *r, int action)
{
	int n = 0;
	for (int i = 0; i < action; i++)
		n += does(r, &r->step[i]);
	return n;
}

/* An end of a queue that the ranks of a role have. */
typedef struct End { const Queue *q; bool sends; } End;

static End *ends_of(const Sched *s, int *n)
{
	const Plan *p = s->e->plan;
	End *list = NULL;
	*n = 0;
	for (int i = 0; i < p->nqueue; i++)
		for (int sends = 1; sends >= 0; sends--) {
			const Slot *x = sends ? p->queue[i].take[0] : p->queue[i].make[0];
			if (mesh_index(x->v->place->mesh, s->rank) >= 0)
				arena_push(s->e->tree.arena, list, *n, ((End){ &p->queue[i], sends }));
		}
	return list;
}

/* ", INTS(3, 4)", or, with the name of a field, ", USES(wait, 3, 4)" */
static void print_ints(Text *t, const char *field, const int *v, int n)
{
	text_add(t, field ? ", USES(%s, " : ", INTS(", field);
	for (int i = 0; i < n; i++)
		text_add(t, "%s%d", i ? ", " : "", v[i]);
	text_add(t, ")");
}

/* "x6 > stage 1": a name of the model, and what the compiler has added. */
const char *role_queue(const Emit *e, const Queue *q)
{
	Arena *a = e->tree.arena;
	const char *to = NULL, *at = q->name;
	while ((at = strstr(at, " > stage ")))
		to = at++;
	if (!to)
		return values_string(a, q->name);
	const char *of = emit_comment(a, arena_printf(a, "%.*s", (int)(to - q->name), q->name));
	return values_quoted(arena_printf(a, "%s%s", of, to));
}

static void print_end(const Sched *s, Text *t, const End *x)
{
	Emit *e = s->e;
	const Queue *q = x->q;
	int *v = arena_array(e->tree.arena, int, q->n + 1);
	text_add(t, "\t%s(%s, %d, %d", x->sends ? "SENDS" : "RECEIVES", role_queue(e, q), q->channel,
		x->sends ? q->out : q->in);
	for (int i = 0; i < q->n; i++)
		v[i] = calls_move(e, q->take[i], q->make[i], q->channel);
	print_ints(t, NULL, v, q->n);
	for (int i = 0; i < q->n; i++)
		v[i] = q->take[i]->entry;
	print_ints(t, NULL, v, q->n);
	for (int i = 0; i < q->n; i++)
		v[i] = q->make[i]->entry;
	print_ints(t, NULL, v, q->n);
	text_add(t, "),\n");
}

/* The queues of an actor: those of which it is the maker, the first reader or the last. */
typedef enum { END_WAIT, END_MAKE, END_GIVE } EndUse;
static void print_uses(const Sched *s, Text *t, EndUse use, int block, const End *end, int nend)
{
	static const char *const field[] = { [END_WAIT] = "wait", [END_MAKE] = "make", [END_GIVE] = "give" };
	int *v = arena_array(s->e->tree.arena, int, nend + 1), n = 0;
	for (int i = 0; i < nend; i++) {
		const Queue *q = end[i].q;
		int at = use == END_WAIT ? q->to : use == END_MAKE ? q->from : q->last;
		if (end[i].sends == (use == END_MAKE) && at == block)
			v[n++] = i;
	}
	if (n)
		print_ints(t, field[use], v, n);
}

/* ---- blocks ---- */

/* What a role runs of a block: actions from .. to - 1 of its own list. */
typedef struct BlockSpan { const Block *b; int from, to; } BlockSpan;

/* The blocks that a role has an action or a task of. */
static BlockSpan *spans_of(const Sched *s, const Role *all, int *n)
{
	const Plan *p = s->e->plan;
	BlockSpan *list = NULL;
	*n = 0;
	for (int i = 0; i < p->nblock; i++) {
		const Block *b = &p->block[i];
		BlockSpan x = { b, role_before(all, b->from), role_before(all, b->to) };
		if (x.from < x.to || has_task(all, i))
			arena_push(s->e->tree.arena, list, *n, x);
	}
	return list;
}

static int span_of(const BlockSpan *span, const Block *b)
{
	int i = 0;
	while (span[i].b != b)
		i++;
	return i;
}

/* What actions from .. to - 1 of a block do, in a word for names of functions; *end: up to which one.  The actions of
 * several stages stand in blocks of their own; otherwise the first and the last action of the backward pass divide the
 * body. */
static const char *phase(const Sched *s, const BlockSpan *x, const Action *list, int from, int *end)
{
	static const char *const word[] = { [BLOCK_BEGIN] = "begin", [BLOCK_LOAD] = "load", [BLOCK_F] = "forward",
		[BLOCK_R] = "recompute", [BLOCK_B] = "backward", [BLOCK_W] = "weights", [BLOCK_BW] = "backward",
		[BLOCK_REDUCE] = "reduce", [BLOCK_UPDATE] = "update" };
	int first = x->to, last = x->from;
	*end = x->to;
	if (s->e->now->kind != PROGRAM_STEP)
		return emit_program(s->e);
	if (x->b->kind != BLOCK_BODY)
		return word[x->b->kind];
	for (int i = x->from; i < x->to; i++)
		if (list[i].nnode && kinds_backward(list[i].node[0])) {
			first = i < first ? i : first;
			last = i + 1;
		}
	if (from < first)
		*end = first;
	else if (from < last)
		*end = last;
	return from < first ? "forward" : from < last ? "backward" : "update";
}

const char *role_site(const Emit *e, const Action *a)
{
	const char *from = a->n ? emit_from(e->tree.arena, a->n) : "", *in = strstr(from, " in ");
	return in ? in : "";
}

/* By action of a list: its call, and the number of what it runs, which does not depend on its values. */
static int *equal_actions(const Sched *s, const Role *own, const char **call)
{
	Emit *e = s->e;
	int *number = arena_array(e->tree.arena, int, own->nstep + 1), n = 0;
	Map seen;
	map_init(&seen, e->tree.arena);
	for (int i = 0; i < own->nstep; i++) {
		const Action *a = &own->step[i];
		call[i] = statement_of(e, a, s->rank);
		Name key = name_fmt("%d %s %d %d %s", a->kind, role_op(e, a), count(a->make, a->nmake),
			count(a->take, a->ntake), call[i]);
		if (!map_get(&seen, key))
			map_put(&seen, key, (void *)(intptr_t)++n);
		number[i] = (int)(intptr_t)map_get(&seen, key);
	}
	return number;
}

/* "a3", "a3 to a18" */
static const char *ids(const Sched *s, const Action *list, const Repeat *r)
{
	int from = list[r->from].id, to = list[r->from + r->period * r->count - 1].id;
	Arena *a = s->e->tree.arena;
	return from == to ? arena_printf(a, "a%d", from) : arena_printf(a, "a%d to a%d", from, to);
}

/* The table of the values of a call, and its statement in the function of the block. */
static void print_call(const Sched *s, Text *tables, Text *calls, const Action *list, const Repeat *r,
	const BlockCall *call, int number)
{
	Arena *a = s->e->tree.arena;
	const char *table = arena_printf(a, "%s_v%d", emit_program(s->e), number), *about = ids(s, list, r);
	if (!call->nvalue) {
		text_add(calls, "\tRUN(%s(c, NULL)); /* %s */\n", call->function, about);
		return;
	}
	Text rows = { 0 };
	size_t line = 0;
	for (int turn = 0; turn < r->count; turn++) {
		if (r->count > 1)
			values_pack(&rows, &line, arena_printf(a, "/* a%d */", list[r->from + turn * r->period].id));
		for (int i = 0; i < call->nvalue; i++)
			values_pack(&rows, &line, arena_printf(a, "%d,", call->value[turn][i]));
	}
	values_packed(&rows);
	const char *size = r->count > 1 ? arena_printf(a, "%d * %d", r->count, call->nvalue)
		: arena_printf(a, "%d", call->nvalue);
	const char *head = arena_printf(a, "static const int %s[%s] = {", table, size);
	bool short_row = strlen(head) + rows.n + 2 <= EMIT_COLUMNS;     /* a tab and a line end become blanks */
	text_add(tables, short_row ? "%s %.*s };\n" : "%s\n\t%.*s\n};\n", head, (int)rows.n - 2, rows.s + 1);
	if (r->count > 1)
		text_add(calls, "\tfor (int i = 0; i < %d; i++) /* %s */\n\t\tRUN(%s(c, %s + %d * i));\n", r->count,
			about, call->function, table, call->nvalue);
	else
		text_add(calls, "\tRUN(%s(c, %s)); /* %s */\n", call->function, table, about);
}

/* The actions of a role from `from` on, for the search for repeats. */
typedef struct Known { Emit *e; const Role *own; const char *const *call; int from; } Known;

static bool known(const void *of, const Repeat *r)
{
	const Known *k = of;
	Repeat x = { k->from + r->from, r->period, r->count };
	return blocks_has(k->e, k->own, &x, k->call);
}

/* The sequences of a block as calls; one that is long and does not repeat is cut. */
static void print_block(const Sched *s, Text *t, const Role *own, const int *number, const char *const *call,
	const BlockSpan *x, int *ncall)
{
	Emit *e = s->e;
	Text calls = { 0 };
	for (int from = x->from, end; from < x->to; from = end) {
		const char *word = phase(s, x, own->step, from, &end);
		int n = 0;
		const Known of = { e, own, call, from };
		Repeat *list = repeats_find(e->tree.arena, number + from, end - from, known, &of, &n);
		for (int k = 0; k < n; k++) {
			Repeat r = list[k];
			for (int left = r.period, at = from + r.from; left > 0; left -= r.period, at += r.period) {
				r.from = at;
				if (r.count == 1)
					r.period = left > LONGEST ? left / (left / LONGEST + 1) : left;
				BlockCall run = blocks_add(e, own, &r, call, word);
				print_call(s, t, &calls, own->step, &r, &run, (*ncall)++);
			}
		}
	}
	text_add(t, "static int %s_%s(Ctx *c)\n{\n%s\treturn %s0;\n}\n\n", emit_program(e), x->b->name,
		calls.s ? calls.s : "", calls.s ? "" : "(void)c, ");
}

static bool acts(const Role *own, const BlockSpan *x, ActKind kind)
{
	for (int i = x->from; i < x->to; i++)
		if (own->step[i].kind == kind)
			return true;
	return false;
}

static void print_actors(const Sched *s, Text *t, const Role *own, const BlockSpan *span, int nspan, const End *end,
	int nend)
{
	const Plan *p = s->e->plan;
	const char *program = emit_program(s->e);
	text_add(t, "static const RtActor %s_actors[] = {\n", program);
	for (int i = 0; i < nspan; i++) {
		const BlockSpan *x = &span[i];
		bool updates = x->b->kind == BLOCK_UPDATE && s->e->now->kind == PROGRAM_STEP;
		text_add(t, "\t{ .name = \"%s\", .run = %s_%s, .id = %d%s%s%s", x->b->name, program, x->b->name,
			x->from, acts(own, x, ACT_LOAD) ? ", .loads = true" : "",
			acts(own, x, ACT_SAVE) ? ", .saves = true" : "", updates ? ", .updates = true" : "");
		for (EndUse use = END_WAIT; use <= END_GIVE; use++)
			print_uses(s, t, use, (int)(x->b - p->block), end, nend);
		text_add(t, " },\n");
	}
	text_add(t, "};\n");
}

/* The tasks of a step in their order, and the tables as a whole. */
static void print_tasks(const Sched *s, Text *t, const Role *all, const Role *own, const BlockSpan *span, int nend)
{
	const char *program = emit_program(s->e);
	size_t line = 0;
	text_add(t, "static const RtTask %s_tasks[] = {\n", program);
	for (int i = 0; i < all->ntask; i++)
		values_pack(t, &line, arena_printf(s->e->tree.arena, "{ %d, %d },",
			span_of(span, &s->e->plan->block[all->task[i].block]), all->task[i].micro));
	values_packed(t);
	text_add(t, "};\nextern const RtSchedule role%d_%s;\nconst RtSchedule role%d_%s = %s(%s, %d);\n", all->id,
		program, all->id, program, nend ? "PIPELINE" : "SCHEDULE", program, own->nstep);
}

/* The tables of a program. */
static void print_program(const Sched *s, Text *t, const Role *all, const Role *own)
{
	int nspan, nend, ncall = 0;
	const char **call = arena_array(s->e->tree.arena, const char *, own->nstep + 1);
	const int *number = equal_actions(s, own, call);
	BlockSpan *span = spans_of(s, all, &nspan);
	End *end = ends_of(s, &nend);
	for (int i = 0; i < nspan; i++)
		print_block(s, t, own, number, call, &span[i], &ncall);
	if (nend)
		text_add(t, "static const RtQueue %s_queues[] = {\n", emit_program(s->e));
	for (int i = 0; i < nend; i++)
		print_end(s, t, &end[i]);
	text_add(t, nend ? "};\n" : "");
	print_actors(s, t, own, span, nspan, end, nend);
	print_tasks(s, t, all, own, span, nend);
}

Role role_own(const Emit *e, const Role *r)
{
	Role own = *r;
	own.step = NULL;
	own.nstep = 0;
	for (int i = 0; i < r->nstep; i++) {
		own.body = i == r->body ? own.nstep : own.body;
		own.after = i == r->after ? own.nstep : own.after;
		if (!does(r, &r->step[i]))
			continue;
		arena_push(e->tree.arena, own.step, own.nstep, r->step[i]);
		own.step[own.nstep - 1].id = own.nstep - 1;
	}
	own.after = r->after == r->nstep ? own.nstep : own.after;
	return own;
}

void role_add(Emit *e, const Role *all)
{
	static const char *const about[] = { [PROGRAM_STEP] = "One training step.",
		[PROGRAM_EVAL] = "The loss of a batch.", [PROGRAM_INFER] = "The outputs." };
	Role own = role_own(e, all);
	if (!e->sched)
		e->sched = arena_array(e->tree.arena, Sched, e->plan->nrole);
	Sched *s = &e->sched[all->id];
	s->e = e;
	s->rank = all->rank[0];
	if (!e->picture)
		e->picture = picture_of(e);
	if (e->now->kind == PROGRAM_STEP)
		text_add(&s->lists, "%s", e->picture);
	text_add(&s->lists, "%s/* %s */\n", s->lists.n ? "\n" : "", about[e->now->kind]);
	print_program(s, &s->lists, all, &own);
}

void role_write(Emit *e)
{
	Arena *ar = e->tree.arena;
	for (int i = 0; i < e->plan->nrole; i++) {
		const Role *r = &e->plan->role[i];
		const char *title = arena_printf(ar, "The schedule of role %d, which %d rank%s run%s.", r->id, r->nrank,
			r->nrank == 1 ? "" : "s", r->nrank == 1 ? "s" : "");
		tree_fill(tree_file(&e->tree, arena_printf(ar, "role%d/schedule.c", r->id)), "schedule.c", "banner",
			emit_banner(e, title), "lists", e->sched[i].lists.s, NULL);
	}
}
