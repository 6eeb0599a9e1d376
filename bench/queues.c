/* bench-queues: the overhead of a task, and the time of a piece from rank to rank.
 *
 *   tasks   10,000 tasks without actions, on each of two ranks
 *   hop     rank 0 sends a piece of 64 bytes, rank 1 sends one back, many times */
#include "comm.h"

#include <stdio.h>

enum { TASKS = 10000, HOPS = 2000, TURNS = 5 };
enum { EMPTY, THERE, BACK };            /* actors of rank 0; rank 1 has EMPTY and THERE */

static double best[2] = { 1e9, 1e9 };
static bool hops;

static int nothing(Ctx *c)
{
	(void)c;
	return 0;
}

static int rank(Ctx *c, void *arg)
{
	int code = rt_pool_open(c, 1);
	(void)arg;
	code = code ? code : rt_lane_open(c);
	for (int i = 0; i < TURNS && !code; i++) {
		c->comm->barrier(c);
		double from = rt_seconds();
		code = rt_do(c, RT_EVAL);
		double s = (rt_seconds() - from) / (hops ? 2 * HOPS : TASKS);
		best[hops] = s < best[hops] ? s : best[hops];
	}
	if (!c->rank)
		printf("%-20s %10.3f us\n", hops ? "hop" : "overhead per task", 1e6 * best[hops]);
	rt_lane_close(c, code);
	rt_pool_close(c);
	return code;
}

int main(void)
{
	static const FormCut whole = { .kind = FORM_B };
	const Form form[] = {
		{ .ndim = 1, .mesh = { 1 }, .naxis = 1, .dim = { 16 }, .cut = { whole } },
		{ .ndim = 1, .mesh = { 1 }, .first = 1, .naxis = 1, .dim = { 16 }, .cut = { whole } },
	};
	const RtMove move[] = { { 1, 2, RT_F32, 0 }, { 2, 1, RT_F32, 1 } };
	const RtChannel channel[] = { { 1, 2 }, { 2, 1 } };
	const RtValue value[] = {
		{ .name = "x", .window = true, .bytes = 64 },
		{ .name = "x.in", .bytes = 64 },
		{ .name = "y", .window = true, .bytes = 64 },
		{ .name = "y.in", .bytes = 64 },
	};
	static const int n[] = { 0, 1, 2, 3 };
	const RtQueue queue[2][2] = {
		{ { .name = "x", .sends = true, .channel = 0, .copies = 1, .n = 1, .move = n, .from = n, .to = n + 1 },
		  { .name = "y", .channel = 1, .copies = 1, .n = 1, .move = n + 1, .from = n + 2, .to = n + 3 } },
		{ { .name = "x", .channel = 0, .copies = 1, .n = 1, .move = n, .from = n, .to = n + 1 },
		  { .name = "y", .sends = true, .channel = 1, .copies = 1, .n = 1, .move = n + 1, .from = n + 2,
		    .to = n + 3 } },
	};
	const RtActor actor[2][3] = {
		{ { .name = "empty", .run = nothing }, { .name = "there", .run = nothing, .make = n, .nmake = 1 },
		  { .name = "back", .run = nothing, .wait = n + 1, .nwait = 1, .give = n + 1, .ngive = 1 } },
		{ { .name = "empty", .run = nothing }, { .name = "both", .run = nothing, .wait = n, .nwait = 1,
		    .give = n, .ngive = 1, .make = n + 1, .nmake = 1 } },
	};
	static RtTask task[2][TASKS];
	for (hops = false;; hops = true) {
		RtSchedule s[2];
		RtRole role[2];
		const RtRole *const roles[] = { &role[0], &role[1] };
		static const uint16_t role_of[] = { 0, 1 };
		for (int r = 0; r < 2; r++) {
			int k = 0;
			for (int i = 0; i < (hops ? HOPS : TASKS); i++) {
				task[r][k++] = (RtTask){ hops ? THERE : EMPTY, 0 };
				if (hops && !r)
					task[r][k++] = (RtTask){ BACK, 0 };
			}
			s[r] = (RtSchedule){ .actor = actor[r], .nactor = 3 - r, .task = task[r], .ntask = k,
				.queue = queue[r], .nqueue = hops ? 2 : 0 };
			role[r] = (RtRole){ .schedule = { NULL, &s[r], NULL } };
		}
		RtProgram p = { .nrank = 2, .role = roles, .nrole = 2, .role_of = role_of, .value = value, .nvalue = 4,
			.most = 1, .form = form, .nform = 2, .move = move, .nmove = 2,
			.channel = channel, .nchannel = 2,
			.slab_bytes = RT_PAGE, .window_bytes = RT_PAGE };
		int code = rt_run(&p, rank, NULL);
		if (code || hops)
			return code;
	}
}
