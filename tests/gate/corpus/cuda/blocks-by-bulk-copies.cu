/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
when = "R * C % 4096 == 0"
grid = ["min(R * C / 4096, 2 * sm_count)"]
block = [256]
args = ["x", "y", "int R * C / 4096"]

[[launch]]
kernel = "single"
when = "R * C % 4096 != 0"
grid = ["ceil_div(R * C, 256)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Pieces of 16 KiB come into shared memory by bulk copies, one ahead of the one that is worked on, each with a barrier of its own.
typedef unsigned long long u64;

__device__ __forceinline__ unsigned sharedAddress(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ void awaitPhase(u64 *barrier, unsigned phase)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(sharedAddress(barrier)), "r"(phase) : "memory");
}

__device__ void fetch(float *to, const float *from, u64 *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(sharedAddress(barrier)), "r"(16384) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 : : "r"(sharedAddress(to)), "l"(from), "r"(16384), "r"(sharedAddress(barrier)) : "memory");
}

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int pieces)
{
    __shared__ alignas(128) float rooms[2][4096];
    __shared__ u64 barriers[2];
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i)
            asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(sharedAddress(barriers + i)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
        fetch(rooms[0], x + size_t(blockIdx.x) * 4096, barriers);
    }
    __syncthreads();
    int turn = 0;
    for (int piece = blockIdx.x; piece < pieces; piece += gridDim.x, ++turn) {
        const int next = piece + gridDim.x, room = turn & 1;
        if (threadIdx.x == 0 && next < pieces)
            fetch(rooms[room ^ 1], x + size_t(next) * 4096, barriers + (room ^ 1));
        awaitPhase(barriers + room, turn >> 1 & 1);
        for (int i = threadIdx.x; i < 4096; i += 256) {
            const float v = rooms[room][i];
            y[size_t(piece) * 4096 + i] = v / (1.0f + expf(-v));
        }
        __syncthreads(); // nobody reads the room any more when it is filled again
    }
}

extern "C" __global__ void single(const float *x, float *y, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        y[i] = x[i] / (1.0f + expf(-x[i]));
}
