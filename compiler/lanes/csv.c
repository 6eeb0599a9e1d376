/* Schedules in PyTorch's CSV (torch/distributed/pipelining/schedules.py, _PipelineScheduleRuntime), read and
 * written.  A row is a rank, a cell an action; empty cells are idle steps and mean nothing.
 *
 *   0F3   0I3   0W3   0B3                    stage 0, micro-batch 3: F; gradients of inputs; of weights; both
 *   (0F3;7B1)OVERLAP_F_B                     both at once; here one after the other
 *   0UNSHARD   0RESHARD   0REDUCE_GRAD       parameters are gathered, let go; gradients are reduced
 *   0SEND_F3   1RECV_F3   1SEND_B3   0RECV_B3        activations to stage 1, gradients back to stage 0
 *
 * Without sends and receives in the file, they are derived from the actions.  With them, each rank runs its row as
 * written, and a send ends when it is received: a row that deadlocks so may run on one machine and hang on two
 * (pytorch#172668).
 *
 * REDUCE_GRAD is where a compiled model reduces the gradients of a stage; without it, right behind its last gradient of
 * weights.  Where parameters are gathered is checked and written back; the plan places these transfers.
 *
 * PyTorch keeps actions in sets and matches a pattern that is not anchored.  This reader is strict: each action must be
 * complete, occur once and be where it can run, and micro-batches are 0 .. m - 1 for every stage. */
#include "lanes/walk.h"

#include <ctype.h>
#include <string.h>

enum { F, I, W, B, UNSHARD, RESHARD, REDUCE_GRAD, SEND_F, RECV_F, SEND_B, RECV_B, NTYPE };
static const struct { const char *name; bool micro; BlockKind kind; } types[] = {
	[F] = { "F", true, BLOCK_F },
	[I] = { "I", true, BLOCK_B },
	[W] = { "W", true, BLOCK_W },
	[B] = { "B", true, BLOCK_BW },
	[UNSHARD] = { "UNSHARD", false, 0 },
	[RESHARD] = { "RESHARD", false, 0 },
	[REDUCE_GRAD] = { "REDUCE_GRAD", false, 0 },
	[SEND_F] = { "SEND_F", true, 0 },
	[RECV_F] = { "RECV_F", true, 0 },
	[SEND_B] = { "SEND_B", true, 0 },
	[RECV_B] = { "RECV_B", true, 0 },
};
enum { NUMBER_MOST = 1 << 16 };
static const char overlap[] = "OVERLAP_F_B";

typedef struct Reader {
	Arena *a;
	uint32_t file;
	const char *text;
	PipeCsv *csv;
	const CsvCell *most;            /* the first with the largest micro-batch */
	int idle;                       /* empty cells since the last action of the row */
} Reader;

static Loc at(const Reader *r, size_t from, size_t to)
{
	return (Loc){ .file = r->file, .len = to > from ? (uint32_t)(to - from) : 1, .off = from };
}

/* ---- cells ---- */

/* A number; -1: none, or too large. */
static int number(const Reader *r, size_t *pos, size_t to)
{
	int v = 0, digits = 0;
	for (; *pos < to && isdigit((unsigned char)r->text[*pos]); digits++, ++*pos)
		v = v > NUMBER_MOST ? v : v * 10 + (r->text[*pos] - '0');
	return digits && v < NUMBER_MOST ? v : -1;
}

/* An action from `pos` to `to`; -1 after explaining. */
static int action(Reader *r, size_t pos, size_t to, CsvCell *cell)
{
	size_t from = pos;
	int stage = number(r, &pos, to), type = 0;
	size_t word = pos;
	while (word < to && !isdigit((unsigned char)r->text[word]))
		word++;
	while (type < NTYPE && (strlen(types[type].name) != word - pos || memcmp(types[type].name, r->text + pos,
		word - pos)))
		type++;
	int micro = number(r, &word, to);
	if (stage < 0 || type == NTYPE || word != to || (micro >= 0) != types[type].micro) {
		err_at(at(r, from, to),
			"an action is a stage, a type and a micro-batch, such as 0F3; types are F, I, W, B, "
			"SEND_F, RECV_F, SEND_B, RECV_B, and without a micro-batch UNSHARD, RESHARD, REDUCE_GRAD");
		return -1;
	}
	*cell = (CsvCell){ .type = type, .stage = stage, .micro = micro, .at = at(r, from, to) };
	return 0;
}

