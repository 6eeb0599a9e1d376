/* Queues between stages: what every rank receives is what was sent for that micro-batch, whatever the number of copies,
 * the order of tasks and the speed of ranks.
 *
 *   stage 0            stage 1            stage 2
 *   F   x -----------> F   x -----------> F         x: split over the ranks of a stage, whole on those of the next
 *   B <----------- g   B <----------- g   B         g: a term on each rank, their sum on those of the stage before
 *
 * Every F writes numbers of its step and micro-batch into a value that it keeps, in several copies, until its B, which
 * compares them.  Inside B, the ranks of a stage add up values, at once and with a start and a finish.  Evaluations in
 * between run another program, with queues of its own, in the same memory.  After bad data or a loss that is not finite
 * on one rank, and after a signal to rank 0, all ranks end with the same step, and nothing of a bad step is updated. */
#include "comm.h"
#include "save.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 24, STEPS = 7, LIMIT = 300, MOST = 4 };      /* elements; steps; seconds; stages */
typedef enum { NOTHING, BAD_DATA, NOT_FINITE, SIGNAL, SLOW, BAD_BATCH } Fault;        /* in step 3; before it */
enum { FAULTY = 3 };
typedef struct Case { const char *name; int stages, wide, micros, copies; bool gpipe, held; Fault fault; } Case;

/* ---- tables ---- */

/* Values and transfers of stage s: x and g as they are sent to a neighbour and received from it. */
enum { X_OUT, X_IN, G_OUT, G_IN, KEPT, TERM, SUM, E_OUT, E_IN, VALUES };
enum { X_MOVE, G_MOVE, E_MOVE, S_MOVE, MOVES };
static int value(int s, int what) { return s * VALUES + what; }
static int move(int s, int what) { return s * MOVES + what; }

typedef struct Tables {
	Form form[3 * MOST];                    /* of stage s: split, whole, terms */
	RtMove move[MOVES * MOST];
	RtChannel channel[MOVES * MOST];
	RtValue value[VALUES * MOST];
	RtAction action[MOST][4];
	int list[MOST][4][8];           /* its values: results, then operands */
	size_t nlist[MOST][4];
	int use[MOST][8];
	RtQueue queue[MOST][6];
	RtActor actor[MOST][3];
	RtTask task[MOST][256];
	RtSchedule step[MOST], eval[MOST];
	RtRole role[MOST];
	const RtRole *roles[MOST];
	uint16_t role_of[2 * MOST];
} Tables;
static Tables t;
static RtProgram p;
static const Case *now;

static float number(int64_t run, int64_t micro, int i)
{
	return (float)(100 * (run % 50) + 31 * micro + i);
}

static void delay(const Ctx *c, int what)
{
	if (rt_hash((uint64_t)c->piece, (uint64_t)(c->rank * 10 + what)) % 3 == 0)
		usleep(300);
}

static int bad;
static void compare(const Ctx *c, const char *what, const float *x, int n, int from, float add, float times)
{
	for (int i = 0; i < n; i++) {
		float want = (number(c->runs[c->kind], c->micro, from + i) + add) * times;
		if (x[i] == want)
			continue;
		if (!bad++)
			printf("    %s: rank %d run %d micro-batch %d: %s[%d] is %g, not %g\n", now->name, c->rank,
				(int)c->runs[c->kind], (int)c->micro, what, i, (double)x[i], (double)want);
	}
}

static int first_of(const Ctx *c) { return c->rank % now->wide * (N / now->wide); }

static void fill(const Ctx *c, float *x, int n, int from, float add, float times)
{
	for (int i = 0; i < n; i++)
		x[i] = (number(c->runs[c->kind], c->micro, from + i) + add) * times;
}

/* v: what is kept, what is sent, what is received. */
static int forward(Ctx *c, void *const *v)
{
	int s = c->role, k = 0;
	float *kept = v[k++], *out = s < now->stages - 1 ? v[k++] : NULL;
	bool here = c->step == FAULTY && c->micro == now->micros / 2;
	delay(c, 1);
	if (c->kind == RT_TRAIN)
		rt_verdict_loaded(c, here && now->fault == BAD_DATA && s == now->stages - 1 ? RT_DATA : 0);
	else if (now->fault == BAD_BATCH && c->micro == 20 && s == now->stages - 1)
		rt_verdict_bad(c, RT_DATA);
	if (here && now->fault == SIGNAL && c->rank == 0)
		raise(SIGTERM);
	if (here && now->fault == SLOW && c->kind == RT_TRAIN && s == now->stages - 1)
		sleep(4);
	fill(c, kept, N, 0, 0.5f, 1);
	if (s)
		compare(c, "x", v[k], N, 0, (float)(s - 1), 1);
	if (out)
		fill(c, out, N / now->wide, first_of(c), (float)s, 1);
	delay(c, 2);
	return 0;
}

