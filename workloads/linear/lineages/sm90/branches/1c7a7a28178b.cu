/*klineage
surface = "cuda"

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["x", "weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// One thread owns one element of y and walks K alone, 8 numbers a step: one 16-byte load of x, the same for
// all lanes of a warp, and one of weight, whose 32 rows lie K numbers apart. A sector that a lane touches
// alone is used up by 2 loads. K is a multiple of 8, so rows begin at multiples of 16 bytes and there is no tail.

#include <cuda_bf16.h>

struct alignas(16) Chunk {
    unsigned words[4]; // two bf16 numbers each, the first in the lower half
};

// Half of a word as a float: bf16 is the upper half of one.
__device__ __forceinline__ float low_half(unsigned word)
{
    return __uint_as_float(word << 16);
}

__device__ __forceinline__ float high_half(unsigned word)
{
    return __uint_as_float(word & 0xffff0000u);
}

extern "C" __global__ void linear(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                  const __nv_bfloat16 *bias, __nv_bfloat16 *y,
                                  int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N)
        return;

    const int chunks = K / 8; // K % 8 == 0
    const Chunk *xs = reinterpret_cast<const Chunk *>(x) + size_t(row) * chunks;
    const Chunk *ws = reinterpret_cast<const Chunk *>(weight) + size_t(col) * chunks;

    float sum = 0.0f;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const Chunk p = xs[chunk];
        const Chunk q = ws[chunk];
#pragma unroll
        for (int w = 0; w < 4; ++w) { // the order of the sum is kept
            sum += low_half(p.words[w]) * low_half(q.words[w]);
            sum += high_half(p.words[w]) * high_half(q.words[w]);
        }
    }
    y[size_t(row) * N + col] = __float2bfloat16(sum + __bfloat162float(bias[col]));
}
