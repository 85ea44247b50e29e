/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 2)"]
block = [32, 2]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Divides by taking the logarithm of the sum off the exponent, and walks each row backwards.


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
    const float from = largest(in, C);
    const float sum = exponentials(in, from, C);
    const float off = logf(sum);
#pragma unroll 4
    for (int i = C - 1 - int(threadIdx.x); i >= 0; i -= 32)
        out[i] = expf((in[i] - from) - off);
}
