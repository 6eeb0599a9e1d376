/* Finds bytes that two uses hold at the same time.  An area is the pieces of a register, or the scratch of a block.
 * While the net is walked, vector clocks compare the areas of a role that share bytes: one use must end before the next
 * begins, by the order of lanes, registers and messages alone.  Only orderings that hold for both kinds of sends count:
 * a receive writes after the send has begun, and a send knows nothing of its receive.  (Clocks and the test at the
 * beginning of a use: Flanagan and Freund, "FastTrack", PLDI 2009, section 3.)
 *
 * The walk is one order of all tasks.  If a use begins in it and the end of an earlier use is not in its past, then
 * some run has both at the same time; if the end is in its past, no run has.  So the test at each beginning is enough.
 * Clocks count only lanes on which a use of shared bytes ends. */
#include "lanes/walk.h"

#include <stdlib.h>
#include <string.h>

/* An object in the memory area of a role: the copies of a register, or the scratch of a block. */
typedef struct Area {
	int role, reg, actor;           /* reg or actor is -1 */
	int64_t from, bytes;
	int copies;
	int *beside, nbeside;           /* areas that share bytes with it */
} Area;
/* By piece of an area: its last use.  An end is a lane and how many tasks it had ended. */
typedef struct Tenant { bool began; int open; int *lane; int32_t *end; int nend; } Tenant;
typedef struct Clocks {
	Walk *w;
	int n;                          /* lanes that are counted */
	int *count;                     /* by lane: its index among them, or -1 */
	int32_t *now;                   /* [lane][n]: tasks of each counted lane that are in its past */
	int32_t **made, **given;        /* by register, by use: [piece][n]; NULL: only its own lane reads it */
	int32_t **sent;                 /* by channel: [n] of its last message */
	int32_t *tasks;                 /* by lane: tasks ended */
	Area *area; int narea;
	Tenant **tenant;                /* by area, by piece */
	int *area_of_reg, *area_of_actor;
	const char *why;
} Clocks;

static void join(int32_t *a, const int32_t *b, int n)
{
	for (int i = 0; i < n; i++)
		a[i] = a[i] > b[i] ? a[i] : b[i];
}

static bool share(const Area *a, int i, const Area *b, int k)
{
	int64_t x = a->from + i * a->bytes, y = b->from + k * b->bytes;
	return x < y + b->bytes && y < x + a->bytes;
}

static int compare_areas(const void *x, const void *y)
{
	const Area *a = x, *b = y;
	if (a->role != b->role)
		return a->role - b->role;
	return a->from < b->from ? -1 : a->from > b->from;
}

static void list_areas(Clocks *c)
{
	Walk *w = c->w;
	for (int i = 0; i < w->nreg; i++) {
		const LaneRegister *r = w->reg[i].r;
		Area a = { .role = w->reg[i].role, .reg = i, .actor = -1, .from = r->offset, .bytes = r->bytes,
			.copies = r->copies };
		if (r->bytes > 0)
			arena_push(w->arena, c->area, c->narea, a);
	}
	for (int i = 0; i < w->channel0; i++) {
		const LaneBlock *b = w->actor[i].block;
		Area a = { .role = w->actor[i].role, .reg = -1, .actor = i, .from = b->offset, .bytes = b->scratch,
			.copies = 1 };
		if (b->scratch > 0 && w->actor[i].lane >= 0)
			arena_push(w->arena, c->area, c->narea, a);
	}
	if (c->narea)
		qsort(c->area, (size_t)c->narea, sizeof *c->area, compare_areas);
}

/* Areas that share bytes; false: there are none.  Scratch of one lane is never in use twice. */
static bool find_shared(Clocks *c)
{
	bool any = false;
	for (int i = 0; i < c->narea; i++)
		for (int k = i + 1; k < c->narea; k++) {
			Area *a = &c->area[i], *b = &c->area[k];
			if (b->role != a->role || b->from >= a->from + a->bytes * a->copies)
				break;
			if (a->actor >= 0 && b->actor >= 0 && c->w->actor[a->actor].lane == c->w->actor[b->actor].lane)
				continue;
			arena_push(c->w->arena, a->beside, a->nbeside, k);
			arena_push(c->w->arena, b->beside, b->nbeside, i);
			any = true;
		}
	return any;
}

/* The number of ends of a use: each lane that reads the area gives it back; without readers, the maker ends the use. */
static int ends_of(const Walk *w, const Area *a)
{
	return a->reg >= 0 && w->reg[a->reg].nuse ? w->reg[a->reg].nuse : 1;
}

