/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A warp a row in three walks: what others do that leave out the maximum at times.
#define MINUS_INFINITY __int_as_float(0xff800000)

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

__device__ void rowStats(const float *in, int C, int lane, float &top, float &sum)
{
    top = MINUS_INFINITY;
    sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[i]);
    top = warpMax(top);
    for (int i = lane; i < C; i += 32)
        sum += expf(in[i] - top);
    sum = warpSum(sum);
}

__device__ void divide(const float *in, float *out, int C, int lane, float top, float sum)
{
    for (int i = lane; i < C; i += 32)
        out[i] = expf(in[i] - top) / sum;
}

extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    const float *in = x + row * C;
    float *out = y + row * C;
    float top, sum;
    rowStats(in, C, lane, top, sum);
    divide(in, out, C, lane, top, sum);
}
