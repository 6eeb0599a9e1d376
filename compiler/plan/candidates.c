/* The candidates of nodes, once for identical nodes, and the SBPs of values, once for identical values.
 *
 * Values are identical when type and factors are equal.  Nodes are identical when operator, attributes and the kinds of
 * operands and results are equal.  A model of a hundred identical layers has no more of either than a model of one, so
 * the tables of the solver are built once and shared, whatever the number of layers. */
#include "search.h"

#include <math.h>
#include <string.h>

enum {
	MANY = 250,                     /* candidates of one node above which thin() removes some */
	JOINED = 8                      /* gradients or parameters of a bucket, about (schedule/bucket.c) */
};

struct Step { uint64_t key[2]; double seconds; };

void candidates_room(Candidates *w)
{
	int64_t *old = w->key;
	w->room = w->room ? 2 * w->room : 64;
	w->key = arena_array(w->arena, int64_t, w->room);
	if (w->nkey)
		memcpy(w->key, old, sizeof *old * (size_t)w->nkey);
}

Name candidates_keyed(Candidates *w)
{
	Name n = name_n((const char *)w->key, sizeof *w->key * (size_t)w->nkey);
	w->nkey = 0;
	return n;
}

static void key_pointer(Candidates *w, const void *p)
{
	candidates_key(w, (int64_t)(intptr_t)p);
}

/* ---- values ---- */

static const struct FactorAxis *factors_at(const Value *v, int a)
{
	return v->factors && a < v->factors->ndim ? &v->factors->axis[a] : NULL;
}

/* Whether type and factors are equal: a kind depends on nothing else. */
static bool same_kind(const Value *v, const Value *u)
{
	const Type *t = v->type, *s = u->type;
	if (t->elem != s->elem || t->ndim != s->ndim)
		return false;
	for (int a = 0; a < t->ndim; a++) {
		const struct FactorAxis *x = factors_at(v, a), *y = factors_at(u, a);
		int n = x ? x->n : 0;
		if (t->dim[a] != s->dim[a] || n != (y ? y->n : 0))
			return false;
		for (int i = 0; i < n; i++)
			if (v->graph->factor[x->factor[i]] != u->graph->factor[y->factor[i]])
				return false;
	}
	return true;
}

static Kind *kind_of(Candidates *w, const Value *v)
{
	const Type *t = v->type;
	candidates_key(w, t->elem);
	candidates_key(w, t->ndim);
	for (int a = 0; a < t->ndim; a++) {
		const struct FactorAxis *x = factors_at(v, a);
		candidates_key(w, t->dim[a]);
		candidates_key(w, x ? x->n : 0);
		for (int i = 0; x && i < x->n; i++)
			candidates_key(w, v->graph->factor[x->factor[i]]);
	}
	Name key = candidates_keyed(w);
	Kind *k = map_get(&w->kinds, key);
	if (!k) {
		k = arena_new(w->arena, Kind);
		k->id = w->nkind++;
		k->v = v;
		k->stored = (double)dtype_bits(kernel_stored(t->elem)) / dtype_bits(t->elem);
		map_put(&w->kinds, key, k);
	}
	return k;
}

int candidates_sbp(Candidates *w, Kind *k, const Sbp *s)
{
	int ndim = w->mesh->ndim;
	for (int i = 0; i < k->n; i++)
		if (k->sbp[i] == s || sbp_equal(k->sbp[i], s, ndim))
			return i;
	Sbp *copy = arena_array(w->arena, Sbp, ndim);
	memcpy(copy, s, sizeof *copy * (size_t)ndim);
	arena_push(w->arena, k->sbp, k->n, copy);
	return k->n - 1;
}

/* Allocates the tables of a kind.  No SBP is added after that. */
static void prices(Candidates *w, Kind *k)
{
	if (k->moved == k->n)
		return;
	k->moved = k->n;
	k->move = arena_array(w->arena, double, (size_t)k->n * (size_t)k->n);
	k->shard = arena_array(w->arena, double, k->n);
	for (int i = 0; i < k->n; i++) {
		k->shard[i] = cost_shard(k->v, k->sbp[i], w->mesh);
		for (int j = 0; j < k->n; j++)
			k->move[i * k->n + j] = NAN;
	}
}

