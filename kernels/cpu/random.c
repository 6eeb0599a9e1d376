/* Random numbers.  The generator is Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1,
 * 2, 3", 2011).  The counter is (index / 4, step), the key is (seed, key of the node), and the element is word index %
 * 4 of the four results.  There is no state: an element is a function of its index in the logical tensor. */
#include "kernels.h"

static void philox(uint32_t c[4], uint32_t k0, uint32_t k1)
{
	for (int round = 0; round < 10; round++) {
		uint64_t a = (uint64_t)0xD2511F53 * c[0], b = (uint64_t)0xCD9E8D57 * c[2];
		c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
		c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
		c[1] = (uint32_t)b;
		c[3] = (uint32_t)a;
		k0 += 0x9E3779B9;
		k1 += 0xBB67AE85;
	}
}

/* Folds both halves of a 64-bit number into one word. */
static uint32_t mix(uint64_t v)
{
	v = (v ^ (v >> 33)) * 0xFF51AFD7ED558CCDu;
	v = (v ^ (v >> 33)) * 0xC4CEB9FE1A85EC53u;
	return (uint32_t)(v ^ (v >> 33));
}

typedef struct Draw { float *y; uint32_t k0, k1; uint64_t step; int64_t from; KLoops l; int64_t run; } Draw;

/* n numbers with consecutive indices. */
static void draw_run(const Draw *d, float *y, uint64_t index, int64_t n)
{
	uint32_t c[4] = { 0 };
	for (int64_t i = 0; i < n; i++, index++) {
		if (i == 0 || index % 4 == 0) {
			uint64_t block = index / 4;
			c[0] = (uint32_t)block;
			c[1] = (uint32_t)(block >> 32);
			c[2] = (uint32_t)d->step;
			c[3] = (uint32_t)(d->step >> 32);
			philox(c, d->k0, d->k1);
		}
		y[i] = (float)(c[index % 4] >> 8) * 0x1p-24f;
	}
}

/* Elements lo .. hi - 1 of the result, run after run. */
static void draw(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Draw *d = arg;
	(void)thread;
	for (int64_t i = lo; i < hi;) {
		int64_t left = d->run - i % d->run, n = left < hi - i ? left : hi - i;
		draw_run(d, d->y + i, (uint64_t)(d->from + k_offset(&d->l, i)), n);
		i += n;
	}
}

int k_random_uniform_f32(Ctx *c, float *y, uint64_t seed, uint64_t step, uint64_t key, int64_t from, KLoops l)
{
	Draw d = { .y = y, .k0 = mix(seed), .k1 = mix(key), .step = step, .from = from, .l = l, .run = l.n &&
		l.stride[l.n - 1] == 1 ? l.len[l.n - 1] : 1 };
	rt_parallel(c, k_count(&l), 4096, draw, &d);
	return 0;
}
