/* Declarations that the files of the runtime share, for one rank; generated files do not see them.  A section per
 * file. */
#ifndef RUN_H
#define RUN_H

#include "rt.h"

#include <stdio.h>

/* base.c */
/* bytes of a cache line, of a page, of a message */
enum { RT_LINE = 64, RT_PAGE = 4096, RT_MESSAGE = 512 };
static inline size_t rt_round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}
double rt_seconds(void);                                                /* monotonic */
size_t rt_slab_bytes(const Ctx *);                                      /* of this rank */
const char *rt_type_name(RtType);                                       /* "F32", as in safetensors */
bool rt_is_float(RtType);
size_t rt_logical_bytes(const RtTensor *);                              /* of the logical tensor, over all ranks */
int64_t rt_sample_elements(const RtTensor *);                           /* of one index of the first axis */
const char *rt_shape_text(char *to, size_t room, RtType, int naxis, const int64_t *dim);
const char *rt_shown(const char *name);                                 /* printable, cut if it is long; valid until
                                                                         * the second call after it */
int  rt_write_at(int fd, const void *, size_t bytes, uint64_t at);      /* 0 when all is written */

/* actor.c: walks a schedule.  0, or the exit status of the first action that failed. */
int   rt_do(Ctx *, RtProgramKind);                                         /* one step, one batch, one inference */
int   rt_do_batches(Ctx *, RtProgramKind, int64_t n, const RtBatches *); /* RT_STOPPED: a signal asked for the end */
void *rt_value(const Ctx *, int value);                                  /* its address on this rank */
int64_t rt_offset(const RtProgram *, int value, int64_t piece);         /* of a piece, in the slab or the window */

/* pace.c: blocks that sleep instead of computing. */
int  rt_pace_open(Ctx *);                               /* if RT_PACE is set */
void rt_pace_close(Ctx *);
void rt_pace(const Ctx *, const RtActor *, double since); /* sleeps until the seconds of the block have passed */

/* slab.c, slab_cuda.c: memory of the device.  The host fills a value by rt_host and rt_put, and reads it by rt_view. */
int   rt_device_open(Ctx *, unsigned char *window);     /* window: shared memory of this rank, or NULL */
int   rt_device_touch(Ctx *);                           /* makes all of it resident, with the threads of the pool */
void  rt_device_close(Ctx *);
void *rt_host(Ctx *, void *value, size_t bytes);        /* where the host writes the bytes of a value */
int   rt_put(Ctx *, void *value, size_t bytes);         /* copies what was written at rt_host into the value */
int   rt_get(Ctx *, void *host, const void *value, size_t bytes);
int   rt_view(Ctx *, const void *value, size_t bytes, const void **host);  /* until the next rt_host or rt_view */

/* thread.c */
int  rt_pool_open(Ctx *, int nthread);
void rt_pool_close(Ctx *);
void rt_touch_stack(void);                      /* RT_STACK bytes of it: each thread, at its start */
int  rt_threads(const Ctx *);                   /* processors of this process, divided by the ranks that share them */

/* shards.c: the shard that a rank holds of a tensor.  A row callback gets every run of elements that are consecutive
 * both in the shard and in the logical tensor. */
typedef void RtRow(void *arg, int64_t here, int64_t there, int64_t n);
int  rt_shards_open(Ctx *);                                     /* shards of all forms; routes of its transfers */
void rt_shards_close(Ctx *);
void *rt_address(const Ctx *, const RtTensor *);
int64_t rt_elements(const Ctx *, const RtTensor *);             /* of this rank's shard */
size_t rt_bytes(const Ctx *, const RtTensor *);
RtValue rt_about(const Ctx *, int value);                       /* the row of a value, kept or of a step */
void rt_rows(const Ctx *, const RtTensor *, RtRow *row, void *arg);
void rt_rows_threaded(Ctx *, const RtTensor *, RtRow *row, void *arg); /* on all threads of this rank */
void rt_shard_rows(const FormShard *, const int64_t *dim, RtRow *row, void *arg); /* dim: of the logical tensor */
Form rt_form_of(const RtProgram *, const RtTensor *);           /* without a form: all ranks, on a mesh without axes */
int  rt_shard_on(const RtProgram *, int rank, const RtTensor *, FormShard *); /* of any rank, to be freed: 0, or -1 */
int64_t rt_elements_on(const RtProgram *, int rank, const RtTensor *);
/* no earlier rank of the mesh holds the same shard; terms: shards that are different terms are not the same */
bool rt_form_first(const Form *, int rank, bool terms);
bool rt_first_on(const RtProgram *, int rank, const RtTensor *); /* the same of a tensor: it writes the shard */

