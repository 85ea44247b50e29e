/*klineage
surface = "cuda"

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

[[tensormap]]
name = "tm_y"
tensor = "y"
box = [64, 64]
swizzle = "128B"

[[launch]]
kernel = "multiply"
grid = ["2 * ceil_div(M, 256)", "ceil_div(N, 256)", "1"]
block = ["384", "1", "1"]
cluster = ["2", "1", "1"]
shared = "198656"
args = ["tm_a", "tm_b", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N], bf16 in and out, f32 sums.
//
// A block owns 128×256 elements of y. Warpgroups 0 and 1 multiply (64 rows each), one thread of warp 8 loads by TMA. Two blocks that are
// neighbours along M form a cluster and share their tile of b: each fetches half of it for both. The ring has four stages of 64 elements
// of K, each with a full and an empty barrier. The sums leave by TMA stores from where the warpgroup's rows of a were.

#include <cuda_bf16.h>

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

constexpr int STAGES = 4;
constexpr u32 A_BYTES = 128 * 64 * 2;
constexpr u32 B_BYTES = 64 * 256 * 2;
constexpr u32 STAGE_BYTES = A_BYTES + B_BYTES;
constexpr u32 RING_BYTES = STAGES * STAGE_BYTES;

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

// Arrives at the barrier of the cluster's block `rank` that lies where `bar` lies here.
__device__ __forceinline__ void mbar_arrive_at(u32 bar, u32 rank)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void named_sync(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void named_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------- copies

__device__ __forceinline__ void tma_prefetch(u64 map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void tma_load(u32 dst, u64 map, int c0, int c1, u32 bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(dst),
                 "l"(map), "r"(c0), "r"(c1), "r"(bar)
                 : "memory");
}

__device__ __forceinline__ void tma_load_both(u32 dst, u64 map, int c0, int c1, u32 bar)
{
    const unsigned short mask = 3;
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(dst),
                 "l"(map), "r"(c0), "r"(c1), "r"(bar), "h"(mask)
                 : "memory");
}

// Starts the copy of one box from shared memory to y, as a group of its own.
__device__ __forceinline__ void tma_store(u64 map, int c0, int c1, u32 src)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(c0), "r"(c1), "r"(src)
                 : "memory");
}

// Waits until the copy engine has read all of this thread's boxes.
__device__ __forceinline__ void tma_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// ---------------------------------------------------------------------------------------------------------------- products

#define ACC4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(i) ACC4(i), ACC4((i) + 4), ACC4((i) + 8), ACC4((i) + 12)

// d[64,256] += a[64,16] · b[16,256]; a is K-major, b is N-major.
__device__ __forceinline__ void mma(float (&d)[128], u64 da, u64 db)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63, "
                 "%64, %65, %66, %67, %68, %69, %70, %71, "
                 "%72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, "
                 "%88, %89, %90, %91, %92, %93, %94, %95, "
                 "%96, %97, %98, %99, %100, %101, %102, %103, "
                 "%104, %105, %106, %107, %108, %109, %110, %111, "
                 "%112, %113, %114, %115, %116, %117, %118, %119, "
                 "%120, %121, %122, %123, %124, %125, %126, %127}, "
                 "%128, %129, p, 1, 1, 0, 1;\n"
                 "}\n"
                 : ACC16(0), ACC16(16), ACC16(32), ACC16(48), ACC16(64), ACC16(80), ACC16(96), ACC16(112)
                 : "l"(da), "l"(db), "r"(1)
                 : "memory");
}

__device__ __forceinline__ void mma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void mma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int LEFT> __device__ __forceinline__ void mma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// A descriptor of a 128-byte-swizzled operand; offsets in bytes.
__device__ __forceinline__ u64 descriptor(u32 address, u32 leading, u32 stride)
{
    return u64((address & 0x3FFFFu) >> 4) | (u64(leading >> 4) << 16) | (u64(stride >> 4) << 32) | (u64(1) << 62);
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// ---------------------------------------------------------------------------------------------------------------- kernel

extern "C" __global__ void __launch_bounds__(384, 1)
    multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b, const __grid_constant__ TensorMap tm_y,
             int M, int N, int K)
{
    extern __shared__ unsigned char raw[];
    const u32 smem = (u32(__cvta_generic_to_shared(raw)) + 1023u) & ~1023u;
    const u32 full = smem + RING_BYTES;
    const u32 empty = full + 8 * STAGES;

    const int warp = threadIdx.x >> 5;
    const int lane = threadIdx.x & 31;
    const int wg = threadIdx.x >> 7;
    const int m0 = blockIdx.x * 128;
    const int n0 = blockIdx.y * 256;
    const int tiles = (K + 63) / 64;
    const u64 map_y = reinterpret_cast<u64>(&tm_y);

    if (wg == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");

        const u64 map_a = reinterpret_cast<u64>(&tm_a);
        const u64 map_b = reinterpret_cast<u64>(&tm_b);

        if (warp == 8) {
            if (lane == 0) {
                tma_prefetch(map_a);
                tma_prefetch(map_b);
                for (int s = 0; s < STAGES; ++s) {
                    mbar_init(full + 8 * s, 1);
                    mbar_init(empty + 8 * s, 16); // eight consumer warps in each of two blocks
                }
                asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                // The first slab's rows of a are this block's own: they need not wait for the other block.
                mbar_expect(full, STAGE_BYTES);
                tma_load(smem, map_a, 0, m0, full);
            }
            __syncwarp();
        }
        cluster_arrive();
        cluster_wait();

        if (warp == 8) {
            if (lane == 0) {
                u32 rank;
                asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
                const int column = n0 + int(rank) * 128;
                for (int kt = 0; kt < tiles; ++kt) {
                    const int s = kt & (STAGES - 1);
                    const u32 stage = smem + s * STAGE_BYTES;
                    const u32 half = stage + A_BYTES + rank * 16384u;
                    const u32 bar = full + 8 * s;
                    if (kt >= STAGES) // both blocks have left the stage
                        mbar_wait(empty + 8 * s, (u32(kt / STAGES) & 1u) ^ 1u);
                    if (kt > 0)
                        mbar_expect(bar, STAGE_BYTES); // its rows of a, its half of b and the other block's
                    tma_load_both(half, map_b, column, kt * 64, bar);
                    tma_load_both(half + 8192u, map_b, column + 64, kt * 64, bar);
                    if (kt > 0)
                        tma_load(stage, map_a, kt * 64, m0, bar);
                }
            }
            __syncwarp();
        } else if (warp == 9) {
            if (lane == 0)
                tma_prefetch(map_y);
            __syncwarp();
        }

        cluster_arrive();
        cluster_wait();
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");

    float d[128];
#pragma unroll
    for (int i = 0; i < 128; ++i)
        d[i] = 0.0f;

    cluster_arrive();
    cluster_wait(); // the barriers of both blocks are there

#pragma unroll 1
    for (int kt = 0; kt < tiles; ++kt) {
        const int s = kt & (STAGES - 1);
        const u32 stage = smem + s * STAGE_BYTES;
        const u64 da = descriptor(stage + wg * 8192, 16, 1024);
        const u64 db = descriptor(stage + A_BYTES, 8192, 1024);

        mbar_wait(full + 8 * s, u32(kt / STAGES) & 1u);
        mma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            mma(d, da + u64(k * 2), db + u64(k * 128));
        mma_commit();
        mma_wait<0>();

        // This warp's products of the stage are done: lane 0 tells block 0, lane 1 block 1, if the stage will be filled again.
        if (kt + STAGES < tiles && lane < 2)
            mbar_arrive_at(empty + 8 * s, u32(lane));
    }
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(d[i])::"memory");

    cluster_arrive(); // from here on nothing of the other block is touched

    // Both writers and readers of this warpgroup's rows of a, in all four stages, are done: 64×256 elements of y fit there, as four boxes
    // of 64 columns, one a stage, swizzled in the same way.
    named_sync(1 + wg, 128);
    {
        const int quarter = warp & 3;
        const u32 rows_at = smem + wg * 8192;
        const int put_row = quarter * 16 + (lane & 15);
        const u32 put_at = rows_at + put_row * 128;
        const int row = m0 + wg * 64;

#pragma unroll
        for (int q = 0; q < 4; ++q) {
#pragma unroll
            for (int c = 0; c < 8; c += 2) { // 16 columns: four 8×8 matrices
                const int i = 32 * q + 4 * c;
                const u32 piece = u32((c + (lane >> 4)) ^ (put_row & 7));
                const u32 at = put_at + q * STAGE_BYTES + (piece << 4);
                const u32 r0 = pack(d[i], d[i + 1]);
                const u32 r1 = pack(d[i + 2], d[i + 3]);
                const u32 r2 = pack(d[i + 4], d[i + 5]);
                const u32 r3 = pack(d[i + 6], d[i + 7]);
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r0), "r"(r1), "r"(r2),
                             "r"(r3)
                             : "memory");
            }

            // By every thread that wrote, before the barrier: the engine reads by another path.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");

            // Each box has its barrier: warp q waits there and starts the copy, the others only arrive.
            const int id = 3 + 4 * wg + q;
            if (quarter == q) {
                named_sync(id, 128);
                const int column = n0 + q * 64;
                if (lane == 0 && column < N && row < M)
                    tma_store(map_y, column, row, rows_at + q * STAGE_BYTES);
                __syncwarp();
            } else {
                named_arrive(id, 128);
            }
        }

        if (lane == 0)
            tma_store_wait_read(); // shared memory goes away with the block
        __syncwarp();
    }

    cluster_wait();
}
