/* Einsum of any number of operands, by Transpose, Reshape, MatMul, Mul and ReduceSum.
 *
 * Operands are combined from left to right.  An index that both sides have is contracted as soon as no later operand
 * needs it (MatMul), else it is a batch axis; an index that only one side has is kept, or summed away first.  A
 * repeated index within one operand takes the diagonal.  The axes of "..." count from the right. */
#include "ops.h"

#include <string.h>

enum {
	LETTERS = 256,
	LABELS = LETTERS + NDIM_MAX
}; /* a letter is its own label; LETTERS + k: axis k of "...", from the right */

typedef struct Term {
	Value *v;
	int ndim;
	int label[NDIM_MAX];
	Dim dim[NDIM_MAX];
} Term;

typedef struct Sum {
	Node *n;
	Term *term;
	int nterm;
	int out[NDIM_MAX], nout;
	int uses[LABELS]; /* terms not yet combined that carry it, and one for the result */
} Sum;

static int find(const Term *t, int label)
{
	for (int i = 0; i < t->ndim; i++)
		if (t->label[i] == label)
			return i;
	return -1;
}

static void drop(Term *t, int axis)
{
	t->ndim--;
	for (int i = axis; i < t->ndim; i++) {
		t->label[i] = t->label[i + 1];
		t->dim[i] = t->dim[i + 1];
	}
}

/* Puts the axes into the order of perm. */
static void transpose(Sum *s, Term *t, const int64_t *perm)
{
	Term old = *t;
	bool same = true;

	for (int i = 0; i < t->ndim; i++) {
		same = same && perm[i] == i;
		t->label[i] = old.label[perm[i]];
		t->dim[i] = old.dim[perm[i]];
	}
	if (!same)
		t->v = expand_op(s->n, "Transpose", expand_list(s->n, "perm", perm, t->ndim), t->v);
}

static void sum_axes(Sum *s, Term *t, const int64_t *axes, int naxes)
{
	if (!naxes)
		return;
	t->v = expand_op(s->n, "ReduceSum", "keepdims=0", t->v, expand_ints(s->n, axes, naxes));
	for (int i = naxes - 1; i >= 0; i--)
		drop(t, (int)axes[i]);
}

static void sum_unneeded(Sum *s, Term *t)
{
	int64_t axes[NDIM_MAX];
	int n = 0;

	for (int i = 0; i < t->ndim; i++)
		if (s->uses[t->label[i]] == 0)
			axes[n++] = i;
	sum_axes(s, t, axes, n);
}

/* The diagonal over axes i and j: both last, joined into one, every (size + 1)-th element. */
static int diagonal(Sum *s, Term *t, int i, int j)
{
	Node *n = s->n;
	int64_t perm[NDIM_MAX], d = t->dim[i];
	int r = 0;

	if (!dim_known(t->dim[i]) || !dim_same(t->dim[i], t->dim[j])) {
		err_at(n->loc,
			"Einsum takes the diagonal of axes %d and %d, whose sizes must be known and equal, "
		        "not %s and %s",
			i, j, dim_text(t->dim[i]), dim_text(t->dim[j]));
		return -1;
	}
	for (int k = 0; k < t->ndim; k++)
		if (k != i && k != j)
			perm[r++] = k;
	perm[r] = i;
	perm[r + 1] = j;
	transpose(s, t, perm);

	int64_t square, zero = 0, step = d + 1, last = t->ndim - 2;
	if (__builtin_mul_overflow(d, d, &square)) {
		err_at(n->loc, "Einsum: %lld squared is too large", (long long)d);
		return -1;
	}
	Value *head = expand_op(n, "Shape", expand_attr(n, "end=%d", r), t->v);
	Value *shape = expand_op(n, "Concat", "axis=0", head, expand_ints(n, &square, 1));
	Value *flat = expand_op(n, "Reshape", "allowzero=1", t->v, shape);
	t->v = expand_op(n, "Slice", NULL, flat, expand_ints(n, &zero, 1), expand_ints(n, &square, 1),
		expand_ints(n, &last, 1), expand_ints(n, &step, 1));
	drop(t, t->ndim - 1);
	return 0;
}

