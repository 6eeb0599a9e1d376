/* The factor rule of one node: which axes of its operands and results are split together.
 *
 * The row gives it as text over axes, in the notation of einsum ("... m k, ... k n -> ... m n"); this file applies
 * the text to the shapes at hand.  Where it does not fit them (a vector operand of MatMul) no axis is split:
 * always correct, never fast.  The SBP signatures follow from the rule (compiler/plan/sbp.c). */
#include "table.h"

#include <ctype.h>
#include <string.h>

enum { WHOLE = -1, SPEC_MAX = 64, AXES_MAX = 64 };

/* One operand or result of the text: its letters, and the position of "..." among them. */
typedef struct Spec { char letter[AXES_MAX]; int n, dots; } Spec;

static const Type *type_of(const Value *v)
{
	return v && v->type && v->type->kind == TY_TENSOR && v->type->ndim >= 0 ? v->type : NULL;
}

static int *rows(Arena *a, const Value *v)
{
	const Type *t = type_of(v);
	if (!t)
		return NULL;
	int *r = arena_array(a, int, t->ndim ? t->ndim : 1);
	for (int i = 0; i < t->ndim; i++)
		r[i] = WHOLE;
	return r;
}

FactorRule *factor_new(Node *n, Arena *a)
{
	FactorRule *r = arena_new(a, FactorRule);
	r->arena = a;
	r->in = arena_array(a, int *, n->nin ? n->nin : 1);
	r->out = arena_array(a, int *, n->nout ? n->nout : 1);
	for (int i = 0; i < n->nin; i++)
		r->in[i] = rows(a, n->in[i]);
	for (int i = 0; i < n->nout; i++)
		r->out[i] = rows(a, n->out[i]);
	return r;
}

int factor_add(FactorRule *r, int64_t len)
{
	int f = r->nfactor;
	arena_push(r->arena, r->len, r->nfactor, len);
	return f;
}

int factor_run(FactorRule *r, int64_t len)
{
	int f = factor_add(r, len);
	r->runs |= f < 64 ? (uint64_t)1 << f : 0;
	return f;
}

int factor_counted(FactorRule *r, int64_t len)
{
	int f = factor_add(r, len);
	r->counted |= f < 64 ? (uint64_t)1 << f : 0;
	return f;
}

int factor_defined(FactorRule *r, int64_t len)
{
	int f = factor_add(r, len);
	r->defined |= f < 64 ? (uint64_t)1 << f : 0;
	return f;
}

void factor_reach(FactorRule *r, int f, int operand, int axis, FactorReach x)
{
	bool same = x.of == x.mid && x.div == 1 && !x.lo && !x.hi && x.mul == 1 && !x.from && !x.to;
	if (same) {
		r->in[operand][axis] = f;
		return;
	}
	x.factor = f, x.at = operand, x.axis = axis;
	arena_push(r->arena, r->reach, r->nreach, x);
}

void factor_product(FactorRule *r, bool out, int at, int axis, int n, const SubFactor *sub)
{
	FactorProduct p = { .out = out, .at = at, .axis = axis, .nsub = n };
	p.sub = arena_array(r->arena, SubFactor, n);
	memcpy(p.sub, sub, (size_t)n * sizeof *sub);
	for (int i = 0; i < n; i++)
		if (sub[i].factor >= 0)
			p.sub[i].len = r->len[sub[i].factor];
	arena_push(r->arena, r->product, r->nproduct, p);
}

static const char *spec_parse(const char *s, Spec *sp)
{
	memset(sp, 0, sizeof *sp);
	sp->dots = -1;
	for (;; s++) {
		if (!strncmp(s, "...", 3)) {
			sp->dots = sp->n;
			s += 2;
		} else if (isalpha((unsigned char)*s) || *s == '*') {
			if (sp->n == AXES_MAX)
				die("factor text is too long");
			sp->letter[sp->n++] = *s;
		} else if (*s != ' ') {
			return s;
		}
	}
}

/* Splits the text into specs; returns how many come before "->". */
static int text_parse(const char *s, Spec *sp, int *nall)
{
	int n = 0, nin = -1;
	for (;;) {
		if (n == SPEC_MAX)
			die("factor text has too many operands");
		s = spec_parse(s, &sp[n++]);
		if (!strncmp(s, "->", 2)) {
			nin = n;
			s += 2;
		} else if (*s == ',') {
			s++;
		} else if (!*s && nin > 0) {
			*nall = n;
			return nin;
		} else {
			die("factor text stops at '%s'", s);
		}
	}
}

/* The factor of a letter, or of the k-th axis from the right under "..."; made when new. */
typedef struct Table { FactorRule *r; int letter[256], dots[AXES_MAX]; } Table;

static int lookup(Table *t, int *slot, Dim d)
{
	if (*slot < 0)
		*slot = factor_add(t->r, d);
	int64_t *len = &t->r->len[*slot];
	if (d > *len)
		*len = d;
	return *slot;
}

