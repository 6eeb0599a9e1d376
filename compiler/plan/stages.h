/* The stages of a pipeline: which nodes they have, how many micro-batches of them are in memory, what is recomputed. */
#ifndef SBPCC_STAGES_H
#define SBPCC_STAGES_H

#include "lanes/lanes.h"
#include "train/train.h"

/* in_flight.c: micro-batches of a stage in memory at the same time: from F to B, from F to W, from B to W. */
typedef struct InFlight { int f_b, f_w, b_w; } InFlight;
const InFlight *in_flight_find(Stages *, Arena *keep, Arena *scratch);   /* by stage */

/* cut.c: where the list of nodes is cut. */
typedef struct CutNode { Name made; double seconds; int stage; } CutNode;        /* place; of F, by cost; -1: free */
/* what a program takes for a node of the model: seconds of a micro-batch, bytes always and of each micro-batch */
typedef struct Load { double seconds, fixed, kept; int stage; } Load;
typedef struct Loads { Load *of; int n; double beside; } Loads;          /* beside: other bytes of a rank */
Name cut_made(const Node *);                                 /* the place in the model, equal for its backward pass */
/* free: by value; loads NULL: by costs of the forward pass.  of: the stage of each node that is not free */
int  cut_nodes(Graph *, Stages *, const bool *free, const Loads *, int *of);

/* stages.c: the stages of a pipeline. */
struct Stages {
	Pipeline pipe;                  /* its ranks are the coordinates of the axis; times are not known yet */
	int axis;                       /* of the main mesh */
	const PipeSchedule *schedule; PipeCsv *csv;     /* both NULL: the order of the solver */
	const InFlight *flight;         /* by stage; NULL: not found yet */
	double bound; bool proven;      /* seconds: no order has a smaller period; the order has this one */
	CutNode *cut; int ncut;         /* the list of nodes that was cut; 0: it was not */
};
void stages_default(Model *);                                /* --stages=N without @pipeline */
int  stages_spread(Graph *);                                 /* before the backward pass: writes @stage and @on */
int  stages_read(Model *, Plan *);                           /* Plan.stages, from @pipeline; -1 after explaining */
/* the number of micro-batches is free: there is a pipeline of several stages, and nothing says a number.  *from: that
 * of a schedule of PyTorch's; 0: there is none.  -1 after explaining */
int  stages_choose_micros(Model *, bool *free, int *stages, int64_t *from);
bool stages_cut_free(Graph *);                               /* the stages are read, and no node has @stage */
bool stages_cut_differs(Graph *, const Loads *);             /* by these loads from the cut that they are of */
void stages_updates(Graph *);                                /* what runs once, after the micro-batches */
bool stages_one_report(const Graph *);                       /* an evaluation: one stage reports all outputs */

/* checkpoints.c: what the backward pass computes again, so that a rank fits into its memory. */
typedef struct Checkpoints {
	double most, least;             /* bytes of a rank that stay for the backward pass: of all; the least */
	double bytes, seconds;          /* of the choice: bytes that stay; seconds that it adds to a step */
	const char *names;              /* its segments, as text */
} Checkpoints;
/* marks segments with @recompute(N) so that at most `limit` bytes stay; 0: only counts */
void checkpoints_choose(Graph *, double limit, Checkpoints *);

#endif