static void push(Reader *r, int rank, CsvCell c)
{
	c.idle = r->idle;
	r->idle = 0;
	arena_push(r->a, r->csv->cell[rank], r->csv->ncell[rank], c);
}

static int read_cell(Reader *r, int rank, size_t from, size_t to)
{
	CsvCell one, two;
	while (from < to && strchr(" \t\r", r->text[from]))
		from++;
	while (to > from && strchr(" \t\r", r->text[to - 1]))
		to--;
	if (from == to) {
		r->idle++;
		return 0;
	}
	if (r->text[from] != '(') {
		if (action(r, from, to, &one))
			return -1;
		push(r, rank, one);
		return 0;
	}
	size_t n = sizeof overlap - 1;
	const char *middle = memchr(r->text + from, ';', to - from);
	if (!middle || to - from < n + 2 || memcmp(r->text + to - n, overlap, n) || r->text[to - n - 1] != ')') {
		err_at(at(r, from, to), "a pair is written (0F3;7B1)%s", overlap);
		return -1;
	}
	size_t half = (size_t)(middle - r->text);
	if (action(r, from + 1, half, &one) || action(r, half + 1, to - n - 1, &two))
		return -1;
	if (one.type != F || (two.type != B && two.type != I)) {
		err_at(at(r, from, to), "a pair is an F and a B or I");
		return -1;
	}
	one.pair = true;
	push(r, rank, one);
	push(r, rank, two);
	return 0;
}

static int read_rows(Reader *r, size_t bytes)
{
	PipeCsv *c = r->csv;
	int bad = 0, ncell = 0, nidle = 0;
	for (size_t from = 0; from < bytes && !bad; c->nrank++) {
		const char *end = memchr(r->text + from, '\n', bytes - from);
		size_t stop = end ? (size_t)(end - r->text) : bytes;
		c->crlf = c->crlf || (stop > from && r->text[stop - 1] == '\r');
		c->cell = arena_grow(r->a, c->cell, c->nrank, sizeof *c->cell);
		c->cell[c->nrank] = NULL;
		arena_push(r->a, c->ncell, ncell, 0);
		r->idle = 0;
		for (size_t cell = from; cell <= stop && !bad;) {
			const char *comma = memchr(r->text + cell, ',', stop - cell);
			size_t to = comma ? (size_t)(comma - r->text) : stop;
			bad = read_cell(r, c->nrank, cell, to);
			cell = to + 1;
		}
		arena_push(r->a, c->idle, nidle, r->idle);
		if (!bad && !c->ncell[c->nrank]) {
			err_at(at(r, from, stop), "rank %d has no action", c->nrank);
			bad = -1;
		}
		from = stop + 1;
	}
	if (!bad && !c->nrank)
		err_at(at(r, 0, 0), "there is no row");
	return bad || !c->nrank ? -1 : 0;
}

/* ---- the cells ---- */

static bool sends(int type) { return type >= SEND_F; }
static bool computes(int type) { return type <= B; }

