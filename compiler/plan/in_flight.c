/* How many micro-batches of a stage are in memory at the same time, before the times of the stages are known: by the
 * order of the schedule, with stages of equal time.  A value that stays from F to B, from F to W or from B to W is in
 * as many copies as there are micro-batches for which the first has run and the second has not (schedule/copies.c finds
 * the same from the tasks of a rank). */
#include "plan/plan.h"

/* The span of the micro-batches between two kinds of blocks of a stage. */
static int span(const Pipeline *p, const PipeOrder *o, int stage, BlockKind from, BlockKind to, Arena *a)
{
	int r = p->stage[stage].rank, most = 1, low = 0, high = 0;
	bool *open = arena_array(a, bool, p->micros + 1);
	for (int i = 0; i < o->ntask[r]; i++) {
		const PipeTask *t = &o->task[r][i];
		bool begins = t->kind == from, ends = t->kind == to || t->kind == BLOCK_BW;
		if (t->stage != stage || (!begins && !ends))
			continue;
		if (begins) {
			open[t->micro] = true;
			low = low == high || t->micro < low ? t->micro : low;
			high = t->micro + 1 > high ? t->micro + 1 : high;
		}
		most = high - low > most ? high - low : most;
		if (ends)
			open[t->micro] = false;
		while (low < high && !open[low])
			low++;
		while (high > low && !open[high - 1])
			high--;
	}
	return most;
}

/* false: the schedule cannot run it, which is reported when tasks are made. */
static bool find_order(const Stages *s, Arena *a, PipeOrder *o)
{
	Pipeline p = s->pipe;
	SearchResult best;
	p.hop = NULL;
	p.nhop = 0;
	p.stage = arena_array(a, PipeStage, p.nstage + 1);
	for (int i = 0; i < p.nstage; i++) {
		p.stage[i] = (PipeStage){ .rank = s->pipe.stage[i].rank, .f = 1, .b = 1, .w = 1 };
		if (i)
			arena_push(a, p.hop, p.nhop, ((PipeHop){ .from = i - 1, .to = i }));
	}
	if (s->csv)
		*o = s->csv->order;
	else if (s->schedule)
		return !s->schedule->order(&p, a, o);
	else if (search_run(&p, 0, a, &best))
		return false;
	else
		*o = best.order;
	return true;
}

const InFlight *in_flight_find(Stages *s, Arena *keep, Arena *scratch)
{
	PipeOrder o;
	if (s->flight)
		return s->flight;
	InFlight *f = arena_array(keep, InFlight, s->pipe.nstage + 1);
	bool known = find_order(s, scratch, &o);
	for (int i = 0; i < s->pipe.nstage; i++) {
		f[i] = (InFlight){ s->pipe.micros, s->pipe.micros, s->pipe.micros };
		if (known)
			f[i] = (InFlight){ span(&s->pipe, &o, i, BLOCK_F, BLOCK_B, scratch),
				span(&s->pipe, &o, i, BLOCK_F, BLOCK_W, scratch),
				span(&s->pipe, &o, i, BLOCK_B, BLOCK_W, scratch) };
	}
	return s->flight = f;
}
