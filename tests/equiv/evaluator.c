/* evaluator MODEL STEPS [TRAIN [NAME...]]: trains as a generated program of one rank does, but by the reference
 * evaluator: the training graph is evaluated step after step on the start values and the data that the runtime makes.
 * Prints the losses in the same form, and after each step the elements of the named parameters and states.  TRAIN goes
 * before what the model says. */
#include "compiler.h"
#include "ops/ops.h"
#include "comm.h"

#include <stdlib.h>
#include <string.h>

static Tensor *room(Arena *a, const Type *t)
{
	return tensor_new(a, t->elem, t->ndim, t->dim);
}

/* A value as a row of the tables, alone in the slab. */
static RtTensor row(Ctx *c, const Value *v, Tensor *t)
{
	RtTensor r = { .name = v->name, .type = RT_BOOL, .naxis = t->ndim };
	if (t->dtype == DT_FLOAT)
		r.type = RT_F32;
	else if (t->dtype == DT_INT64)
		r.type = RT_I64;
	for (int a = 0; a < t->ndim; a++)
		r.dim[a] = t->dim[a];
	c->slab = (unsigned char *)t->data;
	return r;
}

static int start(Ctx *c, Value *v, Tensor **held, Arena *a)
{
	double x, y;
	static const int starts[] = { [INIT_FILL] = RT_FILL, [INIT_NORMAL] = RT_NORMAL, [INIT_UNIFORM] = RT_UNIFORM };
	Init how = tables_init_of(v, &x, &y);
	if (how == INIT_NONE)
		return -1;
	held[v->id] = room(a, v->type);
	RtKept r = { .t = row(c, v, held[v->id]), .a = (float)x, .b = (float)y, .key = tables_key(v->name) };
	r.start = starts[how];
	return rt_start(c, &r, NULL);
}

static Tensor *load(Ctx *c, const Value *v, Arena *a)
{
	Tensor *t = room(a, v->type);
	RtInput r = { .t = row(c, v, t), .feed = RT_SAMPLES };
	if (!strcmp(v->name, "train.step"))
		r.feed = RT_STEP;
	else if (!strcmp(v->name, "train.micro"))
		r.feed = RT_MICRO;
	rt_load_one(c, &r);
	return t;
}

static int print_state(const Graph *g, Tensor **held, const char *name)
{
	const Value *v = graph_find(g, name_of(name));
	const Tensor *t = v ? held[v->id] : NULL;
	if (!t)
		return -1;
	printf("%s", name);
	for (int64_t i = 0; i < tensor_elements(t); i++)
		printf(" %.9g", tensor_get(t, i));
	putchar('\n');
	return 0;
}

/* One node on what the values hold now.  A result that lives in the storage of another value is seen there, too. */
static int run(Node *n, Tensor **held, Arena *a)
{
	Tensor *in[64] = { 0 }, *out[64] = { 0 };
	if (n->nin > 64 || n->nout > 64)
		return -1;
	for (int i = 0; i < n->nin; i++)
		in[i] = !n->in[i] ? NULL : held[n->in[i]->id] ? held[n->in[i]->id] : n->in[i]->data;
	if (eval_node(n, in, out, a, false))
		return -1;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			held[n->out[i]->id] = out[i];
			if (n->out[i]->into)
				held[n->out[i]->into->id] = out[i];
		}
	return 0;
}

/* A step: what begins it, the body once for each micro-batch, the update. */
static int step(Ctx *c, Graph *g, Tensor **held, Arena *a)
{
	for (int i = 0; i < g->nnode; i++)
		if (microbatch_begins(g->node[i]) && run(g->node[i], held, a))
			return -1;
	for (c->micro = 0; c->micro < c->program->microbatches; c->micro++) {
		for (int i = 0; i < g->nin; i++)
			held[g->in[i]->id] = load(c, g->in[i], a);
		for (int i = 0; i < g->nnode; i++)
			if (!microbatch_begins(g->node[i]) && !microbatch_updates(g->node[i]) &&
				run(g->node[i], held, a))
				return -1;
	}
	for (int i = 0; i < g->nnode; i++)
		if (microbatch_updates(g->node[i]) && run(g->node[i], held, a))
			return -1;
	return 0;
}

static int train(Model *m, int steps, char **names)
{
	Graph *g = m->graph;
	Plan *p = m->plan;
	RtProgram program = { .nrank = 1, .batch = p->batch, .microbatches = p->train.microbatches,
		.seed = (uint64_t)p->train.seed, .data = { .format = RT_POINTS, .classes = 2, .noise = 1 } };
	Ctx c = { .program = &program, .nrank = 1, .seed = program.seed };
	random_seed = program.seed;
	Tensor **held = arena_array(&m->arena, Tensor *, g->nvalue + 1);
	for (int i = 0; i < g->ninit; i++)
		if (!g->init[i]->data && start(&c, g->init[i], held, &m->arena))
			return 1;
	for (c.step = 0; c.step < steps; c.step++) {
		if (step(&c, g, held, &m->arena))
			return 1;
		printf("step %6d  loss %.7f\n", (int)c.step, tensor_get(held[g->out[0]->id], 0));
		for (char **n = names; *n; n++)
			if (print_state(g, held, *n))
				return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	language_init();
	opt.stop_after = "plan";
	Model *m = read_model(argv[1]);
	if (!m || (argc > 3 && parse_train(argv[3], m)) || (argc == 3 && parse_train("data: points(classes: 2)", m)) ||
		resolve_run(m))
		return 1;
	train_bind_batch(m);
	int bad = passes_run(m) || train(m, atoi(argv[2]), argv + (argc > 4 ? 4 : argc));
	model_free(m);
	return bad;
}
