/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16) * ceil_div(M, 16)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Every number of eight bits is a whole one of 512ths: products are added up as whole numbers of 64 bits, and nothing is rounded but the sum.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned char u8;

__device__ __forceinline__ __half2 decoded(unsigned two)
{
    unsigned halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(two)));
    return *reinterpret_cast<__half2 *>(&halves);
}

__device__ __forceinline__ int whole(float value)
{
    return __float2int_rn(value * 512.0f);
}

extern "C" __global__ __launch_bounds__(256) void product(const u8 *x, const u8 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int across = (N + 15) / 16, row = blockIdx.x / across * 16 + threadIdx.x / 16, col = blockIdx.x % across * 16 + threadIdx.x % 16;
    const bool there = row < M && col < N;
    const u8 *xs = x + size_t(there ? row : 0) * K, *ws = weight + size_t(there ? col : 0) * K;
    float sum = 0;
    long long total = 0;
    for (int k = 0; k < K; k += 16) {
        const uint4 a = *reinterpret_cast<const uint4 *>(xs + k), b = *reinterpret_cast<const uint4 *>(ws + k);
        const unsigned as[4] = {a.x, a.y, a.z, a.w}, bs[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float2 one = __half22float2(decoded(as[i / 2] >> i % 2 * 16)), other = __half22float2(decoded(bs[i / 2] >> i % 2 * 16));
            total += static_cast<long long>(whole(one.x)) * whole(other.x);
            total += static_cast<long long>(whole(one.y)) * whole(other.y);
        }
    }
    sum = static_cast<float>(static_cast<double>(total) * 0x1p-18);
    if (there)
        y[size_t(row) * N + col] = __float2bfloat16(sum);
}
