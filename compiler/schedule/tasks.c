/* The list of actions in blocks, and what each role does in a step: a list of tasks, each a block for a micro-batch.
 *
 * Without stages there are at most three blocks: begin, body, update.  The body runs once per micro-batch. */
#include "schedule/schedule.h"

static void add_block(Graph *g, Block b)
{
	Plan *p = g->model->plan;
	if (b.from < b.to)
		arena_push(g->arena, p->block, p->nblock, b);
}

static void one_stage(Graph *g, const Role *r)
{
	const Plan *p = g->model->plan;
	bool once = p->train.microbatches < 2 || g->model->main;
	int body = once ? 0 : r->body, after = once ? r->nstep : r->after;
	add_block(g, (Block){ .kind = BLOCK_BEGIN, .stage = -1, .name = name_of("begin"), .from = 0, .to = body });
	add_block(g, (Block){ .kind = BLOCK_BODY, .stage = -1, .name = name_of("body"), .from = body,
		.to = after });
	add_block(g, (Block){ .kind = BLOCK_UPDATE, .stage = -1, .name = name_of("update"), .from = after,
		.to = r->nstep });
}

int tasks_find(Graph *g)
{
	Plan *p = g->model->plan;
	p->block = NULL;
	p->nblock = 0;
	one_stage(g, &p->role[0]);
	for (int i = 0; i < p->nrole; i++) {
		Role *r = &p->role[i];
		for (int b = 0; b < p->nblock; b++) {
			bool body = p->block[b].kind == BLOCK_BODY;
			int64_t n = body && p->train.microbatches > 1 && !g->model->main ? p->train.microbatches : 1;
			for (int64_t m = 0; m < n; m++)
				arena_push(g->arena, r->task, r->ntask, ((Task){ b, body ? (int)m : -1 }));
		}
	}
	return 0;
}
