/* The choice of signatures, of all nodes and mesh axes together, by the least sum of seconds.
 *
 * A node chooses among its signatures: that costs what it computes.  A value whose form is not simply what its maker gives
 * chooses too: inputs, parameters and state, values that are pinned, reported, updated in place, or read by several nodes.
 * Between a maker and a reader stands the cost of the transfer from the one's form to the other's.  An update lives in the
 * storage of what it updates, so both are one choice.  Transfers of parameters and of their gradients are hidden in part by
 * computing, as the figures of the machine say.
 *
 * The result is the form of every value; boxing then finds for each node the signature that goes with them. */
#include "assign.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const double SECOND = 5e8;       /* entries of tables that the solver visits in a second, about */

static const Value *root(const Value *v)
{
	while (v->into)
		v = v->into;
	return v;
}

/* ---- values that choose ---- */

static bool is_home(const Sbp *s, int ndim)
{
	for (int k = 0; k < ndim; k++)
		if (s[k].reach)
			return false;
	return true;
}

static bool pinned_to(const Sbp *pin, const Sbp *s, int ndim)
{
	for (int k = 0; pin && k < ndim; k++)
		if (pin[k].kind != SBP_ANY && !sbp_equal(&pin[k], &s[k], 1))
			return false;
	return true;
}

/* What the pins of the values in one storage leave, by the first of them; pins.c has seen that they agree. */
static const Sbp **pins_by_root(Assign *s)
{
	Sbp **all = arena_array(s->arena, Sbp *, s->g->nvalue + 1);
	for (int i = 0; i < s->g->nvalue; i++) {
		const Sbp *pin = s->pins->value[i];
		Sbp **to = &all[root(s->g->value[i])->id];
		for (int k = 0; k < s->mesh->ndim && pin && !*to; k++) {
			*to = arena_array(s->arena, Sbp, s->mesh->ndim);
			for (int j = 0; j < s->mesh->ndim; j++)
				(*to)[j].kind = SBP_ANY;
		}
		for (int k = 0; k < s->mesh->ndim && pin; k++)
			if (pin[k].kind != SBP_ANY)
				(*to)[k] = pin[k];
	}
	return (const Sbp **)all;
}

/* A value that lives from step to step, or comes from outside, is never a sum of terms. */
static Domain *domain_of(Assign *s, const Value *v, const Sbp *pin, bool whole)
{
	Kind *kind = s->ways.kind[v->id];
	Sbp fixed[MESH_DIMS] = { { 0 } };
	bool terms = v->def != NULL;
	ways_key(&s->ways, kind->id);
	ways_key(&s->ways, terms + 2 * whole);
	for (int k = 0; k < s->mesh->ndim && pin; k++) {
		ways_key(&s->ways, pin[k].kind);
		ways_key(&s->ways, pin[k].axis * 256 + pin[k].leaf);
		ways_key(&s->ways, pin[k].red);
		ways_key(&s->ways, (int64_t)(intptr_t)pin[k].reach);
		if (pin[k].kind != SBP_ANY)
			fixed[k] = pin[k];
	}
	Name key = ways_keyed(&s->ways);
	Domain *d = map_get(&s->domains, key);
	if (d)
		return d;
	d = arena_new(s->arena, Domain);
	d->kind = kind;
	d->key = key;
	map_put(&s->domains, key, d);
	int first = kind_form(&s->ways, kind, fixed);
	arena_push(s->arena, d->form, d->n, first);
	for (int i = 0; i < kind->n && !whole; i++) {
		const Sbp *f = kind->form[i];
		bool ok = i != first && is_home(f, s->mesh->ndim) && pinned_to(pin, f, s->mesh->ndim) && sbp_can(f, s->mesh->ndim);
		for (int k = 0; k < s->mesh->ndim; k++)
			ok &= terms || f[k].kind != SBP_P;
		if (ok)
			arena_push(s->arena, d->form, d->n, i);
	}
	return d;
}

