/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = ["16", "16"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A product of tiles whose operands are marked as any others; what marks them otherwise is compared with it.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int TILE = 32, DEPTH = 64, PITCH = DEPTH / 8 + 1; // chunks of eight elements a row, and one more

__device__ __forceinline__ float lower(unsigned two)
{
    return __uint_as_float(two << 16);
}

__device__ __forceinline__ float upper(unsigned two)
{
    return __uint_as_float(two & 0xffff0000u);
}

__device__ __forceinline__ void add(float &sum, unsigned x, unsigned w)
{
    sum = fmaf(lower(x), lower(w), sum);
    sum = fmaf(upper(x), upper(w), sum);
}

__device__ __forceinline__ void add(float &sum, const uint4 &x, const uint4 &w)
{
    add(sum, x.x, w.x);
    add(sum, x.y, w.y);
    add(sum, x.z, w.z);
    add(sum, x.w, w.w);
}

__device__ __forceinline__ uint4 kept(const void *a)
{
    unsigned long long p;
    uint4 v;
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(a), "l"(p));
    return v;
}

// Eight elements of a row; zeros outside.
__device__ __forceinline__ uint4 fetch(const __nv_bfloat16 *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? kept(from + size_t(row) * K + k)
                               : make_uint4(0, 0, 0, 0);
}

extern "C" __global__ __launch_bounds__(256) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                                     __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ uint4 xs[TILE][PITCH], ws[TILE][PITCH];
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const int line = thread / 8, chunk = thread % 8;
    const int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    uint4 nextX = fetch(x, row0 + line, M, 8 * chunk, K);
    uint4 nextW = fetch(weight, col0 + line, N, 8 * chunk, K);
    float sum[2][2] = {};
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        __syncthreads();
        xs[line][chunk] = nextX;
        ws[line][chunk] = nextW;
        __syncthreads();
        nextX = fetch(x, row0 + line, M, k0 + DEPTH + 8 * chunk, K);
        nextW = fetch(weight, col0 + line, N, k0 + DEPTH + 8 * chunk, K);
#pragma unroll
        for (int c = 0; c < DEPTH / 8; ++c) {
            const uint4 x0 = xs[ty][c], x1 = xs[ty + 16][c], w0 = ws[tx][c], w1 = ws[tx + 16][c];
            add(sum[0][0], x0, w0);
            add(sum[0][1], x0, w1);
            add(sum[1][0], x1, w0);
            add(sum[1][1], x1, w1);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(sum[i][j]);
        }
}
