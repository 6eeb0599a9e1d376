/* Several ranks: transfers, agreement and liveness.  A section per file. */
#ifndef COMM_H
#define COMM_H

#include "run.h"

/* comm_local.c, comm_mpi.c, comm_nccl.c: transports.  A job is a bucket of transfers on one channel; the ranks of the
 * channel have the same jobs, in the same order. */
enum { RT_LATER = -1 };
struct RtJob;
struct RtEnd;
struct RtBell;
/* The events that wake up a sleeping thread: of peers in a job, of peers in a queue, of this rank. */
enum { RT_FOR_JOB = 1, RT_FOR_QUEUE = 2, RT_FOR_OWN = 4 };
typedef struct RtComm {
	const char *name;
	void (*publish)(Ctx *, struct RtJob *);           /* its operands are ready */
	int (*advance)(Ctx *, struct RtJob *, bool wait); /* as far as peers are ready, or to the end: 0 when its
	                                                   * results are ready, RT_LATER, or an exit status */
	void (*release)(Ctx *, const struct RtJob *);     /* waits until no peer reads its operands; NULL: none does */
	void (*late)(Ctx *, double since);                /* the walk waits for the lane, since then; NULL: ignored */
	int (*barrier)(Ctx *);
	void (*say)(Ctx *, const RtVerdict *);            /* the vote of this rank on a step; does not wait */
	int (*hear)(Ctx *, RtVerdict *, bool wait);       /* the verdict: 0, RT_LATER, or an exit status */
	double (*waited)(const Ctx *, int rank);          /* seconds that a rank has waited for others; NULL: unknown */
	bool (*theirs)(const Ctx *, const void *);        /* a peer's memory is mapped at this address; NULL: none is */
	size_t (*room)(const Ctx *);                      /* bytes of message buffers, which no plan counts; NULL: 0 */
	struct RtBell *bell;                              /* of this rank: peers and the walk ring it */
	int (*rest)(Ctx *, uint32_t rung, int what, int turn);    /* sleeps until the bell is no longer `rung`, or for a
	                                                   * while; turn: rests since something advanced.  0, or
	                                                   * an exit status */
	/* ends of queues; open and close may be NULL; without advance, the transport has no queues */
	int (*end_open)(Ctx *, struct RtEnd *);
	void (*end_close)(Ctx *, struct RtEnd *);
	void (*end_publish)(Ctx *, struct RtEnd *);       /* the walk has produced a piece; NULL: the courier polls */
	int (*end_advance)(Ctx *, struct RtEnd *, uint64_t k);    /* 0 when piece k is complete, RT_LATER, or an exit
	                                                   * status */
	void (*task)(Ctx *, int actor);                   /* the walk begins a task; NULL: ignored, as the next */
	void (*waits)(Ctx *, const struct RtEnd *);       /* the walk waits for an end; NULL: no longer */
	size_t taken;                                     /* bytes that the message library took at the start */
	void *state;
} RtComm;

/* comm_local.c, comm_mpi.c.  rt_run starts the ranks, runs body in each, and returns the worst exit status; a rank that
 * dies ends the others. */
void *rt_shared(const Ctx *, size_t *bytes);            /* comm_local.c: memory of all ranks, zero at the start */
uint32_t rt_agree(Ctx *, uint32_t mine);                /* the value of rank 0; all ranks call it, as the next two */
uint32_t rt_worst(Ctx *, uint32_t mine);                /* the largest value of all ranks */
void rt_broadcast(Ctx *, int from, void *what, size_t bytes);   /* from a rank to all, at most a page */
uint32_t rt_stop_asked(const Ctx *);                    /* the number of signals that asked for the end */
int rt_run(const RtProgram *, int (*body)(Ctx *, void *arg), void *arg);

/* route.c: the elements that one rank takes from its peers in a transfer: blocks, each as loops over both shards, the
 * outermost first. */
