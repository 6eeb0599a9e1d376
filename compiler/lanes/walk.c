/* The state of a net (walk.h): its tables, and the four moves of a lane: look, start, meet, end. */
#include "lanes/walk.h"

#include <string.h>

/* ---- tables ---- */

static int use_of(Walk *w, int reg, int lane)
{
	WalkReg *r = &w->reg[reg];
	for (int i = 0; i < r->nuse; i++)
		if (w->use[r->use[i]].lane == lane)
			return r->use[i];
	arena_push(w->arena, r->use, r->nuse, w->nuse);
	arena_push(w->arena, w->use, w->nuse, ((WalkUse){ .reg = reg, .lane = lane }));
	return w->nuse - 1;
}

static const char *bind_make(Walk *w, WalkActor *a, int reg)
{
	WalkReg *r = &w->reg[reg];
	if (r->maker >= 0 && r->maker != a->lane)
		return arena_printf(w->arena, "%s: two lanes make %s", w->net->role[a->role].name, r->r->name);
	r->maker = a->lane;
	arena_push(w->arena, a->make, a->nmake, reg);
	return NULL;
}

static const char *bind_block(Walk *w, WalkActor *a)
{
	const LaneBlock *b = a->block;
	int base = w->reg0[a->role];
	const char *why = NULL;
	for (int i = 0; i < b->nwait; i++)
		arena_push(w->arena, a->wait, a->nwait, use_of(w, base + b->wait[i], a->lane));
	for (int i = 0; i < b->ngive; i++)
		arena_push(w->arena, a->give, a->ngive, use_of(w, base + b->give[i], a->lane));
	for (int i = 0; i < b->nmake && !why; i++)
		why = bind_make(w, a, base + b->make[i]);
	return why;
}

static const char *bind_end(Walk *w, WalkActor *a)
{
	const LaneChannel *c = &w->net->channel[a->channel];
	if (a->act == DO_RECEIVE)
		return bind_make(w, a, w->reg0[c->to] + c->to_reg);
	int use = use_of(w, w->reg0[c->from] + c->from_reg, a->lane);
	arena_push(w->arena, a->wait, a->nwait, use);
	arena_push(w->arena, a->give, a->ngive, use);
	return NULL;
}

static int actor_of(const Walk *w, int role, const LaneTask *t)
{
	return t->act == DO_BLOCK ? w->actor0[role] + t->id : w->channel0 + 2 * t->id + (t->act == DO_RECEIVE);
}

static const char *bind_task(Walk *w, int lane, const LaneTask *t)
{
	int role = w->lane[lane].role;
	WalkActor *a = &w->actor[actor_of(w, role, t)];
	if (a->role != role)
		return arena_printf(w->arena, "%s: an end of channel %s that is not its own", w->net->role[role].name,
			w->net->channel[t->id].name);
	if (a->lane == lane)
		return NULL;
	if (a->lane >= 0)
		return arena_printf(w->arena, "%s: two lanes run %s", w->net->role[role].name,
			t->act == DO_BLOCK ? a->block->name : w->net->channel[t->id].name);
	a->lane = lane;
	return t->act == DO_BLOCK ? bind_block(w, a) : bind_end(w, a);
}

static void list_actors(Walk *w)
{
	const LaneNet *n = w->net;
	w->actor = arena_array(w->arena, WalkActor, w->nactor + 1);
	for (int r = 0, k = 0; r < n->nrole; r++)
		for (int b = 0; b < n->role[r].nblock; b++)
			w->actor[k++] = (WalkActor){ .role = r, .lane = -1, .block = &n->role[r].block[b] };
	for (int c = 0; c < n->nchannel; c++)
		for (int d = 0; d < 2; d++)
			w->actor[w->channel0 + 2 * c + d] = (WalkActor){ .act = d ? DO_RECEIVE : DO_SEND, .lane = -1,
				.role = d ? n->channel[c].to : n->channel[c].from, .channel = c };
}

