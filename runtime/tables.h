/* The macros that rows of generated tables are written with: schedules, values of a step, values that are kept.  Only
 * generated files include it. */
#ifndef RT_TABLES_H
#define RT_TABLES_H

#include "rt.h"

/* Zero if the condition holds; else a compile error. */
#define ASSURED(holds, text) (0 * (int)sizeof(struct { _Static_assert(holds, text); int x; }))

/* blocks.c.  BIND gives names to the values of a function: h is a union of t, an array of pointers, and of a struct
 * with a pointer for each value, in the order of their numbers in the table. */
#define BIND(h, values) \
	_Static_assert(sizeof(h) == sizeof((h).t), "a pointer for each value"); \
	rt_bind(c, values, sizeof(h).t / sizeof *(h).t, (h).t)
/* One action: its kind, operator, the first of its results (without results, of its operands), the number of results,
 * the number of floating-point operations, and the call.  DO_ALONE: an action without values. */
#define DO_AT(at_, kind_, op_, nmake_, flops_, ...) \
	do { \
		static const RtAction here = { .kind = RT_##kind_, .op = op_, .nmake = nmake_, .flops = flops_ }; \
		int code = rt_leave(c, rt_enter(c, &here, at_) ? (__VA_ARGS__) : 0); \
		if (code) \
			return code; \
	} while (0)
#define DO(kind, op, value, nmake, flops, ...) \
	DO_AT(values + ((void *const *)(const void *)&h.value - h.t), kind, op, nmake, flops, __VA_ARGS__)
#define DO_ALONE(kind, op, ...) DO_AT(NULL, kind, op, 0, 0, __VA_ARGS__)
/* The values of a loop of pointwise.c: results, then operands.  EPILOGUE finishes the tiles of a matrix product. */
#define ON(...) \
	(void *const[]) \
	{ \
		__VA_ARGS__ \
	}
#define EPILOGUE(ep, ...) \
	(const KEpilogue[]) \
	{ \
		ep(&(KTile){ c, ON(__VA_ARGS__) }) \
	}

/* schedule.c.  Runs a function of blocks.c over values. */
#define RUN(call) \
	do { \
		int code = call; \
		if (code) \
			return code; \
	} while (0)
#define ROWS_OF(table) (int)(sizeof(table) / sizeof(table)[0])
/* Lists of numbers: queues that an actor uses, USES(wait, 1, 2); ends of queues: name, channel, copies, and for each
 * value the transfer and the numbers of what is sent and received. */
#define INTS(...) \
	(const int[]) \
	{ \
		__VA_ARGS__ \
	}
#define USES(field, ...) \
	.field = INTS(__VA_ARGS__), .n##field = (int)(sizeof(INTS(__VA_ARGS__)) / sizeof(int))
#define RECEIVES(name_, channel_, copies_, move_, from_, to_) \
	{ \
		.name = name_, .channel = channel_, .copies = copies_, .n = (int)(sizeof(move_) / sizeof(int)), \
		.move = move_, .from = from_, .to = to_ \
	}
#define SENDS(name_, channel_, copies_, move_, from_, to_) \
	{ \
		.name = name_, .sends = true, .channel = channel_, .copies = copies_, \
		.n = (int)(sizeof(move_) / sizeof(int)), .move = move_, .from = from_, .to = to_ \
	}
/* The tables of a program, by the beginning of their names; of a pipeline, with queues. */
#define SCHEDULE(name, nactions_) \
	{ \
		.nactions = nactions_, .actor = name##_actors, .nactor = ROWS_OF(name##_actors), \
		.task = name##_tasks, .ntask = ROWS_OF(name##_tasks) \
	}
#define PIPELINE(name, nactions_) \
	{ \
		.nactions = nactions_, .actor = name##_actors, .nactor = ROWS_OF(name##_actors), \
		.task = name##_tasks, .ntask = ROWS_OF(name##_tasks), .queue = name##_queues, \
		.nqueue = ROWS_OF(name##_queues) \
	}

/* buffers.c.  Name, type, offset and bytes of a value in the slab (S; F: of floats) or in the window (W), checked to
 * lie inside; C: with a form, by which ranks hold shards of unequal size. */
#define INSIDE(at, size, area) ((at) + ASSURED((at) + (int64_t)(size) <= (int64_t)(area), #at))
#define S(name_, type_, at, size) \
	{ \
		.name = name_, .type = RT_##type_, .offset = INSIDE(at, size, SLAB_BYTES), .bytes = size \
	}
#define F(name_, at, size) S(name_, F32, at, size)
#define W(name_, type_, at, size) \
	{ \
		.name = name_, .type = RT_##type_, .window = true, .offset = INSIDE(at, size, WINDOW_BYTES), \
		.bytes = size \
	}
#define C(name_, type_, window_, at, size, form_) \
	{ \
		.name = name_, .type = RT_##type_, .form = form_, .window = window_, \
		.offset = INSIDE(at, size, (window_) ? WINDOW_BYTES : SLAB_BYTES), .bytes = size \
	}
/* R: with several copies, for micro-batches in flight. */
#define R(name_, type_, window_, at, size, form_, copies_) \
	{ \
		.name = name_, .type = RT_##type_, .form = form_, .window = window_, \
		.offset = INSIDE(at, (copies_) * (((int64_t)(size) + RT_PLACE - 1) / RT_PLACE * RT_PLACE), \
			(window_) ? WINDOW_BYTES : SLAB_BYTES), \
		.bytes = size, .copies = copies_ \
	}
/* The cut of a tensor along an axis of a mesh; CUT_REACH: overlapping shards of an axis of len elements (FormReach). */
#define CUT_B \
	{ \
		.kind = FORM_B \
	}
#define CUT_P(reduce_) \
	{ \
		.kind = FORM_P, .reduce = FORM_##reduce_ \
	}
#define CUT_S(axis_, len_, inner_) \
	{ \
		.kind = FORM_S, .axis = axis_, .len = len_, .inner = inner_ \
	}
#define CUT_REACH(axis_, len_, of_, div_, lo_, hi_, mid_, mul_, from_, to_) \
	{ \
		.kind = FORM_S, .axis = axis_, .len = len_, .inner = 1, .reach = &(const FormReach) \
		{ \
			.of = of_, .div = div_, .lo = lo_, .hi = hi_, .mid = mid_, .mul = mul_, .from = from_, \
			.to = to_ \
		} \
	}

/* model.c and params.c.  A tensor: name, type, form, whether it is in the window, offset, number of axes and shape. */
#define TENSOR(name_, type_, form_, window_, at, naxis_, ...) \
	{ \
		.name = name_, .type = RT_##type_, .naxis = naxis_, .dim = { __VA_ARGS__ }, .form = form_, \
		.window = window_, .offset = at \
	}

/* The same with several copies, place_ bytes apart. */
#define TENSOR_COPIES(copies_, place_, name_, type_, form_, window_, at, naxis_, ...) \
	{ \
		.name = name_, .type = RT_##type_, .naxis = naxis_, .dim = { __VA_ARGS__ }, .form = form_, \
		.window = window_, .offset = at, .copies = copies_, .place = place_ \
	}

/* params.c.  Initial values. */
#define ZERO .start = RT_FILL
#define FILL(v) .start = RT_FILL, .a = v
#define NORMAL(mean, dev, k) .start = RT_NORMAL, .a = mean, .b = dev, .key = k
#define UNIFORM(from, to, k) .start = RT_UNIFORM, .a = from, .b = to, .key = k
#define HERE(array) .start = RT_DATA_HERE, .data = array
#define IN_FILE .start = RT_DATA_FILE
/* Class, name, type, offset, initial value, number of axes and shape; PARAM: a parameter of floats; ZEROS: optimizer
 * state of floats. */
#define KEPT(is, name_, type_, at, start_, naxis_, ...) \
	{ \
		.t = { .name = name_, .type = RT_##type_, .naxis = naxis_, .dim = { __VA_ARGS__ }, .offset = at }, \
		.keep = RT_##is, start_ \
	}
#define PARAM(name_, at, start_, naxis_, ...) \
	{ \
		.t = { .name = name_, .type = RT_F32, .naxis = naxis_, .dim = { __VA_ARGS__ }, .offset = at }, \
		.keep = RT_PARAMETER, start_ \
	}
#define ZEROS(name_, at, naxis_, ...) KEPT(STATE, name_, F32, at, ZERO, naxis_, __VA_ARGS__)

#endif
