/* The search: signatures of all nodes along all mesh axes together, by the least sum of seconds.
 *
 * A node is a variable: its choices are its candidates, their cost is the time of computation.  A value is a variable
 * when its SBP is not simply that of its producer: inputs, parameters and state, values that are pinned, reported,
 * updated in place or read by several nodes.  An edge between a producer and a reader has the cost of the transfer
 * between their SBPs.  An update shares the storage of what it updates, so both are one variable.  Transfers of
 * parameters and gradients are partly hidden by computation (Device.overlap).
 *
 * The result is the SBP of every value; boxing then finds the signature of each node. */
#include "search.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const double SECOND = 5e8;       /* entries of tables that the solver visits in a second, about */

/* An SBP and its annotation as objects of the graph, which values share; NULL: not made yet. */
struct Chosen { Sbp *sbp; const Annot *note; };

static void find_roots(Search *s)
{
	s->root = arena_array(s->arena, int, s->g->nvalue + 1);
	for (int i = 0; i < s->g->nvalue; i++) {
		int v = i;
		while (s->candidates.trait[v].into >= 0)
			v = s->candidates.trait[v].into;
		s->root[i] = v;
	}
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

/* The combined pins of the values in one storage, by the first of them; pins.c has checked that they agree. */
static const Sbp **pins_by_root(Search *s)
{
	Sbp **all = arena_array(s->arena, Sbp *, s->g->nvalue + 1);
	for (int i = 0; i < s->g->nvalue; i++) {
		const Sbp *pin = s->pins->value[i];
		Sbp **to = &all[s->root[i]];
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

/* State, an input or an output cannot be partial.  only_b: where it is not pinned, it is B. */
static Domain *domain_of(Search *s, const Value *v, const Sbp *pin, bool only_b)
{
	Kind *kind = s->candidates.kind[v->id];
	Sbp fixed[MESH_DIMS] = { { 0 } };
	bool partial = v->def && !v->output;
	candidates_key(&s->candidates, kind->id);
	candidates_key(&s->candidates, partial + 2 * only_b);
	for (int k = 0; k < s->mesh->ndim && pin; k++) {
		candidates_key(&s->candidates, pin[k].kind);
		candidates_key(&s->candidates, pin[k].axis * 256 + pin[k].leaf);
		candidates_key(&s->candidates, pin[k].red);
		candidates_key(&s->candidates, (int64_t)(intptr_t)pin[k].reach);
		if (pin[k].kind != SBP_ANY)
			fixed[k] = pin[k];
	}
	Name key = candidates_keyed(&s->candidates);
	Domain *d = map_get(&s->domains, key);
	if (d)
		return d;
	d = arena_new(s->arena, Domain);
	d->kind = kind;
	d->key = key;
	map_put(&s->domains, key, d);
	int first = candidates_sbp(&s->candidates, kind, fixed);
	arena_push(s->arena, d->sbp, d->n, first);
	for (int i = 0; i < kind->n && !only_b; i++) {
		const Sbp *f = kind->sbp[i];
		bool ok = i != first && is_home(f, s->mesh->ndim) && pinned_to(pin, f, s->mesh->ndim) &&
			signatures_can(f, s->mesh->ndim);
		for (int k = 0; k < s->mesh->ndim; k++)
			ok &= partial || f[k].kind != SBP_P;
		if (ok)
			arena_push(s->arena, d->sbp, d->n, i);
	}
	return d;
}

static int variable(Search *s, int n, const double *cost, Domain *d)
{
	s->domain[s->ndomain++] = d;
	s->p.node[s->p.nnode] = (SolveNode){ .n = n, .cost = cost };
	return s->p.nnode++;
}

/* Seconds in which a rank reads its shard of an input, by SBP. */
static const double *reading(Search *s, const Domain *d)
{
	double *t = arena_array(s->arena, double, d->n);
	for (int i = 0; i < d->n; i++)
		t[i] = (double)s->microbatches * candidates_shard(&s->candidates, d->kind, d->sbp[i]) / device.bytes;
	return t;
}

static void choose_homes(Search *s)
{
	Graph *g = s->g;
	bool *updated = arena_array(s->arena, bool, g->nvalue + 1);
	bool *reported = arena_array(s->arena, bool, g->nvalue + 1);
	const Sbp **pin = pins_by_root(s);
	s->home = arena_array(s->arena, int, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		s->home[i] = -1;
		if (s->candidates.trait[i].into >= 0)
			updated[s->root[i]] = true;
		if (s->candidates.trait[i].output)
			reported[s->root[i]] = true;
	}
	for (int i = 0; i < g->nvalue; i++)     /* all SBPs of kinds are numbered before the first is priced */
		if (pin[i] && s->candidates.kind[i])
			domain_of(s, g->value[i], pin[i], false);
	for (int i = 0; i < g->nvalue; i++) {
		const Trait *v = &s->candidates.trait[i];
		bool data = !v->def && v->data && !v->param;
		if (v->into >= 0 || !s->candidates.kind[i] || (!v->def && !v->init && !v->input))
			continue;
		if (v->def && !pin[i] && !updated[i] && !reported[i] && s->readers[i] < 2)
			continue;
		/* always B: a transfer costs more than a split saves */
		bool tiny = v->def && !updated[i] && type_elements(s->candidates.kind[i]->v->type) <= 16;
		bool only_b = !pin[i] && (data || reported[i] || tiny);
		Domain **known = &s->candidates.kind[i]->domain[v->def + 2 * only_b], *d = pin[i] ? NULL : *known;
		if (!d)
			d = domain_of(s, g->value[i], pin[i], only_b);
		if (!pin[i])
			*known = d;
		s->home[i] = variable(s, d->n, v->input && !v->init ? reading(s, d) : NULL, d);
	}
	for (int i = 0; i < g->nvalue; i++)
		if (s->candidates.trait[i].into >= 0)
			s->home[i] = s->home[s->root[i]];
}

/* ---- edges ---- */

/* The table of an edge or a node, shared by all that have the same key; fresh: it is to be filled. */
static double *table(Search *s, Name key, int rows, int cols, bool *fresh)
{
	double *t = map_get(&s->candidates.tables, key);
	*fresh = !t;
	if (!t) {
		t = arena_array(s->arena, double, (size_t)rows * (size_t)cols);
		map_put(&s->candidates.tables, key, t);
	}
	return t;
}

/* The last table of an operand or result, and what it was made for, beside the candidates of the node.  The next node
 * of identical layers mostly uses it again. */
typedef struct Seen {
	const void *from;               /* Domain or Candidate */
	int64_t mask;
	int slot;
	bool joined;
	double factor;
	double *t;
} Seen;

static Seen *seen_at(Search *s, Candidate *w, int i)
{
	if (!w->seen)
		w->seen = arena_array(s->arena, Seen, w->n->nin + w->n->nout + 1);
	return &w->seen[i];
}

static bool seen_same(const Seen *a, const Seen *b)
{
	return a->t && a->from == b->from && a->mask == b->mask && a->slot == b->slot && a->joined == b->joined &&
		a->factor == b->factor;
}

static void edge(Search *s, int a, int b, const double *cost)
{
	s->p.edge[s->p.nedge++] = (SolveEdge){ a, b, cost };
}

/* How often a node runs in a step. */
static double often(const Search *s, int node)
{
	const Node *n = s->g->node[node];
	return s->microbatches > 1 && !microbatch_begins(n) && !microbatch_updates(n) ? (double)s->microbatches : 1;
}

/* Gradients are found from the parameters, because these are few. */
static void find_gradients(Search *s)
{
	s->gradient = arena_array(s->arena, bool, s->g->nvalue + 1);
	for (int i = 0; i < s->g->nvalue; i++) {
		if (!s->candidates.trait[i].param)
			continue;
		const Value *v = s->g->value[i];
		const Value *grad = v->graph ? graph_find(v->graph, name_fmt("%s.grad", v->name)) : NULL;
		if (grad && grad->def)
			s->gradient[grad->id] = true;
	}
}

/* The fraction of a transfer of v that is not hidden. */
static double exposed(const Search *s, int v)
{
	return s->gradient[v] || (s->candidates.trait[v].param && !s->candidates.trait[v].def) ? 1 - device.overlap : 1;
}

/* Whether a transfer of v shares a bucket with others: those of gradients and of updated parameters do. */
static bool joined(const Search *s, int v)
{
	return s->gradient[v] || (s->candidates.trait[v].into >= 0 && s->candidates.trait[s->root[v]].param);
}

static void key_factor(Search *s, double f)
{
	int64_t bits;
	memcpy(&bits, &f, sizeof bits);
	candidates_key(&s->candidates, bits);
}

/* The edge between node a and the variable of its result o. */
static void made(Search *s, int a, int o)
{
	Candidate *w = s->candidates.candidate[a];
	int v = candidates_out(&s->candidates, a, o);
	const Domain *d = s->domain[s->home[v]];
	Seen now = { .from = d, .slot = o, .joined = joined(s, v), .factor = often(s, a) * exposed(s, v) };
	Seen *last = seen_at(s, w, w->n->nin + o);
	double (*move)(Candidates *, Kind *, int, int) = now.joined ? candidates_joined : candidates_move;
	if (!seen_same(last, &now)) {
		bool fresh;
		candidates_key(&s->candidates, w->id);
		candidates_key(&s->candidates, 2 * o + now.joined);
		candidates_key(&s->candidates, (int64_t)(intptr_t)d);
		key_factor(s, now.factor);
		now.t = table(s, candidates_keyed(&s->candidates), w->nsig, d->n, &fresh);
		for (int i = 0; i < w->nsig && fresh; i++)
			for (int j = 0; j < d->n; j++)
				now.t[i * d->n + j] = now.factor * move(&s->candidates, d->kind, w->out[o][i],
					d->sbp[j]);
		*last = now;
	}
	edge(s, a, s->home[v], last->t);
}

/* The cost of the operands in mask, which are one value: each SBP of it is transferred once. */
static double wanted(Search *s, const Candidate *w, Kind *k, int64_t mask, int candidate, int from, bool together)
{
	double (*move)(Candidates *, Kind *, int, int) = together ? candidates_joined : candidates_move;
	double sum = 0;
	for (int i = 0; i < w->n->nin && i < 63; i++) {
		bool again = !(mask >> i & 1);
		for (int j = 0; j < i && !again; j++)
			again = (mask >> j & 1) && w->in[j][candidate] == w->in[i][candidate];
		if (!again)
			sum += move(&s->candidates, k, from, w->in[i][candidate]);
	}
	return sum;
}

/* The operands of node b that are value v, as bits. */
static int64_t reads_of(const Search *s, int b, int v)
{
	const Candidate *w = s->candidates.candidate[b];
	int64_t mask = 0;
	for (int j = 0; j < w->n->nin && j < 63; j++)
		if (candidates_in(&s->candidates, b, j) == v && w->reads[j])
			mask |= (int64_t)1 << j;
	return mask;
}

/* The edge between the variable of operand i of node b, or its producer, and node b. */
static void read_by(Search *s, int b, int i)
{
	Candidate *w = s->candidates.candidate[b];
	int v = candidates_in(&s->candidates, b, i), a = s->candidates.trait[v].maker;
	int64_t mask = reads_of(s, b, v);
	if (mask & (((int64_t)1 << i) - 1))
		return;                         /* an earlier operand is the same value: its edge stands for both */
	const Domain *d = s->home[v] >= 0 ? s->domain[s->home[v]] : NULL;
	if (!d && a < 0)
		return;
	const Candidate *from = d ? NULL : s->candidates.candidate[a];
	int rows = d ? d->n : from->nsig;
	Seen now = { .from = d ? (const void *)d : from, .mask = mask, .slot = d ? -1 : s->candidates.trait[v].slot,
		.joined = joined(s, v), .factor = often(s, b) * exposed(s, v) };
	Seen *last = seen_at(s, w, i);
	if (!seen_same(last, &now)) {
		bool fresh;
		candidates_key(&s->candidates, w->id);
		candidates_key(&s->candidates, mask);
		candidates_key(&s->candidates, (int64_t)(intptr_t)now.from);
		candidates_key(&s->candidates, now.slot);
		candidates_key(&s->candidates, now.joined);
		key_factor(s, now.factor);
		now.t = table(s, candidates_keyed(&s->candidates), rows, w->nsig, &fresh);
		for (int r = 0; r < rows && fresh; r++) {
			int has = d ? d->sbp[r] : from->out[now.slot][r];
			for (int c = 0; c < w->nsig; c++)
				now.t[r * w->nsig + c] = now.factor *
					wanted(s, w, s->candidates.kind[v], mask, c, has, now.joined);
		}
		*last = now;
	}
	edge(s, d ? s->home[v] : a, b, last->t);
}

static void problem(Search *s)
{
	Graph *g = s->g;
	const Candidates *w = &s->candidates;
	s->domain = arena_array(s->arena, Domain *, g->nnode + g->nvalue + 1);
	s->p.node = arena_array(s->arena, SolveNode, g->nnode + g->nvalue + 1);
	s->p.edge = arena_array(s->arena, SolveEdge, w->first[g->nnode] + 1);
	for (int i = 0; i < g->nnode; i++) {
		double factor = often(s, i), *cost = w->candidate[i]->cost;
		int n = w->candidate[i]->nsig;
		bool fresh = factor != 1;
		if (fresh) {
			candidates_key(&s->candidates, w->candidate[i]->id);
			key_factor(s, factor);
			cost = table(s, candidates_keyed(&s->candidates), n, 1, &fresh);
			for (int k = 0; k < n && fresh; k++)
				cost[k] = factor * w->candidate[i]->cost[k];
		}
		variable(s, n, cost, NULL);
	}
	choose_homes(s);
	for (int i = 0; i < g->nnode; i++) {
		const Candidate *x = w->candidate[i];
		for (int k = 0; k < x->n->nout; k++)
			if (x->kout[k] && s->home[candidates_out(w, i, k)] >= 0)
				made(s, i, k);
		for (int k = 0; k < x->n->nin; k++)
			if (x->kin[k] && x->reads[k])
				read_by(s, i, k);
	}
}

static void count_readers(Search *s)
{
	int *last = arena_array(s->arena, int, s->g->nvalue + 1);
	s->readers = arena_array(s->arena, int, s->g->nvalue + 1);
	for (int i = 0; i < s->g->nnode; i++) {
		const Candidate *w = s->candidates.candidate[i];
		for (int k = 0; k < w->n->nin; k++) {
			int v = candidates_in(&s->candidates, i, k);
			if (v >= 0 && w->reads[k] && last[v] != i + 1) {
				last[v] = i + 1;
				s->readers[v]++;
			}
		}
	}
}

/* ---- the result ---- */

int search_variable(const Search *s, int v)
{
	if (s->home[v] >= 0)
		return s->home[v];
	return s->candidates.kind[v] ? s->candidates.trait[v].maker : -1;
}

int search_sbp(const Search *s, int v, int choice)
{
	const Trait *f = &s->candidates.trait[v];
	if (s->home[v] >= 0)
		return s->domain[s->home[v]]->sbp[choice];
	return s->candidates.candidate[f->maker]->out[f->slot][choice];
}

static struct Chosen new_chosen(const Search *s, const Sbp *sbp)
{
	int n = s->mesh->ndim;
	struct Chosen x = { arena_array(s->g->arena, Sbp, n), sbp_annot(sbp, n) };
	memcpy(x.sbp, sbp, sizeof *sbp * (size_t)n);
	return x;
}

static const struct Chosen *chosen(Search *s, Kind *k, int sbp)
{
	if (!k->chosen)
		k->chosen = arena_array(s->arena, struct Chosen, k->n);
	if (!k->chosen[sbp].sbp)
		k->chosen[sbp] = new_chosen(s, k->sbp[sbp]);
	return &k->chosen[sbp];
}

static void settle(Search *s, const int *choice)
{
	static const Sbp b[MESH_DIMS];
	Graph *g = s->g;
	const struct Chosen all_b = new_chosen(s, b);
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		graph_ahead_value(g->value, i, g->nvalue);
		if (!s->candidates.kind[i] && !placement_here(v, s->mesh))
			continue;
		int x = search_variable(s, i);
		const struct Chosen *c = &all_b;
		if (x >= 0)
			c = chosen(s, s->candidates.kind[i], search_sbp(s, i, choice[x]));
		v->sbp = c->sbp;
		if (v->def || v->init || v->input)
			sbp_note_as(g, v, c->note);
	}
	for (int i = 0; i < g->nnode; i++)      /* expansion.c replaces these */
		g->node[i]->mark = signatures_define(&s->candidates.candidate[i]->sig[choice[i]], s->mesh);
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

static void report(const Search *s, const SolveResult *r, double seconds)
{
	bool alike = false;             /* axes of the mesh are bundled (mesh_axes.c): other plans were not searched */
	for (int k = 0; k < s->mesh->ndim; k++)
		alike |= s->candidates.with[k] != k;
	if (r->stopped)
		warn_at(s->mesh->loc,
			"the solver stopped at its limit: this plan takes %.4g s a step, any plan at least %.4g s, a "
			"gap of %.2g %%", r->cost, r->bound, gap(r));
	if (!opt.explain || s->g->model->main)
		return;
	printf("plan: %.4g s a step, at least %.4g s by any plan%s, gap %.2g %%; %d choices and %d transfers in %.3f s",
		r->cost, r->bound, alike ? " that cuts axes alike" : "", gap(r), s->p.nnode, s->p.nedge, seconds);
	if (s->bytes > 0)
		printf("; %s%.0f bytes a rank of %.0f", opt.change.found ? "" : "about ",
			opt.change.found ? (double)opt.change.found : s->bytes, device.memory);
	for (int k = 0; k < s->mesh->ndim; k++)
		if (s->candidates.with[k] != k)
			printf("; axis %d is cut as axis %d", k, s->candidates.with[k]);
	if (r->exact)
		printf(", exactly (largest table %zu)\n", r->table);
	else
		printf(", by %d passes of messages\n", r->passes);
}

int search_solve(Graph *g, const Plan *p, const Mesh *m)
{
	double start = now();
	Search s = { .g = g, .mesh = m, .arena = g->scratch, .microbatches = 1 };
	SolveResult r;
	if (p->training && p->train.microbatches)
		s.microbatches = p->train.microbatches;
	s.pins = pins_read(g, s.mesh);
	if (!s.pins)
		return -1;
	map_init(&s.domains, s.arena);
	int errors = diag_errors();
	candidates_init(&s.candidates, g, s.mesh, s.pins);
	if (diag_errors() > errors)
		return -1;
	find_roots(&s);
	count_readers(&s);
	find_gradients(&s);
	problem(&s);
	s.p.work = opt.solve_seconds < 0 ? 0 : 1 + SECOND * (double)opt.solve_seconds;
	if (search_memory_solve(&s, &r))
		return -1;
	if (!r.possible)
		die("no choice of signatures is possible");
	settle(&s, r.choice);
	report(&s, &r, now() - start);
	return 0;
}
