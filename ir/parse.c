/* Tokens to a Model: recursive descent over the grammar of LANGUAGE.md, one function per rule.
 *
 * Everything that ONNX's text syntax can say is accepted unchanged; annotations and the shorthand for operands
 * (nested calls, numbers, lists, @attr) are added where its grammar leaves no meaning.  Shorthand becomes ordinary
 * nodes here, so nothing behind the parser knows of it.
 *
 * A mistake in a node is reported, the parser jumps back to the list of nodes and goes on with the next one;
 * a mistake elsewhere ends the parse.  What is well-formed but wrong (a name made twice, an element too many)
 * is reported without a jump. */
#include "ir.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* A list that grows while it is read; what is kept is copied from it. */
typedef struct Stack { char *item; size_t bytes, room; } Stack;

typedef struct Parser {
	Lex lex;
	Token tok, next;
	Loc last;                       /* of the token before tok */
	Model *m;
	Arena *arena;
	Graph *g;                       /* the graph or body being read */
	Function *f;                    /* the function being read, or NULL */
	Annot *with;                    /* from the groups around the node, innermost first */
	int depth;                      /* of brackets and nested rules */
	int braces, base;               /* open before this token; open where the last mistake was made */
	jmp_buf *recover;
	bool fatal;                     /* a limit was hit: no going on */
	Stack data, operands, args;     /* of the tensor, the calls and the annotation being read */
	AnnotPlace place; Annot **list; /* of annotations that are read alone */
	Annot **end;                    /* where the next annotation of the model, or of that list, goes */
} Parser;

/* ---- Tokens and errors */

static void advance(Parser *p)
{
	p->braces += (p->tok.kind == '{') - (p->tok.kind == '}');
	p->last = p->tok.loc;
	p->tok = p->next;
	p->next = lex_next(&p->lex);
}

static _Noreturn void jump(Parser *p)
{
	longjmp(*p->recover, 1);
}

static const char *token_text(const Parser *p, Token t)
{
	if (t.kind == TOK_EOF)
		return "the end of the text";
	return name_fmt("%s%.*s%s", t.kind == TOK_STRING ? "" : "'", t.loc.len > 60 ? 60 : (int)t.loc.len,
		(const char *)p->lex.text + t.loc.off, t.kind == TOK_STRING ? "" : "'");
}

static _Noreturn void expected(Parser *p, const char *what)
{
	if (p->tok.kind != TOK_BAD) {
		err_at(p->tok.loc, "expected %s, found %s", what, token_text(p, p->tok));
		if (p->lex.longstring.file &&
			p->tok.loc.off - p->lex.longstring.off - p->lex.longstring.len < 80)
			note_at(p->lex.longstring, "this string goes over the end of its line");
	}
	jump(p);
}

/* A limit was hit, and said: there is no going on. */
static _Noreturn void give_up(Parser *p)
{
	p->fatal = true;
	jump(p);
}

static void enter(Parser *p)
{
	if (++p->depth <= limits.depth)
		return;
	fail_at(EXIT_LIMIT, p->tok.loc, "nested deeper than %lld levels (--max-depth)",
		(long long)limits.depth);
	give_up(p);
}

static void leave(Parser *p)
{
	p->depth--;
}

static bool accept(Parser *p, int kind)
{
	if (p->tok.kind != kind)
		return false;
	advance(p);
	return true;
}

static void expect(Parser *p, int kind)
{
	char text[] = "'?'";

	if (accept(p, kind))
		return;
	text[1] = (char)kind;
	expected(p, kind == TOK_GIVES ? "'=>'" : kind == TOK_TO ? "'->'" : text);
}

static bool at_name(const Parser *p)
{
	return p->tok.kind == TOK_ID || p->tok.kind == TOK_STRING;
}

static Name name(Parser *p, const char *what)
{
	Name s = p->tok.name;

	if (!at_name(p))
		expected(p, what);
	advance(p);
	return s;
}