/* Axes of t from `from` on become two groups of n1 and n2 axes, each joined into one. */
static Value *join(Sum *s, Term *t, int from, int n1, int n2)
{
	Node *n = s->n;

	if (n1 == 1 && n2 == 1)
		return t->v;
	Value *lead = expand_op(n, "Shape", expand_attr(n, "end=%d", from), t->v);
	Value *one = expand_op(n, "ReduceProd", "keepdims=1",
		expand_op(n, "Shape", expand_attr(n, "start=%d, end=%d", from, from + n1), t->v));
	Value *two = expand_op(n, "ReduceProd", "keepdims=1",
		expand_op(n, "Shape", expand_attr(n, "start=%d, end=%d", from + n1, from + n1 + n2), t->v));
	return expand_op(n, "Reshape", "allowzero=1", t->v, expand_op(n, "Concat", "axis=0", lead, one, two));
}

/* a and b have axes (batch, m, k) and (batch, k, n). */
static void matmul(Sum *s, Term *a, Term *b, int nb, int nk)
{
	Node *n = s->n;
	int nm = a->ndim - nb - nk, nn = b->ndim - nb - nk;
	Value *p = expand_op(n, "MatMul", NULL, join(s, a, nb, nm, nk), join(s, b, nb, nk, nn));

	if (nm != 1 || nn != 1) {
		Value *lead = expand_op(n, "Shape", expand_attr(n, "end=%d", nb + nm), a->v);
		Value *tail = expand_op(n, "Shape", expand_attr(n, "start=%d", nb + nk), b->v);

		p = expand_op(n, "Reshape", "allowzero=1", p, expand_op(n, "Concat", "axis=0", lead, tail));
	}
	a->v = p;
	a->ndim = nb + nm;
	for (int i = 0; i < nn; i++) {
		a->label[a->ndim] = b->label[nb + nk + i];
		a->dim[a->ndim++] = b->dim[nb + nk + i];
	}
}

/* Nothing is contracted: axes (batch, m) and (batch, n) are multiplied as (batch, m, n). */
static void outer(Sum *s, Term *a, Term *b, int nb)
{
	Node *n = s->n;
	int64_t axes[NDIM_MAX];
	int nm = a->ndim - nb, nn = b->ndim - nb;
	Value *av = a->v, *bv = b->v;

	for (int i = 0; i < nn; i++)
		axes[i] = nb + nm + i;
	if (nn)
		av = expand_op(n, "Unsqueeze", NULL, av, expand_ints(n, axes, nn));
	for (int i = 0; i < nm; i++)
		axes[i] = nb + i;
	if (nm && nb)
		bv = expand_op(n, "Unsqueeze", NULL, bv, expand_ints(n, axes, nm));
	a->v = expand_op(n, "Mul", NULL, av, bv);
	for (int i = 0; i < nn; i++) {
		a->label[a->ndim] = b->label[nb + i];
		a->dim[a->ndim++] = b->dim[nb + i];
	}
}

/* Where one side has size 1 and the other has not, the index leaves the side of size 1. */
static int settle(Sum *s, Term *a, Term *b)
{
	Node *n = s->n;

	for (int i = a->ndim - 1; i >= 0; i--) {
		int j = find(b, a->label[i]);

		if (j < 0 || !dim_differ(a->dim[i], b->dim[j]))
			continue;
		Term *t = a->dim[i] == 1 ? a : b->dim[j] == 1 ? b : NULL;
		int64_t axis = t == a ? i : j;

		if (!t) {
			char name[] = { (char)a->label[i], 0 };

			err_at(n->loc, "Einsum: index %s has size %s in one operand and %s in another",
				a->label[i] < LETTERS ? name : "...", dim_text(a->dim[i]),
				dim_text(b->dim[j]));
			return -1;
		}
		if (t == b)
			s->uses[b->label[j]]--;
		t->v = expand_op(n, "Squeeze", NULL, t->v, expand_ints(n, &axis, 1));
		drop(t, (int)axis);
	}
	return 0;
}

