/*klineage
surface = "cuda"

[[launch]]
kernel = "cumsum4"
when = "HV % 4 == 0"
grid = ["ceil_div(HV, 32)", "ceil_div(T, 64)", "B"]
block = [8, 16]
args = ["g", "gc", "int T", "int HV / 4"]

[[launch]]
kernel = "cumsum1"
when = "HV % 4 != 0"
grid = ["ceil_div(HV, 8)", "ceil_div(T, 64)", "B"]
block = [8, 16]
args = ["g", "gc", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sums of log gates within chunks of 64 tokens: 16 threads share four heads of a chunk, which they read and write as one vector
// (one head where HV is no multiple of four). Each has four tokens in a row, adds them up, and begins with the totals of those
// before it, which meet in shared memory.

constexpr int OWN = 4, PARTS = 64 / OWN, GROUPS = 8; // tokens of a thread, threads of a column, columns of a block

__device__ __forceinline__ void add(float &to, float x)
{
    to += x;
}

__device__ __forceinline__ void add(float4 &to, const float4 &x)
{
    to.x += x.x;
    to.y += x.y;
    to.z += x.z;
    to.w += x.w;
}

// Columns are heads, or vectors of four.
template <typename Gates>
__device__ __forceinline__ void sumColumns(const Gates *__restrict__ g, Gates *__restrict__ gc, int T, int columns)
{
    __shared__ Gates totals[PARTS][GROUPS];
    const int column = blockIdx.x * GROUPS + threadIdx.x, part = threadIdx.y, first = blockIdx.y * 64 + part * OWN;
    const int valid = column < columns ? min(OWN, T - first) : 0; // may be negative
    const size_t at = (size_t(blockIdx.z) * T + first) * columns + column;

    Gates sums[OWN];
#pragma unroll
    for (int t = 0; t < OWN; ++t)
        sums[t] = t < valid ? g[at + size_t(t) * columns] : Gates{};
#pragma unroll
    for (int t = 1; t < OWN; ++t)
        add(sums[t], sums[t - 1]);
    totals[part][threadIdx.x] = sums[OWN - 1];
    __syncthreads();

    Gates before{};
    for (int p = 0; p < part; ++p)
        add(before, totals[p][threadIdx.x]);
#pragma unroll
    for (int t = 0; t < OWN; ++t) {
        add(sums[t], before);
        if (t < valid)
            gc[at + size_t(t) * columns] = sums[t];
    }
}

extern "C" __global__ void __launch_bounds__(GROUPS * PARTS)
    cumsum4(const float4 *__restrict__ g, float4 *__restrict__ gc, int T, int columns)
{
    sumColumns(g, gc, T, columns);
}

extern "C" __global__ void __launch_bounds__(GROUPS * PARTS)
    cumsum1(const float *__restrict__ g, float *__restrict__ gc, int T, int columns)
{
    sumColumns(g, gc, T, columns);
}
