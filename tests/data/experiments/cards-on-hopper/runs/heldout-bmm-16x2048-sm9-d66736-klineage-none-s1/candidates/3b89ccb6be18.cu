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
// warpgroups 1 and 2 consume (wgmma 64 x 256 x 16). The b tile is loaded by halves and multicast to both blocks. A finished tile is
// written while the next one is multiplied: its left half waits in shared memory, its right half as packed bf16 in registers.
//
// Where a batch has a few tiles less than there are clusters, some row blocks are cut into one tile more, most of them 224 wide, so
// that a batch is one round of all clusters.

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

// No cluster-wide release: that would be a fence of the whole device. What is handed back was only read, and by finished wgmmas.
__device__ __forceinline__ void bar_arrive_at(u32 bar, u32 cta)
{
    asm volatile("{\n"
                 ".reg .b32 ra;\n"
                 "mapa.shared::cluster.u32 ra, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [ra];\n"
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

// The same with 224 columns.
__device__ __forceinline__ void wgmma_64x224x16(float (&d)[128], u64 da, u64 db, u32 keep)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %114, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n224k16.f32.bf16.bf16 "
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
                 "%104, %105, %106, %107, %108, %109, %110, %111}, "
                 "%112, %113, p, 1, 1, 0, 1;\n"
                 "}\n"
                 : ACC8(0), ACC8(8), ACC8(16), ACC8(24), ACC8(32), ACC8(40), ACC8(48), ACC8(56), ACC8(64), ACC8(72), ACC8(80),
                   ACC8(88), ACC8(96), ACC8(104)
                 : "l"(da), "l"(db), "r"(keep));
}

template <bool Narrow> __device__ __forceinline__ void wgmma_step(float (&d)[128], u64 da, u64 db, u32 keep)
{
    if (Narrow)
        wgmma_64x224x16(d, da, db, keep);
    else
        wgmma_64x256x16(d, da, db, keep);
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

// ------------------------------------------------------------------------------------------------------------------- tiles

struct Plan {
    int tiles_m, tiles_n; // of 256 x 256, in a batch
    int clusters;
    int extra;  // row blocks of a batch that are cut into one tile more; 0: none, and the tiles of all batches are one queue
    int wide;   // tiles of 256 columns in such a row block; they come first
    int narrow; // tiles of 224 columns in it
};

struct Place {
    int batch, row, col; // the first row and column of a cluster's tile
    int narrow;          // 224 columns, not 256
};

__device__ __forceinline__ Place locate(int t, const Plan &plan)
{
    Place at;
    at.narrow = 0;
    if (plan.extra != 0) {
        // A round is a batch. The narrow tiles, which come first, wander over the clusters from round to round.
        const int slim = plan.extra * plan.narrow;
        at.batch = t / plan.clusters;
        int i = (t - at.batch * plan.clusters + at.batch * slim) % plan.clusters;
        int m;
        if (i < slim) {
            m = i / plan.narrow;
            at.col = plan.wide * 256 + (i - m * plan.narrow) * 224;
            at.narrow = 1;
        } else {
            i -= slim;
            if (i < plan.extra * plan.wide) {
                m = i / plan.wide;
                at.col = (i - m * plan.wide) * 256;
            } else {
                i -= plan.extra * plan.wide;
                m = i / plan.tiles_n;
                at.col = (i - m * plan.tiles_n) * 256;
                m += plan.extra;
            }
        }
        at.row = m * 256;
    } else {
        const int tiles_batch = plan.tiles_m * plan.tiles_n;
        at.batch = t / tiles_batch;
        const int rest = t - at.batch * tiles_batch;
        const int n = rest / plan.tiles_m;
        at.row = (rest - n * plan.tiles_m) * 256;
        at.col = n * 256;
    }
    return at;
}

// ---------------------------------------------------------------------------------------------------------------- epilogue

// Volatile, so that it stays where it is written: before the sums are overwritten by the next tile.
__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 both;
    asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// One warp puts 16 rows by 128 columns into its two slots of 2 KiB (16 rows of 128 bytes each, swizzled).
__device__ __forceinline__ void fill(const u32 (&r)[32], u32 put, u32 lane)
{
    if (lane == 0)
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncwarp();
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"((put + u32(c) * 2048) ^
                                                                                                  (u32(j) << 5)),
                         "r"(r[c * 16 + j * 4 + 0]), "r"(r[c * 16 + j * 4 + 1]), "r"(r[c * 16 + j * 4 + 2]),
                         "r"(r[c * 16 + j * 4 + 3])
                         : "memory");
    }
}

