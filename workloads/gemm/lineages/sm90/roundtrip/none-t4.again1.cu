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
box = [16, 64]
swizzle = "128B"

[[launch]]
kernel = "gemm"
grid = ["2 * min(ceil_div(M, 256) * ceil_div(N, 256), 64)"]
block = ["384"]
cluster = ["2"]
shared = "231424"
args = ["tm_x", "tm_w", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// Persistent clusters of two blocks; a cluster computes 256x256 of y, each block 128 rows of it. Warpgroup 0 is
// the producer (one thread issues TMA), warpgroups 1 and 2 compute 64x256 each with wgmma m64n256k16.
// A stage holds 128x64 of x and 256x64 of weight; each block loads one half of weight and multicasts it to both.

typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

#define STAGES 4
#define A_BYTES 16384u
#define B_BYTES 32768u
#define OFF_B (STAGES * A_BYTES)
#define OFF_C (OFF_B + STAGES * B_BYTES)
#define OFF_BAR (OFF_C + 32768u)

__device__ __forceinline__ void mbar_init(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void mbar_wait(unsigned bar, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred P1;\n"
                 "LAB_WAIT:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
                 "@P1 bra DONE;\n"
                 "bra LAB_WAIT;\n"
                 "DONE:\n"
                 "}\n" ::"r"(bar), "r"(parity) : "memory");
}

// bar: an address of the cluster's window, made by mapa. Without a scope of the cluster: a release at that scope
// puts a full memory fence before the arrival. What is handed over was only read, by products that have ended.
__device__ __forceinline__ void mbar_arrive_cluster(unsigned bar)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ unsigned map_to_rank(unsigned addr, unsigned rank)
{
    unsigned out;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(addr), "r"(rank));
    return out;
}

__device__ __forceinline__ void cluster_sync_all()
{
    asm volatile("barrier.cluster.arrive.release;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory");
}

__device__ __forceinline__ void prefetch_map(u64 map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void tma_load(unsigned dst, u64 map, int c0, int c1, unsigned bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" ::"r"(dst), "l"(map), "r"(bar), "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void tma_load_multicast(unsigned dst, u64 map, int c0, int c1, unsigned bar,
                                                   unsigned short mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5}], [%2], %3;" ::"r"(dst), "l"(map), "r"(bar), "h"(mask), "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ void tma_store(u64 map, unsigned src, int c0, int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(map), "r"(src),
                 "r"(c0), "r"(c1)
                 : "memory");
}

__device__ __forceinline__ u64 smem_desc(unsigned addr)
{
    // K-major, 128-byte swizzle: 1024 bytes from one group of 8 rows to the next
    return u64((addr & 0x3FFFFu) >> 4) | (u64(1) << 16) | (u64(64) << 32) | (u64(1) << 62);
}

__device__ __forceinline__ unsigned pack_bf16(float lo, float hi)
{
    unsigned out;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(hi), "f"(lo));
    return out;
}

#define D8(i)                                                                                              \
    "+f"(d[(i) + 0]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3]), "+f"(d[(i) + 4]),               \
        "+f"(d[(i) + 5]), "+f"(d[(i) + 6]), "+f"(d[(i) + 7])

__device__ __forceinline__ void wgmma_256(float (&d)[128], u64 da, u64 db, int scale)
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
                 : D8(0), D8(8), D8(16), D8(24), D8(32), D8(40), D8(48), D8(56), D8(64), D8(72), D8(80), D8(88),
                   D8(96), D8(104), D8(112), D8(120)
                 : "l"(da), "l"(db), "r"(scale));
}

// Tiles of 256x256, eight rows of tiles at a time, so that what runs together shares its operands in L2.
__device__ __forceinline__ void tile_of(int t, int tiles_m, int tiles_n, int &tm, int &tn)
{
    const int per_group = 8 * tiles_n;
    const int group = t / per_group;
    const int first = group * 8;
    const int size = min(tiles_m - first, 8);
    const int in = t - group * per_group;
    tn = in / size;
    tm = first + (in - tn * size);
}