/* a becomes a combined with b. */
static int combine(Sum *s, Term *a, Term *b)
{
	int64_t pa[NDIM_MAX], pb[NDIM_MAX], ka[NDIM_MAX], kb[NDIM_MAX];
	int na = 0, nb = 0, nk = 0, batch = 0;

	if (settle(s, a, b))
		return -1;
	for (int i = 0; i < b->ndim; i++)
		s->uses[b->label[i]]--;
	for (int side = 0; side < 2; side++) { /* indices of one side that nothing needs */
		Term *t = side ? b : a, *o = side ? a : b;
		int64_t axes[NDIM_MAX];
		int count = 0;

		for (int i = 0; i < t->ndim; i++)
			if (find(o, t->label[i]) < 0 && s->uses[t->label[i]] == 0)
				axes[count++] = i;
		sum_axes(s, t, axes, count);
	}
	for (int i = 0; i < a->ndim; i++) { /* batch first, in a's order */
		int j = find(b, a->label[i]);

		if (j >= 0 && s->uses[a->label[i]] > 0) {
			pa[na++] = i;
			pb[nb++] = j;
			batch++;
		} else if (j >= 0) {
			ka[nk] = i;
			kb[nk++] = j;
		}
	}
	for (int i = 0; i < a->ndim; i++)
		if (find(b, a->label[i]) < 0)
			pa[na++] = i;
	for (int i = 0; i < nk; i++) {
		pa[na++] = ka[i];
		pb[nb++] = kb[i];
	}
	for (int i = 0; i < b->ndim; i++)
		if (find(a, b->label[i]) < 0)
			pb[nb++] = i;
	if (a->ndim + b->ndim - batch - 2 * nk > NDIM_MAX) {
		err_at(s->n->loc, "Einsum: an intermediate result has more than %d axes", NDIM_MAX);
		return -1;
	}
	transpose(s, a, pa);
	transpose(s, b, pb);
	if (nk)
		matmul(s, a, b, batch, nk);
	else
		outer(s, a, b, batch);
	return 0;
}

