/* The part of the parser that reads annotations and gives each to what it speaks of.  Which there are and what
 * arguments they take is the table in annot.c; those for which the graph has a field of its own (@doc, @meta,
 * @from, @into, @denotation, @op) go there. */
#include "parse.h"

static Arg annot_arg(Parser *);

static void annot_args(Parser *p, int close, Arg **list, int *n)
{
	size_t mark = p->args.bytes;

	enter(p);
	while (p->tok.kind != close) {
		Arg a = annot_arg(p);

		stack_push(&p->args, &a, sizeof a);
		++*n;
		if (p->tok.kind != TOK_TO && !accept(p, ','))
			break;
	}
	expect(p, close);
	leave(p);
	*list = stack_take(p->arena, &p->args, mark);
}

/* "a.b.c", or one string. */
Name parse_dotted(Parser *p, const char *what)
{
	bool word = p->tok.kind == TOK_ID;
	Name s = name(p, what);

	while (word && accept(p, '.')) {
		if (p->tok.kind != TOK_ID)
			expected(p, "a word");
		s = name_fmt("%s.%s", s, name(p, ""));
	}
	return s;
}

static Arg annot_arg(Parser *p)
{
	Arg a = { .arrow = accept(p, TOK_TO) };

	a.loc = p->tok.loc;
	if (p->tok.kind == TOK_ID && p->next.kind == ':') {
		a.key = p->tok.name;
		advance(p);
		advance(p);
	}
	if (p->tok.kind == TOK_INT) {
		a.kind = ARG_INT;
		a.f = (double)(a.i = integer(p, ""));
		if (p->tok.kind == ':' || p->tok.kind == '/') {
			a.kind = p->tok.kind == ':' ? ARG_RANGE : ARG_FACTOR;
			advance(p);
			a.j = integer(p, "an integer");
		}
	} else if (at_number(p)) {
		a.kind = ARG_FLOAT;
		lex_float(p->tok, &a.f, NULL);
		advance(p);
	} else if (p->tok.kind == TOK_STRING) {
		a.kind = ARG_STRING;
		a.s = name(p, "");
	} else if (accept(p, '*')) {
		a.kind = ARG_STAR;
	} else if (accept(p, '[')) {
		a.kind = ARG_LIST;
		annot_args(p, ']', &a.arg, &a.narg);
	} else if (p->tok.kind == TOK_ID) {
		a.kind = ARG_WORD;
		a.s = parse_dotted(p, "");
		if (accept(p, '(')) {
			a.kind = ARG_CALL;
			annot_args(p, ')', &a.arg, &a.narg);
		} else if (accept(p, '[')) {
			a.kind = ARG_INDEX;
			annot_args(p, ']', &a.arg, &a.narg);
		}
	} else {
		expected(p, "an argument");
	}
	a.loc.len = (uint32_t)(p->last.off + p->last.len - a.loc.off);
	return a;
}

/* "@name(args)" at '@'; NULL after explaining that it is not known or cannot stand here. */
Annot *parse_annot(Parser *p, AnnotPlace place)
{
	Annot *a = arena_new(p->arena, Annot);

	a->loc = p->tok.loc;
	expect(p, '@');
	a->loc.len = (uint32_t)(p->tok.loc.off + p->tok.loc.len - a->loc.off);
	if (p->tok.kind != TOK_ID)
		expected(p, "the name of an annotation");
	a->name = p->tok.name;
	advance(p);
	if (accept(p, '('))
		annot_args(p, ')', &a->arg, &a->narg);
	return annot_check(a, place) ? NULL : a;
}

static bool at_annot(const Parser *p)
{
	return p->tok.kind == '@' && !(p->next.kind == TOK_ID && !strcmp(p->next.name, "with"));
}

static Name text_arg(const Annot *a, const char *param)
{
	return arg_find(a->arg, a->narg, param)->s;
}

/* @meta("key", "value") is a metadata entry, not an annotation. */
static bool took_meta(Parser *p, const Annot *a, Pair **list, int *n)
{
	if (!is(a->name, "meta"))
		return false;
	arena_push(p->arena, *list, *n, ((Pair){ text_arg(a, "key"), text_arg(a, "value"), a->loc }));
	return true;
}

/* A node, a value or a graph has each annotation once. */
static void add_once(Annot **list, Annot *a)
{
	const Annot *old = annot_find(*list, a->name);

	if (!old) {
		annot_add(list, a);
		return;
	}
	err_at(a->loc, "@%s is given twice", a->name);
	note_at(old->loc, "first here");
}

