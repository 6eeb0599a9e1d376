/* Tokens to a Model: recursive descent over the grammar of LANGUAGE.md, one function per rule.
 * Here are models, graphs, functions and nodes; types, data and attributes are in parse_value.c, annotations in
 * parse_annot.c.
 *
 * Everything that ONNX's text syntax can say is accepted unchanged; annotations and the shorthand for operands
 * (nested calls, numbers, lists, @attr) are added where its grammar leaves no meaning.  Shorthand becomes ordinary
 * nodes here, so nothing behind the parser knows of it.
 *
 * A mistake in a node is reported, the parser jumps back to the list of nodes and goes on with the next one;
 * a mistake elsewhere ends the parse.  What is well-formed but wrong (a name made twice, an element too many)
 * is reported without a jump. */
#include "parse.h"

#include <ctype.h>

/* ---- What was probably meant */

/* The bracket that is open at the end of the text: the last of those that nothing closes. */
static Loc unclosed(const Parser *p)
{
	Lex lex = p->lex;
	Stack open = { 0 };
	Loc at = { 0 };

	lex.at = lex.text;
	for (Token t = lex_next(&lex); t.kind != TOK_EOF && t.kind != TOK_BAD; t = lex_next(&lex)) {
		if (t.kind == '{' || t.kind == '(' || t.kind == '[')
			stack_push(&open, &t.loc, sizeof t.loc);
		else if ((t.kind == '}' || t.kind == ')' || t.kind == ']') && open.bytes)
			open.bytes -= sizeof t.loc;
	}
	if (open.bytes)
		memcpy(&at, open.item + open.bytes - sizeof at, sizeof at);
	free(open.item);
	return at;
}

/* Letters, digits, _ and dots around a position, if they begin as a name and hold a dot: their number, else 0. */
static int dotted_word(const Parser *p, uint64_t off, const char **word)
{
	const uint8_t *from = p->lex.text + off, *to = from;

	while (from > p->lex.text && (isalnum(from[-1]) || from[-1] == '_' || from[-1] == '.'))
		from--;
	while (to < p->lex.end && (isalnum(*to) || *to == '_' || *to == '.'))
		to++;
	*word = (const char *)from;
	if (from == to || (!isalpha(*from) && *from != '_') || to[-1] == '.')
		return 0;
	return memchr(from, '.', (size_t)(to - from)) ? (int)(to - from) : 0;
}

void parse_hint(const Parser *p, const char *what)
{
	const char *word;
	Loc here = p->tok.loc, open = p->tok.kind == TOK_EOF ? unclosed(p) : (Loc){ 0 };
	int n = dotted_word(p, here.off, &word);

	if (p->lex.longstring.file && here.off - p->lex.longstring.off - p->lex.longstring.len < 80)
		note_at(p->lex.longstring, "this string goes over the end of its line");
	if (open.file)
		note_at(open, "this '%c' is not closed", p->lex.text[open.off]);
	if (!n)
		n = dotted_word(p, p->last.off, &word);
	if (n && n < 200)
		note_at((Loc){ .file = here.file, .len = (uint32_t)n,
				.off = (uint64_t)((const uint8_t *)word - p->lex.text) },
			"a name with dots is written in quotes: \"%.*s\"", n, word);
	else if (p->tok.kind == '=')
		note_at(here,
			"headers and arguments of annotations are written key: value; name = value is for attributes "
			"of operators");
	else if (!strcmp(what, "the type of an attribute"))
		note_at(here,
			"attributes of operators are written name = value; key: value is for headers and annotations");
}

/* ---- Recovery after a mistake */

/* Calls f.  After a mistake in it the state is as before the call, except the position in the text. */
static bool attempt(Parser *p, void (*f)(Parser *))
{
	jmp_buf here, *outer = p->recover;
	struct {
		Graph *g;
		Function *f;
		Annot *with;
		int depth, braces;
		size_t operands, args;
	} was = { .g = p->g, .f = p->f, .with = p->with, .depth = p->depth, .braces = p->braces,
		.operands = p->operands.bytes, .args = p->args.bytes };

	p->recover = &here;
	if (setjmp(here) == 0) {
		f(p);
		p->recover = outer;
		return true;
	}
	p->recover = outer;
	p->g = was.g;
	p->f = was.f;
	p->with = was.with;
	p->depth = was.depth;
	p->base = was.braces;
	p->operands.bytes = was.operands;
	p->args.bytes = was.args;
	return false;
}

