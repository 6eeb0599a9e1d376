/* evaluator MODEL STEPS [TRAIN [NAME...]]: trains as a generated program of one rank does, but by the reference evaluator: the
 * training graph is evaluated step after step on the start values and the data that the runtime makes.  Prints the losses in
 * the same form, and after each step the elements of the named parameters and states.  TRAIN goes before what the model says. */
#include "compiler.h"
#include "rt.h"

#include <stdlib.h>
#include <string.h>

static Tensor *room(Arena *a, const Type *t)
{
	return tensor_new(a, t->elem, t->rank, t->dim);
}

/* A value as a row of the tables, alone in the slab. */
static RtTensor row(Ctx *c, const Value *v, Tensor *t)
{
	RtTensor r = { .name = v->name, .type = t->dtype == DT_FLOAT ? RT_F32 : t->dtype == DT_INT64 ? RT_I64 : RT_BOOL, .rank = t->rank };
	for (int a = 0; a < t->rank; a++)
		r.dim[a] = t->dim[a];
	c->slab = (unsigned char *)t->data;
	return r;
}

static int start(Ctx *c, Value *v, Arena *a)
{
	double x, y;
	const char *how = emit_init(v, &x, &y);
	if (!how)
		return -1;
	v->data = room(a, v->type);
	RtKept r = { .t = row(c, v, v->data), .a = (float)x, .b = (float)y, .key = emit_key(v->name) };
	r.start = !strcmp(how, "fill") ? RT_FILL : !strcmp(how, "normal") ? RT_NORMAL : RT_UNIFORM;
	return rt_start(c, &r, NULL);
}

static Tensor *load(Ctx *c, const Value *v, Arena *a)
{
	Tensor *t = room(a, v->type);
	RtInput r = { .t = row(c, v, t), .feed = strcmp(v->name, "train.step") ? RT_SAMPLES : RT_STEP };
	rt_load_one(c, &r);
	return t;
}

static int print_state(const Graph *g, const char *name)
{
	const Value *v = graph_find(g, name_of(name));
	if (!v || !v->data)
		return -1;
	printf("%s", name);
	for (int64_t i = 0; i < tensor_elements(v->data); i++)
		printf(" %.9g", tensor_get(v->data, i));
	putchar('\n');
	return 0;
}

static int train(Model *m, int steps, char **names)
{
	Graph *g = m->graph;
	Plan *p = m->plan;
	RtRank me = { 0 };
	RtProgram program = { .nrank = 1, .rank = &me, .batch = p->batch, .seed = (uint64_t)p->train.seed, .data = { RT_POINTS, 2, 1 } };
	Ctx c = { .program = &program, .me = &me, .nrank = 1, .seed = program.seed };
	int nloss = g->nout;
	for (int i = 0; i < g->ninit; i++)
		if (!g->init[i]->data && start(&c, g->init[i], &m->arena))
			return 1;
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->into)
			arena_push(&m->arena, g->out, g->nout, g->value[i]);
	for (c.step = 0; c.step < steps; c.step++) {
		Tensor **in = arena_array(&m->arena, Tensor *, g->nin + 1), **out = arena_array(&m->arena, Tensor *, g->nout + 1);
		for (int i = 0; i < g->nin; i++)
			in[i] = load(&c, g->in[i], &m->arena);
		if (eval_graph(g, in, out, &m->arena, (EvalOpts){ 0 }))
			return 1;
		for (int i = nloss; i < g->nout; i++)
			g->out[i]->into->data = out[i];
		printf("step %6d  loss %.7f\n", (int)c.step, tensor_get(out[0], 0));
		for (char **n = names; *n; n++)
			if (print_state(g, *n))
				return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	op_init();
	opt.stop_after = "plan";
	Model *m = model_read(argv[1]);
	if (!m || (argc > 3 && parse_train(argv[3], m)) || (argc == 3 && parse_train("data: points(classes: 2)", m)) || annot_resolve(m))
		return 1;
	train_bind_batch(m);
	int bad = passes_run(m) || train(m, atoi(argv[2]), argv + (argc > 4 ? 4 : argc));
	model_free(m);
	return bad;
}
