/* How kernels without a fast version use the threads of a rank: a loop whose turns make different results is cut into pieces, and each
 * result is made by one turn, in one order.  So the bits do not depend on the number of threads.  What several turns would add to (the
 * gradient of a read, a scatter) is cut by where it adds: by plane, by line, by column. */
#ifndef TURNS_H
#define TURNS_H

#include "kernels.h"

/* Turns of about `each` elements; a piece has work for some microseconds at least. */
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

/* Loops that are written once for all types are named NAME_f32, NAME_f64, ...: the one of a type. */
#define TURNS_REAL(name) (type == K_F64 ? name##_f64 : name##_f32)
#define TURNS_ANY(name) ((RtBody *const[]){ name##_f32, name##_f64, name##_i64, name##_i32, name##_u8, name##_bool }[type])

#endif
