/* A proved plan as files. */
#ifndef SBPCC_EMIT_H
#define SBPCC_EMIT_H

#include "schedule/schedule.h"

/* tree.c: files in memory, then a tree on the disk, whole or not at all. */
typedef struct Piece { const void *data; size_t bytes; } Piece;
typedef struct OutFile {
	const char *path;
	Text text;                              /* the contents: this, then the pieces */
	Piece *piece; int npiece;
	bool chosen;                            /* code of one transport: the Makefile chooses whether it is linked */
} OutFile;
typedef struct Tree { Arena *arena; OutFile **file; int nfile; } Tree;
Text *tree_file(Tree *, const char *path);
OutFile *tree_data(Tree *, const char *path);
void  tree_copy(Tree *, const char *path, const char *from);             /* a file of runtime/ or kernels/ */
void  tree_headers(Tree *, const char *name);                            /* those that a file of kernels includes */
void  tree_kernel(Tree *, const char *name);                             /* NAME_fast.c of kernels/cpu where there is one, else NAME.c */
const char *tree_embedded(const char *name);                             /* the text of an embedded file */
void  tree_fill(Text *, const char *name, ...);                       /* an embedded file with holes filled in: names and texts in turn, NULL at the end */
int  tree_write(const Tree *, const char *dir);

/* emit.c: what stands in which file. */
bool  emit_plain(unsigned char);                                         /* neither C nor make take it for something else */
const char *emit_comment(Arena *, const char *name);                     /* a name of the model, fit for a comment */
const char *emit_from(Arena *, const Node *);                            /* "mlp.ir:14" */

/* What is printed from and into.  A file of kernels/ is part of the tree when a call of it was printed. */
typedef struct EmitMove { int from, to; DType type; bool here; } EmitMove;      /* forms by their numbers in the tree; here: no peer takes part */
typedef enum { PROGRAM_STEP, PROGRAM_EVAL, PROGRAM_INFER, PROGRAMS } ProgramKind;
typedef struct EmitProgram { const Model *model; ProgramKind kind; } EmitProgram;
typedef struct Emit {
	Graph *g;                               /* of the current program, and its plan */
	Plan *plan;
	Slot **value; int nvalue, nkept;        /* all values by number; the first nkept stand in params.c */
	bool *checked;                          /* whether a schedule checks the bytes of an entry */
	struct Sched *sched;                    /* by role: what is printed so far */
	EmitProgram program[PROGRAMS]; int nprogram;    /* all programs; the main one first */
	const EmitProgram *now;                 /* the one that is being written */
	Tree tree;
	Target target;
	struct Pointwise *pw; int npw;          /* functions written from expressions */
	Map pwbyname;                           /* body -> name of its function */
	Name *kernel; int nkernel;              /* files of kernels/ */
	bool halves;                            /* something is rounded to half precision */
	int *form; int nform;                   /* forms that the runtime has tables of: indices into plan->forms */
	EmitMove *move; int nmove;           /* transfers, each once */
	int64_t work_shared, work_each;         /* scratch: the largest need of the calls that are printed */
} Emit;
const char *emit_program(const Emit *);                         /* the name of the current program: "step", "eval", "infer" */
extern const char *const emit_program_name[];                   /* by ProgramKind */
const char *emit_banner(const Emit *, const char *what);
extern const char *const emit_keep[];                        /* names of Keep */
void emit_turn(Emit *, int program);                         /* makes it the current program */
int emit_run(Graph *);

/* calls.c: how kernels are called.  What a call is printed from: */
typedef struct Print {
	Emit *e;
	Text *t;
	const Action *a;
	Node *n;
	Slot **take, **make;            /* of the node's operands and results; NULL: left out, or not read at run time */
	int rank;                       /* of the role: any has the same shapes */
	const char *epilogue;           /* text of a const KEpilogue *, for kernels that take one; NULL: none */
	Node *whole;                    /* n of all ranks together: n itself may be as this rank runs it, with types of its parts */
} Print;
/* How the call of a kernel is printed, and that of one that does two nodes; facts about both are rows of target/kernel_rows.c. */
typedef struct Call {
	const char *name, *file;        /* of the kernel */
	void (*print)(const Print *);
	bool several;                   /* statements that set `code`, not one expression */
} Call;
typedef struct CallPair {
	const char *first, *second;
	void (*print)(const Print *);   /* the node is the first */
} CallPair;
const Call *calls_of(const Kernel *);
const CallPair *calls_of_pair(const KernelPair *);
void calls_transfer(const Print *);                           /* its call */
int  calls_form(Emit *, const Slot *);                        /* 1 + its number among the forms of the tree; 0: every rank has all of it */
const char *calls_origin(const Print *, const Slot *, int axis);          /* text: where this rank's part of an axis begins */

