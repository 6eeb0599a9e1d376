/* What microbatch.c and microbatch_axis.c share. */
#ifndef MICRO_H
#define MICRO_H

#include "train/train.h"

typedef enum { TIME_B, TIME_S, TIME_P, TIME_AFTER } TimeKind;     /* AFTER: whole, but known only after the body */
typedef struct Time { TimeKind kind; int axis; } Time;

typedef struct Micro {
	Graph *g;
	int64_t times;                  /* M */
	int64_t rows;                   /* of one micro-batch */
	Time *time; int ntime, room;    /* by value id */
	int asked;                      /* nodes that serves() looked at for this one */
	bool quiet;                     /* do not say what is refused */
} Micro;

/* microbatch_axis.c */
void time_room(Micro *);                                /* for the values that there are now */
void time_sources(Micro *);                             /* inputs and parameters */
int  time_place(Micro *, Node *);                       /* results of a node, from its operands; -1 after saying why not */
int  time_along(Micro *, Node *);                       /* the same of a node one of whose operands is S */
void time_results(Micro *, const Node *, TimeKind);     /* told */
Time time_of(const Micro *, const Value *);
bool time_shape_only(const Node *, int operand);        /* only the shape of this operand matters */
int  time_compare(const Micro *, const Node *);         /* does the node do to parts what it does to the whole? */

#endif
