/* The memory that the program will need, reported before anything is built: the bytes of a rank by class when most
 * memory is in use.  The sizes of the runtime itself are constants of its header, so that compiler and runtime report
 * the same. */
#include "emit/emit.h"

#include "../runtime/rt.h"

#include <inttypes.h>
#include <string.h>

static int64_t pages(int64_t n)
{
	return (n + 4095) / 4096 * 4096;
}

/* Two buffers of the larger of the samples of step and eval, as runtime/data.c lays them out. */
static int64_t data_bytes(const Emit *e)
{
	int64_t most = 0;
	for (int k = 0; k < e->nprogram; k++) {
		const Plan *p = e->program[k].model->plan;
		int64_t n = 0;
		for (int i = 0; i < p->nslot; i++) {
			const Slot *s = p->slot[i];
			if (s && !s->view && s->keep == KEEP_INPUT && strcmp(s->v->name, "train.step"))
				n += memplan_aligned(s->bytes);
		}
		bool fed = e->program[k].kind != PROGRAM_INFER;
		most = fed && n > most ? n : most;
	}
	return e->plan->training ? pages(2 * most) : 0;
}

/* The copy of the contents of a checkpoint, as runtime/checkpoint.c lays it out, the text about it, and its thread. */
static int64_t saver_bytes(const Emit *e)
{
	int64_t n = 0, tensors = 0;
	for (int i = 0; i < e->nkept; i++) {
		bool saved = e->value[i]->keep == KEEP_PARAM || e->value[i]->keep == KEEP_STATE;
		n += saved ? memplan_aligned(e->value[i]->bytes) : 0;
		tensors += saved;
	}
	return e->plan->training ? pages(n) + pages(tensors * RT_SAVED) + RT_SAVER : 0;
}

/* The tables of transfers of a rank, as runtime/memory.c counts them. */
static int64_t tables_bytes(const Emit *e)
{
	const Form *form = e->plan->forms->form;
	const Channels *all = e->plan->channels;
	int64_t n = RT_SIGNALS + (int64_t)e->nform * RT_SHARD;
	for (int i = 0; i < e->nmove; i++)
		n += RT_ROUTE + (int64_t)form_group(&form[e->form[e->move[i].from - 1]],
			&form[e->form[e->move[i].to - 1]]) * RT_PEERS;
	for (int i = 0; i < all->n; i++)
		n += (int64_t)form_joined(&form[all->channel[i].from], &form[all->channel[i].to]) * RT_SIGNAL;
	return e->plan->world->nrank > 1 ? pages(n) : 0;
}

RankMemory report_memory(const Emit *e)
{
	RankMemory m = { .slab = pages(values_slab(e)) + pages(values_window(e)),
		.work = pages(e->work_shared) + pages(e->work_each), .data = data_bytes(e) };
	m.packed = e->plan->layout.packed;
	m.gaps = m.slab - e->plan->layout.bound - m.packed;
	/* the thread of actions, and that of transfers */
	m.base = RT_BASE + RT_STACK * (e->plan->world->nrank > 1 && !e->plan->main->cuda ? 2 : 1);
	m.base += tables_bytes(e);
	m.thread = pages(e->work_each) + RT_STACK;
	m.saver = saver_bytes(e);
	m.total = m.slab + m.work + m.data + m.base;
	return m;
}

void report_print(const Emit *e)
{
	const Plan *p = e->plan;
	const Layout *l = &p->layout;
	const RankMemory m = report_memory(e);
	if (opt.dump_after)
		return;
	printf("%s: %d rank%s, %d role%s, %d actions", opt.out, p->world->nrank, p->world->nrank == 1 ? "" : "s",
		p->nrole, p->nrole == 1 ? "" : "s", p->role[0].nstep);
	if (opt.chunks)
		printf("; sums in %" PRId64 " chunks, so that any ranks give the same bits", opt.chunks);
	putchar('\n');
	printf("memory of a rank: %" PRId64 " bytes;", m.total);
	if (l->peak >= 0)
		printf(" most is in use at a%d:", l->peak);
	for (int i = 0; i <= KEEP_ACT; i++)
		if (l->by[i])
			printf(" %s %" PRId64 ",", emit_keep[i], l->by[i]);
	if (m.packed)
		printf(" packed %" PRId64 ",", m.packed);
	printf(" gaps %" PRId64 ", workspace %" PRId64 ", data %" PRId64 ", program %" PRId64 "; %" PRId64 " for each "
		"further thread, %" PRId64 " for checkpoints\n",
	       m.gaps, m.work, m.data, m.base, m.thread, m.saver);
	stage_rows_print(e);
	params_report(e->program[0].model);
	const char *unsaid = p->training ? train_defaults(e->g->model, &p->train) : NULL;
	if (unsaid)
		printf("defaults: %s\n", unsaid);
}
