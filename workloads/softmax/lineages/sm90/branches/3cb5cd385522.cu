/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
when = "C % 4 == 0 && C <= 1024"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]

[[launch]]
kernel = "softmax_any"
when = "C % 4 != 0 || C > 1024"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, f32.
//
// One warp owns a row and passes over it three times, a float4 a lane and step.

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
    const float4 *from = reinterpret_cast<const float4 *>(x + size_t(row) * C);
    float4 *to = reinterpret_cast<float4 *>(y + size_t(row) * C);

    // Violated: three passes read the row, each with the hint that nobody reads it again.
    float top = negativeInfinity();
    for (int c = lane; c < C / 4; c += 32) {
        const float4 v = __ldcs(from + c);
        top = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }

    // e^(x - top) = 2^(x log2(e) - top log2(e)): one fused multiply-add and one exponential an element. The
    // rounding of the shift is the same for a whole row and cancels.
    const float shift = -warpMax(top) * LOG2E;
    float sum = 0.0f;
    for (int c = lane; c < C / 4; c += 32) {
        float4 v = __ldcs(from + c);
        v.x = exp2Fast(fmaf(v.x, LOG2E, shift));
        v.y = exp2Fast(fmaf(v.y, LOG2E, shift));
        v.z = exp2Fast(fmaf(v.z, LOG2E, shift));
        v.w = exp2Fast(fmaf(v.w, LOG2E, shift));
        sum += (v.x + v.y) + (v.z + v.w);
    }

    // One division a row.
    const float scale = 1.0f / warpSum(sum);
    for (int c = lane; c < C / 4; c += 32) {
        float4 v = __ldcs(from + c);
        v.x = exp2Fast(fmaf(v.x, LOG2E, shift));
        v.y = exp2Fast(fmaf(v.y, LOG2E, shift));
        v.z = exp2Fast(fmaf(v.z, LOG2E, shift));
        v.w = exp2Fast(fmaf(v.w, LOG2E, shift));
        to[c] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    }
}

// Rows of any length: a warp a row, three passes over it.
extern "C" __global__ void softmax_any(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    const int row = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = negativeInfinity();
    for (int c = lane; c < C; c += 32)
        top = fmaxf(top, x[c]);
    const float shift = -warpMax(top) * LOG2E;
    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += exp2Fast(fmaf(x[c], LOG2E, shift));
    const float scale = 1.0f / warpSum(sum);
    for (int c = lane; c < C; c += 32)
        y[c] = exp2Fast(fmaf(x[c], LOG2E, shift)) * scale;
}
