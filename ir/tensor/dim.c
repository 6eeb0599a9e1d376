/* Dimensions: numbers, or sums of products of symbols.
 *
 * A symbolic dimension is an index into a table of expressions that are kept once each, in canonical form, so that
 * equal expressions are equal numbers.  An expression is a sum of terms; a term is a coefficient times a product of
 * atoms; an atom is a symbol or "floor(E/E)".  The canonical text ("2*N*T + 1") is what is printed, what the parser
 * and the exporters of other tools write, and the key of the table. */
#include "tensor.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAXATOM = 8, MAXTERM = 12 };

/* given: it occurs in a text that was read */
typedef struct Atom { Name text; Dim num, den; bool isfloor, bound, given; int64_t value; } Atom;
typedef struct Term { int64_t coef; int n; int atom[MAXATOM]; } Term;       /* atoms ascending by index */
typedef struct Poly { int n; Term term[MAXTERM]; bool bad; } Poly;          /* bad: cannot be expressed */

static struct { Name text; Poly *poly; } *expr;
static int nexpr;
static Atom *atom;
static int natom;
static Map by_text, by_atom;

static int atom_of(Name text)
{
	if (!by_atom.arena)
		map_init(&by_atom, &arena_process);
	intptr_t i = (intptr_t)map_get(&by_atom, text);
	if (i)
		return (int)i - 1;
	arena_push(&arena_process, atom, natom, ((Atom){ .text = text }));
	map_put(&by_atom, text, (void *)(intptr_t)natom);
	return natom - 1;
}

static Poly poly_int(int64_t v)
{
	Poly p = { 0 };

	if (v)
		p.term[p.n++] = (Term){ .coef = v };
	return p;
}

static Poly poly_atom(int a)
{
	return (Poly){ .n = 1, .term = { { .coef = 1, .n = 1, .atom = { a } } } };
}

static Poly poly_of(Dim d)
{
	if (d >= 0)
		return poly_int(d);
	if (dim_symbolic(d))
		return *expr[-16 - d].poly;
	return (Poly){ .bad = true };
}

static int term_order(const Term *a, const Term *b)
{
	if (a->n != b->n)
		return b->n - a->n;
	for (int i = 0; i < a->n; i++)
		if (a->atom[i] != b->atom[i])
			return strcmp(atom[a->atom[i]].text, atom[b->atom[i]].text);
	return 0;
}

static void poly_push(Poly *p, Term t)
{
	int i = 0;

	if (p->bad || !t.coef)
		return;
	while (i < p->n && term_order(&p->term[i], &t) < 0)
		i++;
	if (i < p->n && !term_order(&p->term[i], &t)) {
		if (__builtin_add_overflow(p->term[i].coef, t.coef, &p->term[i].coef))
			p->bad = true;
		if (!p->term[i].coef) {
			p->n--;
			memmove(&p->term[i], &p->term[i + 1], sizeof t * (size_t)(p->n - i));
		}
		return;
	}
	if (p->n == MAXTERM) {
		p->bad = true;
		return;
	}
	memmove(&p->term[i + 1], &p->term[i], sizeof t * (size_t)(p->n - i));
	p->term[i] = t;
	p->n++;
}

static Poly poly_add(Poly a, Poly b, int64_t sign)
{
	a.bad |= b.bad;
	for (int i = 0; i < b.n; i++) {
		Term t = b.term[i];

		a.bad |= __builtin_mul_overflow(t.coef, sign, &t.coef);
		poly_push(&a, t);
	}
	return a;
}

static Poly poly_mul(Poly a, Poly b)
{
	Poly p = { .bad = a.bad || b.bad };

	for (int i = 0; i < a.n && !p.bad; i++)
		for (int j = 0; j < b.n && !p.bad; j++) {
			Term t = a.term[i];

			if (t.n + b.term[j].n > MAXATOM || __builtin_mul_overflow(t.coef, b.term[j].coef, &t.coef)) {
				p.bad = true;
				break;
			}
			for (int k = 0; k < b.term[j].n; k++) {
				int at = t.n++, x = b.term[j].atom[k];

				for (; at > 0 && strcmp(atom[t.atom[at - 1]].text, atom[x].text) > 0; at--)
					t.atom[at] = t.atom[at - 1];
				t.atom[at] = x;
			}
			poly_push(&p, t);
		}
	return p;
}

