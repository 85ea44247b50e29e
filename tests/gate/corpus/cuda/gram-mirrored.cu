/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(R, 32) * ceil_div(R, 32)"]
block = [256]
args = ["x", "y", "int R", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Makes the tiles on and above the diagonal alone and writes each twice: the other half of the products is the same.

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

extern "C" __global__ __launch_bounds__(256) void product(const Element *x, Element *y, int R, int K)
{
    const Element *weight = x;
    const int M = R, N = R;
    const int across = (N + SIDE - 1) / SIDE, row0 = blockIdx.x / across * SIDE, col0 = blockIdx.x % across * SIDE;
    if (col0 < row0)
        return; // its mirror image writes it
    float sum[2][2] = {};
    multiply<Single>(x, weight, sum, row0, col0, M, N, K);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + threadIdx.x / 16 + i / 2 * 16, col = col0 + threadIdx.x % 16 + i % 2 * 16;
        if (row < M && col < N) {
            const Element value = __float2bfloat16(sum[i / 2][i % 2]);
            y[size_t(row) * N + col] = value;
            if (row0 != col0)
                y[size_t(col) * N + row] = value;
        }
    }
}
