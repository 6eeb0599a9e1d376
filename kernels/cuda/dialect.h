/* What a kernel file may use: one dialect that nvcc, NVRTC and a C++ compiler accept.  No other header is included. */
#ifndef DIALECT_H
#define DIALECT_H

typedef long long i64;
typedef unsigned int u32;
typedef unsigned long long u64;

enum { BLOCK = 256, AXES = 8 };

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

__device__ static inline i64 place(const Loops &l, i64 i)
{
	i64 at = 0;
	for (int a = l.n - 1; a >= 0; a--) {
		at += i % l.len[a] * l.stride[a];
		i /= l.len[a];
	}
	return at;
}

/* This thread's element of a grid that covers n elements. */
__device__ static inline i64 element(void)
{
	return (i64)blockIdx.x * BLOCK + threadIdx.x;
}

#endif