/* v: what is kept, the terms and the sum inside the stage, what is sent, what is received; held: x again. */
static int backward(Ctx *c, void *const *v)
{
	int s = c->role, k = 3, code = 0, sum = move(s, S_MOVE);
	float each = (float)(c->rank % now->wide + 1), all = now->wide == 2 ? 3 : 1;
	float *out = s ? v[k++] : NULL;
	delay(c, 3);
	compare(c, "kept", v[0], N, 0, 0.5f, 1);
	if (s < now->stages - 1)
		compare(c, "g", v[k++], N, 0, (float)(s + 1), all);
	if (now->held && s)
		compare(c, "held x", v[k], N, 0, (float)(s - 1), 1);
	for (int i = 0; i < 2 && now->wide > 1 && !code; i++) {
		fill(c, v[1], N, 0, (float)i, each);
		if (i) {
			const void *x = v[1];
			void *y = v[2];
			code = rt_moves_start(c, 1, &sum, &y, &x);
			delay(c, 4);
			code = code ? code : rt_moves_finish(c, y);
		} else {
			code = rt_move(c, sum, v[2], v[1]);
		}
		compare(c, "sum", v[2], N, 0, (float)i, all);
	}
	if (out)
		fill(c, out, N, 0, (float)s, each);
	return code;
}

static int updated;
static int update(Ctx *c, void *const *v)
{
	bool bad_loss = now->fault == NOT_FINITE && c->step == FAULTY && c->role == now->stages - 1;
	float loss = bad_loss ? NAN : 1;
	int code = now->fault == NOT_FINITE ? rt_save_loss(c, &loss) : 0;
	if (code)
		return code;
	updated++;
	delay(c, 5);
	memset(v[0], 0xEE, N * sizeof(float));
	return 0;
}

/* Action i of this role, as a generated function runs it. */
static int act(Ctx *c, int i, int (*call)(Ctx *, void *const *))
{
	const int *list = t.list[c->role][i];
	void *v[8];
	rt_bind(c, list, t.nlist[c->role][i], v);
	return rt_leave(c, rt_enter(c, &t.action[c->role][i], list) ? call(c, v) : 0);
}

static int run_forward(Ctx *c) { return act(c, 0, forward); }
static int run_backward(Ctx *c) { return act(c, 1, backward); }
static int run_update(Ctx *c) { return act(c, 2, update); }
static int run_eval(Ctx *c) { return act(c, 3, forward); }

static int *add(int *to, int what)
{
	*to = what;
	return to + 1;
}

static void put(int s, int what, const char *name, bool window, int64_t *at, int copies)
{
	t.value[value(s, what)] = (RtValue){ .name = name, .window = window, .offset = *at, .bytes = N * 4,
		.copies = copies };
	*at += copies * (int64_t)rt_round_up(N * 4, RT_PLACE);
}

static RtQueue queue(const char *name, bool sends, int channel, int copies, int *use, int from, int to)
{
	use[0] = channel;
	use[1] = from;
	use[2] = to;
	return (RtQueue){ .name = name, .sends = sends, .channel = channel, .copies = copies, .n = 1, .move = use,
		.from = use + 1, .to = use + 2 };
}

