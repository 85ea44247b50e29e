/*klineage
surface = "cuda"

[[launch]]
kernel = "multiplyBatch"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)", "B"]
block = ["32", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[b,M,N] = x[b,M,K] · weight[b,N,K]ᵀ for every b, bf16 in and out, fp32 sums. blockIdx.z is b.
//
// One thread owns one element of y and walks K alone, 8 numbers a step: one 16-byte load takes a chunk of the
// row of x (the same for all lanes of a warp), another one a chunk of the lane's own row of weight. The chunks are
// taken apart in registers, since bf16 is the upper half of a float. K % 8 == 0, so that every row of every batch
// starts at a multiple of 16 bytes and no tail is left.

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

extern "C" __global__ void multiplyBatch(const Chunk *x, const Chunk *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N)
        return;

    const int chunks = K / 8; // a row's; K is a multiple of 8
    const Chunk *xs = x + (size_t(blockIdx.z) * M + row) * chunks;
    const Chunk *ws = weight + (size_t(blockIdx.z) * N + col) * chunks;
    y += size_t(blockIdx.z) * M * N;

    float sum = 0.0f;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const Chunk p = xs[chunk], q = ws[chunk]; // whole structs, into registers
#pragma unroll
        for (int w = 0; w < 4; ++w) { // the order of the elements, and so of the sum, is kept
            sum += low_half(p.words[w]) * low_half(q.words[w]);
            sum += high_half(p.words[w]) * high_half(q.words[w]);
        }
    }
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
