/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["2 * R"]
block = [128]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Clusters that the plan does not know of: their size is an attribute of the kernel. The halves of a row are exchanged through distributed shared
// memory, and no block leaves before the other has read.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

__device__ float warpMax(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}

__device__ float warpSum(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}

// The largest element and the sum of this block's half of a row.
__shared__ float2 stats;
__shared__ float cells[2][4];

__device__ void halfStats(const float *x, int begin, int end)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float top = -INFINITY;
    for (int i = begin + threadIdx.x; i < end; i += 128)
        top = fmaxf(top, x[i]);
    top = warpMax(top);
    if (lane == 0)
        cells[0][warp] = top;
    __syncthreads();
    top = fmaxf(fmaxf(cells[0][0], cells[0][1]), fmaxf(cells[0][2], cells[0][3]));
    float sum = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += 128)
        sum += top == -INFINITY ? 0.0f : expf(x[i] - top);
    sum = warpSum(sum);
    if (lane == 0)
        cells[1][warp] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        stats = make_float2(top, cells[1][0] + cells[1][1] + cells[1][2] + cells[1][3]);
}

// All threads of both blocks.
__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ float2 otherStats(unsigned block)
{
    unsigned address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(unsigned(__cvta_generic_to_shared(&stats))), "r"(block));
    float2 value;
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];"
                 : "=f"(value.x), "=f"(value.y)
                 : "r"(address)
                 : "memory");
    return value;
}

__device__ void divide(const float *x, float *y, int begin, int end, float2 mine, float2 other)
{
    const float top = fmaxf(mine.x, other.x); // one of them is finite
    const float sum = mine.y * expf(mine.x - top) + other.y * expf(other.x - top);
    for (int i = begin + threadIdx.x; i < end; i += 128)
        y[i] = expf(x[i] - top) / sum;
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) softmax(const float *x, float *y, int C)
{
    const unsigned block = blockIdx.x % 2;
    x += size_t(blockIdx.x / 2) * C;
    y += size_t(blockIdx.x / 2) * C;
    const int half = (C + 1) / 2;
    const int begin = block * half;
    const int end = min(C, begin + half);
    halfStats(x, begin, end);
    meet();
    const float2 other = otherStats(block ^ 1);
    meet();
    divide(x, y, begin, end, stats, other);
}
