/* Pins: @sbp of values and nodes, read and checked.
 *
 * A pin of a value fixes its SBP; a producer or reader that needs another SBP gets a transfer.  A pin of a node fixes
 * its signature.  Both may leave entries open.  Impossible pins are refused here, before the search: a factor that an
 * axis does not have, entries that are not valid together, a parameter that would be partial, a signature that the
 * operator does not have, and different pins of values that share storage. */
#include "search.h"

#include <string.h>

static const char *factors_text(const Value *v, int axis)
{
	const struct FactorAxis *x = v->factors ? &v->factors->axis[axis] : NULL;
	const char *t = "";
	for (int i = 0; x && i < x->n; i++)
		t = name_fmt("%s%s%s", t, i ? " x " : "", dim_text(v->graph->factor[x->factor[i]]));
	return *t ? t : "1";
}

/* reach(of, div, ...): the overlap of the shards of a window's operand, as dumps contain it. */
static int read_reach(const Arg *a, const Value *v, Sbp *out)
{
	enum { LARGE = 1 << 30 };
	FormReach r;
	const Arg *x = a->arg;
	if (a->narg != sizeof r / sizeof(int64_t)) {
		err_at(a->loc, "reach needs eight numbers: of, div, lo, hi, mid, mul, from, to");
		return -1;
	}
	for (int i = 0; i < a->narg; i++)
		if (x[i].kind != ARG_INT || x[i].i > LARGE || x[i].i < -LARGE) {
			err_at(a->loc, "reach needs eight integers of at most %d", LARGE);
			return -1;
		}
	r = (FormReach){
		.of = x[0].i, .div = x[1].i, .lo = x[2].i, .hi = x[3].i,
		.mid = x[4].i, .mul = x[5].i, .from = x[6].i, .to = x[7].i,
	};
	if (r.of < 0 || r.div < 1 || r.mid < 1 || r.mul < 1 || r.lo > r.hi || r.from > r.to) {
		err_at(a->loc, "no windows of %s reach like this", v->name);
		return -1;
	}
	out->reach = sbp_reach(r);
	return 0;
}

static int read_split(const Arg *a, const Value *v, Sbp *out)
{
	const Arg *x = a->arg;
	int ndim = v->type ? v->type->ndim : -1;
	if (x->i >= ndim) {
		err_at(a->loc, "%s has no axis %lld: it is %s", v->name, (long long)x->i, type_text(v->type));
		return -1;
	}
	*out = (Sbp){ .kind = SBP_S, .axis = (int)x->i };
	if (a->narg > 1)
		return read_reach(&x[1], v, out);
	if (x->kind != ARG_FACTOR)
		return 0;
	int n = v->factors ? v->factors->axis[x->i].n : 0;
	if (x->j >= (n ? n : 1)) {
		err_at(a->loc, "axis %lld of %s has no factor %lld: it is %s", (long long)x->i, v->name,
			(long long)x->j, factors_text(v, (int)x->i));
		return -1;
	}
	out->leaf = n > 1 ? 1 + (int)x->j : 0;
	return 0;
}

static int read_entry(const Arg *a, const Value *v, Sbp *out)
{
	static const char *const red[] = {
		[RED_SUM] = "sum", [RED_MAX] = "max", [RED_MIN] = "min", [RED_PROD] = "prod",
	};
	*out = (Sbp){ .kind = SBP_ANY };
	if (!strcmp(a->s, "S"))
		return read_split(a, v, out);
	if (!strcmp(a->s, "B"))
		out->kind = SBP_B;
	else if (!strcmp(a->s, "P"))
		out->kind = SBP_P;
	for (int i = 0; out->kind == SBP_P && a->narg && i < 4; i++)
		if (!strcmp(a->arg[0].s, red[i]))
			out->red = (Reduce)i;
	return 0;
}

/* The entries of one value, one per axis of the mesh; NULL after explaining. */
static Sbp *read_entries(const Arg *a, int n, Loc loc, const Value *v, const Mesh *m, Arena *arena)
{
	Sbp *s = arena_array(arena, Sbp, m->ndim);
	if (n != m->ndim) {
		err_at(loc, "mesh %s has %d ax%s, but %d SBP%s given for %s", m->name, m->ndim,
			m->ndim == 1 ? "is" : "es", n, n == 1 ? " is" : "s are", v->name);
		return NULL;
	}
	for (int i = 0; i < n; i++)
		if (read_entry(&a[i], v, &s[i]))
			return NULL;
	if (signatures_can(s, n))
		return s;
	err_at(loc,
		"%s cannot be %s: all P of a value have one reduction, and an axis is split by whole ranges or by its "
		"factors, not both", v->name, sbp_text(s, n));
	return NULL;
}