static int variable(Assign *s, int n, const double *cost, Domain *d)
{
	SolveNode x = { .n = n, .cost = cost };
	arena_push(s->arena, s->domain, s->ndomain, d);
	arena_push(s->arena, s->p.node, s->p.nnode, x);
	return s->p.nnode - 1;
}

/* What a rank reads of the data. */
static const double *reading(Assign *s, const Domain *d)
{
	double *t = arena_array(s->arena, double, d->n);
	for (int i = 0; i < d->n; i++)
		t[i] = (double)s->times * kind_part(&s->ways, d->kind, d->form[i]) / figures.bytes;
	return t;
}

static void choose_homes(Assign *s)
{
	Graph *g = s->g;
	bool *updated = arena_array(s->arena, bool, g->nvalue + 1), *told = arena_array(s->arena, bool, g->nvalue + 1);
	const Sbp **pin = pins_by_root(s);
	s->home = arena_array(s->arena, int, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		s->home[i] = -1;
		if (g->value[i]->into)
			updated[root(g->value[i])->id] = true;
		if (g->value[i]->output)
			told[root(g->value[i])->id] = true;
	}
	for (int i = 0; i < g->nvalue; i++)     /* all forms first: then prices can be asked for */
		if (pin[i] && s->ways.kind[i])
			domain_of(s, g->value[i], pin[i], false);
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		bool data = !v->def && v->data && !v->param;
		if (v->into || !s->ways.kind[i] || (!v->def && !v->init && !v->input))
			continue;
		if (v->def && !pin[i] && !updated[i] && !told[i] && s->readers[i] < 2)
			continue;
		bool tiny = v->def && !updated[i] && type_elements(v->type) <= 16;      /* whole: nothing else is worth a thought */
		Domain *d = domain_of(s, v, pin[i], !pin[i] && (data || told[i] || tiny));
		s->home[i] = variable(s, d->n, v->input && !v->init ? reading(s, d) : NULL, d);
	}
	for (int i = 0; i < g->nvalue; i++)
		if (g->value[i]->into)
			s->home[i] = s->home[root(g->value[i])->id];
}

/* ---- edges ---- */

/* Shared by all pairs that are alike. */
static double *table(Assign *s, Name key, int rows, int cols, bool *fresh)
{
	double *t = map_get(&s->ways.tables, key);
	*fresh = !t;
	if (!t) {
		t = arena_array(s->arena, double, (size_t)rows * (size_t)cols);
		map_put(&s->ways.tables, key, t);
	}
	return t;
}

static void edge(Assign *s, int a, int b, const double *cost)
{
	SolveEdge e = { a, b, cost };
	arena_push(s->arena, s->p.edge, s->p.nedge, e);
}

/* How often a node runs in a step. */
static double often(const Assign *s, const Node *n)
{
	return s->times > 1 && !micro_begins(n) && !micro_updates(n) ? (double)s->times : 1;
}

static bool gradient(const Value *v)
{
	static const char grad[] = ".grad";
	size_t n = strlen(v->name), m = strlen(grad);
	const Value *of = n > m && !strcmp(v->name + n - m, grad) && v->def && v->graph ? graph_find(v->graph, name_n(v->name, n - m)) : NULL;
	return of && of->param;
}

static void find_gradients(Assign *s)
{
	s->gradient = arena_array(s->arena, bool, s->g->nvalue + 1);
	for (int i = 0; i < s->g->nvalue; i++)
		s->gradient[i] = gradient(s->g->value[i]);
}

/* What is not hidden of a transfer of v. */
static double seen(const Assign *s, const Value *v)
{
	return s->gradient[v->id] || (v->param && !v->def) ? 1 - figures.overlap : 1;
}

/* Transfers of gradients and of parameters that are updated wait for others of their kind. */
static bool joined(const Assign *s, const Value *v)
{
	return s->gradient[v->id] || (v->into && root(v)->param);
}

static void key_factor(Assign *s, double f)
{
	int64_t bits;
	memcpy(&bits, &f, sizeof bits);
	ways_key(&s->ways, bits);
}

