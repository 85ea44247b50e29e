/*klineage
surface = "cuda"

[[launch]]
kernel = "linear"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["x", "weight", "bias", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ + bias[N], bf16 in and out, fp32 sums.
//
// One thread owns one element of y and walks K alone. Each product of two numbers costs two loads: a warp
// reads one number of x for all its lanes, but its 32 rows of weight lie K numbers apart, so that every
// load touches 32 different sectors. The load pipe is the bottleneck by far; only L1 sees any reuse.

#include <cuda_bf16.h>

extern "C" __global__ void linear(const __nv_bfloat16 *x, const __nv_bfloat16 *weight,
                                  const __nv_bfloat16 *bias, __nv_bfloat16 *y,
                                  int M, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += __bfloat162float(x[size_t(row) * K + k]) * __bfloat162float(weight[size_t(col) * K + k]);
    y[size_t(row) * N + col] = __float2bfloat16(sum + __bfloat162float(bias[col]));
}
