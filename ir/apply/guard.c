/* Guards: the condition of @when("...") in a definition, decided when the definition is inlined.
 *
 *   or      = and {"||" and}
 *   and     = not {"&&" not}
 *   not     = "!" not | compare
 *   compare = sum [("==" | "!=" | "<" ...) sum]
 *   sum     = product {("+" | "-") product}
 *   product = atom {("*" | "/" | "%") atom}
 *   atom    = integer | "text" | "(" or ")" | has(NAME) | wants(NAME) | ndim(NAME) | dim(NAME, INT) | dtype(NAME)
 *           | isfloat(NAME) | const(NAME) | the name of an attribute | the name of an element type
 *
 * A value is a number or a name; an absent attribute is 0 or "".  Conditions are written by us: an error is a bug. */
#include "apply.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Scan { const char *p, *whole; const Function *f; const Node *call; Value **arg; int narg; } Scan;
typedef struct Val { int64_t i; Name s; } Val;

static Val read_or(Scan *);

static bool eat(Scan *s, const char *t)
{
	while (*s->p == ' ')
		s->p++;
	if (*s->p != *t)
		return false;
	size_t n = strlen(t);
	if (strncmp(s->p, t, n))
		return false;
	if (n == 1 && (*t == '<' || *t == '>' || *t == '!') && s->p[1] == '=')
		return false;
	s->p += n;
	return true;
}

static Name read_word(Scan *s)
{
	while (*s->p == ' ')
		s->p++;
	const char *start = s->p;
	while (isalnum((unsigned char)*s->p) || *s->p == '_' || *s->p == '.')
		s->p++;
	if (s->p == start)
		die("guard \"%s\": a name is missing at \"%s\"", s->whole, s->p);
	return name_n(start, (size_t)(s->p - start));
}

static int operand(const Scan *s, Name name)
{
	for (int i = 0; i < s->f->body->nin; i++)
		if (s->f->body->in[i]->name == name)
			return i;
	return -1;
}

static const Value *arg(Scan *s, Name name)
{
	int i = operand(s, name);

	if (i < 0)
		die("guard \"%s\": %s is no operand", s->whole, name);
	return i < s->narg ? s->arg[i] : NULL;
}

static const Attr *attr(const Scan *s, Name name)
{
	const Attr *a = node_attr(s->call, name);
	const Schema *sc = s->call->row ? s->call->row->schema : NULL;

	if (a)
		return a;
	for (int i = 0; sc && i < sc->nattr; i++)
		if (sc->attr[i].name == name)
			a = &sc->attr[i];
	for (int i = 0; i < s->f->nattr; i++)
		if (s->f->attr[i].name == name && (!a || !s->f->attr[i].absent))
			a = &s->f->attr[i];
	return a;
}

static bool has(Scan *s, Name name)
{
	if (operand(s, name) >= 0)
		return arg(s, name) != NULL;
	return node_attr(s->call, name) != NULL;
}

static bool wants(Scan *s, Name name)
{
	for (int i = 0; i < s->f->body->nout; i++)
		if (s->f->body->out[i]->name == name)
			return i < s->call->nout && s->call->out[i];
	die("guard \"%s\": %s is no result", s->whole, name);
}

static Val query(Scan *s, Name what)
{
	Name name = read_word(s);
	const Value *v;
	Val r = { 0 };

	if (!strcmp(what, "has"))
		r.i = has(s, name);
	else if (!strcmp(what, "wants"))
		r.i = wants(s, name);
	else if (v = arg(s, name), !strcmp(what, "ndim"))
		r.i = v && v->type ? v->type->ndim : -1;
	else if (!strcmp(what, "dtype"))
		r.s = name_of(v && v->type ? dtype_name(v->type->elem) : "undefined");
	else if (!strcmp(what, "isfloat"))
		r.i = v && v->type && dtype_is_float(v->type->elem);
	else if (!strcmp(what, "const"))
		r.i = v && v->data && !v->param;
	else if (!strcmp(what, "dim")) {
		if (!eat(s, ","))
			die("guard \"%s\": dim(NAME, AXIS)", s->whole);
		int64_t k = read_or(s).i;

		if (v && v->type && k < 0)
			k += v->type->ndim;
		r.i = v && v->type && k >= 0 && k < v->type->ndim && v->type->dim[k] >= 0 ? v->type->dim[k] : -1;
	} else {
		die("guard \"%s\": unknown question %s", s->whole, what);
	}
	if (!eat(s, ")"))
		die("guard \"%s\": ) is missing", s->whole);
	return r;
}