void parse_node_annots(Parser *p, Node *n)
{
	while (at_annot(p)) {
		Annot *a = parse_annot(p, ON_NODE);

		if (!a || took_meta(p, a, &n->meta, &n->nmeta))
			continue;
		if (is(a->name, "doc"))
			n->doc = a->arg[0].s;
		else if (is(a->name, "from"))
			n->from = a->arg[0].s;
		else
			add_once(&n->annot, a);
	}
}

/* @denotation("IMAGE", "DATA_BATCH", ...): of the type and of its axes; "" is none. */
static void denotation(Parser *p, Value *v, const Annot *a)
{
	Name none = name_of("");
	int axis = 0;

	if (!v->type) {
		err_at(a->loc, "@denotation needs the type of %s", v->name);
		return;
	}
	v->type->denote = arena_array(p->arena, Name, v->type->rank > 0 ? v->type->rank : 1);
	for (int i = 0; i < a->narg; i++) {
		Name s = a->arg[i].s == none ? NULL : a->arg[i].s;

		if (is(a->arg[i].param, "meaning"))
			v->type->denotation = s;
		else if (axis < v->type->rank)
			v->type->denote[axis++] = s;
		else
			err_at(a->arg[i].loc, "%s has no axis %d: it is %s", v->name, axis,
				type_text(v->type));
	}
}

void parse_value_annots(Parser *p, Value *v)
{
	while (at_annot(p)) {
		Annot *a = parse_annot(p, ON_VALUE);

		if (!a || took_meta(p, a, &v->meta, &v->nmeta))
			continue;
		if (is(a->name, "doc"))
			v->doc = a->arg[0].s;
		else if (is(a->name, "into"))
			v->into = graph_value(p->g, a->arg[0].s, a->arg[0].loc);
		else if (is(a->name, "denotation"))
			denotation(p, v, a);
		else
			add_once(&v->annot, a);
	}
}

void parse_graph_annots(Parser *p, Graph *g)
{
	while (at_annot(p)) {
		Annot *a = parse_annot(p, ON_GRAPH);

		if (!a || took_meta(p, a, &g->meta, &g->nmeta))
			continue;
		if (is(a->name, "doc"))
			g->doc = a->arg[0].s;
		else
			add_once(&g->annot, a);
	}
}

static void op_annot(Function *f, const Annot *a)
{
	const Arg *since = arg_find(a->arg, a->narg, "since"), *until = arg_find(a->arg, a->narg, "until");

	if (since)
		f->since = (int)since->i;
	if (until)
		f->until = (int)until->i;
}

/* Model annotations may be many: the end of the list is kept. */
static void add_at_end(Parser *p, Annot **list, Annot *a)
{
	if (!p->end)
		p->end = list;
	annot_add(p->end, a);
	p->end = &a->next;
}

/* Annotations between functions: those of functions belong to the next one, the others to the model. */
void parse_loose_annots(Parser *p, Function *f)
{
	while (p->tok.kind == '@') {
		Annot *a = parse_annot(p, f ? ON_MODEL | ON_FUNCTION : ON_MODEL);

		if (!a)
			continue;
		if (is(a->name, "op"))
			op_annot(f, a);
		if (is(a->name, "op") || is(a->name, "test"))
			annot_add(&f->annot, a);
		else if (!f || !took_meta(p, a, &f->meta, &f->nmeta))
			add_at_end(p, &p->m->annot, a);
	}
}

void parse_annots_only(Parser *p)
{
	while (p->tok.kind != TOK_EOF) {
		Annot *a;

		if (p->tok.kind != '@')
			expected(p, "an annotation");
		a = parse_annot(p, p->place);
		if (a)
			add_at_end(p, p->list, a);
	}
}

/* The arguments of @train.  What is given here goes before what the model itself says. */
void parse_train_args(Parser *p)
{
	Annot *a = arena_new(p->arena, Annot), *old = annot_find(p->m->annot, "train");

	a->name = name_of("train");
	a->loc = p->tok.loc;
	annot_args(p, TOK_EOF, &a->arg, &a->narg);
	if (annot_check(a, ON_MODEL))
		return;
	if (!old) {
		annot_add(&p->m->annot, a);
		return;
	}
	Arg *all = NULL;
	int n = 0;

	for (int i = 0; i < a->narg; i++)
		arena_push(p->arena, all, n, a->arg[i]);
	for (int i = 0; i < old->narg; i++)
		if (is(old->arg[i].param, "group") || !arg_find(a->arg, a->narg, old->arg[i].param))
			arena_push(p->arena, all, n, old->arg[i]);
	old->arg = all;
	old->narg = n;
}
