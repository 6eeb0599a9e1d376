/*{banner*/
/* The schedule of a role as sbpcc writes it; this file, as it stands, is the template and does nothing. */
/*}*/
#include "kernels.h"
#include "buffers.h"
#include "pointwise.h"
#include "tables.h"

/* Functions over values t[0], t[1], ...: results, then operands.  Equal calls share one function; the tables below
 * list the actions. */
/*{functions*/
CALL(f0, c && t ? 0 : RT_PLAN)
/*}*/

/*{lists*/
static const RtAction step0[] = {
	A(COMPUTE, "none", f0, 0, 0, 0, 1)
};
static const RtSegment step[] = {
	{ step0, 1, 1, 0 }
};
extern const RtSchedule role0_step;
const RtSchedule role0_step = { .segment = step };
/*}*/
