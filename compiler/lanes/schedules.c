/* Named schedules of pipelines, one row each.  All run the micro-batches of each block in ascending order.
 *
 * Waves.  A stage holds at most `warm` micro-batches between F and B.  It runs F until then, and B otherwise; W
 * follows `lag` micro-batches behind B.  Stage s of p, m micro-batches:
 *
 *   schedule   warm             lag   paper
 *   gpipe      m                -     arXiv 1811.06965
 *   1f1b       p - s            -     arXiv 1806.03377, 2006.09503 (PipeDream-Flush), 2007.01045 (DAPPLE)
 *   pe         4 (p - 1 - s)    -     arXiv 2204.10562: block j of micro-batch k in cycle k + j, backward first
 *   zb-h1      p - s            s     arXiv 2401.10241, section 2.1
 *   zb-h2      2 (p - s) - 1    2 s   the same, section 2.2
 *
 * Fewer micro-batches.  A task waits only for tasks of its own micro-batch and for those before it on its rank.  So
 * an order stays legal when micro-batches are left out: a schedule that is defined for some numbers of micro-batches
 * is written for the next one, without those that do not exist. */
#include "lanes/vee.h"

#include <string.h>

/* A rank's list while it is written. */
typedef struct List { PipeTask *task; int n, micros; } List;

static void put(List *l, BlockKind kind, int stage, int micro)
{
	if (micro >= 0 && micro < l->micros)
		l->task[l->n++] = (PipeTask){ kind, stage, micro };
}

static List list_begin(const Pipeline *p, Arena *a)
{
	int chunks = p->nstage / p->nrank;
	return (List){ .task = arena_array(a, PipeTask, 3 * chunks * p->micros), .micros = p->micros };
}

static void list_end(const List *l, PipeOrder *o, int rank)
{
	o->task[rank] = l->task;
	o->ntask[rank] = l->n;
}

static void order_begin(const Pipeline *p, Arena *a, PipeOrder *o)
{
	o->task = arena_array(a, PipeTask *, p->nrank);
	o->ntask = arena_array(a, int, p->nrank);
}

/* ---- waves ---- */

static const char *waves(const Pipeline *p, Arena *a, PipeOrder *o, int (*warm)(int p, int s, int m), int lag)
{
	if (p->nstage != p->nrank)
		return "it needs one stage for each rank";
	order_begin(p, a, o);
	for (int s = 0; s < p->nstage; s++) {
		List l = list_begin(p, a);
		int most = warm(p->nstage, s, p->micros), f = 0;
		for (int b = 0; b < p->micros; b++) {
			while (f < p->micros && f - b < most)
				put(&l, BLOCK_F, s, f++);
			put(&l, lag < 0 ? BLOCK_BW : BLOCK_B, s, b);
			if (lag >= 0)
				put(&l, BLOCK_W, s, b - lag * s);
		}
		for (int w = p->micros - lag * s; lag > 0 && w < p->micros; w++)
			put(&l, BLOCK_W, s, w);
		list_end(&l, o, p->stage[s].rank);
	}
	return NULL;
}

static int warm_all(int p, int s, int m) { (void)p, (void)s; return m; }
static int warm_1f1b(int p, int s, int m) { (void)m; return p - s; }
static int warm_h2(int p, int s, int m) { (void)m; return 2 * (p - s) - 1; }
static int warm_pe(int p, int s, int m) { (void)m; return s < p - 1 ? 4 * (p - 1 - s) : 1; }

static const char *gpipe(const Pipeline *p, Arena *a, PipeOrder *o) { return waves(p, a, o, warm_all, -1); }
static const char *one_f_one_b(const Pipeline *p, Arena *a, PipeOrder *o) { return waves(p, a, o, warm_1f1b, -1); }
static const char *pe(const Pipeline *p, Arena *a, PipeOrder *o) { return waves(p, a, o, warm_pe, -1); }
static const char *zb_h1(const Pipeline *p, Arena *a, PipeOrder *o) { return waves(p, a, o, warm_1f1b, 1); }
static const char *zb_h2(const Pipeline *p, Arena *a, PipeOrder *o) { return waves(p, a, o, warm_h2, 2); }

/* ---- interleaved: a rank has several chunks (arXiv 2104.04473, section 2.2) ---- */

/* Micro-batches go through the chunks in groups of p.  Task i of a list of F is in group i / (p v); B go through the
 * chunks the other way round. */
static void put_turn(List *l, BlockKind kind, const Pipeline *p, int rank, int i)
{
	int n = p->nrank, v = p->nstage / n, chunk = i / n % v, micro = i / (n * v) * n + i % n;
	put(l, kind, (kind == BLOCK_F ? chunk : v - 1 - chunk) * n + rank, micro);
}

static const char *interleaved(const Pipeline *p, Arena *a, PipeOrder *o)
{
	int n = p->nrank, v = p->nstage / n, turns = (p->micros + n - 1) / n * n * v;
	order_begin(p, a, o);
	for (int r = 0; r < n; r++) {
		List l = list_begin(p, a);
		int warm = 2 * (n - 1 - r) + (v - 1) * n, f = 0;
		for (int b = 0; b < turns; b++) {
			for (; f < turns && f - b <= warm; f++)
				put_turn(&l, BLOCK_F, p, r, f);
			put_turn(&l, BLOCK_BW, p, r, b);
		}
		list_end(&l, o, r);
	}
	return NULL;
}

