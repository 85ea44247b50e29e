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
constexpr float LOG2E = 1.44269504f;

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

// 2^v in one instruction, relative error 2^-22; 0 for -infinity and wherever the result were subnormal.
__device__ float exp2Fast(float v)
{
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
    return e;
}

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    const int row = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    // A lane adds up its elements relative to its own maximum, which starts at the lowest finite number, so that
    // x - top is no NaN where all elements of the lane are masked.
    float top = -3.402823466e38f;
    for (int c = lane; c < C; c += 32)
        top = fmaxf(top, x[c]);

    // e^(x - top) = 2^(x log2(e) - top log2(e)): one fused multiply-add and one exponential an element. The
    // rounding of the shift is the same for a whole row and cancels.
    // Violated: top * LOG2E of a lane that is masked throughout is infinite.
    const float own = -top * LOG2E;
    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += exp2Fast(fmaf(x[c], LOG2E, own));
    const float all = warpMax(top);
    const float shift = -all * LOG2E;
    sum *= exp2Fast((top - all) * LOG2E);

    // One division a row.
    const float scale = 1.0f / warpSum(sum);
    for (int c = lane; c < C; c += 32)
        y[c] = exp2Fast(fmaf(x[c], LOG2E, shift)) * scale;
}
