/* The loss scale of float16, as nodes.
 *
 * float16 has no numbers below 6e-8, but gradients are often smaller.  So the backward pass starts from train.scale
 * instead of 1, and gradients of parameters are divided by it, in float, before any other node reads them.  When one of
 * them is not finite, the scale was too large: every update of this step (parameters, states of the optimizer,
 * averages, running statistics) is replaced by the old value, and the scale is lowered.  After `every` steps in a row
 * without that it is raised.
 *
 * train.scale, train.good (such steps since the last change) and train.taken (updates so far, by which schedules and
 * corrections of moments count) live from step to step like the state of an optimizer. */
#include "train/train.h"

#include <string.h>

/* The bounds of the scale: beyond the range of float16 no scale can help. */
static const double most = 0x1p24, least = 0x1p-24;

static Value *where(Scalars *m, Value *is, Value *a, Value *b)
{
	Value *r = is && a && b ? build(m->g, m->loc, "Where", NULL, 1, NULL, 3, is, a, b) : NULL;
	m->bad |= !r;
	return r;
}

/* v replaces old in its storage. */
static void put(Scalars *m, Value *old, Value *v)
{
	if (!v)
		return;
	graph_rename(m->g, v, name_fmt("%s.next", old->name));
	v->into = old;
}

static Value *kept(Scalars *m, const char *name, double start)
{
	return optimizer_state(m->g, name_of(name), type_tensor(m->g->arena, m->dt, 0, NULL), m->loc, start);
}

LossScale *loss_scale_begin(Graph *g, const Annot *train)
{
	const Arg *p = arg_find(train->arg, train->narg, "precision");
	if (!p || !p->s || strcmp(p->s, "fp16"))
		return NULL;
	LossScale *s = arena_new(g->scratch, LossScale);
	s->m = (Scalars){ g, train->loc, DT_FLOAT, false };
	s->call = p;
	s->scale = kept(&s->m, "train.scale", scalar_given(p, "loss_scale", 65536));
	s->good = kept(&s->m, "train.good", 0);
	s->taken = kept(&s->m, "train.taken", 0);
	return s;
}

int loss_scale_seed(LossScale *s, const Value *loss)
{
	Graph *g = s ? s->m.g : NULL;
	for (int i = 0; s && i < g->nnode; i++) {
		Node *n = g->node[i];
		if (strcmp(n->op, "OnesLike") || n->in[0] != loss)
			continue;
		Value *one = n->out[0], *seed = scalar_cast(&s->m, s->scale, loss->type->elem);
		if (loss->type->ndim != 0)
			seed = scalar_op2(&s->m, "Mul", one, seed);
		if (!seed)
			return -1;
		graph_replace(g, one, seed);
		if (loss->type->ndim != 0)
			seed->def->in[0] = one;
		return 0;
	}
	return 0;
}

Value *loss_scale_up(LossScale *s, Value *grad)
{
	return s && grad ? scalar_op2(&s->m, "Mul", grad, scalar_cast(&s->m, s->scale, grad->type->elem)) : grad;
}

/* A number that is 0 if the gradient is finite, else NAN: x - x is that for each element, and so is their sum. */
static Value *check(LossScale *s, Value *grad)
{
	Scalars *m = &s->m;
	Value *d = scalar_op2(m, "Sub", grad, grad);
	Value *sum = d ? build(m->g, m->loc, "ReduceSum", "keepdims=0", 1, NULL, 1, d) : NULL;
	m->bad |= !sum;
	return scalar_cast(m, sum, m->dt);
}

int loss_scale_gradients(LossScale *s, Value **param, Value **grad, int n)
{
	if (!s)
		return 0;
	Scalars *m = &s->m;
	Value *inverse = scalar_op2(m, "Div", scalar_num(m, 1), s->scale), *all = NULL;
	for (int i = 0; i < n && !m->bad; i++) {
		if (!grad[i])
			continue;
		if (grad[i]->name == name_fmt("%s.grad", param[i]->name))
			graph_rename(m->g, grad[i], name_fmt("%s.scaled", grad[i]->name));
		Value *sum = check(s, grad[i]);
		all = all ? scalar_op2(m, "Add", all, sum) : sum;
		grad[i] = scalar_op2(m, "Mul", grad[i], scalar_cast(m, inverse, grad[i]->type->elem));
	}
	s->finite = all ? scalar_op2(m, "Equal", all, scalar_num(m, 0)) : NULL;
	if (s->finite)
		graph_rename(m->g, s->finite, name_of("train.finite"));
	return m->bad ? -1 : 0;
}

/* Makes all updates conditional: a skipped update keeps the old value. */
static void guard(LossScale *s)
{
	Graph *g = s->m.g;
	int n = g->nvalue;
	for (int i = 0; i < n && !s->m.bad; i++) {
		Value *v = g->value[i], *old = v->into;
		if (!old)
			continue;
		v->into = NULL;
		graph_rename(g, v, name_fmt("%s.tried", old->name));
		put(&s->m, old, where(&s->m, s->finite, v, old));
	}
}

int loss_scale_end(LossScale *s)
{
	if (!s || !s->finite)
		return 0;
	Scalars *m = &s->m;
	guard(s);
	Value *zero = scalar_num(m, 0), *one = scalar_num(m, 1), *good = scalar_op2(m, "Add", s->good, one);
	Value *raise = scalar_op2(m, "GreaterOrEqual", good, scalar_num(m, scalar_given(s->call, "every", 2000)));
	Value *up = scalar_op2(m, "Min", scalar_scaled(m, s->scale, scalar_given(s->call, "growth", 2)),
		scalar_num(m, most));
	Value *down = scalar_op2(m, "Max", scalar_scaled(m, s->scale, scalar_given(s->call, "backoff", 0.5)),
		scalar_num(m, least));
	put(m, s->scale, where(m, s->finite, where(m, raise, up, s->scale), down));
	put(m, s->good, where(m, s->finite, where(m, raise, zero, good), zero));
	put(m, s->taken, where(m, s->finite, scalar_op2(m, "Add", s->taken, one), s->taken));
	return m->bad ? -1 : 0;
}
