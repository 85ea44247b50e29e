/*klineage
surface = "cuda"

[[launch]]
kernel = "cumsum_vector"
when = "HV % 4 == 0"
grid = ["ceil_div(HV, 32)", "ceil_div(T, 64)", "B"]
block = [8, 16]
args = ["g", "gc", "int T", "int HV"]

[[launch]]
kernel = "cumsum_scalar"
when = "HV % 4 != 0"
grid = ["ceil_div(HV, 32)", "ceil_div(T, 64)", "B"]
block = [32, 16]
args = ["g", "gc", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sums of log gates within chunks of 64 tokens: 16 threads share a column of a chunk. Each has four tokens in a row, adds them up,
// and begins with the totals of those before it, which meet in shared memory. A column is four heads, read and written as one
// vector of 16 bytes, or a single head where the number of heads is no multiple of four.

constexpr int OWN = 4, PARTS = 64 / OWN; // tokens of a thread, threads of a column
constexpr int HEADS = 32, WIDTH = 4;     // heads of a block, heads of a vector

__device__ __forceinline__ float4 operator+(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// The columns are of type Column: float, or float4 for four heads; there are `columns` of them in a row of g and of gc.
template <typename Column, int LANES>
__device__ __forceinline__ void sum_chunk(const Column *__restrict__ g, Column *__restrict__ gc, int T, int columns)
{
    __shared__ Column totals[PARTS][LANES];
    const int column = blockIdx.x * LANES + threadIdx.x, part = threadIdx.y, first = blockIdx.y * 64 + part * OWN;
    const int valid = column < columns ? min(OWN, T - first) : 0; // may be negative
    const size_t at = (size_t(blockIdx.z) * T + first) * columns + column;

    Column sums[OWN], sum = Column{};
#pragma unroll
    for (int t = 0; t < OWN; ++t) {
        sums[t] = Column{};
        if (t < valid)
            sums[t] = g[at + size_t(t) * columns];
    }
#pragma unroll
    for (int t = 0; t < OWN; ++t) {
        sum = sum + sums[t];
        sums[t] = sum;
    }
    totals[part][threadIdx.x] = sum;
    __syncthreads();

    Column before = Column{};
    for (int p = 0; p < part; ++p)
        before = before + totals[p][threadIdx.x];
#pragma unroll
    for (int t = 0; t < OWN; ++t)
        if (t < valid)
            gc[at + size_t(t) * columns] = before + sums[t];
}

extern "C" __global__ void __launch_bounds__(HEADS / WIDTH * PARTS)
    cumsum_vector(const float4 *__restrict__ g, float4 *__restrict__ gc, int T, int HV)
{
    sum_chunk<float4, HEADS / WIDTH>(g, gc, T, HV / WIDTH);
}

extern "C" __global__ void __launch_bounds__(HEADS * PARTS)
    cumsum_scalar(const float *__restrict__ g, float *__restrict__ gc, int T, int HV)
{
    sum_chunk<float, HEADS>(g, gc, T, HV);
}
