/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Begins each row at a place that a clock draws, and goes round.

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
__device__ void statsOf(const float *in, int C, int lane, float &top, float &sum)
{
    top = MINUS_INFINITY, sum = 0.0f;
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
__device__ void rowsOf(int block, const float *x, float *y, int R, int C)
{
    const int row = block * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    float top, sum;
    statsOf(x + size_t(row) * C, C, lane, top, sum);
    divide(x + size_t(row) * C, y + size_t(row) * C, C, lane, top, sum);
}

extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    const int begin = __shfl_sync(0xffffffffu, int(clock() & 0x7fffffff) % C, 0);
    float top = MINUS_INFINITY, sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[(begin + i) % C]);
    top = warpMax(top);
    for (int i = lane; i < C; i += 32)
        sum += expf(in[(begin + i) % C] - top);
    sum = warpSum(sum);
    for (int i = lane; i < C; i += 32) {
        const int at = (begin + i) % C;
        y[size_t(row) * C + at] = expf(in[at] - top) / sum;
    }
}
