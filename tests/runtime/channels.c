/* Channels progress independently.  Ranks 0 and 1 are one mesh, ranks 2 and 3 another.
 *
 *   PAIR     0 1 -> 0 1     many sums
 *   OTHERS   2 3 -> 2 3     a few sums
 *   THERE    0 1 -> 2 3
 *   TURNED   1 0 -> 3 2     the same ranks in another order: another channel between the same processes
 *   BACK     2 3 -> 0 1
 *
 * 1. The first pair does all its sums before the other pair does any.  So when they meet on THERE, the two ends have
 * done different numbers of transfers.
 * 2. The first pair starts THERE before TURNED, the second pair in the opposite order: messages and numbers of one
 * channel do not match those of another.
 *
 * Each rank writes over its operands as soon as a transfer is finished, and checks every result. */
#include "comm.h"
#include "save.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAIR, OTHERS, THERE, TURNED, BACK, NMOVE };
enum { N = 24, ROUNDS = 40, LIMIT = 300 };      /* elements; rounds; seconds after which ranks that wait are ended */

/* Element i of a tensor; a rank adds its own number to it where ranks hold terms. */
static float number(int move, int round, int i)
{
	return (float)(1 + 1000 * move + 37 * round + i);
}

/* Where operand and result of a transfer lie in the window. */
static float *operand(const Ctx *c, int move) { return (float *)(void *)c->window + 2 * N * move; }
static float *result(const Ctx *c, int move) { return operand(c, move) + N; }

static void give(const Ctx *c, int move, int round)
{
	const Form *f = &c->program->form[c->program->move[move].from - 1];
	int at = form_index(f, c->rank);
	if (at < 0)
		return;
	for (int i = 0; f->cut[0].kind == FORM_P && i < N; i++)
		operand(c, move)[i] = number(move, round, i) + (float)at;
	for (int i = 0; f->cut[0].kind == FORM_S && i < N / 2; i++)
		operand(c, move)[i] = number(move, round, at * N / 2 + i);
}

/* The number of wrong elements; then the memory is used for something else. */
static int wrong(const Ctx *c, int move, int round)
{
	const Form *from = &c->program->form[c->program->move[move].from - 1];
	const Form *to = &c->program->form[c->program->move[move].to - 1];
	int bad = 0;
	for (int i = 0; i < N && form_index(to, c->rank) >= 0; i++) {
		float v = number(move, round, i), want = from->cut[0].kind == FORM_P ? 2 * v + 1 : v;
		bad += result(c, move)[i] != want;
	}
	for (int i = 0; i < N; i++)
		operand(c, move)[i] = result(c, move)[i] = -1;
	return bad;
}

static int start(Ctx *c, int move, int round)
{
	void *y = result(c, move);
	const void *x = operand(c, move);
	give(c, move, round);
	return rt_moves_start(c, 1, &move, &y, &x);
}

static int finish(Ctx *c, int move, int round, int *bad)
{
	int code = rt_moves_finish(c, result(c, move));
	*bad += wrong(c, move, round);
	return code;
}

static int at_once(Ctx *c, int move, int round, int *bad)
{
	give(c, move, round);
	int code = rt_move(c, move, result(c, move), operand(c, move));
	*bad += wrong(c, move, round);
	return code;
}

static void delay(const Ctx *c, int round)
{
	if (rt_hash((uint64_t)round, (uint64_t)(c->rank + 100)) % 4 == 0)
		usleep(200);
}

/* Sums of one pair: with start and finish, or at once. */
static int sums(Ctx *c, int move, int n, int *bad)
{
	int code = 0;
	for (int i = 0; i < n && !code; i++) {
		delay(c, i);
		code = i % 3 ? start(c, move, i) : at_once(c, move, i, bad);
		if (!code && i % 3)
			code = finish(c, move, i, bad);
	}
	return code;
}

/* The second pair starts them in the opposite order.  Operands are in small messages, which leave at once. */
static int crossed(Ctx *c, int round, int *bad)
{
	bool first = c->rank < 2;
	int one = first ? THERE : TURNED, other = first ? TURNED : THERE;
	int code = start(c, one, round);
	delay(c, round);
	code = code ? code : start(c, other, round);
	code = code ? code : rt_lane_poll(c);
	code = code ? code : finish(c, THERE, round, bad);
	return code ? code : finish(c, TURNED, round, bad);
}

static int rank(Ctx *c, void *arg)
{
	bool first = c->rank < 2;
	int bad = 0, code = rt_pool_open(c, 1);
	(void)arg;
	alarm(LIMIT);
	code = code ? code : rt_lane_open(c);
	if (!code && first)
		code = sums(c, PAIR, ROUNDS, &bad);
	code = code ? code : c->comm->barrier(c);       /* the others have not begun */
	if (!code && !first)
		code = sums(c, OTHERS, 7, &bad);
	for (int i = 0; i < ROUNDS && !code; i++) {
		code = at_once(c, THERE, i, &bad);
		code = code ? code : crossed(c, i, &bad);
		code = code ? code : sums(c, first ? PAIR : OTHERS, first ? 1 : 1 + i % 3, &bad);
		code = code ? code : at_once(c, BACK, i, &bad);
	}
	rt_lane_close(c, code);
	rt_pool_close(c);
	if (bad)
		printf(" rank %d: %d elements differ\n", c->rank, bad);
	return code ? code : bad ? 1 : 0;
}

/* RT_LANE says whether a thread drives transfers; without a lane, transfers that are started in opposite orders
 * deadlock. */
int main(void)
{
	static const int swapped[] = { 1, 0 }, turned[] = { 3, 2 };
	static const FormCut split = { .kind = FORM_S, .len = N, .inner = 1 }, terms = { .kind = FORM_P },
		whole = { .kind = FORM_B };
#define ON(first_, rank_, cut_) { .ndim = 1, .mesh = { 2 }, .first = first_, .rank = rank_, .naxis = 1, .dim = { N }, \
	.cut = { cut_ } }
	const Form form[] = { ON(0, NULL, terms), ON(0, NULL, whole), ON(2, NULL, terms), ON(2, NULL, whole),
		ON(0, NULL, split), ON(0, swapped, split), ON(0, turned, whole), ON(2, NULL, split) };
	const RtMove move[NMOVE] = { [PAIR] = { 1, 2, RT_F32, PAIR }, [OTHERS] = { 3, 4, RT_F32, OTHERS },
		[THERE] = { 5, 4, RT_F32, THERE }, [TURNED] = { 6, 7, RT_F32, TURNED },
		[BACK] = { 8, 2, RT_F32, BACK } };
	const RtChannel channel[NMOVE] = { { 1, 2 }, { 3, 4 }, { 5, 4 }, { 6, 7 }, { 8, 2 } };
	RtProgram p = { .nrank = 4, .form = form, .nform = 8, .move = move, .nmove = NMOVE, .channel = channel,
		.nchannel = NMOVE, .slab_bytes = RT_PAGE, .window_bytes = RT_PAGE, .most = 2 };
	int code = rt_run(&p, rank, NULL);
	if (code)
		printf("not ok: exit status %d\n", code);
	return code;
}
