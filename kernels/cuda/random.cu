/* Random numbers by Philox 4x32-10, one thread per element: a function of its index in the logical tensor. */
#include "dialect.h"

__device__ static inline u32 philox(u64 index, u64 step, u32 k0, u32 k1)
{
	u64 block = index / 4;
	u32 c[4] = { (u32)block, (u32)(block >> 32), (u32)step, (u32)(step >> 32) };
	for (int round = 0; round < 10; round++) {
		u64 a = (u64)0xD2511F53 * c[0], b = (u64)0xCD9E8D57 * c[2];
		c[0] = (u32)(b >> 32) ^ c[1] ^ k0;
		c[2] = (u32)(a >> 32) ^ c[3] ^ k1;
		c[1] = (u32)b;
		c[3] = (u32)a;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
	return c[index % 4];
}

KERNEL g_random_uniform_f32(float *y, u32 k0, u32 k1, u64 step, i64 from, KLoops l, i64 n)
{
	i64 i = element();
	if (i < n)
		y[i] = (float)(philox((u64)(from + offset_of(l, i)), step, k0, k1) >> 8) / 16777216.0f;
}