enum { RT_LOOPS = 2 * RT_AXES };
typedef struct RtLoop { int64_t len, from_step, to_step; } RtLoop;       /* steps in elements */
typedef struct RtBlock {
	int rank;                       /* that holds the source */
	bool first;                     /* written; else combined with what is there */
	int n;
	RtLoop *loop;                   /* n of them; NULL: none */
	int64_t from, to, run;          /* where it begins; consecutive elements, innermost */
} RtBlock;
typedef void RtCombine(void *y, const void *x, int64_t n);
typedef struct RtRoute {
	const RtMove *move;
	size_t elem;
	int64_t count;                  /* elements of y on this rank */
	bool fill;                      /* some of them are the neutral element */
	RtCombine *combine;             /* NULL: nothing is combined */
	RtBlock *block; int nblock;
	int *peer, npeer;               /* ranks that take part, this one included, in order */
	int *term, nterm;               /* an all-reduce: the ranks that hold the terms, in order; else 0 */
	int me;                         /* index of this rank among the terms */
} RtRoute;
typedef const void *RtSource(void *arg, int rank);              /* the address of x of that rank, once it is ready */
int  rt_route_open(Ctx *, RtRoute *, const RtMove *, int rank); /* from the view of that rank; without peers if it
                                                                 * takes no part */
int  rt_routes_open(Ctx *);
void rt_route_close(RtRoute *);
void rt_routes_close(Ctx *);
void rt_route_take(Ctx *, const RtRoute *, void *y, RtSource *, void *arg);              /* all blocks, in order */
void rt_route_sum(const RtRoute *, void *y, const void *const *x, int n, int64_t count); /* x[0] + .., by combine */

/* A bucket of transfers in flight. */
typedef struct RtJob {
	int n, *move;
	void **y;
	const void **x;
	bool open;                      /* started and not finished */
	double from, to;                /* seconds: first attempt, and completion */
	int64_t step;                   /* the action that started it */
	const RtAction *at;
	int id;
	const int *values;
	uint32_t number;                /* on its channel; of the transport, as the rest */
	int phase;
	size_t done;
} RtJob;

/* bucket.c: a bucket of all-reduces as one range of bytes. */
typedef struct RtSpan {
	int i;                          /* index of the value */
	size_t from, bytes;             /* its range of bytes */
	size_t at;                      /* offset from the beginning of the requested range */
	size_t begin;                   /* offset of the value in the bucket */
} RtSpan;
typedef const void *RtTerm(void *arg, int term, const RtSpan *); /* the address of a term of these bytes */
size_t rt_bucket_bytes(const Ctx *, const RtJob *);
int rt_bucket_channel(const Ctx *, const RtJob *);               /* one for all its transfers */
bool rt_bucket_next(const Ctx *, const RtJob *, size_t lo, size_t hi, RtSpan *);
/* Bytes lo .. hi - 1 of a bucket.  sum: adds the terms, into `to` or, if that is NULL, into the results.  put: copies
 * them into the results.  get: reads them from the operands.  in_one: true if one result has all of them, at *y. */
void rt_bucket_sum(const Ctx *, const RtJob *, size_t lo, size_t hi, RtTerm *, void *arg, unsigned char *to);
void rt_bucket_put(const Ctx *, const RtJob *, size_t lo, size_t hi, const unsigned char *from);
const void *rt_bucket_get(const Ctx *, const RtJob *, size_t lo, size_t hi, unsigned char *room);
bool rt_bucket_in_one(const Ctx *, const RtJob *, size_t lo, size_t hi, unsigned char **y);

/* queue.c: an end of a queue.  Pieces are counted over all runs. */
typedef struct RtEnd {
	const RtQueue *queue;
	RtProgramKind kind;
	int per, *order;                /* pieces of a run, and the micro-batch of each */
	_Atomic uint64_t made;          /* pieces that the walk has published, or given back */
	_Atomic uint64_t done;          /* pieces that no peer reads any more, or that have arrived */
	_Atomic uint64_t begun;         /* pieces of the runs that have begun */
	_Atomic uint64_t first;         /* the first of them */
	uint64_t seen;                  /* receives: pieces that the walk has waited for */
	int *peer, npeer;               /* ranks that take from this one, or that it takes from, without itself */
	bool self;                      /* this rank is one of them */
	struct RtEnd *other;            /* with self: the other end of the queue */
	double *from, *to;              /* by copy: when its last piece was transferred */
	void *state;                    /* of the transport */
} RtEnd;
int64_t rt_micros(const Ctx *, RtProgramKind);                           /* of a run */
int64_t rt_end_piece(const Ctx *, const RtEnd *, uint64_t k);            /* the micro-batch of the k-th piece */
bool rt_end_waits(const RtEnd *);                                        /* for a peer */
int  rt_queues_open(Ctx *);                                              /* before the lane */
void rt_queues_close(Ctx *);
RtEnd *rt_queues_ends(const Ctx *, int *n);                              /* of the program that runs */
int  rt_queues_poll(Ctx *);                                              /* 0: a piece was completed; RT_LATER; an exit
                                                                          * status */