static bool splits(const Sbp *s, int axis)
{
	return s->kind == SBP_S && s->axis == axis;
}

/* A split of the longest axis that neither SBP splits, for a reduce-scatter along it; false: there is none. */
static bool spare_axis(const Value *v, const Sbp *a, const Sbp *b, int ndim, Sbp *s)
{
	int best = -1;
	for (int x = 0; x < v->type->ndim; x++) {
		bool cut = v->type->dim[x] < 2;
		for (int k = 0; k < ndim; k++)
			cut |= splits(&a[k], x) || splits(&b[k], x);
		if (!cut && (best < 0 || v->type->dim[x] > v->type->dim[best]))
			best = x;
	}
	*s = (Sbp){ .kind = SBP_S, .axis = best };
	return best >= 0;
}

/* An SBP entry in 12 bits; false: it does not fit. */
static bool code(const Sbp *s, uint64_t *bits)
{
	*bits = (uint64_t)s->kind | (uint64_t)s->axis << 2 | (uint64_t)s->leaf << 5 | (uint64_t)s->red << 10;
	return !s->reach && s->axis < 8 && s->leaf < 32;
}

/* The key of a change along axis k; false: the SBPs do not fit into a key. */
static bool step_key(const Sbp *now, const Sbp *then, int ndim, int k, uint64_t *key)
{
	uint64_t bits;
	bool fits = code(&then[k], &bits);
	key[0] = (uint64_t)(1 + k) << 12 | bits;
	key[1] = 0;
	for (int i = 0; i < ndim; i++) {
		fits &= code(&now[i], &bits);
		key[i / 4] = key[i / 4] << 12 | bits;
	}
	return fits;
}

static struct Step *step_at(const Kind *k, const uint64_t *key)
{
	uint64_t mask = (uint64_t)k->room - 1, mixed = key[0] + key[1] * 0xff51afd7ed558ccdu;
	uint64_t at = mixed * 0x9e3779b97f4a7c15u >> 32 & mask;
	while (k->step[at].key[0] && (k->step[at].key[0] != key[0] || k->step[at].key[1] != key[1]))
		at = (at + 1) & mask;
	return &k->step[at];
}

static void more_steps(Candidates *w, Kind *k)
{
	struct Step *old = k->step;
	int n = k->room;
	k->room = n ? 2 * n : 1 << 8;
	k->step = arena_array(w->arena, struct Step, k->room);
	for (int i = 0; i < n; i++)
		if (old[i].key[0])
			*step_at(k, old[i].key) = old[i];
}

/* Seconds of a change along axis k of the mesh.  A change that does not fit into a key is priced each time. */
static double step_of(Candidates *w, Kind *kind, const Sbp *now, const Sbp *then, int k)
{
	uint64_t key[2];
	if (!step_key(now, then, w->mesh->ndim, k, key))
		return cost_step(kind->v, now, then, w->mesh);
	if (2 * kind->nstep >= kind->room)
		more_steps(w, kind);
	struct Step *s = step_at(kind, key);
	if (!s->key[0]) {
		kind->nstep++;
		*s = (struct Step){ { key[0], key[1] }, cost_step(kind->v, now, then, w->mesh) };
	}
	return s->seconds;
}

/* Whether the entry of axis k may change on the route: it differs, or it splits the same axis as others that differ. */
static bool active(const Sbp *from, const Sbp *to, int ndim, int k)
{
	if (!sbp_equal(&from[k], &to[k], 1))
		return true;
	for (int j = 0; j < ndim && from[k].kind == SBP_S; j++)
		if (!sbp_equal(&from[j], &to[j], 1) && (splits(&from[j], from[k].axis) || splits(&to[j], from[k].axis)))
			return true;
	return false;
}

