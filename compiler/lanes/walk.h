/* The state of a net while it runs: which task each lane is at, and how many pieces of each register were made, read
 * and given back.  check.c walks it without time, play.c with seconds, net.c to find how many copies are needed.
 *
 *   task          starts when                                                   at its end
 *   block         each register that it waits for has a piece that its lane     pieces are made, read and given back
 *                 has not read; each that it makes has room
 *   send          the same of its register; and the other end is ready, too     both ends end together
 *   receive       the same                                                      (rendezvous)
 *
 * With buffered sends, a send needs no other end, and a receive needs a message.  Room: a register with c copies has
 * room for piece k when every lane that reads it has given piece k - c back.  Inside a block, a lane stops at each
 * meeting until the lanes of all roles that take part have come to it.
 *
 * Lanes are Kahn processes: what a lane does next does not depend on when others do something.  So if one walk comes
 * to its end, all do (Kahn 1974), and if one stands still, all stand still at the same tasks. */
#ifndef SBPCC_WALK_H
#define SBPCC_WALK_H

#include "lanes/lanes.h"

typedef struct WalkUse { int reg, lane; int64_t seen, given; } WalkUse;         /* a register, as a lane reads it */
typedef struct WalkReg {
	LaneRegister *r;
	int role, maker;                /* the lane that makes it; -1: none */
	int *use, nuse;
	int64_t made;
	int *piece;                     /* by micro-batch, if it is read in another order than made (check.c) */
} WalkReg;
/* A block or an end of a channel: what runs on a lane. */
typedef struct WalkActor {
	LaneDo act;
	int role, lane;                 /* -1: nobody runs it */
	const LaneBlock *block;
	int channel;                    /* of a send or receive */
	int *wait, *give, *make, nwait, ngive, nmake;           /* uses, uses, registers */
} WalkActor;
typedef enum { WALK_IDLE, WALK_RUNS, WALK_MEETS } WalkState;
typedef struct WalkLane {
	int role, step, pos;            /* pos: the task that is next, or runs */
	const Lane *lane;
	WalkState state;
	int met;                        /* meetings that its block has behind it */
	bool queued;
} WalkLane;
typedef struct WalkMeet { int *lane, nlane; } WalkMeet;                         /* those that have come */
typedef struct Walk {
	const LaneNet *net;
	Arena *arena;
	int steps;
	bool buffered;
	WalkLane *lane; int nlane;
	WalkReg *reg; int nreg, *reg0;  /* reg0[role]: its first */
	WalkActor *actor; int nactor, *actor0, channel0;        /* channel c: send channel0 + 2 c, receive after it */
	WalkUse *use; int nuse;
	WalkMeet *meet;
	int64_t *arrived;               /* by channel: messages that can be received */
	int *todo, ntodo;               /* lanes that may be able to go on */
} Walk;

/* What a lane waits for, and the lane that has to provide it (-1: none). */
typedef struct WalkLack { LaneWait wait; int what, lane; } WalkLack;

/* NULL, or a sentence that says why this is not a net.  All lanes are in todo. */
const char *walk_begin(Walk *, const LaneNet *, int steps, bool buffered, Arena *);
int  walk_next(Walk *);                                 /* a lane to look at; -1: none is left */
bool walk_done(const Walk *, int lane);
const WalkActor *walk_actor(const Walk *, int lane);    /* of its task */
const LaneTask *walk_task(const Walk *, int lane);
int  walk_other(const Walk *, int channel, LaneDo);     /* the lane of that end */
bool walk_lacks(const Walk *, int lane, WalkLack *);    /* false: its task can start */
/* starts its task, and the other end with it, whose lane is returned; else -1 */
int  walk_start(Walk *, int lane);
bool walk_meet(Walk *, int lane);                       /* comes to its next meeting; true: all are there */
void walk_end(Walk *, int lane);
void walk_wake(Walk *, int lane);
/* Runs without time until no lane can go on.  see(..) is called when a task starts, when its lane has met, and when it
 * ends; for a send before its receive. */
typedef enum { WALK_START, WALK_MET, WALK_END } WalkMoment;
void walk_run(Walk *, void (*see)(Walk *, int lane, WalkMoment, void *), void *with);
char *walk_name(const Walk *, int lane);                /* "rank 0: F1 of micro-batch 3" */

/* tables.c: NULL, or a row of the net that is wrong by itself. */
const char *tables_check(const LaneNet *, Arena *);

/* bytes.c: walk_run; returns NULL, or which bytes two uses hold at the same time. */
const char *bytes_run(Walk *);

#endif
