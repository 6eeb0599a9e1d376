/* Private to the files of the parser: its state, the functions on tokens that all rules use, and the rules that one
 * file has and another uses.  A rule is called at its first token and returns after its last; not after a mistake. */
#ifndef SBPCC_PARSE_H
#define SBPCC_PARSE_H

#include "text.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR = 256 };                    /* duplicates are searched for so far back: long lists take linear time */

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
	bool fatal;                     /* a limit was exceeded: parsing ends */
	Stack data, operands, args;     /* of the tensor, the calls and the annotation being read */
	AnnotOn on; Annot **list; /* of annotations that are read alone */
	struct Later { AnnotOn on; void *of; Annot *annot; } *later;
	int nlater;                     /* annotations of nested messages, read at the end of the text */
	Annot **end;                    /* where the next annotation of the model, or of that list, goes */
} Parser;

/* ---- Rules */

/* parse.c */
Graph *parse_graph(Parser *);                           /* from its name to its "}" */
void   parse_hint(const Parser *, const char *what);    /* notes what was probably meant instead of `what` */

/* parse_value.c */
bool   parse_at_type(const Parser *);                   /* an element type that is no name, or "seq(" etc. */
bool   parse_at_data(const Parser *);
DType  parse_element_type(Parser *);                    /* also explains that a word is none */
Type  *parse_type(Parser *);
Tensor *parse_tensor(Parser *, const Type *, Name, Loc);        /* DATA for a tensor of that type */
Attr  *parse_attr_ref(Parser *);                        /* "@outer" in a function body */
void   parse_attr_list(Parser *, Attr *);               /* "[...]" */
void   parse_attributes(Parser *, bool declaration, Attr **list, int *n);       /* "<...>" */

/* parse_annot.c */
Name   parse_dotted(Parser *, const char *what);        /* "a.b.c", or one string */
Annot *parse_annot(Parser *, AnnotOn);               /* NULL after explaining what is wrong with it */
void   parse_node_annots(Parser *, Node *);
void   parse_value_annots(Parser *, Value *);
void   parse_graph_annots(Parser *, Graph *);
void   parse_attr_annots(Parser *, Attr *);
void   parse_later(Parser *);                           /* annotations of nested messages, once those are known */
void   parse_loose_annots(Parser *, Function *);        /* between functions; NULL: before the graph */
void   parse_annots_only(Parser *);                     /* a text of nothing else, for p->list */
void   parse_train_args(Parser *);                      /* a text that is the arguments of @train */

/* ---- Tokens and errors */

static inline void advance(Parser *p)
{
	p->braces += (p->tok.kind == '{') - (p->tok.kind == '}');
	p->last = p->tok.loc;
	p->tok = p->next;
	p->next = lex_next(&p->lex);
}

static inline _Noreturn void jump(Parser *p)
{
	longjmp(*p->recover, 1);
}

static inline const char *token_text(const Parser *p, Token t)
{
	if (t.kind == TOK_EOF)
		return "the end of the text";
	return name_fmt("%s%.*s%s", t.kind == TOK_STRING ? "" : "'", t.loc.len > 60 ? 60 : (int)t.loc.len,
		(const char *)p->lex.text + t.loc.off, t.kind == TOK_STRING ? "" : "'");
}

static inline _Noreturn void expected(Parser *p, const char *what)
{
	if (p->tok.kind != TOK_BAD) {
		err_at(p->tok.loc, "expected %s, found %s", what, token_text(p, p->tok));
		parse_hint(p, what);
	}
	jump(p);
}

/* A limit was exceeded and reported: parsing ends. */
static inline _Noreturn void give_up(Parser *p)
{
	p->fatal = true;
	jump(p);
}

static inline void enter(Parser *p)
{
	if (++p->depth <= limits.depth)
		return;
	fail_at(EXIT_LIMIT, p->tok.loc, "nested deeper than %lld levels (--max-depth)",
		(long long)limits.depth);
	give_up(p);
}

static inline void leave(Parser *p)
{
	p->depth--;
}

static inline bool accept(Parser *p, int kind)
{
	if (p->tok.kind != kind)
		return false;
	advance(p);
	return true;
}

static inline void expect(Parser *p, int kind)
{
	char text[] = "'?'";

	if (accept(p, kind))
		return;
	text[1] = (char)kind;
	expected(p, kind == TOK_GIVES ? "'=>'" : kind == TOK_TO ? "'->'" : text);
}

static inline bool at_name(const Parser *p)
{
	return p->tok.kind == TOK_ID || p->tok.kind == TOK_STRING;
}

static inline Name name(Parser *p, const char *what)
{
	Name s = p->tok.name;

	if (!at_name(p))
		expected(p, what);
	advance(p);
	return s;
}

static inline int64_t integer(Parser *p, const char *what)
{
	int64_t v = 0;

	if (p->tok.kind != TOK_INT)
		expected(p, what);
	lex_int(p->tok, &v);                    /* 0 after err_at: parsing continues */
	advance(p);
	return v;
}

static inline bool at_number(const Parser *p)
{
	return p->tok.kind == TOK_INT || p->tok.kind == TOK_FLOAT ||
		(p->tok.kind == TOK_ID && lex_is_float_word(p->tok.name));
}

static inline void *stack_push(Stack *s, const void *item, size_t bytes)
{
	if (s->bytes + bytes > s->room) {
		arena_charge((int64_t)(2 * (s->bytes + bytes) - s->room));
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
static inline void *stack_take(Arena *a, Stack *s, size_t mark)
{
	size_t bytes = s->bytes - mark;
	void *kept = bytes ? arena_alloc(a, bytes) : NULL;

	if (bytes)
		memcpy(kept, s->item + mark, bytes);
	s->bytes = mark;
	return kept;
}

static inline bool is(Name name, const char *word)
{
	return !strcmp(name, word);
}

#endif
