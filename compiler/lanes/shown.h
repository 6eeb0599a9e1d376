/* A schedule, played, and how it is printed: shown.c, for simulate.c (the text of a pipeline) and for models. */
#ifndef SBPCC_SHOWN_H
#define SBPCC_SHOWN_H

#include "lanes/lanes.h"

typedef struct Shown {
	const char *name, *paper;       /* name NULL: nothing yet */
	PipeOrder order;
	PipePlay play;
	LaneNet net;                    /* of the one that is shown, and how it was played */
	LanePlay lanes;
	int *role;                      /* by rank: the role of the net that stands for it */
	double bubble, bound;
	int over;                       /* a rank that needs more memory than it has; -1: none */
} Shown;
const char *shown_bytes(int64_t);                               /* "12.3 MB" */
void shown_sum(const Pipeline *, Shown *);                      /* bubble and over, from the play */
void shown_bound(const Pipeline *, Arena *, Shown *);
const char *shown_cause(const LaneNet *, const LaneRole *, LaneWait, int what);
void shown_print(const Pipeline *, const Shown *);
int  shown_write(const SimulateOptions *, const Shown *);       /* trace and page; -1 after explaining */

#endif
