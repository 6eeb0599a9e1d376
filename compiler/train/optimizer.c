/* Clipping and updates, as nodes.
 *
 * State of an optimizer (w.m, w.v) and averages of weights (w.ema) are parameters that no gradient reaches, updated in
 * place.  Formulas are those of PyTorch: weight decay is added to the gradient, except in the decoupled optimizers
 * (adamw, lion); moments are corrected for their start.  LAMB is You et al. 2020 (arXiv 1904.00962, algorithm 2)
 * without a bound on the trust ratio, LARS You et al. 2017 (arXiv 1708.03888, algorithm 1) with the rate applied after
 * the momentum.  The learning rate and the norm of all gradients, by which they are clipped, are the values train.rate
 * and train.norm. */
#include "train/train.h"

#include <math.h>
#include <string.h>

#define add(m, a, b) scalar_op2(m, "Add", a, b)
#define mul(m, a, b) scalar_op2(m, "Mul", a, b)
#define divide(m, a, b) scalar_op2(m, "Div", a, b)
const char optimizer_rate[] = "train.rate", optimizer_norm[] = "train.norm";

bool optimizer_reports(const Value *v)
{
	if (!v->name || v->graph->model->main)
		return false;
	return !strcmp(v->name, optimizer_rate) || !strcmp(v->name, optimizer_norm);
}

static Value *scale(Scalars *m, Value *a, double f) { return scalar_scaled(m, a, f); }
static Value *plus(Scalars *m, Value *a, double f) { return f == 0 ? a : add(m, a, scalar_num(m, f)); }

/* ---- arguments ---- */

static double beta(const Arg *call, int i, double otherwise)
{
	const Arg *a = call ? arg_find(call->arg, call->narg, "betas") : NULL;
	if (!a || i >= a->narg)
		return otherwise;
	return a->arg[i].kind == ARG_INT ? (double)a->arg[i].i : a->arg[i].f;
}

/* The last group that names w; NULL: none does. */
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

/* ---- norms and clipping ---- */

static Value *squares(Scalars *m, Value *v)
{
	Value *r = v ? build(m->g, m->loc, "SumSquare", NULL, 1, NULL, 1, v) : NULL;
	m->bad |= !r;
	return r;
}

static Value *norm(Scalars *m, Value *v) { return scalar_op1(m, "Sqrt", squares(m, v)); }

/* The number by which all gradients are multiplied so that their norm is at most `max`; NULL: there is no gradient. */
static Value *clip_factor(Scalars *m, const Arg *c, Value *const *grad, int n)
{
	double max = scalar_given(c, "max", 1);
	Value *all = NULL;
	for (int i = 0; i < n; i++)
		if (grad[i]) {
			Value *s = scalar_cast(m, squares(m, grad[i]), m->dt);
			all = all ? add(m, all, s) : s;
		}
	if (!all)
		return NULL;
	graph_rename(m->g, all, name_of("train.squares"));
	Value *length = scalar_op1(m, "Sqrt", all);
	if (length)
		graph_rename(m->g, length, name_of(optimizer_norm));
	return scalar_op2(m, "Min", divide(m, scalar_num(m, max), plus(m, length, 1e-6)), scalar_num(m, 1));
}

/* A gradient, clipped just before its update: one loop does both.  factor: NULL if each element is clipped. */
static Value *clipped(Scalars *m, const Arg *c, Value *factor, Value *grad)
{
	double max = scalar_given(c, "max", 1);
	if (factor)
		return mul(m, grad, scalar_cast(m, factor, grad->type->elem));
	return scalar_op2(m, "Max", scalar_op2(m, "Min", grad, scalar_num(m, max)), scalar_num(m, -max));
}

/* ---- state ---- */

Value *optimizer_state(Graph *g, Name name, Type *type, Loc loc, double start)
{
	Value *v = graph_fresh(g, name);
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
	v->type = type;
	v->loc = loc;
	v->init = v->param = v->declared = true;
	arena_push(g->arena, g->init, g->ninit, v);
	return v;
}

/* State of w: zero (or another constant) at the start. */
static Value *state(Scalars *m, const Value *w, const char *suffix, double start)
{
	return optimizer_state(m->g, name_fmt("%s.%s", w->name, suffix), w->type, w->loc, start);
}

