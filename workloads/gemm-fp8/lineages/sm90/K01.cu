/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 128)", "ceil_div(M, 128)"]
block = ["256"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// A block makes a tile of 128 × 128 and stages 16 columns of both operands in shared memory, widened to
// floats once for all their 128 uses. A thread keeps 8 × 8 sums in registers: a step along K reads
// 8 + 8 floats, as four loads of 16 bytes, for 64 products.
// Needs K % 16 == 0 for whole loads.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int TILE = 128, BK = 16;
constexpr int PITCH = TILE + 4; // rows begin at multiples of 16 bytes

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

// 16 numbers of one row, each into the row of its k.
__device__ __forceinline__ void stage(float (*to)[PITCH], const Chunk &from, int row)
{
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float2 two = widen(from.words[i / 2] >> 16 * (i % 2));
        to[2 * i][row] = two.x;
        to[2 * i + 1][row] = two.y;
    }
}

// 4 numbers at `at`, and 4 at 64 further on.
__device__ __forceinline__ void load(float (&to)[8], const float *row, int at)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float4 four = *reinterpret_cast<const float4 *>(row + at + 64 * half);
        to[4 * half] = four.x;
        to[4 * half + 1] = four.y;
        to[4 * half + 2] = four.z;
        to[4 * half + 3] = four.w;
    }
}

extern "C" __global__ __launch_bounds__(256, 2) void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y,
                                                          int M, int N, int K)
{
    __shared__ __align__(16) float xs[BK][PITCH];
    __shared__ __align__(16) float ws[BK][PITCH];

    const int thread = threadIdx.x;
    const int tx = thread % 16, ty = thread / 16;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    // The first half of the threads stages a row of x each, the second a row of weight.
    const int mine = thread % TILE;
    const bool isX = thread < TILE;
    const bool inside = isX ? row0 + mine < M : col0 + mine < N;
    const Chunk *from = isX ? x + size_t(row0 + mine) * (K / 16) : weight + size_t(col0 + mine) * (K / 16);

    float acc[8][8] = {};
    for (int slab = 0; slab < K / BK; ++slab) {
        // Zeros past the edges: they add nothing to a sum.
        stage(isX ? xs : ws, inside ? from[slab] : Chunk{}, mine);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[8], b[8];
            load(a, xs[k], ty * 4);
            load(b, ws[k], tx * 4);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    acc[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j) {
            const int row = row0 + ty * 4 + i % 4 + 64 * (i / 4), col = col0 + tx * 4 + j % 4 + 64 * (j / 4);
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(acc[i][j]);
        }
}
