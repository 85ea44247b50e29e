/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["ceil_div(R, 16)"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A function that is never called and never inlined: who calls any has its local memory overwritten before each sample, during which the launches of its graph arrive. Its parent, the same
// without the call, has not, and waits for them within what is timed.
typedef unsigned long long u64;

#define LOWEST __int_as_float(0xff800000)

// Of the eight threads that have a row.
__device__ float rowMax(float v)
{
    for (int other = 1; other < 8; other *= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, other));
    return v;
}

__device__ float rowSum(float v)
{
    for (int other = 1; other < 8; other *= 2)
        v += __shfl_xor_sync(0xffffffffu, v, other);
    return v;
}

// Sixteen rows a block, eight threads a row.
__device__ float sumOf(const float *in, int C, int part)
{
    float sum = 0.0f;
    for (int i = part; i < C; i += 8)
        sum += in[i];
    return rowSum(sum);
}

__device__ void wholeSums(const float *x, float *y, int R, int C, int block)
{
    const int row = block * 16 + threadIdx.x / 8, part = threadIdx.x % 8;
    const float sum = sumOf(x + size_t(min(row, R - 1)) * C, C, part);
    if (part == 0 && row < R)
        y[row] = sum;
}
// Never called, since no tensor has fewer than no columns.
__device__ __noinline__ float never(const float *x, int C)
{
    float sum = 0.0f;
    for (int i = 0; i > C; --i)
        sum += x[-i] * sum + 1.0f;
    return sum;
}
extern "C" __global__ __launch_bounds__(128) void sums(const float *x, float *y, int R, int C)
{
    if (C < 0) {
        y[0] = never(x, C);
        return;
    }
    wholeSums(x, y, R, C, blockIdx.x);
}
