/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ for a few rows of x, bf16 in and out, fp32 sums.
//
// One thread owns one element of y and walks K alone, 8 numbers of each operand a step, by one 16-byte load each
// (K is a multiple of 64: rows are aligned and there is no tail). A warp reads the same 16 bytes of x for all its
// lanes, but its 32 rows of weight lie K numbers apart, so that every load touches 32 sectors for 16 bytes of each.

#include <cuda_bf16.h>

// The two bf16 of a 32-bit word as fp32, the one at the lower address first.
static __device__ __forceinline__ float low(unsigned int pair)
{
    return __uint_as_float(pair << 16);
}

static __device__ __forceinline__ float high(unsigned int pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

extern "C" __global__ void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y,
                                int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N)
        return;

    const uint4 *xs = reinterpret_cast<const uint4 *>(x + size_t(row) * K);
    const uint4 *ws = reinterpret_cast<const uint4 *>(weight + size_t(col) * K);

    float sum = 0.0f;
    for (int k = 0; k < K / 8; ++k) {
        const uint4 a = xs[k];
        const uint4 b = ws[k];
        sum += low(a.x) * low(b.x);
        sum += high(a.x) * high(b.x);
        sum += low(a.y) * low(b.y);
        sum += high(a.y) * high(b.y);
        sum += low(a.z) * low(b.z);
        sum += high(a.z) * high(b.z);
        sum += low(a.w) * low(b.w);
        sum += high(a.w) * high(b.w);
    }
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
