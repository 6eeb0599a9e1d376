/* The operator table: rows of ops/ *.c and definitions of ops/ *.ir, found by domain, name and opset version.
 *
 * Three kinds of entry share one struct.  A core operator is a row with a shape rule and a meaning (expression or
 * eval).  A definition is a function in the language: its row has only a schema and .def.  A composite has both: it
 * stays one node through the passes, and its definition says what it means.  Passes ask the row, never the name.
 *
 * The rows in the sources are constant; op_add copies them, so that the parsed schema, definition and gradient
 * can be attached. */
#include "table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct Entry { Op **op; int n; } Entry;         /* all versions of one operator */

static Op **table;
static int ntable;
/* set by language.c: the parser is a layer above the table */
static Function *(*parse_gradient)(const Op *, const char *text);
static Map by_name;                                     /* "domain:Op" -> Entry */

/* One word of a .sig or .attrs text; blanks before it are skipped.  Quoted text and brackets count as part of a
 * word. */
static const char *word(const char **p, size_t *len)
{
	while (**p == ' ')
		++*p;
	const char *start = *p;
	bool quoted = false;
	for (int depth = 0; **p && (quoted || depth || **p != ' '); ++*p) {
		quoted ^= **p == '"';
		depth += !quoted && **p == '[';
		depth -= !quoted && **p == ']';
	}
	*len = (size_t)(*p - start);
	return start;
}

static Operand read_operand(const char *w, size_t len)
{
	Operand o = { 0 };

	if (w[len - 1] == '?' || w[len - 1] == '*' || w[len - 1] == '+') {
		o.optional = w[len - 1] != '+';
		o.variadic = w[len - 1] != '?';
		len--;
	}
	const char *colon = memchr(w, ':', len);
	o.name = name_n(w, colon ? (size_t)(colon - w) : len);
	o.type = colon ? name_n(colon + 1, len - (size_t)(colon - w) - 1) : name_of("T");
	return o;
}

static const struct { const char *name; AttrType type; } attr_types[] = {
	{ "int", AT_INT }, { "float", AT_FLOAT }, { "string", AT_STRING }, { "ints", AT_INTS }, { "floats", AT_FLOATS },
	{ "strings", AT_STRINGS }, { "tensor", AT_TENSOR }, { "graph", AT_GRAPH }, { "type", AT_TYPE },
	{ "sparse_tensor", AT_SPARSE },
};

static void read_value(Attr *a, const char *v, size_t len)
{
	char text[128];

	if (len >= sizeof text)
		die("attribute default too long: %.*s", (int)len, v);
	memcpy(text, v, len);
	text[len] = 0;
	switch (a->type) {
	case AT_INT: a->u.i = strtoll(text, NULL, 10); break;
	case AT_FLOAT: a->u.f = strtof(text, NULL); break;
	case AT_STRING: a->u.s = name_n(v + 1, len - 2); break;
	case AT_INTS:
		for (char *p = text + 1; *p && *p != ']';) {
			arena_push(&arena_process, a->u.is, a->n, strtoll(p, &p, 10));
			p += strspn(p, ", ");
		}
		break;
	case AT_STRINGS:
		for (char *p = strchr(text, '"'); p; p = strchr(p, '"')) {
			char *end = strchr(p + 1, '"');

			arena_push(&arena_process, a->u.ss, a->n, name_n(p + 1, (size_t)(end - p) - 1));
			p = end + 1;
		}
		break;
	default: die("no defaults of this attribute type: %s", text);
	}
}

/* "axis:int=-1 perm:ints to:int!" */
static void read_attrs(Schema *s, const char *text)
{
	size_t len;
	const char *w;

	for (int n = 0; text && (w = word(&text, &len), len); n++) {
		const char *colon = memchr(w, ':', len), *eq = memchr(w, '=', len);
		bool required = w[len - 1] == '!' && !eq;
		size_t typelen = (size_t)((eq ? eq : w + len - required) - colon) - 1;
		Attr a = { .name = name_n(w, (size_t)(colon - w)) };

		for (size_t i = 0; i < sizeof attr_types / sizeof *attr_types; i++)
			if (strlen(attr_types[i].name) == typelen && !memcmp(attr_types[i].name, colon + 1, typelen))
				a.type = attr_types[i].type;
		if (!a.type)
			die("attribute type in \"%s\"", w);
		if (eq)
			read_value(&a, eq + 1, len - (size_t)(eq - w) - 1);
		arena_push(&arena_process, s->attr, s->nattr, a);
		s->hasdefault = arena_grow(&arena_process, s->hasdefault, n, sizeof(bool));
		s->required = arena_grow(&arena_process, s->required, n, sizeof(bool));
		s->hasdefault[n] = eq != NULL;
		s->required[n] = required;
	}
}

static Schema *row_schema(const Op *op)
{
	Schema *s = arena_new(&arena_process, Schema);
	const char *p = op->sig ? op->sig : "->", *w;
	bool results = false;
	size_t len;

	while (w = word(&p, &len), len) {
		if (w[0] == '-' && len == 2)
			results = true;
		else if (results)
			arena_push(&arena_process, s->out, s->nout, read_operand(w, len));
		else
			arena_push(&arena_process, s->in, s->nin, read_operand(w, len));
	}
	read_attrs(s, op->attrs);
	return s;
}

