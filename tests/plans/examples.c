/* examples MODEL: the training graph of a model, forward, backward and update, gives the same in exact arithmetic under
 * data-parallel, tensor-parallel and ZeRO plans that the compiler makes, and under random signatures. */
#include "exact/exact.h"

#include <stdlib.h>
#include <string.h>

static const char *base(const char *path)
{
	const char *s = strrchr(path, '/');
	return s ? s + 1 : path;
}

/* Pins for all parameters: `rule` gives the axis for each, or -1. */
static int pin(Model *m, int ndim, int (*rule)(const Value *, int number))
{
	for (int i = 0, n = 0; i < m->graph->ninit; i++) {
		const Value *v = m->graph->init[i];
		int axis = annot_find(v->annot, "init") && v->type->ndim > 0 ? rule(v, n++) : -1;
		if (axis < 0)
			continue;
		char *text = arena_printf(&m->arena, "@pin(\"%s\", sbp: [%sS(%d)])", v->name, ndim == 2 ? "B, " : "",
			axis);
		if (parse_annots(file_memory("pins", text, strlen(text)), m, ON_MODEL, &m->annot))
			return -1;
	}
	return 0;
}

static int first_axis(const Value *v, int number)
{
	(void)v, (void)number;
	return 0;
}

/* By columns and by rows in turn. */
static int turns(const Value *v, int number)
{
	return v->type->ndim < 2 ? -1 : number / 2 % 2 ? 0 : 1;
}

typedef struct Way { const char *name; int ndim, mesh[2]; int (*rule)(const Value *, int); bool random, space; } Way;

/* Rows of images, wherever windows stand over them; false: there are none. */
static bool cut_space(Model *m)
{
	bool any = false;
	for (int i = 0; i < m->graph->nnode; i++) {
		const Node *n = m->graph->node[i];
		if (!n->row->place || n->out[0]->type->ndim < 4 || !strcmp(n->op, "ConvGradW") ||
			annot_find(n->out[0]->annot, "sbp"))
			continue;
		any = true;
		if (parse_annots(file_memory("pins", "@sbp(S(2))", 10), m, ON_VALUE, &n->out[0]->annot))
			return false;
	}
	return any;
}

static Whole *whole;                /* the same for every plan */
static Arena lasting;

static const char *run(const char *path, const Way *way)
{
	Model *m = read_model(path);
	Arena a = { 0 };
	char *mesh = arena_printf(&arena_process,
		way->ndim == 2 ? "@mesh(ranks, cpu, [%d, %d])" : "@mesh(ranks, cpu, [%d])", way->mesh[0], way->mesh[1]);
	const char *why = NULL;
	opt.stop_after = "lower";
	bool own = m && annot_find(m->annot, "mesh");
	if (!m || (!own && (parse_annots(file_memory("mesh", mesh, strlen(mesh)), m, ON_MODEL, &m->annot) ||
		parse_train("batch: 3", m))) || (way->rule && pin(m, way->ndim, way->rule)) ||
	    resolve_run(m) || verify_graph(m->graph, 0))
		return "is not read";
	train_bind_batch(m);
	if (passes_run(m) || transpose_run(m->graph) || factors_run(m->graph))
		return "does not compile";
	if (way->space && !cut_space(m)) {
		model_free(m);
		return "skip";
	}
	if (!whole && !(whole = run_whole(m->graph, 1, &lasting)))
		return exact_reason();
	Mesh h = { .name = name_of("ranks"), .ndim = way->ndim, .dim = { way->mesh[0], way->mesh[1] },
		.nrank = way->mesh[0] * (way->ndim == 2 ? way->mesh[1] : 1) };
	if (!way->random && (plan_run(m->graph) || boxing_run(m->graph)))
		return "the compiler refuses the plan";
	Hold **at;
	Outcome o = way->random ? run_random(m->graph, &h, 1, whole, 1, FAULT_NONE, 0, &a)
		: run_physical(m->graph, whole, 1, &a, &at);
	if (o.what != RUN_SAME)
		why = o.why;
	arena_free(&a);
	model_free(m);
	return why;
}

int main(int argc, char **argv)
{
	static const Way ways[] = {
		{ .name = "data-on-2", .ndim = 1, .mesh = { 2, 1 } },
		{ .name = "data-on-3", .ndim = 1, .mesh = { 3, 1 } },
		{ .name = "zero-on-2", .ndim = 1, .mesh = { 2, 1 }, .rule = first_axis },
		{ .name = "zero-on-3", .ndim = 1, .mesh = { 3, 1 }, .rule = first_axis },
		{ .name = "tensor-on-2", .ndim = 1, .mesh = { 2, 1 }, .rule = turns },
		{ .name = "tensor-on-3", .ndim = 1, .mesh = { 3, 1 }, .rule = turns },
		{ .name = "data-and-tensor-on-4", .ndim = 2, .mesh = { 2, 2 }, .rule = turns },
		{ .name = "anything-on-3", .ndim = 1, .mesh = { 3, 1 }, .random = true },
		{ .name = "anything-on-4", .ndim = 2, .mesh = { 2, 2 }, .random = true },
		{ .name = "space-on-2", .ndim = 1, .mesh = { 2, 1 }, .space = true },
		{ .name = "space-on-3", .ndim = 1, .mesh = { 3, 1 }, .space = true },
	};
	language_init();
	for (size_t i = 0; argc > 1 && i < sizeof ways / sizeof ways[0]; i++) {
		if (argc > 2 && strcmp(argv[2], ways[i].name))
			continue;
		const char *why = run(argv[1], &ways[i]);
		if (why && !strcmp(why, "skip"))
			continue;
		printf("%s %s-%s%s%s\n", why ? "not ok" : "ok", base(argv[1]), ways[i].name, why ? ": " : "",
			why ? why : "");
	}
	arena_free(&lasting);
	return 0;
}