const char *walk_begin(Walk *w, const LaneNet *n, int steps, bool buffered, Arena *a)
{
	*w = (Walk){ .net = n, .arena = a, .steps = steps, .buffered = buffered };
	w->reg0 = arena_array(a, int, n->nrole + 1);
	w->actor0 = arena_array(a, int, n->nrole + 1);
	for (int r = 0; r < n->nrole; r++) {
		w->reg0[r] = w->nreg;
		w->actor0[r] = w->nactor;
		w->nreg += n->role[r].nreg;
		w->nactor += n->role[r].nblock;
		w->nlane += n->role[r].nlane;
	}
	w->channel0 = w->nactor;
	w->nactor += 2 * n->nchannel;
	w->reg = arena_array(a, WalkReg, w->nreg + 1);
	w->lane = arena_array(a, WalkLane, w->nlane + 1);
	w->todo = arena_array(a, int, w->nlane + 1);
	w->meet = arena_array(a, WalkMeet, n->nmeet + 1);
	w->arrived = arena_array(a, int64_t, n->nchannel + 1);
	for (int m = 0; m < n->nmeet; m++)
		w->meet[m].lane = arena_array(a, int, n->meet[m].nrole);
	list_actors(w);
	for (int r = 0, k = 0; r < n->nrole; r++)
		for (int i = 0; i < n->role[r].nreg; i++, k++)
			w->reg[k] = (WalkReg){ .r = &n->role[r].reg[i], .role = r, .maker = -1,
				.made = n->role[r].reg[i].first };
	const char *why = NULL;
	for (int r = 0, k = 0; r < n->nrole; r++)
		for (int l = 0; l < n->role[r].nlane; l++, k++) {
			const Lane *lane = &n->role[r].lane[l];
			w->lane[k] = (WalkLane){ .role = r, .lane = lane };
			for (int i = 0; i < lane->ntask && !why; i++)
				why = bind_task(w, k, &lane->task[i]);
		}
	for (int l = w->nlane - 1; l >= 0; l--)
		walk_wake(w, l);
	return why;
}

/* ---- moves ---- */

void walk_wake(Walk *w, int lane)
{
	if (lane >= 0 && !w->lane[lane].queued) {
		w->lane[lane].queued = true;
		w->todo[w->ntodo++] = lane;
	}
}

int walk_next(Walk *w)
{
	if (!w->ntodo)
		return -1;
	int lane = w->todo[--w->ntodo];
	w->lane[lane].queued = false;
	return lane;
}

bool walk_done(const Walk *w, int lane)
{
	return w->lane[lane].step == w->steps || !w->lane[lane].lane->ntask;
}

const LaneTask *walk_task(const Walk *w, int lane)
{
	return &w->lane[lane].lane->task[w->lane[lane].pos];
}

const WalkActor *walk_actor(const Walk *w, int lane)
{
	return &w->actor[actor_of(w, w->lane[lane].role, walk_task(w, lane))];
}

int walk_other(const Walk *w, int channel, LaneDo end)
{
	return w->actor[w->channel0 + 2 * channel + (end == DO_RECEIVE)].lane;
}

/* Whether pieces or room are missing for the task of a lane. */
static bool lacks_pieces(const Walk *w, const WalkActor *a, WalkLack *lack)
{
	for (int i = 0; i < a->nwait; i++) {
		const WalkUse *u = &w->use[a->wait[i]];
		if (w->reg[u->reg].made <= u->seen) {
			*lack = (WalkLack){ WAIT_PIECE, u->reg, w->reg[u->reg].maker };
			return true;
		}
	}
	for (int i = 0; i < a->nmake; i++) {
		const WalkReg *r = &w->reg[a->make[i]];
		for (int k = 0; k < r->nuse; k++)
			if (w->use[r->use[k]].given + r->r->copies <= r->made) {
				*lack = (WalkLack){ WAIT_ROOM, a->make[i], w->use[r->use[k]].lane };
				return true;
			}
	}
	return false;
}

bool walk_lacks(const Walk *w, int lane, WalkLack *lack)
{
	const WalkActor *a = walk_actor(w, lane);
	if (lacks_pieces(w, a, lack))
		return true;
	*lack = (WalkLack){ .lane = -1 };
	if (a->act == DO_BLOCK || (w->buffered && a->act == DO_SEND))
		return false;
	int other = walk_other(w, a->channel, a->act == DO_SEND ? DO_RECEIVE : DO_SEND);
	*lack = (WalkLack){ WAIT_PEER, a->channel, other };
	if (w->buffered)
		return !w->arrived[a->channel];
	WalkLack ignored;
	if (other < 0 || other == lane || walk_done(w, other) || w->lane[other].state != WALK_IDLE)
		return true;
	const WalkActor *b = walk_actor(w, other);
	return b->act == DO_BLOCK || b->channel != a->channel || b->act == a->act || lacks_pieces(w, b, &ignored);
}

int walk_start(Walk *w, int lane)
{
	const WalkActor *a = walk_actor(w, lane);
	w->lane[lane].state = WALK_RUNS;
	w->lane[lane].met = 0;
	if (a->act == DO_BLOCK || w->buffered) {
		w->arrived[a->channel] -= a->act == DO_RECEIVE;
		return -1;
	}
	int other = walk_other(w, a->channel, a->act == DO_SEND ? DO_RECEIVE : DO_SEND);
	w->lane[other].state = WALK_RUNS;
	return other;
}

