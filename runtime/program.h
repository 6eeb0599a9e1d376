/* The tables of a generated program: values, actions, schedules, tensors, data.  model.c, buffers.c, params.c and
 * schedule.c of a tree hold them; rt.h includes this file. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "form.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RT_AXES = FORM_AXES };
typedef struct Ctx Ctx;

/* A value of a step: its offset, the same on every rank. */
typedef enum { RT_F32, RT_F64, RT_F16, RT_BF16, RT_I64, RT_I32, RT_I16, RT_I8, RT_U64, RT_U32, RT_U16, RT_U8, RT_BOOL,
	RT_TYPES } RtType;
typedef struct RtValue {
	const char *name;               /* in the model; bytes that are not plain are escaped */
	RtType type;
	int form;                       /* 1 + index into the forms; 0: every rank holds `bytes` of it */
	bool window;                    /* in the window, else in the slab */
	int64_t offset, bytes;          /* bytes: of the largest shard */
	/* Copies for micro-batches in flight; 0: one.  Micro-batch k of a run uses copy k % copies; copies are `bytes`
	 * apart, rounded up to RT_PLACE. */
	int copies;
} RtValue;
enum { RT_PLACE = 64 };

/* An action: one call of a kernel, a transfer, or a part of one.  A statement of a generated function (DO, tables.h)
 * runs it.  Actions are called a0, a1, ... in the order in which a role runs them. */
typedef enum { RT_COMPUTE, RT_COLLECTIVE, RT_START, RT_FINISH, RT_LOAD, RT_SAVE } RtKind;
typedef struct RtAction {
	RtKind kind;
	const char *op;                 /* the operator of its node */
	int nmake;                      /* values that exist after it */
	double flops;                   /* estimated, for profiles */
} RtAction;

/* An actor: a block of actions that always run together, for a micro-batch or once per step. */
typedef int RtRun(Ctx *);                       /* 0, or an exit status after rt_error */
typedef struct RtActor {
	const char *name;               /* "F1", "update" */
	RtRun *run;
	int id;                         /* of its first action */
	bool loads, saves;              /* it has an action that loads samples, that reports results */
	bool updates;                   /* it changes kept values */
	/* Numbers of queues.  wait: it waits for their next piece; make: it produces their next piece when they have a
	 * free copy; give: it is the last to read their oldest piece. */
	const int *wait, *make, *give; int nwait, nmake, ngive;
} RtActor;
/* Of a step, micro is the micro-batch; -1: once per step.  Evaluation and inference have the tasks of one batch, which
 * repeat: in turn t a task with micro l runs for batch t - l, if there is one; -1: once, before all batches. */
typedef struct RtTask { int actor, micro; } RtTask;

/* An end of a queue: values that one stage sends to another on a separate channel.  A piece is one micro-batch of them.
 * For each of its n values: the transfer, and the numbers of the values that are sent and received. */
typedef struct RtQueue {
	const char *name;
	bool sends;
	int channel;
	int copies;                     /* pieces that this end can hold: sent and in flight, or received */
	int n;
	const int *move, *from, *to;
} RtQueue;

/* The work of a rank in a step: its tasks, in order. */
typedef struct RtSchedule {
	int nactions;                   /* of the role, each counted once for all micro-batches */
	const RtActor *actor; int nactor;
	const RtTask *task; int ntask;
	const RtQueue *queue; int nqueue;
} RtSchedule;

/* The programs over one set of parameters: a training step, the loss of a batch, the outputs. */
typedef enum { RT_TRAIN, RT_EVAL, RT_INFER, RT_PROGRAMS } RtProgramKind;

typedef struct RtRole {
	const RtSchedule *schedule[RT_PROGRAMS];        /* NULL: there is no such program */
	size_t slab_bytes;                              /* that its ranks need; 0: those of the program */
} RtRole;

/* A tensor, and the memory that holds this rank's shard of it. */
typedef struct RtTensor {
	const char *name;               /* in the model; every byte but letters, digits and _.:/- as \xNN */
	RtType type;
	int naxis;
	int64_t dim[RT_AXES];           /* of the logical tensor */
	int form;                       /* 1 + index into the forms; 0: every rank holds the full tensor */
	bool window;
	int64_t offset;                 /* in the slab or the window */
	int copies; int64_t place;      /* of inputs and outputs: copies, as in RtValue; bytes from one to the next */
} RtTensor;

/* A value that lives from step to step, and its initial value.  Parameters, frozen parameters and statistics are the
 * model's, state is the optimizer's. */
