/* Options of a run, and facts about the kernels of both targets; used by all passes.
 *
 * The facts about kernels (which one does a node, which operands it reads, its properties) are rows with a column per
 * target.  The emitter prints the calls. */
#ifndef SBPCC_TARGET_H
#define SBPCC_TARGET_H

#include "ir.h"
#include "../runtime/form.h"

/* options.c: the options of a run, which main.c sets from one table. */
typedef enum { TARGET_MESH, TARGET_C, TARGET_CUDA } Target;  /* TARGET_MESH: that of the meshes of the model, else C */
/* Changes that a trial run of the passes makes (compiler/trials.c), and what such runs found. */
typedef struct Change {
	bool trial;                     /* this is a trial run: it gives a measurement, no tree */
	bool made;                      /* the program is generated, in memory */
	bool keep;                      /* @recompute is ignored */
	bool find;                      /* in a trial: the limit below is searched for, as without it */
	bool weigh;                     /* the seconds and bytes of each node are measured (schedule/loads.c) */
	int64_t micros;                 /* micro-batches of a step, in a trial of their number */
	bool all;                       /* in a trial: that limit and what is recomputed are chosen, as without it */
	const struct Loads *loads;      /* the model is cut into stages by them; NULL: by costs of the forward pass */
	double again;                   /* bytes that stay for the backward pass (checkpoints.c); 0: any number */
	int ranks;                      /* of the main mesh; 0: those of the model */
	double limit;                   /* bytes that values may take by the solver's estimate; 0: any number */
	int64_t spare;                  /* bytes of a rank that the order of a pipeline leaves */
	int64_t found;                  /* bytes of a rank with this limit; 0: no trial was needed */
} Change;
typedef struct Options {
	const char *input, *out, *place, *train, *write;
	const char *dump_after, *stop_after;
	const char *inputs, *outputs;
	const char *prefix;             /* of the C interface; NULL: sbp */
	const char *explain;            /* "" explains everything */
	/* simulate: the text of a pipeline, or "": the model; files to write */
	const char *simulate, *trace, *html, *write_schedule;
	const char *machine;            /* file or preset; NULL: that of the target */
	int64_t memory;                 /* bytes that a rank may use; 0: that of the machine */
	bool no_recompute;              /* only what @recompute marks is computed again */
	int64_t solve_seconds;          /* of the solver, counted in work; -1: no limit */
	int64_t schedule_seconds;       /* of the schedule solver, counted in work; -1: a quarter of one */
	bool infer;                     /* no training, even if the model asks for it */
	int64_t chunks;                 /* of sums, for equal bits on any number of ranks; 0: equal for one plan only */
	bool probe, print, print_io, eval, list_ops, list_annotations, list_passes, version;
	const char *help;               /* "" text, man, bash; NULL: not asked for */
	int64_t ranks;                  /* 0: that of the model, else 1 */
	int64_t stages;                 /* of a pipeline; 0: those of the model, else none */
	int64_t micro_batches;          /* of a step; 0: those of the model */
	const char *schedule;           /* of a pipeline: a name, or a file of PyTorch's; NULL: that of the model */
	int64_t seed;                   /* -1: that of the model, else 1 */
	int64_t steps;                  /* -1: that of the model */
	Target target;
	Change change;
	const char **given; int ngiven;   /* the options as given that change the tree */
} Options;
extern Options opt;
/* What passes establish, as bits of Graph.facts (compiler/passes.c). */
typedef enum {
	BOUND   = 1 << 0,               /* every node has its row; definitions are inlined */
	SHAPES  = 1 << 1,               /* every value has a type: known ndim and element */
	FOLDED  = 1 << 2,               /* every value that depends on constants only is a constant */
	LIFTED  = 1 << 3,               /* decomposed composites are recognised */
	TRAIN   = 1 << 4,               /* loss, backward pass and update are in the graph */
	PLACED  = 1 << 5,               /* every value has a placement and an SBP */
	BOXED   = 1 << 6,               /* every operand has the SBP of its node's signature */
	ROLES   = 1 << 7,               /* the shards of each rank are known */
	ORDERED = 1 << 8,               /* the actions are in order */
	PLANNED = 1 << 9,               /* every value has an offset */
	PROVED  = 1 << 10               /* schedule and offsets are checked */
} Fact;

bool options_done(const Model *, const char *pass);         /* the input was a dump in which this pass was done */
bool options_program(void);                                 /* trials find one that fits into the memory */
bool options_any_ranks(const Model *);                      /* --deterministic=any-ranks or @any_ranks */

