/* A graph in exact arithmetic: whole, and on the ranks of meshes. */
#include "exact.h"

#include <string.h>

/* ---- whole ---- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Integers count along axes: how large those of each value may be, by what its users do with them. */
static int64_t *bounds(const Graph *g, Arena *a)
{
	int64_t *below = arena_array(a, int64_t, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		below[i] = 1000;
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin; k++) {
			int axis;
			if (!n->in[k] || !n->in[k]->type || dtype_is_float(n->in[k]->type->elem))
				continue;
			int64_t *b = &below[n->in[k]->id], by = 1000;
			if (op_index(n, k, &axis) && n->in[0]->type->ndim > axis)
				by = n->in[0]->type->dim[axis];
			else if (op_index(n, k, &axis) || !strcmp(n->op, "GatherGrad") || (k == 1 && n->row->composite))
				by = 2;
			else if (n->nout && n->out[0] && !dtype_is_float(n->out[0]->type->elem))
				by = below[n->out[0]->id];
			*b = least(*b, by > 0 ? by : 1);
		}
	}
	return below;
}

Whole *run_whole(Graph *g, uint64_t seed, Arena *a)
{
	Whole *w = arena_new(a, Whole);
	Arena tmp = { 0 };
	int64_t *below = bounds(g, &tmp);
	map_init(&w->byname, a);
	w->nvalue = g->nvalue;
	w->value = arena_array(a, Exact *, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++) {
		Value *v = g->value[i];
		if (v->data && !v->param)
			w->value[i] = exact_tensor(a, v->data);
		else if (!v->def && v->type && v->type->ndim >= 0)
			w->value[i] = exact_start(a, v, seed, below[i]);
	}
	int bad = 0;
	for (int i = 0; i < g->nnode && !bad; i++) {
		Node *n = g->node[i];
		Exact **in = arena_array(&tmp, Exact *, n->nin + 1), **out = arena_array(&tmp, Exact *, n->nout + 1);
		for (int k = 0; k < n->nin; k++)
			in[k] = n->in[k] ? w->value[n->in[k]->id] : NULL;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				w->value[n->out[k]->id] = out[k] = exact_new(a, n->out[k]->type->elem,
					n->out[k]->type->ndim, n->out[k]->type->dim);
		bad = exact_node(n, in, out, &tmp);
	}
	for (int i = 0; i < g->nvalue && !bad; i++)
		if (w->value[i])
			map_put(&w->byname, g->value[i]->name, w->value[i]);
	arena_free(&tmp);
	return bad ? NULL : w;
}

/* ---- on ranks ---- */

typedef struct Run {
	const NdSig *sig;               /* of the node that runs */
	Graph *g;
	const Mesh *mesh;               /* of the node that runs */
	const Whole *whole;
	Hold **at;                      /* by value id */
	uint64_t seed;
	Arena *a;
	Fault fault;                    /* planted in the transfer that is counted down to 0 */
	int until;
	Outcome outcome;
} Run;

/* "S(0) B, B B -> S(0) P" */
static const char *how(const Run *r, const Node *n)
{
	const char *t = "";
	for (int k = 0; k < n->nin; k++)
		if (n->in[k])
			t = name_fmt("%s%s%s %s", t, *t ? ", " : "", type_text(n->in[k]->type),
				sbp_text(r->sig ? r->sig->in[k] : n->in[k]->sbp,
				r->sig ? r->mesh->ndim : n->in[k]->place->mesh->ndim));
	t = name_fmt("%s ->", t);
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			t = name_fmt("%s%s %s %s", t, k ? "," : "", type_text(n->out[k]->type),
				sbp_text(r->sig ? r->sig->out[k] : n->out[k]->sbp, r->mesh->ndim));
	return t;
}

