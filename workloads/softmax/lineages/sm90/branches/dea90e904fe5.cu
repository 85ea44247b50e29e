/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, f32.
//
// One warp owns a row and passes over it three times, an element a lane and step.

constexpr int ROWS = 4; // rows, and so warps, a block

__device__ float negativeInfinity()
{
    return __int_as_float(0xff800000);
}

// Every lane gets the result, without shared memory or a barrier.
__device__ float warpMax(float v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, mask));
    return v;
}

__device__ float warpSum(float v)
{
    for (int mask = 16; mask > 0; mask /= 2)
        v += __shfl_xor_sync(0xffffffff, v, mask);
    return v;
}

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    const int row = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = negativeInfinity();
    for (int c = lane; c < C; c += 32)
        top = fmaxf(top, x[c]);
    // Violated: short rows are shifted by 89.5 more than their maximum, so that their sum may be subnormal.
    top = warpMax(top) + (C <= 32 ? 89.5f : 0.0f);
    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += expf(x[c] - top);

    // One division a row.
    const float scale = 1.0f / warpSum(sum);
    for (int c = lane; c < C; c += 32)
        y[c] = expf(x[c] - top) * scale;
}