/* text.c: text that grows. */
typedef struct Text { char *s; size_t n, cap; } Text;
void text_add(Text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_raw(Text *, const char *s, size_t n);
bool text_ends(const char *s, const char *end);             /* s is longer than end and ends with it */

/* loops.c: shapes, and loops that walk the axes of one shape with strides of another: axes of length 1 vanish,
 * neighbours are joined. */
typedef struct Shape { int ndim; int64_t d[8]; } Shape;
typedef struct Loops { int n; int64_t len[16], stride[16]; } Loops;     /* kernels take 8 of them */
int64_t loops_product(const Shape *, int from, int to);      /* of the axes from .. to - 1 */
int64_t loops_count(const Shape *);                          /* of all axes */
void    loops_strides(const Shape *, int64_t *stride);
void    loops_add(Loops *, int64_t len, int64_t stride);
Loops   loops_tile(const Node *, const Shape *);             /* of a Tile: its operand has this shape */

/* kernel.c: facts about kernels. */
enum {
	KERNEL_HERE = 1,                /* this target has it */
	KERNEL_COUNTS = 2,              /* it can take a shard of the axis that it counts along (.origin of the row) */
	/* For any_ranks.c: the bits of an element do not depend on how an axis is split that is not summed: */
	KERNEL_EACH = 4,                /* any such axis */
	KERNEL_LEADING = 8,             /* the axes before its own (attribute axis, else the second) */
	KERNEL_FIRST = 16,              /* the first axis of its first operand */
	KERNEL_CHUNKS = 32,             /* it can sum in chunks */
	KERNEL_RUNS = 64,               /* the same for the axis that it counts along */
	KERNEL_ROWS = 128,              /* with KERNEL_FIRST: also the first axis of its other operands */
	KERNEL_STATE = 256              /* results 1 and 2 may overwrite operands 3 and 4, the state they update */
};
typedef struct Kernel {
	const char *name;               /* as in the row of the operator */
	const char *file;               /* in kernels/, without the ending */
	unsigned reads;                 /* bit i: operand i is read at run time; the last bit: all that follow */
	bool (*can)(const Node *);
	unsigned c, cuda;               /* of the bits above, by target */
} Kernel;
/* A kernel that computes two nodes in one pass over the operands that both read.  Its action has the operands of the
 * first, then the other operands of the second, and the results of both; the result of the second may overwrite the
 * first operand. */
typedef struct KernelPair {
	const char *first, *second;     /* kernels, as in the rows of the operators */
	const char *file;
	bool (*can)(const Node *first, const Node *second);
} KernelPair;
const Kernel *kernel_of(const Node *);                       /* NULL: none */
const KernelPair *kernel_pair(const Node *first, const Node *second);    /* NULL: none */
bool  kernel_any_has(Target, unsigned facts);                /* some kernel of the target */
bool  kernel_transfer(const Node *);                         /* a transfer: a Boxing node */
bool  kernel_counts(const Node *);                           /* its kernel has KERNEL_COUNTS */
bool  kernel_has(const Node *);                              /* there is a kernel or an expression for it */
bool  kernel_on(const Node *, Target);                       /* the same, on that target */
bool  kernel_can(Node *, Target);                            /* the same; false after err_at */
bool  kernel_reads(const Node *, int operand);               /* at run time; false for shapes, axes and literals */
bool  kernel_literal(const Value *);                         /* a scalar constant: written into the code */
DType kernel_stored(DType);                                  /* half precision is stored as float, rounded */
const char *kernel_ctype(DType);                             /* NULL: programs do not have it */
int   kernel_bits(const Value *);                            /* of one element */
int64_t kernel_bytes(const Value *);
int   kernel_axis(const Node *, int ndim);                   /* the attribute axis, counted from the front */
/* Questions that many kernels ask of a node. */
bool  kernel_float(const Value *), kernel_int64(const Value *);
bool  kernel_first_float(const Node *), kernel_all_float(const Node *);
bool  kernel_floating(const Value *);                        /* float or double */
bool  kernel_any(const Node *);                              /* elements of a type that programs have, not empty */
bool  kernel_indexed(const Node *);                          /* the same, and an int64 second operand */
bool  kernel_consts(const Node *, int from);                 /* operands from there on are constants or omitted */
int64_t kernel_const(const Node *, int i, int64_t otherwise);    /* the first element of a constant operand */

/* kernel_rows.c: the rows, ended by an empty one. */
const Kernel *kernel_rows(void);
const KernelPair *kernel_rows_of_two(void);

#endif
