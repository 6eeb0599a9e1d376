/* A bit that changes by itself on one rank, in what all ranks hold, ends the job with status 23 when ranks are compared (input 96); numbers
 * that ranks hold in parts may differ. */
#include "run.h"

#include <stdio.h>

static int body(Ctx *c, void *arg)
{
	unsigned char *whole = rt_place(c, &c->program->kept[0].t), *part = rt_place(c, &c->program->kept[1].t);
	int code = 0;
	for (int i = 0; i < 4096; i++)
		whole[i] = (unsigned char)i;
	part[0] = (unsigned char)c->rank;
	for (int turn = 0; turn < 3 && !code; turn++)
		code = rt_replicas(c);
	if (!code && c->rank == 1 && *(int *)arg)
		whole[1234] ^= 16;
	return code ? 1 : rt_replicas(c);
}

int main(void)
{
	static const Form form = { .ndim = 1, .mesh = { 3 }, .naxis = 1, .dim = { 48 }, .cut = { { .kind = FORM_S, .len = 48, .inner = 1 } } };
	static const RtKept kept[] = {
		{ { "w", RT_F32, 1, { 1024 }, 0, false, 0 }, RT_PARAMETER, .start = RT_FILL },
		{ { "m", RT_F32, 1, { 48 }, 1, false, 4096 }, RT_STATE, .start = RT_FILL },
	};
	RtProgram p = { .nrank = 3, .form = &form, .nform = 1, .kept = kept, .nkept = 2, .slab_bytes = 8192 };
	for (int flips = 0; flips < 2; flips++) {
		int code = rt_run(&p, body, &flips), want = flips ? RT_NUMERIC : 0;
		printf(code == want ? "ok %s\n" : "not ok %s: exit status %d\n", flips ? "flipped-bit-96" : "same", code);
	}
	return 0;
}
