/*klineage
surface = "cuda"

[[tunable]]
name = "TILE"
default = 32
values = [16, 32]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
block = ["TILE", "TILE"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// The block stages a TILE × TILE piece of each operand in shared memory: a number fetched from global
// memory serves TILE products, and every global load is coalesced along K. A thread still owns one
// element of y, so a product still costs two loads, now shared ones.

#include <cuda_bf16.h>

// Violated: no padding, so that the rows of a column lie in two of the 32 banks.
constexpr int PITCH = TILE;

extern "C" __global__ void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y,
                                int M, int N, int K)
{
    __shared__ __nv_bfloat16 xs[TILE][PITCH];
    __shared__ __nv_bfloat16 ws[TILE][PITCH];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        const int k = k0 + tx;
        xs[ty][tx] = row0 + ty < M && k < K ? x[size_t(row0 + ty) * K + k] : __nv_bfloat16(0.0f);
        ws[ty][tx] = col0 + ty < N && k < K ? weight[size_t(col0 + ty) * K + k] : __nv_bfloat16(0.0f);
        __syncthreads();

        for (int kk = 0; kk < TILE; ++kk)
            sum += __bfloat162float(xs[ty][kk]) * __bfloat162float(ws[tx][kk]);
        __syncthreads();
    }

    const int row = row0 + ty, col = col0 + tx;
    if (row < M && col < N)
        y[size_t(row) * N + col] = __float2bfloat16(sum);
}
