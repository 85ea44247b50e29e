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
// y[M,N] = x[M,K] · weight[N,K]ᵀ, e4m3 in, bf16 out, fp32 sums.
//
// One thread owns one element of y and walks K alone, 16 numbers a load: 16 products take two loads, and
// the 32 rows of weight that a warp reads lie K bytes apart, so that every load touches 32 sectors.
// Needs K % 16 == 0 for whole loads.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

__device__ __forceinline__ float dot(unsigned x, unsigned weight, float sum)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float2 a = widen(x >> 16 * half), b = widen(weight >> 16 * half);
        sum += a.x * b.x;
        sum += a.y * b.y;
    }
    return sum;
}

extern "C" __global__ void gemm(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N)
        return;

    const Chunk *xs = x + size_t(row) * (K / 16);
    const Chunk *ws = weight + size_t(col) * (K / 16);
    float sum = 0.0f;
    for (int chunk = 0; chunk < K / 16; ++chunk) {
        const Chunk a = xs[chunk], b = ws[chunk];
#pragma unroll
        for (int word = 0; word < 4; ++word)
            sum = dot(a.words[word], b.words[word], sum);
    }
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
