/* The list of actions in blocks, and what each role does in a step: a list of tasks, each a block for a micro-batch.
 *
 * Without stages there are at most three blocks: begin, body, update.  The body runs once per micro-batch.  In a
 * pipeline the body is taken apart into blocks of stages (kinds.c).  The list has them in the order load, F0, F1, ..,
 * B1, W1, reduce1, B0, W0, reduce0: an order that one micro-batch could be computed in.  So the lifetime of a value
 * that stays in its block is a range of the list.
 *
 * A transfer between two stages is not in the list.  Those with the same maker and the same first reader form a queue:
 * the maker may be ahead of the reader by as many micro-batches as there are copies (copies.c). */
#include "schedule/schedule.h"

/* ---- blocks ---- */

static void add_block(Graph *g, BlockKind kind, int stage, const char *name)
{
	Plan *p = g->model->plan;
	arena_push(g->arena, p->block, p->nblock, ((Block){ .kind = kind, .stage = stage,
		.name = stage < 0 ? name_of(name) : name_fmt("%s%d", name, stage) }));
}

void tasks_blocks(Graph *g)
{
	Plan *p = g->model->plan;
	const Stages *s = p->stages;
	p->block = NULL;
	p->nblock = 0;
	add_block(g, BLOCK_BEGIN, -1, "begin");
	if (!s)
		add_block(g, BLOCK_BODY, -1, "body");
	else
		add_block(g, BLOCK_LOAD, -1, "load");
	for (int i = 0; s && i < s->pipe.nstage; i++)
		add_block(g, BLOCK_F, i, "F");
	for (int i = s ? s->pipe.nstage : 0; i-- > 0;) {
		add_block(g, kinds_split(s) ? BLOCK_B : BLOCK_BW, i, kinds_split(s) ? "B" : "BW");
		if (kinds_split(s))
			add_block(g, BLOCK_W, i, "W");
		add_block(g, BLOCK_REDUCE, i, "reduce");
	}
	add_block(g, BLOCK_UPDATE, -1, "update");
}

static int find_block(const Plan *p, BlockKind kind, int stage)
{
	for (int i = 0; i < p->nblock; i++)
		if (p->block[i].kind == kind && p->block[i].stage == stage)
			return i;
	return -1;
}

int tasks_block(const Graph *g, const Node *n)
{
	bool staged = n->block == BLOCK_REDUCE || (kinds_in_body(n) && n->block != BLOCK_BODY);
	int b = find_block(g->model->plan, n->block, staged ? n->stage : -1);
	if (b < 0)
		die("%s of stage %d has no block", n->op, n->stage);
	return b;
}

/* The ranges of the blocks in the list, which has its actions in their order. */
static void find_ranges(Plan *p)
{
	const Role *r = &p->role[0];
	for (int b = 0, i = 0; b < p->nblock; b++) {
		p->block[b].from = i;
		while (i < r->nstep && r->step[i].block == b)
			i++;
		p->block[b].to = i;
	}
}

/* ---- queues ---- */

void tasks_queue(Graph *g, Node *n, Slot *take, Slot *make)
{
	Plan *p = g->model->plan;
	Queue q = { .name = n->in[0]->name, .channel = -1 };
	arena_push(g->arena, q.take, q.n, take);
	q.n = 0;
	arena_push(g->arena, q.make, q.n, make);
	take->window = true;
	arena_push(g->arena, p->queue, p->nqueue, q);
}

/* Joins transfers with the same maker and the same first reader, which then travel together. */
static int join_queues(Graph *g)
{
	Plan *p = g->model->plan;
	const Touch *of = copies_touched(p, NULL, g->scratch);
	int n = 0;
	for (int i = 0; i < p->nqueue; i++) {
		Queue q = p->queue[i];
		Touch x = of[copies_memory(q.take[0])->v->id], y = of[copies_memory(q.make[0])->v->id];
		int k = 0;
		if (x.made < 0)
			die("nothing makes %s, which is sent", q.name);
		if (!y.n)
			continue;               /* nobody reads it */
		q.from = x.made;
		q.to = y.block[0];
		q.last = y.block[y.n - 1];
		while (k < n && (p->queue[k].from != q.from || p->queue[k].to != q.to ||
			p->queue[k].take[0]->v->place->mesh != q.take[0]->v->place->mesh ||
			p->queue[k].make[0]->v->place->mesh != q.make[0]->v->place->mesh))
			k++;
		if (k == n) {
			q.name = name_fmt("%s > stage %d", q.name, p->block[q.to].stage);
			q.channel = channel_new(g, q.take[0], q.make[0]);
			p->queue[n++] = q;
			continue;
		}
		int same = p->queue[k].n;
		arena_push(g->arena, p->queue[k].take, same, q.take[0]);
		arena_push(g->arena, p->queue[k].make, p->queue[k].n, q.make[0]);
		p->queue[k].last = q.last > p->queue[k].last ? q.last : p->queue[k].last;
	}
	p->nqueue = n;
	return 0;
}

/* ---- tasks ---- */

static void add_task(Graph *g, Role *r, int block, int micro)
{
	if (block >= 0)
		arena_push(g->arena, r->task, r->ntask, ((Task){ block, micro }));
}