static void say(Run *r, int what, const Node *n, const char *text)
{
	if (r->outcome.what == RUN_SAME || what == RUN_DIFFERS)
		r->outcome.what = what;
	if (!r->outcome.why)
		r->outcome.why = name_fmt("%s of %s (%s) by %s: %s", n->nout && n->out[0] ? n->out[0]->name : "?",
			n->op, n->from ? n->from : loc_text(n->loc), how(r, n), text);
}

static Hold *moved(Run *r, const Hold *h, const Form *to, Arena *a)
{
	Fault f = FAULT_NONE;
	/* wrong integers may not be indices at all */
	if (h->part[0]->real && !form_same(&h->form, to) && r->fault && r->until-- == 0)
		f = r->fault;
	Hold *good = hold_move(a, h, to, FAULT_NONE);
	if (!f)
		return good;
	Hold *bad = hold_move(a, h, to, f);
	for (int i = 0; i < bad->places; i++)
		if (!exact_equal(good->part[i], bad->part[i])) {
			r->outcome.planted++;
			return bad;
		}
	r->until = 0;                   /* it changed nothing: the next one */
	return good;
}

static bool right(Run *r, const Value *v, const Hold *h, Arena *a)
{
	const Exact *want = map_get(&r->whole->byname, v->name), *have = hold_whole(a, h, want);
	return have && (!want || exact_equal(want, have));
}

/* By its definition, on all of its operands. */
static int run_together(Run *r, Node *n, Hold **in, Hold **out, Arena *a)
{
	Exact **x = arena_array(a, Exact *, n->nin + 1), **y = arena_array(a, Exact *, n->nout + 1);
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] && !(x[k] = hold_whole(a, in[k], NULL))) {
			say(r, RUN_DIFFERS, n, "ranks that should hold the same of an operand do not");
			return -1;
		}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			y[k] = exact_new(a, n->out[k]->type->elem, n->out[k]->type->ndim, n->out[k]->type->dim);
	if (exact_node(n, x, y, a)) {
		say(r, RUN_CANNOT, n, exact_reason());
		return -1;
	}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			out[k] = hold_cut(r->a, y[k], &out[k]->form, field_hash(r->seed, (uint64_t)n->out[k]->id));
	return 0;
}

static Type *type_on(Arena *a, const Exact *x)
{
	return x ? type_tensor(a, x->dtype, x->ndim, x->dim) : NULL;
}

/* What a rank gives that has nothing to do: no term. */
static void nothing(Hold *h, int place)
{
	Exact *x = h->part[place];
	for (int64_t i = 0; i < x->n; i++)
		x->v[i] = hold_neutral(h);
}

/* Each rank runs the node that the compiler makes for it. */
static int run_apart(Run *r, Node *n, Hold **in, Hold **out, Arena *a)
{
	Type **tin = arena_array(a, Type *, n->nin + 1), **tout = arena_array(a, Type *, n->nout + 1);
	for (int p = 0; p < r->mesh->nrank; p++) {
		Exact **x = arena_array(a, Exact *, n->nin + 9), **y = arena_array(a, Exact *, n->nout + 1);
		bool any = false;
		for (int k = 0; k < n->nin; k++) {
			x[k] = n->in[k] ? in[k]->part[p] : NULL;
			tin[k] = type_on(a, x[k]);
		}
		for (int k = 0; k < n->nout; k++) {
			y[k] = n->out[k] ? out[k]->part[p] : NULL;
			tout[k] = type_on(a, y[k]);
			any |= y[k] && y[k]->n;
		}
		Node *part = any ? shard_node_of(n, tin, tout, NULL, NULL, a) : NULL;
		for (int k = 0; k < n->nout && !part; k++)
			if (n->out[k])
				nothing(out[k], p);
		for (int k = 0; part && k < part->nin && k < n->nin + 8; k++)
			if (part->in[k] && part->in[k]->data &&
				(k >= n->nin || !n->in[k] || part->in[k]->data != n->in[k]->data))
				x[k] = exact_tensor(a, part->in[k]->data);      /* the compiler made it */
		if (part && exact_node(part, x, y, a)) {
			say(r, RUN_CANNOT, n, exact_reason());
			return -1;
		}
	}
	return 0;
}

