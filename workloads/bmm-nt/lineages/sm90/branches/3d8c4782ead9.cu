/*klineage
surface = "cuda"

[[tunable]]
name = "TILE"
default = 32
values = [16, 32]

[[tunable]]
name = "PATCH_ROWS"
default = 8
values = [4, 8]

[[tunable]]
name = "PATCH_COLS"
default = 8
values = [4, 8]

[[launch]]
kernel = "multiplyBatch"
grid = ["ceil_div(N, 16 * PATCH_COLS)", "ceil_div(M, 16 * PATCH_ROWS)", "B"]
block = ["16", "16"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[b,M,N] = x[b,M,K] · weight[b,N,K]ᵀ for every b, bf16 in and out, fp32 sums. blockIdx.z is b.
//
// The block of 16 × 16 threads stages TILE numbers along K of BLOCK_ROWS rows of x and BLOCK_COLS rows of
// weight in shared memory; every global load is coalesced along K. A thread owns a patch of
// PATCH_ROWS × PATCH_COLS elements of y, rows ty + 16·i and columns tx + 16·j, whose sums stay in registers:
// a step along k costs PATCH_ROWS + PATCH_COLS shared loads for PATCH_ROWS · PATCH_COLS products.

#include <cuda_bf16.h>

constexpr int SIDE = 16;
constexpr int THREADS = SIDE * SIDE;
constexpr int BLOCK_ROWS = SIDE * PATCH_ROWS;
constexpr int BLOCK_COLS = SIDE * PATCH_COLS;

// Two elements of padding make the row pitch an odd number of 4-byte words: 16 neighbouring rows, 16 different banks.
constexpr int PITCH = TILE + 2;

// Rows that the threads of the block stage at a time, TILE threads a row.
constexpr int STAGED_ROWS = THREADS / TILE;

extern "C" __global__ void __launch_bounds__(THREADS, 2)
multiplyBatch(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    x += size_t(blockIdx.z) * M * K;
    weight += size_t(blockIdx.z) * N * K;
    y += size_t(blockIdx.z) * M * N;

    __shared__ __nv_bfloat16 xs[BLOCK_ROWS][PITCH];
    __shared__ __nv_bfloat16 ws[BLOCK_COLS][PITCH];

    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row0 = blockIdx.y * BLOCK_ROWS, col0 = blockIdx.x * BLOCK_COLS;

    const int thread = ty * SIDE + tx;
    const int stagedK = thread % TILE, stagedRow = thread / TILE;

    // Indexed by constants only, once the loops are unrolled: registers.
    float sum[PATCH_ROWS][PATCH_COLS];
    #pragma unroll
    for (int i = 0; i < PATCH_ROWS; ++i) {
        #pragma unroll
        for (int j = 0; j < PATCH_COLS; ++j)
            sum[i][j] = 0.0f;
    }

    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Zeros past the edges: they add nothing to a sum, so the inner loop needs no guard.
        const int k = k0 + stagedK;
        #pragma unroll
        for (int r = 0; r < BLOCK_ROWS; r += STAGED_ROWS) {
            const int row = row0 + stagedRow + r;
            xs[stagedRow + r][stagedK] = row < M && k < K ? x[size_t(row) * K + k] : __nv_bfloat16(0.0f);
        }
        #pragma unroll
        for (int r = 0; r < BLOCK_COLS; r += STAGED_ROWS) {
            const int col = col0 + stagedRow + r;
            ws[stagedRow + r][stagedK] = col < N && k < K ? weight[size_t(col) * K + k] : __nv_bfloat16(0.0f);
        }
        __syncthreads();

        #pragma unroll 4
        for (int kk = 0; kk < TILE; ++kk) {
            float a[PATCH_ROWS], b[PATCH_COLS];
            #pragma unroll
            for (int i = 0; i < PATCH_ROWS; ++i)
                a[i] = __bfloat162float(xs[ty + SIDE * i][kk]);
            #pragma unroll
            for (int j = 0; j < PATCH_COLS; ++j)
                b[j] = __bfloat162float(ws[tx + SIDE * j][kk]);
            #pragma unroll
            for (int i = 0; i < PATCH_ROWS; ++i) {
                #pragma unroll
                for (int j = 0; j < PATCH_COLS; ++j)
                    sum[i][j] += a[i] * b[j];
            }
        }
        __syncthreads();
    }

    #pragma unroll
    for (int i = 0; i < PATCH_ROWS; ++i) {
        const int row = row0 + ty + SIDE * i;
        #pragma unroll
        for (int j = 0; j < PATCH_COLS; ++j) {
            const int col = col0 + tx + SIDE * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(sum[i][j]);
        }
    }
}
