/* Transfers between processes: random pairs of forms over meshes of one to three axes, every type and reduction, small
 * and large, parts of unequal lengths and empty ones; what arrives is what form_pieces says, with every holder's
 * numbers its own, so that a value taken from the wrong rank shows.  Ranks are delayed at random, and write over what
 * they gave as soon as a transfer returns.  Then several buckets at once, started and finished, by a thread of their
 * own or without. */
#include "comm.h"
#include "save.h"

#include "../boxing/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOVES = 48, CHANNELS = 5, ROUNDS = 3, MANY = 6, FLIGHTS = 30, LARGE = 60000, ROOM = 8 * 10 * LARGE };

static uint64_t state;

static uint64_t draw(uint64_t n)
{
	state = rt_hash(state, 7);
	return state % n;
}

/* ---- programs ---- */

static Form meshes[12];
static int nmesh;

static void make_meshes(int nrank)
{
	nmesh = 0;
	for (int a = 1; a <= nrank; a++)
		for (int b = 1; a * b <= nrank && nmesh < 12; b++) {
			if (nrank % (a * b) || (a == 1 && b > 1))
				continue;
			Form f = { .ndim = a == 1 ? 1 : b == 1 ? 2 : 3, .mesh = { a, nrank / a / b, b } };
			f.mesh[0] = a == 1 ? nrank : a;
			meshes[nmesh++] = f;
		}
}

static void cut(Form *f, int k, const int64_t inner[FORM_AXES], FormReduce how, bool terms)
{
	FormCut *c = &f->cut[k];
	uint64_t kind = draw(terms ? 4 : 3);
	c->kind = FORM_B;
	if (kind == 3) {
		c->kind = FORM_P;
		c->reduce = (int8_t)how;
	} else if (kind && f->naxis) {
		int a = (int)draw((uint64_t)f->naxis);
		c->kind = FORM_S;
		c->axis = (int8_t)a;
		c->inner = inner[a];
		c->len = inner[a] > 1 ? f->dim[a] / inner[a] / 3 : f->dim[a];
	}
}

/* Both forms of a transfer have one shape; an axis is cut whole, or along the middle of three factors. */
static void make_pair(Form *from, Form *to, bool large)
{
	int64_t inner[FORM_AXES];
	FormReduce how = (FormReduce)draw(4);
	*from = meshes[draw((uint64_t)nmesh)];
	from->naxis = large ? 1 + (int)draw(2) : (int)draw(4);
	for (int a = 0; a < from->naxis; a++) {
		inner[a] = draw(2) ? 1 : 2 + (int64_t)draw(3);
		from->dim[a] = inner[a] > 1 ? 3 * inner[a] * (1 + (int64_t)draw(large ? 1 : 5))
			: 1 + (int64_t)draw(large && !a ? LARGE : 9);
	}
	*to = *from;
	if (draw(4) == 0) {             /* another mesh of the same ranks */
		const Form *m = &meshes[draw((uint64_t)nmesh)];
		to->ndim = m->ndim;
		memcpy(to->mesh, m->mesh, sizeof to->mesh);
	}
	for (int k = 0; k < from->ndim; k++)
		cut(from, k, inner, how, true);
	for (int k = 0; k < to->ndim; k++)
		cut(to, k, inner, how, draw(3) == 0);
	/* an all-reduce */
	if (draw(3) == 0 && to->ndim == from->ndim && !memcmp(to->mesh, from->mesh, sizeof to->mesh))
		for (int k = 0; k < from->ndim; k++) {
			to->cut[k] = from->cut[k];
			if (draw(2) || k == 0)
				from->cut[k] = (FormCut){ .kind = FORM_P, .reduce = (int8_t)how };
			if (from->cut[k].kind == FORM_P)
				to->cut[k] = (FormCut){ .kind = FORM_B };
		}
}

/* ---- numbers ---- */

static double number(int move, int round, int place, int64_t i, FormReduce how)
{
	int v = (int)(rt_hash(rt_hash((uint64_t)(move * ROUNDS + round), (uint64_t)place), (uint64_t)i) % 7);
	return how == FORM_PROD ? 1 + (v == 0 && place % 3 == 0) : v;
}

static void put(void *x, RtType t, int64_t i, double v)
{
	switch (t) {
	case RT_F32: ((float *)x)[i] = (float)v; break;
	case RT_F64: ((double *)x)[i] = v; break;
	case RT_I64: ((int64_t *)x)[i] = (int64_t)v; break;
	case RT_I32: ((int32_t *)x)[i] = (int32_t)v; break;
	default: ((uint8_t *)x)[i] = (uint8_t)v;
	}
}

