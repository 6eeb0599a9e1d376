/* The legal SBP signatures of a node.
 *
 * Along one axis of the mesh they follow from the factor rule of the node.  Splitting a factor splits every operand and
 * result that has it, and makes the results that lack it partial; a linear operand passes P through.  A factor that is
 * a whole axis wherever it occurs is split as such.  If it is known as a product (Value.factors), it may also be split
 * along each of its own factors.  A factor that is only one of several of an axis is split along its own factors only:
 * heads are split, never one head.
 *
 * On a mesh of several axes a node has one such signature along each of them, in any valid combination
 * (signatures_can). */
#include "plan/plan.h"

#include <string.h>

enum { LEAVES = 64 };

/* Where a factor of the rule occurs in one value.  A leaf is a factor of the axis in Value.factors. */
typedef struct Use {
	int axis, from, n;              /* the factor is n leaves of the axis, from leaf `from` */
	bool whole;                     /* it is the whole axis */
	int64_t len[LEAVES];            /* of the leaves of the axis */
	int leaves;
	const FormReach *reach;
} Use;

/* The lengths of the factors of an axis, major first. */
static int lengths(const Value *v, int axis, int64_t *len)
{
	const struct FactorAxis *x = v->factors && axis < v->factors->ndim ? &v->factors->axis[axis] : NULL;
	if (!x || x->n > LEAVES || x->n < 1) {
		len[0] = v->type->dim[axis];
		return 1;
	}
	for (int i = 0; i < x->n; i++)
		len[i] = v->graph->factor[x->factor[i]];
	return x->n;
}

/* The leaves that form factor k of a product; false: the axis is not known as that product. */
static bool within(const FactorProduct *p, int k, Use *u)
{
	int64_t before = 1, at = 1;
	for (int i = 0; i < k; i++)
		before *= p->sub[i].len;
	u->whole = true;
	for (int i = 0; i < p->nsub; i++)
		u->whole &= i == k || p->sub[i].len == 1;
	int64_t after = before * p->sub[k].len;
	for (u->from = 0; u->from < u->leaves && at < before; u->from++)
		at *= u->len[u->from];
	if (at != before)
		return false;
	for (u->n = 0; u->from + u->n < u->leaves && at < after; u->n++)
		at *= u->len[u->from + u->n];
	return at == after;
}

/* Finds factor f in a value.  1: found; 0: the value lacks it; -1: it occurs twice, or where it cannot be split. */
static int find_use(const FactorRule *r, bool out, int i, const Value *v, int f, Use *u)
{
	const int *row = out ? r->out[i] : r->in[i];
	int found = 0;
	for (int a = 0; row && a < v->type->ndim; a++)
		if (row[a] == f) {
			*u = (Use){ .axis = a, .whole = true };
			u->leaves = u->n = lengths(v, a, u->len);
			found++;
		}
	for (int k = 0; k < r->nproduct; k++) {
		const FactorProduct *p = &r->product[k];
		for (int j = 0; p->out == out && p->at == i && j < p->nsub; j++)
			if (p->sub[j].factor == f) {
				*u = (Use){ .axis = p->axis };
				u->leaves = lengths(v, p->axis, u->len);
				if (!within(p, j, u))
					return -1;
				found++;
			}
	}
	for (int k = 0; k < r->nreach; k++) {
		const FactorReach *x = &r->reach[k];
		if (out || x->at != i || x->factor != f)
			continue;
		*u = (Use){ .axis = x->axis, .whole = true, .n = 1, .leaves = 1, .len = { x->of } };
		u->reach = sbp_reach((FormReach){ .of = x->of, .div = x->div, .lo = x->lo, .hi = x->hi,
			.mid = x->mid, .mul = x->mul, .from = x->from, .to = x->to });
		found++;
	}
	return found > 1 ? -1 : found;
}

bool signatures_leaves(const FactorRule *r, int operand, const Value *v, int f, int *axis, int *from, int *n)
{
	Use u;
	if (!r->in[operand] || find_use(r, false, operand, v, f, &u) != 1)
		return false;
	*axis = u.axis;
	*from = u.from;
	*n = u.n;
	return true;
}

bool signatures_define(const NdSig *s, const Mesh *m)
{
	for (int k = 0; k < m->ndim; k++)
		if (m->dim[k] > 1 && s->sig[k]->define)
			return true;
	return false;
}

static Sig *new_sig(Node *n, Arena *a, Sig **list, int *count)
{
	Sig s = { .in = arena_array(a, Sbp, n->nin + 1), .out = arena_array(a, Sbp, n->nout + 1) };
	arena_push(a, *list, *count, s);
	return &(*list)[*count - 1];
}

static bool floating(const Value *v)
{
	return v->type && dtype_is_float(v->type->elem);
}

/* The split of a factor: leaf -1 as a whole axis, else along its own factor of that number. */
static Sbp cut(const Use *u, int leaf)
{
	int of = leaf < 0 || u->leaves == 1 ? 0 : 1 + u->from + leaf;
	return (Sbp){ .kind = SBP_S, .axis = u->axis, .leaf = of, .reach = u->reach };
}

