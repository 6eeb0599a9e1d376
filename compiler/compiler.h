/* From a logical graph to one program per role: the data structures of the back half, one section per file.
 *
 * A Plan hangs on the model.  Passes fill it from the top: meshes and the SBP of every value (plan, also written as
 * annotations, so that a dump holds them), transfers as nodes (boxing), what each rank holds of each value (project), the
 * list of actions (schedule), offsets (memplan).  prove reads all of it; emit prints it. */
#ifndef SBPCC_COMPILER_H
#define SBPCC_COMPILER_H

#include "ir.h"
#include "../runtime/form.h"

typedef struct Mesh Mesh;
typedef struct Place Place;
typedef struct Sbp Sbp;
typedef struct Plan Plan;
typedef struct Scale Scale;

/* main.c: options.  One table gives --help, parsing and these. */
typedef enum { TARGET_MESH, TARGET_C, TARGET_CUDA } Target;      /* TARGET_MESH: as the meshes of the model say, else C */
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
	const char **said; int nsaid;   /* options as they were given, but for those that do not change what is written */
} Options;
extern Options opt;

typedef enum { FLAG, TEXT, NUMBER, BYTES, FUNCTION } OptKind;
typedef struct Option {
	const char *name, *arg;         /* arg NULL: takes none; "[X]": may have one */
	OptKind kind;
	void *to;
	int (*set)(const char *);       /* FUNCTION */
	int64_t low, high;              /* NUMBER, BYTES */
	const char *help;
} Option;

/* manual.c: the options as text (""), as a manual page ("man"), as completion for bash ("bash"); -1: another kind. */
int manual_print(const Option *, int n, const char *kind);

/* passes.c: the passes in order, and what each needs, gives and spoils. */
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

typedef struct Pass {
	const char *name;
	int (*run)(Graph *);
	uint32_t needs, gives, drops;
	bool once;                      /* not run again on a dump in which it is done: it would see its own work, or later passes' */
	const char *does;
} Pass;

int  passes_run(Model *);           /* 0, or -1 after explaining */
void passes_list(FILE *);
bool passes_known(const char *name);
bool pass_done(const Model *, const char *name);         /* the input was a dump in which this pass was done */

/* machine.c: meshes of ranks, from @mesh or --ranks.  A place is a mesh, or later a part of one. */
enum { MESH_DIMS = FORM_MESH, RANKS_MAX = 1 << 20 };
struct Mesh {
	Name name;
	bool cuda;
	int ndim, dim[MESH_DIMS];
	int nrank;
	int first;                      /* at coordinate (i, j): first + i * dim[1] + j */
	const int *rank;                /* or rank[i * dim[1] + j]; NULL: that */
	const int *place; int nplace;   /* with it: by rank, 1 + where it stands in the mesh; 0: nowhere */
	Loc loc;
};
struct Place {
	const Mesh *mesh;
	const Arg *on;                  /* as @on says it; NULL: there is one mesh, so nothing has to be said */
};

int  machine_read(Model *, Plan *);
void machine_default(Model *);                               /* --ranks=N without @mesh is a mesh of one axis, called ranks */
void mesh_ranks(Model *, Mesh *, const int *rank);           /* sets which they are, nrank of them */
int  mesh_rank(const Mesh *, int place);
int  mesh_place(const Mesh *, int rank);                      /* -1: it is not of the mesh */
void mesh_coord(const Mesh *, int rank, int *coord);

/* places.c: who runs a node and holds a value, where there are several meshes or parts of one. */
int  places_spread(Graph *);                                 /* before the backward pass: every node says where it is */
int  places_find(Graph *, Plan *);                           /* of every node and value; -1 after explaining */
void places_new(Graph *);                                    /* nodes that took the place of others: where those were */
void places_note(Graph *, Node *);                           /* its place as an annotation */
bool places_here(const Value *, const Mesh *);                /* it is made and held on this mesh */
bool places_apart(const Place *, const Place *);             /* no rank is of both */
bool places_same(const Arg *, const Arg *);                  /* two arguments of annotations say the same */

/* figures.c: what devices and links can do, from --machine or a preset.  Everything that costs time is priced by these. */
typedef struct Wire { double latency, bytes; } Wire;         /* seconds before the first byte; bytes a second of one rank */
typedef struct Figures {
	double flops, half, bytes;      /* a second, of one rank: in float, in half precision; through its memory */
	double small, cached;           /* a value of so many bytes or fewer stays in a cache: so many bytes a second; 0: none does */
	double start;                   /* seconds before an operator or a copy begins */
	double cores;                   /* for the ranks of one computer; 0: one for each */
	double turn;                    /* seconds that each rank that shares a core adds to the latency of links */
	double memory;                  /* bytes that a rank may use; 0: no limit */
	bool nccl;                      /* transfers are those of runtime/comm_nccl.c: few kinds */
	double overlap;                 /* share of the transfers of parameters and gradients that computing hides */
	Wire axis[MESH_DIMS];           /* between ranks along an axis of the mesh */
} Figures;
extern Figures figures;
int  figures_read(const char *file_or_preset, const Mesh *); /* NULL: the preset of the target; -1 after explaining */
double figures_through(double bytes);                        /* seconds in which a rank reads or writes so many bytes of one value */
int  figures_probe(FILE *);                                  /* probe.c: measures this computer, writes a file of figures */

