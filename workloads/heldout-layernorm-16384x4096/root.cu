/*klineage
surface = "cuda"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[r,c] = (x[r,c] - mean) / sqrt(variance + 1e-5) * gamma[c] + beta[c], bf16 in and out. One thread computes one row in
// three passes: mean, variance, result.

#include <cuda_bf16.h>

extern "C" __global__ void layernorm(const __nv_bfloat16 *x, const __nv_bfloat16 *gamma,
                                     const __nv_bfloat16 *beta, __nv_bfloat16 *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        sum += __bfloat162float(x[c]);
    const float mean = sum / C;

    float squares = 0.0f;
    for (int c = 0; c < C; ++c)
        squares += (__bfloat162float(x[c]) - mean) * (__bfloat162float(x[c]) - mean);
    const float root = sqrtf(squares / C + 1e-5f);

    for (int c = 0; c < C; ++c)
        y[c] = __float2bfloat16((__bfloat162float(x[c]) - mean) / root * __bfloat162float(gamma[c])
                                + __bfloat162float(beta[c]));
}