/* Finds all uses of factor f.  Returns its number of leaves; 0 when uses differ, -1 when it cannot be split at all. */
static int find_uses(Node *n, const FactorRule *r, int f, Use *use, int *has, bool *whole)
{
	const Use *first = NULL;
	int leaves = 0;
	*whole = true;
	for (int i = 0; i < n->nin + n->nout; i++) {
		bool out = i >= n->nin;
		const Value *v = out ? n->out[i - n->nin] : n->in[i];
		has[i] = v ? find_use(r, out, out ? i - n->nin : i, v, f, &use[i]) : 0;
		if (has[i] < 0 || (out && v && !has[i] && !floating(v) && !(f < 64 && r->defined >> f & 1)))
			return -1;
		if (!has[i])
			continue;
		*whole &= use[i].whole;
		if (!first) {
			leaves = use[i].n;
			first = &use[i];
		} else if (leaves != use[i].n ||
			memcmp(first->len + first->from, use[i].len + use[i].from,
				sizeof *first->len * (size_t)leaves) != 0) {
			leaves = 0;
		}
	}
	return first ? leaves : -1;
}

/* The largest number of leaves of an axis that has the factor. */
static int use_count(const Use *use, const int *has, int n)
{
	int most = 0;
	for (int i = 0; i < n; i++)
		if (has[i] && use[i].leaves > most)
			most = use[i].leaves;
	return most;
}

/* Whether a result lacks the factor. */
static bool partial(const Node *n, const int *has)
{
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !has[n->nin + i])
			return true;
	return false;
}

static void split_factor(Node *n, const FactorRule *r, int f, int nrank, Arena *a, Sig **list, int *count)
{
	Use *use = arena_array(a, Use, n->nin + n->nout + 1);
	int *has = arena_array(a, int, n->nin + n->nout + 1);
	bool whole;
	int leaves = find_uses(n, r, f, use, has, &whole);
	bool run = f < 64 && r->runs >> f & 1, define = f < 64 && r->defined >> f & 1;
	for (int i = 0; run && i < n->nin + n->nout; i++)
		if (has[i] && use[i].from)
			leaves = 0;
	for (int i = 0; i < n->nin; i++)
		if (has[i] && use[i].reach)
			leaves = 0;             /* windows need neighbouring elements */
	if (run && leaves > 1)
		leaves = 1;                     /* the outermost */
	for (int leaf = whole ? -1 : 0; leaf < leaves; leaf++) {
		if (whole && leaf == 0 && use_count(use, has, n->nin + n->nout) == 1)
			break;                  /* equals leaf -1 */
		int64_t of = 0;
		if (opt.chunks && !any_ranks_allow(n, r, f, leaf, nrank, &of))
			continue;
		Sig *s = new_sig(n, a, list, count);
		s->cuts = of ? nrank : 0;
		s->of = of;
		s->run = run;
		s->define = define;
		s->counted = f < 64 && r->counted >> f & 1;
		for (int i = 0; i < n->nin; i++)
			if (has[i])
				s->in[i] = cut(&use[i], leaf);
			else if (i == op_added(n) && partial(n, has))
				s->in[i] = (Sbp){ .kind = SBP_P, .red = r->red };
		for (int i = 0; i < n->nout; i++)
			if (has[n->nin + i])
				s->out[i] = cut(&use[n->nin + i], leaf);
			else if (!define)
				s->out[i] = (Sbp){ .kind = SBP_P, .red = r->red };
	}
}

static bool ndim_known(const Node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && (!n->in[i]->type || n->in[i]->type->ndim < 0))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && (!n->out[i]->type || n->out[i]->type->ndim < 0))
			return false;
	return true;
}

static void pass_partial(Node *n, Arena *a, Sig **list, int *count)
{
	int *group = arena_array(a, int, n->nin + 1), most = 0;
	if (opt.chunks && !any_ranks_carry(n))
		return;
	factor_linear(n, group);
	for (int i = 0; i < n->nin; i++)
		most = group[i] > most ? group[i] : most;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !floating(n->out[i]))
			return;
	for (int k = 1; k <= most; k++) {
		/* a scalar that is written into the code is B; booleans and integers cannot be partial */
		bool read = true;
		for (int i = 0; i < n->nin; i++)
			read &= group[i] != k || !n->in[i] || (kernel_reads(n, i) && floating(n->in[i]));
		if (!read)
			continue;
		Sig *s = new_sig(n, a, list, count);
		for (int i = 0; i < n->nin; i++)
			s->in[i].kind = group[i] == k ? SBP_P : SBP_B;
		for (int i = 0; i < n->nout; i++)
			s->out[i].kind = SBP_P;
	}
}