// ... and sends them to columns col to col + 127 of y, clipped at its borders; a box that begins at or beyond limit is left out.
__device__ __forceinline__ void send(u64 map, u32 slots, int col, int row, int batch, int M, int limit, u32 lane)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0) {
        if (row < M) {
            if (col < limit)
                store_box(map, slots, col, row, batch);
            if (col + 64 < limit)
                store_box(map, slots + 2048, col + 64, row, batch);
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    __syncwarp();
}

__device__ __forceinline__ void store_global(u64 at, u32 v)
{
    asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}

// The last 32 columns of a narrow tile, straight from the registers.
__device__ __forceinline__ void send_tail(const u32 (&r)[32], u64 y, int col, int row, int batch, int M, int N, u32 lane)
{
    const int line = row + int(lane >> 2);
    const u64 at = y + ((u64(batch) * u64(M) + u64(line)) * u64(N) + u64(col) + u64((lane & 3) * 2)) * 2ull;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        if (col + 8 * j < N) {
            if (line < M)
                store_global(at + u64(16 * j), r[16 + 2 * j]);
            if (line + 8 < M)
                store_global(at + u64(16 * j) + u64(N) * 16ull, r[17 + 2 * j]);
        }
    }
}

// The right half of a tile.
__device__ __forceinline__ void send_right(const u32 (&held)[32], const Place &at, int row_add, u64 map, u64 y, u32 slots, u32 put,
                                           int M, int N, u32 lane)
{
    const int row = at.row + row_add;
    const int col = at.col + 128;
    int limit = N;
    if (at.narrow != 0 && col + 64 < N)
        limit = col + 64;
    fill(held, put, lane);
    send(map, slots, col, row, at.batch, M, limit, lane);
    if (at.narrow != 0)
        send_tail(held, y, col + 64, row, at.batch, M, N, lane);
    __syncwarp();
}

// --------------------------------------------------------------------------------------------------------------- main loop