/* Forms, transfers and memory of stage s. */
static void lay_out(const Case *k, int s)
{
	static const FormCut split = { .kind = FORM_S, .len = N, .inner = 1 }, terms = { .kind = FORM_P },
		whole = { .kind = FORM_B };
	const FormCut *cut[] = { &split, &whole, &terms };
	int64_t slab = 0, window = 0, other_slab = 0, other_window = 0;
	int deep = k->gpipe ? k->micros : k->stages - s < k->micros ? k->stages - s : k->micros;
	for (int i = 0; i < 3; i++)
		t.form[3 * s + i] = (Form){ .ndim = 1, .mesh = { k->wide }, .first = s * k->wide, .naxis = 1,
			.dim = { N }, .cut = { *cut[i] } };
	int split_here = 3 * s + 1, whole_here = 3 * s + 2, terms_here = 3 * s + 3;
	int next = s < k->stages - 1 ? 3 * (s + 1) + 2 : whole_here;
	t.move[move(s, X_MOVE)] = (RtMove){ split_here, next, RT_F32, move(s, X_MOVE) };
	t.move[move(s, E_MOVE)] = (RtMove){ split_here, next, RT_F32, move(s, E_MOVE) };
	t.move[move(s, G_MOVE)] = (RtMove){ terms_here, s ? 3 * (s - 1) + 2 : whole_here, RT_F32, move(s, G_MOVE) };
	t.move[move(s, S_MOVE)] = (RtMove){ terms_here, whole_here, RT_F32, k->wide > 1 ? move(s, S_MOVE) : -1 };
	for (int i = 0; i < MOVES; i++)
		t.channel[move(s, i)] = (RtChannel){ t.move[move(s, i)].from, t.move[move(s, i)].to };
	put(s, X_OUT, "x.out", true, &window, k->copies);
	put(s, G_OUT, "g.out", true, &window, k->copies);
	put(s, TERM, "term", true, &window, 1);
	put(s, SUM, "sum", true, &window, 1);
	put(s, X_IN, "x.in", false, &slab, k->copies + (k->held ? deep : 0));
	put(s, G_IN, "g.in", false, &slab, k->copies);
	put(s, KEPT, "kept", false, &slab, deep);
	put(s, E_OUT, "e.out", true, &other_window, 2);         /* over the values of a step */
	put(s, E_IN, "e.in", false, &other_slab, 2);
}

enum { F_ACTOR, B_ACTOR, U_ACTOR };

static int order(const Case *k, int s, RtTask *to)
{
	int n = 0, f = 0, b = 0, ahead = k->gpipe ? k->micros : k->stages - s;
	while (b < k->micros) {
		if (f < k->micros && f - b < ahead)
			to[n++] = (RtTask){ F_ACTOR, f++ };
		else
			to[n++] = (RtTask){ B_ACTOR, b++ };
	}
	to[n++] = (RtTask){ U_ACTOR, -1 };
	return n;
}

/* The programs of stage s. */
static void write_role(const Case *k, int s)
{
	bool first = !s, last = s == k->stages - 1;
	static const int numbers[] = { 0, 1, 2, 3 };
	static int use[MOST][6][3];
	int *at, n = 0, in = k->copies + (k->held ? t.value[value(s, KEPT)].copies : 0);
	at = add(t.list[s][0], value(s, KEPT));
	at = last ? at : add(at, value(s, X_OUT));
	at = first ? at : add(at, value(s, X_IN));
	t.nlist[s][0] = (size_t)(at - t.list[s][0]);
	t.action[s][0] = (RtAction){ .kind = RT_LOAD, .op = "F", .nmake = last ? 1 : 2 };
	at = add(add(add(t.list[s][1], value(s, KEPT)), value(s, TERM)), value(s, SUM));
	at = first ? at : add(at, value(s, G_OUT));
	at = last ? at : add(at, value(s, G_IN));
	at = first ? at : add(at, value(s, X_IN));
	t.nlist[s][1] = (size_t)(at - t.list[s][1]);
	t.action[s][1] = (RtAction){ .kind = RT_COMPUTE, .op = "B" };
	add(t.list[s][2], value(s, TERM));
	t.nlist[s][2] = 1;
	t.action[s][2] = (RtAction){ .kind = k->fault == NOT_FINITE ? RT_SAVE : RT_COMPUTE, .op = "update",
		.nmake = 1 };
	t.actor[s][0] = (RtActor){ .name = "F", .run = run_forward, .loads = true };
	t.actor[s][1] = (RtActor){ .name = "B", .run = run_backward, .id = 1 };
	t.actor[s][2] = (RtActor){ .name = "update", .run = run_update, .id = 2,
		.saves = k->fault == NOT_FINITE, .updates = true };
	RtActor *f = &t.actor[s][F_ACTOR], *b = &t.actor[s][B_ACTOR];
	if (!last) {
		f->make = numbers + n;
		f->nmake = 1;
		t.queue[s][n] = queue("x", true, move(s, X_MOVE), k->copies, use[s][n], value(s, X_OUT),
			value(s + 1, X_IN));
		n++;
		b->wait = b->give = numbers + n;
		b->nwait = b->ngive = 1;
		t.queue[s][n] = queue("g", false, move(s + 1, G_MOVE), k->copies, use[s][n], value(s + 1, G_OUT),
			value(s, G_IN));
		n++;
	}
	if (!first) {
		f->wait = numbers + n;
		f->nwait = 1;
		if (!k->held) {
			f->give = f->wait;
			f->ngive = 1;
		}
		t.queue[s][n] = queue("x", false, move(s - 1, X_MOVE), in, use[s][n], value(s - 1, X_OUT),
			value(s, X_IN));
		n++;
		b->make = numbers + n;
		b->nmake = 1;
		t.queue[s][n] = queue("g", true, move(s, G_MOVE), k->copies, use[s][n], value(s, G_OUT),
			value(s - 1, G_IN));
		n++;
	}
	/* held: B gives x back, after what it gives back itself */
	static int both[MOST][2];
	if (k->held && !first) {
		both[s][0] = *f->wait;
		both[s][1] = last ? 0 : *b->wait;
		b->give = both[s];
		b->ngive = last ? 1 : 2;
	}
	t.step[s] = (RtSchedule){ .nactions = 3, .actor = t.actor[s], .nactor = 3,
		.task = t.task[s], .ntask = order(k, s, t.task[s]), .queue = t.queue[s], .nqueue = n };
}