/* v replaces old in its storage. */
static Value *into(Scalars *m, Value *v, Value *old)
{
	if (!v)
		return NULL;
	graph_rename(m->g, v, name_fmt("%s.next", old->name));
	v->into = old;
	return v;
}

/* keep * old + (1 - keep) * more, in the storage of old */
static Value *average(Scalars *m, Value *old, double keep, Value *more)
{
	return into(m, add(m, scale(m, old, keep), scale(m, more, 1 - keep)), old);
}

/* ---- updates ---- */

/* Numbers that many updates read are computed once, by kind, the number they are computed from, and type. */
typedef struct Number { char kind; double of; DType dt; Value *v; } Number;
typedef struct Known { Number *list; int n; } Known;

static Value **number_known(Graph *g, Known *f, char kind, double of, DType dt)
{
	for (int i = 0; i < f->n; i++)
		if (f->list[i].kind == kind && f->list[i].of == of && f->list[i].dt == dt)
			return &f->list[i].v;
	Number one = { kind, of, dt, NULL };
	arena_push(g->arena, f->list, f->n, one);
	return &f->list[f->n - 1].v;
}

/* The inputs of one update. */
typedef struct Update {
	Scalars m;
	Known *shared;
	const Arg *o, *grp;             /* the optimizer, the group of w; each may be NULL */
	Value *w, *g, *lr;
	double wd, eps, mu, b1, b2;
} Update;

static bool flag(const Update *u, const char *key)
{
	return u->o && arg_flag(u->o->arg, u->o->narg, key);
}

/* w - lr * direction, in the storage of w */
static void apply(Update *u, Value *direction)
{
	Value *next = graph_fresh(u->m.g, name_fmt("%s.next", u->w->name));
	if (!direction || !build(u->m.g, u->m.loc, "SGD", NULL, 1, &next, 3, u->w, direction, u->lr))
		u->m.bad = true;
	next->into = u->w;
}

/* Weight decay, added to the direction or to the gradient. */
static Value *decayed(Update *u, Value *d)
{
	return u->wd != 0 ? add(&u->m, d, scale(&u->m, u->w, u->wd)) : d;
}

/* 1 / (1 - b^(t + 1)), or its root: computed in double. */
static Value *correction(Update *u, double b, bool root)
{
	Value **known = number_known(u->m.g, u->shared, root ? 'r' : 'c', b, u->m.dt);
	if (*known)
		return *known;
	Scalars d = { u->m.g, u->m.loc, DT_DOUBLE, false };
	Value *t = plus(&d, lr_step(&d), 1), *one = scalar_num(&d, 1);
	Value *c = scalar_op2(&d, "Sub", one, scalar_op2(&d, "Pow", scalar_num(&d, b), t));
	c = scalar_cast(&d, divide(&d, scalar_num(&d, 1), root ? scalar_op1(&d, "Sqrt", c) : c), u->m.dt);
	u->m.bad |= d.bad;
	return *known = c;
}

/* The rate of a parameter, in its type. */
static Value *rate_of(Update *u, Value *rate, Value *base, double lr)
{
	double mine = scalar_given(u->grp, "lr", lr) * scalar_given(u->grp, "lr_scale", 1);
	Scalars wide = { u->m.g, u->m.loc, DT_DOUBLE, false };
	Value **known = number_known(u->m.g, u->shared, 'l', mine, u->m.dt);
	if (!*known) {
		Value *v = base;
		if (mine != lr)
			v = rate ? scalar_scaled(&wide, rate, mine) : scalar_num(&wide, mine);
		*known = scalar_cast(&wide, v, u->m.dt);
	}
	u->m.bad |= wide.bad;
	return *known;
}

/* Adam's direction: the corrected first moment over the root of the corrected second. */
static Value *adam_direction(Update *u)
{
	Scalars *m = &u->m;
	Value *m1 = average(m, state(m, u->w, "m", 0), u->b1, u->g), *square = mul(m, u->g, u->g);
	Value *m2 = average(m, state(m, u->w, "v", 0), u->b2, square);
	if (flag(u, "amsgrad")) {
		Value *most = state(m, u->w, "vmax", 0);
		m2 = into(m, scalar_op2(m, "Max", most, m2), most);
	}
	Value *root = mul(m, scalar_op1(m, "Sqrt", m2), correction(u, u->b2, true));
	return divide(m, mul(m, m1, correction(u, u->b1, false)), plus(m, root, u->eps));
}

