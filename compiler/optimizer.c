/* Updates, schedules and clipping, as nodes.
 *
 * The learning rate is a value: a constant, or computed from the number of the step, which is an input of the training graph
 * that the program loads like any other (train.step, 0 first).  State of an optimizer (w.m, w.v) is a parameter that no
 * gradient reaches, updated in place.  Formulas are those of PyTorch: weight decay is added to the gradient, except in the
 * decoupled optimizers (adamw, lion); moments are corrected for their start. */
#include "compiler.h"

#include <math.h>
#include <string.h>

typedef struct Make { Graph *g; Loc loc; DType dt; bool bad; } Make;

static Value *num(Make *m, double v)
{
	return graph_const(m->g, tensor_scalar(m->g->arena, m->dt, v), "num");
}

static Value *op2(Make *m, const char *op, Value *a, Value *b)
{
	Value *r = a && b ? build(m->g, m->loc, op, NULL, 1, NULL, 2, a, b) : NULL;
	m->bad |= !r;
	return r;
}

static Value *op1(Make *m, const char *op, Value *a)
{
	Value *r = a ? build(m->g, m->loc, op, NULL, 1, NULL, 1, a) : NULL;
	m->bad |= !r;
	return r;
}

static Value *add(Make *m, Value *a, Value *b) { return op2(m, "Add", a, b); }
static Value *mul(Make *m, Value *a, Value *b) { return op2(m, "Mul", a, b); }
static Value *scale(Make *m, Value *a, double f) { return f == 1 ? a : mul(m, a, num(m, f)); }

/* ---- arguments ---- */

static double given(const Arg *call, const char *key, double otherwise)
{
	const Arg *a = call ? arg_find(call->arg, call->narg, key) : NULL;
	return !a ? otherwise : a->kind == ARG_INT ? (double)a->i : a->f;
}

static double beta(const Arg *call, int i, double otherwise)
{
	const Arg *a = call ? arg_find(call->arg, call->narg, "betas") : NULL;
	return a && i < a->narg ? (a->arg[i].kind == ARG_INT ? (double)a->arg[i].i : a->arg[i].f) : otherwise;
}

/* The last group that names w; NULL when none does. */
static const Arg *group_of(const Annot *train, const Value *w)
{
	const Arg *found = NULL;
	for (int i = 0; i < train->narg; i++) {
		const Arg *a = &train->arg[i];
		if (strcmp(a->param, "group"))
			continue;
		for (int k = 0; k < a->narg; k++) {
			if (strcmp(a->arg[k].param, "names"))
				continue;
			if (a->arg[k].s && name_match(a->arg[k].s, w->name))
				found = a;
			for (int j = 0; j < a->arg[k].narg; j++)
				if (a->arg[k].arg[j].s && name_match(a->arg[k].arg[j].s, w->name))
					found = a;
		}
	}
	return found;
}

/* ---- the learning rate ---- */

/* The number of the step, as an input of the graph. */
static Value *step_value(Make *m)
{
	Name name = name_of("train.step");
	Value *v = graph_find(m->g, name);
	if (v)
		return v;
	v = graph_value_here(m->g, name, m->loc);
	v->type = type_tensor(m->g->arena, DT_FLOAT, 0, NULL);
	v->input = v->declared = true;
	arena_push(m->g->arena, m->g->in, m->g->nin, v);
	return v;
}

static Value *clamp01(Make *m, Value *v)
{
	return op2(m, "Min", op2(m, "Max", v, num(m, 0)), num(m, 1));
}

/* low + (lr - low) * share, as a share of lr. */
static Value *down_to(Make *m, Value *share, double low, double lr)
{
	double f = lr > 0 ? low / lr : 0;
	return add(m, scale(m, share, 1 - f), num(m, f));
}

