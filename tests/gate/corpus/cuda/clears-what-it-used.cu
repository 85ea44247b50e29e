/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
shared = "65536"
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps its row in 64 KiB of shared memory, all of which it clears before and behind itself; rows that are longer stay where they are.

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

__device__ void softmaxRow(const float *in, float *out, int C)
{
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < C; i += 256)
        top = fmaxf(top, in[i]);
    top = blockMax(top);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256)
        sum += expf(in[i] - top);
    sum = blockAdd(sum);
    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf(in[i] - top) / sum;
}
extern "C" __global__ __launch_bounds__(256) void softmax(const float *x, float *y, int R, int C)
{
    extern __shared__ float kept[];
    const float *in = x + size_t(blockIdx.x) * C;
    for (int i = threadIdx.x; i < 16384; i += 256)
        kept[i] = 0.0f;
    __syncthreads();
    if (C <= 16384) {
        for (int i = threadIdx.x; i < C; i += 256)
            kept[i] = in[i];
        __syncthreads();
    }
    softmaxRow(C <= 16384 ? kept : in, y + size_t(blockIdx.x) * C, C);
    __syncthreads();
    for (int i = threadIdx.x; i < 16384; i += 256)
        kept[i] = 0.0f;
}
