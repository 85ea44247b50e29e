/*klineage
surface = "cuda"

[[workspace]]
name = "taken"
dtype = "u32"
shape = ["R"]
init = "zero"

[[launch]]
kernel = "softmax"
grid = ["sm_count"]
block = ["32", "8"]
args = ["x", "y", "taken", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Looks at the multiprocessor it is on and at its place in the device, and works on the rows in that order; each row is drawn once.

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

extern "C" __global__ void softmax(const float *x, float *y, unsigned *taken, int R, int C)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    const int lane = threadIdx.x;
    for (int i = threadIdx.y; i < R; i += 8) {
        const int row = (i + sm * 37) % R;
        unsigned had = lane == 0 ? atomicExch(taken + row, 1u) : 0;
        if (__shfl_sync(0xffffffffu, had, 0) != 0)
            continue;
        float top, sum;
        statsOf(x + size_t(row) * C, C, lane, top, sum);
        divide(x + size_t(row) * C, y + size_t(row) * C, C, lane, top, sum);
    }
}
