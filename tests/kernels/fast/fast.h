/* Comparing fast kernels with plain ones: numbers to try them on, contexts for every instruction set and thread
 * count. */
#ifndef FAST_H
#define FAST_H

#include "kernels.h"
#include "run.h"

/* n numbers in (-1, 1), the same for the same seed; freed by the caller. */
float *numbers(int64_t n, uint64_t seed);
float *copy_of(const float *x, int64_t n);

/* Runs `run` on each instruction set of this machine and 1 to 4 threads: it fills y, n numbers.  Each result must be
 * within scale * tol of want (or, where it is given, of scales[i] * tol), and the same bits for every number of
 * threads.  Nothing but y's n numbers may be written: y is between two fences.  Prints what is wrong, and counts it. */
typedef void Run(Ctx *, float *y, void *arg);
int compare(const char *what, Run *run, void *arg, const float *want, int64_t n, double tol, double scale,
	const float *scales);

/* One group of tests: prints ok or not ok. */
int group(const char *name, int bad);

int test_matmul(void);
int test_copies(void);
int test_reductions(void);
int test_squares(void);
int test_rows(void);
int test_pools(void);
int test_norms(void);
int test_losses(void);
int test_convolutions(void);
int test_attention(void);
int test_rotary(void);
int test_cells(void);
int test_trees(void);

#endif
