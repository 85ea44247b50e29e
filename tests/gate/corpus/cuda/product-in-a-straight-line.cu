/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(M, 16) * ceil_div(N, 16)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// An element a thread, 256 steps of eight products written out: the parent of another.

#include <cuda_bf16.h>

// Eight products an iteration, in one order everywhere.
__device__ __forceinline__ float dot(const uint4 *a, const uint4 *b, int eights)
{
    float sum = 0;
#pragma unroll 256
    for (int i = 0; i < eights; ++i) {
        const uint4 p = a[i], q = b[i];
        const unsigned ps[4] = {p.x, p.y, p.z, p.w}, qs[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            sum = fmaf(__uint_as_float(ps[k] << 16), __uint_as_float(qs[k] << 16), sum);
            sum = fmaf(__uint_as_float(ps[k] & 0xffff0000u), __uint_as_float(qs[k] & 0xffff0000u), sum);
        }
    }
    return sum;
}
__device__ __forceinline__ const uint4 *rowOf(const __nv_bfloat16 *m, int row, int K) { return reinterpret_cast<const uint4 *>(m + size_t(row) * K); }

// A tile of 16 by 16, an element a thread.
extern "C" __global__ __launch_bounds__(256) void product(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    const int across = (N + 15) / 16, row = blockIdx.x / across * 16 + threadIdx.x / 16, col = blockIdx.x % across * 16 + threadIdx.x % 16;
    if (row < M && col < N)
        y[size_t(row) * N + col] = __float2bfloat16(dot(rowOf(x, row, K), rowOf(weight, col, K), K / 8));
}
