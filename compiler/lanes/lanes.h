/* Programs of lanes: what every role does, as data.  This folder knows no graph: schedule/ makes these structs from
 * the actions of a model, --simulate from a text of times.  The checker, the simulator, the schedule solver, the
 * memory plan, the emitter and the report read them.
 *
 *   block      an actor: work of one stage that always runs together (F, B, W, ...).  It waits for registers, makes
 *              registers, and gives registers back.  Nothing else waits.
 *   register   values that one block makes and others read, in `copies` equal pieces; the k-th piece made is in piece
 *              k % copies.  Across lanes it is a queue: the k-th piece made is the k-th read.
 *   lane       an ordered list of tasks (a block for a micro-batch) of a role.  Compute is one lane; each end of a
 *              channel is a lane of its own.
 *   channel    a transfer between two roles, in one direction.  Its k-th send meets its k-th receive.
 *   net        the programs of all roles, and the channels between them.  One rank stands for all of its role.
 *
 * The sections below stand in the order in which the data passes through the files. */
#ifndef SBPCC_LANES_H
#define SBPCC_LANES_H

#include "target/target.h"

typedef enum { BLOCK_BEGIN, BLOCK_BODY, BLOCK_LOAD, BLOCK_F, BLOCK_R, BLOCK_B, BLOCK_W, BLOCK_BW, BLOCK_REDUCE,
	BLOCK_UPDATE } BlockKind;

/* ---- a pipeline as numbers ---- */

/* A stage of the model, on one rank.  Chunks are stages that share a rank. */
typedef struct PipeStage {
	int rank;
	double f, b, w;                 /* seconds of a micro-batch; b + w where a schedule runs both as one block */
	double update;                  /* once per step, after the last w: reduction of gradients and optimizer */
	int64_t kept;                   /* bytes that stay from F to B */
	int64_t kept_w;                 /* bytes that stay from B to W: a part of kept (usually half), or more */
	int64_t fixed;                  /* bytes whatever the schedule: weights, gradients, optimizer state, scratch */
} PipeStage;

/* Activations from stage `from` to stage `to` > from, and gradients back.  A chain has one of each stage to the next;
 * skip connections are further ones.  Between stages of one rank the seconds are 0. */
typedef struct PipeHop {
	int from, to;
	double latency, busy;           /* seconds: a message arrives after both; the next may leave after `busy` */
	int64_t bytes;
} PipeHop;

typedef struct Pipeline {
	int nrank, nstage, micros;
	PipeStage *stage;
	PipeHop *hop; int nhop;
	int64_t *limit;                 /* by rank: bytes; NULL: no limit */
	bool barrier;                   /* a step ends for all ranks at once: the period is the makespan */
} Pipeline;

/* What a rank runs, in order: F and B and W, or F and BW.  In the order of a model the reduction of a stage's gradients
 * is a task, too, of micro-batch -1.  Updates follow the last task and are not in the list. */
typedef struct PipeTask { BlockKind kind; int stage, micro; } PipeTask;
typedef struct PipeOrder { PipeTask **task; int *ntask; } PipeOrder;    /* by rank */

/* schedules.c: named schedules, one row each. */
typedef struct PipeSchedule {
	const char *name, *paper;       /* --schedule=zb-h1 */
	bool split;                     /* B and W apart */
	int chunks;                     /* stages of a rank; 0: any number, 1 or more */
	bool vee;                       /* the second chunk goes back: rank r has stages r and 2p - 1 - r */
	/* fills the order; NULL, or the reason why this pipeline cannot be run so */
	const char *(*order)(const Pipeline *, Arena *, PipeOrder *);
} PipeSchedule;
extern const PipeSchedule schedules[];                                  /* ends with a row without a name */
const PipeSchedule *schedules_find(const char *name);
void schedules_place(const PipeSchedule *, Pipeline *);         /* the rank of every stage: in turn, or as a V */

/* pipe.c: plays an order with seconds; the inner loop of the search.  Sends are buffered, registers have as many
 * copies as the order needs. */
typedef struct PipePlay {
	double span, makespan;          /* of the first step: the longest of a rank, first start to last end; of all */
	double period;                  /* of a step in the long run, no barrier between steps; with steps > 1 */
	double *first, *last, *busy;    /* by rank: start of the first task, end of the last, seconds at work */
	int64_t *peak;                  /* by rank: bytes */
	double **start;                 /* by rank, by task */
	int *ran;                       /* by rank: how many tasks ran */
	struct PipeState *state;        /* kept for the next call */
} PipePlay;
double pipe_seconds(const Pipeline *, const PipeTask *);
bool pipe_once(BlockKind);              /* begin, reduce, update: once per step, not for each micro-batch */
/* The order has each task at most once.  false: it waits for itself, or a task misses what it reads.  Results stay
 * in *play, zeroed before the first call and used again by the next with the same numbers of ranks, stages, hops and
 * micro-batches. */
bool pipe_play(const Pipeline *, const PipeOrder *, int steps, Arena *, PipePlay *play);

/* ---- programs of lanes ---- */

