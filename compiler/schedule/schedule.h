/* From a graph with transfers to a list of actions for each role, with an offset for every slot, and a proof. */
#ifndef SBPCC_SCHEDULE_H
#define SBPCC_SCHEDULE_H

#include "lanes/lanes.h"
#include "plan/plan.h"

/* project.c: the shards of each rank, and roles. */
struct Forms {                          /* of all values of all programs, each once */
	Form *form;
	int64_t *most;                  /* elements of the largest shard */
	int n, nmost;
};
/* When the memory of a value is in use: where the list makes and reads it; throughout the body; always. */
typedef enum { LIFE_HERE, LIFE_BODY, LIFE_ALWAYS } SlotLife;
/* A value as ranks hold it.  A value and its update in place share memory. */
struct Slot {
	Value *v;
	int id;                         /* t<id> in generated code */
	int ndim;
	int64_t dim[NDIM_MAX];          /* logical */
	int form;                       /* index into plan->forms: the shard of each rank */
	int64_t bytes;                  /* of the largest shard */
	Keep keep;                      /* project.c derives it, once, from names, which a dump has too */
	bool average;                   /* state that is an average of a parameter (ema) */
	bool window;                    /* peers read it */
	/* the slot whose bytes this one shows as another shape, without an action; NULL: not a view */
	struct Slot *view;
	/* the slot whose memory this one uses: itself, or that of the value it updates, views, or replaces */
	struct Slot *store;
	int copies;                     /* pieces of bytes each; micro-batch k of the run is in piece k % copies */
	SlotLife life;
	int64_t offset;                 /* of piece 0 */
	int entry;                      /* its number in generated code (emit/values.c) */
	int first, last;                /* the actions between which it is live; -1 and the number of actions: always */
	int made, read;                 /* the first and the last action that touch it */
};
void project_roles(Graph *);                                          /* once the forms of all programs are known */
int  project_run(Graph *);

/* slot.c: the shard of a value on each rank. */
Slot   *slot_of(const Plan *, const Value *);
Slot   *slot_value(Slot *);                                              /* what a view shows; else itself */
int64_t slot_len(const Plan *, const Slot *, int axis, int rank);        /* of the shard of one rank */
void    slot_begin(const Plan *, const Slot *, int rank, int64_t *at);   /* its first index along each axis */
int64_t slot_elements(const Plan *, const Slot *, int rank);
bool    slot_kept(const Slot *);                                         /* parameters, state, constants */
int64_t slot_room(const Slot *);                                         /* bytes of all its copies */
int64_t slot_bytes(Slot *const *, int n);                                /* of a list; NULL entries count nothing */
const Form *slot_form(const Plan *, const Slot *);
bool    slot_cut(const Plan *, const Slot *);                            /* some rank does not hold all of it */
bool    slot_alike(const Plan *, const Slot *, const Slot *);            /* one shape, the same indices on all ranks */
bool    slot_same_form(const Form *, const Form *, bool terms);          /* terms: P counts as B */

/* fuse.c: nodes that run as one action, in the order of the graph. */
typedef struct Fill { Slot *from, *to; } Fill;               /* of a zero_fill; they may have no memory */
struct Group {
	Node **node; int nnode;
	bool sums;                      /* of squares and of scalars, by one kernel */
	Fill *fill; int nfill;          /* of the zero_fills among the nodes, in their order */
};
bool fuse_room(const Plan *, const Value *);     /* a product may be written to it before its epilogue has run */
int fuse_run(Graph *);

/* schedule.c: one list of actions per role.  A transfer is one COLLECTIVE, or a START and a FINISH. */
typedef enum { ACT_LOAD, ACT_COMPUTE, ACT_COLLECTIVE, ACT_START, ACT_FINISH, ACT_SAVE } ActKind;
typedef struct Action {
	ActKind kind;
	int id;                         /* a<id> in generated code: its position in the list */
	Node *n;                        /* compute, collective: the last of the group */
	Node **node; int nnode;         /* all of them */
	Node *host;                     /* the product whose epilogue the others are, operands first in take; NULL */
	Node *mate;                     /* the first of two nodes that one kernel computes, n is the second; NULL */
	const Group *sums;              /* it adds squares and scalars; else NULL */
	Slot *under;                    /* with mate: an operand that a result of its shape may overwrite */
	Slot **take; int ntake;         /* read; NULL entries: operands left out */
	Slot **make; int nmake;
	const char *how;                /* the kind of a transfer; one without peers is ACT_COMPUTE */
	int channel;                    /* of a transfer with peers; else -1 */
	int block;                      /* that runs it: index into Plan.block */
	int other;                      /* start, finish: the action that is the other end */
	/* an element of a result depends on the operands' elements of the same index only: a result may overwrite
	 * them */
	bool elementwise;
} Action;
bool schedule_all_reduce(const Action *);       /* peers read its result too, and it may overwrite its operand */
/* A block runs for a micro-batch: actions from .. to - 1 of the list, which is one for all roles; a rank runs those
 * that it takes part in. */
struct Block {
	BlockKind kind;
	int stage;                      /* -1: of no stage */
	Name name;                      /* "F1", "begin" */
	int from, to;
};
/* A transfer between two stages, in one direction, once per micro-batch: a queue of pieces. */
struct Queue {
	Name name;                      /* "x6 > stage 1" */
	Slot **take, **make; int n;     /* what the senders hold, and what the receivers get */
	int channel;
	int from, to, last;             /* blocks: the maker; at the receivers, the first and the last reader */
	int out, in;                    /* copies at the senders and at the receivers */
};
typedef struct Task { int block, micro; } Task; /* micro -1: once; of evaluation and inference: how far it is behind */
struct Role {
	int id;
	int nrank, *rank;               /* the ranks that play it */
	Action *step; int nstep;
	int body, after;                /* actions body .. after - 1 run once per micro-batch */
	Task *task; int ntask;          /* what a rank does in a step, in order */
};

