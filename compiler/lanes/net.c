/* An order of a pipeline as programs of lanes: a role for each rank.
 *
 *   registers of stage s   made by   given back by   bytes
 *   kept<s>                F         B, BW           what B frees; all of `kept` where no W runs apart
 *   keptw<s>               F         W, BW           what W frees
 *   grad<s>                B         W               what W needs and F did not make, where kept_w > kept
 *   x<s>><t>               F of s    send, F of t    activations of a hop, at both ends; a channel joins them
 *   g<t>><s>               B of t    send, B of s    gradients of a hop
 *
 * Lanes of a rank: compute, in the given order, with the update behind it; and one for each end of a channel, in the
 * order of the block that it serves.
 *
 * How many copies.  A register that is made and read on the compute lane has as many as the order keeps in flight,
 * or, where micro-batches are given back in another order than made, one for each of them.
 * Registers of hops begin with one, and the net is walked; when it stands still because a register is full, one
 * register gets a copy more, and the walk goes on (Parks, "Bounded Scheduling of Process Networks", 1995, section 4).
 * If no full register is waited for, the order itself waits for itself; check.c says how. */
#include "lanes/walk.h"

enum { ALIGN = 64 };
static const char *const kind_name[] = { [BLOCK_F] = "F", [BLOCK_B] = "B", [BLOCK_W] = "W", [BLOCK_BW] = "BW" };

typedef struct Maker {
	const Pipeline *p;
	const PipeOrder *o;
	Arena *a;
	LaneNet *net;
	int (*block)[BLOCK_UPDATE + 1]; /* by stage, by kind: its block, or -1 */
} Maker;

static int add_reg(Maker *k, int role, const char *name, int64_t bytes)
{
	LaneRole *r = &k->net->role[role];
	arena_push(k->a, r->reg, r->nreg, ((LaneRegister){ .name = name, .copies = 1, .bytes = bytes }));
	return r->nreg - 1;
}

static LaneBlock *block_of(Maker *k, int stage, BlockKind kind)
{
	int b = k->block[stage][kind];
	return b < 0 ? NULL : &k->net->role[k->p->stage[stage].rank].block[b];
}

static void makes(Maker *k, int stage, BlockKind kind, int reg)
{
	LaneBlock *b = block_of(k, stage, kind);
	if (b)
		arena_push(k->a, b->make, b->nmake, reg);
}

static void reads(Maker *k, int stage, BlockKind kind, int reg)
{
	LaneBlock *b = block_of(k, stage, kind);
	if (b) {
		arena_push(k->a, b->wait, b->nwait, reg);
		arena_push(k->a, b->give, b->ngive, reg);
	}
}

/* The blocks that the order has of each stage, and its compute lanes. */
static void add_blocks(Maker *k)
{
	k->block = arena_alloc(k->a, sizeof *k->block * (size_t)k->p->nstage);
	for (int s = 0; s < k->p->nstage; s++)
		for (int i = 0; i <= BLOCK_UPDATE; i++)
			k->block[s][i] = -1;
	for (int r = 0; r < k->p->nrank; r++) {
		LaneRole *role = &k->net->role[r];
		Lane compute = { .kind = LANE_COMPUTE, .task = arena_array(k->a, LaneTask, k->o->ntask[r] + 1) };
		for (int i = 0; i < k->o->ntask[r]; i++) {
			const PipeTask *t = &k->o->task[r][i];
			int *b = &k->block[t->stage][t->kind];
			if (*b < 0) {
				*b = role->nblock;
				LaneBlock block = { .name = arena_printf(k->a, "%s%d", kind_name[t->kind], t->stage),
					.kind = t->kind, .stage = t->stage, .seconds = pipe_seconds(k->p, t) };
				arena_push(k->a, role->block, role->nblock, block);
			}
			compute.task[compute.ntask++] = (LaneTask){ DO_BLOCK, *b, t->micro };
		}
		double update = 0;
		for (int s = 0; s < k->p->nstage; s++)
			update += k->p->stage[s].rank == r ? k->p->stage[s].update : 0;
		if (update > 0) {
			compute.task[compute.ntask++] = (LaneTask){ DO_BLOCK, role->nblock, -1 };
			arena_push(k->a, role->block, role->nblock, ((LaneBlock){ .name = "update",
				.kind = BLOCK_UPDATE, .stage = -1, .seconds = update }));
		}
		arena_push(k->a, role->lane, role->nlane, compute);
	}
}

static void add_kept(Maker *k, int s)
{
	const PipeStage *g = &k->p->stage[s];
	bool split = k->block[s][BLOCK_W] >= 0;
	int64_t both = !split ? 0 : g->kept < g->kept_w ? g->kept : g->kept_w;
	int kept = add_reg(k, g->rank, arena_printf(k->a, "kept%d", s), g->kept - both);
	makes(k, s, BLOCK_F, kept);
	reads(k, s, BLOCK_B, kept);
	reads(k, s, BLOCK_BW, kept);
	if (!split)
		return;
	int keptw = add_reg(k, g->rank, arena_printf(k->a, "keptw%d", s), both);
	makes(k, s, BLOCK_F, keptw);
	reads(k, s, BLOCK_W, keptw);
	reads(k, s, BLOCK_BW, keptw);
	if (g->kept_w > g->kept) {
		int grad = add_reg(k, g->rank, arena_printf(k->a, "grad%d", s), g->kept_w - g->kept);
		makes(k, s, BLOCK_B, grad);
		reads(k, s, BLOCK_W, grad);
	}
}

