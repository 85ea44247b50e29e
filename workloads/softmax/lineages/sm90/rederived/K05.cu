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
// One warp owns a row and passes over it three times, four elements a lane and step where the rows are
// aligned to 16 bytes, else one.

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

    // The same for all threads: every row begins on 16 bytes and is whole vectors.
    const bool vectors = C % 4 == 0 && ((size_t(x) | size_t(y)) & 15) == 0;

    x += size_t(row) * C;
    y += size_t(row) * C;

    // e^(x - top) = 2^(x log2(e) - top log2(e)): one fused multiply-add and one exponential an element. The
    // rounding of the shift is the same for a whole row and cancels.
    if (vectors) {
        const float4 *__restrict__ x4 = reinterpret_cast<const float4 *>(x);
        float4 *__restrict__ y4 = reinterpret_cast<float4 *>(y);
        const int C4 = C / 4;

        float top = negativeInfinity();
        for (int c = lane; c < C4; c += 32) {
            const float4 v = __ldg(x4 + c);
            top = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
        }

        const float shift = -warpMax(top) * LOG2E;
        float sum = 0.0f;
        for (int c = lane; c < C4; c += 32) {
            const float4 v = __ldg(x4 + c);
            sum += (exp2Fast(fmaf(v.x, LOG2E, shift)) + exp2Fast(fmaf(v.y, LOG2E, shift))) +
                   (exp2Fast(fmaf(v.z, LOG2E, shift)) + exp2Fast(fmaf(v.w, LOG2E, shift)));
        }

        // One division a row.
        const float scale = 1.0f / warpSum(sum);
        for (int c = lane; c < C4; c += 32) {
            const float4 v = __ldg(x4 + c);
            float4 e;
            e.x = exp2Fast(fmaf(v.x, LOG2E, shift)) * scale;
            e.y = exp2Fast(fmaf(v.y, LOG2E, shift)) * scale;
            e.z = exp2Fast(fmaf(v.z, LOG2E, shift)) * scale;
            e.w = exp2Fast(fmaf(v.w, LOG2E, shift)) * scale;
            y4[c] = e;
        }
        return;
    }

    float top = negativeInfinity();
    for (int c = lane; c < C; c += 32)
        top = fmaxf(top, x[c]);

    const float shift = -warpMax(top) * LOG2E;
    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += exp2Fast(fmaf(x[c], LOG2E, shift));

    // One division a row.
    const float scale = 1.0f / warpSum(sum);
    for (int c = lane; c < C; c += 32)
        y[c] = exp2Fast(fmaf(x[c], LOG2E, shift)) * scale;
}
