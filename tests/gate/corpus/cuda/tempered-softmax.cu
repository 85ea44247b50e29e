/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One block a row, three passes: the parent of others.

// Over the 256 threads of a block.
template <bool LARGEST>
__device__ float overBlock(float v)
{
    __shared__ float parts[8];
    for (int lane = 16; lane > 0; lane /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, lane);
        v = LARGEST ? fmaxf(v, other) : v + other;
    }
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
    for (int i = 1; i < 8; ++i)
        v = LARGEST ? fmaxf(v, parts[i]) : v + parts[i];
    __syncthreads();
    return v;
}
__device__ void row(const float *in, float *out, int C, bool withMax)
{
    float top = 0.0f;
    if (withMax) {
        top = __int_as_float(0xff800000);
        for (int i = threadIdx.x; i < C; i += 256)
            top = fmaxf(top, in[i]);
        top = overBlock<true>(top);
    }
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256)
        sum += expf(0.5f * (in[i] - top));
    sum = overBlock<false>(sum);
    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf(0.5f * (in[i] - top)) / sum;
}
extern "C" __global__ __launch_bounds__(256) void softmax(const float *x, float *y, int R, int C)
{
    row(x + size_t(blockIdx.x) * C, y + size_t(blockIdx.x) * C, C, true);
}