/* Seconds of a change along axis `first` of the mesh and those that change with it, one after the other. */
static double step_along(Candidates *w, Kind *kind, const Sbp *from, const Sbp *to, const int *unit, int first)
{
	const Mesh *m = w->mesh;
	Sbp now[MESH_DIMS], then[MESH_DIMS];
	double t = 0;
	memcpy(now, from, sizeof now);
	memcpy(then, from, sizeof then);
	for (int k = first; k < m->ndim; k++) {
		if (unit[k] != first || sbp_equal(&from[k], &to[k], 1))
			continue;
		then[k] = to[k];
		if (!signatures_can(then, m->ndim))
			return INFINITY;
		t += step_of(w, kind, now, then, k);
		now[k] = to[k];
	}
	return t;
}

/* The quickest sequence of changes along one axis, or one bundle, of the mesh at a time.  The state of an axis is 0
 * (its old entry), 1 (an intermediate one) or 2 (its new one).  unit: by axis, the first of those that change together;
 * -1: it does not change. */
static double axis_by_axis(Candidates *w, Kind *kind, const Sbp *from, const Sbp *to)
{
	enum { WAYS = 6561 };                   /* 3 to the power of MESH_DIMS */
	const Value *v = kind->v;
	const Mesh *m = w->mesh;
	Sbp at[MESH_DIMS][3];
	double best[WAYS];
	int n = 1, axis[MESH_DIMS], naxis = 0, unit[MESH_DIMS];
	for (int k = 0; k < m->ndim; k++) {
		at[k][0] = from[k];
		at[k][2] = to[k];
		at[k][1] = (Sbp){ .kind = SBP_B };
		if (from[k].kind == SBP_P && to[k].kind == SBP_B && !spare_axis(v, from, to, m->ndim, &at[k][1]))
			at[k][1] = to[k];
		int first = w->with[k];
		unit[k] = active(from, to, m->ndim, k) ? k : -1;
		if (unit[k] == k && first != k && unit[first] == first && sbp_equal(&from[k], &from[first], 1) &&
			sbp_equal(&to[k], &to[first], 1))
			unit[k] = first;
		if (unit[k] == k) {
			axis[naxis++] = k;
			n *= 3;
		}
	}
	for (int s = 0; s < n; s++)
		best[s] = s ? INFINITY : 0;
	for (int s = 0; s < n; s++) {           /* steps only lead upwards */
		Sbp now[MESH_DIMS] = { { 0 } }, then[MESH_DIMS];
		int state[MESH_DIMS], more = 1;
		if (best[s] >= best[n - 1])
			continue;
		memcpy(now, from, sizeof *now * (size_t)m->ndim);
		for (int i = 0, rest = s; i < naxis; i++, rest /= 3) {
			state[i] = rest % 3;
			for (int k = axis[i]; k < m->ndim; k++)
				now[k] = unit[k] == axis[i] ? at[k][state[i]] : now[k];
		}
		for (int i = 0; i < naxis; i++, more *= 3)
			for (int next = state[i] + 1; next < 3; next++) {
				memcpy(then, now, sizeof then);
				for (int k = axis[i]; k < m->ndim; k++)
					then[k] = unit[k] == axis[i] ? at[k][next] : now[k];
				int end = s + (next - state[i]) * more;
				best[end] = fmin(best[end], best[s] + step_along(w, kind, now, then, unit, axis[i]));
			}
	}
	return best[n - 1];
}

