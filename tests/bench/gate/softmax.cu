/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["256"]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A block a row: the maximum, the sum, the quotients. A delay of so many cycles can be planted at the end of each block.

constexpr long long delay = 0;

__device__ float warpMax(float v)
{
    for (int step = 16; step > 0; step /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
    return v;
}

__device__ float warpSum(float v)
{
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int C)
{
    __shared__ float tops[8];
    __shared__ float sums[8];
    const float *in = x + static_cast<long long>(blockIdx.x) * C;
    float *out = y + static_cast<long long>(blockIdx.x) * C;
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;

    float top = __int_as_float(0xff800000); // −∞
    for (int i = threadIdx.x; i < C; i += 256)
        top = fmaxf(top, in[i]);
    top = warpMax(top);
    if (lane == 0)
        tops[warp] = top;
    __syncthreads();
    top = warpMax(tops[lane % 8]);

    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256)
        sum += expf(in[i] - top);
    sum = warpSum(sum);
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();
    sum = lane < 8 ? sums[lane] : 0.0f;
    sum = warpSum(sum);

    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf(in[i] - top) / sum;
    if (delay > 0) {
        for (const long long end = clock64() + delay; clock64() < end;)
            ;
    }
}