static Val read_atom(Scan *s)
{
	if (eat(s, "(")) {
		Val v = read_or(s);

		if (!eat(s, ")"))
			die("guard \"%s\": ) is missing", s->whole);
		return v;
	}
	if (eat(s, "\"") || eat(s, "'")) {
		char quote = s->p[-1];
		const char *start = s->p, *end = strchr(s->p, quote);

		if (!end)
			die("guard \"%s\": open quote", s->whole);
		s->p = end + 1;
		return (Val){ .s = name_n(start, (size_t)(end - start)) };
	}
	if (eat(s, "-"))
		return (Val){ .i = -read_atom(s).i };
	if (isdigit((unsigned char)*s->p)) {
		char *end;
		int64_t v = strtoll(s->p, &end, 10);

		s->p = end;
		return (Val){ .i = v };
	}
	eat(s, "@");
	Name w = read_word(s);
	if (eat(s, "("))
		return query(s, w);
	const Attr *a = attr(s, w);
	if (a && a->type == AT_STRING)
		return (Val){ .s = a->u.s ? a->u.s : name_of("") };
	if (a)
		return (Val){ .i = a->type == AT_INT ? a->u.i : a->type == AT_FLOAT ? a->u.f != 0 : a->n };
	if (dtype_of(w, strlen(w)))
		return (Val){ .s = w };
	die("guard \"%s\" of %s: %s is no attribute", s->whole, s->f->name, w);
}

static Val read_product(Scan *s)
{
	Val v = read_atom(s);

	for (;;) {
		if (eat(s, "*"))
			v.i *= read_atom(s).i;
		else if (eat(s, "/") || eat(s, "%")) {
			char op = s->p[-1];
			int64_t d = read_atom(s).i;

			v.i = !d ? 0 : op == '/' ? v.i / d : v.i % d;
		} else
			return v;
	}
}

static Val read_sum(Scan *s)
{
	Val v = read_product(s);

	for (;;) {
		if (eat(s, "+"))
			v.i += read_product(s).i;
		else if (eat(s, "-"))
			v.i -= read_product(s).i;
		else
			return v;
	}
}

static Val read_compare(Scan *s)
{
	enum { EQUAL, DIFFERENT, AT_MOST, AT_LEAST, BELOW, ABOVE };
	static const char *const ops[] = { "==", "!=", "<=", ">=", "<", ">" };

	if (eat(s, "!"))
		return (Val){ .i = !read_compare(s).i };
	Val a = read_sum(s);
	for (int k = 0; k < 6; k++)
		if (eat(s, ops[k])) {
			Val b = read_sum(s);
			bool same = a.s || b.s ? a.s == b.s : a.i == b.i;

			switch (k) {
			case EQUAL: return (Val){ .i = same };
			case DIFFERENT: return (Val){ .i = !same };
			case AT_MOST: return (Val){ .i = a.i <= b.i };
			case AT_LEAST: return (Val){ .i = a.i >= b.i };
			case BELOW: return (Val){ .i = a.i < b.i };
			case ABOVE: return (Val){ .i = a.i > b.i };
			}
		}
	return a;
}

static Val read_and(Scan *s)
{
	Val v = read_compare(s);

	while (eat(s, "&&")) {
		Val b = read_compare(s);

		v.i = v.i && b.i;
	}
	return v;
}

static Val read_or(Scan *s)
{
	Val v = read_and(s);

	while (eat(s, "||")) {
		Val b = read_and(s);

		v.i = v.i || b.i;
	}
	return v;
}

bool guard_holds(const char *text, const Function *f, const Node *call, Value **args, int narg)
{
	Scan s = { .p = text, .whole = text, .f = f, .call = call, .arg = args, .narg = narg };
	Val v = read_or(&s);

	while (*s.p == ' ')
		s.p++;
	if (*s.p)
		die("guard \"%s\": left over \"%s\"", text, s.p);
	return v.i != 0;
}
