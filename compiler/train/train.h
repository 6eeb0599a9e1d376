/* From a model to a training step: trained parameters, loss, backward pass, update, micro-batches. */
#ifndef SBPCC_TRAIN_H
#define SBPCC_TRAIN_H

#include "target/target.h"

typedef struct LossScale LossScale;

/* params.c: which initialisers are trained, frozen, state or constants. */
int params_run(Graph *);
Value *params_gradient(const Graph *, const Value *param);    /* NULL: it has none */
void params_share(Graph *, Value *param, const Value *grad);  /* records that its gradient is this value, which has a different name */
bool *params_state(const Graph *);                            /* by value id: is it a running statistic? */
/* The initialisers of an .onnx file by kind; missing: recorded parameters that the file does not hold. */
typedef enum { PARAM_CONSTANT, PARAM_TRAINED, PARAM_FROZEN, PARAM_STATE, NPARAM } ParamKind;
typedef struct Params { const char *by; Name *name[NPARAM]; int n[NPARAM]; Name *missing; int nmissing; } Params;
void  params_report(const Model *);
bool  params_named(const Model *, Name);                      /* by @param */
bool  params_torch(const Graph *);                            /* one of PyTorch's exporters wrote it */

/* guess.c: whether an initialiser of an .onnx file looks like a weight. */
typedef struct Guess { bool weight; const char *why; } Guess;   /* why: the evidence against a weight, or that there is no evidence; NULL: certain */
Guess guess_of(const Graph *, const Value *);                   /* for files of the TorchScript exporter */
const char *guess_numbers(const Value *);                       /* why its contents cannot be a weight; NULL: they can */

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
const char *train_defaults(const Model *, const Training *);  /* "100 steps (@train steps, --steps)": settings left at their defaults; NULL: none */
void train_bind_batch(const Model *);                        /* batch: N gives the first symbolic dimension of the inputs its value */
int  train_check_batch(const Model *);                       /* -1 after an error: batch contradicts a number in the model, or --set */
int train_split_means(Graph *, int64_t microbatches);                              /* losses that are means become sums divided by counts */

/* programs.c: step, eval and infer over one set of parameters. */
int    programs_make(Model *);                               /* adds eval and infer to m->others */
void   programs_average(Model *);                            /* eval and infer read averages of parameters, where there are any */
int    programs_report(Graph *);                             /* of the training step: metrics behind the loss, as outputs */
int    programs_alone(Model *);                              /* the model itself becomes infer */
int    programs_resolve(Model *);                            /* restores the programs that were read from a dump */
Value *programs_same(const Model *, const Value *);          /* the value of the main program that shares memory with this one; NULL */
void   programs_pin(Model *);

/* whole_batch.c: the model for all samples of a batch that comes in micro-batches. */
enum { WHOLE_SAME = -1, WHOLE_OTHER = -2, WHOLE_UNKNOWN = -3 };
Model      *whole_batch_model(Model *);                            /* a copy of the model for the whole batch; NULL: none is needed, or an error was reported */
bool        whole_batch_is(const Model *);                         /* is it such a copy? */
int  whole_batch_empty(const Graph *);                            /* -1 after err_at: a value is empty in a micro-batch but not in the whole batch */
void        whole_batch_bind(const Model *, bool all);             /* binds the batch axis to all samples, or back to those of a micro-batch */
int         whole_batch_axis(const Graph *, const Value *, int64_t microbatches);    /* the axis that is that many times as long in the whole batch, or WHOLE_* */
const char *whole_batch_text(const Graph *, const Value *);        /* its type there */
bool        whole_batch_differ(const Graph *, const Value *, const Value *);   /* do they have different types there? */
const Tensor *whole_batch_data(const Graph *, const Value *);      /* contents of a constant there; its own if it has no match */
bool        whole_batch_differs(const Graph *, const Value *);     /* is it a constant with different contents there? */
void        whole_batch_constants(Graph *);                        /* constants that nodes compute with take their contents from there */

