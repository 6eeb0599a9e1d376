/* Exact search for an order with a period below a given one: branch and bound over the words of all ranks.
 *
 * A node is a beginning of every word.  Times are not numbers but rows: for each clock, the longest path from its
 * beginning (period.c), so a node stands for all possible beginnings at once.  A step of the search takes the rank
 * that is free first, and branches over the letters that it can run next and over `none of them`: the rank then waits
 * until a message makes another letter possible.  So each set of words is visited once.  A node is cut off if
 *
 *   bound      rows for what is left, under release times and the work of each rank, already have a cycle whose mean
 *              is not below the period;
 *   gap        a letter would start so late that another one fits before it, from every beginning.  B and W may always
 *              move forward if they free memory; F may if its rank has one stage, as only B and W stand between;
 *   seen       a node with the same counts was visited whose rows are nowhere larger, and which was as free to go on:
 *              the rest of the words can follow that one, too.
 *
 * When the search ends before its work is used up, no order has a smaller period. */
#include "lanes/words.h"

#include <math.h>
#include <string.h>

enum { BUCKETS = 1 << 16, KEPT = 1 << 22 };     /* of remembered nodes; numbers that they hold */
enum { CLOCKS = 24, STAGES = 20, TASKS = 2048 };        /* more are not tried */

typedef struct Seen { struct Seen *next; uint64_t hash; double *row; uint64_t *barred; int *count; } Seen;

typedef struct Exact {
	Words *w;
	Arena *a;
	int nclock;                     /* columns of a row: ranks, and lines that are busy for some time */
	int *column;                    /* by line; -1: none */
	double limit, stop;             /* the period to beat; work */
	double *x;                      /* by column: the beginnings of the best known order */
	double *end, *link, *there;     /* [rank], [line], [line][micro-batch] of rows */
	int *count, *sent;              /* by letter, by line */
	int64_t *use;                   /* by rank */
	uint64_t *barred;               /* by rank: letters that it does not run next */
	int **letter, letters;          /* by rank: its letters, ended by -1; the most of a rank */
	bool *alone;                    /* by rank: one stage */
	int *fit;                       /* by stage, if it is alone: micro-batches that fit in the memory */
	Word *o;
	int left, depth;                /* tasks; nodes above this one */
	double **level;                 /* by depth: rows of starts of letters, and of the end of the rank */
	ExactFound *found;
	void *data;
	bool stopped;
	Seen **bucket; size_t kept;
	double *path, *hf, *hb, *row;   /* scratch; hf, hb: release times of F and B, [stage][micro-batch] */
} Exact;

static double *row_of(const Exact *e, double *rows, size_t i) { return rows + i * (size_t)e->nclock; }

static double *message(const Exact *e, int line, int k)
{
	return row_of(e, e->there, (size_t)line * (size_t)e->w->micros + (size_t)k);
}

/* The row of the start of the next task of letter l; false: it cannot be next. */
static bool start_of(const Exact *e, int l, double *row)
{
	const Words *w = e->w;
	int k = e->count[l], r = w->rank[l];
	if (k == w->micros || (l % LETTERS != LETTER_F && k == e->count[l - 1]))
		return false;
	if (e->use[r] + w->bytes[l] > w->room[r])
		return false;
	memcpy(row, row_of(e, e->end, (size_t)r), sizeof *row * (size_t)e->nclock);
	for (const int *line = w->need[l]; *line >= 0; line++) {
		if (e->sent[*line] <= k)
			return false;
		const double *m = message(e, *line, k);
		for (int c = 0; c < e->nclock; c++)
			row[c] = m[c] > row[c] ? m[c] : row[c];
	}
	return true;
}

/* ---- the bound ---- */

/* The later of t and the arrival of the operand of letter l for micro-batch k: its known time, or its release time. */
static double arrival(const Exact *e, int c, int l, int k, double t)
{
	const Words *w = e->w;
	const Pipeline *p = w->p;
	for (const int *i = w->need[l]; *i >= 0; i++) {
		const PipeHop *h = &p->hop[*i / 2];
		bool back = *i % 2;
		double from = back ? e->hb[h->to * w->micros + k] + p->stage[h->to].b :
			e->hf[h->from * w->micros + k] + p->stage[h->from].f;
		double there = from + w->line[*i].latency + w->line[*i].busy;
		if (k < e->sent[*i])
			there = message(e, *i, k)[c];
		t = there > t ? there : t;
	}
	return t;
}

