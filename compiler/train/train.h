/* From a model to a training step: what is trained, the loss, the backward pass, the update, micro-batches. */
#ifndef SBPCC_TRAIN_H
#define SBPCC_TRAIN_H

#include "target/target.h"

typedef struct LossScale LossScale;

/* params.c: what of a model is trained, and what is not. */
int params_run(Graph *);
Value *params_gradient(const Graph *, const Value *param);    /* NULL: it has none */
void params_share(Graph *, Value *param, const Value *grad);  /* its gradient is this value, which has another name */
bool *params_state(const Graph *);                            /* by value id: is it a running statistic? */
/* What of an .onnx file is trained, and what is not: names by kind, and recorded parameters that it does not hold. */
typedef enum { PARAM_CONSTANT, PARAM_TRAINED, PARAM_FROZEN, PARAM_STATE, NPARAM } ParamKind;
typedef struct Params { const char *by; Name *name[NPARAM]; int n[NPARAM]; Name *missing; int nmissing; } Params;
void  params_report(const Model *);
bool  params_named(const Model *, Name);                      /* by @param */
bool  params_torch(const Graph *);                            /* one of PyTorch's exporters wrote it */

/* guess.c: what an initialiser of an .onnx file seems to be. */
typedef struct Guess { bool weight; const char *why; } Guess;   /* why: what speaks against a weight, or that nothing speaks for it; NULL: it surely is one */
Guess guess_of(const Graph *, const Value *);                   /* of a file of TorchScript's exporter */
const char *guess_numbers(const Value *);                       /* by its numbers alone why it is no weight; NULL: it may be one */

/* mode.c: what a training step means where that is unsaid. */
int mode_run(Graph *);
int mode_training(Graph *);

/* train.c: reads @train; adds loss, backward pass and update. */
int train_run(Graph *);
typedef struct Training {
	Value *loss;
	int64_t steps, epochs, seed;    /* epochs: 0, or instead of steps */
	bool ema;                       /* w.ema is an average of parameter w */
	double rate;                    /* of learning, before any schedule */
	int64_t microbatches;           /* micro-batches of a step */
	int64_t total, warmup;          /* steps of the schedule, if it has an end, and of its warm-up; 0: none */
	const Arg *data;                /* data: points(classes: 10, noise: 0.5) */
	Loc loc;
} Training;
const char *train_defaults(const Model *, const Training *);  /* "100 steps (@train steps, --steps)": what nobody wrote; NULL: nothing */
int train_read(Model *, Training *);                         /* 1: there is a training section; 0: none; -1 after explaining */
void train_bind_batch(const Model *);                        /* batch: N gives the first symbolic dimension of the inputs its value */
int  train_check_batch(const Model *);                       /* -1 after an error: batch contradicts a number in the model, or --set */
int train_split_means(Graph *, int64_t microbatches);                              /* losses that are means become sums divided by counts */

/* programs.c: step, eval and infer over one set of parameters. */
int    programs_make(Model *);                               /* adds eval and infer to m->others */
void   programs_average(Model *);                            /* eval and infer read averages of parameters, where there are any */
int    programs_report(Graph *);                             /* of the training step: metrics behind the loss, as outputs */
int    programs_alone(Model *);                              /* the model itself becomes infer */
int    programs_resolve(Model *);                            /* once more for what a dump holds */
Value *programs_same(const Model *, const Value *);          /* the value of the main program that this kept value is; NULL */
void   programs_pin(Model *);

/* whole_batch.c: the model for all samples of a batch that comes in micro-batches. */
enum { WHOLE_SAME = -1, WHOLE_OTHER = -2, WHOLE_UNKNOWN = -3 };
Model      *whole_batch_model(Model *);                            /* a copy for all samples of a batch that comes in micro-batches, else NULL */
bool        whole_batch_is(const Model *);                         /* such a copy? */
int  whole_batch_empty(const Graph *);                            /* what is empty in a micro-batch alone is an error: -1 after explaining */
void        whole_batch_bind(const Model *, bool all);             /* the batch axis to all samples, and back */
int         whole_batch_axis(const Graph *, const Value *, int64_t microbatches);    /* along which there is times as much of it in all */
const char *whole_batch_text(const Graph *, const Value *);        /* its type there */
bool        whole_batch_differ(const Graph *, const Value *, const Value *);   /* are they of different types there? */
const Tensor *whole_batch_data(const Graph *, const Value *);      /* of a constant; its own where it is not known there */
bool        whole_batch_differs(const Graph *, const Value *);     /* is it a constant with another value there? */
void        whole_batch_constants(Graph *);                        /* what nodes compute with has the value that it has for all samples */