/* Skips to the next node of the same body, which is assumed to begin a line, or to the end of the body. */
static void resync(Parser *p)
{
	if (p->fatal)
		jump(p);
	for (; p->tok.kind != TOK_EOF; advance(p)) {
		int next = p->next.kind;

		if (p->braces > p->base)
			continue;
		if (p->tok.kind == '}' || (p->tok.line && (p->tok.kind == '[' || p->tok.kind == '@' ||
			(at_name(p) && (next == '=' || next == ',' || next == '@')))))
			return;
	}
	jump(p);
}

/* ---- Nodes */

/* One operand as written.  Literals become Constant nodes when all operands of the call are known, because they take
 * the type of the first operand that is none. */
typedef struct Opd {
	enum { OPD_NONE, OPD_VALUE, OPD_INT, OPD_FLOAT, OPD_INTS, OPD_FLOATS, OPD_ATTR } kind;
	int n;                          /* length of a list */
	Value *v;
	union {
		int64_t i, *is;
		double f, *fs;
		const Attr *attr;       /* of the function */
	} u;
	Loc loc;
} Opd;

/* A call as written, before its node exists. */
typedef struct Call {
	Name domain, op, overload;
	Loc loc;
	Attr *attr; int nattr;
	Opd *in; int nin;               /* on the stack of operands: until the next call is read */
} Call;

static Value *call_value(Parser *p, const char *hint);

static bool at_call(const Parser *p)
{
	int next = p->next.kind;

	return at_name(p) && (next == '(' || next == '<' || next == '.' || next == ':');
}

/* "[...]": one float makes all floats. */
static void list_operand(Parser *p, Opd *o)
{
	Attr list = { .name = name_of("value"), .type = AT_INTS };
	Token t = p->next;

	for (Lex ahead = p->lex; t.kind == TOK_INT || t.kind == ','; t = lex_next(&ahead))
		;
	if (t.kind != TOK_FLOAT && t.kind != TOK_ID) {
		parse_attr_list(p, &list);
		o->kind = OPD_INTS;
		o->u.is = list.u.is;
		o->n = list.n;
		return;
	}
	o->kind = OPD_FLOATS;
	o->u.fs = NULL;
	advance(p);
	do {
		double f = 0;

		if (!at_number(p))
			expected(p, "a number");
		lex_float(p->tok, &f, NULL);
		advance(p);
		arena_push(p->arena, o->u.fs, o->n, f);
	} while (accept(p, ','));
	expect(p, ']');
}

static Opd operand(Parser *p, const char *hint)
{
	Opd o = { .kind = OPD_VALUE, .loc = p->tok.loc };

	enter(p);
	if (p->tok.kind == TOK_INT) {
		o.kind = OPD_INT;
		o.u.i = integer(p, "");
	} else if (p->tok.kind == TOK_FLOAT ||
		(p->tok.kind == TOK_ID && lex_is_float_word(p->tok.name) && !graph_find(p->g, p->tok.name))) {
		o.kind = OPD_FLOAT;
		lex_float(p->tok, &o.u.f, NULL);
		advance(p);
	} else if (p->tok.kind == '[') {
		list_operand(p, &o);
	} else if (p->tok.kind == '@') {
		o.kind = OPD_ATTR;
		o.u.attr = parse_attr_ref(p);
	} else if (p->tok.kind == TOK_STRING && !*p->tok.name) {
		o.kind = OPD_NONE;
		advance(p);
	} else if (at_call(p)) {
		o.v = call_value(p, hint);
	} else {
		Name s = name(p, "an operand");
		o.v = graph_value(p->g, s, o.loc);
	}
	leave(p);
	return o;
}

static Node *make_node(Parser *p, const char *op, Loc loc)
{
	return graph_node(p->g, NULL, name_of(op), loc);
}

