/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 2)"]
block = ["64", "2"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A block a row in which four warps exchange sums by shared memory under named barriers of sixty-four threads.

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

__device__ void wait(int which) { asm volatile("bar.sync %0, 64;" :: "r"(which + 1) : "memory"); }
extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    __shared__ float tops[2][2], sums[2][2];
    const int row = blockIdx.x * 2 + threadIdx.y, half = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float top = MINUS_INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 64)
        top = fmaxf(top, in[i]);
    top = warpMax(top);
    if (lane == 0)
        tops[threadIdx.y][half] = top;
    wait(threadIdx.y);
    top = fmaxf(tops[threadIdx.y][0], tops[threadIdx.y][1]);
    for (int i = threadIdx.x; i < C; i += 64)
        sum += expf(in[i] - top);
    sum = warpSum(sum);
    if (lane == 0)
        sums[threadIdx.y][half] = sum;
    wait(threadIdx.y);
    sum = sums[threadIdx.y][0] + sums[threadIdx.y][1];
    for (int i = threadIdx.x; i < C; i += 64)
        y[size_t(row) * C + i] = expf(in[i] - top) / sum;
}
