/* From a graph with transfers to a list of actions for each role, with an offset for every slot, and a proof. */
#ifndef SBPCC_SCHEDULE_H
#define SBPCC_SCHEDULE_H

#include "plan/plan.h"

/* project.c: what each rank holds. */
struct Forms {              /* those of all values of all programs, each once */
	Form *form;
	int64_t *most;                  /* elements of the largest part */
	int n, nmost;
};
/* A value as ranks hold it.  Slots of values that are updated in place are one. */
struct Slot {
	Value *v;
	int id;                         /* t<id> in generated code */
	int rank;
	int64_t dim[RANK_MAX];          /* logical */
	int form;                       /* index into plan->forms: what each rank holds of it */
	int64_t bytes;                  /* of the largest shard */
	Keep keep;                      /* project.c derives it, once, from names, which a dump has too */
	bool average;                   /* state that is an average of a parameter (ema) */
	bool window;                    /* peers read it */
	struct Slot *view;              /* the same bytes seen as another shape: no action makes it; NULL: a value of its own */
	struct Slot *store;             /* the slot whose memory this is: itself, that of the value it updates, is a view of, or takes over */
	int64_t offset;
	int entry;                      /* values_write.c: its number in generated code */
	int first, last;                /* actions of the step between which it is live; -1 and nact: always */
};
void    project_roles(Graph *);                                          /* once the forms of all programs are known */
int project_run(Graph *);

/* slot.c: what of a value each rank holds. */
Slot   *slot_of(const Plan *, const Value *);
Slot   *slot_value(Slot *);                                              /* whose bytes a view shows; itself otherwise */
int64_t slot_len(const Plan *, const Slot *, int axis, int rank);        /* of the shard of one rank */
void    slot_begin(const Plan *, const Slot *, int rank, int64_t *at);    /* the first index along each axis of what a rank holds */
int64_t slot_elements(const Plan *, const Slot *, int rank);
bool    slot_kept(const Slot *);                                         /* from step to step: parameters, state, constants */
int64_t slot_bytes(Slot *const *, int n);                                /* of a list; NULL entries count nothing */
const Form *slot_form(const Plan *, const Slot *);
bool    slot_cut(const Plan *, const Slot *);                            /* some rank does not hold all of it */
bool    slot_alike(const Plan *, const Slot *, const Slot *);            /* ranks hold the same indices of both, which have one shape */
bool    slot_same_form(const Form *, const Form *, bool terms);          /* terms: P is the same as B, for a rank holds as much */

/* fuse.c: nodes that run as one action, in the order of the graph. */
struct Group { Node **node; int nnode; };
bool    fuse_room(const Plan *, const Value *);                          /* a product may be written there before its epilogue has run */
int fuse_run(Graph *);

/* schedule.c: one list of actions per role. */
typedef enum { ACT_LOAD, ACT_COMPUTE, ACT_COLLECTIVE, ACT_START, ACT_FINISH, ACT_SAVE } ActKind;        /* a transfer: all of it, or one of its ends */
typedef struct Action {
	ActKind kind;
	int id;                         /* a<id> in generated code: the position in the list */
	Node *n;                        /* compute, collective: the last of the group */
	Node **node; int nnode;         /* all of them */
	Node *host;                     /* the product whose epilogue the others are; NULL: none.  Its operands are taken first */
	Node *mate;                     /* the first of two that one kernel does, n is the second; NULL: none */
	Slot *under;                    /* with it: an operand on which a result of its shape may lie */
	Slot **take; int ntake;         /* read; NULL entries: operands left out */
	Slot **make; int nmake;
	const char *how;                /* of a transfer; those that no peer takes part in are of kind compute */
	int other;                      /* start, finish: the action that is the other end */
	bool elementwise;               /* an element of a result depends on the operands' elements at its own place only: a result may lie on them */
} Action;
bool schedule_all_reduce(const Action *);                    /* peers read its result, too, and it may lie on its operand */
struct Role {
	int id;
	int nrank, *rank;               /* the ranks that play it */
	Action *step; int nstep;
	int body, after;                /* actions body .. after - 1 are done once per micro-batch */
};

double schedule_flops(const Plan *, const Action *);         /* of a rank */
int schedule_run(Graph *);

/* bucket.c: transfers early, and several as one. */
void bucket_role(Graph *, Role *);
bool bucket_tied(const Action *transfer, const Action *);    /* they must stay in their order */

/* overlap.c: a start and a finish of each transfer that computing can hide. */
void overlap_role(Graph *, Role *);

/* memplan.c: an offset for every slot. */
int64_t memplan_aligned(int64_t bytes);                      /* rounded up to what offsets are multiples of */
int memplan_run(Graph *);

/* packed_weights.c: a kept matrix, k x n, whose packed form stays at an offset; its strides. */
struct Packed { Slot *w; int64_t k, n, row, col, offset, bytes; };
int packed_weights_run(Graph *);

/* prove.c: transfers match, nothing overlaps, every transition is legal. */
int prove_run(Graph *);

#endif
