/* Rounds the results of kernels that compute in float to half precision, in place. */
#include "kernels.h"
#include "halves.h"
#include "isa.h"

K_LOOP void round_bf16(void *arg, int64_t lo, int64_t hi, int thread)
{
	float *y = arg;
	(void)thread;
	K_VECTOR
	for (int64_t i = lo; i < hi; i++)
		y[i] = e_bf16(y[i]);
}
K_EACH_ISA(round_bf16)

K_LOOP void round_f16(void *arg, int64_t lo, int64_t hi, int thread)
{
	float *y = arg;
	(void)thread;
	K_VECTOR
	for (int64_t i = lo; i < hi; i++)
		y[i] = e_f16(y[i]);
}
K_EACH_ISA(round_f16)

int k_round_bf16(Ctx *c, float *y, int64_t n)
{
	rt_parallel(c, n, 16384, K_PICK(c, round_bf16), y);
	return 0;
}

int k_round_f16(Ctx *c, float *y, int64_t n)
{
	rt_parallel(c, n, 16384, K_PICK(c, round_f16), y);
	return 0;
}
