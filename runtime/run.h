/* What the files of the runtime share, and generated programs do not see: one section per file. */
#ifndef RUN_H
#define RUN_H

#include "rt.h"

#include <stdio.h>

/* base.c */
enum { RT_LINE = 64, RT_PAGE = 4096 };                                   /* bytes of a cache line and of a page of memory */
static inline size_t rt_round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}
double rt_seconds(void);                                                 /* monotonic */
const char *rt_type_name(RtType);                                        /* "F32", as safetensors has it */
bool rt_is_float(RtType);
size_t rt_whole_bytes(const RtTensor *);                                 /* of the logical tensor, over all ranks */
int64_t rt_sample_elements(const RtTensor *);                            /* of one index of the first axis */
const char *rt_shape_text(char *to, size_t room, RtType, int rank, const int64_t *dim);
const char *rt_shown(const char *name);                                  /* printable, cut if it is long; valid until the second call after it */
int  rt_write_at(int fd, const void *, size_t bytes, uint64_t at);       /* 0 when all is written */

/* parts.c: row is called for every run of elements that lie side by side here and in the logical tensor. */
typedef void RtRow(void *arg, int64_t here, int64_t there, int64_t n);
void rt_rows(const Ctx *, const RtTensor *, RtRow *row, void *arg);
void rt_rows_threaded(Ctx *, const RtTensor *, RtRow *row, void *arg);  /* on all threads of this rank */
void rt_part_rows(const FormPart *, const int64_t *dim, RtRow *row, void *arg);          /* dim: of the logical tensor */
int  rt_part_on(const RtProgram *, int rank, const RtTensor *, FormPart *);              /* of any rank, to be freed: 0, or -1 */
int64_t rt_elements_on(const RtProgram *, int rank, const RtTensor *);
Form rt_form_of(const RtProgram *, const RtTensor *);                    /* one without a form lies on all ranks as on a mesh without axes */
bool rt_form_first(const Form *, int rank);                              /* no rank before it on the mesh holds the same part */
bool rt_first_on(const RtProgram *, int rank, const RtTensor *);         /* no rank before it on the mesh holds the same part: it is the one that writes it */

/* route.c: what one rank takes of its peers in a transfer: boxes of elements, as loops over both parts, the outermost first. */
enum { RT_LOOPS = 2 * RT_AXES };
typedef struct RtLoop { int64_t len, from_step, to_step; } RtLoop;       /* steps in elements */
typedef struct RtBlock {
	int rank;                       /* whose part it is taken from */
	bool first;                     /* written; else combined with what is there */
	int n;
	RtLoop *loop;                   /* n of them; NULL: none */
	int64_t from, to, run;          /* where it begins; elements side by side, innermost */
} RtBlock;
typedef void RtCombine(void *y, const void *x, int64_t n);
typedef struct RtRoute {
	const RtMove *move;
	size_t elem;
	int64_t count;                  /* elements of y here */
	bool fill;                      /* some of them are the neutral element */
	RtCombine *combine;             /* NULL: nothing is combined */
	RtBlock *block; int nblock;
	int *peer, npeer;               /* ranks that this one waits for and that wait for it, itself included; by rank */
	int *term, nterm;               /* an all-reduce: the ranks that hold the terms, in their order; else 0 */
	int me;                         /* its place among the terms */
} RtRoute;
int  rt_route_open(Ctx *, RtRoute *, const RtMove *, int rank);          /* as that rank takes it */
void rt_route_close(RtRoute *);
int  rt_routes_open(Ctx *);
void rt_routes_close(Ctx *);
typedef const void *RtSource(void *arg, int rank);                       /* where x lies on that rank, once it may be read */
void rt_route_take(Ctx *, const RtRoute *, void *y, RtSource *, void *arg);              /* all blocks, in their order */
void rt_route_sum(const RtRoute *, void *y, const void *const *x, int n, int64_t count); /* y = x[0] + x[1] + ..., by combine */

