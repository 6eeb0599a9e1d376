/* A bit that changes by itself on one rank, in what several ranks hold, ends the job with status 23 when ranks are
 * compared (input 96): what all hold whole, and a part that two of four hold.  Numbers that each rank holds for itself
 * may differ. */
#include "comm.h"
#include "save.h"

#include <stdio.h>

enum { NOTHING, WHOLE, PART, OWN, FLIPS };

static int body(Ctx *c, void *arg)
{
	unsigned char *at[OWN + 1];
	int code = 0, flip = *(int *)arg;
	for (int i = WHOLE; i <= OWN; i++)
		at[i] = rt_address(c, &c->program->kept[i - 1].t);
	for (int i = 0; i < 4096; i++)
		at[WHOLE][i] = (unsigned char)i;
	for (int i = 0; i < 96; i++) {
		at[PART][i] = (unsigned char)(i * (1 + c->rank % 2));         /* ranks 0 and 2, 1 and 3 */
		at[OWN][i / 2] = (unsigned char)(i + c->rank);
	}
	for (int turn = 0; turn < 3 && !code; turn++)
		code = rt_replicas(c);
	if (!code && c->rank == 3 && flip)
		at[flip][33] ^= 16;
	return code ? 1 : rt_replicas(c);
}

int main(void)
{
	static const Form form[] = {
		{ .ndim = 2, .mesh = { 2, 2 }, .naxis = 1, .dim = { 48 },
			.cut = { { .kind = FORM_B }, { .kind = FORM_S, .len = 48, .inner = 1 } } },
		{ .ndim = 2, .mesh = { 2, 2 }, .naxis = 1, .dim = { 48 },
			.cut = { { .kind = FORM_S, .len = 48, .inner = 1 },
			{ .kind = FORM_S, .len = 48, .inner = 1 } } },
	};
	static const RtKept kept[] = {
		{ .t = { .name = "w", .naxis = 1, .dim = { 1024 }, .form = 0, .offset = 0 },
			.keep = RT_PARAMETER, .start = RT_FILL },
		{ .t = { .name = "u", .naxis = 1, .dim = { 48 }, .form = 1, .offset = 4096 },
			.keep = RT_PARAMETER, .start = RT_FILL },
		{ .t = { .name = "m", .naxis = 1, .dim = { 48 }, .form = 2, .offset = 4224 },
			.keep = RT_STATE, .start = RT_FILL },
	};
	static const char *const name[FLIPS] = { "same", "flipped-bit-96", "flipped-bit-of-a-part-96",
		"own-numbers-may-differ" };
	RtProgram p = { .nrank = 4, .form = form, .nform = 2, .kept = kept, .nkept = 3, .slab_bytes = 8192 };
	for (int flips = 0; flips < FLIPS; flips++) {
		int code = rt_run(&p, body, &flips), want = flips == WHOLE || flips == PART ? RT_NUMERIC : 0;
		printf(code == want ? "ok %s\n" : "not ok %s: exit status %d\n", name[flips], code);
	}
	return 0;
}
