/* Schedules: the actions of a role, in order, as tables over a few functions.
 *
 * An action is printed as a call over its values t[0], t[1], ...: results first, then operands.  Actions whose calls
 * have the same text share a function.  A sequence of actions that repeats (emit/repeats.c) is one table, which the
 * runtime walks several times with other values; its comments describe the first repetition.  The text is the same for
 * C and for CUDA. */
#include "emit/emit.h"

#include <inttypes.h>
#include <string.h>

enum { LISTED = 8 };                    /* of results or operands, that a comment lists */

/* One row of a table of actions. */
typedef struct Row {
	const Action *a;
	const char *run;                /* the function */
	Name key;                       /* equal rows have equal keys */
} Row;

typedef struct Sched {
	Emit *e;
	int rank;                       /* of the role: any has the same shapes */
	Map byname;                     /* body -> name of its function */
	int nfn;
	Text functions, lists;
} Sched;

static const char *const kind_name[] = { [ACT_LOAD] = "LOAD", [ACT_COMPUTE] = "COMPUTE",
	[ACT_COLLECTIVE] = "COLLECTIVE", [ACT_START] = "START", [ACT_FINISH] = "FINISH", [ACT_SAVE] = "SAVE" };

static int count(Slot *const *list, int n)
{
	int k = 0;
	for (int i = 0; i < n; i++)
		k += list[i] != NULL;
	return k;
}

/* The number of values that exist after an action: results of a transfer exist after its finish. */
static int makes(const Action *a)
{
	return a->kind == ACT_START ? 0 : count(a->make, a->nmake);
}

const char *role_param(const Print *p, const Slot *s, bool result)
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

/* ---- functions ---- */

void role_file(Emit *e, const char *file)
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
		text_add(p->t, "%s %s", i > from ? "," : "", role_param(p, p->a->take[i], false));
	text_add(p->t, n > from ? " })" : "");
}

/* A training step reports its loss as soon as it is computed; at its end the loss, the rate and the norm if they exist,
 * and metrics. */
static void emit_save(const Print *p)
{
	const Action *a = p->a;
	if (a->ntake == 1) {
		text_add(p->t, "rt_save_loss(c, %s)", role_param(p, a->take[0], false));
		return;
	}
	text_add(p->t, "rt_save_step(c, %s", role_param(p, a->take[0], false));
	for (int i = a->ntake - 2; i < a->ntake; i++)
		text_add(p->t, ", %s", a->take[i] ? role_param(p, a->take[i], false) : "NULL");
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

static void round_results(const Sched *s, const Print *p, const Kernel *k)
{
	for (int i = 0; i < p->a->nmake; i++) {
		const Slot *y = p->a->make[i];
		if (!leaves_float(p->a, k, i))
			continue;
		text_add(p->t, "\tif (!code)\n\t\tcode = k_round_%s(c, %s, %" PRId64 ");\n",
			y->v->type->elem == DT_BFLOAT16 ? "bf16" : "f16", role_param(p, y, true),
		         slot_elements(s->e->plan, y, s->rank));
		role_file(s->e, "round");
		s->e->halves = true;
	}
}

/* The shard node of this role. */
static Node *own_node(const Sched *s, Node *n)
{
	const Plan *p = s->e->plan;
	Arena *a = s->e->tree.arena;
	Type **type = arena_array(a, Type *, n->nin + n->nout + 1);
	const int64_t **at = arena_array(a, const int64_t *, n->nin + n->nout + 1);
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Slot *t = slot_of(p, i < n->nin ? n->in[i] : n->out[i - n->nin]);
		Dim dim[NDIM_MAX];
		for (int k = 0; t && k < t->ndim; k++)
			dim[k] = slot_len(p, t, k, s->rank);
		type[i] = t ? type_tensor(a, t->v->type->elem, t->ndim, dim) : NULL;
		int64_t *from = arena_array(a, int64_t, FORM_AXES);
		at[i] = from;
		if (t)
			slot_begin(p, t, s->rank, from);
	}
	Node *shard = shard_node_of(n, type, type + n->nin, at, NULL, a);
	return shard ? shard : n;
}