/* Where each stage is, how many micro-batches there are. */
static int place(Reader *r)
{
	PipeCsv *c = r->csv;
	const CsvCell **first = arena_array(r->a, const CsvCell *, NUMBER_MOST);
	c->rank = arena_array(r->a, int, NUMBER_MOST);
	for (int k = 0; k < c->nrank; k++)
		for (int i = 0; i < c->ncell[k]; i++) {
			const CsvCell *x = &c->cell[k][i];
			if (first[x->stage] && c->rank[x->stage] != k) {
				err_at(x->at, "stage %d is on rank %d and on rank %d", x->stage, c->rank[x->stage], k);
				note_at(first[x->stage]->at, "it is on rank %d here", c->rank[x->stage]);
				return -1;
			}
			first[x->stage] = first[x->stage] ? first[x->stage] : x;
			c->rank[x->stage] = k;
			c->nstage = x->stage >= c->nstage ? x->stage + 1 : c->nstage;
			r->most = x->micro >= c->micros ? x : r->most;
			c->micros = x->micro >= c->micros ? x->micro + 1 : c->micros;
			c->sends = c->sends || sends(x->type);
		}
	for (int s = 0; s < c->nstage; s++)
		if (!first[s]) {
			err_at(first[c->nstage - 1]->at, "stage %d has no action, but stage %d has", s, c->nstage - 1);
			return -1;
		}
	return 0;
}

/* Each stage has an F of every micro-batch; so tables of stages and micro-batches are not larger than the file. */
static int check_forward(Reader *r)
{
	const PipeCsv *c = r->csv;
	int *count = arena_array(r->a, int, c->nstage + 1), few = -1;
	const CsvCell *last = NULL;
	for (int k = 0; k < c->nrank; k++)
		for (int i = 0; i < c->ncell[k]; i++)
			count[c->cell[k][i].stage] += c->cell[k][i].type == F;
	for (int s = c->nstage - 1; s >= 0; s--)
		few = count[s] < c->micros ? s : few;
	if (few < 0)
		return 0;
	bool *has = arena_array(r->a, bool, c->micros + 1);
	for (int i = 0, k = c->rank[few]; i < c->ncell[k]; i++)
		if (c->cell[k][i].stage == few) {
			last = &c->cell[k][i];
			if (last->type == F)
				has[last->micro] = true;
		}
	int m = 0;
	while (has[m])
		m++;
	err_at(last->at, "stage %d has no F of micro-batch %d; the last one is %d", few, m, c->micros - 1);
	note_at(r->most->at, "micro-batch %d stands here", c->micros - 1);
	return -1;
}

static const CsvCell **seen_at(const PipeCsv *c, const CsvCell **seen, int type, int stage, int micro)
{
	size_t row = (size_t)type * (size_t)c->nstage + (size_t)stage;
	return &seen[row * (size_t)(c->micros + 1) + (size_t)(micro + 1)];
}

/* The action `before` must come before `type` on the same row, if the row has it. */
static const struct { int type, before; } order[] = {
	{ I, F }, { B, F }, { W, I }, { SEND_F, F }, { F, RECV_F }, { SEND_B, B }, { SEND_B, I }, { B, RECV_B },
	{ I, RECV_B },
};

static int check_once(const PipeCsv *c, const CsvCell **seen)
{
	for (int k = 0; k < c->nrank; k++)
		for (int i = 0; i < c->ncell[k]; i++) {
			const CsvCell *x = &c->cell[k][i], **was = seen_at(c, seen, x->type, x->stage, x->micro);
			if (*was && types[x->type].micro) {
				err_at(x->at, "this action stands here for the second time");
				note_at((*was)->at, "the first is here");
				return -1;
			}
			*was = x;
		}
	return 0;
}

static int check_before(const PipeCsv *c, const CsvCell **seen)
{
	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		for (int s = 0; s < c->nstage; s++)
			for (int m = 0; m < c->micros; m++) {
				const CsvCell *x = *seen_at(c, seen, order[i].type, s, m);
				const CsvCell *y = *seen_at(c, seen, order[i].before, s, m);
				if (x && y && x->at.off < y->at.off) {
					err_at(x->at, "this action stands before %d%s%d", s,
						types[order[i].before].name, m);
					note_at(y->at, "which is here");
					return -1;
				}
			}
	return 0;
}

