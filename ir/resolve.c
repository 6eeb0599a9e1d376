/* Annotations that depend on other parts of the model: meshes, names and axes must exist; nodes and values get the
 * annotations that name them by pattern. */
#include "ir.h"

#include <stdlib.h>
#include <string.h>

static bool is(const char *a, const char *b)
{
	return a && !strcmp(a, b);
}

static void add_arg(Arena *arena, Annot **list, const char *name, const Arg *arg)
{
	Annot *a = arena_new(arena, Annot);

	if (annot_find(*list, name))
		return;                         /* annotations of the node itself win */
	a->name = name_of(name);
	a->loc = arg->loc;
	if (!is(name, "recompute") && !is(name, "keep") && !is(name, "frozen")) {
		a->narg = 1;
		a->arg = arena_new(arena, Arg);
		*a->arg = *arg;
		a->arg->key = NULL;
		if (arg->kind == ARG_LIST && is(name, "sbp")) {
			a->arg = arg->arg;
			a->narg = arg->narg;
		}
	}
	annot_add(list, a);
}

/* ---- Meshes */

typedef struct Mesh { Name name; int ndim; int64_t dim[MESH_AXES]; Loc loc; } Mesh;

/* Something that a name may mean, in any graph of the model. */
typedef struct Target { Name name; Node *node; Value *value; int same; } Target;

typedef struct Resolve {
	Model *m;
	Mesh *mesh; int nmesh;
	Map meshes;                     /* name -> 1 + index */
	int *seen;                      /* by rank: the last mesh that holds it, counted from 1 */
	int nmeshes;
	Target *target; int ntarget;    /* all nodes and values, once a name is looked up */
	Map first;                      /* name -> 1 + index of the first; the others of that name follow by .same */
	int *forward, *backward;        /* targets in the order of their names, and of their names read from the end */
	int64_t compared;               /* names compared with patterns that have no fixed beginning or end */
	bool dump;                      /* passes may have dropped nodes and values that are named */
	Map reported;                       /* locations with an error: nodes of a group share their annotations */
	Map exact;                      /* value -> the entries of a @pin that names it exactly */
	bool pattern;                   /* the annotation is applied by a pattern */
	int bad;
} Resolve;

/* Records an error at this location; returns whether it has to be reported, i.e. was not yet. */
static bool wrong(Resolve *r, Loc loc)
{
	void *key = (void *)(uintptr_t)(loc.off * 256 + loc.file + 1);

	r->bad = -1;
	if (map_get(&r->reported, key))
		return false;
	map_put(&r->reported, key, r);
	return true;
}

/* Marks the ranks i..j; each may occur once. */
static int64_t take_ranks(Resolve *r, const Arg *a, int64_t count)
{
	int64_t last = a->kind == ARG_RANGE ? a->j : a->i;

	for (int k = 0; a->kind == ARG_LIST && k < a->narg; k++)
		count = take_ranks(r, &a->arg[k], count);
	if (a->kind == ARG_LIST)
		return count;
	if (last >= MAX_RANKS) {
		if (wrong(r, a->loc))
			err_at(a->loc, "ranks are below %d", MAX_RANKS);
		return count;
	}
	for (int64_t i = a->i; i <= last; i++, count++) {
		if (r->seen[i] == r->nmeshes) {
			if (wrong(r, a->loc))
				err_at(a->loc, "rank %lld stands twice in this mesh", (long long)i);
			return count + last - i + 1;
		}
		r->seen[i] = r->nmeshes;
	}
	return count;
}

static const Mesh *mesh_called(const Resolve *r, Name name)
{
	intptr_t i = (intptr_t)map_get(&r->meshes, name);

	return i ? &r->mesh[i - 1] : NULL;
}