static double release_f(const Exact *e, int c, int s, int k)
{
	const PipeStage *g = &e->w->p->stage[s];
	int l = s * LETTERS, r = g->rank, m = e->w->micros;
	double t = row_of(e, e->end, (size_t)r)[c];
	if (k > e->count[l])
		t = fmax(t, e->hf[s * m + k - 1] + g->f);
	/* a rank with one stage: memory makes F wait for a B */
	if (k - e->fit[s] >= e->count[l + LETTER_B])
		t = fmax(t, e->hb[s * m + k - e->fit[s]] + g->b);
	return arrival(e, c, l, k, t);
}

static double release_b(const Exact *e, int c, int s, int k)
{
	const PipeStage *g = &e->w->p->stage[s];
	int f = s * LETTERS, l = f + LETTER_B, m = e->w->micros, nf = k + 1 - e->count[f];
	/* all F and B of this stage up to here run before it */
	double t = row_of(e, e->end, (size_t)g->rank)[c] + (nf > 0 ? nf : 0) * g->f + (k - e->count[l]) * g->b;
	if (nf > 0)
		t = fmax(t, e->hf[s * m + k] + g->f);
	if (k > e->count[l])
		t = fmax(t, e->hb[s * m + k - 1] + g->b);
	return arrival(e, c, l, k, t);
}

/* Release times of the remaining tasks, from clock c. */
static void releases(Exact *e, int c)
{
	int m = e->w->micros, n = e->w->p->nstage;
	for (int k = 0; k < m; k++) {
		for (int s = 0; s < n; s++)
			if (k >= e->count[s * LETTERS + LETTER_F])
				e->hf[s * m + k] = release_f(e, c, s, k);
		for (int s = n; s-- > 0;)
			if (k >= e->count[s * LETTERS + LETTER_B])
				e->hb[s * m + k] = release_b(e, c, s, k);
	}
}

static double release(const Exact *e, int l, int k)
{
	int i = l / LETTERS * e->w->micros + k;
	switch (l % LETTERS) {
	case LETTER_F: return e->hf[i];
	case LETTER_B: return e->hb[i];
	default: return k < e->count[l - 1] ? -INFINITY : e->hb[i] + e->w->seconds[l - 1];
	}
}

/* The end of rank r if it runs its remaining tasks in the order of release. */
static double end_of(const Exact *e, int c, int r)
{
	const Words *w = e->w;
	double t = row_of(e, e->end, (size_t)r)[c];
	int at[3 * STAGES];
	for (int i = 0; e->letter[r][i] >= 0; i++)
		at[i] = e->count[e->letter[r][i]];
	for (;;) {
		int best = -1;
		double least = INFINITY;
		for (int i = 0; e->letter[r][i] >= 0; i++) {
			if (at[i] == w->micros)
				continue;
			double h = release(e, e->letter[r][i], at[i]);
			if (best < 0 || h < least)
				best = i, least = h;
		}
		if (best < 0)
			return t + w->update[r];
		at[best]++;
		t = fmax(t, least) + w->seconds[e->letter[r][best]];
	}
}

/* Whether every order that continues this node has at least the period to beat. */
static bool hopeless(Exact *e)
{
	int n = e->nclock, nrank = e->w->nrank;
	double *a = e->path;
	for (int c = 0; c < n; c++) {
		releases(e, c);
		for (int r = 0; r < nrank; r++)
			a[r * n + c] = end_of(e, c, r);
	}
	for (int i = 0; i < e->w->nline; i++)
		if (e->column[i] >= 0) {
			const double *link = row_of(e, e->link, (size_t)i);
			double rest = (e->w->micros - e->sent[i]) * e->w->line[i].busy;
			for (int c = 0; c < n; c++)
				a[e->column[i] * n + c] = link[c] + rest;
		}
	double limit = e->limit * (1 - 1e-9);
	for (int i = 0; i < n * n; i++)
		a[i] -= limit;
	for (int k = 0; k < n; k++)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < n; j++)
				a[i * n + j] = fmax(a[i * n + j], a[i * n + k] + a[k * n + j]);
	for (int i = 0; i < n; i++)
		if (a[i * n + i] >= 0)
			return true;
	return false;
}

