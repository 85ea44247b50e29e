/*klineage
surface = "cuda"

[[workspace]]
name = "notes"
dtype = "u32"
shape = ["R", "8"]
init = "zero"

[[launch]]
kernel = "softmax"
grid = ["min(R, sm_count / 2) * 2"]
block = [256]
cooperative = true
args = ["notes", "x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two blocks a row, half of it each. They give each other the largest element and the sum through memory, with flags for which they sleep a little.

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

// Puts a number and its flag; waits for the other's.
__device__ float exchange(volatile unsigned *mine, volatile unsigned *other, float v)
{
    __shared__ float got;
    if (threadIdx.x == 0) {
        mine[0] = __float_as_uint(v);
        __threadfence();
        mine[1] = 1;
        while (other[1] == 0)
            __nanosleep(100);
        __threadfence();
        got = __uint_as_float(other[0]);
    }
    __syncthreads();
    const float result = got;
    __syncthreads();
    return result;
}
extern "C" __global__ __launch_bounds__(256) void softmax(unsigned *notes, const float *x, float *y, int R, int C)
{
    const int pairs = gridDim.x / 2, side = blockIdx.x % 2, half = (C + 1) / 2, begin = side * half, end = side == 0 ? half : C;
    for (int r = blockIdx.x / 2; r < R; r += pairs) {
        const float *in = x + size_t(r) * C;
        float *out = y + size_t(r) * C;
        volatile unsigned *mine = notes + r * 8 + side * 4, *other = notes + r * 8 + (1 - side) * 4;
        float top = -3.402823466e38f;
        for (int i = begin + threadIdx.x; i < end; i += 256)
            top = fmaxf(top, in[i]);
        top = blockMax(top);
        top = fmaxf(top, exchange(mine, other, top));
        float sum = 0.0f;
        for (int i = begin + threadIdx.x; i < end; i += 256)
            sum += expf(in[i] - top);
        sum = blockAdd(sum);
        sum += exchange(mine + 2, other + 2, sum);
        for (int i = begin + threadIdx.x; i < end; i += 256)
            out[i] = expf(in[i] - top) / sum;
    }
}
