/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One block a row, which reads it twice: the largest element and the sum together; the parent of what leaves out the largest.

typedef unsigned long long u64;

// Over the 256 threads of a block.
__device__ float blockMax(float v)
{
    __shared__ float parts[8];
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    for (int w = 0; w < 8; ++w)
        v = fmaxf(v, parts[w]);
    __syncthreads();
    return v;
}

__device__ float blockAdd(float v)
{
    __shared__ float parts[8];
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < 8; ++w)
        v += parts[w];
    __syncthreads();
    return v;
}


__device__ void onlineRow(const float *in, float *out, int C)
{
    float top = -3e38f, sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256) {
        const float v = in[i], higher = fmaxf(top, v);
        sum = sum * expf(top - higher) + expf(v - higher);
        top = higher;
    }
    const float all = blockMax(top);
    sum = blockAdd(sum * expf(top - all));
    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf(in[i] - all) / sum;
}
extern "C" __global__ __launch_bounds__(256) void softmax(const float *x, float *y, int R, int C)
{
    onlineRow(x + size_t(blockIdx.x) * C, y + size_t(blockIdx.x) * C, C);
}
