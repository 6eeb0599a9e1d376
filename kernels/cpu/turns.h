/* How kernels without a fast version use the threads of a rank: a loop whose iterations compute different results is
 * cut into pieces, and one iteration computes each result, in a fixed order.  So the bits do not depend on the number
 * of threads.  Where several iterations would add to one result (the gradient of a gather, a scatter), the loop is cut
 * by destination: by plane, by line, by column. */
#ifndef TURNS_H
#define TURNS_H

#include "kernels.h"

/* Runs n iterations of about `each` elements on the threads; a piece takes at least some microseconds. */
static inline int turns(Ctx *c, int64_t n, int64_t each, RtBody *body, const void *arg)
{
	union { const void *in; void *out; } job = { arg };
	rt_parallel(c, n, 1 + 4096 / (each + 1), body, job.out);
	return 0;
}

/* The scratch of a thread. */
static inline void *turns_work(const Ctx *c, int thread)
{
	return c->work + (size_t)thread * c->work_each;
}

/* Selects the instance for a type, of loops that are instantiated as NAME_f32, NAME_f64, ... */
#define TURNS_REAL(name) (type == K_F64 ? name##_f64 : name##_f32)
#define TURNS_ANY(name) \
	((RtBody *const[]){ name##_f32, name##_f64, name##_i64, name##_i32, name##_u8, name##_bool }[type])

#endif