/* microbatch.c: a step in several micro-batches that means the same as one. */
int64_t microbatch_count(const Model *);                          /* how many, by @train; 1: the whole batch at once */
int  microbatch_check(const Model *);                             /* -1 after saying what does not fit */
int  microbatch_means(Graph *, int64_t microbatches);                    /* means over the batch become sums divided by its size */
int  microbatch_grad(Graph *, int64_t microbatches, Value *loss, Value **want, int nwant, Value **grad, LossScale *);   /* as grad_build */
void microbatch_inherit(Node *, const Node *by);                  /* runs when `by` runs */
bool microbatch_begins(const Node *), microbatch_updates(const Node *);        /* runs once, before or after the body; else in the body */
int microbatch_run(Graph *);

/* scalar.c: arithmetic as nodes. */
typedef struct Scalars { Graph *g; Loc loc; DType dt; bool bad; } Scalars;     /* dt: of numbers; bad: something was refused */
Value *scalar_num(Scalars *, double);
Value *scalar_op1(Scalars *, const char *op, Value *);
Value *scalar_both(Scalars *, const char *op, Value *const in[2]);
#define scalar_op2(m, op, ...) scalar_both((m), (op), (Value *[2]){ __VA_ARGS__ })
Value *scalar_scaled(Scalars *, Value *, double factor);
Value *scalar_cast(Scalars *, Value *, DType);
double scalar_given(const Arg *call, const char *key, double otherwise);   /* a number among the arguments of a call */

/* lr.c: the learning rate, as nodes. */
Value *lr_schedule(Scalars *, const Arg *, double lr);        /* what lr is multiplied with, in double; NULL: always 1 */
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
	Value *finite;                  /* of this step: the update happens */
};
LossScale *loss_scale_begin(Graph *, const Annot *train);             /* NULL: the training section asks for none */
int    loss_scale_seed(LossScale *, const Value *loss);               /* the backward pass that was built from loss starts from the scale */
Value *loss_scale_up(LossScale *, Value *grad);                       /* a gradient that was not scaled */
int    loss_scale_gradients(LossScale *, Value **param, Value **grad, int n);     /* each becomes what it would be without a scale */
int    loss_scale_end(LossScale *);                                   /* after all updates */

/* optimizer.c: clipping and updates, as nodes. */
Value *optimizer_state(Graph *, Name, Type *, Loc, double start);        /* a value that lives from step to step */
extern const char optimizer_rate[], optimizer_norm[];         /* values of these names are reported at the end of a step */
bool optimizer_reports(const Value *);                       /* it is one of them, so it is in memory then */
int optimizer_build(Graph *, const Annot *train, Value **param, Value **grad, int n);

/* recompute.c: copies of nodes whose values are not kept for the backward pass. */
int recompute_run(Graph *);
const Annot *recompute_first(const Graph *);                  /* the annotation of the first node that is recomputed; NULL: none is */

/* The plan of a program, which hangs on its model.  Passes fill it from the top; what its parts are, the headers of those passes say. */
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
	int64_t kept;                   /* of the slab, from 0: what lives from step to step */
	int peak;                       /* the busiest action; -1: between steps */
	int64_t by[KEEP_ACT + 1];       /* what lives there, by class */
	int64_t bound;                  /* all of that: no plan of this schedule needs less */
	int64_t packed;                 /* at the end of the slab: weights that stay packed */
} Layout;
/* What is expected of a step of the main program. */
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
	Place **place; int nplace;      /* all that something is on */
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
