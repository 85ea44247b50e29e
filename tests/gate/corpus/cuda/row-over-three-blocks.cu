/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["3 * R"]
block = [96]
cluster = [3]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Clusters of three blocks of three warps: each block has a third of the row, and reads the maxima and sums of the others where they lie.

__device__ __forceinline__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" : : : "memory");
}
__device__ __forceinline__ float of(const float *mine, unsigned rank)
{
    unsigned at;
    float v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(unsigned(__cvta_generic_to_shared(mine))), "r"(rank));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
    return v;
}
extern "C" __global__ __launch_bounds__(96) void softmax(const float *x, float *y, int C)
{
    __shared__ float warps[2][3], whole[2];
    const unsigned rank = blockIdx.x % 3;
    const size_t row = size_t(blockIdx.x / 3) * C;
    const int share = (C + 2) / 3, begin = min(int(rank) * share, C), end = min(begin + share, C);
    const float lowest = __int_as_float(0xff800000);
    float top = lowest;
    for (int i = begin + threadIdx.x; i < end; i += 96)
        top = fmaxf(top, x[row + i]);
    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    if (threadIdx.x % 32 == 0)
        warps[0][threadIdx.x / 32] = top;
    __syncthreads();
    if (threadIdx.x == 0)
        whole[0] = fmaxf(fmaxf(warps[0][0], warps[0][1]), warps[0][2]);
    __syncthreads();
    meet();
    top = fmaxf(fmaxf(of(&whole[0], 0), of(&whole[0], 1)), of(&whole[0], 2));
    float sum = 0.0f;
    for (int i = begin + threadIdx.x; i < end; i += 96)
        sum += expf(x[row + i] - top);
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (threadIdx.x % 32 == 0)
        warps[1][threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        whole[1] = warps[1][0] + warps[1][1] + warps[1][2];
    __syncthreads();
    meet();
    sum = of(&whole[1], 0) + of(&whole[1], 1) + of(&whole[1], 2);
    for (int i = begin + threadIdx.x; i < end; i += 96)
        y[row + i] = expf(x[row + i] - top) / sum;
    __syncthreads();
    meet(); // none leaves while others read
}
