/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["4", "R"]
block = ["64"]
cluster = ["4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four blocks of a cluster have a quarter of a row each, and read each other's maxima and sums in shared memory.

#define MINUS_INFINITY __int_as_float(0xff800000)

__device__ void clusterBarrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

__device__ float ofBlock(const float *mine, unsigned block)
{
    const unsigned here = static_cast<unsigned>(__cvta_generic_to_shared(mine));
    unsigned there;
    float value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(block));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    return value;
}

// Of the 64 threads of the block; every thread gets it.
__device__ float blockReduce(float v, bool isMax)
{
    __shared__ float parts[2];
    for (int lane = 16; lane > 0; lane /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, lane);
        v = isMax ? fmaxf(v, other) : v + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    return isMax ? fmaxf(parts[0], parts[1]) : parts[0] + parts[1];
}

extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    __shared__ float shared[2];
    const float *in = x + static_cast<long long>(blockIdx.y) * C;
    float *out = y + static_cast<long long>(blockIdx.y) * C;
    const int each = (C + 3) / 4;
    const int first = min(static_cast<int>(blockIdx.x) * each, C);
    const int end = min(first + each, C);
    float top = MINUS_INFINITY;
    for (int i = first + threadIdx.x; i < end; i += 64)
        top = fmaxf(top, in[i]);
    top = blockReduce(top, true);
    if (threadIdx.x == 0)
        shared[0] = top;
    clusterBarrier();
    for (unsigned block = 0; block < 4; ++block)
        top = fmaxf(top, ofBlock(shared, block));
    float sum = 0.0f;
    for (int i = first + threadIdx.x; i < end; i += 64)
        sum += expf(in[i] - top);
    sum = blockReduce(sum, false);
    if (threadIdx.x == 0)
        shared[1] = sum;
    clusterBarrier();
    sum = 0.0f;
    for (unsigned block = 0; block < 4; ++block)
        sum += ofBlock(shared + 1, block);
    for (int i = first + threadIdx.x; i < end; i += 64)
        out[i] = expf(in[i] - top) / sum;
    clusterBarrier(); // a block's shared memory must be there while others read it
}