/* tables.c: what the runtime reads. */
int tables_params(Emit *, Text *program);                      /* params.c and the weights file; program: entries of RtProgram */
int tables_inputs(Emit *, Text *rows, Text *program);
void tables_metric_rows(Emit *, Text *rows, Text *program);
void tables_order_inputs(const Emit *, Text *);                            /* what model.h says of them */
uint64_t tables_key(const char *name);

/* values.c: the table of values. */
void values_number(Emit *);
const char *values_quoted(const char *escaped);                /* as a string of C: backslashes doubled */
const char *values_string(Arena *, const char *name);          /* a name as a string of C: the escape of emit_comment, its backslashes doubled */
void values_write(Emit *);
const char *values_type_word(DType);                           /* "F32": RT_F32 */
int64_t values_slab(const Emit *), values_window(const Emit *);              /* of all programs */
void values_pack(Text *, size_t *line, const char *item);      /* one more item of a table, on this line or the next; line starts as 0 */
void values_packed(Text *);                                     /* after the last: without a comma, so that formatters keep several on a line */

/* blocks.c: a list of rows, cut into stretches of `period` rows that are repeated `times` times. */
typedef struct Repeat { int from, period, times; } Repeat;
Repeat *blocks_find(Arena *, const int *row, int n, int *count);

/* role.c: the tables of a role. */
Role role_own(const Emit *, const Role *);                   /* with the actions that its ranks do, numbered as they do them */
int  role_add(Emit *, const Role *);                    /* adds the present program to those of the role; -1 after explaining */
void role_write(Emit *);                                 /* writes all */
const char *role_param(const Print *, const Slot *, bool result);        /* "t[2]" */
void role_file(Emit *, const char *file);                    /* of kernels/, without the ending: the tree has it */
const char *role_shape(const Emit *, const Slot *, int rank);             /* "float[32, 10]", as that rank holds it */
const char *role_shapes(const Emit *, const Action *, int rank);         /* "float[32, 10] = float[32, 64], float[64, 10]" */
const char *role_op(const Emit *, const Action *);           /* "MatMul", "Add+Gelu", "Mul+..+Sub" */
void role_about(const Emit *, Text *, const Action *);       /* "mlp.ir:14:3  h = MatMul(x, w1)  B B -> B" */

/* pointwise.c, cuda.c, make.c */
const char *pointwise_function(Emit *, const Action *, int rank);  /* the name of its function; of a host, that of its epilogue */
void pointwise_write(Emit *);
void cuda_emit(Emit *, const char *includes, const char *functions, const char *launchers);
void make_emit(Emit *, const char *made);
/* stamp.c: who wrote the tree, from what, by which command; plan.ir, LICENSE and the copies of what was read. */
extern const char stamp_version[];
const char *stamp_make(Emit *, Model *, uint64_t *hash);     /* what README.md says of it; hash: of the plan */
void stamp_print(const Model *, Text *);                      /* the plan, without bytes that C or make could take for something else */
uint64_t stamp_hash(const Text *);

/* report.c: the memory of a rank, by what it holds when most is in use; slab - bound is lost between values. */
typedef struct RankMemory { int64_t total, slab, gaps, packed, work, data, base, thread, saver; } RankMemory;   /* thread: of each further one; saver: more with checkpoints */
RankMemory report_memory(const Emit *);
void report_print(const Emit *);                              /* prints it for the user */
/* json.c, html.c: plan.json and report.html. */
void json_emit(Emit *);
void html_emit(Emit *);

#endif
