/*{banner*/
/* The memory plan as sbpcc writes it; this file, as it stands, is the template and holds no value. */
/*}*/
#ifndef BUFFERS_H
#define BUFFERS_H

#include "rt.h"

/*{sizes*/
#define SLAB_BYTES   ((size_t)0)
#define WINDOW_BYTES ((size_t)0)
/*}*/

/* Splits: the index into RtRank.origin of each way in which an axis is cut. */
/*{splits*/
/*}*/

/* Where each value is.  An offset is the same on every rank. */
/*{values*/
/*}*/

#endif
