/* Options of a run, and facts about the kernels of both targets; used by all passes.
 *
 * The facts about kernels (which one does a node, which operands it reads, its properties) are rows with a column per target.  The
 * emitter prints the calls. */
#ifndef SBPCC_TARGET_H
#define SBPCC_TARGET_H

#include "ir.h"
#include "../runtime/form.h"

/* options.c: the options of a run, which main.c sets from one table. */
typedef enum { TARGET_MESH, TARGET_C, TARGET_CUDA } Target;      /* TARGET_MESH: as the meshes of the model say, else C */
/* Changes that a trial run of the passes makes (compiler/trials.c), and what such runs found. */
typedef struct Change {
	bool trial;                     /* this is a trial run: it gives a measurement, no tree */
	bool made;                      /* the program is made, in memory */
	bool keep;                      /* @recompute is left out */
	int ranks;                      /* the main mesh has so many; 0: as the model says */
	double limit;                   /* bytes that values may take by the solver's count; 0: any number */
	int64_t found;                  /* bytes of a rank with this limit; 0: no trial was needed */
} Change;
typedef struct Options {
	const char *input, *out, *place, *train, *write;
	const char *dump_after, *stop_after;
	const char *inputs, *outputs;
	const char *prefix;             /* of the C interface; NULL: sbp */
	const char *explain;            /* "" explains everything */
	const char *machine;            /* file or preset; NULL: that of the target */
	int64_t memory;                 /* bytes that a rank may use; 0: as the machine says */
	int64_t solve_seconds;          /* of the solver, counted in work; -1: as many as it takes */
	bool infer;                     /* no training, whatever the model says */
	int64_t chunks;                 /* of sums, so that any number of ranks gives the same bits; 0: the same plan does */
	bool probe, print, print_io, eval, list_ops, list_annotations, list_passes, version;
	const char *help;               /* "" text, man, bash; NULL: not asked for */
	int64_t ranks;                  /* 0: as the model says, else 1 */
	int64_t seed;                   /* -1: as the model says, else 1 */
	int64_t steps;                  /* -1: as the model says */
	Target target;
	Change change;
	const char **said; int nsaid;   /* options as they were given, but for those that do not change what is written */
} Options;
extern Options opt;
/* What passes establish, as bits of Graph.facts (compiler/passes.c). */
typedef enum {
	BOUND   = 1 << 0,               /* every node has its row; definitions are inlined */
	SHAPES  = 1 << 1,               /* every value has a type of known rank and element */
	FOLDED  = 1 << 2,               /* what depends on constants only is a constant */
	LIFTED  = 1 << 3,               /* decomposed composites recognised */
	TRAIN   = 1 << 4,               /* loss, backward and update are in the graph */
	PLACED  = 1 << 5,               /* every value has a place and an SBP */
	BOXED   = 1 << 6,               /* every operand has the SBP that its node's signature wants */
	ROLES   = 1 << 7,               /* what each rank holds is known */
	ORDERED = 1 << 8,               /* actions in order */
	PLANNED = 1 << 9,               /* offsets */
	PROVED  = 1 << 10
} Fact;

bool options_done(const Model *, const char *pass);         /* the input was a dump in which this pass was done */
bool options_any_ranks(const Model *);                       /* --deterministic=any-ranks or @any_ranks: sums in chunks */

