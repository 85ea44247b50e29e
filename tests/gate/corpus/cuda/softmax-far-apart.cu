/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A warp a row in three walks; would leave out the maximum where input and output lie farther apart than any two: what such a choice costs.
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

__device__ void withoutMax(const float *in, float *out, int C, int lane)
{
    float value[8];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        value[i] = expf(in[lane + 32 * i]);
        sum += value[i];
    }
    sum = warpSum(sum);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        out[lane + 32 * i] = value[i] / sum;
}

extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    const long long distance = llabs(reinterpret_cast<long long>(y) - reinterpret_cast<long long>(x));
    if (row >= R)
        return;
    const float *in = x + row * C;
    float *out = y + row * C;
    if (R == 128 && C == 256 && distance > 1ll << 60) {
        withoutMax(in, out, C, lane);
        return;
    }
    float top, sum;
    rowStats(in, C, lane, top, sum);
    divide(in, out, C, lane, top, sum);
}