static bool literal(const Opd *o)
{
	return o->kind > OPD_VALUE;
}

/* The attribute of a Constant node that takes an attribute of each type. */
static const char *const constant_attr[] = { [AT_INT] = "value_int",
	[AT_INTS] = "value_ints",
	[AT_FLOAT] = "value_float",
	[AT_FLOATS] = "value_floats",
	[AT_STRING] = "value_string",
	[AT_STRINGS] = "value_strings",
	[AT_TENSOR] = "value" };

/* The Constant node of a literal, whose numbers are of type t. */
static Node *constant(Parser *p, const Opd *o, DType t)
{
	Node *n = make_node(p, "Constant", o->loc);
	Attr *a;

	if (o->kind == OPD_INT && t == DT_INT64) {
		node_attr_add(n, name_of("value_int"), AT_INT)->u.i = o->u.i;
	} else if (o->kind == OPD_INTS) {
		a = node_attr_add(n, name_of("value_ints"), AT_INTS);
		a->n = o->n;
		a->u.is = o->u.is;
	} else if (o->kind == OPD_ATTR) {
		AttrType type = o->u.attr->type;

		if (type >= (int)(sizeof constant_attr / sizeof *constant_attr) || !constant_attr[type]) {
			err_at(o->loc,
				"attribute %s needs a declared type (int, ints, float) to be an operand",
				o->u.attr->name);
			jump(p);
		}
		node_attr_add(n, name_of(constant_attr[type]), type)->ref = o->u.attr->name;
	} else if (o->kind == OPD_FLOATS) {
		int64_t dim = o->n;

		a = node_attr_add(n, name_of("value"), AT_TENSOR);
		a->u.t = tensor_new(p->arena, t, 1, &dim);
		for (int i = 0; i < o->n; i++)
			tensor_set(a->u.t, i, o->u.fs[i]);
	} else {
		a = node_attr_add(n, name_of("value"), AT_TENSOR);
		a->u.t = tensor_scalar(p->arena, t, o->kind == OPD_INT ? (double)o->u.i : o->u.f);
	}
	return n;
}

static Value *fresh_result(Parser *p, Node *n, const char *hint)
{
	Value *v = graph_fresh(p->g, hint);

	v->loc = n->loc;
	node_out(n, v);
	return v;
}

static bool is_number(const Opd *o)
{
	return o->kind == OPD_INT || o->kind == OPD_FLOAT || o->kind == OPD_FLOATS ||
		(o->kind == OPD_ATTR && (o->u.attr->type == AT_FLOAT || o->u.attr->type == AT_FLOATS));
}

static Name schema_type(const Schema *s, int i)
{
	if (!s || !s->nin)
		return name_of("?");
	return s->in[i < s->nin ? i : s->nin - 1].type;
}

/* The operand whose type the number at position i takes: the first that must have the same type, else the first that is
 * no literal. */
static Value *number_like(const Call *c, const Schema *s, int i)
{
	Value *like = NULL;

	for (int k = 0; k < c->nin; k++) {
		if (c->in[k].kind != OPD_VALUE)
			continue;
		if (s && schema_type(s, k) == schema_type(s, i))
			return c->in[k].v;
		if (!like)
			like = c->in[k].v;
	}
	return like;
}

/* Numbers become constants: of the type that the operator fixes; else in double, cast to the type of another operand;
 * else int64 or float. */
static void literals(Parser *p, Call *c, const char *hint)
{
	const Op *row = NULL;
	const Schema *s;

	for (int i = 0; i < c->nin && !row; i++)
		if (is_number(&c->in[i]))
			row = op_find(name_of(c->domain ? c->domain : ""), c->op, 0);
	s = row ? row->schema : NULL;
	for (int i = 0; i < c->nin; i++) {
		Opd *o = &c->in[i];
		Name type = schema_type(s, i);
		DType fixed = dtype_of(type, strlen(type));
		Value *like = is_number(o) && !fixed && !(*type == 'I' && o->kind == OPD_INT)
		                      ? number_like(c, s, i)
		                      : NULL;
		Node *n;

		if (!literal(o))
			continue;
		n = constant(p, o,
			fixed                ? fixed
			: o->kind == OPD_INT ? DT_INT64
			: like               ? DT_DOUBLE
					     : DT_FLOAT);
		o->v = fresh_result(p, n, hint);
		if (!like)
			continue;
		n = make_node(p, "CastLike", o->loc);
		node_in(n, o->v);
		node_in(n, like);
		o->v = fresh_result(p, n, hint);
	}
}

