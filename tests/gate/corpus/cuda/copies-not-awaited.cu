/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(M, 32) * ceil_div(N, 32)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two buffers of asynchronous copies, of which it awaits all but the newest two where it should await all but one.

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

__device__ __forceinline__ void bring(uint4 *to, const __nv_bfloat16 *from, int row, int rows, int k, int K)
{
    const bool there = row < rows && k < K;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(there ? from + size_t(row) * K + k : from), "r"(there ? 16 : 0) : "memory");
}
extern "C" __global__ __launch_bounds__(256) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ uint4 xs[2][TILE][PITCH], ws[2][TILE][PITCH];
    const int across = (N + TILE - 1) / TILE, row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
    const int thread = threadIdx.x, tx = thread % 16, ty = thread / 16, line = thread / 8, chunk = thread % 8;
    float sum[2][2] = {};
    const auto ask = [&](int k0, int stage) {
        bring(&xs[stage][line][chunk], x, row0 + line, M, k0 + 8 * chunk, K);
        bring(&ws[stage][line][chunk], weight, col0 + line, N, k0 + 8 * chunk, K);
        asm volatile("cp.async.commit_group;" : : : "memory");
    };
    ask(0, 0);
    int stage = 0;
    for (int k0 = 0; k0 < K; k0 += DEPTH, stage ^= 1) {
        ask(k0 + DEPTH, stage ^ 1);
        asm volatile("cp.async.wait_group 2;" : : : "memory");
        __syncthreads();
#pragma unroll
        for (int c = 0; c < DEPTH / 8; ++c) {
            const uint4 x0 = xs[stage][ty][c], x1 = xs[stage][ty + 16][c], w0 = ws[stage][tx][c], w1 = ws[stage][tx + 16][c];
            sum[0][0] = eight(sum[0][0], x0, w0);
            sum[0][1] = eight(sum[0][1], x0, w1);
            sum[1][0] = eight(sum[1][0], x1, w0);
            sum[1][1] = eight(sum[1][1], x1, w1);
        }
        __syncthreads();
    }
    putTile(sum, y, row0, col0, M, N);
}
