/* Loops compiled for each instruction set.  A loop is written once,
 *
 *     K_LOOP void scale(void *arg, int64_t lo, int64_t hi, int thread) { ... }
 *     K_EACH_ISA(scale)
 *
 * and rt_parallel(c, n, grain, K_PICK(c, scale), arg) runs the copy that the processor of c understands.  Sums are kept
 * in K_LANES partial sums and added in one order, so all copies give the same bits.  There is no copy for AVX-512:
 * these loops are bound by memory, and each copy adds a third to the time to compile every program.  Matrix products
 * (gemm.c) have one. */
#ifndef ISA_H
#define ISA_H

#include "rt.h"

enum { K_LANES = 16 };

#define K_LOOP static inline __attribute__((always_inline))

/* K_VECTOR stands before a loop whose iterations are independent.  K_APART is the same for loops that clang vectorises
 * at high optimisation only; at other levels it would warn. */
#if defined(__clang__)
#define K_VECTOR _Pragma("clang loop vectorize(assume_safety)")
#define K_APART
#else
#define K_VECTOR _Pragma("GCC ivdep")
#define K_APART _Pragma("GCC ivdep")
#endif

#if defined(__x86_64__)
#define K_AVX2 __attribute__((target("avx2,fma")))
#define K_EACH_ISA(name) \
	static void name##_plain(void *arg, int64_t lo, int64_t hi, int thread) { name(arg, lo, hi, thread); } \
	K_AVX2 static void name##_avx2(void *arg, int64_t lo, int64_t hi, int thread) { name(arg, lo, hi, thread); }
#define K_PICK(c, name) ((c)->isa >= RT_AVX2 ? name##_avx2 : name##_plain)
#else
#define K_EACH_ISA(name) \
	static void name##_plain(void *arg, int64_t lo, int64_t hi, int thread) { name(arg, lo, hi, thread); }
#define K_PICK(c, name) ((void)(c), name##_plain)
#endif

#endif
