/* What a kernel file may use: one dialect that nvcc, NVRTC and a C++ compiler accept.  Headers that the kernels of the CPU share with them
 * (roi.h, det.h) are written in it and in C. */
#ifndef DIALECT_H
#define DIALECT_H

typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

enum { BLOCK = 256, AXES = 8 };

#define K_DEVICE __device__ static inline
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define NEG_INF (-3.402823466e38f * 10.0f)

/* As KLoops in kernels.h; passed by value. */
struct Loops {
	int n;
	i64 len[AXES], stride[AXES];
};

/* As KMat in kernels.h. */
struct Matrix {
	i64 row, col, batch;
};

/* As KWindow in kernels.h. */
struct Window {
	i64 k[2], stride[2], dil[2], lo[2], in[2], out[2];
};

/* As KStretch in kernels.h. */
struct Stretch {
	i64 from[6], size[6];
};

__device__ static inline i64 place(const Loops &l, i64 i)
{
	i64 at = 0;
	for (int a = l.n - 1; a >= 0; a--) {
		at += i % l.len[a] * l.stride[a];
		i /= l.len[a];
	}
	return at;
}

/* Types of elements, as KType in kernels.h.  Sums of whole numbers wrap around; one of bool says whether any is true. */
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

/* An operand whose type is told beside it. */
struct Any {
	const void *p;
	template <class T> __device__ operator T *() const { return (T *)p; }
};

/* Calls f, a template, for elements of that type. */
#define BY_TYPE(type, f, ...) \
	switch (type) { \
	case 0: f<float>(__VA_ARGS__); break; \
	case 1: f<double>(__VA_ARGS__); break; \
	case 2: f<i64>(__VA_ARGS__); break; \
	case 3: f<int>(__VA_ARGS__); break; \
	case 4: f<unsigned char>(__VA_ARGS__); break; \
	default: f<Flag>(__VA_ARGS__); \
	}
#define BY_REAL(type, f, ...) \
	if (type == 1) \
		f<double>(__VA_ARGS__); \
	else \
		f<float>(__VA_ARGS__)

/* An index, counted from the end where it is negative; -1 when it is none. */
__device__ static inline i64 wrapped(i64 i, i64 n)
{
	i = i < 0 ? i + n : i;
	return i < 0 || i >= n ? -1 : i;
}

/* As KNd in kernels.h. */
struct Tuples {
	i64 batch, many, xbatch, run;
	Loops axes;
};

__device__ static inline i64 tuple(const i64 *index, i64 i, const Tuples &d)
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

/* As KPad in kernels.h. */
enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };
struct Padding {
	int n, mode;
	i64 in[AXES], out[AXES], lo[AXES];
};

__device__ static inline i64 source(int mode, i64 i, i64 n)
{
	if (i >= 0 && i < n)
		return i;
	if (mode == PAD_EDGE)
		return i < 0 ? 0 : n - 1;
	if (mode == PAD_WRAP)
		return (i % n + n) % n;
	if (mode == PAD_CONSTANT)
		return -1;
	i64 period = n > 1 ? 2 * (n - 1) : 1, k = (i % period + period) % period;
	return k < n ? k : period - k;
}

__device__ static inline i64 behind(const Padding &p, i64 i)
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

/* An element of some width, in bytes; x missing: zero. */
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