/* budget.c: plans that fit into the memory of a rank. */
typedef struct Budget {
	double limit;                   /* bytes that values may take by the solver's count; 0: any number */
	int64_t bytes;                  /* of a rank, as a trial found; 0: none was needed */
	double seconds;                 /* of a step, by the plan of the main program */
	double held;                    /* by the solver's count, where memory is limited */
	int report;                     /* in a trial: where the numbers go; -1: this is none */
} Budget;
extern Budget budget;
typedef struct BudgetTry { int from; long child; } BudgetTry;        /* child 0: none was started */
bool budget_start(BudgetTry *, double limit);                /* true in the child, which goes on as the compiler does, in silence */
bool budget_finish(BudgetTry *, int64_t *bytes, double *seconds);    /* waits for it; false: there is no such program */
void budget_tell(int64_t bytes, double seconds);             /* in a trial that ends before there is a program */
bool budget_small(double bytes);                             /* so much less than the budget that no trial is needed */
int  budget_find(const Mesh *, double least, double most);   /* sets the limit; returns 0 in every trial too; -1 after explaining */
void budget_report(const Plan *, int64_t bytes);             /* in a trial */

/* compare.c: what ranks and @recompute gain. */
bool compare_plain(const Graph *, Loc recompute);            /* true in a trial that does without @recompute */
void compare_ranks(Graph *, Plan *);
void compare_tell(const Plan *, int64_t bytes);              /* warns, when the program is written */

/* sbp.c: how a value lies along each axis of a mesh. */
typedef enum { SBP_B, SBP_S, SBP_P, SBP_ANY } SbpKind;        /* SBP_ANY: left to the compiler; in pins, and while a plan is being made */
struct Sbp {
	SbpKind kind;
	int axis;                       /* S: of the tensor */
	int leaf;                       /* S: 0, or 1 + the factor of the axis that is cut (Value.factors), major first */
	const FormReach *reach;         /* S: what windows reach, by the share of another axis (sbp_reach); only of what a node reads, never of how a value is kept */
	Reduce red;                     /* P */
};
/* The same as a form: what every rank holds of v. */
Form  sbp_form(const Value *v, const Sbp *, const Mesh *);
bool  sbp_equal(const Sbp *, const Sbp *, int ndim);
/* Entry k.  Only what ranks hold counts: a cut along the first factor of an axis that it divides is one of the axis. */
Sbp   sbp_plain(const Value *, const Sbp *, const Mesh *, int k);
const char *sbp_text(const Sbp *, int ndim);                 /* "S(0) B", "S(2/0) P(max)": valid until the eighth call after it */
const FormReach *sbp_reach(FormReach);                       /* the one that all who say the same share; NULL: it is the share itself */
const char *sbp_reach_text(const FormReach *);               /* "8, 1, 0, 0, 8, 1, -1, 1" */
void  sbp_note(Graph *, Value *, const Mesh *);              /* its SBP as an annotation */
const Annot *sbp_annot(const Sbp *, int ndim);               /* a form as an annotation, which others may share */
void  sbp_note_as(Graph *, Value *, const Annot *);          /* of its SBP */

/* signatures.c: the legal ways to run a node. */
typedef struct Sig {                                         /* along one axis of a mesh */
	Sbp *in, *out;
	bool run;                       /* a rank's part is one run, for its kernel counts from there */
	bool counted;                   /* its kernel divides by how many all ranks have */
	bool define;                    /* the node is replaced by its definition, in which its operands and results lie like this */
	int64_t cuts, of;               /* with opt.chunks: into how many parts it cuts so many chunks of a sum; 0: it cuts none */
} Sig;
typedef struct NdSig { int ndim; const Sig *sig[MESH_DIMS]; Sbp **in, **out; } NdSig;    /* in[i][k]: of operand i along axis k of the mesh */
Sig   *sbp_signatures(Node *, int parts, Arena *, int *n);   /* "everything B" is the first */
NdSig *sbp_product(Node *, const Mesh *, const int *with, Arena *, int *n);      /* all mixtures of these along the axes of a mesh that forms can say; with: of axes_bundle */
NdSig *sbp_together(const Node *, const Sig *const *, int ndim, Arena *);        /* one of them; NULL: no form can say it */
bool   sbp_can(const Sbp *, int ndim);                       /* a form can say it */
bool   sbp_leaves(const FactorRule *, int operand, const Value *, int factor, int *axis, int *from, int *n);    /* which factors of an axis stand for one of the rule */
bool   sbp_legal(Node *, const Mesh *, Arena *);             /* operands and results lie as one of its signatures says */
const char *sbp_sig_text(const Node *, const Sig *);         /* "S(0), B -> S(0)" */

