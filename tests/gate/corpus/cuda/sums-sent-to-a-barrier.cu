/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["4 * R"]
block = [64]
cluster = [4]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four blocks of a cluster send their parts of a row into the shared memory of the first by asynchronous stores, which count on its barrier.
typedef unsigned long long u64;

__device__ __forceinline__ unsigned sharedOf(const void *p) { return unsigned(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void initBarrier(u64 *bar, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(sharedOf(bar)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void arriveExpecting(u64 *bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(sharedOf(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void awaitPhase(u64 *bar, unsigned parity)
{
    asm volatile("{\n.reg .pred done;\nagain_%=:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@done bra there_%=;\nbra again_%=;\nthere_%=:\n}"
                 : : "r"(sharedOf(bar)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulkLoad(void *to, const void *from, unsigned bytes, u64 *bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 : : "r"(sharedOf(to)), "l"(from), "r"(bytes), "r"(sharedOf(bar)) : "memory");
}

extern "C" __global__ __launch_bounds__(64) void sums(const float *x, float *y, int C)
{
    __shared__ __align__(16) float got[4];
    __shared__ float warps[2];
    __shared__ u64 bar;
    const int row = blockIdx.x / 4, rank = blockIdx.x % 4, share = (C + 3) / 4;
    if (threadIdx.x == 0) {
        initBarrier(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
        if (rank == 0)
            arriveExpecting(&bar, 16);
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" : : : "memory");
    const float *in = x + size_t(row) * C;
    float sum = 0.0f;
    for (int i = rank * share + threadIdx.x; i < min((rank + 1) * share, C); i += 64)
        sum += in[i];
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned to, at;
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(to) : "r"(sharedOf(&got[rank])));
        asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(at) : "r"(sharedOf(&bar)));
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                     : : "r"(to), "r"(__float_as_uint(warps[0] + warps[1])), "r"(at) : "memory");
        if (rank == 0) {
            awaitPhase(&bar, 0);
            y[row] = got[0] + got[1] + got[2] + got[3];
        }
    }
    __syncthreads();
    // None leaves while parts are under way.
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" : : : "memory");
}