static void count_lane(Clocks *c, int lane)
{
	if (c->count[lane] < 0)
		c->count[lane] = c->n++;
}

static void count_lanes(Clocks *c)
{
	const Walk *w = c->w;
	c->count = arena_array(w->arena, int, w->nlane + 1);
	memset(c->count, -1, sizeof(int) * (size_t)w->nlane);
	for (int i = 0; i < c->narea; i++) {
		const Area *x = &c->area[i];
		const WalkReg *r = x->reg >= 0 ? &w->reg[x->reg] : NULL;
		int maker = r ? r->maker : w->actor[x->actor].lane;
		for (int k = 0; x->nbeside && r && k < r->nuse; k++)
			count_lane(c, w->use[r->use[k]].lane);
		if (x->nbeside && !(r && r->nuse) && maker >= 0)
			count_lane(c, maker);
	}
}

static void clocks_begin(Clocks *c)
{
	Walk *w = c->w;
	Arena *a = w->arena;
	count_lanes(c);
	c->now = arena_array(a, int32_t, (size_t)w->nlane * (size_t)c->n);
	c->tasks = arena_array(a, int32_t, w->nlane);
	c->made = arena_array(a, int32_t *, w->nreg + 1);
	c->given = arena_array(a, int32_t *, w->nuse + 1);
	c->sent = arena_array(a, int32_t *, w->net->nchannel + 1);
	c->area_of_reg = arena_array(a, int, w->nreg + 1);
	c->area_of_actor = arena_array(a, int, w->nactor + 1);
	c->tenant = arena_array(a, Tenant *, c->narea + 1);
	memset(c->area_of_reg, -1, sizeof(int) * (size_t)w->nreg);
	memset(c->area_of_actor, -1, sizeof(int) * (size_t)w->nactor);
	for (int u = 0; u < w->nuse; u++) {
		const WalkReg *r = &w->reg[w->use[u].reg];
		if (r->maker == w->use[u].lane)
			continue;
		size_t cells = (size_t)r->r->copies * (size_t)c->n;
		c->given[u] = arena_array(a, int32_t, cells);
		if (!c->made[w->use[u].reg])
			c->made[w->use[u].reg] = arena_array(a, int32_t, cells);
	}
	for (int i = 0; i < w->net->nchannel; i++)
		c->sent[i] = arena_array(a, int32_t, c->n);
	for (int i = 0; i < c->narea; i++) {
		const Area *x = &c->area[i];
		if (!x->nbeside)
			continue;
		*(x->reg >= 0 ? &c->area_of_reg[x->reg] : &c->area_of_actor[x->actor]) = i;
		int ends = ends_of(w, x);
		c->tenant[i] = arena_array(a, Tenant, x->copies);
		for (int k = 0; k < x->copies; k++) {
			Tenant *t = &c->tenant[i][k];
			t->lane = arena_array(a, int, ends + 1);
			t->end = arena_array(a, int32_t, ends + 1);
			/* pieces that exist before the first step */
			t->began = x->reg >= 0 && k < w->reg[x->reg].r->first;
			t->open = t->began ? ends : 0;
		}
	}
}

static const char *area_name(const Clocks *c, const Area *a)
{
	return a->reg >= 0 ? c->w->reg[a->reg].r->name : arena_printf(c->w->arena, "scratch of %s",
		c->w->actor[a->actor].block->name);
}

/* A use begins on `lane`: checks that the last uses of areas that share its bytes are in its past. */
static void enter(Clocks *c, int lane, int area, int piece)
{
	const Area *a = &c->area[area];
	const int32_t *now = c->now + (size_t)lane * (size_t)c->n;
	for (int i = 0; i < a->nbeside && !c->why; i++) {
		const Area *b = &c->area[a->beside[i]];
		for (int k = 0; k < b->copies && !c->why; k++) {
			const Tenant *t = &c->tenant[a->beside[i]][k];
			if (!t->began || !share(a, piece, b, k))
				continue;
			bool past = !t->open;
			for (int e = 0; e < t->nend && past; e++)
				past = t->end[e] <= now[c->count[t->lane[e]]];
			if (!past)
				c->why = arena_printf(c->w->arena, "%s writes %s over %s, which may still be in use",
					walk_name(c->w, lane), area_name(c, a), area_name(c, b));
		}
	}
	Tenant *t = &c->tenant[area][piece];
	t->began = true;
	t->open = ends_of(c->w, a);
	t->nend = 0;
}