extern "C" __global__ void __launch_bounds__(384, 1)
    gemm(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w,
         const __grid_constant__ TensorMap tm_y, int M, int N, int K)
{
    extern __shared__ __align__(1024) unsigned char smem_raw[];
    const unsigned base = (unsigned(__cvta_generic_to_shared(smem_raw)) + 1023u) & ~1023u;
    const unsigned full = base + OFF_BAR;
    const unsigned empty = full + 8 * STAGES;

    const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x >> 5), 0);
    const int lane = threadIdx.x & 31;
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const int cluster = blockIdx.x >> 1;
    const int clusters = gridDim.x >> 1;
    const int tiles_m = (M + 255) / 256;
    const int tiles_n = (N + 255) / 256;
    const int tiles = tiles_m * tiles_n;
    const int nk = (K + 63) / 64;

    if (threadIdx.x == 0) {
        prefetch_map(reinterpret_cast<u64>(&tm_x));
        prefetch_map(reinterpret_cast<u64>(&tm_w));
        prefetch_map(reinterpret_cast<u64>(&tm_y));
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + 8 * s, 1);    // the block's own producer, and the bytes
            mbar_init(empty + 8 * s, 16);  // 8 consumer warps in each of 2 blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    cluster_sync_all();

    if (warp < 4) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && lane == 0) {
            const u64 map_x = reinterpret_cast<u64>(&tm_x);
            const u64 map_w = reinterpret_cast<u64>(&tm_w);
            int stage = 0;
            unsigned phase = 0;
            for (int t = cluster; t < tiles; t += clusters) {
                int tm, tn;
                tile_of(t, tiles_m, tiles_n, tm, tn);
                const int row = tm * 256 + int(rank) * 128;
                const int col = tn * 256 + int(rank) * 128;
#pragma unroll 1
                for (int kb = 0; kb < nk; ++kb) {
                    mbar_wait(empty + 8 * stage, phase ^ 1u);
                    const unsigned bar = full + 8 * stage;
                    mbar_expect(bar, A_BYTES + B_BYTES);
                    tma_load(base + stage * A_BYTES, map_x, kb * 64, row, bar);
                    tma_load_multicast(base + OFF_B + stage * B_BYTES + rank * (B_BYTES / 2), map_w, kb * 64, col,
                                       bar, (unsigned short)3);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1u;
                    }
                }
            }
        }
        __syncwarp();
        cluster_sync_all();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int cwarp = warp - 4;      // 0..7
        const int half = cwarp >> 2;     // which 64 rows of the block's 128
        const u64 map_y = reinterpret_cast<u64>(&tm_y);
        const u64 desc_a = smem_desc(base + half * 8192);
        const u64 desc_b = smem_desc(base + OFF_B);
        const unsigned empty_of_lane = map_to_rank(empty, unsigned(lane & 1));

        // stmatrix: lanes 8i..8i+7 give the rows of matrix i; matrices 0, 1: rows 0-7, 8-15 of the first 8 columns,
        // matrices 2, 3: of the next 8
        const unsigned cbuf = base + OFF_C + cwarp * 4096;
        const unsigned st_row = unsigned((lane & 7) + ((lane >> 3) & 1) * 8) * 128u;
        const unsigned st_col = unsigned(lane >> 4);
        const unsigned st_xor = unsigned(lane & 7);

        int stage = 0;
        unsigned phase = 0;
        for (int t = cluster; t < tiles; t += clusters) {
            float d[128];
            int prev = 0;
#pragma unroll 1
            for (int kb = 0; kb < nk; ++kb) {
                mbar_wait(full + 8 * stage, phase);
                const u64 da = desc_a + u64(stage * (A_BYTES >> 4));
                const u64 db = desc_b + u64(stage * (B_BYTES >> 4));
                asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
                wgmma_256(d, da, db, kb != 0 ? 1 : 0);
                wgmma_256(d, da + 2, db + 2, 1);
                wgmma_256(d, da + 4, db + 4, 1);
                wgmma_256(d, da + 6, db + 6, 1);
                asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;\n" ::: "memory");
                if (kb != 0 && lane < 2)
                    mbar_arrive_cluster(empty_of_lane + 8 * prev);
                prev = stage;
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1u;
                }
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
            for (int i = 0; i < 128; ++i)
                asm volatile("" : "+f"(d[i])::"memory");
            if (lane < 2)
                mbar_arrive_cluster(empty_of_lane + 8 * prev);

            int tm, tn;
            tile_of(t, tiles_m, tiles_n, tm, tn);
            const int row = tm * 256 + int(rank) * 128 + cwarp * 16;
            const int col = tn * 256;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const unsigned buf = cbuf + (c & 1) * 2048;
                // the store before the last, which read this buffer, has read it
                if (lane == 0)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                __syncwarp();
#pragma unroll
                for (int j = 0; j < 8; j += 2) {
                    const int i = (c * 8 + j) * 4;
                    const unsigned r0 = pack_bf16(d[i + 0], d[i + 1]);
                    const unsigned r1 = pack_bf16(d[i + 2], d[i + 3]);
                    const unsigned r2 = pack_bf16(d[i + 4], d[i + 5]);
                    const unsigned r3 = pack_bf16(d[i + 6], d[i + 7]);
                    const unsigned addr = buf + st_row + (((unsigned(j) + st_col) ^ st_xor) << 4);
                    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(addr),
                                 "r"(r0), "r"(r1), "r"(r2), "r"(r3)
                                 : "memory");
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0) {
                    if (row < M && col + c * 64 < N)
                        tma_store(map_y, buf, col + c * 64, row);
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
            }
            __syncwarp();
        }
        if (lane == 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
        cluster_sync_all();
    }
}
