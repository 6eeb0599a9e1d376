/* The CUDA device: one stream, and the kernels of the fatbin by name. */
#ifndef SLAB_CUDA_H
#define SLAB_CUDA_H

#include "run.h"

#include <cuda_runtime_api.h>

typedef struct RtCuda {
	cudaStream_t stream;
	cudaLibrary_t library;
	unsigned char *staging;         /* pinned host memory, as large as the largest value that the host fills */
	size_t staging_bytes;
	struct { const char *name; cudaKernel_t kernel; } cache[256];
	void *nccl;                     /* comm_nccl.c */
} RtCuda;

/* Blocks of 256 threads that cover n elements. */
static inline int64_t rt_blocks(int64_t n) { return (n + 255) / 256; }

/* Launches a kernel on the stream; 0, or an exit status after rt_error. */
int rt_launch(Ctx *, const char *name, int64_t grid, int64_t gridy, void **args);
int rt_cuda(const Ctx *, cudaError_t, const char *what);       /* 0, or an exit status after rt_error */

int  rt_nccl_open(Ctx *);
void rt_nccl_close(Ctx *);

#endif
