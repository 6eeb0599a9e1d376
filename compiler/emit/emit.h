/* A proved plan as files. */
#ifndef SBPCC_EMIT_H
#define SBPCC_EMIT_H

#include "schedule/schedule.h"

/* Types that several files share. */
typedef struct Piece { const void *data; size_t bytes; } Piece;
typedef struct OutFile {
	const char *path;
	Text text;                              /* the contents: this, then the pieces */
	Piece *piece; int npiece;
	bool chosen;                            /* code of one transport: the Makefile chooses whether it is linked */
	bool copied;                            /* a file of runtime/ or kernels/ as it is */
} OutFile;
typedef struct Tree { Arena *arena; OutFile **file; int nfile; } Tree;

/* forms by their numbers in the tree; channel -1: without peers */
typedef struct EmitMove { int from, to; DType type; int channel; } EmitMove;
typedef enum { PROGRAM_STEP, PROGRAM_EVAL, PROGRAM_INFER, PROGRAMS } ProgramKind;
typedef struct EmitProgram { const Model *model; ProgramKind kind; } EmitProgram;
/* A sequence of actions: `period` of a list from `from` on, `count` times with other values. */
typedef struct Repeat { int from, period, count; } Repeat;
/* blocks.c of the tree: its functions, by what they have in common, and what stands before them (statement.c). */
typedef struct Blocks {
	Text before, functions;
	Map statement, bykey, taken;            /* taken: names */
	const char **name; int nname, nstatement;
} Blocks;
typedef struct Emit {                           /* the state of writing a tree */
	Graph *g;                               /* of the current program, and its plan */
	Plan *plan;
	Slot **value; int nvalue, nkept;        /* all values by number; the first nkept are rows of params.c */
	Blocks blocks;
	struct Sched *sched;                    /* by role: what is printed so far */
	const char *picture;                    /* of a pipeline; NULL: not drawn yet */
	EmitProgram program[PROGRAMS]; int nprogram;    /* all programs; the main one first */
	const EmitProgram *now;                 /* the one that is being written */
	Tree tree;
	Target target;
	struct Pointwise *pw; int npw;          /* functions written from expressions */
	Map pwbyname;                           /* body -> name of its function */
	Name *kernel; int nkernel;              /* files of kernels/ of which a call was printed: the tree gets them */
	bool halves;                            /* something is rounded to half precision */
	int *form; int nform;                   /* forms that the runtime has tables of: indices into plan->forms */
	EmitMove *move; int nmove;              /* transfers, each once */
	int64_t work_shared, work_each;         /* scratch: the largest need of the calls that are printed */
} Emit;

/* blocks.c: the functions of blocks.c of the tree; a call is repeated `count` times over nvalue other values. */
typedef struct BlockCall { const char *function; int count, nvalue, **value; } BlockCall;
BlockCall blocks_add(Emit *, const Role *own, const Repeat *, const char *const *call, const char *phase);
bool blocks_has(Emit *, const Role *own, const Repeat *, const char *const *call);     /* call: of each action */
void blocks_write(Emit *);

/* calls.c: which row prints the call of a kernel.  A call is printed from: */
typedef struct Print {
	Emit *e;
	Text *t;
	const Action *a;
	Node *n;
	Slot **take, **make;            /* of the node; NULL: left out, or not read at run time */
	int rank;                       /* of the role: any has the same shapes */
	const char *epilogue;           /* text of a const KEpilogue *, for kernels that take one; NULL: none */
	Node *whole;                    /* the logical node; n may be the shard node of this rank */
} Print;
/* How the call of a kernel is printed, and of one of two nodes; target/kernel_rows.c has the facts about both. */
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
int  calls_form(Emit *, const Slot *);           /* 1 + its number in the tree; 0: every rank holds the whole value */
int  calls_number(Emit *, int form);                          /* the same of an index into plan->forms */
int  calls_move(Emit *, const Slot *x, const Slot *y, int channel);       /* the number of the transfer from x to y */
const char *calls_origin(const Print *, const Slot *, int axis);         /* text: the first index of the shard */

/* cuda.c: the device code of a CUDA tree. */
void cuda_emit(Emit *, const char *includes, const char *functions, const char *launchers);

/* emit.c: which file holds what. */
bool  emit_plain(unsigned char);                             /* without a meaning of its own in C or make */
const char *emit_comment(Arena *, const char *name);         /* a name of the model, escaped for a comment */
const char *emit_from(Arena *, const Node *);                            /* "mlp.ir:14" */
const char *emit_program(const Emit *);                      /* the current one: "step", "eval", "infer" */
extern const char *const emit_program_name[];                   /* by ProgramKind */
const char *emit_banner(const Emit *, const char *what);
extern const char *const emit_keep[];                        /* names of Keep */
void emit_turn(Emit *, int program);                         /* makes it the current program */
int emit_run(Graph *);

/* html.c: report.html. */
void html_emit(Emit *);

/* json.c: plan.json. */
void json_emit(Emit *);

/* make.c: Makefile, README.md and the files of the runtime. */
void make_emit(Emit *, const char *made);

/* names.c: identifiers of C. */
const char *names_c(Arena *, const char *name);                          /* of a name of the model */
const char *names_unique(Arena *, Map *taken, const char *);             /* with a number if it is taken */
const char *names_common(Arena *, const char *const *name, int n);       /* what n names of the model have in common */

