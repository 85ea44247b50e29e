/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// A load takes 16 bytes: 8 numbers of a row. The 32 rows of weight that a warp reads still lie far apart, but
// a sector is used up by two loads instead of 16.
// Needs K % 8 == 0 for whole loads.

#include <cuda_bf16.h>

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

extern "C" __global__ void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N)
        return;

    const Chunk *xs = x + size_t(row) * (K / 8);
    const Chunk *ws = weight + size_t(col) * (K / 8);
    float sum = 0.0f;
    for (int chunk = 0; chunk < K / 8; ++chunk) {
        const Chunk a = xs[chunk], b = ws[chunk];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            sum += low(a.words[i]) * low(b.words[i]);
            sum += high(a.words[i]) * high(b.words[i]);
        }
    }
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
