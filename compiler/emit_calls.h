/* What the files of calls share.
 *
 * Each of emit_matmul.c, emit_norm.c, emit_attention.c, emit_window.c, emit_move.c, emit_index.c, emit_reduce.c and emit_cells.c has a
 * table with a row per kernel of its subject: the file it is in, the operands that are read at run time, which nodes it can
 * do, and how its call is printed.  emit_calls.c finds the row of a node.  The text is the same for C and for CUDA. */
#ifndef SBPCC_EMIT_CALLS_H
#define SBPCC_EMIT_CALLS_H

#include "compiler.h"

#include "cpu/work.h"

/* Each ends with an empty row.  Of several rows with one name the first that can do the node is taken. */
extern const KernelPair calls_pairs[];
extern const Kernel calls_matmul[], calls_norm[], calls_attention[], calls_window[], calls_move[], calls_index[], calls_reduce[], calls_cells[];

/* emit_args.c: shapes of what the role's ranks hold. */
typedef struct Shape { int rank; int64_t d[8]; } Shape;
Shape   emit_held(const Print *, const Slot *);
Shape   emit_in(const Print *, int i), emit_out(const Print *, int i);
int64_t emit_product(const Shape *, int from, int to);       /* of the axes from .. to - 1 */
int64_t emit_count(const Shape *);                           /* of all axes */
void    emit_strides(const Shape *, int64_t *stride);
int     emit_axis(const Node *, int rank);                   /* the attribute axis, counted from the front */

/* Loops that walk the axes of one shape with strides of another: axes of length 1 vanish, neighbours are joined. */
typedef struct Loops { int n; int64_t len[16], stride[16]; } Loops;     /* kernels take 8 of them */
void emit_loop(Loops *, int64_t len, int64_t stride);

/* Text.  Of a call first its name, results and operands: emit_call(p, "k_gather", "0", "01") prints "k_gather(c, t[2],
 * t[0], t[1]" with the pointers of result 0, operand 0 and operand 1.  What follows begins with a comma. */
void emit_call(const Print *, const char *name, const char *results, const char *operands);
const char *emit_name(const Print *);                        /* "k_NAME_f32", by the row of the operator */
const char *emit_result(const Print *, int i), *emit_operand(const Print *, int i);     /* "t[2]"; "NULL": left out */
const char *emit_real(const Print *, double);                /* a float constant */
void emit_ints(const Print *, const int64_t *v, int n);      /* ", 3, 4" */
#define emit_sizes(p, ...) emit_ints((p), (int64_t[]){ __VA_ARGS__ }, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)))
void emit_dims(const Print *, const int64_t *d, int n);      /* ", { 3, 4 }" */
void emit_loops(const Print *, const Loops *);               /* ", (KLoops){ ... }" */
void emit_around(const Print *, const Shape *, int axis);    /* outer, n and inner around one axis */
void emit_word(const Print *, bool);                         /* ", true" */
void emit_width(const Print *, const Value *);               /* ", 4)": the bytes of an element end a call */
void emit_type(const Print *, const Value *);                /* ", K_F32)": their type does */
void emit_end(const Print *);                                /* ")" */

void emit_need(const Print *, KWork);                        /* of scratch, by this call; the plan has room for the largest */
int64_t emit_chunks(const Print *, const char *file);        /* of a sum, on this rank; more than 1: a kernel of this file is called.  1: it is not cut into any */

/* What many kernels ask of a node. */
bool emit_float(const Value *), emit_int64(const Value *);
bool emit_first_float(const Node *), emit_all_float(const Node *);
bool emit_floating(const Value *);                           /* float or double */
bool emit_any(const Node *);                                 /* elements of a type that kernels know, and some of them */
bool emit_indexed(const Node *);                             /* that, by an int64 second operand */
bool emit_consts(const Node *, int from);                    /* operands from there on are constants, or left out */
int64_t emit_const(const Node *, int i, int64_t otherwise);  /* the first element of a constant operand */
int64_t emit_bytes(const Value *);                           /* of one element */

#endif
