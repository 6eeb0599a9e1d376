/* The choice of what is computed again, on random chains of at most 12 blocks, against all choices there are: at most
 * 2 % more seconds, never over the limit, and "nothing fits" only where nothing does.  A stack of 96 equal layers of 4
 * blocks is reported with its seconds. */
#include "solve/solve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 12, CASES = 400 };

static uint64_t state = 7;
static double draw(double low, double high)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return low + (high - low) * (double)(state >> 33) / 2147483648.0;
}

static void make(ChainBlock *b, int n)
{
	bool alike = draw(0, 1) < 0.3;
	for (int i = 0; i < n; i++) {
		int copies = (int)draw(1, 5);
		double kept = floor(draw(0, 100)), out = floor(draw(1, 30)), pin = draw(0, 1);
		b[i] = (ChainBlock){ .seconds = draw(0.1, 3), .kept = copies * kept, .out = copies * out,
			.again = kept + out, .work = floor(draw(0, 20)), .first = draw(0, 1) < 0.15 };
		if (alike && i)
			b[i] = b[0];
		b[i].pin = pin < 0.1 ? CHAIN_AGAIN : pin < 0.2 ? CHAIN_KEEP : CHAIN_FREE;
	}
}

/* All choices: bit 0 of a digit: computed again, bit 1: begins a segment. */
static double best(const ChainBlock *b, int n, double limit)
{
	int segment[MOST + 1] = { 0 }, *digit = segment;
	double least = INFINITY;
	int choice[MOST] = { 0 };
	for (;;) {
		bool legal = true;
		double seconds = 0;
		int number = 0;
		for (int i = 0; i < n; i++) {
			bool again = choice[i] > 0, joins = choice[i] == 2;
			legal &= (again || b[i].pin != CHAIN_AGAIN) && (!again || b[i].pin != CHAIN_KEEP);
			legal &= !joins || (i && choice[i - 1] > 0 && !b[i].first);
			number += again && !joins;
			digit[i] = again ? number : 0;
			seconds += again ? b[i].seconds : 0;
		}
		if (legal && seconds < least && chain_peak(b, n, segment) <= limit)
			least = seconds;
		int k = 0;
		while (k < n && ++choice[k] == 3)
			choice[k++] = 0;
		if (k == n)
			return least;
	}
}

static void stack(void)
{
	enum { LAYERS = 96, EACH = 4 };
	static ChainBlock b[LAYERS * EACH];
	int none[LAYERS * EACH] = { 0 }, again = 0;
	Arena a = { 0 };
	ChainResult r;
	for (int i = 0; i < LAYERS * EACH; i++)
		b[i] = (ChainBlock){ .seconds = 1 + i % EACH, .kept = 1e6 * (3 + i % EACH), .out = 1e6,
			.again = 1e6 * (4 + i % EACH) };
	clock_t from = clock();
	bool ok = chain_solve(b, LAYERS * EACH, chain_peak(b, LAYERS * EACH, none) / 4, &a, &r);
	for (int i = 0; i < LAYERS * EACH && ok; i++)
		again += r.segment[i] > 0;
	printf("%s a stack of %d blocks: %d again, in %.3f s\n", ok && again ? "ok" : "not ok", LAYERS * EACH, again,
		(double)(clock() - from) / CLOCKS_PER_SEC);
	arena_free(&a);
}

int main(void)
{
	int wrong = 0, solved = 0;
	double gap = 0;
	for (int i = 0; i < CASES; i++) {
		ChainBlock b[MOST];
		int n = i < 20 ? MOST : (int)draw(1, 10), none[MOST] = { 0 };
		Arena a = { 0 };
		ChainResult r;
		make(b, n);
		double limit = chain_peak(b, n, none) * draw(0.2, 1.1), least = best(b, n, limit);
		bool fits = chain_solve(b, n, limit, &a, &r);
		if (fits != (least < INFINITY) || (fits && chain_peak(b, n, r.segment) > limit))
			wrong++;
		if (fits) {
			solved++;
			gap = fmax(gap, least > 0 ? r.seconds / least - 1 : r.seconds);
		}
		arena_free(&a);
	}
	printf("%s limits: %d of %d cases wrong\n", wrong ? "not ok" : "ok", wrong, CASES);
	printf("%s seconds: at most %.3f %% above the best, %d of %d cases fit\n", gap <= 0.02 && solved > CASES / 4 ?
		"ok" : "not ok", 100 * gap, solved, CASES);
	stack();
	return 0;
}
