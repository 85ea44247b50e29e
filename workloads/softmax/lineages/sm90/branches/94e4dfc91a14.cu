/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
when = "C % 4 == 0 && C <= 1024"
grid = ["R"]
block = ["1024"]
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
// A block owns a row, and each of its warps 32 columns of it, as float4 (violated: 8 of the 32 lanes have work).

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

// What the 32 warps of a block bring, combined; every thread gets the result.
__device__ float blockMax(float v, float *partial)
{
    v = warpMax(v);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = v;
    __syncthreads();
    return warpMax(partial[threadIdx.x % 32]);
}

__device__ float blockSum(float v, float *partial)
{
    v = warpSum(v);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = v;
    __syncthreads();
    return warpSum(partial[threadIdx.x % 32]);
}

extern "C" __global__ __launch_bounds__(1024) void softmax(const float *__restrict__ x, float *__restrict__ y,
                                                           int R, int C)
{
    __shared__ float tops[32], sums[32];
    x += size_t(blockIdx.x) * C;
    y += size_t(blockIdx.x) * C;
    const int lane = threadIdx.x % 32;
    const int c = threadIdx.x / 32 * 32 + 4 * lane;
    const bool works = lane < 8 && c < C;
    const float pad = negativeInfinity();
    float4 v = works ? *reinterpret_cast<const float4 *>(x + c) : make_float4(pad, pad, pad, pad);
    const float shift = -blockMax(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)), tops) * LOG2E;
    v.x = exp2Fast(fmaf(v.x, LOG2E, shift));
    v.y = exp2Fast(fmaf(v.y, LOG2E, shift));
    v.z = exp2Fast(fmaf(v.z, LOG2E, shift));
    v.w = exp2Fast(fmaf(v.w, LOG2E, shift));
    const float scale = 1.0f / blockSum((v.x + v.y) + (v.z + v.w), sums);
    if (works)
        *reinterpret_cast<float4 *>(y + c) = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
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
