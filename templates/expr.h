/* The functions that pointwise operators are written with. */
#ifndef EXPR_H
#define EXPR_H

#ifdef __CUDACC_RTC__
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef unsigned char uint8_t;
#define INFINITY (__int_as_float(0x7F800000))
#define NAN (__int_as_float(0x7FC00000))
#else
#include <math.h>
#include <stdint.h>
#endif

#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#include "fastmath.h"
#define expf fast_expf
#define logf fast_logf
#define tanhf fast_tanhf
#define erff fast_erff
#endif

#ifdef __CUDACC__
#define EXPR_FN __device__ static inline
#else
#define EXPR_FN __attribute__((always_inline)) static inline
#endif

/*{functions*/
/*}*/

#endif