/* A bucket of transfers on its way. */
enum { RT_LATER = -1 };
typedef struct RtJob {
	int n, *move;
	void **y;
	const void **x;
	bool open;                      /* started, and not finished */
	double from, to;                /* seconds: when it was first looked at, and through */
	int64_t step;                   /* the action that started it */
	const RtAction *at;
	int id;
	const int *values;
	uint32_t number;                /* what follows is the transport's */
	int phase;
	size_t done;
} RtJob;

/* bucket.c: a bucket of all-reduces as one range of bytes. */
typedef struct RtSpan {
	int i;                          /* of the values */
	size_t from, bytes;             /* of its bytes */
	size_t at;                      /* from the beginning of the range that was asked for */
	size_t begin;                   /* where the value begins in the bucket */
} RtSpan;
size_t rt_bucket_bytes(const Ctx *, const RtJob *);
bool rt_bucket_alone(const Ctx *, const RtJob *);                        /* no other rank takes part: where parts are empty values have other peers */
bool rt_bucket_next(const Ctx *, const RtJob *, size_t lo, size_t hi, RtSpan *);
typedef const void *RtTerm(void *arg, int term, const RtSpan *);                         /* where a term of these bytes lies */
void rt_bucket_sum(const Ctx *, const RtJob *, size_t lo, size_t hi, RtTerm *, void *arg, unsigned char *to);    /* to: NULL: into the results */
void rt_bucket_put(const Ctx *, const RtJob *, size_t lo, size_t hi, const unsigned char *from);                 /* into the results */
const void *rt_bucket_get(const Ctx *, const RtJob *, size_t lo, size_t hi, unsigned char *room);                /* of the operands */
bool rt_bucket_whole(const Ctx *, const RtJob *, size_t lo, size_t hi, unsigned char **y);                       /* one result has all these bytes */

/* lane.c */
int  rt_lane_open(Ctx *);                                                /* after the pool */
void rt_lane_close(Ctx *, bool failed);
int  rt_lane_drain(Ctx *);                                               /* all that was started is finished */
int  rt_lane_poll(Ctx *);                                                /* between actions */
bool rt_lane_wanted(const Ctx *);                                        /* somebody waits for what this thread does */

/* replicas.c: 0 when all ranks hold the same of what they keep whole; all ranks call it. */
int rt_replicas(Ctx *);

/* init.c: the parameter that this row is the average of; NULL: it is none.  A tensor becomes what a file has, converted if it is another
 * floating type. */
const RtKept *rt_averaged(const RtProgram *, const RtKept *);
int rt_take(Ctx *, const RtTensor *, RtType is, const void *logical);

/* dump.c: what is kept is written to files, and from then on the results of every action, until c->after is NULL. */
int rt_dump_begin(Ctx *, const char *dir);

/* npy.c: what stands before the numbers, its bytes returned; the name of a value in a file name: / is \x2F, and it is cut. */
enum { RT_NPY_HEAD = 320, RT_NPY_NAME = 212 };
size_t rt_npy_head(char head[RT_NPY_HEAD], RtType, int rank, const int64_t *dim);
void rt_npy_name(char to[RT_NPY_NAME], const char *name);

/* infer.c: outputs of all samples in folder, into it. */
int rt_infer_files(Ctx *, const char *folder);

/* file.c: files that are mapped and only read. */
typedef struct RtFile { const unsigned char *data; size_t bytes; const char *path; int64_t time; } RtFile;       /* path: the caller's; time: when it was changed last, in ns */
int  rt_file_open(Ctx *, int code, const char *path, RtFile *);          /* 0, or code after rt_error */
void rt_file_close(RtFile *);
struct stat;
int64_t rt_file_time(const struct stat *);
uint32_t rt_crc32c(uint32_t crc, const void *, size_t bytes);            /* begins with 0 */

/* json.c: reads JSON text from front to back.  The first thing that is not as asked sets bad, after which all give nothing. */
typedef struct RtJson { const char *at, *end; bool bad; } RtJson;
bool rt_json_open(RtJson *, char bracket);                               /* { or [ */
bool rt_json_more(RtJson *, char bracket);                               /* another entry follows; else the } or ] is taken */
int  rt_json_key(RtJson *, char *to, size_t room);                       /* a string and its colon; its length */
int  rt_json_string(RtJson *, char *to, size_t room);
int64_t rt_json_int(RtJson *);
double rt_json_number(RtJson *);                                         /* NAN: null */
void rt_json_skip(RtJson *);                                             /* one value of any kind */