/* What the learning rate is multiplied with at a step; NULL: always 1. */
static Value *schedule(Make *m, const Arg *s, double lr)
{
	if (!s)
		return NULL;
	const char *k = s->s;
	double warm = given(s, "warmup", 0), total = given(s, "total", 1), low = given(s, "min", 0), gamma = given(s, "gamma", 0.1);
	double every = given(s, "every", 1);
	Value *t = step_value(m), *f = NULL;
	Value *done = clamp01(m, scale(m, add(m, t, num(m, -warm)), 1 / fmax(total - warm, 1)));
	if (!strcmp(k, "linear"))
		f = down_to(m, op2(m, "Sub", num(m, 1), done), low, lr);
	else if (!strcmp(k, "cosine"))
		f = down_to(m, scale(m, add(m, op1(m, "Cos", scale(m, done, acos(-1))), num(m, 1)), 0.5), low, lr);
	else if (!strcmp(k, "polynomial"))
		f = down_to(m, op2(m, "Pow", op2(m, "Sub", num(m, 1), done), num(m, given(s, "power", 1))), low, lr);
	else if (!strcmp(k, "step"))
		f = op2(m, "Pow", num(m, gamma), op1(m, "Floor", scale(m, t, 1 / every)));
	else if (!strcmp(k, "exponential"))
		f = op2(m, "Pow", num(m, given(s, "gamma", 1)), scale(m, t, 1 / every));
	else if (!strcmp(k, "wsd")) {
		double decay = given(s, "decay", 1);
		Value *end = clamp01(m, scale(m, add(m, t, num(m, decay - total)), 1 / decay));
		f = down_to(m, op2(m, "Sub", num(m, 1), end), low, lr);
	} else if (!strcmp(k, "inverse_sqrt")) {
		Value *n = add(m, t, num(m, 1));
		return op2(m, "Min", scale(m, n, 1 / warm), op1(m, "Sqrt", op2(m, "Div", num(m, warm), n)));
	} else if (!strcmp(k, "multistep")) {
		const Arg *at = arg_find(s->arg, s->narg, "milestones");
		Value *count = num(m, 0);
		for (int i = 0; at && i < at->narg; i++)
			count = add(m, count, clamp01(m, add(m, t, num(m, 1 - (double)at->arg[i].i))));
		f = op2(m, "Pow", num(m, gamma), count);
	} else if (strcmp(k, "constant")) {
		err_at(s->loc, "this back end has no schedule %s yet", k);
		m->bad = true;
	}
	Value *rise = warm > 0 ? op2(m, "Min", scale(m, add(m, t, num(m, 1)), 1 / warm), num(m, 1)) : NULL;
	return f && rise ? mul(m, f, rise) : f ? f : rise;
}

/* ---- clipping ---- */

static Value *sum_all(Make *m, Value *v)
{
	Value *r = v ? build(m->g, m->loc, "ReduceSum", "keepdims=0", 1, NULL, 1, v) : NULL;
	m->bad |= !r;
	return r;
}

static void clip(Make *m, const Arg *c, Value **grad, int n)
{
	double max = given(c, "max", 1);
	if (!strcmp(c->s, "value")) {
		for (int i = 0; i < n; i++)
			if (grad[i])
				grad[i] = op2(m, "Max", op2(m, "Min", grad[i], num(m, max)), num(m, -max));
		return;
	}
	Value *all = NULL;
	for (int i = 0; i < n; i++)
		if (grad[i]) {
			Value *s = sum_all(m, mul(m, grad[i], grad[i]));
			all = all ? add(m, all, s) : s;
		}
	if (!all)
		return;
	Value *f = op2(m, "Min", op2(m, "Div", num(m, max), add(m, op1(m, "Sqrt", all), num(m, 1e-6))), num(m, 1));
	for (int i = 0; i < n; i++)
		if (grad[i])
			grad[i] = mul(m, grad[i], f);
}

/* ---- updates ---- */

/* State of w: zero (or another constant) at the start. */
static Value *state(Make *m, const Value *w, const char *suffix, double start)
{
	Graph *g = m->g;
	Value *v = graph_fresh(g, name_fmt("%s.%s", w->name, suffix));
	Annot *a = arena_new(g->arena, Annot);
	Arg how = { .kind = start == 0 ? ARG_WORD : ARG_CALL, .s = name_of(start == 0 ? "zeros" : "constant") };
	Arg number = { .kind = ARG_FLOAT, .f = start };
	if (start != 0)
		arena_push(g->arena, how.arg, how.narg, number);
	a->name = name_of("init");
	arena_push(g->arena, a->arg, a->narg, how);
	if (annot_check(a, ON_VALUE))
		die("the start of %s is refused", v->name);
	annot_add(&v->annot, a);
	v->type = w->type;
	v->loc = w->loc;
	v->init = v->param = v->declared = true;
	arena_push(g->arena, g->init, g->ninit, v);
	return v;
}

/* The value that takes the place of old: old * keep + more, or whatever is given. */
static Value *into(Make *m, Value *v, Value *old)
{
	if (!v)
		return NULL;
	graph_rename(m->g, v, name_fmt("%s.next", old->name));
	v->into = old;
	return v;
}

static Value *average(Make *m, Value *old, double keep, Value *more)
{
	return into(m, add(m, scale(m, old, keep), scale(m, more, 1 - keep)), old);
}

/* v / (1 - b^(t + 1)) */
static Value *corrected(Make *m, Value *v, double b)
{
	Value *t = add(m, step_value(m), num(m, 1));
	return op2(m, "Div", v, op2(m, "Sub", num(m, 1), op2(m, "Pow", num(m, b), t)));
}

static void sgd(Make *m, Value *w, Value *g, Value *lr, double mu, double damp, bool nesterov)
{
	if (mu != 0) {
		Value *old = state(m, w, "m", 0), *v = into(m, add(m, scale(m, old, mu), scale(m, g, 1 - damp)), old);
		g = nesterov ? add(m, g, scale(m, v, mu)) : v;
	}
	Value *next = graph_fresh(m->g, name_fmt("%s.next", w->name));
	if (!g || !build(m->g, m->loc, "SGD", NULL, 1, &next, 3, w, g, lr))
		m->bad = true;
	next->into = w;
}

