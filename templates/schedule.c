/*{banner*/
/* The schedule of a role as sbpcc writes it; this file, as it stands, is the template and does nothing. */
/*}*/
#include "kernels.h"
#include "buffers.h"
#include "pointwise.h"

/*{constants*/
/*}*/

/* Once, before the first step. */
/*{start*/
static const RtAction start[] = { { RT_COMPUTE, "none", 0 } };
enum { NSTART = 0 };
/*}*/

/* One training step. */
/*{step*/
static const RtAction step[] = { { RT_COMPUTE, "none", 0 } };
enum { NSTEP = 0 };
/*}*/

/*{role*/
extern const RtRole role0;
const RtRole role0 = { start, NSTART, step, NSTEP };
/*}*/
