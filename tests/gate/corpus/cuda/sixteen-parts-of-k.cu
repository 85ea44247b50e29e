/*klineage
surface = "cuda"

[[workspace]]
name = "parts"
dtype = "f32"
shape = ["16 * ceil_div(M, 32) * ceil_div(N, 32) * 1024"]

[[workspace]]
name = "tickets"
dtype = "u32"
shape = ["ceil_div(M, 32) * ceil_div(N, 32)"]
init = "zero"

[[launch]]
kernel = "product"
grid = ["ceil_div(M, 32) * ceil_div(N, 32)", 16]
block = [256]
args = ["x", "weight", "y", "parts", "tickets", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixteen blocks a tile, each with a part of K; whichever comes last adds them up, in one order.

#include <cuda_bf16.h>

constexpr int TILE = 32, DEPTH = 64, PITCH = DEPTH / 8 + 1;

__device__ __forceinline__ float low(unsigned two) { return __uint_as_float(two << 16); }
__device__ __forceinline__ float high(unsigned two) { return __uint_as_float(two & 0xffff0000u); }
__device__ __forceinline__ float both(float sum, unsigned x, unsigned w)
{
    return fmaf(high(x), high(w), fmaf(low(x), low(w), sum));
}
__device__ __forceinline__ float eight(float sum, const uint4 &x, const uint4 &w)
{
    return both(both(both(both(sum, x.x, w.x), x.y, w.y), x.z, w.z), x.w, w.w);
}
// Eight elements of a row; zeros outside.
__device__ __forceinline__ uint4 eightOf(const __nv_bfloat16 *from, int row, int rows, int k, int K)
{
    return row < rows && k < K ? *reinterpret_cast<const uint4 *>(from + size_t(row) * K + k)
                               : make_uint4(0, 0, 0, 0);
}
__device__ __forceinline__ unsigned folded(unsigned print, const uint4 &v)
{
    print = print * 0x9e3779b1u + v.x;
    print = print * 0x9e3779b1u + v.y;
    print = print * 0x9e3779b1u + v.z;
    return print * 0x9e3779b1u + v.w;
}
// A tile of the product, four elements a thread, from columns [begin, end) of the operands; what the thread read, as one number.
__device__ unsigned multiply(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, int row0, int col0, int M, int N, int K,
                             int begin, int end, float (&sum)[2][2])
{
    __shared__ uint4 xs[TILE][PITCH], ws[TILE][PITCH];
    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16, line = thread / 8, chunk = thread % 8;
    unsigned print = 1;
    uint4 nextX = eightOf(x, row0 + line, M, begin + 8 * chunk, K);
    uint4 nextW = eightOf(weight, col0 + line, N, begin + 8 * chunk, K);
    for (int k0 = begin; k0 < end; k0 += DEPTH) {
        print = folded(folded(print, nextX), nextW);
        __syncthreads();
        xs[line][chunk] = nextX;
        ws[line][chunk] = nextW;
        __syncthreads();
        if (k0 + DEPTH < end) {
            nextX = eightOf(x, row0 + line, M, k0 + DEPTH + 8 * chunk, K);
            nextW = eightOf(weight, col0 + line, N, k0 + DEPTH + 8 * chunk, K);
        }
#pragma unroll
        for (int c = 0; c < DEPTH / 8; ++c) {
            const uint4 x0 = xs[ty][c], x1 = xs[ty + 16][c], w0 = ws[tx][c], w1 = ws[tx + 16][c];
            sum[0][0] = eight(sum[0][0], x0, w0);
            sum[0][1] = eight(sum[0][1], x0, w1);
            sum[1][0] = eight(sum[1][0], x1, w0);
            sum[1][1] = eight(sum[1][1], x1, w1);
        }
    }
    __syncthreads();
    return print;
}
__device__ void putTile(const float (&sum)[2][2], __nv_bfloat16 *y, int row0, int col0, int M, int N)
{
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                y[size_t(row) * N + col] = __float2bfloat16(sum[i][j]);
        }
}
extern "C" __global__ __launch_bounds__(256) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, float *parts, unsigned *tickets, int M, int N, int K)
{
    const int across = (N + TILE - 1) / TILE, row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
    const int length = ((K + 15) / 16 + DEPTH - 1) / DEPTH * DEPTH, begin = min(K, int(blockIdx.y) * length), end = min(K, begin + length);
    float sum[2][2] = {};
    if (begin < end)
        multiply(x, weight, row0, col0, M, N, K, begin, end, sum);
    float4 *own = reinterpret_cast<float4 *>(parts) + (size_t(blockIdx.x) * 16 + blockIdx.y) * 256 + threadIdx.x;
    *own = make_float4(sum[0][0], sum[0][1], sum[1][0], sum[1][1]);
    __threadfence();
    __syncthreads();
    __shared__ bool last;
    if (threadIdx.x == 0)
        last = atomicAdd(tickets + blockIdx.x, 1u) == 15;
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    float all[2][2] = {};
    for (int part = 0; part < 16; ++part) {
        const float4 four = __ldcg(reinterpret_cast<const float4 *>(parts) + (size_t(blockIdx.x) * 16 + part) * 256 + threadIdx.x);
        all[0][0] += four.x;
        all[0][1] += four.y;
        all[1][0] += four.z;
        all[1][1] += four.w;
    }
    putTile(all, y, row0, col0, M, N);
}
