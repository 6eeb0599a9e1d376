/*{banner*/
/* The schedule of a role as sbpcc writes it; this file, as it stands, is the template and does nothing. */
/*}*/
#include "kernels.h"
#include "buffers.h"
#include "pointwise.h"

/* Functions over values t[0], t[1], ...: results, then operands.  An epilogue finishes tiles of a product. */
#define CALL(f, ...) static int f(Ctx *c, void *const *t) { return __VA_ARGS__; }
#define EPILOGUE(ep) (const KEpilogue[]){ ep(&(KTile){ c, t }) }
/*{functions*/
CALL(f0, c && t ? 0 : RT_PLAN)
/*}*/

/* One action: its kind, operator, function, and how many results, operands and floating operations it has; fits is true by its shapes. */
#define A(kind, op, run, make, take, flops, fits) { RT_##kind, op, run, (make) + 0 * (int)sizeof(struct { _Static_assert(fits, op); int x; }), take, flops }

/*{lists*/
static const RtAction step0[] = {
	A(COMPUTE, "none", f0, 0, 0, 0, 1),
};
static const RtSegment step[] = {
	{ step0, 1, 1, 0 },
};
extern const RtSchedule role0_step;
const RtSchedule role0_step = { step, 0, 0, 0, 1 };
/*}*/
