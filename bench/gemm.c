/* Matrix products of training shapes: GF/s of our kernel, its share of the FMA peak measured beside it, and OpenBLAS if
 * it is installed.  Every number is the best of several short runs that take turns, so that a busy machine affects all
 * equally; with one thread it is processor time.
 *
 *   bench-gemm [SECONDS] [THREADS]
 *
 * OpenBLAS reads OPENBLAS_CORETYPE before main, so bench/gemm sets it; the name of its kernels is printed. */
#include "../kernels/cpu/work.h"
#include "../runtime/run.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double seconds(void)
{
	return now(CLOCK_MONOTONIC);
}

/* ---- peak: chains of FMA that never touch memory ---- */

enum { CHAINS = 12, TURNS = 20000 };

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static double peak_avx2(float *out)
{
	__m256 s[CHAINS], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
	for (int i = 0; i < CHAINS; i++)
		s[i] = _mm256_set1_ps((float)i);
	for (int t = 0; t < TURNS; t++)
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			s[i] = _mm256_fmadd_ps(s[i], x, y);
	for (int i = 0; i < CHAINS; i++)
		_mm256_storeu_ps(out + 8 * i, s[i]);
	return 2.0 * 8 * CHAINS * TURNS;
}

__attribute__((target("avx512f"))) static double peak_avx512(float *out)
{
	__m512 s[CHAINS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
	for (int i = 0; i < CHAINS; i++)
		s[i] = _mm512_set1_ps((float)i);
	for (int t = 0; t < TURNS; t++)
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			s[i] = _mm512_fmadd_ps(s[i], x, y);
	for (int i = 0; i < CHAINS; i++)
		_mm512_storeu_ps(out + 16 * i, s[i]);
	return 2.0 * 16 * CHAINS * TURNS;
}
#endif

static double peak_plain(float *out)
{
	typedef float Four __attribute__((vector_size(16)));
	Four s[CHAINS], x = { 0.999f, 0.999f, 0.999f, 0.999f }, y = { 1e-3f, 1e-3f, 1e-3f, 1e-3f };
	memset(s, 0, sizeof s);
	for (int t = 0; t < TURNS; t++)
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			s[i] = s[i] * x + y;
	memcpy(out, s, sizeof s);
	return 2.0 * 4 * CHAINS * TURNS;
}

static double peak(RtIsa isa)
{
	static volatile float sink;
	float out[16 * CHAINS];
	double begin = now(CLOCK_THREAD_CPUTIME_ID), flops;
#if defined(__x86_64__)
	flops = isa == RT_AVX512 ? peak_avx512(out) : isa == RT_AVX2 ? peak_avx2(out) : peak_plain(out);
#else
	(void)isa;
	flops = peak_plain(out);
#endif
	double t = now(CLOCK_THREAD_CPUTIME_ID) - begin;
	sink = out[3];
	(void)sink;
	return flops / t * 1e-9;
}

/* ---- OpenBLAS ---- */

typedef void Sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
	int ldb, float beta, float *c, int ldc);

static Sgemm *openblas(const char **kernels, int threads)
{
	void *lib = dlopen("libopenblas.so.0", RTLD_NOW);
	if (!lib)
		return NULL;
	union { void *p; Sgemm *f; } sgemm = { dlsym(lib, "cblas_sgemm") };
	union { void *p; char *(*f)(void); } name = { dlsym(lib, "openblas_get_corename") };
	union { void *p; void (*f)(int); } set = { dlsym(lib, "openblas_set_num_threads") };
	if (set.p)
		set.f(threads);
	*kernels = name.p ? name.f() : "unknown";
	return sgemm.f;
}

/* ---- shapes: y = a b, with a or b stored transposed ---- */

typedef struct Shape { const char *name; int m, n, k; bool ta, tb; } Shape;

static const Shape shapes[] = {
	{ .name = "gpt2 256 qkv", .m = 256, .n = 2304, .k = 768 },
	{ .name = "gpt2 256 qkv dX", .m = 256, .n = 768, .k = 2304, .tb = true },
	{ .name = "gpt2 256 qkv dW", .m = 768, .n = 2304, .k = 256, .ta = true },
	{ .name = "gpt2 256 out", .m = 256, .n = 768, .k = 768 },
	{ .name = "gpt2 256 out dX", .m = 256, .n = 768, .k = 768, .tb = true },
	{ .name = "gpt2 256 out dW", .m = 768, .n = 768, .k = 256, .ta = true },
	{ .name = "gpt2 256 up", .m = 256, .n = 3072, .k = 768 },
	{ .name = "gpt2 256 up dX", .m = 256, .n = 768, .k = 3072, .tb = true },
	{ .name = "gpt2 256 up dW", .m = 768, .n = 3072, .k = 256, .ta = true },
	{ .name = "gpt2 256 down", .m = 256, .n = 768, .k = 3072 },
	{ .name = "gpt2 256 down dX", .m = 256, .n = 3072, .k = 768, .tb = true },
	{ .name = "gpt2 256 down dW", .m = 3072, .n = 768, .k = 256, .ta = true },
	{ .name = "gpt2 256 head", .m = 256, .n = 50257, .k = 768, .tb = true },
	{ .name = "gpt2 256 head dX", .m = 256, .n = 768, .k = 50257 },
	{ .name = "gpt2 256 head dW", .m = 50257, .n = 768, .k = 256, .ta = true },
	{ .name = "gpt2 1024 up", .m = 1024, .n = 3072, .k = 768 },
	{ .name = "gpt2 1024 up dX", .m = 1024, .n = 768, .k = 3072, .tb = true },
	{ .name = "gpt2 1024 up dW", .m = 768, .n = 3072, .k = 1024, .ta = true },
	{ .name = "mlp 784-256", .m = 32, .n = 256, .k = 784 },
	{ .name = "mlp 784-256 dW", .m = 784, .n = 256, .k = 32, .ta = true },
	{ .name = "mlp 256-10", .m = 32, .n = 10, .k = 256 },
	{ .name = "mlp 256-10 dX", .m = 32, .n = 256, .k = 10, .tb = true },
	{ .name = "mlp 256-10 dW", .m = 256, .n = 10, .k = 32, .ta = true },
	{ .name = "one row", .m = 1, .n = 3072, .k = 768 },
	{ .name = "one row, turned", .m = 1, .n = 3072, .k = 768, .tb = true },
	{ .name = "head 64", .m = 64, .n = 64, .k = 64, .tb = true },
	{ .name = "square 1024", .m = 1024, .n = 1024, .k = 1024 },
};

