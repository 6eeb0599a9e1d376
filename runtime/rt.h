/* The part of the runtime that generated files and kernels see: the tables of a program (program.h), the context of a
 * rank, and the functions that actions call.
 *
 * A trainer holds the program of every role.  A rank looks up its role and runs the actions of that role in order, step
 * after step.  The thread that does so is called the walk; a second thread, the courier, moves values meanwhile
 * (lane.c).  The compiler has chosen and proved the order of actions and every offset, so the runtime decides nothing:
 * it starts processes, fills memory, runs actions, and reports.  Other headers: run.h (one rank), comm.h (several
 * ranks), save.h (files), data.h (samples), api.h (the library). */
#ifndef RT_H
#define RT_H

#include "program.h"

/* Exit status of a trainer. */
enum { RT_OK = 0, RT_USAGE = 2, RT_DATA = 20, RT_CHECKPOINT = 21, RT_PEER = 22, RT_NUMERIC = 23, RT_PLAN = 24,
	RT_MEMORY = 25, RT_STOPPED = 75 };

typedef struct RtPool RtPool;

/* The instructions that kernels may use; each set includes those before it. */
typedef enum { RT_PLAIN, RT_AVX2, RT_AVX512 } RtIsa;

/* The verdict of a training step (verdict.c): the worst exit status of loads; whether the loss is not finite; whether
 * the run ends.  A rank's vote on it, and whether it has been sent and the verdict received. */
typedef struct RtVerdict { uint32_t code, not_finite, stop; } RtVerdict;
typedef struct RtVote {
	uint32_t code, not_finite, stop;
	RtVerdict all;
	int loads;                      /* still to come */
	bool reports, sent, known;       /* reports: this rank reports the loss */
} RtVote;

/* What an evaluation or inference does besides its actions, for batch c->micro: fills inputs, which the data set does
 * not; takes outputs with these indices, of an evaluation those in c->sums.  NULL: nothing.  An exit status after
 * rt_error. */
typedef struct RtBatches {
	int (*load)(Ctx *, void *arg);
	int (*take)(Ctx *, const int *output, int n, void *arg);
	void *arg;
} RtBatches;

/* The context of a rank, the first argument of every kernel. */
struct Ctx {
	const RtProgram *program;
	int rank, nrank, role;
	int here;                       /* ranks on this machine; 0: only this one */
	bool first_here;                /* the first rank on this machine */
	FormShard *shard_of;            /* by form: what this rank holds; shards.c */
	struct RtRoute *route;          /* by transfer; route.c */
	unsigned char *slab, *window;   /* on the device */
	struct RtComm *comm;
	struct RtLane *lane;            /* transfers in flight; lane.c.  NULL: a transfer is done when it is started */
	struct RtQueues *queues;        /* between stages; queue.c.  NULL: none */
	bool aside;                     /* this is the thread of the lane, not the walk */
	bool bound;                     /* it has processors of its own */
	size_t peak;                    /* memory measured so far, before files were closed; memory.c */
	RtPool *pool;                   /* NULL: this thread alone */
	int nthread;
	RtIsa isa;
	unsigned char *shared, *work;   /* scratch: of all threads; of thread i at work + i * work_each */
	size_t work_shared, work_each;
	void *device;                   /* CUDA: stream, kernels, staging; unused on the CPU */
	uint64_t changed, *packed;      /* counts changes of kept values and of the memory of packed weights; by
	                                 * weight: the count when it was packed */
	int64_t last_kept;              /* offset of the last kept value in the slab */
	char *error;                    /* of a library: messages go here, RT_MESSAGE bytes, instead of to stderr */
	uint64_t seed;
	int64_t step;
	RtProgramKind kind;             /* of the program that runs */
	double loss;                    /* reported by the last step */
	RtSums sums;                    /* reported by the last step or the last batch of an evaluation */
	int64_t micro;                  /* the current micro-batch, from 0; of an evaluation or inference: the batch */
	const RtBatches *batches;       /* of the evaluation or inference that runs; NULL: none */
	RtVote vote;                    /* of the last step */
	int64_t runs[RT_PROGRAMS];      /* steps, batches and inferences of this process that have begun */
	int64_t piece;                  /* the current micro-batch, counted over all runs of the program */
	struct RtLoader *data;          /* data.c */
	const void *const *given;       /* an array of samples per input, instead of the data set; NULL: none */
	struct RtSaver *saver;          /* checkpoint.c */
	struct RtPace *pace;            /* blocks sleep instead of computing; pace.c.  NULL: they compute */
	struct RtWatch *watch;          /* called around every action; watch.c.  NULL: none */
	double rate, norm;              /* reported by the last step; NAN: none */
	bool again;                     /* the step runs again, to find the first value that is not finite */
	bool begun;                     /* the first step or batch has begun */
	const RtAction *at;             /* the running action, NULL between steps; its number */
	int id;
	const int *values;              /* numbers of its results; without any, its first operand; NULL: no values */
	int turn;                       /* the micro-batch of the running task; -1: it runs once per step */
	int (*after)(Ctx *, int micro); /* called after an action; NULL: nothing; micro: the turn */
	const char *dump;               /* the folder that results are written to; dump.c */
};

