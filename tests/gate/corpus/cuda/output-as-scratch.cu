/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Writes exponentials to the output and reads them from there again to divide them: it reads an output, but never what it did not write.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

__device__ float warpMax(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ float warpSum(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float top = -INFINITY;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, x[i]);
    top = warpMax(top);
    float sum = 0.0f;
    volatile float *out = y;
    for (int i = lane; i < C; i += 32) {
        const float value = expf(x[i] - top);
        out[i] = value;
        sum += value;
    }
    sum = warpSum(sum);
    for (int i = lane; i < C; i += 32)
        out[i] = out[i] / sum;
}