/* Whether stage s computes all of micro-batch m. */
static int check_whole(const PipeCsv *c, const CsvCell **seen, int s, int m)
{
	bool has[4];
	for (int t = F; t <= B; t++)
		has[t] = *seen_at(c, seen, t, s, m);
	const char *missing = !has[F] ? "F" : !has[B] && !has[I] ? "B" : has[I] && !has[W] ? "W" : NULL;
	if (missing) {
		err_at((*seen_at(c, seen, has[F] ? F : B, s, m))->at,
			"stage %d has no %s of micro-batch %d; the last one is %d", s, missing, m, c->micros - 1);
		return -1;
	}
	if (has[B] && (has[I] || has[W])) {
		err_at((*seen_at(c, seen, B, s, m))->at,
			"B computes both gradients, but %d%s%d stands in the file, too", s, has[I] ? "I" : "W", m);
		return -1;
	}
	return 0;
}

/* Checks sends and receives: both ends must exist if the stages are on two ranks, none if they are on one. */
static int check_sends(const PipeCsv *c, const CsvCell **seen, int s, int m)
{
	static const struct { int send, receive, next; } ways[] = { { SEND_F, RECV_F, 1 }, { SEND_B, RECV_B, -1 } };
	for (int i = 0; i < 2; i++) {
		int to = s + ways[i].next, before = s - ways[i].next;
		bool out = to >= 0 && to < c->nstage && c->rank[to] != c->rank[s];
		bool in = before >= 0 && before < c->nstage && c->rank[before] != c->rank[s];
		const CsvCell *send = *seen_at(c, seen, ways[i].send, s, m);
		const CsvCell *receive = *seen_at(c, seen, ways[i].receive, s, m);
		if ((send && !out) || (receive && !in)) {
			err_at(send && !out ? send->at : receive->at, "there is no stage on another rank for this");
			return -1;
		}
		if ((out && !send) || (in && !receive)) {
			const CsvCell *block = *seen_at(c, seen, i ? B : F, s, m);
			block = block ? block : *seen_at(c, seen, I, s, m);
			err_at(block->at, "%d%s%d is missing", s,
				types[out && !send ? ways[i].send : ways[i].receive].name, m);
			return -1;
		}
	}
	return 0;
}

/* The next cell of a stage behind `from` that sends (or receives) to a neighbour: SEND_F and RECV_F, or what they
 * follow from. */
static const CsvCell *next_end(const PipeCsv *c, int s, int from, bool forward, bool out)
{
	int k = c->rank[s];
	for (int i = from; i < c->ncell[k]; i++) {
		const CsvCell *x = &c->cell[k][i];
		bool back = x->type == B || x->type == I;
		bool end = c->sends ? x->type == (out ? forward ? SEND_F : SEND_B : forward ? RECV_F : RECV_B) :
			forward ? x->type == F : back;
		if (x->stage == s && end)
			return x;
	}
	return NULL;
}

/* Micro-batches are received in the order in which they are sent. */
static int check_turns(const PipeCsv *c)
{
	for (int s = 0; s < c->nstage; s++)
		for (int forward = 0; forward < 2; forward++) {
			int t = forward ? s + 1 : s - 1;
			if (t < 0 || t >= c->nstage || c->rank[t] == c->rank[s])
				continue;
			const CsvCell *x = NULL, *y = NULL;
			do {
				x = next_end(c, s, x ? (int)(x - c->cell[c->rank[s]]) + 1 : 0, forward, true);
				y = next_end(c, t, y ? (int)(y - c->cell[c->rank[t]]) + 1 : 0, forward, false);
			} while (x && y && x->micro == y->micro);
			if (!x || !y)
				continue;
			err_at(y->at, "stage %d gets micro-batch %d here, but stage %d sends micro-batch %d", t,
				y->micro, s, x->micro);
			note_at(x->at, "it is sent here");
			return -1;
		}
	return 0;
}

static int misplaced(const CsvCell *x, const CsvCell *other, const char *why, const char *note)
{
	err_at(x->at, "%s", why);
	note_at(other->at, "%s", note);
	return -1;
}

/* What happened last to a stage: it was gathered, let go, reduced; and its first action. */
typedef struct Marks { const CsvCell *gathered, *let_go, *reduced, *first; bool gathers; } Marks;