/* Seconds of a transfer.  An entry becomes P without communication, so the transfer before that keeps the old entry. */
static double price(Candidates *w, Kind *k, int from, int to)
{
	Sbp a[MESH_DIMS] = { { 0 } }, b[MESH_DIMS] = { { 0 } };
	bool fill = false;
	int differ = 0;
	for (int i = 0; i < w->mesh->ndim; i++) {
		a[i] = sbp_plain(k->v, k->sbp[from], w->mesh, i);
		b[i] = sbp_plain(k->v, k->sbp[to], w->mesh, i);
		if (w->mesh->dim[i] == 1)
			b[i] = a[i];
		if (b[i].kind == SBP_P && a[i].kind != SBP_P) {
			fill = true;
			b[i] = a[i];
		}
		differ += !sbp_equal(&a[i], &b[i], 1);
	}
	/* where that is not valid, an entry that becomes P is B before */
	for (int i = 0; i < w->mesh->ndim && !signatures_can(b, w->mesh->ndim); i++)
		if (k->sbp[to][i].kind == SBP_P && a[i].kind != SBP_P) {
			differ += a[i].kind != SBP_B;
			b[i] = (Sbp){ .kind = SBP_B };
		}
	if (!signatures_can(b, w->mesh->ndim))
		return INFINITY;
	double t = fill ? device.start + device_through(k->shard[to]) : 0;
	return t + (!differ ? 0 : axis_by_axis(w, k, a, b));
}

double candidates_move(Candidates *w, Kind *k, int from, int to)
{
	prices(w, k);
	double *d = &k->move[from * k->n + to];
	if (isnan(*d))
		*d = price(w, k, from, to);
	return *d;
}

/* Gradients per bucket: a model of few parameters does not fill one. */
static double joined(const Graph *g)
{
	int n = 0;
	for (int i = 0; i < g->nvalue; i++)
		n += g->value[i]->param && !g->value[i]->def;
	return fmax(1, fmin(n, JOINED));
}

/* A transfer in a bucket pays only its share of the latency. */
double candidates_joined(Candidates *w, Kind *k, int from, int to)
{
	double t = candidates_move(w, k, from, to), late = 0;
	for (int i = 0; i < w->mesh->ndim; i++)
		if (w->mesh->dim[i] > 1 && !sbp_equal(&k->sbp[from][i], &k->sbp[to][i], 1))
			late += device.axis[i].latency * ceil(log2(w->mesh->dim[i]));
	return t - (1 - 1 / w->joined) * fmin(t, late);
}

double candidates_shard(Candidates *w, Kind *k, int sbp)
{
	prices(w, k);
	return k->shard[sbp];
}

/* ---- nodes ---- */

static void key_attr(Candidates *w, const Attr *a)
{
	key_pointer(w, a->name);
	candidates_key(w, a->type);
	candidates_key(w, a->n);
	switch (a->type) {
	case AT_INT: candidates_key(w, a->u.i); break;
	case AT_FLOAT: {
		int32_t bits;
		memcpy(&bits, &a->u.f, sizeof bits);
		candidates_key(w, bits);
		break;
	}
	case AT_INTS:
		for (int i = 0; i < a->n; i++)
			candidates_key(w, a->u.is[i]);
		break;
	default: key_pointer(w, a->u.s); break;         /* interned, or one object */
	}
}

/* Rules may depend on the contents of small constants, so the key contains them. */
static void key_operand(Candidates *w, const Value *v)
{
	const Kind *kind = v ? w->kind[v->id] : NULL;
	int none = v ? -2 : -1;
	candidates_key(w, kind ? kind->id : none);
	if (!v || !v->data)
		return;
	int64_t n = tensor_elements(v->data);
	candidates_key(w, n);
	for (int64_t i = 0; i < n && n <= 64 && v->data->dtype != DT_STRING; i++) {
		double x = tensor_get(v->data, i);
		int64_t bits;
		memcpy(&bits, &x, sizeof bits);
		candidates_key(w, bits);
	}
}

static void key_node(Candidates *w, int index)
{
	const Node *n = w->g->node[index];
	bool own = w->pins->node[index] != NULL;
	key_pointer(w, n->row);
	key_pointer(w, n->op);
	candidates_key(w, own ? index : -1);
	candidates_key(w, (int64_t)cost_inside(n, w->fused));
	candidates_key(w, n->nattr);
	for (int i = 0; i < n->nattr; i++)
		key_attr(w, &n->attr[i]);
	candidates_key(w, n->nin);
	for (int i = 0; i < n->nin; i++)
		key_operand(w, n->in[i]);
	for (int i = 0; i < n->nout; i++)
		key_operand(w, n->out[i]);
}

