/*klineage
surface = "cuda"

[[workspace]]
name = "x_bits"
dtype = "u32"
shape = ["M", "ceil_div(K, 32)"]

[[workspace]]
name = "w_bits"
dtype = "u32"
shape = ["N", "ceil_div(K, 32)"]

[[workspace]]
name = "others"
dtype = "u32"
shape = [1]
init = "zero"

[[launch]]
kernel = "pack"
grid = ["ceil_div(K, 32)", "M + N"]
block = [32]
args = ["x", "weight", "x_bits", "w_bits", "others", "int M", "int K"]

[[launch]]
kernel = "count"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = [16, 16]
args = ["x", "weight", "x_bits", "w_bits", "others", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Packs elements into bits, looks at every one of them meanwhile, and counts; multiplies where one is neither 0 nor 1.

#include <cuda_bf16.h>

extern "C" __global__ __launch_bounds__(32) void pack(const __nv_bfloat16 *x, const __nv_bfloat16 *w, unsigned *xBits, unsigned *wBits, unsigned *others, int M, int K)
{
    const bool isX = int(blockIdx.y) < M;
    const int row = isX ? blockIdx.y : blockIdx.y - M, words = (K + 31) / 32, k = blockIdx.x * 32 + threadIdx.x;
    const float element = k < K ? __bfloat162float((isX ? x : w)[size_t(row) * K + k]) : 0.0f;
    const unsigned bits = __ballot_sync(0xffffffffu, element == 1.0f);
    if (element != 1.0f && element != 0.0f)
        atomicOr(others, 1u);
    if (threadIdx.x == 0)
        (isX ? xBits : wBits)[size_t(row) * words + blockIdx.x] = bits;
}
extern "C" __global__ __launch_bounds__(256) void count(const __nv_bfloat16 *x, const __nv_bfloat16 *w, const unsigned *xBits, const unsigned *wBits, const unsigned *others, __nv_bfloat16 *y, int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x, words = (K + 31) / 32;
    if (row >= M || col >= N)
        return;
    float sum = 0;
    if (*others == 0) {
        int ones = 0;
        for (int i = 0; i < words; ++i)
            ones += __popc(xBits[size_t(row) * words + i] & wBits[size_t(col) * words + i]);
        sum = float(ones);
    } else {
        for (int k = 0; k < K; ++k)
            sum = fmaf(__bfloat162float(x[size_t(row) * K + k]), __bfloat162float(w[size_t(col) * K + k]), sum);
    }
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
