/* How generated files write their rows: schedules, values of a step, values that are kept.  Only these files include it. */
#ifndef RT_TABLES_H
#define RT_TABLES_H

#include "rt.h"

/* Zero, where the condition is true; else nothing compiles. */
#define ASSURED(true_here, text) (0 * (int)sizeof(struct { _Static_assert(true_here, text); int x; }))

/* schedule.c.  A function over values t[0], t[1], ...: results, then operands.  An epilogue finishes tiles of a product. */
#define CALL(f, ...) \
	static int f(Ctx *c, void *const *t) \
	{ \
		return __VA_ARGS__; \
	}
#define EPILOGUE(ep) \
	(const KEpilogue[]) \
	{ \
		ep(&(KTile){ c, t }) \
	}
/* One action: its kind, operator, function, and how many results, operands and floating operations it has; fits is true by
 * its shapes: the bytes of each result are at most those that buffers.h gives it. */
#define A(kind, op, run, make, take, flops, fits) \
	{ \
		RT_##kind, op, run, (make) + ASSURED(fits, op), take, flops \
	}

/* buffers.c.  Name, type, offset and bytes of a value in the slab (S; F: of floats) or in the window (W), where it is known
 * to fit; C: with its form, of which ranks hold unequal parts. */
#define INSIDE(offset, bytes, area) ((offset) + ASSURED((offset) + (int64_t)(bytes) <= (int64_t)(area), #offset))
#define S(name, type, offset, bytes) \
	{ \
		name, RT_##type, 0, false, INSIDE(offset, bytes, SLAB_BYTES), bytes \
	}
#define F(name, offset, bytes) S(name, F32, offset, bytes)
#define W(name, type, offset, bytes) \
	{ \
		name, RT_##type, 0, true, INSIDE(offset, bytes, WINDOW_BYTES), bytes \
	}
#define C(name, type, window, offset, bytes, form) \
	{ \
		name, RT_##type, form, window, INSIDE(offset, bytes, (window) ? WINDOW_BYTES : SLAB_BYTES), bytes \
	}
/* What an axis of a mesh does with a tensor; CUT_REACH: parts of an axis of len elements that overlap (FormReach). */
#define CUT_B \
	{ \
		FORM_B, 0, 0, 0, 0, NULL \
	}
#define CUT_P(reduce) \
	{ \
		FORM_P, FORM_##reduce, 0, 0, 0, NULL \
	}
#define CUT_S(axis, len, inner) \
	{ \
		FORM_S, 0, axis, len, inner, NULL \
	}
#define CUT_REACH(axis, len, ...) \
	{ \
		FORM_S, 0, axis, len, 1, &(const FormReach) \
		{ \
			__VA_ARGS__ \
		} \
	}

/* params.c.  What a value starts as. */
#define ZERO .start = RT_FILL
#define FILL(v) .start = RT_FILL, .a = v
#define NORMAL(mean, dev, k) .start = RT_NORMAL, .a = mean, .b = dev, .key = k
#define UNIFORM(from, to, k) .start = RT_UNIFORM, .a = from, .b = to, .key = k
#define HERE(array) .start = RT_DATA_HERE, .data = array
#define IN_FILE .start = RT_DATA_FILE
/* What it is, name, type, offset, start, rank and shape; PARAM: a parameter of floats; ZEROS: state of floats. */
#define KEPT(is, name, type, offset, start, rank, ...) \
	{ \
		{ name, RT_##type, rank, { __VA_ARGS__ }, 0, false, offset }, RT_##is, start \
	}
#define PARAM(name, offset, start, rank, ...) \
	{ \
		{ name, RT_F32, rank, { __VA_ARGS__ }, 0, false, offset }, RT_PARAMETER, start \
	}
#define ZEROS(name, offset, rank, ...) KEPT(STATE, name, F32, offset, ZERO, rank, __VA_ARGS__)

#endif