static void add_mesh(Resolve *r, const Annot *a)
{
	const Arg *shape = arg_find(a->arg, a->narg, "shape");
	Mesh mesh = { .name = arg_find(a->arg, a->narg, "name")->s, .loc = a->loc };
	int64_t size = 1, given = 0;

	r->nmeshes++;
	if (!r->seen && arg_find(a->arg, a->narg, "ranks"))
		r->seen = arena_array(&r->m->scratch, int, MAX_RANKS);
	for (int i = 0; i < a->narg; i++)
		if (is(a->arg[i].param, "ranks"))
			given = take_ranks(r, &a->arg[i], given);
	mesh.ndim = shape->narg;
	if (mesh.ndim > MESH_AXES) {
		if (wrong(r, shape->loc))
			err_at(shape->loc, "a mesh has at most %d axes", MESH_AXES);
		return;
	}
	for (int i = 0; i < mesh.ndim; i++) {
		mesh.dim[i] = shape->arg[i].i;
		if (__builtin_mul_overflow(size, mesh.dim[i], &size) || size > MAX_RANKS) {
			if (wrong(r, shape->loc))
				err_at(shape->loc, "a mesh has at most %d devices", MAX_RANKS);
			return;
		}
	}
	if (given && given != size) {
		if (wrong(r, a->loc))
			err_at(a->loc, "mesh %s has %lld positions, but %lld rank%s given", mesh.name,
				(long long)size, (long long)given, given == 1 ? " is" : "s are");
	}
	const Mesh *old = mesh_called(r, mesh.name);
	if (old) {
		err_at(a->loc, "mesh %s is declared twice", mesh.name);
		note_at(old->loc, "first here");
		r->bad = -1;
		return;
	}
	map_put(&r->meshes, mesh.name, (void *)(intptr_t)(r->nmesh + 1));
	arena_push(&r->m->scratch, r->mesh, r->nmesh, mesh);
}

static const Mesh *find_mesh(Resolve *r, const Arg *of)
{
	const Mesh *mesh = mesh_called(r, of->s);

	if (!mesh && wrong(r, of->loc)) {
		bool say = diag_errors() < limits.errors;
		const char **list = arena_array(&r->m->scratch, const char *, say ? r->nmesh + 1 : 1);

		for (int i = 0; say && i < r->nmesh; i++)
			list[i] = r->mesh[i].name;
		diag_unknown(of->loc, "no mesh is called", of->s, list);
	}
	if (!mesh)
		return NULL;
	for (int i = 0; of->kind == ARG_INDEX && i < of->narg; i++) {
		const Arg *a = &of->arg[i];
		int64_t last = a->kind == ARG_RANGE ? a->j : a->i;

		if (i >= mesh->ndim) {
			if (wrong(r, a->loc))
				err_at(a->loc, "mesh %s has %d ax%s", mesh->name, mesh->ndim,
					mesh->ndim == 1 ? "is" : "es");
			break;
		}
		if (a->kind != ARG_STAR && last >= mesh->dim[i]) {
			if (wrong(r, a->loc))
				err_at(a->loc, "axis %d of mesh %s has %lld devices: 0:%lld", i, mesh->name,
					(long long)mesh->dim[i], (long long)mesh->dim[i] - 1);
		}
	}
	return mesh;
}

/* The mesh of a list of annotations: its @on, or the only mesh there is. */
static const Mesh *mesh_of(Resolve *r, const Annot *list)
{
	const Annot *on = annot_find(list, "on");

	if (on)
		return find_mesh(r, on->arg);
	return r->nmesh == 1 ? &r->mesh[0] : NULL;
}

/* ---- SBP */

static void check_axis(Resolve *r, const Arg *a, const Value *v)
{
	if (a->kind != ARG_CALL || !is(a->s, "S") || !v || !v->type || v->type->kind != TY_TENSOR ||
		v->type->ndim < 0)
		return;
	if (a->arg->i < v->type->ndim)
		return;
	if (wrong(r, a->loc))
		err_at(a->loc, "%s has no axis %lld: it is %s", v->name, (long long)a->arg->i,
			type_text(v->type));
}

/* Entries for one value: one per mesh axis. */
static void check_entries(Resolve *r, const Arg *a, int n, Loc loc, const Mesh *mesh, const Value *v)
{
	if (!r->nmesh) {
		if (wrong(r, loc))
			err_at(loc, "@sbp needs a mesh: declare one with @mesh(name, cpu, [2]), or give --ranks=N");
		return;
	}
	if (mesh && n != mesh->ndim) {
		if (wrong(r, loc))
			err_at(loc, "%d entr%s for mesh %s, which has %d ax%s", n, n == 1 ? "y" : "ies",
				mesh->name, mesh->ndim, mesh->ndim == 1 ? "is" : "es");
	}
	for (int i = 0; i < n; i++)
		check_axis(r, &a[i], v);
}

