/* The loss of the samples that are held out: the sum over all batches divided by the count over all batches.
 *
 * The last batch may not be full.  Its tail repeats the last sample, and a batch of nothing but that sample tells the share
 * that the repeats have in sum and count, which is taken off again: exact for every loss that adds up over samples.
 *
 * Where the model keeps averages of its parameters (ema), the programs eval and infer were compiled to read those. */
#include "run.h"

#include <string.h>

int rt_average_off(Ctx *c)
{
	int code = 0;
	for (int i = 0; i < c->program->nkept && !code; i++) {
		const RtTensor *to = &c->program->kept[i].t, *from = rt_averaged(c->program, &c->program->kept[i]) ? &rt_averaged(c->program, &c->program->kept[i])->t : NULL;
		if (!from)
			continue;
		if (to->form != from->form)
			return rt_error(c, RT_PLAN, "%s and %s do not lie alike: only the average can be evaluated", from->name, to->name);
		size_t bytes = rt_bytes(c, to);
		void *host = rt_host(c, rt_place(c, to), bytes);
		code = rt_get(c, host, rt_place(c, from), bytes);
		if (!code)
			code = rt_put(c, rt_place(c, to), bytes);
	}
	return code;
}

static int batch_at(Ctx *c, int64_t first, double *sum, double *count)
{
	rt_data_held(c, first);
	int code = rt_do(c, RT_EVAL);
	*sum = c->sum;
	*count = c->count;
	return code;
}

/* Samples of one batch of the evaluation. */
static int64_t batch_of(const Ctx *c)
{
	const RtPart *p = &c->program->part[RT_EVAL];
	for (int i = 0; i < p->ninput; i++)
		if (p->input[i].feed == RT_SAMPLES && p->input[i].t.rank > 0)
			return p->input[i].t.dim[0];
	return 1;
}

int rt_eval_all(Ctx *c, RtRecord *r)
{
	int64_t train, held, dropped, batch = batch_of(c);
	double total = 0, n = 0, sum, count;
	int code = 0;
	rt_data_counts(c, &train, &held, &dropped);
	if (!held && c->program->data.format == RT_POINTS)
		held = batch;                   /* made up: any will do */
	if (!held)
		return rt_error(c, RT_DATA, "no samples are held out: the model says so by validation: 0.1 in its data");
	for (int64_t first = 0; first < held && !code; first += batch) {
		code = batch_at(c, first, &sum, &count);
		total += sum;
		n += count;
		if (code || held - first >= batch)
			continue;
		double spare = (double)(batch - (held - first)) / (double)batch;
		code = batch_at(c, held - 1, &sum, &count);
		total -= spare * sum;
		n -= spare * count;
	}
	*r = (RtRecord){ .eval = true, .step = c->step };
	rt_record_add(r, "samples", (double)held);
	rt_record_add(r, "loss", n != 0 ? total / n : 0);
	return code;
}
