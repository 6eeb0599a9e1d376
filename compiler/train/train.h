/* From a model to a training step: trained parameters, loss, backward pass, update, micro-batches. */
#ifndef SBPCC_TRAIN_H
#define SBPCC_TRAIN_H

#include "target/target.h"

typedef struct LossScale LossScale;

/* params.c: which initialisers are trained, frozen, state or constants. */
int params_run(Graph *);
Value *params_gradient(const Graph *, const Value *param);    /* NULL: it has none */
void params_share(Graph *, Value *param, const Value *grad);  /* records a gradient that has another name */
bool *params_state(const Graph *);                            /* by value id: is it a running statistic? */
const Value *params_owner(const Graph *, const Value *);      /* by name: w for w.grad and w.m; NULL: none */
/* The initialisers of an .onnx file by kind; missing: recorded parameters that the file does not hold. */
typedef enum { PARAM_CONSTANT, PARAM_TRAINED, PARAM_FROZEN, PARAM_STATE, NPARAM } ParamKind;
typedef struct Params { const char *by; Name *name[NPARAM]; int n[NPARAM]; Name *missing; int nmissing; } Params;
void  params_report(const Model *);
bool  params_named(const Model *, Name);                      /* by @param */
bool  params_torch(const Graph *);                            /* one of PyTorch's exporters wrote it */
bool  params_script(const Graph *);                           /* README's export wrote it by that of TorchScript */

/* guess.c: whether an initialiser of an .onnx file looks like a weight. */
typedef struct Guess { bool weight; const char *why; } Guess; /* why: the evidence; NULL: certain */
enum { USE_ANGLE = 1, USE_OTHER = 2, USE_STATE = 4 };         /* by Sin and Cos; otherwise; as state of an operator */
Guess guess_of(const Graph *, const Value *, const uint8_t *use);     /* for files of TorchScript; use: by value id */
const char *guess_numbers(const Value *);                     /* why its contents are not a weight; NULL: they may be */

/* mode.c: training mode of batch norm and dropout where the model does not give it. */
int mode_run(Graph *);
int mode_training(Graph *);

/* train.c: reads @train; adds loss, backward pass and update. */
int train_run(Graph *);
typedef struct Training {
	Value *loss;
	int64_t steps, epochs, seed;    /* epochs: 0, or instead of steps */
	bool ema;                       /* w.ema is an average of parameter w */
	double rate;                    /* the learning rate before any schedule */
	int64_t microbatches;           /* micro-batches of a step */
	int64_t total, warmup;          /* steps of the schedule, if it has an end, and of its warm-up; 0: none */
	const Arg *data;                /* data: points(classes: 10, noise: 0.5) */
	Loc loc;
} Training;
const char *train_defaults(const Model *, const Training *); /* settings left at their defaults, as text; NULL: none */
void train_bind_batch(const Model *);                        /* batch: N binds the first symbol of the inputs */
int  train_check_batch(const Model *);                       /* -1 after err_at: batch contradicts the model or --set */
int  train_split_means(Graph *, int64_t microbatches);       /* losses that are means become sums divided by counts */

/* programs.c: step, eval and infer over one set of parameters. */
int    programs_make(Model *);                               /* adds eval and infer to m->others */
void   programs_average(Model *);                            /* eval and infer read averages of parameters, if any */
int    programs_report(Graph *);                             /* of a step: metrics after the loss, as outputs */
int    programs_alone(Model *);                              /* the model itself becomes infer */
int    programs_resolve(Model *);                            /* restores the programs that were read from a dump */
Value *programs_same(const Model *, const Value *);          /* of the main program, in the same memory; NULL: none */
void   programs_pin(Model *);                                /* shared values lie as in the main program */