/* init.c: initial values.  Every number depends on (seed, key, index in the logical tensor) only. */
typedef struct RtFrom {
	const char *path;       /* of --weights; NULL: weights.safetensors beside the program, if that is needed */
	const char *map;        /* rules for names: FROM=TO,...; NULL: none */
	bool partial;           /* missing tensors are initialized as the model says */
} RtFrom;
int rt_take(Ctx *, const RtTensor *, RtType is, const void *logical);   /* from a file; floating types are converted */
int rt_start(Ctx *, const RtKept *, const void *logical);               /* logical: of RT_DATA_FILE */
const RtKept *rt_averaged(const RtProgram *, const RtKept *);           /* the parameter that it averages; NULL: none */
int rt_start_all(Ctx *, const RtFrom *, bool resuming, int *drawn);     /* resuming: constants only; drawn: at random */

/* normal.c: random numbers; many: a + b * number, for n consecutive indices. */
uint64_t rt_hash(uint64_t a, uint64_t b);
float rt_unit(uint64_t key, uint64_t index);                             /* in (0, 1] */
float rt_gauss(uint64_t key, uint64_t index);
void rt_gauss_many(RtIsa, float *to, uint64_t key, uint64_t index, int64_t n, float a, float b);
void rt_unit_many(RtIsa, float *to, uint64_t key, uint64_t index, int64_t n, float a, float b);

/* data.c: samples in training order, read ahead. */
typedef enum { RT_SAMPLES_TO_TRAIN, RT_HELD_OUT, RT_ALL } RtWanted; /* for training; held out; all, to evaluate */
uint64_t rt_shuffle(uint64_t key, uint64_t i, uint64_t n);      /* a permutation of 0 .. n - 1 */
void rt_data_counts(const Ctx *, int64_t *train, int64_t *held, int64_t *dropped); /* samples; dropped: per epoch */
size_t rt_data_bytes(const Ctx *);                              /* of one of the two buffers */
int  rt_data_open(Ctx *, const char *path, int64_t step, RtWanted); /* path: instead of the model's; step: the first */
int  rt_data_go_on(Ctx *, int64_t step);                        /* reads ahead again, from this step */
void rt_data_pause(Ctx *);                                      /* stops reading ahead */
void rt_data_close(Ctx *);
uint64_t rt_data_print(const Ctx *);                            /* a checksum of all files of the data set */
int  rt_data_files(const Ctx *, const uint32_t **after);        /* their number, and the checksum after each; 0: before
                                                                 * rt_data_print */
const char *rt_data_file(const Ctx *, int i);
const char *rt_data_mapped(const Ctx *, const void *at);        /* the data file that is mapped there; NULL: none */
int  rt_data_same(Ctx *);                                       /* RT_DATA: a file has changed since it was opened; all
                                                                 * ranks, after rt_data_print */
size_t rt_data_tables(const Ctx *);                             /* bytes of tables of files, if there are many */
int  rt_check_range(Ctx *, const RtInput *, const void *from);  /* 0, or RT_DATA after rt_error */
/* Stops reading ahead: the number of batches of an evaluation; an incomplete one, and one of its last sample alone,
 * are the last two (evaluate.c).  samples: to evaluate, 0: none; batch: samples of each batch. */
int64_t rt_data_held(Ctx *, int64_t *samples, int64_t *batch);
int  rt_load_one(Ctx *, const RtInput *);                       /* one input, without a data set: for tests */