typedef enum { RT_PARAMETER, RT_FROZEN, RT_STATISTIC, RT_STATE, RT_CONSTANT } RtKeep;
typedef enum { RT_FILL, RT_NORMAL, RT_UNIFORM, RT_DATA_HERE, RT_DATA_FILE } RtStart;
typedef struct RtKept {
	RtTensor t;
	RtKeep keep;
	const char *average_of;         /* state: the parameter that it is an average of, with ema; NULL: none */
	RtStart start;
	float a, b;                     /* fill: a; normal: mean and deviation; uniform: from and to */
	uint64_t key;                   /* of random numbers */
	const void *data;               /* RT_DATA_HERE: the logical tensor; RT_DATA_FILE: it is in the weights file */
} RtKept;

/* An input: fed from the data set, with the number of the step or of the micro-batch, or by the caller before the
 * call. */
typedef enum { RT_SAMPLES, RT_STEP, RT_MICRO, RT_CALLER } RtFeed;
typedef struct RtInput {
	RtTensor t;
	RtFeed feed;
	int64_t range;                  /* labels and tokens lie in 0 .. range - 1; 0: unchecked */
	const char *file;               /* that the model names for it; NULL: the one named after it */
} RtInput;

/* A weight that stays packed in the slab for the products that read it, until a kept value changes: its index among the
 * kept values, the offset of the packed copy, k x n, and the strides of the weight. */
typedef struct RtPacked { int value; int64_t offset, k, n, row, col; } RtPacked;

/* Inputs and outputs of one program.  Outputs of eval are the sum of the losses and the count that divides it. */
typedef struct RtIo {
	const RtInput *input; int ninput;
	const RtTensor *output; int noutput;
	const RtPacked *packed; int npacked;
} RtIo;

/* A metric reported beside the loss: sums and counts over a batch are added up; `how` is applied to their quotient. */
enum { RT_METRICS = 16 };
typedef enum { RT_MEAN, RT_EXP, RT_ROOT } RtHow;
typedef struct RtMetric {
	const char *name;
	RtHow how;
	bool own;                       /* false: sum and count are those of the loss */
} RtMetric;
typedef struct RtSums { double loss, count, sum[RT_METRICS], by[RT_METRICS]; } RtSums;      /* by: what divides sum */

typedef enum { RT_NO_DATA, RT_POINTS, RT_BYTES, RT_TOKENS16, RT_TOKENS32, RT_NPY, RT_IDX, RT_CIFAR, RT_SAFETENSORS,
	RT_TAR } RtFormat;
typedef struct RtData {
	RtFormat format;
	int64_t classes;                /* of points */
	float noise;
	const char *const *path; int npath;     /* files, folders or patterns, in order; 0: inputs name their files */
	double validation;              /* the fraction of samples, from the end, that is held out */
	const char *held;               /* a separate set that is held out instead (file, folder, pattern); or NULL */
	bool in_order;                  /* not shuffled */
	float scale, mean, dev;         /* numbers become (v * scale - mean) / dev; 0: the default of the format */
} RtData;

/* A transfer of a value from one form to another.  Terms are combined in the order of terms. */
typedef struct RtMove {
	int from, to;                   /* 1 + index into the forms */
	RtType type;
	int channel;                    /* index into the channels; -1: no other rank takes part */
} RtMove;

/* A channel: the transfers between the meshes of two forms.  The ranks of both meshes have the same transfers on a
 * channel, in the same order; number k of one rank matches number k of the others.  Other ranks take no part. */
typedef struct RtChannel { int from, to; } RtChannel;           /* 1 + index into the forms */

/* For dumps: the gradient of a parameter that lies in memory under another name, in this shape. */
typedef struct RtGradient { const char *name; RtType type; int value, shape; } RtGradient;

typedef struct RtProgram {
	uint64_t hash;                  /* of the plan: ranks compare it before step 0 */
	int nrank;
	const uint16_t *role_of;        /* by rank; NULL: all have the first */
	const RtRole *const *role; int nrole;
	const RtValue *value; int nvalue;       /* values of a step, numbered after the kept values */
	int most;                       /* values of one action, at most */
	const Form *form; int nform;
	const RtMove *move; int nmove;
	const RtChannel *channel; int nchannel;
	const Form *shape; const int *shape_of; /* of values of a step, for dumps only */
	const RtGradient *gradient; const int *ngradient;
	const RtKept *kept; int nkept;
	RtIo io[RT_PROGRAMS];
	const RtMetric *metric; int nmetric;
	RtData data;
	size_t slab_bytes;              /* values that only this rank reads */
	size_t window_bytes;            /* values of transfers: peers read them */
	size_t work_shared, work_each;  /* scratch of kernels: shared by all threads, and of each */
	int64_t batch;                  /* samples per step, over all ranks and micro-batches */
	int64_t microbatches;           /* of a step */
	int64_t steps, epochs;          /* unless --steps is given; epochs, if not 0, instead of steps */
	/* steps of the learning-rate schedule, if it has an end, and of its warm-up; 0: none */
	int64_t total, warmup;
	double rate;                    /* learning rate without a schedule */
	bool ema;                       /* parameters have averages (average_of), which eval and infer read */
	uint64_t seed;
} RtProgram;

#endif
