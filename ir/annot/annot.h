/* Annotations: @name(arguments). */
#ifndef SBPCC_ANNOT_H
#define SBPCC_ANNOT_H

#include "../tensor/tensor.h"

/* arg.c: the arguments of an annotation. */
typedef enum {
	ARG_INT, ARG_FLOAT, ARG_STRING, ARG_WORD, ARG_CALL, ARG_LIST, ARG_RANGE, ARG_STAR, ARG_INDEX, ARG_FACTOR
} ArgKind;
typedef struct Arg {
	ArgKind kind;
	Name key;                       /* "lr" of "lr: 0.1"; NULL when positional */
	Name param;                     /* which argument it is, with or without its key: set by annot_check */
	int64_t i, j;                   /* int; range i:j (inclusive); factor j of axis i: "1/2" */
	double f;
	Name s;                         /* string, word, or the callee of a call / the base of an index */
	struct Arg *arg; int narg;      /* of a call "adam(lr: 1)", a list "[1, 2]", an index "gpus[0:3, *]" */
	bool arrow;                     /* "->" stands before this argument */
	Loc loc;
} Arg;

Arg   *arg_find(const Arg *arg, int n, const char *param);   /* the first argument for that parameter; NULL */
bool   arg_same(const Arg *, const Arg *);                   /* equal kind, contents and arguments */
bool   arg_flag(const Arg *arg, int n, const char *param);   /* "nesterov" or "nesterov: true" */

/* annot.c: lists of annotations, and the table of what each takes and where it may stand. */
typedef struct Annot {
	Name name;
	Arg *arg; int narg;
	Loc loc;
	struct Annot *next;             /* in source order */
} Annot;

typedef enum {
	ON_MODEL = 1, ON_NODE = 2, ON_VALUE = 4, ON_FUNCTION = 8, ON_GROUP = 16, ON_GRAPH = 32, ON_ATTR = 64
} AnnotOn;
enum { MESH_AXES = 8, MAX_RANKS = 1 << 20 };                 /* of @mesh */

int    annot_check(Annot *, AnnotOn);                        /* name, arguments, what it is on; -1 after err_at */
void   annot_list(FILE *);                                   /* the table of annotations */
Annot *annot_find(const Annot *list, const char *name);
void   annot_add(Annot **list, Annot *);
void   annot_drop(Annot **list, const char *name);
Annot *annot_copy(Arena *, const Annot *list);               /* a list of its own, of the same arguments */
bool   annot_names(const Annot *, const char *name);         /* whether a pattern of @freeze("*.bias", ...) matches */

#endif
