/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32) * ceil_div(M, 32)"]
block = [128]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Tiles of 32 by 32 by tensor cores with sums in single precision.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __half Element;
constexpr int SIDE = 32, DEPTH = 64, PITCH = DEPTH + 8;
// Eight elements of a row; zeros outside.
__device__ __forceinline__ uint4 fetch(const Element *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const uint4 *>(from + size_t(row) * K + k) : make_uint4(0, 0, 0, 0);
}
__device__ __forceinline__ unsigned twoOf(const Element *at) { return *reinterpret_cast<const unsigned *>(at); }
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// A tile of 32 by 32, of which a warp has 16 by 16.
__device__ __forceinline__ void tile(const Element *x, const Element *weight, int row0, int col0, int M, int N, int K, float (&sum)[2][4])
{
    __shared__ __align__(16) Element xs[SIDE][PITCH], ws[SIDE][PITCH];
    const int lane = threadIdx.x % 32, group = lane / 4, place = lane % 4, row = threadIdx.x / 64 * 16, col = threadIdx.x / 32 % 2 * 16;
    uint4 nextX[2], nextW[2];
    const auto begin = [&](int first) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int piece = threadIdx.x + i * 128, line = piece / 8, k = first + piece % 8 * 8;
            nextX[i] = fetch(x, row0 + line, M, k, K);
            nextW[i] = fetch(weight, col0 + line, N, k, K);
        }
    };
#pragma unroll
    for (int i = 0; i < 8; ++i)
        sum[i / 4][i % 4] = 0;
    begin(0);
    for (int first = 0; first < K; first += DEPTH) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int piece = threadIdx.x + i * 128, line = piece / 8, k = piece % 8 * 8;
            *reinterpret_cast<uint4 *>(&xs[line][k]) = (nextX[i]);
            *reinterpret_cast<uint4 *>(&ws[line][k]) = (nextW[i]);
        }
        __syncthreads();
        begin(first + DEPTH);
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            const int at = k + 2 * place;
            const unsigned a[4] = {twoOf(&xs[row + group][at]), twoOf(&xs[row + group + 8][at]), twoOf(&xs[row + group][at + 8]), twoOf(&xs[row + group + 8][at + 8])};
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const unsigned b[2] = {twoOf(&ws[col + 8 * n + group][at]), twoOf(&ws[col + 8 * n + group][at + 8])};
                multiply(sum[n], a, b);
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(128) void product(const Element *x, const Element *weight, Element *y, int M, int N, int K)
{
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    float sum[2][4];
    tile(x, weight, row0, col0, M, N, K, sum);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + threadIdx.x / 64 * 16 + threadIdx.x % 32 / 4 + i / 2 * 8, col = col0 + threadIdx.x / 32 % 2 * 16 + 8 * n + threadIdx.x % 4 * 2 + i % 2;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2half(sum[n][i]);
        }
}
