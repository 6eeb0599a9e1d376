/* The arguments of kernels that are structures or enumerations: one text for C and for the device code, so that a
 * launcher and the kernel that it starts have the same layout.  Written in C11 and in the dialect of cuda/dialect.h;
 * i64 is 64 bits in both. */
#ifndef TYPES_H
#define TYPES_H

#ifndef DIALECT_H
#include <stdbool.h>
#include <stdint.h>
typedef int64_t i64;
#endif

enum { K_AXES = 8 };                    /* the largest number of axes of a tensor */
enum { K_SPATIAL = 6 };                 /* the largest number of axes of a window */
enum { K_STATE = 8192 };                /* the largest state of a recurrent cell, in bytes */
enum { K_DET = 64 };                    /* the largest number of rows of a matrix for det */

/* The element type, for kernels that take several. */
typedef enum { K_F32, K_F64, K_I64, K_I32, K_U8, K_BOOL } KType;

typedef enum { K_SUM, K_MEAN, K_MAX, K_MIN, K_PROD } KReduce;
typedef enum { K_LOSS_NONE, K_LOSS_SUM, K_LOSS_MEAN } KLoss;

/* Up to K_AXES nested loops: the length of each, and its stride in an operand, in elements. */
typedef struct KLoops {
	int n;
	i64 len[K_AXES], stride[K_AXES];
} KLoops;

/* Terms of a sum of squares that a kernel of CUDA gets as one argument (KSums in kernels.h). */
enum { K_TERMS = 64 };
typedef struct KTerms { int count; const float *x[K_TERMS]; i64 n[K_TERMS]; } KTerms;

/* The strides of a matrix, in elements: of rows, of columns, and from one matrix of a batch to the next.  A transposed
 * operand is read in place; a batch stride of 0 uses one matrix for the whole batch. */
typedef struct KMat { i64 row, col, batch; } KMat;

/* Windows over a plane: kernel size, stride, dilation, padding before, sizes of the planes. */
typedef struct KWindow { i64 k[2], stride[2], dil[2], lo[2], in[2], out[2]; } KWindow;

/* Windows over n axes; hi is the padding behind. */
typedef struct KWindows { int n; i64 k[K_SPATIAL], stride[K_SPATIAL], dil[K_SPATIAL], lo[K_SPATIAL], hi[K_SPATIAL],
	in[K_SPATIAL], out[K_SPATIAL]; } KWindows;
typedef enum { K_POOL_SUM, K_POOL_MEAN, K_POOL_PADDED } KPool;

/* A rank may hold only part of the input of its windows: elements from .. from + size - 1 of each axis. */
typedef struct KStretch { i64 from[K_SPATIAL], size[K_SPATIAL]; } KStretch;

/* Attention: the strides of one operand, in elements; then all sizes, strides and options of a call. */
typedef struct KHeads { i64 batch, head, row; } KHeads;
typedef enum { K_MASK_NONE, K_MASK_ADD, K_MASK_BOOL } KMask;
typedef struct KAttention {
	i64 batch, heads, kvheads, sq, sk, d, dv;
	KHeads q, k, v, y, m;
	i64 mcol, left, right;
	float scale, softcap;
	KMask mask;
} KAttention;

typedef struct KRotary {
	i64 batch, heads, seq, width, rot, positions;
	KHeads x;
	int interleaved;
} KRotary;

/* linear: the reset gate of a GRU is applied after its product. */
typedef struct KCells { i64 steps, batch, hidden; bool linear; } KCells;

typedef enum { K_PAD_CONSTANT, K_PAD_REFLECT, K_PAD_EDGE, K_PAD_WRAP } KPadMode;
typedef struct KPad { int n; KPadMode mode; i64 in[K_AXES], out[K_AXES], lo[K_AXES]; } KPad;
typedef enum { K_PUT, K_ADD, K_MUL, K_LARGEST, K_SMALLEST } KScatter;

/* gather_nd and scatter_nd: `many` tuples of indices for each element of the batch.  A tuple indexes the axes of
 * `axes` and selects `run` consecutive elements of x. */
typedef struct KNd { i64 batch, many, xbatch, run; KLoops axes; } KNd;

/* Regions of interest: sizes, and how bins are sampled. */
typedef struct KRoi { i64 images, channels, h, w, regions, ph, pw, samples; bool align, half, mean;
	double scale; } KRoi;

#endif
