/* The loss and the metrics of the held-out samples: sums over all batches divided by counts over all batches.
 *
 * The last batch may be incomplete.  It is filled up with its last sample.  A batch of only that sample gives the
 * contribution of the repeats to each sum and count, which is subtracted: exact for everything that is additive over
 * samples.  Counts of hits stay integers, because they are multiplied before they are divided.
 *
 * In a pipeline, batches follow each other through the stages without meeting: the ranks of the stage that reports add
 * up, and share the sums at the end.
 *
 * If the model keeps averages of its parameters (ema), the programs eval and infer read those. */
#include "comm.h"

#include <math.h>
#include <string.h>

int rt_average_off(Ctx *c)
{
	int code = 0;
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtKept *of = rt_averaged(c->program, &c->program->kept[i]);
		if (!of)
			continue;
		const RtTensor *to = &c->program->kept[i].t, *from = &of->t;
		if (to->form != from->form)
			return rt_error(c, RT_PLAN,
				"%s and %s have different layouts: only the average can be evaluated",
				from->name, to->name);
		size_t bytes = rt_bytes(c, to);
		void *host = rt_host(c, rt_address(c, to), bytes);
		code = rt_get(c, host, rt_address(c, from), bytes);
		if (!code)
			code = rt_put(c, rt_address(c, to), bytes);
	}
	return code;
}

/* An evaluation: its samples, those of a batch, and the sums so far, on ranks that report. */
typedef struct Evaluation { int64_t samples, batch; RtSums total; } Evaluation;

/* total += share of what batch c->micro reported: of the batch of repeats, which stands behind the incomplete one,
 * minus the repeats. */
static int add(Ctx *c, const int *output, int n, void *arg)
{
	Evaluation *e = arg;
	const RtSums *s = &c->sums;
	bool repeats = c->micro * e->batch >= e->samples;
	double of = repeats ? -(double)(e->batch - e->samples % e->batch) : 1, all = repeats ? (double)e->batch : 1;
	(void)output, (void)n;
	e->total.loss += s->loss * of / all;
	e->total.count += s->count * of / all;
	for (int i = 0; i < c->program->nmetric; i++) {
		e->total.sum[i] += s->sum[i] * of / all;
		e->total.by[i] += s->by[i] * of / all;
	}
	return 0;
}

void rt_record_metrics(RtRecord *r, const RtProgram *p, const RtSums *s)
{
	for (int i = 0; i < p->nmetric; i++) {
		double mean = s->by[i] != 0 ? s->sum[i] / s->by[i] : NAN;
		RtHow how = p->metric[i].how;
		rt_record_add(r, p->metric[i].name, how == RT_EXP ? exp(mean) : how == RT_ROOT ? sqrt(mean) : mean);
	}
}

int rt_eval_possible(Ctx *c, int64_t *samples)
{
	int64_t train, dropped;
	rt_data_counts(c, &train, samples, &dropped);
	if (*samples || c->program->data.format == RT_POINTS)
		return 0;
	return rt_error(c, RT_DATA,
		"no samples are held out: add validation: 0.1, or a path, to the data of the model");
}

/* The first rank that reports: in a pipeline, only those of one stage do. */
static int reporter(const RtProgram *p)
{
	for (int r = 0; r < p->nrank; r++) {
		const RtSchedule *s = p->role[p->role_of ? p->role_of[r] : 0]->schedule[RT_EVAL];
		for (int i = 0; i < s->ntask; i++)
			if (s->actor[s->task[i].actor].saves)
				return r;
	}
	return 0;
}

int rt_eval_all(Ctx *c, RtRecord *r)
{
	Evaluation e = { 0 };
	int64_t held;
	int code = rt_eval_possible(c, &held);
	if (code)
		return code;
	int64_t n = rt_data_held(c, &e.samples, &e.batch);
	code = rt_do_batches(c, RT_EVAL, n, &(RtBatches){ .take = add, .arg = &e });
	if (code)
		return code;
	rt_broadcast(c, reporter(c->program), &e.total, sizeof e.total);
	*r = (RtRecord){ .eval = true, .step = c->step };
	rt_record_add(r, "samples", (double)e.samples);
	rt_record_add(r, "loss", e.total.count != 0 ? e.total.loss / e.total.count : NAN);
	rt_record_metrics(r, c->program, &e.total);
	return 0;
}
