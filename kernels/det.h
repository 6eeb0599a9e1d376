/* The determinant of a matrix, by Gaussian elimination with partial pivoting, in double.  The CPU and CUDA kernels
 * share this text. */
#ifndef DET_H
#define DET_H

#ifndef DIALECT_H
#include "kernels.h"

#include <math.h>

#define K_DEVICE static inline
#endif

/* The determinant of the m by m matrix a; overwrites a. */
K_DEVICE double determinant(double *a, i64 m)
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

#endif
