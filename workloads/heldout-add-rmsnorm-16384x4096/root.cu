/*klineage
surface = "cuda"

[[launch]]
kernel = "add_rmsnorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "residual", "gamma", "sum", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// sum = x + residual; y[r,c] = sum[r,c] / sqrt(mean of sum[r]² + 1e-5) * gamma[c], bf16 in and out. One thread computes one
// row in two passes.

#include <cuda_bf16.h>

extern "C" __global__ void add_rmsnorm(const __nv_bfloat16 *x, const __nv_bfloat16 *residual,
                                       const __nv_bfloat16 *gamma, __nv_bfloat16 *sum, __nv_bfloat16 *y, int R,
                                       int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    const size_t begin = size_t(row) * C;
    x += begin;
    residual += begin;
    sum += begin;
    y += begin;

    float squares = 0.0f;
    for (int c = 0; c < C; ++c) {
        const float value = __bfloat162float(x[c]) + __bfloat162float(residual[c]);
        squares += value * value;
        sum[c] = __float2bfloat16(value);
    }
    const float root = sqrtf(squares / C + 1e-5f);

    for (int c = 0; c < C; ++c) {
        const float value = __bfloat162float(x[c]) + __bfloat162float(residual[c]);
        y[c] = __float2bfloat16(value / root * __bfloat162float(gamma[c]));
    }
}
