/* Random numbers of the kernel are those of the evaluator, bit for bit, whole and in parts, on one thread and on
 * several; and they are uniform: known answers of the generator, mean and variance. */
#include "ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/kernels.h"
#include "../../runtime/run.h"
#include "../../kernels/cpu/random.c"

static void say(bool ok, const char *what)
{
	printf(ok ? "ok %s\n" : "not ok %s: it is not\n", what);
}

/* Part [lo, lo + len) of axis 1 of [A, B, C], as a call would be printed. */
static bool part_agrees(Ctx *c, int64_t a, int64_t b, int64_t d, int64_t lo, int64_t len)
{
	int64_t n = a * len * d;
	float *y = malloc((size_t)n * sizeof *y + 1);
	KLoops l = { 3, { a, len, d }, { b * d, d, 1 } };
	bool ok = y && !k_random_uniform_f32(c, y, 7, 41, random_key("h"), lo * d, l);
	for (int64_t i = 0; ok && i < n; i++) {
		int64_t x = i / (len * d), z = i / d % len + lo, k = i % d;
		float want = (float)random_uniform(7, 41, random_key("h"), (uint64_t)((x * b + z) * d + k));
		ok = !memcmp(&want, &y[i], sizeof want);
	}
	free(y);
	return ok;
}

/* Salmon et al., known answers of philox4x32-10: counter and key all zero, and all ones. */
static bool known(void)
{
	static const uint32_t zero[] = { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
		ones[] = { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd };
	uint32_t c[4] = { 0 }, d[4] = { ~0u, ~0u, ~0u, ~0u };
	philox(c, 0, 0);
	philox(d, ~0u, ~0u);
	return !memcmp(c, zero, sizeof c) && !memcmp(d, ones, sizeof d);
}

static bool fair(uint64_t step)
{
	enum { N = 1 << 16 };
	double sum = 0, square = 0, next = 0, last = 0.5;
	for (uint64_t i = 0; i < N; i++) {
		double u = random_uniform(1, step, random_key("x"), i);
		sum += u;
		square += (u - 0.5) * (u - 0.5);
		next += (u - 0.5) * (last - 0.5);
		last = u;
	}
	return fabs(sum / N - 0.5) < 0.005 && fabs(square / N - 1.0 / 12) < 0.002 && fabs(next / N) < 0.002;
}

/* Do seed, step and key each change almost every number? */
static bool apart(void)
{
	int same[3] = { 0 };
	for (uint64_t i = 0; i < 1000; i++) {
		double u = random_uniform(1, 1, 1, i);
		same[0] += u == random_uniform(2, 1, 1, i);
		same[1] += u == random_uniform(1, 2, 1, i);
		same[2] += u == random_uniform(1, 1, 2, i);
	}
	return same[0] < 3 && same[1] < 3 && same[2] < 3;
}

int main(void)
{
	RtProgram program = { .nrank = 1 };
	Ctx c = { .program = &program, .nrank = 1, .nthread = 1 };
	bool parts = true, threads = true;
	say(known(), "the generator has its known answers");
	say(fair(0) && fair(1) && fair(1000000), "numbers are uniform and not correlated");
	say(apart(), "seed, step and node each draw other numbers");
	for (int64_t lo = 0; lo < 5; lo++)
		for (int64_t len = 1; lo + len <= 5; len++)
			parts &= part_agrees(&c, 3, 5, 7, lo, len) && part_agrees(&c, 2, 5, 1, lo, len);
	say(parts, "parts of a tensor are parts of its numbers");
	if (rt_pool_open(&c, 3))
		return 1;
	threads = part_agrees(&c, 3, 1000, 33, 0, 1000) && part_agrees(&c, 3, 1000, 33, 123, 456);
	rt_pool_close(&c);
	say(threads, "threads change nothing");
	return 0;
}
