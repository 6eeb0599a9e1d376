/* Plans executed in exact arithmetic.
 *
 * Numbers are integers modulo the prime 2^61 - 1.  What is linear is computed with them exactly, quotients by inverses;
 * what is not linear is a hash of its operands.  So a value has one right answer, whatever the order of its sums, and a
 * transfer that is wrong, missing or done twice gives another one: nothing is compared with a tolerance.
 *
 *   field.c   the arithmetic
 *   node.c    one node on tensors of such numbers, whole or parts
 *   hold.c    a value as the ranks of a mesh hold it: cut, moved, compared
 *   run.c     a graph, whole and on ranks
 *   program.c the lists of actions of all ranks, in memory */
#ifndef EXACT_H
#define EXACT_H

#include "compiler.h"

/* field.c.  Numbers have an order too, that of -(P-1)/2 .. (P-1)/2. */
#define FIELD_P ((UINT64_C(1) << 61) - 1)
uint64_t field_add(uint64_t, uint64_t), field_sub(uint64_t, uint64_t), field_mul(uint64_t, uint64_t);
uint64_t field_power(uint64_t, uint64_t), field_inverse(uint64_t);      /* of 0: 0 */
uint64_t field_int(int64_t), field_double(double);                      /* every finite double is a fraction */
int64_t  field_signed(uint64_t);
uint64_t field_hash(uint64_t, uint64_t), field_text(const char *);
uint64_t field_combine(Reduce, uint64_t, uint64_t), field_neutral(Reduce);

/* node.c */
typedef struct Exact {
	bool real;                      /* numbers of the field; else integers, as they are */
	DType dtype;
	int ndim;
	int64_t dim[NDIM_MAX], n;
	uint64_t *v;
} Exact;
Exact *exact_new(Arena *, DType, int ndim, const int64_t *dim);         /* zeros */
Exact *exact_tensor(Arena *, const Tensor *);
/* of an input or a parameter; integers in 0 .. below - 1 */
Exact *exact_start(Arena *, const Value *, uint64_t seed, int64_t below);
/* results are there, with their shapes; -1: not of a kind that can be told */
int    exact_node(Node *, Exact **in, Exact **out, Arena *);
const char *exact_reason(void);                                         /* why not */

/* hold.c */
typedef struct Hold { Form form; int places; Exact **part; } Hold;
typedef enum { FAULT_NONE, FAULT_MISSING, FAULT_TWICE, FAULT_ELSEWHERE, FAULT_SKIPPED, FAULT_COUNT } Fault;
Hold *hold_new(Arena *, const Form *, DType);
Hold *hold_cut(Arena *, const Exact *whole, const Form *, uint64_t seed);       /* terms of P are random */
Hold *hold_move(Arena *, const Hold *, const Form *, Fault);
/* NULL: ranks that should hold the same do not.  rest: what no window reaches, and so no rank holds */
Exact *hold_whole(Arena *, const Hold *, const Exact *rest);
uint64_t hold_neutral(const Hold *);                                    /* what changes no term */
bool  exact_equal(const Exact *, const Exact *);

/* run.c */
typedef struct Whole { Exact **value; int nvalue; Name *name; Map byname; } Whole;  /* by value id */
Whole *run_whole(Graph *, uint64_t seed, Arena *);                      /* NULL: a node has no exact meaning */
typedef struct Outcome {
	enum { RUN_SAME, RUN_DIFFERS, RUN_CANNOT } what;
	const char *why;                /* names the node */
	int planted;                    /* faults that changed something */
} Outcome;
/* Runs a graph by random signatures, each node on one of the meshes, values kept in random forms on any of them:
 * transfers happen wherever a node wants another form than an operand has. */
Outcome run_random(Graph *, const Mesh *, int nmesh, const Whole *, uint64_t seed, Fault, int at, Arena *);
/* Runs a graph after boxing: every operand lies as its node wants it.  at: by value id, what ranks hold of it. */
Outcome run_physical(Graph *, const Whole *, uint64_t seed, Arena *, Hold ***at);

/* program.c: runs the lists of actions after memplan; transfers that have a start and a finish happen early or late
 * between them. */
/* of a finish, or of memory in between */
typedef enum { SPOIL_NONE, SPOIL_NEVER, SPOIL_BEFORE, SPOIL_LATE, SPOIL_OPERAND, SPOIL_RESULT, SPOIL_COUNT } Spoil;
Outcome run_program(Graph *, Hold **at, bool late, Spoil, int turn);    /* turn: which of the transfers is spoiled */

#endif
