/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_a"
tensor = "a"
box = [1, 128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_b"
tensor = "b"
box = [1, 64, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_y"
tensor = "y"
box = [1, 16, 64]
swizzle = "128B"

[[launch]]
kernel = "multiply"
grid = ["2 * ceil_div(B * ceil_div(M, 256) * ceil_div(N, 256), ceil_div(B * ceil_div(M, 256) * ceil_div(N, 256), ceil_div(sm_count - 1, 2)))"]
block = ["384"]
cluster = ["2", "1", "1"]
shared = "230912"
args = ["tm_a", "tm_b", "tm_y", "int B", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i], [M,K] by [K,N], for each i of B; bf16 in and out, f32 sums.
//
// Persistent clusters of two blocks; a cluster owns 256 x 256 of y, a block 128 x 256 of it. Warpgroup 0 produces (TMA, one thread),
// warpgroups 1 and 2 consume (wgmma 64 x 256 x 16). The b tile is loaded by halves and multicast to both blocks.
//
// The entries of the ring are, for each tile, its steps of k and then one entry without a load: that slot is lent to the consumers,
// who put the first half of their results there and give it back when the stores have read it.

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

static constexpr u32 kStages = 4;
static constexpr u32 kBytesA = 128 * 64 * 2;
static constexpr u32 kBytesB = 64 * 256 * 2;
static constexpr u32 kBytesStage = kBytesA + kBytesB;
static constexpr u32 kOutAt = kStages * kBytesStage;
static constexpr u32 kBarAt = kOutAt + 8 * 4096;
static constexpr int kAhead = 6; // steps from the load that is asked for to the one that is prefetched into L2

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void bar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void bar_arrive(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void bar_wait(u32 bar, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n" ::"r"(bar),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void bar_arrive_at(u32 bar, u32 cta)
{
    asm volatile("{\n"
                 ".reg .b32 ra;\n"
                 "mapa.shared::cluster.u32 ra, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [ra];\n"
                 "}\n" ::"r"(bar),
                 "r"(cta)
                 : "memory");
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// ------------------------------------------------------------------------------------------------------------------ copies

__device__ __forceinline__ void prefetch_map(u64 map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void load_box(u32 dst, u64 map, u32 bar, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(dst),
                 "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}

__device__ __forceinline__ void load_box_both(u32 dst, u64 map, u32 bar, int c0, int c1, int c2)
{
    const unsigned short mask = 3;
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(dst),
                 "l"(map), "r"(bar), "h"(mask), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}

__device__ __forceinline__ void prefetch_box(u64 map, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(map), "r"(c0), "r"(c1), "r"(c2)
                 : "memory");
}

__device__ __forceinline__ void store_box(u64 map, u32 src, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map), "r"(src), "r"(c0),
                 "r"(c1), "r"(c2)
                 : "memory");
}

// ------------------------------------------------------------------------------------------------------------------- wgmma

#define ACC8(i)                                                                                                                    \
    "+f"(d[(i) + 0]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]), "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), \
        "+f"(d[(i) + 7])

// a: K-major in shared memory; b: N-major in shared memory (the last immediate).
__device__ __forceinline__ void wgmma_64x256x16(float (&d)[128], u64 da, u64 db, u32 keep)
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
                 : ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56), ACC8(64), ACC8(72), ACC8(80),
                   ACC8(88), ACC8(96), ACC8(104), ACC8(112), ACC8(120)
                 : "l"(da), "l"(db), "r"(keep));
}

__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int Left> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory");
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// -------------------------------------------------------------------------------------------------------------------- walk

__device__ __forceinline__ void place(int t, int tiles_m, int tiles_batch, int &batch, int &tile_m, int &tile_n)
{
    batch = t / tiles_batch;
    const int rest = t - batch * tiles_batch;
    tile_n = rest / tiles_m;
    tile_m = rest - tile_n * tiles_m;
}

// ------------------------------------------------------------------------------------------------------------------ kernel