/* axes.c: axes of a mesh that are too many to be mixed with each other. */
enum { AXES_FREE = 4 };                                      /* so many axes, or bundles of them, are */
typedef bool AxesAlike(const void *arg, int j, int k);       /* may two axes always be cut alike? */
bool axes_many(const int *dim, int ndim);                    /* of a mesh: more than are free */
int  axes_bundle(const Mesh *, AxesAlike *, const void *arg, int *with);     /* by axis: the first of its bundle; returns how many bundles have more than one rank */
bool axes_next(int ndim, const int *with, const int *len, int *at);  /* the next of len[k] choices along each axis; false: it was the last */

/* chunks.c: sums that do not depend on the number of ranks. */
enum { CHUNKS = 8, CHUNKS_MOST = 64 };
int     chunks_read(Model *);                                /* --deterministic or @any_ranks, and says so in the model; -1 after explaining */
bool    chunks_asked(const Model *);                         /* the same before any pass has run */
bool    chunks_allow(Node *, const FactorRule *, int factor, int leaf, int parts, int64_t *of);  /* cut so, it gives the same bits; of: chunks of a sum that is cut, else 0 */
bool    chunks_carry(const Node *);                          /* terms go through it unchanged */
int64_t chunks_of(Node *, Arena *, int *operand, int *axis); /* of its sum, on all ranks together, and where the letter is that they are of */

/* pins.c: what the user says of values and of nodes. */
typedef struct NodePin { Sbp **in, **out; } NodePin;         /* an entry per axis of the mesh; NULL: free */
typedef struct Pins {
	Sbp **value;                    /* by value id: an entry per axis of the mesh, SBP_ANY where free; NULL: not pinned */
	NodePin **node;                 /* by index in graph->node; NULL: not pinned */
} Pins;
Pins *pins_read(Graph *, const Mesh *);                      /* NULL after explaining */
NodePin *pins_node(Node *, const Mesh *, Arena *, int *bad);
bool  pins_allow(const Node *, const NodePin *, const Sig *, int k);     /* along axis k of the mesh */

/* assign.c: the forms of all values, by the solver (solve.h). */
int    sbp_solve(Graph *, const Plan *, const Mesh *);       /* of the values that are made and held there */

/* choice.c: one signature for a node. */
bool   sbp_lies_alike(const void *node, int j, int k);       /* all that is settled of its operands and results, along two axes of the mesh */
bool   sbp_served(const Node *, const Sig *);                /* the passes behind this one can hold and run it */
NdSig *sbp_choose(Node *, const Mesh *, bool define, Arena *);   /* the cheapest, given operands and settled results; define: it may be replaced by its definition */

/* define.c: nodes that run by their definitions. */
int define_nodes(Graph *);                                   /* those that are marked, after the SBP of every value is chosen; -1 after explaining */
typedef struct Definition Definition;                        /* of a node, written out on its own */
Definition *define_open(const Node *);
double define_cost(Definition *, const NdSig *, const Mesh *);       /* seconds by a signature that takes the definition */
void define_close(Definition *);
bool sbp_defines(const NdSig *, const Mesh *);               /* does it? */

/* local.c: the node that a rank runs, whose operands and results have these types (NULL: their own).  NULL: it has nothing to do, for an
 * operand that is cut is empty there; its partial results are the neutral element of their reduction. */
/* at: the first index along each axis of the parts of operands, then of results; NULL: nothing is cut that needs it. */
Node *local_node(const Node *, Type *const *in, Type *const *out, const int64_t *const *at, const int64_t *origin, Arena *);  /* origin: by axis of what op_origin names; NULL: kernels find it */

/* match.c: patterns of nodes, written as functions in the language (patterns.ir). */
enum { MATCHED_MAX = 64 };
typedef struct Match {
	Node *root;
	const char *name;               /* of the pattern */
	Node *node[MATCHED_MAX]; int n; /* the nodes that it covers, from the root on */
	struct Frame *top;
	Arena *arena;
	bool (*accept)(void *, struct Match *);
	void *arg;
} Match;
void   match_read(const char *text, const char *const *names, Map *roots);   /* roots: operator -> bits of the names that may end with it */
bool   match_try(Node *root, const char *name, bool (*accept)(void *, Match *), void *arg);
Value *match_hole(const Match *, const char *name);          /* what an operand of the pattern stands for; NULL */
bool   match_near(double, double);

/* lift.c, lift_attention.c: what rules ask and do. */
typedef struct Lift Lift;
bool   lift_replaceable(Lift *, const Match *);              /* nobody else needs what would go */
Value *lift_put(Lift *, const Match *, const char *op, Value *to, int nin, Value **in, void (*attrs)(Node *, const void *), const void *arg);
void   lift_int(Node *, const char *name, int64_t), lift_float(Node *, const char *name, double);
bool   lift_same_type(const Value *, const Value *);
int    lift_rank(const Value *);                             /* -1: unknown */
Dim    lift_aligned(const Value *, int rank, int i);         /* axis i when aligned at the right with a value of that rank */
const Tensor *lift_constant(const Value *);
const Tensor *lift_value(Lift *, Value *, int depth);        /* contents that depend on constants only, however large */
bool   lift_scalar(const Value *, double *);                 /* a floating constant of one element */
bool   lift_filled(const Tensor *, double);
bool   lift_attention(void *, Match *), lift_rotary(void *, Match *);
Value *lift_once(Lift *, Value *from, int kind, Value *(*make)(Graph *, Value *, const void *), const void *arg);  /* made once, right after `from` */

