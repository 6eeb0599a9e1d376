/* What microbatch.c and microbatch_axis.c share. */
#ifndef MICRO_H
#define MICRO_H

#include "train/train.h"

typedef enum { ALONG_B, ALONG_S, ALONG_P, ALONG_AFTER } AlongKind;     /* AFTER: whole, but known only after the body */
typedef struct Along { AlongKind kind; int axis; } Along;

typedef struct Micro {
	Graph *g;
	int64_t microbatches;           /* M */
	int64_t rows;                   /* of one micro-batch */
	Along *time; int ntime, room;    /* by value id */
	int asked;                      /* nodes that serves() looked at for this one */
	bool quiet;                     /* do not say what is refused */
} Micro;

/* microbatch_axis.c */
void microbatch_axis_room(Micro *);                                /* for the values that there are now */
void microbatch_axis_sources(Micro *);                             /* inputs and parameters */
int  microbatch_axis_find(Micro *, Node *);                       /* results of a node, from its operands; -1 after saying why not */
int  microbatch_axis_along(Micro *, Node *);                       /* the same of a node one of whose operands is S */
void microbatch_axis_results(Micro *, const Node *, AlongKind);     /* told */
Along microbatch_axis_of(const Micro *, const Value *);
bool microbatch_axis_shape_only(const Node *, int operand);        /* only the shape of this operand matters */
int  microbatch_axis_compare(const Micro *, const Node *);         /* does the node do to parts what it does to the whole? */

#endif
