/*klineage
surface = "cuda"

[[workspace]]
name = "stats"
dtype = "f32"
shape = ["R", "2"]

[[launch]]
kernel = "largest"
grid = ["R"]
block = [256]
args = ["x", "stats", "int R", "int C"]

[[launch]]
kernel = "sums"
grid = ["R"]
block = [256]
pdl = true
args = ["x", "stats", "int R", "int C"]

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
pdl = true
args = ["x", "stats", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Three launches, each of which begins early, reads its row, and waits for the one before.

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


__device__ void begin() { asm volatile("griddepcontrol.launch_dependents;" : : : "memory"); }
__device__ void await() { asm volatile("griddepcontrol.wait;" : : : "memory"); }

extern "C" __global__ __launch_bounds__(256) void largest(const float *x, float *stats, int R, int C)
{
    begin();
    const float *in = x + size_t(blockIdx.x) * C;
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < C; i += 256)
        top = fmaxf(top, in[i]);
    top = blockMax(top);
    if (threadIdx.x == 0)
        stats[2 * blockIdx.x] = top;
}
extern "C" __global__ __launch_bounds__(256) void sums(const float *x, float *stats, int R, int C)
{
    begin();
    const float *in = x + size_t(blockIdx.x) * C;
    const float first = threadIdx.x < C ? in[threadIdx.x] : 0.0f;
    await();
    const float top = *static_cast<volatile float *>(stats + 2 * blockIdx.x);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256)
        sum += expf((i < 256 ? first : in[i]) - top);
    sum = blockAdd(sum);
    if (threadIdx.x == 0)
        stats[2 * blockIdx.x + 1] = sum;
}
// The launch two before has ended when the one before has: that one waited for it.
extern "C" __global__ __launch_bounds__(256) void softmax(const float *x, const float *stats, float *y, int R, int C)
{
    const float *in = x + size_t(blockIdx.x) * C;
    float *out = y + size_t(blockIdx.x) * C;
    const float first = threadIdx.x < C ? in[threadIdx.x] : 0.0f;
    await();
    const volatile float *own = stats + 2 * blockIdx.x;
    const float top = own[0], sum = own[1];
    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf((i < 256 ? first : in[i]) - top) / sum;
}