// All of k for one tile of a consumer warpgroup. What is left of the tile before is sent meanwhile, and the next one located.
template <bool Narrow>
__device__ __forceinline__ void walk(float (&d)[128], const u32 (&held)[32], const Place &before, Place &next, int t_next,
                                     const Plan &plan, u32 full, u32 empty, u64 desc_a0, u64 desc_b0, u32 &stage, u32 &phase,
                                     int blocks_k, int row_add, u64 map_y, u64 y, u32 slots, u32 put, int M, int N, u32 lane)
{
    const int held_until = blocks_k > 2 ? 2 : blocks_k - 1;
    u32 last = 0;
#pragma unroll 1
    for (int kb = 0; kb < blocks_k; ++kb) {
        bar_wait(full + 8 * stage, phase);
        const u64 da = desc_a0 + u64(stage * (kBytesStage >> 4));
        const u64 db = desc_b0 + u64(stage * (kBytesStage >> 4));
        wgmma_fence();
        wgmma_step<Narrow>(d, da, db, kb != 0 ? 1u : 0u);
        wgmma_step<Narrow>(d, da + 2, db + 128, 1u);
        wgmma_step<Narrow>(d, da + 4, db + 256, 1u);
        wgmma_step<Narrow>(d, da + 6, db + 384, 1u);
        wgmma_commit();

        if (kb == 0)
            send(map_y, slots, before.col, before.row + row_add, before.batch, M, N, lane);
        if (kb == held_until) {
            send_right(held, before, row_add, map_y, y, slots, put, M, N, lane);
            next = locate(t_next, plan);
        }

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

    const int blocks_k = (K + 63) / 64;
    const int first = int(blockIdx.x >> 1);

    Plan plan;
    plan.tiles_m = (M + 255) / 256;
    plan.tiles_n = (N + 255) / 256;
    plan.clusters = int(gridDim.x >> 1);
    const int tiles_batch = plan.tiles_m * plan.tiles_n;
    // One tile more in some row blocks, where that makes a batch just a round and the plain queue would need as many rounds.
    plan.extra = plan.clusters - tiles_batch;
    if (plan.extra < 0 || plan.extra > plan.tiles_m || B * tiles_batch <= (B - 1) * plan.clusters || blocks_k < 4)
        plan.extra = 0;
    plan.narrow = (256 * (plan.tiles_n + 1) - N) / 32;
    if (plan.narrow > plan.tiles_n + 1)
        plan.narrow = plan.tiles_n + 1;
    plan.wide = plan.tiles_n + 1 - plan.narrow;
    const int jobs = plan.extra != 0 ? B * plan.clusters : B * tiles_batch;

    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && lane == 0) {
            acquire_map(map_a);
            acquire_map(map_b);
            u32 stage = 0, phase = 0;
            for (int t = first; t < jobs; t += plan.clusters) {
                const Place at = locate(t, plan);
                const int batch = at.batch;
                const int m0 = at.row + int(rank) * 128;
                const int n0 = at.col + int(rank) * 128;
                for (int kb = 0; kb < blocks_k; ++kb) {
                    const u32 bar = full + 8 * stage;
                    const u32 at_a = base + stage * kBytesStage;
                    const u32 at_b = at_a + kBytesA + rank * 16384;
                    bar_wait(empty + 8 * stage, phase ^ 1);
                    bar_expect(bar, kBytesStage);
                    load_box_both(at_b, map_b, bar, n0, kb * 64, batch);
                    load_box_both(at_b + 8192, map_b, bar, n0 + 64, kb * 64, batch);
                    load_box(at_a, map_a, bar, kb * 64, m0, batch);
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
        // (leading), 8-row groups of k 1024 bytes apart (stride). In block 1 of the cluster a shared address has bit 24 set,
        // which must not get into the leading-offset field.
        const u64 desc_a0 = (1ull << 62) | (64ull << 32) | (1ull << 16) | u64(((base + consumer * 8192) & 0x3ffffu) >> 4);
        const u64 desc_b0 = (1ull << 62) | (64ull << 32) | (512ull << 16) | u64(((base + kBytesA) & 0x3ffffu) >> 4);

        // put: where this lane's row of the first stmatrix begins
        const u32 slots = base + kOutAt + (warp - 4) * 4096;
        const u32 put = slots + (((lane >> 3) & 1) * 8 + (lane & 7)) * 128 + (((lane >> 4) ^ (lane & 7)) << 4);
        const int row_add = int(rank) * 128 + int(warp - 4) * 16;
        const u64 out = reinterpret_cast<u64>(y);

        float d[128];
#pragma unroll
        for (int i = 0; i < 128; ++i)
            d[i] = 0.0f;

        // The tile before, still to be written: its left half lies in the slots, its right half is held. None at first (a row
        // that is outside).
        u32 held[32];
#pragma unroll
        for (int i = 0; i < 32; ++i)
            held[i] = 0;
        Place before;
        before.batch = 0;
        before.row = M;
        before.col = 0;
        before.narrow = 0;

        Place here = locate(first, plan);
        u32 stage = 0, phase = 0;
#pragma unroll 1
        for (int t = first; t < jobs; t += plan.clusters) {
            Place next = here;
            if (here.narrow != 0)
                walk<true>(d, held, before, next, t + plan.clusters, plan, full, empty, desc_a0, desc_b0, stage, phase, blocks_k,
                           row_add, map_y, out, slots, put, M, N, lane);
            else
                walk<false>(d, held, before, next, t + plan.clusters, plan, full, empty, desc_a0, desc_b0, stage, phase, blocks_k,
                            row_add, map_y, out, slots, put, M, N, lane);

            // The left half goes into the slots, the right half is only rounded.
            {
                u32 now[32];
#pragma unroll
                for (int i = 0; i < 32; ++i)
                    now[i] = pack(d[2 * i], d[2 * i + 1]);
                fill(now, put, lane);
            }
#pragma unroll
            for (int i = 0; i < 32; ++i)
                held[i] = pack(d[64 + 2 * i], d[64 + 2 * i + 1]);
            before = here;
            here = next;
        }

        send(map_y, slots, before.col, before.row + row_add, before.batch, M, N, lane);
        send_right(held, before, row_add, map_y, out, slots, put, M, N, lane);
        if (lane == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // No block leaves while the other may still write to its shared memory or arrive at its barriers.
    cluster_sync();
}