/* The indices of one operand; the number of its axes gives the length of "...". */
static int read_term(Sum *s, int i, const char *p, const char *end)
{
	Node *n = s->n;
	Term *t = &s->term[i];
	Type *type = operand_type(n, i);
	const char *dots = NULL;
	int letters = 0, at = 0;

	for (const char *q = p; q < end; q++) {
		if (*q == '.' && end - q >= 3 && !memcmp(q, "...", 3) && !dots) {
			dots = q;
			q += 2;
		} else if ((*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z')) {
			letters++;
		} else {
			err_at(n->loc,
				"Einsum: operand %d of the equation \"%s\" is not letters and at most one "
			        "\"...\"",
				i, attr_str(n, "equation"));
			return -1;
		}
	}
	if (!type || type->ndim < 0) {
		err_at(operand_loc(n, i), "Einsum needs operands with a known number of axes");
		return -1;
	}
	int more = type->ndim - letters;
	if (more < 0 || (more && !dots)) {
		err_at(operand_loc(n, i), "Einsum: the equation \"%s\" gives operand %d %d indices, and it is %s",
			attr_str(n, "equation"), i, letters, type_text(type));
		return -1;
	}
	t->v = n->in[i];
	t->ndim = type->ndim;
	for (const char *q = p; q < end; q++) {
		if (q == dots) {
			for (int k = more - 1; k >= 0; k--)
				t->label[at++] = LETTERS + k;
			q += 2;
		} else {
			t->label[at++] = (unsigned char)*q;
		}
	}
	if (type->ndim)
		memcpy(t->dim, type->dim, sizeof(Dim) * (size_t)type->ndim);
	for (int a = 0; a < t->ndim; a++)
		for (int b = a + 1; b < t->ndim; b++)
			if (t->label[a] == t->label[b]) {
				if (diagonal(s, t, a, b))
					return -1;
				a = -1; /* axes moved: look again */
				break;
			}
	for (int a = 0; a < t->ndim; a++)
		s->uses[t->label[a]]++;
	return 0;
}

/* The indices of the result: as written, or "..." and every letter that occurs once, in order. */
static int read_result(Sum *s, const char *eq, const char *p)
{
	int dots = 0, count[LETTERS] = { 0 };

	for (int i = 0; i < s->nterm; i++)
		for (int k = 0; k < s->term[i].ndim; k++)
			if (s->term[i].label[k] >= LETTERS && s->term[i].label[k] - LETTERS >= dots)
				dots = s->term[i].label[k] - LETTERS + 1;
	for (const char *q = eq; *q && *q != '-'; q++)
		count[(unsigned char)*q]++;
	if (!p) {
		for (int k = dots - 1; k >= 0; k--)
			s->out[s->nout++] = LETTERS + k;
		for (int c = 'A'; c <= 'z' && s->nout < NDIM_MAX; c++)
			if (count[c] == 1)
				s->out[s->nout++] = c;
		return 0;
	}
	for (; *p; p++) {
		bool ell = !strncmp(p, "...", 3);

		if (s->nout + (ell ? dots : 1) > NDIM_MAX ||
			(!ell && (*p == '.' || !count[(unsigned char)*p])) || (!ell && strchr(p + 1, *p))) {
			err_at(s->n->loc,
				"Einsum: the result of the equation \"%s\" has an index that no operand has, "
			        "or has it twice",
				attr_str(s->n, "equation"));
			return -1;
		}
		for (int k = dots - 1; ell && k >= 0; k--)
			s->out[s->nout++] = LETTERS + k;
		if (ell)
			p += 2;
		else
			s->out[s->nout++] = (unsigned char)*p;
	}
	return 0;
}

static int read_equation(Sum *s)
{
	Node *n = s->n;
	Name text = attr_str(n, "equation");
	char *eq = arena_alloc(n->graph->scratch, strlen(text) + 1), *w = eq;

	for (const char *p = text; *p; p++)
		if (*p != ' ' && *p != '\t' && *p != '\n')
			*w++ = *p;
	char *arrow = strstr(eq, "->"), *at = eq, *end = arrow ? arrow : w;
	int i = 0;

	for (; i < s->nterm; i++) {
		char *stop = memchr(at, ',', (size_t)(end - at));

		if (!stop)
			stop = end;
		if ((stop == end) != (i == s->nterm - 1)) {
			err_at(n->loc,
				"Einsum: the equation \"%s\" does not have as many operands as the node, "
			        "which has %d",
				text, s->nterm);
			return -1;
		}
		if (read_term(s, i, at, stop))
			return -1;
		at = stop + 1;
	}
	return read_result(s, eq, arrow ? arrow + 2 : NULL);
}

static int expand_einsum(Node *n)
{
	Sum s = { .n = n, .nterm = n->nin };
	int64_t perm[NDIM_MAX];

	s.term = arena_array(n->graph->scratch, Term, n->nin);
	if (read_equation(&s))
		return -1;
	for (int i = 0; i < s.nout; i++)
		s.uses[s.out[i]]++;
	for (int i = 0; i < s.term[0].ndim; i++)
		s.uses[s.term[0].label[i]]--;
	sum_unneeded(&s, &s.term[0]);
	for (int i = 1; i < s.nterm; i++)
		if (combine(&s, &s.term[0], &s.term[i]))
			return -1;
	sum_unneeded(&s, &s.term[0]);
	for (int i = 0; i < s.nout; i++)
		perm[i] = find(&s.term[0], s.out[i]);
	transpose(&s, &s.term[0], perm);
	return expand_result(n, 0, s.term[0].v);
}

/* clang-format off */
const Op ops_einsum[] = {
	{ .name = "Einsum", .since = 12, .sig = "x:N+ -> y:N", .attrs = "equation:string!", .expand = expand_einsum,
	  .test = "x:[2,3,4] b:[4,5] =equation:\"bij,jk->bik\" | x:[3,3] =equation:\"ii->i\" | "
	          "x:[2,3] b:[3] c:[2] =equation:\"ij,j,i->\" | x:[2,3,4] b:[2,4,5] =equation:\"...ij,...jk\" | "
	          "x:[3,3,2] =equation:\"iij->j\" | x:[2,1,4] b:[2,3,5] =equation:\"abc,abd->acd\"" },
	{ 0 },
};
/* clang-format on */