/* picture.c: the order of a pipeline as a picture, in a comment; "" without stages. */
const char *picture_of(const Emit *);

/* pointwise.c: functions written from expressions. */
const char *pointwise_function(Emit *, const Action *, int rank);        /* its name; of a host, its epilogue's */
void pointwise_write(Emit *);

/* repeats.c: repeats in a list of n rows; known: a repeat that is preferred to one that begins with another row. */
typedef bool RepeatKnown(const void *of, const Repeat *);
Repeat *repeats_find(Arena *, const int *row, int n, RepeatKnown *known, const void *of, int *count);

/* report.c: the memory of a rank, by class, when most is in use; gaps are bytes lost between values. */
/* thread: of each further thread; saver: added by checkpoints */
typedef struct RankMemory { int64_t total, slab, gaps, packed, work, data, base, thread, saver; } RankMemory;
RankMemory report_memory(const Emit *);
void report_print(const Emit *);                              /* prints it for the user */

/* role.c: the tables of a role. */
Role role_own(const Emit *, const Role *);       /* only the actions of its ranks, numbered in their order */
const char *role_queue(const Emit *, const Queue *);     /* its name as a string of C */
const char *role_site(const Emit *, const Action *);     /* " in gpt.ir:37:12": the call that its node comes from; "" */
int  role_makes(const Action *);                         /* how many values exist after it: not those of a start */
int  role_before(const Role *, int action);              /* how many of them come before an action of the list */
void role_add(Emit *, const Role *);                     /* adds the current program to those of the role */
void role_write(Emit *);                                 /* writes all */
const char *role_shape(const Emit *, const Slot *, int rank);             /* "float[32, 10]", as that rank holds it */
/* "float[32, 10] = float[32, 64], float[64, 10]" */
const char *role_shapes(const Emit *, const Action *, int rank);
const char *role_op(const Emit *, const Action *);           /* "MatMul", "Add+Gelu", "Mul+..+Sub" */
void role_about(const Emit *, Text *, const Action *);       /* "mlp.ir:14:3  h = MatMul(x, w1)  B B -> B" */

/* squares.c: the call of a group of sums. */
void squares_group(const Print *);

/* stage_rows.c: a row for each stage of a pipeline. */
void stage_rows_print(const Emit *);

/* stamp.c: the origin of a tree: version, model, command; plan.ir, LICENSE and copies of the files that were read. */
extern const char stamp_version[];
const char *stamp_make(Emit *, Model *, uint64_t *hash);     /* the text for README.md; hash: of the plan */

/* statement.c: the call of an action, as an expression of C over t[0], t[1], ...: its results, then its operands. */
const char *statement_of(Emit *, const Action *, int rank);
const char *statement_named(const char *text, const char *const *name); /* with names instead of t[0], t[1], ... */
const char *statement_param(const Print *, const Slot *, bool result);   /* "t[2]" */
void statement_file(Emit *, const char *file);               /* of kernels/, without the ending: the tree has it */

/* tables.c: the tables that the runtime reads: parameters, inputs, metrics. */
int tables_params(Emit *, Text *program);        /* params.c and the weights file; program: entries of RtProgram */
int tables_inputs(Emit *, Text *rows, Text *program);
void tables_metric_rows(Emit *, Text *rows, Text *program);
void tables_order_inputs(const Emit *, Text *);                            /* the inputs as model.h lists them */
uint64_t tables_key(const char *name);
/* What @init says: fill with a, normal of mean a and deviation b, or uniform from a to b; INIT_NONE after
 * explaining. */
typedef enum { INIT_NONE, INIT_FILL, INIT_NORMAL, INIT_UNIFORM } Init;
Init tables_init_of(const Value *, double *a, double *b);

/* tree.c: files in memory, then a tree on the disk, whole or not at all. */
Text *tree_file(Tree *, const char *path);
OutFile *tree_data(Tree *, const char *path);
void  tree_copy(Tree *, const char *path, const char *from);             /* a file of runtime/ or kernels/ */
void  tree_headers(Tree *, const char *name);    /* the headers that a file of kernels includes */
void  tree_kernel(Tree *, const char *name);     /* NAME_fast.c of kernels/cpu where there is one, else NAME.c */
/* an embedded file with holes filled in: names and texts in turn, NULL at the end */
void  tree_fill(Text *, const char *name, ...);
int  tree_write(const Tree *, const char *dir);

/* values.c: the table of values. */
void values_number(Emit *);
const char *values_quoted(const char *escaped);                /* as a string of C: backslashes doubled */
/* a name as a string of C: the escape of emit_comment, its backslashes doubled */
const char *values_string(Arena *, const char *name);
void values_write(Emit *);
const char *values_type_word(DType);                           /* "F32": RT_F32 */
int64_t values_slab(const Emit *), values_window(const Emit *);              /* of all programs */
/* one more item of a table, on this line or the next; line starts as 0 */
void values_pack(Text *, size_t *line, const char *item);
/* after the last: without a comma, so that formatters keep several on a line */
void values_packed(Text *);

/* wrap.c: breaks long lines of generated C. */
enum { EMIT_COLUMNS = 120 };                                  /* of a line, at most; tabs of 8 */
void wrap_lines(Text *);

#endif
