/*klineage
surface = "cuda"

[[tunable]]
name = "OWN"
default = 4
values = [2, 4, 8, 16]

[[tunable]]
name = "WARPS"
default = 1
values = [1, 2, 4]

[[launch]]
kernel = "cumsum4"
when = "HV % 4 == 0"
grid = ["ceil_div(HV, 2 * OWN * WARPS)", "ceil_div(T, 64)", "B"]
block = [32, "WARPS"]
args = ["g", "gc", "int T", "int HV / 4"]

[[launch]]
kernel = "cumsum1"
when = "HV % 4 != 0"
grid = ["ceil_div(2 * HV, OWN * WARPS)", "ceil_div(T, 64)", "B"]
block = [32, "WARPS"]
args = ["g", "gc", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sums of log gates within chunks of 64 tokens: some lanes of a warp (16 where OWN is 4) share four heads of a chunk, which they read
// and write as one vector (one head where HV is no multiple of four). Each has OWN tokens in a row and adds them up; what came before
// them the lanes tell each other by shuffles, and no warp waits for another. So a warp can be a block of its own (WARPS is 1): the
// blocks are many and small, spread evenly over the multiprocessors, and none has warps beyond the last head.

// OWN: tokens of a lane; WARPS: warps of a block. Both are tunables of the plan.
constexpr int PARTS = 64 / OWN, GROUPS = 32 / PARTS; // lanes of a column, columns of a warp

static_assert(PARTS * OWN == 64 && GROUPS * PARTS == 32, "a warp holds whole columns of a chunk");

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

__device__ __forceinline__ float fromLower(float x, int lanes)
{
    return __shfl_up_sync(~0u, x, lanes);
}

__device__ __forceinline__ float4 fromLower(const float4 &x, int lanes)
{
    return make_float4(fromLower(x.x, lanes), fromLower(x.y, lanes), fromLower(x.z, lanes), fromLower(x.w, lanes));
}

// Columns are heads, or vectors of four. Neighbours in a row are neighbours in the warp.
template <typename Gates>
__device__ __forceinline__ void sumColumns(const Gates *__restrict__ g, Gates *__restrict__ gc, int T, int columns)
{
    const int lane = threadIdx.x, part = lane / GROUPS;
    const int warp = WARPS == 1 ? blockIdx.x : blockIdx.x * WARPS + threadIdx.y;
    const int column = warp * GROUPS + lane % GROUPS, first = blockIdx.y * 64 + part * OWN;
    const int valid = column < columns ? min(OWN, T - first) : 0; // may be negative
    const size_t at = (size_t(blockIdx.z) * T + first) * columns + column;

    Gates sums[OWN];
#pragma unroll
    for (int t = 0; t < OWN; ++t)
        sums[t] = t < valid ? g[at + size_t(t) * columns] : Gates{};
#pragma unroll
    for (int t = 1; t < OWN; ++t)
        add(sums[t], sums[t - 1]);

    Gates total = sums[OWN - 1];
#pragma unroll
    for (int step = GROUPS; step < 32; step *= 2) {
        const Gates other = fromLower(total, step);
        if (lane >= step)
            add(total, other);
    }
    Gates before = fromLower(total, GROUPS);
    if (part == 0)
        before = Gates{};
#pragma unroll
    for (int t = 0; t < OWN; ++t) {
        add(sums[t], before);
        if (t < valid)
            gc[at + size_t(t) * columns] = sums[t];
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    cumsum4(const float4 *__restrict__ g, float4 *__restrict__ gc, int T, int columns)
{
    sumColumns(g, gc, T, columns);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    cumsum1(const float *__restrict__ g, float *__restrict__ gc, int T, int columns)
{
    sumColumns(g, gc, T, columns);
}
