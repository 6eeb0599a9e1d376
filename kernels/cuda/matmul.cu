/* Matrix products in tiles of 16 x 16; the sum over k runs in order for every element. */
#include "dialect.h"

enum { TILE = 16 };

KERNEL g_matmul_f32(float *y, const float *a, const float *b, i64 m, i64 n, i64 k, KMat as, KMat bs)
{
	__shared__ float at[TILE][TILE], bt[TILE][TILE];
	int tx = (int)threadIdx.x % TILE, ty = (int)threadIdx.x / TILE;
	i64 tiles = (n + TILE - 1) / TILE;
	i64 row = (i64)blockIdx.x / tiles * TILE + ty, col = (i64)blockIdx.x % tiles * TILE + tx;
	a += (i64)blockIdx.y * as.batch;
	b += (i64)blockIdx.y * bs.batch;
	y += (i64)blockIdx.y * m * n;
	float sum = 0;
	for (i64 p = 0; p < k; p += TILE) {
		at[ty][tx] = row < m && p + tx < k ? a[row * as.row + (p + tx) * as.col] : 0;
		bt[ty][tx] = p + ty < k && col < n ? b[(p + ty) * bs.row + col * bs.col] : 0;
		__syncthreads();
		for (int q = 0; q < TILE; q++)
			sum += at[ty][q] * bt[q][tx];
		__syncthreads();
	}
	if (row < m && col < n)
		y[row * n + col] = sum;
}
