/* Every refusal of the checker, by a net or an order with one mistake, and its exact message (refusals.want).  The two
 * crossing orders of pytorch#172668 are among the files of tests/lanes/csv.sh. */
#include "lanes/lanes.h"

static Arena a;
static Pipeline p;
static PipeOrder o;
static LaneNet n;

/* Two ranks, 1F1B, three micro-batches: rank 0 runs F0 F0 BW0 F0 BW0 BW0. */
static void fresh(void)
{
	p = (Pipeline){ .nrank = 2, .nstage = 2, .micros = 3, .nhop = 1 };
	p.stage = arena_array(&a, PipeStage, 2);
	p.hop = arena_array(&a, PipeHop, 1);
	for (int s = 0; s < 2; s++)
		p.stage[s] = (PipeStage){ .rank = s, .f = 1, .b = 1, .w = 1, .kept = 100, .kept_w = 50 };
	p.hop[0] = (PipeHop){ .from = 0, .to = 1, .bytes = 64 };
	schedules_find("1f1b")->order(&p, &a, &o);
	net_of(&p, &o, 0, &a, &n);
}

static void show(const char *what, const char *why)
{
	printf("%s\n%s\n\n", what, why ? why : "NOT REFUSED");
	fresh();
}

static LaneRegister *reg(int role, const char *name)
{
	for (int i = 0; i < n.role[role].nreg; i++)
		if (name_of(n.role[role].reg[i].name) == name_of(name))
			return &n.role[role].reg[i];
	return NULL;
}

static LaneTask *task(int role, int lane, int i) { return &n.role[role].lane[lane].task[i]; }

static void swap(LaneTask *x, LaneTask *y)
{
	LaneTask old = *x;
	*x = *y;
	*y = old;
}

/* Adds a register, a block on a lane of its own, a task at the end of a lane. */
static int add_reg(int role, const char *name, int64_t bytes, int64_t offset)
{
	LaneRegister r = { .name = name, .copies = 1, .bytes = bytes, .offset = offset };
	arena_push(&a, n.role[role].reg, n.role[role].nreg, r);
	return n.role[role].nreg - 1;
}

static LaneBlock *add_block(int role, const char *name, LaneKind kind, int times)
{
	LaneRole *r = &n.role[role];
	Lane l = { .kind = kind };
	for (int i = 0; i < times; i++)
		arena_push(&a, l.task, l.ntask, ((LaneTask){ DO_BLOCK, r->nblock, times == 1 ? -1 : i }));
	arena_push(&a, r->lane, r->nlane, l);
	arena_push(&a, r->block, r->nblock, ((LaneBlock){ .name = name, .stage = -1 }));
	return &r->block[r->nblock - 1];
}

static void add_task(int role, int lane, LaneTask t)
{
	Lane *l = &n.role[role].lane[lane], more = { .kind = l->kind };
	for (int i = 0; i < l->ntask; i++)
		arena_push(&a, more.task, more.ntask, l->task[i]);
	arena_push(&a, more.task, more.ntask, t);
	*l = more;
}

/* The same with all F first, and the last micro-batch first on the way back. */
static void descend(void)
{
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < 6; i++)
			o.task[r][i] = (PipeTask){ i < 3 ? BLOCK_F : BLOCK_BW, r, i < 3 ? i : 5 - i };
	net_of(&p, &o, 0, &a, &n);
}

static void orders(void)
{
	show("nothing is wrong", check_order(&p, &o, &a) ? "an order" : check_net(&n, &a) ? "a net" : "");
	o.task[0][0].micro = 7;
	show("a micro-batch that does not exist", check_order(&p, &o, &a));
	o.task[0][0].stage = 1;
	show("a stage of another rank", check_order(&p, &o, &a));
	o.task[0][1].micro = 0;
	show("twice", check_order(&p, &o, &a));
	o.task[1][0] = (PipeTask){ BLOCK_BW, 1, 0 };
	show("backward first", check_order(&p, &o, &a));
	o.task[1][1] = (PipeTask){ BLOCK_B, 1, 0 };
	show("W is missing", check_order(&p, &o, &a));
	o.ntask[0]--;
	show("the last is missing", check_order(&p, &o, &a));
}