static double get(const void *x, RtType t, int64_t i)
{
	switch (t) {
	case RT_F32: return (double)((const float *)x)[i];
	case RT_F64: return ((const double *)x)[i];
	case RT_I64: return (double)((const int64_t *)x)[i];
	case RT_I32: return ((const int32_t *)x)[i];
	default: return ((const uint8_t *)x)[i];
	}
}

static FormReduce reduce_of(const Form *f)
{
	int how = form_reduction(f);
	return how < 0 ? FORM_SUM : (FormReduce)how;
}

/* What should be there: the pieces one by one, from numbers that are made up again. */
typedef struct Want { double *y; int move, round, place; bool first; FormReduce how; } Want;

static void row(void *arg, int64_t from, int64_t to, int64_t n)
{
	const Want *w = arg;
	for (int64_t i = 0; i < n; i++) {
		double v = number(w->move, w->round, w->place, from + i, w->how), *y = &w->y[to + i];
		if (w->first)
			*y = v;
		else
			*y = w->how == FORM_SUM ? *y + v : w->how == FORM_PROD ? *y * v : w->how == FORM_MAX
				? (v > *y ? v : *y) : (v < *y ? v : *y);
	}
}

static int piece(void *arg, const FormPiece *p)
{
	Want *w = arg;
	w->place = p->from;
	w->first = p->first;
	form_rows(p, row, w);
	return 0;
}

/* ---- one rank ---- */

/* Number `round` of this rank's operand of a transfer. */
static void give(const Ctx *c, int move, int round, void *x)
{
	const RtMove *m = &c->program->move[move];
	const Form *from = &c->program->form[m->from - 1];
	int mine = form_index(from, c->rank);
	for (int64_t i = 0, n = form_held(from, mine); i < n; i++)
		put(x, m->type, i, number(move, round, mine, i, reduce_of(from)));
}

/* How many elements of a result are wrong; it is mine again, and so is the operand. */
static int64_t wrong(const Ctx *c, int move, int round, const void *y, void *x)
{
	const RtMove *m = &c->program->move[move];
	const Form *from = &c->program->form[m->from - 1], *to = &c->program->form[m->to - 1];
	int place = form_index(to, c->rank);
	int64_t n = form_held(from, form_index(from, c->rank)), count = form_held(to, place), bad = 0;
	double *want = calloc((size_t)count + 1, sizeof *want);
	unsigned char none[8];
	rt_fill(none, m->type, reduce_of(to), 1);
	for (int64_t i = 0; want && i < count; i++)
		want[i] = get(none, m->type, 0);
	Want w = { .y = want, .move = move, .round = round, .first = true, .how = reduce_of(from) };
	if (!want || form_pieces(from, to, place, NULL, piece, &w))
		exit(RT_MEMORY);
	for (int64_t i = 0; i < count; i++)
		bad += want[i] != get(y, m->type, i);
	memset(x, 0x55, (size_t)n * rt_width(m->type));
	free(want);
	return bad;
}

static void delay(const Ctx *c, int what)
{
	if (rt_hash((uint64_t)what, (uint64_t)(c->rank + 100)) % 5 == 0)
		usleep(300);
}

static int one(Ctx *c, int move, int round, int64_t *bad)
{
	const RtProgram *p = c->program;
	const RtRoute *r = &c->route[move];
	unsigned char *x = c->window, *y;
	if (r->nterm && round)
		y = x;
	else
		y = draw(2) || r->nterm ? c->window + p->window_bytes / 2 : c->slab;
	give(c, move, round, x);
	delay(c, move * ROUNDS + round);
	int code = rt_move(c, move, y, x);
	*bad += wrong(c, move, round, y, x);
	return code;
}

static void show(const RtProgram *p, int move)
{
	for (int side = 0; side < 2; side++) {
		const Form *f = &p->form[(side ? p->move[move].to : p->move[move].from) - 1];
		printf(" %s", side ? "to" : "from");
		for (int k = 0; k < f->ndim; k++)
			printf(f->cut[k].kind == FORM_S ? " %d:S(%d, %lld x %lld)" : f->cut[k].kind == FORM_B ? " %d:B"
				: " %d:P%d", f->mesh[k], f->cut[k].kind == FORM_S ? f->cut[k].axis : f->cut[k].reduce,
			       (long long)f->cut[k].len, (long long)f->cut[k].inner);
		for (int a = 0; a < f->naxis; a++)
			printf("%s%lld", a ? " x " : ", ", (long long)f->dim[a]);
	}
	printf(", type %d\n", p->move[move].type);
}

/* Several buckets on their way at once, each of several values of one transfer, finished in any order; one in a while
 * is done at once. */
typedef struct Flight { int move, round, n, place[MANY]; void *y[MANY]; const void *x[MANY]; } Flight;

