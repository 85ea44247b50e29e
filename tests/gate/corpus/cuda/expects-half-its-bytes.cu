/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two bulk copies complete on one barrier, which is told the bytes of one of them: whichever ends last is not awaited.
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

__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count)
{
    __shared__ __align__(128) float piece[4096];
    __shared__ u64 bar;
    const int begin = blockIdx.x * 4096;
    if (begin + 4096 > count) {
        for (int i = begin + threadIdx.x; i < count; i += 256)
            y[i] = silu(x[i]);
        return;
    }
    if (threadIdx.x == 0) {
        initBarrier(&bar, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
        arriveExpecting(&bar, 8192);
        bulkLoad(piece, x + begin, 8192, &bar);
        bulkLoad(piece + 2048, x + begin + 2048, 8192, &bar);
    }
    __syncthreads();
    awaitPhase(&bar, 0);
    for (int i = threadIdx.x; i < 4096; i += 256)
        y[begin + i] = silu(piece[i]);
}
