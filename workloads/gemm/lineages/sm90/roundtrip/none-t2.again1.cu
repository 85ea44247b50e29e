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
grid = ["sm_count"]
block = ["384"]
cluster = ["2"]
shared = "230464"
args = ["tm_x", "tm_w", "tm_y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = x[M,K] · weight[N,K]ᵀ, bf16 in and out, fp32 sums.
//
// A cluster of two blocks owns 256 x 256 of y, each block 128 x 256 of it. Warpgroup 0 produces (one thread issues
// TMA), warpgroups 1 and 2 consume, 64 x 256 each. The weight tile is shared by both blocks: each loads one half
// of it and multicasts it. Edges are left to TMA: zeros are read outside, nothing is written there.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int STAGES = 4;
constexpr u32 A_BYTES = 128 * 64 * 2;                 // 16384
constexpr u32 B_BYTES = 256 * 64 * 2;                 // 32768
constexpr u32 B_HALF = B_BYTES / 2;
constexpr u32 OFF_A = 0;
constexpr u32 OFF_B = OFF_A + STAGES * A_BYTES;       // 65536
constexpr u32 OFF_C = OFF_B + STAGES * B_BYTES;       // 196608
constexpr u32 C_BUF = 64 * 64 * 2;                    // 8192
constexpr u32 OFF_BAR = OFF_C + 4 * C_BUF;            // 229376
constexpr int GROUP = 8;

__device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
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
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
    } while (!done);
}

// Arrive at the barrier that lies at the same place in block `cta` of the cluster, if `active`. Nothing that this
// thread wrote is handed over, only a buffer whose readers (wgmma) have finished. So the arrival is left without
// `.release.cluster`, which would put a full memory fence into every step along K.
__device__ __forceinline__ void mbar_arrive_cluster(u32 bar, u32 cta, u32 active)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 ".reg .b32 ra;\n"
                 "setp.ne.u32 p, %2, 0;\n"
                 "@p mapa.shared::cluster.u32 ra, %0, %1;\n"
                 "@p mbarrier.arrive.shared::cluster.b64 _, [ra];\n"
                 "}\n"
                 :: "r"(bar), "r"(cta), "r"(active) : "memory");
}

__device__ __forceinline__ void tma_load(u32 dst, const TensorMap *map, int c0, int c1, u32 bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(dst), "l"(map), "r"(c0), "r"(c1), "r"(bar) : "memory");
}

__device__ __forceinline__ void tma_load_multicast(u32 dst, const TensorMap *map, int c0, int c1, u32 bar,
                                                   unsigned short mask)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;"
                 :: "r"(dst), "l"(map), "r"(c0), "r"(c1), "r"(bar), "h"(mask) : "memory");
}

__device__ __forceinline__ void tma_store(const TensorMap *map, int c0, int c1, u32 src)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(map), "r"(c0), "r"(c1), "r"(src) : "memory");
}

__device__ __forceinline__ void cluster_sync_all()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void group_sync(u32 id)
{
    asm volatile("bar.sync %0, 128;" :: "r"(id) : "memory");
}