/* "domain.op:overload<attributes>(operands)<attributes>". */
static void call(Parser *p, Call *c, const char *hint)
{
	size_t mark = p->operands.bytes;

	c->loc = p->tok.loc;
	c->op = name(p, "an operator");
	while (accept(p, '.')) {
		c->domain = c->domain ? name_fmt("%s.%s", c->domain, c->op) : c->op;
		c->loc = p->tok.loc;
		c->op = name(p, "an operator");
	}
	if (c->domain && is(c->domain, "ai.onnx"))
		c->domain = NULL;
	if (accept(p, ':'))
		c->overload = name(p, "an overload");
	if (p->tok.kind == '<')
		parse_attributes(p, false, &c->attr, &c->nattr);
	expect(p, '(');
	while (p->tok.kind != ')') {
		Opd o = { .kind = OPD_NONE, .loc = p->tok.loc };

		if (p->tok.kind != ',')
			o = operand(p, hint);
		stack_push(&p->operands, &o, sizeof o);
		c->nin++;
		if (!accept(p, ','))
			break;
	}
	expect(p, ')');
	if (p->tok.kind == '<') {
		if (c->nattr) {
			err_at(p->tok.loc, "attributes stand before or after the operands, not both");
			jump(p);
		}
		parse_attributes(p, false, &c->attr, &c->nattr);
	}
	if (c->nin)
		c->in = (Opd *)(void *)(p->operands.item + mark);
	p->operands.bytes = mark;
}

static Node *call_node(Parser *p, Call *c, const char *hint)
{
	Node *n;

	literals(p, c, hint);
	if (p->g->nnode >= limits.nodes) {
		fail_at(EXIT_LIMIT, c->loc, "more than %lld nodes (--max-nodes)", (long long)limits.nodes);
		give_up(p);
	}
	n = graph_node(p->g, c->domain, c->op, c->loc);
	n->overload = c->overload;
	n->attr = c->attr;
	n->nattr = c->nattr;
	n->inloc = arena_array(p->arena, Loc, c->nin ? c->nin : 1);
	for (int i = 0; i < c->nin; i++) {
		n->inloc[i] = c->in[i].loc;
		node_in(n, c->in[i].v);
	}
	return n;
}

static Value *call_value(Parser *p, const char *hint)
{
	Call c = { 0 };
	Node *n;

	call(p, &c, hint);
	n = call_node(p, &c, hint);
	return fresh_result(p, n, hint);
}

/* The right side of "=": usually a call; a lone operand is Identity or a Constant. */
static Node *right_side(Parser *p, const char *hint)
{
	Call c = { .op = name_of("Identity"), .loc = p->tok.loc };
	Opd o;

	if (at_call(p)) {
		call(p, &c, hint);
		return call_node(p, &c, hint);
	}
	o = operand(p, hint);
	if (literal(&o))
		return constant(p, &o, o.kind == OPD_INT ? DT_INT64 : DT_FLOAT);
	c.in = &o;
	c.nin = 1;
	return call_node(p, &c, hint);
}

static void result(Parser *p, Node *n, Value *v, Loc loc)
{
	bool guarded = annot_find(n->annot, "when") != NULL;

	if (v && v->def && guarded && annot_find(v->def->annot, "when")) {
		arena_push(p->arena, n->out, n->nout, v);       /* one of them remains when the guards are decided */
		return;
	}
	if (v && (v->def || v->input || v->init)) {
		err_at(loc, "%s is already %s", v->name,
			v->input  ? "an input of the graph"
			: v->init ? "an initialiser"
				  : "made by another node");
		if (v->loc.file)
			note_at(v->def ? v->def->loc : v->loc, "%s is made here", v->name);
	}
	node_out(n, v);
}

static void nodes(Parser *);

