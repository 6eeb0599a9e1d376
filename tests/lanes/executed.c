/* Random pipelines, executed: stages, chunks, micro-batches, copies, uneven times and schedules, named or found by the
 * solver, proved as programs of lanes and then walked by the ranks of the runtime, which are processes, through its
 * actors, queues and courier threads.  A block sleeps for a random time or not at all; it writes a number into each
 * message that it makes, and compares the number in each that it reads.  Every rank runs all tasks of three steps, and
 * none hangs.  3,000 with --long. */
#include "comm.h"
#include "lanes/lanes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 3, PATIENCE = 60 };

static uint64_t seed = 1;
static int below(int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- the case; every rank inherits it ---- */

static LaneNet net;
static int *sent_by[64], *got_by[64];   /* by role, by register: 1 + the channel of which it is an end */
static int lazy;                        /* microseconds that a block sleeps at most */

static Pipeline random_pipeline(Arena *a, const PipeSchedule *s)
{
	int nrank = 1 + below(5), chunks = s->chunks ? s->chunks : 1 + below(3), n = nrank * chunks;
	Pipeline p = { .nrank = nrank, .nstage = n, .micros = 1 + below(10), .nhop = n - 1 };
	p.stage = arena_array(a, PipeStage, n);
	p.hop = arena_array(a, PipeHop, n + 1);
	for (int i = 0; i < n; i++) {
		p.stage[i] = (PipeStage){ .f = 1 + below(8), .b = 1 + below(8), .w = below(8), .update = below(2),
			.kept = 8 + below(8), .kept_w = below(16) };
		p.hop[i] = (PipeHop){ .from = i, .to = i + 1, .latency = below(3), .bytes = 64 };
	}
	if (n > 2 && !below(4))
		p.hop[p.nhop++] = (PipeHop){ .from = 0, .to = 2 + below(n - 2), .latency = 1, .bytes = 64 };
	schedules_place(s, &p);
	return p;
}

/* As schedule/tasks.c does: where W of the pipeline runs apart, BW is B and W, because one actor makes the pieces of a
 * queue. */
static void split(Arena *a, const Pipeline *p, PipeOrder *o)
{
	bool apart = false;
	for (int r = 0; r < p->nrank; r++)
		for (int i = 0; i < o->ntask[r]; i++)
			apart |= o->task[r][i].kind == BLOCK_W;
	for (int r = 0; r < p->nrank && apart; r++) {
		PipeTask *list = arena_array(a, PipeTask, 2 * o->ntask[r] + 1);
		int n = 0;
		for (int i = 0; i < o->ntask[r]; i++) {
			PipeTask t = o->task[r][i];
			if (t.kind == BLOCK_BW) {
				list[n++] = (PipeTask){ BLOCK_B, t.stage, t.micro };
				t.kind = BLOCK_W;
			}
			list[n++] = t;
		}
		o->task[r] = list;
		o->ntask[r] = n;
	}
}

/* ---- a block ---- */

static int done;                        /* tasks that this rank has run */

static float number(int step, int channel, int micro) { return (float)((step * 64 + channel) * 64 + micro); }

static void doze(Ctx *c)
{
	uint32_t h = ((uint32_t)c->rank * 977u + (uint32_t)done * 131u) * 2654435761u;
	struct timespec t = { .tv_nsec = lazy ? (long)(h >> 8) % lazy * 1000 : 0 };
	if (h >> 30)
		return;
	while (t.tv_nsec && nanosleep(&t, &t) && errno == EINTR)
		;
}

static int work(Ctx *c)
{
	const LaneRole *r = &net.role[c->rank];
	const LaneTask *t = &r->lane[0].task[done % r->lane[0].ntask];
	const LaneBlock *b = &r->block[t->id];
	int step = done / r->lane[0].ntask;
	doze(c);
	for (int i = 0; i < b->nwait; i++) {
		int k = got_by[c->rank][b->wait[i]] - 1;
		const float *x = k < 0 ? NULL : rt_value(c, 2 * k + 1);
		for (int j = 0; x && j < 16; j++)
			if (x[j] != number(step, k, t->micro))
				return rt_error(c, RT_PLAN, "%s of micro-batch %d reads %.0f from %s, not %.0f",
					b->name, t->micro, (double)x[j], net.channel[k].name,
					(double)number(step, k, t->micro));
	}
	for (int i = 0; i < b->nmake; i++) {
		int k = sent_by[c->rank][b->make[i]] - 1;
		float *x = k < 0 ? NULL : rt_value(c, 2 * k);
		for (int j = 0; x && j < 16; j++)
			x[j] = number(step, k, t->micro);
	}
	done++;
	return 0;
}

static int rank(Ctx *c, void *arg)
{
	int code = rt_pool_open(c, 1);
	(void)arg;
	alarm(PATIENCE);
	code = code ? code : rt_lane_open(c);
	for (int i = 0; i < STEPS && !code; i++)
		code = rt_do(c, RT_TRAIN);
	rt_lane_close(c, code);
	rt_pool_close(c);
	if (!code && done != STEPS * net.role[c->rank].lane[0].ntask)
		return rt_error(c, RT_PLAN, "%d tasks were run", done);
	return code;
}

/* ---- the program of the runtime ---- */

static void find_ends(Arena *a)
{
	for (int r = 0; r < net.nrole; r++) {
		sent_by[r] = arena_array(a, int, net.role[r].nreg + 1);
		got_by[r] = arena_array(a, int, net.role[r].nreg + 1);
	}
	for (int k = 0; k < net.nchannel; k++) {
		sent_by[net.channel[k].from][net.channel[k].from_reg] = k + 1;
		got_by[net.channel[k].to][net.channel[k].to_reg] = k + 1;
	}
}

/* The queues of a role among these registers. */
static const int *queues_of(Arena *a, const int *reg, int nreg, const int *channel, const int *queue, int *n)
{
	int *to = arena_array(a, int, nreg + 1);
	*n = 0;
	for (int i = 0; i < nreg; i++)
		if (channel[reg[i]])
			to[(*n)++] = queue[channel[reg[i]] - 1];
	return to;
}

static void fill_role(Arena *a, int role, const int *index, RtSchedule *s)
{
	const LaneRole *r = &net.role[role];
	RtQueue *queue = arena_array(a, RtQueue, net.nchannel + 1);
	RtActor *actor = arena_array(a, RtActor, r->nblock + 1);
	RtTask *task = arena_array(a, RtTask, r->lane[0].ntask + 1);
	int *number_of = arena_array(a, int, net.nchannel + 1);
	*s = (RtSchedule){ .actor = actor, .nactor = r->nblock, .task = task, .ntask = r->lane[0].ntask,
		.queue = queue };
	for (int k = 0; k < net.nchannel; k++) {
		const LaneChannel *c = &net.channel[k];
		bool sends = c->from == role;
		if (!sends && c->to != role)
			continue;
		number_of[k] = s->nqueue;
		queue[s->nqueue++] = (RtQueue){ .name = c->name, .sends = sends, .channel = k,
			.copies = sends ? r->reg[c->from_reg].copies : r->reg[c->to_reg].copies,
			.n = 1, .move = &index[k], .from = &index[2 * k], .to = &index[2 * k + 1] };
	}
	for (int i = 0; i < r->nblock; i++) {
		const LaneBlock *b = &r->block[i];
		RtActor *x = &actor[i];
		*x = (RtActor){ .name = b->name, .run = work };
		x->wait = queues_of(a, b->wait, b->nwait, got_by[role], number_of, &x->nwait);
		x->make = queues_of(a, b->make, b->nmake, sent_by[role], number_of, &x->nmake);
		x->give = queues_of(a, b->give, b->ngive, got_by[role], number_of, &x->ngive);
	}
	for (int i = 0; i < s->ntask; i++)
		task[i] = (RtTask){ r->lane[0].task[i].id, r->lane[0].task[i].micro };
}

/* A value of 64 bytes at each end of each channel. */
static int execute(Arena *a, int micros)
{
	int n = net.nchannel, *index = arena_array(a, int, 2 * n + 2);
	Form *form = arena_array(a, Form, net.nrole);
	RtMove *move = arena_array(a, RtMove, n + 1);
	RtChannel *channel = arena_array(a, RtChannel, n + 1);
	RtValue *value = arena_array(a, RtValue, 2 * n + 1);
	RtRole *role = arena_array(a, RtRole, net.nrole);
	RtSchedule *schedule = arena_array(a, RtSchedule, net.nrole);
	const RtRole **roles = arena_array(a, const RtRole *, net.nrole);
	uint16_t *role_of = arena_array(a, uint16_t, net.nrole);
	int64_t bytes = 0;
	find_ends(a);
	for (int i = 0; i < 2 * n + 2; i++)
		index[i] = i;
	for (int k = 0; k < n; k++) {
		const LaneChannel *c = &net.channel[k];
		int out = net.role[c->from].reg[c->from_reg].copies, in = net.role[c->to].reg[c->to_reg].copies;
		move[k] = (RtMove){ c->from + 1, c->to + 1, RT_F32, k };
		channel[k] = (RtChannel){ c->from + 1, c->to + 1 };
		value[2 * k] = (RtValue){ .name = c->name, .window = true, .offset = bytes, .bytes = 64,
			.copies = out };
		value[2 * k + 1] = (RtValue){ .name = c->name, .offset = bytes, .bytes = 64, .copies = in };
		bytes += 64 * (out > in ? out : in);
	}
	for (int r = 0; r < net.nrole; r++) {
		form[r] = (Form){ .ndim = 1, .mesh = { 1 }, .first = r, .naxis = 1, .dim = { 16 },
			.cut = { { .kind = FORM_B } } };
		fill_role(a, r, index, &schedule[r]);
		role[r] = (RtRole){ .schedule = { [RT_TRAIN] = &schedule[r] } };
		roles[r] = &role[r];
		role_of[r] = (uint16_t)r;
	}
	size_t pages = (size_t)(bytes / RT_PAGE + 1) * RT_PAGE;
	RtProgram p = { .nrank = net.nrole, .role = roles, .nrole = net.nrole, .role_of = role_of, .value = value,
		.nvalue = 2 * n, .most = 1, .form = form, .nform = net.nrole, .move = move, .nmove = n,
		.channel = channel, .nchannel = n, .slab_bytes = pages, .window_bytes = pages,
		.microbatches = micros };
	done = 0;
	return rt_run(&p, rank, NULL);
}

int main(void)
{
	const char *set = getenv("LONG");
	int cases = set && *set ? 3000 : 300, bad = 0, solved = 0, named = 0;
	long tasks = 0;
	while (schedules[named].name)
		named++;
	for (int i = 0; i < cases && bad < 5; i++) {
		Arena a = { 0 };
		PipeOrder o;
		SearchResult found;
		const PipeSchedule *s = &schedules[below(named)];
		Pipeline p = random_pipeline(&a, s);
		const char *why = s->order(&p, &a, &o);
		bool solver = !below(4) && !search_run(&p, 1e-3, &a, &found);
		if (solver)
			o = found.order;
		if (!why)
			split(&a, &p, &o);
		why = why ? why : check_order(&p, &o, &a);
		if (!why) {
			net_of(&p, &o, below(3), &a, &net);
			why = check_net(&net, &a);
		}
		solved += solver;
		lazy = below(3) ? below(200) : 0;
		for (int r = 0; !why && r < net.nrole; r++)
			tasks += STEPS * net.role[r].lane[0].ntask;
		int code = why ? 0 : execute(&a, p.micros);
		if (why || code) {
			printf("not ok pipeline %d, %s, %d ranks, %d stages, %d micro-batches: %s %d\n", i,
				solver ? "solver" : s->name, p.nrank, p.nstage, p.micros, why ? why : "exit", code);
			bad++;
		}
		arena_free(&a);
	}
	if (!bad)
		printf("ok %d pipelines executed, %d of the solver: %ld tasks, and none hung\n", cases, solved, tasks);
	return 0;
}