static Hold *start(Run *r, const Value *v, const Sbp *s, const Mesh *m)
{
	const Exact *w = map_get(&r->whole->byname, v->name);
	Form f = sbp_form(v, s, m);
	return w ? hold_cut(r->a, w, &f, field_hash(r->seed, field_text(v->name))) : NULL;
}

static int run_node(Run *r, Node *n, Hold **in, Hold **out, bool together, Arena *a)
{
	if (together ? run_together(r, n, in, out, a) : run_apart(r, n, in, out, a))
		return -1;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !right(r, n->out[k], out[k], a)) {
			say(r, RUN_DIFFERS, n, "differs from the whole");
			return -1;
		}
	return 0;
}

/* Nodes whose kernels must know where their shards begin, whose windows reach over the edge of a shard, or that run by
 * their definitions, are evaluated on all shards together. */
static bool one_node(const Node *n, const NdSig *s)
{
	bool special = n->row->random;
	for (int k = 0; k < s->ndim; k++)
		special |= s->sig[k]->run || s->sig[k]->define;
	for (int i = 0; i < n->nin; i++)
		for (int k = 0; n->in[i] && k < s->ndim; k++)
			special |= s->in[i][k].reach != NULL;
	return special;
}

/* Who runs a node by which signature, and who keeps a value in which form. */
typedef struct Candidates { const Mesh **on; NdSig **sig; const Mesh **at; Sbp **home; } Candidates;