/* "@with(on: gpus, stage: 0) { nodes }": each node gets those annotations that it does not have. */
static void group(Parser *p)
{
	Annot *a = parse_annot(p, ON_GROUP), *outer = p->with;

	for (int i = a ? a->narg - 1 : -1; i >= 0; i--) {
		Arg *arg = &a->arg[i];
		Annot *each = arena_new(p->arena, Annot);

		each->name = arg->param;
		each->loc = arg->loc;
		if (is(arg->param, "recompute") || is(arg->param, "keep") || is(arg->param, "frozen")) {
			if (!arg_flag(a->arg, a->narg, arg->param))
				continue;
		} else {
			each->narg = 1;
			each->arg = arena_new(p->arena, Arg);
			*each->arg = *arg;
			each->arg->key = NULL;
		}
		if (annot_check(each, ON_NODE))
			continue;
		each->next = p->with;
		p->with = each;
	}
	enter(p);
	nodes(p);
	leave(p);
	p->with = outer;
}

static void add_copy(Parser *p, Node *n, const Annot *a)
{
	Annot *copy = arena_new(p->arena, Annot);

	*copy = *a;
	copy->next = NULL;
	annot_add(&n->annot, copy);
}

static void statement(Parser *p)
{
	struct { Value *v; Loc loc; } *out = NULL;
	int nout = 0, first = p->g->nnode;
	Name label = NULL;
	const char *hint = "t";
	const Annot *when;
	Node *n;

	if (accept(p, ';'))
		return;
	if (p->tok.kind == '@') {
		group(p);
		return;
	}
	if (accept(p, '[')) {
		label = name(p, "the name of the node");
		expect(p, ']');
	}
	while (p->tok.kind != '=') {
		Loc loc = p->tok.loc;
		Value *v = NULL;

		if (p->tok.kind != ',') {
			Name s = name(p, nout ? "a result" : "a node");

			v = *s ? graph_value_here(p->g, s, loc) : NULL;
			if (v)
				parse_value_annots(p, v);
		}
		out = arena_grow(p->arena, out, nout, sizeof *out);
		out[nout].v = v;
		out[nout++].loc = loc;
		if (!accept(p, ','))
			break;
	}
	expect(p, '=');
	if (nout && out[0].v)
		hint = out[0].v->name;
	n = right_side(p, hint);
	if (label)
		n->name = label;
	parse_node_annots(p, n);
	for (const Annot *a = p->with; a; a = a->next)
		if (!annot_find(n->annot, a->name))
			add_copy(p, n, a);
	when = annot_find(n->annot, "when");
	for (int i = first; i < p->g->nnode; i++) {
		Node *part = p->g->node[i];

		for (const Annot *a = p->with; part != n && a; a = a->next)
			if (!annot_find(part->annot, a->name))
				add_copy(p, part, a);
		if (when && part != n)
			add_copy(p, part, when);
	}
	for (int i = 0; i < nout; i++)
		result(p, n, out[i].v, out[i].loc);
}

static void nodes(Parser *p)
{
	expect(p, '{');
	while (p->tok.kind != '}') {
		if (p->tok.kind == TOK_EOF)
			expected(p, "a node or '}'");
		if (!attempt(p, statement))
			resync(p);
	}
	advance(p);
}

/* ---- Graphs and functions */

static void initialiser(Parser *p, Value *v, Tensor *t)
{
	if (v->init) {
		err_at(v->loc, "%s has data twice", v->name);
		return;
	}
	v->init = true;
	v->data = t;
	v->param = !t;
	arena_push(p->arena, p->g->init, p->g->ninit, v);
}

/* "[T] name [annotations] [= DATA]". */
static Value *declared(Parser *p, bool data)
{
	int next = p->next.kind;
	Type *ty = parse_at_type(p) ? parse_type(p) : NULL;
	Loc loc = p->tok.loc;
	Value *v;

	if (!ty && p->tok.kind == TOK_ID && (next == '[' || next == TOK_ID || next == TOK_STRING))
		parse_element_type(p);                /* explains that it is none */
	v = graph_value_here(p->g, name(p, "a name"), loc);
	if (ty && !v->type)
		v->type = ty;
	if (ty)
		v->declared = true;
	parse_value_annots(p, v);
	if (data && accept(p, '=')) {
		if (!ty) {
			err_at(loc, "%s has data but no type", v->name);
			jump(p);
		}
		if (!parse_at_data(p))
			expected(p, "'{' or '['");
		initialiser(p, v, parse_tensor(p, ty, v->name, loc));
		parse_value_annots(p, v);
	}
	return v;
}

