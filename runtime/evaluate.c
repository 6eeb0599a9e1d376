/* The loss and the metrics of the held-out samples: sums over all batches divided by counts over all batches.
 *
 * The last batch may be incomplete.  It is filled up with its last sample.  A batch of only that sample gives the
 * contribution of the repeats to each sum and count, which is subtracted: exact for everything that is additive over
 * samples.  Counts of hits stay integers, because they are multiplied before they are divided.
 *
 * If the model keeps averages of its parameters (ema), the programs eval and infer read those. */
#include "run.h"

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

/* total += share of what the last batch reported. */
static void add(RtSums *total, const Ctx *c, double of, double all)
{
	const RtSums *s = &c->sums;
	total->loss += s->loss * of / all;
	total->count += s->count * of / all;
	for (int i = 0; i < c->program->nmetric; i++) {
		total->sum[i] += s->sum[i] * of / all;
		total->by[i] += s->by[i] * of / all;
	}
}

static int batch_at(Ctx *c, int64_t first)
{
	rt_data_held(c, first);
	return rt_do(c, RT_EVAL);
}

void rt_record_metrics(RtRecord *r, const RtProgram *p, const RtSums *s)
{
	for (int i = 0; i < p->nmetric; i++) {
		double mean = s->by[i] != 0 ? s->sum[i] / s->by[i] : NAN;
		RtHow how = p->metric[i].how;
		rt_record_add(r, p->metric[i].name, how == RT_EXP ? exp(mean) : how == RT_ROOT ? sqrt(mean) : mean);
	}
}

/* Samples of one batch of the evaluation. */
static int64_t batch_of(const Ctx *c)
{
	const RtIo *p = &c->program->io[RT_EVAL];
	for (int i = 0; i < p->ninput; i++)
		if (p->input[i].feed == RT_SAMPLES && p->input[i].t.naxis > 0)
			return p->input[i].t.dim[0];
	return 1;
}

int rt_eval_possible(Ctx *c, int64_t *samples)
{
	int64_t train, dropped;
	rt_data_counts(c, &train, samples, &dropped);
	if (!*samples && c->program->data.format == RT_POINTS)
		*samples = batch_of(c);         /* synthetic: any number will do */
	if (*samples)
		return 0;
	return rt_error(c, RT_DATA,
		"no samples are held out: add validation: 0.1, or a path, to the data of the model");
}

int rt_eval_all(Ctx *c, RtRecord *r)
{
	int64_t held, batch = batch_of(c);
	RtSums total = { 0 };
	int code = rt_eval_possible(c, &held);
	if (code)
		return code;
	for (int64_t first = 0; first < held && !code; first += batch) {
		code = batch_at(c, first);
		add(&total, c, 1, 1);
		if (code || held - first >= batch)
			continue;
		code = batch_at(c, held - 1);
		add(&total, c, -(double)(batch - (held - first)), (double)batch);
	}
	*r = (RtRecord){ .eval = true, .step = c->step };
	rt_record_add(r, "samples", (double)held);
	rt_record_add(r, "loss", total.count != 0 ? total.loss / total.count : NAN);
	rt_record_metrics(r, c->program, &total);
	return code;
}
