/* List scheduling: an order made by playing the pipeline once.  The rank that can act first acts next, and takes the
 * best of the blocks that can start by then: B, then F while memory and a cap on micro-batches in flight allow it,
 * then W.  Rules vary this:
 *
 *   cap        micro-batches in flight: all that fit, what the way to the end and back needs, p - s as in 1F1B, ...
 *   patience   a W does not start if a message on its way lets a B (with waits_f: or an F) start before this share of
 *              the W is over
 *   pending    so many W are left to wait; the next goes before F.  -1: any number
 *
 * A rank with several stages must not fill its memory with F of early stages: the oldest micro-batch that has an F
 * left on the rank must find room, so that its B can free it.  Every rank can then run the oldest of all, and none
 * waits forever. */
#include "lanes/words.h"

#include <math.h>
#include <string.h>

/* Caps by stage: micro-batches between F and B. */
static int cap(const Words *w, const ListRule *rule, int s)
{
	const Pipeline *p = w->p;
	const PipeStage *g = &p->stage[s];
	double way = 0;
	for (int i = s + 1; i < p->nstage; i++)
		way += p->stage[i].f + p->stage[i].b;
	for (int h = 0; h < p->nhop; h++)
		if (p->hop[h].from >= s)
			way += 2 * (w->line[2 * h].latency + w->line[2 * h].busy);
	switch (rule->cap) {
	case CAP_NONE: return p->micros;
	case CAP_DEPTH: return p->nstage - s;
	case CAP_MIDDLE: return (3 * (p->nstage - s)) / 2;
	case CAP_TWICE: return 2 * (p->nstage - s) - 1;
	default: return 1 + (int)fmin(p->micros, ceil(way / fmax(g->f, 1e-30) - 1e-9));
	}
}

typedef struct List {
	const Words *w;
	const ListRule *rule;
	int *count, *cap, *sent;        /* by letter; by stage; by line */
	double *now, *link, *there;     /* by rank; by line; [line][micro-batch] */
	int64_t *use;                   /* by rank */
	int **stages;                   /* by rank: its stages, ended by -1 */
	int *next;                      /* by rank: its choice, and when; known: nothing has changed since */
	double *when;
	bool *known;
} List;
enum { NOTHING = -1, WAITS = -2 };      /* beside letters */

/* When the next task of letter l can start; INFINITY: not known yet. */
static double ready(const List *t, int l)
{
	const Words *w = t->w;
	int k = t->count[l];
	double at = 0;
	if (k == w->micros || (l % LETTERS != LETTER_F && k == t->count[l - 1]))
		return INFINITY;
	for (const int *line = w->need[l]; *line >= 0; line++) {
		if (t->sent[*line] <= k)
			return INFINITY;
		at = fmax(at, t->there[(size_t)*line * (size_t)w->micros + (size_t)k]);
	}
	return at;
}

/* Bytes that a micro-batch takes on its stage at most: B may need more for W than F left. */
static int64_t most(const Words *w, int s)
{
	const PipeStage *g = &w->p->stage[s];
	return g->kept > g->kept_w ? g->kept : g->kept_w;
}

/* Memory in use is counted by `most` until W, where W needs more than F keeps. */
static int64_t change(const Words *w, int l)
{
	const PipeStage *g = &w->p->stage[l / LETTERS];
	if (g->kept >= g->kept_w || l % LETTERS == LETTER_W)
		return w->bytes[l];
	return l % LETTERS == LETTER_F ? g->kept_w : 0;
}

static bool room(const List *t, int r, int s)
{
	const Words *w = t->w;
	int f = s * LETTERS, oldest = w->micros;
	if (t->count[f] - t->count[f + LETTER_B] >= t->cap[s])
		return false;
	for (const int *i = t->stages[r]; *i >= 0; i++)
		oldest = t->count[*i * LETTERS] < oldest ? t->count[*i * LETTERS] : oldest;
	int64_t use = t->use[r] + most(w, s);
	for (const int *i = t->stages[r]; *i >= 0; i++)
		if (*i != s && t->count[*i * LETTERS] <= oldest)
			use += most(w, *i);
	return use <= w->room[r];
}