/* An evaluation: only F, over other values. */
static void write_eval(const Case *k, int s)
{
	static int use[MOST][2][3];
	static RtQueue ends[MOST][2];
	static RtActor actor[MOST];
	static const RtTask task = { 0, 0 };
	static const int numbers[] = { 0, 1 };
	bool first = !s, last = s == k->stages - 1;
	int n = 0, *at = add(t.list[s][3], value(s, SUM));
	at = last ? at : add(at, value(s, E_OUT));
	at = first ? at : add(at, value(s, E_IN));
	t.nlist[s][3] = (size_t)(at - t.list[s][3]);
	t.action[s][3] = (RtAction){ .kind = RT_COMPUTE, .op = "F", .nmake = last ? 1 : 2 };
	actor[s] = (RtActor){ .name = "F", .run = run_eval };
	if (!last) {
		actor[s].make = numbers + n;
		actor[s].nmake = 1;
		ends[s][n] = queue("e", true, move(s, E_MOVE), 2, use[s][n], value(s, E_OUT), value(s + 1, E_IN));
		n++;
	}
	if (!first) {
		actor[s].wait = actor[s].give = numbers + n;
		actor[s].nwait = actor[s].ngive = 1;
		ends[s][n] = queue("e", false, move(s - 1, E_MOVE), 2, use[s][n], value(s - 1, E_OUT), value(s, E_IN));
		n++;
	}
	t.eval[s] = (RtSchedule){ .nactions = 1, .actor = &actor[s], .nactor = 1, .task = &task,
		.ntask = 1, .queue = ends[s], .nqueue = n };
}

/* ---- ranks ---- */

