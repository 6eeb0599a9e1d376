/* The C++ dialect of the kernel files, which nvcc, NVRTC and a C++ compiler accept.  Headers that are shared with the
 * CPU kernels (types.h, roi.h, det.h) are also valid C. */
#ifndef DIALECT_H
#define DIALECT_H

typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

enum { BLOCK = 256 };

#include "types.h"

#define K_DEVICE __device__ static inline
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define NEG_INF (-3.402823466e38f * 10.0f)

__device__ static inline i64 offset_of(const KLoops &l, i64 i)
{
	i64 at = 0;
	for (int a = l.n - 1; a >= 0; a--) {
		at += i % l.len[a] * l.stride[a];
		i /= l.len[a];
	}
	return at;
}

/* Element types, as KType.  Sums of integers wrap around; a sum of bool is true if any element is true. */
struct Flag {
	unsigned char v;
	__device__ Flag(u64 s) : v(s != 0) {}
	__device__ operator u64() const { return v; }
};
template <class T> struct As {
	typedef u64 Sum;
	typedef i64 Mean;
};
template <> struct As<float> {
	typedef float Sum, Mean;
};
template <> struct As<double> {
	typedef double Sum, Mean;
};

/* An operand whose element type is given by another argument. */
struct Any {
	const void *p;
	template <class T> __device__ operator T *() const { return (T *)p; }
};

/* Calls f, a template, for elements of that type. */
#define BY_TYPE(type, f, ...) \
	switch (type) { \
	case K_F32: f<float>(__VA_ARGS__); break; \
	case K_F64: f<double>(__VA_ARGS__); break; \
	case K_I64: f<i64>(__VA_ARGS__); break; \
	case K_I32: f<int>(__VA_ARGS__); break; \
	case K_U8: f<unsigned char>(__VA_ARGS__); break; \
	default: f<Flag>(__VA_ARGS__); \
	}
#define BY_REAL(type, f, ...) \
	if (type == K_F64) \
		f<double>(__VA_ARGS__); \
	else \
		f<float>(__VA_ARGS__)

/* An index, counted from the end if it is negative; -1: out of range. */
__device__ static inline i64 wrapped(i64 i, i64 n)
{
	i = i < 0 ? i + n : i;
	return i < 0 || i >= n ? -1 : i;
}

__device__ static inline i64 tuple(const i64 *index, i64 i, const KNd &d)
{
	i64 at = i / d.many * d.xbatch;
	for (int a = 0; a < d.axes.n; a++) {
		i64 k = wrapped(index[i * d.axes.n + a], d.axes.len[a]);
		if (k < 0)
			return -1;
		at += k * d.axes.stride[a];
	}
	return at;
}

__device__ static inline i64 source(int mode, i64 i, i64 n)
{
	if (i >= 0 && i < n)
		return i;
	if (mode == K_PAD_EDGE)
		return i < 0 ? 0 : n - 1;
	if (mode == K_PAD_WRAP)
		return (i % n + n) % n;
	if (mode == K_PAD_CONSTANT)
		return -1;
	i64 period = n > 1 ? 2 * (n - 1) : 1, k = (i % period + period) % period;
	return k < n ? k : period - k;
}

__device__ static inline i64 behind(const KPad &p, i64 i)
{
	i64 at = 0, stride = 1;
	for (int a = p.n - 1; a >= 0; a--) {
		i64 s = source(p.mode, i % p.out[a] - p.lo[a], p.in[a]);
		if (s < 0)
			return -1;
		at += s * stride;
		stride *= p.in[a];
		i /= p.out[a];
	}
	return at;
}

/* The largest of n numbers, `inner` apart, and the sum of exp(x - largest) over the others. */
__device__ static inline float top_of(const float *x, i64 n, i64 inner, float *rest)
{
	i64 at = 0;
	float s = 0;
	for (i64 j = 1; j < n; j++)
		at = x[j * inner] > x[at * inner] || x[j * inner] != x[j * inner] ? j : at;
	for (i64 j = 0; j < n; j++)
		s += j == at ? 0.0f : expf(x[j * inner] - x[at * inner]);
	*rest = s;
	return n ? x[at * inner] : NEG_INF;
}

/* Copies an element of `width` bytes; x missing: zero. */
__device__ static inline void put(void *y, i64 i, const void *x, i64 j, i64 width)
{
	if (width == 4) {
		((u32 *)y)[i] = x ? ((const u32 *)x)[j] : 0;
		return;
	}
	for (i64 k = 0; k < width; k++)
		((char *)y)[i * width + k] = x ? ((const char *)x)[j * width + k] : 0;
}

/* This thread's element of a grid that covers n elements. */
__device__ static inline i64 element(void)
{
	return (i64)blockIdx.x * BLOCK + threadIdx.x;
}

#endif
