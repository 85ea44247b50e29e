/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Weights about the largest of every eighth element, which is right wherever the sum is no more than 2^20; where it is, with the largest of all.

__device__ __forceinline__ float overWarp(float value)
{
    for (int lane = 16; lane > 0; lane /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, lane);
    return value;
}
__device__ __forceinline__ float largestOf(const float *in, int C)
{
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < C; i += 32)
        top = fmaxf(top, in[i]);
    for (int lane = 16; lane > 0; lane /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lane));
    return top;
}

__device__ __forceinline__ float largestOfSome(const float *in, int C)
{
    float top = __int_as_float(0xff800000);
    for (int i = 8 * threadIdx.x; i < C; i += 256)
        top = fmaxf(top, in[i]);
    for (int lane = 16; lane > 0; lane /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lane));
    return top;
}

// A warp a row.
extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    float top = largestOfSome(in, C), sum = 0;
    if (top > -1e30f) {
        for (int i = threadIdx.x; i < C; i += 32)
            sum += expf(in[i] - top);
        sum = overWarp(sum);
    }
    if (!(sum >= 1.0f && sum < 0x1p20f)) { // infinite, no number, or nothing but masked ones was seen
        top = largestOf(in, C);
        sum = 0;
        for (int i = threadIdx.x; i < C; i += 32)
            sum += expf(in[i] - top);
        sum = overWarp(sum);
    }
    const float share = 1.0f / sum;
    for (int i = threadIdx.x; i < C; i += 32)
        out[i] = expf(in[i] - top) * share;
}
