/* plan.json: the plan for programs.
 *
 * One object: what the program is, the memory of a rank by class, every value (its number and name as in params.c and
 * buffers.c, shape, SBP, offset, bytes, lifetime) and every action of each program and role (its number as in
 * schedules, traces and messages, the line of the model it comes from, kernel, values read and written), with the
 * blocks that they form and the tasks of a step: a block and a micro-batch, -1 once per step; and the queues between
 * stages.  One value or action a line.  Names are escaped as everywhere in a tree, so that all is ASCII. */
#include "emit/emit.h"

#include <inttypes.h>

static void print_memory(const Emit *e, Text *t)
{
	const Layout *l = &e->plan->layout;
	const RankMemory m = report_memory(e);
	text_add(t,
		"\"memory\": {\n\t\"total\": %" PRId64 ", \"each_further_thread\": %" PRId64 ", \"slab\": "
		"%" PRId64 ", \"window\": %" PRId64 ",\n", m.total, m.thread, values_slab(e),
	         values_window(e));
	text_add(t, "\t\"busiest\": ");
	text_add(t, l->peak < 0 ? "null,\n\t" : "\"a%d\",\n\t", l->peak);
	for (int i = 0; i <= KEEP_ACT; i++)
		text_add(t, "\"%s\": %" PRId64 ", ", emit_keep[i], l->by[i]);
	text_add(t,
		"\"packed\": %" PRId64 ", \"gaps\": %" PRId64 ", \"workspace\": %" PRId64 ", \"data\": "
		"%" PRId64 ", \"program\": %" PRId64 "\n},\n", m.packed, m.gaps, m.work, m.data, m.base);
}

static const char *program_of(const Emit *e, const Slot *s)
{
	int k = 0;
	while (e->program[k].model != s->v->graph->model)
		k++;
	return emit_program_name[e->program[k].kind];
}

/* Kept values have the first numbers; they are live during the whole run. */
static void print_value(const Emit *e, Text *t, int number)
{
	const Slot *s = e->value[number];
	const Plan *p = s->v->graph->model->plan;
	Arena *a = e->tree.arena;
	text_add(t, "\t{ \"value\": %d, \"name\": %s, \"class\": \"%s\", \"type\": \"%s\", \"shape\": [", number,
		values_string(a, s->v->name), emit_keep[s->keep],
	         dtype_name(s->v->type->elem));
	for (int k = 0; k < s->ndim; k++)
		text_add(t, "%s%" PRId64, k ? ", " : "", s->dim[k]);
	if (p->nplace > 1)
		text_add(t, "], \"mesh\": %s", values_string(a, s->v->place->mesh->name));
	else
		text_add(t, "]");
	text_add(t, ", \"sbp\": \"%s\", \"area\": \"%s\", \"offset\": %" PRId64 ", \"bytes\": %" PRId64,
		sbp_text(s->v->sbp, s->v->place->mesh->ndim), s->window ? "window" : "slab", s->offset,
	         s->bytes);
	if (s->copies > 1)
		text_add(t, ", \"copies\": %d", s->copies);
	if (number < e->nkept)
		text_add(t, ", \"program\": null, \"live\": null }");
	else
		text_add(t, ", \"program\": \"%s\", \"live\": [%d, %d] }", program_of(e, s), s->first, s->last);
}

static void print_numbers(Text *t, const char *key, Slot *const *list, int n)
{
	const char *comma = "";
	text_add(t, ", \"%s\": [", key);
	for (int i = 0; i < n; i++)
		if (list[i]) {
			text_add(t, "%s%d", comma, list[i]->entry);
			comma = ", ";
		}
	text_add(t, "]");
}

static const char *kernel_text(const Action *a)
{
	const Node *n = a->host ? a->host : a->n;
	return !n ? NULL : a->elementwise ? "pointwise" : a->sums ? "sum_square" : n->row->kernel;
}

