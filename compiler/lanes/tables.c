/* Checks the rows of a net before it is walked: numbers are in range, no list names a register twice, and each stage
 * runs each of its blocks once for each micro-batch, in legal order:
 *
 *   begin           before all blocks of its stage (stage -1: of its lane)
 *   body, load, F   of every micro-batch
 *   R               of any micro-batch, behind F
 *   B, W            behind F (and R); W behind B.  Of every micro-batch BW, or each of B and W that the stage has
 *   reduce, update  behind all blocks of its stage (stage -1: of its lane); update behind reduce
 *
 * A stage without B (no gradient leaves it), or without any backward block (inference), is legal. */
#include "lanes/walk.h"

#define SAY(...) arena_printf(c->a, __VA_ARGS__)

typedef struct Tables {
	const LaneNet *net;
	Arena *a;
	int micros;
} Tables;

/* ---- numbers ---- */

static const char *check_register(Tables *c, const LaneRole *r, const LaneRegister *g)
{
	if (g->copies < 1)
		return SAY("%s: %s has %d copies", r->name, g->name, g->copies);
	if (g->first < 0 || g->first > g->copies)
		return SAY("%s: %s has %d cop%s and begins with %d pieces", r->name, g->name, g->copies,
			g->copies == 1 ? "y" : "ies", g->first);
	if (g->bytes < 0 || g->offset < 0 || g->bytes > (INT64_MAX - g->offset) / g->copies)
		return SAY("%s: %s has %d cop%s of %lld bytes at offset %lld", r->name, g->name, g->copies,
			g->copies == 1 ? "y" : "ies", (long long)g->bytes, (long long)g->offset);
	return NULL;
}

static const char *check_list(Tables *c, const LaneRole *r, const LaneBlock *b, const char *verb, const int *v, int n)
{
	for (int i = 0; i < n; i++) {
		if (v[i] < 0 || v[i] >= r->nreg)
			return SAY("%s: %s %s register %d; there are %d", r->name, b->name, verb, v[i], r->nreg);
		for (int k = 0; k < i; k++)
			if (v[k] == v[i])
				return SAY("%s: %s %s %s twice", r->name, b->name, verb, r->reg[v[i]].name);
	}
	return NULL;
}

static bool joins(const LaneMeet *m, int role)
{
	for (int i = 0; i < m->nrole; i++)
		if (m->role[i] == role)
			return true;
	return false;
}

static const char *check_block(Tables *c, int role, const LaneBlock *b)
{
	const LaneRole *r = &c->net->role[role];
	const char *why = check_list(c, r, b, "waits for", b->wait, b->nwait);
	why = why ? why : check_list(c, r, b, "makes", b->make, b->nmake);
	why = why ? why : check_list(c, r, b, "gives back", b->give, b->ngive);
	if (!why && (b->scratch < 0 || b->offset < 0 || b->scratch > INT64_MAX - b->offset))
		why = SAY("%s: %s has %lld bytes of scratch at offset %lld", r->name, b->name, (long long)b->scratch,
			(long long)b->offset);
	for (int i = 0; i < b->nmeet && !why; i++)
		if (b->meet[i] < 0 || b->meet[i] >= c->net->nmeet)
			why = SAY("%s: %s comes to meeting %d; there are %d", r->name, b->name, b->meet[i],
				c->net->nmeet);
		else if (!joins(&c->net->meet[b->meet[i]], role))
			why = SAY("%s: %s comes to the meeting %s, which is not for %s", r->name, b->name,
				c->net->meet[b->meet[i]].name, r->name);
	return why;
}

static const char *check_task(Tables *c, const LaneRole *r, const LaneTask *t)
{
	bool block = t->act == DO_BLOCK;
	int n = block ? r->nblock : c->net->nchannel;
	if (t->id < 0 || t->id >= n)
		return SAY("%s: a task of %s %d; there are %d", r->name, block ? "block" : "channel", t->id, n);
	if (t->micro < -1)
		return SAY("%s: %s of micro-batch %d", r->name,
			block ? r->block[t->id].name : c->net->channel[t->id].name, t->micro);
	return NULL;
}

