/*klineage
surface = "cuda"

[[launch]]
kernel = "cumsum4"
when = "HV % 4 == 0"
grid = ["ceil_div(HV, 32)", "ceil_div(T, 64)", "B"]
block = [32, 4]
args = ["g", "gc", "int T", "int HV / 4"]

[[launch]]
kernel = "cumsum1"
when = "HV % 4 != 0"
grid = ["ceil_div(HV, 8)", "ceil_div(T, 64)", "B"]
block = [32, 4]
args = ["g", "gc", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sums of log gates within chunks of 64 tokens: 16 threads share four heads of a chunk, which they read and write as one vector
// (one head where HV is no multiple of four). Each has four tokens in a row, adds them up, and begins with the totals of those
// before it. The 16 are in one warp, which holds two such columns and scans their totals by shuffles.

constexpr int OWN = 4, PARTS = 64 / OWN, GROUPS = 8; // tokens of a thread, threads of a column, columns of a block
constexpr int BESIDE = 32 / PARTS;                   // columns of a warp: neighbouring lanes have neighbouring columns

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

// The value of the lane that many lanes below.
__device__ __forceinline__ float fromBelow(float x, int lanes)
{
    return __shfl_up_sync(0xffffffffu, x, lanes);
}

__device__ __forceinline__ float4 fromBelow(const float4 &x, int lanes)
{
    return make_float4(fromBelow(x.x, lanes), fromBelow(x.y, lanes), fromBelow(x.z, lanes), fromBelow(x.w, lanes));
}

// Columns are heads, or vectors of four.
template <typename Gates>
__device__ __forceinline__ void sumColumns(const Gates *__restrict__ g, Gates *__restrict__ gc, int T, int columns)
{
    const int lane = threadIdx.x, warp = threadIdx.y;
    const int column = blockIdx.x * GROUPS + warp * BESIDE + lane % BESIDE, part = lane / BESIDE;
    const int first = blockIdx.y * 64 + part * OWN;
    const int valid = column < columns ? min(OWN, T - first) : 0; // may be negative
    const size_t at = (size_t(blockIdx.z) * T + first) * columns + column;

    Gates sums[OWN];
#pragma unroll
    for (int t = 0; t < OWN; ++t)
        sums[t] = t < valid ? g[at + size_t(t) * columns] : Gates{};
#pragma unroll
    for (int t = 1; t < OWN; ++t)
        add(sums[t], sums[t - 1]);

    // Before a step, total is the sum of up to `step` parts that end with this one, and before is that without this one.
    Gates total = sums[OWN - 1], before{};
#pragma unroll
    for (int step = 1; step < PARTS; step *= 2) {
        const Gates below = fromBelow(total, step * BESIDE);
        if (part >= step) {
            add(before, below);
            add(total, below);
        }
    }
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
