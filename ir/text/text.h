/* The text form of a model. */
#ifndef SBPCC_TEXT_H
#define SBPCC_TEXT_H

#include "../table/table.h"

/* lex.c: text -> tokens.  Punctuation is its own character. */
typedef enum {
	TOK_EOF = 0, TOK_ID = 256, TOK_STRING, TOK_INT, TOK_FLOAT, TOK_GIVES /* => */, TOK_TO /* -> */, TOK_BAD
} TokKind;
typedef struct Token {
	int kind;
	Name name;                      /* id, string */
	Loc loc;
	bool line;                      /* the first of its line */
} Token;
typedef struct Lex {
	const uint8_t *text, *at, *end;
	Loc longstring;                 /* the last string that went over the end of its line */
	uint32_t file;
	bool line;
} Lex;

int    lex_open(Lex *, uint32_t file);                       /* checks UTF-8 without NUL; -1 after err_at */
Token  lex_next(Lex *);                                      /* TOK_BAD after explaining */
int    lex_int(Token, int64_t *);                            /* of TOK_INT; -1 after explaining: it does not fit */
int    lex_float(Token, double *wide, float *narrow);        /* of TOK_INT, TOK_FLOAT, inf and nan; each may be NULL */
bool   lex_is_float_word(Name);                              /* inf, infinity, nan in any case */
bool   lex_is_id(const char *);                              /* needs no quotes */

/* parse.c, parse_value.c, parse_annot.c: tokens -> Model. */
Model    *parse_text(uint32_t file);                         /* NULL after explaining */
int       parse_library(uint32_t file, Model *into);         /* functions only: definitions of operators */
int       parse_place(uint32_t file, Model *);               /* a side file: annotations naming nodes and values */
int       parse_train(const char *text, Model *);            /* --train 'TEXT' */
Function *parse_grad(const Op *row, const char *text);       /* operands, results, dresults -> doperands */
int       parse_annots(uint32_t file, Model *, AnnotOn, Annot **list); /* annotations alone: an entry of .onnx */

/* print.c: the only dumper. */
enum { SMALL_DATA = 1024 };                                  /* larger constants of a file are printed as a reference */
void print_model(FILE *, const Model *);
void print_io(FILE *, const Graph *);                        /* a line for each input and output */
void print_annots(FILE *, const Annot *);                    /* " @on(gpus[0:3]) @stage(1)" */
void print_name(FILE *, Name);                               /* id or "quoted" */

#endif
