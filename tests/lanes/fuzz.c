/* Random pipelines: ranks, chunks, micro-batches, uneven times, skip connections, memory; each in a random schedule,
 * named or found by the solver, as programs with random numbers of copies.  A quarter of them has fewer copies than
 * the order needs, or transfers on the compute lane.  Of all, at least four fifths are proved.  Every refusal is
 * confirmed by the search through states (states.h), and so is every small net that is proved.  What is proved is
 * played to its end, with both kinds of sends.  10,000 with --long. */
#include "states.h"

static double uniform(void) { return below(1 << 20) / (double)(1 << 20); }

static Pipeline large(Arena *a, const PipeSchedule *s)
{
	int nrank = 1 + below(5), chunks = s->chunks ? s->chunks : 1 + below(3), n = nrank * chunks;
	Pipeline p = { .nrank = nrank, .nstage = n, .micros = 1 + below(10), .nhop = n - 1 };
	p.stage = arena_array(a, PipeStage, n);
	p.hop = arena_array(a, PipeHop, n + 1);
	p.limit = arena_array(a, int64_t, nrank);
	for (int i = 0; i < n; i++) {
		p.stage[i] = (PipeStage){ .f = 1 + 3 * uniform(), .b = 1 + 3 * uniform(), .w = 3 * uniform(),
			.update = below(2) * uniform(), .kept = 8 + below(8), .kept_w = below(16) };
		p.hop[i] = (PipeHop){ .from = i, .to = i + 1, .latency = below(2) * uniform(),
			.busy = below(2) * uniform(), .bytes = 4 };
	}
	for (int r = 0; r < nrank; r++)
		p.limit[r] = INT64_MAX / 4;
	if (n > 2 && !below(4))
		p.hop[p.nhop++] = (PipeHop){ .from = 0, .to = 2 + below(n - 2), .latency = uniform(), .bytes = 4 };
	schedules_place(s, &p);
	return p;
}

static bool spoil(LaneNet *n, Arena *a)
{
	LaneRole *r = &n->role[below(n->nrole)];
	if (below(4) == 0)
		one_lane(r, a, n);
	for (int i = 0; i < r->nreg; i++)
		if (below(2) && r->reg[i].copies > 1)
			r->reg[i].copies--;
	return true;
}

static int bad;

static void fail(int i, const char *what, const char *why)
{
	if (bad++ < 10)
		printf("not ok pipeline %d: %s%s%s\n", i, what, why ? ": " : "", why ? why : "");
}

/* A net that was proved runs to its end, also in the simulation with times. */
static bool proved(int i, const LaneNet *n, Arena *a)
{
	int tasks = 0;
	for (int r = 0; r < n->nrole; r++)
		for (int l = 0; l < n->role[r].nlane; l++)
			tasks += n->role[r].lane[l].ntask;
	for (int buffered = 0; buffered < 2; buffered++) {
		LanePlay y;
		if (!play_net(n, 3, buffered, a, &y))
			fail(i, "a proved net stands still when it is played", NULL);
		for (int r = 0; r < n->nrole; r++)
			if (y.makespan < y.busy[r] * (1 - 1e-12))
				fail(i, "a rank works longer than the step lasts", NULL);
	}
	if (tasks > 20)
		return false;
	if (search(n, false) != RUNS || search(n, true) != RUNS)
		fail(i, "the search does not confirm a proof", NULL);
	return true;
}

int main(void)
{
	const char *set = getenv("LONG");
	int cases = set && *set ? 10000 : 500, good = 0, searched = 0, refused = 0, solved = 0, named = 0;
	while (schedules[named].name)
		named++;
	for (int i = 0; i < cases; i++) {
		Arena a = { 0 };
		LaneNet n;
		PipeOrder o;
		SearchResult found;
		const PipeSchedule *s = &schedules[below(named)];
		Pipeline p = large(&a, s);
		const char *why = s->order(&p, &a, &o);
		if (why)
			fail(i, s->name, why);
		if (!below(8) && !search_run(&p, 1e-4, &a, &found)) {
			o = found.order;
			solved++;
		}
		why = why ? why : check_order(&p, &o, &a);
		if (why) {
			fail(i, s->name, why);
			continue;
		}
		net_of(&p, &o, below(3), &a, &n);
		bool spoilt = !below(4) && spoil(&n, &a);
		why = check_net(&n, &a);
		good += !why;
		refused += why != NULL;
		if (why && !spoilt)
			fail(i, "nothing was spoilt", why);
		if (why && search(&n, false) != STOPS)
			fail(i, "the search does not confirm", why);
		if (!why)
			searched += proved(i, &n, &a);
		arena_free(&a);
	}
	if (good < cases * 4 / 5 || refused < cases / 20)
		fail(cases, "too few are proved or refused", NULL);
	if (!bad)
		printf("ok %d pipelines, %d of the solver: %d proved and played, %d of them searched; %d refusals "
			"confirmed\n", cases, solved, good, searched, refused);
	search_end();
	return 0;
}