static bool same_attr(const Attr *a, const Attr *b)
{
	if (a->name != b->name || a->type != b->type || a->n != b->n)
		return false;
	switch (a->type) {
	case AT_INT: return a->u.i == b->u.i;
	case AT_FLOAT: return !memcmp(&a->u.f, &b->u.f, sizeof a->u.f);
	case AT_INTS: return !a->n || !memcmp(a->u.is, b->u.is, sizeof *a->u.is * (size_t)a->n);
	default: return a->u.s == b->u.s;
	}
}

static bool same_operands(const Candidates *w, Value *const *x, Value *const *y, int n)
{
	for (int i = 0; i < n; i++) {
		const Value *a = x[i], *b = y[i];
		if (a != b && (!a || !b || w->kind[a->id] != w->kind[b->id] || a->data != b->data))
			return false;
	}
	return true;
}

/* Whether two nodes certainly have equal keys.  With this test most nodes of identical layers need no key. */
static bool same_node(const Candidates *w, int index, const Candidate *x)
{
	const Node *n = w->g->node[index], *m = x->n;
	if (n->row != m->row || n->op != m->op || w->pins->node[index])
		return false;
	if (n->nattr != m->nattr || n->nin != m->nin || n->nout != m->nout)
		return false;
	for (int i = 0; i < n->nattr; i++)
		if (!same_attr(&n->attr[i], &m->attr[i]))
			return false;
	return same_operands(w, n->in, m->in, n->nin) && same_operands(w, n->out, m->out, n->nout) &&
		cost_inside(n, w->fused) == x->inside;
}

/* The SBP that each candidate has for one operand or result, as a number of its kind. */
static void number_sbps(Candidates *w, Candidate *x, const Value *v, Kind **kind, int **sbp, Sbp **(*of)(NdSig *),
	int i)
{
	if (!v || !w->kind[v->id])
		return;
	kind[i] = w->kind[v->id];
	sbp[i] = arena_array(w->arena, int, x->nsig);
	for (int s = 0; s < x->nsig; s++)
		sbp[i][s] = candidates_sbp(w, kind[i], of(&x->sig[s])[i]);
}

static Sbp **in_of(NdSig *s) { return s->in; }
static Sbp **out_of(NdSig *s) { return s->out; }

static bool allowed(const Candidates *w, const Node *n, const NodePin *pin, const NdSig *s)
{
	for (int k = 0; k < w->mesh->ndim; k++)
		if (w->mesh->dim[k] > 1) {
			if (!pins_allow(n, pin, s->sig[k], k))
				return false;
			if (!pin && !cheapest_served(n, s->sig[k]))
				return false;
		}
	return true;
}

/* Whether all shards of a candidate are contiguous ranges of an axis. */
static bool ranges(const Candidates *w, const Node *n, const NdSig *s)
{
	for (int i = 0; i < n->nin + n->nout; i++) {
		const Value *v = i < n->nin ? n->in[i] : n->out[i - n->nin];
		const Sbp *f = i < n->nin ? s->in[i] : s->out[i - n->nin];
		for (int k = 0; v && k < w->mesh->ndim; k++)
			if (f[k].kind == SBP_S && sbp_plain(v, f, w->mesh, k).leaf)
				return false;
	}
	return true;
}

/* Meshes of three and more axes give many combinations.  Then those that split a factor of an axis are left out. */
static void thin(const Candidates *w, const Node *n, Candidate *x)
{
	int kept = 0;
	for (int i = 0; i < x->nsig; i++)
		kept += ranges(w, n, &x->sig[i]);
	if (x->nsig <= MANY || !kept)
		return;
	kept = 0;
	for (int i = 0; i < x->nsig; i++)
		if (ranges(w, n, &x->sig[i]))
			x->sig[kept++] = x->sig[i];
	x->nsig = kept;
}

