/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each block asks for the lines of the row after its own and the one before, which the first and the last have not: a prefetch beyond a buffer does nothing.

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
    const char *in = reinterpret_cast<const char *>(x + size_t(blockIdx.x) * C);
    for (int i = threadIdx.x; i * 128 < C * 4; i += 256) {
        asm volatile("prefetch.global.L2 [%0];" : : "l"(in + size_t(C) * 4 + i * 128));
        asm volatile("prefetch.global.L2 [%0];" : : "l"(in - size_t(C) * 4 + i * 128));
    }
    softmaxRow(x + size_t(blockIdx.x) * C, y + size_t(blockIdx.x) * C, C);
}
