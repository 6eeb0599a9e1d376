/*{banner*/
/* The memory plan as sbpcc writes it; this file, as it stands, is the template and holds one value. */
/*}*/
#ifndef BUFFERS_H
#define BUFFERS_H

#include "rt.h"

/*{sizes*/
#define SLAB_BYTES ((size_t)64)
#define WINDOW_BYTES ((size_t)0)
#define WORK_SHARED ((size_t)0)
#define WORK_EACH ((size_t)0)
#define NVALUE 1
#define MOST 1
#define NFORM 0
#define NMOVE 0
#define NCHANNEL 0
/*}*/

extern const RtValue values[NVALUE];
extern const Form forms[NFORM + 1];
extern const RtMove moves[NMOVE + 1];
extern const RtChannel channels[NCHANNEL + 1];
extern const Form shapes[];
extern const int shape_of[NVALUE];
extern const RtGradient gradients[];
extern const int ngradient;

#endif
