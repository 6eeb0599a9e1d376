/* The proof that a net does what it should, in any order in which its lanes can run, without times.
 *
 * From the lists alone:
 *   - each stage runs F, B and W (or F and BW) once for each micro-batch, in this order, on its own rank (tables.c);
 *   - a register is made, read and given back equally often in a step, by each lane in the same order of
 *     micro-batches; one that stays on its maker's lane and has a copy for each micro-batch may be read in any order;
 *   - the ends of a channel agree in number, order and size of messages; a meeting has one lane of each role.
 * By a walk over two steps, in which a send ends only when it is received: all lanes come to their end.  One walk
 * decides, because lanes are Kahn processes (walk.h), and a net that needs no buffered sends also runs with them.  A
 * register that its maker's lane reads itself has no counter in programs: such a lane does not wait, it overwrites.
 * During the same walk, bytes.c looks for bytes that are in use twice. */
#include "lanes/walk.h"

#include <string.h>

static const char *say(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *say(Arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char text[1024];
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return arena_printf(a, "%s", text);
}

/* ---- an order ---- */

static const char *const kind_name[] = { [BLOCK_F] = "F", [BLOCK_B] = "B", [BLOCK_W] = "W", [BLOCK_BW] = "BW" };
enum { RAN_F = 1, RAN_B = 2, RAN_W = 4 };
static const struct { int needs, gives; const char *after; } rules[] = {
	[BLOCK_F] = { 0, RAN_F, "" },
	[BLOCK_B] = { RAN_F, RAN_B, "F" },
	[BLOCK_W] = { RAN_B, RAN_W, "B" },
	[BLOCK_BW] = { RAN_F, RAN_B | RAN_W, "F" },
};

static const char *check_task(const Pipeline *p, const PipeTask *t, int r, uint8_t *ran, Arena *a)
{
	bool known = t->kind == BLOCK_F || t->kind == BLOCK_B || t->kind == BLOCK_W || t->kind == BLOCK_BW;
	if (!known || t->stage < 0 || t->stage >= p->nstage || t->micro < 0 || t->micro >= p->micros)
		return say(a,
			"rank %d: a task of stage %d and micro-batch %d; there are %d stages and %d micro-batches", r,
			t->stage, t->micro, p->nstage, p->micros);
	const char *name = kind_name[t->kind];
	uint8_t *state = &ran[t->stage * p->micros + t->micro];
	if (p->stage[t->stage].rank != r)
		return say(a, "rank %d: %s%d of micro-batch %d; stage %d is on rank %d", r, name, t->stage, t->micro,
			t->stage, p->stage[t->stage].rank);
	if (*state & rules[t->kind].gives)
		return say(a, "rank %d: %s%d of micro-batch %d for the second time", r, name, t->stage, t->micro);
	if ((*state & rules[t->kind].needs) != rules[t->kind].needs)
		return say(a, "rank %d: %s%d of micro-batch %d before %s%d", r, name, t->stage, t->micro,
			rules[t->kind].after, t->stage);
	*state |= (uint8_t)rules[t->kind].gives;
	return NULL;
}

/* Gradients of a stage are reduced once, behind its last gradient of weights. */
static const char *check_reduce(const Pipeline *p, const PipeTask *t, int r, const uint8_t *ran, bool *reduced,
	Arena *a)
{
	if (t->stage < 0 || t->stage >= p->nstage || t->micro != -1)
		return say(a, "rank %d: a reduction of stage %d; there are %d stages", r, t->stage, p->nstage);
	if (p->stage[t->stage].rank != r)
		return say(a, "rank %d: reduce%d; stage %d is on rank %d", r, t->stage, t->stage,
			p->stage[t->stage].rank);
	if (reduced[t->stage])
		return say(a, "rank %d: reduce%d for the second time", r, t->stage);
	for (int m = 0; m < p->micros; m++)
		if (!(ran[t->stage * p->micros + m] & RAN_W))
			return say(a, "rank %d: reduce%d before the gradients of weights of micro-batch %d", r,
				t->stage, m);
	reduced[t->stage] = true;
	return NULL;
}

const char *check_order(const Pipeline *p, const PipeOrder *o, Arena *a)
{
	uint8_t *ran = arena_array(a, uint8_t, (size_t)p->nstage * (size_t)p->micros);
	bool *reduced = arena_array(a, bool, p->nstage);
	const char *why = NULL;
	for (int r = 0; r < p->nrank && !why; r++)
		for (int i = 0; i < o->ntask[r] && !why; i++)
			why = o->task[r][i].kind == BLOCK_REDUCE
				? check_reduce(p, &o->task[r][i], r, ran, reduced, a)
				: check_task(p, &o->task[r][i], r, ran, a);
	for (int s = 0; s < p->nstage && !why; s++)
		for (int m = 0; m < p->micros && !why; m++) {
			int left = (RAN_F | RAN_B | RAN_W) & ~ran[s * p->micros + m];
			if (left)
				why = say(a, "rank %d: %s%d of micro-batch %d is missing", p->stage[s].rank,
					left & RAN_F ? "F" : left & RAN_B ? "B" : "W", s, m);
		}
	return why;
}

/* ---- lists ---- */

typedef struct Micros { int *v, n; } Micros;    /* micro-batches, in the order of a lane */

static void note(Walk *w, Micros *m, int micro)
{
	arena_push(w->arena, m->v, m->n, micro);
}

/* Whether one lane alone makes, reads and gives back a register, each micro-batch in a copy of its own, in any order
 * that is legal for each of them.  Then notes the pieces. */
static bool any_order(Walk *w, WalkReg *r, const Micros *made)
{
	int most = 0, id = (int)(r - w->reg);
	for (int i = 0; i < made->n; i++)
		most = made->v[i] > most ? made->v[i] : most;
	if (r->nuse != 1 || w->use[r->use[0]].lane != r->maker || r->r->copies != made->n || r->r->first)
		return false;
	char *state = arena_array(w->arena, char, most + 1);            /* made, read, given back */
	int *piece = arena_array(w->arena, int, most + 1), n = 0;
	WalkLane *l = &w->lane[r->maker];
	bool good = true;
	for (l->pos = 0; l->pos < l->lane->ntask && good; l->pos++) {
		const WalkActor *a = walk_actor(w, r->maker);
		int m = walk_task(w, r->maker)->micro;
		bool makes = false, waits = false, gives = false;
		for (int i = 0; i < a->nmake; i++)
			makes = makes || a->make[i] == id;
		for (int i = 0; i < a->nwait; i++)
			waits = waits || a->wait[i] == r->use[0];
		for (int i = 0; i < a->ngive; i++)
			gives = gives || a->give[i] == r->use[0];
		if (!makes && !waits && !gives)
			continue;
		good = m >= 0 && m <= most && (!makes || !state[m]) && (!waits || state[m] == 1);
		if (good && makes)
			piece[m] = n++;
		if (good)
			state[m] = (char)(state[m] + makes + waits);
		good = good && (!gives || state[m] == 2);
		if (good)
			state[m] = (char)(state[m] + gives);
	}
	l->pos = 0;
	for (int i = 0; i < made->n; i++)
		good = good && made->v[i] >= 0 && state[made->v[i]] == 3;
	r->piece = good ? piece : NULL;
	return good;
}

/* The k-th piece read (or given back) must be the k-th made. */
static const char *same_order(Walk *w, const WalkReg *r, const Micros *made, const Micros *took, const char *verb)
{
	const char *role = w->net->role[r->role].name, *name = r->r->name;
	if (made->n != took->n)
		return say(w->arena, "%s: %s is made %d times in a step and %s %d times", role, name, made->n, verb,
			took->n);
	for (int i = 0; i < made->n; i++) {
		int from = made->v[((i - r->r->first) % made->n + made->n) % made->n];
		if (from >= 0 && took->v[i] >= 0 && from != took->v[i])
			return say(w->arena, "%s: %s is %s for micro-batch %d where micro-batch %d is next", role,
				name, verb, took->v[i], from);
	}
	return NULL;
}

/* For each register: the micro-batches that its maker and each of its readers handle in a step. */
typedef struct Lists { Micros *made, *seen, *given; } Lists;

static const char *read_lists(Walk *w, Lists *l)
{
	l->made = arena_array(w->arena, Micros, w->nreg + 1);
	l->seen = arena_array(w->arena, Micros, w->nuse + 1);
	l->given = arena_array(w->arena, Micros, w->nuse + 1);
	for (int k = 0; k < w->nlane; k++)
		for (int i = 0; i < w->lane[k].lane->ntask; i++) {
			w->lane[k].pos = i;
			const WalkActor *a = walk_actor(w, k);
			int micro = walk_task(w, k)->micro;
			for (int j = 0; j < a->nmake; j++)
				note(w, &l->made[a->make[j]], micro);
			for (int j = 0; j < a->nwait; j++)
				note(w, &l->seen[a->wait[j]], micro);
			for (int j = 0; j < a->ngive; j++) {
				note(w, &l->given[a->give[j]], micro);
				if (l->given[a->give[j]].n > l->seen[a->give[j]].n) {
					const char *name = w->reg[w->use[a->give[j]].reg].r->name;
					return say(w->arena, "%s gives %s back before its lane waits for it",
						walk_name(w, k), name);
				}
			}
		}
	for (int k = 0; k < w->nlane; k++)
		w->lane[k].pos = 0;
	return NULL;
}

static const char *check_lists(Walk *w)
{
	Lists l;
	const char *why = read_lists(w, &l);
	for (int u = 0; u < w->nuse && !why; u++) {
		WalkReg *r = &w->reg[w->use[u].reg];
		const Micros *made = &l.made[w->use[u].reg];
		if (r->maker < 0 && !l.given[u].n)
			continue;               /* the register is always there */
		why = same_order(w, r, made, &l.seen[u], "read");
		why = why ? why : same_order(w, r, made, &l.given[u], "given back");
		why = why && any_order(w, r, made) ? NULL : why;
	}
	return why;
}

static const char *check_channel(Walk *w, int c)
{
	const LaneChannel *h = &w->net->channel[c];
	Micros end[2] = { { 0 }, { 0 } };
	for (int d = 0; d < 2; d++) {
		int lane = walk_other(w, c, d ? DO_RECEIVE : DO_SEND);
		const Lane *l = lane < 0 ? NULL : w->lane[lane].lane;
		for (int i = 0; l && i < l->ntask; i++)
			if (l->task[i].act == (d ? DO_RECEIVE : DO_SEND) && l->task[i].id == c)
				note(w, &end[d], l->task[i].micro);
	}
	int64_t out = w->net->role[h->from].reg[h->from_reg].bytes, in = w->net->role[h->to].reg[h->to_reg].bytes;
	if (out != h->bytes || in != h->bytes)
		return say(w->arena, "channel %s has %lld bytes; its sender %lld, its receiver %lld", h->name,
			(long long)h->bytes, (long long)out, (long long)in);
	if (end[0].n != end[1].n)
		return say(w->arena, "channel %s: %d sends and %d receives in a step", h->name, end[0].n, end[1].n);
	for (int i = 0; i < end[0].n; i++)
		if (end[0].v[i] != end[1].v[i])
			return say(w->arena,
				"channel %s: message %d is sent for micro-batch %d and received for micro-batch %d",
				h->name, i, end[0].v[i], end[1].v[i]);
	return NULL;
}

/* The lane of a role that comes to a meeting; -1: none, -2: several. */
static int member(const Walk *w, int role, int meet)
{
	int found = -1;
	for (int i = 0; i < w->channel0; i++) {
		const WalkActor *a = &w->actor[i];
		for (int k = 0; a->role == role && k < a->block->nmeet; k++)
			if (a->block->meet[k] == meet && a->lane >= 0 && found != a->lane)
				found = found == -1 ? a->lane : -2;
	}
	return found;
}

static const char *check_meet(Walk *w, int m)
{
	for (int i = 0; i < w->net->meet[m].nrole; i++) {
		int role = w->net->meet[m].role[i], lane = member(w, role, m);
		if (lane < 0)
			return say(w->arena, "%s: %s lane comes to the meeting %s", w->net->role[role].name,
				lane == -1 ? "no" : "more than one", w->net->meet[m].name);
	}
	return NULL;
}

/* ---- standing still ---- */

static void what_lacks(const Walk *w, int lane, WalkLack *lack)
{
	if (w->lane[lane].state != WALK_MEETS) {
		walk_lacks(w, lane, lack);
		return;
	}
	int id = walk_actor(w, lane)->block->meet[w->lane[lane].met];
	const WalkMeet *m = &w->meet[id];
	*lack = (WalkLack){ WAIT_MEET, id, -1 };
	for (int i = 0; i < w->net->meet[id].nrole; i++) {
		int other = member(w, w->net->meet[id].role[i], id);
		bool there = false;
		for (int k = 0; k < m->nlane; k++)
			there = there || m->lane[k] == other;
		if (!there)
			lack->lane = other;
	}
}

static const char *waits_for(const Walk *w, const WalkLack *lack)
{
	const LaneRegister *r = lack->wait == WAIT_PIECE || lack->wait == WAIT_ROOM ? w->reg[lack->what].r : NULL;
	switch (lack->wait) {
	case WAIT_PIECE: return say(w->arena, "a piece of %s", r->name);
	case WAIT_ROOM: return say(w->arena, "room in %s (%d cop%s)", r->name, r->copies,
		r->copies == 1 ? "y" : "ies");
	case WAIT_PEER: return say(w->arena, "the other end of %s", w->net->channel[lack->what].name);
	case WAIT_MEET: return say(w->arena, "the meeting %s", w->net->meet[lack->what].name);
	default: return "nothing";
	}
}

/* From a lane that cannot go on, follows what each lane waits for, until a lane occurs for the second time. */
static const char *standstill(Walk *w, int lane)
{
	int *turn = arena_array(w->arena, int, w->nlane), n = 0, at = lane;
	WalkLack lack;
	while (at >= 0 && !walk_done(w, at) && !turn[at]) {
		turn[at] = ++n;
		what_lacks(w, at, &lack);
		if (lack.wait == WAIT_ROOM && lack.lane == at)
			return say(w->arena, "%s overwrites %s (%d cop%s) before its own lane gives it back",
				walk_name(w, at), w->reg[lack.what].r->name, w->reg[lack.what].r->copies,
				w->reg[lack.what].r->copies == 1 ? "y" : "ies");
		at = lack.lane;
	}
	bool circle = at >= 0 && !walk_done(w, at);
	int first = circle ? at : lane;
	const char *text = !circle ? "a lane waits for what never comes:" : lack.lane == at && turn[at] == n ?
		"a lane waits for itself:" : "lanes wait for each other:";
	for (int i = first, k = 0; i >= 0 && !walk_done(w, i) && !(k && i == first); i = lack.lane, k++) {
		what_lacks(w, i, &lack);
		text = arena_printf(w->arena, "%s\n  %s waits for %s", text, walk_name(w, i), waits_for(w, &lack));
	}
	return text;
}

static const char *check_walk(Walk *w)
{
	const char *why = bytes_run(w);
	for (int l = 0; l < w->nlane; l++)
		if (!walk_done(w, l))
			return standstill(w, l);
	return why;
}

const char *check_net(const LaneNet *net, Arena *arena)
{
	Arena scratch = { 0 };
	Walk w;
	const char *why = tables_check(net, &scratch);
	why = why ? why : walk_begin(&w, net, 2, false, &scratch);
	why = why ? why : check_lists(&w);
	for (int c = 0; c < net->nchannel && !why; c++)
		why = check_channel(&w, c);
	for (int m = 0; m < net->nmeet && !why; m++)
		why = check_meet(&w, m);
	why = why ? why : check_walk(&w);
	why = why ? arena_printf(arena, "%s", why) : NULL;
	arena_free(&scratch);
	return why;
}

void check_explain(Loc at, const char *why)
{
	bool first = true;
	for (const char *end; *why; why = *end ? end + 1 : end, first = false) {
		end = why + strcspn(why, "\n");
		why += strspn(why, " ");
		if (first)
			err_at(at, "%.*s", (int)(end - why), why);
		else
			note_at((Loc){ 0 }, "%.*s", (int)(end - why), why);
	}
}
