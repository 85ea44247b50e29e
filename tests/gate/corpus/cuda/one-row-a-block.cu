/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["8", "16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Eight lanes a row, three passes; others are compared with it.

#define MINUS_INFINITY __int_as_float(0xff800000)
typedef unsigned long long u64;

__device__ unsigned groupMask()
{
    return 0xffu << ((threadIdx.y * 8 + threadIdx.x) & 24);
}

__device__ float groupMax(float v)
{
    for (int lane = 4; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(groupMask(), v, lane));
    return v;
}

__device__ float groupSum(float v)
{
    for (int lane = 4; lane > 0; lane /= 2)
        v += __shfl_xor_sync(groupMask(), v, lane);
    return v;
}

extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int lane = threadIdx.x;
    const int row = blockIdx.x * 16 + threadIdx.y;
    const float *in = x + static_cast<long long>(min(row, R - 1)) * C;
    float *out = y + static_cast<long long>(row) * C;
    float top = MINUS_INFINITY;
    float sum = 0.0f;
    for (int i = lane; i < C; i += 8)
        top = fmaxf(top, in[i]);
    top = groupMax(top);
    for (int i = lane; i < C; i += 8)
        sum += expf(in[i] - top);
    sum = groupSum(sum);
    if (row >= R)
        return;
    for (int i = lane; i < C; i += 8)
        out[i] = expf(in[i] - top) / sum;
}
