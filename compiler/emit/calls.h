/* What the files of calls share.
 *
 * Each of matmul.c, norm.c, attention.c, window.c, move.c, index.c, reduce.c and cells.c has a
 * table with a row per kernel of its subject: how its call is printed.  The text is the same for C and for CUDA.  The facts about kernels are in
 * target/kernel_rows.c. */
#ifndef SBPCC_EMIT_CALLS_H
#define SBPCC_EMIT_CALLS_H

#include "emit/emit.h"

#include "cpu/work.h"

/* Each ends with an empty row. */
extern const CallPair calls_pairs[];
extern const Call calls_matmul[], calls_norm[], calls_attention[], calls_window[], calls_move[], calls_index[], calls_reduce[], calls_cells[];

/* args.c: shapes of what the role's ranks hold. */
Shape   emit_held(const Print *, const Slot *);
Shape   emit_in(const Print *, int i), emit_out(const Print *, int i);

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

#endif