typedef struct LaneRegister {
	const char *name;
	int copies, first;              /* first: pieces that are there before step 0 */
	int64_t bytes, offset;          /* of a piece; of piece 0 in the area of the role */
	bool window;                    /* peers read it in place */
} LaneRegister;
typedef struct LaneBlock {
	const char *name;
	BlockKind kind;
	int stage;
	/* registers of the role.  On each lane, one block waits for a piece, the first that reads it, and one gives it
	 * back, the last that reads it */
	int *wait, *make, *give, nwait, nmake, ngive;
	double seconds;
	int64_t scratch, offset;        /* bytes that only its own calls use, and where */
	int *meet, nmeet;               /* collectives inside it, in order */
} LaneBlock;
typedef enum { DO_BLOCK, DO_SEND, DO_RECEIVE } LaneDo;
typedef struct LaneTask { LaneDo act; int id, micro; } LaneTask;        /* a block of the role, a channel; -1: once */
typedef enum { LANE_COMPUTE, LANE_LOAD, LANE_SAVE, LANE_SEND, LANE_RECEIVE } LaneKind;
typedef struct Lane { LaneKind kind; LaneTask *task; int ntask; } Lane; /* the tasks of one step */
typedef struct LaneRole {
	const char *name;
	LaneRegister *reg; int nreg;
	LaneBlock *block; int nblock;
	Lane *lane; int nlane;
	int64_t fixed;                  /* bytes beside registers and scratch */
} LaneRole;
typedef struct LaneChannel {
	const char *name;
	int from, from_reg, to, to_reg; /* roles, and a register of each */
	int link;                       /* channels of one link carry one message at a time */
	double latency, busy; int64_t bytes;
} LaneChannel;
typedef struct LaneMeet { const char *name; int *role, nrole; } LaneMeet;       /* a collective and who takes part */
typedef struct LaneNet {
	LaneRole *role; int nrole;
	LaneChannel *channel; int nchannel, nlink;
	LaneMeet *meet; int nmeet;
} LaneNet;

/* net.c: an order as programs of lanes.  Registers have the least copies with which it comes to its end; those of
 * hops have `ahead` more. */
void net_of(const Pipeline *, const PipeOrder *, int ahead, Arena *, LaneNet *);

/* check.c: NULL, or what is wrong, in lines. */
const char *check_order(const Pipeline *, const PipeOrder *, Arena *);
const char *check_net(const LaneNet *, Arena *);
void check_explain(Loc, const char *why);                       /* as an error, with a note for each further line */

/* play.c: plays a net with seconds. */
typedef enum { WAIT_NONE, WAIT_PIECE, WAIT_ROOM, WAIT_PEER, WAIT_MEET } LaneWait;
typedef struct LaneEvent {
	double ready, start, end;       /* ready: the lane was free */
	LaneWait wait; int what;        /* for a register of the role (a piece, or room), a channel, a meeting */
} LaneEvent;
typedef struct LaneUse { double at; int64_t bytes; } LaneUse;
typedef struct LanePlay {
	LaneEvent **event;              /* of the first step: by lane, role after role; by task */
	double span, makespan, period;  /* as of PipePlay */
	double *busy;                   /* by role: seconds of its blocks in the first step */
	LaneUse **use; int *nuse;       /* by role: bytes in use from a time on, first step */
	int64_t *peak;                  /* by role: the most of them */
} LanePlay;
/* buffered: a send ends when its message has left, not when it is received.  false: it came to a standstill. */
bool play_net(const LaneNet *, int steps, bool buffered, Arena *, LanePlay *);

/* csv.c: PyTorch's CSV of a schedule. */
/* pair: overlaps with the next cell; idle: empty cells before it */
typedef struct CsvCell { int type, stage, micro, idle; bool pair; Loc at; } CsvCell;
typedef struct PipeCsv {
	int nrank, nstage, micros, *rank;       /* rank: by stage */
	CsvCell **cell; int *ncell;     /* by rank, without empty cells */
	int *idle;                      /* by rank: empty cells at its end */
	bool sends, crlf;               /* it has sends and receives; its lines end with CR LF */
	PipeOrder order;
} PipeCsv;
int  csv_read(const char *path, Arena *, PipeCsv *);                    /* -1 after explaining */
void csv_net(const PipeCsv *, Arena *, LaneNet *);      /* a net of its order, with its own sends and receives */
void csv_of(const Pipeline *, const PipeOrder *, Arena *, PipeCsv *);
/* how many tasks of its rank stand before the REDUCE_GRAD of a stage; -1: it has none */
int  csv_reduces(const PipeCsv *, int stage);
void csv_write(FILE *, const PipeCsv *);                                /* as it was read */
bool csv_ascends(const PipeCsv *);      /* F, B and W of each stage run in ascending order of micro-batches */

/* trace.c, timeline.c: a play in the format of Chrome's tracing; as a piece of a page, and as a page. */
void trace_write(FILE *, const LaneNet *, const LanePlay *);
void timeline_html(Text *, const LaneNet *, const LanePlay *);
void timeline_page(FILE *, const char *title, const LaneNet *, const LanePlay *);

/* simulate.c: --simulate=FILE.  Files to write: the play, twice; the order as CSV.  seconds: of the solver. */
typedef struct SimulateOptions { const char *path, *trace, *html, *csv; double seconds; } SimulateOptions;
int simulate_file(const SimulateOptions *);                             /* -1 after explaining */

/* bound.c: lower bounds of a step, of every order that fits the memory. */
typedef struct PipeBound { double period, span, makespan; } PipeBound;
void bound_find(const Pipeline *, Arena *, PipeBound *);

/* search.c: the schedule solver (words.h: its own structs). */
typedef struct SearchResult {
	PipeOrder order;
	const char *from;               /* the schedule that it improved; "list": by list scheduling */
	double period, span, makespan;
	int64_t peak;                   /* bytes, the largest of a rank, without what is fixed */
	PipeBound bound;
	double gap, work;               /* period / bound.period - 1; tasks visited */
	bool proven;                    /* no order has a smaller period */
} SearchResult;
#define SEARCH_USUAL 0.25       /* seconds, without --schedule-seconds */
int search_run(const Pipeline *, double seconds, Arena *, SearchResult *);      /* 1: found none that fits */

#endif
