/* Updates of parameters.  An update is an ordinary operator: its result is a new value that train.c declares to live in the
 * storage of the old one. */
#include "ops.h"

const Op ops_optimizer[] = {
	/* w - lr * g */
	{ .name = "SGD", .domain = "sbpcc", .since = 1, .sig = "w:F g:F lr:F -> y:F", .shape = shape_like_first, .expr = "w - lr * g",
	  .factors = "..., ..., -> ...", .nograd = true, .flops = 2, .test = "w:[3,4] g:[3,4] lr:[]" },
	{ 0 },
};
