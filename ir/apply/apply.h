/* The table applied to a graph: binds rows, infers shapes, inlines definitions, builds gradients, computes values. */
#ifndef SBPCC_APPLY_H
#define SBPCC_APPLY_H

#include "../graph/identity.h"
#include "../table/table.h"

/* bind.c */
int bind_graph(Graph *, bool report_all);                    /* gives every node its row; -1 after err_at */

/* infer.c: shapes of one node or all, with contents of shape vectors. */
int infer_node(Node *);                                      /* checks types by .sig, calls .shape; -1 after err_at */
int infer_values(Graph *);                                   /* initialisers and inputs, before the first node */
int infer_step(Node *);                                      /* one node of a walk in order */
int infer_graph(Graph *);

/* contents.c: contents of small integer vectors, symbols included. */
int  contents_set(Node *);                                   /* sets Value.elem of the first result where it is known */
void contents_range(const Node *, int ndim, int *from, int *to); /* the axes of a Shape node */
/* Bounds of Slice for an axis of that size; negative ones count from its end. */
void contents_clamp(int64_t *start, int64_t *end, int64_t step, int64_t size);

/* inline.c: definitions and model functions into the graph; guards (@when) decided; gradients built from text. */
int inline_run(Graph *);                                     /* every function call and non-composite definition */
/* Appends the body of f with operands args (NULL: left out) and results outs (NULL: not wanted, a fresh value is used);
 * attributes and guards are those of call.  Types of all new values are inferred. */
int inline_body(Graph *, const Function *f, const Node *call, Value **args, int nargs, Value **outs, int nouts);
int inline_graph(Graph *, Node *, const Graph *sub, Value **args, Value **outs); /* a branch or body of the node */
int inline_append(Graph *, Node *);                          /* a detached node: bound, expanded, inferred, appended */
/* Replaces the wanted composites by their definitions, until none is left. */
int inline_lower(Graph *, bool (*wanted)(const Node *, void *), void *arg);
int inline_composites(Graph *);                              /* all composites, down to core operators */

/* build.c: nodes from C. */
Value *build_list(Graph *, Loc, const char *op, const char *attrs, int nout, Value **outs, int nin, Value *const *in);
/* A node by name: build(g, loc, "ReduceSum", "keepdims=1", 1, NULL, 2, x, axes) returns out[0].  It is a macro, because
 * its operands may be calls that append nodes: C does not define the order in which the arguments of a function are
 * evaluated, and gcc and clang differ; an initialiser list is evaluated from the first element on. */
#define build(g, loc, op, attrs, nout, outs, nin, ...) \
	build_list((g), (loc), (op), (attrs), (nout), (outs), (nin), (Value *[]){ __VA_ARGS__ })

/* guard.c: conditions of @when. */
bool guard_holds(const char *, const Function *, const Node *call, Value **args, int narg);

/* control.c: If, Loop and Scan that are known at compile time. */
bool control_is(const Node *);
int  control_resolve(Graph *, Node *);

/* sequence.c: sequences of known length as lists of values. */
bool sequence_is(const Node *);
bool sequence_any(const Graph *);
int  sequence_resolve(Graph *, Node *);

/* grad.c: the backward pass of a graph. */
/* Appends nodes that compute d loss / d v for each wanted value; grad[i] is NULL where the loss does not depend on it.
 * The wanted values are independent variables, even where one of them is computed from another. */
int grad_build(Graph *, Value *loss, Value **want, int nwant, Value **grad);
/* The same for a step in micro-batches: the uses of a weight are added after the last one, by nodes marked @update. */
int grad_build_uses(Graph *, Value *loss, Value **want, int nwant, Value **grad);

/* eval.c: evaluates any Graph plainly. */
typedef struct EvalOpts { bool wide; /* float16..float computed and stored as double */ } EvalOpts;
int eval_graph(Graph *, Tensor **in, Tensor **out, Arena *, EvalOpts); /* by position; 0 or -1 after explaining */
int eval_node(Node *, Tensor **in, Tensor **out, Arena *, bool wide); /* one node on constants: the folder uses it */
int eval_into(Node *, Tensor **in, Tensor **out);            /* for tests: .eval of the row into results that exist */
/* For evaluators of rows: operands of any type as doubles or integers; freed with the evaluation. */
double  *eval_doubles(const Tensor *);                       /* a fresh array of all elements */
int64_t *eval_ints(const Tensor *);
void     eval_store(Tensor *out, const double *v);           /* rounds each element to out's type */
void     eval_store_ints(Tensor *out, const int64_t *v);
void    *eval_scratch(size_t bytes);                         /* gone when the node is done */
void     eval_strides(const Tensor *, int64_t *stride);      /* in elements, row-major */
/* Copies elements of one type, of any number of bits. */
void     eval_copy(const Tensor *from, int64_t i, Tensor *to, int64_t j, int64_t count);
/* to[i0, ..] = from[base + i0 * stride0 + ..] */
void     eval_strided(const Tensor *from, int64_t base, const int64_t *stride, Tensor *to);

#endif