static Dim dim_of(const Poly *p)
{
	char text[1024];
	size_t at = 0;

	if (p->bad)
		return DIM_UNKNOWN;
	if (p->n == 0)
		return 0;
	if (p->n == 1 && p->term[0].n == 0)
		return p->term[0].coef >= 0 ? p->term[0].coef : DIM_UNKNOWN;
	for (int i = 0; i < p->n; i++) {
		const Term *t = &p->term[i];
		int64_t c = t->coef;

		if (at > sizeof text - 64)
			return DIM_UNKNOWN;
		if (i || c < 0)
			at += (size_t)snprintf(text + at, sizeof text - at, i ? c < 0 ? " - " : " + " : "-");
		uint64_t mag = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
		if (mag != 1 || t->n == 0)
			at += (size_t)snprintf(text + at, sizeof text - at, "%llu%s", (unsigned long long)mag,
				t->n ? "*" : "");
		for (int k = 0; k < t->n; k++) {
			const char *s = atom[t->atom[k]].text;

			if (at + strlen(s) + 8 > sizeof text)
				return DIM_UNKNOWN;
			at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", k ? "*" : "", s);
		}
	}
	Name name = name_n(text, at);
	if (!by_text.arena)
		map_init(&by_text, &arena_process);
	intptr_t i = (intptr_t)map_get(&by_text, name);
	if (i)
		return -16 - (Dim)(i - 1);
	Poly *keep = arena_new(&arena_process, Poly);
	*keep = *p;
	expr = arena_grow(&arena_process, expr, nexpr, sizeof *expr);
	expr[nexpr].text = name;
	expr[nexpr++].poly = keep;
	map_put(&by_text, name, (void *)(intptr_t)nexpr);
	return -16 - (Dim)(nexpr - 1);
}

/* Reading an expression: sum = ["-"] product {("+"|"-") product}; product = factor {"*" factor}; factor = integer,
 * identifier, "(" sum ")" or "floor(" sum "/" sum ")".  Text that is anything else is one opaque symbol. */
typedef struct Read { const char *p; int depth; bool bad; } Read;

static Poly read_sum(Read *r);

static void blanks(Read *r)
{
	while (*r->p == ' ')
		r->p++;
}

static Poly read_factor(Read *r)
{
	blanks(r);
	if (isdigit((unsigned char)*r->p)) {
		int64_t v = 0;

		for (; isdigit((unsigned char)*r->p); r->p++)
			if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *r->p - '0', &v))
				r->bad = true;
		return poly_int(v);
	}
	bool isfloor = !strncmp(r->p, "floor(", 6);
	if (*r->p == '(' || isfloor) {
		Poly a, b = { 0 };

		r->p += isfloor ? 6 : 1;
		if (++r->depth > 8) {
			r->bad = true;
			return b;
		}
		a = read_sum(r);
		if (isfloor) {
			r->bad |= *r->p != '/';
			r->p += *r->p == '/';
			b = read_sum(r);
		}
		r->depth--;
		r->bad |= *r->p != ')';
		r->p += *r->p == ')';
		blanks(r);
		if (r->bad || !isfloor)
			return a;
		Dim q = dim_floordiv(dim_of(&a), dim_of(&b));
		return poly_of(q);
	}
	if (isalpha((unsigned char)*r->p) || *r->p == '_') {
		const char *start = r->p;

		while (isalnum((unsigned char)*r->p) || *r->p == '_' || *r->p == '.')
			r->p++;
		int a = atom_of(name_n(start, (size_t)(r->p - start)));
		blanks(r);
		return poly_atom(a);
	}
	r->bad = true;
	return poly_int(0);
}

static Poly read_product(Read *r)
{
	Poly p = read_factor(r);

	for (blanks(r); *r->p == '*' && !r->bad; blanks(r)) {
		r->p++;
		p = poly_mul(p, read_factor(r));
	}
	return p;
}

static Poly read_sum(Read *r)
{
	blanks(r);
	int64_t sign = *r->p == '-' ? -1 : 1;
	r->p += sign < 0;
	Poly p = poly_add(poly_int(0), read_product(r), sign);
	while ((*r->p == '+' || *r->p == '-') && !r->bad) {
		sign = *r->p++ == '-' ? -1 : 1;
		p = poly_add(p, read_product(r), sign);
	}
	return p;
}

static void given(const Poly *p)
{
	for (int i = 0; i < p->n; i++)
		for (int k = 0; k < p->term[i].n; k++) {
			Atom *a = &atom[p->term[i].atom[k]];
			if (!a->given && a->isfloor) {
				Poly num = poly_of(a->num), den = poly_of(a->den);
				given(&num), given(&den);
			}
			a->given = true;
		}
}

Dim dim_symbol(Name text)
{
	Read r = { .p = text };
	Poly p = { 0 };

	if (strlen(text) < 256)
		p = read_sum(&r);
	else
		r.bad = true;
	if (r.bad || p.bad || *r.p || (p.n == 1 && p.term[0].n == 0) || p.n == 0)
		p = poly_atom(atom_of(text));
	given(&p);
	return dim_of(&p);
}

Name dim_text(Dim d)
{
	if (d >= 0)
		return name_fmt("%lld", (long long)d);
	return dim_symbolic(d) ? expr[-16 - d].text : name_of("?");
}

Dim dim_add(Dim a, Dim b)
{
	Dim c;

	if (a >= 0 && b >= 0)
		return __builtin_add_overflow(a, b, &c) ? DIM_OVERFLOW : c;
	if (a == DIM_OVERFLOW || b == DIM_OVERFLOW)
		return DIM_OVERFLOW;
	Poly p = poly_add(poly_of(a), poly_of(b), 1);
	return dim_of(&p);
}