/* Result o of node a, as home or as node b (operands in mask) wants it. */
static void made(Assign *s, int a, int o)
{
	const Way *w = s->ways.way[a];
	const Value *v = s->g->node[a]->out[o];
	const Domain *d = s->domain[s->home[v->id]];
	double factor = often(s, s->g->node[a]) * seen(s, v);
	double (*move)(Ways *, Kind *, int, int) = joined(s, v) ? kind_joined : kind_move;
	bool fresh;
	ways_key(&s->ways, w->id);
	ways_key(&s->ways, 2 * o + joined(s, v));
	ways_key(&s->ways, (int64_t)(intptr_t)d);
	key_factor(s, factor);
	double *t = table(s, ways_keyed(&s->ways), w->nsig, d->n, &fresh);
	for (int i = 0; i < w->nsig && fresh; i++)
		for (int j = 0; j < d->n; j++)
			t[i * d->n + j] = factor * move(&s->ways, d->kind, w->out[o][i], d->form[j]);
	edge(s, a, s->home[v->id], t);
}

/* The operands of b that are the same value as operand i: each form of it is made once. */
static double wanted(Assign *s, const Way *w, Kind *k, int64_t mask, int way, int from, bool together)
{
	double sum = 0;
	for (int i = 0; i < w->n->nin && i < 63; i++) {
		bool again = !(mask >> i & 1);
		for (int j = 0; j < i && !again; j++)
			again = (mask >> j & 1) && w->in[j][way] == w->in[i][way];
		if (!again)
			sum += (together ? kind_joined : kind_move)(&s->ways, k, from, w->in[i][way]);
	}
	return sum;
}

static void read_by(Assign *s, int b, int i)
{
	const Node *n = s->g->node[b];
	const Way *w = s->ways.way[b];
	const Value *v = n->in[i];
	Kind *k = s->ways.kind[v->id];
	int64_t mask = 0;
	for (int j = 0; j < n->nin && j < 63; j++)
		if (n->in[j] == v && w->reads[j])
			mask |= (int64_t)1 << j;
	if (mask & (((int64_t)1 << i) - 1))
		return;                         /* was done with an earlier operand */
	const Domain *d = s->home[v->id] >= 0 ? s->domain[s->home[v->id]] : NULL;
	double factor = often(s, n) * seen(s, v);
	int a = -1;
	if (!d) {
		if (!v->def)
			return;
		a = v->def->mark;
	}
	const Way *from = d ? NULL : s->ways.way[a];
	int rows = d ? d->n : from->nsig;
	bool fresh;
	ways_key(&s->ways, w->id);
	ways_key(&s->ways, mask);
	ways_key(&s->ways, d ? (int64_t)(intptr_t)d : (int64_t)(intptr_t)from);
	ways_key(&s->ways, d ? -1 : v->defidx);
	ways_key(&s->ways, joined(s, v));
	key_factor(s, factor);
	double *t = table(s, ways_keyed(&s->ways), rows, w->nsig, &fresh);
	for (int r = 0; r < rows && fresh; r++)
		for (int c = 0; c < w->nsig; c++)
			t[r * w->nsig + c] = factor * wanted(s, w, k, mask, c, d ? d->form[r] : from->out[v->defidx][r], joined(s, v));
	edge(s, d ? s->home[v->id] : a, b, t);
}

static void problem(Assign *s)
{
	Graph *g = s->g;
	for (int i = 0; i < g->nnode; i++) {
		const Way *w = s->ways.way[i];
		double factor = often(s, g->node[i]), *cost = w->cost;
		bool fresh = factor != 1;
		if (fresh) {
			ways_key(&s->ways, w->id);
			key_factor(s, factor);
			cost = table(s, ways_keyed(&s->ways), w->nsig, 1, &fresh);
			for (int k = 0; k < w->nsig && fresh; k++)
				cost[k] = factor * w->cost[k];
		}
		g->node[i]->mark = variable(s, w->nsig, cost, NULL);
	}
	choose_homes(s);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] && s->ways.kind[n->out[k]->id] && s->home[n->out[k]->id] >= 0)
				made(s, i, k);
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && s->ways.kind[n->in[k]->id] && s->ways.way[i]->reads[k])
				read_by(s, i, k);
	}
}