static int64_t integer(Parser *p, const char *what)
{
	int64_t v = 0;

	if (p->tok.kind != TOK_INT)
		expected(p, what);
	lex_int(p->tok, &v);                    /* 0 after explaining: the text goes on well */
	advance(p);
	return v;
}

static bool at_number(const Parser *p)
{
	return p->tok.kind == TOK_INT || p->tok.kind == TOK_FLOAT ||
		(p->tok.kind == TOK_ID && lex_is_float_word(p->tok.name));
}

/* Calls f; after a mistake in it everything is as before the call, only the text has gone on. */
static bool attempt(Parser *p, void (*f)(Parser *))
{
	jmp_buf here, *outer = p->recover;
	struct {
		Graph *g;
		Function *f;
		Annot *with;
		int depth, braces;
		size_t operands, args;
	} was = { p->g, p->f, p->with, p->depth, p->braces, p->operands.bytes, p->args.bytes };

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

static void *stack_push(Stack *s, const void *item, size_t bytes)
{
	if (s->bytes + bytes > s->room) {
		s->room = 2 * (s->bytes + bytes);
		s->item = realloc(s->item, s->room);
		if (!s->item)
			die("out of memory while parsing");
	}
	if (bytes)
		memcpy(s->item + s->bytes, item, bytes);
	s->bytes += bytes;
	return s->item + s->bytes - bytes;
}

/* Takes what was pushed since mark off the stack, into the arena. */
static void *stack_take(Arena *a, Stack *s, size_t mark)
{
	size_t bytes = s->bytes - mark;
	void *kept = bytes ? arena_alloc(a, bytes) : NULL;

	if (bytes)
		memcpy(kept, s->item + mark, bytes);
	s->bytes = mark;
	return kept;
}

/* To the next node of the same body, which is taken to begin a line, or to the end of the body. */
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

/* ---- Annotations */

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
static Name dotted(Parser *p, const char *what)
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
		a.s = dotted(p, "");
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
static Annot *annot(Parser *p, AnnotPlace place)
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

static bool is(Name name, const char *word)
{
	return !strcmp(name, word);
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

static void node_annots(Parser *p, Node *n)
{
	while (at_annot(p)) {
		Annot *a = annot(p, ON_NODE);

		if (!a || took_meta(p, a, &n->meta, &n->nmeta))
			continue;
		if (is(a->name, "doc"))
			n->doc = a->arg[0].s;
		else if (is(a->name, "from"))
			n->from = a->arg[0].s;
		else
			annot_add(&n->annot, a);
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

static void value_annots(Parser *p, Value *v)
{
	while (at_annot(p)) {
		Annot *a = annot(p, ON_VALUE);

		if (!a || took_meta(p, a, &v->meta, &v->nmeta))
			continue;
		if (is(a->name, "doc"))
			v->doc = a->arg[0].s;
		else if (is(a->name, "into"))
			v->into = graph_value(p->g, a->arg[0].s, a->arg[0].loc);
		else if (is(a->name, "denotation"))
			denotation(p, v, a);
		else
			annot_add(&v->annot, a);
	}
}

static void graph_annots(Parser *p, Graph *g)
{
	while (at_annot(p)) {
		Annot *a = annot(p, ON_GRAPH);

		if (!a || took_meta(p, a, &g->meta, &g->nmeta))
			continue;
		if (is(a->name, "doc"))
			g->doc = a->arg[0].s;
		else
			annot_add(&g->annot, a);
	}
}

/* ---- Types */

static const char *const type_words[] = { "", "seq", "optional", "map", "sparse_tensor", "opaque", NULL };

static int type_word(Name s)
{
	for (int i = 1; type_words[i]; i++)
		if (is(s, type_words[i]))
			return i;
	return 0;
}

/* A type stands here: an element type that is not itself a name, or "seq(" and its like. */
static bool at_type(const Parser *p)
{
	int next = p->next.kind;

	if (p->tok.kind != TOK_ID)
		return false;
	if (type_word(p->tok.name))
		return next == '(';
	return dtype_of(p->tok.name, strlen(p->tok.name)) != DT_UNDEFINED && next != ',' && next != ')' &&
	       next != '@';
}

static bool at_element_type(const Parser *p)
{
	return p->tok.kind == TOK_ID && dtype_of(p->tok.name, strlen(p->tok.name)) != DT_UNDEFINED;
}

static DType element_type(Parser *p)
{
	DType t = p->tok.kind == TOK_ID ? dtype_of(p->tok.name, strlen(p->tok.name)) : DT_UNDEFINED;

	if (t == DT_UNDEFINED) {
		if (p->tok.kind == TOK_ID) {
			const char *list[DT_COUNT + 1] = { 0 };

			for (int i = 1; i < DT_COUNT; i++)
				list[i - 1] = dtype_name((DType)i);
			err_unknown(p->tok.loc, "unknown element type", p->tok.name, list);
			jump(p);
		}
		expected(p, "an element type");
	}
	advance(p);
	return t;
}

static Dim dimension(Parser *p)
{
	Loc loc = p->tok.loc;
	int64_t v;

	if (accept(p, '?'))
		return DIM_UNKNOWN;
	if (p->tok.kind != TOK_INT)
		return dim_symbol(name(p, "a dimension"));
	v = integer(p, "");
	if (v < 0) {
		err_at(loc, "a dimension cannot be negative; an unknown one is written ?");
		return DIM_UNKNOWN;
	}
	return v;
}

/* "[" begins the dimensions, unless a key of external data follows: float [location: "w.bin"]. */
static bool at_dimensions(const Parser *p)
{
	Lex ahead = p->lex;

	if (p->tok.kind != '[')
		return false;
	return !(p->next.kind == TOK_ID || p->next.kind == TOK_STRING) || lex_next(&ahead).kind != ':';
}

static Type *type(Parser *p)
{
	Type *t = arena_new(p->arena, Type);
	Dim dim[RANK_MAX];

	enter(p);
	t->kind = p->tok.kind == TOK_ID && p->next.kind == '(' ? (TypeKind)type_word(p->tok.name) : TY_TENSOR;
	if (t->kind != TY_TENSOR) {
		advance(p);
		expect(p, '(');
		if (t->kind == TY_MAP) {
			t->elem = element_type(p);
			expect(p, ',');
		}
		if (t->kind == TY_OPAQUE) {
			if (p->tok.kind != ')')
				t->name = dotted(p, "a name");
			if (accept(p, ',')) {
				t->domain = t->name;
				t->name = dotted(p, "a name");
			}
		} else {
			t->sub = type(p);
		}
		if (t->kind == TY_SPARSE) {
			Type *sub = t->sub;

			if (sub->kind != TY_TENSOR) {
				err_at(p->tok.loc, "sparse_tensor needs a tensor type");
				jump(p);
			}
			*t = *sub;
			t->kind = TY_SPARSE;
		}
		expect(p, ')');
	} else {
		t = type_tensor(p->arena, element_type(p), 0, NULL);
		if (at_dimensions(p)) {
			advance(p);
			t->rank = 0;
			while (p->tok.kind != ']') {
				if (t->rank == RANK_MAX) {
					fail_at(EXIT_LIMIT, p->tok.loc, "a tensor has at most %d dimensions",
						RANK_MAX);
					give_up(p);
				}
				dim[t->rank++] = dimension(p);
				if (!accept(p, ','))
					break;
			}
			expect(p, ']');
			t = type_tensor(p->arena, t->elem, t->rank ? t->rank : -1, dim);
		}
	}
	leave(p);
	return t;
}

/* ---- Tensors */

/* One literal as the bytes of one element (or one half of a complex number, or one packed byte). */
static void element(Parser *p, DType t, size_t width)
{
	int bits = dtype_bits(t) < 8 ? 8 : dtype_bits(t);
	Token tok = p->tok;
	int64_t v;

	if (t == DT_FLOAT || t == DT_DOUBLE || t == DT_COMPLEX64 || t == DT_COMPLEX128) {
		double wide = 0;
		float narrow = 0;

		if (!at_number(p))
			expected(p, "a number");
		lex_float(tok, width == 8 ? &wide : NULL, width == 4 ? &narrow : NULL);
		stack_push(&p->data, width == 4 ? (void *)&narrow : (void *)&wide, width);
		advance(p);
		return;
	}
	if (tok.kind != TOK_INT)
		expected(p, dtype_is_float(t) ? "an integer: the bits of the element" : "an integer");
	if (t == DT_UINT64 && p->lex.text[tok.loc.off] != '-') {
		uint64_t u = 0;

		for (uint32_t i = 0; i < tok.loc.len; i++)
			if (__builtin_mul_overflow(u, 10u, &u) ||
				__builtin_add_overflow(
					u, (uint64_t)(p->lex.text[tok.loc.off + i] - '0'), &u)) {
				err_at(tok.loc, "this integer does not fit uint64");
				break;
			}
		stack_push(&p->data, &u, 8);
		advance(p);
		return;
	}
	v = integer(p, "");
	if (bits < 64 || t == DT_UINT64) {
		bool sign = dtype_is_int(t) && dtype_is_signed(t), packed = dtype_bits(t) < 8;
		int64_t low = sign || packed ? -((int64_t)1 << (bits - 1)) : 0;
		int64_t high = t == DT_BOOL      ? 1
		               : t == DT_UINT64  ? INT64_MAX
		               : sign && !packed ? -(low + 1)
		                                 : ((int64_t)1 << bits) - 1;

		if (v < low || v > high)
			err_at(tok.loc, "%lld does not fit %s", (long long)v, dtype_name(t));
	}
	stack_push(&p->data, &v, width);        /* little-endian: the low bytes come first */
}

static void elements(Parser *p, Tensor *t)
{
	bool complex = t->dtype == DT_COMPLEX64 || t->dtype == DT_COMPLEX128;
	size_t width = (size_t)dtype_bits(t->dtype) / (complex ? 16 : 8), n = 0;
	int64_t count = tensor_elements(t), want = count;
	int nstr = 0;
	Loc open = p->tok.loc;

	if (count < 0 || count > limits.elements) {
		fail_at(EXIT_LIMIT, t->loc, "more elements than the limit of %lld (--max-elements)",
			(long long)limits.elements);
		give_up(p);
	}
	if (dtype_bits(t->dtype) < 8 && t->dtype != DT_STRING) {
		width = 1;
		want = (int64_t)tensor_bytes(t->dtype, count);
	}
	if (complex)
		want *= 2;
	p->data.bytes = 0;
	expect(p, '{');
	for (; p->tok.kind != '}'; n++) {
		if (t->dtype == DT_STRING) {
			if (p->tok.kind != TOK_STRING)
				expected(p, "a string");
			arena_push(p->arena, t->str, nstr, p->tok.name);
			advance(p);
		} else {
			element(p, t->dtype, width);
		}
		if (!accept(p, ',')) {
			n++;
			break;
		}
	}
	expect(p, '}');
	if ((int64_t)n != want) {
		err_at(open, "%zu literal%s for a tensor of %lld", n, n == 1 ? "" : "s", (long long)want);
		if (want != count)
			note_at(open, complex ? "each element is two literals: real and imaginary part" :
				"literals of %s are packed bytes", dtype_name(t->dtype));
		jump(p);
	}
	if (t->dtype == DT_STRING)
		return;
	t->bytes = p->data.bytes;
	t->data = t->bytes ? stack_take(p->arena, &p->data, 0) : arena_alloc(p->arena, 1);
}

static void external(Parser *p, Tensor *t)
{
	static const char *const keys[] = { "location", "offset", "length", "checksum", NULL };

	expect(p, '[');
	do {
		Pair kv = { .loc = p->tok.loc };
		const char *near;

		kv.key = name(p, "a key of external data");
		near = suggest(kv.key, keys);
		if (near && !is(kv.key, near))
			warn_at(kv.loc, "unknown key %s; did you mean %s?", kv.key, near);
		expect(p, ':');
		if (p->tok.kind != TOK_STRING)
			expected(p, "a string");
		kv.value = name(p, "");
		arena_push(p->arena, t->ext, t->next, kv);
	} while (accept(p, ','));
	expect(p, ']');
}

static bool at_data(const Parser *p)
{
	return p->tok.kind == '{' || p->tok.kind == '[';
}

/* DATA for a tensor of type ty. */
static Tensor *tensor(Parser *p, const Type *ty, Name name, Loc loc)
{
	Tensor *t = arena_new(p->arena, Tensor);

	t->name = name;
	t->loc = loc;
	if (ty->kind != TY_TENSOR || ty->rank < 0) {
		err_at(loc, "constant data needs a tensor type of known rank, not %s", type_text(ty));
		jump(p);
	}
	t->dtype = ty->elem;
	t->rank = ty->rank;
	t->dim = arena_array(p->arena, int64_t, ty->rank ? ty->rank : 1);
	for (int i = 0; i < ty->rank; i++) {
		if (!dim_known(ty->dim[i])) {
			err_at(loc, "constant data needs numbers as dimensions, not %s", type_text(ty));
			jump(p);
		}
		t->dim[i] = ty->dim[i];
	}
	if (p->tok.kind == '[')
		external(p, t);
	else
		elements(p, t);
	return t;
}

/* ---- Attributes */

static Graph *graph(Parser *);

static AttrType attr_type(Parser *p)
{
	AttrType t;

	if (p->tok.kind != TOK_ID)
		expected(p, "the type of an attribute");
	t = attr_type_of(p->tok.name, strlen(p->tok.name));
	if (t == AT_UNDEFINED) {
		err_unknown(p->tok.loc, "unknown type of attributes", p->tok.name, attr_type_names());
		jump(p);
	}
	advance(p);
	return t;
}

static Attr *function_attr(const Function *f, Name name)
{
	for (int i = 0; f && i < f->nattr; i++)
		if (f->attr[i].name == name)
			return &f->attr[i];
	return NULL;
}

/* "@outer" at '@' in a function body. */
static Attr *attr_ref(Parser *p)
{
	Attr *a;
	Loc loc;

	expect(p, '@');
	loc = p->tok.loc;
	if (!p->f) {
		err_at(loc, "only a function has attributes to refer to");
		jump(p);
	}
	a = function_attr(p->f, name(p, "the name of an attribute"));
	if (!a) {
		err_at(loc, "%s has no such attribute", p->f->name);
		jump(p);
	}
	return a;
}

static float narrow(Parser *p)
{
	float f = 0;

	if (!at_number(p))
		expected(p, "a number");
	lex_float(p->tok, NULL, &f);
	advance(p);
	return f;
}

/* "[...]": integers, numbers or strings. */
static void attr_list(Parser *p, Attr *a)
{
	Loc open = p->tok.loc;
	Lex ahead = p->lex;
	AttrType want = a->type;
	Token t = p->next;

	if (want == AT_UNDEFINED)               /* one float makes all floats: look ahead over the numbers */
		for (want = AT_INTS;
			t.kind == TOK_INT || t.kind == TOK_FLOAT || t.kind == ',' || t.kind == TOK_ID;
			t = lex_next(&ahead))
			if (t.kind == TOK_FLOAT || t.kind == TOK_ID)
				want = AT_FLOATS;
	if (p->next.kind == TOK_STRING && a->type == AT_UNDEFINED)
		want = AT_STRINGS;
	expect(p, '[');
	if (p->tok.kind == ']' && a->type == AT_UNDEFINED) {
		err_at(open, "an empty list needs its type: %s: ints = []", a->name);
		jump(p);
	}
	if (want != AT_INTS && want != AT_FLOATS && want != AT_STRINGS) {
		err_at(open,
			want == AT_TENSORS || want == AT_GRAPHS || want == AT_SPARSES || want == AT_TYPES
				? "a list of %s cannot be written as text"
				: "a list is no %s",
			attr_type_name(want));
		jump(p);
	}
	a->type = want;
	while (p->tok.kind != ']') {
		if (p->tok.kind == '[') {
			while (p->tok.kind == '[') {
				enter(p);
				advance(p);
			}
			err_at(open, "lists of lists cannot be written");
			jump(p);
		}
		if (want == AT_INTS) {
			int64_t v = integer(p, a->n ? "an integer or ']'" : "integers, numbers or strings");
			arena_push(p->arena, a->u.is, a->n, v);
		} else if (want == AT_FLOATS) {
			float f = narrow(p);
			arena_push(p->arena, a->u.fs, a->n, f);
		} else {
			if (p->tok.kind != TOK_STRING)
				expected(p, "a string");
			arena_push(p->arena, a->u.ss, a->n, p->tok.name);
			advance(p);
		}
		if (!accept(p, ','))
			break;
	}
	expect(p, ']');
}

static void attr_typed(Parser *p, Attr *a)
{
	Loc loc = p->tok.loc;
	Type *ty = type(p);
	Name name = NULL;

	if (at_name(p) && (p->next.kind == '=' || p->next.kind == '{' || p->next.kind == '[')) {
		name = p->tok.name;
		advance(p);
	}
	if (accept(p, '=') || at_data(p)) {
		a->type = AT_TENSOR;
		a->u.t = tensor(p, ty, name, loc);
	} else {
		a->type = AT_TYPE;
		a->u.tp = ty;
	}
}

static void attr_value(Parser *p, Attr *a)
{
	Loc loc = p->tok.loc;
	AttrType said = a->type;

	enter(p);
	if (p->tok.kind == '@') {
		Attr *outer = attr_ref(p);

		a->ref = outer->name;
		if (a->type == AT_UNDEFINED)
			a->type = outer->type;
		said = a->type;
	} else if (p->tok.kind == '[') {
		attr_list(p, a);
	} else if (p->tok.kind == TOK_STRING && p->next.kind != '(') {
		a->type = AT_STRING;
		a->u.s = name(p, "");
	} else if (p->tok.kind == TOK_INT && said != AT_FLOAT) {
		a->type = AT_INT;
		a->u.i = integer(p, "");
	} else if (at_number(p)) {
		a->type = AT_FLOAT;
		a->u.f = narrow(p);
	} else if (at_type(p) || at_element_type(p)) {
		attr_typed(p, a);
	} else if (at_name(p)) {
		if (p->next.kind == '[' || p->next.kind == '{')
			element_type(p);        /* explains that it is none */
		if (p->next.kind != '(')
			expected(p, "a value (words are types, inf, nan or the name of a graph)");
		a->type = AT_GRAPH;
		a->u.g = graph(p);
	} else {
		expected(p, "the value of an attribute");
	}
	if (said != AT_UNDEFINED && said != a->type)
		err_at(loc, "%s is said to be %s, but its value is %s", a->name, attr_type_name(said),
			attr_type_name(a->type));
	leave(p);
}

static Attr attribute(Parser *p, bool declaration)
{
	Attr a = { .loc = p->tok.loc };
	bool typed;

	a.name = name(p, "the name of an attribute");
	typed = accept(p, ':');
	if (typed)
		a.type = attr_type(p);
	if (declaration && p->tok.kind != '=') {
		a.absent = true;
		return a;
	}
	expect(p, '=');
	attr_value(p, &a);
	return a;
}

static void attributes(Parser *p, bool declaration, Attr **list, int *n)
{
	expect(p, '<');
	while (p->tok.kind != '>') {
		Attr a = attribute(p, declaration);

		for (int i = 0; i < *n; i++)
			if ((*list)[i].name == a.name)
				err_at(a.loc, "attribute %s is given twice", a.name);
		arena_push(p->arena, *list, *n, a);
		if (!accept(p, ','))
			break;
	}
	expect(p, '>');
}

/* ---- Nodes */

/* One operand as written.  Literals become Constant nodes when all operands of the call are known, because they take
 * the type of the first operand that is none. */
typedef struct Opd {
	enum { OPD_NONE, OPD_VALUE, OPD_INT, OPD_FLOAT, OPD_INTS, OPD_FLOATS, OPD_ATTR } kind;
	Value *v;
	int64_t i;
	double f;
	Attr list;                      /* OPD_INTS */
	double *fs; int nfs;            /* OPD_FLOATS */
	const Attr *attr;               /* OPD_ATTR: of the function */
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

static void list_operand(Parser *p, Opd *o)
{
	Attr a = { .name = name_of("value") };
	Token first = p->next;

	if (first.kind == ']') {
		advance(p);
		advance(p);
		o->kind = OPD_INTS;
		return;
	}
	o->list = a;
	o->kind = OPD_INTS;
	for (Lex ahead = p->lex; first.kind == TOK_INT || first.kind == ','; first = lex_next(&ahead))
		;
	if (first.kind == TOK_FLOAT || first.kind == TOK_ID) {
		o->kind = OPD_FLOATS;
		advance(p);
		do {
			double f = 0;

			if (!at_number(p))
				expected(p, "a number");
			lex_float(p->tok, &f, NULL);
			advance(p);
			arena_push(p->arena, o->fs, o->nfs, f);
		} while (accept(p, ','));
		expect(p, ']');
		return;
	}
	o->list.type = AT_INTS;
	attr_list(p, &o->list);
}

static Opd operand(Parser *p, const char *hint)
{
	Opd o = { .kind = OPD_VALUE, .loc = p->tok.loc };

	enter(p);
	if (p->tok.kind == TOK_INT) {
		o.kind = OPD_INT;
		o.i = integer(p, "");
	} else if (p->tok.kind == TOK_FLOAT ||
		(p->tok.kind == TOK_ID && lex_is_float_word(p->tok.name) && !graph_find(p->g, p->tok.name))) {
		o.kind = OPD_FLOAT;
		lex_float(p->tok, &o.f, NULL);
		advance(p);
	} else if (p->tok.kind == '[') {
		list_operand(p, &o);
	} else if (p->tok.kind == '@') {
		o.kind = OPD_ATTR;
		o.attr = attr_ref(p);
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
		node_attr_add(n, name_of("value_int"), AT_INT)->u.i = o->i;
	} else if (o->kind == OPD_INTS) {
		a = node_attr_add(n, name_of("value_ints"), AT_INTS);
		a->n = o->list.n;
		a->u.is = o->list.u.is;
	} else if (o->kind == OPD_ATTR) {
		AttrType type = o->attr->type;

		if (type >= (int)(sizeof constant_attr / sizeof *constant_attr) || !constant_attr[type]) {
			err_at(o->loc,
				"attribute %s needs a declared type (int, ints, float) to be an operand",
				o->attr->name);
			jump(p);
		}
		node_attr_add(n, name_of(constant_attr[type]), type)->ref = o->attr->name;
	} else if (o->kind == OPD_FLOATS) {
		int64_t dim = o->nfs;

		a = node_attr_add(n, name_of("value"), AT_TENSOR);
		a->u.t = tensor_new(p->arena, t, 1, &dim);
		for (int i = 0; i < o->nfs; i++)
			tensor_set(a->u.t, i, o->fs[i]);
	} else {
		a = node_attr_add(n, name_of("value"), AT_TENSOR);
		a->u.t = tensor_scalar(p->arena, t, o->kind == OPD_INT ? (double)o->i : o->f);
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
		(o->kind == OPD_ATTR && (o->attr->type == AT_FLOAT || o->attr->type == AT_FLOATS));
}

static Name operand_type(const Schema *s, int i)
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
		if (s && operand_type(s, k) == operand_type(s, i))
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
		Name type = operand_type(s, i);
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
		attributes(p, false, &c->attr, &c->nattr);
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
		attributes(p, false, &c->attr, &c->nattr);
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

/* What stands right of "=": usually a call; a lone operand is Identity or a Constant. */
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

/* "@with(on: gpus, stage: 0) { nodes }": each node gets the annotations that it has not itself. */
static void group(Parser *p)
{
	Annot *a = annot(p, ON_GROUP), *outer = p->with;

	for (int i = a ? a->narg - 1 : -1; i >= 0; i--) {
		Arg *arg = &a->arg[i];
		Annot *each = arena_new(p->arena, Annot);

		each->name = arg->param;
		each->loc = arg->loc;
		if (is(arg->param, "recompute") || is(arg->param, "frozen")) {
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
				value_annots(p, v);
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
	node_annots(p, n);
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
	Type *ty = at_type(p) ? type(p) : NULL;
	Loc loc = p->tok.loc;
	Value *v;

	if (!ty && p->tok.kind == TOK_ID && (next == '[' || next == TOK_ID || next == TOK_STRING))
		element_type(p);                /* explains that it is none */
	v = graph_value_here(p->g, name(p, "a name"), loc);
	if (ty && !v->type)
		v->type = ty;
	if (ty)
		v->declared = true;
	value_annots(p, v);
	if (data && accept(p, '=')) {
		if (!ty) {
			err_at(loc, "%s has data but no type", v->name);
			jump(p);
		}
		if (!at_data(p))
			expected(p, "'{' or '['");
		initialiser(p, v, tensor(p, ty, v->name, loc));
		value_annots(p, v);
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
static Graph *graph(Parser *p)
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
	graph_annots(p, g);
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
		for (int i = 0; i < *n; i++)
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
	err_unknown(t.loc, "unknown key", t.name, keys);
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
static void loose_annots(Parser *p, Function *f)
{
	while (p->tok.kind == '@') {
		Annot *a = annot(p, f ? ON_MODEL | ON_FUNCTION : ON_MODEL);

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

static void function(Parser *p)
{
	Function *f = new_function(p->m, p->tok.loc);

	loose_annots(p, f);
	if (p->tok.kind == TOK_EOF)
		return;
	function_header(p, f);
	f->loc = p->tok.loc;
	f->name = name(p, "the name of a function");
	if (p->tok.kind == '<')
		attributes(p, true, &f->attr, &f->nattr);
	p->f = f;
	p->g = f->body = graph_new(p->m, NULL, f->name);
	f->body->loc = f->loc;
	inputs(p, false);
	expect(p, TOK_GIVES);
	outputs(p);
	extras(p, false);
	graph_annots(p, p->g);
	nodes(p);
	p->f = NULL;
	p->g = NULL;
	arena_push(p->arena, p->m->function, p->m->nfunction, f);
}

static void functions(Parser *p)
{
	while (p->tok.kind != TOK_EOF)
		function(p);
}

static void model(Parser *p)
{
	model_header(p);
	loose_annots(p, NULL);
	if (p->tok.kind == TOK_EOF) {
		err_at(p->tok.loc, "no graph in this file");
		jump(p);
	}
	graph(p);
	functions(p);
}

static void annotations(Parser *p)
{
	while (p->tok.kind != TOK_EOF) {
		Annot *a;

		if (p->tok.kind != '@')
			expected(p, "an annotation");
		a = annot(p, p->place);
		if (a)
			add_at_end(p, p->list, a);
	}
}

/* ---- Entries */

/* Applies a rule to a whole file. */
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
	ok = attempt(p, rule);
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
	Parser p = { .place = ON_MODEL, .list = &m->annot };

	return parse(&p, m, file, annotations);
}

int parse_annots(uint32_t file, Model *m, AnnotPlace place, Annot **list)
{
	Parser p = { .place = place, .list = list };

	return parse(&p, m, file, annotations);
}

/* The arguments of @train.  What is given here goes before what the model itself says. */
static void train_args(Parser *p)
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

int parse_train(const char *text, Model *m)
{
	Parser p = { 0 };

	return parse(&p, m, file_memory("<--train>", text, strlen(text)), train_args);
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
		Attr at = { .name = word, .absent = true, .type = attr_type_of(type, ntype) };

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
	f = new_function(all, (Loc){ file, 1, 0 });
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