/* Applies one spec to the axes of one value; false when it does not fit. */
static bool lay(Table *t, const Spec *sp, const Value *v, int *row)
{
	const Type *ty = type_of(v);
	if (!v)
		return true;
	if (!ty || !row || ty->ndim > AXES_MAX)
		return false;
	int extra = ty->ndim - sp->n;
	if (extra < 0 || (extra > 0 && sp->dots < 0))
		return false;
	for (int a = 0; a < ty->ndim; a++) {
		bool under = sp->dots >= 0 && a >= sp->dots && a < sp->dots + extra;
		if (under) {
			row[a] = lookup(t, &t->dots[sp->dots + extra - 1 - a], ty->dim[a]);
			continue;
		}
		int c = (unsigned char)sp->letter[sp->dots >= 0 && a >= sp->dots + extra ? a - extra : a];
		if (c != '*')
			row[a] = lookup(t, &t->letter[c], ty->dim[a]);
	}
	return true;
}

/* Broadcast axes are not split; two lengths for one factor mean that the text does not fit. */
static bool settle(const FactorRule *r, const Value *v, int *row)
{
	const Type *ty = type_of(v);
	if (!ty || !row)
		return true;
	for (int a = 0; a < ty->ndim; a++) {
		if (row[a] < 0 || ty->dim[a] == r->len[row[a]])
			continue;
		if (ty->dim[a] != 1)
			return false;
		row[a] = WHOLE;
	}
	return true;
}

int factor_text(Node *n, FactorRule *r, const char *text)
{
	Spec spec[SPEC_MAX];
	int nall, nin = text_parse(text, spec, &nall);
	Table t = { .r = r };
	memset(t.letter, -1, sizeof t.letter);
	memset(t.dots, -1, sizeof t.dots);
	for (int i = 0; i < n->nin; i++)        /* the last operand of the text applies to all that follow */
		if (!lay(&t, &spec[i < nin ? i : nin - 1], n->in[i], r->in[i]))
			return -1;
	for (int i = 0; i < n->nout; i++)
		if (!lay(&t, &spec[nin + i < nall ? nin + i : nall - 1], n->out[i], r->out[i]))
			return -1;
	for (int i = 0; i < n->nin; i++)
		if (!settle(r, n->in[i], r->in[i]))
			return -1;
	for (int i = 0; i < n->nout; i++)
		if (!settle(r, n->out[i], r->out[i]))
			return -1;
	return 0;
}

FactorRule *factor_rule(Node *n, Arena *a)
{
	FactorRule *r = factor_new(n, a);
	if (!n->row)
		return NULL;
	int bad = -1;
	if (n->row->factor_fn)
		bad = n->row->factor_fn(n, r);
	else if (n->row->factors)
		bad = factor_text(n, r, n->row->factors);
	return bad ? NULL : r;
}

/* The index of an operand by its name in .sig ("x:T w:T? -> y:T"). */
static int operand(const char *sig, const char *word, size_t len)
{
	for (int i = 0; *sig && strncmp(sig, "->", 2); i++) {
		size_t k = strcspn(sig, ": ?*+");
		if (k == len && !strncmp(sig, word, len))
			return i;
		sig += strcspn(sig, " ");
		sig += strspn(sig, " ");
	}
	return -1;
}

void factor_linear(const Node *n, int *group)
{
	for (int i = 0; i < n->nin; i++)
		group[i] = 0;
	if (!n->row || !n->row->linear || !n->row->sig)
		return;
	if (dtype_is_float(operand_dtype(n, 0)) && n->nout && n->out[0] && n->out[0]->type &&
		!dtype_is_float(n->out[0]->type->elem))
		return;                         /* a Cast that drops fractions */
	int g = 1;
	for (const char *s = n->row->linear; *s;) {
		size_t k = strcspn(s, " +");
		int i = operand(n->row->sig, s, k);
		if (i < 0)
			die("%s: .linear names an operand that .sig does not have", n->row->name);
		bool variadic = n->row->schema && i < n->row->schema->nin && n->row->schema->in[i].variadic;
		for (int v = i; v < n->nin && (v == i || variadic); v++)
			group[v] = g;           /* operands of one list: together */
		s += k;
		if (*s == ' ')
			g++;
		s += strspn(s, " +");
	}
}

/* An operand of a list, or one whose shape alone is read. */
static bool alike(const Node *n, int i)
{
	const Schema *s = n->row->schema;
	return s->in[i < s->nin ? i : s->nin - 1].variadic || !strcmp(s->in[i].name, "like");
}

/* Factors: axes that all operands (with as many axes as the first) and results share, except the ones that stay
 * unsplit. */
int factor_keep(Node *n, FactorRule *r, const bool *unsplit)
{
	int ndim = operand_ndim(n, 0);
	if (ndim < 0)
		return -1;
	for (int a = 0; a < ndim; a++) {
		if (unsplit[a])
			continue;
		int f = factor_add(r, operand_type(n, 0)->dim[a]);
		for (int i = 0; i < n->nin; i++)
			if (r->in[i] && operand_ndim(n, i) == ndim && (i == 0 || alike(n, i)))
				r->in[i][a] = f;
		for (int i = 0; i < n->nout; i++)
			if (r->out[i])
				r->out[i][a] = f;
	}
	return 0;
}

/* Axes whose length does not change are kept: Slice, Pad, Expand to as many axes, Tile. */
int factor_keep_equal(Node *n, FactorRule *r)
{
	bool unsplit[NDIM_MAX] = { false };
	const Type *x = operand_type(n, 0), *y = n->out[0] ? n->out[0]->type : NULL;
	if (!x || !y || x->ndim != y->ndim || x->ndim < 0)
		return -1;
	for (int a = 0; a < x->ndim; a++)
		unsplit[a] = !dim_same(x->dim[a], y->dim[a]);
	return factor_keep(n, r, unsplit);
}
