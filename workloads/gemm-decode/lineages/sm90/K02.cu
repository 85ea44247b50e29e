/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = ["256"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// A warp owns one row of weight and 16 rows of x. Its lanes lie along K: a load of weight is 512 neighbouring
// bytes, fetched once for all the rows of x, whose 16 sums a lane keeps in registers. The lanes' parts meet
// in shuffles at the end.
// Needs K % 8 == 0 for whole loads.

#include <cuda_bf16.h>

constexpr int ROWS = 16;

struct alignas(16) Chunk {
    unsigned words[4]; // two numbers each
};

// Half of a word as a float: bf16 is the upper half of one.
__device__ __forceinline__ float low(unsigned word)
{
    return __uint_as_float(word << 16);
}

__device__ __forceinline__ float high(unsigned word)
{
    return __uint_as_float(word & 0xffff0000u);
}

extern "C" __global__ __launch_bounds__(256) void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y,
                                                       int M, int N, int K)
{
    const int lane = threadIdx.x % 32;
    const int col = blockIdx.x * 8 + threadIdx.x / 32, row0 = blockIdx.y * ROWS;
    if (col >= N)
        return;

    const int chunks = K / 8;
    const Chunk *ws = weight + size_t(col) * chunks;
    float sums[ROWS] = {};
    for (int chunk = lane; chunk < chunks; chunk += 32) {
        const Chunk b = ws[chunk];
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            // Rows past the last repeat it; they are not stored.
            const Chunk a = x[size_t(min(row0 + row, M - 1)) * chunks + chunk];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                sums[row] += low(a.words[i]) * low(b.words[i]);
                sums[row] += high(a.words[i]) * high(b.words[i]);
            }
        }
    }

#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
        for (int step = 16; step > 0; step /= 2)
            sums[row] += __shfl_xor_sync(~0u, sums[row], step);
        if (lane == 0 && row0 + row < M)
            y[size_t(row0 + row) * N + col] = __float2bfloat16(sums[row]);
    }
}