static void leave_open(const Graph *g, Annot *a, int k)
{
	Arg *own = arena_array(g->arena, Arg, a->narg);
	memcpy(own, a->arg, sizeof *own * (size_t)a->narg);
	own[k].s = name_of("_");
	own[k].narg = 0;
	a->arg = own;
}

static Sbp *pin_value(const Graph *g, const Value *v, const Mesh *m, int *bad)
{
	Annot *a = annot_find(v->annot, "sbp");
	Sbp *s = a ? read_entries(a->arg, a->narg, a->loc, v, m, g->scratch) : NULL;
	*bad |= a && !s;
	for (int k = 0; s && k < m->ndim && (v->output || (!v->def && (v->init || v->input))); k++)
		if (s[k].kind == SBP_P && v->output && g->model->main) {
			/* the pin is for the program of a step, where the value is not an output */
			leave_open(g, a, k);
			s[k] = (Sbp){ .kind = SBP_ANY };
		} else if (s[k].kind == SBP_P) {
			err_at(a->loc, "%s is %s: it is S or B, not P", v->name,
				v->output ? "a result of the model" : "kept from step to step or read from data");
			*bad = -1;
			return NULL;
		}
	return s;
}

/* ---- nodes ---- */

/* Whether a pin allows an entry of a signature.  A pinned S without reach also allows overlapping shards. */
static bool meant(const Sbp *pin, const Sbp *s)
{
	Sbp p = *pin;
	if (p.kind == SBP_S && !p.reach)
		p.reach = s->reach;
	return p.kind == SBP_ANY || sbp_equal(&p, s, 1);
}

bool pins_allow(const Node *n, const NodePin *p, const Sig *s, int k)
{
	for (int i = 0; p && i < n->nin; i++)
		if (p->in[i] && !meant(&p->in[i][k], &s->in[i]))
			return false;
	for (int i = 0; p && i < n->nout; i++)
		if (p->out[i] && !meant(&p->out[i][k], &s->out[i]))
			return false;
	return true;
}

static bool open_pin(const Arg *a)
{
	return a->kind == ARG_WORD && a->s && !strcmp(a->s, "_");
}

static Sbp *read_operand(const Arg *a, const Value *v, const Mesh *m, Arena *arena, int *bad)
{
	if (open_pin(a) || !v)
		return NULL;
	bool list = a->kind == ARG_LIST;
	Sbp *s = read_entries(list ? a->arg : a, list ? a->narg : 1, a->loc, v, m, arena);
	*bad |= !s;
	return s;
}

/* Reports a pin that no signature along axis k allows. */
static int illegal(Node *n, const Annot *a, const Mesh *m, int k, const Sig *list, int count)
{
	err_at(a->loc, "%s cannot run like this along axis %d of mesh %s", n->op, k, m->name);
	const char *all = "";
	for (int i = 0; i < count; i++)
		all = name_fmt("%s%s%s", all, i ? "; " : "", signatures_text(n, &list[i]));
	note_at(n->loc, "it can run by %s", all);
	return -1;
}

NodePin *pins_node(Node *n, const Mesh *m, Arena *arena, int *bad)
{
	const Annot *a = annot_find(n->annot, "sbp");
	int errors = 0, nin = 0;
	while (a && nin < a->narg && !a->arg[nin].arrow)
		nin++;
	if (!a || nin != n->nin)
		return NULL;
	NodePin *p = arena_new(arena, NodePin);
	p->in = arena_array(arena, Sbp *, n->nin + 1);
	p->out = arena_array(arena, Sbp *, n->nout + 1);
	for (int i = 0; i < n->nin; i++)
		p->in[i] = read_operand(&a->arg[i], n->in[i], m, arena, &errors);
	/* results that a pass added are not pinned */
	for (int i = 0; i < n->nout && nin + i < a->narg; i++)
		p->out[i] = read_operand(&a->arg[nin + i], n->out[i], m, arena, &errors);
	for (int k = 0; k < m->ndim && !errors; k++) {
		int count, i = 0;
		const Sig *list = signatures_of(n, m->dim[k], arena, &count);
		while (i < count && !pins_allow(n, p, &list[i], k))
			i++;
		if (i == count && m->dim[k] > 1)
			errors = illegal(n, a, m, k, list, count);
	}
	*bad |= errors;
	return errors ? NULL : p;
}