/* microbatch.c: a step in several micro-batches that computes the same as one with the whole batch. */
int64_t microbatch_count(const Model *);                          /* how many, by @train; 1: the whole batch at once */
int  microbatch_check(const Model *);                             /* -1 after err_at: sizes contradict each other */
int  microbatch_means(Graph *, int64_t microbatches);                    /* means over the batch become sums divided by its size */
int  microbatch_grad(Graph *, int64_t microbatches, Value *loss, Value **want, int nwant, Value **grad, LossScale *);   /* as grad_build */
void microbatch_inherit(Node *, const Node *by);                  /* runs when `by` runs */
bool microbatch_begins(const Node *), microbatch_updates(const Node *);        /* runs once, before or after the body; else in the body */
int microbatch_run(Graph *);

/* scalar.c: arithmetic as nodes. */
typedef struct Scalars { Graph *g; Loc loc; DType dt; bool bad; } Scalars;     /* dt: of numbers; bad: a node was refused */
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
Value *lr_step_input(Graph *, Loc);                        /* the same as the int64 input train.step */

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
LossScale *loss_scale_begin(Graph *, const Annot *train);             /* NULL: the training section asks for none */
int    loss_scale_seed(LossScale *, const Value *loss);               /* the backward pass that was built from loss starts from the scale */
Value *loss_scale_up(LossScale *, Value *grad);                       /* a gradient that was not scaled */
int    loss_scale_gradients(LossScale *, Value **param, Value **grad, int n);     /* divides each by the scale */
int    loss_scale_end(LossScale *);                                   /* after all updates */

/* optimizer.c: clipping and updates, as nodes. */
Value *optimizer_state(Graph *, Name, Type *, Loc, double start);        /* a value that lives from step to step */
extern const char optimizer_rate[], optimizer_norm[];         /* values of these names are reported at the end of a step */
bool optimizer_reports(const Value *);                       /* it is one of them, so it is in memory then */
int optimizer_build(Graph *, const Annot *train, Value **param, Value **grad, int n);

/* recompute.c: copies of nodes whose values are not kept for the backward pass. */
int recompute_run(Graph *);
const Annot *recompute_first(const Graph *);                  /* the annotation of the first node that is recomputed; NULL: none is */

/* The plan of a program, Model.plan.  Passes fill it from the top; the headers of those passes define its types. */
typedef struct Mesh Mesh;
typedef struct Place Place;
typedef struct Forms Forms;
typedef struct Slot Slot;
typedef struct Group Group;
typedef struct Role Role;
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
	double held;                    /* bytes of values by the solver's count, where memory is limited */
	double most, least;             /* the same of the quickest plan and of the one that holds least, where the limit is near; else 0 */
	const Mesh *tight;              /* with them: on which mesh */
	int64_t bytes;                  /* that a rank takes: of values after memplan, of all after emit; 0: not known */
} Predicted;
struct Plan {
	Training train;
	bool training;
	Mesh **mesh; int nmesh;
	Mesh *main;                     /* the default mesh */
	Mesh *world;                    /* all ranks; the default mesh when there is no other */
	Place **place; int nplace;      /* all that are in use */
	Forms *forms;                   /* the main program's, for all */
	Slot **slot;                    /* by value id; NULL: never in memory (a constant written into the code) */
	int nslot;                      /* length of the array */
	Group *group; int ngroup;       /* in the order in which they run */
	Role *role; int nrole;
	int *role_of;                   /* by rank */
	Layout layout;
	Predicted predicted;
	Packed *packed; int npacked;
	int64_t batch;
	Value *count;                   /* eval: what the loss is divided by */
	Slot **kept; int nkept;         /* main program: what lives from step to step, of all programs, in the order of offsets */
	int next;                       /* the next slot's id, over all programs */
};

#endif
