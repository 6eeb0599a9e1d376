/* The checker of programs of lanes against a search through all states.  Nets of small pipelines get fewer or more
 * copies, areas that share bytes, transfers on the compute lane, meetings; half of them get an order bug: neighbours
 * of a list change places.  The search starts and ends tasks in every possible order.  check_net refuses a net if
 * and only if some order stands still, when sends end as they are received, or has bytes in use twice, when sends
 * are buffered. Orders whose micro-batches are exchanged must be refused, too. */
#include "lanes/lanes.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 32, STATES = 1 << 19, STEPS = 2 };

static uint64_t seed = 1;
static int below(int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- the search: states are (tasks ended, part of the task that runs) of each lane ---- */

typedef struct State { uint8_t done[LANES], part[LANES]; } State;       /* part 0: idle, 1 + meetings behind it */
static struct { const LaneNet *net; const Lane *lane[LANES]; int role[LANES], n; bool buffered; } s;
static State *states;
static int *table, nstate;

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

static int count(const State *x, int l, Does d, int r, int g)
{
	int n = 0;
	for (int i = 0; i < x->done[l]; i++)
		n += does(l, task_at(l, i), d, r, g);
	return n;
}

static int made(const State *x, int r, int g)
{
	int n = s.net->role[r].reg[g].first;
	for (int l = 0; l < s.n; l++)
		n += count(x, l, MAKES, r, g);
	return n;
}

static bool reads(int l, int r, int g)
{
	for (int i = 0; i < s.lane[l]->ntask; i++)
		if (does(l, task_at(l, i), WAITS, r, g) || does(l, task_at(l, i), GIVES, r, g))
			return true;
	return false;
}

static bool pieces_ready(const State *x, int l)
{
	const LaneTask *t = task_at(l, x->done[l]);
	int r = s.role[l];
	for (int g = 0; g < s.net->role[r].nreg; g++) {
		if (does(l, t, WAITS, r, g) && made(x, r, g) <= count(x, l, WAITS, r, g))
			return false;
		for (int k = 0; k < s.n && does(l, t, MAKES, r, g); k++)
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

static void visit(const State *x)
{
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < sizeof *x; i++)
		h = (h ^ ((const uint8_t *)x)[i]) * 1099511628211u;
	for (h = (h ^ h >> 31) % (2 * STATES); table[h]; h = (h + 1) % (2 * STATES))
		if (!memcmp(&states[table[h] - 1], x, sizeof *x))
			return;
	if (nstate == STATES) {
		printf("not ok search: too many states\n");
		exit(1);
	}
	states[nstate++] = *x;
	table[h] = nstate;
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
		for (int l = 0; l < s.n; l++) {
			int given = count(x, l, GIVES, r, g);
			if (reads(l, r, g) && given < begin)
				begin = given;
		}
		for (int l = 0; l < s.n; l++)
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

/* 0: every order comes to its end, no byte is in use twice; 1: some order stands still; 2: bytes in use twice. */
static int search(const LaneNet *net, bool buffered)
{
	s.net = net;
	s.buffered = buffered;
	s.n = 0;
	for (int r = 0; r < net->nrole; r++)
		for (int l = 0; l < net->role[r].nlane; l++) {
			s.role[s.n] = r;
			s.lane[s.n++] = &net->role[r].lane[l];
		}
	memset(table, 0, sizeof *table * 2 * STATES);
	nstate = 0;
	visit(&(State){ 0 });
	for (int i = 0; i < nstate; i++) {
		State x = states[i];
		bool more = false, whole = true;
		for (int l = 0; l < s.n; l++) {
			more |= follow(x, l);
			whole = whole && x.done[l] == end_of(l);
		}
		if (!more && !whole)
			return 1;
		for (int r = 0; r < net->nrole && buffered; r++)
			if (collides(&x, r))
				return 2;
	}
	return 0;
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
static void one_lane(LaneRole *r, Arena *a, const LaneNet *n)
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

static void random_net(Arena *a, bool bug, LaneNet *n)
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

int main(void)
{
	int wrong = 0, verdicts[3] = { 0 };
	long searched = 0;
	states = calloc(STATES, sizeof *states);
	table = calloc(2 * STATES, sizeof *table);
	for (int i = 0; i < 300; i++) {
		Arena a = { 0 };
		LaneNet n;
		random_net(&a, i % 2, &n);
		const char *why = check_net(&n, &a);
		int found = search(&n, false);
		searched += nstate;
		if (!found) {
			found = search(&n, true);
			searched += nstate;
		}
		verdicts[found]++;
		if ((why != NULL) != (found != 0) && wrong++ < 5)
			printf("not ok net %d: the search finds %s, check_net %s\n", i,
				found == 2 ? "bytes in use twice" : found ? "a standstill" : "nothing",
				why ? why : "nothing");
		/* two micro-batches of a block change places: a register is read in another order than made */
		Lane *l = &n.role[0].lane[0];
		for (int k = 1; k < l->ntask && !why; k++)
			if (l->task[k].act == DO_BLOCK && l->task[k].id == l->task[0].id) {
				l->task[0].micro = l->task[k].micro;
				l->task[k].micro = 0;
				if (!check_net(&n, &a) && wrong++ < 5)
					printf("not ok net %d: exchanged micro-batches are not refused\n", i);
				break;
			}
		arena_free(&a);
	}
	if (!wrong && verdicts[0] > 50 && verdicts[1] > 50 && verdicts[2] > 20)
		printf("ok %d nets run, %d stand still, %d share bytes: %ld states\n", verdicts[0], verdicts[1],
			verdicts[2], searched);
	else
		printf("not ok verdicts: %d nets run, %d stand still, %d share bytes, %d wrong\n", verdicts[0],
			verdicts[1], verdicts[2], wrong);
	free(states);
	free(table);
	return 0;
}