/* text.c: text that grows. */
typedef struct Text { char *s; size_t n, cap; } Text;
void text_add(Text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_raw(Text *, const char *s, size_t n);
bool text_ends(const char *s, const char *end);             /* s is longer than end and ends with it */

/* loops.c: shapes, and loops that walk the axes of one shape with strides of another: axes of length 1 vanish, neighbours are joined. */
typedef struct Shape { int rank; int64_t d[8]; } Shape;
typedef struct Loops { int n; int64_t len[16], stride[16]; } Loops;     /* kernels take 8 of them */
int64_t loops_product(const Shape *, int from, int to);      /* of the axes from .. to - 1 */
int64_t loops_count(const Shape *);                          /* of all axes */
void    loops_strides(const Shape *, int64_t *stride);
void    loops_add(Loops *, int64_t len, int64_t stride);
Loops   loops_tile(const Node *, const Shape *);             /* of a Tile: its operand has this shape */

/* kernel.c: facts about kernels. */
enum {
	KERNEL_HERE = 1,                /* this target has it */
	KERNEL_COUNTS = 2,              /* it can take a slice of the axis that it counts along (.origin of the row) */
	/* For any_ranks.c: an element of a result has the same bits however much there is of an axis that is not summed ... */
	KERNEL_EACH = 4,                /* whichever */
	KERNEL_LEADING = 8,             /* of those before its own (attribute axis, else the second) */
	KERNEL_FIRST = 16,              /* of the first of its first operand */
	KERNEL_CHUNKS = 32,             /* it has a form that sums in chunks */
	KERNEL_RUNS = 64,               /* the same of the axis that it counts along */
	KERNEL_ROWS = 128,              /* with KERNEL_FIRST: and of the first of its other operands */
	KERNEL_STATE = 256              /* results 1 and 2 may lie on operands 3 and 4: they are what that state is next */
};
typedef struct Kernel {
	const char *name;               /* as the row of the operator has it */
	const char *file;               /* in kernels/, without the ending */
	unsigned reads;                 /* bit i: operand i is read at run time; the last bit stands for all that follow */
	bool (*can)(const Node *);
	unsigned c, cuda;               /* of the bits above, by target */
} Kernel;
/* A kernel that does two nodes in one pass over what both read.  Its action takes the operands of the first, those that the second has
 * beside them, and makes the results of both; the result of the second may lie on the first operand. */
typedef struct KernelPair {
	const char *first, *second;     /* kernels, as the rows of the operators have them */
	const char *file;
	bool (*can)(const Node *first, const Node *second);
} KernelPair;
const Kernel *kernel_of(const Node *);                       /* NULL: none */
const KernelPair *kernel_pair(const Node *first, const Node *second);    /* NULL: none */
bool  kernel_any_has(Target, unsigned facts);                /* some kernel of the target */
bool  kernel_transfer(const Node *);                         /* a transfer: a Boxing node */
bool  kernel_counts(const Node *);                           /* it can take a slice of the axis that it counts along or whose length it divides by */
bool  kernel_has(const Node *);                              /* there is a kernel or an expression for it */
bool  kernel_on(const Node *, Target);                       /* the same, on that target */
bool  kernel_can(Node *, Target);                            /* the same; false after err_at */
bool  kernel_reads(const Node *, int operand);               /* at run time; false for shapes, axes and literals */
bool  kernel_literal(const Value *);                         /* a scalar constant: written into the text */
DType kernel_stored(DType);                                  /* half precision is held as float, whose numbers are rounded */
const char *kernel_ctype(DType);                             /* NULL: programs do not hold it */
int   kernel_bits(const Value *);                            /* of one element */
int64_t kernel_bytes(const Value *);
int   kernel_axis(const Node *, int rank);                   /* the attribute axis, counted from the front */
/* Questions that many kernels ask of a node. */
bool  kernel_float(const Value *), kernel_int64(const Value *);
bool  kernel_first_float(const Node *), kernel_all_float(const Node *);
bool  kernel_floating(const Value *);                        /* float or double */
bool  kernel_any(const Node *);                              /* elements of a type that kernels know, and some of them */
bool  kernel_indexed(const Node *);                          /* that, by an int64 second operand */
bool  kernel_consts(const Node *, int from);                 /* operands from there on are constants, or left out */
int64_t kernel_const(const Node *, int i, int64_t otherwise);    /* the first element of a constant operand */

/* kernel_rows.c: the rows, ended by an empty one. */
const Kernel *kernel_rows(void);
const KernelPair *kernel_rows_of_two(void);

#endif