bool walk_meet(Walk *w, int lane)
{
	WalkLane *l = &w->lane[lane];
	int id = walk_actor(w, lane)->block->meet[l->met];
	WalkMeet *m = &w->meet[id];
	l->state = WALK_MEETS;
	m->lane[m->nlane++] = lane;
	if (m->nlane < w->net->meet[id].nrole)
		return false;
	for (int i = 0; i < m->nlane; i++) {
		w->lane[m->lane[i]].met++;
		w->lane[m->lane[i]].state = WALK_RUNS;
	}
	m->nlane = 0;
	return true;
}

void walk_end(Walk *w, int lane)
{
	WalkLane *l = &w->lane[lane];
	const WalkActor *a = walk_actor(w, lane);
	for (int i = 0; i < a->nwait; i++)
		w->use[a->wait[i]].seen++;
	for (int i = 0; i < a->nmake; i++) {
		WalkReg *r = &w->reg[a->make[i]];
		r->made++;
		for (int k = 0; k < r->nuse; k++)
			walk_wake(w, w->use[r->use[k]].lane);
	}
	for (int i = 0; i < a->ngive; i++) {
		WalkUse *u = &w->use[a->give[i]];
		u->given++;
		walk_wake(w, w->reg[u->reg].maker);
	}
	l->state = WALK_IDLE;
	if (++l->pos == l->lane->ntask) {
		l->pos = 0;
		l->step++;
	}
	walk_wake(w, lane);
}

typedef void See(Walk *, int lane, WalkMoment, void *);

static void ignore(Walk *w, int lane, WalkMoment m, void *with)
{
	(void)w, (void)lane, (void)m, (void)with;
}

static void end(Walk *w, int lane, See *see, void *with)
{
	see(w, lane, WALK_END, with);
	walk_end(w, lane);
}

/* Goes on with a block that runs, to its end or to the first meeting that is not complete. */
static void go_on(Walk *w, int lane, See *see, void *with)
{
	const LaneBlock *b = walk_actor(w, lane)->block;
	while (w->lane[lane].met < b->nmeet) {
		const WalkMeet *m = &w->meet[b->meet[w->lane[lane].met]];
		if (!walk_meet(w, lane))
			return;
		for (int i = 0; i < w->net->meet[m - w->meet].nrole; i++) {
			see(w, m->lane[i], WALK_MET, with);
			walk_wake(w, m->lane[i]);
		}
	}
	end(w, lane, see, with);
}

void walk_run(Walk *w, See *see, void *with)
{
	WalkLack lack;
	see = see ? see : ignore;
	for (int lane; (lane = walk_next(w)) >= 0;) {
		if (w->lane[lane].state == WALK_RUNS) {
			go_on(w, lane, see, with);
			continue;
		}
		if (w->lane[lane].state == WALK_MEETS || walk_done(w, lane) || walk_lacks(w, lane, &lack))
			continue;
		const WalkActor *a = walk_actor(w, lane);
		int other = walk_start(w, lane);
		int first = a->act == DO_SEND || other < 0 ? lane : other, second = first == lane ? other : lane;
		see(w, first, WALK_START, with);
		if (a->act == DO_BLOCK) {
			go_on(w, lane, see, with);
		} else if (other < 0) {
			w->arrived[a->channel] += a->act == DO_SEND;
			if (a->act == DO_SEND)
				walk_wake(w, walk_other(w, a->channel, DO_RECEIVE));
			end(w, lane, see, with);
		} else {
			see(w, second, WALK_START, with);
			end(w, first, see, with);
			end(w, second, see, with);
		}
	}
}

char *walk_name(const Walk *w, int lane)
{
	const char *role = w->net->role[w->lane[lane].role].name;
	if (walk_done(w, lane))
		return arena_printf(w->arena, "%s: at its end", role);
	const LaneTask *t = walk_task(w, lane);
	const WalkActor *a = walk_actor(w, lane);
	static const char *const verb[] = { [DO_BLOCK] = "", [DO_SEND] = "send ", [DO_RECEIVE] = "receive " };
	const char *what = a->act == DO_BLOCK ? a->block->name : w->net->channel[a->channel].name;
	char *name = arena_printf(w->arena, "%s: %s%s", role, verb[t->act], what);
	return t->micro < 0 ? name : arena_printf(w->arena, "%s of micro-batch %d", name, t->micro);
}