Sig *signatures_of(Node *n, int nrank, Arena *a, int *count)
{
	Sig *list = NULL;
	*count = 0;
	new_sig(n, a, &list, count);
	if (nrank == 1 || !ndim_known(n))
		return list;
	const FactorRule *r = factor_rule(n, a);
	for (int f = 0; r && f < r->nfactor; f++)
		if (r->len[f] > 1)
			split_factor(n, r, f, nrank, a, &list, count);
	if (node_is(n, "sbpcc.Zeros")) {          /* every shard and every partial value is zero */
		for (int k = 0; k < n->out[0]->type->ndim; k++)
			new_sig(n, a, &list, count)->out[0] = (Sbp){ .kind = SBP_S, .axis = k };
		new_sig(n, a, &list, count)->out[0] = (Sbp){ .kind = SBP_P };
	}
	pass_partial(n, a, &list, count);
	return list;
}

/* ---- several axes of a mesh ---- */

bool signatures_can(const Sbp *s, int ndim)
{
	for (int i = 0; i < ndim; i++)
		for (int k = 0; k < i; k++) {
			if (s[i].kind != s[k].kind)
				continue;
			if (s[i].kind == SBP_P && s[i].red != s[k].red)
				return false;
			if (s[i].kind != SBP_S || s[i].axis != s[k].axis)
				continue;
			if (!s[i].leaf != !s[k].leaf || s[i].reach != s[k].reach)
				return false;
		}
	return true;
}

static bool one_run(const Sbp *s, int ndim)
{
	for (int k = 0; k < ndim; k++)
		if (s[k].kind == SBP_S && s[k].leaf > 1)
			return false;
	return true;
}

/* The signature that has sig[k] along axis k of the mesh; false: this combination is not valid. */
static bool together(const Node *n, const Sig *const *sig, int ndim, Arena *a, NdSig *nd)
{
	*nd = (NdSig){ .ndim = ndim };
	nd->in = arena_array(a, Sbp *, n->nin + 1);
	nd->out = arena_array(a, Sbp *, n->nout + 1);
	memcpy(nd->sig, sig, (size_t)ndim * sizeof *sig);
	bool run = false;
	int64_t cuts = 1, of = 0;
	for (int k = 0; k < ndim; k++) {
		run |= sig[k]->run;
		cuts *= sig[k]->cuts ? sig[k]->cuts : 1;
		of = sig[k]->of ? sig[k]->of : of;
	}
	if (of && of % cuts)
		return false;
	for (int i = 0; i < n->nin + n->nout; i++) {
		bool out = i >= n->nin;
		int at = out ? i - n->nin : i;
		Sbp *s = arena_array(a, Sbp, ndim);
		for (int k = 0; k < ndim; k++)
			s[k] = out ? sig[k]->out[at] : sig[k]->in[at];
		if (!signatures_can(s, ndim) || (run && !one_run(s, ndim)))
			return false;
		(out ? nd->out : nd->in)[at] = s;
	}
	return true;
}

NdSig *signatures_together(const Node *n, const Sig *const *sig, int ndim, Arena *a)
{
	NdSig nd, *s;
	if (!together(n, sig, ndim, a, &nd))
		return NULL;
	s = arena_new(a, NdSig);
	*s = nd;
	return s;
}

NdSig *signatures_product(Node *n, const Mesh *m, const int *with, Arena *a, int *count)
{
	Sig *list[MESH_DIMS];
	const Sig *pick[MESH_DIMS];
	NdSig *all = NULL;
	int len[MESH_DIMS], at[MESH_DIMS] = { 0 }, k;
	*count = 0;
	for (k = 0; k < m->ndim; k++)
		list[k] = signatures_of(n, m->dim[k], a, &len[k]);
	do {
		NdSig nd;
		for (k = 0; k < m->ndim; k++)
			pick[k] = &list[k][at[k]];
		if (together(n, pick, m->ndim, a, &nd))
			arena_push(a, all, *count, nd);
	} while (mesh_axes_next(m->ndim, with, len, at));
	return all;
}

/* Whether the SBP of operands and results is that of a signature along axis k. */
static bool matches(const Node *n, const Sig *s, int k)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && kernel_reads(n, i) && !sbp_equal(&n->in[i]->sbp[k], &s->in[i], 1))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !sbp_equal(&n->out[i]->sbp[k], &s->out[i], 1))
			return false;
	return true;
}

bool signatures_legal(Node *n, const Mesh *m, Arena *a)
{
	for (int k = 0; k < m->ndim; k++) {
		int count, i = 0;
		const Sig *list = signatures_of(n, m->dim[k], a, &count);
		while (i < count && !matches(n, &list[i], k))
			i++;
		if (i == count)
			return false;
	}
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && kernel_reads(n, i) && !signatures_can(n->in[i]->sbp, m->ndim))
			return false;
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] && !signatures_can(n->out[i]->sbp, m->ndim))
			return false;
	return true;
}

const char *signatures_text(const Node *n, const Sig *s)
{
	const char *t = "";
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			t = name_fmt("%s%s%s", t, *t ? ", " : "", sbp_text(&s->in[i], 1));
	t = name_fmt("%s%s->", t, *t ? " " : "");
	for (int i = 0; i < n->nout; i++)
		if (n->out[i])
			t = name_fmt("%s%s%s", t, i ? ", " : " ", sbp_text(&s->out[i], 1));
	return t;
}
