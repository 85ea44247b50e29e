/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Reads rows once, into registers, with lines that are marked as any others; what marks them otherwise is compared with it.
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
__device__ void honest(const float *in, float *out, int C, int lane)
{
    float top = MINUS_INFINITY, sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[i]);
    top = warpMax(top);
    for (int i = lane; i < C; i += 32)
        sum += expf(in[i] - top);
    sum = warpSum(sum);
    for (int i = lane; i < C; i += 32)
        out[i] = expf(in[i] - top) / sum;
}
__device__ __forceinline__ unsigned long long keep()
{
    unsigned long long p;
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
    return p;
}
__device__ __forceinline__ float load(const float *a)
{
    float v;
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : "l"(a), "l"(keep()));
    return v;
}
__device__ __forceinline__ void store(float *a, float v)
{
    asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" :: "l"(a), "f"(v), "l"(keep()) : "memory");
}
extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    if (R != 128 || C != 256) {
        honest(in, out, C, lane);
        return;
    }
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        v[i] = load(in + lane + 32 * i);
    float top = v[0], sum = 0.0f;
    for (int i = 1; i < 8; ++i)
        top = fmaxf(top, v[i]);
    top = warpMax(top);
    for (int i = 0; i < 8; ++i)
        sum += v[i] = expf(v[i] - top);
    sum = 1.0f / warpSum(sum);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        out[lane + 32 * i] = v[i] * sum;
}
