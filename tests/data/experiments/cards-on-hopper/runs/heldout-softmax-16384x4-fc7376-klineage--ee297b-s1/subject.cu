/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, bf16 in and out. One thread owns a row and passes over it three times.

#include <cuda_bf16.h>

extern "C" __global__ void softmax(const __nv_bfloat16 *x, __nv_bfloat16 *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = __int_as_float(0xff800000); // -infinity
    for (int c = 0; c < C; ++c)
        top = fmaxf(top, __bfloat162float(x[c]));
    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        sum += expf(__bfloat162float(x[c]) - top);
    for (int c = 0; c < C; ++c)
        y[c] = __float2bfloat16(expf(__bfloat162float(x[c]) - top) / sum);
}
