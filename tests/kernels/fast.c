/* Every fast kernel of kernels/cpu against the plain one, which is the definition: many shapes, every instruction set
 * that this machine has, one to four threads.  With GEMM_ANY_LANES the tiles of AVX-512 run as code for AVX2, on
 * machines that have no more. */
#include "fast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

float *numbers(int64_t n, uint64_t seed)
{
	float *x = malloc((size_t)(n ? n : 1) * sizeof *x);
	if (!x)
		exit(1);
	uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
	for (int64_t i = 0; i < n; i++) {
		s ^= s >> 12, s ^= s << 25, s ^= s >> 27;
		x[i] = (float)((double)(s * 0x2545F4914F6CDD1Du >> 11) * 0x1p-52 - 1);
	}
	return x;
}

float *copy_of(const float *x, int64_t n)
{
	float *y = malloc((size_t)(n ? n : 1) * sizeof *y);
	if (!y)
		exit(1);
	memcpy(y, x, (size_t)n * sizeof *y);
	return y;
}

int group(const char *name, int bad)
{
	if (bad)
		printf("not ok %s: %d cases\n", name, bad);
	else
		printf("ok %s\n", name);
	fflush(stdout);
	return bad;
}

#ifndef THREADS_STEP
#define THREADS_STEP 1
#endif
enum { FENCE = 64, THREADS = 4, ISAS = 3 };
static const char *const isa_name[ISAS] = { "plain", "avx2", "avx512" };

static int differs(const float *y, const float *want, int64_t n, double tol, double scale, const float *scales,
	int64_t *where)
{
	for (int64_t i = 0; i < n; i++) {
		double bound = tol * (scales ? fabs((double)scales[i]) + 1e-30 : scale);
		bool same = y[i] == want[i] || (isnan(y[i]) && isnan(want[i]));
		if (!same && !(fabs((double)y[i] - (double)want[i]) <= bound)) {
			*where = i;
			return 1;
		}
	}
	return 0;
}

static int fences_broken(const float *base, int64_t n)
{
	for (int i = 0; i < FENCE; i++)
		if (base[i] != 12345.0f || base[FENCE + n + i] != 12345.0f)
			return 1;
	return 0;
}

/* The contexts are made once: each has its threads and their scratch. */
static Ctx contexts[ISAS][THREADS];
static bool has[ISAS];                  /* by instruction set: does this machine run it? */

static void open_all(void)
{
	static const RtProgram program = { .nrank = 1, .work_shared = RT_WORK_SHARED, .work_each = RT_WORK_EACH };
	for (int isa = 0; isa < ISAS; isa++)
		for (int t = 0; t < THREADS; t++) {
			Ctx *c = &contexts[isa][t];
			*c = (Ctx){ .program = &program, .nrank = 1 };
			setenv("RT_ISA", isa_name[isa], 1);
			if (rt_pool_open(c, t + 1))
				exit(1);
#ifdef GEMM_ANY_LANES
			if (isa == RT_AVX512 && c->isa == RT_AVX2)
				c->isa = RT_AVX512;
#endif
			has[isa] = (int)c->isa == isa;
		}
	unsetenv("RT_ISA");
}

static void close_all(void)
{
	for (int isa = 0; isa < ISAS; isa++)
		for (int t = 0; t < THREADS; t++)
			rt_pool_close(&contexts[isa][t]);
}

int compare(const char *what, Run *run, void *arg, const float *want, int64_t n, double tol, double scale,
	const float *scales)
{
	float *base = malloc((size_t)(n + 2 * FENCE) * sizeof *base),
		*first = malloc((size_t)(n ? n : 1) * sizeof *first);
	int bad = 0;
	if (!base || !first)
		exit(1);
	for (int isa = 0; isa < ISAS && !bad; isa++)
		for (int threads = 1; threads <= THREADS && has[isa] && !bad; threads += THREADS_STEP) {
			for (int64_t i = 0; i < n + 2 * FENCE; i++)
				base[i] = i < FENCE || i >= FENCE + n ? 12345.0f : NAN;
			run(&contexts[isa][threads - 1], base + FENCE, arg);
			int64_t at = 0;
			bad = 1;
			if (fences_broken(base, n))
				printf("    %s, %s, %d threads: writes beyond the result\n", what, isa_name[isa],
					threads);
			else if (threads > 1 && memcmp(first, base + FENCE, (size_t)n * sizeof *first))
				printf("    %s, %s: other bits with %d threads\n", what, isa_name[isa], threads);
			else if (differs(base + FENCE, want, n, tol, scale, scales, &at))
				printf("    %s, %s, %d threads: element %lld is %.9g, not %.9g\n", what, isa_name[isa],
					threads, (long long)at, (double)base[FENCE + at],
				       (double)want[at]);
			else
				bad = 0;
			memcpy(first, base + FENCE, (size_t)n * sizeof *first);
		}
	free(base);
	free(first);
	return bad;
}

int main(void)
{
	open_all();
	int bad = test_matmul() + test_copies() + test_reductions() + test_squares() + test_rows() + test_pools() +
		test_norms() + test_losses() + test_convolutions() + test_attention() + test_rotary() +
		test_cells() + test_trees();
	close_all();
	return bad != 0;
}