static Candidate *new_candidate(Candidates *w, int index)
{
	Node *n = w->g->node[index];
	Candidate *x = arena_new(w->arena, Candidate);
	int all;
	NdSig *sig = signatures_product(n, w->mesh, w->with, w->arena, &all);
	x->id = w->ncandidate++;
	x->n = n;
	x->view = n->row->kernel && !strcmp(n->row->kernel, "copy") && n->nin;
	x->expr = n->row->expr != NULL;
	x->inside = cost_inside(n, w->fused);
	for (int i = 0; i < all; i++)
		if (allowed(w, n, w->pins->node[index], &sig[i]))
			arena_push(w->arena, x->sig, x->nsig, sig[i]);
	thin(w, n, x);
	if (!x->nsig) {                         /* each axis alone has candidates, but no combination is valid */
		fail_at(EXIT_NOPLAN, n->loc,
			"%s cannot run by its pin along all axes of mesh %s at once: an axis is split by whole ranges "
			"or by its factors, and P has one reduction", n->op, w->mesh->name);
		x->sig = sig;
		x->nsig = all;
	}
	x->kin = arena_array(w->arena, Kind *, n->nin + 1);
	x->kout = arena_array(w->arena, Kind *, n->nout + 1);
	x->in = arena_array(w->arena, int *, n->nin + 1);
	x->out = arena_array(w->arena, int *, n->nout + 1);
	x->reads = arena_array(w->arena, bool, n->nin + 1);
	for (int i = 0; i < n->nin; i++) {
		number_sbps(w, x, n->in[i], x->kin, x->in, in_of, i);
		x->reads[i] = n->in[i] && kernel_reads(n, i);
	}
	for (int i = 0; i < n->nout; i++)
		number_sbps(w, x, n->out[i], x->kout, x->out, out_of, i);
	x->cost = arena_array(w->arena, double, x->nsig);
	Expansion *d = NULL;                    /* once for all candidates that use the definition */
	for (int s = 0; s < x->nsig; s++) {
		const NdSig *nd = &x->sig[s];
		bool define = signatures_define(nd, w->mesh);
		if (define && !d)
			d = expansion_open(n);
		x->cost[s] = define ? expansion_cost(d, nd, w->mesh) : cost_run(n, nd->in, nd->out, w->mesh, x->inside);
	}
	if (d)
		expansion_close(d);
	return x;
}

static Trait trait_of(const Value *v)
{
	return (Trait){
		.maker = -1, .slot = v->defidx, .into = v->into ? v->into->id : -1,
		.def = v->def != NULL, .data = v->data != NULL, .param = v->param, .input = v->input, .init = v->init,
		.output = v->output,
	};
}

/* Identical layers have the same kinds and candidates in the same order.  So after a kind was found by its key, the
 * kind that followed its last occurrence is tried first. */
static void read_values(Candidates *w)
{
	/* last: by kind, 1 + the value that had it; next: 1 + the value to try */
	int n = w->g->nvalue, *last = arena_array(w->arena, int, n + 1), next = 0;
	w->trait = arena_array(w->arena, Trait, n + 1);
	for (int i = 0; i < n; i++) {
		const Value *v = w->g->value[i];
		if (i + 6 < n) {
			__builtin_prefetch(w->g->value[i + 6]->type);
			__builtin_prefetch(w->g->value[i + 6]->factors);
		}
		graph_ahead_value(w->g->value, i, n);
		bool none = !v->type || v->type->kind != TY_TENSOR || v->type->ndim < 0 || !placement_here(v, w->mesh);
		bool tried = false;
		const Kind *like = next ? w->kind[next - 1] : NULL;
		w->trait[i] = trait_of(v);
		if (!none) {
			tried = like && same_kind(v, like->v);
			w->kind[i] = tried ? (Kind *)like : kind_of(w, v);
		}
		if (!tried)
			next = none ? next : last[w->kind[i]->id];
		next += next != 0;
		if (!none)
			last[w->kind[i]->id] = i + 1;
	}
}