/* train.c: reads @train. */
typedef struct Training {
	Value *loss;
	int64_t steps, epochs, seed;    /* epochs: 0, or instead of steps */
	bool ema;                       /* w.ema is an average of parameter w */
	double rate;                    /* of learning, before any schedule */
	int64_t times;                  /* micro-batches of a step */
	int64_t total, warmup;          /* steps of the schedule, if it has an end, and of its warm-up; 0: none */
	const Arg *data;                /* data: points(classes: 10, noise: 0.5) */
	Loc loc;
} Training;
const char *train_defaults(const Model *, const Training *);  /* "100 steps (@train steps, --steps)": what nobody wrote; NULL: nothing */
int train_read(Model *, Training *);                         /* 1: there is a training section; 0: none; -1 after explaining */
/* whole.c */
enum { WHOLE_SAME = -1, WHOLE_OTHER = -2, WHOLE_UNKNOWN = -3 };
Model      *whole_model(Model *);                            /* a copy for all samples of a batch that comes in micro-batches, else NULL */
bool        whole_is(const Model *);                         /* such a copy? */
int  whole_nothing(const Graph *);                            /* what is empty in a micro-batch alone is an error: -1 after explaining */
void        whole_bind(const Model *, bool all);             /* the batch axis to all samples, and back */
int         whole_axis(const Graph *, const Value *, int64_t times);    /* along which there is times as much of it in all */
const char *whole_text(const Graph *, const Value *);        /* its type there */
bool        whole_parts(const Graph *, const Value *, const Value *);   /* are they of different types there? */
const Tensor *whole_data(const Graph *, const Value *);      /* of a constant; its own where it is not known there */
bool        whole_differs(const Graph *, const Value *);     /* is it a constant with another value there? */
void        whole_constants(Graph *);                        /* what nodes compute with has the value that it has for all samples */

void train_bind_batch(const Model *);                        /* batch: N gives the first symbolic dimension of the inputs its value */
int  train_check_batch(const Model *);                       /* -1 after an error: batch contradicts a number in the model, or --set */

/* micro.c: a step in several micro-batches that means the same as one. */
int64_t micro_times(const Model *);                          /* how many, by @train; 1: the whole batch at once */
int  micro_check(const Model *);                             /* -1 after saying what does not fit */
int  micro_means(Graph *, int64_t times);                    /* means over the batch become sums divided by its size */
int  micro_grad(Graph *, int64_t times, Value *loss, Value **want, int nwant, Value **grad, Scale *);   /* as grad_build */
void micro_inherit(Node *, const Node *by);                  /* runs when `by` runs */
bool micro_begins(const Node *), micro_updates(const Node *);        /* runs once, before or after the body; else in the body */

/* calc.c: arithmetic as nodes. */
typedef struct Calc { Graph *g; Loc loc; DType dt; bool bad; } Calc;     /* dt: of numbers; bad: something was refused */
Value *calc_num(Calc *, double);
Value *calc_op1(Calc *, const char *op, Value *);
Value *calc_both(Calc *, const char *op, Value *const in[2]);
#define calc_op2(m, op, ...) calc_both((m), (op), (Value *[2]){ __VA_ARGS__ })
Value *calc_scaled(Calc *, Value *, double factor);
Value *calc_cast(Calc *, Value *, DType);
double calc_given(const Arg *call, const char *key, double otherwise);   /* a number among the arguments of a call */

/* rate.c: the learning rate, as nodes. */
Value *rate_schedule(Calc *, const Arg *, double lr);        /* what lr is multiplied with, in double; NULL: always 1 */
Value *rate_step(Calc *);                                    /* the number of the step, 0 first */
Value *rate_step_input(Graph *, Loc);                        /* the same as the int64 input train.step */

int train_split_means(Graph *, int64_t times);                              /* losses that are means become sums divided by counts */

/* programs.c: step, eval and infer over one set of parameters. */
int    programs_make(Model *);                               /* adds eval and infer to m->others */
void   programs_average(Model *);                            /* eval and infer read averages of parameters, where there are any */
int    programs_report(Graph *);                             /* of the training step: metrics behind the loss, as outputs */
int    programs_alone(Model *);                              /* the model itself becomes infer */
int    programs_resolve(Model *);                            /* once more for what a dump holds */
Value *programs_same(const Model *, const Value *);          /* the value of the main program that this kept value is; NULL */
void   programs_pin(Model *);

/* precision.c: half precision, as Casts. */
void precision_mark(Model *);                                /* before operators are replaced by their definitions */

/* scale.c: the loss scale of float16.  Where a Scale * is NULL there is none. */
struct Scale {
	Calc m;
	const Arg *call;                /* fp16(loss_scale: 65536) */
	Value *scale, *good, *taken;    /* kept */
	Value *finite;                  /* of this step: the update happens */
};
Scale *scale_begin(Graph *, const Annot *train);             /* NULL: the training section asks for none */
int    scale_seed(Scale *, const Value *loss);               /* the backward pass that was built from loss starts from the scale */
Value *scale_up(Scale *, Value *grad);                       /* a gradient that was not scaled */
int    scale_gradients(Scale *, Value **param, Value **grad, int n);     /* each becomes what it would be without a scale */
int    scale_end(Scale *);                                   /* after all updates */

