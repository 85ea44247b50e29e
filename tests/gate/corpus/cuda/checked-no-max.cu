/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds up exponentials as they are. Where their sum shows that some may have been lost, too large or too small, it starts over with the
// largest element: right for every row.

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
    x += size_t(row) * C;
    y += size_t(row) * C;
    float sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        sum += expf(x[i]);
    sum = warpSum(sum);
    float top = 0.0f;
    if (!(sum > 1e-20f && sum < 1e30f)) {
        top = __int_as_float(0xff800000);
        for (int i = lane; i < C; i += 32)
            top = fmaxf(top, x[i]);
        top = warpMax(top);
        sum = 0.0f;
        for (int i = lane; i < C; i += 32)
            sum += expf(x[i] - top);
        sum = warpSum(sum);
    }
    for (int i = lane; i < C; i += 32)
        y[i] = expf(x[i] - top) / sum;
}
