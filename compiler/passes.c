/* The passes in order: read this file first.
 *
 * A pass needs facts, gives facts, and may spoil some.  The table is checked against itself as it runs: a pass whose
 * needs do not hold is our mistake.  After every pass the verifier looks at the graph with the facts that hold then. */
#include "compiler.h"

#include <string.h>

/* Inputs without elements are a mistake, usually --set N=0. */
static int check_inputs(const Graph *g)
{
	int errors = diag_errors();
	for (int i = 0; i < g->nin; i++) {
		const Value *v = g->in[i];
		const Type *t = v->type;
		for (int k = 0; t && t->kind == TY_TENSOR && k < t->ndim && !v->init; k++) {
			if (dim_bound(t->dim[k]) != 0)
				continue;
			if (dim_known(t->dim[k]))
				err_at(v->loc,
					"input %s is empty: %s has a length of 0; give every axis of an input at least "
					"1", v->name, type_text(t));
			else
				err_at(v->loc,
					"input %s is empty, because %s is 0; give it at least 1 (--set %s=NUMBER, or "
					"batch of @train)", v->name,
				       dim_text(t->dim[k]), dim_text(t->dim[k]));
			break;
		}
	}
	return diag_errors() > errors ? -1 : 0;
}

static int bind(Graph *g)
{
	precision_mark(g->model);
	return check_inputs(g) || inline_run(g) || whole_batch_empty(g) || whole_batch_controls(g) ? -1 : 0;
}

/* Nodes of the backward pass inherit the placements of the model, so these are set before the nodes are made. */
static int placed_train(Graph *g)
{
	bool fresh = !options_done(g->model, "train");
	return (fresh && (stages_spread(g) || placement_spread(g))) || train_run(g) ? -1 : 0;
}

/* Recomputes the nodes that @recompute marks, and those that trials chose so that a rank fits into its memory. */
static int chosen_recompute(Graph *g)
{
	Checkpoints c = { 0 };
	if (opt.change.again && !g->model->main)
		checkpoints_choose(g, opt.change.again, &c);
	if (c.seconds > 0 && !opt.change.trial)
		printf("recompute: %s; %.0f bytes of whole values stay for the backward pass instead of %.0f, about "
			"%.3g s a step are added\n", c.names, c.bytes, c.most, c.seconds);
	return recompute_run(g);
}

static const Pass passes[] = {
	{ .name = "params", .run = params_run,
		.does = "which initialisers are trained" },
	{ .name = "inline", .run = bind, .gives = BOUND | SHAPES,
		.does = "operators bound, functions and definitions inlined, shapes inferred" },
	{ .name = "mode", .run = mode_run, .needs = SHAPES | BOUND, .once = true,
		.does = "batch norm and dropout that an exporter left switched off" },
	{ .name = "fold", .run = fold_run, .needs = SHAPES | BOUND, .gives = FOLDED,
		.does = "constants folded, copies and equal nodes removed" },
	{ .name = "lift", .run = lift_run, .needs = SHAPES | FOLDED, .gives = LIFTED, .once = true,
		.does = "decomposed norms, GELU, attention, rotary embedding, SwiGLU recognised" },
	{ .name = "transpose", .run = transpose_run, .needs = SHAPES | BOUND,
		.does = "transposes become part of the matrix products that read them" },
	{ .name = "precision", .run = precision_run, .needs = SHAPES | BOUND, .once = true,
		.does = "casts to and from half precision" },
	{ .name = "factors", .run = factors_run, .needs = SHAPES | BOUND,
		.does = "axes as products of factors" },
	{ .name = "train", .run = placed_train, .needs = SHAPES | BOUND, .gives = TRAIN,
		.does = "loss, backward pass and update added" },
	{ .name = "fold", .run = fold_run, .needs = SHAPES | BOUND, .gives = FOLDED,
		.does = "again: new nodes" },
	{ .name = "micro", .run = microbatch_run, .needs = SHAPES | TRAIN, .once = true,
		.does = "a step in micro-batches: sums over them, nodes that run once before or after them" },
	{ .name = "recompute", .run = chosen_recompute, .needs = SHAPES | TRAIN, .once = true,
		.does = "copies of nodes whose values are not kept for the backward pass" },
	{ .name = "lower", .run = lower_run, .needs = SHAPES | BOUND,
		.does = "composites without a kernel replaced by their definitions" },
	{ .name = "transpose", .run = transpose_run, .needs = SHAPES | BOUND,
		.does = "again: new nodes" },
	{ .name = "factors", .run = factors_run, .needs = SHAPES | BOUND,
		.does = "again: new nodes" },
	{ .name = "plan", .run = plan_run, .needs = SHAPES | TRAIN, .gives = PLACED,
		.does = "mesh, placement and SBP of every value" },
	{ .name = "boxing", .run = boxing_run, .needs = PLACED, .gives = BOXED,
		.does = "a transfer wherever producer and consumer disagree" },
	{ .name = "project", .run = project_run, .needs = BOXED, .gives = ROLES,
		.does = "the shards of each rank; ranks that run the same code share a role" },
	{ .name = "fuse", .run = fuse_run, .needs = ROLES,
		.does = "pointwise chains and epilogues joined" },
	{ .name = "schedule", .run = schedule_run, .needs = ROLES, .gives = ORDERED,
		.does = "actions in order, slots" },
	{ .name = "memplan", .run = memplan_run, .needs = ORDERED, .gives = PLANNED,
		.does = "an offset for every slot" },
	{ .name = "packed", .run = packed_weights_run, .needs = PLANNED,
		.does = "weights that stay packed for several products" },
	{ .name = "prove", .run = prove_run, .needs = PLANNED, .gives = PROVED,
		.does = "transfers match, nothing overlaps, every transition is legal" },
	{ .name = "emit", .run = emit_run, .needs = PROVED,
		.does = "the program, as files" },
};
enum { NPASS = sizeof passes / sizeof passes[0] };