/* ---- nodes that were visited ---- */

static int snapshot(const Exact *e, double *to)
{
	const Words *w = e->w;
	size_t size = sizeof *to * (size_t)e->nclock;
	int n = 0;
	for (int r = 0; r < w->nrank; r++, n += e->nclock)
		memcpy(to + n, row_of(e, e->end, (size_t)r), size);
	for (int l = 0; l < w->nletter; l++) {
		if (l % LETTERS > LETTER_B)
			continue;
		for (const int *i = w->need[l]; *i >= 0; i++)
			for (int k = e->count[l]; k < e->sent[*i]; k++, n += e->nclock)
				memcpy(to + n, message(e, *i, k), size);
	}
	for (int i = 0; i < w->nline; i++)
		if (e->column[i] >= 0) {
			memcpy(to + n, row_of(e, e->link, (size_t)i), size);
			n += e->nclock;
		}
	return n;
}

static bool covers(const Exact *e, const Seen *s, const double *row, int n)
{
	for (int r = 0; r < e->w->nrank; r++)
		if (s->barred[r] & ~e->barred[r])
			return false;
	for (int i = 0; i < n; i++)
		if (s->row[i] > row[i])
			return false;
	return true;
}

/* Whether a visited node is at least as good as this one; if not, this one is remembered. */
static bool dominated(Exact *e)
{
	const Words *w = e->w;
	uint64_t hash = 1469598103934665603u;
	size_t counts = sizeof *e->count * (size_t)w->nletter;
	for (int l = 0; l < w->nletter; l++)
		hash = (hash ^ (uint64_t)e->count[l]) * 1099511628211u;
	Seen **at = &e->bucket[(hash ^ hash >> 29) % BUCKETS];
	int n = snapshot(e, e->row), tries = 0;
	for (Seen *s = *at; s && tries < 64; s = s->next) {
		if (s->hash != hash || memcmp(s->count, e->count, counts))
			continue;
		tries++;
		if (covers(e, s, e->row, n))
			return true;
	}
	e->w->work += tries;
	if (e->kept + (size_t)(n + w->nletter) > KEPT)
		return false;
	e->kept += (size_t)(n + w->nletter);
	Seen *s = arena_new(e->a, Seen);
	*s = (Seen){ .next = *at, .hash = hash, .row = arena_array(e->a, double, n),
		.barred = arena_array(e->a, uint64_t, w->nrank), .count = arena_array(e->a, int, w->nletter) };
	memcpy(s->row, e->row, sizeof *s->row * (size_t)n);
	memcpy(s->barred, e->barred, sizeof *s->barred * (size_t)w->nrank);
	memcpy(s->count, e->count, counts);
	*at = s;
	return false;
}

/* ---- the walk ---- */

static void put(Exact *e, int l, const double *start)
{
	const Words *w = e->w;
	int r = w->rank[l], k = e->count[l]++;
	double *end = row_of(e, e->end, (size_t)r);
	for (int c = 0; c < e->nclock; c++)
		end[c] = start[c] + w->seconds[l];
	e->use[r] += w->bytes[l];
	e->o[r].at[e->o[r].n++] = l;
	e->left--;
	for (const int *i = w->send[l]; *i >= 0; i++) {
		double *m = message(e, *i, k), *link = row_of(e, e->link, (size_t)*i);
		const Line *line = &w->line[*i];
		for (int c = 0; c < e->nclock; c++) {
			double leave = e->column[*i] >= 0 && link[c] > end[c] ? link[c] : end[c];
			m[c] = leave + line->busy + line->latency;
			link[c] = leave + line->busy;
		}
		e->sent[*i]++;
	}
}

