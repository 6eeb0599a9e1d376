/* A search through all states of a net, and random nets of small pipelines.  states.c compares the search with the
 * checker (compiler/lanes/check.c), spin.c writes the same nets for spin, fuzz.c asks it about larger ones.
 *
 * The search starts and ends tasks in every possible order.  It shares nothing with the checker but the structs of a
 * net: how many pieces were made, read and given back follows from how many tasks each lane has ended. */
#include "lanes/lanes.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 96, REGS = 32, TASKS = 1023, STATES = 1 << 19, STEPS = 2 };

static uint64_t seed = 1;
static int below(int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- the search: states are (tasks ended, part of the task that runs) of each lane ---- */

/* part 0: idle; else 1 + meetings behind it */
typedef struct State { uint16_t done[LANES]; uint8_t part[LANES]; } State;
static struct { const LaneNet *net; const Lane *lane[LANES]; int role[LANES], upto[LANES], n; bool buffered; } s;
static State *states;
static int *table, nstate, *stack, nstack;

static const LaneTask *task_at(int l, int i) { return &s.lane[l]->task[i % s.lane[l]->ntask]; }
static int end_of(int l) { return s.lane[l]->ntask * STEPS; }
static const LaneBlock *block_of(int l, const LaneTask *t)
{
	return t->act == DO_BLOCK ? &s.net->role[s.role[l]].block[t->id] : NULL;
}

typedef enum { WAITS, MAKES, GIVES } Does;

/* How often task t of lane l waits for, makes or gives back register g of role r. */
static int does(int l, const LaneTask *t, Does d, int r, int g)
{
	const LaneBlock *b = block_of(l, t);
	const int *list = !b ? NULL : d == WAITS ? b->wait : d == MAKES ? b->make : b->give;
	int n = !b ? 0 : d == WAITS ? b->nwait : d == MAKES ? b->nmake : b->ngive, count = 0;
	for (int i = 0; i < n; i++)
		count += s.role[l] == r && list[i] == g;
	if (t->act == DO_SEND && d != MAKES)
		count += s.net->channel[t->id].from == r && s.net->channel[t->id].from_reg == g;
	if (t->act == DO_RECEIVE && d == MAKES)
		count += s.net->channel[t->id].to == r && s.net->channel[t->id].to_reg == g;
	return count;
}

/* [..][lane][register of its role][n]: what the first n tasks of a lane do */
static uint8_t (*sums[3])[REGS][TASKS + 1];

static int count(const State *x, int l, Does d, int r, int g)
{
	return s.role[l] == r ? sums[d][l][g][x->done[l]] : 0;
}

static bool reads(int l, int r, int g)
{
	return s.role[l] == r && (sums[WAITS][l][g][end_of(l)] || sums[GIVES][l][g][end_of(l)]);
}

/* Lanes of role r are from .. to - 1. */
static int from_lane(int r) { return r ? s.upto[r - 1] : 0; }

static int made(const State *x, int r, int g)
{
	int n = s.net->role[r].reg[g].first;
	for (int l = from_lane(r); l < s.upto[r]; l++)
		n += count(x, l, MAKES, r, g);
	return n;
}

static bool pieces_ready(const State *x, int l)
{
	const LaneTask *t = task_at(l, x->done[l]);
	int r = s.role[l];
	for (int g = 0; g < s.net->role[r].nreg; g++) {
		if (does(l, t, WAITS, r, g) && made(x, r, g) <= count(x, l, WAITS, r, g))
			return false;
		for (int k = from_lane(r); k < s.upto[r] && does(l, t, MAKES, r, g); k++)
			if (reads(k, r, g) && made(x, r, g) >= count(x, k, GIVES, r, g) + s.net->role[r].reg[g].copies)
				return false;
	}
	return true;
}

static int ends(const State *x, int channel, LaneDo act, bool begun)
{
	int n = 0;
	for (int l = 0; l < s.n; l++)
		for (int i = 0; i < x->done[l] + (begun && x->part[l]); i++)
			n += task_at(l, i)->act == act && task_at(l, i)->id == channel;
	return n;
}

static bool full;

static void visit(const State *x)
{
	uint64_t h = 14695981039346656037u;
	for (int i = 0; i < s.n; i++)
		h = (h ^ (x->done[i] + 1024u * x->part[i])) * 1099511628211u;
	for (h = (h ^ h >> 31) % (2 * STATES); table[h]; h = (h + 1) % (2 * STATES))
		if (!memcmp(&states[table[h] - 1], x, sizeof *x))
			return;
	full = full || nstate == STATES;
	if (full)
		return;
	states[nstate++] = *x;
	table[h] = nstate;
	stack[nstack++] = nstate - 1;
}

/* The other end that can start with a transfer; -1: none. */
static int partner(const State *x, int l)
{
	const LaneTask *t = task_at(l, x->done[l]);
	for (int k = 0; k < s.n; k++) {
		if (k == l || x->done[k] == end_of(k) || x->part[k])
			continue;
		const LaneTask *u = task_at(k, x->done[k]);
		if (u->act != DO_BLOCK && u->act != t->act && u->id == t->id && pieces_ready(x, k))
			return k;
	}
	return -1;
}

/* All states that follow from lane l; false: none does. */
static bool follow(State x, int l)
{
	if (x.done[l] == end_of(l))
		return false;
	const LaneTask *t = task_at(l, x.done[l]);
	const LaneBlock *b = block_of(l, t);
	State y = x;
	if (!x.part[l]) {
		if (!pieces_ready(&x, l))
			return false;
		y.part[l] = 1;
		if (!b && !s.buffered) {
			int k = partner(&x, l);
			if (k < 0)
				return false;
			y.part[k] = 1;
		} else if (!b && t->act == DO_RECEIVE &&
			ends(&x, t->id, DO_SEND, false) <= ends(&x, t->id, DO_RECEIVE, true)) {
			return false;
		}
	} else if (b && x.part[l] - 1 < b->nmeet) {
		const LaneMeet *m = &s.net->meet[b->meet[x.part[l] - 1]];
		int there = 0;
		for (int k = 0; k < s.n; k++) {
			const LaneBlock *c = x.part[k] ? block_of(k, task_at(k, x.done[k])) : NULL;
			if (c && x.part[k] - 1 < c->nmeet && &s.net->meet[c->meet[x.part[k] - 1]] == m) {
				y.part[k]++;
				there++;
			}
		}
		if (there < m->nrole)
			return false;
	} else {
		y.part[l] = 0;
		y.done[l]++;
		for (int k = 0; k < s.n && !b && !s.buffered; k++)
			if (k != l && x.part[k] && task_at(k, x.done[k])->act != DO_BLOCK &&
				task_at(k, x.done[k])->id == t->id) {
				y.part[k] = 0;
				y.done[k]++;
			}
	}
	visit(&y);
	return true;
}

/* Areas of a role in use: [from, to). */
typedef struct Used { int64_t from, to; } Used;

static bool collides(const State *x, int r)
{
	Used u[256];
	int n = 0;
	const LaneRole *role = &s.net->role[r];
	for (int g = 0; g < role->nreg; g++) {
		int end = made(x, r, g), begin = end;
		for (int l = from_lane(r); l < s.upto[r]; l++) {
			int given = count(x, l, GIVES, r, g);
			if (reads(l, r, g) && given < begin)
				begin = given;
		}
		for (int l = from_lane(r); l < s.upto[r]; l++)
			end += x->part[l] && does(l, task_at(l, x->done[l]), MAKES, r, g);
		for (int k = begin; k < end && role->reg[g].bytes; k++) {
			int64_t from = role->reg[g].offset + k % role->reg[g].copies * role->reg[g].bytes;
			u[n++] = (Used){ from, from + role->reg[g].bytes };
		}
	}
	for (int l = 0; l < s.n; l++) {
		const LaneBlock *b = x->part[l] && s.role[l] == r ? block_of(l, task_at(l, x->done[l])) : NULL;
		if (b && b->scratch)
			u[n++] = (Used){ b->offset, b->offset + b->scratch };
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			if (u[i].from < u[k].to && u[k].from < u[i].to)
				return true;
	return false;
}

static void read_net(const LaneNet *net, bool buffered)
{
	s.net = net;
	s.buffered = buffered;
	s.n = 0;
	for (int r = 0; r < net->nrole; r++) {
		for (int l = 0; l < net->role[r].nlane && s.n < LANES; l++) {
			s.role[s.n] = r;
			s.lane[s.n++] = &net->role[r].lane[l];
		}
		s.upto[r] = s.n;
	}
	for (int l = 0; l < s.n; l++)
		if (s.n == LANES || end_of(l) > TASKS || net->role[s.role[l]].nreg > REGS) {
			printf("not ok search: the net is too large for its tables\n");
			exit(1);
		}
	for (int d = 0; d < 3; d++) {
		sums[d] = sums[d] ? sums[d] : calloc(LANES, sizeof *sums[d]);
		for (int l = 0; l < s.n; l++)
			for (int g = 0; g < net->role[s.role[l]].nreg; g++)
				for (int i = 0; i < end_of(l); i++)
					sums[d][l][g][i + 1] = (uint8_t)(sums[d][l][g][i] + does(l, task_at(l, i),
						(Does)d, s.role[l], g));
	}
}

/* RUNS: every order comes to its end, no byte is in use twice.  STOPS: some order stands still.  TWICE: some order has
 * bytes in use twice; looked for if sends are buffered.  MANY: there are too many states. */
typedef enum { RUNS, STOPS, TWICE, MANY } Verdict;

static inline Verdict search(const LaneNet *net, bool buffered)
{
	if (!states) {
		states = calloc(STATES, sizeof *states);
		table = calloc(2 * STATES, sizeof *table);
		stack = calloc(STATES, sizeof *stack);
	}
	read_net(net, buffered);
	memset(table, 0, sizeof *table * 2 * STATES);
	nstate = nstack = 0;
	full = false;
	visit(&(State){ 0 });
	while (nstack && !full) {
		State x = states[stack[--nstack]];
		bool more = false, whole = true;
		for (int l = 0; l < s.n; l++) {
			more |= follow(x, l);
			whole = whole && x.done[l] == end_of(l);
		}
		if (!more && !whole)
			return STOPS;
		for (int r = 0; r < net->nrole && buffered; r++)
			if (collides(&x, r))
				return TWICE;
	}
	return full ? MANY : RUNS;
}

static inline void search_end(void)
{
	free(states);
	free(table);
	free(stack);
	for (int d = 0; d < 3; d++)
		free(sums[d]);
}

/* Whether a lane has a block of a stage before one that it needs, or an update before anything. */
static inline bool illegal(const LaneNet *net)
{
	static const int turn[] = { [BLOCK_F] = 1, [BLOCK_B] = 2, [BLOCK_BW] = 2, [BLOCK_W] = 3, [BLOCK_UPDATE] = 4 };
	for (int r = 0; r < net->nrole; r++) {
		const Lane *l = &net->role[r].lane[0];
		for (int i = 0; i < l->ntask; i++)
			for (int k = i + 1; k < l->ntask; k++) {
				const LaneTask *x = &l->task[i], *y = &l->task[k];
				if (x->act != DO_BLOCK || y->act != DO_BLOCK)
					continue;
				const LaneBlock *b = &net->role[r].block[x->id], *c = &net->role[r].block[y->id];
				bool same = b->stage == c->stage && x->micro == y->micro;
				if ((same || b->kind == BLOCK_UPDATE) && turn[b->kind] > turn[c->kind])
					return true;
			}
	}
	return false;
}

/* ---- random nets ---- */

static Pipeline pipeline(Arena *a)
{
	int p = 1 + below(3), m = 1 + below(p < 3 ? 3 : 2);
	Pipeline q = { .nrank = p, .nstage = p, .micros = m, .nhop = p - 1 };
	q.stage = arena_array(a, PipeStage, p);
	q.hop = arena_array(a, PipeHop, p);
	for (int i = 0; i < p; i++) {
		q.stage[i] = (PipeStage){ .rank = i, .f = 1, .b = 1, .w = 1, .update = below(2), .kept = 8,
			.kept_w = 4 };
		q.hop[i] = (PipeHop){ .from = i, .to = i + 1, .bytes = 4 };
	}
	return q;
}

/* The transfers of a rank on its compute lane: receives before the block that reads, sends behind the one that
 * makes. */
static inline void one_lane(LaneRole *r, Arena *a, const LaneNet *n)
{
	Lane all = { .kind = LANE_COMPUTE };
	for (int i = 0; i < r->lane[0].ntask; i++) {
		LaneTask t = r->lane[0].task[i];
		const LaneBlock *b = &r->block[t.id];
		for (int pass = 0; pass < 2; pass++) {
			for (int l = 1; l < r->nlane; l++)
				for (int k = 0; k < r->lane[l].ntask; k++) {
					LaneTask u = r->lane[l].task[k];
					const LaneChannel *c = &n->channel[u.id];
					int reg = u.act == DO_SEND ? c->from_reg : c->to_reg;
					const int *list = pass ? b->make : b->wait;
					for (int j = 0; j < (pass ? b->nmake : b->nwait); j++)
						if (list[j] == reg && u.micro == t.micro && (u.act == DO_SEND) == pass)
							arena_push(a, all.task, all.ntask, u);
				}
			if (!pass)
				arena_push(a, all.task, all.ntask, t);
		}
	}
	r->lane[0] = all;
	r->nlane = 1;
}

/* Neighbours of different blocks change places. */
static void swap_neighbours(LaneNet *n)
{
	LaneRole *r = &n->role[below(n->nrole)];
	Lane *l = &r->lane[below(r->nlane)];
	for (int tries = 0; tries < 20 && l->ntask > 1; tries++) {
		LaneTask *t = &l->task[below(l->ntask - 1)], old = t[0];
		if (t[0].act == t[1].act && t[0].id == t[1].id)
			continue;
		t[0] = t[1];
		t[1] = old;
		return;
	}
}

static void share_bytes(LaneNet *n)
{
	for (int r = 0; r < n->nrole; r++) {
		LaneRole *role = &n->role[r];
		if (role->nreg > 1 && below(2)) {
			int i = below(role->nreg), k = below(role->nreg);
			role->reg[i].offset = role->reg[k].offset;
		}
		for (int b = 0; b < role->nblock; b++) {
			role->block[b].scratch = 4 * below(3);
			role->block[b].offset = below(6) ? 1000 : role->reg[below(role->nreg)].offset;
		}
	}
}

/* One or two meetings of all roles inside their first blocks, perhaps not in the same order. */
static void add_meetings(LaneNet *n, Arena *a)
{
	n->nmeet = 1 + below(2);
	n->meet = arena_array(a, LaneMeet, n->nmeet);
	for (int m = 0; m < n->nmeet; m++) {
		n->meet[m] = (LaneMeet){ .name = m ? "norm" : "sum", .role = arena_array(a, int, n->nrole),
			.nrole = n->nrole };
		for (int r = 0; r < n->nrole; r++)
			n->meet[m].role[r] = r;
	}
	bool across = !below(3);
	for (int r = 0; r < n->nrole; r++) {
		LaneBlock *b = &n->role[r].block[below(2) ? n->role[r].nblock - 1 : 0];
		b->meet = arena_array(a, int, n->nmeet);
		b->nmeet = n->nmeet;
		for (int m = 0; m < n->nmeet; m++)
			b->meet[m] = across && r % 2 ? n->nmeet - 1 - m : m;
	}
}

static inline void random_net(Arena *a, bool bug, LaneNet *n)
{
	static const char *const names[] = { "gpipe", "1f1b", "zb-h1", "zb-h2" };
	Pipeline p = pipeline(a);
	PipeOrder o;
	schedules_find(names[below(4)])->order(&p, a, &o);
	net_of(&p, &o, below(2), a, n);
	for (int r = 0; r < n->nrole; r++)
		if (below(4) == 0)
			one_lane(&n->role[r], a, n);
	for (int r = 0; r < n->nrole; r++) {
		LaneRegister *g = &n->role[r].reg[below(n->role[r].nreg)];
		if (below(4) == 0 && g->copies > 1)
			g->copies--;
	}
	if (below(2))
		share_bytes(n);
	if (below(4) == 0)
		add_meetings(n, a);
	for (int i = bug ? 1 + below(2) : 0; i; i--)
		swap_neighbours(n);
}