static float *filled(size_t n)
{
	float *x = aligned_alloc(1 << 21, (n * sizeof *x + (1 << 21)) >> 21 << 21);
	if (!x)
		exit(1);
	madvise(x, n * sizeof *x, MADV_HUGEPAGE);               /* as the slab of a trainer */
	for (size_t i = 0; i < n; i++)
		x[i] = (float)(i % 17) * 0.125f - 1;
	return x;
}

static double keep_best(double best, double work, double t)
{
	double rate = work / t * 1e-9;
	return rate > best ? rate : best;
}

int main(int argc, char **argv)
{
	double limit = argc > 1 ? strtod(argv[1], NULL) : 0.5;
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	static const RtProgram program = { .nrank = 1, .work_shared = RT_WORK_SHARED, .work_each = RT_WORK_EACH };
	Ctx c = { .program = &program, .nrank = 1 };
	if (rt_pool_open(&c, threads))
		return 1;
	clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	const char *kernels = "";
	Sgemm *peer = openblas(&kernels, threads);
	static const char *const isa[] = { "plain", "avx2", "avx512" };
	printf("%s, %d thread%s; ", isa[c.isa], threads, threads == 1 ? "" : "s");
	printf(peer ? "OpenBLAS kernels: %s\n" : "OpenBLAS is not installed%s\n", kernels);
	printf("GF/s, the best of so many samples; peak: of multiply-adds in registers, measured between them; share: "
		"of this peak\n");
	printf("%-18s %6s %6s %6s  %8s %8s %6s %8s %6s %8s\n", "", "m", "n", "k", "peak", "ours", "share", "OpenBLAS",
		"ratio", "samples");
	double least = INFINITY, ratio = INFINITY;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		const Shape *s = &shapes[i];
		size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
		float *a = filled(m * k), *b = filled(k * n), *y = filled(m * n);
		Gemm g = {
			.batch = 1, .m = s->m, .n = s->n, .k = s->k, .y = y, .yrow = s->n,
			.cut = k_cut(s->m, s->n, s->k),
			.a = { .x = a, .at = s->ta ? 1 : s->k, .k = s->ta ? s->m : 1 },
			.b = { .x = b, .at = s->tb ? s->k : 1, .k = s->tb ? 1 : s->n },
		};
		double top = 0, ours = 0, theirs = 0, work = 2.0 * s->m * s->n * s->k, begin = seconds();
		int inner = work < 1e8 ? (int)(1e8 / work) : 1;
		int turn = 0;
		for (; turn < 8 || seconds() - begin < limit; turn++) {
			double p = peak(c.isa) * threads;
			top = p > top ? p : top;
			double t = now(clock);
			for (int r = 0; r < inner; r++)
				gemm_run(&c, &g);
			ours = keep_best(ours, work * inner, now(clock) - t);
			if (!peer)
				continue;
			t = now(clock);
			for (int r = 0; r < inner; r++)
				peer(101, s->ta ? 112 : 111, s->tb ? 112 : 111, s->m, s->n, s->k,
					1, a, s->ta ? s->m : s->k, b, s->tb ? s->k : s->n, 0, y, s->n);
			theirs = keep_best(theirs, work * inner, now(clock) - t);
		}
		printf("%-18s %6d %6d %6d  %8.1f %8.1f %5.0f%%", s->name, s->m, s->n, s->k, top, ours,
			100 * ours / top);
		if (peer)
			printf(" %8.1f %6.2f", theirs, ours / theirs);
		else
			printf(" %8s %6s", "-", "-");
		printf(" %8d\n", turn);
		fflush(stdout);
		if (!strncmp(s->name, "gpt2 256", 8)) {
			least = fmin(least, ours / top);
			ratio = fmin(ratio, ours / theirs);
		}
		free(a), free(b), free(y);
	}
	printf("lowest of gpt2 256: %.0f %% of the peak", 100 * least);
	if (peer)
		printf(", %.2f of OpenBLAS", ratio);
	printf("\n");
	rt_pool_close(&c);
	return 0;
}