/* report.c: a record holds the named numbers of one step or evaluation.  Every sink takes every record. */
enum { RT_NUMBERS = 64 };
typedef struct RtNumber { const char *name; double value; } RtNumber;   /* the name lives as long as the program */
typedef struct RtRecord { bool eval; int64_t step; int n; RtNumber number[RT_NUMBERS]; } RtRecord;
/* Fields before `terminal` are set by the caller. */
typedef struct RtReport {
	const char *log_to, *events_to, *plot_to;
	const char *set;                /* evaluations are of all samples there; NULL: of the held-out ones */
	int64_t steps, every;           /* in total; per printed line */
	bool append, saves, trains, reads;
	int writes;                     /* files beside these: trace, export */
	bool terminal;
	bool lost, log_lost, events_lost, plot_lost;    /* cannot be written: standard output, ... */
	FILE *log;
	int events;                     /* 1 + the descriptor */
	struct RtPlot *plot;
	int64_t per_sample, first;      /* tokens of a sample, or 1; the first step of this run */
	double begin;                   /* of training; evaluations are subtracted */
} RtReport;
typedef struct RtSink {
	int  (*open)(Ctx *, RtReport *);                  /* 0, or an exit status after rt_error; all three on rank 0 */
	void (*take)(const Ctx *, RtReport *, const RtRecord *);
	void (*close)(const Ctx *, RtReport *, int code); /* code: of the run */
} RtSink;
extern const RtSink rt_sink_log, rt_sink_events, rt_sink_plot;          /* log.c, events.c, plot.c */
void rt_record_add(RtRecord *, const char *name, double value);
double rt_record_get(const RtRecord *, const char *name);               /* NAN: none */
bool rt_is_curve(const char *name);                                     /* plotted over steps */
void rt_report_flush(FILE *, bool *lost, const char *name);             /* warns once if it cannot be written */
int  rt_report_open(Ctx *, RtReport *);
void rt_report(const Ctx *, RtReport *, const RtRecord *);              /* on rank 0, as the following ones */
void rt_report_step(const Ctx *, RtReport *);
void rt_report_end(const Ctx *, RtReport *, int code);
void rt_report_saved(const RtReport *, const Ctx *, int code, const char *dir); /* to resume from; NULL: nowhere */

/* plot.c */
size_t rt_plot_bytes(const RtReport *);

/* memory.c: bytes of one rank. */
size_t rt_memory_planned(const Ctx *, const RtReport *);
size_t rt_memory_taken(void);                           /* so far, by libraries that were started */
size_t rt_memory_measured(const Ctx *, size_t *peers);  /* peers: their bytes that are mapped here, not counted */
void   rt_memory_closing(Ctx *);                        /* called before, and the next after, closing files */
void   rt_memory_closed(Ctx *);

/* evaluate.c */
int  rt_average_off(Ctx *);                     /* evaluates parameters, not their averages; no step may follow */
int  rt_eval_possible(Ctx *, int64_t *samples); /* 0, or RT_DATA: no samples */
int  rt_eval_all(Ctx *, RtRecord *);            /* of the held-out samples: count, loss, metrics */
void rt_record_metrics(RtRecord *, const RtProgram *, const RtSums *);  /* one number for each */

/* infer.c: outputs for all samples in folder, written into it. */
int rt_infer_files(Ctx *, const char *folder);

/* dump.c: writes the kept values, and then the results of every action, until c->after is NULL. */
int rt_dump_begin(Ctx *, const char *dir);

/* signals.c: SIGINT, SIGTERM and SIGUSR1 ask for the end of the run; a rank ends if a mapped file is truncated. */
typedef enum { RT_TRAINS, RT_SAVES, RT_NO_STEPS } RtStops;              /* a signal ends training; also saves; ends the
                                                                         * run at once */
void rt_signals_data(const Ctx *);                                      /* the rank that maps files; NULL: none */
void rt_on(int sig, void (*what)(int));
void rt_on_stop(void (*ask)(int));
void rt_signals(void (*ask)(int));
void rt_stops(RtStops);                                                 /* before ranks start */
bool rt_stops_now(uint32_t nth, bool says);                             /* the nth signal: true if the run ends at
                                                                         * once; says: this process prints it */

/* watch.c: called around every action; moved: a bucket was in flight between these times. */
struct RtEnd;
typedef struct RtWatch {
	void (*before)(Ctx *);
	int (*after)(Ctx *);
	void (*moved)(Ctx *, double from, double to);
	/* of pipelines; NULL: nothing */
	void (*ran)(Ctx *, const RtActor *, int micro, double since);           /* a task */
	void (*waited)(Ctx *, const struct RtEnd *, double since);              /* the walk, for a queue */
	void (*arrived)(Ctx *, const struct RtEnd *, uint64_t k);               /* a piece */
} RtWatch;
int  rt_watch_open(Ctx *, const char *trace, bool profile, bool check);
int  rt_watch_close(Ctx *);
size_t rt_watch_bytes(const Ctx *);                      /* of the events so far */

#endif