/* optimizer.c: clipping and updates, as nodes. */
Value *optimizer_state(Graph *, Name, Type *, Loc, double start);        /* a value that lives from step to step */
int optimizer_build(Graph *, const Annot *train, Value **param, Value **grad, int n);

/* cost.c: flops and bytes to seconds; what a transfer moves. */
double cost_flops(const Node *);                             /* of the whole value, all ranks together */
double cost_node(Node *, double share);                      /* of a device that does this share of the work */
double cost_run(const Node *, Sbp *const *in, Sbp *const *out, const Mesh *, uint64_t inside);       /* by forms: in[i][k] of operand i along axis k of the mesh */
uint64_t cost_inside(const Node *, const uint64_t *fused);   /* fused: of cost_fused */
uint64_t *cost_fused(const Graph *, Arena *);                /* by the first result of a node: which operands and results pointwise nodes do not read and write in memory */
double cost_part(const Value *, const Sbp *, const Mesh *);  /* bytes of the largest part */
double cost_move(const Value *, const Sbp *from, const Sbp *to, const Mesh *);       /* of a transfer, whatever it goes through */
double cost_step(const Value *, const Sbp *from, const Sbp *to, const Mesh *);       /* of one that changes along one axis of the mesh only */

/* boxing.c */
const char *boxing_how(const Node *);                        /* what a Boxing node is called, by the forms of operand and result */
const char *boxing_made(const Node *);                       /* where the value that it moves is made: "mlp.ir:14:3" */

/* transfer.c: one transfer: its name, groups, volume and time. */
bool transfer_same_cut(const FormCut *, const FormCut *);
_Noreturn void transfer_no_room(void);                                   /* ends with EXIT_LIMIT: the pieces of a part do not fit into memory */
typedef struct Transfer {
	const char *how;                /* all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, scatter, gather, reduce, send, slice, zero_fill, none */
	bool one_mesh, local;           /* between the same ranks in one mesh; nothing is moved */
	unsigned axes;                  /* on one mesh: bit k when the forms differ along axis k; groups are ranks that differ only there */
	int64_t total, busiest;         /* elements that all ranks receive, and that the busiest receives (or, between meshes, sends) */
} Transfer;
Transfer transfer_count(const Form *from, const Form *to, bool exact);   /* exact: rank by rank, even where one can speak for all */
const Transfer *transfer_of(const Form *from, const Form *to);           /* remembered */
bool transfer_nccl(const Form *from, const Form *to, int64_t elem_bytes);        /* runtime/comm_nccl.c can do it, between all ranks */
double transfer_time(const Transfer *, const Form *from, const Form *to, int64_t elem_bytes);
double transfer_seconds(const Form *from, const Form *to, int64_t elem_bytes);
/* What is remembered of a pair of forms; a new entry is NULL. */
typedef struct FormPair FormPair;
typedef struct FormPairs { FormPair **list; int n, cap; } FormPairs;
void **transfer_pair(FormPairs *, const Form *from, const Form *to, int64_t more);

/* route.c: the quickest way from form to form. */
typedef struct Route { int n; Form *form; double seconds; } Route;       /* the forms after the first; the last is the end */
const Route *route_find(const Form *from, const Form *to, int64_t elem_bytes);   /* remembered */

/* project.c: what each rank holds. */
typedef struct Forms {              /* those of all values of all programs, each once */
	Form *form;
	int64_t *most;                  /* elements of the largest part */
	int n, nmost;
} Forms;
typedef enum { KEEP_INPUT, KEEP_PARAM, KEEP_STATE, KEEP_CONST, KEEP_GRAD, KEEP_ACT } Keep;
/* A value as ranks hold it.  Slots of values that are updated in place are one. */
typedef struct Slot {
	Value *v;
	int id;                         /* t<id> in generated code */
	int rank;
	int64_t dim[RANK_MAX];          /* logical */
	int form;                       /* index into plan->forms: what each rank holds of it */
	int64_t bytes;                  /* of the largest shard */
	Keep keep;
	bool window;                    /* peers read it */
	struct Slot *view;              /* the same bytes seen as another shape: no action makes it; NULL: a value of its own */
	struct Slot *store;             /* the slot whose memory this is: itself, that of the value it updates, is a view of, or takes over */
	int64_t offset;
	int entry;                      /* emit_values.c: its number in generated code */
	int first, last;                /* actions of the step between which it is live; -1 and nact: always */
} Slot;

/* fuse.c: nodes that run as one action, in the order of the graph. */
typedef struct Group { Node **node; int nnode; } Group;

