/* Parsing annotations, and attaching each to what it annotates.  annot.c has the table of annotations and their
 * arguments; those for which the graph has a field of its own (@doc, @meta, @from, @into, @denotation, @op) are
 * stored there. */
#include "parse.h"
#include "../wire/wire.h"

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

/* "@name(args)" at '@'; NULL after err_at: unknown, or not allowed here. */
Annot *parse_annot(Parser *p, AnnotOn on)
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
	return annot_check(a, on) ? NULL : a;
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
	arena_push(p->arena, *list, *n,
		((Pair){ .key = text_arg(a, "key"), .value = text_arg(a, "value"), .loc = a->loc }));
	return true;
}

/* @denotation("IMAGE", "DATA_BATCH", ...): of the type and of its axes; "" is none. */
static void denotation(Parser *p, Type *t, const Annot *a)
{
	Name none = name_of("");
	int axis = 0;

	t->denote = arena_array(p->arena, Name, t->ndim > 0 ? t->ndim : 1);
	for (int i = 0; i < a->narg; i++) {
		Name s = a->arg[i].s == none ? NULL : a->arg[i].s;

		if (is(a->arg[i].param, "meaning"))
			t->denotation = s;
		else if (is(a->arg[i].param, "axes") && axis < t->ndim)
			t->denote[axis++] = s;
		else if (is(a->arg[i].param, "axes"))
			err_at(a->arg[i].loc, "there is no axis %d: the type is %s", axis, type_text(t));
	}
}

/* ---- Nested messages (message.c) */

/* @unknown("hex", ...): complete fields, none of which such a message has. */
static void unknown(Parser *p, const Annot *a, const Message *m)
{
	static const WireSpec nothing = { "", "" };
	uint8_t *bytes = NULL;
	int n = 0, digits = 0;
	Blobs all = { 0 };
	WireField f = { 0 };

	for (int i = 0; i < a->narg; i++)
		for (const char *s = is(a->arg[i].param, "bytes") ? a->arg[i].s : ""; *s; s++, digits++) {
			int c = *s >= '0' && *s <= '9' ? *s - '0' : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10 : -1;

			if (c < 0) {
				err_at(a->arg[i].loc, "@unknown takes hexadecimal digits, 0 to 9 and a to f");
				return;
			}
			if (digits % 2)
				bytes[n - 1] = (uint8_t)(bytes[n - 1] << 4 | c);
			else
				arena_push(p->arena, bytes, n, (uint8_t)c);
		}
	if (!n || digits % 2) {
		err_at(a->loc, "@unknown takes two digits for each byte, and not none");
		return;
	}
	f.p = bytes;
	f.n = (size_t)n;
	WireIn w = { .file = file_memory("@unknown", bytes, f.n), .base = bytes, .arena = p->arena };
	file_of(w.file)->binary = true;
	for (WireMsg all_of = wire_msg(&w, &nothing, &f, &all); wire_next(&all_of, &f);)
		;
	for (int i = 0; i < all.n && !w.bad; i++) {
		uint32_t num = all.blob[i].field;
		char kind = num < strlen(m->spec->kind) ? m->spec->kind[num] : ' ';

		/* An incomplete type is kept in this way. */
		if (kind != ' ' && kind != 'k' && !(m->spec == &message_value && num == 2)) {
			err_at(a->loc, "field %u of %s is not unknown", num, m->spec->name);
			return;
		}
		arena_push(p->arena, m->unknown->blob, m->unknown->n, all.blob[i]);
	}
	if (w.bad)
		note_at(a->loc, "in these bytes");
}

typedef struct Wanted { Parser *p; const Annot *a; Name at; bool found; } Wanted;

static void annotate(void *ctx, const Message *m)
{
	Wanted *w = ctx;
	const Annot *a = w->a;

	if (w->found || strcmp(m->path, w->at))
		return;
	if (is(a->name, "unknown"))
		unknown(w->p, a, m);
	else if (is(a->name, "doc") && m->doc)
		*m->doc = text_arg(a, "text");
	else if (is(a->name, "meta") && m->meta)
		took_meta(w->p, a, m->meta, m->nmeta);
	else if (is(a->name, "denotation") && m->type)
		denotation(w->p, m->type, a);
	else
		return;
	w->found = true;
}

