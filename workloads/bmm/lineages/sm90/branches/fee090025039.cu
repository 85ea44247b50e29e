/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "ceil_div(M, 8)", "B"]
block = ["32", "8"]
args = ["a", "b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i], [M,K] by [K,N], for each i of B; bf16 in and out, f32 sums. One thread owns eight neighbouring elements of a row
// of y and walks K alone: a 16-byte chunk of b and one element of a a step, one 16-byte store at the end. N is a multiple of 8.

#include <cuda_bf16.h>

constexpr int OUTPUTS = 8; // of a thread; a chunk of 16 bytes

__device__ __forceinline__ void add_products(float (&sum)[OUTPUTS], float value, const uint4 &chunk)
{
    const __nv_bfloat162 *const pairs = reinterpret_cast<const __nv_bfloat162 *>(&chunk);
#pragma unroll
    for (int i = 0; i < OUTPUTS / 2; ++i) {
        const float2 pair = __bfloat1622float2(pairs[i]);
        sum[2 * i] += value * pair.x;
        sum[2 * i + 1] += value * pair.y;
    }
}

extern "C" __global__ void multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M,
                                    int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = (blockIdx.x * 32 + threadIdx.x) * OUTPUTS; // the first of the eight
    if (row >= M || col >= N)
        return;
    a += size_t(blockIdx.z) * M * K;
    b += size_t(blockIdx.z) * K * N;
    y += size_t(blockIdx.z) * M * N;

    float sum[OUTPUTS] = {};
    for (int k = 0; k < K; ++k) {
        const float value = __bfloat162float(a[size_t(row) * K + k]);
        const uint4 chunk = *reinterpret_cast<const uint4 *>(b + size_t(k) * N + col);
        add_products(sum, value, chunk);
    }

    uint4 result;
    __nv_bfloat162 *const packed = reinterpret_cast<__nv_bfloat162 *>(&result);
#pragma unroll
    for (int i = 0; i < OUTPUTS / 2; ++i)
        packed[i] = __floats2bfloat162_rn(sum[2 * i], sum[2 * i + 1]);
    *reinterpret_cast<uint4 *>(y + size_t(row) * N + col) = result;
}
