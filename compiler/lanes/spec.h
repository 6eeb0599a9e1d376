/* The text of a pipeline (compiler/lanes/PIPELINES.md), which spec.c reads for simulate.c. */
#ifndef SBPCC_SPEC_H
#define SBPCC_SPEC_H

#include "lanes/lanes.h"

typedef struct PipeSpec {
	Pipeline pipe;
	const PipeSchedule *schedule;   /* NULL: none is named */
	PipeCsv *csv;                   /* NULL: none is named */
	bool solver;                    /* its order */
	Loc where;                      /* of its name */
} PipeSpec;
int spec_read(const char *path, Arena *, PipeSpec *);                   /* -1 after explaining */

#endif
