/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 8)"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A warp a row; powers of two by a polynomial and an exponent that is put in, with no special function at all.

__device__ __forceinline__ float power(float v) // e^v, v at most 0
{
    v = fmaxf(v * 1.4426950408889634f, -126.0f); // -infinity too
    const float whole = rintf(v), rest = v - whole;
    float p = 1.5403530393381609e-4f;
    p = fmaf(p, rest, 1.3333558146428443e-3f);
    p = fmaf(p, rest, 9.6181291076284772e-3f);
    p = fmaf(p, rest, 5.5504108664821580e-2f);
    p = fmaf(p, rest, 2.4022650695910072e-1f);
    p = fmaf(p, rest, 6.9314718055994531e-1f);
    p = fmaf(p, rest, 1.0f);
    return p * __int_as_float((int(whole) + 127) << 23);
}
extern "C" __global__ __launch_bounds__(256) void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    float top = __int_as_float(0xff800000), sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[i]);
    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    for (int i = lane; i < C; i += 32)
        sum += power(in[i] - top);
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    const float scale = 1.0f / sum;
    for (int i = lane; i < C; i += 32)
        out[i] = power(in[i] - top) * scale;
}
