/* Determinants, and the signed minors that are their derivative.  A matrix is copied to scratch and eliminated there.
 * */
#include "det.h"
#include "real.h"
#include "turns.h"

typedef struct Job { const Ctx *c; void *y; const void *x; int64_t m; KType type; } Job;

/* The determinant of the matrix at `at` without one row and one column; row -1: of the full matrix. */
static double minor(const Job *b, int thread, int64_t at, int64_t row, int64_t col)
{
	double *a = turns_work(b->c, thread);
	int64_t n = 0;
	for (int64_t i = 0; i < b->m; i++)
		for (int64_t j = 0; j < b->m; j++)
			if (i != row && j != col)
				a[n++] = load(b->x, at + i * b->m + j, b->type);
	return determinant(a, row < 0 ? b->m : b->m - 1);
}

static void dets(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	for (int64_t i = lo; i < hi; i++)
		store(b->y, i, minor(b, thread, i * b->m * b->m, -1, -1), b->type);
}

static void cofactors(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Job *b = arg;
	for (int64_t i = lo; i < hi; i++) {
		int64_t row = i / b->m % b->m, col = i % b->m;
		double d = minor(b, thread, i / b->m / b->m * b->m * b->m, row, col);
		store(b->y, i, (row + col) % 2 ? -d : d, b->type);
	}
}

int k_det(Ctx *c, void *y, const void *x, int64_t count, int64_t m, KType type)
{
	return turns(c, count, m * m * m, dets, &(Job){ .c = c, .y = y, .x = x, .m = m, .type = type });
}

int k_cofactor(Ctx *c, void *y, const void *x, int64_t count, int64_t m, KType type)
{
	return turns(c, count * m * m, m * m * m, cofactors, &(Job){ .c = c, .y = y, .x = x, .m = m, .type = type });
}