/* safetensors.c: a header of JSON, then the bytes of tensors. */
enum { RT_NAME = 1024 };
typedef struct RtEntry { const char *name; RtType type; int rank; int64_t dim[RT_AXES]; uint64_t from, to; } RtEntry;
typedef struct RtSafe {
	RtFile file;
	RtEntry *entry; int n, next;
	char *names;
	const unsigned char *data;
	bool ours;                      /* start values of a program: the compiler wrote it */
} RtSafe;
int  rt_safe_open(Ctx *, int code, const char *path, RtSafe *);
int  rt_safe_read(Ctx *, int code, const char *path, RtFile, RtSafe *);  /* of a file that is open; whatever comes of it, it is closed with the rest */
void rt_safe_close(RtSafe *);
const RtEntry *rt_safe_find(RtSafe *, const char *name);                 /* NULL: not there */
bool rt_safe_fits(const RtEntry *, const RtTensor *);                    /* same type and shape */

/* weights.c: tensors of a file or a folder, matched with what the program keeps. */
typedef struct RtWeights {
	RtSafe *file; int nfile;
	struct RtItem *item; int nitem; /* by name */
	struct RtItem **row;            /* by number of what is kept; NULL: it is not there */
	bool ours;
} RtWeights;
int  rt_weights_open(Ctx *, const RtFrom *, RtWeights *);                /* RT_DATA after explaining; rank 0 says what was found */
void rt_weights_close(RtWeights *);
bool rt_weights_row(const RtWeights *, int row, RtType *, const void **from);
enum { RT_RULES = 4096 };
const char *rt_map_wrong(const char *rules);                             /* what is wrong with them; NULL: nothing */
void rt_unescape(char *to, size_t room, const char *name);              /* the name as the model has it */

/* export.c: all ranks; DIR/model.safetensors. */
int rt_export(Ctx *, const char *dir);

/* report.c: what is known of one step or of one evaluation is a record of named numbers.  Every sink takes every record, so a number that
 * is added to one is in the lines, in the log and wherever else. */
enum { RT_NUMBERS = 64 };
typedef struct RtNumber { const char *name; double value; } RtNumber;   /* the name lives as long as the program */
typedef struct RtRecord { bool eval; int64_t step; int n; RtNumber number[RT_NUMBERS]; } RtRecord;
void rt_record_add(RtRecord *, const char *name, double value);
double rt_record_get(const RtRecord *, const char *name);                /* NAN: it has none */
bool rt_is_curve(const char *name);                                      /* worth a picture over steps: not seconds, nor a count of samples */

/* What is before `terminal` is the caller's, terminal is not. */
typedef struct RtReport {
	const char *log_to, *events_to, *plot_to;
	const char *set;                /* evaluations are of all samples in there; NULL: of what is held out */
	int64_t steps, every;           /* in all; that many to a line */
	bool append, saves, trains, terminal;
	bool lost, log_lost, events_lost, plot_lost;    /* standard output, ...: it cannot be written */
	FILE *log;
	int events;                     /* 1 + the descriptor */
	struct RtPlot *plot;
	int64_t per_sample, first;      /* tokens of a sample, or 1; the first step of this run */
	double begin;                   /* of training; evaluations in between are taken out */
} RtReport;
typedef struct RtSink {
	int  (*open)(Ctx *, RtReport *);                                 /* 0, or a code after rt_error; all are on rank 0 */
	void (*take)(const Ctx *, RtReport *, const RtRecord *);
	void (*close)(const Ctx *, RtReport *, int code);                /* of the run */
} RtSink;
extern const RtSink rt_sink_log, rt_sink_events, rt_sink_plot;           /* log.c, events.c, plot.c */
size_t rt_plot_bytes(const RtReport *);
int  rt_report_open(Ctx *, RtReport *);
void rt_report_step(const Ctx *, RtReport *);                            /* on rank 0, as are those that follow */
void rt_report(const Ctx *, RtReport *, const RtRecord *);
void rt_report_end(const Ctx *, RtReport *, int code);
void rt_report_saved(const RtReport *, const Ctx *, int code, const char *dir);          /* where the run can go on; dir: NULL: it saves nothing */
void rt_report_flush(FILE *, bool *lost, const char *name);              /* where it cannot be written, that is said once */