/* schedule.c: one list of actions per role. */
bool schedule_tells(const Value *);                          /* reported at the end of a step, so it is in memory then */
typedef enum { ACT_LOAD, ACT_COMPUTE, ACT_COLLECTIVE, ACT_START, ACT_FINISH, ACT_SAVE } ActKind;        /* a transfer: all of it, or one of its ends */
typedef struct Action {
	ActKind kind;
	int id;                         /* a<id> in generated code: the position in the list */
	Node *n;                        /* compute, collective: the last of the group */
	Node **node; int nnode;         /* all of them */
	Node *host;                     /* the product whose epilogue the others are; NULL: none.  Its operands are taken first */
	Node *mate;                     /* the first of two that one kernel does, n is the second; NULL: none */
	Slot *under;                    /* with it: an operand on which a result of its shape may lie */
	Slot **take; int ntake;         /* read; NULL entries: operands left out */
	Slot **make; int nmake;
	const char *how;                /* of a transfer; those that no peer takes part in are of kind compute */
	int other;                      /* start, finish: the action that is the other end */
	bool elementwise;               /* an element of a result depends on the operands' elements at its own place only: a result may lie on them */
} Action;
bool schedule_all_reduce(const Action *);                    /* peers read its result, too, and it may lie on its operand */
typedef struct Role {
	int id;
	int nrank, *rank;               /* the ranks that play it */
	Action *step; int nstep;
	int body, after;                /* actions body .. after - 1 are done once per micro-batch */
} Role;

double schedule_flops(const Plan *, const Action *);         /* of a rank */

/* bucket.c: transfers early, and several as one. */
void bucket_role(Graph *, Role *);
bool bucket_tied(const Action *transfer, const Action *);    /* they must stay in their order */

/* overlap.c: a start and a finish of each transfer that computing can hide. */
void overlap_role(Graph *, Role *);

/* memplan.c */
typedef struct Layout {
	int64_t slab, window;
	int64_t kept;                   /* of the slab, from 0: what lives from step to step */
	int peak;                       /* the busiest action; -1: between steps */
	int64_t by[KEEP_ACT + 1];       /* what lives there, by class */
	int64_t bound;                  /* all of that: no plan of this schedule needs less */
	int64_t packed;                 /* at the end of the slab: weights that stay packed */
} Layout;

/* packed.c: a kept matrix, k x n, whose packed form stays at an offset; its strides. */
typedef struct Packed { Slot *w; int64_t k, n, row, col, offset, bytes; } Packed;

struct Plan {
	Training train;
	bool training;
	Mesh **mesh; int nmesh;
	Mesh *main;                     /* the default mesh */
	Mesh *world;                    /* all ranks; the default mesh when there is no other */
	Place **place; int nplace;      /* all that something is on */
	Forms *forms;                   /* the main program's, for all */
	Slot **slot;                    /* by value id; NULL: never in memory (a constant written into the code) */
	int nslot;                      /* length of the array */
	Group *group; int ngroup;       /* in the order in which they run */
	Role *role; int nrole;
	int *role_of;                   /* by rank */
	Layout layout;
	Packed *packed; int npacked;
	int64_t batch;
	Value *count;                   /* eval: what the loss is divided by */
	Slot **kept; int nkept;         /* main program: what lives from step to step, of all programs, in the order of offsets */
	int next;                       /* the next slot's id, over all programs */
};

Slot   *plan_slot(const Plan *, const Value *);
bool    fuse_room(const Plan *, const Value *);                          /* a product may be written there before its epilogue has run */
void    project_roles(Graph *);                                          /* once the forms of all programs are known */
Slot   *slot_value(Slot *);                                              /* whose bytes a view shows; itself otherwise */
int64_t slot_len(const Plan *, const Slot *, int axis, int rank);        /* of the shard of one rank */
void    slot_begin(const Plan *, const Slot *, int rank, int64_t *at);    /* the first index along each axis of what a rank holds */
int64_t slot_elements(const Plan *, const Slot *, int rank);
const Form *slot_form(const Plan *, const Slot *);
bool    slot_cut(const Plan *, const Slot *);                            /* some rank does not hold all of it */
bool    slot_alike(const Plan *, const Slot *, const Slot *);            /* ranks hold the same indices of both, which have one shape */

