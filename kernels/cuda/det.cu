/* Determinants and minors: one block per matrix; its first thread eliminates in shared memory. */
#include "dialect.h"
#include "det.h"

/* The determinant of x without one row and one column; row -1: of all of x. */
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
	__shared__ double a[K_DET * K_DET];
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
	__shared__ double a[K_DET * K_DET];
	BY_REAL(type, cofactor, y, x, a, m);
}
