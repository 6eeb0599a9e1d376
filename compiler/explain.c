/* --explain: the SBP, placement and memory of each value, and all transfers with their causes.
 * --explain=NAME: why that value has its SBP: its producer, the alternatives of the producer with their cost, given the
 * SBP of operands and readers, and the annotation that asks for each. */
#include "compiler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_COLUMN = 32, ALTERNATIVES = 64 };

static const char *shown(Name name)
{
	return diag_escape(&arena_process, name, strlen(name));
}

static const char *line_of(const Node *n)
{
	const char *s = emit_from(&arena_process, n);
	return *s ? s : "nowhere";
}

/* The value before all transfers: the result of a node, or a source. */
static const Value *origin(const Value *v)
{
	while (v->def && kernel_transfer(v->def))
		v = v->def->in[0];
	return v;
}

static const char *made_at(const Value *v)
{
	if (v->def)
		return line_of(v->def);
	return v->loc.file ? loc_brief(loc_text(v->loc)) : "nowhere";
}

static const Mesh *mesh_of(const Plan *p, const Value *v)
{
	return v->place ? v->place->mesh : p->main;
}

/* Bytes of the largest shard. */
static int64_t shard_bytes(const Value *v, const Sbp *s, const Mesh *m)
{
	Form f = sbp_form(v, s, m);
	int64_t most = 0;
	for (int i = 0, n = form_nrank(&f); i < n; i++)
		most = form_held(&f, i) > most ? form_held(&f, i) : most;
	return (int64_t)tensor_bytes(v->type->elem, most);
}

static void value(const Plan *p, const Value *v)
{
	const Slot *s = slot_of(p, v);
	const Mesh *m = mesh_of(p, v);
	printf("%-*s %-24s", NAME_COLUMN, shown(v->name), v->type ? type_text(v->type) : "?");
	if (v->sbp)
		printf(" %-8s %-14s %10" PRId64, m->name, sbp_text(v->sbp, m->ndim), shard_bytes(v, v->sbp, m));
	if (s)
		printf("  t%d, %s+%" PRId64, s->id, s->window ? "window" : "slab", s->offset);
	putchar('\n');
}

/* The first node that reads the result of a transfer, also through further transfers. */
static const Node *user_of(const Graph *g, const Value *v)
{
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			if (g->node[i]->in[k] == v)
				return kernel_transfer(g->node[i]) ? user_of(g, g->node[i]->out[0]) : g->node[i];
	return NULL;
}

static void transfer(const Plan *p, const Graph *g, const Node *n)
{
	const Value *x = n->in[0], *y = n->out[0];
	const Mesh *mx = mesh_of(p, x), *my = mesh_of(p, y);
	Form f = sbp_form(x, x->sbp, mx), t = sbp_form(y, y->sbp, my);
	Transfer what = transfer_count(&f, &t, false);
	const Node *user = user_of(g, y);
	int64_t elem = (int64_t)tensor_bytes(x->type->elem, 1);
	printf("%-*s %s -> %s", NAME_COLUMN, shown(x->name), sbp_text(x->sbp, mx->ndim), sbp_text(y->sbp, my->ndim));
	if (mx != my)
		printf(" from %s to %s", mx->name, my->name);
	printf(" by %s: %" PRId64 " bytes to a rank, %" PRId64 " in all, %.1f us; made at %s, ", attr_str(n, "how"),
		what.busiest * elem, what.total * elem, 1e6 * transfer_time(&what, &f, &t, elem),
		loc_brief(boxing_made(n)));
	if (user)
		printf("wanted by %s at %s\n", user->op, line_of(user));
	else
		printf("kept as %s at %s\n", shown(y->name), line_of(n));
}

/* ---- why ---- */

typedef struct Alternative { Sbp sbp[MESH_DIMS]; double run, before, after; NdSig *sig; int number; } Alternative;

static double total(const Alternative *a)
{
	return a->run + a->before + a->after;
}

static int by_time(const void *a, const void *b)
{
	const Alternative *x = a, *y = b;
	if (total(x) != total(y))
		return total(x) < total(y) ? -1 : 1;
	return x->number - y->number;
}

/* Seconds of the transfers of v, in SBP s, to all its readers; each SBP is counted once. */
static double to_users(const Plan *p, const Graph *g, const Value *v, const Sbp *s)
{
	const Mesh *m = mesh_of(p, v);
	const Sbp *done[ALTERNATIVES];
	int ndone = 0;
	double t = 0;
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin && !n->row->moves; k++) {
			if (!n->in[k] || origin(n->in[k]) != v || !kernel_reads(n, k) || mesh_of(p, n->in[k]) != m)
				continue;
			bool new = ndone < ALTERNATIVES;
			for (int d = 0; d < ndone; d++)
				new &= !sbp_equal(done[d], n->in[k]->sbp, m->ndim);
			if (!new)
				continue;
			done[ndone++] = n->in[k]->sbp;
			t += cost_move(v, s, n->in[k]->sbp, m);
		}
	}
	return t;
}