static void annotate_message(Parser *p, AnnotOn on, void *of, const Annot *a)
{
	const Arg *at = arg_find(a->arg, a->narg, "at");
	Wanted w = { p, a, at ? at->s : name_of(""), false };

	message_each(on, of, p->arena, annotate, &w);
	if (!w.found)
		err_at(at ? at->loc : a->loc, "@%s has no %s to speak of here", a->name, at ? at->s : "message");
}

void parse_later(Parser *p)
{
	for (int i = 0; i < p->nlater; i++)
		annotate_message(p, p->later[i].on, p->later[i].of, p->later[i].annot);
}

/* Annotations of nested messages wait until all of those are read. */
static bool took_message(Parser *p, AnnotOn on, void *of, Annot *a)
{
	if (!is(a->name, "unknown") && !arg_find(a->arg, a->narg, "at"))
		return false;
	arena_push(p->arena, p->later, p->nlater, ((struct Later){ on, of, a }));
	return true;
}

void parse_attr_annots(Parser *p, Attr *at)
{
	while (p->tok.kind == '@') {
		Annot *a = parse_annot(p, ON_ATTR);

		if (a)
			annotate_message(p, ON_ATTR, at, a);
	}
}

/* ---- Annotations of nodes, values and graphs */

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

		if (!a || took_message(p, ON_NODE, n, a) || took_meta(p, a, &n->meta, &n->nmeta))
			continue;
		if (is(a->name, "doc"))
			n->doc = a->arg[0].s;
		else if (is(a->name, "from"))
			n->from = a->arg[0].s;
		else
			add_once(&n->annot, a);
	}
}

void parse_value_annots(Parser *p, Value *v)
{
	while (at_annot(p)) {
		Annot *a = parse_annot(p, ON_VALUE);

		if (!a || took_message(p, ON_VALUE, v, a) || took_meta(p, a, &v->meta, &v->nmeta))
			continue;
		if (is(a->name, "doc"))
			v->doc = a->arg[0].s;
		else if (is(a->name, "into") && v->into)
			err_at(a->loc, "@into is given twice; %s can take the memory of one value only", v->name);
		else if (is(a->name, "into"))
			v->into = graph_value(p->g, a->arg[0].s, a->arg[0].loc);
		else if (is(a->name, "denotation") && v->type)
			denotation(p, v->type, a);
		else if (is(a->name, "denotation"))
			err_at(a->loc, "@denotation needs the type of %s", v->name);
		else
			add_once(&v->annot, a);
	}
}

void parse_graph_annots(Parser *p, Graph *g)
{
	while (at_annot(p)) {
		Annot *a = parse_annot(p, ON_GRAPH);

		bool own = a && is(a->name, "unknown") && a->narg < 2;   /* not those of an entry of its metadata */
		if (own && p->f && p->f->body == g) {
			err_at(a->loc, "@unknown of a function stands before it");
			continue;
		}
		if (!a || took_message(p, ON_GRAPH, g, a) || took_meta(p, a, &g->meta, &g->nmeta))
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
		if (f && p->tok.kind == TOK_EOF &&
			(is(a->name, "op") || is(a->name, "test") || is(a->name, "meta") || is(a->name, "unknown")))
			err_at(a->loc, "@%s stands before a function, and none follows", a->name);
		if (took_message(p, f ? ON_FUNCTION : ON_MODEL, f ? (void *)f : p->m, a))
			continue;
		if (is(a->name, "op"))
			op_annot(f, a);
		if (is(a->name, "op") || is(a->name, "test"))
			annot_add(&f->annot, a);
		else if (!f || !took_meta(p, a, &f->meta, &f->nmeta))
			add_at_end(p, &p->m->annot, a);
	}
}

static bool own_field(const Annot *a)
{
	static const char *const names[] = { "doc", "meta", "unknown", "denotation", "from", "into", NULL };

	for (int i = 0; names[i]; i++)
		if (is(a->name, names[i]))
			return true;
	return false;
}

void parse_annots_only(Parser *p)
{
	while (p->tok.kind != TOK_EOF) {
		Annot *a;

		if (p->tok.kind != '@')
			expected(p, "an annotation");
		a = parse_annot(p, p->on);
		if (a && own_field(a))
			err_at(a->loc, "@%s has a field of its own and cannot stand here", a->name);
		else if (a && p->on & (ON_NODE | ON_VALUE | ON_GRAPH))
			add_once(p->list, a);
		else if (a)
			add_at_end(p, p->list, a);
	}
}

/* The arguments of @train.  They take precedence over those of the model. */
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
