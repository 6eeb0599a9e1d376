/* Trial runs of the passes, in child processes that return a measurement only; the graph of the parent does not change.
 *
 * They answer six questions:
 *
 *   - In how many micro-batches does a pipeline run, if nothing says it?  Divisors of the batch are tried, first the
 *     one that is next to twice the number of stages, then larger or smaller ones while they are quicker.  What fits
 *     into the memory of a rank wins, and else what needs least.
 *   - Where is the model cut into stages?  The first cut is made by costs of the forward pass.  The blocks of the
 *     program that comes of it give the seconds of F, B, W and update, and the bytes, of each node, and so the next
 *     cut.  Three programs at most are tried, and the quickest that fits into the memory of a rank is taken.
 *   - Which plan fits into the memory of a rank?  The solver limits the memory of values by its own estimate
 *     (plan/search_memory.c).  The memory that a rank takes is known when the program is generated: it includes copies
 *     of transfers, the window that peers read, gaps between values, scratch of kernels and buffers of data.  Between
 *     the quickest plan and the smallest there is a ladder of limits for the solver.  The highest rung whose program
 *     fits is found, and the quickest program that fits is taken.  Neither the ladder nor the order in which its low
 *     rungs are tried depends on the budget.  So when nothing fits, the budget that the message names is that of a plan
 *     that was tried, and that would be tried again with this budget.
 *   - Are fewer ranks as quick?  One rank is always tried, because every node has one candidate then.  Half of the
 *     ranks are tried where the model is small and the mesh has one axis.
 *   - What is computed again in the backward pass?  If the quickest program is too large, checkpoints.c chooses with
 *     several limits, and the largest with which the program fits is taken, unless a plan of the first ladder is as
 *     quick.
 *   - Does @recompute pay?
 *
 * The last two run beside the compiler; their results are read and reported when the program has been written. */
#include "compiler.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNGS = 8, SPARED = 3, NAMED = 5, NAME_BYTES = 96 };
static const double LESS = 0.002;       /* a cut that saves a smaller part of a step is not worth another */
enum { HALVED = 400 };                  /* nodes: more are not solved again for half of the ranks */

typedef struct Peak { char name[NAME_BYTES]; Loc loc; int64_t bytes; } Peak;
/* The result of a trial. */
typedef struct Measured {
	Predicted is;                   /* is.bytes 0: there is no such program */
	int64_t activations, weights;   /* bytes at the busiest action */
	int npeak;
	Peak peak[NAMED];               /* the largest values in memory at the busiest action */
} Measured;
typedef struct Trial { int from; pid_t child; } Trial;          /* child 0: none was started */

static Trial plain, one, half;
static Measured quickest;               /* the quickest plan without recomputation, once it was tried; else zeros */
static Loc again;                       /* of the first @recompute */
static int halved;
static double could_save;               /* bytes that --recompute=none keeps for the backward pass */

/* ---- one trial ---- */