/* Seconds of a node by its kernel, or by its definition. */
static double run_seconds(const Node *n, NdSig *s, const Mesh *m, uint64_t inside)
{
	if (!signatures_define(s, m))
		return cost_run(n, s->in, s->out, m, inside);
	Expansion *d = expansion_open(n);
	double t = expansion_cost(d, s, m);
	expansion_close(d);
	return t;
}

static Alternative by_signature(const Plan *p, const Graph *g, const Node *n, const Value *v, NdSig *s, uint64_t inside)
{
	const Mesh *m = mesh_of(p, v);
	Alternative a = { .sig = s, .run = run_seconds(n, s, m, inside) };
	memcpy(a.sbp, s->out[v->defidx], (size_t)m->ndim * sizeof *a.sbp);
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && kernel_reads(n, i) && mesh_of(p, origin(n->in[i])) == m)
			a.before += cost_move(origin(n->in[i]), origin(n->in[i])->sbp, s->in[i], m);
	a.after = to_users(p, g, v, a.sbp);
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && i != v->defidx)
			a.after += to_users(p, g, n->out[i], s->out[i]);
	return a;
}

static void add(Alternative *list, int *n, Alternative a, int ndim)
{
	for (int i = 0; i < *n; i++)
		if (sbp_equal(list[i].sbp, a.sbp, ndim)) {
			a.number = i;
			if (total(&a) < total(&list[i]))
				list[i] = a;
			return;
		}
	a.number = *n;
	if (*n < ALTERNATIVES)
		list[(*n)++] = a;
}

static bool entries_alike(const void *arg, int j, int k)
{
	const Value *v = arg;
	return sbp_equal(&v->sbp[j], &v->sbp[k], 1);
}

/* A source may have any SBP: split along any of its axes, or broadcast, on each axis of the mesh. */
static void add_sources(const Plan *p, const Graph *g, const Value *v, Alternative *list, int *n)
{
	const Mesh *m = mesh_of(p, v);
	int with[MESH_DIMS], ways[MESH_DIMS], at[MESH_DIMS] = { 0 };
	mesh_axes_bundle(m, entries_alike, v, with);
	for (int k = 0; k < m->ndim; k++)
		ways[k] = 1 + v->type->ndim;
	do {
		Alternative a = { .run = 0 };
		for (int k = 0; k < m->ndim; k++)
			if (at[k])
				a.sbp[k] = (Sbp){ .kind = SBP_S, .axis = at[k] - 1 };
		a.after = to_users(p, g, v, a.sbp);
		if (signatures_can(a.sbp, m->ndim))
			add(list, n, a, m->ndim);
	} while (mesh_axes_next(m->ndim, with, ways, at));
	bool listed = false;
	for (int i = 0; i < *n; i++)
		listed |= sbp_equal(list[i].sbp, v->sbp, m->ndim);
	Alternative own = { .after = to_users(p, g, v, v->sbp) };
	memcpy(own.sbp, v->sbp, (size_t)m->ndim * sizeof *own.sbp);
	if (!listed)
		add(list, n, own, m->ndim);
}

static const char *signature_text(const Node *n, const NdSig *s, int ndim)
{
	const char *t = "";
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			t = name_fmt("%s%s%s", t, *t ? ", " : "", sbp_text(s->in[i], ndim));
	t = name_fmt("%s%s->", t, *t ? " " : "");
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			t = name_fmt("%s%s%s", t, i ? ", " : " ", sbp_text(s->out[i], ndim));
	return t;
}

/* Values made by a pass have names too, but annotations can use only names of the model as it was read. */
static bool can_pin;

void explain_read(Model *m, const char *what)
{
	can_pin = resolve_pins(m, what);
}

/* @pin("h", sbp: [S(1), B]) */
static const char *annotation(const Value *v, const Sbp *s, int ndim)
{
	bool can = can_pin;
	for (int k = 0; k < ndim; k++)
		can &= !v->output || s[k].kind != SBP_P;        /* an output cannot be partial */
	if (!can)
		return "no annotation asks for it";
	const char *t = name_fmt("@pin(\"%s\", sbp: [", shown(v->name));
	for (int k = 0; k < ndim; k++)
		t = name_fmt("%s%s%s", t, k ? ", " : "", sbp_text(&s[k], 1));
	return name_fmt("%s])", t);
}

