/*klineage
surface = "cuda"

[[tunable]]
name = "TILE"
default = 128
values = [64, 128]

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, TILE)", "ceil_div(M, TILE)"]
block = ["ceil_div(TILE, 8)", "ceil_div(TILE, 8)"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// The block stages a TILE × DEPTH piece of each operand in shared memory: a number fetched from global
// memory serves TILE products, and every global load is coalesced along K. A thread owns a PATCH × PATCH
// patch of y, its sums in registers: 2 · PATCH shared loads serve PATCH · PATCH products.

#include <cuda_bf16.h>

constexpr int PATCH = 8;                    // rows and columns of y a thread (the plan's block is TILE / 8 squared)
constexpr int EDGE = TILE / PATCH;          // threads along each edge of the block
constexpr int THREADS = EDGE * EDGE;
constexpr int DEPTH = 32;                   // of a stage, along K
constexpr int ROWS = THREADS / DEPTH;       // rows of a stage that the block fetches at once

// Two elements of padding make the row pitch an odd number of 4-byte words: 32 rows, 32 different banks.
constexpr int PITCH = DEPTH + 2;

// 512 threads an SM leave each 128 registers: 64 sums, 16 operands, and the addresses.
extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __nv_bfloat16 xs[TILE][PITCH];
    __shared__ __nv_bfloat16 ws[TILE][PITCH];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;

    // The thread's place in a stage: a warp fetches DEPTH neighbours of one row.
    const int tid = ty * EDGE + tx;
    const int sk = tid % DEPTH, sr = tid / DEPTH;

    // The patch is strided: rows ty + i · EDGE, columns tx + j · EDGE. Neighbouring threads so read
    // neighbouring rows of ws (different banks) and write neighbouring columns of y.
    float sum[PATCH][PATCH];
#pragma unroll
    for (int i = 0; i < PATCH; ++i)
#pragma unroll
        for (int j = 0; j < PATCH; ++j)
            sum[i][j] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        const int k = k0 + sk;
#pragma unroll 8
        for (int r0 = 0; r0 < TILE; r0 += ROWS) {
            const int r = r0 + sr;
            xs[r][sk] = row0 + r < M && k < K ? x[size_t(row0 + r) * K + k] : __nv_bfloat16(0.0f);
            ws[r][sk] = col0 + r < N && k < K ? weight[size_t(col0 + r) * K + k] : __nv_bfloat16(0.0f);
        }
        __syncthreads();

#pragma unroll 8
        for (int kk = 0; kk < DEPTH; ++kk) {
            float a[PATCH], b[PATCH];
#pragma unroll
            for (int i = 0; i < PATCH; ++i)
                a[i] = __bfloat162float(xs[ty + i * EDGE][kk]);
#pragma unroll
            for (int j = 0; j < PATCH; ++j)
                b[j] = __bfloat162float(ws[tx + j * EDGE][kk]);
#pragma unroll
            for (int i = 0; i < PATCH; ++i)
#pragma unroll
                for (int j = 0; j < PATCH; ++j)
                    sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < PATCH; ++i) {
        const int row = row0 + ty + i * EDGE;
#pragma unroll
        for (int j = 0; j < PATCH; ++j) {
            const int col = col0 + tx + j * EDGE;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(sum[i][j]);
        }
    }
}