/* emit.c: files in memory, then a tree on the disk, whole or not at all. */
typedef struct Text { char *s; size_t n, cap; } Text;
void text_add(Text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_raw(Text *, const char *s, size_t n);
typedef struct Piece { const void *data; size_t bytes; } Piece;
typedef struct OutFile { const char *path; Text text; Piece *piece; int npiece; } OutFile;   /* the text, then the pieces */
typedef struct Tree { Arena *arena; OutFile **file; int nfile; } Tree;
Text *tree_file(Tree *, const char *path);
OutFile *tree_data(Tree *, const char *path);
void  tree_copy(Tree *, const char *path, const char *from);             /* a file of runtime/ or kernels/ */
void  tree_headers(Tree *, const char *name);                            /* those that a file of kernels includes */
void  tree_kernel(Tree *, const char *name);                             /* NAME_fast.c of kernels/cpu where there is one, else NAME.c */
/* The text of an embedded file with holes filled in: names and texts in turn, NULL at the end. */
const char *emit_embedded(const char *name);                             /* the text of an embedded file */
void  template_fill(Text *, const char *name, ...);
const char *emit_comment(Arena *, const char *name);                     /* a name of the model, fit for a comment */
const char *emit_from(Arena *, const Node *);                            /* "mlp.ir:14" */
int  tree_write(const Tree *, const char *dir);                          /* emit_make.c */

/* What is printed from and into.  A file of kernels/ is part of the tree when a call of it was printed. */
typedef struct EmitMove { int from, to; DType type; bool here; } EmitMove;      /* forms by their numbers in the tree; here: no peer takes part */
typedef struct Emit {
	Graph *g;                               /* of the program that is being written */
	Plan *plan;
	Slot **value; int nvalue, nkept;        /* all values by number; the first nkept stand in params.c */
	bool *checked;                          /* whether a schedule checks the bytes of an entry */
	struct Sched *sched;                    /* by role: what is printed so far */
	const Model *part[3]; int npart;        /* all programs; the main one first */
	Tree tree;
	Target target;
	struct Pointwise *pw; int npw;          /* functions written from expressions */
	Map pwbyname;                           /* body -> name of its function */
	Name *kernel; int nkernel;              /* files of kernels/ */
	bool halves;                            /* something is rounded to half precision */
	int *form; int nform;                   /* forms that the runtime is told of: indices into plan->forms */
	EmitMove *move; int nmove;           /* transfers, each once */
	int64_t work_shared, work_each;         /* scratch: the largest need of the calls that are printed */
} Emit;
const char *emit_part(const Emit *);                         /* "step", "eval", "infer" */
int  emit_part_id(const Emit *);                             /* 0, 1, 2 */
const char *emit_banner(const Emit *, const char *what);
extern const char *const emit_keep[];                        /* names of Keep */
DType emit_stored(DType);                                    /* half precision is held as float, whose numbers are rounded */
const char *emit_ctype(DType);                               /* NULL: none in this back end */

/* emit_calls.c: how kernels are called.  What a call is printed from: */
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
enum {
	KERNEL_SEVERAL = true,          /* call prints statements that set `code`, not one expression */
	KERNEL_COUNTS = 2,              /* it takes a part of the axis that it counts along (.origin of the row) */
	/* For chunks.c: an element of a result has the same bits however much there is of an axis that is not summed ... */
	KERNEL_EACH = 4,                /* whichever */
	KERNEL_LEADING = 8,             /* of those before its own (attribute axis, else the second) */
	KERNEL_FIRST = 16,              /* of the first of its first operand */
	KERNEL_CHUNKS = 32,             /* it has a form that sums in chunks */
	KERNEL_RUNS = 64,               /* the same of the axis that it counts along */
	KERNEL_STATE = 256,             /* results 1 and 2 may lie on operands 3 and 4: they are what that state is next */
	KERNEL_ROWS = 128               /* with KERNEL_FIRST: and of the first of its other operands */
};
typedef struct Kernel {
	const char *name;               /* as the row of the operator has it */
	const char *file;               /* in kernels/, without the ending */
	unsigned reads;                 /* bit i: operand i is read at run time; the last bit stands for all that follow */
	bool (*can)(const Node *);
	void (*call)(const Print *);
	int how;                        /* of the bits above */
} Kernel;
/* A kernel that does two nodes in one pass over what both read.  Its action takes the operands of the first, those that the second has
 * beside them, and makes the results of both; the result of the second may lie on the first operand. */
typedef struct KernelPair {
	const char *first, *second;     /* kernels, as the rows of the operators have them */
	const char *file;
	bool (*can)(const Node *first, const Node *second);
	void (*call)(const Print *);    /* the node is the first */
} KernelPair;
const KernelPair *emit_pair(const Node *first, const Node *second);      /* NULL: none */
const Kernel *emit_kernel(const Node *);                     /* NULL: none */
bool emit_boxing(const Node *);                              /* a transfer */
void emit_transfer(const Print *);                           /* its call */
int  emit_form(Emit *, const Slot *);                        /* 1 + its number among the forms of the tree; 0: every rank has all of it */
const char *emit_origin(const Print *, const Slot *, int axis);          /* text: where this rank's part of an axis begins */
int  emit_bits(const Value *);                               /* of one element */
bool emit_counts(const Node *);                              /* its kernel takes a part of the axis that it counts along, or divides by the length of */
bool emit_has(const Node *);                                 /* there is a kernel or an expression for it */
bool emit_can(Node *);                                       /* false after err_at: this back end has no kernel for it */
bool emit_reads(const Node *, int operand);                  /* at run time; false for shapes, axes and literals */

/* emit_tables.c: what the runtime reads. */
int emit_params(Emit *, Text *program);                      /* params.c and the weights file; program: entries of RtProgram */
int emit_inputs(Emit *, Text *rows, Text *program);
void emit_metric_rows(Emit *, Text *rows, Text *program);
uint64_t emit_key(const char *name);
/* What @init says: "fill" with a, "normal" of mean a and deviation b, or "uniform" from a to b.  NULL after explaining. */
const char *emit_init(const Value *, double *a, double *b);

/* emit_values.c: the table of values. */
void emit_number(Emit *);
const char *emit_quoted(const char *escaped);                /* as a string of C: backslashes doubled */
const char *emit_string(Arena *, const char *name);          /* a name as a string of C: the escape of emit_comment, its backslashes doubled */
void emit_values(Emit *);
const char *emit_type_word(DType);                           /* "F32": RT_F32 */
void emit_order_inputs(const Emit *, Text *);                            /* what model.h says of them */
int64_t emit_slab(const Emit *), emit_window(const Emit *);              /* of all programs */
void emit_pack(Text *, size_t *line, const char *item);      /* one more item of a table, on this line or the next; line starts as 0 */
void emit_packed(Text *);                                     /* after the last: without a comma, so that formatters keep several on a line */

/* emit_blocks.c: a list of rows, cut into stretches of `period` rows that are repeated `times` times. */
typedef struct Repeat { int from, period, times; } Repeat;
Repeat *emit_repeats(Arena *, const int *row, int n, int *count);

/* emit_schedule.c: the tables of a role. */
Role emit_own(const Emit *, const Role *);                   /* with the actions that its ranks do, numbered as they do them */
int  emit_schedule(Emit *, const Role *);                    /* adds the present program to those of the role; -1 after explaining */
void emit_schedules(Emit *);                                 /* writes all */
const char *emit_param(const Print *, const Slot *, bool result);        /* "t[2]" */
void emit_file(Emit *, const char *file);                    /* of kernels/, without the ending: the tree has it */
const char *emit_shape(const Emit *, const Slot *, int rank);             /* "float[32, 10]", as that rank holds it */
const char *emit_shapes(const Emit *, const Action *, int rank);         /* "float[32, 10] = float[32, 64], float[64, 10]" */
const char *emit_op(const Emit *, const Action *);           /* "MatMul", "Add+Gelu", "Mul+..+Sub" */
void emit_about(const Emit *, Text *, const Action *);       /* "mlp.ir:14:3  h = MatMul(x, w1)  B B -> B" */

/* emit_pointwise.c, emit_cuda.c, emit_make.c */
bool emit_literal(const Value *);                            /* a scalar constant: written into the text */
const char *emit_pointwise(Emit *, const Action *, int rank);  /* the name of its function; of a host, that of its epilogue */
void emit_kernels(Emit *);
void emit_cuda(Emit *, const char *includes, const char *functions, const char *launchers);
void emit_make(Emit *, const char *made);
/* emit_stamp.c: who wrote the tree, from what, by which command; plan.ir, LICENSE and the copies of what was read. */
extern const char sbpcc_version[];
const char *emit_stamp(Emit *, Model *, uint64_t *hash);     /* what README.md says of it; hash: of the plan */
void emit_print(const Model *, Text *);                      /* the plan, without bytes that C or make could take for something else */
uint64_t emit_hash(const Text *);

/* emit_report.c: the memory of a rank, by what it holds when most is in use; slab - bound is lost between values. */
typedef struct RankMemory { int64_t total, slab, gaps, packed, work, data, base, thread, saver; } RankMemory;   /* thread: of each further one; saver: more with checkpoints */
RankMemory emit_memory(const Emit *);
void emit_report(const Emit *);                              /* told to the user */
/* emit_plan.c, emit_html.c: plan.json and report.html. */
void emit_turn(Emit *, const Model *);                       /* from here on of this program (emit.c) */
void emit_plan(Emit *), emit_html(Emit *);

/* The passes. */
int bind_run(Graph *), train_run(Graph *), micro_run(Graph *), plan_run(Graph *), boxing_run(Graph *), project_run(Graph *);
int fuse_run(Graph *), schedule_run(Graph *), memplan_run(Graph *), packed_run(Graph *), prove_run(Graph *), emit_run(Graph *);
int precision_run(Graph *), mode_run(Graph *), lower_run(Graph *), recompute_run(Graph *), transpose_run(Graph *), params_run(Graph *), fold_run(Graph *), lift_run(Graph *), factors_run(Graph *);
Value *params_gradient(const Graph *, const Value *param);    /* NULL: it has none */
void params_share(Graph *, Value *param, const Value *grad);  /* its gradient is this value, which has another name */
bool *params_state(const Graph *);                            /* by value id: is it a running statistic? */
/* What of an .onnx file is trained, and what is not: names by kind, and recorded parameters that it does not hold. */
typedef enum { PARAM_CONSTANT, PARAM_TRAINED, PARAM_FROZEN, PARAM_STATE, NPARAM } ParamKind;
typedef struct Params { const char *by; Name *name[NPARAM]; int n[NPARAM]; Name *missing; int nmissing; } Params;
void  params_report(const Model *);
int   mode_training(Graph *);                                 /* mode.c: what a training step means where that is unsaid */
bool  params_named(const Model *, Name);                      /* by @param */
bool  params_torch(const Graph *);                            /* one of PyTorch's exporters wrote it */

/* looks.c: what an initialiser of an .onnx file seems to be. */
typedef struct Looks { bool weight; const char *why; } Looks;   /* why: what speaks against a weight, or that nothing speaks for it; NULL: it surely is one */
Looks looks_of(const Graph *, const Value *);                   /* of a file of TorchScript's exporter */
const char *looks_numbers(const Value *);                       /* by its numbers alone why it is no weight; NULL: it may be one */

/* explain.c */
void explain(const Model *, const char *what);
void explain_read(Model *, const char *what);                /* before any pass: whether an annotation may speak of it */

#endif