static void lists(void)
{
	LaneBlock *f = &n.role[0].block[0];
	arena_push(&a, n.role[0].lane, n.role[0].nlane, n.role[0].lane[0]);
	show("a block on two lanes", check_net(&n, &a));
	arena_push(&a, n.role[1].lane, n.role[1].nlane, n.role[0].lane[1]);
	show("an end of a channel on the wrong role", check_net(&n, &a));
	f = &n.role[0].block[0];
	arena_push(&a, f->make, f->nmake, (int)(reg(0, "g1>0") - n.role[0].reg));
	show("two makers", check_net(&n, &a));
	f = &n.role[0].block[1];
	f->nwait = 0;
	show("given back, never read", check_net(&n, &a));
	f = add_block(0, "save", LANE_SAVE, 2);
	f->wait = f->give = (int[]){ (int)(reg(0, "kept0") - n.role[0].reg) };
	f->nwait = f->ngive = 1;
	show("made more often than read", check_net(&n, &a));
	task(0, 0, 2)->micro = 1;
	task(0, 0, 4)->micro = 0;
	show("read in another order", check_net(&n, &a));
	descend();
	show("the last micro-batch first", check_net(&n, &a) ? "refused" : "proved");
	descend();
	reg(0, "kept0")->copies = 4;
	show("with a copy too many, so that pieces differ from step to step", check_net(&n, &a));
	n.channel[0].bytes = 65;
	show("sizes", check_net(&n, &a));
	task(0, 1, 0)->micro = 1;
	task(0, 1, 1)->micro = 0;
	show("sent in another order", check_net(&n, &a));
	swap(task(1, 0, 0), task(1, 0, 2));
	swap(task(1, 0, 1), task(1, 0, 3));
	swap(task(1, 1, 0), task(1, 1, 1));
	swap(task(1, 2, 0), task(1, 2, 1));
	show("received in another order", check_net(&n, &a));
	for (int r = 0; r < 2; r++) {
		int log = add_reg(r, "log", 8, 4096);
		Lane end = { .kind = r ? LANE_RECEIVE : LANE_SEND };
		arena_push(&a, n.role[r].lane, n.role[r].nlane, end);
		for (int m = 0; m < 3 - r; m++)
			add_task(r, n.role[r].nlane - 1, (LaneTask){ r ? DO_RECEIVE : DO_SEND, n.nchannel, m });
		if (!r)
			arena_push(&a, n.role[0].block[0].make, n.role[0].block[0].nmake, log);
	}
	LaneChannel log = { .name = "log", .to = 1, .bytes = 8 };
	log.from_reg = n.role[0].nreg - 1;
	log.to_reg = n.role[1].nreg - 1;
	arena_push(&a, n.channel, n.nchannel, log);
	show("fewer receives than sends", check_net(&n, &a));
	f = &n.role[1].block[0];        /* F1 reads x0>1, and BW1 gives it back */
	f->nmake = f->ngive = 0;
	n.role[1].block[1].give = f->wait;
	n.role[1].block[1].ngive = 1;
	n.role[1].block[1].nwait = 0;
	swap(task(1, 0, 1), task(1, 0, 2));
	task(1, 0, 2)->micro = 1;
	task(1, 0, 3)->micro = 0;
	show("given back in another order", check_net(&n, &a));
	reg(1, "x0>1")->first = 1;
	show("pieces that are there at the beginning", check_net(&n, &a));
}

/* Rows that are wrong by themselves. */
static void numbers(void)
{
	reg(0, "kept0")->copies = 0;
	show("no copies", check_net(&n, &a));
	reg(0, "kept0")->first = 3;
	show("more pieces at the beginning than copies", check_net(&n, &a));
	reg(0, "kept0")->bytes = -1;
	show("negative bytes", check_net(&n, &a));
	reg(1, "kept1")->offset = INT64_MAX;
	show("bytes behind the last address", check_net(&n, &a));
	n.role[0].block[1].wait[0] = 7;
	show("a register that does not exist", check_net(&n, &a));
	n.role[0].block[1].give[1] = n.role[0].block[1].give[0];
	show("a register twice", check_net(&n, &a));
	n.role[0].block[1].scratch = -8;
	show("negative scratch", check_net(&n, &a));
	task(0, 0, 2)->id = 5;
	show("a block that does not exist", check_net(&n, &a));
	task(0, 1, 2)->id = 2;
	show("a channel that does not exist", check_net(&n, &a));
	task(0, 0, 2)->micro = -2;
	show("a micro-batch below -1", check_net(&n, &a));
	task(0, 0, 0)->micro = 1000000;
	show("a micro-batch that is too large", check_net(&n, &a));
	n.channel[0].to = 2;
	show("a role that does not exist", check_net(&n, &a));
	n.channel[0].to_reg = -1;
	show("a register of a channel that does not exist", check_net(&n, &a));
	n.channel[1].link = n.nlink;
	show("a link that does not exist", check_net(&n, &a));
}

