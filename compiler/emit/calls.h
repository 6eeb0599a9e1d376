/* What the files that print calls of kernels share.
 *
 * Each of attention.c, cells.c, index.c, matmul.c, move.c, norm.c, reduce.c, squares.c and window.c has a table with a
 * row per kernel: the function that prints its call.  The text is the same for C and for CUDA.  target/kernel_rows.c
 * has the facts about kernels. */
#ifndef SBPCC_EMIT_CALLS_H
#define SBPCC_EMIT_CALLS_H

#include "emit/emit.h"

#include "cpu/work.h"

/* Each ends with an empty row. */
extern const CallPair norm_pairs[];
extern const Call matmul_calls[], norm_calls[], attention_calls[], window_calls[], move_calls[], index_calls[],
	reduce_calls[], squares_calls[], cells_calls[];

/* args.c: shapes of the shards of this role. */
Shape   args_in(const Print *, int i), args_out(const Print *, int i);

/* Text.  A call begins with its name, results and operands: args_call(p, "k_gather", "0", "01") prints "k_gather(c,
 * t[2], t[0], t[1]" with the pointers of result 0, operand 0 and operand 1.  What follows begins with a comma. */
void args_call(const Print *, const char *name, const char *results, const char *operands);
const char *args_name(const Print *);                        /* "k_NAME_f32", NAME as in the row of the operator */
const char *args_result(const Print *, int i), *args_operand(const Print *, int i);     /* "t[2]"; "NULL": left out */
const char *args_real(const Print *, double);                /* a float constant */
void args_ints(const Print *, const int64_t *v, int n);      /* ", 3, 4" */
#define args_sizes(p, ...) \
	args_ints((p), (int64_t[]){ __VA_ARGS__ }, (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)))
void args_dims(const Print *, const int64_t *d, int n);      /* ", { 3, 4 }" */
/* Fields of a literal that was opened by a brace: " .batch = 8", then ", .heads = 4"; dims: " .in = { 3, 4 }". */
void args_field(const Print *, const char *field, const char *value);
void args_field_int(const Print *, const char *field, int64_t value);
void args_field_dims(const Print *, const char *field, const int64_t *d, int n);
void args_loops(const Print *, const Loops *);               /* ", (KLoops){ ... }" */
void args_around(const Print *, const Shape *, int axis);    /* outer, n and inner around one axis */
void args_word(const Print *, bool);                         /* ", true" */
void args_width(const Print *, const Value *);               /* ", 4)": the bytes of an element end a call */
void args_type(const Print *, const Value *);                /* ", K_F32)": their type does */
void args_end(const Print *);                                /* ")" */

/* the scratch memory that this call needs; the program has as much as the largest call */
void args_need(const Print *, KWork);
/* the chunks of a sum on this rank; if more than 1, a kernel of this file is called */
int64_t args_chunks(const Print *, const char *file);

#endif