static int check_mark(const CsvCell *x, Marks *m)
{
	bool gradient = x->type == W || x->type == B || x->type == I;
	if (x->type == UNSHARD && m->gathered)
		return misplaced(x, m->gathered, "the parameters of this stage are gathered already",
			"since this UNSHARD");
	if (x->type == RESHARD && !m->gathered)
		return misplaced(x, m->let_go ? m->let_go : m->first,
			"the parameters of this stage are not gathered, so RESHARD cannot let them go",
			m->let_go ? "they were let go here" : "its first action is here");
	if (x->type == REDUCE_GRAD && m->reduced)
		return misplaced(x, m->reduced, "this action stands here for the second time", "the first is here");
	if (gradient && m->reduced)
		return misplaced(m->reduced, x,
			"the gradients of this stage are reduced before its last backward action",
			"which is here, or later");
	if (computes(x->type) && m->gathers && !m->gathered)
		return misplaced(x, m->let_go ? m->let_go : x, "the parameters of this stage are not gathered here",
			m->let_go ? "they were let go here" : "write its UNSHARD before this action");
	m->let_go = x->type == RESHARD ? x : m->let_go;
	m->gathered = x->type == UNSHARD ? x : x->type == RESHARD ? NULL : m->gathered;
	m->reduced = x->type == REDUCE_GRAD ? x : m->reduced;
	return 0;
}

/* UNSHARD, RESHARD and REDUCE_GRAD: a stage that has an UNSHARD anywhere computes only while it is gathered; gradients
 * are reduced once, after the last of them.  A file without them leaves both to the plan. */
static int check_marks(const PipeCsv *c, Arena *a)
{
	Marks *mark = arena_array(a, Marks, c->nstage + 1);
	for (int k = 0; k < c->nrank; k++)
		for (int i = c->ncell[k]; i-- > 0;) {
			mark[c->cell[k][i].stage].gathers |= c->cell[k][i].type == UNSHARD;
			mark[c->cell[k][i].stage].first = &c->cell[k][i];
		}
	for (int k = 0; k < c->nrank; k++)
		for (int i = 0; i < c->ncell[k]; i++)
			if (check_mark(&c->cell[k][i], &mark[c->cell[k][i].stage]))
				return -1;
	return 0;
}

static int check_cells(Reader *r)
{
	const PipeCsv *c = r->csv;
	Arena scratch = { 0 };
	size_t cells = (size_t)NTYPE * (size_t)c->nstage * (size_t)(c->micros + 1);
	const CsvCell **seen = arena_array(&scratch, const CsvCell *, cells);
	int bad = check_once(c, seen) || check_before(c, seen);
	for (int s = 0; s < c->nstage && !bad; s++)
		for (int m = 0; m < c->micros && !bad; m++)
			bad = check_whole(c, seen, s, m) || (c->sends && check_sends(c, seen, s, m));
	bad = bad || check_marks(c, &scratch);
	arena_free(&scratch);
	return bad || check_turns(c) ? -1 : 0;
}

/* ---- orders ---- */

static void take_order(Reader *r)
{
	PipeCsv *c = r->csv;
	c->order.task = arena_array(r->a, PipeTask *, c->nrank);
	c->order.ntask = arena_array(r->a, int, c->nrank);
	for (int k = 0; k < c->nrank; k++) {
		c->order.task[k] = arena_array(r->a, PipeTask, c->ncell[k]);
		for (int i = 0; i < c->ncell[k]; i++) {
			const CsvCell *x = &c->cell[k][i];
			if (computes(x->type))
				c->order.task[k][c->order.ntask[k]++] = (PipeTask){ types[x->type].kind, x->stage,
					x->micro };
		}
	}
}