int schedule_section(const Role *, int from);   /* the end of those that transfers may move among, in its block */
double schedule_flops(const Plan *, const Action *);         /* of a rank */
int schedule_run(Graph *);

/* channel.c: which transfers ranks number together: those between the meshes of these two forms. */
typedef struct Channel { int from, to; bool queue; } Channel;
struct Channels { Channel *channel; int n; };                /* of all programs */
int  channel_of(Graph *, const Slot *operand, const Slot *result);       /* its index; a new one is added */
int  channel_new(Graph *, const Slot *operand, const Slot *result);      /* of a queue: shared with no other transfer */
bool channel_joins(const Action *transfer, int rank);        /* the rank takes part */

/* bucket.c: transfers run early, several as one action. */
void bucket_role(Graph *, Role *);
bool bucket_tied(const Action *transfer, const Action *);    /* they must stay in their order */

/* overlap.c: a start and a finish for each transfer that computation can hide. */
void overlap_role(Graph *, Role *);
double overlap_seconds(const Plan *, const Action *);        /* of computation, of a rank */
double overlap_moving(const Plan *, const Action *transfer);

/* kinds.c: the stage of every node, and the kind of block that runs it. */
void kinds_mark(Graph *);
bool kinds_backward(const Node *);                           /* of the backward pass */
bool kinds_in_body(const Node *);                            /* it runs once per micro-batch */
bool kinds_together(const Node *, const Node *);             /* they run in one block */
bool kinds_moves(const Node *);                              /* a transfer that is not made of own elements alone */
bool kinds_between(const Node *transfer);                    /* it is a queue between stages */
bool kinds_split(const Stages *);                            /* B and W are blocks of their own */
int  kinds_rank(const Plan *, const Placement *);                /* its coordinate along the pipeline; -1: several */

/* reduce.c: which nodes reduce the gradients of a stage, and when. */
void reduce_mark(Graph *);
void reduce_insert(Graph *, PipeOrder *);                    /* adds the task of each stage that has some */

/* times.c: seconds and bytes of the blocks. */
bool times_runs(const Action *, int rank);                   /* the rank takes part */
double times_action(const Plan *, const Block *, const Action *);    /* seconds of one of its actions */
double times_block(const Plan *, const Block *, int rank);   /* seconds */
int times_rank(const Plan *, const Role *);                  /* its coordinate along the pipeline */
void times_find(Graph *);                                    /* the pipeline as numbers */

/* orders.c: the order of blocks on the ranks of a pipeline. */
int  orders_find(Graph *, PipeOrder *);                      /* -1 after explaining */
void orders_forward(const Stages *, Arena *, PipeOrder *);   /* evaluation, inference: one batch; micro: its lag */
int  orders_apart(const Stages *, int from, int to, Arena *); /* batches between two stages, rounded up */

/* copies.c: how many micro-batches of a value are in memory at the same time. */
typedef struct Touch { int *block, n, made; } Touch;         /* blocks of a value; the first that makes it, or -1 */
Touch *copies_touched(const Plan *, const Role *, Arena *);  /* by value; blocks of a role; NULL: of all */
bool copies_touches(const Touch *, int block);
bool *copies_runs(const Plan *, const Role *, Arena *);      /* by block */
const Slot *copies_memory(const Slot *);                     /* the slot whose memory it uses */
void copies_find(Graph *);

/* tasks.c: the list in blocks, the queues between stages, and the tasks of each role. */
void tasks_blocks(Graph *);                                  /* Plan.block: which there are, in their order */
int  tasks_block(const Graph *, const Node *);               /* the block that runs a node */
void tasks_queue(Graph *, Node *transfer, Slot *take, Slot *make);       /* adds a transfer to its queue */
int  tasks_find(Graph *);                                    /* tasks and copies; -1 after explaining */
bool tasks_repeat(const Plan *);                             /* a pipeline of forward passes, which are repeated */
Role tasks_played(const Plan *, const Role *, Arena *);      /* with the tasks of a step or of several batches */
int  tasks_micros(const Plan *);                             /* how many */

/* lane_net.c: all roles as programs of lanes (compiler/lanes). */
void lane_net_of(Graph *, Arena *, LaneNet *);
double lane_net_period(Graph *);                             /* seconds of a step in the long run */

/* loads.c: seconds and bytes of the nodes that were cut into stages. */
Loads *loads_measure(Graph *, Arena *);                      /* after memplan */

/* simulate_model.c: --simulate of a model. */
int simulate_model(Graph *, const SimulateOptions *);        /* -1 after explaining */

/* memplan.c: an offset for every slot. */
int64_t memplan_aligned(int64_t bytes);                      /* rounded up to what offsets are multiples of */
int memplan_run(Graph *);
Layout memplan_of_role(const Plan *, const Role *);          /* slab and window that its ranks use */

/* packed_weights.c: a kept matrix, k x n, with its strides, whose packed form is kept at an offset. */
struct Packed { Slot *w; int64_t k, n, row, col, offset, bytes; };
int packed_weights_run(Graph *);

/* prove_bytes.c: no two values of a rank are in the same bytes at the same time, by its tasks. */
int prove_bytes(Graph *);                                    /* -1 after explaining */

/* prove.c: transfers match, nothing overlaps, every transition is legal. */
int prove_run(Graph *);

#endif