static void adam(Update *u)
{
	u->g = decayed(u, u->g);
	apply(u, adam_direction(u));
}

static void adamw(Update *u)
{
	apply(u, decayed(u, adam_direction(u)));
}

/* a where both norms are above 0, else 1 */
static Value *where_both(Update *u, Value *p, Value *q, Value *a)
{
	Scalars *m = &u->m;
	Value *yes = scalar_op2(m, "And", scalar_op2(m, "Greater", p, scalar_num(m, 0)),
		scalar_op2(m, "Greater", q, scalar_num(m, 0)));
	Value *r = yes && a ? build(m->g, m->loc, "Where", NULL, 1, NULL, 3, yes, a, scalar_num(m, 1)) : NULL;
	m->bad |= !r;
	return r;
}

static void lamb(Update *u)
{
	Scalars *m = &u->m;
	Value *d = decayed(u, adam_direction(u)), *wn = norm(m, u->w), *dn = norm(m, d);
	apply(u, mul(m, d, where_both(u, wn, dn, divide(m, wn, dn))));
}

/* The heavy ball: m = mu m + d. */
static Value *heavy(Update *u, Value *d)
{
	if (u->mu == 0)
		return d;
	Value *old = state(&u->m, u->w, "m", 0);
	return into(&u->m, add(&u->m, scale(&u->m, old, u->mu), d), old);
}

static void lars(Update *u)
{
	Scalars *m = &u->m;
	Value *wn = norm(m, u->w), *gn = norm(m, u->g);
	Value *both = plus(m, u->wd != 0 ? add(m, gn, scale(m, wn, u->wd)) : gn, u->eps);
	Value *trust = where_both(u, wn, gn, divide(m, scale(m, wn, scalar_given(u->o, "trust", 0.001)), both));
	Value *d = mul(m, decayed(u, u->g), trust);
	apply(u, heavy(u, d));
}

static void rmsprop(Update *u)
{
	Scalars *m = &u->m;
	double alpha = scalar_given(u->o, "alpha", 0.99);
	u->g = decayed(u, u->g);
	Value *square = mul(m, u->g, u->g), *v = average(m, state(m, u->w, "v", 0), alpha, square);
	if (flag(u, "centered")) {
		Value *mean = average(m, state(m, u->w, "mean", 0), alpha, u->g);
		v = scalar_op2(m, "Sub", v, mul(m, mean, mean));
	}
	Value *d = divide(m, u->g, plus(m, scalar_op1(m, "Sqrt", v), u->eps));
	apply(u, heavy(u, d));
}

static void adagrad(Update *u)
{
	Scalars *m = &u->m;
	double slow = scalar_given(u->o, "lr_decay", 0);
	u->g = decayed(u, u->g);
	Value *old = state(m, u->w, "v", scalar_given(u->o, "initial", 0));
	Value *v = into(m, add(m, old, mul(m, u->g, u->g)), old);
	Value *d = divide(m, u->g, plus(m, scalar_op1(m, "Sqrt", v), u->eps));
	apply(u, slow != 0 ? divide(m, d, plus(m, scale(m, lr_step(m), slow), 1)) : d);
}

static void lion(Update *u)
{
	Scalars *m = &u->m;
	Value *old = state(m, u->w, "m", 0);
	Value *d = scalar_op1(m, "Sign", add(m, scale(m, old, u->b1), scale(m, u->g, 1 - u->b1)));
	average(m, old, u->b2, u->g);
	apply(u, decayed(u, d));
}

/* Dampening is not applied in the first step. */
static void momentum(Update *u, bool nesterov)
{
	Scalars *m = &u->m;
	double damp = scalar_given(u->o, "dampening", 0);
	u->g = decayed(u, u->g);
	if (u->mu != 0) {
		Value *old = state(m, u->w, "m", 0), *more = u->g;
		if (damp != 0) {
			Value *later = scalar_op2(m, "Min", lr_step(m), scalar_num(m, 1));
			more = mul(m, more, plus(m, scale(m, later, -damp), 1));
		}
		Value *v = into(m, add(m, scale(m, old, u->mu), more), old);
		u->g = nesterov ? add(m, u->g, scale(m, v, u->mu)) : v;
	}
	apply(u, u->g);
}

