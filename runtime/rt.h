/* The runtime that generated trainers link: a slab, a list of actions, data, start-up values, a transport.
 *
 * A trainer holds the program of every role; a rank looks up its role in a table and walks that role's actions, step
 * after step.  The order of actions and every offset were decided and proved when the program was generated, so nothing
 * here decides anything: it starts processes, fills memory, walks, and reports. */
#ifndef RT_H
#define RT_H

#include "form.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RT_AXES = FORM_AXES };

/* Exit status of a trainer. */
enum { RT_OK = 0, RT_USAGE = 2, RT_DATA = 20, RT_CHECKPOINT = 21, RT_PEER = 22, RT_NUMERIC = 23, RT_PLAN = 24, RT_MEMORY = 25, RT_STOPPED = 75 };

typedef struct Ctx Ctx;
typedef struct RtPool RtPool;

/* The instructions that kernels may use, each with all before it. */
typedef enum { RT_PLAIN, RT_AVX2, RT_AVX512 } RtIsa;

/* A value: where it lies, the same on every rank. */
typedef enum { RT_F32, RT_F64, RT_F16, RT_BF16, RT_I64, RT_I32, RT_I16, RT_I8, RT_U64, RT_U32, RT_U16, RT_U8, RT_BOOL, RT_TYPES } RtType;
typedef struct RtValue {
	const char *name;               /* the model's; bytes that are not plain are escaped */
	RtType type;
	int form;                       /* 1 + its number among the forms; 0: every rank holds `bytes` of it */
	bool window;                    /* in the window, else in the slab */
	int64_t offset, bytes;          /* bytes: of the largest part */
} RtValue;

/* An action: a call over values. */
typedef enum { RT_COMPUTE, RT_COLLECTIVE, RT_START, RT_FINISH, RT_LOAD, RT_SAVE } RtKind;
typedef int RtRun(Ctx *, void *const *t);       /* t: results, then operands; 0, or one of the exit codes after rt_error */
typedef struct RtAction {
	RtKind kind;
	const char *op;                 /* the operator of its node */
	RtRun *run;
	int nmake, ntake;
	double flops;                   /* about: for profiles */
} RtAction;

/* A stretch of actions that is done several times, each time over other values: the layers of a model. */
typedef struct RtSegment {
	const RtAction *action; int count;
	int times;
	const int *value;               /* numbers of values: results and operands of each action in turn, `times` times */
} RtSegment;

/* Actions are called a0, a1, ... by their place in the flat list.  Segments from..to - 1 are walked once per micro-batch. */
typedef struct RtSchedule {
	const RtSegment *segment; int nsegment;
	int from, to, micro;
} RtSchedule;

/* What a program can do with its parameters; a part that it does not have has no schedule. */
enum { RT_TRAIN, RT_EVAL, RT_INFER, RT_PARTS };

typedef struct RtRole {
	const RtSchedule *part[RT_PARTS];       /* one training step, the loss of a batch, the outputs; NULL: there is none */
} RtRole;

/* What a row of the tables says of a tensor and of the memory that holds a rank's part of it. */
typedef struct RtTensor {
	const char *name;               /* of the model; every byte but letters, digits and _.:/- as \xNN */
	RtType type;
	int rank;
	int64_t dim[RT_AXES];           /* of the logical tensor */
	int form;                       /* 1 + its number among the forms; 0: every rank has all of it */
	bool window;
	int64_t offset;                 /* in the slab or the window */
} RtTensor;

/* Values that live from step to step, and what they are at the start. */
typedef enum { RT_PARAMETER, RT_FROZEN, RT_STATISTIC, RT_STATE, RT_CONSTANT } RtKeep;    /* of the model: trained, never changed, running statistics; of the optimizer */
typedef enum { RT_FILL, RT_NORMAL, RT_UNIFORM, RT_DATA_HERE, RT_DATA_FILE } RtStart;
typedef struct RtKept {
	RtTensor t;
	RtKeep keep;
	RtStart start;
	float a, b;                     /* fill: a; normal: mean and deviation; uniform: from and to */
	uint64_t key;                   /* of random numbers */
	const void *data;               /* RT_DATA_HERE: the logical tensor; RT_DATA_FILE: it is in the weights file */
} RtKept;