static const char *check_channel(Tables *c, const LaneChannel *h)
{
	int role[2] = { h->from, h->to }, reg[2] = { h->from_reg, h->to_reg };
	for (int i = 0; i < 2; i++) {
		if (role[i] < 0 || role[i] >= c->net->nrole)
			return SAY("channel %s: role %d; there are %d", h->name, role[i], c->net->nrole);
		if (reg[i] < 0 || reg[i] >= c->net->role[role[i]].nreg)
			return SAY("channel %s: register %d of %s; there are %d", h->name, reg[i],
				c->net->role[role[i]].name, c->net->role[role[i]].nreg);
	}
	if (h->link < 0 || h->link >= c->net->nlink)
		return SAY("channel %s: link %d; there are %d", h->name, h->link, c->net->nlink);
	return NULL;
}

static const char *check_meeting(Tables *c, const LaneMeet *m)
{
	for (int i = 0; i < m->nrole; i++) {
		if (m->role[i] < 0 || m->role[i] >= c->net->nrole)
			return SAY("the meeting %s: role %d; there are %d", m->name, m->role[i], c->net->nrole);
		for (int k = 0; k < i; k++)
			if (m->role[k] == m->role[i])
				return SAY("the meeting %s: %s twice", m->name, c->net->role[m->role[i]].name);
	}
	return m->nrole ? NULL : SAY("the meeting %s: nobody comes", m->name);
}

static const char *check_role(Tables *c, int role)
{
	const LaneRole *r = &c->net->role[role];
	const char *why = NULL;
	for (int i = 0; i < r->nreg && !why; i++)
		why = check_register(c, r, &r->reg[i]);
	for (int i = 0; i < r->nblock && !why; i++)
		why = check_block(c, role, &r->block[i]);
	for (int l = 0; l < r->nlane && !why; l++)
		for (int i = 0; i < r->lane[l].ntask && !why; i++)
			why = check_task(c, r, &r->lane[l].task[i]);
	return why;
}

/* ---- stages ---- */

static bool per_micro(BlockKind k) { return !pipe_once(k); }

/* By block and micro-batch: 1 + the position of its task on the lane; 0: it never runs. */
typedef struct Turns { const LaneRole *r; const Lane *lane; int **of; } Turns;

static const LaneBlock *block_at(const Turns *t, int i)
{
	const LaneTask *k = &t->lane->task[i];
	return k->act == DO_BLOCK ? &t->r->block[k->id] : NULL;
}

static const char *read_turns(Tables *c, Turns *t)
{
	t->of = arena_array(c->a, int *, t->r->nblock + 1);
	for (int i = 0; i < t->lane->ntask; i++) {
		const LaneTask *k = &t->lane->task[i];
		const LaneBlock *b = block_at(t, i);
		if (!b)
			continue;
		if (per_micro(b->kind) != (k->micro >= 0))
			return per_micro(b->kind) ? SAY("%s: %s without a micro-batch", t->r->name, b->name) :
				SAY("%s: %s of micro-batch %d; it runs once in a step", t->r->name, b->name, k->micro);
		if (!t->of[k->id])
			t->of[k->id] = arena_array(c->a, int, c->micros + 1);
		int *turn = &t->of[k->id][k->micro + 1];
		if (*turn)
			return k->micro < 0 ? SAY("%s: %s for the second time", t->r->name, b->name) :
				SAY("%s: %s of micro-batch %d for the second time", t->r->name, b->name, k->micro);
		*turn = i + 1;
	}
	return NULL;
}

static int turn_of(const Turns *t, int block, int micro)
{
	return t->of[block] ? t->of[block][micro + 1] : 0;
}

/* Which of two blocks of a stage runs first for a micro-batch; false: no rule. */
static bool is_before(BlockKind a, BlockKind b)
{
	static const int rank[BLOCK_UPDATE + 1] = { [BLOCK_F] = 1, [BLOCK_R] = 2, [BLOCK_B] = 3, [BLOCK_BW] = 3,
		[BLOCK_W] = 4 };
	return rank[a] && rank[a] < rank[b];
}

/* Compares the blocks of one stage, pair by pair. */
static const char *check_pair(Tables *c, const Turns *t, int i, int k)
{
	const LaneBlock *a = &t->r->block[i], *b = &t->r->block[k];
	for (int m = 0; m < c->micros; m++) {
		int x = turn_of(t, i, m), y = turn_of(t, k, m);
		if (x && y && is_before(a->kind, b->kind) && y < x)
			return SAY("%s: %s of micro-batch %d before %s", t->r->name, b->name, m, a->name);
		if (x && y && a->kind == BLOCK_BW && (b->kind == BLOCK_B || b->kind == BLOCK_W))
			return SAY("%s: %s and %s of micro-batch %d; %s computes both gradients", t->r->name, a->name,
				b->name, m, a->name);
	}
	return NULL;
}

