/* Shared by microbatch.c and microbatch_axis.c: how values lie along the axis of micro-batches. */
#ifndef MICRO_H
#define MICRO_H

#include "train/train.h"

/* B: the same in every micro-batch; S: one slice of the batch; P: a term of a sum; AFTER: complete, but only after the
 * body */
typedef enum { ALONG_B, ALONG_S, ALONG_P, ALONG_AFTER } AlongKind;
typedef struct Along { AlongKind kind; int axis; } Along;

typedef struct Micro {
	Graph *g;
	int64_t microbatches;           /* M */
	int64_t rows;                   /* samples of one micro-batch */
	Along *along; int nalong, room; /* by value id */
	int asked;                      /* nodes that serves() has visited for the current node */
	bool quiet;                     /* refuse without a message */
} Micro;

/* microbatch_axis.c */
void microbatch_axis_room(Micro *);                                /* makes room for all values of the graph */
void microbatch_axis_sources(Micro *);                             /* inputs and parameters */
/* decides the results of a node from its operands; -1 after err_at */
int  microbatch_axis_find(Micro *, Node *);
int  microbatch_axis_along(Micro *, Node *);                       /* the same for a node with an operand that is S */
void microbatch_axis_results(Micro *, const Node *, AlongKind);     /* sets all results of a node to this kind */
Along microbatch_axis_of(const Micro *, const Value *);
bool microbatch_axis_shape_only(const Node *, int operand);        /* only the shape of this operand matters */
/* -1 after err_at: the node means something else in the whole batch */
int  microbatch_axis_compare(const Micro *, const Node *);

#endif