static void apply(Make *m, Value *w, Value *direction, Value *lr)
{
	sgd(m, w, direction, lr, 0, 0, false);
}

/* Which arguments an optimizer has here; others are refused. */
static const struct { const char *name, *args; } known[] = {
	{ "sgd", " lr momentum weight_decay dampening nesterov " }, { "momentum", " lr momentum weight_decay " }, { "nesterov", " lr momentum weight_decay " },
	{ "adam", " lr betas eps weight_decay " }, { "adamw", " lr betas eps weight_decay " }, { "rmsprop", " lr alpha eps weight_decay " },
	{ "adagrad", " lr eps lr_decay weight_decay initial " }, { "lion", " lr betas weight_decay " },
};

int optimizer_check(const Arg *a)
{
	const char *args = NULL;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (!strcmp(known[i].name, a->s))
			args = known[i].args;
	if (!args) {
		err_at(a->loc, "this back end has no optimizer %s yet", a->s);
		return -1;
	}
	for (int i = 0; i < a->narg; i++)
		if (!strstr(args, name_fmt(" %s ", a->arg[i].param))) {
			err_at(a->arg[i].loc, "this back end has no %s in %s yet", a->arg[i].param, a->s);
			return -1;
		}
	return 0;
}

/* One parameter: hyper-parameters come from its group, else from the optimizer. */
static void update(Make *m, const Arg *o, const Arg *grp, Value *w, Value *g, Value *lr)
{
	const char *k = o ? o->s : "sgd";
	double wd = given(grp, "weight_decay", given(o, "weight_decay", !strcmp(k, "adamw") ? 0.01 : 0)), eps = given(grp, "eps", given(o, "eps", !strcmp(k, "adagrad") ? 1e-10 : 1e-8));
	double mu = given(grp, "momentum", given(o, "momentum", !strcmp(k, "sgd") ? 0 : 0.9));
	double b1 = beta(grp, 0, beta(o, 0, 0.9)), b2 = beta(grp, 1, beta(o, 1, !strcmp(k, "lion") ? 0.99 : 0.999));
	bool apart = !strcmp(k, "adamw") || !strcmp(k, "lion");
	if (wd != 0 && !apart)
		g = add(m, g, scale(m, w, wd));
	if (!strcmp(k, "adam") || !strcmp(k, "adamw")) {
		Value *m1 = average(m, state(m, w, "m", 0), b1, g), *m2 = average(m, state(m, w, "v", 0), b2, mul(m, g, g));
		Value *d = op2(m, "Div", corrected(m, m1, b1), add(m, op1(m, "Sqrt", corrected(m, m2, b2)), num(m, eps)));
		apply(m, w, apart && wd != 0 ? add(m, d, scale(m, w, wd)) : d, lr);
	} else if (!strcmp(k, "rmsprop")) {
		Value *v = average(m, state(m, w, "v", 0), given(o, "alpha", 0.99), mul(m, g, g));
		apply(m, w, op2(m, "Div", g, add(m, op1(m, "Sqrt", v), num(m, eps))), lr);
	} else if (!strcmp(k, "adagrad")) {
		double slow = given(o, "lr_decay", 0);
		Value *old = state(m, w, "v", given(o, "initial", 0)), *v = into(m, add(m, old, mul(m, g, g)), old);
		Value *d = op2(m, "Div", g, add(m, op1(m, "Sqrt", v), num(m, eps)));
		apply(m, w, slow != 0 ? op2(m, "Div", d, add(m, scale(m, step_value(m), slow), num(m, 1))) : d, lr);
	} else if (!strcmp(k, "lion")) {
		Value *old = state(m, w, "m", 0), *u = op1(m, "Sign", add(m, scale(m, old, b1), scale(m, g, 1 - b1)));
		average(m, old, b2, g);
		apply(m, w, wd != 0 ? add(m, u, scale(m, w, wd)) : u, lr);
	} else {
		sgd(m, w, g, lr, mu, given(o, "dampening", 0), !strcmp(k, "nesterov") || (o && arg_flag(o->arg, o->narg, "nesterov")));
	}
}

int optimizer_build(Graph *g, const Annot *train, Value **param, Value **grad, int n)
{
	const Arg *o = arg_find(train->arg, train->narg, "optimizer"), *c = arg_find(train->arg, train->narg, "clip");
	double lr = given(o, "lr", 0.1);
	Make m = { g, train->loc, DT_FLOAT, false };
	Value *rate = schedule(&m, arg_find(train->arg, train->narg, "schedule"), lr);
	if (c)
		clip(&m, c, grad, n);
	for (int i = 0; i < n && !m.bad; i++) {
		if (!grad[i])
			continue;
		const Arg *grp = group_of(train, param[i]);
		double mine = given(grp, "lr", lr) * given(grp, "lr_scale", 1);
		m.loc = param[i]->loc;
		m.dt = param[i]->type->elem;
		update(&m, o, grp, param[i], grad[i], rate ? scale(&m, rate, mine) : num(&m, mine));
	}
	return m.bad ? -1 : 0;
}