static int larger(const void *a, const void *b)
{
	const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

static Loc made_at(const Value *v)
{
	while (v->def && kernel_transfer(v->def))
		v = v->def->in[0];
	return v->loc.file || !v->def ? v->loc : v->def->loc;
}

static void find_peaks(const Plan *p, Measured *t)
{
	Slot **list = calloc((size_t)p->nslot + 1, sizeof *list);
	int n = 0, peak = p->layout.peak;
	if (!list)
		die("no memory");
	for (int i = 0; i < p->nslot; i++) {
		Slot *s = p->slot[i];
		if (s && s->store == s && !s->view && s->first <= peak && s->last >= peak)
			list[n++] = s;
	}
	qsort(list, (size_t)n, sizeof *list, larger);
	for (; t->npeak < n && t->npeak < NAMED; t->npeak++) {
		Peak *k = &t->peak[t->npeak];
		snprintf(k->name, sizeof k->name, "%s", list[t->npeak]->v->name);
		k->loc = made_at(list[t->npeak]->v);
		k->bytes = list[t->npeak]->bytes;
	}
	free(list);
}

/* The number of micro-batches as if @train gave it; -1 after explaining. */
static int set_micros(Model *m, int64_t micros)
{
	opt.micro_batches = micros;
	if (microbatch_option(m))
		return -1;
	train_bind_batch(m);
	return train_check_batch(m);
}

/* In the child: runs the passes from `pass` on and exits.  Memory is known approximately after memplan, exactly after
 * emit. */
static _Noreturn void measure(Model *m, const char *pass, int to)
{
	Measured t = { 0 };
	if (opt.change.micros) {
		if (!set_micros(m, opt.change.micros))
			passes_run(m);
		if (!m->plan)
			_exit(1);
	} else if (opt.change.ranks) {
		bool solved = !plan_run(m->graph) && (!device.memory || m->plan->predicted.held <= device.memory);
		m->plan->predicted.bytes = solved;
	} else {
		passes_from(m, pass);
	}
	t.is = m->plan->predicted;
	if (m->plan->stages && m->plan->training && m->graph->facts & PLANNED)
		t.is.seconds = lane_net_period(m->graph);
	if (m->graph->facts & PLANNED && !t.is.bytes)
		t.is.bytes = m->plan->layout.slab + m->plan->layout.window;     /* emit refused it, or did not run */
	if (m->graph->facts & PROVED) {
		find_peaks(m->plan, &t);
		t.activations = m->plan->layout.by[KEEP_ACT] + m->plan->layout.by[KEEP_INPUT];
		t.weights = m->plan->layout.by[KEEP_PARAM];
	}
	bool bad = write(to, &t, sizeof t) != (ssize_t)sizeof t;
	if (opt.change.weigh && m->graph->facts & PLANNED) {
		const Loads *l = loads_measure(m->graph, m->graph->arena);
		size_t n = sizeof *l->of * (size_t)l->n;
		bad |= write(to, l, sizeof *l) != (ssize_t)sizeof *l || write(to, l->of, n) != (ssize_t)n;
	}
	_exit(bad);
}

static void start(Trial *t, Model *m, const char *pass, Change change)
{
	int pipes[2];
	fflush(NULL);
	if (pipe(pipes))
		die("no pipe for a trial: %s", strerror(errno));
	pid_t child = fork();
	if (child < 0)
		die("no process for a trial: %s", strerror(errno));
	*t = (Trial){ pipes[0], child };
	if (child) {
		close(pipes[1]);
		return;
	}
	close(pipes[0]);
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(1);
	opt.out = opt.simulate = opt.stop_after = opt.dump_after = opt.explain = NULL;
	if ((change.weigh || change.micros) && !device.memory)
		opt.stop_after = "memplan";
	opt.change = change;
	opt.change.trial = true;
	measure(m, pass, pipes[1]);
}

static bool take(const Trial *t, void *to, size_t size)
{
	size_t got = 0;
	while (got < size) {
		ssize_t n = read(t->from, (char *)to + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

/* What a trial measured of each node, in the arena; NULL: nothing. */
static Loads *take_loads(const Trial *t, Arena *a)
{
	Loads *l = arena_new(a, Loads);
	if (!take(t, l, sizeof *l) || l->n <= 0)
		return NULL;
	l->of = arena_array(a, Load, l->n);
	return take(t, l->of, sizeof *l->of * (size_t)l->n) ? l : NULL;
}

/* Waits for a trial; false: it found no program. */
static bool finish_loads(Trial *t, Measured *to, Arena *a, Loads **loads)
{
	*to = (Measured){ 0 };
	if (!t->child)
		return false;
	if (!take(t, to, sizeof *to))
		*to = (Measured){ 0 };
	else if (loads)
		*loads = take_loads(t, a);
	close(t->from);
	while (waitpid(t->child, NULL, 0) < 0 && errno == EINTR)
		;
	t->child = 0;
	return to->is.bytes > 0;
}

static bool finish(Trial *t, Measured *to)
{
	return finish_loads(t, to, NULL, NULL);
}

/* ---- the memory of a rank ---- */

/* The limit of a rung: one byte at the lowest, which gives the smallest plan; 0 at the top, which is no limit. */
static double rung(const Predicted *p, int k)
{
	if (k == RUNGS)
		return 0;
	return k ? p->least * pow(p->most / p->least, (double)k / RUNGS) : 1;
}

static bool fits(const Measured *t)
{
	return t->is.bytes && (!device.memory || (double)t->is.bytes <= device.memory);
}

static Measured try(Model *m, double limit)
{
	Trial t;
	Measured got;
	start(&t, m, "plan", (Change){ .made = true, .limit = limit, .again = opt.change.again,
		.spare = opt.change.spare });
	finish(&t, &got);
	return got;
}

/* What would help, by numbers of the smallest program: half of the activations are in memory with twice as many
 * micro-batches, whose gradients are then summed in memory of their own, or on twice as many ranks. */
static void propose(const Model *m, const Measured *t)
{
	const Plan *p = m->plan;
	int64_t micros = p->train.microbatches > 1 ? p->train.microbatches : 1, half = t->activations / 2;
	if (could_save > 0)
		note_at((Loc){ 0 },
			"--recompute=auto may compute values again: up to %.0f bytes of whole values fewer stay for "
			"the backward pass", could_save);
	if (opt.change.again)
		note_at((Loc){ 0 }, "this plan computes parts of the forward pass again in the backward pass already");
	if (p->training && microbatch_rows(m->graph) % 2 == 0)
		note_at((Loc){ 0 },
			"--micro-batches=%" PRId64 " needs about %" PRId64 " bytes a rank: activations, %" PRId64
			" bytes, are halved", 2 * micros, t->is.bytes - half + (micros == 1 ? t->weights : 0),
			t->activations);
	note_at((Loc){ 0 }, "--ranks=%d needs about %" PRId64 " bytes a rank, if the batch is split further",
		2 * p->main->nrank, t->is.bytes - half);
}

static int refuse(const Model *model, const Mesh *m, const Measured *t)
{
	fail_at(EXIT_NOPLAN, m->loc, "no plan was found that fits into %.0f bytes a rank: the smallest needs %" PRId64,
		device.memory, t->is.bytes);
	for (int i = 0; i < t->npeak; i++)
		note_at(t->peak[i].loc, "then %s takes %" PRId64 " of them",
			diag_escape(&arena_process, t->peak[i].name, strlen(t->peak[i].name)), t->peak[i].bytes);
	propose(model, t);
	return -1;
}

/* Finds the highest rung at which the program fits: it does at `low`, not at the top.  Returns the quickest program
 * that fits; taken: its rung. */
static Measured climb(Model *m, const Predicted *p, int low, Measured best, int *taken)
{
	for (int high = RUNGS; high - low > 1;) {
		int middle = (low + high) / 2;
		Measured t = try(m, rung(p, middle));
		if (!fits(&t)) {
			high = middle;
			continue;
		}
		low = middle;
		if (t.is.seconds < best.is.seconds) {
			best = t;
			*taken = low;
		}
	}
	return best;
}

/* Where the solver chooses the order of a pipeline: sets opt.change.spare, the bytes that an order must leave, because
 * the memory that the solver knows has no gaps, buffers and tables (schedule/times.c).  false: that is not enough. */
static bool find_spare(Model *m, Measured *t)
{
	const Stages *s = m->plan->stages;
	int64_t before = opt.change.spare;
	for (int i = 0; i < SPARED && s && !s->schedule && !s->csv && t->is.bytes && !fits(t); i++) {
		opt.change.spare += t->is.bytes - (int64_t)device.memory;
		*t = try(m, 0);
	}
	if (fits(t))
		return true;
	opt.change.spare = before;
	return false;
}

/* Sets opt.change.limit so that the program fits into the memory of a rank; -1 after explaining. */
static int find_limit(Model *m)
{
	static const int low[] = { 0, 1, 2, 4 };
	bool tried = quickest.is.bytes && !opt.change.again;
	Measured quick = tried ? quickest : try(m, 0), best = quick;
	const Predicted p = quick.is;
	int at = -1;
	if (!p.bytes || !p.least)
		return 0;               /* no plan gives a program, and the passes report why; or the program fits */
	if (fits(&quick) || find_spare(m, &quick)) {
		opt.change.found = quick.is.bytes;
		return 0;
	}
	for (size_t i = 0; i < sizeof low / sizeof *low && at < 0; i++) {
		Measured t = try(m, rung(&p, low[i]));
		if (t.is.bytes && t.is.bytes < best.is.bytes)
			best = t;
		if (fits(&t))
			at = low[i];
	}
	if (at < 0)
		return refuse(m, p.tight, &best);
	int taken = at;
	best = climb(m, &p, at, best, &taken);
	opt.change.limit = rung(&p, taken);
	opt.change.found = best.is.bytes;
	return 0;
}

/* ---- fewer ranks and @recompute ---- */

static bool wanted(void)
{
	return opt.out && !opt.dump_after && !opt.stop_after;
}

static Measured try_again(Model *m, double bytes, bool find)
{
	Trial t;
	Measured got;
	start(&t, m, "recompute", (Change){ .made = true, .again = bytes, .find = find });
	finish(&t, &got);
	return got;
}

/* The memory of a rank is known from here on; the mesh is read later, and then again. */
static int read_memory(const Model *m)
{
	const Annot *mesh = annot_find(m->annot, "mesh");
	const Arg *on = mesh ? arg_find(mesh->arg, mesh->narg, "device") : NULL;
	Mesh line = { .ndim = 1, .dim = { 1 }, .nrank = 1, .cuda = on && !strcmp(on->s, "cuda") };
	return device_read(opt.machine, &line);
}

/* Whether the quickest plan without recomputation is too large; *lean: the best plan without it that fits. */
static bool too_large(Model *m, Measured *lean)
{
	quickest = try_again(m, 0, false);
	if (!quickest.is.bytes || fits(&quickest))
		return false;
	*lean = try_again(m, 0, true);
	return true;
}

/* Sets opt.change.again, the bytes that may stay for the backward pass: the most with which the program fits.  Where
 * none does, the least, and trials_plan goes on from there.  A plan that fits without recomputation and is as quick
 * wins. */
static int find_again(Model *m)
{
	Checkpoints c;
	Measured lean, best;
	checkpoints_choose(m->graph, 0, &c);
	if (c.least >= c.most || !too_large(m, &lean))
		return 0;
	double low = c.least, high = c.most;
	best = try_again(m, low, false);
	if (!fits(&best)) {
		if (!fits(&lean))
			opt.change.again = low;
		return 0;
	}
	for (int i = 0; i < RUNGS / 2; i++) {
		double middle = (low + high) / 2;
		Measured t = try_again(m, middle, false);
		if (fits(&t)) {
			low = middle;
			best = t;
		} else {
			high = middle;
		}
	}
	if (!fits(&lean) || best.is.seconds < lean.is.seconds)
		opt.change.again = low;
	return 0;
}

int trials_recompute(Model *m)
{
	const Annot *a = recompute_first(m->graph);
	if (a && wanted()) {
		again = a->loc;
		start(&plain, m, "recompute", (Change){ .made = true, .keep = true });
	}
	if (!(opt.change.trial ? opt.change.all : options_program()) || !m->plan->training)
		return 0;
	if (read_memory(m))
		return -1;
	if (!search_memory_near(m->graph))
		return 0;
	if (!opt.no_recompute)
		return find_again(m);
	Checkpoints c;
	checkpoints_choose(m->graph, 0, &c);
	could_save = c.most - c.least;
	return 0;
}

int trials_plan(Model *m)
{
	const Plan *p = m->plan;
	if (wanted() && p->nplace == 1 && p->main->nrank > 1) {
		start(&one, m, "plan", (Change){ .ranks = 1 });
		halved = p->main->nrank / 2;
		if (p->main->ndim == 1 && halved > 1 && m->graph->nnode <= HALVED)
			start(&half, m, "plan", (Change){ .ranks = halved });
	}
	bool find = options_program() || opt.change.find || opt.change.all;
	return find && search_memory_near(m->graph) ? find_limit(m) : 0;
}

/* ---- stages ---- */

/* A cut, without a limit of memory, for the loads of the nodes; if it does not fit, also with the best choice of
 * layouts and of what is recomputed. */
static Measured try_cut(Model *m, const Loads *by, Loads **loads)
{
	Trial t;
	Measured got, tight;
	*loads = NULL;
	start(&t, m, "train", (Change){ .made = device.memory > 0, .weigh = true, .loads = by });
	finish_loads(&t, &got, &m->arena, loads);
	if (!got.is.bytes || fits(&got))
		return got;
	start(&t, m, "train", (Change){ .made = true, .all = true, .loads = by });
	return finish(&t, &tight) ? tight : got;
}

static bool better(const Measured *a, const Measured *b)
{
	if (!fits(a) || !fits(b))
		return fits(a) || (!fits(b) && a->is.bytes && a->is.bytes < b->is.bytes);
	return a->is.seconds < (1 - LESS) * b->is.seconds;
}

static void report_cut(const Measured *first, const Measured *best, int tried)
{
	printf("stages: cut by the seconds of F, B and W, the best of %d cuts: %.4g ms a step instead of %.4g ms",
		tried, 1e3 * best->is.seconds, 1e3 * first->is.seconds);
	if (device.memory)
		printf(", %" PRId64 " bytes a rank instead of %" PRId64, best->is.bytes, first->is.bytes);
	putchar('\n');
}

int trials_stages(Model *m)
{
	enum { CUTS = 3 };
	if (opt.change.trial || opt.infer || !annot_find(m->annot, "train"))
		return 0;
	if (!m->plan)
		m->plan = arena_new(&m->arena, Plan);
	if (stages_read(m, m->plan))
		return -1;
	if (!stages_cut_free(m->graph))
		return 0;
	if (read_memory(m))
		return -1;
	Loads *loads;
	Measured first = try_cut(m, NULL, &loads), best = first;
	int tried = 1;
	for (; tried < CUTS && loads && stages_cut_differs(m->graph, loads); tried++) {
		const Loads *by = loads;
		Measured t = try_cut(m, by, &loads);
		if (better(&t, &best)) {
			best = t;
			opt.change.loads = by;
		}
	}
	if (opt.change.loads && options_program() && !opt.dump_after)
		report_cut(&first, &best, tried);
	return 0;
}

/* ---- micro-batches ---- */

typedef struct Micros { int64_t *of; Measured *got; bool *tried; int n; } Micros;        /* divisors of the batch */

static Micros divisors(Model *m, int64_t batch)
{
	Micros c = { 0 };
	for (int64_t d = 1; d <= batch / d; d++)
		if (batch % d == 0)
			arena_push(&m->arena, c.of, c.n, d);
	for (int i = c.n; i-- > 0;)
		if (c.of[i] != batch / c.of[i])
			arena_push(&m->arena, c.of, c.n, batch / c.of[i]);
	c.got = arena_array(&m->arena, Measured, c.n + 1);
	c.tried = arena_array(&m->arena, bool, c.n + 1);
	return c;
}

static Measured try_micros(Model *m, Micros *c, int i)
{
	Trial t;
	if (!c->tried[i]) {
		start(&t, m, NULL, (Change){ .made = device.memory > 0, .micros = c->of[i] });
		finish(&t, &c->got[i]);
		c->tried[i] = true;
	}
	return c->got[i];
}

/* From the divisor at `i` to larger or smaller ones while they are better; returns the best. */
static int walk(Model *m, Micros *c, int i, int by)
{
	Measured best = try_micros(m, c, i);
	for (int k = i + by; k >= 0 && k < c->n; k += by) {
		Measured t = try_micros(m, c, k);
		if (best.is.bytes && !(t.is.bytes && better(&t, &best)))
			break;
		if (t.is.bytes) {
			best = t;
			i = k;
		}
	}
	return i;
}

static int choose_micros(Model *m, Micros *c, int stages)
{
	int i = 0, from;
	while (i + 1 < c->n && c->of[i] < 2 * stages)
		i++;
	from = i;
	if (try_micros(m, c, i).is.bytes)
		i = walk(m, c, i, 1);
	return i == from ? walk(m, c, i, -1) : i;
}

static void report_micros(const Micros *c, int best)
{
	int n = 0;
	for (int i = 0; i < c->n; i++)
		n += c->got[i].is.bytes > 0;
	if (n < 2) {
		printf("micro-batches: %" PRId64 ", because no other number gives a program (--micro-batches=%" PRId64
			" reports why)\n", c->of[best], c->of[c->of[best] == 1 && c->n > 1]);
		return;
	}
	printf("micro-batches: %" PRId64 ", by the predicted times of a step (", c->of[best]);
	for (int i = 0, k = 0; i < c->n; i++)
		if (c->got[i].is.bytes)
			printf("%s%" PRId64 ": %.4g ms%s", k++ ? ", " : "", c->of[i], 1e3 * c->got[i].is.seconds,
				fits(&c->got[i]) ? "" : ", too large");
	printf("); --micro-batches=N decides it\n");
}

int trials_micro_batches(Model *m)
{
	bool free;
	int stages, best = 0;
	int64_t from, batch = microbatch_batch(m);
	if (opt.change.trial)
		return 0;
	if (stages_choose_micros(m, &free, &stages, &from))
		return -1;
	if (!free || from)
		return free && from > 1 ? set_micros(m, from) : 0;
	const char *why = NULL;
	if (options_any_ranks(m))
		why = "with --deterministic=any-ranks the number is not chosen, because one rank must have the same: "
			"give --micro-batches=N";
	else if (batch < 2)
		why = "give batch: N in @train, and --micro-batches=M";
	if (why && !opt.dump_after)
		warn_at(annot_find(m->annot, "pipeline")->loc,
			"the pipeline has one micro-batch, so its stages wait for each other; %s", why);
	if (why)
		return 0;
	if (read_memory(m))
		return -1;
	Micros c = divisors(m, batch);
	best = choose_micros(m, &c, stages);
	if (options_program() && !opt.dump_after && c.got[best].is.bytes)
		report_micros(&c, best);
	return c.of[best] > 1 && c.got[best].is.bytes ? set_micros(m, c.of[best]) : 0;
}

void trials_report(const Plan *p)
{
	Measured t, by_half;
	if (finish(&plain, &t) && t.is.bytes <= p->predicted.bytes)
		warn_at(again,
			"@recompute does not pay: a rank takes %" PRId64 " bytes with it and %" PRId64 " without",
			p->predicted.bytes, t.is.bytes);
	bool alone = finish(&one, &t), halves = finish(&half, &by_half);
	int n = halves && (!alone || by_half.is.seconds < t.is.seconds) ? halved : 1;
	double best = n == 1 ? t.is.seconds : by_half.is.seconds;
	const char *machine = p->main->cuda ? "a100x8" : "cpu";
	if (opt.machine)
		machine = opt.machine;
	if ((alone || halves) && best <= p->predicted.seconds * (1 + 1e-9))
		warn_at(p->main->loc,
			"%d ranks are predicted to take %.4g s a step, %d rank%s %.4g s: more do not pay by the "
			"figures of machine %s (--machine)",
			p->main->nrank, p->predicted.seconds, n, n == 1 ? "" : "s", best, machine);
}