/* Stages of a net: what an order must have, from the lists that are emitted. */
static void stages(void)
{
	task(0, 0, 1)->micro = 0;
	show("F twice", check_net(&n, &a));
	n.role[0].lane[0].ntask--;
	n.role[0].lane[2].ntask--;
	show("B is missing", check_net(&n, &a));
	for (int r = 0; r < 2; r++)
		for (int l = 0; l < 3; l++)
			for (int i = 0; i < n.role[r].lane[l].ntask; i++)
				task(r, l, i)->micro += task(r, l, i)->micro == 2;
	show("a hole in the micro-batches, the same in all lists", check_net(&n, &a));
	swap(task(0, 0, 0), task(0, 0, 2));
	swap(task(0, 0, 2), task(0, 0, 1));
	show("B before F", check_net(&n, &a));
	LaneBlock w = { .name = "W1", .kind = BLOCK_W, .stage = 1 };
	arena_push(&a, n.role[1].block, n.role[1].nblock, w);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, 2 });
	show("W behind BW", check_net(&n, &a));
	n.role[1].block[1].kind = BLOCK_B;
	arena_push(&a, n.role[1].block, n.role[1].nblock, w);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, 2 });
	show("W of the last micro-batch alone", check_net(&n, &a));
	LaneBlock update = { .name = "update", .kind = BLOCK_UPDATE, .stage = -1 };
	arena_push(&a, n.role[1].block, n.role[1].nblock, update);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, -1 });
	swap(task(1, 0, 5), task(1, 0, 6));
	show("an update before the last B", check_net(&n, &a));
	LaneBlock reduce = { .name = "reduce1", .kind = BLOCK_REDUCE, .stage = 1 };
	arena_push(&a, n.role[1].block, n.role[1].nblock, reduce);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, -1 });
	swap(task(1, 0, 5), task(1, 0, 6));
	show("a reduction before the last B", check_net(&n, &a));
	arena_push(&a, n.role[1].block, n.role[1].nblock, update);
	arena_push(&a, n.role[1].block, n.role[1].nblock, reduce);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, -1 });
	add_task(1, 0, (LaneTask){ DO_BLOCK, 3, -1 });
	show("a reduction behind the update", check_net(&n, &a));
	update.kind = BLOCK_BEGIN;
	update.name = "begin";
	arena_push(&a, n.role[1].block, n.role[1].nblock, update);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, -1 });
	show("a begin behind everything", check_net(&n, &a));
	arena_push(&a, n.role[1].block, n.role[1].nblock, update);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, -1 });
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, -1 });
	show("a begin twice", check_net(&n, &a));
	arena_push(&a, n.role[1].block, n.role[1].nblock, update);
	add_task(1, 0, (LaneTask){ DO_BLOCK, 2, 0 });
	show("a begin of a micro-batch", check_net(&n, &a));
	task(0, 0, 0)->micro = -1;
	show("F without a micro-batch", check_net(&n, &a));
}

static LaneMeet sum = { .name = "sum", .role = (int[]){ 0, 1 }, .nrole = 2 };
static void meeting(int role, int block)
{
	static int only[] = { 0 };
	n.meet = &sum;
	n.nmeet = 1;
	n.role[role].block[block].meet = only;
	n.role[role].block[block].nmeet = 1;
}

static void meetings(void)
{
	meeting(0, 0);
	n.role[0].block[0].meet = (int[]){ 4 };
	show("a meeting that does not exist", check_net(&n, &a));
	meeting(0, 0);
	n.meet = &(LaneMeet){ .name = "sum", .role = (int[]){ 1 }, .nrole = 1 };
	show("a meeting of others", check_net(&n, &a));
	n.meet = &(LaneMeet){ .name = "sum", .role = (int[]){ 0, 2 }, .nrole = 2 };
	n.nmeet = 1;
	show("a meeting with a role that does not exist", check_net(&n, &a));
	n.meet = &(LaneMeet){ .name = "sum", .role = (int[]){ 0, 0 }, .nrole = 2 };
	n.nmeet = 1;
	show("a meeting with a role twice", check_net(&n, &a));
	n.meet = &(LaneMeet){ .name = "sum" };
	n.nmeet = 1;
	show("a meeting of nobody", check_net(&n, &a));
}

