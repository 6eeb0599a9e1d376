/* The list of actions in blocks, and what each role does in a step: a list of tasks, each a block for a micro-batch.
 *
 * Without stages there are at most three blocks: begin, body, update.  The body runs once per micro-batch.  In a
 * pipeline the body is taken apart:
 *
 *   load    inputs, and what all ranks compute from them
 *   F<s>    stage s, what depends on no gradient
 *   B<s>    what leads to a gradient that leaves the stage; of a stage that none leaves, to gradients of activations
 *   W<s>    the rest, gradients of weights; schedules that do not take B and W apart have one block BW<s>
 *
 * Kinds are found by the flow of data, after boxing: a node is late if it belongs to the backward pass, or reads what a
 * late node makes.  A loss that one kernel computes together with its gradient is late, too.
 *
 * The list has the blocks in the order load, F0, F1, .., B1, W1, B0, W0: an order that one micro-batch could be
 * computed
 * in.  So the lifetime of a value that stays in its block is a range of the list.  A value that is read by other blocks
 * of its rank is in as many copies as there are micro-batches between its first and its last block, in the order of the
 * schedule, and is live throughout the body.
 *
 * A transfer between two stages is not in the list.  Those with the same maker and the same first reader form a queue:
 * the maker may be ahead of the reader by as many micro-batches as there are copies.  Both ends of a queue are live
 * always, because a neighbour may be in another step. */
#include "schedule/schedule.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- the kind of block of every node ---- */

static bool in_body(const Node *n)
{
	return n->block != BLOCK_BEGIN && n->block != BLOCK_UPDATE;
}

/* The coordinate of a placement along the axis of the pipeline; -1: several. */
static int rank_of(const Plan *p, const Place *at)
{
	const Mesh *m = p->main;
	int inner = 1;
	if (at->mesh->nrank == m->nrank && m->dim[p->stages->axis] > 1)
		return -1;
	for (int k = p->stages->axis + 1; k < m->ndim; k++)
		inner *= m->dim[k];
	return mesh_index(m, mesh_rank(at->mesh, 0)) / inner % m->dim[p->stages->axis];
}

/* The stage of a node that has none of its own: that of its rank, or of its operands if the rank has several. */
static int stage_of(const Plan *p, const Node *n, bool late)
{
	const Pipeline *pipe = &p->stages->pipe;
	int rank = rank_of(p, n->place), only = -1, found = -1;
	for (int s = 0; s < pipe->nstage; s++)
		if (pipe->stage[s].rank == rank)
			only = only < 0 ? s : -2;
	if (only >= 0)
		return only;
	for (int k = 0; k < n->nin; k++) {
		const Node *d = n->in[k] ? n->in[k]->def : NULL;
		if (!d || d->stage < 0 || !in_body(d) || pipe->stage[d->stage].rank != rank)
			continue;
		if (found < 0 || (late ? d->stage < found : d->stage > found))
			found = d->stage;
	}
	for (int s = 0; s < pipe->nstage && found < 0; s++)
		if (pipe->stage[s].rank == rank)
			found = s;
	return found;
}

static bool backward(const Node *n)
{
	return annot_find(n->annot, "part") || annot_find(n->annot, "again");
}

/* By value: a later stage reads it, or what is computed from it in the forward pass. */
static bool *find_passed_on(Graph *g)
{
	bool *on = arena_array(g->scratch, bool, g->nvalue + 1);
	for (int i = g->nnode; i-- > 0;) {
		const Node *n = g->node[i];
		bool any = kernel_transfer(n) && n->in[0]->place->mesh != n->out[0]->place->mesh;
		for (int k = 0; k < n->nout; k++)
			any |= n->out[k] && on[n->out[k]->id];
		for (int k = 0; k < n->nin && !backward(n) && !microbatch_updates(n); k++) {
			const Value *v = n->in[k];
			if (v && v->graph == g && v->def)
				on[v->id] |= any || (v->def->stage >= 0 && n->stage > v->def->stage);
		}
	}
	return on;
}