/* ---- values that share storage ----
 *
 * A transfer can connect any two SBPs, so pins of a producer, a value and its readers never contradict each other.
 * Only those of values that share storage can: an update and what it updates. */

typedef struct Storage { const Value *first; const Value **pin; int n; } Storage;       /* pin: its pinned values */

static const Value *root(const Value *v)
{
	while (v->into)
		v = v->into;
	return v;
}

/* Whether some SBP satisfies all pins of a storage except number `without`. */
static bool hold(const Storage *s, const Pins *p, int ndim, int without)
{
	Sbp all[MESH_DIMS];
	bool kept = !s->first->def && (s->first->init || s->first->input);
	for (int k = 0; k < ndim; k++)
		all[k].kind = SBP_ANY;
	for (int i = 0; i < s->n; i++)
		for (int k = 0; k < ndim && i != without; k++) {
			const Sbp *a = &p->value[s->pin[i]->id][k];
			if (a->kind == SBP_ANY)
				continue;
			if ((all[k].kind != SBP_ANY && !sbp_equal(&all[k], a, 1)) || (kept && a->kind == SBP_P))
				return false;
			all[k] = *a;
		}
	return signatures_can(all, ndim);
}

/* Removes pins as long as the others still contradict each other: a minimal set is left. */
static void shrink(Storage *s, const Pins *p, int ndim)
{
	for (int i = 0; i < s->n;) {
		if (hold(s, p, ndim, i)) {
			i++;
			continue;
		}
		s->n--;
		for (int k = i; k < s->n; k++)
			s->pin[k] = s->pin[k + 1];
	}
}

static int refuse(const Storage *s, const Pins *p, int ndim)
{
	const Value *v = s->pin[s->n - 1], *w = s->pin[0];
	Loc loc = annot_find(v->annot, "sbp")->loc;
	const char *sbp = sbp_text(p->value[v->id], ndim);
	if (s->n == 1)
		fail_at(EXIT_NOPLAN, loc,
			"%s lives in the memory of %s, which is kept from step to step: it is S or B, not %s",
			v->name, s->first->name, sbp);
	else if (w == s->first)
		fail_at(EXIT_NOPLAN, loc, "%s lives in the memory of %s, so both are held alike: %s here, but %s there",
			v->name, w->name, sbp, sbp_text(p->value[w->id], ndim));
	else
		fail_at(EXIT_NOPLAN, loc,
			"%s lives in the memory of %s, as %s does, so all are held alike: %s here, but %s there",
			v->name, s->first->name, w->name, sbp, sbp_text(p->value[w->id], ndim));
	for (int i = 0; i < s->n - 1; i++)
		note_at(annot_find(s->pin[i]->annot, "sbp")->loc, "%s is pinned here", s->pin[i]->name);
	return -1;
}

static int check_memory(const Graph *g, const Pins *p, int ndim)
{
	Storage *all = arena_array(g->scratch, Storage, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		if (!p->value[i])
			continue;
		Storage *s = &all[root(g->value[i])->id];
		s->first = root(g->value[i]);
		arena_push(g->scratch, s->pin, s->n, g->value[i]);
	}
	for (int i = 0; i < g->nvalue; i++) {
		if (!all[i].n || hold(&all[i], p, ndim, -1))
			continue;
		shrink(&all[i], p, ndim);
		return refuse(&all[i], p, ndim);
	}
	return 0;
}

Pins *pins_read(Graph *g, const Mesh *m)
{
	Pins *p = arena_new(g->scratch, Pins);
	int bad = 0;
	p->value = arena_array(g->scratch, Sbp *, g->nvalue + 1);
	p->node = arena_array(g->scratch, NodePin *, g->nnode + 1);
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		graph_ahead_value(g->value, i, g->nvalue);
		/* others were removed as unused */
		if ((v->def || v->init || v->input) && (!v->place || v->place->mesh == m))
			p->value[i] = pin_value(g, v, m, &bad);
	}
	for (int i = 0; i < g->nnode && !bad; i++) {
		graph_ahead(g->node, i, g->nnode);
		if (!g->node[i]->place || g->node[i]->place->mesh == m)
			p->node[i] = pins_node(g->node[i], m, g->scratch, &bad);
	}
	return bad || check_memory(g, p, m->ndim) ? NULL : p;
}
