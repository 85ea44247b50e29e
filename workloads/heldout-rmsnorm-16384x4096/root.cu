/*klineage
surface = "cuda"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[r,c] = x[r,c] / sqrt(mean of x[r]² + 1e-5) * gamma[c], bf16 in and out. One thread computes one row in two passes.

#include <cuda_bf16.h>

extern "C" __global__ void rmsnorm(const __nv_bfloat16 *x, const __nv_bfloat16 *gamma, __nv_bfloat16 *y, int R,
                                   int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float squares = 0.0f;
    for (int c = 0; c < C; ++c)
        squares += __bfloat162float(x[c]) * __bfloat162float(x[c]);
    const float root = sqrtf(squares / C + 1e-5f);

    for (int c = 0; c < C; ++c)
        y[c] = __float2bfloat16(__bfloat162float(x[c]) / root * __bfloat162float(gamma[c]));
}
