/*{banner*/
/* The memory plan as sbpcc writes it; this file, as it stands, is the template and holds one value. */
/*}*/
#ifndef BUFFERS_H
#define BUFFERS_H

#include "rt.h"

/*{sizes*/
#define SLAB_BYTES   ((size_t)64)
#define WINDOW_BYTES ((size_t)0)
enum { NVALUE = 1, MOST = 1 };
/*}*/

/* Splits: the index into RtRank.origin of each way in which an axis is cut. */
/*{splits*/
/*}*/

/* Bytes of values that schedules check, by their numbers. */
/*{bytes*/
enum {
	T0 = 4,
};
/*}*/

extern const RtValue values[NVALUE];

#endif
