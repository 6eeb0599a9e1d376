/* Numbers of either floating-point type, read and written as double. */
#ifndef REAL_H
#define REAL_H

#include "kernels.h"

static inline double load(const void *x, int64_t i, KType type)
{
	return type == K_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static inline void store(void *y, int64_t i, double v, KType type)
{
	if (type == K_F64)
		((double *)y)[i] = v;
	else
		((float *)y)[i] = (float)v;
}

#endif