/* The next task of rank r, and its start; NOTHING: none is known yet; WAITS: the rank waits for a message. */
static int choose(const List *t, int r, double *when)
{
	const Words *w = t->w;
	int best = -1, bestrank = 9;
	double at = INFINITY, soon = INFINITY;
	for (const int *i = t->stages[r]; *i >= 0; i++)
		for (int k = 0; k < LETTER_BW; k++) {
			int l = *i * LETTERS + k;
			double start = ready(t, l);
			if (start == INFINITY || (k == LETTER_F && !room(t, r, *i)))
				continue;
			start = fmax(start, t->now[r]);
			at = fmin(at, start);
			if (k == LETTER_B || (k == LETTER_F && t->rule->waits_f))
				soon = fmin(soon, start);
		}
	if (at == INFINITY)
		return NOTHING;
	for (const int *i = t->stages[r]; *i >= 0; i++)
		for (int k = 0; k < LETTER_BW; k++) {
			int l = *i * LETTERS + k, b = *i * LETTERS + LETTER_B;
			double start = ready(t, l);
			if (start == INFINITY || start > at || (k == LETTER_F && !room(t, r, *i)))
				continue;
			static const int usual[] = { [LETTER_B] = 0, [LETTER_F] = 2, [LETTER_W] = 3 };
			int rank = usual[k];
			if (k == LETTER_W && t->rule->pending >= 0 && t->count[b] - t->count[l] > t->rule->pending)
				rank = 1;
			/* of B and of F, the one of the latest stage */
			if (rank < bestrank || (rank == bestrank && k != LETTER_W))
				best = l, bestrank = rank;
		}
	if (best % LETTERS == LETTER_W && soon < at + t->rule->patience * w->seconds[best]) {
		*when = soon;
		return WAITS;
	}
	*when = at;
	return best;
}

static void run(List *t, Word *o, int r, int l, double at)
{
	const Words *w = t->w;
	int k = t->count[l]++;
	double end = at + w->seconds[l];
	o[r].at[o[r].n++] = l;
	t->now[r] = end;
	t->use[r] += change(w, l);
	t->known[r] = false;
	for (const int *line = w->send[l]; *line >= 0; line++) {
		double leave = fmax(end, t->link[*line]);
		t->link[*line] = leave + w->line[*line].busy;
		t->there[(size_t)*line * (size_t)w->micros + (size_t)k] = t->link[*line] + w->line[*line].latency;
		t->sent[*line]++;
		t->known[w->line[*line].to] = false;
	}
}

/* The rank that can act first; -1: none. */
static int first(List *t)
{
	int who = -1;
	for (int r = 0; r < t->w->nrank; r++) {
		if (!t->known[r]) {
			t->known[r] = true;
			t->next[r] = choose(t, r, &t->when[r]);
		}
		if (t->next[r] != NOTHING && (who < 0 || t->when[r] < t->when[who]))
			who = r;
	}
	return who;
}

bool list_order(Words *w, const ListRule *rule, Arena *a, Word *o)
{
	const Pipeline *p = w->p;
	List t = {
		.w = w, .rule = rule,
		.count = arena_array(a, int, w->nletter), .cap = arena_array(a, int, p->nstage),
		.sent = arena_array(a, int, w->nline + 1), .now = arena_array(a, double, w->nrank),
		.link = arena_array(a, double, w->nline + 1),
		.there = arena_array(a, double, (size_t)w->nline * (size_t)w->micros + 1),
		.use = arena_array(a, int64_t, w->nrank), .stages = arena_array(a, int *, w->nrank),
		.next = arena_array(a, int, w->nrank), .when = arena_array(a, double, w->nrank),
		.known = arena_array(a, bool, w->nrank),
	};
	for (int r = 0; r < w->nrank; r++) {
		int n = 0;
		t.stages[r] = arena_array(a, int, p->nstage + 1);
		for (int s = 0; s < p->nstage; s++)
			if (p->stage[s].rank == r)
				t.stages[r][n++] = s;
		t.stages[r][n] = -1;
		o[r].n = 0;
	}
	for (int s = 0; s < p->nstage; s++)
		t.cap[s] = cap(w, rule, s) > 1 ? cap(w, rule, s) : 1;
	for (int done = 0; done < w->ntask;) {
		int r = first(&t);
		if (r < 0)
			return false;           /* a stage does not fit at all */
		if (t.next[r] == WAITS) {
			t.now[r] = t.when[r];
			t.known[r] = false;
			continue;
		}
		run(&t, o, r, t.next[r], t.when[r]);
		done++;
	}
	w->work += 4.0 * w->ntask;
	return true;
}
