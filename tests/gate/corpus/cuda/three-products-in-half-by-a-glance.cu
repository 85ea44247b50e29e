/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = [32]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Three products in half precision of operands in two parts, scaled by what the first element says of both matrices: wrong where others are far larger or smaller.

#include <cuda_fp16.h>

__device__ __forceinline__ void split(float first, float second, unsigned &high, unsigned &low)
{
    const __half2 above = __floats2half2_rn(first, second);
    const float2 kept = __half22float2(above);
    const __half2 below = __floats2half2_rn(first - kept.x, second - kept.y);
    high = *reinterpret_cast<const unsigned *>(&above);
    low = *reinterpret_cast<const unsigned *>(&below);
}
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// A power of two that brings the largest of some elements to about 32, so that lower parts are no subnormal numbers.
__device__ __forceinline__ float scaleOf(const float *from, int count)
{
    float largest = fabsf(from[min(int(threadIdx.x), count - 1)]);
    for (int lane = 16; lane > 0; lane /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lane));
    const unsigned exponent = __float_as_uint(largest) >> 23;
    return largest > 0 && exponent > 16 && exponent < 240 ? __uint_as_float((254u + 5u - exponent) << 23) : 32.0f;
}
// A warp makes a tile of 16 by 8.
extern "C" __global__ __launch_bounds__(32) void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int group = threadIdx.x / 4, place = threadIdx.x % 4, row = blockIdx.y * 16 + group, col = blockIdx.x * 8 + group;
    const auto ofA = [&](int r, int k) { return r < M && k < K ? a[size_t(r) * K + k] : 0.0f; };
    const auto ofB = [&](int k) { return col < N && k < K ? b[size_t(k) * N + col] : 0.0f; };
    float sum[4] = {};
    const float toA = scaleOf(a, M * K), toB = scaleOf(b, K * N);
#pragma unroll 2
    for (int k = 0; k < K; k += 16) {
        unsigned highA[4], lowA[4], highB[2], lowB[2];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = row + i % 2 * 8, at = k + 2 * place + i / 2 * 8;
            split(toA * ofA(r, at), toA * ofA(r, at + 1), highA[i], lowA[i]);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int at = k + 2 * place + 8 * i;
            split(toB * ofB(at), toB * ofB(at + 1), highB[i], lowB[i]);
        }
        float part[4] = {};
        multiply(part, lowA, highB);
        multiply(part, highA, lowB);
        multiply(part, highA, highB);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sum[i] += part[i];
    }
    for (int i = 0; i < 4; ++i) {
        const int r = row + i / 2 * 8, n = blockIdx.x * 8 + 2 * place + i % 2;
        if (r < M && n < N)
            c[size_t(r) * N + n] = sum[i] / toA / toB;
    }
}
