/* What a kernel computes in float is rounded to half precision as the evaluator rounds: the nearest number of the type,
 * of two the even one. Tried on every number of each type, what lies half-way to the next, and the floats beside it; on
 * every instruction set, in one part and in several. */
#include "ops/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../kernels/kernels.h"
#include "../../runtime/run.h"
#include "../../runtime/bits.h"
#include "../../kernels/cpu/round.c"

enum { EACH = 4, N = EACH << 16 };

/* Every number of the type as a float, and three that must go to it or its neighbour. */
static void fill(Tensor *half, float *x)
{
	for (uint32_t i = 0; i < 1 << 16; i++) {
		uint16_t h[2] = { (uint16_t)i, (uint16_t)((i & 0x7fff) == 0x7fff ? i : i + 1) };
		memcpy((void *)half->data, h, sizeof h);
		float a = (float)tensor_get(half, 0), b = (float)tensor_get(half, 1);
		float mid = isfinite(a) && isfinite(b) ? a / 2 + b / 2 : isfinite(a) ? a * (1 + 0x1p-9f) : a;
		uint32_t u = rt_bits(mid);
		x[i * EACH] = a;
		x[i * EACH + 1] = mid;
		x[i * EACH + 2] = isfinite(mid) ? rt_from_bits(u + 1) : mid;
		x[i * EACH + 3] = isfinite(mid) && u << 1 ? rt_from_bits(u - 1) : mid;
	}
}

static void try(const char *name, DType type, int (*kernel)(Ctx *, float *, int64_t), Ctx *c, float *x, float *y)
{
	Arena a = { 0 };
	Tensor *two = tensor_new(&a, type, 1, (int64_t[]){ 2 });
	int64_t bad = 0, moved = 0;
	fill(two, x);
	memcpy(y, x, N * sizeof *y);
	kernel(c, y, N);
	for (int64_t i = 0; i < N; i++) {
		tensor_set(two, 0, x[i]);
		float want = (float)tensor_get(two, 0);
		bool same = isnan(want) ? isnan(y[i]) : rt_bits(want) == rt_bits(y[i]);
		if (!same && !bad++)
			printf(" %a became %a, not %a\n", (double)x[i], (double)y[i], (double)want);
		moved += !isnan(want) && want != x[i];
	}
	if (bad || moved < 1 << 17)
		printf("not ok %s: %lld of %d differ, %lld were rounded\n", name, (long long)bad, N, (long long)moved);
	else
		printf("ok %s\n", name);
	arena_free(&a);
}

int main(void)
{
	RtProgram program = { .nrank = 1 };
	Ctx c = { .program = &program, .nrank = 1, .nthread = 1 };
	float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
	if (!x || !y)
		return 1;
	try("bfloat16 in plain C", DT_BFLOAT16, k_round_bf16, &c, x, y);
	try("float16 in plain C", DT_FLOAT16, k_round_f16, &c, x, y);
	if (rt_pool_open(&c, 3))                /* which finds out what the processor has */
		return 1;
	try("bfloat16 on three threads", DT_BFLOAT16, k_round_bf16, &c, x, y);
	try("float16 on three threads", DT_FLOAT16, k_round_f16, &c, x, y);
	rt_pool_close(&c);
	free(x);
	free(y);
	return 0;
}
