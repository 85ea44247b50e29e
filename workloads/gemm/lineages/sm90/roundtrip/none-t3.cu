/*klineage
surface = "cuda"

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_w"
tensor = "weight"
box = [128, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_y"
tensor = "y"
box = [64, 64]
swizzle = "128B"

[[launch]]
kernel = "gemm"
grid = ["2 * ceil_div(ceil_div(M, 256) * ceil_div(N, 256), ceil_div(ceil_div(M, 256) * ceil_div(N, 256), ceil_div(sm_count, 2)))"]
block = ["384"]
cluster = ["2"]
shared = "230464"
args = ["tm_x", "tm_w", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// A cluster of two blocks owns 256x256 of y; each block 128 rows of it and all 256 columns. Warpgroup 0 holds the
// producer thread, warpgroups 1 and 2 own 64x256 sums each. Every block loads its own rows of x and half of the
// rows of weight, which it multicasts to both blocks.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

typedef unsigned int u32;
typedef unsigned long long u64;

static constexpr int STAGES = 4;
static constexpr u32 A_BYTES = 128 * 64 * 2;          // 16 KiB a stage
static constexpr u32 B_BYTES = 256 * 64 * 2;          // 32 KiB a stage
static constexpr u32 OFF_B = STAGES * A_BYTES;        // 65536
static constexpr u32 OFF_C = OFF_B + STAGES * B_BYTES; // 196608
static constexpr u32 OFF_BAR = OFF_C + 32768;         // 229376
static constexpr int GROUP = 8;

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
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra LAB_DONE;\n"
                 "bra LAB_WAIT;\n"
                 "LAB_DONE:\n"
                 "}\n" ::"r"(bar), "r"(parity) : "memory");
}

// bar: an address of the cluster's window (from mapa).
__device__ __forceinline__ void mbar_arrive_cluster(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ u32 map_to_rank(u32 addr, u32 rank)
{
    u32 out;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(addr), "r"(rank));
    return out;
}

__device__ __forceinline__ void tma_load(u32 dst, u64 map, u32 bar, int c0, int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" ::"r"(dst), "l"(map), "r"(bar), "r"(c0), "r"(c1) : "memory");
}

__device__ __forceinline__ void tma_load_multicast(u32 dst, u64 map, u32 bar, int c0, int c1, unsigned short mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(dst), "l"(map), "r"(bar), "h"(mask), "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void tma_store(u64 map, u32 src, int c0, int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(src),
                 "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// K-major operand, rows of 128 bytes, 128-byte swizzle, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ u64 make_desc(u32 addr)
{
    return u64((addr & 0x3FFFFu) >> 4) | (u64(1) << 16) | (u64(64) << 32) | (u64(1) << 62);
}

#define ACC4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define ACC16(i) ACC4((i)), ACC4((i) + 4), ACC4((i) + 8), ACC4((i) + 12)

__device__ __forceinline__ void wgmma_m64n256k16(float (&d)[128], u64 da, u64 db)
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
                 "%128, %129, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC16(0), ACC16(16), ACC16(32), ACC16(48), ACC16(64), ACC16(80), ACC16(96), ACC16(112)
                 : "l"(da), "l"(db), "r"(1)
                 : "memory");
}

__device__ __forceinline__ void fence_acc(float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
}

__device__ __forceinline__ u32 pack_bf16(float lo, float hi)
{
    u32 out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(hi), "f"(lo));
    return out;
}

__device__ __forceinline__ void stmatrix4(u32 addr, u32 r0, u32 r1, u32 r2, u32 r3)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(addr), "r"(r0), "r"(r1),
                 "r"(r2), "r"(r3)
                 : "memory");
}

// Tiles of a cluster, in groups of GROUP tile rows.
__device__ __forceinline__ void locate(int tile, int tiles_m, int tiles_n, int &m0, int &n0)
{
    const int per_group = GROUP * tiles_n;
    const int group = tile / per_group;
    const int rest = tile - group * per_group;
    const int first = group * GROUP;
    const int left = tiles_m - first;
    const int size = left < GROUP ? left : GROUP;
    const int n = rest / size;
    m0 = (first + (rest - n * size)) * 256;
    n0 = n * 256;
}

extern "C" __global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w,
         const __grid_constant__ TensorMap tm_y, int M, int N, int K)
{
    extern __shared__ unsigned char smem_raw[];
    const u32 raw = static_cast<u32>(__cvta_generic_to_shared(smem_raw));
    const u32 base = (raw + 1023u) & ~1023u;
    const u32 full = base + OFF_BAR;
    const u32 empty = full + 8 * STAGES;

    const u64 map_x = reinterpret_cast<u64>(&tm_x);
    const u64 map_w = reinterpret_cast<u64>(&tm_w);
    const u64 map_y = reinterpret_cast<u64>(&tm_y);

    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const int tiles_m = (M + 255) / 256;
    const int tiles_n = (N + 255) / 256;
    const int tiles = tiles_m * tiles_n;
    const int blocks_k = (K + 63) / 64;
    const int first_tile = static_cast<int>(blockIdx.x >> 1);
    const int step = static_cast<int>(gridDim.x >> 1);
    const int wg = static_cast<int>(threadIdx.x >> 7);

    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(map_x) : "memory");
        asm volatile("prefetch.tensormap [%0];" ::"l"(map_w) : "memory");
        asm volatile("prefetch.tensormap [%0];" ::"l"(map_y) : "memory");
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + 8 * s, 1);
            mbar_init(empty + 8 * s, 16); // 8 consumer warps of either block
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync();

    if (wg == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            u32 s = 0;
            u32 phase = 0;
            for (int tile = first_tile; tile < tiles; tile += step) {
                int m0, n0;
                locate(tile, tiles_m, tiles_n, m0, n0);
                const int row_a = m0 + static_cast<int>(rank) * 128;
                const int row_b = n0 + static_cast<int>(rank) * 128;
#pragma unroll 1
                for (int kb = 0; kb < blocks_k; ++kb) {
                    mbar_wait(empty + 8 * s, phase ^ 1u);
                    mbar_expect(full + 8 * s, A_BYTES + B_BYTES);
                    tma_load(base + s * A_BYTES, map_x, full + 8 * s, kb * 64, row_a);
                    tma_load_multicast(base + OFF_B + s * B_BYTES + rank * (B_BYTES / 2), map_w, full + 8 * s, kb * 64,
                                       row_b, static_cast<unsigned short>(3));
                    if (++s == STAGES) {
                        s = 0;
                        phase ^= 1u;
                    }
                }
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int cw = wg - 1;
        const u32 t = threadIdx.x & 127u;
        const u32 lane = t & 31u;
        const u32 warp = t >> 5;
        const u32 remote_empty = map_to_rank(empty, lane & 1u);
        const u64 desc_a = make_desc(base + static_cast<u32>(cw) * 8192u);
        const u64 desc_b = make_desc(base + OFF_B);
        const u32 stage_c = base + OFF_C + static_cast<u32>(cw) * 16384u;
        const u32 row_c = (warp * 16u + (lane & 15u)) * 128u;

        u32 s = 0;
        u32 phase = 0;
        for (int tile = first_tile; tile < tiles; tile += step) {
            int m0, n0;
            locate(tile, tiles_m, tiles_n, m0, n0);

            float acc[128];
#pragma unroll
            for (int i = 0; i < 128; ++i)
                acc[i] = 0.0f;
            fence_acc(acc);

            u32 prev = 0;
#pragma unroll 1
            for (int kb = 0; kb < blocks_k; ++kb) {
                mbar_wait(full + 8 * s, phase);
                const u64 da = desc_a + u64(s * (A_BYTES >> 4));
                const u64 db = desc_b + u64(s * (B_BYTES >> 4));
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                wgmma_m64n256k16(acc, da, db);
                wgmma_m64n256k16(acc, da + 2, db + 2);
                wgmma_m64n256k16(acc, da + 4, db + 4);
                wgmma_m64n256k16(acc, da + 6, db + 6);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                // The group before this one has ended: its stage is free.
                if (kb > 0 && lane < 2u)
                    mbar_arrive_cluster(remote_empty + 8 * prev);
                prev = s;
                if (++s == STAGES) {
                    s = 0;
                    phase ^= 1u;
                }
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            fence_acc(acc);
            if (lane < 2u)
                mbar_arrive_cluster(remote_empty + 8 * prev);
            __syncwarp();

            // 64x256 sums in four chunks of 64x64 through two buffers.
            const int row0 = m0 + static_cast<int>(rank) * 128 + cw * 64;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const u32 buf = stage_c + static_cast<u32>(c & 1) * 8192u;
                if (t == 0)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                __syncwarp();
                asm volatile("bar.sync %0, 128;" ::"r"(wg) : "memory");
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int b = (c * 8 + 2 * j) * 4;
                    const u32 chunk = (static_cast<u32>(2 * j) + (lane >> 4)) ^ (lane & 7u);
                    stmatrix4(buf + row_c + chunk * 16u, pack_bf16(acc[b], acc[b + 1]),
                              pack_bf16(acc[b + 2], acc[b + 3]), pack_bf16(acc[b + 4], acc[b + 5]),
                              pack_bf16(acc[b + 6], acc[b + 7]));
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                asm volatile("bar.sync %0, 128;" ::"r"(wg) : "memory");
                if (t == 0) {
                    const int col0 = n0 + c * 64;
                    if (row0 < M && col0 < N)
                        tma_store(map_y, buf, col0, row0);
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
                __syncwarp();
            }
        }
        if (t == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // Neither block leaves while the other may still write to its shared memory or arrive at its barriers.
    cluster_sync();
}