static int start(Ctx *c, Flight *f, unsigned char *at, size_t room)
{
	const RtMove *m = &c->program->move[f->move];
	const Form *from = &c->program->form[m->from - 1];
	size_t bytes = rt_width(m->type);
	int move[MANY];
	for (int a = 0; a < from->naxis; a++)
		bytes *= (size_t)from->dim[a];
	bytes = (bytes + 63) / 64 * 64;
	for (f->n = 0; f->n < MANY && (size_t)(2 * f->n + 2) * bytes <= room && (!f->n || draw(3)); f->n++) {
		int k = f->n;
		move[k] = f->move;
		f->x[k] = at + (size_t)(2 * k) * bytes;
		bool in_place = c->route[f->move].nterm && f->round % 2;
		f->y[k] = in_place ? (void *)(uintptr_t)f->x[k] : at + (size_t)(2 * k + 1) * bytes;
		give(c, f->move, f->round + k, (void *)(uintptr_t)f->x[k]);
	}
	delay(c, f->move + 7 * f->round);
	return !f->n ? 0 : draw(6) ? rt_moves_start(c, f->n, move, f->y, f->x) : rt_moves(c, f->n, move, f->y, f->x);
}

static int flights(Ctx *c, int round, int64_t *bad)
{
	enum { TOGETHER = 5 };
	Flight f[TOGETHER];
	size_t room = c->program->window_bytes / TOGETHER / 64 * 64;
	int code = 0, left = TOGETHER;
	for (int i = 0; i < TOGETHER && !code; i++) {
		f[i] = (Flight){ .move = (int)draw((uint64_t)c->program->nmove), .round = round };
		code = start(c, &f[i], c->window + (size_t)i * room, room);
		if (!code && draw(2))
			code = rt_lane_poll(c);
	}
	for (; left && !code; left--) {
		int k = (int)draw((uint64_t)left);
		Flight now = f[k];
		f[k] = f[left - 1];
		delay(c, now.move + 11 * round);
		code = now.n ? rt_moves_finish(c, now.y[0]) : 0;
		for (int i = 0; i < now.n && !code; i++) {
			int64_t differs;
			if ((differs = wrong(c, now.move, now.round + i, now.y[i], (void *)(uintptr_t)now.x[i])) &&
				!*bad) {
				show(c->program, now.move);
				printf(" bucket of transfer %d, value %d of %d, rank %d: %lld elements differ\n",
					now.move, i, now.n, c->rank, (long long)differs);
			}
			*bad += differs;
		}
	}
	return code;
}

static int rank(Ctx *c, void *arg)
{
	int64_t bad = 0;
	int code = rt_pool_open(c, *(int *)arg);
	state = 1;                      /* all ranks draw the same */
	for (int round = 0; round < ROUNDS && !code; round++)
		for (int i = 0; i < c->program->nmove && !code; i++) {
			int64_t before = bad;
			code = one(c, i, round, &bad);
			if (bad > before && bad - before == bad)
				show(c->program, i);
			if (bad > before && bad - before == bad)
				printf(" transfer %d, rank %d: %lld elements differ\n", i, c->rank, (long long)bad);
		}
	code = code ? code : rt_lane_open(c);
	for (int i = 0; i < FLIGHTS && !code; i++)
		code = flights(c, i, &bad);
	rt_lane_close(c, code);
	rt_pool_close(c);
	return code ? code : bad ? 1 : 0;
}

int main(void)
{
	static const int worlds[] = { 1, 2, 3, 4, 6, 8 };
	static const RtType types[] = { RT_F32, RT_F64, RT_I64, RT_I32, RT_U8, RT_BOOL };
	static Form form[2 * MOVES];
	static RtMove move[MOVES];
	static const RtChannel channel[CHANNELS] = { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 } };
	for (int k = 0; k < 6 * 4; k++) {
		int nrank = worlds[k % 6], threads = k % 4 == 3 ? 2 : 1;
		state = (uint64_t)k + 11;
		make_meshes(nrank);
		for (int i = 0; i < MOVES; i++) {
			make_pair(&form[2 * i], &form[2 * i + 1], i % 8 == 7);
			move[i] = (RtMove){ 2 * i + 1, 2 * i + 2, types[i % 3 == 0 ? 0 : draw(6)], i % CHANNELS };
		}
		RtProgram p = { .nrank = nrank, .form = form, .nform = 2 * MOVES, .move = move, .nmove = MOVES,
			.channel = channel, .nchannel = CHANNELS, .slab_bytes = ROOM, .window_bytes = 2 * ROOM,
			.most = 2 * MANY };
		setenv("RT_LANE", k / 6 % 2 ? "thread" : "walk", 1);
		int code = rt_run(&p, rank, &threads);
		if (code)
			printf("not ok %d-ranks-%d: exit status %d\n", nrank, k / 6, code);
	}
	printf("ok all\n");
	return 0;
}
