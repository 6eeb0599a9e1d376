/* The table applied to a graph: rows bound, shapes inferred, definitions inlined, gradients built, values computed. */
#ifndef SBPCC_APPLY_H
#define SBPCC_APPLY_H

#include "../table/table.h"

/* bind.c */
int bind_graph(Graph *, bool report_all);                    /* gives every node its row; unsupported ones in one report; -1 */

/* infer.c: shapes of one node or all, with contents of shape vectors. */
int infer_node(Node *);                                      /* type check by .sig, then .shape; 0 or -1 after explaining */
int infer_values(Graph *);                                   /* initialisers and inputs, before the first node */
int infer_step(Node *);                                      /* one node of a walk in order */
int infer_graph(Graph *);

/* contents.c: contents of small integer vectors, symbols included. */
int  contents_set(Node *);                                   /* sets Value.elem of the first result where it is known */
void contents_range(const Node *, int rank, int *from, int *to); /* the axes that a Shape node asks for */
void contents_clamp(int64_t *start, int64_t *end, int64_t step, int64_t size); /* Slice's bounds for an axis of that size: negative ones count from its end */

/* inline.c: definitions and model functions into the graph; guards (@when) decided; gradients built from text. */
int inline_run(Graph *);                                     /* every call of a function, every non-composite definition */
/* Appends the body of f with operands args (NULL: left out) and results outs (NULL: not wanted, a fresh value is used);
 * attributes and guards are those of call.  Types of all new values are inferred. */
int inline_body(Graph *, const Function *f, const Node *call, Value **args, int nargs, Value **outs, int nouts);
int inline_graph(Graph *, Node *, const Graph *sub, Value **args, Value **outs); /* a branch or body of the node */
int inline_expand(Node *);                                   /* by the row's C expander; the node's own results are made by what it builds */
int inline_append(Graph *, Node *);                          /* a node made detached: bound, expanded as far as needed, inferred, appended */
int inline_lower(Graph *, bool (*wanted)(const Node *, void *), void *arg); /* these composites by their definitions, until none is left */
int inline_composites(Graph *);                              /* lower composites to core operators too */

/* build.c: nodes from C. */
Value *build_list(Graph *, Loc, const char *op, const char *attrs, int nout, Value **outs, int nin, Value *const *in);
/* A node by name: build(g, loc, "ReduceSum", "keepdims=1", 1, NULL, 2, x, axes) returns out[0].  A macro, as others whose operands may be made
 * by calls: compilers make the arguments of a function in any order, and gcc and clang in different ones, but those of a list from the first on. */
#define build(g, loc, op, attrs, nout, outs, nin, ...) build_list((g), (loc), (op), (attrs), (nout), (outs), (nin), (Value *[]){ __VA_ARGS__ })

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
/* Appends nodes that compute d loss / d v for each wanted value; grad[i] is NULL where the loss does not depend on it.  The loss
 * is taken as a function of all wanted values together: one that is computed from another is as independent as any. */
int grad_build(Graph *, Value *loss, Value **want, int nwant, Value **grad);

/* eval.c: evaluates any Graph plainly. */
typedef struct EvalOpts { bool wide; /* float16..float computed and stored as double */ } EvalOpts;
int eval_graph(Graph *, Tensor **in, Tensor **out, Arena *, EvalOpts); /* by position; 0 or -1 after explaining */
int eval_node(Node *, Tensor **in, Tensor **out, Arena *, bool wide); /* one node on constants: the folder uses it */
int eval_into(Node *, Tensor **in, Tensor **out);            /* the row's own evaluator alone, into results whose shapes are settled */
/* What evaluators use (eval.c): operands as doubles or integers, whatever their type; freed with the evaluation. */
double  *eval_doubles(const Tensor *);                       /* a fresh array of all elements */
int64_t *eval_ints(const Tensor *);
void     eval_store(Tensor *out, const double *v);           /* rounds each element to out's type */
void     eval_store_ints(Tensor *out, const int64_t *v);
void    *eval_scratch(size_t bytes);                         /* gone when the node is done */
void     eval_strides(const Tensor *, int64_t *stride);      /* in elements, row-major */
void     eval_copy(const Tensor *from, int64_t i, Tensor *to, int64_t j, int64_t count); /* elements of one type, any bits */
void     eval_strided(const Tensor *from, int64_t base, const int64_t *stride, Tensor *to); /* to[i0, ..] = from[base + i0 * stride0 + ..] */

#endif