static void check_one(Resolve *r, const Arg *a, const Mesh *mesh, const Value *v)
{
	if (a->kind == ARG_LIST)
		check_entries(r, a->arg, a->narg, a->loc, mesh, v);
	else if (!(a->kind == ARG_WORD && is(a->s, "_")))
		check_entries(r, a, 1, a->loc, mesh, v);
}

static void check_signature(Resolve *r, const Node *n, const Annot *a, const Mesh *mesh)
{
	int nin = 0;

	while (nin < a->narg && !a->arg[nin].arrow)
		nin++;
	for (int i = nin + 1; i < a->narg; i++)
		if (a->arg[i].arrow) {
			if (wrong(r, a->arg[i].loc))
				err_at(a->arg[i].loc, "a second '->' in @sbp");
			return;
		}
	/* passes add results, for the backward pass, and drop some */
	if (nin != n->nin || (a->narg - nin != n->nout && !r->dump)) {
		if (wrong(r, a->loc))
			err_at(a->loc, "@sbp speaks of %d operands and %d results; %s has %d and %d", nin,
				a->narg - nin, n->op, n->nin, n->nout);
		return;
	}
	for (int i = 0; i < a->narg && i < nin + n->nout; i++)
		check_one(r, &a->arg[i], mesh, i < nin ? n->in[i] : n->out[i - nin]);
}

/* The mesh of a value is that of its own @on, else that of the node that makes it. */
static void resolve_value(Resolve *r, const Value *v)
{
	const Annot *sbp = annot_find(v->annot, "sbp"), *init = annot_find(v->annot, "init"),
		    *frozen = annot_find(v->annot, "frozen");
	bool placed = annot_find(v->annot, "on") || !v->def;
	const Mesh *mesh = v->annot ? mesh_of(r, placed ? v->annot : v->def->annot) : NULL;

	if (init && !v->init && wrong(r, init->loc))
		err_at(init->loc,
			"%s cannot have @init: parameters are entries of <...> after the outputs of the "
		        "graph",
			v->name);
	if (frozen && !v->init && wrong(r, frozen->loc))
		err_at(frozen->loc, "%s cannot be @frozen: only entries of <...> after the outputs of the graph can",
			v->name);
	if (sbp)
		check_entries(r, sbp->arg, sbp->narg, sbp->loc, mesh, v);
}

static void resolve_node(Resolve *r, Node *n)
{
	const Annot *sbp = annot_find(n->annot, "sbp"), *stage = annot_find(n->annot, "stage");
	const Mesh *mesh = n->annot ? mesh_of(r, n->annot) : NULL;

	if (sbp)
		check_signature(r, n, sbp, mesh);
	if (stage)
		n->stage = (int)stage->arg->i;
}

static void resolve_graph(Resolve *r, Graph *g)
{
	for (int i = 0; i < g->nvalue; i++) {
		graph_ahead_value(g->value, i, g->nvalue);
		resolve_value(r, g->value[i]);
	}
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];

		graph_ahead(g->node, i, g->nnode);
		resolve_node(r, n);
		for (int j = 0; j < n->nattr; j++)
			if (n->attr[j].type == AT_GRAPH && n->attr[j].u.g)
				resolve_graph(r, n->attr[j].u.g);
	}
}

/* ---- Names and patterns */

static bool is_pattern(const char *s)
{
	return strpbrk(s, "*?[") != NULL;
}

static void place_node(Resolve *r, const Annot *a, Node *n)
{
	static const char *const keys[] = { "on", "stage", "precision", "recompute", "keep", "frozen", NULL };

	for (int i = 0; is(a->name, "place") && keys[i]; i++) {
		const Arg *arg = arg_find(a->arg, a->narg, keys[i]);

		if (arg && (i < 3 || arg_flag(a->arg, a->narg, keys[i])))
			add_arg(&r->m->arena, &n->annot, keys[i], arg);
	}
}

static bool left_open(const Arg *a)
{
	return is(a->s, "_");
}

static bool same_entry(const Arg *a, const Arg *b)
{
	bool same = a->kind == b->kind && a->i == b->i && a->j == b->j && a->narg == b->narg &&
	            (a->s == b->s || is(a->s, b->s));

	for (int i = 0; same && i < a->narg; i++)
		same = same_entry(&a->arg[i], &b->arg[i]);
	return same;
}

