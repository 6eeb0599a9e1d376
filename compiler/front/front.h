/* Simplification: constants, copies and equal nodes removed, composites recognised or replaced by their definitions. */
#ifndef SBPCC_FRONT_H
#define SBPCC_FRONT_H

#include "train/train.h"

/* factors.c: axes as products of factors. */
int factors_run(Graph *);

/* fold.c: constants, copies, equal nodes. */
int fold_run(Graph *);

/* lower.c: composites without a kernel become their definitions. */
int lower_run(Graph *);

/* transpose.c: transposes become attributes of the matrix products that read them. */
int transpose_run(Graph *);

/* match.c: patterns of nodes, written as functions in the language (patterns.ir). */
enum { MATCHED_MAX = 64 };
typedef struct Match {
	Node *root;
	const char *name;               /* of the pattern */
	Node *node[MATCHED_MAX]; int n; /* the nodes that it covers, from the root on */
	struct Frame *top;
	Arena *arena;
	bool (*accept)(void *, struct Match *);
	void *arg;
} Match;
/* roots: by operator, bits of the patterns, in the order of names, that may end with it */
void   match_read(const char *text, const char *const *names, Map *roots);
bool   match_try(Node *root, const char *name, bool (*accept)(void *, Match *), void *arg);
Value *match_hole(const Match *, const char *name);          /* the value bound to an operand of the pattern; NULL */
bool   match_near(double, double);

/* lift.c: the pass, and functions that its rules share. */
typedef struct Lift Lift;
bool   lift_replaceable(Lift *, const Match *);              /* no other node needs the values that would be removed */
Value *lift_put(Lift *, const Match *, const char *op, Value *to, int nin, Value **in,
	void (*attrs)(Node *, const void *), const void *arg);
void   lift_int(Node *, const char *name, int64_t), lift_float(Node *, const char *name, double);
bool   lift_same_type(const Value *, const Value *);         /* of known ndim, symbols included */
int    lift_ndim(const Value *);                             /* -1: unknown */
Dim    lift_aligned(const Value *, int ndim, int i);         /* axis i, of ndim axes, aligned at the right */
const Tensor *lift_constant(const Value *);
const Tensor *lift_value(Lift *, Value *, int depth);        /* contents that depend on constants only, however large */
bool   lift_scalar(const Value *, double *);                 /* a floating constant of one element */
bool   lift_filled(const Tensor *, double);
/* a value that is made once, right after `from` */
Value *lift_once(Lift *, Value *from, int kind, Value *(*make)(Graph *, Value *, const void *), const void *arg);
int    lift_run(Graph *);

/* lift_attention.c: rules for attention and rotary embedding. */
bool   lift_attention(void *, Match *), lift_attention_rotary(void *, Match *);

#endif