/* The statements of an action. */
static const char *body_of(Sched *s, const Action *a)
{
	Emit *e = s->e;
	Text t = { 0 };
	Slot *room[1] = { NULL };
	Print p = { .e = e, .t = &t, .a = a, .n = a->n, .take = a->take, .make = a->make, .rank = s->rank };
	bool transfer = a->n && kernel_transfer(a->n);
	const KernelPair *two = a->mate ? kernel_pair(a->mate, a->n) : NULL;
	const Kernel *k = a->n && !transfer && !two ? kernel_of(a->host ? a->host : a->n) : NULL;
	if (a->host) {
		p.n = a->host;
		room[0] = room_of(e, a);
		p.make = room;
		p.epilogue = arena_printf(e->tree.arena, "EPILOGUE(%s)", pointwise_function(e, a, s->rank));
	}
	p.whole = p.n;
	if (k && (p.n->row->fit || p.n->row->place))
		p.n = own_node(s, p.n);
	bool several = k && calls_of(k)->several, rounds = false;
	for (int i = 0; i < a->nmake; i++)
		rounds |= leaves_float(a, k, i);
	text_add(&t, several ? "\tint code = 0;\n" : rounds ? "\tint code = " : "\treturn ");
	if (a->kind == ACT_LOAD)
		text_add(&t, "t ? rt_load(c) : RT_PLAN");
	if (a->kind == ACT_SAVE && e->now->kind == PROGRAM_STEP)
		emit_save(&p);
	if (a->kind == ACT_SAVE && e->now->kind == PROGRAM_EVAL) {
		text_add(&t, "rt_save_eval(c, %s, %s", role_param(&p, a->take[0], false),
			role_param(&p, a->take[1], false));
		emit_metrics(&p, 2);
	}
	if (a->kind == ACT_SAVE && e->now->kind == PROGRAM_INFER)
		text_add(&t, "t ? rt_sync(c) : RT_PLAN");
	if (transfer)
		calls_transfer(&p);
	if (two) {
		p.n = p.whole = a->mate;
		calls_of_pair(two)->print(&p);
		role_file(e, two->file);
	}
	if (k) {
		calls_of(k)->print(&p);
		role_file(e, k->file);
	}
	text_add(&t, several ? "" : ";\n");
	round_results(s, &p, k);
	text_add(&t, several || rounds ? "\treturn code;\n" : "");
	return several ? simpler(e->tree.arena, t.s) : t.s;
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

/* Whether the shard of this role is empty though the value is not. */
static bool has_none(const Sched *s, const Slot *x)
{
	return x && s->e->plan->forms->most[x->form] && !slot_elements(s->e->plan, x, s->rank);
}

static const Sbp *term_of(const Value *v)
{
	for (int k = 0; k < v->place->mesh->ndim; k++)
		if (v->sbp[k].kind == SBP_P)
			return &v->sbp[k];
	return NULL;
}

/* The body for a rank with empty operands: its results are empty too, or partial and filled with the neutral element.
 * NULL: it computes. */
static const char *idle(const Sched *s, const Action *a)
{
	static const char *const reduce[] = { [RED_SUM] = "SUM", [RED_MAX] = "MAX", [RED_MIN] = "MIN",
		[RED_PROD] = "PROD" };
	Arena *ar = s->e->tree.arena;
	Print p = { .e = s->e, .a = a };
	bool nothing = a->kind == ACT_COMPUTE && !a->how, lacks = false, any = false;
	const char *body = "";
	for (int i = 0; i < a->ntake; i++)
		lacks |= has_none(s, a->take[i]);
	const Node *n = a->host ? a->host : a->n;
	if (n && op_added(n) >= 0)
		lacks = false;                  /* the operand that is added may be the only one that is not empty */
	for (int i = 0; i < a->nmake && nothing; i++) {
		const Slot *y = a->make[i];
		if (!y)
			continue;
		any = true;
		if (has_none(s, y))
			continue;
		const Sbp *term = lacks ? term_of(y->v) : NULL;
		nothing = term != NULL;
		if (term)
			body = arena_printf(ar, "%s\trt_fill(%s, RT_%s, FORM_%s, %" PRId64 ");\n", body,
				role_param(&p, y, true), values_type_word(y->v->type->elem), reduce[term->red],
			                    slot_elements(s->e->plan, y, s->rank));
	}
	return nothing && any ? arena_printf(ar, "%s\treturn c && t ? 0 : RT_PLAN;\n", body) : NULL;
}

/* The name of the function of an action, which is written unless another has the same text. */
static const char *function_of(Sched *s, const Action *a)
{
	Arena *ar = s->e->tree.arena;
	const char *body = idle(s, a);
	if (a->elementwise && !body)
		return pointwise_function(s->e, a, s->rank);
	if (!body)
		body = body_of(s, a);
	if (!body)
		return NULL;
	Name key = name_of(body);
	const char *known = map_get(&s->byname, key);
	if (known)
		return known;
	char *name = arena_printf(ar, "f%d", s->nfn++);
	text_add(&s->functions, "/* %s  %s */\n", role_op(s->e, a), role_shapes(s->e, a, s->rank));
	if (!strncmp(body, "\treturn ", 8))
		text_add(&s->functions, "CALL(%s, %.*s)\n", name, (int)strlen(body) - 10, body + 8);
	else
		text_add(&s->functions, "static int %s(Ctx *c, void *const *t)\n{\n%s}\n", name, body);
	map_put(&s->byname, key, name);
	return name;
}

/* ---- tables ---- */

/* "up0 = MatMul(n2, h0.up.w)  B B -> B"; for a group, what it reads and writes as a whole */
static void print_nodes(const Emit *e, Text *t, const Action *a)
{
	Arena *ar = e->tree.arena;
	for (int i = 0, any = 0; i < a->nmake; i++)
		if (a->make[i])
			text_add(t, "%s%s", any++ ? ", " : "", emit_comment(ar, a->make[i]->v->name));
	text_add(t, " = %s(", role_op(e, a));
	for (int i = 0, any = 0; i < a->ntake; i++)
		if (a->take[i])
			text_add(t, "%s%s", any++ ? ", " : "", emit_comment(ar, a->take[i]->v->name));
	text_add(t, ")  ");
	for (int i = 0; i < a->ntake; i++)
		if (a->take[i])
			text_add(t, "%s ", sbp_text(a->take[i]->v->sbp, a->take[i]->v->place->mesh->ndim));
	text_add(t, "->");
	for (int i = 0; i < a->nmake; i++)
		if (a->make[i])
			text_add(t, " %s", sbp_text(a->make[i]->v->sbp, a->make[i]->v->place->mesh->ndim));
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

/* "4 * 64 * 4 <= T12 && ...": the condition that every result fits its memory. */
static void print_fits(const Sched *s, Text *t, const Action *a)
{
	bool any = false;
	for (int i = 0; i < a->nmake; i++) {
		const Slot *y = a->make[i];
		if (!y)
			continue;
		text_add(t, any ? " && " : "");
		for (int k = 0; k < y->ndim; k++)
			text_add(t, "%" PRId64 " * ", slot_len(s->e->plan, y, k, s->rank));
		text_add(t, "%d <= T%d", kernel_bits(y->v) / 8, y->entry);
		s->e->checked[y->entry] = true;
		any = true;
	}
	text_add(t, any ? "" : "1");
}

static void print_row(const Sched *s, Text *t, const Row *r)
{
	const Action *a = r->a;
	text_add(t, "\t/* a%d ", a->id);
	role_about(s->e, t, a);
	text_add(t, " */\n");
	text_add(t, "\tA(%s, \"%s\", %s, %d, %d, %.3g, ", kind_name[a->kind], role_op(s->e, a), r->run, makes(a),
		count(a->make, a->nmake) + count(a->take, a->ntake) - makes(a), schedule_flops(s->e->plan, a));
	print_fits(s, t, a);
	text_add(t, "),\n");
}

static void print_values(const Sched *s, Text *t, const Row *row, const Repeat *r)
{
	Arena *ar = s->e->tree.arena;
	size_t line = 0;
	for (int k = 0; k < r->count * r->period; k++) {
		const Action *a = row[r->from + k].a;
		if (k % r->period == 0)
			values_pack(t, &line, arena_printf(ar, "/* a%d */", a->id));
		for (int v = 0; v < a->nmake + a->ntake; v++) {
			const Slot *x = v < a->nmake ? a->make[v] : a->take[v - a->nmake];
			if (x)
				values_pack(t, &line, arena_printf(ar, "%d,", x->entry));
		}
	}
	values_packed(t);
}

/* Whether a rank has an action in its list. */
static bool does(const Action *a, int rank)
{
	return times_runs(a, rank);
}

int role_before(const Role *r, int action)
{
	int n = 0;
	for (int i = 0; i < action; i++)
		n += does(&r->step[i], r->rank[0]);
	return n;
}

/* What a role runs of a block: actions from .. to - 1 of its own list, as segments first .. last - 1. */
typedef struct BlockSpan { const Block *b; int from, to, first, last; } BlockSpan;

/* The blocks that a role has an action or a task of, and the repeats of each: none crosses its ends. */
static Repeat *stretches(const Sched *s, const Role *all, const int *number, int *count, BlockSpan *span, int *nspan)
{
	const Plan *p = s->e->plan;
	Arena *ar = s->e->tree.arena;
	Repeat *list = NULL;
	*count = *nspan = 0;
	for (int i = 0; i < p->nblock; i++) {
		const Block *b = &p->block[i];
		BlockSpan x = { .b = b, .first = *count };
		x.from = role_before(all, b->from);
		x.to = role_before(all, b->to);
		int k = 0, task = 0;
		while (task < all->ntask && all->task[task].block != i)
			task++;
		if (x.from == x.to && task == all->ntask)
			continue;
		Repeat *rep = x.from < x.to ? repeats_find(ar, number + x.from, x.to - x.from, &k) : NULL;
		for (int j = 0; j < k; j++) {
			rep[j].from += x.from;
			arena_push(ar, list, *count, rep[j]);
		}
		x.last = *count;
		span[(*nspan)++] = x;
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

/* ", .move = (const int[]){ 3, 4 }" */
static void print_ints(Text *t, const char *field, const int *v, int n)
{
	if (!n)
		return;
	text_add(t, ", .%s = (const int[]){", field);
	for (int i = 0; i < n; i++)
		text_add(t, "%s %d", i ? "," : "", v[i]);
	text_add(t, " }");
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
	text_add(t, "\t{ .name = %s, %s.channel = %d, .copies = %d, .n = %d", role_queue(e, q),
		x->sends ? ".sends = true, " : "", q->channel, x->sends ? q->out : q->in, q->n);
	for (int i = 0; i < q->n; i++)
		v[i] = calls_move(e, q->take[i], q->make[i], q->channel);
	print_ints(t, "move", v, q->n);
	for (int i = 0; i < q->n; i++)
		v[i] = q->take[i]->entry;
	print_ints(t, "from", v, q->n);
	for (int i = 0; i < q->n; i++)
		v[i] = q->make[i]->entry;
	print_ints(t, "to", v, q->n);
	text_add(t, " },\n");
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
	print_ints(t, field[use], v, n);
	if (n)
		text_add(t, ", .n%s = %d", field[use], n);
}

/* The tables of queues, actors and tasks. */
static void print_tasks(const Sched *s, Text *t, const Role *all, const char *name, const BlockSpan *span, int nspan)
{
	const Plan *p = s->e->plan;
	size_t line = 0;
	int nend;
	End *end = ends_of(s, &nend);
	if (nend)
		text_add(t, "static const RtQueue %s_queues[] = {\n", name);
	for (int i = 0; i < nend; i++)
		print_end(s, t, &end[i]);
	text_add(t, nend ? "};\n" : "");
	text_add(t, "static const RtActor %s_actors[] = {\n", name);
	for (int i = 0; i < nspan; i++) {
		bool updates = span[i].b->kind == BLOCK_UPDATE && s->e->now->kind == PROGRAM_STEP;
		text_add(t, "\t{ .name = \"%s\", .from = %d, .to = %d, .id = %d%s", span[i].b->name, span[i].first,
			span[i].last, span[i].from, updates ? ", .updates = true" : "");
		for (EndUse use = END_WAIT; use <= END_GIVE; use++)
			print_uses(s, t, use, (int)(span[i].b - p->block), end, nend);
		text_add(t, " },\n");
	}
	text_add(t, "};\nstatic const RtTask %s_tasks[] = {\n", name);
	for (int i = 0; i < all->ntask; i++)
		values_pack(t, &line, arena_printf(s->e->tree.arena, "{ %d, %d },",
			span_of(span, &p->block[all->task[i].block]), all->task[i].micro));
	values_packed(t);
	text_add(t, "};\nextern const RtSchedule role%d_%s;\n", all->id, name);
	text_add(t, "const RtSchedule role%d_%s = %s(%s);\n", all->id, name, nend ? "PIPELINE" : "SCHEDULE", name);
}

/* The tables of one list of actions; their names begin with `name`. */
static int print_list(Sched *s, Text *t, const Role *all, const Role *role, const char *name)
{
	const Action *list = role->step;
	int n = role->nstep;
	Arena *ar = s->e->tree.arena;
	Row *row = arena_array(ar, Row, n + 1);
	int *number = arena_array(ar, int, n + 1), nrepeat = 0, nrow = 0, nspan;
	BlockSpan *span = arena_array(ar, BlockSpan, s->e->plan->nblock + 1);
	Map seen;
	map_init(&seen, ar);
	for (int i = 0; i < n; i++) {
		const Action *a = &list[i];
		row[i] = (Row){ a, function_of(s, a), NULL };
		if (!row[i].run)
			return -1;
		row[i].key = name_fmt("%s %d %s %d %d", row[i].run, a->kind, role_op(s->e, a), count(a->make, a->nmake),
			count(a->take, a->ntake));
		if (!map_get(&seen, row[i].key))
			map_put(&seen, row[i].key, (void *)(intptr_t)++nrow);
		number[i] = (int)(intptr_t)map_get(&seen, row[i].key);
	}
	Repeat *rep = stretches(s, all, number, &nrepeat, span, &nspan);
	for (int k = 0; k < nrepeat; k++) {
		const Repeat *r = &rep[k];
		if (r->count > 1)
			text_add(t, "/* a%d to a%d: %d actions, %d times. */\n", list[r->from].id,
				list[r->from].id + r->period * r->count - 1, r->period, r->count);
		text_add(t, "static const RtAction %s%d[] = {\n", name, k);
		for (int i = 0; i < r->period; i++)
			print_row(s, t, &row[r->from + i]);
		text_add(t, "};\nstatic const int %s%d_values[] = {\n", name, k);
		print_values(s, t, row, r);
		text_add(t, "};\n\n");
	}
	text_add(t, "static const RtSegment %s[] = {\n", name);
	for (int k = 0; k < nrepeat; k++)
		text_add(t, "\t{ %s%d, %d, %d, %s%d_values },\n", name, k, rep[k].period, rep[k].count, name, k);
	if (!nrepeat)
		text_add(t, "\t{ 0 },\n");
	text_add(t, "};\n");
	print_tasks(s, t, all, name, span, nspan);
	return 0;
}

Role role_own(const Emit *e, const Role *r)
{
	Role own = *r;
	own.step = NULL;
	own.nstep = 0;
	for (int i = 0; i < r->nstep; i++) {
		own.body = i == r->body ? own.nstep : own.body;
		own.after = i == r->after ? own.nstep : own.after;
		if (!does(&r->step[i], r->rank[0]))
			continue;
		arena_push(e->tree.arena, own.step, own.nstep, r->step[i]);
		own.step[own.nstep - 1].id = own.nstep - 1;
	}
	own.after = r->after == r->nstep ? own.nstep : own.after;
	return own;
}

int role_add(Emit *e, const Role *all)
{
	Role own = role_own(e, all), *r = &own;
	static const char *const about[] = { [PROGRAM_STEP] = "One training step.",
		[PROGRAM_EVAL] = "The loss of a batch.", [PROGRAM_INFER] = "The outputs." };
	if (!e->sched)
		e->sched = arena_array(e->tree.arena, Sched, e->plan->nrole);
	Sched *s = &e->sched[r->id];
	if (!s->e) {
		*s = (Sched){ .e = e, .rank = r->rank[0] };
		map_init(&s->byname, e->tree.arena);
		text_raw(&s->functions, "", 0);
	}
	const char *name = emit_program(e);
	text_add(&s->lists, "%s/* %s */\n", s->lists.n ? "\n" : "", about[e->now->kind]);
	return print_list(s, &s->lists, all, r, name);
}

void role_write(Emit *e)
{
	Arena *ar = e->tree.arena;
	for (int i = 0; i < e->plan->nrole; i++) {
		const Role *r = &e->plan->role[i];
		const char *title = arena_printf(ar, "The schedule of role %d, which %d rank%s run%s.", r->id, r->nrank,
			r->nrank == 1 ? "" : "s", r->nrank == 1 ? "s" : "");
		tree_fill(tree_file(&e->tree, arena_printf(ar, "role%d/schedule.c", r->id)), "schedule.c", "banner",
			emit_banner(e, title), "functions",
		              e->sched[i].functions.s, "lists", e->sched[i].lists.s, NULL);
	}
}
