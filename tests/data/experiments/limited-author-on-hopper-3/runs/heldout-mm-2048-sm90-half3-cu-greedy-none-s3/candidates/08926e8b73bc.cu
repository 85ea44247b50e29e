/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
cluster = ["1", "2"]
block = ["288"]
shared = "197696"
args = ["tm_a", "tm_b", "y", "int M", "int N", "int K"]
[[tensormap]]
name = "tm_a"
tensor = "a"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_b"
tensor = "b"
box = [64, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N] with wgmma (m64n256k16): two warpgroups share a 128 x 256 tile of y, 64 x 256 each, while a ninth warp
// fills four buffers with slices of 64 of K by TMA; the two blocks of a cluster, one below the other, share the slices of b; y
// leaves through shared memory, in whole rows; still missing is a way to fill the device when y has few tiles.

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int TILE_K = 64;
constexpr int THREADS = 256;
constexpr int STAGES = 4, Y_PITCH = 2 * TILE_N + 16; // in bytes, so that the eight rows of an stmatrix lie in different banks
constexpr unsigned A_BYTES = TILE_M * TILE_K * 2;
constexpr unsigned STAGE_BYTES = A_BYTES + TILE_K * TILE_N * 2; // a's slice, then b's in four boxes of 64 columns
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ __forceinline__ unsigned shared_address(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Waits until the barrier's phase of this parity is over.
__device__ __forceinline__ void wait_for(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 ::"r"(barrier), "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void bring(unsigned to, const TensorMap *map, int x, int y, unsigned barrier, unsigned short blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
                 : "memory");
}

__device__ __forceinline__ void store4(unsigned to, const float (&c)[4], const float (&d)[4])
{
    asm volatile("{ .reg .b32 p, q, r, s; cvt.rn.bf16x2.f32 p, %2, %1; cvt.rn.bf16x2.f32 q, %4, %3; cvt.rn.bf16x2.f32 r, %6, %5; "
                 "cvt.rn.bf16x2.f32 s, %8, %7; stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {p, q, r, s}; }" ::"r"(to),
                 "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3])
                 : "memory");
}

__device__ __forceinline__ void release(unsigned barrier, int block)
{
    // Arrives at that barrier of one of the cluster's two blocks.
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(barrier), "r"(block)
                 : "memory");
}

// acc[64,256] += a[64,16] · b[16,256], both in shared memory with the swizzle of 128 bytes: eight rows of a, or eight of b, take
// 1024 bytes, and b's groups of 64 columns lie 8192 bytes apart. It only starts the product. An address holds the block's rank
// in the cluster from bit 24 on, which must not reach the descriptors.
__device__ __forceinline__ void wgmma(float (&acc)[4][8][4], unsigned a, unsigned b)
{
#define ACC4(i, j) "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
#define ACC32(i) ACC4(i, 0), ACC4(i, 1), ACC4(i, 2), ACC4(i, 3), ACC4(i, 4), ACC4(i, 5), ACC4(i, 6), ACC4(i, 7)
#define ACC128 ACC32(0), ACC32(1), ACC32(2), ACC32(3)
    const unsigned long long ad = 0x4000004000010000ull | ((a & 0x3ffff) >> 4);
    const unsigned long long bd = 0x4000004002000000ull | ((b & 0x3ffff) >> 4);
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 1; }"
                 : ACC128
                 : "l"(ad), "l"(bd), "r"(1));
}

extern "C" __global__ void __launch_bounds__(288, 1)
    multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, __nv_bfloat16 *__restrict__ y,
             int M, int N, int K)
{
    extern __shared__ unsigned char buffers[];
    unsigned char *const tile = buffers + (0u - shared_address(buffers)) % 1024; // the swizzle repeats every 1024 bytes

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const unsigned base = shared_address(tile), rank = blockIdx.y % 2;
    const unsigned full = base + STAGES * STAGE_BYTES, empty = full + 8 * STAGES; // a barrier a buffer
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[4][8][4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                acc[i][j][e] = 0.0f;

    const int slices = (K + TILE_K - 1) / TILE_K;
    if (threadIdx.x < 2 * STAGES) // full: one arrival and the bytes; empty: the arrivals of eight warps in each of two blocks
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;"
                     ::"r"(full + 8 * threadIdx.x), "r"(threadIdx.x < STAGES ? 1 : 16) : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");

    for (int s = 0; s < slices; ++s) {
        if (threadIdx.x != THREADS) // one thread of the ninth warp fills the buffers
            break;
        const unsigned filled = full + s % STAGES * 8, to = base + s % STAGES * STAGE_BYTES;
        if (s >= STAGES)
            wait_for(empty + s % STAGES * 8, (s / STAGES + 1) % 2);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(filled), "r"(STAGE_BYTES) : "memory");
        bring(to, &tm_a, s * TILE_K, row0, filled, 1 << rank);
        for (unsigned g = 2 * rank; g < 2 * rank + 2; ++g) // half of b's columns, for both blocks
            bring(to + A_BYTES + g * 8192, &tm_b, col0 + g * 64, s * TILE_K, filled, 3);
    } // all is on its way
    if (warp == THREADS / 32) {
        __syncwarp();
        asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
        return;
    } // the other eight warps multiply
    for (int s = 0; s != slices; ++s) {
        const unsigned at = base + s % STAGES * STAGE_BYTES;
        wait_for(full + s % STAGES * 8, s / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll 4
        for (int k = 0; k < TILE_K; k += 16)
            wgmma(acc, at + warp / 4 * 8192 + k * 2, at + A_BYTES + k * 128);
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (s > 0 && lane < 2) // the slice before has been multiplied: both blocks may fill its buffer
            release(empty + (s - 1) % STAGES * 8, lane);
    }

    asm volatile("wgmma.wait_group.sync.aligned 0; barrier.cluster.arrive; bar.sync 1, 256;" ::: "memory");
    asm volatile("" : ACC128 : : "memory"); // the sums are there, and all warps of this block are done with its buffers
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; j += 2)
            store4(base + (warp * 16 + lane % 16) * Y_PITCH + i * 128 + (j + lane / 16) * 16, acc[i][j], acc[i][j + 1]);
    } // the warp's sixteen rows of y
    __syncwarp();
#pragma unroll 16
    for (int r = warp * 16; r < warp * 16 + 16; ++r) {
        if (row0 + r < M && col0 + lane * 8 < N) // N is a multiple of 8: the eight columns are inside together
            *reinterpret_cast<uint4 *>(y + size_t(row0 + r) * N + col0 + lane * 8) =
                *reinterpret_cast<const uint4 *>(tile + r * Y_PITCH + lane * 16);
    }
    asm volatile("barrier.cluster.wait;" ::: "memory"); // the other block may still arrive at this one's barriers
}
