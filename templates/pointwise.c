/*{banner*/
/* Pointwise operators of this model, each with its shape; this file, as it stands, is the template. */
/*}*/
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"        /* a loop that calls functions is no vector code */
#endif
#include "pointwise.h"
#include "expr.h"
#include "isa.h"

/* A part is a loop from lo to hi - 1 over values t[0], t[1], ...; no turn depends on another.  RUN is an operator: threads
 * do the n turns of a part, in pieces of at least grain, as it was compiled for this processor. */
#define PART(pw) \
	K_LOOP void pw##_part(void *const *t, int64_t lo, int64_t hi); \
	K_LOOP void pw##_loop(void *t, int64_t lo, int64_t hi, int thread) { (void)thread, pw##_part(t, lo, hi); } \
	K_EACH_ISA(pw##_loop) \
	K_LOOP void pw##_part(void *const *t, int64_t lo, int64_t hi)
#define RUN(pw, part, n, grain) \
	int pw(Ctx *c, void *const *t) \
	{ \
		rt_parallel(c, n, grain, K_PICK(c, part##_loop), (void *)t); \
		return 0; \
	}

/*{functions*/
/*}*/