/* Undoes the last letter of rank r.  Rows of lines are those of the message before. */
static void take(Exact *e, int r, const double *end)
{
	const Words *w = e->w;
	int l = e->o[r].at[--e->o[r].n];
	e->count[l]--;
	e->use[r] -= w->bytes[l];
	e->left++;
	memcpy(row_of(e, e->end, (size_t)r), end, sizeof *end * (size_t)e->nclock);
	for (const int *i = w->send[l]; *i >= 0; i++) {
		double *link = row_of(e, e->link, (size_t)*i);
		int k = --e->sent[*i] - 1;
		for (int c = 0; c < e->nclock; c++) {
			double first = c == e->column[*i] ? 0 : -INFINITY;
			link[c] = k < 0 ? first : message(e, *i, k)[c] - w->line[*i].latency;
		}
	}
}

static bool before(const Exact *e, const double *a, double seconds, const double *b)
{
	for (int c = 0; c < e->nclock; c++)
		if (a[c] + seconds > b[c])
			return false;
	return true;
}

/* The rank that can act first; -1: none can. */
static int next_rank(const Exact *e)
{
	double least = INFINITY, start[CLOCKS];
	int best = -1;
	for (int r = 0; r < e->w->nrank; r++)
		for (int i = 0; e->letter[r][i] >= 0; i++) {
			if (e->barred[r] >> i & 1 || !start_of(e, e->letter[r][i], start))
				continue;
			double t = -INFINITY;
			for (int c = 0; c < e->nclock; c++)
				t = fmax(t, start[c] + e->x[c]);
			if (t < least)
				least = t, best = r;
		}
	return best;
}

/* Whether rank r may wait for a message that is not sent yet. */
static bool expects(const Exact *e, int r)
{
	for (const int *l = e->letter[r]; *l >= 0; l++)
		for (const int *i = e->w->need[*l]; *i >= 0; i++)
			if (e->count[*l] < e->w->micros && e->sent[*i] <= e->count[*l])
				return true;
	return false;
}

static void visit(Exact *e);

static void descend(Exact *e)
{
	e->w->work += (double)e->left * e->nclock + e->w->nrank;
	if (e->w->work > e->stop)
		e->stopped = true;
	else if (!hopeless(e) && !dominated(e))
		visit(e);
}

/* Letters of a rank in the order in which they are tried: B, F, W. */
static const int preference[] = { LETTER_B, LETTER_F, LETTER_W };

/* Whether another letter of the rank fits before the start of letter i, from every beginning. */
static bool late(const Exact *e, int r, int i, double *start, uint64_t can)
{
	const Words *w = e->w;
	int l = e->letter[r][i];
	for (int j = 0; e->letter[r][j] >= 0; j++) {
		int other = e->letter[r][j];
		const PipeStage *g = &w->p->stage[other / LETTERS];
		bool frees = w->bytes[other] <= 0, f = other % LETTERS == LETTER_F;
		if (i == j || !(can >> j & 1) || !(frees || (f && e->alone[r] && g->kept_w <= g->kept)))
			continue;
		/* if each fits before the other, both take no time: the first of them stays */
		const double *x = row_of(e, start, (size_t)i), *y = row_of(e, start, (size_t)j);
		if (before(e, y, w->seconds[other], x) && (j < i || !before(e, x, w->seconds[l], y)))
			return true;
	}
	return false;
}

static void visit(Exact *e)
{
	if (!e->left) {
		e->limit = e->found(e->data, e->o);
		return;
	}
	int r = next_rank(e);
	if (r < 0)
		return;
	/* not on the stack: the search is as deep as there are tasks */
	double **level = &e->level[e->depth++];
	if (!*level)
		*level = arena_array(e->a, double, (e->letters + 1) * e->nclock);
	double *start = *level, *end = row_of(e, start, (size_t)e->letters);
	uint64_t barred = e->barred[r], can = 0;
	for (int i = 0; e->letter[r][i] >= 0; i++)
		can |= (uint64_t)start_of(e, e->letter[r][i], row_of(e, start, (size_t)i)) << i;
	memcpy(end, row_of(e, e->end, (size_t)r), sizeof *end * (size_t)e->nclock);
	for (int kind = 0; kind < 3; kind++)
		for (int i = 0; e->letter[r][i] >= 0 && !e->stopped; i++) {
			int l = e->letter[r][i];
			bool open = (can & ~barred) >> i & 1;
			if (l % LETTERS != preference[kind] || !open || late(e, r, i, start, can))
				continue;
			e->barred[r] = 0;
			put(e, l, row_of(e, start, (size_t)i));
			descend(e);
			take(e, r, end);
		}
	if (expects(e, r) && !e->stopped) {
		e->barred[r] = barred | can;
		visit(e);               /* the same rows: nothing to check, and the node itself covers it */
	}
	e->barred[r] = barred;
	e->depth--;
}