static const char *const fact_names[] = {
	"bound", "shapes", "folded", "lifted", "train", "placed", "boxed", "roles", "ordered", "planned", "proved",
	NULL,
};

static void print_facts(FILE *f, uint32_t facts)
{
	bool any = false;
	for (int i = 0; fact_names[i]; i++)
		if (facts & (1u << i))
			any = fprintf(f, "%s%s", any ? "," : " ", fact_names[i]) > 0;
	if (!any)
		fputs(" -", f);
}

void passes_list(FILE *f)
{
	for (int i = 0; i < NPASS; i++) {
		const Pass *p = &passes[i];
		fprintf(f, "%-9s %s\n          needs", p->name, p->does);
		print_facts(f, p->needs);
		fputs("; gives", f);
		print_facts(f, p->gives);
		if (p->drops) {
			fputs("; drops", f);
			print_facts(f, p->drops);
		}
		fputc('\n', f);
	}
}

bool passes_known(const char *name)
{
	for (int i = 0; i < NPASS; i++)
		if (!strcmp(passes[i].name, name))
			return true;
	return false;
}

static void mark_done(Model *m, const char *name)
{
	if (options_done(m, name))
		return;
	Annot *a = annot_find(m->annot, "done");
	if (!a) {
		a = arena_new(&m->arena, Annot);
		a->name = name_of("done");
		annot_add(&m->annot, a);
	}
	Arg arg = { .kind = ARG_WORD, .s = name_of(name), .param = name_of("passes") }, *list = NULL;
	int n = 0;
	for (int i = 0; i < a->narg; i++)
		arena_push(&m->arena, list, n, a->arg[i]);
	arena_push(&m->arena, list, n, arg);
	a->arg = list;
	a->narg = n;
}

static int run_pass(Model *m, const Pass *p)
{
	Graph *g = m->graph;
	diag_pass = p->name;
	if ((g->facts & p->needs) != p->needs)
		die("pass %s needs facts %x, but only %x hold", p->name, p->needs, g->facts);
	int errors = diag_errors();
	if (p->run(g) || diag_errors() > errors) {
		if (diag_errors() == errors)
			die("pass %s failed without a reason", p->name);
		return -1;
	}
	g->facts = (g->facts & ~p->drops) | p->gives;
	arena_free(&m->scratch);
	m->scratch = (Arena){ 0 };
	if (!(g->facts & TRAIN))
		whole_batch_check(g);
	return verify_graph(g, g->facts);
}

/* One pass on one program, unless it is done. */
static int step(Model *m, const Pass *p)
{
	if (p->once && options_done(m, p->name))
		m->graph->facts |= p->gives;
	else if (run_pass(m, p))
		return -1;
	mark_done(m, p->name);
	return 0;
}

/* A model in micro-batches is compared with the same model for the whole batch: each pass before train runs on that
 * one first. */
static int step_whole(Model *m, const Pass *p)
{
	if (!m->whole || m->graph->facts & TRAIN)
		return 0;
	if (p->gives & TRAIN) {
		identity_close(m);
		return 0;
	}
	whole_batch_bind(m, true);
	diag_hush(true);
	int bad = step(m->whole, p);
	diag_hush(false);
	whole_batch_bind(m, false);
	return bad;
}

/* A trial starts at the first pass that differs from this run. */
static int start_trials(Model *m, const Pass *p)
{
	if (p->run == placed_train && !options_done(m, p->name))
		return trials_stages(m);
	if (p->run == chosen_recompute && !options_done(m, p->name))
		return trials_recompute(m);
	if (p->run == plan_run)
		return plan_prepare(m->graph) || trials_plan(m) ? -1 : 0;
	return 0;
}

static int run_from(Model *m, int first)
{
	for (int i = first; i < NPASS; i++) {
		const Pass *p = &passes[i];
		if (start_trials(m, p) || step_whole(m, p) || step(m, p))
			return -1;
		for (int k = 0; k < m->nothers; k++)
			if (!(p->gives & TRAIN) && step(m->others[k], p))
				return -1;
		for (int k = 0; k < m->nothers && (p->gives & TRAIN); k++) {     /* which makes them */
			m->others[k]->graph->facts |= p->gives;
			mark_done(m->others[k], p->name);
		}
		if (opt.dump_after && (!strcmp(opt.dump_after, p->name) || !strcmp(opt.dump_after, "all")))
			print_model(stdout, m);
		if (opt.stop_after && !strcmp(opt.stop_after, p->name))
			break;
	}
	diag_pass = NULL;
	return 0;
}

int passes_from(Model *m, const char *name)
{
	int i = 0;
	while (strcmp(passes[i].name, name))
		i++;
	return run_from(m, i);
}

int passes_run(Model *m)
{
	int errors = diag_errors();
	if (!opt.infer && objective_add(m))
		return -1;
	if (trials_micro_batches(m))
		return -1;
	whole_batch_model(m);
	if (diag_errors() > errors || run_from(m, 0))
		return -1;
	if (m->plan && m->plan->predicted.bytes && opt.out)
		trials_report(m->plan);
	if (opt.explain)
		explain(m, *opt.explain ? opt.explain : NULL);
	return 0;
}