/* Bytes that a process needs beside slab, window and scratch: RT_BASE at run time, RT_AT_START before it opens
 * anything, RT_STACK per stack, RT_SAVER for the thread that saves, and RT_SAVED for each tensor in its texts. */
enum { RT_BASE = 112 << 10, RT_AT_START = 64 << 10, RT_STACK = 32 << 10, RT_SAVER = 56 << 10, RT_SAVED = 256 };
/* For names and offsets in files that are read (plus RT_SAVED for each tensor); for each file that is written. */
enum { RT_READER = 16 << 10, RT_WRITER = 8 << 10 };
/* With several ranks: RT_SIGNALS, plus RT_SIGNAL for each rank of a channel; for each shard; for each route, plus
 * RT_PEERS for each of its peers. */
enum { RT_SIGNALS = 24 << 10, RT_SIGNAL = 64, RT_SHARD = 272, RT_ROUTE = 128, RT_PEERS = 64 };
/* scratch for tests and benchmarks of kernels: kernels/cpu/work.h */
enum { RT_WORK_SHARED = 4 << 20, RT_WORK_EACH = 4 << 20 };

/* ---- functions that actions and kernels call ---- */

/* base.c.  rt_error prints "rank 3 step 812 action a41 (MatMul h): ...", before the first step "rank 3: ...", and
 * returns code. */
int rt_error(const Ctx *, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
size_t rt_width(RtType);                                /* bytes of an element */

/* actor.c.  Addresses of n values of the current micro-batch, by their numbers. */
void rt_bind(const Ctx *, const int *values, size_t n, void **t);
/* The beginning and the end of an action; values: RtAction's.  rt_enter: whether it is to run; rt_leave: code, the
 * exit status of the action, or that of what runs after it. */
bool rt_enter(Ctx *, const RtAction *, const int *values);
int rt_leave(Ctx *, int code);
/* The copy of b, k x n with these strides, that stays packed in the running program; NULL: none.  *fresh: it is up to
 * date; else the caller packs it now. */
float *rt_packed(Ctx *, const float *b, int64_t k, int64_t n, int64_t row, int64_t col, bool *fresh);

/* data.c: fills all inputs of this step.  Which samples a step takes depends on the step only, never on the number of
 * ranks. */
int rt_load(Ctx *);
/* Reports the loss of this step, equal on all ranks; it must be finite.  rate, norm: NULL if there is none; metrics:
 * sum and count of each metric that has its own, NULL if there are none. */
int rt_save_loss(Ctx *, const float *value);
int rt_save_step(Ctx *, const float *loss, const double *rate, const float *norm, const float *const *metrics);
int rt_save_eval(Ctx *, const float *sum, const float *count, const float *const *metrics);
int rt_save_outputs(Ctx *, const int *output, int n);   /* of an inference, by their indices */

/* lane.c: a bucket of transfers between the same ranks: completed at once; or started, and finished later.  A started
 * bucket is named by its first result. */
int rt_moves(Ctx *, int n, const int *move, void *const *y, const void *const *x);
int rt_moves_start(Ctx *, int n, const int *move, void *const *y, const void *const *x);
int rt_moves_finish(Ctx *, const void *y);

/* route.c: converts x to the form of y; all ranks that take part call it. */
int rt_move(Ctx *, int move, void *y, const void *x);
void rt_fill(void *y, RtType, FormReduce, int64_t n);   /* with the neutral element */

/* shards.c: the first index that this rank holds along an axis; form: 1 + its index. */
int64_t rt_origin(const Ctx *, int form, int axis);
bool rt_mine(const Ctx *, int move);            /* of a transfer without peers: this rank has a term of the result */

/* slab.c, slab_cuda.c: waits until the device is idle. */
int rt_sync(Ctx *);

/* thread.c: runs body over 0 .. n - 1 on the threads of this rank, in pieces that begin at multiples of grain.  Results
 * must not depend on how the loop is cut.  A body starts no other loop. */
typedef void RtBody(void *arg, int64_t lo, int64_t hi, int thread);
void rt_parallel(Ctx *, int64_t n, int64_t grain, RtBody *body, void *arg);

#endif