static int full_block(const Plan *p, BlockKind kind, int stage)
{
	int b = find_block(p, kind, stage);
	return b >= 0 && p->block[b].from < p->block[b].to ? b : -1;
}

/* Before its first block for a micro-batch, a rank loads it. */
static void stage_tasks(Graph *g, Role *r, const PipeTask *list, int n)
{
	const Plan *p = g->model->plan;
	bool *loaded = arena_array(g->scratch, bool, p->stages->pipe.micros + 1);
	for (int i = 0; i < n; i++) {
		PipeTask t = list[i];
		if (t.kind == BLOCK_REDUCE) {
			add_task(g, r, full_block(p, BLOCK_REDUCE, t.stage), -1);
			continue;
		}
		if (!loaded[t.micro])
			add_task(g, r, full_block(p, BLOCK_LOAD, -1), t.micro);
		loaded[t.micro] = true;
		if (t.kind == BLOCK_BW && find_block(p, BLOCK_BW, t.stage) < 0) {
			add_task(g, r, full_block(p, BLOCK_B, t.stage), t.micro);
			add_task(g, r, full_block(p, BLOCK_W, t.stage), t.micro);
		} else {
			add_task(g, r, full_block(p, t.kind, t.stage), t.micro);
		}
	}
}

bool tasks_repeat(const Plan *p)
{
	return p->stages && !p->training;
}

static const char *action_name(const Action *x)
{
	return x->nmake && x->make[0] ? x->make[0]->v->name : x->ntake && x->take[0] ? x->take[0]->v->name : "report";
}

/* A rank loads a batch before the first of its stages, which is not behind. */
static void forward_tasks(Graph *g, Role *r, const PipeTask *list, int n)
{
	const Plan *p = g->model->plan;
	int first = 0, update = full_block(p, BLOCK_UPDATE, -1);
	if (update >= 0)
		die("%s of a forward pass is behind all stages", action_name(&p->role[0].step[p->block[update].from]));
	for (int i = 1; i < n; i++)
		first = list[i].stage < list[first].stage ? i : first;
	for (int i = 0; i < n; i++) {
		if (i == first)
			add_task(g, r, full_block(p, BLOCK_LOAD, -1), list[i].micro);
		add_task(g, r, full_block(p, BLOCK_F, list[i].stage), list[i].micro);
	}
}

static void role_tasks(Graph *g, Role *r, const PipeOrder *o)
{
	const Plan *p = g->model->plan;
	bool trains = p->training && !g->model->main;
	int64_t micros = p->train.microbatches > 1 && trains ? p->train.microbatches : 1;
	int k = p->stages ? times_rank(p, r) : 0, once = trains || p->stages ? -1 : 0;
	r->task = NULL;
	r->ntask = 0;
	add_task(g, r, full_block(p, BLOCK_BEGIN, -1), once);
	if (tasks_repeat(p)) {
		forward_tasks(g, r, o->task[k], o->ntask[k]);
		return;
	}
	if (p->stages)
		stage_tasks(g, r, o->task[k], o->ntask[k]);
	for (int64_t m = 0; m < micros && !p->stages; m++)
		add_task(g, r, full_block(p, BLOCK_BODY, -1), (int)m);
	add_task(g, r, full_block(p, BLOCK_UPDATE, -1), once);
}

/* So many batches that each copy of a queue is used again, and stages that are behind, too. */
int tasks_micros(const Plan *p)
{
	int lag = 0, copies = 1;
	if (!tasks_repeat(p))
		return p->stages ? p->stages->pipe.micros : 1;
	for (int i = 0; i < p->nrole; i++)
		for (int k = 0; k < p->role[i].ntask; k++)
			lag = p->role[i].task[k].micro > lag ? p->role[i].task[k].micro : lag;
	for (int i = 0; i < p->nqueue; i++)
		copies = p->queue[i].in + p->queue[i].out > copies ? p->queue[i].in + p->queue[i].out : copies;
	return lag + copies + 2;
}

Role tasks_played(const Plan *p, const Role *r, Arena *a)
{
	Role played = *r;
	int n = tasks_micros(p), lag = 0;
	if (!tasks_repeat(p))
		return played;
	played.task = NULL;
	played.ntask = 0;
	for (int i = 0; i < r->ntask; i++)
		lag = r->task[i].micro > lag ? r->task[i].micro : lag;
	for (int t = 0; t < n + lag; t++)
		for (int i = 0; i < r->ntask; i++) {
			Task x = r->task[i];
			int micro = x.micro < 0 ? -1 : t - x.micro;
			if (x.micro < 0 ? !t : micro >= 0 && micro < n)
				arena_push(a, played.task, played.ntask, ((Task){ x.block, micro }));
		}
	return played;
}

int tasks_find(Graph *g)
{
	Plan *p = g->model->plan;
	PipeOrder o = { 0 };
	find_ranges(p);
	if (p->stages) {
		if (join_queues(g))
			return -1;
		if (!tasks_repeat(p))
			times_find(g);
		if (tasks_repeat(p))
			orders_forward(p->stages, g->arena, &o);
		else if (orders_find(g, &o))
			return -1;
	}
	for (int i = 0; i < p->nrole; i++)
		role_tasks(g, &p->role[i], &o);
	if (p->stages)
		copies_find(g);
	return 0;
}
