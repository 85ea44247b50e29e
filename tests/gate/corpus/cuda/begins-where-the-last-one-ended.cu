/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A block a row; walks begin at a place that nobody set, and go round.

__device__ float overBlock(float v, bool largest)
{
    __shared__ float parts[4];
    for (int lane = 16; lane > 0; lane /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, lane);
        v = largest ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    return largest ? fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3])) : (parts[0] + parts[1]) + (parts[2] + parts[3]);
}
extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int R, int C)
{
    __shared__ volatile unsigned last;
    const unsigned begin = last % unsigned(C);
    __syncthreads();
    const float *in = x + size_t(blockIdx.x) * C;
    float *out = y + size_t(blockIdx.x) * C;
    const auto at = [&](int i) { return i + begin < unsigned(C) ? i + begin : i + begin - C; };
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < C; i += 128)
        top = fmaxf(top, in[at(i)]);
    top = overBlock(top, true);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128)
        sum += expf(in[at(i)] - top);
    const float share = 1.0f / overBlock(sum, false);
    for (int i = threadIdx.x; i < C; i += 128)
        out[at(i)] = expf(in[at(i)] - top) * share;
    if (threadIdx.x == 0)
        last = blockIdx.x * 32 + R;
}
