/* Determinants and minors: one block per matrix, whose first thread eliminates in shared memory, in double, as kernels/cpu does. */
#include "dialect.h"

enum { DET = 64 };

__device__ static double determinant(double *a, i64 m)
{
	double det = 1;
	for (i64 k = 0; k < m; k++) {
		i64 pivot = k;
		for (i64 i = k + 1; i < m; i++)
			if (fabs(a[i * m + k]) > fabs(a[pivot * m + k]))
				pivot = i;
		for (i64 j = 0; j < m && pivot != k; j++) {
			double v = a[k * m + j];
			a[k * m + j] = a[pivot * m + j];
			a[pivot * m + j] = v;
		}
		det *= pivot == k ? a[k * m + k] : -a[k * m + k];
		if (det == 0)
			return 0;
		for (i64 i = k + 1; i < m; i++) {
			double times = a[i * m + k] / a[k * m + k];
			for (i64 j = k; j < m; j++)
				a[i * m + j] -= times * a[k * m + j];
		}
	}
	return det;
}

/* x without one row and one column, or whole for row -1. */
template <class T> __device__ static double minor_of(const T *x, double *a, i64 m, i64 row, i64 col)
{
	i64 n = 0;
	for (i64 i = 0; i < m; i++)
		for (i64 j = 0; j < m; j++)
			if (i != row && j != col)
				a[n++] = x[i * m + j];
	return determinant(a, row < 0 ? m : m - 1);
}

template <class T> __device__ static void det(T *y, const T *x, double *a, i64 m)
{
	if (threadIdx.x == 0)
		y[blockIdx.x] = (T)minor_of(x + blockIdx.x * m * m, a, m, -1, -1);
}

KERNEL g_det(Any y, Any x, i64 m, int type)
{
	__shared__ double a[DET * DET];
	BY_REAL(type, det, y, x, a, m);
}

template <class T> __device__ static void cofactor(T *y, const T *x, double *a, i64 m)
{
	i64 at = blockIdx.x * m * m;
	for (i64 i = 0; i < m * m && threadIdx.x == 0; i++) {
		double d = minor_of(x + at, a, m, i / m, i % m);
		y[at + i] = (T)((i / m + i % m) % 2 ? -d : d);
	}
}

KERNEL g_cofactor(Any y, Any x, i64 m, int type)
{
	__shared__ double a[DET * DET];
	BY_REAL(type, cofactor, y, x, a, m);
}