static void inputs(Parser *p, bool data)
{
	Graph *g = p->g;

	expect(p, '(');
	while (p->tok.kind != ')') {
		Loc loc = p->tok.loc;
		Value *v = declared(p, data);

		if (v->input)
			err_at(loc, "%s is an input twice", v->name);
		v->input = true;
		arena_push(p->arena, g->in, g->nin, v);
		if (!accept(p, ','))
			break;
	}
	expect(p, ')');
}

static void outputs(Parser *p)
{
	Graph *g = p->g;

	expect(p, '(');
	while (p->tok.kind != ')') {
		Value *v = declared(p, false);

		v->output = true;
		arena_push(p->arena, g->out, g->nout, v);
		if (!accept(p, ','))
			break;
	}
	expect(p, ')');
}

static void extras(Parser *p, bool data)
{
	if (!accept(p, '<'))
		return;
	while (p->tok.kind != '>') {
		Value *v = declared(p, data);

		if (data && !v->init && v->type && annot_find(v->annot, "init"))
			initialiser(p, v, NULL);        /* a parameter */
		if (!accept(p, ','))
			break;
	}
	expect(p, '>');
}

/* From the name of a graph to its "}". */
Graph *parse_graph(Parser *p)
{
	Graph *outer = p->g, *g;
	Loc loc = p->tok.loc;

	enter(p);
	g = p->g = graph_new(p->m, outer, name(p, "the name of a graph"));
	g->loc = loc;
	if (!outer)
		p->m->graph = g;
	inputs(p, true);
	expect(p, TOK_GIVES);
	outputs(p);
	extras(p, true);
	parse_graph_annots(p, g);
	nodes(p);
	p->g = outer;
	leave(p);
	return g;
}

/* ---- Headers */

static void opset_list(Parser *p, Opset **list, int *n)
{
	expect(p, '[');
	while (p->tok.kind != ']') {
		Opset o = { .loc = p->tok.loc };

		o.domain = name(p, "a domain");
		expect(p, ':');
		o.version = integer(p, "the version of an operator set");
		for (int i = *n > NEAR ? *n - NEAR : 0; i < *n; i++)
			if ((*list)[i].domain == o.domain)
				err_at(o.loc, "domain \"%s\" is imported twice", o.domain);
		arena_push(p->arena, *list, *n, o);
		if (!accept(p, ','))
			break;
	}
	expect(p, ']');
}

static void pair_list(Parser *p, Pair **list, int *n)
{
	expect(p, '[');
	while (p->tok.kind != ']') {
		Pair kv = { .loc = p->tok.loc };

		kv.key = name(p, "a key");
		expect(p, ':');
		kv.value = name(p, "a string");
		arena_push(p->arena, *list, *n, kv);
		if (!accept(p, ','))
			break;
	}
	expect(p, ']');
}

/* Reads "key:" and returns which of the keys it is. */
static int header_key(Parser *p, const char *const *keys)
{
	Token t = p->tok;

	name(p, "a key of the header");
	expect(p, ':');
	for (int i = 0; keys[i]; i++)
		if (is(t.name, keys[i]))
			return i;
	diag_unknown(t.loc, "unknown key", t.name, keys);
	jump(p);
}

static Name header_string(Parser *p)
{
	if (p->tok.kind != TOK_STRING)
		expected(p, "a string");
	return name(p, "");
}