static int channel_of(const LaneNet *net, const CsvCell *x)
{
	static const struct { int from, to; } ends[] = {
		[SEND_F] = { 0, 1 }, [RECV_F] = { -1, 0 }, [SEND_B] = { 0, -1 }, [RECV_B] = { 1, 0 },
	};
	char name[32];
	snprintf(name, sizeof name, "%c%d>%d", x->type == SEND_F || x->type == RECV_F ? 'x' : 'g',
		x->stage + ends[x->type].from, x->stage + ends[x->type].to);
	for (int i = 0; i < net->nchannel; i++)
		if (!strcmp(net->channel[i].name, name))
			return i;
	die("csv.c: no channel %s", name);
}

static int block_of(const LaneRole *role, const CsvCell *x)
{
	for (int i = 0; i < role->nblock; i++)
		if (role->block[i].stage == x->stage && role->block[i].kind == types[x->type].kind)
			return i;
	die("csv.c: no block of stage %d", x->stage);
}

/* Rows with sends are run as written: one lane for each rank, and a piece for each micro-batch. */
void csv_net(const PipeCsv *c, Arena *a, LaneNet *net)
{
	for (int i = 0; i < net->nchannel; i++) {
		const LaneChannel *h = &net->channel[i];
		net->role[h->from].reg[h->from_reg].copies = net->role[h->to].reg[h->to_reg].copies = c->micros;
	}
	for (int k = 0; k < c->nrank; k++) {
		LaneRole *role = &net->role[k];
		Lane all = { .kind = LANE_COMPUTE };
		for (int i = 0; i < c->ncell[k]; i++) {
			const CsvCell *x = &c->cell[k][i];
			bool out = x->type == SEND_F || x->type == SEND_B;
			if (sends(x->type))
				arena_push(a, all.task, all.ntask, ((LaneTask){ out ? DO_SEND : DO_RECEIVE,
					channel_of(net, x), x->micro }));
			else if (computes(x->type))
				arena_push(a, all.task, all.ntask, ((LaneTask){ DO_BLOCK, block_of(role, x),
					x->micro }));
		}
		for (int i = 0; i < role->nblock; i++)
			if (role->block[i].kind == BLOCK_UPDATE)
				arena_push(a, all.task, all.ntask, ((LaneTask){ DO_BLOCK, i, -1 }));
		role->lane[0] = all;
		role->nlane = 1;
	}
}

/* The cell of a rank that is its n-th task. */
static Loc cell_of(const PipeCsv *c, int rank, int n)
{
	for (int i = 0; i < c->ncell[rank]; i++) {
		int type = c->cell[rank][i].type;
		if ((computes(type) || (c->sends && sends(type))) && !n--)
			return c->cell[rank][i].at;
	}
	return c->cell[rank][0].at;
}

/* Checks that all ranks run to their end. */
static int check_run(Reader *r)
{
	const PipeCsv *c = r->csv;
	Arena a = { 0 };
	Pipeline p = { .nrank = c->nrank, .nstage = c->nstage, .micros = c->micros, .nhop = c->nstage - 1 };
	p.stage = arena_array(&a, PipeStage, c->nstage);
	p.hop = arena_array(&a, PipeHop, c->nstage);
	for (int s = 0; s < c->nstage; s++) {
		p.stage[s].rank = c->rank[s];
		p.hop[s] = (PipeHop){ .from = s, .to = s + 1 };
	}
	LaneNet net;
	net_of(&p, &c->order, 0, &a, &net);
	if (c->sends)
		csv_net(c, &a, &net);
	const char *why = check_net(&net, &a);
	if (why) {
		Walk w;
		int rank = 0;
		if (!walk_begin(&w, &net, 1, false, &a))
			walk_run(&w, NULL, NULL);
		for (int l = w.nlane - 1; l >= 0; l--)
			if (w.lane[l].lane->kind == LANE_COMPUTE && !walk_done(&w, l))
				rank = l;
		check_explain(cell_of(c, w.lane[rank].role, w.lane[rank].pos), why);
	}
	arena_free(&a);
	return why ? -1 : 0;
}

