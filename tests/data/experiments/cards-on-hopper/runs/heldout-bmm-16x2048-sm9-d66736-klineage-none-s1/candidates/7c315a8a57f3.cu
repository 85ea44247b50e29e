/*klineage
surface = "cuda"

[[workspace]]
name = "maps"
dtype = "bf16"
shape = ["sm_count * 256 + 256"]
init = "poison"

[[launch]]
kernel = "multiply"
grid = ["min(2 * ceil_div(sm_count - 1, 2), 2 * B * ceil_div(M, 256) * ceil_div(N, 256))"]
block = ["384"]
cluster = ["2", "1", "1"]
shared = "230912"
args = ["a", "b", "y", "maps", "int B", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[i] = a[i] · b[i], [M,K] by [K,N], for each i of B; bf16 in and out, f32 sums.
//
// Persistent clusters of two blocks; a cluster owns 256 x 256 of y, a block 128 x 256 of it. Warpgroup 0 produces (TMA, one thread),
// warpgroups 1 and 2 consume (wgmma 64 x 256 x 16). The b tile is loaded by halves and multicast to both blocks.

typedef unsigned int u32;
typedef unsigned long long u64;

static constexpr u32 kStages = 4;
static constexpr u32 kBytesA = 128 * 64 * 2;
static constexpr u32 kBytesB = 64 * 256 * 2;
static constexpr u32 kBytesStage = kBytesA + kBytesB;
static constexpr u32 kOutAt = kStages * kBytesStage;
static constexpr u32 kBarAt = kOutAt + 8 * 4096;
static constexpr u32 kMapAt = kBarAt + 128;

// ---------------------------------------------------------------------------------------------------------------- barriers

__device__ __forceinline__ void bar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
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

// ------------------------------------------------------------------------------------------------------------- tensor maps

// A whole warp makes one rank-3 map of 2-byte elements, 128-byte swizzle, zeros outside.
__device__ __forceinline__ void build_map(u32 sdesc, u64 gdesc, u64 address, u32 d0, u32 d1, u32 d2, u64 s1, u64 s2, u32 b0,
                                          u32 b1, u32 lane)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(sdesc + lane * 4), "r"(0u) : "memory");
    __syncwarp();
    if (lane == 0) {
        const u64 p = sdesc;
#if !((__CUDACC_VER_MAJOR__ > 12) || ((__CUDACC_VER_MAJOR__ == 12) && (__CUDACC_VER_MINOR__ >= 5)))
        // Older assemblers take the stride without its four low bits.
        s1 >>= 4;
        s2 >>= 4;
#endif
        const u32 one = 1;
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"l"(p), "l"(address) : "memory");
        asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 2;" ::"l"(p) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(p), "r"(b0) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(p), "r"(b1) : "memory");
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" ::"l"(p), "r"(one) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(p), "r"(d0) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(p), "r"(d1) : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" ::"l"(p), "r"(d2) : "memory");
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"l"(p), "l"(s1) : "memory");
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" ::"l"(p), "l"(s2) : "memory");
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, %1;" ::"l"(p), "r"(one) : "memory");
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" ::"l"(p), "r"(one) : "memory");
        asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 2, %1;" ::"l"(p), "r"(one) : "memory");
        // 1: 16-bit elements; they are only copied.
        asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 1;" ::"l"(p) : "memory");
        asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"l"(p) : "memory");
        asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;" ::"l"(p) : "memory");
        asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"l"(p) : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
                     gdesc),
                 "r"(sdesc)
                 : "memory");
}

__device__ __forceinline__ void acquire_map(u64 gdesc)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(gdesc) : "memory");
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

// ------------------------------------------------------------------------------------------------------------------ kernel

extern "C" __global__ void __launch_bounds__(384, 1)
    multiply(const void *a, const void *b, void *y, unsigned char *maps, int B, int M, int N, int K)
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

    const u64 my_maps = ((reinterpret_cast<u64>(maps) + 127ull) & ~127ull) + u64(blockIdx.x) * 512ull;
    const u64 map_a = my_maps;
    const u64 map_b = my_maps + 128;
    const u64 map_y = my_maps + 256;

    if (warp < 3) {
        u64 address, s1, s2;
        u32 d0, d1, rows;
        if (warp == 0) {
            address = reinterpret_cast<u64>(a);
            d0 = u32(K);
            d1 = u32(M);
            rows = 128;
        } else if (warp == 1) {
            address = reinterpret_cast<u64>(b);
            d0 = u32(N);
            d1 = u32(K);
            rows = 64;
        } else {
            address = reinterpret_cast<u64>(y);
            d0 = u32(N);
            d1 = u32(M);
            rows = 16;
        }
        s1 = u64(d0) * 2ull;
        s2 = s1 * u64(d1);
        build_map(base + kMapAt + warp * 128, my_maps + warp * 128, address, d0, d1, u32(B), s1, s2, 64, rows, lane);
    } else if (threadIdx.x == 96) {
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
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && lane == 0) {
            acquire_map(map_a);
            acquire_map(map_b);
            u32 stage = 0, phase = 0;
            for (int t = first; t < tiles; t += step) {
                const int batch = t / tiles_batch;
                const int rest = t - batch * tiles_batch;
                const int tile_n = rest / tiles_m;
                const int tile_m = rest - tile_n * tiles_m;
                const int m0 = tile_m * 256 + int(rank) * 128;
                const int n0 = tile_n * 256 + int(rank) * 128;
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
                }
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const u32 consumer = group - 1;
        if (lane == 0)
            acquire_map(map_y);
        __syncwarp();

        // Shared-memory descriptors, 128-byte swizzle. a: 8-row groups 1024 bytes apart. b: 64-column boxes 8192 bytes apart
        // (leading), 8-row groups of k 1024 bytes apart (stride).
        const u64 desc_a0 = (1ull << 62) | (64ull << 32) | (1ull << 16) | u64(((base + consumer * 8192) & 0x3ffffu) >> 4);
        const u64 desc_b0 = (1ull << 62) | (64ull << 32) | (512ull << 16) | u64(((base + kBytesA) & 0x3ffffu) >> 4);

        // stmatrix: which row and which half of a pair of 8-column blocks this lane addresses
        const u32 slots = base + kOutAt + (warp - 4) * 4096;
        const u32 slot_row = (((lane >> 3) & 1) * 8 + (lane & 7)) * 128;
        const u32 slot_half = lane >> 4;
        const u32 slot_xor = lane & 7;

        float d[128];
#pragma unroll
        for (int i = 0; i < 128; ++i)
            d[i] = 0.0f;

        u32 stage = 0, phase = 0, last = 0;
#pragma unroll 1
        for (int t = first; t < tiles; t += step) {
            const int batch = t / tiles_batch;
            const int rest = t - batch * tiles_batch;
            const int tile_n = rest / tiles_m;
            const int tile_m = rest - tile_n * tiles_m;
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

            if (row0 < M) {
#pragma unroll
                for (int c = 0; c < 4; ++c) {
                    const u32 slot = slots + (c & 1) * 2048;
                    if (lane == 0)
                        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                    __syncwarp();
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const int e = (c * 8 + j * 2) * 4;
                        const u32 r0 = pack(d[e + 0], d[e + 1]);
                        const u32 r1 = pack(d[e + 2], d[e + 3]);
                        const u32 r2 = pack(d[e + 4], d[e + 5]);
                        const u32 r3 = pack(d[e + 6], d[e + 7]);
                        const u32 at = slot + slot_row + (((u32(j) * 2 + slot_half) ^ slot_xor) << 4);
                        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(r0),
                                     "r"(r1), "r"(r2), "r"(r3)
                                     : "memory");
                    }
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                    __syncwarp();
                    if (lane == 0) {
                        if (n0 + c * 64 < N)
                            store_box(map_y, slot, n0 + c * 64, row0, batch);
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