/* memory.c: bytes of one rank. */
size_t rt_memory_planned(const Ctx *, bool checkpoint);
size_t rt_memory_measured(const Ctx *, size_t *peers);                   /* peers: bytes of theirs that are mapped here, not counted */
size_t rt_memory_taken(void);                                            /* by others than this program until now: libraries that were started */

/* evaluate.c */
int  rt_eval_possible(Ctx *, int64_t *samples);                          /* 0, or RT_DATA: there are none */
int  rt_eval_all(Ctx *, RtRecord *);                                     /* of what is held out: samples, loss, metrics */
void rt_record_metrics(RtRecord *, const RtProgram *, const RtSums *);   /* one number for each */
int  rt_average_off(Ctx *);                                              /* evaluations read the parameters themselves from now on; no step may follow */

/* data.c */
int  rt_check_range(Ctx *, const RtInput *, const void *from);           /* 0, or RT_DATA after rt_error */
size_t rt_data_bytes(const Ctx *);                                       /* of one of the two buffers */
typedef enum { RT_SAMPLES_TO_TRAIN, RT_HELD_OUT, RT_ALL } RtWanted;      /* steps, and what is held out; only that; only evaluations, of all samples in path */
int  rt_data_open(Ctx *, const char *path, int64_t step, RtWanted);      /* path: instead of the model's; step: the first that is wanted */
void rt_data_pause(Ctx *);                                               /* from here on data are fetched when they are asked for */
void rt_data_held(Ctx *, int64_t first);                                 /* what an evaluation loads next; reading ahead ends */
int  rt_data_go_on(Ctx *, int64_t step);                                 /* reads ahead again, for this step */
void rt_data_close(Ctx *);
void rt_data_counts(const Ctx *, int64_t *train, int64_t *held, int64_t *dropped);       /* samples; dropped: of each epoch */
uint64_t rt_data_print(const Ctx *);                                     /* a checksum of the data set, of all its files */
int  rt_data_same(Ctx *);                                                /* RT_DATA: a file has other bytes than when it was opened; all ranks call it, after rt_data_print */
int  rt_data_files(const Ctx *, const uint32_t **after);                 /* how many, and what the checksum was behind each; 0: rt_data_print was not called */
const char *rt_data_file(const Ctx *, int i);
const char *rt_data_mapped(const Ctx *, const void *at);                 /* the file that is mapped there; NULL: none of the data */
size_t rt_data_tables(const Ctx *);                                      /* bytes of what is known of files, where they are many */
uint64_t rt_shuffle(uint64_t key, uint64_t i, uint64_t n);               /* a permutation of 0 .. n - 1 */

/* agree.c: ranks compare what they have with what rank 0 has; all ranks call these, with the same facts.  RT_PLAN where one differs. */
enum { RT_FACT = 64 };
typedef struct RtFact { char name[RT_FACT], value[RT_FACT]; } RtFact;
int  rt_same(Ctx *, int n, const RtFact *);
int  rt_same_plan(Ctx *);
double rt_patience(void);                                                /* seconds after which a rank that does not answer is lost */

/* pulse.c: a thread that calls beat once every tick */
typedef struct RtPulse RtPulse;
RtPulse *rt_pulse_open(double tick, void (*beat)(void *), void *arg);   /* NULL: it cannot be started */
void rt_pulse_close(RtPulse *);
double rt_pulse_tick(double patience);                                   /* seconds */