/* Two pins of one value both hold: one may fill in what the other leaves open, and they must not contradict each
 * other. */
static void both(Resolve *r, const Value *v, const Arg *first, const Arg *second)
{
	Annot *has = annot_find(v->annot, "sbp");

	if (first->narg != second->narg || !has || has->narg != first->narg)
		/* an entry is missing for an axis of the mesh, which is reported elsewhere */
		return;
	Arg *list = arena_array(&r->m->arena, Arg, first->narg + 1);

	for (int i = 0; i < first->narg; i++) {
		const Arg *a = &has->arg[i], *b = &second->arg[i];

		list[i] = left_open(a) ? *b : *a;
		if (left_open(a) || left_open(b) || same_entry(a, b))
			continue;
		if (wrong(r, b->loc)) {
			fail_at(EXIT_NOPLAN, b->loc, "%s is pinned in two ways along axis %d of its mesh", v->name, i);
			note_at(a->loc, "it is pinned here");
		}
		return;
	}
	has->arg = list;
}

/* A value that lives in the memory of another has its layout: a pattern that matches both applies to the older
 * one. */
static bool is_of_older(const Resolve *r, const Annot *a, const Value *v)
{
	return r->pattern && v->into && annot_names(a, v->into->name);
}

static void pin_value(Resolve *r, const Annot *a, Value *v, const Arg *sbp)
{
	const Arg *first = r->pattern || is(a->name, "place") ? NULL : map_get(&r->exact, v);

	if (is_of_older(r, a, v))
		return;
	if (first && first != sbp && first->kind == ARG_LIST && sbp->kind == ARG_LIST)
		both(r, v, first, sbp);
	if (!r->pattern && is(a->name, "pin") && !first && !annot_find(v->annot, "sbp"))
		map_put(&r->exact, v, (void *)(uintptr_t)sbp);
	add_arg(&r->m->arena, &v->annot, "sbp", sbp);
}

static void place_value(Resolve *r, const Annot *a, Value *v)
{
	const Arg *on = arg_find(a->arg, a->narg, "on"), *sbp = arg_find(a->arg, a->narg, "sbp");

	if (on && (!v->def || is(a->name, "pin")))
		add_arg(&r->m->arena, &v->annot, "on", on);
	if (sbp)
		pin_value(r, a, v, sbp);
	if (v->def)
		place_node(r, a, v->def);               /* the names of its results name a node, too */
}

static void add_target(Resolve *r, Name name, Node *n, Value *v)
{
	if (name && *name)
		arena_push(&r->m->scratch, r->target, r->ntarget, ((Target){ name, n, v, 0 }));
}

/* The nodes and values of a graph and of its subgraphs; the readers limit their nesting to limits.depth. */
static void add_targets(Resolve *r, Graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];

		add_target(r, n->name, n, NULL);
		for (int j = 0; j < n->nattr; j++) {
			if (n->attr[j].type == AT_GRAPH && n->attr[j].u.g)
				add_targets(r, n->attr[j].u.g);
			for (int k = 0; n->attr[j].type == AT_GRAPHS && k < n->attr[j].n; k++)
				add_targets(r, n->attr[j].u.gs[k]);
		}
	}
	for (int i = 0; i < g->nvalue; i++)
		add_target(r, g->value[i]->name, NULL, g->value[i]);
}

/* All that a name can mean: in the graph, in graphs inside nodes, in the functions of the model. */
static void index_targets(Resolve *r)
{
	if (r->first.arena)
		return;
	map_init(&r->first, &r->m->scratch);
	add_targets(r, r->m->graph);
	for (int i = 0; i < r->m->nfunction; i++)
		add_targets(r, r->m->function[i]->body);
	for (int i = r->ntarget; i-- > 0;) {
		r->target[i].same = (int)(intptr_t)map_get(&r->first, r->target[i].name);
		map_put(&r->first, r->target[i].name, (void *)(intptr_t)(i + 1));
	}
}

static int compare_ends(const char *a, size_t na, const char *b, size_t nb)
{
	while (na && nb && a[na - 1] == b[nb - 1])
		na--, nb--;
	return !na || !nb ? (na > 0) - (nb > 0) : (uint8_t)a[na - 1] - (uint8_t)b[nb - 1];
}

