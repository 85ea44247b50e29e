/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four pieces are asked for at once, each with a barrier of its own; the parity that is waited for goes with the number of the piece, so that two of them are not awaited.
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
    __shared__ __align__(128) float pieces[4][1024];
    __shared__ u64 bars[4];
    const int begin = blockIdx.x * 4096;
    if (begin + 4096 > count) {
        for (int i = begin + threadIdx.x; i < count; i += 256)
            y[i] = silu(x[i]);
        return;
    }
    if (threadIdx.x == 0) {
        for (int n = 0; n < 4; ++n)
            initBarrier(&bars[n], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
        for (int n = 0; n < 4; ++n) {
            arriveExpecting(&bars[n], 4096);
            bulkLoad(pieces[n], x + begin + 1024 * n, 4096, &bars[n]);
        }
    }
    __syncthreads();
    for (int n = 0; n < 4; ++n) {
        awaitPhase(&bars[n], n & 1);
        for (int i = threadIdx.x; i < 1024; i += 256)
            y[begin + 1024 * n + i] = silu(pieces[n][i]);
    }
}
