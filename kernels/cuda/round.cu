/* Rounds the results of kernels that compute in float to half precision, in place; expr.h includes halves.h. */
#include "dialect.h"

KERNEL g_round_bf16(float *y, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = e_bf16(y[i]);
}

KERNEL g_round_f16(float *y, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = e_f16(y[i]);
}