/* whole_batch.c: the model for all samples of a batch that comes in micro-batches. */
/* of the axis that differs: none; not one by that factor; not compared; the whole batch has no such value */
enum { WHOLE_SAME = -1, WHOLE_OTHER = -2, WHOLE_UNKNOWN = -3, WHOLE_MISSING = -4 };
/* a copy of the model for the whole batch; NULL: none is needed, or an error was reported */
Model      *whole_batch_model(Model *);
void        whole_batch_check(const Graph *);                      /* dies if a value has no identity */
/* -1 after err_at: a value is empty in a micro-batch but not in the whole batch */
int  whole_batch_empty(const Graph *);
int  whole_batch_controls(const Graph *);                          /* or an If or Loop goes another way there */
/* binds the batch axis to all samples, or back to those of a micro-batch */
void        whole_batch_bind(const Model *, bool all);
/* the axis that is that many times as long in the whole batch, or WHOLE_* */
int         whole_batch_axis(const Graph *, const Value *, int64_t microbatches);
const char *whole_batch_text(const Graph *, const Value *);        /* its type there */
bool        whole_batch_differ(const Graph *, const Value *, const Value *);   /* do they have different types there? */
/* contents of a constant there; its own if it is not compared; NULL: not known */
const Tensor *whole_batch_data(const Graph *, const Value *);
/* is it a constant here, and there one with different contents or none? */
bool        whole_batch_differs(const Graph *, const Value *);
/* constants that nodes compute with take their contents from there; -1 after err_at */
int         whole_batch_constants(Graph *);

/* microbatch.c: a step in several micro-batches that computes the same as one with the whole batch. */
int64_t microbatch_count(const Model *);                          /* how many, by @train; 1: the whole batch at once */
bool microbatch_given(const Model *);                             /* by @train or --micro-batches */
int64_t microbatch_batch(const Model *);                          /* samples of a step; 0: not given */
int  microbatch_option(Model *);                                  /* --micro-batches; -1 after err_at */
int64_t microbatch_rows(const Graph *);                           /* samples of one micro-batch */
int  microbatch_check(const Model *);                             /* -1 after err_at: sizes contradict each other */
/* means over the batch become sums divided by its size */
int  microbatch_means(Graph *, int64_t microbatches);
/* as grad_build */
int  microbatch_grad(Graph *, int64_t microbatches, Value *loss, Value **want, int nwant, Value **grad, LossScale *);
void microbatch_inherit(Node *, const Node *by);                  /* runs when `by` runs */
/* runs once, before or after the body; else in the body */
void microbatch_begin(Node *), microbatch_update(Node *);    /* it runs once, before or after the micro-batches */
bool microbatch_begins(const Node *), microbatch_updates(const Node *);
int microbatch_run(Graph *);

/* scalar.c: arithmetic as nodes. */
typedef struct Scalars { Graph *g; Loc loc; DType dt; bool bad; } Scalars;      /* bad: a node was refused */
Value *scalar_num(Scalars *, double);
Value *scalar_op1(Scalars *, const char *op, Value *);
Value *scalar_both(Scalars *, const char *op, Value *const in[2]);
#define scalar_op2(m, op, ...) scalar_both((m), (op), (Value *[2]){ __VA_ARGS__ })
Value *scalar_scaled(Scalars *, Value *, double factor);
Value *scalar_cast(Scalars *, Value *, DType);
double scalar_given(const Arg *call, const char *key, double otherwise);   /* a number among the arguments of a call */

/* lr.c: the learning rate, as nodes. */
Value *lr_schedule(Scalars *, const Arg *, double lr);        /* the factor on lr, in double; NULL: always 1 */
Value *lr_step(Scalars *);                                    /* the number of the step, 0 first */
Value *lr_step_input(Graph *, Loc);                           /* the same as the int64 input train.step */

/* precision.c: half precision, as Casts. */
void precision_mark(Model *);                                /* before operators are replaced by their definitions */
int precision_run(Graph *);