int csv_read(const char *path, Arena *a, PipeCsv *csv)
{
	ExitCode why;
	*csv = (PipeCsv){ 0 };
	Reader r = { .a = a, .file = file_open(path, &why), .csv = csv };
	if (!r.file)
		return -1;
	const SrcFile *f = file_of(r.file);
	r.text = (const char *)f->data;
	if (read_rows(&r, f->bytes) || place(&r) || check_forward(&r) || check_cells(&r))
		return -1;
	take_order(&r);
	return check_run(&r);
}

int csv_reduces(const PipeCsv *c, int stage)
{
	int k = c->rank[stage];
	for (int i = 0, before = 0; i < c->ncell[k]; i++) {
		const CsvCell *x = &c->cell[k][i];
		if (x->type == REDUCE_GRAD && x->stage == stage)
			return before;
		before += computes(x->type);
	}
	return -1;
}

/* ---- writing ---- */

/* Compute only: PyTorch adds sends, receives and reductions to such a file itself. */
void csv_of(const Pipeline *p, const PipeOrder *o, Arena *a, PipeCsv *csv)
{
	static const int type_of[] = { [BLOCK_F] = F, [BLOCK_B] = I, [BLOCK_W] = W, [BLOCK_BW] = B };
	*csv = (PipeCsv){ .nrank = p->nrank, .nstage = p->nstage, .micros = p->micros, .order = *o };
	csv->ncell = arena_array(a, int, p->nrank);
	csv->rank = arena_array(a, int, p->nstage);
	csv->idle = arena_array(a, int, p->nrank);
	csv->cell = arena_array(a, CsvCell *, p->nrank);
	for (int s = 0; s < p->nstage; s++)
		csv->rank[s] = p->stage[s].rank;
	for (int k = 0; k < p->nrank; k++) {
		csv->cell[k] = arena_array(a, CsvCell, o->ntask[k] + 1);
		for (int i = 0; i < o->ntask[k]; i++) {
			const PipeTask *t = &o->task[k][i];
			if (t->micro >= 0)
				csv->cell[k][csv->ncell[k]++] = (CsvCell){ .type = type_of[t->kind],
					.stage = t->stage, .micro = t->micro };
		}
	}
}

static void write_action(FILE *out, const CsvCell *x)
{
	fprintf(out, "%d%s", x->stage, types[x->type].name);
	if (types[x->type].micro)
		fprintf(out, "%d", x->micro);
}

static void write_commas(FILE *out, int n)
{
	while (n-- > 0)
		putc(',', out);
}

void csv_write(FILE *out, const PipeCsv *c)
{
	for (int k = 0; k < c->nrank; k++) {
		for (int i = 0; i < c->ncell[k]; i++) {
			const CsvCell *x = &c->cell[k][i];
			write_commas(out, x->idle + (i > 0));
			if (x->pair) {
				putc('(', out);
				write_action(out, x);
				putc(';', out);
				write_action(out, &c->cell[k][++i]);
				fprintf(out, ")%s", overlap);
			} else {
				write_action(out, x);
			}
		}
		write_commas(out, c->idle[k]);
		fputs(c->crlf ? "\r\n" : "\n", out);
	}
}

bool csv_ascends(const PipeCsv *c)
{
	/* by stage: the last F, the last gradient of inputs, the last gradient of weights */
	Arena a = { 0 };
	int (*last)[3] = arena_alloc(&a, sizeof *last * (size_t)(c->nstage + 1));
	bool up = true;
	for (int s = 0; s < c->nstage; s++)
		last[s][0] = last[s][1] = last[s][2] = -1;
	for (int k = 0; k < c->nrank; k++)
		for (int i = 0; i < c->order.ntask[k]; i++) {
			const PipeTask *t = &c->order.task[k][i];
			bool does[3] = { t->kind == BLOCK_F, t->kind == BLOCK_B || t->kind == BLOCK_BW,
				t->kind == BLOCK_W || t->kind == BLOCK_BW };
			for (int j = 0; j < 3; j++) {
				up = up && (!does[j] || t->micro > last[t->stage][j]);
				last[t->stage][j] = does[j] ? t->micro : last[t->stage][j];
			}
		}
	arena_free(&a);
	return up;
}
