/*{banner*/
/* Pointwise operators of this model, each with its shape; this file, as it stands, is the template. */
/*}*/
#include "pointwise.h"
#include "expr.h"
#include "isa.h"

/* A loop over the first axis of a result, from lo to hi: t holds the results, then the operands.  RUN splits it over threads
 * and takes the instructions that the processor has. */
#define LOOP(name) K_LOOP void name##_over(void *const *t, int64_t lo, int64_t hi)
#define RUN(name, n, grain) \
	K_LOOP void name##_loop(void *arg, int64_t lo, int64_t hi, int thread) { (void)thread; name##_over(arg, lo, hi); } \
	K_EACH_ISA(name##_loop) \
	int name(Ctx *c, void *const *t) { rt_parallel(c, n, grain, K_PICK(c, name##_loop), (void *)t); return 0; }

/*{functions*/
/*}*/
