/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = [128]
args = ["a", "b", "scale", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of a product times numbers of their own: three products in TF32 of operands in two parts; a parent.


#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int SIDE = 32, PITCH = SIDE + 4;
typedef float Tile[SIDE][PITCH];
#define WITH_SUM(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
__device__ __forceinline__ void byTf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : WITH_SUM(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Three products of operands in two parts of TF32 each.
struct Tf32 {
    static __device__ __forceinline__ void split(float v, unsigned &high, unsigned &low)
    {
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(v));
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low) : "f"(v - __uint_as_float(high)));
    }
    static __device__ __forceinline__ void sixteen(float (&sum)[2][4], const Tile &a, const Tile &b, int row, int col, int k)
    {
        const int group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
#pragma unroll
        for (int part = 0; part < 16; part += 8) {
            unsigned highA[4], lowA[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                split(a[row + group + i % 2 * 8][k + part + place + i / 2 * 4], highA[i], lowA[i]);
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                unsigned highB[2], lowB[2];
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    split(b[k + part + place + 4 * i][col + 8 * n + group], highB[i], lowB[i]);
                byTf32(sum[n], lowA, highB);
                byTf32(sum[n], highA, lowB);
                byTf32(sum[n], highA, highB);
            }
        }
    }
};
// A warp has 16 by 16 of a tile of 32 by 32.
template <typename Way>
__device__ __forceinline__ void multiply(const float *a, const float *b, float (&sum)[2][4], int row0, int col0, int M, int N, int K)
{
    __shared__ Tile as, bs;
    float nextA[8], nextB[8];
    const auto fetch = [&](int first) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int down = threadIdx.x / 32 + 4 * i, right = threadIdx.x % 32;
            nextA[i] = row0 + down < M && first + right < K ? a[size_t(row0 + down) * K + first + right] : 0.0f;
            nextB[i] = first + down < K && col0 + right < N ? b[size_t(first + down) * N + col0 + right] : 0.0f;
        }
    };
#pragma unroll
    for (int i = 0; i < 8; ++i)
        sum[i / 4][i % 4] = 0;
    fetch(0);
    for (int first = 0; first < K; first += SIDE) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            as[threadIdx.x / 32 + 4 * i][threadIdx.x % 32] = nextA[i];
            bs[threadIdx.x / 32 + 4 * i][threadIdx.x % 32] = nextB[i];
        }
        __syncthreads();
        fetch(first + SIDE);
#pragma unroll
        for (int k = 0; k < SIDE; k += 16)
            Way::sixteen(sum, as, bs, threadIdx.x / 64 * 16, threadIdx.x / 32 % 2 * 16, k);
    }
}
extern "C" __global__ __launch_bounds__(128) void product(const float *a, const float *b, const float *scale, float *c, int M, int N, int K)
{
    const int row0 = blockIdx.y * SIDE, col0 = blockIdx.x * SIDE;
    float sum[2][4];
    multiply<Tf32>(a, b, sum, row0, col0, M, N, K);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + threadIdx.x / 64 * 16 + threadIdx.x % 32 / 4 + i / 2 * 8, col = col0 + threadIdx.x / 32 % 2 * 16 + 8 * n + threadIdx.x % 4 * 2 + i % 2;
            if (row < M && col < N)
                c[size_t(row) * N + col] = scale[row] * sum[n][i];
        }
}