/* A lane for an end of a channel: a task for each run of a block of these kinds. */
static void add_end(Maker *k, int channel, LaneDo act, int stage, bool forward)
{
	int r = k->p->stage[stage].rank;
	Lane l = { .kind = act == DO_SEND ? LANE_SEND : LANE_RECEIVE };
	for (int i = 0; i < k->o->ntask[r]; i++) {
		const PipeTask *t = &k->o->task[r][i];
		if (t->stage == stage && t->kind != BLOCK_W && (t->kind == BLOCK_F) == forward)
			arena_push(k->a, l.task, l.ntask, ((LaneTask){ act, channel, t->micro }));
	}
	arena_push(k->a, k->net->role[r].lane, k->net->role[r].nlane, l);
}

/* The register that F (or B) of stage s makes for F (or B) of stage t. */
static void add_way(Maker *k, const PipeHop *h, bool forward)
{
	int s = forward ? h->from : h->to, t = forward ? h->to : h->from;
	int from = k->p->stage[s].rank, to = k->p->stage[t].rank;
	const char *name = arena_printf(k->a, "%c%d>%d", forward ? 'x' : 'g', s, t);
	static const BlockKind kinds[2][2] = { { BLOCK_B, BLOCK_BW }, { BLOCK_F, BLOCK_F } };
	int ways = forward ? 1 : 2, out = add_reg(k, from, name, h->bytes), in = out;
	if (from != to)
		in = add_reg(k, to, name, h->bytes);
	for (int i = 0; i < ways; i++) {
		makes(k, s, kinds[forward][i], out);
		reads(k, t, kinds[forward][i], in);
	}
	if (from == to)
		return;
	int c = k->net->nchannel;
	LaneChannel channel = { .name = name, .from = from, .from_reg = out, .to = to, .to_reg = in,
		.link = k->net->nlink++, .latency = h->latency, .busy = h->busy, .bytes = h->bytes };
	arena_push(k->a, k->net->channel, k->net->nchannel, channel);
	add_end(k, c, DO_SEND, s, forward);
	add_end(k, c, DO_RECEIVE, t, forward);
}

/* ---- copies ---- */

static bool has(const int *list, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

/* Registers that only the compute lane touches get as many copies as are in flight. */
static void keep_in_flight(LaneRole *r, const Walk *w, int reg0)
{
	const Lane *l = &r->lane[0];
	int *order = arena_array(w->arena, int, l->ntask + 1);
	for (int i = 0; i < r->nreg; i++) {
		const WalkReg *g = &w->reg[reg0 + i];
		if (!g->nuse || w->use[g->use[0]].lane != g->maker)
			continue;
		int now = 0, most = 1, made = 0, given = 0;
		bool turns = true;
		for (int k = 0; k < l->ntask; k++) {
			const LaneBlock *b = &r->block[l->task[k].id];
			if (has(b->make, b->nmake, i))
				order[made++] = l->task[k].micro;
			now = made - given;
			most = now > most ? now : most;
			if (has(b->give, b->ngive, i)) {
				turns = turns && given < made && order[given] == l->task[k].micro;
				given++;
			}
		}
		r->reg[i].copies = turns ? most : made;
	}
}

/* The full register with the fewest copies that a lane waits for gets one more; false: there is none. */
static bool grow(Walk *w)
{
	int best = -1, who = -1;
	for (int l = 0; l < w->nlane; l++) {
		WalkLack lack;
		if (walk_done(w, l) || !walk_lacks(w, l, &lack) || lack.wait != WAIT_ROOM || lack.lane == l)
			continue;
		if (best < 0 || w->reg[lack.what].r->copies < w->reg[best].r->copies) {
			best = lack.what;
			who = l;
		}
	}
	if (best < 0)
		return false;
	w->reg[best].r->copies++;
	walk_wake(w, who);
	return true;
}

static void count_copies(Maker *k, int ahead)
{
	Arena scratch = { 0 };
	Walk w;
	if (walk_begin(&w, k->net, 1, false, &scratch))
		die("net.c made a net that is none");
	for (int r = 0; r < k->net->nrole; r++)
		keep_in_flight(&k->net->role[r], &w, w.reg0[r]);
	do
		walk_run(&w, NULL, NULL);
	while (grow(&w));
	arena_free(&scratch);
	for (int c = 0; c < k->net->nchannel; c++) {
		const LaneChannel *h = &k->net->channel[c];
		k->net->role[h->from].reg[h->from_reg].copies += ahead;
		k->net->role[h->to].reg[h->to_reg].copies += ahead;
	}
}

/* Registers one after the other. */
static void lay_out(LaneRole *r)
{
	int64_t at = r->fixed;
	for (int i = 0; i < r->nreg; i++) {
		at = (at + ALIGN - 1) / ALIGN * ALIGN;
		r->reg[i].offset = at;
		at += r->reg[i].bytes * r->reg[i].copies;
	}
}

void net_of(const Pipeline *p, const PipeOrder *o, int ahead, Arena *a, LaneNet *net)
{
	*net = (LaneNet){ .role = arena_array(a, LaneRole, p->nrank), .nrole = p->nrank };
	Maker k = { .p = p, .o = o, .a = a, .net = net };
	for (int r = 0; r < p->nrank; r++)
		net->role[r].name = arena_printf(a, "rank %d", r);
	add_blocks(&k);
	for (int s = 0; s < p->nstage; s++) {
		net->role[p->stage[s].rank].fixed += p->stage[s].fixed;
		add_kept(&k, s);
	}
	for (int h = 0; h < p->nhop; h++) {
		add_way(&k, &p->hop[h], true);
		add_way(&k, &p->hop[h], false);
	}
	count_copies(&k, ahead);
	for (int r = 0; r < p->nrank; r++)
		lay_out(&net->role[r]);
}