/* What a step takes from outside. */
typedef enum { RT_SAMPLES, RT_STEP, RT_MICRO, RT_CALLER } RtFeed;        /* from the data set; numbers of the step and of the micro-batch; written before the call */
typedef struct RtInput {
	RtTensor t;
	RtFeed feed;
	int64_t range;                  /* labels and tokens are at least 0 and below this; 0: anything */
	const char *file;               /* that the model names for it; NULL: the one named after it */
} RtInput;

/* A weight whose packed form stays in the slab for the products that read it, until what is kept changes: its number among what is
 * kept, where the form lies, k x n and how far the weight's rows and columns lie apart. */
typedef struct RtPacked { int value; int64_t offset, k, n, row, col; } RtPacked;

/* Inputs and outputs of a part: of eval, the sum of the losses and what it is to be divided by. */
typedef struct RtPart {
	const RtInput *input; int ninput;
	const RtTensor *output; int noutput;
	const RtPacked *packed; int npacked;
} RtPart;

/* What is reported beside the loss: sums and counts over a batch, added up, and what is made of their quotient. */
enum { RT_METRICS = 16 };
typedef enum { RT_MEAN, RT_EXP, RT_ROOT } RtHow;
typedef struct RtMetric {
	const char *name;
	RtHow how;
	bool own;                       /* false: sum and count are those of the loss */
} RtMetric;
typedef struct RtSums { double loss, count, sum[RT_METRICS], by[RT_METRICS]; } RtSums;      /* by: what sum is to be divided by */

typedef enum { RT_NO_DATA, RT_POINTS, RT_BYTES, RT_TOKENS16, RT_TOKENS32, RT_NPY, RT_IDX, RT_CIFAR, RT_SAFETENSORS, RT_TAR } RtFormat;
typedef struct RtData {
	RtFormat format;
	int64_t classes;                /* points */
	float noise;
	const char *const *path; int npath;     /* files, folders or patterns, one after another; 0: inputs name their files */
	double validation;              /* the share of the samples, from the end, that is held out */
	const char *held;               /* another set instead, all of which is held out: a file, a folder or a pattern; NULL: none */
	bool in_order;                  /* not shuffled */
	float scale, mean, dev;         /* numbers become (v * scale - mean) / dev; 0: as the format has it */
} RtData;

/* A transfer of a value from one form to another.  Where terms are combined, it is in the order of terms. */
typedef struct RtMove {
	int from, to;                   /* 1 + the numbers of the forms */
	RtType type;
	bool here;                      /* no other rank takes part */
} RtMove;

/* For dumps: the gradient of a parameter that lies in memory under another name, in this shape. */
typedef struct RtGradient { const char *name; RtType type; int value, shape; } RtGradient;

typedef struct RtProgram {
	uint64_t hash;                  /* of the plan: ranks compare it before step 0 */
	int nrank;
	const uint16_t *role_of;        /* by rank; NULL: all have the first */
	const RtRole *const *role; int nrole;
	const RtValue *value; int nvalue;       /* what a step makes: numbered behind what is kept */
	int most;                       /* values of any one action, at most */
	const Form *form; int nform;
	const RtMove *move; int nmove;
	const Form *shape; const int *shape_of; /* of values, by number behind what is kept: only dumps look there */
	const RtGradient *gradient; const int *ngradient;
	const RtKept *kept; int nkept;
	RtPart part[RT_PARTS];
	const RtMetric *metric; int nmetric;
	RtData data;
	size_t slab_bytes;              /* private values of a rank */
	size_t window_bytes;            /* values that meet transfers: peers read them */
	size_t work_shared, work_each;  /* scratch of kernels: for all threads together, and for each */
	int64_t batch;                  /* samples per step, all ranks and micro-batches together */
	int64_t times;                  /* micro-batches of a step */
	int64_t steps, epochs;          /* unless --steps says otherwise; epochs, if not 0, instead of steps */
	int64_t total, warmup;          /* steps of the schedule of the rate, if it has an end, and of its warm-up; 0: none */
	double rate;                    /* of learning, where no schedule says it */
	bool ema;                       /* NAME.ema is an average of parameter NAME: what eval and infer read */
	uint64_t seed;
} RtProgram;