static Schema *definition_schema(const Function *f)
{
	Schema *s = arena_new(&arena_process, Schema);

	for (int i = 0; i < f->body->nin; i++)
		arena_push(&arena_process, s->in, s->nin,
			((Operand){ .name = f->body->in[i]->name, .type = name_of("?"), .optional = true }));
	for (int i = 0; i < f->body->nout; i++)
		arena_push(&arena_process, s->out, s->nout,
			((Operand){ .name = f->body->out[i]->name, .type = name_of("?") }));
	for (int i = 0; i < f->nattr; i++) {
		arena_push(&arena_process, s->attr, s->nattr, f->attr[i]);
		s->hasdefault = arena_grow(&arena_process, s->hasdefault, i, sizeof(bool));
		s->required = arena_grow(&arena_process, s->required, i, sizeof(bool));
		s->hasdefault[i] = !f->attr[i].absent;
	}
	return s;
}

static Entry *entry(Name domain, Name op, bool make)
{
	Name key = name_fmt("%s:%s", domain, op);
	Entry *e = map_get(&by_name, key);

	if (!e && make)
		map_put(&by_name, key, e = arena_new(&arena_process, Entry));
	return e;
}

static Op *add(const Op *row)
{
	if (!ntable)
		map_init(&by_name, &arena_process);
	Op *op = arena_new(&arena_process, Op);
	Entry *e = entry(name_of(row->domain ? row->domain : ""), name_of(row->name), true);

	for (int i = 0; i < e->n; i++)
		if (e->op[i]->since == row->since)
			die("two rows of %s since version %d", row->name, row->since);
	*op = *row;
	arena_push(&arena_process, e->op, e->n, op);
	arena_push(&arena_process, table, ntable, op);
	return op;
}

void op_add(const Op *row)
{
	add(row)->schema = row_schema(row);
}

void op_define(Function *f)
{
	Entry *e = entry(f->domain, f->name, true);

	for (int i = 0; i < e->n; i++)
		if (e->op[i]->composite && e->op[i]->since == f->since) {
			e->op[i]->def = f;
			return;
		}
	Op *op = add(&(Op){ .name = f->name, .domain = f->domain, .since = f->since, .until = f->until });
	op->def = f;
	op->schema = definition_schema(f);
}

const Op *op_find(Name domain, Name name, int64_t version)
{
	if (!ntable)
		die("the operator table is empty: language_init has not run");
	if (!strcmp(domain, "ai.onnx"))
		domain = name_of("");
	const Entry *e = entry(domain, name, false);
	const Op *best = NULL;
	if (version <= 0)
		version = INT_MAX;
	for (int i = 0; e && i < e->n; i++) {
		const Op *op = e->op[i];

		if (op->since <= version &&
			(!op->until || version <= op->until || (version == INT_MAX && !op->until)) &&
			(!best || op->since > best->since))
			best = op;
	}
	return best;
}

bool op_known(Name domain, Name name)
{
	return entry(domain, name, false) != NULL;
}

int op_count(void)
{
	return ntable;
}

const Op *op_at(int i)
{
	return table[i];
}

bool op_index(const Node *n, int operand, int *axis)
{
	const Schema *s = n->row->schema;
	const char *at = n->row->index;
	if (!at || !s || operand >= s->nin || operand >= n->nin)
		return false;
	size_t len = strcspn(at, " ");
	if (strlen(s->in[operand].name) != len || strncmp(s->in[operand].name, at, len))
		return false;
	int64_t a = !strcmp(at + len, " axis") ? attr_int(n, "axis") : strtoll(at + len, NULL, 10);
	*axis = (int)(a < 0 ? a + n->in[0]->type->ndim : a);
	return true;
}

/* The index of an operand or result by its name; -1. */
static int named(const Operand *list, int n, const char *name, size_t len)
{
	for (int i = 0; i < n; i++)
		if (strlen(list[i].name) == len && !strncmp(list[i].name, name, len))
			return i;
	return -1;
}

int op_added(const Node *n)
{
	int i = n->row->added ? named(n->row->schema->in, n->row->schema->nin, n->row->added, strlen(n->row->added))
	                      : -1;
	return i >= 0 && i < n->nin && n->in[i] ? i : -1;
}

bool op_origin(const Node *n, bool *out, int *at, int *axis)
{
	const Schema *s = n->row->schema;
	const char *text = n->row->origin;
	if (!text)
		return false;
	size_t len = strcspn(text, " ");
	*at = named(s->in, s->nin, text, len);
	*out = *at < 0;
	if (*out)
		*at = named(s->out, s->nout, text, len);
	if (*at < 0)
		die("%s: .origin names nothing of .sig", n->row->name);
	const Value *v = *out ? n->out[*at] : n->in[*at];
	int64_t a = !strcmp(text + len, " axis") ? attr_int(n, "axis") : strtoll(text + len, NULL, 10);
	*axis = !strcmp(text + len, " *") ? -1 : (int)(a < 0 ? a + v->type->ndim : a);
	return true;
}

void op_gradients_by(Function *(*parse)(const Op *, const char *))
{
	parse_gradient = parse;
}

Function *op_gradient(const Op *op)
{
	Op *own = (Op *)op;     /* rows live in our own table: see op_add */

	if (!op->gradient && op->grad)
		own->gradient = parse_gradient(op, op->grad);
	return op->gradient;
}

int64_t op_version(const Model *m, Name domain)
{
	for (int i = 0; i < m->nopset; i++)
		if (m->opset[i].domain == domain || (!*domain && !strcmp(m->opset[i].domain, "ai.onnx")))
			return m->opset[i].version;
	return -1;
}

int op_axis(Node *n, int64_t axis, int ndim, int *out)
{
	if (axis < -ndim || axis >= ndim) {
		err_at(n->loc, "%s: axis %lld is outside [%d, %d]", n->op, (long long)axis, -ndim, ndim - 1);
		return -1;
	}
	*out = (int)(axis < 0 ? axis + ndim : axis);
	return 0;
}
