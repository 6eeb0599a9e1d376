/* Determinants, and the minors that are their derivative: by elimination with the largest pivot, in double.  A matrix is worked on in
 * scratch. */
#include "kernels.h"

#include <math.h>

static double load(const void *x, int64_t i, KType type)
{
	return type == K_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void store(void *y, int64_t i, double v, KType type)
{
	if (type == K_F64)
		((double *)y)[i] = v;
	else
		((float *)y)[i] = (float)v;
}

/* Of the m by m matrix a, which is used up. */
static double determinant(double *a, int64_t m)
{
	double det = 1;
	for (int64_t k = 0; k < m; k++) {
		int64_t pivot = k;
		for (int64_t i = k + 1; i < m; i++)
			if (fabs(a[i * m + k]) > fabs(a[pivot * m + k]))
				pivot = i;
		if (pivot != k) {
			for (int64_t j = 0; j < m; j++) {
				double v = a[k * m + j];
				a[k * m + j] = a[pivot * m + j];
				a[pivot * m + j] = v;
			}
			det = -det;
		}
		det *= a[k * m + k];
		if (det == 0)
			return 0;
		for (int64_t i = k + 1; i < m; i++) {
			double times = a[i * m + k] / a[k * m + k];
			for (int64_t j = k; j < m; j++)
				a[i * m + j] -= times * a[k * m + j];
		}
	}
	return det;
}

/* x without one row and one column, or whole for row -1; what is left. */
static double minor(Ctx *c, const void *x, int64_t at, int64_t m, int64_t row, int64_t col, KType type)
{
	double *a = (double *)(void *)c->work;
	int64_t n = 0;
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < m; j++)
			if (i != row && j != col)
				a[n++] = load(x, at + i * m + j, type);
	return determinant(a, row < 0 ? m : m - 1);
}

int k_det(Ctx *c, void *y, const void *x, int64_t count, int64_t m, KType type)
{
	for (int64_t i = 0; i < count; i++)
		store(y, i, minor(c, x, i * m * m, m, -1, -1, type), type);
	return 0;
}

int k_cofactor(Ctx *c, void *y, const void *x, int64_t count, int64_t m, KType type)
{
	for (int64_t i = 0; i < count * m * m; i++) {
		int64_t row = i / m % m, col = i % m;
		double d = minor(c, x, i / m / m * m * m, m, row, col, type);
		store(y, i, (row + col) % 2 ? -d : d, type);
	}
	return 0;
}
