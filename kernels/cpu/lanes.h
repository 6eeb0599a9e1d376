/* The vectors of one instruction set, for code that is compiled once for each.  LANES_ISA is defined before this file
 * is included: 0 for plain C, 1 for AVX2, 2 for AVX-512.  The file defines
 *   NAME(x)  x for this instruction set        TARGET   attributes of functions that use it
 *   V        a vector of LANES numbers         MR, NV   a tile that fits into registers: rows, and vectors in each
 *   ZERO() LOAD(p) STORE(p, v) SPREAD(p) ADD(a, b) FMA(a, b, c) */
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <string.h>

#undef NAME
#undef TARGET
#undef V
#undef MR
#undef NV
#undef LANES
#undef ZERO
#undef LOAD
#undef STORE
#undef SPREAD
#undef ADD
#undef FMA
#define NV 2

#ifndef LANES_ONCE
#define LANES_ONCE
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif
/* Plain C: a vector type that every compiler can lower. */
typedef float Four __attribute__((vector_size(16)));
typedef float FourAnywhere __attribute__((vector_size(16), aligned(4), may_alias));
typedef float Sixteen __attribute__((vector_size(64)));
typedef float SixteenAnywhere __attribute__((vector_size(64), aligned(4), may_alias));
#endif

#if LANES_ISA == 0
#define NAME(x) x##_plain
#define TARGET
#define V Four
#define MR 4
#define LANES 4
#define ZERO() ((Four){ 0 })
#define LOAD(p) ((Four)*(const FourAnywhere *)(p))
#define STORE(p, v) (*(FourAnywhere *)(p) = (v))
#define SPREAD(p) (*(p) - (Four){ 0 })
#define ADD(a, b) ((a) + (b))
#define FMA(a, b, c) ((a) * (b) + (c))

#elif LANES_ISA == 1
#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define V __m256
#define MR 6
#define LANES 8
#define ZERO() _mm256_setzero_ps()
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define SPREAD(p) _mm256_broadcast_ss(p)
#define ADD(a, b) _mm256_add_ps(a, b)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)

#else
#define NAME(x) x##_avx512
#define MR 14
#define LANES 16
#ifdef GEMM_ANY_LANES
/* For tests: the AVX-512 code with vectors that the compiler splits into two of AVX2, so that it runs on processors
 * without AVX-512. */
#define TARGET __attribute__((target("avx2,fma")))
#define V Sixteen
#define ZERO() ((Sixteen){ 0 })
#define LOAD(p) ((Sixteen)*(const SixteenAnywhere *)(p))
#define STORE(p, v) (*(SixteenAnywhere *)(p) = (v))
#define SPREAD(p) (*(p) - (Sixteen){ 0 })
#define ADD(a, b) ((a) + (b))
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))
#define V __m512
#define ZERO() _mm512_setzero_ps()
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define SPREAD(p) _mm512_set1_ps(*(p))
#define ADD(a, b) _mm512_add_ps(a, b)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#endif
#endif
