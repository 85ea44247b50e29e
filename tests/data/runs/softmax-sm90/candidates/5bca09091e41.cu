/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["128"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[R,C] = softmax of the rows of x, f32.
//
// One block owns a row and passes over it three times; its threads stride over the columns.

constexpr int THREADS = 128; // threads a block, and so a row
constexpr int WARPS = THREADS / 32;

__device__ float negativeInfinity()
{
    return __int_as_float(0xff800000);
}

// The maximum over the block, in every thread.
__device__ __forceinline__ float blockMax(float value, float *partial)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
    if ((threadIdx.x & 31) == 0)
        partial[threadIdx.x >> 5] = value;
    __syncthreads();
    value = partial[0];
#pragma unroll
    for (int w = 1; w < WARPS; ++w)
        value = fmaxf(value, partial[w]);
    return value;
}

// The sum over the block, in every thread.
__device__ __forceinline__ float blockSum(float value, float *partial)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    if ((threadIdx.x & 31) == 0)
        partial[threadIdx.x >> 5] = value;
    __syncthreads();
    value = partial[0];
#pragma unroll
    for (int w = 1; w < WARPS; ++w)
        value += partial[w];
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
softmax(const float *__restrict__ x, float *__restrict__ y, int R, int C)
{
    __shared__ float tops[WARPS]; // one array a reduction, so that neither waits for the other's readers
    __shared__ float sums[WARPS];

    const int row = blockIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float top = negativeInfinity();
#pragma unroll 8
    for (int c = threadIdx.x; c < C; c += THREADS)
        top = fmaxf(top, x[c]);
    top = blockMax(top, tops);
    float sum = 0.0f;
#pragma unroll 4
    for (int c = threadIdx.x; c < C; c += THREADS)
        sum += expf(x[c] - top);
    sum = blockSum(sum, sums);
#pragma unroll 4
    for (int c = threadIdx.x; c < C; c += THREADS)
        y[c] = expf(x[c] - top) / sum;
}