static void alternatives(const Plan *p, const Graph *g, const Value *v)
{
	Alternative list[ALTERNATIVES];
	const Mesh *m = mesh_of(p, v);
	Arena tmp = { 0 };
	int n = 0, count = 0, with[MESH_DIMS];
	NdSig *all = NULL;
	if (v->def) {
		mesh_axes_bundle(m, cheapest_alike, v->def, with);
		all = signatures_product(v->def, m, with, &tmp, &count);
	}
	uint64_t inside = v->def ? cost_inside(v->def, cost_fused(g, &tmp)) : 0;
	for (int i = 0; i < count; i++)
		add(list, &n, by_signature(p, g, v->def, v, &all[i], inside), m->ndim);
	if (!v->def)
		add_sources(p, g, v, list, &n);
	qsort(list, (size_t)n, sizeof *list, by_time);
	printf("  it could be, with the others as they are (us: %sto users):\n",
		v->def ? "to run, to bring operands, " : "");
	for (int i = 0; i < n; i++) {
		const Alternative *a = &list[i];
		bool is = sbp_equal(a->sbp, v->sbp, m->ndim);
		printf("    %-14s %10" PRId64 " bytes %10.1f us", sbp_text(a->sbp, m->ndim), shard_bytes(v, a->sbp, m),
			1e6 * total(a));
		if (v->def)
			printf(" = %.1f + %.1f + %.1f, %s", 1e6 * a->run, 1e6 * a->before, 1e6 * a->after,
				signature_text(v->def, a->sig, m->ndim));
		printf("; %s\n", is ? "as it is" : annotation(v, a->sbp, m->ndim));
	}
	arena_free(&tmp);
}

/* The user's pin; an SBP that the plan chose has no source location. */
static const Annot *pin_of(const Value *v)
{
	const Annot *a = annot_find(v->annot, "sbp");
	return a && a->loc.file ? a : NULL;
}

static const char *source_kind(const Value *v)
{
	if (v->param)
		return "a parameter";
	return v->input ? "an input" : "kept";
}

static void used_by(const Plan *p, const Value *v, const Node *n, const Value *in)
{
	printf("  used by %s at %s as %s\n", n->op, line_of(n), in->sbp ? sbp_text(in->sbp, mesh_of(p, v)->ndim) : "-");
}

static void why(const Plan *p, const Graph *g, const Value *v)
{
	const Value *from = origin(v);
	const Annot *pin = pin_of(v);
	if (from->def)
		printf("  made by %s at %s\n", from->def->op, line_of(from->def));
	else
		printf("  %s at %s\n", source_kind(from), made_at(from));
	if (from != v)
		printf("  it is %s, moved\n", shown(from->name));
	if (pin)
		printf("  pinned at %s\n", loc_text(pin->loc));
	else if (v->into)
		printf("  it lives where %s does\n", shown(v->into->name));
	else
		printf("  chosen: nothing pins it\n");
	if (from == v && v->sbp)
		alternatives(p, g, v);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin && !n->row->moves; k++)
			if (n->in[k] && origin(n->in[k]) == from)
				used_by(p, v, n, n->in[k]);
	}
}

static bool alive(const Value *v)
{
	return v->def || v->init || v->input;
}

static void explain_one(const Plan *p, const Graph *g, const char *name)
{
	const Value *v = NULL;
	for (int i = 0; i < g->nvalue && !v; i++)
		if (alive(g->value[i]) && !strcmp(name, g->value[i]->name))
			v = g->value[i];
	if (!v) {
		printf("there is no value %s after these passes\n", diag_escape(&arena_process, name, strlen(name)));
		return;
	}
	value(p, v);
	why(p, g, v);
	for (int i = 0; i < g->nnode; i++)
		if (kernel_transfer(g->node[i]) && origin(g->node[i]->in[0]) == origin(v)) {
			printf("  moved: ");
			transfer(p, g, g->node[i]);
		}
}

static const char *stands_at(const Node *n)
{
	return n->from ? n->from : loc_text(n->loc);
}

/* Where @local_stats changes the meaning of a normalisation; each source location is reported once. */
static void other_meanings(const Graph *g)
{
	Map reported;
	map_init(&reported, g->scratch);
	for (int i = 0; i < g->nnode; i++) {
		const Annot *a = annot_find(g->node[i]->annot, "local_stats");
		Name at = a && a->arg[0].i > 1 ? name_of(stands_at(g->node[i])) : NULL;
		if (!at || map_get(&reported, at))
			continue;
		map_put(&reported, at, g->node[i]);
		printf("local statistics: batch normalisation at %s by each of %lld parts of the batch, as "
			"@local_stats asks\n", at, (long long)a->arg[0].i);
	}
}

void explain(const Model *m, const char *what)
{
	const Plan *p = m->plan;
	const Graph *g = m->graph;
	if (!p || !p->main) {
		printf("nothing is planned yet\n");
		return;
	}
	if (what) {
		explain_one(p, g, what);
		return;
	}
	printf("%-*s %-24s %-8s %-14s %10s  %s\n", NAME_COLUMN, "value", "shape", "place", "SBP", "bytes",
		"of a rank; where");
	for (int i = 0; i < g->nvalue; i++)
		if (alive(g->value[i]))
			value(p, g->value[i]);
	other_meanings(g);
	for (int i = 0, any = 0; i < g->nnode; i++)
		if (kernel_transfer(g->node[i])) {
			if (!any++)
				printf("transfers\n");
			transfer(p, g, g->node[i]);
		}
}