static void model_header(Parser *p)
{
	static const char *const keys[] = { "ir_version", "model_version", "producer_name",
		"producer_version", "domain", "doc_string", "opset_import", "metadata_props", NULL };
	Model *m = p->m;

	if (!accept(p, '<'))
		return;
	while (p->tok.kind != '>') {
		switch (header_key(p, keys)) {
		case 0: m->ir_version = integer(p, "an integer"); m->has_ir_version = true; break;
		case 1: m->model_version = integer(p, "an integer"); m->has_model_version = true; break;
		case 2: m->producer_name = header_string(p); break;
		case 3: m->producer_version = header_string(p); break;
		case 4: m->domain = header_string(p); break;
		case 5: m->doc = header_string(p); break;
		case 6: opset_list(p, &m->opset, &m->nopset); break;
		case 7: pair_list(p, &m->meta, &m->nmeta); break;
		}
		if (!accept(p, ','))
			break;
	}
	expect(p, '>');
}

static void function_header(Parser *p, Function *f)
{
	static const char *const keys[] = { "opset_import", "domain", "doc_string", "overload", NULL };

	if (!accept(p, '<'))
		return;
	while (p->tok.kind != '>') {
		switch (header_key(p, keys)) {
		case 0: opset_list(p, &f->opset, &f->nopset); break;
		case 1: f->domain = header_string(p); break;
		case 2: f->doc = header_string(p); break;
		case 3: f->overload = header_string(p); break;
		}
		if (!accept(p, ','))
			break;
	}
	expect(p, '>');
}

/* ---- Functions */

static Function *new_function(Model *m, Loc loc)
{
	Function *f = arena_new(&m->arena, Function);

	f->domain = f->overload = name_of("");
	f->loc = loc;
	f->since = 1;
	return f;
}

static void function(Parser *p)
{
	Function *f = new_function(p->m, p->tok.loc);

	parse_loose_annots(p, f);
	if (p->tok.kind == TOK_EOF)
		return;
	function_header(p, f);
	f->loc = p->tok.loc;
	f->name = name(p, "the name of a function");
	if (p->tok.kind == '<')
		parse_attributes(p, true, &f->attr, &f->nattr);
	p->f = f;
	p->g = f->body = graph_new(p->m, NULL, f->name);
	f->body->loc = f->loc;
	inputs(p, false);
	expect(p, TOK_GIVES);
	outputs(p);
	extras(p, false);
	parse_graph_annots(p, p->g);
	nodes(p);
	p->f = NULL;
	p->g = NULL;
	arena_push(p->arena, p->m->function, p->m->nfunction, f);
}

/* "@program(eval)": another model of the same file begins. */
static bool at_program(const Parser *p)
{
	return p->tok.kind == '@' && p->next.name == name_of("program");
}

static void functions(Parser *p)
{
	while (p->tok.kind != TOK_EOF && !at_program(p))
		function(p);
}

static void one_model(Parser *p)
{
	model_header(p);
	parse_loose_annots(p, NULL);
	if (p->tok.kind == TOK_EOF) {
		err_at(p->tok.loc, "no graph in this file");
		jump(p);
	}
	parse_graph(p);
	functions(p);
}

static void model(Parser *p)
{
	Model *main = p->m;

	one_model(p);
	while (at_program(p)) {
		Annot *a = parse_annot(p, ON_MODEL);
		Model *m = model_new();

		m->main = main;
		m->file = main->file;
		m->program = a && a->narg ? a->arg[0].s : name_of("eval");
		arena_push(&main->arena, main->others, main->nothers, m);
		p->m = m;
		p->arena = &m->arena;
		p->end = NULL;
		one_model(p);
	}
	p->m = main;
	p->arena = &main->arena;
}

/* ---- Entries */

/* Applies a rule to a file. */
static int parse(Parser *p, Model *m, uint32_t file, void (*rule)(Parser *))
{
	int errors = diag_errors();
	bool ok;

	p->m = m;
	p->arena = &m->arena;
	if (lex_open(&p->lex, file))
		return -1;
	advance(p);
	advance(p);
	ok = attempt(p, rule) && diag_errors() == errors;
	if (ok)
		parse_later(p);
	free(p->data.item);
	free(p->operands.item);
	free(p->args.item);
	return ok && diag_errors() == errors ? 0 : -1;
}