// K-major, 128-byte swizzle, groups of eight rows 1024 bytes apart.
__device__ __forceinline__ u64 make_desc(u32 addr)
{
    return u64((addr & 0x3FFFFu) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

__device__ __forceinline__ u32 pack(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

__device__ __forceinline__ void stmatrix4(u32 addr, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"(addr), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

#define D4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define D16(i) D4((i)), D4((i) + 4), D4((i) + 8), D4((i) + 12)

__device__ __forceinline__ void wgmma_64x256x16(float (&d)[128], u64 da, u64 db, int scale_d)
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
                 : D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
                 : "l"(da), "l"(db), "r"(scale_d));
}

// Pins the sums at this place: no move of theirs may drift into the products in flight.
__device__ __forceinline__ void pin(float (&d)[128])
{
#pragma unroll
    for (int i = 0; i < 128; ++i)
        asm volatile("" : "+f"(d[i]) :: "memory");
}

// Tiles of 256 x 256, walked in bands of GROUP tiles along M, for L2.
__device__ __forceinline__ void place(int t, int tiles_m, int tiles_n, int &mt, int &nt)
{
    const int per_group = GROUP * tiles_n;
    const int g = t / per_group;
    const int r = t - g * per_group;
    const int left = tiles_m - g * GROUP;
    const int h = left < GROUP ? left : GROUP;
    nt = r / h;
    mt = g * GROUP + (r - nt * h);
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm(const __grid_constant__ TensorMap tm_x, const __grid_constant__ TensorMap tm_w,
     const __grid_constant__ TensorMap tm_y, int M, int N, int K)
{
    extern __shared__ unsigned char smem_raw[];
    const u32 smem = (u32(__cvta_generic_to_shared(smem_raw)) + 1023u) & ~1023u;
    const u32 full = smem + OFF_BAR;                  // STAGES barriers
    const u32 empty = full + STAGES * 8;              // STAGES barriers

    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));

    const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x) / 32, 0);
    const int lane = threadIdx.x % 32;
    const int wgroup = warp / 4;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + s * 8, 1);               // the producer's expect_tx
            mbar_init(empty + s * 8, 16);             // eight consumer warps of each of the two blocks
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("prefetch.tensormap [%0];" :: "l"(&tm_x) : "memory");
        asm volatile("prefetch.tensormap [%0];" :: "l"(&tm_w) : "memory");
        asm volatile("prefetch.tensormap [%0];" :: "l"(&tm_y) : "memory");
    }
    __syncwarp();
    cluster_sync_all();

    const int tiles_m = (M + 255) / 256;
    const int tiles_n = (N + 255) / 256;
    const int tiles = tiles_m * tiles_n;
    const int k_steps = (K + 63) / 64;
    const int first = int(blockIdx.x) / 2;
    const int step = int(gridDim.x) / 2;

    if (wgroup == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == 0 && lane == 0) {
            int stage = 0;
            u32 phase = 0;
            for (int t = first; t < tiles; t += step) {
                int mt, nt;
                place(t, tiles_m, tiles_n, mt, nt);
                const int row_a = mt * 256 + int(rank) * 128;
                const int row_b = nt * 256 + int(rank) * 128;
#pragma unroll 1
                for (int kt = 0; kt < k_steps; ++kt) {
                    mbar_wait(empty + stage * 8, phase ^ 1u);
                    const u32 bar = full + stage * 8;
                    mbar_expect(bar, A_BYTES + B_BYTES);
                    tma_load(smem + OFF_A + stage * A_BYTES, &tm_x, kt * 64, row_a, bar);
                    tma_load_multicast(smem + OFF_B + stage * B_BYTES + rank * B_HALF, &tm_w, kt * 64, row_b, bar,
                                       (unsigned short)3);
                    if (++stage == STAGES) {
                        stage = 0;
                        phase ^= 1u;
                    }
                }
            }
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int wg = wgroup - 1;
        const int wwarp = warp & 3;
        const bool elected = wwarp == 0 && lane == 0;
        const u32 bar_id = 1 + wg;

        const u64 desc_a = make_desc(smem + OFF_A + wg * (64 * 128));
        const u64 desc_b = make_desc(smem + OFF_B);

        // stmatrix: lanes 0-7 address the rows of the first 8x8 block, 8-15 those of the second, ...
        const u32 mr = lane & 7;
        const u32 mi = lane >> 3;
        const u32 c_base = smem + OFF_C + wg * (2 * C_BUF);
        const u32 c_row = (wwarp * 16 + (mi & 1) * 8 + mr) * 128;
        const u32 c_q = mi >> 1;

        int stage = 0;
        u32 phase = 0;
        for (int t = first; t < tiles; t += step) {
            int mt, nt;
            place(t, tiles_m, tiles_n, mt, nt);

            float d[128];
#pragma unroll
            for (int i = 0; i < 128; ++i)
                d[i] = 0.0f;
            pin(d);

            int prev = 0;
#pragma unroll 1
            for (int kt = 0; kt < k_steps; ++kt) {
                mbar_wait(full + stage * 8, phase);
                const u64 da = desc_a + u64(stage * (A_BYTES >> 4));
                const u64 db = desc_b + u64(stage * (B_BYTES >> 4));
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                wgmma_64x256x16(d, da, db, 1);
                wgmma_64x256x16(d, da + 2, db + 2, 1);
                wgmma_64x256x16(d, da + 4, db + 4, 1);
                wgmma_64x256x16(d, da + 6, db + 6, 1);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                // The batch before this one is over: give its stage back to both producers.
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                mbar_arrive_cluster(empty + prev * 8, lane, u32(kt != 0 && lane < 2));
                prev = stage;
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1u;
                }
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            pin(d);
            mbar_arrive_cluster(empty + prev * 8, lane, u32(lane < 2));
            __syncwarp();

            const int row0 = mt * 256 + int(rank) * 128 + wg * 64;
            const int col0 = nt * 256;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const u32 buf = c_base + (c & 1) * C_BUF;
                // The store before the last one has read this buffer.
                if (elected)
                    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
                __syncwarp();
                group_sync(bar_id);
#pragma unroll
                for (int p = 0; p < 4; ++p) {
                    const int j = (c * 8 + p * 2) * 4;
                    const u32 addr = buf + c_row + (((u32(p) * 2 + c_q) ^ mr) << 4);
                    stmatrix4(addr, pack(d[j], d[j + 1]), pack(d[j + 2], d[j + 3]), pack(d[j + 4], d[j + 5]),
                              pack(d[j + 6], d[j + 7]));
                }
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                group_sync(bar_id);
                if (elected) {
                    if (row0 < M && col0 + c * 64 < N)
                        tma_store(&tm_y, col0 + c * 64, row0, buf);
                    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
                }
                __syncwarp();
            }
        }
        if (elected)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // No block may leave while the other one still arrives at its barriers.
    cluster_sync_all();
}