static int by_beginning(const void *a, const void *b, void *target)
{
	const Target *t = target;

	return strcmp(t[*(const int *)a].name, t[*(const int *)b].name);
}

static int by_end(const void *a, const void *b, void *target)
{
	const Target *t = target;
	const char *x = t[*(const int *)a].name, *y = t[*(const int *)b].name;

	return compare_ends(x, strlen(x), y, strlen(y));
}

static int *sorted(Resolve *r, int (*order)(const void *, const void *, void *))
{
	int *list = arena_array(&r->m->scratch, int, r->ntarget + 1);

	for (int i = 0; i < r->ntarget; i++)
		list[i] = i;
	if (r->ntarget)
		qsort_r(list, (size_t)r->ntarget, sizeof *list, order, r->target);
	return list;
}

/* Compares the name with all that begin (or end) with n bytes of text: before, among or after them. */
static int stands(const char *name, const char *text, size_t n, bool end)
{
	size_t len = strlen(name), k = len < n ? len : n;

	if (end)
		return compare_ends(name + len - k, k, text, n);
	return strncmp(name, text, n);
}

/* The first in order that is not before (or, with past, among) the names that begin or end so. */
static int bound(const Resolve *r, const int *order, const char *text, size_t n, bool end, bool past)
{
	int low = 0, high = r->ntarget;

	while (low < high) {
		int mid = low + (high - low) / 2, c = stands(r->target[order[mid]].name, text, n, end);

		if (c < 0 || (c == 0 && past))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Calls f on everything that a name or pattern matches; returns how many.  A pattern is compared only with the
 * names that share its fixed beginning, or else its fixed end. */
static int each_target(Resolve *r, const Arg *arg, void (*f)(Resolve *, const void *, Target *), const void *with)
{
	const char *name = arg->s;
	size_t len = strlen(name), front = strcspn(name, "*?["), back = 0;
	int hits = 0;

	index_targets(r);
	if (!is_pattern(name)) {
		for (int i = (int)(intptr_t)map_get(&r->first, name_of(name)); i; i = r->target[i - 1].same, hits++)
			f(r, with, &r->target[i - 1]);
		return hits;
	}
	while (back < len && !strchr("*?[]", name[len - back - 1]))
		back++;
	bool end = !front && back;
	int **order = end ? &r->backward : &r->forward;
	const char *text = end ? name + len - back : name;
	size_t n = end ? back : front;

	if (!*order)
		*order = sorted(r, end ? by_end : by_beginning);
	int low = bound(r, *order, text, n, end, false), high = bound(r, *order, text, n, end, true);
	bool before = r->compared > limits.compared;

	r->compared += n ? 0 : r->ntarget;
	if (r->compared > limits.compared && !before) {
		r->bad = -1;
		fail_at(EXIT_LIMIT, arg->loc,
			"patterns without a fixed beginning or end are held against more than %lld names "
			"(--max-compared)",
			(long long)limits.compared);
	}
	for (int i = low; i < high && r->compared <= limits.compared; i++)
		if (name_match(name, r->target[(*order)[i]].name)) {
			hits++;
			f(r, with, &r->target[(*order)[i]]);
		}
	return hits + (r->compared > limits.compared);
}

static void place_target(Resolve *r, const void *annot, Target *t)
{
	if (t->node)
		place_node(r, annot, t->node);
	else
		place_value(r, annot, t->value);
}

static void count_value(Resolve *r, const void *count, Target *t)
{
	(void)r;
	*(int *)(uintptr_t)count += t->value != NULL;
}

/* Does a name or pattern match any value? */
static bool any_value(Resolve *r, Arg arg, Name name)
{
	int count = 0;

	arg.s = name;
	each_target(r, &arg, count_value, &count);
	return count > 0;
}

/* Does the function whose call makes v have such a value?  Once it is inlined, its name begins with that of v. */
static bool holds_inside(const Model *m, const Value *v, const char *rest)
{
	while (v && v->def && v->def->out[0] == v) {
		const Function *f = model_function(m, v->def);
		const char *dot = strchr(rest, '.');

		for (int i = 0; f && i < f->body->nvalue; i++)
			if (f->body->value[i]->def && !f->body->value[i]->output &&
				name_match(rest, f->body->value[i]->name))
				return true;
		v = f && dot ? graph_find(f->body, name_n(rest, (size_t)(dot - rest))) : NULL;
		rest = dot + 1;
	}
	return false;
}

typedef struct Inside { const char *rest; bool any; } Inside;

static void look_inside(Resolve *r, const void *with, Target *t)
{
	Inside *in = (Inside *)(uintptr_t)with;

	in->any = in->any || (t->value && holds_inside(r->m, t->value, in->rest));
}

/* "x1.h": the h of the function whose call makes x1. */
static bool of_a_call(Resolve *r, Arg arg)
{
	enum { DOTS = 8 };
	const char *all = arg.s, *dot = strchr(all, '.');
	Inside in = { NULL, false };

	for (int k = 0; k < DOTS && dot && r->m->nfunction && !in.any; k++, dot = strchr(dot + 1, '.')) {
		arg.s = name_n(all, (size_t)(dot - all));
		in.rest = dot + 1;
		each_target(r, &arg, look_inside, &in);
	}
	return in.any;
}

/* Whether the compiler will add a value of this name, or one that the pattern matches. */
static bool will_exist(Resolve *r, const Arg *arg)
{
	static const char *const derived[] = { ".grad", ".master", ".m", ".v", ".ema", ".next", NULL };
	const char *dot = strrchr(arg->s, '.'), *star = strrchr(arg->s, '*');
	const char *use = dot && !strncmp(dot, ".use", 4) ? dot : NULL;         /* w.grad.use1, in micro-batches */

	if (of_a_call(r, *arg))
		return true;
	if (use && use - arg->s > 5 && !strncmp(use - 5, ".grad", 5))
		return any_value(r, *arg, name_n(arg->s, (size_t)(use - 5 - arg->s)));
	for (int k = 0; derived[k]; k++) {
		if (dot && name_match(dot, derived[k]) && any_value(r, *arg, name_n(arg->s, (size_t)(dot - arg->s))))
			return true;
		if (star && name_match(star, derived[k]) &&
			any_value(r, *arg, name_n(arg->s, (size_t)(star + 1 - arg->s))))
			return true;
	}
	return false;
}

static void nothing_called(Resolve *r, const char *who, const Arg *arg)
{
	if (r->dump || !wrong(r, arg->loc))
		return;
	index_targets(r);
	bool say = diag_errors() < limits.errors;
	const char **list = arena_array(&r->m->scratch, const char *, say ? r->ntarget + 1 : 1);

	for (int i = 0; say && i < r->ntarget; i++)
		list[i] = r->target[i].name;
	diag_unknown(arg->loc, name_fmt("%s: nothing is called", who), arg->s, list);
}

/* Each name must match something: a value, a node, or (for @pin) a value that the compiler will add. */
static void apply_names(Resolve *r, const Annot *a, const Arg *arg)
{
	for (int i = 0; arg->kind == ARG_LIST && i < arg->narg; i++)
		apply_names(r, a, &arg->arg[i]);
	r->pattern = arg->kind != ARG_LIST && is_pattern(arg->s);
	if (arg->kind != ARG_LIST && !each_target(r, arg, place_target, a) &&
		!(is(a->name, "pin") && will_exist(r, arg)))
		nothing_called(r, name_fmt("@%s", a->name), arg);
}

/* Gives nodes and values the annotations of @place and @pin.  @place is then done; @pin stays for values that
 * passes add. */
static bool apply(Resolve *r, const Annot *a)
{
	const Arg *on = arg_find(a->arg, a->narg, "on");

	if (on && !find_mesh(r, on))
		return false;
	if (!arg_find(a->arg, a->narg, "names") && wrong(r, a->loc))
		err_at(a->loc, "@%s names nothing", a->name);
	for (int i = 0; i < a->narg; i++)
		if (is(a->arg[i].param, "names"))
			apply_names(r, a, &a->arg[i]);
	return is(a->name, "place");
}

/* ---- The training section: names of inputs, operators and parameters */

/* Whether a loss by name will add this input. */
static bool will_be_target(const Annot *train, Name name)
{
	const Arg *loss = arg_find(train->arg, train->narg, "loss"),
		  *target = loss && loss->kind == ARG_CALL ? arg_find(loss->arg, loss->narg, "target") : NULL;

	return target && is(target->s, name);
}

static void check_inputs(Resolve *r, const Annot *train, const Arg *data)
{
	const Graph *g = r->m->graph;
	const char **list = arena_array(&r->m->scratch, const char *, g->nin + 1);

	for (int i = 0; i < g->nin; i++)
		list[i] = g->in[i]->name;
	for (int i = 0; i < data->narg; i++) {
		const Arg *a = &data->arg[i];
		const Value *v = a->key ? map_get(&g->byname, a->key) : NULL;

		if (a->key && a->kind == ARG_STRING && !is(a->key, "folder") && !is(a->key, "validation") &&
			(is(data->s, "npy") || is(data->s, "idx")) && !(v && v->input) &&
			!will_be_target(train, a->key) && wrong(r, a->loc))
			diag_unknown(a->loc, name_fmt("%s: the graph has no input", data->s), a->key, list);
	}
}

static void check_operators(Resolve *r, const Arg *precision)
{
	static const char *const options[] = { "loss_scale", "growth", "backoff", "every", NULL };

	for (int i = 0; i < precision->narg; i++) {
		const Arg *a = &precision->arg[i];
		const char **list;
		bool option = false;

		for (int k = 0; a->key && options[k]; k++)
			option |= is(a->key, options[k]);
		if (!a->key || option || op_find(name_of(""), a->key, 0) ||
			!wrong(r, a->loc))
			continue;
		list = arena_array(&r->m->scratch, const char *, op_count() + 1);
		for (int k = 0; k < op_count(); k++)
			list[k] = op_at(k)->name;
		diag_unknown(a->loc, name_fmt("%s: there is no operator", precision->s), a->key, list);
	}
}

static void check_group(Resolve *r, const Arg *group, const Arg *arg)
{
	for (int i = 0; arg->kind == ARG_LIST && i < arg->narg; i++)
		check_group(r, group, &arg->arg[i]);
	if (arg->kind == ARG_LIST || any_value(r, *arg, arg->s) || r->compared > limits.compared)
		return;
	if (is_pattern(arg->s))                 /* one text may serve many models */
		warn_at(arg->loc, "no parameter is called %s", arg->s);
	else
		nothing_called(r, group->s, arg);
}

static void check_train(Resolve *r, const Annot *a)
{
	const Arg *data = arg_find(a->arg, a->narg, "data"),
		  *precision = arg_find(a->arg, a->narg, "precision");

	if (data)
		check_inputs(r, a, data);
	if (precision)
		check_operators(r, precision);
	for (int i = 0; i < a->narg; i++) {
		const Arg *group = &a->arg[i];

		for (int k = 0; is(group->param, "group") && k < group->narg; k++)
			if (is(group->arg[k].param, "names"))
				check_group(r, group, &group->arg[k]);
	}
}

/* ---- The model */

static bool selects(const Annot *a)
{
	return is(a->name, "place") || is(a->name, "pin") || is(a->name, "param") || is(a->name, "state") ||
		is(a->name, "freeze") || is(a->name, "batchnorm");
}

static void nothing(Resolve *r, const void *with, Target *t)
{
	(void)r, (void)with, (void)t;
}

bool resolve_pins(Model *m, const char *name)
{
	Resolve r = { .m = m };
	Arg arg = { .s = name_of(name) };

	return m->graph && (each_target(&r, &arg, nothing, NULL) || will_exist(&r, &arg));
}

int resolve_run(Model *m)
{
	Resolve r = { .m = m };
	const Annot *train = NULL;

	map_init(&r.reported, &m->scratch);
	map_init(&r.exact, &m->scratch);
	map_init(&r.meshes, &m->scratch);
	if (!m->graph)
		return 0;
	r.dump = annot_find(m->annot, "done") != NULL;
	for (const Annot *a = m->annot; a; a = a->next) {
		if (is(a->name, "mesh"))
			add_mesh(&r, a);
		if (is(a->name, "train") && train) {
			err_at(a->loc, "a second @train");
			note_at(train->loc, "first here");
			r.bad = -1;
		}
		if (is(a->name, "train"))
			check_train(&r, train = a);
	}
	for (Annot **at = &m->annot; *at;) {
		if (selects(*at) && apply(&r, *at))
			*at = (*at)->next;
		else
			at = &(*at)->next;
	}
	resolve_graph(&r, m->graph);
	for (int i = 0; i < m->nfunction; i++)
		resolve_graph(&r, m->function[i]->body);
	return r.bad;
}