/* A loss and its gradient by one kernel; not if a later stage reads the loss, which would wait for its own gradient. */
static void mark_pairs(Graph *g, bool *late)
{
	const bool *on = find_passed_on(g);
	for (int i = 0; i < g->nnode; i++) {
		const Node *n = g->node[i];
		for (int k = 0; k < n->nin && backward(n); k++) {
			const Node *d = n->in[k] ? n->in[k]->def : NULL;
			bool pair = d && kernel_pair(d, n);
			for (int j = 0; pair && j < d->nout; j++)
				pair = !d->out[j] || !on[d->out[j]->id];
			for (int j = 0; pair && j < d->nout; j++)
				if (d->out[j])
					late[d->out[j]->id] = true;
		}
	}
}

/* By value: a late node makes it. */
static void mark_late(Graph *g, bool *late)
{
	const Plan *p = g->model->plan;
	mark_pairs(g, late);
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		bool is = backward(n), staged = false, after = false, all = rank_of(p, n->place) < 0;
		for (int k = 0; k < n->nout; k++)
			is |= n->out[k] && late[n->out[k]->id];
		for (int k = 0; k < n->nin; k++) {
			const Value *v = n->in[k];
			after |= v && v->def && v->graph == g && v->def->block == BLOCK_UPDATE;
			if (!v || !v->def || v->graph != g || !in_body(v->def))
				continue;
			is |= late[v->id];
			staged |= v->def->block != BLOCK_LOAD;
		}
		if (microbatch_begins(n))
			n->block = BLOCK_BEGIN;
		else if (microbatch_updates(n) || after || (all && staged))
			n->block = BLOCK_UPDATE;
		else
			n->block = all ? BLOCK_LOAD : is ? BLOCK_BW : BLOCK_F;
		if (all || !in_body(n))
			n->stage = -1;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				late[n->out[k]->id] = is && in_body(n);
	}
}

bool tasks_between(const Node *n)
{
	const Plan *p = n->graph->model->plan;
	return p->stages && kernel_transfer(n) && in_body(n) && n->in[0]->place->mesh != n->out[0]->place->mesh &&
		rank_of(p, n->in[0]->place) >= 0 && rank_of(p, n->out[0]->place) >= 0;
}

/* Late nodes become B or W. */
static void split_late(Graph *g)
{
	const Pipeline *pipe = &g->model->plan->stages->pipe;
	bool *leads = arena_array(g->scratch, bool, g->nvalue + 1), *leaves = arena_array(g->scratch, bool,
		pipe->nstage + 1);
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->block == BLOCK_BW && tasks_between(g->node[i]) && g->node[i]->in[0]->def)
			leaves[g->node[i]->in[0]->def->stage] = true;
	for (int i = g->nnode; i-- > 0;) {
		Node *n = g->node[i];
		if (n->block != BLOCK_BW)
			continue;
		const Annot *a = annot_find(n->annot, "part");
		bool on = tasks_between(n) || (!leaves[n->stage] && a && !strcmp(a->arg->s, "B"));
		for (int k = 0; k < n->nout; k++)
			on |= n->out[k] && leads[n->out[k]->id];
		n->block = on ? BLOCK_B : BLOCK_W;
		for (int k = 0; k < n->nin && on; k++)
			if (n->in[k] && n->in[k]->graph == g)
				leads[n->in[k]->id] = true;
	}
}

static bool splits(const Stages *s)
{
	if (s->schedule)
		return s->schedule->split;
	for (int r = 0; s->csv && r < s->csv->nrank; r++)
		for (int i = 0; i < s->csv->order.ntask[r]; i++)
			if (s->csv->order.task[r][i].kind == BLOCK_W)
				return true;
	return !s->csv;
}

void tasks_mark(Graph *g)
{
	const Plan *p = g->model->plan;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		n->block = microbatch_begins(n) ? BLOCK_BEGIN : microbatch_updates(n) ? BLOCK_UPDATE : BLOCK_BODY;
	}
	if (!p->stages)
		return;
	for (int i = 0; i < g->nnode; i++) {
		Node *n = g->node[i];
		int rank = rank_of(p, n->place);
		if (rank < 0 || !in_body(n))
			n->stage = -1;
		else if (n->stage < 0 || p->stages->pipe.stage[n->stage].rank != rank)
			n->stage = stage_of(p, n, backward(n));
	}
	mark_late(g, arena_array(g->scratch, bool, g->nvalue + 1));
	if (splits(p->stages))
		split_late(g);
}