static void count_readers(Assign *s)
{
	int *last = arena_array(s->arena, int, s->g->nvalue + 1);
	s->readers = arena_array(s->arena, int, s->g->nvalue + 1);
	for (int i = 0; i < s->g->nnode; i++) {
		const Node *n = s->g->node[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] && s->ways.way[i]->reads[k] && last[n->in[k]->id] != i + 1) {
				last[n->in[k]->id] = i + 1;
				s->readers[n->in[k]->id]++;
			}
	}
}

/* ---- the result ---- */

int assign_variable(const Assign *s, const Value *v)
{
	return s->home[v->id] >= 0 ? s->home[v->id] : v->def && s->ways.kind[v->id] ? v->def->mark : -1;
}

int assign_form(const Assign *s, const Value *v, int choice)
{
	return s->home[v->id] >= 0 ? s->domain[s->home[v->id]]->form[choice] : s->ways.way[v->def->mark]->out[v->defidx][choice];
}

static void settle(Assign *s, const int *choice)
{
	static const Sbp whole[MESH_DIMS];
	Graph *g = s->g;
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		if (!places_here(v, s->mesh))
			continue;
		int x = assign_variable(s, v);
		const Sbp *f = x < 0 ? whole : s->ways.kind[i]->form[assign_form(s, v, choice[x])];
		v->sbp = arena_array(g->arena, Sbp, s->mesh->ndim);
		memcpy(v->sbp, f, sizeof *f * (size_t)s->mesh->ndim);
		if (v->def || v->init || v->input)
			sbp_note(g, v, s->mesh);
	}
	for (int i = 0; i < g->nnode; i++)      /* define.c replaces these */
		g->node[i]->mark = sbp_defines(&s->ways.way[i]->sig[choice[i]], s->mesh);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double gap(const SolveResult *r)
{
	return r->cost > 0 ? 100 * (r->cost - r->bound) / r->cost : 0;
}

static void tell(const Assign *s, const SolveResult *r, double seconds)
{
	if (r->stopped)
		warn_at(s->mesh->loc, "the solver stopped at its limit: this plan takes %.4g s a step, any plan at least %.4g s, a gap of %.2g %%", r->cost, r->bound, gap(r));
	if (!opt.explain || s->g->model->main)
		return;
	printf("plan: %.4g s a step, at least %.4g s by any plan, gap %.2g %%; %d choices and %d transfers in %.3f s", r->cost, r->bound,
	       gap(r), s->p.nnode, s->p.nedge, seconds);
	if (s->bytes > 0)
		printf("; %s%.0f bytes a rank of %.0f", budget.bytes ? "" : "about ", budget.bytes ? (double)budget.bytes : s->bytes, figures.memory);
	if (r->exact)
		printf(", exactly (largest table %zu)\n", r->table);
	else
		printf(", by %d passes of messages\n", r->passes);
}

int sbp_solve(Graph *g, const Plan *p, const Mesh *m)
{
	double start = now();
	Assign s = { .g = g, .mesh = m, .arena = g->scratch, .times = p->training && p->train.times ? p->train.times : 1 };
	SolveResult r;
	s.pins = pins_read(g, s.mesh);
	if (!s.pins)
		return -1;
	map_init(&s.domains, s.arena);
	int errors = diag_errors();
	ways_init(&s.ways, g, s.mesh, s.pins);
	if (diag_errors() > errors)
		return -1;
	count_readers(&s);
	find_gradients(&s);
	problem(&s);
	s.p.work = opt.solve_seconds < 0 ? 0 : 1 + SECOND * (double)opt.solve_seconds;
	if (assign_within_memory(&s, &r))
		return -1;
	if (!r.possible)
		die("no choice of signatures is possible");
	settle(&s, r.choice);
	tell(&s, &r, now() - start);
	return 0;
}