static void walks(void)
{
	meeting(0, 0);
	show("a meeting that one role never comes to", check_net(&n, &a));
	meeting(0, 0);
	meeting(1, 0);
	show("a meeting of F of both ranks", check_net(&n, &a));
	meeting(0, 0);
	meeting(1, 0);
	LaneBlock load = { .name = "load", .meet = n.role[0].block[0].meet, .nmeet = 1 };
	static LaneTask tasks[] = { { DO_BLOCK, 2, -1 } };
	arena_push(&a, n.role[0].block, n.role[0].nblock, load);
	arena_push(&a, n.role[0].lane, n.role[0].nlane, ((Lane){ LANE_LOAD, tasks, 1 }));
	show("two lanes at one meeting", check_net(&n, &a));
	LaneBlock *f = &n.role[0].block[0];
	arena_push(&a, f->wait, f->nwait, n.role[0].nreg);
	arena_push(&a, n.role[0].reg, n.role[0].nreg, ((LaneRegister){ .name = "tokens", .copies = 1 }));
	show("nobody makes it", check_net(&n, &a));
	reg(0, "kept0")->copies = 1;
	show("one copy too few", check_net(&n, &a));
	f = add_block(0, "save", LANE_SAVE, 1);
	f->wait = f->make = f->give = (int[]){ add_reg(0, "total", 0, 0) };
	f->nwait = f->nmake = f->ngive = 1;
	show("a block that waits for what it makes itself", check_net(&n, &a));
	/* rank 1 wants a gradient before it gives one: both ranks receive first */
	Lane *l = &n.role[0].lane[0];
	LaneTask first = *task(0, 2, 0);
	Lane all = { .kind = l->kind };
	arena_push(&a, all.task, all.ntask, first);
	for (int i = 0; i < l->ntask; i++)
		arena_push(&a, all.task, all.ntask, l->task[i]);
	for (int i = 1; i < 3; i++)
		arena_push(&a, all.task, all.ntask, ((LaneTask){ DO_RECEIVE, first.id, i }));
	*l = all;
	n.role[0].lane[2] = (Lane){ 0 };
	show("both receive first", check_net(&n, &a));
}

static void bytes(void)
{
	reg(0, "g1>0")->offset = reg(0, "x0>1")->offset;
	show("gradients over activations", check_net(&n, &a));
	n.role[0].block[0].scratch = 8;
	n.role[0].block[0].offset = reg(0, "g1>0")->offset;
	show("scratch over gradients", check_net(&n, &a));
	reg(1, "kept1")->offset = reg(1, "x0>1")->offset;
	show("kept over what was received", check_net(&n, &a));
	for (int piece = 2; piece >= 0; piece -= 2) {
		descend();
		int64_t at = reg(0, "kept0")->offset + piece * reg(0, "kept0")->bytes;
		LaneBlock tidy = { .name = "tidy", .kind = BLOCK_UPDATE, .stage = 9, .scratch = 8, .offset = at };
		arena_push(&a, n.role[0].block, n.role[0].nblock, tidy);
		add_task(0, 0, (LaneTask){ DO_BLOCK, 2, -1 });
		swap(task(0, 0, 6), task(0, 0, 5));
		swap(task(0, 0, 5), task(0, 0, 4));
		const char *why = check_net(&n, &a);
		if (piece)
			show("BW of micro-batch 2 comes first, and then its bytes are free", why ? why : "proved");
		else
			show("those of micro-batch 0 are not", why);
	}
	LaneBlock *f = &n.role[0].block[0];
	arena_push(&a, f->make, f->nmake, add_reg(0, "loss", 8, 4096));
	f = add_block(0, "load", LANE_LOAD, 3);
	f->make = (int[]){ add_reg(0, "label", 8, 4096) };
	f->nmake = 1;
	show("two results that nobody reads", check_net(&n, &a));
}

int main(void)
{
	fresh();
	orders();
	numbers();
	stages();
	lists();
	meetings();
	walks();
	bytes();
	arena_free(&a);
	return 0;
}
