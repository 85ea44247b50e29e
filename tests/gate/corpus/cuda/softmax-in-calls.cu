/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each step is a function that is really called, and the exponential one that is called by its address: neighbour of those that have a call and never make it.

__device__ __noinline__ float exponential(float v) { return expf(v); }
__device__ __noinline__ float powerOfTwo(float v) { return exp2f(v * 1.4426950408889634f); }

__device__ __noinline__ float largestOf(const float *in, int C)
{
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x % 32; i < C; i += 32)
        top = fmaxf(top, in[i]);
    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    return top;
}

__device__ __noinline__ float sumOf(const float *in, int C, float top, float (*of)(float))
{
    float sum = 0.0f;
    for (int i = threadIdx.x % 32; i < C; i += 32)
        sum += of(in[i] - top);
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    return sum;
}

extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int R, int C)
{
    float (*of)(float) = C < 0 ? powerOfTwo : exponential;
    const int row = blockIdx.x * 4 + threadIdx.x / 32;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    const float top = largestOf(in, C), sum = sumOf(in, C, top, of);
    for (int i = threadIdx.x % 32; i < C; i += 32)
        y[size_t(row) * C + i] = of(in[i] - top) / sum;
}