static void leave(Clocks *c, int lane, int area, int piece)
{
	Tenant *t = &c->tenant[area][piece];
	t->lane[t->nend] = lane;
	t->end[t->nend++] = c->tasks[lane];
	t->open--;
}

static void at_start(Clocks *c, int lane, const WalkActor *a)
{
	Walk *w = c->w;
	int32_t *now = c->now + (size_t)lane * (size_t)c->n;
	for (int i = 0; i < a->nwait; i++) {
		const WalkUse *u = &w->use[a->wait[i]];
		const WalkReg *r = &w->reg[u->reg];
		if (c->given[a->wait[i]])
			join(now, c->made[u->reg] + u->seen % r->r->copies * c->n, c->n);
	}
	for (int i = 0; i < a->nmake; i++) {
		const WalkReg *r = &w->reg[a->make[i]];
		for (int k = 0; k < r->nuse; k++)
			if (c->given[r->use[k]] && r->made >= r->r->copies)
				join(now, c->given[r->use[k]] + r->made % r->r->copies * c->n, c->n);
	}
	if (a->act == DO_SEND)
		memcpy(c->sent[a->channel], now, sizeof *now * (size_t)c->n);
	if (a->act == DO_RECEIVE)
		join(now, c->sent[a->channel], c->n);
	for (int i = 0; i < a->nmake; i++) {
		const WalkReg *r = &w->reg[a->make[i]];
		int area = c->area_of_reg[a->make[i]];
		if (area >= 0)
			enter(c, lane, area, (int)(r->made % r->r->copies));
	}
	int area = c->area_of_actor[a - w->actor];
	if (area >= 0)
		enter(c, lane, area, 0);
}

static void at_end(Clocks *c, int lane, const WalkActor *a)
{
	Walk *w = c->w;
	int32_t *now = c->now + (size_t)lane * (size_t)c->n;
	size_t bytes = sizeof *now * (size_t)c->n;
	if (a->act == DO_RECEIVE)
		join(now, c->sent[a->channel], c->n);
	c->tasks[lane]++;
	if (c->count[lane] >= 0)
		now[c->count[lane]] = c->tasks[lane];
	if (a->act == DO_SEND)
		memcpy(c->sent[a->channel], now, bytes);
	for (int i = 0; i < a->nmake; i++) {
		const WalkReg *r = &w->reg[a->make[i]];
		if (c->made[a->make[i]])
			memcpy(c->made[a->make[i]] + r->made % r->r->copies * c->n, now, bytes);
		if (!r->nuse && c->area_of_reg[a->make[i]] >= 0)
			leave(c, lane, c->area_of_reg[a->make[i]], (int)(r->made % r->r->copies));
	}
	for (int i = 0; i < a->ngive; i++) {
		const WalkUse *u = &w->use[a->give[i]];
		const WalkReg *r = &w->reg[u->reg];
		int piece = r->piece ? r->piece[walk_task(w, lane)->micro] : (int)(u->given % r->r->copies);
		int area = c->area_of_reg[u->reg];
		if (c->given[a->give[i]])
			memcpy(c->given[a->give[i]] + piece * c->n, now, bytes);
		if (area >= 0)
			leave(c, lane, area, piece);
	}
	int area = c->area_of_actor[a - w->actor];
	if (area >= 0)
		leave(c, lane, area, 0);
}

/* After a meeting, each of its lanes knows what all of them know. */
static void at_meeting(Clocks *c, const WalkMeet *m, int n)
{
	int32_t *first = c->now + (size_t)m->lane[0] * (size_t)c->n;
	for (int i = 1; i < n; i++)
		join(first, c->now + (size_t)m->lane[i] * (size_t)c->n, c->n);
	for (int i = 1; i < n; i++)
		memcpy(c->now + (size_t)m->lane[i] * (size_t)c->n, first, sizeof *first * (size_t)c->n);
}

static void see(Walk *w, int lane, WalkMoment moment, void *with)
{
	Clocks *c = with;
	const WalkActor *a = walk_actor(w, lane);
	if (c->why)
		return;
	if (moment == WALK_START)
		at_start(c, lane, a);
	else if (moment == WALK_END)
		at_end(c, lane, a);
	else {
		int id = a->block->meet[w->lane[lane].met - 1];
		at_meeting(c, &w->meet[id], w->net->meet[id].nrole);
	}
}

const char *bytes_run(Walk *w)
{
	Clocks c = { .w = w };
	list_areas(&c);
	bool shared = find_shared(&c);
	if (shared)
		clocks_begin(&c);
	walk_run(w, shared ? see : NULL, &c);
	return c.why;
}