static void sgd(Update *u) { momentum(u, flag(u, "nesterov")); }
static void nesterov(Update *u) { momentum(u, true); }

static const struct Rule { const char *name; void (*update)(Update *); double wd, eps, mu, b1, b2; } rules[] = {
	{ .name = "sgd", .update = sgd },
	{ .name = "momentum", .update = sgd, .mu = 0.9 },
	{ .name = "nesterov", .update = nesterov, .mu = 0.9 },
	{ .name = "adam", .update = adam, .eps = 1e-8, .b1 = 0.9, .b2 = 0.999 },
	{ .name = "adamw", .update = adamw, .wd = 0.01, .eps = 1e-8, .b1 = 0.9, .b2 = 0.999 },
	{ .name = "lamb", .update = lamb, .wd = 0.01, .eps = 1e-6, .b1 = 0.9, .b2 = 0.999 },
	{ .name = "lars", .update = lars, .eps = 1e-9, .mu = 0.9 },
	{ .name = "rmsprop", .update = rmsprop, .eps = 1e-8 },
	{ .name = "adagrad", .update = adagrad, .eps = 1e-10 },
	{ .name = "lion", .update = lion, .b1 = 0.9, .b2 = 0.99 },
};

static const struct Rule *rule_of(const Arg *o)
{
	for (size_t i = 0; o && i < sizeof rules / sizeof rules[0]; i++)
		if (!strcmp(rules[i].name, o->s))
			return &rules[i];
	return &rules[0];
}

/* A number of the group of w, else of the optimizer, else the default. */
static double hyper(const Update *u, const char *key, double otherwise)
{
	return scalar_given(u->grp, key, scalar_given(u->o, key, otherwise));
}

static void update(Update *u)
{
	const struct Rule *r = rule_of(u->o);
	u->wd = hyper(u, "weight_decay", r->wd);
	u->eps = hyper(u, "eps", r->eps);
	u->mu = hyper(u, "momentum", r->mu);
	u->b1 = beta(u->grp, 0, beta(u->o, 0, r->b1));
	u->b2 = beta(u->grp, 1, beta(u->o, 1, r->b2));
	r->update(u);
}

/* The average of the weights after each step.  After the first step it is the weights themselves: k is 0 then. */
static void ema(Scalars *m, double keep, Value *w)
{
	Value *old = state(m, w, "ema", 0), *now = graph_find(m->g, name_fmt("%s.next", w->name));
	Value *k = scalar_op2(m, "Min", lr_step(m), scalar_num(m, keep));
	into(m, add(m, mul(m, old, k), mul(m, now, scalar_op2(m, "Sub", scalar_num(m, 1), k))), old);
}

int optimizer_build(Graph *g, const Annot *train, Value **param, Value **grad, int n)
{
	const Arg *o = arg_find(train->arg, train->narg, "optimizer"), *c = arg_find(train->arg, train->narg, "clip");
	const Arg *keep = arg_find(train->arg, train->narg, "ema");
	double lr = scalar_given(o, "lr", 0.1);
	Scalars m = { g, train->loc, n ? param[0]->type->elem : DT_FLOAT, false };
	Value *rate = lr_schedule(&m, arg_find(train->arg, train->narg, "schedule"), lr);
	Scalars exact = { g, m.loc, DT_DOUBLE, false };
	Value *base = rate ? scalar_scaled(&exact, rate, lr) : scalar_num(&m, lr);
	if (base)
		graph_rename(g, base, name_of(optimizer_rate));
	Value *factor = c && strcmp(c->s, "value") ? clip_factor(&m, c, grad, n) : NULL;
	Known shared = { 0 };
	for (int i = 0; i < n && !m.bad; i++) {
		if (!grad[i])
			continue;
		Scalars at = { g, param[i]->loc, param[i]->type->elem, false };
		const Arg *grp = group_of(train, param[i]);
		Update u = { .m = at, .shared = &shared, .o = o, .grp = grp, .w = param[i] };
		u.g = c ? clipped(&u.m, c, factor, grad[i]) : grad[i];
		u.lr = rate_of(&u, rate, base, lr);
		update(&u);
		if (keep && !u.m.bad)
			ema(&u.m, keep->kind == ARG_INT ? (double)keep->i : keep->f, param[i]);
		m.bad |= u.m.bad || exact.bad;
	}
	return m.bad ? -1 : 0;
}