/* loss_scale.c: the loss scale of float16.  Where a LossScale * is NULL there is none. */
struct LossScale {
	Scalars m;
	const Arg *call;                /* fp16(loss_scale: 65536) */
	Value *scale, *good, *taken;    /* kept */
	Value *finite;                  /* all gradients of this step are finite, so the update happens */
};
LossScale *loss_scale_begin(Graph *, const Annot *train);    /* NULL: the training section asks for none */
int    loss_scale_seed(LossScale *, const Value *loss);      /* the backward pass of loss starts from the scale */
Value *loss_scale_up(LossScale *, Value *grad);              /* scales a gradient that was not scaled */
int    loss_scale_gradients(LossScale *, Value **param, Value **grad, int n);   /* divides each by the scale */
int    loss_scale_end(LossScale *);                          /* after all updates */

/* optimizer.c: clipping and updates, as nodes. */
Value *optimizer_state(Graph *, Name, Type *, Loc, double start);        /* a value that lives from step to step */
extern const char optimizer_rate[], optimizer_norm[];        /* names of values reported at the end of a step */
bool optimizer_reports(const Value *);                       /* it is one of them, so it is in memory then */
int optimizer_build(Graph *, const Annot *train, Value **param, Value **grad, int n);

/* recompute.c: copies of nodes whose values are not kept for the backward pass. */
int recompute_run(Graph *);
const Annot *recompute_first(const Graph *);                 /* of the first node that is recomputed; NULL: none is */

/* The plan of a program, Model.plan.  Passes fill it from the top; the headers of those passes define its types. */
typedef struct Mesh Mesh;
typedef struct Placement Placement;
typedef struct Forms Forms;
typedef struct Channels Channels;
typedef struct Slot Slot;
typedef struct Group Group;
typedef struct Role Role;
typedef struct Block Block;
typedef struct Queue Queue;
typedef struct Stages Stages;
typedef struct Packed Packed;
typedef struct Plan Plan;
typedef enum { KEEP_INPUT, KEEP_PARAM, KEEP_STATE, KEEP_CONST, KEEP_GRAD, KEEP_ACT } Keep;
typedef struct Layout {
	int64_t slab, window;
	int64_t kept;                   /* of the slab, from 0: values that live from step to step */
	int peak;                       /* the busiest action; -1: between steps */
	int64_t by[KEEP_ACT + 1];       /* bytes live at the peak, by class */
	int64_t bound;                  /* their sum, a lower bound for any memory plan of this schedule */
	int64_t packed;                 /* at the end of the slab: weights that stay packed */
} Layout;
/* Predictions for a step of the main program. */
typedef struct Predicted {
	double seconds;                 /* by the plan */
	double held;                    /* bytes of values by the solver's estimate, where memory is limited */
	double most, least;             /* the same of the quickest and the smallest plan, near the limit; else 0 */
	const Mesh *tight;              /* with them: on which mesh */
	int64_t bytes;                  /* of a rank: values after memplan, all after emit; 0: not known */
} Predicted;
struct Plan {
	Training train;
	bool training;
	Mesh **mesh; int nmesh;
	Mesh *main;                     /* the default mesh */
	Mesh *world;                    /* all ranks; the default mesh when there is no other */
	Placement **place; int nplace;      /* all placements in use */
	Forms *forms;                   /* of the main program, for all programs */
	Channels *channels;             /* as forms */
	Slot **slot;                    /* by value id; NULL: never in memory (a constant written into the code) */
	int nslot;                      /* length of the array */
	Group *group; int ngroup;       /* in the order in which they run */
	Role *role; int nrole;
	Stages *stages;                 /* of the pipeline; NULL: there is none */
	Block *block; int nblock;       /* of the list of actions, in its order */
	Queue *queue; int nqueue;       /* between stages */
	int *role_of;                   /* by rank */
	Layout layout;
	Predicted predicted;
	Packed *packed; int npacked;
	int64_t batch;
	Value *count;                   /* eval: the divisor of the loss */
	Slot **kept; int nkept;         /* main program: those of all programs that live from step to step, by offset */
	int next;                       /* the next slot's id, over all programs */
};

#endif
