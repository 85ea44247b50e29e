/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 256)", "2 * ceil_div(M, 256)"]
cluster = ["1", "2"]
block = ["288"]
shared = "197632"
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
// fills four buffers with slices of 64 of K by TMA, and the two blocks of a cluster, one below the other, share the slices of b;
// still missing is a way to fill the device when y has few tiles. (load4_transposed and mma are unused now.)

#include <cuda_bf16.h>

constexpr int TILE_M = 128;
constexpr int TILE_N = 256;
constexpr int TILE_K = 64;
constexpr int THREADS = 256;
constexpr int STAGES = 4;
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

__device__ __forceinline__ void load4_transposed(unsigned (&r)[4], const __nv_bfloat16 *p)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(p))
                 : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// acc[64,256] += a[64,16] · b[16,256], both in shared memory with the swizzle of 128 bytes: eight rows of a, or eight of b, take
// 1024 bytes, and b's groups of 64 columns lie 8192 bytes apart. It only starts the product.
__device__ __forceinline__ void wgmma(float (&acc)[32][4], unsigned a, unsigned b)
{
#define ACC4(j) "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
#define ACC32(j) ACC4(j), ACC4(j + 1), ACC4(j + 2), ACC4(j + 3), ACC4(j + 4), ACC4(j + 5), ACC4(j + 6), ACC4(j + 7)
#define ACC128 ACC32(0), ACC32(8), ACC32(16), ACC32(24)
    const unsigned long long ad = 0x4000004000010000ull | (a >> 4);
    const unsigned long long bd = 0x4000004002000000ull | (b >> 4);
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

extern "C" __global__ void __launch_bounds__(THREADS + 32, 1)
    multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b,
             __nv_bfloat16 *__restrict__ y, int M, int N, int K)
{
    extern __shared__ unsigned char buffers[];
    __shared__ unsigned long long barriers[2 * STAGES]; // a buffer is full, for each; then: it is free, for each

    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const unsigned tiles = (shared_address(buffers) + 1023) / 1024 * 1024;
    const unsigned full = shared_address(barriers);
    const int row0 = blockIdx.y * TILE_M;
    const int col0 = blockIdx.x * TILE_N;

    float acc[32][4] = {};
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) // full: one arrival and the bytes; free: eight warps of two blocks
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 [%1], 16;" ::"r"(full + 8 * s), "r"(full + 8 * (STAGES + s)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("prefetch.tensormap [%0]; prefetch.tensormap [%1];" ::"l"(&tm_a), "l"(&tm_b) : "memory");
    }
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");

    const int slices = (K + TILE_K - 1) / TILE_K;
    const int rank = blockIdx.y % 2; // in the cluster

    for (int s = 0; s < slices; ++s) {
        // The first thread of the ninth warp brings all slices: a's for this block, and half of b's for both blocks.
        if (threadIdx.x != THREADS)
            break;
        const unsigned to = tiles + s % STAGES * STAGE_BYTES;
        const unsigned barrier = full + s % STAGES * 8;
        wait_for(barrier + 8 * STAGES, (s / STAGES + 1) % 2);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(STAGE_BYTES) : "memory");
        bring(to, &tm_a, s * TILE_K, row0, barrier, 1 << rank);
        for (int j = rank * 2; j < rank * 2 + 2; ++j)
            bring(to + A_BYTES + j * (TILE_K * 128), &tm_b, col0 + j * 64, s * TILE_K, barrier, 3);
    } // all slices are on their way
    if (warp == THREADS / 32)
        return;
    for (int n = 0; n < slices; ++n) {
        const unsigned at = tiles + n % STAGES * STAGE_BYTES;
        wait_for(full + n % STAGES * 8, n / STAGES % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll 4
        for (int k = 0; k < TILE_K; k += 16)
            wgmma(acc, at + warp / 4 * (A_BYTES / 2) + k * 2, at + A_BYTES + k * 128);
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (n > 0 && lane < 2) // the slice before this one is done with: both blocks are told
            asm volatile("{ .reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [r]; }"
                         ::"r"(full + 8 * (STAGES + (n - 1) % STAGES)), "r"(lane) : "memory");
    }

    asm volatile("wgmma.wait_group.sync.aligned 0; barrier.cluster.arrive;" : ACC128 : : "memory");
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int row = row0 + warp * 16 + i * 8 + lane / 4;
#pragma unroll
        for (int j = 0; j < 32; j += 2) {
            const int col = col0 + (j + lane % 2) * 8 + lane / 2 % 2 * 4;
            unsigned u, v;
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(acc[j][2 * i + 1]), "f"(acc[j][2 * i]));
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(acc[j + 1][2 * i + 1]), "f"(acc[j + 1][2 * i]));
            // Of two neighbours, the even lane gets four columns of group j, and the odd one four of group j + 1.
            const unsigned other = __shfl_xor_sync(~0u, lane % 2 ? u : v, 1);
            if (row < M && col < N) // N is a multiple of 8: the four columns are inside together
                *reinterpret_cast<uint2 *>(y + size_t(row) * N + col) =
                    lane % 2 ? make_uint2(other, v) : make_uint2(u, other);
        }
    }
    asm volatile("barrier.cluster.wait;" ::: "memory"); // the other block is done with this one's barriers
}