static int rank(Ctx *c, void *arg)
{
	int code = rt_pool_open(c, 1);
	(void)arg;
	alarm(LIMIT);
	code = code ? code : rt_lane_open(c);
	for (; c->step < STEPS && !code; c->step++) {
		code = rt_do(c, RT_TRAIN);
		if (code || c->vote.all.stop)
			break;
		if (c->step % 3 == 2)
			code = rt_do_batches(c, RT_EVAL, 40, NULL);
		for (int i = 0; i < 2 && c->step % 3 == 2 && !code; i++)
			code = rt_do(c, RT_EVAL);
		if (c->kind == RT_EVAL && now->fault == BAD_BATCH && c->runs[RT_EVAL] >= 40)
			bad++;                  /* it did not end early */
	}
	static const int want[] = { [BAD_DATA] = RT_DATA, [NOT_FINITE] = RT_NUMERIC, [SIGNAL] = 0, [SLOW] = 0,
		[BAD_BATCH] = RT_DATA };
	int64_t last = now->fault == NOTHING || now->fault == SLOW ? STEPS : now->fault == SIGNAL ? c->step : FAULTY;
	if (code != want[now->fault] || c->step != last || updated != c->step + (now->fault == SIGNAL)) {
		printf("    rank %d ends with %d after step %d and %d updates\n", c->rank, code, (int)c->step, updated);
		bad++;
	}
	code = now->fault ? rt_lane_drain(c) : code;
	code = code ? code : rt_queues_drain(c);
	if (now->fault == SIGNAL)
		bad += c->step < FAULTY || c->step > FAULTY + 1 || rt_worst(c, (uint32_t)c->step) != c->step;
	code = code ? code : c->comm->barrier(c);
	rt_lane_close(c, code);
	rt_pool_close(c);
	if (bad)
		printf("    rank %d: %d numbers differ\n", c->rank, bad);
	return code ? code : bad ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const Case cases[] = {
		{ .name = "two-ranks-1f1b-1-copy", .stages = 2, .wide = 1, .micros = 4, .copies = 1 },
		{ .name = "two-ranks-1f1b-2-copies", .stages = 2, .wide = 1, .micros = 5, .copies = 2 },
		{ .name = "three-ranks-1f1b-3-copies", .stages = 3, .wide = 1, .micros = 7, .copies = 3 },
		{ .name = "three-ranks-1f1b-1-copy", .stages = 3, .wide = 1, .micros = 4, .copies = 1 },
		{ .name = "three-ranks-gpipe", .stages = 3, .wide = 1, .micros = 5, .copies = 2, .gpipe = true },
		{ .name = "held-to-the-backward", .stages = 3, .wide = 1, .micros = 5, .copies = 1, .held = true },
		{ .name = "one-micro-batch", .stages = 2, .wide = 1, .micros = 1, .copies = 2 },
		{ .name = "two-stages-of-two-ranks", .stages = 2, .wide = 2, .micros = 5, .copies = 2 },
		{ .name = "two-ranks-each-1-copy", .stages = 2, .wide = 2, .micros = 4, .copies = 1, .held = true },
		{ .name = "bad-data-ends-all", .stages = 3, .wide = 1, .micros = 4, .copies = 1, .fault = BAD_DATA },
		{ .name = "loss-that-is-no-number-ends-all", .stages = 2, .wide = 2, .micros = 4, .copies = 2,
		  .fault = NOT_FINITE },
		{ .name = "signal-ends-all-after-one-step", .stages = 3, .wide = 1, .micros = 4, .copies = 2,
		  .fault = SIGNAL },
		{ .name = "slow-rank", .stages = 3, .wide = 1, .micros = 4, .copies = 1, .fault = SLOW },
		{ .name = "bad-data-end-an-evaluation", .stages = 3, .wide = 1, .micros = 4, .copies = 2,
		  .fault = BAD_BATCH },
	};
	enum { NCASE = sizeof cases / sizeof cases[0] };
	int one = argc > 1 ? atoi(argv[1]) : -1;        /* -2: a list of the cases, with their numbers of ranks */
	for (int i = 0; i < NCASE; i++) {
		const Case *k = now = &cases[i];
		if (one == -2)
			printf("%d %d\n", i, k->stages * k->wide);
		if (one != i && one != -1)
			continue;
		memset(&t, 0, sizeof t);
		for (int s = 0; s < k->stages; s++)
			lay_out(k, s);
		for (int s = 0; s < k->stages; s++) {
			write_role(k, s);
			write_eval(k, s);
			t.role[s] = (RtRole){ .schedule = { &t.step[s], &t.eval[s], NULL } };
			t.roles[s] = &t.role[s];
			for (int w = 0; w < k->wide; w++)
				t.role_of[s * k->wide + w] = (uint16_t)s;
		}
		p = (RtProgram){ .nrank = k->stages * k->wide, .role = t.roles, .nrole = k->stages,
			.role_of = t.role_of, .value = t.value, .nvalue = VALUES * k->stages, .most = 8,
			.form = t.form, .nform = 3 * k->stages, .move = t.move, .nmove = MOVES * k->stages,
			.channel = t.channel, .nchannel = MOVES * k->stages, .slab_bytes = 4 * RT_PAGE,
			.window_bytes = RT_PAGE, .batch = k->micros, .microbatches = k->micros };
		int code = rt_run(&p, rank, NULL);
		if (code || one < 0)
			printf(code ? "not ok %s: exit status %d\n" : "ok %s\n", k->name, code);
		if (code && one >= 0)
			return code;
	}
	return 0;
}
