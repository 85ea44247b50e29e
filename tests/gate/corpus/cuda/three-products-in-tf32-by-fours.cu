/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 16)"]
block = [128]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Three TF32 products of operands in two parts, four tiles of 16 by 8 a block: the parent of one other.

#include <cuda_fp16.h>

__device__ __forceinline__ void split(float value, unsigned &high, unsigned &low)
{
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(value));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low) : "f"(value - __uint_as_float(high)));
}
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// A warp makes a tile of 16 by 8.
extern "C" __global__ __launch_bounds__(128) void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int lane = threadIdx.x % 32, tile = blockIdx.x * 4 + threadIdx.x / 32;
    const int group = lane / 4, place = lane % 4, row = blockIdx.y * 16 + group, col = tile * 8 + group;
    const auto ofA = [&](int r, int k) { return r < M && k < K ? a[size_t(r) * K + k] : 0.0f; };
    const auto ofB = [&](int k) { return col < N && k < K ? b[size_t(k) * N + col] : 0.0f; };
    float sum[4] = {};
#pragma unroll 2
    for (int k = 0; k < K; k += 8) {
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
        const int r = row + i / 2 * 8, n = tile * 8 + 2 * place + i % 2;
        if (r < M && n < N)
            c[size_t(r) * N + n] = sum[i];
    }
}