extern "C" __global__ void __launch_bounds__(384, 1)
    multiply(const __grid_constant__ TensorMap tm_a, const __grid_constant__ TensorMap tm_b,
             const __grid_constant__ TensorMap tm_y, int B, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char raw[];
    const u32 base = (static_cast<u32>(__cvta_generic_to_shared(raw)) + 1023u) & ~1023u;
    const u32 full = base + kBarAt;
    const u32 empty = full + 8 * kStages;

    const u32 lane = threadIdx.x & 31;
    const u32 warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
    const u32 group = warp >> 2;
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const u64 map_a = reinterpret_cast<u64>(&tm_a);
    const u64 map_b = reinterpret_cast<u64>(&tm_b);
    const u64 map_y = reinterpret_cast<u64>(&tm_y);

    if (threadIdx.x == 0) {
        prefetch_map(map_a);
        prefetch_map(map_b);
        prefetch_map(map_y);
        for (u32 s = 0; s < kStages; ++s) {
            bar_init(full + 8 * s, 1);
            bar_init(empty + 8 * s, 16); // eight consumer warps in each of the two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    cluster_sync();

    const int tiles_m = (M + 255) / 256;
    const int tiles_n = (N + 255) / 256;
    const int tiles_batch = tiles_m * tiles_n;
    const int tiles = tiles_batch * B;
    const int blocks_k = (K + 63) / 64;
    const int first = int(blockIdx.x >> 1);
    const int step = int(gridDim.x >> 1);

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (warp == 0 && lane == 0) {
            const int half = int(rank) * 128;
            u32 stage = 0, phase = 0;
            int batch, tile_m, tile_n;
            place(first, tiles_m, tiles_batch, batch, tile_m, tile_n);
#pragma unroll 1
            for (int t = first; t < tiles; t += step) {
                const bool more = t + step < tiles;
                int next_batch = 0, next_m = 0, next_n = 0;
                if (more)
                    place(t + step, tiles_m, tiles_batch, next_batch, next_m, next_n);
                const int m0 = tile_m * 256 + half;
                const int n0 = tile_n * 256 + half;
#pragma unroll 1
                for (int kb = 0; kb < blocks_k; ++kb) {
                    const u32 bar = full + 8 * stage;
                    const u32 at_a = base + stage * kBytesStage;
                    const u32 at_b = at_a + kBytesA + rank * 16384;
                    bar_wait(empty + 8 * stage, phase ^ 1);
                    bar_expect(bar, kBytesStage);
                    load_box(at_a, map_a, bar, kb * 64, m0, batch);
                    load_box_both(at_b, map_b, bar, n0, kb * 64, batch);
                    load_box_both(at_b + 8192, map_b, bar, n0 + 64, kb * 64, batch);
                    if (++stage == kStages) {
                        stage = 0;
                        phase ^= 1;
                    }

                    // The clusters that share a tile of a or b take turns: each brings one step of eight into L2.
                    int ahead = kb + kAhead;
                    int pb = batch, pm = tile_m, pn = tile_n;
                    bool wanted = true;
                    if (ahead >= blocks_k) {
                        ahead -= blocks_k;
                        pb = next_batch;
                        pm = next_m;
                        pn = next_n;
                        wanted = more && ahead < blocks_k;
                    }
                    if (wanted) {
                        if (((ahead ^ pn) & 7) == 0) {
                            const int row = pm * 256 + half;
                            if (row < M)
                                prefetch_box(map_a, ahead * 64, row, pb);
                        }
                        if (((ahead ^ pm) & 7) == 0) {
                            const int col = pn * 256 + half;
                            if (col < N)
                                prefetch_box(map_b, col, ahead * 64, pb);
                            if (col + 64 < N)
                                prefetch_box(map_b, col + 64, ahead * 64, pb);
                        }
                    }
                }

                // The entry without a load: once everyone has left the slot, it is the consumers'.
                bar_wait(empty + 8 * stage, phase ^ 1);
                bar_arrive(full + 8 * stage);
                if (++stage == kStages) {
                    stage = 0;
                    phase ^= 1;
                }
                batch = next_batch;
                tile_m = next_m;
                tile_n = next_n;
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        const u32 consumer = group - 1;

        // Shared-memory descriptors, 128-byte swizzle. a: 8-row groups 1024 bytes apart. b: 64-column boxes 8192 bytes apart
        // (leading), 8-row groups of k 1024 bytes apart (stride).
        const u64 desc_a0 = (1ull << 62) | (64ull << 32) | (1ull << 16) | u64(((base + consumer * 8192) & 0x3ffffu) >> 4);
        const u64 desc_b0 = (1ull << 62) | (64ull << 32) | (512ull << 16) | u64(((base + kBytesA) & 0x3ffffu) >> 4);

        // stmatrix: which row and which half of a pair of 8-column blocks this lane addresses
        const u32 mine = (warp - 4) * 4096;
        const u32 slot_row = (((lane >> 3) & 1) * 8 + (lane & 7)) * 128;
        const u32 slot_half = lane >> 4;
        const u32 slot_xor = lane & 7;

        float d[128];
#pragma unroll
        for (int i = 0; i < 128; ++i)
            d[i] = 0.0f;

        const int give_at = blocks_k > 1 ? 1 : 0;
        u32 stage = 0, phase = 0, last = 0, lent = 0;
#pragma unroll 1
        for (int t = first; t < tiles; t += step) {
            int batch, tile_m, tile_n;
            place(t, tiles_m, tiles_batch, batch, tile_m, tile_n);
            const int row0 = tile_m * 256 + int(rank) * 128 + int(warp - 4) * 16;
            const int n0 = tile_n * 256;

#pragma unroll 1
            for (int kb = 0; kb < blocks_k; ++kb) {
                bar_wait(full + 8 * stage, phase);
                const u64 da = desc_a0 + u64(stage * (kBytesStage >> 4));
                const u64 db = desc_b0 + u64(stage * (kBytesStage >> 4));
                wgmma_fence();
                wgmma_64x256x16(d, da, db, kb != 0 ? 1u : 0u);
                wgmma_64x256x16(d, da + 2, db + 128, 1u);
                wgmma_64x256x16(d, da + 4, db + 256, 1u);
                wgmma_64x256x16(d, da + 6, db + 384, 1u);
                wgmma_commit();
                wgmma_wait<1>();
                if (kb != 0 && lane < 2)
                    bar_arrive_at(empty + 8 * last, lane);
                if (kb == give_at && t != first) {
                    // The stores have read the first half of the results before: its slot goes back to the ring.
                    if (lane == 0)
                        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                    __syncwarp();
                    if (lane < 2)
                        bar_arrive_at(empty + 8 * lent, lane);
                }
                last = stage;
                if (++stage == kStages) {
                    stage = 0;
                    phase ^= 1;
                }
            }
            wgmma_wait<0>();
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(d[i])::"memory");
            if (lane < 2)
                bar_arrive_at(empty + 8 * last, lane);
            __syncwarp();

            // The slot that is lent for the results
            bar_wait(full + 8 * stage, phase);
            lent = stage;
            if (++stage == kStages) {
                stage = 0;
                phase ^= 1;
            }

            if (row0 < M) {
                // The second half of the results before has left its place long ago.
                if (lane == 0)
                    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
                __syncwarp();
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const u32 slots = (h == 0 ? base + lent * kBytesStage : base + kOutAt) + mine;
#pragma unroll
                    for (int q = 0; q < 2; ++q) {
                        const int c = h * 2 + q;
#pragma unroll
                        for (int j = 0; j < 4; ++j) {
                            const int e = (c * 8 + j * 2) * 4;
                            const u32 r0 = pack(d[e + 0], d[e + 1]);
                            const u32 r1 = pack(d[e + 2], d[e + 3]);
                            const u32 r2 = pack(d[e + 4], d[e + 5]);
                            const u32 r3 = pack(d[e + 6], d[e + 7]);
                            const u32 at = slots + q * 2048 + slot_row + (((u32(j) * 2 + slot_half) ^ slot_xor) << 4);
                            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r0),
                                         "r"(r1), "r"(r2), "r"(r3)
                                         : "memory");
                        }
                    }
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    __syncwarp();
                    if (lane == 0) {
                        const int col = n0 + h * 128;
                        if (col < N)
                            store_box(map_y, slots, col, row0, batch);
                        if (col + 64 < N)
                            store_box(map_y, slots + 2048, col + 64, row0, batch);
                        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                    }
                    __syncwarp();
                }
            }
        }
        if (lane == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // No block leaves while the other may still write to its shared memory or arrive at its barriers.
    cluster_sync();
}