bool tasks_together(const Node *a, const Node *b)
{
	return a->block == b->block && (!in_body(a) || a->block == BLOCK_BODY || a->stage == b->stage);
}

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
		add_block(g, splits(s) ? BLOCK_B : BLOCK_BW, i, splits(s) ? "B" : "BW");
		if (splits(s))
			add_block(g, BLOCK_W, i, "W");
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
	int b = find_block(g->model->plan, n->block, in_body(n) && n->block != BLOCK_BODY ? n->stage : -1);
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

static const Slot *memory(const Slot *s)
{
	while (s->store != s)
		s = s->store;
	return s;
}

static void touch(Arena *a, TaskTouch *t, int block, bool makes)
{
	t->made = makes && t->made < 0 ? block : t->made;
	if (!t->n || t->block[t->n - 1] != block)
		arena_push(a, t->block, t->n, block);
}

bool tasks_touches(const TaskTouch *t, int block)
{
	for (int i = 0; i < t->n; i++)
		if (t->block[i] == block)
			return true;
	return false;
}

bool *tasks_runs(const Plan *p, const Role *r, Arena *a)
{
	bool *runs = arena_array(a, bool, p->nblock + 1);
	for (int i = 0; i < r->ntask; i++)
		runs[r->task[i].block] = true;
	return runs;
}

TaskTouch *tasks_touched(const Plan *p, const Role *r, Arena *a)
{
	TaskTouch *of = arena_array(a, TaskTouch, p->nslot + 1);
	const bool *runs = r ? tasks_runs(p, r, a) : NULL;
	for (int i = 0; i < p->nslot; i++)
		of[i].made = -1;
	for (int i = 0; i < p->role[0].nstep; i++) {
		const Action *x = &p->role[0].step[i];
		if (runs && !runs[x->block])
			continue;
		for (int k = 0; k < x->ntake; k++)
			if (x->take[k])
				touch(a, &of[memory(x->take[k])->v->id], x->block, false);
		for (int k = 0; k < x->nmake; k++)
			if (x->make[k])
				touch(a, &of[memory(x->make[k])->v->id], x->block, true);
	}
	return of;
}