/* A number below zero is not a dimension: DIM_UNKNOWN. */
Dim dim_sub(Dim a, Dim b)
{
	if (a == DIM_OVERFLOW || b == DIM_OVERFLOW)
		return DIM_OVERFLOW;
	Poly p = poly_add(poly_of(a), poly_of(b), -1);
	return dim_of(&p);
}

Dim dim_mul(Dim a, Dim b)
{
	Dim c;

	if (a == 0 || b == 0)
		return 0;
	if (a >= 0 && b >= 0)
		return __builtin_mul_overflow(a, b, &c) ? DIM_OVERFLOW : c;
	if (a == DIM_OVERFLOW || b == DIM_OVERFLOW)
		return DIM_OVERFLOW;
	Poly p = poly_mul(poly_of(a), poly_of(b));
	return dim_of(&p);
}

/* Every term divided by one term: exact, or not expressible. */
static bool divide(const Poly *a, const Poly *b, Poly *q)
{
	if (a->bad || b->bad || b->n != 1)
		return false;
	const Term *d = &b->term[0];
	*q = poly_int(0);
	for (int i = 0; i < a->n; i++) {
		Term t = { 0 };
		int k = 0;

		if (a->term[i].coef % d->coef)
			return false;
		t.coef = a->term[i].coef / d->coef;
		for (int j = 0; j < a->term[i].n; j++)
			if (k < d->n && a->term[i].atom[j] == d->atom[k])
				k++;
			else
				t.atom[t.n++] = a->term[i].atom[j];
		if (k < d->n)
			return false;
		poly_push(q, t);
	}
	return !q->bad;
}

Dim dim_div(Dim a, Dim b)
{
	Poly q;

	if (b == 0 || a == DIM_UNKNOWN || b == DIM_UNKNOWN)
		return DIM_UNKNOWN;
	if (a >= 0 && b > 0)
		return a % b ? DIM_UNKNOWN : a / b;
	if (dim_same(a, b))
		return 1;
	Poly pa = poly_of(a), pb = poly_of(b);
	return divide(&pa, &pb, &q) ? dim_of(&q) : DIM_UNKNOWN;
}

Dim dim_floordiv(Dim a, Dim b)
{
	if (b == 0 || a == DIM_UNKNOWN || b == DIM_UNKNOWN)
		return DIM_UNKNOWN;
	if (a >= 0 && b > 0)
		return a / b;
	Dim exact = dim_div(a, b);
	if (exact != DIM_UNKNOWN || !dim_symbolic(a) || b < 0)
		return exact;
	int i = atom_of(name_fmt("floor((%s)/%s)", dim_text(a), dim_text(b)));
	atom[i].isfloor = true;
	atom[i].num = a;
	atom[i].den = b;
	Poly p = poly_atom(i);
	return dim_of(&p);
}

Dim dim_ceildiv(Dim a, Dim b)
{
	return dim_floordiv(dim_add(a, dim_sub(b, 1)), b);
}

bool dim_same(Dim a, Dim b)
{
	return a == b && a != DIM_UNKNOWN && a != DIM_OVERFLOW;
}

bool dim_differ(Dim a, Dim b)
{
	return a >= 0 && b >= 0 && a != b;
}

void dim_bind(Name symbol, int64_t value)
{
	int i = atom_of(symbol);

	atom[i].bound = true;
	atom[i].value = value;
}

int dim_check(void)
{
	const char **list = arena_array(&arena_process, const char *, natom + 1);
	int n = 0, bad = 0;
	for (int i = 0; i < natom; i++)
		if (atom[i].given && !atom[i].isfloor)
			list[n++] = atom[i].text;
	for (int i = 0; i < natom; i++)
		if (atom[i].bound && !atom[i].given) {
			diag_unknown((Loc){ 0 }, "--set: the model has no symbolic dimension", atom[i].text, list);
			bad = -1;
		}
	if (bad && !n)
		note_at((Loc){ 0 }, "it has none");
	return bad;
}

Dim dim_bound(Dim d)
{
	if (!dim_symbolic(d))
		return d;
	Poly p = poly_of(d), sum = poly_int(0);
	for (int i = 0; i < p.n; i++) {
		Poly t = poly_int(p.term[i].coef);

		for (int k = 0; k < p.term[i].n; k++) {
			Atom a = atom[p.term[i].atom[k]];       /* a copy: the table may move */

			if (a.bound)
				t = poly_mul(t, poly_int(a.value));
			else if (a.isfloor)
				t = poly_mul(t, poly_of(dim_floordiv(dim_bound(a.num), dim_bound(a.den))));
			else
				t = poly_mul(t, poly_atom(p.term[i].atom[k]));
		}
		sum = poly_add(sum, t, 1);
	}
	return sum.bad ? DIM_OVERFLOW : dim_of(&sum);
}