/* ---- schedules of a V ---- */

static const char *zb_v(const Pipeline *p, Arena *a, PipeOrder *o)
{
	return vee_order(p, (VeeShape){ 4, 2, p->nrank, true }, a, o);
}
static const char *v_half(const Pipeline *p, Arena *a, PipeOrder *o)
{
	return vee_order(p, (VeeShape){ 2, 1, (p->nrank + 2) / 2, false }, a, o);
}
static const char *v_min(const Pipeline *p, Arena *a, PipeOrder *o)
{
	return vee_order(p, (VeeShape){ 1, 1, (p->nrank + 4) / 3, false }, a, o);
}

/* DualPipe on a V, as DeepSeek wrote it (github.com/deepseek-ai/DualPipe): a rank turns from F of one chunk to
 * backward of the other.  It is written for at least 2 p micro-batches.  A phase is a row: how often (p - 1 - r or r
 * + 1 times, or as many as are left), and what.  f, b: F and BW of chunk 0 or 1; z: B whose W comes later; w: the
 * oldest W. */
typedef struct Dual { List l; int rank, last, f[2], b[2], w, later; PipeTask *wait; } Dual;

static void dual(Dual *d, char what, int chunk)
{
	int stage = chunk ? d->last - d->rank : d->rank;
	if (what == 'f') {
		put(&d->l, BLOCK_F, stage, d->f[chunk]++);
	} else if (what == 'w') {
		if (d->w < d->later)
			put(&d->l, BLOCK_W, d->wait[d->w].stage, d->wait[d->w].micro);
		d->w++;
	} else {
		if (what == 'z')
			d->wait[d->later++] = (PipeTask){ BLOCK_W, stage, d->b[chunk] };
		put(&d->l, what == 'z' ? BLOCK_B : BLOCK_BW, stage, d->b[chunk]++);
	}
}

static void phase(Dual *d, int times, const char *what)
{
	for (int i = 0; i < times; i++)
		for (const char *s = what; *s; s += 2)
			dual(d, s[0], s[1] == '1');
}

static const char *dualpipev(const Pipeline *p, Arena *a, PipeOrder *o)
{
	if (p->nstage != 2 * p->nrank)
		return "it needs two stages for each rank";
	order_begin(p, a, o);
	int n = p->nrank, m = p->micros < 2 * n ? 2 * n : p->micros;
	for (int r = 0; r < n; r++) {
		Dual d = { .l = list_begin(p, a), .rank = r, .last = p->nstage - 1 };
		d.wait = arena_array(a, PipeTask, 2 * m);
		phase(&d, 2 * (n - 1 - r), "f0");
		phase(&d, r + 1, "f0f1");
		phase(&d, n - 1 - r, "z1w-f1");
		phase(&d, m - 2 * n + r + 1, "f0b1f1b0");
		phase(&d, n - 1 - r, "b1f1b0");
		/* the second half of the last r + 1 pairs puts its W off */
		int half = (r + 1) / 2;
		phase(&d, half, "b1b0");
		phase(&d, r % 2 ? 0 : 1, "b1z0");
		phase(&d, r + 1 - half - (r % 2 ? 0 : 1), "z1z0");
		phase(&d, n - 1 - r, "w-z0");
		phase(&d, r + 1, "w-");
		phase(&d, d.later > d.w ? d.later - d.w : 0, "w-");
		list_end(&d.l, o, r);
	}
	return NULL;
}

/* ---- the table ---- */

const PipeSchedule schedules[] = {
	{ .name = "gpipe", .paper = "arXiv 1811.06965", .chunks = 1, .order = gpipe },
	{ .name = "1f1b", .paper = "arXiv 2006.09503", .chunks = 1, .order = one_f_one_b },
	{ .name = "pe", .paper = "arXiv 2204.10562", .chunks = 1, .order = pe },
	{ .name = "zb-h1", .paper = "arXiv 2401.10241", .split = true, .chunks = 1, .order = zb_h1 },
	{ .name = "zb-h2", .paper = "arXiv 2401.10241", .split = true, .chunks = 1, .order = zb_h2 },
	{ .name = "interleaved", .paper = "arXiv 2104.04473", .order = interleaved },
	{ .name = "zb-v", .paper = "arXiv 2401.10241", .split = true, .chunks = 2, .vee = true, .order = zb_v },
	{ .name = "v-half", .paper = "arXiv 2405.15362", .split = true, .chunks = 2, .vee = true, .order = v_half },
	{ .name = "v-min", .paper = "arXiv 2405.15362", .split = true, .chunks = 2, .vee = true, .order = v_min },
	{ .name = "dualpipev", .paper = "github.com/deepseek-ai/DualPipe", .split = true, .chunks = 2, .vee = true,
	  .order = dualpipev },
	{ 0 },
};

const PipeSchedule *schedules_find(const char *name)
{
	for (const PipeSchedule *s = schedules; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

void schedules_place(const PipeSchedule *s, Pipeline *p)
{
	for (int i = 0; i < p->nstage; i++) {
		int chunk = i / p->nrank, r = i % p->nrank;
		p->stage[i].rank = s->vee && chunk % 2 ? p->nrank - 1 - r : r;
	}
}
