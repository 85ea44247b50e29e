/*klineage
surface = "cuda"

[[tunable]]
name = "PATCH"
default = 8
values = [4, 8]

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, 16 * PATCH)", "ceil_div(M, 16 * PATCH)"]
block = ["16", "16"]
args = ["x", "weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// The block stages a SIDE × DEPTH piece of each operand in shared memory; every global load is coalesced
// along K. A thread owns a PATCH × PATCH block of outputs whose sums stay in registers: a step along k
// reads PATCH + PATCH shared numbers for PATCH · PATCH products.

#include <cuda_bf16.h>

constexpr int THREADS = 16;                  // threads a side of the block
constexpr int SIDE = THREADS * PATCH;        // outputs a side of the block
constexpr int DEPTH = 32;                    // extent of a stage along K: a warp loads one row of it

// Two elements of padding make the row pitch an odd number of 4-byte words: 32 rows, 32 different banks.
constexpr int PITCH = DEPTH + 2;

constexpr int ROWS_A_PASS = THREADS * THREADS / DEPTH;
constexpr int PASSES = SIDE / ROWS_A_PASS;

extern "C" __global__ void __launch_bounds__(THREADS * THREADS, 2)
linear(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
       const __nv_bfloat16 *bias, __nv_bfloat16 *y,
       int M, int N, int K)
{
    __shared__ __nv_bfloat16 xs[SIDE][PITCH];
    __shared__ __nv_bfloat16 ws[SIDE][PITCH];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row0 = blockIdx.y * SIDE, col0 = blockIdx.x * SIDE;

    // The part of a thread in the staging: column sk of rows sr, sr + ROWS_A_PASS, …
    const int tid = ty * THREADS + tx;
    const int sk = tid % DEPTH, sr = tid / DEPTH;

    // Indexed by constants only, once the loops are unrolled: registers.
    float sum[PATCH][PATCH];
    #pragma unroll
    for (int i = 0; i < PATCH; ++i) {
        #pragma unroll
        for (int j = 0; j < PATCH; ++j)
            sum[i][j] = 0.0f;
    }

    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        const int k = k0 + sk;
        #pragma unroll
        for (int p = 0; p < PASSES; ++p) {
            const int r = sr + p * ROWS_A_PASS;
            xs[r][sk] = row0 + r < M && k < K ? x[size_t(row0 + r) * K + k] : __nv_bfloat16(0.0f);
        }
        #pragma unroll
        for (int p = 0; p < PASSES; ++p) {
            const int r = sr + p * ROWS_A_PASS;
            ws[r][sk] = col0 + r < N && k < K ? weight[size_t(col0 + r) * K + k] : __nv_bfloat16(0.0f);
        }
        __syncthreads();

        #pragma unroll 4
        for (int kk = 0; kk < DEPTH; ++kk) {
            float a[PATCH], b[PATCH];
            // Neighbouring lanes read neighbouring rows, an odd number of words apart: no bank conflicts.
            #pragma unroll
            for (int i = 0; i < PATCH; ++i)
                a[i] = __bfloat162float(xs[ty + THREADS * i][kk]);
            #pragma unroll
            for (int j = 0; j < PATCH; ++j)
                b[j] = __bfloat162float(ws[tx + THREADS * j][kk]);
            #pragma unroll
            for (int i = 0; i < PATCH; ++i) {
                #pragma unroll
                for (int j = 0; j < PATCH; ++j)
                    sum[i][j] += a[i] * b[j];
            }
        }
        __syncthreads();
    }

    float add[PATCH];
    #pragma unroll
    for (int j = 0; j < PATCH; ++j) {
        const int col = col0 + tx + THREADS * j;
        add[j] = col < N ? __bfloat162float(bias[col]) : 0.0f;
    }
    #pragma unroll
    for (int i = 0; i < PATCH; ++i) {
        const int row = row0 + ty + THREADS * i;
        #pragma unroll
        for (int j = 0; j < PATCH; ++j) {
            const int col = col0 + tx + THREADS * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(sum[i][j] + add[j]);
        }
    }
}