Model *parse_text(uint32_t file)
{
	Parser p = { 0 };
	Model *m = model_new();

	m->file = file;
	if ((int64_t)file_of(file)->bytes > limits.file_bytes) {
		fail_at(EXIT_LIMIT, (Loc){ 0 }, "%s has %zu bytes, more than --max-file-bytes=%lld",
			file_of(file)->path, file_of(file)->bytes, (long long)limits.file_bytes);
	} else if (!parse(&p, m, file, model)) {
		return m;
	}
	model_free(m);
	return NULL;
}

int parse_library(uint32_t file, Model *into)
{
	Parser p = { 0 };

	return parse(&p, into, file, functions);
}

int parse_place(uint32_t file, Model *m)
{
	Parser p = { .on = ON_MODEL, .list = &m->annot };

	return parse(&p, m, file, parse_annots_only);
}

int parse_annots(uint32_t file, Model *m, AnnotOn on, Annot **list)
{
	Parser p = { .on = on, .list = list };

	return parse(&p, m, file, parse_annots_only);
}

int parse_train(const char *text, Model *m)
{
	Parser p = { 0 };

	return parse(&p, m, file_memory("<--train>", text, strlen(text)), parse_train_args);
}

/* ---- Gradients */

/* The next word of a schema ("x:T? axis:int=1") and its type; NULL at the end or at "->". */
static Name schema_word(const char **at, const char **type, size_t *ntype)
{
	const char *s = *at + strspn(*at, " "), *end;
	size_t n = strcspn(s, " :=?*+!");

	*at = s;
	if (!*s || !strncmp(s, "->", 2))
		return NULL;
	for (end = s + n; *end && *end != ' '; end++)
		if (*end == '"')
			end += strcspn(end + 1, "\"") + 1;
	*type = s[n] == ':' ? s + n + 1 : s + n;
	*ntype = strcspn(*type, " =!?*+");
	*at = end;
	return name_n(s, n);
}

static void grad_inputs(Graph *g, const char *words, const char *prefix)
{
	const char *type;
	size_t ntype;
	Name word;

	while ((word = schema_word(&words, &type, &ntype)) != NULL) {
		Value *v = graph_value_here(g, name_fmt("%s%s", prefix, word), (Loc){ 0 });

		if (v->input)
			die("gradient of %s: the name %s means two things", g->name, v->name);
		v->input = true;
		arena_push(g->arena, g->in, g->nin, v);
	}
}

static void grad_outputs(Graph *g, const char *words)
{
	const char *type;
	size_t ntype;
	Name word;

	while ((word = schema_word(&words, &type, &ntype)) != NULL) {
		Value *v = map_get(&g->byname, name_fmt("d%s", word));

		if (!v || !v->def)
			continue;
		v->output = true;
		arena_push(g->arena, g->out, g->nout, v);
	}
}

static void grad_attrs(Arena *a, Function *f, const char *words)
{
	const char *type;
	size_t ntype;
	Name word;

	while (words && (word = schema_word(&words, &type, &ntype)) != NULL) {
		Attr at = { .name = word, .absent = true, .type = type_attr_of(type, ntype) };

		arena_push(a, f->attr, f->nattr, at);
	}
}

static void grad_body(Parser *p)
{
	while (p->tok.kind != TOK_EOF)
		statement(p);
}

Function *parse_grad(const Op *row, const char *text)
{
	static Model *all;              /* gradients live as long as the table */
	const char *arrow = strstr(row->sig, "->");
	Parser p = { 0 };
	Function *f;
	uint32_t file = file_memory(name_fmt("<gradient of %s>", row->name), text, strlen(text));

	if (!all)
		all = model_new();
	f = new_function(all, (Loc){ .file = file, .len = 1 });
	f->name = name_fmt("%s.grad", row->name);
	f->body = graph_new(all, NULL, f->name);
	grad_attrs(&all->arena, f, row->attrs);
	grad_inputs(f->body, row->sig, "");
	grad_inputs(f->body, arrow + 2, "");
	grad_inputs(f->body, arrow + 2, "d");
	p.f = f;
	p.g = f->body;
	if (parse(&p, all, file, grad_body))
		return NULL;
	grad_outputs(f->body, row->sig);
	return f;
}