/* The context that every kernel takes first. */
struct Ctx {
	const RtProgram *program;
	int rank, nrank, role;
	int here;                       /* ranks of this machine; 0: this one alone */
	bool first_here;                /* of them, this is the first */
	FormPart *part_of;              /* by form: what this rank holds; parts.c */
	struct RtRoute *route;          /* by transfer: route.c */
	unsigned char *slab, *window;   /* on the device */
	struct RtComm *comm;
	struct RtLane *lane;            /* lane.c: transfers on their way; NULL: each is done when it is started */
	bool aside;                     /* this is the thread of the lane, not the one that walks */
	bool bound;                     /* the processors that it may use are its own, not those of all ranks */
	RtPool *pool;                   /* NULL: this thread alone */
	int nthread;
	RtIsa isa;
	unsigned char *shared, *work;   /* scratch: of all threads; of thread i at work + i * work_each */
	size_t work_shared, work_each;
	void *device;                   /* CUDA: stream, kernels, staging; unused on the CPU */
	uint64_t changed, *packed;      /* counts what changes values that are kept or the memory of packed weights; by weight: when it was packed */
	int64_t last_kept;              /* the offset in the slab behind which nothing is kept */
	char *error;                    /* of a library: messages go here instead of being printed; RT_MESSAGE bytes */
	uint64_t seed;
	int64_t step;
	int part;                       /* what it does now: RT_TRAIN, RT_EVAL, RT_INFER */
	double loss;                    /* what the last step reported */
	RtSums sums;                    /* what the last step, or the last batch of an evaluation, reported */
	int64_t micro;                  /* the micro-batch, 0 first */
	struct RtLoader *data;          /* data.c */
	const void *const *given;       /* a step takes these samples, an array for each input, not those of the data set; NULL: it does not */
	struct RtSaver *saver;          /* checkpoint.c */
	struct RtWatch *watch;          /* watch.c; NULL: nobody looks at single actions */
	double rate, norm;              /* what the last step reported; NAN: nothing */
	bool again;                     /* the step is walked once more, to find what is not a number */
	bool begun;                     /* the first step, or batch, was */
	const RtAction *at;             /* the action that runs, NULL between steps; its place in the list; its values */
	int id;
	const int *values;
	int (*after)(Ctx *, int micro); /* called when an action is done, NULL: nothing; micro: the micro-batch, -1 outside of them */
	const char *dump;               /* dump.c: the folder that results are written to */
};

