/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 2)"]
block = [32, 2]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Exponentials about the first element of a row, which is as good as the largest unless one lies some 27 above it or the first is none: then the largest is found.


__device__ __forceinline__ float added(float v)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}
__device__ __forceinline__ float largest(const float *in, int C)
{
    float top = __int_as_float(0xff800000);
#pragma unroll 4
    for (int i = threadIdx.x; i < C; i += 32)
        top = fmaxf(top, in[i]);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    return top;
}
__device__ __forceinline__ float exponentials(const float *in, float from, int C)
{
    float sum = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < C; i += 32)
        sum += expf(in[i] - from);
    return added(sum);
}
// Two warps a block, each with a row of its own.
extern "C" __global__ __launch_bounds__(64) void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 2 + threadIdx.y;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    // About any element of the row exponentials add up to one at least; only where they add up to what is no number is the largest of need.
    float from = in[0], sum = exponentials(in, from, C);
    if (!(sum < 1e12f)) {
        from = largest(in, C);
        sum = exponentials(in, from, C);
    }
    const float share = 1.0f / sum;
#pragma unroll 4
    for (int i = threadIdx.x; i < C; i += 32)
        out[i] = expf(in[i] - from) * share;
}