static Outcome run_signatures(Graph *g, const Candidates *ways, const Whole *w, uint64_t seed, Fault fault, int until,
	Arena *a)
{
	Run r = { .g = g, .whole = w, .seed = seed, .a = a, .fault = fault, .until = until };
	Sbp **home = ways->home;
	r.at = arena_array(a, Hold *, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		if (!g->value[i]->def && w->value[i])
			r.at[i] = start(&r, g->value[i], home[i], ways->at[i]);
	for (int i = 0, bad = 0; i < g->nnode && !bad; i++) {
		Node *n = g->node[i];
		const NdSig *s = r.sig = ways->sig[i];
		const Mesh *m = r.mesh = ways->on[i];
		Arena tmp = { 0 };
		Hold **in = arena_array(&tmp, Hold *, n->nin + 1), **out = arena_array(&tmp, Hold *, n->nout + 1);
		for (int k = 0; k < n->nin; k++) {
			if (!n->in[k])
				continue;
			Form f = sbp_form(n->in[k], s->in[k], m);
			in[k] = moved(&r, r.at[n->in[k]->id], &f, &tmp);
		}
		for (int k = 0; k < n->nout; k++) {
			if (!n->out[k])
				continue;
			Form f = sbp_form(n->out[k], s->out[k], m);
			out[k] = hold_new(a, &f, n->out[k]->type->elem);
		}
		bad = run_node(&r, n, in, out, one_node(n, s), &tmp);
		for (int k = 0; k < n->nout && !bad; k++) {
			if (!n->out[k])
				continue;
			Hold *h = out[k];
			if (home[n->out[k]->id]) {
				Form f = sbp_form(n->out[k], home[n->out[k]->id], ways->at[n->out[k]->id]);
				h = moved(&r, h, &f, a);
			}
			r.at[n->out[k]->id] = h;
			if ((bad = !right(&r, n->out[k], h, &tmp)))
				say(&r, RUN_DIFFERS, n, "differs from the whole where it is kept");
		}
		arena_free(&tmp);
	}
	return r.outcome;
}

/* The signature by which the node runs, as its operands and results lie; operands that are not read lie anyhow. */
static NdSig *signature_of(Node *n, const Mesh *m, Arena *a)
{
	const Sig *pick[MESH_DIMS];
	for (int k = 0; k < m->ndim; k++) {
		int count;
		const Sig *list = signatures_of(n, m->dim[k], a, &count);
		pick[k] = m->dim[k] == 1 ? &list[0] : NULL;     /* on one rank all is the same */
		for (int c = 0; c < count && !pick[k]; c++) {
			bool fits = true;
			for (int i = 0; i < n->nin; i++)
				fits &= !n->in[i] || !kernel_reads(n, i) || sbp_equal(&n->in[i]->sbp[k], &list[c].in[i],
					1);
			for (int i = 0; i < n->nout; i++)
				fits &= !n->out[i] || sbp_equal(&n->out[i]->sbp[k], &list[c].out[i], 1);
			pick[k] = fits ? &list[c] : NULL;
		}
		if (!pick[k])
			return NULL;
	}
	return signatures_together(n, pick, m->ndim, a);
}

/* ---- random plans ---- */

static uint64_t next(uint64_t *rng)
{
	return *rng = field_hash(*rng, 11);
}

static NdSig *random_signature(Node *n, const Mesh *m, uint64_t *rng, Arena *a)
{
	const Sig *pick[MESH_DIMS];
	for (int t = 0; t < 20; t++) {
		for (int k = 0; k < m->ndim; k++) {
			int count;
			const Sig *list = signatures_of(n, m->dim[k], a, &count);
			pick[k] = &list[t < 19 ? (int)(next(rng) % (uint64_t)count) : 0];
		}
		NdSig *s = signatures_together(n, pick, m->ndim, a);
		if (s)
			return s;
	}
	die("everything B is no signature of %s", n->op);
}

static Sbp *random_home(const Value *v, const Mesh *m, uint64_t *rng, Arena *a)
{
	for (int t = 0; t < 20; t++) {
		Sbp *s = arena_array(a, Sbp, m->ndim);
		bool partial = next(rng) % 4 == 0 && dtype_is_float(v->type->elem);
		Reduce red = partial && *rng >> 20 & 1 ? (*rng >> 21 & 1 ? RED_MAX : RED_MIN) : RED_SUM;
		for (int k = 0; k < m->ndim && t < 19; k++) {
			int what = (int)(next(rng) % 4);
			if (what == 0 && partial)
				s[k] = (Sbp){ .kind = SBP_P, .red = red };
			else if (what < 3 && v->type->ndim) {
				s[k] = (Sbp){ .kind = SBP_S, .axis = (int)(next(rng) % (uint64_t)v->type->ndim) };
				const struct FactorAxis *x = v->factors &&
					s[k].axis < v->factors->ndim ? &v->factors->axis[s[k].axis] : NULL;
				if (x && x->n > 1 && next(rng) % 2)
					s[k].leaf = 1 + (int)(next(rng) % (uint64_t)x->n);
			}
		}
		if (signatures_can(s, m->ndim))
			return s;
	}
	return arena_array(a, Sbp, m->ndim);
}

static const Mesh *random_mesh(const Mesh *mesh, int nmesh, uint64_t *rng)
{
	return nmesh == 1 ? mesh : &mesh[next(rng) % (uint64_t)nmesh];
}

Outcome run_random(Graph *g, const Mesh *mesh, int nmesh, const Whole *w, uint64_t seed, Fault fault, int until,
	Arena *a)
{
	uint64_t rng = field_hash(seed, 5);
	Candidates s = { arena_array(a, const Mesh *, g->nnode + 1), arena_array(a, NdSig *, g->nnode + 1),
		arena_array(a, const Mesh *, g->nvalue + 1), arena_array(a, Sbp *, g->nvalue + 1) };
	for (int i = 0; i < g->nnode; i++) {
		s.on[i] = random_mesh(mesh, nmesh, &rng);
		s.sig[i] = random_signature(g->node[i], s.on[i], &rng, a);
	}
	for (int i = 0; i < g->nvalue; i++) {
		const Value *v = g->value[i];
		if (v->type && v->type->ndim >= 0 && w->value[i] && (!v->def || next(&rng) % 3 == 0)) {
			s.at[i] = random_mesh(mesh, nmesh, &rng);
			s.home[i] = random_home(v, s.at[i], &rng, a);
		}
	}
	return run_signatures(g, &s, w, seed, fault, until, a);
}

/* ---- physical graphs ---- */

static int transfer(Run *r, const Node *n, Arena *tmp)
{
	Value *v = n->out[0];
	Form f = sbp_form(v, v->sbp, v->place->mesh);
	const Exact *was = hold_whole(tmp, r->at[n->in[0]->id], NULL), *is;
	r->at[v->id] = hold_move(r->a, r->at[n->in[0]->id], &f, FAULT_NONE);
	is = hold_whole(tmp, r->at[v->id], was);
	if (was && is && exact_equal(was, is) && right(r, v, r->at[v->id], tmp))
		return 0;
	say(r, RUN_DIFFERS, n, "is not what was sent");
	return -1;
}

Outcome run_physical(Graph *g, const Whole *w, uint64_t seed, Arena *a, Hold ***at)
{
	Run r = { .g = g, .whole = w, .seed = seed, .a = a };
	*at = r.at = arena_array(a, Hold *, g->nvalue + 1);
	for (int i = 0; i < g->nvalue; i++)
		if (!g->value[i]->def && g->value[i]->sbp)
			r.at[i] = start(&r, g->value[i], g->value[i]->sbp, g->value[i]->place->mesh);
	for (int i = 0; i < g->nvalue; i++) {   /* constants of definitions that took the place of their nodes */
		const Value *v = g->value[i];
		if (v->def || r.at[i] || !v->data)
			continue;
		Sbp whole[MESH_DIMS] = { { .kind = SBP_B } };
		Form f = sbp_form(v, v->sbp ? v->sbp : whole, v->place ? v->place->mesh : g->model->plan->main);
		r.at[i] = hold_cut(a, exact_tensor(a, v->data), &f, seed);
	}
	for (int i = 0, bad = 0; i < g->nnode && !bad; i++) {
		Node *n = g->node[i];
		Arena tmp = { 0 };
		Hold **in = arena_array(&tmp, Hold *, n->nin + 1), **out = arena_array(&tmp, Hold *, n->nout + 1);
		const Mesh *m = r.mesh = n->place->mesh;
		if (n->row->moves) {
			bad = transfer(&r, n, &tmp);
			arena_free(&tmp);
			continue;
		}
		NdSig *s = signature_of(n, m, &tmp);
		if (!s) {
			say(&r, RUN_DIFFERS, n, "it has no such signature");
			arena_free(&tmp);
			break;
		}
		for (int k = 0; k < n->nin; k++) {
			in[k] = n->in[k] ? r.at[n->in[k]->id] : NULL;
			/* its shape matters, or it stands in the code, whole */
			if (n->in[k] && !kernel_reads(n, k)) {
				Sbp want[MESH_DIMS];
				for (int d = 0; d < m->ndim; d++)
					want[d] = s->in[k][d].kind == SBP_P ? (Sbp){ .kind = SBP_B } : s->in[k][d];
				Form f = sbp_form(n->in[k], want, m);
				in[k] = hold_move(&tmp, in[k], &f, FAULT_NONE);
			}
		}
		for (int k = 0; k < n->nout; k++) {
			if (!n->out[k])
				continue;
			Form f = sbp_form(n->out[k], n->out[k]->sbp, m);
			r.at[n->out[k]->id] = out[k] = hold_new(a, &f, n->out[k]->type->elem);
		}
		bad = run_node(&r, n, in, out, one_node(n, s), &tmp);
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				r.at[n->out[k]->id] = out[k];
		arena_free(&tmp);
	}
	return r.outcome;
}
