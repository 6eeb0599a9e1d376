/* SBP of values: comparison, text, conversion to a Form (runtime/form.h) and to an annotation.
 *
 * Along one axis of the mesh a value is split along one of its axes or a factor of that (S), broadcast, so that every
 * rank has all of it (B), or partial: the sum (maximum, ...) of one term per rank (P). */
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>

static bool equal_entry(const Sbp *a, const Sbp *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == SBP_S)
		return a->axis == b->axis && a->leaf == b->leaf && a->reach == b->reach;
	return a->kind != SBP_P || a->red == b->red;
}

bool sbp_equal(const Sbp *a, const Sbp *b, int ndim)
{
	for (int i = 0; i < ndim; i++)
		if (!equal_entry(&a[i], &b[i]))
			return false;
	return true;
}

/* Reaches are few: one per kind of window and length. */
const FormReach *sbp_reach(FormReach r)
{
	static FormReach **all;
	static int n;
	if (r.of == r.mid && r.div == 1 && !r.lo && !r.hi && r.mul == 1 && !r.from && !r.to)
		return NULL;
	for (int i = 0; i < n; i++)
		if (form_reach_same(all[i], &r))
			return all[i];
	FormReach *own = arena_new(&arena_process, FormReach);
	*own = r;
	arena_push(&arena_process, all, n, own);
	return own;
}

const char *sbp_reach_text(const FormReach *r)
{
	return name_fmt(
		"%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64,
		r->of, r->div, r->lo, r->hi, r->mid, r->mul, r->from, r->to);
}

const char *sbp_text(const Sbp *s, int ndim)
{
	static char ring[8][96];
	static int next;
	static const char *const red[] = {
		[RED_SUM] = "P", [RED_MAX] = "P(max)", [RED_MIN] = "P(min)", [RED_PROD] = "P(prod)",
	};
	char *t = ring[next++ % 8];
	size_t n = 0;
	t[0] = 0;
	for (int i = 0; i < ndim && n < 80; i++) {
		if (i)
			n += (size_t)snprintf(t + n, sizeof ring[0] - n, " ");
		if (s[i].kind == SBP_S && s[i].leaf)
			n += (size_t)snprintf(t + n, sizeof ring[0] - n, "S(%d/%d)", s[i].axis, s[i].leaf - 1);
		else if (s[i].kind == SBP_S && s[i].reach)
			n += (size_t)snprintf(t + n, sizeof ring[0] - n, "S(%d+)", s[i].axis);
		else if (s[i].kind == SBP_S)
			n += (size_t)snprintf(t + n, sizeof ring[0] - n, "S(%d)", s[i].axis);
		else if (s[i].kind == SBP_P)
			n += (size_t)snprintf(t + n, sizeof ring[0] - n, "%s", red[s[i].red]);
		else
			n += (size_t)snprintf(t + n, sizeof ring[0] - n, "%s", s[i].kind == SBP_B ? "B" : "_");
	}
	return t;
}

Form sbp_form(const Value *v, const Sbp *s, const Mesh *m)
{
	static const FormKind kind[] = { [SBP_S] = FORM_S, [SBP_B] = FORM_B, [SBP_P] = FORM_P, [SBP_ANY] = FORM_P };
	Form f = { .ndim = m->ndim, .first = m->first, .rank = m->rank, .naxis = v->type->ndim };
	for (int a = 0; a < f.naxis; a++)
		f.dim[a] = v->type->dim[a];
	for (int k = 0; k < m->ndim; k++) {
		f.mesh[k] = m->dim[k];
		FormCut *c = &f.cut[k];
		c->kind = (int8_t)kind[s[k].kind];
		c->reduce = (int8_t)s[k].red;
		if (s[k].kind != SBP_S)
			continue;
		c->axis = (int8_t)s[k].axis;
		c->len = f.dim[s[k].axis];
		c->inner = 1;
		c->reach = s[k].reach;
		if (!s[k].leaf)
			continue;
		const struct FactorAxis *x = &v->factors->axis[s[k].axis];
		c->len = v->graph->factor[x->factor[s[k].leaf - 1]];
		for (int i = s[k].leaf; i < x->n; i++)
			c->inner *= v->graph->factor[x->factor[i]];
	}
	return f;
}

