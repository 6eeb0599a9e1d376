/* replan A B: whether two safetensors files hold the same tensors, bit for bit, in whatever order.  replan.sh runs
 * it. */
#include "comm.h"
#include "save.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	Ctx c = { .nrank = 1 };
	RtSafe a = { 0 }, b = { 0 };
	if (argc != 3 || rt_safe_open(&c, RT_CHECKPOINT, argv[1], &a) || rt_safe_open(&c, RT_CHECKPOINT, argv[2], &b))
		return 2;
	int bad = a.n != b.n || !a.n;
	for (int i = 0; i < a.n && !bad; i++) {
		const RtEntry *x = &a.entry[i], *y = rt_safe_find(&b, x->name);
		bad = !y || x->type != y->type || x->naxis != y->naxis ||
			memcmp(x->dim, y->dim, (size_t)x->naxis * sizeof *x->dim) != 0 ||
			x->to - x->from != y->to - y->from ||
		      memcmp(a.data + x->from, b.data + y->from, x->to - x->from) != 0;
		if (bad)
			printf("%s differs\n", x->name);
	}
	rt_safe_close(&a);
	rt_safe_close(&b);
	return bad;
}