bool rt_queues_wait(const Ctx *);                                        /* an end waits for a peer */
void rt_queues_threaded(Ctx *, bool);                                    /* the lane has a thread */
void rt_queues_fail(Ctx *, int code);                                    /* it has failed */
int  rt_queues_before(Ctx *, const RtActor *);                           /* waits for pieces and for room */
void rt_queues_after(Ctx *, const RtActor *);                            /* publishes and gives back */
int  rt_queues_drain(Ctx *);                                             /* until all published pieces are gone */
int  rt_queues_begin(Ctx *, RtProgramKind, int64_t n);                   /* the next n runs of a program */
/* The task that a rank is in as one number: program, actor, micro-batch. */
int64_t rt_task(const Ctx *, int actor);
/* A chain of waits: the walk waits for an end since a while, that is for rank `first`, which waits for another one, and
 * so on to rank `last`, which is in `task` and waits for nobody, unless the chain is a circle. */
typedef struct RtChain { const RtEnd *end; int64_t step; double seconds; int first, last; int64_t task; bool circle; }
	RtChain;
void rt_queues_warn(const Ctx *, const RtChain *);

/* lane.c */
bool rt_lane_threaded(const Ctx *);
void rt_lane_want(Ctx *, bool);                                          /* the walk waits for the thread */
void rt_lane_ring(Ctx *);                                                /* wakes the thread up */
void rt_lane_lock(Ctx *), rt_lane_unlock(Ctx *);                         /* the thread pauses */
int  rt_lane_turn(Ctx *, int turn);                                      /* without a thread: 0 if something advanced;
                                                                          * RT_LATER after a rest; an exit status */
bool rt_lane_wanted(const Ctx *);                                        /* another thread waits for this one */
int  rt_lane_drain(Ctx *);                                               /* finishes all started buckets */
int  rt_lane_poll(Ctx *);                                                /* between actions */
int  rt_lane_open(Ctx *);                                                /* after the pool */
void rt_lane_close(Ctx *, bool failed);

/* verdict.c */
void rt_verdict_begin(Ctx *, const RtSchedule *);       /* of a step */
bool rt_verdict_loaded(Ctx *, int code);                /* a micro-batch; false: zeros take the place of its data */
int  rt_verdict(Ctx *);                                 /* waits for it: 0, or the exit status of all ranks */
/* A vote on a round of batches, behind the verdict on the round before, in c->vote.all; last: waits for this one, too.
 * An exit status: a rank is lost. */
int  rt_verdict_round(Ctx *, bool last);
int  rt_verdict_bad(Ctx *, int code);                   /* what went wrong with a batch: of one rank at once; of several
                                                         * by the verdict, 0 */

/* replicas.c: 0 if all ranks hold the same bytes of replicated values; all ranks call it. */
int rt_replicas(Ctx *);

/* agree.c: ranks compare facts with rank 0; all ranks call it, with the same list of facts.  RT_PLAN if one differs. */
enum { RT_FACT = 64 };
typedef struct RtFact { char name[RT_FACT], value[RT_FACT]; } RtFact;
int  rt_same(Ctx *, int n, const RtFact *);
double rt_patience(void);                               /* seconds after which a rank that does not answer is lost */
int  rt_same_plan(Ctx *);

/* pulse.c: a thread that calls beat at every tick. */
typedef struct RtPulse RtPulse;
double rt_pulse_tick(double patience);                                   /* seconds */
RtPulse *rt_pulse_open(double tick, void (*beat)(void *), void *arg);   /* NULL: it cannot be started */
void rt_pulse_close(RtPulse *);

#endif
