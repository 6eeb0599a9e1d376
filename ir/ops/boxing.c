/* Transfers between two layouts of one value.  Its meaning is the identity: operand and result are the same
 * logical value, with the layouts that their @sbp annotations give; `how` names the transfer between them. */
#include "ops.h"

#include <string.h>

static int shape_boxing(Node *n)
{
	static const char *const known[] = { "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast",
		"scatter", "gather", "reduce", "send", "slice", "zero_fill", NULL };
	for (int i = 0; known[i]; i++)
		if (!strcmp(attr_str(n, "how"), known[i]))
			return shape_like_first(n);
	err_at(n->loc, "Boxing: there is no transfer %s", attr_str(n, "how"));
	return -1;
}

static int eval_boxing(Node *n, Tensor **in, Tensor **out)
{
	(void)n;
	memcpy((void *)out[0]->data, in[0]->data, in[0]->bytes);
	return 0;
}

const Op ops_boxing[] = {
	{ .name = "Boxing", .domain = "sbpcc", .since = 1, .moves = true, .carries = true, .sig = "x:T -> y:T",
	  .attrs = "how:string!", .shape = shape_boxing, .kernel = "boxing", .eval = eval_boxing,
	  .factors = "... -> ...", .linear = "x", .grad = "dx = Identity(dy)", .cost = cost_bytes,
	  .test = "x:[2,3] =how:\"slice\"" },
	{ 0 },
};
