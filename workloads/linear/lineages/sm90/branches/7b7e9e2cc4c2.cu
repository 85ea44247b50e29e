/*klineage
surface = "cuda"

[[tunable]]
name = "TILE"
default = 32
values = [16, 32]

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
block = ["TILE", "TILE"]
args = ["x", "weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// A block owns TILE × TILE elements of y, one a thread. Tiles of both operands are staged in shared memory:
// a number fetched once from global memory serves TILE products, and the lanes of a load run along k, the
// contiguous axis of both operands.

#include <cuda_bf16.h>

// An odd number of 4-byte words a row: the rows read by the lanes of a warp lie in different banks.
constexpr int PITCH = TILE + 2;

extern "C" __global__ void __launch_bounds__(TILE * TILE)
linear(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
       const __nv_bfloat16 *bias, __nv_bfloat16 *y,
       int M, int N, int K)
{
    __shared__ __nv_bfloat16 xs[TILE][PITCH];
    __shared__ __nv_bfloat16 ws[TILE][PITCH];

    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;          // of y, and the row of x this thread stages
    const int col = blockIdx.x * TILE + tx;          // of y
    const int wrow = blockIdx.x * TILE + ty;         // the row of weight this thread stages
    const bool x_inside = row < M;
    const bool w_inside = wrow < N;
    const __nv_bfloat16 zero = __float2bfloat16(0.0f);

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Zeros past the edges add nothing to a sum: the inner loop needs no guard.
        const int k = k0 + tx;
        __nv_bfloat16 xv = zero;
        __nv_bfloat16 wv = zero;
        if (x_inside && k < K)
            xv = x[size_t(row) * K + k];
        if (w_inside && k < K)
            wv = weight[size_t(wrow) * K + k];
        xs[ty][tx] = xv;
        ws[ty][tx] = wv;
        __syncthreads();                             // before the tile is read

#pragma unroll
        for (int kk = 0; kk < TILE; ++kk)
            sum += __bfloat162float(xs[ty][kk]) * __bfloat162float(ws[tx][kk]);
        __syncthreads();                             // before it is overwritten
    }

    // No early return above: all threads fill the tiles and reach the barriers.
    if (row < M && col < N)
        y[size_t(row) * N + col] = __float2bfloat16(sum + __bfloat162float(bias[col]));
}