/* One entry as an argument: S(1), S(1/0), B, P(max). */
static Arg entry(Sbp s)
{
	static const char *const red[] = { [RED_MAX] = "max", [RED_MIN] = "min", [RED_PROD] = "prod" };
	static const char *const word[] = { [SBP_S] = "S", [SBP_B] = "B", [SBP_P] = "P", [SBP_ANY] = "_" };
	bool call = s.kind == SBP_S || (s.kind == SBP_P && s.red != RED_SUM);
	Arg arg = { .kind = call ? ARG_CALL : ARG_WORD, .s = name_of(word[s.kind]) };
	Arg inner = { .kind = s.leaf ? ARG_FACTOR : ARG_INT, .i = s.axis, .j = s.leaf ? s.leaf - 1 : 0, .f = s.axis };
	if (s.kind == SBP_P && call)
		inner = (Arg){ .kind = ARG_WORD, .s = name_of(red[s.red]) };
	if (call)
		arena_push(&arena_process, arg.arg, arg.narg, inner);
	if (s.kind == SBP_S && s.reach) {
		Arg reach = { .kind = ARG_CALL, .s = name_of("reach") };
		for (size_t i = 0; i < sizeof *s.reach / sizeof(int64_t); i++) {
			int64_t x = ((const int64_t *)s.reach)[i];
			Arg number = { .kind = ARG_INT, .i = x, .f = (double)x };
			arena_push(&arena_process, reach.arg, reach.narg, number);
		}
		arena_push(&arena_process, arg.arg, arg.narg, reach);
	}
	return arg;
}

/* Entries as the arguments of @sbp, which values of one SBP share.  An SBP with reach is not shared: each is
 * different. */
const Annot *sbp_annot(const Sbp *s, int n)
{
	static Map made;
	int64_t text[3 * MESH_DIMS] = { 0 };
	bool shared = true;
	for (int i = 0; i < n; i++) {
		text[3 * i] = s[i].kind;
		if (s[i].kind == SBP_P)
			text[3 * i + 1] = s[i].red;
		if (s[i].kind != SBP_S)
			continue;
		text[3 * i + 1] = s[i].axis;
		text[3 * i + 2] = s[i].leaf;
		shared &= !s[i].reach;
	}
	Name key = name_n((const char *)text, sizeof *text * 3 * (size_t)n);
	if (!made.arena)
		map_init(&made, &arena_process);
	Annot *a = shared ? map_get(&made, key) : NULL;
	if (a)
		return a;
	a = arena_new(&arena_process, Annot);
	a->name = name_of("sbp");
	for (int i = 0; i < n; i++)
		arena_push(&arena_process, a->arg, a->narg, entry(s[i]));
	if (annot_check(a, ON_VALUE))
		die("@sbp(%s) is refused", sbp_text(s, n));
	if (shared)
		map_put(&made, key, a);
	return a;
}

/* Whether @sbp of a value is missing or has open entries; *have: the annotation, or NULL. */
static bool unnoted(const Value *v, Annot **have)
{
	bool free = false;
	*have = annot_find(v->annot, "sbp");
	for (int i = 0; *have && i < (*have)->narg; i++)
		free |= (*have)->arg[i].s && !strcmp((*have)->arg[i].s, "_");
	return !*have || free;
}

void sbp_note_as(Graph *g, Value *v, const Annot *made)
{
	Annot *a;
	if (!unnoted(v, &a))
		return;
	if (!a) {
		a = arena_new(g->arena, Annot);
		*a = *made;
		annot_add(&v->annot, a);
	}
	a->arg = made->arg;                     /* open entries are decided now */
	a->narg = made->narg;
}

void sbp_note(Graph *g, Value *v, const Mesh *m)
{
	Annot *a;
	if (unnoted(v, &a))
		sbp_note_as(g, v, sbp_annot(v->sbp, m->ndim));
}

Sbp sbp_plain(const Value *v, const Sbp *s, const Mesh *m, int k)
{
	Sbp p = s[k];
	if (p.kind != SBP_S || !p.leaf)
		return p;
	const struct FactorAxis *x = &v->factors->axis[p.axis];
	bool first = v->graph->factor[x->factor[p.leaf - 1]] % m->dim[k] == 0;
	for (int i = 0; i < p.leaf - 1; i++)
		first &= v->graph->factor[x->factor[i]] == 1;
	for (int i = 0; i < m->ndim; i++)
		first &= i == k || s[i].kind != SBP_S || s[i].axis != p.axis;
	p.leaf = first ? 0 : p.leaf;
	return p;
}