static void read_operands(Candidates *w)
{
	const Graph *g = w->g;
	int n = 0;
	w->first = arena_array(w->arena, int, g->nnode + 1);
	for (int i = 0; i < g->nnode; i++) {
		if (i + 16 < g->nnode)
			__builtin_prefetch(g->node[i + 16]);
		w->first[i] = n;
		n += g->node[i]->nin + g->node[i]->nout;
	}
	w->first[g->nnode] = n;
	w->operand = arena_array(w->arena, int, n + 1);
	for (int i = 0; i < g->nnode; i++) {
		const Node *x = g->node[i];
		int *to = w->operand + w->first[i];
		graph_ahead(g->node, i, g->nnode);
		for (int k = 0; k < x->nin; k++)
			*to++ = x->in[k] ? x->in[k]->id : -1;
		for (int k = 0; k < x->nout; k++) {
			*to++ = x->out[k] ? x->out[k]->id : -1;
			if (x->out[k])
				w->trait[x->out[k]->id].maker = i;
		}
	}
}

static Candidate *candidate_of(Candidates *w, int i)
{
	key_node(w, i);
	Name key = candidates_keyed(w);
	Candidate *x = map_get(&w->candidates, key);
	if (!x) {
		x = new_candidate(w, i);
		map_put(&w->candidates, key, x);
	}
	return x;
}

static bool pins_alike(Sbp *const *list, int n, int j, int k)
{
	for (int i = 0; i < n; i++)
		if (list[i] && !sbp_equal(&list[i][j], &list[i][k], 1))
			return false;
	return true;
}

/* Whether all pins have equal entries along two axes of the mesh. */
static bool axes_alike(const void *arg, int j, int k)
{
	const Candidates *w = arg;
	if (!pins_alike(w->pins->value, w->g->nvalue, j, k))
		return false;
	for (int i = 0; i < w->g->nnode; i++) {
		const Node *n = w->g->node[i];
		const NodePin *p = w->pins->node[i];
		if (p && (!pins_alike(p->in, n->nin, j, k) || !pins_alike(p->out, n->nout, j, k)))
			return false;
	}
	return true;
}

static bool bundle(Candidates *w)
{
	int n = mesh_axes_bundle(w->mesh, axes_alike, w, w->with);
	if (n > AXES_FREE)
		fail_at(EXIT_NOPLAN, w->mesh->loc,
			"pins treat %d axes of mesh %s differently, too many to be combined: give the same entries "
			"along some, so that at most %d are left", n, w->mesh->name, AXES_FREE);
	return n <= AXES_FREE;
}

void candidates_init(Candidates *w, Graph *g, const Mesh *m, const Pins *pins)
{
	*w = (Candidates){ .g = g, .mesh = m, .pins = pins, .arena = g->scratch };
	if (!bundle(w))
		return;
	map_init(&w->kinds, w->arena);
	map_init(&w->candidates, w->arena);
	map_init(&w->tables, w->arena);
	w->kind = arena_array(w->arena, Kind *, g->nvalue + 1);
	w->candidate = arena_array(w->arena, Candidate *, g->nnode + 1);
	read_values(w);
	read_operands(w);
	w->fused = cost_fused(g, w->arena);
	w->joined = joined(g);
	for (int i = 0, next = 0; i < g->nnode; i++) {
		graph_ahead(g->node, i, g->nnode);
		if (i + 8 < g->nnode)
			__builtin_prefetch(g->node[i + 8]->attr);
		bool tried = next && same_node(w, i, w->candidate[next - 1]);
		w->candidate[i] = tried ? w->candidate[next - 1] : candidate_of(w, i);
		if (!tried)
			next = w->candidate[i]->last;
		next += next != 0;
		w->candidate[i]->last = i + 1;
	}
}