static void print_action(const Emit *e, Text *t, const Action *a)
{
	static const char *const kind[] = { [ACT_LOAD] = "load", [ACT_COMPUTE] = "compute",
		[ACT_COLLECTIVE] = "collective", [ACT_START] = "start", [ACT_FINISH] = "finish", [ACT_SAVE] = "save" };
	const char *kernel = kernel_text(a);
	text_add(t, "\t\t{ \"action\": \"a%d\", \"kind\": \"%s\", \"operator\": \"%s\", \"from\": ", a->id,
		kind[a->kind], role_op(e, a));
	if (a->n)
		text_add(t, "%s", values_quoted(emit_from(e->tree.arena, a->n)));
	else
		text_add(t, "null");
	text_add(t, kernel ? ", \"kernel\": \"%s\"" : ", \"kernel\": null", kernel);
	if (a->how)
		text_add(t, ", \"transfer\": \"%s\"", a->how);
	text_add(t, ", \"flops\": %.6g", schedule_flops(e->plan, a));
	print_numbers(t, "reads", a->take, a->ntake);
	print_numbers(t, "writes", a->make, a->nmake);
	text_add(t, " }");
}

static void print_role(const Emit *e, Text *t, const Role *all)
{
	Role own = role_own(e, all), *r = &own;
	const Plan *p = e->plan;
	text_add(t, "{ \"program\": \"%s\", \"role\": %d, \"ranks\": [", emit_program(e), r->id);
	for (int i = 0; i < r->nrank; i++)
		text_add(t, "%s%d", i ? ", " : "", r->rank[i]);
	text_add(t, "],\n\t\t\"blocks\": [");
	for (int i = 0; i < p->nblock; i++)
		text_add(t, "%s{ \"name\": \"%s\", \"from\": %d, \"to\": %d, \"seconds\": %.3g }", i ? ", " : "",
			p->block[i].name, role_before(all, p->block[i].from), role_before(all, p->block[i].to),
			times_block(p, &p->block[i], r->rank[0]));
	text_add(t, "],\n\t\t\"tasks\": [");
	for (int i = 0; i < all->ntask; i++)
		text_add(t, "%s[\"%s\", %d]", i ? ", " : "", p->block[all->task[i].block].name, all->task[i].micro);
	text_add(t, "], \"actions\": [\n");
	for (int i = 0; i < r->nstep; i++) {
		print_action(e, t, &r->step[i]);
		text_add(t, i < r->nstep - 1 ? ",\n" : "\n");
	}
	text_add(t, "\t] }");
}

/* A queue between stages: the values that are sent and received, block by block. */
static void print_queue(const Emit *e, Text *t, const Queue *q, int before)
{
	const Block *b = e->plan->block;
	text_add(t, "%s\n\t{ \"program\": \"%s\", \"name\": %s, \"channel\": %d", before ? "," : "", emit_program(e),
		role_queue(e, q), q->channel);
	text_add(t, ", \"from\": \"%s\", \"to\": \"%s\", \"last\": \"%s\", \"copies\": [%d, %d]", b[q->from].name,
		b[q->to].name, b[q->last].name, q->out, q->in);
	print_numbers(t, "sends", q->take, q->n);
	print_numbers(t, "receives", q->make, q->n);
	text_add(t, " }");
}

void json_emit(Emit *e)
{
	Text *t = tree_file(&e->tree, "plan.json");
	const Plan *p = e->plan;
	text_add(t, "{\n\"model\": %s, \"target\": \"%s\", \"ranks\": %d, \"roles\": %d,\n",
		values_string(e->tree.arena, e->g->name ? e->g->name : ""),
	         e->target == TARGET_CUDA ? "cuda" : "c", p->world->nrank, p->nrole);
	text_add(t,
		"\"batch\": %" PRId64 ", \"microbatches\": %" PRId64 ", \"steps\": %" PRId64 ", \"seed\": "
		"%" PRId64 ",\n", p->batch, p->train.microbatches > 1 ? p->train.microbatches : 1,
	         p->train.steps, p->train.seed);
	print_memory(e, t);
	text_add(t, "\"values\": [\n");
	for (int i = 0; i < e->nvalue; i++) {
		print_value(e, t, i);
		text_add(t, i < e->nvalue - 1 ? ",\n" : "\n");
	}
	text_add(t, "],\n\"programs\": [\n\t");
	for (int k = 0; k < e->nprogram; k++) {
		emit_turn(e, k);
		for (int i = 0; i < e->plan->nrole; i++) {
			text_add(t, k || i ? ",\n\t" : "");
			print_role(e, t, &e->plan->role[i]);
		}
	}
	emit_turn(e, 0);
	text_add(t, "\n],\n\"queues\": [");
	for (int k = 0, any = 0; k < e->nprogram; k++) {
		emit_turn(e, k);
		for (int i = 0; i < e->plan->nqueue; i++)
			print_queue(e, t, &e->plan->queue[i], any++);
	}
	emit_turn(e, 0);
	text_add(t, "]\n}\n");
}