static bool begin(Exact *e)
{
	Words *w = e->w;
	Arena *a = e->a;
	int m = w->micros, n = w->p->nstage;
	e->nclock = w->nrank;
	e->column = arena_array(a, int, w->nline + 1);
	for (int i = 0; i < w->nline; i++)
		e->column[i] = w->line[i].busy > 0 ? e->nclock++ : -1;
	if (e->nclock > CLOCKS || n > STAGES || w->ntask > TASKS)
		return false;
	size_t wide = (size_t)e->nclock;
	e->end = arena_array(a, double, wide * (size_t)w->nrank);
	e->link = arena_array(a, double, wide * (size_t)(w->nline + 1));
	e->there = arena_array(a, double, wide * (size_t)(w->nline * m + 1));
	e->count = arena_array(a, int, w->nletter);
	e->sent = arena_array(a, int, w->nline + 1);
	e->use = arena_array(a, int64_t, w->nrank);
	e->barred = arena_array(a, uint64_t, w->nrank);
	e->letter = arena_array(a, int *, w->nrank);
	e->alone = arena_array(a, bool, w->nrank);
	e->o = words_new(w, a);
	e->left = w->ntask;
	e->level = arena_array(a, double *, (size_t)w->ntask * (size_t)(w->nrank + 1) + 1);
	e->bucket = arena_array(a, Seen *, BUCKETS);
	e->path = arena_array(a, double, wide * wide);
	e->fit = arena_array(a, int, n);
	e->hf = arena_array(a, double, n * m);
	e->hb = arena_array(a, double, n * m);
	e->row = arena_array(a, double, wide * (size_t)(w->nrank + w->nline * (m + 1)));
	for (int r = 0; r < w->nrank; r++) {
		int k = 0, stages = 0;
		e->letter[r] = arena_array(a, int, 3 * n + 1);
		for (int s = 0; s < n; s++)
			for (int i = 0; i < 3 && w->p->stage[s].rank == r; i++, stages += i == 3)
				e->letter[r][k++] = s * LETTERS + i;
		e->letter[r][k] = -1;
		e->letters = k > e->letters ? k : e->letters;
		e->alone[r] = stages == 1;
		for (int c = 0; c < e->nclock; c++)
			row_of(e, e->end, (size_t)r)[c] = c == r ? 0 : -INFINITY;
	}
	for (int s = 0; s < n; s++) {
		const PipeStage *g = &w->p->stage[s];
		bool known = e->alone[g->rank] && g->kept > 0 && w->room[g->rank] / g->kept < m;
		e->fit[s] = known ? (int)(w->room[g->rank] / g->kept) : m;
	}
	for (int i = 0; i < w->nline; i++)
		for (int c = 0; c < e->nclock; c++)
			row_of(e, e->link, (size_t)i)[c] = c == e->column[i] ? 0 : -INFINITY;
	return true;
}

bool exact_search(Words *w, double period, const double *x, double work, ExactFound *found, void *data)
{
	Arena a = { 0 };
	Exact e = { .w = w, .a = &a, .limit = period, .stop = w->work + work, .found = found, .data = data };
	bool whole = false;
	if (begin(&e)) {
		e.x = arena_array(&a, double, e.nclock);
		memcpy(e.x, x, sizeof *x * (size_t)w->nrank);
		for (int i = 0; i < w->nline; i++)
			if (e.column[i] >= 0)
				e.x[e.column[i]] = x[w->nrank + i];
		descend(&e);
		whole = !e.stopped;
	}
	arena_free(&a);
	return whole;
}
