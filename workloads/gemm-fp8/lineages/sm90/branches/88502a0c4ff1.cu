/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["32", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// A block owns 128 × 128 elements of y and walks K by 32. Each step stages both operands in shared memory
// as floats, k outermost, and a thread keeps 8 × 8 sums in registers: two groups of four rows by two
// groups of four columns, 64 apart, so that a step of k takes four loads of 16 bytes for 64 products.
// Needs K % 16 == 0 for whole loads.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int TILE = 128; // rows of x, and of weight, a block
constexpr int CHUNK = 16; // numbers a load
constexpr int DEPTH = 32; // numbers of K a step: two chunks

struct alignas(16) Chunk {
    unsigned words[4]; // four numbers each
};

// Two e4m3 numbers as floats, without loss.
__device__ __forceinline__ float2 widen(unsigned short two)
{
    unsigned halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(two));
    return __half22float2(reinterpret_cast<const __half2 &>(halves));
}

// Writes one chunk as a piece of a column of a tile, beginning at the line `tile`.
__device__ __forceinline__ void stage(float (*tile)[TILE], int place, const Chunk &chunk)
{
#pragma unroll
    for (int word = 0; word < 4; ++word) {
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
            const float2 two = widen(static_cast<unsigned short>(chunk.words[word] >> (16 * pair)));
            tile[4 * word + 2 * pair][place] = two.x;
            tile[4 * word + 2 * pair + 1][place] = two.y;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    // Number k of row r lies at [k][r ^ 16 * (k / 16)]: the two chunks of a row are written by neighbouring
    // lanes, and so fall on different banks.
    __shared__ __align__(16) float x_tile[DEPTH][TILE];
    __shared__ __align__(16) float w_tile[DEPTH][TILE];

    const int lane = threadIdx.x, warp = threadIdx.y;
    const int row_first = blockIdx.y * TILE, col_first = blockIdx.x * TILE;
    const int chunks = K / CHUNK;

    // What this thread stages: chunk `part` of a step, of one row of x and one of weight. Rows past the end
    // repeat the last one; their sums are never stored.
    const int line = warp * 16 + lane / 2, part = lane % 2;
    const int place = line ^ (16 * part);
    const Chunk *xs = x + size_t(min(row_first + line, M - 1)) * chunks;
    const Chunk *ws = weight + size_t(min(col_first + line, N - 1)) * chunks;

    // What it sums: a warp covers 4 × 8 groups of four.
    const int row_in = (warp / 2 * 4 + lane / 8) * 4;
    const int col_in = (warp % 2 * 8 + lane % 8) * 4;

    float sums[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j)
            sums[i][j] = 0.0f;
    }

#pragma unroll 1
    for (int first = 0; first < chunks; first += DEPTH / CHUNK) {
        Chunk a = {{0u, 0u, 0u, 0u}}, b = {{0u, 0u, 0u, 0u}};
        if (first + part < chunks) {
            a = xs[first + part];
            b = ws[first + part];
        }
        __syncthreads(); // the step before has been read
        stage(x_tile + CHUNK * part, place, a);
        stage(w_tile + CHUNK * part, place, b);
        __syncthreads();

#pragma unroll 1
        for (int half = 0; half < 2; ++half) {
            const float *xk = &x_tile[CHUNK * half][row_in ^ (16 * half)];
            const float *wk = &w_tile[CHUNK * half][col_in ^ (16 * half)];
#pragma unroll
            for (int k = 0; k < CHUNK; ++k) {
                const float4 a0 = *reinterpret_cast<const float4 *>(xk + k * TILE);
                const float4 a1 = *reinterpret_cast<const float4 *>(xk + k * TILE + 64);
                const float4 b0 = *reinterpret_cast<const float4 *>(wk + k * TILE);
                const float4 b1 = *reinterpret_cast<const float4 *>(wk + k * TILE + 64);
                const float as[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
                const float bs[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
                for (int i = 0; i < 8; ++i) {
#pragma unroll
                    for (int j = 0; j < 8; ++j)
                        sums[i][j] += as[i] * bs[j];
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row_first + row_in + i % 4 + i / 4 * 64;
        if (row < M) {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int col = col_first + col_in + j % 4 + j / 4 * 64;
                if (col < N)
                    y[size_t(row) * N + col] = __float2bfloat16(sums[i][j]);
            }
        }
    }
}