/* base.c.  rt_error prints "rank 3 step 812 action a41 (MatMul h): ...", before the first step "rank 3: ...", and gives back code. */
int rt_error(const Ctx *, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
size_t rt_width(RtType);                                /* bytes of an element */

/* actor.c: walks a schedule.  0, or the code of the first action that failed. */
int   rt_do(Ctx *, int part);                           /* one step, one batch, one inference */
void *rt_value(const Ctx *, int value);                 /* where it lies on this rank */
/* Where the packed form of b, k x n with these strides, stays in the part that runs; NULL: nowhere.  *fresh: it is there; else the
 * caller packs it now. */
float *rt_packed(Ctx *, const float *b, int64_t k, int64_t n, int64_t row, int64_t col, bool *fresh);

/* slab.c or slab_cuda.c: memory of the device.  A value is filled on the host through rt_host and rt_put. */
int   rt_device_open(Ctx *, unsigned char *window);     /* window: shared memory of this rank, or NULL */
int   rt_device_touch(Ctx *);                           /* with the threads of the pool: all of it is there from now on */
void  rt_device_close(Ctx *);
void *rt_host(Ctx *, void *value, size_t bytes);        /* where the host may write bytes that belong into value */
int   rt_put(Ctx *, void *value, size_t bytes);         /* what was written at rt_host is now in value */
int   rt_get(Ctx *, void *host, const void *value, size_t bytes);
int   rt_sync(Ctx *);

/* What a process has beside slab, window and scratch: data of the program and of libc, the thread that reads data, of which there is a part
 * before anything is opened; what each thread
 * has of its stack from the start; the thread that writes checkpoints, and what it writes about each tensor.  Of several ranks each knows the parts of all forms and the route of
 * every transfer, with what it takes of each peer, shares a few pages of signals, and has a thread that shows that it lives. */
enum { RT_BASE = 112 << 10, RT_AT_START = 64 << 10, RT_STACK = 32 << 10, RT_SAVER = 56 << 10, RT_SAVED = 256 };
enum { RT_SIGNALS = 24 << 10, RT_PART = 272, RT_ROUTE = 128, RT_PEERS = 64 };
enum { RT_WORK_SHARED = 4 << 20, RT_WORK_EACH = 4 << 20 };       /* scratch that tests and measurements of kernels give: kernels/cpu/work.h */

/* thread.c: body runs over all of 0 .. n - 1, in pieces that begin at multiples of grain, on the threads of this rank; the
 * results must not depend on how the loop was cut.  A body calls no other loop. */
typedef void RtBody(void *arg, int64_t lo, int64_t hi, int thread);
void rt_parallel(Ctx *, int64_t n, int64_t grain, RtBody *body, void *arg);
int  rt_pool_open(Ctx *, int nthread);
void rt_pool_close(Ctx *);
void rt_touch_stack(void);              /* RT_STACK bytes of it: each thread, at its start */
int  rt_threads(const Ctx *);           /* processors that this process may use, over the ranks of the machine */

/* parts.c: what this rank holds of a tensor, and where it is. */
int   rt_parts_open(Ctx *);                             /* parts of all forms; routes of all transfers */
void  rt_parts_close(Ctx *);
void *rt_place(const Ctx *, const RtTensor *);
int64_t rt_elements(const Ctx *, const RtTensor *);
size_t rt_bytes(const Ctx *, const RtTensor *);
int64_t rt_origin(const Ctx *, int form, int axis);     /* form: 1 + its number; the first index that is here along an axis */

/* init.c: values at the start.  Every number depends on (seed, key, index in the logical tensor) only. */
RtValue rt_about(const Ctx *, int value);       /* what the tables say of a value */
int rt_start(Ctx *, const RtKept *, const void *logical);      /* logical: of RT_DATA_FILE */
typedef struct RtFrom {
	const char *path;               /* of --weights; NULL: weights.safetensors beside the program, where that is needed */
	const char *map;                /* rules for names: FROM=TO,...; NULL: none */
	bool partial;                   /* what is not there starts as the model says */
} RtFrom;
int rt_start_all(Ctx *, const RtFrom *, bool resuming, int *drawn);     /* resuming: constants only, a checkpoint has the rest; drawn: parameters that are random */

/* normal.c: random numbers; many: a + b * number, for `n` indices from one on. */
uint64_t rt_hash(uint64_t a, uint64_t b);
float rt_gauss(uint64_t key, uint64_t index);
float rt_unit(uint64_t key, uint64_t index);            /* in (0, 1] */
void rt_gauss_many(RtIsa, float *to, uint64_t key, uint64_t index, int64_t n, float a, float b);
void rt_unit_many(RtIsa, float *to, uint64_t key, uint64_t index, int64_t n, float a, float b);

/* data.c: samples.  Which samples a step takes depends on the step only, never on the number of ranks. */
int rt_load(Ctx *);                                     /* fills all inputs of this step */
int rt_load_one(Ctx *, const RtInput *);

/* The scalar loss of this step, equal on all ranks; anything but a number ends the job. */
int rt_save_loss(Ctx *, const float *value);
/* rate, norm: NULL when there is none; metrics: sum and count of each that has its own, NULL: there are none */
int rt_save_step(Ctx *, const float *loss, const double *rate, const float *norm, const float *const *metrics);
int rt_save_eval(Ctx *, const float *sum, const float *count, const float *const *metrics);

/* route.c: y takes its new form from x; all ranks call it for every transfer. */
int rt_move(Ctx *, int move, void *y, const void *x);
void rt_fill(void *y, RtType, FormReduce, int64_t n);    /* with its neutral element */

/* lane.c: several transfers between the same ranks: at once; or started, and finished later, which is told by the first result. */
int rt_moves(Ctx *, int n, const int *move, void *const *y, const void *const *x);
int rt_moves_start(Ctx *, int n, const int *move, void *const *y, const void *const *x);
int rt_moves_finish(Ctx *, const void *y);

/* Transports: comm_local.c, comm_mpi.c, comm_nccl.c.  A job is a bucket of transfers; all ranks have the same, in the same order. */
struct RtJob;
typedef struct RtComm {
	const char *name;
	void (*publish)(Ctx *, struct RtJob *);         /* its operands are there */
	int (*advance)(Ctx *, struct RtJob *, bool wait);        /* as far as peers are, or to its end: 0 when its results are there, RT_LATER, or an exit code */
	void (*release)(Ctx *, const struct RtJob *);   /* until no peer reads its operands; NULL: none does then */
	void (*late)(Ctx *, double since);              /* the walk has waited for the lane since then; NULL: nobody counts */
	int (*barrier)(Ctx *);
	double (*waited)(const Ctx *, int rank);        /* seconds that a rank has waited for others; NULL: nobody knows */
	bool (*theirs)(const Ctx *, const void *);      /* memory that begins here is a peer's, and mapped here too; NULL: none is */
	size_t (*room)(const Ctx *);                    /* bytes that it has for messages, which no plan counts; NULL: none */
	size_t taken;                                   /* bytes that a library of messages took at the start */
	void *state;
} RtComm;

/* comm_local.c: ranks are processes of this machine.  rt_run starts them, runs body in each, and gives back the worst
 * exit code; a rank that dies takes the others with it. */
int rt_run(const RtProgram *, int (*body)(Ctx *, void *arg), void *arg);
void *rt_shared(const Ctx *, size_t *bytes);            /* a few bytes that all ranks see, zero at the start */

/* api.c: one rank as a library; codes as above, messages by rt_last_error. */
enum { RT_MESSAGE = 512 };
typedef struct RtConfig {
	int threads;                    /* 0: as many as there are processors */
	int64_t seed;                   /* -1: the program's */
	char *weights, *map, *data;     /* of its own; NULL: the program's */
	bool partial, changed_data;     /* as the options of the trainer */
} RtConfig;
RtConfig *rt_config_new(void);                                   /* NULL: out of memory */
void rt_config_free(RtConfig *);
int rt_config_path(char **field, const char *path);             /* keeps a copy */
typedef struct RtSession RtSession;
RtSession *rt_open(const RtProgram *, const RtConfig *);        /* config NULL: the defaults.  NULL: out of memory; a session that failed says why at each call */
void rt_close(RtSession *);
int rt_step_once(RtSession *, float *loss);
int rt_step_on(RtSession *, int64_t samples, const void *const *in, float *loss);
int64_t rt_steps_done(const RtSession *);
double rt_rate(const RtSession *);                      /* of learning, in the last step; NAN: there was none */
int rt_save_to(RtSession *, const char *dir);
int rt_resume_from(RtSession *, const char *dir);
int rt_export_to(RtSession *, const char *dir);
double rt_metric(const RtSession *, const char *name);  /* of the last step or evaluation; NAN: there is none */
int rt_evaluate(RtSession *, double *loss);             /* over the samples that are held out */
int rt_infer(RtSession *, const void *const *in, void *const *out);
int rt_infer_some(RtSession *, int64_t samples, const void *const *in, void *const *out);
int rt_get_parameter(RtSession *, const char *name, void *to, size_t bytes);
int rt_set_parameter(RtSession *, const char *name, const void *from, size_t bytes);
int rt_parameters(const RtProgram *);                           /* how many have a name for users */
const char *rt_parameter(const RtProgram *, int i, size_t *bytes);
const char *rt_last_error(const RtSession *);

/* main.c: the command line, then the steps. */
int rt_main(const RtProgram *, int argc, char **argv);

#endif
