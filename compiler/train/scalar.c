/* Scalar arithmetic as nodes: how the learning rate and updates are built (lr.c, optimizer.c).  A failure sets
 * Scalars.bad and gives NULL, which later calls accept, so that formulas need no checks. */
#include "train/train.h"

Value *scalar_num(Scalars *m, double v)
{
	return graph_const(m->g, tensor_scalar(m->g->arena, m->dt, v), "num");
}

Value *scalar_op1(Scalars *m, const char *op, Value *a)
{
	Value *r = a ? build(m->g, m->loc, op, NULL, 1, NULL, 1, a) : NULL;
	m->bad |= !r;
	return r;
}

Value *scalar_both(Scalars *m, const char *op, Value *const in[2])
{
	Value *r = in[0] && in[1] ? build_list(m->g, m->loc, op, NULL, 1, NULL, 2, in) : NULL;
	m->bad |= !r;
	return r;
}

Value *scalar_scaled(Scalars *m, Value *a, double f)
{
	return f == 1 ? a : scalar_op2(m, "Mul", a, scalar_num(m, f));
}

Value *scalar_cast(Scalars *m, Value *v, DType to)
{
	if (v && v->type->elem == to)
		return v;
	char attr[32];
	snprintf(attr, sizeof attr, "to=%d", (int)to);
	Value *r = v ? build(m->g, m->loc, "Cast", attr, 1, NULL, 1, v) : NULL;
	m->bad |= !r;
	return r;
}

double scalar_given(const Arg *call, const char *key, double otherwise)
{
	const Arg *a = call ? arg_find(call->arg, call->narg, key) : NULL;
	if (!a)
		return otherwise;
	return a->kind == ARG_INT ? (double)a->i : a->f;
}