/* checkpoint.c, resume.c, folder.c */
#define RT_CHECKPOINT_FORMAT "sbpcc checkpoint 2"
#define RT_MANIFEST_END ",\"crc\":\"%08" PRIx32 "\"}\n"                  /* of all bytes before it */
#define RT_STEP_FORMAT "step-%08" PRId64
enum { RT_PATH = 4096, RT_STEP_NAME = 32 };
typedef struct RtResume {
	char path[RT_PATH];
	int64_t step;
	uint64_t seed, data;
	uint32_t manifest;              /* its checksum */
	bool itself;                    /* the folder that was named is the checkpoint */
} RtResume;
int  rt_resume_find(Ctx *, const char *dir, bool last_good, RtResume *); /* the newest that is good; by rank 0 */
int  rt_resume_at(Ctx *, const char *dir, bool whole, RtResume *);       /* the one of r->step, which rank 0 found; whole: its tensors are checked, too */
int  rt_resume_load(Ctx *, const RtResume *);
int  rt_resume_other_data(Ctx *, const RtResume *);                      /* RT_DATA after saying which file is not as it was */
size_t rt_snapshot_bytes(const RtProgram *);
typedef struct RtSaving {
	const char *dir;
	int64_t keep;
	uint64_t data;                  /* checksum of the data set */
	const RtResume *from;           /* what this run goes on from; NULL: it begins anew */
	bool overwrite, last_good;      /* later checkpoints in dir are removed; those that are damaged are */
} RtSaving;
int  rt_folder_open(Ctx *, const char *dir, const RtSaving *, int *lock);       /* all ranks: theirs alone, and the same for all */
void rt_folder_remove(int parent, const char *name);                     /* a checkpoint */
bool rt_folder_prune(const char *dir, int64_t after, int64_t keep);      /* removes the oldest of the checkpoints after a step until so many are left */
int64_t rt_step_of(const char *name);
int  rt_saver_open(Ctx *, const RtSaving *);
int  rt_save(Ctx *, int64_t done, bool last);                            /* all ranks, after `done` steps; last: waits until it is on the disk */
void rt_save_look(Ctx *);                                                /* between steps: a save that all ranks have written becomes a checkpoint */
int64_t rt_saved_last(const Ctx *);                                      /* on rank 0: steps of the last checkpoint that this run wrote; -1: none */
void rt_saver_close(Ctx *);
int  rt_write_part(const RtProgram *, int rank, const RtTensor *, int fd, uint64_t base, const void *from);      /* what a rank holds, into the whole tensor at base */
int  rt_saved_steps(const char *dir, int64_t *step, int max);            /* of checkpoints in a folder, the newest first */
static inline bool rt_is_saved(const RtKept *k)
{
	return k->keep != RT_CONSTANT;
}

/* comm_local.c, comm_mpi.c */
uint32_t rt_agree(Ctx *, uint32_t mine);                                 /* what rank 0 says; all ranks call it */
void rt_tell(Ctx *, void *what, size_t bytes);                           /* of rank 0, at most a page, to all; all ranks call it */
uint32_t rt_worst(Ctx *, uint32_t mine);                                 /* the largest that any rank says; all ranks call it */
uint32_t rt_stop_asked(const Ctx *);                                     /* how many signals have asked for it */

/* signals.c: asked by SIGINT, SIGTERM and SIGUSR1; what a rank ignores, and how it ends when a mapped file becomes shorter. */
typedef enum { RT_TRAINS, RT_SAVES, RT_NO_STEPS } RtStops;      /* what is left to do when a signal asks for the end: finish the step; and save; nothing */
void rt_on(int sig, void (*what)(int));
void rt_on_stop(void (*ask)(int));
void rt_signals(void (*ask)(int));
void rt_signals_data(const Ctx *);                                       /* whose files may become shorter; NULL: nobody's */
void rt_stops(RtStops);                                                  /* before ranks start */
bool rt_stops_now(uint32_t nth, bool says);                              /* the nth signal came: whether the run ends at once; says: this process tells the user */

/* watch.c: what is called around every action */
typedef struct RtWatch { void (*before)(Ctx *); int (*after)(Ctx *); void (*moved)(Ctx *, double from, double to); } RtWatch;   /* moved: a bucket, between these times */
int  rt_watch_open(Ctx *, const char *trace, bool profile, bool check);
int  rt_watch_close(Ctx *);

#endif
