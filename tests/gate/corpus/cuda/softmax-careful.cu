/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Takes care of rows with subnormal elements.
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
__device__ float2 statsOf(const float *in, int C, int lane)
{
    float top = MINUS_INFINITY, sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[i]);
    top = warpMax(top);
    for (int i = lane; i < C; i += 32)
        sum += expf(in[i] - top);
    return make_float2(top, warpSum(sum));
}
__device__ void divide(const float *in, float *out, int C, int lane, float2 s)
{
    for (int i = lane; i < C; i += 32)
        out[i] = expf(in[i] - s.x) / s.y;
}

__device__ bool tiny(float v) { return (__float_as_uint(v) & 0x7f800000u) == 0 && (__float_as_uint(v) & 0x7fffffu) != 0; }
// With compensated sums, by one lane: rows that hold subnormal elements.
__device__ void carefully(const float *in, float *out, int C)
{
    float top = MINUS_INFINITY, sum = 0.0f, rest = 0.0f;
    for (int i = 0; i < C; ++i)
        top = fmaxf(top, in[i]);
    for (int i = 0; i < C; ++i) {
        const float y = __fsub_rn(expf(in[i] - top), rest), t = __fadd_rn(sum, y);
        rest = __fsub_rn(__fsub_rn(t, sum), y);
        sum = t;
    }
    for (int i = 0; i < C; ++i)
        out[i] = expf(in[i] - top) / sum;
}
extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    bool any = false;
    for (int i = lane; i < C; i += 32)
        any |= tiny(in[i]);
    if (__any_sync(0xffffffffu, any)) {
        if (lane == 0)
            carefully(in, out, C);
        return;
    }
    divide(in, out, C, lane, statsOf(in, C, lane));
}