/* Joins transfers with the same maker and the same first reader, which then travel together. */
static int join_queues(Graph *g)
{
	Plan *p = g->model->plan;
	const TaskTouch *of = tasks_touched(p, NULL, g->scratch);
	int n = 0;
	for (int i = 0; i < p->nqueue; i++) {
		Queue q = p->queue[i];
		TaskTouch x = of[memory(q.take[0])->v->id], y = of[memory(q.make[0])->v->id];
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

/* ---- seconds and orders ---- */

double tasks_seconds(const Plan *p, const Block *b)
{
	double sum = 0;
	for (int i = b->from; i < b->to; i++)
		sum += overlap_seconds(p, &p->role[0].step[i]);
	return sum;
}

/* The times of the stages, from the actions of their blocks, and the bytes and seconds of the hops between them. */
static void time_stages(Graph *g)
{
	Plan *p = g->model->plan;
	Pipeline *pipe = &p->stages->pipe;
	for (int i = 0; i < p->nblock; i++) {
		const Block *b = &p->block[i];
		PipeStage *s = b->stage < 0 ? NULL : &pipe->stage[b->stage];
		if (s && b->kind == BLOCK_F)
			s->f = tasks_seconds(p, b);
		else if (s && b->kind == BLOCK_W)
			s->w = tasks_seconds(p, b);
		else if (s)
			s->b = tasks_seconds(p, b);
	}
	pipe->hop = NULL;
	pipe->nhop = 0;
	for (int s = 0; s + 1 < pipe->nstage; s++) {
		PipeHop h = { .from = s, .to = s + 1 };
		for (int i = 0; i < p->nqueue; i++) {
			const Queue *q = &p->queue[i];
			if (p->block[q->from].stage != s || p->block[q->to].stage != s + 1)
				continue;
			for (int k = 0; k < q->n; k++) {
				h.latency += transfer_seconds(slot_form(p, q->take[k]), slot_form(p, q->make[k]),
					dtype_bits(q->take[k]->v->type->elem) / 8);
				h.bytes += q->make[k]->bytes;
			}
		}
		arena_push(g->arena, pipe->hop, pipe->nhop, h);
	}
}

/* ---- lanes as text ---- */

static const struct { char letter; BlockKind kind; } letters[] = {
	{ 'F', BLOCK_F }, { 'I', BLOCK_B }, { 'W', BLOCK_W }, { 'B', BLOCK_BW },
};
enum { LETTERS = sizeof letters / sizeof *letters };

/* Writes the order as @lane, so that a dump contains it. */
static void write_lanes(Model *m, const PipeOrder *o, int nrank)
{
	for (int r = 0; r < nrank; r++) {
		Annot *a = arena_new(&m->arena, Annot);
		const char *text = "";
		for (int i = 0; i < o->ntask[r]; i++) {
			const PipeTask *t = &o->task[r][i];
			int k = 0;
			while (letters[k].kind != t->kind)
				k++;
			text = arena_printf(&m->scratch, "%s%s%d%c%d", text, i ? " " : "", t->stage, letters[k].letter,
				t->micro);
		}
		a->name = name_of("lane");
		arena_push(&m->arena, a->arg, a->narg, ((Arg){ .kind = ARG_INT, .key = name_of("rank"), .i = r,
			.f = r }));
		arena_push(&m->arena, a->arg, a->narg, ((Arg){ .kind = ARG_STRING, .s = name_of(text) }));
		if (annot_check(a, ON_MODEL))
			die("@lane is refused");
		annot_add(&m->annot, a);
	}
}

/* One task, as "3F1"; false: it is none. */
static bool read_task(const char **at, PipeTask *t)
{
	char *end;
	long stage = strtol(*at, &end, 10);
	int k = 0;
	if (end == *at || stage < 0 || stage > INT_MAX)
		return false;
	while (k < LETTERS && letters[k].letter != *end)
		k++;
	*at = end + 1;
	long micro = k < LETTERS ? strtol(*at, &end, 10) : -1;
	if (k == LETTERS || end == *at || micro < 0 || micro > INT_MAX || (*end && *end != ' '))
		return false;
	*t = (PipeTask){ letters[k].kind, (int)stage, (int)micro };
	*at = end + strspn(end, " ");
	return true;
}

/* The order that @lane says; 1: there is none, -1 after explaining. */
static int read_lanes(Graph *g, PipeOrder *o)
{
	const Pipeline *pipe = &g->model->plan->stages->pipe;
	int lanes = 0;
	o->task = arena_array(g->arena, PipeTask *, pipe->nrank + 1);
	o->ntask = arena_array(g->arena, int, pipe->nrank + 1);
	for (const Annot *a = g->model->annot; a; a = a->next) {
		if (strcmp(a->name, "lane"))
			continue;
		int64_t r = arg_find(a->arg, a->narg, "rank")->i;
		const Arg *tasks = arg_find(a->arg, a->narg, "tasks");
		if (r >= pipe->nrank || o->ntask[r]) {
			err_at(a->loc, r < pipe->nrank ? "rank %lld has two lanes" : "the pipeline has no rank %lld",
				(long long)r);
			return -1;
		}
		for (const char *at = tasks->s; *at;) {
			PipeTask t;
			const char *from = at;
			if (!read_task(&at, &t)) {
				err_at(tasks->loc,
					"%.20s is no task: write stage, kind (F, I, W or B) and micro-batch, as 0F3",
					from);
				return -1;
			}
			arena_push(g->arena, o->task[r], o->ntask[r], t);
		}
		lanes++;
	}
	return lanes ? 0 : 1;
}

static int make_order(Graph *g, PipeOrder *o)
{
	Stages *s = g->model->plan->stages;
	Loc loc = annot_find(g->model->annot, "pipeline")->loc;
	if (s->csv) {
		*o = s->csv->order;
		return 0;
	}
	if (!s->schedule) {
		SearchResult best;
		if (search_run(&s->pipe, 0, g->arena, &best)) {
			err_at(loc, "no order of micro-batches fits the memory");
			return -1;
		}
		*o = best.order;
		return 0;
	}
	const char *why = s->schedule->order(&s->pipe, g->arena, o);
	if (why)
		err_at(loc, "schedule %s cannot run this pipeline: %s", s->schedule->name, why);
	return why ? -1 : 0;
}

static int write_csv(Graph *g, const PipeOrder *o)
{
	const Stages *s = g->model->plan->stages;
	PipeCsv csv;
	FILE *f = fopen(opt.write_schedule, "w");
	if (s->csv)
		csv = *s->csv;
	else
		csv_of(&s->pipe, o, g->scratch, &csv);
	if (f)
		csv_write(f, &csv);
	if (f && !fclose(f))
		return 0;
	err_at((Loc){ 0 }, "cannot write %s: %s", opt.write_schedule, strerror(errno));
	return -1;
}

static int find_order(Graph *g, PipeOrder *o)
{
	const Stages *s = g->model->plan->stages;
	int code = read_lanes(g, o);
	if (code == 1) {
		code = make_order(g, o);
		if (!code)
			write_lanes(g->model, o, s->pipe.nrank);
	}
	const char *why = code ? NULL : check_order(&s->pipe, o, g->scratch);
	if (!code && !why && opt.write_schedule && !opt.change.made && write_csv(g, o))
		return -1;
	if (why)
		check_explain(annot_find(g->model->annot, "pipeline")->loc, why);
	return code || why ? -1 : 0;
}

/* Evaluation and inference: forward only. */
static void forward_order(const Stages *s, Arena *a, PipeOrder *o)
{
	o->task = arena_array(a, PipeTask *, s->pipe.nrank);
	o->ntask = arena_array(a, int, s->pipe.nrank);
	for (int i = 0; i < s->pipe.nstage; i++) {
		int r = s->pipe.stage[i].rank;
		arena_push(a, o->task[r], o->ntask[r], ((PipeTask){ BLOCK_F, i, 0 }));
	}
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

static void role_tasks(Graph *g, Role *r, const PipeOrder *o)
{
	const Plan *p = g->model->plan;
	int64_t micros = p->train.microbatches > 1 && !g->model->main ? p->train.microbatches : 1;
	r->task = NULL;
	r->ntask = 0;
	add_task(g, r, full_block(p, BLOCK_BEGIN, -1), -1);
	if (p->stages) {
		Place at = { .mesh = p->main };
		Mesh one = *p->main;
		one.nrank = 1;
		one.rank = NULL;
		one.first = r->rank[0];
		at.mesh = &one;
		int k = rank_of(p, &at);
		stage_tasks(g, r, o->task[k], o->ntask[k]);
	}
	for (int64_t m = 0; m < micros && !p->stages; m++)
		add_task(g, r, full_block(p, BLOCK_BODY, -1), (int)m);
	add_task(g, r, full_block(p, BLOCK_UPDATE, -1), -1);
}

/* ---- copies ---- */

static bool on(const Slot *s, const Role *r)
{
	return mesh_index(s->v->place->mesh, r->rank[0]) >= 0;
}

/* The copies that a value needs on a rank: the span of the micro-batches for which some of the blocks that touch it
 * have
 * run, and others have not.  *others: blocks run meanwhile that are not between these in the list.  left: by
 * micro-batch, zero before and after. */
static int in_flight(const Role *r, const TaskTouch *t, int *left, bool *others)
{
	int most = 1, low = 0, high = 0;
	for (int i = 0; i < r->ntask; i++) {
		const Task *x = &r->task[i];
		bool touches = x->micro >= 0 && tasks_touches(t, x->block);
		if (touches && !left[x->micro]) {
			left[x->micro] = t->n + 1;
			low = high == low || x->micro < low ? x->micro : low;
			high = x->micro + 1 > high ? x->micro + 1 : high;
		}
		*others |= high > low && (x->block < t->block[0] || x->block > t->block[t->n - 1]);
		most = high - low > most ? high - low : most;
		if (touches && --left[x->micro] == 1)
			left[x->micro] = 0;
		while (low < high && !left[low])
			low++;
		while (high > low && !left[high - 1])
			high--;
	}
	return most;
}

static void need(Slot *s, int copies, SlotLife life)
{
	Slot *at = (Slot *)memory(s);
	at->copies = copies > at->copies ? copies : at->copies;
	at->life = life > at->life ? life : at->life;
}

static bool of_body(const Plan *p, int b)
{
	return b >= 0 && p->block[b].kind != BLOCK_BEGIN && p->block[b].kind != BLOCK_UPDATE;
}

static void slot_copies(const Plan *p, const Role *r, Slot *s, const TaskTouch *t, int *left)
{
	bool others = false;
	if (t->n < 2 || !of_body(p, t->block[0]))
		return;
	if (!of_body(p, t->block[t->n - 1])) {
		need(s, 1, LIFE_BODY);          /* the last micro-batch leaves it to the update */
		return;
	}
	int n = in_flight(r, t, left, &others);
	need(s, n, n > 1 || others ? LIFE_BODY : LIFE_HERE);
}

/* Whether a role runs two blocks for its micro-batches in the same order. */
static bool same_order(const Role *r, int x, int y)
{
	for (int i = 0, k = 0; i < r->ntask; i++) {
		if (r->task[i].block != x)
			continue;
		while (k < r->ntask && r->task[k].block != y)
			k++;
		if (k == r->ntask || r->task[k++].micro != r->task[i].micro)
			return false;
	}
	return true;
}

/* The values of a queue are given back together.  If they are given back in another order than they arrive (a schedule
 * that goes backwards through its micro-batches), every micro-batch has a copy of its own; then room is never waited
 * for
 * in a step, and a rank receives nothing for a step that it has not begun, so they may be given back by the first
 * reader. */
static void queue_copies(const Plan *p, const Role *r, Queue *q, int *left)
{
	int micros = p->stages->pipe.micros, more = micros > 1;
	bool others = false;
	TaskTouch t = { .block = (int[]){ q->to, q->last }, .n = 1 + (q->last != q->to) };
	if (!on(q->make[0], r)) {
		for (int k = 0; k < q->n && on(q->take[0], r); k++)
			need(q->take[k], 1 + more, LIFE_ALWAYS);
		return;
	}
	bool ordered = same_order(r, q->to, q->last);
	int copies = ordered ? in_flight(r, &t, left, &others) + more : micros;
	q->last = ordered ? q->last : q->to;
	for (int k = 0; k < q->n; k++)
		need(q->make[k], copies, LIFE_ALWAYS);
}

/* Copies as @copies, so that a dump contains them; what a dump says wins. */
static void note_copies(Graph *g)
{
	const Plan *p = g->model->plan;
	for (int i = 0; i < p->nslot; i++) {
		Slot *s = p->slot[i];
		if (!s || s->store != s)
			continue;
		const Annot *a = annot_find(s->v->annot, "copies");
		if (a) {
			s->copies = (int)a->arg->i;
		} else if (s->copies > 1) {
			Annot *new = arena_new(g->arena, Annot);
			new->name = name_of("copies");
			arena_push(g->arena, new->arg, new->narg, ((Arg){ .kind = ARG_INT, .i = s->copies,
				.f = s->copies }));
			if (annot_check(new, ON_VALUE))
				die("@copies is refused");
			annot_add(&s->v->annot, new);
		}
	}
	for (int i = 0; i < p->nslot; i++)      /* of values that share memory */
		if (p->slot[i])
			p->slot[i]->copies = memory(p->slot[i])->copies;
}

static void find_copies(Graph *g)
{
	Plan *p = g->model->plan;
	int *left = arena_array(g->scratch, int, p->stages->pipe.micros + 1);
	for (int k = 0; k < p->nrole; k++) {
		const Role *r = &p->role[k];
		const TaskTouch *of = tasks_touched(p, r, g->scratch);
		for (int i = 0; i < p->nslot; i++) {
			Slot *s = p->slot[i];
			if (s && s->store == s && !slot_kept(s) && on(s, r))
				slot_copies(p, r, s, &of[i], left);
		}
		for (int i = 0; i < p->nqueue; i++)
			queue_copies(p, r, &p->queue[i], left);
	}
	note_copies(g);
	for (int i = 0; i < p->nqueue; i++) {
		Queue *q = &p->queue[i];
		q->out = q->in = INT_MAX;
		for (int k = 0; k < q->n; k++) {
			q->out = memory(q->take[k])->copies < q->out ? memory(q->take[k])->copies : q->out;
			q->in = memory(q->make[k])->copies < q->in ? memory(q->make[k])->copies : q->in;
		}
	}
}

int tasks_find(Graph *g)
{
	Plan *p = g->model->plan;
	PipeOrder o = { 0 };
	find_ranges(p);
	if (p->stages) {
		if (join_queues(g))
			return -1;
		if (p->training && !g->model->main)
			time_stages(g);
		if (!p->training || g->model->main)
			forward_order(p->stages, g->arena, &o);
		else if (find_order(g, &o))
			return -1;
	}
	for (int i = 0; i < p->nrole; i++)
		role_tasks(g, &p->role[i], &o);
	if (p->stages)
		find_copies(g);
	return 0;
}