/* Whether block i has run for micro-batch m, or a block of its stage that stands for it. */
static bool covered(const Turns *t, int i, int m)
{
	BlockKind kind = t->r->block[i].kind;
	if (turn_of(t, i, m) || kind == BLOCK_R)
		return true;
	for (int k = 0; k < t->r->nblock; k++) {
		BlockKind other = t->r->block[k].kind;
		bool instead = kind == BLOCK_BW ? other == BLOCK_B || other == BLOCK_W :
			(kind == BLOCK_B || kind == BLOCK_W) && other == BLOCK_BW;
		if (instead && t->r->block[k].stage == t->r->block[i].stage && turn_of(t, k, m))
			return true;
	}
	return false;
}

/* Compares a begin, a reduction or an update with a task of the same lane. */
static const char *check_once(Tables *c, const Turns *t, int once, int i)
{
	const LaneBlock *a = block_at(t, once), *b = block_at(t, i);
	bool begin = a->kind == BLOCK_BEGIN, reduce = b && b->kind == BLOCK_REDUCE && a->kind != BLOCK_REDUCE;
	if (!b || (!reduce && !per_micro(b->kind)) || (a->stage >= 0 && a->stage != b->stage) ||
		(begin ? once < i : i < once))
		return NULL;
	if (reduce)
		return SAY("%s: %s %s %s", t->r->name, b->name, begin ? "before" : "behind", a->name);
	return SAY("%s: %s of micro-batch %d %s %s", t->r->name, b->name, t->lane->task[i].micro,
		begin ? "before" : "behind", a->name);
}

static const char *check_lane(Tables *c, const LaneRole *r, const Lane *lane)
{
	Turns t = { .r = r, .lane = lane };
	const char *why = read_turns(c, &t);
	for (int i = 0; i < r->nblock && !why; i++)
		for (int k = 0; k < r->nblock && !why; k++)
			if (t.of[i] && t.of[k] && r->block[i].stage == r->block[k].stage)
				why = check_pair(c, &t, i, k);
	for (int i = 0; i < r->nblock && !why; i++)
		for (int m = 0; m < c->micros && t.of[i] && per_micro(r->block[i].kind) && !why; m++)
			if (!covered(&t, i, m))
				why = SAY("%s: %s of micro-batch %d is missing", r->name, r->block[i].name, m);
	for (int i = 0; i < lane->ntask && !why; i++)
		for (int k = 0; lane->task[i].micro < 0 && block_at(&t, i) && k < lane->ntask && !why; k++)
			why = check_once(c, &t, i, k);
	return why;
}

/* Each stage has an F of every micro-batch, so a lane has at least as many tasks. */
static const char *count_micros(Tables *c, const LaneRole *r, const Lane *lane)
{
	for (int i = 0; i < lane->ntask; i++) {
		const LaneTask *t = &lane->task[i];
		if (t->act == DO_BLOCK && t->micro >= lane->ntask)
			return SAY("%s: %s of micro-batch %d, on a lane of %d tasks", r->name, r->block[t->id].name,
				t->micro, lane->ntask);
		if (t->act == DO_BLOCK && t->micro >= c->micros)
			c->micros = t->micro + 1;
	}
	return NULL;
}

/* For all compute lanes. */
static const char *each_lane(Tables *c, const char *check(Tables *, const LaneRole *, const Lane *))
{
	const char *why = NULL;
	for (int r = 0; r < c->net->nrole && !why; r++)
		for (int l = 0; l < c->net->role[r].nlane && !why; l++)
			if (c->net->role[r].lane[l].kind == LANE_COMPUTE)
				why = check(c, &c->net->role[r], &c->net->role[r].lane[l]);
	return why;
}

const char *tables_check(const LaneNet *net, Arena *a)
{
	Tables tables = { .net = net, .a = a }, *c = &tables;
	const char *why = NULL;
	for (int m = 0; m < net->nmeet && !why; m++)
		why = check_meeting(c, &net->meet[m]);
	for (int r = 0; r < net->nrole && !why; r++)
		why = check_role(c, r);
	for (int i = 0; i < net->nchannel && !why; i++)
		why = check_channel(c, &net->channel[i]);
	why = why ? why : each_lane(c, count_micros);
	return why ? why : each_lane(c, check_lane);
}
